/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of the plan of a set, by a simulation of runs.
 *
 * It knows where parts and buffers are, and which part reads and writes what; lifetimes are not looked at.  A loop runs any
 * number of times, so that a value with two buffers, which take turns, may be in either: both are taken to hold it. */
#include <config.h>

#include "base/guard.h"
#include "set/set.h"

enum { ITERATIONS = 3 };  /* of a loop: what one leaves is what the next one finds */

struct bytes {
	uint64_t from, to;
	const char *name;
};

struct simulation {
	om_set *x;
	bool *is_written, *is_intact;  /* by value */
	bool *is_sure;                 /* by value: it was written, however often loops ran */
	bool *before;                  /* by value, three times: the others before the loop that runs */
	const char **destroyer;        /* by value: the part that wrote over it */
	struct bytes *used;            /* by the part that runs */
	uint32_t nused;
};

static struct bytes
place_of(const om_set_value *v, uint32_t buffer)
{
	return (struct bytes){v->offset[buffer], v->offset[buffer] + v->bytes, v->name};
}

static bool
overlap(const struct bytes *a, const struct bytes *b)
{
	return a->from < b->to && b->from < a->to;
}

/* The running part uses these bytes; nothing else of it may. */
static om_status
use(struct simulation *m, const struct part *p, struct bytes b)
{
	const om_set *x = m->x;

	if (b.from == b.to)
		return OM_OK;
	if (b.to > x->plan.bytes || b.to < b.from)
		return om_fail(x->session, OM_BADPLAN, "%s ends at byte %llu of an arena of %llu", b.name, (unsigned long long)b.to,
			(unsigned long long)x->plan.bytes);
	if (b.from % x->plan.align != 0)
		return om_fail(x->session, OM_BADPLAN, "%s is at byte %llu, which is not aligned to %llu", b.name, (unsigned long long)b.from,
			(unsigned long long)x->plan.align);
	for (uint32_t k = 0; k < m->nused; k++)
		if (overlap(&m->used[k], &b))
			return om_fail(x->session, OM_BADPLAN, "while part %s runs, %s and %s are both at byte %llu", p->pub.name, m->used[k].name,
				b.name, (unsigned long long)(m->used[k].from > b.from ? m->used[k].from : b.from));
	m->used[m->nused++] = b;
	return OM_OK;
}

/* What is written is lost for all others that are there. */
static void
write_over(struct simulation *m, const struct part *p, struct bytes b, uint32_t but)
{
	for (uint32_t k = 0; k < m->x->nvalue; k++) {
		const om_set_value *v = &m->x->value[k];
		for (uint32_t i = 0; i < v->nbuffer && k != but; i++) {
			const struct bytes at = place_of(v, i);
			if (!m->is_intact[k] || !overlap(&at, &b))
				continue;
			m->is_intact[k] = false;
			m->destroyer[k] = p->pub.name;
		}
	}
}

static void
write_value(struct simulation *m, const struct part *p, uint32_t k)
{
	const om_set_value *v = &m->x->value[k];

	for (uint32_t i = 0; i < v->nbuffer; i++)
		write_over(m, p, place_of(v, i), k);
	m->is_written[k] = m->is_intact[k] = m->is_sure[k] = true;
}

/* A value that no part may have written yet is the caller's, who gives it for this run. */
static om_status
read_value(struct simulation *m, const struct part *p, uint32_t k)
{
	const om_set_value *v = &m->x->value[k];

	if (m->is_written[k] && !m->is_intact[k])
		return om_fail(m->x->session, OM_BADPLAN, "part %s reads %s, over which part %s has written", p->pub.name, v->name,
			m->destroyer[k]);
	if (!m->is_sure[k])
		write_value(m, p, k);
	return OM_OK;
}

static bool
has_end(const om_set_value *v, uint32_t part, bool is_output, uint32_t *index)
{
	for (uint32_t k = 0; k < v->nend; k++)
		if (v->end[k].part == part && v->end[k].is_output == is_output) {
			*index = v->end[k].index;
			return true;
		}
	return false;
}

static om_status
run_part(struct simulation *m, uint32_t part)
{
	om_set *x = m->x;
	const struct part *p = &x->part[part];
	const struct bytes arena = {p->pub.offset, p->pub.offset + p->pub.bytes, p->pub.name};
	uint32_t index;

	m->nused = 0;
	OM_TRY(use(m, p, arena));
	for (uint32_t k = 0; k < x->nvalue; k++) {
		const om_set_value *v = &x->value[k];
		const bool reads = has_end(v, part, false, &index), writes = has_end(v, part, true, &index);
		if (reads)
			OM_TRY(read_value(m, p, k));
		for (uint32_t i = 0; i < v->nbuffer && (reads || writes); i++)
			OM_TRY(use(m, p, place_of(v, i)));
	}
	write_over(m, p, arena, UINT32_MAX);
	for (uint32_t k = 0; k < x->nvalue; k++) {
		const om_set_value *v = &x->value[k];
		if (!has_end(v, part, true, &index))
			continue;
		const bool reads = has_end(v, part, false, &(uint32_t){0}), in_place = reads && p->in_place[index];
		if (reads && !in_place && v->nbuffer < 2)
			return om_fail(x->session, OM_BADPLAN, "part %s reads %s and writes it elsewhere, and it has one buffer", p->pub.name, v->name);
		write_value(m, p, k);
	}
	return OM_OK;
}

static void
enter_loop(struct simulation *m)
{
	for (uint32_t k = 0, n = m->x->nvalue; k < n; k++) {
		m->before[k] = m->is_written[k];
		m->before[n + k] = m->is_intact[k];
		m->before[2 * n + k] = m->is_sure[k];
	}
}

/* The loop may also have been left out. */
static void
leave_loop(struct simulation *m)
{
	for (uint32_t k = 0, n = m->x->nvalue; k < n; k++) {
		m->is_intact[k] = m->is_intact[k] && (m->before[n + k] || !m->before[k]);
		m->is_sure[k] = m->before[2 * n + k];
	}
}

/* All parts in their order; a loop that starts here runs several times. */
static om_status
run_all(struct simulation *m)
{
	const om_set *x = m->x;

	for (uint32_t k = 0; k < x->npart; k++) {
		uint32_t last = k, times = 1;
		for (uint32_t l = 0; l < x->nloop; l++)
			if (x->loop[l].first == k) {
				last = x->loop[l].last;
				times = ITERATIONS;
			}
		enter_loop(m);
		for (uint32_t i = 0; i < times; i++)
			for (uint32_t part = k; part <= last; part++)
				OM_TRY(run_part(m, part));
		if (times > 1)
			leave_loop(m);
		k = last;
	}
	return OM_OK;
}

static om_status
verify_guarded(om_set *x)
{
	if (!x->is_planned)
		return om_fail(x->session, OM_USAGE, "%s has no plan", x->path);
	om_arena *mem = om_arena_new();
	struct simulation m = {.x = x, .is_written = OM_NEWN(mem, bool, x->nvalue), .is_intact = OM_NEWN(mem, bool, x->nvalue),
		.is_sure = OM_NEWN(mem, bool, x->nvalue), .before = OM_NEWN(mem, bool, 3 * (size_t)x->nvalue),
		.destroyer = OM_NEWN(mem, const char *, x->nvalue),
		.used = OM_NEWN(mem, struct bytes, 2 * (size_t)x->nvalue + 1)};
	const om_status st = run_all(&m);

	om_arena_free(mem);
	return st;
}

om_status
om_set_verify(om_set *x)
{
	OM_GUARDED(x->session, verify_guarded(x));
}
