/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of parameters, compiled once per instruction set. */
#include <config.h>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/update.h"

/* A vector of elements. */
struct lanes {
	vec w, g, s1, s2;
};

/* The scalars of all elements. */
struct all {
	vec rate, step, root, left, trust, shrink, momentum, beta1, left1, beta2, left2, epsilon, decay;
};

INLINE struct all
all_of(const om_update_args *a)
{
	return (struct all){.rate = vec_all(a->rate), .step = vec_all(a->step), .root = vec_all(a->root),
		.left = vec_all(a->left), .trust = vec_all(a->trust), .shrink = vec_all(1 - a->rate * a->decay),
		.momentum = vec_all(a->momentum), .beta1 = vec_all(a->beta1),
		.left1 = vec_all(a->left1), .beta2 = vec_all(a->beta2), .left2 = vec_all(a->left2),
		.epsilon = vec_all(a->epsilon), .decay = vec_all(a->decay)};
}

/* The gradient, with the decay that is a part of it. */
INLINE vec
decayed(const struct all *c, const struct lanes *x, bool decays)
{
	vec g = x->g;

	if (decays)
		g += x->w * c->decay;
	return g;
}

/* Update both means; returns sqrt(v / (1 - b2^t)) + epsilon. */
INLINE vec
moments(const struct all *c, struct lanes *x, vec g)
{
	x->s1 = x->s1 * c->beta1 + g * c->left1;
	x->s2 = x->s2 * c->beta2 + g * g * c->left2;
	return vec_sqrt(x->s2) / c->root + c->epsilon;
}

INLINE vec
lamb_direction(const struct all *c, struct lanes *x, bool decays)
{
	const vec root = moments(c, x, x->g);
	vec u = x->s1 / c->left / root;

	if (decays)
		u += x->w * c->decay;
	return u;
}

INLINE void
step(enum om_update_kind kind, const struct all *c, struct lanes *x, bool decays)
{
	const vec g = decayed(c, x, decays && kind != OM_ADAMW && kind != OM_LAMB);

	switch (kind) {
	case OM_MOMENTUM:
		x->s1 = x->s1 * c->momentum + g;
		x->w -= x->s1 * c->rate;
		break;
	case OM_NESTEROV:
		x->s1 = x->s1 * c->momentum + g;
		x->w -= (g + x->s1 * c->momentum) * c->rate;
		break;
	case OM_ADAM: case OM_ADAMW: {
		const vec root = moments(c, x, g);
		if (kind == OM_ADAMW && decays)
			x->w *= c->shrink;
		x->w -= x->s1 / root * c->step;
		break;
	}
	case OM_RMSPROP: case OM_ADAGRAD:
		x->s1 = kind == OM_RMSPROP ? x->s1 * c->beta2 + g * g * c->left2 : x->s1 + g * g;
		x->w -= g / (vec_sqrt(x->s1) + c->epsilon) * c->rate;
		break;
	case OM_LAMB:
		x->w -= lamb_direction(c, x, decays) * c->trust * c->rate;
		break;
	default:
		x->w -= g * c->rate;
	}
}

INLINE vec
load(const float *p, int64_t i, int64_t n)
{
	if (!p)
		return (vec){0};
	return n < VL ? vec_load_some(p + i, n) : vec_load(p + i);
}

INLINE void
store(float *p, int64_t i, int64_t n, vec v)
{
	if (p && n < VL)
		vec_store_some(p + i, v, n);
	else if (p)
		vec_store(p + i, v);
}

INLINE struct lanes
load_lanes(const om_update_args *a, int64_t i, int64_t n)
{
	return (struct lanes){load(a->w, i, n), load(a->g, i, n), load(a->s1, i, n), load(a->s2, i, n)};
}

/* The loop of one kind: `kind` and `decays` are constants. */
INLINE void
update(enum om_update_kind kind, bool decays, const om_update_args *a, int64_t from, int64_t to)
{
	const struct all c = all_of(a);

	for (int64_t i = from; i < to; i += VL) {
		struct lanes x = load_lanes(a, i, to - i);
		step(kind, &c, &x, decays);
		store(a->s1_next, i, to - i, x.s1);
		store(a->s2_next, i, to - i, x.s2);
		store(a->w_next, i, to - i, x.w);
	}
}

#define KIND(name)                                                             \
	case name:                                                             \
		if (a->decay != 0)                           \
			update(name, true, a, from, to);                       \
		else                                                           \
			update(name, false, a, from, to);                      \
		break;

static void
update_range(const om_update_args *a, int64_t from, int64_t to)
{
	switch (a->kind) {
	KIND(OM_SGD)
	KIND(OM_MOMENTUM)
	KIND(OM_NESTEROV)
	KIND(OM_ADAM)
	KIND(OM_ADAMW)
	KIND(OM_RMSPROP)
	KIND(OM_ADAGRAD)
	KIND(OM_LAMB)
	default:
		break;
	}
}

/* Sums of few elements are exact enough in float; those of many are in double. */
enum { BLOCK = 64 * VL };

static double
sum_of(vec v)
{
	double sum = 0;

	for (int k = 0; k < VL; k++)
		sum += v[k];
	return sum;
}

static void
norms(const om_update_args *a, int64_t n, double *of_w, double *of_u)
{
	const struct all c = all_of(a);
	const bool decays = a->decay != 0;

	*of_w = *of_u = 0;
	for (int64_t from = 0; from < n; from += BLOCK) {
		vec w = {0}, u = {0};
		for (int64_t i = from; i < LEAST(n, from + BLOCK); i += VL) {
			struct lanes x = load_lanes(a, i, n - i);
			const vec by = lamb_direction(&c, &x, decays);
			vec kept = {0};
			store((float *)&kept, 0, n - i, by);   /* lanes without an element may be 0 / 0 */
			w += x.w * x.w;
			u += kept * kept;
		}
		*of_w += sum_of(w);
		*of_u += sum_of(u);
	}
}

extern const om_update_kernels OM_TABLE(om_update_kernels);

const om_update_kernels OM_TABLE(om_update_kernels) = {.update = update_range, .norms = norms};
