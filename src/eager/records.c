/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded calls.
 *
 * There is no list of them: a result owns the record of its call, and a record owns the inputs.  So a record lives exactly as
 * long as a gradient may need it, and what the caller drops is freed without a word from it.
 *
 * Results that only records hold may be dropped and computed again.  Which one goes is decided by what it costs to make it
 * again, with those before it that are dropped, for each byte and for each call since its last use; see Kirisame et al.,
 * "Dynamic Tensor Rematerialization", 2021.
 */
#include <config.h>

#include <stdlib.h>

#include "base/shape.h"
#include "eager/eager_internal.h"
#include "opdef/op_context.h"

static bool
is_float(const om_variable *v)
{
	return om_dtype_is_float(v->t.type);
}

bool
om_record_follows(const om_eager *e, const struct kind *k, om_variable *const *in)
{
	if (!e->is_recording || k->op->opdef->flags & OM_SHAPE_ONLY)
		return false;
	for (uint32_t i = 0; i < k->nin; i++)
		if (in[i] && (in[i]->is_watched || in[i]->record) && is_float(in[i]))
			return true;
	return false;
}

om_status
om_record_call(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out)
{
	struct record *r = om_memory_zeroed(sizeof *r + ((size_t)k->nin + k->nout) * sizeof *r->in);

	if (!r)
		return om_fail(e->session, OM_MEMORY, "no memory to record a call of %s", k->prog->name);
	r->kind = k;
	k->refs++;
	r->serial = ++e->clock;
	r->out = r->in + k->nin;
	for (uint32_t i = 0; i < k->nin; i++)
		if ((r->in[i] = in[i]))
			in[i]->holds++;
	for (uint32_t i = 0; i < k->nout; i++)
		if (out[i]) {
			r->out[i] = out[i];
			r->refs++;
			out[i]->record = r;
			out[i]->output = i;
		}
	return OM_OK;
}

/* ---- The end of records. ---- */

static void
free_record(struct record *r)
{
	for (uint32_t k = 0; k < r->kind->nin; k++)
		if (r->in[k]) {
			r->in[k]->holds--;
			om_variable_settle(r->in[k]);
		}
	om_kind_drop(r->kind);
	free(r);
}

/* A chain of records may be long: the inputs of one are freed before the next one is, not inside of it. */
void
om_record_end(om_eager *e, struct record *r)
{
	if (--r->refs)
		return;
	r->next = e->ended;
	e->ended = r;
	if (e->is_ending)
		return;
	e->is_ending = true;
	while ((r = e->ended)) {
		e->ended = r->next;
		free_record(r);
	}
	e->is_ending = false;
}

void
om_record_leave(om_variable *v)
{
	struct record *r = v->record;

	v->record = NULL;
	if (!r)
		return;
	r->out[v->output] = NULL;
	om_record_end(v->e, r);
}

/* ---- Dropping results. ---- */

static bool
may_drop(const om_variable *v)
{
	return v->state == OM_READY && v->record && v->holds && !v->users && !v->pins && v->record->kind->is_pure && v->store
	    && v->store->refs == 1 && !v->store->is_external;
}

static void
unlist(om_variable *v)
{
	om_eager *e = v->e;

	*(v->older ? &v->older->newer : &e->droppable) = v->newer;
	if (v->newer)
		v->newer->older = v->older;
	v->older = v->newer = NULL;
	v->is_listed = false;
	e->droppable_bytes -= v->store->bytes;
}

void
om_record_unlist(om_variable *v)
{
	if (v->is_listed)
		unlist(v);
}

/* What it costs to make `v` again, with what it needs and is dropped; of a long chain, a part. */
static double
cost_of(const om_variable *v, int depth)
{
	const struct record *r = v->record;
	double cost = r->kind->cost;

	for (uint32_t k = 0; k < r->kind->nin && depth; k++)
		if (r->in[k] && r->in[k]->state == OM_DROPPED)
			cost += cost_of(r->in[k], depth - 1);
	return cost;
}

