/* Climbing: small changes of an order, kept as long as they do no harm.
 *
 * For parts that neither the skylines nor the complete search can handle, and
 * that are small.  A step moves one buffer, mostly one that sticks out of the
 * goal, to another place in the order, and packs again.  What counts is by how
 * much all buffers together stick out: that changes with every step, the height
 * seldom does.  Steps that change nothing are kept, too, so it wanders along
 * ridges; when it was stuck for long, it starts again from the next order.
 *
 * The numbers that it draws depend on the part alone.  It ends when nothing
 * sticks out, or when work or starts are spent.
 */
#include <config.h>

#include "base/rng.h"
#include "pack/packer.h"

enum { STUCK = 1500, ROUNDS = 1000 };   /* steps without gain; starts */

struct climb {
	om_greedy *g;
	const om_component *part;
	uint32_t *order, n;
	uint64_t *best;              /* offsets, by place in part->item */
	uint64_t height;
	uint64_t state;
};

static uint32_t
below(struct climb *c, uint32_t n)
{
	return (uint32_t)om_rng_below(&c->state, n);
}

static uint64_t
sticks_out(const struct climb *c, uint32_t b)
{
	const uint64_t end = c->part->buf[b].offset + c->part->buf[b].bytes;
	return end > c->part->goal ? end - c->part->goal : 0;
}

/* Packs by the order; gives by how much it fails. */
static double
pack(struct climb *c, om_fit fit)
{
	const uint64_t height = om_greedy_run(c->g, c->order, c->n, fit);
	double sum = 0;

	for (uint32_t k = 0; k < c->n; k++)
		sum += (double)sticks_out(c, c->order[k]);
	if (height < c->height) {
		c->height = height;
		for (uint32_t k = 0; k < c->part->nitem; k++)
			c->best[k] = c->part->buf[c->part->item[k]].offset;
	}
	return sum;
}

static void
move(uint32_t *order, uint32_t from, uint32_t to)
{
	const uint32_t it = order[from];

	if (from < to)
		memmove(order + from, order + from + 1, (to - from) * sizeof *order);
	else
		memmove(order + to + 1, order + to, (from - to) * sizeof *order);
	order[to] = it;
}

/* A place in the order: three times in four of a buffer that sticks out. */
static uint32_t
draw(struct climb *c)
{
	const uint32_t start = below(c, c->n);

	if (below(c, 4) == 0)
		return start;
	for (uint32_t k = 0; k < c->n; k++)
		if (sticks_out(c, c->order[(start + k) % c->n]))
			return (start + k) % c->n;
	return start;
}

static bool
is_spent(const struct climb *c, const om_effort *e, uint64_t limit)
{
	return c->g->work > limit || c->height <= c->part->goal || om_is_late(e);
}

static void
climb(struct climb *c, const om_effort *e, om_fit fit, uint64_t limit)
{
	double now = pack(c, fit);

	for (uint32_t stuck = 0; stuck < STUCK && !is_spent(c, e, limit); stuck++) {
		const uint32_t from = draw(c), to = below(c, 2) ? below(c, from + 1) : below(c, c->n);
		move(c->order, from, to);
		const double then = pack(c, fit);
		if (then < now)
			stuck = 0;
		if (then <= now)
			now = then;
		else
			move(c->order, to, from);
	}
}

uint64_t
om_hill_climb(om_greedy *g, const om_effort *effort, uint64_t work, uint64_t height)
{
	om_arena *mem = om_arena_new();
	const om_component *part = g->part;
	struct climb c = {.g = g, .part = part, .order = OM_NEWN(mem, uint32_t, part->nitem),
		.best = OM_NEWN(mem, uint64_t, part->nitem), .height = height};
	const uint64_t limit = g->work + work;

	for (uint32_t k = 0; k < part->nitem; k++) {
		c.n += part->buf[part->item[k]].fixed < 0;
		c.best[k] = part->buf[part->item[k]].offset;
	}
	for (uint32_t round = 0; c.n > 1 && round < ROUNDS && !is_spent(&c, effort, limit); round++) {
		om_order_fill(part, round / 2 % OM_NORDER, c.order);
		climb(&c, effort, round % 2 ? OM_FIRST_FIT : OM_BEST_FIT, limit);
	}
	for (uint32_t k = 0; k < part->nitem; k++)
		part->buf[part->item[k]].offset = c.best[k];
	om_arena_free(mem);
	return c.height;
}
