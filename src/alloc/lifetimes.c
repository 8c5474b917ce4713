/* Lifetimes, and live sets at every point of the program.
 *
 * The standard backward data-flow problem over a control-flow graph of basic blocks:
 *
 *	out[b] = union of in[s] over the successors s of b
 *	in[b]  = used[b] + (out[b] - defined[b])
 *
 * A basic block is a run of ops without bodies.  An op with bodies has two basic blocks of its own: a
 * head, which reads its inputs, and a tail, where its outputs are complete; the bodies are between
 * them.  If enters one of its bodies; Loop and Scan iterate theirs, or skip it.  The end of a block is
 * one more basic block, in which its results are read.
 *
 * A basic block is added to the worklist again when the in-set of a successor grows; sets only grow,
 * so the iteration terminates.  Visiting blocks in reverse order makes a program without loops
 * converge in one pass.
 *
 * The steps of the schedule in which each value requires its storage are computed by one walk.  A value
 * that a branch captures is live in that branch up to its last use, and not in a branch that does not
 * use it; so a lifetime is a set of ranges.  Lifetimes are wider than the sets where the executor
 * requires it: values that a loop captures are live as long as the loop, and its parameters from
 * iteration to iteration.
 */
#include <config.h>

#include "ir/live_interval.h"
#include "ir/query.h"
#include "alloc/assign.h"
#include "onnxmem/assignment.h"

/* How an op runs its bodies.  An unknown op is treated conservatively: it may read any input until it
 * ends, and run bodies any number of times. */
typedef enum manner { PLAIN, BRANCHES, ROUNDS, UNKNOWN } manner;

static manner
manner_of(const om_op *op)
{
	if (op->nbody == 0)
		return PLAIN;
	if (op->opdef && op->opdef->control == OM_IF)
		return BRANCHES;
	if (op->opdef && op->opdef->control == OM_LOOP)
		return ROUNDS;
	if (op->opdef && op->opdef->control == OM_SCAN && op->version >= 9)
		return ROUNDS;
	return UNKNOWN;
}

/* Outputs below this number are final values of carried values; the others are filled iteration by
 * iteration. */
static uint32_t
carried_outputs(const om_op *op)
{
	if (manner_of(op) != ROUNDS)
		return 0;
	const int64_t other = op->opdef->control == OM_LOOP ? 2 : om_attr_int(op, "num_scan_inputs");
	if (other < 0 || other > op->nin)
		return 0;
	const uint32_t n = op->nin - (uint32_t)other;
	return n < op->nout ? n : op->nout;
}

/* Is input `k` read in every iteration, not only at the start? */
static bool
is_read_to_the_end(const om_op *op, uint32_t k)
{
	if (manner_of(op) == UNKNOWN)
		return true;
	if (manner_of(op) != ROUNDS || op->opdef->control != OM_SCAN)
		return false;
	const int64_t scanned = om_attr_int(op, "num_scan_inputs");
	return k >= op->nin - scanned;
}

/* ---- Steps. ---- */

struct walk {
	const om_prog *p;
	const om_schedule *s;
	om_live_interval *live;       /* by value id, like all arrays here */
	uint32_t *start;         /* the step from which the value exists in its own block */
	om_arena *mem;           /* of ranges */
};

static void
define(struct walk *w, const om_value *v, uint32_t first, uint32_t last)
{
	if (!v || v->is_const)
		return;
	w->live[v->id] = (om_live_interval){.first = first, .last = last};
	w->start[v->id] = first;
}

/* An output of an If: each branch may write it when it ends. */
static void
define_joined(struct walk *w, const om_op *op, const om_value *v)
{
	const om_steps at = w->s->of_op[op->id];

	define(w, v, at.last, at.last);
	for (uint32_t k = 0; v && k < op->nbody; k++) {
		const uint32_t end = w->s->of_block[op->body[k]->id].last;
		om_live_interval_add(&w->live[v->id], end, end, w->mem);
	}
}

