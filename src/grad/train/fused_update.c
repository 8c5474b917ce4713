/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of parameters in one op each: calls of a function, whose body is the update in standard operators.
 *
 * Parameters of one element type share the function, so its body does not know their shapes.  The call names the optimizer
 * and has its hyperparameters, in the type of the parameter: the numbers that the body has as constants. */
#include <config.h>

#include "grad/bodies.h"
#include "grad/functions.h"
#include "grad/train/training_step.h"
#include "ir/edit.h"
#include "ir/type.h"
#include "opdef/update_op.h"

struct om_update_function {
	om_function *fn;                   /* NULL: no kernel */
	const om_attr *attr;
	bool is_given[OM_UPDATE_INPUTS];   /* the body reads it */
	uint32_t nin, nout;
};

static const char *const input_name[OM_UPDATE_INPUTS] = {"W", "dW", "rate", "step", "root", "left", "S1", "S2"};

/* The inputs, in the order of the operator. */
static void
list_inputs(const struct om_update *u, om_value **in)
{
	om_value *const all[OM_UPDATE_INPUTS] = {u->w, u->g, u->c->rate, u->c->step, u->c->root, u->c->left, u->state[0],
		u->state[1]};

	memcpy(in, all, sizeof all);
}

/* ---- The body. ---- */

/* Parameters like the values of `u`: tensors of any shape, and scalars. */
static void
add_params(om_block *body, const struct om_update *u, struct om_update_common *c, struct om_update *inner)
{
	om_value **const to[OM_UPDATE_INPUTS] = {&inner->w, &inner->g, &c->rate, &c->step, &c->root, &c->left, &inner->state[0],
		&inner->state[1]};
	om_value *like[OM_UPDATE_INPUTS];

	list_inputs(u, like);
	inner->c = c;
	for (uint32_t k = 0; k < OM_UPDATE_INPUTS; k++) {
		om_value *v = om_value_new(body->prog, body, input_name[k]);
		v->type = u->w->type;
		v->shape = k >= OM_UPDATE_RATE && k <= OM_UPDATE_LEFT ? om_shape_of(0, NULL) : (om_shape){.rank = -1};
		v->is_declared = true;
		om_block_add_param(body, v);
		if (like[k])
			*to[k] = v;
	}
}

static void
mark_reads(const om_block *body, bool *is_read)
{
	for (const om_op *op = body->first; op; op = op->next)
		om_mark_reads(op, is_read);
}

/* Inputs that the body does not read are omitted. */
static void
find_inputs(struct om_update_function *f, om_block *body, bool *is_read)
{
	for (uint32_t k = 0; k < OM_UPDATE_INPUTS; k++) {
		f->is_given[k] = is_read[body->param[k]->id];
		if (f->is_given[k])
			f->nin = k + 1;
		is_read[body->param[k]->id] = false;
	}
	body->nparam = f->nin;
}

/* False: building failed. */
static bool
build_body(struct learn *l, const struct om_update_rule *r, const struct om_update *u, struct om_update_function *f,
	om_block *body)
{
	struct om_tape t = {.session = l->session, .p = body->prog, .mem = l->tape.mem};
	struct om_update_common c = {0};
	struct om_update inner = {0};

	om_tape_start(&t);
	t.phase = OM_UPDATE;
	add_params(body, u, &c, &inner);
	om_grad *g = om_tape_grad(&t);
	om_update_build(g, r, &inner);
	om_emit_result(g, inner.next);
	for (uint32_t k = 0; k < r->nstate; k++)
		om_emit_result(g, inner.state_next[k]);
	om_tape_fail(&l->tape, t.status);
	if (t.status != OM_OK)
		return false;
	bool *is_read = OM_NEWN(l->tape.mem, bool, (size_t)body->prog->nvalue + 1);
	mark_reads(body, is_read);
	find_inputs(f, body, is_read);
	om_function_constants(body, OM_UPDATE, is_read);
	return true;
}

