/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as sums of terms of other sizes: see size_terms.h.
 *
 * The factors solve a system of linear equations, one for each point, with one column for each term.  It is solved modulo a
 * prime, so that no number grows; factors are integers far below it.  Of terms that depend on each other at these points
 * the first ones are taken. */
#include <config.h>

#include "alloc/size_terms.h"

__extension__ typedef unsigned __int128 wide;

#define PRIME ((UINT64_C(1) << 61) - 1)
#define MOST_FACTOR (INT64_C(1) << 48)

/* ---- Terms. ---- */

static int
exponent(int term, int d)
{
	static const int step[OM_FORMULA_SYMBOLS] = {1, 3, 9, 27};

	return term / step[d] % 3;
}

/* The term whose factor is not 0. */
static int
term_of(const om_polynomial *f)
{
	int k = 0;

	while (f->factor[k] == 0)
		k++;
	return k;
}

static void
add_term(om_size_terms *t, const om_polynomial *f, int k)
{
	om_polynomial one = {{0}};

	one.factor[k] = 1;
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		if (exponent(k, d)) {
			one.add[d] = f->add[d];
			one.by[d] = f->by[d];
		}
	for (uint32_t i = 0; i < t->n; i++)
		if (om_polynomial_equal(&t->term[i], &one))
			return;
	if (t->n < OM_MOST_SIZE_TERMS)
		t->term[t->n++] = one;
}

void
om_size_terms_add(om_size_terms *t, const om_polynomial *f)
{
	for (; f; f = f->more)
		for (int k = 0; k < OM_FORMULA_TERMS; k++)
			if (f->factor[k])
				add_term(t, f, k);
}

/* Is no exponent of term `k` larger than that of `of`? */
static bool
divides(int k, int of)
{
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		if (exponent(k, d) > exponent(of, d))
			return false;
	return true;
}

void
om_size_terms_add_parts(om_size_terms *t)
{
	const uint32_t n = t->n;

	for (uint32_t i = 0; i < n; i++) {
		const int of = term_of(&t->term[i]);
		for (int k = 0; k < of; k++)
			if (divides(k, of))
				add_term(t, &t->term[i], k);
	}
}

/* ---- Equations. ---- */

struct system {
	const om_size_terms *t;
	uint64_t **row;          /* by point: the terms, then the sizes of values */
	uint32_t nrow, nterm, ncolumn;
	uint32_t pivot[OM_MOST_SIZE_TERMS]; /* by term: its row; UINT32_MAX: its factor is 0 */
	uint32_t nsolved;        /* rows that have a term: the first ones */
};

static uint64_t
times(uint64_t a, uint64_t b)
{
	const wide x = (wide)a * b;
	const uint64_t sum = (uint64_t)(x & PRIME) + (uint64_t)(x >> 61);

	return sum >= PRIME ? sum - PRIME : sum;
}

/* a / b is a * b^(p - 2). */
static uint64_t
inverse(uint64_t b)
{
	uint64_t x = 1;

	for (uint64_t e = PRIME - 2; e; e >>= 1, b = times(b, b))
		x = e & 1 ? times(x, b) : x;
	return x;
}

/* False: a number is too large. */
static bool
write_row(struct system *s, const om_size_points *x, uint32_t point)
{
	uint64_t *row = s->row[point];

	for (uint32_t k = 0; k < s->nterm; k++)
		if (!om_polynomial_value(&s->t->term[k], x->n[point], &row[k]))
			return false;
	for (uint32_t k = 0; k < x->nvalue; k++)
		row[s->nterm + k] = (uint64_t)x->bytes[k][point];
	for (uint32_t k = 0; k < s->ncolumn; k++)
		row[k] %= PRIME;
	return true;
}

/* Leave `term` in row `from` alone. */
static void
eliminate(struct system *s, uint32_t from, uint32_t term)
{
	const uint64_t *a = s->row[from];

	for (uint32_t i = 0; i < s->nrow; i++) {
		uint64_t *b = s->row[i];
		const uint64_t minus = b[term] ? PRIME - b[term] : 0;
		for (uint32_t k = term; i != from && minus && k < s->ncolumn; k++) {
			const uint64_t sum = b[k] + times(minus, a[k]);
			b[k] = sum >= PRIME ? sum - PRIME : sum;
		}
	}
}

