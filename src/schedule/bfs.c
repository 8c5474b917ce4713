/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth-first order: every op is first not ready, then ready, then done.
 *
 * An op is ready when all its predecessors are done; the one that became ready
 * first runs next.  A storage is dead when all its users are done.  The set of live
 * storages is not stored: the users that are left decide.
 */
#include <config.h>

#include "schedule/subproblem.h"

enum { MAX_COMPARED = 256 };  /* compare at most so many ready ops */

struct ready_queue {
	const om_schedule_index *x;
	uint32_t *npred;          /* by op: predecessors that have not run */
	uint32_t *nuser;          /* by storage: users that have not run */
	uint32_t *ready;           /* ready ops, earliest first */
	uint32_t nready;
};

/* Bytes that running `i` frees, less those that it makes. */
static int64_t
freed_bytes(const struct ready_queue *f, uint32_t i)
{
	const om_schedule_index *x = f->x;
	int64_t bytes = 0;

	for (uint32_t k = x->made.at[i]; k < x->made.at[i + 1]; k++)
		bytes -= (int64_t)x->q->storage[x->made.item[k]].bytes;
	for (uint32_t k = x->need.at[i]; k < x->need.at[i + 1]; k++) {
		const uint32_t s = x->need.item[k];
		if (f->nuser[s] == 1 && !x->q->storage[s].live_out)
			bytes += (int64_t)x->q->storage[s].bytes;
	}
	return bytes;
}

static uint32_t
choose_ready(const struct ready_queue *f, bool by_bytes)
{
	uint32_t best = 0;

	for (uint32_t k = 1; by_bytes && k < f->nready && k < MAX_COMPARED; k++)
		if (freed_bytes(f, f->ready[k]) > freed_bytes(f, f->ready[best]))
			best = k;
	return best;
}

static void
mark_done(struct ready_queue *f, uint32_t i)
{
	const om_schedule_index *x = f->x;

	for (uint32_t k = x->need.at[i]; k < x->need.at[i + 1]; k++)
		f->nuser[x->need.item[k]]--;
	for (uint32_t k = x->succ.at[i]; k < x->succ.at[i + 1]; k++)
		if (--f->npred[x->succ.item[k]] == 0)
			f->ready[f->nready++] = x->succ.item[k];
}

void
om_schedule_bfs(const om_schedule_problem *q, bool by_bytes, uint32_t *order)
{
	om_arena *mem = om_arena_new();
	const om_schedule_index *x = om_schedule_index_new(q, mem);
	struct ready_queue f = {.x = x, .npred = OM_NEWN(mem, uint32_t, q->nop),
		.nuser = OM_NEWN(mem, uint32_t, q->nstorage), .ready = OM_NEWN(mem, uint32_t, q->nop)};

	for (uint32_t k = 0; k < q->nstorage; k++)
		f.nuser[k] = x->user.at[k + 1] - x->user.at[k];
	for (uint32_t i = 0; i < q->nop; i++) {
		f.npred[i] = x->before.at[i + 1] - x->before.at[i];
		if (f.npred[i] == 0)
			f.ready[f.nready++] = i;
	}
	for (uint32_t n = 0; n < q->nop; n++) {
		const uint32_t k = choose_ready(&f, by_bytes);
		order[n] = f.ready[k];
		memmove(f.ready + 1, f.ready, k * sizeof *f.ready);
		f.ready++;
		f.nready--;
		mark_done(&f, order[n]);
	}
	om_arena_free(mem);
}
