/* A value by its name, and the nearest names where there is none. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "onnxmem/plan.h"

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
nearest(om_cli *c, const char *name)
{
	const om_prog *p = c->prog;
	struct near *all = OM_NEWN(c->mem, struct near, p->nvalue);
	const char *text = "";
	size_t n = 0;

	for (uint32_t k = 0; k < p->nvalue; k++)
		if (is_of_plan(p, p->values[k]))
			all[n++] = (struct near){p->values[k], distance_of(name, p->values[k])};
	if (n)
		qsort(all, n, sizeof *all, by_distance);
	for (size_t k = 0; k < n && k < OFFERED; k++)
		text = om_printf(c->mem, "%s%s%s", text, k ? ", " : n > 1 ? "; the nearest are " : "; there is ", full_name(c->mem, all[k].v));
	return text;
}

/* ---- Finding. ---- */

static bool
is_in_file(const om_cli *c, const char *name)
{
	for (uint32_t k = 0; k < c->loaded->nvalue; k++)
		if (strcmp(c->loaded->values[k]->name, name) == 0)
			return true;
	return false;
}

static om_status
fail_several(om_cli *c, const char *name, const om_value *a, const om_value *b)
{
	return om_fail(c->session, OM_USAGE, "%s is the name of several values; name one, as in %s or %s", name, full_name(c->mem, a),
		full_name(c->mem, b));
}

om_status
om_cli_find_value(om_cli *c, const char *name, const om_value **out)
{
	const om_prog *p = c->prog;
	const om_value *found = NULL, *other = NULL;

	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_value *v = p->values[k];
		if (!is_of_plan(p, v))
			continue;
		if (is_full_name(v, name) || (v->block == p->first && strcmp(v->name, name) == 0)) {
			*out = v;
			return OM_OK;
		}
		if (strcmp(v->name, name) == 0)
			*(found ? &other : &found) = v;
	}
	if (other)
		return fail_several(c, name, found, other);
	if (!found && is_in_file(c, name))
		return om_fail(c->session, OM_USAGE, "%s takes part in no run: the passes removed it, or computed what it is for before the "
			"run", name);
	if (!found)
		return om_fail(c->session, OM_USAGE, "no value is called %s%s", name, nearest(c, name));
	*out = found;
	return OM_OK;
}
