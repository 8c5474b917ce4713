/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: a value whose readers are far apart is computed a second time for the late ones, so that it does not exist in
 * between: the input of a squeeze-and-excitation block, which its mean and its product read, or a long skip.
 *
 * What is found here are candidates.  The search takes those that let it get further, and the region of the late readers
 * then computes the copy in bands of its own. */
#include <config.h>

#include <string.h>

#include "ir/clone.h"
#include "ir/query.h"
#include "ir/steps.h"
#include "lower/tile/tile_internal.h"

#define NONE OM_TILE_NONE
enum {
	MOST_OPS = 96,            /* of a copy */
	MOST_VALUES = 4,          /* of the same storage that a copy computes */
	LEAST_GAP = 3,            /* positions from one reader to the next */
	SMALL = 10,               /* values of less than a tenth of the peak stay */
	NEAREST = 8,              /* gaps for which there are candidates */
};

/* What a copy is computed from: values up to this share of the copied one, in percent, and those that exist at its
 * readers anyway; below 0: from parameters alone. */
static const int shares[] = {30, 75, -1};
enum { SHARES = sizeof shares / sizeof shares[0] };

/* A storage without readers between two ops. */
struct gap {
	uint32_t root;
	uint32_t from, to;        /* positions of the op before the gap, and of the first late reader */
	uint32_t distance;        /* from the step for which it is looked for */
};

struct finder {
	om_tile_graph *g;
	om_arena *mem, *tmp;
	const struct gap *gap;
	int share;
	bool *is_copied;          /* by position */
	uint32_t ncopied;
	double flops;
};

/* ---- Gaps. ---- */

static bool
may_repeat(const om_op *op)
{
	return op->opdef && op->opdef->control == OM_PLAIN && op->nbody == 0
		&& !(op->opdef->flags & (OM_RANDOM | OM_EFFECT | OM_DATA_DEPENDENT_SHAPE | OM_NON_TENSOR));
}

/* Is the storage that of a computed value that only ops of the graph read? */
static bool
is_candidate(const om_tile_graph *g, uint32_t root)
{
	return g->root[root] == root && g->made[root] != NONE && g->used[root] != NONE && g->used[root] < g->nop
		&& g->p->values[root]->block == g->p->first && !g->p->values[root]->is_const;
}

/* By position: whether the op reads the storage; false if a body does. */
static bool
find_readers(const om_tile_graph *g, uint32_t root, bool *reads)
{
	for (uint32_t k = 0; k < g->p->nvalue; k++) {
		if (g->root[k] != root)
			continue;
		for (const om_use *u = g->p->values[k]->first_use; u; u = u->next) {
			if (!u->op || u->op->block != g->p->first)
				return false;
			if (g->position[u->op->id] != NONE)
				reads[g->position[u->op->id]] = true;
		}
	}
	return true;
}

/* Gaps of the storage that end after `from`. */
static void
add_gaps(const om_tile_graph *g, uint32_t root, uint32_t from, uint32_t high, om_arena *mem, struct gap **list, size_t *n,
	size_t *cap)
{
	bool *reads = OM_NEWN(mem, bool, (size_t)g->nop + 1);
	uint32_t last = g->made[root];

	if (!find_readers(g, root, reads))
		return;
	for (uint32_t i = last + 1; i <= g->used[root]; i++) {
		if (!reads[i])
			continue;
		if (i - last >= LEAST_GAP && i > from)
			OM_PUSH(mem, *list, *n, *cap, ((struct gap){root, last, i, last > high ? last - high : high - last}));
		last = i;
	}
}

/* The nearest come first; of equal ones, the largest values. */
static bool
precedes(const om_tile_graph *g, const struct gap *a, const struct gap *b)
{
	const uint64_t *bytes = g->request->bytes;

	return a->distance != b->distance ? a->distance < b->distance : bytes[a->root] > bytes[b->root];
}

/* ---- What runs again. ---- */

/* Is the value there for the copy? */
static bool
is_there(const struct finder *f, const om_value *v)
{
	const uint64_t *bytes = f->g->request->bytes;
	const uint32_t root = f->g->root[v->id];

	if (v->is_const || f->g->made[root] == NONE || bytes[root] == 0)
		return true;
	if (f->share < 0 || root == f->gap->root)
		return false;
	return f->g->used[root] >= f->gap->to || bytes[root] * 100 <= bytes[f->gap->root] * (uint64_t)f->share;
}

/* Mark the op and all that leads to it; false if one of them must not run again. */
static bool
mark(struct finder *f, const om_op *op)
{
	const uint32_t at = f->g->position[op->id];

	if (at == NONE || !may_repeat(op))
		return false;
	if (f->is_copied[at])
		return true;
	if (++f->ncopied > MOST_OPS)
		return false;
	f->is_copied[at] = true;
	f->flops += om_op_cost(op).flops;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && !is_there(f, op->in[k]) && !mark(f, op->in[k]->def))
			return false;
	return true;
}

/* The values of the storage that ops from the end of the gap on read. */
static bool
mark_values(struct finder *f, om_tile_copy *c)
{
	const om_tile_graph *g = f->g;

	c->value = OM_NEWN(f->mem, uint32_t, MOST_VALUES);
	for (uint32_t k = 0; k < g->p->nvalue; k++) {
		const om_value *v = g->p->values[k];
		if (g->root[k] != f->gap->root || !v->def || g->position[v->def->id] >= f->gap->to
		    || !om_tile_is_read_after(g, v, f->gap->to))
			continue;
		if (c->nvalue == MOST_VALUES || !mark(f, v->def))
			return false;
		c->value[c->nvalue++] = k;
	}
	return c->nvalue > 0;
}

