/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of loop-carried values and of branch results, so that neither is copied.
 *
 * A carried value has four names: the initial value, the parameter, the result of the body and the
 * output of the loop.  In iteration i + 1 the parameter is the result of iteration i.  So nothing is
 * copied if the parameter of each iteration is stored where the result of the previous iteration was
 * written:
 *
 *	x is stored at X(i), y at Y(i) = X(i + 1)
 *
 * Parameters that a body passes on form chains: y is computed, the parameter x1 takes its value, x2
 * the value of x1, ... xm.  If y is computed after the last use of xm in an iteration, or over it, it
 * may be stored there: then the chain rotates through m regions, else through m + 1:
 *
 *	xj is stored at region[(j - i) mod p] in iteration i, y at region[-i mod p]
 *
 * With one region there is no rotation: all four names have one address.  Cyclic chains (permutations)
 * compute nothing: the parameters rotate through the storage of the initial values, and a value that
 * only passes through stays at its address.  (After NNC, which unrolls loops for this and does not
 * handle permutations.)
 *
 * The initial value of xj is stored in region[j] if it has no later use. Otherwise it is read in
 * place: xj has prologue addresses in the first iterations.
 *
 * A parameter of a loop around that the loop reads last is overwritten in turn: the loops share its storage.  Then
 * the parameter is in no initial value itself, which is copied when the outer loop begins.
 *
 * Chains that exceed the cap on periods are broken: the executor copies at the break.  It also copies
 * wherever addresses do not agree; the copies are counted.  So is a chain with which all rotations of the loop
 * would repeat so late that checking each iteration until then took too long.
 *
 * Bodies are processed before their enclosing blocks, so that a chain of an outer loop sees the
 * decisions for inner ones.  Each loop is visited once.
 */
#include <config.h>

#include "ir/live_interval.h"
#include "ir/query.h"
#include "alloc/alias_sets.h"
#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "base/sizes.h"
#include "opdef/op_context.h"
#include "onnxmem/plan.h"

#define NONE UINT32_MAX

/* How the result of a carried value is produced. */
typedef enum kind {
	COPIED,      /* by the executor, at the end of each iteration */
	COMPUTED,    /* in the body, with storage of its own */
	PASSED,      /* is another parameter */
	AROUND,      /* is a value defined outside the body */
} kind;

struct carried {
	om_value *init, *x, *y, *out;    /* out NULL: the output is left out */
	kind kind;
	om_value *root;      /* COMPUTED: the owner of its storage; AROUND: the value */
	uint64_t offset;     /* AROUND: bytes into it */
	uint32_t next;       /* the carried value that takes over this parameter, or NONE */
	bool is_planned;     /* has a size that is known before the run and equals that of its initial
			        value */
	bool is_done;
};

struct loop {
	om_op *op;
	om_block *body;
	int64_t trip_count;      /* -1: not known */
	int64_t usual_count;     /* the same, of the largest size of a range */
	uint32_t n;
	struct carried *c;
	uint32_t nslice;     /* scan slices: the last parameters */
	uint32_t result;     /* index of the first carried result */
	uint64_t work;       /* steps of the body that a reader of the plan checks in one iteration */
	uint32_t height;     /* loops in its body that enclose one another, at most */
	uint64_t nest;       /* of all loops in the body: how often a reader checks the innermost body in one iteration */
	uint64_t common;     /* iterations after which all rotations are as they were */
};

/* From a value on, sources up to `top` are known to be as requested. */
struct chain {
	const om_value *top;
	uint32_t changes;    /* as there were then; NULL in `top`: nothing is known */
};

struct loops {
	const om_prog *p;
	om_assignment *a;
	om_arena *mem, *tmp;     /* of the assignment; of the pass */
	om_alias_sets *g;
	om_loop_counts count;
	uint64_t cap;
	uint32_t *last;      /* by value id: for parameters, the last step in an iteration that reads them */
	uint32_t *kept;      /* by value id: the last step until which a decision made here keeps its bytes intact */
	bool *is_result;     /* by value id: is a result of its block */
	bool *is_overwritten; /* by value id: a loop inside overwrites the parameter, so it is in no initial value */
	bool *is_taken;      /* by value id: the address of its storage is already decided */
	struct loop **loop;  /* by op id */
	struct chain *free;  /* by value id: of its sources, those that an output may take over */
	uint32_t changes;    /* of storage that is shared already: what `free` says is no longer known */
	const om_op **join;  /* ops whose inputs may be sub-buffers of the output */
	size_t njoin, capjoin;
};

static bool
is_here(const om_block *body, const om_value *v)
{
	return om_block_inside(v->block, body);
}

/* ---- Classification. ---- */

static om_steps
steps_of(const struct loops *w, const om_op *op)
{
	return w->a->schedule->of_op[op->id];
}

static om_steps
steps_of_block(const struct loops *w, const om_block *b)
{
	return w->a->schedule->of_block[b->id];
}

/* See om_alias_sets_extend(). */
static bool
extend(struct loops *w, om_value *v, uint32_t first, uint32_t last, bool always)
{
	return om_alias_sets_extend(w->g, v, first, last, always, w->mem);
}

static om_store
store_of(const struct loops *w, const om_value *v)
{
	return w->a->backing[v->id].store;
}

static om_value *
source_of(const struct loops *w, const om_value *v)
{
	return w->a->backing[v->id].source;
}

static void
use(struct loops *w, const om_value *v, const om_block *b, uint32_t step)
{
	const om_op *holder;

	if (!v || v->is_const || v->def)
		return;
	holder = v->block == b ? NULL : om_block_enclosing_op(v->block, b);
	step = holder ? steps_of(w, holder).last : step;
	if (step > w->last[v->id])
		w->last[v->id] = step;
}

/* May inputs of the op be stored in its output? */
static bool
may_join(const struct loops *w, const om_op *op)
{
	return op->opdef && (op->opdef->subbuffer || op->opdef->view) && op->nout && op->out[0]
	    && store_of(w, op->out[0]) != OM_VIEW;
}

/* Bodies may read the inputs of their op until the op ends. */
static void
find_uses(struct loops *w, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		if (op->is_folded)
			continue;
		if (may_join(w, op))
			OM_PUSH(w->tmp, w->join, w->njoin, w->capjoin, op);
		for (uint32_t k = 0; k < op->nin; k++)
			use(w, op->in[k], b, steps_of(w, op).last);
		for (uint32_t k = 0; k < op->nbody; k++)
			find_uses(w, op->body[k]);
	}
	for (uint32_t k = 0; k < b->nresult; k++) {
		use(w, b->result[k], b, steps_of_block(w, b).last);
		if (b->result[k]->block == b)
			w->is_result[b->result[k]->id] = true;
	}
}

