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

/* The same for a number, and for a text, which is short. */
static inline uint64_t
om_fast_hash_number(uint64_t before, uint64_t x)
{
	return om_mix(before ^ x);
}

static inline uint64_t
om_fast_hash_text(uint64_t before, const char *text)
{
	size_t n = strlen(text);
	uint64_t h = before ^ n, word;

	for (; n >= sizeof word; n -= sizeof word, text += sizeof word) {
		memcpy(&word, text, sizeof word);
		h = om_mix(h ^ word);
	}
	for (word = 0; n; n--)
		word = word << 8 | (unsigned char)text[n - 1];
	return om_mix(h ^ word);
}

#endif
