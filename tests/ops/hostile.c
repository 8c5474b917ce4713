/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile cases for every operator definition.
 *
 * The recipes of the operators give valid ops.  A case changes one to four things of such an op: elements become
 * extreme (NaN, infinity, the limits of the type; text that is empty, long or no UTF-8), a shape gets another rank or
 * dims of zero, an optional input is left out, attributes become extreme, lists become empty or long.  A quarter of
 * the cases also infer shapes while dims and ranks are not known; half of them while elements are not known, and a third of these declare another output than the elements imply, as a file may.  Whatever the
 * case, the op is refused with a sentence, or its kernel writes all bytes of its outputs and nothing else.  All
 * memory is allocated exactly, so that sanitizers detect what goes beyond it.
 *
 * Prints TAP, a test per definition.  The environment variable CASES is the number of cases per definition (8), SEED
 * the first seed (1).  Arguments, if any, are the names of operators.  The line before the plan sums up:
 * "# definitions=310 cases=93000 computed=51000 refused=41300 large=700 failed=0"; large cases require more memory
 * than a case may take.  A case depends on its seed and its operator
 * alone. */
#include <config.h>

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "../same.h"
#include "base/arena_internal.h"
#include "base/rng.h"
#include "base/shape.h"
#include "onnxmem/kernel.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "onnxmem/slice.h"
#include "walk.h"

enum { NEWEST = 28, MOST_OUTPUTS = 16, MOST_VARIANTS = 24, WIDEST = 16, LONG_LIST = 4096 };

/* Cases that need more than this, as a run of --max-memory would, are left out. */
#define MOST_BYTES (UINT64_C(1) << 22)

struct hostile_case {
	struct trial t;
	uint64_t rng;
	uint64_t seed;
	om_shape lie;        /* the declared shape of output 0 */
	bool is_declared;
};

struct counts {
	unsigned computed, refused, large, failed;
};

static void OM_PRINTF(3, 4)
fail(const struct hostile_case *h, struct counts *n, const char *fmt, ...)
{
	va_list ap;

	n->failed++;
	printf("# %s-%d, SEED=%llu CASES=1: ", h->t.row->name, h->t.version, (unsigned long long)h->seed);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	for (uint32_t k = 0; h->t.op && k < h->t.op->nin; k++) {
		char text[256];
		const om_value *v = h->t.op->in[k];
		printf("%s%s%s", k ? ", " : "; inputs ", v ? om_dtype_text(v->type.elem) : "none",
			v ? om_shape_text(&v->shape, text, sizeof text) : "");
	}
	putchar('\n');
}

static uint64_t
below(struct hostile_case *h, uint64_t n)
{
	return om_rng_below(&h->rng, n);
}

/* ---- Changes. ---- */

static int64_t
extreme_int(struct hostile_case *h)
{
	static const int64_t list[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1, INT32_MIN, INT32_MAX,
		INT64_C(1) << 32, INT64_C(1) << 62, -1, 0, 1, 2, 3, -2, 7, 64, -64};

	return list[below(h, sizeof list / sizeof list[0])];
}

static double
extreme_float(struct hostile_case *h)
{
	static const double list[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 3e38, -3e38, 1e-300, 0.0, -0.0, 1e19, -1e19,
		2147483648.0, -2147483649.0, 0.5, -0.5, -1, 1, 2};

	return list[below(h, sizeof list / sizeof list[0])];
}

/* Text of the program's memory, since a kernel may not read past its size. */
static om_string
extreme_text(struct hostile_case *h)
{
	static const om_string list[] = {{"", 0}, {"\0", 1}, {"\xff\xfe", 2}, {"\xc3", 1}, {"\xed\xa0\x80", 3}, {"-", 1}, {"1e999", 5},
		{"nan", 3}, {"9223372036854775808", 19}, {"...,,,", 6}, {"(((((a*)*)*)*)*b", 16}, {"ij->", 4}, {"bilinear", 8}};
	const uint64_t k = below(h, sizeof list / sizeof list[0] + 1);
	om_arena *mem = h->t.prog->mem;

	if (k < sizeof list / sizeof list[0])
		return (om_string){om_memdup(mem, list[k].data, list[k].size), list[k].size};
	char *text = om_alloc(mem, LONG_LIST);
	memset(text, 'a', LONG_LIST);
	return (om_string){text, LONG_LIST};
}

