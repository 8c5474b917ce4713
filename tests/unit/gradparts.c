/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of operators that are differentiated by parts, against differences. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "unit.h"

/* ---- Recurrent layers: computed in float32, so the differences are coarse. ---- */

/* What goes in as float64 is cast; all outputs go into the loss, weighted. */
static void
check_layer(const char *type, int gates, const char *attributes, const char *lengths, int directions, bool batch_first,
	bool has_peepholes)
{
	const int hidden = 2, width = 3;
	const bool is_lstm = strcmp(type, "LSTM") == 0;
	char all[4096], x[64], h[64], *to = all;
	const char *end = all + sizeof all;

	snprintf(x, sizeof x, batch_first ? "2,4,%d" : "4,2,%d", width);
	snprintf(h, sizeof h, batch_first ? "2,%d,%d" : "%d,2,%d", directions, hidden);
	to += snprintf(to, (size_t)(end - to), "program \"t\" ir 8 opset 17\n^main(%%x: float64[%s], %%w: float64[%d,%d,%d], "
		"%%r: float64[%d,%d,%d], %%b: float64[%d,%d], %%h: float64[%s]", x, directions, gates * hidden, width,
		directions, gates * hidden, hidden, directions, 2 * gates * hidden, h);
	if (is_lstm)
		to += snprintf(to, (size_t)(end - to), ", %%c: float64[%s], %%p: float64[%d,%d]", h, directions, 3 * hidden);
	to += snprintf(to, (size_t)(end - to), ") {\n");
	for (const char *in = is_lstm ? "xwrbhcp" : "xwrbh"; *in; in++)
		to += snprintf(to, (size_t)(end - to), "\t%%%c32 = Cast(%%%c) {to = 1}\n", *in, *in);
	if (*lengths)
		to += snprintf(to, (size_t)(end - to), "\t%%n = const int32[2] {%s}\n", lengths);
	to += snprintf(to, (size_t)(end - to), "\t%%y, %%yh%s = %s(%%x32, %%w32, %%r32, %%b32, %s, %%h32%s%s) {hidden_size = %d%s%s}\n",
		is_lstm ? ", %yc" : "", type, *lengths ? "%n" : "_", is_lstm ? ", %c32" : "",
		has_peepholes ? ", %p32" : "", hidden, *attributes ? ", " : "", attributes);
	to += snprintf(to, (size_t)(end - to), "\t%%a = Mul(%%y, %%y)\n\t%%s = ReduceSum(%%a) {keepdims = 0}\n"
		"\t%%t = ReduceMean(%%yh) {keepdims = 0}\n\t%%u = Add(%%s, %%t)\n");
	if (is_lstm)
		to += snprintf(to, (size_t)(end - to), "\t%%v = ReduceMean(%%yc) {keepdims = 0}\n\t%%o = Add(%%u, %%v)\n");
	snprintf(to, (size_t)(end - to), "\t%%l = Cast(%s) {to = 11}\n\tret %%l\n}\n", is_lstm ? "%o" : "%u");
	unit_grad_check_within(all, 1, 1e-2, 2e-3);
}

static void
of_lstm(void)
{
	check_layer("LSTM", 4, "", "", 1, false, false);
	check_layer("LSTM", 4, "direction = \"reverse\"", "", 1, false, true);
	check_layer("LSTM", 4, "direction = \"bidirectional\", layout = 1", "4, 2", 2, true, true);
	check_layer("LSTM", 4, "input_forget = 1, clip = 5.0, activations = [\"HardSigmoid\", \"Softsign\", \"ScaledTanh\"], "
		"activation_alpha = [0.3, 0.9], activation_beta = [0.4, 0.7]", "1, 4", 1, false, false);
}

static void
of_gru(void)
{
	check_layer("GRU", 3, "", "", 1, false, false);
	check_layer("GRU", 3, "linear_before_reset = 1, direction = \"reverse\"", "3, 4", 1, false, false);
	check_layer("GRU", 3, "linear_before_reset = 1, direction = \"bidirectional\"", "", 2, false, false);
	check_layer("GRU", 3, "direction = \"bidirectional\", layout = 1", "2, 4", 2, true, false);
}

