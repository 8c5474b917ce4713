/* SPDX-License-Identifier: Apache-2.0 */
/* Tiling: random regions of random programs run in bands, and give the same bits; sums over a divided axis, nearly. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../same.h"
#include "base/rng.h"
#include "lower/tile/tile_internal.h"
#include "unit.h"

enum { PROGRAMS = 1000, LOWERED = 400, VALUES = 40, TRIES = 40, COPIES = 3 };

static const char simplify[] = "inline,shapes,fold,prune";
static const char lower[] = "inline,shapes,fold,prune,fuse:norm=fold,fuse-norm,fuse-attention,merge-products,lower-rnn,lower-layout,fuse-epilogue,"
	"fuse-elementwise,prune";
static const char order[] = "schedule=original,liveness,views,alias-io=declared,inplace,loops,pack";

/* A program under construction. */
struct maker {
	uint64_t state;
	const char *type;         /* of all values */
	FILE *to;
	int64_t dim[VALUES][4];   /* of images, or tokens with dim[1] == 0 */
	uint32_t n, nweight;
};

static int64_t
below(struct maker *m, int64_t n)
{
	return (int64_t)om_rng_below(&m->state, (uint64_t)n);
}

static void
write_const(struct maker *m, const char *name, int rank, const int64_t *dim)
{
	int64_t count = 1;

	fprintf(m->to, "\t%%%s%u = const %s[", name, m->nweight, m->type);
	for (int d = 0; d < rank; d++) {
		fprintf(m->to, "%s%lld", d ? "," : "", (long long)dim[d]);
		count *= dim[d];
	}
	fprintf(m->to, "] {");
	for (int64_t k = 0; k < count; k++)
		fprintf(m->to, "%s%.3f", k ? ", " : "", om_rng_unit(&m->state) - 0.5);
	fprintf(m->to, "}\n");
}

static void
add_value(struct maker *m, const int64_t *dim)
{
	memcpy(m->dim[m->n++], dim, sizeof m->dim[0]);
}

/* ---- Images. ---- */

static void
add_conv(struct maker *m, uint32_t x)
{
	const int64_t *d = m->dim[x], k = 1 + 2 * below(m, 3), dilation = 1 + below(m, 2), stride = 1 + below(m, 2);
	const bool is_deep = below(m, 3) == 0;
	const int64_t pad = below(m, 2) * (k / 2) * dilation, reach = (k - 1) * dilation + 1;
	const int64_t h = (d[2] + 2 * pad - reach) / stride + 1, w = (d[3] + 2 * pad - reach) / stride + 1;

	if (d[2] + 2 * pad < reach || d[3] + 2 * pad < reach)
		return;
	const int64_t channels = is_deep ? d[1] : 1 + below(m, 5);
	const int64_t weight[] = {channels, is_deep ? 1 : d[1], k, k};
	write_const(m, "w", 4, weight);
	write_const(m, "b", 1, &channels);
	fprintf(m->to, "\t%%v%u = Conv(%%v%u, %%w%u, %%b%u) {pads = [%lld, %lld, %lld, %lld], strides = [%lld, %lld], "
		"dilations = [%lld, %lld], group = %lld}\n", m->n, x, m->nweight, m->nweight, (long long)pad, (long long)pad,
		(long long)pad, (long long)pad, (long long)stride, (long long)stride, (long long)dilation, (long long)dilation,
		(long long)(is_deep ? d[1] : 1));
	m->nweight++;
	add_value(m, (const int64_t[]){d[0], channels, h, w});
}

static void
add_pool(struct maker *m, uint32_t x)
{
	const int64_t *d = m->dim[x], k = 2 + below(m, 2), stride = 1 + below(m, 2), pad = below(m, 2);
	const bool is_max = below(m, 2);

	if (d[2] + 2 * pad < k || d[3] + 2 * pad < k)
		return;
	fprintf(m->to, "\t%%v%u = %s(%%v%u) {kernel_shape = [%lld, %lld], strides = [%lld, %lld], "
		"pads = [%lld, %lld, %lld, %lld]}\n", m->n, is_max ? "MaxPool" : "AveragePool", x, (long long)k, (long long)k,
		(long long)stride, (long long)stride, (long long)pad, (long long)pad, (long long)pad, (long long)pad);
	add_value(m, (const int64_t[]){d[0], d[1], (d[2] + 2 * pad - k) / stride + 1, (d[3] + 2 * pad - k) / stride + 1});
}