static double
score(const om_variable *v)
{
	enum { DEPTH = 8 };

	return cost_of(v, DEPTH) / (double)v->store->bytes / (double)(v->e->clock - v->used + 1);
}

static void
drop_one(om_eager *e)
{
	om_variable *best = e->droppable;

	for (om_variable *v = e->droppable; v; v = v->newer)
		if (score(v) < score(best))
			best = v;
	om_record_unlist(best);
	om_store_drop(e->memory, best->store);
	best->store = NULL;
	best->t.data = NULL;
	best->state = OM_DROPPED;
	e->stats.dropped++;
}

void
om_record_consider(om_variable *v)
{
	om_eager *e = v->e;

	if (!e->options.tape_bytes || v->is_listed || !may_drop(v))
		return;
	v->newer = e->droppable;
	if (v->newer)
		v->newer->older = v;
	e->droppable = v;
	v->is_listed = true;
	e->droppable_bytes += v->store->bytes;
	while (e->droppable_bytes > e->options.tape_bytes)
		drop_one(e);
}

/* ---- Computing them again. ---- */

/* The first input that is dropped; NULL: none. */
static om_variable *
first_dropped(const struct record *r)
{
	for (uint32_t k = 0; k < r->kind->nin; k++)
		if (r->in[k] && r->in[k]->state == OM_DROPPED)
			return r->in[k];
	return NULL;
}

static om_status
remember_restored(om_eager *e, om_variable *v)
{
	if (e->nrestored == e->cap_restored) {
		const size_t cap = 2 * e->cap_restored + 16;
		om_variable **more = realloc(e->restored, cap * sizeof *more);
		if (!more)
			return om_fail(e->session, OM_MEMORY, "no memory to compute dropped results again");
		e->restored = more;
		e->cap_restored = cap;
	}
	e->restored[e->nrestored++] = v;
	om_variable_pin(v);
	return OM_OK;
}

/* Outputs that were not dropped, or have no variable any more, are computed into temporary variables. */
static om_status
compute_again(om_eager *e, struct record *r)
{
	om_variable *out[OM_EAGER_OUTPUTS] = {NULL};
	om_status st = OM_OK;

	for (uint32_t k = 0; k < r->kind->nout && st == OM_OK; k++) {
		if (!r->kind->op->out[k])
			continue;
		out[k] = r->out[k] && r->out[k]->state == OM_DROPPED ? r->out[k] : om_variable_make(e, &r->kind->c.out[k], 0);
		if (!out[k])
			st = om_fail(e->session, OM_MEMORY, "no memory to compute a call of %s again", r->kind->prog->name);
	}
	if (st == OM_OK)
		st = om_call_compute(e, r->kind, r->in, out);
	for (uint32_t k = 0; k < r->kind->nout; k++)
		if (out[k] && out[k] != r->out[k])
			om_variable_free(out[k]);
		else if (out[k] && st == OM_OK)
			st = remember_restored(e, out[k]);
	e->stats.recomputed += st == OM_OK;
	return st;
}

/* Nothing is dropped while results are computed again, so that this ends. */
static void
release_restored(om_eager *e)
{
	while (e->nrestored)
		om_variable_unpin(e->restored[--e->nrestored]);
}

/* Those before `v` come first.  The chain is followed back from `v` for each result, not by recursion; each step ends with one
 * more result that is there. */
static om_status
restore(om_eager *e, om_variable *v)
{
	while (v->state == OM_DROPPED) {
		struct record *r = v->record;
		for (om_variable *before; (before = first_dropped(r)); )
			r = before->record;
		OM_TRY(compute_again(e, r));
	}
	return OM_OK;
}

om_status
om_record_restore(om_variable *v)
{
	v->pins++;
	const om_status st = restore(v->e, v);
	release_restored(v->e);
	v->pins--;
	return st;
}

void
om_variable_watch(om_variable *v)
{
	v->is_watched = true;
}

void
om_eager_record(om_eager *e, bool records)
{
	e->is_recording = records;
}
