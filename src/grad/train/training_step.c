/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of a model into a training step.
 *
 * The parts are built in this order: the loss, if the model has none; the backward path; gradient
 * clipping; the optimizer's update of every parameter.  Parameters and states become inputs with the
 * initializers as defaults, and their updated values are results that are carried to the next run: a
 * run of the step has no other effect, so any runtime can execute it. */
#include <config.h>

#include "base/guard.h"
#include "base/options.h"
#include "base/shape.h"
#include "grad/grad_builder.h"
#include "grad/grad_dsl.h"
#include "grad/old_program.h"
#include "grad/train/training_step.h"
#include "ir/edit.h"
#include "ir/facts.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/fold.h"

/* ---- Names. ---- */

static om_value *
find_value(om_prog *p, const char *name)
{
	return om_value_find(p->first, name);
}

static om_status
no_value(om_session *s, const char *name)
{
	return om_fail(s, OM_USAGE, "the graph has no value %s", name);
}

/* ---- Training mode. ---- */

static void
make_trained(struct learn *l, om_op *op)
{
	const om_gradient *r = om_op_gradient(l->p, op);

	if (r && r->to_training_mode)
		r->to_training_mode(l->g, op);
}

static void
as_in_training(struct learn *l)
{
	for (om_block *b = l->p->first; b; b = b->next)
		for (om_op *op = b->first; op; op = op->next)
			make_trained(l, op);
}

/* ---- The loss. ---- */

static om_value *
new_label(struct learn *l, om_dtype type, const om_shape *shape)
{
	const char *name = l->how->label ? l->how->label : "label";
	om_value *v = om_tape_value(&l->tape, l->p->first, name);

	om_step_wish(l, v, name);
	v->type = (om_type){.kind = OM_TENSOR, .elem = type};
	v->shape = *shape;
	v->is_declared = true;
	om_block_add_param(l->p->first, v);
	l->p->first->is_other = true;
	return v;
}

/* Whether `y` holds probabilities or log-probabilities over axis 1. */
static om_softmax_output
softmax_output_of(om_prog *p, const om_value *y)
{
	const om_op *op = y->def;

	const om_gradient *r = op ? om_op_gradient(p, op) : NULL;

	if (!r || r->softmax_output == OM_NOT_PROBS)
		return OM_NOT_PROBS;
	const int64_t axis = om_attr_int(op, "axis");
	return axis == 1 || axis == 1 - y->shape.rank ? r->softmax_output : OM_NOT_PROBS;
}

/* The loss is computed from logits: a softmax at the end of the model becomes part of the loss. */
static om_value *
cross_entropy(struct learn *l, om_value *y)
{
	om_grad *g = l->g;
	om_shape shape;
	const char *type = "SoftmaxCrossEntropyLoss";

	if (y->shape.rank < 2) {
		om_grad_fail(g, OM_SHAPE, "cross-entropy requires a class axis 1, which %s does not have", y->name);
		return y;
	}
	switch (softmax_output_of(l->p, y)) {
	case OM_NOT_PROBS:
		break;
	case OM_PROBS:
		y = y->def->in[0];
		break;
	case OM_LOG_PROBS:
		type = "NegativeLogLikelihoodLoss";
		break;
	}
	shape = y->shape;
	for (int d = 2; d < shape.rank; d++) {
		shape.dim[d - 1] = shape.dim[d];
		shape.sym[d - 1] = shape.sym[d];
	}
	shape.rank--;
	return om_emit(g, type, y, new_label(l, OM_INT64, &shape));
}

static om_value *
squares(struct learn *l, om_value *y)
{
	om_grad *g = l->g;
	om_value *d = SUB(y, new_label(l, om_type_elem(&y->type), &y->shape));

	return om_emit_attrs(g, "ReduceMean", OM_A(om_attr_make_int(g, "keepdims", 0)), MUL(d, d));
}

static om_status
find_loss(struct learn *l)
{
	const om_train_options *how = l->how;
	om_prog *p = l->p;
	const char *name = how->loss_fn ? how->output : how->loss;

	if (!how->loss_fn && !how->loss)
		return om_fail(l->session, OM_USAGE, "a loss is required: the name of a value, or a loss function");
	om_value *v = name ? find_value(p, name) : p->first->nresult ? p->first->result[0] : NULL;
	if (!v)
		return no_value(l->session, name ? name : "that is a result");
	l->loss = v;
	if (!how->loss_fn)
		return OM_OK;
	l->tape.phase = OM_FORWARD;
	if (strcmp(how->loss_fn, "cross-entropy") == 0)
		l->loss = cross_entropy(l, v);
	else if (strcmp(how->loss_fn, "mse") == 0)
		l->loss = squares(l, v);
	else
		return om_fail(l->session, OM_USAGE,
			"unknown loss %s, expected cross-entropy or mse", how->loss_fn);
	name = how->loss ? how->loss : "loss";
	om_value_rename(l->loss, om_tape_name(&l->tape, name));
	om_step_wish(l, l->loss, name);
	return l->tape.status;
}

