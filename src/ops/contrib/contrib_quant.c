/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft on quantized tensors: each dequantizes its inputs, applies the
 * standard operator, and quantizes the result. */
#include <config.h>

#include "ops/family.h"
#include "ops/slices.h"
#include "ir/query.h"
#include "opdef/numbers.h"
#include "opdef/composite.h"
#include "opdef/device_kernel.h"
#include "opdef/geometry/rnn.h"

typedef const om_tensor *tensor;

/* ---- Quantization and dequantization. ---- */

/* Input `k`, dequantized; its scale and zero point are the next inputs. */
static tensor
numbers(om_composite *p, uint32_t k)
{
	return OM_SUBBUFFER(p, "DequantizeLinear", OM_PLAINLY, om_composite_add(p, k), om_composite_add(p, k + 1), om_composite_add(p, k + 2));
}

/* Quantize to `type` with the scale and zero point from input `k` on. */
static tensor
bytes(om_composite *p, tensor x, uint32_t k, om_dtype type)
{
	if (om_composite_add(p, k + 1))
		return OM_SUBBUFFER(p, "QuantizeLinear", OM_PLAINLY, x, om_composite_add(p, k), om_composite_add(p, k + 1));
	return OM_SUBBUFFER(p, "QuantizeLinear", OM_WITH(OM_INT("output_dtype", type)), x, om_composite_add(p, k));
}

/* Output 0: quantized with the parameters from input `k` on, to the type of input 0. */
static void
give_bytes(om_composite *p, tensor x, uint32_t k)
{
	om_composite_set_output(p, 0, bytes(p, x, k, om_composite_add(p, 0)->type));
	if (p->doing == OM_INFERRING)
		p->c->out[0].type = om_composite_add(p, 0)->type;
}

/* ---- Elementwise. ---- */

static void
qlinear_add(om_composite *p)
{
	give_bytes(p, OM_SUBBUFFER(p, "Add", OM_PLAINLY, numbers(p, 0), numbers(p, 3)), 6);
}
OM_COMPOSITE_COLUMNS(qlinear_add)

static void
qlinear_mul(om_composite *p)
{
	give_bytes(p, OM_SUBBUFFER(p, "Mul", OM_PLAINLY, numbers(p, 0), numbers(p, 3)), 6);
}
OM_COMPOSITE_COLUMNS(qlinear_mul)

static void
qlinear_leaky_relu(om_composite *p)
{
	give_bytes(p, OM_SUBBUFFER(p, "LeakyRelu", OM_WITH(OM_REAL("alpha", om_attr_float(p->c->op, "alpha"))),
		numbers(p, 0)), 3);
}
OM_COMPOSITE_COLUMNS(qlinear_leaky_relu)

static void
qlinear_sigmoid(om_composite *p)
{
	give_bytes(p, OM_SUBBUFFER(p, "Sigmoid", OM_PLAINLY, numbers(p, 0)), 3);
}
OM_COMPOSITE_COLUMNS(qlinear_sigmoid)

/* The meaning of `axis` depends on the opset of Softmax from which the op was made. */
static void
qlinear_softmax(om_composite *p)
{
	const int64_t opset = om_attr_int(p->c->op, "opset");
	tensor x = numbers(p, 0);

	give_bytes(p, om_part_one(p, "Softmax", opset < 13 ? 11 : 13, OM_WITH(OM_INT("axis", om_attr_int(p->c->op, "axis"))),
		1, &x), 3);
}
OM_COMPOSITE_COLUMNS(qlinear_softmax)

static void
qlinear_where(om_composite *p)
{
	tensor y = OM_SUBBUFFER(p, "Where", OM_PLAINLY, om_composite_add(p, 0), numbers(p, 1), numbers(p, 4));

	om_composite_set_output(p, 0, bytes(p, y, 7, om_composite_add(p, 1)->type));
}
OM_COMPOSITE_COLUMNS(qlinear_where)

/* ---- Joining, pooling. ---- */

