/* SPDX-License-Identifier: Apache-2.0 */
/* Shrinking of a program that shows a fault.
 *
 * One variable after the other is replaced: by an operand of its op or an input of the program, if they
 * have its type and dims, or by a constant.  Then everything without users is removed, including unused
 * loop-carried values.  A change is kept if the program still shows the fault.  This terminates because
 * every change that is kept removes a variable from use. */
#include <config.h>

#include <string.h>

#include "flows.h"

/* ---- Copies. ---- */

static int *
copy_ints(om_arena *mem, const int *x, size_t n)
{
	int *y = OM_NEWN(mem, int, n + 1);

	if (n)
		memcpy(y, x, n * sizeof *y);
	return y;
}

/* Updates `home` of the variables to the copied blocks. */
static struct block *
copy_block(struct flow *f, const struct block *b, struct block *outer)
{
	struct block *c = OM_NEW(f->mem, struct block);

	*c = *b;
	c->outer = outer;
	c->first = c->last = NULL;
	c->param = copy_ints(f->mem, b->param, (size_t)b->nparam);
	c->result = copy_ints(f->mem, b->result, (size_t)b->nresult);
	for (const struct node *n = b->first; n; n = n->next) {
		struct node *m = OM_NEW(f->mem, struct node);
		*m = *n;
		m->next = NULL;
		m->in = copy_ints(f->mem, n->in, (size_t)n->nin);
		m->out = copy_ints(f->mem, n->out, (size_t)n->nout);
		m->arg = copy_ints(f->mem, n->arg, MAX_ARGS * 4);
		for (int k = 0; k < 2; k++)
			if (n->body[k])
				m->body[k] = copy_block(f, n->body[k], c);
		*(c->last ? &c->last->next : &c->first) = m;
		c->last = m;
	}
	for (size_t k = 0; k < f->nvar; k++)
		if (f->var[k].home == b)
			f->var[k].home = c;
	return c;
}

static struct flow *
copy(om_arena *mem, const struct flow *f)
{
	struct flow *c = OM_NEW(mem, struct flow);

	c->mem = mem;
	for (size_t k = 0; k < f->nvar; k++)
		OM_PUSH(mem, c->var, c->nvar, c->cap, f->var[k]);
	c->main = copy_block(c, f->main, NULL);
	return c;
}

/* ---- Uses. ---- */

static int
uses_in(const struct block *b, int id)
{
	int uses = 0;

	for (const struct node *n = b->first; n; n = n->next) {
		for (int k = 0; k < n->nin; k++)
			uses += n->in[k] == id;
		for (int k = 0; k < 2; k++)
			uses += n->body[k] ? uses_in(n->body[k], id) : 0;
	}
	for (int k = 0; k < b->nresult; k++)
		uses += b->result[k] == id;
	return uses;
}

static bool
is_used(const struct flow *f, int id)
{
	return uses_in(f->main, id) > 0;
}

static void
drop(int *list, int *n, int k)
{
	memmove(list + k, list + k + 1, (size_t)(--*n - k) * sizeof *list);
}

/* Remove output `k` of `n`, with its inputs and results, if it is unused and `which` has counted down
 * to it. */
static bool
drop_output(const struct flow *f, struct node *n, int k, int *which)
{
	struct block *b = n->body[0];
	const int lead = n->what == LOOP, nstate = n->what == IF ? 0 : n->nin - (lead ? 2 : n->nscan);
	const bool is_state = k < nstate;
	const int param = is_state ? b->param[k + (lead ? 2 : 0)] : -1;

	if (is_used(f, n->out[k]) || n->nout == 1)
		return false;
	if (is_state && uses_in(b, param) - (b->result[lead + k] == param) > 0)
		return false;
	if ((*which)-- != 0)
		return false;
	drop(n->out, &n->nout, k);
	for (int i = 0; i < 2 && n->body[i]; i++)
		drop(n->body[i]->result, &n->body[i]->nresult, lead + k);
	if (is_state) {
		drop(b->param, &b->nparam, k + (lead ? 2 : 0));
		drop(n->in, &n->nin, k + (lead ? 2 : 0));
	} else if (n->what == SCAN) {
		int *at = n->arg + 2 * (n->nscan + k - nstate);
		memmove(at, at + 2, (size_t)(n->narg - (at - n->arg) - 2) * sizeof *at);
		n->narg -= 2;
	}
	return true;
}

static bool
is_needed(const struct flow *f, const struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (is_used(f, n->out[k]))
			return true;
	return false;
}

/* Remove the `which`th unused op or output.  False: there are fewer. */
static bool
clean(const struct flow *f, struct block *b, int *which)
{
	struct node *before = NULL;

	for (struct node *n = b->first; n; before = n, n = n->next) {
		if (!is_needed(f, n) && (*which)-- == 0) {
			*(before ? &before->next : &b->first) = n->next;
			return true;
		}
		for (int k = n->nout - 1; k >= 0 && n->body[0]; k--)
			if (drop_output(f, n, k, which))
				return true;
		for (int k = 0; k < 2 && n->body[k]; k++)
			if (clean(f, n->body[k], which))
				return true;
	}
	return false;
}

static bool
clean_any(const struct flow *f)
{
	int which = 0;
	return clean(f, f->main, &which);
}