static void
set_extreme(struct hostile_case *h, om_tensor *x, int64_t i)
{
	double f;

	switch (x->type) {
	case OM_FLOAT32:
		f = extreme_float(h);
		((float *)x->data)[i] = fabs(f) < 3.4e38 ? (float)f : (float)copysign(INFINITY, f);
		break;
	case OM_FLOAT64: ((double *)x->data)[i] = extreme_float(h); break;
	case OM_INT64: ((int64_t *)x->data)[i] = extreme_int(h); break;
	case OM_INT32: ((int32_t *)x->data)[i] = (int32_t)(uint32_t)(uint64_t)extreme_int(h); break;
	case OM_FLOAT16: case OM_BFLOAT16: case OM_INT16: case OM_UINT16:
		((uint16_t *)x->data)[i] = (uint16_t)om_rng(&h->rng);
		break;
	case OM_INT8: case OM_UINT8: ((uint8_t *)x->data)[i] = (uint8_t)om_rng(&h->rng); break;
	case OM_STRING: ((om_string *)x->data)[i] = extreme_text(h); break;
	default: break;
	}
}

/* A tensor of its own with the elements of `x`, repeated. */
static om_tensor *
reshaped(struct hostile_case *h, const om_tensor *x, const om_shape *shape)
{
	om_arena *mem = h->t.prog->mem;
	om_tensor *y = OM_NEW(mem, om_tensor);
	const int64_t old = om_shape_count(&x->shape), n = om_shape_count(shape);
	const size_t one = om_dtype_bits(x->type) < 8 ? 1 : om_dtype_bits(x->type) / 8;

	*y = (om_tensor){.type = x->type, .shape = *shape};
	y->data = om_alloc(mem, (size_t)n * WIDEST + WIDEST);
	memset(y->data, 0, (size_t)n * WIDEST + WIDEST);
	const bool is_packed = om_dtype_bits(x->type) < 8;
	for (int64_t i = 0; i < n && old > 0 && !is_packed; i++)
		memcpy((char *)y->data + (size_t)i * one, (const char *)x->data + (x->splat ? 0 : (size_t)(i % old) * one), one);
	return y;
}

static om_value *
any_input(struct hostile_case *h, uint32_t *which)
{
	const om_op *op = h->t.op;

	*which = op->nin ? (uint32_t)below(h, op->nin) : 0;
	om_value *v = op->nin ? op->in[*which] : NULL;
	return v && v->type.kind == OM_TENSOR && v->data ? v : NULL;
}

static void
change_elements(struct hostile_case *h)
{
	uint32_t k;
	om_value *v = any_input(h, &k);
	const int64_t n = v ? om_shape_count(&v->shape) : 0;

	if (n == 0)
		return;
	om_tensor *y = reshaped(h, v->data, &v->shape);
	for (uint64_t times = 1 + below(h, (uint64_t)n); times; times--)
		set_extreme(h, y, (int64_t)below(h, (uint64_t)n));
	v->data = y;
}

static void
change_shape(struct hostile_case *h)
{
	static const int64_t dims[] = {0, 1, 2, 3, 5};
	uint32_t k;
	om_value *v = any_input(h, &k);

	if (!v)
		return;
	om_shape s = v->shape;
	if (s.rank > 0 && below(h, 2))
		s.dim[below(h, (uint64_t)s.rank)] = dims[below(h, 5)];
	else {
		int64_t d[6];
		const int rank = (int)below(h, 6);
		for (int a = 0; a < rank; a++)
			d[a] = dims[below(h, 5)];
		s = om_shape_of(rank, d);
	}
	if (om_shape_count(&s) > 4096)
		return;
	om_tensor *y = reshaped(h, v->data, &s);
	v->data = y;
	v->shape = s;
}

static void
leave_out_input(struct hostile_case *h)
{
	om_op *op = h->t.op;

	if (op->nin > op->opdef->min_in)
		om_op_set_in(op, op->opdef->min_in + (uint32_t)below(h, op->nin - op->opdef->min_in), NULL);
}

