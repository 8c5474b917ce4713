/* Seed 003: every op goes from unknown to activated to done; its storages from
 * hot to recycled.
 *
 * An op is activated when all that it depends on is there; the one that was
 * activated first is run next.  A storage is recycled when all that need it have
 * run.  The set of hot storages is what is alive, so it shows nothing of its own
 * here: whatever needs a storage keeps it hot until it has run.
 */
#include <config.h>

#include "schedule/subproblem.h"

enum { LOOK = 256 };  /* of those that wait, the first so many are compared */

struct front {
	const om_order_index *x;
	uint32_t *wait;          /* by op: ops before it that have not run */
	uint32_t *left;          /* by storage: ops that still need it */
	uint32_t *act;           /* activated ops, earliest first */
	uint32_t nact;
};

/* Bytes that running `i` sets free, less those that it makes. */
static int64_t
gain(const struct front *f, uint32_t i)
{
	const om_order_index *x = f->x;
	int64_t bytes = 0;

	for (uint32_t k = x->made.at[i]; k < x->made.at[i + 1]; k++)
		bytes -= (int64_t)x->q->storage[x->made.item[k]].bytes;
	for (uint32_t k = x->need.at[i]; k < x->need.at[i + 1]; k++) {
		const uint32_t s = x->need.item[k];
		if (f->left[s] == 1 && !x->q->storage[s].live_out)
			bytes += (int64_t)x->q->storage[s].bytes;
	}
	return bytes;
}

static uint32_t
choose(const struct front *f, bool by_bytes)
{
	uint32_t best = 0;

	for (uint32_t k = 1; by_bytes && k < f->nact && k < LOOK; k++)
		if (gain(f, f->act[k]) > gain(f, f->act[best]))
			best = k;
	return best;
}

static void
finish(struct front *f, uint32_t i)
{
	const om_order_index *x = f->x;

	for (uint32_t k = x->need.at[i]; k < x->need.at[i + 1]; k++)
		f->left[x->need.item[k]]--;
	for (uint32_t k = x->behind.at[i]; k < x->behind.at[i + 1]; k++)
		if (--f->wait[x->behind.item[k]] == 0)
			f->act[f->nact++] = x->behind.item[k];
}

void
om_order_bfs(const om_order_problem *q, bool by_bytes, uint32_t *order)
{
	om_arena *mem = om_arena_new();
	const om_order_index *x = om_order_index_new(q, mem);
	struct front f = {.x = x, .wait = OM_NEWN(mem, uint32_t, q->nop),
		.left = OM_NEWN(mem, uint32_t, q->nstorage), .act = OM_NEWN(mem, uint32_t, q->nop)};

	for (uint32_t k = 0; k < q->nstorage; k++)
		f.left[k] = x->user.at[k + 1] - x->user.at[k];
	for (uint32_t i = 0; i < q->nop; i++) {
		f.wait[i] = x->before.at[i + 1] - x->before.at[i];
		if (f.wait[i] == 0)
			f.act[f.nact++] = i;
	}
	for (uint32_t n = 0; n < q->nop; n++) {
		const uint32_t k = choose(&f, by_bytes);
		order[n] = f.act[k];
		memmove(f.act + 1, f.act, k * sizeof *f.act);
		f.act++;
		f.nact--;
		finish(&f, order[n]);
	}
	om_arena_free(mem);
}
