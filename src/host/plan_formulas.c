/* Formulas of plans with ranges: the sizes of values as polynomials.
 *
 * Copies of the open program are bound to up to three sizes of each symbol, which give polynomials, and to more sizes, at which
 * these are compared with the sizes of values.  A size that differs from its polynomial anywhere is none. */
#include <config.h>

#include <inttypes.h>

#include "alloc/formulas.h"
#include "alloc/place_order.h"
#include "alloc/polynomial.h"
#include "alloc/run_memory.h"
#include "base/guard.h"
#include "base/shape.h"
#include "base/sizes.h"
#include "host/host.h"
#include "ir/binding.h"
#include "ir/edit.h"
#include "ir/query.h"

enum { MOST_CHECKED = 32 };

struct sampling {
	om_host *host;
	const om_prog *open;
	om_prog *p;              /* planned */
	const om_plan *plan;
	om_arena *mem;
	om_sample_grid grid;
	uint32_t *value;         /* ids of values in arenas */
	uint32_t nvalue;
	int64_t (*y)[OM_FORMULA_TERMS]; /* by value, and at the end those outside of arenas */
	om_polynomial *poly;     /* the same */
	bool is_outside_known;   /* what is outside of arenas has its polynomial so far */
	const char *why;         /* there are none; NULL: not known */
	uint64_t checked;
};

/* ---- Sizes of values. ---- */

static const int64_t *
number_of(const struct sampling *w, const char *symbol, const int64_t *n)
{
	for (uint32_t k = 0; symbol && k < w->plan->nrange; k++)
		if (strcmp(w->plan->range[k].symbol, symbol) == 0)
			return &n[k];
	return NULL;
}

/* The shape of an input: that of the plan, but for symbols with a range. */
static om_status
bind_input(const struct sampling *w, const om_value *open, const int64_t *n, om_binding *b)
{
	const om_value *planned = om_block_param(w->p->first, open->name);
	om_shape shape = planned ? planned->shape : om_shape_unknown();

	if (planned && om_input_is_fixed(planned))
		return om_binding_value(w->host->session, b, open->name, planned->data);
	if (open->type.kind != OM_TENSOR || !om_shape_is_known(&shape))
		return OM_OK;
	for (int d = 0; d < open->shape.rank && d < shape.rank; d++) {
		const int64_t *is = open->shape.dim[d] < 0 ? number_of(w, open->shape.sym[d], n) : NULL;
		shape.dim[d] = is ? *is : shape.dim[d];
	}
	return om_binding_shape(w->host->session, b, open->name, &shape);
}

static om_status
bind_all(const struct sampling *w, const int64_t *n, om_binding *b, om_prog **out)
{
	if (!b)
		return OM_MEMORY;
	for (uint32_t k = 0; k < w->plan->nrange; k++)
		if (om_prog_has_symbol(w->open, w->plan->range[k].symbol))
			OM_TRY(om_binding_dim(w->host->session, b, w->plan->range[k].symbol, n[k]));
	for (uint32_t k = 0; k < w->open->first->nparam; k++)
		OM_TRY(bind_input(w, w->open->first->param[k], n, b));
	OM_TRY(om_prog_bind(w->host->session, w->open, b, out));
	return om_host_run(w->host, *out, w->p->passes ? w->p->passes : "shapes");
}

static const om_value *
same_value(const om_prog *p, const om_value *v)
{
	if (v->id < p->nvalue && strcmp(p->values[v->id]->name, v->name) == 0)
		return p->values[v->id];
	return om_prog_find(p, v->name);
}

/* Sizes in bytes of all values, and what is outside. */
static void
read_sizes(struct sampling *w, om_prog *p, int64_t *bytes)
{
	for (uint32_t k = 0; k < w->nvalue; k++) {
		const om_value *v = same_value(p, w->p->values[w->value[k]]);
		if (!v || v->type.kind != OM_TENSOR || !om_shape_is_known(&v->shape)) {
			w->why = om_printf(w->mem, "%s has no size for all numbers", w->p->values[w->value[k]]->name);
			return;
		}
		bytes[k] = (int64_t)om_value_bytes(v);
	}
	bytes[w->nvalue] = (int64_t)om_bytes_outside_arenas(p, om_prog_op_facts(p, w->host->request));
}

static const char *
numbers_text(const struct sampling *w, const int64_t *n)
{
	const char *text = "";

	for (uint32_t k = 0; k < w->plan->nrange; k++)
		text = om_printf(w->mem, "%s%s%s = %" PRId64, text, k ? ", " : "", w->plan->range[k].symbol, n[k]);
	return text;
}

/* A size that is not possible is a reason, too. */
static om_status
sizes_at(struct sampling *w, const int64_t *n, int64_t *bytes)
{
	om_binding *b = om_binding_new();
	om_prog *p = NULL;
	const om_status st = bind_all(w, n, b, &p);

	if (st == OM_OK)
		read_sizes(w, p, bytes);
	else if (st != OM_MEMORY)
		w->why = om_printf(w->mem, "%s is not possible: %s", numbers_text(w, n), om_message(w->host->session));
	om_prog_free(p);
	om_binding_free(b);
	return st == OM_MEMORY ? st : OM_OK;
}

/* ---- Polynomials. ---- */

