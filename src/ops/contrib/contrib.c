/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft that exporters and optimizers write: activations, skip
 * normalizations, matrix products and convolutions with fused operators. Each is a composite of
 * standard operators. */
#include <config.h>

#include "base/shape.h"
#include "opdef/fused_activation.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/op_context.h"
#include "ops/tensor/index.h"
#include "opdef/numbers.h"
#include "opdef/composite.h"
#include "opdef/device_kernel.h"

typedef const om_tensor *tensor;

/* ---- Activations. ---- */

static void
gelu(om_composite *p)
{
	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "Gelu", OM_PLAINLY, om_composite_add(p, 0)));
}
OM_COMPOSITE_COLUMNS(gelu)

static void
fast_gelu(om_composite *p)
{
	tensor x = om_composite_add(p, 0);

	if (om_composite_add(p, 1))
		x = OM_SUBBUFFER(p, "Add", OM_PLAINLY, x, om_composite_add(p, 1));
	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "Gelu", OM_WITH(OM_WORD("approximate", "tanh")), x));
}
OM_COMPOSITE_COLUMNS(fast_gelu)

static void
bias_gelu(om_composite *p)
{
	tensor x = OM_SUBBUFFER(p, "Add", OM_PLAINLY, om_composite_add(p, 0), om_composite_add(p, 1));

	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "Gelu", OM_PLAINLY, x));
}
OM_COMPOSITE_COLUMNS(bias_gelu)

static void
quick_gelu(om_composite *p)
{
	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "Swish", OM_WITH(OM_REAL("alpha", om_attr_float(p->c->op, "alpha"))),
		om_composite_add(p, 0)));
}
OM_COMPOSITE_COLUMNS(quick_gelu)

/* Apply the activation given by the attribute `activation`. */
static tensor
activated(om_composite *p, tensor x)
{
	struct om_fused_activation a;
	om_attr attrs[OM_BEHIND_NUMBERS + 1] = {OM_NO_MORE};

	if (!om_fused_activation_read(p->c->op, &a))
		return x;
	if (!a.type) {
		om_composite_refuse(p, OM_UNSUPPORTED, "no kernel for this activation");
		return x;
	}
	if (a.n == 0 || a.name[0]) {
		for (int k = 0; k < a.n; k++)
			attrs[k] = (om_attr){.name = a.name[k], .kind = OM_ATTR_FLOAT, .n = 1, .f = &a.number[k]};
		return OM_SUBBUFFER(p, a.type, attrs, x);
	}
	if (x->type == OM_UNDEFINED)
		return x;
	return OM_SUBBUFFER(p, a.type, OM_PLAINLY, x, om_composite_real(p, x->type, a.number[0]), om_composite_real(p, x->type, a.number[1]));
}

/* ---- Normalizations. ---- */

static const om_attr_spec norm_attrs[] = {
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-12f},
	{0}
};

static const om_attr_spec simplified_attrs[] = {
	{"axis", OM_ATTR_INT, .i = -1},
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-5f},
	{"stash_type", OM_ATTR_INT, .i = 1},
	{0}
};

/* The reciprocal root mean square along the last axis. */
static tensor
root_mean_square(om_composite *p, tensor x, int64_t axis, float epsilon)
{
	tensor square, mean;

	x = OM_SUBBUFFER(p, "Cast", OM_WITH(OM_INT("to", OM_FLOAT32)), x);
	square = OM_SUBBUFFER(p, "Mul", OM_PLAINLY, x, x);
	mean = OM_SUBBUFFER(p, "ReduceMean", OM_PLAINLY, square, om_composite_ints(p, 1, &axis));
	mean = OM_SUBBUFFER(p, "Add", OM_PLAINLY, mean, om_composite_real(p, OM_FLOAT32, epsilon));
	return OM_SUBBUFFER(p, "Reciprocal", OM_PLAINLY, OM_SUBBUFFER(p, "Sqrt", OM_PLAINLY, mean));
}

