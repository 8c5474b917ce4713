/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the inputs and results of a training step.
 *
 * Users of a step find the learning rate, the label and the states by name, so these names do not
 * depend on the other names in the model: an internal value with such a name is renamed.  Inputs,
 * results and trained weights are referred to by name from outside: they are not renamed, and a step
 * that requires one of their names is refused.  Names are assigned last, when the inputs and results
 * are known.  Values of a graph that has to stay unchanged are not renamed: there the step's value
 * keeps the numbered name that it was built with. */
#include <config.h>

#include "grad/train/training_step.h"
#include "ir/edit.h"

struct wish {
	om_value *v;
	const char *name;
	struct wish *next;
};

void
om_step_wish(struct learn *l, om_value *v, const char *name)
{
	struct wish *w = OM_NEW(l->tape.mem, struct wish);

	*w = (struct wish){v, om_strdup(l->tape.mem, name), NULL};
	*(l->last_wish ? &l->last_wish->next : &l->wishes) = w;
	l->last_wish = w;
}

static bool
is_in(om_value *const *list, uint32_t n, const om_value *v)
{
	for (uint32_t k = 0; k < n; k++)
		if (list[k] == v)
			return true;
	return false;
}

/* The kind of a value that is referred to by name from outside; NULL: an internal value. */
static const char *
kind_of(const struct learn *l, const om_value *v)
{
	const om_block *graph = l->p->first;

	if (is_in(l->wrt, l->nwrt, v))
		return "a weight";
	if (is_in(graph->param, graph->nparam, v))
		return "an input";
	return is_in(graph->result, graph->nresult, v) ? "an output" : NULL;
}

static om_status
settle(struct learn *l, om_value *v, const char *name)
{
	om_prog *p = l->p;

	if (strcmp(v->name, name) == 0)
		return OM_OK;
	for (uint32_t k = 0; k < p->nvalue; k++) {
		om_value *other = p->values[k];
		if (other == v || strcmp(other->name, name) != 0)
			continue;
		const char *kind = kind_of(l, other);
		if (l->how->copies && k < l->known)
			return OM_OK;
		if (kind)
			return om_fail(l->session, OM_USAGE, "the step requires the name %s, which %s already has",
				name, kind);
	}
	const char *free = v->name;
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->values[k] != v && strcmp(p->values[k]->name, name) == 0) {
			om_value_rename(p->values[k], free ? free : om_tape_name(&l->tape, name));
			free = NULL;
		}
	om_value_rename(v, name);
	return OM_OK;
}

/* A new value is named after the state that it updates; the state is named first. */
om_status
om_step_settle(struct learn *l)
{
	for (const struct wish *w = l->wishes; w; w = w->next)
		OM_TRY(settle(l, w->v, w->name));
	for (const struct state *s = l->states; s; s = s->next_state)
		OM_TRY(settle(l, s->next, om_printf(l->tape.mem, "%s_next", s->old->name)));
	return OM_OK;
}
