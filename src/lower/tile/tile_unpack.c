/* SPDX-License-Identifier: Apache-2.0 */
/* Packed products: a product whose columns are only cut into blocks, such as queries, keys and values, becomes one
 * product for each block, so that one of them can run in bands while another is whole.
 *
 * From the ops that cut, the parts are followed upward, through ops with one input that is computed and one reader, to
 * an op that reads that input as a whole.  Each block is computed from there by parts of these ops. */
#include <config.h>

#include <stdlib.h>

#include "ir/query.h"
#include "lower/tile/tile_internal.h"
#include "opdef/op_context.h"

enum { LONGEST_CHAIN = 12, MOST_BLOCKS = 64 };

/* A block of a packed value. */
struct block {
	om_value *v;              /* the result of the op that cuts */
	om_op *cut;
	om_part part;
	bool is_gathered;         /* the axis of the part is not one of the result */
};

struct unpack {
	om_session *session;
	om_prog *p;
	om_arena *mem;
	struct block block[MOST_BLOCKS];
	uint32_t nblock;
	om_op *chain[LONGEST_CHAIN]; /* from the op that makes the packed value upward */
	om_part part[LONGEST_CHAIN]; /* of their outputs, for one block */
	uint32_t nchain;
};

/* ---- Ops that cut. ---- */

static bool
list_of(const om_value *v, int64_t *out)
{
	if (!v || !om_tile_is_const(v) || !v->data || !v->data->data || v->data->type != OM_INT64
	    || om_shape_count(&v->data->shape) != 1)
		return false;
	*out = *(const int64_t *)v->data->data;
	return true;
}

static bool
add_block(struct unpack *u, om_op *cut, om_value *v, om_part part, bool is_gathered)
{
	if (u->nblock == MOST_BLOCKS || !v || part.lo < 0 || part.lo >= part.hi)
		return false;
	u->block[u->nblock++] = (struct block){v, cut, part, is_gathered};
	return true;
}

static bool
add_split(struct unpack *u, om_op *op)
{
	int64_t at = 0;
	int axis = (int)om_attr_int(op, "axis");

	axis += axis < 0 ? op->in[0]->shape.rank : 0;
	for (uint32_t k = 0; k < op->nout; k++) {
		const int64_t n = op->out[k] && om_shape_is_known(&op->out[k]->shape) ? op->out[k]->shape.dim[axis] : 0;
		if (!add_block(u, op, op->out[k], (om_part){axis, at, at + n}, false))
			return false;
		at += n;
	}
	return true;
}

static bool
add_slice(struct unpack *u, om_op *op)
{
	int64_t lo, hi, axis, step = 1;

	if (op->nin < 4 || !list_of(op->in[1], &lo) || !list_of(op->in[2], &hi) || !list_of(op->in[3], &axis)
	    || (om_op_input(op, 4) && !list_of(op->in[4], &step)) || step != 1)
		return false;
	const om_shape *s = &op->in[0]->shape;
	axis += axis < 0 ? s->rank : 0;
	if (axis < 0 || axis >= s->rank)
		return false;
	lo += lo < 0 ? s->dim[axis] : 0;
	hi += hi < 0 ? s->dim[axis] : 0;
	hi = hi > s->dim[axis] ? s->dim[axis] : hi;
	return add_block(u, op, op->out[0], (om_part){(int)axis, lo, hi}, false);
}

static bool
add_gather(struct unpack *u, om_op *op)
{
	int64_t at;
	int axis = (int)om_attr_int(op, "axis");

	if (!list_of(op->in[1], &at) || op->in[1]->shape.rank != 0)
		return false;
	axis += axis < 0 ? op->in[0]->shape.rank : 0;
	at += at < 0 ? op->in[0]->shape.dim[axis] : 0;
	return add_block(u, op, op->out[0], (om_part){axis, at, at + 1}, true);
}

static bool
add_cut(struct unpack *u, om_op *op, const om_value *packed)
{
	static const struct {
		const char *type;
		bool (*add)(struct unpack *u, om_op *op);
	} cuts[] = {{"Split", add_split}, {"Slice", add_slice}, {"Gather", add_gather}};

	if (*op->domain || op->in[0] != packed || op->nbody)
		return false;
	for (size_t k = 0; k < sizeof cuts / sizeof cuts[0]; k++)
		if (strcmp(op->type, cuts[k].type) == 0)
			return cuts[k].add(u, op);
	return false;
}

/* Is the value only cut, into blocks that do not overlap? */
static bool
find_blocks(struct unpack *u, const om_value *packed)
{
	int64_t sum = 0;

	u->nblock = 0;
	if (packed->nuse == 0 || !om_shape_is_known(&packed->shape))
		return false;
	for (const om_use *use = packed->first_use; use; use = use->next)
		if (!use->op || use->op->block != u->p->first || use->index != 0 || !add_cut(u, use->op, packed))
			return false;
	for (uint32_t k = 0; k < u->nblock; k++) {
		if (u->block[k].part.axis != u->block[0].part.axis)
			return false;
		sum += u->block[k].part.hi - u->block[k].part.lo;
		for (uint32_t i = 0; i < k; i++)
			if (u->block[i].part.lo < u->block[k].part.hi && u->block[k].part.lo < u->block[i].part.hi)
				return false;
	}
	return u->nblock > 1 && sum <= packed->shape.dim[u->block[0].part.axis];
}

/* ---- The ops above. ---- */

