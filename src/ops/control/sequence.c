/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals.
 *
 * They are containers outside the arena: a tensor that is inserted is copied, and a tensor that is
 * extracted is copied to its planned address.  They are immutable: an insertion creates a new
 * sequence. */
#include <config.h>

#include "opdef/columns.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ir/type.h"
#include "ops/family.h"
#include "opdef/kernel_call.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/control/container.h"

static om_kind
kind_of(const om_op_context *c, uint32_t k)
{
	return c->op->in[k]->type.kind;
}

static om_status
want_kind(const om_op_context *c, uint32_t k, om_kind kind)
{
	if (kind_of(c, k) == kind)
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "input %u must be a %s, but is a %s", k, om_kind_text(kind),
		om_kind_text(kind_of(c, k)));
}

/* Output 0 is a sequence of these tensors. */
static void
give_sequence(om_op_context *c, om_dtype elem, const om_shape *shape)
{
	om_out_type(c, 0, om_sequence_of(elem));
	c->out[0].shape = *shape;
}

static om_status
give_scalar(om_op_context *c, om_dtype t)
{
	c->out[0].type = t;
	c->out[0].shape = om_shape_of(0, NULL);
	return OM_OK;
}

/* Output a tensor of a container. */
static om_status
give_tensor(om_op_context *c, const om_tensor *from)
{
	uint64_t bytes;

	c->out[0].type = from->type;
	OM_TRY(c->alloc(c, 0, &from->shape));
	if (om_tensor_bytes(from->type, &from->shape, &bytes) && bytes)
		memcpy(c->out[0].data, from->data, bytes);
	return OM_OK;
}

/* An index into a list of `n`, counted from the end if negative; `most` is the largest valid index. */
static om_status
place_of(const om_op_context *c, uint32_t k, size_t n, int64_t most, size_t *at)
{
	int64_t v[OM_MAX_RANK];
	size_t count;

	if (!om_in_few(c, k, v, &count) || count != 1)
		return om_op_fail(c->session, OM_RUN, c->op, "position must be a scalar");
	const int64_t i = *v < 0 ? *v + (int64_t)n : *v;
	if (i < 0 || i > most)
		return om_op_fail(c->session, OM_RUN, c->op,
			"position %lld is out of range for a sequence of %zu", (long long)*v, n);
	*at = (size_t)i;
	return OM_OK;
}

/* ---- Constructing sequences. ---- */

static om_status
empty_infer(om_op_context *c)
{
	const int64_t t = om_attr_has(c->op, "dtype") ? om_attr_int(c->op, "dtype") : OM_FLOAT32;
	const om_shape open = om_shape_unknown();

	if (t <= 0 || t >= OM_NDTYPE)
		return om_op_fail(c->session, OM_INVALID, c->op, "unknown element type %lld", (long long)t);
	give_sequence(c, (om_dtype)t, &open);
	return OM_OK;
}

static om_status
empty_cpu(om_op_context *c)
{
	om_tensor *item;

	c->out[0].data = om_container_new(c->keep, 0, &item);
	return OM_OK;
}

static om_status
construct_infer(om_op_context *c)
{
	om_shape shape = c->in[0].shape;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!om_has_in(c, k))
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is omitted", k);
		OM_TRY(want_kind(c, k, OM_TENSOR));
		if (c->in[k].type != c->in[0].type)
			return om_wrong(c, "the inputs differ in type");
		om_shape_meet(&shape, &c->in[k].shape);
	}
	give_sequence(c, c->in[0].type, &shape);
	return OM_OK;
}

static om_status
construct_cpu(om_op_context *c)
{
	om_tensor *item;

	c->out[0].data = om_container_new(c->keep, c->op->nin, &item);
	for (uint32_t k = 0; k < c->op->nin; k++)
		OM_TRY(om_tensor_keep(c, &c->in[k], &item[k]));
	return OM_OK;
}

static om_status
insert_infer(om_op_context *c)
{
	om_shape shape = c->in[1].shape;

	OM_TRY(want_kind(c, 0, OM_SEQUENCE));
	OM_TRY(want_kind(c, 1, OM_TENSOR));
	if (om_has_in(c, 2))
		OM_TRY(want_kind(c, 2, OM_TENSOR));
	if (c->in[0].type != c->in[1].type)
		return om_op_fail(c->session, OM_SHAPE, c->op, "cannot insert %s into a sequence of %s",
			om_dtype_text(c->in[1].type), om_dtype_text(c->in[0].type));
	if (c->in[0].shape.rank == OM_RANK_UNKNOWN)
		shape = om_shape_unknown();
	om_shape_meet(&shape, &c->in[0].shape);
	give_sequence(c, c->in[1].type, &shape);
	return OM_OK;
}

