/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: MatMul, Gemm, and products of 8-bit integers. */
#include <config.h>

#include "kernels/cpu/kernels.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/math/gemm_int8.h"
#include "base/convert_elements.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/numbers.h"

/* ---- One product of any type. ---- */

struct product {
	int64_t m, n, k;
	const void *a, *b;
	int64_t a_row, a_col, b_row, b_col;
	void *c;                  /* m by n, contiguous */
	float alpha;
	bool add;
	void *room;               /* workspace of om_gemm_workspace() bytes, for float32 */
};

static void
float_product(const struct product *p)
{
	const om_gemm g = {
		.m = p->m, .n = p->n, .k = p->k, .a = p->a, .a_row = p->a_row, .a_col = p->a_col,
		.b = p->b, .b_row = p->b_row, .b_col = p->b_col, .c = p->c, .c_row = p->n,
		.alpha = p->alpha, .add = p->add,
	};
	om_kernels_get()->gemm(&g, p->room);
}

/* Integers wrap around: they are computed as unsigned. */
#define PLAIN_PRODUCT(name, type, factor)                                      \
static void                                                                    \
name(const struct product *p)                                                  \
{                                                                              \
	for (int64_t i = 0; i < p->m; i++) {                                   \
		type *c = (type *)p->c + i * p->n;                             \
		const type *a = (const type *)p->a + i * p->a_row;             \
		for (int64_t j = 0; j < p->n && !p->add; j++)                  \
			c[j] = 0;                                              \
		for (int64_t k = 0; k < p->k; k++) {                           \
			const type *b = (const type *)p->b + k * p->b_row;     \
			const type x = a[k * p->a_col] * (type)(factor);       \
			for (int64_t j = 0; j < p->n; j++)                     \
				c[j] += x * b[j * p->b_col];                   \
		}                                                              \
	}                                                                      \
}
PLAIN_PRODUCT(double_product, double, p->alpha)
PLAIN_PRODUCT(int32_product, uint32_t, OM_SATURATE(int32_t, p->alpha))
PLAIN_PRODUCT(int64_product, uint64_t, OM_SATURATE(int64_t, p->alpha))

typedef void product_of(const struct product *);

static product_of *
product_for(om_dtype t)
{
	switch (t) {
	case OM_FLOAT32: case OM_FLOAT16: case OM_BFLOAT16: return float_product;
	case OM_FLOAT64: return double_product;
	case OM_INT32: case OM_UINT32: return int32_product;
	case OM_INT64: case OM_UINT64: return int64_product;
	default: return NULL;
	}
}

static om_status
same_types(const om_op_context *c)
{
	const om_dtype a = c->in[0].type, b = c->in[1].type;

	if (a != b && a != OM_UNDEFINED && b != OM_UNDEFINED)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"cannot multiply %s by %s; the element types must be equal",
			om_dtype_text(a), om_dtype_text(b));
	return OM_OK;
}

static om_status
inner_dims_differ(const om_op_context *c, uint32_t ak, uint32_t bk)
{
	char a[128], b[128];

	return om_op_fail(c->session, OM_SHAPE, c->op, "cannot multiply %s by %s",
		om_shape_text(&c->in[ak].shape, a, sizeof a), om_shape_text(&c->in[bk].shape, b, sizeof b));
}

/* ---- 16-bit floats are computed as float32. ---- */

static uint64_t
wide_scratch(const om_op_context *c, uint64_t room)
{
	if (!om_is_half(c->in[0].type))
		return om_piece_size(room);
	return om_size_sum(om_size_sum(om_piece_size(room), om_floats_of(&c->out[0])),
		om_size_sum(om_floats_of(&c->in[0]), om_floats_of(&c->in[1])));
}

static void
widen_input(const om_op_context *c, uint32_t k, char *to)
{
	const om_tensor *t = &c->in[k];
	float *y = (float *)(void *)to;

	if (t->type == OM_FLOAT16)
		om_kernels_get()->half->widen(y, t->data, om_shape_count(&t->shape));
	else
		om_widen(t->type, t->data, om_shape_count(&t->shape), y);
}