/* Does the op find `v`, or a view of it, at its final offset in the output? */
static bool
finds(const struct loops *w, const om_op *op, const om_value *v)
{
	const om_backing *b = w->a->backing;

	for (uint32_t i = 0; i < op->nin; i++)
		for (const om_value *in = op->in[i]; in; in = b[in->id].store == OM_VIEW ? b[in->id].source : NULL)
			if (in == v)
				return true;
	return false;
}

/* Is `v` a view through which an op finds an input at its final offset in the output?  If it were a
 * copy, the op would overwrite the source of the view.  Or is it a part of the outputs of several ops, whose other
 * bytes may be shared because they are equal?  If it were elsewhere, each of the ops would write them. */
static bool
is_joined(const struct loops *w, const om_value *v)
{
	const om_store store = w->a->backing[v->id].store;
	const om_value *whole = om_storage(w->a, v, NULL);
	uint32_t n = 0;

	if (store != OM_VIEW && store != OM_SUBBUFFER)
		return false;
	for (size_t k = 0; k < w->njoin; k++)
		n += om_storage(w->a, w->join[k]->out[0], NULL) == whole && finds(w, w->join[k], v);
	return n > (store == OM_SUBBUFFER);
}

/* Give `v` its own storage again. */
static bool
detach(struct loops *w, om_value *v)
{
	if (!v->def || v->is_const || store_of(w, v) == OM_OWN || w->is_taken[v->id] || is_joined(w, v))
		return false;
	om_assignment_back(w->a, v, OM_OWN, NULL, 0);
	w->count.unmerged++;
	return true;
}

/* The value that holds the bytes of `v`, followed only within the body. */
static om_value *
root_in(const struct loops *w, const om_block *body, om_value *v, uint64_t *offset)
{
	*offset = 0;
	while (source_of(w, v) && is_here(body, v)) {
		*offset += w->a->backing[v->id].offset;
		v = source_of(w, v);
	}
	return v;
}

static uint32_t
carried_param(const struct loop *l, const om_value *v)
{
	for (uint32_t k = 0; k < l->n; k++)
		if (l->c[k].x == v)
			return k;
	return NONE;
}

/* From now on the address of `v` is determined by its storage alone. */
static void
take(struct loops *w, const om_block *body, const om_value *v)
{
	for (; v && v->def && is_here(body, v); v = source_of(w, v))
		w->is_taken[v->id] = true;
}

static kind
classify(struct loops *w, struct loop *l, struct carried *c)
{
	om_value *root = root_in(w, l->body, c->y, &c->offset);
	const uint32_t from = carried_param(l, root);
	const bool whole = c->offset == 0 && om_value_bytes(root) == om_value_bytes(c->x);

	c->root = root;
	if (w->is_taken[c->y->id])
		return COPIED;
	if (from != NONE && whole && l->c[from].next == NONE && l->c[from].is_planned) {
		l->c[from].next = (uint32_t)(c - l->c);
		take(w, l->body, c->y);
		return PASSED;
	}
	if (!is_here(l->body, root) || root->is_const) {
		if (w->a->facts->is_unplanned[root->id])
			return COPIED;
		take(w, l->body, c->y);
		return AROUND;
	}
	if (!root->def || !whole || w->is_taken[root->id]) {
		if (!detach(w, c->y))
			return COPIED;
		c->root = c->y;
	}
	take(w, l->body, c->y);
	return COMPUTED;
}

static bool
is_planned(const struct loops *w, const om_value *v)
{
	return v->type.kind == OM_TENSOR && !w->a->facts->is_unplanned[v->id] && om_value_bytes(v);
}

/* A plan for a range also serves sizes with other trip counts: only a count that the model has as a number is that of
 * all sizes. */
static bool
is_same_for_all_sizes(const struct loops *w, const om_op *op)
{
	const om_value *most = op->opdef->control == OM_LOOP ? op->in[0] : NULL;

	return !w->a->request->ranged || (most && (!most->def || most->def->nin == 0));
}

static bool
loop_parts(struct loops *w, struct loop *l)
{
	const om_op *op = l->op;
	const bool scan = op->opdef->control == OM_SCAN;
	const int64_t slices = scan ? om_attr_int(op, "num_scan_inputs") : 2;

	if (op->nbody != 1 || slices < 1 || slices > op->nin || (scan && op->version < 9))
		return false;
	l->body = op->body[0];
	l->nslice = scan ? (uint32_t)slices : 0;
	l->n = op->nin - (uint32_t)slices;
	l->result = !scan;
	if (l->body->nparam != l->n + (uint32_t)slices || l->body->nresult < l->result + l->n || op->nout < l->n
	    || op->nout > l->body->nresult - l->result)
		return false;
	l->c = OM_NEWN(w->tmp, struct carried, l->n);
	for (uint32_t k = 0; k < l->n; k++) {
		struct carried *c = &l->c[k];
		*c = (struct carried){.init = op->in[k + (scan ? 0 : 2)], .x = l->body->param[k + (scan ? 0 : 2)],
			.y = l->body->result[l->result + k], .out = op->out[k], .next = NONE};
		if (!c->init)
			return false;
		c->is_planned = is_planned(w, c->x) && is_planned(w, c->y) && is_planned(w, c->init)
			&& om_value_bytes(c->x) == om_value_bytes(c->y) && om_value_bytes(c->x) == om_value_bytes(c->init);
	}
	l->usual_count = om_trip_count(op);
	l->trip_count = is_same_for_all_sizes(w, op) ? l->usual_count : -1;
	return true;
}

static void
look_at_loop(struct loops *w, om_op *op)
{
	struct loop *l = OM_NEW(w->tmp, struct loop);

	l->op = op;
	if (!loop_parts(w, l))
		return;
	for (uint32_t k = 0; k < l->n; k++)
		if (l->c[k].is_planned)
			l->c[k].kind = classify(w, l, &l->c[k]);
	w->loop[op->id] = l;
}

/* ---- Multi-views. ---- */

static om_multi_view *
multi_view_new(struct loops *w, uint32_t period, uint32_t nprologue)
{
	om_multi_view *r = OM_NEW(w->mem, om_multi_view);

	*r = (om_multi_view){.period = period, .nprologue = nprologue, .at = OM_NEWN(w->mem, om_address, period),
		.first = OM_NEWN(w->mem, om_address, nprologue)};
	return r;
}

