/* SPDX-License-Identifier: Apache-2.0 */
/* report --ranks: the memory of every rank of a training, by the planner that plans it for `train`.
 *
 * Ranks differ in the size of their part of the batch, and in where their parts of tensors begin, so that arenas may differ by
 * alignment: up to EACH ranks are all planned, of more the first two and the last one. */
#include <config.h>

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rank_group.h"
#include "cli/report_ranks.h"
#include "onnxmem/trainer.h"
#include "report/json.h"

enum { EACH = 8, MOST_RANKS = 65536, MOST_ROWS = 4096 };

struct rank_memory {
	uint32_t rank;
	int64_t samples;
	om_plan_memory memory;
};

struct row {
	uint32_t ranks, n;
	struct rank_memory rank[EACH];
	uint64_t states;
};

struct table {
	om_cli *c;
	om_rank_step how;
	om_step step;
	struct row *row;
	size_t n, cap;
	uint64_t batch;
	int64_t fixed;           /* samples that a step fixes, on each rank; 0: none */
};

/* ---- The numbers of ranks. ---- */

static om_status
read_number(om_cli *c, const char **text, uint64_t *n)
{
	char *end;

	*n = strtoull(*text, &end, 10);
	if (end == *text || **text < '0' || **text > '9' || *n < 1 || *n > MOST_RANKS)
		return om_fail(c->session, OM_USAGE, "option --ranks requires numbers from 1 to %d, as 1,2,8 or 1..64, not %s", MOST_RANKS,
			om_cli_option(c, "ranks"));
	*text = end;
	return OM_OK;
}

static om_status
read_ranks(struct table *t)
{
	const char *text = om_cli_option(t->c, "ranks");
	uint64_t from, to;

	for (;;) {
		OM_TRY(read_number(t->c, &text, &from));
		to = from;
		if (strncmp(text, "..", 2) == 0) {
			text += 2;
			OM_TRY(read_number(t->c, &text, &to));
		}
		if (to < from || t->n + (to - from) >= MOST_ROWS)
			return om_fail(t->c->session, OM_USAGE, "option --ranks has %s", to < from ? "a range that ends before it begins"
				: "more numbers than fit in a table");
		for (uint64_t k = from; k <= to; k++)
			OM_PUSH(t->c->mem, t->row, t->n, t->cap, (struct row){.ranks = (uint32_t)k});
		if (*text == '\0')
			return OM_OK;
		if (*text++ != ',')
			return om_fail(t->c->session, OM_USAGE, "option --ranks requires numbers from 1 to %d, as 1,2,8 or 1..64, not %s",
				MOST_RANKS, om_cli_option(t->c, "ranks"));
	}
}

/* ---- Plans. ---- */

/* A step that fixes its number of samples takes so many on each rank. */
static void
find_fixed(struct table *t)
{
	const om_block *graph = t->c->prog->first;

	for (uint32_t k = 0; k < t->step.nsample; k++) {
		const om_shape *s = &graph->param[t->step.sample[k]]->shape;
		if (s->rank > 0 && s->dim[0] >= 0)
			t->fixed = s->dim[0];
	}
}

static om_status
samples_of(struct table *t, uint32_t ranks, int64_t *all)
{
	*all = t->fixed ? t->fixed * ranks : (int64_t)t->batch;
	if (t->fixed && om_cli_has(t->c, "batch") && (int64_t)t->batch != *all)
		return om_fail(t->c->session, OM_USAGE, "the step takes %lld samples at a time on each of %u ranks, not %llu of all",
			(long long)t->fixed, ranks, (unsigned long long)t->batch);
	if (*all < ranks)
		return om_fail(t->c->session, OM_USAGE, "a batch of %lld samples has none for some of %u ranks", (long long)*all, ranks);
	return OM_OK;
}

static om_status
bind_samples(struct table *t, int64_t size)
{
	om_cli *c = t->c;
	om_tensor *in = OM_NEWN(c->mem, om_tensor, c->prog->first->nparam);

	for (uint32_t k = 0; k < t->step.nsample; k++) {
		const uint32_t at = t->step.sample[k];
		const om_value *v = c->prog->first->param[at];
		if (v->shape.rank <= 0)
			continue;
		in[at] = (om_tensor){.type = v->type.elem, .shape = v->shape};
		in[at].shape.dim[0] = size;
		for (int d = 1; d < v->shape.rank; d++)
			if (v->shape.dim[d] < 0)
				return om_fail(c->session, OM_USAGE, "dim %d of the samples %s is open: --ranks requires it to be fixed", d, v->name);
	}
	return om_cli_shapes(c, in, true);
}

static void
count_states(const om_prog *p, struct row *row)
{
	row->states = 0;
	for (uint32_t k = 0; k < p->nio_alias; k++)
		row->states += om_value_bytes(p->first->param[p->io_alias[k].param]);
}

