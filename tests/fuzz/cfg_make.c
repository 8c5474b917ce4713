/* SPDX-License-Identifier: Apache-2.0 */
/* The generator.
 *
 * A block may use everything that it and its enclosing blocks have computed so far; recent values are
 * preferred.  Every variable has a bound for the magnitude of its elements: values that could become
 * large are clipped, so that no iteration overflows.
 *
 * Loop-carried values form a chain, a swap or another permutation, or are a value of some iterations
 * ago, a loop-invariant value, a captured value or one that grows; a loop ends after a number of
 * iterations, known or unknown, by a condition, or by both. */
#include <config.h>

#include <string.h>

#include "base/rng.h"
#include "flows.h"

enum { MAX_DEPTH = 3, MAX_SEEN = 256, MAX_ELEMENTS = 512, MAX_STATES = 14 };

struct gen {
	struct flow *f;
	om_arena *mem;
	uint64_t state;
	struct block *b;          /* the block under construction */
	int depth;
	int seen[MAX_SEEN];       /* the variables that may be used */
	int nseen;
	int left;                 /* number of ops with bodies that may still be added */
};

static int
below(struct gen *g, int n)
{
	return (int)om_rng_below(&g->state, (uint64_t)n);
}

static bool
chance(struct gen *g, int one_of)
{
	return below(g, one_of) == 0;
}

static struct var *
var(const struct gen *g, int id)
{
	return &g->f->var[id];
}

static int
new_var(struct gen *g, enum type type, struct dims dims, double bound)
{
	struct flow *f = g->f;
	const struct var v = {type, dims, type == BOOL ? 1 : bound, false, g->b};

	OM_PUSH(f->mem, f->var, f->nvar, f->cap, v);
	return (int)f->nvar - 1;
}

static void
see(struct gen *g, int id)
{
	if (g->nseen < MAX_SEEN)
		g->seen[g->nseen++] = id;
}

static bool
same_dims(const struct dims *a, const struct dims *b)
{
	bool same = a->rank == b->rank;

	for (int k = 0; same && k < a->rank; k++)
		same = a->dim[k] == b->dim[k];
	return same;
}

static bool
is_known(const struct dims *d)
{
	for (int k = 0; k < d->rank; k++)
		if (d->dim[k] < 0)
			return false;
	return true;
}

/* ---- Random choice. ---- */

static bool
is_number(const struct var *v)
{
	return v->type != BOOL;
}

static bool
is_array(const struct var *v)
{
	return v->type != BOOL && v->dims.rank > 0 && is_known(&v->dims) && flow_count(&v->dims) > 0;
}

static bool
is_open(const struct var *v)
{
	return !is_known(&v->dims);
}

static bool
is_any(const struct var *v)
{
	(void)v;
	return true;
}

/* -1: there is none, or none was found at random. */
static int
pick(struct gen *g, bool (*fits)(const struct var *))
{
	for (int tries = 0; tries < 30; tries++) {
		const int a = below(g, g->nseen), b = below(g, g->nseen);
		const int id = g->seen[a > b ? a : b];
		if (fits(var(g, id)))
			return id;
	}
	return -1;
}

static int
pick_like(struct gen *g, int like, bool here)
{
	for (int tries = 0; tries < 30; tries++) {
		const int a = below(g, g->nseen), b = below(g, g->nseen);
		const int id = g->seen[a > b ? a : b];
		const struct var *v = var(g, id), *w = var(g, like);
		if (v->type == w->type && same_dims(&v->dims, &w->dims) && (!here || v->home == g->b))
			return id;
	}
	return -1;
}

/* ---- Ops. ---- */

static struct node *
new_node(struct gen *g, enum what what, int nin, int nout)
{
	struct node *n = OM_NEW(g->mem, struct node);

	n->what = what;
	n->nin = nin;
	n->nout = nout;
	n->in = OM_NEWN(g->mem, int, (size_t)nin + 1);
	n->out = OM_NEWN(g->mem, int, (size_t)nout + 1);
	n->arg = OM_NEWN(g->mem, int, MAX_ARGS * 4);
	return n;
}

