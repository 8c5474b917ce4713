/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices: which ops a device computes, and by which launches.
 *
 * A row serves one operator.  Its `launches` turns an op with known types and shapes into launches of kernels, whose
 * sources (src/kernels/gpu) every device compiles in its dialect.  Arguments name inputs, outputs and the scratch of
 * the op, never memory: the executor binds them to the places of the plan.
 *
 * Rows are for all devices.  What a device computes in libraries of its own is an operator or a row of its module.
 */
#ifndef OM_DEVICE_KERNEL_H
#define OM_DEVICE_KERNEL_H

#include "onnxmem/device.h"
#include "onnxmem/opdef.h"

/* What an argument in memory belongs to. */
typedef enum om_operand { OM_OPERAND_IN, OM_OPERAND_OUT, OM_OPERAND_SCRATCH } om_operand;

/* An argument of a launch. */
typedef struct om_launch_arg {
	om_arg_kind kind;
	om_operand operand;      /* of an argument in memory, as the next three */
	uint32_t index;          /* of the input or output; 0 for scratch */
	uint64_t at, bytes;      /* the range in the operand that the kernel uses; bytes 0: all from `at` on */
	om_arg_type type;        /* of a number, as the next */
	om_arg_value value;
} om_launch_arg;

enum { OM_LAUNCH_ARGS = 32 };

/* One launch of a kernel. */
typedef struct om_launch {
	const char *unit;        /* the name of a source text in src/kernels/gpu (kernels/gpu/source.h); NULL: `prologue`
	                            is the whole text */
	const char *prologue;    /* text before it, as definitions of types, or generated code; NULL: none */
	const char *entry;       /* the kernel */
	om_grid grid;
	om_launch_arg arg[OM_LAUNCH_ARGS];
	uint32_t nargs;
} om_launch;

/* The launches of an op, in order: each one sees what those before it wrote. */
typedef struct om_launch_list {
	om_arena *mem;           /* holds the list, and the texts that `launches` makes */
	om_launch *launch;
	size_t n, cap;
	uint32_t threads;        /* of a block, at most, as the device has them */
	uint32_t shared;         /* bytes of shared memory of a block, at most */
} om_launch_list;

/* A row.  A NULL function means never, or none. */
typedef struct om_device_kernel {
	const char *domain;      /* of the operator; NULL: ai.onnx */
	const char *name;        /* of the operator; NULL ends a list */
	int since, until;        /* versions of the operator, inclusive; 0: unbounded */
	uint32_t types[OM_MAX_TYPED_INPUTS];  /* of the inputs, as in om_opdef.input_types; 0: all of the operator */

	/* Inputs that stay on the host, as a bit set, which covers inputs from 31 on too: what decides shapes or
	 * launches.  `launches` reads their elements, which are known: an op where one is no constant stays on the host. */
	uint32_t host_inputs;

	/* Can it compute this op?  Types have been matched; shapes, and elements of constants, are known.  NULL: always. */
	bool (*supports)(const om_op_context *c);

	/* May output `out` be computed over input `in`?  Asked where the definition of the operator permits it. */
	bool (*inplace)(const om_op_context *c, uint32_t out, uint32_t in);

	/* Bytes of scratch, a function of types and shapes. */
	uint64_t (*scratch)(const om_op_context *c);

	/* Append the launches by om_launch_add().  Elements are known of constants that are host inputs; nothing else may be read.  An
	 * op with outputs of no elements is not asked. */
	om_status (*launches)(const om_op_context *c, om_launch_list *to);
} om_device_kernel;

/* Blocks enough for `threads` threads in all, or as many as all devices have: kernels loop over the grid. */
om_grid om_grid_of(const om_launch_list *to, uint64_t threads);

/* Append a launch of `threads` threads in all, which kernels see as a loop over the grid (OM_GRID_LOOP), or of a given
 * grid.  The result is valid until the next launch is added. */
om_launch *om_launch_add(om_launch_list *to, const char *unit, const char *prologue, const char *entry, uint64_t threads);
om_launch *om_launch_add_grid(om_launch_list *to, const char *unit, const char *prologue, const char *entry, om_grid grid);

/* The unsigned type of the kernel language of as many bytes as an element has, as "u32"; NULL: there is none. */
const char *om_kernel_moved_type(om_dtype t);

/* Append a launch of kernel `kernel` of a source for elements of `type`, a type of the kernel language, with `threads` threads in
 * all. */
om_launch *om_launch_typed(om_launch_list *to, const char *unit, const char *kernel, const char *type, int64_t threads);

/* Append an argument: all of an input, output or the scratch; a part of one; or a number. */
void om_launch_in(om_launch *l, uint32_t in);
void om_launch_out(om_launch *l, uint32_t out);
void om_launch_scratch(om_launch *l, om_arg_kind kind, uint64_t at, uint64_t bytes);
void om_launch_part(om_launch *l, om_arg_kind kind, om_operand operand, uint32_t index, uint64_t at, uint64_t bytes);
void om_launch_i32(om_launch *l, int32_t i);
void om_launch_i64(om_launch *l, int64_t i);
void om_launch_f32(om_launch *l, float f);

/* The row for an op with known types and shapes: of all that match, the last one.  NULL: the op stays on the host. */
const om_device_kernel *om_device_kernel_find(const om_op_context *c);

/* Does the row read input `in` on the host? */
static inline bool
om_is_host_input(const om_device_kernel *k, uint32_t in)
{
	return k->host_inputs >> (in < 31 ? in : 31) & 1;
}

/* Does an op that runs on the device read input `in` in its memory?  `k` is its row; NULL: it is a view of input `viewed`. */
static inline bool
om_device_reads(const om_op *op, const om_device_kernel *k, uint32_t viewed, uint32_t in)
{
	return op->in[in] && (k ? !om_is_host_input(k, in) : in == viewed);
}

#endif
