/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of one operator each, as fuzz.py draws them: models with inputs, in one
 * file; what they give, in another.
 *
 *     cases CASES RESULTS
 *
 * CASES is case after case: bytes of the model, the model, number of inputs,
 * inputs.  RESULTS has for each its number of bytes, an om_status (or one of the
 * below), a sentence, number of outputs, outputs.  A tensor is its type, rank,
 * dims, number of bytes and elements; a string its number of bytes and these.
 * Counts and types take 32 bits, dims and numbers of bytes 64.  A map among the
 * inputs is the type MAP, then a list of keys and one of values; one among the
 * outputs, or a sequence of them, is a list of texts: place, key and value.
 *
 * Every case is inferred with its dims open, then planned and run twice; without
 * reuse; poisoned.  All have to give the same bits, in shapes that do not
 * contradict what was inferred.  A process works until it crashes; the next one
 * goes on behind the case that did it. */
#include <config.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../same.h"
#include "conformance.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "opdef/op_context.h"
#include "tests/bind.h"
#include "tests/fixtures.h"

enum { DIFFERS = 1000, CONTRADICTS, CRASHED, SLOW, SECONDS = 20, MAP = 100 };

struct reader {
	const char *at, *end;
};

struct buffer {
	char *data;
	size_t n, cap;
};

struct test {
	bench b;
	const char *model;
	uint64_t model_size;
	uint32_t nin, nout;
	om_tensor *in, *out, *open;   /* open: the outputs as inferred with open dims */
	om_shape *most;               /* the largest shapes that they can have, as planned */
	unsigned odd;                 /* DIFFERS, CONTRADICTS or 0 */
};

/* ---- Files. ---- */

static const void *
take(struct reader *r, uint64_t n)
{
	if (n > (uint64_t)(r->end - r->at)) {
		fprintf(stderr, "the file of cases is cut off\n");
		exit(2);
	}
	r->at += n;
	return r->at - n;
}

static uint32_t
take32(struct reader *r)
{
	uint32_t v;

	memcpy(&v, take(r, sizeof v), sizeof v);
	return v;
}

static uint64_t
take64(struct reader *r)
{
	uint64_t v;

	memcpy(&v, take(r, sizeof v), sizeof v);
	return v;
}

static void
take_strings(struct reader *r, om_arena *mem, om_tensor *t)
{
	const int64_t n = om_shape_count(&t->shape);
	om_string *s = OM_NEWN(mem, om_string, (size_t)n + 1);

	t->data = s;
	for (int64_t k = 0; k < n; k++) {
		s[k].size = take32(r);
		s[k].data = take(r, s[k].size);
	}
}

static void take_map(struct reader *r, om_arena *mem, om_tensor *t);

static void
take_tensor(struct reader *r, om_arena *mem, om_tensor *t)
{
	const uint32_t type = take32(r);

	if (type == MAP) {
		take_map(r, mem, t);
		return;
	}
	t->type = (om_dtype)type;
	t->shape.rank = (int)take32(r);
	for (int d = 0; d < t->shape.rank && d < OM_MAX_RANK; d++)
		t->shape.dim[d] = (int64_t)take64(r);
	const uint64_t bytes = take64(r);
	if (t->type == OM_STRING) {
		take_strings(r, mem, t);
		return;
	}
	char *data = om_alloc(mem, bytes + 1);
	memcpy(data, take(r, bytes), bytes);
	t->data = data;
}

static void
take_map(struct reader *r, om_arena *mem, om_tensor *t)
{
	om_container *map = OM_NEW(mem, om_container);

	take_tensor(r, mem, &map->key);
	take_tensor(r, mem, &map->value);
	map->n = (size_t)om_shape_count(&map->key.shape);
	*t = (om_tensor){.type = map->value.type, .shape = om_shape_unknown(), .data = map};
}

static void
put(struct buffer *b, const void *data, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = 2 * (b->n + n);
		b->data = realloc(b->data, b->cap);
		if (!b->data)
			abort();
	}
	if (n)
		memcpy(b->data + b->n, data, n);
	b->n += n;
}

static void
put32(struct buffer *b, uint32_t v)
{
	put(b, &v, sizeof v);
}

static void
put64(struct buffer *b, uint64_t v)
{
	put(b, &v, sizeof v);
}

