/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients that are a single op: a call of a function, whose body is what the rule builds.
 *
 * The forward op is copied into a program of its own, in which everything that it reads, computes and
 * receives gradients of is a parameter; the rule builds there as usual.  Then the copy is removed: its
 * outputs become parameters, too.  So there is one definition of a gradient, and a kernel that
 * implements the call is compared with it.
 *
 * Ops that agree in everything that their rules inspect share a function: types and shapes,
 * attributes, requested gradients.  If a rule reads a value that is not an input of the single op, it
 * is called again for the plain form. */
#include <config.h>

#include <inttypes.h>

#include "grad/bodies.h"
#include "grad/functions.h"
#include "grad/fused.h"
#include "grad/grad_builder.h"
#include "ir/clone.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/fold.h"
#include "opdef/op_context.h"

enum { MOST_ENDS = 8 };         /* maximum number of inputs and outputs of the forward op */

/* A shape that the rule requested from the forward path: dims [from, to) of a value. */
struct lifted {
	struct om_fused_input of;
	int64_t from, to;            /* to < 0: all of them */
};

/* A function, and its key. */
struct om_drawn {
	const om_op *op;
	uint32_t wanted, flows;      /* by input, by output */
	om_function *fn;             /* NULL: use the plain form */
	bool is_given[OM_FUSED_INPUTS];
	uint32_t out[MOST_ENDS], nout;   /* the inputs that have gradients */
	struct lifted *lifted;
	size_t nlifted, caplifted;
	struct om_drawn *next;
};

struct drawing {
	om_grad *g;                  /* the caller's */
	const om_op *op;
	const struct om_fused *form;
	struct om_drawn *d;
	om_prog *home;
	om_block *body;
	om_op *copy;
	om_value **dy;               /* by output */
	om_value **param;            /* parameters for the lifted shapes */
};

/* ---- Comparison of keys. ---- */

static size_t
bytes_of(const om_attr *a)
{
	return a->n * (a->kind == OM_ATTR_FLOAT || a->kind == OM_ATTR_FLOATS ? sizeof *a->f : sizeof *a->i);
}

static bool
is_same_attr(const om_attr *a, const om_attr *b)
{
	if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->n != b->n)
		return false;
	switch (a->kind) {
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS: case OM_ATTR_INT: case OM_ATTR_INTS:
		return a->n == 0 || memcmp(a->i, b->i, bytes_of(a)) == 0;
	case OM_ATTR_STRING:
		return a->s->size == b->s->size && (a->s->size == 0 || memcmp(a->s->data, b->s->data, a->s->size) == 0);
	default:
		return false;
	}
}

static bool
is_same_value(const om_value *a, const om_value *b)
{
	return !a || !b ? a == b : om_type_equal(&a->type, &b->type) && om_shape_equal(&a->shape, &b->shape);
}

static bool
is_same_op(const om_op *a, const om_op *b)
{
	bool same = a->opdef == b->opdef && a->nin == b->nin && a->nout == b->nout && a->nattr == b->nattr;

	for (uint32_t k = 0; same && k < a->nin; k++)
		same = is_same_value(a->in[k], b->in[k]);
	for (uint32_t k = 0; same && k < a->nout; k++)
		same = is_same_value(a->out[k], b->out[k]);
	for (uint32_t k = 0; same && k < a->nattr; k++)
		same = is_same_attr(&a->attr[k], &b->attr[k]);
	return same;
}

/* ---- The forward op in a program of its own. ---- */

static const char *
name_of(const struct drawing *w, int what, uint32_t k, const char *other)
{
	for (const struct om_fused_input *in = w->form->in; in->name; in++)
		if ((int)in->what == what && in->k == k)
			return in->name;
	return om_printf(om_grad_mem(w->g), "%s%" PRIu32, other, k);
}

static om_value *
value_like(const struct drawing *w, const om_value *like, const char *name)
{
	om_value *v = om_value_new(w->home, w->body, name);

	v->type = like->type;
	v->shape = like->shape;
	v->is_declared = true;
	return v;
}