static void
qlinear_concat(om_composite *p)
{
	const uint32_t n = p->c->op->nin < 2 ? 0 : (p->c->op->nin - 2) / 3;
	tensor *part = OM_NEWN(p->c->mem, tensor, n + 1);

	if (n == 0 || p->c->op->nin != 2 + 3 * n) {
		om_composite_refuse(p, OM_INVALID, "the inputs must come as tensor, scale and zero point");
		return;
	}
	for (uint32_t k = 0; k < n; k++) {
		if (!om_composite_add(p, 2 + 3 * k) || !om_composite_add(p, 3 + 3 * k)) {
			om_composite_refuse(p, OM_INVALID, "an input or its scale is omitted");
			return;
		}
		part[k] = bytes(p, numbers(p, 2 + 3 * k), 0, om_composite_add(p, 1)->type);
	}
	om_composite_set_output(p, 0, om_part_one(p, "Concat", 24, OM_WITH(OM_INT("axis", om_attr_int(p->c->op, "axis"))), n, part));
}
OM_COMPOSITE_COLUMNS(qlinear_concat)

/* Move the channels to the second axis, or back to the last. */
static tensor
with_channels(om_composite *p, tensor x, bool back)
{
	if (!om_attr_int(p->c->op, "channels_last"))
		return x;
	return back ? om_composite_channels_last(p, x) : om_composite_channels_first(p, x);
}

static void
pooled(om_composite *p, const char *type)
{
	tensor x = with_channels(p, numbers(p, 0), false);

	if (om_attr_int(p->c->op, "channels_last") && x->shape.rank < 0) {
		p->c->out[0].type = om_composite_add(p, 0)->type;
		return;
	}
	give_bytes(p, with_channels(p, OM_SUBBUFFER(p, type, om_composite_forwarded(p, type), x), true), 3);
}

static void
qlinear_global_pool(om_composite *p)
{
	pooled(p, "GlobalAveragePool");
}
OM_COMPOSITE_COLUMNS(qlinear_global_pool)

static void
qlinear_average_pool(om_composite *p)
{
	pooled(p, "AveragePool");
}
OM_COMPOSITE_COLUMNS(qlinear_average_pool)

static void
qlinear_reduce_mean(om_composite *p)
{
	size_t n;
	const int64_t *axes = om_attr_ints(p->c->op, "axes", &n);

	give_bytes(p, OM_SUBBUFFER(p, "ReduceMean", OM_WITH(OM_INT("keepdims", om_attr_int(p->c->op, "keepdims"))),
		numbers(p, 0), om_composite_ints(p, n, axes)), 3);
}
OM_COMPOSITE_COLUMNS(qlinear_reduce_mean)

static void
qlinear_conv(om_composite *p)
{
	tensor x = with_channels(p, om_composite_add(p, 0), false);

	if (om_attr_int(p->c->op, "channels_last") && x->shape.rank < 0) {
		p->c->out[0].type = om_composite_add(p, 7)->type;
		return;
	}
	om_composite_set_output(p, 0, with_channels(p, OM_SUBBUFFER(p, "QLinearConv", om_composite_forwarded(p, "QLinearConv"), x, om_composite_add(p, 1),
		om_composite_add(p, 2), om_composite_add(p, 3), om_composite_add(p, 4), om_composite_add(p, 5), om_composite_add(p, 6),
		om_composite_add(p, 7), om_composite_add(p, 8)), true));
}
OM_COMPOSITE_COLUMNS(qlinear_conv)

/* ---- QuantizeLinear, DequantizeLinear: before the standard had such types. ---- */

static void
quantize(om_composite *p)
{
	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "QuantizeLinear", om_composite_forwarded(p, "QuantizeLinear"), om_composite_add(p, 0), om_composite_add(p, 1),
		om_composite_add(p, 2)));
}
OM_COMPOSITE_COLUMNS(quantize)

static void
dequantize(om_composite *p)
{
	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "DequantizeLinear", om_composite_forwarded(p, "DequantizeLinear"), om_composite_add(p, 0),
		om_composite_add(p, 1), om_composite_add(p, 2)));
}
OM_COMPOSITE_COLUMNS(dequantize)

/* ---- Matrix products. ---- */

/* Integer product, multiplied by the scale of each side, plus a bias, in floating point. */
static tensor
scaled(om_composite *p, tensor sum, tensor left, tensor right, tensor bias)
{
	tensor y = OM_SUBBUFFER(p, "Cast", OM_WITH(OM_INT("to", OM_FLOAT32)), sum);

	y = OM_SUBBUFFER(p, "Mul", OM_PLAINLY, y, OM_SUBBUFFER(p, "Mul", OM_PLAINLY, left, right));
	return bias ? OM_SUBBUFFER(p, "Add", OM_PLAINLY, y, bias) : y;
}