/* Called after its inputs and bodies are complete. */
static void
append(struct gen *g, struct node *n)
{
	*(g->b->last ? &g->b->last->next : &g->b->first) = n;
	g->b->last = n;
}

static int
op1(struct gen *g, enum what what, int a, enum type type, struct dims dims, double bound)
{
	struct node *n = new_node(g, what, 1, 1);

	n->in[0] = a;
	n->out[0] = new_var(g, type, dims, bound);
	append(g, n);
	see(g, n->out[0]);
	return n->out[0];
}

static int *
args_of_last(struct gen *g, int narg)
{
	g->b->last->narg = narg;
	return g->b->last->arg;
}

static int
clip(struct gen *g, int a)
{
	const struct var v = *var(g, a);
	return op1(g, CLIP, a, v.type, v.dims, LIMIT);
}

/* Clip a value that may be large before it leaves a block or is multiplied. */
static int
small(struct gen *g, int a)
{
	return var(g, a)->bound > LIMIT ? clip(g, a) : a;
}

static int
op2(struct gen *g, enum what what, int a, int b)
{
	struct node *n = new_node(g, what, 2, 1);

	if (what == MUL) {
		a = small(g, a);
		b = small(g, b);
	}
	const struct var x = *var(g, a), y = *var(g, b);
	const double bound = what == MUL ? x.bound * y.bound : x.bound + y.bound;
	n->in[0] = a;
	n->in[1] = b;
	const bool first = x.dims.rank >= y.dims.rank;
	n->out[0] = new_var(g, what == LESS ? BOOL : x.type, first ? x.dims : y.dims, what == LESS ? 1 : bound);
	append(g, n);
	see(g, n->out[0]);
	return bound > 1e6 && what != LESS && what != AND ? clip(g, n->out[0]) : n->out[0];
}

static int
constant(struct gen *g, enum type type, struct dims dims, const double *data)
{
	struct node *n = new_node(g, CONST, 0, 1);
	const size_t count = (size_t)flow_count(&dims);

	n->data = OM_NEWN(g->mem, double, count + 1);
	for (size_t k = 0; k < count; k++)
		n->data[k] = data ? data[k] : type == BOOL ? below(g, 2) : below(g, 9) - 4;
	n->out[0] = new_var(g, type, dims, LIMIT);
	append(g, n);
	return n->out[0];
}

static int
scalar(struct gen *g, enum type type, double x)
{
	return constant(g, type, (struct dims){0}, &x);
}

static void
unary(struct gen *g)
{
	static const enum what what[] = {NEG, ABS, RELU, IDENTITY, CLIP, NEG};
	const int a = pick(g, chance(g, 6) ? is_open : is_number);

	if (a < 0 || var(g, a)->type == BOOL)
		return;
	const struct var v = *var(g, a);
	enum what w = what[below(g, 6)];
	if (w == RELU && v.type == I64)
		w = ABS;
	op1(g, w, a, v.type, v.dims, w == CLIP && v.bound > LIMIT ? LIMIT : v.bound);
}

static void
binary(struct gen *g)
{
	static const enum what what[] = {ADD, SUB, MUL, MAX, MIN, ADD};
	const int a = pick(g, is_number);

	if (a < 0 || is_open(var(g, a)))
		return;
	const int b = pick_like(g, a, false);
	op2(g, what[below(g, 6)], a, b < 0 ? a : b);
}

/* The smaller operand is broadcast: a row or a scalar, on either side. */
static void
broadcast(struct gen *g)
{
	const int a = pick(g, is_array);
	struct dims d = {0};

	if (a < 0)
		return;
	const struct var v = *var(g, a);
	if (chance(g, 2))
		d = (struct dims){1, {v.dims.dim[v.dims.rank - 1]}};
	const int c = constant(g, v.type, d, NULL);
	if (chance(g, 2))
		op2(g, chance(g, 2) ? ADD : MUL, a, c);
	else
		op2(g, chance(g, 2) ? SUB : MAX, c, a);
}

