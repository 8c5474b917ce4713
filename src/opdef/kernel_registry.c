/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel registry: a hash table of lists, with the newest entry first.
 *
 * The key is device, domain and name.  Few entries share a key, so versions, types and `supports` are
 * checked linearly. */
#include <config.h>

#include <string.h>

#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "onnxmem/kernel.h"

enum { FIRST_BUCKETS = 64, NONE = -1 };

struct entry {
	const om_kernel *kernel;
	uint32_t hash;
	int next;                 /* in its bucket */
};

struct om_kernel_registry {
	om_arena *mem;
	struct entry *entry;
	size_t n, cap;
	int *bucket;              /* the newest entry of each bucket */
	size_t nbucket;           /* a power of two */
};

static uint32_t
hash_text(uint32_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return (h ^ '/') * 16777619u;
}

static uint32_t
hash_key(const char *device, const char *domain, const char *name)
{
	return hash_text(hash_text(hash_text(2166136261u, device), domain), name);
}

static const char *
device_of(const om_kernel *k)
{
	return k->device ? k->device : "cpu";
}

static const char *
domain_of(const om_kernel *k)
{
	return k->domain ? k->domain : "";
}

om_kernel_registry *
om_kernel_registry_new(void)
{
	om_arena *mem = om_arena_new();
	om_kernel_registry *r = OM_NEW(mem, om_kernel_registry);

	r->mem = mem;
	return r;
}

void
om_kernel_registry_free(om_kernel_registry *r)
{
	if (r)
		om_arena_free(r->mem);
}

static void
link_entry(om_kernel_registry *r, size_t k)
{
	int *bucket = &r->bucket[r->entry[k].hash & (r->nbucket - 1)];

	r->entry[k].next = *bucket;
	*bucket = (int)k;
}

static void
grow_buckets(om_kernel_registry *r)
{
	r->nbucket = r->nbucket ? 2 * r->nbucket : FIRST_BUCKETS;
	r->bucket = OM_NEWN(r->mem, int, r->nbucket);
	for (size_t b = 0; b < r->nbucket; b++)
		r->bucket[b] = NONE;
	for (size_t k = 0; k < r->n; k++)
		link_entry(r, k);
}

om_status
om_kernel_register(om_session *s, om_kernel_registry *r, const om_kernel *list)
{
	for (const om_kernel *k = list; k->name; k++)
		if (!k->run)
			return om_fail(s, OM_USAGE,
				"the kernel of %s for %s has no run function", k->name, device_of(k));
	for (const om_kernel *k = list; k->name; k++) {
		const struct entry e = {k, hash_key(device_of(k), domain_of(k), k->name), NONE};
		if (r->n == r->nbucket)
			grow_buckets(r);
		OM_PUSH(r->mem, r->entry, r->n, r->cap, e);
		link_entry(r, r->n - 1);
	}
	return OM_OK;
}

static bool
fits(const om_kernel *k, const om_op_context *c)
{
	const om_op *op = c->op;

	return !(k->is_fast && c->precise) && (k->since == 0 || k->since <= op->version) && (k->until == 0 || op->version <= k->until)
	    && (k->layouts == 0 || k->layouts & OM_LAYOUT_ROW_MAJOR) && om_types_fit(k->types, c)
	    && (!k->supports || k->supports(c));
}

const om_kernel *
om_kernel_find(const om_kernel_registry *r, const char *device, const om_op_context *c)
{
	/* A part of a composite has the name of the composite op; its definition has its own name. */
	const om_opdef *row = c->op->opdef;
	const char *name = row ? row->name : c->op->type;
	const char *domain = row ? row->domain ? row->domain : "" : c->op->domain;
	const uint32_t hash = hash_key(device, domain, name);

	if (!r || r->n == 0)
		return NULL;
	for (int k = r->bucket[hash & (r->nbucket - 1)]; k != NONE; k = r->entry[k].next) {
		const om_kernel *it = r->entry[k].kernel;
		if (r->entry[k].hash == hash && strcmp(it->name, name) == 0
		    && strcmp(domain_of(it), domain) == 0 && strcmp(device_of(it), device) == 0
		    && fits(it, c))
			return it;
	}
	return NULL;
}
