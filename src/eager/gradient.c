/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of recorded calls, by the rules of src/grad.
 *
 * The records that lead to the loss become a program, in the order of the calls.  The backward path that the rules build for
 * it is a list of ops, each of which is then called as any other: it may be deferred, replayed, recorded itself.  The list
 * is kept for the next time that equal calls lead to a loss, whatever control flow made them.
 *
 * Where a rule needs a forward result that was freed, the forward op is called again.  A backward path with bodies,
 * as that of a recurrent operator, is run as a whole program with its forward path.
 */
#include <config.h>

#include <stdlib.h>

#include "base/fast_hash.h"
#include "eager/eager_internal.h"
#include "opdef/op_context.h"

/* Where an input of a call, or a gradient, comes from: a kind of source, and its number. */
enum { LEAF, MADE, STEP, CONSTANT, SEED, VALUE, NONE };
#define SOURCE(of, number)  ((uint64_t)(of) << 56 | (uint64_t)(number))

static unsigned
source_kind(uint64_t source)
{
	return (unsigned)(source >> 56);
}

static uint32_t
source_number(uint64_t source)
{
	return (uint32_t)source;
}

struct step {
	const char *type;            /* with its domain */
	const om_attr *attrs;        /* ends with an entry without a name */
	uint64_t *in;
	uint32_t nin, nout;
	uint64_t outs;               /* those that are present */
	uint32_t first;              /* slot of its first output */
};

/* The backward path of equal calls. */
struct gradient {
	struct gradient *next;
	uint64_t *key;
	size_t nkey;
	struct kind **kinds;         /* of the key: held */
	uint32_t nkind;
	om_prog *prog;               /* owns what the steps refer to */
	struct step *step;
	uint32_t nstep, nslot;
	uint64_t *result;            /* [nwrt] sources; NONE: the loss does not depend on it */
	uint32_t *last_use;          /* [nslot] the step that reads it last */
	om_variable **constant;
	uint32_t nconstant;
	bool is_whole;               /* run as a program: */
	om_exec *exec;
};

/* One call of om_eager_gradient(). */
struct pass {
	om_eager *e;
	om_variable *loss, *seed;
	size_t nwrt;
	om_variable *const *wrt;
	om_variable **grad;
	om_arena *mem;
	struct record **record;      /* in the order of calls */
	uint32_t nrecord;
	om_variable **leaf;
	uint32_t nleaf;
	size_t cap_record, cap_leaf, cap_key;
	uint64_t *key;
	size_t nkey;
	struct gradient *g;
	/* while it is built: */
	om_value **leaf_value, **made_value;   /* by number */
	uint32_t *first;             /* by record: number of its first result */
	om_value *seed_value;
	om_value **grad_value;
	uint64_t *source;            /* by value */
	bool *is_needed;             /* by value */
};

/* ---- Records that lead to the loss. ---- */

static void
visit(struct pass *g, struct record *r)
{
	if (!r || r->index)
		return;
	r->index = 1;
	size_t n = g->nrecord;
	OM_PUSH(g->mem, g->record, n, g->cap_record, r);
	g->nrecord = (uint32_t)n;
}

static int
by_serial(const void *a, const void *b)
{
	const uint64_t x = (*(struct record *const *)a)->serial, y = (*(struct record *const *)b)->serial;

	return (x > y) - (x < y);
}

/* Results that only remembered calls hold could go while the gradient is computed. */
static void
hold_results(struct record *r)
{
	for (uint32_t k = 0; k < r->kind->nout; k++)
		if (r->out[k])
			r->out[k]->holds++;
}

static void
find_records(struct pass *g)
{
	visit(g, g->loss->record);
	for (uint32_t k = 0; k < g->nrecord; k++)
		for (uint32_t i = 0; i < g->record[k]->kind->nin; i++)
			if (g->record[k]->in[i])
				visit(g, g->record[k]->in[i]->record);
	if (g->nrecord)
		qsort(g->record, g->nrecord, sizeof *g->record, by_serial);
	g->first = OM_NEWN(g->mem, uint32_t, (size_t)g->nrecord + 1);
	for (uint32_t k = 0; k < g->nrecord; k++) {
		g->record[k]->index = k + 1;
		g->first[k + 1] = g->first[k] + g->record[k]->kind->nout;
		hold_results(g->record[k]);
	}
}

