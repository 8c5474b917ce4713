/* SPDX-License-Identifier: Apache-2.0 */
/* Generate tokens with a decoder: its caches are buffers with spare rows, in which each step writes its new rows.
 *
 *     cc generate.c $(pkg-config --cflags --libs onnxmem) -lm -o generate
 *     ./generate [-c ROWS] [-n TOKENS] [-t TEMPERATURE] [-s SEED] [-w FOLDER] [-j THREADS] [-b TOKENS] [-d SYMBOL=N]... MODEL.onnx TOKEN...
 *
 * MODEL has the inputs input_ids, and perhaps attention_mask and position_ids, all int64 with a batch of 1; caches whose
 * names exporters give; and float32 logits as its first output.  Without -t the likeliest token is taken.  The tokens go
 * to standard output as they come.  -w: a folder for weights as kernels read them, which the steps then share.  -b: tokens
 * of the prompt that one run takes, 512 unless given: the arena is that of as many, not of the whole prompt.
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <onnxmem/executor.h>
#include <onnxmem/onnx.h>
#include <onnxmem/pass.h>
#include <onnxmem/plan.h>

struct generator {
	om_session *s;
	om_host *host;
	om_model *model;
	om_prog *prog;               /* as loaded */
	const char *pipeline, *weights;
	const char *open_pipeline;   /* one program for all numbers of rows in use */
	int64_t rows, past;          /* of the caches; of them in use */
	int64_t in_use;              /* the same, as an input */
	int64_t *token;              /* all so far */
	int64_t ntoken, most;        /* how many; how many there are at the end */
	bool has_plan;               /* the model has a plan for all steps */
	om_prog *all;                /* one program for all steps, and its executor; NULL: there is none */
	om_exec *exec;
	om_exec_memory arena;        /* of the prompt and of all steps */
	int64_t nplan;               /* plans that were made */
	int64_t nprompt;             /* of them for the prompt; 0: it has not run yet */
	int64_t part;                /* most tokens of the prompt in one run */
	int64_t *position, *mask;
	const char **dim;            /* "SYMBOL=N" */
	int ndim;
	void **buffer;               /* by input: a cache, or another state; NULL: none yet */
	double temperature;
	uint64_t random;
	uint32_t threads;
};

/* ---- Shapes. ---- */

/* The number that an option gives to a symbol; `rest` where none does. */
static int64_t
number_of(const struct generator *g, const char *symbol, int64_t rest)
{
	const size_t n = symbol ? strlen(symbol) : 0;

	for (int k = 0; k < g->ndim && n; k++)
		if (strncmp(g->dim[k], symbol, n) == 0 && g->dim[k][n] == '=')
			return strtoll(g->dim[k] + n + 1, NULL, 10);
	return rest;
}

/* The elements of an input of tokens, or of the one that tells the rows in use; NULL: it is a state. */
static int64_t *
tokens_of(struct generator *g, const char *name, int64_t *n)
{
	*n = g->ntoken - g->past;
	if (strcmp(name, "input_ids") == 0)
		return g->token + g->past;
	if (strcmp(name, "position_ids") == 0)
		return g->position + g->past;
	if (strcmp(name, "rows_in_use") == 0)
		return &g->in_use;
	*n = g->ntoken;
	return strcmp(name, "attention_mask") == 0 ? g->mask : NULL;
}

static bool
is_batch(const char *symbol)
{
	return symbol && strncmp(symbol, "batch", strlen("batch")) == 0;
}

static om_status
bind_input(struct generator *g, const om_value *v, om_binding *b)
{
	om_shape shape = v->shape;
	int64_t n;

	if (tokens_of(g, v->name, &n))
		shape = om_shape_of(2, (const int64_t[]){1, n});
	for (int d = 0; d < shape.rank; d++)
		if (shape.dim[d] < 0)
			shape.dim[d] = number_of(g, v->shape.sym[d], d == 0 || is_batch(v->shape.sym[d]) ? 1 : g->past);
	return om_binding_shape(g->s, b, v->name, &shape);
}

/* The sizes of this step. */
static om_status
bind(struct generator *g, om_binding *b)
{
	om_status st = b ? OM_OK : OM_MEMORY;

	for (uint32_t k = 0; k < g->prog->first->nparam && st == OM_OK; k++)
		if (!g->prog->first->param[k]->is_overridable)
			st = bind_input(g, g->prog->first->param[k], b);
	return st;
}

