/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients in one op against those in standard operators, on random shapes: planned, poisoned, and
 * without a plan. */
#include <config.h>

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "onnxmem/autodiff.h"
#include "tests/fixtures.h"
#include "drawn_text.h"
#include "unit.h"
#include "base/arena_internal.h"

enum { MOST = 4, CASES = 60 };

struct trial {
	bench b;
	om_value *grad[MOST];
	uint32_t n;
};

static double
wave(uint32_t k, int64_t i)
{
	return sin(1.0 + (double)i * 1.7 + k) + 0.05;
}

static unsigned
fused_ops(const struct trial *t)
{
	unsigned n = 0;

	for (const om_op *op = t->b.p->first->first; op; op = op->next)
		n += op->opdef && op->opdef->flags & OM_IMPLEMENTS_FUNCTION;
	return n;
}

/* The gradients of the only result by all inputs, as results. */
static om_status
start(struct trial *t, const char *text, bool functions, int way)
{
	om_tensor in[MOST];

	*t = (struct trial){.b = bench_open()};
	OM_TRY(bench_plan(&t->b, text, "inline,shapes"));
	om_block *b = t->b.p->first;
	t->n = b->nparam;
	om_backward w = OM_BACKWARD(.loss = b->result[0], .wrt = b->param, .nwrt = t->n, .grad = t->grad, .functions = functions);
	OM_TRY(om_prog_backward(t->b.s, t->b.p, &w));
	for (uint32_t k = 0; k < t->n; k++)
		if (t->grad[k])
			om_block_add_result(b, t->grad[k]);
	OM_TRY(om_verify(t->b.s, t->b.p));
	OM_TRY(om_host_run(t->b.h, t->b.p, "inline,shapes,fold,prune,schedule=min-memory,liveness,views,inplace,pack"));
	OM_TRY(bench_exec(&t->b, &ways[way]));
	for (uint32_t k = 0; k < t->n; k++) {
		in[k] = tensor_zero(t->b.mem, b->param[k]->type.elem, &b->param[k]->shape);
		for (int64_t i = 0; i < om_shape_count(&in[k].shape); i++)
			set_element(&in[k], i, wave(k, i));
	}
	return bench_run(&t->b, in, t->n);
}

static bool
agree(const om_tensor *a, const om_tensor *b)
{
	const double part = a->type == OM_FLOAT32 ? 2e-5 : 1e-12;
	double most = 1, far = 0;

	if (a->type != b->type || !om_shape_equal(&a->shape, &b->shape))
		return false;
	for (int64_t i = 0; i < om_shape_count(&a->shape); i++) {
		most = fmax(most, fabs(element_at(a, i)));
		far = fmax(far, fabs(element_at(a, i) - element_at(b, i)));
	}
	return far <= part * most;
}

/* `want`: how many ops are fused. */
static void
check(const char *text, unsigned want)
{
	struct trial plain, t;
	bool good = true;

	om_status st = start(&plain, text, false, SEPARATE);
	is_ok(plain.b.s, st);
	for (int w = 0; st == OM_OK && w < NWAY; w++) {
		st = start(&t, text, true, w);
		is_ok(t.b.s, st);
		good = good && st == OM_OK && fused_ops(&t) == want;
		for (uint32_t k = 0; good && k < plain.b.p->first->nresult; k++)
			good = agree(om_exec_result(plain.b.e, k), om_exec_result(t.b.e, k));
		bench_close(&t.b);
	}
	if (!good || st != OM_OK)
		printf("# %s", text);
	CU_ASSERT(good && st == OM_OK);
	bench_close(&plain.b);
}

/* ---- Convolutions. ---- */

static int64_t
between(uint64_t *dice, int64_t least, int64_t most)
{
	return least + (int64_t)om_rng_below(dice, (uint64_t)(most - least + 1));
}

static void
say_list(struct unit_text *t, const char *name, int n, const int64_t *v)
{
	unit_say(t, ", %s = [", name);
	for (int k = 0; k < n; k++)
		unit_say(t, "%s%lld", k ? ", " : "", (long long)v[k]);
	unit_say(t, "]");
}

static void
say_dims(struct unit_text *t, const char *name, const char *type, int64_t a, int64_t b, int n, const int64_t *image)
{
	unit_say(t, "%%%s: %s[%lld,%lld", name, type, (long long)a, (long long)b);
	for (int k = 0; k < n; k++)
		unit_say(t, ",%lld", (long long)image[k]);
	unit_say(t, "]");
}

/* What slides over the image, and an image that it fits into. */
struct window {
	int n;
	int64_t image[3], kernel[3], stride[3], dilation[3], pads[6];
};

