/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of plans with ranges: the sizes of values as polynomials.
 *
 * Copies of the open program are bound to up to three sizes of each symbol, which give polynomials, and to more sizes, at which
 * these are compared with the sizes of values.  A size that differs from its polynomial anywhere is none of the numbers
 * themselves.  It may be one of quotients, as that of a convolution with strides: then it changes at numbers at equal
 * distances, which are looked for where one symbol takes consecutive numbers, and all others their largest.  Or it is the sum of
 * several, as that of rows that are divided by 2 and by 3 and joined: then its terms are those of other values.
 *
 * Samples only suggest polynomials.  Those that are used are then proven for all sizes of the ranges (size_proof.h). */
#include <config.h>

#include <assert.h>
#include <inttypes.h>

#include "alloc/formulas.h"
#include "alloc/place_order.h"
#include "alloc/polynomial.h"
#include "alloc/run_memory.h"
#include "alloc/size_terms.h"
#include "base/guard.h"
#include "base/shape.h"
#include "base/sizes.h"
#include "host/host.h"
#include "host/range_binding.h"
#include "host/size_proof.h"
#include "ir/binding.h"
#include "ir/edit.h"
#include "ir/query.h"

enum {
	MOST_CHECKED = 32,
	MOST_IN_LINE = 400,      /* consecutive numbers; so the largest divisor is about a third of it */
	ENOUGH_CHANGES = 4,      /* in a line */
	MOST_EQUATIONS = 192,    /* for sums */
};

/* The sizes of values for one number of each symbol, that of a size in its range. */
struct sample {
	int64_t n[OM_FORMULA_SYMBOLS];
	int64_t *bytes;          /* [w->nall]; -1: not known */
};

struct sampling {
	om_host *host;
	const om_prog *open;
	om_prog *p;              /* planned */
	const om_plan *plan;
	om_arena *mem;
	om_dim_range range[OM_FORMULA_SYMBOLS]; /* of numbers of sizes; see formulas.h */
	om_sample_grid grid;
	uint32_t *value;         /* ids of values: those in arenas, then inputs and outputs outside of them */
	uint32_t nvalue;         /* in arenas */
	uint32_t nall;           /* all values, and one more: other bytes outside */
	struct sample *sample;   /* first those of the grid, by term */
	uint32_t nsample, most;
	uint32_t line[OM_FORMULA_SYMBOLS][2]; /* by symbol: samples of consecutive numbers, from .. to */
	om_polynomial *poly;     /* by value */
	bool *is_known;          /* by value: it has the polynomial */
	uint64_t bound;          /* programs, for proofs */
	const char *why;         /* there are none; NULL: not known */
	const char *why_unproven; /* see om_formulas */
};

/* ---- Sizes of values. ---- */

static int64_t
size_of(const om_value *v)
{
	return v && v->type.kind == OM_TENSOR && om_shape_is_known(&v->shape) ? (int64_t)om_value_bytes(v) : -1;
}

/* Sizes in bytes of all values, and what else is outside. */
static void
read_sizes(struct sampling *w, om_prog *p, int64_t *bytes)
{
	int64_t io = 0;

	for (uint32_t k = 0; k + 1 < w->nall; k++) {
		bytes[k] = size_of(om_prog_same_value(p, w->p->values[w->value[k]]));
		if (bytes[k] < 0 && k < w->nvalue) {
			w->why = om_printf(w->mem, "%s has no size for all numbers", w->p->values[w->value[k]]->name);
			return;
		}
		io += k >= w->nvalue ? bytes[k] : 0;
	}
	bytes[w->nall - 1] = (int64_t)om_bytes_outside_arenas(p, om_prog_op_facts(p, w->host->request)) - io;
}

static const char *
sizes_text(const struct sampling *w, const int64_t *size)
{
	const char *text = "";

	for (uint32_t k = 0; k < w->plan->nrange; k++)
		text = om_printf(w->mem, "%s%s%s = %" PRId64, text, k ? ", " : "", w->range[k].symbol, size[k]);
	return text;
}

