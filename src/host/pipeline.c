/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline that plans a program: passes of the target, and those that make the same program for all sizes of ranges.
 *
 * What an executor fuses may depend on sizes, as those of 1 are broadcast.  Then there is no plan for all sizes, so such a pass is
 * left out.  Programs are compared for the ends of the ranges and for up to 64 sizes between them, all of small ranges, as what a pass
 * does may depend on whether two quotients are equal; a plan is read again for more. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "base/split.h"
#include "host/host.h"
#include "host/range_binding.h"
#include "host/range_scratch.h"
#include "host/range_sizes.h"
#include "onnxmem/binding.h"

enum { MOST_RANGES = 3, MOST_COMPARED = 64 };

struct search {
	om_host *host;
	om_session *session;
	om_arena *mem;
	const om_prog *open, *prog;   /* before and after dims were bound */
	const om_dim_range *range;
	uint32_t nrange;
	const om_flag_set *flag;
	size_t nflag;
};

/* Combination `k` of sizes, the largest first: all ends of the first `ends` ranges, then two that are between the ends. */
static void
sizes_at(const struct search *w, uint32_t ends, uint32_t k, int64_t *n)
{
	for (uint32_t d = 0; d < w->nrange; d++) {
		const om_dim_range *r = &w->range[d];
		const int64_t step = om_dim_range_step(r), last = (r->high - r->low) / step;
		if (k < 1u << ends)
			n[d] = d < ends && (k >> d & 1) ? r->low : r->high;
		else
			n[d] = r->low + step * (k == 1u << ends ? last > 0 : last / 2);
	}
}

/* The operators of all blocks, and what they compute. */
static const char *
outline(om_arena *mem, const om_prog *p)
{
	size_t n = 0, cap = 0;
	char *text = NULL;

	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next) {
			const char *parts[] = {op->domain, ":", op->type, " ", op->nout && op->out[0] ? op->out[0]->name : "", "\n"};
			for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
				for (const char *at = parts[k]; *at; at++)
					OM_PUSH(mem, text, n, cap, *at);
		}
	OM_PUSH(mem, text, n, cap, 0);
	return text;
}

static om_status
run_for(const struct search *w, om_arena *mem, const int64_t *n, const char *passes, const char **text)
{
	const om_ranged r = {w->open, w->prog, w->range, w->nrange};
	om_prog *p;

	OM_TRY(om_host_run_sizes(w->host, &r, n, passes, &p));
	*text = outline(mem, p);
	om_prog_free(p);
	return OM_OK;
}

/* Is it the program `first` for other sizes, too?  Those that are not possible are left to the verifier, which names them. */
static om_status
compare_others(const struct search *w, om_arena *mem, const char *passes, const char *first, bool *is_one)
{
	om_size_walk at = om_size_walk_new(w->range, w->nrange, MOST_COMPARED, mem);
	const char *text;
	bool is_there = true;

	for (uint32_t k = 0; k < MOST_COMPARED && is_there && *is_one; k++, is_there = om_size_walk_next(&at)) {
		const om_status st = run_for(w, mem, at.n, passes, &text);
		if (st == OM_MEMORY || st == OM_STOPPED)
			return st;
		*is_one = st != OM_OK || strcmp(first, text) == 0;
	}
	return OM_OK;
}

static om_status
compare_all(const struct search *w, om_arena *mem, const char *passes, bool *is_one)
{
	const uint32_t ends = w->nrange < MOST_RANGES ? w->nrange : MOST_RANGES;
	int64_t *n = OM_NEWN(mem, int64_t, w->nrange);
	const char *first = NULL, *text = NULL;

	*is_one = true;
	for (uint32_t k = 0; k < (1u << ends) + 2 && *is_one; k++) {
		sizes_at(w, ends, k, n);
		OM_TRY(run_for(w, mem, n, passes, &text));
		first = first ? first : text;
		*is_one = strcmp(first, text) == 0;
	}
	return compare_others(w, mem, passes, first, is_one);
}

/* Do the passes make one program of all sizes?  Combinations of sizes are compared with those that are all largest. */
static om_status
make_one_program(const struct search *w, const char *passes, bool *is_one)
{
	om_arena *mem = om_arena_new();
	const om_status st = compare_all(w, mem, passes, is_one);

	om_arena_free(mem);
	return st;
}