static void
put_tensor(struct buffer *b, const om_tensor *t)
{
	uint64_t bytes = 0;

	put32(b, t->type);
	put32(b, (uint32_t)t->shape.rank);
	for (int d = 0; d < t->shape.rank; d++)
		put64(b, (uint64_t)t->shape.dim[d]);
	if (t->type != OM_STRING) {
		om_tensor_bytes(t->type, &t->shape, &bytes);
		put64(b, bytes);
		put(b, t->data, bytes);
		return;
	}
	put64(b, 0);
	for (int64_t k = 0; k < om_shape_count(&t->shape); k++) {
		const om_string *s = &((const om_string *)t->data)[k];
		put32(b, (uint32_t)s->size);
		put(b, s->data, s->size);
	}
}

/* ---- One case. ---- */

static om_status
open_case(struct test *t)
{
	OM_TRY(om_model_load_memory(t->b.s, t->model, t->model_size, "the case", NULL, &t->b.model));
	OM_TRY(om_model_import(t->b.s, t->b.model, &t->b.p));
	if (t->b.p->first->nparam != t->nin)
		return om_fail(t->b.s, OM_INVALID, "the case has %u inputs, its model %u", t->nin, t->b.p->first->nparam);
	return OM_OK;
}

/* What is known before any input is. */
static om_status
infer_open(struct test *t)
{
	om_status st = open_case(t);

	if (st == OM_OK)
		st = om_host_run(t->b.h, t->b.p, "inline,shapes");
	if (st == OM_OK) {
		const om_block *graph = t->b.p->first;
		t->nout = graph->nresult;
		t->open = OM_NEWN(t->b.mem, om_tensor, t->nout);
		t->out = OM_NEWN(t->b.mem, om_tensor, t->nout);
		t->most = OM_NEWN(t->b.mem, om_shape, t->nout);
		for (uint32_t k = 0; k < t->nout; k++) {
			t->open[k] = (om_tensor){.shape = om_shape_unknown()};
			if (graph->result[k]->type.kind == OM_TENSOR)
				t->open[k] = (om_tensor){.type = graph->result[k]->type.elem, .shape = graph->result[k]->shape};
		}
	}
	bench_clear(&t->b);
	return st;
}

static om_tensor
copy_of(om_arena *mem, const om_tensor *t)
{
	om_tensor c = *t;
	uint64_t bytes = 0;

	om_tensor_bytes(t->type, &t->shape, &bytes);
	c.data = om_alloc(mem, bytes + 1);
	if (bytes)
		memcpy(c.data, t->data, bytes);
	for (int64_t k = 0; t->type == OM_STRING && k < om_shape_count(&t->shape); k++) {
		om_string *s = &((om_string *)c.data)[k];
		char *text = om_alloc(mem, s->size + 1);
		if (s->size)
			memcpy(text, s->data, s->size);
		s->data = text;
	}
	return c;
}

/* ---- Maps. ---- */

static const char *
text_of(om_arena *mem, const om_tensor *t, size_t k)
{
	switch (t->type) {
	case OM_STRING: {
		const om_string *s = (const om_string *)t->data + k;
		return om_printf(mem, "%.*s", (int)s->size, s->size ? s->data : "");
	}
	case OM_INT64: return om_printf(mem, "%lld", (long long)((const int64_t *)t->data)[k]);
	case OM_FLOAT32: return om_printf(mem, "%.9g", (double)((const float *)t->data)[k]);
	default: return "?";
	}
}

static void
map_texts(om_arena *mem, const om_container *map, size_t place, om_string *to)
{
	for (size_t k = 0; k < map->n; k++) {
		const char *text = om_printf(mem, "%zu\t%s\t%s", place, text_of(mem, &map->key, k),
			text_of(mem, &map->value, k));
		to[k] = (om_string){text, strlen(text)};
	}
}

/* A sequence of maps as a list of texts; anything else as it is. */
static om_tensor
as_texts(om_arena *mem, const om_type *type, const om_tensor *t)
{
	const om_container *all = t->data;
	int64_t n = 0;

	if (type->kind != OM_SEQUENCE || type->of->kind != OM_MAP)
		return *t;
	for (size_t k = 0; k < all->n; k++)
		n += (int64_t)((const om_container *)all->item[k].data)->n;
	om_string *list = OM_NEWN(mem, om_string, (size_t)n + 1), *at = list;
	for (size_t k = 0; k < all->n; k++) {
		const om_container *map = all->item[k].data;
		map_texts(mem, map, k, at);
		at += map->n;
	}
	return (om_tensor){.type = OM_STRING, .shape = om_shape_of(1, &n), .data = list};
}

