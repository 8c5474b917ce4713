/* SPDX-License-Identifier: Apache-2.0 */
/* Tiling as programs use it: the pass, and the plan of its result. */
#include <config.h>

#include <string.h>

#include "base/guard.h"
#include "base/options.h"
#include "host/host.h"
#include "ir/facts.h"
#include "ir/tiling.h"
#include "onnxmem/pass.h"
#include "onnxmem/plan.h"
#include "onnxmem/tiling.h"

static const char simplify[] = "inline,shapes,fold,prune";
static const char order[] = "prune,schedule=min-memory,liveness,views,alias-io=declared,inplace,loops,pack";

enum { QUICK_NODES = 20000 };

struct tile {
	om_host *host;
	om_session *session;
	om_prog *prog;
	om_tile_options options;
	om_arena *mem;
	const om_tiling *out;
};

/* The pipeline of the pass, with its options. */
static const char *
tiling_pipeline(const struct tile *w)
{
	const om_tile_options *o = &w->options;
	const char *text = om_printf(w->mem, "%s,tile=%s:budget=%llu:extra-flops=%llu",
		om_host_decided(w->host, w->prog, simplify), o->only_concat ? "concat" : "any", (unsigned long long)o->budget,
		(unsigned long long)o->extra_flops);

	return o->nodes ? om_printf(w->mem, "%s:nodes=%llu", text, (unsigned long long)o->nodes) : text;
}

/* Ways to plan thousands of ops are compared by quick searches.  The program keeps the request. */
static om_status
run(const struct tile *w, const char *pipeline)
{
	om_plan_request quick = *w->host->request;

	if (!quick.search_nodes)
		quick.search_nodes = QUICK_NODES;
	return om_host_run_for(w->host, w->prog, pipeline, om_memdup(w->prog->mem, &quick, sizeof quick));
}

static om_status
tile(struct tile *w)
{
	OM_TRY(run(w, tiling_pipeline(w)));
	OM_TRY(run(w, order));
	w->out = om_tiling_copy(w->mem, w->prog->tiling);
	return om_plan_verify(w->session, w->prog, w->prog->plan);
}

static om_status
tile_guarded(struct tile *w)
{
	OM_GUARDED(w->session, tile(w));
}

om_status
om_host_tile(om_host *h, om_prog *p, const om_tile_options *o, om_arena *mem, const om_tiling **out)
{
	om_session *s = om_host_session(h);
	struct tile w = {.host = h, .session = s, .prog = p, .mem = mem};

	*out = NULL;
	OM_TRY(om_options_read(s, "om_tile_options", "OM_TILE_OPTIONS()", &w.options, sizeof w.options, sizeof w.options, o));
	const om_status st = tile_guarded(&w);
	*out = st == OM_OK ? w.out : NULL;
	return st;
}
