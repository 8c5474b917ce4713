/* SPDX-License-Identifier: Apache-2.0 */
/* Dims that are defined by others.
 *
 * Exporters give a name of its own to each dim that they did not find equal to another one, as the rows of each cache of a decoder and the
 * columns of its mask.  A definition renames such a dim: what was called "s53" is called "s15 + s70" in all shapes afterwards, so it
 * follows from the others as if the exporter had called it so. */
#include <config.h>

#include <string.h>

#include "base/guard.h"
#include "ir/dim_expression.h"
#include "onnxmem/builder.h"

static const char operators[] = " +-*/()";

static bool
is_expression(const char *text)
{
	return strpbrk(text, operators) != NULL;
}

/* `text` with `symbol` replaced where it is a name; `text` itself if it is nowhere. */
static const char *
replaced(om_arena *mem, const char *text, const char *symbol, const char *as)
{
	const size_t length = strlen(symbol);
	const char *out = "";
	bool any = false;

	if (strcmp(text, symbol) == 0)
		return as;
	if (!is_expression(text) || is_expression(symbol))
		return text;
	for (const char *at = text; *at;) {
		const size_t n = strcspn(at, operators), rest = strspn(at + n, operators);
		const bool is_it = n == length && memcmp(at, symbol, n) == 0;
		out = om_printf(mem, is_it && is_expression(as) ? "%s(%.*s)%.*s" : "%s%.*s%.*s", out, (int)(is_it ? strlen(as) : n),
			is_it ? as : at, (int)rest, at + n);
		any |= is_it;
		at += n + rest;
	}
	return any ? out : text;
}

static void
rename_dims(om_prog *p, const char *symbol, const char *as)
{
	for (uint32_t k = 0; k < p->nvalue; k++) {
		om_shape *s = &p->values[k]->shape;
		for (int d = 0; d < s->rank; d++)
			if (s->dim[d] < 0 && s->sym[d])
				s->sym[d] = replaced(p->mem, s->sym[d], symbol, as);
	}
}

static bool
is_dim_of_input(const om_prog *p, const char *symbol)
{
	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_shape *s = &p->first->param[k]->shape;
		for (int d = 0; d < s->rank; d++)
			if (s->dim[d] < 0 && s->sym[d] && strcmp(s->sym[d], symbol) == 0)
				return true;
	}
	return false;
}

/* What the names of an expression are. */
struct names {
	om_arena *mem;
	const om_prog *p;
	const char *symbol;      /* that is defined */
	const char *unknown;     /* the first one that is no dim of an input, or is `symbol` */
};

/* Any number will do: what is read are the names. */
static bool
note_name(const void *arg, const char *name, size_t n, int64_t *out)
{
	struct names *all = *(struct names *const *)arg;
	const char *one = om_strndup(all->mem, name, n);

	if (!all->unknown && (strcmp(one, all->symbol) == 0 || !is_dim_of_input(all->p, one)))
		all->unknown = one;
	*out = 1;
	return true;
}

/* A number at which a difference is none is negative; only texts that are no expression fail for the name that is left out. */
static om_status
check_names(om_session *s, const om_prog *p, const char *symbol, const char *as)
{
	struct names all = {p->mem, p, symbol, NULL}, *at = &all;
	int64_t n;

	if (!is_expression(as))
		note_name(&at, as, strlen(as), &n);
	else if (!om_dim_expression(om_printf(p->mem, "%s + 1048576", as), note_name, &at, &n))
		return om_fail(s, OM_USAGE, "dim %s cannot be defined as %s: that is no sum, difference, product or quotient (//) of dims and numbers", symbol, as);
	if (all.unknown)
		return om_fail(s, OM_USAGE, "dim %s cannot be defined as %s: %s is no other open dim of an input", symbol, as, all.unknown);
	return OM_OK;
}

static bool
is_defined_as(const om_prog *p, const char *symbol, const char *as)
{
	for (size_t k = 0; k < p->ndim_definition; k++)
		if (strcmp(p->dim_definition[k].symbol, symbol) == 0 && strcmp(p->dim_definition[k].as, as) == 0)
			return true;
	return false;
}

static om_status
define(om_session *s, om_prog *p, const char *symbol, const char *text)
{
	const char *as = om_strdup(p->mem, text);

	for (size_t k = 0; k < p->ndim_definition; k++)
		as = replaced(p->mem, as, p->dim_definition[k].symbol, p->dim_definition[k].as);
	if (is_defined_as(p, symbol, as))
		return OM_OK;
	if (!is_dim_of_input(p, symbol))
		return om_fail(s, OM_USAGE, "no open dim of an input is called %s", symbol);
	OM_TRY(check_names(s, p, symbol, as));
	symbol = om_strdup(p->mem, symbol);
	rename_dims(p, symbol, as);
	OM_PUSH(p->mem, p->dim_definition, p->ndim_definition, p->cap_dim_definition, ((om_dim_definition){symbol, as}));
	return OM_OK;
}

om_status
om_prog_define_dim(om_session *s, om_prog *p, const char *symbol, const char *text)
{
	OM_GUARDED(s, define(s, p, symbol, text));
}
