/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the simulated device: commands are checked when they are enqueued, and run in a drawn order. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/sim/sim.h"

enum { CHANGES = 16, EAGER = 4, POISON = 0x5a };

/* ---- Running. ---- */

static bool
is_ready(const om_stream *s)
{
	if (!s || s->head == s->n)
		return false;
	const struct command *c = &s->queue[s->head];
	return c->what != WAIT || !c->awaited || c->awaited->done >= c->awaited_seq;
}

static om_stream *
choose(const om_device *d)
{
	om_stream *best = NULL;

	for (int k = 0; k < SIM_STREAMS; k++)
		if (is_ready(d->stream[k]) && (!best || d->stream[k]->priority > best->priority))
			best = d->stream[k];
	return best;
}

static void
draw_priorities(om_device *d)
{
	for (int k = 0; k < SIM_STREAMS; k++)
		if (d->stream[k])
			d->stream[k]->priority = (uint32_t)om_rng(&d->rng);
}

static om_device_status
run_next(om_stream *s)
{
	struct command *c = &s->queue[s->head++];
	const om_device_status st = om_sim_run(s->device, c);

	s->done = c->seq;
	free(c->args);
	if (s->head == s->n)
		s->head = s->n = 0;
	if (om_rng_below(&s->device->rng, CHANGES) == 0)
		s->priority = (uint32_t)om_rng(&s->device->rng) >> 8;
	return st;
}

static om_device_status
take_late(om_device *d)
{
	const om_device_status st = d->late;

	d->late = OM_DEVICE_OK;
	return st;
}

om_device_status
om_sim_sync(om_stream *s)
{
	om_device *d = s->device;
	om_device_status st = take_late(d);

	if (st == OM_DEVICE_OK && s->is_captured)
		return om_sim_fail(d, OM_DEVICE_ARGUMENT, "the host waits for a stream whose commands are captured");
	draw_priorities(d);
	while (st == OM_DEVICE_OK && s->head < s->n) {
		om_stream *next = choose(d);
		if (!next)
			return om_sim_fail(d, OM_DEVICE_LOST, "streams wait for each other");
		st = run_next(next);
	}
	if (st == OM_DEVICE_OK)
		om_sim_join(d->host, s->clock);
	return st;
}

/* ---- Enqueuing. ---- */

static om_device_status
check_args(om_stream *s, const struct command *c)
{
	for (uint32_t k = 0; k < c->nargs; k++) {
		const om_arg *a = &c->args[k];
		if (a->kind == OM_ARG_VALUE || (!a->mem && !a->bytes))
			continue;
		const struct memory *m = om_sim_memory(s->device, a->mem);
		if (!m)
			return om_sim_fail(s->device, OM_DEVICE_ARGUMENT, "command %u uses memory %u, which does not exist or was freed",
				c->tag, (uint32_t)a->mem);
		if (a->at > m->bytes || a->bytes > m->bytes - a->at)
			return om_sim_fail(s->device, OM_DEVICE_ARGUMENT, "command %u uses %llu bytes from byte %llu of memory %u, which has %llu",
				c->tag, (unsigned long long)a->bytes, (unsigned long long)a->at, (uint32_t)a->mem,
				(unsigned long long)m->bytes);
	}
	return OM_DEVICE_OK;
}

static bool
grow(om_stream *s)
{
	if (s->n < s->cap)
		return true;
	const size_t cap = s->cap ? 2 * s->cap : 64;
	struct command *more = realloc(s->queue, cap * sizeof *more);
	if (!more)
		return false;
	s->queue = more;
	s->cap = cap;
	return true;
}

static om_device_status
keep_args(om_stream *s, struct command *c)
{
	om_arg *kept = c->nargs ? malloc(c->nargs * sizeof *kept) : NULL;

	if ((c->nargs && !kept) || !grow(s)) {
		free(kept);
		return om_sim_fail(s->device, OM_DEVICE_MEMORY, "there is no memory for the streams of the simulated device");
	}
	if (c->nargs)
		memcpy(kept, c->args, c->nargs * sizeof *kept);
	c->args = kept;
	return OM_DEVICE_OK;
}

