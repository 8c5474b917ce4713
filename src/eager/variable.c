/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: tensors with reference counts. */
#include <config.h>

#include <stdlib.h>

#include "base/fast_hash.h"
#include "base/strided_copy.h"
#include "eager/eager_internal.h"

uint64_t
om_form_hash(const om_tensor *t)
{
	uint64_t h = om_fast_hash_number((uint64_t)t->type + 1, (uint64_t)t->shape.rank);

	for (int d = 0; d < t->shape.rank; d++)
		h = om_fast_hash_number(h, (uint64_t)t->shape.dim[d]);
	return h;
}

bool
om_form_equal(const om_tensor *a, const om_tensor *b)
{
	return a->type == b->type && a->shape.rank == b->shape.rank
	    && (a->shape.rank <= 0 || memcmp(a->shape.dim, b->shape.dim, (size_t)a->shape.rank * sizeof *a->shape.dim) == 0);
}

om_variable *
om_variable_make(om_eager *e, const om_tensor *form, uint64_t hash)
{
	om_variable *v = om_memory_zeroed(sizeof *v);

	if (!v)
		return NULL;
	v->e = e;
	v->t.type = form->type;
	v->t.shape.rank = form->shape.rank;
	for (int d = 0; d < form->shape.rank; d++)
		v->t.shape.dim[d] = form->shape.dim[d];
	v->form = hash;
	v->id = ++e->ids;
	v->users = 1;
	v->state = OM_DEFERRED;
	v->next = e->variables;
	if (v->next)
		v->next->prev = v;
	e->variables = v;
	e->stats.variables++;
	return v;
}

static void
unlink_variable(om_variable *v)
{
	*(v->prev ? &v->prev->next : &v->e->variables) = v->next;
	if (v->next)
		v->next->prev = v->prev;
	v->e->stats.variables--;
}

void
om_variable_settle(om_variable *v)
{
	struct sequences *q = &v->e->seq;

	if (v->users || v->holds || v->pins)
		return;
	om_record_unlist(v);
	om_record_leave(v);
	if (v->sequence == q->serial && v->place < q->nmade)
		q->made[v->place] = NULL;
	om_store_drop(v->e->memory, v->store);
	unlink_variable(v);
	free(v);
}

void
om_variable_pin(om_variable *v)
{
	v->pins++;
	om_record_unlist(v);
}

void
om_variable_unpin(om_variable *v)
{
	v->pins--;
	om_record_consider(v);
	om_variable_settle(v);
}

om_variable *
om_variable_keep(om_variable *v)
{
	v->users++;
	om_record_unlist(v);
	return v;
}

void
om_variable_free(om_variable *v)
{
	if (!v)
		return;
	v->users--;
	if (v->users == 0 && v->holds)
		om_record_consider(v);
	else
		om_variable_settle(v);
}

const om_tensor *
om_variable_form(const om_variable *v)
{
	return &v->t;
}

/* ---- Elements of callers. ---- */

om_status
om_variable_check(om_eager *e, const om_tensor *t, uint64_t *bytes)
{
	if (t->type == OM_STRING || om_dtype_bits(t->type) == 0)
		return om_fail(e->session, OM_UNSUPPORTED, "a variable cannot have elements of type %s", om_dtype_text(t->type));
	if (!om_tensor_bytes(t->type, &t->shape, bytes) || (*bytes && !t->data))
		return om_fail(e->session, OM_USAGE, "a variable needs a known shape and elements");
	return OM_OK;
}

om_status
om_variable_of_store(om_eager *e, const om_tensor *form, struct store *store, uint64_t bytes, om_variable **out)
{
	om_variable *v = store ? om_variable_make(e, form, om_form_hash(form)) : NULL;

	if (!v)
		return om_fail(e->session, OM_MEMORY, "no memory for a variable of %llu bytes", (unsigned long long)bytes);
	v->store = store;
	v->t.data = store->data;
	v->state = OM_READY;
	*out = v;
	return OM_OK;
}

om_status
om_variable_new_here(om_eager *e, const om_tensor *t, om_variable **out)
{
	uint64_t bytes;

	*out = NULL;
	OM_TRY(om_variable_check(e, t, &bytes));
	struct store *store = om_store_take(e->memory, bytes);
	const om_status st = om_variable_of_store(e, t, store, bytes, out);
	if (st == OM_OK)
		om_elements_copy(store->data, t, bytes);
	else
		om_store_drop(e->memory, store);
	return st;
}

struct new_variable {
	om_eager *e;
	const om_tensor *t;
	om_variable *v;
};

static om_status
variable_new(void *arg)
{
	struct new_variable *n = arg;

	return om_variable_new_here(n->e, n->t, &n->v);
}

om_status
om_variable_new(om_eager *e, const om_tensor *t, om_variable **out)
{
	struct new_variable n = {e, t, NULL};
	const om_status st = om_eager_guarded(e, variable_new, &n);

	*out = n.v;
	return st;
}

static om_status
end_sequence(void *arg)
{
	return om_sequence_end(arg);
}

static om_status
restore(void *arg)
{
	return om_record_restore(arg);
}

om_status
om_variable_read(om_variable *v, const om_tensor **out)
{
	om_eager *e = v->e;
	om_status st = OM_OK;

	*out = NULL;
	if (v->sequence == e->seq.serial && v->place < OM_PLACE_NONE)
		st = om_eager_guarded(e, end_sequence, e);
	if (v->state == OM_DROPPED)
		st = om_eager_guarded(e, restore, v);
	if (v->state == OM_READY) {
		*out = &v->t;
		return OM_OK;
	}
	return st != OM_OK ? st : om_fail(e->session, OM_RUN, "the variable was not computed, because a call before it failed");
}
