/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of plan documents, by recursive descent; see stated_formulas.h and docs/plan-format.md. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "alloc/stated_formulas.h"
#include "base/arena_internal.h"
#include "base/scan.h"

enum { DEEPEST = 32 };

struct reader {
	const char *at;
	const char *const *symbol; /* as texts, by range */
	const int64_t *n;
	uint32_t nsymbol;
	int depth;
};

static bool sum(struct reader *r, int64_t *out);

/* ---- Words. ---- */

/* A symbol, the longest that is there: others may begin like it. */
static bool
take_symbol(struct reader *r, int64_t *out)
{
	size_t longest = 0;

	om_scan_space(&r->at);
	for (uint32_t k = 0; k < r->nsymbol; k++) {
		const size_t n = strlen(r->symbol[k]);
		if (n <= longest || strncmp(r->at, r->symbol[k], n) != 0)
			continue;
		longest = n;
		*out = r->n[k];
	}
	r->at += longest;
	return longest > 0;
}

static bool
integer(struct reader *r, int64_t *out)
{
	om_scan_space(&r->at);
	return om_scan_integer(&r->at, out);
}

/* ---- Functions. ---- */

/* floor(A/D), after the parenthesis. */
static bool
quotient(struct reader *r, int64_t *out)
{
	int64_t a, d;

	if (!sum(r, &a) || !om_scan_word(&r->at, "/") || !integer(r, &d) || !om_scan_word(&r->at, ")") || a < 0 || d == 0)
		return false;
	*out = a / d;
	return true;
}

/* up(A, M). */
static bool
rounded(struct reader *r, int64_t *out)
{
	int64_t a, m;

	if (!sum(r, &a) || !om_scan_word(&r->at, ",") || !integer(r, &m) || !om_scan_word(&r->at, ")") || a < 0 || m == 0)
		return false;
	const int64_t rest = a % m;
	return !__builtin_add_overflow(a, rest ? m - rest : 0, out);
}

/* max(A, B, ...). */
static bool
largest(struct reader *r, int64_t *out)
{
	int64_t x;

	if (!sum(r, out))
		return false;
	while (om_scan_word(&r->at, ",")) {
		if (!sum(r, &x))
			return false;
		*out = x > *out ? x : *out;
	}
	return om_scan_word(&r->at, ")");
}

/* ---- Sums. ---- */

static bool
factor_inside(struct reader *r, int64_t *out)
{
	if (om_scan_word(&r->at, "floor("))
		return quotient(r, out);
	if (om_scan_word(&r->at, "up("))
		return rounded(r, out);
	if (om_scan_word(&r->at, "max("))
		return largest(r, out);
	if (take_symbol(r, out))
		return true;
	return om_scan_word(&r->at, "(") ? sum(r, out) && om_scan_word(&r->at, ")") : integer(r, out);
}

static bool
factor(struct reader *r, int64_t *out)
{
	const bool is_there = ++r->depth <= DEEPEST && factor_inside(r, out);

	r->depth--;
	return is_there;
}

static bool
product(struct reader *r, int64_t *out)
{
	int64_t x;

	if (!factor(r, out))
		return false;
	while (om_scan_word(&r->at, "*"))
		if (!factor(r, &x) || __builtin_mul_overflow(*out, x, out))
			return false;
	return true;
}

static bool
sum(struct reader *r, int64_t *out)
{
	const bool is_less = om_scan_word(&r->at, "-");
	int64_t x;

	if (!product(r, out))
		return false;
	*out = is_less ? -*out : *out;
	for (;;) {
		const bool adds = om_scan_word(&r->at, "+"), subtracts = !adds && om_scan_word(&r->at, "-");
		if (!adds && !subtracts)
			return true;
		if (!product(r, &x) || (adds ? __builtin_add_overflow(*out, x, out) : __builtin_sub_overflow(*out, x, out)))
			return false;
	}
}

static bool
value(const om_plan *plan, const char *text, const int64_t *n, om_arena *mem, uint64_t *bytes)
{
	const char **symbol = OM_NEWN(mem, const char *, plan->nrange);
	struct reader r = {.at = text, .symbol = symbol, .n = n, .nsymbol = plan->nrange};
	int64_t is;

	for (uint32_t k = 0; k < plan->nrange; k++)
		symbol[k] = om_symbol_text(mem, plan->range[k].symbol);
	if (!sum(&r, &is) || is < 0)
		return false;
	om_scan_space(&r.at);
	*bytes = (uint64_t)is;
	return *r.at == '\0';
}