/* The clock of a stream after a record or wait. */
static void
order(om_stream *s, struct command *c)
{
	om_event *e = c->event;

	if (c->what == RECORD) {
		e->is_captured = false;
		e->stream = s;
		e->seq = c->seq;
		memcpy(e->clock, s->clock, sizeof e->clock);
	} else if (c->what == WAIT && e->stream) {
		c->awaited = e->stream;
		c->awaited_seq = e->seq;
		om_sim_join(s->clock, e->clock);
	}
}

static void
count_uses(om_device *d, const struct command *c)
{
	for (uint32_t k = 0; k < c->nargs; k++) {
		struct memory *m = c->args[k].kind == OM_ARG_VALUE ? NULL : om_sim_memory(d, c->args[k].mem);
		if (m)
			m->queued++;
	}
}

/* A device may be fast: sometimes a command runs as soon as it may. */
static om_device_status
run_early(om_device *d)
{
	om_stream *s = om_rng_below(&d->rng, EAGER) == 0 ? choose(d) : NULL;

	return s ? run_next(s) : OM_DEVICE_OK;
}

/* Does a command that did not run yet use this memory of the host? */
static bool
is_used(const om_device *d, const char *from, uint64_t bytes)
{
	for (int k = 0; k < SIM_STREAMS; k++)
		for (size_t i = d->stream[k] ? d->stream[k]->head : 0; d->stream[k] && i < d->stream[k]->n; i++) {
			const struct command *c = &d->stream[k]->queue[i];
			if (c->host && c->host < from + bytes && from < c->host + c->args[0].bytes)
				return true;
		}
	return false;
}

/* Until the stream is synchronized with, the target has bytes that are wrong. */
static void
poison_target(const om_device *d, const struct command *c)
{
	if (c->args[0].bytes && !is_used(d, c->host, c->args[0].bytes))
		memset(c->host, POISON, c->args[0].bytes);
}

om_device_status
om_sim_put(om_stream *s, struct command c)
{
	om_device *d = s->device;
	om_device_status st = take_late(d);

	if (st == OM_DEVICE_OK)
		st = check_args(s, &c);
	if (st == OM_DEVICE_OK && om_sim_takes_part(s, &c))
		return om_sim_capture(s, &c);
	if (st == OM_DEVICE_OK && c.what == WAIT && c.event->is_captured)
		return om_sim_fail(d, OM_DEVICE_ARGUMENT, "a stream waits for an event that was recorded in a capture");
	if (st == OM_DEVICE_OK)
		st = keep_args(s, &c);
	if (st != OM_DEVICE_OK)
		return st;
	if (c.what == DOWNLOAD)
		poison_target(d, &c);
	om_sim_join(s->clock, d->host);
	c.seq = s->clock[s->id] = ++d->seq[s->id];
	order(s, &c);
	st = om_sim_enter(s, &c);
	count_uses(d, &c);
	s->queue[s->n++] = c;
	return st == OM_DEVICE_OK ? run_early(d) : st;
}

static om_arg
range(om_arg_kind kind, om_mem m, uint64_t at, uint64_t bytes)
{
	return (om_arg){.kind = kind, .mem = m, .at = at, .bytes = bytes};
}

om_device_status
om_sim_upload(om_stream *s, om_mem to, uint64_t at, const void *from, uint64_t bytes, uint32_t tag)
{
	om_arg a = range(OM_ARG_OUT, to, at, bytes);

	return om_sim_put(s, (struct command){.what = UPLOAD, .tag = tag, .args = &a, .nargs = 1, .host = (char *)from});
}

om_device_status
om_sim_download(om_stream *s, void *to, om_mem from, uint64_t at, uint64_t bytes, uint32_t tag)
{
	om_arg a = range(OM_ARG_IN, from, at, bytes);

	return om_sim_put(s, (struct command){.what = DOWNLOAD, .tag = tag, .args = &a, .nargs = 1, .host = to});
}

om_device_status
om_sim_copy(om_stream *s, om_mem to, uint64_t to_at, om_mem from, uint64_t from_at, uint64_t bytes, uint32_t tag)
{
	om_arg a[2] = {range(OM_ARG_OUT, to, to_at, bytes), range(OM_ARG_IN, from, from_at, bytes)};

	if (to == from && to_at < from_at + bytes && from_at < to_at + bytes)
		return om_sim_fail(s->device, OM_DEVICE_ARGUMENT, "command %u copies to a range that overlaps its source", tag);
	return om_sim_put(s, (struct command){.what = COPY, .tag = tag, .args = a, .nargs = 2});
}

