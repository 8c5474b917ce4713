/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as ops: a program is bound to the shapes of its inputs, planned and kept, once for each of them. */
#include <config.h>

#include <stdlib.h>

#include "eager/eager_internal.h"
#include "ir/edit.h"
#include "onnxmem/binding.h"

struct program {
	struct program *next;
	const om_prog *of;
	om_tensor *form;             /* by input: type and shape; OM_UNDEFINED: omitted */
	om_prog *bound;
	om_exec *exec;
};

struct program_call {
	om_eager *e;
	const om_prog *p;
	uint32_t nin, nout;
	om_variable *const *in;
	om_variable **out;
	struct program *made;        /* for its shapes, if it is the first of them */
};

/* ---- The planned program. ---- */

static bool
is_of(const struct program *r, const struct program_call *c)
{
	bool same = r->of == c->p;

	for (uint32_t k = 0; same && k < c->nin; k++)
		same = c->in[k] ? om_form_equal(&r->form[k], &c->in[k]->t) : r->form[k].type == OM_UNDEFINED;
	return same;
}

static void
free_form(struct program *r)
{
	free(r->form);
	free(r);
}

static void
free_program(struct program *r)
{
	om_exec_free(r->exec);
	om_prog_free(r->bound);
	free_form(r);
}

void
om_programs_forget(om_eager *e)
{
	for (struct program *r; (r = e->callable); ) {
		e->callable = r->next;
		free_program(r);
	}
	e->ncallable = 0;
}

static om_status
bind_shapes(const struct program_call *c, om_binding *b)
{
	for (uint32_t k = 0; k < c->nin; k++)
		if (c->in[k])
			OM_TRY(om_binding_shape(c->e->session, b, c->p->first->param[k]->name, &c->in[k]->t.shape));
	return OM_OK;
}

static om_status
plan(void *arg)
{
	const struct program_call *c = arg;
	struct program *r = c->made;
	om_eager *e = c->e;
	om_binding *b = om_binding_new();
	om_status st = b ? bind_shapes(c, b) : om_fail(e->session, OM_MEMORY, "no memory to call a program");

	if (st == OM_OK)
		st = om_prog_bind(e->session, c->p, b, &r->bound);
	om_binding_free(b);
	OM_TRY(st);
	om_prog_clear_ties(r->bound);  /* variables keep their elements: no result is computed over an input */
	st = om_eager_executor(e, r->bound, 0, om_default_pipeline(), &r->exec);
	if (st != OM_OK)
		om_prog_free(r->bound);
	return st;
}

static om_status
make(const struct program_call *c, struct program **out)
{
	enum { MOST = 64 };
	struct program *r = calloc(1, sizeof *r);

	*out = NULL;
	if (r)
		r->form = calloc((size_t)c->nin + 1, sizeof *r->form);
	if (!r || !r->form) {
		free(r);
		return om_fail(c->e->session, OM_MEMORY, "no memory to call a program");
	}
	r->of = c->p;
	for (uint32_t k = 0; k < c->nin; k++)
		if (c->in[k])
			r->form[k] = (om_tensor){.type = c->in[k]->t.type, .shape = c->in[k]->t.shape};
	struct program_call with = *c;
	with.made = r;
	const om_status st = om_guarded_part(c->e->session, plan, &with);
	if (st != OM_OK) {
		free_form(r);
		return st;
	}
	if (c->e->ncallable == MOST)
		om_programs_forget(c->e);
	r->next = c->e->callable;
	c->e->callable = r;
	c->e->ncallable++;
	*out = r;
	return OM_OK;
}

/* ---- Calls. ---- */

static om_status
check(const struct program_call *c)
{
	om_session *s = c->e->session;
	const om_block *graph = c->p->first;

	if (c->nin != graph->nparam || c->nout != graph->nresult)
		return om_fail(s, OM_USAGE, "the program has %u inputs and %u outputs, and is called with %u and %u", graph->nparam,
			graph->nresult, c->nin, c->nout);
	for (uint32_t k = 0; k < c->nin; k++) {
		if (c->in[k] && c->in[k]->e != c->e)
			return om_fail(s, OM_USAGE, "input %s is a variable of another context", graph->param[k]->name);
		if (c->in[k] && c->in[k]->state == OM_FAILED)
			return om_fail(s, OM_RUN, "input %s was not computed, because a call before it failed", graph->param[k]->name);
	}
	return OM_OK;
}

static om_status
take_result(const struct program_call *c, const struct program *r, uint32_t k)
{
	const om_value *v = r->bound->first->result[k];

	if (v->type.kind != OM_TENSOR)
		return om_fail(c->e->session, OM_UNSUPPORTED, "output %s of the program is no tensor", v->name);
	return om_variable_new_here(c->e, om_exec_result(r->exec, k), &c->out[k]);
}

/* A gradient would have to pass through the program. */
static void
mark_cut(const struct program_call *c)
{
	bool cut = false;

	for (uint32_t k = 0; k < c->nin; k++) {
		const om_variable *v = c->in[k];
		cut |= v && (v->is_cut || (c->e->is_recording && (v->is_watched || v->record)));
	}
	for (uint32_t k = 0; k < c->nout; k++)
		c->out[k]->is_cut = cut;
}

static om_status
run_program(const struct program_call *c, struct program *r)
{
	for (uint32_t k = 0; k < c->nin; k++) {
		if (!c->in[k])
			continue;
		OM_TRY(om_record_restore(c->in[k]));
		OM_TRY(om_exec_input(r->exec, k, &c->in[k]->t));
	}
	OM_TRY(om_exec_run(r->exec));
	for (uint32_t k = 0; k < c->nout; k++)
		OM_TRY(take_result(c, r, k));
	mark_cut(c);
	return OM_OK;
}

static om_status
call_program(void *arg)
{
	const struct program_call *c = arg;
	struct program *r = c->e->callable;

	OM_TRY(om_sequence_end(c->e));
	OM_TRY(check(c));
	while (r && !is_of(r, c))
		r = r->next;
	if (!r)
		OM_TRY(make(c, &r));
	return run_program(c, r);
}

om_status
om_eager_run_program(om_eager *e, const om_prog *p, size_t nin, om_variable *const *in, size_t nout, om_variable **out)
{
	memset(out, 0, nout * sizeof *out);
	if (nin > UINT32_MAX || nout > UINT32_MAX)
		return om_fail(e->session, OM_USAGE, "a program has fewer inputs and outputs");
	struct program_call c = {e, p, (uint32_t)nin, (uint32_t)nout, in, out};
	return om_eager_results(e, call_program, &c, out, nout);
}
