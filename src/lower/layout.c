/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of values, and the walk over the ops; see layout.h. */
#include <config.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/layout.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "opdef/rewrite_internal.h"

/* ---- Ops. ---- */

om_op *
om_lower_op(struct om_layout *l, const char *domain, const char *type, int version, uint32_t n, om_value *const *in)
{
	om_op *op = om_op_new(l->p, domain, type, version, n, 1);

	for (uint32_t k = 0; k < n; k++)
		om_op_set_in(op, k, in[k]);
	return op;
}

void
om_lower_add_attrs(struct om_layout *l, om_op *op, const om_op *like)
{
	for (uint32_t k = 0; k < like->nattr; k++)
		om_op_add_attr(l->p, op, &like->attr[k]);
}

om_op *
om_lower_copy(struct om_layout *l, const om_op *like, uint32_t n, om_value *const *in)
{
	om_op *op = om_op_new(l->p, like->domain, like->type, like->version, n, like->nout);

	for (uint32_t k = 0; k < n; k++)
		om_op_set_in(op, k, in[k]);
	om_lower_add_attrs(l, op, like);
	return op;
}

om_status
om_lower_insert_all(struct om_layout *l, om_op *before, om_op *op, const om_op *like, om_value **out)
{
	op->phase = like->phase;
	op->name = like->name;
	for (uint32_t k = 0; k < like->nout; k++) {
		out[k] = NULL;
		if (!like->out[k])
			continue;
		out[k] = om_value_fresh(l->p, before->block, om_printf(l->mem, "%s_last", like->out[k]->name));
		om_op_set_out(op, k, out[k]);
	}
	om_op_insert(before, op);
	return om_op_infer(l->session, l->p, op);
}

om_status
om_lower_insert(struct om_layout *l, om_op *before, om_op *op, const char *stem, om_value **out)
{
	*out = om_value_fresh(l->p, before->block, stem);
	op->phase = before->phase;
	op->name = before->name;
	om_op_set_out(op, 0, *out);
	om_op_insert(before, op);
	return om_op_infer(l->session, l->p, op);
}

om_value *
om_lower_const(struct om_layout *l, om_block *b, const char *stem, om_dtype type, const om_shape *shape, const void *elements)
{
	const size_t bytes = (size_t)om_shape_count(shape) * (om_dtype_bits(type) / 8);
	om_tensor *t = OM_NEW(l->p->mem, om_tensor);
	om_value *v = om_value_fresh(l->p, b, stem);

	*t = (om_tensor){.type = type, .shape = *shape,
		.data = bytes ? om_memdup(l->p->mem, elements, bytes) : om_alloc(l->p->mem, 1)};
	v->type.elem = type;
	v->shape = t->shape;
	v->data = t;
	v->is_const = v->is_declared = true;
	return v;
}

om_value *
om_lower_list(struct om_layout *l, om_block *b, const char *stem, om_dtype type, int64_t n, const void *elements)
{
	const om_shape shape = om_shape_of(1, &n);

	return om_lower_const(l, b, stem, type, &shape, elements);
}

om_value *
om_lower_ints(struct om_layout *l, om_block *b, const char *stem, size_t n, const int64_t *v)
{
	return om_lower_list(l, b, stem, OM_INT64, (int64_t)n, v);
}

/* ---- Queries. ---- */

void
om_lower_channels_last(int rank, int *axis)
{
	axis[0] = 0;
	for (int k = 1; k + 1 < rank; k++)
		axis[k] = k + 1;
	axis[rank - 1] = 1;
}

int
om_lower_position(const int *axis, int rank, int64_t a)
{
	int k = 0;

	while (k < rank && axis[k] != a)
		k++;
	return k;
}

bool
om_lower_is_float(const om_value *v)
{
	return v && v->type.kind == OM_TENSOR && v->type.elem == OM_FLOAT32 && om_shape_is_known(&v->shape);
}

bool
om_lower_is_real(const om_value *v)
{
	return v && v->type.kind == OM_TENSOR && om_is_real(v->type.elem) && om_shape_is_known(&v->shape);
}

