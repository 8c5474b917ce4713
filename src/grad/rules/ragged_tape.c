/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged tapes: values of an iteration whose shape differs between iterations.
 *
 * Such are the scan outputs of an inner Loop whose trip count depends on the outer iteration, what an If
 * keeps in one of its branches, and elements selected by a condition.  A scan output requires one shape,
 * so these values are joined along axis 0 instead, into a flat stack: [T, 3] of T = 2, 0, 5 gives
 * [7, 3].  If other dims vary, too, the axes up to the last of them are merged into axis 0, the rows.
 * The lengths of these axes are a scan output, which has one shape; from them the backward path computes
 * the end of each iteration's rows, by a cumulative sum, and each of its iterations slices its rows and
 * restores their shape.
 *
 * The forward Loop carries the rows as a sequence that grows by one element in each iteration, and that
 * is concatenated after the last one: every element is copied a constant number of times, whereas a
 * Concat in each iteration would copy the whole stack.  The sequence starts with an element without
 * rows, so that it is not empty when no iteration runs, and the stack then has the right element type
 * and rank.
 *
 * Scan outputs of one inner loop have as many rows as each other, and so have their stacks: they share
 * the lengths.
 *
 * A stack and its lengths are tensors, so that an outer loop keeps them like any other value of its
 * iterations: their shape differs there, and they become rows of a stack of its own. */
#include <config.h>

#include <inttypes.h>

#include "base/arena_internal.h"
#include "grad/grad_builder.h"
#include "grad/rules/loop_grad.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"
#include "onnxmem/opdef.h"

struct ragged {
	struct loop_grad *r;
	om_value *v;
	int rank;                    /* OM_RANK_UNKNOWN: all axes are merged, and the shape is kept as well */
	int nmerged;                 /* the first axes, which become the rows */
	bool has_zero;               /* a known dim is 0 */
	int nopen;                   /* unknown dims */
};

static struct ragged
ragged_of(struct loop_grad *r, om_value *v)
{
	struct ragged t = {.r = r, .v = v, .rank = v->shape.rank, .nmerged = 1};

	for (int d = 0; d < t.rank; d++) {
		t.has_zero |= v->shape.dim[d] == 0;
		t.nopen += v->shape.dim[d] < 0;
		if (v->shape.dim[d] < 0)
			t.nmerged = d + 1;
	}
	if (t.has_zero && t.nmerged > 1)
		t.nmerged = t.rank;
	return t;
}

/* ---- Equal numbers of rows. ---- */

static const char *
known_key(const struct ragged *t)
{
	return om_printf(om_grad_mem(t->r->b.outer), "rows %" PRIu32, t->v->id);
}

/* Values with the same key have as many rows in every iteration: scan outputs of a Loop, and flat stacks that
 * a loop makes of values with the same key. */
static const char *
key_of(const struct ragged *t)
{
	const om_op *op = t->v->def;
	om_arena *mem = om_grad_mem(t->r->b.outer);
	const char *known = om_map_get(&t->r->b.s->tape->known, known_key(t));

	if (t->rank == OM_RANK_UNKNOWN)
		return om_printf(mem, "value %" PRIu32, t->v->id);
	if (known)
		return known;
	if (op && op->opdef && op->opdef->control == OM_LOOP && t->nmerged == 1)
		for (uint32_t k = op->nin - 2; k < op->nout; k++)
			if (op->out[k] == t->v)
				return om_printf(mem, "loop %" PRIu32, op->id);
	return om_printf(mem, "value %" PRIu32, t->v->id);
}

static void
note_flat(const struct ragged *t, om_value *flat)
{
	struct ragged of = *t;

	of.v = flat;
	om_map_set(&t->r->b.s->tape->known, known_key(&of),
		om_printf(om_grad_mem(t->r->b.outer), "flat %" PRIu32 " of %s", t->r->b.op->id, key_of(t)));
}

/* ---- The forward path. ---- */

