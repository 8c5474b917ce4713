/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes as text: an operator with its inputs, in the textual form of programs.
 *
 * A parameter of the graph gets random elements: of any value or, by the first letter of its name, `p`
 * from [0, 1), `i` indices 0 and 1, `n` from [1, 3).  A constant controls the op: it is not changed. */
#include <config.h>

#include <stdlib.h>

#include "base/rng.h"
#include "tests/fixtures.h"
#include "walk.h"
#include "base/arena_internal.h"
#include "base/half.h"
#include "base/shape.h"
#include "opdef/fold.h"
#include "opdef/op_context.h"

enum { WIDEST = 16 };

static const struct text {
	const char *name;
	int since;
	const char *params, *body;
} texts[] = {
#define TEXT(name, since, params, body) {#name, since, params, body},
#include "texts.def"
#undef TEXT
};

enum { NTEXT = sizeof texts / sizeof texts[0] };

bool
is_of_shared_name(const om_opdef *row)
{
	return row->domain && (strcmp(row->domain, "com.microsoft") == 0 || strcmp(row->domain, "org.onnxmem.cpu") == 0);
}

static bool
is_of_domain(const struct text *x, const om_opdef *row)
{
	char prefix[32];

	if (!is_of_shared_name(row))
		return !strstr(x->body, "com.microsoft::") && !strstr(x->body, "org.onnxmem.cpu::");
	snprintf(prefix, sizeof prefix, "%s::", row->domain);
	return strstr(x->body, prefix) != NULL;
}

static bool
is_for(const struct text *x, const struct trial *t)
{
	if (!is_of_domain(x, t->row))
		return false;
	if (x->since < 0)
		return strcmp(x->name, t->row->name) == 0 && t->version == -x->since;
	return strcmp(x->name, t->row->name) == 0 && x->since <= t->version && (t->row->until == 0 || x->since <= t->row->until);
}

static double
below(struct trial *t, double n)
{
	return om_rng_unit(&t->state) * n;
}

static double
element(struct trial *t, const om_value *v)
{
	switch (*v->name) {
	case 'p': return below(t, 1);
	case 'i': return below(t, 2);
	case 'n': return 1 + below(t, 2);
	default: return om_dtype_is_float(v->type.elem) ? below(t, 4) - 2 : below(t, 19) - 9.5;
	}
}

/* Several elements per byte, the first in the lowest bits. */
static void
put_packed(unsigned bits, uint8_t *data, int64_t i, unsigned v)
{
	const unsigned each = 8 / bits, at = (unsigned)(i % each) * bits, mask = (1u << bits) - 1;

	data[i / each] = (uint8_t)((data[i / each] & ~(mask << at)) | (v & mask) << at);
}

void
trial_put(om_dtype type, void *data, int64_t i, double v)
{
	static const om_string words[] = {{"a", 1}, {"Bc", 2}, {"a", 1}, {"", 0}};
	const unsigned bits = om_dtype_bits(type);

	switch (type) {
	case OM_FLOAT32: ((float *)data)[i] = (float)v; break;
	case OM_FLOAT64: ((double *)data)[i] = v; break;
	case OM_FLOAT16: ((uint16_t *)data)[i] = om_float_to_half((float)v); break;
	case OM_BFLOAT16: ((uint16_t *)data)[i] = om_float_to_bfloat((float)v); break;
	case OM_INT64: ((int64_t *)data)[i] = (int64_t)v; break;
	case OM_UINT64: ((uint64_t *)data)[i] = (uint64_t)(int64_t)v; break;
	case OM_INT32: ((int32_t *)data)[i] = (int32_t)v; break;
	case OM_UINT32: ((uint32_t *)data)[i] = (uint32_t)(int64_t)v; break;
	case OM_INT16: ((int16_t *)data)[i] = (int16_t)v; break;
	case OM_UINT16: ((uint16_t *)data)[i] = (uint16_t)(int64_t)v; break;
	case OM_INT8: ((int8_t *)data)[i] = (int8_t)v; break;
	case OM_UINT8: ((uint8_t *)data)[i] = (uint8_t)(int64_t)v; break;
	case OM_BOOL: ((uint8_t *)data)[i] = v >= 1; break;
	case OM_STRING: ((om_string *)data)[i] = words[(unsigned)(int)v % 4]; break;
	case OM_COMPLEX64: ((float *)data)[2 * i] = (float)v; ((float *)data)[2 * i + 1] = (float)(1 - v); break;
	case OM_COMPLEX128: ((double *)data)[2 * i] = v; ((double *)data)[2 * i + 1] = 1 - v; break;
	default:  /* sub-byte types: any bit pattern is valid */
		if (bits < 8)
			put_packed(bits, data, i, (unsigned)(int)(5 * v));
		else
			((uint8_t *)data)[i] = (uint8_t)(int)(25 * v);
	}
}

