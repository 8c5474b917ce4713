/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of experts of com.microsoft: MoE with weights of floating point, QMoE with integers of 2, 4 or 8 bits.
 *
 * Each token has its `k` experts with the largest router elements; the sum of what they compute, each by two or three
 * products and an activation, is weighted.  Weights of other experts are not read.  A token is read before its output
 * is written, so the output may lie over the input. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/family.h"
#include "ops/slices.h"

enum { X, ROUTER, MOE_INPUTS = 8, ROUTER_WEIGHTS = 14, QMOE_INPUTS = 15 };
enum { FC1, FC2, FC3, NFC };

/* Indices of the inputs of each product; 0: there is none. */
struct operands { uint8_t weights, scales, bias, zeros; };
static const struct operands of_moe[NFC] = {{2, 0, 3, 0}, {4, 0, 5, 0}, {6, 0, 7, 0}};
static const struct operands of_qmoe[NFC] = {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}};

typedef enum activation { RELU, GELU, SILU, IDENTITY, SWIGLU, NACTIVATION } activation;

/* A product of an expert: `n` rows of `k` elements. */
struct product {
	int64_t n, k;
	int64_t bits, block, blocks;  /* of integers: of an element; elements of a block; blocks of a row */
};

struct moe {
	const struct operands *operands;
	bool is_quantized, has_third;
	int64_t tokens, hidden, inner, experts, chosen;
	struct product product[NFC];
	activation activation;
	int64_t fusion;           /* 1: both parts of a gated activation alternate; 2: one after the other */
	bool normalizes;
	double alpha, beta, limit;
};

static int64_t
tokens_of(const om_op_context *c)
{
	const om_shape *x = &c->in[X].shape;

	return om_shape_is_known(x) && x->rank > 0 ? om_shape_span(x, 0, x->rank - 1) : OM_DIM_UNKNOWN;
}

static om_status
read_activation(const om_op_context *c, struct moe *m)
{
	static const char *const names[NACTIVATION] = {"relu", "gelu", "silu", "identity", "swiglu"};

	for (m->activation = RELU; m->activation < NACTIVATION; m->activation++)
		if (om_attr_is(c->op, "activation_type", names[m->activation]))
			break;
	if (m->activation == NACTIVATION)
		return om_op_fail(c->session, OM_INVALID, c->op, "activation_type is not known");
	m->fusion = om_attr_int(c->op, "swiglu_fusion");
	if (m->fusion < 0 || m->fusion > 2)
		return om_op_fail(c->session, OM_INVALID, c->op, "swiglu_fusion is neither 0 nor 1 nor 2");
	if (m->activation != SWIGLU)
		m->fusion = 0;
	m->alpha = (double)om_attr_float(c->op, "activation_alpha");
	m->beta = (double)om_attr_float(c->op, "activation_beta");
	m->limit = om_attr_find(c->op, "swiglu_limit") ? (double)om_attr_float(c->op, "swiglu_limit") : (double)INFINITY;
	return OM_OK;
}

static om_status
read_bits(const om_op_context *c, struct moe *m)
{
	static const char *const names[NFC] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
	const int64_t all = om_attr_int(c->op, "expert_weight_bits"), block = om_attr_int(c->op, "block_size");

	if (!om_attr_is(c->op, "quant_type", "int") || om_attr_int(c->op, "weights_prepacked") > 0)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for weights of this format");
	for (int i = 0; i < NFC; i++) {
		struct product *p = &m->product[i];
		p->bits = om_attr_int(c->op, names[i]) ? om_attr_int(c->op, names[i]) : all;
		p->block = block;
		if (p->bits != 2 && p->bits != 4 && p->bits != 8)
			return om_op_fail(c->session, OM_INVALID, c->op, "the number of bits is neither 2 nor 4 nor 8");
		if (block < 0 || block > INT32_MAX)
			return om_op_fail(c->session, OM_INVALID, c->op, "block_size %lld is not possible", (long long)block);
	}
	return OM_OK;
}