static void
of_rnn(void)
{
	check_layer("RNN", 1, "", "", 1, false, false);
	check_layer("RNN", 1, "direction = \"bidirectional\", activations = [\"Softplus\", \"Elu\"], activation_alpha = [0.5]",
		"", 2, false, false);
	check_layer("RNN", 1, "activations = [\"Affine\"], activation_alpha = [0.5], activation_beta = [0.25], layout = 1",
		"4, 1", 1, true, false);
}

/* A layer of 0 where a body holds it: what it needs is kept from iteration to iteration. */
static void
of_a_layer_in_a_loop(void)
{
	unit_grad_check_within("program \"t\" ir 8 opset 17\n"
		"^main(%x: float64[3,2,2], %w: float64[1,2,2], %r: float64[1,2,2]) {\n"
		"	%n = const int64[] {2}\n"
		"	%w32 = Cast(%w) {to = 1}\n"
		"	%r32 = Cast(%r) {to = 1}\n"
		"	%x32 = Cast(%x) {to = 1}\n"
		"	%z = Loop(%n, _, %x32) {body = ^b(%i: int64[], %c: bool[], %h: float32[3,2,2]) {\n"
		"		%y = RNN(%h, %w32, %r32) {hidden_size = 2}\n"
		"		%one = const int64[1] {1}\n"
		"		%q = Squeeze(%y, %one)\n"
		"		ret %c, %q\n"
		"	}}\n"
		"	%a = Mul(%z, %z)\n"
		"	%s = ReduceSum(%a) {keepdims = 0}\n"
		"	%l = Cast(%s) {to = 11}\n"
		"	ret %l\n"
		"}\n", 1, 1e-2, 2e-3);
}

/* ---- Attention, in float64. ---- */

static void
check_attention(int opset, const char *inputs, const char *constants, const char *given, const char *outputs,
	const char *attributes)
{
	char all[4096], sums[1024] = "", out[16], *to = sums;
	const char *last = "zero";

	for (const char *at = outputs; *at; at++) {
		if (*at != '%')
			continue;
		snprintf(out, sizeof out, "%c", at[1]);
		to += snprintf(to, (size_t)(sums + sizeof sums - to), "\t%%%s1 = Mul(%%%s, %%%s)\n\t%%%s2 = ReduceSum(%%%s1) {keepdims = 0}\n"
			"\t%%%s3 = Add(%%%s2, %%%s)\n", out, out, out, out, out, out, out, *last == 'z' ? "zero" : last);
		static char name[2][20];
		snprintf(name[at[1] % 2], sizeof name[0], "%s3", out);
		last = name[at[1] % 2];
	}
	snprintf(all, sizeof all, "program \"t\" ir 8 opset %d\n^main(%s) {\n%s\t%%zero = const float64[] {0.0}\n"
		"\t%s = Attention(%s) {%s}\n%s\tret %%%s\n}\n", opset, inputs, constants, outputs, given, attributes, sums, last);
	unit_grad_check(all, 2);
}

static void
of_attention(void)
{
	const char *deep = "%q: float64[2,2,3,4], %k: float64[2,2,5,4], %v: float64[2,2,5,3]";
	const char *flat = "%q: float64[2,3,8], %k: float64[2,4,4], %v: float64[2,4,6]";

	check_attention(23, deep, "", "%q, %k, %v", "%y", "is_causal = 0");
	check_attention(23, deep, "\t%m = const bool[3,5] {1,0,1,0,0, 0,0,0,0,0, 1,1,1,1,1}\n", "%q, %k, %v, %m", "%y",
		"softcap = 1.5, scale = 0.7");
	check_attention(23, flat, "", "%q, %k, %v", "%y", "q_num_heads = 4, kv_num_heads = 2, is_causal = 1");
	check_attention(23, "%q: float64[N,3,8], %k: float64[N,4,4], %v: float64[N,4,6], %m: float64[N,4,3,4]", "",
		"%q, %k, %v, %m", "%y", "q_num_heads = 4, kv_num_heads = 2");
	check_attention(23, "%q: float64[1,4,2,3], %k: float64[1,2,2,3], %v: float64[1,2,2,2], %a: float64[1,2,3,3], "
		"%b: float64[1,2,3,2]", "", "%q, %k, %v, _, %a, %b", "%y, %c, %d, %e", "is_causal = 1, qk_matmul_output_mode = 3");
	check_attention(24, deep, "\t%n = const int64[2] {5, 3}\n", "%q, %k, %v, _, _, _, %n", "%y, %c, %d, %e",
		"is_causal = 1, qk_matmul_output_mode = 1, softcap = 2.0");
	check_attention(23, deep, "\t%m = const float64[1,3] {0.5, -0.5, 0.25}\n", "%q, %k, %v, %m", "%y", "is_causal = 0");
}

