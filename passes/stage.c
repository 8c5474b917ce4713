/* SPDX-License-Identifier: Apache-2.0 */
/* stage: the program of one rank of a pipeline, whose ranks have consecutive parts of the ops.
 *
 * Ops that depend on samples are of the forward pass, of the backward pass, or of the update.  The forward pass is cut into parts by
 * memory.  An op of the backward pass goes to the part that has what it reads of the forward pass; they are taken in their order, so
 * that parts only descend.  An op of the update goes to the part that has most of its bytes.  All other ops are computed wherever their
 * outputs are read.
 *
 * A batch goes through in micro-batches of equal size: each has a copy of the forward and of the backward ops, in the order of
 * one-forward-one-backward (Narayanan and others, 2019), so that part k of n keeps what the backward pass reads of at most n - k
 * micro-batches.  Gradients are summed in the order of micro-batches, and the update reads their mean.
 *
 * What parts exchange are messages.  All ranks order them in the same way: by the moment at which the first op that reads one would run if
 * every forward pass of a part took as long, and every backward pass twice that.  A rank sends and receives in this order.  Of all messages that
 * are not there yet, both ranks of the first one have no other to wait for; so ranks never wait for each other, even where a
 * message is only sent when it is received. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "host/option.h"
#include "ir/clone.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"
#include "onnxmem/pass.h"
#include "onnxmem/split.h"
#include "opdef/batch_mean.h"
#include "opdef/dist_domain.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

enum { MOST_PARTS = 64, MOST_MICRO = 1024 };

/* What an op belongs to.  STATIC: it does not depend on samples. */
enum kind { STATIC, FORWARD, BACKWARD, UPDATE };

/* An op of the graph that runs. */
struct node {
	om_op *op;
	om_value **in;           /* values of the graph that it reads, those read in bodies, too */
	size_t n, cap;
	enum kind kind;
	bool is_early;           /* STATIC: the forward or the backward pass reads it */
	uint32_t home;           /* the part that computes it; STATIC: none */
};

/* What micro-batches make of a value: each their own, or one of all. */
#define ONCE UINT32_MAX

struct message {
	om_value *v;
	uint32_t micro;          /* ONCE: of all */
	uint32_t from, to;
	uint64_t time;
};

/* A forward or a backward pass of a part. */
struct task {
	enum kind kind;
	uint32_t micro;
	uint64_t start;
};

struct stage {
	om_run *r;
	om_prog *p;
	om_block *graph;
	uint32_t parts, rank, micro;
	uint32_t whole;          /* micro-batches of a batch that the cuts are for */
	double scale;            /* whose micro-batches have so many times the samples */
	bool is_training;
	uint32_t nvalue, nop;    /* that the program came with */
	bool *depends;           /* by value id: on samples */
	bool *is_sample;         /* by value id: a parameter that is divided into micro-batches */
	struct node *node;       /* in their order */
	uint32_t n;
	uint32_t *node_of;       /* by op id */
	uint32_t *last_part;     /* by value id: the last part whose forward pass has it; parts: none */
	bool *of_state;          /* by value id: a state, or computed of states and constants alone */
	bool *is_resident;       /* by state and part */
	struct task *task;       /* by part: ntask each, in their order */
	uint32_t ntask;
	uint64_t after;          /* the time after all of them */
	struct message *msg;
	size_t nmsg, capmsg;
	om_value **sum;          /* by value id: of the micro-batches so far */
	om_value **final;        /* by value id: what the update and results read of it */
	bool *is_final;          /* by value id: they read something of it */
	bool *is_joined;         /* by value id: which is its micro-batches, one after the other, and not their mean */
	om_clone *clone;         /* by micro-batch */
	om_op **order;           /* of the new program */
	size_t norder, caporder;
};

/* ---- Ops and what they read. ---- */

struct reader {
	struct stage *x;
	struct node *of;
};

static void
add_read(void *arg, om_value *v)
{
	const struct reader *r = arg;

	if (v->block == r->x->graph)
		OM_PUSH(r->x->r->scratch, r->of->in, r->of->n, r->of->cap, v);
}

/* The op of a value; NULL: it is a parameter, or known before the run. */
static struct node *
maker(const struct stage *x, const om_value *v)
{
	return v->def && v->def->id < x->nop && !v->def->is_folded ? &x->node[x->node_of[v->def->id]] : NULL;
}

static void
find_nodes(struct stage *x)
{
	om_op **op = om_block_run_ops(x->graph, x->r->scratch, &x->n);

	x->node = OM_NEWN(x->r->scratch, struct node, (size_t)x->n + 1);
	x->node_of = OM_NEWN(x->r->scratch, uint32_t, (size_t)x->p->nop + 1);
	for (uint32_t k = 0; k < x->n; k++) {
		x->node[k].op = op[k];
		x->node_of[op[k]->id] = k;
		om_op_each_read(op[k], add_read, &(struct reader){x, &x->node[k]});
	}
}

/* ---- What ops belong to. ---- */

static void
find_samples(struct stage *x)
{
	for (uint32_t k = 0; k < x->graph->nparam; k++) {
		const om_value *v = x->graph->param[k];
		x->is_sample[v->id] = !om_prog_is_state(x->p, k) && !v->data && v->shape.rank != 0
			&& !(x->is_training && strcmp(v->name, "lr") == 0);
		x->depends[v->id] = x->is_sample[v->id];
	}
}

static bool
has_flag(const om_op *op, unsigned flags)
{
	bool any = op->opdef && op->opdef->flags & flags;

	for (uint32_t k = 0; k < op->nbody; k++)
		for (const om_op *inner = op->body[k]->first; inner && !any; inner = inner->next)
			any = has_flag(inner, flags);
	return any;
}

static enum kind
kind_of(const struct stage *x, const struct node *o)
{
	enum kind kind = STATIC;

	for (size_t k = 0; k < o->n; k++) {
		const struct node *m = maker(x, o->in[k]);
		if (!x->depends[o->in[k]->id])
			continue;
		kind = kind == STATIC ? FORWARD : kind;
		kind = m && m->kind > kind ? m->kind : kind;
	}
	if (kind == STATIC || !x->is_training)
		return kind;
	if (o->op->phase == OM_UPDATE)
		return UPDATE;
	return o->op->phase == OM_BACKWARD && kind == FORWARD ? BACKWARD : kind;
}

