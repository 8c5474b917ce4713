/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a program to sizes of ranges; see range_binding.h. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "host/range_binding.h"
#include "ir/binding.h"
#include "ir/dim_expression.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"
#include "onnxmem/formula.h"

struct sizes {
	const om_ranged *r;
	const int64_t *n;        /* by range */
};

static bool
is_called(const char *symbol, const char *name, size_t n)
{
	return symbol && strlen(symbol) == n && memcmp(symbol, name, n) == 0;
}

/* The shape that an input was bound to; of a cache with spare rows, with the rows in use. */
static om_shape
bound_shape(const om_prog *p, const char *name)
{
	for (uint32_t k = 0; k < p->first->nparam; k++)
		if (strcmp(p->first->param[k]->name, name) == 0)
			return om_input_shape(p, k);
	return om_shape_unknown();
}

/* The number that a symbol was bound to. */
static bool
number_before(const void *arg, const char *name, size_t n, int64_t *out)
{
	const struct sizes *s = arg;
	const om_block *open = s->r->open->first;

	for (uint32_t k = 0; k < open->nparam; k++) {
		const om_shape *shape = &open->param[k]->shape;
		const om_shape bound = bound_shape(s->r->bound, open->param[k]->name);
		for (int d = 0; d < shape->rank && d < bound.rank; d++)
			if (is_called(shape->sym[d], name, n))
				return *out = bound.dim[d], *out >= 0;
	}
	return false;
}

/* The number that it is bound to now. */
static bool
number_after(const void *arg, const char *name, size_t n, int64_t *out)
{
	const struct sizes *s = arg;

	for (uint32_t k = 0; k < s->r->nrange; k++)
		if (is_called(s->r->range[k].symbol, name, n))
			return *out = s->n[k], true;
	return number_before(arg, name, n, out);
}

static int64_t
dim_at(const struct sizes *s, const char *symbol, int64_t was)
{
	int64_t n;

	for (uint32_t k = 0; symbol && k < s->r->nrange; k++)
		if (strcmp(s->r->range[k].symbol, symbol) == 0)
			return s->n[k];
	return symbol && om_dim_follows(symbol, number_before, number_after, s, was, &n) ? n : was;
}

int64_t
om_ranged_dim(const om_ranged *r, const int64_t *n, const char *symbol)
{
	const struct sizes s = {r, n};
	int64_t was, size;

	if (number_before(&s, symbol, strlen(symbol), &was))
		return dim_at(&s, symbol, was);
	size = dim_at(&s, symbol, -1);
	return size >= 0 || om_dim_expression(symbol, number_after, &s, &size) ? size : -1;
}

/* ---- Dims that are expressions. ---- */

/* Does each dim of an input that is called like an expression follow from it?  If not, an expression that inference made of such
 * a name has another value. */
static bool
inputs_follow(const om_ranged *r, const int64_t *n)
{
	const struct sizes s = {r, n};
	const om_block *open = r->open->first;
	int64_t size;

	for (uint32_t k = 0; k < open->nparam; k++) {
		const om_shape *shape = &open->param[k]->shape;
		const om_shape bound = bound_shape(r->bound, open->param[k]->name);
		for (int d = 0; d < shape->rank && d < bound.rank; d++)
			if (shape->dim[d] < 0 && shape->sym[d] && strpbrk(shape->sym[d], "+-*/()")
			    && !om_dim_follows(shape->sym[d], number_before, number_after, &s, bound.dim[d], &size))
				return false;
	}
	return true;
}

/* Has an expression, or what is called like one, the name of another dim in it? */
static bool
has_symbol(const struct sizes *s, const char *text)
{
	static const char operators[] = " +-*/()";
	int64_t number;

	if (!strpbrk(text, operators))
		return false;
	for (size_t n; *text; text += n) {
		n = strcspn(text, operators);
		if (n && number_before(s, text, n, &number))
			return true;
		n += strspn(text + n, operators);
	}
	return false;
}

static bool
is_range(const om_ranged *r, const char *symbol)
{
	for (uint32_t k = 0; k < r->nrange; k++)
		if (strcmp(r->range[k].symbol, symbol) == 0)
			return true;
	return false;
}