/* `v` is read in `step`, in block `b`: it is live in its own block up to the op that contains `b`, and
 * in each branch on the way to `b`, from its start. */
static void
use(struct walk *w, const om_value *v, const om_block *b, uint32_t step)
{
	if (!v || v->is_const)
		return;
	for (; b != v->block && b->owner; b = b->owner->block) {
		const om_steps holder = w->s->of_op[b->owner->id];
		const bool is_branch = manner_of(b->owner) == BRANCHES;
		if (is_branch)
			om_live_interval_add(&w->live[v->id], w->s->of_block[b->id].first, step, w->mem);
		step = is_branch ? holder.first : holder.last;
	}
	om_live_interval_add(&w->live[v->id], w->start[v->id], step, w->mem);
}

static void
define_outputs(struct walk *w, const om_op *op)
{
	const om_steps at = w->s->of_op[op->id];
	const manner m = manner_of(op);
	const uint32_t carried = carried_outputs(op);

	for (uint32_t k = 0; k < op->nout; k++) {
		if (m == BRANCHES)
			define_joined(w, op, op->out[k]);
		else
			define(w, op->out[k], k < carried ? at.last : at.first, at.last);
	}
	for (uint32_t k = 0; k < op->nbody && m != BRANCHES; k++)
		for (uint32_t i = 0; i < op->body[k]->nparam; i++)
			define(w, op->body[k]->param[i], at.first, at.last);
}

static void
walk_steps(struct walk *w, const om_block *b)
{
	for (om_op *const *at = w->s->ops[b->id]; *at; at++) {
		const om_op *op = *at;
		const om_steps *own = &w->s->of_op[op->id];
		if (op->is_folded)
			continue;
		for (uint32_t k = 0; k < op->nin; k++)
			use(w, op->in[k], b, is_read_to_the_end(op, k) ? own->last : own->first);
		define_outputs(w, op);
		for (uint32_t k = 0; k < op->nbody; k++)
			walk_steps(w, op->body[k]);
	}
	for (uint32_t k = 0; k < b->nresult; k++)
		use(w, b->result[k], b, w->s->of_block[b->id].last);
}

om_assignment *
om_assign_lifetimes(const om_prog *p, const om_schedule *s, const om_plan_request *r, const om_op_facts *f,
	om_arena *mem)
{
	om_assignment *a = OM_NEW(mem, om_assignment);
	om_arena *tmp = om_arena_new();
	struct walk w = {p, s, OM_NEWN(mem, om_live_interval, p->nvalue), OM_NEWN(tmp, uint32_t, p->nvalue), mem};

	*a = (om_assignment){.schedule = s, .request = r, .facts = f, .live = w.live, .nvalue = p->nvalue,
		.backing = OM_NEWN(mem, om_backing, p->nvalue), .multi_view = OM_NEWN(mem, const om_multi_view *, p->nvalue)};
	for (uint32_t k = 0; k < p->first->nparam; k++)
		define(&w, p->first->param[k], 0, s->of_block[p->first->id].last);
	walk_steps(&w, p->first);
	om_arena_free(tmp);
	return a;
}

/* ---- The control-flow graph. ---- */

typedef enum kind { RUN, HEAD, TAIL, RET } kind;

struct node {
	kind kind;
	om_op *op;             /* RUN: its first op */
	om_block *block;
	uint32_t *succ, *pred;
	size_t nsucc, npred, capsucc, cappred;
	uint64_t *in, *out, *used, *defined;
};

struct graph {
	const om_prog *p;
	om_arena *mem, *kept;   /* kept: arena of the sets */
	struct node *node;
	size_t n, cap;
	size_t words;          /* of a set */
};

static uint32_t
add_node(struct graph *g, kind what, om_block *b, om_op *op)
{
	const struct node node = {.kind = what, .block = b, .op = op};

	OM_PUSH(g->mem, g->node, g->n, g->cap, node);
	return (uint32_t)g->n - 1;
}