static void
simplified_norm(om_composite *p)
{
	const int64_t axis = om_attr_int(p->c->op, "axis");
	const float epsilon = om_attr_float(p->c->op, "epsilon");
	tensor x = om_composite_add(p, 0);

	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "RMSNormalization", OM_WITH(OM_INT("axis", axis), OM_REAL("epsilon", epsilon)),
		x, om_composite_add(p, 1)));
	if (!om_has_out(p->c, 1))
		return;
	if (axis != -1 && axis != x->shape.rank - 1)
		om_composite_refuse(p, OM_UNSUPPORTED, "no kernel for the second output over more than one axis");
	om_composite_set_output(p, 1, root_mean_square(p, x, -1, epsilon));
}
OM_COMPOSITE_COLUMNS(simplified_norm)

/* The sum of input, skip and bias, from which outputs 0 to 3 are computed. */
static tensor
skipped(om_composite *p, uint32_t bias)
{
	tensor sum = OM_SUBBUFFER(p, "Add", OM_PLAINLY, om_composite_add(p, 0), om_composite_add(p, 1));

	if (om_composite_add(p, bias))
		sum = OM_SUBBUFFER(p, "Add", OM_PLAINLY, sum, om_composite_add(p, bias));
	om_composite_set_output(p, 3, sum);
	return sum;
}

static void
skip_norm(om_composite *p)
{
	tensor sum = skipped(p, 4), in[] = {sum, om_composite_add(p, 2), om_composite_add(p, 3)}, out[3];

	om_part_run(p, "LayerNormalization", 24, OM_WITH(OM_REAL("epsilon", om_attr_float(p->c->op, "epsilon"))), 3, in,
		3, out);
	for (uint32_t k = 0; k < 3; k++)
		om_composite_set_output(p, k, out[k]);
}
OM_COMPOSITE_COLUMNS(skip_norm)

static void
skip_simplified_norm(om_composite *p)
{
	const float epsilon = om_attr_float(p->c->op, "epsilon");
	tensor sum = skipped(p, 3);

	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "RMSNormalization", OM_WITH(OM_REAL("epsilon", epsilon)), sum, om_composite_add(p, 2)));
	if (om_has_out(p->c, 1))
		om_composite_refuse(p, OM_UNSUPPORTED, "no kernel for the mean output");
	if (om_has_out(p->c, 2))
		om_composite_set_output(p, 2, root_mean_square(p, sum, -1, epsilon));
}
OM_COMPOSITE_COLUMNS(skip_simplified_norm)

/* ---- EmbedLayerNormalization. ---- */

static const om_attr_spec embed_attrs[] = {
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-12f},
	{"mask_index_type", OM_ATTR_INT},
	{0}
};

enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_WORDS, GAMMA, BETA, MASK, POSITION_IDS };

static om_status
fill_positions(om_op_context *c, const void *of, const om_tensor *t)
{
	(void)c, (void)of;
	for (int64_t k = 0; k < t->shape.dim[0]; k++)
		((int32_t *)t->data)[k] = (int32_t)k;
	return OM_OK;
}

/* The first `n` positions. */
static tensor
first_positions(om_composite *p, int64_t n, const char *sym)
{
	om_shape s = om_shape_of(1, &n);

	s.sym[0] = sym;
	return om_composite_filled(p, OM_INT32, &s, fill_positions, NULL, 0, OM_READS_NOTHING);
}

struct masked {
	tensor mask;              /* NULL: none */
	int64_t length;           /* of a row */
};

static om_status
fill_counts(om_op_context *c, const void *of, const om_tensor *t)
{
	const struct masked *m = of;

	(void)c;
	for (int64_t b = 0; b < t->shape.dim[0]; b++) {
		int32_t n = 0;
		for (int64_t k = 0; m->mask && k < m->length; k++)
			n += ((const int32_t *)m->mask->data)[b * m->length + k] == 1;
		((int32_t *)t->data)[b] = n;
	}
	return OM_OK;
}

