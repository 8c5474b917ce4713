/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are mapped to memory; see mapping.h. */
#include <config.h>

#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/mapping.h"

enum {
	AROUND = 64 << 10,       /* bytes that a page fault maps at once, aligned to as many; a multiple of a page */
	PIECE = 4 << 20          /* bytes that are copied before their pages are given back */
};

#ifdef HAVE_STRUCT_STAT_ST_MTIMESPEC
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

static void *
or_null(void *data)
{
	return data == MAP_FAILED ? NULL : data;
}

void *
om_map_file(int fd, size_t size)
{
	return or_null(mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0));
}

void *
om_map_memory(size_t size)
{
	return or_null(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

void
om_unmap(void *data, size_t size)
{
	munmap(data, size);
}

struct om_mapping {
	unsigned char *data;
	size_t size;
	struct om_file_state file;
	struct om_mapping *next;
};

struct om_file_state
om_file_state_of(const struct stat *st)
{
	enum { COARSE = 2 };     /* seconds; times of some file systems are even */
	const time_t old = time(NULL) - COARSE;

	return (struct om_file_state){(uint64_t)st->st_dev, (uint64_t)st->st_ino, (uint64_t)st->st_size,
		{st->st_mtim.tv_sec, st->st_mtim.tv_nsec}, {st->st_ctim.tv_sec, st->st_ctim.tv_nsec},
		st->st_mtim.tv_sec < old && st->st_ctim.tv_sec < old};
}

void
om_mappings_add(struct om_mappings *l, om_arena *mem, void *data, size_t size, struct om_file_state file)
{
	struct om_mapping *m = OM_NEW(mem, struct om_mapping);

	*m = (struct om_mapping){data, size, file, l->first};
	l->first = m;
}

static const struct om_mapping *
find(const struct om_mappings *l, uintptr_t at)
{
	for (const struct om_mapping *m = l ? l->first : NULL; m; m = m->next)
		if (at - (uintptr_t)m->data < m->size)
			return m;
	return NULL;
}

const struct om_file_state *
om_mappings_find(const struct om_mappings *l, const void *at, uint64_t *offset)
{
	const struct om_mapping *m = find(l, (uintptr_t)at);

	if (!m)
		return NULL;
	*offset = (uint64_t)((uintptr_t)at - (uintptr_t)m->data);
	return &m->file;
}

/* Mappings start at a page.  A system that cannot give pages back keeps them, which does no harm. */
static void
drop(uintptr_t from, uintptr_t to)
{
	(void)!madvise((void *)from, to - from, MADV_DONTNEED);
}

void
om_mappings_drop(const struct om_mappings *l, const void *at, size_t n)
{
	const struct om_mapping *m = find(l, (uintptr_t)at);

	if (!m || n == 0)
		return;
	const uintptr_t first = (uintptr_t)m->data, end = first + m->size;
	const uintptr_t from = (uintptr_t)at / AROUND * AROUND;
	const uintptr_t to = n < end - (uintptr_t)at ? (uintptr_t)at + n : end;
	drop(from < first ? first : from, end - to < AROUND ? end : (to + AROUND - 1) / AROUND * AROUND);
}

void
om_mappings_drop_all(const struct om_mappings *l)
{
	for (const struct om_mapping *m = l ? l->first : NULL; m; m = m->next)
		if (m->size)
			drop((uintptr_t)m->data, (uintptr_t)m->data + m->size);
}

void
om_pages_make(void *at, size_t n)
{
#ifdef MADV_POPULATE_WRITE
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = ((uintptr_t)at + n) / page * page;
	const uintptr_t from = ((uintptr_t)at + page - 1) / page * page;

	if (from < end)
		(void)!madvise((void *)from, end - from, MADV_POPULATE_WRITE);
#else
	(void)at;
	(void)n;
#endif
}

void
om_pages_huge(void *at, size_t n)
{
#ifdef MADV_HUGEPAGE
	const uintptr_t size = OM_HUGE_PAGE, end = ((uintptr_t)at + n) / size * size;
	const uintptr_t from = ((uintptr_t)at + size - 1) / size * size;

	if (from < end)
		(void)!madvise((void *)from, end - from, MADV_HUGEPAGE);
#else
	(void)at;
	(void)n;
#endif
}

void
om_mappings_move(const struct om_mappings *l, void *to, const void *from, size_t n)
{
	for (size_t at = 0; at < n; at += PIECE) {
		const size_t size = n - at < PIECE ? n - at : PIECE;
		om_pages_make((char *)to + at, size);
		memcpy((char *)to + at, (const char *)from + at, size);
		om_mappings_drop(l, (const char *)from + at, size);
	}
}
