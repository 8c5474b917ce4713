/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/map.h"

uint64_t
om_map_hash(const char *key)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
	return h;
}

om_map
om_map_new(om_arena *mem)
{
	return (om_map){.mem = mem};
}

static struct om_map_slot *
find(const om_map *m, const char *key, uint64_t hash)
{
	size_t k = hash & (m->cap - 1);

	while (m->slot[k].key && (m->slot[k].hash != hash || strcmp(m->slot[k].key, key) != 0))
		k = (k + 1) & (m->cap - 1);
	return &m->slot[k];
}

void *
om_map_get(const om_map *m, const char *key)
{
	return m->cap ? find(m, key, om_map_hash(key))->value : NULL;
}

/* The keys differ: their texts are not compared. */
static void
grow(om_map *m)
{
	om_map bigger = {.mem = m->mem, .cap = m->cap ? 2 * m->cap : 64, .n = m->n};

	bigger.slot = OM_NEWN(m->mem, struct om_map_slot, bigger.cap);
	for (size_t k = 0; k < m->cap; k++) {
		size_t at = m->slot[k].hash & (bigger.cap - 1);
		if (!m->slot[k].key)
			continue;
		while (bigger.slot[at].key)
			at = (at + 1) & (bigger.cap - 1);
		bigger.slot[at] = m->slot[k];
	}
	*m = bigger;
}

void
om_map_set(om_map *m, const char *key, void *value)
{
	const uint64_t hash = om_map_hash(key);

	if (4 * (m->n + 1) > 3 * m->cap)
		grow(m);
	struct om_map_slot *s = find(m, key, hash);
	if (!s->key)
		m->n++;
	*s = (struct om_map_slot){key, value, hash};
}