static void
leave_record(const struct pass *g, struct record *r)
{
	om_variable *v;

	r->index = 0;
	r->refs++;  /* it may end with the last of its results */
	for (uint32_t k = 0; k < r->kind->nout; k++)
		if ((v = r->out[k])) {
			v->holds--;
			om_record_consider(v);
			om_variable_settle(v);
		}
	om_record_end(g->e, r);
}

static void
leave_records(struct pass *g)
{
	for (uint32_t k = g->nrecord; k-- > 0;)
		leave_record(g, g->record[k]);
}

/* ---- The key. ---- */

static uint32_t
leaf_of(struct pass *g, om_variable *v)
{
	for (uint32_t k = g->nleaf; k-- > 0;)
		if (g->leaf[k] == v)
			return k;
	size_t n = g->nleaf;
	OM_PUSH(g->mem, g->leaf, n, g->cap_leaf, v);
	g->nleaf = (uint32_t)n;
	return g->nleaf - 1;
}

static uint64_t
source_of(struct pass *g, om_variable *v)
{
	if (v->record && v->record->index)
		return SOURCE(MADE, g->first[v->record->index - 1] + v->output);
	return SOURCE(LEAF, leaf_of(g, v));
}

static void
put(struct pass *g, uint64_t word)
{
	OM_PUSH(g->mem, g->key, g->nkey, g->cap_key, word);
}

static void
put_record(struct pass *g, const struct record *r)
{
	uint64_t held = 0;

	for (uint32_t k = 0; k < r->kind->nout; k++)
		held |= (uint64_t)(r->out[k] != NULL) << k;
	put(g, (uintptr_t)r->kind);
	put(g, held);
	for (uint32_t k = 0; k < r->kind->nin; k++)
		put(g, !r->in[k] ? SOURCE(NONE, 0) : om_is_value(r->kind->values, k) ? SOURCE(VALUE, k) : source_of(g, r->in[k]));
}

/* Forms of leaves are known from the kinds that read them. */
static void
make_key(struct pass *g)
{
	put(g, (uint64_t)g->nwrt << 1 | (g->seed != NULL));
	put(g, g->loss->form);
	for (uint32_t k = 0; k < g->nrecord; k++)
		put_record(g, g->record[k]);
	put(g, source_of(g, g->loss));
	for (size_t k = 0; k < g->nwrt; k++) {
		put(g, source_of(g, g->wrt[k]));
		put(g, g->wrt[k]->form);
	}
}

static struct gradient *
find_gradient(const struct pass *g)
{
	struct gradient *r = g->e->gradients;

	while (r && !(r->nkey == g->nkey && memcmp(r->key, g->key, g->nkey * sizeof *g->key) == 0))
		r = r->next;
	return r;
}

/* ---- The program. ---- */

static om_value *
value_of(const struct pass *g, om_prog *p, const struct record *r, uint32_t k)
{
	om_variable *v = r->in[k];

	if (!v)
		return NULL;
	if (om_is_value(r->kind->values, k))
		return om_eager_constant(p, &r->kind->in[k], "c");
	const uint64_t source = source_of((struct pass *)g, v);
	return source_kind(source) == LEAF ? g->leaf_value[source_number(source)] : g->made_value[source_number(source)];
}

/* Shapes that the op does not tell are those of the results. */
static void
set_form(om_value *v, const om_variable *of)
{
	if (!of || om_shape_is_known(&v->shape))
		return;
	v->type.elem = of->t.type;
	v->shape = om_shape_of(of->t.shape.rank, of->t.shape.dim);
}

static om_status
add_record(struct pass *g, om_prog *p, uint32_t number)
{
	const struct record *r = g->record[number];
	const struct kind *kind = r->kind;
	om_op *op = om_eager_op(p, kind->prog->name, kind->op->attr, kind->op->nattr, kind->nin, kind->nout);

	for (uint32_t k = 0; k < kind->nin; k++)
		om_op_set_in(op, k, value_of(g, p, r, k));
	for (uint32_t k = 0; k < kind->nout; k++)
		if (kind->op->out[k])
			om_op_set_out(op, k, g->made_value[g->first[number] + k] = om_value_fresh(p, p->first, "y"));
	om_op_append(p->first, op);
	OM_TRY(om_op_infer(g->e->session, p, op));
	for (uint32_t k = 0; k < kind->nout; k++)
		if (kind->op->out[k])
			set_form(op->out[k], r->out[k]);
	return OM_OK;
}

