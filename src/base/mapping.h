/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are mapped to memory, read-only and private.
 *
 * Their pages are in the memory of the process once they were read, and can be given back at any time:
 * the next read gets them from the file again.  That holds for such mappings alone, so that every one is
 * entered in a list, and a range of addresses is looked up there before its pages are given back.
 *
 * What is mapped is mapped here, so that another system takes another mapping.c alone.
 */
#ifndef OM_MAPPING_H
#define OM_MAPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "onnxmem/arena.h"

/* The first `size` bytes of an open file, read-only; the file may be closed.  NULL, and errno tells why, if they cannot be
 * mapped.  `size` is not 0. */
void *om_map_file(int fd, size_t size);

/* Memory in pages of its own, which are zero, and which the system makes when they are first written; NULL if there is none. */
void *om_map_memory(size_t size);

/* Give back what one of these two returned, with its size. */
void om_unmap(void *data, size_t size);

struct om_mapping;

/* What tells a file from another, and from itself before it was changed. */
struct om_file_state {
	uint64_t device, inode, size;
	int64_t modified[2], changed[2]; /* seconds and nanoseconds */
	bool is_settled;         /* a change after this was taken has another time, however coarse times are */
};

struct om_file_state om_file_state_of(const struct stat *st);

/* The mappings of one owner; zeroed: none. */
struct om_mappings {
	struct om_mapping *first;
};

/* Enter the mapping of a file in a list, whose entries are allocated in `mem`.  It remains the caller's. */
void om_mappings_add(struct om_mappings *l, om_arena *mem, void *data, size_t size, struct om_file_state file);

/* The file that `at` lies in, and where; NULL if it is in no mapping of the list, which may be NULL. */
const struct om_file_state *om_mappings_find(const struct om_mappings *l, const void *at, uint64_t *offset);

/* Give back the pages with any of the `n` bytes at `at`, and a few around them, which were read along with
 * them; nothing happens to memory outside the mappings of the list.  The list may be NULL. */
void om_mappings_drop(const struct om_mappings *l, const void *at, size_t n);

/* Give back all pages of all mappings in the list, which may be NULL. */
void om_mappings_drop_all(const struct om_mappings *l);

/* Make the pages of memory that is about to be written, all at once instead of by a fault for each.  Only ones
 * that lie within the `n` bytes; contents stay. */
void om_pages_make(void *at, size_t n);

/* The alignment of memory that om_pages_huge() is worth calling for; as large is the least such memory. */
enum { OM_HUGE_PAGE = 2 << 20 };

/* Let memory that was just allocated have large pages, as far as it consists of whole ones: a page fault for every
 * 2 MiB, and fewer translations of addresses.  Without support of the system nothing happens. */
void om_pages_huge(void *at, size_t n);

/* Copy `n` bytes, and give back the pages that they came from, piece by piece. */
void om_mappings_move(const struct om_mappings *l, void *to, const void *from, size_t n);

#endif
