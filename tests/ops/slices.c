/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the columns `slice` and `partial` of every operator definition.
 *
 * A part of an output, computed by the op that om_slice_op() builds from parts of the inputs, must have the bits of
 * that part of what the op computes, for all axes, by the reference kernels; the parts of the inputs must be monotone
 * in the bounds of the part, and an axis that can be divided can be divided everywhere.  Contributions of parts of an
 * axis that is summed over must add up to the output, within a tolerance.  The cases are the recipes of the walk and
 * those of slice_cases.c.  A definition that has the column and is never computed in parts by it fails.
 *
 * Prints TAP, a test per definition.  Arguments, if any, are the names of the operators to check. */
#include <config.h>

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "../same.h"
#include "base/arena_internal.h"
#include "base/convert_elements.h"
#include "base/rng.h"
#include "base/shape.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "opdef/slice.h"
#include "slice_cases.h"

enum { NEWEST = 28, MOST_OUTPUTS = 8, MOST_RANGES = 24, FEW = 5, MOST_SHOWN = 8 };

static unsigned failures, shown;   /* those of the definition at hand are shown up to a number */

/* How often the columns of a definition were used, on parts that are not the whole axis. */
struct uses {
	unsigned slices, partials;
};

static void OM_PRINTF(2, 3)
fail(const struct trial *t, const char *fmt, ...)
{
	va_list ap;

	failures++;
	if (++shown > MOST_SHOWN)
		return;
	printf("# %s-%d variant %u, %s: ", t->row->name, t->version, t->variant,
		t->op && t->op->nin && t->op->in[0] ? om_dtype_text(t->op->in[0]->type.elem) : "no input");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* ---- Execution by reference kernels. ---- */

static void *
aligned(om_arena *mem, uint64_t bytes)
{
	const uintptr_t at = (uintptr_t)om_alloc(mem, bytes + 128);

	return (void *)((at + 63) / 64 * 64);
}

static om_status
compute(struct trial *t, om_op *op)
{
	om_arena *mem = t->prog->mem;
	om_op_context c;

	om_op_context_init(&c, t->session, mem, op);
	c.keep = mem;
	c.precise = true;
	for (uint32_t k = 0; k < op->nout; k++) {
		uint64_t bytes;
		if (!op->out[k])
			continue;
		if (!om_tensor_bytes(c.out[k].type, &c.out[k].shape, &bytes))
			return om_fail(t->session, OM_SHAPE, "the shape of output %u is not known", k);
		c.out[k].data = aligned(mem, bytes);
	}
	OM_TRY(om_kernel_bind(&c, NULL));
	c.scratch = aligned(mem, om_kernel_workspace(&c));
	OM_TRY(om_kernel_run(&c));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k]) {
			op->out[k]->data = om_memdup(mem, &c.out[k], sizeof c.out[k]);
			op->out[k]->is_const = true;
		}
	return OM_OK;
}

/* Compute the ops from the one after `last`, or from the first, that are before the tried op. */
static om_status
compute_after(struct trial *t, om_op *last)
{
	for (om_op *op = last ? last->next : t->op->block->first; op != t->op; op = op->next)
		OM_TRY(compute(t, op));
	return OM_OK;
}

/* ---- Comparison. ---- */

static double
number_at(const om_tensor *t, int64_t k)
{
	const size_t size = om_dtype_bits(t->type) / 8;
	double v;

	if (size == 0 || t->type == OM_STRING)
		return NAN;
	om_convert(OM_FLOAT64, &v, t->type, (const char *)t->data + (size_t)k * size, 1, true);
	return v;
}

static double
tolerance(om_dtype t)
{
	return t == OM_FLOAT16 ? 2e-2 : t == OM_BFLOAT16 ? 1.5e-1 : t == OM_FLOAT64 ? 1e-10 : om_dtype_is_float(t) ? 1e-4 : 0;
}

/* Sums whose reference kernels add in an order that depends on sizes.  Products of float32, which 16-bit floats use, too, do
 * so where they have a few rows or columns alone; reductions also of double, and of any number of elements.  They are exact
 * for integers. */
enum { FEW_ROWS = 3 };

static const struct { const char *name; bool is_product; } sums[] = {
	{"Conv", true}, {"ConvTranspose", true}, {"FusedConv", true}, {"FusedGemm", true}, {"FusedMatMul", true},
	{"Gemm", true}, {"MatMul", true}, {"MatMulNBits", true}, {"NhwcConv", true}, {"NhwcFusedConv", true},
	{"TransposeMatMul", true},
	{"ReduceL1", false}, {"ReduceL2", false}, {"ReduceLogSum", false}, {"ReduceLogSumExp", false}, {"ReduceMean", false},
	{"ReduceProd", false}, {"ReduceSum", false}, {"ReduceSumSquare", false},
	{"LogSoftmax", false}, {"Softmax", false},
};

