/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: one op of a run. */
#include <config.h>


#include "base/clock.h"
#include "base/arena_internal.h"
#include "base/parallel.h"
#include "base/shape.h"
#include "exec/device.h"
#include "exec/exec_internal.h"
#include "exec/worker_streams.h"
#include "ir/type.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"

/* Symbols are not copied; they are not used in runs. */
static void
copy_tensor(om_tensor *to, const om_tensor *from)
{
	to->type = from->type;
	to->data = from->data;
	to->splat = from->splat;
	to->shape.rank = from->shape.rank;
	for (int d = 0; d < from->shape.rank; d++)
		to->shape.dim[d] = from->shape.dim[d];
}

void
om_step_look(struct step *s)
{
	for (uint32_t k = 0; k < s->op->nin; k++)
		if (s->op->in[k])
			copy_tensor(&s->in[k], &s->exec->slot[s->op->in[k]->id]);
}

static struct room *
workspace_of(const struct step *s)
{
	return s->lane ? &s->lane->workspace : &s->exec->workspace;
}

/* Results must not depend on the initial contents of scratch, so poison mode fills it. */
static void
use_workspace(struct step *s)
{
	s->call.scratch = workspace_of(s)->data;
	if (s->exec->options.poison)
		om_poison_fill(s->call.scratch, s->scratch);
}

/* ---- Preparing. ---- */

static bool
is_constant(const om_value *v)
{
	return v->is_const && !v->is_overridable;
}

/* Only the elements of constants remain visible.  Returns the elements of all inputs, for show_elements(). */
static void **
hide_elements(struct step *s)
{
	void **data = OM_NEWN(s->exec->call, void *, s->op->nin);

	for (uint32_t k = 0; k < s->op->nin; k++) {
		data[k] = s->in[k].data;
		if (s->op->in[k] && !is_constant(s->op->in[k]))
			s->in[k].data = NULL;
	}
	return data;
}

static void
show_elements(struct step *s, void *const *data)
{
	for (uint32_t k = 0; k < s->op->nin; k++)
		s->in[k].data = data[k];
}

void
om_exec_workers(om_exec *e, om_op_context *c)
{
	om_op_context_workers(c, e->nworker, e->options.precise);
	if (c->workers > 1 && !e->pool) {
		e->pool = om_workers_new(e->nworker);
		e->nworker = c->workers = om_worker_count(e->pool);
	}
	c->pool = c->workers > 1 ? e->pool : NULL;
}

/* Select and prepare the kernel. */
static om_status
bind_kernel(struct step *s, om_arena *mem)
{
	om_op_context *c = &s->call;
	void **data = hide_elements(s);

	c->mem = mem;
	om_exec_workers(s->exec, c);
	const om_status st = om_kernel_bind(c, s->exec->registry);
	c->mem = s->lane ? s->lane->call : s->exec->call;
	show_elements(s, data);
	OM_TRY(st);
	s->scratch = om_kernel_workspace(c);
	return OM_OK;
}

/* Do elements that are not constants decide the shape of an output, all of which are planned? */
static bool
is_steered(struct step *s)
{
	void **data = hide_elements(s);
	om_op_context query = s->call;

	query.session = NULL;
	const bool steered = om_op_check_shapes(&query) != OM_OK;
	show_elements(s, data);
	om_arena_clear(s->exec->call);
	return steered;
}

static bool
has_form(const struct form *f, const om_tensor *t)
{
	bool same = f->type == t->type && f->rank == t->shape.rank;

	for (int d = 0; same && d < f->rank; d++)
		same = f->dim[d] == t->shape.dim[d];
	return same;
}

static void
set_form(struct form *f, const om_tensor *t)
{
	f->type = t->type;
	f->rank = t->shape.rank;
	for (int d = 0; d < f->rank; d++)
		f->dim[d] = t->shape.dim[d];
}

static bool
is_prepared_for(const struct step *s)
{
	const uint32_t nin = s->op->nin;
	bool same = s->is_prepared;

	for (uint32_t k = 0; same && k < nin; k++)
		same = !s->op->in[k] || has_form(&s->forms[k], &s->in[k]);
	for (uint32_t k = 0; same && k < s->op->nout; k++)
		same = !s->op->out[k] || has_form(&s->forms[nin + k], &s->out[k]);
	return same;
}

/* Prepare for the shapes of this run, unless they are unchanged. */
static om_status
prepare_again(struct step *s)
{
	if (is_prepared_for(s))
		return OM_OK;
	s->is_prepared = false;
	om_arena_clear(s->state);
	OM_TRY(bind_kernel(s, s->state));
	for (uint32_t k = 0; k < s->op->nin; k++)
		set_form(&s->forms[k], &s->in[k]);
	for (uint32_t k = 0; k < s->op->nout; k++)
		set_form(&s->forms[s->op->nin + k], &s->out[k]);
	s->is_prepared = true;
	return OM_OK;
}

