/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers, built of standard operators.
 *
 * Values that all parameters share are computed once.  With g the gradient, w the parameter, lr the
 * learning rate:
 *
 *     sgd       w - lr g
 *     momentum  m <- mu m + g, w - lr m
 *     adam      m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g g,
 *               w - lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + epsilon)
 *     nesterov  m <- mu m + g, w - lr (g + mu m)
 *     rmsprop   v <- b2 v + (1 - b2) g g, w - lr g / (sqrt(v) + epsilon)
 *     adagrad   v <- v + g g, w - lr g / (sqrt(v) + epsilon)
 *     lamb      m and v as adam, u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + d w,
 *               w - lr |w| / |u| u, and w - lr u where a norm is zero
 *
 * A weight decay d adds d w to g; that of adamw shrinks w by lr d instead (Loshchilov and Hutter,
 * 2019), that of lamb is in u.  Adam: Kingma and Ba, 2015.  Nesterov: as Sutskever and others write it, 2013.
 * RMSProp: Tieleman and Hinton, 2012.  Adagrad: Duchi, Hazan and Singer, 2011.  LAMB: You and others, 2020. */
#include <config.h>

#include "grad/grad_dsl.h"
#include "grad/grad_builder.h"
#include "grad/train/training_step.h"
#include "ir/edit.h"
#include "ir/type.h"

struct rules {
	struct learn *l;
	om_value *rate, *t;      /* inputs: lr; the number of steps, including this one */
	struct om_update_common common[OM_NDTYPE];
	struct om_update_function *drawn[OM_NDTYPE];
};

static om_value *
new_input(struct learn *l, const char *name, const om_value *like, const om_shape *shape, double from)
{
	om_value *v = om_tape_value(&l->tape, l->p->first, name);
	om_tensor *t = OM_NEW(l->p->mem, om_tensor);

	*t = *om_emit_number(l->g, like, from)->data;
	t->shape = *shape;
	t->splat = true;
	v->type = (om_type){.kind = OM_TENSOR, .elem = t->type};
	v->shape = *shape;
	v->data = t;
	v->is_overridable = true;
	v->is_declared = true;
	om_block_add_param(l->p->first, v);
	om_step_wish(l, v, name);
	return v;
}

/* A state that is initialized with zeros. */
static om_value *
new_state(struct learn *l, const om_value *w, const char *what)
{
	return new_input(l, om_printf(l->tape.mem, "%s_%s", w->name, what), w, &w->shape, 0);
}

static void
hand_on(struct learn *l, om_value *old, om_value *next)
{
	om_value_rename(next, om_tape_name(&l->tape, om_printf(l->tape.mem, "%s_next", old->name)));
	om_step_state(l, old, next);
}

/* 1 - b^t, in double precision: in float the first steps would have an error of several hundred times
 * their rounding error, because b is close to 1. */
static om_value *
left_of(struct rules *r, om_value *t, double b)
{
	om_grad *g = r->l->g;
	om_value *times = om_emit_cast(g, t, OM_FLOAT64);

	return AS_NUMBER(FROM(1, om_emit(g, "Pow", om_emit_number(g, times, b), times)), t);
}

static const struct om_update_common *
common_of(struct rules *r, const om_value *w)
{
	struct om_update_common *c = &r->common[om_type_elem(&w->type)];
	const om_train_options *how = r->l->how;
	om_grad *g = r->l->g;

	if (c->rate)
		return c;
	c->rate = AS_NUMBER(r->rate, w);
	if (r->t) {
		om_value *left = left_of(r, r->t, how->beta1);
		c->left = AS_NUMBER(left, w);
		c->step = AS_NUMBER(DIV(r->rate, left), w);
		c->root = AS_NUMBER(DO("Sqrt", left_of(r, r->t, how->beta2)), w);
	}
	return c;
}

/* ---- The updates of one parameter. ---- */