/* The relative difference that is tolerated of a part of this type. */
static double
tolerated(const struct trial *t, om_part p, om_dtype type)
{
	const bool is_exact = type == OM_FLOAT64 || p.hi - p.lo > FEW_ROWS;

	for (size_t k = 0; k < sizeof sums / sizeof sums[0]; k++)
		if (strcmp(sums[k].name, t->row->name) == 0)
			return sums[k].is_product && is_exact ? 0 : tolerance(type);
	return 0;
}

/* Is `y` the part `p` of `x`, within the tolerance, 0 for the same bits?  If not, *at is the first element of `y` that
 * differs. */
static bool
is_part(const om_tensor *x, om_part p, const om_tensor *y, double most, int64_t *at)
{
	const int axis = p.axis == OM_WHOLE ? 0 : p.axis;
	const int64_t inner = om_shape_span(&x->shape, p.axis == OM_WHOLE ? 0 : axis + 1, x->shape.rank);
	const int64_t n = p.axis == OM_WHOLE ? 1 : x->shape.dim[axis], lo = p.axis == OM_WHOLE ? 0 : p.lo;
	const int64_t m = p.axis == OM_WHOLE ? 1 : p.hi - p.lo;

	if (x->type != y->type)
		return false;
	for (*at = 0; *at < om_shape_count(&y->shape); ++*at) {
		const int64_t i = *at / inner, from = (i / m * n + lo + i % m) * inner + *at % inner;
		if (!same_elements(x, from, y, *at)
		    && !(fabs(number_at(x, from) - number_at(y, *at)) <= most * fmax(1, fabs(number_at(x, from)))))
			return false;
	}
	return true;
}

/* An element, or what it is the logarithm of; that of a sum below 0 is none. */
static double
term_at(const om_tensor *t, int64_t k, bool is_log)
{
	const double v = number_at(t, k);

	return !is_log ? v : isnan(v) ? 0 : exp(v);
}

/* Are the elements the same within the tolerance, relative to the largest one?  Logarithms are compared as what they are
 * of, since those of small sums differ more. */
static bool
is_near(const om_tensor *x, const om_tensor *y, bool is_log)
{
	double most = 1;

	if (x->type != y->type || !om_shape_equal(&x->shape, &y->shape))
		return false;
	if (tolerance(x->type) == 0)
		return same_tensors(x, y);
	for (int64_t k = 0; k < om_shape_count(&x->shape); k++)
		most = fmax(most, fabs(term_at(x, k, is_log)));
	for (int64_t k = 0; k < om_shape_count(&x->shape); k++) {
		const double a = term_at(x, k, is_log), b = term_at(y, k, is_log);
		if (!(fabs(a - b) <= tolerance(x->type) * most) && !(isnan(a) && isnan(b)) && a != b)
			return false;
	}
	return true;
}

/* ---- Parts of an output. ---- */

/* All ranges of a short axis; of a long one, both ends, halves, and random ones. */
static int
ranges_of(struct trial *t, int64_t n, om_part *p)
{
	int count = 0;

	for (int64_t lo = 0; n <= FEW && lo < n; lo++)
		for (int64_t hi = lo + 1; hi <= n; hi++)
			p[count++] = (om_part){0, lo, hi};
	if (n <= FEW)
		return count;
	const int64_t fixed[][2] = {{0, n}, {0, 1}, {n - 1, n}, {0, n / 2}, {n / 2, n}, {1, n}, {0, n - 1}};
	for (size_t k = 0; k < sizeof fixed / sizeof fixed[0]; k++)
		p[count++] = (om_part){0, fixed[k][0], fixed[k][1]};
	for (int k = 0; k < 5; k++) {
		const int64_t lo = (int64_t)(om_rng_unit(&t->state) * (double)n);
		const int64_t hi = lo + 1 + (int64_t)(om_rng_unit(&t->state) * (double)(n - lo));
		p[count++] = (om_part){0, lo, hi < n ? hi : n};
	}
	return count;
}

static bool
is_sane(const om_part *p, const om_value *v)
{
	if (!v || p->axis == OM_WHOLE || om_part_is_none(p))
		return !v || p->lo == p->hi;
	return p->axis >= 0 && p->axis < v->shape.rank && p->lo >= 0 && p->lo <= p->hi && p->hi <= v->shape.dim[p->axis];
}

static bool
are_parts_sane(const struct trial *t, const om_slice *s)
{
	for (uint32_t k = 0; k < t->op->nin; k++)
		if (!is_sane(&s->in[k], t->op->in[k])) {
			fail(t, "the part [%lld, %lld) of input %u along axis %d is outside of it", (long long)s->in[k].lo,
				(long long)s->in[k].hi, k, s->in[k].axis);
			return false;
		}
	return s->before >= 0 && s->after >= 0;
}

