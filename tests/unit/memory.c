/* SPDX-License-Identifier: Apache-2.0 */
/* Running out of memory, at every place where memory is taken: a status, never a crash, and, as the
 * address sanitizer says, nothing is lost. */
#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/exec_internal.h"
#include "onnxmem/autodiff.h"
#include "onnxmem/plan.h"
#include "tests/bind.h"
#include "tests/fixtures.h"
#include "memory_walk.h"
#include "unit.h"
#include "base/arena_internal.h"
#include "base/memory_limit.h"
#include "opdef/op_context.h"

/* The `left`-th request and, unless `once`, all after it are refused. */
struct meter {
	uint64_t asked, left, bytes;
	bool once;
};

static bool
allows(void *arg, size_t n)
{
	struct meter *m = arg;
	const uint64_t k = m->asked++;

	m->bytes += n;
	return m->once ? k != m->left : k < m->left;
}

static const char loop[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[2,3], %c: bool[]) {\n"
	"	%w = const float32[3,3] {1.0, 2.0, 0.5, -1.0, 0.25, 1.5, 2.0, -0.5, 1.0}\n"
	"	%n = const int64[] {5}\n"
	"	%go = const bool[] {1}\n"
	"	%wt = Transpose(%w)\n"
	"	%xw = MatMul(%x, %wt)\n"
	"	%s = Softmax(%xw)\n"
	"	%last, %all = Loop(%n, %go, %s) {body = ^body(%i: int64[], %g: bool[], %a: float32[2,3]) {\n"
	"		%m = MatMul(%a, %w)\n"
	"		%u = Add(%m, %x)\n"
	"		ret %g, %u, %m\n"
	"	}}\n"
	"	%b = If(%c) {else_branch = ^no() {\n"
	"		%f = Neg(%last)\n"
	"		ret %f\n"
	"	}, then_branch = ^yes() {\n"
	"		%h = Mul(%s, %last)\n"
	"		ret %h\n"
	"	}}\n"
	"	%q = SequenceConstruct(%b, %s)\n"
	"	%y = ConcatFromSequence(%q) {axis = 0}\n"
	"	ret %y, %all\n"
	"}\n";

static om_status
run_program(om_session *s, const om_prog *p)
{
	static const float x[6] = {1, 2, 3, 4, 5, 6};
	static const bool c = true;
	const om_tensor in[2] = {
		{.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){2, 3}), .data = (void *)x},
		{.type = OM_BOOL, .shape = om_shape_of(0, NULL), .data = (void *)&c},
	};
	const om_exec_options o = OM_EXEC_OPTIONS(.poison = true);
	om_exec *e;

	OM_TRY(om_exec_new(s, p, p->plan, &o, &e));
	om_status st = om_exec_input(e, 0, &in[0]);
	if (st == OM_OK && p->first->nparam > 1)
		st = om_exec_input(e, 1, &in[1]);
	for (int k = 0; k < 2 && st == OM_OK; k++)
		st = om_exec_run(e);
	om_exec_free(e);
	return st;
}

static om_status
plan_program(om_session *s, om_prog *p, uint64_t align)
{
	om_host *own = om_host_new(s, NULL);
	om_status st = own ? om_host_request(own, &(om_plan_request)OM_PLAN_REQUEST(.align = align)) : OM_MEMORY;

	if (st == OM_OK)
		st = om_host_run(own, p, om_default_pipeline());
	om_host_free(own);
	if (st == OM_OK)
		st = om_verify(s, p);
	return st == OM_OK ? om_plan_verify(s, p, p->plan) : st;
}

static om_status
parse_plan_run(om_session *s)
{
	om_prog *p = NULL;
	om_status st = text_parse(s, loop, &p);

	if (st == OM_OK)
		st = plan_program(s, p, 0);
	if (st == OM_OK)
		st = run_program(s, p);
	om_prog_free(p);
	return st;
}

