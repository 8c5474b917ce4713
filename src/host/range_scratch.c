/* SPDX-License-Identifier: Apache-2.0 */
/* The scratch of ops for all sizes of ranges.
 *
 * Kernels divide what they compute into blocks that suit caches, so an op may require more scratch for fewer columns.  The offsets
 * of a plan with ranges serve all sizes, so its scratch is the most of any. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "host/range_scratch.h"
#include "host/range_sizes.h"
#include "ir/query.h"
#include "opdef/op_context.h"

/* Ops that are looked at in all, where there are more than OM_MOST_SIZES combinations. */
enum { MOST_OPS = 1 << 20 };

struct search {
	om_host *host;
	const om_ranged *r;
	const char *passes;
	om_arena *mem;           /* of the list */
	om_map by_value;         /* om_scratch_need * */
	om_scratch_need **need;
	size_t n, cap;
};

static void
add(struct search *w, const char *value, uint64_t bytes)
{
	om_scratch_need *x = om_map_get(&w->by_value, value);

	if (!x) {
		x = OM_NEW(w->mem, om_scratch_need);
		x->value = om_strdup(w->mem, value);
		om_map_set(&w->by_value, x->value, x);
		OM_PUSH(w->mem, w->need, w->n, w->cap, x);
	}
	x->bytes = bytes > x->bytes ? bytes : x->bytes;
}

static void
add_ops(struct search *w, const om_prog *p)
{
	const om_plan_request *request = w->host->request;

	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next) {
			const om_value *out = om_op_first_output(op);
			const uint64_t bytes = op->is_folded || !out ? 0 : om_op_scratch(op, request->threads, request->precise);
			if (bytes)
				add(w, out->name, bytes);
		}
}

/* Sizes that are not possible need no scratch; whoever verifies the plan for them tells. */
static om_status
look_at(struct search *w, const int64_t *n)
{
	om_prog *p;
	const om_status st = om_host_run_sizes(w->host, w->r, n, w->passes, &p);

	if (st == OM_OK)
		add_ops(w, p);
	om_prog_free(p);
	return st == OM_MEMORY ? st : OM_OK;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const om_scratch_need *)a)->value, ((const om_scratch_need *)b)->value);
}

void
om_host_set_scratch(om_host *h, const om_scratch_need *need, uint32_t n)
{
	om_plan_request *to = om_memdup(h->mem, h->request, sizeof *to);

	to->scratch = need;
	to->nscratch = n;
	h->request = to;
}

static void
set_request(struct search *w)
{
	om_scratch_need *all = OM_NEWN(w->host->mem, om_scratch_need, w->n);

	for (size_t k = 0; k < w->n; k++)
		all[k] = *w->need[k];
	if (w->n)
		qsort(all, w->n, sizeof *all, by_name);
	om_host_set_scratch(w->host, all, (uint32_t)w->n);
}

om_status
om_host_find_scratch(om_host *h, const om_ranged *r, const char *rewriting)
{
	struct search w = {.host = h, .r = r, .passes = rewriting, .mem = h->mem, .by_value = om_map_new(h->mem)};
	const uint64_t most = MOST_OPS / (r->bound->nop + 1);
	om_size_walk at = om_size_walk_new(r->range, r->nrange, most > OM_MOST_SIZES ? most : OM_MOST_SIZES, h->mem);

	if (!at.is_all)
		at = om_size_walk_new(r->range, r->nrange, OM_MOST_SIZES, h->mem);
	do {
		OM_TRY(look_at(&w, at.n));
	} while (om_size_walk_next(&at));
	set_request(&w);
	return OM_OK;
}
