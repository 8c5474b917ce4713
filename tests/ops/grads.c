/* SPDX-License-Identifier: Apache-2.0 */
/* Checks every gradient rule in the operator table against central differences.
 *
 * An op on random inputs becomes a program whose loss is a sum of all elements of its outputs, each
 * times a random number; floating-point inputs become parameters, in float64 if there is a kernel for
 * that.  The gradient that the rule builds has to agree with differences of the loss along random
 * directions, and along single elements.  Each trial is run with all dims known, and with none of them
 * known before the run; and, if an operator has a fused gradient op, with that.
 *
 * Then every rule is differentiated: the sum of the squares of all gradients becomes the loss, so that
 * the ops that rules build are differentiated by the rules of those.
 *
 * Mutants, rules with a deliberate error, have to be detected.  With --parts, for
 * tests/grad/tags.test, the number of checks per input and output is printed.
 *
 * Prints TAP, a test per operator definition and one per mutant.  Arguments, if any, are the names of
 * the operators to try, or --mutants: only the mutants; --twice: only second derivatives. */
#include <config.h>

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/rng.h"
#include "onnxmem/autodiff.h"
#include "base/arena_internal.h"
#include "tests/bind.h"
#include "tests/fixtures.h"
#include "walk.h"
#include "base/shape.h"
#include "grad/grad_builder.h"
#include "ir/edit.h"
#include "ir/type.h"
#include "opdef/fold.h"
#include "opdef/op_context.h"
#include "library/builtin.h"

#define NOISE 1e-15   /* rounding error of a loss in float64, relative to the sum */

enum { MOST_VARIANTS = 600, FEW_VARIANTS = 40, TWICE_VARIANTS = 16, SINGLES = 6, DIRECTIONS = 3, OLDEST = 16, NEWEST = 23, LARGE = 2500 };

static unsigned failures, skipped, jumps, checks;
static unsigned of_input[MOST_INPUTS], of_output[MOST_INPUTS];   /* number of checks, by input or output */
static unsigned most_variants = MOST_VARIANTS;
static bool is_quiet, is_twice;
static const om_gradients *gradients;   /* those of the library */