static om_status
check_node(const struct stage *x, const struct node *o)
{
	if (has_flag(o->op, OM_COLLECTIVE))
		return om_op_fail(x->r->session, OM_UNSUPPORTED, o->op, "exchanges data with other ranks already: such a program has no parts for ranks");
	if (o->kind == STATIC && x->parts > 1 && has_flag(o->op, OM_RANDOM | OM_EFFECT))
		return om_op_fail(x->r->session, OM_UNSUPPORTED, o->op, "does not compute the same each time, so that ranks cannot each compute it");
	if (x->micro > 1 && !om_op_mean_is_of_samples(o->op))
		return om_op_fail(x->r->session, OM_UNSUPPORTED, o->op, "its mean is weighted by the labels of a batch, so that it is not the "
			"mean of those of micro-batches");
	for (size_t k = 0; k < o->n; k++)
		if (o->kind == UPDATE && x->is_sample[o->in[k]->id])
			return om_op_fail(x->r->session, OM_UNSUPPORTED, o->op, "the update reads the samples %s themselves, and not through a "
				"gradient", o->in[k]->name);
	return OM_OK;
}

static om_status
find_kinds(struct stage *x)
{
	for (uint32_t k = 0; k < x->n; k++) {
		struct node *o = &x->node[k];
		o->kind = kind_of(x, o);
		for (uint32_t i = 0; i < o->op->nout; i++)
			if (o->op->out[i])
				x->depends[o->op->out[i]->id] = o->kind != STATIC;
		OM_TRY(check_node(x, o));
	}
	for (uint32_t k = x->n; k-- > 0;) {
		const struct node *o = &x->node[k];
		for (size_t i = 0; i < o->n; i++) {
			struct node *m = maker(x, o->in[i]);
			if (m && m->kind == STATIC)
				m->is_early |= o->kind == FORWARD || o->kind == BACKWARD || (o->kind == STATIC && o->is_early);
		}
	}
	return OM_OK;
}

/* ---- Cuts of the forward pass. ---- */

/* A part of a program that does not train is as `onnxmem split` makes it. */
static om_status
cut_by_storage(struct stage *x)
{
	const om_split_request want = {.size = sizeof want, .parts = x->parts};
	om_split cuts;

	OM_TRY(om_split_find(x->r->session, x->p, &want, x->r->scratch, &cuts));
	for (uint32_t k = 0; k < cuts.n; k++)
		for (uint32_t i = 0; i < cuts.part[k].nop; i++)
			x->node[cuts.part[k].first + i].home = k;
	return OM_OK;
}

/* Bytes of the forward pass of a step, as sums over its first ops. */
struct cuts {
	const struct stage *x;
	uint32_t *at;            /* the forward ops */
	uint32_t n;
	double *state, *kept;    /* [n + 1]: of parameters and what the update has of them; of what the backward pass reads */
	double *crossing;        /* [n + 1]: of what ops from there on read of those before */
	double budget;
};

static double
cost(const struct cuts *c, uint32_t part, uint32_t from, uint32_t to)
{
	const uint32_t in_flight = c->x->parts - part;

	return c->state[to] - c->state[from]
	    + (c->kept[to] - c->kept[from]) * c->x->scale * (c->x->whole < in_flight ? c->x->whole : in_flight);
}

/* The forward op that is the first to read a parameter, through ops that do not depend on samples, too: by value id; UINT32_MAX: none. */
static uint32_t *
first_readers(const struct stage *x, const struct cuts *c)
{
	uint32_t *first = OM_NEWN(x->r->scratch, uint32_t, x->nvalue);

	for (uint32_t k = 0; k < x->nvalue; k++)
		first[k] = UINT32_MAX;
	for (uint32_t k = c->n; k-- > 0;)
		for (size_t i = 0; i < x->node[c->at[k]].n; i++)
			first[x->node[c->at[k]].in[i]->id] = k;
	for (uint32_t k = x->n; k-- > 0;) {
		const struct node *o = &x->node[k];
		for (uint32_t i = 0; i < o->op->nout && o->kind == STATIC; i++)
			for (size_t in = 0; o->op->out[i] && in < o->n; in++)
				if (first[o->op->out[i]->id] < first[o->in[in]->id])
					first[o->in[in]->id] = first[o->op->out[i]->id];
	}
	return first;
}

/* States that only the update reads belong to those that the forward pass reads; each has a sum of gradients, too. */
static void
weigh_states(struct cuts *c)
{
	const uint32_t *first = first_readers(c->x, c);
	const om_prog *p = c->x->p;
	double all = 0, read = 0;

	for (uint32_t k = 0; k < p->nio_alias; k++) {
		const om_value *v = p->first->param[p->io_alias[k].param];
		const double bytes = (double)om_value_bytes(v);
		all += bytes;
		if (first[v->id] == UINT32_MAX)
			continue;
		read += bytes;
		c->state[first[v->id] + 1] += bytes;
	}
	for (uint32_t k = 0; k <= c->n && read > 0; k++)
		c->state[k] *= all / read + 1;
}

static bool
is_read_by(const struct stage *x, const om_value *v, enum kind kind, uint32_t from)
{
	for (const om_use *u = v->first_use; u; u = u->next) {
		const om_op *op = om_use_op_in(x->graph, u);
		if (op && !op->is_folded && x->node_of[op->id] >= from && x->node[x->node_of[op->id]].kind == kind)
			return true;
	}
	return false;
}

static uint32_t
last_reader(const struct stage *x, const om_value *v, const uint32_t *place)
{
	uint32_t last = 0;

	for (const om_use *u = v->first_use; u; u = u->next) {
		const om_op *op = om_use_op_in(x->graph, u);
		if (op && !op->is_folded && x->node[x->node_of[op->id]].kind == FORWARD && place[x->node_of[op->id]] > last)
			last = place[x->node_of[op->id]];
	}
	return last;
}

static void
weigh_values(struct cuts *c)
{
	const struct stage *x = c->x;
	uint32_t *place = OM_NEWN(x->r->scratch, uint32_t, (size_t)x->n + 1);

	for (uint32_t k = 0; k < c->n; k++)
		place[c->at[k]] = k;
	for (uint32_t k = 0; k < c->n; k++) {
		const om_op *op = x->node[c->at[k]].op;
		for (uint32_t i = 0; i < op->nout; i++) {
			const om_value *v = op->out[i];
			if (!v)
				continue;
			if (is_read_by(x, v, BACKWARD, 0))
				c->kept[k + 1] += (double)om_value_bytes(v);
			for (uint32_t to = last_reader(x, v, place); to > k; to--)
				c->crossing[to] += (double)om_value_bytes(v);
		}
	}
}

/* Do parts that go as far as the budget permits reach the end? */
static bool
is_enough(const struct cuts *c, double budget)
{
	uint32_t at = 0;

	for (uint32_t part = 0; part < c->x->parts; part++) {
		const uint32_t most = c->n - (c->x->parts - part - 1);
		uint32_t to = at + 1;
		if (cost(c, part, at, to) > budget)
			return false;
		while (to < most && cost(c, part, at, to + 1) <= budget)
			to++;
		at = to;
	}
	return at == c->n;
}

