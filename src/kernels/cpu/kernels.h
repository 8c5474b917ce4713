/* The fast inner loops of float32.
 *
 * One source, kernels.c, is built once for every instruction set; which build
 * runs is asked of the processor.  Results are the same on every run of a
 * machine: they depend neither on how pointers are aligned nor on what the
 * scratch holds.  Between instruction sets they differ by rounding.
 */
#ifndef OM_KERNELS_H
#define OM_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* Elements [n0, n0 + n) of row `k` of a matrix: where they lie, or a copy of
 * them made in `room`. */
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
	OM_GEMM_ROUND = 32,       /* columns are packed in groups that divide this */
};

/* out[i] = f(x[i]), i < n; `out` may be `x`.  `a` is what SWISH multiplies x by. */
typedef void om_unary(float *out, const float *x, int64_t n, float a);
enum { OM_CURVE_ERF, OM_CURVE_EXP, OM_CURVE_GELU, OM_CURVE_GELU_TANH, OM_CURVE_SIGMOID, OM_CURVE_SWISH, OM_CURVE_TANH,
	OM_NCURVE };

typedef struct om_kernels {
	const char *isa;
	/* `room`: om_gemm_workspace() bytes. */
	void (*gemm)(const om_gemm *g, void *room);
	/* out[j] += the sum over t of w[t] * in[t][j * stride], j < n. */
	void (*taps)(float *out, int64_t n, const float *const *in, const float *w, int ntap,
		int64_t stride);
	/* The sum of a[i] * b[i]. */
	float (*dot)(const float *a, const float *b, int64_t n);
	/* out[j] = in[j] - zero, of int8 or uint8. */
	void (*bytes)(float *out, const void *in, int64_t n, bool is_signed, int32_t zero);
	/* sums[j] += in[j]: whole numbers that int32 holds, sums that wrap. */
	void (*add_whole)(int32_t *sums, const float *in, int64_t n);
	om_unary *curve[OM_NCURVE];
} om_kernels;

/* The build in use: that which ONNXMEM_ISA names, else the best that this machine can run. */
const om_kernels *om_kernels_get(void);

/* Number `k` of those that this machine can run; NULL after the last. */
const om_kernels *om_kernels_at(unsigned k);

/* Bytes of room for a product of these dims, the same on every machine. */
uint64_t om_gemm_workspace(int64_t m, int64_t n, int64_t k);

#endif
