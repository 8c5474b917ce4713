/* SPDX-License-Identifier: Apache-2.0 */
/* Scan of opset 8 iterated over batches of sequences.  It is converted to a Scan over the batch
 * whose body is a Scan over each sequence.
 *
 * All inputs and outputs have the batch on axis 0, so the outer Scan scans all of them and has no
 * states.  The steps of a sequence are on axis 1, which is axis 0 of the inner Scan.  Different
 * lengths of the sequences in a batch have no equivalent. */
#include <config.h>

#include "opset/convert.h"
#include "ir/clone.h"
#include "ir/edit.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "ir/steps.h"
#include "opdef/op_context.h"

static om_op *
new_outer(om_opset_conversion *r, uint32_t nin)
{
	om_op *op = r->op, *outer = om_op_new(r->p, "", "Scan", r->target, nin, op->nout);

	outer->name = op->name;
	outer->phase = op->phase;
	for (uint32_t k = 0; k < nin; k++)
		om_op_set_in(outer, k, op->in[k + 1]);
	for (uint32_t k = 0; k < op->nout; k++) {
		om_value *v = op->out[k];
		if (!v)
			continue;
		v->def = NULL;
		om_op_set_out(outer, k, v);
	}
	om_op_insert(op, outer);
	r->added++;
	return outer;
}

/* A value for one element of a batch, named after the batch. */
static om_value *
one_of(om_opset_conversion *r, om_block *b, const om_value *batch)
{
	om_value *v = om_value_fresh(r->p, b, om_printf(r->mem, "%s_one", batch->name));

	v->type = batch->type;
	if (batch->shape.rank <= 0)
		return v;
	v->shape.rank = batch->shape.rank - 1;
	for (int d = 0; d < v->shape.rank; d++) {
		v->shape.dim[d] = batch->shape.dim[d + 1];
		v->shape.sym[d] = batch->shape.sym[d + 1];
	}
	return v;
}

/* Clone the op into the new body; the values of its own body are renamed. */
static om_status
move_inside(om_opset_conversion *r, const om_op *outer, om_block *b)
{
	om_op *op = r->op, *inner;
	om_clone c = om_clone_new(r->session, r->p, r->p, r->mem, om_printf(r->mem, "%s/", om_op_label(outer)));

	for (uint32_t k = 0; k < outer->nin; k++)
		om_block_add_param(b, one_of(r, b, outer->in[k]));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			c.value[op->out[k]->id] = one_of(r, b, op->out[k]);
	OM_TRY(om_op_clone(&c, op, b, NULL, &inner));
	inner->name = "";
	om_op_set_inputs(r->p, inner, b->nparam, b->param);
	for (uint32_t k = 0; k < inner->nout; k++) {
		if (!inner->out[k])
			return om_conversion_refuse(r, "output %u is omitted", k);
		om_block_add_result(b, inner->out[k]);
	}
	/* Rules of later versions are applied to the inner op afterwards. */
	inner->version = 9;
	inner->opdef = inner->operators->find("", "Scan", inner->version);
	return OM_OK;
}

static void
name_directions(om_opset_conversion *r)
{
	size_t n;
	const int64_t *v = om_attr_ints(r->op, "directions", &n);
	const bool is_given = om_attr_has(r->op, "directions");

	om_op_drop_attr(r->op, "directions");
	if (is_given)
		om_op_add_ints(r->p, r->op, "scan_input_directions", n, v);
}

om_status
om_conversion_scan(om_opset_conversion *r)
{
	om_op *op = r->op;

	if (op->in[0])
		return om_conversion_refuse(r, "its sequences may differ in length, by %s", op->in[0]->name);
	if (op->nbody != 1)
		return om_conversion_refuse(r, "it has no body");
	name_directions(r);
	om_op *outer = new_outer(r, op->nin - 1);
	om_block *b = om_block_new(r->p, outer, "body", "batch");
	OM_TRY(move_inside(r, outer, b));
	om_op_add_attr(r->p, outer, &(om_attr){.name = "body", .kind = OM_ATTR_GRAPH, .n = 1, .g = &b});
	om_op_add_int(r->p, outer, "num_scan_inputs", outer->nin);
	for (uint32_t k = 0; k < op->nout; k++)
		op->out[k] = NULL;
	om_op_remove(op);
	om_block_remove(op->body[0]);
	r->op = NULL;
	return om_op_infer(r->session, r->p, outer);
}
