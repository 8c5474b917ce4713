/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: the elementwise parts of gated layers, GatedRMSNorm, GatedAdd, LinearAttentionGate.
 *
 * An element is read before the output with the same index is written, so outputs may lie over inputs of their shape. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/family.h"
#include "ops/slices.h"

#define OF_REALS (OF(FLOAT32) | OF(FLOAT16) | OF(BFLOAT16))

static double
get(const om_tensor *t, int64_t i)
{
	return om_get(t->type, t->data, i);
}

static double
sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

/* Are two inputs of one shape, as far as is known? */
static bool
are_alike(const om_op_context *c, uint32_t a, uint32_t b)
{
	const om_shape *s = &c->in[a].shape, *t = &c->in[b].shape;

	if (s->rank < 0 || t->rank < 0)
		return true;
	for (int d = 0; d < s->rank && s->rank == t->rank; d++)
		if (!om_dims_agree(s->dim[d], t->dim[d]))
			return false;
	return s->rank == t->rank;
}

static bool
is_list(const om_op_context *c, uint32_t k, int64_t n)
{
	const om_shape *s = &c->in[k].shape;

	return s->rank < 0 || (s->rank == 1 && om_dims_agree(s->dim[0], n));
}

static int64_t
last_dim(const om_op_context *c, uint32_t k)
{
	const int rank = c->in[k].shape.rank;

	return rank > 0 ? c->in[k].shape.dim[rank - 1] : OM_DIM_UNKNOWN;
}

static bool
same_storage(const om_op_context *c, uint32_t out, uint32_t in)
{
	return c->in[in].type == c->out[out].type && om_shape_equal(&c->in[in].shape, &c->out[out].shape) && om_is_sole_use(c, in);
}

/* Inputs `a` and `b`, and every output, have the part, which is not along the last axis. */
static bool
slice_two(const om_op_context *c, uint32_t out, om_slice *s, uint32_t a, uint32_t b)
{
	const om_part p = s->out[out];

	if (p.axis >= c->out[out].shape.rank - 1)
		return false;
	s->in[a] = p;
	if (om_has_in(c, b))
		s->in[b] = p;
	for (uint32_t k = 0; k < c->op->nout; k++)
		s->out[k] = p;
	return true;
}

/* ---- GatedRMSNorm: lines of as many elements as the scale has. ---- */

enum { X, SCALE, GATE };

struct gated_norm {
	double epsilon;
	bool is_sigmoid;
};

static om_status
gated_norm_infer(om_op_context *c)
{
	const int64_t width = last_dim(c, X), n = last_dim(c, SCALE);

	OM_TRY(om_infer_same(c));
	if (c->in[X].shape.rank == 0 || !are_alike(c, X, GATE))
		return om_wrong(c, "gate must have the shape of X, which has at least one axis");
	if (!is_list(c, SCALE, n) || n == 0 || (n > 0 && width >= 0 && width % n))
		return om_wrong(c, "the number of elements of scale must divide the last dim of X");
	return OM_OK;
}

static bool
gated_norm_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	return slice_two(c, out, s, X, GATE);
}

static bool
gated_norm_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return (in == X || in == GATE) && same_storage(c, out, in);
}

static om_status
gated_norm_prepare(om_op_context *c, void **state)
{
	struct gated_norm *s = *state;

	s->epsilon = (double)om_attr_float(c->op, "epsilon");
	s->is_sigmoid = om_attr_is(c->op, "activation", "sigmoid");
	if (!s->is_sigmoid && !om_attr_is(c->op, "activation", "silu") && !om_attr_is(c->op, "activation", "swish"))
		return om_op_fail(c->session, OM_INVALID, c->op, "activation is neither silu nor swish nor sigmoid");
	return OM_OK;
}

static om_status
gated_norm_cpu(om_op_context *c)
{
	const struct gated_norm *s = c->state;
	const int64_t n = c->in[SCALE].shape.dim[0], all = om_shape_count(&c->in[X].shape);

	for (int64_t at = 0; at < all; at += n) {
		double sum = 0;
		for (int64_t k = 0; k < n; k++)
			sum += get(&c->in[X], at + k) * get(&c->in[X], at + k);
		const double by = 1 / sqrt(sum / (double)n + s->epsilon);
		for (int64_t k = 0; k < n; k++) {
			const double z = get(&c->in[GATE], at + k), gate = s->is_sigmoid ? sigmoid(z) : z * sigmoid(z);
			om_put(c->out[0].type, c->out[0].data, at + k, get(&c->in[X], at + k) * by * get(&c->in[SCALE], k) * gate);
		}
	}
	return OM_OK;
}

/* ---- GatedAdd: the product is rounded before the sum, as by Mul and Add. ---- */

enum { SUM, SCALED, ROW_GATE };

