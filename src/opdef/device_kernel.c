/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of kernels for devices, and lists of launches; see device_kernel.h. */
#include <config.h>

#include <assert.h>
#include <string.h>

#include "base/arena_internal.h"
#include "ir/operators.h"
#include "opdef/device_kernel.h"
#include "opdef/op_context.h"

enum { THREADS = 256, BLOCKS = 65535 };

om_launch *
om_launch_add_grid(om_launch_list *to, const char *unit, const char *prologue, const char *entry, om_grid grid)
{
	OM_PUSH(to->mem, to->launch, to->n, to->cap,
		((om_launch){.unit = unit, .prologue = prologue, .entry = entry, .grid = grid}));
	return &to->launch[to->n - 1];
}

om_grid
om_grid_of(const om_launch_list *to, uint64_t threads)
{
	const uint32_t block = to->threads && to->threads < THREADS ? to->threads : THREADS;
	const uint64_t blocks = threads / block + (threads % block != 0);

	return (om_grid){.blocks = {blocks == 0 ? 1 : blocks > BLOCKS ? BLOCKS : (uint32_t)blocks, 1, 1}, .threads = block};
}

om_launch *
om_launch_add(om_launch_list *to, const char *unit, const char *prologue, const char *entry, uint64_t threads)
{
	return om_launch_add_grid(to, unit, prologue, entry, om_grid_of(to, threads));
}

const char *
om_kernel_moved_type(om_dtype t)
{
	switch (om_dtype_bits(t)) {
	case 8: return "u8";
	case 16: return "u16";
	case 32: return "u32";
	case 64: return "u64";
	default: return NULL;
	}
}

om_launch *
om_launch_typed(om_launch_list *to, const char *unit, const char *kernel, const char *type, int64_t threads)
{
	return om_launch_add(to, unit, om_printf(to->mem, "#undef TN\n#define TN %s\n", type),
		om_printf(to->mem, "%s_%s", kernel, type), (uint64_t)threads);
}

static void
add(om_launch *l, om_launch_arg a)
{
	assert(l->nargs < OM_LAUNCH_ARGS);
	l->arg[l->nargs++] = a;
}

void
om_launch_part(om_launch *l, om_arg_kind kind, om_operand operand, uint32_t index, uint64_t at, uint64_t bytes)
{
	add(l, (om_launch_arg){.kind = kind, .operand = operand, .index = index, .at = at, .bytes = bytes});
}

void
om_launch_in(om_launch *l, uint32_t in)
{
	om_launch_part(l, OM_ARG_IN, OM_OPERAND_IN, in, 0, 0);
}

void
om_launch_out(om_launch *l, uint32_t out)
{
	om_launch_part(l, OM_ARG_OUT, OM_OPERAND_OUT, out, 0, 0);
}

void
om_launch_scratch(om_launch *l, om_arg_kind kind, uint64_t at, uint64_t bytes)
{
	om_launch_part(l, kind, OM_OPERAND_SCRATCH, 0, at, bytes);
}

void
om_launch_i32(om_launch *l, int32_t i)
{
	add(l, (om_launch_arg){.kind = OM_ARG_VALUE, .type = OM_ARG_I32, .value.i = i});
}

void
om_launch_i64(om_launch *l, int64_t i)
{
	add(l, (om_launch_arg){.kind = OM_ARG_VALUE, .type = OM_ARG_I64, .value.i = i});
}

void
om_launch_f32(om_launch *l, float f)
{
	add(l, (om_launch_arg){.kind = OM_ARG_VALUE, .type = OM_ARG_F32, .value.f = f});
}

static bool
fits(const om_device_kernel *k, const om_op_context *c)
{
	const om_op *op = c->op;

	return (k->since == 0 || k->since <= op->version) && (k->until == 0 || op->version <= k->until)
	    && om_types_fit(k->types, c) && (!k->supports || k->supports(c));
}

const om_device_kernel *
om_device_kernel_find(const om_op_context *c)
{
	const om_opdef *row = c->op->opdef;
	const om_device_kernel *best = NULL;

	for (const om_device_kernel *const *list = row ? c->op->operators->device_kernels : NULL; list && *list; list++)
		for (const om_device_kernel *k = *list; k->name; k++)
			if (strcmp(k->name, row->name) == 0 && strcmp(k->domain ? k->domain : "", row->domain ? row->domain : "") == 0
			    && fits(k, c))
				best = k;
	return best;
}
