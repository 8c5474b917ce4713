/* pool: memory sharing by a pool of blocks whose variables are dead.
 *
 * Walk the steps in order.  What is computed at a step takes a block from the
 * pool, the tightest that will do, or else a new one; what died before goes
 * back.  Blocks are whole: they are never split, joined or moved.  At level 0 a
 * block will do that held a variable of the same shape and type; at level 1,
 * one of at least the size.
 *
 * This is the baseline that other planners are measured against.
 */
#include <config.h>

#include <stdlib.h>

#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

struct variable {
	uint32_t buf;           /* in om_buffers */
	const om_value *v;      /* NULL: scratch */
	uint32_t block;
};

struct block {
	uint64_t bytes, offset;
	const struct variable *holds;
	uint32_t free_at;       /* step after the last one of what it holds */
};

struct pool {
	const om_buffers *b;
	struct variable *var;
	struct block *block;
	uint32_t n, nblock;
	uint32_t *slot;         /* blocks in the pool */
	uint32_t nslot;
	uint32_t *busy;         /* the others, as a heap by free_at */
	uint32_t nbusy;
	bool same_only;
};

/* ---- Blocks in use, those that get free first on top. ---- */

static bool
is_sooner(const struct pool *w, uint32_t a, uint32_t b)
{
	if (w->block[a].free_at != w->block[b].free_at)
		return w->block[a].free_at < w->block[b].free_at;
	return a < b;
}

static void
push_busy(struct pool *w, uint32_t block)
{
	uint32_t k = w->nbusy++;

	for (; k && is_sooner(w, block, w->busy[(k - 1) / 2]); k = (k - 1) / 2)
		w->busy[k] = w->busy[(k - 1) / 2];
	w->busy[k] = block;
}

static uint32_t
pop_busy(struct pool *w)
{
	const uint32_t top = w->busy[0], last = w->busy[--w->nbusy];
	uint32_t k = 0;

	for (uint32_t child; (child = 2 * k + 1) < w->nbusy; k = child) {
		if (child + 1 < w->nbusy && is_sooner(w, w->busy[child + 1], w->busy[child]))
			child++;
		if (!is_sooner(w, w->busy[child], last))
			break;
		w->busy[k] = w->busy[child];
	}
	w->busy[k] = last;
	return top;
}

/* ---- The pool. ---- */

static bool
is_same(const struct pool *w, const struct variable *a, const struct variable *b)
{
	if (!a->v || !b->v)
		return !a->v && !b->v && w->b->buf[a->buf].bytes == w->b->buf[b->buf].bytes;
	return a->v->type.elem == b->v->type.elem && om_shape_equal(&a->v->shape, &b->v->shape)
	    && w->b->buf[a->buf].bytes == w->b->buf[b->buf].bytes;
}

static bool
will_do(const struct pool *w, const struct block *block, const struct variable *v)
{
	if (w->same_only)
		return is_same(w, block->holds, v);
	return block->bytes >= w->b->buf[v->buf].bytes;
}

static uint32_t
take(struct pool *w, const struct variable *v)
{
	uint32_t best = w->nslot;

	for (uint32_t k = 0; k < w->nslot; k++) {
		const struct block *block = &w->block[w->slot[k]];
		if (will_do(w, block, v) && (best == w->nslot || block->bytes < w->block[w->slot[best]].bytes))
			best = k;
	}
	if (best == w->nslot) {
		w->block[w->nblock].bytes = w->b->buf[v->buf].bytes;
		return w->nblock++;
	}
	const uint32_t block = w->slot[best];
	w->slot[best] = w->slot[--w->nslot];
	return block;
}

static void
walk(struct pool *w)
{
	for (uint32_t k = 0; k < w->n; k++) {
		struct variable *v = &w->var[k];
		const om_interval *live = w->b->buf[v->buf].live;
		while (w->nbusy && w->block[w->busy[0]].free_at <= live->lower)
			w->slot[w->nslot++] = pop_busy(w);
		v->block = take(w, v);
		w->block[v->block].holds = v;
		w->block[v->block].free_at = live->upper;
		push_busy(w, v->block);
	}
}

/* ---- Around it. ---- */

static void
list_variables(const om_prog *p, struct pool *w)
{
	for (uint32_t k = 0; k < w->b->n; k++)
		w->var[k] = (struct variable){.buf = k};
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const uint32_t n = w->b->of_value[k];
		if (n != UINT32_MAX && om_storage(p->values[k], NULL) == p->values[k])
			w->var[n].v = p->values[k];
	}
	w->n = w->b->n;
}

/* Buffers were made in program order; those of one op keep it. */
static void
sort_by_birth(om_arena *mem, struct pool *w, uint32_t nstep)
{
	struct variable *out = OM_NEWN(mem, struct variable, w->n);
	uint32_t *at = OM_NEWN(mem, uint32_t, (size_t)nstep + 2);

	for (uint32_t k = 0; k < w->n; k++)
		at[w->b->buf[w->var[k].buf].live->lower + 1]++;
	for (uint32_t k = 0; k < nstep; k++)
		at[k + 1] += at[k];
	for (uint32_t k = 0; k < w->n; k++)
		out[at[w->b->buf[w->var[k].buf].live->lower]++] = w->var[k];
	w->var = out;
}

static uint64_t
place_blocks(struct pool *w)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < w->nblock; k++) {
		w->block[k].offset = height;
		height += w->block[k].bytes;
	}
	for (uint32_t k = 0; k < w->n; k++)
		w->b->buf[w->var[k].buf].offset = w->block[w->var[k].block].offset;
	return height;
}

/* All blocks together are no more than all buffers: that sum has to exist. */
static om_status
check_sum(om_run *r, const om_buffers *b)
{
	if (b->naive > INT64_MAX)
		return om_fail(r->session, OM_INVALID, "the bytes of all %u buffers do not add up to a number", b->n);
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	struct pool w = {.b = om_buffers_new(p, r->scratch)};
	om_pack_result result = {.strategy = "pool"};
	uint64_t level;

	OM_TRY(om_option_number(r, "level", &level));
	if (level > 1)
		return om_fail(r->session, OM_USAGE, "pool: level is 0 or 1");
	OM_TRY(check_sum(r, w.b));
	w.same_only = level == 0;
	w.var = OM_NEWN(r->scratch, struct variable, w.b->n);
	w.block = OM_NEWN(r->scratch, struct block, w.b->n);
	w.slot = OM_NEWN(r->scratch, uint32_t, w.b->n);
	w.busy = OM_NEWN(r->scratch, uint32_t, w.b->n);
	list_variables(p, &w);
	sort_by_birth(r->scratch, &w, p->nstep);
	walk(&w);
	result.height = place_blocks(&w);
	result.lower_bound = om_pack_bound(w.b->buf, w.b->n, &result.bound_step);
	result.status = result.height == result.lower_bound ? OM_PACK_OPTIMAL : OM_PACK_FEASIBLE;
	om_plan_new(p, w.b, &result, "pool");
	om_count(r, "variables", w.n);
	om_count(r, "blocks", w.nblock);
	om_count(r, "bytes", result.height);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"level", "1", "0: blocks of the same shape and type only; 1: of at least the size"},
	{0}
};

static const om_pass_counter counters[] = {
	{"variables", "values and scratch that need room"},
	{"blocks", "blocks that they share"},
	{"bytes", "size of the arena"},
	{0}
};

OM_PASS(
	.name = "pool",
	.brief = "share the memory of dead variables, block by block",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.gives = OM_HAS_PLAN,
	.keeps = OM_HAS_ALL,
	.options = options,
	.counters = counters,
	.run = run)