om_device_status
om_sim_fill(om_stream *s, om_mem to, uint64_t at, uint64_t bytes, uint8_t byte, uint32_t tag)
{
	om_arg a = range(OM_ARG_OUT, to, at, bytes);

	return om_sim_put(s, (struct command){.what = FILL, .tag = tag, .args = &a, .nargs = 1, .byte = byte});
}

/* Has the list an argument for each letter of the parameters? */
static bool
fits(const om_gpu_kernel *k, const om_arg *args, uint32_t nargs)
{
	bool same = nargs <= SIM_ARGS && strlen(k->params) == nargs;

	for (uint32_t i = 0; same && i < nargs; i++)
		same = args[i].kind != OM_ARG_VALUE ? k->params[i] == 'm'
			: k->params[i] == (args[i].type == OM_ARG_F32 ? 'f' : args[i].type == OM_ARG_I64 ? 'l' : 'i');
	return same;
}

om_device_status
om_sim_launch(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args, uint32_t nargs, uint32_t tag)
{
	enum { MOST_BLOCKS = 65535 };

	if (!fits(code->kernel, args, nargs))
		return om_sim_fail(s->device, OM_DEVICE_ARGUMENT, "command %u has other arguments than its kernel %s, which takes %s", tag,
			code->kernel->name, code->kernel->params);
	if (g->threads == 0 || g->threads > OM_FIBERS_THREADS || g->blocks[0] == 0 || g->blocks[1] == 0 || g->blocks[2] == 0
	    || g->blocks[1] > MOST_BLOCKS || g->blocks[2] > MOST_BLOCKS || g->shared > OM_FIBERS_SHARED)
		return om_sim_fail(s->device, OM_DEVICE_ARGUMENT, "command %u has a grid of %u x %u x %u blocks of %u threads, which no device runs",
			tag, g->blocks[0], g->blocks[1], g->blocks[2], g->threads);
	return om_sim_put(s, (struct command){.what = LAUNCH, .tag = tag, .args = (om_arg *)args, .nargs = nargs,
		.kernel = code->kernel, .grid = *g});
}

om_device_status
om_sim_call(om_stream *s, om_device_function *f, void *user, const om_arg *args, uint32_t nargs, uint32_t tag)
{
	return om_sim_put(s, (struct command){.what = CALL, .tag = tag, .args = (om_arg *)args, .nargs = nargs, .function = f,
		.user = user});
}

om_device_status
om_sim_record(om_stream *s, om_event *e)
{
	return om_sim_put(s, (struct command){.what = RECORD, .event = e});
}

om_device_status
om_sim_wait(om_stream *s, om_event *e)
{
	return om_sim_put(s, (struct command){.what = WAIT, .event = e});
}

/* ---- Streams and events. ---- */

om_device_status
om_sim_stream_create(om_device *d, om_stream **out)
{
	uint32_t id = 0;

	*out = NULL;
	while (id < SIM_STREAMS && d->stream[id])
		id++;
	if (id == SIM_STREAMS)
		return om_sim_fail(d, OM_DEVICE_UNSUPPORTED, "the simulated device has %d streams at most", SIM_STREAMS);
	om_stream *s = calloc(1, sizeof *s);
	if (!s)
		return om_sim_fail(d, OM_DEVICE_MEMORY, "there is no memory for a stream of the simulated device");
	s->device = d;
	s->id = id;
	s->done = d->seq[id];
	s->priority = (uint32_t)om_rng(&d->rng);
	*out = d->stream[id] = s;
	return OM_DEVICE_OK;
}

void
om_sim_stream_free(om_stream *s)
{
	if (!s)
		return;
	for (size_t k = s->head; k < s->n; k++)
		free(s->queue[k].args);
	s->device->stream[s->id] = NULL;
	free(s->queue);
	free(s);
}

om_device_status
om_sim_event_create(om_device *d, om_event **out)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return om_sim_fail(d, OM_DEVICE_MEMORY, "there is no memory for an event of the simulated device");
	(*out)->device = d;
	return OM_DEVICE_OK;
}

void
om_sim_event_free(om_event *e)
{
	free(e);
}
