/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs of nested If, Loop and Scan: every plan computes the results that the program
 * defines.
 *
 * Each program is planned in several ways, verified, and run with three sets of inputs one after the
 * other: planned, poisoned, and with separate memory for every value.  All runs have to agree bit for
 * bit, and with an interpreter that is independent of plans.  Every variable that the interpreter still
 * reads has to be in the live sets.
 *
 *	flows [FIRST-SEED [COUNT]]
 *	flows --faults FIRST-SEED COUNT [FAULTS]
 *	flows --write FOLDER FIRST-SEED COUNT
 *
 * The plans of some programs are damaged, in many ways one after the other.  Each time the verifier has
 * to refuse the plan, or the plan is no smaller than the lower bound and computes the right results.
 *
 * A single program that fails is shrunk and printed.  --write is for tests/fuzz/flows.py: each program
 * in the language of the onnx package's parser, with its inputs and results. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../same.h"
#include "flows.h"
#include "tests/fixtures.h"

enum { COUNT = 250, FAULTS = 8, RUNS = 3, NIN = 6 };

struct test {
	om_session *s;
	om_host *h;
	om_arena *mem;            /* reset for each program */
	struct flow *f;
	struct number in[RUNS][NIN];
	struct number *want[RUNS];
	om_tensor first[RUNS][MAX_RESULTS]; /* results of the run without reuse */
	bool has_first;
	uint64_t bytes;           /* size of the arena of the default plan */
	uint64_t nfault;          /* number of faults tried per plan, one at a time */
	uint64_t nharmless;       /* number of those that were harmless */
	size_t start;             /* the first planner configuration to try; the only one while a fault is
	                             shrunk */
};

/* ---- Inputs and results. ---- */

static void
make_inputs(struct test *t, int run, uint64_t seed)
{
	const int64_t trips = run == 0 ? 3 : run == 1 ? 0 : 1 + (int64_t)(seed % 13);
	const bool go = (seed + (uint64_t)run) & 1, other = (seed >> 1 ^ (uint64_t)run) & 1;

	for (int k = 0; k < NIN; k++) {
		const struct var *v = &t->f->var[t->f->main->param[k]];
		const int64_t n = flow_count(&v->dims);
		t->in[run][k] = (struct number){v->type, v->dims, OM_NEWN(t->mem, double, (size_t)n)};
		for (int64_t i = 0; i < n; i++)
			t->in[run][k].x[i] = v->type == F32 ? (double)((i * 37 + k + 11 * run) % 29) / 4 - 3.5
				: v->type == BOOL ? (k == 2 ? go : other) : v->dims.rank ? (double)(i + run - 2)
				: (double)trips;
	}
}

/* ---- Comparison. ---- */

/* If nothing is stacked, only the number of elements, zero, can be compared. */
static bool
has_dims(const om_tensor *got, const struct dims *want)
{
	if (flow_count(want) == 0)
		return om_shape_count(&got->shape) == 0;
	if (got->shape.rank != want->rank)
		return false;
	for (int k = 0; k < want->rank; k++)
		if (got->shape.dim[k] != want->dim[k])
			return false;
	return true;
}

static om_status
check_result(struct test *t, const char *how, int run, uint32_t k, const om_tensor *got)
{
	const struct number *want = &t->want[run][k];
	const int64_t n = flow_count(&want->dims);
	char text[256];

	if (got->type != flow_dtype[want->type] || !has_dims(got, &want->dims))
		return om_fail(t->s, OM_MISMATCH, "result %u of run %d, %s, is %s %s", k, run, how,
			om_dtype_text(got->type), om_shape_text(&got->shape, text, sizeof text));
	for (int64_t i = 0; i < n; i++) {
		const double x = element_at(got, i);
		if (!(x == want->x[i]))
			return om_fail(t->s, OM_MISMATCH, "result %u of run %d, %s, is %g at %lld, not %g", k, run, how,
				x, (long long)i, want->x[i]);
	}
	return OM_OK;
}