static void
find_budget(struct cuts *c)
{
	double low = 0, high = cost(c, 0, 0, c->n);

	for (int k = 0; k < 60 && high - low > 1; k++) {
		const double middle = low + (high - low) / 2;
		*(is_enough(c, middle) ? &high : &low) = middle;
	}
	c->budget = high;
}

/* Of all cuts within the budget, those over which the fewest bytes go: by the number of parts, the best ones of the first j ops. */
static void
choose(struct cuts *c, struct stage *x)
{
	const size_t row = (size_t)c->n + 1;
	double *best = OM_NEWN(x->r->scratch, double, row * (x->parts + 1));
	uint32_t *from = OM_NEWN(x->r->scratch, uint32_t, row * (x->parts + 1));

	for (size_t k = 0; k < row * (x->parts + 1); k++)
		best[k] = k ? -1 : 0;
	for (uint32_t part = 0; part < x->parts; part++)
		for (uint32_t to = part + 1; to <= c->n; to++)
			for (uint32_t at = to; at-- > part && cost(c, part, at, to) <= c->budget;) {
				const double before = best[part * row + at], now = before + c->crossing[at];
				double *b = &best[(part + 1) * row + to];
				if (before >= 0 && (*b < 0 || now < *b)) {
					*b = now;
					from[(part + 1) * row + to] = at;
				}
			}
	for (uint32_t part = x->parts, to = c->n; part-- > 0; to = from[(part + 1) * row + to])
		for (uint32_t k = from[(part + 1) * row + to]; k < to; k++)
			x->node[c->at[k]].home = part;
}

static om_status
cut_by_states(struct stage *x)
{
	struct cuts c = {.x = x, .at = OM_NEWN(x->r->scratch, uint32_t, (size_t)x->n + 1)};

	for (uint32_t k = 0; k < x->n; k++)
		if (x->node[k].kind == FORWARD)
			c.at[c.n++] = k;
	if (c.n < x->parts)
		return om_fail(x->r->session, OM_USAGE, "the step cannot be cut into %" PRIu32 " parts: its forward pass has %" PRIu32 " ops",
			x->parts, c.n);
	c.state = OM_NEWN(x->r->scratch, double, (size_t)c.n + 1);
	c.kept = OM_NEWN(x->r->scratch, double, (size_t)c.n + 1);
	c.crossing = OM_NEWN(x->r->scratch, double, (size_t)c.n + 1);
	weigh_states(&c);
	weigh_values(&c);
	for (uint32_t k = 0; k < c.n; k++) {
		c.state[k + 1] += c.state[k];
		c.kept[k + 1] += c.kept[k];
	}
	find_budget(&c);
	choose(&c, x);
	return OM_OK;
}

/* ---- Parts of the backward pass and of the update. ---- */

/* The last part whose forward pass reads or computes a value, and which values are computed of states. */
static void
find_last_parts(struct stage *x)
{
	for (uint32_t k = 0; k < x->nvalue; k++)
		x->last_part[k] = x->parts;
	for (uint32_t k = 0; k < x->p->nio_alias; k++)
		x->of_state[x->graph->param[x->p->io_alias[k].param]->id] = true;
	for (uint32_t k = 0; k < x->n; k++) {
		const struct node *o = &x->node[k];
		bool of_state = false;
		for (size_t i = 0; i < o->n; i++) {
			of_state |= o->kind == STATIC && x->of_state[o->in[i]->id];
			if (o->kind == FORWARD)
				x->last_part[o->in[i]->id] = o->home;
		}
		for (uint32_t i = 0; i < o->op->nout; i++)
			if (o->op->out[i]) {
				x->of_state[o->op->out[i]->id] = of_state;
				if (o->kind == FORWARD)
					x->last_part[o->op->out[i]->id] = o->home;
			}
	}
}

/* What the forward pass reads of states, through ops that do not depend on samples. */
static void
find_state_parts(struct stage *x)
{
	for (uint32_t k = x->n; k-- > 0;) {
		const struct node *o = &x->node[k];
		for (uint32_t i = 0; i < o->op->nout && o->kind == STATIC; i++) {
			const uint32_t part = o->op->out[i] ? x->last_part[o->op->out[i]->id] : x->parts;
			for (size_t in = 0; in < o->n && part < x->parts; in++) {
				uint32_t *has = &x->last_part[o->in[in]->id];
				*has = *has == x->parts || *has < part ? part : *has;
			}
		}
	}
}

static void
place_backward(struct stage *x)
{
	uint32_t part = x->parts - 1;

	for (uint32_t k = 0; k < x->n; k++) {
		struct node *o = &x->node[k];
		for (size_t i = 0; i < o->n && o->kind == BACKWARD; i++) {
			const struct node *m = maker(x, o->in[i]);
			const uint32_t has = x->last_part[o->in[i]->id];
			if (((m && m->kind == FORWARD) || x->of_state[o->in[i]->id]) && has < part)
				part = has;
		}
		if (o->kind == BACKWARD)
			o->home = part;
	}
}

/* The gradient that becomes the next value of a state, through values of its shape; NULL: it is not clear. */
static struct node *
gradient_of(const struct stage *x, const om_value *state, om_value *next)
{
	struct node *o = maker(x, next);

	for (uint32_t steps = 0; o && o->kind == UPDATE && steps < x->n; steps++) {
		struct node *from = NULL;
		for (size_t k = 0; k < o->n; k++) {
			struct node *m = maker(x, o->in[k]);
			if (m && m->kind >= BACKWARD && om_shape_equal(&o->in[k]->shape, &state->shape))
				from = m;
		}
		o = from;
	}
	return o && o->kind == BACKWARD ? o : NULL;
}

static bool
is_for_update(const struct stage *x, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && (is_read_by(x, op->out[k], BACKWARD, 0) || is_read_by(x, op->out[k], FORWARD, 0)))
			return false;
	return true;
}

/* Gradients that only the update reads are computed where their parameter is, as that of a bias, which reads nothing of the forward pass. */
static void
lower_gradients(struct stage *x)
{
	for (uint32_t k = 0; k < x->p->nio_alias; k++) {
		const om_value *state = x->graph->param[x->p->io_alias[k].param];
		const uint32_t part = x->last_part[state->id];
		struct node *o = part < x->parts ? gradient_of(x, state, x->graph->result[x->p->io_alias[k].result]) : NULL;
		if (o && o->home > part && is_for_update(x, o->op))
			o->home = part;
	}
}

/* The part that has most bytes of what an op of the update reads; of as many, that of a parameter. */
static uint32_t
most_bytes(const struct stage *x, const struct node *o)
{
	uint64_t most = 0;
	uint32_t home = 0;
	bool found = false;

	for (int states = 1; states >= 0; states--)
		for (size_t k = 0; k < o->n; k++) {
			const om_value *v = o->in[k];
			const struct node *m = maker(x, v);
			const bool is_state = x->of_state[v->id] && x->last_part[v->id] < x->parts;
			const uint64_t bytes = om_value_bytes(v);
			if (is_state != (states == 1) || (!is_state && (!m || m->kind == STATIC)) || (found && bytes <= most))
				continue;
			home = is_state ? x->last_part[v->id] : m->home;
			most = bytes;
			found = true;
		}
	return home;
}