static void
dynamic_matmul(om_composite *p)
{
	enum { A, B, SCALE, ZERO, BIAS };
	tensor in[] = {om_composite_add(p, A)}, q[3];

	om_part_run(p, "DynamicQuantizeLinear", 24, OM_PLAINLY, 1, in, 3, q);
	om_composite_set_output(p, 0, scaled(p, OM_SUBBUFFER(p, "MatMulInteger", OM_PLAINLY, q[0], om_composite_add(p, B), q[2],
		om_composite_add(p, ZERO)), q[1], om_composite_add(p, SCALE), om_composite_add(p, BIAS)));
}
OM_COMPOSITE_COLUMNS(dynamic_matmul)

static void
integer_to_float(om_composite *p)
{
	enum { A, B, A_SCALE, B_SCALE, A_ZERO, B_ZERO, BIAS };

	om_composite_set_output(p, 0, scaled(p, OM_SUBBUFFER(p, "MatMulInteger", OM_PLAINLY, om_composite_add(p, A), om_composite_add(p, B),
		om_composite_add(p, A_ZERO), om_composite_add(p, B_ZERO)), om_composite_add(p, A_SCALE), om_composite_add(p, B_SCALE),
		om_composite_add(p, BIAS)));
}
OM_COMPOSITE_COLUMNS(integer_to_float)

static tensor
transposed(om_composite *p, tensor x, const char *attr)
{
	return om_attr_int(p->c->op, attr) ? OM_SUBBUFFER(p, "Transpose", OM_WITH(OM_LIST("perm", ((const int64_t[]){1, 0}), 2)), x)
		: x;
}

/* C is in units of the product of both scales; without an output scale the result remains
 * floating point. */
static void
quantized_gemm(om_composite *p)
{
	enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };
	tensor sum = OM_SUBBUFFER(p, "MatMulInteger", OM_PLAINLY, transposed(p, om_composite_add(p, A), "transA"),
		transposed(p, om_composite_add(p, B), "transB"), om_composite_add(p, A_ZERO), om_composite_add(p, B_ZERO));

	if (om_composite_add(p, C))
		sum = OM_SUBBUFFER(p, "Add", OM_PLAINLY, sum, om_composite_add(p, C));
	tensor y = scaled(p, sum, om_composite_add(p, A_SCALE), om_composite_add(p, B_SCALE), NULL);
	y = OM_SUBBUFFER(p, "Mul", OM_PLAINLY, y, om_composite_real(p, OM_FLOAT32, om_attr_float(p->c->op, "alpha")));
	om_composite_set_output(p, 0, om_composite_add(p, Y_SCALE) ? bytes(p, y, Y_SCALE, om_composite_add(p, A)->type) : y);
}
OM_COMPOSITE_COLUMNS(quantized_gemm)

/* ---- Operator definitions. ---- */

static const om_attr_spec leaky_attrs[] = {{"alpha", OM_ATTR_FLOAT, .f = 0.01f}, {0}};
static const om_attr_spec softmax_attrs[] = {
	{"axis", OM_ATTR_INT, .i = -1},
	{"opset", OM_ATTR_INT, .required = true},
	{0}
};
static const om_attr_spec concat_attrs[] = {{"axis", OM_ATTR_INT, .required = true}, {0}};
static const om_attr_spec global_attrs[] = {{"channels_last", OM_ATTR_INT}, {0}};
static const om_attr_spec reduce_attrs[] = {
	{"axes", OM_ATTR_INTS, .required = true},
	{"keepdims", OM_ATTR_INT, .required = true},
	{0}
};
static const om_attr_spec pool_attrs[] = {
	{"auto_pad", OM_ATTR_STRING, .s = "NOTSET"},
	{"ceil_mode", OM_ATTR_INT},
	{"channels_last", OM_ATTR_INT},
	{"count_include_pad", OM_ATTR_INT},
	{"kernel_shape", OM_ATTR_INTS, .required = true},
	{"pads", OM_ATTR_INTS},
	{"strides", OM_ATTR_INTS},
	{0}
};
static const om_attr_spec conv_attrs[] = {
	{"auto_pad", OM_ATTR_STRING, .s = "NOTSET"},
	{"channels_last", OM_ATTR_INT},
	{"dilations", OM_ATTR_INTS},
	{"group", OM_ATTR_INT, .i = 1},
	{"kernel_shape", OM_ATTR_INTS},
	{"pads", OM_ATTR_INTS},
	{"strides", OM_ATTR_INTS},
	{0}
};
/* ---- DynamicQuantizeLSTM. ---- */

