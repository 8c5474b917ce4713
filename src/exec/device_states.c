/* SPDX-License-Identifier: Apache-2.0 */
/* States that stay on a device between runs.
 *
 * A state is a parameter that a result replaces in the next run.  Where the program copies the parameter to the device, and the
 * plan computes what replaces it over that copy, nothing else may use their bytes: then the copy to the device is needed only
 * after the caller gave new elements, and the copy back only when the caller asks for them.  A plan that was made with
 * om_plan_request.keep_states has nothing else there.  If another plan has, these values, those between them, and their views get
 * memory outside of the arena; what that plan has there afterwards is not moved.  The order that streams keep for the bytes in the
 * arena is right for that memory, too.  States that are not replaced in place are copied in every run. */
#include <config.h>

#include "base/guard.h"
#include "exec/device.h"
#include "ir/alias_roots.h"
#include "ir/query.h"
#include "opdef/op_context.h"

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
	const om_op *in, *out;

	if (!om_state_copies(e->prog, io, &in, &out) || !e->is_needed[in->id] || !e->is_needed[out->id]
	    || !om_exec_in_arena(e, in->out[0]) || alias[in->out[0]->id] || !is_replaced(e, param, result) || !is_over(e, alias, out->in[0], in->out[0]))
		return false;
	*to = (struct device_state){.param = param, .in = in, .out = out};
	return true;
}

/* ---- Where a state is. ---- */

/* By value id: the copy, what replaces it, all between them, and their parts, as ops that make views find them there. */
static const bool *
values_of(struct device_run *d, const om_alias *const *alias, const struct device_state *s)
{
	const om_exec *e = d->exec;
	const om_alias_root *whole = om_exec_device_whole(d);
	const om_value *copy = s->in->out[0];
	bool *is_of = OM_NEWN(e->call, bool, e->prog->nvalue);

	for (const om_value *v = s->out->in[0]; v; v = v == copy ? NULL : below(e, alias, v))
		is_of[v->id] = true;
	for (uint32_t k = 0; k < e->prog->nvalue; k++)
		is_of[k] |= d->place[k].mem && is_of[whole[k].value];
	return is_of;
}

static bool
overlap(uint64_t from, uint64_t bytes, const struct device_place *p)
{
	return from < p->at + p->bytes && p->at < from + bytes;
}

/* Does nothing else have bytes of the state, at any time of the run?  So the plan was made to keep states.  Poison fills the memory of
 * what replaces it at the end of the run. */
static bool
is_alone(const struct device_run *d, const bool *is_of, const struct device_state *s)
{
	const om_exec *e = d->exec;
	const struct device_place *at = &d->place[s->in->out[0]->id];

	for (uint32_t k = 0; k < e->prog->nvalue; k++)
		if (!is_of[k] && d->place[k].mem == at->mem && overlap(d->place[k].at, d->place[k].bytes, at))
			return false;
	for (uint32_t k = 0; e->order[k]; k++) {
		const om_scratch *scratch = e->scratch[e->order[k]->id];
		if (scratch && d->arena[scratch->arena] == at->mem && overlap(e->guard + scratch->offset, scratch->bytes, at))
			return false;
	}
	return !e->options.poison;
}

static om_status
move_away(struct device_run *d, const bool *is_of, const struct device_state *s)
{
	const om_value *copy = s->in->out[0];
	const uint64_t base = d->place[copy->id].at;
	om_mem *own = &d->own[copy->id];

	OM_TRY(om_exec_device_memory(d, om_value_bytes(copy), s->param->name, own));
	for (uint32_t k = 0; k < d->exec->prog->nvalue; k++)
		if (is_of[k])
			d->place[k] = (struct device_place){*own, d->place[k].at - base, d->place[k].bytes};
	return OM_OK;
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
		const bool *is_of = values_of(d, alias, s);
		if (!is_alone(d, is_of, s))
			OM_TRY(move_away(d, is_of, s));
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