/* With branches, a loop and external data; saved with its plan, and read again. */
static om_status
load_plan_save(om_session *s, const char *file)
{
	const char *srcdir = getenv("srcdir");
	char path[512], copy[64];
	om_model *m = NULL;
	om_prog *p = NULL, *again = NULL;

	snprintf(path, sizeof path, "%s/models/%s", srcdir ? srcdir : ".", file);
	snprintf(copy, sizeof copy, "memory-%ld.onnx", (long)getpid());
	om_status st = om_model_load(s, path, &m);
	if (st == OM_OK)
		st = om_model_import(s, m, &p);
	if (st == OM_OK)
		st = bind_rest(s, p, 2);
	if (st == OM_OK)
		st = plan_program(s, p, 0);
	if (st == OM_OK)
		st = om_model_annotate(s, m, p, OM_ANNOTATE_MODEL | OM_ANNOTATE_AUTO);
	if (st == OM_OK)
		st = om_model_save(s, m, copy);
	if (st == OM_OK)
		st = om_model_import(s, m, &again);
	if (st == OM_OK)
		st = om_model_read_plan(s, m, again, NULL);
	om_prog_free(again);
	om_prog_free(p);
	om_model_free(m);
	unlink(copy);
	return st;
}

static om_status
load_branches(om_session *s)
{
	return load_plan_save(s, "branches.onnx");
}

static om_status
learn(om_session *s)
{
	om_prog *p = NULL;
	om_train_options l = OM_TRAIN_OPTIONS;
	om_status st = text_parse(s, "program \"t\" ir 8 opset 17\n"
		"^g(%x: float32[2,3]) {\n"
		"	%w = const float32[3,3] {1.0, 2.0, 0.5, -1.0, 0.25, 1.5, 2.0, -0.5, 1.0}\n"
		"	%m = MatMul(%x, %w)\n"
		"	%y = Softmax(%m)\n"
		"	ret %y\n"
		"}\n", &p);

	if (st == OM_OK)
		st = om_block_infer(s, p, p->first);
	if (p)
		p->has |= OM_HAS_INLINE | OM_HAS_SHAPES;
	l.loss_fn = "mse";
	l.optimizer = "adam";
	if (st == OM_OK)
		st = om_prog_add_training_step(s, p, &l);
	om_prog_free(p);
	return st;
}

static om_status
pack_buffers(om_session *s)
{
	om_interval live[24];
	om_buffer buf[24];
	om_pack_result result;

	for (uint32_t k = 0; k < 24; k++) {
		live[k] = (om_interval){k, k + 2 + k % 5, 0, 64 * (1 + k % 7)};
		buf[k] = (om_buffer){.live = &live[k], .nlive = 1, .bytes = 64 * (1 + k % 7), .align = 64,
			.fixed = OM_OFFSET_FREE, .fixed_pool = OM_POOL_ANY};
	}
	OM_TRY(om_pack(s, buf, 24, &result));
	return om_pack_check(s, buf, 24, result.height);
}

/* Steps grow where there are many places, so that the walk ends. */
static void
walk(om_status (*work)(om_session *s), bool once)
{
	om_session *s = om_session_new();
	struct meter all = {.left = UINT64_MAX};

	om_session_memory(s, allows, &all);
	CU_ASSERT_EQUAL(work(s), OM_OK);
	CU_ASSERT(all.asked > 4);
	for (uint64_t k = 0; k < all.asked; k += 1 + k / 64) {
		struct meter m = {.left = k, .once = once};
		om_session_memory(s, allows, &m);
		om_fail(s, OM_USAGE, "nothing yet");
		const om_status st = work(s);
		/* With one refusal a search may be given up, and the plan be another. */
		const bool is_right = st == OM_MEMORY ? strcmp(om_message(s), "nothing yet") != 0 : once && st == OM_OK;
		if (!is_right)
			printf("refusal %llu of %llu: %s (%s)\n", (unsigned long long)k, (unsigned long long)all.asked,
				om_status_text(st), om_message(s));
		CU_ASSERT(is_right);
	}
	om_session_free(s);
}

void
memory_walk(om_status (*work)(om_session *s))
{
	walk(work, false);
	walk(work, true);
}

static void
every_refusal_is_a_status(void)
{
	memory_walk(parse_plan_run);
}

