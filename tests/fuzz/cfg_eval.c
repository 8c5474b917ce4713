/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter: every value is a new array of doubles, every iteration computes its body again, and
 * nothing shares storage. */
#include <config.h>

#include <math.h>

#include "flows.h"
#include "tests/fixtures.h"

struct run {
	const struct flow *f;
	struct number *v;         /* by variable */
	struct trace *trace;
	om_arena *mem;
	bool is_endless;          /* a loop exceeded MAX_ROUNDS */
};

static void
note(struct run *r, const struct node *op, const int *read, int nread, const int *written, int nwritten)
{
	struct trace *t = r->trace;
	const struct event e = {op, read, written, nread, nwritten};

	if (t)
		OM_PUSH(r->mem, t->event, t->n, t->cap, e);
}

int64_t
flow_count(const struct dims *d)
{
	int64_t n = 1;

	for (int k = 0; k < d->rank; k++)
		n *= d->dim[k];
	return n;
}

static struct number
number(struct run *r, enum type type, struct dims dims)
{
	return (struct number){type, dims, OM_NEWN(r->mem, double, (size_t)flow_count(&dims) + 1)};
}

/* ---- Indices in arrays. ---- */

static void
unpack(const struct dims *d, int64_t at, int64_t *index)
{
	for (int k = d->rank - 1; k >= 0; k--) {
		index[k] = at % d->dim[k];
		at /= d->dim[k];
	}
}

static int64_t
pack(const struct dims *d, const int64_t *index)
{
	int64_t at = 0;

	for (int k = 0; k < d->rank; k++)
		at = at * d->dim[k] + index[k];
	return at;
}

/* The element of `a` that is broadcast to position `index`. */
static double
element(const struct number *a, const int64_t *index, int rank)
{
	int64_t own[MAX_DIMS] = {0};

	for (int k = 0; k < a->dims.rank; k++)
		own[k] = a->dims.dim[k] == 1 ? 0 : index[rank - a->dims.rank + k];
	return a->x[pack(&a->dims, own)];
}

static struct dims
joined(const struct dims *a, const struct dims *b)
{
	const struct dims *l = a->rank >= b->rank ? a : b, *s = l == a ? b : a;
	struct dims d = *l;

	for (int k = 0; k < s->rank; k++) {
		int *at = &d.dim[d.rank - s->rank + k];
		*at = *at == 1 ? s->dim[k] : *at;
	}
	return d;
}

/* ---- Ops without bodies. ---- */

static double
one(enum what what, double x)
{
	switch (what) {
	case NEG: return -x;
	case ABS: return fabs(x);
	case RELU: return x > 0 ? x : 0;
	case NOT: return !x;
	case CLIP: return x < -LIMIT ? -LIMIT : x > LIMIT ? LIMIT : x;
	default: return x;
	}
}

static double
two(enum what what, enum type type, double x, double y)
{
	double z;

	switch (what) {
	case ADD: z = x + y; break;
	case SUB: z = x - y; break;
	case MUL: z = x * y; break;
	case MAX: return x > y ? x : y;
	case MIN: return x < y ? x : y;
	case LESS: return x < y;
	default: return x && y;
	}
	return type == F32 ? (double)(float)z : z;
}

static double
cast(enum type to, double x)
{
	return to == F32 ? (double)(float)x : to == I64 ? trunc(x) : to == BOOL ? x != 0 : x;
}

static struct number
unary(struct run *r, const struct node *n, const struct number *a)
{
	struct number y = number(r, n->what == CAST ? (enum type)n->arg[0] : a->type, a->dims);

	for (int64_t k = flow_count(&y.dims); k-- > 0;)
		y.x[k] = n->what == CAST ? cast(y.type, a->x[k]) : one(n->what, a->x[k]);
	return y;
}

static struct number
binary(struct run *r, const struct node *n, const struct number *a, const struct number *b)
{
	struct number y = number(r, n->what == LESS ? BOOL : a->type, joined(&a->dims, &b->dims));
	int64_t at[MAX_DIMS];

	for (int64_t k = flow_count(&y.dims); k-- > 0;) {
		unpack(&y.dims, k, at);
		y.x[k] = two(n->what, a->type, element(a, at, y.dims.rank), element(b, at, y.dims.rank));
	}
	return y;
}

