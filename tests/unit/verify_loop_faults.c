/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in multi-views, each put into a plan that the passes made and that is
 * right without it. */
#include <config.h>

#include <stdio.h>

#include "onnxmem/builder.h"
#include "onnxmem/plan.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "ir/edit.h"

/* `p` rotates with what is computed; `w` is computed before the loop, and read in
 * every iteration of it. */
static const char turning[] =
	"program \"\" ir 8 opset 13\n"
	"^g(%x: float32[16], %m: int64[]) {\n"
	"%i = const int64[] {0}\n%go = const bool[] {1}\n%c = const float32[16] {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}\n"
	"%w = CumSum(%x, %i)\n"
	"%s = Loop(%m, %go, %x) {body = ^round(%n: int64[], %g: bool[], %p: float32[16]) {\n"
	"%q = CumSum(%p, %i)\n%r = Add(%q, %c)\n%v = Mul(%r, %w)\n%y = CumSum(%v, %i)\n%h = Identity(%g)\n%t = Add(%y, %p)\nret %h, %t\n}}\n"
	"%z = CumSum(%s, %i)\nret %z\n}\n";

static const char slicing[] =
	"program \"\" ir 8 opset 13\n"
	"^g(%a: float32[16], %x: float32[7,16]) {\n"
	"%i = const int64[] {0}\n%xs = CumSum(%x, %i)\n"
	"%o, %ys = Scan(%a, %xs) {num_scan_inputs = 1, body = ^round(%p: float32[16], %e: float32[16]) {\n"
	"%r = Add(%p, %e)\n%d = CumSum(%r, %i)\nret %r, %d\n}}\n"
	"%y = CumSum(%ys, %i)\n%z = CumSum(%o, %i)\nret %y, %z\n}\n";

static const char one_slice[] =
	"program \"\" ir 8 opset 13\n"
	"^g(%a: float32[16], %x: float32[1,16]) {\n"
	"%i = const int64[] {0}\n%xs = CumSum(%x, %i)\n%b = CumSum(%a, %i)\n"
	"%o, %ys = Scan(%b, %xs) {num_scan_inputs = 1, body = ^round(%p: float32[16], %e: float32[16]) {\n"
	"%r = Add(%p, %e)\n%d = CumSum(%r, %i)\nret %p, %d\n}}\n"
	"%y = CumSum(%ys, %i)\n%z = CumSum(%o, %i)\nret %y, %z\n}\n";

struct bed {
	bench b;
	om_plan plan;            /* with views of its own */
	om_region region[8];
};

static void
start(struct bed *t, const char *text)
{
	unit_start(&t->b, text, "shapes,fold,liveness,views,inplace,loops,pack");
	t->plan = *t->b.p->plan;
	CU_ASSERT_EQUAL(om_plan_verify(t->b.s, t->b.p, &t->plan), OM_OK);
}

static uint32_t
id(const struct bed *t, const char *name)
{
	const om_value *v = om_prog_find(t->b.p, name);

	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	return v->id;
}

/* The view of `name`, in a plan that is right but for what is done to it then. */
static om_plan_multi_view *
view(struct bed *t, const char *name)
{
	const uint32_t v = id(t, name);

	t->plan = *t->b.p->plan;
	t->plan.view = om_memdup(t->b.p->mem, t->b.p->plan->view, t->plan.nview * sizeof *t->plan.view);
	for (uint32_t k = 0; k < t->plan.nview; k++)
		if (t->plan.view[k].value == v)
			return &t->plan.view[k];
	CU_FAIL_FATAL("it has no view");
	return NULL;
}

/* The regions of that view, to be changed. */
static om_region *
regions(struct bed *t, const char *name)
{
	om_plan_multi_view *v = view(t, name);

	memcpy(t->region, v->off, v->period * sizeof *v->off);
	v->off = t->region;
	return t->region;
}

/* The output of the loop says the same. */
static void
follow(struct bed *t, const char *output)
{
	for (uint32_t k = 0; k < t->plan.nview; k++)
		if (t->plan.view[k].value == id(t, output))
			t->plan.view[k].off = t->region;
}

static void
expect_bad(struct bed *t, const char *sentence)
{
	CU_ASSERT_EQUAL(om_plan_verify(t->b.s, t->b.p, &t->plan), OM_BADPLAN);
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(t->b.s), sentence));
	if (!strstr(om_message(t->b.s), sentence))
		printf("# %s\n# wanted: %s\n", om_message(t->b.s), sentence);
}

