/* SPDX-License-Identifier: Apache-2.0 */
/* Values of every type as entries of a .npz file. */
#include <config.h>

#include "base/map.h"
#include "base/shape.h"
#include "cli/archive.h"
#include "ir/type.h"

struct om_archive {
	om_cli *cli;
	const char *path;
	om_npz_entry *entry;
	size_t n;
	bool *is_read;
	om_map by_name;
};

om_status
om_archive_load(om_cli *c, const char *path, om_archive **out)
{
	om_archive *a = OM_NEW(c->mem, om_archive);

	*a = (om_archive){.cli = c, .path = path, .by_name = om_map_new(c->mem)};
	OM_TRY(om_npz_load(c->session, path, c->mem, &a->entry, &a->n));
	a->is_read = OM_NEWN(c->mem, bool, a->n);
	for (size_t k = 0; k < a->n; k++)
		om_map_set(&a->by_name, a->entry[k].name, &a->entry[k]);
	*out = a;
	return OM_OK;
}

size_t
om_archive_size(const om_archive *a)
{
	return a->n;
}

const om_npz_entry *
om_archive_entry(const om_archive *a, size_t k)
{
	return &a->entry[k];
}

const char *
om_archive_unread(const om_archive *a)
{
	for (size_t k = 0; k < a->n; k++)
		if (!a->is_read[k])
			return a->entry[k].name;
	return NULL;
}

/* ---- Reading. ---- */

static const char *
part(om_arena *mem, const char *name, const char *what)
{
	return om_printf(mem, "%s.%s", name, what);
}

static const char *
item(om_arena *mem, const char *name, size_t k)
{
	return om_printf(mem, "%s[%zu]", name, k);
}

static const om_tensor *
find(om_archive *a, const char *name)
{
	const om_npz_entry *e = om_map_get(&a->by_name, name);

	if (e)
		a->is_read[e - a->entry] = true;
	return e ? &e->t : NULL;
}

static om_status
missing(const om_archive *a, const char *name)
{
	return om_fail(a->cli->session, OM_MALFORMED, "%s: has no entry %s", a->path, name);
}

static void
set_object(om_archive *a, const om_type *type, const om_container *object, om_tensor *out)
{
	*out = (om_tensor){.type = om_type_elem(type), .shape = {.rank = OM_RANK_UNKNOWN},
		.data = om_memdup(a->cli->mem, object, sizeof *object)};
}

static om_status
read_list(om_archive *a, const char *name, const om_type *type, om_tensor *out, bool *found)
{
	om_arena *mem = a->cli->mem;
	const char *entry = part(mem, name, "length");
	const om_tensor *length = find(a, entry);
	const int64_t most = type->kind == OM_OPTIONAL ? 1 : (int64_t)a->n;

	*found = length != NULL;
	if (!length)
		return OM_OK;
	if (length->type != OM_INT64 || om_shape_count(&length->shape) != 1 || *(const int64_t *)length->data < 0)
		return om_fail(a->cli->session, OM_MALFORMED, "%s: entry %s is not one int64 number of elements", a->path, entry);
	const int64_t n = *(const int64_t *)length->data;
	if (n > most)
		return om_fail(a->cli->session, OM_MALFORMED, "%s: entry %s is %lld: %s", a->path, entry, (long long)n,
			type->kind == OM_OPTIONAL ? "an optional has at most one element" : "the file has fewer entries");
	om_tensor *items = OM_NEWN(mem, om_tensor, (size_t)n);
	for (size_t k = 0; k < (size_t)n; k++) {
		bool has_item;
		OM_TRY(om_archive_value(a, item(mem, name, k), type->of, &items[k], &has_item));
		if (!has_item)
			return missing(a, item(mem, name, k));
	}
	set_object(a, type, &(om_container){.n = (size_t)n, .item = items}, out);
	return OM_OK;
}

static om_status
read_map(om_archive *a, const char *name, const om_type *type, om_tensor *out, bool *found)
{
	const char *keys = part(a->cli->mem, name, "keys"), *values = part(a->cli->mem, name, "values");
	const om_tensor *key = find(a, keys), *value = find(a, values);

	*found = key || value;
	if (!*found)
		return OM_OK;
	if (!key || !value)
		return missing(a, key ? values : keys);
	if (key->shape.rank != 1 || value->shape.rank != 1 || key->shape.dim[0] != value->shape.dim[0])
		return om_fail(a->cli->session, OM_MALFORMED, "%s: entries %s and %s are not two lists of one length", a->path,
			keys, values);
	set_object(a, type, &(om_container){.n = (size_t)key->shape.dim[0], .key = *key, .value = *value}, out);
	return OM_OK;
}

om_status
om_archive_value(om_archive *a, const char *name, const om_type *type, om_tensor *out, bool *found)
{
	if (type->kind == OM_TENSOR) {
		const om_tensor *t = find(a, name);
		*found = t != NULL;
		*out = t ? *t : *out;
		return OM_OK;
	}
	om_tensor object = {.type = OM_UNDEFINED};
	OM_TRY(type->kind == OM_MAP ? read_map(a, name, type, &object, found) : read_list(a, name, type, &object, found));
	if (!*found)
		return OM_OK;
	if (!om_container_fits(&object, type))
		return om_fail(a->cli->session, OM_MALFORMED, "%s: the entries of %s are not those of a %s of this type", a->path,
			name, om_kind_text(type->kind));
	*out = object;
	return OM_OK;
}

/* ---- Writing. ---- */

static void
push(om_arena *mem, om_entries *e, const char *name, const om_tensor *t)
{
	OM_PUSH(mem, e->list, e->n, e->cap, ((om_npz_entry){name, *t}));
}

void
om_entries_add(om_arena *mem, om_entries *e, const char *name, const om_type *type, const om_tensor *t)
{
	const om_container *object = t->data;

	if (type->kind == OM_TENSOR) {
		push(mem, e, name, t);
		return;
	}
	if (type->kind == OM_MAP) {
		push(mem, e, part(mem, name, "keys"), &object->key);
		push(mem, e, part(mem, name, "values"), &object->value);
		return;
	}
	const int64_t n = (int64_t)object->n;
	push(mem, e, part(mem, name, "length"), &(om_tensor){.type = OM_INT64, .shape = om_shape_of(0, NULL),
		.data = om_memdup(mem, &n, sizeof n)});
	for (size_t k = 0; k < object->n; k++)
		om_entries_add(mem, e, item(mem, name, k), type->of, &object->item[k]);
}