/* ---- Running. ---- */

/* Also the whole step of a view made by the plan. */
static om_status
check_shapes(struct step *s)
{
	return om_op_check_shapes(&s->call);
}

/* All tensors and scratch are already bound. */
static om_status
run_fixed(struct step *s)
{
	if (s->is_steered)
		OM_TRY(check_shapes(s));
	return s->call.kernel->run(&s->call);
}

/* The output is all of an input, which may be stored there already; otherwise the op is a copy. */
static om_status
run_unless_there(struct step *s)
{
	if (s->is_steered)
		OM_TRY(check_shapes(s));
	if (s->in[s->whole].data == s->out[0].data)
		return OM_OK;
	*(s->lane ? &s->lane->copied : &s->exec->stats.copied_bytes) += om_value_bytes(s->op->out[0]);
	return s->call.kernel->run(&s->call);
}

static om_status
run_in_workspace(struct step *s)
{
	if (s->is_steered)
		OM_TRY(check_shapes(s));
	use_workspace(s);
	return s->call.kernel->run(&s->call);
}

/* A view made by the plan; it has a step only to poison the memory that dies there. */
static om_status
run_nothing(struct step *s)
{
	(void)s;
	return OM_OK;
}

static om_status
alloc_output(om_op_context *c, uint32_t k, const om_shape *shape)
{
	struct step *s = c->host;
	om_value *v = s->op->out[k];

	OM_TRY(om_value_settle(s->exec, v, c->out[k].type, shape));
	c->out[k] = s->exec->slot[v->id];
	return OM_OK;
}

/* May output `k` be computed over input `i`, whose buffer it then takes?  The op reads it once. */
static bool
may_take(struct step *s, uint32_t k, uint32_t i)
{
	uint64_t made, read;

	return s->ends[i] && om_value_may_give(s->exec, s->op->in[i]) && om_value_may_receive(s->exec, s->op->out[k])
		&& om_tensor_bytes(s->out[k].type, &s->out[k].shape, &made)
		&& om_tensor_bytes(s->in[i].type, &s->in[i].shape, &read) && made == read
		&& om_op_context_inplace(&s->call, k, i);
}

/* Values outside of the arenas are computed in place, too: a state that a loop adds to would otherwise be copied in
 * each iteration. */
static bool
take_input(struct step *s, uint32_t k)
{
	for (uint32_t i = 0; s->ends && !s->lane && i < s->op->nin; i++) {
		if (!may_take(s, k, i))
			continue;
		s->out[k].data = s->in[i].data;
		om_value_give(s->exec, s->op->in[i], s->op->out[k], &s->out[k]);
		return true;
	}
	return false;
}

/* Infer shapes and allocate memory of the outputs. */
static om_status
settle(struct step *s)
{
	const om_op *op = s->op;

	for (uint32_t k = 0; k < op->nout; k++)
		s->out[k] = (om_tensor){.shape = om_shape_unknown()};
	if (op->opdef->infer)
		OM_TRY(op->opdef->infer(&s->call));
	for (uint32_t k = 0; k < op->nout; k++) {
		if (!op->out[k])
			continue;
		if (s->out[k].type == OM_UNDEFINED)
			s->out[k].type = om_type_elem(&op->out[k]->type);
		if (!(op->opdef->flags & OM_DATA_DEPENDENT_SHAPE) && op->out[k]->type.kind == OM_TENSOR && !take_input(s, k))
			OM_TRY(alloc_output(&s->call, k, &s->out[k].shape));
	}
	return OM_OK;
}

static om_status
run_open(struct step *s)
{
	const om_op *op = s->op;

	om_step_look(s);
	OM_TRY(settle(s));
	OM_TRY(prepare_again(s));
	if (s->scratch) {
		OM_TRY(om_workspace_fit(s->exec, workspace_of(s), s->scratch));
		use_workspace(s);
	}
	OM_TRY(s->call.kernel->run(&s->call));
	for (uint32_t k = 0; k < op->nout; k++) {
		if (op->out[k] && !s->out[k].data)
			return om_op_fail(s->exec->session, OM_RUN, op, "output %u has no memory", k);
		if (op->out[k] && op->out[k]->type.kind != OM_TENSOR)
			OM_TRY(om_value_put(s->exec, op->out[k], &s->out[k]));
	}
	return OM_OK;
}

/* ---- Walking. ---- */

static om_status
run_timed(om_exec *e, struct step *s)
{
	const double start = om_now_ms();

	if (s->profile == 0) {
		e->profile[e->stats.nop].op = s->op;
		s->profile = ++e->stats.nop;
	}
	OM_TRY(s->run(s));
	om_exec_op *p = &e->profile[s->profile - 1];
	const double ms = om_now_ms() - start;
	p->least_ms = p->calls == 0 || ms < p->least_ms ? ms : p->least_ms;
	p->calls++;
	p->ms += ms;
	return OM_OK;
}