static void
fill(struct trial *t, om_value *v)
{
	om_tensor *x = OM_NEW(t->prog->mem, om_tensor);
	const int64_t n = om_shape_count(&v->shape);

	*x = (om_tensor){.type = v->type.elem, .shape = v->shape};
	x->data = om_alloc(t->prog->mem, (size_t)n * WIDEST + WIDEST);
	memset(x->data, 0, (size_t)n * WIDEST + WIDEST);
	for (int64_t k = 0; k < n; k++)
		trial_put(x->type, x->data, k, element(t, v));
	v->data = x;
	v->is_const = true;
}

/* Ops before the last one are computed: they make its inputs. */
static om_status
build(struct trial *t, const char *text)
{
	om_prog_free(t->prog);
	t->prog = NULL;
	OM_TRY(text_parse(t->session, text, &t->prog));
	t->op = t->prog->first->last;
	for (uint32_t k = 0; k < t->prog->first->nparam; k++)
		fill(t, t->prog->first->param[k]);
	for (om_op *op = t->prog->first->first; op != t->op; op = op->next) {
		om_fold_limits any = OM_FOLD_ANY;
		OM_TRY(om_op_infer(t->session, t->prog, op));
		OM_TRY(om_op_fold(t->session, t->prog, op, &any, NULL));
	}
	for (uint32_t k = 0; k < t->op->nin; k++) {
		om_value *v = t->op->in[k];
		if (!v)
			continue;
		bool is_param = false;
		for (uint32_t i = 0; i < t->prog->first->nparam; i++)
			is_param |= v == t->prog->first->param[i];
		t->is_steering[k] = !is_param;
	}
	return OM_OK;
}

void
trial_from_text(struct trial *t, const char *params, const char *body)
{
	const bool other = t->row->domain && *t->row->domain;
	char text[4096];

	int n = snprintf(text, sizeof text, "program \"\" ir 10 opset %d", other ? 22 : t->version);
	if (other)
		n += snprintf(text + n, sizeof text - (size_t)n, " opset %s %d", t->row->domain, t->version);
	snprintf(text + n, sizeof text - (size_t)n, "\n^main(%s) {\n\t%s\n\tret %%y\n}\n", params, body);
	if (build(t, text) != OM_OK || t->op->opdef != t->row) {
		printf("Bail out! %s: %s\n%s", t->row->name, t->prog ? "another operator" : om_message(t->session), text);
		exit(1);
	}
}

static bool
from_text(struct trial *t)
{
	const struct text *x = NULL;
	unsigned at = 0;

	for (int k = 0; k < NTEXT && !x; k++)
		if (is_for(&texts[k], t) && at++ == t->variant)
			x = &texts[k];
	if (x)
		trial_from_text(t, x->params, x->body);
	return x != NULL;
}

recipe_fn *
text_recipe_of(const om_opdef *row)
{
	for (int k = 0; k < NTEXT; k++)
		if (is_of_domain(&texts[k], row) && strcmp(texts[k].name, row->name) == 0)
			return from_text;
	return NULL;
}