static om_status
find_homes(struct stage *x)
{
	if (x->parts > 1)
		OM_TRY(x->is_training ? cut_by_states(x) : cut_by_storage(x));
	find_last_parts(x);
	find_state_parts(x);
	place_backward(x);
	lower_gradients(x);
	for (uint32_t k = 0; k < x->n; k++)
		if (x->node[k].kind == UPDATE)
			x->node[k].home = most_bytes(x, &x->node[k]);
	return OM_OK;
}

/* ---- When passes of parts run. ---- */

static struct task *
task_at(const struct stage *x, uint32_t part, uint32_t k)
{
	return &x->task[(size_t)part * x->ntask + k];
}

/* One forward, one backward, after as many forward passes as there are parts after this one. */
static void
order_tasks(struct stage *x)
{
	x->ntask = x->micro * (x->is_training ? 2 : 1);
	x->task = OM_NEWN(x->r->scratch, struct task, (size_t)x->parts * x->ntask);
	for (uint32_t part = 0; part < x->parts; part++) {
		const uint32_t first = !x->is_training ? x->micro : x->micro < x->parts - 1 - part ? x->micro : x->parts - 1 - part;
		uint32_t n = 0;
		for (uint32_t m = 0; m < first; m++)
			*task_at(x, part, n++) = (struct task){.kind = FORWARD, .micro = m};
		for (uint32_t m = 0; m < x->micro && x->is_training; m++) {
			if (first + m < x->micro)
				*task_at(x, part, n++) = (struct task){.kind = FORWARD, .micro = first + m};
			*task_at(x, part, n++) = (struct task){.kind = BACKWARD, .micro = m};
		}
	}
}

/* When what a task of a part waits for is there; UINT64_MAX: not known yet.  `end` is by kind, micro-batch and part, 0: not known. */
static uint64_t
ready(const struct stage *x, const uint64_t *end, uint32_t part, const struct task *t)
{
	const uint64_t *of = end + ((t->kind == BACKWARD ? (size_t)x->micro : 0) + t->micro) * x->parts;
	uint64_t at;

	if (t->kind == FORWARD)
		return part == 0 ? 1 : of[part - 1] ? of[part - 1] : UINT64_MAX;
	at = end[(size_t)t->micro * x->parts + part];
	if (at == 0 || part + 1 == x->parts)
		return at ? at : UINT64_MAX;
	return of[part + 1] == 0 ? UINT64_MAX : of[part + 1] > at ? of[part + 1] : at;
}

static void
find_times(struct stage *x)
{
	uint64_t *end = OM_NEWN(x->r->scratch, uint64_t, (size_t)2 * x->micro * x->parts), *free = OM_NEWN(x->r->scratch, uint64_t, x->parts);
	uint32_t *done = OM_NEWN(x->r->scratch, uint32_t, x->parts);

	order_tasks(x);
	for (uint64_t left = (uint64_t)x->parts * x->ntask; left > 0;)
		for (uint32_t part = 0; part < x->parts; part++) {
			struct task *t = done[part] < x->ntask ? task_at(x, part, done[part]) : NULL;
			const uint64_t at = t ? ready(x, end, part, t) : UINT64_MAX;
			if (at == UINT64_MAX)
				continue;
			t->start = at > free[part] ? at : free[part];
			free[part] = t->start + (t->kind == BACKWARD ? 2 : 1);
			end[((t->kind == BACKWARD ? (size_t)x->micro : 0) + t->micro) * x->parts + part] = free[part];
			x->after = free[part] > x->after ? free[part] : x->after;
			done[part]++;
			left--;
		}
}

static uint64_t
start_of(const struct stage *x, uint32_t part, enum kind kind, uint32_t micro)
{
	for (uint32_t k = 0; k < x->ntask; k++)
		if (task_at(x, part, k)->kind == kind && task_at(x, part, k)->micro == micro)
			return task_at(x, part, k)->start;
	return x->after;
}

/* The ops of the update run after all tasks, by their place; then results are exchanged. */
static uint64_t
update_time(const struct stage *x, const struct node *o)
{
	return x->after + 1 + (uint64_t)(o - x->node);
}

static uint64_t
end_time(const struct stage *x)
{
	return x->after + 2 + x->n;
}

/* ---- Which states parts have. ---- */

static bool *
resident(const struct stage *x, uint32_t state, uint32_t part)
{
	return &x->is_resident[(size_t)state * x->parts + part];
}

/* What a part reads, through ops that do not depend on samples: by value id. */
static void
find_read(const struct stage *x, uint32_t part, bool *read)
{
	for (uint32_t k = x->n; k-- > 0;) {
		const struct node *o = &x->node[k];
		bool runs = o->kind != STATIC && o->home == part;
		for (uint32_t i = 0; i < o->op->nout && o->kind == STATIC; i++)
			runs |= o->op->out[i] && read[o->op->out[i]->id];
		for (size_t i = 0; i < o->n && runs; i++)
			read[o->in[i]->id] = true;
	}
}

/* The part that computes the next value of a state; parts: all do. */
static uint32_t
home_of(const struct stage *x, const om_value *v)
{
	const struct node *o = maker(x, v);

	return o && o->kind != STATIC ? o->home : x->parts;
}

/* States of the part, and those that their next values are computed of. */
static void
find_states_of(struct stage *x, uint32_t part)
{
	bool *read = OM_NEWN(x->r->scratch, bool, x->nvalue);

	for (bool more = true; more;) {
		more = false;
		find_read(x, part, read);
		for (uint32_t k = 0; k < x->p->nio_alias; k++) {
			const om_value *state = x->graph->param[x->p->io_alias[k].param], *next = x->graph->result[x->p->io_alias[k].result];
			if (*resident(x, k, part) || !read[state->id])
				continue;
			*resident(x, k, part) = true;
			read[next->id] |= home_of(x, next) == x->parts;
			more = true;
		}
	}
}

/* A state that no part reads is where its next value is computed, or with the first part. */
static void
find_states(struct stage *x)
{
	x->is_resident = OM_NEWN(x->r->scratch, bool, (size_t)(x->p->nio_alias + 1) * x->parts);
	for (uint32_t part = 0; part < x->parts; part++)
		find_states_of(x, part);
	for (uint32_t k = 0; k < x->p->nio_alias; k++) {
		const uint32_t home = home_of(x, x->graph->result[x->p->io_alias[k].result]);
		bool any = false;
		for (uint32_t part = 0; part < x->parts; part++)
			any |= *resident(x, k, part);
		if (!any)
			*resident(x, k, home < x->parts ? home : 0) = true;
	}
}

