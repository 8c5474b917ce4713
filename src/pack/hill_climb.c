/* SPDX-License-Identifier: Apache-2.0 */
/* Hill climbing: small changes of an order, kept if the packing does not get worse.
 *
 * For small components that neither the skyline nor the complete search supports.
 * A step moves one buffer, usually one above the goal, to another position in the
 * order, and packs again.  The objective is the sum of the bytes by which buffers
 * exceed the goal: almost every step changes it, whereas the height seldom changes.
 * Steps of equal cost are accepted, so the search moves along plateaus; after many
 * steps without gain it restarts from the next order.
 *
 * The random numbers depend on the component alone.  It terminates when no buffer
 * exceeds the goal, or at the limit of work or restarts.
 */
#include <config.h>

#include "base/rng.h"
#include "pack/packer.h"

enum { MAX_STUCK = 1500, MAX_RESTARTS = 1000 };   /* steps without gain; restarts */

struct climb {
	om_greedy *g;
	const om_component *component;
	uint32_t *order, n;
	uint64_t *best;              /* offsets, by index in component->item */
	uint64_t height;
	uint64_t state;
};

static uint32_t
random_below(struct climb *c, uint32_t n)
{
	return (uint32_t)om_rng_below(&c->state, n);
}

static uint64_t
excess(const struct climb *c, uint32_t b)
{
	const uint64_t end = c->component->buf[b].offset + c->component->buf[b].bytes;
	return end > c->component->goal ? end - c->component->goal : 0;
}

/* Pack by the order; returns the bytes by which buffers exceed the goal. */
static double
pack_order(struct climb *c, om_fit fit)
{
	const uint64_t height = om_greedy_run(c->g, c->order, c->n, fit);
	double sum = 0;

	for (uint32_t k = 0; k < c->n; k++)
		sum += (double)excess(c, c->order[k]);
	if (height < c->height) {
		c->height = height;
		for (uint32_t k = 0; k < c->component->nitem; k++)
			c->best[k] = c->component->buf[c->component->item[k]].offset;
	}
	return sum;
}

static void
move_entry(uint32_t *order, uint32_t from, uint32_t to)
{
	const uint32_t moved = order[from];

	if (from < to)
		memmove(order + from, order + from + 1, (to - from) * sizeof *order);
	else
		memmove(order + to + 1, order + to, (from - to) * sizeof *order);
	order[to] = moved;
}

/* Draw a position in the order: three times in four that of a buffer above the
 * goal. */
static uint32_t
draw_position(struct climb *c)
{
	const uint32_t start = random_below(c, c->n);

	if (random_below(c, 4) == 0)
		return start;
	for (uint32_t k = 0; k < c->n; k++)
		if (excess(c, c->order[(start + k) % c->n]))
			return (start + k) % c->n;
	return start;
}

static bool
is_finished(const struct climb *c, const om_search_limits *e, uint64_t limit)
{
	return c->g->work > limit || c->height <= c->component->goal || om_is_past_deadline(e);
}

static void
climb_order(struct climb *c, const om_search_limits *e, om_fit fit, uint64_t limit)
{
	double current = pack_order(c, fit);

	for (uint32_t failures = 0; failures < MAX_STUCK && !is_finished(c, e, limit); failures++) {
		const uint32_t from = draw_position(c), to = random_below(c, 2) ? random_below(c, from + 1)
			: random_below(c, c->n);
		move_entry(c->order, from, to);
		const double after = pack_order(c, fit);
		if (after < current)
			failures = 0;
		if (after <= current)
			current = after;
		else
			move_entry(c->order, to, from);
	}
}

uint64_t
om_hill_climb(om_greedy *g, const om_search_limits *limits, uint64_t work, uint64_t height)
{
	om_arena *mem = om_arena_new();
	const om_component *component = g->component;
	struct climb c = {.g = g, .component = component, .order = OM_NEWN(mem, uint32_t, component->nitem),
		.best = OM_NEWN(mem, uint64_t, component->nitem), .height = height};
	const uint64_t limit = g->work + work;

	for (uint32_t k = 0; k < component->nitem; k++) {
		c.n += component->buf[component->item[k]].fixed < 0;
		c.best[k] = component->buf[component->item[k]].offset;
	}
	for (uint32_t restart = 0; c.n > 1 && restart < MAX_RESTARTS && !is_finished(&c, limits,
		limit); restart++) {
		om_order_fill(component, restart / 2 % OM_NORDER, c.order);
		climb_order(&c, limits, restart % 2 ? OM_FIRST_FIT : OM_BEST_FIT, limit);
	}
	for (uint32_t k = 0; k < component->nitem; k++)
		component->buf[component->item[k]].offset = c.best[k];
	om_arena_free(mem);
	return c.height;
}