/* The results of the very first run are kept. */
static om_status
check_bits(struct test *t, const char *how, int run, uint32_t k, const om_tensor *got)
{
	om_tensor *first = &t->first[run][k];
	uint64_t bytes = 0;

	om_tensor_bytes(got->type, &got->shape, &bytes);
	if (!t->has_first) {
		*first = *got;
		first->data = om_memdup(t->mem, bytes ? got->data : "", bytes ? bytes : 1);
		return OM_OK;
	}
	if (same_tensors(first, got))
		return OM_OK;
	return om_fail(t->s, OM_MISMATCH, "result %u of run %d, %s, has other bits than without reuse", k, run, how);
}

/* ---- Execution. ---- */

static om_status
run_once(struct test *t, om_exec *e, const char *how, int run)
{
	for (uint32_t k = 0; k < NIN; k++) {
		const om_tensor x = flow_tensor(&t->in[run][k], t->mem);
		OM_TRY(om_exec_input(e, k, &x));
	}
	OM_TRY(om_exec_run(e));
	for (uint32_t k = 0; k < (uint32_t)t->f->main->nresult; k++) {
		OM_TRY(check_result(t, how, run, k, om_exec_result(e, k)));
		OM_TRY(check_bits(t, how, run, k, om_exec_result(e, k)));
	}
	return OM_OK;
}

static om_status
run_way(struct test *t, om_prog *p, int way)
{
	om_status st = OM_OK;
	om_exec *e;

	OM_TRY(om_exec_new(t->s, p, ways[way].no_reuse ? NULL : p->plan, &ways[way], &e));
	for (int run = 0; run < RUNS && st == OM_OK; run++)
		st = run_once(t, e, way_text[way], run);
	om_exec_free(e);
	t->has_first |= st == OM_OK;
	return st;
}

/* ---- Lifetimes. ---- */

static om_status
check_live(struct test *t, const char *text)
{
	om_prog *p = NULL;
	om_status st = text_parse(t->s, text, &p);

	if (st == OM_OK)
		st = om_host_run(t->h, p, "liveness");
	for (int run = 0; run < RUNS && st == OM_OK; run++)
		st = flow_check_live(t->s, p, t->f, t->in[run], t->mem);
	om_prog_free(p);
	return st;
}

/* ---- Planning. ---- */

struct passes {
	const char *list;            /* NULL: the default pipeline */
	bool parallel_safe, two_arenas;
};

static const struct passes always[] = {{NULL, false, false}, {NULL, true, false}};
static const struct passes sometimes[] = {
	{"inline,shapes,fold,liveness,views,inplace,pack", false, false}, {"views,inplace,pack=pool-best-fit", false, false},
	{"pack=color", false, false}, {"views,inplace,pack=nnc-code", true, false}, {NULL, false, true},
	{"inline,shapes,fold,prune,schedule=bfs,liveness,pack", false, false}, {NULL, true, true},
	{"inline,shapes,fold,prune,schedule=min-memory,rematerialize=100:search-nodes=100000,liveness,views,inplace,loops,pack", false, false},
};

enum { ALWAYS = sizeof always / sizeof always[0], SOMETIMES = sizeof sometimes / sizeof sometimes[0] };

/* With two arenas, the first has space for a part of the peak live bytes. */
static om_status
plan_as(struct test *t, om_prog *p, const struct passes *passes)
{
	om_arena_spec want[] = {{.name = "fast", .device = "cpu", .limit = t->bytes / 2 + 64},
		{.name = "slow", .device = "cpu"}};

	OM_TRY(om_host_request(t->h, &(om_plan_request)OM_PLAN_REQUEST(.arena = want, .narena = passes->two_arenas ? 2 : 0,
		.parallel_safe = passes->parallel_safe)));
	const om_status st = om_host_run(t->h, p, passes->list ? passes->list : om_default_pipeline());
	if (st == OM_OK && passes == always)
		t->bytes = p->plan->arena[0].bytes;
	return st;
}