/* ---- Changes. ---- */

static void
replace_in(struct block *b, int id, int by)
{
	for (struct node *n = b->first; n; n = n->next) {
		for (int k = 0; k < n->nin; k++)
			n->in[k] = n->in[k] == id ? by : n->in[k];
		for (int k = 0; k < 2; k++)
			if (n->body[k])
				replace_in(n->body[k], id, by);
	}
	for (int k = 0; k < b->nresult; k++)
		b->result[k] = b->result[k] == id ? by : b->result[k];
}

/* Inserted before all other ops, so that it is visible everywhere. */
static int
new_constant(struct flow *f, int like)
{
	struct node *n = OM_NEW(f->mem, struct node);
	struct var v = f->var[like];
	const int64_t count = flow_count(&v.dims);

	v.home = f->main;
	OM_PUSH(f->mem, f->var, f->nvar, f->cap, v);
	n->what = CONST;
	n->nout = 1;
	n->in = OM_NEWN(f->mem, int, 1);
	n->out = OM_NEWN(f->mem, int, 1);
	n->arg = OM_NEWN(f->mem, int, MAX_ARGS * 4);
	n->data = OM_NEWN(f->mem, double, (size_t)count + 1);
	for (int64_t k = 0; k < count; k++)
		n->data[k] = v.type == BOOL ? 1 : (double)(k % 3);
	n->out[0] = (int)f->nvar - 1;
	n->next = f->main->first;
	f->main->first = n;
	return n->out[0];
}

static bool
is_like(const struct flow *f, int a, int b)
{
	const struct var *v = &f->var[a], *w = &f->var[b];
	bool like = a >= 0 && a != b && v->type == w->type && v->dims.rank == w->dims.rank;

	for (int k = 0; like && k < v->dims.rank; k++)
		like = v->dims.dim[k] == w->dims.dim[k] && v->dims.dim[k] >= 0;
	return like;
}

static const struct node *
producer(const struct block *b, int id)
{
	const struct node *found = NULL;

	for (const struct node *n = b->first; n && !found; n = n->next) {
		for (int k = 0; k < n->nout && !found; k++)
			found = n->out[k] == id ? n : NULL;
		for (int k = 0; k < 2 && !found && n->body[k]; k++)
			found = producer(n->body[k], id);
	}
	return found;
}

/* The `how`th replacement of `id`; -1: there are no more. */
static int
instead(struct flow *f, int id, int how)
{
	const struct node *n = producer(f->main, id);

	for (int k = 0; n && k < n->nin; k++)
		if (n->in[k] >= 0 && is_like(f, n->in[k], id) && how-- == 0)
			return n->in[k];
	for (int k = 0; k < f->main->nparam; k++)
		if (is_like(f, f->main->param[k], id) && how-- == 0)
			return f->main->param[k];
	for (int k = 0; k < f->var[id].dims.rank; k++)
		if (f->var[id].dims.dim[k] < 0)
			return -1;
	return how == 0 && !(n && n->what == CONST) ? new_constant(f, id) : -1;
}

static bool
is_input(const struct flow *f, int id)
{
	for (int k = 0; k < f->main->nparam; k++)
		if (f->main->param[k] == id)
			return true;
	return false;
}

/* The program after the change `c`, cleaned up; NULL: it does not show the fault.  If the fault depends
 * on an unused output, unused things are removed one by one. */
static struct flow *
left_of(om_arena *mem, struct flow *c, flow_has_fault *has_fault, void *arg)
{
	struct flow *small = copy(mem, c);

	while (clean_any(small))
		;
	if (has_fault(arg, small))
		return small;
	if (!has_fault(arg, c))
		return NULL;
	for (int which = 0;;) {
		int turn = which;
		small = copy(mem, c);
		if (!clean(small, small->main, &turn))
			return c;
		if (has_fault(arg, small))
			c = small;
		else
			which++;
	}
}

/* A smaller program without `id` that shows the fault; NULL: none was found. */
static struct flow *
without(om_arena *mem, const struct flow *f, int id, flow_has_fault *has_fault, void *arg)
{
	for (int how = 0;; how++) {
		struct flow *c = copy(mem, f);
		const int by = instead(c, id, how);
		if (by < 0)
			return NULL;
		replace_in(c->main, id, by);
		if ((c = left_of(mem, c, has_fault, arg)))
			return c;
	}
}

static struct flow *
fewer_results(om_arena *mem, struct flow *f, flow_has_fault *has_fault, void *arg)
{
	for (int k = f->main->nresult - 1; k >= 0 && f->main->nresult > 1; k--) {
		struct flow *c = copy(mem, f);
		drop(c->main->result, &c->main->nresult, k);
		if ((c = left_of(mem, c, has_fault, arg)))
			f = c;
	}
	return f;
}

struct flow *
flow_shrink(om_arena *mem, struct flow *f, flow_has_fault *has_fault, void *arg)
{
	bool again = true;

	f = fewer_results(mem, f, has_fault, arg);
	while (again) {
		again = false;
		for (int id = (int)f->nvar - 1; id >= 0; id--) {
			struct flow *c = is_used(f, id) && !is_input(f, id) ? without(mem, f, id, has_fault, arg) : NULL;
			again |= c != NULL;
			f = c ? c : f;
		}
	}
	return f;
}
