/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a model as JSON: in a baseline, and from the process that tried the model. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "cli/suite.h"

/* ---- Reading. ---- */

static uint64_t
number(const json_t *j, const char *key)
{
	const json_int_t n = json_integer_value(json_object_get(j, key));
	return n > 0 ? (uint64_t)n : 0;
}

/* "BYTES NAME" */
static void
read_peak(om_cli *c, const json_t *j, om_peak_list *peak)
{
	const char *op = json_string_value(json_object_get(j, "peak_op"));
	const json_t *list = json_object_get(j, "peak");

	peak->op = op ? om_strdup(c->mem, op) : NULL;
	peak->all = number(j, "peak_values");
	for (size_t k = 0; k < json_array_size(list) && k < OM_PEAK_VALUES; k++) {
		const char *text = json_string_value(json_array_get(list, k)), *space = text ? strchr(text, ' ') : NULL;
		if (space)
			peak->value[peak->n++] = (om_report_live){om_strdup(c->mem, space + 1), strtoull(text, NULL, 10)};
	}
}

void
om_figures_read(om_cli *c, const json_t *j, om_figures *f)
{
	const char *digest = json_string_value(json_object_get(j, "digest"));

	f->known = json_is_object(j);
	f->arena = number(j, "arena_bytes");
	f->bound = number(j, "lower_bound_bytes");
	f->naive = number(j, "naive_bytes");
	f->datasets = number(j, "data_sets");
	f->total = number(j, "total_bytes");
	f->weights = number(j, "weights_bytes");
	f->best_ms = json_number_value(json_object_get(j, "best_ms"));
	snprintf(f->digest, sizeof f->digest, "%s", digest ? digest : "");
	read_peak(c, j, &f->peak);
}

/* ---- Writing. ---- */

static void
add_peak(om_cli *c, json_t *j, const om_peak_list *peak)
{
	json_t *list = json_array();

	if (peak->op)
		json_object_set_new(j, "peak_op", json_string(peak->op));
	json_object_set_new(j, "peak_values", json_integer((json_int_t)peak->all));
	for (size_t k = 0; k < peak->n; k++)
		json_array_append_new(list, json_string(om_printf(c->mem, "%llu %s", (unsigned long long)peak->value[k].bytes,
			peak->value[k].name)));
	json_object_set_new(j, "peak", list);
}

json_t *
om_figures_json(om_cli *c, const om_figures *f)
{
	json_t *j = json_pack("{s:I, s:I, s:I, s:I}", "arena_bytes", (json_int_t)f->arena,
		"lower_bound_bytes", (json_int_t)f->bound, "naive_bytes", (json_int_t)f->naive,
		"data_sets", (json_int_t)f->datasets);

	json_object_set_new(j, "total_bytes", json_integer((json_int_t)f->total));
	json_object_set_new(j, "weights_bytes", json_integer((json_int_t)f->weights));
	if (*f->digest)
		json_object_set_new(j, "digest", json_string(f->digest));
	add_peak(c, j, &f->peak);
	return j;
}
