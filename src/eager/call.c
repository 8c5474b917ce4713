/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: validation, and computing one at once. */
#include <config.h>

#include "base/shape.h"
#include "eager/eager_internal.h"
#include "opdef/kernel_call.h"

static om_status
no_memory(om_eager *e, const struct kind *k, uint64_t bytes)
{
	return om_fail(e->session, OM_MEMORY, "no memory for %llu bytes of a call of %s", (unsigned long long)bytes, k->prog->name);
}

static om_status
give_memory(om_eager *e, const struct kind *k, om_variable *v)
{
	uint64_t bytes;

	if (!om_tensor_bytes(v->t.type, &v->t.shape, &bytes))
		return om_fail(e->session, OM_INVALID, "the size of an output of %s overflows", k->prog->name);
	v->store = om_store_take(e->memory, bytes);
	if (!v->store)
		return no_memory(e, k, bytes);
	v->t.data = v->store->data;
	return OM_OK;
}

static om_status
give_scratch(om_eager *e, struct kind *k, om_op_context *c, uint64_t bytes)
{
	if (bytes && (!e->scratch || e->scratch->bytes < bytes)) {
		om_store_drop(e->memory, e->scratch);
		e->scratch = om_store_take(e->memory, bytes);
		if (!e->scratch)
			return no_memory(e, k, bytes);
	}
	c->scratch = bytes ? e->scratch->data : NULL;
	return OM_OK;
}

static void
set_ready(om_variable *const *out, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (out[k])
			out[k]->state = OM_READY;
}

/* ---- Open calls: shapes of outputs are known only here. ---- */

struct open_call {
	om_eager *e;
	struct kind *kind;
	om_variable *const *out;
};

static om_status
give_output(om_op_context *c, uint32_t k, const om_shape *shape)
{
	struct open_call *o = c->host;
	om_variable *v = o->out[k];

	v->t.type = c->out[k].type;
	v->t.shape = om_shape_of(shape->rank, shape->dim);
	v->form = om_form_hash(&v->t);
	om_store_drop(o->e->memory, v->store);
	v->store = NULL;
	OM_TRY(give_memory(o->e, o->kind, v));
	c->out[k] = v->t;
	return OM_OK;
}

static om_status
settle(om_op_context *c, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		c->out[k] = (om_tensor){.shape = om_shape_unknown()};
	OM_TRY(op->opdef->infer(c));
	for (uint32_t k = 0; k < op->nout; k++) {
		if (c->out[k].type == OM_UNDEFINED && op->out[k])
			c->out[k].type = op->out[k]->type.elem;
		if (op->out[k] && !(op->opdef->flags & OM_DATA_DEPENDENT_SHAPE))
			OM_TRY(give_output(c, k, &c->out[k].shape));
	}
	return OM_OK;
}

static om_status
compute_open(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out)
{
	struct open_call o = {e, k, out};
	om_op_context c = k->c;
	om_tensor *list = OM_NEWN(e->call, om_tensor, (size_t)k->nin + 1);

	for (uint32_t i = 0; i < k->nin; i++)
		if (in[i])
			list[i] = in[i]->t;
	c.in = list;
	c.out = OM_NEWN(e->call, om_tensor, (size_t)k->nout + 1);
	c.mem = c.keep = e->call;
	c.alloc = give_output;
	c.host = &o;
	c.memo = NULL;
	OM_TRY(settle(&c, k->op));
	OM_TRY(om_kernel_bind(&c, NULL));
	OM_TRY(give_scratch(e, k, &c, om_kernel_workspace(&c)));
	OM_TRY(om_kernel_run(&c));
	for (uint32_t i = 0; i < k->nout; i++)
		if (out[i] && !out[i]->store)
			return om_op_fail(e->session, OM_RUN, k->op, "output %u has no memory", i);
	return OM_OK;
}

/* ---- Calls whose kernel is prepared. ---- */

/* The outputs share the memory of inputs. */
static void
share(const struct kind *k, om_variable *const *in, om_variable *const *out)
{
	for (uint32_t i = 0; i < k->nout; i++) {
		if (!out[i])
			continue;
		om_variable *from = in[k->view[i].in];
		out[i]->store = from->store;
		out[i]->store->refs++;
		out[i]->t.data = (char *)from->t.data + k->view[i].offset;
	}
}

static om_status
compute_prepared(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out)
{
	om_op_context *c = &k->c;

	for (uint32_t i = 0; i < k->nin; i++)
		if (in[i] && !om_is_value(k->values, i))
			k->in[i].data = in[i]->t.data;
	for (uint32_t i = 0; i < k->nout; i++) {
		if (!out[i])
			continue;
		OM_TRY(give_memory(e, k, out[i]));
		c->out[i].data = out[i]->t.data;
	}
	OM_TRY(give_scratch(e, k, c, k->scratch));
	return c->kernel->run(c);
}

om_status
om_call_compute(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out)
{
	om_status st = OM_OK;

	e->stats.computed++;
	if (k->view)
		share(k, in, out);
	else
		st = k->is_open ? compute_open(e, k, in, out) : compute_prepared(e, k, in, out);
	om_arena_clear(e->call);
	if (st == OM_OK)
		set_ready(out, k->nout);
	return st;
}

/* ---- Dispatch. ---- */

