/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on a device: what they do in a run; see device.h. */
#include <config.h>

#include "exec/device.h"
#include "ir/steps.h"
#include "opdef/op_context.h"

enum { POISON_LOW = 0xfd, GUARD_BYTES = 4096 };

static om_stream *
stream_of(const struct device_run *d, const om_op *op)
{
	return d->stream[d->streams.op[op->id].stream - 1];
}

om_status
om_exec_device_sync(struct device_run *d, uint32_t stream, const om_op *op)
{
	const om_device_status st = d->ops->sync(d->stream[stream - 1]);

	return om_exec_device_fail(d, st, op, op ? "waiting for what it needs failed" : "the run failed");
}

static om_status
sync_all(struct device_run *d, const om_op *op)
{
	for (uint32_t k = 1; k <= d->streams.n; k++)
		OM_TRY(om_exec_device_sync(d, k, op));
	return OM_OK;
}

/* The stream of a device op waits for events; the host for streams. */
om_status
om_exec_device_before(om_exec *e, const om_op *op)
{
	struct device_run *d = e->device;
	const om_stream_op *o = &d->streams.op[op->id];

	if (o->is_barrier)
		return sync_all(d, op);
	for (uint32_t k = 0; k < o->nwait; k++) {
		const uint32_t id = o->wait[k], stream = d->streams.op[id].stream;
		if (!o->stream)
			OM_TRY(om_exec_device_sync(d, stream, op));
		else if (d->op[id].done && om_exec_device_waits(d, id))
			OM_TRY(om_exec_device_fail(d, d->ops->wait(stream_of(d, op), d->op[id].done), op, "it cannot wait"));
	}
	return OM_OK;
}

om_status
om_exec_device_after(om_exec *e, const om_op *op)
{
	return op->nbody ? sync_all(e->device, op) : OM_OK;
}

/* A state is copied to the device once. */
static om_device_status
copy_in_or_out(struct device_run *d, const struct step *s, om_stream *stream)
{
	const om_op *op = s->op;
	struct device_state *state = d->op[op->id].state;

	if (om_exec_device_has(d, op))
		return om_exec_device_move(d, op, stream);
	if (state && state->is_there)
		return OM_DEVICE_OK;
	d->exec->stats.transferred_bytes += om_value_bytes(op->in[0]);
	if (op->opdef->copies == OM_COPIES_TO_DEVICE) {
		const struct device_place *to = &d->place[op->out[0]->id];
		const om_device_status st = d->ops->upload(stream, to->mem, to->at, s->in[0].data, to->bytes, op->id);
		if (state)
			state->is_there = st == OM_DEVICE_OK;
		return st;
	}
	const struct device_place *from = &d->place[op->in[0]->id];
	return d->ops->download(stream, s->out[0].data, from->mem, from->at, from->bytes, op->id);
}

/* Copy output `k` of an op that makes views, if it is not where the plan says so, or there is no plan. */
static om_device_status
copy_view(struct device_run *d, const om_op *op, uint32_t k)
{
	om_view_of view;

	if (!op->out[k] || !d->place[op->out[k]->id].mem)
		return OM_DEVICE_OK;
	if (!om_op_view(op, k, &view))
		return OM_DEVICE_ARGUMENT;
	const struct device_place *to = &d->place[op->out[k]->id], *from = &d->place[op->in[view.in]->id];
	if (to->mem == from->mem && to->at == from->at + view.offset)
		return OM_DEVICE_OK;
	d->commands++;
	return d->ops->copy(stream_of(d, op), to->mem, to->at, from->mem, from->at + view.offset, to->bytes, op->id);
}

om_status
om_exec_device_copy(struct device_run *d, const struct step *s, om_stream *stream)
{
	return om_exec_device_fail(d, copy_in_or_out(d, s, stream), s->op, "the copy cannot be started");
}

static om_status
enqueue(struct device_run *d, const struct step *s)
{
	const om_op *op = s->op;
	const struct device_op *o = &d->op[op->id];

	if (op->opdef->copies)
		return om_exec_device_copy(d, s, stream_of(d, op));
	for (uint32_t k = 0; o->nlaunch == 0 && k < op->nout; k++)
		OM_TRY(om_exec_device_fail(d, copy_view(d, op, k), op, "the copy cannot be started"));
	for (uint32_t k = 0; k < o->nlaunch; k++) {
		const struct device_launch *l = &o->launch[k];
		d->commands++;
		OM_TRY(om_exec_device_fail(d, d->ops->launch(stream_of(d, op), l->code, &l->grid, l->args, l->nargs, op->id), op,
			"its kernel cannot be started"));
	}
	return OM_OK;
}

om_status
om_exec_device_record(struct device_run *d, const om_op *op)
{
	om_event *done = d->op[op->id].done;

	return done ? om_exec_device_fail(d, d->ops->record(stream_of(d, op), done), op, "its end cannot be recorded") : OM_OK;
}

/* With a profile, or in a body, the host waits: there the memory of the host is used in every iteration.  With poison it
 * fills the memory of a copy that dies. */
om_status
om_exec_device_step(struct step *s)
{
	struct device_run *d = s->exec->device;
	const bool waits = s->exec->options.profile || s->exec->poison || (s->op->opdef->copies && s->op->block != s->exec->prog->first);

	OM_TRY(enqueue(d, s));
	OM_TRY(om_exec_device_record(d, s->op));
	return waits ? om_exec_device_sync(d, d->streams.op[s->op->id].stream, s->op) : OM_OK;
}

om_status
om_exec_device_finish(om_exec *e)
{
	if (!e->device)
		return OM_OK;
	e->device->is_moved = false;
	return sync_all(e->device, NULL);
}

/* ---- Poison: one stream, so that a fill is after the last reader. ---- */

om_status
om_exec_device_fill(om_exec *e, uint32_t arena, uint64_t from, uint64_t to)
{
	struct device_run *d = e->device;
	const om_device_status st = d->ops->fill(d->stream[0], d->arena[arena], from, to - from, POISON_LOW, 0);

	return om_exec_device_fail(d, st, NULL, "memory cannot be filled");
}

static om_status
check_guard(struct device_run *d, uint32_t arena, uint64_t at, const om_op *op)
{
	unsigned char got[GUARD_BYTES];

	for (uint64_t k = 0; k < d->exec->guard; k += sizeof got) {
		const om_device_status st = d->ops->download(d->stream[0], got, d->arena[arena], at + k, sizeof got, 0);
		OM_TRY(om_exec_device_fail(d, st, op, "guards cannot be read"));
		OM_TRY(om_exec_device_sync(d, 1, op));
		for (size_t i = 0; i < sizeof got; i++)
			if (got[i] != POISON_LOW)
				return om_op_fail(d->exec->session, OM_RUN, op, "it wrote outside of the arena %s", d->exec->plan->arena[arena].name);
	}
	return OM_OK;
}

om_status
om_exec_device_check(om_exec *e, const om_op *op)
{
	struct device_run *d = e->device;

	for (uint32_t k = 0; d && op->device && k < e->narena; k++) {
		if (!d->arena[k])
			continue;
		OM_TRY(check_guard(d, k, 0, op));
		OM_TRY(check_guard(d, k, e->guard + e->plan->arena[k].bytes, op));
	}
	return OM_OK;
}
