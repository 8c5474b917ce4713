/* How low any packing can be: the most bytes in use at one step.
 *
 * Where every offset is a multiple of some number g, memory falls into cells of
 * g bytes, and whoever has the first byte of a cell has it alone.  Bytes [from,
 * to) of a buffer contain the first bytes of as many cells as there are multiples
 * of g among them; that is the same wherever the buffer lies.  So at each step
 * at least the sum of these cells is needed, except that the end of the topmost
 * one counts only as far as it is used.  Where `from` is no multiple of g that
 * can be less than the plain sum; the larger of the two is the bound.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/packer.h"

struct event {
	uint32_t step;
	bool is_birth;
	uint64_t bytes, cells;   /* cells: in bytes, too */
};

struct most {
	uint64_t bytes;
	uint32_t step;
};

/* Deaths first: a lifetime ends before the step that it names. */
static int
by_step(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return (int)x->is_birth - (int)y->is_birth;
}

static uint64_t
rounded(uint64_t bytes, uint64_t grid)
{
	return (bytes + grid - 1) & ~(grid - 1);
}

/* The largest power of two that divides every offset of any packing. */
static uint64_t
common_grid(const om_buffer *buf, uint32_t n)
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
raise(struct most *most, uint64_t bytes, uint32_t step)
{
	if (bytes > most->bytes)
		*most = (struct most){bytes, step};
}

/* `slack`: what the topmost cell may be short of. */
static void
most_alive(struct event *e, size_t n, uint64_t slack, struct most *most)
{
	uint64_t bytes = 0, cells = 0;

	qsort(e, n, sizeof *e, by_step);
	for (size_t k = 0; k < n; k++) {
		bytes += e[k].is_birth ? e[k].bytes : -e[k].bytes;
		cells += e[k].is_birth ? e[k].cells : -e[k].cells;
		if (!e[k].is_birth)
			continue;
		raise(most, bytes, e[k].step);
		raise(most, cells > slack ? cells - slack : 0, e[k].step);
	}
}

uint64_t
om_pack_bound(const om_buffer *buf, uint32_t n, uint32_t *step)
{
	const uint64_t grid = common_grid(buf, n);
	struct most most = {0};
	uint64_t slack = 0;
	size_t m = 0, ne = 0;

	for (uint32_t k = 0; k < n; k++)
		m += buf[k].nlive;
	om_arena *mem = om_arena_new();
	struct event *e = OM_NEWN(mem, struct event, 2 * m);
	for (uint32_t k = 0; k < n; k++) {
		const om_buffer *b = &buf[k];
		if (b->bytes == 0)
			continue;
		raise(&most, (b->fixed > 0 ? (uint64_t)b->fixed : 0) + b->bytes, b->live[0].lower);
		for (const om_interval *i = b->live; i < b->live + b->nlive; i++) {
			const uint64_t to = om_live_to(b, i), end = rounded(to, grid);
			const uint64_t start = rounded(i->from, grid), cells = end > start ? end - start : 0;
			slack = end - to > slack ? end - to : slack;
			e[ne++] = (struct event){i->lower, true, to - i->from, cells};
			e[ne++] = (struct event){i->upper, false, to - i->from, cells};
		}
	}
	most_alive(e, ne, slack, &most);
	om_arena_free(mem);
	if (step)
		*step = most.step;
	return most.bytes;
}