enum { WEIGHTS = 1, RECURRENCE = 2, FIRST_SCALE = 8 };

/* Scales or zero points of shape (directions) or (directions, gates), reshaped to broadcast with
 * (directions, width, gates). */
static tensor
beside(om_composite *p, uint32_t k)
{
	static const int64_t dims[] = {0, 1, -1};

	return om_composite_shaped(p, OM_SUBBUFFER(p, "Cast", OM_WITH(OM_INT("to", OM_FLOAT32)), om_composite_add(p, k)), 3, dims);
}

/* Weights dequantized and in the layout of LSTM; their scale is input `k`. */
static tensor
weights(om_composite *p, uint32_t in, uint32_t k)
{
	static const int64_t perm[] = {0, 2, 1};
	tensor w = OM_SUBBUFFER(p, "Cast", OM_WITH(OM_INT("to", OM_FLOAT32)), om_composite_add(p, in));

	if (om_composite_add(p, k + 1))
		w = OM_SUBBUFFER(p, "Sub", OM_PLAINLY, w, beside(p, k + 1));
	w = OM_SUBBUFFER(p, "Mul", OM_PLAINLY, w, beside(p, k));
	return OM_SUBBUFFER(p, "Transpose", OM_WITH(OM_LIST("perm", perm, 3)), w);
}

/* The input is quantized once, the states for every product with their weights (OM_RNN_BYTES).
 * Products of dequantized values equal integer products times the scales. */
static void
dynamic_lstm(om_composite *p)
{
	static const int64_t yes = 1;
	tensor x[] = {om_composite_add(p, 0)}, q[3], in[FIRST_SCALE], out[3];
	const om_attr *had = om_composite_forwarded(p, "LSTM");
	size_t n = 0;

	while (had[n].name)
		n++;
	om_attr *attrs = OM_NEWN(p->c->mem, om_attr, n + 2);
	memcpy(attrs, had, n * sizeof *attrs);
	attrs[n] = (om_attr){.name = OM_RNN_BYTES, .kind = OM_ATTR_INT, .n = 1, .i = &yes};
	om_part_run(p, "DynamicQuantizeLinear", 24, OM_PLAINLY, 1, x, 3, q);
	for (uint32_t k = 0; k < FIRST_SCALE; k++)
		in[k] = om_composite_add(p, k);
	in[0] = OM_SUBBUFFER(p, "DequantizeLinear", OM_PLAINLY, q[0], q[1], q[2]);
	in[WEIGHTS] = weights(p, WEIGHTS, FIRST_SCALE);
	in[RECURRENCE] = weights(p, RECURRENCE, FIRST_SCALE + 2);
	om_part_run(p, "LSTM", 24, attrs, FIRST_SCALE, in, 3, out);
	for (uint32_t k = 0; k < 3; k++)
		om_composite_set_output(p, k, out[k]);
}
OM_COMPOSITE_COLUMNS(dynamic_lstm)

static const om_attr_spec gemm_attrs[] = {
	{"alpha", OM_ATTR_FLOAT, .f = 1},
	{"transA", OM_ATTR_INT},
	{"transB", OM_ATTR_INT},
	{0}
};
static const om_attr_spec axis_attrs[] = {{"axis", OM_ATTR_INT, .i = 1}, {0}};

static const om_attr_spec lstm_attrs[] = {
	{"activation_alpha", OM_ATTR_FLOATS},
	{"activation_beta", OM_ATTR_FLOATS},
	{"activations", OM_ATTR_STRINGS},
	{"clip", OM_ATTR_FLOAT},
	{"direction", OM_ATTR_STRING, .s = "forward"},
	{"hidden_size", OM_ATTR_INT},
	{"input_forget", OM_ATTR_INT},
	{0}
};

#define CONTRIB(called, text, least, most, list, made, ...)                    \
	{.domain = "com.microsoft", .name = called, .brief = text, .since = 1, .min_in = least, .max_in = most, \
	 .min_out = 1, .max_out = 1, .attrs = list, OM_COMPOSITE(made), __VA_ARGS__}