static void
set_list(struct hostile_case *h, om_attr *a, size_t n)
{
	om_arena *mem = h->t.prog->mem;

	a->n = n;
	if (a->kind == OM_ATTR_STRING || a->kind == OM_ATTR_STRINGS) {
		om_string *v = OM_NEWN(mem, om_string, n + 1);
		for (size_t i = 0; i < n; i++)
			v[i] = extreme_text(h);
		a->s = v;
	} else if (a->kind == OM_ATTR_INT || a->kind == OM_ATTR_INTS) {
		int64_t *v = OM_NEWN(mem, int64_t, n + 1);
		for (size_t i = 0; i < n; i++)
			v[i] = extreme_int(h);
		a->i = v;
	} else {
		float *v = OM_NEWN(mem, float, n + 1);
		for (size_t i = 0; i < n; i++) {
			const double f = extreme_float(h);
			v[i] = fabs(f) < 3.4e38 ? (float)f : (float)copysign(INFINITY, f);
		}
		a->f = v;
	}
}

static void
change_attr(struct hostile_case *h)
{
	const om_attr_spec *spec = h->t.op->opdef->attrs;
	static const size_t lengths[] = {0, 1, 2, 3, 4, 8, 16, LONG_LIST};
	size_t n = 0;

	while (spec && spec[n].name)
		n++;
	if (n == 0)
		return;
	spec += below(h, n);
	om_attr a = {.name = spec->name, .kind = spec->kind};
	if (a.kind == OM_ATTR_INT || a.kind == OM_ATTR_FLOAT || a.kind == OM_ATTR_STRING)
		set_list(h, &a, 1);
	else if (a.kind == OM_ATTR_INTS || a.kind == OM_ATTR_FLOATS || a.kind == OM_ATTR_STRINGS)
		set_list(h, &a, lengths[below(h, sizeof lengths / sizeof lengths[0])]);
	else
		return;
	for (size_t k = 0; k < h->t.op->nattr; k++)
		if (strcmp(h->t.op->attr[k].name, a.name) == 0) {
			h->t.op->attr[k] = a;
			return;
		}
	om_op_add_attr(h->t.prog, h->t.op, &a);
}

static void
change(struct hostile_case *h)
{
	for (uint64_t times = 1 + below(h, 4); times; times--)
		switch (below(h, 8)) {
		case 0: case 1: case 2: change_elements(h); break;
		case 3: case 4: change_shape(h); break;
		case 5: leave_out_input(h); break;
		default: change_attr(h); break;
		}
}

/* ---- Execution. ---- */

struct computed {
	om_arena *mem;
	om_op_context c;
	int fill;
	bool is_large;
	void *exact[MOST_INPUTS + MOST_OUTPUTS + 1];
	int nexact;
};

static void *
exactly(struct computed *r, uint64_t bytes, int fill)
{
	if (bytes > MOST_BYTES || r->nexact == sizeof r->exact / sizeof r->exact[0]) {
		r->is_large = true;
		return NULL;
	}
	void *p = malloc(bytes ? bytes : 1);
	memset(p, fill, bytes ? bytes : 1);
	return r->exact[r->nexact++] = p;
}

static om_status
give_room(om_op_context *c, uint32_t k, const om_shape *shape)
{
	struct computed *r = c->host;
	uint64_t bytes;

	if (!om_tensor_bytes(c->out[k].type, shape, &bytes))
		return om_fail(c->session, OM_MEMORY, "output %u is too large", k);
	c->out[k].shape = *shape;
	c->out[k].data = exactly(r, bytes, r->fill);
	return c->out[k].data ? OM_OK : om_fail(c->session, OM_MEMORY, "output %u is too large", k);
}

/* False: more memory than a case may take, or an output whose shape only declarations tell. */
static bool
place(struct computed *r, const om_op *op)
{
	om_tensor *in = om_memdup(r->mem, r->c.in, op->nin * sizeof *in);
	uint64_t bytes;

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && op->in[k]->data) {
			in[k] = *op->in[k]->data;
			om_tensor_bytes(in[k].type, &in[k].shape, &bytes);
			if (!in[k].splat)
				in[k].data = memcpy(exactly(r, bytes, 0), in[k].data, bytes);
		}
	r->c.in = in;
	for (uint32_t k = 0; k < op->nout; k++) {
		if (op->opdef->flags & OM_DATA_DEPENDENT_SHAPE || !op->out[k])
			continue;
		if (!r->c.out[k].type || !om_tensor_bytes(r->c.out[k].type, &r->c.out[k].shape, &bytes))
			return false;
		if (!(r->c.out[k].data = exactly(r, bytes, r->fill)))
			return false;
	}
	return true;
}