/* Convert inputs 0 and 1 and allocate the output in scratch, after `room` bytes of workspace. */
static void
widen(const om_op_context *c, uint64_t room, struct product *p)
{
	char *at = (char *)c->scratch + om_piece_size(room);

	p->a = c->in[0].data;
	p->b = c->in[1].data;
	p->c = c->out[0].data;
	p->room = c->scratch;
	if (!om_is_half(c->in[0].type))
		return;
	p->a = at;
	widen_input(c, 0, at);
	at += om_floats_of(&c->in[0]);
	p->b = at;
	widen_input(c, 1, at);
	p->c = at + om_floats_of(&c->in[1]);
}

static void
narrow(const om_op_context *c, const struct product *p)
{
	if (om_is_half(c->out[0].type))
		om_narrow(c->out[0].type, p->c, om_shape_count(&c->out[0].shape), c->out[0].data);
}

/* ---- MatMul, MatMulInteger. ---- */

/* The dims of a matrix in the last two axes of a tensor; a vector is a row on the left, a column on the
 * right. */
static void
matrix_dims(const om_shape *s, bool is_left, int64_t *rows, int64_t *cols)
{
	const int64_t last = s->dim[s->rank - 1];

	*rows = s->rank > 1 ? s->dim[s->rank - 2] : is_left ? 1 : last;
	*cols = s->rank > 1 || is_left ? last : 1;
}

static om_shape
batch_dims(const om_shape *s)
{
	om_shape b = *s;

	b.rank = s->rank > 2 ? s->rank - 2 : 0;
	return b;
}

static om_status
matmul_shape(om_op_context *c, uint32_t ak, uint32_t bk)
{
	const om_shape *a = &c->in[ak].shape, *b = &c->in[bk].shape;
	om_shape *out = &c->out[0].shape;
	int64_t m, k, k2, n;

	if (a->rank == 0 || b->rank == 0)
		return om_op_fail(c->session, OM_SHAPE, c->op, "cannot multiply scalars");
	if (a->rank < 0 || b->rank < 0)
		return OM_OK;
	matrix_dims(a, true, &m, &k);
	matrix_dims(b, false, &k2, &n);
	const om_shape a_batch = batch_dims(a), b_batch = batch_dims(b);
	if (!om_dims_agree(k, k2) || !om_broadcast(&a_batch, &b_batch, out))
		return inner_dims_differ(c, ak, bk);
	if (a->rank > 1)
		om_copy_dim(out, out->rank++, a, a->rank - 2);
	if (b->rank > 1)
		om_copy_dim(out, out->rank++, b, b->rank - 1);
	return OM_OK;
}

static om_status
matmul_infer(om_op_context *c)
{
	OM_TRY(same_types(c));
	c->out[0].type = c->in[0].type;
	return matmul_shape(c, 0, 1);
}

struct batch {
	om_shape dims;
	int64_t m, n, k;
	int64_t a_step[OM_MAX_RANK], b_step[OM_MAX_RANK];  /* in elements; 0 where broadcast */
};

static void
steps(const om_shape *s, const om_shape *batch, int64_t matrix, int64_t *step)
{
	const int skip = batch->rank - (s->rank > 2 ? s->rank - 2 : 0);

	for (int k = batch->rank - 1; k >= 0; k--) {
		const int64_t n = k < skip ? 1 : s->dim[k - skip];
		step[k] = n == 1 ? 0 : matrix;
		matrix *= n;
	}
}

static void
batch_of(const om_op_context *c, uint32_t ak, uint32_t bk, struct batch *b)
{
	const om_shape *left = &c->in[ak].shape, *right = &c->in[bk].shape;
	const om_shape x = batch_dims(left), y = batch_dims(right);
	int64_t k;

	matrix_dims(left, true, &b->m, &b->k);
	matrix_dims(right, false, &k, &b->n);
	om_broadcast(&x, &y, &b->dims);
	steps(left, &b->dims, b->m * b->k, b->a_step);
	steps(right, &b->dims, b->k * b->n, b->b_step);
	if (om_shape_count(&y) == 1 && om_shape_equal(&x, &b->dims)) {  /* one tall matrix */
		b->m *= om_shape_count(&x);
		b->dims.rank = 0;
	}
}

