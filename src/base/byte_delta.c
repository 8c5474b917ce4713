/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of byte strings; see byte_delta.h. */
#include <config.h>

#include <stdint.h>
#include <string.h>

#include "base/arena_internal.h"
#include "base/byte_delta.h"

enum {
	MIN_BLOCK = 32,
	MAX_BLOCKS = 1 << 20,
	NUMBER = 10              /* bytes of the longest number */
};

static const uint64_t BASE = 0x9e3779b97f4a7c15u;

/* ---- Writing. ---- */

struct writer {
	om_arena *mem;
	unsigned char *data;
	size_t size, cap;
	size_t end;              /* of the previous copy, in the source */
};

static void
reserve(struct writer *w, size_t n)
{
	if (w->cap - w->size >= n)
		return;
	const size_t cap = 2 * w->cap + n;
	unsigned char *more = om_alloc(w->mem, cap);
	if (w->size)
		memcpy(more, w->data, w->size);
	w->data = more;
	w->cap = cap;
}

static void
put_number(struct writer *w, uint64_t x)
{
	reserve(w, NUMBER);
	for (; x >= 0x80; x >>= 7)
		w->data[w->size++] = (unsigned char)(x | 0x80);
	w->data[w->size++] = (unsigned char)x;
}

static uint64_t
zigzag(int64_t x)
{
	return x < 0 ? ~((uint64_t)x << 1) : (uint64_t)x << 1;
}

static void
put_step(struct writer *w, const unsigned char *own, size_t nown, size_t from, size_t ncopy)
{
	put_number(w, nown);
	reserve(w, nown);
	if (nown)
		memcpy(w->data + w->size, own, nown);
	w->size += nown;
	put_number(w, ncopy);
	if (ncopy)
		put_number(w, zigzag((int64_t)from - (int64_t)w->end));
	w->end = from + ncopy;
}

/* ---- The index of the source. ---- */

struct block_index {
	const unsigned char *from;
	size_t nfrom, block;
	uint32_t *slot;          /* number of a block + 1; 0: none */
	unsigned shift;
	uint64_t top;            /* BASE ^ (block - 1) */
};

static uint64_t
hash_of(const unsigned char *p, size_t n)
{
	uint64_t h = 0;

	for (size_t k = 0; k < n; k++)
		h = h * BASE + p[k] + 1;
	return h;
}

static uint32_t *
slot_of(const struct block_index *x, uint64_t hash)
{
	return &x->slot[(hash * BASE) >> x->shift];
}

/* Of blocks with equal slots the first is kept. */
static void
build_index(struct block_index *x, om_arena *mem, const void *from, size_t nfrom)
{
	unsigned bits = 4;

	*x = (struct block_index){.from = from, .nfrom = nfrom, .block = MIN_BLOCK, .top = 1};
	while (nfrom / x->block > MAX_BLOCKS)
		x->block *= 2;
	for (size_t k = 1; k < x->block; k++)
		x->top *= BASE;
	const size_t n = nfrom / x->block;
	while ((size_t)1 << bits < 2 * n)
		bits++;
	x->shift = 64 - bits;
	x->slot = OM_NEWN(mem, uint32_t, (size_t)1 << bits);
	for (size_t k = 0; k < n; k++) {
		uint32_t *slot = slot_of(x, hash_of(x->from + k * x->block, x->block));
		if (!*slot)
			*slot = (uint32_t)k + 1;
	}
}

/* ---- Matching. ---- */

/* Where the block at `p` is in the source; SIZE_MAX: nowhere. */
static size_t
find_block(const struct block_index *x, uint64_t hash, const unsigned char *p)
{
	const uint32_t k = *slot_of(x, hash);
	const size_t at = ((size_t)k - 1) * x->block;

	return k && memcmp(x->from + at, p, x->block) == 0 ? at : SIZE_MAX;
}

static size_t
equal_after(const unsigned char *a, const unsigned char *b, size_t most)
{
	size_t n = 0;

	while (n < most && a[n] == b[n])
		n++;
	return n;
}

static size_t
equal_before(const unsigned char *a, const unsigned char *b, size_t most)
{
	size_t n = 0;

	while (n < most && a[-1 - (ptrdiff_t)n] == b[-1 - (ptrdiff_t)n])
		n++;
	return n;
}

static size_t
smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

om_bytes
om_byte_delta(om_arena *mem, const void *from, size_t nfrom, const void *target, size_t nto)
{
	const unsigned char *to = target;
	struct writer w = {.mem = mem};
	struct block_index x;
	size_t done = 0, k = 0;

	om_arena *tmp = om_arena_new();
	build_index(&x, tmp, from, nfrom);
	uint64_t hash = nto >= x.block ? hash_of(to, x.block) : 0;
	while (nto >= x.block && k <= nto - x.block) {
		const size_t at = find_block(&x, hash, to + k);
		if (at == SIZE_MAX) {
			if (k < nto - x.block)
				hash = (hash - (to[k] + 1) * x.top) * BASE + to[k + x.block] + 1;
			k++;
			continue;
		}
		const size_t before = equal_before(x.from + at, to + k, smaller(at, k - done));
		const size_t after = equal_after(x.from + at, to + k, smaller(nfrom - at, nto - k));
		put_step(&w, to + done, k - before - done, at - before, before + after);
		done = k += after;
		if (k <= nto - x.block)
			hash = hash_of(to + k, x.block);
	}
	if (done < nto)
		put_step(&w, to + done, nto - done, w.end, 0);
	om_arena_free(tmp);
	return (om_bytes){w.data, w.size};
}

/* ---- Reading. ---- */

struct reader {
	const unsigned char *at, *end;
};

static bool
take_number(struct reader *r, uint64_t *x)
{
	*x = 0;
	for (unsigned bits = 0; r->at < r->end && bits < 64; bits += 7) {
		*x |= (uint64_t)(*r->at & 0x7f) << bits;
		if (!(*r->at++ & 0x80))
			return true;
	}
	return false;
}

bool
om_byte_delta_apply(const void *from, size_t nfrom, const void *delta, size_t ndelta, void *target, size_t size)
{
	struct reader r = {delta, (const unsigned char *)delta + ndelta};
	unsigned char *to = target;
	uint64_t n, distance, end = 0;

	while (r.at < r.end) {
		if (!take_number(&r, &n) || n > (size_t)(r.end - r.at) || n > size)
			return false;
		if (n)
			memcpy(to, r.at, n);
		r.at += n;
		to += n;
		size -= n;
		if (!take_number(&r, &n) || n > size)
			return false;
		if (n == 0)
			continue;
		if (!take_number(&r, &distance))
			return false;
		end += distance & 1 ? ~(distance >> 1) : distance >> 1;
		if (end > nfrom || n > nfrom - end)
			return false;
		memcpy(to, (const unsigned char *)from + end, n);
		to += n;
		size -= n;
		end += n;
	}
	return size == 0;
}
