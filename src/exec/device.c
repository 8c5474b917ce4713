/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on a device: opening it, its memory, and its kernels; see device.h. */
#include <config.h>

#include <stdio.h>

#include "base/arena_internal.h"
#include "base/load_module.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "exec/device.h"
#include "ir/steps.h"
#include "kernels/gpu/source.h"
#include "opdef/op_context.h"

enum { NO_TAG = 0 };

om_status
om_exec_device_fail(struct device_run *d, om_device_status st, const om_op *op, const char *what)
{
	static const om_status as[] = {
		[OM_DEVICE_MEMORY] = OM_MEMORY, [OM_DEVICE_ARGUMENT] = OM_RUN, [OM_DEVICE_UNSUPPORTED] = OM_UNSUPPORTED,
		[OM_DEVICE_BUILD] = OM_UNSUPPORTED, [OM_DEVICE_LOST] = OM_RUN, [OM_DEVICE_RACE] = OM_BADPLAN,
	};
	om_session *s = d->exec->session;

	if (st == OM_DEVICE_OK)
		return OM_OK;
	if (op)
		return om_op_fail(s, as[st], op, "%s on the device %s: %s", what, d->name, d->ops->error(d->device));
	return om_fail(s, as[st], "%s on the device %s: %s", what, d->name, d->ops->error(d->device));
}

/* ---- Opening. ---- */

static om_status
find_device(const om_exec *e, const char **name)
{
	*name = NULL;
	for (uint32_t k = 0; e->order[k]; k++) {
		const om_op *op = e->order[k];
		if (!op->device || !e->is_needed[op->id])
			continue;
		if (*name && strcmp(*name, op->device) != 0)
			return om_op_fail(e->session, OM_UNSUPPORTED, op, "is for the device %s, and others are for %s: a run has one device",
				op->device, *name);
		*name = op->device;
	}
	return OM_OK;
}

static om_status
load(om_session *s, const char *name, const om_device_ops **ops)
{
	char file[128];
	const om_device_ops *(*module)(void);

	snprintf(file, sizeof file, "onnxmem-%s.so", name);
	void *symbol = strchr(name, '/') ? NULL : om_load_module(file, "om_device_module");
	if (!symbol)
		return om_fail(s, OM_UNSUPPORTED, "the device %s cannot be used: %s", name,
			strchr(name, '/') ? "this is no name of a device" : om_load_module_error());
	memcpy(&module, &symbol, sizeof module);
	*ops = module();
	return OM_OK;
}

/* On failure there is no device. */
static om_status
open_device(om_session *s, const char *name, const om_device_ops *ops, const char *options, om_device **out)
{
	*out = NULL;
	if (ops->abi != OM_DEVICE_ABI || ops->size < sizeof *ops)
		return om_fail(s, OM_UNSUPPORTED, "the module of the device %s is for another version of onnxmem", name);
	const om_device_status st = ops->open(out, options);
	if (st == OM_DEVICE_OK)
		return OM_OK;
	const om_status failed = om_fail(s, st == OM_DEVICE_MEMORY ? OM_MEMORY : st == OM_DEVICE_ARGUMENT ? OM_USAGE : OM_UNSUPPORTED,
		"the device %s cannot be used: %s", name, ops->error(*out));
	ops->close(*out);
	*out = NULL;
	return failed;
}

om_status
om_device_try(om_session *s, const char *name, const char *options)
{
	const om_device_ops *ops;
	om_device *d;

	OM_TRY(load(s, name, &ops));
	OM_TRY(open_device(s, name, ops, options, &d));
	ops->close(d);
	return OM_OK;
}

