/* Shapes that elements of inputs decide.
 *
 * A plan has a size for every output.  Where that size follows from types, shapes and constants, inference has proven
 * it.  Otherwise it rests on what the file declares, and the elements of a run may say something else: then the kernel
 * would write past its output, or leave a part of it unwritten.  Such an op is inferred again in every run, before its
 * kernel is called, so that no kernel has to defend itself. */
#include <config.h>

#include "base/shape.h"
#include "exec/exec_internal.h"
#include "opdef/op_context.h"

static om_status
infer(om_op_context *c)
{
	for (uint32_t k = 0; k < c->op->nout; k++)
		c->out[k] = (om_tensor){.shape = om_shape_unknown()};
	return c->op->opdef->infer(c);
}

static bool
is_planned_as(const om_shape *found, const om_shape *planned)
{
	bool same = found->rank == planned->rank;

	for (int d = 0; same && d < planned->rank; d++)
		same = found->dim[d] == planned->dim[d];
	return same;
}

static bool
is_infer_complete(om_op_context *c, const om_op *op)
{
	if (infer(c) != OM_OK)
		return false;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && op->out[k]->type.kind == OM_TENSOR
		    && !is_planned_as(&c->out[k].shape, &op->out[k]->shape))
			return false;
	return true;
}

bool
om_step_is_steered(const om_op *op)
{
	om_arena *mem = om_arena_new();
	om_op_context c;

	om_op_context_init(&c, NULL, mem, op);
	c.keep = mem;
	c.out_type = OM_NEWN(mem, om_type, op->nout);
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && (!op->in[k]->is_const || op->in[k]->is_overridable))
			((om_tensor *)c.in)[k].data = NULL;
	const bool steered = op->opdef->infer && !is_infer_complete(&c, op);
	om_arena_free(mem);
	return steered;
}

om_status
om_step_check_shapes(struct step *s)
{
	const om_op *op = s->op;
	om_op_context c = s->call;
	char want[256], got[256];

	c.mem = c.keep = s->exec->call;
	c.out = OM_NEWN(c.mem, om_tensor, op->nout);
	c.out_type = OM_NEWN(c.mem, om_type, op->nout);
	OM_TRY(infer(&c));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && op->out[k]->type.kind == OM_TENSOR && !is_planned_as(&c.out[k].shape, &s->out[k].shape))
			return om_op_fail(c.session, OM_RUN, op, "output %u was planned as %s, but the inputs make it %s", k,
				om_shape_text(&s->out[k].shape, want, sizeof want), om_shape_text(&c.out[k].shape, got, sizeof got));
	return OM_OK;
}
