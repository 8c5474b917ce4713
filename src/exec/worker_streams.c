/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of plans with streams of workers: a thread for each stream, which runs its ops in order and waits as the plan says.
 *
 * The verifier has checked that no op uses bytes that another stream may still use.  The first stream is run by the thread
 * that calls, with the memory of the executor; ops that run alone are there.  The others have a session, an arena for
 * temporary memory and a workspace of their own. */
#include <config.h>

#include "base/crew.h"
#include "base/guard.h"
#include "base/rng.h"
#include "exec/worker_streams.h"
#include "opdef/op_context.h"
#include "opdef/runs_alone.h"

/* What only steps in one thread may do: give memory to values.  Ops that run alone do. */
static bool
can_run_beside(const struct step *s)
{
	return !s->flow && !s->state && !s->op->device;
}

/* Poison and profiles follow the order of the plan, in one thread. */
static bool
wants_streams(const om_exec *e)
{
	const om_worker_streams *w = e->plan ? e->plan->streams : NULL;

	return w && w->n > 1 && !e->options.poison && !e->options.profile && !e->device;
}

static om_status
lane_new(om_exec *e, struct stream *s)
{
	struct lane *l = s->lane = OM_NEW(e->mem, struct lane);

	l->call = om_arena_new();
	l->budget.left = e->budget.left;  /* while steps are prepared, in this thread */
	om_arena_limit(l->call, &l->budget);
	l->session = om_session_new();
	return l->session ? OM_OK : om_fail(e->session, OM_MEMORY, "cannot allocate a session for a stream");
}

static om_status
enter_stream(om_exec *e, struct step *s)
{
	const uint32_t stream = e->plan->streams->op[s->op->id].stream;

	if (stream >= e->workers->n)
		return om_op_fail(e->session, OM_BADPLAN, s->op, "is in none of the streams of the plan");
	s->lane = e->workers->stream[stream].lane;
	if (!can_run_beside(s) && !om_op_runs_alone(s->op))
		return om_op_fail(e->session, OM_UNSUPPORTED, s->op, "is given memory in the run: it cannot run beside others");
	if (s->lane) {
		s->call.session = s->lane->session;
		s->call.mem = s->lane->call;
	}
	return OM_OK;
}

om_status
om_exec_streams_new(om_exec *e)
{
	const struct walk *walk = &e->walk[e->prog->first->id];

	if (!wants_streams(e))
		return OM_OK;
	struct worker_streams *w = e->workers = OM_NEW(e->mem, struct worker_streams);
	w->n = e->plan->streams->n;
	w->stream = OM_NEWN(e->mem, struct stream, w->n);
	for (uint32_t k = 1; k < w->n; k++)
		OM_TRY(lane_new(e, &w->stream[k]));
	for (uint32_t k = 0; k < walk->n; k++)
		OM_TRY(enter_stream(e, &walk->step[k]));
	e->nworker = 1;
	return OM_OK;
}

/* The turns of all streams, in the order of the plan. */
static void
list_turns(om_exec *e, struct step **step)
{
	const om_worker_streams *plan = e->plan->streams;
	struct worker_streams *w = e->workers;
	uint32_t *at = OM_NEWN(e->mem, uint32_t, e->prog->nop);

	for (uint32_t k = 0; k < w->n; k++)
		w->stream[k].turn = OM_NEWN(e->mem, struct turn, e->prog->first->nop);
	for (const om_op *op = e->prog->first->first; op; op = op->next) {
		const om_worker_op *o = &plan->op[op->id];
		if (op->is_folded || o->stream == OM_NO_STREAM)
			continue;
		struct stream *of = &w->stream[o->stream];
		struct turn *t = &of->turn[of->n++];
		*t = (struct turn){.step = step[op->id], .wait = OM_NEWN(e->mem, struct turn_wait, o->nwait), .nwait = o->nwait};
		for (uint32_t k = 0; k < o->nwait; k++)
			t->wait[k] = (struct turn_wait){plan->op[o->wait[k]].stream, at[o->wait[k]]};
		at[op->id] = of->n;
	}
}

/* The memory that is left is divided among the streams, which cannot share one budget. */
static void
divide_budget(om_exec *e)
{
	const uint64_t each = e->budget.left / e->workers->n;

	for (uint32_t k = 1; k < e->workers->n; k++) {
		om_arena_clear(e->workers->stream[k].lane->call);
		e->workers->stream[k].lane->budget.left = each;
		e->budget.left -= each;
	}
}

om_status
om_exec_streams_prepare(om_exec *e)
{
	const struct walk *walk = &e->walk[e->prog->first->id];

	if (!e->workers)
		return OM_OK;
	struct step **step = OM_NEWN(e->mem, struct step *, e->prog->nop);
	for (uint32_t k = 0; k < walk->n; k++)
		step[walk->step[k].op->id] = &walk->step[k];
	list_turns(e, step);
	divide_budget(e);
	e->workers->crew = om_crew_new(e->workers->n);
	if (!e->workers->crew)
		om_warn(e->session, "the system has no threads for %u streams: ops run one after the other", e->workers->n);
	return OM_OK;
}

