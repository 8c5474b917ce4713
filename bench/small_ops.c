/* SPDX-License-Identifier: Apache-2.0 */
/* What an op costs beside its arithmetic.
 *
 *	bench/small_ops [OPERATOR...]
 *
 * Chains of ops on tensors of about four elements, without a plan: what is measured is the
 * walk of the executor and what each kernel does before it computes.  `make bench-small-ops`
 * runs it.  One line a chain: its name, and nanoseconds an op, the median of some runs; then those of a whole
 * run of ten ops.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fixtures.h"

enum { LINKS = 1000, FEW = 10, REPEATS = 31, RUNS_EACH = 4, TEXT = 1 << 18 };

/* A link turns %x<n> into %x<n+1>.  In its text '<' stands for the first, '>' for the second, and '#'
 * for n; `before` are constants. */
struct chain {
	const char *name, *params, *before, *link;
	int ops;                  /* in a link */
};

static const struct chain chains[] = {
	{"Relu", "%x0: float32[4]", "", "> = Relu(<)", 1},
	{"Sigmoid", "%x0: float32[4]", "", "> = Sigmoid(<)", 1},
	{"LeakyRelu", "%x0: float32[4]", "", "> = LeakyRelu(<) {alpha = 0.5}", 1},
	{"Add", "%x0: float32[4], %y: float32[4]", "", "> = Add(<, %y)", 1},
	{"Mul-scalar", "%x0: float32[4], %y: float32[]", "", "> = Mul(<, %y)", 1},
	{"Add-broadcast", "%x0: float32[2,2], %y: float32[2]", "", "> = Add(<, %y)", 1},
	{"Where", "%x0: float32[4], %c: bool[4], %y: float32[4]", "", "> = Where(%c, <, %y)", 1},
	{"Clip", "%x0: float32[4], %l: float32[], %h: float32[]", "", "> = Clip(<, %l, %h)", 1},
	{"Pow", "%x0: float32[4], %y: float32[]", "", "> = Pow(<, %y)", 1},
	{"Cast", "%x0: float32[4]", "", "%c# = Cast(<) {to = 7}\n> = Cast(%c#) {to = 1}", 2},
	{"Conv", "%x0: float32[1,4,1,1], %w: float32[4,4,1,1]", "", "> = Conv(<, %w)", 1},
	{"Conv-3x3", "%x0: float32[1,1,2,2], %w: float32[1,1,3,3]", "", "> = Conv(<, %w) {pads = [1, 1, 1, 1]}", 1},
	{"MaxPool", "%x0: float32[1,1,2,2]", "", "> = MaxPool(<) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}", 1},
	{"MatMul", "%x0: float32[1,4], %w: float32[4,4]", "", "> = MatMul(<, %w)", 1},
	{"Gemm", "%x0: float32[1,4], %w: float32[4,4], %b: float32[4]", "", "> = Gemm(<, %w, %b) {transB = 1}", 1},
	{"Softmax", "%x0: float32[1,4]", "", "> = Softmax(<)", 1},
	{"LayerNorm", "%x0: float32[1,4], %s: float32[4], %b: float32[4]", "",
	 "> = LayerNormalization(<, %s, %b)", 1},
	{"BatchNorm", "%x0: float32[1,4], %s: float32[4], %b: float32[4], %m: float32[4], %v: float32[4]", "",
	 "> = BatchNormalization(<, %s, %b, %m, %v)", 1},
	{"Reduce+Sub", "%x0: float32[1,4]", "", "%m# = ReduceMean(<) {axes = [1]}\n> = Sub(<, %m#)", 2},
	{"Reshape", "%x0: float32[2,2]", "%s = const int64[2] {2, 2}\n", "> = Reshape(<, %s)", 1},
	{"Transpose", "%x0: float32[2,2]", "", "> = Transpose(<)", 1},
	{"Slice+Concat", "%x0: float32[4]", "%f = const int64[1] {0}\n%t = const int64[1] {2}\n",
	 "%h# = Slice(<, %f, %t)\n> = Concat(%h#, %h#) {axis = 0}", 2},
	{"Split+Concat", "%x0: float32[4]", "%n = const int64[2] {2, 2}\n",
	 "%a#, %b# = Split(<, %n)\n> = Concat(%b#, %a#) {axis = 0}", 2},
	{"Pad+Slice", "%x0: float32[4]",
	 "%p = const int64[2] {1, 1}\n%f = const int64[1] {1}\n%t = const int64[1] {5}\n",
	 "%q# = Pad(<, %p)\n> = Slice(%q#, %f, %t)", 2},
	{"Gather", "%x0: float32[4]", "%i = const int64[4] {3, 1, 2, 0}\n", "> = Gather(<, %i)", 1},
	{"Resize", "%x0: float32[1,1,2,2]", "%s = const float32[4] {1, 1, 1, 1}\n",
	 "> = Resize(<, _, %s) {mode = \"linear\"}", 1},
	{"Einsum", "%x0: float32[1,4], %w: float32[4,4]", "", "> = Einsum(<, %w) {equation = \"ij,jk\"}", 1},
	{"Quantize", "%x0: float32[4], %s: float32[], %z: uint8[]", "",
	 "%q# = QuantizeLinear(<, %s, %z)\n> = DequantizeLinear(%q#, %s, %z)", 2},
	{"Attention", "%x0: float32[1,1,4]", "",
	 "> = Attention(<, %x0, %x0) {q_num_heads = 2, kv_num_heads = 2}", 1},
	{"GroupNorm", "%x0: float32[1,2,2], %s: float32[2], %b: float32[2]", "",
	 "> = GroupNormalization(<, %s, %b) {num_groups = 2}", 1},
	{"SkipLayerNorm", "%x0: float32[1,1,4], %k: float32[1,1,4], %s: float32[4]", "",
	 "> = com.microsoft::SkipLayerNormalization(<, %k, %s)", 1},
	{"FastGelu", "%x0: float32[4], %b: float32[4]", "", "> = com.microsoft::FastGelu(<, %b)", 1},
};

