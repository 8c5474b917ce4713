/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of fused operators: they are decomposed, and differentiated by parts. */
#include <config.h>

#include "grad/bodies.h"
#include "grad/grad_builder.h"
#include "grad/grad_dsl.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/op_context.h"
#include "opdef/fused_activation.h"

/* ---- Fused layers of optimizers. ---- */

/* Apply the activation that the attribute `activation` names. */
static om_value *
activated(om_grad *g, om_value *x)
{
	struct om_fused_activation a;
	om_attr attrs[OM_BEHIND_NUMBERS + 1] = {{0}};

	if (!om_fused_activation_read(om_grad_op(g), &a))
		return x;
	if (!a.type) {
		om_grad_fail(g, OM_UNSUPPORTED, "no gradient rule for its activation");
		return x;
	}
	if (a.n > 0 && !a.name[0])
		return om_emit(g, a.type, x, om_emit_number(g, x, (double)a.number[0]), om_emit_number(g, x, (double)a.number[1]));
	for (int k = 0; k < a.n; k++)
		attrs[k] = om_attr_make_float(g, a.name[k], a.number[k]);
	return om_emit_attrs(g, a.type, attrs, x);
}

/* The attributes of the op that the operator of ai.onnx has as well. */
static const om_attr *
passed_on(om_grad *g, const char *type)
{
	const om_prog *p = om_grad_prog(g);
	const om_opdef *row = p->operators->find("", type, om_opset_version(p, ""));

	return om_attrs_of(om_grad_mem(g), om_grad_op(g), row);
}

static void
fused_gemm(om_grad *g, om_value **out)
{
	out[0] = activated(g, om_emit_attrs(g, "Gemm", passed_on(g, "Gemm"), om_grad_forward_input(g, 0), om_grad_forward_input(g, 1),
		om_grad_forward_input(g, 2)));
}

static void
fused_conv(om_grad *g, om_value **out)
{
	om_value *y = om_emit_attrs(g, "Conv", passed_on(g, "Conv"), om_grad_forward_input(g, 0), om_grad_forward_input(g, 1), om_grad_forward_input(g, 2));

	out[0] = activated(g, om_grad_has(g, 3) ? ADD(y, om_grad_forward_input(g, 3)) : y);
}

static void FusedGemm_grad(om_grad *g)  { om_grad_by_decomposition(g, fused_gemm); }
static void FusedConv_grad(om_grad *g)  { om_grad_by_decomposition(g, fused_conv); }

/* ---- EmbedLayerNormalization. ---- */

static void
embed(om_grad *g, om_value **out)
{
	enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_WORDS, GAMMA, BETA, MASK, PLACES };
	om_value *places = om_grad_forward_input(g, PLACES), *sum;

	if (!places)
		places = om_emit_positions(g, om_grad_op(g)->in[IDS], 1);
	sum = ADD(om_emit(g, "Gather", om_grad_forward_input(g, WORDS), om_grad_forward_input(g, IDS)),
		om_emit(g, "Gather", om_grad_forward_input(g, POSITIONS), places));
	if (om_grad_has(g, SEGMENTS) && om_grad_has(g, SEGMENT_WORDS))
		sum = ADD(sum, om_emit(g, "Gather", om_grad_forward_input(g, SEGMENT_WORDS), om_grad_forward_input(g, SEGMENTS)));
	out[0] = om_emit_attrs(g, "LayerNormalization", OM_A(om_attr_make_float(g, "epsilon",
		om_attr_float(om_grad_op(g), "epsilon"))), sum, om_grad_forward_input(g, GAMMA), om_grad_forward_input(g, BETA));
	if (om_grad_op(g)->nout > 2)
		out[2] = sum;
}

static void EmbedLayerNormalization_grad(om_grad *g)  { om_grad_by_decomposition(g, embed); }

/* ---- DequantizeLinear: (x - zero point) scale. ---- */

/* Scales or zero points in a shape that broadcasts to x: a scalar, one per index of the axis, or one
 * per block of indices. */
static om_value *
scale_like(om_grad *g, uint32_t k)
{
	const om_op *op = om_grad_op(g);
	om_value *x = op->in[0], *v = om_grad_forward_input(g, k);
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
		return om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", axis)), v,
			om_emit(g, "Div", om_emit_positions(g, x, axis), om_emit_int64(g, block)));
	for (int d = 0; d < x->shape.rank; d++)
		dim[d] = d == axis ? -1 : 1;
	return om_emit(g, "Reshape", v, om_emit_list(g, (size_t)x->shape.rank, dim));
}

static void
dequantized(om_grad *g, om_value **out)
{
	const om_op *op = om_grad_op(g);
	om_value *scale = scale_like(g, 1);
	const om_dtype type = om_type_elem(&scale->type);
	om_value *x = om_emit_cast(g, om_grad_forward_input(g, 0), type);

	if (om_grad_has(g, 2))
		x = SUB(x, om_emit_cast(g, scale_like(g, 2), type));
	out[0] = om_emit_cast(g, MUL(x, scale), om_type_elem(&op->out[0]->type));
}

/* ---- MatMulNBits: x times the transpose of (weights - zero points) scales. ---- */

struct nbits {
	om_dtype type;               /* to compute in */
	int64_t k, n, bits, block, blocks;
};

