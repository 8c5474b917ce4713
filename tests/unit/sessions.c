/* SPDX-License-Identifier: Apache-2.0 */
/* What a function tells is told in the session of its caller, whatever session the program was read with. */
#include <config.h>

#include <string.h>

#include "onnxmem/autodiff.h"
#include "opset/opset_convert.h"
#include "tests/bind.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "base/progress.h"
#include "exec/runnable.h"
#include "opdef/op_context.h"

/* The program is read in one session, which is told "untouched", and asked in another. */
struct two {
	om_session *reader, *caller;
	om_prog *p;
};

static const char chain[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[n,4]) {\n"
	"	%a = Relu(%x)\n"
	"	%b = Transpose(%a)\n"
	"	%y = MatMul(%a, %b)\n"
	"	ret %y\n"
	"}\n";

static bool
two_read(struct two *t, const char *text)
{
	*t = (struct two){.reader = om_session_new(), .caller = om_session_new()};
	const bool ok = text_parse(t->reader, text, &t->p) == OM_OK;
	om_fail(t->reader, OM_USAGE, "untouched");
	return ok;
}

/* Planned, too: the host has a session of its own, which is the reader's. */
static bool
two_plan(struct two *t)
{
	if (!two_read(t, chain) || bind_dim(t->caller, t->p, "n", 2) != OM_OK)
		return false;
	om_host *h = om_host_new(t->reader, NULL);
	const om_status st = om_host_run(h, t->p, om_default_pipeline());
	om_host_free(h);
	om_fail(t->reader, OM_USAGE, "untouched");
	return st == OM_OK;
}

static void
two_free(struct two *t)
{
	om_prog_free(t->p);
	om_session_free(t->caller);
	om_session_free(t->reader);
}

/* The caller was told `what`, the reader nothing; both forget it. */
static bool
was_told(struct two *t, const char *what)
{
	const bool is_right = strstr(om_message(t->caller), what) && strcmp(om_message(t->reader), "untouched") == 0;

	if (!is_right)
		printf("wanted \"%s\" in the caller's session: it has \"%s\", the reader's \"%s\"\n", what,
			om_message(t->caller), om_message(t->reader));
	om_fail(t->caller, OM_USAGE, "nothing yet");
	om_fail(t->reader, OM_USAGE, "untouched");
	return is_right;
}

static void
an_executor_tells_its_caller(void)
{
	struct two t;
	om_exec *e = NULL;

	CU_ASSERT_FATAL(two_read(&t, "program \"t\" ir 8 opset 17\n"
		"^g(%x: float32[2]) {\n\t%y = Frob(%x)\n\tret %y\n}\n"));
	t.p->has |= OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST;
	const om_exec_options o = OM_EXEC_OPTIONS(.no_reuse = true);
	CU_ASSERT_EQUAL(om_exec_new(t.caller, t.p, NULL, &o, &e), OM_UNSUPPORTED);
	CU_ASSERT_PTR_NULL(e);
	CU_ASSERT(was_told(&t, "Frob"));
	CU_ASSERT_EQUAL(om_prog_is_runnable(t.caller, t.p), OM_UNSUPPORTED);
	CU_ASSERT(was_told(&t, "Frob"));
	two_free(&t);
}

static void
a_wrong_plan_is_told_to_the_caller(void)
{
	struct two t;
	om_exec *e = NULL;

	CU_ASSERT_FATAL(two_plan(&t));
	om_plan wrong = *t.p->plan;
	wrong.arena[0].bytes = 8;
	CU_ASSERT_EQUAL(om_plan_verify(t.caller, t.p, &wrong), OM_BADPLAN);
	CU_ASSERT(was_told(&t, "arena"));
	CU_ASSERT_EQUAL(om_exec_new(t.caller, t.p, &wrong, NULL, &e), OM_BADPLAN);
	CU_ASSERT(was_told(&t, "arena"));
	two_free(&t);
}

static void
questions_about_a_program_are_answered_to_the_caller(void)
{
	struct two t;
	om_backward b = OM_BACKWARD();

	CU_ASSERT_FATAL(two_read(&t, chain));
	CU_ASSERT_EQUAL(bind_dim(t.caller, t.p, "batch", 2), OM_USAGE);
	CU_ASSERT(was_told(&t, "no dim of the model is called batch"));
	CU_ASSERT_EQUAL(bind_rest(t.caller, t.p, 0), OM_SHAPE);
	CU_ASSERT(was_told(&t, "n is open"));
	CU_ASSERT_EQUAL(om_prog_convert_opset(t.caller, t.p, 9999, NULL), OM_USAGE);
	CU_ASSERT(was_told(&t, "9999"));
	b.loss = t.p->first->result[0];
	CU_ASSERT_EQUAL(om_prog_backward(t.caller, t.p, &b), OM_SHAPE);
	CU_ASSERT(was_told(&t, "cannot be a loss"));
	t.p->values[0]->id = 7;
	CU_ASSERT_EQUAL(om_verify(t.caller, t.p), OM_IR);
	CU_ASSERT(was_told(&t, "its id is 7"));
	two_free(&t);
}

static void
shapes_tell_the_caller(void)
{
	struct two t;

	CU_ASSERT_FATAL(two_read(&t, "program \"t\" ir 8 opset 17\n"
		"^g(%x: float32[2,3], %z: float32[2,3]) {\n\t%y = MatMul(%x, %z)\n\tret %y\n}\n"));
	CU_ASSERT_EQUAL(om_block_infer(t.caller, t.p, t.p->first), OM_SHAPE);
	CU_ASSERT(was_told(&t, "MatMul"));
	two_free(&t);
}

/* The structs that callers allocate have sizes, and one that no version had is refused. */
static void
options_have_sizes(void)
{
	struct two t;
	om_exec *e = NULL;
	om_exec_options o = OM_EXEC_OPTIONS(.no_reuse = true);
	om_backward b = OM_BACKWARD();
	om_train_options l = OM_TRAIN_OPTIONS;
	om_problem p = OM_PROBLEM();

	CU_ASSERT_FATAL(two_plan(&t));
	o.size = 0;
	CU_ASSERT_EQUAL(om_exec_new(t.caller, t.p, t.p->plan, &o, &e), OM_USAGE);
	CU_ASSERT(was_told(&t, "om_exec_options has size 0, and this library expects"));
	CU_ASSERT_PTR_NULL(e);
	b.size++;
	CU_ASSERT_EQUAL(om_prog_backward(t.caller, t.p, &b), OM_USAGE);
	CU_ASSERT(was_told(&t, "initialize it with OM_BACKWARD()"));
	l.size = 8;
	CU_ASSERT_EQUAL(om_prog_add_training_step(t.caller, t.p, &l), OM_USAGE);
	CU_ASSERT(was_told(&t, "om_train_options has size 8"));
	p.size = sizeof p + 8;
	CU_ASSERT_EQUAL(om_pack_solve(t.caller, &p), OM_USAGE);
	CU_ASSERT(was_told(&t, "initialize it with OM_PROBLEM()"));
	CU_ASSERT_EQUAL(om_pack_check_problem(t.caller, &p), OM_USAGE);
	two_free(&t);
}

/* Without a session there is a status, and no message. */
static void
no_session_is_a_session(void)
{
	struct two t;

	CU_ASSERT_FATAL(two_read(&t, chain));
	CU_ASSERT_EQUAL(bind_dim(NULL, t.p, "batch", 2), OM_USAGE);
	CU_ASSERT_EQUAL(om_note(NULL, OM_USAGE, "asking"), OM_USAGE);
	om_warn(NULL, "nothing");
	om_info(NULL, "nothing");
	om_report_progress(NULL, "nothing", 1, 1);
	CU_ASSERT(was_told(&t, ""));
	two_free(&t);
}

/* What is stopped before it starts ends at the first op. */
static void
a_run_is_stopped(void)
{
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, bench_model(&b, "trained.onnx")));
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, om_default_pipeline())));
	CU_ASSERT_FATAL(is_ok(b.s, bench_exec(&b, &ways[PLANNED])));
	const om_value *v = b.p->first->param[0];
	const om_tensor zero = tensor_zero(b.mem, v->type.elem, &v->shape);
	CU_ASSERT_FALSE(om_session_is_stopped(b.s));
	om_session_stop(b.s, true);
	CU_ASSERT(om_session_is_stopped(b.s));
	CU_ASSERT(is_told(b.s, bench_run(&b, &zero, 1), OM_STOPPED, "stopped"));
	om_session_stop(b.s, false);
	CU_ASSERT(is_ok(b.s, bench_run(&b, &zero, 1)));
	CU_ASSERT_FALSE(om_session_is_stopped(NULL));
	bench_close(&b);
}

