/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are run for each element of a sequence (SequenceMap), and for each element of
 * each sequence of a batch (Scan of version 8).
 *
 * Inputs of a body are copied, as in control_flow.c.  Results are copied into an output
 * immediately: no iteration reads the results of another, except for the states of a Scan,
 * which are staged. */
#include <config.h>

#include "exec/control_flow.h"
#include "base/arena_internal.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "ir/type.h"

static om_status
wrong(const struct step *s, const char *what)
{
	return om_op_fail(s->exec->session, OM_INVALID, s->op, "%s", what);
}

/* ---- SequenceMap. ---- */

static bool
is_list(const om_op *op, uint32_t k)
{
	return op->in[k]->type.kind == OM_SEQUENCE;
}

static om_status
count_items(const struct step *s, size_t *n)
{
	*n = ((const om_container *)s->in[0].data)->n;
	for (uint32_t k = 1; k < s->op->nin; k++) {
		const om_container *o = s->in[k].data;
		if (is_list(s->op, k) && o->n != *n)
			return om_op_fail(s->exec->session, OM_RUN, s->op,
				"the sequences have %zu and %zu elements", *n, o->n);
	}
	return OM_OK;
}

static om_status
run_item(struct step *s, size_t at, om_tensor *const *item)
{
	om_exec *e = s->exec;
	const om_block *b = s->op->body[0];

	for (uint32_t k = 0; k < s->op->nin; k++) {
		const om_container *o = s->in[k].data;
		OM_TRY(om_value_put(e, b->param[k], is_list(s->op, k) ? &o->item[at] : &s->in[k]));
	}
	OM_TRY(om_walk_run(e, b));
	for (uint32_t k = 0; k < s->op->nout; k++)
		if (s->op->out[k])
			OM_TRY(om_objects_copy(e, &e->slot[b->result[k]->id], &item[k][at]));
	om_control_flow_poison(e, e->body_end[b->id]);
	return OM_OK;
}

/* Release the strings and objects of the iterations so far, except those of the `n` items. */
static void
release_items(struct step *s, om_tensor *const *item, size_t n)
{
	const om_block *b = s->op->body[0];
	struct om_mover *m = om_objects_move_start(s->exec, s->flow);

	if (!m)
		return;
	for (uint32_t k = 0; k < s->op->nout; k++)
		for (size_t i = 0; i < n && s->op->out[k]; i++)
			om_objects_move_item(m, &b->result[k]->type, &item[k][i]);
	om_objects_move_end(m, s->flow);
}

static om_status
run_each(struct step *s)
{
	om_exec *e = s->exec;
	om_tensor **item = OM_NEWN(e->keep, om_tensor *, s->op->nout);
	size_t n;

	om_step_look(s);
	OM_TRY(count_items(s, &n));
	om_container *made = OM_NEWN(e->keep, om_container, s->op->nout);
	for (uint32_t k = 0; k < s->op->nout; k++) {
		item[k] = OM_NEWN(e->keep, om_tensor, n + 1);
		made[k] = (om_container){.n = n, .item = item[k]};
	}
	om_control_flow_poison(e, e->first_step[s->op->id]);
	om_objects_enter(e, s->flow);
	for (size_t k = 0; k < n; k++) {
		OM_TRY(run_item(s, k, item));
		release_items(s, item, k + 1);
	}
	om_objects_leave(e, s->flow);
	for (uint32_t k = 0; k < s->op->nout; k++) {
		const om_tensor t = {.type = om_type_elem(&s->op->body[0]->result[k]->type), .data = &made[k]};
		if (s->op->out[k])
			OM_TRY(om_value_put(e, s->op->out[k], &t));
	}
	return OM_OK;
}

om_status
om_each_new(struct step *s)
{
	const om_op *op = s->op;

	if (op->nbody != 1 || op->body[0]->nparam != op->nin || op->body[0]->nresult != op->nout || op->nin == 0)
		return wrong(s, "the inputs and outputs of the body do not match those of the op");
	for (uint32_t k = 0; k < op->nin; k++)
		if (!op->in[k] || (k == 0 && !is_list(op, k)) || op->body[0]->param[k]->type.kind != OM_TENSOR)
			return wrong(s, "requires a sequence, followed by sequences or tensors");
	for (uint32_t k = 0; k < op->nout; k++)
		if ((op->out[k] && op->out[k]->type.kind != OM_SEQUENCE) || op->body[0]->result[k]->type.kind != OM_TENSOR)
			return wrong(s, "the results of the body are not tensors");
	s->run = run_each;
	return OM_OK;
}

