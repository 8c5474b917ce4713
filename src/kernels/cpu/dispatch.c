/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the build of the inner loops for this machine. */
#include <config.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"

extern const om_kernels om_kernels_generic;

#ifdef OM_X86
extern const om_kernels om_kernels_avx2, om_kernels_avx512, om_kernels_avx512vnni;

/* The subsets that all processors with AVX-512 have but the first, Knights Landing. */
static bool
has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")
	    && __builtin_cpu_supports("avx512dq");
}

const om_kernels *
om_kernels_at(unsigned k)
{
	__builtin_cpu_init();
	if (has_avx512() && __builtin_cpu_supports("avx512vnni") && k-- == 0)
		return &om_kernels_avx512vnni;
	if (has_avx512() && k-- == 0)
		return &om_kernels_avx512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && k-- == 0)
		return &om_kernels_avx2;
	return k == 0 ? &om_kernels_generic : NULL;
}
#else
const om_kernels *
om_kernels_at(unsigned k)
{
	return k == 0 ? &om_kernels_generic : NULL;
}
#endif

/* The instruction set requested in the environment, or NULL. */
static const char *
requested(void)
{
	const char *isa = getenv("ONNXMEM_ISA");
	return isa && *isa ? isa : NULL;
}

static const om_kernels *
of_name(const char *isa)
{
	const om_kernels *kernels = NULL;

	for (unsigned k = 0; (kernels = om_kernels_at(k)) && strcmp(kernels->isa, isa) != 0; k++)
		;
	return kernels;
}

/* The selection is made once per process, so that one run never mixes builds.  Concurrent first
 * calls make the same selection. */
const om_kernels *
om_kernels_get(void)
{
	static _Atomic(const om_kernels *) chosen;
	const om_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);

	if (!kernels) {
		kernels = requested() ? of_name(requested()) : NULL;
		if (!kernels)
			kernels = om_kernels_at(0);
		atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
	}
	return kernels;
}

const char *
om_kernels_isa(om_session *s)
{
	char names[64] = "";

	if (!requested() || of_name(requested()))
		return om_kernels_get()->isa;
	for (unsigned k = 0; om_kernels_at(k); k++) {
		const size_t n = strlen(names);
		snprintf(names + n, sizeof names - n, "%s%s", k ? ", " : "", om_kernels_at(k)->isa);
	}
	om_fail(s, OM_USAGE, "ONNXMEM_ISA is %s; this machine can run: %s", requested(), names);
	return NULL;
}

uint64_t
om_gemm_workspace(int64_t m, int64_t n, int64_t k)
{
	(void)m;
	const uint64_t columns = n < OM_GEMM_N
		? ((uint64_t)n + OM_GEMM_ROUND - 1) / OM_GEMM_ROUND * OM_GEMM_ROUND : OM_GEMM_N;
	const uint64_t rows = k < OM_GEMM_K ? (uint64_t)k : OM_GEMM_K;

	return (rows * columns + OM_GEMM_N) * sizeof(float);
}