bool
om_ranged_names_follow(const om_ranged *r)
{
	int64_t n[OM_FORMULA_SYMBOLS] = {0}, size;
	const struct sizes s = {r, n};
	const om_block *open = r->open->first;

	for (uint32_t k = 0; k < r->nrange; k++) {
		n[k] = r->range[k].high;
		if (has_symbol(&s, r->range[k].symbol))
			return false;
	}
	for (uint32_t k = 0; k < open->nparam; k++) {
		const om_shape *shape = &open->param[k]->shape;
		const om_shape bound = bound_shape(r->bound, open->param[k]->name);
		for (int d = 0; d < shape->rank && d < bound.rank; d++) {
			const char *symbol = shape->dim[d] < 0 ? shape->sym[d] : NULL;
			if (symbol && !is_range(r, symbol) && has_symbol(&s, symbol)
			    && !om_dim_follows(symbol, number_before, number_after, &s, bound.dim[d], &size))
				return false;
		}
	}
	return true;
}

/* Differences may be negative, and are then none. */
bool
om_ranged_dim_is_polynomial(const om_ranged *r, const char *symbol)
{
	int64_t n[OM_FORMULA_SYMBOLS] = {0};

	for (uint32_t k = 0; k < r->nrange; k++) {
		if (strcmp(r->range[k].symbol, symbol) == 0)
			return true;
		n[k] = r->range[k].high;
	}
	return strpbrk(symbol, "+*") && !strpbrk(symbol, "-/") && inputs_follow(r, n) && om_ranged_dim(r, n, symbol) >= 0;
}

unsigned
om_ranged_dim_degree(const char *symbol, const char *of)
{
	unsigned n = 0;

	for (; (symbol = strstr(symbol, of)); symbol++)
		n++;
	return n;
}

/* Is the dim called `symbol` open, if these symbols are bound? */
static bool
is_left_open(const om_ranged *r, unsigned set, const char *symbol)
{
	const bool is_expression = symbol && strpbrk(symbol, "+-*/");

	for (uint32_t k = 0; symbol && k < r->nrange; k++)
		if (!(set >> k & 1) && (is_expression ? strstr(symbol, r->range[k].symbol) != NULL : strcmp(symbol, r->range[k].symbol) == 0))
			return true;
	return false;
}

static bool
has_open_dim(const om_ranged *r, unsigned set, const om_value *open)
{
	for (int d = 0; d < open->shape.rank; d++)
		if (open->shape.dim[d] < 0 && is_left_open(r, set, open->shape.sym[d]))
			return true;
	return false;
}

/* ---- What passes leave. ---- */

bool
om_passes_keep_values(const om_plan *plan, const char *passes)
{
	static const char *const plain[] = {"inline", "shapes", "fold", "branches", "prune"};

	for (const char *at = passes; plan->target == OM_TARGET_GENERIC && at; at += *at == ',') {
		const size_t n = strcspn(at, ",");
		bool is_plain = false;
		for (size_t k = 0; k < sizeof plain / sizeof plain[0]; k++)
			is_plain |= strlen(plain[k]) == n && memcmp(at, plain[k], n) == 0;
		if (!is_plain)
			return false;
		at += n;
		if (*at == '\0')
			return true;
	}
	return false;
}

static bool
is_same_op(const om_op *a, const om_op *b)
{
	if (!b || a->opdef != b->opdef || a->nin != b->nin || a->nout != b->nout || a->nbody != b->nbody)
		return false;
	for (uint32_t k = 0; k < a->nin; k++)
		if (!a->in[k] != !b->in[k] || (a->in[k] && strcmp(a->in[k]->name, b->in[k]->name) != 0))
			return false;
	return true;
}

bool
om_ranged_has_ops(const om_ranged *r, const om_prog *p)
{
	for (const om_block *b = r->bound->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next) {
			const om_value *out = om_op_first_output(op), *v = out ? om_prog_same_value(p, out) : NULL;
			if (out && !is_same_op(op, v ? v->def : NULL))
				return false;
		}
	return true;
}

/* ---- Binding. ---- */

