/* SPDX-License-Identifier: Apache-2.0 */
/* Values that the request places in a given arena. */
#include <config.h>

#include "alloc/buffers.h"
#include "alloc/is_planned.h"

#define NONE UINT32_MAX

struct pins {
	om_session *s;
	const om_prog *p;
	const om_buffers *b;
	const om_plan_request *r;
	const om_value **by;     /* by buffer: the value that pinned it; NULL: none */
};

static om_status
find_arena(const struct pins *w, const om_pin *pin, uint32_t *arena)
{
	for (uint32_t k = 0; k < w->r->narena; k++)
		if (strcmp(w->r->arena[k].name, pin->arena) == 0) {
			*arena = k;
			return OM_OK;
		}
	return om_fail(w->s, OM_USAGE, "%s is pinned to the arena %s, which the plan does not have", pin->value, pin->arena);
}

/* Values that share memory are in one buffer, and so in one arena. */
static om_status
pin_value(struct pins *w, const om_pin *pin, const om_value *v, uint32_t arena)
{
	const uint32_t n = w->b->of_value[v->id];

	if (n == NONE)
		return om_fail(w->s, OM_USAGE, "%s is pinned to the arena %s, but is in no arena: it is %s", pin->value, pin->arena,
			v->is_const ? "a constant" : "in the memory of the caller, or its size is not known");
	if (w->by[n] && w->b->buf[n].fixed_pool != arena)
		return om_fail(w->s, OM_USAGE, "%s is pinned to the arena %s, but shares memory with %s, which is pinned to %s",
			pin->value, pin->arena, w->by[n]->name, w->r->arena[w->b->buf[n].fixed_pool].name);
	w->b->buf[n].fixed_pool = arena;
	w->by[n] = v;
	return OM_OK;
}

static bool
is_there(const om_prog *p, const om_value *v)
{
	return om_block_is_reached(p, v->block) && (!v->def || v->def->block);
}

static om_status
pin(struct pins *w, const om_pin *pin)
{
	bool found = false;
	uint32_t arena = 0;

	OM_TRY(find_arena(w, pin, &arena));
	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		const om_value *v = w->p->values[k];
		if (strcmp(v->name, pin->value) != 0 || !is_there(w->p, v))
			continue;
		OM_TRY(pin_value(w, pin, v, arena));
		found = true;
	}
	return found ? OM_OK : om_fail(w->s, OM_USAGE, "%s is pinned to the arena %s, but the plan has no value of this name",
		pin->value, pin->arena);
}

om_status
om_buffers_pin(om_session *s, const om_prog *p, const om_buffers *b, const om_plan_request *r, om_arena *mem)
{
	struct pins w = {s, p, b, r, OM_NEWN(mem, const om_value *, b->n)};

	for (uint32_t k = 0; k < r->npin; k++)
		OM_TRY(pin(&w, &r->pin[k]));
	return OM_OK;
}