static void
add_unary(struct maker *m, uint32_t x)
{
	static const char *const names[] = {"Relu", "Sigmoid", "Tanh", "Neg", "Softplus"};

	fprintf(m->to, "\t%%v%u = %s(%%v%u)\n", m->n, names[below(m, 5)], x);
	add_value(m, m->dim[x]);
}

/* Values of half the size, from which later bands take their rows. */
static void
add_narrow(struct maker *m, uint32_t x)
{
	if (strcmp(m->type, "float64") != 0)
		return;
	fprintf(m->to, "\t%%n%u = Cast(%%v%u) {to = 1}\n\t%%v%u = Cast(%%n%u) {to = 11}\n", m->n, x, m->n, m->n);
	add_value(m, m->dim[x]);
}

static void
add_binary(struct maker *m, uint32_t x)
{
	const uint32_t y = (uint32_t)below(m, m->n);

	if (memcmp(m->dim[x], m->dim[y], sizeof m->dim[x]) != 0)
		return;
	fprintf(m->to, "\t%%v%u = %s(%%v%u, %%v%u)\n", m->n, below(m, 2) ? "Add" : "Mul", x, y);
	add_value(m, m->dim[x]);
}

static void
add_concat(struct maker *m, uint32_t x)
{
	const uint32_t y = (uint32_t)below(m, m->n);
	const int64_t *d = m->dim[x], *e = m->dim[y];

	if (d[2] != e[2] || d[3] != e[3] || d[1] + e[1] > 12)
		return;
	fprintf(m->to, "\t%%v%u = Concat(%%v%u, %%v%u) {axis = 1}\n", m->n, x, y);
	add_value(m, (const int64_t[]){d[0], d[1] + e[1], d[2], d[3]});
}

/* Channels that are cut in two: along their axis, a part of one output computes nothing of the other. */
static void
add_split(struct maker *m, uint32_t x)
{
	const int64_t *d = m->dim[x], n = d[0], height = d[2], width = d[3], half = d[1] / 2;

	if (half == 0 || d[1] != 2 * half)
		return;
	fprintf(m->to, "\t%%v%u, %%v%u = Split(%%v%u) {axis = 1}\n", m->n, m->n + 1, x);
	add_value(m, (const int64_t[]){n, half, height, width});
	add_value(m, (const int64_t[]){n, half, height, width});
}

static void
add_global(struct maker *m, uint32_t x)
{
	const int64_t *d = m->dim[x];

	fprintf(m->to, "\t%%v%u = GlobalAveragePool(%%v%u)\n", m->n, x);
	add_value(m, (const int64_t[]){d[0], d[1], 1, 1});
	fprintf(m->to, "\t%%c%u = Neg(%%v%u)\n\t%%d%u = Sigmoid(%%c%u)\n", m->n, m->n - 1, m->n, m->n);
	fprintf(m->to, "\t%%v%u = Mul(%%v%u, %%d%u)\n", m->n, x, m->n);
	add_value(m, d);
}

/* ---- Tokens: dims are {1, 0, tokens, features}. ---- */

static void
add_product(struct maker *m, uint32_t x)
{
	const int64_t *d = m->dim[x], features = 2 + below(m, 7), weight[] = {d[3], features};

	write_const(m, "w", 2, weight);
	fprintf(m->to, "\t%%v%u = MatMul(%%v%u, %%w%u)\n", m->n, x, m->nweight++);
	add_value(m, (const int64_t[]){1, 0, d[2], features});
}

