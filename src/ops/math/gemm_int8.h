/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of 8-bit integers, computed by the float32 GEMM (gemm_int8.c). */
#ifndef OM_GEMM_INT8_H
#define OM_GEMM_INT8_H

#include "kernels/cpu/kernels.h"
#include "onnxmem/tensor.h"

/* Receives columns [j, j + n) of row `i` of a product; each column is delivered once. */
typedef void om_bytes_put(const void *of, int64_t i, int64_t j, int64_t n, const int32_t *sums);

/* The 8-bit integers are supplied as floats after subtraction of the zero point: integers in [-255,
 * 255]. */
struct om_bytes {
	int64_t m, n, k;
	/* Elements [k0, k0 + k) of row `i` of the left matrix. */
	void (*left)(const void *of, int64_t i, int64_t k0, int64_t k, float *to);
	/* A part of a row of the right matrix. */
	om_gemm_row *right;
	om_bytes_put *put;
	const void *of;               /* argument of these three callbacks */
};

/* True if this is faster than the direct product for `m` rows. */
bool om_gemm_int8_suits(int64_t m);

/* Bytes of workspace, the same on every machine. */
uint64_t om_gemm_int8_workspace(int64_t m, int64_t n, int64_t k);
void om_gemm_int8(const struct om_bytes *p, void *room);

static inline int32_t
om_byte_at(const om_tensor *t, int64_t i)
{
	return t->type == OM_INT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* Elements [at, at + n) of a tensor of 8-bit integers, minus `zero`. */
static inline void
om_bytes_floats(const om_tensor *t, int64_t at, int64_t n, int32_t zero, float *to)
{
	om_kernels_get()->bytes(to, (const char *)t->data + at, n, t->type == OM_INT8, zero);
}

#endif
