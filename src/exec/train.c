/* SPDX-License-Identifier: Apache-2.0 */
/* Training: states and their update by a step.
 *
 * A state that the plan aliases is overwritten by the run itself.  Other states are results
 * in memory of the executor, and are copied after the run, when all states have been read. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "onnxmem/trainer.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "base/strided_copy.h"
#include "base/system.h"
#include "exec/exec_internal.h"

struct state {
	const char *name;
	om_tensor t;
	uint64_t bytes;
	uint32_t param, result;
	bool is_known;
	void *spare;             /* for its new elements, if a step has them in the memory of another state; NULL: none yet */
	const void *from;        /* what the last step made of it; NULL: nothing is to be copied */
};

struct om_trainer {
	om_session *session;
	om_arena *mem;
	struct state *state;
	uint32_t n;
	om_exec *keeper;         /* that ran the last step, and has states on a device; NULL: they are here */
};

/* ---- Roles of inputs and outputs. ---- */

static bool
hands_on(const om_prog *p, uint32_t result)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->io_alias[k].result == result)
			return true;
	return false;
}

static bool
may_be_loss(const om_prog *p, uint32_t k)
{
	const om_value *v = p->first->result[k];

	return !hands_on(p, k) && v->type.kind == OM_TENSOR && om_dtype_is_float(v->type.elem)
	    && (v->shape.rank == 0 || (om_shape_is_known(&v->shape) && om_shape_count(&v->shape) == 1));
}

static uint32_t
find_loss(const om_prog *p)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t k = p->first->nresult; k-- > 0;)
		if (may_be_loss(p, k)) {
			if (strcmp(p->first->result[k]->name, "loss") == 0)
				return k;
			found = k;
		}
	return found;
}

static om_status
step_find_guarded(om_session *s, const om_prog *p, om_arena *mem, om_step *out)
{
	const om_block *graph = p->first;

	*out = (om_step){.loss = find_loss(p), .rate = UINT32_MAX, .sample = OM_NEWN(mem, uint32_t, graph->nparam)};
	if (p->nio_alias == 0)
		return om_fail(s, OM_USAGE,
			"the model is not a training step: it does not declare which outputs are inputs of "
			"the next step (metadata entry org.onnxmem.io_alias)");
	if (out->loss == UINT32_MAX)
		return om_fail(s, OM_USAGE,
			"the model is not a training step: no output is a loss, a floating-point scalar that "
			"is not carried to an input");
	for (uint32_t k = 0; k < graph->nparam; k++) {
		if (om_prog_is_state(p, k))
			continue;
		if (strcmp(graph->param[k]->name, "lr") == 0)
			out->rate = k;
		else if (!graph->param[k]->data)
			out->sample[out->nsample++] = k;
	}
	return out->nsample ? OM_OK : om_fail(s, OM_USAGE, "the model has no sample inputs: all its inputs have defaults "
		"or are states");
}

om_status
om_step_find(om_session *s, const om_prog *p, om_arena *mem, om_step *out)
{
	OM_GUARDED(s, step_find_guarded(s, p, mem, out));
}

/* ---- States. ---- */

/* A splat is expanded. */
static void
set_state(struct state *st, const om_tensor *from)
{
	if (from->splat)
		om_fill_type(st->t.data, om_shape_count(&st->t.shape), from->type, from->data);
	else if (st->bytes)
		memcpy(st->t.data, from->data, st->bytes);
	st->is_known = true;
}

static om_status
new_state(om_trainer *t, const om_prog *p, const om_io_alias *alias)
{
	const om_value *v = p->first->param[alias->param];
	struct state *st = &t->state[t->n];
	char shape[256];

	*st = (struct state){.name = om_strdup(t->mem, v->name), .t = {.type = v->type.elem, .shape = v->shape},
		.param = alias->param, .result = alias->result};
	if (v->type.kind != OM_TENSOR || om_dtype_bits(v->type.elem) < 8 || v->type.elem == OM_STRING
	    || !om_tensor_bytes(v->type.elem, &v->shape, &st->bytes))
		return om_fail(t->session, OM_UNSUPPORTED,
			"%s %s %s is a state, which must be a numeric tensor of known shape", v->name, om_dtype_text(v->type.elem),
			om_shape_text(&v->shape, shape, sizeof shape));
	if (!(st->t.data = om_memory_aligned(64, (size_t)st->bytes)))
		return om_fail(t->session, OM_MEMORY, "cannot allocate %llu bytes for %s",
			(unsigned long long)st->bytes, v->name);
	memset(st->t.data, 0, st->bytes ? (size_t)st->bytes : 1);
	t->n++;
	if (v->data && v->data->data)
		set_state(st, v->data);
	return OM_OK;
}

static void
release(void *arg)
{
	om_trainer *t = arg;

	for (uint32_t k = 0; k < t->n; k++)
		om_aligned_free(t->state[k].t.data);
}

static om_status
trainer_new_guarded(om_session *s, const om_prog *p, om_trainer **out)
{
	om_arena *mem = om_arena_new();
	om_trainer *t = OM_NEW(mem, om_trainer);
	om_status st = OM_OK;

	t->mem = mem;
	t->session = s;
	om_arena_defer(mem, release, t);
	t->state = OM_NEWN(mem, struct state, (size_t)p->nio_alias + 1);
	for (uint32_t k = 0; k < p->nio_alias && st == OM_OK; k++)
		st = new_state(t, p, &p->io_alias[k]);
	*out = st == OM_OK ? t : NULL;
	if (st != OM_OK)
		om_trainer_free(t);
	return st;
}

