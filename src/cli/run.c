/* SPDX-License-Identifier: Apache-2.0 */
/* run: execute a model in the memory of its plan. */
#include <config.h>

#include <jansson.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/shape.h"
#include "base/sha256.h"
#include "base/system.h"
#include "cli/caches.h"
#include "cli/data.h"
#include "cli/stages.h"
#include "onnxmem/version.h"
#include "onnxmem/executor.h"
#include "ir/steps.h"
#include "ir/type.h"
#include "report/json.h"

/* An input that an output replaces from run to run. */
struct held_state {
	void *data, *spare;      /* memory of the input, once it was replaced, and what is unused in a run; NULL: none yet */
	bool is_new;             /* the last run replaced it */
};

struct run {
	om_exec *exec;
	om_exec_options options;
	uint32_t nparam;
	om_tensor *in;            /* by parameter of the graph */
	void **owned;
	struct held_state *state; /* by parameter */
	void **consumed;          /* by parameter: the elements of an input that runs consume; NULL: they do not */
	const om_tensor **out;    /* by result */
	uint64_t repeat;
	double best_ms, sum_ms, best_cpu_ms;
	om_tolerance tol;
	om_ranks ranks;           /* of a pipeline */
	om_stages stages;
};

/* Processor time is taken of runs that need so much together: the clock of a virtual machine may stand still for some microseconds. */
static const double least_cpu_ms = 0.1;

/* ---- Obtaining a plan. ---- */

static bool
has_usable_plan(const om_cli *c)
{
	return c->model && (om_cli_has(c, "sidecar") || om_model_has_plan(c->model)) && !om_cli_plan_options(c);
}

/* Of a plan with ranges, that for the sizes of the inputs. */
static om_status
read_plan(om_cli *c, const om_tensor *in)
{
	om_binding *b = om_binding_new();
	om_status st = b ? om_cli_sizes(c, in, b) : OM_MEMORY;

	if (st == OM_OK)
		st = om_host_read_plan(c->host, c->model, c->prog, om_cli_option(c, "sidecar"), b);
	if (st == OM_OK && c->prog->plan->nrange)
		st = om_plan_shrink(c->session, c->prog, c->prog->plan);
	om_binding_free(b);
	return st;
}

/* Does a parameter keep its default in all runs?  It is neither given, nor filled by an option, nor replaced after a run. */
static om_status
keeps_default(om_cli *c, uint32_t param, const om_tensor *in, bool *keeps)
{
	const om_value *v = c->prog->first->param[param];
	bool fills;

	OM_TRY(om_data_fills(c, param, &fills));
	*keeps = v->is_overridable && v->data && in[param].type == OM_UNDEFINED && !fills;
	for (uint32_t k = 0; k < c->prog->nio_alias; k++)
		*keeps = *keeps && c->prog->io_alias[k].param != param;
	return OM_OK;
}

/* Such defaults are constants of these runs: weights that the file lists as inputs are folded and packed. */
static om_status
bind_defaults(om_cli *c, const om_tensor *in)
{
	const om_block *graph = c->prog->first;
	om_binding *b = om_binding_new();
	om_status st = b ? OM_OK : OM_MEMORY;

	for (uint32_t k = 0; k < graph->nparam && st == OM_OK; k++) {
		bool keeps = false;
		st = keeps_default(c, k, in, &keeps);
		if (st == OM_OK && keeps)
			st = om_binding_default(c->session, b, c->prog, graph->param[k]->name);
	}
	if (st == OM_OK)
		st = om_bind(c->session, c->prog, b);
	om_binding_free(b);
	return st;
}