/* ---- Messages. ---- */

static om_status
check_message(const struct stage *x, const om_value *v)
{
	if (v->type.kind == OM_TENSOR && v->type.elem != OM_UNDEFINED && v->type.elem != OM_STRING && om_dtype_bits(v->type.elem) >= 8
	    && om_shape_is_known(&v->shape))
		return OM_OK;
	return om_fail(x->r->session, OM_UNSUPPORTED, "%s would go from one part to another, but it is no numeric tensor whose shape is known "
		"before the run", v->name);
}

static void
add_message(struct stage *x, om_value *v, uint32_t micro, uint32_t from, uint32_t to, uint64_t time)
{
	OM_PUSH(x->r->scratch, x->msg, x->nmsg, x->capmsg, ((struct message){v, micro, from, to, time}));
}

/* When a part first reads a value that another one computes. */
struct need {
	bool forward, backward;
	uint64_t once;           /* 0: it does not read one of all micro-batches */
};

static void
add_needs(struct stage *x, om_value *v, const struct node *m, const struct need *need)
{
	for (uint32_t part = 0; part < x->parts; part++) {
		const struct need *f = &need[part];
		if (part == m->home)
			continue;
		for (uint32_t k = 0; k < x->micro && (f->forward || f->backward); k++)
			add_message(x, v, k, m->home, part, start_of(x, part, f->forward ? FORWARD : BACKWARD, k));
		if (f->once)
			add_message(x, v, ONCE, m->home, part, f->once);
	}
}

static void
note_reader(const struct stage *x, const struct node *o, struct need *need)
{
	struct need *f = &need[o->home];

	if (o->kind == STATIC)
		return;
	f->forward |= o->kind == FORWARD;
	f->backward |= o->kind == BACKWARD;
	if (o->kind == UPDATE && (!f->once || update_time(x, o) < f->once))
		f->once = update_time(x, o);
}

static bool
is_state_result(const struct stage *x, uint32_t k, uint32_t *state)
{
	for (uint32_t i = 0; i < x->p->nio_alias; i++)
		if (x->p->io_alias[i].result == k) {
			*state = i;
			return true;
		}
	return false;
}

/* Rank 0 gets all results, other ranks those of a step, and the states that they have. */
static void
note_results(const struct stage *x, const om_value *v, struct need *need)
{
	for (uint32_t k = 0; k < x->graph->nresult; k++) {
		uint32_t state = 0;
		const bool is_state = is_state_result(x, k, &state);
		if (x->graph->result[k] != v)
			continue;
		for (uint32_t part = 0; part < x->parts; part++)
			if ((is_state ? *resident(x, state, part) : x->is_training || part == 0) && !need[part].once)
				need[part].once = end_time(x);
	}
}

static int
by_time(const void *a, const void *b)
{
	const struct message *one = a, *two = b;
	const uint64_t first[] = {one->time, one->from, one->to, one->micro, one->v->id};
	const uint64_t second[] = {two->time, two->from, two->to, two->micro, two->v->id};

	for (size_t k = 0; k < sizeof first / sizeof *first; k++)
		if (first[k] != second[k])
			return first[k] > second[k] ? 1 : -1;
	return 0;
}

static om_status
find_messages(struct stage *x)
{
	struct need *need = OM_NEWN(x->r->scratch, struct need, x->parts);

	for (uint32_t k = 0; k < x->n; k++) {
		const struct node *m = &x->node[k];
		for (uint32_t i = 0; i < m->op->nout && m->kind != STATIC; i++) {
			om_value *v = m->op->out[i];
			const size_t before = x->nmsg;
			if (!v)
				continue;
			memset(need, 0, x->parts * sizeof *need);
			for (const om_use *u = v->first_use; u; u = u->next) {
				const om_op *op = om_use_op_in(x->graph, u);
				if (op && !op->is_folded)
					note_reader(x, &x->node[x->node_of[op->id]], need);
			}
			note_results(x, v, need);
			add_needs(x, v, m, need);
			if (x->nmsg > before)
				OM_TRY(check_message(x, v));
		}
	}
	qsort(x->msg, x->nmsg, sizeof *x->msg, by_time);
	return OM_OK;
}

/* ---- What micro-batches make together. ---- */

/* Results other than states and a loss are joined along axis 0; of everything else there is a mean. */
static bool
joins(const struct stage *x, const om_value *v)
{
	bool is_state = false;
	uint32_t state;

	for (uint32_t k = 0; k < x->graph->nresult; k++)
		is_state |= x->graph->result[k] == v && is_state_result(x, k, &state);
	return x->micro > 1 && !is_state && !(x->is_training && (is_read_by(x, v, UPDATE, 0)
		|| (om_dtype_is_float(om_type_elem(&v->type)) && om_shape_is_known(&v->shape) && om_shape_count(&v->shape) == 1)));
}

/* Does the update read a value of the forward or the backward pass, or is it a result? */
static void
find_finals(struct stage *x)
{
	for (uint32_t k = 0; k < x->n; k++) {
		const struct node *o = &x->node[k];
		for (size_t i = 0; i < o->n && o->kind == UPDATE; i++) {
			const struct node *m = maker(x, o->in[i]);
			x->is_final[o->in[i]->id] |= m && (m->kind == FORWARD || m->kind == BACKWARD);
		}
	}
	for (uint32_t k = 0; k < x->graph->nresult; k++) {
		const struct node *m = maker(x, x->graph->result[k]);
		x->is_final[x->graph->result[k]->id] |= m && (m->kind == FORWARD || m->kind == BACKWARD);
	}
	for (uint32_t k = 0; k < x->nvalue; k++)
		x->is_joined[k] = x->is_final[k] && joins(x, x->p->values[k]);
}

static om_status
check_finals(const struct stage *x)
{
	char shape[256];

	for (uint32_t k = 0; k < x->nvalue && x->micro > 1; k++) {
		const om_value *v = x->p->values[k];
		const om_dtype t = x->is_final[k] ? om_type_elem(&v->type) : OM_UNDEFINED;
		if (!x->is_final[k])
			continue;
		if (x->is_joined[v->id] && (v->type.kind != OM_TENSOR || !om_shape_is_known(&v->shape) || v->shape.rank == 0))
			return om_fail(x->r->session, OM_UNSUPPORTED, "%s %s cannot be joined of micro-batches: it must have a first dim, and a shape that "
				"is known before the run", v->name, om_shape_text(&v->shape, shape, sizeof shape));
		if (!x->is_joined[v->id] && (!om_dtype_is_float(t) || om_dtype_bits(t) < 16 || !om_shape_is_known(&v->shape)))
			return om_fail(x->r->session, OM_UNSUPPORTED, "%s %s %s has no mean over micro-batches: it must be floating-point, of known shape",
				v->name, om_dtype_text(t), om_shape_text(&v->shape, shape, sizeof shape));
	}
	return OM_OK;
}