static void
update_plain(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	(void)r;
	u->next = SUB(u->w, MUL(u->g, u->c->rate));
}

static void
update_by(om_grad *g, struct om_update *u, om_value *direction)
{
	u->next = SUB(u->w, MUL(direction, u->c->rate));
}

static void
update_momentum(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	om_value *next = ADD(TIMES(u->state[0], r->how->momentum), u->g);

	u->state_next[0] = next;
	update_by(g, u, next);
}

/* b old + (1 - b) v */
static om_value *
mixed(om_grad *g, om_value *old, om_value *v, double b)
{
	return ADD(TIMES(old, b), TIMES(v, 1 - b));
}

static void
update_nesterov(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	const double mu = r->how->momentum;
	om_value *next = ADD(TIMES(u->state[0], mu), u->g);

	u->state_next[0] = next;
	update_by(g, u, ADD(u->g, TIMES(next, mu)));
}

/* v / (sqrt(s) + epsilon) */
static om_value *
scaled(om_grad *g, const struct om_update_rule *r, om_value *v, om_value *s)
{
	return DIV(v, PLUS(DO("Sqrt", s), r->how->epsilon));
}

static void
update_rmsprop(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	u->state_next[0] = mixed(g, u->state[0], MUL(u->g, u->g), r->how->beta2);
	update_by(g, u, scaled(g, r, u->g, u->state_next[0]));
}

static void
update_adagrad(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	u->state_next[0] = ADD(u->state[0], MUL(u->g, u->g));
	update_by(g, u, scaled(g, r, u->g, u->state_next[0]));
}

/* The moments of adam; returns sqrt(v / (1 - b2^t)) + epsilon. */
static om_value *
moments(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	u->state_next[0] = mixed(g, u->state[0], u->g, r->how->beta1);
	u->state_next[1] = mixed(g, u->state[1], MUL(u->g, u->g), r->how->beta2);
	return PLUS(DIV(DO("Sqrt", u->state_next[1]), u->c->root), r->how->epsilon);
}

static void
update_adam_from(om_grad *g, const struct om_update_rule *r, struct om_update *u, om_value *from)
{
	om_value *root = moments(g, r, u);

	u->next = SUB(from, MUL(DIV(u->state_next[0], root), u->c->step));
}

static void
update_adam(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	update_adam_from(g, r, u, u->w);
}

static void
update_adamw(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	const double decay = r->how->decay;

	update_adam_from(g, r, u, decay != 0 ? MUL(u->w, FROM(1, TIMES(u->c->rate, decay))) : u->w);
}

/* |w| / |u|, or one where either is zero. */
static om_value *
trust(om_grad *g, om_value *w, om_value *u)
{
	om_value *of_w = om_emit_attrs(g, "ReduceL2", OM_A(OM_MAKE_INT("keepdims", 0)), w);
	om_value *of_u = om_emit_attrs(g, "ReduceL2", OM_A(OM_MAKE_INT("keepdims", 0)), u);
	om_value *both = om_emit(g, "And", ABOVE(of_w, 0), ABOVE(of_u, 0));

	return WHERE(both, DIV(of_w, of_u), om_emit_number(g, w, 1));
}

static void
update_lamb(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	const double decay = r->how->decay;
	om_value *root = moments(g, r, u);
	om_value *by = DIV(DIV(u->state_next[0], u->c->left), root);

	if (decay != 0)
		by = ADD(by, TIMES(u->w, decay));
	update_by(g, u, MUL(by, trust(g, u->w, by)));
}

