/* Plans for ranges of sizes. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "onnxmem/formula.h"

/* ---- Options. ---- */

/* Split "SYMBOL=REST".  Names may contain =: the last one is the separator. */
static bool
split(om_cli *c, const char *text, const char **symbol, const char **rest)
{
	const char *is = strrchr(text, '=');

	if (!is || is == text)
		return false;
	*symbol = om_strndup(c->mem, text, (size_t)(is - text));
	*rest = is + 1;
	return true;
}

static bool
read_size(const char *text, const char **end, int64_t *n)
{
	char *after;

	errno = 0;
	*n = strtoll(text, &after, 10);
	*end = after;
	return after > text && !errno && *n >= 0;
}

om_status
om_cli_dim(om_cli *c, const char *name, const char *text, const char **symbol, int64_t *n)
{
	const char *rest, *end;

	if (split(c, text, symbol, &rest) && read_size(rest, &end, n) && !*end)
		return OM_OK;
	return om_fail(c->session, OM_USAGE, "--%s requires SYMBOL=N such as batch=1, not %s", name, text);
}

static om_status
read_range(om_cli *c, const char *text, om_dim_range *r)
{
	const char *rest, *end;

	if (split(c, text, &r->symbol, &rest) && read_size(rest, &end, &r->low) && strncmp(end, "..", 2) == 0
	    && read_size(end + 2, &end, &r->high) && !*end && r->low <= r->high)
		return OM_OK;
	return om_fail(c->session, OM_USAGE, "--dim-range requires SYMBOL=LO..HI such as seq=1..512, not %s", text);
}

om_status
om_cli_ranges(om_cli *c)
{
	const char *text;

	c->range = OM_NEWN(c->mem, om_dim_range, c->nset + c->nassumed + 1);
	c->nrange = 0;
	for (size_t at = 0; (text = om_cli_next(c, "dim-range", &at));)
		OM_TRY(read_range(c, text, &c->range[c->nrange++]));
	for (uint32_t k = 0; k < c->nassumed; k++)
		c->range[c->nrange++] = c->assumed[k];
	return OM_OK;
}

/* ---- All sizes. ---- */

enum { MOST_SIZES = 1024 };

/* The sizes of a range that are checked, ascending: all or, of more than `most`, the ends and as many between them,
 * at equal distances. */
static int64_t
size_at(const om_dim_range *r, uint64_t k, uint64_t most)
{
	const uint64_t n = (uint64_t)(r->high - r->low);

	if (n < most)
		return r->low + (int64_t)k;
	return r->low + (int64_t)(n / (most - 1) * k + n % (most - 1) * k / (most - 1));
}

static uint64_t
count_of(const om_dim_range *r, uint64_t most)
{
	const uint64_t n = (uint64_t)(r->high - r->low) + 1;

	return n < most ? n : most;
}

/* How many sizes of each range are checked, so that there are at most MOST_SIZES combinations. */
static uint64_t
most_of_each(const om_plan *plan)
{
	uint64_t most = MOST_SIZES;

	for (;; most = most * 3 / 4) {
		double all = 1;
		for (uint32_t k = 0; k < plan->nrange; k++)
			all *= (double)count_of(&plan->range[k], most);
		if (all <= MOST_SIZES || most <= 2)
			return most < 2 ? 2 : most;
	}
}

static const char *
binding_text(om_cli *c, const om_plan *plan, const int64_t *n)
{
	const char *text = "";

	for (uint32_t k = 0; k < plan->nrange; k++)
		text = om_printf(c->mem, "%s%s%s = %" PRId64, text, k ? ", " : "", plan->range[k].symbol, n[k]);
	return text;
}

static om_status
bind_sizes(om_cli *c, const om_plan *plan, const int64_t *n, om_binding *b)
{
	if (!b)
		return OM_MEMORY;
	for (uint32_t k = 0; k < plan->nrange; k++)
		OM_TRY(om_binding_dim(c->session, b, plan->range[k].symbol, n[k]));
	return OM_OK;
}

/* Formulas that promise less than a plan takes are none. */
static void
check_formulas(om_cli *c, const om_plan *is, const int64_t *n)
{
	om_plan *plan = c->prog->plan;
	const om_formula_piece *at = om_formulas_at(plan, n);
	int64_t all[OM_FORMULA_SYMBOLS] = {0};

	for (uint32_t d = 0; at && d < plan->nrange; d++)
		all[d] = n[d];
	for (uint32_t k = 0; at && k < plan->narena; k++)
		if (om_formula_value(&at->arena[k], all) < is->arena[k].bytes) {
			om_warn(c->session, "the formula of the arena does not hold for %s", binding_text(c, plan, n));
			plan->formulas = NULL;
			return;
		}
}

/* Read and verify the plan for one size of each range: at the offsets of the document, and shrunk. */
static om_status
check_one(om_cli *c, const om_prog *from, const char *sidecar, const om_plan *plan, const int64_t *n)
{
	om_binding *b = om_binding_new();
	om_prog *p = NULL;
	om_status st = bind_sizes(c, plan, n, b);

	if (st == OM_OK)
		st = om_prog_bind(c->session, from, NULL, &p);
	if (st == OM_OK)
		st = om_host_read_plan(c->host, c->model, p, sidecar, b);
	if (st == OM_OK)
		st = om_plan_verify(c->session, p, p->plan);
	if (st == OM_OK)
		st = om_plan_shrink(c->session, p, p->plan);
	if (st == OM_OK)
		st = om_plan_verify(c->session, p, p->plan);
	if (st == OM_OK)
		check_formulas(c, p->plan, n);
	om_prog_free(p);
	om_binding_free(b);
	return st == OM_OK ? st : om_note(c->session, st, "using the plan for %s", binding_text(c, plan, n));
}

/* The next combination; false: this was the last one. */
static bool
step(const om_plan *plan, uint64_t most, uint64_t *at)
{
	for (uint32_t k = 0; k < plan->nrange; k++) {
		if (++at[k] < count_of(&plan->range[k], most))
			return true;
		at[k] = 0;
	}
	return false;
}

static om_status
check_all(om_cli *c, const om_prog *from, const char *sidecar, const om_plan *plan)
{
	const uint64_t most = most_of_each(plan);
	uint64_t *at = OM_NEWN(c->mem, uint64_t, plan->nrange), checked = 0;
	int64_t *n = OM_NEWN(c->mem, int64_t, plan->nrange);
	bool all = true;

	do {
		for (uint32_t k = 0; k < plan->nrange; k++)
			n[k] = size_at(&plan->range[k], at[k], most);
		OM_TRY(check_one(c, from, sidecar, plan, n));
		checked++;
	} while (step(plan, most, at));
	for (uint32_t k = 0; k < plan->nrange; k++)
		all &= (uint64_t)(plan->range[k].high - plan->range[k].low) < most;
	if (!all)
		om_warn(c->session, "the plan was verified for %" PRIu64 " sizes of its ranges, which have more; a run verifies it "
			"for its own sizes", checked);
	return OM_OK;
}

/* The nodes of a model with a plan are in the order of the plan, so it is imported again. */
om_status
om_cli_check_sizes(om_cli *c, const char *sidecar)
{
	om_prog *from = NULL;

	if (c->prog->plan->nrange == 0)
		return OM_OK;
	om_status st = om_model_import(c->session, c->model, &from);
	if (st == OM_OK)
		st = check_all(c, from, sidecar, c->prog->plan);
	om_prog_free(from);
	return st;
}