void
om_exec_streams_free(om_exec *e)
{
	struct worker_streams *w = e->workers;

	if (!w)
		return;
	om_crew_free(w->crew);
	for (uint32_t k = 0; k < w->n; k++) {
		struct lane *l = w->stream[k].lane;
		if (!l)
			continue;
		om_room_free(e, &l->workspace);
		om_arena_free(l->call);
		om_session_free(l->session);
	}
}

/* ---- Runs. ---- */

static om_session *
session_of(const om_exec *e, const struct stream *s)
{
	return s->lane ? s->lane->session : e->session;
}

static om_status
run_turn(om_exec *e, const struct stream *s, const struct turn *t)
{
	if (!t->step)
		return OM_OK;
	if (om_session_is_stopped(e->session))
		return om_fail(session_of(e, s), OM_STOPPED, "the run was stopped");
	const om_status st = t->step->run(t->step);
	om_arena_clear(s->lane ? s->lane->call : e->call);
	return st;
}

/* Another stream that failed ends this one without a failure of its own. */
static om_status
run_turns(om_exec *e, struct stream *s, uint32_t k)
{
	struct om_crew *crew = e->workers->crew;

	for (uint32_t n = 0; n < s->n; n++) {
		const struct turn *t = &s->turn[n];
		for (uint32_t i = 0; i < t->nwait; i++)
			if (!om_crew_await(crew, t->wait[i].stream, t->wait[i].done))
				return OM_OK;
		OM_TRY(run_turn(e, s, t));
		om_crew_tell(crew, k, n + 1);
	}
	return OM_OK;
}

/* Each thread has a guard of its own against running out of memory. */
static om_status
run_guarded(om_exec *e, struct stream *s, uint32_t k)
{
	OM_GUARDED(session_of(e, s), run_turns(e, s, k));
}

static void
run_stream(void *arg, uint32_t k)
{
	om_exec *e = arg;
	struct stream *s = &e->workers->stream[k];

	s->st = run_guarded(e, s, k);
	if (s->st != OM_OK)
		om_crew_cancel(e->workers->crew);
}

/* ---- One thread, in a drawn order that the streams permit. ---- */

static bool
is_ready(const struct worker_streams *w, const uint32_t *done, uint32_t k)
{
	const struct stream *s = &w->stream[k];

	if (done[k] == s->n)
		return false;
	for (uint32_t i = 0; i < s->turn[done[k]].nwait; i++)
		if (done[s->turn[done[k]].wait[i].stream] < s->turn[done[k]].wait[i].done)
			return false;
	return true;
}

/* A stream goes on for a drawn number of ops, so that it gets far ahead of the others. */
static om_status
run_drawn(om_exec *e)
{
	enum { FAR = 16 };
	struct worker_streams *w = e->workers;
	uint32_t done[OM_MOST_WORKER_STREAMS] = {0}, left = 0;
	uint64_t rng = w->drawn;

	for (uint32_t k = 0; k < w->n; k++)
		left += w->stream[k].n;
	while (left) {
		const uint32_t k = (uint32_t)om_rng_below(&rng, w->n);
		struct stream *s = &w->stream[k];
		for (uint64_t n = 1 + om_rng_below(&rng, FAR); n && is_ready(w, done, k); n--, left--) {
			s->st = run_turn(e, s, &s->turn[done[k]++]);
			if (s->st != OM_OK)
				return OM_OK;
		}
	}
	return OM_OK;
}

/* The failure of the first stream that has one. */
static om_status
find_failure(om_exec *e)
{
	for (uint32_t k = 0; k < e->workers->n; k++) {
		const struct stream *s = &e->workers->stream[k];
		if (s->lane)
			e->budget.is_exceeded |= s->lane->budget.is_exceeded;
		if (s->st != OM_OK)
			return s->lane ? om_fail(e->session, s->st, "%s", om_message(s->lane->session)) : s->st;
	}
	return OM_OK;
}

static void
start(struct worker_streams *w)
{
	for (uint32_t k = 0; k < w->n; k++) {
		struct stream *s = &w->stream[k];
		s->st = OM_OK;
		if (!s->lane)
			continue;
		om_arena_clear(s->lane->call);  /* a failed run may have left allocations */
		s->lane->copied = 0;
		s->lane->budget.is_exceeded = false;
	}
}

om_status
om_exec_streams_run(om_exec *e)
{
	struct worker_streams *w = e->workers;

	if (!w || (!w->crew && !w->drawn))
		return om_walk_run(e, e->prog->first);
	start(w);
	e->stats.steps += e->walk[e->prog->first->id].nrun;
	if (w->drawn)
		OM_TRY(run_drawn(e));
	else
		om_crew_run(w->crew, run_stream, e);
	for (uint32_t k = 1; k < w->n; k++)
		e->stats.copied_bytes += w->stream[k].lane->copied;
	return find_failure(e);
}