static om_address
spot_of(const struct loops *w, om_value *v, uint64_t iteration)
{
	const om_multi_view *r = w->a->multi_view[v->id];

	if (!r)
		return (om_address){v, 0};
	return iteration < r->nprologue ? r->first[iteration] : r->at[iteration % r->period];
}

/* The parameter is stored only in bytes of other values; its backing is a view of its initial value. */
static void
own_nothing(struct loops *w, struct carried *c, om_multi_view *r)
{
	om_assignment_back(w->a, c->x, OM_VIEW, c->init, 0);
	w->a->multi_view[c->x->id] = r;
	c->is_done = true;
}

/* ---- Periods. ---- */

/* Rotations of at most SHORT buffers repeat after SHORT_COMMON iterations: these are always checked.  Longer ones
 * are checked if they repeat after MOST_COMMON iterations, in so many steps. */
enum { SHORT = 8, SHORT_COMMON = 840, MOST_COMMON = 2048, MOST_STEPS = 1 << 18 };

/* A reader checks two rounds of the rotations of a loop in each iteration of each loop around it, so these numbers
 * multiply.  In a nest of NESTED loops or fewer, all may rotate.  In deeper ones those that enclose more than MOST_NEST
 * iterations copy, and a reader needs two iterations of each. */
enum { NESTED = 4, MOST_NEST = 1 << 8 };

static uint64_t
common_multiple(uint64_t a, uint64_t b)
{
	return a / om_common_divisor(a, b) * b;
}

static bool
may_repeat(const struct loop *l, uint64_t common)
{
	return l->height < NESTED || common == 1 || om_size_product(l->nest, 2 * common) <= MOST_NEST;
}

/* May a rotation of so many buffers be added to those of the loop? */
static bool
may_rotate(const struct loops *w, const struct loop *l, uint64_t buffers)
{
	if (buffers > w->cap)
		return false;
	const uint64_t common = common_multiple(l->common, buffers);
	if (!may_repeat(l, common))
		return false;
	return common == l->common || (buffers <= SHORT && common <= SHORT_COMMON)
	    || (common <= MOST_COMMON && common <= MOST_STEPS / (l->work ? l->work : 1));
}

static void
add_period(struct loop *l, uint64_t period)
{
	l->common = common_multiple(l->common, period);
}

/* ---- Rotations. ---- */

/* A chain of parameters: each takes the previous value of the one before it. */
struct wheel {
	struct loop *l;
	struct carried **c;
	uint32_t n;
	kind head;           /* how the value of the first parameter is produced */
	om_value *root;      /* COMPUTED */
	bool is_over;        /* the computed result overwrites the last parameter */
	uint32_t period;
	bool *is_first;      /* by position in the chain: the initial value is read in place */
};

/* The input of the op that computes `root` which is, or views, the parameter. */
static om_value *
read_last(const struct loops *w, const om_value *root, om_value *x)
{
	const om_alias_set *own = om_alias_sets_find(w->g, x, NULL);
	const om_op *op = root->def;

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && om_alias_sets_find(w->g, op->in[k], NULL) == own)
			return op->in[k];
	return x;
}

/* The index of `root` among the outputs of its op. */
static uint32_t
output_of(const om_value *root)
{
	uint32_t out = 0;

	while (root->def->out[out] != root)
		out++;
	return out;
}

/* Does the address of `v` depend on the number of iterations of another loop? */
static bool
is_found(const struct loops *w, const om_value *v)
{
	for (; v; v = source_of(w, v))
		if (w->a->multi_view[v->id] && w->a->multi_view[v->id]->is_output)
			return true;
	return false;
}

/* Does an op read a value whose address depends on a number of iterations?  It may be that of any
 * parameter in the rotation. */
static bool
reads_found(const struct loops *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (is_found(w, op->in[k]))
			return true;
	return false;
}

/* Compute the result over the last parameter, if that is dead by then; or do loops inside do so already? */
static bool
put_over_last(struct loops *w, const struct wheel *h)
{
	om_value *x = h->c[h->n - 1]->x;
	uint64_t a, b;

	if (w->is_overwritten[x->id] && om_alias_sets_find(w->g, x, &a) == om_alias_sets_find(w->g, h->root, &b) && a == b)
		return true;
	om_live_interval *live = &w->a->live[x->id];
	const om_live_interval was = *live;
	const uint32_t begin = steps_of_block(w, h->l->body).first, first = w->a->live[h->root->id].first;
	const om_op *op = h->root->def;

	om_value *in = read_last(w, h->root, x);
	const uint32_t last = w->last[x->id] > begin ? w->last[x->id] : begin;   /* without an iteration it is the output */
	*live = (om_live_interval){.first = was.first, .last = last};
	if (last + (op->nbody > 0 || reads_found(w, op)) <= first && w->a->live[in->id].last <= first
	    && om_op_facts_inplace_value(w->a->facts, op, output_of(h->root), in) && om_alias_sets_merge_inplace(w->g, h->root, in))
		return true;
	*live = was;
	return false;
}

/* Buffers of a rotation are reserved while the loop runs; a single buffer that the result overwrites,
 * only while it is live. */
static void
keep_regions(struct loops *w, const struct wheel *h)
{
	const om_steps op = steps_of(w, h->l->op);
	const struct carried *c = h->c[0];

	if (h->head == COMPUTED)
		extend(w, c->y, w->a->live[c->y->id].first, op.last, true);
	if (h->period == 1 && h->is_over)
		return;
	for (uint32_t j = 0; j < h->n; j++)
		extend(w, h->c[j]->x, op.first, op.last, true);
	if (h->head == COMPUTED && !h->is_over)
		extend(w, h->root, op.first, op.last, true);
}

/* Is `v` a carried value of the loop around `l`, with storage of its own, that `l` reads last, as one initial value?
 * An output of another loop that may end in its bytes reads them, too: they are kept for it. */
static bool
is_own_parameter(const struct loops *w, const struct loop *l, const om_value *v)
{
	const om_op *owner = v->block->owner;
	const struct loop *around = owner ? w->loop[owner->id] : NULL;
	const uint32_t k = around ? carried_param(around, v) : NONE;
	const om_alias_set *own = om_alias_sets_find(w->g, v, NULL);
	uint32_t times = 0;

	if (v->def || v->block != l->op->block || k == NONE || !around->c[k].is_planned || !own || own->n > 1
	    || w->last[v->id] > steps_of(w, l->op).last || w->kept[v->id] > steps_of(w, l->op).first)
		return false;
	for (const om_use *u = v->first_use; u; u = u->next) {
		if (is_here(l->body, v) || om_block_inside(u->op ? u->op->block : u->block, l->body))
			return false;
		times += u->op == l->op;
	}
	return times == 1;
}