/* The number of unmasked elements of each row of the mask. */
static tensor
count_mask(om_composite *p, tensor mask, tensor ids)
{
	const struct masked m = {mask, ids->shape.dim[1]};
	om_shape batch = {.rank = 1};

	om_copy_dim(&batch, 0, &ids->shape, 0);
	if (mask && !om_shape_agree(&mask->shape, &ids->shape))
		om_composite_refuse(p, OM_SHAPE, "the mask must have the shape of input_ids");
	return om_composite_filled(p, OM_INT32, &batch, fill_counts, &m, sizeof m,
		OM_READS({mask, OM_INT32, om_shape_is_known(&ids->shape) ? om_shape_count(&ids->shape) : 0}));
}

static void
embed_norm(om_composite *p)
{
	tensor ids = om_composite_add(p, IDS), places = om_composite_add(p, POSITION_IDS), sum;

	if (!om_composite_add(p, WORDS) || !om_composite_add(p, POSITIONS) || !om_composite_add(p, GAMMA) || !om_composite_add(p, BETA)) {
		om_composite_refuse(p, OM_INVALID, "an embedding, gamma or beta is omitted");
		return;
	}
	if (ids->shape.rank < 0 && p->doing == OM_INFERRING) {
		p->c->out[0].type = om_composite_add(p, WORDS)->type;
		return;
	}
	if (ids->shape.rank != 2 || ids->type != OM_INT32) {
		om_composite_refuse(p, OM_SHAPE, "input_ids must be an int32 tensor of rank 2");
		return;
	}
	if (!places)
		places = first_positions(p, ids->shape.dim[1], ids->shape.sym[1]);
	sum = OM_SUBBUFFER(p, "Add", OM_PLAINLY, OM_SUBBUFFER(p, "Gather", OM_PLAINLY, om_composite_add(p, WORDS), ids),
		OM_SUBBUFFER(p, "Gather", OM_PLAINLY, om_composite_add(p, POSITIONS), places));
	if (om_composite_add(p, SEGMENTS) && om_composite_add(p, SEGMENT_WORDS))
		sum = OM_SUBBUFFER(p, "Add", OM_PLAINLY, sum,
			OM_SUBBUFFER(p, "Gather", OM_PLAINLY, om_composite_add(p, SEGMENT_WORDS), om_composite_add(p, SEGMENTS)));
	om_composite_set_output(p, 2, sum);
	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "LayerNormalization", OM_WITH(OM_REAL("epsilon",
		om_attr_float(p->c->op, "epsilon"))), sum, om_composite_add(p, GAMMA), om_composite_add(p, BETA)));
	om_composite_set_output(p, 1, count_mask(p, om_composite_add(p, MASK), ids));
}
OM_COMPOSITE_COLUMNS(embed_norm)

/* ---- Matrix products. ---- */

static const om_attr_spec fused_matmul_attrs[] = {
	{"alpha", OM_ATTR_FLOAT, .f = 1},
	{"transA", OM_ATTR_INT},
	{"transB", OM_ATTR_INT},
	{"transBatchA", OM_ATTR_INT},
	{"transBatchB", OM_ATTR_INT},
	{0}
};

/* Transpose an operand: optionally swap its last two axes, and before that move the first axis
 * after the batch axes. */
static tensor
turned(om_composite *p, tensor x, bool swap, bool batch)
{
	const int rank = x->shape.rank;
	int64_t perm[OM_MAX_RANK];

	if (rank < 2 || (!swap && !batch))
		return x;
	for (int k = 0; k < rank; k++)
		perm[k] = batch ? k < rank - 2 ? k + 1 : k == rank - 2 ? 0 : k : k;
	if (swap) {
		const int64_t last = perm[rank - 1];
		perm[rank - 1] = perm[rank - 2];
		perm[rank - 2] = last;
	}
	return OM_SUBBUFFER(p, "Transpose", OM_WITH(OM_LIST("perm", perm, (size_t)rank)), x);
}