static om_status
check_stop(const om_exec *e)
{
	return om_session_is_stopped(e->session) ? om_fail(e->session, OM_STOPPED, "the run was stopped") : OM_OK;
}

static om_status
run_step(om_exec *e, struct step *s)
{
	if (e->device)
		OM_TRY(om_exec_device_before(e, s->op));
	OM_TRY(e->options.profile && s->run != run_nothing ? run_timed(e, s) : s->run(s));
	om_arena_clear(e->call);
	if (e->device)
		OM_TRY(om_exec_device_after(e, s->op));
	if (!e->poison)
		return OM_OK;
	OM_TRY(om_poison_check(e, s->op));
	return om_poison_at(e, e->last_step[s->op->id]);
}

om_status
om_walk_run(om_exec *e, const om_block *b)
{
	const struct walk *w = &e->walk[b->id];
	const bool is_watched = e->options.profile || e->poison || e->device;

	e->stats.steps += w->nrun;
	for (uint32_t k = 0, n = 0; k < w->n && is_watched; k += n + !n) {  /* `n`: the steps of what the device replays */
		OM_TRY(check_stop(e));
		if (e->device)
			OM_TRY(om_exec_device_replay(e, &w->step[k], &n));
		if (n == 0)
			OM_TRY(run_step(e, &w->step[k]));
	}
	for (uint32_t k = 0; k < w->n && !is_watched; k++) {
		OM_TRY(check_stop(e));
		OM_TRY(w->step[k].run(&w->step[k]));
		om_arena_clear(e->call);
	}
	return OM_OK;
}

/* ---- Building. ---- */

static bool
all_fixed(const om_exec *e, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && !e->is_fixed[op->in[k]->id])
			return false;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !e->is_fixed[op->out[k]->id])
			return false;
	return !(op->opdef->flags & OM_DATA_DEPENDENT_SHAPE);
}

static bool
is_skipped(const om_exec *e, const om_op *op)
{
	bool any = false;

	for (uint32_t k = 0; k < op->nout; k++) {
		if (op->out[k] && !e->is_skipped[op->out[k]->id])
			return false;
		any |= op->out[k] != NULL;
	}
	return any;
}

static om_status
check_kinds(const om_exec *e, const om_op *op)
{
	om_session *s = e->session;

	if (op->opaque)
		return om_fail(s, OM_UNSUPPORTED, "%s", op->opaque);
	if (!op->opdef)
		return om_op_fail(s, OM_UNSUPPORTED, op, "cannot be run: unknown operator");
	for (uint32_t k = 0; k < op->nin + op->nout; k++) {
		const om_value *v = k < op->nin ? op->in[k] : op->out[k - op->nin];
		const bool is_object = v && v->type.kind != OM_SPARSE && v->type.kind != OM_OPAQUE
		    && (op->opdef->flags & OM_NON_TENSOR || op->opdef->control != OM_PLAIN);
		if (v && v->type.kind != OM_TENSOR && !is_object)
			return om_op_fail(s, OM_UNSUPPORTED, op, "%s is a %s, which cannot be run", v->name,
				om_kind_text(v->type.kind));
	}
	return OM_OK;
}

static om_status
bind_scratch(struct step *s)
{
	om_exec *e = s->exec;
	const om_scratch *at = e->scratch[s->op->id];

	if (s->scratch == 0)
		return OM_OK;
	if (at && at->bytes >= s->scratch) {
		s->call.scratch = e->arena[at->arena].data + e->guard + at->offset;
		return OM_OK;
	}
	s->run = run_in_workspace;
	return om_workspace_fit(e, workspace_of(s), s->scratch);
}

/* Tensors that stay where they are, or move as exec_follow() says. */
static void
bind_tensors(struct step *s)
{
	om_exec *e = s->exec;
	const om_op *op = s->op;

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k]) {
			s->in[k] = e->slot[op->in[k]->id];
			om_exec_follow(e, op->in[k], &s->in[k]);
		}
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k]) {
			s->out[k] = e->slot[op->out[k]->id];
			om_exec_follow(e, op->out[k], &s->out[k]);
		}
}

/* Is the only output all of an input? */
static bool
is_whole(struct step *s)
{
	const om_op *op = s->op;
	om_view_of view;

	if (op->nout != 1 || !om_op_view(op, 0, &view))
		return false;
	s->whole = view.in;
	return view.offset == 0 && om_value_bytes(op->in[view.in]) == om_value_bytes(op->out[0]);
}

