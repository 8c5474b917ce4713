/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of random programs of nested If, Loop and Scan.
 *
 * The loss is the sum of the squares of all floating-point results.  Its slope along a random direction
 * of the inputs, as the interpreter finds it by differences, has to agree with that of the gradients;
 * if the one-sided slopes differ there is a corner, and the program is skipped.  Runs with shared
 * memory, and with poisoned memory, have to give the same bits as a run without reuse.
 *
 * Mutants, rules with a deliberate error, have to be detected.
 *
 *	flowgrads [FIRST-SEED [COUNT]] */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "flows.h"
#include "grad/grad_builder.h"
#include "ir/edit.h"
#include "opdef/op_context.h"
#include "onnxmem/autodiff.h"
#include "tests/fixtures.h"

enum { COUNT = 300, NIN = 6, NFLOAT = 2, ROUNDS_OF_LONGEST = 6, MUTANT_SEEDS = 1000 };

struct test {
	om_session *s;
	om_host *h;
	om_arena *mem;
	struct flow *f;
	uint64_t state;
	struct number in[NIN];
	double *along[NFLOAT];    /* the direction */
	om_prog *p;
	om_value *grad[NFLOAT];
	double slope;             /* computed from the gradients */
	double *bits;
	const struct wrong *wrong; /* NULL: unmodified rules */
	unsigned checked, corners, constant;
};

static double
share(struct test *t)
{
	return om_rng_unit(&t->state);
}

/* Convert all floating-point types to float64. */
static void
widen_block(struct block *b)
{
	for (struct node *n = b->first; n; n = n->next) {
		if (n->what == CAST && n->arg[0] == F32)
			n->arg[0] = F64;
		for (int k = 0; k < 2; k++)
			if (n->body[k])
				widen_block(n->body[k]);
	}
}

static bool
is_result(const struct block *b, int id)
{
	for (int k = 0; k < b->nresult; k++)
		if (b->result[k] == id)
			return true;
	return false;
}

/* The floating-point outputs of ops with bodies become results, so that they are in the loss. */
static void
add_results(struct flow *f)
{
	struct block *b = f->main;

	for (const struct node *n = b->first; n; n = n->next)
		for (int k = 0; k < n->nout && n->body[0]; k++)
			if (b->nresult < MAX_RESULTS && f->var[n->out[k]].type == F64 && !is_result(b, n->out[k]))
				b->result[b->nresult++] = n->out[k];
}

static void
make_program(struct test *t, uint64_t seed)
{
	t->f = flow_make(t->mem, seed);
	for (size_t k = 0; k < t->f->nvar; k++)
		if (t->f->var[k].type == F32)
			t->f->var[k].type = F64;
	widen_block(t->f->main);
	add_results(t->f);
}

static void
make_inputs(struct test *t, uint64_t seed)
{
	t->state = seed;
	for (int k = 0; k < NIN; k++) {
		const struct var *v = &t->f->var[t->f->main->param[k]];
		const int64_t n = flow_count(&v->dims);
		t->in[k] = (struct number){v->type, v->dims, OM_NEWN(t->mem, double, (size_t)n)};
		for (int64_t i = 0; i < n; i++)
			t->in[k].x[i] = v->type == F64 ? 4 * share(t) - 2 : v->type == BOOL ? share(t) < 0.5
				: v->dims.rank ? (double)(i - 2) : floor(ROUNDS_OF_LONGEST * share(t));
		if (k >= NFLOAT)
			continue;
		t->along[k] = OM_NEWN(t->mem, double, (size_t)n);
		for (int64_t i = 0; i < n; i++)
			t->along[k][i] = share(t) - 0.5;
	}
}

/* ---- Slopes by differences. ---- */

