/* SPDX-License-Identifier: Apache-2.0 */
/* report --pipeline: the memory of every rank of a pipeline, and the messages between them, by the planner that plans the parts for `run` and
 * `train`.
 *
 * A message is a Send of the planned program of its sender, so that the report has what a run sends.  The bubble is that of the schedule, in
 * which all parts take as long: of M micro-batches in N parts a rank waits (N - 1) / (M + N - 1) of the time, with one-forward-one-backward as
 * with forward passes alone. */
#include <config.h>

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/report_pipeline.h"
#include "cli/stages.h"
#include "opdef/dist_domain.h"
#include "report/json.h"

/* What a rank sends in a run, in this order. */
struct message {
	const char *name;
	uint32_t to;
	uint64_t bytes;
};

struct part {
	uint64_t arena, weights, states, total;
	struct message *msg;
	size_t nmsg, cap;
};

/* All messages from one rank to another. */
struct link {
	uint64_t messages, bytes;
};

struct table {
	om_cli *c;
	om_stages stages;
	uint32_t parts;
	bool is_training;
	int64_t samples;         /* of a micro-batch; 0: the model may have none, it is run as it is */
	om_tensor *in;           /* by parameter of the model: the shape of a batch */
	struct part *part;
};

/* ---- The batch. ---- */

static bool
is_sample(const struct table *t, const om_step *step, uint32_t param)
{
	const om_value *v = t->c->prog->first->param[param];

	for (uint32_t k = 0; t->is_training && k < step->nsample; k++)
		if (step->sample[k] == param)
			return true;
	return !t->is_training && !v->data && v->type.kind == OM_TENSOR && v->shape.rank > 0;
}

/* A step that fixes its number of samples takes so many in a micro-batch. */
static om_status
find_batch(struct table *t, uint64_t batch)
{
	const om_block *graph = t->c->prog->first;
	om_step step = {0};

	if (t->is_training)
		OM_TRY(om_step_find(t->c->session, t->c->prog, t->c->mem, &step));
	t->in = OM_NEWN(t->c->mem, om_tensor, graph->nparam);
	for (uint32_t k = 0; k < graph->nparam; k++) {
		const om_value *v = graph->param[k];
		if (!is_sample(t, &step, k) || v->shape.rank <= 0)
			continue;
		t->in[k] = (om_tensor){.type = v->type.elem, .shape = v->shape};
		int64_t *dim = t->in[k].shape.dim;
		const int64_t most = t->is_training ? dim[0] * t->stages.micro : dim[0];
		if (dim[0] >= 0 && om_cli_has(t->c, "batch") && most != (int64_t)batch)
			return om_fail(t->c->session, OM_USAGE, "the %s takes %lld samples at a time, not %llu", t->is_training ? "step" : "model",
				(long long)most, (unsigned long long)batch);
		dim[0] = dim[0] < 0 ? (int64_t)batch : most;
		t->samples = t->is_training || t->stages.micro > 1 ? dim[0] / t->stages.micro : 0;
		for (int d = 1; d < v->shape.rank; d++)
			if (dim[d] < 0)
				return om_fail(t->c->session, OM_USAGE, "dim %d of %s is open: --pipeline requires it to be fixed, as by --dim", d, v->name);
	}
	return OM_OK;
}

/* ---- Plans. ---- */

/* States may have initial values, which count as weights, or be inputs of the caller. */
static void
note_memory(const om_prog *p, struct part *part)
{
	const om_plan_memory m = om_plan_memory_of(p, p->plan);
	uint64_t initial = 0;

	for (uint32_t k = 0; k < p->nio_alias; k++) {
		const om_value *v = p->first->param[p->io_alias[k].param];
		part->states += om_value_bytes(v);
		initial += v->data ? om_value_bytes(v) : 0;
	}
	part->arena = m.arenas;
	part->weights = m.weights > initial ? m.weights - initial : 0;
	part->total = m.total;
}

static void
note_messages(om_cli *c, const om_prog *p, struct part *part)
{
	for (const om_op *op = p->first->first; op; op = op->next)
		if (strcmp(op->domain, OM_DIST_DOMAIN) == 0 && strcmp(op->type, "Send") == 0)
			OM_PUSH(c->mem, part->msg, part->nmsg, part->cap, ((struct message){om_strdup(c->mem, op->in[0]->name),
				(uint32_t)om_attr_find(op, "peer")->i[0], om_value_bytes(op->in[0])}));
}

static om_status
plan_part(struct table *t, uint32_t rank)
{
	om_cli *c = t->c;
	const om_tensor *in;

	om_prog_free(c->prog);
	OM_TRY(om_cli_copy(c));
	OM_TRY(om_stages_divide(c, &t->stages, t->in, c->prog->first->nparam, &in));
	OM_TRY(om_cli_shapes(c, in, true));
	om_stages_plan(c, &t->stages, &(om_ranks){.rank = rank, .size = t->parts});
	OM_TRY(om_cli_passes(c, NULL));
	if (!(c->prog->has & OM_HAS_PLAN))
		return om_fail(c->session, OM_USAGE, "the passes %s make no plan", om_cli_option(c, "passes"));
	OM_TRY(om_plan_verify(c->session, c->prog, c->prog->plan));
	note_memory(c->prog, &t->part[rank]);
	note_messages(c, c->prog, &t->part[rank]);
	return OM_OK;
}

/* ---- Output. ---- */

