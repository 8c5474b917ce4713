/* SPDX-License-Identifier: Apache-2.0 */
/* Eight lanes of 64 bits, whose multiplications overlap; each step is invertible, so that a single changed word
 * always changes its lane. */
#include <config.h>

#include <string.h>

#include "base/fast_hash.h"

enum { LANES = 8, BLOCK = LANES * sizeof(uint64_t) };

static const uint64_t ODD = UINT64_C(0x9e3779b97f4a7c15);   /* 2^64 divided by the golden ratio */

static uint64_t
mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * ODD;
	return h << 29 | h >> 35;
}

static void
add_block(uint64_t lane[LANES], const unsigned char *p)
{
	uint64_t word[LANES];

	memcpy(word, p, BLOCK);
	for (int k = 0; k < LANES; k++)
		lane[k] = mix(lane[k], word[k]);
}

uint64_t
om_fast_hash(uint64_t before, const void *p, size_t n)
{
	const unsigned char *at = p;
	unsigned char last[BLOCK] = {0};
	uint64_t lane[LANES], h = mix(before, n);

	for (int k = 0; k < LANES; k++)
		lane[k] = mix(h, (uint64_t)k + 1);
	for (; n >= BLOCK; n -= BLOCK, at += BLOCK)
		add_block(lane, at);
	if (n)
		memcpy(last, at, n);
	add_block(lane, last);
	for (int k = 0; k < LANES; k++)
		h = mix(h, lane[k]);
	return h ^ h >> 32;
}