enum { NGRAPH = 100 };

/* The height of a packing by pairs of a random graph. */
static uint64_t
pack_graph(om_session *s)
{
	static om_buffer buf[NGRAPH];
	static uint32_t pair[NGRAPH * NGRAPH][2];
	om_pool pool = {0};
	om_problem p = OM_PROBLEM(.buf = buf, .n = NGRAPH, .pool = &pool, .npool = 1, .by_pairs = true, .pair = (const uint32_t (*)[2])pair);
	uint32_t x = 1;

	for (uint32_t i = 0; i < NGRAPH; i++) {
		buf[i] = (om_buffer){.bytes = 1 + (i * 37) % 101, .fixed = OM_OFFSET_FREE};
		for (uint32_t k = 0; k < i; k++) {
			x = x * 1664525 + 1013904223;
			pair[p.npair][0] = i;
			pair[p.npair][1] = k;
			p.npair += x >> 31;
		}
	}
	CU_ASSERT(is_ok(s, om_pack_solve(s, &p)));
	CU_ASSERT(is_ok(s, om_pack_check_problem(s, &p)));
	return pool.result.height;
}

/* A stopped search has a valid result, which is not as good as that of one that went on. */
static void
a_search_is_stopped(void)
{
	om_session *s = om_session_new();

	om_session_stop(s, true);
	const uint64_t stopped = pack_graph(s);
	om_session_stop(s, false);
	CU_ASSERT(pack_graph(s) < stopped);
	om_session_free(s);
}

static CU_TestInfo tests[] = {
	{"an executor tells its caller", an_executor_tells_its_caller},
	{"a wrong plan is told to the caller", a_wrong_plan_is_told_to_the_caller},
	{"questions about a program are answered to the caller", questions_about_a_program_are_answered_to_the_caller},
	{"shapes tell the caller", shapes_tell_the_caller},
	{"options have sizes", options_have_sizes},
	{"no session is a session", no_session_is_a_session},
	{"a run is stopped", a_run_is_stopped},
	{"a search is stopped", a_search_is_stopped},
	CU_TEST_INFO_NULL
};

UNIT_SUITE("sessions", tests);
