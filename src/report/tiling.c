/* SPDX-License-Identifier: Apache-2.0 */
/* What tiling did: regions, the ladder of peaks, and why there is no lower one. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "base/clean_text.h"
#include "report/json.h"
#include "report/report.h"
#include "report/tiling.h"

double
om_tiling_added_work(const om_tiling *t)
{
	return t->flops_before > 0 ? 100 * (t->flops_after / t->flops_before - 1) : 0;
}

/* ---- Text. ---- */

static void
regions(const om_tiling *t, om_arena *mem, FILE *to)
{
	for (uint32_t k = 0; k < t->n; k++) {
		const om_tiled_region *r = &t->region[k];
		fprintf(to, "  %" PRIu32 " ops in %" PRIu32 " bands (%s%s), %" PRIu32 " ops: %s to %s\n", r->ops, r->bands, r->axis,
			strcmp(r->join, "scatter") == 0 ? ", scatter" : "", r->steps, om_clean_text(mem, r->first),
			om_clean_text(mem, r->last));
	}
	for (uint32_t k = 0; k < t->ncopy && t->n; k++)
		fprintf(to, "  computed twice: %s (%" PRIu32 " ops, work %+.2f %%)\n", om_clean_text(mem, t->copy[k].value),
			t->copy[k].ops, 100 * t->copy[k].flops / t->flops_before);
	if (t->n == 0)
		fputs("  not tiled: no regions were found whose arena is smaller\n", to);
}

static const char *
plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* Text is for those who look at one model: the last rungs, which are the lowest. */
static void
peaks(const om_tiling *t, FILE *to)
{
	enum { SHOWN = 6 };
	const uint32_t from = t->npeak > SHOWN ? t->npeak - SHOWN : 0;

	if (t->npeak < 2)
		return;
	fputs("  estimated peaks:\n", to);
	for (uint32_t k = from; k < t->npeak; k++) {
		const om_tiled_peak *p = &t->peak[k];
		fprintf(to, "  %14" PRIu64 "  %" PRIu32 " op%s, %" PRIu32 " region%s", p->bytes, p->ops, plural(p->ops), p->regions,
			plural(p->regions));
		if (p->copies)
			fprintf(to, ", %" PRIu32 " value%s computed twice", p->copies, plural(p->copies));
		fputs("\n", to);
	}
}

/* Steps well below the arena do not keep it up. */
static bool
is_high(const om_tiled_step *s, uint64_t arena)
{
	return s->bytes + s->bytes / 8 >= arena;
}

static void
limits(const om_tiling *t, uint64_t arena, om_arena *mem, FILE *to)
{
	if (t->missed) {
		fprintf(to, "  no regions were found for a peak of %" PRIu64 " bytes: ", t->missed);
		if (t->stop.op)
			fprintf(to, "they end before %s, about %" PRIu64 " bytes untiled: ", om_clean_text(mem, t->stop.op), t->stop.bytes);
		fprintf(to, "%s\n", om_clean_text(mem, t->stop.why));
	}
	for (uint32_t k = 0; k < t->noutside && is_high(&t->outside[k], arena); k++)
		fprintf(to, "  %sstep outside of regions: %s, about %" PRIu64 " bytes: %s\n", k ? "next " : "highest ",
			om_clean_text(mem, t->outside[k].op), t->outside[k].bytes, om_clean_text(mem, t->outside[k].why));
	if (t->floor_op)
		fprintf(to, "  floor %" PRIu64 " bytes: %s needs them even row by row\n", t->floor, om_clean_text(mem, t->floor_op));
}

void
om_tiling_text(const om_tiling *t, uint64_t arena, om_arena *mem, FILE *to)
{
	regions(t, mem, to);
	peaks(t, to);
	limits(t, arena, mem, to);
}

/* ---- JSON. ---- */

static json_t *
region_json(const om_tiled_region *r, om_arena *mem)
{
	json_t *j = json_object();

	json_object_set_new(j, "first", om_json_text(mem, r->first));
	json_object_set_new(j, "last", om_json_text(mem, r->last));
	json_object_set_new(j, "ops", om_json_number(r->ops));
	json_object_set_new(j, "bands", om_json_number(r->bands));
	json_object_set_new(j, "axis", json_string(r->axis));
	json_object_set_new(j, "join", json_string(r->join));
	json_object_set_new(j, "ops_after", om_json_number(r->steps));
	return j;
}

static json_t *
copy_json(const om_tiled_copy *c, om_arena *mem)
{
	json_t *j = json_object();

	json_object_set_new(j, "value", om_json_text(mem, c->value));
	json_object_set_new(j, "ops", om_json_number(c->ops));
	json_object_set_new(j, "flops", json_real(c->flops));
	return j;
}

static json_t *
peak_json(const om_tiled_peak *p)
{
	json_t *j = json_object();

	json_object_set_new(j, "bytes", om_json_number(p->bytes));
	json_object_set_new(j, "ops", om_json_number(p->ops));
	json_object_set_new(j, "regions", om_json_number(p->regions));
	json_object_set_new(j, "copies", om_json_number(p->copies));
	return j;
}

static json_t *
step_json(const om_tiled_step *s, om_arena *mem)
{
	json_t *j = json_object();

	json_object_set_new(j, "op", om_json_text(mem, s->op));
	json_object_set_new(j, "bytes", om_json_number(s->bytes));
	json_object_set_new(j, "why", om_json_text(mem, s->why));
	return j;
}

void
om_tiling_set(json_t *j, const om_tiling *t, om_arena *mem)
{
	json_t *all = json_array(), *copies = json_array(), *rungs = json_array(), *outside = json_array();
	const om_tiled_step highest = t->noutside ? t->outside[0] : (om_tiled_step){0};

	for (uint32_t k = 0; k < t->n; k++)
		json_array_append_new(all, region_json(&t->region[k], mem));
	for (uint32_t k = 0; k < t->ncopy && t->n; k++)
		json_array_append_new(copies, copy_json(&t->copy[k], mem));
	for (uint32_t k = 0; k < t->npeak; k++)
		json_array_append_new(rungs, peak_json(&t->peak[k]));
	for (uint32_t k = 0; k < t->noutside; k++)
		json_array_append_new(outside, step_json(&t->outside[k], mem));
	json_object_set_new(j, "regions", all);
	json_object_set_new(j, "copies", copies);
	json_object_set_new(j, "highest_outside", om_json_text(mem, highest.op));
	json_object_set_new(j, "highest_outside_bytes", om_json_number(highest.bytes));
	json_object_set_new(j, "highest_outside_why", om_json_text(mem, highest.why));
	json_object_set_new(j, "outside", outside);
	json_object_set_new(j, "peaks", rungs);
	json_object_set_new(j, "missed_bytes", t->missed ? om_json_number(t->missed) : json_null());
	json_object_set_new(j, "stop", t->missed ? step_json(&t->stop, mem) : json_null());
	json_object_set_new(j, "floor_bytes", om_json_number(t->floor));
	json_object_set_new(j, "floor_op", om_json_text(mem, t->floor_op));
}

json_t *
om_tiling_json(const om_tiling *t, om_arena *mem)
{
	json_t *o = json_object();

	json_object_set_new(o, "arena_bytes_before", om_json_number(t->before));
	json_object_set_new(o, "ops_before", om_json_number(t->ops_before));
	json_object_set_new(o, "flops_before", json_real(t->flops_before));
	json_object_set_new(o, "flops", json_real(t->flops_after));
	om_tiling_set(o, t, mem);
	return o;
}
