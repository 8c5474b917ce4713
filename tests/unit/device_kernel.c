/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of kernels for devices: which one serves an op, and the launches that they list. */
#include <config.h>

#include "library/builtin.h"
#include "opdef/device_kernel.h"
#include "tests/fixtures.h"
#include "unit.h"

static bool
is_small(const om_op_context *c)
{
	return om_shape_count(&c->in[0].shape) < 10;
}

static const om_device_kernel early[] = {
	{.name = "Relu", .types = {OM_TYPES(OM_FLOAT32)}},
	{.name = "Relu", .until = 12},
	{.name = "Reshape", .host_inputs = 1u << 1},
	{0}
};

static const om_device_kernel late[] = {{.name = "Relu", .types = {OM_TYPES(OM_FLOAT32)}, .supports = is_small}, {0}};

static const om_device_kernel *const rows[] = {early, late, NULL};

static const om_device_kernel *
found(int version, om_dtype type, int64_t n)
{
	struct om_operators operators = om_builtin;
	om_op op = {.type = "Relu", .domain = "", .name = "", .version = version, .nin = 1, .operators = &operators};
	om_tensor in = {.type = type, .shape = om_shape_of(1, &n)};

	operators.device_kernels = rows;
	op.opdef = om_builtin.find("", "Relu", version);
	return om_device_kernel_find(&(om_op_context){.op = &op, .in = &in});
}

static void
the_last_row_that_fits_serves(void)
{
	CU_ASSERT_PTR_EQUAL(found(14, OM_FLOAT32, 9), &late[0]);
	CU_ASSERT_PTR_EQUAL(found(14, OM_FLOAT32, 10), &early[0]);
	CU_ASSERT_PTR_NULL(found(14, OM_FLOAT64, 9));
	CU_ASSERT_PTR_EQUAL(found(6, OM_FLOAT64, 9), &early[1]);
}

static void
inputs_of_the_host_are_a_set(void)
{
	const om_device_kernel rest = {.host_inputs = 1u << 31};

	CU_ASSERT(!om_is_host_input(&early[2], 0));
	CU_ASSERT(om_is_host_input(&early[2], 1));
	CU_ASSERT(!om_is_host_input(&rest, 30));
	CU_ASSERT(om_is_host_input(&rest, 31));
	CU_ASSERT(om_is_host_input(&rest, 200));
}

static void
launches_are_listed(void)
{
	om_arena *mem = om_arena_new();
	om_launch_list list = {.mem = mem};

	CU_ASSERT_EQUAL(om_launch_add(&list, "u", NULL, "none", 0)->grid.blocks[0], 1);
	CU_ASSERT_EQUAL(om_launch_add(&list, "u", NULL, "some", 257)->grid.blocks[0], 2);
	CU_ASSERT_EQUAL(om_launch_add(&list, "u", NULL, "many", UINT64_MAX)->grid.blocks[0], 65535);
	list.threads = 64;
	om_launch *l = om_launch_add(&list, NULL, "text", "narrow", 128);
	CU_ASSERT_EQUAL(l->grid.threads, 64);
	CU_ASSERT_EQUAL(l->grid.blocks[0], 2);
	om_launch_in(l, 3);
	om_launch_out(l, 1);
	om_launch_scratch(l, OM_ARG_INOUT, 256, 16);
	om_launch_f32(l, 0.5f);
	CU_ASSERT_EQUAL(list.n, 4);
	CU_ASSERT_EQUAL(l->nargs, 4);
	CU_ASSERT(l->arg[0].kind == OM_ARG_IN && l->arg[0].operand == OM_OPERAND_IN && l->arg[0].index == 3);
	CU_ASSERT(l->arg[1].kind == OM_ARG_OUT && l->arg[1].operand == OM_OPERAND_OUT && l->arg[1].index == 1);
	CU_ASSERT(l->arg[2].operand == OM_OPERAND_SCRATCH && l->arg[2].at == 256 && l->arg[2].bytes == 16);
	CU_ASSERT(l->arg[3].kind == OM_ARG_VALUE && l->arg[3].value.f == 0.5f);
	om_arena_free(mem);
}

static CU_TestInfo device_kernel_tests[] = {
	{"the last row that fits serves an op", the_last_row_that_fits_serves},
	{"inputs of the host are a set", inputs_of_the_host_are_a_set},
	{"launches are listed", launches_are_listed},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("kernels of devices", device_kernel_tests);
