/* SPDX-License-Identifier: Apache-2.0 */
/* States that are an input and an output of a program: aliased, the new one is computed over
 * the old one. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "tests/fixtures.h"
#include "unit.h"

enum { STEPS = 3, MOST = 5 };

static const char aliased[] = "inline,shapes,fold,prune,schedule=min-memory,liveness,views,inplace,alias-io,pack";

static const char declared[] = "inline,shapes,fold,prune,schedule=min-memory,liveness,views,alias-io=declared,inplace,pack";

static bool
start_by(bench *b, const char *body, int way, const char *passes)
{
	*b = bench_open();
	return is_ok(b->s, bench_plan(b, om_printf(b->mem, "program \"t\" ir 11 opset 27 opset com.microsoft 1\n%s", body),
		passes)) && is_ok(b->s, bench_exec(b, &ways[way]));
}

static bool
start(bench *b, const char *body, int way)
{
	return start_by(b, body, way, aliased);
}

/* The first input is the state; the others differ from step to step. */
static void
fill(const om_value *v, uint32_t k, int step, void *to)
{
	for (int64_t i = 0; i < om_shape_count(&v->shape); i++)
		if (v->type.elem == OM_INT64)
			((int64_t *)to)[i] = *v->name == 'n' ? step + 1 : step;
		else if (v->type.elem == OM_INT32)
			((int32_t *)to)[i] = step;
		else
			((float *)to)[i] = (float)((i * 7 + k * 3 + (uint32_t)step * 5) % 11) / 8 - 0.5f;
}

/* Feed the state that result `from` gives back, and keep result 0 of each step. */
static bool
run(bench *b, uint32_t from, float *kept, size_t n, bool in_place)
{
	const om_block *graph = b->p->first;
	void *room[MOST];
	bool ok = graph->nparam <= MOST;

	for (uint32_t k = 0; k < graph->nparam; k++)
		room[k] = calloc(1, om_value_bytes(graph->param[k]));
	for (int step = 0; ok && step < STEPS; step++) {
		for (uint32_t k = 0; k < graph->nparam; k++) {
			const om_value *v = graph->param[k];
			if (k)
				fill(v, k, step, room[k]);
			ok = ok && om_exec_input(b->e, k, &(om_tensor){.type = v->type.elem, .shape = v->shape,
				.data = room[k]}) == OM_OK;
		}
		ok = ok && om_exec_run(b->e) == OM_OK;
		const om_tensor *state = ok ? om_exec_result(b->e, from) : NULL;
		if (state && in_place)
			CU_ASSERT_PTR_EQUAL(state->data, room[0]);
		if (state && state->data != room[0])
			memcpy(room[0], state->data, om_value_bytes(graph->param[0]));
		if (ok)
			memcpy(kept + (size_t)step * n, om_exec_result(b->e, 0)->data, n * sizeof *kept);
	}
	for (uint32_t k = 0; k < graph->nparam; k++)
		free(room[k]);
	return ok;
}

static void
check_by(const char *body, uint32_t from, size_t n, const char *passes)
{
	float kept[NWAY][STEPS * 64];

	for (int way = 0; way < NWAY; way++) {
		bench b;
		if (!start_by(&b, body, way, passes) || !run(&b, from, kept[way], n, way != SEPARATE)) {
			printf("# %s\n", om_message(b.s));
			CU_FAIL("a program was not run");
		} else {
			CU_ASSERT(way == SEPARATE || memcmp(kept[way], kept[0], STEPS * n * sizeof(float)) == 0);
			CU_ASSERT(way == SEPARATE || b.p->plan->nalias > 0);
		}
		bench_close(&b);
	}
}

static void
check(const char *body, uint32_t from, size_t n)
{
	check_by(body, from, n, aliased);
}

static void
caches_are_written_where_they_are(void)
{
	check("^main(%cache: float32[1,2,4,3], %new: float32[1,2,1,3], %at: int64[1], %n: int64[1]) {\n"
		"	%next = TensorScatter(%cache, %new, %at)\n"
		"	%y = Attention(%new, %next, %next, _, _, _, %n)\n"
		"	ret %y, %next\n"
		"}\n", 1, 6);
}

/* Of com.microsoft: the cache has room for what comes, and sequences know how long they are. */
static void
caches_with_room_grow_in_place(void)
{
	check("^main(%cache: float32[1,1,4,4], %qkv: float32[1,1,16], %values: float32[1,1,4,4], %n: int32[1]) {\n"
		"	%t = const int32[] {4}\n"
		"	%y, %next, %v = com.microsoft::GroupQueryAttention(%qkv, _, _, %cache, %values, %n, %t)"
		" {num_heads = 2, kv_num_heads = 1}\n"
		"	ret %y, %next, %v\n"
		"}\n", 1, 8);
}

static void
linear_attention_learns_in_place(void)
{
	check("^main(%old: float32[1,2,3,3], %q: float32[1,2,6], %k: float32[1,2,6], %v: float32[1,2,6]) {\n"
		"	%y, %next = LinearAttention(%q, %k, %v, %old) {q_num_heads = 2, kv_num_heads = 2, update_rule = \"linear\"}\n"
		"	ret %y, %next\n"
		"}\n", 1, 12);
}

static void
convolutions_go_on_in_place(void)
{
	check("^main(%past: float32[1,2,3], %x: float32[1,2,2], %w: float32[2,1,4]) {\n"
		"	%y, %next = CausalConvWithState(%x, %w, _, %past)\n"
		"	ret %y, %next\n"
		"}\n", 1, 4);
}