static void
fused_matmul(om_composite *p)
{
	const om_op *op = p->c->op;
	const float alpha = om_attr_float(op, "alpha");
	tensor a = om_composite_add(p, 0), b = om_composite_add(p, 1), y;

	if (p->doing == OM_INFERRING && (a->shape.rank < 0 || b->shape.rank < 0)) {
		p->c->out[0].type = a->type;
		return;
	}
	a = turned(p, a, om_attr_int(op, "transA") != 0, om_attr_int(op, "transBatchA") != 0);
	b = turned(p, b, om_attr_int(op, "transB") != 0, om_attr_int(op, "transBatchB") != 0);
	y = OM_SUBBUFFER(p, "MatMul", OM_PLAINLY, a, b);
	if (alpha != 1 && y->type != OM_UNDEFINED)
		y = OM_SUBBUFFER(p, "Mul", OM_PLAINLY, y, om_composite_real(p, y->type, alpha));
	om_composite_set_output(p, 0, y);
}
OM_COMPOSITE_COLUMNS(fused_matmul)

static const om_attr_spec fused_gemm_attrs[] = {
	{"activation", OM_ATTR_STRING},
	{"activation_alpha", OM_ATTR_FLOAT},
	{"activation_beta", OM_ATTR_FLOAT},
	{"activation_gamma", OM_ATTR_FLOAT},
	{"activation_params", OM_ATTR_FLOATS},
	{"alpha", OM_ATTR_FLOAT, .f = 1},
	{"beta", OM_ATTR_FLOAT, .f = 1},
	{"transA", OM_ATTR_INT},
	{"transB", OM_ATTR_INT},
	{0}
};

static void
fused_gemm(om_composite *p)
{
	const om_op *op = p->c->op;
	tensor y = OM_SUBBUFFER(p, "Gemm", OM_WITH(OM_REAL("alpha", om_attr_float(op, "alpha")),
		OM_REAL("beta", om_attr_float(op, "beta")), OM_INT("transA", om_attr_int(op, "transA")),
		OM_INT("transB", om_attr_int(op, "transB"))), om_composite_add(p, 0), om_composite_add(p, 1), om_composite_add(p, 2));

	om_composite_set_output(p, 0, activated(p, y));
}
OM_COMPOSITE_COLUMNS(fused_gemm)

static const om_attr_spec fused_conv_attrs[] = {
	{"activation", OM_ATTR_STRING},
	{"activation_alpha", OM_ATTR_FLOAT},
	{"activation_beta", OM_ATTR_FLOAT},
	{"activation_params", OM_ATTR_FLOATS},
	{"auto_pad", OM_ATTR_STRING, .s = "NOTSET"},
	{"dilations", OM_ATTR_INTS},
	{"group", OM_ATTR_INT, .i = 1},
	{"kernel_shape", OM_ATTR_INTS},
	{"pads", OM_ATTR_INTS},
	{"strides", OM_ATTR_INTS},
	{0}
};

static void
fused_conv(om_composite *p)
{
	tensor y = OM_SUBBUFFER(p, "Conv", om_composite_forwarded(p, "Conv"), om_composite_add(p, 0), om_composite_add(p, 1), om_composite_add(p, 2));

	if (om_composite_add(p, 3))
		y = OM_SUBBUFFER(p, "Add", OM_PLAINLY, y, om_composite_add(p, 3));
	om_composite_set_output(p, 0, activated(p, y));
}
OM_COMPOSITE_COLUMNS(fused_conv)

/* ---- Channels last. ---- */

/* Of an image of unknown rank, only the type of the output is inferred. */
static bool
has_rank(om_composite *p)
{
	tensor x = om_composite_add(p, 0);

	if (x->shape.rank < 0)
		p->c->out[0].type = x->type;
	return x->shape.rank >= 0;
}