/* Of two parts of which `b` is not before `a`, input by input. */
static void
check_monotone(const struct trial *t, const om_part *a, const om_slice *of_a, const om_part *b, const om_slice *of_b)
{
	if (a->lo > b->lo || a->hi > b->hi)
		return;
	for (uint32_t k = 0; k < t->op->nin; k++) {
		const om_part *x = &of_a->in[k], *y = &of_b->in[k];
		if (x->axis != y->axis && (om_part_is_none(x) || om_part_is_none(y)))
			continue;
		if (x->axis != y->axis || x->lo > y->lo || x->hi > y->hi)
			fail(t, "input %u: [%lld, %lld) needs [%lld, %lld), but [%lld, %lld) needs [%lld, %lld) of axis %d", k,
				(long long)a->lo, (long long)a->hi, (long long)x->lo, (long long)x->hi, (long long)b->lo,
				(long long)b->hi, (long long)y->lo, (long long)y->hi, y->axis);
	}
}

/* Cut the inputs.  Those that are left out are NULL. */
static om_status
cut_inputs(struct trial *t, const om_slice *s, om_value **in)
{
	for (uint32_t k = 0; k < t->op->nin; k++) {
		in[k] = NULL;
		if (t->op->in[k] && !om_part_is_none(&s->in[k]))
			OM_TRY(om_slice_value(t->session, t->prog, t->op->in[k], s->in[k], t->op, &in[k]));
	}
	return OM_OK;
}

static om_status
build_part(struct trial *t, uint32_t out, om_part p, const om_slice *s, om_value **made)
{
	om_value *in[MOST_INPUTS];
	om_op *last = t->op->prev;

	OM_TRY(cut_inputs(t, s, in));
	OM_TRY(om_slice_op(t->session, t->prog, t->op, out, p, in, t->op, made));
	return compute_after(t, last);
}

static void
check_part(struct trial *t, uint32_t out, om_part p, const om_slice *s)
{
	om_value *made[MOST_OUTPUTS];
	int64_t at = 0;

	if (build_part(t, out, p, s, made) != OM_OK) {
		fail(t, "[%lld, %lld) of axis %d of output %u: %s", (long long)p.lo, (long long)p.hi, p.axis, out,
			om_message(t->session));
		return;
	}
	for (uint32_t k = 0; k < t->op->nout; k++)
		if (made[k] && !is_part(t->op->out[k]->data, s->out[k], made[k]->data, tolerated(t, p, made[k]->type.elem), &at))
			fail(t, "[%lld, %lld) of axis %d of output %u differs at element %lld", (long long)p.lo, (long long)p.hi,
				p.axis, k, (long long)at);
	if (!made[out])
		fail(t, "output %u is not computed", out);
}

static void
check_axis(struct trial *t, uint32_t out, int axis, struct uses *uses)
{
	const int64_t n = t->op->out[out]->shape.dim[axis];
	om_part p[MOST_RANGES];
	om_slice s[MOST_RANGES];
	bool is_possible[MOST_RANGES];
	const int count = ranges_of(t, n, p);
	int possible = 0;

	for (int k = 0; k < count; k++) {
		p[k].axis = axis;
		is_possible[k] = om_op_slice(t->prog->mem, t->op, out, p[k], &s[k]);
		possible += is_possible[k];
		if (!is_possible[k] || !are_parts_sane(t, &s[k]))
			continue;
		check_part(t, out, p[k], &s[k]);
		uses->slices += p[k].hi - p[k].lo < n;
		for (int i = 0; i < k; i++)
			if (is_possible[i]) {
				check_monotone(t, &p[i], &s[i], &p[k], &s[k]);
				check_monotone(t, &p[k], &s[k], &p[i], &s[i]);
			}
	}
	if (possible && possible < count)
		fail(t, "%d of %d parts along axis %d of output %u are possible", possible, count, axis, out);
}

/* ---- Contributions. ---- */

static om_status
add_contribution(struct trial *t, uint32_t in, om_part p, om_slice *s, om_value **sum)
{
	om_value *parts[MOST_INPUTS], *made;
	om_op *last = t->op->prev;

	if (!om_op_partial(t->prog->mem, t->op, in, p, s))
		return om_fail(t->session, OM_INVALID, "there is no contribution");
	OM_TRY(cut_inputs(t, s, parts));
	OM_TRY(om_partial_op(t->session, t->prog, t->op, in, p, parts, t->op, &made));
	if (*sum)
		OM_TRY(om_partial_combine(t->session, t->prog, t->op, s, *sum, made, t->op, &made));
	*sum = made;
	return compute_after(t, last);
}