/* A copy of the program that is planned for the sizes of this step; `ranged`: so that the plan may serve smaller ones. */
static om_status
plan(struct generator *g, bool ranged, om_prog **out)
{
	const om_plan_request request = OM_PLAN_REQUEST(.target = OM_TARGET_CPU, .threads = g->threads, .ranged = ranged);
	om_binding *b = om_binding_new();
	om_status st = bind(g, b);

	if (st == OM_OK)
		st = om_prog_bind(g->s, g->prog, b, out);
	if (st == OM_OK)
		st = om_host_request(g->host, &request);
	if (st == OM_OK)
		st = om_host_run(g->host, *out, g->pipeline);
	g->nplan += st == OM_OK;
	om_binding_free(b);
	return st;
}

/* ---- One program for all steps. ---- */

/* Bind all dims of an input but those that grow from step to step; a step has one token. */
static om_status
bind_fixed(struct generator *g, const om_value *v, om_binding *b)
{
	int64_t n;
	const bool is_state = !tokens_of(g, v->name, &n);
	om_status st = OM_OK;

	if (!is_state && strcmp(v->name, "attention_mask") != 0)
		return om_binding_shape(g->s, b, v->name, &(om_shape){.rank = 2, .dim = {1, 1}});
	for (int d = 0; d < v->shape.rank && st == OM_OK; d++) {
		const char *symbol = v->shape.dim[d] < 0 ? v->shape.sym[d] : NULL;
		const int64_t is = !symbol ? -1 : number_of(g, symbol, d == 0 || is_batch(symbol) ? 1 : -1);
		if (is >= 0)
			st = om_binding_dim(g->s, b, symbol, is);
	}
	return st;
}

/* Does the program have the buffers of `like` as states, whatever the number of rows in use? */
static bool
has_buffers(struct generator *g, const om_prog *p, const om_prog *like)
{
	int64_t n;

	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_value *v = p->first->param[k];
		if (!v->is_overridable && !tokens_of(g, v->name, &n) && !om_shape_equal(&v->shape, &like->first->param[k]->shape))
			return false;
	}
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (!om_shape_equal(&p->first->param[p->io_alias[k].param]->shape, &p->first->result[p->io_alias[k].result]->shape))
			return false;
	return true;
}

/* Plan a program for all steps; `is_bound`: its sizes are those of the largest one. */
static om_status
plan_open(struct generator *g, bool is_bound, const char *pipeline, om_prog **out)
{
	const om_plan_request request = OM_PLAN_REQUEST(.target = OM_TARGET_CPU, .threads = g->threads);
	om_binding *b = om_binding_new();
	om_status st = is_bound ? bind(g, b) : b ? OM_OK : OM_MEMORY;

	for (uint32_t k = 0; k < g->prog->first->nparam && st == OM_OK && !is_bound; k++)
		if (!g->prog->first->param[k]->is_overridable)
			st = bind_fixed(g, g->prog->first->param[k], b);
	if (st == OM_OK)
		st = om_prog_bind(g->s, g->prog, b, out);
	if (st == OM_OK)
		st = om_host_request(g->host, &request);
	if (st == OM_OK)
		st = om_host_run(g->host, *out, pipeline);
	om_binding_free(b);
	return st;
}

/* Where caches grow by Concat, the pass open-rows makes a program for all steps of that of the largest step.  Where an attention
 * op finds the rows in use in other inputs, the program of a step does not depend on them. */
static void
plan_all(struct generator *g, const om_prog *prompt)
{
	const int64_t past = g->past, ntoken = g->ntoken;

	g->past = g->rows - 1;
	g->ntoken = g->rows;
	om_status st = plan_open(g, true, g->open_pipeline, &g->all);
	g->past = past;
	g->ntoken = ntoken;
	if (st != OM_OK || !has_buffers(g, g->all, prompt)) {
		om_prog_free(g->all);
		g->all = NULL;
		st = plan_open(g, false, g->pipeline, &g->all);
	}
	if (st == OM_OK && has_buffers(g, g->all, prompt)) {
		g->nplan++;
		return;
	}
	om_prog_free(g->all);
	g->all = NULL;
}

/* ---- One plan for all steps, each of which has its own program. ---- */

