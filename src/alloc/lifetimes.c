/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes, and live sets at every point of the program.
 *
 * The standard backward data-flow problem over a control-flow graph of basic blocks, whose least
 * solution is sought:
 *
 *	out[b] = union of in[s] over the successors s of b
 *	in[b]  = used[b] + (out[b] - defined[b])
 *
 * A basic block is a run of ops without bodies.  An op with bodies has two basic blocks of its own: a
 * head, which reads its inputs, and a tail, where its outputs are complete; the bodies are between
 * them.  If enters one of its bodies; Loop and Scan iterate theirs, or skip it.  The end of a block is
 * one more basic block, in which its results are read.
 *
 * It is solved for one value after the other: from the basic blocks that use the value, a worklist goes
 * back through predecessors up to those that define it.  So the time is the number of pairs of a value
 * and a basic block where it is live, and nothing for values within one basic block.  What is kept of
 * each value are the ranges of basic blocks at whose ends it is live: a few, as blocks are numbered in
 * order.
 *
 * The steps of the schedule in which each value requires its storage are computed by one walk.  A value
 * that a branch captures is live in that branch up to its last use, and not in a branch that does not
 * use it; so a lifetime is a set of ranges.  Lifetimes are wider than the sets where the executor
 * requires it: values that a loop captures are live as long as the loop.  A parameter is not live from its last
 * use in an iteration to the end of that, where it is written for the next one.
 */
#include <config.h>

#include <stdlib.h>

#include "ir/live_interval.h"
#include "ir/liveness.h"
#include "ir/query.h"
#include "alloc/assign.h"
#include "alloc/worker_streams.h"
#include "alloc/op_facts.h"
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