static om_status
gated_add_infer(om_op_context *c)
{
	const om_shape *x = &c->in[SUM].shape, *g = &c->in[ROW_GATE].shape;
	bool fits = x->rank != 0 && are_alike(c, SUM, SCALED);

	OM_TRY(om_infer_same(c));
	if (x->rank > 0 && g->rank >= 0) {
		fits = fits && g->rank == x->rank && om_dims_agree(g->dim[g->rank - 1], 1);
		for (int d = 0; fits && d < x->rank - 1; d++)
			fits = om_dims_agree(g->dim[d], x->dim[d]);
	}
	return fits ? OM_OK : om_wrong(c, "Y must have the shape of X, and gate that shape with a last dim of 1");
}

static bool
gated_add_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];

	s->in[SUM] = s->in[SCALED] = p;
	if (p.axis < c->in[SUM].shape.rank - 1)
		s->in[ROW_GATE] = p;
	return true;
}

static bool
gated_add_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return (in == SUM || in == SCALED) && same_storage(c, out, in);
}

static om_status
gated_add_cpu(om_op_context *c)
{
	const om_dtype type = c->out[0].type;
	const int64_t n = last_dim(c, SUM), all = om_shape_count(&c->in[SUM].shape);

	for (int64_t i = 0; i < all; i++) {
		char room[sizeof(double)] = {0};
		om_put(type, room, 0, get(&c->in[SCALED], i) * get(&c->in[ROW_GATE], i / n));
		om_put(type, c->out[0].data, i, get(&c->in[SUM], i) + om_get(type, room, 0));
	}
	return OM_OK;
}

/* ---- LinearAttentionGate: what LinearAttention has as decay and beta. ---- */

enum { A, DT_BIAS, DECAY_SCALE, B };

static om_status
attention_gate_infer(om_op_context *c)
{
	const int64_t heads = last_dim(c, A);

	OM_TRY(om_infer_same(c));
	if (c->in[A].shape.rank >= 0 && c->in[A].shape.rank != 3)
		return om_wrong(c, "a must have rank 3");
	if (!is_list(c, DT_BIAS, heads) || !is_list(c, DECAY_SCALE, heads))
		return om_wrong(c, "dt_bias and decay_scale must have one element for each head");
	if (om_has_in(c, B) && !are_alike(c, A, B))
		return om_wrong(c, "b must have the shape of a");
	if (!om_has_out(c, 1))
		return OM_OK;
	if (!om_has_in(c, B))
		return om_wrong(c, "the output beta requires b, which is omitted");
	c->out[1].type = c->in[A].type;
	c->out[1].shape = c->in[A].shape;
	return OM_OK;
}

static bool
attention_gate_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	return slice_two(c, out, s, A, B);
}

static bool
attention_gate_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return ((out == 0 && in == A) || (out == 1 && in == B)) && same_storage(c, out, in);
}

static double
softplus(double x)
{
	return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static om_status
attention_gate_cpu(om_op_context *c)
{
	const int64_t heads = last_dim(c, A), all = om_shape_count(&c->in[A].shape);

	for (int64_t i = 0; i < all; i++) {
		const double x = get(&c->in[A], i) + get(&c->in[DT_BIAS], i % heads);
		om_put(c->out[0].type, c->out[0].data, i, get(&c->in[DECAY_SCALE], i % heads) * softplus(x));
		if (om_has_out(c, 1))
			om_put(c->out[1].type, c->out[1].data, i, sigmoid(get(&c->in[B], i)));
	}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec norm_attrs[] = {
	{"activation", OM_ATTR_STRING, .s = "silu"},
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-5f},
	{0}
};

#define MS .domain = "com.microsoft", .since = 1, .min_out = 1

const om_opdef om_ops_contrib_gates[] = {
	{MS, .name = "GatedAdd", .brief = "X plus Y times a gate for each row", .min_in = 3, .max_in = 3, .max_out = 1,
	 .infer = gated_add_infer, .slice = gated_add_slice, .inplace = gated_add_reuse, .cpu = gated_add_cpu,
	 .input_types = {OF_REALS, LIKE(0), LIKE(0)}},
	{MS, .name = "GatedRMSNorm", .brief = "root mean square normalization times a gate", .min_in = 3, .max_in = 3, .max_out = 1,
	 .attrs = norm_attrs, .infer = gated_norm_infer, .slice = gated_norm_slice, .inplace = gated_norm_reuse,
	 .cpu = gated_norm_cpu, .input_types = {OF_REALS, LIKE(0), LIKE(0)}},
	{MS, .name = "LinearAttentionGate", .brief = "decay and beta of LinearAttention", .min_in = 3, .max_in = 4, .max_out = 2,
	 .infer = attention_gate_infer, .slice = attention_gate_slice, .inplace = attention_gate_reuse, .cpu = attention_gate_cpu,
	 .input_types = {OF_REALS, OF(FLOAT32), OF(FLOAT32), LIKE(0)}},
	{0}
};

const om_kernel om_kernels_contrib_gates[] = {
	{.domain = "com.microsoft", .name = "GatedRMSNorm", .state_bytes = sizeof(struct gated_norm), .prepare = gated_norm_prepare,
	 .run = gated_norm_cpu},
	{0}
};
