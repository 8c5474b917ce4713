/* SPDX-License-Identifier: Apache-2.0 */
/* Checks live sets against runs: a variable that a run reads later, before it is written again, is live
 * here.  A backward pass over the trace gives that set at every op; the sets of the `live` pass, which
 * hold for all runs, have to contain it. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "flows.h"
#include "ir/liveness.h"

struct look {
	om_session *session;
	om_prog *p;
	om_value **value;         /* by variable; NULL: removed from the program */
	om_op **op;               /* by variable: the op that computes it */
	bool *live;               /* by variable */
	size_t nvar;
};

static void
find_values(struct look *w)
{
	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		om_value *v = w->p->values[k];
		if (v->name[0] == 'v' && strspn(v->name + 1, "0123456789") == strlen(v->name + 1)) {
			w->value[atoi(v->name + 1)] = v;
			w->op[atoi(v->name + 1)] = v->def;
		}
	}
}

static bool
is_in(const om_value *v, const om_value *const *set, size_t n)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t mid = (low + high) / 2;
		if (set[mid]->id == v->id)
			return true;
		if (set[mid]->id < v->id)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

static om_status
compare(const struct look *w, const om_op *op, bool behind)
{
	om_arena *mem = om_arena_new();
	const om_value **set;
	const size_t n = behind ? om_live_out(w->p, op, mem, &set) : om_live_in(w->p, op, mem, &set);
	om_status st = OM_OK;

	for (size_t k = 0; k < w->nvar && st == OM_OK; k++) {
		const om_value *v = w->value[k];
		if (w->live[k] && v && !v->is_const && !is_in(v, set, n))
			st = om_fail(w->session, OM_MISMATCH, "%%%s is not live %s %s of %%%s, but read later",
				v->name, behind ? "after" : "before", op->type, op->out[0]->name);
	}
	om_arena_free(mem);
	return st;
}

static void
set_live(struct look *w, const int *id, int n, bool live)
{
	for (int k = 0; k < n; k++)
		if (id[k] >= 0)
			w->live[id[k]] = live;
}

/* For an op with bodies, the event is its start; its end is another event. */
static om_status
look_back(struct look *w, const struct event *e)
{
	const om_op *op = e->op && e->op->nout ? w->op[e->op->out[0]] : NULL;
	const bool known = op && !op->is_folded;

	if (known && !op->nbody)
		OM_TRY(compare(w, op, true));
	set_live(w, e->written, e->nwritten, false);
	set_live(w, e->read, e->nread, true);
	return known ? compare(w, op, false) : OM_OK;
}

om_status
flow_check_live(om_session *s, om_prog *p, const struct flow *f, const struct number *in, om_arena *mem)
{
	struct look w = {.session = s, .p = p, .nvar = f->nvar};
	struct trace t = {0};

	flow_eval(f, in, &t, mem);
	w.value = OM_NEWN(mem, om_value *, f->nvar);
	w.op = OM_NEWN(mem, om_op *, f->nvar);
	w.live = OM_NEWN(mem, bool, f->nvar);
	find_values(&w);
	while (t.n-- > 0)
		OM_TRY(look_back(&w, &t.event[t.n]));
	return OM_OK;
}