/* The constituent operators determine whether inputs in the middle may be omitted. */
const om_opdef om_ops_contrib_quant[] = {
	CONTRIB("QLinearAdd", "sum of quantized tensors, quantized", 2, 8, NULL, qlinear_add, .slice = om_slice_quantized_binary,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), LIKE(0), OF(FLOAT32), LIKE(0), OF(FLOAT32), LIKE(0)}),
	CONTRIB("QLinearMul", "product of quantized tensors, quantized", 2, 8, NULL, qlinear_mul, .slice = om_slice_quantized_binary,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), LIKE(0), OF(FLOAT32), LIKE(0), OF(FLOAT32), LIKE(0)}),
	CONTRIB("QLinearLeakyRelu", "LeakyRelu of a quantized tensor, quantized", 2, 5, leaky_attrs, qlinear_leaky_relu, .slice = om_slice_quantized_unary,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), OF(FLOAT32), LIKE(0)}),
	CONTRIB("QLinearSigmoid", "sigmoid of a quantized tensor, quantized", 2, 5, NULL, qlinear_sigmoid, .slice = om_slice_quantized_unary,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), OF(FLOAT32), LIKE(0)}),
	CONTRIB("QLinearSoftmax", "softmax of a quantized tensor, quantized", 2, 5, softmax_attrs, qlinear_softmax, .slice = om_slice_quantized_softmax,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), OF(FLOAT32), LIKE(0)}),
	CONTRIB("QLinearWhere", "x where the condition holds, y elsewhere; quantized", 9, 9, NULL, qlinear_where, .slice = om_slice_quantized_where,
		.input_types = {OF(BOOL), OF_BYTES, OF(FLOAT32), LIKE(1), LIKE(1), LIKE(2), LIKE(1), LIKE(2),
			LIKE(1)}),
	CONTRIB("QLinearConcat", "concatenation of quantized tensors, quantized", 2, OM_VARIADIC, concat_attrs,
		qlinear_concat, .slice = om_slice_quantized_concat,
		.input_types = {OF(FLOAT32), OF_BYTES}),
	CONTRIB("QLinearGlobalAveragePool", "mean over each quantized channel, quantized", 2, 5, global_attrs,
		qlinear_global_pool, .slice = om_slice_quantized_global_pool,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), OF(FLOAT32), LIKE(0)}),
	CONTRIB("QLinearAveragePool", "quantized mean over a sliding window", 2, 5, pool_attrs, qlinear_average_pool, .slice = om_slice_quantized_pool,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), OF(FLOAT32), LIKE(0)}),
	CONTRIB("QLinearReduceMean", "quantized mean over axes", 2, 5, reduce_attrs, qlinear_reduce_mean, .slice = om_slice_quantized_mean,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), OF(FLOAT32), LIKE(0)}),
	CONTRIB("QLinearConv", "convolution of quantized images, quantized", 8, 9, conv_attrs, qlinear_conv, .slice = om_slice_quantized_conv,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), OF_BYTES, OF(FLOAT32), LIKE(3), OF(FLOAT32),
			OF_BYTES, OF(INT32)}),
	CONTRIB("QuantizeLinear", "quantization by scale and zero point", 2, 3, axis_attrs, quantize, .slice = om_slice_linear,
		.input_types = {OF(FLOAT16) | OF(FLOAT32), LIKE(0),
			OF_BYTES | OF(INT16) | OF(INT4) | OF(UINT16) | OF(UINT4)}),
	CONTRIB("DequantizeLinear", "dequantization by scale and zero point", 2, 3, axis_attrs, dequantize, .slice = om_slice_linear,
		.input_types = {OF_BYTES | OF(INT16) | OF(INT32) | OF(INT4) | OF(UINT16) | OF(UINT4),
			OF(FLOAT16) | OF(FLOAT32), LIKE(0)}),
	CONTRIB("DynamicQuantizeMatMul",
		"product with a quantized matrix, int8 arithmetic", 3, 5, NULL, dynamic_matmul, .slice = om_slice_matmul_dynamic,
		.input_types = {OF(FLOAT32), OF_BYTES, LIKE(0), LIKE(1), LIKE(0)}),
	{.domain = "com.microsoft", .name = "DynamicQuantizeLSTM", .since = 1, .min_in = 3, .max_in = 12, .min_out = 0,
	 .max_out = 3, .brief = "LSTM with quantized weights, int8 arithmetic", .attrs = lstm_attrs, OM_COMPOSITE(dynamic_lstm),
	 .input_types = {OF(FLOAT32), OF_BYTES, OF_BYTES, LIKE(0), OF(INT32), LIKE(0), LIKE(0), LIKE(0)}},
	CONTRIB("MatMulIntegerToFloat",
		"product of quantized matrices, floating-point result", 4, 7, NULL, integer_to_float, .slice = om_slice_matmul_to_float,
		.input_types = {OF_BYTES, OF_BYTES, OF(FLOAT16) | OF(FLOAT32), LIKE(2), LIKE(0), LIKE(1), LIKE(2)}),
	CONTRIB("QGemm", "alpha A B + C of quantized matrices", 6, 9, gemm_attrs, quantized_gemm, .slice = om_slice_gemm_quantized,
		.input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), OF_BYTES, LIKE(1), LIKE(3), OF(INT32), LIKE(1),
			OF_BYTES}),
	{0}
};