/* Elements of constant inputs are not copied: the rules of these operators do not inspect them. */
static void
copy_op(struct drawing *w)
{
	const om_op *op = w->op;

	w->copy = om_op_new(w->home, op->domain, op->type, op->version, op->nin, op->nout);
	w->copy->opdef = op->opdef;
	w->copy->name = op->name;
	w->copy->phase = OM_FORWARD;
	w->dy = OM_NEWN(om_grad_mem(w->g), om_value *, (size_t)op->nout + 1);
	for (uint32_t k = 0; k < op->nout; k++)
		if (w->d->flows >> k & 1)
			w->dy[k] = value_like(w, op->out[k], name_of(w, OM_GRADIENT_OF, k, "dY"));
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			om_op_set_in(w->copy, k, value_like(w, op->in[k], name_of(w, OM_INPUT, k, "in")));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			om_op_set_out(w->copy, k, value_like(w, op->out[k], name_of(w, OM_OUTPUT, k, "out")));
	for (uint32_t k = 0; k < op->nattr; k++)
		om_op_add_attr(w->home, w->copy, &op->attr[k]);
	om_op_append(w->body, w->copy);
}

/* ---- Conversion of the built ops into a body. ---- */

static bool
place_of(const struct drawing *w, const om_value *v, struct om_fused_input *at)
{
	*at = (struct om_fused_input){.what = OM_INPUT};
	for (at->k = 0; at->k < w->copy->nin; at->k++)
		if (w->copy->in[at->k] == v)
			return true;
	at->what = OM_OUTPUT;
	for (at->k = 0; at->k < w->copy->nout; at->k++)
		if (w->copy->out[at->k] == v)
			return true;
	return false;
}

/* Replaces a Shape by a parameter: the caller computes the shape where the value is defined. */
static bool
lift(struct drawing *w, om_op *op)
{
	struct lifted l = {.from = om_attr_int(op, "start"), .to = om_attr_has(op, "end") ? om_attr_int(op, "end") : -1};

	if (strcmp(op->type, "Shape") != 0 || !place_of(w, op->in[0], &l.of))
		return false;
	om_value **more = OM_NEWN(om_grad_mem(w->g), om_value *, w->d->nlifted + 1);
	if (w->d->nlifted)
		memcpy(more, w->param, w->d->nlifted * sizeof *more);
	more[w->d->nlifted] = op->out[0];
	w->param = more;
	OM_PUSH(om_grad_mem(w->g), w->d->lifted, w->d->nlifted, w->d->caplifted, l);
	om_op_remove(op);
	return true;
}

static bool
take_out_forward(struct drawing *w)
{
	bool all = true;
	om_op *next;

	for (om_op *op = w->body->first; op; op = next) {
		next = op->next;
		if (op != w->copy && op->phase == OM_FORWARD)
			all &= lift(w, op);
	}
	om_op_remove(w->copy);
	return all;
}

/* Marks the values that are read; removes ops that have no users. */
static bool *
reads(struct drawing *w)
{
	bool *is_read = OM_NEWN(om_grad_mem(w->g), bool, (size_t)w->home->nvalue + 1);
	om_op *prev;

	for (uint32_t k = 0; k < w->body->nresult; k++)
		is_read[w->body->result[k]->id] = true;
	for (om_op *op = w->body->last; op; op = prev) {
		prev = op->prev;
		if (om_is_read(op, is_read))
			om_mark_reads(op, is_read);
		else
			om_op_remove(op);
	}
	return is_read;
}

static om_value *
role(const struct drawing *w, const struct om_fused_input *in)
{
	const uint32_t n = in->what == OM_INPUT ? w->copy->nin : w->copy->nout;
	om_value *const *list = in->what == OM_GRADIENT_OF ? w->dy : in->what == OM_INPUT ? w->copy->in : w->copy->out;

	return in->k < n ? list[in->k] : NULL;
}

/* Parameters in the order of the form; omitted inputs have parameters as well. */
static void
add_params(struct drawing *w, bool *is_read)
{
	for (uint32_t k = 0; w->form->in[k].name; k++) {
		om_value *v = role(w, &w->form->in[k]);
		w->d->is_given[k] = v && (is_read[v->id] || w->form->in[k].always);
		om_block_add_param(w->body, v ? v : om_value_new(w->home, w->body, w->form->in[k].name));
		if (v)
			is_read[v->id] = false;  /* it is accounted for */
	}
	for (size_t k = 0; k < w->d->nlifted; k++) {
		om_block_add_param(w->body, w->param[k]);
		is_read[w->param[k]->id] = false;
	}
	while (w->d->nlifted == 0 && w->body->nparam && !w->d->is_given[w->body->nparam - 1])
		w->body->nparam--;
}

static bool
all_defined(const struct drawing *w, const bool *is_read, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (is_read[k] && !w->home->values[k]->def)
			return false;
	return true;
}