static int64_t
offset_of(const struct batch *b, int64_t number, const int64_t *step)
{
	int64_t at = 0;

	for (int k = b->dims.rank - 1; k >= 0; k--) {
		at += number % b->dims.dim[k] * step[k];
		number /= b->dims.dim[k];
	}
	return at;
}

struct matmul {
	struct batch b;
	int64_t count;                /* number of matrices */
	int64_t size;                 /* of an element in the type of computation */
	uint64_t room;                /* workspace of one product */
	product_of *product;
};

static om_status
matmul_prepare(om_op_context *c, void **state)
{
	const om_dtype t = c->in[0].type;
	struct matmul *s = *state;

	s->product = product_for(t);
	if (!s->product)
		return om_no_kernel(c, t);
	batch_of(c, 0, 1, &s->b);
	s->count = om_shape_count(&s->b.dims);
	s->size = om_dtype_bits(om_is_half(t) ? OM_FLOAT32 : t) / 8;
	s->room = om_gemm_workspace(s->b.m, s->b.n, s->b.k);
	return OM_OK;
}

static uint64_t
matmul_scratch(const om_op_context *c)
{
	const struct matmul *s = c->state;

	return wide_scratch(c, s->room);
}

static om_status
matmul_cpu(om_op_context *c)
{
	const struct matmul *s = c->state;
	const struct batch *b = &s->b;
	struct product all;

	widen(c, s->room, &all);
	for (int64_t i = 0; i < s->count; i++)
		s->product(&(struct product){
			.m = b->m, .n = b->n, .k = b->k,
			.a = (const char *)all.a + offset_of(b, i, b->a_step) * s->size,
			.b = (const char *)all.b + offset_of(b, i, b->b_step) * s->size,
			.a_row = b->k, .a_col = 1, .b_row = b->n, .b_col = 1,
			.c = (char *)all.c + i * b->m * b->n * s->size, .alpha = 1, .room = all.room,
		});
	narrow(c, &all);
	return OM_OK;
}

static void
matmul_cost(const om_op_context *c, om_cost *cost)
{
	struct batch b;

	batch_of(c, 0, 1, &b);
	cost->flops = 2.0 * (double)b.k * (double)om_shape_count(&c->out[0].shape);
}

/* ---- 8-bit integers. ---- */

static bool
is_byte(om_dtype t)
{
	return t == OM_INT8 || t == OM_UINT8;
}

static bool
is_small_float(om_dtype t)
{
	return t >= OM_FLOAT8E4M3FN && t <= OM_FLOAT8E5M2FNUZ;
}

static om_status
check_bytes(const om_op_context *c, uint32_t k, bool or_float)
{
	const om_dtype t = c->in[k].type;

	if (!om_has_in(c, k) || is_byte(t) || t == OM_UNDEFINED || (or_float && is_small_float(t)))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s, expected int8 or uint8%s", k,
		om_dtype_text(t), or_float ? ", or an 8-bit float" : "");
}

/* A product of 8-bit integers minus their zero points.  Parameters of rows or columns are given as one
 * for all, one for each, or one for each of every matrix. */
struct bytes {
	const om_op_context *c;
	struct batch b;
	const om_tensor *left, *right, *left_zero, *right_zero;   /* zero points: NULL for none */
	int64_t rows;                 /* of one left matrix, also where all are multiplied as one */
	int64_t q, at_left, at_right; /* index of the current matrix of the output, and of its operands */
};

static int64_t
along(const om_tensor *t, int64_t per, int64_t matrix, int64_t i)
{
	const int64_t n = om_shape_count(&t->shape);

	return n == 1 ? 0 : n == per ? i : matrix * per + i;
}

static om_status
check_along(const om_op_context *c, uint32_t k, int64_t per, int64_t matrices)
{
	if (!om_has_in(c, k))
		return OM_OK;
	const int64_t n = om_shape_count(&c->in[k].shape);
	if (n == 1 || n == per || (per && n % per == 0 && n / per == matrices))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op,
		"input %u has %lld elements, expected 1 or %lld", k, (long long)n,
		(long long)per);
}