om_status
om_exec_device_open(om_exec *e)
{
	const char *name;

	OM_TRY(find_device(e, &name));
	if (!name)
		return OM_OK;
	struct device_run *d = e->device = OM_NEW(e->mem, struct device_run);
	*d = (struct device_run){.exec = e, .name = name, .ops = e->options.device};
	if (!d->ops)
		OM_TRY(load(e->session, name, &d->ops));
	OM_TRY(open_device(e->session, name, d->ops, e->options.device_options, &d->device));
	if (d->ops->keep && e->options.cache)
		d->ops->keep(d->device, e->options.cache);
	d->ops->info(d->device, &d->info);
	d->arena = OM_NEWN(e->mem, om_mem, e->plan ? e->plan->narena : 0);
	d->own = OM_NEWN(e->mem, om_mem, e->prog->nvalue);
	d->place = OM_NEWN(e->mem, struct device_place, e->prog->nvalue);
	d->op = OM_NEWN(e->mem, struct device_op, e->prog->nop);
	return OM_OK;
}

void
om_exec_device_stop(om_exec *e)
{
	struct device_run *d = e->device;

	if (d && d->device)
		om_exec_device_abandon(d);
	for (uint32_t k = 0; d && d->device && k < OM_MOST_STREAMS; k++)
		if (d->stream[k])
			d->ops->sync(d->stream[k]);
}

void
om_exec_device_free(om_exec *e)
{
	struct device_run *d = e->device;

	if (!d || !d->device)
		return;
	om_exec_device_stop(e);
	om_exec_device_stretches_free(d);
	om_exec_device_bindings_free(d);
	for (uint32_t k = 0; k < e->prog->nop; k++)
		if (d->op[k].done)
			d->ops->event_free(d->op[k].done);
	for (uint32_t k = 0; k < OM_MOST_STREAMS; k++)
		if (d->stream[k])
			d->ops->stream_free(d->stream[k]);
	for (size_t k = 0; k < d->ncode; k++)
		d->ops->code_free(d->code[k].code);
	for (uint32_t k = 0; e->plan && k < e->plan->narena; k++)
		d->ops->free(d->device, d->arena[k]);
	for (uint32_t k = 0; k < e->prog->nvalue; k++)
		d->ops->free(d->device, d->own[k]);
	d->ops->free(d->device, d->scratch);
	d->ops->free(d->device, d->weights);
	d->ops->close(d->device);
	d->device = NULL;
}

/* ---- Memory. ---- */

static om_status
get_memory(struct device_run *d, om_mem_kind kind, uint64_t bytes, const char *what, om_mem *out)
{
	const om_device_status st = d->ops->alloc(d->device, kind, bytes, out);

	if (st != OM_DEVICE_OK)
		return om_exec_device_fail(d, st, NULL, om_printf(d->exec->mem, "%llu bytes for %s cannot be allocated",
			(unsigned long long)bytes, what));
	d->exec->stats.device_bytes += bytes;
	return OM_OK;
}

om_status
om_exec_device_memory(struct device_run *d, uint64_t bytes, const char *what, om_mem *out)
{
	return get_memory(d, OM_MEM_ARENA, bytes, what, out);
}

om_status
om_exec_device_arena(om_exec *e, uint32_t k, uint64_t bytes)
{
	struct device_run *d = e->device;
	const om_plan_arena *a = &e->plan->arena[k];

	if (!d || strcmp(a->device, d->name) != 0)
		return bytes == 2 * e->guard ? OM_OK : om_fail(e->session, OM_BADPLAN, "the arena %s is for the device %s, on which no op runs",
			a->name, a->device);
	return get_memory(d, OM_MEM_ARENA, bytes, om_printf(e->mem, "the arena %s", a->name), &d->arena[k]);
}

/* Where the plan has it, or in memory of its own. */
static om_status
place_value(struct device_run *d, const om_value *v)
{
	om_exec *e = d->exec;
	struct device_place *to = &d->place[v->id];

	to->bytes = om_value_bytes(v);
	if (om_exec_in_arena(e, v)) {
		const om_placement *at = &e->plan->place[v->id];
		to->mem = d->arena[at->arena];
		to->at = e->guard + at->offset;
		return OM_OK;
	}
	OM_TRY(get_memory(d, OM_MEM_ARENA, to->bytes, v->name, &d->own[v->id]));
	to->mem = d->own[v->id];
	return OM_OK;
}

