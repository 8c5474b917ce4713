/* SPDX-License-Identifier: Apache-2.0 */
/* Raising: no change of an operator is overlooked, and programs compute the same bits. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "../same.h"
#include "base/arena_internal.h"
#include "base/half.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/op_context.h"
#include "library/builtin.h"
#include "opset/convert.h"
#include "tests/bind.h"
#include "tests/fixtures.h"
#include "unit.h"

/* ---- The table. ---- */

static bool
has_rule(const char *type, int since)
{
	const om_conversion_rule *rule = om_conversion_rule_next(type, since - 1, since);

	return rule && rule->since == since;
}

static bool
is_standard(const om_opdef *row)
{
	return !row->domain || !*row->domain;
}

/* Two versions side by side whose rows differ have a rule between them. */
static void
rules_are_whole(void)
{
	for (const om_opdef *row = om_opdef_next(NULL); row; row = om_opdef_next(row)) {
		const om_opdef *next = row->until ? om_builtin.find("", row->name, row->until + 1) : NULL;
		if (!is_standard(row) || !next || next->since > OM_CONVERT_NEWEST || om_conversion_is_equivalent(row, next))
			continue;
		if (!has_rule(row->name, next->since)) {
			printf("# %s has no rule for version %d\n", row->name, next->since);
			CU_FAIL("a change is overlooked");
		}
	}
}

/* Rules stand by version, and none is for an operator that is not there. */
static void
rules_are_real(void)
{
	for (const om_opdef *row = om_opdef_next(NULL); row; row = om_opdef_next(row)) {
		const om_conversion_rule *rule;
		int version = 0;
		while (is_standard(row) && (rule = om_conversion_rule_next(row->name, version, OM_CONVERT_NEWEST))) {
			CU_ASSERT_TRUE_FATAL(rule->since > version);
			CU_ASSERT_PTR_NOT_NULL(om_builtin.find("", rule->type, rule->since - 1) ? row
				: om_builtin.find("", rule->type, rule->since));
			version = rule->since;
		}
	}
}

/* ---- Programs. ---- */

enum { PARAMS = 6, DIM = 3 };

static bench
trial_of(const char *head, const char *body)
{
	bench t = bench_open();

	CU_ASSERT_FATAL(is_ok(t.s, bench_read(&t, om_printf(t.mem, "program \"\" %s\n%s", head, body))));
	return t;
}

static om_status
compute(bench *t, const char *passes)
{
	om_tensor in[PARAMS];

	OM_TRY(om_host_run(t->h, t->p, passes));
	OM_TRY(om_verify(t->s, t->p));
	OM_TRY(bind_rest(t->s, t->p, DIM));
	OM_TRY(om_host_run(t->h, t->p, "shapes,fold"));
	OM_TRY(bench_exec(t, &ways[SEPARATE]));
	for (uint32_t k = 0; k < t->p->first->nparam; k++) {
		in[k] = tensor_zero(t->mem, om_type_elem(&t->p->first->param[k]->type), &t->p->first->param[k]->shape);
		for (int64_t i = 0; i < om_shape_count(&in[k].shape); i++)
			set_element(&in[k], i, in[k].type == OM_FLOAT64 || in[k].type == OM_FLOAT16 || in[k].type == OM_FLOAT32
				? (float)(((i + 1) * 40503 + k * 977) % 1009) / 504 - 1 : i % 2);
	}
	return bench_run(t, in, t->p->first->nparam);
}

