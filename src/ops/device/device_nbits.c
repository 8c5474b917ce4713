/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of MatMulNBits: the weights are read as they are. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"

enum { X, WEIGHTS, SCALES, ZEROS, GROUPS, BIAS };
enum { COLUMNS = 4, MOST_ROW_BLOCKS = 64 };

/* Of `has` in nbits.omk. */
enum { HAS_PACKED_ZEROS = 1, HAS_ZEROS = 2, HAS_BIAS = 4 };

struct nbits {
	int64_t rows, n, k, bits, block, blocks, zero_bytes;
	bool has_packed_zeros;
};

static bool
has_count(const om_op_context *c, uint32_t k, int64_t n)
{
	return !om_has_in(c, k) || om_shape_count(&c->in[k].shape) == n;
}

/* False: no kernel serves this packing. */
static bool
nbits_of(const om_op_context *c, struct nbits *w)
{
	*w = (struct nbits){.n = om_attr_int(c->op, "N"), .k = om_attr_int(c->op, "K"), .bits = om_attr_int(c->op, "bits"),
		.block = om_attr_int(c->op, "block_size"), .has_packed_zeros = om_has_in(c, ZEROS) && c->in[ZEROS].type == OM_UINT8};
	if ((w->bits != 2 && w->bits != 4 && w->bits != 8) || w->block < 8 || w->block % 8 || w->n < 1 || w->k < 1 || w->n > INT32_MAX
	    || w->k > INT32_MAX || w->block > INT32_MAX || om_attr_int(c->op, "weight_prepacked") || om_has_in(c, GROUPS))
		return false;
	w->blocks = (w->k + w->block - 1) / w->block;
	w->zero_bytes = (w->blocks * w->bits + 7) / 8;
	w->rows = om_shape_count(&c->in[X].shape) / w->k;
	return true;
}

static bool
nbits_supports(const om_op_context *c)
{
	const om_dtype type = c->in[X].type;
	struct nbits w;

	if (!nbits_of(c, &w) || c->in[SCALES].type != type || (om_has_in(c, BIAS) && c->in[BIAS].type != type)
	    || (om_has_in(c, ZEROS) && !w.has_packed_zeros && c->in[ZEROS].type != type))
		return false;
	return has_count(c, WEIGHTS, w.n * w.blocks * (w.block * w.bits / 8)) && has_count(c, SCALES, w.n * w.blocks)
	    && has_count(c, ZEROS, w.n * (w.has_packed_zeros ? w.zero_bytes : w.blocks)) && has_count(c, BIAS, w.n)
	    && has_count(c, X, w.rows * w.k);
}

static om_status
nbits_launches(const om_op_context *c, om_launch_list *to)
{
	struct nbits w;

	nbits_of(c, &w);
	om_launch *l = om_launch_typed_grid(to, "nbits", "nbits", om_kernel_type(c->in[X].type), (om_grid){.threads = 256,
		.blocks = {(uint32_t)((w.n + COLUMNS - 1) / COLUMNS), (uint32_t)(w.rows < MOST_ROW_BLOCKS ? w.rows : MOST_ROW_BLOCKS), 1}});
	const int64_t numbers[] = {w.rows, w.n, w.k, w.blocks, w.block, w.zero_bytes};

	om_launch_in(l, X);
	om_launch_in(l, WEIGHTS);
	om_launch_in(l, SCALES);
	om_launch_in(l, om_has_in(c, ZEROS) ? ZEROS : WEIGHTS);
	om_launch_in(l, om_has_in(c, BIAS) ? BIAS : X);
	om_launch_out(l, 0);
	for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
		om_launch_i64(l, numbers[k]);
	om_launch_i32(l, (int32_t)w.bits);
	om_launch_i32(l, (om_has_in(c, BIAS) ? HAS_BIAS : 0)
		| (!om_has_in(c, ZEROS) ? 0 : w.has_packed_zeros ? HAS_PACKED_ZEROS : HAS_ZEROS));
	return OM_OK;
}

const om_device_kernel om_device_kernels_device_nbits[] = {
	{.domain = "com.microsoft", .name = "MatMulNBits", .types = {OF_DEVICE_FLOATS}, .supports = nbits_supports,
	 .launches = nbits_launches},
	{0}
};
