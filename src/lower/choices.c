/* SPDX-License-Identifier: Apache-2.0 */
/* Choices of how layers are computed; see choices.h. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "lower/choices.h"
#include "lower/layout.h"

/* The sizes that are tried.  Others are valid in a list. */
static const int64_t blocks[] = {100, 50, 200};

enum { GEMM, WINOGRAD4, WINOGRAD2, GROUPED, NALGORITHM, NBLOCK = sizeof blocks / sizeof blocks[0] };

static const char *const algorithms[] = {
	[GEMM] = "gemm", [WINOGRAD4] = "winograd4", [WINOGRAD2] = "winograd2", [GROUPED] = "grouped",
};

/* ---- Keys. ---- */

/* "_i56x56" */
static const char *
sizes(om_arena *mem, const char *before, char name, const int64_t *v, int n)
{
	const char *text = om_printf(mem, "%s_%c", before, name);

	for (int k = 0; k < n; k++)
		text = om_printf(mem, "%s%s%" PRId64, text, k ? "x" : "", v[k]);
	return text;
}

const char *
om_conv_key(const om_conv_shape *s, om_arena *mem)
{
	const char *key = om_printf(mem, "conv_n%" PRId64 "_c%" PRId64 "_k%" PRId64 "_g%" PRId64, s->batch, s->channels_in,
		s->channels_out, s->group);

	key = sizes(mem, key, 'i', s->in, s->axes);
	key = sizes(mem, key, 'o', s->out, s->axes);
	key = sizes(mem, key, 'w', s->kernel, s->axes);
	key = sizes(mem, key, 's', s->stride, s->axes);
	return sizes(mem, key, 'd', s->dilation, s->axes);
}

const char *
om_product_key(int64_t rows, int64_t depth, int64_t columns, om_arena *mem)
{
	return om_printf(mem, "product_n%" PRId64 "_c%" PRId64 "_k%" PRId64, rows, depth, columns);
}

/* ---- Ops that were lowered. ---- */

static bool
is_layer(const om_op *op, const char *type)
{
	return strcmp(op->domain, OM_CPU_DOMAIN) == 0 && strcmp(op->type, type) == 0 && op->nin >= 2 && op->in[0]
	    && om_shape_is_known(&op->in[0]->shape) && op->out[0] && om_shape_is_known(&op->out[0]->shape);
}

static bool
shape_of(const om_op *op, om_conv_shape *s)
{
	size_t axes, n, m;
	const bool first = strcmp(op->type, "Conv") == 0 && om_attr_is(op, "input_layout", "channels_first");
	const om_shape *x = &op->in[0]->shape, *y = &op->out[0]->shape;

	s->kernel = om_attr_ints(op, "kernel_shape", &axes);
	s->stride = om_attr_ints(op, "strides", &n);
	s->dilation = om_attr_ints(op, "dilations", &m);
	if (x->rank != (int)axes + 2 || n != axes || m != axes)
		return false;
	s->axes = (int)axes;
	s->batch = x->dim[0];
	s->channels_in = x->dim[first ? 1 : x->rank - 1];
	s->channels_out = om_attr_int(op, "channels");
	s->group = om_attr_int(op, "group");
	s->in = x->dim + (first ? 2 : 1);
	s->out = y->dim + 1;
	return true;
}

const char *
om_layer_key(const om_op *op, om_arena *mem, om_choice *is)
{
	om_conv_shape s;

	*is = (om_choice){.algorithm = algorithms[0], .block = 100};
	if (is_layer(op, "MatMul")) {
		const om_shape *x = &op->in[0]->shape;
		const int64_t depth = x->dim[x->rank - 1];
		is->block = om_attr_int(op, "block");
		return depth ? om_product_key(om_shape_count(x) / depth, depth, om_attr_int(op, "columns"), mem) : NULL;
	}
	if (is_layer(op, "GroupedConv") && shape_of(op, &s)) {
		is->algorithm = algorithms[GROUPED];
		return s.channels_in > s.group ? om_conv_key(&s, mem) : NULL;
	}
	if (!is_layer(op, "Conv") || !shape_of(op, &s))
		return NULL;
	is->block = om_attr_int(op, "block");
	for (size_t k = 0; k < NALGORITHM; k++)
		if (om_attr_is(op, "algorithm", algorithms[k]))
			is->algorithm = algorithms[k];
	return om_conv_key(&s, mem);
}