static struct number
where(struct run *r, const struct number *c, const struct number *a, const struct number *b)
{
	struct number y = number(r, a->type, a->dims);

	for (int64_t k = flow_count(&y.dims); k-- > 0;)
		y.x[k] = c->x[k] ? a->x[k] : b->x[k];
	return y;
}

static struct number
transpose(struct run *r, const struct node *n, const struct number *a)
{
	struct number y = number(r, a->type, a->dims);
	int64_t at[MAX_DIMS], from[MAX_DIMS] = {0};

	for (int k = 0; k < a->dims.rank; k++)
		y.dims.dim[k] = a->dims.dim[n->arg[k]];
	for (int64_t k = flow_count(&y.dims); k-- > 0;) {
		unpack(&y.dims, k, at);
		for (int i = 0; i < y.dims.rank; i++)
			from[n->arg[i]] = at[i];
		y.x[k] = a->x[pack(&a->dims, from)];
	}
	return y;
}

static struct number
reshape(struct run *r, const struct node *n, const struct number *a)
{
	struct dims d = {n->narg, {0}};

	for (int k = 0; k < n->narg; k++)
		d.dim[k] = n->arg[k];
	struct number y = number(r, a->type, d);
	for (int64_t k = flow_count(&d); k-- > 0;)
		y.x[k] = a->x[k];
	return y;
}

static struct number
concat(struct run *r, const struct node *n, const struct number *a, const struct number *b)
{
	const int axis = n->arg[0];
	struct dims d = a->dims;
	int64_t at[MAX_DIMS];

	d.dim[axis] += b->dims.dim[axis];
	struct number y = number(r, a->type, d);
	for (int64_t k = flow_count(&d); k-- > 0;) {
		unpack(&d, k, at);
		const bool first = at[axis] < a->dims.dim[axis];
		at[axis] -= first ? 0 : a->dims.dim[axis];
		y.x[k] = first ? a->x[pack(&a->dims, at)] : b->x[pack(&b->dims, at)];
	}
	return y;
}

/* Some slices along an axis, in order or in reverse. */
static struct number
rows(struct run *r, const struct number *a, int axis, int from, int to, bool is_backward)
{
	struct dims d = a->dims;
	int64_t at[MAX_DIMS];

	d.dim[axis] = to - from;
	struct number y = number(r, a->type, d);
	for (int64_t k = flow_count(&d); k-- > 0;) {
		unpack(&d, k, at);
		at[axis] = is_backward ? to - 1 - at[axis] : from + at[axis];
		y.x[k] = a->x[pack(&a->dims, at)];
	}
	return y;
}

static struct number
reduce_max(struct run *r, const struct node *n, const struct number *a)
{
	const int axis = n->arg[0];
	struct dims d = a->dims;
	int64_t at[MAX_DIMS];

	if (axis < 0)
		d = (struct dims){0};
	else
		d.dim[axis] = 1;
	struct number y = number(r, a->type, d);
	for (int64_t k = flow_count(&d); k-- > 0;)
		y.x[k] = -INFINITY;
	for (int64_t k = flow_count(&a->dims); k-- > 0;) {
		unpack(&a->dims, k, at);
		if (axis >= 0)
			at[axis] = 0;
		double *to = &y.x[axis < 0 ? 0 : pack(&d, at)];
		*to = a->x[k] > *to ? a->x[k] : *to;
	}
	return y;
}

static struct number
constant(struct run *r, const struct node *n)
{
	const struct var *v = &r->f->var[n->out[0]];
	struct number y = number(r, v->type, v->dims);

	for (int64_t k = flow_count(&y.dims); k-- > 0;)
		y.x[k] = n->data[k];
	return y;
}