static void
bytes_of(const om_op_context *c, uint32_t ak, uint32_t bk, uint32_t azk, uint32_t bzk, struct bytes *p)
{
	int64_t k;

	p->c = c;
	batch_of(c, ak, bk, &p->b);
	matrix_dims(&c->in[ak].shape, true, &p->rows, &k);
	p->left = &c->in[ak];
	p->right = &c->in[bk];
	p->left_zero = om_has_in(c, azk) ? &c->in[azk] : NULL;
	p->right_zero = om_has_in(c, bzk) ? &c->in[bzk] : NULL;
}

static int64_t
matrices_of(const struct bytes *p)
{
	const int64_t n = om_shape_count(&p->b.dims);

	return p->rows ? n * (p->b.m / p->rows) : n;
}

static void
choose_matrix(struct bytes *p, int64_t q)
{
	p->q = q;
	p->at_left = offset_of(&p->b, q, p->b.a_step);
	p->at_right = offset_of(&p->b, q, p->b.b_step);
}

/* The zero point of row `i` of the left matrix. */
static int32_t
left_zero(const struct bytes *p, int64_t i)
{
	return p->left_zero
		? om_byte_at(p->left_zero, along(p->left_zero, p->rows, p->q + i / p->rows, i % p->rows)) : 0;
}

static void
left_floats(const void *of, int64_t i, int64_t k0, int64_t k, float *to)
{
	const struct bytes *p = of;

	om_bytes_floats(p->left, p->at_left + i * p->b.k + k0, k, left_zero(p, i), to);
}

static const float *
right_floats(const void *of, int64_t k, int64_t n0, int64_t n, float *to)
{
	const struct bytes *p = of;
	const om_tensor *zero = p->right_zero;
	const bool is_one = !zero || om_shape_count(&zero->shape) == 1;

	om_bytes_floats(p->right, p->at_right + k * p->b.n + n0, n, zero && is_one ? om_byte_at(zero, 0) : 0, to);
	for (int64_t j = 0; j < n && !is_one; j++)
		to[j] -= (float)om_byte_at(zero, along(zero, p->b.n, p->q, n0 + j));
	return to;
}

/* Row `i` of the output, computed directly. */
static void
bytes_row(const struct bytes *p, int64_t i, int32_t *out)
{
	const struct batch *b = &p->b;
	const int64_t a0 = p->at_left + i * b->k, b0 = p->at_right;
	const int32_t za = left_zero(p, i);
	int32_t sum = 0;

	if (b->n)
		memset(out, 0, (size_t)b->n * sizeof *out);
	for (int64_t k = 0; k < b->k; k++) {
		const int32_t x = om_byte_at(p->left, a0 + k) - za;
		const char *right = (const char *)p->right->data + b0 + k * b->n;
		sum += x;
		if (p->right->type == OM_INT8)
			for (int64_t j = 0; j < b->n; j++)
				out[j] += x * ((const int8_t *)right)[j];
		else
			for (int64_t j = 0; j < b->n; j++)
				out[j] += x * ((const uint8_t *)right)[j];
	}
	for (int64_t j = 0; j < b->n && p->right_zero; j++)
		out[j] -= sum * om_byte_at(p->right_zero, along(p->right_zero, b->n, p->q, j));
}

static void
bytes_blocks(const struct bytes *p, om_bytes_put *put)
{
	const struct om_bytes all = {.m = p->b.m, .n = p->b.n, .k = p->b.k, .left = left_floats,
		.right = right_floats, .put = put, .of = p};

	om_gemm_int8(&all, p->c->scratch);
}

static om_status
integer_infer(om_op_context *c)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		OM_TRY(check_bytes(c, k, false));
	c->out[0].type = OM_INT32;
	return matmul_shape(c, 0, 1);
}

static uint64_t
integer_scratch(const om_op_context *c)
{
	struct batch b;

	batch_of(c, 0, 1, &b);
	return om_gemm_int8_suits(b.m) ? om_gemm_int8_workspace(b.m, b.n, b.k) : 0;
}

