/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches of a run that a device captures once and replays in later runs.
 *
 * A stretch is a list of ops on the device that follow each other in a block.  What is captured of it uses nothing but memory of the
 * device, whose handles and offsets stay the same until the caller binds other memory there: launches, and copies there.  Copies from and to
 * the host are made around it in each run, since the caller may bind other memory: those to the device before it, those to the
 * host after it.  A copy that cannot be moved so far, because another op of the stretch uses the same bytes, ends it, as ops of
 * the host do.  The copies of a state that stays on the device are left out; in a run that makes one, the stretch is enqueued
 * command by command.
 *
 * A capture knows no event from outside, and outside of it no event from inside is known.  So all streams are joined in the first
 * one before a stretch and its copies, and go on after them; inside, ops wait for each other as they do without a capture, and a
 * copy that was moved still waits and is waited for at its place.  This adds order and takes none away, so that what
 * om_streams_verify() has proven holds.
 *
 * Poison and profiles wait for each op, and a device may refuse: then the commands are enqueued in every run. */
#include <config.h>

#include "exec/device.h"

/* A graph of fewer commands costs as much as they do. */
enum { LEAST_COMMANDS = 2 };

struct device_stretch {
	const om_block *block;
	uint32_t first, n;       /* its steps in the walk of the block */
	bool uses[OM_MOST_STREAMS]; /* streams besides the first one */
	bool has_copies;         /* from or to the host, in every run */
	om_device_graph *graph;  /* NULL: not captured */
	bool is_refused;         /* the device could not capture it */
	bool is_replayed;        /* the last time that it ran */
};

/* ---- Finding them, after streams were chosen and arguments bound. ---- */

/* Bytes that an op of a stretch uses. */
struct range {
	om_mem mem;
	uint64_t from, to;
	bool writes;
	bool is_download;        /* by a copy to the host */
};

struct finder {
	struct device_run *d;
	const om_block *block;
	struct range *range;     /* of the stretch that is being found */
	size_t n, cap;
	bool has_download;
};

/* Is it a copy from or to the host that every run makes? */
static bool
is_around(const struct device_run *d, const om_op *op)
{
	return op->opdef->copies && !d->op[op->id].state;
}

static void
use(struct finder *f, om_mem mem, uint64_t at, uint64_t bytes, bool writes, bool is_download)
{
	const struct range r = {mem, at, at + bytes, writes, is_download};

	if (mem && bytes)
		OM_PUSH(f->d->exec->call, f->range, f->n, f->cap, r);
}

static void
use_place(struct finder *f, const om_value *v, bool writes, bool is_download)
{
	const struct device_place *p = v ? &f->d->place[v->id] : NULL;

	if (p)
		use(f, p->mem, p->at, p->bytes, writes, is_download);
}

/* What the commands of an op use; of a view that is made by a copy, too. */
static void
use_all(struct finder *f, const om_op *op)
{
	const struct device_op *o = &f->d->op[op->id];
	const om_copies copies = op->opdef->copies;

	for (uint32_t k = 0; k < o->nlaunch; k++)
		for (uint32_t i = 0; i < o->launch[k].nargs; i++) {
			const om_arg *a = &o->launch[k].args[i];
			if (a->kind != OM_ARG_VALUE)
				use(f, a->mem, a->at, a->bytes, a->kind != OM_ARG_IN, false);
		}
	for (uint32_t k = 0; o->nlaunch == 0 && copies != OM_COPIES_TO_DEVICE && k < op->nin; k++)
		use_place(f, op->in[k], false, copies == OM_COPIES_TO_HOST);
	for (uint32_t k = 0; o->nlaunch == 0 && copies != OM_COPIES_TO_HOST && k < op->nout; k++)
		use_place(f, op->out[k], true, false);
}

/* The ranges from `first` on are of one op: do they meet those of earlier ones, of which only copies to the host matter for an op that
 * stays at its place? */
static bool
meets(const struct finder *f, size_t first, bool stays)
{
	for (size_t i = 0; i < first; i++)
		for (size_t k = first; k < f->n && (!stays || f->range[i].is_download); k++) {
			const struct range *a = &f->range[i], *b = &f->range[k];
			if (a->mem == b->mem && a->from < b->to && b->from < a->to && (a->writes || b->writes))
				return true;
		}
	return false;
}

/* What the host has before the stretch: no copy of the stretch gives it. */
static bool
is_given(const struct finder *f, const om_value *v)
{
	return !f->has_download || !v->def || v->block != f->block;
}