static void
choose(struct gen *g)
{
	const int a = pick(g, is_array);

	if (a < 0)
		return;
	const int j = pick_like(g, a, false), b = j < 0 ? a : j, c = op2(g, LESS, a, b);
	const struct var v = *var(g, a);
	struct node *n = new_node(g, WHERE, 3, 1);
	n->in[0] = c;
	n->in[1] = b;
	n->in[2] = a;
	n->out[0] = new_var(g, v.type, v.dims, v.bound + var(g, b)->bound);
	append(g, n);
	see(g, n->out[0]);
}

static void
convert(struct gen *g)
{
	const int a = pick(g, is_any);

	if (a < 0)
		return;
	const struct var v = *var(g, a);
	const enum type to = chance(g, 2) ? F32 : chance(g, 2) ? I64 : F64;
	op1(g, CAST, a, to, v.dims, v.bound);
	args_of_last(g, 1)[0] = (int)to;
}

/* ---- Data movement. ---- */

static void
transpose(struct gen *g)
{
	const int a = pick(g, is_array);

	if (a < 0)
		return;
	const struct var v = *var(g, a);
	struct dims d = v.dims;
	for (int k = 0; k < d.rank; k++)
		d.dim[k] = v.dims.dim[d.rank - 1 - k];
	op1(g, TRANSPOSE, a, v.type, d, v.bound);
	int *perm = args_of_last(g, d.rank);
	for (int k = 0; k < d.rank; k++)
		perm[k] = d.rank - 1 - k;
}

static void
reshape_to(struct gen *g, int a, struct dims d)
{
	const struct var v = *var(g, a);

	op1(g, RESHAPE, a, v.type, d, v.bound);
	int *to = args_of_last(g, d.rank);
	memcpy(to, d.dim, (size_t)d.rank * sizeof *to);
}

static void
reshape(struct gen *g)
{
	const int a = pick(g, is_array);

	if (a < 0)
		return;
	const struct var v = *var(g, a);
	const int n = (int)flow_count(&v.dims);
	struct dims d = {1, {n}};
	if (n % 4 == 0 && chance(g, 2))
		d = (struct dims){2, {4, n / 4}};
	else if (n % 6 == 0 && chance(g, 2))
		d = (struct dims){3, {2, 3, n / 6}};
	reshape_to(g, a, d);
}

static int
join(struct gen *g, int a, int b, int axis)
{
	const struct var v = *var(g, a), w = *var(g, b);
	struct node *n = new_node(g, CONCAT, 2, 1);
	struct dims d = v.dims;

	d.dim[axis] = d.dim[axis] < 0 || w.dims.dim[axis] < 0 ? -1 : d.dim[axis] + w.dims.dim[axis];
	n->in[0] = a;
	n->in[1] = b;
	n->narg = 1;
	n->arg[0] = axis;
	n->out[0] = new_var(g, v.type, d, v.bound > w.bound ? v.bound : w.bound);
	append(g, n);
	see(g, n->out[0]);
	return n->out[0];
}

static void
concat(struct gen *g)
{
	const int a = pick(g, is_array);

	if (a < 0 || flow_count(&var(g, a)->dims) > MAX_ELEMENTS / 2)
		return;
	const int b = pick_like(g, a, false);
	join(g, a, b < 0 ? a : b, below(g, var(g, a)->dims.rank));
}

static int
cut(struct gen *g, int a, int axis, int from, int to)
{
	const struct var v = *var(g, a);
	struct dims d = v.dims;

	d.dim[axis] = to - from;
	const int y = op1(g, SLICE, a, v.type, d, v.bound);
	int *arg = args_of_last(g, 3);
	arg[0] = axis;
	arg[1] = from;
	arg[2] = to;
	return y;
}

static void
slice(struct gen *g)
{
	const int a = pick(g, is_array);

	if (a < 0)
		return;
	const int axis = below(g, var(g, a)->dims.rank), n = var(g, a)->dims.dim[axis], from = below(g, n);
	cut(g, a, axis, from, from + 1 + below(g, n - from));
}

/* Join a value that has grown to one of known size, and take the head: only a Reshape gives it known
 * dims before the run. */