/* `n` powers of 2^bits, the first of them with exponent `from`. */
static om_value *
powers(om_grad *g, int64_t bits, int64_t n, int64_t from)
{
	om_arena *mem = om_grad_prog(g)->mem;
	int32_t *by = OM_NEWN(mem, int32_t, (size_t)n);
	const om_tensor t = {.type = OM_INT32, .shape = om_shape_of(1, &n), .data = by};

	for (int64_t k = 0; k < n; k++)
		by[k] = 1 << (k + from) * bits;
	return om_emit_tensor(g, &t);
}

/* Unpack integers of a few bits, the lowest bits first: (rows, columns) of int32. */
static om_value *
unpacked(om_grad *g, om_value *x, const struct nbits *w, int64_t columns)
{
	const int64_t last = 2, each = 8 / w->bits;

	x = om_emit(g, "Reshape", om_emit_cast(g, x, OM_INT32), om_emit_list(g, 2, (const int64_t[]){w->n, -1}));
	if (each > 1) {
		x = DIV(om_emit_unsqueeze(g, x, 1, &last), powers(g, w->bits, each, 0));
		x = om_emit(g, "Reshape", om_emit(g, "Mod", x, powers(g, w->bits, 1, 1)), om_emit_list(g, 2, (const int64_t[]){w->n, -1}));
	}
	return om_emit_slice(g, x, 1, 0, columns);
}

/* Zero points, or scales: (n, blocks). */
static om_value *
of_blocks(om_grad *g, const struct nbits *w, om_value *x)
{
	if (om_type_elem(&x->type) == OM_UINT8)
		return om_emit_cast(g, unpacked(g, x, w, w->blocks), w->type);
	return om_emit_cast(g, om_emit(g, "Reshape", x, om_emit_list(g, 2, (const int64_t[]){w->n, w->blocks})), w->type);
}

/* From (n, blocks) to a shape that broadcasts to the weights: per group, or per block. */
static om_value *
spread(om_grad *g, const struct nbits *w, om_value *x, om_value *groups)
{
	const int64_t last = 2;

	return groups ? om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", 1)), x, om_emit_slice(g, groups, 0, 0, w->k))
		: om_emit_unsqueeze(g, x, 1, &last);
}

/* (n, k), dequantized. */
static om_value *
weights_of(om_grad *g, const struct nbits *w)
{
	enum { PACKED = 1, SCALES, ZEROS, GROUPS };
	om_value *groups = om_grad_forward_input(g, GROUPS), *zeros = om_grad_forward_input(g, ZEROS);
	om_value *x = om_emit_cast(g, unpacked(g, om_grad_forward_input(g, PACKED), w, groups ? w->k : w->blocks * w->block), w->type);

	if (!groups)
		x = om_emit(g, "Reshape", x, om_emit_list(g, 3, (const int64_t[]){w->n, w->blocks, w->block}));
	x = zeros ? SUB(x, spread(g, w, of_blocks(g, w, zeros), groups)) : PLUS(x, -(1 << (w->bits - 1)));
	x = MUL(x, spread(g, w, of_blocks(g, w, om_grad_forward_input(g, SCALES)), groups));
	if (groups)
		return x;
	return om_emit_slice(g, om_emit(g, "Reshape", x, om_emit_list(g, 2, (const int64_t[]){w->n, -1})), 1, 0, w->k);
}

static void
of_few_bits(om_grad *g, om_value **out)
{
	enum { ACTIVATION, BIAS = 5 };
	const om_op *op = om_grad_op(g);
	struct nbits w = {.k = om_attr_int(op, "K"), .n = om_attr_int(op, "N"), .bits = om_attr_int(op, "bits"),
		.block = om_attr_int(op, "block_size"),
		.type = om_type_elem(&op->in[ACTIVATION]->type) == OM_FLOAT64 ? OM_FLOAT64 : OM_FLOAT32};
	om_value *x = om_emit_cast(g, om_grad_forward_input(g, ACTIVATION), w.type);

	w.blocks = (w.k + w.block - 1) / w.block;
	x = om_emit(g, "Reshape", x, om_emit_list(g, 2, (const int64_t[]){-1, w.k}));
	x = om_emit_attrs(g, "Gemm", OM_A(om_attr_make_int(g, "transB", 1)), x, weights_of(g, &w));
	if (om_grad_has(g, BIAS))
		x = ADD(x, om_emit_cast(g, om_grad_forward_input(g, BIAS), w.type));
	out[0] = om_emit_reshape_as(g, om_emit_cast(g, x, om_type_elem(&op->in[ACTIVATION]->type)), op->out[0]);
}

static void DequantizeLinear_grad(om_grad *g)  { om_grad_by_decomposition(g, dequantized); }
static void MatMulNBits_grad(om_grad *g)       { om_grad_by_decomposition(g, of_few_bits); }

/* ---- The table. ---- */

const om_gradient om_gradients_contrib_fused[] = {
	{.name = "DequantizeLinear", .since = 10, .rule = DequantizeLinear_grad},
	{.domain = "com.microsoft", .name = "EmbedLayerNormalization", .since = 1, .rule = EmbedLayerNormalization_grad},
	{.domain = "com.microsoft", .name = "FusedGemm", .since = 1, .rule = FusedGemm_grad},
	{.domain = "com.microsoft", .name = "FusedConv", .since = 1, .rule = FusedConv_grad},
	{.domain = "com.microsoft", .name = "MatMulNBits", .since = 1, .rule = MatMulNBits_grad},
	{0}
};
