/* How low any packing can be: the most bytes alive at one step.
 *
 * Where every offset is a multiple of some number g, whatever lies below
 * another buffer takes its bytes rounded up to g; only the topmost buffer of a
 * step does not.  So the sum of the rounded bytes, less the most that rounding
 * added to any one buffer, is a proof.
 */
#include <config.h>

#include <stdlib.h>

#include "onnxmem/pack.h"

struct event {
	uint32_t step;
	bool is_birth;
	uint64_t bytes;
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

static uint64_t
most_alive(struct event *e, size_t n, uint32_t *step)
{
	uint64_t now = 0, most = 0;

	qsort(e, n, sizeof *e, by_step);
	for (size_t k = 0; k < n; k++) {
		now += e[k].is_birth ? e[k].bytes : -e[k].bytes;
		if (now > most) {
			most = now;
			*step = e[k].step;
		}
	}
	return most;
}

uint64_t
om_pack_bound(const om_buffer *buf, uint32_t n, uint32_t *step)
{
	const uint64_t grid = common_grid(buf, n);
	uint64_t slack = 0, fixed = 0;
	uint32_t at = 0, fixed_at = 0;
	size_t m = 0, ne = 0;

	for (uint32_t k = 0; k < n; k++)
		m += buf[k].nlive;
	om_arena *mem = om_arena_new();
	struct event *e = OM_NEWN(mem, struct event, 2 * m);
	for (uint32_t k = 0; k < n; k++) {
		if (buf[k].bytes == 0)
			continue;
		const uint64_t bytes = rounded(buf[k].bytes, grid);
		if (bytes - buf[k].bytes > slack)
			slack = bytes - buf[k].bytes;
		for (uint32_t j = 0; j < buf[k].nlive; j++) {
			e[ne++] = (struct event){buf[k].live[j].lower, true, bytes};
			e[ne++] = (struct event){buf[k].live[j].upper, false, bytes};
		}
		if (buf[k].fixed >= 0 && (uint64_t)buf[k].fixed + buf[k].bytes > fixed) {
			fixed = (uint64_t)buf[k].fixed + buf[k].bytes;
			fixed_at = buf[k].live[0].lower;
		}
	}
	uint64_t most = most_alive(e, ne, &at);
	om_arena_free(mem);
	most -= most ? slack : 0;
	if (step)
		*step = fixed > most ? fixed_at : at;
	return fixed > most ? fixed : most;
}
