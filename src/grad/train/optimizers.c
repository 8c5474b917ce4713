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

/* Values shared by all parameters of one type. */
struct common {
	om_dtype type;
	om_value *rate;          /* lr */
	om_value *left;          /* 1 - b1^t */
	om_value *step;          /* lr / (1 - b1^t) */
	om_value *root;          /* sqrt(1 - b2^t) */
};

struct rules {
	struct learn *l;
	om_value *rate, *t;      /* inputs: lr; the number of steps, including this one */
	struct common common[OM_NDTYPE];
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

static struct common *
common_of(struct rules *r, const om_value *w)
{
	struct common *c = &r->common[om_type_elem(&w->type)];
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

static void
update_plain(struct rules *r, om_value *w, om_value *v)
{
	om_grad *g = r->l->g;

	hand_on(r->l, w, SUB(w, MUL(v, common_of(r, w)->rate)));
}

static void
update_momentum(struct rules *r, om_value *w, om_value *v)
{
	om_grad *g = r->l->g;
	om_value *m = new_state(r->l, w, "momentum");
	om_value *next = ADD(TIMES(m, r->l->how->momentum), v);

	hand_on(r->l, m, next);
	update_plain(r, w, next);
}

/* b old + (1 - b) v */
static om_value *
mixed(struct rules *r, om_value *old, om_value *v, double b)
{
	om_grad *g = r->l->g;

	return ADD(TIMES(old, b), TIMES(v, 1 - b));
}

static void
update_nesterov(struct rules *r, om_value *w, om_value *v)
{
	const double mu = r->l->how->momentum;
	om_grad *g = r->l->g;
	om_value *m = new_state(r->l, w, "momentum");
	om_value *next = ADD(TIMES(m, mu), v);

	hand_on(r->l, m, next);
	update_plain(r, w, ADD(v, TIMES(next, mu)));
}

/* v / (sqrt(s) + epsilon) */
static om_value *
scaled(struct rules *r, om_value *v, om_value *s)
{
	om_grad *g = r->l->g;

	return DIV(v, PLUS(DO("Sqrt", s), r->l->how->epsilon));
}

static void
update_rmsprop(struct rules *r, om_value *w, om_value *v)
{
	om_grad *g = r->l->g;
	om_value *s = new_state(r->l, w, "rmsprop_v"), *next = mixed(r, s, MUL(v, v), r->l->how->beta2);

	hand_on(r->l, s, next);
	update_plain(r, w, scaled(r, v, next));
}

static void
update_adagrad(struct rules *r, om_value *w, om_value *v)
{
	om_grad *g = r->l->g;
	om_value *s = new_state(r->l, w, "adagrad_v"), *next = ADD(s, MUL(v, v));

	hand_on(r->l, s, next);
	update_plain(r, w, scaled(r, v, next));
}

/* The moments of adam: `*m` is the mean; returns sqrt(v / (1 - b2^t)) + epsilon. */
static om_value *
moments(struct rules *r, om_value *w, om_value *v, const char *name, om_value **m)
{
	const om_train_options *how = r->l->how;
	om_grad *g = r->l->g;
	const struct common *c = common_of(r, w);
	om_value *mean = new_state(r->l, w, om_printf(r->l->tape.mem, "%s_m", name));
	om_value *square = new_state(r->l, w, om_printf(r->l->tape.mem, "%s_v", name));

	*m = mixed(r, mean, v, how->beta1);
	om_value *square_next = mixed(r, square, MUL(v, v), how->beta2);
	hand_on(r->l, mean, *m);
	hand_on(r->l, square, square_next);
	return PLUS(DIV(DO("Sqrt", square_next), c->root), how->epsilon);
}

static void
update_adam_from(struct rules *r, om_value *w, om_value *v, om_value *from)
{
	om_grad *g = r->l->g;
	om_value *m, *root = moments(r, w, v, "adam", &m);

	hand_on(r->l, w, SUB(from, MUL(DIV(m, root), common_of(r, w)->step)));
}

static void
update_adam(struct rules *r, om_value *w, om_value *v)
{
	update_adam_from(r, w, v, w);
}

static void
update_adamw(struct rules *r, om_value *w, om_value *v)
{
	const double decay = r->l->how->decay;
	om_grad *g = r->l->g;

	update_adam_from(r, w, v, decay != 0 ? MUL(w, FROM(1, TIMES(common_of(r, w)->rate, decay))) : w);
}

/* |w| / |u|, or one where either is zero. */
static om_value *
trust(struct rules *r, om_value *w, om_value *u)
{
	om_grad *g = r->l->g;
	om_value *of_w = om_emit_attrs(g, "ReduceL2", OM_A(OM_MAKE_INT("keepdims", 0)), w);
	om_value *of_u = om_emit_attrs(g, "ReduceL2", OM_A(OM_MAKE_INT("keepdims", 0)), u);
	om_value *both = om_emit(g, "And", ABOVE(of_w, 0), ABOVE(of_u, 0));

	return WHERE(both, DIV(of_w, of_u), om_emit_number(g, w, 1));
}

static void
update_lamb(struct rules *r, om_value *w, om_value *v)
{
	const double decay = r->l->how->decay;
	om_grad *g = r->l->g;
	om_value *m, *root = moments(r, w, v, "lamb", &m);
	om_value *u = DIV(DIV(m, common_of(r, w)->left), root);

	if (decay != 0)
		u = ADD(u, TIMES(w, decay));
	update_plain(r, w, MUL(u, trust(r, w, u)));
}

/* An optimizer: how it updates a weight by its gradient. */
static const struct optimizer {
	const char *name;
	void (*update)(struct rules *r, om_value *w, om_value *v);
	bool counts;             /* it reads the number of steps */
	bool decays;             /* weight decay is not a part of the gradient */
} optimizers[] = {
	{"sgd", update_plain, false, false},
	{"momentum", update_momentum, false, false},
	{"nesterov", update_nesterov, false, false},
	{"adam", update_adam, true, false},
	{"adamw", update_adamw, true, true},
	{"rmsprop", update_rmsprop, false, false},
	{"adagrad", update_adagrad, false, false},
	{"lamb", update_lamb, true, true},
};

static void
update(struct rules *r, const struct optimizer *o, om_value *w, om_value *v)
{
	const double decay = r->l->how->decay;
	om_grad *g = r->l->g;

	o->update(r, w, decay != 0 && !o->decays ? ADD(v, TIMES(w, decay)) : v);
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
		update(&r, o, l->wrt[k], l->grad[k]);
	return l->tape.status;
}
