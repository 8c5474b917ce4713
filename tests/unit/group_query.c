/* SPDX-License-Identifier: Apache-2.0 */
/* GroupQueryAttention, the fast kernel beside the reference: caches of every type, that grow, slide, or are rings. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "opdef/numbers.h"
#include "tests/fixtures.h"
#include "unit.h"

enum { ROUNDS = 120, MOST_IN = 14, NOUT = 3 };

/* One case: a batch of two sequences of the same length. */
struct trial {
	om_dtype type;
	int bits;                 /* of the caches; 0: they have the type of the queries */
	bool per_channel, is_ring, slides, packed, rotates;
	int kv, heads, size, queries, past, total, window, length, bias_heads;
	char text[3000];
	om_tensor in[MOST_IN];
	uint32_t nin;
};

static int
draw(uint64_t *state, int least, int most)
{
	return least + (int)(om_rng_unit(state) * (most - least + 1));
}

static om_tensor
tensor_of(uint64_t *state, om_dtype t, int rank, const int64_t *dim, double low, double high)
{
	om_tensor x = {.type = t, .shape = om_shape_of(rank, dim)};
	const int64_t n = om_shape_count(&x.shape);

	x.data = calloc((size_t)n + 1, 8);
	for (int64_t k = 0; k < n; k++)
		om_put(t, x.data, k, low + om_rng_unit(state) * (high - low));
	return x;
}

/* Add an input, with its declaration in `params`, or none. */
static void
give(struct trial *t, char *params, char *names, const char *name, om_tensor x)
{
	char *to = params + strlen(params);

	to += sprintf(to, "%s%%%s: %s[", t->nin ? ", " : "", name, om_dtype_text(x.type));
	for (int d = 0; d < x.shape.rank; d++)
		to += sprintf(to, "%s%lld", d ? "," : "", (long long)x.shape.dim[d]);
	strcpy(to, "]");
	sprintf(names + strlen(names), "%s%%%s", *names ? ", " : "", name);
	t->in[t->nin++] = x;
}

static void
omit(char *names)
{
	strcat(names, ", _");
}

static om_tensor
cache_of(uint64_t *state, const struct trial *t)
{
	const int64_t dim[] = {2, t->kv, t->past, t->bits == 4 ? t->size / 2 : t->size};

	if (!t->bits)
		return tensor_of(state, t->type, 4, dim, -2, 2);
	return t->bits == 4 ? tensor_of(state, OM_UINT8, 4, dim, 0, 255) : tensor_of(state, OM_INT8, 4, dim, -128, 127);
}

static void
choose(struct trial *t, uint64_t *state)
{
	static const om_dtype types[] = {OM_FLOAT32, OM_FLOAT16, OM_BFLOAT16};

	*t = (struct trial){.type = types[draw(state, 0, 2)], .bits = draw(state, 0, 2) * 4, .per_channel = draw(state, 0, 1),
		.packed = draw(state, 0, 1), .rotates = draw(state, 0, 1), .kv = draw(state, 1, 2), .size = 2 * draw(state, 1, 20),
		.queries = draw(state, 0, 2) ? 1 : draw(state, 2, 12)};
	t->heads = t->kv * draw(state, 1, 3);
	t->window = draw(state, 0, 1) ? draw(state, 1, 9) : 0;
	t->is_ring = t->window && draw(state, 0, 1);
	t->slides = t->window && !t->is_ring && t->queries == 1 && draw(state, 0, 1);
	t->length = draw(state, 0, t->is_ring || t->slides ? 30 : 90) + t->queries;
	t->past = t->is_ring ? t->window : t->slides ? t->window + draw(state, 0, 3) : t->length - t->queries + draw(state, 0, 2) * 4;
	t->total = t->is_ring || t->slides ? t->past : t->length > t->past ? t->length : t->past;
}