static om_status
bind_input(om_session *session, const struct sizes *s, const om_value *open, om_binding *b)
{
	const om_value *bound = om_block_param(s->r->bound->first, open->name);
	om_shape shape = bound_shape(s->r->bound, open->name);

	if (bound && om_input_is_fixed(bound))
		return om_binding_value(session, b, open->name, bound->data);
	if (open->type.kind != OM_TENSOR || !om_shape_is_known(&shape))
		return OM_OK;
	for (int d = 0; d < open->shape.rank && d < shape.rank; d++)
		if (open->shape.dim[d] < 0)
			shape.dim[d] = dim_at(s, open->shape.sym[d], shape.dim[d]);
	return om_binding_shape(session, b, open->name, &shape);
}

om_status
om_bind_sizes(om_session *session, const om_ranged *r, const int64_t *n, om_binding *b)
{
	const struct sizes s = {r, n};

	for (uint32_t k = 0; k < r->nrange; k++)
		if (om_prog_has_symbol(r->open, r->range[k].symbol))
			OM_TRY(om_binding_dim(session, b, r->range[k].symbol, n[k]));
	for (uint32_t k = 0; k < r->open->first->nparam; k++)
		OM_TRY(bind_input(session, &s, r->open->first->param[k], b));
	return OM_OK;
}

/* The dims of an input that do not stay open; those without a symbol do. */
static om_status
bind_some(om_session *session, const struct sizes *s, unsigned set, const om_value *open, om_binding *b)
{
	const om_shape was = bound_shape(s->r->bound, open->name);

	for (int d = 0; d < open->shape.rank && d < was.rank; d++) {
		const char *symbol = open->shape.sym[d];
		if (open->shape.dim[d] < 0 && symbol && was.dim[d] >= 0 && !is_left_open(s->r, set, symbol))
			OM_TRY(om_binding_dim(session, b, symbol, dim_at(s, symbol, was.dim[d])));
	}
	return OM_OK;
}

static om_status
bind_open_sizes(om_session *session, const struct sizes *s, unsigned set, om_binding *b)
{
	for (uint32_t k = 0; k < s->r->open->first->nparam; k++) {
		const om_value *open = s->r->open->first->param[k];
		if (open->type.kind == OM_TENSOR && has_open_dim(s->r, set, open))
			OM_TRY(bind_some(session, s, set, open, b));
		else
			OM_TRY(bind_input(session, s, open, b));
	}
	return OM_OK;
}

/* Leave what inference finds alone. */
static void
forget_declared(om_prog *p)
{
	for (om_block *b = p->first; b; b = b->next) {
		for (uint32_t k = 0; k < b->nparam && b != p->first; k++)
			b->param[k]->shape = om_shape_unknown();
		for (om_op *op = b->first; op; op = op->next)
			for (uint32_t k = 0; k < op->nout; k++)
				if (op->out[k] && !op->out[k]->data) {
					op->out[k]->shape = om_shape_unknown();
					op->out[k]->is_declared = false;
				}
	}
}

/* Functions declare what is in them. */
static om_status
infer_alone(om_host *h, om_prog *p, const char *passes)
{
	OM_TRY(om_host_run(h, p, "inline"));
	forget_declared(p);
	return om_host_run(h, p, passes);
}

/* Bind these symbols, all if `set` is NULL; with some alone, infer without what the file declares. */
static om_status
run_bound(om_host *h, const om_ranged *r, const int64_t *n, const unsigned *set, const char *passes, om_prog **out)
{
	const struct sizes s = {r, n};
	om_binding *b = om_binding_new();
	om_prog *p = NULL;
	om_status st = !b ? om_fail(h->session, OM_MEMORY, "no memory to bind symbols")
		: set ? bind_open_sizes(h->session, &s, *set, b) : om_bind_sizes(h->session, r, n, b);

	if (st == OM_OK)
		st = om_prog_bind(h->session, r->open, b, &p);
	if (st == OM_OK)
		st = set ? infer_alone(h, p, passes) : om_host_run(h, p, passes);
	om_binding_free(b);
	if (st != OM_OK)
		om_prog_free(p);
	*out = st == OM_OK ? p : NULL;
	return st;
}

om_status
om_host_run_open_sizes(om_host *h, const om_ranged *r, const int64_t *n, unsigned set, const char *passes, om_prog **out)
{
	return run_bound(h, r, n, set + 1 == 1u << r->nrange ? NULL : &set, passes, out);
}

om_status
om_host_run_sizes(om_host *h, const om_ranged *r, const int64_t *n, const char *passes, om_prog **out)
{
	return run_bound(h, r, n, NULL, passes, out);
}
