/* Rows of products with 4-bit integers; see nbits.h. */
#include <config.h>

#include <string.h>

#include "kernels/cpu/nbits.h"

int64_t
om_nbits_half(const om_nbits *b)
{
	return b->blocks * b->bytes;
}

void
om_nbits_split(const om_nbits *b, const float *x, int64_t k, int64_t row, float *even, float *odd, float *sums)
{
	const int64_t half = om_nbits_half(b);

	even += row * half;
	odd += row * half;
	memset(even, 0, (size_t)half * sizeof *even);
	memset(odd, 0, (size_t)half * sizeof *odd);
	for (int64_t i = 0; i < k; i++)
		(i % 2 ? odd : even)[i / 2] = x[i];
	for (int64_t i = 0; i < b->blocks; i++) {
		double sum = 0;
		for (int64_t j = i * b->bytes; j < (i + 1) * b->bytes; j++)
			sum += (double)even[j] + (double)odd[j];
		sums[row * b->blocks + i] = (float)sum;
	}
}
