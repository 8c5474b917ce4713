/* SPDX-License-Identifier: Apache-2.0 */
/* Replays: the calls of a sequence as one planned program.
 *
 * Variables from outside are its inputs, live results its outputs, in the memory of their variables.  It is planned as it
 * is: passes that rewrite programs for the executor round differently, and a replay has to give the bits of its calls.
 *
 * The first plan keeps the order of the calls and is packed along the allocation graph of NNC, which takes little time.  A
 * program that was run often is planned again as `onnxmem plan` does it.
 */
#include <config.h>

#include <stdlib.h>

#include "eager/eager_internal.h"
#include "opdef/op_context.h"

enum { SEARCH_NODES = 20000, OFTEN = 64 };

static const char quick[] = "inline,shapes,fold,prune,schedule=original,liveness,views,inplace,loops,pack=nnc-code";

struct build {
	om_eager *e;
	struct call *at;
	struct replay *r;
	const struct call **path;    /* [at->depth] */
	om_value **made, **outside;  /* by place, by number */
	uint32_t noutside;
};

/* ---- The program. ---- */

static void
find_path(struct build *b, om_arena *mem)
{
	uint32_t n = b->at->depth;

	b->path = OM_NEWN(mem, const struct call *, n);
	for (const struct call *c = b->at; n; c = c->parent)
		b->path[--n] = c;
	for (uint32_t k = 0; k < b->at->depth; k++)
		for (uint32_t i = 0; i < b->path[k]->kind->nin; i++) {
			const uint32_t at = b->path[k]->place[i];
			if (at & OM_PLACE_OUTSIDE && (at ^ OM_PLACE_OUTSIDE) >= b->noutside)
				b->noutside = (at ^ OM_PLACE_OUTSIDE) + 1;
		}
	b->made = OM_NEWN(mem, om_value *, (size_t)b->at->first + b->at->kind->nout);
	b->outside = OM_NEWN(mem, om_value *, (size_t)b->noutside + 1);
}

static om_value *
input_of(struct build *b, om_prog *p, const struct call *c, uint32_t k)
{
	const uint32_t at = c->place[k];

	if (at == OM_PLACE_NONE)
		return NULL;
	if (at == OM_PLACE_VALUE)
		return om_eager_constant(p, &c->kind->in[k], "c");
	if (!(at & OM_PLACE_OUTSIDE))
		return b->made[at];
	om_value **v = &b->outside[at ^ OM_PLACE_OUTSIDE];
	if (!*v)  /* in the order of their numbers */
		*v = om_eager_param(p, &c->kind->in[k], "x");
	return *v;
}

static om_status
add_op(struct build *b, om_prog *p, const struct call *c)
{
	const struct kind *kind = c->kind;
	om_op *op = om_eager_op(p, kind->prog->name, kind->op->attr, kind->op->nattr, kind->nin, kind->nout);

	for (uint32_t k = 0; k < kind->nin; k++)
		om_op_set_in(op, k, input_of(b, p, c, k));
	for (uint32_t k = 0; k < kind->nout; k++)
		if (kind->op->out[k])
			om_op_set_out(op, k, b->made[c->first + k] = om_value_fresh(p, p->first, "y"));
	om_op_append(p->first, op);
	return om_op_infer(b->e->session, p, op);
}

static om_status
build(struct build *b, om_prog *p)
{
	find_path(b, p->mem);
	for (uint32_t k = 0; k < b->at->depth; k++)
		OM_TRY(add_op(b, p, b->path[k]));
	for (uint32_t k = 0; k < b->r->nlive; k++)
		om_block_add_result(p->first, b->made[b->r->live[k]]);
	return OM_OK;
}

/* ---- The plan and its executor. ---- */

static om_status
make_host(void *arg)
{
	om_eager *e = arg;

	e->host = om_host_new(e->session, "");
	return e->host ? OM_OK : om_fail(e->session, OM_MEMORY, "no memory to plan calls");
}