static om_status
check_plan(struct test *t, const char *text, const struct passes *passes)
{
	om_prog *p = NULL;
	om_status st = text_parse(t->s, text, &p);

	if (st == OM_OK)
		st = plan_as(t, p, passes);
	if (st == OM_OK)
		st = om_verify(t->s, p);
	if (st == OM_OK)
		st = om_plan_verify(t->s, p, p->plan);
	for (int way = t->has_first; way < NWAY && st == OM_OK; way++)
		st = run_way(t, p, way);
	om_prog_free(p);
	return st;
}

/* ---- Faults. ---- */

/* A fault is detected, or harmless. */
static om_status
check_fault(struct test *t, om_prog *p, uint64_t seed)
{
	om_arena *mem = om_arena_new();
	om_plan *right = p->plan;
	om_status st = OM_OK;
	const char *what;

	p->plan = flow_fault(p, seed, mem, &what);
	if (om_plan_verify(t->s, p, p->plan) == OM_OK) {
		t->nharmless++;
		if (p->plan->arena[0].bytes < p->plan->arena[0].lower_bound)
			st = om_fail(t->s, OM_BADPLAN, "a plan of %llu bytes, below the bound of %llu, is right",
				(unsigned long long)p->plan->arena[0].bytes,
				(unsigned long long)p->plan->arena[0].lower_bound);
		for (int way = SEPARATE + 1; way < NWAY && st == OM_OK; way++)
			st = run_way(t, p, way);
	}
	if (st != OM_OK)
		printf("# seed %llu, fault %llu (%s): %s\n", (unsigned long long)(seed >> 16),
			(unsigned long long)(seed & 0xffff), what, om_message(t->s));
	p->plan = right;
	om_arena_free(mem);
	return st;
}

static om_status
check_faults(struct test *t, const char *text, uint64_t seed)
{
	om_prog *p = NULL;
	om_status st = text_parse(t->s, text, &p);

	if (st == OM_OK)
		st = plan_as(t, p, &always[seed % 8 == 0]);
	for (uint64_t k = 0; k < t->nfault && st == OM_OK; k++)
		st = check_fault(t, p, seed << 16 | k);
	om_prog_free(p);
	return st;
}

static char *
text_of(const struct flow *f, void (*print)(const struct flow *f, FILE *to))
{
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	print(f, to);
	fclose(to);
	return text;
}

/* False: the program does not terminate. */
static bool
prepare(struct test *t, struct flow *f, uint64_t seed)
{
	t->f = f;
	t->has_first = false;
	for (int run = 0; run < RUNS; run++) {
		make_inputs(t, run, seed);
		t->want[run] = flow_eval(t->f, t->in[run], NULL, t->mem);
		if (!t->want[run])
			return false;
	}
	return true;
}

/* Plan in one way after the other, until one fails. */
static om_status
check_flow(struct test *t, struct flow *f, uint64_t seed, bool is_hunt)
{
	const bool is_loud = !is_hunt;

	if (!prepare(t, f, seed)) {
		if (is_loud)
			printf("# seed %llu: a loop does not end\n", (unsigned long long)seed);
		return is_hunt ? OM_OK : OM_INVALID;
	}
	char *text = text_of(t->f, flow_print);
	om_status st = is_hunt ? OM_OK : check_live(t, text);
	if (st != OM_OK && is_loud)
		printf("# seed %llu: %s\n", (unsigned long long)seed, om_message(t->s));
	for (size_t k = t->start; k <= ALWAYS && st == OM_OK && (!is_hunt || k == t->start); k++) {
		const struct passes *p = k < ALWAYS ? &always[k] : &sometimes[seed % SOMETIMES];
		st = check_plan(t, text, p);
		if (st == OM_OK || is_hunt)
			continue;
		t->start = k;
		printf("# seed %llu, %s%s%s: %s\n", (unsigned long long)seed, p->list ? p->list : "usual passes",
			p->parallel_safe ? ", any order" : "", p->two_arenas ? ", two arenas" : "", om_message(t->s));
	}
	if (st == OM_OK && is_loud && t->nfault)
		st = check_faults(t, text, seed);
	free(text);
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
	om_arena *const mem = h->t->mem;

	h->t->mem = om_arena_new();
	const om_status st = check_flow(h->t, f, h->seed, true);
	om_arena_free(h->t->mem);
	h->t->mem = mem;
	return st == h->st;
}

