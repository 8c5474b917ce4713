/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of classification losses. */
#include <config.h>

#include "base/shape.h"
#include "base/sizes.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"
#include "ops/nn/loss.h"

/* As in loss.omk. */
enum { HAS_WEIGHTS = 1, IGNORES = 2, GIVES_SHARES = 4, OF_SHARES = 8, EACH = 16, LONG_TARGET = 32 };

static bool
loss_supports(const om_op_context *c)
{
	return om_shape_count(&c->in[OM_LOSS_X].shape) > 0
	    && (!om_has_in(c, OM_LOSS_WEIGHT) || c->in[OM_LOSS_WEIGHT].type == c->in[OM_LOSS_X].type);
}

/* Losses, and after them their weights; nothing where each loss is an output. */
static uint64_t
half_of_scratch(const struct om_loss *s)
{
	return s->is_none ? 0 : om_piece_size((uint64_t)(s->batch * s->inner) * sizeof(float));
}

static uint64_t
loss_scratch(const om_op_context *c)
{
	const struct om_loss s = om_loss_of(c);

	return 2 * half_of_scratch(&s);
}

static om_status
loss_launches(const om_op_context *c, om_launch_list *to)
{
	const struct om_loss s = om_loss_of(c);
	const int64_t n = s.batch * s.inner;
	const uint64_t at = half_of_scratch(&s), bytes = s.is_none ? 0 : (uint64_t)n * sizeof(float);
	const char *type = om_kernel_type(c->in[OM_LOSS_X].type);
	const bool gives_shares = c->op->nout > 1 && om_has_out(c, 1);

	om_launch *l = om_launch_rows(to, "loss", "class_losses", type, n);
	om_launch_in(l, OM_LOSS_X);
	om_launch_in(l, OM_LOSS_TARGET);
	om_launch_in(l, om_has_in(c, OM_LOSS_WEIGHT) ? OM_LOSS_WEIGHT : OM_LOSS_X);
	om_launch_out(l, 0);
	om_launch_out(l, gives_shares ? 1 : 0);
	for (int k = 0; k < 2; k++) {
		if (s.is_none)
			om_launch_out(l, 0);
		else
			om_launch_scratch(l, OM_ARG_OUT, (uint64_t)k * at, bytes);
	}
	om_launch_i64(l, n);
	om_launch_i64(l, s.classes);
	om_launch_i64(l, s.inner);
	om_launch_i64(l, s.ignored);
	om_launch_i32(l, (om_has_in(c, OM_LOSS_WEIGHT) ? HAS_WEIGHTS : 0) | (s.has_ignored ? IGNORES : 0) | (gives_shares ? GIVES_SHARES : 0)
		| (c->op->opdef->name[0] == 'N' ? OF_SHARES : 0) | (s.is_none ? EACH : 0)
		| (c->in[OM_LOSS_TARGET].type == OM_INT64 ? LONG_TARGET : 0));
	if (s.is_none)
		return OM_OK;
	l = om_launch_typed_grid(to, "loss", "loss_total", type, (om_grid){.blocks = {1, 1, 1}, .threads = 256});
	om_launch_scratch(l, OM_ARG_IN, 0, bytes);
	om_launch_scratch(l, OM_ARG_IN, at, bytes);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i32(l, s.is_mean);
	return OM_OK;
}

#define LOSS(label) {.name = label, .types = {OF_DEVICE_FLOATS}, .supports = loss_supports, .scratch = loss_scratch, \
	.launches = loss_launches}

const om_device_kernel om_device_kernels_device_loss[] = {
	LOSS("NegativeLogLikelihoodLoss"), LOSS("SoftmaxCrossEntropyLoss"),
	{0}
};