static void
head(struct gen *g)
{
	const int a = pick(g, is_open);

	if (a < 0 || var(g, a)->type == BOOL || var(g, a)->dims.dim[0] >= 0)
		return;
	struct dims d = var(g, a)->dims;
	d.dim[0] = 2;
	if (!is_known(&d))
		return;
	const int c = constant(g, var(g, a)->type, d, NULL);
	const int b = join(g, a, c, 0);
	d.dim[0] = 1 + below(g, 2);
	const int nseen = g->nseen, top = cut(g, b, 0, 0, d.dim[0]);
	g->nseen = nseen;
	reshape_to(g, top, d);
}

static void
turn(struct gen *g)
{
	const int a = pick(g, is_array);

	if (a < 0)
		return;
	const struct var v = *var(g, a);
	op1(g, TURN, a, v.type, v.dims, v.bound);
	args_of_last(g, 1)[0] = below(g, v.dims.rank);
}

static int
reduce(struct gen *g, int a, int axis)
{
	const struct var v = *var(g, a);
	struct dims d = v.dims;

	if (axis < 0)
		d = (struct dims){0};
	else
		d.dim[axis] = 1;
	const int y = op1(g, REDUCE_MAX, a, v.type, d, v.bound);
	args_of_last(g, 1)[0] = axis;
	return y;
}

static void
reduce_some(struct gen *g)
{
	const int a = pick(g, is_array);

	if (a >= 0)
		reduce(g, a, below(g, var(g, a)->dims.rank + 1) - 1);
}

/* ---- Conditions. ---- */

static bool
is_truth(const struct var *v)
{
	return v->type == BOOL && v->dims.rank == 0;
}

static int
condition(struct gen *g)
{
	const int c = chance(g, 2) ? pick(g, is_truth) : -1, a = pick(g, is_array);

	if (c >= 0)
		return chance(g, 4) ? op1(g, NOT, c, BOOL, (struct dims){0}, 1) : c;
	if (a < 0)
		return scalar(g, BOOL, below(g, 2));
	const int m = reduce(g, a, -1);
	return op2(g, LESS, m, scalar(g, var(g, m)->type, below(g, 5) - 1));
}

/* ---- Blocks. ---- */

static void fill(struct gen *g, int n);

static struct block *
open_block(struct gen *g)
{
	struct block *b = OM_NEW(g->mem, struct block);

	b->outer = g->b;
	b->param = OM_NEWN(g->mem, int, MAX_ARGS + 2);
	b->result = OM_NEWN(g->mem, int, MAX_ARGS + MAX_RESULTS);
	g->b = b;
	g->depth++;
	return b;
}

static void
close_block(struct gen *g, int nseen)
{
	g->b = g->b->outer;
	g->depth--;
	g->nseen = nseen;
}

static int
param(struct gen *g, enum type type, struct dims dims)
{
	struct block *b = g->b;
	const int id = new_var(g, type, dims, LIMIT);

	var(g, id)->is_declared = is_known(&dims) && chance(g, 2);
	b->param[b->nparam++] = id;
	see(g, id);
	return id;
}

/* The magnitude of a result never exceeds LIMIT. */
static void
result(struct gen *g, int id)
{
	const int s = small(g, id);
	g->b->result[g->b->nresult++] = s;
}

/* ---- If. ---- */

/* The results of a branch: like `model`, or twice as long if `is_long`. */
static struct block *
branch(struct gen *g, const int *model, int n, const bool *is_long)
{
	const int nseen = g->nseen;
	struct block *b = open_block(g);

	if (!chance(g, 5))
		fill(g, below(g, 6));
	for (int k = 0; k < n; k++) {
		int id = pick_like(g, model[k], chance(g, 2));
		if (id < 0)
			id = model[k];
		if (k && chance(g, 8) && var(g, model[k])->type == var(g, model[0])->type
		    && same_dims(&var(g, model[k])->dims, &var(g, model[0])->dims) && !is_long[0])
			id = b->result[0];
		result(g, is_long[k] ? join(g, id, id, 0) : id);
	}
	close_block(g, nseen);
	return b;
}

