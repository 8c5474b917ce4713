/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a dynamic graph. */
#include <config.h>

#include <stdlib.h>

#include "base/options.h"
#include "eager/eager_internal.h"

enum { OLDEST_OPSET = 16, OPSET = 21, NEWEST_OPSET = 28, PROGRAMS = 64 };

/* ---- Running out of memory: what ends in the middle of a change can only be freed. ---- */

struct entry {
	om_eager *e;
	om_status (*run)(void *arg);
	void *arg;
};

static om_status
enter(void *arg)
{
	struct entry *n = arg;
	const om_status st = n->run(n->arg);

	n->e->is_entered = false;
	return st;
}

om_status
om_eager_guarded(om_eager *e, om_status (*run)(void *arg), void *arg)
{
	struct entry n = {e, run, arg};

	if (e->is_entered)
		return om_fail(e->session, OM_USAGE, "the context is in use, or ran out of memory in an earlier call and can only be freed");
	e->is_entered = true;
	return om_guarded(e->session, enter, &n);
}

/* Where memory ran out, they go with the context. */
om_status
om_eager_results(om_eager *e, om_status (*run)(void *arg), void *arg, om_variable **out, size_t n)
{
	const om_status st = om_eager_guarded(e, run, arg);

	if (st != OM_OK && !e->is_entered)
		om_variables_free(out, n);
	else if (st != OM_OK)
		memset(out, 0, n * sizeof *out);
	return st;
}

/* ---- Construction. ---- */

static om_status
read_options(om_session *s, om_eager_options *to, const om_eager_options *o)
{
	*to = (om_eager_options)OM_EAGER_OPTIONS();
	if (o)
		OM_TRY(om_options_read(s, "om_eager_options", "OM_EAGER_OPTIONS()", to, sizeof *to, sizeof *to, o));
	if (!to->opset)
		to->opset = OPSET;
	if (to->opset < OLDEST_OPSET || to->opset > NEWEST_OPSET)
		return om_fail(s, OM_USAGE, "calls need an opset from %d to %d, not %d", OLDEST_OPSET, NEWEST_OPSET, to->opset);
	if (!to->threads)
		to->threads = 1;
	if (!to->programs)
		to->programs = PROGRAMS;
	return om_threads(s, to->threads, &to->threads);
}

struct construction {
	om_session *s;
	const om_eager_options *o;
	om_eager *e;
};

static om_status
construct(void *arg)
{
	struct construction *n = arg;
	om_eager_options options;

	OM_TRY(read_options(n->s, &options, n->o));
	if (!om_isa(n->s))
		return OM_USAGE;
	om_arena *mem = om_arena_new();
	om_eager *e = OM_NEW(mem, om_eager);
	*e = (om_eager){.session = n->s, .options = options, .mem = mem, .call = om_arena_new()};
	e->results = OM_NEWN(mem, struct result *, OM_EAGER_RESULTS);
	e->kinds = OM_NEWN(mem, struct kind *, 4 * OM_EAGER_NODES);
	OM_TRY(om_sequences_new(e));
	e->memory = om_memory_pool_new(options.max_memory);  /* no arena has it: nothing may fail after it */
	if (!e->memory) {
		om_arena_free(e->call);
		om_arena_free(mem);
		return om_fail(n->s, OM_MEMORY, "no memory for a context");
	}
	if (options.threads > 1)
		e->pool = om_workers_new(options.threads);
	n->e = e;
	return OM_OK;
}

om_status
om_eager_new(om_session *s, const om_eager_options *o, om_eager **out)
{
	struct construction n = {s, o, NULL};
	const om_status st = om_guarded(s, construct, &n);

	*out = st == OM_OK ? n.e : NULL;
	return st;
}

static void
free_variables(om_eager *e)
{
	for (om_variable *v = e->variables, *next; v; v = next) {
		next = v->next;
		om_store_drop(e->memory, v->store);
		free(v);
	}
}

/* Records go with their variables, whatever refers to what. */
static void
free_records(om_eager *e)
{
	for (om_variable *v = e->variables; v; v = v->next) {
		struct record *r = v->record;
		if (!r || --r->refs)
			continue;
		om_kind_drop(r->kind);
		free(r);
	}
}

void
om_eager_free(om_eager *e)
{
	if (!e)
		return;
	e->running = NULL;  /* a step that memory ran out in left it */
	om_results_forget(e);
	om_gradients_forget(e);
	om_programs_forget(e);
	om_sequences_free(e);
	free_records(e);
	om_kinds_forget(e);
	free_variables(e);
	free(e->restored);
	om_store_drop(e->memory, e->scratch);
	om_memory_pool_trim(e->memory);
	om_memory_pool_leave(e->memory);
	om_workers_free(e->pool);
	om_host_free(e->host);
	om_arena_free(e->call);
	om_arena_free(e->mem);
}

/* ---- Upkeep. ---- */

static om_status
finish(void *arg)
{
	return om_sequence_end(arg);
}

om_status
om_eager_finish(om_eager *e)
{
	return om_eager_guarded(e, finish, e);
}

om_status
om_eager_forget(om_eager *e)
{
	const om_status st = om_sequence_end(e);

	om_gradients_forget(e);
	om_programs_forget(e);
	om_sequence_forget(e);
	om_kinds_forget(e);
	return st;
}

static om_status
trim(void *arg)
{
	om_eager *e = arg;
	const om_status st = om_eager_forget(e);

	om_results_forget(e);
	om_store_drop(e->memory, e->scratch);
	e->scratch = NULL;
	om_memory_pool_trim(e->memory);
	return st;
}

om_status
om_eager_trim(om_eager *e)
{
	return om_eager_guarded(e, trim, e);
}

const om_eager_stats *
om_eager_get_stats(om_eager *e)
{
	e->stats.pool_bytes = e->memory->held;
	e->stats.used_bytes = e->memory->used;
	e->stats.peak_bytes = e->memory->peak;
	e->stats.kernels = e->nkind;
	return &e->stats;
}
