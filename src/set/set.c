/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of models: creation, plan, end. */
#include <config.h>

#include <stdlib.h>

#include "alloc/assign.h"
#include "base/arena_internal.h"
#include "base/guard.h"
#include "base/system.h"
#include "set/set.h"

enum { ALIGN = 64 };

static void
release(void *arg)
{
	om_set *x = arg;

	for (uint32_t k = 0; k < x->npart; k++) {
		om_exec_free(x->part[k].run.exec);
		om_plan_cache_free(x->part[k].run.cache);
	}
	for (uint32_t k = 0; k < x->npart; k++) {
		if (x->part[k].prog != x->part[k].loaded)
			om_prog_free(x->part[k].prog);
		om_prog_free(x->part[k].loaded);
	}
	for (uint32_t k = 0; k < x->npart; k++)
		om_model_free(x->part[k].model);
	om_aligned_free(x->allocated);
}

/* Shared values are outside of the arenas of parts. */
static void
make_request(om_set *x, struct part *p)
{
	const om_block *graph = p->prog->first;
	om_io_rule *rule = OM_NEWN(x->mem, om_io_rule, graph->nparam + (size_t)graph->nresult);

	p->request = *om_plan_request_copy(x->host->request, x->mem);
	p->request.io_rule = rule;
	for (uint32_t k = 0; k < graph->nparam; k++)
		if (p->in[k] >= 0)
			rule[p->request.nio_rule++] = (om_io_rule){graph->param[k]->name, OM_IO_CALLER};
	for (uint32_t k = 0; k < graph->nresult; k++)
		if (p->out[k] >= 0)
			rule[p->request.nio_rule++] = (om_io_rule){graph->result[k]->name, OM_IO_CALLER};
}

static om_status
check_request(om_set *x)
{
	const om_plan_request *r = x->host->request;

	if (r->streams)
		return om_fail(x->session, OM_USAGE, "the parts of a set run one after the other, each on one worker: it has no streams");
	if (r->narena > 1 || r->nio_rule || r->npin)
		return om_fail(x->session, OM_USAGE, "a set has one arena, and no rules for single inputs, outputs and values");
	x->plan.align = r->align > ALIGN ? r->align : ALIGN;
	if (r->narena && r->arena[0].align > x->plan.align)
		x->plan.align = r->arena[0].align;
	return OM_OK;
}

static om_status
load(om_set *x)
{
	OM_TRY(check_request(x));
	OM_TRY(om_set_read_manifest(x));
	OM_TRY(om_set_read_links(x));
	om_set_share_weights(x);
	for (uint32_t k = 0; k < x->npart; k++)
		make_request(x, &x->part[k]);
	return OM_OK;
}

static om_status
load_guarded(om_host *h, const char *path, const char *pipeline, om_set **out)
{
	om_arena *mem = om_arena_new();
	om_set *x = OM_NEW(mem, om_set);

	*x = (om_set){.session = h->session, .host = h, .mem = mem, .path = om_strdup(mem, path), .at = -1,
		.pipeline = om_strdup(mem, pipeline ? pipeline : om_request_pipeline(h->request))};
	om_arena_defer(mem, release, x);
	const om_status st = load(x);
	if (st == OM_OK)
		*out = x;
	else
		om_set_free(x);
	return st;
}

om_status
om_set_load(om_host *h, const char *path, const char *pipeline, om_set **out)
{
	*out = NULL;
	OM_GUARDED(h->session, load_guarded(h, path, pipeline, out));
}

void
om_set_free(om_set *x)
{
	if (x)
		om_arena_free(x->mem);
}

void
om_set_publish(om_set *x)
{
	om_set_part *part = OM_NEWN(x->mem, om_set_part, x->npart);

	for (uint32_t k = 0; k < x->npart; k++)
		part[k] = x->part[k].pub;
	x->plan.part = part;
	x->plan.npart = x->npart;
	x->plan.value = x->value;
	x->plan.nvalue = x->nvalue;
	x->is_planned = true;
}

static om_status
make_plan(om_set *x)
{
	OM_TRY(om_set_plan_parts(x));
	OM_TRY(om_set_pack(x));
	om_set_publish(x);
	return om_set_verify(x);
}

om_status
om_set_make_plan(om_set *x)
{
	OM_GUARDED(x->session, make_plan(x));
}

static om_status
read_plan(om_set *x, const char *path)
{
	OM_TRY(om_set_plan_parts(x));
	OM_TRY(om_set_read_offsets(x, path));
	om_set_publish(x);
	return OM_OK;
}

om_status
om_set_read_plan(om_set *x, const char *path)
{
	OM_GUARDED(x->session, read_plan(x, path));
}

const om_set_plan *
om_set_get_plan(const om_set *x)
{
	return x->is_planned ? &x->plan : NULL;
}

om_status
om_set_find(const om_set *x, const char *name, uint32_t *part)
{
	for (*part = 0; *part < x->npart; ++*part)
		if (strcmp(x->part[*part].pub.name, name) == 0)
			return OM_OK;
	return om_fail(x->session, OM_USAGE, "%s has no part %s", x->path, name);
}
