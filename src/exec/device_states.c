/* SPDX-License-Identifier: Apache-2.0 */
/* States that stay on a device between runs.
 *
 * A state is a parameter that a result replaces in the next run.  Where the program copies the parameter to the device, and the
 * plan computes what replaces it over that copy, both are in memory of their own, which nothing else uses: then the copy to
 * the device is needed only after the caller gave new elements, and the copy back only when the caller asks for them.  The
 * plan has these values, and those between them, in the same bytes of its arena, so that the order that streams keep for
 * those is right for this memory.  Their views are moved with them.  What the plan has there afterwards is not moved: it would
 * overwrite the state.  States for which this does not hold are copied in every run. */
#include <config.h>

#include "base/guard.h"
#include "exec/device.h"
#include "ir/alias_roots.h"
#include "ir/query.h"
#include "opdef/op_context.h"

/* The only op that reads the parameter, if that copies it to the device. */
static const om_op *
copy_of(const om_exec *e, const om_value *param)
{
	const om_op *op = param->nuse == 1 ? param->first_use->op : NULL;

	return op && op->opdef && op->opdef->copies == OM_COPIES_TO_DEVICE && op->block == e->prog->first && e->is_needed[op->id] ? op : NULL;
}

/* The op that computes the result, if that copies it to the host, and nothing else reads it there. */
static const om_op *
copy_from(const om_exec *e, const om_value *result)
{
	const om_op *op = result->def;

	return op && result->nuse == 1 && op->opdef && op->opdef->copies == OM_COPIES_TO_HOST && op->block == e->prog->first
	    && e->is_needed[op->id] ? op : NULL;
}

/* The value over which the plan has another one, all of it; NULL: there is none. */
static const om_value *
below(const om_exec *e, const om_alias *const *alias, const om_value *v)
{
	const om_alias *a = alias[v->id];
	const om_value *from = a && a->offset == 0 ? e->prog->values[a->source] : NULL;

	return from && om_value_bytes(from) == om_value_bytes(v) ? from : NULL;
}

/* Is `v` computed over `copy`, through values that are computed over each other? */
static bool
is_over(const om_exec *e, const om_alias *const *alias, const om_value *v, const om_value *copy)
{
	for (uint32_t hops = 0; v && v != copy && hops <= e->prog->nvalue; hops++)
		v = below(e, alias, v);
	return v == copy;
}

/* Does the run itself write the result where the parameter is, in memory of the caller? */
static bool
is_replaced(const om_exec *e, const om_value *param, const om_value *result)
{
	return e->is_tied[result->id] && e->root[result->id] == param && e->offset[result->id] == 0 && !om_exec_in_arena(e, param);
}

static bool
find_state(const struct device_run *d, const om_alias *const *alias, const om_io_alias *io, struct device_state *to)
{
	const om_exec *e = d->exec;
	const om_value *param = e->prog->first->param[io->param], *result = e->prog->first->result[io->result];
	const om_op *in = copy_of(e, param), *out = copy_from(e, result);

	if (!in || !out || io->rows_after || !om_exec_in_arena(e, in->out[0]) || alias[in->out[0]->id]
	    || !is_replaced(e, param, result) || !is_over(e, alias, out->in[0], in->out[0]))
		return false;
	*to = (struct device_state){.param = param, .in = in, .out = out};
	return true;
}

/* A part of a value in memory of the state, as ops that make views find it there, is there too. */
static void
move_part(struct device_run *d, const om_alias *const *alias, om_mem mem, const om_value *part)
{
	struct device_place *to = &d->place[part->id];
	const om_alias *a = alias[part->id];
	uint32_t whole = part->id;
	uint64_t at = 0;

	for (; a && (a->kind == OM_ALIAS_VIEW || a->kind == OM_ALIAS_SUBBUFFER) && d->place[whole].mem != mem; a = alias[whole]) {
		at += a->offset;
		whole = a->source;
	}
	if (to->mem && whole != part->id && d->place[whole].mem == mem)
		*to = (struct device_place){mem, d->place[whole].at + at, to->bytes};
}

/* The copy, what replaces it, all between them, and their parts are in memory of the state. */
static void
move_values(struct device_run *d, const om_alias *const *alias, om_mem mem, const struct device_state *s)
{
	const om_prog *p = d->exec->prog;
	const om_value *copy = s->in->out[0];

	for (const om_value *v = s->out->in[0]; v; v = v == copy ? NULL : below(d->exec, alias, v))
		d->place[v->id] = (struct device_place){mem, 0, d->place[v->id].bytes};
	for (uint32_t k = 0; k < p->nvalue; k++)
		move_part(d, alias, mem, p->values[k]);
}

om_status
om_exec_device_states(om_exec *e)
{
	struct device_run *d = e->device;
	const om_plan *plan = e->plan;
	const om_prog *p = e->prog;

	if (!plan || !e->options.keep_states)
		return OM_OK;
	const om_alias *const *alias = om_aliases_by_value(plan, p->nvalue, e->call);
	d->state = OM_NEWN(e->mem, struct device_state, p->nio_alias);
	for (uint32_t k = 0; k < p->nio_alias; k++) {
		struct device_state *s = &d->state[d->nstate];
		if (!find_state(d, alias, &p->io_alias[k], s))
			continue;
		const om_value *copy = s->in->out[0];
		OM_TRY(om_exec_device_memory(d, om_value_bytes(copy), s->param->name, &d->own[copy->id]));
		move_values(d, alias, d->own[copy->id], s);
		d->op[s->in->id].state = d->op[s->out->id].state = s;
		d->nstate++;
	}
	om_arena_clear(e->call);
	return OM_OK;
}

void
om_exec_device_given(om_exec *e, const om_value *param)
{
	struct device_run *d = e->device;

	for (uint32_t k = 0; d && k < d->nstate; k++)
		if (d->state[k].param == param)
			d->state[k].is_there = false;
}

static om_status
fetch(struct device_run *d, const struct device_state *s)
{
	const struct device_place *from = &d->place[s->in->out[0]->id];
	void *to = d->exec->slot[s->param->id].data;

	if (!s->is_there)
		return OM_OK;
	d->exec->stats.transferred_bytes += from->bytes;
	return om_exec_device_fail(d, d->ops->download(d->stream[0], to, from->mem, from->at, from->bytes, s->out->id), s->out,
		"a state cannot be copied from it");
}

static om_status
fetch_states(om_exec *e)
{
	struct device_run *d = e->device;

	for (uint32_t k = 0; d && k < d->nstate; k++)
		OM_TRY(fetch(d, &d->state[k]));
	return d && d->nstate ? om_exec_device_finish(e) : OM_OK;
}

om_status
om_exec_fetch_states(om_exec *e)
{
	OM_GUARDED(e->session, fetch_states(e));
}
