/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs of the caller that are in memory of the device.
 *
 * An input that the program copies to the device, or an output that it copies from there, is bound to memory that the caller has
 * on the device; then nothing crosses.  The value on the device is moved into that memory, with the parts that are views of it, and
 * the copy is left out.  Those that use it are ordered as for its place in the arena, by the same ops.  Where the plan has other
 * values in the same memory, views aside, or the memory is not aligned as places of the arena are, elements are copied on the device.
 *
 * Whatever moves, the arguments of launches follow, and captured commands are dropped. */
#include <config.h>

#include "base/guard.h"
#include "exec/device.h"
#include "ir/alias_roots.h"
#include "ir/steps.h"

struct device_binding {
	const om_op *copy;       /* from or to the host */
	const om_value *value;   /* on the device */
	bool has_others;         /* in the memory that the plan has for it */
	om_tensor tensor;        /* as the caller gave it */
	uint64_t bytes;
	om_mem mem;              /* 0: not bound */
	bool is_copied;          /* between this memory and the place of the value */
	struct device_binding *next;
};

/* ---- What can be bound. ---- */

static bool
is_copy(const om_exec *e, const om_op *op, om_copies which)
{
	return op && op->opdef && op->opdef->copies == which && op->block == e->prog->first && e->is_needed[op->id];
}

/* The one op that may copy a parameter to the device, or a result from there; NULL: there is none. */
static const om_op *
copy_of(const om_value *v)
{
	return v->def ? v->def : v->nuse == 1 ? v->first_use->op : NULL;
}

/* The binding of a parameter or result; NULL: it was never bound. */
static struct device_binding *
binding_of(const om_exec *e, const om_value *v)
{
	const om_op *copy = e->device && e->device->device ? copy_of(v) : NULL;

	return copy ? e->device->op[copy->id].binding : NULL;
}

/* The aliases of these kinds: each value from the one that it leads to. */
static om_alias_root *
roots_by(const om_exec *e, om_arena *mem, bool with_subbuffers)
{
	const uint32_t n = e->prog->nvalue;
	const om_alias **alias = om_aliases_by_value(e->plan, n, e->call);

	for (uint32_t k = 0; k < n; k++)
		if (alias[k] && alias[k]->kind != OM_ALIAS_VIEW && !(with_subbuffers && alias[k]->kind == OM_ALIAS_SUBBUFFER))
			alias[k] = NULL;
	return om_alias_roots(alias, n, mem);
}

const om_alias_root *
om_exec_device_whole(struct device_run *d)
{
	if (!d->whole)
		d->whole = roots_by(d->exec, d->exec->mem, true);
	return d->whole;
}

/* Is it a part of another value, or is one computed in its memory, after it? */
static bool
has_others(const om_exec *e, const om_value *v)
{
	const om_alias_root *viewed = roots_by(e, e->call, false);
	bool has = om_exec_device_whole(e->device)[v->id].value != v->id;

	for (uint32_t k = 0; e->plan && k < e->plan->nalias; k++)
		has |= e->plan->alias[k].kind != OM_ALIAS_VIEW && viewed[e->plan->alias[k].source].value == v->id;
	return has;
}

/* The binding of a copy, which is made for the first one. */
static struct device_binding *
make_binding(om_exec *e, const om_op *copy, const om_value *value)
{
	struct device_run *d = e->device;
	struct device_binding **b = &d->op[copy->id].binding;

	if (*b)
		return *b;
	*b = OM_NEW(e->mem, struct device_binding);
	**b = (struct device_binding){.copy = copy, .value = value, .has_others = has_others(e, value), .next = d->bindings};
	return d->bindings = *b;
}

/* Is the value, by another binding, in other memory of the caller already? */
static bool
is_elsewhere(const struct device_run *d, const struct device_binding *b)
{
	for (const struct device_binding *other = d->bindings; other; other = other->next)
		if (other != b && other->mem && !other->is_copied && other->value == b->value)
			return true;
	return false;
}

static bool
must_copy(const struct device_run *d, const struct device_binding *b, const om_tensor *t)
{
	const uint32_t align = d->info.align ? d->info.align : 1;

	return (uintptr_t)t->data % align || b->has_others || is_elsewhere(d, b);
}

/* ---- Moving. ---- */

/* Where a value is: in bound memory, as a part of another one that is, or where it was placed at first. */
static struct device_place
place_now(const struct device_run *d, const struct device_binding *const *moved, uint32_t id)
{
	const om_alias_root *whole = &d->whole[id];
	const struct device_binding *b = moved[whole->value];

	return b && d->planned[id].mem ? (struct device_place){b->mem, whole->offset, d->planned[id].bytes} : d->planned[id];
}

static void
move_arguments(struct device_run *d, const struct device_op *o)
{
	for (uint32_t k = 0; k < o->nlaunch; k++)
		for (uint32_t i = 0; i < o->launch[k].nargs; i++) {
			const struct device_operand *of = &o->launch[k].operand[i];
			if (!of->value || !o->launch[k].args[i].mem)
				continue;
			o->launch[k].args[i].mem = d->place[of->value->id].mem;
			o->launch[k].args[i].at = d->place[of->value->id].at + of->at;
		}
}