bool
om_lower_is_of_bytes(const om_value *v)
{
	return v && v->type.kind == OM_TENSOR && (v->type.elem == OM_INT8 || v->type.elem == OM_UINT8) && om_shape_is_known(&v->shape);
}

bool
om_lower_is_last(const struct om_layout *l, const om_value *v)
{
	const om_form *form = om_lower_form(l, v);
	int axis[OM_MAX_RANK];

	if (!om_shape_is_known(&v->shape) || v->shape.rank < 3 || !form->value)
		return false;
	om_lower_channels_last(v->shape.rank, axis);
	return memcmp(axis, form->axis, (size_t)v->shape.rank * sizeof *axis) == 0;
}

bool
om_lower_is_const(const om_value *v)
{
	return v->is_const && !v->is_overridable;
}

bool
om_lower_ints_of(const om_value *v, size_t *n, const int64_t **out)
{
	if (!v || !v->data || !v->data->data || v->is_overridable || v->data->type != OM_INT64)
		return false;
	*n = (size_t)om_shape_count(&v->data->shape);
	*out = v->data->data;
	return !v->data->splat || *n == 1;
}

/* ---- Forms. ---- */

static const om_form no_form;

const om_form *
om_lower_form(const struct om_layout *l, const om_value *v)
{
	return v->id < l->nform ? &l->form[v->id] : &no_form;
}

/* Do both orders differ in axes of size 1 alone, so that the elements have the same order? */
static bool
is_same_order(const om_shape *s, const int *a, const int *b)
{
	int i = 0, k = 0;

	for (;;) {
		while (i < s->rank && s->dim[a[i]] == 1)
			i++;
		while (k < s->rank && s->dim[b[k]] == 1)
			k++;
		if (i == s->rank || k == s->rank)
			return i == k;
		if (a[i++] != b[k++])
			return false;
	}
}

bool
om_lower_is_order_last(const om_shape *s, const int *axis)
{
	int last[OM_MAX_RANK];

	if (s->rank < 3)
		return false;
	om_lower_channels_last(s->rank, last);
	return is_same_order(s, axis, last);
}

static bool
is_identity(const int *axis, int rank)
{
	for (int k = 0; k < rank; k++)
		if (axis[k] != k)
			return false;
	return true;
}

static om_op *
new_transpose(struct om_layout *l, om_value *from, const int *from_axis, const int *to_axis)
{
	om_op *op = om_lower_op(l, "", "Transpose", 13, 1, &from);
	int64_t perm[OM_MAX_RANK];
	const int rank = from->shape.rank;

	for (int k = 0; k < rank; k++)
		perm[k] = om_lower_position(from_axis, rank, to_axis[k]);
	om_op_add_ints(l->p, op, "perm", (size_t)rank, perm);
	return op;
}

om_op *
om_lower_place(const om_value *v, om_op *op)
{
	return v->block == op->block ? op : om_block_enclosing_op(v->block, op->block);
}

om_status
om_lower_read(struct om_layout *l, om_op *op, om_value *v, const int *axis, om_value **out)
{
	const int rank = v->shape.rank;
	om_form *f = v->id < l->nform ? &l->form[v->id] : NULL;
	int plain[OM_MAX_RANK];

	for (int k = 0; k < rank; k++)
		plain[k] = k;
	*out = v;
	if (is_identity(axis, rank))
		return OM_OK;
	if (f && f->value && memcmp(f->axis, axis, (size_t)rank * sizeof *axis) == 0) {
		*out = f->value;
		return OM_OK;
	}
	/* From the form, unless its elements have to be moved and those of the value do not. */
	const bool from_form = f && f->value && !is_same_order(&v->shape, plain, axis);
	om_op *t = new_transpose(l, from_form ? f->value : v, from_form ? f->axis : plain, axis);
	OM_TRY(om_lower_insert(l, om_lower_place(v, op), t, om_printf(l->mem, "%s_last", v->name), out));
	if (f && !f->value) {
		f->value = *out;
		memcpy(f->axis, axis, (size_t)rank * sizeof *axis);
	}
	return OM_OK;
}

