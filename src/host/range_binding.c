/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a program to sizes of ranges; see range_binding.h. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "host/range_binding.h"
#include "ir/binding.h"
#include "ir/dim_expression.h"
#include "ir/query.h"
#include "ir/type.h"

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

om_status
om_host_run_sizes(om_host *h, const om_ranged *r, const int64_t *n, const char *passes, om_prog **out)
{
	om_binding *b = om_binding_new();
	om_prog *p = NULL;
	om_status st = b ? om_bind_sizes(h->session, r, n, b) : om_fail(h->session, OM_MEMORY, "no memory to bind symbols");

	if (st == OM_OK)
		st = om_prog_bind(h->session, r->open, b, &p);
	if (st == OM_OK)
		st = om_host_run(h, p, passes);
	om_binding_free(b);
	if (st != OM_OK)
		om_prog_free(p);
	*out = st == OM_OK ? p : NULL;
	return st;
}