/* Attention without scaling: scores between all tokens. */
static void
add_attention(struct maker *m, uint32_t x)
{
	const int64_t *d = m->dim[x];

	fprintf(m->to, "\t%%t%u = Transpose(%%v%u) {perm = [0, 2, 1]}\n", m->n, x);
	fprintf(m->to, "\t%%s%u = MatMul(%%v%u, %%t%u)\n", m->n, x, m->n);
	fprintf(m->to, "\t%%p%u = Softmax(%%s%u) {axis = -1}\n", m->n, m->n);
	fprintf(m->to, "\t%%v%u = MatMul(%%p%u, %%v%u)\n", m->n, m->n, x);
	add_value(m, d);
}

/* A packed product, cut into two blocks. */
static void
add_packed(struct maker *m, uint32_t x)
{
	const int64_t *d = m->dim[x], half = 1 + below(m, 4), weight[] = {d[3], 2 * half};
	const uint32_t name = m->n;

	write_const(m, "w", 2, weight);
	write_const(m, "b", 1, &weight[1]);
	fprintf(m->to, "\t%%q%u = MatMul(%%v%u, %%w%u)\n\t%%r%u = Add(%%q%u, %%b%u)\n", name, x, m->nweight, name, name,
		m->nweight);
	m->nweight++;
	fprintf(m->to, "\t%%v%u, %%v%u = Split(%%r%u) {axis = -1}\n", name, name + 1, name);
	add_value(m, (const int64_t[]){1, 0, d[2], half});
	add_value(m, (const int64_t[]){1, 0, d[2], half});
}

static void
add_norm(struct maker *m, uint32_t x)
{
	const int64_t *d = m->dim[x];

	write_const(m, "g", 1, &d[3]);
	fprintf(m->to, "\t%%v%u = LayerNormalization(%%v%u, %%g%u)\n", m->n, x, m->nweight++);
	add_value(m, d);
}

/* ---- Programs. ---- */

typedef void add_op(struct maker *m, uint32_t x);

static void
write_results(struct maker *m)
{
	fprintf(m->to, "\tret %%v%u", m->n - 1);
	if (below(m, 3) == 0)
		fprintf(m->to, ", %%v%u", 1 + (uint32_t)below(m, m->n - 1));
	fprintf(m->to, "\n}\n");
}

static char *
make_program(uint64_t seed, const char *type)
{
	static add_op *const image[] = {add_conv, add_conv, add_conv, add_pool, add_unary, add_narrow, add_binary, add_concat,
		add_split, add_global};
	static add_op *const token[] = {add_product, add_packed, add_attention, add_norm, add_unary, add_binary, add_narrow};
	struct maker m = {.state = seed, .type = type};
	char *text;
	size_t size;

	m.to = open_memstream(&text, &size);
	const bool is_image = below(&m, 3) != 0;
	const int64_t first[] = {1, is_image ? 1 + below(&m, 4) : 0, 4 + below(&m, 14), 4 + below(&m, 9)};
	fprintf(m.to, "program \"\" ir 8 opset 17\n^main(%%v0: %s[1,", type);
	if (is_image)
		fprintf(m.to, "%lld,", (long long)first[1]);
	fprintf(m.to, "%lld,%lld]) {\n", (long long)first[2], (long long)first[3]);
	add_value(&m, first);
	for (uint32_t k = 0, most = 3 + (uint32_t)below(&m, 10); k < most || m.n < 3; k++) {
		const uint32_t x = below(&m, 3) ? m.n - 1 : (uint32_t)below(&m, m.n);
		if (is_image)
			image[below(&m, 10)](&m, x);
		else
			token[below(&m, 7)](&m, x);
	}
	write_results(&m);
	fclose(m.to);
	return text;
}

/* ---- Runs. ---- */

static bool
run_planned(bench *b, om_exec_options *o, uint64_t seed)
{
	om_tensor x = tensor_zero(b->mem, b->p->first->param[0]->type.elem, &b->p->first->param[0]->shape);

	for (int64_t k = 0; k < om_shape_count(&x.shape); k++)
		set_element(&x, k, om_rng_unit(&seed) * 2 - 1);
	if (!is_ok(b->s, om_verify(b->s, b->p)) || !is_ok(b->s, om_host_run(b->h, b->p, order))
	    || !is_ok(b->s, om_plan_verify(b->s, b->p, b->p->plan)))
		return false;
	return is_ok(b->s, bench_exec(b, o)) && is_ok(b->s, bench_run(b, &x, 1));
}