/* A size that is not possible is a reason, too. */
static om_status
sizes_at(struct sampling *w, const int64_t *n, int64_t *bytes)
{
	const om_ranged r = {w->open, w->p, w->plan->range, w->plan->nrange};
	int64_t size[OM_FORMULA_SYMBOLS];
	om_prog *p;

	for (uint32_t d = 0; d < w->plan->nrange; d++)
		size[d] = om_size_of_step(&w->plan->range[d], n[d]);
	const om_status st = om_host_run_sizes(w->host, &r, size, w->p->passes ? w->p->passes : "shapes", &p);

	if (st == OM_OK)
		read_sizes(w, p, bytes);
	else if (st != OM_MEMORY)
		w->why = om_printf(w->mem, "%s is not possible: %s", sizes_text(w, size), om_message(w->host->session));
	om_prog_free(p);
	return st == OM_MEMORY ? st : OM_OK;
}

/* ---- Samples. ---- */

/* The sizes for these numbers, as one more sample; of numbers that are not possible, w->why tells. */
static om_status
add_sample(struct sampling *w, const int64_t *n)
{
	struct sample *x = &w->sample[w->nsample++];

	assert(w->nsample <= w->most);
	memcpy(x->n, n, sizeof x->n);
	x->bytes = OM_NEWN(w->mem, int64_t, w->nall);
	return sizes_at(w, n, x->bytes);
}

/* The ends of each range, and the number between them. */
static void
make_grid(struct sampling *w)
{
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++) {
		om_sample_grid *g = &w->grid;
		g->n[d] = 1;
		if ((uint32_t)d >= w->plan->nrange)
			continue;
		const om_dim_range *r = &w->range[d];
		g->at[d][0] = r->low;
		if (r->high > r->low)
			g->at[d][g->n[d]++] = r->high;
		if (r->high > r->low + 1) {
			g->at[d][2] = r->high;
			g->at[d][1] = r->low + (r->high - r->low) / 2;
			g->n[d] = 3;
		}
	}
}

static om_status
sample_grid(struct sampling *w)
{
	const om_sample_grid *g = &w->grid;
	int64_t n[OM_FORMULA_SYMBOLS];
	int count = 1;

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		count *= g->n[d];
	for (int k = 0; k < count && !w->why; k++) {
		for (int d = 0, at = k; d < OM_FORMULA_SYMBOLS; d++, at /= g->n[d - 1])
			n[d] = g->at[d][at % g->n[d]];
		OM_TRY(add_sample(w, n));
	}
	return OM_OK;
}

/* The `k`-th of the sizes that are compared: in steps that are no multiples of each other for different symbols, the first
 * ones beside the ends. */
static int64_t
size_to_check(const om_dim_range *r, uint64_t k, uint64_t d)
{
	const uint64_t n = (uint64_t)(r->high - r->low) + 1;

	if (k < 4)
		return (k >> d & 1) ? r->low + (n > 1) : r->high - (n > 1);
	return r->low + (int64_t)((k * 0x9e3779b97f4a7c15u >> (8 + 7 * d)) % n);
}

/* The sizes from the `from`-th to the `to`-th that are compared. */
static om_status
sample_others(struct sampling *w, uint64_t from, uint64_t to)
{
	int64_t n[OM_FORMULA_SYMBOLS] = {0};

	for (uint64_t i = from; i < to && !w->why; i++) {
		for (uint32_t d = 0; d < w->plan->nrange; d++)
			n[d] = size_to_check(&w->range[d], i, d);
		OM_TRY(add_sample(w, n));
	}
	return OM_OK;
}

/* ---- Polynomials. ---- */

static bool
has_value(const om_polynomial *f, const int64_t *n, uint64_t bytes)
{
	uint64_t is;

	return om_polynomial_value(f, n, &is) && is == bytes;
}

/* Is it the size of the value in all samples? */
static bool
holds(const struct sampling *w, const om_polynomial *f, uint32_t value)
{
	for (uint32_t k = 0; k < w->nsample; k++)
		if (w->sample[k].bytes[value] < 0 || !has_value(f, w->sample[k].n, (uint64_t)w->sample[k].bytes[value]))
			return false;
	return true;
}

