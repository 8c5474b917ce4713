/* SPDX-License-Identifier: Apache-2.0 */
/* Public interface of the executor: construction, binding of the caller's memory, runs. */
#include <config.h>

#include <unistd.h>

#include "base/arena_internal.h"
#include "base/guard.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "exec/device.h"
#include "exec/exec_internal.h"
#include "exec/runnable.h"
#include "exec/worker_streams.h"
#include "ir/binding.h"
#include "ir/type.h"
#include "kernels/cpu/kernels.h"
#include "onnxmem/comm.h"
#include "opdef/kernel_call.h"
#include "opdef/transfers.h"

static uint32_t
list_ops(om_op **order, uint32_t n, const om_block *b)
{
	for (om_op *op = b->first; op; op = op->next) {
		order[n++] = op;
		for (uint32_t k = 0; k < op->nbody; k++)
			n = list_ops(order, n, op->body[k]);
	}
	return n;
}

/* Must match the numbering of om_timeline(). */
static uint32_t
number_steps(om_exec *e, const om_block *b, uint32_t step)
{
	for (const om_op *op = b->first; op; op = op->next) {
		e->first_step[op->id] = step++;
		for (uint32_t k = 0; k < op->nbody; k++)
			step = number_steps(e, op->body[k], step);
		e->last_step[op->id] = op->nbody ? step++ : e->first_step[op->id];
	}
	e->body_end[b->id] = step++;
	return step;
}

/* Results of bodies count as needed; whether a body runs depends on the op that owns it. */
static void
find_needed(om_exec *e, uint32_t nop)
{
	bool *wanted = OM_NEWN(e->mem, bool, e->prog->nvalue);

	for (const om_block *b = e->prog->first; b; b = b->next)
		for (uint32_t k = 0; k < b->nresult; k++)
			wanted[b->result[k]->id] = true;
	for (uint32_t k = nop; k-- > 0;) {
		const om_op *op = e->order[k];
		bool any = op->opdef && op->opdef->flags & OM_EFFECT;
		for (uint32_t o = 0; o < op->nout; o++)
			any |= op->out[o] && wanted[op->out[o]->id];
		for (uint32_t i = 0; any && i < op->nin; i++)
			if (op->in[i])
				wanted[op->in[i]->id] = true;
		e->is_needed[op->id] = any;
	}
}

static void
free_steps(om_exec *e)
{
	for (uint32_t b = 0; e->walk && b < e->prog->nblock; b++)
		for (uint32_t k = 0; k < e->walk[b].n; k++)
			om_step_free(&e->walk[b].step[k]);
}

/* Free everything except the arena that contains the executor itself. */
static void
release(void *arg)
{
	om_exec *e = arg;

	om_exec_device_free(e);
	om_exec_streams_free(e);
	free_steps(e);
	om_room_free(e, &e->workspace);
	om_room_free(e, &e->aside);
	if (e->cache.map)
		om_weight_cache_close(&e->cache);
	else
		om_room_free(e, &e->weights);
	for (uint32_t k = 0; k < e->narena; k++)
		om_room_free(e, &e->arena[k]);
	for (uint32_t k = 0; k < e->prog->nvalue; k++)
		om_room_free(e, &e->room[k]);
	for (uint32_t k = 0; k < e->prog->first->nresult; k++)
		om_room_free(e, &e->spill[k]);
	om_arena_free(e->call);
	om_objects_free(e);
	om_workers_free(e->pool);
	om_kernel_registry_free(e->registry);
}

static uint64_t
physical_memory(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	uint64_t bytes;

	return pages > 0 && size > 0 && !__builtin_mul_overflow((uint64_t)pages, (uint64_t)size, &bytes) ? bytes : UINT64_MAX;
}

static void
set_limits(om_exec *e, const om_exec_options *o)
{
	enum { ITERATIONS = 1000000000 };

	e->options = *o;
	if (!o->max_memory)
		e->options.max_memory = physical_memory();
	if (!o->max_iterations)
		e->options.max_iterations = ITERATIONS;
	e->budget.left = e->options.max_memory;
	om_arena_limit(e->call, &e->budget);
	om_arena_limit(e->keep, &e->budget);
	om_arena_limit(e->spare, &e->budget);
	for (uint32_t k = 0; k < e->nparked; k++)
		om_arena_limit(e->parked[k], &e->budget);
}

