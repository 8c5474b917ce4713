/* SPDX-License-Identifier: Apache-2.0 */
/* Dims of inputs that no option gives: a batch is 1, and all others are named at once. */
#include <config.h>

#include <string.h>

#include "cli/cli.h"
#include "ir/dim_expression.h"

struct open_dims {
	om_cli *c;
	const om_prog *prog;     /* bound as far as options go */
	const char *symbols;     /* options that give the open symbols: " --dim height=H ..." */
	const char *shapes;      /* options that give shapes with dims that have no name */
	const char *batches;     /* symbols that are bound to 1: " batch=1 ..." */
};

static bool
is_listed(const char *list, const char *word)
{
	const size_t n = strlen(word);

	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if (at[n] == ' ' || at[n] == 0)
			return true;
	return false;
}

const char *
om_cli_shell_word(om_cli *c, const char *text)
{
	const char *out = "";

	if (*text && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/=:,+@%") == strlen(text))
		return text;
	for (const char *quote; (quote = strchr(text, '\'')); text = quote + 1)
		out = om_printf(c->mem, "%s%.*s'\\''", out, (int)(quote - text), text);
	return om_printf(c->mem, "'%s%s'", out, text);
}

static void
add_symbol(struct open_dims *o, const char *symbol)
{
	const char *word = om_printf(o->c->mem, " --dim %s", om_cli_shell_word(o->c, om_printf(o->c->mem, "%s=N", symbol)));

	if (!is_listed(o->symbols, word))
		o->symbols = om_printf(o->c->mem, "%s%s", o->symbols, word);
}

/* Dims without a name are given by the shape of the input. */
static void
add_shape(struct open_dims *o, const om_value *v)
{
	const om_shape *s = &v->shape;
	const char *dims = s->rank == OM_RANK_UNKNOWN ? "D,D,..." : "";

	for (int d = 0; d < s->rank; d++)
		dims = s->dim[d] < 0 ? om_printf(o->c->mem, "%s%sD", dims, d ? "," : "")
			: om_printf(o->c->mem, "%s%s%lld", dims, d ? "," : "", (long long)s->dim[d]);
	o->shapes = om_printf(o->c->mem, "%s --input-shape %s", o->shapes,
		om_cli_shell_word(o->c, om_printf(o->c->mem, "%s:%s", v->name, dims)));
}

static bool
has_symbol(const om_cli_open *o, const char *symbol)
{
	for (size_t k = 0; k < o->nsymbol; k++)
		if (strcmp(o->symbol[k], symbol) == 0)
			return true;
	return false;
}

/* Is the symbol a dim of an input? */
static bool
is_dim_of_input(const void *arg, const char *name, size_t n, int64_t *out)
{
	const om_block *g = ((const om_prog *)arg)->first;

	*out = 1;
	for (uint32_t k = 0; k < g->nparam; k++) {
		const om_shape *s = &g->param[k]->shape;
		for (int d = 0; d < s->rank; d++)
			if (s->dim[d] < 0 && s->sym[d] && strlen(s->sym[d]) == n && memcmp(s->sym[d], name, n) == 0)
				return true;
	}
	return false;
}

/* Is it called like an expression of others, "past + tokens", so that it follows from them? */
static bool
follows(const om_prog *p, const char *symbol)
{
	int64_t n;

	return om_dim_expression(symbol, is_dim_of_input, p, &n);
}

/* The open symbols of all inputs: in the first of two calls batches, in the second the others. */
static void
list_symbols(const struct open_dims *o, om_cli_open *open, bool batches)
{
	for (uint32_t k = 0; k < o->prog->first->nparam; k++) {
		const om_shape *s = &o->prog->first->param[k]->shape;
		for (int d = 0; d < s->rank; d++)
			if (s->dim[d] < 0 && s->sym[d] && om_symbol_is_batch(o->prog, s->sym[d]) == batches && !has_symbol(open, s->sym[d])
			    && !follows(o->prog, s->sym[d]))
				OM_PUSH(o->c->mem, open->symbol, open->nsymbol, open->capsymbol, om_strdup(o->c->mem, s->sym[d]));
	}
}

static bool
is_open(const om_shape *s, bool *is_named)
{
	bool any = s->rank == OM_RANK_UNKNOWN;

	*is_named = !any;
	for (int d = 0; d < s->rank; d++) {
		any |= s->dim[d] < 0;
		*is_named &= s->dim[d] >= 0 || s->sym[d];
	}
	return any;
}

static void
look_at_input(struct open_dims *o, const om_value *v)
{
	const om_shape *s = &v->shape;
	bool is_named;

	if (v->type.kind != OM_TENSOR || !is_open(s, &is_named))
		return;
	if (!is_named) {
		add_shape(o, v);
		return;
	}
	for (int d = 0; d < s->rank; d++)
		if (s->dim[d] < 0 && !follows(o->prog, s->sym[d]))
			add_symbol(o, s->sym[d]);
}

/* What is open, batches included. */
static om_cli_open *
list_open(const struct open_dims *o)
{
	om_cli_open *open = OM_NEW(o->c->mem, om_cli_open);
	struct open_dims all = {.c = o->c, .prog = o->prog, .symbols = "", .shapes = ""};

	list_symbols(o, open, true);
	open->nbatch = open->nsymbol;
	list_symbols(o, open, false);
	for (uint32_t k = 0; k < o->prog->first->nparam; k++)
		look_at_input(&all, o->prog->first->param[k]);
	open->inputs = om_open_inputs_text(o->prog, o->c->mem);
	open->options = om_printf(o->c->mem, "%s%s", all.symbols, all.shapes);
	open->has_unnamed = *all.shapes != 0;
	return open;
}

static void
tell_batches(const struct open_dims *o)
{
	if (*o->batches && !o->c->batch_told)
		om_warn(o->c->session, "planned for a batch of 1:%s; another size is given with --dim", o->batches);
	o->c->batch_told |= *o->batches != 0;
}

static om_status
bind_copy(om_cli *c, const om_binding *b, om_prog **p)
{
	om_prog_free(*p);
	*p = NULL;
	return om_prog_bind(c->session, c->prog, b, p);
}

static bool
has_open_dims(const om_prog *p)
{
	bool any = false, is_named;

	for (uint32_t k = 0; k < p->first->nparam && !any; k++)
		any = p->first->param[k]->type.kind == OM_TENSOR && is_open(&p->first->param[k]->shape, &is_named);
	return any;
}

/* The program is copied only if dims are open: most models have none. */
om_status
om_cli_open_dims(om_cli *c, om_binding *b)
{
	struct open_dims o = {.c = c, .symbols = "", .shapes = "", .batches = ""};
	om_prog *p = NULL;

	if (!has_open_dims(c->prog))
		return OM_OK;
	om_status st = bind_copy(c, b, &p);
	o.prog = p;
	om_cli_open *open = st == OM_OK ? list_open(&o) : NULL;
	if (st == OM_OK)
		st = om_binding_batches(c->session, p, b, c->mem, &o.batches);
	if (st == OM_OK && *o.batches)
		st = bind_copy(c, b, &p);
	o.prog = p;
	for (uint32_t k = 0; st == OM_OK && k < p->first->nparam; k++)
		look_at_input(&o, p->first->param[k]);
	const char *inputs = st == OM_OK ? om_open_inputs_text(p, c->mem) : "";
	if (*inputs) {
		c->open = open;
		st = om_fail(c->session, OM_SHAPE, "dims of inputs are open: %s; give them with%s%s, or all with --default-dim N",
			inputs, o.symbols, o.shapes);
	}
	if (st == OM_OK)
		tell_batches(&o);
	om_prog_free(p);
	return st;
}