static int32_t *
integer_at(const struct bytes *p, int64_t i)
{
	return (int32_t *)p->c->out[0].data + (p->q * p->b.m + i) * p->b.n;
}

static void
integer_put(const void *of, int64_t i, int64_t j, int64_t n, const int32_t *sums)
{
	memcpy(integer_at(of, i) + j, sums, (size_t)n * sizeof *sums);
}

static om_status
integer_cpu(om_op_context *c)
{
	struct bytes p;

	bytes_of(c, 0, 1, 2, 3, &p);
	OM_TRY(check_along(c, 2, p.rows, matrices_of(&p)));
	OM_TRY(check_along(c, 3, p.b.n, om_shape_count(&p.b.dims)));
	for (int64_t q = 0, count = om_shape_count(&p.b.dims); q < count; q++) {
		choose_matrix(&p, q);
		if (om_gemm_int8_suits(p.b.m))
			bytes_blocks(&p, integer_put);
		for (int64_t i = 0; i < p.b.m && !om_gemm_int8_suits(p.b.m); i++)
			bytes_row(&p, i, integer_at(&p, i));
	}
	return OM_OK;
}

/* QLinearMatMul: the same, requantized to 8-bit integers. */
enum { QA, QA_SCALE, QA_ZERO, QB, QB_SCALE, QB_ZERO, QY_SCALE, QY_ZERO };

static om_status
qlinear_infer(om_op_context *c)
{
	static const uint32_t bytes[] = {QA, QA_ZERO, QB, QB_ZERO, QY_ZERO};

	for (uint32_t k = 0; k < 5; k++)
		OM_TRY(check_bytes(c, bytes[k], true));
	c->out[0].type = c->in[QY_ZERO].type;
	return matmul_shape(c, QA, QB);
}

static uint64_t
qlinear_scratch(const om_op_context *c)
{
	struct batch b;

	batch_of(c, QA, QB, &b);
	return om_gemm_int8_suits(b.m) ? om_gemm_int8_workspace(b.m, b.n, b.k) : (uint64_t)b.n * sizeof(int32_t);
}

static void
qlinear_put(const void *of, int64_t i, int64_t j0, int64_t count, const int32_t *sums)
{
	const struct bytes *p = of;
	const om_op_context *c = p->c;
	const om_tensor *sa = &c->in[QA_SCALE], *sb = &c->in[QB_SCALE], *sy = &c->in[QY_SCALE];
	const om_tensor *zy = &c->in[QY_ZERO];
	const int64_t n = p->b.n, q = p->q, matrix = q + i / p->rows, row = i % p->rows;
	const float a = (float)om_get(sa->type, sa->data, along(sa, p->rows, matrix, row));
	const float y = (float)om_get(sy->type, sy->data, along(sy, p->rows, matrix, row));
	const int32_t zero = om_byte_at(zy, along(zy, p->rows, matrix, row));

	uint8_t *out = (uint8_t *)c->out[0].data + (q * p->b.m + i) * n;
	for (int64_t j = j0; j < j0 + count; j++) {
		const float b = (float)om_get(sb->type, sb->data, along(sb, n, q, j));
		out[j] = (uint8_t)om_quantize((float)sums[j - j0] * (a * b / y), zero, c->out[0].type);
	}
}

static float
real_at(const om_tensor *t, int64_t i)
{
	float x;

	if (is_byte(t->type))
		return (float)om_byte_at(t, i);
	om_convert(OM_FLOAT32, &x, t->type, (const uint8_t *)t->data + i, 1, true);
	return x;
}