/* The weights are laid out as for Conv. */
static void
nhwc_conv(om_composite *p)
{
	if (!has_rank(p))
		return;
	tensor y = om_composite_channels_last(p, OM_SUBBUFFER(p, "Conv", om_composite_forwarded(p, "Conv"),
		om_composite_channels_first(p, om_composite_add(p, 0)), om_composite_add(p, 1), om_composite_add(p, 2)));
	if (om_composite_add(p, 3))
		y = OM_SUBBUFFER(p, "Add", OM_PLAINLY, y, om_composite_add(p, 3));
	om_composite_set_output(p, 0, activated(p, y));
}
OM_COMPOSITE_COLUMNS(nhwc_conv)

static const om_attr_spec nhwc_pool_attrs[] = {
	{"auto_pad", OM_ATTR_STRING, .s = "NOTSET"},
	{"ceil_mode", OM_ATTR_INT},
	{"dilations", OM_ATTR_INTS},
	{"kernel_shape", OM_ATTR_INTS, .required = true},
	{"pads", OM_ATTR_INTS},
	{"strides", OM_ATTR_INTS},
	{0}
};

static void
nhwc_max_pool(om_composite *p)
{
	if (has_rank(p))
		om_composite_set_output(p, 0, om_composite_channels_last(p, OM_SUBBUFFER(p, "MaxPool", om_composite_forwarded(p, "MaxPool"),
			om_composite_channels_first(p, om_composite_add(p, 0)))));
}
OM_COMPOSITE_COLUMNS(nhwc_max_pool)

/* ---- MatMulNBits. ---- */

static const om_attr_spec nbits_attrs[] = {
	{"K", OM_ATTR_INT, .required = true},
	{"N", OM_ATTR_INT, .required = true},
	{"accuracy_level", OM_ATTR_INT},
	{"bits", OM_ATTR_INT, .i = 4},
	{"block_size", OM_ATTR_INT, .required = true},
	{"weight_prepacked", OM_ATTR_INT},
	{0}
};

enum { ACTIVATION, PACKED, SCALES, ZEROS, GROUPS, BIAS };

struct packed {
	tensor weights, scales, zeros, groups;  /* NULL: absent */
	int64_t k, n, bits, block, blocks;
};

static int64_t
bytes_of_block(const struct packed *w)
{
	return w->block * w->bits / 8;
}

/* Zero points of a column are packed into whole bytes, or have the type of the scales. */
static int64_t
zeros_of_column(const struct packed *w)
{
	return w->zeros && w->zeros->type == OM_UINT8 ? (w->blocks * w->bits + 7) / 8 : w->blocks;
}

static unsigned
bits_at(const uint8_t *row, int64_t k, int64_t bits)
{
	return row[k * bits / 8] >> k * bits % 8 & ((1u << bits) - 1);
}

/* The zero point of block `b` of column `n`: packed like the weights, or unpacked in its own type. */
static double
zero_at(const struct packed *w, tensor zero, int64_t n, int64_t b)
{
	if (!zero)
		return (double)(1 << (w->bits - 1));
	if (zero->type != OM_UINT8)
		return om_get(zero->type, zero->data, n * w->blocks + b);
	return bits_at((const uint8_t *)zero->data + n * zeros_of_column(w), b, w->bits);
}

/* Dequantize the weights, one column of the product after another. */
static om_status
unpack(om_op_context *c, const void *of, const om_tensor *to)
{
	const struct packed *w = of;
	const tensor scales = w->scales, zeros = w->zeros, groups = w->groups;
	const uint8_t *from = w->weights->data;

	for (int64_t n = 0; n < w->n; n++)
		for (int64_t k = 0; k < w->k; k++) {
			const int64_t own = k / w->block, b = groups ? ((const int32_t *)groups->data)[k] : own;
			const uint8_t *bytes = from + (n * w->blocks + own) * bytes_of_block(w);
			if (b < 0 || b >= w->blocks)
				return om_op_fail(c->session, OM_RUN, c->op,
					"an entry of g_idx is not the index of a block");
			om_put(to->type, to->data, k * w->n + n, (bits_at(bytes, k % w->block, w->bits)
				- zero_at(w, zeros, n, b)) * om_get(scales->type, scales->data, n * w->blocks + b));
		}
	return OM_OK;
}