static om_status
make_plan(om_cli *c, const struct run *r, const om_tensor *in)
{
	if (has_usable_plan(c) && !r->stages.used) {
		om_info(c->session, "running the plan stored in the model");
		OM_TRY(om_cli_host(c));
		return read_plan(c, in);
	}
	OM_TRY(bind_defaults(c, in));
	OM_TRY(om_stages_divide(c, &r->stages, in, c->prog->first->nparam, &in));
	OM_TRY(om_cli_shapes(c, in, true));
	om_info(c->session, r->stages.used ? "planning the part of this rank" : "planning the model: it contains no usable plan");
	om_stages_plan(c, &r->stages, &r->ranks);
	OM_TRY(om_cli_passes(c, NULL));
	if (!(c->prog->has & OM_HAS_PLAN) && !om_cli_has(c, "no-reuse"))
		return om_fail(c->session, OM_USAGE, "the passes %s make no plan", om_cli_option(c, "passes"));
	if (c->prog->has & OM_HAS_PLAN)
		om_cli_tell_states(c);
	return OM_OK;
}

/* ---- Running. ---- */

static om_status
prepare(om_cli *c, struct run *r)
{
	const om_block *graph = c->prog->first;

	OM_TRY(om_data_fill(c, r->in, r->owned));
	om_cli_spread_caches(c, r->in, r->options.poison ? 0xff : 0);
	const om_plan *plan = c->prog->has & OM_HAS_PLAN ? c->prog->plan : NULL;
	r->options.precise |= plan && plan->precise;
	r->options.device_options = c->device_options;
	r->options.comm = r->ranks.comm;
	OM_TRY(om_exec_new(c->session, c->prog, plan, &r->options, &r->exec));
	for (uint32_t k = 0; k < graph->nparam; k++)
		if (r->in[k].type != OM_UNDEFINED)
			OM_TRY(om_exec_input(r->exec, k, &r->in[k]));
	return OM_OK;
}

/* Keep what replaces an input in the next run.  A plan may have it in the memory of that input, where it stays, or elsewhere,
 * in an arena or in the memory of another input: from there it is copied into memory that this run did not use. */
static void
take_state(om_cli *c, struct run *r, const om_io_alias *a)
{
	const om_tensor *out = om_exec_result(r->exec, a->result), *in = &r->in[a->param];
	struct held_state *held = &r->state[a->param];
	uint64_t bytes;

	held->is_new = !a->rows_after && in->type == out->type && om_shape_equal(&in->shape, &out->shape) && !out->splat
	    && out->data != in->data && om_tensor_bytes(in->type, &in->shape, &bytes);
	if (!held->is_new)
		return;
	if (!held->spare)
		held->spare = om_allocn(c->mem, bytes + 1, 1);
	memcpy(held->spare, out->data, bytes);
}

/* Give it to the next run. */
static om_status
give_state(struct run *r, uint32_t param)
{
	struct held_state *held = &r->state[param];
	void *was = held->data;

	if (!held->is_new)
		return OM_OK;
	held->data = held->spare;
	held->spare = was;
	r->in[param].data = held->data;
	r->in[param].splat = false;
	return om_exec_input(r->exec, param, &r->in[param]);
}

static bool
is_consumed(const om_plan *plan, const om_value *input)
{
	for (uint32_t k = 0; plan && k < plan->nalias; k++)
		if (plan->alias[k].kind == OM_ALIAS_CONSUME && plan->alias[k].source == input->id)
			return true;
	return false;
}

/* Every run gets the same elements of an input that no output replaces, also where the plan has an output in its memory. */
static void
keep_consumed(om_cli *c, struct run *r)
{
	const om_block *graph = c->prog->first;
	uint64_t bytes;

	r->consumed = OM_NEWN(c->mem, void *, graph->nparam);
	for (uint32_t k = 0; k < graph->nparam && r->repeat > 1 && !r->options.no_reuse; k++)
		if (r->in[k].type != OM_UNDEFINED && is_consumed(c->prog->plan, graph->param[k])
		    && om_tensor_bytes(r->in[k].type, &r->in[k].shape, &bytes))
			r->consumed[k] = memcpy(om_allocn(c->mem, bytes + 1, 1), r->in[k].data, bytes);
}

