/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <string.h>

#include "alloc/known_sizes.h"
#include "base/fast_hash.h"

/* Problems that are kept; numbers in one of them, at most. */
enum { NKEPT = 64, MOST_NUMBERS = 4096 };

/* A problem as numbers: first the limits, then all that the packer reads of each buffer. */
struct known {
	uint64_t *number;
	size_t n, capacity;
	uint64_t hash;
	om_arena_size size;
};

struct om_known_sizes {
	om_arena *mem;
	struct known kept[NKEPT];
	uint32_t nkept, next;
};

om_known_sizes *
om_known_sizes_new(om_arena *mem)
{
	om_known_sizes *known = OM_NEW(mem, om_known_sizes);

	known->mem = mem;
	return known;
}

/* ---- Problems as numbers. ---- */

enum { NLIMIT = 4, NBUFFER = 4, NINTERVAL = 3 };

/* How many numbers it takes; 0: more than are kept. */
static size_t
count_numbers(const om_buffer *buf, uint32_t n)
{
	size_t sum = NLIMIT;

	for (uint32_t k = 0; k < n && sum <= MOST_NUMBERS; k++)
		sum += NBUFFER + (size_t)NINTERVAL * buf[k].nlive;
	return sum <= MOST_NUMBERS ? sum : 0;
}

static uint64_t *
write_buffer(const om_buffer *b, uint64_t *to)
{
	const uint64_t head[NBUFFER] = {b->bytes, b->align, (uint64_t)b->fixed, b->nlive};

	memcpy(to, head, sizeof head);
	to += NBUFFER;
	for (uint32_t k = 0; k < b->nlive; k++) {
		const om_interval *live = &b->live[k];
		const uint64_t numbers[NINTERVAL] = {(uint64_t)live->lower << 32 | live->upper, live->from, live->to};
		memcpy(to, numbers, sizeof numbers);
		to += NINTERVAL;
	}
	return to;
}

static void
write_numbers(const om_buffer *buf, uint32_t n, const om_search_limits *limits, uint64_t *to)
{
	const uint64_t head[NLIMIT] = {limits->nodes, limits->work, limits->target, n};

	memcpy(to, head, sizeof head);
	to += NLIMIT;
	for (uint32_t k = 0; k < n; k++)
		to = write_buffer(&buf[k], to);
}

/* ---- What is kept. ---- */

bool
om_known_sizes_find(const om_known_sizes *known, const om_buffer *buf, uint32_t n, const om_search_limits *limits,
	om_arena_size *size)
{
	uint64_t number[MOST_NUMBERS];
	const size_t count = count_numbers(buf, n);

	if (!count || !known->nkept)
		return false;
	write_numbers(buf, n, limits, number);
	const uint64_t hash = om_fast_hash(0, number, count * sizeof *number);
	for (uint32_t k = 0; k < known->nkept; k++) {
		const struct known *it = &known->kept[k];
		if (it->hash != hash || it->n != count || memcmp(it->number, number, count * sizeof *number) != 0)
			continue;
		*size = it->size;
		return true;
	}
	return false;
}

void
om_known_sizes_add(om_known_sizes *known, const om_buffer *buf, uint32_t n, const om_search_limits *limits,
	const om_arena_size *size)
{
	struct known *it = &known->kept[known->next];
	const size_t count = count_numbers(buf, n);

	if (!count)
		return;
	if (it->capacity < count) {
		const size_t capacity = 2 * count;
		it->number = OM_NEWN(known->mem, uint64_t, capacity);
		it->capacity = capacity;
	}
	write_numbers(buf, n, limits, it->number);
	it->n = count;
	it->hash = om_fast_hash(0, it->number, count * sizeof *it->number);
	it->size = *size;
	known->next = (known->next + 1) % NKEPT;
	known->nkept += known->nkept < NKEPT;
}
