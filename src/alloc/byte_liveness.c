/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-precise liveness of a buffer.
 *
 * Two usages are merged by a sweep over the steps at which either changes; between two such steps, the
 * bytes in use are the union of the ranges of both.
 */
#include <config.h>

#include <string.h>

#include "alloc/byte_liveness.h"

enum { MOST = 1 << 14 };  /* intervals */

static om_usage
single(om_arena *mem, om_interval r)
{
	return (om_usage){.r = om_memdup(mem, &r, sizeof r), .n = 1, .cap = 1};
}

/* ---- Merging. ---- */

/* A time slice of one operand: intervals [at, end). */
struct side {
	const om_interval *r;
	size_t at, end, n;
};

static void
next_slice(struct side *s)
{
	s->at = s->end;
	while (s->end < s->n && s->r[s->end].lower == s->r[s->at].lower)
		s->end++;
}

/* The first step after `now` at which the usage of this operand changes; UINT32_MAX: never. */
static uint32_t
next_change(struct side *s, uint32_t now)
{
	while (s->at < s->n && s->r[s->at].upper <= now)
		next_slice(s);
	if (s->at == s->n)
		return UINT32_MAX;
	return s->r[s->at].lower > now ? s->r[s->at].lower : s->r[s->at].upper;
}

static bool
is_active(const struct side *s, uint32_t now)
{
	return s->at < s->n && s->r[s->at].lower <= now && now < s->r[s->at].upper;
}

static void
push_range(om_usage *out, om_arena *mem, size_t slice, om_interval r)
{
	if (out->n > slice && r.from <= out->r[out->n - 1].to) {
		if (r.to > out->r[out->n - 1].to)
			out->r[out->n - 1].to = r.to;
		return;
	}
	OM_PUSH(mem, out->r, out->n, out->cap, r);
}

/* The ranges of both operands between two changes. */
static void
push_slice(om_usage *out, om_arena *mem, const struct side *side, uint32_t lower, uint32_t upper)
{
	const size_t slice = out->n;
	size_t at[2];

	for (int k = 0; k < 2; k++)
		at[k] = is_active(&side[k], lower) ? side[k].at : side[k].end;
	while (at[0] < side[0].end || at[1] < side[1].end) {
		const int k = at[1] == side[1].end || (at[0] < side[0].end
			&& side[0].r[at[0]].from <= side[1].r[at[1]].from) ? 0 : 1;
		const om_interval *r = &side[k].r[at[k]++];
		push_range(out, mem, slice, (om_interval){lower, upper, r->from, r->to});
	}
}

/* Merge the slice that starts at `slice` with the previous one, which starts at `before`, if the
 * ranges are equal. */
static bool
join_slices(om_usage *out, size_t before, size_t slice)
{
	const size_t n = out->n - slice;

	if (n == 0 || slice - before != n || out->r[before].upper != out->r[slice].lower)
		return false;
	for (size_t k = 0; k < n; k++)
		if (out->r[before + k].from != out->r[slice + k].from || out->r[before + k].to != out->r[slice + k].to)
			return false;
	for (size_t k = 0; k < n; k++)
		out->r[before + k].upper = out->r[slice + k].upper;
	out->n = slice;
	return true;
}

/* `all` extended to a usage. */
static om_interval
hull(om_interval all, const om_usage *u)
{
	for (size_t k = 0; k < u->n; k++) {
		const om_interval r = u->r[k];
		all.lower = r.lower < all.lower ? r.lower : all.lower;
		all.upper = r.upper > all.upper ? r.upper : all.upper;
		all.from = r.from < all.from ? r.from : all.from;
		all.to = r.to > all.to ? r.to : all.to;
	}
	return all;
}

/* The common cases: an empty usage; the same bytes for a longer time. */
static bool
add_simply(om_usage *u, om_arena *mem, const om_usage *more)
{
	om_interval *a = u->r;
	om_interval b;

	if (more->n != 1 || u->n > 1)
		return more->n == 0;
	b = more->r[0];
	if (u->n == 0)
		OM_PUSH(mem, u->r, u->n, u->cap, b);
	else if (a->from != b.from || a->to != b.to || a->upper < b.lower || b.upper < a->lower)
		return false;
	else
		*a = (om_interval){a->lower < b.lower ? a->lower : b.lower,
			a->upper > b.upper ? a->upper : b.upper, a->from, a->to};
	return true;
}