static void
give_results(struct drawing *w, om_grad *in, om_scope *s)
{
	for (uint32_t k = 0; k < w->copy->nin; k++) {
		om_value *v = w->d->wanted >> k & 1 ? om_scope_gradient(s, w->copy->in[k]) : NULL;
		if (!v)
			continue;
		om_emit_result(in, v);
		w->d->out[w->d->nout++] = k;
	}
}

/* False: use the plain form. */
static bool
draw(struct drawing *w)
{
	struct om_tape *outer = om_grad_scope(w->g)->tape;

	w->body = om_function_body(om_grad_prog(w->g), w->form->type);
	w->home = w->body->prog;
	copy_op(w);
	struct om_tape t = {.p = w->home, .mem = outer->mem};
	om_tape_start(&t);
	om_grad *in = om_tape_grad(&t);
	om_scope *s = om_grad_scope(in);
	s->first = s->last = w->copy;
	for (uint32_t k = 0; k < w->copy->nin; k++)
		if (w->d->wanted >> k & 1)
			om_scope_request(s, w->copy->in[k]);
	om_scope_mark_active(s);
	for (uint32_t k = 0; k < w->copy->nout; k++)
		if (w->dy[k])
			om_scope_seed(s, w->copy->out[k], w->dy[k]);
	om_tape_fail(outer, om_scope_run(s));
	if (outer->status != OM_OK)
		return false;
	give_results(w, in, s);
	om_tape_fail(outer, t.status);
	if (outer->status != OM_OK || w->d->nout == 0 || !take_out_forward(w))
		return false;
	bool *is_read = reads(w);
	const uint32_t n = w->home->nvalue;
	add_params(w, is_read);
	om_function_constants(w->body, OM_BACKWARD, is_read);
	return all_defined(w, is_read, n);
}

/* ---- The function and its call. ---- */

static void
make_function(struct drawing *w)
{
	const char **names = OM_NEWN(om_grad_mem(w->g), const char *, (size_t)w->op->nattr + 2);
	uint32_t n = 0;

	for (uint32_t k = 0; k < w->op->nattr; k++)
		names[n++] = w->op->attr[k].name;
	names[n++] = "wrt";
	names[n++] = "x_shape";
	w->d->fn = om_function_add(om_grad_prog(w->g), w->body, names, n);
}

static om_value *
given(om_grad *g, const struct om_fused_input *in)
{
	if (in->what == OM_GRADIENT_OF)
		return om_grad_output_grad(g, in->k);
	return in->what == OM_INPUT ? om_grad_forward_input(g, in->k) : om_grad_forward_output(g, in->k);
}

static om_value *
lifted_of(om_grad *g, const struct lifted *l)
{
	om_value *const *list = l->of.what == OM_INPUT ? om_grad_op(g)->in : om_grad_op(g)->out;

	return l->to < 0 ? om_emit_shape(g, list[l->of.k]) : om_emit_dim(g, list[l->of.k], (int)l->from);
}

static om_attr *
attrs_of(om_grad *g, const struct om_drawn *d)
{
	const om_op *op = om_grad_op(g);
	om_attr *list = OM_NEWN(om_grad_mem(g), om_attr, (size_t)op->nattr + 3);
	int64_t wrt[MOST_ENDS];

	if (op->nattr)
		memcpy(list, op->attr, op->nattr * sizeof *list);
	for (uint32_t k = 0; k < d->nout; k++)
		wrt[k] = d->out[k];
	list[op->nattr] = om_attr_make_ints(g, "wrt", d->nout, wrt);
	list[op->nattr + 1] = om_attr_make_ints(g, "x_shape", (size_t)op->in[0]->shape.rank, op->in[0]->shape.dim);
	return list;
}

/* Whether a single op computes the gradients. */
static bool
has_kernel(const struct drawing *w)
{
	om_op *op = om_op_new(w->home, OM_GRAD_DOMAIN, w->form->type, 1, w->body->nparam, w->d->nout);
	uint32_t nform = 0;

	while (w->form->in[nform].name)
		nform++;
	for (uint32_t k = 0; k < op->nin; k++)
		if (k >= nform || w->d->is_given[k])
			om_op_set_in(op, k, w->body->param[k]);
	for (const om_attr *a = attrs_of(w->g, w->d); a->name; a++)
		om_op_add_attr(w->home, op, a);
	return om_op_bind(op);
}

static struct om_drawn *
find_drawn(struct om_tape *t, const struct om_drawn *like)
{
	for (struct om_drawn *d = t->drawn; d; d = d->next)
		if (d->wanted == like->wanted && d->flows == like->flows && is_same_op(d->op, like->op))
			return d;
	return NULL;
}

