/* Optimizers, built of standard operators.
 *
 * Values that all parameters share are computed once.  With g the gradient, w the parameter, lr the
 * learning rate:
 *
 *     sgd       w - lr g
 *     momentum  m <- mu m + g, w - lr m
 *     adam      m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g g,
 *               w - lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + epsilon)
 *
 * A weight decay d adds d w to g; that of adamw shrinks w by lr d instead (Loshchilov and Hutter,
 * 2019).  Adam: Kingma and Ba, 2015. */
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
		c->step = AS_NUMBER(DIV(r->rate, left_of(r, r->t, how->beta1)), w);
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
update_adam(struct rules *r, om_value *w, om_value *v, om_value *from)
{
	const om_train_options *how = r->l->how;
	om_grad *g = r->l->g;
	struct common *c = common_of(r, w);
	om_value *m = new_state(r->l, w, "adam_m"), *s = new_state(r->l, w, "adam_v");
	om_value *m_next = mixed(r, m, v, how->beta1), *s_next = mixed(r, s, MUL(v, v), how->beta2);

	hand_on(r->l, m, m_next);
	hand_on(r->l, s, s_next);
	om_value *root = PLUS(DIV(DO("Sqrt", s_next), c->root), how->epsilon);
	hand_on(r->l, w, SUB(from, MUL(DIV(m_next, root), c->step)));
}

static void
update(struct rules *r, om_value *w, om_value *v)
{
	const om_train_options *how = r->l->how;
	const bool is_w = strcmp(how->optimizer, "adamw") == 0;
	om_grad *g = r->l->g;

	if (how->decay != 0 && !is_w)
		v = ADD(v, TIMES(w, how->decay));
	if (strcmp(how->optimizer, "sgd") == 0)
		update_plain(r, w, v);
	else if (strcmp(how->optimizer, "momentum") == 0)
		update_momentum(r, w, v);
	else
		update_adam(r, w, v, is_w && how->decay != 0
			? MUL(w, FROM(1, TIMES(common_of(r, w)->rate, how->decay))) : w);
}

static om_status
check_optimizer(const struct learn *l)
{
	static const char *const known[] = {"sgd", "momentum", "adam", "adamw"};

	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
		if (strcmp(l->how->optimizer, known[k]) == 0)
			return OM_OK;
	return om_fail(l->session, OM_USAGE,
		"unknown optimizer %s, expected sgd, momentum, adam or adamw", l->how->optimizer);
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
	om_grad *g = l->g;

	OM_TRY(check_optimizer(l));
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
	if (strncmp(l->how->optimizer, "adam", 4) == 0) {
		om_value *t = new_input(l, "adam_t", &any, &number, 0);
		r.t = PLUS(t, 1);
		hand_on(l, t, r.t);
	}
	for (uint32_t k = 0; k < l->nwrt; k++)
		update(&r, l->wrt[k], l->grad[k]);
	return l->tape.status;
}