/* An element of a pipeline: is the pass one that may make other programs for other sizes? */
static bool
rewrites(const struct search *w, const char *text)
{
	const om_pass *pass = om_host_pass(w->host, om_strndup(w->mem, text, strcspn(text, "=:")));

	return pass && pass->by_sizes;
}

static const char *
join(const struct search *w, const char *before, const char *pass)
{
	return *before ? om_printf(w->mem, "%s,%s", before, pass) : pass;
}

/* Passes up to the last one that rewrites, and the others. */
static om_status
choose(const struct search *w, const char **pass, size_t n, size_t last, const char **out)
{
	const char *kept = "";
	bool is_one;

	for (size_t k = 0; k < n; k++) {
		const char *with = join(w, kept, pass[k]);
		is_one = true;
		if (k <= last && rewrites(w, pass[k]))
			OM_TRY(make_one_program(w, with, &is_one));
		if (!is_one)
			om_info(w->session, "pass %s is left out: it makes other programs for other sizes", pass[k]);
		kept = is_one ? with : kept;
	}
	*out = kept;
	return OM_OK;
}

/* The passes of a pipeline up to the last that `is_counted`, and its index; 0: there is none. */
static const char *
passes_until(const struct search *w, const char *pipeline, bool (*is_counted)(const struct search *w, const char *text), size_t *last)
{
	size_t n;
	const char **pass = om_split(w->mem, pipeline, ",", &n), *text = "";

	*last = 0;
	for (size_t k = 0; k < n; k++)
		*last = is_counted(w, pass[k]) ? k : *last;
	for (size_t k = 0; k <= *last; k++)
		text = join(w, text, pass[k]);
	return text;
}

static om_status
find_pipeline(const struct search *w, const char **pipeline)
{
	size_t n, last;
	const char *rewriting = passes_until(w, *pipeline, rewrites, &last), **pass = om_split(w->mem, *pipeline, ",", &n);
	bool is_one = true;

	if (last == 0)
		return OM_OK;
	OM_TRY(make_one_program(w, rewriting, &is_one));
	return is_one ? OM_OK : choose(w, pass, n, last, pipeline);
}

static bool
makes_ops(const struct search *w, const char *text)
{
	return rewrites(w, text) || strcmp(text, "prune") == 0;
}

/* Other consumers have scratch of their own, which is not planned. */
static om_status
find_scratch(const struct search *w, const char *pipeline)
{
	size_t last;
	const om_ranged r = {w->open, w->prog, w->range, w->nrange};
	const char *passes = passes_until(w, pipeline, makes_ops, &last);

	return w->host->request->target == OM_TARGET_CPU ? om_host_find_scratch(w->host, &r, passes) : OM_OK;
}

/* ---- The whole. ---- */

const char *
om_host_decided(om_host *h, const om_prog *p, const char *pipeline)
{
	for (uint32_t k = 0; k < p->first->nparam; k++)
		if (p->first->param[k]->is_const)
			return om_printf(h->mem, "inline,shapes,fold,branches,%s", pipeline);
	return pipeline;
}

static om_status
find_whole(const struct search *w, const char **pipeline)
{
	*pipeline = om_host_decided(w->host, w->prog, om_request_pipeline(w->host->request));
	OM_TRY(om_host_flags(w->host, w->flag, w->nflag, pipeline));
	om_host_set_scratch(w->host, NULL, 0);
	if (w->nrange == 0)
		return OM_OK;
	OM_TRY(find_pipeline(w, pipeline));
	return find_scratch(w, *pipeline);
}

static om_status
find_guarded(const struct search *w, const char **pipeline)
{
	OM_GUARDED(w->session, find_whole(w, pipeline));
}

/* Trials are no runs for the hook. */
om_status
om_host_pipeline_with(om_host *h, const om_prog *open, const om_prog *p, const om_dim_range *range, uint32_t nrange,
	const om_flag_set *flag, size_t nflag, const char **pipeline)
{
	const struct search w = {h, h->session, h->mem, open, p, range, nrange, flag, nflag};
	om_pass_hook *const hook = h->hook;

	h->hook = NULL;
	const om_status st = find_guarded(&w, pipeline);
	h->hook = hook;
	return st;
}

om_status
om_host_pipeline(om_host *h, const om_prog *open, const om_prog *p, const om_dim_range *range, uint32_t nrange,
	const char **pipeline)
{
	return om_host_pipeline_with(h, open, p, range, nrange, NULL, 0, pipeline);
}