const om_kernel om_kernels_contrib_quant[] = {
	OM_PARTS_KERNEL("QLinearAdd", qlinear_add),
	OM_PARTS_KERNEL("QLinearMul", qlinear_mul),
	OM_PARTS_KERNEL("QLinearLeakyRelu", qlinear_leaky_relu),
	OM_PARTS_KERNEL("QLinearSigmoid", qlinear_sigmoid),
	OM_PARTS_KERNEL("QLinearSoftmax", qlinear_softmax),
	OM_PARTS_KERNEL("QLinearWhere", qlinear_where),
	OM_PARTS_KERNEL("QLinearConcat", qlinear_concat),
	OM_PARTS_KERNEL("QLinearGlobalAveragePool", qlinear_global_pool),
	OM_PARTS_KERNEL("QLinearAveragePool", qlinear_average_pool),
	OM_PARTS_KERNEL("QLinearReduceMean", qlinear_reduce_mean),
	OM_PARTS_KERNEL("QLinearConv", qlinear_conv),
	OM_PARTS_KERNEL("QuantizeLinear", quantize),
	OM_PARTS_KERNEL("DequantizeLinear", dequantize),
	OM_PARTS_KERNEL("DynamicQuantizeMatMul", dynamic_matmul),
	OM_PARTS_KERNEL("MatMulIntegerToFloat", integer_to_float),
	OM_PARTS_KERNEL("QGemm", quantized_gemm),
	OM_PARTS_KERNEL("DynamicQuantizeLSTM", dynamic_lstm),
	{0}
};

/* Those whose parts have kernels for devices. */
OM_COMPOSITE_DEVICE(qlinear_add)
OM_COMPOSITE_DEVICE(qlinear_mul)
OM_COMPOSITE_DEVICE(qlinear_leaky_relu)
OM_COMPOSITE_DEVICE(qlinear_sigmoid)
OM_COMPOSITE_DEVICE(qlinear_softmax)
OM_COMPOSITE_DEVICE(qlinear_where)
OM_COMPOSITE_DEVICE(qlinear_concat)
OM_COMPOSITE_DEVICE(qlinear_global_pool)
OM_COMPOSITE_DEVICE(qlinear_average_pool)
OM_COMPOSITE_DEVICE(qlinear_reduce_mean)
OM_COMPOSITE_DEVICE(dynamic_matmul)
OM_COMPOSITE_DEVICE(quantized_gemm)

const om_device_kernel om_device_kernels_contrib_quant[] = {
	OM_PARTS_DEVICE("QLinearAdd", qlinear_add),
	OM_PARTS_DEVICE("QLinearMul", qlinear_mul),
	OM_PARTS_DEVICE("QLinearLeakyRelu", qlinear_leaky_relu),
	OM_PARTS_DEVICE("QLinearSigmoid", qlinear_sigmoid),
	OM_PARTS_DEVICE("QLinearSoftmax", qlinear_softmax),
	OM_PARTS_DEVICE("QLinearWhere", qlinear_where),
	OM_PARTS_DEVICE("QLinearConcat", qlinear_concat),
	OM_PARTS_DEVICE("QLinearGlobalAveragePool", qlinear_global_pool),
	OM_PARTS_DEVICE("QLinearAveragePool", qlinear_average_pool),
	OM_PARTS_DEVICE("QLinearReduceMean", qlinear_reduce_mean),
	OM_PARTS_DEVICE("DynamicQuantizeMatMul", dynamic_matmul),
	OM_PARTS_DEVICE("QGemm", quantized_gemm),
	{0}
};