/* Overwrite the parameter of the loop around: it dies when the loop begins, and may not be read where its own
 * initial value is. */
static bool
put_over_parameter(struct loops *w, const struct loop *l, const struct carried *c)
{
	om_live_interval *live = &w->a->live[c->init->id];
	const om_live_interval was = *live;

	*live = (om_live_interval){.first = was.first, .last = steps_of(w, l->op).first};
	if (om_alias_sets_merge_inplace(w->g, c->x, c->init)) {
		w->is_overwritten[c->init->id] = true;
		return true;
	}
	*live = was;
	return false;
}

/* May the initial value be overwritten? */
static bool
put_over_init(struct loops *w, const struct loop *l, const struct carried *c)
{
	const om_alias_set *own = om_alias_sets_find(w->g, c->init, NULL);

	if (!own || own->is_outside || store_of(w, c->x) != OM_OWN || is_found(w, c->init))
		return false;
	if (is_own_parameter(w, l, c->init))
		return put_over_parameter(w, l, c);
	return own->root->def && c->init->def && c->init->def->block == l->op->block
	    && w->a->live[c->init->id].last <= steps_of(w, l->op).first && om_alias_sets_merge_inplace(w->g, c->x, c->init);
}

static bool keep(struct loops *w, om_value *v, uint32_t first, uint32_t last);

/* A value whose address depends on a number of iterations is stored at one of these: keep all of them. */
static bool
keep_spots(struct loops *w, const om_multi_view *r, uint32_t first, uint32_t last)
{
	for (uint32_t k = 0; k < r->period; k++)
		if (!keep(w, r->at[k].in, first, last))
			return false;
	for (uint32_t k = 0; k < r->nprologue; k++)
		if (!keep(w, r->first[k].in, first, last))
			return false;
	return true;
}

/* Keep the bytes of `v` intact in these steps.  If that fails because `v` is a sub-buffer, it gets its
 * own storage. */
static bool
keep(struct loops *w, om_value *v, uint32_t first, uint32_t last)
{
	const om_multi_view *const *moves = w->a->multi_view;
	const om_value *at = v;

	if (v->is_const || first > last)
		return true;
	w->last[v->id] = w->last[v->id] > last ? w->last[v->id] : last;
	w->kept[v->id] = w->kept[v->id] > last ? w->kept[v->id] : last;
	while (source_of(w, at) && !(moves[at->id] && moves[at->id]->is_output))
		at = source_of(w, at);
	if (moves[at->id] && moves[at->id]->is_output && !keep_spots(w, moves[at->id], first, last))
		return false;
	if (extend(w, v, first, last, false))
		return true;
	if (store_of(w, v) != OM_SUBBUFFER || !detach(w, v))
		return false;
	w->g = om_alias_sets_new(w->p, w->a, w->tmp);
	return extend(w, v, first, last, false);
}

/* Keep the initial value intact as long as the loop runs. */
static bool
keep_init(struct loops *w, const struct loop *l, const struct carried *c)
{
	return keep(w, c->init, steps_of(w, l->op).first, steps_of(w, l->op).last);
}

static om_value *
region(const struct wheel *h, uint32_t k)
{
	if (k == 0)
		return h->is_over || h->head != COMPUTED ? h->c[h->n - 1]->x : h->root;
	return h->c[k - 1]->x;
}

static uint32_t
place_in(uint32_t period, uint64_t j, uint64_t iteration)
{
	return (uint32_t)((j + period - iteration % period) % period);
}

/* The number of prologue iterations of the j-th parameter, from 1: in these, it or a parameter that it
 * takes over may be stored in an initial value. */
static uint32_t
prologue_of(const struct wheel *h, uint32_t j)
{
	for (uint32_t k = 0; k < j; k++)
		if (h->is_first[k])
			return j - k;
	return 0;
}

/* Make the j-th parameter rotate or, for j = 0, the computed result. */
static void
rotate(struct loops *w, const struct wheel *h, uint32_t j, uint32_t nprologue)
{
	om_multi_view *r = multi_view_new(w, h->period, nprologue);

	for (uint32_t i = 0; i < nprologue; i++)
		r->first[i].in = h->is_first[j - i - 1] ? h->c[j - i - 1]->init : h->c[j - i - 1]->x;
	for (uint32_t i = 0; i < h->period; i++)
		r->at[i].in = region(h, place_in(h->period, j, i));
	w->a->multi_view[(j ? h->c[j - 1]->x : h->root)->id] = r;
}

/* Is the j-th parameter, or one that takes it over later, overwritten by a loop inside? */
static bool
reaches_overwritten(const struct loops *w, const struct wheel *h, uint32_t j)
{
	while (j < h->n && !w->is_overwritten[h->c[j]->x->id])
		j++;
	return j < h->n;
}

static void
wheel(struct loops *w, struct wheel *h)
{
	h->is_over = h->head == COMPUTED && put_over_last(w, h);
	h->period = h->n + (h->head == COMPUTED && !h->is_over);
	keep_regions(w, h);
	h->is_first = OM_NEWN(w->tmp, bool, h->n);
	for (uint32_t j = 0; j < h->n; j++) {
		struct carried *c = h->c[j];
		c->is_done = true;
		h->is_first[j] = c->is_planned && !put_over_init(w, h->l, c) && !reaches_overwritten(w, h, j)
			&& keep_init(w, h->l, c);
	}
	for (uint32_t j = 1; j <= h->n; j++)
		if (h->period > 1 || prologue_of(h, j))
			rotate(w, h, j, prologue_of(h, j));
	if (h->head == COMPUTED && (h->period > 1 || prologue_of(h, h->n)))
		rotate(w, h, 0, 0);
	add_period(h->l, h->period);
	if (h->head == COPIED)
		w->count.copied++;
	else
		*(h->period > 1 ? &w->count.rotating : &w->count.in_place) += h->n;
}

/* A permutation, or a chain whose first value is defined outside the body: nothing is written, and
 * initial values stay intact.  The parameters rotate through the initial values or, after a prologue,
 * are that outer value. */
