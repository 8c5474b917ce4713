/* SPDX-License-Identifier: Apache-2.0 */
/* A value by its name, and the nearest names where there is none. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "onnxmem/report.h"

enum { OFFERED = 3, LONGEST = 255 };

/* ---- Names. ---- */

static bool
is_of_plan(const om_prog *p, const om_value *v)
{
	return v->id < p->plan->nplace && p->plan->place[v->id].where != OM_UNUSED;
}

/* The name of `v`, in a body after the path of its scope. */
static const char *
full_name(om_arena *mem, const om_value *v)
{
	return *v->block->path ? om_printf(mem, "%s/%s", v->block->path, v->name) : v->name;
}

/* Is it SCOPE/NAME? */
static bool
is_full_name(const om_value *v, const char *name)
{
	const size_t n = strlen(v->block->path);

	return n && strncmp(name, v->block->path, n) == 0 && name[n] == '/' && strcmp(name + n + 1, v->name) == 0;
}

/* ---- The nearest. ---- */

/* Characters to insert, remove or replace to make one of the other. */
static unsigned
distance(const char *a, const char *b)
{
	unsigned row[LONGEST + 2];
	const size_t na = strlen(a), nb = strlen(b);

	if (na > LONGEST || nb > LONGEST)
		return LONGEST;
	for (size_t k = 0; k <= nb; k++)
		row[k] = (unsigned)k;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t k = 1; k <= nb; k++) {
			const unsigned least = row[k] < row[k - 1] ? row[k] : row[k - 1], same = diagonal + (a[i - 1] != b[k - 1]);
			diagonal = row[k];
			row[k] = least + 1 < same ? least + 1 : same;
		}
	}
	return row[nb];
}

/* Names that contain what is sought come first. */
static unsigned
distance_of(const char *sought, const om_value *v)
{
	return strstr(v->name, sought) ? 0 : distance(sought, v->name);
}

struct near {
	const om_value *v;
	unsigned distance;
};

static int
by_distance(const void *a, const void *b)
{
	const struct near *x = a, *y = b;

	if (x->distance != y->distance)
		return x->distance < y->distance ? -1 : 1;
	return (x->v->id > y->v->id) - (x->v->id < y->v->id);
}

/* "; the nearest are A, B, C", or "". */
static const char *
nearest(const om_prog *p, om_arena *mem, const char *name)
{
	struct near *all = OM_NEWN(mem, struct near, p->nvalue);
	const char *text = "";
	size_t n = 0;

	for (uint32_t k = 0; k < p->nvalue; k++)
		if (is_of_plan(p, p->values[k]))
			all[n++] = (struct near){p->values[k], distance_of(name, p->values[k])};
	if (n)
		qsort(all, n, sizeof *all, by_distance);
	for (size_t k = 0; k < n && k < OFFERED; k++)
		text = om_printf(mem, "%s%s%s", text, k ? ", " : n > 1 ? "; the nearest are " : "; there is ", full_name(mem, all[k].v));
	return text;
}

/* ---- Finding. ---- */

struct search {
	const om_prog *prog, *loaded;
	const char *name;
	const om_value *found;
};

static bool
is_in_file(const om_prog *loaded, const char *name)
{
	for (uint32_t k = 0; loaded && k < loaded->nvalue; k++)
		if (strcmp(loaded->values[k]->name, name) == 0)
			return true;
	return false;
}

static om_status
fail_none(om_session *s, const struct search *w, om_arena *mem)
{
	if (!*w->name)
		return om_fail(s, OM_USAGE, "the name of a value is empty");
	if (is_in_file(w->loaded, w->name))
		return om_fail(s, OM_USAGE, "%s takes part in no run: the passes removed it, or computed what it is for before the "
			"run", w->name);
	return om_fail(s, OM_USAGE, "no value is called %s%s", w->name, nearest(w->prog, mem, w->name));
}

static om_status
find(om_session *s, struct search *w, om_arena *mem)
{
	const om_prog *p = w->prog;
	const om_value *other = NULL;

	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_value *v = p->values[k];
		if (!is_of_plan(p, v))
			continue;
		if (is_full_name(v, w->name) || (v->block == p->first && strcmp(v->name, w->name) == 0)) {
			w->found = v;
			return OM_OK;
		}
		if (strcmp(v->name, w->name) == 0)
			*(w->found ? &other : &w->found) = v;
	}
	if (other)
		return om_fail(s, OM_USAGE, "%s is the name of several values; name one, as in %s or %s", w->name,
			full_name(mem, w->found), full_name(mem, other));
	return w->found ? OM_OK : fail_none(s, w, mem);
}

static om_status
find_with_memory(om_session *s, struct search *w, const om_value **out)
{
	om_arena *mem = om_arena_new();
	const om_status st = find(s, w, mem);

	om_arena_free(mem);
	*out = st == OM_OK ? w->found : NULL;
	return st;
}

om_status
om_plan_find_value(om_session *s, const om_prog *p, const om_prog *loaded, const char *name, const om_value **out)
{
	struct search w = {.prog = p, .loaded = loaded, .name = name};

	*out = NULL;
	if (!p->plan || !(p->has & OM_HAS_PLAN))
		return om_fail(s, OM_USAGE, "finding a value of a plan requires a program with a plan");
	OM_GUARDED(s, find_with_memory(s, &w, out));
}
