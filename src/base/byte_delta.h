/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of byte strings: a target as copies of ranges of a source and bytes of its own.
 *
 * A delta is a list of steps.  Each is: the number of own bytes, the own bytes, the number of bytes that
 * are copied from the source, and, unless that is 0, where they start, as a signed difference to the end
 * of the previous copy.  Numbers are LEB128, signed ones zigzag.
 *
 * Ranges are found by the hashes of aligned blocks of the source, looked up by a rolling hash of the
 * target (Karp and Rabin 1987; blocks as in rsync, Tridgell 1999), and extended to both sides.
 */
#ifndef OM_BYTE_DELTA_H
#define OM_BYTE_DELTA_H

#include <stdbool.h>

#include "onnxmem/arena.h"

typedef struct om_bytes {
	unsigned char *data;
	size_t size;
} om_bytes;

/* The delta that makes `to` of `from`, allocated in `mem`; O(from + to) time, and memory for it and for an
 * index of at most 16 MiB. */
om_bytes om_byte_delta(om_arena *mem, const void *from, size_t nfrom, const void *to, size_t nto);

/* Make `size` bytes at `to` of `from`.  False if the delta is damaged, or makes another number of bytes. */
bool om_byte_delta_apply(const void *from, size_t nfrom, const void *delta, size_t ndelta, void *to, size_t size);

#endif
