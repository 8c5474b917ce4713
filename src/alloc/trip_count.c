/* SPDX-License-Identifier: Apache-2.0 */
/* The trip count of a loop, if it is known before the run. */
#include <config.h>

#include "alloc/buffers.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "onnxmem/opdef.h"
#include "onnxmem/plan.h"

/* Does the body pass its condition through, or return a constant true? */
static bool
goes_on(const om_block *b)
{
	const om_value *v = b->nresult ? b->result[0] : NULL;
	om_view_of view;

	while (v && v->def && v->def->block && !v->is_const && om_op_view(v->def, 0, &view) && v->def->nout == 1)
		v = v->def->in[view.in];
	return v && ((v->is_const && om_value_is(v, true)) || (b->nparam > 1 && v == b->param[1]));
}

static int64_t
loop_rounds(const om_op *op)
{
	const om_value *most = op->nin > 0 ? op->in[0] : NULL, *go = op->nin > 1 ? op->in[1] : NULL;

	if (go && go->is_const && om_value_is(go, false))
		return 0;
	if (!most || !most->is_const || !most->data || !most->data->data || most->type.elem != OM_INT64
	    || om_shape_count(&most->shape) != 1)
		return -1;
	const int64_t n = *(const int64_t *)most->data->data;
	if (n <= 0)
		return 0;
	return (!go || (go->is_const && om_value_is(go, true))) && op->nbody == 1 && goes_on(op->body[0]) ? n : -1;
}

static int64_t
scan_rounds(const om_op *op)
{
	const int64_t scanned = om_attr_int(op, "num_scan_inputs");
	size_t n = 0;
	const int64_t *axes = om_attr_ints(op, "scan_input_axes", &n);
	int axis;

	if (op->version < 9 || scanned < 1 || scanned > op->nin || !op->in[op->nin - scanned])
		return -1;
	const om_shape *s = &op->in[op->nin - scanned]->shape;
	if (s->rank < 1 || !om_axis(n ? axes[0] : 0, s->rank, &axis))
		return -1;
	return s->dim[axis] >= 0 ? s->dim[axis] : -1;
}

uint64_t
om_op_iterations(const om_op *op)
{
	const om_control control = op->opdef ? op->opdef->control : OM_PLAIN;
	const om_tensor *trips = control == OM_LOOP && op->in[0] ? op->in[0]->data : NULL;

	if (control == OM_SCAN) {
		const int64_t n = om_trip_count(op);
		return n < 0 ? 1 : (uint64_t)n;
	}
	if (!trips || !trips->data || trips->type != OM_INT64)
		return 1;
	const int64_t n = *(const int64_t *)trips->data;
	return n > 0 ? (uint64_t)n : 0;
}

int64_t
om_trip_count(const om_op *op)
{
	switch (op->opdef ? op->opdef->control : OM_PLAIN) {
	case OM_LOOP: return loop_rounds(op);
	case OM_SCAN: return scan_rounds(op);
	case OM_IF: case OM_SEQUENCE_MAP: case OM_PLAIN: break;
	}
	return -1;
}