/* After states were taken, which may be where an input was; an input that an output replaced has its next elements. */
static om_status
give_consumed(om_cli *c, struct run *r)
{
	uint64_t bytes;

	for (uint32_t k = 0; k < c->prog->first->nparam; k++) {
		if (!r->consumed[k] || r->state[k].data || !om_tensor_bytes(r->in[k].type, &r->in[k].shape, &bytes))
			continue;
		memcpy(r->in[k].data, r->consumed[k], bytes);
		OM_TRY(om_exec_input(r->exec, k, &r->in[k]));
	}
	return OM_OK;
}

static om_status
go_on(om_cli *c, struct run *r)
{
	for (uint32_t k = 0; k < c->prog->nio_alias; k++)
		take_state(c, r, &c->prog->io_alias[k]);
	for (uint32_t k = 0; k < c->prog->nio_alias; k++)
		OM_TRY(give_state(r, c->prog->io_alias[k].param));
	return give_consumed(c, r);
}

/* Runs whose processor time is taken together. */
struct span {
	double start;
	uint64_t runs;
};

static void
end_span(struct run *r, struct span *span, bool is_last)
{
	const double ms = om_cpu_ms() - span->start, mean = ms / (double)++span->runs;

	if (ms < least_cpu_ms && !(is_last && r->best_cpu_ms == 0))
		return;
	r->best_cpu_ms = r->best_cpu_ms == 0 || mean < r->best_cpu_ms ? mean : r->best_cpu_ms;
	span->runs = 0;
}

static om_status
run_all(om_cli *c, struct run *r)
{
	struct span span = {0};

	r->state = OM_NEWN(c->mem, struct held_state, c->prog->first->nparam);
	keep_consumed(c, r);
	for (uint64_t k = 0; k < r->repeat; k++) {
		if (k > 0)
			OM_TRY(go_on(c, r));
		if (span.runs == 0)
			span.start = om_cpu_ms();
		const double start = om_now_ms();
		OM_TRY(om_exec_run(r->exec));
		const double ms = om_now_ms() - start;
		end_span(r, &span, k + 1 == r->repeat);
		r->sum_ms += ms;
		r->best_ms = k == 0 || ms < r->best_ms ? ms : r->best_ms;
	}
	for (uint32_t k = 0; k < c->prog->first->nresult; k++)
		r->out[k] = om_exec_result(r->exec, k);
	om_cli_gather_caches(c, r->out);
	return OM_OK;
}

/* ---- Report. ---- */

static void
print_elements(const om_tensor *t)
{
	enum { SHOWN = 6 };
	const int64_t n = om_dtype_bits(t->type) < 8 ? 0 : om_shape_count(&t->shape);
	char text[256];

	for (int64_t k = 0; k < n && k < SHOWN; k++)
		printf("%s%s", k ? " " : "", om_data_text(t, k, text, sizeof text));
	puts(n > SHOWN ? " ..." : "");
}

static void
print_outputs(const om_cli *c, const struct run *r)
{
	const om_block *graph = c->prog->first;
	int width[2] = {6, 5};
	char shape[256];

	for (uint32_t k = 0; k < graph->nresult; k++) {
		const int name = (int)strlen(graph->result[k]->name);
		const int dims = (int)strlen(om_shape_text(&r->out[k]->shape, shape, sizeof shape));
		width[0] = name > width[0] ? name : width[0];
		width[1] = dims > width[1] ? dims : width[1];
	}
	printf("%-*s  %-8s  %-*s  %s\n", width[0], "output", "type", width[1], "shape", "elements");
	for (uint32_t k = 0; k < graph->nresult; k++) {
		const om_kind kind = graph->result[k]->type.kind;
		const char *name = om_clean_text(c->mem, graph->result[k]->name);
		if (kind != OM_TENSOR) {
			printf("%-*s  %-8s  %zu elements\n", width[0], name, om_kind_text(kind),
				((const om_container *)r->out[k]->data)->n);
			continue;
		}
		printf("%-*s  %-8s  %-*s  ", width[0], name, om_dtype_text(r->out[k]->type),
			width[1], om_shape_text(&r->out[k]->shape, shape, sizeof shape));
		print_elements(r->out[k]);
	}
}