static void
compare(const char *head, const char *body, int opset)
{
	bench a = trial_of(head, body), b = trial_of(head, body);
	const om_status was = compute(&a, "inline"), is = compute(&b, om_printf(b.mem, "convert-opset=%d", opset));

	if (was != OM_OK || is != OM_OK)
		printf("# %s %s: %s\n", head, body, om_message(was ? a.s : b.s));
	CU_ASSERT_EQUAL(was, OM_OK);
	CU_ASSERT_EQUAL(is, OM_OK);
	CU_ASSERT_EQUAL(om_opset_version(b.p, ""), opset);
	for (uint32_t k = 0; was == OM_OK && is == OM_OK && k < a.p->first->nresult; k++) {
		const bool same = same_tensors(om_exec_result(a.e, k), om_exec_result(b.e, k));
		if (!same)
			printf("# %s %s to %d: result %u is another\n", head, body, opset, k);
		CU_ASSERT_TRUE(same);
	}
	bench_close(&a);
	bench_close(&b);
}

/* Each of them to three opsets: every rule is met. */
static const struct { const char *head, *body; } same[] = {
	{"ir 3 opset 6", "^g(%x: float32[2,3,4], %b: float32[3]) {\n%y = Add(%x, %b) {axis = 1, broadcast = 1}\n"
		"%z = Mul(%y, %y) {axis = 0}\nret %z\n}\n"},
	{"ir 3 opset 6", "^g(%x: float32[2,3,N,4], %b: float32[3,N]) {\n%y = Sub(%x, %b) {axis = 1, broadcast = 1}\n"
		"%z = Div(%x, %y)\n%w = Pow(%z, %y) {broadcast = 1}\nret %y, %z, %w\n}\n"},
	{"ir 3 opset 6", "^g(%x: bool[2,3], %b: bool[2]) {\n%u = And(%x, %b) {axis = 0, broadcast = 1}\n"
		"%v = Or(%u, %x)\n%w = Xor(%v, %b) {axis = -2, broadcast = 1}\nret %w\n}\n"},
	{"ir 3 opset 6", "^g(%x: float32[2,3], %b: float32[2]) {\n%u = Less(%x, %b) {axis = 0, broadcast = 1}\n"
		"%v = Greater(%x, %b) {axis = 0, broadcast = 1}\n%w = Equal(%u, %v)\nret %u, %w\n}\n"},
	{"ir 3 opset 6", "^g(%x: float32[2,3,4], %b: float32[3], %c: float32[1]) {\n%u = PRelu(%x, %b)\n"
		"%v = PRelu(%u, %c)\nret %v\n}\n"},
	{"ir 3 opset 6", "^g(%x: float32[2,3], %w: float32[3,4], %c: float32[4]) {\n%y = Gemm(%x, %w, %c) {broadcast = 1}\n"
		"ret %y\n}\n"},
	{"ir 4 opset 9", "^g(%x: float32[2,3], %w: float32[3,4], %c: float32[4]) {\n%y = Gemm(%x, %w, %c)\n"
		"%z = MatMul(%x, %w)\nret %y, %z\n}\n"},
	{"ir 3 opset 5", "^g(%x: float32[2,3,4], %s: float32[3], %b: float32[3], %m: float32[3], %v: float32[3]) {\n"
		"%w = Abs(%v) {consumed_inputs = [0]}\n%y = BatchNormalization(%x, %s, %b, %m, %w) {consumed_inputs = [0, 0, 0, 1, 1], "
		"epsilon = 0.25, is_test = 1, spatial = 1}\nret %y\n}\n"},
	{"ir 3 opset 8", "^g(%x: float32[2,3,4], %s: float32[12], %b: float32[12], %m: float32[12], %v: float32[3,4]) {\n"
		"%w = Exp(%v)\n%y = BatchNormalization(%x, %s, %b, %m, %w) {spatial = 0}\nret %y\n}\n"},
	{"ir 6 opset 13", "^g(%x: float32[N,3,4], %s: float32[3], %b: float32[3], %m: float32[3], %v: float32[3]) {\n"
		"%w = Exp(%v)\n%y = BatchNormalization(%x, %s, %b, %m, %w)\nret %y\n}\n"},
	{"ir 3 opset 5", "^g(%x: float32[2,3]) {\n%y = Cast(%x) {to = \"DOUBLE\"}\n%z = Cast(%y) {to = \"INT64\"}\nret %y, %z\n}\n"},
	{"ir 3 opset 6", "^g(%x: float32[2,3], %h: float16[5], %d: float64[5]) {\n%a = Clip(%x) {min = -0.3, max = 0.2}\n"
		"%b = Clip(%x) {max = 0.1}\n%c = Clip(%h) {min = 0.1}\n%e = Clip(%d) {max = 0.1}\n%f = Clip(%x)\n"
		"ret %a, %b, %c, %e, %f\n}\n"},
	{"ir 3 opset 3", "^g(%x: float32[2,3]) {\n%y = Concat(%x, %x)\n%z = Selu(%y)\nret %z\n}\n"},
	{"ir 3 opset 8", "^g(%x: float32[1,4,4,4], %w: float32[4,4,2,2]) {\n%k = Constant() {value = tensor float32[1] {0.5}}\n"
		"%y = Conv(%x, %w)\n%t = ConvTranspose(%y, %w)\n%p = MaxPool(%t) {kernel_shape = [2, 2]}\n%m = Mul(%p, %k)\n"
		"%d = DepthToSpace(%x) {blocksize = 2}\nret %m, %d\n}\n"},
	{"ir 3 opset 9", "^g(%x: float32[2,3]) {\n%y, %m = Dropout(%x) {ratio = 0.25}\n%z = Mul(%y, %m)\nret %z, %m\n}\n"},
	{"ir 5 opset 10", "^g(%x: float32[2,3]) {\n%y, %m = Dropout(%x)\n%z, %unread = Dropout(%y)\nret %z, %m\n}\n"},
	{"ir 3 opset 1", "^g(%x: float32[2,3]) {\n%y, %unread = Dropout(%x) {is_test = 1, ratio = 0.5}\nret %y\n}\n"},
	{"ir 4 opset 9", "^g(%x: float32[2,3]) {\n%ten = const float32[] {10.0}\n%m = Mul(%x, %ten)\n%i = Cast(%m) {to = 6}\n"
		"%y = Erf(%i)\n%z = Erf(%x)\nret %y, %z\n}\n"},
	{"ir 3 opset 6", "^g(%x: float32[2,1,3], %w: float32[1,4,3], %r: float32[1,4,4]) {\n"
		"%y, %h = RNN(%x, %w, %r) {hidden_size = 4, output_sequence = 1}\nret %y, %h\n}\n"},
	{"ir 3 opset 6", "^g(%x: float32[2,1,3], %w: float32[1,6,3], %r: float32[1,6,2], %v: float32[1,8,3], %q: float32[1,8,2]) {\n"
		"%y, %h = GRU(%x, %w, %r) {hidden_size = 2, output_sequence = 1}\n"
		"%z, %i = LSTM(%x, %v, %q) {hidden_size = 2, output_sequence = 0}\nret %y, %h, %z, %i\n}\n"},
	{"ir 6 opset 11", "^g(%x: float32[2,3]) {\n%i = const int64[2,1] {1, 0}\n%y = GatherND(%x, %i)\nret %y\n}\n"},
	{"ir 3 opset 1", "^g(%x: float32[1,2,4,4]) {\n%y = LpPool(%x) {kernel_shape = [2, 2], p = 3.0}\n"
		"%z = GlobalLpPool(%y) {p = 2.0}\nret %y, %z\n}\n"},
	{"ir 3 opset 8", "^g(%x: float32[2,3,4,5], %i: float32[2,1,1], %n: float32[N,4]) {\n%a = Softmax(%x) {axis = 2}\n"
		"%b = LogSoftmax(%x)\n%c = Hardmax(%x) {axis = 3}\n%d = Softmax(%i)\n%e = Softmax(%n) {axis = 0}\n"
		"ret %a, %b, %c, %d, %e\n}\n"},
	{"ir 3 opset 8", "^g(%x: float32[2,3,4,5]) {\n%y = MeanVarianceNormalization(%x) {across_channels = 1}\n"
		"%z = MeanVarianceNormalization(%x)\nret %y, %z\n}\n"},
	{"ir 3 opset 1", "^g(%x: float32[2,3]) {\n%y = Pad(%x) {paddings = [0, 1, 0, 1], value = 0.5}\n"
		"%z = Reshape(%y) {shape = [5, 2]}\nret %y, %z\n}\n"},
	{"ir 5 opset 10", "^g(%x: float32[2,3], %h: float16[2,3]) {\n%y = Pad(%x) {pads = [0, 1, 0, -1], mode = \"edge\"}\n"
		"%z = Pad(%h) {pads = [1, 1, 0, 0], value = 0.1}\nret %y, %z\n}\n"},
	{"ir 6 opset 12", "^g(%x: float32[2,3,4]) {\n%p = const int64[6] {0, 1, 0, 0, 0, 1}\n%y = Pad(%x, %p)\n"
		"%a = ReduceSum(%y) {axes = [0, -1], keepdims = 0}\n%b = ReduceL1(%y) {axes = [1]}\n%c = ReduceL2(%y) {axes = [1]}\n"
		"%d = ReduceLogSum(%b)\n%e = ReduceLogSumExp(%y) {axes = [2]}\n%f = ReduceMax(%y)\n%h = ReduceMin(%y) {axes = [0, 1]}\n"
		"%i = ReduceMean(%y) {axes = [2]}\n%j = ReduceProd(%y) {axes = [0]}\n%k = ReduceSumSquare(%y) {axes = [0]}\n"
		"ret %a, %b, %c, %d, %e, %f, %h, %i, %j, %k\n}\n"},
	{"ir 3 opset 9", "^g(%x: float32[2,3]) {\n%s = Shape(%x)\n%y = Reshape(%x, %s)\nret %y, %s\n}\n"},
	{"ir 5 opset 10", "^g(%x: float32[1,2,4,6]) {\n%s = const float32[4] {1.0, 1.0, 1.5, 0.6}\n%d = const float32[4] {1.0, 0.5, 0.7, 1.0}\n"
		"%y = Resize(%x, %s)\n%z = Resize(%x, %d)\n%w = Resize(%x, %s) {mode = \"linear\"}\nret %y, %z, %w\n}\n"},
	{"ir 5 opset 10", "^g(%x: float32[1,2,4,6]) {\n%s = const float32[4] {1.0, 2.0, 2.0, 3.0}\n%y = Resize(%x, %s)\nret %y\n}\n"},
	{"ir 5 opset 10", "^g(%x: float32[1,2,4,6], %b: float32[1,4]) {\n%i = const int64[1] {0}\n%n = Abs(%b)\n"
		"%y = RoiAlign(%x, %n, %i) {output_height = 2, output_width = 2}\nret %y\n}\n"},
	{"ir 3 opset 1", "^g(%x: float32[1,2,3,4]) {\n%y = Upsample(%x) {height_scale = 2.0, width_scale = 1.5, mode = \"bilinear\"}\nret %y\n}\n"},
	{"ir 3 opset 8", "^g(%x: float32[1,2,3,4]) {\n%y = Upsample(%x) {scales = [1.0, 1.0, 2.0, 2.5]}\nret %y\n}\n"},
	{"ir 4 opset 9", "^g(%x: float32[1,2,3,4]) {\n%s = const float32[4] {1.0, 1.0, 2.0, 3.0}\n%y = Upsample(%x, %s) {mode = \"linear\"}\n"
		"%i = const int64[1,1,1,2] {2, 0}\n%u = const float32[1,1,1,2] {5.0, 6.0}\n%z = Scatter(%x, %i, %u) {axis = 2}\nret %y, %z\n}\n"},
	{"ir 6 opset 11", "^g(%x: float32[3,2]) {\n%i = const int64[1,2] {2, 0}\n%u = const float32[1,2] {5.0, 6.0}\n"
		"%y = ScatterElements(%x, %i, %u)\n%j = const int64[1,1] {1}\n%z = ScatterND(%y, %j, %u)\nret %z\n}\n"},
	{"ir 3 opset 8", "^g(%x: float32[2,5]) {\n%y = Slice(%x) {starts = [1, -3], ends = [9, -1]}\n"
		"%z = Slice(%x) {axes = [1], starts = [2], ends = [4]}\n%a, %b = Split(%x) {axis = 1, split = [2, 3]}\n"
		"%s, %t = Split(%x)\nret %y, %z, %a, %b, %s, %t\n}\n"},
	{"ir 3 opset 1", "^g(%x: float32[2,5]) {\n%n = const int64[2] {1, 4}\n%a, %b = Split(%x, %n) {axis = 1}\nret %a, %b\n}\n"},
	{"ir 6 opset 11", "^g(%x: float32[2,1,5,1]) {\n%y = Squeeze(%x) {axes = [1]}\n%z = Squeeze(%x)\n"
		"%w = Unsqueeze(%z) {axes = [0, 3]}\nret %y, %z, %w\n}\n"},
	{"ir 3 opset 5", "^g(%x: float32[2,3]) {\n%n = const int64[1] {3}\n%a = const int64[1] {1}\n%y = Tile(%x, %n, %a)\nret %y\n}\n"},
	{"ir 3 opset 9", "^g(%x: float32[2,5]) {\n%v, %i = TopK(%x) {k = 3}\nret %v, %i\n}\n"},
	{"ir 3 opset 8", "^g(%s: float32[3,2], %x: float32[3,4,2]) {\n%y, %z = Scan(_, %s, %x) {body = ^body(%a: float32[2], %b: float32[2]) {\n"
		"%c = Add(%a, %b)\n%d = Softmax(%c) {axis = 0}\nret %c, %d\n}, num_scan_inputs = 1, directions = [1]}\nret %y, %z\n}\n"},
	{"ir 8 opset 17", "^g(%x: float32[1,4,2,2], %g: float32[1,2,2,2]) {\n%y = GridSample(%x, %g) {mode = \"bicubic\"}\n"
		"%z = GridSample(%x, %g)\n%s = const float32[1,4,2] {0.5, 1.0, 2.0, 3.0, 4.0, 1.5, -1.0, 0.0}\n%f = DFT(%s) {axis = 1}\nret %y, %z, %f\n}\n"},
	{"ir 8 opset 18", "^g(%x: float32[2,4,3], %s: float32[2], %b: float32[2]) {\n%y = GroupNormalization(%x, %s, %b) {num_groups = 2}\n"
		"ret %y\n}\n"},
	/* A body is raised with all it holds, and sees what is around. */
	{"ir 6 opset 11", "^g(%c: bool[], %x: float32[2,3]) {\n%y = If(%c) {then_branch = ^t() {\n%u = Unsqueeze(%x) {axes = [0]}\nret %u\n"
		"}, else_branch = ^e() {\n%v = Unsqueeze(%x) {axes = [0]}\n%w = Clip(%v) {max = 0.0}\nret %w\n}}\nret %y\n}\n"},
	/* Ops that a function of another opset left. */
	{"ir 8 opset 17 opset my 1", "function my::Old opset 11 ^b(%x: undefined[..]) {\n%y = Squeeze(%x) {axes = [0]}\nret %y\n}\n"
		"^g(%x: float32[1,3]) {\n%y = my::Old(%x)\nret %y\n}\n"},
};