/* What the executor does with an op: shapes are checked once elements are known, then the kernel runs. */
static om_status
compute(const struct hostile_case *h, struct computed *r, int fill)
{
	const om_op *op = h->t.op;

	*r = (struct computed){.mem = om_arena_new(), .fill = fill};
	om_op_context_init(&r->c, h->t.session, r->mem, h->t.op);
	r->c.keep = r->mem;
	r->c.host = r;
	if (!place(r, op)) {
		r->is_large = true;
		return om_fail(h->t.session, OM_MEMORY, "more than a case may take");
	}
	OM_TRY(om_op_check_shapes(&r->c));
	OM_TRY(om_kernel_bind(&r->c, NULL));
	const uint64_t bytes = om_kernel_workspace(&r->c);
	if (bytes && !(r->c.scratch = exactly(r, bytes, fill)))
		return om_fail(h->t.session, OM_MEMORY, "more than a case may take");
	if (op->opdef->flags & OM_DATA_DEPENDENT_SHAPE)
		r->c.alloc = give_room;
	return om_kernel_run(&r->c);
}

static void
computed_free(struct computed *r)
{
	for (int k = 0; k < r->nexact; k++)
		free(r->exact[k]);
	om_arena_free(r->mem);
}

static void
check_refusal(const struct hostile_case *h, struct counts *n)
{
	n->refused++;
	if (!*om_message(h->t.session))
		fail(h, n, "is refused without a sentence");
}

static void
check_run(const struct hostile_case *h, struct counts *n)
{
	struct computed a, b;
	const om_op *op = h->t.op;
	const om_status st = compute(h, &a, 0xa5);

	if (a.is_large)
		n->large++;
	else if (st != OM_OK)
		check_refusal(h, n);
	else {
		n->computed++;
		if (compute(h, &b, 0x3c) != OM_OK)
			fail(h, n, "fails the second time: %s", om_message(h->t.session));
		else for (uint32_t k = 0; k < op->nout && !(op->opdef->flags & OM_RANDOM); k++)
			if (op->out[k] && !same_tensors(&a.c.out[k], &b.c.out[k]))
				fail(h, n, "output %u depends on what was in its memory", k);
		computed_free(&b);
	}
	computed_free(&a);
}

/* ---- Cases. ---- */

/* Infer without the elements of the inputs, as for inputs of the graph; refused, or an output of another shape
 * declared in a third of the cases. */
static om_status
infer_blindly(struct hostile_case *h)
{
	om_op *op = h->t.op;
	const om_tensor *data[MOST_INPUTS] = {NULL};
	static const int64_t dims[] = {0, 1, 2, 3, 4};

	for (uint32_t k = 0; k < op->nin && k < MOST_INPUTS; k++)
		if (op->in[k]) {
			data[k] = op->in[k]->data;
			op->in[k]->data = NULL;
		}
	const om_status st = om_op_infer(h->t.session, h->t.prog, op);
	/* Backwards, since a value may be several inputs. */
	for (uint32_t k = op->nin; k-- > 0;)
		if (op->in[k])
			op->in[k]->data = data[k];
	for (uint32_t k = 0; k < op->nout && st == OM_OK; k++) {
		om_shape *s = op->out[k] ? &op->out[k]->shape : NULL;
		if (s && s->rank < 0 && below(h, 2))
			*s = om_shape_of((int)below(h, 4), dims + 1);
		for (int d = 0; s && d < s->rank; d++)
			if (s->dim[d] < 0)
				s->dim[d] = dims[below(h, 5)];
	}
	return st;
}

/* Infer with some dims and ranks open, as for a model of symbolic shapes before it is bound.  The shapes are then as
 * before. */