static om_value *
value_at(const struct pass *g, om_variable *v)
{
	const uint64_t source = source_of((struct pass *)g, v);

	return source_kind(source) == LEAF ? g->leaf_value[source_number(source)] : g->made_value[source_number(source)];
}

static om_status
add_backward(struct pass *g, om_prog *p)
{
	om_value **wrt = OM_NEWN(g->mem, om_value *, g->nwrt + 1);

	for (size_t k = 0; k < g->nwrt; k++)
		wrt[k] = value_at(g, g->wrt[k]);
	g->grad_value = OM_NEWN(g->mem, om_value *, g->nwrt + 1);
	p->has |= OM_HAS_INLINE | OM_HAS_SHAPES;
	const om_backward b = OM_BACKWARD(.loss = value_at(g, g->loss), .seed = g->seed_value, .wrt = wrt, .nwrt = (uint32_t)g->nwrt,
		.copies = true, .grad = g->grad_value);
	return om_prog_backward(g->e->session, p, &b);
}

static om_status
build(struct pass *g, om_prog *p)
{
	g->leaf_value = OM_NEWN(g->mem, om_value *, (size_t)g->nleaf + 1);
	for (uint32_t k = 0; k < g->nleaf; k++)
		g->leaf_value[k] = om_eager_param(p, &g->leaf[k]->t, "x");
	if (g->seed)
		g->seed_value = om_eager_param(p, &g->seed->t, "seed");
	g->made_value = OM_NEWN(g->mem, om_value *, (size_t)g->first[g->nrecord] + 1);
	for (uint32_t k = 0; k < g->nrecord; k++)
		OM_TRY(add_record(g, p, k));
	return add_backward(g, p);
}

/* ---- Its steps. ---- */

static bool
is_forward(const struct pass *g, const om_op *op)
{
	return op->id < g->nrecord;
}

static bool
is_held(const struct pass *g, const om_op *op, uint32_t k)
{
	return is_forward(g, op) && g->record[op->id]->out[k];
}

/* Is the op to be called: does it compute what is needed and not there? */
static bool
is_called(const struct pass *g, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && g->is_needed[op->out[k]->id] && !is_held(g, op, k))
			return true;
	return false;
}

static om_status
check_step(struct pass *g, const om_op *op)
{
	if (op->opdef && !(op->opdef->flags & (OM_RANDOM | OM_EFFECT)))
		return OM_OK;
	return om_op_fail(g->e->session, OM_UNSUPPORTED, op, "a gradient needs an output of this random operator that the call did not "
		"ask for, or that was freed");
}

static om_status
find_needed(struct pass *g, om_prog *p, uint32_t *nstep)
{
	*nstep = 0;
	g->is_needed = OM_NEWN(g->mem, bool, (size_t)p->nvalue + 1);
	for (size_t k = 0; k < g->nwrt; k++)
		if (g->grad_value[k])
			g->is_needed[g->grad_value[k]->id] = true;
	for (om_op *op = p->first->last; op; op = op->prev) {
		if (!is_called(g, op))
			continue;
		OM_TRY(check_step(g, op));
		++*nstep;
		g->g->is_whole |= op->nbody != 0;
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k])
				g->is_needed[op->in[k]->id] = true;
	}
	return OM_OK;
}

static om_status
source_of_value(struct pass *g, const om_value *v, uint64_t *out)
{
	struct gradient *r = g->g;

	if (g->source[v->id] == SOURCE(NONE, 0) && v->data) {
		g->source[v->id] = SOURCE(CONSTANT, r->nconstant);
		OM_TRY(om_variable_new_here(g->e, v->data, &r->constant[r->nconstant]));
		r->nconstant++;
	}
	*out = g->source[v->id];
	return OM_OK;
}

static void
set_sources(struct pass *g, const om_prog *p)
{
	g->source = OM_NEWN(g->mem, uint64_t, p->nvalue);
	for (uint32_t k = 0; k < p->nvalue; k++)
		g->source[k] = SOURCE(NONE, 0);
	for (uint32_t k = 0; k < g->nleaf; k++)
		g->source[g->leaf_value[k]->id] = SOURCE(LEAF, k);
	for (uint32_t k = 0; k < g->nrecord; k++)
		for (uint32_t i = 0; i < g->record[k]->kind->nout; i++)
			if (g->record[k]->out[i])
				g->source[g->made_value[g->first[k] + i]->id] = SOURCE(MADE, g->first[k] + i);
	if (g->seed_value)
		g->source[g->seed_value->id] = SOURCE(SEED, 0);
}

