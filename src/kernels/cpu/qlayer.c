/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of layers of 8-bit integers, and packing of their weights; see qlayer.h. */
#include <config.h>

#include <string.h>

#include "base/sizes.h"
#include "kernels/cpu/qlayer.h"

enum {
	BLOCK_BYTES = 128 << 10,  /* of the input of a block of rows, to stay in the L2 cache */
	PIECES = 16,              /* that are worth having, for workers to share */
	TILE_ROWS = 12,
	MOST_BLOCK = 1 << 16,
};

/* More rows than any memory has. */
#define MOST_ROWS (INT64_C(1) << 60)

/* More channels than any memory has: their lists have sizes that do not overflow, and are refused. */
#define MOST_CHANNELS (UINT64_C(1) << 58)

/* Filter elements of an output channel. */
static uint64_t
elements_of(const om_layer *l)
{
	return om_size_volume((uint64_t)l->channels_in, l->kernel, OM_LAYER_AXES);
}

int64_t
om_qlayer_channels(const om_layer *l)
{
	const uint64_t padded = om_size_rounded_up((uint64_t)l->channels_out, OM_QPANEL);
	const uint64_t all = om_size_product((uint64_t)l->group, padded);

	return all > MOST_CHANNELS ? (int64_t)MOST_CHANNELS : (int64_t)all;
}

uint64_t
om_qlayer_panels(const om_layer *l)
{
	return om_size_product(om_size_rounded_up(elements_of(l), OM_QDEPTH), (uint64_t)om_qlayer_channels(l));
}

uint64_t
om_qlayer_weights(const om_layer *l)
{
	return om_size_sum(om_qlayer_panels(l), om_size_product((uint64_t)om_qlayer_channels(l), sizeof(int32_t)));
}

/* ---- The plan. ---- */

/* Is row i of the product row i of the input, in groups of four elements? */
static bool
is_direct(const om_qlayer *l)
{
	const om_layer *s = &l->shape;

	for (int k = 0; k < OM_LAYER_AXES; k++)
		if (s->kernel[k] != 1 || s->stride[k] != 1 || s->begin[k] || s->in[k] != s->out[k])
			return false;
	return !l->is_signed && s->channels_in % OM_QDEPTH == 0;
}

static void
plan_blocks(om_qlayer_plan *p)
{
	int64_t block = BLOCK_BYTES / (p->row_bytes ? p->row_bytes : 1);

	block = (block < MOST_BLOCK ? block : MOST_BLOCK) / TILE_ROWS * TILE_ROWS;
	p->block = block ? block : TILE_ROWS;
	if (p->rows <= p->block + p->block / 4)
		p->block = p->rows;
	p->blocks = p->rows ? om_quotient_up(p->rows, p->block) : 0;
}

/* Parts are of four panels at least: the widest tile. */
static void
plan_parts(const om_layer *l, om_qlayer_plan *p)
{
	const int64_t have = p->blocks * l->group, units = om_quotient_up(p->panels, 4);
	int64_t parts = have && have < PIECES ? om_quotient_up(PIECES, have) : 1;

	parts = parts < units ? parts : units ? units : 1;
	p->part = units ? om_quotient_up(units, parts) * 4 : 4;
	p->parts = om_quotient_up(p->panels, p->part);
}

bool
om_qlayer_plan_new(const om_qlayer *l, om_qlayer_plan *p)
{
	const om_layer *s = &l->shape;
	const uint64_t rows = om_size_volume((uint64_t)s->batch, s->out, OM_LAYER_AXES);
	const uint64_t elements = om_size_rounded_up(elements_of(s), OM_QDEPTH);

	if (om_qlayer_weights(s) > INT64_MAX)
		return false;
	*p = (om_qlayer_plan){.rows = rows > MOST_ROWS ? MOST_ROWS : (int64_t)rows, .panels = om_quotient_up(s->channels_out, OM_QPANEL),
		.depth = (int64_t)(elements / OM_QDEPTH), .is_direct = is_direct(l)};
	/* Rows that are a power of two apart would share the lines of the cache. */
	p->row_bytes = p->is_direct ? s->group * s->channels_in : (int64_t)om_size_rounded_up(elements, 64) + 64;
	plan_blocks(p);
	plan_parts(s, p);
	p->copies = p->is_direct ? 0 : om_piece_size(om_size_product((uint64_t)p->block, (uint64_t)p->row_bytes));
	p->per_worker = om_size_sum(p->copies, om_piece_size(om_size_product((uint64_t)p->block, sizeof(int32_t))));
	return p->per_worker != UINT64_MAX;
}

uint64_t
om_qlayer_workspace(const om_qlayer *l, uint32_t workers)
{
	om_qlayer_plan p;

	return om_qlayer_plan_new(l, &p) ? om_size_product(p.per_worker, workers) : UINT64_MAX;
}

/* ---- Packing. ---- */

/* Element `e` of the filter of a channel of all groups. */
static int8_t
weight_at(const om_layer *l, const void *w, bool is_signed, bool is_transposed, int64_t channel, int64_t e)
{
	const int64_t taps = l->kernel[0] * l->kernel[1] * l->kernel[2], tap = e / l->channels_in, in = e % l->channels_in;
	const int64_t at = is_transposed ? in * l->channels_out + channel : (channel * l->channels_in + in) * taps + tap;
	const uint8_t byte = ((const uint8_t *)w)[at];

	return (int8_t)(is_signed ? byte : byte ^ 0x80);
}

void
om_qlayer_pack(const om_layer *l, const void *w, bool is_signed, bool is_transposed, int8_t *packed)
{
	const int64_t elements = (int64_t)elements_of(l), depth = om_quotient_up(elements, OM_QDEPTH);
	const int64_t channels = om_qlayer_channels(l);
	const int64_t wide = channels / l->group;
	int32_t sum;

	memset(packed, 0, (size_t)(depth * OM_QDEPTH * channels));  /* the sums are all written */
	for (int64_t c = 0; c < channels; c++) {
		const int64_t group = c / wide, own = c % wide;
		int8_t *panel = packed + c / OM_QPANEL * depth * OM_QPANEL * OM_QDEPTH + c % OM_QPANEL * OM_QDEPTH;
		sum = 0;
		for (int64_t e = 0; own < l->channels_out && e < elements; e++) {
			const int8_t x = weight_at(l, w, is_signed, is_transposed, group * l->channels_out + own, e);
			panel[e / OM_QDEPTH * OM_QPANEL * OM_QDEPTH + e % OM_QDEPTH] = x;
			sum += x;
		}
		memcpy(packed + om_qlayer_panels(l) + c * (int64_t)sizeof sum, &sum, sizeof sum);
	}
}