/* If the form was made for `op`, its op computes the original value from now on. */
static bool
take_name(const om_op *op, om_value *v, om_value *form)
{
	om_op *def = form->def;
	uint32_t k = 0;

	if (!def || def != op->prev || form->nuse)
		return false;
	while (def->out[k] != form)
		k++;
	form->def = NULL;
	def->out[k] = v;
	v->def = def;
	return true;
}

/* The original value is the form: its readers read that, but a result keeps its name. */
static void
define_same(struct om_layout *l, om_op *op, om_value *v, om_value *form)
{
	if (take_name(op, v, form))
		return;
	if (!om_value_is_result(v) && form->block == v->block) {
		om_value_replace(v, form);
		return;
	}
	om_op *same = om_lower_op(l, "", "Identity", 13, 1, &form);
	om_op_set_out(same, 0, v);
	om_op_insert(op, same);
}

om_status
om_lower_define(struct om_layout *l, om_op *op, uint32_t k, const om_form *form)
{
	om_value *v = op->out[k];
	const int rank = v->shape.rank;
	int plain[OM_MAX_RANK];

	for (int i = 0; i < rank; i++)
		plain[i] = i;
	op->out[k] = NULL;
	v->def = NULL;
	if (is_identity(form->axis, rank)) {
		define_same(l, op, v, form->value);
		return OM_OK;
	}
	om_op *t = new_transpose(l, form->value, form->axis, plain);
	t->name = op->name;
	om_op_set_out(t, 0, v);
	om_op_insert(op, t);
	if (v->id < l->nform)
		l->form[v->id] = *form;
	return OM_OK;
}

static bool
is_equal_attr(const om_attr *a, const om_attr *b)
{
	if (strcmp(a->name, b->name) != 0 || a->kind != b->kind)
		return false;
	switch (a->kind) {
	case OM_ATTR_INT: return *a->i == *b->i;
	case OM_ATTR_FLOAT: return memcmp(a->f, b->f, sizeof *a->f) == 0;
	case OM_ATTR_STRING: return a->s->size == b->s->size && memcmp(a->s->data, b->s->data, a->s->size) == 0;
	default: return false;
	}
}

static bool
is_equal_op(const om_op *a, const om_op *b)
{
	bool same = a && a->nin == 1 && strcmp(a->type, b->type) == 0 && strcmp(a->domain, b->domain) == 0 && a->nattr == b->nattr;

	for (uint32_t k = 0; same && k < a->nattr; k++)
		same = is_equal_attr(&a->attr[k], &b->attr[k]);
	return same;
}

om_status
om_lower_pack(struct om_layout *l, om_op *op, om_op *pack, om_value **packed)
{
	const om_value *w = pack->in[0];

	for (const om_use *u = w->first_use; u; u = u->next)
		if (u->op != pack && is_equal_op(u->op, pack) && u->op->block == w->block) {
			*packed = u->op->out[0];
			return OM_OK;
		}
	return om_lower_insert(l, om_lower_place(w, op), pack, om_printf(l->mem, "%s_packed", w->name), packed);
}

void
om_lower_done(struct om_layout *l, om_op *op, uint64_t *count)
{
	(void)l;
	om_op_remove(op);
	++*count;
}

om_status
om_lower_replace(struct om_layout *l, om_op *op, const om_form *form, uint64_t *count, bool *done)
{
	OM_TRY(om_lower_define(l, op, 0, form));
	om_lower_done(l, op, count);
	*done = true;
	return OM_OK;
}

/* ---- The walk. ---- */

struct lowered {
	const char *type;
	om_lower_fn *lower;
};