/* Is parameter `k` of the body of a Loop or Scan carried from iteration to iteration? */
static bool
is_carried(const om_op *op, uint32_t k)
{
	const uint32_t other = op->opdef->control == OM_LOOP ? 2 : 0;

	return k >= other && k - other < carried_outputs(op);
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

/* A parameter is live from the start of the loop to its last use in an iteration.  One that is carried is
 * written again at the end of each iteration, and read for the output after the last one: without any, that is
 * the initial value. */
static void
define_parameter(struct walk *w, const om_op *op, const om_block *b, uint32_t k)
{
	const om_steps at = w->s->of_op[op->id], body = w->s->of_block[b->id];
	const bool is_loop = manner_of(op) == ROUNDS;

	define(w, b->param[k], at.first, is_loop ? body.first : at.last);
	if (is_loop && is_carried(op, k))
		om_live_interval_add(&w->live[b->param[k]->id], body.last, at.last, w->mem);
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
			define_parameter(w, op, op->body[k], i);
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

/* The memory of an input exists for the whole run, unless it is in the arena: then its content, which is there
 * before the first step, is needed until its last use. */
static void
define_input(struct walk *w, const om_value *v, const om_plan_request *r, const om_op_facts *f)
{
	const bool is_released = !f->is_outside[v->id] && om_plan_request_io(r, v) == OM_IO_ARENA;

	define(w, v, 0, is_released ? 0 : w->s->of_block[w->p->first->id].last);
}

/* A state that stays on a device has its bytes there before its copy is made, and after the one that replaces it. */
static void
keep_states(struct walk *w)
{
	const uint32_t end = w->s->of_block[w->p->first->id].last;
	const om_op *in, *out;

	for (uint32_t k = 0; k < w->p->nio_alias; k++) {
		if (!om_state_copies(w->p, &w->p->io_alias[k], &in, &out))
			continue;
		om_live_interval_add(&w->live[in->out[0]->id], 0, w->start[in->out[0]->id], w->mem);
		om_live_interval_add(&w->live[out->in[0]->id], w->start[out->in[0]->id], end, w->mem);
	}
}

const bool *
om_kept_inputs(const om_prog *p, const om_assignment *a, om_arena *mem)
{
	bool *is_kept = OM_NEWN(mem, bool, p->nvalue);

	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_value *v = p->first->param[k];
		is_kept[v->id] = !a->facts->is_outside[v->id] && om_plan_request_io(a->request, v) != OM_IO_ARENA;
	}
	return is_kept;
}

om_assignment *
om_assign_lifetimes(const om_prog *p, const om_schedule *s, const om_plan_request *r, const om_op_facts *f,
	om_arena *mem)
{
	om_assignment *a = OM_NEW(mem, om_assignment);
	om_arena *tmp = om_arena_new();
	struct walk w = {p, s, OM_NEWN(mem, om_live_interval, p->nvalue), OM_NEWN(tmp, uint32_t, p->nvalue), mem};

	*a = (om_assignment){.schedule = om_schedule_in_streams(p, s, r, mem), .request = r, .facts = f, .live = w.live, .nvalue = p->nvalue,
		.backing = OM_NEWN(mem, om_backing, p->nvalue), .multi_view = OM_NEWN(mem, const om_multi_view *, p->nvalue)};
	for (uint32_t k = 0; k < p->first->nparam; k++)
		define_input(&w, p->first->param[k], r, f);
	walk_steps(&w, p->first);
	if (r->keep_states)
		keep_states(&w);
	om_arena_free(tmp);
	return a;
}

/* ---- The control-flow graph. ---- */

typedef enum kind { RUN, HEAD, TAIL, RET } kind;

struct node {
	kind kind;
	om_op *op;             /* RUN: its first op */
	om_block *block;
	uint32_t *pred;
	size_t npred, cappred;
};

#define NONE UINT32_MAX

/* Nodes of a value, linked. */
struct link {
	uint32_t node, next;
};

struct graph {
	const om_prog *p;
	om_arena *mem, *kept;   /* kept: arena of the sets */
	struct node *node;
	size_t n, cap;
	struct link *link;
	size_t nlink, caplink;
	uint32_t *used, *defined;    /* by value id: its nodes, by index of `link` */
	uint32_t at;                 /* the node whose uses are listed */
	uint32_t *use_at, *def_at;   /* by value id: 1 + the node that uses or defines it, as found so far */
	const om_value **touched;    /* of the node at hand */
	size_t ntouched, captouched;
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
	struct node *t = &g->node[to];

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
touch(struct graph *g, const om_value *v)
{
	if (g->use_at[v->id] != g->at + 1 && g->def_at[v->id] != g->at + 1)
		OM_PUSH(g->mem, g->touched, g->ntouched, g->captouched, v);
}

static void
add_used(struct graph *g, const om_value *v)
{
	if (!v || v->is_const)
		return;
	touch(g, v);
	g->use_at[v->id] = g->at + 1;
}

/* Walks backwards: a use after the definition is not upward-exposed. */
static void
add_defined(struct graph *g, const om_value *v)
{
	if (!v)
		return;
	touch(g, v);
	g->use_at[v->id] = 0;
	g->def_at[v->id] = g->at + 1;
}

static void
fill_run(struct graph *g, const struct node *n)
{
	for (om_op *op = end_of_run(n->op);; op = op->prev) {
		for (uint32_t k = 0; k < op->nout && !op->is_folded; k++)
			add_defined(g, op->out[k]);
		for (uint32_t k = 0; k < op->nin && !op->is_folded; k++)
			add_used(g, op->in[k]);
		if (op == n->op)
			return;
	}
}

static void
fill_head(struct graph *g, const struct node *n)
{
	const om_op *op = n->op;
	const manner m = manner_of(op);

	for (uint32_t k = carried_outputs(op); k < op->nout && m != BRANCHES; k++)
		add_defined(g, op->out[k]);
	for (uint32_t k = 0; k < op->nbody && m != BRANCHES; k++)
		for (uint32_t i = 0; i < op->body[k]->nparam; i++)
			add_defined(g, op->body[k]->param[i]);
	for (uint32_t k = 0; k < op->nin; k++)
		add_used(g, op->in[k]);
}

static void
fill_tail(struct graph *g, const struct node *n)
{
	const om_op *op = n->op;
	const uint32_t carried = carried_outputs(op);

	for (uint32_t k = 0; k < carried; k++)
		add_defined(g, op->out[k]);
	for (uint32_t k = carried; k < op->nout; k++)
		add_used(g, op->out[k]);
	for (uint32_t k = 0; k < op->nbody && manner_of(op) != BRANCHES; k++)
		for (uint32_t i = 0; i < op->body[k]->nparam; i++)
			if (manner_of(op) != ROUNDS || is_carried(op, i))
				add_used(g, op->body[k]->param[i]);
	for (uint32_t k = 0; k < op->nin; k++)
		if (is_read_to_the_end(op, k))
			add_used(g, op->in[k]);
}

/* Parameters of a loop are written where an iteration ends. */
static void
fill_ret(struct graph *g, const struct node *n)
{
	const om_op *owner = n->block->owner;

	for (uint32_t k = 0; owner && manner_of(owner) == BRANCHES && k < owner->nout; k++)
		add_defined(g, owner->out[k]);
	for (uint32_t k = 0; owner && manner_of(owner) == ROUNDS && k < n->block->nparam; k++)
		add_defined(g, n->block->param[k]);
	for (uint32_t k = 0; k < n->block->nresult; k++)
		add_used(g, n->block->result[k]);
}

static void
link_node(struct graph *g, uint32_t *first, uint32_t node)
{
	OM_PUSH(g->mem, g->link, g->nlink, g->caplink, ((struct link){node, *first}));
	*first = (uint32_t)g->nlink - 1;
}

/* List the values that node `k` uses and defines. */
static void
fill(struct graph *g, uint32_t k)
{
	const struct node *n = &g->node[k];

	g->at = k;
	g->ntouched = 0;
	switch (n->kind) {
	case RUN: fill_run(g, n); break;
	case HEAD: fill_head(g, n); break;
	case TAIL: fill_tail(g, n); break;
	case RET: fill_ret(g, n); break;
	}
	for (size_t i = 0; i < g->ntouched; i++) {
		const uint32_t v = g->touched[i]->id;
		if (g->use_at[v] == k + 1)
			link_node(g, &g->used[v], k);
		if (g->def_at[v] == k + 1)
			link_node(g, &g->defined[v], k);
	}
}

/* ---- The sets. ---- */

/* Where a value is live is found from its uses, backwards up to its definitions: each value by itself. */
struct search {
	struct graph *g;
	om_live_points *to;
	uint32_t *in, *out, *def; /* by node: 1 + the value that was found last to be in the set */
	uint32_t *stack;
	uint32_t *point;          /* by node: the number of its set that is kept, at its start or end; NONE */
	uint32_t *found;          /* of the value at hand: points */
	size_t nstack, nfound;
	size_t caprange;
	uint64_t visits;
};

static bool
is_kept_at_start(const struct node *n)
{
	return n->kind == HEAD;
}

static void
enter(struct search *s, uint32_t node, uint32_t v)
{
	if (s->in[node] == v + 1)
		return;
	s->in[node] = v + 1;
	s->stack[s->nstack++] = node;
	if (s->point[node] != NONE && is_kept_at_start(&s->g->node[node]))
		s->found[s->nfound++] = s->point[node];
}

static void
leave(struct search *s, uint32_t node, uint32_t v)
{
	if (s->out[node] == v + 1)
		return;
	s->out[node] = v + 1;
	if (s->point[node] != NONE && !is_kept_at_start(&s->g->node[node]))
		s->found[s->nfound++] = s->point[node];
	if (s->def[node] != v + 1)
		enter(s, node, v);
}

static int
by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Keep the points that were found as ranges. */
static void
keep(struct search *s)
{
	om_live_points *to = s->to;

	if (s->nfound > 1)
		qsort(s->found, s->nfound, sizeof *s->found, by_number);
	for (size_t k = 0; k < s->nfound; k++)
		if (k && s->found[k] == s->found[k - 1] + 1)
			to->range[to->nrange - 1].last++;
		else
			OM_PUSH(s->g->kept, to->range, to->nrange, s->caprange, ((om_steps){s->found[k], s->found[k]}));
}

static void
search_value(struct search *s, uint32_t v)
{
	const struct graph *g = s->g;

	s->nfound = 0;
	for (uint32_t k = g->defined[v]; k != NONE; k = g->link[k].next)
		s->def[g->link[k].node] = v + 1;
	for (uint32_t k = g->used[v]; k != NONE; k = g->link[k].next)
		enter(s, g->link[k].node, v);
	for (; s->nstack; s->visits++) {
		const struct node *n = &g->node[s->stack[--s->nstack]];
		for (size_t k = 0; k < n->npred; k++)
			leave(s, n->pred[k], v);
	}
	keep(s);
}

/* Number the sets that om_live_in() and om_live_out() look up. */
static void
number_points(struct search *s)
{
	const struct graph *g = s->g;
	om_live_points *to = s->to;
	uint32_t n = 0;

	to->before = OM_NEWN(g->kept, uint32_t, g->p->nop);
	to->after = OM_NEWN(g->kept, uint32_t, g->p->nop);
	memset(to->before, 0xff, g->p->nop * sizeof *to->before);
	memset(to->after, 0xff, g->p->nop * sizeof *to->after);
	for (size_t k = 0; k < g->n; k++) {
		const struct node *at = &g->node[k];
		s->point[k] = at->kind == RET ? NONE : n++;
		if (at->kind == HEAD)
			to->before[at->op->id] = s->point[k];
		else if (at->kind != RET)
			to->after[at->kind == RUN ? end_of_run(at->op)->id : at->op->id] = s->point[k];
	}
}

static uint32_t *
empty_lists(const struct graph *g)
{
	uint32_t *list = OM_NEWN(g->mem, uint32_t, g->p->nvalue);

	memset(list, 0xff, g->p->nvalue * sizeof *list);
	return list;
}

void
om_live_sets(const om_prog *p, om_assignment *a, om_arena *mem, om_live_counts *count)
{
	om_arena *tmp = om_arena_new();
	struct graph g = {.p = p, .mem = tmp, .kept = mem,
		.use_at = OM_NEWN(tmp, uint32_t, p->nvalue), .def_at = OM_NEWN(tmp, uint32_t, p->nvalue)};
	om_live_points *to = OM_NEW(mem, om_live_points);
	uint32_t entry;

	g.used = empty_lists(&g);
	g.defined = empty_lists(&g);
	add_block(&g, p->first, &entry);
	for (uint32_t k = 0; k < g.n; k++)
		fill(&g, k);
	struct search s = {.g = &g, .to = to, .in = OM_NEWN(tmp, uint32_t, g.n), .out = OM_NEWN(tmp, uint32_t, g.n),
		.def = OM_NEWN(tmp, uint32_t, g.n), .stack = OM_NEWN(tmp, uint32_t, g.n),
		.point = OM_NEWN(tmp, uint32_t, g.n), .found = OM_NEWN(tmp, uint32_t, g.n)};
	number_points(&s);
	to->first = OM_NEWN(mem, uint32_t, (size_t)p->nvalue + 1);
	for (uint32_t v = 0; v < p->nvalue; v++) {
		search_value(&s, v);
		to->first[v + 1] = (uint32_t)to->nrange;
	}
	*count = (om_live_counts){g.n, s.visits};
	a->live_points = to;
	om_arena_free(tmp);
}
