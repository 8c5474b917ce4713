/* Inputs of the graph in an arena: their elements are copied there at the start of each run.
 *
 * The caller may instead write an input directly where it is, or pass a result of the previous run, which is in
 * the arena, too.  What one copy, or the fill of poison, would destroy before it is read is put aside first. */
#include <config.h>

#include "exec/exec_internal.h"

static bool
is_in_arena(const om_exec *e, const om_value *v)
{
	return e->plan && e->plan->place[v->id].where == OM_IN_ARENA;
}

bool
om_exec_give(om_exec *e, uint32_t k, const om_tensor *t)
{
	const om_value *v = e->prog->first->param[k];

	if (!is_in_arena(e, v))
		return false;
	e->given[k] = *t;
	return true;
}

void *
om_exec_input_memory(const om_exec *e, uint32_t k)
{
	const om_block *graph = e->prog->first;

	return k < graph->nparam && is_in_arena(e, graph->param[k]) ? e->slot[graph->param[k]->id].data : NULL;
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

/* Is input `k` in an arena already, so that something that happens before it is copied may destroy it? */
static bool
is_endangered(const om_exec *e, uint32_t k)
{
	const om_tensor *t = &e->given[k];
	const bool is_home = t->data == e->slot[e->prog->first->param[k]->id].data && !e->poison;

	return bytes_of(t) && !is_home && overlaps_arena(e, t->data, bytes_of(t));
}

om_status
om_exec_save_inputs(om_exec *e)
{
	const uint32_t n = e->prog->first->nparam;
	uint64_t all = 0;
	unsigned char *to;

	for (uint32_t k = 0; k < n; k++)
		all += is_endangered(e, k) ? bytes_of(&e->given[k]) : 0;
	if (all == 0)
		return OM_OK;
	OM_TRY(om_room_fit(e, &e->aside, all, "inputs that are in the arena"));
	to = e->aside.data;
	for (uint32_t k = 0; k < n; k++) {
		if (!is_endangered(e, k))
			continue;
		memcpy(to, e->given[k].data, bytes_of(&e->given[k]));
		e->source[k] = to;
		to += bytes_of(&e->given[k]);
	}
	return OM_OK;
}

void
om_exec_load_inputs(om_exec *e)
{
	for (uint32_t k = 0; k < e->prog->first->nparam; k++) {
		const om_tensor *t = &e->given[k];
		void *to = e->slot[e->prog->first->param[k]->id].data;
		const void *from = e->source[k] ? e->source[k] : t->data;
		e->source[k] = NULL;
		if (bytes_of(t) == 0 || from == to)
			continue;
		memcpy(to, from, bytes_of(t));
		e->stats.copied_bytes += bytes_of(t);
	}
}
