/* SPDX-License-Identifier: Apache-2.0 */
/* A clock for measurements and time limits. */
#ifndef OM_CLOCK_H
#define OM_CLOCK_H

#include <time.h>

/* Milliseconds since an arbitrary moment; monotonic. */
static inline double
om_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Milliseconds of the processor that all threads of this process have used; unlike the time by the clock it does not
 * count those that other programs ran. */
static inline double
om_cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#endif
