/* SPDX-License-Identifier: Apache-2.0 */
/* Vector clocks: is there an order between two commands that use the same bytes?
 *
 * The clock of a command has, for each stream, the number of the last command that is before it.  Of a memory only the
 * accesses are kept that a later command can conflict with and that no later access stands for: a range that is inside
 * one that is written after it, or read after it in the same way, is left out, since what is after the later access is
 * after both. */
#include <config.h>

#include <stdlib.h>

#include "kernels/sim/sim.h"

void
om_sim_join(uint32_t *clock, const uint32_t *other)
{
	for (int k = 0; k < SIM_STREAMS; k++)
		if (clock[k] < other[k])
			clock[k] = other[k];
}

static bool
is_before(const struct access *a, const om_stream *s)
{
	return a->seq <= s->clock[a->stream];
}

static bool
is_covered(const struct access *old, const struct access *by, const om_stream *s)
{
	return is_before(old, s) && by->from <= old->from && old->to <= by->to && (by->writes || !old->writes);
}

static om_device_status
race(om_stream *s, const struct access *a, const struct access *b, const char *where, uint32_t number)
{
	return om_sim_fail(s->device, OM_DEVICE_RACE, "command %u of stream %u %s bytes %llu to %llu of %s %u, which command "
		"%u of stream %u %s, and no event orders them", a->tag, a->stream, a->writes ? "writes" : "reads",
		(unsigned long long)a->from, (unsigned long long)a->to, where, number, b->tag, b->stream,
		b->writes ? "writes" : "reads");
}

/* Enter an access of a command whose number its stream's clock has already. */
static om_device_status
enter(om_stream *s, struct accesses *all, struct access a, const char *where, uint32_t number)
{
	size_t kept = 0;

	for (size_t k = 0; k < all->n; k++) {
		const struct access *b = &all->a[k];
		if (b->seq <= s->device->host[b->stream] && !(b->stream == a.stream && b->seq == a.seq))
			continue;
		if ((a.writes || b->writes) && a.from < b->to && b->from < a.to && !is_before(b, s))
			return race(s, &a, b, where, number);
		if (!is_covered(b, &a, s))
			all->a[kept++] = *b;
	}
	all->n = kept;
	if (all->n == all->cap) {
		const size_t cap = all->cap ? 2 * all->cap : 16;
		struct access *more = realloc(all->a, cap * sizeof *more);
		if (!more)
			return om_sim_fail(s->device, OM_DEVICE_MEMORY, "there is no memory for the clocks of the simulated device");
		all->a = more;
		all->cap = cap;
	}
	all->a[all->n++] = a;
	return OM_DEVICE_OK;
}

static om_device_status
enter_host(om_stream *s, const struct command *c)
{
	const uint64_t from = (uint64_t)(uintptr_t)c->host;

	if (!c->host || c->args[0].bytes == 0)
		return OM_DEVICE_OK;
	return enter(s, &s->device->host_accesses, (struct access){from, from + c->args[0].bytes, c->what == DOWNLOAD, s->id,
		c->seq, c->tag}, "memory of the host", 0);
}

om_device_status
om_sim_enter(om_stream *s, const struct command *c)
{
	om_device_status st = OM_DEVICE_OK;

	if (s->device->is_unchecked)
		return OM_DEVICE_OK;
	for (uint32_t k = 0; k < c->nargs && st == OM_DEVICE_OK; k++) {
		const om_arg *a = &c->args[k];
		if (a->kind == OM_ARG_VALUE || !a->mem || !a->bytes)
			continue;
		st = enter(s, &om_sim_memory(s->device, a->mem)->accesses, (struct access){a->at, a->at + a->bytes,
			a->kind != OM_ARG_IN, s->id, c->seq, c->tag}, "memory", (uint32_t)a->mem);
	}
	return st == OM_DEVICE_OK ? enter_host(s, c) : st;
}
