/* SPDX-License-Identifier: Apache-2.0 */
/* Captured runs of the simulated device: commands with the streams that they were in, which are enqueued again by a replay.
 *
 * A stream takes part from the first wait for an event of one that does.  A replay puts the commands of the stream that
 * began the capture into the one that replays, and those of others into streams of the graph; the first wait makes these
 * start after what was before the replay, and as they were joined at the end, what follows it comes after them. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "kernels/sim/sim.h"

struct om_device_graph {
	om_device *device;
	uint32_t origin;         /* the stream that began */
	om_stream *stream[SIM_STREAMS]; /* by stream of the capture: that of the graph; NULL: none */
	om_event **event;        /* by event of the capture */
	const om_event **captured;
	size_t nevent;
	struct command *command; /* with their own lists of arguments */
	uint32_t *in;            /* by command: its stream in the capture */
	size_t n;
};

om_device_status
om_sim_capture_begin(om_stream *s)
{
	om_device *d = s->device;

	if (d->capture)
		return om_sim_fail(d, OM_DEVICE_ARGUMENT, "a capture begins inside of another one");
	d->capture = calloc(1, sizeof *d->capture);
	if (!d->capture)
		return om_sim_fail(d, OM_DEVICE_MEMORY, "there is no memory for a capture");
	d->capture->device = d;
	d->capture->origin = s->id;
	s->is_captured = true;
	return OM_DEVICE_OK;
}

static bool
is_captured(const om_device_graph *g, const om_event *e)
{
	for (size_t k = 0; k < g->nevent; k++)
		if (g->captured[k] == e)
			return true;
	return false;
}

static bool
add_event(om_device_graph *g, om_event *e)
{
	if (is_captured(g, e))
		return true;
	om_event **event = realloc(g->event, (g->nevent + 1) * sizeof *event);
	g->event = event ? event : g->event;
	const om_event **captured = event ? realloc(g->captured, (g->nevent + 1) * sizeof *captured) : NULL;
	g->captured = captured ? captured : g->captured;
	if (!captured || om_sim_event_create(g->device, &event[g->nevent]) != OM_DEVICE_OK)
		return false;
	captured[g->nevent++] = e;
	return true;
}

static om_event *
own_event(const om_device_graph *g, const om_event *e)
{
	size_t k = 0;

	while (g->captured[k] != e)
		k++;
	return g->event[k];
}

bool
om_sim_takes_part(om_stream *s, const struct command *c)
{
	om_device_graph *g = s->device->capture;

	if (g && c->what == WAIT && is_captured(g, c->event))
		s->is_captured = true;
	return g && s->is_captured;
}

om_device_status
om_sim_capture(om_stream *s, const struct command *c)
{
	om_device_graph *g = s->device->capture;
	struct command *command = realloc(g->command, (g->n + 1) * sizeof *command);
	uint32_t *in = command ? realloc(g->in, (g->n + 1) * sizeof *in) : NULL;
	om_arg *args = c->nargs ? malloc(c->nargs * sizeof *args) : NULL;

	g->command = command ? command : g->command;
	g->in = in ? in : g->in;
	if (!command || !in || (c->nargs && !args) || (c->what == RECORD && !add_event(g, c->event))) {
		free(args);
		return om_sim_fail(s->device, OM_DEVICE_MEMORY, "there is no memory for a capture");
	}
	if (c->what == WAIT && !is_captured(g, c->event)) {
		free(args);
		return om_sim_fail(s->device, OM_DEVICE_ARGUMENT, "a captured stream waits for an event from outside of the capture");
	}
	if (c->what == RECORD)
		c->event->is_captured = true;
	if (c->nargs)
		memcpy(args, c->args, c->nargs * sizeof *args);
	command[g->n] = *c;
	command[g->n].args = args;
	in[g->n++] = s->id;
	return OM_DEVICE_OK;
}

/* Is the last command of each other stream a record that the first one waits for? */
static bool
is_joined(const om_device_graph *g, uint32_t stream)
{
	const om_event *last = NULL;
	bool joined = true;

	for (size_t k = 0; k < g->n; k++) {
		const struct command *c = &g->command[k];
		if (g->in[k] == stream) {
			last = c->what == RECORD ? c->event : NULL;
			joined = c->what == WAIT && joined;
		} else if (c->what == WAIT && c->event == last) {
			joined = true;
		}
	}
	return joined;
}

/* Which streams took part; from here on their commands run again. */
static void
leave_streams(om_device *d, bool *took_part)
{
	for (uint32_t k = 0; k < SIM_STREAMS; k++) {
		took_part[k] = d->stream[k] && d->stream[k]->is_captured;
		if (took_part[k])
			d->stream[k]->is_captured = false;
	}
}

static om_device_status
end_capture(om_device_graph *g)
{
	bool took_part[SIM_STREAMS];

	leave_streams(g->device, took_part);
	for (uint32_t k = 0; k < SIM_STREAMS; k++) {
		if (!took_part[k] || k == g->origin)
			continue;
		if (!is_joined(g, k))
			return om_sim_fail(g->device, OM_DEVICE_ARGUMENT, "stream %u takes part in a capture, but is not joined before its end", k);
		const om_device_status st = om_sim_stream_create(g->device, &g->stream[k]);
		if (st != OM_DEVICE_OK)
			return st;
	}
	return OM_DEVICE_OK;
}

om_device_status
om_sim_capture_end(om_stream *s, om_device_graph **out)
{
	om_device_graph *g = s->device->capture;

	*out = NULL;
	if (!g || g->origin != s->id)
		return om_sim_fail(s->device, OM_DEVICE_ARGUMENT, "a capture ends that did not begin in this stream");
	s->device->capture = NULL;
	const om_device_status st = end_capture(g);
	if (st == OM_DEVICE_OK)
		*out = g;
	else
		om_sim_graph_free(g);
	return st;
}

om_device_status
om_sim_replay(om_stream *s, om_device_graph *g)
{
	om_device_status st = OM_DEVICE_OK;

	for (size_t k = 0; k < g->n && st == OM_DEVICE_OK; k++) {
		struct command c = g->command[k];
		if (c.event)
			c.event = own_event(g, c.event);
		st = om_sim_put(g->in[k] == g->origin ? s : g->stream[g->in[k]], c);
	}
	return st;
}

void
om_sim_graph_free(om_device_graph *g)
{
	if (!g)
		return;
	for (size_t k = 0; k < g->n; k++)
		free(g->command[k].args);
	for (size_t k = 0; k < g->nevent; k++)
		om_sim_event_free(g->event[k]);
	for (uint32_t k = 0; k < SIM_STREAMS; k++)
		om_sim_stream_free(g->stream[k]);
	free(g->command);
	free(g->in);
	free(g->event);
	free(g->captured);
	free(g);
}