static bool
go_through(struct loops *w, const struct wheel *h)
{
	const bool around = h->head == AROUND;

	for (uint32_t j = 0; j < h->n; j++)
		if (w->is_overwritten[h->c[j]->x->id])
			return false;
	for (uint32_t j = 0; j < h->n; j++)
		if (!keep_init(w, h->l, h->c[j]))
			return false;
	for (uint32_t j = 1; j <= h->n; j++) {
		om_multi_view *r = around ? multi_view_new(w, 1, j) : multi_view_new(w, h->n, 0);
		for (uint32_t i = 0; i < r->nprologue; i++)
			r->first[i].in = h->c[j - i - 1]->init;
		for (uint32_t i = 0; i < r->period; i++)
			r->at[i] = around ? (om_address){h->c[0]->root, h->c[0]->offset}
				: (om_address){h->c[place_in(h->n, j - 1, i)]->init, 0};
		own_nothing(w, h->c[j - 1], r);
	}
	add_period(h->l, around ? 1 : h->n);
	w->count.invariant += h->n;
	return true;
}

/* The parameters of a part of a chain, of `n` at most, of which the first may be computed. */
static uint32_t
part_of(const struct loops *w, const struct loop *l, uint32_t n, bool computed)
{
	while (n > 1 && !(may_rotate(w, l, n) && (!computed || may_rotate(w, l, (uint64_t)n + 1))))
		n--;
	return n;
}

/* Break a chain that is too long or cannot be rotated: each part except the first starts with a copy. */
static void
cut(struct loops *w, const struct wheel *h)
{
	const uint32_t most = w->cap > 1 ? (uint32_t)w->cap - 1 : 1;
	uint32_t n;

	for (uint32_t from = 0; from < h->n; from += n) {
		bool computed = from == 0 && h->head == COMPUTED && (h->n > 1 || w->cap > 1);
		n = part_of(w, h->l, h->n - from < most ? h->n - from : most, computed);
		computed = computed && (w->cap == 1 || may_rotate(w, h->l, (uint64_t)n + 1));
		struct wheel piece = {.l = h->l, .c = h->c + from, .n = n, .head = computed ? COMPUTED : COPIED, .root = h->root};
		wheel(w, &piece);
	}
}

static void
chain(struct loops *w, struct loop *l, uint32_t k)
{
	struct wheel h = {.l = l, .c = OM_NEWN(w->tmp, struct carried *, l->n), .head = l->c[k].kind,
		.root = l->c[k].root};
	uint32_t at = k;

	do {
		h.c[h.n++] = &l->c[at];
		at = l->c[at].next;
	} while (at != NONE && at != k);
	const uint64_t buffers = h.n + (h.head == COMPUTED);
	w->count.longest = buffers > w->count.longest ? buffers : w->count.longest;
	if ((h.head == AROUND || (h.head == PASSED && may_rotate(w, l, h.n))) && go_through(w, &h))
		return;
	if (h.head == PASSED || h.head == AROUND || !may_rotate(w, l, buffers) || !may_rotate(w, l, h.n))
		cut(w, &h);
	else
		wheel(w, &h);
}

/* ---- Loop outputs. ---- */

static bool
is_bound(const struct loops *w, const om_alias_set *own)
{
	for (size_t k = 0; k < own->n; k++)
		if (w->is_result[own->member[k]->id])
			return true;
	return false;
}

/* May the address of `out` be determined when the loop ends?  Other values may view the same bytes
 * then, but none may write them. */
static bool
may_move(const struct loops *w, const om_value *out)
{
	const om_alias_set *own = om_alias_sets_find(w->g, out, NULL);

	if (!own || own->is_outside || own->root != out || store_of(w, out) != OM_OWN || is_bound(w, own))
		return false;
	for (size_t k = 0; k < own->n; k++)
		if (own->member[k] != out && store_of(w, own->member[k]) != OM_VIEW)
			return false;
	return true;
}

/* Give values that are computed over `out`, or are sub-buffers of it, their own storage. */
static void
free_output(struct loops *w, om_value *out)
{
	bool any = detach(w, out);

	if (any)
		w->g = om_alias_sets_new(w->p, w->a, w->tmp);
	const om_alias_set *own = om_alias_sets_find(w->g, out, NULL);
	if (!own || own->is_outside || own->root != out || is_bound(w, own))
		return;
	any = false;
	for (size_t k = 0; k < own->n; k++)
		if (store_of(w, own->member[k]) == OM_INPLACE || store_of(w, own->member[k]) == OM_SUBBUFFER)
			any |= detach(w, own->member[k]);
	if (any)
		w->g = om_alias_sets_new(w->p, w->a, w->tmp);
}

/* Constants of a body are not visible outside of it. */
static bool
is_constant_inside(const om_block *body, const om_multi_view *r)
{
	for (uint32_t k = 0; k < r->period; k++)
		if (r->at[k].in->is_const && is_here(body, r->at[k].in))
			return true;
	return false;
}

/* Is one of the addresses in the storage of `v`? */
static bool
has_storage(const struct loops *w, const om_multi_view *r, om_value *v)
{
	const om_value *root = om_storage(w->a, v, NULL);

	for (uint32_t k = 0; k < r->period; k++)
		if (om_storage(w->a, r->at[k].in, NULL) == root)
			return true;
	for (uint32_t k = 0; k < r->nprologue; k++)
		if (om_storage(w->a, r->first[k].in, NULL) == root)
			return true;
	return false;
}

/* When the loop ends, outputs with an address of their own are copied there, if they are elsewhere.  Those that stay where
 * they are must not be in the same storage: is one of them, other than `c`, where `v` is stored? */
static bool
is_end_of_others(const struct loops *w, const struct loop *l, const struct carried *c, om_value *v)
{
	for (uint32_t k = 0; k < l->n; k++) {
		const om_multi_view *r = &l->c[k] != c && l->c[k].out ? w->a->multi_view[l->c[k].out->id] : NULL;
		if (r && r->is_output && has_storage(w, r, v))
			return true;
	}
	return false;
}

/* The reverse: may `c`, which stays where it is, be where another output is copied to? */
static bool
ends_in_others(const struct loops *w, const struct loop *l, const struct carried *c, const om_multi_view *r)
{
	for (uint32_t k = 0; k < l->n; k++) {
		om_value *out = &l->c[k] != c ? l->c[k].out : NULL;
		const om_multi_view *own = out ? w->a->multi_view[out->id] : NULL;
		if (out && !(own && own->is_output) && has_storage(w, r, out))
			return true;
	}
	return false;
}

/* The output is stored where the parameter of one more iteration would be. */
static void
move_output(struct loops *w, const struct loop *l, const struct carried *c, const om_multi_view *r)
{
	if (w->a->request->parallel_safe || w->is_result[c->out->id] || is_constant_inside(c->out->def->body[0], r)
	    || ends_in_others(w, l, c, r))
		return;
	free_output(w, c->out);
	if (!may_move(w, c->out))
		return;
	const uint32_t until = om_alias_sets_find(w->g, c->out, NULL)->last;
	const uint32_t from = steps_of(w, c->out->def).last;
	if (!keep_spots(w, r, from + 1, until))
		return;
	om_multi_view *own = om_memdup(w->mem, r, sizeof *r);
	own->is_output = true;
	om_assignment_back(w->a, c->out, OM_VIEW, c->init, 0);
	w->a->multi_view[c->out->id] = own;
	w->count.dynamic++;
}

