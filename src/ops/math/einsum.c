/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: sums of products given by an equation of indices. */
#include <config.h>

#include "opdef/geometry/einsum.h"
#include "base/shape.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "ops/math/einsum_product.h"
#include "opdef/numbers.h"

static const om_attr_spec einsum_attrs[] = {
	{"equation", OM_ATTR_STRING, .required = true},
	{0}
};

static om_status
einsum_infer(om_op_context *c)
{
	struct om_einsum e;

	c->out[0].type = c->in[0].type;
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (c->in[k].shape.rank < 0)
			return OM_OK;
	OM_TRY(om_einsum_read(c, &e));
	c->out[0].shape = (om_shape){.rank = e.rank[e.nin]};
	for (int d = 0; d < e.rank[e.nin]; d++)
		om_copy_dim(&c->out[0].shape, d, &e.size[e.term[e.nin][d]], 0);
	return OM_OK;
}

struct loops {
	int n, nout;                  /* loops; those over the output are first */
	int64_t size[OM_EINSUM_AXES];
	int64_t step[OM_EINSUM_TERMS][OM_EINSUM_AXES];
	bool is_empty;                /* a summed dim is 0 */
};

static void
make_loops(const om_op_context *c, const struct om_einsum *e, struct loops *l)
{
	int place[OM_EINSUM_AXES];

	*l = (struct loops){0};
	for (int k = 0; k < OM_EINSUM_AXES; k++)
		place[k] = -1;
	for (int d = 0; d < e->rank[e->nin]; d++)
		place[e->term[e->nin][d]] = l->n++;
	l->nout = l->n;
	for (int k = 0; k < OM_EINSUM_AXES; k++)
		if (e->size[k].rank == 1 && place[k] < 0)
			place[k] = l->n++;
	for (int k = 0; k < OM_EINSUM_AXES; k++)
		if (place[k] >= 0)
			l->size[place[k]] = e->size[k].dim[0];
	for (uint32_t k = 0; k < e->nin; k++) {
		int64_t step = 1;
		for (int d = e->rank[k] - 1; d >= 0; d--) {
			const int64_t n = c->in[k].shape.dim[d];
			l->step[k][place[e->term[k][d]]] += n == 1 ? 0 : step;
			step *= n;
		}
	}
}

/* Increment the loops [from, to) and the offsets; false at the end. */
static bool
advance(const struct loops *l, uint32_t nin, int from, int to, int64_t *index, int64_t *at)
{
	for (int d = to - 1; d >= from; d--) {
		for (uint32_t k = 0; k < nin; k++)
			at[k] += l->step[k][d];
		if (++index[d] < l->size[d])
			return true;
		for (uint32_t k = 0; k < nin; k++)
			at[k] -= l->step[k][d] * l->size[d];
		index[d] = 0;
	}
	return false;
}

/* Integer sums of products wrap around: their low bits do not depend on signedness. */
static uint64_t
integer_at(const om_tensor *t, int64_t i)
{
	switch (om_dtype_bits(t->type)) {
	case 8: return ((const uint8_t *)t->data)[i];
	case 16: return ((const uint16_t *)t->data)[i];
	case 32: return ((const uint32_t *)t->data)[i];
	default: return ((const uint64_t *)t->data)[i];
	}
}

static void
put_integer(const om_tensor *t, int64_t i, uint64_t v)
{
	switch (om_dtype_bits(t->type)) {
	case 8: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
	case 16: ((uint16_t *)t->data)[i] = (uint16_t)v; break;
	case 32: ((uint32_t *)t->data)[i] = (uint32_t)v; break;
	default: ((uint64_t *)t->data)[i] = v;
	}
}

static double
float_at(const om_tensor *t, int64_t i)
{
	return om_get(t->type, t->data, i);
}

static void
put_float(const om_tensor *t, int64_t i, double v)
{
	om_put(t->type, t->data, i, v);
}