static om_exec *
new_exec(om_session *s, const om_prog *p, const om_plan *plan, const om_exec_options *o)
{
	om_arena *mem = om_arena_new();
	om_exec *e = OM_NEW(mem, om_exec);

	e->mem = mem;
	e->session = s;
	e->prog = p;
	e->room = OM_NEWN(mem, struct room, p->nvalue);
	e->spill = OM_NEWN(mem, struct room, p->first->nresult);
	om_arena_defer(mem, release, e);
	e->call = om_arena_new();
	om_objects_new(e);
	set_limits(e, o);
	e->plan = e->options.no_reuse ? NULL : plan;
	e->order = OM_NEWN(mem, om_op *, (size_t)p->nop + 1);
	e->is_needed = OM_NEWN(mem, bool, p->nop);
	find_needed(e, list_ops(e->order, 0, p->first));
	e->first_step = OM_NEWN(mem, uint32_t, p->nop);
	e->last_step = OM_NEWN(mem, uint32_t, p->nop);
	e->body_end = OM_NEWN(mem, uint32_t, p->nblock);
	e->nstep = number_steps(e, p->first, 0);
	e->slot = OM_NEWN(mem, om_tensor, p->nvalue);
	e->is_fixed = OM_NEWN(mem, bool, p->nvalue);
	e->is_skipped = OM_NEWN(mem, bool, p->nvalue);
	e->is_tied = OM_NEWN(mem, bool, p->nvalue);
	e->is_spent = OM_NEWN(mem, bool, p->nvalue);
	e->is_consumed = OM_NEWN(mem, bool, p->nvalue);
	e->is_used_up = OM_NEWN(mem, bool, p->nvalue);
	e->is_bound = OM_NEWN(mem, bool, p->nvalue);
	e->view = OM_NEWN(mem, const om_plan_multi_view *, p->nvalue);
	e->root = OM_NEWN(mem, om_value *, p->nvalue);
	e->offset = OM_NEWN(mem, uint64_t, p->nvalue);
	e->uses = OM_NEWN(mem, struct uses, p->nvalue);
	e->bound = OM_NEWN(mem, struct room, p->first->nresult);
	e->result = OM_NEWN(mem, om_tensor, p->first->nresult);
	if (e->options.profile)
		e->stats.op = e->profile = OM_NEWN(mem, om_exec_op, p->nop);
	return e;
}

/* Without reuse too, addresses are aligned as planned.  The guard size is a multiple of the alignment, so that planned offsets stay aligned. */
static void
find_align(om_exec *e)
{
	const om_plan *plan = e->plan ? e->plan : e->prog->plan;

	e->align = OM_ROOM_ALIGN;
	for (uint32_t k = 0; plan && k < plan->narena; k++)
		if (plan->arena[k].align > e->align)
			e->align = plan->arena[k].align;
	e->guard = e->align > OM_GUARD ? e->align : OM_GUARD;
	if (e->options.arena)
		e->guard = 0;  /* what is beside a lent arena is not ours */
}

static om_status
build(om_exec *e)
{
	find_align(e);
	OM_TRY(om_threads(e->session, e->options.threads, &e->nworker));
	OM_TRY(om_exec_device_open(e));
	OM_TRY(om_exec_place(e));
	om_exec_find_inputs(e);
	OM_TRY(om_exec_steps(e));
	OM_TRY(om_exec_weights(e));
	OM_TRY(om_exec_streams_new(e));
	OM_TRY(om_exec_prepare(e));
	OM_TRY(om_exec_streams_prepare(e));
	OM_TRY(om_exec_device_prepare(e));
	if (e->options.poison && e->plan)
		om_poison_new(e);
	return OM_OK;
}

const char *
om_isa(om_session *s)
{
	return om_kernels_isa(s);
}

static om_status
exec_new_guarded(om_session *s, const om_prog *p, const om_plan *plan, const om_exec_options *o, om_exec **out)
{
	const unsigned required = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST;
	om_exec_options options = OM_EXEC_OPTIONS();

	*out = NULL;
	if ((p->has & required) != required)
		return om_fail(s, OM_USAGE, 
			"run the passes inline, shapes and fold before the program is executed");
	if (o)
		OM_TRY(om_options_read(s, "om_exec_options", "OM_EXEC_OPTIONS()", &options, sizeof options, sizeof options, o));
	if (!plan && !options.no_reuse)
		return om_fail(s, OM_USAGE, "execution requires a plan, or no reuse");
	if (!om_kernels_isa(s))
		return OM_USAGE;
	OM_TRY(om_prog_is_runnable(s, p));
	om_exec *e = new_exec(s, p, plan, &options);
	om_status st = e->plan ? om_plan_verify(s, p, e->plan) : om_transfers_check(s, p);
	if (st == OM_OK && options.kernels)
		st = om_kernel_register(s, e->registry = om_kernel_registry_new(), options.kernels);
	if (st == OM_OK)
		st = build(e);
	if (st == OM_OK)
		*out = e;
	else
		om_exec_free(e);
	return st;
}

om_status
om_exec_new(om_session *s, const om_prog *p, const om_plan *plan, const om_exec_options *o, om_exec **out)
{
	*out = NULL;
	OM_GUARDED(s, exec_new_guarded(s, p, plan, o, out));
}