/* Does the loop around carry `out` on until it is the parameter `x`, in one rotation that is certain to be made? */
static bool
leads_to(const struct loops *w, om_value *out, const om_value *x)
{
	const uint64_t most = w->cap < SHORT ? w->cap : SHORT;
	const struct loop *l = w->loop[x->block->owner->id];
	uint64_t offset;

	for (uint32_t k = 0; k < l->n; k++) {
		uint32_t at = k, n = 1;
		if (l->c[k].kind != COMPUTED || root_in(w, l->body, l->c[k].y, &offset) != out)
			continue;
		for (; l->c[at].next != NONE && n < most; n++)
			at = l->c[at].next;
		return l->c[at].x == x && n < most;
	}
	return false;
}

/* In the last iteration the result is computed directly in the output. */
static bool
put_into_output(struct loops *w, const struct carried *c, om_value *in)
{
	const om_alias_edge same[] = {{in, 0}, {c->y, 0}};
	uint64_t a, b;
	const bool both = c->y != in && om_alias_sets_find(w->g, c->y, &b) == om_alias_sets_find(w->g, in, &a) && a == b;

	om_value *root = om_storage(w->a, in, NULL);
	if (w->is_overwritten[root->id])
		return leads_to(w, c->out, root)
			&& om_alias_sets_merge_joined(w->g, c->out, (om_value *[]){in, c->y}, both ? 2 : 1, root, 0);
	return om_alias_sets_merge_at(w->g, c->out, same, both ? 2 : 1, OM_SUBBUFFER);
}

/* A result of the graph has a fixed address: the one buffer that the parameter has after its prologue lies
 * there.  After fewer iterations the executor copies. */
static bool
put_into_result(struct loops *w, const struct loop *l, const struct carried *c, const om_multi_view *r)
{
	const om_alias_set *own = om_alias_sets_find(w->g, c->out, NULL);

	return own && own->is_outside && own->root == c->out && r->period == 1 && is_here(l->body, r->at[0].in)
	    && !r->at[0].in->is_const && put_into_output(w, c, r->at[0].in);
}

/* A result of a body has a fixed address in its iteration: one that the parameter may have when the loop ends.  Where
 * it has another one, the executor copies; so no other output may be there then. */
static bool
put_at_end(struct loops *w, const struct loop *l, const struct carried *c, const om_multi_view *r)
{
	return w->is_result[c->out->id] && !is_end_of_others(w, l, c, r->at[0].in) && (r->period == 1 || w->is_overwritten[c->init->id]) && is_here(l->body, r->at[0].in)
	    && !r->at[0].in->is_const && put_into_output(w, c, r->at[0].in);
}

/* The trip count of the largest size of a range: in the others the executor copies where it is another buffer. */
static bool
put_where(struct loops *w, const struct loop *l, const struct carried *c, om_value *in)
{
	return is_here(l->body, in) && !in->is_const && !is_end_of_others(w, l, c, in) && put_into_output(w, c, in);
}

static void
place_output(struct loops *w, struct loop *l, struct carried *c)
{
	const bool known = l->trip_count >= 0 || !w->a->multi_view[c->x->id];

	if (!c->out || !c->is_planned || !c->is_done || w->a->facts->is_unplanned[c->out->id]
	    || om_value_bytes(c->out) != om_value_bytes(c->x))
		return;
	if (!known) {
		const om_multi_view *r = w->a->multi_view[c->x->id];
		if (!put_into_result(w, l, c, r) && !put_at_end(w, l, c, r)
		    && !(l->usual_count >= 0 && put_where(w, l, c, spot_of(w, c->x, (uint64_t)l->usual_count).in)))
			move_output(w, l, c, r);
		return;
	}
	const om_address s = spot_of(w, c->x, l->trip_count < 0 ? 0 : (uint64_t)l->trip_count);
	if (s.in->is_const && is_here(l->body, s.in))
		return;
	if (is_here(l->body, s.in) && !s.in->is_const) {
		if (put_into_output(w, c, s.in))
			return;
		om_multi_view *r = multi_view_new(w, 1, 0);
		r->at[0] = s;
		move_output(w, l, c, r);
		return;
	}
	if (w->a->request->parallel_safe || w->is_result[c->out->id])
		return;
	free_output(w, c->out);
	if (!may_move(w, c->out))
		return;
	const om_alias_edge view = {c->out, s.offset};
	if (!is_found(w, s.in) || keep(w, s.in, steps_of(w, l->op).last, om_alias_sets_find(w->g, c->out, NULL)->last))
		om_alias_sets_merge_at(w->g, s.in, &view, 1, OM_VIEW);
}

/* ---- Slices. ---- */

static bool
is_outermost(const om_shape *s, int axis)
{
	for (int d = 0; d < axis; d++)
		if (s->dim[d] != 1)
			return false;
	return true;
}

static om_multi_view *
slices(struct loops *w, const struct loop *l, om_value *all, uint64_t bytes, bool backward)
{
	om_multi_view *r = multi_view_new(w, 1, 0);

	r->at[0] = (om_address){all, backward ? (uint64_t)(l->trip_count - 1) * bytes : 0};
	r->stride = backward ? -(int64_t)bytes : (int64_t)bytes;
	return r;
}

/* Does `all` consist of one slice for each iteration, contiguous and in order? */
static bool
is_sliced(const struct loops *w, const struct loop *l, const om_value *all, const om_value *slice, int64_t axis)
{
	uint64_t bytes;
	int at;

	if (w->a->request->ranged || l->trip_count < 1 || !is_planned(w, all) || !is_planned(w, slice) || om_dtype_bits(slice->type.elem) < 8
	    || !om_axis(axis, all->shape.rank, &at) || !is_outermost(&all->shape, at))
		return false;
	return all->shape.dim[at] == l->trip_count
	    && !__builtin_mul_overflow((uint64_t)l->trip_count, om_value_bytes(slice), &bytes) && bytes == om_value_bytes(all);
}