/* Can the step be in the stretch?  Then its ranges are entered. */
static bool
is_inside(struct finder *f, const struct step *s)
{
	const size_t before = f->n;
	const om_op *op = s->op;

	if (s->run != om_exec_device_step)
		return false;
	if (op->opdef->copies && !is_around(f->d, op))
		return true;
	const bool is_upload = op->opdef->copies == OM_COPIES_TO_DEVICE, is_download = op->opdef->copies == OM_COPIES_TO_HOST;
	use_all(f, op);
	if ((!is_download && meets(f, before, !is_upload)) || (is_upload && !is_given(f, op->in[0])))
		return false;
	f->has_download |= is_download;
	return true;
}

static void
add_stretch(const struct finder *f, uint32_t first, uint32_t n)
{
	struct device_run *d = f->d;
	const struct step *step = d->exec->walk[f->block->id].step;
	uint32_t commands = 0;

	for (uint32_t k = first; k < first + n; k++)
		commands += d->op[step[k].op->id].nlaunch;
	if (commands < LEAST_COMMANDS)
		return;
	struct device_stretch *s = OM_NEW(d->exec->mem, struct device_stretch);
	*s = (struct device_stretch){.block = f->block, .first = first, .n = n};
	for (uint32_t k = first; k < first + n; k++) {
		const om_op *op = step[k].op;
		d->op[op->id].stretch = s;
		s->uses[d->streams.op[op->id].stream - 1] = true;
		s->has_copies |= is_around(d, op);
	}
	s->uses[0] = false;
}

static void
find_stretches(struct device_run *d, const om_block *b)
{
	const struct walk *w = &d->exec->walk[b->id];
	struct finder f = {.d = d, .block = b};

	for (uint32_t k = 0, n; k < w->n; k += n + !n) {
		f.n = 0;
		f.has_download = false;
		for (n = 0; k + n < w->n && is_inside(&f, &w->step[k + n]); n++)
			;
		add_stretch(&f, k, n);
	}
}

/* Events by which streams are joined in the first one, and go on after it. */
static om_status
make_events(struct device_run *d)
{
	for (uint32_t k = 0; d->streams.n > 1 && k < d->streams.n; k++)
		OM_TRY(om_exec_device_fail(d, d->ops->event_create(d->device, &d->joint[k]), NULL, "an event cannot be made"));
	return OM_OK;
}

om_status
om_exec_device_stretches(om_exec *e)
{
	struct device_run *d = e->device;
	const om_exec_options *o = &e->options;

	if (o->no_capture || o->poison || o->profile || !d->info.captures)
		return OM_OK;
	for (const om_block *b = e->prog->first; b; b = b->next)
		find_stretches(d, b);
	om_arena_clear(e->call);
	return make_events(d);
}

/* Before the first run nothing is known of what the caller binds in each of them. */
void
om_exec_device_forget(struct device_run *d)
{
	d->is_moved = d->exec->stats.runs > 0;
	for (uint32_t k = 0; k < d->exec->prog->nop; k++) {
		struct device_stretch *s = d->op[k].stretch;
		if (s && s->graph)
			d->ops->graph_free(s->graph);
		if (s)
			s->graph = NULL;
	}
}

void
om_exec_device_stretches_free(struct device_run *d)
{
	om_exec_device_forget(d);
	for (uint32_t k = 0; k < OM_MOST_STREAMS; k++)
		if (d->joint[k])
			d->ops->event_free(d->joint[k]);
}

/* ---- Order. ---- */

/* The event after all commands of stream `from`, and stream `to` waits for it. */
static om_device_status
order(struct device_run *d, uint32_t from, uint32_t to)
{
	const om_device_status st = d->ops->record(d->stream[from], d->joint[from]);

	return st == OM_DEVICE_OK ? d->ops->wait(d->stream[to], d->joint[from]) : st;
}

/* The streams of `uses`, or all of them, wait for the first one. */
static om_device_status
fork(struct device_run *d, const bool *uses)
{
	om_device_status st = OM_DEVICE_OK;

	for (uint32_t k = 1; k < d->streams.n && st == OM_DEVICE_OK; k++)
		if (!uses || uses[k])
			st = order(d, 0, k);
	return st;
}

/* The first one waits for the streams of `uses`, or all of them. */
static om_device_status
join(struct device_run *d, const bool *uses)
{
	om_device_status st = OM_DEVICE_OK;

	for (uint32_t k = 1; k < d->streams.n && st == OM_DEVICE_OK; k++)
		if (!uses || uses[k])
			st = order(d, k, 0);
	return st;
}

bool
om_exec_device_waits(const struct device_run *d, uint32_t id)
{
	const struct device_stretch *of = d->op[id].stretch;

	return d->capturing ? of == d->capturing : !(of && of->is_replayed);
}

/* ---- Running. ---- */

static struct step *
first_step(const struct device_run *d, const struct device_stretch *s)
{
	return &d->exec->walk[s->block->id].step[s->first];
}