/* ---- Building. ---- */

static void
push(struct stage *x, om_op *op)
{
	OM_PUSH(x->r->scratch, x->order, x->norder, x->caporder, op);
}

static om_value *
constant(const struct stage *x, const char *stem, om_dtype type, const om_shape *shape, const void *data, size_t bytes)
{
	const om_tensor t = {.type = type, .shape = *shape, .data = om_memdup(x->p->mem, data, bytes)};

	return om_const_new(x->p, x->graph, om_value_fresh(x->p, x->graph, stem)->name, om_memdup(x->p->mem, &t, sizeof t));
}

/* The next op of the rank.  `out`: a value that it defines; NULL: one called after `stem`. */
static om_status
build(struct stage *x, const char *domain, const char *type, uint32_t nin, om_value *const *in, om_value *out, const char *stem,
	const om_attr *attr, enum kind kind, om_op **made)
{
	static const om_phase phases[] = {OM_NO_PHASE, OM_FORWARD, OM_BACKWARD, OM_UPDATE};
	om_op *op = om_op_new(x->p, domain, type, *domain ? 1 : 0, nin, 1);

	op->phase = x->is_training ? phases[kind] : OM_NO_PHASE;
	for (uint32_t k = 0; k < nin; k++)
		om_op_set_in(op, k, in[k]);
	om_op_set_out(op, 0, out ? out : om_value_fresh(x->p, x->graph, stem));
	for (; attr && attr->name; attr++)
		om_op_add_attr(x->p, op, attr);
	om_op_append(x->graph, op);
	push(x, op);
	*made = op;
	if (!op->opdef)
		return om_op_fail(x->r->session, OM_UNSUPPORTED, op, "does not exist in the opset of the program");
	return om_op_infer(x->r->session, x->p, op);
}

/* What micro-batch `micro` has of a value. */
static om_value *
copy_of(const struct stage *x, om_value *v, uint32_t micro)
{
	return micro == ONCE ? (x->final[v->id] ? x->final[v->id] : v) : micro ? om_clone_mapped(&x->clone[micro], v) : v;
}

static om_status
send(struct stage *x, const struct message *m)
{
	const om_attr attr[] = {OM_MAKE_INT("peer", m->to), {0}};
	om_value *v = copy_of(x, m->v, m->micro);
	om_op *op;

	om_count(x->r, "sent", 1);
	om_count(x->r, "sent_bytes", om_value_bytes(v));
	return build(x, OM_DIST_DOMAIN, "Send", 1, &v, NULL, om_printf(x->r->scratch, "%s_sent", v->name), attr, STATIC, &op);
}

/* What a rank receives of a value: of the first micro-batch, and of the update, that value itself. */
static om_status
receive(struct stage *x, const struct message *m)
{
	om_shape shape = m->v->shape;
	om_value *out = m->v;
	om_op *op;

	if (m->micro == ONCE && x->is_final[m->v->id]) {
		out = x->final[m->v->id] = om_value_fresh(x->p, x->graph, om_printf(x->r->scratch, "%s_of_all", m->v->name));
		shape.dim[0] *= x->is_joined[m->v->id] ? x->micro : 1;
	} else if (m->micro != ONCE && m->micro > 0) {
		out = om_clone_value(&x->clone[m->micro], m->v, x->graph);
	}
	out->type = m->v->type;
	const om_attr attr[] = {OM_MAKE_INT("peer", m->from), OM_MAKE_INT("dtype", m->v->type.elem),
		OM_MAKE_INTS("shape", (size_t)shape.rank, shape.dim), {0}};
	om_count(x->r, "received", 1);
	return build(x, OM_DIST_DOMAIN, "Recv", 0, NULL, out, NULL, attr, STATIC, &op);
}

/* Messages up to a moment. */
static om_status
exchange(struct stage *x, size_t *at, uint64_t time)
{
	for (; *at < x->nmsg && x->msg[*at].time <= time; ++*at) {
		const struct message *m = &x->msg[*at];
		if (m->from == x->rank)
			OM_TRY(send(x, m));
		if (m->to == x->rank)
			OM_TRY(receive(x, m));
	}
	return OM_OK;
}

/* After an op has run for a micro-batch: sums go on. */
static om_status
add_sums(struct stage *x, const struct node *o, uint32_t micro)
{
	for (uint32_t k = 0; k < o->op->nout; k++) {
		om_value *v = o->op->out[k];
		om_op *add;
		if (!v || !x->is_final[v->id] || x->is_joined[v->id])
			continue;
		if (micro == 0) {
			x->sum[v->id] = v;
			continue;
		}
		om_value *in[] = {x->sum[v->id], copy_of(x, v, micro)};
		OM_TRY(build(x, "", "Add", 2, in, NULL, om_printf(x->r->scratch, "%s_sum", v->name), NULL, o->kind, &add));
		x->sum[v->id] = add->out[0];
	}
	return OM_OK;
}

static om_status
run_task(struct stage *x, const struct task *t)
{
	for (uint32_t k = 0; k < x->n; k++) {
		struct node *o = &x->node[k];
		om_op *copy = o->op;
		if (o->kind != t->kind || o->home != x->rank)
			continue;
		if (t->micro > 0)
			OM_TRY(om_op_clone(&x->clone[t->micro], o->op, x->graph, NULL, &copy));
		push(x, copy);
		OM_TRY(add_sums(x, o, t->micro));
	}
	return OM_OK;
}

/* A sum becomes a mean, copies become one value. */
static om_status
finish(struct stage *x, om_value *v)
{
	const om_attr axis[] = {OM_MAKE_INT("axis", 0), {0}};
	om_op *op;

	x->final[v->id] = v;
	if (x->micro == 1)
		return OM_OK;
	if (x->is_joined[v->id]) {
		om_value **all = OM_NEWN(x->r->scratch, om_value *, x->micro);
		for (uint32_t k = 0; k < x->micro; k++)
			all[k] = copy_of(x, v, k);
		OM_TRY(build(x, "", "Concat", x->micro, all, NULL, om_printf(x->r->scratch, "%s_of_all", v->name), axis, FORWARD, &op));
	} else {
		const om_dtype type = om_type_elem(&v->type);
		const om_shape scalar = om_shape_of(0, NULL);
		uint64_t data = 0;
		om_put(type, &data, 0, 1 / (double)x->micro);
		om_value *in[] = {x->sum[v->id], constant(x, "share", type, &scalar, &data, sizeof data)};
		OM_TRY(build(x, "", "Mul", 2, in, NULL, om_printf(x->r->scratch, "%s_mean", v->name), NULL, BACKWARD, &op));
	}
	x->final[v->id] = op->out[0];
	return OM_OK;
}