static om_status
insert_cpu(om_op_context *c)
{
	const om_container *o = om_in_container(c, 0);
	om_tensor *item, new;
	size_t at = o->n;

	if (om_has_in(c, 2))
		OM_TRY(place_of(c, 2, o->n, (int64_t)o->n, &at));
	OM_TRY(om_tensor_keep(c, &c->in[1], &new));
	if (at == o->n) {
		c->out[0].data = om_container_append(c->keep, o, &new);
		return OM_OK;
	}
	c->out[0].data = om_container_new(c->keep, o->n + 1, &item);
	for (size_t k = 0; k <= o->n; k++)
		item[k] = k == at ? new : o->item[k - (k > at)];
	return OM_OK;
}

static om_status
erase_infer(om_op_context *c)
{
	OM_TRY(want_kind(c, 0, OM_SEQUENCE));
	if (om_has_in(c, 1))
		OM_TRY(want_kind(c, 1, OM_TENSOR));
	give_sequence(c, c->in[0].type, &c->in[0].shape);
	return OM_OK;
}

static om_status
erase_cpu(om_op_context *c)
{
	const om_container *o = om_in_container(c, 0);
	size_t at = o->n - 1;
	om_tensor *item;

	if (o->n == 0)
		return om_op_fail(c->session, OM_RUN, c->op, "the sequence is empty");
	if (om_has_in(c, 1))
		OM_TRY(place_of(c, 1, o->n, (int64_t)o->n - 1, &at));
	c->out[0].data = om_container_new(c->keep, o->n - 1, &item);
	for (size_t k = 0; k + 1 < o->n; k++)
		item[k] = o->item[k + (k >= at)];
	return OM_OK;
}

/* ---- SplitToSequence. ---- */

static bool
drops_axis(const om_op_context *c)
{
	return !om_has_in(c, 1) && !om_attr_int(c->op, "keepdims");
}

struct split {
	int axis;
	bool drops_axis;
};

static om_status
split_prepare(om_op_context *c, void **state)
{
	struct split *s = *state;

	s->drops_axis = drops_axis(c);
	return om_attr_axis(c, "axis", c->in[0].shape.rank, &s->axis);
}

/* Lengths along the axis, `n` in all; if only one length is given, the last part takes the remainder. */
struct cuts {
	int axis;
	int64_t total, each;
	const int64_t *list;     /* NULL: `each` */
	size_t n;
};

static om_status
cuts_of(const om_op_context *c, struct cuts *cut)
{
	int64_t *v, sum = 0;
	size_t n;

	*cut = (struct cuts){.each = 1, .axis = ((const struct split *)c->state)->axis};
	cut->total = c->in[0].shape.dim[cut->axis];
	if (om_has_in(c, 1)) {
		if (!om_in_ints(c, 1, &v, &n))
			return om_op_fail(c->session, OM_RUN, c->op, "split must contain integers");
		if (c->in[1].shape.rank > 0) {
			cut->list = v;
			cut->n = n;
			for (size_t k = 0; k < n; k++)
				if (v[k] < 0 || __builtin_add_overflow(sum, v[k], &sum))
					return om_wrong(c, "split has a negative element");
			return sum == cut->total ? OM_OK : om_wrong(c,
				"split does not sum to the size of the axis");
		}
		cut->each = *v;
	}
	if (cut->each < 1)
		return om_wrong(c, "split must be positive");
	cut->n = (size_t)(cut->total / cut->each + (cut->total % cut->each != 0));
	return OM_OK;
}

static int64_t
length_of(const struct cuts *cut, size_t k, int64_t done)
{
	if (cut->list)
		return cut->list[k];
	return cut->total - done < cut->each ? cut->total - done : cut->each;
}

static om_status
split_infer(om_op_context *c)
{
	om_shape part = c->in[0].shape;
	int axis;

	OM_TRY(want_kind(c, 0, OM_TENSOR));
	if (om_has_in(c, 1))
		OM_TRY(want_kind(c, 1, OM_TENSOR));
	if (part.rank >= 0) {
		OM_TRY(om_attr_axis(c, "axis", part.rank, &axis));
		part.dim[axis] = om_has_in(c, 1) ? OM_DIM_UNKNOWN : 1;
		part.sym[axis] = NULL;
		if (drops_axis(c)) {
			for (int k = axis; k + 1 < part.rank; k++)
				om_copy_dim(&part, k, &part, k + 1);
			part.rank--;
		}
	}
	give_sequence(c, c->in[0].type, &part);
	return OM_OK;
}