static void
read_slices(struct loops *w, const struct loop *l)
{
	for (uint32_t k = 0; k < l->nslice; k++) {
		om_value *all = l->op->in[l->n + k], *x = l->body->param[l->n + k];
		if (!is_sliced(w, l, all, x, om_attr_int_at(l->op, "scan_input_axes", k, 0)) || store_of(w, x) != OM_OWN)
			continue;
		w->a->multi_view[x->id] = slices(w, l, all, om_value_bytes(x), om_attr_int_at(l->op, "scan_input_directions", k, 0));
		om_assignment_back(w->a, x, OM_VIEW, all, 0);
		w->count.slices++;
	}
}

/* The root of a result that is computed in its own storage; NULL if there is none. */
static om_value *
computed(struct loops *w, const struct loop *l, om_value *v)
{
	uint64_t offset;
	om_value *root = root_in(w, l->body, v, &offset);

	if (v->is_const || !is_here(l->body, v))
		return NULL;
	if (is_here(l->body, root) && root->def && !root->is_const && offset == 0
	    && om_value_bytes(root) == om_value_bytes(v)
	    && !w->is_taken[root->id])
		return root;
	return detach(w, v) ? v : NULL;
}

static void
look_at_series(struct loops *w, const struct loop *l)
{
	for (uint32_t k = l->n; k < l->op->nout; k++) {
		om_value *all = l->op->out[k], *v = l->body->result[l->result + k];
		const int64_t axis = om_attr_int_at(l->op, "scan_output_axes", k - l->n, 0);
		if (!all || !is_sliced(w, l, all, v, axis))
			continue;
		om_value *root = computed(w, l, v);
		if (!root)
			continue;
		take(w, l->body, v);
		w->a->multi_view[root->id] = slices(w, l, all, om_value_bytes(v),
			om_attr_int_at(l->op, "scan_output_directions", k - l->n, 0));
		om_assignment_back(w->a, root, OM_SUBBUFFER, all, 0);
		w->count.slices++;
	}
}

/* ---- If. ---- */

/* The result of branch `b` for output `k`, if both are planned. */
static om_value *
branch_result(const struct loops *w, const om_op *op, uint32_t b, uint32_t k)
{
	om_value *v = k < op->body[b]->nresult ? op->body[b]->result[k] : NULL;

	return v && !v->is_const && op->out[k] && is_planned(w, v) && is_planned(w, op->out[k])
		&& om_value_bytes(v) == om_value_bytes(op->out[k]) ? v : NULL;
}

/* Results of branches have undecided addresses. */
static void
look_at_branch(struct loops *w, const om_op *op, uint32_t b)
{
	const om_block *body = op->body[b];

	for (uint32_t k = 0; k < op->nout; k++) {
		om_value *v = branch_result(w, op, b, k);
		uint64_t offset;
		if (!v || v->block != body)
			continue;
		const om_value *root = root_in(w, body, v, &offset);
		if (is_here(body, root) && w->is_taken[root->id])
			detach(w, v);
		take(w, body, v);
	}
}

/* The captured value in whose bytes branch `b` leaves its result `v`; NULL if it has other storage. */
static om_value *
captured(const struct loops *w, const om_block *b, om_value *v, uint64_t *offset)
{
	om_value *root = v ? root_in(w, b, v, offset) : NULL;

	return root && !is_here(b, root) ? root : NULL;
}

/* May an output of an If be stored in the bytes of `source`? */
static bool
may_take_over(struct loops *w, const om_value *out, const om_value *source)
{
	const om_alias_set *own = om_alias_sets_find(w->g, source, NULL);

	if (w->a->request->parallel_safe || !own || own->is_outside || w->is_taken[out->id] || w->is_result[out->id])
		return false;
	for (const om_value *v = source; v; v = source_of(w, v)) {
		const struct chain *known = &w->free[v->id];
		if (known->top && known->changes == w->changes)
			v = known->top;
		else if (!v->def || w->is_taken[v->id] || w->a->multi_view[v->id])
			return false;
		w->free[source->id] = (struct chain){v, w->changes};
	}
	return true;
}

/* At the end of branch `b`, are the bytes of `source` either its result, or not in use? */
static bool
is_ready(const struct loops *w, const om_op *op, uint32_t b, uint32_t k, const om_value *source, uint64_t offset)
{
	om_value *v = branch_result(w, op, b, k);
	const om_alias_set *own = om_alias_sets_find(w->g, source, NULL);
	uint64_t at;

	if (captured(w, op->body[b], v, &at) == source && at == offset)
		return v != source || !om_live_interval_meets(&w->a->live[v->id], steps_of(w, op).last, steps_of(w, op).last);
	return v && !om_alias_sets_in_use(w->g, own, &w->a->live[v->id]);
}

/* Some branches leave a captured value as it is, or compute the result over it, because no other op reads
 * it: the output takes over its bytes. */
static bool
put_over_captured(struct loops *w, const om_op *op, uint32_t k)
{
	om_value **in = OM_NEWN(w->tmp, om_value *, op->nbody), *source = NULL;
	uint64_t offset = 0, at;
	uint32_t n = 0;

	for (uint32_t b = 0; b < op->nbody && !source; b++)
		source = captured(w, op->body[b], branch_result(w, op, b, k), &offset);
	if (!source || !may_take_over(w, op->out[k], source))
		return false;
	for (uint32_t b = 0; b < op->nbody; b++) {
		om_value *v = branch_result(w, op, b, k);
		if (!is_ready(w, op, b, k, source, offset))
			return false;
		if (captured(w, op->body[b], v, &at) == source)
			in[n++] = v;
	}
	return om_alias_sets_merge_joined(w->g, op->out[k], in, n, source, offset);
}

/* Is the result of the branch also that for an earlier output? */
static bool
is_repeated(const om_block *b, uint32_t k)
{
	for (uint32_t i = 0; i < k; i++)
		if (b->result[i] == b->result[k])
			return true;
	return false;
}

/* A result in the bytes of a captured value that the output cannot take over gets its own storage. */
static void
leave_captured(struct loops *w, const om_op *op, uint32_t k)
{
	bool any = false;
	uint64_t at;

	for (uint32_t b = 0; b < op->nbody; b++) {
		om_value *v = branch_result(w, op, b, k);
		if (!captured(w, op->body[b], v, &at) || v->block != op->body[b] || is_repeated(op->body[b], k)
		    || is_joined(w, v))
			continue;
		om_assignment_back(w->a, v, OM_OWN, NULL, 0);
		w->count.unmerged++;
		any = true;
	}
	w->changes += any;
	if (any)
		w->g = om_alias_sets_new(w->p, w->a, w->tmp);
}