/* The points of the grid at which a variable has different numbers: their indices in `at`. */
static void
distinct(const struct sampling *w, const om_polynomial *f, int d, om_sample_grid *g, int *at)
{
	g->n[d] = 0;
	for (int k = w->grid.n[d] - 1; k >= 0; k--) {
		const int64_t is = om_polynomial_variable(f, d, w->grid.at[d][k]);
		bool is_new = true;
		for (int i = 0; i < g->n[d]; i++)
			is_new &= g->at[d][i] != is;
		if (!is_new)
			continue;
		at[g->n[d]] = k;
		g->at[d][g->n[d]++] = is;
	}
}

/* The sample of the grid at the points whose indices are at[d][k % 3], at[d][k / 3 % 3], ...; UINT32_MAX: `g` does not have as many. */
static uint32_t
sample_of(const struct sampling *w, const om_sample_grid *g, int at[OM_FORMULA_SYMBOLS][3], int k)
{
	uint32_t sample = 0, step = 1;

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++, k /= 3) {
		if (k % 3 >= g->n[d])
			return UINT32_MAX;
		sample += step * (uint32_t)at[d][k % 3];
		step *= (uint32_t)w->grid.n[d];
	}
	return sample;
}

/* The factors, for the quotients that `f` has. */
static bool
fit(const struct sampling *w, uint32_t value, om_polynomial *f)
{
	int64_t y[OM_FORMULA_TERMS] = {0};
	om_polynomial found;
	om_sample_grid g;
	int at[OM_FORMULA_SYMBOLS][3];

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		distinct(w, f, d, &g, at[d]);
	for (int k = 0; k < OM_FORMULA_TERMS; k++) {
		const uint32_t sample = sample_of(w, &g, at, k);
		y[k] = sample == UINT32_MAX ? 0 : w->sample[sample].bytes[value];
	}
	if (!om_polynomial_fit(&g, y, &found))
		return false;
	memcpy(f->factor, found.factor, sizeof f->factor);
	return true;
}

/* ---- Quotients. ---- */

static bool
changes(const struct sampling *w, uint32_t value, uint32_t sample)
{
	return w->sample[sample].bytes[value] != w->sample[sample - 1].bytes[value];
}

/* Do all values that have no polynomial yet change often enough in the line of a symbol? */
static bool
is_enough(const struct sampling *w, uint32_t from)
{
	for (uint32_t v = 0; v < w->nall; v++) {
		uint32_t n = 0;
		for (uint32_t k = from + 1; k < w->nsample; k++)
			n += changes(w, v, k);
		if (n < ENOUGH_CHANGES && !w->is_known[v])
			return false;
	}
	return true;
}

static om_status
sample_line(struct sampling *w, uint32_t d)
{
	const om_dim_range *r = &w->range[d];
	int64_t n[OM_FORMULA_SYMBOLS] = {0};

	for (uint32_t k = 0; k < w->plan->nrange; k++)
		n[k] = w->range[k].high;
	w->line[d][0] = w->nsample;
	for (n[d] = r->low; n[d] <= r->high && n[d] < r->low + MOST_IN_LINE && !w->why; n[d]++) {
		OM_TRY(add_sample(w, n));
		if (n[d] % 16 == 0 && is_enough(w, w->line[d][0]))
			break;
	}
	w->line[d][1] = w->nsample;
	return OM_OK;
}

/* The distance of the numbers at which a size changes; 0: they have different ones.  `first` is the first one. */
static int64_t
distance(const struct sampling *w, uint32_t value, int d, int64_t *first)
{
	const uint32_t from = w->line[d][0], to = w->line[d][1];
	uint32_t last = from;
	int64_t longest = 0, by = 0;

	*first = 0;
	for (uint32_t k = from + 1; k <= to; k++) {
		if (k < to && !changes(w, value, k))
			continue;
		const int64_t length = k - last;
		longest = length > longest ? length : longest;
		if (last != from && k < to) {
			if (by && by != length)
				return 0;
			by = length;
		}
		if (last == from && k < to)
			*first = w->sample[k].n[d];
		last = k;
	}
	if (by == 0 && to - from > (uint64_t)(w->range[d].high - w->range[d].low))
		by = longest;            /* it changes once in the whole range */
	return by < longest ? 0 : by;
}

