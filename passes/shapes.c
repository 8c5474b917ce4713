/* shapes: infer type and shape of every value, forwards.
 *
 * Shape arithmetic (Shape, Gather, Concat ... on a few integers) is computed on
 * the way, because later shapes depend on it.
 */
#include <config.h>

#include "opdef/op_context.h"
#include "onnxmem/pass.h"

static om_status
run(om_run *r, om_prog *p)
{
	OM_TRY(om_block_infer(r->session, p, p->first));
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->values[k]->type.kind == OM_TENSOR && !om_shape_is_known(&p->values[k]->shape))
			om_count(r, "unknown_shapes", 1);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"unknown_shapes", "tensors whose shape is not known"},
	{0}
};

OM_PASS(
	.name = "shapes",
	.brief = "infer the type and the shape of every value",
	.needs = OM_HAS_INLINE,
	.gives = OM_HAS_SHAPES,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.run = run)
