/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of operators, by name. */
#include <config.h>

#include <string.h>

#include "base/map.h"
#include "grad/callback.h"
#include "grad/grad_builder.h"
#include "grad/gradients.h"

static const om_gradient *const tables[] = {
#define TABLE(family) om_gradients_##family,
	OM_GRADIENT_TABLES(TABLE)
#undef TABLE
};

enum { NTABLE = sizeof tables / sizeof tables[0] };

/* Gradients of operators of one name; the most recently added come first. */
struct entry {
	const om_gradient *gradient;
	const struct entry *next;
};

struct om_gradients {
	om_arena *mem;
	om_map by_name;
};

void
om_gradients_add(om_gradients *all, const om_gradient *table)
{
	for (const om_gradient *r = table; r->name; r++) {
		struct entry *e = OM_NEW(all->mem, struct entry);
		*e = (struct entry){r, om_map_get(&all->by_name, r->name)};
		om_map_set(&all->by_name, r->name, e);
	}
}

om_gradients *
om_gradients_new(om_arena *mem)
{
	om_gradients *all = OM_NEW(mem, om_gradients);

	*all = (om_gradients){mem, om_map_new(mem)};
	for (size_t k = 0; k < NTABLE; k++)
		om_gradients_add(all, tables[k]);
	return all;
}

static const char *
domain_of(const char *domain)
{
	return domain ? domain : "";
}

static bool
is_gradient_of(const om_gradient *g, const om_opdef *row)
{
	return strcmp(domain_of(g->domain), domain_of(row->domain)) == 0 && g->since <= row->since
	    && (!g->until || row->since <= g->until);
}

const om_gradient *
om_gradients_find(const om_gradients *all, const om_opdef *row)
{
	for (const struct entry *e = om_map_get(&all->by_name, row->name); e; e = e->next)
		if (is_gradient_of(e->gradient, row))
			return e->gradient;
	return NULL;
}

const om_gradient *
om_gradient_next(const om_gradient *prev)
{
	if (!prev)
		return tables[0];
	if (prev[1].name)
		return prev + 1;
	for (size_t t = 0; t + 1 < NTABLE; t++)
		for (const om_gradient *r = tables[t]; r->name; r++)
			if (r == prev)
				return tables[t + 1];
	return NULL;
}

om_gradients *
om_prog_gradients(om_prog *p)
{
	if (!p->gradients) {
		p->gradients = om_gradients_new(p->mem);
		om_callbacks_add_gradients(p, p->gradients);
	}
	return p->gradients;
}

void
om_prog_add_gradients(om_prog *p, const om_gradient *table)
{
	om_gradients_add(om_prog_gradients(p), table);
}

const om_gradient *
om_gradient_find(om_prog *p, const om_opdef *row)
{
	return om_gradients_find(om_prog_gradients(p), row);
}

const om_gradient *
om_op_gradient(om_prog *p, const om_op *op)
{
	return op->opdef ? om_gradients_find(om_prog_gradients(p), op->opdef) : NULL;
}