static void
print_arenas(const om_plan *plan, const om_exec_stats *s)
{
	if (plan->narena == 1)
		printf("arena %llu bytes", (unsigned long long)s->arena_bytes);
	for (uint32_t k = 0; k < plan->narena && plan->narena > 1; k++)
		printf("%s %s %llu bytes", k ? "," : "arenas", plan->arena[k].name, (unsigned long long)plan->arena[k].bytes);
}

/* The arenas of other ranks, on rank 0. */
static void
print_ranks(const struct run *r, const uint64_t *arena)
{
	for (uint32_t k = 1; k < r->ranks.size && !r->options.no_reuse; k++)
		printf("%s%llu%s", k == 1 ? " (of the other ranks " : " ", (unsigned long long)arena[k], k + 1 == r->ranks.size ? ")" : "");
}

static void
print_sizes(const om_cli *c, const struct run *r, const uint64_t *arena)
{
	const om_exec_stats *s = om_exec_get_stats(r->exec);

	if (r->options.no_reuse)
		printf("every value in memory of its own");
	else
		print_arenas(c->prog->plan, s);
	print_ranks(r, arena);
	if (s->unplanned_bytes)
		printf(", outside of it %llu", (unsigned long long)s->unplanned_bytes);
	if (s->copied_bytes)
		printf(", copied %llu", (unsigned long long)s->copied_bytes);
	if (s->runs > 1)
		printf("; %llu runs, best %.3f ms, mean %.3f ms\n", (unsigned long long)s->runs, r->best_ms,
			r->sum_ms / (double)s->runs);
	else
		printf("; %.3f ms\n", r->best_ms);
	if (c->device)
		printf("device %s: %llu bytes copied to it and from it, %llu commands captured, %llu replays\n", c->device,
			(unsigned long long)s->transferred_bytes, (unsigned long long)s->captured_commands, (unsigned long long)s->replays);
}

/* ---- Files. ---- */

static om_status
write_json(om_cli *c, FILE *to, json_t *j)
{
	return om_json_write(c->session, j, JSON_INDENT(1) | JSON_REAL_PRECISION(9), to);
}

static om_status
write_stats(om_cli *c, FILE *to, const void *arg)
{
	const struct run *r = arg;
	const om_exec_stats *s = om_exec_get_stats(r->exec);

	json_t *j = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}",
		"schema", "onnxmem-run/1", "runs", (json_int_t)s->runs,
		"arena_bytes", (json_int_t)s->arena_bytes, "weight_bytes", (json_int_t)s->weight_bytes,
		"unplanned_bytes", (json_int_t)s->unplanned_bytes, "copied_bytes", (json_int_t)s->copied_bytes,
		"steps", (json_int_t)s->steps,
		"best_ms", r->best_ms, "mean_ms", s->runs ? r->sum_ms / (double)s->runs : 0.0,
		"best_cpu_ms", r->best_cpu_ms);
	if (c->device)
		json_object_update_new(j, json_pack("{s:I, s:I, s:I, s:I}", "device_bytes", (json_int_t)s->device_bytes,
			"transferred_bytes", (json_int_t)s->transferred_bytes, "captured_commands", (json_int_t)s->captured_commands,
			"replays", (json_int_t)s->replays));
	return write_json(c, to, j);
}

/* A name as a JSON string; in invalid UTF-8, non-ASCII bytes are replaced. */
static json_t *
name_json(om_arena *mem, const char *name)
{
	json_t *text = json_string(name);
	char *clean = om_strdup(mem, name);

	if (text)
		return text;
	for (char *at = clean; *at; at++)
		if (*at & 0x80)
			*at = '?';
	return json_string(clean);
}

/* The report of the plan; NULL if it was not used. */
static const om_report *
report_of(om_cli *c, const struct run *r)
{
	return r->options.no_reuse ? NULL : om_report_new(c->prog, c->arg[0], c->mem);
}