static bool
has_count(tensor t, int64_t n)
{
	return !t || !om_shape_is_known(&t->shape) || om_shape_count(&t->shape) == n;
}

static bool
read_packed(om_composite *p, struct packed *w)
{
	const om_op *op = p->c->op;

	*w = (struct packed){.weights = om_composite_add(p, PACKED), .scales = om_composite_add(p, SCALES),
		.zeros = om_composite_add(p, ZEROS), .groups = om_composite_add(p, GROUPS), .k = om_attr_int(op, "K"),
		.n = om_attr_int(op, "N"), .bits = om_attr_int(op, "bits"), .block = om_attr_int(op, "block_size")};
	if ((w->bits != 2 && w->bits != 4 && w->bits != 8) || w->block < 8 || w->k < 1 || w->n < 1
	    || w->k > INT32_MAX || w->n > INT32_MAX || w->block > INT32_MAX || om_attr_int(op, "weight_prepacked"))
		om_composite_refuse(p, OM_UNSUPPORTED, "no kernel for this packing of the weights");
	else
		w->blocks = (w->k + w->block - 1) / w->block;
	if (p->st == OM_OK && (!has_count(w->weights, w->n * w->blocks * bytes_of_block(w))
	    || !has_count(w->scales, w->n * w->blocks) || !has_count(w->zeros, w->n * zeros_of_column(w))))
		om_composite_refuse(p, OM_SHAPE, "the shapes of weights, scales and zero points do not match");
	return p->st == OM_OK;
}

static void
matmul_nbits(om_composite *p)
{
	tensor x = om_composite_add(p, ACTIVATION), y;
	struct packed w;

	if (!read_packed(p, &w))
		return;
	const om_shape shape = om_shape_of(2, (int64_t[]){w.k, w.n});
	const om_dtype type = x->type == OM_FLOAT64 ? OM_FLOAT64 : OM_FLOAT32;
	const om_tensor *weights = om_composite_filled(p, type, &shape, unpack, &w, sizeof w,
		OM_READS({w.weights, OM_UINT8, w.n * w.blocks * bytes_of_block(&w)}, {w.scales, w.scales->type, w.n * w.blocks},
			{w.zeros, w.zeros ? w.zeros->type : OM_UNDEFINED, w.n * zeros_of_column(&w)}, {w.groups, OM_INT32, w.k}));
	y = OM_SUBBUFFER(p, "MatMul", OM_PLAINLY, OM_SUBBUFFER(p, "Cast", OM_WITH(OM_INT("to", type)), x), weights);
	if (om_composite_add(p, BIAS))
		y = OM_SUBBUFFER(p, "Add", OM_PLAINLY, y, OM_SUBBUFFER(p, "Cast", OM_WITH(OM_INT("to", type)), om_composite_add(p, BIAS)));
	if (x->type != OM_UNDEFINED)
		om_composite_set_output(p, 0, OM_SUBBUFFER(p, "Cast", OM_WITH(OM_INT("to", x->type)), y));
}
OM_COMPOSITE_COLUMNS(matmul_nbits)

/* ---- The table. ---- */

static const om_attr_spec quick_attrs[] = {{"alpha", OM_ATTR_FLOAT, .f = 1.702f}, {0}};

#define CONTRIB(called, text, least, most, outputs, list, made, ...)           \
	{.domain = "com.microsoft", .name = called, .brief = text, .since = 1, .min_in = least, .max_in = most, \
	 .min_out = 1, .max_out = outputs, .attrs = list, OM_COMPOSITE(made), __VA_ARGS__}