/* Elements [from, from + n) along the axis. */
static om_status
cut_part(om_op_context *c, const struct cuts *cut, int64_t from, int64_t n, om_tensor *to)
{
	const om_tensor *x = &c->in[0];
	const int64_t outer = om_shape_span(&x->shape, 0, cut->axis);
	const int64_t inner = om_shape_span(&x->shape, cut->axis + 1, x->shape.rank);
	size_t size;
	uint64_t bytes;

	OM_TRY(om_elem_bytes(c, x->type, &size));
	*to = *x;
	to->shape.dim[cut->axis] = n;
	om_tensor_bytes(to->type, &to->shape, &bytes);
	to->data = om_alloc_try(c->keep, bytes ? bytes : 1);
	if (!to->data)
		return om_op_fail(c->session, OM_MEMORY, c->op, "cannot allocate the split");
	const size_t run = (size_t)(n * inner) * size;
	for (int64_t o = 0; o < outer && run; o++)
		memcpy((char *)to->data + (size_t)o * run,
			(const char *)x->data + (size_t)((o * cut->total + from) * inner) * size, run);
	if (((const struct split *)c->state)->drops_axis) {
		for (int k = cut->axis; k + 1 < to->shape.rank; k++)
			to->shape.dim[k] = to->shape.dim[k + 1];
		to->shape.rank--;
	}
	return OM_OK;
}

static om_status
split_cpu(om_op_context *c)
{
	struct cuts cut;
	om_tensor *item;
	int64_t done = 0;

	OM_TRY(cuts_of(c, &cut));
	c->out[0].data = om_container_new(c->keep, cut.n, &item);
	for (size_t k = 0; k < cut.n; k++) {
		const int64_t n = length_of(&cut, k, done);
		OM_TRY(cut_part(c, &cut, done, n, &item[k]));
		done += n;
	}
	return OM_OK;
}

/* ---- Reading sequences. ---- */

static om_status
at_infer(om_op_context *c)
{
	OM_TRY(want_kind(c, 0, OM_SEQUENCE));
	OM_TRY(want_kind(c, 1, OM_TENSOR));
	c->out[0].type = c->in[0].type;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static om_status
at_cpu(om_op_context *c)
{
	const om_container *o = om_in_container(c, 0);
	size_t at;

	OM_TRY(place_of(c, 1, o->n, (int64_t)o->n - 1, &at));
	return give_tensor(c, &o->item[at]);
}

static om_status
length_infer(om_op_context *c)
{
	OM_TRY(want_kind(c, 0, OM_SEQUENCE));
	return give_scalar(c, OM_INT64);
}

static om_status
length_cpu(om_op_context *c)
{
	*(int64_t *)c->out[0].data = (int64_t)om_in_container(c, 0)->n;
	return OM_OK;
}

struct join {
	int64_t axis, new_axis;
};

static const om_attr_field join_fields[] = {
	OM_FIELD(struct join, INT, axis),
	OM_FIELD(struct join, INT, new_axis),
	{0}
};

/* The axis along which items of this rank are joined. */
static om_status
join_axis(const om_op_context *c, const struct join *s, int rank, int *axis)
{
	if (!om_axis(s->axis, rank + (s->new_axis != 0), axis))
		return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range", (long long)s->axis);
	return OM_OK;
}

static om_status
insert_dim(const om_op_context *c, om_shape *s, int axis, int64_t n)
{
	if (s->rank == OM_MAX_RANK)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "the output has too many dims");
	for (int k = s->rank++; k > axis; k--)
		om_copy_dim(s, k, s, k - 1);
	s->dim[axis] = n;
	s->sym[axis] = NULL;
	return OM_OK;
}