/* The quotient of symbol `d` that is one more wherever the size changes.  False: there is none. */
static bool
find_quotient(const struct sampling *w, uint32_t value, int d, om_polynomial *f)
{
	int64_t first;
	const int64_t by = (uint32_t)d < w->plan->nrange ? distance(w, value, d, &first) : 1;

	if (by > 1 && first) {
		f->by[d] = by;
		f->add[d] = (by - first % by) % by;
	}
	return by > 0;
}

static int
count_terms(const om_polynomial *f)
{
	int n = 0;

	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		n += f->factor[k] != 0;
	return n;
}

/* Quotients that differ by an integer make the same sizes: one with few terms. */
static void
simplify(const struct sampling *w, uint32_t value, om_polynomial *f)
{
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		for (int k = -4; k <= 4; k++) {
			om_polynomial other = *f;
			other.add[d] += k * f->by[d];
			if (f->by[d] && w->range[d].low + other.add[d] >= 0 && fit(w, value, &other)
			    && count_terms(&other) < count_terms(f)) {
				*f = other;
				k = 4;
			}
		}
}

/* Equal polynomials have the same members. */
static void
forget_unused(om_polynomial *f)
{
	static const int step[OM_FORMULA_SYMBOLS] = {1, 3, 9, 27};

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++) {
		bool is_used = false;
		for (int k = 0; k < OM_FORMULA_TERMS; k++)
			is_used |= f->factor[k] && k / step[d] % 3;
		if (!is_used)
			f->add[d] = f->by[d] = 0;
	}
}

static bool
fit_quotients(const struct sampling *w, uint32_t value, om_polynomial *f)
{
	*f = (om_polynomial){{0}};
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		if (!find_quotient(w, value, d, f))
			return false;
	if (!fit(w, value, f))
		return false;
	simplify(w, value, f);
	forget_unused(f);
	return holds(w, f, value);
}

/* ---- Sums. ---- */

/* The samples of the equations: those of the grid and beside it, then some of the lines. */
static const struct sample **
equations(const struct sampling *w, uint32_t *count)
{
	const uint32_t first = w->line[0][0], lines = w->nsample - first, most = MOST_EQUATIONS - first;
	const uint32_t n = lines < most ? lines : most;
	const struct sample **all = OM_NEWN(w->mem, const struct sample *, first + n);

	*count = first + n;
	for (uint32_t k = 0; k < *count; k++)
		all[k] = &w->sample[k < first ? k : first + (k - first) * lines / n];
	return all;
}

/* The terms of sizes that have polynomials. */
static om_size_terms *
known_terms(const struct sampling *w)
{
	om_size_terms *t = OM_NEW(w->mem, om_size_terms);

	for (uint32_t k = 0; k < w->nall; k++)
		if (w->is_known[k])
			om_size_terms_add(t, &w->poly[k]);
	om_size_terms_add_parts(t);
	return t;
}

static bool
has_size_everywhere(const struct sampling *w, uint32_t value)
{
	for (uint32_t k = 0; k < w->nsample; k++)
		if (w->sample[k].bytes[value] < 0)
			return false;
	return true;
}

/* The sizes that have no polynomial, and of which values they are. */
static om_size_points
unknown_points(const struct sampling *w, uint32_t *value)
{
	uint32_t npoint;
	const struct sample **at = equations(w, &npoint);
	const int64_t **n = OM_NEWN(w->mem, const int64_t *, npoint), **bytes = OM_NEWN(w->mem, const int64_t *, w->nall);
	om_size_points x = {n, npoint, bytes, 0};

	for (uint32_t k = 0; k < npoint; k++)
		n[k] = at[k]->n;
	for (uint32_t v = 0; v < w->nall; v++) {
		if (w->is_known[v] || !has_size_everywhere(w, v))
			continue;
		int64_t *of = OM_NEWN(w->mem, int64_t, npoint);
		for (uint32_t k = 0; k < npoint; k++)
			of[k] = at[k]->bytes[v];
		value[x.nvalue] = v;
		bytes[x.nvalue++] = of;
	}
	return x;
}