/* A layer computes its states over the old ones, in both directions, for sequences of several lengths. */
static void
layers_go_on_in_place(void)
{
	check("^main(%past: float32[2,3,2], %x: float32[4,3,2], %w: float32[2,8,2], %r: float32[2,8,2], %n: int32[3]) {\n"
		"	%y, %h, %next = LSTM(%x, %w, %r, _, %n, _, %past) {hidden_size = 2, direction = \"bidirectional\"}\n"
		"	ret %y, %next\n"
		"}\n", 1, 48);
	check("^main(%past: float32[1,3,2], %x: float32[4,3,2], %w: float32[1,6,2], %r: float32[1,6,2]) {\n"
		"	%y, %next = GRU(%x, %w, %r, _, _, %past) {hidden_size = 2}\n"
		"	ret %y, %next\n"
		"}\n", 1, 24);
}

/* The window reads itself from the second element on, and is written in its memory by an op that does not. */
static void
windows_move_on_in_place(void)
{
	check_by("^main(%past: float32[1,2,4], %new: float32[1,2,1]) {\n"
		"	%one = const int64[1] {1}\n	%four = const int64[1] {4}\n	%two = const int64[1] {2}\n"
		"	%y = ReduceSum(%past, %two)\n"
		"	%rest = Slice(%past, %one, %four, %two)\n"
		"	%next = Concat(%rest, %new) {axis = 2}\n"
		"	ret %y, %next to %past\n"
		"}\n", 1, 2, declared);
}

/* The second layer reads its part of the states after the first one has its new part. */
static void
states_of_layers_are_joined_in_place(void)
{
	check_by("^main(%past: float32[2,1,3], %x: float32[1,1,3], %w: float32[1,9,3], %r: float32[1,9,3]) {\n"
		"	%zero = const int64[1] {0}\n	%one = const int64[1] {1}\n	%two = const int64[1] {2}\n"
		"	%a = Slice(%past, %zero, %one, %zero)\n	%b = Slice(%past, %one, %two, %zero)\n"
		"	%u, %h = GRU(%x, %w, %r, _, _, %a) {hidden_size = 3}\n"
		"	%y, %k = GRU(%h, %w, %r, _, _, %b) {hidden_size = 3}\n"
		"	%next = Concat(%h, %k) {axis = 0}\n"
		"	ret %y, %next to %past\n"
		"}\n", 1, 3, declared);
}

/* The old state is read after the new one is made: it stays. */
static void
what_is_read_later_stays(void)
{
	static const char body[] = "^main(%cache: float32[1,2,4,3], %new: float32[1,2,1,3], %at: int64[1]) {\n"
		"	%next = TensorScatter(%cache, %new, %at)\n"
		"	%y = Sub(%next, %cache)\n"
		"	ret %y, %next\n"
		"}\n";
	bench b;

	CU_ASSERT(start(&b, body, PLANNED));
	for (uint32_t k = 0; b.e && k < b.p->plan->nalias; k++)
		CU_ASSERT(strcmp(b.p->values[b.p->plan->alias[k].value]->name, "next") != 0);
	bench_close(&b);
}

/* An input that no output replaces is gone after the run: the next one does not go on with what is there. */
static void
what_is_consumed_is_given_again(void)
{
	float x[4] = {1, 2, 3, 4}, w[4] = {1, 1, 1, 1};
	const om_tensor first = {.type = OM_FLOAT32, .shape = {.rank = 1, .dim = {4}}, .data = x};
	const om_tensor second = {.type = OM_FLOAT32, .shape = {.rank = 1, .dim = {4}}, .data = w};
	bench b;

	CU_ASSERT_FATAL(start(&b, "^main(%x: float32[4], %w: float32[4]) {\n\t%y = Add(%x, %w)\n\tret %y\n}\n", PLANNED));
	CU_ASSERT_EQUAL_FATAL(b.p->plan->nalias, 1);
	CU_ASSERT_EQUAL(b.p->plan->alias[0].kind, OM_ALIAS_CONSUME);
	CU_ASSERT_EQUAL(om_exec_input(b.e, 0, &first), OM_OK);
	CU_ASSERT_EQUAL(om_exec_input(b.e, 1, &second), OM_OK);
	CU_ASSERT_EQUAL(om_exec_run(b.e), OM_OK);
	CU_ASSERT_EQUAL(x[3], 5);
	CU_ASSERT_EQUAL(om_exec_run(b.e), OM_RUN);
	CU_ASSERT_STRING_EQUAL(om_message(b.s), "input x has to be given again: the last run computed an output in its memory");
	CU_ASSERT_EQUAL(om_exec_input(b.e, 0, &first), OM_OK);
	CU_ASSERT_EQUAL(om_exec_run(b.e), OM_OK);
	CU_ASSERT_EQUAL(x[3], 6);
	bench_close(&b);
}

static CU_TestInfo state_tests[] = {
	{"caches are written where they are", caches_are_written_where_they_are},
	{"caches with room grow in place", caches_with_room_grow_in_place},
	{"linear attention learns in place", linear_attention_learns_in_place},
	{"convolutions go on in place", convolutions_go_on_in_place},
	{"layers go on in place", layers_go_on_in_place},
	{"windows move on in place", windows_move_on_in_place},
	{"states of layers are joined in place", states_of_layers_are_joined_in_place},
	{"what is read later stays", what_is_read_later_stays},
	{"what is consumed is given again", what_is_consumed_is_given_again},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("states", state_tests);
