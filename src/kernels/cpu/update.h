/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of float32 parameters by optimizers; the formulas are in grad/train/optimizers.c.
 *
 * An element is read, everywhere, before it is written: the outputs may be the inputs, in any order. */
#ifndef OM_UPDATE_H
#define OM_UPDATE_H

#include <stdint.h>

enum om_update_kind { OM_SGD, OM_MOMENTUM, OM_NESTEROV, OM_ADAM, OM_ADAMW, OM_RMSPROP, OM_ADAGRAD, OM_LAMB, OM_NUPDATES };

typedef struct om_update_args {
	enum om_update_kind kind;
	const float *w, *g, *s1, *s2;       /* parameter, gradient, states; NULL: not used */
	float *w_next, *s1_next, *s2_next;  /* NULL: not wanted */
	float rate, step, root, left;       /* those that are used */
	float momentum, beta1, left1, beta2, left2, epsilon, decay;  /* left1 is 1 - beta1 */
	float trust;                        /* of lamb: |w| / |u|, or 1 */
} om_update_args;

typedef struct om_update_kernels {
	/* Elements [from, to). */
	void (*update)(const om_update_args *a, int64_t from, int64_t to);
	/* The squares of the parameter and of the direction of lamb, summed over `n` elements. */
	void (*norms)(const om_update_args *a, int64_t n, double *of_w, double *of_u);
} om_update_kernels;

#endif