/* The copies of one direction, in the first stream. */
static om_status
copy_around(struct device_run *d, const struct device_stretch *s, om_copies which)
{
	const struct step *step = first_step(d, s);

	for (uint32_t k = 0; k < s->n; k++)
		if (step[k].op->opdef->copies == which && is_around(d, step[k].op))
			OM_TRY(om_exec_device_copy(d, &step[k], d->stream[0]));
	return OM_OK;
}

/* Ops of bodies are in the first stream, and the others are empty while they run.  There the host waits after copies, since its memory is
 * used in every iteration. */
static om_status
replay(struct device_run *d, struct device_stretch *s)
{
	const bool is_body = s->block != d->exec->prog->first;
	const om_op *op = first_step(d, s)->op;

	if (!is_body)
		OM_TRY(om_exec_device_fail(d, join(d, NULL), op, "streams cannot be joined"));
	OM_TRY(copy_around(d, s, OM_COPIES_TO_DEVICE));
	OM_TRY(om_exec_device_fail(d, d->ops->replay(d->stream[0], s->graph), op, "the captured commands from here on cannot be started"));
	OM_TRY(copy_around(d, s, OM_COPIES_TO_HOST));
	s->is_replayed = true;
	d->exec->stats.replays++;
	if (is_body)
		return s->has_copies ? om_exec_device_sync(d, 1, op) : OM_OK;
	return om_exec_device_fail(d, fork(d, NULL), op, "streams cannot be divided");
}

/* A copy that is made around the stretch keeps its waits. */
static om_status
put_steps(struct device_run *d, const struct device_stretch *s)
{
	struct step *step = first_step(d, s);

	for (uint32_t k = 0; k < s->n; k++) {
		OM_TRY(om_exec_device_before(d->exec, step[k].op));
		OM_TRY(is_around(d, step[k].op) ? om_exec_device_record(d, step[k].op) : om_exec_device_step(&step[k]));
	}
	return OM_OK;
}

static om_status
put_captured(struct device_run *d, const struct device_stretch *s, const om_op *op)
{
	OM_TRY(om_exec_device_fail(d, fork(d, s->uses), op, "the streams of a capture cannot be divided"));
	OM_TRY(put_steps(d, s));
	return om_exec_device_fail(d, join(d, s->uses), op, "the streams of a capture cannot be joined");
}

/* A device that cannot capture these commands, or has no memory for it, runs them without. */
static om_status
refuse(struct device_run *d, struct device_stretch *s, om_device_status st, const om_op *op)
{
	s->is_refused = st == OM_DEVICE_UNSUPPORTED || st == OM_DEVICE_MEMORY;
	return s->is_refused ? OM_OK : om_exec_device_fail(d, st, op, "its commands cannot be captured");
}

void
om_exec_device_abandon(struct device_run *d)
{
	om_device_graph *part;

	if (!d->capturing)
		return;
	d->capturing = NULL;
	d->ops->capture_end(d->stream[0], &part);
	if (part)
		d->ops->graph_free(part);
}

/* After a failure the caller abandons what was captured so far. */
static om_status
capture(struct device_run *d, struct device_stretch *s, const om_op *op)
{
	const uint64_t before = d->commands;
	om_device_status st = d->ops->capture_begin(d->stream[0]);

	if (st != OM_DEVICE_OK)
		return refuse(d, s, st, op);
	d->capturing = s;
	OM_TRY(put_captured(d, s, op));
	d->capturing = NULL;
	st = d->ops->capture_end(d->stream[0], &s->graph);
	if (st != OM_DEVICE_OK)
		return refuse(d, s, st, op);
	d->exec->stats.captured_commands += d->commands - before;
	return OM_OK;
}

/* Are all states of the stretch where they stay, so that none of them is copied? */
static bool
has_states(const struct device_run *d, const struct device_stretch *s)
{
	const struct step *step = first_step(d, s);
	bool has = true;

	for (uint32_t k = 0; k < s->n; k++) {
		const struct device_state *state = d->op[step[k].op->id].state;
		has = has && (!state || state->is_there);
	}
	return has;
}

om_status
om_exec_device_replay(om_exec *e, const struct step *step, uint32_t *n)
{
	struct device_run *d = e->device;
	struct device_stretch *s = d->op[step->op->id].stretch;

	*n = 0;
	if (!s || step != first_step(d, s) || s->is_refused)
		return OM_OK;
	s->is_replayed = false;
	if (!has_states(d, s))
		return OM_OK;
	if (!s->graph && !d->is_moved)
		OM_TRY(capture(d, s, step->op));
	if (!s->graph)
		return OM_OK;
	*n = s->n;
	return replay(d, s);
}
