/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator definition with every element type.
 *
 * Whatever types its inputs have, an operator refuses them with a message when a model is read, or its
 * kernel computes: it writes every byte of the outputs, whatever that memory contained, and reads
 * nothing but its inputs.  The first trials of each recipe are run with the type of one input changed,
 * or of all inputs that have the same type.
 *
 * Prints TAP, a test per definition.  Arguments, if any, are the names of operators; --show prints the
 * types that each input may have. */
#include <config.h>

#include <stdlib.h>

#include "../same.h"
#include "onnxmem/kernel.h"
#include "walk.h"
#include "base/arena_internal.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"

enum { MOST_VARIANTS = 3, NEWEST = 28, WIDEST = 16 };

struct change {
	struct trial *t;
	uint32_t input;
	om_dtype type;
	bool together;       /* change all inputs that have the type of that one */
};

static unsigned failures;

static void OM_PRINTF(2, 3)
fail(const struct change *w, const char *fmt, ...)
{
	va_list ap;

	failures++;
	printf("# %s-%d variant %u, input %u%s as %s: ", w->t->row->name, w->t->version, w->t->variant, w->input,
		w->together ? " and its like" : "", om_dtype_text(w->type));
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* ---- Inputs with another type. ---- */

static double
number_at(const om_tensor *x, int64_t i)
{
	switch (x->type) {
	case OM_FLOAT32: return ((const float *)x->data)[i];
	case OM_FLOAT64: return ((const double *)x->data)[i];
	case OM_INT64: return (double)((const int64_t *)x->data)[i];
	case OM_INT32: return ((const int32_t *)x->data)[i];
	case OM_UINT8: case OM_BOOL: return ((const uint8_t *)x->data)[i];
	default: return 1;
	}
}

static void
retype(struct change *w, om_value *v)
{
	struct trial *t = w->t;
	const om_tensor *x = v->data;
	const int64_t n = om_shape_count(&x->shape);
	om_tensor *y = OM_NEW(t->prog->mem, om_tensor);

	*y = (om_tensor){.type = w->type, .shape = x->shape};
	y->data = om_alloc(t->prog->mem, (size_t)n * WIDEST + WIDEST);
	memset(y->data, 0, (size_t)n * WIDEST + WIDEST);
	for (int64_t i = 0; i < n; i++)
		trial_put(w->type, y->data, i, number_at(x, x->splat ? 0 : i));
	v->data = y;
	v->type.elem = w->type;
}

static void
change_types(struct change *w)
{
	om_op *op = w->t->op;
	const om_dtype old = op->in[w->input]->type.elem;

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && (k == w->input || (w->together && op->in[k]->type.elem == old)))
			retype(w, op->in[k]);
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k]) {
			op->out[k]->type = (om_type){.kind = OM_TENSOR};
			op->out[k]->is_declared = false;
		}
}

/* ---- Execution of the kernel. ---- */

struct computed {
	om_arena *mem;
	om_op_context c;
	int fill;
	void *exact[2 * MOST_INPUTS];   /* separate allocations, so that sanitizers detect overruns */
	int nexact;
};

static void *
exactly(struct computed *r, uint64_t bytes, int fill)
{
	void *p = malloc(bytes ? bytes : 1);

	memset(p, fill, bytes ? bytes : 1);
	if (r->nexact == 2 * MOST_INPUTS)
		abort();
	return r->exact[r->nexact++] = p;
}

static om_status
give_room(om_op_context *c, uint32_t k, const om_shape *shape)
{
	struct computed *r = c->host;
	uint64_t bytes;

	if (!om_tensor_bytes(c->out[k].type, shape, &bytes))
		return OM_MEMORY;
	c->out[k].shape = *shape;
	c->out[k].data = exactly(r, bytes, r->fill);
	return OM_OK;
}

static om_status
place(const struct change *w, struct computed *r)
{
	const om_op *op = w->t->op;
	om_tensor *in = om_memdup(r->mem, r->c.in, op->nin * sizeof *in);
	uint64_t bytes;

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k]) {
			om_tensor_bytes(in[k].type, &in[k].shape, &bytes);
			in[k].data = memcpy(exactly(r, bytes, 0), in[k].data, bytes);
		}
	r->c.in = in;
	for (uint32_t k = 0; k < op->nout; k++) {
		if (w->t->row->flags & OM_DATA_DEPENDENT_SHAPE || !op->out[k])
			continue;
		if (!om_tensor_bytes(r->c.out[k].type, &r->c.out[k].shape, &bytes) || !r->c.out[k].type)
			return OM_SHAPE;
		r->c.out[k].data = exactly(r, bytes, r->fill);
	}
	return OM_OK;
}