/* Sums have to hold for all samples, and for further ones. */
static om_status
find_sums(struct sampling *w)
{
	uint32_t *value = OM_NEWN(w->mem, uint32_t, w->nall);
	const om_size_points x = unknown_points(w, value);
	const om_polynomial *const *sum = om_size_terms_fit(known_terms(w), &x, w->plan->mem);

	OM_TRY(sample_others(w, MOST_CHECKED, (uint64_t)2 * MOST_CHECKED));
	for (uint32_t k = 0; k < x.nvalue && !w->why; k++)
		if (sum[k] && holds(w, sum[k], value[k])) {
			w->poly[value[k]] = *sum[k];
			w->is_known[value[k]] = true;
		}
	for (uint32_t k = 0; k < w->nall && !w->why; k++)
		w->is_known[k] = w->is_known[k] && holds(w, &w->poly[k], k);
	return OM_OK;
}

/* ---- All sizes. ---- */

static bool
fit_all(struct sampling *w, bool (*how)(const struct sampling *, uint32_t, om_polynomial *))
{
	bool all = true;

	for (uint32_t k = 0; k < w->nall; k++) {
		if (!w->is_known[k])
			w->is_known[k] = how(w, k, &w->poly[k]);
		all &= w->is_known[k];
	}
	return all;
}

static bool
fit_numbers(const struct sampling *w, uint32_t value, om_polynomial *f)
{
	*f = (om_polynomial){{0}};
	return fit(w, value, f) && holds(w, f, value);
}

static const char *
no_polynomial(const struct sampling *w, uint32_t value)
{
	const char *symbols = "";

	for (uint32_t k = 0; k < w->plan->nrange; k++)
		symbols = om_printf(w->mem, "%s%s%s", symbols, k ? ", " : "", w->range[k].symbol);
	return om_printf(w->mem, "the size of %s is no polynomial of %s, nor of a quotient of each, nor a sum of such sizes",
		w->p->values[value]->name, symbols);
}

/* What has been a polynomial of numbers has to be one in the lines, too. */
static om_status
find_quotients(struct sampling *w)
{
	for (uint32_t d = 0; d < w->plan->nrange && !w->why; d++)
		OM_TRY(sample_line(w, d));
	for (uint32_t k = 0; k < w->nall; k++)
		w->is_known[k] = w->is_known[k] && holds(w, &w->poly[k], k);
	return w->why || fit_all(w, fit_quotients) ? OM_OK : find_sums(w);
}

/* ---- Proofs. ---- */

static const char *
not_proven(const struct sampling *w, const char *value, bool keeps)
{
	if (!keeps)
		return "the passes make other programs of the model, which have to be compared one by one, and the ranges have too many sizes for that";
	return om_printf(w->mem, "the size of %s does not follow from the shapes of inputs, and the ranges have too many sizes to compare "
		"it in each", value);
}

/* Weights, which are what is left of the bytes outside, are the same for all sizes. */
static bool
is_constant(const om_polynomial *f)
{
	for (int k = 1; k < OM_FORMULA_TERMS; k++)
		if (f->factor[k])
			return false;
	return !f->more;
}

/* Those of values outside are for the total alone. */
static om_status
prove_sizes(struct sampling *w)
{
	const om_ranged r = {w->open, w->p, w->plan->range, w->plan->nrange};
	const char *passes = w->p->passes ? w->p->passes : "shapes";
	om_proven_size *size = OM_NEWN(w->mem, om_proven_size, w->nall);
	uint32_t *value = OM_NEWN(w->mem, uint32_t, w->nall), n = 0;

	for (uint32_t k = 0; k + 1 < w->nall; k++)
		if (w->is_known[k]) {
			value[n] = k;
			size[n++] = (om_proven_size){.value = w->p->values[w->value[k]], .bytes = &w->poly[k]};
		}
	const bool keeps = om_passes_keep_values(w->plan, passes);
	OM_TRY(om_host_prove_sizes(w->host, &r, passes, keeps, size, n, w->mem, &w->bound, &w->why));
	for (uint32_t k = 0; k < n && !w->why; k++) {
		const bool is_inside = value[k] < w->nvalue;
		if (is_inside && size[k].is_wrong)
			w->why = no_polynomial(w, w->value[value[k]]);
		else if (is_inside && !size[k].is_proven && !w->why_unproven)
			w->why_unproven = not_proven(w, size[k].value->name, keeps);
		w->is_known[value[k]] = size[k].is_proven || is_inside;
	}
	w->is_known[w->nall - 1] = w->is_known[w->nall - 1] && is_constant(&w->poly[w->nall - 1]);
	return OM_OK;
}