static void
every_refusal_in_files_is_a_status(void)
{
	memory_walk(load_branches);
}

static void
every_refusal_in_learning_is_a_status(void)
{
	memory_walk(learn);
}

static void
every_refusal_in_packing_is_a_status(void)
{
	memory_walk(pack_buffers);
}

/* ---- What om_guarded() promises. ---- */

static void
count(void *arg)
{
	++*(int *)arg;
}

struct guarded {
	om_arena *before;        /* that there was */
	int released;
};

static om_status
take_all(void *arg)
{
	struct guarded *g = arg;
	om_arena *a = om_arena_new(), *b = om_arena_new();

	om_arena_defer(a, count, &g->released);
	om_arena_defer(b, count, &g->released);
	om_arena_free(b);
	om_strdup(g->before, "kept");
	om_allocn(a, SIZE_MAX / 4, 8);
	return OM_OK;
}

static void
a_guard_releases_what_was_made_under_it(void)
{
	om_session *s = om_session_new();
	struct guarded g = {.before = om_arena_new()};

	om_arena_defer(g.before, count, &g.released);
	CU_ASSERT_EQUAL(om_guarded(s, take_all, &g), OM_MEMORY);
	CU_ASSERT_EQUAL(g.released, 2);
	CU_ASSERT(strstr(om_message(s), "memory") != NULL);
	om_arena_clear(g.before);
	CU_ASSERT_EQUAL(g.released, 3);
	om_arena_free(g.before);
	CU_ASSERT_EQUAL(g.released, 3);
	/* Without a guard there is no place to return to. */
	om_arena *a = om_arena_new();
	CU_ASSERT_PTR_NULL(om_allocn(a, SIZE_MAX / 4, 8));
	om_arena_free(a);
	om_session_free(s);
}

/* ---- Alignment. ---- */

static bool
is_at(const void *p, uint64_t align)
{
	return (uintptr_t)p % align == 0;
}

static void
addresses_keep_the_alignment(void)
{
	for (int w = 0; w < NWAY; w++)
		for (uint64_t align = 64; align <= 16384; align *= 16) {
			om_session *s = om_session_new();
			om_prog *p;
			om_exec *e;
			CU_ASSERT_EQUAL_FATAL(text_parse(s, "program \"t\" ir 8 opset 17\n"
				"^g(%x: float32[2,2]) {\n"
				"	%w = const float32[2,2] {1.0, 2.0, 0.5, -1.0}\n"
				"	%a = MatMul(%x, %w)\n"
				"	%y = MatMul(%a, %w)\n"
				"	ret %y, %w\n"
				"}\n", &p), OM_OK);
			CU_ASSERT_EQUAL_FATAL(plan_program(s, p, align), OM_OK);
			CU_ASSERT_EQUAL_FATAL(om_exec_new(s, p, ways[w].no_reuse ? NULL : p->plan, &ways[w], &e), OM_OK);
			const float x[4] = {1, 2, 3, 4};
			const om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){2, 2}), .data = (void *)x};
			CU_ASSERT_EQUAL(om_exec_input(e, 0, &in), OM_OK);
			CU_ASSERT_EQUAL(om_exec_run(e), OM_OK);
			CU_ASSERT(is_at(om_exec_result(e, 0)->data, align));
			for (uint32_t k = 1; k < p->nvalue; k++)  /* 0 is the caller's */
				if (align > 64 || !p->values[k]->is_const)
					CU_ASSERT(is_at(e->slot[k].data, align));
			om_exec_free(e);
			om_prog_free(p);
			om_session_free(s);
		}
}

/* ---- Planning takes memory for the program, not for its tensors. ---- */

static bool
is_small(void *arg, size_t n)
{
	(void)arg;
	return n < (size_t)1 << 24;
}

