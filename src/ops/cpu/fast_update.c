/* SPDX-License-Identifier: Apache-2.0 */
/* Update of float32. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "kernels/cpu/kernels.h"
#include "opdef/gradient_op.h"
#include "opdef/op_context.h"
#include "ops/cpu/ranges.h"
#include "ops/family.h"
#include "ops/nn/update.h"

enum { CHUNK = 1024 };            /* elements of a row of the loop */

struct run {
	const om_update_kernels *kernels;
	om_update_args args;
	int64_t n;
};

static void
update_rows(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const int64_t end = to * CHUNK;

	(void)worker;
	r->kernels->update(&r->args, from * CHUNK, end < r->n ? end : r->n);
}

static float
scalar(const om_op_context *c, uint32_t k)
{
	return om_has_in(c, k) ? *(const float *)c->in[k].data : 0;
}

static const float *
state(const om_op_context *c, uint32_t k)
{
	return om_has_in(c, k) ? c->in[k].data : NULL;
}

/* Serial, so that the sum is the same for any number of workers. */
static float
trust(const struct run *r)
{
	double of_w, of_u;

	r->kernels->norms(&r->args, r->n, &of_w, &of_u);
	const float w = (float)sqrt(of_w), u = (float)sqrt(of_u);
	return w > 0 && u > 0 ? w / u : 1;
}

static om_status
update_run(om_op_context *c)
{
	const struct om_update_attrs *a = c->state;
	const float *n = a->number;
	struct run r = {om_kernels_get()->update, {
		.kind = a->kind, .w = c->in[OM_UPDATE_W].data, .g = c->in[OM_UPDATE_DW].data, .s1 = state(c, OM_UPDATE_S1),
		.s2 = state(c, OM_UPDATE_S2), .w_next = c->out[0].data, .s1_next = c->op->nout > 1 ? c->out[1].data : NULL,
		.s2_next = c->op->nout > 2 ? c->out[2].data : NULL, .rate = scalar(c, OM_UPDATE_RATE),
		.step = scalar(c, OM_UPDATE_STEP), .root = scalar(c, OM_UPDATE_ROOT), .left = scalar(c, OM_UPDATE_LEFT),
		.trust = 1, .momentum = n[OM_UPDATE_MOMENTUM], .beta1 = n[OM_UPDATE_BETA1], .left1 = n[OM_UPDATE_LEFT1],
		.beta2 = n[OM_UPDATE_BETA2], .left2 = n[OM_UPDATE_LEFT2], .epsilon = n[OM_UPDATE_EPSILON],
		.decay = n[OM_UPDATE_DECAY]}, om_shape_count(&c->out[0].shape)};

	if (a->kind == OM_LAMB)
		r.args.trust = trust(&r);
	om_for_ranges(c, (r.n + CHUNK - 1) / CHUNK, CHUNK, update_rows, &r);
	return OM_OK;
}

const om_kernel om_kernels_fast_update[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "Update", .is_fast = true, .types = {OF(FLOAT32)},
	 .state_bytes = sizeof(struct om_update_attrs), .prepare = om_update_prepare, .run = update_run},
	{0}
};
