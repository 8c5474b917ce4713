/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that each sharing strategy needs, on graphs from files.
 *
 *	bench/plan [--parallel-safe] [--bytes] FILE...
 *
 * NAME.txt holds the memory problem of a graph: `t ID BYTES` a tensor, `i ID` an
 * input, `o ID` an output, `op INPLACE in,in out,out` in order of execution, `-`
 * for none; INPLACE is 1 if the first output may be computed over the first
 * input.  NAME.onnx is a model, planned as by `onnxmem plan`.
 *
 * One line for each graph and each set of rules: without sharing rules (file),
 * in-place (inplace; for models with views), for models views alone (views), and,
 * with --parallel-safe, valid in every order (parallel-safe).  The columns are buffers, the lower
 * bound, and for each planner its bytes / bound, or, with --bytes, its bytes.  At
 * the end, for each set of rules: geometric means, how often the bound was met, and
 * the total milliseconds.
 * Every plan is checked.
 */
#include <config.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pack/baselines/interference_list.h"
#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"
#include "pack/baselines/baselines.h"
#include "tests/bind.h"

/* Every value on its own, the rows of the table, the packer. */
enum { NAIVE, MOST_PLANNERS = 32 };

static unsigned
nplanner(void)
{
	unsigned n = 0;

	while (n + 2 < MOST_PLANNERS && om_strategy_at(n))
		n++;
	return n + 2;
}

/* NULL: it is no row. */
static const om_strategy *
row_of(unsigned planner)
{
	return planner == NAIVE ? NULL : om_strategy_at(planner - 1);
}

static const char *
name_of(unsigned planner)
{
	return planner == NAIVE ? "naive" : row_of(planner) ? row_of(planner)->name : "packer";
}

enum rules { ORIGINAL_ORDER, INPLACE, VIEWS, PARALLEL_SAFE, NRULES };

static const char *const rule_names[NRULES] = {"original", "inplace", "views", "parallel-safe"};

struct sums {
	double logs[MOST_PLANNERS], ms[MOST_PLANNERS];
	unsigned n, met[MOST_PLANNERS];
};

struct bench {
	om_session *s;
	om_host *h;
	struct sums sums[NRULES];
	bool parallel_safe, in_bytes;
	unsigned failed;
};

/* The result of one planner for one problem. */
struct answer {
	uint64_t bytes;
	double ms;
};

static bool
takes_part(unsigned planner, enum rules rules)
{
	return rules != PARALLEL_SAFE || !row_of(planner) || row_of(planner)->parallel_safe;
}

static void
print_row(struct bench *w, const char *name, enum rules rules, uint32_t n, uint64_t bound,
	const struct answer *a)
{
	struct sums *sum = &w->sums[rules];

	printf("%-26.26s %-7s %6" PRIu32 " %12" PRIu64, name, rule_names[rules], n, bound);
	sum->n += bound > 0;
	for (unsigned k = 0; k < nplanner(); k++) {
		const double ratio = bound ? (double)a[k].bytes / (double)bound : 1;
		if (!takes_part(k, rules)) {
			printf(" %11s", "-");
			continue;
		}
		if (w->in_bytes)
			printf(" %11" PRIu64, a[k].bytes);
		else
			printf(" %11.3f", ratio);
		sum->ms[k] += a[k].ms;
		sum->logs[k] += log(ratio);
		sum->met[k] += bound && a[k].bytes == bound;
	}
	putchar('\n');
}

static void
print_sums(const struct bench *w)
{
	for (int r = 0; r < NRULES; r++) {
		const struct sums *sum = &w->sums[r];
		if (sum->n == 0)
			continue;
		printf("\n%-34s %6u %12s", "geometric mean", sum->n, rule_names[r]);
		for (unsigned k = 0; k < nplanner(); k++)
			if (takes_part(k, (enum rules)r))
				printf(" %11.4f", exp(sum->logs[k] / sum->n));
			else
				printf(" %11s", "-");
		printf("\n%-54s", "at the bound");
		for (unsigned k = 0; k < nplanner(); k++)
			printf(" %11u", sum->met[k]);
		printf("\n%-54s", "milliseconds");
		for (unsigned k = 0; k < nplanner(); k++)
			printf(" %11.2f", sum->ms[k]);
		putchar('\n');
	}
}

static int
complain(struct bench *w, const char *name, const char *planner)
{
	printf("%s, %s: %s\n", name, planner, om_message(w->s));
	w->failed++;
	return 1;
}

/* ---- Graphs as text. ---- */

enum { NONE = UINT32_MAX };

struct tensor {
	uint64_t bytes;
	uint32_t first, last;    /* ops that define it and use it last */
	uint32_t root;           /* the tensor that owns its storage */
	bool is_planned, is_result;
};