static struct link
link_of(const struct table *t, uint32_t from, uint32_t to)
{
	struct link l = {0};

	for (size_t k = 0; k < t->part[from].nmsg; k++)
		if (t->part[from].msg[k].to == to) {
			l.messages++;
			l.bytes += t->part[from].msg[k].bytes;
		}
	return l;
}

static uint64_t
other(const struct part *p)
{
	return p->total - p->arena - p->weights - p->states;
}

static double
bubble(const struct table *t)
{
	return (double)(t->parts - 1) / (t->stages.micro + t->parts - 1);
}

static om_status
write_text(om_cli *c, FILE *to, const void *arg)
{
	const struct table *t = arg;

	const char *batch = t->samples ? om_printf(c->mem, ", %" PRIu32 " micro-batch%s of %" PRId64 " sample%s", t->stages.micro,
		t->stages.micro == 1 ? "" : "es", t->samples, t->samples == 1 ? "" : "s") : "";

	fprintf(to, "%s: %" PRIu32 " part%s%s, in bytes\n%6s %14s %14s %14s %14s %14s\n", c->arg[0], t->parts, t->parts == 1 ? "" : "s", batch,
		"rank", "arena", "weights", "states", "other", "total");
	for (uint32_t k = 0; k < t->parts; k++) {
		const struct part *p = &t->part[k];
		fprintf(to, "%6" PRIu32 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n", k, p->arena, p->weights, p->states,
			other(p), p->total);
	}
	fprintf(to, "%6s %6s %14s %14s\n", "from", "to", "messages", "bytes");
	for (uint32_t from = 0; from < t->parts; from++)
		for (uint32_t k = 0; k < t->parts; k++) {
			const struct link l = link_of(t, from, k);
			if (l.messages)
				fprintf(to, "%6" PRIu32 " %6" PRIu32 " %14" PRIu64 " %14" PRIu64 "\n", from, k, l.messages, l.bytes);
		}
	fprintf(to, "Messages are those of a batch.  Other: samples, results that are no states.\n"
		"bubble %.1f %%: a rank waits for so much of the time, if all parts take as long\n", 100 * bubble(t));
	return OM_OK;
}

static json_t *
rank_object(const struct part *p, uint32_t rank)
{
	json_t *j = json_object();

	json_object_set_new(j, "rank", json_integer(rank));
	json_object_set_new(j, "arena_bytes", om_json_number(p->arena));
	json_object_set_new(j, "weight_bytes", om_json_number(p->weights));
	json_object_set_new(j, "state_bytes", om_json_number(p->states));
	json_object_set_new(j, "other_bytes", om_json_number(other(p)));
	json_object_set_new(j, "total_bytes", om_json_number(p->total));
	return j;
}

static json_t *
message_object(om_cli *c, uint32_t from, const struct message *m)
{
	json_t *j = json_object();

	json_object_set_new(j, "value", om_json_text(c->mem, m->name));
	json_object_set_new(j, "from", json_integer(from));
	json_object_set_new(j, "to", json_integer(m->to));
	json_object_set_new(j, "bytes", om_json_number(m->bytes));
	return j;
}

static om_status
write_json(om_cli *c, FILE *to, const void *arg)
{
	const struct table *t = arg;
	json_t *j = json_object(), *ranks = json_array(), *messages = json_array();

	json_object_set_new(j, "schema", json_string("onnxmem-pipeline/1"));
	json_object_set_new(j, "model", om_json_text(c->mem, c->arg[0]));
	json_object_set_new(j, "micro_batches", json_integer(t->stages.micro));
	if (t->samples)
		json_object_set_new(j, "samples", json_integer(t->samples));
	json_object_set_new(j, "bubble", json_real(bubble(t)));
	for (uint32_t k = 0; k < t->parts; k++) {
		json_array_append_new(ranks, rank_object(&t->part[k], k));
		for (size_t i = 0; i < t->part[k].nmsg; i++)
			json_array_append_new(messages, message_object(c, k, &t->part[k].msg[i]));
	}
	json_object_set_new(j, "ranks", ranks);
	json_object_set_new(j, "messages", messages);
	return om_json_write(c->session, j, JSON_INDENT(2) | JSON_REAL_PRECISION(6), to);
}

/* ---- All. ---- */

om_status
om_cli_report_pipeline(om_cli *c)
{
	static const om_form forms[] = {{"json", write_json}, {0}};
	struct table t = {.c = c};
	uint64_t parts = 1, batch = 32;
	bool taken;

	OM_TRY(om_stages_read(c, &t.stages));
	OM_TRY(om_cli_number(c, "pipeline", 1, OM_MOST_PARTS, &parts));
	OM_TRY(om_cli_number(c, "batch", 1, INT32_MAX, &batch));
	t.parts = (uint32_t)parts;
	t.part = OM_NEWN(c->mem, struct part, parts);
	OM_TRY(om_cli_load(c, c->arg[0]));
	OM_TRY(om_cli_host(c));
	OM_TRY(om_cli_shapes(c, NULL, false));
	OM_TRY(om_host_run(c->host, c->prog, "inline,shapes"));
	t.is_training = c->prog->nio_alias > 0;
	OM_TRY(find_batch(&t, batch));
	if (!t.is_training)
		OM_TRY(om_stages_check(c, &t.stages, t.in));
	for (uint32_t k = 0; k < t.parts; k++)
		OM_TRY(plan_part(&t, k));
	OM_TRY(om_cli_write_forms(c, forms, &t, &taken));
	return taken ? OM_OK : om_cli_write(c, "-", write_text, &t);
}
