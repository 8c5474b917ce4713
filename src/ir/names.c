/* SPDX-License-Identifier: Apache-2.0 */
/* Names of values.
 *
 * A hash table with separate chaining through the values: the number of buckets equals the number of
 * values up to a factor of two, so lookup takes constant time.  The next unused number is stored for
 * each stem: generating n names with one stem takes O(n) steps.
 */
#include <config.h>

#include "base/map.h"
#include "ir/edit.h"
#include "ir/names.h"
#include "onnxmem/builder.h"

struct om_names {
	om_value **bucket;
	size_t cap, n;           /* buckets, a power of two; values */
	om_map next;             /* by stem: the next number to try */
};

static struct om_names *
names_of(om_prog *p)
{
	if (!p->names) {
		p->names = OM_NEW(p->mem, struct om_names);
		p->names->next = om_map_new(p->mem);
	}
	return p->names;
}

static om_value **
bucket_of(const struct om_names *t, const char *name)
{
	return &t->bucket[om_map_hash(name) & (t->cap - 1)];
}

static void
insert(struct om_names *t, om_value *v)
{
	om_value **head = bucket_of(t, v->name);

	v->next_name = *head;
	*head = v;
}

static void
grow(om_prog *p, struct om_names *t)
{
	const struct om_names old = *t;

	t->cap = old.cap ? 2 * old.cap : 64;
	t->bucket = OM_NEWN(p->mem, om_value *, t->cap);
	for (size_t k = 0; k < old.cap; k++)
		for (om_value *v = old.bucket[k], *next; v; v = next) {
			next = v->next_name;
			insert(t, v);
		}
}

void
om_names_add(om_prog *p, om_value *v)
{
	struct om_names *t = names_of(p);

	if (t->n == t->cap)
		grow(p, t);
	insert(t, v);
	t->n++;
}

void
om_names_remove(om_prog *p, om_value *v)
{
	struct om_names *t = names_of(p);
	om_value **at = bucket_of(t, v->name);

	while (*at != v)
		at = &(*at)->next_name;
	*at = v->next_name;
	t->n--;
}

/* The matching value with the smallest id, in block `b` or, if that is NULL, in any block. */
static om_value *
find(const om_prog *p, const om_block *b, const char *name)
{
	om_value *found = NULL;

	for (om_value *v = p->names && p->names->cap ? *bucket_of(p->names, name) : NULL; v; v = v->next_name)
		if ((!b || v->block == b) && (!found || v->id < found->id) && strcmp(v->name, name) == 0)
			found = v;
	return found;
}

om_value *
om_value_find(const om_block *b, const char *name)
{
	return find(b->prog, b, name);
}

om_value *
om_prog_find(const om_prog *p, const char *name)
{
	return find(p, NULL, name);
}

om_value *
om_prog_same_value(const om_prog *p, const om_value *v)
{
	if (v->id < p->nvalue && strcmp(p->values[v->id]->name, v->name) == 0)
		return p->values[v->id];
	return om_prog_find(p, v->name);
}

const char *
om_names_fresh(om_prog *p, const char *stem)
{
	om_map *next = &names_of(p)->next;
	const char *name = stem;

	if (!om_prog_find(p, stem))
		return stem;
	uintptr_t n = (uintptr_t)om_map_get(next, stem);
	do
		name = om_printf(p->mem, "%s.%u", stem, (unsigned)++n);
	while (om_prog_find(p, name));
	om_map_set(next, om_strdup(p->mem, stem), (void *)n);
	return name;
}
