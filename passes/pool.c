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
#include "onnxmem/baselines.h"

struct variable {
	const om_value *v;      /* NULL: scratch */
	uint64_t bytes;
	uint32_t buf;
};

static int
by_shape(const om_shape *a, const om_shape *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	for (int k = 0; k < a->rank; k++)
		if (a->dim[k] != b->dim[k])
			return a->dim[k] < b->dim[k] ? -1 : 1;
	return 0;
}

static int
by_kind(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	if (!x->v != !y->v)
		return x->v ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->v && x->v->type.elem != y->v->type.elem)
		return x->v->type.elem < y->v->type.elem ? -1 : 1;
	return x->v ? by_shape(&x->v->shape, &y->v->shape) : 0;
}

/* By buffer, a number that is the same for the same shape and type. */
static uint32_t *
kinds(const om_prog *p, const om_buffers *b, om_arena *mem)
{
	struct variable *var = OM_NEWN(mem, struct variable, b->n);
	uint32_t *kind = OM_NEWN(mem, uint32_t, b->n);

	for (uint32_t k = 0; k < b->n; k++)
		var[k] = (struct variable){.buf = k, .bytes = b->buf[k].bytes};
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const uint32_t n = b->of_value[k];
		if (n != UINT32_MAX && om_storage(p->values[k], NULL) == p->values[k])
			var[n].v = p->values[k];
	}
	if (b->n)
		qsort(var, b->n, sizeof *var, by_kind);
	for (uint32_t k = 1; k < b->n; k++)
		kind[var[k].buf] = kind[var[k - 1].buf] + (by_kind(&var[k - 1], &var[k]) != 0);
	return kind;
}

static om_status
run(om_run *r, om_prog *p)
{
	om_buffers *b = om_buffers_new(p, r->scratch);
	om_baseline_result result;
	uint64_t level;

	if (p->parallel_safe)
		return om_fail(r->session, OM_USAGE, "pool: its plans hold for one order only");
	OM_TRY(om_option_number(r, "level", &level));
	if (level > 1)
		return om_fail(r->session, OM_USAGE, "pool: level is 0 or 1");
	OM_TRY(om_baseline_pool(r->session, b->buf, b->n, level ? NULL : kinds(p, b, r->scratch), &result));
	om_plan_new(p, b, &result.pack, "pool");
	om_count(r, "variables", b->n);
	om_count(r, "blocks", result.blocks);
	om_count(r, "bytes", result.pack.height);
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