static double
loss_at(struct test *t, double h)
{
	om_arena *mem = om_arena_new();
	struct number in[NIN];
	double sum = 0;

	memcpy(in, t->in, sizeof in);
	for (int k = 0; k < NFLOAT; k++) {
		const int64_t n = flow_count(&in[k].dims);
		in[k].x = om_memdup(mem, t->in[k].x, (size_t)n * sizeof(double));
		for (int64_t i = 0; i < n; i++)
			in[k].x[i] += h * t->along[k][i];
	}
	const struct number *out = flow_eval(t->f, in, NULL, mem);
	for (int k = 0; out && k < t->f->main->nresult; k++)
		for (int64_t i = flow_count(&out[k].dims); out[k].type == F64 && i-- > 0;)
			sum += out[k].x[i] * out[k].x[i];
	om_arena_free(mem);
	return out ? sum : NAN;
}

/* False: there is a corner. */
static bool
slope_by_differences(struct test *t, double *slope)
{
	const double h = 1e-6, at = loss_at(t, 0), up = loss_at(t, h), down = loss_at(t, -h);
	const double right = (up - at) / h, left = (at - down) / h;

	*slope = (up - down) / (2 * h);
	return isfinite(*slope) && fabs(right - left) <= 1e-3 * (1 + fabs(*slope));
}

/* ---- Mutants. ---- */

struct wrong {
	const char *name, *how;
	void (*grad)(om_grad *g);
};

/* A copy of an operator definition, and the mutant registered for it, which finds the correct rule
 * through it. */
struct mutant {
	om_opdef row;
	om_gradient gradient[2];
	void (*right)(om_grad *g);
};

static void
make_right(om_grad *g)
{
	((const struct mutant *)om_grad_op(g)->opdef)->right(g);
}

/* The last op of this type in the backward path, built by the correct rule. */
static om_op *
find_built(om_grad *g, const char *type)
{
	om_op *op = om_grad_scope(g)->to->last;

	while (op && strcmp(op->type, type) != 0)
		op = op->prev;
	return op;
}

static void
read_scan_from_its_start(om_op *scan)
{
	const om_attr *a = om_attr_find(scan, "scan_input_directions");

	for (size_t k = 0; a && k < a->n; k++)
		((int64_t *)a->i)[k] = !a->i[k];
}

/* The first op of the body computes the position of the slices that the others gather. */
static void
read_loop_from_its_start(om_op *loop)
{
	om_block *body = loop->body[0];

	for (om_op *op = body->first; op; op = op->next)
		if (strcmp(op->type, "Gather") == 0 && op->in[1] == body->first->out[0])
			om_op_set_in(op, 1, body->param[0]);
}

static void
read_tape_from_its_start(om_grad *g)
{
	make_right(g);
	om_op *scan = find_built(g, "Scan"), *loop = find_built(g, "Loop");
	if (scan)
		read_scan_from_its_start(scan);
	if (loop)
		read_loop_from_its_start(loop);
}

static void
take_other_branch(om_grad *g)
{
	om_value *not = om_emit(g, "Not", om_grad_forward_input(g, 0));

	make_right(g);
	om_op *branches = find_built(g, "If");
	if (branches)
		om_op_set_in(branches, 0, not);
}

static void
count_twice(om_grad *g)
{
	make_right(g);
	make_right(g);
}

static const struct wrong wrongs[] = {
	{"Loop", "reads its tape from the start", read_tape_from_its_start},
	{"Scan", "reads its tape from the start", read_tape_from_its_start},
	{"If", "takes the other branch", take_other_branch},
	{"Loop", "counts twice", count_twice}, {"Scan", "counts twice", count_twice}, {"If", "counts twice", count_twice},
};

static void
make_wrong(struct test *t, om_block *b)
{
	for (om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nbody; k++)
			make_wrong(t, op->body[k]);
		if (!op->opdef || strcmp(op->opdef->name, t->wrong->name) != 0)
			continue;
		struct mutant *m = OM_NEW(t->mem, struct mutant);
		*m = (struct mutant){.row = *op->opdef, .right = om_op_gradient(t->p, op)->rule};
		m->row.domain = "mutant";
		m->gradient[0] = (om_gradient){.domain = m->row.domain, .name = op->opdef->name, .rule = t->wrong->grad};
		om_gradients_add(om_prog_gradients(t->p), m->gradient);
		op->opdef = &m->row;
	}
}

