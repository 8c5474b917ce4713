/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of layers and of their parts; see layer.h. */
#include <config.h>

#include <stddef.h>

#include "base/sizes.h"
#include "kernels/cpu/layer_plan.h"

enum {
	BLOCK_BYTES = 320 << 10,  /* of the input of a block of rows, to stay in the L2 cache */
	TABLE_BYTES = 64 << 10,   /* of its pointers */
	DEPTH_BYTES = 3 << 10,    /* of the input of a long row: so much is summed at once, for blocks of more rows */
	PANELS_BYTES = 256 << 10, /* of weights that stay in the L2 cache */
	INPUT_BYTES = 256 << 10,  /* of transformed inputs of a block of tiles, */
	LEAST_INPUT = 48 << 10,   /* and of those of small images, */
	NEAR_WEIGHTS = 4 << 19,   /* with weights that are read from a near cache for each block; */
	FAR_INPUT = 1 << 20,      /* with others, the most for a block of */
	FAR_TILES = 24,           /* tiles, which take as long as their weights */
	FEW_BLOCKS = 4,           /* of which one is a large part of the time */
	STRIP_BYTES = 96 << 10,   /* of an interleaved strip */
	PIECES = 16,              /* that are worth having, for workers to share */
	TILE_ROWS = 12,
};

/* More rows than any memory has. */
#define MOST_ROWS (INT64_C(1) << 60)

static int64_t
volume(const int64_t *size)
{
	return size[0] * size[1] * size[2];
}

static int64_t
between(int64_t x, int64_t low, int64_t high)
{
	return x < low ? low : x > high ? high : x;
}

/* Bytes of a piece of scratch. */
static uint64_t
piece_bytes(uint64_t n, uint64_t size)
{
	return om_piece_size(om_size_product(n, size));
}

uint64_t
om_layer_weights(const om_layer *l)
{
	const uint64_t panels = (uint64_t)om_quotient_up(l->channels_out, OM_PANEL);
	const uint64_t depth = om_size_product((uint64_t)l->channels_in, (uint64_t)volume(l->kernel));

	const uint64_t filters = om_size_product(om_size_product(om_size_product((uint64_t)l->group, panels), OM_PANEL), depth);
	return l->algorithm == OM_LAYER_GEMM ? filters
		: om_size_product(filters / 9, l->algorithm == OM_LAYER_WINOGRAD4 ? 36 : 16);
}

/* ---- The plan. ---- */

/* A number of bytes that is usual, for blocks of the size of the layer. */
static int64_t
scaled(const om_layer *l, int64_t bytes)
{
	return l->block ? bytes * l->block / 100 : bytes;
}

static bool
is_direct(const om_layer *l)
{
	for (int k = 0; k < OM_LAYER_AXES; k++)
		if (l->kernel[k] != 1 || l->stride[k] != 1 || l->begin[k] || l->in[k] != l->out[k])
			return false;
	return !l->is_channels_first;
}

/* A strip has the lines of the input that some lines of the output read, one plane for each element of the kernel
 * along the leading axis. */
static void
plan_strip(const om_layer *l, om_layer_plan *p)
{
	const int64_t span = (l->kernel[2] - 1) * l->dilation[2] + 1, tall = (l->kernel[1] - 1) * l->dilation[1] + 1;
	const int64_t width = (l->out[2] - 1) * l->stride[2] + span;
	const uint64_t line = om_size_volume(4, (int64_t[]){width, l->channels_in, l->kernel[0]}, 3);
	const int64_t lines = scaled(l, STRIP_BYTES) / (line > INT32_MAX ? INT32_MAX : line ? (int64_t)line : 1);

	p->strip = between((lines - tall) / l->stride[1] + 1, 1, l->out[1]);
	p->in[0] = l->kernel[0];
	p->in[1] = (p->strip - 1) * l->stride[1] + tall;
	p->in[2] = width;
	p->image = piece_bytes((uint64_t)p->in[1], line);
	if (l->dilation[2] == 1) {
		p->k = l->kernel[2] * l->channels_in;
		p->taps = l->kernel[0] * l->kernel[1];
	}
	p->depth = p->k;
	p->block = p->strip * l->out[2];
	p->blocks = l->batch * l->out[0] * om_quotient_up(l->out[1], p->strip);
}

/* Bytes of the input for a float of a tap of a row of the output: windows overlap, but those of neighbouring lines may be in
 * other blocks. */
static uint64_t
bytes_a_float(const om_layer *l, const om_layer_plan *p)
{
	uint64_t bytes = p->taps == 1 ? 4 : 8;

	for (int k = 0; k < OM_LAYER_AXES; k++)
		bytes = om_size_product(bytes, (uint64_t)(l->kernel[k] < l->stride[k] ? l->kernel[k] : l->stride[k]));
	return bytes;
}