/* Trace viewers draw a counter as a curve above the ops. */
static void
add_counter(json_t *events, const uint64_t *by, uint32_t step, double at)
{
	if (by)
		json_array_append_new(events, json_pack("{s:s, s:s, s:f, s:i, s:{s:I}}", "name", "arena", "ph", "C", "ts", at,
			"pid", 1, "args", "bytes in use", (json_int_t)by[step]));
}

/* Shapes as texts, null for an input or output left out. */
static json_t *
shapes_json(om_value *const *v, uint32_t n)
{
	json_t *list = json_array();
	char text[256];

	for (uint32_t k = 0; k < n; k++)
		json_array_append_new(list, v[k] ? json_string(om_shape_text(&v[k]->shape, text, sizeof text)) : json_null());
	return list;
}

/* The attributes that are integers, as kernel_shape and group. */
static json_t *
attributes_json(const om_op *op)
{
	json_t *found = json_object();

	for (uint32_t k = 0; k < op->nattr; k++) {
		const om_attr *a = &op->attr[k];
		if (a->kind != OM_ATTR_INT && a->kind != OM_ATTR_INTS)
			continue;
		json_t *list = json_array();
		for (size_t i = 0; i < a->n; i++)
			json_array_append_new(list, json_integer(a->i[i]));
		json_object_set_new(found, a->name, list);
	}
	return found;
}

/* The stream of workers that the plan has it in. */
static uint32_t
stream_of(const om_cli *c, const struct run *r, const om_op *op)
{
	const om_worker_streams *s = r->options.no_reuse ? NULL : c->prog->plan->streams;

	return s && s->op[op->id].stream != OM_NO_STREAM ? s->op[op->id].stream : 0;
}

static json_t *
first_output_json(om_cli *c, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			return name_json(c->mem, op->out[k]->name);
	return json_null();
}

/* One run as a trace: ops in the order of their first call, with the mean duration of their
 * calls per run, bodies after their owners. */
static om_status
write_profile(om_cli *c, FILE *to, const void *arg)
{
	const struct run *r = arg;
	const double runs = (double)om_exec_get_stats(r->exec)->runs;
	const om_report *plan = report_of(c, r);
	const uint64_t *by = plan ? om_report_in_use(plan, c->mem) : NULL;
	json_t *events = json_array();
	double at = 0;
	const uint32_t n = om_exec_get_stats(r->exec)->nop;
	const om_exec_op *p = om_exec_get_stats(r->exec)->op;
	for (uint32_t k = 0; k < n; k++) {
		const double us = p[k].ms * 1e3 / runs;
		const om_cost cost = om_op_cost(p[k].op);
		add_counter(events, by, plan ? om_report_steps(plan, p[k].op).first : 0, at);
		json_array_append_new(events, json_pack(
			"{s:o, s:s, s:s, s:f, s:f, s:i, s:I, s:{s:I, s:s, s:s, s:o, s:f, s:f, s:f, s:f, s:o, s:o, s:o}}",
			"name", name_json(c->mem, om_op_label(p[k].op)), "cat", p[k].op->type, "ph", "X", "ts", at, "dur", us,
			"pid", 1, "tid", (json_int_t)1 + stream_of(c, r, p[k].op), "args", "calls", (json_int_t)p[k].calls,
			"domain", p[k].op->domain, "type", p[k].op->type, "output", first_output_json(c, p[k].op), "ms", p[k].ms, "least_ms", p[k].least_ms, "flops", cost.flops, "bytes", cost.bytes,
			"inputs", shapes_json(p[k].op->in, p[k].op->nin), "outputs", shapes_json(p[k].op->out, p[k].op->nout),
			"attributes", attributes_json(p[k].op)));
		at += p[k].op->nbody ? 0 : us;
	}
	add_counter(events, by, plan ? plan->steps : 0, at);
	return write_json(c, to, json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events));
}

static om_status
write_files(om_cli *c, const struct run *r)
{
	const char *path;

	if ((path = om_cli_option(c, "save")))
		OM_TRY(om_data_save(c, path, r->out));
	if ((path = om_cli_option(c, "stats")))
		OM_TRY(om_cli_write(c, path, write_stats, r));
	if ((path = om_cli_option(c, "profile")))
		OM_TRY(om_cli_write(c, path, write_profile, r));
	return OM_OK;
}