static struct number
plain(struct run *r, const struct node *n)
{
	const struct number *a = n->nin > 0 ? &r->v[n->in[0]] : NULL, *b = n->nin > 1 ? &r->v[n->in[1]] : NULL;

	switch (n->what) {
	case ADD: case SUB: case MUL: case MAX: case MIN: case LESS: case AND: return binary(r, n, a, b);
	case WHERE: return where(r, a, b, &r->v[n->in[2]]);
	case TRANSPOSE: return transpose(r, n, a);
	case RESHAPE: return reshape(r, n, a);
	case CONCAT: return concat(r, n, a, b);
	case SLICE: return rows(r, a, n->arg[0], n->arg[1], n->arg[2], false);
	case TURN: return rows(r, a, n->arg[0], 0, a->dims.dim[n->arg[0]], true);
	case REDUCE_MAX: return reduce_max(r, n, a);
	case CONST: return constant(r, n);
	default: return unary(r, n, a);
	}
}

/* ---- Ops with bodies. ---- */

static void block(struct run *r, const struct block *b);

/* The outputs of the iterations, stacked along a new axis. */
static struct number
stack(struct run *r, const struct number *item, int n, int axis, bool is_backward, const struct var *like)
{
	struct dims d = {like->dims.rank, {0}};
	int64_t at[MAX_DIMS], own[MAX_DIMS];

	for (int k = 0; k < d.rank; k++)
		d.dim[k] = k == axis ? n : !n ? like->dims.dim[k] : item[0].dims.dim[k - (k > axis)];
	for (int k = 0; k < d.rank; k++)
		d.dim[k] = d.dim[k] < 0 ? 0 : d.dim[k];
	struct number y = number(r, like->type, d);
	for (int64_t k = flow_count(&d); k-- > 0;) {
		unpack(&d, k, at);
		for (int i = 0, to = 0; i < d.rank; i++)
			if (i != axis)
				own[to++] = at[i];
		const struct number *from = &item[is_backward ? n - 1 - at[axis] : at[axis]];
		y.x[k] = from->x[pack(&from->dims, own)];
	}
	return y;
}

/* Results are read before parameters are set: they may be the same variables. */
static void
next_round(struct run *r, const struct block *b, int first, struct number *state, int n)
{
	for (int k = 0; k < n; k++)
		state[k] = r->v[b->result[first + k]];
}

static void
run_if(struct run *r, const struct node *n)
{
	const struct block *b = n->body[r->v[n->in[0]].x[0] ? 0 : 1];

	block(r, b);
	note(r, NULL, b->result, b->nresult, n->out, n->nout);
	for (int k = 0; k < n->nout; k++)
		r->v[n->out[k]] = r->v[b->result[k]];
}

enum { MAX_ROUNDS = 32 };    /* more than any generated program runs; a shrunk one may loop forever */

static void
run_loop(struct run *r, const struct node *n)
{
	const struct block *b = n->body[0];
	const int nstate = n->nin - 2, nseries = n->nout - nstate;
	struct number state[MAX_ARGS], *item = OM_NEWN(r->mem, struct number, MAX_RESULTS * MAX_ROUNDS);
	const double most = n->in[0] < 0 ? MAX_ROUNDS + 1 : r->v[n->in[0]].x[0];
	struct number go = number(r, BOOL, (struct dims){0});
	int i = 0;

	go.x[0] = n->in[1] < 0 ? 1 : r->v[n->in[1]].x[0];
	for (int k = 0; k < nstate; k++)
		state[k] = r->v[n->in[2 + k]];
	for (; i < most && go.x[0] && !r->is_endless; i++) {
		if (i == MAX_ROUNDS) {
			r->is_endless = true;
			break;
		}
		struct number count = number(r, I64, (struct dims){0});
		count.x[0] = i;
		r->v[b->param[0]] = count;
		r->v[b->param[1]] = go;
		for (int k = 0; k < nstate; k++)
			r->v[b->param[2 + k]] = state[k];
		note(r, NULL, NULL, 0, b->param, b->nparam);
		block(r, b);
		note(r, NULL, b->result, b->nresult, NULL, 0);
		go = r->v[b->result[0]];
		next_round(r, b, 1, state, nstate);
		for (int k = 0; k < nseries; k++)
			item[k * MAX_ROUNDS + i] = r->v[b->result[1 + nstate + k]];
	}
	note(r, NULL, NULL, 0, n->out, n->nout);
	for (int k = 0; k < nstate; k++)
		r->v[n->out[k]] = state[k];
	for (int k = 0; k < nseries; k++)
		r->v[n->out[nstate + k]] = stack(r, item + k * MAX_ROUNDS, i, 0, false,
			&r->f->var[n->out[nstate + k]]);
}