/* Is the value computed or carried anew before each time that its block's ops run? */
static bool
is_renewed(const om_value *v)
{
	const om_op *owner = v->block->owner;

	if (v->is_const || v->def)
		return !v->is_const && !v->def->is_folded;
	return owner && owner->opdef && owner->opdef->control == OM_LOOP && v != v->block->param[0] && v != v->block->param[1];
}

/* Is this op the last that reads input `i`, and does it read it once? */
static bool
ends_input(const om_exec *e, const om_op *op, uint32_t i)
{
	const om_value *v = op->in[i];

	if (!v || v->block != op->block || e->is_fixed[v->id] || v->type.kind != OM_TENSOR || !is_renewed(v))
		return false;
	for (const om_use *u = v->first_use; u; u = u->next) {
		const bool is_this = u->op == op && u->index == i;
		if (!is_this && (!u->op || e->last_step[u->op->id] >= e->first_step[op->id]))
			return false;
	}
	return true;
}

static void
find_ends(struct step *s)
{
	bool any = false, *ends = OM_NEWN(s->exec->mem, bool, s->op->nin);

	for (uint32_t i = 0; s->op->opdef->inplace && i < s->op->nin; i++)
		any |= ends[i] = ends_input(s->exec, s->op, i);
	s->ends = any ? ends : NULL;
}

static void
new_kernel(struct step *s)
{
	om_exec *e = s->exec;
	const om_op *op = s->op;

	if (!all_fixed(e, op)) {
		s->run = run_open;
		find_ends(s);
		s->state = om_arena_new();
		s->forms = OM_NEWN(e->mem, struct form, (size_t)op->nin + op->nout);
		return;
	}
	s->run = run_fixed;
	s->is_steered = is_steered(s);
	bind_tensors(s);
}

/* A view needs no work, except that its shape may have to be checked. */
static void
new_view(struct step *s)
{
	s->is_steered = all_fixed(s->exec, s->op) && is_steered(s);
	s->run = s->is_steered ? check_shapes : run_nothing;
	if (s->is_steered)
		bind_tensors(s);
}

/* The device is given its shapes once. */
static om_status
new_device_op(struct step *s)
{
	if (!all_fixed(s->exec, s->op))
		return om_op_fail(s->exec->session, OM_UNSUPPORTED, s->op, "is for the device %s, but the sizes of its tensors are not "
			"known before the run", s->op->device);
	s->run = om_exec_device_step;
	bind_tensors(s);
	return OM_OK;
}

static om_status
new_step(om_exec *e, om_op *op, struct step *s)
{
	*s = (struct step){.exec = e, .op = op};
	OM_TRY(check_kinds(e, op));
	om_op_context_init(&s->call, e->session, e->mem, op);
	s->in = (om_tensor *)s->call.in;
	s->out = s->call.out;
	s->call.mem = e->call;
	s->call.keep = e->keep;
	s->call.comm = e->options.comm;
	s->call.alloc = op->opdef->flags & OM_DATA_DEPENDENT_SHAPE ? alloc_output : NULL;
	s->call.host = s;
	if (op->opdef->control != OM_PLAIN)
		return om_control_flow_new(s);
	if (is_skipped(e, op))
		new_view(s);
	else if (op->device)
		return new_device_op(s);
	else
		new_kernel(s);
	return OM_OK;
}

static om_status
new_walk(om_exec *e, const om_block *b)
{
	struct walk *w = &e->walk[b->id];

	w->step = OM_NEWN(e->mem, struct step, b->nop);
	for (om_op *op = b->first; op; op = op->next) {
		struct step *s = &w->step[w->n];
		for (uint32_t k = 0; k < op->nbody; k++)
			OM_TRY(new_walk(e, op->body[k]));
		if (op->is_folded || !e->is_needed[op->id])
			continue;
		w->n++;
		OM_TRY(new_step(e, op, s));
		w->nrun += s->run != run_nothing && s->run != check_shapes;
		w->n -= s->run == run_nothing && !e->options.poison;
	}
	return OM_OK;
}

om_status
om_exec_steps(om_exec *e)
{
	e->walk = OM_NEWN(e->mem, struct walk, e->prog->nblock);
	return new_walk(e, e->prog->first);
}

om_status
om_exec_prepare(om_exec *e)
{
	for (uint32_t b = 0; b < e->prog->nblock; b++)
		for (uint32_t k = 0; k < e->walk[b].n; k++) {
			struct step *s = &e->walk[b].step[k];
			if (s->run != run_fixed)
				continue;
			OM_TRY(bind_kernel(s, e->mem));
			OM_TRY(bind_scratch(s));
			if (s->run == run_fixed && is_whole(s))
				s->run = run_unless_there;
			om_arena_clear(e->call);
		}
	return OM_OK;
}

void
om_step_free(struct step *s)
{
	om_control_flow_free(s);
	om_arena_free(s->state);
}