/* Attributes and dims; those that are not known are OM_DIM_UNKNOWN. */
static om_status
read_moe(const om_op_context *c, struct moe *m)
{
	const bool is_quantized = strcmp(c->op->opdef->name, "QMoE") == 0;

	*m = (struct moe){.is_quantized = is_quantized, .operands = is_quantized ? of_qmoe : of_moe, .tokens = tokens_of(c),
		.experts = om_in_dim(c, ROUTER, 1), .chosen = om_attr_int(c->op, "k"),
		.normalizes = om_attr_int(c->op, "normalize_routing_weights") != 0};
	m->has_third = om_has_in(c, m->operands[FC3].weights);
	OM_TRY(read_activation(c, m));
	if (is_quantized)
		OM_TRY(read_bits(c, m));
	if (om_attr_int(c->op, "use_sparse_mixer"))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for the sparse mixer");
	if (m->has_third != (m->fusion == 0 && m->activation == SWIGLU) && m->activation == SWIGLU)
		return om_wrong(c, "swiglu requires either a fusion or the weights of a third product");
	if (m->chosen < 1 || (m->experts >= 0 && m->chosen > m->experts))
		return om_wrong(c, "k must be positive and at most the number of experts");
	m->hidden = c->in[X].shape.rank > 0 ? c->in[X].shape.dim[c->in[X].shape.rank - 1] : OM_DIM_UNKNOWN;
	m->inner = om_in_dim(c, m->operands[FC1].weights, 1);
	if (m->fusion && m->inner >= 0) {
		if (m->inner % 2)
			return om_wrong(c, "the first product of a fused swiglu has an even number of rows");
		m->inner /= 2;
	}
	m->product[FC1].n = m->fusion && m->inner >= 0 ? 2 * m->inner : m->inner;
	m->product[FC3].n = m->product[FC2].k = m->inner;
	m->product[FC1].k = m->product[FC3].k = m->product[FC2].n = m->hidden;
	return OM_OK;
}

static bool
fits(const om_op_context *c, uint32_t k, int rank, const int64_t *want)
{
	const om_shape *s = &c->in[k].shape;

	if (k == 0 || !om_has_in(c, k) || s->rank < 0)
		return true;
	for (int d = 0; d < rank && s->rank == rank; d++)
		if (!om_dims_agree(s->dim[d], want[d]))
			return false;
	return s->rank == rank;
}

static int64_t
bytes_for(int64_t n, int64_t bits)
{
	return n < 0 ? OM_DIM_UNKNOWN : n / (8 / bits) + (n % (8 / bits) != 0);
}

static bool
product_fits(const om_op_context *c, const struct moe *m, struct product *p, const struct operands *o)
{
	const int64_t e = m->experts;
	const bool has_blocks = p->block > 0;

	if (!m->is_quantized)
		return fits(c, o->weights, 3, (int64_t[]){e, p->n, p->k}) && fits(c, o->bias, 2, (int64_t[]){e, p->n});
	if (p->k >= 0 && (p->k % (8 / p->bits) || (has_blocks && p->k % p->block)))
		return false;
	p->blocks = p->k < 0 || !has_blocks ? p->k < 0 ? OM_DIM_UNKNOWN : 1 : p->k / p->block;
	if (has_blocks && !(fits(c, o->scales, 3, (int64_t[]){e, p->n, p->blocks})
	    && fits(c, o->zeros, 3, (int64_t[]){e, p->n, bytes_for(p->blocks, p->bits)})))
		return false;
	if (!has_blocks && !(fits(c, o->scales, 2, (int64_t[]){e, p->n}) && fits(c, o->zeros, 2, (int64_t[]){e, bytes_for(p->n, p->bits)})))
		return false;
	return om_has_in(c, o->scales) && fits(c, o->weights, 3, (int64_t[]){e, p->n, bytes_for(p->k, p->bits)})
	    && fits(c, o->bias, 2, (int64_t[]){e, p->n});
}

