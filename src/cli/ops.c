/* SPDX-License-Identifier: Apache-2.0 */
/* ops: list the operators. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "onnxmem/autodiff.h"
#include "onnxmem/slice.h"

static const char *
domain_of(const om_opdef *r)
{
	return r->domain && *r->domain ? r->domain : "ai.onnx";
}

static const char *
versions(om_cli *c, const om_opdef *r)
{
	if (r->until)
		return om_printf(c->mem, "%d-%d", r->since, r->until);
	return om_printf(c->mem, "%d-", r->since);
}

static const char *
arity(om_cli *c, unsigned min, unsigned max)
{
	if (max == OM_VARIADIC)
		return om_printf(c->mem, "%u-", min);
	if (min == max)
		return om_printf(c->mem, "%u", min);
	return om_printf(c->mem, "%u-%u", min, max);
}

static int
by_name(const void *a, const void *b)
{
	const om_opdef *x = *(const om_opdef *const *)a, *y = *(const om_opdef *const *)b;
	const int d = strcmp(x->name, y->name);

	if (d)
		return d;
	const int e = strcmp(domain_of(x), domain_of(y));
	return e ? e : (x->since > y->since) - (x->since < y->since);
}

/* All operator definitions of that name (NULL: all), sorted; their number in `*n`. */
static const om_opdef **
rows(om_cli *c, const char *name, size_t *n)
{
	const om_opdef **all = NULL;
	size_t cap = 0;

	*n = 0;
	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r))
		if (!name || strcmp(r->name, name) == 0)
			OM_PUSH(c->mem, all, *n, cap, r);
	if (*n)
		qsort(all, *n, sizeof *all, by_name);
	return all;
}

static const char *
runs(const om_opdef *r)
{
	return r->cpu || r->control != OM_PLAIN ? "yes" : "-";
}

/* Is the operator computed in parts, and are sums added in parts? */
static const char *
parts(const om_opdef *r)
{
	return om_opdef_has_partial(r) ? "sums" : om_opdef_has_slice(r) ? "yes" : "-";
}

/* Does the operator have a gradient? */
static const char *
gradient(om_prog *p, const om_opdef *r, const char *none)
{
	const om_gradient *g = om_gradient_find(p, r);

	return !g ? none : g->rule == om_grad_set_zero ? "zero" : "yes";
}

static void
list(om_cli *c)
{
	const unsigned width = om_cli_width(stdout);
	size_t n;
	const om_opdef **all = rows(c, NULL, &n);
	om_prog *gradients = om_prog_new();   /* has those of the library */

	printf("%-26s %-12s %-8s %-6s %-6s %-4s %-8s %-5s %-4s %-4s %s\n", "operator", "domain", "versions",
		"inputs", "out", "view", "in-place", "parts", "run", "grad", "description");
	for (size_t k = 0; k < n; k++) {
		const om_opdef *r = all[k];
		om_cli_line(c, width, "%-26s %-12s %-8s %-6s %-6s %-4s %-8s %-5s %-4s %-4s %s", r->name, domain_of(r),
			versions(c, r), arity(c, r->min_in, r->max_in), arity(c, r->min_out, r->max_out),
			r->view ? "yes" : "-", r->inplace ? "yes" : "-", parts(r), runs(r), gradient(gradients, r, "-"), r->brief ? r->brief : "");
	}
	om_prog_free(gradients);
}

static void
show_attr(const om_attr_spec *a)
{
	static const char *const kinds[] = {"", "float", "int", "string", "tensor", "graph", "floats",
		"ints", "strings", "tensors", "graphs", "sparse tensor", "sparse tensors", "type", "types"};

	printf("  %-24s %s", a->name, kinds[a->kind]);
	if (a->required)
		printf(", required");
	else if (a->kind == OM_ATTR_INT)
		printf(", %lld", (long long)a->i);
	else if (a->kind == OM_ATTR_FLOAT)
		printf(", %g", (double)a->f);
	else if (a->kind == OM_ATTR_STRING && a->s)
		printf(", \"%s\"", a->s);
	putchar('\n');
}

static void
show_flags(unsigned flags)
{
	static const struct { unsigned bit; const char *text; } names[] = {
		{OM_POINTWISE, "each output element depends on the same element of the inputs only"},
		{OM_COMMUTES, "its inputs may change places"},
		{OM_UNALIGNED, "its first input may lie at any address"},
		{OM_RANDOM, "random: never folded, merged or repeated"},
		{OM_EFFECT, "has an effect: never removed"},
		{OM_COLLECTIVE, "a collective: keeps its order among them, on all ranks"},
		{OM_DATA_DEPENDENT_SHAPE, "the size of its output is known only when it has run"},
		{OM_MONOTONE, "its output is not larger where an input is smaller"},
		{OM_PART, "its output is a part of its first input"},
		{OM_SHAPE_ONLY, "reads the shape of its input, not its elements"},
	};

	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (flags & names[k].bit)
			printf("  %s\n", names[k].text);
}

/* The types allowed for input `k`. */
static void
show_types(const om_opdef *r, uint32_t k)
{
	const uint32_t set = r->input_types[k], like = set >> 29;

	if (!set)
		return;
	printf("  input %-18u", k);
	if (like)
		printf(" as input %u", like - 1);
	for (int t = 1; t < OM_NDTYPE && !like; t++)
		if (set >> t & 1)
			printf(" %s", om_dtype_text((om_dtype)t));
	putchar('\n');
}

static void
show(om_cli *c, om_prog *gradients, const om_opdef *r)
{
	printf("%s %s, versions %s: %s\n", domain_of(r), r->name, versions(c, r), r->brief ? r->brief : "");
	printf("  inputs %s, outputs %s\n", arity(c, r->min_in, r->max_in), arity(c, r->min_out, r->max_out));
	printf("  view %s, in place %s, kernel %s, scratch %s, gradient %s\n", r->view ? "if the bytes stay unchanged" : "never",
		r->inplace ? "if its kernel allows it" : "never", runs(r), r->scratch ? "yes" : "none",
		gradient(gradients, r, "none"));
	if (om_opdef_has_slice(r))
		printf("  a part of the output is computed from parts of the inputs%s\n",
			om_opdef_has_partial(r) ? ", and sums from parts of what is summed over" : "");
	if (r->subbuffer)
		printf("  inputs may be computed at their final offset in the output\n");
	show_flags(r->flags);
	for (uint32_t k = 0; k < OM_MAX_TYPED_INPUTS; k++)
		show_types(r, k);
	for (const om_attr_spec *a = r->attrs; a && a->name; a++)
		show_attr(a);
}

static om_status
run(om_cli *c)
{
	om_status st = OM_OK;
	size_t n;

	if (c->narg == 0) {
		list(c);
		return OM_OK;
	}
	om_prog *gradients = om_prog_new();   /* has those of the library */
	for (size_t a = 0; st == OM_OK && a < c->narg; a++) {
		const om_opdef **all = rows(c, c->arg[a], &n);
		if (n == 0)
			st = om_fail(c->session, OM_UNSUPPORTED, "there is no operator called %s; see `onnxmem ops`",
				c->arg[a]);
		for (size_t k = 0; k < n; k++)
			show(c, gradients, all[k]);
	}
	om_prog_free(gradients);
	return st;
}

const om_cmd om_ops_cmd = {
	.name = "ops", .usage = "[NAME...]", .brief = "list the operators, or show some",
	.max_args = OM_CMD_ANY, .run = run,
};
