/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of one program by binding. */
#include <config.h>

#include "alloc/assign.h"
#include "base/guard.h"
#include "host/host.h"
#include "ir/binding.h"
#include "onnxmem/plan.h"

struct om_plan_cache {
	om_host *host;
	const om_prog *prog;
	const char *pipeline;
	const om_plan_request *request;
	om_arena *mem;
	om_map planned;          /* om_prog *, by the text of the binding */
	om_prog **all;           /* the same, in order of creation */
	size_t n, cap;
};

om_plan_cache *
om_plan_cache_new_for(om_host *h, const om_prog *p, const char *pipeline, const om_plan_request *r)
{
	om_arena *mem = om_arena_new();
	om_plan_cache *c = mem ? OM_NEW(mem, om_plan_cache) : NULL;

	if (!c) {
		om_arena_free(mem);
		return NULL;
	}
	*c = (om_plan_cache){.host = h, .prog = p, .mem = mem, .planned = om_map_new(mem), .request = om_plan_request_copy(r, mem),
		.pipeline = om_strdup(mem, pipeline ? pipeline : om_request_pipeline(r))};
	return c;
}

om_plan_cache *
om_plan_cache_new(om_host *h, const om_prog *p, const char *pipeline)
{
	return om_plan_cache_new_for(h, p, pipeline, h->request);
}

void
om_plan_cache_free(om_plan_cache *c)
{
	for (size_t k = 0; c && k < c->n; k++)
		om_prog_free(c->all[k]);
	if (c)
		om_arena_free(c->mem);
}

om_status
om_host_plan_for(om_host *h, om_prog *p, const char *pipeline, const om_plan_request *r)
{
	OM_TRY(om_host_run_for(h, p, pipeline, r));
	if (!(p->has & OM_HAS_PLAN))
		return om_fail(h->session, OM_USAGE, "the passes %s make no plan", pipeline);
	return om_plan_verify(h->session, p, p->plan);
}

static om_status
store(om_plan_cache *c, const char *key, om_prog *p)
{
	OM_PUSH(c->mem, c->all, c->n, c->cap, p);
	om_map_set(&c->planned, om_strdup(c->mem, key), p);
	return OM_OK;
}

static om_status
keep_guarded(om_plan_cache *c, const char *key, om_prog *p)
{
	OM_GUARDED(c->host->session, store(c, key, p));
}

static om_status
make(om_plan_cache *c, const om_binding *b, const char *key, om_prog **out)
{
	om_status st = om_prog_bind(c->host->session, c->prog, b, out);

	if (st == OM_OK)
		st = om_host_plan_for(c->host, *out, c->pipeline, c->request);
	if (st == OM_OK)
		st = keep_guarded(c, key, *out);
	if (st == OM_OK)
		return st;
	om_prog_free(*out);
	*out = NULL;
	return st;
}

om_status
om_plan_cache_get(om_plan_cache *c, const om_binding *b, const om_prog **out)
{
	om_arena *tmp = om_arena_new();
	const char *key;
	om_prog *p = NULL;

	om_status st = tmp ? om_binding_text(c->host->session, c->prog, b, tmp, &key) : OM_MEMORY;
	if (st == OM_OK)
		p = om_map_get(&c->planned, key);
	if (st == OM_OK && !p)
		st = make(c, b, key, &p);
	om_arena_free(tmp);
	*out = p;
	return st;
}