static void
bits_stay(void)
{
	static const int opset[] = {17, 18, 21, 24};

	for (size_t k = 0; k < sizeof same / sizeof same[0]; k++)
		for (size_t i = 0; i < sizeof opset / sizeof opset[0]; i++)
			if (i > 1 || !strstr(same[k].head, "opset 18"))
				compare(same[k].head, same[k].body, opset[i]);
}

/* ---- What is refused, and what is left alone. ---- */

static void
refuse(const char *head, const char *body, const char *passes, const char *why)
{
	bench t = trial_of(head, body);
	const om_status st = om_host_run(t.h, t.p, passes);

	CU_ASSERT_NOT_EQUAL(st, OM_OK);
	if (!strstr(om_message(t.s), why))
		printf("# %s: not \"%s\"\n", om_message(t.s), why);
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(t.s), why));
	bench_close(&t);
}

static void
others_are_refused(void)
{
	refuse("ir 3 opset 8", "^g(%x: float32[2,3,4]) {\n%y = MeanVarianceNormalization(%x) {normalize_variance = 0}\nret %y\n}\n",
		"convert-opset",
			"MeanVarianceNormalization (node of y): of opset 8 cannot be converted to opset 17: "
			"it does not update the variance");
	refuse("ir 3 opset 1", "^g(%x: float32[1,2,4,4]) {\n%y = GlobalLpPool(%x) {p = 2.5}\nret %y\n}\n", "convert-opset", "p is 2.5, expected an integer");
	refuse("ir 3 opset 6", "^g(%x: float32[..], %b: float32[3]) {\n%y = Add(%x, %b) {axis = 1, broadcast = 1}\nret %y\n}\n",
		"convert-opset", "the rank of an operand is not known");
	refuse("ir 3 opset 8", "^g(%l: int64[3], %x: float32[3,4,2]) {\n%y = Scan(%l, %x) {body = ^body(%b: float32[2]) {\n"
		"%c = Neg(%b)\nret %c\n}, num_scan_inputs = 1}\nret %y\n}\n", "convert-opset",
			"its sequences may differ in length, by l");
	refuse("ir 3 opset 9", "^g(%x: float32[2,3]) {\n%y = NoSuchThing(%x)\nret %y\n}\n", "convert-opset",
		"unknown operator");
	refuse("ir 3 opset 9", "^g(%x: float32[2,3]) {\n%y = Neg(%x)\nret %y\n}\n", "convert-opset=12", "the target opset must be from 13 to 24, not 12");
	refuse("ir 3 opset 9", "^g(%x: float32[2,3], %s: float32[3], %b: float32[3], %m: float32[3], %v: float32[3]) {\n"
		"%y, %n, %o, %p, %q = BatchNormalization(%x, %s, %b, %m, %v)\nret %y, %p\n}\n", "convert-opset", "p, an output in training mode,");
}