/* Without polynomials of what is outside, there are formulas of the arenas alone. */
static om_status
find_sizes(struct sampling *w)
{
	OM_TRY(sample_grid(w));
	if (!w->why)
		OM_TRY(sample_others(w, 0, MOST_CHECKED));
	if (!w->why && !fit_all(w, fit_numbers))
		OM_TRY(find_quotients(w));
	for (uint32_t k = 0; k < w->nvalue && !w->why; k++)
		if (!w->is_known[k])
			w->why = no_polynomial(w, w->value[k]);
	return w->why ? OM_OK : prove_sizes(w);
}

/* ---- Points. ---- */

enum { POINTS = 9 };

/* The arenas for sizes of values. */
static uint64_t
arenas_of(const struct sampling *w, const om_place_order *o, const int64_t *bytes)
{
	uint64_t *by_box = OM_NEWN(w->mem, uint64_t, o->nbox), *offset = OM_NEWN(w->mem, uint64_t, o->nstorage);
	uint64_t *height = OM_NEWN(w->mem, uint64_t, w->plan->narena);
	int64_t *by_value = OM_NEWN(w->mem, int64_t, w->plan->nplace);

	for (uint32_t k = 0; k < w->nvalue; k++)
		by_value[w->value[k]] = bytes[k];
	for (uint32_t k = 0; k < o->nbox; k++) {
		const om_place_box *x = &o->box[k];
		const uint64_t is = x->value ? (uint64_t)by_value[x->value->id] : x->bytes;
		by_box[k] = om_size_rounded_up(is, w->plan->arena[o->arena[x->storage]].align);
	}
	om_place_offsets(o, by_box, offset, height);
	uint64_t sum = 0;
	for (uint32_t k = 0; k < w->plan->narena; k++)
		sum = om_size_sum(sum, height[k]);
	return sum;
}

/* Sizes at equal distances, of all symbols at once; those that are not possible are left out. */
static om_status
find_points(struct sampling *w, om_formulas *f)
{
	const om_place_order *o = om_place_order_new(w->p, w->plan, w->mem);
	om_formula_point *all = OM_NEWN(w->plan->mem, om_formula_point, POINTS);
	int64_t *bytes = OM_NEWN(w->mem, int64_t, w->nall);

	f->point = all;
	for (int k = 0; o && k < POINTS; k++) {
		om_formula_point *at = &all[f->npoint];
		for (uint32_t d = 0; d < w->plan->nrange; d++)
			at->n[d] = w->range[d].low + (w->range[d].high - w->range[d].low) * k / (POINTS - 1);
		w->why = NULL;
		OM_TRY(sizes_at(w, at->n, bytes));
		if (w->why || (f->npoint && memcmp(all[f->npoint - 1].n, at->n, sizeof at->n) == 0))
			continue;
		at->arenas = arenas_of(w, o, bytes);
		f->npoint++;
	}
	for (uint32_t k = 0; k < f->npoint; k++)
		for (uint32_t d = 0; d < w->plan->nrange; d++)
			all[k].n[d] = om_size_of_step(&w->plan->range[d], all[k].n[d]);
	return OM_OK;
}

/* ---- All. ---- */

static void
list_values(struct sampling *w)
{
	const bool *is_io = om_io_outside_arenas(w->p, om_prog_op_facts(w->p, w->host->request), w->mem);

	w->value = OM_NEWN(w->mem, uint32_t, (size_t)w->plan->nplace * 2);
	for (uint32_t k = 0; k < w->plan->nplace; k++)
		if (w->plan->place[k].where == OM_IN_ARENA)
			w->value[w->nvalue++] = k;
	w->nall = w->nvalue;
	for (uint32_t k = 0; k < w->plan->nplace; k++)
		if (is_io[k])
			w->value[w->nall++] = k;
	w->nall++;
	w->most = OM_FORMULA_TERMS + 2 * MOST_CHECKED + OM_FORMULA_SYMBOLS * MOST_IN_LINE;
	w->sample = OM_NEWN(w->mem, struct sample, w->most);
	w->poly = OM_NEWN(w->plan->mem, om_polynomial, w->nall);
	w->is_known = OM_NEWN(w->mem, bool, w->nall);
}