static om_status
add_step(struct pass *g, om_prog *p, const om_op *op)
{
	struct gradient *r = g->g;
	struct step *s = &r->step[r->nstep++];
	om_attr *attrs = OM_NEWN(p->mem, om_attr, (size_t)op->nattr + 1);

	if (op->nattr)
		memcpy(attrs, op->attr, op->nattr * sizeof *attrs);
	*s = (struct step){.attrs = attrs, .nin = op->nin, .nout = op->nout, .first = r->nslot};
	s->type = *op->domain ? om_printf(p->mem, "%s:%s", op->domain, op->type) : op->type;
	s->in = OM_NEWN(p->mem, uint64_t, (size_t)op->nin + 1);
	for (uint32_t k = 0; k < op->nin; k++) {
		s->in[k] = SOURCE(NONE, 0);
		if (op->in[k])
			OM_TRY(source_of_value(g, op->in[k], &s->in[k]));
	}
	for (uint32_t k = 0; k < op->nout; k++) {
		s->outs |= (uint64_t)(op->out[k] != NULL) << k;
		if (op->out[k] && !is_held(g, op, k))
			g->source[op->out[k]->id] = SOURCE(STEP, r->nslot + k);
	}
	r->nslot += op->nout;
	return OM_OK;
}

static void
find_last_uses(struct gradient *r)
{
	r->last_use = OM_NEWN(r->prog->mem, uint32_t, (size_t)r->nslot + 1);
	for (uint32_t k = 0; k < r->nstep; k++) {
		const struct step *s = &r->step[k];
		for (uint32_t i = 0; i < s->nout; i++)
			r->last_use[s->first + i] = k;
		for (uint32_t i = 0; i < s->nin; i++)
			if (source_kind(s->in[i]) == STEP)
				r->last_use[source_number(s->in[i])] = k;
	}
}

static om_status
add_steps(struct pass *g, om_prog *p, uint32_t nstep)
{
	struct gradient *r = g->g;

	set_sources(g, p);
	r->step = OM_NEWN(p->mem, struct step, (size_t)nstep + 1);
	r->constant = OM_NEWN(p->mem, om_variable *, (size_t)p->nvalue + 1);
	for (om_op *op = p->first->first; op; op = op->next)
		if (is_called(g, op))
			OM_TRY(add_step(g, p, op));
	r->result = OM_NEWN(p->mem, uint64_t, g->nwrt + 1);
	for (size_t k = 0; k < g->nwrt; k++) {
		r->result[k] = SOURCE(NONE, 0);
		if (g->grad_value[k])
			OM_TRY(source_of_value(g, g->grad_value[k], &r->result[k]));
	}
	find_last_uses(r);
	return OM_OK;
}

/* ---- As a whole: the forward and the backward path as one program. ---- */

static om_status
make_whole(struct pass *g, om_prog *p)
{
	for (uint32_t k = 0; k < g->nrecord; k++)
		if (!g->record[k]->kind->is_pure)
			return om_fail(g->e->session, OM_UNSUPPORTED, "a gradient with bodies computes %s again, which is random",
				g->record[k]->kind->prog->name);
	g->g->result = OM_NEWN(p->mem, uint64_t, g->nwrt + 1);
	for (size_t k = 0; k < g->nwrt; k++) {
		g->g->result[k] = g->grad_value[k] ? SOURCE(STEP, p->first->nresult) : SOURCE(NONE, 0);
		if (g->grad_value[k])
			om_block_add_result(p->first, g->grad_value[k]);
	}
	return om_eager_executor(g->e, p, 0, om_default_pipeline(), &g->g->exec);
}

static om_status
run_whole(struct pass *g)
{
	om_exec *exec = g->g->exec;

	for (uint32_t k = 0; k < g->nleaf; k++) {
		OM_TRY(om_record_restore(g->leaf[k]));
		OM_TRY(om_exec_input(exec, k, &g->leaf[k]->t));
	}
	if (g->seed) {
		OM_TRY(om_record_restore(g->seed));
		OM_TRY(om_exec_input(exec, g->nleaf, &g->seed->t));
	}
	OM_TRY(om_exec_run(exec));
	for (size_t k = 0; k < g->nwrt; k++) {
		if (source_kind(g->g->result[k]) == NONE)
			continue;
		OM_TRY(om_variable_new_here(g->e, om_exec_result(exec, source_number(g->g->result[k])), &g->grad[k]));
		g->grad[k]->is_cut = true;
	}
	return OM_OK;
}

