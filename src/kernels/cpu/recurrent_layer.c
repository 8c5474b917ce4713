/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers: packed weights, workspace, and division into pieces of directions and sequences. */
#include <config.h>

#include <string.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/recurrent.h"

static int64_t
whole(int64_t n)
{
	return (n + OM_RECURRENT_PANEL - 1) / OM_RECURRENT_PANEL * OM_RECURRENT_PANEL;
}

int64_t
om_recurrent_gates(om_recurrent_kind kind)
{
	return kind == OM_RECURRENT_LSTM ? 4 : kind == OM_RECURRENT_RNN ? 1 : 3;
}

int64_t
om_recurrent_first_gates(om_recurrent_kind kind)
{
	return kind == OM_RECURRENT_GRU ? 2 : om_recurrent_gates(kind);
}

int64_t
om_recurrent_packed(int64_t gates, int64_t first_gates, int64_t hidden)
{
	return (whole(first_gates * hidden) + whole((gates - first_gates) * hidden)) * hidden;
}

/* Rows of R become columns of panels. */
static float *
pack_group(const float *r, int64_t n, int64_t hidden, float *to)
{
	for (int64_t j = 0; j < n; j += OM_RECURRENT_PANEL, to += OM_RECURRENT_PANEL * hidden)
		for (int64_t e = 0; e < OM_RECURRENT_PANEL; e++)
			for (int64_t k = 0; k < hidden; k++)
				to[k * OM_RECURRENT_PANEL + e] = j + e < n ? r[(j + e) * hidden + k] : 0;
	return to;
}

void
om_recurrent_pack(const float *r, int64_t gates, int64_t first_gates, int64_t hidden, float *packed)
{
	float *rest = pack_group(r, first_gates * hidden, hidden, packed);

	pack_group(r + first_gates * hidden * hidden, (gates - first_gates) * hidden, hidden, rest);
}

static int64_t
room_of(const om_recurrent *l)
{
	const int64_t gates = om_recurrent_gates(l->kind), first = om_recurrent_first_gates(l->kind);
	const int64_t rows = l->batch < OM_RECURRENT_ROWS ? l->batch : OM_RECURRENT_ROWS;

	return rows * (whole(first * l->hidden + OM_RECURRENT_SPARE) + whole((gates - first) * l->hidden + OM_RECURRENT_SPARE)
		+ 3 * whole(l->hidden));
}

uint64_t
om_recurrent_workspace(const om_recurrent *l, uint32_t workers)
{
	return (uint64_t)room_of(l) * sizeof(float) * workers;
}

struct pieces {
	const om_recurrent *l;
	int64_t parts;            /* of the sequences */
	float *room;
};

static void
run_piece(void *arg, int64_t piece, uint32_t worker)
{
	const struct pieces *s = arg;
	const om_recurrent *l = &s->l[piece / s->parts];
	const int64_t first = piece % s->parts * OM_RECURRENT_ROWS, n = l->batch - first;

	om_kernels_get()->recurrent->run(l, first, n < OM_RECURRENT_ROWS ? n : OM_RECURRENT_ROWS,
		s->room + worker * room_of(l));
}

void
om_recurrent_run(const om_recurrent *l, int n, void *room, om_workers *pool)
{
	struct pieces s = {.l = l, .parts = (l->batch + OM_RECURRENT_ROWS - 1) / OM_RECURRENT_ROWS, .room = room};

	om_parallel_for(pool, n * s.parts, run_piece, &s);
}