const om_opdef om_ops_contrib[] = {
	CONTRIB("Gelu", "Gaussian error linear unit", 1, 1, 1, NULL, gelu, .slice = om_slice_first,
		.input_types = {OF_FLOATS}),
	CONTRIB("FastGelu", "tanh approximation of Gelu, with optional bias", 1, 2, 1, NULL, fast_gelu, .slice = om_slice_pointwise,
		.input_types = {OF_FLOATS, LIKE(0)}),
	CONTRIB("BiasGelu", "Gelu of x plus a bias", 2, 2, 1, NULL, bias_gelu, .slice = om_slice_pointwise,
		.input_types = {OF_FLOATS, LIKE(0)}),
	CONTRIB("QuickGelu", "x sigmoid(alpha x)", 1, 1, 1, quick_attrs, quick_gelu, .slice = om_slice_first,
		.input_types = {OF_FLOATS}),
	{.name = "SimplifiedLayerNormalization", .brief = "root mean square normalization", .since = 1,
	 .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 2, .attrs = simplified_attrs,
	 OM_COMPOSITE(simplified_norm), .slice = om_slice_layer_norm,
	 .input_types = {OF_FLOATS, OF_FLOATS}},
	CONTRIB("SkipLayerNormalization", "layer normalization of a sum", 3, 5, 4, norm_attrs,
		skip_norm, .slice = om_slice_skip_norm,
		.input_types = {OF_FLOATS, LIKE(0), LIKE(0), LIKE(0), LIKE(0)}),
	CONTRIB("SkipSimplifiedLayerNormalization", "root mean square normalization of a sum", 3, 4, 4,
		norm_attrs, skip_simplified_norm, .slice = om_slice_skip_norm,
		.input_types = {OF_FLOATS, LIKE(0), LIKE(0), LIKE(0)}),
	CONTRIB("EmbedLayerNormalization", "layer normalization of a sum of embeddings", 1, 9, 3,
		embed_attrs, embed_norm, .slice = om_slice_embed_norm,
		.input_types = {OF(INT32), LIKE(0), OF(FLOAT16) | OF(FLOAT32), LIKE(2), LIKE(2), LIKE(2),
			LIKE(2), LIKE(0), LIKE(0)}),
	CONTRIB("FusedMatMul", "alpha A B, with optional transposes", 2, 2, 1, fused_matmul_attrs,
		fused_matmul, .slice = om_slice_matmul_fused, .partial = om_partial_matmul_fused,
		.input_types = {OF_FLOATS, LIKE(0)}),
	CONTRIB("TransposeMatMul", "alpha A B, with optional transposes", 2, 2, 1, fused_matmul_attrs,
		fused_matmul, .slice = om_slice_matmul_fused, .partial = om_partial_matmul_fused,
		.input_types = {OF_FLOATS, LIKE(0)}),
	CONTRIB("FusedGemm", "activation of alpha A B + beta C", 2, 3, 1, fused_gemm_attrs, fused_gemm, .slice = om_slice_gemm,
		.input_types = {OF_FLOATS, LIKE(0), LIKE(0)}),
	CONTRIB("FusedConv", "convolution with bias, sum and activation", 2, 4, 1, fused_conv_attrs, fused_conv, .slice = om_slice_conv_fused,
		.input_types = {OF_FLOATS, LIKE(0), LIKE(0), LIKE(0)}),
	CONTRIB("NhwcConv", "convolution of NHWC images", 2, 3, 1, fused_conv_attrs, nhwc_conv, .slice = om_slice_images,
		.input_types = {OF_FLOATS, LIKE(0), LIKE(0)}),
	CONTRIB("NhwcFusedConv",
		"convolution of NHWC images with sum and activation", 2, 4, 1, fused_conv_attrs, nhwc_conv, .slice = om_slice_images,
		.input_types = {OF_FLOATS, LIKE(0), LIKE(0), LIKE(0)}),
	CONTRIB("NhwcMaxPool", "maximum over a sliding window of NHWC images", 1, 1, 1, nhwc_pool_attrs,
		nhwc_max_pool, .slice = om_slice_images,
		.input_types = {OF_BYTES}),
	CONTRIB("MatMulNBits", "product with block-wise quantized weights", 3, 6, 1, nbits_attrs,
		matmul_nbits, .slice = om_slice_matmul_nbits,
		.input_types = {OF_FLOATS, OF(UINT8), LIKE(0),
			OF(BFLOAT16) | OF(FLOAT16) | OF(FLOAT32) | OF(UINT8), OF(INT32), LIKE(0)}),
	{0}
};