static om_status
check_moe(const om_op_context *c, struct moe *m)
{
	static const char *const names[NFC] = {"first", "second", "third"};

	if (!fits(c, ROUTER, 2, (int64_t[]){m->tokens, m->experts}) || c->in[X].shape.rank == 0
	    || (m->is_quantized && !fits(c, ROUTER_WEIGHTS, 2, (int64_t[]){m->tokens, m->experts})))
		return om_wrong(c, "the router must have a row for each token and a column for each expert");
	for (int i = 0; i < (m->has_third ? NFC : FC3); i++)
		if (!product_fits(c, m, &m->product[i], &m->operands[i]))
			return om_op_fail(c->session, OM_SHAPE, c->op, "the shapes of the operands of the %s product do not match", names[i]);
	return OM_OK;
}

static om_status
moe_infer(om_op_context *c)
{
	struct moe m;

	OM_TRY(om_infer_same(c));
	OM_TRY(read_moe(c, &m));
	if (!om_has_in(c, m.operands[FC2].weights))
		return om_op_fail(c->session, OM_INVALID, c->op, "the weights of the second product are omitted");
	for (uint32_t k = QMOE_INPUTS; k < c->op->nin; k++)
		if (om_has_in(c, k))
			return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for weights of this format");
	return check_moe(c, &m);
}

/* Tokens. */
static bool
moe_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];
	const int rank = c->in[X].shape.rank;

	s->in[X] = p;
	s->in[ROUTER] = om_part_scaled(&p, 0, om_shape_span(&c->in[X].shape, 1, rank - 1));
	if (om_has_in(c, ROUTER_WEIGHTS))
		s->in[ROUTER_WEIGHTS] = s->in[ROUTER];
	return p.axis == 0 && rank > 1;
}

static bool
moe_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return out == 0 && in == X && om_is_sole_use(c, in);
}

/* ---- The kernel. ---- */

/* Vectors of the scratch. */
struct room {
	double *x, *inner, *third, *y, *weight;  /* third: also what the second product gives */
};

static uint64_t
room_of(const struct moe *m, char *base, struct room *r)
{
	const int64_t other = m->inner > m->hidden ? m->inner : m->hidden;
	const int64_t count[] = {m->hidden, 2 * m->inner, other, m->hidden, m->experts};
	double **part[] = {&r->x, &r->inner, &r->third, &r->y, &r->weight};
	uint64_t at = 0;

	for (int k = 0; k < 5; k++) {
		if (base)
			*part[k] = (double *)(void *)(base + at);
		at = om_size_sum(at, om_piece_size((uint64_t)count[k] * sizeof(double)));
	}
	return at;
}

static uint64_t
moe_scratch(const om_op_context *c)
{
	struct room none;

	return room_of(c->state, NULL, &none);
}

static om_status
moe_prepare(om_op_context *c, void **state)
{
	struct moe *m = *state;

	OM_TRY(read_moe(c, m));
	return check_moe(c, m);
}

static unsigned
bits_at(const uint8_t *p, int64_t i, int64_t bits)
{
	const int64_t each = 8 / bits;

	return p[i / each] >> i % each * bits & ((1u << bits) - 1);
}

/* The sum of the products of `x` and an integer row; `row` counts those of all experts. */
static double
quantized_sum(const om_op_context *c, const struct product *p, const struct operands *o, int64_t e, int64_t row, const double *x)
{
	const uint8_t *w = (const uint8_t *)c->in[o->weights].data + (e * p->n + row) * bytes_for(p->k, p->bits);
	const uint8_t *z = om_has_in(c, o->zeros) ? c->in[o->zeros].data : NULL;
	const om_tensor *scales = &c->in[o->scales];
	const int64_t block = p->blocks ? p->k / p->blocks : 0;
	double sum = 0;

	for (int64_t b = 0; b < p->blocks; b++) {
		const double scale = om_get(scales->type, scales->data, (e * p->n + row) * p->blocks + b);
		double part = 0, zero = 1 << (p->bits - 1);
		if (z && p->block)
			zero = bits_at(z + (e * p->n + row) * bytes_for(p->blocks, p->bits), b, p->bits);
		else if (z)
			zero = bits_at(z + e * bytes_for(p->n, p->bits), row, p->bits);
		for (int64_t k = b * block; k < (b + 1) * block; k++)
			part += x[k] * (bits_at(w, k, p->bits) - zero);
		sum += part * scale;
	}
	return sum;
}