/* Rows so long that a block would have few of them, and would read all weights for these, are summed in several parts. */
static void
plan_depth(const om_layer *l, om_layer_plan *p)
{
	const uint64_t each = bytes_a_float(l, p), row = om_size_product((uint64_t)p->k, each);
	const int64_t most = between(DEPTH_BYTES / (int64_t)each, 256, DEPTH_BYTES);

	p->depth = p->k;
	if (!p->by_tiles && !l->is_channels_first && p->k > most && om_size_product((uint64_t)p->rows, row) > BLOCK_BYTES)
		p->depth = om_quotient_up(om_quotient_up(p->k, om_quotient_up(p->k, most)), 16) * 16;
}

static void
plan_rows(const om_layer *l, om_layer_plan *p)
{
	const uint64_t row = om_size_product((uint64_t)p->depth + 1, bytes_a_float(l, p));
	const int64_t most = between(scaled(l, TABLE_BYTES) / 8 / p->taps, TILE_ROWS, 1 << 20), bytes = scaled(l, BLOCK_BYTES);

	p->block = row > (uint64_t)bytes ? TILE_ROWS : between(bytes / (int64_t)row, TILE_ROWS, most);
	p->block = p->block / TILE_ROWS * TILE_ROWS;
	if (p->rows <= p->block + p->block / 2 && p->rows <= most)
		p->block = p->rows;
	p->blocks = p->rows ? om_quotient_up(p->rows, p->block) : 0;
	if (p->blocks > 1)       /* of the same size: all weights are read for the last one, too */
		p->block = om_quotient_up(om_quotient_up(p->rows, p->blocks), TILE_ROWS) * TILE_ROWS;
	p->blocks = p->rows ? om_quotient_up(p->rows, p->block) : 0;
}

static void
plan_parts(const om_layer *l, om_layer_plan *p)
{
	const int64_t panels = om_quotient_up(l->channels_out, OM_PANEL), have = p->blocks * l->group;
	const int64_t parts = have && have < PIECES ? between(om_quotient_up(PIECES, have), 1, panels) : 1;

	p->part = panels ? om_quotient_up(panels, parts) : 1;
	if (p->rows <= 6 && p->part > 1)
		p->part = om_quotient_up(p->part, 4) * 4;    /* tiles are wide */
	p->parts = om_quotient_up(panels, p->part);
}

/* Tiles have at least 4 rows, except for two. */
static void
plan_scratch(const om_layer *l, om_layer_plan *p)
{
	const uint64_t tiles = (uint64_t)p->block / 4 + 2, taps = (uint64_t)p->taps;

	p->zeros = p->is_direct || l->is_channels_first ? 0 : piece_bytes((uint64_t)p->k, sizeof(float));
	p->pointers = piece_bytes(om_size_product((uint64_t)p->block, taps), sizeof(float *));
	p->offsets = piece_bytes(om_size_product(tiles, om_size_sum(taps, 1)), sizeof(int64_t));
	p->per_worker = om_size_sum(om_size_sum(p->image, p->pointers), p->offsets);
}

/* ---- Winograd's algorithm. ---- */

/* Floats between the elements of transformed tiles: their lines of the cache are in different sets. */
static uint64_t
apart(uint64_t n)
{
	return om_size_sum(n, 16);
}

/* Are the weights read from a near cache? */
static bool
is_near(const om_layer *l)
{
	return om_size_product(om_layer_weights(l), sizeof(float)) <= NEAR_WEIGHTS;
}

static uint64_t
image_elements(const om_layer *l)
{
	const uint64_t in = om_size_product((uint64_t)volume(l->in), (uint64_t)l->channels_in);
	const uint64_t out = om_size_product((uint64_t)volume(l->out), (uint64_t)l->channels_out);

	return om_size_product(om_size_product(om_size_sum(in, out), (uint64_t)l->batch), (uint64_t)l->group);
}

static bool
is_small(const om_layer *l)
{
	return is_near(l) && image_elements(l) < INPUT_BYTES;
}

/* Scratch is a part of the arena: that of a small layer has as many bytes as its images have elements, a fourth of theirs. */
static int64_t
usual_input_bytes(const om_layer *l)
{
	return is_small(l) ? between((int64_t)image_elements(l), LEAST_INPUT, INPUT_BYTES) : INPUT_BYTES;
}

/* Tiles of a block, each of so many bytes. */
static int64_t
most_tiles(const om_layer *l, uint64_t tile)
{
	const int64_t bytes = scaled(l, usual_input_bytes(l)), far = scaled(l, FAR_INPUT);
	const int64_t most = tile > (uint64_t)bytes ? TILE_ROWS : between(bytes / (int64_t)tile, TILE_ROWS, 1 << 20);

	if (is_near(l) || most >= FAR_TILES)
		return most;
	return tile > (uint64_t)far ? TILE_ROWS : between(far / (int64_t)tile, most, FAR_TILES);
}