static om_status
compare(om_cli *c, const struct run *r, const om_tensor *want, uint32_t *n)
{
	const om_block *graph = c->prog->first;

	for (uint32_t k = 0; k < graph->nresult; k++) {
		if (want[k].type == OM_UNDEFINED)
			continue;
		OM_TRY(om_data_compare(c, graph->result[k]->name, &graph->result[k]->type, r->out[k], &want[k], r->tol));
		++*n;
	}
	return OM_OK;
}

/* ---- The command. ---- */

/* All ranks of a pipeline have the same model, inputs and options. */
static om_status
agree(om_cli *c, struct run *r)
{
	om_sha256 *h = om_sha256_new(c->mem);
	char digest[80] = "", inputs[OM_SHA256_TEXT] = "";
	uint64_t bytes;

	if (r->ranks.size == 1)
		return OM_OK;
	const char *options = om_printf(c->mem, "%u %llu", r->stages.micro, (unsigned long long)r->repeat);
	OM_TRY(om_comm_agree(r->ranks.comm, c->session, "version of onnxmem", om_version(), strlen(om_version())));
	if (c->model)
		OM_TRY(om_model_digest(c->session, c->model, true, digest));
	OM_TRY(om_comm_agree(r->ranks.comm, c->session, "model", digest, strlen(digest)));
	for (uint32_t k = 0; k < c->prog->first->nparam; k++)
		if (r->in[k].type != OM_UNDEFINED && om_tensor_bytes(r->in[k].type, &r->in[k].shape, &bytes))
			om_sha256_add(h, r->in[k].data, bytes);
	om_sha256_end(h, inputs);
	OM_TRY(om_comm_agree(r->ranks.comm, c->session, "set of inputs", inputs, strlen(inputs)));
	return om_comm_agree(r->ranks.comm, c->session, "set of options", options, strlen(options));
}

static om_status
check_stages(om_cli *c, struct run *r)
{
	if (!r->stages.used)
		return OM_OK;
	if (om_cli_has(c, "sidecar"))
		return om_fail(c->session, OM_USAGE, "options --sidecar and --pipeline do not go together");
	OM_TRY(om_cli_host(c));
	OM_TRY(om_host_run(c->host, c->prog, "inline,shapes"));
	OM_TRY(agree(c, r));
	return om_stages_check(c, &r->stages, r->in);
}

/* Whoever names a plan gets that one, or a reason. */
static om_status
check_sidecar(const om_cli *c)
{
	if (!om_cli_has(c, "sidecar"))
		return OM_OK;
	if (!c->model)
		return om_fail(c->session, OM_USAGE, "%s is a text file: no document has a plan for it", c->arg[0]);
	return om_cli_plan_options(c) ? om_fail(c->session, OM_USAGE, "option --sidecar runs a plan as it is: options for planning "
		"have no effect on it") : OM_OK;
}

static om_status
run_model(om_cli *c, struct run *r)
{
	const char *expect = om_cli_option(c, "expect");
	const om_block *graph = c->prog->first;
	om_tensor *want = OM_NEWN(c->mem, om_tensor, graph->nresult);
	uint64_t *arena;
	uint32_t n = 0;

	OM_TRY(check_sidecar(c));
	OM_TRY(om_data_read(c, r->in));
	if (expect)
		OM_TRY(om_data_exists(c, expect));
	OM_TRY(check_stages(c, r));
	OM_TRY(make_plan(c, r, r->in));
	if (expect && r->ranks.rank == 0)
		OM_TRY(om_data_expected(c, expect, want));
	OM_TRY(prepare(c, r));
	OM_TRY(run_all(c, r));
	OM_TRY(om_ranks_gather(c, &r->ranks, om_exec_get_stats(r->exec)->arena_bytes, &arena));
	if (r->ranks.rank != 0)
		return OM_OK;
	print_outputs(c, r);
	print_sizes(c, r, arena);
	OM_TRY(write_files(c, r));
	if (!expect)
		return OM_OK;
	OM_TRY(compare(c, r, want, &n));
	printf("PASSED %u of %u outputs agree (rtol %g, atol %g)\n", n, graph->nresult, r->tol.relative,
		r->tol.absolute);
	return OM_OK;
}