/* Symbols of dims that grow from step to step: they are `low` now, and one more in each step. */
static uint32_t
find_ranges(struct generator *g, int64_t steps, om_dim_range *range, uint32_t most)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < g->prog->first->nparam; k++) {
		const om_value *v = g->prog->first->param[k];
		int64_t size;
		const bool is_tokens = tokens_of(g, v->name, &size), grows = strcmp(v->name, "attention_mask") == 0;
		for (int d = 0; d < v->shape.rank && n < most; d++) {
			const char *symbol = v->shape.dim[d] < 0 ? v->shape.sym[d] : NULL;
			bool is_known = !symbol || d == 0 || is_batch(symbol) || number_of(g, symbol, -1) >= 0 || is_tokens != grows;
			for (uint32_t i = 0; i < n && !is_known; i++)
				is_known = strcmp(range[i].symbol, symbol) == 0;
			if (!is_known)
				range[n++] = (om_dim_range){symbol, is_tokens ? size : g->past, (is_tokens ? size : g->past) + steps};
		}
	}
	return n;
}

/* Plan the last step, and write the plan into the model, from where each step reads it for its own sizes: what is decided
 * about order and addresses is decided once.  Without such a plan, each step is planned. */
static void
plan_steps(struct generator *g)
{
	enum { MOST = 16 };
	om_dim_range range[MOST];
	const int64_t steps = g->most - g->ntoken - 1;
	const uint32_t n = steps > 0 ? find_ranges(g, steps, range, MOST) : 0;
	const int64_t past = g->past, ntoken = g->ntoken;
	om_prog *largest = NULL;

	if (steps <= 0)
		return;
	g->past += steps;
	g->ntoken += steps;
	om_status st = plan(g, n > 0, &largest);
	g->past = past;
	g->ntoken = ntoken;
	if (st == OM_OK) {
		largest->plan->range = range;
		largest->plan->nrange = n;
		st = om_model_annotate(g->s, g->model, largest, OM_ANNOTATE_MODEL);
	}
	g->has_plan = st == OM_OK;
	om_prog_free(largest);
}

/* The plan of all steps for the sizes of this one.  It is verified before it runs. */
static om_status
read_plan(struct generator *g, om_prog **out)
{
	om_binding *b = om_binding_new();
	om_status st = bind(g, b);

	if (st == OM_OK)
		st = om_prog_bind(g->s, g->prog, NULL, out);
	if (st == OM_OK)
		st = om_host_read_plan(g->host, g->model, *out, NULL, b);
	om_binding_free(b);
	return st;
}

static om_status
plan_of_step(struct generator *g, om_prog **out)
{
	if (g->nprompt && g->nplan == g->nprompt)
		plan_steps(g);
	if (g->has_plan && read_plan(g, out) == OM_OK && om_plan_verify(g->s, *out, (*out)->plan) == OM_OK)
		return OM_OK;
	om_prog_free(*out);
	*out = NULL;
	return plan(g, false, out);
}

/* An arena for this plan, in the memory of those before it. */
static om_status
need_arena(struct generator *g, const om_plan *plan)
{
	const uint64_t align = plan->arena[0].align < 64 ? 64 : plan->arena[0].align, bytes = (plan->arena[0].bytes + align) / align * align;

	if (plan->narena != 1)
		return OM_UNSUPPORTED;
	if (bytes <= g->arena.bytes)
		return OM_OK;
	free(g->arena.data);
	g->arena = (om_exec_memory){aligned_alloc(align, bytes), bytes};
	return g->arena.data ? OM_OK : OM_MEMORY;
}

/* ---- A step. ---- */

static om_status
give_input(struct generator *g, om_exec *e, const om_value *v, uint32_t k)
{
	om_tensor t = {.type = v->type.elem, .shape = v->shape};
	uint64_t bytes = 0;
	int64_t n;

	t.data = tokens_of(g, v->name, &n);
	if (t.data && !om_shape_is_known(&t.shape))
		t.shape = om_shape_of(2, (const int64_t[]){1, n});
	if (!t.data && !om_tensor_bytes(t.type, &t.shape, &bytes))
		return OM_SHAPE;
	if (!t.data && !g->buffer[k])
		g->buffer[k] = calloc(1, bytes + 1);
	t.data = t.data ? t.data : g->buffer[k];
	return t.data ? om_exec_input(e, k, &t) : OM_MEMORY;
}

/* States that are not in the memory of their inputs are copied there; a cache that has no spare rows grows. */
static om_status
keep_states(struct generator *g, const om_exec *e, const om_prog *p)
{
	for (uint32_t k = 0; k < p->nio_alias; k++) {
		const om_tensor *t = om_exec_result(e, p->io_alias[k].result);
		void **buffer = &g->buffer[p->io_alias[k].param];
		uint64_t bytes = 0;
		if (t->data == *buffer || !om_tensor_bytes(t->type, &t->shape, &bytes) || bytes == 0)
			continue;
		void *larger = realloc(*buffer, bytes);
		if (!larger)
			return OM_MEMORY;
		memcpy(*buffer = larger, t->data, bytes);
	}
	return OM_OK;
}

