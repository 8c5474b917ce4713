/* SPDX-License-Identifier: Apache-2.0 */
/* Optimized inner loops for float32.
 *
 * The source kernels.c is compiled once per instruction set, and the build is
 * selected at run time by CPU features.  Results are reproducible on a machine:
 * they depend neither on the alignment of pointers nor on the contents of scratch.
 * Between instruction sets they differ by rounding.
 */
#ifndef OM_KERNELS_H
#define OM_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/depthwise.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/grouped.h"
#include "kernels/cpu/halves.h"
#include "kernels/cpu/layer.h"
#include "kernels/cpu/pool_lines.h"
#include "kernels/cpu/nbits.h"
#include "kernels/cpu/qlayer.h"
#include "kernels/cpu/qrows.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/update.h"
#include "onnxmem/status.h"

/* Elements [n0, n0 + n) of row `k` of a matrix: a pointer to them, or to a copy made in the
 * buffer `room`. */
typedef const float *om_gemm_row(const void *rows, int64_t k, int64_t n0, int64_t n, float *room);

/* C = alpha A B, or C += alpha A B.  A is m by k, B is k by n; element (i, j)
 * of A is a[i * a_row + j * a_col]. */
typedef struct om_gemm {
	int64_t m, n, k;
	const float *a;
	int64_t a_row, a_col;
	const float *b;           /* unless `row` is given */
	int64_t b_row, b_col;
	om_gemm_row *row;
	const void *rows;
	float *c;
	int64_t c_row;
	float alpha;
	bool add;
} om_gemm;

enum {
	OM_GEMM_K = 256,          /* rows and columns of B that are packed at a time */
	OM_GEMM_N = 256,
	OM_GEMM_ROUND = 32,       /* columns are packed in groups whose size divides this */
};

/* out[i] = f(x[i]), i < n; `out` may be `x`.  `a` is the scale of x in SWISH. */
typedef void om_unary(float *out, const float *x, int64_t n, float a);
enum { OM_CURVE_ERF, OM_CURVE_EXP, OM_CURVE_GELU, OM_CURVE_GELU_TANH, OM_CURVE_SIGMOID, OM_CURVE_SWISH, OM_CURVE_TANH,
	OM_NCURVE };

typedef struct om_kernels {
	const char *isa;
	/* `room`: workspace of om_gemm_workspace() bytes. */
	void (*gemm)(const om_gemm *g, void *room);
	/* out[j] += the sum over t of w[t] * in[t][j * stride], j < n. */
	void (*taps)(float *out, int64_t n, const float *const *in, const float *w, int ntap,
		int64_t stride);
	/* The sum of a[i] * b[i]. */
	float (*dot)(const float *a, const float *b, int64_t n);
	/* out[j] = in[j] - zero, for int8 or uint8 input. */
	void (*bytes)(float *out, const void *in, int64_t n, bool is_signed, int32_t zero);
	/* sums[j] += in[j]: elements are integers in the range of int32; sums wrap around. */
	void (*add_whole)(int32_t *sums, const float *in, int64_t n);
	om_unary *curve[OM_NCURVE];
	const struct om_product_kernels *product;   /* product.h */
	const struct om_attention_kernels *attention; /* attention.h */
	const struct om_recurrent_kernels *recurrent; /* recurrent.h */
	const om_epilogue_kernels *epilogue;
	const om_half_kernels *half;
	const om_layer_kernels *layer;
	const om_nbits_kernels *nbits;
	const om_qlayer_kernels *qlayer;
	const om_qdepthwise_kernels *qdepthwise;
	const om_qrows_kernels *qrows;
	const om_depthwise_kernels *depthwise;
	const om_grouped_kernels *grouped;
	const om_pool_kernels *pool;
	const om_elementwise_kernels *elementwise;
	const om_rows_kernels *rows;
	const om_update_kernels *update;
} om_kernels;

/* The build in use: selected by ONNXMEM_ISA, else the best supported by this machine. */
const om_kernels *om_kernels_get(void);

/* Its name; NULL, with a message, if this machine does not support the requested one. */
const char *om_kernels_isa(om_session *s);

/* Build `k` of those supported by this machine, best first; NULL after the last. */
const om_kernels *om_kernels_at(unsigned k);

/* Workspace bytes of a product with these dims; the same on every machine. */
uint64_t om_gemm_workspace(int64_t m, int64_t n, int64_t k);

#endif
