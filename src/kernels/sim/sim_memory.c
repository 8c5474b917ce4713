/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the simulated device: it moves, and what it leaves has no access. */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/sim/sim.h"

enum { POISON = 0xa5 };

static uint64_t
pages(uint64_t bytes)
{
	return (bytes + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
}

static void *
map_nothing(void *at, uint64_t bytes, int flags)
{
	return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

/* Addresses for `bytes` of whole pages, with a page without access on both sides; NULL: there are none. */
static char *
reserve(uint64_t bytes)
{
	char *at = map_nothing(NULL, bytes + 2 * SIM_PAGE, 0);

	return at == MAP_FAILED ? NULL : at + SIM_PAGE;
}

/* The range at m->at, which has no access now, is remembered; the oldest one may be used again by the system. */
static void
bury(om_device *d, const struct memory *m)
{
	struct grave *g = &d->grave[d->ngrave++ % SIM_GRAVES];

	if (g->at)
		munmap(g->at, g->bytes);
	*g = (struct grave){m->at - SIM_PAGE, pages(m->bytes) + 2 * SIM_PAGE, (uint32_t)(m - d->memory), m->skew};
}

struct memory *
om_sim_memory(om_device *d, om_mem m)
{
	const uint32_t k = (uint32_t)m;

	return k < d->nmemory && d->memory[k].is_live && d->memory[k].generation == m >> 32 ? &d->memory[k] : NULL;
}

/* A number for a memory; UINT32_MAX: there is no memory for it. */
static uint32_t
find_number(om_device *d)
{
	uint32_t k = 0;

	while (k < d->nmemory && d->memory[k].is_live)
		k++;
	if (k < d->nmemory)
		return k;
	struct memory *more = realloc(d->memory, (k + 1) * sizeof *more);
	if (!more)
		return UINT32_MAX;
	d->memory = more;
	d->memory[k] = (struct memory){0};
	d->nmemory = k + 1;
	return k;
}

om_device_status
om_sim_alloc(om_device *d, om_mem_kind kind, uint64_t bytes, om_mem *out)
{
	enum { MOST_BITS = 46 };
	const unsigned long long n = bytes;

	*out = 0;
	if (kind == OM_MEM_FOREIGN)
		return om_sim_fail(d, OM_DEVICE_ARGUMENT, "memory of the caller is not allocated");
	if (d->allocations == 0 || bytes >> MOST_BITS)
		return om_sim_fail(d, OM_DEVICE_MEMORY, "the simulated device has no memory for %llu bytes", n);
	d->allocations -= d->allocations > 0;
	const uint32_t k = find_number(d);
	struct memory *m = k == UINT32_MAX ? NULL : &d->memory[k];
	char *at = m ? reserve(pages(bytes + !bytes)) : NULL;
	if (!at || mprotect(at, pages(bytes + !bytes), PROT_READ | PROT_WRITE) != 0)
		return om_sim_fail(d, OM_DEVICE_MEMORY, "there are no %llu bytes for the simulated device", n);
	const uint64_t room = (bytes + !bytes + SIM_ALIGN - 1) / SIM_ALIGN * SIM_ALIGN;
	*m = (struct memory){.bytes = bytes + !bytes, .skew = (uint32_t)(pages(room) - room),
		.generation = m->generation + 1, .is_live = true, .at = at, .accesses = m->accesses};
	m->accesses.n = 0;
	memset(at, POISON, pages(m->bytes));
	*out = (om_mem)m->generation << 32 | k;
	return OM_DEVICE_OK;
}

om_device_status
om_sim_bind(om_device *d, void *foreign, uint64_t bytes, void *native_stream, om_mem *out)
{
	*out = 0;
	if (!foreign || bytes == 0)
		return om_sim_fail(d, OM_DEVICE_ARGUMENT, "there is no memory to bind");
	if (native_stream)
		return om_sim_fail(d, OM_DEVICE_ARGUMENT, "the simulated device has no streams of others");
	const uint32_t k = find_number(d);
	if (k == UINT32_MAX)
		return om_sim_fail(d, OM_DEVICE_MEMORY, "there is no memory for a handle of the simulated device");
	struct memory *m = &d->memory[k];
	*m = (struct memory){.bytes = bytes, .generation = m->generation + 1, .is_live = true, .is_foreign = true, .at = foreign,
		.accesses = m->accesses};
	m->accesses.n = 0;
	*out = (om_mem)m->generation << 32 | k;
	return OM_DEVICE_OK;
}

/* The contents of pages at `to`, which are reserved; what was at `at` is not there any more. */
#if defined HAVE_MREMAP && defined MAP_FIXED_NOREPLACE
static bool
move_pages(char *at, uint64_t bytes, char *to, bool *is_reserved)
{
	if (mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
		return false;
	*is_reserved = map_nothing(at, bytes, MAP_FIXED_NOREPLACE) == at;
	return true;
}
#else
static bool
move_pages(char *at, uint64_t bytes, char *to, bool *is_reserved)
{
	if (mprotect(to, bytes, PROT_READ | PROT_WRITE) != 0)
		return false;
	memcpy(to, at, bytes);
	*is_reserved = map_nothing(at, bytes, MAP_FIXED) == at;
	return *is_reserved;
}
#endif

om_device_status
om_sim_move(om_device *d, struct memory *m)
{
	const uint64_t bytes = pages(m->bytes);
	const bool stays = d->is_fixed || m->is_foreign;
	char *to = stays ? NULL : reserve(bytes);
	bool is_reserved;

	if (stays)
		return OM_DEVICE_OK;
	if (!to || !move_pages(m->at, bytes, to, &is_reserved))
		return om_sim_fail(d, OM_DEVICE_MEMORY, "there are no addresses to move the memory of the simulated device to");
	if (is_reserved)
		bury(d, m);
	m->at = to;
	return OM_DEVICE_OK;
}

void
om_sim_free(om_device *d, om_mem handle)
{
	struct memory *m = om_sim_memory(d, handle);

	if (!handle)
		return;
	if (!m) {
		d->late = om_sim_fail(d, OM_DEVICE_ARGUMENT, "memory %u was freed twice", (uint32_t)handle);
		return;
	}
	if (m->queued)
		d->late = om_sim_fail(d, OM_DEVICE_ARGUMENT, "memory %u was freed while commands that use it did not run yet",
			(uint32_t)handle);
	m->is_live = false;
	if (m->is_foreign)
		return;
	map_nothing(m->at, pages(m->bytes), MAP_FIXED);
	bury(d, m);
}

void
om_sim_free_all(om_device *d)
{
	for (uint32_t k = 0; k < d->nmemory; k++) {
		if (d->memory[k].is_live && !d->memory[k].is_foreign)
			munmap(d->memory[k].at - SIM_PAGE, pages(d->memory[k].bytes) + 2 * SIM_PAGE);
		free(d->memory[k].accesses.a);
	}
	for (uint32_t k = 0; k < SIM_GRAVES && d->grave[k].at; k++)
		munmap(d->grave[k].at, d->grave[k].bytes);
	free(d->memory);
	free(d->host_accesses.a);
}

void
om_sim_explain(om_device *d, const char *address)
{
	for (uint32_t k = 0; k < d->nmemory; k++) {
		const struct memory *m = &d->memory[k];
		if (m->is_live && !m->is_foreign && address >= m->at - SIM_PAGE && address < m->at + pages(m->bytes) + SIM_PAGE) {
			om_sim_fail(d, OM_DEVICE_LOST, "command %u leaves memory %u at byte %lld of %llu", d->running, k,
				(long long)(address - m->at - m->skew), (unsigned long long)m->bytes);
			return;
		}
	}
	for (uint32_t k = 0; k < SIM_GRAVES && d->grave[k].at; k++) {
		const struct grave *g = &d->grave[k];
		if (address >= g->at && address < g->at + g->bytes) {
			om_sim_fail(d, OM_DEVICE_LOST, "command %u uses an address of byte %lld of memory %u that is not valid any more",
				d->running, (long long)(address - g->at) - SIM_PAGE - g->skew, g->memory);
			return;
		}
	}
	om_sim_fail(d, OM_DEVICE_LOST, "command %u uses an address that is in no memory", d->running);
}
