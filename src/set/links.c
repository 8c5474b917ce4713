/* SPDX-License-Identifier: Apache-2.0 */
/* The shared values of a set: lists of inputs and outputs, each PART.NAME, in which `*` stands for the same text. */
#include <config.h>

#include <string.h>

#include "set/set.h"

#define BAD(x, ...) om_fail((x)->session, OM_INVALID, __VA_ARGS__)

struct reader {
	om_set *x;
	om_set_value *value;
	size_t n, cap;
};

/* Does `name` match a pattern with at most one star, and for which text? */
static bool
matches(const char *pattern, const char *name, const char **text, size_t *n)
{
	const char *star = strchr(pattern, '*');

	if (!star)
		return strcmp(pattern, name) == 0;
	const size_t before = (size_t)(star - pattern), after = strlen(star + 1), size = strlen(name);
	if (size <= before + after || memcmp(name, pattern, before) != 0 || strcmp(name + size - after, star + 1) != 0)
		return false;
	*text = name + before;
	*n = size - before - after;
	return true;
}

static om_value *const *
list_of(const struct part *p, bool is_output, uint32_t *n)
{
	const om_block *graph = p->prog->first;

	*n = is_output ? graph->nresult : graph->nparam;
	return is_output ? graph->result : graph->param;
}

/* The part that an end names, and its name there. */
static om_status
find_part(om_set *x, const char *end, uint32_t *part, const char **name)
{
	const char *dot = end ? strchr(end, '.') : NULL;

	if (!dot)
		return BAD(x, "%s: a link is a list of ends, each \"PART.NAME\"", x->path);
	for (*part = 0; *part < x->npart; ++*part)
		if (strlen(x->part[*part].pub.name) == (size_t)(dot - end) && memcmp(x->part[*part].pub.name, end, (size_t)(dot - end)) == 0) {
			*name = dot + 1;
			return OM_OK;
		}
	return BAD(x, "%s: link \"%s\": there is no part %.*s", x->path, end, (int)(dot - end), end);
}

/* The input or output called `name`. */
static om_status
find_end(om_set *x, uint32_t part, const char *name, om_set_end *out)
{
	uint32_t found = 0;

	for (int is_output = 0; is_output < 2; is_output++) {
		uint32_t n;
		om_value *const *v = list_of(&x->part[part], is_output, &n);
		for (uint32_t k = 0; k < n; k++)
			if (strcmp(v[k]->name, name) == 0) {
				*out = (om_set_end){part, v[k]->name, k, is_output};
				found++;
			}
	}
	if (found == 0)
		return BAD(x, "%s: part %s has no input or output %s", x->path, x->part[part].pub.name, name);
	if (found > 1)
		return BAD(x, "%s: part %s has %s %s: it cannot be a shared value", x->path, x->part[part].pub.name, name,
			"several times among its inputs and outputs");
	return OM_OK;
}

/* An end belongs to one value, and a part writes it once; a part that writes it reads it once. */
static om_status
check_end(om_set *x, const om_set_value *v, const om_set_end *e, int32_t at)
{
	struct part *p = &x->part[e->part];
	int32_t *of = e->is_output ? &p->out[e->index] : &p->in[e->index];
	uint32_t reads = 0, writes = 0;

	if (!e->is_output && p->prog->first->param[e->index]->is_const)
		return BAD(x, "%s: %s.%s has a value, and is in a link", x->path, p->pub.name, e->name);
	if (*of >= 0)
		return BAD(x, "%s: %s.%s is in two links", x->path, p->pub.name, e->name);
	*of = at;
	for (uint32_t k = 0; k < v->nend; k++)
		if (v->end[k].part == e->part)
			++*(v->end[k].is_output ? &writes : &reads);
	if (writes > 1)
		return BAD(x, "%s: link %s: part %s writes it twice", x->path, v->name, p->pub.name);
	if (writes && reads > 1)
		return BAD(x, "%s: link %s: part %s writes it and reads it twice", x->path, v->name, p->pub.name);
	return OM_OK;
}

/* Make a value of the ends of a link, where a star is `text`. */
static om_status
add_value(struct reader *r, json_t *link, const char *text, size_t n)
{
	om_set *x = r->x;
	om_set_end *end = OM_NEWN(x->mem, om_set_end, json_array_size(link));
	om_set_value v = {.end = end};
	size_t k;
	json_t *j;

	json_array_foreach(link, k, j) {
		uint32_t part;
		const char *name;
		OM_TRY(find_part(x, json_string_value(j), &part, &name));
		const char *star = strchr(name, '*');
		if (star)
			name = om_printf(x->mem, "%.*s%.*s%s", (int)(star - name), name, (int)n, text, star + 1);
		OM_TRY(find_end(x, part, name, &end[v.nend++]));
	}
	v.name = om_printf(x->mem, "%s.%s", x->part[end[0].part].pub.name, end[0].name);
	for (k = 0; k < v.nend; k++)
		OM_TRY(check_end(x, &v, &end[k], (int32_t)r->n));
	OM_PUSH(x->mem, r->value, r->n, r->cap, v);
	return OM_OK;
}

static om_status
read_link(struct reader *r, json_t *link)
{
	om_set *x = r->x;
	const char *text = "", *name, *star = NULL;
	size_t n = 0, k, before = r->n;
	uint32_t part, count;
	json_t *j;

	if (json_array_size(link) < 2)
		return BAD(x, "%s: a link is a list of at least two ends, each \"PART.NAME\"", x->path);
	json_array_foreach(link, k, j) {
		OM_TRY(find_part(x, json_string_value(j), &part, &name));
		if (k == 0)
			star = strchr(name, '*');
		if (!star != !strchr(name, '*') || (star && strchr(strchr(name, '*') + 1, '*')))
			return BAD(x, "%s: link %s: all its ends have one star, or none has", x->path, json_string_value(j));
	}
	if (!star)
		return add_value(r, link, text, n);
	OM_TRY(find_part(x, json_string_value(json_array_get(link, 0)), &part, &name));
	for (int is_output = 0; is_output < 2; is_output++) {
		om_value *const *v = list_of(&x->part[part], is_output, &count);
		for (k = 0; k < count; k++)
			if (matches(name, v[k]->name, &text, &n))
				OM_TRY(add_value(r, link, text, n));
	}
	if (r->n == before)
		return BAD(x, "%s: part %s has no input or output %s", x->path, x->part[part].pub.name, name);
	return OM_OK;
}

static int32_t *
unlinked(om_arena *mem, uint32_t n)
{
	int32_t *list = OM_NEWN(mem, int32_t, n);

	for (uint32_t k = 0; k < n; k++)
		list[k] = -1;
	return list;
}

om_status
om_set_read_links(om_set *x)
{
	json_t *links = json_object_get(*x->json, "links"), *j;
	struct reader r = {.x = x};
	size_t k;

	for (k = 0; k < x->npart; k++) {
		struct part *p = &x->part[k];
		p->in = unlinked(x->mem, p->prog->first->nparam);
		p->out = unlinked(x->mem, p->prog->first->nresult);
		p->in_place = OM_NEWN(x->mem, bool, p->prog->first->nresult);
	}
	if (links && !json_is_array(links))
		return BAD(x, "%s: \"links\" is no list", x->path);
	json_array_foreach(links, k, j)
		OM_TRY(read_link(&r, j));
	x->value = r.value;
	x->nvalue = (uint32_t)r.n;
	return OM_OK;
}