/* An op at the end of the forward body. */
static om_value *
at_end(const struct ragged *t, const char *type, const om_attr *attrs, size_t nin, om_value *const *in, const char *what)
{
	struct om_body *b = &t->r->b;
	const struct om_place end = {b->from, NULL, b->op->phase};

	return om_emit_at(b->outer, &end, type, attrs, nin, in,
		om_tape_value(b->s->tape, b->from, om_printf(om_grad_mem(b->outer), "%s_%s", t->v->name, what)));
}

/* An op beside the forward op: before it, or after it. */
static om_value *
beside(const struct ragged *t, om_op *before, const char *type, const om_attr *attrs, om_value *in, const char *what)
{
	struct om_body *b = &t->r->b;
	const struct om_place at = {b->op->block, before, b->op->phase};

	return om_emit_at(b->outer, &at, type, attrs, 1, &in,
		om_tape_value(b->s->tape, b->op->block, om_printf(om_grad_mem(b->outer), "%s_%s", t->v->name, what)));
}

/* The dims of rows, after the first, which is `first`. */
static size_t
row_dims(const struct ragged *t, int64_t first, int64_t *dim)
{
	size_t n = 0;

	dim[n++] = first;
	for (int d = t->nmerged; d < t->rank; d++)
		dim[n++] = t->v->shape.dim[d];
	return n;
}

static om_value *
rows_of(const struct ragged *t)
{
	int64_t dim[OM_MAX_RANK];

	if (t->rank != OM_RANK_UNKNOWN && t->nmerged == 1)
		return t->v;
	const size_t n = row_dims(t, -1, dim);
	return at_end(t, "Reshape", NULL, 2, (om_value *[]){t->v, om_emit_list(t->r->b.outer, n, dim)}, "rows");
}

/* The lengths of the merged axes; of all axes together if their number is not known. */
static om_value *
lengths_of(const struct ragged *t)
{
	om_grad *g = t->r->b.outer;
	const int64_t one = 1;

	if (t->rank != OM_RANK_UNKNOWN)
		return at_end(t, "Shape", OM_A(om_attr_make_int(g, "start", 0), om_attr_make_int(g, "end", t->nmerged)),
			1, &t->v, "lengths");
	om_value *size = at_end(t, "Size", NULL, 1, &t->v, "size");
	return at_end(t, "Reshape", NULL, 2, (om_value *[]){size, om_emit_list(g, 1, &one)}, "lengths");
}

/* A tensor of the type of the rows without any. */
static om_value *
no_rows(const struct ragged *t)
{
	int64_t dim[OM_MAX_RANK];
	const size_t n = row_dims(t, 0, dim);
	const om_tensor none = {.type = om_type_elem(&t->v->type), .shape = om_shape_of((int)n, dim),
		.data = om_alloc(om_grad_prog(t->r->b.outer)->mem, 1)};

	return om_emit_tensor(t->r->b.outer, &none);
}

static void
insert_result(om_block *b, uint32_t at, om_value *v)
{
	om_block_add_result(b, v);
	for (uint32_t k = b->nresult - 1; k > at; k--)
		om_block_set_result(b, k, b->result[k - 1]);
	om_block_set_result(b, at, v);
}

static void
insert_output(om_prog *p, om_op *op, uint32_t at, om_value *v)
{
	om_value **out = OM_NEWN(p->mem, om_value *, (size_t)op->nout + 1);

	for (uint32_t k = 0; k < op->nout; k++)
		out[k + (k >= at)] = op->out[k];
	op->out = out;
	op->nout++;
	om_op_set_out(op, at, v);
}

static void
append_input(om_prog *p, om_op *op, om_value *v)
{
	om_value **in = OM_NEWN(p->mem, om_value *, (size_t)op->nin + 1);

	memcpy(in, op->in, op->nin * sizeof *in);
	in[op->nin] = v;
	om_op_set_inputs(p, op, op->nin + 1, in);
}

