/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of sizes; see onnxmem/plan.h. */
#include <config.h>

#include <inttypes.h>

#include "alloc/formulas.h"

int64_t
om_dim_range_step(const om_dim_range *r)
{
	return r->step > 1 ? r->step : 1;
}

bool
om_dim_range_has(const om_dim_range *r, int64_t n)
{
	return n >= r->low && n <= r->high && (n - r->low) % om_dim_range_step(r) == 0;
}

const char *
om_dim_range_text(om_arena *mem, const om_dim_range *r)
{
	const char *step = om_dim_range_step(r) > 1 ? om_printf(mem, " in steps of %" PRId64, r->step) : "";

	return om_printf(mem, "%" PRId64 " to %" PRId64 "%s", r->low, r->high, step);
}

/* ---- By number. ---- */

om_dim_range
om_range_of_steps(const om_dim_range *r)
{
	const int64_t step = om_dim_range_step(r);

	return (om_dim_range){r->symbol, r->low / step, r->high / step, 1};
}

int64_t
om_size_of_step(const om_dim_range *r, int64_t k)
{
	const int64_t step = om_dim_range_step(r);

	return k * step + r->low % step;
}

/* The number of a size is floor(n / step), and a quotient of it, floor((floor(n / step) + add) / by), is
 * floor((n + add * step) / (by * step)). */
om_polynomial
om_polynomial_of_sizes(const om_plan *plan, const om_polynomial *f)
{
	om_polynomial out = *f;

	for (uint32_t d = 0; d < plan->nrange && d < OM_FORMULA_SYMBOLS; d++) {
		const int64_t step = om_dim_range_step(&plan->range[d]);
		if (step == 1)
			continue;
		out.by[d] = (f->by[d] ? f->by[d] : 1) * step;
		out.add[d] = f->add[d] * step;
	}
	if (f->more) {
		om_polynomial *more = OM_NEW(plan->mem, om_polynomial);
		*more = om_polynomial_of_sizes(plan, f->more);
		out.more = more;
	}
	return out;
}

void
om_formula_of_sizes(const om_plan *plan, om_formula *f, om_rounded *rounded)
{
	f->sum = om_polynomial_of_sizes(plan, &f->sum);
	for (uint32_t k = 0; k < f->nrounded; k++)
		rounded[k].of = om_polynomial_of_sizes(plan, &rounded[k].of);
}