/* One element if the operands are float8: these have no integer sums. */
static void
qlinear_real(const struct bytes *p, int64_t i, int64_t j)
{
	const om_op_context *c = p->c;
	const struct batch *b = &p->b;
	const int64_t q = p->q, a0 = p->at_left + i * b->k, b0 = p->at_right + j;
	const int64_t matrix = q + i / p->rows, row = i % p->rows, to = (q * b->m + i) * b->n + j;
	const om_tensor *sa = &c->in[QA_SCALE], *sb = &c->in[QB_SCALE], *sy = &c->in[QY_SCALE], *zy = &c->in[QY_ZERO];
	const float za = real_at(p->left_zero, along(p->left_zero, p->rows, matrix, row));
	const float zb = real_at(p->right_zero, along(p->right_zero, b->n, q, j));
	double sum = 0;

	for (int64_t k = 0; k < b->k; k++)
		sum += (double)(real_at(p->left, a0 + k) - za) * (double)(real_at(p->right, b0 + k * b->n) - zb);
	sum *= om_get(sa->type, sa->data, along(sa, p->rows, matrix, row)) * om_get(sb->type, sb->data, along(sb, b->n, q, j))
		/ om_get(sy->type, sy->data, along(sy, p->rows, matrix, row));
	const int64_t z = along(zy, p->rows, matrix, row);
	const float y = (float)sum + (is_byte(zy->type) ? 0 : real_at(zy, z));
	if (is_byte(c->out[0].type))
		((uint8_t *)c->out[0].data)[to] = (uint8_t)om_quantize(y, om_byte_at(zy, z), c->out[0].type);
	else
		om_convert(c->out[0].type, (uint8_t *)c->out[0].data + to, OM_FLOAT32, &y, 1, true);
}

static void
qlinear_matrix(const struct bytes *p, bool is_real)
{
	const bool in_blocks = !is_real && om_gemm_int8_suits(p->b.m);

	if (in_blocks)
		bytes_blocks(p, qlinear_put);
	for (int64_t i = 0; i < p->b.m && !in_blocks; i++) {
		for (int64_t j = 0; j < p->b.n && is_real; j++)
			qlinear_real(p, i, j);
		if (is_real)
			continue;
		bytes_row(p, i, p->c->scratch);
		qlinear_put(p, i, 0, p->b.n, p->c->scratch);
	}
}

static om_status
qlinear_cpu(om_op_context *c)
{
	const bool is_real = is_small_float(c->in[QA].type) || is_small_float(c->in[QB].type) || is_small_float(c->out[0].type);
	struct bytes p;

	bytes_of(c, QA, QB, QA_ZERO, QB_ZERO, &p);
	const int64_t matrices = matrices_of(&p), count = om_shape_count(&p.b.dims);
	static const uint32_t left[] = {QA_SCALE, QA_ZERO, QY_SCALE, QY_ZERO}, right[] = {QB_SCALE, QB_ZERO};
	for (int k = 0; k < 4; k++)
		OM_TRY(check_along(c, left[k], p.rows, matrices));
	for (int k = 0; k < 2; k++)
		OM_TRY(check_along(c, right[k], p.b.n, count));
	for (int64_t q = 0; q < count; q++) {
		choose_matrix(&p, q);
		qlinear_matrix(&p, is_real);
	}
	return OM_OK;
}

static void
qlinear_cost(const om_op_context *c, om_cost *cost)
{
	struct batch b;

	batch_of(c, QA, QB, &b);
	cost->flops = 2.0 * (double)b.k * (double)om_shape_count(&c->out[0].shape);
}

/* ---- Gemm. ---- */

static const om_attr_spec gemm_attrs[] = {
	{"alpha", OM_ATTR_FLOAT, .f = 1},
	{"beta", OM_ATTR_FLOAT, .f = 1},
	{"transA", OM_ATTR_INT},
	{"transB", OM_ATTR_INT},
	{"broadcast", OM_ATTR_INT},
	{0}
};