/* Add a state to the forward Loop: the rows of the iterations so far, as a sequence. */
static om_value *
carry_rows(struct ragged *t)
{
	struct loop_grad *r = t->r;
	om_op *op = r->b.op;
	om_prog *p = om_grad_prog(r->b.outer);
	om_value *none = no_rows(t), *rows = rows_of(t);
	om_value *start = beside(t, op, "SequenceConstruct", NULL, none, "rows_start");
	om_value *before = om_emit_param(om_emit_inside(r->b.outer, r->b.from), t->v, "rows_before");

	before->type = start->type;
	before->shape = start->shape;
	before->shape.dim[0] = OM_DIM_UNKNOWN;
	om_value *after = at_end(t, "SequenceInsert", NULL, 2, (om_value *[]){before, rows}, "rows_after");
	om_value *all = om_tape_value(r->b.s->tape, op->block,
		om_printf(om_grad_mem(r->b.outer), "%s_rows_kept", t->v->name));
	const uint32_t at = r->nstate + r->nextra++;
	om_block_add_param(r->b.from, before);
	insert_result(r->b.from, at + 1, after);
	append_input(p, op, start);
	insert_output(p, op, at, all);
	om_body_infer(&r->b);
	return all;
}

static om_value *
join_rows(struct ragged *t)
{
	om_grad *g = t->r->b.outer;
	om_value *rows = carry_rows(t);

	return beside(t, t->r->b.op->next, "ConcatFromSequence", OM_A(om_attr_make_int(g, "axis", 0)), rows, "flat");
}

/* ---- The backward path. ---- */

/* A list of `n` integers of an iteration, from one row per iteration. */
static om_value *
list_series(const struct ragged *t, om_value *all, int n)
{
	const int64_t dim = n;
	om_value *list = om_loop_add_series(t->r, all, t->v, 0, true);

	list->type = all->type;
	list->shape = om_shape_of(1, &dim);
	return list;
}

/* Where the rows of each iteration are. */
static struct row_range
range_of(const struct ragged *t, const char *key)
{
	om_grad *g = t->r->b.outer;
	const int64_t one = 1;
	uint32_t out;
	struct row_range range = {.key = key, .lengths = om_loop_stack(t->r, lengths_of(t), &out)};
	om_value *count = t->nmerged > 1 ? om_emit_reduce(g, "ReduceProd", range.lengths, 1, &one, true) : range.lengths;
	om_value *end = om_emit(g, "CumSum", count, om_emit_int64(g, 0));

	range.first = list_series(t, om_emit(g, "Sub", end, count), 1);
	range.last = list_series(t, end, 1);
	return range;
}

static struct row_range *
shared_range(const struct ragged *t)
{
	struct loop_grad *r = t->r;
	const char *key = key_of(t);

	for (size_t k = 0; k < r->nrange; k++)
		if (strcmp(r->range[k].key, key) == 0)
			return &r->range[k];
	const struct row_range range = range_of(t, key);
	OM_PUSH(om_grad_mem(r->b.outer), r->range, r->nrange, r->cap_range, range);
	return &r->range[r->nrange - 1];
}

/* The shape of the value as an input of Reshape; `lengths` of the merged axes of this iteration. */
static om_value *
shape_from(const struct ragged *t, om_value *lengths)
{
	om_grad *g = t->r->b.in;
	om_value *dim[OM_MAX_RANK];

	for (int d = 0; d < t->rank; d++)
		dim[d] = t->v->shape.dim[d] < 0 ? om_emit_slice(g, lengths, 0, d, d + 1)
			: om_emit_list(g, 1, &t->v->shape.dim[d]);
	return om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), (size_t)t->rank, dim, 1, NULL);
}