/* Constants that ops on the device read there. */
static bool
is_weight(const struct device_run *d, const om_value *v)
{
	return v->is_const && !v->is_overridable && !d->place[v->id].bytes && om_value_bytes(v) > 0;
}

static uint64_t
add_weight(struct device_run *d, const om_value *v, uint64_t at)
{
	const uint64_t align = d->info.align ? d->info.align : 1;

	at = (at + align - 1) / align * align;
	d->place[v->id] = (struct device_place){.at = at, .bytes = om_value_bytes(v)};
	return at + d->place[v->id].bytes;
}

static om_status
upload_weight(struct device_run *d, const om_value *v)
{
	const om_tensor *t = &d->exec->slot[v->id];
	const struct device_place *to = &d->place[v->id];
	const void *data = t->data;
	void *all = NULL;

	if (t->splat) {
		all = om_alloc(d->exec->call, to->bytes);
		om_elements_copy(all, t, to->bytes);
		data = all;
	}
	if (!data)
		return om_fail(d->exec->session, OM_RUN, "the constant %s has no elements", v->name);
	const om_device_status st = d->ops->upload(d->stream[0], to->mem, to->at, data, to->bytes, NO_TAG);
	OM_TRY(om_exec_device_fail(d, st, NULL, "a constant cannot be copied"));
	OM_TRY(om_exec_device_fail(d, d->ops->sync(d->stream[0]), NULL, "a constant cannot be copied"));
	om_arena_clear(d->exec->call);
	return OM_OK;
}

/* Inputs that an op reads on the device: those of its kernel, or the one that it is a view of; a copy reads on the host. */
static bool
reads_there(const om_op *op, const om_device_kernel *k, uint32_t in)
{
	om_view_of view = {0};

	return !op->opdef->copies && (k || om_op_view(op, 0, &view)) && om_device_reads(op, k, view.in, in);
}

static const om_device_kernel *
row_of(om_exec *e, const om_op *op, om_op_context *c)
{
	om_op_context_init(c, e->session, e->call, op);
	return om_device_kernel_find(c);
}

static om_status
find_weights(struct device_run *d)
{
	om_exec *e = d->exec;
	uint64_t bytes = 0;
	om_op_context c;

	for (uint32_t k = 0; e->order[k]; k++) {
		const om_op *op = e->order[k];
		if (!op->device || op->is_folded || !e->is_needed[op->id])
			continue;
		const om_device_kernel *row = row_of(e, op, &c);
		for (uint32_t i = 0; i < op->nin; i++)
			if (reads_there(op, row, i) && is_weight(d, op->in[i]))
				bytes = add_weight(d, op->in[i], bytes);
		om_arena_clear(e->call);
	}
	if (bytes)
		OM_TRY(get_memory(d, OM_MEM_WEIGHTS, bytes, "constants", &d->weights));
	for (uint32_t k = 0; k < e->prog->nvalue; k++) {
		const om_value *v = e->prog->values[k];
		if (!v->is_const || v->is_overridable || !d->place[k].bytes)
			continue;
		d->place[k].mem = d->weights;
		OM_TRY(upload_weight(d, v));
	}
	return OM_OK;
}

static om_status
place_values(struct device_run *d)
{
	om_exec *e = d->exec;

	for (uint32_t k = 0; e->order[k]; k++) {
		const om_op *op = e->order[k];
		for (uint32_t i = 0; e->is_needed[op->id] && i < op->nout; i++)
			if (op->out[i] && om_value_device(op->out[i]))
				OM_TRY(place_value(d, op->out[i]));
	}
	return OM_OK;
}

/* ---- Kernels. ---- */