static om_status
join_infer(om_op_context *c)
{
	om_shape *y = &c->out[0].shape;
	struct join s;
	int axis;

	OM_TRY(want_kind(c, 0, OM_SEQUENCE));
	om_attr_fields(c->op, join_fields, &s);
	c->out[0].type = c->in[0].type;
	if (c->in[0].shape.rank == OM_RANK_UNKNOWN)
		return OM_OK;
	OM_TRY(join_axis(c, &s, c->in[0].shape.rank, &axis));
	*y = c->in[0].shape;
	if (s.new_axis)
		return insert_dim(c, y, axis, OM_DIM_UNKNOWN);
	y->dim[axis] = OM_DIM_UNKNOWN;
	y->sym[axis] = NULL;
	return OM_OK;
}

/* The shape of the concatenation. */
static om_status
joined_shape(om_op_context *c, const om_container *o, int *axis, om_shape *all)
{
	const struct join *j = c->state;
	const bool is_new = j->new_axis != 0;

	*all = o->item[0].shape;
	OM_TRY(join_axis(c, j, all->rank, axis));
	for (size_t k = 1; k < o->n; k++) {
		const om_shape *s = &o->item[k].shape;
		bool fits = s->rank == all->rank;
		for (int d = 0; fits && d < s->rank; d++)
			fits = s->dim[d] == all->dim[d] || (!is_new && d == *axis);
		if (!fits)
			return om_op_fail(c->session, OM_RUN, c->op, "element %zu of the sequence differs in shape", k);
		if (!is_new && __builtin_add_overflow(all->dim[*axis], s->dim[*axis], &all->dim[*axis]))
			return om_op_fail(c->session, OM_RUN, c->op, "the size of the output overflows");
	}
	return is_new ? insert_dim(c, all, *axis, (int64_t)o->n) : OM_OK;
}

static om_status
join_cpu(om_op_context *c)
{
	const om_container *o = om_in_container(c, 0);
	om_shape all;
	size_t size, done = 0;
	int axis;

	if (o->n == 0)
		return om_op_fail(c->session, OM_RUN, c->op, "the sequence is empty");
	OM_TRY(om_elem_bytes(c, o->item[0].type, &size));
	OM_TRY(joined_shape(c, o, &axis, &all));
	c->out[0].type = o->item[0].type;
	OM_TRY(c->alloc(c, 0, &all));
	const int64_t outer = om_shape_span(&all, 0, axis);
	const size_t stride = (size_t)om_shape_span(&all, axis, all.rank) * size;
	for (size_t k = 0; k < o->n; k++) {
		const size_t run = (size_t)om_shape_span(&o->item[k].shape, axis, o->item[k].shape.rank) * size;
		for (int64_t i = 0; i < outer && run; i++)
			memcpy((char *)c->out[0].data + (size_t)i * stride + done,
				(const char *)o->item[k].data + (size_t)i * run, run);
		done += run;
	}
	return OM_OK;
}

/* ---- Optionals. ---- */

