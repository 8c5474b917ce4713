/* SPDX-License-Identifier: Apache-2.0 */
/* Proves that sizes of values are their polynomials for all numbers of ranges; see size_proof.h.
 *
 * Samples suggest polynomials; that they hold is derived.  The program is bound to numbers of some symbols, and the others stay
 * open.  A dim that inference finds then does not depend on the open ones, as inference uses what it is given and no
 * more: what the file declares of values is removed before.  So each dim of a value becomes one of
 *
 *   - a number, or the symbol of an input, found with all symbols open: known for all sizes;
 *   - a table, by the numbers of one symbol, found with the others open, for every number of its range;
 *   - a table by the numbers of several symbols; if all are bound, it is the size of the value itself.
 *
 * The size is the product of the dims.  It is compared with the polynomial at every number of the symbols of tables, and of those
 * that the polynomial has quotients of.  In any other symbol both are polynomials, of a degree that the dims tell: that of
 * the size is at most the number of times that the symbol is in its dims, that of the polynomial at most 2.  Two of
 * them that are equal at more points than that are equal. */
#include <config.h>

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/formulas.h"
#include "alloc/polynomial.h"
#include "host/size_proof.h"
#include "ir/edit.h"

enum {
	MOST_OPS = 1 << 20,      /* that are inferred in all */
	MOST_COMPARED = 1 << 26, /* in all */
	SETS = 1 << OM_FORMULA_SYMBOLS,
};

struct dim {
	bool is_found;
	unsigned by;             /* the symbols of the table */
	int64_t *table;          /* by numbers of these symbols; NULL: `symbol` */
	const char *symbol;
};

typedef struct dim dims_of_value[OM_MAX_RANK];

struct om_size_proof {
	om_host *host;
	const om_ranged *r;
	const char *passes;
	bool has_branches;       /* the passes leave out some */
	om_arena *mem;
	om_dim_range range[OM_FORMULA_SYMBOLS]; /* of numbers of sizes */
	om_proven_size *size;
	uint32_t nsize;
	dims_of_value *dim; /* by size */
	uint64_t inferred, compared;
	uint64_t *looked_at;
	const char **why;
};

/* ---- Sets of symbols. ---- */

static uint64_t
count_numbers(const om_size_proof *w, uint32_t d)
{
	return (uint64_t)(w->range[d].high - w->range[d].low) + 1;
}

uint64_t
om_proof_combinations(const om_size_proof *w, unsigned set)
{
	uint64_t n = 1;

	for (uint32_t d = 0; d < w->r->nrange; d++)
		if ((set >> d & 1) && __builtin_mul_overflow(n, count_numbers(w, d), &n))
			return UINT64_MAX;
	return n;
}

static uint64_t
index_of(const om_size_proof *w, unsigned set, const int64_t *n)
{
	uint64_t at = 0;

	for (uint32_t d = w->r->nrange; d-- > 0;)
		if (set >> d & 1)
			at = at * count_numbers(w, d) + (uint64_t)(n[d] - w->range[d].low);
	return at;
}

void
om_proof_numbers(const om_size_proof *w, unsigned set, uint64_t at, int64_t *n)
{
	for (uint32_t d = 0; d < w->r->nrange; d++) {
		n[d] = w->range[d].high;
		if (set >> d & 1) {
			n[d] = w->range[d].low + (int64_t)(at % count_numbers(w, d));
			at /= count_numbers(w, d);
		}
	}
}

static void
sizes_of(const om_size_proof *w, const int64_t *n, int64_t *size)
{
	for (uint32_t d = 0; d < w->r->nrange; d++)
		size[d] = om_size_of_step(&w->r->range[d], n[d]);
}

static unsigned
all_symbols(const om_size_proof *w)
{
	return (1u << w->r->nrange) - 1;
}

/* ---- Dims. ---- */

