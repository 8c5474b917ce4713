/* SPDX-License-Identifier: Apache-2.0 */
/* The backward op as a Loop.
 *
 * A Scan requires that its states keep their shape, so the gradient of a state that grows or shrinks is
 * carried by a Loop; and some runtimes, ONNX Runtime among them, refuse a Scan without iterations, so a
 * Loop also takes its place if the trip count is not known.  Iteration i of it belongs to iteration
 * n - 1 - i of the forward Loop; the slices that a Scan would receive as parameters are gathered at the
 * head of the body. */
#include <config.h>

#include "grad/grad_builder.h"
#include "grad/rules/loop_grad.h"
#include "ir/edit.h"
#include "ir/operators.h"

/* An op at the head of the body, after those that were added there before. */
static om_value *
at_head(struct loop_grad *r, om_op *before, const char *type, const om_attr *attrs, om_value *a, om_value *b,
	om_value *out)
{
	const struct om_place at = {om_grad_scope(r->b.in)->to, before, OM_BACKWARD};

	return om_emit_at(r->b.in, &at, type, attrs, 2, (om_value *[]){a, b}, out);
}

/* The number of iterations, of which the tape has one slice each. */
static om_value *
trip_count(const struct loop_grad *r, om_grad *g)
{
	const struct series *s = &r->series[0];
	const int64_t zero = 0;
	const om_attr range[] = {om_attr_make_int(g, "start", s->axis), om_attr_make_int(g, "end", s->axis + 1), {0}};

	return om_emit_squeeze(g, om_emit_attrs(g, "Shape", range, s->all), 1, &zero);
}

static void
gather_slices(struct loop_grad *r, om_value *count, om_value *iteration)
{
	om_grad *g = r->b.outer, *in = r->b.in;
	om_block *to = om_grad_scope(in)->to;
	om_op *first = to->first;
	om_value *last = om_emit(g, "Sub", count, om_emit_int64(g, 1));
	om_value *turned = om_tape_value(om_grad_scope(in)->tape, to,
		om_printf(om_grad_mem(g), "%s_back", iteration->name));

	at_head(r, first, "Sub", NULL, last, iteration, turned);
	for (size_t k = 0; k < r->n; k++) {
		const struct series *s = &r->series[k];
		at_head(r, first, "Gather", OM_A(om_attr_make_int(in, "axis", s->axis)), s->all,
			s->is_backward ? turned : iteration, s->param);
	}
}

static om_value *
scalar_param(struct loop_grad *r, om_dtype type, const char *what)
{
	om_scope *s = om_grad_scope(r->b.in);
	om_value *v = om_tape_value(s->tape, s->to, om_printf(om_grad_mem(r->b.in), "%s_%s", r->b.in->stem, what));

	v->type = (om_type){.kind = OM_TENSOR, .elem = type};
	v->shape = om_shape_of(0, NULL);
	om_block_add_param(s->to, v);
	return v;
}

void
om_loop_finish(struct loop_grad *r, om_grad *g, const struct back *back)
{
	om_op *op = r->b.back;
	om_block *to = om_grad_scope(r->b.in)->to;
	struct om_values in = {0};
	om_value *count = trip_count(r, g), *iteration = scalar_param(r, OM_INT64, "iteration");

	om_emit_result(r->b.in, scalar_param(r, OM_BOOL, "condition"));
	gather_slices(r, count, iteration);
	om_values_push(g, &in, count);
	om_values_push(g, &in, NULL);
	for (size_t k = 0; k < back->n; k++) {
		om_block_add_param(to, back->carried[k].param);
		om_emit_result(r->b.in, back->carried[k].result);
		om_values_push(g, &in, back->carried[k].start);
	}
	op->type = "Loop";
	op->opdef = op->operators->find(op->domain, op->type, op->version);
	om_back_args(g, op, &in, back->n);
	om_emit_done(g, op);
}