static bool
contradicts(const om_tensor *open, const om_tensor *got)
{
	if (open->type != OM_UNDEFINED && open->type != got->type)
		return true;
	if (open->shape.rank >= 0 && open->shape.rank != got->shape.rank)
		return true;
	for (int d = 0; d < open->shape.rank; d++)
		if (open->shape.dim[d] >= 0 && open->shape.dim[d] != got->shape.dim[d])
			return true;
	return false;
}

/* Is it larger than was said it could be? */
static bool
is_too_large(const om_shape *most, const om_shape *got)
{
	for (int d = 0; d < most->rank && d < got->rank; d++)
		if (most->dim[d] >= 0 && got->dim[d] > most->dim[d])
			return true;
	return false;
}

static void
note_most(struct test *t)
{
	const om_block *graph = t->b.p->first;

	for (uint32_t k = 0; k < t->nout; k++) {
		const om_op *op = graph->result[k]->def;
		t->most[k] = om_shape_unknown();
		if (graph->result[k]->type.kind != OM_TENSOR)
			continue;
		for (uint32_t i = 0; op && i < op->nout; i++)
			if (op->out[i] == graph->result[k])
				om_op_max_shape(op, i, &t->most[k]);
	}
}

static om_status
take_results(struct test *t, bool first, const char *how)
{
	for (uint32_t k = 0; k < t->nout && t->odd != DIFFERS; k++) {
		const om_tensor flat = as_texts(t->b.mem, &t->b.p->first->result[k]->type, om_exec_result(t->b.e, k));
		const om_tensor *got = &flat;
		char a[256], b[256];
		if (first && contradicts(&t->open[k], got)) {
			t->odd = CONTRADICTS;
			om_fail(t->b.s, OM_SHAPE, "output %u was inferred as %s %s, but is %s %s", k,
				om_dtype_text(t->open[k].type), om_shape_text(&t->open[k].shape, a, sizeof a),
				om_dtype_text(got->type), om_shape_text(&got->shape, b, sizeof b));
		}
		if (first && is_too_large(&t->most[k], &got->shape)) {
			t->odd = CONTRADICTS;
			om_fail(t->b.s, OM_SHAPE, "output %u is %s, more than it can be", k,
				om_shape_text(&got->shape, b, sizeof b));
		}
		if (first)
			t->out[k] = copy_of(t->b.mem, got);
		else if (!same_tensors(&t->out[k], got)) {
			t->odd = DIFFERS;
			return om_fail(t->b.s, OM_MISMATCH, "output %u is another one %s", k, how);
		}
	}
	return OM_OK;
}

static om_status
run_way(struct test *t, const om_exec_options *o, bool first, const char *how)
{
	const om_block *graph;

	OM_TRY(open_case(t));
	graph = t->b.p->first;
	for (uint32_t k = 0; k < t->nin; k++)
		if (graph->param[k]->type.kind == OM_TENSOR)
			OM_TRY(bind_shape(t->b.s, t->b.p, graph->param[k]->name, &t->in[k].shape));
	OM_TRY(om_host_run(t->b.h, t->b.p, om_default_pipeline()));
	if (first)
		note_most(t);
	OM_TRY(bench_exec(&t->b, o));
	OM_TRY(bench_run(&t->b, t->in, t->nin));
	OM_TRY(take_results(t, first, how));
	if (!first)
		return OM_OK;
	OM_TRY(om_exec_run(t->b.e));
	return take_results(t, false, "in a second run");
}

static om_status
run_case(struct test *t)
{
	static const int order[NWAY] = {PLANNED, SEPARATE, POISONED};
	om_status st = infer_open(t);

	for (int k = 0; k < NWAY && st == OM_OK; k++) {
		st = run_way(t, &ways[order[k]], k == 0, way_text[order[k]]);
		bench_clear(&t->b);
		if (st != OM_OK && k > 0 && t->odd == 0) {
			t->odd = DIFFERS;
			om_note(t->b.s, st, "only %s", way_text[order[k]]);
		}
	}
	return st;
}