/* The ends of each range, and the number between them. */
static void
make_grid(struct sampling *w)
{
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++) {
		om_sample_grid *g = &w->grid;
		g->n[d] = 1;
		if ((uint32_t)d >= w->plan->nrange)
			continue;
		const om_dim_range *r = &w->plan->range[d];
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
sample(struct sampling *w)
{
	int64_t *bytes = OM_NEWN(w->mem, int64_t, (size_t)w->nvalue + 1);

	for (int k = 0; k < OM_FORMULA_TERMS && !w->why; k++) {
		const int at[] = {k % 3, k / 3 % 3, k / 9};
		int64_t n[OM_FORMULA_SYMBOLS];
		bool is_in = true;
		for (int d = 0; d < OM_FORMULA_SYMBOLS; d++) {
			is_in &= at[d] < w->grid.n[d];
			n[d] = w->grid.at[d][at[d]];
		}
		if (!is_in)
			continue;
		OM_TRY(sizes_at(w, n, bytes));
		w->checked++;
		for (uint32_t i = 0; i <= w->nvalue; i++)
			w->y[i][k] = bytes[i];
	}
	return OM_OK;
}

static const char *
no_polynomial(const struct sampling *w, uint32_t value)
{
	const char *symbols = "";

	for (uint32_t k = 0; k < w->plan->nrange; k++)
		symbols = om_printf(w->mem, "%s%s%s", symbols, k ? ", " : "", w->plan->range[k].symbol);
	return om_printf(w->mem, "the size of %s is no polynomial of %s", w->p->values[value]->name, symbols);
}

/* Without a polynomial of what is outside, there are formulas of the arenas alone. */
static void
fit(struct sampling *w)
{
	for (uint32_t k = 0; k < w->nvalue && !w->why; k++)
		if (!om_polynomial_fit(&w->grid, w->y[k], &w->poly[k]))
			w->why = no_polynomial(w, w->value[k]);
	w->is_outside_known = om_polynomial_fit(&w->grid, w->y[w->nvalue], &w->poly[w->nvalue]);
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

static bool
has_value(const om_polynomial *f, const int64_t *n, uint64_t bytes)
{
	uint64_t is;

	return om_polynomial_value(f, n, &is) && is == bytes;
}

static om_status
check(struct sampling *w)
{
	int64_t *bytes = OM_NEWN(w->mem, int64_t, (size_t)w->nvalue + 1);
	int64_t n[OM_FORMULA_SYMBOLS] = {0};

	for (uint64_t i = 0; i < MOST_CHECKED && !w->why; i++) {
		for (uint32_t d = 0; d < w->plan->nrange; d++)
			n[d] = size_to_check(&w->plan->range[d], i, d);
		OM_TRY(sizes_at(w, n, bytes));
		for (uint32_t k = 0; k < w->nvalue && !w->why; k++)
			if (!has_value(&w->poly[k], n, (uint64_t)bytes[k]))
				w->why = no_polynomial(w, w->value[k]);
		w->is_outside_known &= has_value(&w->poly[w->nvalue], n, (uint64_t)bytes[w->nvalue]);
		w->checked++;
	}
	return OM_OK;
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
	int64_t *bytes = OM_NEWN(w->mem, int64_t, (size_t)w->nvalue + 1);

	f->point = all;
	for (int k = 0; o && k < POINTS; k++) {
		om_formula_point *at = &all[f->npoint];
		for (uint32_t d = 0; d < w->plan->nrange; d++)
			at->n[d] = w->plan->range[d].low + (w->plan->range[d].high - w->plan->range[d].low) * k / (POINTS - 1);
		w->why = NULL;
		OM_TRY(sizes_at(w, at->n, bytes));
		if (w->why || (f->npoint && memcmp(all[f->npoint - 1].n, at->n, sizeof at->n) == 0))
			continue;
		at->arenas = arenas_of(w, o, bytes);
		f->npoint++;
	}
	return OM_OK;
}

/* ---- All. ---- */

static void
list_values(struct sampling *w)
{
	w->value = OM_NEWN(w->mem, uint32_t, w->plan->nplace);
	for (uint32_t k = 0; k < w->plan->nplace; k++)
		if (w->plan->place[k].where == OM_IN_ARENA)
			w->value[w->nvalue++] = k;
	w->y = om_allocn(w->mem, sizeof *w->y, (size_t)w->nvalue + 1);
	w->poly = OM_NEWN(w->plan->mem, om_polynomial, (size_t)w->nvalue + 1);
}

/* Outputs in the memory of inputs are counted twice in the sizes outside: then the total has no formula. */
static const om_polynomial *
find_outside(const struct sampling *w)
{
	const om_plan_memory memory = om_plan_memory_of(w->p, w->plan);
	int64_t n[OM_FORMULA_SYMBOLS] = {0};

	for (uint32_t d = 0; d < w->plan->nrange; d++)
		n[d] = w->plan->range[d].high;
	return w->is_outside_known && has_value(&w->poly[w->nvalue], n, memory.io + memory.weights) ? &w->poly[w->nvalue] : NULL;
}

static om_formulas *
make_formulas(const struct sampling *w)
{
	const om_polynomial **bytes = OM_NEWN(w->plan->mem, const om_polynomial *, w->plan->nplace);

	for (uint32_t k = 0; k < w->nvalue; k++)
		bytes[w->value[k]] = &w->poly[k];
	om_formulas *f = om_formulas_new(w->p, w->plan, bytes, find_outside(w));
	f->checked = w->checked;
	return f;
}

static const char *
refuse(const om_plan *plan)
{
	if (plan->nrange > OM_FORMULA_SYMBOLS)
		return "there are more than 3 symbols";
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
		list_values(w);
		make_grid(w);
		OM_TRY(sample(w));
	}
	if (!w->why)
		fit(w);
	if (!w->why)
		OM_TRY(check(w));
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
