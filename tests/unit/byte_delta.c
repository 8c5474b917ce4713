/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of byte strings. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/byte_delta.h"
#include "base/rng.h"
#include "unit.h"

enum { MOST = 4000, TRIES = 400, SLACK = 64 };

/* Few different bytes, so that blocks repeat. */
static size_t
draw(uint64_t *seed, unsigned char *to)
{
	const size_t n = om_rng_below(seed, MOST);
	const uint64_t kinds = 1 + om_rng_below(seed, 256);

	for (size_t k = 0; k < n; k++)
		to[k] = (unsigned char)om_rng_below(seed, kinds);
	return n;
}

/* Pieces of the source in any order, with bytes between them. */
static size_t
change(uint64_t *seed, const unsigned char *from, size_t nfrom, unsigned char *to)
{
	size_t n = 0;

	while (n < MOST && om_rng_below(seed, 12)) {
		const size_t at = nfrom ? om_rng_below(seed, nfrom) : 0;
		size_t many = om_rng_below(seed, 1 + nfrom - at);
		if (many > MOST - n)
			many = MOST - n;
		if (many)
			memcpy(to + n, from + at, many);
		n += many;
		for (uint64_t own = om_rng_below(seed, 20); own > 0 && n < MOST; own--)
			to[n++] = (unsigned char)om_rng(seed);
	}
	return n;
}

static void
test_round_trip(void)
{
	static unsigned char from[MOST], to[MOST], again[MOST + 1];

	for (uint64_t k = 0; k < TRIES; k++) {
		uint64_t seed = k;
		om_arena *mem = om_arena_new();
		const size_t nfrom = draw(&seed, from), nto = k % 2 ? draw(&seed, to) : change(&seed, from, nfrom, to);
		const om_bytes delta = om_byte_delta(mem, from, nfrom, to, nto);
		CU_ASSERT(om_byte_delta_apply(from, nfrom, delta.data, delta.size, again, nto));
		CU_ASSERT(memcmp(to, again, nto) == 0);
		CU_ASSERT(!om_byte_delta_apply(from, nfrom, delta.data, delta.size, again, nto + 1));
		om_arena_free(mem);
	}
}

/* A few bytes that differ cost a few bytes. */
static void
test_small(void)
{
	static unsigned char from[MOST], to[MOST];
	uint64_t seed = 1;

	for (size_t k = 0; k < MOST; k++)
		from[k] = (unsigned char)om_rng(&seed);
	memcpy(to, from + 7, MOST - 7);
	memcpy(to + MOST - 7, "another", 7);
	om_arena *mem = om_arena_new();
	CU_ASSERT(om_byte_delta(mem, from, MOST, to, MOST).size < SLACK);
	memset(from, 0, MOST);
	memset(to, 0, MOST);
	CU_ASSERT(om_byte_delta(mem, from, MOST, to, MOST).size < SLACK);
	om_arena_free(mem);
}

/* Whatever a delta says, only the target is written, and only the source is read; sanitizers look on. */
static void
test_damage(void)
{
	static unsigned char from[MOST], to[MOST];

	for (uint64_t k = 0; k < TRIES; k++) {
		uint64_t seed = k;
		om_arena *mem = om_arena_new();
		const size_t nfrom = draw(&seed, from), nto = change(&seed, from, nfrom, to);
		const om_bytes delta = om_byte_delta(mem, from, nfrom, to, nto);
		unsigned char *exact = om_alloc(mem, nto + 1);
		for (unsigned n = 0; n < 4 && delta.size; n++)
			delta.data[om_rng_below(&seed, delta.size)] ^= (unsigned char)(1 << om_rng_below(&seed, 8));
		om_byte_delta_apply(from, nfrom, delta.data, delta.size, exact, nto);
		om_byte_delta_apply(from, nfrom / 2, delta.data, delta.size, exact, nto);
		om_arena_free(mem);
	}
	CU_ASSERT(!om_byte_delta_apply(from, 4, "\0\5\0", 3, to, 5));
	CU_ASSERT(!om_byte_delta_apply(from, 4, "\0\1\1", 3, to, 1));
	CU_ASSERT(!om_byte_delta_apply(from, 4, "\2a", 2, to, 2));
	CU_ASSERT(!om_byte_delta_apply(from, 4, "\1a", 2, to, 1));
	CU_ASSERT(!om_byte_delta_apply(from, 4, "\377\377\377\377\377\377\377\377\377\377\1", 11, to, 1));
	CU_ASSERT(om_byte_delta_apply(from, 4, "", 0, to, 0));
}

static CU_TestInfo tests[] = {
	{"of random bytes", test_round_trip},
	{"small changes are small", test_small},
	{"damaged ones are refused", test_damage},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("byte deltas", tests);
