/* Products of matrices of bytes, computed by the product of float32 (bytes.c). */
#ifndef OM_GEMM_INT8_H
#define OM_GEMM_INT8_H

#include "kernels/cpu/kernels.h"
#include "onnxmem/tensor.h"

/* Takes columns [j, j + n) of row `i` of a product, which come once each. */
typedef void om_bytes_put(const void *of, int64_t i, int64_t j, int64_t n, const int32_t *sums);

/* The bytes come as floats, less their zero points: whole numbers of at most 255 either way. */
struct om_bytes {
	int64_t m, n, k;
	/* Elements [k0, k0 + k) of row `i` on the left. */
	void (*left)(const void *of, int64_t i, int64_t k0, int64_t k, float *to);
	/* A part of a row on the right. */
	om_gemm_row *right;
	om_bytes_put *put;
	const void *of;               /* what these three are given */
};

/* Does it pay for `m` rows? */
bool om_gemm_int8_suits(int64_t m);

/* Bytes of room, the same on every machine. */
uint64_t om_gemm_int8_workspace(int64_t m, int64_t n, int64_t k);
void om_gemm_int8(const struct om_bytes *p, void *room);

static inline int32_t
om_byte_at(const om_tensor *t, int64_t i)
{
	return t->type == OM_INT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* Elements [at, at + n) of a tensor of bytes, less `zero`. */
static inline void
om_bytes_floats(const om_tensor *t, int64_t at, int64_t n, int32_t zero, float *to)
{
	om_kernels_get()->bytes(to, (const char *)t->data + at, n, t->type == OM_INT8, zero);
}

#endif