static om_status
read_options(om_cli *c, struct run *r)
{
	OM_TRY(om_cli_number(c, "repeat", 1, 1000000000, &r->repeat));
	OM_TRY(om_cli_run_limits(c, &r->options));
	OM_TRY(om_stages_read(c, &r->stages));
	OM_TRY(om_cli_float(c, "rtol", &r->tol.relative));
	return om_cli_float(c, "atol", &r->tol.absolute);
}

static om_status
load_and_run(om_cli *c, struct run *r)
{
	OM_TRY(om_cli_load(c, c->arg[0]));
	r->nparam = c->prog->first->nparam;
	r->in = OM_NEWN(c->mem, om_tensor, r->nparam);
	r->owned = OM_NEWN(c->mem, void *, r->nparam);
	r->out = OM_NEWN(c->mem, const om_tensor *, c->prog->first->nresult);
	return run_model(c, r);
}

static om_status
run(om_cli *c)
{
	struct run r = {.repeat = 1, .tol = {1e-3, 1e-5}, .ranks = {.size = 1}};

	r.options = (om_exec_options)OM_EXEC_OPTIONS(.no_reuse = om_cli_has(c, "no-reuse"), .poison = om_cli_has(c, "poison"),
		.profile = om_cli_has(c, "profile"));
	OM_TRY(read_options(c, &r));
	om_status st = om_cli_has(c, "pipeline") ? om_ranks_start(c, &r.ranks) : OM_OK;
	if (st == OM_OK)
		st = load_and_run(c, &r);
	st = om_ranks_end(c, &r.ranks, st);
	if (st != OM_OK && om_cli_has(c, "expect"))
		om_cli_failed(c, st);
	om_exec_free(r.exec);
	for (uint32_t k = 0; k < r.nparam; k++)
		om_aligned_free(r.owned[k]);
	return st;
}

static const om_opt opts[] = {
	{"sidecar", "FILE", "run the plan in this document instead of the one in the model"},
	{"expect", "PATH", "compare the outputs with a folder (output_0.pb, ...) or a .npz file;\n"
		"                            the last line is PASSED or FAILED"},
	{"rtol", "X", "relative tolerance of that comparison [1e-3]"},
	{"atol", "X", "absolute tolerance [1e-5]"},
	{"save", "PATH", "write the outputs to a folder, or to a .npz file", .writes = OM_WRITES_FILE_OR_FOLDER},
	{"repeat", "N", "run the model N times; states (--tie) go on from one run to the next [1]"},
	OM_CLI_STAGES,
	{"timeout", "SECONDS", "of a pipeline: fail if a rank waits longer for the others [600]"},
	OM_CLI_RUN_LIMITS,
	{"poison", NULL, "overwrite dead values with a pattern and guard the arena"},
	{"no-reuse", NULL, "allocate every value separately; the plan is not used"},
	{"profile", "FILE", "write the time of each op and the bytes in use (Chrome trace format)", .writes = OM_WRITES_FILE},
	{"stats", "FILE", "write sizes, bytes copied instead of shared, and times as JSON", .writes = OM_WRITES_FILE},
	{0}
};

static const om_opt_group group = {"running", opts};

const om_cmd om_run_cmd = {
	.name = "run", .usage = "MODEL [--data PATH] [options]", .brief = "run a model in its arena",
	.text = "A plan in the model is verified and used; without one, or with --passes, the\n"
		"model is planned first.  Unknown dims are taken from the data, and an input\n"
		"with a default that is not given is a constant.",
	.target = OM_TARGET_CPU, .min_args = 1, .max_args = 1,
	.group = {&group, &om_data_options, &om_shape_options, &om_pass_options}, .run = run,
};