static om_status
gemm_infer(om_op_context *c)
{
	const om_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
	const int ta = om_attr_int(c->op, "transA") != 0, tb = om_attr_int(c->op, "transB") != 0;
	om_shape out = {.rank = 2, .dim = {OM_DIM_UNKNOWN, OM_DIM_UNKNOWN}}, both;
	char text[128], to[128];

	OM_TRY(same_types(c));
	c->out[0].type = c->in[0].type;
	if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "A and B must be matrices, not %s and %s",
			om_shape_text(a, text, sizeof text), om_shape_text(b, to, sizeof to));
	if ((a->rank == 2 && b->rank == 2 && !om_dims_agree(a->dim[!ta], b->dim[tb])))
		return inner_dims_differ(c, 0, 1);
	if (a->rank == 2)
		om_copy_dim(&out, 0, a, ta);
	if (b->rank == 2)
		om_copy_dim(&out, 1, b, !tb);
	c->out[0].shape = out;
	if (!om_has_in(c, 2) || c->in[2].shape.rank < 0)
		return OM_OK;
	if (c->in[2].shape.rank > 2 || !om_broadcast(&out, &c->in[2].shape, &both)
	    || !om_dims_agree(both.dim[0], out.dim[0]) || !om_dims_agree(both.dim[1], out.dim[1]))
		return om_op_fail(c->session, OM_SHAPE, c->op, "cannot add %s to %s",
			om_shape_text(&c->in[2].shape, text, sizeof text), om_shape_text(&out, to, sizeof to));
	return OM_OK;
}

static void
gemm_dims(const om_op_context *c, struct product *p)
{
	const om_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
	const bool ta = om_attr_int(c->op, "transA") != 0, tb = om_attr_int(c->op, "transB") != 0;

	p->m = a->dim[ta];
	p->k = a->dim[!ta];
	p->n = b->dim[!tb];
	p->a_row = ta ? 1 : p->k;
	p->a_col = ta ? p->m : 1;
	p->b_row = tb ? 1 : p->n;
	p->b_col = tb ? p->k : 1;
	p->alpha = om_attr_float(c->op, "alpha");
}

struct gemm {
	struct product p;             /* without addresses */
	float beta;
	uint64_t room;                /* workspace of the product */
	product_of *product;
};

static om_status
gemm_prepare(om_op_context *c, void **state)
{
	struct gemm *s = *state;

	s->product = product_for(c->in[0].type);
	if (!s->product)
		return om_no_kernel(c, c->in[0].type);
	if (om_has_in(c, 2) && c->in[2].type != c->in[0].type)
		return om_op_fail(c->session, OM_SHAPE, c->op, "cannot add %s to %s", om_dtype_text(c->in[2].type),
			om_dtype_text(c->in[0].type));
	gemm_dims(c, &s->p);
	s->beta = om_attr_float(c->op, "beta");
	s->p.add = om_has_in(c, 2) && s->beta != 0;
	s->room = om_gemm_workspace(s->p.m, s->p.n, s->p.k);
	return OM_OK;
}

static uint64_t
gemm_scratch(const om_op_context *c)
{
	const struct gemm *s = c->state;

	return wide_scratch(c, s->room);
}

/* C times beta, in the type of the sum. */
OM_INLINE void
start_floats(const om_op_context *c, const struct product *p, om_dtype from, om_dtype to, double beta)
{
	const om_shape *s = &c->in[2].shape;
	const int64_t cols = s->rank > 0 ? s->dim[s->rank - 1] : 1;
	const int64_t row = s->rank > 1 && s->dim[0] != 1 ? cols : 0, col = cols != 1;

	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++)
			om_put(to, p->c, i * p->n + j, beta * om_get(from, c->in[2].data, i * row + j * col));
}

#define START_INTS(type)                                                       \
	for (int64_t i = 0; i < p->m; i++)                                     \
		for (int64_t j = 0; j < p->n; j++)                             \
			((type *)p->c)[i * p->n + j] = (type)OM_SATURATE(int64_t, beta) \
				* ((const type *)c->in[2].data)[i * row + j * col];

static void
start_ints(const om_op_context *c, const struct product *p, double beta)
{
	const om_shape *s = &c->in[2].shape;
	const int64_t cols = s->rank > 0 ? s->dim[s->rank - 1] : 1;
	const int64_t row = s->rank > 1 && s->dim[0] != 1 ? cols : 0, col = cols != 1;

	if (om_dtype_bits(c->in[2].type) == 32)
		START_INTS(uint32_t)
	else
		START_INTS(uint64_t)
}