static bool
is_near(const om_tensor *a, const om_tensor *b)
{
	const double tolerance = a->type == OM_FLOAT64 ? 1e-9 : 1e-4;

	if (!om_shape_equal(&a->shape, &b->shape))
		return false;
	for (int64_t k = 0; k < om_shape_count(&a->shape); k++)
		if (!(fabs(element_at(a, k) - element_at(b, k)) <= tolerance * (1 + fabs(element_at(a, k)))))
			return false;
	return true;
}

static bool
is_equal(const bench *a, const bench *b, bool is_sum)
{
	bool equal = true;

	for (uint32_t k = 0; k < a->p->first->nresult; k++) {
		const om_tensor *x = om_exec_result(a->e, k), *y = om_exec_result(b->e, k);
		equal &= is_sum ? is_near(x, y) : same_tensors(x, y);
	}
	return equal;
}

/* ---- Regions. ---- */

struct counts {
	unsigned packed, copied, expanded, tiled, of_axis[OM_TILE_AXES], of_join[OM_TILE_JOINS];
};

static const uint64_t *
sizes(om_arena *mem, const om_prog *p)
{
	uint64_t *bytes = OM_NEWN(mem, uint64_t, p->nvalue);

	for (uint32_t k = 0; k < p->nvalue; k++)
		bytes[k] = p->values[k]->def ? om_value_bytes(p->values[k]) : 0;
	return bytes;
}

/* In every other program, some values are computed a second time for their late readers. */
static om_status
copy_values(bench *b, uint64_t *state, om_tile_request *request, unsigned *copied)
{
	for (int k = 0; k < COPIES && om_rng_below(state, 2); k++) {
		om_tile_graph *g = om_tile_graph_new(b->p, request, b->mem);
		size_t n;
		const om_tile_copy *c = om_tile_copies(g, 0, (uint32_t)om_rng_below(state, g->nop), 1, 1e9, b->mem, &n);
		if (n == 0)
			return OM_OK;
		OM_TRY(om_tile_copy_make(b->s, b->p, &c[om_rng_below(state, n)], b->mem, request));
		++*copied;
	}
	return OM_OK;
}

/* A region that can be tiled so; false: none was met.  The reference kernel of Softmax adds in an order that depends on
 * sizes; those of Conv and MatMul only do for float32. */
static bool
pick(om_tile_graph *g, uint64_t *state, om_arena *mem, om_tile_choice *c, bool *is_sum, struct counts *n)
{
	for (int k = 0; k < TRIES; k++) {
		const uint32_t first = (uint32_t)om_rng_below(state, g->nop), end = first + 1 + (uint32_t)om_rng_below(state, g->nop - first);
		om_tile_region r;
		om_tile_code code;
		*c = (om_tile_choice){first, end, (om_tile_axis)om_rng_below(state, OM_TILE_AXES),
			(om_tile_join)om_rng_below(state, OM_TILE_JOINS), 2 + (uint32_t)om_rng_below(state, 5), 0};
		if (!om_tile_region_new(g, first, end, c->axis, mem, &r) || !om_tile_code_new(&r, c->bands, c->join, mem, &code))
			continue;
		*is_sum = false;
		for (size_t b = 0; b < r.nband; b++)
			n->expanded += r.is_expansion[b];
		for (size_t b = 0; b < r.nband; b++)
			*is_sum |= r.band[b]->is_sum || strcmp(r.band[b]->op->type, "Softmax") == 0;
		const uint64_t peak = om_tile_sweep(g, &code, &r, NULL);
		CU_ASSERT_TRUE(om_tile_bound(&r, c->bands, c->join, mem) <= peak);
		return peak > 0;
	}
	return false;
}