static void
check_contributions(struct trial *t, uint32_t in, int axis, const int64_t *cut, int ncut, struct uses *uses)
{
	om_value *sum = NULL;
	om_op *last;
	om_slice s;
	om_status st = OM_OK;

	for (int k = 0; k + 1 < ncut && st == OM_OK; k++)
		st = add_contribution(t, in, (om_part){axis, cut[k], cut[k + 1]}, &s, &sum);
	last = t->op->prev;
	if (st == OM_OK)
		st = om_partial_finish(t->session, t->prog, t->op, &s, sum, t->op, &sum);
	if (st == OM_OK)
		st = compute_after(t, last);
	if (st != OM_OK)
		fail(t, "contributions of axis %d of input %u: %s", axis, in, om_message(t->session));
	else if (!is_near(t->op->out[0]->data, sum->data, s.finish && strcmp(s.finish, "Log") == 0))
		fail(t, "contributions of axis %d of input %u do not add up", axis, in);
	uses->partials += ncut > 2;
}

static void
check_sums(struct trial *t, uint32_t in, struct uses *uses)
{
	for (int axis = 0; axis < t->op->in[in]->shape.rank; axis++) {
		const int64_t n = t->op->in[in]->shape.dim[axis], third = (n + 2) / 3;
		om_slice s;
		if (n < 2 || !om_op_partial(t->prog->mem, t->op, in, (om_part){axis, 0, n}, &s))
			continue;
		check_contributions(t, in, axis, (int64_t[]){0, 1, n}, 3, uses);
		check_contributions(t, in, axis, (int64_t[]){0, n - 1, n}, 3, uses);
		check_contributions(t, in, axis, (int64_t[]){0, n}, 2, uses);
		if (2 * third < n)
			check_contributions(t, in, axis, (int64_t[]){0, third, 2 * third, n}, 4, uses);
	}
}

/* ---- The walk. ---- */

/* The opset that ops of the trial are of. */
static void
import_opset(struct trial *t)
{
	om_opset *o = OM_NEW(t->prog->mem, om_opset);

	if (t->prog->nopset)
		return;
	*o = (om_opset){"", t->row->domain && *t->row->domain ? 22 : t->version};
	t->prog->opset = o;
	t->prog->nopset = 1;
}

static void
check_op(struct trial *t, struct uses *uses)
{
	for (uint32_t k = 0; k < t->op->nout; k++)
		for (int axis = 0; t->op->out[k] && axis < t->op->out[k]->shape.rank; axis++)
			check_axis(t, k, axis, uses);
	for (uint32_t k = 0; k < t->op->nin && om_opdef_has_partial(t->row); k++)
		if (t->op->in[k])
			check_sums(t, k, uses);
}

static bool
is_known(const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !om_shape_is_known(&op->out[k]->shape))
			return false;
	return true;
}

static bool
try_variant(struct trial *t, recipe_fn *make, struct uses *uses)
{
	trial_start(t);
	const bool more = make(t);
	if (more) {
		import_opset(t);
		om_status st = om_op_infer(t->session, t->prog, t->op);
		if (st == OM_OK)
			st = compute(t, t->op);
		if (st == OM_OK && is_known(t->op))
			check_op(t, uses);
		else if (st != OM_UNSUPPORTED)
			fail(t, "cannot be computed: %s", om_message(t->session));
	}
	trial_end(t);
	return more;
}

static void
try_version(const om_opdef *row, recipe_fn *make, int version, struct uses *uses)
{
	struct trial t = {.row = row, .version = version};

	while (make && try_variant(&t, make, uses))
		t.variant++;
}

static void
try_row(const om_opdef *row, struct uses *uses)
{
	const int newest = row->until ? row->until : row->since > NEWEST ? row->since : NEWEST;

	try_version(row, recipe_of(row), row->since, uses);
	if (newest != row->since)
		try_version(row, recipe_of(row), newest, uses);
	try_version(row, slice_cases_of(row), newest, uses);
	try_version(row, slice_lines_of(row), newest, uses);
	if (om_opdef_has_slice(row) && !uses->slices)
		fail(&(struct trial){.row = row, .version = row->since}, "was never computed in parts: add a case to slice_cases.c");
	if (om_opdef_has_partial(row) && !uses->partials)
		fail(&(struct trial){.row = row, .version = row->since}, "was never summed in parts: add a case to slice_cases.c");
}

int
main(int argc, char **argv)
{
	unsigned rows = 0;

	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
		const unsigned before = failures;
		struct uses uses = {0, 0};
		shown = 0;
		if (!is_row_wanted(r, argc, argv) || (!om_opdef_has_slice(r) && !om_opdef_has_partial(r)))
			continue;
		try_row(r, &uses);
		printf("%s %u - %s from version %d, %u parts, %u sums\n", failures == before ? "ok" : "not ok", ++rows, r->name,
			r->since, uses.slices, uses.partials);
	}
	printf("1..%u\n", rows);
	return failures || !rows ? EXIT_FAILURE : EXIT_SUCCESS;
}