static void
start_sum(const om_op_context *c, const struct product *p, double beta)
{
	switch (c->in[2].type) {
	case OM_FLOAT32: start_floats(c, p, OM_FLOAT32, OM_FLOAT32, beta); break;
	case OM_FLOAT64: start_floats(c, p, OM_FLOAT64, OM_FLOAT64, beta); break;
	case OM_FLOAT16: start_floats(c, p, OM_FLOAT16, OM_FLOAT32, beta); break;
	case OM_BFLOAT16: start_floats(c, p, OM_BFLOAT16, OM_FLOAT32, beta); break;
	default: start_ints(c, p, beta);
	}
}

static om_status
gemm_cpu(om_op_context *c)
{
	const struct gemm *s = c->state;
	struct product p = s->p;

	widen(c, s->room, &p);
	if (p.add)
		start_sum(c, &p, s->beta);
	s->product(&p);
	narrow(c, &p);
	return OM_OK;
}

static void
gemm_cost(const om_op_context *c, om_cost *cost)
{
	struct product p;

	gemm_dims(c, &p);
	cost->flops = 2.0 * (double)p.m * (double)p.n * ((double)p.k + (om_has_in(c, 2) ? 1 : 0));
}

#define MATMUL(from, to)                                                       \
	{.name = "MatMul", .brief = "matrix product, as numpy.matmul",    \
	 .since = from, .until = to, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .flags = OM_MONOTONE, \
	 .infer = matmul_infer, .slice = om_slice_matmul, .partial = om_partial_matmul, .cpu = matmul_cpu, .cost = matmul_cost, \
	 .input_types = {OF_WIDE, LIKE(0)}}

#define GEMM(from, to, least)                                                  \
	{.name = "Gemm", .brief = "alpha A B + beta C",           \
	 .since = from, .until = to, .min_in = least, .max_in = 3, .min_out = 1, .max_out = 1, .flags = OM_MONOTONE, \
	 .attrs = gemm_attrs, .infer = gemm_infer, .slice = om_slice_gemm, .partial = om_partial_gemm, .cpu = gemm_cpu, \
	 .cost = gemm_cost, .input_types = {OF_WIDE, LIKE(0), LIKE(0)}}

const om_opdef om_ops_matmul[] = {
	MATMUL(1, 8),
	MATMUL(9, 12),
	MATMUL(13, 0),
	GEMM(1, 6, 3),
	GEMM(7, 10, 3),
	GEMM(11, 0, 2),
	{.name = "MatMulInteger", .brief = "product of int8 or uint8 matrices, int32 result",
	 .since = 10, .min_in = 2, .max_in = 4, .min_out = 1, .max_out = 1,
	 .infer = integer_infer, .slice = om_slice_matmul_integer, .partial = om_partial_matmul_integer, .cpu = integer_cpu, .scratch = integer_scratch, .cost = matmul_cost,
	 .input_types = {OF_BYTES, OF_BYTES, LIKE(0), LIKE(1)}},
	{.name = "QLinearMatMul", .brief = "product of quantized matrices, quantized",
	 .since = 10, .min_in = 8, .max_in = 8, .min_out = 1, .max_out = 1, .infer = qlinear_infer, .slice = om_slice_matmul_quantized,
	 .cpu = qlinear_cpu, .scratch = qlinear_scratch, .cost = qlinear_cost,
	 .input_types = {OF_FLOAT8S | OF_BYTES, OF(BFLOAT16) | OF(FLOAT16) | OF(FLOAT32), LIKE(0),
	    OF_FLOAT8S | OF_BYTES, LIKE(1), LIKE(3), LIKE(1), OF_FLOAT8S | OF_BYTES}},
	{0}
};

const om_kernel om_kernels_matmul[] = {
	{.name = "MatMul", .state_bytes = sizeof(struct matmul), .prepare = matmul_prepare,
	 .workspace = matmul_scratch, .run = matmul_cpu},
	{.name = "Gemm", .state_bytes = sizeof(struct gemm), .prepare = gemm_prepare,
	 .workspace = gemm_scratch, .run = gemm_cpu},
	{0}
};