static bool
is_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static om_status
build(struct device_run *d, const om_op *op, const om_launch *l, om_device_code **out)
{
	const char *source = l->unit ? om_gpu_source_text(l->unit) : "";

	if (!source)
		return om_op_fail(d->exec->session, OM_UNSUPPORTED, op, "its kernel is in the source %s, which there is not", l->unit);
	const char *text = om_printf(d->exec->call, "%s%s", l->prologue ? l->prologue : "", source);
	return om_exec_device_fail(d, d->ops->build(d->device, text, &l->entry, 1, out), op, "its kernel cannot be built");
}

/* The kernel of a launch; each is built once. */
static om_status
find_code(struct device_run *d, const om_op *op, const om_launch *l, om_device_code **out)
{
	om_arena *mem = d->exec->mem;

	for (size_t k = 0; k < d->ncode; k++) {
		const struct device_code *c = &d->code[k];
		if (is_text(c->entry, l->entry) && is_text(c->unit, l->unit) && is_text(c->prologue, l->prologue)) {
			*out = c->code;
			return OM_OK;
		}
	}
	OM_TRY(build(d, op, l, out));
	const struct device_code c = {l->unit ? om_strdup(mem, l->unit) : NULL, l->prologue ? om_strdup(mem, l->prologue) : NULL,
		om_strdup(mem, l->entry), *out};
	OM_PUSH(mem, d->code, d->ncode, d->capcode, c);
	return OM_OK;
}

/* ---- Arguments. ---- */

static struct device_place
operand(const struct device_run *d, const om_op *op, const om_launch_arg *a)
{
	const om_exec *e = d->exec;
	const om_scratch *s = e->scratch[op->id];

	if (a->operand == OM_OPERAND_SCRATCH)
		return s ? (struct device_place){d->arena[s->arena], e->guard + s->offset, s->bytes}
			: (struct device_place){d->scratch, 0, om_op_scratch(op, 1, false)};
	const om_value *v = a->operand == OM_OPERAND_IN ? op->in[a->index] : op->out[a->index];
	return v ? d->place[v->id] : (struct device_place){0};
}

static om_status
bind_arg(struct device_run *d, const om_op *op, const om_launch_arg *a, om_arg *to, struct device_operand *of)
{
	*to = (om_arg){.kind = a->kind, .type = a->type, .value = a->value};
	if (a->kind == OM_ARG_VALUE)
		return OM_OK;
	if (a->operand != OM_OPERAND_SCRATCH && a->index >= (a->operand == OM_OPERAND_IN ? op->nin : op->nout))
		return om_op_fail(d->exec->session, OM_RUN, op, "its kernel uses an operand that it does not have");
	const struct device_place p = operand(d, op, a);
	if (!p.mem)
		return OM_OK;
	if (a->operand != OM_OPERAND_SCRATCH)
		*of = (struct device_operand){a->operand == OM_OPERAND_IN ? op->in[a->index] : op->out[a->index], a->at};
	if (a->at > p.bytes || a->bytes > p.bytes - a->at)
		return om_op_fail(d->exec->session, OM_RUN, op, "its kernel uses bytes outside of an operand");
	to->mem = p.mem;
	to->at = p.at + a->at;
	to->bytes = a->bytes ? a->bytes : p.bytes - a->at;
	return OM_OK;
}

static om_status
bind_launch(struct device_run *d, const om_op *op, const om_launch *l, struct device_launch *to)
{
	OM_TRY(find_code(d, op, l, &to->code));
	to->grid = l->grid;
	to->nargs = l->nargs;
	to->args = OM_NEWN(d->exec->mem, om_arg, l->nargs);
	to->operand = OM_NEWN(d->exec->mem, struct device_operand, l->nargs);
	for (uint32_t k = 0; k < l->nargs; k++)
		OM_TRY(bind_arg(d, op, &l->arg[k], &to->args[k], &to->operand[k]));
	return OM_OK;
}