static void OM_PRINTF(2, 3)
fail(const struct trial *t, const char *fmt, ...)
{
	va_list ap;

	failures++;
	if (is_quiet)
		return;
	printf("# %s-%d variant %u: ", t->row->name, t->version, t->variant);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* ---- Construction of a trial's program. ---- */

struct attempt {
	struct trial *t;
	om_value *x[MOST_INPUTS], *grad[MOST_INPUTS], *loss;
	om_tensor at[MOST_INPUTS];       /* values of the parameters */
	uint32_t which[MOST_INPUTS];     /* the op's input that each parameter is */
	uint32_t n;
	bool is_double, functions;
	om_exec *e;
	uint64_t state;
	bool has_no_such_type;           /* the operator does not support that type */
};

static double
random_share(struct attempt *a)
{
	return om_rng_unit(&a->state);
}

static om_tensor *
tensor_new(om_prog *p, om_dtype type, const om_shape *shape)
{
	const om_tensor x = tensor_zero(p->mem, type, shape);

	return om_memdup(p->mem, &x, sizeof x);
}

/* Convert all floating-point inputs to `type`; false if some have 16 bits, which other variants cover. */
static bool
use_type(struct trial *t, om_dtype type)
{
	for (uint32_t k = 0; k < t->op->nin; k++) {
		om_value *v = t->op->in[k];
		const om_dtype old = v ? v->type.elem : OM_UNDEFINED;
		if (!om_dtype_is_float(old))
			continue;
		if (old != OM_FLOAT32 && old != OM_FLOAT64)
			return false;
		om_tensor *x = tensor_new(t->prog, type, &v->shape);
		for (int64_t i = 0; i < om_shape_count(&v->shape); i++)
			set_element(x, i, element_at(v->data, i));
		v->data = x;
		v->type.elem = type;
	}
	return true;
}

static om_value *
result_of(struct trial *t, const char *type, om_value *a, om_value *b, om_value *as)
{
	om_op *op = om_op_new(t->prog, "", type, 0, b ? 2 : 1, 1);

	om_op_set_in(op, 0, a);
	if (b)
		om_op_set_in(op, 1, b);
	if (!b)
		om_op_add_int(t->prog, op, "keepdims", 0);
	om_op_set_out(op, 0, as);
	om_op_append(t->prog->first, op);
	return as;
}

/* Optimizer moments may have another type than their parameters. */
static om_value *
cast_to(struct trial *t, om_value *v, om_dtype type, uint32_t k)
{
	om_op *op = om_op_new(t->prog, "", "Cast", 0, 1, 1);

	om_op_set_in(op, 0, v);
	om_op_add_int(t->prog, op, "to", type);
	om_op_set_out(op, 0, om_value_new(t->prog, t->prog->first, om_printf(t->prog->mem, "cast%u", k)));
	om_op_append(t->prog->first, op);
	return op->out[0];
}

/* A weighted sum of all output elements, each with its own weight; if their number is unknown before
 * the run, the sum of their squares. */
static bool
add_loss(struct attempt *a)
{
	struct trial *t = a->t;
	om_prog *p = t->prog;
	om_dtype type = OM_UNDEFINED;

	for (uint32_t k = 0; k < t->op->nout; k++) {
		om_value *y = t->op->out[k];
		if (!y || !om_dtype_is_float(om_type_elem(&y->type)) || y->type.kind != OM_TENSOR)
			continue;
		const bool is_known = om_shape_is_known(&y->shape);
		om_tensor *c = tensor_new(p, y->type.elem, is_known ? &y->shape : &(om_shape){.rank = 0});
		if (y->type.elem != OM_FLOAT32 && y->type.elem != OM_FLOAT64)
			return false;
		a->is_double = a->is_double && y->type.elem == OM_FLOAT64;
		for (int64_t i = 0; i < om_shape_count(&c->shape); i++)
			set_element(c, i, 2 * random_share(a) - 1);
		om_value *w = is_known ? om_const_new(p, p->first, om_printf(p->mem, "weight%u", k), c) : y;
		om_value *m = result_of(t, "Mul", y, w, om_value_new(p, p->first, om_printf(p->mem, "weighted%u", k)));
		om_value *s = result_of(t, "ReduceSum", m, NULL, om_value_new(p, p->first, om_printf(p->mem, "sum%u", k)));
		if (type != OM_UNDEFINED && type != y->type.elem)
			s = cast_to(t, s, type, k);
		else
			type = y->type.elem;
		a->loss = a->loss ? result_of(t, "Add", a->loss, s,
			om_value_new(p, p->first, om_printf(p->mem, "loss%u", k))) : s;
	}
	return a->loss != NULL;
}

/* Floating-point inputs that ONNX does not differentiate with respect to. */
static bool
is_exempt(const struct trial *t, uint32_t k)
{
	static const struct { const char *name; uint32_t in; } exempt[] = {
		{"CastLike", 1}, {"Dropout", 1}, {"NegativeLogLikelihoodLoss", 2}, {"SoftmaxCrossEntropyLoss", 2},
	};

	for (size_t i = 0; i < sizeof exempt / sizeof exempt[0]; i++)
		if (exempt[i].in == k && strcmp(exempt[i].name, t->row->name) == 0)
			return true;
	return false;
}

/* Inputs to be differentiated become parameters, all others are constant. */
static void
add_params(struct attempt *a, bool is_open)
{
	om_prog *p = a->t->prog;

	p->first->nparam = 0;
	for (uint32_t k = 0; k < a->t->op->nin; k++) {
		om_value *v = a->t->op->in[k];
		if (!v || !v->data || !om_dtype_is_float(v->type.elem) || a->t->is_steering[k] || is_exempt(a->t, k))
			continue;
		a->at[a->n] = *v->data;
		a->which[a->n] = k;
		a->x[a->n++] = v;
		v->data = NULL;
		v->is_const = false;
		om_block_add_param(p->first, v);
		for (int d = 0; d < v->shape.rank && is_open; d++) {
			v->shape.sym[d] = om_printf(p->mem, "%s_%d", v->name, d);
			v->shape.dim[d] = OM_DIM_UNKNOWN;
		}
	}
}

static void
set_opset(struct trial *t)
{
	om_opset *set = OM_NEWN(t->prog->mem, om_opset, 2);

	set[0] = (om_opset){"", t->row->domain && *t->row->domain ? 21 : t->version};
	set[1] = (om_opset){t->row->domain && *t->row->domain ? t->row->domain : "test", t->version};
	t->prog->opset = set;
	t->prog->nopset = 2;
	t->prog->ir_version = 10;
}

/* ---- Execution. ---- */

static double
loss(struct attempt *a)
{
	if (om_exec_run(a->e) != OM_OK)
		return NAN;
	return element_at(om_exec_result(a->e, 0), 0);
}

static double
shifted(struct attempt *a, uint32_t k, const double *by, double h)
{
	const om_tensor *x = &a->at[k];
	const int64_t n = om_shape_count(&x->shape);
	om_tensor old = *tensor_new(a->t->prog, x->type, &x->shape);

	for (int64_t i = 0; i < n; i++) {
		set_element(&old, i, element_at(x, i));
		set_element(x, i, element_at(x, i) + h * by[i]);
	}
	const double v = loss(a);
	for (int64_t i = 0; i < n; i++)
		set_element(x, i, element_at(&old, i));
	return v;
}

/* One-sided differences that disagree indicate a discontinuity or a corner. */
static void
check_along(struct attempt *a, uint32_t k, const double *by, const double *got, double here, const char *what)
{
	const int64_t n = om_shape_count(&a->at[k].shape);
	const double h = a->is_double ? 1e-6 : 1e-2, part = a->is_double ? 2e-5 : 3e-2;
	double sum = 0, size = 1 + (a->is_double ? fabs(here) * NOISE / (h * part) : 0);  /* rounding error
	                                                                                     of differences */

	for (int64_t i = 0; i < n; i++) {
		sum += by[i] * got[i];
		size += fabs(by[i] * got[i]);
	}
	const double up = (shifted(a, k, by, h) - here) / h, down = (here - shifted(a, k, by, -h)) / h;
	if (isnan(up) || isnan(down) || fabs(up - down) > 100 * part * size) {
		jumps++;
		return;
	}
	checks++;
	of_input[a->which[k]]++;
	for (uint32_t o = 0; o < a->t->op->nout; o++)
		of_output[o] += a->t->op->out[o] && om_dtype_is_float(om_type_elem(&a->t->op->out[o]->type));
	if (fabs((up + down) / 2 - sum) <= part * size)
		return;
	fail(a->t, "input %s %s: the gradient says %.9g, differences %.9g and %.9g", a->x[k]->name, what, sum, up, down);
}

static void
check_input(struct attempt *a, uint32_t k, const double *got, double here)
{
	const int64_t n = om_shape_count(&a->at[k].shape);
	double *by = OM_NEWN(a->t->prog->mem, double, (size_t)n + 1);

	for (int d = 0; d < DIRECTIONS; d++) {
		for (int64_t i = 0; i < n; i++)
			by[i] = (2 * random_share(a) - 1) / sqrt((double)n);
		check_along(a, k, by, got, here, "in a direction");
	}
	for (int s = 0; s < SINGLES && n > 0; s++) {
		const int64_t i = n <= SINGLES ? s % n : (int64_t)(random_share(a) * (double)n);
		memset(by, 0, (size_t)n * sizeof *by);
		by[i] = 1;
		check_along(a, k, by, got, here, "at an element");
	}
}

static om_status
run_all(struct attempt *a, bool is_open)
{
	om_prog *p = a->t->prog;
	om_fold_counts counts;

	for (uint32_t k = 0; k < a->n && is_open; k++)
		OM_TRY(bind_shape(a->t->session, p, a->x[k]->name, &a->at[k].shape));
	OM_TRY(om_block_infer(a->t->session, p, p->first));
	p->has = OM_HAS_INLINE | OM_HAS_SHAPES;
	OM_TRY(om_prog_fold(a->t->session, p, OM_FOLD_DEFAULTS, &counts));
	p->has |= OM_HAS_CONST;
	OM_TRY(om_exec_new(a->t->session, p, NULL, &ways[SEPARATE], &a->e));
	for (uint32_t k = 0; k < a->n; k++)
		OM_TRY(om_exec_input(a->e, k, &a->at[k]));
	return om_exec_run(a->e);
}

static void
check_all(struct attempt *a)
{
	om_arena *mem = a->t->prog->mem;
	double *got[MOST_INPUTS];
	uint32_t at = 1;

	const double here = element_at(om_exec_result(a->e, 0), 0);
	for (uint32_t k = 0; k < a->n; k++) {
		const int64_t n = om_shape_count(&a->at[k].shape);
		got[k] = OM_NEWN(mem, double, (size_t)n + 1);
		const om_tensor *r = a->grad[k] ? om_exec_result(a->e, at++) : NULL;
		if (r && (r->type != a->at[k].type || !om_shape_equal(&r->shape, &a->at[k].shape))) {
			fail(a->t, "the gradient of %s has another shape or type", a->x[k]->name);
			return;
		}
		for (int64_t i = 0; r && i < n; i++)
			got[k][i] = element_at(r, i);
		for (int64_t i = 0; i < n && !isnan(here); i++)
			if (isnan(got[k][i])) {
				fail(a->t, "the gradient of %s is no number", a->x[k]->name);
				return;
			}
	}
	for (uint32_t k = 0; k < a->n && isfinite(here); k++)
		check_input(a, k, got[k], here);
}

/* ---- One trial. ---- */

static bool
is_large(const struct trial *t)
{
	for (uint32_t k = 0; k < t->op->nin; k++)
		if (t->op->in[k] && om_shape_count(&t->op->in[k]->shape) > LARGE)
			return true;
	return false;
}

/* Cases that rules refuse: an error, not a zero gradient. */
static bool
is_refused(const char *message)
{
	static const char *const refused[] = {"no gradient for mode max",
		"a gradient is available only for matrices in batch order", "its cache slides or is quantized"};

	for (size_t k = 0; k < sizeof refused / sizeof refused[0]; k++)
		if (strstr(message, refused[k]))
			return true;
	return false;
}

/* Replace the loss by the sum of the squares of all gradients, a penalty.  False: there is no gradient. */
static bool
penalize(struct attempt *a)
{
	struct trial *t = a->t;
	om_block *graph = t->prog->first;
	om_value *sum = NULL;

	for (uint32_t k = 0; k < a->n; k++) {
		om_value *v = a->grad[k];
		if (!v)
			continue;
		om_value *q = result_of(t, "Mul", v, v, om_value_new(t->prog, graph, om_printf(t->prog->mem, "square%u", k)));
		q = result_of(t, "ReduceSum", q, NULL, om_value_new(t->prog, graph, om_printf(t->prog->mem, "squares%u", k)));
		sum = sum ? result_of(t, "Add", sum, q, om_value_new(t->prog, graph, om_printf(t->prog->mem, "penalty%u", k))) : q;
	}
	a->loss = sum;
	if (!sum || om_block_infer(a->t->session, t->prog, graph) != OM_OK || !om_shape_is_known(&sum->shape))
		return false;
	om_block_clear_results(graph);
	om_block_add_result(graph, sum);
	t->prog->has = OM_HAS_INLINE | OM_HAS_SHAPES;
	return true;
}

static const om_gradient *
gradient_of(const om_opdef *row)
{
	return om_gradients_find(gradients, row);
}

/* A copy of an operator definition, the mutant registered for it, and data that the mutant requires: it
 * finds both through the op. */
struct mutant {
	om_opdef row;
	om_gradient gradient[2];
	void (*right)(om_grad *g);
	const char *attr;
};

/* Build a program with its backward path and run it once; false if this trial is not applicable. */
static bool
attempt_start(struct attempt *a, om_dtype type, bool is_open, const struct mutant *instead)
{
	struct trial *t = a->t;
	om_prog *p = t->prog;

	om_block_clear_results(t->prog->first);
	set_opset(t);
	if (instead) {
		t->op->opdef = &instead->row;
		om_gradients_add(om_prog_gradients(p), instead->gradient);
	}
	if (is_large(t) || !use_type(t, type))
		return false;
	const om_status known = om_op_infer(a->t->session, p, t->op);
	a->has_no_such_type = known == OM_UNSUPPORTED;
	if (known != OM_OK || !add_loss(a))
		return false;
	add_params(a, is_open);
	if (a->n == 0 || om_block_infer(a->t->session, p, p->first) != OM_OK)
		return false;
	if (!om_shape_is_known(&a->loss->shape)) {
		skipped++;
		return false;
	}
	om_block_add_result(p->first, a->loss);
	om_backward b = OM_BACKWARD(.loss = a->loss, .wrt = a->x, .nwrt = a->n, .grad = a->grad,
		.functions = a->functions);
	p->has = OM_HAS_INLINE | OM_HAS_SHAPES;
	om_status st = om_prog_backward(a->t->session, p, &b);
	if (st == OM_OK && is_twice) {
		if (!penalize(a))
			return false;
		b.loss = a->loss;
		st = om_prog_backward(a->t->session, p, &b);
	}
	if (st == OM_UNSUPPORTED && (is_open || is_refused(om_message(t->session)))) {
		skipped++;
		return false;
	}
	if (st != OM_OK) {
		fail(t, "%s", om_message(t->session));
		return false;
	}
	for (uint32_t k = 0; k < a->n; k++)
		if (a->grad[k])
			om_block_add_result(p->first, a->grad[k]);
	if (om_verify(a->t->session, p) != OM_OK)
		fail(t, "%s", om_message(t->session));
	return true;
}

static om_status
attempt_run(struct trial *t, recipe_fn *make, om_dtype type, bool is_open, bool functions, const struct mutant *instead, bool *more)
{
	struct attempt a = {.t = t, .is_double = type == OM_FLOAT64, .functions = functions, .state = t->variant + 99};
	om_status st = OM_OK;

	trial_start(t);
	*more = make(t);
	const om_opdef *row = t->op ? t->op->opdef : NULL;
	if (*more && attempt_start(&a, type, is_open, instead)) {
		t->op->opdef = row;  /* a mutant has no kernels of its own */
		st = run_all(&a, is_open);
		if (st == OM_OK)
			check_all(&a);
		else if (st != OM_UNSUPPORTED)
			fail(t, "%s%s", is_open ? "with open dims: " : "", om_message(t->session));
	}
	if (a.has_no_such_type)
		st = OM_UNSUPPORTED;
	om_exec_free(a.e);
	trial_end(t);
	return st;
}

static void
try_version(const om_opdef *row, recipe_fn *make, int version, const struct mutant *instead)
{
	struct trial t = {.row = row, .version = version};
	bool more = true;

	for (; more && t.variant < most_variants; t.variant++) {
		om_dtype type = OM_FLOAT64;
		if (attempt_run(&t, make, type, false, false, instead, &more) == OM_UNSUPPORTED)
			attempt_run(&t, make, type = OM_FLOAT32, false, false, instead, &more);
		if (!is_twice)
			attempt_run(&t, make, type, true, false, instead, &more);
		if (gradient_of(row) && gradient_of(row)->fused && !is_twice)
			attempt_run(&t, make, type, false, true, instead, &more);
	}
}

static recipe_fn *
any_recipe_of(const om_opdef *row)
{
	return recipe_of(row) ? recipe_of(row) : text_recipe_of(row);
}

/* Versions of the definition that a program with gradients can have. */
static void
try_row(const om_opdef *row, const struct mutant *instead)
{
	const bool standard = !row->domain || !*row->domain;
	const int oldest = standard && row->since < OLDEST ? OLDEST : row->since;
	const int newest = row->until && row->until < NEWEST ? row->until : NEWEST > row->since ? NEWEST : row->since;
	recipe_fn *make = any_recipe_of(row);

	if (row->until && row->until < oldest)
		return;
	try_version(row, make, oldest, instead);
	if (newest > oldest && standard)
		try_version(row, make, newest, instead);
}

/* ---- Mutants. ---- */

static void
forget_broadcast(om_grad *g)
{
	om_grad_set_input_grad(g, 0, om_emit(g, "Mul", om_grad_output_grad(g, 0), om_grad_forward_input(g, 1)));
	om_grad_set_input_grad(g, 1, om_emit(g, "Mul", om_grad_output_grad(g, 0), om_grad_forward_input(g, 1)));
}

static void
pass_all(om_grad *g)
{
	om_grad_set_input_grad(g, 0, om_grad_output_grad(g, 0));
}

static void
give_none(om_grad *g)
{
	for (uint32_t k = 0; k < om_grad_op(g)->nin; k++)
		om_grad_set_input_grad(g, k, NULL);
}

static void
forget_mean(om_grad *g)
{
	om_grad_set_input_grad(g, 1, NULL);
	om_grad_set_input_grad(g, 0, om_emit_expand_as(g, om_grad_output_grad(g, 0), om_grad_op(g)->in[0]));
}

static void
forget_sum(om_grad *g)
{
	om_value *y = om_grad_forward_output(g, 0);

	om_grad_set_input_grad(g, 0, om_emit(g, "Mul", om_grad_output_grad(g, 0), om_emit(g, "Mul", y, om_emit(g, "Sub", om_emit_number(g, y, 1), y))));
}

static void
say_nothing(om_grad *g)
{
	(void)g;
}

static void
slightly_off(om_grad *g)
{
	om_grad_set_input_grad(g, 0, om_emit_scalar(g, "Mul", om_grad_output_grad(g, 0), -0.999));
}

static const struct mutant *
mutant_of(const om_grad *g)
{
	return (const struct mutant *)om_grad_op(g)->opdef;
}

static void
count_twice(om_grad *g)
{
	mutant_of(g)->right(g);
	mutant_of(g)->right(g);
}

/* The correct rule, on an op without one of its attributes. */
static void
forget_attr(om_grad *g)
{
	om_attr *a = (om_attr *)om_attr_find(om_grad_op(g), mutant_of(g)->attr);
	const char *name = a ? a->name : NULL;

	if (a)
		a->name = "forgotten";
	mutant_of(g)->right(g);
	if (a)
		a->name = name;
}

/* At least one per file of rules; those of bodies are in tests/fuzz/cfg_grads.c. */
static const struct { const char *name; void (*grad)(om_grad *g); const char *attr; } mutants[] = {
	{"Mul", forget_broadcast, NULL}, {"Relu", pass_all, NULL}, {"Sigmoid", pass_all, NULL}, {"Add", give_none, NULL},
	{"Softmax", forget_sum, NULL}, {"ReduceMean", forget_mean, NULL}, {"Gather", give_none, NULL}, {"Exp", say_nothing, NULL},
	{"Neg", slightly_off, NULL}, {"Transpose", pass_all, NULL},
	{"Attention", forget_attr, "scale"}, {"Attention", forget_attr, "is_causal"}, {"RotaryEmbedding", forget_attr, "interleaved"},
	{"AffineGrid", forget_attr, "align_corners"}, {"Resize", forget_attr, "coordinate_transformation_mode"},
	{"GridSample", forget_attr, "align_corners"}, {"AveragePool", forget_attr, "count_include_pad"}, {"MaxPool", count_twice, NULL},
	{"Conv", count_twice, NULL}, {"ConvTranspose", forget_attr, "dilations"}, {"CumSum", forget_attr, "reverse"},
	{"DFT", forget_attr, "inverse"}, {"Det", count_twice, NULL}, {"Einsum", count_twice, NULL}, {"Gemm", forget_attr, "alpha"},
	{"GRU", forget_attr, "linear_before_reset"}, {"LSTM", forget_attr, "direction"}, {"RNN", forget_attr, "activations"},
	{"LayerNormalization", forget_attr, "axis"}, {"DepthToSpace", forget_attr, "mode"},
	{"ScatterElements", forget_attr, "reduction"}, {"SoftmaxCrossEntropyLoss", forget_attr, "ignore_index"},
	{"CausalConvWithState", forget_attr, "activation"}, {"DequantizeLinear", count_twice, NULL},
};

/* Is a gradient that is registered for a copy of the definition detected as wrong? */
static bool
is_caught(const om_opdef *row, void (*rule)(om_grad *g), const char *attr)
{
	struct mutant m = {.row = *row, .right = gradient_of(row)->rule, .attr = attr};
	const unsigned before = failures;

	m.row.domain = "mutant";
	m.gradient[0] = (om_gradient){.domain = m.row.domain, .name = row->name, .rule = rule};
	try_version(row, any_recipe_of(row), row->since > NEWEST ? row->since : NEWEST, &m);
	return failures > before;
}

static unsigned
try_mutants(unsigned said)
{
	const size_t n = sizeof mutants / sizeof mutants[0];
	const om_opdef *mul = om_builtin.find("", "Mul", INT_MAX);
	unsigned missed = 0;

	is_quiet = true;
	for (size_t k = 0; k < n; k++) {
		const char *attr = mutants[k].attr;
		const bool caught = is_caught(om_builtin.find("", mutants[k].name, INT_MAX), mutants[k].grad, attr);
		missed += !caught;
		printf("%s %zu - a wrong %s is caught%s%s\n", caught ? "ok" : "not ok", said + k + 1, mutants[k].name,
			attr ? ": without its attribute " : "", attr ? attr : "");
	}
	const bool right = !is_caught(mul, gradient_of(mul)->rule, NULL);
	missed += !right;
	printf("%s %zu - the right rule, registered for a row from elsewhere, passes\n", right ? "ok" : "not ok", said + n + 1);
	printf("1..%zu\n", said + n + 1);
	return missed;
}

/* Print the number of checks of each input and output. */
static void
print_parts(const om_opdef *r)
{
	printf("# %s %s %d", r->domain && *r->domain ? r->domain : "ai.onnx", r->name, r->since);
	for (int k = 0; k < MOST_INPUTS; k++)
		if (of_input[k])
			printf(" in%d=%u", k, of_input[k]);
	for (int k = 0; k < MOST_INPUTS; k++)
		if (of_output[k])
			printf(" out%d=%u", k, of_output[k]);
	putchar('\n');
}

static bool
is_tried(const om_opdef *r)
{
	const om_gradient *g = gradient_of(r);

	return g && g->rule != om_grad_set_zero && !(r->flags & OM_IMPLEMENTS_FUNCTION) && (!r->until || r->until >= OLDEST) && any_recipe_of(r)
	    && r->control == OM_PLAIN;
}

/* Try all selected definitions, a test each; returns their number. */
static unsigned
try_rows(int argc, char **argv, bool by_part, unsigned said)
{
	unsigned rows = 0;

	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
		const unsigned before = failures;
		if (!is_tried(r) || !is_row_wanted(r, argc, argv))
			continue;
		checks = jumps = skipped = 0;
		memset(of_input, 0, sizeof of_input);
		memset(of_output, 0, sizeof of_output);
		try_row(r, NULL);
		if (checks == 0 ? !is_twice : jumps > checks / 5)
			fail(&(struct trial){.row = r}, "%u checks, %u jumps", checks, jumps);
		printf("%s %u - %s%s from version %d, %u checks, %u corners, %u trials with known dims alone\n",
			failures == before ? "ok" : "not ok", said + ++rows, r->name, is_twice ? ", twice," : "", r->since, checks,
			jumps, skipped);
		if (by_part)
			print_parts(r);
		fflush(stdout);
	}
	return rows;
}