/* The only input that is no constant; NULL: there are others. */
static om_value *
computed_input(const om_op *op, uint32_t *k)
{
	om_value *v = NULL;

	for (uint32_t i = 0; i < op->nin; i++) {
		if (!op->in[i] || om_tile_is_const(op->in[i]))
			continue;
		if (v)
			return NULL;
		v = op->in[i];
		*k = i;
	}
	return v;
}

/* Can constants be cut as the slice requires? */
static bool
has_constants(const om_op *op, const om_slice *s)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && om_tile_is_const(op->in[k]) && s->in[k].axis != OM_WHOLE && !(op->in[k]->data && op->in[k]->data->data))
			return false;
	return true;
}

/* Follow a part upward; true if an op reads its input as a whole. */
static bool
find_chain(struct unpack *u, const om_value *packed, om_part part)
{
	const om_value *v = packed;

	for (u->nchain = 0; u->nchain < LONGEST_CHAIN;) {
		om_op *op = v->def;
		uint32_t k = 0;
		om_slice s = {0};
		if (!op || op->block != u->p->first || op->is_folded || op->nout != 1 || (v != packed && v->nuse != 1))
			return false;
		om_value *in = computed_input(op, &k);
		if (!in || !om_op_slice(u->mem, op, 0, part, &s) || s.before || s.after || !has_constants(op, &s))
			return false;
		u->chain[u->nchain] = op;
		u->part[u->nchain++] = part;
		if (s.in[k].axis == OM_WHOLE)
			return true;
		part = s.in[k];
		v = in;
	}
	return false;
}

/* ---- Building. ---- */

static om_status
build_part(struct unpack *u, om_op *op, om_part part, om_value *input, om_op *at, om_value **made)
{
	om_value **in = OM_NEWN(u->mem, om_value *, op->nin);
	om_slice s = {0};
	uint32_t data = 0;

	computed_input(op, &data);
	if (!om_op_slice(u->mem, op, 0, part, &s))
		return om_op_fail(u->session, OM_IR, op, "a part of it is not possible any more");
	for (uint32_t k = 0; k < op->nin; k++) {
		in[k] = k == data ? input : op->in[k];
		if (k != data && in[k] && (s.in[k].axis == OM_WHOLE || s.in[k].lo < s.in[k].hi))
			OM_TRY(om_slice_value(u->session, u->p, in[k], s.in[k], at, &in[k]));
	}
	return om_slice_op(u->session, u->p, op, 0, part, in, at, made);
}

/* The element of an axis of length 1: the op that gathered it gathers element 0. */
static om_status
gather_first(struct unpack *u, om_op *cut, om_value *from)
{
	static const int64_t zero = 0;
	const om_tensor t = {.type = OM_INT64, .shape = om_shape_of(0, NULL), .data = om_memdup(u->p->mem, &zero, sizeof zero)};
	om_value *index = om_value_fresh(u->p, u->p->first, cut->in[1]->name);

	index->type.elem = OM_INT64;
	index->shape = t.shape;
	index->data = om_memdup(u->p->mem, &t, sizeof t);
	index->is_const = index->is_declared = true;
	om_op_set_in(cut, 0, from);
	om_op_set_in(cut, 1, index);
	return om_op_infer(u->session, u->p, cut);
}

static om_status
build_block(struct unpack *u, const om_value *packed, const struct block *b)
{
	om_value *v;
	uint32_t k = 0;

	if (!find_chain(u, packed, b->part))
		return om_fail(u->session, OM_IR, "%s has no parts any more", packed->name);
	v = computed_input(u->chain[u->nchain - 1], &k);
	for (k = u->nchain; k-- > 0;)
		OM_TRY(build_part(u, u->chain[k], u->part[k], v, b->cut, &v));
	if (b->is_gathered)
		return gather_first(u, b->cut, v);
	for (uint32_t i = 0; i < b->cut->nout; i++)
		if (b->cut->out[i] == b->v)
			b->cut->out[i] = NULL;
	b->v->def = NULL;
	om_tile_take_name(b->v, v);
	return OM_OK;
}

static void
remove_unused(struct unpack *u, om_value *packed)
{
	for (uint32_t k = 0; k < u->nblock; k++)
		if (!u->block[k].is_gathered && u->block[k].cut->block)
			om_op_remove(u->block[k].cut);
	for (om_value *v = packed; v && v->nuse == 0 && v->def;) {
		om_op *op = v->def;
		uint32_t k = 0;
		om_value *in = computed_input(op, &k);
		om_op_remove(op);
		v = in;
	}
}

static bool
is_packed(struct unpack *u, const om_value *v)
{
	if (!v->def || v->block != u->p->first || v->is_const || !find_blocks(u, v))
		return false;
	for (uint32_t k = 0; k < u->nblock; k++)
		if (!find_chain(u, v, u->block[k].part))
			return false;
	return true;
}

om_status
om_tile_unpack(om_session *s, om_prog *p, uint32_t *count)
{
	struct unpack u = {.session = s, .p = p, .mem = om_arena_new()};
	const uint32_t n = p->nvalue;
	om_status st = OM_OK;

	*count = 0;
	for (uint32_t k = 0; k < n && st == OM_OK; k++) {
		om_value *v = p->values[k];
		if (!is_packed(&u, v))
			continue;
		for (uint32_t b = 0; b < u.nblock && st == OM_OK; b++)
			st = build_block(&u, v, &u.block[b]);
		if (st == OM_OK)
			remove_unused(&u, v);
		*count += st == OM_OK;
	}
	om_arena_free(u.mem);
	return st;
}
