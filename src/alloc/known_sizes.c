/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <string.h>

#include "alloc/known_sizes.h"
#include "base/fast_hash.h"

/* Problems that are kept, and numbers in one of them, at most; the same of large ones. */
enum { NKEPT = 64, MOST_NUMBERS = 4096, NLARGE = 4, MOST_LARGE = 4 << 20 };

/* A problem as numbers: first the limits, then all that the packer reads of each buffer. */
struct known {
	uint64_t *number;
	size_t n, capacity;
	uint64_t hash;
	om_arena_size size;
};

/* A ring of the last ones. */
struct ring {
	struct known *kept;
	uint32_t most, n, next;
};

struct om_known_sizes {
	om_arena *mem;
	struct known small[NKEPT], large[NLARGE];
	struct ring rings[2];    /* of these two */
};

om_known_sizes *
om_known_sizes_new(om_arena *mem)
{
	om_known_sizes *known = OM_NEW(mem, om_known_sizes);

	known->mem = mem;
	known->rings[0] = (struct ring){.kept = known->small, .most = NKEPT};
	known->rings[1] = (struct ring){.kept = known->large, .most = NLARGE};
	return known;
}

/* ---- Problems as numbers. ---- */

enum { NLIMIT = 4, NBUFFER = 4, NINTERVAL = 3 };

/* How many numbers it takes. */
static size_t
count_numbers(const om_buffer *buf, uint32_t n)
{
	size_t sum = NLIMIT;

	for (uint32_t k = 0; k < n; k++)
		sum += NBUFFER + (size_t)NINTERVAL * buf[k].nlive;
	return sum;
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

static const struct known *
find(const struct ring *ring, const uint64_t *number, size_t count)
{
	const uint64_t hash = om_fast_hash(0, number, count * sizeof *number);

	for (uint32_t k = 0; k < ring->n; k++) {
		const struct known *it = &ring->kept[k];
		if (it->hash == hash && it->n == count && memcmp(it->number, number, count * sizeof *number) == 0)
			return it;
	}
	return NULL;
}

bool
om_known_sizes_find(const om_known_sizes *known, const om_buffer *buf, uint32_t n, const om_search_limits *limits,
	om_arena_size *size)
{
	const size_t count = count_numbers(buf, n);
	const struct ring *ring = &known->rings[count > MOST_NUMBERS];

	if (!ring->n || count > MOST_LARGE)
		return false;
	om_arena *tmp = om_arena_new();
	uint64_t *number = OM_NEWN(tmp, uint64_t, count);
	write_numbers(buf, n, limits, number);
	const struct known *it = find(ring, number, count);
	if (it)
		*size = it->size;
	om_arena_free(tmp);
	return it != NULL;
}

void
om_known_sizes_add(om_known_sizes *known, const om_buffer *buf, uint32_t n, const om_search_limits *limits,
	const om_arena_size *size)
{
	const size_t count = count_numbers(buf, n);
	struct ring *ring = &known->rings[count > MOST_NUMBERS];
	struct known *it = &ring->kept[ring->next];

	if (count > MOST_LARGE)
		return;
	if (it->capacity < count) {
		const size_t capacity = count > MOST_NUMBERS ? count : 2 * count;
		it->number = OM_NEWN(known->mem, uint64_t, capacity);
		it->capacity = capacity;
	}
	write_numbers(buf, n, limits, it->number);
	it->n = count;
	it->hash = om_fast_hash(0, it->number, count * sizeof *it->number);
	it->size = *size;
	ring->next = (ring->next + 1) % ring->most;
	ring->n += ring->n < ring->most;
}

bool
om_known_sizes_is_large(const om_buffer *buf, uint32_t n)
{
	const size_t count = count_numbers(buf, n);

	return count > MOST_NUMBERS && count <= MOST_LARGE;
}
