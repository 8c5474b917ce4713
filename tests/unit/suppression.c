/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression, beside its definition: each box in the order of the scores against those that were picked before. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "unit.h"

enum { BOXES = 150, CLASSES = 3, TRIALS = 40 };

static const char text[] =
	"program \"\" ir 8 opset 13\n"
	"^main(%b: float32[1,150,4], %s: float32[1,3,150], %n: int64[1], %part: float32[1], %least: float32[1]) {\n"
	"\t%y = NonMaxSuppression(%b, %s, %n, %part, %least)\n"
	"\tret %y\n}\n";

struct trial {
	float box[BOXES][4], score[CLASSES][BOXES];
	int64_t most;
	float part, least;
	int64_t want[CLASSES * BOXES][3], n;
};

/* Few values, so that edges and scores are equal now and then; in the first trials, boxes are large and meet. */
static void
draw(struct trial *t, uint64_t *rng, int trial)
{
	const uint64_t range = trial % 2 ? 12 : 200;

	for (int k = 0; k < BOXES; k++)
		for (int i = 0; i < 4; i++) {
			t->box[k][i] = (float)(i < 2 ? om_rng_below(rng, range) : om_rng_below(rng, 9));
			if (i >= 2)
				t->box[k][i] += t->box[k][i - 2];
			if (om_rng_below(rng, 100) == 0)
				t->box[k][i] = trial % 3 ? NAN : INFINITY;
		}
	for (int k = 0; k < CLASSES * BOXES; k++)
		t->score[k / BOXES][k % BOXES] = (float)om_rng_below(rng, 30) / 32;
	t->most = trial % 4 ? (int64_t)om_rng_below(rng, BOXES) : BOXES;
	t->part = (float)om_rng_below(rng, 5) / 4;
	t->least = (float)om_rng_below(rng, 3) / 8;
}

static bool
overlap(const float *a, const float *b, float part)
{
	const float w = fminf(fmaxf(a[1], a[3]), fmaxf(b[1], b[3])) - fmaxf(fminf(a[1], a[3]), fminf(b[1], b[3]));
	const float h = fminf(fmaxf(a[0], a[2]), fmaxf(b[0], b[2])) - fmaxf(fminf(a[0], a[2]), fminf(b[0], b[2]));
	const float area_a = fabsf((a[3] - a[1]) * (a[2] - a[0])), area_b = fabsf((b[3] - b[1]) * (b[2] - b[0]));
	const float all = area_a + area_b - w * h;

	return w > 0 && h > 0 && area_a > 0 && area_b > 0 && all > 0 && w * h / all > part;
}

/* The best box that has not been tried; -1: none. */
static int
best_of(const float *score, const bool *tried, float least)
{
	int best = -1;

	for (int k = 0; k < BOXES; k++)
		if (!tried[k] && score[k] > least && (best < 0 || score[k] > score[best]))
			best = k;
	return best;
}

static void
pick(struct trial *t, int class)
{
	const int64_t first = t->n;
	bool tried[BOXES] = {false};

	for (int k; t->n - first < t->most && (k = best_of(t->score[class], tried, t->least)) >= 0; ) {
		bool is_free = true;
		for (int64_t i = first; i < t->n; i++)
			is_free = is_free && !overlap(t->box[k], t->box[t->want[i][2]], t->part);
		tried[k] = true;
		if (is_free)
			memcpy(t->want[t->n++], (int64_t[]){0, class, k}, sizeof t->want[0]);
	}
}

static void
picks_as_defined(void)
{
	struct trial *t = malloc(sizeof *t);
	uint64_t rng = 5;
	bench b;

	unit_start(&b, text, "inline,shapes,fold");
	CU_ASSERT_FATAL(t && is_ok(b.s, bench_exec(&b, &ways[SEPARATE])));
	for (int trial = 0; trial < TRIALS; trial++) {
		draw(t, &rng, trial);
		t->n = 0;
		for (int class = 0; class < CLASSES; class++)
			pick(t, class);
		const om_tensor in[] = {
			{.type = OM_FLOAT32, .shape = om_shape_of(3, (int64_t[]){1, BOXES, 4}), .data = t->box},
			{.type = OM_FLOAT32, .shape = om_shape_of(3, (int64_t[]){1, CLASSES, BOXES}), .data = t->score},
			{.type = OM_INT64, .shape = om_shape_of(1, (int64_t[]){1}), .data = &t->most},
			floats_of(1, &t->part), floats_of(1, &t->least)};
		CU_ASSERT_FATAL(is_ok(b.s, bench_run(&b, in, 5)));
		const om_tensor *y = om_exec_result(b.e, 0);
		CU_ASSERT_EQUAL(y->shape.dim[0], t->n);
		CU_ASSERT(y->shape.dim[0] == t->n && memcmp(y->data, t->want, (size_t)t->n * sizeof t->want[0]) == 0);
	}
	bench_close(&b);
	free(t);
}

static CU_TestInfo suppression[] = {
	{"boxes are picked as the standard defines it", picks_as_defined},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("suppression", suppression);