static bool
has_rank(const om_value *v, const om_value *as)
{
	return v && v->type.kind == OM_TENSOR && v->type.elem == as->type.elem && v->shape.rank == as->shape.rank;
}

/* What a program says about a dim that is not found yet; `is_found` becomes false where it says nothing. */
static void
read_dim(om_size_proof *w, const om_value *v, int axis, unsigned set, uint64_t at, struct dim *d)
{
	const char *symbol = v ? v->shape.sym[axis] : NULL;

	if (v && v->shape.dim[axis] >= 0 && !d->symbol) {
		if (!d->table)
			d->table = OM_NEWN(w->mem, int64_t, om_proof_combinations(w, set));
		d->table[at] = v->shape.dim[axis];
	} else if (set == 0 && symbol && om_ranged_dim_is_polynomial(w->r, symbol)) {
		d->symbol = om_strdup(w->mem, symbol);
	} else {
		d->is_found = false;
	}
}

static void
read_dims(om_size_proof *w, const om_prog *p, unsigned set, uint64_t at, dims_of_value *found)
{
	for (uint32_t k = 0; k < w->nsize; k++) {
		const om_value *as = w->size[k].value, *v = om_prog_same_value(p, as);
		v = has_rank(v, as) ? v : NULL;
		for (int d = 0; d < as->shape.rank; d++)
			if (found[k][d].is_found)
				read_dim(w, v, d, set, at, &found[k][d]);
	}
}

static dims_of_value *
start_dims(om_size_proof *w, unsigned set)
{
	dims_of_value *found = OM_NEWN(w->mem, dims_of_value, w->nsize);

	for (uint32_t k = 0; k < w->nsize; k++)
		for (int d = 0; d < OM_MAX_RANK; d++)
			found[k][d] = (struct dim){.is_found = !w->dim[k][d].is_found, .by = set};
	return found;
}

static void
keep_dims(om_size_proof *w, dims_of_value *found)
{
	for (uint32_t k = 0; k < w->nsize; k++)
		for (int d = 0; d < w->size[k].value->shape.rank; d++)
			if (!w->dim[k][d].is_found && found[k][d].is_found)
				w->dim[k][d] = found[k][d];
}

static void
say_impossible(om_size_proof *w, const int64_t *size)
{
	const char *text = "";

	for (uint32_t d = 0; d < w->r->nrange; d++)
		text = om_printf(w->mem, "%s%s%s = %" PRId64, text, d ? ", " : "", w->r->range[d].symbol, size[d]);
	*w->why = om_printf(w->mem, "%s is not possible: %s", text, om_message(w->host->session));
}

/* A program that cannot be inferred with open symbols proves nothing, nor does one with other branches. */
static om_status
find_dims(om_size_proof *w, unsigned set)
{
	const uint64_t count = om_proof_combinations(w, set);
	dims_of_value *found = start_dims(w, set);
	int64_t n[OM_FORMULA_SYMBOLS], size[OM_FORMULA_SYMBOLS];

	for (uint64_t at = 0; at < count; at++) {
		om_prog *p;
		om_proof_numbers(w, set, at, n);
		sizes_of(w, n, size);
		const om_status st = om_host_run_open_sizes(w->host, w->r, size, set, w->passes, &p);
		const bool is_same = st == OM_OK && (!w->has_branches || om_ranged_has_ops(w->r, p));
		if (is_same)
			read_dims(w, p, set, at, found);
		om_prog_free(p);
		++*w->looked_at;
		if (st == OM_MEMORY)
			return st;
		if (st != OM_OK && set == all_symbols(w))
			say_impossible(w, size);
		if (!is_same)
			return OM_OK;
	}
	keep_dims(w, found);
	return OM_OK;
}

static bool
has_all_dims(const om_size_proof *w, uint32_t k)
{
	for (int d = 0; d < w->size[k].value->shape.rank; d++)
		if (!w->dim[k][d].is_found)
			return false;
	return true;
}