/* Is the result `v` of branch `b` stored where the output is? */
static bool
is_in_output(const struct loops *w, const om_block *b, om_value *v, const om_value *out)
{
	uint64_t from, to;

	if (root_in(w, b, v, &from) == source_of(w, out) && from == w->a->backing[out->id].offset)
		return true;
	return om_storage(w->a, v, &from) == om_storage(w->a, out, &to) && from == to;
}

/* A result that cannot be computed in the output is copied when its branch ends; the lifetime of the output
 * includes that step. */
static void
place_if(struct loops *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++) {
		if (!put_over_captured(w, op, k))
			leave_captured(w, op, k);
		for (uint32_t b = 0; b < op->nbody; b++) {
			om_value *v = branch_result(w, op, b, k);
			const om_alias_edge same = {v, 0};
			uint64_t offset;
			if (!v)
				continue;
			if (is_in_output(w, op->body[b], v, op->out[k]) || (!captured(w, op->body[b], v, &offset)
			    && om_alias_sets_merge_at(w->g, op->out[k], &same, 1, OM_SUBBUFFER)))
				w->count.branches++;
		}
	}
}

/* ---- All. ---- */

static void
look(struct loops *w, const om_block *b)
{
	for (om_op *const *at = w->a->schedule->ops[b->id]; *at; at++) {
		om_op *op = *at;
		const om_control control = op->opdef && !op->is_folded && op->nbody ? op->opdef->control : OM_PLAIN;
		for (uint32_t k = 0; k < op->nbody && !op->is_folded; k++)
			look(w, op->body[k]);
		if (control == OM_LOOP || control == OM_SCAN)
			look_at_loop(w, op);
		for (uint32_t k = 0; k < op->nbody && control == OM_IF; k++)
			look_at_branch(w, op, k);
	}
}

static bool
is_circle(const struct loop *l, uint32_t k)
{
	uint32_t at = l->c[k].next, hops = 0;

	while (at != NONE && at != k && hops++ < l->n)
		at = l->c[at].next;
	return at == k;
}

/* Parameters of the chain from the k-th on, up to one more than SHORT. */
static uint32_t
short_length(const struct loop *l, uint32_t k)
{
	uint32_t at = k, n = 0;

	do
		n++;
	while ((at = l->c[at].next) != NONE && at != k && n <= SHORT);
	return n;
}

/* Short rotations are made in any case: longer ones are added to them. */
static void
add_short_periods(const struct loops *w, struct loop *l)
{
	l->common = 1;
	for (uint32_t k = 0; k < l->n; k++) {
		const bool computed = l->c[k].kind == COMPUTED;
		const uint32_t n = short_length(l, k);
		if (n + computed > SHORT || n + computed > w->cap || !l->c[k].is_planned || l->c[k].kind == AROUND
		    || (l->c[k].kind == PASSED && !is_circle(l, k)))
			continue;
		if (!may_repeat(l, common_multiple(common_multiple(l->common, n), n + computed)))
			continue;
		add_period(l, n);
		add_period(l, n + computed);
	}
}

/* Chains without a computed value come first: they require intact initial values. */
static void
place_loop(struct loops *w, struct loop *l)
{
	add_short_periods(w, l);
	for (uint32_t k = 0; k < l->n; k++)
		if (l->c[k].is_planned && !l->c[k].is_done && (l->c[k].kind == AROUND || is_circle(l, k)))
			chain(w, l, k);
	for (uint32_t k = 0; k < l->n; k++)
		if (l->c[k].is_planned && !l->c[k].is_done && l->c[k].kind != PASSED)
			chain(w, l, k);
	for (uint32_t k = 0; k < l->n; k++)
		place_output(w, l, &l->c[k]);
	read_slices(w, l);
	w->changes++;
}

/* What a reader of the plan checks in one pass through a block. */
struct passage {
	uint64_t work;       /* steps */
	uint64_t nest;       /* iterations of the innermost loop */
	uint32_t height;     /* loops that enclose one another */
};

static struct passage place(struct loops *w, const om_block *b);

static struct passage
place_op(struct loops *w, const om_op *op)
{
	struct passage one = {1, 1, 0};
	struct loop *l = w->loop[op->id];

	for (uint32_t k = 0; k < op->nbody; k++) {
		const struct passage in = place(w, op->body[k]);
		one.work = om_size_sum(one.work, in.work);
		one.nest = in.nest > one.nest ? in.nest : one.nest;
		one.height = in.height > one.height ? in.height : one.height;
	}
	if (l) {
		l->work = one.work;
		l->nest = one.nest;
		l->height = one.height;
		place_loop(w, l);
		one = (struct passage){om_size_product(one.work, 2 * l->common), om_size_product(one.nest, 2 * l->common),
			one.height + 1};
	} else if (op->nbody && op->opdef && op->opdef->control == OM_IF) {
		place_if(w, op);
	}
	return one;
}

static struct passage
place(struct loops *w, const om_block *b)
{
	struct passage all = {0, 1, 0};

	for (om_op *const *at = w->a->schedule->ops[b->id]; *at; at++) {
		if ((*at)->is_folded)
			continue;
		const struct passage one = place_op(w, *at);
		all.work = om_size_sum(all.work, one.work);
		all.nest = one.nest > all.nest ? one.nest : all.nest;
		all.height = one.height > all.height ? one.height : all.height;
	}
	return all;
}

const om_assignment *
om_assign_loops(const om_prog *p, const om_assignment *in, uint32_t period, om_arena *mem, om_loop_counts *count)
{
	const om_assignment *before = in->before_loops ? in->before_loops : in;

	*count = (om_loop_counts){0};
	if (!p->first->next)
		return before;
	om_arena *tmp = om_arena_new();
	struct loops w = {.p = p, .a = om_assignment_copy(before, mem), .mem = mem, .tmp = tmp, .cap = period,
		.last = OM_NEWN(tmp, uint32_t, p->nvalue), .kept = OM_NEWN(tmp, uint32_t, p->nvalue), .is_result = OM_NEWN(tmp, bool, p->nvalue),
		.is_taken = OM_NEWN(tmp, bool, p->nvalue), .is_overwritten = OM_NEWN(tmp, bool, p->nvalue), .loop = OM_NEWN(tmp, struct loop *, p->nop),
		.free = OM_NEWN(tmp, struct chain, p->nvalue)};
	w.a->before_loops = before;
	find_uses(&w, p->first);
	look(&w, p->first);
	for (uint32_t k = 0; k < p->nop; k++)
		if (w.loop[k])
			look_at_series(&w, w.loop[k]);
	w.g = om_alias_sets_new(p, w.a, tmp);
	place(&w, p->first);
	*count = w.count;
	om_arena_free(tmp);
	return w.a;
}