/* `seen`: every window sees so many elements at least along each axis. */
static struct window
window_draw(uint64_t *dice, int n, int64_t seen, int64_t room)
{
	struct window w = {.n = n};

	for (int k = 0; k < n; k++) {
		w.kernel[k] = between(dice, 1, 3);
		w.stride[k] = between(dice, 1, 3);
		w.dilation[k] = between(dice, 1, 2);
		const int64_t span = (w.kernel[k] - 1) * w.dilation[k] + 1;
		const int64_t most = seen ? w.kernel[k] - seen : span - 1;
		w.pads[k] = between(dice, 0, most);
		w.pads[n + k] = between(dice, 0, most);
		w.image[k] = span + between(dice, 0, room);
	}
	return w;
}

static void
say_window(struct unit_text *t, const struct window *w)
{
	say_list(t, "strides", w->n, w->stride);
	say_list(t, "dilations", w->n, w->dilation);
	say_list(t, "pads", 2 * w->n, w->pads);
}

static void
convolution(uint64_t *dice, unsigned number)
{
	const char *type = number % 3 == 2 ? "float64" : "float32";
	const int n = (int)between(dice, 1, 3), groups[] = {1, 1, 2, 3, 5};
	const int64_t group = groups[om_rng_below(dice, 5)], kin = between(dice, 1, 4), kout = between(dice, 1, 4);
	const int64_t batch = between(dice, 0, 3);
	const struct window w = window_draw(dice, n, 0, n == 1 ? 300 : 20 / n);
	struct unit_text t = {.n = 0};

	unit_say(&t, "program \"t\" ir 8 opset 17\n^main(");
	say_dims(&t, "x", type, batch, group * kin, n, w.image);
	unit_say(&t, ", ");
	say_dims(&t, "w", type, group * kout, kin, n, w.kernel);
	unit_say(&t, ", %%b: %s[%lld]) {\n\t%%y = Conv(%%x, %%w%s) {group = %lld", type, (long long)(group * kout),
		number % 2 ? ", %b" : "", (long long)group);
	say_window(&t, &w);
	unit_say(&t, "}\n\t%%q = Mul(%%y, %%y)\n\t%%z = ReduceSum(%%q) {keepdims = 0}\n\tret %%z\n}\n");
	check(t.at, 1);
}

static void
of_convolutions(void)
{
	uint64_t dice = 1;

	for (unsigned k = 0; k < CASES; k++)
		convolution(&dice, k);
}

/* Parts of the columns in several pieces, of several images and of one. */
static void
of_large_convolutions(void)
{
	check("program \"t\" ir 8 opset 17\n^main(%x: float32[3,50,12,11], %w: float32[40,50,3,3]) {\n"
		"	%y = Conv(%x, %w) {pads = [1, 1, 1, 1]}\n	%z = ReduceMean(%y) {keepdims = 0}\n	ret %z\n}\n", 1);
	check("program \"t\" ir 8 opset 17\n^main(%x: float32[2,3,40,40], %w: float32[7,3,5,5]) {\n"
		"	%y = Conv(%x, %w) {strides = [2, 2]}\n	%q = Mul(%y, %y)\n	%z = ReduceMean(%q) {keepdims = 0}\n	ret %z\n}\n", 1);
	check("program \"t\" ir 8 opset 17\n^main(%x: float32[2,70,9,9], %w: float32[33,70,1,1], %b: float32[33]) {\n"
		"	%y = Conv(%x, %w, %b) {auto_pad = \"SAME_LOWER\"}\n	%q = Mul(%y, %y)\n	%z = ReduceMean(%q) {keepdims = 0}\n"
		"	ret %z\n}\n", 1);
	check("program \"t\" ir 8 opset 17\n^main(%x: float32[2,6,30,33], %w: float32[6,1,3,3]) {\n"
		"	%y = Conv(%x, %w) {group = 6, pads = [1, 1, 1, 1]}\n	%q = Mul(%y, %y)\n	%z = ReduceMean(%q) {keepdims = 0}\n"
		"	ret %z\n}\n", 1);
}

static void
pool(uint64_t *dice, unsigned number)
{
	const char *type = number % 3 == 2 ? "float64" : "float32";
	const int n = (int)between(dice, 1, 3);
	const int64_t batch = between(dice, 0, 2), channels = between(dice, 1, 3);
	const struct window w = window_draw(dice, n, 1, 6);
	struct unit_text t = {.n = 0};

	unit_say(&t, "program \"t\" ir 8 opset 17\n^main(");
	say_dims(&t, "x", type, batch, channels, n, w.image);
	unit_say(&t, ") {\n\t%%y%s = MaxPool(%%x) {ceil_mode = %d, storage_order = %d", number % 2 ? ", %i" : "",
		(int)between(dice, 0, 1), (int)between(dice, 0, 1));
	say_list(&t, "kernel_shape", n, w.kernel);
	say_window(&t, &w);
	unit_say(&t, "}\n\t%%q = Mul(%%y, %%y)\n\t%%z = ReduceSum(%%q) {keepdims = 0}\n\tret %%z\n}\n");
	check(t.at, 1);
}