static om_status
compute(const struct change *w, struct computed *r, int fill)
{
	const om_opdef *row = w->t->row;

	*r = (struct computed){.mem = om_arena_new(), .fill = fill};
	om_op_context_init(&r->c, w->t->session, r->mem, w->t->op);
	r->c.keep = r->mem;
	if (place(w, r) != OM_OK) {
		fail(w, "the type or shape of an output is not known");
		return OM_SHAPE;
	}
	OM_TRY(om_kernel_bind(&r->c, NULL));
	if (om_kernel_workspace(&r->c))
		r->c.scratch = exactly(r, om_kernel_workspace(&r->c), fill);
	if (row->flags & OM_DATA_DEPENDENT_SHAPE)
		r->c.alloc = give_room;
	r->c.host = r;
	return om_kernel_run(&r->c);
}

static void
computed_free(struct computed *r)
{
	for (int k = 0; k < r->nexact; k++)
		free(r->exact[k]);
	om_arena_free(r->mem);
}

/* ---- Checks. ---- */

/* Does the kernel compute the inputs?  False: it refuses them. */
static bool
check_kernel(const struct change *w)
{
	struct computed a, b;
	const om_status st = compute(w, &a, 0xa5);
	const bool random = w->t->row->flags & OM_RANDOM;

	if (st == OM_UNSUPPORTED)
		fail(w, "is refused late: %s", om_message(w->t->session));
	if (st == OM_OK) {
		if (compute(w, &b, 0x3c) != OM_OK)
			fail(w, "fails the second time: %s", om_message(w->t->session));
		else for (uint32_t k = 0; k < w->t->op->nout && !random; k++)
			if (w->t->op->out[k] && !same_tensors(&a.c.out[k], &b.c.out[k]))
				fail(w, "output %u depends on what was in its memory", k);
		computed_free(&b);
	}
	computed_free(&a);
	return st == OM_OK;
}

/* Does the kernel support the type? */
static bool
try_type(struct change *w, recipe_fn *make)
{
	bool runs = false;

	trial_start(w->t);
	make(w->t);
	change_types(w);
	const om_status st = om_op_infer(w->t->session, w->t->prog, w->t->op);
	if (st == OM_OK)
		runs = check_kernel(w);
	else if (!*om_message(w->t->session))
		fail(w, "is refused without a sentence");
	trial_end(w->t);
	return runs;
}

static uint32_t
inputs_of(struct trial *t, recipe_fn *make, bool *is_given)
{
	uint32_t n = 0;

	trial_start(t);
	if (make(t))
		for (n = 0; n < t->op->nin && n < MOST_INPUTS; n++)
			is_given[n] = t->op->in[n];
	trial_end(t);
	return n;
}

static void
show(const struct change *w, uint32_t types)
{
	printf("# types\t%s\t%s\t%d\t%d\t%u\t%u\t%s\t", w->t->row->domain ? w->t->row->domain : "", w->t->row->name, w->t->row->since,
		w->t->version, w->t->variant, w->input, w->together ? "together" : "alone");
	for (int type = 1; type < OM_NDTYPE; type++)
		if (types >> type & 1)
			printf("%s ", om_dtype_text((om_dtype)type));
	putchar('\n');
}

/* The number of types that at least one input may have. */
static unsigned
try_variant(struct trial *t, recipe_fn *make, bool shows)
{
	bool is_given[MOST_INPUTS] = {false};
	const uint32_t n = inputs_of(t, make, is_given);
	unsigned ran = 0;

	for (uint32_t k = 0; k < n; k++)
		for (int together = 0; together < 2 && is_given[k]; together++) {
			struct change w = {.t = t, .input = k, .together = together};
			uint32_t types = 0;
			for (int type = 1; type < OM_NDTYPE; type++) {
				w.type = (om_dtype)type;
				types |= (uint32_t)try_type(&w, make) << type;
			}
			ran += (unsigned)__builtin_popcount(types);
			if (shows)
				show(&w, types);
		}
	return ran;
}

static unsigned
try_row(const om_opdef *row, bool shows)
{
	const int newest = row->until ? row->until : row->since > NEWEST ? row->since : NEWEST;
	recipe_fn *make = recipe_of(row);
	unsigned ran = 0;

	for (int version = row->since; make && !excuse_of(row); version = newest) {
		struct trial t = {.row = row, .version = version};
		for (; t.variant < MOST_VARIANTS; t.variant++)
			ran += try_variant(&t, make, shows);
		if (version == newest)
			break;
	}
	return ran;
}

static bool
is_wanted(const om_opdef *row, int argc, char **argv)
{
	bool any = false;

	for (int k = 1; k < argc; k++) {
		if (strcmp(argv[k], row->name) == 0)
			return true;
		any |= *argv[k] != '-';
	}
	return !any;
}

int
main(int argc, char **argv)
{
	const bool shows = argc > 1 && strcmp(argv[1], "--show") == 0;
	unsigned rows = 0;

	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
		const unsigned before = failures;
		if (!is_wanted(r, argc, argv))
			continue;
		const unsigned ran = try_row(r, shows);
		printf("%s %u - %s from version %d, %u types computed\n", failures == before ? "ok" : "not ok", ++rows, r->name,
			r->since, ran);
		fflush(stdout);
	}
	printf("1..%u\n", rows);
	return failures || !rows ? EXIT_FAILURE : EXIT_SUCCESS;
}