/* A program in bands, and as it is; `lowered`: both for the executor, of float32. */
static bool
is_same_in_bands(uint64_t seed, bool lowered, struct counts *n)
{
	const char *passes = lowered ? lower : simplify;
	om_exec_options o = OM_EXEC_OPTIONS(.poison = true, .precise = !lowered);
	bench a = bench_open(), b = bench_open();
	char *text = make_program(seed, lowered ? "float32" : "float64");
	om_tile_choice choice;
	bool is_sum, good = is_ok(a.s, bench_plan(&a, text, passes)) && is_ok(b.s, bench_plan(&b, text, passes));

	if (good) {
		uint32_t packed;
		good = is_ok(b.s, om_tile_unpack(b.s, b.p, &packed));
		n->packed += packed;
		om_tile_request request = {.bytes = sizes(b.mem, b.p)};
		uint64_t state = seed ^ 77;
		good &= is_ok(b.s, copy_values(&b, &state, &request, &n->copied));
		om_tile_graph *g = om_tile_graph_new(b.p, &request, b.mem);
		if (good && pick(g, &state, b.mem, &choice, &is_sum, n)) {
			const om_tile_plan plan = {.choice = &choice, .n = 1};
			good = is_ok(b.s, om_tile_apply(b.s, b.p, &request, &plan)) && run_planned(&a, &o, seed)
				&& run_planned(&b, &o, seed) && is_equal(&a, &b, is_sum || lowered);
			n->tiled++;
			n->of_axis[choice.axis]++;
			n->of_join[choice.join]++;
		}
	}
	if (!good)
		printf("# seed %llu: ops %u to %u, axis %d, join %d, %u bands\n%s", (unsigned long long)seed, choice.first, choice.end,
			choice.axis, choice.join, choice.bands, text);
	free(text);
	bench_close(&a);
	bench_close(&b);
	return good;
}

static void
random_regions(void)
{
	struct counts n = {0};

	for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
		CU_ASSERT_TRUE_FATAL(is_same_in_bands(seed, false, &n));
	CU_ASSERT_TRUE(n.tiled > PROGRAMS / 2);
	CU_ASSERT_TRUE(n.packed > PROGRAMS / 50);
	CU_ASSERT_TRUE(n.copied > PROGRAMS / 20);
	CU_ASSERT_TRUE(n.expanded > PROGRAMS / 50);
	for (int k = 0; k < OM_TILE_AXES; k++)
		CU_ASSERT_TRUE(n.of_axis[k] > PROGRAMS / 50);
	for (int k = 0; k < OM_TILE_JOINS; k++)
		CU_ASSERT_TRUE(n.of_join[k] > PROGRAMS / 50);
}

/* Kernels of the executor, on channels-last images and with packed weights. */
static void
random_lowered_regions(void)
{
	struct counts n = {0};

	for (uint64_t seed = 1; seed <= LOWERED; seed++)
		CU_ASSERT_TRUE_FATAL(is_same_in_bands(seed, true, &n));
	CU_ASSERT_TRUE(n.tiled > LOWERED / 2);
	CU_ASSERT_TRUE(n.of_axis[OM_TILE_ROWS] > LOWERED / 4);
}

/* ---- Copies. ---- */

/* A large value that is read at once, for its mean, and once more after it. */
static const char excited[] =
	"program \"\" ir 8 opset 17\n"
	"^main(%x: float32[1,2,32,32], %w: float32[16,2,1,1], %t: float32[16,16,1,1], %u: float32[1,16,1,1]) {\n"
	"\t%a = Conv(%x, %w)\n"
	"\t%b = Relu(%a)\n"
	"\t%m = GlobalAveragePool(%b)\n"
	"\t%c = Conv(%m, %t)\n"
	"\t%d = Sigmoid(%c)\n"
	"\t%e = Mul(%b, %d)\n"
	"\t%y = Conv(%e, %u)\n"
	"\tret %y\n}\n";

static om_tile_plan
search_with(bench *b, double most_flops)
{
	const om_tile_request request = {.bytes = sizes(b->mem, b->p), .most_ops = 400, .effort = 1 << 20, .most_flops = most_flops};
	om_tile_plan plan;

	om_tile_searcher *s = om_tile_searcher_new(b->s, b->p, &request, b->mem);
	CU_ASSERT_TRUE(is_ok(b->s, om_tile_search(s, true, &plan)));
	om_tile_search_explain(s, &plan);
	om_tile_searcher_end(s);
	return plan;
}