static void
new_programs_stay(void)
{
	bench t = trial_of("ir 8 opset 19", "^g(%x: float32[2,3]) {\n%y = Neg(%x)\nret %y\n}\n");
	om_opset_converted done;

	CU_ASSERT_EQUAL(om_prog_convert_opset(t.s, t.p, 17, &done), OM_OK);
	CU_ASSERT_EQUAL(done.from, 19);
	CU_ASSERT_EQUAL(done.to, 19);
	CU_ASSERT_EQUAL(done.ops + done.added, 0);
	bench_close(&t);
}

/* The release that an opset came with had an IR version. */
static void
ir_follows(void)
{
	bench t = trial_of("ir 3 opset 8", "^g(%x: float32[2,3]) {\n%y = Neg(%x)\nret %y\n}\n");

	CU_ASSERT_EQUAL(om_prog_convert_opset(t.s, t.p, 17, NULL), OM_OK);
	CU_ASSERT_EQUAL(t.p->ir_version, 8);
	CU_ASSERT_EQUAL(om_prog_convert_opset(t.s, t.p, 21, NULL), OM_OK);
	CU_ASSERT_EQUAL(t.p->ir_version, 10);
	bench_close(&t);
}

static CU_TestInfo opset_convert_tests[] = {
	{"every change of an operator has a rule", rules_are_whole},
	{"every rule has an operator", rules_are_real},
	{"raised programs compute the same bits", bits_stay},
	{"what cannot be converted is named", others_are_refused},
	{"new programs stay as they are", new_programs_stay},
	{"the IR version goes with the opset", ir_follows},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("opset_convert", opset_convert_tests);
