/* SPDX-License-Identifier: Apache-2.0 */
/* What tests and measurements share. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "tests/fixtures.h"

const om_exec_options ways[NWAY] = {
	[SEPARATE] = OM_EXEC_OPTIONS(.no_reuse = true),
	[PLANNED] = OM_EXEC_OPTIONS(.no_reuse = false),
	[POISONED] = OM_EXEC_OPTIONS(.poison = true),
};
const char *const way_text[NWAY] = {"without reuse", "planned", "poisoned"};

bench
bench_open(void)
{
	bench b = {.s = om_session_new(), .mem = om_arena_new()};

	b.h = om_host_new(b.s, NULL);
	return b;
}

void
bench_clear(bench *b)
{
	om_exec_free(b->e);
	om_prog_free(b->p);
	om_model_free(b->model);
	b->e = NULL;
	b->p = NULL;
	b->model = NULL;
}

void
bench_close(bench *b)
{
	bench_clear(b);
	om_host_free(b->h);
	om_arena_free(b->mem);
	om_session_free(b->s);
}

om_status
bench_read(bench *b, const char *text)
{
	return text_parse(b->s, text, &b->p);
}

om_status
bench_plan(bench *b, const char *text, const char *passes)
{
	OM_TRY(bench_read(b, text));
	return passes ? om_host_run(b->h, b->p, passes) : OM_OK;
}

om_status
bench_load(bench *b, const char *path)
{
	OM_TRY(om_model_load(b->s, path, &b->model));
	return om_model_import(b->s, b->model, &b->p);
}

om_status
bench_model(bench *b, const char *name)
{
	return bench_load(b, om_printf(b->mem, OM_SRCDIR "/models/%s", name));
}

om_status
bench_exec(bench *b, const om_exec_options *o)
{
	om_exec_free(b->e);
	b->e = NULL;
	return om_exec_new(b->s, b->p, o->no_reuse ? NULL : b->p->plan, o, &b->e);
}

om_status
bench_run(bench *b, const om_tensor *in, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		OM_TRY(om_exec_input(b->e, k, &in[k]));
	return om_exec_run(b->e);
}

om_status
text_parse(om_session *s, const char *text, om_prog **p)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	const om_status st = om_parse(s, in, "test", p);

	fclose(in);
	return st;
}

char *
text_dump(const om_prog *p, unsigned flags)
{
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	om_dump(p, to, flags);
	fclose(to);
	return text;
}

bool
is_ok(const om_session *s, om_status st)
{
	if (st != OM_OK)
		printf("# %s\n", om_message(s));
	return st == OM_OK;
}

bool
is_told(const om_session *s, om_status st, om_status want, const char *part)
{
	const bool good = st == want && strstr(om_message(s), part);

	if (!good)
		printf("# %s: %s, not %s: %s\n", om_status_text(st), om_message(s), om_status_text(want), part);
	return good;
}

double
element_at(const om_tensor *t, int64_t k)
{
	switch (t->type) {
	case OM_FLOAT16: return om_half_to_float(((const uint16_t *)t->data)[k]);
	case OM_FLOAT32: return ((const float *)t->data)[k];
	case OM_FLOAT64: return ((const double *)t->data)[k];
	case OM_INT64: return (double)((const int64_t *)t->data)[k];
	case OM_INT32: return ((const int32_t *)t->data)[k];
	case OM_INT8: return ((const int8_t *)t->data)[k];
	case OM_BOOL: case OM_UINT8: return ((const uint8_t *)t->data)[k];
	default: return NAN;
	}
}

void
set_element(const om_tensor *t, int64_t k, double x)
{
	switch (t->type) {
	case OM_FLOAT16: ((uint16_t *)t->data)[k] = om_float_to_half((float)x); break;
	case OM_FLOAT32: ((float *)t->data)[k] = (float)x; break;
	case OM_FLOAT64: ((double *)t->data)[k] = x; break;
	case OM_INT64: ((int64_t *)t->data)[k] = (int64_t)x; break;
	case OM_INT32: ((int32_t *)t->data)[k] = (int32_t)x; break;
	case OM_INT8: ((int8_t *)t->data)[k] = (int8_t)x; break;
	case OM_BOOL: ((bool *)t->data)[k] = x != 0; break;
	default: ((uint8_t *)t->data)[k] = (uint8_t)x; break;
	}
}

om_tensor
tensor_zero(om_arena *mem, om_dtype type, const om_shape *shape)
{
	om_tensor t = {.type = type, .shape = *shape};

	t.data = OM_NEWN(mem, uint64_t, (size_t)om_shape_count(shape) + 1);
	return t;
}

om_tensor
floats_of(int64_t n, const float *x)
{
	return (om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(1, &n), .data = (void *)x};
}

bool
is_floats(const om_tensor *t, int64_t n, const float *want)
{
	return t->data && !t->splat && t->type == OM_FLOAT32 && om_shape_count(&t->shape) == n
	    && memcmp(t->data, want, (size_t)n * sizeof *want) == 0;
}