static void
make_if(struct gen *g)
{
	const int n = 1 + below(g, 3), c = condition(g);
	struct node *op = new_node(g, IF, 1, n);
	bool is_long[2][3] = {{false}};
	int model[3] = {0};

	op->in[0] = c;
	for (int k = 0; k < n; k++) {
		const int a = pick(g, chance(g, 3) ? is_any : is_array);
		model[k] = a < 0 ? c : a;
		is_long[below(g, 2)][k] = is_array(var(g, model[k])) && chance(g, 6)
			&& flow_count(&var(g, model[k])->dims) < MAX_ELEMENTS / 2;
	}
	op->body[0] = branch(g, model, n, is_long[0]);
	op->body[1] = branch(g, model, n, is_long[1]);
	for (int k = 0; k < n; k++) {
		struct dims d = var(g, model[k])->dims;
		if (is_long[0][k] != is_long[1][k])
			d.dim[0] = -1;
		op->out[k] = new_var(g, var(g, model[k])->type, d, LIMIT);
		see(g, op->out[k]);
	}
	append(g, op);
}

/* ---- Loop-carried values. ---- */

struct states {
	int n;
	int initial[MAX_STATES], param[MAX_STATES];
	bool grows[MAX_STATES];
	int turn_by;              /* each state gets the value of the state at this distance; 0: no
	                             rotation */
	bool all_turn;
};

/* Often all of the same type and shape, so that they can be permuted. */
static void
initials(struct gen *g, struct states *s, bool may_grow)
{
	const bool many = g->depth == 0 && chance(g, 10), alike = many || chance(g, 2);

	s->n = many ? below(g, MAX_STATES) : below(g, 6);
	for (int k = 0; k < s->n; k++) {
		int a = k && alike ? pick_like(g, s->initial[0], false) : pick(g, chance(g, 4) ? is_any : is_array);
		if (a < 0)
			a = k ? s->initial[0] : pick(g, is_any);
		if (k && chance(g, 8))
			a = s->initial[k - 1];
		if (!is_known(&var(g, a)->dims))
			a = g->f->main->param[0];
		s->initial[k] = small(g, a);
		s->grows[k] = may_grow && is_array(var(g, a)) && chance(g, 10)
			&& flow_count(&var(g, a)->dims) <= 64;
	}
}

static void
params(struct gen *g, struct states *s)
{
	for (int k = 0; k < s->n; k++) {
		const struct var v = *var(g, s->initial[k]);
		struct dims d = v.dims;
		if (s->grows[k])
			d.dim[0] = -1;
		s->param[k] = param(g, v.type, d);
	}
}

/* The value of state `k` in the next iteration. */
static int
next_state(struct gen *g, const struct states *s, int k)
{
	const int p = s->param[k];

	if (s->grows[k])
		return join(g, p, s->initial[k], 0);
	for (int by = s->turn_by; by < s->turn_by + s->n; by++) {
		const int q = s->param[(k + by) % s->n];
		const bool fits = var(g, q)->type == var(g, p)->type && same_dims(&var(g, q)->dims, &var(g, p)->dims);
		if (s->turn_by && fits && (s->all_turn || !chance(g, 5)))
			return q;
	}
	const int a = pick_like(g, p, !chance(g, 4));
	return a < 0 || chance(g, 8) ? p : a;
}

static void
next_states(struct gen *g, struct states *s)
{
	s->all_turn = chance(g, 2);
	if (s->n > 1 && chance(g, 2))
		s->turn_by = chance(g, 2) ? 1 : 1 + below(g, s->n - 1);
	for (int k = 0; k < s->n; k++)
		result(g, next_state(g, s, k));
}

/* Values that are stacked, one slice per iteration. */
static int
series(struct gen *g)
{
	int n = 0;

	for (int want = below(g, 3); want > 0; want--) {
		const int a = pick(g, chance(g, 3) ? is_any : is_array);
		if (a < 0 || !is_known(&var(g, a)->dims) || var(g, a)->dims.rank + 1 > MAX_DIMS
		    || flow_count(&var(g, a)->dims) > MAX_ELEMENTS / 4)
			continue;
		result(g, a);
		n++;
	}
	return n;
}