/* ---- All of them. ---- */

static void
read_case(struct reader *r, struct test *t)
{
	t->model_size = take32(r);
	t->model = take(r, t->model_size);
	t->nin = take32(r);
	t->in = OM_NEWN(t->b.mem, om_tensor, t->nin + 1);
	for (uint32_t k = 0; k < t->nin; k++)
		take_tensor(r, t->b.mem, &t->in[k]);
}

static void
write_result(struct buffer *b, const struct test *t, unsigned status, const char *why)
{
	const uint32_t nout = status == OM_OK || status == CONTRADICTS ? t->nout : 0;

	b->n = 0;
	put64(b, 0);
	put32(b, status);
	put32(b, (uint32_t)strlen(why));
	put(b, why, strlen(why));
	put32(b, nout);
	for (uint32_t k = 0; k < nout; k++)
		put_tensor(b, &t->out[k]);
	const uint64_t n = b->n - sizeof n;
	memcpy(b->data, &n, sizeof n);
}

static void
child(const bench *on, struct reader r, uint32_t skip, FILE *out)
{
	struct buffer b = {0};

	for (uint32_t k = 0; r.at < r.end; k++) {
		struct test t = {.b = {.s = on->s, .h = on->h, .mem = om_arena_new()}};
		read_case(&r, &t);
		if (k >= skip) {
			alarm(SECONDS);
			const om_status st = run_case(&t);
			const unsigned status = t.odd ? t.odd : (unsigned)st;
			write_result(&b, &t, status, status ? om_message(on->s) : "");
			if (fwrite(b.data, 1, b.n, out) != b.n || fflush(out) != 0)
				exit(1);
		}
		om_arena_free(t.b.mem);
	}
	free(b.data);
	_exit(0);
}

/* Copy records until the child stops; their number. */
static uint32_t
copy_records(FILE *from, FILE *to)
{
	char part[4096];
	uint32_t done = 0;
	uint64_t n;

	while (fread(&n, sizeof n, 1, from) == 1) {
		char *record = malloc(n + 1);
		if (!record || fread(record, 1, n, from) != n) {
			free(record);
			break;
		}
		fwrite(&n, sizeof n, 1, to);
		fwrite(record, 1, n, to);
		free(record);
		done++;
	}
	while (fread(part, 1, sizeof part, from) > 0)
		;
	return done;
}

static bool
run_from(const bench *on, struct reader r, uint32_t *done, FILE *to)
{
	int fd[2], status = 0;

	if (pipe(fd) != 0)
		abort();
	fflush(to);
	const pid_t pid = fork();
	if (pid == 0) {
		close(fd[0]);
		child(on, r, *done, fdopen(fd[1], "wb"));
	}
	close(fd[1]);
	FILE *from = fdopen(fd[0], "rb");
	*done += copy_records(from, to);
	fclose(from);
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	const bool slow = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
	const struct test none = {0};
	struct buffer b = {0};
	write_result(&b, &none, slow ? SLOW : CRASHED, slow ? "took too long" : "crashed");
	fwrite(b.data, 1, b.n, to);
	free(b.data);
	++*done;
	return false;
}

static char *
read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *data = NULL;
	long size;

	if (!f || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0) {
		perror(path);
		exit(2);
	}
	rewind(f);
	data = malloc((size_t)size + 1);
	if (!data || fread(data, 1, (size_t)size, f) != (size_t)size)
		abort();
	fclose(f);
	*n = (size_t)size;
	return data;
}

int
main(int argc, char **argv)
{
	size_t n;

	if (argc != 3) {
		fprintf(stderr, "usage: %s CASES RESULTS\n", argv[0]);
		return 2;
	}
	char *data = read_file(argv[1], &n);
	const struct reader r = {data, data + n};
	FILE *to = fopen(argv[2], "wb");
	if (!to) {
		perror(argv[2]);
		return 2;
	}
	struct reader count = r;
	uint32_t ncase = 0, done = 0;
	for (; count.at < count.end; ncase++) {
		struct test t = {.b.mem = om_arena_new()};
		read_case(&count, &t);
		om_arena_free(t.b.mem);
	}
	bench b = bench_open();
	while (done < ncase && !run_from(&b, r, &done, to))
		;
	bench_close(&b);
	free(data);
	return fclose(to) != 0;
}