struct step {
	uint32_t *in, *out;
	size_t nin, nout, capin, capout;
	bool may_reuse;
};

struct graph {
	om_arena *mem;
	struct tensor *tensor;
	size_t ntensor, captensor;
	struct step *step;
	size_t nstep, capstep;
};

static struct tensor *
tensor(struct graph *g, uint32_t id)
{
	static const struct tensor unseen = {.first = NONE};

	while (g->ntensor <= id)
		OM_PUSH(g->mem, g->tensor, g->ntensor, g->captensor, unseen);
	return &g->tensor[id];
}

static void
read_ids(struct graph *g, const char *text, uint32_t **list, size_t *n, size_t *cap)
{
	char *end;

	for (uint32_t id; *text && *text != '-'; text = *end == ',' ? end + 1 : end) {
		id = (uint32_t)strtoul(text, &end, 10);
		if (end == text)
			return;
		OM_PUSH(g->mem, *list, *n, *cap, id);
	}
}

static void
add_step(struct graph *g, int may_reuse, const char *in, const char *out)
{
	struct step s = {.may_reuse = may_reuse};
	const uint32_t now = (uint32_t)g->nstep;

	read_ids(g, in, &s.in, &s.nin, &s.capin);
	read_ids(g, out, &s.out, &s.nout, &s.capout);
	for (size_t k = 0; k < s.nin; k++)
		tensor(g, s.in[k])->last = now;
	for (size_t k = 0; k < s.nout; k++) {
		struct tensor *t = tensor(g, s.out[k]);
		t->is_planned = true;
		t->first = t->last = now;
	}
	OM_PUSH(g->mem, g->step, g->nstep, g->capstep, s);
}

static void
read_line(struct graph *g, const char *line, char *in, char *out)
{
	uint32_t id;
	uint64_t bytes;
	int may_reuse;

	if (sscanf(line, "t %" SCNu32 " %" SCNu64, &id, &bytes) == 2)
		tensor(g, id)->bytes = bytes;
	else if (sscanf(line, "o %" SCNu32, &id) == 1)
		tensor(g, id)->is_result = true;
	else if (sscanf(line, "op %d %s %s", &may_reuse, in, out) == 3)
		add_step(g, may_reuse, in, out);
}

static bool
read_graph(struct graph *g, const char *path)
{
	FILE *from = fopen(path, "r");
	char *line = NULL, *in = NULL, *out = NULL;
	size_t size = 0;

	if (!from)
		return false;
	while (getline(&line, &size, from) > 0) {
		in = realloc(in, size);
		out = realloc(out, size);
		read_line(g, line, in, out);
	}
	fclose(from);
	free(line);
	free(in);
	free(out);
	for (uint32_t k = 0; k < g->ntensor; k++) {
		g->tensor[k].root = k;
		g->tensor[k].is_planned &= !g->tensor[k].is_result;
	}
	return true;
}

/* The first output over the first input, if that is its last use. */
static void
reuse_inputs(struct graph *g)
{
	for (uint32_t k = 0; k < g->nstep; k++) {
		const struct step *s = &g->step[k];
		if (!s->may_reuse || !s->nin || !s->nout)
			continue;
		struct tensor *in = &g->tensor[s->in[0]], *out = &g->tensor[s->out[0]];
		if (!in->is_planned || !out->is_planned || in->bytes != out->bytes)
			continue;
		struct tensor *root = &g->tensor[in->root];
		if (root->last != k)
			continue;
		out->root = in->root;
		root->last = out->last;
	}
}

/* Buffers of the roots, in order of definition. */
static om_buffer *
make_buffers(const struct graph *g, uint32_t *count, uint32_t *number)
{
	om_buffer *buf = OM_NEWN(g->mem, om_buffer, g->ntensor);
	uint32_t n = 0;

	for (uint32_t k = 0; k < g->nstep; k++)
		for (size_t i = 0; i < g->step[k].nout; i++) {
			const uint32_t id = g->step[k].out[i];
			const struct tensor *t = &g->tensor[id];
			if (!t->is_planned || t->root != id)
				continue;
			om_interval *live = OM_NEW(g->mem, om_interval);
			*live = (om_interval){.lower = t->first, .upper = t->last + 1};
			number[id] = n;
			buf[n++] = (om_buffer){.bytes = (t->bytes + 63) & ~UINT64_C(63), .align = 64,
				.live = live, .nlive = 1, .fixed = OM_OFFSET_FREE};
		}
	*count = n;
	return buf;
}

/* ---- Any order: successors of ops, as bits. ---- */