static void
add_edge(struct graph *g, uint32_t from, uint32_t to)
{
	struct node *f = &g->node[from], *t = &g->node[to];

	OM_PUSH(g->mem, f->succ, f->nsucc, f->capsucc, to);
	OM_PUSH(g->mem, t->pred, t->npred, t->cappred, from);
}

static om_op *
end_of_run(om_op *op)
{
	while (op->next && !op->next->nbody)
		op = op->next;
	return op;
}

static uint32_t add_block(struct graph *g, om_block *b, uint32_t *entry);

/* Add edges from the head through the bodies to the tail, which is returned. */
static uint32_t
add_bodies(struct graph *g, om_op *op, uint32_t head)
{
	const bool is_loop = manner_of(op) != BRANCHES;
	uint32_t *ret = OM_NEWN(g->mem, uint32_t, op->nbody);

	for (uint32_t k = 0; k < op->nbody; k++) {
		uint32_t entry;
		ret[k] = add_block(g, op->body[k], &entry);
		add_edge(g, head, entry);
		if (is_loop)
			add_edge(g, ret[k], entry);
	}
	const uint32_t tail = add_node(g, TAIL, op->block, op);
	for (uint32_t k = 0; k < op->nbody; k++)
		add_edge(g, ret[k], tail);
	if (is_loop)
		add_edge(g, head, tail);
	return tail;
}

/* Returns the node in which the results of the block are read. */
static uint32_t
add_block(struct graph *g, om_block *b, uint32_t *entry)
{
	uint32_t last = UINT32_MAX, node;

	for (om_op *op = b->first; op; op = op->next) {
		node = add_node(g, op->nbody ? HEAD : RUN, b, op);
		if (last == UINT32_MAX)
			*entry = node;
		else
			add_edge(g, last, node);
		last = op->nbody ? add_bodies(g, op, node) : node;
		if (!op->nbody)
			op = end_of_run(op);
	}
	node = add_node(g, RET, b, b->owner);
	if (last == UINT32_MAX)
		*entry = node;
	else
		add_edge(g, last, node);
	return node;
}

/* ---- Uses and definitions of basic blocks. ---- */

static void
add_used(struct node *n, const om_value *v)
{
	if (v && !v->is_const)
		n->used[v->id / 64] |= UINT64_C(1) << v->id % 64;
}

/* Walks backwards: a use after the definition is not upward-exposed. */
static void
add_defined(struct node *n, const om_value *v)
{
	if (v) {
		n->defined[v->id / 64] |= UINT64_C(1) << v->id % 64;
		n->used[v->id / 64] &= ~(UINT64_C(1) << v->id % 64);
	}
}

static void
fill_run(struct node *n)
{
	for (om_op *op = end_of_run(n->op);; op = op->prev) {
		for (uint32_t k = 0; k < op->nout && !op->is_folded; k++)
			add_defined(n, op->out[k]);
		for (uint32_t k = 0; k < op->nin && !op->is_folded; k++)
			add_used(n, op->in[k]);
		if (op == n->op)
			return;
	}
}

static void
fill_head(struct node *n)
{
	const om_op *op = n->op;
	const manner m = manner_of(op);

	for (uint32_t k = carried_outputs(op); k < op->nout && m != BRANCHES; k++)
		add_defined(n, op->out[k]);
	for (uint32_t k = 0; k < op->nbody && m != BRANCHES; k++)
		for (uint32_t i = 0; i < op->body[k]->nparam; i++)
			add_defined(n, op->body[k]->param[i]);
	for (uint32_t k = 0; k < op->nin; k++)
		add_used(n, op->in[k]);
}

static void
fill_tail(struct node *n)
{
	const om_op *op = n->op;
	const uint32_t carried = carried_outputs(op);

	for (uint32_t k = 0; k < carried; k++)
		add_defined(n, op->out[k]);
	for (uint32_t k = carried; k < op->nout; k++)
		add_used(n, op->out[k]);
	for (uint32_t k = 0; k < op->nbody && manner_of(op) != BRANCHES; k++)
		for (uint32_t i = 0; i < op->body[k]->nparam; i++)
			add_used(n, op->body[k]->param[i]);
	for (uint32_t k = 0; k < op->nin; k++)
		if (is_read_to_the_end(op, k))
			add_used(n, op->in[k]);
}