static bool
is_done(const om_size_proof *w)
{
	for (uint32_t k = 0; k < w->nsize; k++)
		if (!w->size[k].is_proven && !w->size[k].is_wrong)
			return false;
	return true;
}

/* ---- Comparing. ---- */

bool
om_proven_shape(const om_size_proof *w, uint32_t k, const int64_t *n, om_shape *out)
{
	int64_t size[OM_FORMULA_SYMBOLS];

	*out = w->size[k].value->shape;
	sizes_of(w, n, size);
	for (int d = 0; d < out->rank; d++) {
		const struct dim *x = &w->dim[k][d];
		out->sym[d] = NULL;
		out->dim[d] = x->table ? x->table[index_of(w, x->by, n)] : om_ranged_dim(w->r, size, x->symbol);
		if (out->dim[d] < 0)
			return false;
	}
	return true;
}

/* The size at these numbers; false: too large. */
static bool
bytes_at(const om_size_proof *w, uint32_t k, const int64_t *n, uint64_t *bytes)
{
	om_shape shape;

	return om_proven_shape(w, k, n, &shape) && om_tensor_bytes(w->size[k].value->type.elem, &shape, bytes);
}

/* Is the size at these numbers what it has to be? */
static bool
is_right(const om_size_proof *w, uint32_t k, const int64_t *n)
{
	const om_proven_size *s = &w->size[k];
	uint64_t is, wanted;

	if (!bytes_at(w, k, n, &is))
		return false;
	return s->bytes ? om_polynomial_value(s->bytes, n, &wanted) && is == wanted : is <= s->most;
}

/* The symbols of the tables of a value. */
static unsigned
by_tables(const om_size_proof *w, uint32_t k)
{
	unsigned set = 0;

	for (int a = 0; a < w->size[k].value->shape.rank; a++)
		set |= w->dim[k][a].table ? w->dim[k][a].by : 0;
	return set;
}

static bool
has_quotient(const om_polynomial *f, uint32_t d)
{
	for (; f; f = f->more)
		if (f->by[d])
			return true;
	return false;
}

/* How many numbers of a symbol decide whether the polynomial is the size, from the least one on.  What is no more than a bound for the
 * largest number is so for all, if no table has the symbol: then dims are sums and products of it. */
static uint64_t
numbers_that_decide(const om_size_proof *w, uint32_t k, uint32_t d)
{
	const om_value *v = w->size[k].value;
	uint64_t degree = 2;

	if (!w->size[k].bytes)
		return by_tables(w, k) >> d & 1 ? count_numbers(w, d) : 1;
	if (om_dtype_bits(v->type.elem) % 8 || has_quotient(w->size[k].bytes, d))
		return count_numbers(w, d);
	for (int a = 0; a < v->shape.rank; a++) {
		const struct dim *x = &w->dim[k][a];
		if (x->table && (x->by >> d & 1))
			return count_numbers(w, d);
		degree += x->table ? 0 : om_ranged_dim_degree(x->symbol, w->r->range[d].symbol);
	}
	return degree + 1 < count_numbers(w, d) ? degree + 1 : count_numbers(w, d);
}

/* Sets one of the flags, unless there are too many numbers. */
static void
decide(om_size_proof *w, uint32_t k)
{
	uint64_t of[OM_FORMULA_SYMBOLS] = {1, 1, 1, 1}, count = 1;
	int64_t n[OM_FORMULA_SYMBOLS] = {0};

	for (uint32_t d = 0; d < w->r->nrange; d++) {
		of[d] = numbers_that_decide(w, k, d);
		if (__builtin_mul_overflow(count, of[d], &count))
			return;
	}
	if (count > MOST_COMPARED - w->compared)
		return;
	w->compared += count;
	for (uint64_t at = 0; at < count && !w->size[k].is_wrong; at++) {
		uint64_t left = at;
		for (uint32_t d = 0; d < w->r->nrange; d++, left /= of[d - 1])
			n[d] = w->size[k].bytes ? w->range[d].low + (int64_t)(left % of[d]) : w->range[d].high - (int64_t)(left % of[d]);
		w->size[k].is_wrong = !is_right(w, k, n);
	}
	w->size[k].is_proven = !w->size[k].is_wrong;
}