static void
plan_tiles(const om_layer *l, om_layer_plan *p)
{
	const int64_t size = l->algorithm == OM_LAYER_WINOGRAD4 ? 4 : 2, elements = (size + 2) * (size + 2);
	uint64_t tiles = om_size_product((uint64_t)l->batch, (uint64_t)l->out[0]);

	for (int k = 0; k < 2; k++) {
		p->tiles[k] = om_quotient_up(om_quotient_up(l->out[1 + k], l->dilation[1 + k]), size);
		tiles = om_size_product(tiles, om_size_product((uint64_t)p->tiles[k], (uint64_t)l->dilation[1 + k]));
	}
	p->rows = tiles > MOST_ROWS ? MOST_ROWS : (int64_t)tiles;
	p->k = om_quotient_up(l->channels_in, 16) * 16;
	p->taps = l->kernel[0];
	const uint64_t tile = om_size_product(om_size_product((uint64_t)p->k + 1, (uint64_t)p->taps), (uint64_t)elements * 4);
	const int64_t most = most_tiles(l, tile);
	p->block = om_quotient_up(p->rows, om_quotient_up(p->rows, most) + !p->rows);
	p->block = p->rows <= most ? p->rows : om_quotient_up(p->block, TILE_ROWS) * TILE_ROWS;
	p->blocks = p->rows ? om_quotient_up(p->rows, p->block) : 0;
	const int64_t rest = p->blocks > 1 ? p->rows % p->block : 0;
	if (rest && rest <= p->block / 3 && p->blocks <= (p->block > TILE_ROWS ? FEW_BLOCKS : 2) && !is_small(l)) {
		p->blocks--;     /* a short one joins the others: all weights would be read for it, too */
		p->block = om_quotient_up(p->rows, p->blocks);
	}
	const uint64_t row = om_size_product((uint64_t)p->k, (uint64_t)p->taps);
	const uint64_t input = apart(om_size_product(row, (uint64_t)p->block));
	const uint64_t output = apart(om_size_product((uint64_t)p->block, OM_PANEL));
	p->image = piece_bytes(om_size_product(input, (uint64_t)elements), 4);
	p->outputs = piece_bytes(om_size_product(output, (uint64_t)elements), 4);
	p->between_inputs = (int64_t)input;
	p->between_outputs = (int64_t)output;
}

/* Several parts transform the same inputs: that is worth it for many output channels. */
static void
plan_panels(const om_layer *l, om_layer_plan *p)
{
	const int64_t panels = om_quotient_up(l->channels_out, OM_PANEL), have = p->blocks * l->group;
	const int64_t parts = have && have < PIECES ? between(om_quotient_up(PIECES, have), 1, om_quotient_up(panels, 4)) : 1;

	p->part = panels ? om_quotient_up(panels, parts) : 1;
	p->parts = om_quotient_up(panels, p->part);
	p->zeros = piece_bytes((uint64_t)p->k, sizeof(float));
	p->pointers = piece_bytes(om_size_product((uint64_t)p->taps, TILE_ROWS), sizeof(float *));
	p->offsets = piece_bytes((uint64_t)p->taps, sizeof(int64_t));
	p->per_worker = om_size_sum(om_size_sum(p->image, p->outputs), om_size_sum(p->pointers, p->offsets));
}

/* ---- All layers. ---- */

bool
om_layer_plan_new(const om_layer *l, om_layer_plan *p)
{
	const uint64_t weights = om_layer_weights(l);
	const uint64_t rows = om_size_volume((uint64_t)l->batch, l->out, OM_LAYER_AXES);

	*p = (om_layer_plan){.rows = rows > MOST_ROWS ? MOST_ROWS : (int64_t)rows, .taps = volume(l->kernel), .k = l->channels_in,
		.is_direct = is_direct(l)};
	if (weights == UINT64_MAX)
		return false;
	if (l->algorithm != OM_LAYER_GEMM) {
		plan_tiles(l, p);
		plan_panels(l, p);
		return p->per_worker != UINT64_MAX;
	}
	p->by_tiles = om_size_product(weights, 4) / (uint64_t)l->group <= PANELS_BYTES;
	plan_depth(l, p);
	if (l->is_channels_first)
		plan_strip(l, p);
	else
		plan_rows(l, p);
	plan_parts(l, p);
	plan_scratch(l, p);
	return p->per_worker != UINT64_MAX;
}

uint64_t
om_layer_workspace(const om_layer *l, uint32_t workers)
{
	om_layer_plan p;

	return om_layer_plan_new(l, &p) ? om_size_sum(p.zeros, om_size_product(p.per_worker, workers)) : UINT64_MAX;
}