om_status
om_eager_executor(om_eager *e, om_prog *p, uint64_t search_nodes, const char *pipeline, om_exec **out)
{
	const om_plan_request request = OM_PLAN_REQUEST(.target = OM_TARGET_CPU, .threads = e->options.threads,
		.search_nodes = search_nodes);
	const om_exec_options options = OM_EXEC_OPTIONS(.threads = e->options.threads, .max_memory = e->options.max_memory);

	if (!e->host)
		OM_TRY(om_guarded_part(e->session, make_host, e));
	OM_TRY(om_host_request(e->host, &request));
	OM_TRY(om_host_run(e->host, p, pipeline));
	return om_exec_new(e->session, p, p->plan, &options, out);
}

static om_status
compile(void *arg)
{
	struct build *b = arg;
	om_prog *p = om_eager_prog(b->e, "replay");
	om_status st = build(b, p);

	if (st == OM_OK)
		st = om_eager_executor(b->e, p, SEARCH_NODES, b->r->runs < OFTEN ? quick : om_default_pipeline(), &b->r->exec);
	if (st == OM_OK)
		b->r->prog = p;
	else
		om_prog_free(p);
	return st;
}

om_status
om_replay_compile(om_eager *e, struct call *at, struct replay *r)
{
	struct build b = {.e = e, .at = at, .r = r};

	OM_TRY(om_guarded_part(e->session, compile, &b));
	r->used = e->stats.replays;
	e->stats.programs++;
	e->stats.arena_bytes += om_exec_get_stats(r->exec)->arena_bytes;
	return OM_OK;
}

void
om_replay_release(om_eager *e, struct replay *r)
{
	if (!r->exec)
		return;
	e->stats.programs--;
	e->stats.arena_bytes -= om_exec_get_stats(r->exec)->arena_bytes;
	om_exec_free(r->exec);
	om_prog_free(r->prog);
	r->exec = NULL;
	r->prog = NULL;
}

/* ---- Running. ---- */

static om_status
bind_output(om_eager *e, struct replay *r, uint32_t k)
{
	om_variable *v = e->seq.made[r->live[k]];
	uint64_t bytes;

	if (!om_tensor_bytes(v->t.type, &v->t.shape, &bytes) || !(v->store = om_store_take(e->memory, bytes)))
		return om_fail(e->session, OM_MEMORY, "no memory for a result of a sequence of calls");
	v->t.data = v->store->data;
	return om_exec_output(r->exec, k, v->t.data, v->store->bytes);
}

static om_status
bind_and_run(om_eager *e, struct replay *r)
{
	for (uint32_t k = 0; k < r->prog->first->nparam; k++)
		OM_TRY(om_exec_input(r->exec, k, &e->seq.outside[k]->t));
	for (uint32_t k = 0; k < r->nlive; k++)
		OM_TRY(bind_output(e, r, k));
	return om_exec_run(r->exec);
}

static void
take_back(om_eager *e, const struct replay *r)
{
	for (uint32_t k = 0; k < r->nlive; k++) {
		om_variable *v = e->seq.made[r->live[k]];
		om_store_drop(e->memory, v->store);
		v->store = NULL;
		v->t.data = NULL;
	}
}

/* If that fails, the program stays as it is. */
static void
improve(om_eager *e, struct call *at, struct replay *r)
{
	struct replay better = {.live = r->live, .nlive = r->nlive, .runs = r->runs};

	if (om_replay_compile(e, at, &better) != OM_OK)
		return;
	om_replay_release(e, r);
	r->exec = better.exec;
	r->prog = better.prog;
}

om_status
om_replay_run(om_eager *e, struct call *at, struct replay *r)
{
	if (++r->runs == OFTEN)
		improve(e, at, r);
	const om_status st = bind_and_run(e, r);

	if (st != OM_OK) {
		take_back(e, r);
		return st;
	}
	for (uint32_t k = 0; k < r->nlive; k++)
		e->seq.made[r->live[k]]->state = OM_READY;
	r->used = ++e->stats.replays;
	e->stats.replayed += at->depth;
	e->stats.last_arena_bytes = om_exec_get_stats(r->exec)->arena_bytes;
	return OM_OK;
}
