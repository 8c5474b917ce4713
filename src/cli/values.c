/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that are constants: --value NAME=V,V or NAME:FILE.npy. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/shape.h"
#include "base/split.h"
#include "cli/cli.h"
#include "cli/data.h"
#include "cli/npy.h"

struct given {
	const char *text;        /* the option, for messages */
	const om_value *input;
	const char *rest;        /* after the separator */
	bool is_file;
};

/* The input that the option names before = or a colon; names may have these characters. */
static om_status
find_input(om_cli *c, struct given *g)
{
	const om_block *graph = c->prog->first;

	for (uint32_t k = 0; k < graph->nparam; k++) {
		const char *name = graph->param[k]->name;
		const size_t n = strlen(name);
		if (strncmp(g->text, name, n) != 0 || (g->text[n] != '=' && g->text[n] != ':')
		    || (g->input && strlen(g->input->name) > n))
			continue;
		g->input = graph->param[k];
		g->rest = g->text + n + 1;
		g->is_file = g->text[n] == ':';
	}
	const size_t end = strcspn(g->text, "=:");
	if (!g->text[end])
		return om_fail(c->session, OM_USAGE, "--value requires NAME=V[,V...] or NAME:FILE.npy, not %s", g->text);
	if (!g->input)
		return om_fail(c->session, OM_USAGE, "--value %s: the model has no input called %.*s", g->text, (int)end, g->text);
	if (g->input->type.kind != OM_TENSOR)
		return om_fail(c->session, OM_USAGE, "--value %s: input %s is not a tensor", g->text, g->input->name);
	return OM_OK;
}

/* ---- Numbers. ---- */

static bool
is_signed(om_dtype t)
{
	return t == OM_INT64 || t == OM_INT32 || t == OM_INT16 || t == OM_INT8;
}

/* An integer, stored in the bytes of its type. */
static bool
put_integer(om_tensor *t, uint64_t k, const char *text)
{
	const unsigned bits = om_dtype_bits(t->type);
	const uint64_t most = is_signed(t->type) ? INT64_MAX >> (64 - bits) : UINT64_MAX >> (64 - bits);
	char *end;

	errno = 0;
	const bool negative = *text == '-';
	const unsigned long long n = strtoull(negative ? text + 1 : text, &end, 10);
	if (end == text || *end || errno || text[negative] == '-' || text[negative] == '+')
		return false;
	if (negative ? !is_signed(t->type) || n > most + 1 : n > most)
		return false;
	const uint64_t is = negative ? 0 - (uint64_t)n : n;
	switch (bits) {
	case 8: ((uint8_t *)t->data)[k] = (uint8_t)is; return true;
	case 16: ((uint16_t *)t->data)[k] = (uint16_t)is; return true;
	case 32: ((uint32_t *)t->data)[k] = (uint32_t)is; return true;
	case 64: ((uint64_t *)t->data)[k] = is; return true;
	default: return false;
	}
}

static bool
put_bool(om_tensor *t, uint64_t k, const char *text)
{
	const bool yes = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;

	((uint8_t *)t->data)[k] = yes;
	return yes || strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static bool
put(om_tensor *t, uint64_t k, const char *text)
{
	char *end;

	if (t->type == OM_BOOL)
		return put_bool(t, k, text);
	if (om_dtype_is_integer(t->type))
		return om_dtype_bits(t->type) >= 8 && put_integer(t, k, text);
	const double x = strtod(text, &end);
	return end != text && !*end && om_data_put(t, k, x);
}

/* ---- Tensors. ---- */

/* A single number fills all elements; of a list, one dim may be open. */
static bool
find_shape(size_t n, om_shape *shape)
{
	int open = -1, nopen = 0;
	int64_t rest = (int64_t)n;

	memset(shape->sym, 0, sizeof shape->sym);
	if (shape->rank == OM_RANK_UNKNOWN)
		*shape = om_shape_of(n != 1, &rest);
	for (int d = 0; d < shape->rank; d++)
		if (shape->dim[d] < 0) {
			open = d;
			nopen++;
		}
	if (nopen == 0)
		return n == 1 || om_shape_count(shape) == (int64_t)n;
	for (int d = 0; d < shape->rank && nopen == 1; d++)
		if (d != open && (shape->dim[d] == 0 || rest % shape->dim[d] != 0))
			return false;
		else if (d != open)
			rest /= shape->dim[d];
	shape->dim[open] = rest;
	return nopen == 1;
}

/* With the sizes that options give. */
static om_status
known_shape(om_cli *c, const om_value *v, om_shape *shape)
{
	int64_t n;

	*shape = v->shape;
	for (int d = 0; d < shape->rank; d++)
		if (shape->dim[d] < 0 && shape->sym[d]) {
			OM_TRY(om_cli_given_size(c, shape->sym[d], &n));
			shape->dim[d] = n >= 0 ? n : shape->dim[d];
		}
	return OM_OK;
}

static om_status
read_numbers(om_cli *c, const struct given *g, om_tensor *t)
{
	const om_value *v = g->input;
	char shape[256];
	uint64_t bytes;
	size_t n;
	const char **word = om_split(c->mem, g->rest, ",", &n);
	om_shape known;

	t->type = v->type.elem;
	OM_TRY(known_shape(c, v, &known));
	t->shape = known;
	if (!find_shape(n, &t->shape) || !om_tensor_bytes(t->type, &t->shape, &bytes))
		return om_fail(c->session, OM_USAGE, "--value %s: input %s has the shape %s, which %zu number%s cannot fill", g->text, v->name,
			om_shape_text(&known, shape, sizeof shape), n, n == 1 ? "" : "s");
	t->data = om_allocn(c->mem, 1, bytes + 1);
	const uint64_t count = (uint64_t)om_shape_count(&t->shape);
	for (uint64_t k = 0; k < count; k++) {
		const char *at = word[n == 1 ? 0 : k];
		if (!put(t, k, at))
			return om_fail(c->session, OM_USAGE, "--value %s: %s is no %s, which input %s is", g->text, at,
				om_dtype_text(t->type), v->name);
	}
	return OM_OK;
}

om_status
om_cli_values(om_cli *c, om_binding *b)
{
	const char *text;

	for (size_t at = 0; (text = om_cli_next(c, "value", &at));) {
		struct given g = {.text = text};
		om_tensor t = {0};
		OM_TRY(find_input(c, &g));
		OM_TRY(g.is_file ? om_npy_load(c->session, g.rest, c->mem, &t) : read_numbers(c, &g, &t));
		OM_TRY(om_binding_value(c->session, b, g.input->name, &t));
	}
	return OM_OK;
}

void
om_cli_tell_values(om_cli *c, const char *out)
{
	const char *text;

	for (size_t at = 0; (text = om_cli_next(c, "value", &at));)
		om_warn(c->session, "%s has this value as a constant, and no input for it: --value %s", out, text);
}
