/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of workers: which op runs in which one, and what it waits for.
 *
 * Ops are taken in the order of the schedule, which is the order of each stream.  One goes where it starts first, by the
 * costs of ops and by what it costs to wait for another worker; a view, which costs nothing, where its input is computed.
 * If the model of the times is not faster than one worker, all ops are in the first stream: the arena is smaller then.
 *
 * An op waits for the ops that compute what it reads.  Of these it names those that neither the order of its stream nor
 * another wait puts before it: a vector clock for each op says how much of each stream is done before it.  Later ops are
 * named first, as their clocks have more of the others, so no wait follows from the rest, and none can be left out.
 *
 * Ops that run alone (opdef/runs_alone.h) are in the first stream, after all ops before them and before all after them.
 *
 * verify/verify_worker_streams.c checks the result. */
#include <config.h>

#include "alloc/worker_streams.h"
#include "ir/query.h"
#include "opdef/op_time.h"
#include "opdef/runs_alone.h"

enum { MOST = OM_MOST_WORKER_STREAMS };

static const double wait_ns = 3000, least_gain = 0.02;

struct work {
	const om_prog *p;
	om_arena *mem, *tmp;         /* of the result, and of this search */
	om_worker_streams *out;
	double *cost, *finish;       /* by op id */
	uint32_t *at;                /* by op id: position in its stream, from 1; 0: none yet */
	uint32_t *place;             /* by op id: position in the schedule */
	uint32_t (*clock)[MOST];     /* by op id: ops of each stream that are done when it is */
	uint32_t *seen;              /* by op id: 1 + the id of the last op that needs it */
	double free[MOST];           /* when the stream has finished its last op */
	const om_op *last[MOST];
	const om_op *alone;          /* the last op that ran alone */
	const om_op **need;          /* ops that the current one comes after */
	size_t nneed, capneed;
};

/* ---- What an op comes after. ---- */

static void
need(struct work *w, const om_op *op, const om_op *from)
{
	if (!from || w->seen[from->id] == op->id + 1)
		return;
	w->seen[from->id] = op->id + 1;
	OM_PUSH(w->tmp, w->need, w->nneed, w->capneed, from);
}

struct reader {
	struct work *w;
	const om_op *op;
};

static void
need_value(void *arg, om_value *v)
{
	const struct reader *r = arg;

	if (v->def && v->def->block == r->w->p->first && !v->def->is_folded)
		need(r->w, r->op, v->def);
}

static void
list_needs(struct work *w, const om_op *op)
{
	w->nneed = 0;
	om_op_each_read(op, need_value, &(struct reader){w, op});
	need(w, op, w->alone);
	for (uint32_t k = 0; om_op_runs_alone(op) && k < w->out->n; k++)
		need(w, op, w->last[k]);
}

/* ---- The stream of an op. ---- */

static uint32_t
stream_of(const struct work *w, const om_op *op)
{
	return w->out->op[op->id].stream;
}

/* When the op would start in this stream. */
static double
start_in(const struct work *w, uint32_t stream)
{
	double start = w->free[stream];

	for (size_t k = 0; k < w->nneed; k++) {
		const double is_there = w->finish[w->need[k]->id] + (stream_of(w, w->need[k]) == stream ? 0 : wait_ns);
		start = is_there > start ? is_there : start;
	}
	return start;
}

/* The stream of the op among those needed that is done last; the first one if nothing is needed. */
static uint32_t
stream_of_input(const struct work *w)
{
	const om_op *last = NULL;

	for (size_t k = 0; k < w->nneed; k++)
		if (!last || w->finish[w->need[k]->id] > w->finish[last->id])
			last = w->need[k];
	return last ? stream_of(w, last) : 0;
}

static uint32_t
choose(const struct work *w, const om_op *op)
{
	uint32_t best = stream_of_input(w);

	if (om_op_runs_alone(op))
		return 0;
	for (uint32_t k = 0; k < w->out->n && w->cost[op->id] > 0; k++)
		if (start_in(w, k) < start_in(w, best))
			best = k;
	return best;
}