static uint64_t *
ops_behind(const struct graph *g, size_t words)
{
	uint64_t *behind = OM_NEWN(g->mem, uint64_t, g->nstep * words);

	for (size_t k = g->nstep; k--;)
		for (size_t i = 0; i < g->step[k].nin; i++) {
			const uint32_t def = g->tensor[g->step[k].in[i]].first;
			if (def >= k)
				continue;
			behind[def * words + k / 64] |= UINT64_C(1) << k % 64;
			for (size_t b = 0; b < words; b++)
				behind[def * words + b] |= behind[k * words + b];
		}
	return behind;
}

static void
list_pairs(const struct graph *g, const uint32_t *number, uint32_t n, om_interference_list *open)
{
	const size_t words = (g->nstep + 63) / 64;
	const uint64_t *behind = ops_behind(g, words);
	uint64_t *after = OM_NEWN(g->mem, uint64_t, n * words);   /* successors of all uses */
	uint32_t (*pair)[2] = om_allocn(g->mem, sizeof *pair, (size_t)n * n / 2);
	uint32_t *first = OM_NEWN(g->mem, uint32_t, n);

	for (uint32_t k = 0; k < g->ntensor; k++)
		if (number[k] != NONE) {
			first[number[k]] = g->tensor[k].first;
			memcpy(after + number[k] * words, behind + g->tensor[k].first * words, words * sizeof *after);
		}
	for (uint32_t k = 0; k < g->nstep; k++)
		for (size_t i = 0; i < g->step[k].nin; i++)
			for (size_t b = 0; number[g->step[k].in[i]] != NONE && b < words; b++)
				after[number[g->step[k].in[i]] * words + b] &= behind[k * words + b];
	*open = (om_interference_list){.pair = (const uint32_t (*)[2])pair};
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (!(after[k * words + first[i] / 64] >> first[i] % 64 & 1)
			    && !(after[i * words + first[k] / 64] >> first[k] % 64 & 1)) {
				pair[open->npair][0] = k;
				pair[open->npair++][1] = i;
			}
}

/* ---- Planners on plain buffers. ---- */

static om_status
plan_naive(om_buffer *buf, uint32_t n, om_pack_result *r)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < n; k++) {
		buf[k].offset = height;
		height += buf[k].bytes;
	}
	r->height = height;
	return OM_OK;
}

static uint32_t *
kinds(const om_buffer *buf, uint32_t n, om_arena *mem)
{
	uint32_t *kind = OM_NEWN(mem, uint32_t, n);

	for (uint32_t k = 0; k < n; k++)
		while (buf[kind[k]].bytes != buf[k].bytes)
			kind[k]++;
	return kind;
}

static om_status
plan_pack(om_session *s, om_buffer *buf, uint32_t n, const om_interference_list *open, om_pack_result *r)
{
	om_pool pool = {.name = "arena"};
	om_problem p = OM_PROBLEM(.buf = buf, .n = n, .pool = &pool, .npool = 1, .by_pairs = open != NULL);

	if (open) {
		p.pair = open->pair;
		p.npair = open->npair;
	}
	const om_status st = om_pack_solve(s, &p);
	*r = pool.result;
	return st;
}

static om_status
plan_buffers(om_session *s, unsigned planner, om_buffer *buf, uint32_t n, const om_interference_list *open,
	om_arena *mem, om_pack_result *r)
{
	const om_strategy *row = row_of(planner);
	om_baseline_result share = {.blocks = 0};

	if (planner == NAIVE)
		return plan_naive(buf, n, r);
	if (!row)
		return plan_pack(s, buf, n, open, r);
	const om_share_problem p = {.buf = buf, .n = n, .kind = kinds(buf, n, mem), .open = open};
	const om_status st = row->share(s, &p, &share);
	*r = share.pack;
	return st;
}