const om_kernel om_kernels_contrib[] = {
	OM_PARTS_KERNEL("Gelu", gelu),
	OM_PARTS_KERNEL("FastGelu", fast_gelu),
	OM_PARTS_KERNEL("BiasGelu", bias_gelu),
	OM_PARTS_KERNEL("QuickGelu", quick_gelu),
	OM_PARTS_KERNEL("SkipLayerNormalization", skip_norm),
	OM_PARTS_KERNEL("SkipSimplifiedLayerNormalization", skip_simplified_norm),
	OM_PARTS_KERNEL("EmbedLayerNormalization", embed_norm),
	OM_PARTS_KERNEL("FusedMatMul", fused_matmul),
	OM_PARTS_KERNEL("TransposeMatMul", fused_matmul),
	OM_PARTS_KERNEL("FusedGemm", fused_gemm),
	OM_PARTS_KERNEL("FusedConv", fused_conv),
	OM_PARTS_KERNEL("NhwcConv", nhwc_conv),
	OM_PARTS_KERNEL("NhwcFusedConv", nhwc_conv),
	OM_PARTS_KERNEL("NhwcMaxPool", nhwc_max_pool),
	OM_PARTS_KERNEL("MatMulNBits", matmul_nbits),
	{.name = "SimplifiedLayerNormalization", .prepare = simplified_norm_prepare,
	 .workspace = om_parts_workspace, .run = om_parts_run},
	{0}
};

/* Those whose parts have kernels for devices. */
OM_COMPOSITE_DEVICE(gelu)
OM_COMPOSITE_DEVICE(fast_gelu)
OM_COMPOSITE_DEVICE(bias_gelu)
OM_COMPOSITE_DEVICE(quick_gelu)
OM_COMPOSITE_DEVICE(skip_norm)
OM_COMPOSITE_DEVICE(skip_simplified_norm)
OM_COMPOSITE_DEVICE(fused_matmul)
OM_COMPOSITE_DEVICE(fused_gemm)
OM_COMPOSITE_DEVICE(fused_conv)
OM_COMPOSITE_DEVICE(nhwc_conv)
OM_COMPOSITE_DEVICE(simplified_norm)

const om_device_kernel om_device_kernels_contrib[] = {
	OM_PARTS_DEVICE("Gelu", gelu),
	OM_PARTS_DEVICE("FastGelu", fast_gelu),
	OM_PARTS_DEVICE("BiasGelu", bias_gelu),
	OM_PARTS_DEVICE("QuickGelu", quick_gelu),
	OM_PARTS_DEVICE("SkipLayerNormalization", skip_norm),
	OM_PARTS_DEVICE("SkipSimplifiedLayerNormalization", skip_simplified_norm),
	OM_PARTS_DEVICE("FusedMatMul", fused_matmul),
	OM_PARTS_DEVICE("TransposeMatMul", fused_matmul),
	OM_PARTS_DEVICE("FusedGemm", fused_gemm),
	OM_PARTS_DEVICE("FusedConv", fused_conv),
	OM_PARTS_DEVICE("NhwcConv", nhwc_conv),
	OM_PARTS_DEVICE("NhwcFusedConv", nhwc_conv),
	{.name = "SimplifiedLayerNormalization", .supports = simplified_norm_on_device,
	 .scratch = simplified_norm_device_scratch, .launches = simplified_norm_launches},
	{0}
};