static void
of_pools(void)
{
	uint64_t dice = 2;

	for (unsigned k = 0; k < CASES; k++)
		pool(&dice, k);
}

static void
of_batches(void)
{
	static const char *const shape[] = {"[2,3]", "[1,2,1]", "[3,2,7]", "[2,5,4,9]", "[2,1,3,2,4]", "[4,3,17,5]"};
	static const int channels[] = {3, 2, 2, 5, 1, 3};
	char text[1024];

	for (unsigned k = 0; k < 4 * sizeof shape / sizeof shape[0]; k++) {
		const char *type = k % 2 ? "float64" : "float32", *x = shape[k / 4];
		const int c = channels[k / 4];
		snprintf(text, sizeof text, "program \"t\" ir 8 opset 17\n^main(%%x: %s%s, %%s: %s[%d], %%b: %s[%d]) {\n"
			"	%%m = Add(%%b, %%b)\n	%%v = Abs(%%m)\n"
			"	%%y%s = BatchNormalization(%%x, %%s, %%b, %%m, %%v) {training_mode = 1, epsilon = 0.01}\n"
			"	%%t = Tanh(%%y)\n	%%q = Mul(%%t, %%x)\n	%%z = ReduceSum(%%q) {keepdims = 0}\n	ret %%z\n}\n",
			type, x, type, c, type, c, k % 4 < 2 ? "" : ", %n, %o");
		check(text, 1);
	}
	/* What flows into the running numbers, and what old numbers are used for, takes the plain form. */
	check("program \"t\" ir 8 opset 17\n^main(%x: float32[4,3,2], %s: float32[3]) {\n"
		"	%m = Mul(%s, %s)\n	%y, %n, %o = BatchNormalization(%x, %s, %s, %m, %m) {training_mode = 1}\n"
		"	%q = ReduceSum(%y) {keepdims = 0}\n	%r = ReduceSum(%o) {keepdims = 0}\n	%z = Mul(%q, %r)\n	ret %z\n}\n", 0);
	check("program \"t\" ir 8 opset 17\n^main(%x: float32[4,3,2], %s: float32[3]) {\n"
		"	%m = Mul(%s, %s)\n	%y = BatchNormalization(%x, %s, %s, %m, %m)\n"
		"	%q = Mul(%y, %y)\n	%z = ReduceSum(%q) {keepdims = 0}\n	ret %z\n}\n", 0);
}

/* Only some are wanted, a value is wanted twice, two ops share a function. */
static void
of_what_is_wanted(void)
{
	check("program \"t\" ir 8 opset 17\n^main(%x: float32[2,3,5]) {\n"
		"	%w = const float32[2,3,2] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
		"	%y = Conv(%x, %w)\n	%q = Mul(%y, %y)\n	%z = ReduceSum(%q) {keepdims = 0}\n	ret %z\n}\n", 1);
	check("program \"t\" ir 8 opset 17\n^main(%x: float64[2,2,2]) {\n"
		"	%y = Conv(%x, %x) {pads = [1, 1]}\n	%q = Mul(%y, %y)\n	%z = ReduceSum(%q) {keepdims = 0}\n	ret %z\n}\n", 1);
	check("program \"t\" ir 8 opset 17\n^main(%x: float32[1,2,7], %w: float32[2,2,3], %v: float32[2,2,3]) {\n"
		"	%a = Conv(%x, %w) {pads = [1, 1]}\n	%y = Conv(%a, %v) {pads = [1, 1]}\n	%q = Mul(%y, %a)\n"
		"	%z = ReduceSum(%q) {keepdims = 0}\n	ret %z\n}\n", 2);
}

static void
in_bodies(void)
{
	check("program \"t\" ir 8 opset 17\n^main(%x: float32[1,2,6], %w: float32[2,2,3]) {\n"
		"	%n = const int64[] {3}\n"
		"	%y = Loop(%n, _, %x) {body = ^b(%i: int64[], %c: bool[], %h: float32[1,2,6]) {\n"
		"		%go = Identity(%c)\n"
		"		%s = Conv(%h, %w) {pads = [1, 1]}\n"
		"		%g = Tanh(%s)\n"
		"		ret %go, %g\n"
		"	}}\n"
		"	%q = Mul(%y, %y)\n	%z = ReduceSum(%q) {keepdims = 0}\n	ret %z\n}\n", 0);
}

static CU_TestInfo gradfused_tests[] = {
	{"of convolutions", of_convolutions},
	{"of large convolutions", of_large_convolutions},
	{"of pools", of_pools},
	{"of batches", of_batches},
	{"of what is wanted", of_what_is_wanted},
	{"in bodies", in_bodies},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("gradients in one op", gradfused_tests);