static int
run(int argc, char **argv)
{
	const bool by_part = argc >= 2 && strcmp(argv[1], "--parts") == 0;
	const bool only_twice = argc >= 2 && strcmp(argv[1], "--twice") == 0;
	unsigned rows = 0;

	if (argc == 2 && strcmp(argv[1], "--mutants") == 0)
		return try_mutants(0) ? EXIT_FAILURE : EXIT_SUCCESS;
	argc -= by_part || only_twice;
	argv += by_part || only_twice;
	most_variants = by_part ? FEW_VARIANTS : MOST_VARIANTS;
	if (!only_twice)
		rows = try_rows(argc, argv, by_part, 0);
	if (!by_part) {
		is_twice = true;
		most_variants = TWICE_VARIANTS;
		rows += try_rows(argc, argv, false, rows);
		is_twice = false;
		most_variants = MOST_VARIANTS;
	}
	const bool is_right = failures == 0 && rows;
	if (argc == 1 && !by_part && !only_twice)
		return try_mutants(rows) || !is_right ? EXIT_FAILURE : EXIT_SUCCESS;
	printf("1..%u\n", rows);
	return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	om_arena *mem = om_arena_new();

	gradients = om_gradients_new(mem);
	const int status = run(argc, argv);
	om_arena_free(mem);
	return status;
}