static bool
is_outside_known(const struct sampling *w)
{
	for (uint32_t k = w->nvalue; k < w->nall; k++)
		if (!w->is_known[k])
			return false;
	return true;
}

/* The sum of what is outside; NULL: it is not known. */
static om_formula *
sum_outside(const struct sampling *w)
{
	om_formula *f = OM_NEW(w->plan->mem, om_formula);
	om_rounded *part = OM_NEWN(w->plan->mem, om_rounded, w->nall - w->nvalue);

	f->rounded = part;
	for (uint32_t k = w->nvalue; k < w->nall; k++)
		if (om_polynomial_has_quotients(&w->poly[k]))
			part[f->nrounded++] = (om_rounded){1, 1, w->poly[k]};
		else if (!om_polynomial_add(&f->sum, &w->poly[k], 1))
			return NULL;
	om_formula_of_sizes(w->plan, f, part);
	return f;
}

/* Outputs in the memory of inputs are counted twice in the sizes outside: then the total has no formula. */
static const om_formula *
find_outside(const struct sampling *w)
{
	const om_plan_memory memory = om_plan_memory_of(w->p, w->plan);
	const om_formula *f = is_outside_known(w) ? sum_outside(w) : NULL;
	int64_t n[OM_FORMULA_SYMBOLS] = {0};

	for (uint32_t d = 0; d < w->plan->nrange; d++)
		n[d] = w->plan->range[d].high;
	return f && om_formula_value(f, n) == memory.io + memory.weights ? f : NULL;
}

static om_formulas *
make_formulas(const struct sampling *w)
{
	const om_polynomial **bytes = OM_NEWN(w->plan->mem, const om_polynomial *, w->plan->nplace);

	for (uint32_t k = 0; k < w->nvalue; k++)
		bytes[w->value[k]] = &w->poly[k];
	om_formulas *f = om_formulas_new(w->p, w->plan, bytes, find_outside(w));
	for (uint32_t k = 0; k < w->nvalue; k++)
		w->poly[k] = om_polynomial_of_sizes(w->plan, &w->poly[k]);
	f->checked = w->nsample + w->bound;
	f->why_unproven = w->why_unproven ? om_strdup(w->plan->mem, w->why_unproven) : NULL;
	return f;
}

static const char *
refuse(const om_plan *plan)
{
	if (plan->nrange > OM_FORMULA_SYMBOLS)
		return "there are more than 4 symbols";
	for (uint32_t k = 0; k < plan->nrange; k++)
		if (plan->range[k].high > INT32_MAX)
			return "a size is larger than 2^31";
	return NULL;
}

static om_status
find(struct sampling *w)
{
	w->why = refuse(w->plan);
	if (!w->why) {
		for (uint32_t d = 0; d < w->plan->nrange; d++)
			w->range[d] = om_range_of_steps(&w->plan->range[d]);
		list_values(w);
		make_grid(w);
		OM_TRY(find_sizes(w));
	}
	om_formulas *f = w->why ? om_formulas_none(w->plan, w->why) : make_formulas(w);
	w->p->plan->formulas = f;
	return f->why && w->value ? find_points(w, f) : OM_OK;
}

static om_status
find_guarded(om_host *h, const om_prog *open, om_prog *p)
{
	struct sampling w = {.host = h, .open = open, .p = p, .plan = p->plan, .mem = om_arena_new()};
	om_pass_hook *hook = h->hook;

	h->hook = NULL;          /* these runs are none of the caller's */
	const om_status st = find(&w);
	h->hook = hook;
	om_arena_free(w.mem);
	return st;
}

om_status
om_host_find_formulas(om_host *h, const om_prog *open, om_prog *p)
{
	if (!(p->has & OM_HAS_PLAN) || p->plan->nrange == 0)
		return om_fail(h->session, OM_USAGE, "the program has no plan with ranges");
	OM_GUARDED(h->session, find_guarded(h, open, p));
}