static void
state_outputs(struct gen *g, const struct states *s, struct node *op)
{
	for (int k = 0; k < s->n; k++) {
		const struct var v = *var(g, s->param[k]);
		op->out[op->nout++] = new_var(g, v.type, v.dims, LIMIT);
		see(g, op->out[op->nout - 1]);
	}
}

static void
series_output(struct gen *g, struct node *op, int item, int axis, int n)
{
	const struct var v = *var(g, item);
	struct dims d = {v.dims.rank + 1, {0}};

	for (int k = 0; k < d.rank; k++)
		d.dim[k] = k == axis ? n : v.dims.dim[k - (k > axis)];
	op->out[op->nout++] = new_var(g, v.type, d, LIMIT);
	see(g, op->out[op->nout - 1]);
}

/* ---- Loop. ---- */

static bool
is_count(const struct var *v)
{
	return v->type == I64 && v->dims.rank == 0 && v->bound <= LIMIT;
}

/* The maximum trip count: a constant, an input, a computed value, or omitted.  Returns the number of
 * iterations if it is known, else -1. */
static int
trips(struct gen *g, struct node *op)
{
	const int n = below(g, g->depth ? 5 : 20), how = below(g, 4);

	op->in[0] = -1;
	if (how == 0)
		return -1;
	if (how == 1) {
		op->in[0] = scalar(g, I64, n);
		return n;
	}
	const int a = how == 2 ? g->f->main->param[4] : pick(g, is_count);
	op->in[0] = op2(g, MIN, a < 0 ? g->f->main->param[4] : a, scalar(g, I64, g->depth ? 4 : 20));
	return -1;
}

/* The iterations end by a condition if nothing else ends them. */
static int
go_on(struct gen *g, const struct node *op, int round, int go)
{
	if (op->in[0] < 0 || chance(g, 4)) {
		const int less = op2(g, LESS, round, scalar(g, I64, below(g, g->depth > 1 ? 4 : 20)));
		return chance(g, 3) ? op2(g, AND, less, condition(g)) : less;
	}
	switch (below(g, 4)) {
	case 0: return condition(g);
	case 1: return go;
	case 2: return scalar(g, BOOL, 1);
	default: return op1(g, IDENTITY, go, BOOL, (struct dims){0}, 1);
	}
}

static void
make_loop(struct gen *g)
{
	struct states s = {0};

	initials(g, &s, true);
	struct node *op = new_node(g, LOOP, 2 + s.n, MAX_ARGS * 2);
	const int n = trips(g, op);
	op->in[1] = chance(g, 2) ? -1 : chance(g, 2) ? scalar(g, BOOL, 1) : condition(g);
	memcpy(op->in + 2, s.initial, (size_t)s.n * sizeof *op->in);
	const int nseen = g->nseen;
	struct block *b = op->body[0] = open_block(g);
	const int round = param(g, I64, (struct dims){0}), go = param(g, BOOL, (struct dims){0});
	params(g, &s);
	if (!chance(g, 6))
		fill(g, below(g, 7));
	result(g, go_on(g, op, round, go));
	next_states(g, &s);
	const int nseries = series(g);
	const bool is_sure = n >= 0 && op->in[1] < 0 && b->result[0] == go;
	close_block(g, nseen);
	op->nout = 0;
	if (s.n + nseries == 0)
		return;
	state_outputs(g, &s, op);
	for (int k = 0; k < nseries; k++)
		series_output(g, op, b->result[1 + s.n + k], 0, is_sure ? n : -1);
	append(g, op);
}

/* ---- Scan. ---- */

/* An axis of `v` of length `n`, or of any length if n is 0; -1: none. */
static int
axis_of(struct gen *g, const struct var *v, int n)
{
	const int from = below(g, v->dims.rank);

	for (int k = 0; k < v->dims.rank; k++) {
		const int at = (from + k) % v->dims.rank, m = v->dims.dim[at];
		if (n ? m == n : m <= (g->depth ? 6 : 16))
			return at;
	}
	return -1;
}

