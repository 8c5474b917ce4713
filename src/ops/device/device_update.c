/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of updates of parameters by optimizers. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/gradient_op.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"
#include "ops/nn/update.h"

/* Blocks that sum for lamb, in the scratch: the trust, then two sums of each. */
enum { MOST_BLOCKS = 256, TRUST_BYTES = 256 };

static uint32_t
sum_blocks(const om_op_context *c)
{
	const int64_t blocks = (om_shape_count(&c->out[0].shape) + 1023) / 1024;

	return blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : (uint32_t)blocks;
}

static uint64_t
update_scratch(const om_op_context *c)
{
	return om_attr_is(c->op, "optimizer", "lamb") ? TRUST_BYTES + sum_blocks(c) * 2 * sizeof(float) : 0;
}

/* An input, or the parameter where the optimizer does not use it. */
static void
add_in(const om_op_context *c, om_launch *l, uint32_t k)
{
	om_launch_in(l, om_has_in(c, k) ? k : OM_UPDATE_W);
}

static void
add_numbers(om_launch *l, const float *n, const int *which, int count)
{
	for (int k = 0; k < count; k++)
		om_launch_f32(l, n[which[k]]);
}

static void
launch_trust(const om_op_context *c, om_launch_list *to, const float *n)
{
	static const int numbers[] = {OM_UPDATE_BETA1, OM_UPDATE_LEFT1, OM_UPDATE_BETA2, OM_UPDATE_LEFT2, OM_UPDATE_EPSILON, OM_UPDATE_DECAY};
	static const uint32_t in[] = {OM_UPDATE_W, OM_UPDATE_DW, OM_UPDATE_S1, OM_UPDATE_S2, OM_UPDATE_ROOT, OM_UPDATE_LEFT};
	const uint32_t blocks = sum_blocks(c);
	const uint64_t bytes = blocks * 2 * sizeof(float);

	om_launch *l = om_launch_typed_grid(to, "update", "lamb_squares", "f32", (om_grid){.blocks = {blocks, 1, 1}, .threads = 256});
	for (size_t k = 0; k < sizeof in / sizeof *in; k++)
		add_in(c, l, in[k]);
	om_launch_scratch(l, OM_ARG_OUT, TRUST_BYTES, bytes);
	om_launch_i64(l, om_shape_count(&c->out[0].shape));
	add_numbers(l, n, numbers, sizeof numbers / sizeof *numbers);
	l = om_launch_typed_grid(to, "update", "lamb_trust", "f32", (om_grid){.blocks = {1, 1, 1}, .threads = 256});
	om_launch_scratch(l, OM_ARG_IN, TRUST_BYTES, bytes);
	om_launch_scratch(l, OM_ARG_OUT, 0, sizeof(float));
	om_launch_i64(l, blocks);
}

static om_status
update_launches(const om_op_context *c, om_launch_list *to)
{
	static const int numbers[] = {OM_UPDATE_MOMENTUM, OM_UPDATE_BETA1, OM_UPDATE_LEFT1, OM_UPDATE_BETA2, OM_UPDATE_LEFT2,
		OM_UPDATE_EPSILON, OM_UPDATE_DECAY};
	static const uint32_t in[] = {OM_UPDATE_W, OM_UPDATE_DW, OM_UPDATE_S1, OM_UPDATE_S2, OM_UPDATE_RATE, OM_UPDATE_STEP,
		OM_UPDATE_ROOT, OM_UPDATE_LEFT};
	const int64_t count = om_shape_count(&c->out[0].shape);
	struct om_update_attrs a;

	OM_TRY(om_update_read(c, &a));
	if (a.kind == OM_LAMB)
		launch_trust(c, to, a.number);
	om_launch *l = om_launch_typed(to, "update", "update", "f32", count);
	for (size_t k = 0; k < sizeof in / sizeof *in; k++)
		add_in(c, l, in[k]);
	if (a.kind == OM_LAMB)
		om_launch_scratch(l, OM_ARG_IN, 0, sizeof(float));
	else
		om_launch_in(l, OM_UPDATE_W);
	for (uint32_t k = 0; k < 3; k++)
		om_launch_out(l, k < c->op->nout && om_has_out(c, k) ? k : 0);
	om_launch_i64(l, count);
	om_launch_i32(l, (int32_t)a.kind);
	add_numbers(l, a.number, numbers, sizeof numbers / sizeof *numbers);
	return OM_OK;
}

/* An element is read, everywhere, before it is written.  Over other inputs it could be as well, but then states could not stay
 * where they are. */
static bool
update_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	(void)c;
	return in == (out == 0 ? OM_UPDATE_W : OM_UPDATE_S1 + out - 1);
}

const om_device_kernel om_device_kernels_device_update[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "Update", .types = {OF(FLOAT32)}, .inplace = update_inplace, .scratch = update_scratch,
	 .launches = update_launches},
	{0}
};