static om_status
check_inputs(om_eager *e, const struct signature *s)
{
	for (uint32_t k = 0; k < s->nin; k++) {
		if (!s->in[k])
			continue;
		if (s->in[k]->e != e)
			return om_fail(e->session, OM_USAGE, "%s: input %u is a variable of another context", s->type, k);
		if (s->in[k]->state == OM_FAILED)
			return om_fail(e->session, OM_RUN, "%s: input %u was not computed, because a call before it failed", s->type, k);
	}
	return OM_OK;
}

/* Small lists of integers are computed at once, so that they may decide shapes; unless they follow from results of the
 * sequence: what is deferred must not depend on whether it is. */
static bool
is_aside(const om_eager *e, const struct kind *k, om_variable *const *in)
{
	if (!k->is_small)
		return false;
	for (uint32_t i = 0; i < k->nin && !(k->op->opdef->flags & OM_SHAPE_ONLY); i++)
		if (in[i] && in[i]->sequence == e->seq.serial && in[i]->place < OM_PLACE_NONE)
			return false;
	return true;
}

static om_status
compute(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out)
{
	if (k->is_open) {
		OM_TRY(om_sequence_end(e));
		return om_call_compute(e, k, in, out);
	}
	return e->options.no_replay || is_aside(e, k, in) ? om_call_compute(e, k, in, out) : om_sequence_call(e, k, in, out);
}

static om_status
make_outputs(om_eager *e, const struct kind *k, om_variable **out)
{
	for (uint32_t i = 0; i < k->nout; i++) {
		if (!k->op->out[i])
			continue;
		out[i] = om_variable_make(e, &k->c.out[i], k->form[i]);
		if (!out[i])
			return no_memory(e, k, sizeof **out);
	}
	return OM_OK;
}

/* What follows from a gradient that has none, has none. */
static void
mark_cut(const struct kind *k, om_variable *const *in, om_variable *const *out)
{
	bool cut = false;

	for (uint32_t i = 0; i < k->nin; i++)
		cut |= in[i] && in[i]->is_cut;
	for (uint32_t i = 0; i < k->nout && cut; i++)
		if (out[i])
			out[i]->is_cut = true;
}

/* A call that was made before, of the same variables, has its results already: in variables of their own, which may be watched
 * for themselves. */
static om_status
call(om_eager *e, struct kind *k, om_variable *const *in, om_variable **out)
{
	const bool follows = om_record_follows(e, k, in);
	const bool remembers = e->options.result_bytes && k->is_pure && !k->is_open;

	OM_TRY(make_outputs(e, k, out));
	mark_cut(k, in, out);
	if (follows)
		OM_TRY(om_record_call(e, k, in, out));
	if (remembers && om_results_share(e, k, in, out))
		return OM_OK;
	OM_TRY(compute(e, k, in, out));
	if (remembers)
		om_results_add(e, k, in, out);
	return OM_OK;
}

static om_status
dispatch(om_eager *e, const struct signature *s, om_variable **out)
{
	struct kind *k;
	bool waits;

	OM_TRY(check_inputs(e, s));
	if (e->nkind > OM_EAGER_NODES)
		OM_TRY(om_eager_forget(e));
	OM_TRY(om_kind_get(e, s, &k, &waits));
	if (waits) {
		OM_TRY(om_sequence_end(e));
		OM_TRY(om_kind_get(e, s, &k, &waits));
	}
	e->stats.calls++;
	k->refs++;
	const om_status st = call(e, k, s->in, out);
	om_kind_drop(k);
	return st;
}

/* The inputs are there, and stay there, until the call is done. */
static om_status
hold_inputs(om_eager *e, const struct signature *s)
{
	om_status st = OM_OK;

	for (uint32_t k = 0; k < s->nin; k++)
		if (s->in[k])
			om_variable_pin(s->in[k]);
	for (uint32_t k = 0; k < s->nin && st == OM_OK; k++)
		if (s->in[k]) {
			s->in[k]->used = ++e->clock;
			st = om_record_restore(s->in[k]);
		}
	return st;
}

static void
release_inputs(const struct signature *s)
{
	for (uint32_t k = 0; k < s->nin; k++)
		if (s->in[k])
			om_variable_unpin(s->in[k]);
}

om_status
om_call_dispatch(om_eager *e, const struct signature *s, om_variable **out)
{
	if (!e->options.tape_bytes)
		return dispatch(e, s, out);
	om_status st = hold_inputs(e, s);
	if (st == OM_OK)
		st = dispatch(e, s, out);
	release_inputs(s);
	return st;
}

struct run {
	om_eager *e;
	struct signature s;
	om_variable **out;
};

static om_status
run(void *arg)
{
	struct run *r = arg;

	return om_call_dispatch(r->e, &r->s, r->out);
}

void
om_variables_free(om_variable **v, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		om_variable_free(v[k]);
		v[k] = NULL;
	}
}

om_status
om_eager_run(om_eager *e, const char *type, const om_attr *attrs, size_t nin, om_variable *const *in, size_t nout,
	om_variable **out)
{
	memset(out, 0, nout * sizeof *out);
	if (nin > UINT16_MAX || nout > OM_EAGER_OUTPUTS || nout == 0)
		return om_fail(e->session, OM_USAGE, "%s is called with %zu inputs and %zu outputs: at most %d and 1 to %d are supported",
			type, nin, nout, UINT16_MAX, OM_EAGER_OUTPUTS);
	struct run r = {e, {type, attrs, (uint32_t)nin, (uint32_t)nout, in, UINT64_MAX >> (64 - nout)}, out};
	return om_eager_results(e, run, &r, out, nout);
}
