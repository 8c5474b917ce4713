/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of the learning rate. */
#include <config.h>

#include <math.h>

#include "onnxmem/trainer.h"
#include "tests/fixtures.h"
#include "unit.h"

static double
at(const char *text, uint64_t warmup, uint64_t step)
{
	om_session *s = om_session_new();
	om_rate_schedule r;

	CU_ASSERT_FATAL(is_ok(s, om_rate_parse(s, text, warmup, &r)));
	om_session_free(s);
	return om_rate_at(&r, 0.5, step);
}

static void
near(double x, double want)
{
	CU_ASSERT(fabs(x - want) < 1e-12);
}

static void
rates_follow_the_schedule(void)
{
	near(at("constant", 0, 0), 0.5);
	near(at("constant", 0, 1000000), 0.5);
	near(at("step:10:0.1", 0, 9), 0.5);
	near(at("step:10:0.1", 0, 10), 0.05);
	near(at("step:10:0.1", 0, 29), 0.005);
	near(at("cosine:100", 0, 0), 0.5);
	near(at("cosine:100", 0, 50), 0.25);
	near(at("cosine:100", 0, 100), 0);
	near(at("cosine:100", 0, 1000), 0);
	near(at("cosine:100:0.1", 0, 50), 0.275);
	near(at("cosine:100:0.1", 0, 100), 0.05);
	near(at("linear:100:0.2", 0, 25), 0.4);
	near(at("linear:100", 0, 100), 0);
}

/* The rate rises to all of it, and the schedule begins after that. */
static void
warm_up_comes_first(void)
{
	near(at("constant", 4, 0), 0.125);
	near(at("constant", 4, 3), 0.5);
	near(at("constant", 4, 4), 0.5);
	near(at("linear:10", 4, 4), 0.5);
	near(at("linear:10", 4, 9), 0.25);
}

static void
wrong_schedules_are_refused(void)
{
	static const char *const wrong[] = {"", "sine:3", "constant:3", "step:3", "step:0:0.1", "step:-1:0.1", "step:3:2", "cosine", "cosine:x",
		"cosine:10:nan", "linear:10:0.1:2", "cosine:99999999999999999999"};
	om_session *s = om_session_new();
	om_rate_schedule r;

	for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++)
		CU_ASSERT(is_told(s, om_rate_parse(s, wrong[k], 0, &r), OM_USAGE, "a schedule is constant, step:STEPS:FACTOR"));
	om_session_free(s);
}

static CU_TestInfo rate_tests[] = {
	{"rates follow the schedule", rates_follow_the_schedule},
	{"a warm-up comes first", warm_up_comes_first},
	{"wrong schedules are refused", wrong_schedules_are_refused},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("learning rates", rate_tests);