static const struct om_drawn *
drawn_for(om_grad *g, const struct om_fused *form)
{
	struct om_tape *t = om_grad_scope(g)->tape;
	const om_op *op = om_grad_op(g);
	struct om_drawn like = {.op = op};

	for (uint32_t k = 0; k < op->nin; k++)
		like.wanted |= (uint32_t)om_grad_is_needed(g, k) << k;
	for (uint32_t k = 0; k < op->nout; k++)
		like.flows |= (uint32_t)(om_grad_output_grad(g, k) != NULL) << k;
	struct om_drawn *d = find_drawn(t, &like);
	if (d)
		return d;
	d = om_memdup(t->mem, &like, sizeof like);
	d->next = t->drawn;
	t->drawn = d;
	struct drawing w = {.g = g, .op = op, .form = form, .d = d};
	if (draw(&w) && has_kernel(&w))
		make_function(&w);
	return d;
}

static om_op *
open_call(om_grad *g, const struct om_fused *form, const struct om_drawn *d)
{
	om_value **in = OM_NEWN(om_grad_mem(g), om_value *, OM_FUSED_INPUTS + d->nlifted);
	size_t nin = 0;

	for (; form->in[nin].name; nin++)
		in[nin] = d->is_given[nin] ? given(g, &form->in[nin]) : NULL;
	for (size_t k = 0; k < d->nlifted; k++)
		in[nin++] = lifted_of(g, &d->lifted[k]);
	while (nin && !in[nin - 1])
		nin--;
	om_op *op = om_emit_open(g, OM_GRAD_DOMAIN, form->type, attrs_of(g, d), nin, in, d->nout);
	op->overload = d->fn->overload;
	op->call = d->fn;
	return op;
}

bool
om_grad_fused(om_grad *g, const struct om_fused *form)
{
	const om_op *op = om_grad_op(g);

	if (!form || op->nin > MOST_ENDS || op->nout > MOST_ENDS || op->in[0]->shape.rank < 0)
		return false;
	const struct om_drawn *d = drawn_for(g, form);
	if (!d->fn)
		return om_grad_failed(g);
	om_op *call = open_call(g, form, d);
	om_emit_done(g, call);
	om_grad_set_zero(g);
	for (uint32_t k = 0; k < d->nout; k++)
		om_grad_set_input_grad(g, d->out[k], call->out[k]);
	return true;
}

/* ---- Gradients of these ops: those of the function. ---- */

static void
clone_function(om_grad *g, om_value **out)
{
	const om_op *call = om_grad_op(g);
	const om_block *body = call->call->body;
	struct om_tape *t = om_grad_scope(g)->tape;
	om_clone c = om_clone_new(t->session, t->p, body->prog, t->mem,
		om_printf(t->mem, "%s/", om_tape_name(t, om_printf(t->mem, "%s_body", call->out[0]->name))));

	for (uint32_t k = 0; k < call->nin; k++)
		c.value[body->param[k]->id] = om_grad_forward_input(g, k);
	for (const om_op *op = body->first; op && t->status == OM_OK; op = op->next) {
		om_op *copy;
		om_tape_fail(t, om_op_clone(&c, op, om_grad_scope(g)->to, NULL, &copy));
		if (t->status == OM_OK)
			om_tape_fail(t, om_op_infer(t->session, t->p, copy));
		if (t->status == OM_OK && copy->nin == 0)
			om_tape_fail(t, om_op_fold(t->session, t->p, copy, &OM_FOLD_ANY, NULL));
	}
	for (uint32_t k = 0; k < call->nout && t->status == OM_OK; k++)
		out[k] = c.value[body->result[k]->id];
}

static void
fused_call_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);

	if (op->call && op->nin <= op->call->body->nparam && op->nout <= op->call->body->nresult)
		om_grad_by_decomposition(g, clone_function);
	else
		om_grad_fail(g, OM_UNSUPPORTED,
			"its gradient is that of its function, which the model does not have");
}

/* ---- The table. ---- */

const om_gradient om_gradients_fused[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "ConvGrad", .since = 1, .rule = fused_call_grad},
	{.domain = OM_GRAD_DOMAIN, .name = "MaxPoolGrad", .since = 1, .rule = fused_call_grad},
	{.domain = OM_GRAD_DOMAIN, .name = "BatchNormalizationGrad", .since = 1, .rule = fused_call_grad},
	{.domain = OM_GRAD_DOMAIN, .name = "Update", .since = 1, .rule = fused_call_grad},
	{0}
};