/* ---- Scan of version 8. ---- */

struct batches {
	uint32_t nstate, nscan;
	int64_t n, length;
};

/* Copy slice `at` of `t` to `v`: `at` is a linear index over the first `dims` dims, `v` has the others. */
static om_status
put_part(struct step *s, om_value *v, const om_tensor *t, int64_t at, int dims)
{
	om_shape shape = {.rank = t->shape.rank - dims};
	uint64_t bytes;

	for (int d = 0; d < shape.rank; d++)
		shape.dim[d] = t->shape.dim[d + dims];
	OM_TRY(om_value_settle(s->exec, v, t->type, &shape));
	if (om_tensor_bytes(t->type, &shape, &bytes) && bytes)
		memcpy(s->exec->slot[v->id].data, (const char *)t->data + (uint64_t)at * bytes, bytes);
	s->exec->stats.copied_bytes += bytes;
	return OM_OK;
}

/* Copy `t` to slice `at` of output `k`, whose shape is `front` followed by the shape of `t`. */
static om_status
add_part(struct step *s, uint32_t k, const om_tensor *t, int64_t at, const int64_t *front, int dims)
{
	om_exec *e = s->exec;
	om_value *v = s->op->out[k];
	om_shape shape = {.rank = t->shape.rank + dims};
	uint64_t bytes;

	if (!v)
		return OM_OK;
	if (shape.rank > OM_MAX_RANK)
		return om_op_fail(e->session, OM_UNSUPPORTED, s->op, "output %u has too many dims", k);
	for (int d = 0; d < shape.rank; d++)
		shape.dim[d] = d < dims ? front[d] : t->shape.dim[d - dims];
	const bool is_first = !e->slot[v->id].data || at == 0;
	if (is_first || e->is_fixed[v->id])
		OM_TRY(om_value_settle(e, v, t->type, &shape));
	for (int d = 0; d < shape.rank; d++)
		if (shape.rank != e->slot[v->id].shape.rank || shape.dim[d] != e->slot[v->id].shape.dim[d])
			return om_op_fail(e->session, OM_RUN, s->op,
				"the results of the iterations differ in shape");
	if (om_tensor_bytes(t->type, &t->shape, &bytes) && bytes)
		om_elements_copy((char *)e->slot[v->id].data + (uint64_t)at * bytes, t, bytes);
	e->stats.copied_bytes += bytes;
	return OM_OK;
}

static om_status
batches_of(const struct step *s, struct batches *b)
{
	const om_op *op = s->op;

	b->nstate = s->flow->nstage;
	b->nscan = op->nin - 1 - b->nstate;
	b->n = b->length = -1;
	for (uint32_t k = 1; k < op->nin; k++) {
		const om_tensor *t = &s->in[k];
		const bool scanned = k > b->nstate;
		if (t->shape.rank < 1 + scanned || (b->n >= 0 && t->shape.dim[0] != b->n)
		    || (scanned && b->length >= 0 && t->shape.dim[1] != b->length) || om_dtype_bits(t->type) < 8)
			return om_op_fail(s->exec->session, OM_RUN, op,
				"input %u and the others differ in batch size", k);
		b->n = t->shape.dim[0];
		if (scanned)
			b->length = t->shape.dim[1];
	}
	return OM_OK;
}

/* The length of sequence `i` of the batch. */
static om_status
length_of(const struct step *s, const struct batches *b, int64_t i, int64_t *n)
{
	const om_tensor *t = &s->in[0];

	*n = b->length;
	if (!s->op->in[0])
		return OM_OK;
	if (t->type != OM_INT64 || om_shape_count(&t->shape) != b->n)
		return om_op_fail(s->exec->session, OM_RUN, s->op,
			"sequence_lens must have one element for each sequence");
	*n = ((const int64_t *)t->data)[i];
	if (*n < 0 || *n > b->length)
		return om_op_fail(s->exec->session, OM_RUN, s->op,
			"a sequence length is %lld, more than %lld", (long long)*n,
			(long long)b->length);
	return OM_OK;
}