static void
solve_term(struct system *s, uint32_t term)
{
	uint32_t i = s->nsolved;

	s->pivot[term] = UINT32_MAX;
	while (i < s->nrow && s->row[i][term] == 0)
		i++;
	if (i == s->nrow)
		return;
	uint64_t *row = s->row[i];
	s->row[i] = s->row[s->nsolved];
	s->row[s->nsolved] = row;
	const uint64_t by = inverse(row[term]);
	for (uint32_t k = term; k < s->ncolumn; k++)
		row[k] = times(row[k], by);
	eliminate(s, s->nsolved, term);
	s->pivot[term] = s->nsolved++;
}

/* ---- Sums. ---- */

/* A polynomial of a sum, and which of its symbols terms have. */
struct part {
	om_polynomial f;
	bool has[OM_FORMULA_SYMBOLS];
};

struct parts {
	struct part part[OM_MOST_SIZE_TERMS];
	uint32_t n;
};

static bool
fits(const struct part *p, const om_polynomial *term, int k)
{
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		if (exponent(k, d) && p->has[d] && (p->f.by[d] != term->by[d] || p->f.add[d] != term->add[d]))
			return false;
	return true;
}

/* To the first part that has the same quotients. */
static void
add_factor(struct parts *all, const om_polynomial *term, int64_t factor)
{
	const int k = term_of(term);
	uint32_t i = 0;

	while (i < all->n && !fits(&all->part[i], term, k))
		i++;
	if (i == all->n)
		all->part[all->n++] = (struct part){.f = {{0}}};
	struct part *p = &all->part[i];
	p->f.factor[k] = factor;
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		if (exponent(k, d)) {
			p->has[d] = true;
			p->f.by[d] = term->by[d];
			p->f.add[d] = term->add[d];
		}
}

/* False: the factor is no integer, or a large one. */
static bool
factor_at(const struct system *s, uint32_t term, uint32_t column, int64_t *out)
{
	const uint64_t x = s->pivot[term] == UINT32_MAX ? 0 : s->row[s->pivot[term]][column];

	*out = x > PRIME / 2 ? -(int64_t)(PRIME - x) : (int64_t)x;
	return *out < MOST_FACTOR && *out > -MOST_FACTOR;
}

static bool
is_solved(const struct system *s, uint32_t column)
{
	for (uint32_t i = s->nsolved; i < s->nrow; i++)
		if (s->row[i][column])
			return false;
	return true;
}

static const om_polynomial *
sum_of(const struct system *s, uint32_t column, om_arena *mem)
{
	struct parts all = {.n = 0};
	int64_t factor;

	if (!is_solved(s, column))
		return NULL;
	for (uint32_t k = 0; k < s->nterm; k++) {
		if (!factor_at(s, k, column, &factor))
			return NULL;
		if (factor)
			add_factor(&all, &s->t->term[k], factor);
	}
	om_polynomial *sum = OM_NEWN(mem, om_polynomial, all.n + 1);
	for (uint32_t k = 0; k < all.n; k++) {
		sum[k] = all.part[k].f;
		sum[k].more = k + 1 < all.n ? &sum[k + 1] : NULL;
	}
	return sum;
}

const om_polynomial *const *
om_size_terms_fit(const om_size_terms *t, const om_size_points *x, om_arena *mem)
{
	const om_polynomial **found = OM_NEWN(mem, const om_polynomial *, x->nvalue);
	om_arena *tmp = om_arena_new();
	struct system s = {.t = t, .nrow = x->npoint, .nterm = t->n, .ncolumn = t->n + x->nvalue};
	bool is_possible = true;

	s.row = OM_NEWN(tmp, uint64_t *, s.nrow);
	for (uint32_t i = 0; i < s.nrow && is_possible; i++) {
		s.row[i] = OM_NEWN(tmp, uint64_t, s.ncolumn);
		is_possible = write_row(&s, x, i);
	}
	for (uint32_t k = 0; k < s.nterm && is_possible; k++)
		solve_term(&s, k);
	for (uint32_t k = 0; k < x->nvalue && is_possible; k++)
		found[k] = sum_of(&s, s.nterm + k, mem);
	om_arena_free(tmp);
	return found;
}