/* Shrink and print a failing program. */
static void
show(struct test *t, struct flow *f, uint64_t seed, om_status st)
{
	struct hunt h = {t, seed, st};

	f = flow_shrink(t->mem, f, has_fault, &h);
	check_flow(t, f, seed, false);
	flow_print(f, stdout);
}

static bool
check(struct test *t, uint64_t seed, bool alone)
{
	t->mem = om_arena_new();
	struct flow *f = flow_make(t->mem, seed);
	t->start = 0;
	const om_status st = check_flow(t, f, seed, false);
	if (st != OM_OK && alone)
		show(t, f, seed, st);
	om_arena_free(t->mem);
	return st == OM_OK;
}

/* ---- Files. ---- */

static void
write_number(FILE *to, const char *what, const struct number *x)
{
	static const char *const type[NTYPE] = {"float32", "float64", "int64", "bool"};

	fprintf(to, "%s %s ", what, type[x->type]);
	for (int k = 0; k < x->dims.rank; k++)
		fprintf(to, "%s%d", k ? "," : "", x->dims.dim[k]);
	fputs(" :", to);
	for (int64_t k = 0; k < flow_count(&x->dims); k++)
		fprintf(to, " %.17g", x->x[k]);
	fputc('\n', to);
}

static FILE *
open_in(const char *folder, uint64_t seed, const char *end)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%llu.%s", folder, (unsigned long long)seed, end);
	return fopen(path, "w");
}

static bool
write_one(struct test *t, const char *folder, uint64_t seed)
{
	t->mem = om_arena_new();
	if (!prepare(t, flow_make(t->mem, seed), seed))
		return false;
	FILE *model = open_in(folder, seed, "txt"), *data = open_in(folder, seed, "data");
	if (model)
		flow_print_onnx(t->f, model);
	for (int run = 0; run < RUNS && data; run++) {
		fputs("run\n", data);
		for (int k = 0; k < NIN; k++)
			write_number(data, "in", &t->in[run][k]);
		for (int k = 0; k < t->f->main->nresult; k++)
			write_number(data, "out", &t->want[run][k]);
	}
	om_arena_free(t->mem);
	return model && data && fclose(model) == 0 && fclose(data) == 0;
}

static int
write_all(struct test *t, const char *folder, uint64_t first, uint64_t n)
{
	for (uint64_t seed = first; seed < first + n; seed++)
		if (!write_one(t, folder, seed)) {
			fprintf(stderr, "flows: %s cannot be written\n", folder);
			return 1;
		}
	return 0;
}

static int
check_all(struct test *t, uint64_t first, uint64_t n)
{
	unsigned failed = 0;

	t->s = om_session_new();
	t->h = om_host_new(t->s, NULL);
	for (uint64_t seed = first; seed < first + n && failed < 10; seed++)
		failed += !check(t, seed, n == 1);
	om_host_free(t->h);
	om_session_free(t->s);
	printf("1..1\n%sok 1 - %llu programs of nested branches and loops: like the interpreter, in all ways\n",
		failed ? "not " : "", (unsigned long long)n);
	if (t->nfault)
		printf("# %llu faults in each plan: refused, but for %llu in all that do no harm\n",
			(unsigned long long)t->nfault, (unsigned long long)t->nharmless);
	return failed != 0;
}

int
main(int argc, char **argv)
{
	struct test t = {0};

	if (argc == 5 && strcmp(argv[1], "--write") == 0)
		return write_all(&t, argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	t.nfault = FAULTS;
	if (argc > 3 && strcmp(argv[1], "--faults") == 0) {
		t.nfault = argc > 4 ? strtoull(argv[4], NULL, 10) : 100;
		return check_all(&t, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	}
	return check_all(&t, argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
		argc > 2 ? strtoull(argv[2], NULL, 10) : COUNT);
}