static double
random_number(struct generator *g)
{
	g->random ^= g->random << 13;
	g->random ^= g->random >> 7;
	g->random ^= g->random << 17;
	return (double)(g->random >> 11) / 9007199254740992.0;
}

/* The next token, by the logits of the last one. */
static int64_t
choose(struct generator *g, const om_tensor *logits)
{
	const int64_t n = logits->shape.dim[logits->shape.rank - 1];
	const float *x = (const float *)logits->data + om_shape_count(&logits->shape) - n;
	double sum = 0;
	int64_t best = 0;

	for (int64_t k = 1; k < n; k++)
		best = x[k] > x[best] ? k : best;
	for (int64_t k = 0; k < n && g->temperature > 0; k++)
		sum += exp((double)(x[k] - x[best]) / g->temperature);
	if (g->temperature <= 0)
		return best;
	double left = random_number(g) * sum;
	for (int64_t k = 0; k < n; k++)
		if ((left -= exp((double)(x[k] - x[best]) / g->temperature)) < 0)
			return k;
	return best;
}

static om_status
new_exec(struct generator *g, const om_prog *p, om_exec **out)
{
	const om_exec_options o = OM_EXEC_OPTIONS(.cache = g->weights, .threads = g->threads, .arena = &g->arena, .narena = 1);
	const om_status st = need_arena(g, p->plan);

	return st == OM_OK ? om_exec_new(g->s, p, p->plan, &o, out) : st;
}

/* `chooses`: the next token, after the last one that there is. */
static om_status
run(struct generator *g, const om_prog *p, om_exec *e, bool chooses)
{
	om_status st = g->ntoken <= g->rows ? OM_OK : OM_USAGE;

	if (st != OM_OK)
		fprintf(stderr, "generate: more than the capacity of %" PRId64 "\n", g->rows);
	g->in_use = g->past;
	for (uint32_t k = 0; k < p->first->nparam && st == OM_OK; k++)
		if (!p->first->param[k]->is_overridable)
			st = give_input(g, e, p->first->param[k], k);
	if (st == OM_OK)
		st = om_exec_run(e);
	if (st == OM_OK)
		st = keep_states(g, e, p);
	if (st == OM_OK && om_exec_result(e, 0)->type != OM_FLOAT32) {
		fprintf(stderr, "generate: the first output is not float32\n");
		st = OM_UNSUPPORTED;
	}
	if (st == OM_OK)
		g->past = g->ntoken;
	if (st == OM_OK && chooses)
		g->token[g->ntoken++] = choose(g, om_exec_result(e, 0));
	return st;
}

/* A step whose program is made for its sizes. */
static om_status
run_alone(struct generator *g, bool chooses)
{
	om_prog *p = NULL;
	om_exec *e = NULL;
	const bool is_end_of_prompt = chooses && !g->nprompt;
	om_status st = plan_of_step(g, &p);

	if (st == OM_OK)
		st = new_exec(g, p, &e);
	if (st == OM_OK)
		st = run(g, p, e, chooses);
	om_exec_free(e);
	g->nprompt = is_end_of_prompt ? g->nplan : g->nprompt;
	if (st == OM_OK && is_end_of_prompt && g->most > g->ntoken)
		plan_all(g, p);
	om_prog_free(p);
	return st == OM_OK && g->all && !g->exec ? new_exec(g, g->all, &g->exec) : st;
}

/* All tokens that have no row in the caches: one, or the prompt in parts. */
static om_status
step(struct generator *g)
{
	const int64_t all = g->ntoken;
	om_status st = OM_OK;

	if (g->exec)
		return run(g, g->all, g->exec, true);
	while (st == OM_OK && g->past < all) {
		g->ntoken = all - g->past > g->part ? g->past + g->part : all;
		st = run_alone(g, g->ntoken == all);
	}
	return st;
}

/* ---- All. ---- */

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static om_status
generate(struct generator *g, int64_t count)
{
	const double start = now();
	double first = start, last = start, least = 0;
	om_status st = OM_OK;

	for (int64_t k = 0; k < count && st == OM_OK; k++) {
		st = step(g);
		if (st != OM_OK)
			break;
		printf("%s%" PRId64, k ? " " : "", g->token[g->ntoken - 1]);
		fflush(stdout);
		const double at = now();
		first = k == 0 ? at : first;
		least = k == 1 || (k > 1 && at - last < least) ? at - last : least;
		last = at;
	}
	puts("");
	if (st == OM_OK && count > 1)
		fprintf(stderr, "first token after %.1f ms, then %.1f tokens/s, the shortest step %.3f ms; arena %" PRIu64 " bytes; plans made: %"
			PRId64 "\n", 1e3 * (first - start), (double)(count - 1) / (last - first), 1e3 * least, g->arena.bytes, g->nplan);
	return st;
}