static void
compare(om_size_proof *w)
{
	for (uint32_t k = 0; k < w->nsize; k++)
		if (!w->size[k].is_proven && !w->size[k].is_wrong && has_all_dims(w, k))
			decide(w, k);
}

/* ---- All. ---- */

/* Sets with fewer symbols first. */
static om_status
try_sets(om_size_proof *w, bool keeps_values)
{
	static const unsigned order[SETS] = {0, 1, 2, 4, 8, 3, 5, 6, 9, 10, 12, 7, 11, 13, 14, 15};

	keeps_values &= om_ranged_names_follow(w->r);
	for (int k = 0; k < SETS && !is_done(w) && !*w->why; k++) {
		const unsigned set = order[k];
		if (set > all_symbols(w) || (set != all_symbols(w) && !keeps_values)
		    || om_proof_combinations(w, set) > (MOST_OPS - w->inferred) / (w->r->bound->nop + 1))
			continue;
		w->inferred += om_proof_combinations(w, set) * (w->r->bound->nop + 1);
		OM_TRY(find_dims(w, set));
		compare(w);
	}
	return OM_OK;
}

om_status
om_host_prove_shapes(om_host *h, const om_ranged *r, const char *passes, bool keeps_values, om_proven_size *size, uint32_t n,
	om_arena *mem, uint64_t *looked_at, const char **why, const om_size_proof **out)
{
	om_size_proof *w = OM_NEW(mem, om_size_proof);

	*w = (om_size_proof){.host = h, .r = r, .passes = passes, .has_branches = strstr(passes, "branches") != NULL, .mem = mem, .size = size, .nsize = n, .looked_at = looked_at, .why = why};
	assert(r->nrange <= OM_FORMULA_SYMBOLS);
	for (uint32_t d = 0; d < r->nrange; d++)
		w->range[d] = om_range_of_steps(&r->range[d]);
	w->dim = OM_NEWN(mem, dims_of_value, n);
	*out = w;
	return try_sets(w, keeps_values);
}

om_status
om_host_prove_sizes(om_host *h, const om_ranged *r, const char *passes, bool keeps_values, om_proven_size *size, uint32_t n,
	om_arena *mem, uint64_t *looked_at, const char **why)
{
	const om_size_proof *w;

	return om_host_prove_shapes(h, r, passes, keeps_values, size, n, mem, looked_at, why, &w);
}

/* ---- What was found. ---- */

unsigned
om_proven_shape_by(const om_size_proof *w, uint32_t k)
{
	unsigned set = by_tables(w, k);

	for (int a = 0; a < w->size[k].value->shape.rank; a++)
		for (uint32_t d = 0; d < w->r->nrange; d++)
			if (!w->dim[k][a].table && om_ranged_dim_degree(w->dim[k][a].symbol, w->r->range[d].symbol))
				set |= 1u << d;
	return set;
}

static bool
is_same_dim(const om_size_proof *w, const struct dim *a, const struct dim *b)
{
	if (!a->table || !b->table)
		return !a->table && !b->table && strcmp(a->symbol, b->symbol) == 0;
	return a->by == b->by && memcmp(a->table, b->table, om_proof_combinations(w, a->by) * sizeof *a->table) == 0;
}

bool
om_proven_shapes_equal(const om_size_proof *w, uint32_t a, uint32_t b)
{
	const int rank = w->size[a].value->shape.rank;

	if (rank != w->size[b].value->shape.rank)
		return false;
	for (int d = 0; d < rank; d++)
		if (!is_same_dim(w, &w->dim[a][d], &w->dim[b][d]))
			return false;
	return true;
}
