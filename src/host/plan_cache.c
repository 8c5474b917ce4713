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

struct wanted {
	om_plan_cache *c;
	const om_binding *b;
	const char *key;
	om_prog *p;
};

/* It is in both lists, or in none: what is allocated comes before. */
static void
store(om_plan_cache *c, const char *key, om_prog *p)
{
	c->all = om_grow(c->mem, c->all, sizeof *c->all, c->n, &c->cap);
	om_map_set(&c->planned, om_strdup(c->mem, key), p);
	c->all[c->n++] = p;
}

static om_status
make(void *arg)
{
	struct wanted *w = arg;
	om_plan_cache *c = w->c;
	om_prog *p = NULL;
	om_status st = om_prog_bind(c->host->session, c->prog, w->b, &p);

	if (st == OM_OK)
		st = om_host_plan_for(c->host, p, c->pipeline, c->request);
	if (st == OM_OK)
		store(c, w->key, w->p = p);
	else
		om_prog_free(p);
	return st;
}

om_status
om_plan_cache_get(om_plan_cache *c, const om_binding *b, const om_prog **out)
{
	om_arena *tmp = om_arena_new();
	struct wanted w = {.c = c, .b = b};

	om_status st = tmp ? om_binding_text(c->host->session, c->prog, b, tmp, &w.key) : OM_MEMORY;
	if (st == OM_OK)
		w.p = om_map_get(&c->planned, w.key);
	if (st == OM_OK && !w.p)
		st = om_guarded_part(c->host->session, make, &w);
	om_arena_free(tmp);
	*out = st == OM_OK ? w.p : NULL;
	return st;
}