static void
build(struct trial *t, uint64_t *state)
{
	const int64_t width = (int64_t)t->heads * t->size, narrow = (int64_t)t->kv * t->size;
	const int64_t half = t->size / 2, places = t->length + 2;
	char params[2000] = "", names[500] = "";

	if (t->packed) {
		give(t, params, names, "q", tensor_of(state, t->type, 3, (int64_t[]){2, t->queries, width + 2 * narrow}, -2, 2));
		omit(names);
		omit(names);
	} else {
		give(t, params, names, "q", tensor_of(state, t->type, 3, (int64_t[]){2, t->queries, width}, -2, 2));
		give(t, params, names, "k", tensor_of(state, t->type, 3, (int64_t[]){2, t->queries, narrow}, -2, 2));
		give(t, params, names, "v", tensor_of(state, t->type, 3, (int64_t[]){2, t->queries, narrow}, -2, 2));
	}
	give(t, params, names, "past_k", cache_of(state, t));
	give(t, params, names, "past_v", cache_of(state, t));
	om_tensor last = tensor_of(state, OM_INT32, 1, (int64_t[]){2}, 0, 0);
	for (int k = 0; k < 2; k++)
		((int32_t *)last.data)[k] = t->length - 1;
	give(t, params, names, "n", last);
	strcat(names, ", %total");
	if (t->rotates) {
		give(t, params, names, "cosines", tensor_of(state, t->type, 2, (int64_t[]){places, half}, -1, 1));
		give(t, params, names, "sines", tensor_of(state, t->type, 2, (int64_t[]){places, half}, -1, 1));
	} else {
		omit(names);
		omit(names);
	}
	omit(names);
	if (draw(state, 0, 2) == 0) {
		t->bias_heads = draw(state, 0, 1) ? t->heads : 1;
		give(t, params, names, "bias", tensor_of(state, t->type, 4, (int64_t[]){draw(state, 1, 2), t->bias_heads, t->queries, places}, -1, 1));
	} else {
		omit(names);
	}
	if (draw(state, 0, 2) == 0)
		give(t, params, names, "sink", tensor_of(state, t->type, 1, (int64_t[]){t->heads}, -1, 1));
	else
		omit(names);
	for (int k = 0; t->bits && k < 2; k++)
		give(t, params, names, k ? "scale_v" : "scale_k", tensor_of(state, OM_FLOAT32, 4, t->per_channel ? (int64_t[]){1, t->kv, 1, t->size}
			: (int64_t[]){1, 1, 1, 1}, t->bits == 4 ? 0.1 : 0.01, t->bits == 4 ? 0.3 : 0.02));
	const char *kind = t->bits ? t->per_channel ? "PER_CHANNEL" : "PER_TENSOR" : "NONE";
	snprintf(t->text, sizeof t->text, "program \"\" ir 10 opset 22 opset com.microsoft 1 opset org.onnxmem.cpu 1\n^main(%s) {\n"
		"\t%%total = const int32[] {%d}\n\t%%y, %%next_k, %%next_v = %s::GroupQueryAttention(%s) {num_heads = %d, kv_num_heads = %d, "
		"do_rotary = %d, rotary_interleaved = %d, local_window_size = %d, sliding_window_cache = %d, softcap = %d, k_quant_type = \"%s\", "
		"v_quant_type = \"%s\", kv_cache_bit_width = %d}\n\tret %%y, %%next_k, %%next_v\n}\n", params,
		t->length, t->is_ring ? "org.onnxmem.cpu" : "com.microsoft", names, t->heads, t->kv, t->rotates, draw(state, 0, 1),
		t->window ? t->window : -1, t->slides, 4 * draw(state, 0, 1), kind, kind, t->bits);
}

static void
run_trial(const struct trial *t, bool precise, om_tensor *out)
{
	const om_exec_options o = OM_EXEC_OPTIONS(.no_reuse = true, .precise = precise);
	bench b;

	unit_start(&b, t->text, "inline,shapes,fold");
	CU_ASSERT_FATAL(is_ok(b.s, bench_exec(&b, &o)));
	for (uint32_t k = 0; k < NOUT; k++) {
		const om_value *v = b.p->first->result[k];
		out[k] = (om_tensor){.type = v->type.elem, .shape = v->shape, .data = calloc(om_value_bytes(v) + 1, 1)};
		CU_ASSERT(is_ok(b.s, om_exec_output(b.e, k, out[k].data, om_value_bytes(v))));
	}
	CU_ASSERT_FATAL(is_ok(b.s, bench_run(&b, t->in, t->nin)));
	bench_close(&b);
}

/* Halves of the lower and of the higher bits of a byte of two elements are a step apart at most, as bytes are. */
static bool
is_step(const struct trial *t, uint8_t a, uint8_t b)
{
	if (t->bits == 8)
		return abs((int8_t)a - (int8_t)b) <= 1;
	return abs((a & 15) - (b & 15)) <= 1 && abs((a >> 4) - (b >> 4)) <= 1;
}

static bool
agree(const struct trial *t, const om_tensor *a, const om_tensor *b, bool is_result)
{
	const double slack = t->type == OM_FLOAT32 ? 2e-5 : t->type == OM_FLOAT16 ? 2e-3 : 1.6e-2;
	/* A new row of integers may be rounded otherwise. */
	const double more = is_result && t->bits ? t->bits == 4 ? 0.4 : 0.03 : 0;

	for (int64_t k = 0; k < om_shape_count(&a->shape); k++) {
		const double x = om_get(a->type, a->data, k), y = om_get(b->type, b->data, k);
		if (a->type == OM_INT8 || a->type == OM_UINT8 ? !is_step(t, ((uint8_t *)a->data)[k], ((uint8_t *)b->data)[k])
		    : !(fabs(x - y) <= slack * (1 + fabs(y)) + more))
			return false;
	}
	return true;
}

static void
reference_agrees(void)
{
	static struct trial t;
	uint64_t state = 3;

	for (int round = 0; round < ROUNDS; round++) {
		om_tensor out[2][NOUT];
		bool same = true;
		choose(&t, &state);
		build(&t, &state);
		for (int precise = 0; precise < 2; precise++)
			run_trial(&t, precise, out[precise]);
		for (int k = 0; k < NOUT; k++)
			same = same && agree(&t, &out[0][k], &out[1][k], k == 0);
		if (!same)
			printf("# %s", t.text);
		CU_ASSERT(same);
		for (int k = 0; k < 2 * NOUT; k++)
			free(out[k / NOUT][k % NOUT].data);
		for (uint32_t k = 0; k < t.nin; k++)
			free(t.in[k].data);
	}
}

static CU_TestInfo group_query_tests[] = {
	{"the reference agrees", reference_agrees},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("group query", group_query_tests);
