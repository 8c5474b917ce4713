/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program: its allocation number STARVE fails, as if memory ran out, or none if that is 0.  When the
 * program ends, their number is written to standard error. */
#include <config.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnxmem/status.h"

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static atomic_ulong count;
static unsigned long last;      /* the one that fails */

static bool
fails(void)
{
	if (atomic_fetch_add(&count, 1) + 1 != last)
		return false;
	errno = ENOMEM;
	return true;
}

OM_API void *
malloc(size_t n)
{
	return fails() ? NULL : __libc_malloc(n);
}

OM_API void *
calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

OM_API void *
realloc(void *p, size_t n)
{
	return fails() ? NULL : __libc_realloc(p, n);
}

/* What the loader and the constructors of libraries allocate is not counted. */
__attribute__((constructor)) static void
begin(void)
{
	const char *at = getenv("STARVE");

	atomic_store(&count, 0);
	last = at ? strtoul(at, NULL, 10) : 0;
}

__attribute__((destructor)) static void
end(void)
{
	char text[64];
	const int n = snprintf(text, sizeof text, "allocations: %lu\n", atomic_load(&count));

	if (write(STDERR_FILENO, text, (size_t)n) != n)
		_exit(99);
}
