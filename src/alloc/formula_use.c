/* SPDX-License-Identifier: Apache-2.0 */
/* Values and texts of formulas; see onnxmem/formula.h. */
#include <config.h>

#include <inttypes.h>

#include "alloc/polynomial.h"
#include "base/sizes.h"
#include "ir/edit.h"

/* ---- Values. ---- */

static uint64_t
sum_value(const om_formula *f, const int64_t *n)
{
	om_polynomial sum = f->sum;
	uint64_t bytes;

	for (uint32_t k = 0; k < f->nrounded; k++) {
		int64_t part;
		if (!om_polynomial_value(&f->rounded[k].of, n, &bytes) || bytes > INT64_MAX - f->rounded[k].align)
			return UINT64_MAX;
		bytes = om_size_rounded_up(bytes, f->rounded[k].align);
		if (__builtin_mul_overflow((int64_t)bytes, (int64_t)f->rounded[k].count, &part)
		    || __builtin_add_overflow(sum.factor[0], part, &sum.factor[0]))
			return UINT64_MAX;
	}
	return om_polynomial_value(&sum, n, &bytes) ? bytes : UINT64_MAX;
}

uint64_t
om_formula_value(const om_formula *f, const int64_t *n)
{
	uint64_t most = 0;

	for (; f; f = f->other) {
		const uint64_t is = sum_value(f, n);
		most = is > most ? is : most;
	}
	return most;
}

const om_formula_piece *
om_formulas_at(const om_plan *plan, const int64_t *n)
{
	const om_formulas *f = plan->formulas;

	for (uint32_t k = 0; f && k < f->npiece; k++) {
		bool is_in = true;
		for (uint32_t d = 0; d < plan->nrange; d++)
			is_in &= om_dim_range_has(&(om_dim_range){NULL, f->piece[k].low[d], f->piece[k].high[d], plan->range[d].step}, n[d]);
		if (is_in)
			return &f->piece[k];
	}
	return NULL;
}

/* The numbers of all symbols of formulas. */
static const int64_t *
numbers(const om_plan *plan, const int64_t *n, int64_t all[OM_FORMULA_SYMBOLS])
{
	for (uint32_t d = 0; d < OM_FORMULA_SYMBOLS; d++)
		all[d] = d < plan->nrange ? n[d] : 0;
	return all;
}

bool
om_plan_arena_at(const om_plan *plan, uint32_t arena, const int64_t *n, uint64_t *bytes)
{
	const om_formula_piece *at = om_formulas_at(plan, n);
	int64_t all[OM_FORMULA_SYMBOLS];

	if (!at || at->least || plan->formulas->why_unproven || arena >= plan->narena)
		return false;
	*bytes = om_formula_value(&at->arena[arena], numbers(plan, n, all));
	return *bytes != UINT64_MAX;
}

bool
om_plan_offset_at(const om_prog *p, const om_plan *plan, const char *name, const int64_t *n, uint32_t *arena,
	uint64_t *offset)
{
	const om_formula_piece *at = om_formulas_at(plan, n);
	const om_value *v = om_prog_find(p, name);
	int64_t all[OM_FORMULA_SYMBOLS];

	if (!at || !at->offset || plan->formulas->why_unproven || !v || v->id >= plan->nplace || !at->offset[v->id])
		return false;
	if (arena)
		*arena = plan->place[v->id].arena;
	if (offset)
		*offset = om_formula_value(at->offset[v->id], numbers(plan, n, all));
	return true;
}

/* ---- Text. ---- */

const char *
om_symbol_text(om_arena *mem, const char *symbol)
{
	return strpbrk(symbol, " +-*/") ? om_printf(mem, "(%s)", symbol) : om_strdup(mem, symbol);
}