void
om_exec_free(om_exec *e)
{
	if (!e)
		return;
	/* If the device fails, the trainer goes on with the states that it has. */
	if (e->kept)
		(void)om_trainer_leave(e->kept);
	om_arena_free(e->mem);
}

/* ---- Binding. ---- */

static bool
fits(const om_tensor *t, const om_value *v)
{
	return (v->type.elem == OM_UNDEFINED || t->type == v->type.elem) && om_shape_agree(&v->shape, &t->shape);
}

static om_status
input_object(om_exec *e, const om_value *v, const om_tensor *t)
{
	if (!om_container_fits(t, &v->type))
		return om_fail(e->session, OM_RUN, "input %s requires a %s of another type", v->name,
			om_kind_text(v->type.kind));
	e->is_bound[v->id] = true;
	return om_value_put(e, e->prog->values[v->id], t);
}

om_status
om_exec_input(om_exec *e, uint32_t k, const om_tensor *t)
{
	char want[256], got[256];
	uint64_t bytes;

	if (k >= e->prog->first->nparam)
		return om_fail(e->session, OM_RUN, "the model has %u inputs, no input %u",
			e->prog->first->nparam, k);
	const om_value *v = e->prog->first->param[k];
	if (v->type.kind != OM_TENSOR)
		return input_object(e, v, t);
	if (!om_tensor_bytes(t->type, &t->shape, &bytes) || t->splat || (bytes && !t->data))
		return om_fail(e->session, OM_RUN, "input %s: the tensor has no elements", v->name);
	if (!fits(t, v))
		return om_fail(e->session, OM_RUN, "input %s must be %s %s, not %s %s", v->name,
			om_dtype_text(v->type.elem), om_shape_text(&v->shape, want, sizeof want),
			om_dtype_text(t->type), om_shape_text(&t->shape, got, sizeof got));
	if (om_input_is_fixed(v))
		return om_tensor_same(t, v->data) ? OM_OK
			: om_fail(e->session, OM_BADPLAN, "input %s has another value than the one that the plan is for", v->name);
	e->slot[v->id].type = t->type;
	e->slot[v->id].shape = t->shape;
	e->slot[v->id].splat = false;
	om_exec_device_unbind(e, v);
	if (!om_exec_give(e, v, t))
		om_exec_move(e, v, t->data);
	e->is_bound[v->id] = true;
	e->is_used_up[v->id] = false;
	om_exec_device_given(e, v);
	return OM_OK;
}

om_status
om_exec_output(om_exec *e, uint32_t k, void *data, uint64_t bytes)
{
	uint64_t want;

	if (k >= e->prog->first->nresult)
		return om_fail(e->session, OM_RUN, "the model has %u outputs, no output %u",
			e->prog->first->nresult, k);
	const om_value *v = e->prog->first->result[k];
	if (data && e->is_fixed[v->id] && om_tensor_bytes(v->type.elem, &v->shape, &want) && bytes < want)
		return om_fail(e->session, OM_RUN, "output %s requires %llu bytes, not %llu", v->name,
			(unsigned long long)want, (unsigned long long)bytes);
	om_exec_device_unbind(e, v);
	e->bound[k] = (struct room){data, bytes};
	return OM_OK;
}

/* ---- Running. ---- */

/* Is result `k` computed directly in its final memory?  False for inputs, constants, aliases,
 * values in an arena, and repeated results. */
static bool
is_direct(const om_exec *e, uint32_t k)
{
	const om_block *graph = e->prog->first;
	const om_value *v = graph->result[k];

	if (!v->def || v->is_const || e->root[v->id] != v)
		return false;
	if (om_exec_in_arena(e, v))
		return false;
	for (uint32_t i = 0; i < k; i++)
		if (graph->result[i] == v)
			return false;
	return true;
}

static om_status
place_result(om_exec *e, uint32_t k)
{
	const om_value *v = e->prog->first->result[k];
	const om_tensor *t = &e->slot[v->id];
	uint64_t bytes;

	if (!is_direct(e, k) || !e->is_fixed[v->id] || om_exec_device_result(e, v))
		return OM_OK;
	om_tensor_bytes(t->type, &t->shape, &bytes);
	if (!e->bound[k].data)
		OM_TRY(om_room_fit(e, &e->room[v->id], bytes, v->name));
	void *data = e->bound[k].data ? e->bound[k].data : e->room[v->id].data;
	if (t->data != data)
		om_exec_move(e, v, data);
	return OM_OK;
}

