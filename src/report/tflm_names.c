/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as an offline plan for a given .tflite file: offsets in the order of its tensors, which have the names of values.
 *
 * The runtime executes the ops of that file, in its order, so lifetimes are checked again, by the file alone: two
 * tensors with an offset may share bytes only if one is read for the last time where the other is written, or before. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/map.h"
#include "report/tflite.h"
#include "report/tflm.h"

struct names {
	const om_report *r;
	om_session *s;
	om_arena *mem;
	const char *path;        /* of the .tflite file */
	om_tflite file;
	const om_value **value;  /* by tensor of the file; NULL: the runtime places it */
	const om_alias **view;   /* by value id: of what, if it is a view */
	uint32_t n;              /* tensors that the plan places */
};

/* ---- The file. ---- */

static om_status
read_bytes(struct names *w, FILE *in, void **data, size_t *size)
{
	struct stat st;

	if (fstat(fileno(in), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > INT32_MAX)
		return om_fail(w->s, OM_IO, "%s: not a file of less than 2 GiB", w->path);
	*size = (size_t)st.st_size;
	*data = OM_NEWN(w->mem, char, *size + 1);
	if (fread(*data, 1, *size, in) != *size)
		return om_fail(w->s, OM_IO, "%s: could not be read", w->path);
	return OM_OK;
}

static om_status
read_file(struct names *w)
{
	FILE *in = fopen(w->path, "rb");
	void *data = NULL;
	size_t size = 0;

	if (!in)
		return om_fail(w->s, OM_IO, "%s: %s", w->path, strerror(errno));
	const om_status st = read_bytes(w, in, &data, &size);
	fclose(in);
	OM_TRY(st);
	OM_TRY(om_tflite_read(w->s, w->mem, w->path, data, size, &w->file));
	return w->file.ngraph == 1 ? OM_OK : om_fail(w->s, OM_UNSUPPORTED, "%s has %" PRIu32
		" graphs, and an offline plan is for one", w->path, w->file.ngraph);
}

/* ---- Tensors. ---- */

static om_map
planned_values(const struct names *w)
{
	const om_prog *p = w->r->prog;
	om_map map = om_map_new(w->mem);

	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->plan->place[k].where == OM_IN_ARENA)
			om_map_set(&map, p->values[k]->name, p->values[k]);
	return map;
}

static om_status
match(struct names *w)
{
	const om_map values = planned_values(w);

	w->value = OM_NEWN(w->mem, const om_value *, w->file.ntensor);
	for (uint32_t k = 0; k < w->file.ntensor; k++) {
		const om_tflite_tensor *t = &w->file.tensor[k];
		const om_value *v = t->is_used && !t->is_constant ? om_map_get(&values, t->name) : NULL;
		if (!v)
			continue;
		if (t->bytes == UINT64_MAX)
			return om_fail(w->s, OM_UNSUPPORTED, "%s: tensor %s has a type or a shape of unknown size", w->path, t->name);
		if (t->bytes != om_value_bytes(v))
			return om_fail(w->s, OM_UNSUPPORTED, "%s: tensor %s has %" PRIu64 " bytes, and %" PRIu64 " in the plan", w->path,
				t->name, t->bytes, om_value_bytes(v));
		w->value[k] = v;
		w->n++;
	}
	return w->n ? OM_OK : om_fail(w->s, OM_UNSUPPORTED, "%s: no tensor has the name of a value in the arena", w->path);
}

static const om_placement *
place_of(const struct names *w, uint32_t tensor)
{
	return w->value[tensor] ? &w->r->prog->plan->place[w->value[tensor]->id] : NULL;
}

static bool
share_bytes(const struct names *w, uint32_t i, uint32_t k)
{
	const om_placement *a = place_of(w, i), *b = place_of(w, k);

	return a->offset < b->offset + w->file.tensor[k].bytes && b->offset < a->offset + w->file.tensor[i].bytes;
}

static void
list_views(struct names *w)
{
	const om_plan *plan = w->r->prog->plan;

	w->view = OM_NEWN(w->mem, const om_alias *, w->r->prog->nvalue);
	for (uint32_t k = 0; k < plan->nalias; k++)
		if (plan->alias[k].kind == OM_ALIAS_VIEW || plan->alias[k].kind == OM_ALIAS_SUBBUFFER)
			w->view[plan->alias[k].value] = &plan->alias[k];
}

static uint32_t
viewed(const struct names *w, uint32_t value)
{
	for (uint32_t hops = 0; w->view[value] && hops < w->r->prog->plan->nalias; hops++)
		value = w->view[value]->source;
	return value;
}

/* Do they have the same elements where they overlap? */
static bool
are_views(const struct names *w, uint32_t i, uint32_t k)
{
	return viewed(w, w->value[i]->id) == viewed(w, w->value[k]->id);
}

/* Is the one computed over the other, or after it? */
static bool
follow_each_other(const om_tflite_tensor *a, const om_tflite_tensor *b)
{
	return a->last <= b->first || b->last <= a->first;
}

static om_status
check_lifetimes(const struct names *w)
{
	const om_tflite_tensor *t = w->file.tensor;

	for (uint32_t k = 0; k < w->file.ntensor; k++)
		for (uint32_t i = 0; w->value[k] && i < k; i++)
			if (w->value[i] && share_bytes(w, i, k) && !follow_each_other(&t[i], &t[k]) && !are_views(w, i, k))
				return om_fail(w->s, OM_UNSUPPORTED, "%s: %s and %s share memory in the plan, but are in use at the same time: "
					"its ops are not in the order of the plan", w->path, t[i].name, t[k].name);
	return OM_OK;
}

om_status
om_report_tflm_names(const om_report *r, om_session *s, om_arena *mem, const char *path, FILE *to)
{
	struct names w = {.r = r, .s = s, .mem = mem, .path = path};

	OM_TRY(om_tflm_check(r, s));
	OM_TRY(read_file(&w));
	OM_TRY(match(&w));
	list_views(&w);
	OM_TRY(check_lifetimes(&w));
	om_tflm_head(r, w.file.ntensor, om_printf(mem, "Tensors of %s, of which %" PRIu32 " are placed.",
		om_clean_text(mem, path), w.n), to);
	for (uint32_t k = 0; k < w.file.ntensor; k++)
		om_tflm_tensor(mem, w.file.tensor[k].name, place_of(&w, k), to);
	fputs("};\n", to);
	return OM_OK;
}