/* ---- Documents. ---- */

const char *
om_range_sizes_text(om_arena *mem, const om_plan *plan, const int64_t *n)
{
	const char *text = "";

	for (uint32_t k = 0; k < plan->nrange; k++)
		text = om_printf(mem, "%s%s%s = %" PRId64, text, k ? ", " : "", plan->range[k].symbol, n[k]);
	return text;
}

static bool
is_in(const om_plan *plan, const om_stated_piece *x, const int64_t *n)
{
	for (uint32_t d = 0; d < plan->nrange; d++)
		if (!om_dim_range_has(&x->range[d], n[d]))
			return false;
	return true;
}

static om_status
find_value(om_session *s, const om_plan *plan, uint32_t arena, const int64_t *n, uint64_t *bytes, const om_stated_piece **piece, om_arena *mem)
{
	const struct om_stated_formulas *f = plan->stated;

	*piece = NULL;
	for (uint32_t k = 0; k < f->npiece; k++) {
		if (!is_in(plan, &f->piece[k], n))
			continue;
		if (*piece)
			return om_fail(s, OM_BADPLAN, "the plan: two of its formulas are for %s", om_range_sizes_text(mem, plan, n));
		*piece = &f->piece[k];
	}
	if (!*piece)
		return om_fail(s, OM_BADPLAN, "the plan: none of its formulas is for %s", om_range_sizes_text(mem, plan, n));
	if (!value(plan, (*piece)->text[arena], n, mem, bytes))
		return om_fail(s, OM_BADPLAN, "the plan: \"%s\" is no formula of its symbols, or has no value for %s", (*piece)->text[arena],
			om_range_sizes_text(mem, plan, n));
	return OM_OK;
}

om_status
om_stated_formula_value(om_session *s, const om_plan *plan, uint32_t arena, const int64_t *n, uint64_t *bytes,
	const om_stated_piece **piece)
{
	om_arena *mem = om_arena_new();
	const om_status st = find_value(s, plan, arena, n, bytes, piece, mem);

	om_arena_free(mem);
	return st;
}

/* ---- Comparing. ---- */

static bool
is_same_piece(const om_plan *plan, const om_stated_piece *x, const om_formula_piece *f, const char *const *symbol, om_arena *mem)
{
	for (uint32_t d = 0; d < plan->nrange; d++)
		if (x->range[d].low != f->low[d] || x->range[d].high != f->high[d] || om_dim_range_step(&x->range[d]) != om_dim_range_step(&plan->range[d]))
			return false;
	for (uint32_t a = 0; a < plan->narena; a++)
		if (strcmp(x->text[a], om_formula_text(mem, &f->arena[a], symbol, NULL)) != 0)
			return false;
	return x->is_exact == (f->least == NULL);
}

bool
om_stated_formulas_equal(const om_plan *plan, const om_formulas *f)
{
	const char *symbol[OM_FORMULA_SYMBOLS] = {"", "", "", ""};
	om_arena *mem = om_arena_new();
	bool is_equal = plan->stated->npiece == f->npiece;

	for (uint32_t d = 0; d < plan->nrange && d < OM_FORMULA_SYMBOLS; d++)
		symbol[d] = om_symbol_text(mem, plan->range[d].symbol);
	for (uint32_t k = 0; k < f->npiece && is_equal; k++)
		is_equal = is_same_piece(plan, &plan->stated->piece[k], &f->piece[k], symbol, mem);
	om_arena_free(mem);
	return is_equal;
}

static om_status
check(om_session *s, const om_plan *plan, om_arena *mem)
{
	const om_stated_piece *piece;
	const int64_t *n = plan->stated->n;
	uint64_t bytes;

	for (uint32_t a = 0; a < plan->narena; a++) {
		OM_TRY(om_stated_formula_value(s, plan, a, n, &bytes, &piece));
		if (bytes < plan->arena[a].bytes)
			return om_fail(s, OM_BADPLAN, "the plan: its formula of arena %s, \"%s\", is %" PRIu64 " bytes for %s, but the values take %" PRIu64,
				plan->arena[a].name, piece->text[a], bytes, om_range_sizes_text(mem, plan, n), plan->arena[a].bytes);
	}
	return OM_OK;
}

om_status
om_stated_formulas_check(om_session *s, const om_plan *plan)
{
	om_arena *mem = om_arena_new();
	const om_status st = plan->stated ? check(s, plan, mem) : OM_OK;

	om_arena_free(mem);
	return st;
}