static void
rotation(void)
{
	struct bed t;
	om_plan_multi_view *v;
	om_region *r;

	start(&t, turning);
	v = view(&t, "p");
	CU_ASSERT_EQUAL(v->period, 2);
	CU_ASSERT_EQUAL(v->nprologue, 1);

	v->period = 0;
	expect_bad(&t, "has period 0");
	v = view(&t, "p");
	v->period = 65;
	expect_bad(&t, "has period 65");

	r = regions(&t, "p");
	const uint64_t second = r[1].offset;
	r[1].offset = t.plan.arena[0].bytes - 60;
	expect_bad(&t, "a multi-view of p exceeds arena 0");
	r[1].offset = UINT64_MAX - 3;
	expect_bad(&t, "a multi-view of p has an offset that overflows");
	r[1].offset = second + 2;
	expect_bad(&t, "not a multiple of the element size of 4 bytes");
	r[1].arena = 1;
	r[1].offset = 0;
	expect_bad(&t, "a multi-view of p exceeds arena 1");

	r = regions(&t, "p");  /* written over what every iteration reads */
	r[1].offset = t.plan.place[id(&t, "w")].offset;
	follow(&t, "s");
	expect_bad(&t, "reads w (bytes");

	r = regions(&t, "p");  /* where the iterations compute something else */
	r[0].offset = t.plan.place[id(&t, "q")].offset;
	follow(&t, "s");
	expect_bad(&t, "p (bytes");

	r = regions(&t, "p");  /* over a constant */
	r[1] = (om_region){.base = id(&t, "c")};
	expect_bad(&t, "is written over a constant");
	r[1] = (om_region){.base = id(&t, "x")};
	expect_bad(&t, "is written over an input of the graph");
	r[1] = (om_region){.base = id(&t, "q")};
	expect_bad(&t, "not in a scope that encloses the loop");
	r[1] = (om_region){.base = id(&t, "s")};
	expect_bad(&t, "is based on s, whose address is not known yet");
	bench_close(&t.b);
}

/* Where nothing else is, but no place says that anything is, either. */
static void
bytes_that_no_placement_reserves(void)
{
	struct bed t;
	om_region *r;

	start(&t, turning);
	r = regions(&t, "p");
	om_plan_arena wider = t.plan.arena[0];
	r[1].offset = wider.bytes;
	wider.bytes += 64;
	t.plan.arena = &wider;
	follow(&t, "s");
	expect_bad(&t, "but no placements reserve these bytes from step");
	bench_close(&t.b);
}

static void
where_a_loop_ends(void)
{
	struct bed t;
	om_plan_multi_view *v;
	om_region *r;

	start(&t, turning);
	CU_ASSERT(view(&t, "s")->is_output);
	r = regions(&t, "s");
	const om_region first = r[0];
	r[0] = r[1];
	r[1] = first;
	expect_bad(&t, "is declared to share the address of");
	v = view(&t, "s");
	v->nprologue = 0;
	expect_bad(&t, "is declared to share the address of");
	v = view(&t, "s");
	v->is_output = false;
	expect_bad(&t, "s has a multi-view, but belongs to no loop");
	v = view(&t, "s");
	v->value = id(&t, "w");
	expect_bad(&t, "w has a multi-view, but belongs to no loop");
	bench_close(&t.b);
}

static void
slices(void)
{
	struct bed t;
	om_plan_multi_view *v;
	om_region *r;

	start(&t, slicing);
	v = view(&t, "e");
	CU_ASSERT_EQUAL(v->stride, 64);
	v->stride = 128;
	expect_bad(&t, "the slices of e exceed xs");
	v->stride = 32;
	expect_bad(&t, "e is not at the address of its slice of xs in iteration 1");
	v->stride = -64;
	expect_bad(&t, "the slices of e exceed xs");
	v->stride = 62;
	expect_bad(&t, "the slices of e do not have its size");
	v->stride = 0;
	expect_bad(&t, "e is not at the address of its slice of xs in iteration 1");
	r = regions(&t, "e");
	r[0].offset += 4;
	expect_bad(&t, "the slices of e exceed xs");

	r = regions(&t, "d");
	r[0].base = id(&t, "xs");
	expect_bad(&t, "xs");
	bench_close(&t.b);
}

/* Even where there is one slice only: the parameter is written after the last iteration, too. */
static void
slices_of_a_carried_value(void)
{
	struct bed t;
	om_plan_multi_view *v;

	start(&t, one_slice);
	v = view(&t, "p");
	t.region[0] = (om_region){.base = id(&t, "xs")};
	v->off = t.region;
	v->period = 1;
	v->nprologue = 0;
	v->stride = 1 << 20;
	expect_bad(&t, "p has a multi-view of slices, but is loop-carried");
	bench_close(&t.b);
}

static CU_TestInfo multi_view_tests[] = {
	{"rotation", rotation},
	{"bytes that no placement reserves", bytes_that_no_placement_reserves},
	{"where a loop ends", where_a_loop_ends},
	{"slices", slices},
	{"slices of a carried value", slices_of_a_carried_value},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("verifier of multi-views", multi_view_tests);