static bool
is_equal(const om_choice *a, const om_choice *b)
{
	return strcmp(a->algorithm, b->algorithm) == 0 && a->block == b->block;
}

/* Can a layer that has a key be computed so? */
static bool
suits(const om_op *op, size_t algorithm)
{
	om_conv_shape s;

	if (algorithm == GEMM)
		return true;
	if (is_layer(op, "MatMul") || !shape_of(op, &s))
		return false;
	return algorithm == GROUPED ? om_conv_suits_grouped(&s)
		: om_conv_suits_winograd(&s) && !(is_layer(op, "Conv") && om_attr_is(op, "input_layout", "channels_first"));
}

uint32_t
om_layer_alternatives(const om_op *op, om_choice *c)
{
	om_arena *mem = om_arena_new();
	const bool is_one = om_layer_key(op, mem, &c[0]) != NULL;
	uint32_t n = is_one;

	for (size_t a = 0; is_one && a < NALGORITHM; a++)
		for (size_t k = 0; k < (a == GROUPED ? 1 : NBLOCK) && suits(op, a); k++) {
			c[n] = (om_choice){algorithms[a], blocks[k]};
			n += !is_equal(&c[n], &c[0]);
		}
	om_arena_free(mem);
	return n;
}

/* ---- Texts. ---- */

bool
om_choice_read(const char *text, size_t n, om_choice *c)
{
	const char *at = memchr(text, '@', n);
	const size_t name = at ? (size_t)(at - text) : n;
	char *end = NULL;

	*c = (om_choice){.block = 100};
	for (size_t k = 0; k < NALGORITHM; k++)
		if (strlen(algorithms[k]) == name && memcmp(algorithms[k], text, name) == 0)
			c->algorithm = algorithms[k];
	if (at)
		c->block = strtoll(at + 1, &end, 10);
	return c->algorithm && (!at || (c->algorithm != algorithms[GROUPED] && end == text + n && end > at + 1 && c->block >= OM_LEAST_BLOCK && c->block <= OM_MOST_BLOCK));
}

const char *
om_choice_text(const om_choice *c, om_arena *mem)
{
	return c->block == 100 ? c->algorithm : om_printf(mem, "%s@%" PRId64, c->algorithm, c->block);
}

/* The next entry of a list: its key and its choice.  False at the end. */
static bool
next_entry(const char **at, const char **key, size_t *nkey, const char **choice, size_t *nchoice)
{
	const size_t n = strcspn(*at, ";");
	const char *is = memchr(*at, '=', n);

	if (!n)
		return false;
	*key = *at;
	*nkey = is ? (size_t)(is - *at) : n;
	*choice = is ? is + 1 : *at + n;
	*nchoice = n - *nkey - (is ? 1 : 0);
	*at += n + ((*at)[n] == ';');
	return true;
}

bool
om_choices_find(const char *list, const char *key, om_choice *c)
{
	const size_t n = strlen(key);
	const char *name, *choice;
	size_t nname, nchoice;

	while (next_entry(&list, &name, &nname, &choice, &nchoice))
		if (nname == n && memcmp(name, key, n) == 0) {
			if (!om_choice_read(choice, nchoice, c))
				c->algorithm = NULL;
			return true;
		}
	return false;
}

bool
om_choices_are_valid(const char *list)
{
	const char *name, *choice;
	size_t nname, nchoice;

	while (next_entry(&list, &name, &nname, &choice, &nchoice))
		if (!nname || !nchoice)
			return false;
	return !*list;
}