static om_status
take_result(om_exec *e, uint32_t k)
{
	const om_value *v = e->prog->first->result[k];
	const om_tensor *t = &e->slot[v->id];
	void *data = e->bound[k].data;
	uint64_t bytes;

	const om_tensor *there = om_exec_device_result(e, v);
	e->result[k] = there ? *there : *t;
	if (there)
		return OM_OK;
	if (v->type.kind != OM_TENSOR && t->data && !data)
		return OM_OK;
	if (v->type.kind != OM_TENSOR)
		return om_fail(e->session, OM_RUN, data ? "output %s is not a tensor and cannot be bound"
			: "output %s was not computed", v->name);
	if ((e->is_tied[v->id] || om_exec_in_arena(e, v)) && !data)  /* it stays there until the next run */
		return OM_OK;
	if (is_direct(e, k) && (!data || e->is_fixed[v->id]))
		return OM_OK;
	if (!om_tensor_bytes(t->type, &t->shape, &bytes))
		return om_fail(e->session, OM_RUN, "output %s was not computed", v->name);
	if (data && e->bound[k].cap < bytes)
		return om_fail(e->session, OM_RUN, 
			"output %s requires %llu bytes in this run, more than the %llu bound", v->name, (unsigned long long)bytes, (unsigned long long)e->bound[k].cap);
	if (!data) {
		OM_TRY(om_room_fit(e, &e->spill[k], bytes, v->name));
		data = e->spill[k].data;
	}
	om_elements_copy(data, t, bytes);
	e->result[k].data = data;
	e->result[k].splat = false;
	return OM_OK;
}

/* A result overwrites this default, so every run starts from a copy of it. */
static om_status
copy_default(om_exec *e, const om_value *v)
{
	uint64_t bytes;

	om_tensor_bytes(v->type.elem, &v->shape, &bytes);
	OM_TRY(om_room_fit(e, &e->room[v->id], bytes, v->name));
	om_elements_copy(e->room[v->id].data, v->data, bytes);
	e->slot[v->id].splat = false;
	if (e->slot[v->id].data != e->room[v->id].data)
		om_exec_move(e, v, e->room[v->id].data);
	return OM_OK;
}

static om_status
check_inputs(om_exec *e)
{
	const om_block *graph = e->prog->first;

	for (uint32_t k = 0; k < graph->nparam; k++) {
		const om_value *v = graph->param[k];
		if (!e->is_bound[v->id] && !v->data)
			return om_fail(e->session, OM_RUN, "input %s has no value", v->name);
		if (e->is_used_up[v->id])
			return om_fail(e->session, OM_RUN, "input %s has to be given again: the last run computed an output in its memory",
				v->name);
		if (!e->is_bound[v->id] && e->is_spent[v->id])
			OM_TRY(copy_default(e, v));
	}
	return OM_OK;
}

/* From here on the memory of the caller may have other elements.  What is in an arena is copied there in every run. */
static void
use_up_inputs(om_exec *e)
{
	const om_block *graph = e->prog->first;

	for (uint32_t k = 0; k < graph->nparam; k++) {
		const om_value *v = graph->param[k];
		e->is_used_up[v->id] = e->is_consumed[v->id] && e->is_bound[v->id] && !om_exec_in_arena(e, v) && !om_exec_device_holds(e, v);
	}
}

static om_status
exec_run_guarded(om_exec *e)
{
	const om_block *graph = e->prog->first;

	OM_TRY(check_inputs(e));
	OM_TRY(om_exec_device_check_bindings(e));
	om_arena_clear(e->call);  /* a failed run may have left allocations */
	om_objects_start(e);
	for (uint32_t k = 0; k < graph->nresult; k++)
		OM_TRY(place_result(e, k));
	e->stats.copied_bytes = 0;
	e->stats.steps = 0;
	e->iterations = 0;
	OM_TRY(om_exec_save_inputs(e));
	if (e->poison)
		OM_TRY(om_poison_start(e));
	om_exec_load_inputs(e);
	use_up_inputs(e);
	OM_TRY(om_exec_streams_run(e));
	OM_TRY(om_exec_device_finish(e));
	for (uint32_t k = 0; k < graph->nresult; k++)
		OM_TRY(take_result(e, k));
	om_objects_count(e);
	e->stats.runs++;
	return OM_OK;
}

static om_status
exec_run(om_exec *e)
{
	OM_GUARDED(e->session, exec_run_guarded(e));
}

om_status
om_exec_run(om_exec *e)
{
	e->budget.is_exceeded = false;
	const om_status st = exec_run(e);
	if (st != OM_OK) {
		om_comm_cancel(e->options.comm);
		om_exec_device_stop(e);
	}
	if (st != OM_MEMORY || !e->budget.is_exceeded)
		return st;
	return om_fail(e->session, OM_MEMORY, "the temporary memory of kernels, strings and objects would exceed the memory "
		"limit of %llu bytes", (unsigned long long)e->options.max_memory);
}

const om_tensor *
om_exec_result(const om_exec *e, uint32_t k)
{
	return &e->result[k];
}

const om_exec_stats *
om_exec_get_stats(const om_exec *e)
{
	return &e->stats;
}