static void
copy_usage(om_usage *u, om_arena *mem, const om_usage *from)
{
	if (from->n > u->cap) {
		u->r = OM_NEWN(mem, om_interval, from->n);
		u->cap = from->n;
	}
	if (from->n)
		memcpy(u->r, from->r, from->n * sizeof *u->r);
	u->n = from->n;
}

/* What all sums of a union use in turn. */
struct sums {
	om_arena *mem;           /* of the results */
	om_arena *tmp;
	om_usage out;
};

static void
add_usage(struct sums *w, om_usage *u, const om_usage *more)
{
	if (add_simply(u, w->mem, more))
		return;

	struct side side[2] = {{.r = u->r, .n = u->n}, {.r = more->r, .n = more->n}};
	om_usage *out = &w->out;
	size_t before = 0;
	uint32_t now = 0, next;

	out->n = 0;
	next_slice(&side[0]);
	next_slice(&side[1]);
	for (; out->n <= MOST; now = next) {
		const size_t slice = out->n;
		const uint32_t a = next_change(&side[0], now), b = next_change(&side[1], now);
		next = a < b ? a : b;
		if (next == UINT32_MAX)
			break;
		push_slice(out, w->tmp, side, now, next);
		if (!join_slices(out, before, slice) && out->n > slice)
			before = slice;
	}
	if (out->n > MOST) {
		out->r[0] = hull(hull(out->r[0], u), more);
		out->n = 1;
	}
	copy_usage(u, w->mem, out);
}

static om_usage
union_of(struct sums *w, const om_interval *r, size_t n)
{
	if (n < 2)
		return n == 1 && r->from < r->to ? single(w->mem, *r) : (om_usage){0};
	om_usage u = union_of(w, r, n / 2);
	const om_usage more = union_of(w, r + n / 2, n - n / 2);
	add_usage(w, &u, &more);
	return u;
}

om_usage
om_usage_union(om_arena *mem, const om_interval *r, size_t n)
{
	struct sums w = {.mem = mem, .tmp = om_arena_new()};
	const om_usage u = union_of(&w, r, n);

	om_arena_free(w.tmp);
	return u;
}

/* ---- Rectangles. ---- */

/* The rectangle of the previous slice that `r` continues.  Its rectangles `open`, from `*k` on, have the order
 * of ranges. */
static om_interval *
continued(om_usage *out, const size_t *open, size_t nopen, size_t *k, const om_interval *r)
{
	while (*k < nopen && out->r[open[*k]].from < r->from)
		++*k;
	om_interval *o = *k < nopen ? &out->r[open[*k]] : NULL;
	return o && o->upper == r->lower && o->from == r->from && o->to == r->to ? o : NULL;
}

static om_interval
rounded(om_interval r, uint64_t align)
{
	r.from &= ~(align - 1);
	r.to = (r.to + align - 1) & ~(align - 1);
	return r;
}

/* The ranges of the slice at `at`, rounded to the alignment. */
static size_t
round_slice(const om_usage *u, size_t at, uint64_t align, om_arena *mem, om_usage *out)
{
	size_t k = at;

	out->n = 0;
	for (; k < u->n && u->r[k].lower == u->r[at].lower; k++)
		push_range(out, mem, 0, rounded(u->r[k], align));
	return k;
}

static om_usage
rounded_slices(const om_usage *u, om_arena *mem, uint64_t align)
{
	om_arena *tmp = om_arena_new();
	size_t *open = OM_NEWN(tmp, size_t, u->n + 1), *now = OM_NEWN(tmp, size_t, u->n + 1);
	size_t nopen = 0, nnow;
	om_usage out = {0}, slice = {0};

	for (size_t at = 0; at < u->n;) {
		at = round_slice(u, at, align, tmp, &slice);
		nnow = 0;
		size_t before = 0;
		for (size_t k = 0; k < slice.n; k++) {
			om_interval *o = continued(&out, open, nopen, &before, &slice.r[k]);
			if (o) {
				o->upper = slice.r[k].upper;
				now[nnow++] = (size_t)(o - out.r);
			} else {
				now[nnow++] = out.n;
				OM_PUSH(mem, out.r, out.n, out.cap, slice.r[k]);
			}
		}
		size_t *swap = open;
		open = now;
		now = swap;
		nopen = nnow;
	}
	om_arena_free(tmp);
	return out;
}

/* Most buffers are in use as a whole: their ranges need no sweep. */
om_usage
om_usage_rounded(const om_usage *u, om_arena *mem, uint64_t align)
{
	return u->n == 1 ? single(mem, rounded(u->r[0], align)) : rounded_slices(u, mem, align);
}