static void
infer_openly(struct hostile_case *h)
{
	om_op *op = h->t.op;
	om_shape known[MOST_INPUTS];
	const om_tensor *data[MOST_INPUTS];

	for (uint32_t k = 0; k < op->nin; k++) {
		if (!op->in[k])
			continue;
		om_shape *s = &op->in[k]->shape;
		known[k] = *s;
		data[k] = op->in[k]->data;
		if (below(h, 4) == 0)
			*s = om_shape_unknown();
		for (int d = 0; d < s->rank; d++)
			if (below(h, 3) == 0)
				s->dim[d] = OM_DIM_UNKNOWN;
		op->in[k]->data = om_shape_is_known(s) ? data[k] : NULL;
	}
	const om_status st = om_op_infer(h->t.session, h->t.prog, op);
	(void)st;
	/* Backwards, since a value may be several inputs. */
	for (uint32_t k = op->nin; k-- > 0;)
		if (op->in[k]) {
			op->in[k]->shape = known[k];
			op->in[k]->data = data[k];
		}
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			op->out[k]->shape = om_shape_unknown();
}

/* Parts of what an op is accepted for: their parts of inputs lie in the inputs. */
static void
check_parts(const struct hostile_case *h, struct counts *n)
{
	const om_op *op = h->t.op;
	om_arena *mem = om_arena_new();
	om_slice s;

	for (uint32_t k = 0; k < op->nout; k++)
		for (int axis = 0; op->out[k] && axis < op->out[k]->shape.rank; axis++) {
			const int64_t dim = op->out[k]->shape.dim[axis];
			if (!om_op_slice(mem, op, k, (om_part){axis, dim / 2, dim}, &s))
				continue;
			for (uint32_t i = 0; i < op->nin; i++)
				if (op->in[i] && s.in[i].axis != OM_WHOLE && s.in[i].lo < s.in[i].hi && (s.in[i].axis >= op->in[i]->shape.rank
				    || s.in[i].lo < 0 || s.in[i].hi > op->in[i]->shape.dim[s.in[i].axis]))
					fail(h, n, "a part of output %u along axis %d needs what input %u does not have", k, axis, i);
		}
	for (uint32_t k = 0; k < op->nin; k++)
		for (int axis = 0; op->in[k] && axis < op->in[k]->shape.rank; axis++)
			om_op_partial(mem, op, k, (om_part){axis, 0, op->in[k]->shape.dim[axis]}, &s);
	om_arena_free(mem);
}

static void
try_case(const om_opdef *row, recipe_fn *make, uint64_t seed, struct counts *n)
{
	const int newest = row->until ? row->until : row->since > NEWEST ? row->since : NEWEST;
	struct hostile_case h = {.t = {.row = row}, .rng = seed * UINT64_C(0x9e3779b97f4a7c15), .seed = seed};

	h.t.version = below(&h, 2) ? newest : row->since;
	for (h.t.variant = (unsigned)below(&h, MOST_VARIANTS);; h.t.variant /= 2) {
		trial_start(&h.t);
		if (make(&h.t) || h.t.variant == 0)
			break;
		trial_end(&h.t);
	}
	if (h.t.op && h.t.op->nin <= MOST_INPUTS) {
		change(&h);
		if (below(&h, 4) == 0)
			infer_openly(&h);
		const om_status st = below(&h, 2) ? infer_blindly(&h) : om_op_infer(h.t.session, h.t.prog, h.t.op);
		if (st == OM_OK) {
			check_run(&h, n);
			check_parts(&h, n);
		} else
			check_refusal(&h, n);
	}
	trial_end(&h.t);
}

static uint64_t
setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

int
main(int argc, char **argv)
{
	const uint64_t cases = setting("CASES", 8), first = setting("SEED", 1);
	unsigned rows = 0;
	struct counts all = {0};

	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
		struct counts n = {0};
		recipe_fn *make = recipe_of(r);
		if (!is_row_wanted(r, argc, argv) || !make || excuse_of(r) || r->control != OM_PLAIN)
			continue;
		for (uint64_t k = 0; k < cases; k++)
			try_case(r, make, first + k, &n);
		printf("%s %u - %s from version %d: %u computed, %u refused, %u too large\n", n.failed ? "not ok" : "ok", ++rows,
			r->name, r->since, n.computed, n.refused, n.large);
		fflush(stdout);
		all.computed += n.computed;
		all.refused += n.refused;
		all.large += n.large;
		all.failed += n.failed;
	}
	printf("# definitions=%u cases=%u computed=%u refused=%u large=%u failed=%u\n1..%u\n", rows,
		all.computed + all.refused + all.large, all.computed, all.refused, all.large, all.failed, rows);
	return all.failed || !rows ? EXIT_FAILURE : EXIT_SUCCESS;
}