/* ---- Attributes. ---- */

/* Numbers as constants of `type`. */
static const om_attr *
make_attrs(struct learn *l, const struct om_update_rule *r, const om_value *like)
{
	const om_train_options *how = r->how;
	const double number[OM_UPDATE_NUMBERS] = {[OM_UPDATE_MOMENTUM] = how->momentum, [OM_UPDATE_BETA1] = how->beta1,
		[OM_UPDATE_LEFT1] = 1 - how->beta1, [OM_UPDATE_BETA2] = how->beta2, [OM_UPDATE_LEFT2] = 1 - how->beta2,
		[OM_UPDATE_EPSILON] = how->epsilon, [OM_UPDATE_DECAY] = how->decay};
	om_arena *mem = l->p->mem;
	om_tensor *t = OM_NEW(mem, om_tensor);
	om_attr *list = OM_NEWN(mem, om_attr, 3);
	const size_t one = om_dtype_bits(om_type_elem(&like->type)) / 8;
	unsigned char *data = OM_NEWN(mem, unsigned char, OM_UPDATE_NUMBERS * one);

	*t = (om_tensor){.type = om_type_elem(&like->type), .shape = om_shape_of(1, (int64_t[]){OM_UPDATE_NUMBERS}), .data = data};
	for (uint32_t k = 0; k < OM_UPDATE_NUMBERS; k++)
		memcpy(data + k * one, om_emit_number(l->g, like, number[k])->data->data, one);
	list[0] = om_attr_make_string(l->g, "optimizer", l->how->optimizer);
	list[1] = (om_attr){.name = "numbers", .kind = OM_ATTR_TENSOR, .n = 1, .t = t};
	return list;
}

static om_op *
open_call(struct learn *l, const struct om_update_function *f, const struct om_update *u)
{
	om_value *in[OM_UPDATE_INPUTS];

	list_inputs(u, in);
	for (uint32_t k = 0; k < f->nin; k++)
		if (!f->is_given[k])
			in[k] = NULL;
	return om_emit_open(l->g, OM_GRAD_DOMAIN, "Update", f->attr, f->nin, in, f->nout);
}

/* Whether there is a kernel for such a call. */
static bool
has_kernel(const struct om_update_function *f, om_block *body)
{
	om_op *op = om_op_new(body->prog, OM_GRAD_DOMAIN, "Update", 1, f->nin, f->nout);

	for (uint32_t k = 0; k < f->nin; k++)
		if (f->is_given[k])
			om_op_set_in(op, k, body->param[k]);
	for (const om_attr *a = f->attr; a->name; a++)
		om_op_add_attr(body->prog, op, a);
	return om_op_bind(op);
}

static struct om_update_function *
draw(struct learn *l, const struct om_update_rule *r, const struct om_update *u)
{
	static const char *const attr[] = {"optimizer", "numbers"};
	struct om_update_function *f = OM_NEW(l->tape.mem, struct om_update_function);
	om_block *body = om_function_body(l->p, "Update");

	*f = (struct om_update_function){.nout = 1 + r->nstate};
	if (!build_body(l, r, u, f, body))
		return f;
	f->attr = make_attrs(l, r, u->w);
	if (has_kernel(f, body))
		f->fn = om_function_add(l->p, body, attr, sizeof attr / sizeof *attr);
	return f;
}

bool
om_update_fused(struct learn *l, const struct om_update_rule *r, struct om_update_function **drawn, struct om_update *u)
{
	if (!*drawn)
		*drawn = draw(l, r, u);
	const struct om_update_function *f = *drawn;
	if (!f->fn)
		return false;
	om_op *call = open_call(l, f, u);
	call->overload = f->fn->overload;
	call->call = f->fn;
	om_emit_done(l->g, call);
	u->next = call->out[0];
	for (uint32_t k = 0; k < r->nstate; k++)
		u->state_next[k] = call->out[1 + k];
	return true;
}