/* ---- Running the steps. ---- */

/* Result number `n` of the records. */
static om_variable *
made(const struct pass *g, uint32_t n)
{
	uint32_t low = 0, high = g->nrecord;

	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;
		if (g->first[middle] <= n)
			low = middle;
		else
			high = middle;
	}
	return g->record[low]->out[n - g->first[low]];
}

static om_variable *
variable_of(const struct pass *g, om_variable *const *slot, uint64_t source)
{
	const uint32_t n = source_number(source);

	switch (source_kind(source)) {
	case LEAF: return g->leaf[n];
	case STEP: return slot[n];
	case CONSTANT: return g->g->constant[n];
	case SEED: return g->seed;
	case MADE: return made(g, n);
	default: return NULL;
	}
}

static bool
is_result(const struct gradient *r, size_t nwrt, uint32_t slot)
{
	for (size_t k = 0; k < nwrt; k++)
		if (r->result[k] == SOURCE(STEP, slot))
			return true;
	return false;
}

static void
free_used(const struct pass *g, om_variable **slot, uint32_t step, uint32_t n)
{
	if (slot[n] && g->g->last_use[n] == step && !is_result(g->g, g->nwrt, n)) {
		om_variable_free(slot[n]);
		slot[n] = NULL;
	}
}

static om_status
run_step(struct pass *g, om_variable **slot, om_variable **in, uint32_t number)
{
	const struct step *s = &g->g->step[number];
	const struct signature call = {s->type, s->attrs, s->nin, s->nout, in, s->outs};

	for (uint32_t k = 0; k < s->nin; k++)
		in[k] = variable_of(g, slot, s->in[k]);
	OM_TRY(om_call_dispatch(g->e, &call, slot + s->first));
	for (uint32_t k = 0; k < s->nin; k++)
		if (source_kind(s->in[k]) == STEP)
			free_used(g, slot, number, source_number(s->in[k]));
	for (uint32_t k = 0; k < s->nout; k++)
		free_used(g, slot, number, s->first + k);
	return OM_OK;
}

static om_status
run_steps(struct pass *g, om_variable **slot)
{
	uint32_t most = 0;

	for (uint32_t k = 0; k < g->g->nstep; k++)
		most = g->g->step[k].nin > most ? g->g->step[k].nin : most;
	om_variable **in = OM_NEWN(g->mem, om_variable *, (size_t)most + 1);
	for (uint32_t k = 0; k < g->g->nstep; k++)
		OM_TRY(run_step(g, slot, in, k));
	for (size_t k = 0; k < g->nwrt; k++) {
		om_variable *v = variable_of(g, slot, g->g->result[k]);
		g->grad[k] = v ? om_variable_keep(v) : NULL;
	}
	return OM_OK;
}

static om_status
run_gradient(struct pass *g)
{
	if (g->g->is_whole)
		return run_whole(g);
	om_variable **slot = OM_NEWN(g->mem, om_variable *, (size_t)g->g->nslot + 1);
	g->e->running = g->g;
	const om_status st = run_steps(g, slot);
	g->e->running = NULL;
	om_variables_free(slot, g->g->nslot);
	return st;
}

/* ---- Keeping it. ---- */

static void
free_program(struct gradient *r)
{
	om_variables_free(r->constant, r->nconstant);
	om_exec_free(r->exec);
	om_prog_free(r->prog);
}

static void
free_key(struct gradient *r)
{
	for (uint32_t k = 0; k < r->nkind; k++)
		om_kind_drop(r->kinds[k]);
	free(r->key);
	free(r->kinds);
	free(r);
}

static void
free_gradient(struct gradient *r)
{
	free_program(r);
	free_key(r);
}

void
om_gradients_forget(om_eager *e)
{
	struct gradient *kept = NULL;

	for (struct gradient *r; (r = e->gradients); ) {
		e->gradients = r->next;
		if (r == e->running)
			kept = r;
		else
			free_gradient(r);
	}
	if (kept)
		kept->next = NULL;
	e->gradients = kept;
	e->ngradient = kept != NULL;
}