/* Add inputs to be scanned; returns the number of iterations. */
static int
scanned(struct gen *g, struct node *op, int *nin)
{
	int n = 0;

	for (int want = 1 + below(g, 2); want > 0; want--) {
		const int a = pick(g, is_array), axis = a < 0 ? -1 : axis_of(g, var(g, a), n);
		if (axis < 0)
			continue;
		op->arg[2 * op->nscan] = axis;
		op->arg[2 * op->nscan + 1] = below(g, 2);
		op->in[(*nin)++] = small(g, a);
		op->nscan++;
		n = var(g, a)->dims.dim[axis];
	}
	return n;
}

static void
slice_params(struct gen *g, const struct node *op, int nstate)
{
	for (int k = 0; k < op->nscan; k++) {
		const struct var v = *var(g, op->in[nstate + k]);
		struct dims d = {v.dims.rank - 1, {0}};
		for (int i = 0; i < d.rank; i++)
			d.dim[i] = v.dims.dim[i + (i >= op->arg[2 * k])];
		param(g, v.type, d);
	}
}

static void
make_scan(struct gen *g)
{
	struct states s = {0};

	initials(g, &s, false);
	struct node *op = new_node(g, SCAN, s.n + 2, MAX_ARGS * 2);
	memcpy(op->in, s.initial, (size_t)s.n * sizeof *op->in);
	op->nin = s.n;
	const int n = scanned(g, op, &op->nin), nseen = g->nseen;
	if (op->nscan == 0)
		return;
	struct block *b = op->body[0] = open_block(g);
	b->is_step = true;
	params(g, &s);
	slice_params(g, op, s.n);
	if (!chance(g, 6))
		fill(g, below(g, 7));
	next_states(g, &s);
	const int nseries = series(g);
	close_block(g, nseen);
	op->nout = 0;
	state_outputs(g, &s, op);
	op->narg = 2 * (op->nscan + nseries);
	if (op->nout + nseries == 0)
		return;
	for (int k = 0; k < nseries; k++) {
		int *to = op->arg + 2 * (op->nscan + k);
		const int item = b->result[s.n + k];
		to[0] = below(g, var(g, item)->dims.rank + 1);
		to[1] = below(g, 2);
		series_output(g, op, item, to[0], n);
	}
	append(g, op);
}

/* ---- Programs. ---- */

static void
control(struct gen *g)
{
	static void (*const make[])(struct gen *) = {make_if, make_loop, make_loop, make_scan};

	if (g->depth >= MAX_DEPTH || g->left-- <= 0)
		return;
	make[below(g, 4)](g);
}

static void
fill(struct gen *g, int n)
{
	static void (*const plain[])(struct gen *) = {
		unary, unary, unary, binary, binary, binary, broadcast, broadcast, choose, convert,
		transpose, reshape, concat, slice, head, turn, reduce_some,
	};

	for (int k = 0; k < n; k++)
		if (chance(g, 3))
			control(g);
		else
			plain[below(g, sizeof plain / sizeof plain[0])](g);
}

/* `size`: the scale of the number of ops in the main block. */
static struct flow *
make(om_arena *mem, uint64_t seed, int size, int nbody)
{
	struct flow *f = OM_NEW(mem, struct flow);
	struct gen g = {.f = f, .mem = mem, .state = seed, .left = nbody};

	f->mem = mem;
	f->main = open_block(&g);
	g.depth = 0;
	param(&g, F32, (struct dims){2, {4, 6}});
	param(&g, F32, (struct dims){3, {2, 3, 16}});
	param(&g, BOOL, (struct dims){0});
	param(&g, BOOL, (struct dims){0});
	param(&g, I64, (struct dims){0});
	param(&g, I64, (struct dims){1, {5}});
	fill(&g, size / 4 + below(&g, size));
	control(&g);
	fill(&g, below(&g, size / 2));
	for (int k = 1 + below(&g, 4); k > 0; k--)
		result(&g, pick(&g, is_any));
	return f;
}

struct flow *
flow_make(om_arena *mem, uint64_t seed)
{
	return make(mem, seed, 12, 12);
}

struct flow *
flow_make_small(om_arena *mem, uint64_t seed)
{
	return make(mem, seed, 4, 2);
}