/* The pipeline for the executor, with an option of its pass `capacity`, or a pass more after its pass `fold`. */
static char *
pipeline_with(const char *pass, const char *more, int64_t rows)
{
	const char *all = om_target_pipeline(OM_TARGET_CPU), *at = strstr(all, pass);
	const size_t size = strlen(all) + 64, before = (size_t)(at - all) + strlen(pass);
	char *text = malloc(size);

	if (text)
		snprintf(text, size, "%.*s%s=%" PRId64 "%s%s", (int)before, all, more, rows, *more ? "," : ":rings=1", all + before);
	return text;
}

static om_status
load(struct generator *g, const char *path)
{
	const om_status st = om_model_load(g->s, path, &g->model);

	return st == OM_OK ? om_model_import(g->s, g->model, &g->prog) : st;
}

/* Room for all tokens, positions, masks and states. */
static om_status
prepare(struct generator *g, char **word, int n, int64_t count)
{
	const size_t tokens = (size_t)(n + count + 1), most = tokens > (size_t)g->rows ? tokens : (size_t)g->rows;

	g->pipeline = pipeline_with(",capacity", "", g->rows);
	g->open_pipeline = pipeline_with(",fold,", "open-rows", g->rows);
	g->token = calloc(most, sizeof *g->token);
	g->position = calloc(most, sizeof *g->position);
	g->mask = calloc(most, sizeof *g->mask);
	g->buffer = calloc(g->prog->first->nparam + 1u, sizeof *g->buffer);
	if (!g->pipeline || !g->open_pipeline || !g->token || !g->position || !g->mask || !g->buffer)
		return OM_MEMORY;
	for (size_t k = 0; k < most; k++) {
		g->position[k] = (int64_t)k;
		g->mask[k] = 1;
	}
	g->most = n + count;
	for (; g->ntoken < n; g->ntoken++)
		g->token[g->ntoken] = strtoll(word[g->ntoken], NULL, 10);
	return OM_OK;
}

static void
free_all(struct generator *g)
{
	for (uint32_t k = 0; g->buffer && k < g->prog->first->nparam; k++)
		free(g->buffer[k]);
	free(g->buffer);
	om_exec_free(g->exec);
	om_prog_free(g->all);
	free(g->arena.data);
	free(g->mask);
	free(g->position);
	free(g->token);
	free((char *)g->pipeline);
	free((char *)g->open_pipeline);
	free(g->dim);
	om_prog_free(g->prog);
	om_model_free(g->model);
	om_host_free(g->host);
	om_session_free(g->s);
}

int
main(int argc, char **argv)
{
	struct generator g = {.rows = 1024, .random = 1, .threads = 1, .part = 512, .dim = calloc((size_t)argc, sizeof *g.dim)};
	int64_t count = 32;

	for (int c; (c = getopt(argc, argv, "b:c:n:t:s:w:d:j:")) != -1;)
		switch (c) {
		case 'b': g.part = strtoll(optarg, NULL, 10); break;
		case 'c': g.rows = strtoll(optarg, NULL, 10); break;
		case 'n': count = strtoll(optarg, NULL, 10); break;
		case 't': g.temperature = strtod(optarg, NULL); break;
		case 's': g.random = strtoull(optarg, NULL, 10) * 2 + 1; break;
		case 'w': g.weights = optarg; break;
		case 'j': g.threads = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'd': g.dim[g.ndim++] = optarg; break;
		default: return 2;
		}
	if (argc - optind < 2 || count < 0 || count > INT32_MAX || g.part < 1)
		return fprintf(stderr, "usage: generate [options] MODEL.onnx TOKEN...\n"), 2;
	g.s = om_session_new();
	g.host = om_host_new(g.s, NULL);
	om_status st = load(&g, argv[optind]);
	if (st == OM_OK)
		st = prepare(&g, argv + optind + 1, argc - optind - 1, count);
	if (st == OM_OK)
		st = generate(&g, count);
	if (st != OM_OK)
		fprintf(stderr, "generate: %s\n", om_message(g.s));
	const int code = om_status_exit(st);
	free_all(&g);
	return code;
}
