/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of typed kernels; see launches.h. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "ops/device/launches.h"

/* More than any device runs at once; a block has several rows then. */
enum { MOST_ROW_BLOCKS = 1024 };

const char *
om_kernel_type(om_dtype t)
{
	switch (t) {
	case OM_FLOAT32: return "f32";
	case OM_FLOAT16: return "f16";
	case OM_BFLOAT16: return "bf16";
	case OM_FLOAT64: return "f64";
	case OM_INT8: return "i8";
	case OM_UINT8: return "u8";
	case OM_INT16: return "i16";
	case OM_UINT16: return "u16";
	case OM_INT32: return "i32";
	case OM_UINT32: return "u32";
	case OM_INT64: return "i64";
	case OM_UINT64: return "u64";
	case OM_BOOL: return "b8";
	default: return NULL;
	}
}

om_launch *
om_launch_typed_grid(om_launch_list *to, const char *unit, const char *kernel, const char *type, om_grid grid)
{
	return om_launch_add_grid(to, unit, om_printf(to->mem, "#undef TN\n#define TN %s\n", type),
		om_printf(to->mem, "%s_%s", kernel, type), grid);
}

om_launch *
om_launch_pair(om_launch_list *to, const char *unit, const char *kernel, const char *tn, const char *tto, om_grid grid)
{
	return om_launch_add_grid(to, unit, om_printf(to->mem, "#undef TN\n#define TN %s\n#undef TO\n#define TO %s\n", tn, tto),
		om_printf(to->mem, "%s_%s_%s", kernel, tn, tto), grid);
}

om_launch *
om_launch_rows(om_launch_list *to, const char *unit, const char *kernel, const char *type, int64_t rows)
{
	const uint32_t blocks = rows > MOST_ROW_BLOCKS ? MOST_ROW_BLOCKS : (uint32_t)rows;

	return om_launch_typed_grid(to, unit, kernel, type, (om_grid){.blocks = {blocks, 1, 1}, .threads = 256});
}

void
om_launch_i32s(om_launch *l, const int64_t *v, int n)
{
	for (int k = 0; k < n; k++)
		om_launch_i32(l, (int32_t)v[k]);
}

static bool
do_join(const om_launch_walk *w, int k, int operands, int64_t dim, const int64_t *step)
{
	for (int i = 0; i < operands; i++)
		if (w->step[i][k] != step[i] * dim)
			return false;
	return true;
}

bool
om_launch_walk_of(om_launch_walk *w, int rank, const int64_t *dim, int operands, int64_t step[][OM_MAX_RANK])
{
	om_launch_walk all = {.n = 1};
	int n = 0;

	for (int d = 0; d < rank; d++) {
		int64_t here[OM_LAUNCH_OPERANDS] = {0};
		all.n *= dim[d];
		if (dim[d] == 1)
			continue;
		for (int i = 0; i < operands; i++)
			here[i] = step[i][d];
		if (n > 0 && do_join(&all, n - 1, operands, dim[d], here)) {
			all.dim[n - 1] *= dim[d];
		} else {
			if (n == OM_LAUNCH_DIMS)
				return false;
			all.dim[n++] = dim[d];
		}
		for (int i = 0; i < operands; i++)
			all.step[i][n - 1] = here[i];
	}
	/* The last dims are those that kernels divide by first. */
	*w = (om_launch_walk){.n = all.n};
	for (int d = 0; d < OM_LAUNCH_DIMS; d++) {
		const int from = d - (OM_LAUNCH_DIMS - n);
		w->dim[d] = from < 0 ? 1 : all.dim[from];
		for (int i = 0; i < operands; i++)
			w->step[i][d] = from < 0 ? 0 : all.step[i][from];
	}
	return true;
}

bool
om_launch_broadcast(om_launch_walk *w, const om_shape *out, int operands, const om_shape *const *shape)
{
	int64_t step[OM_LAUNCH_OPERANDS][OM_MAX_RANK] = {{0}};

	for (int i = 0; i < operands; i++) {
		const int lead = out->rank - shape[i]->rank;
		int64_t dense[OM_MAX_RANK];
		if (lead < 0)
			return false;
		om_strides(shape[i], dense);
		for (int d = 0; d < shape[i]->rank; d++)
			if (shape[i]->dim[d] != 1)
				step[i][lead + d] = dense[d];
	}
	return om_launch_walk_of(w, out->rank, out->dim, operands, step);
}

void
om_launch_walk_dims(om_launch *l, const om_launch_walk *w)
{
	for (int d = 0; d < OM_LAUNCH_DIMS; d++)
		om_launch_i64(l, w->dim[d]);
}

void
om_launch_walk_steps(om_launch *l, const om_launch_walk *w, int operand)
{
	for (int d = 0; d < OM_LAUNCH_DIMS; d++)
		om_launch_i64(l, w->step[operand][d]);
}

void
om_launch_copy(om_launch_list *to, const char *moved_type, const om_launch_walk *w, om_launch_end from, om_launch_end dest)
{
	om_launch *l = om_launch_typed(to, "move", "copy", moved_type, w->n);

	om_launch_part(l, OM_ARG_IN, from.operand, from.index, 0, 0);
	om_launch_part(l, OM_ARG_OUT, dest.operand, dest.index, 0, 0);
	om_launch_i64(l, w->n);
	om_launch_i64(l, from.at);
	om_launch_i64(l, dest.at);
	om_launch_walk_dims(l, w);
	om_launch_walk_steps(l, w, 0);
	om_launch_walk_steps(l, w, 1);
}

void
om_launch_copy_row(om_launch_list *to, const char *moved_type, int64_t n, om_launch_end from, om_launch_end dest)
{
	om_launch_walk w;

	om_launch_walk_of(&w, 1, &n, 2, (int64_t[2][OM_MAX_RANK]){{1}, {1}});
	om_launch_copy(to, moved_type, &w, from, dest);
}

bool
om_device_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	return out == 0 && om_shape_count(&c->in[in].shape) == om_shape_count(&c->out[0].shape)
	    && om_dtype_bits(c->in[in].type) == om_dtype_bits(c->out[0].type);
}
