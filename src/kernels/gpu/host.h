/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the kernel language, compiled as C: what the simulated device and tests run. */
#ifndef OM_GPU_HOST_H
#define OM_GPU_HOST_H

#include "kernels/gpu/fibers.h"

/* An argument: memory is a base and an offset; a number is an integer or a float. */
typedef struct om_gpu_value {
	uint8_t *base;
	uint64_t offset;
	int64_t i;
	float f;
} om_gpu_value;

typedef struct om_gpu_kernel {
	const char *name;        /* as "softmax_rows_f32"; NULL ends the table */
	const char *params;      /* a letter each: m memory, l an integer of 64 bits, i one of 32, f a float */
	void (*call)(const void *values);
	bool has_barriers;
} om_gpu_kernel;

/* All kernels in all types. */
extern const om_gpu_kernel om_gpu_kernels[];

/* The kernel of this name; NULL: there is none. */
const om_gpu_kernel *om_gpu_kernel_find(const char *name);

/* Run a grid, as om_fibers_run(). `values` has an element for each letter of `params`. */
static inline const char *
om_gpu_kernel_run(om_fibers *f, const om_gpu_kernel *k, const om_gpu_value *values, const uint32_t blocks[3],
	uint32_t threads, uint64_t seed)
{
	return om_fibers_run(f, k->call, values, blocks, threads, k->has_barriers, seed);
}

#endif
