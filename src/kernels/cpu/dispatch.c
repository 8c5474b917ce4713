/* Which build of the inner loops this machine runs. */
#include <config.h>

#include <stddef.h>

#include "kernels/cpu/kernels.h"

extern const om_kernels om_kernels_generic;

#ifdef OM_X86
extern const om_kernels om_kernels_avx2, om_kernels_avx512;

const om_kernels *
om_kernels_at(unsigned k)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && k-- == 0)
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

const om_kernels *
om_kernels_get(void)
{
	return om_kernels_at(0);
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