static double
real_sum(const om_op_context *c, const struct product *p, const struct operands *o, int64_t e, int64_t row, const double *x)
{
	const om_tensor *w = &c->in[o->weights];
	double sum = 0;

	for (int64_t k = 0; k < p->k; k++)
		sum += x[k] * om_get(w->type, w->data, (e * p->n + row) * p->k + k);
	return sum;
}

/* Product `i` of expert `e`. */
static void
multiply(const om_op_context *c, const struct moe *m, int i, int64_t e, const double *x, double *y)
{
	const struct product *p = &m->product[i];
	const struct operands *o = &m->operands[i];
	const om_tensor *bias = om_has_in(c, o->bias) ? &c->in[o->bias] : NULL;

	for (int64_t row = 0; row < p->n; row++) {
		y[row] = m->is_quantized ? quantized_sum(c, p, o, e, row, x) : real_sum(c, p, o, e, row, x);
		if (bias)
			y[row] += om_get(bias->type, bias->data, e * p->n + row);
	}
}

static double
activated(const struct moe *m, double x)
{
	switch (m->activation) {
	case RELU: return x > 0 ? x : 0;
	case GELU: return x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
	case SILU: return x / (1 + exp(-x));
	case SWIGLU: return x / (1 + exp(-m->alpha * x));
	default: return x;
	}
}

static double
least(double a, double b)
{
	return a > b ? b : a;
}

/* Activate the inner elements, and multiply them by those of the third product. */
static void
activate(const struct moe *m, const struct room *r)
{
	for (int64_t k = 0; k < m->inner; k++) {
		const double gate = r->inner[m->fusion == 1 ? 2 * k : k];
		const double other = m->fusion == 1 ? r->inner[2 * k + 1] : m->fusion == 2 ? r->inner[m->inner + k] : r->third[k];
		if (m->activation == SWIGLU)
			r->inner[k] = activated(m, least(gate, m->limit)) * (-least(-least(other, m->limit), m->limit) + m->beta);
		else
			r->inner[k] = activated(m, gate) * (m->has_third ? other : 1);
	}
}

static void
add_expert(const om_op_context *c, const struct moe *m, int64_t e, double weight, const struct room *r)
{
	multiply(c, m, FC1, e, r->x, r->inner);
	if (m->has_third)
		multiply(c, m, FC3, e, r->x, r->third);
	activate(m, r);
	multiply(c, m, FC2, e, r->inner, r->third);
	for (int64_t k = 0; k < m->hidden; k++)
		r->y[k] += weight * r->third[k];
}

/* Weights of the experts of a token; those that are not chosen have NaN. */
static void
route(const om_op_context *c, const struct moe *m, int64_t token, double *weight)
{
	const om_tensor *router = &c->in[ROUTER], *own = om_has_in(c, ROUTER_WEIGHTS) ? &c->in[ROUTER_WEIGHTS] : NULL;
	const int64_t at = token * m->experts;
	double most = -INFINITY, all = 0, sum = 0;

	for (int64_t e = 0; e < m->experts; e++) {
		const double x = om_get(router->type, router->data, at + e);
		most = x > most ? x : most;
		weight[e] = NAN;
	}
	for (int64_t e = 0; e < m->experts; e++)
		all += exp(om_get(router->type, router->data, at + e) - most);
	for (int64_t n = 0; n < m->chosen; n++) {
		int64_t best = -1;
		double high = 0;
		for (int64_t e = 0; e < m->experts; e++) {
			const double x = om_get(router->type, router->data, at + e);
			if (weight[e] != weight[e] && (best < 0 || x > high)) {
				best = e;
				high = x;
			}
		}
		weight[best] = own ? om_get(own->type, own->data, at + best) : exp(high - most) / all;
		sum += weight[best];
	}
	for (int64_t e = 0; e < m->experts; e++)
		weight[e] /= m->normalizes || (m->is_quantized && !own) ? sum : 1;
}