static om_status
check_buffers(om_session *s, const om_buffer *buf, uint32_t n, const om_interference_list *open, uint64_t height)
{
	for (uint64_t k = 0; open && k < open->npair; k++) {
		const om_buffer *a = &buf[open->pair[k][0]], *b = &buf[open->pair[k][1]];
		if (a->bytes && b->bytes && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
			return om_fail(s, OM_BADPLAN, "two buffers overlap that may be live at the same time");
	}
	return om_pack_check(s, buf, n, height);
}

static void
measure_buffers(struct bench *w, const char *name, enum rules rules, struct graph *g)
{
	uint32_t *number = OM_NEWN(g->mem, uint32_t, g->ntensor), n;
	struct answer a[MOST_PLANNERS] = {{0, 0}};
	om_interference_list list, *open = rules == PARALLEL_SAFE ? &list : NULL;

	memset(number, 0xff, g->ntensor * sizeof *number);
	om_buffer *buf = make_buffers(g, &n, number);
	uint64_t bound = om_pack_bound(buf, n, NULL);
	if (open)
		list_pairs(g, number, n, open);
	for (unsigned k = nplanner(); k--;) {
		om_pack_result r = {0};
		const double start = om_now_ms();
		if (!takes_part(k, rules))
			continue;
		om_status st = plan_buffers(w->s, k, buf, n, open, g->mem, &r);
		a[k] = (struct answer){r.height, om_now_ms() - start};
		bound = r.lower_bound > bound ? r.lower_bound : bound;
		if (st == OM_OK)
			st = check_buffers(w->s, buf, n, open, r.height);
		if (st != OM_OK)
			complain(w, name, name_of(k));
	}
	print_row(w, name, rules, n, bound, a);
}

static void
measure_text(struct bench *w, const char *path, const char *name)
{
	struct graph g = {.mem = om_arena_new()};

	if (!read_graph(&g, path)) {
		perror(path);
		w->failed++;
	} else {
		measure_buffers(w, name, ORIGINAL_ORDER, &g);
		if (w->parallel_safe)
			measure_buffers(w, name, PARALLEL_SAFE, &g);
		reuse_inputs(&g);
		measure_buffers(w, name, INPLACE, &g);
	}
	om_arena_free(g.mem);
}

/* ---- Models. ---- */

static om_status
plan_model(struct bench *w, const char *path, enum rules rules, unsigned planner, om_prog **out,
	om_model **model, double *ms)
{
	static const char *const before[] = {
		[ORIGINAL_ORDER] = "inline,shapes,fold,prune,liveness", [PARALLEL_SAFE] = "inline,shapes,fold,prune,liveness",
		[INPLACE] = "inline,shapes,fold,prune,liveness,views,inplace",
		[VIEWS] = "inline,shapes,fold,prune,liveness,views",
	};

	OM_TRY(om_model_load(w->s, path, model));
	OM_TRY(om_model_import(w->s, *model, out));
	OM_TRY(om_host_request(w->h, &(om_plan_request)OM_PLAN_REQUEST(.parallel_safe = rules == PARALLEL_SAFE)));
	OM_TRY(bind_rest(w->s, *out, 1));
	OM_TRY(om_host_run(w->h, *out, before[rules]));
	const double start = om_now_ms();
	OM_TRY(om_host_run(w->h, *out, om_printf((*out)->mem, "pack=%s", name_of(planner))));
	*ms = om_now_ms() - start;
	return om_plan_verify(w->s, *out, (*out)->plan);
}

static int
measure_way(struct bench *w, const char *path, const char *name, enum rules rules)
{
	struct answer a[MOST_PLANNERS] = {{0, 0}};
	uint32_t n = 0;
	uint64_t bound = 0;

	for (unsigned k = NAIVE + 1; k < nplanner(); k++) {
		om_model *m = NULL;
		om_prog *p = NULL;
		const om_status st = plan_model(w, path, rules, k, &p, &m, &a[k].ms);
		if (st == OM_OK) {
			const om_plan_arena *arena = p->plan->arena;
			a[NAIVE].bytes = arena->naive;
			a[k].bytes = arena->bytes;
			bound = arena->lower_bound > bound ? arena->lower_bound : bound;
			n = om_buffers_new(p, p->assignment, p->mem)->n;
		}
		om_prog_free(p);
		om_model_free(m);
		if (st == OM_UNSUPPORTED || st == OM_INVALID || st == OM_SHAPE) {
			printf("%s: %s\n", name, om_message(w->s));
			return 1;
		}
		if (st != OM_OK)
			return complain(w, name, name_of(k));
	}
	print_row(w, name, rules, n, bound, a);
	return 0;
}

static void
measure_model(struct bench *w, const char *path, const char *name)
{
	if (measure_way(w, path, name, ORIGINAL_ORDER) == 0) {
		measure_way(w, path, name, INPLACE);
		measure_way(w, path, name, VIEWS);
	}
}

int
main(int argc, char **argv)
{
	struct bench w = {.s = om_session_new()};

	w.h = om_host_new(w.s, NULL);
	printf("%-26s %-7s %6s %12s", "graph", "rules", "n", "bound");
	for (unsigned k = 0; k < nplanner(); k++)
		printf(" %11s", name_of(k));
	putchar('\n');
	for (int k = 1; k < argc; k++) {
		const char *slash = strrchr(argv[k], '/'), *name = slash ? slash + 1 : argv[k];
		const char *dot = strrchr(name, '.');
		if (strcmp(argv[k], "--parallel-safe") == 0)
			w.parallel_safe = true;
		else if (strcmp(argv[k], "--bytes") == 0)
			w.in_bytes = true;
		else if (dot && strcmp(dot, ".onnx") == 0)
			measure_model(&w, argv[k], name);
		else
			measure_text(&w, argv[k], name);
	}
	if (!w.in_bytes)
		print_sums(&w);
	om_host_free(w.h);
	om_session_free(w.s);
	return w.failed != 0;
}
