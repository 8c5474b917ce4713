/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning, between its files; see onnxmem/tune.h. */
#ifndef OM_TUNE_INTERNAL_H
#define OM_TUNE_INTERNAL_H

#include "base/arena_internal.h"
#include "onnxmem/tune.h"

/* Times of runs by an executor; the argument is a uint32_t, the number of threads. */
om_status om_tune_by_executor(void *arg, om_session *s, const om_prog *p, double seconds, om_tune_times *t);

/* A time in a cache. */
typedef struct om_known_time {
	const char *isa, *key, *name; /* the instruction set, the layer, the choice */
	uint64_t threads;
	double ms;               /* of one layer */
	bool is_chosen;
} om_known_time;

typedef struct om_known_times {
	om_known_time *time;
	size_t n, cap;
} om_known_times;

/* Read the file of a folder.  One that is absent or damaged has no times; the latter gives a message for information. */
void om_known_times_read(om_session *s, const char *folder, om_arena *mem, om_known_times *t);
/* The entry; NULL: there is none. */
om_known_time *om_known_times_find(const om_known_times *t, const char *isa, uint64_t threads, const char *key, const char *name);
/* Write the file, in a folder that is made if its parent exists.  A failure is logged. */
void om_known_times_write(om_session *s, const char *folder, const om_known_times *t);

#endif