/* ---- Slopes by gradients. ---- */

static om_value *
op_of(om_prog *p, const char *type, om_value *a, om_value *b)
{
	om_op *op = om_op_new(p, "", type, 0, b ? 2 : 1, 1);
	om_value *y = om_value_fresh(p, p->first, "loss");

	om_op_set_in(op, 0, a);
	if (b)
		om_op_set_in(op, 1, b);
	om_op_set_out(op, 0, y);
	if (!b)
		om_op_add_int(p, op, "keepdims", 0);
	om_op_append(p->first, op);
	return y;
}

/* NULL: no result is floating-point. */
static om_value *
add_loss(om_prog *p)
{
	om_value *loss = NULL;

	for (uint32_t k = 0; k < p->first->nresult; k++) {
		om_value *r = p->first->result[k];
		if (r->type.elem != OM_FLOAT64)
			continue;
		om_value *one = op_of(p, "ReduceSum", op_of(p, "Mul", r, r), NULL);
		loss = loss ? op_of(p, "Add", loss, one) : one;
	}
	return loss;
}

static om_status
make_gradients(struct test *t, const char *text)
{
	OM_TRY(text_parse(t->s, text, &t->p));
	OM_TRY(om_host_run(t->h, t->p, "inline,shapes"));
	if (t->wrong)
		make_wrong(t, t->p->first);
	om_backward b = OM_BACKWARD(.loss = add_loss(t->p), .wrt = t->p->first->param, .nwrt = NFLOAT, .grad = t->grad,
		.copies = t->state & 1);
	if (!b.loss)
		return OM_OK;
	OM_TRY(om_block_infer(t->s, t->p, t->p->first));
	OM_TRY(om_prog_backward(t->s, t->p, &b));
	om_block_clear_results(t->p->first);
	for (int k = 0; k < NFLOAT; k++)
		if (t->grad[k])
			om_block_add_result(t->p->first, t->grad[k]);
	if (t->p->first->nresult == 0)
		om_block_add_result(t->p->first, b.loss);
	OM_TRY(om_verify(t->s, t->p));
	OM_TRY(om_host_run(t->h, t->p, om_default_pipeline()));
	return om_plan_verify(t->s, t->p, t->p->plan);
}

/* The slope along the direction; all ways to run give the same bits as the first. */
static om_status
take_slope(struct test *t, om_exec *e, bool is_first)
{
	uint32_t at = 0;
	size_t n = 0;

	t->slope = 0;
	for (int k = 0; k < NFLOAT; k++) {
		if (!t->grad[k])
			continue;
		const om_tensor *r = om_exec_result(e, at++);
		const int64_t count = flow_count(&t->in[k].dims);
		if (om_shape_count(&r->shape) != count)
			return om_fail(t->s, OM_MISMATCH, "the gradient of input %d has another size", k);
		for (int64_t i = 0; i < count; i++, n++) {
			const double g = ((const double *)r->data)[i];
			t->slope += g * t->along[k][i];
			if (!is_first && memcmp(&g, &t->bits[n], sizeof g) != 0)
				return om_fail(t->s, OM_MISMATCH, "the gradient of input %d has other bits than without reuse", k);
			t->bits[n] = g;
		}
	}
	return OM_OK;
}

static om_status
run_ways(struct test *t)
{
	t->bits = OM_NEWN(t->mem, double, (size_t)(flow_count(&t->in[0].dims) + flow_count(&t->in[1].dims)));
	for (int w = 0; w < NWAY; w++) {
		om_exec *e;
		OM_TRY(om_exec_new(t->s, t->p, w == SEPARATE ? NULL : t->p->plan, &ways[w], &e));
		om_status st = OM_OK;
		for (uint32_t k = 0; k < NIN && st == OM_OK; k++) {
			const om_tensor x = flow_tensor(&t->in[k], t->mem);
			st = om_exec_input(e, k, &x);
		}
		if (st == OM_OK)
			st = om_exec_run(e);
		if (st == OM_OK)
			st = take_slope(t, e, w == SEPARATE);
		om_exec_free(e);
		OM_TRY(st);
	}
	return OM_OK;
}

