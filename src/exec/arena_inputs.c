/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of the graph in an arena: their elements are copied there at the start of each run.
 *
 * The caller may instead write an input directly where it is, or pass a result of the previous run, which is in
 * the arena, too.  What one copy, or the fill of poison, would destroy before it is read is put aside first. */
#include <config.h>

#include "exec/exec_internal.h"

void
om_exec_find_inputs(om_exec *e)
{
	const om_block *graph = e->prog->first;

	e->arena_input = OM_NEWN(e->mem, struct arena_input, graph->nparam);
	for (uint32_t k = 0; k < graph->nparam; k++)
		if (om_exec_in_arena(e, graph->param[k]))
			e->arena_input[e->narena_input++].v = graph->param[k];
}

bool
om_exec_give(om_exec *e, const om_value *v, const om_tensor *t)
{
	for (uint32_t k = 0; k < e->narena_input; k++)
		if (e->arena_input[k].v == v) {
			e->arena_input[k].given = *t;
			return true;
		}
	return false;
}

void *
om_exec_input_memory(const om_exec *e, uint32_t k)
{
	const om_block *graph = e->prog->first;

	return k < graph->nparam && om_exec_in_arena(e, graph->param[k]) ? e->slot[graph->param[k]->id].data : NULL;
}

static bool
overlaps_arena(const om_exec *e, const char *data, uint64_t bytes)
{
	for (uint32_t k = 0; k < e->narena; k++) {
		const uintptr_t from = (uintptr_t)e->arena[k].data, at = (uintptr_t)data;
		if (at < from + e->arena[k].cap && from < at + bytes)
			return true;
	}
	return false;
}

static uint64_t
bytes_of(const om_tensor *t)
{
	uint64_t bytes = 0;

	return t->data && om_tensor_bytes(t->type, &t->shape, &bytes) ? bytes : 0;
}

/* Is it in an arena already, so that something that happens before it is copied may destroy it? */
static bool
is_endangered(const om_exec *e, const struct arena_input *in)
{
	const uint64_t bytes = bytes_of(&in->given);
	const bool is_home = in->given.data == e->slot[in->v->id].data && !e->poison;

	return bytes && !is_home && overlaps_arena(e, in->given.data, bytes);
}

om_status
om_exec_save_inputs(om_exec *e)
{
	uint64_t all = 0;
	unsigned char *to;

	for (uint32_t k = 0; k < e->narena_input; k++)
		all += is_endangered(e, &e->arena_input[k]) ? bytes_of(&e->arena_input[k].given) : 0;
	if (all == 0)
		return OM_OK;
	OM_TRY(om_room_fit(e, &e->aside, all, "inputs that are in the arena"));
	to = e->aside.data;
	for (uint32_t k = 0; k < e->narena_input; k++) {
		struct arena_input *in = &e->arena_input[k];
		if (!is_endangered(e, in))
			continue;
		memcpy(to, in->given.data, bytes_of(&in->given));
		in->source = to;
		to += bytes_of(&in->given);
	}
	return OM_OK;
}

void
om_exec_load_inputs(om_exec *e)
{
	for (uint32_t k = 0; k < e->narena_input; k++) {
		struct arena_input *in = &e->arena_input[k];
		const uint64_t bytes = bytes_of(&in->given);
		void *to = e->slot[in->v->id].data;
		const void *from = in->source ? in->source : in->given.data;
		in->source = NULL;
		if (bytes == 0 || from == to)
			continue;
		memcpy(to, from, bytes);
		e->stats.copied_bytes += bytes;
	}
}
