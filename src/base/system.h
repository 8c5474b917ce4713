/* SPDX-License-Identifier: Apache-2.0 */
/* What POSIX has and other systems do not, so that each has its own way: posix.c, and src/windows/system.c. */
#ifndef OM_SYSTEM_H
#define OM_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Memory at a multiple of `align`, which is a power of two and a multiple of the size of a pointer; NULL if there is none.  Only
 * om_aligned_free() frees it. */
void *om_aligned_new(size_t align, size_t n);
void om_aligned_free(void *data);

/* A stream that is written to memory. */
struct om_memory_stream {
	FILE *to;
	char *data;              /* the system's until the stream is closed */
	size_t size;
};

/* NULL if there is no memory for it. */
FILE *om_memory_stream_open(struct om_memory_stream *m);

/* What was written, to be freed, with a zero after it, and its size; NULL if there was no memory for all of it. */
char *om_memory_stream_close(struct om_memory_stream *m, size_t *size);

/* The last separator of folders in a path; NULL: there is none. */
char *om_path_slash(const char *path);

/* Does a path lead to the same file from every folder? */
bool om_path_is_absolute(const char *path);

/* The folder for temporary files, without a slash after it. */
void om_temporary_folder(char *out, size_t n);

#endif