static om_status
finish_all(struct stage *x)
{
	for (uint32_t k = 0; k < x->nvalue; k++) {
		const struct node *o = x->is_final[k] ? maker(x, x->p->values[k]) : NULL;
		if (o && o->op->block && o->home == x->rank)
			OM_TRY(finish(x, x->p->values[k]));
	}
	return OM_OK;
}

/* Split has an attribute for the sizes of parts before opset 13. */
static bool
has_sizes_as_input(const om_prog *p)
{
	for (size_t k = 0; k < p->nopset; k++)
		if (*p->opset[k].domain == 0)
			return p->opset[k].version >= 13;
	return true;
}

/* The samples of all micro-batches are the parameter; each has its part of them. */
static om_status
divide_samples(struct stage *x, uint32_t k)
{
	om_value *part = x->graph->param[k];
	int64_t *size = OM_NEWN(x->r->scratch, int64_t, x->micro);
	const int64_t n = x->micro;
	const om_shape list = om_shape_of(1, &n);
	const char *name = part->name;

	if (x->micro == 1 || !x->is_sample[part->id])
		return OM_OK;
	if (!om_shape_is_known(&part->shape) || part->shape.rank == 0)
		return om_fail(x->r->session, OM_UNSUPPORTED, "%s cannot be divided into micro-batches: its shape must be known", name);
	om_value_rename(part, om_value_fresh(x->p, x->graph, om_printf(x->r->scratch, "%s_of_micro", name))->name);
	om_value *whole = om_value_new(x->p, x->graph, name);
	whole->type = part->type;
	whole->shape = part->shape;
	whole->shape.dim[0] *= n;
	whole->shape.sym[0] = NULL;
	whole->is_declared = true;
	x->graph->param[k] = whole;
	for (int64_t m = 0; m < n; m++)
		size[m] = part->shape.dim[0];
	const om_attr axis = OM_MAKE_INT("axis", 0);
	const om_attr sizes = OM_MAKE_INTS("split", (size_t)n, size);
	om_op *op = om_op_new(x->p, "", "Split", 0, has_sizes_as_input(x->p) ? 2 : 1, x->micro);
	om_op_set_in(op, 0, whole);
	if (op->nin == 2)
		om_op_set_in(op, 1, constant(x, "sizes", OM_INT64, &list, size, (size_t)n * sizeof *size));
	else
		om_op_add_attr(x->p, op, &sizes);
	for (uint32_t m = 0; m < x->micro; m++)
		om_op_set_out(op, m, m ? om_clone_value(&x->clone[m], part, x->graph) : part);
	om_op_add_attr(x->p, op, &axis);
	om_op_append(x->graph, op);
	push(x, op);
	if (!op->opdef)
		return om_op_fail(x->r->session, OM_UNSUPPORTED, op, "does not exist in the opset of the program");
	return om_op_infer(x->r->session, x->p, op);
}

/* Ops of other parts go; those of this part stay where they are until there is a new order. */
static void
remove_others(struct stage *x)
{
	for (uint32_t k = 0; k < x->n; k++)
		if (x->node[k].kind != STATIC && x->node[k].home != x->rank)
			om_op_remove(x->node[k].op);
}

static om_status
emit(struct stage *x)
{
	size_t at = 0;

	for (om_op *op = x->graph->first; op; op = op->next)
		if (op->is_folded || (x->node[x->node_of[op->id]].kind == STATIC && (x->node[x->node_of[op->id]].is_early || !x->is_training)))
			push(x, op);
	for (uint32_t k = 0; k < x->graph->nparam; k++)
		OM_TRY(divide_samples(x, k));
	for (uint32_t k = 0; k < x->ntask; k++) {
		OM_TRY(exchange(x, &at, task_at(x, x->rank, k)->start));
		OM_TRY(run_task(x, task_at(x, x->rank, k)));
	}
	OM_TRY(exchange(x, &at, x->after));
	OM_TRY(finish_all(x));
	for (uint32_t k = 0; k < x->n && x->is_training; k++) {
		const struct node *o = &x->node[k];
		OM_TRY(exchange(x, &at, update_time(x, o)));
		if ((o->kind == STATIC && !o->is_early) || (o->kind == UPDATE && o->home == x->rank))
			push(x, o->op);
	}
	return exchange(x, &at, UINT64_MAX);
}

/* ---- What reads the values that messages and means have made. ---- */

static bool
reads_final(const struct stage *x, const om_use *u)
{
	const om_op *op = om_use_op_in(x->graph, u);

	return op ? op->id < x->nop && !op->is_folded && x->node[x->node_of[op->id]].kind == UPDATE : u->block == x->graph;
}

static void
set_use(const om_use *u, om_value *v)
{
	if (u->op)
		om_op_set_in(u->op, u->index, v);
	else
		om_block_set_result(u->block, u->index, v);
}

static void
use_finals(const struct stage *x)
{
	for (uint32_t k = 0; k < x->nvalue; k++) {
		om_value *v = x->p->values[k], *final = x->final[k];
		for (om_use *u = v->first_use, *next; u && final && final != v; u = next) {
			next = u->next;
			if (reads_final(x, u))
				set_use(u, final);
		}
	}
}

/* What reads a value after it was sent reads the output of Send, which is computed in its place. */
static void
use_sent(const struct stage *x)
{
	uint32_t n = 0;

	for (om_op *op = x->graph->first; op; op = op->next)
		op->index = n++;
	for (om_op *op = x->graph->first; op; op = op->next) {
		if (strcmp(op->domain, OM_DIST_DOMAIN) != 0 || strcmp(op->type, "Send") != 0)
			continue;
		for (om_use *u = op->in[0]->first_use, *next; u; u = next) {
			const om_op *reader = om_use_op_in(x->graph, u);
			next = u->next;
			if (reader ? reader->index > op->index : u->block == x->graph)
				set_use(u, op->out[0]);
		}
	}
}

/* Results keep their names. */
static void
name_result(const struct stage *x, const char *name, om_value *v)
{
	om_value *was = om_value_find(x->graph, name);

	if (was == v)
		return;
	if (was)
		om_value_rename(was, om_value_fresh(x->p, x->graph, om_printf(x->r->scratch, "%s_of_rank", name))->name);
	om_value_rename(v, name);
}

/* The parameter, by its place, if the rank has it: all but states of other ranks. */
static bool
has_param(const struct stage *x, uint32_t k, const om_io_alias *alias, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (alias[i].param == k)
			return *resident(x, i, x->rank);
	return true;
}

static bool
has_result(const struct stage *x, uint32_t k, const om_io_alias *alias, uint32_t n, const om_value *v)
{
	for (uint32_t i = 0; i < n; i++)
		if (alias[i].result == k)
			return *resident(x, i, x->rank);
	return x->is_training || x->rank == 0 || !x->depends[v->id];
}

