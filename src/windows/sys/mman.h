/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in pages, on Windows; see ../system.h.  Files are mapped from their start, and read-only. */
#ifndef OM_WINDOWS_MMAN_H
#define OM_WINDOWS_MMAN_H

#include <stddef.h>
#include <stdint.h>

enum { PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 1, MAP_SHARED = 2, MAP_ANONYMOUS = 4, MADV_DONTNEED = 1 };

#define MAP_FAILED ((void *)(intptr_t)-1)

void *mmap(void *at, size_t size, int prot, int flags, int fd, int64_t offset);
int munmap(void *data, size_t size);

/* The system gives back pages of files by itself. */
#define madvise(data, size, how) ((void)(data), (void)(size), (void)(how), 0)

#endif