static om_status
moe_cpu(om_op_context *c)
{
	const struct moe *m = c->state;
	const om_tensor *x = &c->in[X];
	struct room r = {0};

	room_of(m, c->scratch, &r);
	for (int64_t t = 0; t < m->tokens; t++) {
		for (int64_t k = 0; k < m->hidden; k++) {
			r.x[k] = om_get(x->type, x->data, t * m->hidden + k);
			r.y[k] = 0;
		}
		route(c, m, t, r.weight);
		for (int64_t e = 0; e < m->experts; e++)
			if (r.weight[e] == r.weight[e])
				add_expert(c, m, e, r.weight[e], &r);
		for (int64_t k = 0; k < m->hidden; k++)
			om_put(c->out[0].type, c->out[0].data, t * m->hidden + k, r.y[k]);
	}
	return OM_OK;
}

static void
moe_cost(const om_op_context *c, om_cost *cost)
{
	struct moe m;

	if (read_moe(c, &m) != OM_OK || check_moe(c, &m) != OM_OK || m.tokens < 0 || m.inner < 0 || m.hidden < 0)
		return;
	cost->flops = 2.0 * (double)m.tokens * (double)m.chosen * (double)m.hidden
		* (double)(m.product[FC1].n + m.inner * (1 + m.has_third));
}

/* ---- The table. ---- */

#define MOE_ATTRS                                                              \
	{"activation_alpha", OM_ATTR_FLOAT, .f = 1},                           \
	{"activation_beta", OM_ATTR_FLOAT},                                    \
	{"activation_type", OM_ATTR_STRING, .s = "relu"},                      \
	{"k", OM_ATTR_INT, .i = 1},                                            \
	{"normalize_routing_weights", OM_ATTR_INT},                            \
	{"swiglu_fusion", OM_ATTR_INT},                                        \
	{"swiglu_limit", OM_ATTR_FLOAT},                                       \
	{"use_sparse_mixer", OM_ATTR_INT}

static const om_attr_spec moe_attrs[] = {MOE_ATTRS, {0}};

static const om_attr_spec qmoe_attrs[] = {
	MOE_ATTRS,
	{"accuracy_level", OM_ATTR_INT},
	{"block_size", OM_ATTR_INT},
	{"expert_weight_bits", OM_ATTR_INT, .i = 4},
	{"fc1_expert_weight_bits", OM_ATTR_INT},
	{"fc2_expert_weight_bits", OM_ATTR_INT},
	{"fc3_expert_weight_bits", OM_ATTR_INT},
	{"quant_type", OM_ATTR_STRING, .s = "int"},
	{"weights_prepacked", OM_ATTR_INT, .i = -1},
	{0}
};

#define OF_REALS (OF(FLOAT32) | OF(FLOAT16) | OF(BFLOAT16))
#define MOE(called, text, least, most, list) \
	.domain = "com.microsoft", .name = called, .brief = text, .since = 1, .min_in = least, .max_in = most, .min_out = 1, \
	.max_out = 1, .attrs = list, .infer = moe_infer, .slice = moe_slice, .inplace = moe_reuse, .cpu = moe_cpu, \
	.scratch = moe_scratch, .cost = moe_cost

const om_opdef om_ops_moe[] = {
	{MOE("MoE", "mixture of experts", 3, MOE_INPUTS, moe_attrs),
	 .input_types = {OF_REALS, LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0)}},
	{MOE("QMoE", "mixture of experts with quantized weights", 3, 21, qmoe_attrs),
	 .input_types = {OF_REALS, LIKE(0), OF(UINT8), OF_REALS, LIKE(0), OF(UINT8), LIKE(3), LIKE(0), OF(UINT8), LIKE(3), LIKE(0),
		OF(UINT8), OF(UINT8), OF(UINT8), LIKE(0)}},
	{0}
};

#define KERNEL(called) \
	{.domain = "com.microsoft", .name = called, .state_bytes = sizeof(struct moe), .prepare = moe_prepare, \
	 .workspace = moe_scratch, .run = moe_cpu}

const om_kernel om_kernels_moe[] = {
	KERNEL("MoE"),
	KERNEL("QMoE"),
	{0}
};
