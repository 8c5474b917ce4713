/* SPDX-License-Identifier: Apache-2.0 */
/* Rotations within the memory of copying.
 *
 * All buffers of a rotation are live for the whole loop, which may take more memory than the copies that it avoids.
 * So rotations of fewer buffers are tried while the arena is larger than without them, and then none: values are
 * copied at the end of each iteration.
 */
#include <config.h>

#include "alloc/assign.h"
#include "onnxmem/assignment.h"

/* The next shorter period that may give other rotations. */
static uint32_t
shorter(uint32_t period, uint64_t longest)
{
	do
		period /= 2;
	while (period >= longest && period > 0);
	return period;
}

om_status
om_assign_loops_fit(om_session *s, const om_prog *p, const om_assignment *in, uint32_t period, om_arena *mem,
	const om_assignment **out, om_loop_counts *count)
{
	const om_assignment *before = in->before_loops ? in->before_loops : in;
	om_arena_size copying, rotating;
	bool is_smaller = false;

	*out = om_assign_loops(p, in, period, mem, count);
	if (*out == before)
		return OM_OK;
	OM_TRY(om_assignment_size(s, p, before, &copying));
	while (period > 0) {
		OM_TRY(om_assignment_size(s, p, *out, &rotating));
		OM_TRY(om_assignment_is_smaller(s, p, before, &copying, *out, &rotating, &is_smaller));
		if (!is_smaller)
			return OM_OK;
		period = shorter(period, count->longest);
		if (period > 0)
			*out = om_assign_loops(p, in, period, mem, count);
	}
	*out = before;
	*count = (om_loop_counts){.dropped = 1};
	return OM_OK;
}