/* "N", or "floor((N + 1)/2)". */
static const char *
variable(om_arena *mem, const om_polynomial *f, int d, const char *symbol, const om_formula_words *words)
{
	const int64_t add = f->add[d];
	const char *sum = symbol;

	if (f->by[d] == 0)
		return symbol;
	if (add)
		sum = om_printf(mem, "(%s %c %" PRId64 ")", symbol, add < 0 ? '-' : '+', add < 0 ? -add : add);
	return om_printf(mem, "%s(%s/%" PRId64 ")", words->floor, sum, f->by[d]);
}

/* "N*S*S" of term `k`; "" for the constant. */
static const char *
monomial(om_arena *mem, const om_polynomial *f, int k, const char *const *symbol, const om_formula_words *words)
{
	const char *text = "";

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++, k /= 3)
		for (int e = 0; e < k % 3; e++)
			text = om_printf(mem, "%s%s%s", text, *text ? "*" : "", variable(mem, f, d, symbol[d], words));
	return text;
}

static const om_formula_words default_words = {"up", "max", "floor"};

/* `text`, and the terms of one polynomial of a sum. */
static const char *
add_terms(om_arena *mem, const char *text, const om_polynomial *f, const char *const *symbol, const om_formula_words *words)
{
	for (int k = OM_FORMULA_TERMS - 1; k >= 0; k--) {
		const int64_t n = f->factor[k];
		const char *of = monomial(mem, f, k, symbol, words);
		const char *sign = *text ? n < 0 ? " - " : " + " : n < 0 ? "-" : "";
		const int64_t size = n < 0 ? -n : n;
		if (n == 0)
			continue;
		if (*of && size == 1)
			text = om_printf(mem, "%s%s%s", text, sign, of);
		else
			text = om_printf(mem, "%s%s%" PRId64 "%s%s", text, sign, size, *of ? "*" : "", of);
	}
	return text;
}

const char *
om_polynomial_text(om_arena *mem, const om_polynomial *f, const char *const *symbol, const om_formula_words *words)
{
	const char *text = "";

	words = words ? words : &default_words;
	for (; f; f = f->more)
		text = add_terms(mem, text, f, symbol, words);
	return *text ? text : "0";
}

static bool
is_zero(const om_polynomial *f)
{
	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		if (f->factor[k])
			return false;
	return true;
}

/* `count` times a polynomial: multiplied, if it needs no rounding. */
static const char *
rounded_text(om_arena *mem, const om_rounded *r, const char *const *symbol, const om_formula_words *words)
{
	om_polynomial times;

	if (om_polynomial_divisor(&r->of, r->align) == r->align && om_polynomial_times(mem, &r->of, r->count, &times))
		return om_polynomial_text(mem, &times, symbol, words);
	const char *count = r->count > 1 ? om_printf(mem, "%" PRIu32 "*", r->count) : "";
	return om_printf(mem, "%s%s(%s, %" PRIu64 ")", count, words->round, om_polynomial_text(mem, &r->of, symbol, words), r->align);
}

static const char *
sum_text(om_arena *mem, const om_formula *f, const char *const *symbol, const om_formula_words *words)
{
	const char *text = "";

	for (uint32_t k = 0; k < f->nrounded; k++)
		text = om_printf(mem, "%s%s%s", text, *text ? " + " : "", rounded_text(mem, &f->rounded[k], symbol, words));
	if (f->nrounded && is_zero(&f->sum))
		return text;
	return om_printf(mem, "%s%s%s", om_polynomial_text(mem, &f->sum, symbol, words), *text ? " + " : "", text);
}

const char *
om_formula_text(om_arena *mem, const om_formula *f, const char *const *symbol, const om_formula_words *words)
{
	words = words ? words : &default_words;
	const char *text = sum_text(mem, f, symbol, words);

	if (!f->other)
		return text;
	for (f = f->other; f; f = f->other)
		text = om_printf(mem, "%s, %s", text, sum_text(mem, f, symbol, words));
	return om_printf(mem, "%s(%s)", words->largest, text);
}
