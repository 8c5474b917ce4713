/* SPDX-License-Identifier: Apache-2.0 */
/* Processors that this process may use. */
#include <config.h>

#include <sched.h>
#include <unistd.h>

#include "base/parallel.h"

#ifdef HAVE_SCHED_GETAFFINITY
/* 0: `n` is less than the processors of the kernel. */
static int
count_allowed(int n)
{
	cpu_set_t *set = CPU_ALLOC((size_t)n);
	const size_t bytes = CPU_ALLOC_SIZE((size_t)n);
	const int count = set && sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;

	CPU_FREE(set);
	return count;
}
#else
static int
count_allowed(int n)
{
	const long online = sysconf(_SC_NPROCESSORS_ONLN);

	return online > 0 && online < n ? (int)online : 0;
}
#endif

uint32_t
om_core_count(void)
{
	enum { FEW = 1024, MANY = 1 << 16 };

	for (int n = FEW; n <= MANY; n *= 2) {
		const int count = count_allowed(n);
		if (count > 0)
			return (uint32_t)count;
	}
	return 1;
}