/* A slice of a scanned input, without the axis. */
static struct number
slice(struct run *r, const struct number *a, int axis, int at)
{
	struct number y = rows(r, a, axis, at, at + 1, false);

	for (int k = axis; k + 1 < y.dims.rank; k++)
		y.dims.dim[k] = y.dims.dim[k + 1];
	y.dims.rank--;
	return y;
}

static void
run_scan(struct run *r, const struct node *n)
{
	const struct block *b = n->body[0];
	const int nscan = n->nscan, nstate = n->nin - nscan, nseries = n->nout - nstate;
	const int *to = n->arg + 2 * nscan;
	struct number state[MAX_ARGS], *item = OM_NEWN(r->mem, struct number, MAX_RESULTS * MAX_ROUNDS);
	const int rounds = r->v[n->in[nstate]].dims.dim[n->arg[0]];

	for (int k = 0; k < nstate; k++)
		state[k] = r->v[n->in[k]];
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < nstate; k++)
			r->v[b->param[k]] = state[k];
		for (int k = 0; k < nscan; k++)
			r->v[b->param[nstate + k]] = slice(r, &r->v[n->in[nstate + k]], n->arg[2 * k],
				n->arg[2 * k + 1] ? rounds - 1 - i : i);
		note(r, NULL, n->in + nstate, nscan, b->param, b->nparam);
		block(r, b);
		note(r, NULL, b->result, b->nresult, NULL, 0);
		next_round(r, b, 0, state, nstate);
		for (int k = 0; k < nseries; k++)
			item[k * MAX_ROUNDS + i] = r->v[b->result[nstate + k]];
	}
	note(r, NULL, NULL, 0, n->out, n->nout);
	for (int k = 0; k < nstate; k++)
		r->v[n->out[k]] = state[k];
	for (int k = 0; k < nseries; k++)
		r->v[n->out[nstate + k]] = stack(r, item + k * MAX_ROUNDS, rounds, to[2 * k], to[2 * k + 1],
			&r->f->var[n->out[nstate + k]]);
}

static void
block(struct run *r, const struct block *b)
{
	for (const struct node *n = b->first; n; n = n->next) {
		note(r, n, n->in, n->nin, n->out, n->body[0] ? 0 : n->nout);
		switch (n->what) {
		case IF: run_if(r, n); break;
		case LOOP: run_loop(r, n); break;
		case SCAN: run_scan(r, n); break;
		default: r->v[n->out[0]] = plain(r, n);
		}
	}
}

struct number *
flow_eval(const struct flow *f, const struct number *in, struct trace *trace, om_arena *mem)
{
	struct run r = {.f = f, .v = OM_NEWN(mem, struct number, f->nvar), .trace = trace, .mem = mem};
	struct number *out = OM_NEWN(mem, struct number, (size_t)f->main->nresult);

	for (int k = 0; k < f->main->nparam; k++)
		r.v[f->main->param[k]] = in[k];
	block(&r, f->main);
	if (r.is_endless)
		return NULL;
	note(&r, NULL, f->main->result, f->main->nresult, NULL, 0);
	for (int k = 0; k < f->main->nresult; k++)
		out[k] = r.v[f->main->result[k]];
	return out;
}

/* ---- As tensors. ---- */

const om_dtype flow_dtype[NTYPE] = {OM_FLOAT32, OM_FLOAT64, OM_INT64, OM_BOOL};

om_tensor
flow_tensor(const struct number *x, om_arena *mem)
{
	om_shape shape = {.rank = x->dims.rank};

	for (int k = 0; k < x->dims.rank; k++)
		shape.dim[k] = x->dims.dim[k];
	const om_tensor t = tensor_zero(mem, flow_dtype[x->type], &shape);
	for (int64_t k = 0; k < flow_count(&x->dims); k++)
		set_element(&t, k, x->x[k]);
	return t;
}
