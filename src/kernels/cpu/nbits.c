/* Products with 4-bit integers: see nbits.h.  A column is read once for all rows, block by block: the sum of the
 * products with the integers as they are, times the scale; what the zero points add to that is known from the sums of
 * the rows. */
#include <config.h>

#include "kernels/cpu/nbits.h"
#include "kernels/cpu/simd.h"

/* The sums of the products of a block, in lanes. */
INLINE void
add_block(const om_nbits *b, const uint8_t *w, int64_t at, const int rows, vec *sum)
{
	const int64_t half = b->blocks * b->bytes;

	for (int64_t k = 0; k < b->bytes; k += VL) {
		const ivec q = vec_load_uint8(w + k);
		const vec low = __builtin_convertvector(q & 15, vec), high = __builtin_convertvector(q >> 4, vec);
		UNROLL
		for (int r = 0; r < rows; r++)
			sum[r] += low * vec_load(b->even + r * half + at + k) + high * vec_load(b->odd + r * half + at + k);
	}
}

INLINE float
zero_of(const om_nbits *b, int64_t column, int64_t block)
{
	return b->zeros ? (float)(b->zeros[column * b->zero_bytes + block / 2] >> block % 2 * 4 & 15) : 8;
}

INLINE void
column(const om_nbits *b, int64_t n, const int rows)
{
	const uint8_t *w = b->weights + n * b->blocks * b->bytes;
	const float *scales = b->scales + n * b->blocks;
	vec sum[OM_NBITS_ROWS] = {{0}};
	float less[OM_NBITS_ROWS] = {0};

	for (int64_t i = 0; i < b->blocks; i++, w += b->bytes) {
		const float scale = scales[i], zero = scale * zero_of(b, n, i);
		vec part[OM_NBITS_ROWS] = {{0}};
		add_block(b, w, i * b->bytes, rows, part);
		__builtin_prefetch(w + 1024, 0, 3);
		UNROLL
		for (int r = 0; r < rows; r++) {
			sum[r] += part[r] * scale;
			less[r] += zero * b->sums[r * b->blocks + i];
		}
	}
	UNROLL
	for (int r = 0; r < rows; r++)
		b->y[r * b->columns + n] = vec_sum(sum[r]) - less[r] + (b->bias ? b->bias[n] : 0);
}

static void
columns(const om_nbits *b, int64_t first, int64_t end)
{
	for (int64_t n = first; n < end; n++)
		switch (b->rows) {
		case 1: column(b, n, 1); break;
		case 2: column(b, n, 2); break;
		case 3: column(b, n, 3); break;
		default: column(b, n, 4); break;
		}
}

extern const om_nbits_kernels OM_TABLE(om_nbits_kernels);

const om_nbits_kernels OM_TABLE(om_nbits_kernels) = {.columns = columns};