static om_status
run_sequence(struct step *s, const struct batches *b, int64_t i)
{
	om_exec *e = s->exec;
	const om_block *body = s->op->body[0];
	const int64_t front[2] = {b->n, b->length};
	int64_t n;

	OM_TRY(length_of(s, b, i, &n));
	for (uint32_t k = 0; k < b->nstate; k++) {
		OM_TRY(put_part(s, body->param[k], &s->in[1 + k], i, 1));
		OM_TRY(om_stage_put(e, &s->flow->stage, k, body->param[k], &e->slot[body->param[k]->id]));
	}
	for (int64_t t = 0; t < n; t++) {
		OM_TRY(om_control_flow_put(e, body->param, &s->flow->stage, b->nstate));
		for (uint32_t k = 0; k < b->nscan; k++)
			OM_TRY(put_part(s, body->param[b->nstate + k], &s->in[1 + b->nstate + k],
				i * b->length + (s->flow->scanned[k].is_backward ? n - 1 - t : t), 2));
		OM_TRY(om_walk_run(e, body));
		OM_TRY(om_control_flow_stage(e, &s->flow->stage, body, 0, b->nstate));
		for (uint32_t k = b->nstate; k < s->op->nout; k++)
			OM_TRY(add_part(s, k, &e->slot[body->result[k]->id], i * b->length + t, front, 2));
		struct om_mover *m = om_objects_move_start(e, s->flow);
		if (m)  /* its results are numbers */
			om_objects_move_end(m, s->flow);
		om_control_flow_poison(e, e->body_end[body->id]);
	}
	for (uint32_t k = 0; k < b->nstate; k++)
		OM_TRY(add_part(s, k, &s->flow->stage.t[k], i, front, 1));
	return OM_OK;
}

/* No iteration wrote the output: fill it with zeros, in the inferred shape. */
static om_status
clear_output(struct step *s, const struct batches *b, uint32_t k)
{
	om_exec *e = s->exec;
	om_value *v = s->op->out[k];
	const om_value *each = s->op->body[0]->result[k];
	const int dims = 1 + (k >= b->nstate);
	om_shape shape = {.rank = each->shape.rank + dims, .dim = {b->n, b->length}};
	uint64_t bytes;

	if (!v || (!e->is_fixed[v->id] && each->shape.rank < 0))
		return OM_OK;
	for (int d = dims; d < shape.rank && d < OM_MAX_RANK; d++)
		shape.dim[d] = each->shape.dim[d - dims] < 0 ? 0 : each->shape.dim[d - dims];
	if (!e->is_fixed[v->id])
		OM_TRY(om_value_settle(e, v, each->type.elem, &shape));
	const om_tensor *t = &e->slot[v->id];
	if (om_tensor_bytes(t->type, &t->shape, &bytes) && bytes)
		memset(t->data, 0, bytes);
	return OM_OK;
}

static om_status
run_batches(struct step *s)
{
	struct batches b;

	om_step_look(s);
	OM_TRY(batches_of(s, &b));
	for (uint32_t k = 0; k < s->op->nout; k++)
		OM_TRY(clear_output(s, &b, k));
	om_control_flow_poison(s->exec, s->exec->first_step[s->op->id]);
	om_objects_enter(s->exec, s->flow);
	for (int64_t i = 0; i < b.n; i++)
		OM_TRY(run_sequence(s, &b, i));
	om_objects_leave(s->exec, s->flow);
	return OM_OK;
}

om_status
om_batches_new(struct step *s)
{
	const om_op *op = s->op;
	const int64_t nscan = om_attr_int(op, "num_scan_inputs");

	if (op->nbody != 1 || nscan < 1 || nscan >= op->nin)
		return wrong(s, "requires one body and at least one input to scan");
	const om_block *b = op->body[0];
	const uint32_t nstate = op->nin - 1 - (uint32_t)nscan;
	if (b->nparam != op->nin - 1 || b->nresult != op->nout || op->nout < nstate)
		return wrong(s, "the inputs and outputs of the body do not match those of the op");
	s->flow->nstage = nstate;
	s->flow->scanned = OM_NEWN(s->exec->mem, struct direction, (size_t)nscan);
	for (uint32_t k = 0; k < (uint32_t)nscan; k++)
		s->flow->scanned[k].is_backward = om_attr_int_at(op, "directions", k, 0) != 0;
	s->run = run_batches;
	return OM_OK;
}