static void
copies_within_the_limit(void)
{
	bench b = bench_open();
	const uint64_t whole = 4 * 16 * 32 * 32;
	const double again = 16 * 32 * 32 * 5;

	CU_ASSERT_TRUE_FATAL(is_ok(b.s, bench_plan(&b, excited, simplify)));
	const om_tile_plan none = search_with(&b, 0), few = search_with(&b, again - 1000), enough = search_with(&b, again + 1000);
	CU_ASSERT_EQUAL(none.ncopy, 0);
	CU_ASSERT_TRUE(none.after >= whole);
	CU_ASSERT_EQUAL(few.ncopy, 0);
	CU_ASSERT_EQUAL(few.after, none.after);
	CU_ASSERT_EQUAL_FATAL(enough.ncopy, 1);
	CU_ASSERT_EQUAL(enough.copy[0].nop, 2);
	CU_ASSERT_TRUE(enough.after < whole / 2);
	bench_close(&b);
}

/* ---- Answers. ---- */

/* Nothing but the product can run in bands: the sum needs all that it makes, and the reshaped value has no rows left. */
static const char stubborn[] =
	"program \"\" ir 8 opset 17\n"
	"^main(%x: float32[64,4], %w: float32[4,64]) {\n"
	"\t%a = MatMul(%x, %w)\n"
	"\t%zero = const int64[] {0}\n"
	"\t%b = CumSum(%a, %zero)\n"
	"\t%one = const int64[] {1}\n"
	"\t%c = CumSum(%b, %one)\n"
	"\t%y = MatMul(%w, %c)\n"
	"\tret %y\n}\n";

static void
answers_agree(const om_tile_plan *t)
{
	CU_ASSERT_TRUE_FATAL(t->npeak > 0);
	CU_ASSERT_EQUAL(t->peak[0].bytes, t->before);
	CU_ASSERT_EQUAL(t->peak[t->npeak - 1].bytes, t->after);
	for (size_t k = 1; k < t->npeak; k++)
		CU_ASSERT_TRUE(t->peak[k].bytes < t->peak[k - 1].bytes);
	CU_ASSERT_TRUE(t->missed < t->after);
	CU_ASSERT_TRUE(t->missed == 0 || t->stop.why);
	for (size_t k = 0; k < t->noutside; k++) {
		CU_ASSERT_TRUE(t->outside[k].op && t->outside[k].why);
		CU_ASSERT_TRUE(k == 0 || t->outside[k].bytes <= t->outside[k - 1].bytes);
	}
	CU_ASSERT_TRUE(t->floor_op && t->floor > 0 && t->floor <= t->after);
}

static om_tile_plan
search_text(bench *b, const char *text, double most_flops)
{
	CU_ASSERT_TRUE_FATAL(is_ok(b->s, bench_plan(b, text, simplify)));
	const om_tile_plan t = search_with(b, most_flops);
	answers_agree(&t);
	return t;
}

static void
answers(void)
{
	bench a = bench_open(), b = bench_open(), c = bench_open();

	const om_tile_plan plain = search_text(&a, excited, 0), twice = search_text(&b, excited, 1e9);
	CU_ASSERT_PTR_NOT_NULL(plain.stop.op);
	CU_ASSERT_TRUE(twice.peak[twice.npeak - 1].copies > 0 && plain.peak[plain.npeak - 1].copies == 0);
	const om_tile_plan none = search_text(&c, stubborn, 0);
	CU_ASSERT_EQUAL(none.n, 0);
	CU_ASSERT_TRUE_FATAL(none.noutside > 0);
	CU_ASSERT_TRUE(none.outside[0].bytes >= 4 * 64 * 64);
	bench_close(&a);
	bench_close(&b);
	bench_close(&c);
}

static CU_TestInfo tile_tests[] = {
	{"peaks, reasons and the floor agree", answers},
	{"values are computed twice within the limit of the work", copies_within_the_limit},
	{"random regions in bands give the same, and take no less than their bounds", random_regions},
	{"random regions of lowered programs give the same", random_lowered_regions},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("tile", tile_tests);
