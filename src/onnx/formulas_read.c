/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of a plan document: see docs/plan-format.md.  They are claims: om_host_check_ranges() compares them with those that follow from the model. */
#include <config.h>

#include "alloc/stated_formulas.h"
#include "onnx/plan_binding.h"

#define BAD(z, ...)  om_fail((z)->session, OM_BADPLAN, "the plan: " __VA_ARGS__)

static om_status
read_range(const om_plan_sizes *z, const json_t *part, const om_dim_range *of, om_dim_range *out)
{
	const json_t *ends = json_object_get(part, of->symbol), *low = json_array_get(ends, 0), *high = json_array_get(ends, 1);

	*out = (om_dim_range){of->symbol, json_integer_value(low), json_integer_value(high), of->step};
	if (!json_is_integer(low) || !json_is_integer(high) || out->low > out->high || !om_dim_range_has(of, out->low)
	    || !om_dim_range_has(of, out->high))
		return BAD(z, "a formula has an invalid range of %s", of->symbol);
	return OM_OK;
}

static om_status
read_texts(const om_plan_sizes *z, const om_plan *plan, const json_t *j, const char **text)
{
	if (json_array_size(j) != plan->narena)
		return BAD(z, "%zu formulas for %u arenas", json_array_size(j), plan->narena);
	for (uint32_t a = 0; a < plan->narena; a++) {
		const char *is = json_string_value(json_array_get(j, a));
		if (!is)
			return BAD(z, "a formula is not a string");
		text[a] = om_strdup(plan->mem, is);
	}
	return OM_OK;
}

static om_status
read_piece(const om_plan_sizes *z, const om_plan *plan, const json_t *j, om_stated_piece *out)
{
	const json_t *exact = json_object_get(j, "bytes"), *most = json_object_get(j, "at_most");
	om_dim_range *range = OM_NEWN(plan->mem, om_dim_range, plan->nrange);
	const char **text = OM_NEWN(plan->mem, const char *, plan->narena);

	*out = (om_stated_piece){range, exact != NULL, text};
	if (!exact == !most)
		return BAD(z, "a formula has to have one of \"bytes\" and \"at_most\"");
	for (uint32_t d = 0; d < plan->nrange; d++)
		OM_TRY(read_range(z, json_object_get(j, "ranges"), &plan->range[d], &range[d]));
	return read_texts(z, plan, exact ? exact : most, text);
}

om_status
om_plan_read_formulas(const om_plan_sizes *z, om_plan *plan)
{
	const json_t *all = json_object_get(z->root, "formulas");
	const size_t n = json_array_size(all);

	if (!all)
		return OM_OK;
	if (!json_is_array(all) || n == 0 || n > UINT32_MAX || plan->nrange == 0)
		return BAD(z, "its \"formulas\" are no list for parts of its ranges");
	struct om_stated_formulas *f = OM_NEW(plan->mem, struct om_stated_formulas);
	om_stated_piece *piece = OM_NEWN(plan->mem, om_stated_piece, n);
	*f = (struct om_stated_formulas){piece, (uint32_t)n, z->wanted};
	for (size_t k = 0; k < n; k++)
		OM_TRY(read_piece(z, plan, json_array_get(all, k), &piece[k]));
	plan->stated = f;
	return OM_OK;
}