static void
fill_ret(struct node *n)
{
	const om_op *owner = n->block->owner;

	for (uint32_t k = 0; owner && manner_of(owner) == BRANCHES && k < owner->nout; k++)
		add_defined(n, owner->out[k]);
	for (uint32_t k = 0; k < n->block->nresult; k++)
		add_used(n, n->block->result[k]);
}

static void
fill(struct graph *g, struct node *n)
{
	n->in = OM_NEWN(g->kept, uint64_t, g->words);
	n->out = OM_NEWN(g->kept, uint64_t, g->words);
	n->used = OM_NEWN(g->mem, uint64_t, g->words);
	n->defined = OM_NEWN(g->mem, uint64_t, g->words);
	switch (n->kind) {
	case RUN: fill_run(n); break;
	case HEAD: fill_head(n); break;
	case TAIL: fill_tail(n); break;
	case RET: fill_ret(n); break;
	}
}

/* ---- The sets. ---- */

/* True when the in-set grew. */
static bool
flow(struct graph *g, struct node *n)
{
	bool grew = false;

	for (size_t k = 0; k < n->nsucc; k++)
		for (size_t w = 0; w < g->words; w++)
			n->out[w] |= g->node[n->succ[k]].in[w];
	for (size_t w = 0; w < g->words; w++) {
		const uint64_t in = n->used[w] | (n->out[w] & ~n->defined[w]);
		grew |= in != n->in[w];
		n->in[w] = in;
	}
	return grew;
}

static uint64_t
settle(struct graph *g)
{
	bool *queued = OM_NEWN(g->mem, bool, g->n);
	uint64_t visits = 0;
	size_t left = g->n;

	memset(queued, true, g->n);
	while (left)
		for (size_t k = g->n; k-- > 0;) {
			if (!queued[k])
				continue;
			queued[k] = false;
			left--;
			visits++;
			if (!flow(g, &g->node[k]))
				continue;
			for (size_t i = 0; i < g->node[k].npred; i++) {
				const uint32_t pred = g->node[k].pred[i];
				left += !queued[pred];
				queued[pred] = true;
			}
		}
	return visits;
}

/* Store the sets where om_live_in() and om_live_out() look them up. */
static void
publish(const struct graph *g, om_assignment *a)
{
	a->live_in = OM_NEWN(g->kept, const uint64_t *, g->p->nop);
	a->live_out = OM_NEWN(g->kept, const uint64_t *, g->p->nop);
	for (size_t k = 0; k < g->n; k++) {
		const struct node *n = &g->node[k];
		if (n->kind == RUN)
			a->live_out[end_of_run(n->op)->id] = n->out;
		else if (n->kind == HEAD)
			a->live_in[n->op->id] = n->in;
		else if (n->kind == TAIL)
			a->live_out[n->op->id] = n->out;
	}
}

enum { MOST_WORDS = 1 << 26 };  /* half a gigabyte of sets */

om_status
om_live_sets(om_session *s, const om_prog *p, om_assignment *a, om_arena *mem, om_live_counts *count)
{
	om_arena *tmp = om_arena_new();
	struct graph g = {.p = p, .mem = tmp, .kept = mem, .words = (size_t)p->nvalue / 64 + 1};
	om_status st = OM_OK;
	uint32_t entry;

	add_block(&g, p->first, &entry);
	if (g.n > MOST_WORDS / 4 / g.words) {
		st = om_fail(s, OM_MEMORY, "the live sets of %zu basic blocks over %u values"
			" would take %zu MiB", g.n, p->nvalue, g.n * g.words / (1 << 15));
	} else {
		for (size_t k = 0; k < g.n; k++)
			fill(&g, &g.node[k]);
		*count = (om_live_counts){g.n, settle(&g)};
		publish(&g, a);
	}
	om_arena_free(tmp);
	return st;
}
