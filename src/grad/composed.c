/* Gradients of operators that stand for several: they are built once more of those, and
 * differentiated by parts. */
#include <config.h>

#include "grad/bodies.h"
#include "grad/short.h"
#include "ops/behind.h"

/* ---- Layers that optimizers put together. ---- */

/* What the attribute `activation` says. */
static om_value *
activated(om_grad *g, om_value *x)
{
	struct om_behind a;
	om_attr attrs[OM_BEHIND_NUMBERS + 1] = {{0}};

	if (!om_behind_read(om_grad_op(g), &a))
		return x;
	if (!a.type) {
		om_grad_fail(g, OM_UNSUPPORTED, "there is no gradient of its activation");
		return x;
	}
	if (a.n > 0 && !a.name[0])
		return om_g(g, a.type, x, om_g_number(g, x, (double)a.number[0]), om_g_number(g, x, (double)a.number[1]));
	for (int k = 0; k < a.n; k++)
		attrs[k] = om_a_float(g, a.name[k], a.number[k]);
	return om_g_with(g, a.type, attrs, x);
}

/* The attributes of the op that an operator of ai.onnx knows too. */
static const om_attr *
passed_on(om_grad *g, const char *type)
{
	const om_row *row = om_row_find("", type, om_opset_version(om_grad_prog(g), ""));

	return om_attrs_of(om_grad_mem(g), om_grad_op(g), row);
}

static void
fused_gemm(om_grad *g, om_value **out)
{
	out[0] = activated(g, om_g_with(g, "Gemm", passed_on(g, "Gemm"), om_grad_in(g, 0), om_grad_in(g, 1),
		om_grad_in(g, 2)));
}

static void
fused_conv(om_grad *g, om_value **out)
{
	om_value *y = om_g_with(g, "Conv", passed_on(g, "Conv"), om_grad_in(g, 0), om_grad_in(g, 1), om_grad_in(g, 2));

	out[0] = activated(g, om_grad_has(g, 3) ? ADD(y, om_grad_in(g, 3)) : y);
}

void om_grad_FusedGemm(om_grad *g)  { om_grad_by_parts(g, fused_gemm); }
void om_grad_FusedConv(om_grad *g)  { om_grad_by_parts(g, fused_conv); }

/* ---- EmbedLayerNormalization. ---- */

static void
embed(om_grad *g, om_value **out)
{
	enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_WORDS, GAMMA, BETA, MASK, PLACES };
	om_value *places = om_grad_in(g, PLACES), *sum;

	if (!places)
		places = om_g_places(g, om_grad_op(g)->in[IDS], 1);
	sum = ADD(om_g(g, "Gather", om_grad_in(g, WORDS), om_grad_in(g, IDS)),
		om_g(g, "Gather", om_grad_in(g, POSITIONS), places));
	if (om_grad_has(g, SEGMENTS) && om_grad_has(g, SEGMENT_WORDS))
		sum = ADD(sum, om_g(g, "Gather", om_grad_in(g, SEGMENT_WORDS), om_grad_in(g, SEGMENTS)));
	out[0] = om_g_with(g, "LayerNormalization", OM_A(om_a_float(g, "epsilon",
		om_attr_float(om_grad_op(g), "epsilon"))), sum, om_grad_in(g, GAMMA), om_grad_in(g, BETA));
	if (om_grad_op(g)->nout > 2)
		out[2] = sum;
}

void om_grad_EmbedLayerNormalization(om_grad *g)  { om_grad_by_parts(g, embed); }

/* ---- DequantizeLinear: (x - zero point) scale. ---- */

/* Scales, or zero points, as they are broadcast to x: one of them, one for each index of the
 * axis, or one for a block of those. */
static om_value *
scale_like(om_grad *g, uint32_t k)
{
	const om_op *op = om_grad_op(g);
	om_value *x = op->in[0], *v = om_grad_in(g, k);
	const int64_t block = om_attr_find(op, "block_size") ? om_attr_int(op, "block_size") : 0;
	int64_t dim[OM_MAX_RANK];
	int axis;

	if (v->shape.rank == 0)
		return v;
	if (x->shape.rank < 0 || v->shape.rank < 0 || !om_axis(om_attr_int(op, "axis"), x->shape.rank, &axis)) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of an input is not known");
		return v;
	}
	if (block > 0)
		return om_g_with(g, "Gather", OM_A(om_a_int(g, "axis", axis)), v,
			om_g(g, "Div", om_g_places(g, x, axis), om_g_int64(g, block)));
	for (int d = 0; d < x->shape.rank; d++)
		dim[d] = d == axis ? -1 : 1;
	return om_g(g, "Reshape", v, om_g_list(g, (size_t)x->shape.rank, dim));
}

static void
dequantized(om_grad *g, om_value **out)
{
	const om_op *op = om_grad_op(g);
	om_value *scale = scale_like(g, 1);
	const om_dtype type = om_type_elem(&scale->type);
	om_value *x = om_g_cast(g, om_grad_in(g, 0), type);

	if (om_grad_has(g, 2))
		x = SUB(x, om_g_cast(g, scale_like(g, 2), type));
	out[0] = om_g_cast(g, MUL(x, scale), om_type_elem(&op->out[0]->type));
}

void om_grad_DequantizeLinear(om_grad *g)  { om_grad_by_parts(g, dequantized); }
