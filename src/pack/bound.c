/* SPDX-License-Identifier: Apache-2.0 */
/* A lower bound for the height of any packing: the most bytes in use at one step.
 *
 * If every offset is a multiple of a number g, memory is divided into cells of g
 * bytes, and the first byte of a cell belongs to at most one buffer at a time.
 * Bytes [from, to) of a buffer contain the first bytes of as many cells as there
 * are multiples of g among them, wherever the buffer is placed.  So each step
 * requires at least the sum of these cells, except that the topmost cell counts
 * only up to the end of its used bytes.  If `from` is not a multiple of g, that can
 * be less than the plain sum; the larger of the two is the bound.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/packer.h"

struct bound_event {
	uint32_t step;
	bool is_birth;
	uint64_t bytes, cells;   /* cells: in bytes as well */
};

struct peak {
	uint64_t bytes;
	uint32_t step;
};

/* Ends sort first: a lifetime ends before the step `upper`. */
static int
compare_step(const void *a, const void *b)
{
	const struct bound_event *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return (int)x->is_birth - (int)y->is_birth;
}

static uint64_t
round_up(uint64_t bytes, uint64_t grid)
{
	return (bytes + grid - 1) & ~(grid - 1);
}

/* The largest power of two that divides every offset of any packing. */
static uint64_t
common_alignment(const om_buffer *buf, uint32_t n)
{
	uint64_t all = UINT64_C(1) << 62;

	for (uint32_t k = 0; k < n; k++) {
		if (buf[k].bytes == 0)
			continue;
		all |= buf[k].align ? buf[k].align : 1;
		if (buf[k].fixed > 0)
			all |= (uint64_t)buf[k].fixed;
	}
	return all & -all;
}

static void
raise_peak(struct peak *peak, uint64_t bytes, uint32_t step)
{
	if (bytes > peak->bytes)
		*peak = (struct peak){bytes, step};
}

/* `slack`: the unused bytes that the topmost cell may have. */
static void
scan_peak(struct bound_event *e, size_t n, uint64_t slack, struct peak *peak)
{
	uint64_t bytes = 0, cells = 0;

	qsort(e, n, sizeof *e, compare_step);
	for (size_t k = 0; k < n; k++) {
		bytes += e[k].is_birth ? e[k].bytes : -e[k].bytes;
		cells += e[k].is_birth ? e[k].cells : -e[k].cells;
		if (!e[k].is_birth)
			continue;
		raise_peak(peak, bytes, e[k].step);
		raise_peak(peak, cells > slack ? cells - slack : 0, e[k].step);
	}
}

uint64_t
om_pack_bound(const om_buffer *buf, uint32_t n, uint32_t *step)
{
	const uint64_t grid = common_alignment(buf, n);
	struct peak peak = {0};
	uint64_t slack = 0;
	size_t m = 0, ne = 0;

	for (uint32_t k = 0; k < n; k++)
		m += buf[k].nlive;
	om_arena *mem = om_arena_new();
	struct bound_event *e = OM_NEWN(mem, struct bound_event, 2 * m);
	for (uint32_t k = 0; k < n; k++) {
		const om_buffer *b = &buf[k];
		if (b->bytes == 0)
			continue;
		raise_peak(&peak, (b->fixed > 0 ? (uint64_t)b->fixed : 0) + b->bytes, b->live[0].lower);
		for (const om_interval *i = b->live; i < b->live + b->nlive; i++) {
			const uint64_t to = om_interval_end(b, i), end = round_up(to, grid);
			const uint64_t start = round_up(i->from, grid), cells = end > start ? end - start : 0;
			slack = end - to > slack ? end - to : slack;
			e[ne++] = (struct bound_event){i->lower, true, to - i->from, cells};
			e[ne++] = (struct bound_event){i->upper, false, to - i->from, cells};
		}
	}
	scan_peak(e, ne, slack, &peak);
	om_arena_free(mem);
	if (step)
		*step = peak.step;
	return peak.bytes;
}