static bool
copy_of_gap(struct finder *f, int share, om_tile_copy *c)
{
	const om_tile_graph *g = f->g;

	f->share = share;
	f->is_copied = OM_NEWN(f->tmp, bool, g->nop);
	f->ncopied = 0;
	f->flops = 0;

	*c = (om_tile_copy){.reader = g->op[f->gap->to]->id};
	if (!mark_values(f, c))
		return false;
	c->op = OM_NEWN(f->mem, uint32_t, f->ncopied);
	for (uint32_t i = 0; i < g->nop; i++)
		if (f->is_copied[i])
			c->op[c->nop++] = g->op[i]->id;
	c->flops = f->flops;
	return true;
}

static bool
is_same(const om_tile_copy *a, const om_tile_copy *b)
{
	return a->reader == b->reader && a->nop == b->nop && a->nvalue == b->nvalue && a->value[0] == b->value[0]
		&& memcmp(a->op, b->op, a->nop * sizeof *a->op) == 0;
}

static void
add_copies(struct finder *f, double most_flops, om_tile_copy **list, size_t *n, size_t *cap)
{
	const size_t had = *n;

	for (int k = 0; k < SHARES; k++) {
		om_tile_copy c;
		bool is_new = copy_of_gap(f, shares[k], &c) && c.flops <= most_flops;
		for (size_t i = had; i < *n && is_new; i++)
			is_new = !is_same(&(*list)[i], &c);
		if (is_new)
			OM_PUSH(f->mem, *list, *n, *cap, c);
	}
}

om_tile_copy *
om_tile_copies(om_tile_graph *g, uint32_t from, uint32_t high, uint64_t most, double most_flops, om_arena *mem, size_t *n)
{
	struct finder f = {.g = g, .mem = mem, .tmp = om_arena_new()};
	om_tile_copy *list = NULL;
	struct gap *gap = NULL;
	size_t ngap = 0, capgap = 0, cap = 0;

	*n = 0;
	for (uint32_t v = 0; v < g->p->nvalue; v++)
		if (is_candidate(g, v) && g->request->bytes[v] >= most / SMALL)
			add_gaps(g, v, from, high, f.tmp, &gap, &ngap, &capgap);
	for (size_t k = 0; k < ngap && k < NEAREST; k++) {
		size_t first = k;
		for (size_t i = k + 1; i < ngap; i++)
			if (precedes(g, &gap[i], &gap[first]))
				first = i;
		const struct gap nearest = gap[first];
		gap[first] = gap[k];
		gap[k] = nearest;
		f.gap = &gap[k];
		add_copies(&f, most_flops, &list, n, &cap);
	}
	om_arena_free(f.tmp);
	return list;
}

/* ---- Changing the program. ---- */

/* Ops from `reader` on read the copy. */
static void
read_copy(const om_prog *p, const om_op *reader, om_value *v, om_value *copy)
{
	for (om_op *op = (om_op *)reader; op; op = op->next)
		for (uint32_t k = 0; op->block == p->first && k < op->nin; k++)
			if (op->in[k] == v)
				om_op_set_in(op, k, copy);
}

/* The sizes of the values of the program, of which the first `n` are known; copies are as large as what they copy. */
static void
extend_sizes(const om_clone *clone, uint32_t n, om_arena *mem, om_tile_request *r)
{
	uint64_t *bytes = OM_NEWN(mem, uint64_t, clone->p->nvalue);

	memcpy(bytes, r->bytes, n * sizeof *bytes);
	for (uint32_t k = 0; k < n; k++)
		if (clone->value[k] && clone->value[k]->id >= n)
			bytes[clone->value[k]->id] = r->bytes[k];
	r->bytes = bytes;
}

static om_status
copy_op(om_clone *clone, const om_op *op, om_op *reader)
{
	om_prog *p = clone->p;
	om_op *copy;

	for (uint32_t k = 0; k < op->nout; k++) {
		const om_value *v = op->out[k];
		if (!v)
			continue;
		om_value *made = om_value_fresh(p, p->first, om_printf(clone->mem, "%s.again", v->name));
		made->type = v->type;
		made->shape = v->shape;
		made->is_declared = v->is_declared;
		clone->value[v->id] = made;
	}
	OM_TRY(om_op_clone(clone, op, p->first, reader, &copy));
	copy->name = "";
	copy->phase = reader->phase;
	copy->rematerialized_from = om_strdup(p->mem, om_op_label(op));
	return OM_OK;
}

/* The ops of the graph, by id. */
static om_op **
ops_by_id(const om_prog *p, om_arena *mem)
{
	om_op **of = OM_NEWN(mem, om_op *, p->nop);

	for (om_op *op = p->first->first; op; op = op->next)
		of[op->id] = op;
	return of;
}

om_status
om_tile_copy_make(om_session *s, om_prog *p, const om_tile_copy *c, om_arena *mem, om_tile_request *r)
{
	om_clone clone = om_clone_new(s, p, p, mem, "");
	om_op **of = ops_by_id(p, mem), *reader = of[c->reader];
	const uint32_t n = p->nvalue;

	for (uint32_t i = 0; i < c->nop; i++)
		OM_TRY(copy_op(&clone, of[c->op[i]], reader));
	for (uint32_t k = 0; k < c->nvalue; k++)
		read_copy(p, reader, p->values[c->value[k]], clone.value[c->value[k]]);
	extend_sizes(&clone, n, mem, r);
	return OM_OK;
}

om_status
om_tile_copy_all(om_session *s, om_prog *p, const om_tile_plan *plan, om_arena *mem, om_tile_request *r)
{
	for (uint32_t k = 0; k < plan->ncopy; k++)
		OM_TRY(om_tile_copy_make(s, p, &plan->copy[k], mem, r));
	return OM_OK;
}
