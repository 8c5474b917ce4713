/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of variables: blocks of few sizes, which are kept for the next variable when they are released.
 *
 * There are four sizes for each power of two, so that a block is at most a quarter larger than what is asked for.
 */
#include <config.h>

#include <stdlib.h>

#include "base/sizes.h"
#include "base/system.h"
#include "eager/eager_internal.h"

/* The class of a size, and the bytes of its blocks; UINT64_MAX if there are none so large. */
static uint64_t
class_of(uint64_t bytes, uint32_t *size_class)
{
	uint32_t shift = 4;  /* a quarter of the least size */

	*size_class = 0;
	if (bytes <= 64)
		return 64;
	if (bytes > UINT64_MAX >> 2)
		return UINT64_MAX;
	while ((bytes - 1) >> (shift + 3))
		shift++;
	const uint64_t step = UINT64_C(1) << shift, quarters = (bytes - 1) / step;  /* 4 to 7 */
	*size_class = (shift - 4) * 4 + (uint32_t)(quarters - 4) + 1;
	return (quarters + 1) * step;
}

static struct store *
reuse(struct memory_pool *p, uint32_t size_class)
{
	struct store *s = p->free[size_class];

	if (s)
		p->free[size_class] = s->next;
	return s;
}

static bool
exceeds(const struct memory_pool *p, uint64_t size)
{
	return p->limit && (size > p->limit || p->held > p->limit - size);
}

static struct store *
allocate(struct memory_pool *p, uint64_t size, uint32_t size_class)
{
	if (exceeds(p, size))
		om_memory_pool_trim(p);
	if (size == UINT64_MAX || exceeds(p, size))
		return NULL;
	struct store *s = om_memory_aligned(OM_STORE_HEADER, OM_STORE_HEADER + size);
	if (!s)
		return NULL;
	*s = (struct store){.data = (char *)s + OM_STORE_HEADER, .bytes = size, .size_class = size_class};
	p->held += size;
	return s;
}

struct store *
om_store_take(struct memory_pool *p, uint64_t bytes)
{
	uint32_t size_class;
	const uint64_t size = class_of(bytes, &size_class);
	struct store *s = size == UINT64_MAX ? NULL : reuse(p, size_class);

	if (!s)
		s = allocate(p, size, size_class);
	if (!s)
		return NULL;
	s->refs = 1;
	p->used += size;
	if (p->used > p->peak)
		p->peak = p->used;
	return s;
}

struct store *
om_store_external(void *data, uint64_t bytes, void (*release)(void *arg), void *arg)
{
	struct store *s = om_memory_zeroed(sizeof *s);

	if (s)
		*s = (struct store){.data = data, .bytes = bytes, .refs = 1, .release = release, .arg = arg, .is_external = true};
	return s;
}

void
om_store_drop(struct memory_pool *p, struct store *s)
{
	if (!s || --s->refs)
		return;
	if (s->is_external) {
		if (s->release)
			s->release(s->arg);
		free(s);
		return;
	}
	p->used -= s->bytes;
	s->next = p->free[s->size_class];
	p->free[s->size_class] = s;
}

void
om_memory_pool_trim(struct memory_pool *p)
{
	struct store *s;

	for (uint32_t k = 0; k < OM_STORE_CLASSES; k++)
		while ((s = reuse(p, k))) {
			p->held -= s->bytes;
			om_aligned_free(s);
		}
}

struct memory_pool *
om_memory_pool_new(uint64_t limit)
{
	struct memory_pool *p = om_memory_zeroed(sizeof *p);

	if (p) {
		p->limit = limit;
		p->refs = 1;
	}
	return p;
}

void
om_memory_pool_leave(struct memory_pool *p)
{
	if (!p || --p->refs)
		return;
	om_memory_pool_trim(p);
	free(p);
}