/* ---- Waits. ---- */

static void
join(uint32_t *clock, const uint32_t *other)
{
	for (int k = 0; k < MOST; k++)
		clock[k] = other[k] > clock[k] ? other[k] : clock[k];
}

/* Later ops first; few ops need many others. */
static void
sort_needs(struct work *w)
{
	for (size_t k = 1; k < w->nneed; k++)
		for (size_t i = k; i > 0 && w->place[w->need[i - 1]->id] < w->place[w->need[i]->id]; i--) {
			const om_op *swapped = w->need[i];
			w->need[i] = w->need[i - 1];
			w->need[i - 1] = swapped;
		}
}

static void
put(struct work *w, const om_op *op, uint32_t stream)
{
	om_worker_op *o = &w->out->op[op->id];
	uint32_t *wait = OM_NEWN(w->mem, uint32_t, w->nneed), *clock = w->clock[op->id];

	if (w->last[stream])
		memcpy(clock, w->clock[w->last[stream]->id], sizeof w->clock[op->id]);
	sort_needs(w);
	for (size_t k = 0; k < w->nneed; k++) {
		const uint32_t id = w->need[k]->id;
		if (clock[stream_of(w, w->need[k])] >= w->at[id])
			continue;
		join(clock, w->clock[id]);
		wait[o->nwait++] = id;
	}
	o->stream = stream;
	o->wait = wait;
	w->finish[op->id] = start_in(w, stream) + w->cost[op->id];
	w->free[stream] = w->finish[op->id];
	w->at[op->id] = ++clock[stream];
	w->last[stream] = op;
	w->alone = om_op_runs_alone(op) ? op : w->alone;
	w->out->nwait += o->nwait;
	w->out->work_ns += w->cost[op->id];
	w->out->span_ns = w->finish[op->id] > w->out->span_ns ? w->finish[op->id] : w->out->span_ns;
}

/* ---- All. ---- */

/* With streams for `used` workers, of the `n` that are requested. */
static om_worker_streams *
streams_for(const om_prog *p, const om_schedule *s, uint32_t n, uint32_t used, om_arena *mem)
{
	om_worker_streams *out = OM_NEW(mem, om_worker_streams);
	om_arena *tmp = om_arena_new();
	struct work w = {.p = p, .mem = mem, .tmp = tmp, .out = out, .cost = OM_NEWN(tmp, double, p->nop), .finish = OM_NEWN(tmp, double, p->nop),
		.at = OM_NEWN(tmp, uint32_t, p->nop), .place = OM_NEWN(tmp, uint32_t, p->nop), .seen = OM_NEWN(tmp, uint32_t, p->nop),
		.clock = om_allocn(tmp, sizeof *w.clock, p->nop)};

	*out = (om_worker_streams){.n = used, .nop = p->nop, .op = OM_NEWN(mem, om_worker_op, p->nop)};
	for (uint32_t k = 0; k < p->nop; k++)
		out->op[k].stream = OM_NO_STREAM;
	for (om_op *const *at = s->ops[p->first->id]; *at; at++) {
		const om_op *op = *at;
		if (op->is_folded)
			continue;
		w.place[op->id] = s->of_op[op->id].first;
		w.cost[op->id] = om_op_time(op);
		list_needs(&w, op);
		put(&w, op, choose(&w, op));
	}
	out->n = n;
	om_arena_free(tmp);
	return out;
}

const om_schedule *
om_schedule_in_streams(const om_prog *p, const om_schedule *s, const om_plan_request *r, om_arena *mem)
{
	if (r->streams == (s->streams ? s->streams->n : 0))
		return s;
	om_schedule *with = om_memdup(mem, s, sizeof *s);
	with->streams = NULL;
	if (!r->streams)
		return with;
	om_worker_streams *streams = streams_for(p, s, r->streams, r->streams, mem);
	if (streams->span_ns > (1 - least_gain) * streams->work_ns)
		streams = streams_for(p, s, r->streams, 1, mem);
	with->streams = streams;
	return with;
}