static void
tables_of_kernels_are_not_built_by_planning(void)
{
	static const char *const ops[] = {
		"\t%p = const int64[2] {4, 0}\n\t%y = Pad(%x, %p) {mode = \"reflect\"}\n",
		"\t%s = const float32[1] {2.0}\n\t%y = Resize(%x, _, %s) {mode = \"nearest\"}\n",
		"\t%s = const float32[1] {2.0}\n\t%y = Resize(%x, _, %s) {mode = \"linear\"}\n",
	};

	for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
		om_session *s = om_session_new();
		om_prog *p = NULL;
		char text[512];
		om_session_memory(s, is_small, NULL);
		snprintf(text, sizeof text, "program \"t\" ir 8 opset 18\n^g(%%z: float32[1099511627776]) {\n"
			"\t%%x = Neg(%%z)\n%s\tret %%y\n}\n", ops[k]);
		CU_ASSERT_EQUAL_FATAL(text_parse(s, text, &p), OM_OK);
		CU_ASSERT_EQUAL(plan_program(s, p, 0), OM_OK);
		if (*om_message(s))
			printf("%s\n", om_message(s));
		om_prog_free(p);
		om_session_free(s);
	}
}

/* ---- Sequences that grow. ---- */

/* Bytes that a run asks for whose loop appends `n` elements to two sequences. */
static uint64_t
bytes_to_append(int n)
{
	static const float x[6] = {1, 2, 3, 4, 5, 6};
	om_session *s = om_session_new();
	struct meter all = {.left = UINT64_MAX};
	om_prog *p = NULL;
	om_exec *e = NULL;
	char text[1024];

	snprintf(text, sizeof text, "program \"t\" ir 10 opset 18\n^g(%%x: float32[6]) {\n"
		"\t%%n = const int64[] {%d}\n\t%%a = SequenceConstruct(%%x)\n"
		"\t%%b, %%c = Loop(%%n, _, %%a, %%a) {body = ^body(%%i: int64[], %%g: bool[], %%s: seq(float32), %%t: seq(float32)) {\n"
		"\t\t%%u = SequenceInsert(%%s, %%x)\n\t\t%%v = SequenceInsert(%%t, %%x)\n\t\tret %%g, %%u, %%v\n\t}}\n"
		"\t%%y = ConcatFromSequence(%%b) {axis = 0}\n\t%%z = ConcatFromSequence(%%c) {axis = 0}\n\tret %%y, %%z\n}\n", n);
	CU_ASSERT_EQUAL_FATAL(text_parse(s, text, &p), OM_OK);
	CU_ASSERT_EQUAL_FATAL(plan_program(s, p, 0), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_exec_new(s, p, p->plan, NULL, &e), OM_OK);
	const om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(1, (int64_t[]){6}), .data = (void *)x};
	CU_ASSERT_EQUAL(om_exec_input(e, 0, &in), OM_OK);
	om_session_memory(s, allows, &all);
	CU_ASSERT_EQUAL(om_exec_run(e), OM_OK);
	om_session_memory(s, NULL, NULL);
	CU_ASSERT_EQUAL(om_exec_result(e, 0)->shape.dim[0], 6 * (n + 1));
	om_exec_free(e);
	om_prog_free(p);
	om_session_free(s);
	return all.bytes;
}

/* What survives an iteration is copied now and then, not in every one: four times as many cost four times as much. */
static void
appending_takes_constant_memory_each(void)
{
	const uint64_t few = bytes_to_append(1000), many = bytes_to_append(4000);

	printf("# %llu and %llu bytes\n", (unsigned long long)few, (unsigned long long)many);
	CU_ASSERT(few > 0 && many < 7 * few);
}

static CU_TestInfo memory_tests[] = {
	{"every refusal is a status", every_refusal_is_a_status},
	{"every refusal in files is a status", every_refusal_in_files_is_a_status},
	{"every refusal in learning is a status", every_refusal_in_learning_is_a_status},
	{"every refusal in packing is a status", every_refusal_in_packing_is_a_status},
	{"a guard releases what was made under it", a_guard_releases_what_was_made_under_it},
	{"addresses keep the alignment", addresses_keep_the_alignment},
	{"tables of kernels are not built by planning", tables_of_kernels_are_not_built_by_planning},
	{"appending takes constant memory each", appending_takes_constant_memory_each},
	CU_TEST_INFO_NULL
};
UNIT_SUITE("running out of memory", memory_tests);