/* ---- The program of a chain. ---- */

static char *
put_link(char *to, const struct chain *c, int n)
{
	for (const char *s = c->link; *s; s++) {
		if (*s == '<')
			to += sprintf(to, "%%x%d", n);
		else if (*s == '>')
			to += sprintf(to, "%%x%d", n + 1);
		else if (*s == '#')
			to += sprintf(to, "%d", n);
		else
			*to++ = *s;
	}
	*to++ = '\n';
	return to;
}

static om_status
read_chain(bench *b, const struct chain *c, int links, char *text)
{
	const char *opset = strstr(c->link, "com.microsoft") ? " opset com.microsoft 1" : "";
	const int version = strstr(c->link, "axes =") ? 17 : 23;
	char *to = text + sprintf(text, "program \"\" ir 8 opset %d%s\n^main(%s) {\n%s", version, opset, c->params,
		c->before);

	for (int n = 0; n < links; n++)
		to = put_link(to, c, n);
	to += sprintf(to, "ret %%x%d\n}\n", links);
	return bench_read(b, text);
}

/* ---- Running. ---- */

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static om_status
give_inputs(bench *b)
{
	for (uint32_t k = 0; k < b->p->first->nparam; k++) {
		const om_value *v = b->p->first->param[k];
		const om_tensor t = tensor_zero(b->mem, v->type.elem, &v->shape);
		for (int64_t i = 0; i < om_shape_count(&v->shape) && t.type == OM_FLOAT32; i++)
			set_element(&t, i, 0.25);
		OM_TRY(om_exec_input(b->e, k, &t));
	}
	return OM_OK;
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static om_status
time_runs(om_exec *e, double *median)
{
	double took[REPEATS];

	for (int k = 0; k < REPEATS; k++) {
		const double start = now_ns();
		for (int i = 0; i < RUNS_EACH; i++)
			OM_TRY(om_exec_run(e));
		took[k] = (now_ns() - start) / RUNS_EACH;
	}
	qsort(took, REPEATS, sizeof *took, compare);
	*median = took[REPEATS / 2];
	return OM_OK;
}

static om_status
run_chain(bench *b, const struct chain *c, int links, char *text, double *ns)
{
	OM_TRY(read_chain(b, c, links, text));
	OM_TRY(om_host_run(b->h, b->p, "inline,shapes,fold"));
	OM_TRY(bench_exec(b, &ways[SEPARATE]));
	OM_TRY(give_inputs(b));
	return time_runs(b->e, ns);
}

static bool
bench_chain(bench *b, char *text, const struct chain *c)
{
	double ns = 0;
	const om_status st = run_chain(b, c, LINKS, text, &ns);

	if (st == OM_OK)
		printf("%-16s %8.1f\n", c->name, ns / LINKS / c->ops);
	else
		fprintf(stderr, "bench/small_ops: %s: %s\n", c->name, om_message(b->s));
	fflush(stdout);
	bench_clear(b);
	return st == OM_OK;
}

/* A run of a small model, not divided by its ops. */
static bool
bench_few(bench *b, char *text, const struct chain *c)
{
	double ns = 0;
	const om_status st = run_chain(b, c, FEW, text, &ns);

	if (st == OM_OK)
		printf("a run of %d %s: %.1f\n", FEW, c->name, ns);
	bench_clear(b);
	return st == OM_OK;
}

static bool
is_wanted(const struct chain *c, int argc, char **argv)
{
	bool any = argc < 2;

	for (int k = 1; k < argc; k++)
		any |= strcmp(argv[k], c->name) == 0;
	return any;
}

int
main(int argc, char **argv)
{
	bench b = bench_open();
	char *text = malloc(TEXT);
	bool good = text != NULL;

	for (size_t k = 0; good && k < sizeof chains / sizeof chains[0]; k++)
		if (is_wanted(&chains[k], argc, argv))
			good &= bench_chain(&b, text, &chains[k]);
	if (good && argc < 2)
		good = bench_few(&b, text, &chains[0]);
	free(text);
	bench_close(&b);
	return !good;
}