/* ---- Checks. ---- */

static om_status
check_one(struct test *t, const char *text)
{
	double slope;
	om_status st = make_gradients(t, text);
	const bool has_none = !t->grad[0] && !t->grad[1];

	if (st == OM_OK && !has_none)
		st = run_ways(t);
	OM_TRY(st);
	t->constant += has_none;
	if (!slope_by_differences(t, &slope)) {
		t->corners++;
		return OM_OK;
	}
	t->checked++;
	if (fabs(slope - t->slope) <= 1e-4 * (1 + fabs(slope)))
		return OM_OK;
	return om_fail(t->s, OM_MISMATCH, "the slope is %.9g by the gradients, %.9g by differences", t->slope, slope);
}

/* The program at hand, with inputs of its own. */
static om_status
check_flow(struct test *t, uint64_t seed)
{
	char *text;
	size_t size;

	t->p = NULL;
	t->slope = 0;
	t->grad[0] = t->grad[1] = NULL;
	make_inputs(t, seed);
	if (isnan(loss_at(t, 0)))   /* it does not terminate */
		return OM_OK;
	FILE *to = open_memstream(&text, &size);
	flow_print(t->f, to);
	fclose(to);
	const om_status st = check_one(t, text);
	free(text);
	om_prog_free(t->p);
	return st;
}

struct hunt {
	struct test *t;
	uint64_t seed;
	om_status st;
};

static bool
has_fault(void *arg, struct flow *f)
{
	const struct hunt *h = arg;
	struct test t = *h->t;

	t.mem = om_arena_new();
	t.f = f;
	const om_status st = check_flow(&t, h->seed);
	om_arena_free(t.mem);
	return st == h->st;
}

/* Shrink and print a failing program. */
static void
show(struct test *t, uint64_t seed, om_status st)
{
	struct hunt h = {t, seed, st};

	printf("# seed %llu: %s\n", (unsigned long long)seed, om_message(t->s));
	t->f = flow_shrink(t->mem, t->f, has_fault, &h);
	check_flow(t, seed);
	printf("# shrunk: %s\n", om_message(t->s));
	flow_print(t->f, stdout);
}

static bool
check_seed(struct test *t, uint64_t seed)
{
	t->mem = om_arena_new();
	make_program(t, seed);
	const om_status st = check_flow(t, seed);
	if (st != OM_OK && !t->wrong)
		show(t, seed, st);
	om_arena_free(t->mem);
	return st == OM_OK;
}

static bool
is_caught(struct test *t, const struct wrong *w)
{
	bool caught = false;

	t->wrong = w;
	for (uint64_t seed = 1; seed <= MUTANT_SEEDS && !caught; seed++)
		caught = !check_seed(t, seed);
	t->wrong = NULL;
	return caught;
}

int
main(int argc, char **argv)
{
	struct test t = {.s = om_session_new()};
	const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, n = argc > 2 ? strtoull(argv[2], NULL, 10) : COUNT;
	const unsigned nwrong = sizeof wrongs / sizeof wrongs[0];
	unsigned failed = 0;

	t.h = om_host_new(t.s, NULL);
	for (uint64_t seed = first; seed < first + n; seed++)
		failed += !check_seed(&t, seed);
	printf("# %u slopes agree or not, %u corners, %u without gradient\n", t.checked, t.corners, t.constant);
	printf("%sok 1 - gradients of %llu random programs\n", failed ? "not " : "", (unsigned long long)n);
	for (unsigned k = 0; k < nwrong; k++) {
		const bool caught = is_caught(&t, &wrongs[k]);
		failed += !caught;
		printf("%sok %u - a wrong %s is caught: it %s\n", caught ? "" : "not ", k + 2, wrongs[k].name, wrongs[k].how);
	}
	printf("1..%u\n", nwrong + 1);
	om_host_free(t.h);
	om_session_free(t.s);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