/* The rows in the shape of the value. */
static om_value *
restore(const struct ragged *t, om_value *rows, om_value *lengths)
{
	om_grad *g = t->r->b.in;

	if (t->rank == OM_RANK_UNKNOWN) {
		om_value *shape = at_end(t, "Shape", NULL, 1, &t->v, "shape");
		return om_emit_reshape(g, rows, om_loop_keep(t->r, shape));
	}
	if (t->nmerged == 1)
		return rows;
	if (t->nopen == 1 && !t->has_zero)  /* an unknown dim is -1 */
		return om_emit(g, "Reshape", rows, om_emit_list(g, (size_t)t->rank, t->v->shape.dim));
	return om_emit_reshape(g, rows, shape_from(t, list_series(t, lengths, t->nmerged)));
}

/* The rows of this iteration in a flat stack. */
static om_value *
slice_rows(const struct ragged *t, om_value *flat)
{
	om_grad *g = t->r->b.in;
	const int64_t zero = 0;
	const struct row_range *range = shared_range(t);

	return om_emit(g, "Slice", flat, range->first, range->last, om_emit_list(g, 1, &zero));
}

om_value *
om_loop_keep_ragged(struct loop_grad *r, om_value *v)
{
	struct ragged t = ragged_of(r, v);

	if (r->is_scan) {
		om_grad_fail(r->b.outer, OM_UNSUPPORTED, "its gradient requires %s, whose shape differs between iterations",
			v->name);
		return v;
	}
	om_value *flat = join_rows(&t);
	note_flat(&t, flat);
	om_value *rows = slice_rows(&t, om_body_reach(&r->b, flat));
	om_value *by = restore(&t, rows, shared_range(&t)->lengths);
	by->shape = v->shape;
	return by;
}

/* ---- The gradient of a flat stack. ---- */

static bool
is_op(const om_op *op, const char *type)
{
	return op && op->domain[0] == '\0' && strcmp(op->type, type) == 0;
}

static bool
is_without_rows(const om_value *v)
{
	if (is_op(v->def, "SequenceEmpty"))
		return true;
	if (!is_op(v->def, "SequenceConstruct") || v->def->nin != 1)
		return false;
	const om_shape *s = &v->def->in[0]->shape;
	return s->rank > 0 && s->dim[0] == 0;
}

/* The value that each iteration appends to state `k`, which has no rows at first; NULL: it is no such state. */
static om_value *
appended(const om_op *op, uint32_t k)
{
	const om_block *body = op->body[0];
	const om_op *insert = body->result[1 + k]->def;

	if (!is_op(insert, "SequenceInsert") || insert->block != body || (insert->nin > 2 && insert->in[2])
	    || insert->in[0] != body->param[2 + k] || !is_without_rows(op->in[2 + k]))
		return NULL;
	return insert->in[1];
}

void
om_loop_seed_rows(struct loop_grad *r, uint32_t k, om_value *dy)
{
	om_value *v = appended(r->b.op, k);

	if (!v) {
		om_grad_fail(r->b.outer, OM_UNSUPPORTED, "it has no gradient for input %s", r->b.op->in[r->in + k]->name);
		return;
	}
	struct ragged t = ragged_of(r, v);
	t.nmerged = 1;
	om_value *rows = slice_rows(&t, dy);
	rows->shape = v->shape;
	om_scope_seed(r->b.s, v, rows);
}

/* The gradient of a sequence to which a Loop appends its elements is a tensor: that of their concatenation. */
void
om_concat_from_sequence_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g), *loop = op->in[0]->def;
	bool is_appended = false;

	for (uint32_t k = 0; loop && loop->opdef && loop->opdef->control == OM_LOOP && k + 2 < loop->nin; k++)
		is_appended |= loop->out[k] == op->in[0] && appended(loop, k);
	if (om_attr_int(op, "axis") != 0 || om_attr_int(op, "new_axis") != 0 || !is_appended)
		om_grad_fail(g, OM_UNSUPPORTED, "a gradient passes through a sequence only if a Loop appends its "
			"elements, and if they are joined along axis 0");
	om_grad_set_input_grad(g, 0, om_grad_output_grad(g, 0));
}