static const struct lowered lowered[] = {
	{"Conv", om_lower_conv},
	{"ConvTranspose", om_lower_conv},
	{"MaxPool", om_lower_pool},
	{"AveragePool", om_lower_pool},
	{"GlobalAveragePool", om_lower_global_pool},
	{"GlobalMaxPool", om_lower_global_pool},
	{"BatchNormalization", om_lower_batch_norm},
	{"MatMul", om_lower_matmul},
	{"Gemm", om_lower_gemm},
	{"Concat", om_lower_axis_attr},
	{"Split", om_lower_axis_attr},
	{"Softmax", om_lower_axis_attr},
	{"LogSoftmax", om_lower_axis_attr},
	{"Slice", om_lower_slice},
	{"Gather", om_lower_gather},
	{"Pad", om_lower_pad},
	{"ReduceMean", om_lower_reduce},
	{"ReduceSum", om_lower_reduce},
	{"ReduceMax", om_lower_reduce},
	{"ReduceMin", om_lower_reduce},
	{"ReduceL2", om_lower_reduce},
	{"Resize", om_lower_resize},
	{"Upsample", om_lower_resize},
	{"Transpose", om_lower_transpose},
	{"Reshape", om_lower_reshape},
	{"Flatten", om_lower_reshape},
	{"Squeeze", om_lower_reshape},
	{"Unsqueeze", om_lower_reshape},
	{"DepthToSpace", om_lower_blocks},
	{"SpaceToDepth", om_lower_blocks},
	{"QuantizeLinear", om_lower_quantize},
	{"DequantizeLinear", om_lower_quantize},
	{"DynamicQuantizeLinear", om_lower_dynamic_quantize},
	{"QLinearConv", om_lower_qlinear_conv},
	{"QLinearMatMul", om_lower_qlinear_matmul},
	{"ConvInteger", om_lower_conv_integer},
	{"MatMulInteger", om_lower_matmul_integer},
	{0}
};

/* Of com.microsoft. */
static const struct lowered contributed[] = {
	{"MatMulIntegerToFloat", om_lower_matmul_integer_to_float},
	{"QGemm", om_lower_qgemm},
	{"QLinearAdd", om_lower_qlinear_elementwise},
	{"QLinearMul", om_lower_qlinear_elementwise},
	{"QLinearConv", om_lower_qlinear_conv},
	{"QLinearGlobalAveragePool", om_lower_qlinear_pool},
	{"QLinearAveragePool", om_lower_qlinear_pool},
	{0}
};

static om_lower_fn *
function_for(const om_op *op)
{
	if (!op->opdef || op->is_folded || op->nbody)
		return NULL;
	const struct lowered *k = *op->domain == '\0' ? lowered : strcmp(op->domain, "com.microsoft") == 0 ? contributed : NULL;
	for (; k && k->type; k++)
		if (strcmp(op->type, k->type) == 0)
			return k->lower;
	return op->opdef->flags & OM_POINTWISE && op->nout == 1 ? om_lower_pointwise : NULL;
}

/* Transposes between forms and values that are left. */
static void
count_transposes(struct om_layout *l, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nbody; k++)
			count_transposes(l, op->body[k]);
		if (strcmp(op->type, "Transpose") == 0 && !op->origin && !om_lower_is_const(op->in[0]))
			l->n.transposes++;
	}
}

static om_status
lower_block(struct om_layout *l, om_block *b)
{
	for (om_op *op = b->first, *next; op; op = next) {
		om_lower_fn *lower = function_for(op);
		bool done = false;
		next = op->next;
		for (uint32_t k = 0; k < op->nbody; k++)
			OM_TRY(lower_block(l, op->body[k]));
		if (lower)
			OM_TRY(lower(l, op, &done));
	}
	return OM_OK;
}

om_status
om_lower_layout(om_session *s, om_prog *p, const om_layout_options *o, om_layout_counts *n)
{
	om_arena *mem = om_arena_new();
	struct om_layout l = {.session = s, .p = p, .mem = mem, .options = *o, .nform = p->nvalue,
		.form = OM_NEWN(mem, om_form, p->nvalue)};

	om_status st = lower_block(&l, p->first);
	om_block_delete_dead(p->first);
	count_transposes(&l, p->first);
	p->has &= OM_HAS_INLINE | OM_HAS_SHAPES;
	*n = l.n;
	om_arena_free(mem);
	return st;
}
