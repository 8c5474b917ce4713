/* SPDX-License-Identifier: Apache-2.0 */
/* What POSIX has; see system.h. */
#include <config.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"

void *
om_aligned_new(size_t align, size_t n)
{
	void *data;

	return posix_memalign(&data, align, n ? n : 1) == 0 ? data : NULL;
}

void
om_aligned_free(void *data)
{
	free(data);
}

FILE *
om_memory_stream_open(struct om_memory_stream *m)
{
	*m = (struct om_memory_stream){0};
	return m->to = open_memstream(&m->data, &m->size);
}

/* An error of a stream in memory is that there is no more of it; closing it sets its data. */
char *
om_memory_stream_close(struct om_memory_stream *m, size_t *size)
{
	const bool is_whole = !ferror(m->to) && fflush(m->to) == 0;

	fclose(m->to);
	*size = is_whole ? m->size : 0;
	if (is_whole)
		return m->data;
	free(m->data);
	return NULL;
}

char *
om_path_slash(const char *path)
{
	return strrchr(path, '/');
}

bool
om_path_is_absolute(const char *path)
{
	return *path == '/';
}

void
om_temporary_folder(char *out, size_t n)
{
	const char *set = getenv("TMPDIR");

	snprintf(out, n, "%s", set && *set == '/' && strlen(set) < n ? set : "/tmp");
}