/* The same sums for integers and for floating point. */
#define SUMS(name, type, get, put)                                                             \
	static void                                                                            \
	name(om_op_context *c, const struct loops *l, bool is_empty)                                 \
	{                                                                                      \
		int64_t index[OM_EINSUM_AXES] = {0}, at[OM_EINSUM_TERMS] = {0};                \
		const uint32_t nin = c->op->nin;                                               \
		for (int64_t i = 0, n = om_shape_count(&c->out[0].shape); i < n; i++) {        \
			type sum = 0;                                                          \
			do {                                                                   \
				type x = is_empty ? 0 : 1;                                     \
				for (uint32_t k = 0; k < nin && !is_empty; k++)                \
					x *= get(&c->in[k], at[k]);                            \
				sum += x;                                                      \
			} while (!is_empty && advance(l, nin, l->nout, l->n, index, at));      \
			put(&c->out[0], i, sum);                                               \
			advance(l, nin, 0, l->nout, index, at);                                \
		}                                                                              \
	}

SUMS(sum_integers, uint64_t, integer_at, put_integer)
SUMS(sum_floats, double, float_at, put_float)

static om_status
einsum_prepare(om_op_context *c, void **state)
{
	const om_dtype t = c->out[0].type;
	struct loops *l = *state;
	struct om_einsum e;

	for (uint32_t k = 0; k < c->op->nin; k++)
		if (c->in[k].type != t)
			return om_op_fail(c->session, OM_SHAPE, c->op, "cannot multiply %s by %s", om_dtype_text(t),
				om_dtype_text(c->in[k].type));
	if (!(om_dtype_is_integer(t) && om_dtype_bits(t) >= 8) && t != OM_FLOAT32 && t != OM_FLOAT64 && !om_is_half(t))
		return om_no_kernel(c, t);
	OM_TRY(om_einsum_read(c, &e));
	make_loops(c, &e, l);
	for (int d = l->nout; d < l->n; d++)
		l->is_empty |= l->size[d] == 0;
	return OM_OK;
}

static om_status
einsum_cpu(om_op_context *c)
{
	const struct loops *l = c->state;

	if (om_dtype_is_integer(c->out[0].type))
		sum_integers(c, l, l->is_empty);
	else
		sum_floats(c, l, l->is_empty);
	return OM_OK;
}

/* ---- By products of matrices. ---- */

static om_einsum_products *
products_of(const om_op_context *c)
{
	om_op_context quiet = *c;
	struct om_einsum e;

	for (uint32_t k = 0; k < c->op->nin; k++)
		if (c->in[k].type != OM_FLOAT32)
			return NULL;
	quiet.session = om_session_new();
	const bool is_read = om_einsum_read(&quiet, &e) == OM_OK;
	om_session_free(quiet.session);
	return is_read ? om_einsum_products_new(c, &e) : NULL;
}

static bool
products_suit(const om_op_context *c)
{
	return products_of(c) != NULL;
}

static om_status
products_prepare(om_op_context *c, void **state)
{
	*state = products_of(c);
	return OM_OK;
}

static uint64_t
products_workspace(const om_op_context *c)
{
	return om_einsum_products_workspace(c->state, c->workers);
}

static om_status
products_run(om_op_context *c)
{
	om_einsum_products_run(c->state, c);
	return OM_OK;
}

static void
einsum_cost(const om_op_context *c, om_cost *cost)
{
	om_op_context quiet = *c;
	struct om_einsum e;
	struct loops l;

	quiet.session = om_session_new();
	if (om_einsum_read(&quiet, &e) == OM_OK) {
		make_loops(c, &e, &l);
		cost->flops = c->op->nin;
		for (int d = 0; d < l.n; d++)
			cost->flops *= (double)l.size[d];
	}
	om_session_free(quiet.session);
}

const om_opdef om_ops_einsum[] = {
	{.name = "Einsum", .brief = "sum of products over the indices of an equation",
	 .since = 12, .min_in = 1, .max_in = OM_VARIADIC, .min_out = 1, .max_out = 1,
	 .attrs = einsum_attrs, .infer = einsum_infer, .slice = om_slice_einsum, .partial = om_partial_einsum, .cpu = einsum_cpu, .cost = einsum_cost,
	 .input_types = {OF_NUMBERS}},
	{0}
};

const om_kernel om_kernels_einsum[] = {
	{.name = "Einsum", .state_bytes = sizeof(struct loops), .prepare = einsum_prepare, .run = einsum_cpu},
	{.name = "Einsum", .supports = products_suit, .is_fast = true, .prepare = products_prepare, .workspace = products_workspace,
	 .run = products_run},
	{0}
};