static uint32_t
place_in(om_value *const *list, uint32_t n, const om_value *v)
{
	uint32_t k = 0;

	while (k < n && list[k] != v)
		k++;
	return k;
}

/* What the results were before messages and means, and their names. */
struct results {
	om_value **was;
	const char **name;
	uint32_t n;
};

static void
set_io(struct stage *x, const struct results *r)
{
	om_block *b = x->graph;
	const om_io_alias *alias = x->p->io_alias;
	om_value *const *param = b->param, *const *result = b->result;
	const uint32_t n = x->p->nio_alias, nparam = b->nparam;
	uint32_t *place = OM_NEWN(x->r->scratch, uint32_t, (size_t)r->n + 1);

	om_prog_clear_ties(x->p);
	om_block_clear_results(b);
	b->param = NULL;
	b->nparam = 0;
	for (uint32_t k = 0; k < nparam; k++)
		if (has_param(x, k, alias, n))
			om_block_add_param(b, param[k]);
	for (uint32_t k = 0; k < r->n; k++)
		if (has_result(x, k, alias, n, r->was[k])) {
			place[k] = b->nresult;
			om_block_add_result(b, result[k]);
			name_result(x, r->name[k], result[k]);
		}
	for (uint32_t k = 0; k < n; k++)
		if (*resident(x, k, x->rank))
			om_prog_alias_io(x->p, place[alias[k].result], place_in(b->param, b->nparam, param[alias[k].param]));
	b->is_other = true;
}

static struct results
note_names(const struct stage *x)
{
	struct results r = {OM_NEWN(x->r->scratch, om_value *, (size_t)x->graph->nresult + 1),
		OM_NEWN(x->r->scratch, const char *, (size_t)x->graph->nresult + 1), x->graph->nresult};

	for (uint32_t k = 0; k < r.n; k++) {
		r.was[k] = x->graph->result[k];
		r.name[k] = om_strdup(x->r->scratch, r.was[k]->name);
	}
	return r;
}

/* Names of copies begin with what no other name begins with. */
static void
start_clones(struct stage *x)
{
	const char *stem = "micro";

	for (uint32_t k = 0; k < x->nvalue; k++)
		if (strncmp(x->p->values[k]->name, stem, strlen(stem)) == 0) {
			stem = om_printf(x->r->scratch, "%s_", stem);
			k = UINT32_MAX;
		}
	x->clone = OM_NEWN(x->r->scratch, om_clone, x->micro);
	for (uint32_t k = 1; k < x->micro; k++)
		x->clone[k] = om_clone_new(x->r->session, x->p, x->p, x->r->scratch, om_printf(x->r->scratch, "%s%" PRIu32 "/", stem, k));
}

static om_status
make_part(struct stage *x)
{
	const struct results r = note_names(x);

	start_clones(x);
	remove_others(x);
	OM_TRY(emit(x));
	if (x->norder != x->graph->nop)
		return om_fail(x->r->session, OM_IR, "stage: %zu ops are in order, of %" PRIu32, x->norder, x->graph->nop);
	om_block_set_order(x->graph, x->order);
	use_finals(x);
	use_sent(x);
	set_io(x, &r);
	return OM_OK;
}

/* ---- The pass. ---- */

static om_status
stage(struct stage *x)
{
	const om_prog *p = x->p;

	x->nvalue = p->nvalue;
	x->nop = p->nop;
	x->depends = OM_NEWN(x->r->scratch, bool, x->nvalue);
	x->is_sample = OM_NEWN(x->r->scratch, bool, x->nvalue);
	x->last_part = OM_NEWN(x->r->scratch, uint32_t, x->nvalue);
	x->of_state = OM_NEWN(x->r->scratch, bool, x->nvalue);
	x->sum = OM_NEWN(x->r->scratch, om_value *, x->nvalue);
	x->final = OM_NEWN(x->r->scratch, om_value *, x->nvalue);
	x->is_final = OM_NEWN(x->r->scratch, bool, x->nvalue);
	x->is_joined = OM_NEWN(x->r->scratch, bool, x->nvalue);
	find_nodes(x);
	find_samples(x);
	OM_TRY(find_kinds(x));
	OM_TRY(find_homes(x));
	om_prog_remove_folded(x->p);      /* which may read the shape of a value that another part computes */
	find_times(x);
	find_states(x);
	find_finals(x);
	OM_TRY(check_finals(x));
	OM_TRY(find_messages(x));
	return make_part(x);
}

static om_status
check_program(struct stage *x)
{
	bool has_update = false;

	for (const om_op *op = x->graph->first; op; op = op->next)
		has_update |= op->phase == OM_UPDATE;
	x->is_training = x->p->nio_alias > 0;
	if (x->is_training && !has_update)
		return om_fail(x->r->session, OM_USAGE, "stage requires a model without states, or a training step whose nodes declare which of them "
			"are the update (org.onnxmem.phase), as `onnxmem grad` writes it");
	return OM_OK;
}

static om_status
option(om_run *r, const char *name, uint64_t least, uint64_t most, uint32_t *out)
{
	uint64_t n;

	OM_TRY(om_option_number(r, name, &n));
	if (n < least || n > most)
		return om_fail(r->session, OM_USAGE, "stage: %s is a number from %" PRIu64 " to %" PRIu64, name, least, most);
	*out = (uint32_t)n;
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	struct stage x = {.r = r, .p = p, .graph = p->first};

	OM_TRY(option(r, "parts", 1, MOST_PARTS, &x.parts));
	OM_TRY(option(r, "rank", 0, x.parts - 1, &x.rank));
	OM_TRY(option(r, "micro", 1, MOST_MICRO, &x.micro));
	OM_TRY(option(r, "whole", 0, MOST_MICRO, &x.whole));
	OM_TRY(om_option_float(r, "scale", &x.scale));
	x.whole = x.whole ? x.whole : x.micro;
	OM_TRY(check_program(&x));
	return stage(&x);
}

static const om_pass_option options[] = {
	{"parts", "1", "number of parts, and of ranks"},
	{"rank", "0", "this one, whose part it is"},
	{"micro", "1", "micro-batches that a batch consists of"},
	{"whole", "0", "of a batch that is smaller than others: cut a step as for one of so many micro-batches; 0: as for this one"},
	{"scale", "1", "and these have so many times the samples"},
	{0}
};

static const om_pass_counter counters[] = {
	{"sent", "messages to other parts"},
	{"sent_bytes", "their sizes"},
	{"received", "messages from other parts"},
	{0}
};

OM_PASS(
	.name = "stage",
	.brief = "make a program one of the parts of a pipeline",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_STORE,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.options = options,
	.counters = counters,
	.run = run)