/* ---- Trained parameters. ---- */

static bool
is_statistic_input(om_prog *p, const om_op *op, uint32_t k)
{
	const om_gradient *r = om_op_gradient(p, op);

	return r && r->statistics >> k & 1;
}

/* Is it read as a running statistic? */
static bool
is_statistic(om_prog *p, const om_value *v)
{
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			for (uint32_t k = 0; k < op->nin && k < 32; k++)
				if (op->in[k] == v && is_statistic_input(p, op, k))
					return true;
	return false;
}

/* An initializer of the graph of rank 1 or more: scalars are settings; running statistics are excluded
 * as well. */
static bool
is_weight(om_prog *p, const om_value *v)
{
	return v->block == p->first && !v->def && v->data && v->shape.rank > 0 && om_shape_count(&v->shape) > 0
	    && om_dtype_is_float(om_type_elem(&v->type)) && om_dtype_bits(om_type_elem(&v->type)) >= 16
	    && !is_statistic(p, v);
}

/* Some exporters store weights as Constant ops, in the bodies of If, Loop and Scan as well. */
static bool
is_written_as_op(om_prog *p, const om_value *v)
{
	const om_op *op = v->def;

	if (!op || !op->block || op->nin || !op->opdef || !op->opdef->cpu || op->opdef->flags & (OM_RANDOM | OM_EFFECT | OM_NON_TENSOR))
		return false;
	return om_shape_is_known(&v->shape) && om_shape_count(&v->shape) > 1 && om_dtype_is_float(om_type_elem(&v->type))
	    && om_dtype_bits(om_type_elem(&v->type)) >= 16 && !is_statistic(p, v);
}

static bool
is_name_of_another(const om_prog *p, const om_value *v)
{
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->values[k] != v && strcmp(p->values[k]->name, v->name) == 0)
			return true;
	return false;
}

/* The output of an op without inputs becomes an initializer of the graph, which can be trained. */
static om_status
lift(struct learn *l, om_value *v)
{
	om_op *op = v->def;

	if (!v->data)
		OM_TRY(om_op_fold(l->session, l->p, op, &OM_FOLD_ANY, NULL));
	if (!v->data)
		return om_op_fail(l->session, OM_UNSUPPORTED, op, "its elements are not known");
	om_op_remove(op);
	if (v->block != l->p->first && is_name_of_another(l->p, v))
		om_value_rename(v, om_tape_name(&l->tape, v->name));
	v->block = l->p->first;
	v->is_const = true;
	return OM_OK;
}

/* Train the outputs of ops without inputs, if no initializer is a weight. */
static om_status
lift_weights(struct learn *l)
{
	for (uint32_t k = 0; k < l->known; k++) {
		om_value *v = l->p->values[k];
		if (!is_written_as_op(l->p, v))
			continue;
		OM_TRY(lift(l, v));
		l->wrt[l->nwrt++] = v;
	}
	return OM_OK;
}

static om_status
find_weights(struct learn *l)
{
	om_prog *p = l->p;
	const uint32_t nvalue = p->nvalue;

	l->wrt = OM_NEWN(l->tape.mem, om_value *, (size_t)nvalue + l->how->nwrt + 1);
	for (size_t k = 0; k < l->how->nwrt; k++) {
		l->wrt[l->nwrt] = find_value(p, l->how->wrt[k]);
		if (!l->wrt[l->nwrt])
			return no_value(l->session, l->how->wrt[k]);
		for (uint32_t i = 0; i < l->nwrt; i++)
			if (l->wrt[i] == l->wrt[l->nwrt])
				return om_fail(l->session, OM_USAGE, "%s is listed twice", l->how->wrt[k]);
		if (!l->how->copies && is_written_as_op(p, l->wrt[l->nwrt]))
			OM_TRY(lift(l, l->wrt[l->nwrt]));
		l->nwrt++;
	}
	for (uint32_t k = 0; k < l->known && !l->how->wrt; k++)
		if (is_weight(p, p->values[k]) && !om_step_state_of(l, p->values[k]))
			l->wrt[l->nwrt++] = p->values[k];
	return l->nwrt || l->how->copies ? OM_OK : lift_weights(l);
}

/* Constants that were computed from weights are no longer constant. */
static void
forget_constants(om_prog *p)
{
	for (uint32_t k = 0; k < p->nvalue; k++) {
		om_value *v = p->values[k];
		if (v->def && om_dtype_is_float(om_type_elem(&v->type))) {
			v->data = NULL;
			v->is_const = false;
		}
	}
	for (om_block *b = p->first; b; b = b->next)
		for (om_op *op = b->first; op; op = op->next)
			op->is_folded = false;
	om_facts_set(p, OM_HAS_INLINE | OM_HAS_SHAPES, 0);
}