/* All optimizers: how each updates a parameter by its gradient. */
static const struct optimizer {
	const char *name;
	void (*update)(om_grad *g, const struct om_update_rule *r, struct om_update *u);
	const char *state[OM_UPDATE_STATES]; /* suffixes of the names of its states */
	bool counts;             /* it reads the number of steps */
	bool decays;             /* weight decay is not a part of the gradient */
} optimizers[] = {
	{"sgd", update_plain, {NULL}, false, false},
	{"momentum", update_momentum, {"momentum"}, false, false},
	{"nesterov", update_nesterov, {"momentum"}, false, false},
	{"adam", update_adam, {"adam_m", "adam_v"}, true, false},
	{"adamw", update_adamw, {"adam_m", "adam_v"}, true, true},
	{"rmsprop", update_rmsprop, {"rmsprop_v"}, false, false},
	{"adagrad", update_adagrad, {"adagrad_v"}, false, false},
	{"lamb", update_lamb, {"lamb_m", "lamb_v"}, true, true},
};

void
om_update_build(om_grad *g, const struct om_update_rule *r, struct om_update *u)
{
	const double decay = r->how->decay;

	if (decay != 0 && !r->optimizer->decays)
		u->g = ADD(u->g, TIMES(u->w, decay));
	r->optimizer->update(g, r, u);
}

static void
update(struct rules *all, const struct om_update_rule *r, om_value *w, om_value *v)
{
	struct learn *l = all->l;
	struct om_update u = {.c = common_of(all, w), .w = w, .g = v};

	for (uint32_t k = 0; k < r->nstate; k++)
		u.state[k] = new_state(l, w, r->optimizer->state[k]);
	if (!l->how->fuses_updates || !om_update_fused(l, r, &all->drawn[om_type_elem(&w->type)], &u))
		om_update_build(l->g, r, &u);
	for (uint32_t k = 0; k < r->nstate; k++)
		hand_on(l, u.state[k], u.state_next[k]);
	hand_on(l, w, u.next);
}

/* NULL, with a message, if there is none. */
static const struct optimizer *
find_optimizer(const struct learn *l)
{
	for (size_t k = 0; k < sizeof optimizers / sizeof optimizers[0]; k++)
		if (strcmp(l->how->optimizer, optimizers[k].name) == 0)
			return &optimizers[k];
	om_fail(l->session, OM_USAGE, "unknown optimizer %s, expected sgd, momentum, nesterov, adam, adamw, rmsprop, adagrad or lamb",
		l->how->optimizer);
	return NULL;
}

static om_status
check_weights(const struct learn *l)
{
	for (uint32_t k = 0; k < l->nwrt; k++)
		if (l->wrt[k]->def || l->wrt[k]->block != l->p->first || !om_shape_is_known(&l->wrt[k]->shape))
			return om_fail(l->session, OM_USAGE,
				"%s cannot be updated: it is neither a weight nor an input of known shape",
				l->wrt[k]->name);
	return OM_OK;
}

om_status
om_step_update(struct learn *l)
{
	struct rules r = {.l = l};
	const om_shape number = om_shape_of(0, NULL);
	const struct optimizer *o = find_optimizer(l);
	om_grad *g = l->g;

	if (!o)
		return OM_USAGE;
	struct om_update_rule rule = {.optimizer = o, .how = l->how};
	while (rule.nstate < OM_UPDATE_STATES && o->state[rule.nstate])
		rule.nstate++;
	OM_TRY(check_weights(l));
	for (uint32_t k = 0; k < l->nwrt; k++) {
		l->wrt[k]->is_const = false;
		l->wrt[k]->is_overridable = l->wrt[k]->data != NULL;
	}
	om_value *like = om_emit_number(g, l->wrt[0], 0);
	om_value any = *like;
	if (om_dtype_bits(any.type.elem) < 32)
		any.type.elem = OM_FLOAT32;
	r.rate = new_input(l, "lr", &any, &number, l->how->rate);
	if (o->counts) {
		om_value *t = new_input(l, "adam_t", &any, &number, 0);
		r.t = PLUS(t, 1);
		hand_on(l, t, r.t);
	}
	for (uint32_t k = 0; k < l->nwrt; k++)
		update(&r, &rule, l->wrt[k], l->grad[k]);
	return l->tape.status;
}
