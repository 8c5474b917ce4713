/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers that have been lowered beside the reference kernels: directions, layouts, lengths, initial
 * states, and numbers of sequences and elements that fit no vector. */
#include <config.h>

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum { MOST_TEXT = 1 << 20 };

struct text {
	char *all;
	size_t n;
	uint32_t seed;
};

static void
put(struct text *t, const char *form, ...)
{
	va_list args;

	va_start(args, form);
	t->n += (size_t)vsnprintf(t->all + t->n, MOST_TEXT - t->n, form, args);
	va_end(args);
}

static float
number(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return (float)((*seed >> 8) % 2001) / 2000 - 0.5f;
}

static void
put_const(struct text *t, const char *name, int n, const char *form, ...)
{
	va_list args;

	put(t, "\t%%%s = const float32[", name);
	va_start(args, form);
	t->n += (size_t)vsnprintf(t->all + t->n, MOST_TEXT - t->n, form, args);
	va_end(args);
	put(t, "] {");
	for (int k = 0; k < n; k++)
		put(t, "%s%.4f", k ? ", " : "", (double)number(&t->seed));
	put(t, "}\n");
}

static const struct layer {
	const char *type, *attributes;
	int gates, ndir, steps, batch, width, hidden;
	bool has_bias, has_lengths, has_states;
} layers[] = {
	{"LSTM", "", 4, 1, 5, 1, 7, 16, true, false, false},
	{"LSTM", "direction = \"bidirectional\"", 4, 2, 6, 1, 5, 70, true, false, true},
	{"LSTM", "direction = \"bidirectional\"", 4, 2, 6, 3, 5, 13, true, true, true},
	{"LSTM", "direction = \"reverse\", layout = 1", 4, 1, 6, 15, 5, 33, false, true, false},
	{"LSTM", "", 4, 1, 1, 2, 5, 1, true, false, true},
	{"GRU", "", 3, 1, 5, 1, 7, 16, true, false, false},
	{"GRU", "linear_before_reset = 1", 3, 1, 5, 1, 7, 45, true, false, true},
	{"GRU", "direction = \"bidirectional\", layout = 1, linear_before_reset = 1", 3, 2, 5, 4, 7, 20, true, true, true},
	{"GRU", "direction = \"bidirectional\", layout = 1", 3, 2, 5, 14, 7, 70, true, true, true},
	{"GRU", "direction = \"reverse\", linear_before_reset = 1", 3, 1, 5, 2, 7, 20, false, false, false},
	{"RNN", "direction = \"bidirectional\"", 1, 2, 4, 3, 6, 19, true, true, true},
	{"RNN", "layout = 1", 1, 1, 4, 1, 6, 130, false, false, true},
};

/* All inputs are constants but X and the states: those of the file are known before the run. */
static void
write_layer(struct text *t, const struct layer *l)
{
	const bool first = strstr(l->attributes, "layout"), is_lstm = l->gates == 4;
	const int rows = l->gates * l->hidden, states = l->ndir * l->batch * l->hidden;

	put(t, "program \"t\" ir 8 opset 17\n^main(%%x: float32[%d,%d,%d]) {\n", first ? l->batch : l->steps,
		first ? l->steps : l->batch, l->width);
	put_const(t, "w", l->ndir * rows * l->width, "%d,%d,%d", l->ndir, rows, l->width);
	put_const(t, "r", l->ndir * rows * l->hidden, "%d,%d,%d", l->ndir, rows, l->hidden);
	put_const(t, "b", l->ndir * 2 * rows, "%d,%d", l->ndir, 2 * rows);
	put_const(t, "h", states, "%d,%d,%d", first ? l->batch : l->ndir, first ? l->ndir : l->batch, l->hidden);
	put_const(t, "c", states, "%d,%d,%d", first ? l->batch : l->ndir, first ? l->ndir : l->batch, l->hidden);
	put(t, "\t%%n = const int32[%d] {", l->batch);
	for (int k = 0; k < l->batch; k++)
		put(t, "%s%d", k ? ", " : "", l->steps - k % (l->steps + 1));
	put(t, "}\n\t%%y, %%last%s = %s(%%x, %%w, %%r, %s, %s, %s%s) {hidden_size = %d%s%s}\n\tret %%y, %%last%s\n}\n",
		is_lstm ? ", %cell" : "", l->type, l->has_bias ? "%b" : "_", l->has_lengths ? "%n" : "_", l->has_states ? "%h" : "_",
		!is_lstm ? "" : l->has_states ? ", %c" : ", _", l->hidden, *l->attributes ? ", " : "", l->attributes,
		is_lstm ? ", %cell" : "");
}

static om_status
compute(bench *b, const char *text, const char *passes)
{
	OM_TRY(bench_plan(b, text, passes));
	OM_TRY(bench_exec(b, &ways[SEPARATE]));
	const om_value *v = b->p->first->param[0];
	const om_tensor x = tensor_zero(b->mem, OM_FLOAT32, &v->shape);
	uint32_t seed = 9;
	for (int64_t k = 0; k < om_shape_count(&x.shape); k++)
		set_element(&x, k, 2 * (double)number(&seed));
	return bench_run(b, &x, 1);
}

static bool
is_same(const om_tensor *a, const om_tensor *b)
{
	bool same = om_shape_equal(&a->shape, &b->shape);

	for (int64_t k = 0; same && k < om_shape_count(&a->shape); k++)
		same = fabs(element_at(a, k) - element_at(b, k)) < 1e-5;
	return same;
}

static bool
is_lowered(const bench *b)
{
	for (const om_op *op = b->p->first->first; op; op = op->next)
		if (strcmp(op->domain, "org.onnxmem.cpu") == 0 && strcmp(op->type, "PackRecurrent") != 0)
			return true;
	return false;
}

static void
layers_are_the_same(void)
{
	struct text t = {.all = malloc(MOST_TEXT)};

	for (size_t k = 0; k < sizeof layers / sizeof layers[0]; k++) {
		bench plain = bench_open(), fast = bench_open();
		t.n = 0;
		t.seed = (uint32_t)k;
		write_layer(&t, &layers[k]);
		bool same = is_ok(plain.s, compute(&plain, t.all, "inline,shapes,fold"))
		    && is_ok(fast.s, compute(&fast, t.all, "inline,shapes,fold,lower-rnn,fold")) && is_lowered(&fast);
		for (uint32_t i = 0; same && i < (layers[k].gates == 4 ? 3 : 2); i++)
			same = is_same(om_exec_result(plain.e, i), om_exec_result(fast.e, i));
		CU_ASSERT(same);
		if (!same)
			printf("%s {%s}\n", layers[k].type, layers[k].attributes);
		bench_close(&plain);
		bench_close(&fast);
	}
	free(t.all);
}

static CU_TestInfo recurrent_tests[] = {
	{"lowered layers compute the same", layers_are_the_same},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("recurrent", recurrent_tests);
