/* SPDX-License-Identifier: Apache-2.0 */
/* Values and scratch of devices: each is in the arena of its device. */
#include <config.h>

#include "alloc/buffers.h"
#include "opdef/op_context.h"

#define NONE UINT32_MAX

struct devices {
	om_session *s;
	const om_plan_request *r;
	const om_buffers *b;
	const char **device;     /* by buffer; NULL: not seen yet */
};

static const char *
host_or(const char *device)
{
	return device ? device : "cpu";
}

static om_status
check_request(const struct devices *w)
{
	for (uint32_t k = 0; k < w->r->narena; k++)
		for (uint32_t i = 0; i < k; i++)
			if (strcmp(host_or(w->r->arena[k].device), host_or(w->r->arena[i].device)) == 0)
				return om_fail(w->s, OM_USAGE, "a plan for devices has one arena for each device, but %s and %s are both for %s",
					w->r->arena[i].name, w->r->arena[k].name, host_or(w->r->arena[k].device));
	return OM_OK;
}

static om_status
place(struct devices *w, uint32_t n, const char *device, const char *name)
{
	if (n == NONE || (w->device[n] && strcmp(w->device[n], device) == 0))
		return OM_OK;
	if (w->device[n])
		return om_fail(w->s, OM_IR, "%s is in the memory of %s, but shares memory with a value of %s", name, device, w->device[n]);
	w->device[n] = device;
	for (uint32_t k = 0; k < w->r->narena; k++)
		if (strcmp(host_or(w->r->arena[k].device), device) == 0) {
			w->b->buf[n].fixed_pool = k;
			return OM_OK;
		}
	return om_fail(w->s, OM_USAGE, "%s is in the memory of %s, but the plan has no arena there", name, device);
}

static om_status
place_op(struct devices *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			OM_TRY(place(w, w->b->of_value[op->out[k]->id], host_or(om_value_device(op->out[k])), op->out[k]->name));
	return place(w, w->b->of_op[op->id], host_or(op->device), *op->name ? op->name : op->type);
}

static bool
has_devices(const om_prog *p, const om_plan_request *r)
{
	bool any = false;

	for (uint32_t k = 0; k < r->narena; k++)
		any |= r->arena[k].device && strcmp(r->arena[k].device, "cpu") != 0;
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			any |= op->device != NULL;
	return any;
}

om_status
om_buffers_on_devices(om_session *s, const om_prog *p, const om_buffers *b, const om_plan_request *r, om_arena *mem)
{
	struct devices w = {s, r, b, OM_NEWN(mem, const char *, b->n)};

	if (!has_devices(p, r))
		return OM_OK;
	OM_TRY(check_request(&w));
	for (const om_block *at = p->first; at; at = at->next) {
		for (uint32_t k = 0; k < at->nparam; k++)
			OM_TRY(place(&w, b->of_value[at->param[k]->id], "cpu", at->param[k]->name));
		for (const om_op *op = at->first; op; op = op->next)
			OM_TRY(place_op(&w, op));
	}
	return OM_OK;
}