static om_status
keep_key(struct pass *g)
{
	struct gradient *r = g->g;

	r->key = malloc(g->nkey * sizeof *r->key);
	r->kinds = malloc(((size_t)g->nrecord + 1) * sizeof(struct kind *));
	if (!r->key || !r->kinds)
		return om_fail(g->e->session, OM_MEMORY, "no memory for a gradient");
	memcpy(r->key, g->key, g->nkey * sizeof *r->key);
	r->nkey = g->nkey;
	for (; r->nkind < g->nrecord; r->nkind++) {
		r->kinds[r->nkind] = g->record[r->nkind]->kind;
		r->kinds[r->nkind]->refs++;
	}
	return OM_OK;
}

static om_status
fill(struct pass *g)
{
	uint32_t nstep;

	OM_TRY(build(g, g->g->prog));
	OM_TRY(find_needed(g, g->g->prog, &nstep));
	return g->g->is_whole ? make_whole(g, g->g->prog) : add_steps(g, g->g->prog, nstep);
}

/* Of a gradient that stays with the context, whatever becomes of the call that needs it first. */
static om_status
make_program(void *arg)
{
	struct pass *g = arg;

	g->g->prog = om_eager_prog(g->e, "gradient");
	const om_status st = fill(g);
	if (st != OM_OK)
		free_program(g->g);
	return st;
}

static om_status
make_gradient(struct pass *g)
{
	enum { MOST = 256 };

	if (g->e->ngradient == MOST)
		om_gradients_forget(g->e);
	g->g = om_memory_zeroed(sizeof *g->g);
	if (!g->g)
		return om_fail(g->e->session, OM_MEMORY, "no memory for a gradient");
	om_status st = keep_key(g);
	if (st == OM_OK)
		st = om_guarded_part(g->e->session, make_program, g);
	if (st != OM_OK) {
		free_key(g->g);
		return st;
	}
	g->g->next = g->e->gradients;
	g->e->gradients = g->g;
	g->e->ngradient++;
	return OM_OK;
}

/* ---- The public function. ---- */

static om_status
check_variable(const struct pass *g, const om_variable *v, const char *what)
{
	if (v->e != g->e)
		return om_fail(g->e->session, OM_USAGE, "%s is a variable of another context", what);
	if (v->state == OM_FAILED)
		return om_fail(g->e->session, OM_RUN, "%s was not computed, because a call before it failed", what);
	return OM_OK;
}

static om_status
check(const struct pass *g)
{
	OM_TRY(check_variable(g, g->loss, "the loss"));
	if (g->seed)
		OM_TRY(check_variable(g, g->seed, "the gradient of the loss"));
	if (g->seed && !om_form_equal(&g->seed->t, &g->loss->t))
		return om_fail(g->e->session, OM_SHAPE, "the gradient of the loss has another type or shape than the loss");
	for (size_t k = 0; k < g->nwrt; k++)
		OM_TRY(check_variable(g, g->wrt[k], "what a gradient is by"));
	return OM_OK;
}

static om_status
check_leaves(const struct pass *g)
{
	for (uint32_t k = 0; k < g->nleaf; k++)
		if (g->leaf[k]->is_cut)
			return om_fail(g->e->session, OM_UNSUPPORTED, "the loss follows from a program, or from a gradient of operators with "
				"bodies, which has no gradient itself");
	return OM_OK;
}

static om_status
gradient(struct pass *g)
{
	find_records(g);
	make_key(g);
	OM_TRY(check_leaves(g));
	g->g = find_gradient(g);
	if (!g->g)
		OM_TRY(make_gradient(g));
	if (g->g->is_whole)
		OM_TRY(om_sequence_end(g->e));
	return run_gradient(g);
}

static om_status
gradient_entry(void *arg)
{
	struct pass *g = arg;

	OM_TRY(check(g));
	g->mem = om_arena_new();
	const om_status st = gradient(g);
	leave_records(g);
	om_arena_free(g->mem);
	return st;
}

om_status
om_eager_gradient(om_eager *e, om_variable *loss, om_variable *seed, size_t n, om_variable *const *wrt, om_variable **grad)
{
	struct pass g = {.e = e, .loss = loss, .seed = seed, .nwrt = n, .wrt = wrt, .grad = grad};

	memset(grad, 0, n * sizeof *grad);
	return om_eager_results(e, gradient_entry, &g, grad, n);
}
