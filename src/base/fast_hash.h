/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of many bytes at the speed of memory, to notice changes; not against those who seek collisions. */
#ifndef OM_FAST_HASH_H
#define OM_FAST_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"

/* The hash of `n` bytes after others whose hash is `before`, 0 for none.  Little-endian. */
uint64_t om_fast_hash(uint64_t before, const void *p, size_t n);

/* The same for a number, and for a text. */
static inline uint64_t
om_fast_hash_number(uint64_t before, uint64_t x)
{
	return om_mix(before ^ x);
}

static inline uint64_t
om_fast_hash_text(uint64_t before, const char *text)
{
	return om_fast_hash(before, text, strlen(text));
}

#endif