static void
of_rotary(void)
{
	static const char *const text[] = {
		"^main(%x: float64[2,3,12], %c: float64[7,3], %s: float64[7,3]) {\n"
		"	%p = const int64[2,3] {0, 1, 2, 4, 3, 4}\n"
		"	%y = RotaryEmbedding(%x, %c, %s, %p) {num_heads = 2}\n",
		"^main(%x: float64[2,2,3,6], %c: float64[2,3,2], %s: float64[2,3,2]) {\n"
		"	%y = RotaryEmbedding(%x, %c, %s) {interleaved = 1, rotary_embedding_dim = 4}\n",
	};
	char all[1024];

	for (int k = 0; k < 2; k++) {
		snprintf(all, sizeof all, "program \"t\" ir 8 opset 23\n%s\t%%z = Mul(%%y, %%x)\n\t%%a = Mul(%%z, %%y)\n"
			"\t%%l = ReduceSum(%%a) {keepdims = 0}\n\tret %%l\n}\n", text[k]);
		unit_grad_check(all, 1);
	}
}

/* ---- Einsum. ---- */

static void
check_einsum(const char *equation, const char *inputs, const char *given)
{
	char all[1024];

	snprintf(all, sizeof all, "program \"t\" ir 8 opset 17\n^main(%s) {\n\t%%y = Einsum(%s) {equation = \"%s\"}\n"
		"\t%%z = Mul(%%y, %%y)\n\t%%l = ReduceSum(%%z) {keepdims = 0}\n\tret %%l\n}\n", inputs, given, equation);
	unit_grad_check(all, 2);
}

static void
of_einsum(void)
{
	check_einsum("ij,jk->ik", "%a: float64[2,3], %b: float64[3,4]", "%a, %b");
	check_einsum("bij, bjk", "%a: float64[N,2,3], %b: float64[N,3,4]", "%a, %b");
	check_einsum("...ij,...jk->...ik", "%a: float64[3,1,2,3], %b: float64[2,3,2]", "%a, %b");
	check_einsum("ij->j", "%a: float64[2,3]", "%a");
	check_einsum("ii->i", "%a: float64[3,3]", "%a");
	check_einsum("iij,j->", "%a: float64[3,3,2], %b: float64[2]", "%a, %b");
	check_einsum("ij,kl->", "%a: float64[2,3], %b: float64[N,2]", "%a, %b");
	check_einsum("i,ij,j->i", "%a: float64[2], %b: float64[2,3], %c: float64[3]", "%a, %b, %c");
	check_einsum("ba", "%a: float64[2,3]", "%a");
	check_einsum("i...->...", "%a: float64[2,3,2]", "%a");
	check_einsum("i,i->i", "%a: float64[3]", "%a, %a");
	check_einsum("Aa,aA->A", "%a: float64[2,3], %b: float64[3,2]", "%a, %b");
	check_einsum("ij,ij->ij", "%a: float64[1,3], %b: float64[4,3]", "%a, %b");
}

static CU_TestInfo gradparts_tests[] = {
	{"of LSTM", of_lstm},
	{"of GRU", of_gru},
	{"of RNN", of_rnn},
	{"of a layer in a loop", of_a_layer_in_a_loop},
	{"of Attention", of_attention},
	{"of RotaryEmbedding", of_rotary},
	{"of Einsum", of_einsum},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("gradients by parts", gradparts_tests);