/* Scratch that the plan does not have is shared by all ops: they are in one stream then. */
static om_status
get_scratch(struct device_run *d)
{
	om_exec *e = d->exec;
	uint64_t most = 0;

	for (uint32_t k = 0; e->order[k]; k++) {
		const om_op *op = e->order[k];
		const uint64_t bytes = op->device && e->is_needed[op->id] && !e->scratch[op->id] ? om_op_scratch(op, 1, false) : 0;
		most = bytes > most ? bytes : most;
	}
	return most ? get_memory(d, OM_MEM_ARENA, most, "scratch", &d->scratch) : OM_OK;
}

static om_status
bind_op(struct device_run *d, const om_op *op)
{
	om_exec *e = d->exec;
	struct device_op *to = &d->op[op->id];
	om_op_context c;
	om_view_of view;
	om_launch_list list = {.mem = e->call, .threads = d->info.threads, .shared = d->info.shared};
	const om_device_kernel *row = row_of(e, op, &c);

	if (op->opdef->copies || (!row && om_op_view(op, 0, &view)))
		return OM_OK;
	if (!row)
		return om_op_fail(e->session, OM_UNSUPPORTED, op, "is for the device %s, for which it has no kernel", d->name);
	OM_TRY(row->launches(&c, &list));
	to->nlaunch = (uint32_t)list.n;
	to->launch = OM_NEWN(e->mem, struct device_launch, list.n);
	for (size_t k = 0; k < list.n; k++)
		OM_TRY(bind_launch(d, op, &list.launch[k], &to->launch[k]));
	return OM_OK;
}

static om_status
bind_ops(struct device_run *d)
{
	om_exec *e = d->exec;

	for (uint32_t k = 0; e->order[k]; k++) {
		const om_op *op = e->order[k];
		if (!op->device || op->is_folded || !e->is_needed[op->id])
			continue;
		OM_TRY(bind_op(d, op));
		om_arena_clear(e->call);
	}
	return OM_OK;
}

/* ---- Streams. ---- */

static uint32_t
count_streams(const struct device_run *d)
{
	const om_exec_options *o = &d->exec->options;
	uint32_t n = o->streams ? o->streams : d->exec->plan && d->exec->plan->parallel_safe ? 4 : 1;

	n = n < OM_MOST_STREAMS ? n : OM_MOST_STREAMS;
	if (d->info.streams && n > d->info.streams)
		n = d->info.streams;
	return o->poison || d->scratch ? 1 : n;
}

/* Events for the ops that others wait for. */
static om_status
get_events(struct device_run *d)
{
	for (uint32_t k = 0; d->exec->order[k]; k++) {
		const om_stream_op *o = &d->streams.op[d->exec->order[k]->id];
		for (uint32_t i = 0; o->stream && i < o->nwait; i++) {
			om_event **done = &d->op[o->wait[i]].done;
			if (!*done && d->streams.op[o->wait[i]].stream)
				OM_TRY(om_exec_device_fail(d, d->ops->event_create(d->device, done), NULL, "an event cannot be made"));
		}
	}
	return OM_OK;
}

om_status
om_exec_device_prepare(om_exec *e)
{
	struct device_run *d = e->device;

	if (!d)
		return OM_OK;
	OM_TRY(om_exec_device_fail(d, d->ops->stream_create(d->device, &d->stream[0]), NULL, "a stream cannot be made"));
	OM_TRY(place_values(d));
	OM_TRY(om_exec_device_states(e));
	OM_TRY(find_weights(d));
	OM_TRY(get_scratch(d));
	d->planned = om_memdup(e->mem, d->place, e->prog->nvalue * sizeof *d->place);
	OM_TRY(bind_ops(d));
	const uint32_t n = count_streams(d);
	for (uint32_t k = 1; k < n; k++)
		OM_TRY(om_exec_device_fail(d, d->ops->stream_create(d->device, &d->stream[k]), NULL, "a stream cannot be made"));
	om_exec_device_order(e, n, &d->streams);
	OM_TRY(om_streams_verify(e->session, e->prog, e->plan, &d->streams));
	OM_TRY(get_events(d));
	return om_exec_device_stretches(e);
}