enum { FOLD_LIMIT = 4096 };

/* Fold what does not depend on weights: rules require sizes, such as computed scales of Resize. */
static om_status
find_constants(struct learn *l)
{
	const om_tensor **data = OM_NEWN(l->tape.mem, const om_tensor *, (size_t)l->nwrt + 1);
	bool *was = OM_NEWN(l->tape.mem, bool, (size_t)l->nwrt + 1);
	om_fold_counts counts;

	for (uint32_t k = 0; k < l->nwrt; k++) {
		data[k] = l->wrt[k]->data;
		was[k] = l->wrt[k]->is_const;
		l->wrt[k]->data = NULL;
		l->wrt[k]->is_const = false;
	}
	const om_status st = om_prog_fold(l->session, l->p, (om_fold_limits){FOLD_LIMIT, OM_FOLD_WORK}, &counts);
	for (uint32_t k = 0; k < l->nwrt; k++) {
		l->wrt[k]->data = data[k];
		l->wrt[k]->is_const = was[k];
	}
	return st;
}

/* Weights that the loss does not depend on are not trained, unless they were named. */
static om_status
keep_reached(struct learn *l)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < l->nwrt; k++) {
		if (!l->grad[k] && l->how->wrt)
			return om_fail(l->session, OM_USAGE, "the loss %s does not depend on %s", l->loss->name,
				l->wrt[k]->name);
		if (!l->grad[k])
			continue;
		l->wrt[n] = l->wrt[k];
		l->grad[n++] = l->grad[k];
	}
	l->nwrt = n;
	return n ? OM_OK : om_fail(l->session, OM_USAGE,
		"the loss %s depends on no weight of the graph", l->loss->name);
}

/* ---- Clipping. ---- */

static void
clip_values(struct learn *l)
{
	om_grad *g = l->g;

	for (uint32_t k = 0; k < l->nwrt; k++)
		l->grad[k] = om_emit(g, "Clip", l->grad[k], om_emit_number(g, l->grad[k], -l->how->clip_value),
			om_emit_number(g, l->grad[k], l->how->clip_value));
}

/* Clip the global L2 norm of all gradients: they are scaled down, never up. */
static void
clip_norm(struct learn *l)
{
	om_grad *g = l->g;
	om_value *all = NULL;

	for (uint32_t k = 0; k < l->nwrt; k++) {
		om_value *one = om_emit_attrs(g, "ReduceSumSquare", OM_A(om_attr_make_int(g, "keepdims", 0)), l->grad[k]);
		one = om_emit_cast(g, one, om_type_elem(&l->grad[0]->type));
		all = all ? ADD(all, one) : one;
	}
	om_value *norm = DO("Sqrt", all);
	om_value *share = om_emit(g, "Min", DIV(om_emit_number(g, norm, l->how->clip_norm), PLUS(norm, 1e-6)),
		om_emit_number(g, norm, 1));
	for (uint32_t k = 0; k < l->nwrt; k++)
		l->grad[k] = MUL(l->grad[k], AS_NUMBER(share, l->grad[k]));
}

/* ---- Inputs and results. ---- */

void
om_step_state(struct learn *l, om_value *old, om_value *next)
{
	struct state *s = OM_NEW(l->tape.mem, struct state);

	*s = (struct state){old, next, NULL};
	*(l->last ? &l->last->next_state : &l->states) = s;
	l->last = s;
}

struct state *
om_step_state_of(const struct learn *l, const om_value *old)
{
	for (struct state *s = l->states; s; s = s->next_state)
		if (s->old == old)
			return s;
	return NULL;
}

/* A weight becomes an input with its elements as default. */
static void
make_param(om_prog *p, om_value *v)
{
	v->is_const = false;
	if (v->data)
		v->is_overridable = true;
	for (uint32_t k = 0; k < p->first->nparam; k++)
		if (p->first->param[k] == v)
			return;
	om_block_add_param(p->first, v);
}

static uint32_t
place_of(om_value *const *list, uint32_t n, const om_value *v)
{
	uint32_t k = 0;

	while (k < n && list[k] != v)
		k++;
	return k;
}

/* A separate result, even if another name refers to the same value. */
static om_value *
as_result(struct learn *l, om_value *v, const char *name)
{
	if (strcmp(v->name, name) == 0)
		return v;
	v = om_emit(l->g, "Identity", v);
	om_value_rename(v, om_tape_name(&l->tape, name));
	om_tape_named(&l->tape, v);
	om_step_wish(l, v, name);
	return v;
}

