/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for one another. */
#include <config.h>

#include <string.h>

#include "base/crew.h"
#include "unit.h"

enum { PARTS = 4, STEPS = 500 };

struct relay {
	om_crew *crew;
	uint32_t sum[PARTS][STEPS];
	bool ends_early;
};

/* Each step adds to what the part before has made in it. */
static void
run_part(void *arg, uint32_t k)
{
	struct relay *r = arg;

	for (uint32_t n = 0; n < STEPS; n++) {
		if (k > 0 && !om_crew_await(r->crew, k - 1, n + 1))
			return;
		if (r->ends_early && k == 1 && n == STEPS / 2) {
			om_crew_cancel(r->crew);
			return;
		}
		r->sum[k][n] = (k ? r->sum[k - 1][n] : n) + 1;
		om_crew_tell(r->crew, k, n + 1);
	}
}

static void
crews_wait_for_one_another(void)
{
	static struct relay r;
	bool right = true;

	r.crew = om_crew_new(PARTS);
	CU_ASSERT_FATAL(r.crew != NULL);
	for (int task = 0; task < 60; task++) {
		memset(r.sum, 0, sizeof r.sum);
		r.ends_early = task % 3 == 2;
		om_crew_run(r.crew, run_part, &r);
		for (uint32_t n = 0; n < STEPS && !r.ends_early; n++)
			right &= r.sum[PARTS - 1][n] == n + PARTS;
		right &= !r.ends_early || r.sum[PARTS - 1][STEPS - 1] == 0;
	}
	CU_ASSERT(right);
	om_crew_free(r.crew);
	om_crew_free(NULL);
}

static CU_TestInfo tests[] = {
	{"parts wait for one another, and a cancelled task ends", crews_wait_for_one_another},
	CU_TEST_INFO_NULL
};

UNIT_SUITE("crew", tests);