static om_status
optional_infer(om_op_context *c)
{
	const om_attr *type = om_attr_find(c->op, "type");

	if (!om_has_in(c, 0)) {
		if (!type || type->kind != OM_ATTR_TYPE)
			return om_op_fail(c->session, OM_INVALID, c->op, "requires an input or the attribute type");
		const om_type made = {.kind = OM_OPTIONAL, .of = type->type};
		om_out_type(c, 0, &made);
		return OM_OK;
	}
	if (kind_of(c, 0) != OM_TENSOR)
		OM_TRY(want_kind(c, 0, OM_SEQUENCE));
	om_out_type(c, 0, kind_of(c, 0) == OM_TENSOR ? om_optional_of(c->in[0].type) : om_optional_sequence_of(c->in[0].type));
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static om_status
optional_cpu(om_op_context *c)
{
	om_tensor *item;

	c->out[0].data = om_container_new(c->keep, om_has_in(c, 0), &item);
	if (!om_has_in(c, 0))
		return OM_OK;
	if (kind_of(c, 0) == OM_TENSOR)
		return om_tensor_keep(c, &c->in[0], item);
	*item = c->in[0];
	return OM_OK;
}

/* A value that is not an optional is its own element. */
static om_status
element_infer(om_op_context *c)
{
	const om_type *type = &c->op->in[0]->type;

	if (type->kind == OM_MAP || (type->kind == OM_OPTIONAL && !type->of))
		return want_kind(c, 0, OM_TENSOR);
	om_out_type(c, 0, type->kind == OM_OPTIONAL ? type->of : type);
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static om_status
element_cpu(om_op_context *c)
{
	const om_tensor *from = &c->in[0];

	if (kind_of(c, 0) == OM_OPTIONAL) {
		const om_container *o = om_in_container(c, 0);
		if (o->n == 0)
			return om_op_fail(c->session, OM_RUN, c->op, "the optional has no element");
		from = o->item;
	}
	if (c->op->out[0]->type.kind == OM_TENSOR)
		return give_tensor(c, from);
	c->out[0].data = from->data;
	return OM_OK;
}

static om_status
has_infer(om_op_context *c)
{
	if (om_has_in(c, 0) && kind_of(c, 0) == OM_MAP)
		return want_kind(c, 0, OM_OPTIONAL);
	return give_scalar(c, OM_BOOL);
}

static om_status
has_cpu(om_op_context *c)
{
	bool has = om_has_in(c, 0);

	if (has && kind_of(c, 0) == OM_OPTIONAL)
		has = om_in_container(c, 0)->n > 0;
	*(bool *)c->out[0].data = has;
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec empty_attrs[] = {{"dtype", OM_ATTR_INT}, {0}};
static const om_attr_spec optional_attrs[] = {{"type", OM_ATTR_TYPE}, {0}};
static const om_attr_spec split_attrs[] = {{"axis", OM_ATTR_INT}, {"keepdims", OM_ATTR_INT, .i = 1}, {0}};
static const om_attr_spec join_attrs[] = {
	{"axis", OM_ATTR_INT, .required = true},
	{"new_axis", OM_ATTR_INT},
	{0}
};

#define ONE .min_out = 1, .max_out = 1, .flags = OM_NON_TENSOR
#define SIZED .min_out = 1, .max_out = 1, .flags = OM_NON_TENSOR | OM_DATA_DEPENDENT_SHAPE

const om_opdef om_ops_sequence[] = {
	{ONE, .name = "SequenceEmpty", .brief = "empty sequence", .since = 11, .attrs = empty_attrs,
	 .infer = empty_infer, .cpu = empty_cpu},
	{ONE, .name = "SequenceConstruct", .brief = "sequence of the inputs", .since = 11, .min_in = 1,
	 .max_in = OM_VARIADIC, .infer = construct_infer, .cpu = construct_cpu},
	{ONE, .name = "SequenceInsert", .brief = "sequence with an element inserted", .since = 11, .min_in = 2,
	 .max_in = 3, .infer = insert_infer, .cpu = insert_cpu},
	{ONE, .name = "SequenceErase", .brief = "sequence with an element erased", .since = 11, .min_in = 1,
	 .max_in = 2, .infer = erase_infer, .cpu = erase_cpu},
	{ONE, .name = "SplitToSequence", .brief = "tensor split into a sequence", .since = 11, .min_in = 1,
	 .max_in = 2, .attrs = split_attrs, .infer = split_infer, .cpu = split_cpu},
	{SIZED, .name = "SequenceAt", .brief = "element of a sequence", .since = 11, .min_in = 2, .max_in = 2,
	 .infer = at_infer, .cpu = at_cpu},
	{ONE, .name = "SequenceLength", .brief = "length of a sequence", .since = 11, .min_in = 1,
	 .max_in = 1, .infer = length_infer, .cpu = length_cpu},
	{SIZED, .name = "ConcatFromSequence", .brief = "concatenation of the elements of a sequence", .since = 11,
	 .min_in = 1, .max_in = 1, .attrs = join_attrs, .infer = join_infer, .cpu = join_cpu},
	{ONE, .name = "Optional", .brief = "optional that holds the input, or is empty", .since = 15, .max_in = 1,
	 .attrs = optional_attrs, .infer = optional_infer, .cpu = optional_cpu},
	{SIZED, .name = "OptionalGetElement", .brief = "element of an optional", .since = 15, .min_in = 1,
	 .max_in = 1, .infer = element_infer, .cpu = element_cpu},
	{ONE, .name = "OptionalHasElement", .brief = "whether an optional has an element", .since = 15, .until = 17,
	 .min_in = 1, .max_in = 1, .infer = has_infer, .cpu = has_cpu},
	{ONE, .name = "OptionalHasElement", .brief = "whether an optional has an element", .since = 18,
	 .max_in = 1, .infer = has_infer, .cpu = has_cpu},
	{0}
};

const om_kernel om_kernels_sequence[] = {
	{.name = "SplitToSequence", .state_bytes = sizeof(struct split), .prepare = split_prepare, .run = split_cpu},
	{.name = "ConcatFromSequence", .fields = join_fields, .state_bytes = sizeof(struct join), .run = join_cpu},
	{0}
};