static bool
is_handed_on(const struct learn *l, uint32_t result)
{
	for (uint32_t k = 0; k < l->nbefore; k++)
		if (l->before[k].result == result)
			return true;
	return false;
}

/* The loss comes first.  Aliases refer to results by position, and the positions change. */
static void
start_results(struct learn *l)
{
	om_block *b = l->p->first;
	const bool keeps = l->how->keeps_outputs || !l->how->optimizer;
	const uint32_t n = b->nresult;

	l->result = b->result;
	l->before = l->p->io_alias;
	l->nbefore = l->p->nio_alias;
	om_prog_clear_ties(l->p);
	b->is_other = true;
	om_block_clear_results(b);
	om_block_add_result(b, l->loss);
	for (uint32_t k = 0; k < n; k++)
		if ((keeps || is_handed_on(l, k)) && l->result[k] != l->loss)
			om_block_add_result(b, l->result[k]);
}

/* Keep the input/output aliases of the original program, except for parameters that get another value. */
static void
hand_on_as_before(struct learn *l)
{
	const om_block *b = l->p->first;

	for (uint32_t k = 0; k < l->nbefore; k++)
		om_prog_alias_io(l->p, place_of(b->result, b->nresult, l->result[l->before[k].result]), l->before[k].param);
}

/* Alias each updated state with its old value. */
static om_status
hand_on(struct learn *l)
{
	for (struct state *s = l->states; s; s = s->next_state) {
		make_param(l->p, s->old);
		if (!om_prog_add_state(l->p, s->old, s->next))
			return om_fail(l->session, OM_SHAPE, "%s cannot be the next value of %s: their types or shapes differ",
				s->next->name, s->old->name);
	}
	return OM_OK;
}

static void
give_gradients(struct learn *l)
{
	for (uint32_t k = 0; k < l->nwrt; k++)
		om_block_add_result(l->p->first,
			as_result(l, l->grad[k], om_printf(l->tape.mem, "%s_grad", l->wrt[k]->name)));
}

/* ---- The opset. ---- */

static om_status
raise_opset(om_session *s, om_prog *p, const om_train_options *how)
{
	if (!om_prog_is_old(p))
		return OM_OK;
	if (how->copies)
		return om_fail(s, OM_UNSUPPORTED,
			"gradients require a newer opset than the graph has, which must stay unchanged: "
			"convert it first");
	return p->operators->convert(s, p);
}

/* ---- The training step. ---- */

static om_status
learn(struct learn *l)
{
	om_prog *p = l->p;

	om_tape_start(&l->tape);
	l->g = om_tape_grad(&l->tape);
	if (l->how->trains)
		as_in_training(l);
	OM_TRY(find_loss(l));
	OM_TRY(find_weights(l));
	forget_constants(p);
	OM_TRY(find_constants(l));
	for (om_op *op = p->first->first; op; op = op->next)
		op->phase = OM_FORWARD;
	l->grad = OM_NEWN(l->tape.mem, om_value *, (size_t)l->nwrt + 1);
	om_backward b = OM_BACKWARD(.loss = l->loss, .wrt = l->wrt, .nwrt = l->nwrt, .grad = l->grad, .copies = l->how->copies,
		.functions = l->how->functions);
	OM_TRY(om_prog_backward(l->session, p, &b));
	forget_constants(p);
	OM_TRY(keep_reached(l));
	om_tape_start(&l->tape);  /* new names were added */
	/* It clips gradients that are complete, of the whole batch. */
	if (l->how->optimizer)
		l->tape.phase = OM_UPDATE;
	if (l->how->clip_value > 0)
		clip_values(l);
	if (l->how->clip_norm > 0)
		clip_norm(l);
	start_results(l);
	l->tape.phase = OM_UPDATE;
	if (l->how->optimizer)
		OM_TRY(om_step_update(l));
	else
		give_gradients(l);
	OM_TRY(hand_on(l));
	hand_on_as_before(l);
	OM_TRY(om_step_settle(l));
	return l->tape.status;
}

static om_status
prog_learn_guarded(om_session *s, om_prog *p, const om_train_options *requested)
{
	om_train_options read, *how = &read;

	OM_TRY(om_options_read(s, "om_train_options", "OM_TRAIN_OPTIONS", how, sizeof *how, sizeof *how, requested));
	struct learn l = {.session = s, .p = p, .how = how, .known = p->nvalue,
		.tape = {.session = s, .p = p, .copies = how->copies}};

	OM_TRY(raise_opset(s, p, how));
	l.tape.mem = om_arena_new();
	l.tape.step = &l;
	const om_status st = learn(&l);
	om_arena_free(l.tape.mem);
	return st;
}

om_status
om_prog_add_training_step(om_session *s, om_prog *p, const om_train_options *how)
{
	OM_GUARDED(s, prog_learn_guarded(s, p, how));
}