om_status
om_trainer_new(om_session *s, const om_prog *p, om_trainer **out)
{
	*out = NULL;
	OM_GUARDED(s, trainer_new_guarded(s, p, out));
}

/* The states of a trainer are on the device of `e`, and of none if that is NULL. */
static void
set_keeper(om_trainer *t, om_exec *e)
{
	if (t->keeper)
		t->keeper->kept = NULL;
	t->keeper = e;
	if (e)
		e->kept = t;
}

void
om_trainer_free(om_trainer *t)
{
	if (!t)
		return;
	set_keeper(t, NULL);
	om_arena_free(t->mem);
}

const om_tensor *
om_trainer_state(const om_trainer *t, uint32_t k, const char **name)
{
	if (k >= t->n)
		return NULL;
	if (name)
		*name = t->state[k].name;
	return &t->state[k].t;
}

om_status
om_trainer_set(om_trainer *t, const char *name, const om_tensor *from)
{
	char want[256], got[256];

	for (uint32_t k = 0; k < t->n; k++) {
		struct state *st = &t->state[k];
		if (strcmp(st->name, name) != 0)
			continue;
		if (from->type != st->t.type || !om_shape_equal(&from->shape, &st->t.shape))
			return om_fail(t->session, OM_SHAPE,
				"%s is %s %s, expected %s %s", name, om_dtype_text(st->t.type),
				om_shape_text(&st->t.shape, want, sizeof want), om_dtype_text(from->type),
				om_shape_text(&from->shape, got, sizeof got));
		set_state(st, from);
		return t->keeper ? om_exec_input(t->keeper, st->param, &st->t) : OM_OK;
	}
	return om_fail(t->session, OM_USAGE, "the step has no state %s", name);
}

const char *
om_trainer_first_uninitialized(const om_trainer *t)
{
	for (uint32_t k = 0; k < t->n; k++)
		if (!t->state[k].is_known)
			return t->state[k].name;
	return NULL;
}

/* ---- Steps. ---- */

static om_status
bind_states(om_trainer *t, om_exec *e)
{
	for (uint32_t k = 0; k < t->n; k++)
		OM_TRY(om_exec_input(e, t->state[k].param, &t->state[k].t));
	return OM_OK;
}

om_status
om_trainer_bind(om_trainer *t, om_exec *e)
{
	OM_TRY(om_trainer_fetch(t));
	return bind_states(t, e);
}

/* Does memory lie in that of a state that is copied? */
static bool
is_in_state(const om_trainer *t, const void *data)
{
	for (uint32_t k = 0; k < t->n; k++)
		if (t->state[k].from && (uintptr_t)data - (uintptr_t)t->state[k].t.data < t->state[k].bytes)
			return true;
	return false;
}

/* A plan may have new elements where a state stays, elsewhere, or in the memory of another state: those are taken before any is
 * overwritten. */
static void
take_states(om_trainer *t, const om_exec *e)
{
	for (uint32_t k = 0; k < t->n; k++) {
		struct state *st = &t->state[k];
		const om_tensor *new = om_exec_result(e, st->result);
		st->from = new->data == st->t.data || st->bytes == 0 ? NULL : new->data;
	}
	for (uint32_t k = 0; k < t->n; k++) {
		struct state *st = &t->state[k];
		if (!st->from || !is_in_state(t, st->from))
			continue;
		if (!st->spare)
			st->spare = om_alloc(t->mem, st->bytes);
		st->from = memcpy(st->spare, st->from, st->bytes);
	}
}

om_status
om_trainer_fetch(om_trainer *t)
{
	return t->keeper ? om_exec_fetch_states(t->keeper) : OM_OK;
}

om_status
om_trainer_leave(om_trainer *t)
{
	const om_status st = om_trainer_fetch(t);

	set_keeper(t, NULL);
	return st;
}

/* An executor that did not run the last step has other states on its device. */
static om_status
change_exec(om_trainer *t, om_exec *e)
{
	if (t->keeper == e)
		return OM_OK;
	OM_TRY(om_trainer_leave(t));
	if (!e->device || !e->options.keep_states)
		return OM_OK;
	if (e->kept)
		OM_TRY(om_trainer_leave(e->kept));
	set_keeper(t, e);
	return bind_states(t, e);
}

static om_status
trainer_step_guarded(om_trainer *t, om_exec *e, uint64_t *copied)
{
	OM_TRY(change_exec(t, e));
	OM_TRY(om_exec_run(e));
	take_states(t, e);
	for (uint32_t k = 0; k < t->n; k++) {
		struct state *st = &t->state[k];
		if (!st->from)
			continue;
		memcpy(st->t.data, st->from, st->bytes);
		*copied += st->bytes;
		/* An output may have been computed in its memory, so that it counts as lost. */
		OM_TRY(om_exec_input(e, st->param, &st->t));
	}
	return OM_OK;
}

om_status
om_trainer_step(om_trainer *t, om_exec *e, uint64_t *copied)
{
	OM_GUARDED(t->session, trainer_step_guarded(t, e, copied));
}