static om_status
plan_rank(struct table *t, struct row *row, uint32_t rank)
{
	om_cli *c = t->c;
	const om_ranks r = {.rank = rank, .size = row->ranks};
	struct rank_memory *m = &row->rank[row->n++];
	int64_t all = 0, from;

	OM_TRY(samples_of(t, row->ranks, &all));
	om_ranks_share(&r, all, &from, &m->samples);
	m->rank = rank;
	om_prog_free(c->prog);
	OM_TRY(om_cli_copy(c));
	OM_TRY(bind_samples(t, m->samples));
	OM_TRY(om_ranks_shard(c, &r, &t->how, from, m->samples, all));
	OM_TRY(om_cli_passes(c, NULL));
	if (!(c->prog->has & OM_HAS_PLAN))
		return om_fail(c->session, OM_USAGE, "the passes %s make no plan", om_cli_option(c, "passes"));
	OM_TRY(om_plan_verify(c->session, c->prog, c->prog->plan));
	m->memory = om_plan_memory_of(c->prog, c->prog->plan);
	count_states(c->prog, row);
	return OM_OK;
}

static om_status
plan_row(struct table *t, struct row *row)
{
	for (uint32_t k = 0; k < row->ranks && (row->ranks <= EACH || k < 2); k++)
		OM_TRY(plan_rank(t, row, k));
	return row->ranks > EACH ? plan_rank(t, row, row->ranks - 1) : OM_OK;
}

/* ---- Output. ---- */

/* The rank that takes most. */
static const struct rank_memory *
most_of(const struct row *row)
{
	const struct rank_memory *most = row->rank;

	for (uint32_t k = 1; k < row->n; k++)
		if (row->rank[k].memory.total > most->memory.total)
			most = &row->rank[k];
	return most;
}

static om_status
write_text(om_cli *c, FILE *to, const void *arg)
{
	const struct table *t = arg;

	(void)c;
	fprintf(to, "%s: a rank of a training with shard=%s, in bytes\n%6s %8s %14s %14s %14s %14s\n", t->c->arg[0], t->how.mode,
		"ranks", "samples", "arena", "states", "other", "total");
	for (size_t k = 0; k < t->n; k++) {
		const struct row *row = &t->row[k];
		const struct rank_memory *m = most_of(row);
		fprintf(to, "%6" PRIu32 " %8lld %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n", row->ranks,
			(long long)m->samples, m->memory.arenas, row->states, m->memory.total - m->memory.arenas - row->states,
			m->memory.total);
	}
	fprintf(to, "The rank of each number that takes most. Other: samples, constants, results that are no states.\n");
	return OM_OK;
}

static json_t *
rank_object(const struct rank_memory *m, uint64_t states)
{
	json_t *j = json_object();

	json_object_set_new(j, "rank", json_integer(m->rank));
	json_object_set_new(j, "samples", json_integer(m->samples));
	json_object_set_new(j, "arena_bytes", om_json_number(m->memory.arenas));
	json_object_set_new(j, "state_bytes", om_json_number(states));
	json_object_set_new(j, "other_bytes", om_json_number(m->memory.total - m->memory.arenas - states));
	json_object_set_new(j, "total_bytes", om_json_number(m->memory.total));
	return j;
}

static om_status
write_json(om_cli *c, FILE *to, const void *arg)
{
	const struct table *t = arg;
	json_t *j = json_object(), *rows = json_array();

	json_object_set_new(j, "schema", json_string("onnxmem-ranks/1"));
	json_object_set_new(j, "model", om_json_text(c->mem, c->arg[0]));
	json_object_set_new(j, "shard", json_string(t->how.mode));
	json_object_set_new(j, "bucket_bytes", om_json_number(t->how.bucket));
	json_object_set_new(j, "overlap", om_json_number(t->how.overlap));
	for (size_t k = 0; k < t->n; k++) {
		const struct row *row = &t->row[k];
		json_t *one = json_object(), *ranks = json_array();
		json_object_set_new(one, "ranks", json_integer(row->ranks));
		for (uint32_t i = 0; i < row->n; i++)
			json_array_append_new(ranks, rank_object(&row->rank[i], row->states));
		json_object_set_new(one, "planned", ranks);
		json_array_append_new(rows, one);
	}
	json_object_set_new(j, "sizes", rows);
	return om_json_write(c->session, j, JSON_INDENT(2), to);
}

/* ---- All. ---- */

om_status
om_cli_report_ranks(om_cli *c)
{
	static const om_form forms[] = {{"json", write_json}, {0}};
	struct table table = {.c = c, .batch = 32}, *t = &table;
	bool taken;

	OM_TRY(read_ranks(t));
	OM_TRY(om_cli_number(c, "batch", 1, INT32_MAX, &t->batch));
	OM_TRY(om_rank_step_read(c, &t->how));
	OM_TRY(om_cli_load(c, c->arg[0]));
	OM_TRY(om_cli_host(c));
	OM_TRY(om_host_run(c->host, c->prog, "inline,shapes"));
	OM_TRY(om_step_find(c->session, c->prog, c->mem, &t->step));
	find_fixed(t);
	for (size_t k = 0; k < t->n; k++)
		OM_TRY(plan_row(t, &t->row[k]));
	OM_TRY(om_cli_write_forms(c, forms, t, &taken));
	return taken ? OM_OK : om_cli_write(c, "-", write_text, t);
}
