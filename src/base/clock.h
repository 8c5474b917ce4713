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

#endif
