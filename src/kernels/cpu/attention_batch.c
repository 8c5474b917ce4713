/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of attention: workspace, and division into pieces. */
#include <config.h>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/kernels.h"

enum { WIDTH = 64 };              /* floats that every part of the workspace is a multiple of */

static int64_t
smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t
whole(int64_t n)
{
	return (n + WIDTH - 1) / WIDTH * WIDTH;
}

om_attention_room
om_attention_layout(const om_attention *a)
{
	const int64_t keys = whole(smaller(a->keys, OM_ATTENTION_KEYS)), rows = smaller(a->rows, OM_ATTENTION_ROWS);
	const bool in_place = a->values_as == OM_STORED_FLOAT && a->col[OM_ATTENTION_V] == 1 && a->value_depth % 16 == 0;
	om_attention_room r = {.score_row = keys, .sum_row = whole(a->value_depth)};

	r.key = r.wide + (a->keys_as == OM_STORED_FLOAT ? 0 : smaller(keys, OM_ATTENTION_PART) * whole(a->depth));
	r.value = r.key + (om_attention_by_dots(a) ? 0 : keys * a->depth);
	r.score = r.value + (in_place ? 0 : om_attention_values_by_parts(a) ? smaller(keys, OM_ATTENTION_PART) * r.sum_row : keys * r.sum_row);
	r.sum = r.score + 6 * keys;
	r.state = r.sum + rows * r.sum_row;
	r.total = r.state + whole(2 * rows);
	return r;
}

uint64_t
om_attention_workspace(const om_attention *a, uint32_t workers)
{
	return (uint64_t)om_attention_layout(a).total * sizeof(float) * workers;
}

static const void *
after(const void *p, om_stored_as s, int64_t elements)
{
	return (const char *)p + om_stored_bytes(s, elements);
}

om_attention_data
om_attention_head(const om_attention_batch *b, const om_attention_data *data, int64_t n)
{
	om_attention_data at = *data;

	for (int d = b->rank - 1; d >= 0; d--) {
		const int64_t i = n % b->dim[d], *step = b->step[d];
		n /= b->dim[d];
		at.q += i * step[OM_ATTENTION_Q];
		at.k = after(at.k, b->a.keys_as, i * step[OM_ATTENTION_K]);
		at.v = after(at.v, b->a.values_as, i * step[OM_ATTENTION_V]);
		at.y += i * step[OM_ATTENTION_Y];
		for (int m = 0; m < OM_ATTENTION_MASKS; m++)
			if (at.mask[m])
				at.mask[m] += i * step[OM_ATTENTION_MASK + m];
		if (at.keep)
			at.keep += i * step[OM_ATTENTION_KEEP];
		if (at.sink)
			at.sink += i * b->sink_step[d];
	}
	return at;
}

struct pieces {
	const om_attention_batch *b;
	om_attention_data at;
	om_attention_room layout;
	float *room;
	int64_t parts;            /* of the rows of a head */
};

static void
run_piece(void *arg, int64_t piece, uint32_t worker)
{
	const struct pieces *s = arg;
	const om_attention *a = &s->b->a;
	const om_attention_data at = om_attention_head(s->b, &s->at, piece / s->parts);
	const int64_t first = piece % s->parts * OM_ATTENTION_ROWS;

	om_kernels_get()->attention->rows(a, &at, first, smaller(a->rows - first, OM_ATTENTION_ROWS), &s->layout,
		s->room + worker * s->layout.total);
}

void
om_attention_run(const om_attention_batch *b, const om_attention_data *at, void *room, om_workers *pool)
{
	struct pieces s = {.b = b, .at = *at, .layout = om_attention_layout(&b->a), .room = room};
	int64_t heads = 1;

	for (int d = 0; d < b->rank; d++)
		heads *= b->dim[d];
	if (b->a.value_depth == 0)
		return;
	s.parts = (b->a.rows + OM_ATTENTION_ROWS - 1) / OM_ATTENTION_ROWS;
	om_parallel_for(pool, heads * s.parts, run_piece, &s);
}