static bool
is_same_place(const struct device_place *a, const struct device_place *b)
{
	return a->mem == b->mem && a->at == b->at && a->bytes == b->bytes;
}

/* All places and arguments, as bindings are now.  What is copied from or to bound memory is outside of captures. */
static void
move_all(struct device_run *d)
{
	om_exec *e = d->exec;
	bool is_moved = false;
	const struct device_binding **moved = OM_NEWN(e->call, const struct device_binding *, e->prog->nvalue);

	for (const struct device_binding *b = d->bindings; b; b = b->next)
		if (b->mem && !b->is_copied)
			moved[b->value->id] = b;
	for (uint32_t k = 0; k < e->prog->nvalue; k++) {
		const struct device_place now = place_now(d, moved, k);
		is_moved |= !is_same_place(&now, &d->place[k]);
		d->place[k] = now;
	}
	for (uint32_t k = 0; k < e->prog->nop && is_moved; k++)
		move_arguments(d, &d->op[k]);
	if (is_moved)
		om_exec_device_forget(d);
}

/* ---- Binding. ---- */

static om_status
check_tensor(om_exec *e, const char *what, const om_value *v, const om_tensor *t, uint64_t *bytes)
{
	char want[256], got[256];

	if (!om_tensor_bytes(t->type, &t->shape, bytes) || t->splat || (*bytes && !t->data))
		return om_fail(e->session, OM_RUN, "%s %s: the tensor has no elements", what, v->name);
	if (t->type != v->type.elem || !om_shape_equal(&v->shape, &t->shape))
		return om_fail(e->session, OM_RUN, "%s %s must be %s %s, not %s %s", what, v->name, om_dtype_text(v->type.elem),
			om_shape_text(&v->shape, want, sizeof want), om_dtype_text(t->type), om_shape_text(&t->shape, got, sizeof got));
	const uint64_t size = om_dtype_bits(t->type) < 8 ? 1 : om_dtype_bits(t->type) / 8;
	if ((uintptr_t)t->data % size)
		return om_fail(e->session, OM_RUN, "%s %s: its memory on the device is not aligned for %s", what, v->name, om_dtype_text(t->type));
	return OM_OK;
}

static void
unbind(struct device_run *d, struct device_binding *b)
{
	const om_mem was = b->mem;

	if (!was)
		return;
	b->mem = 0;
	b->tensor = (om_tensor){0};
	move_all(d);
	d->ops->free(d->device, was);
}

/* The same memory again: only its contents are waited for, and captured commands stay. */
static om_status
bind_to(struct device_run *d, struct device_binding *b, const char *what, const om_value *v, const om_tensor *t, uint64_t bytes, void *stream)
{
	om_mem mem;

	OM_TRY(om_exec_device_fail(d, d->ops->bind(d->device, t->data, bytes, stream, &mem), NULL,
		om_printf(d->exec->call, "%s %s cannot be bound", what, v->name)));
	if (b->mem && b->tensor.data == t->data) {
		d->ops->free(d->device, mem);
		return OM_OK;
	}
	const om_mem was = b->mem;
	d->is_rebound = true;
	b->is_copied = must_copy(d, b, t);
	b->mem = mem;
	b->tensor = *t;
	b->bytes = bytes;
	move_all(d);
	if (was)
		d->ops->free(d->device, was);
	return OM_OK;
}

static om_status
bind_copy(om_exec *e, const om_op *copy, const om_value *value, const om_value *v, const om_tensor *t, void *stream)
{
	const char *what = value == copy->in[0] ? "output" : "input";
	struct device_binding *b = make_binding(e, copy, value);
	uint64_t bytes;

	if (e->device->op[copy->id].state)
		return om_fail(e->session, OM_USAGE, "%s %s is a state that stays on the device: it cannot be bound there", what, v->name);
	OM_TRY(check_tensor(e, what, v, t, &bytes));
	const om_status st = bytes ? bind_to(e->device, b, what, v, t, bytes, stream) : OM_OK;
	om_arena_clear(e->call);
	return st;
}

static om_status
check_device(const om_exec *e)
{
	if (!e->device || !e->device->device)
		return om_fail(e->session, OM_USAGE, "no op of the program runs on a device: memory of a device cannot be bound");
	if (!e->device->ops->bind)
		return om_fail(e->session, OM_UNSUPPORTED, "the device %s cannot use memory of the caller", e->device->name);
	return OM_OK;
}

/* An output that is computed in the memory of the input takes memory of the executor instead. */
static om_status
set_aside(om_exec *e, const om_value *v)
{
	uint64_t bytes;

	if (!e->is_spent[v->id] || om_exec_in_arena(e, v) || !om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		return OM_OK;
	OM_TRY(om_room_fit(e, &e->room[v->id], bytes, v->name));
	om_exec_move(e, v, e->room[v->id].data);
	return OM_OK;
}

/* An input that no op reads, or that has no elements: nothing is read there. */
static bool
is_not_read(const om_value *v)
{
	return v->nuse == 0 || (om_shape_is_known(&v->shape) && om_shape_count(&v->shape) == 0);
}

static om_status
input(om_exec *e, uint32_t k, const om_tensor *t, void *stream)
{
	uint64_t bytes;

	OM_TRY(check_device(e));
	if (k >= e->prog->first->nparam)
		return om_fail(e->session, OM_RUN, "the model has %u inputs, no input %u", e->prog->first->nparam, k);
	const om_value *v = e->prog->first->param[k];
	const om_op *copy = copy_of(v);
	if (is_not_read(v))
		OM_TRY(check_tensor(e, "input", v, t, &bytes));
	else if (!is_copy(e, copy, OM_COPIES_TO_DEVICE))
		return om_fail(e->session, OM_UNSUPPORTED, "input %s is read by the processor: it cannot be bound to memory of the device",
			v->name);
	else
		OM_TRY(bind_copy(e, copy, copy->out[0], v, t, stream));
	(void)om_exec_give(e, v, &(om_tensor){0});  /* what was given before is not read any more */
	OM_TRY(set_aside(e, v));
	e->is_bound[v->id] = true;
	e->is_used_up[v->id] = false;
	return OM_OK;
}

om_status
om_exec_device_input(om_exec *e, uint32_t k, const om_tensor *t, void *stream)
{
	OM_GUARDED(e->session, input(e, k, t, stream));
}

static om_status
output(om_exec *e, uint32_t k, const om_tensor *t, void *stream)
{
	OM_TRY(check_device(e));
	if (k >= e->prog->first->nresult)
		return om_fail(e->session, OM_RUN, "the model has %u outputs, no output %u", e->prog->first->nresult, k);
	const om_value *v = e->prog->first->result[k];
	if (!is_copy(e, v->def, OM_COPIES_TO_HOST) || v->nuse != 1)
		return om_fail(e->session, OM_UNSUPPORTED, "output %s is %s by the processor: it cannot be bound to memory of the device",
			v->name, is_copy(e, v->def, OM_COPIES_TO_HOST) ? "read" : "computed");
	return bind_copy(e, v->def, v->def->in[0], v, t, stream);
}

om_status
om_exec_device_output(om_exec *e, uint32_t k, const om_tensor *t, void *stream)
{
	OM_GUARDED(e->session, output(e, k, t, stream));
}

void
om_exec_device_unbind(om_exec *e, const om_value *v)
{
	struct device_binding *b = binding_of(e, v);

	if (b)
		unbind(e->device, b);
}

const om_tensor *
om_exec_device_result(const om_exec *e, const om_value *result)
{
	const struct device_binding *b = result->def ? binding_of(e, result) : NULL;

	return b && b->mem ? &b->tensor : NULL;
}

/* ---- Runs. ---- */

static const om_value *
bound_value(const struct device_binding *b)
{
	return b->copy->opdef->copies == OM_COPIES_TO_DEVICE ? b->copy->in[0] : b->copy->out[0];
}

static bool
overlap(const struct device_binding *a, const struct device_binding *b)
{
	const uintptr_t x = (uintptr_t)a->tensor.data, y = (uintptr_t)b->tensor.data;

	return x < y + b->bytes && y < x + a->bytes;
}

/* Has an output bytes of another binding? */
static om_status
check_output(const struct device_run *d, const struct device_binding *out)
{
	for (const struct device_binding *b = d->bindings; b; b = b->next)
		if (b != out && b->mem && overlap(out, b))
			return om_fail(d->exec->session, OM_RUN, "output %s: its memory on the device overlaps that of %s", bound_value(out)->name,
				bound_value(b)->name);
	return OM_OK;
}

om_status
om_exec_device_check_bindings(om_exec *e)
{
	struct device_run *d = e->device;

	if (!d || !d->device || !d->is_rebound)
		return OM_OK;
	for (const struct device_binding *b = d->bindings; b; b = b->next)
		if (b->mem && b->copy->opdef->copies == OM_COPIES_TO_HOST)
			OM_TRY(check_output(d, b));
	d->is_rebound = false;
	return OM_OK;
}

bool
om_exec_device_holds(const om_exec *e, const om_value *param)
{
	const struct device_binding *b = binding_of(e, param);

	return b && b->mem;
}

bool
om_exec_device_has(const struct device_run *d, const om_op *op)
{
	return d->op[op->id].binding && d->op[op->id].binding->mem;
}

om_device_status
om_exec_device_move(struct device_run *d, const om_op *op, om_stream *stream)
{
	const struct device_binding *b = d->op[op->id].binding;
	const struct device_place *at = &d->place[b->value->id];

	if (!b->is_copied)
		return OM_DEVICE_OK;
	return op->opdef->copies == OM_COPIES_TO_DEVICE ? d->ops->copy(stream, at->mem, at->at, b->mem, 0, b->bytes, op->id)
		: d->ops->copy(stream, b->mem, 0, at->mem, at->at, b->bytes, op->id);
}

void
om_exec_device_bindings_free(struct device_run *d)
{
	for (const struct device_binding *b = d->bindings; b; b = b->next)
		if (b->mem)
			d->ops->free(d->device, b->mem);
}
