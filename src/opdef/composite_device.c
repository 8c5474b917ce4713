/* SPDX-License-Identifier: Apache-2.0 */
/* Composite operators on devices: the launches of their parts, one part after the other.
 *
 * Intermediate tensors have buffers in the scratch, unless they are views; what becomes an output is computed in its memory.
 * Constants of the recipe that kernels read are filled in before.  An operator of which a part has no kernels stays on the
 * processor. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "base/sizes.h"
#include "ir/operators.h"
#include "opdef/composite_internal.h"
#include "opdef/device_kernel.h"

/* Elements of a constant: one launch each. */
enum { MOST_CONSTANTS = 16 };

/* Where a tensor of the recipe is. */
struct place {
	const om_tensor *t;
	const om_tensor *of;     /* it is bytes of this one, from `at` on; NULL: it has a buffer */
	uint64_t at, bytes;      /* of the buffer, in the scratch */
	bool is_output;          /* the buffer is output `out` */
	uint32_t out;
	bool is_constant, is_filled;
};

struct om_composite_device {
	struct place *place;
	size_t n, cap;
};

static struct place *
place_of(const om_composite *p, const om_tensor *t)
{
	for (size_t k = 0; k < p->device->n; k++)
		if (p->device->place[k].t == t)
			return &p->device->place[k];
	return NULL;
}

static void
add_place(om_composite *p, struct place x)
{
	struct om_composite_device *d = p->device;

	OM_PUSH(p->c->mem, d->place, d->n, d->cap, x);
}

/* The tensor whose bytes `t` is, and from where on. */
static const om_tensor *
root_of(const om_composite *p, const om_tensor *t, uint64_t *offset)
{
	*offset = 0;
	for (const struct place *x = place_of(p, t); x && x->of; x = place_of(p, t)) {
		*offset += x->at;
		t = x->of;
	}
	return t;
}

/* The index of the input that the tensor is; -1: none. */
static int64_t
input_of(const om_composite *p, const om_tensor *t)
{
	const om_tensor *in = p->c->in;

	for (uint32_t k = 0; k < p->c->op->nin; k++)
		if (t == &in[k])
			return k;
	return -1;
}

/* ---- Recording. ---- */

static void
add_buffer(om_composite *p, const om_tensor *t, bool is_constant)
{
	struct place x = {.t = t, .is_constant = is_constant};

	if (!om_tensor_bytes(t->type, &t->shape, &x.bytes))
		om_composite_refuse(p, OM_SHAPE, "the size of an intermediate value is not known");
	else
		add_place(p, x);
}

void
om_composite_device_buffer(om_composite *p, const om_tensor *t)
{
	add_buffer(p, t, false);
}

void
om_composite_device_view(om_composite *p, const om_tensor *t, const om_tensor *of, uint64_t offset)
{
	add_place(p, (struct place){.t = t, .of = of, .at = offset});
}

/* Is it made by the recipe, with elements that are known? */
static bool
is_constant(const om_composite *p, const om_tensor *t)
{
	const struct place *x = place_of(p, t);

	return t->data && input_of(p, t) < 0 && (!x || x->is_constant);
}

/* What the kernels read in memory has a place there; what the processor reads is a constant of the recipe. */
static bool
has_operand(om_composite *p, const om_device_kernel *row, uint32_t k, const om_tensor *t)
{
	uint64_t offset;

	if (om_is_host_input(row, k))
		return is_constant(p, t);
	t = root_of(p, t, &offset);
	if (!is_constant(p, t) || place_of(p, t))
		return true;
	if (om_shape_count(&t->shape) > MOST_CONSTANTS || !om_kernel_moved_type(t->type))
		return false;
	add_buffer(p, t, true);
	return true;
}

om_status
om_composite_device_part(om_composite *p, struct om_composite_step *s)
{
	const om_op *part = s->part.op;
	bool fits;

	s->row = om_device_kernel_find(&s->part);
	fits = s->row != NULL && !(part->opdef->flags & OM_DATA_DEPENDENT_SHAPE);
	for (uint32_t k = 0; k < part->nin && fits; k++)
		fits = !s->from[k] || has_operand(p, s->row, k, s->from[k]);
	for (uint32_t k = 0; k < part->nout && fits; k++)
		fits = !s->is_view[k];
	if (!fits)
		om_composite_refuse(p, OM_UNSUPPORTED, "one of its parts has no kernels for devices");
	return p->st;
}

/* The buffer of the tensor becomes the output. */
void
om_composite_device_output(om_composite *p, uint32_t k, const om_tensor *t)
{
	uint64_t offset, bytes;
	struct place *x = place_of(p, root_of(p, t, &offset));

	om_tensor_bytes(t->type, &t->shape, &bytes);
	if (!x || x->is_output || x->is_constant || offset != 0 || x->bytes != bytes) {
		om_composite_refuse(p, OM_UNSUPPORTED, "an output is not computed by any of its parts");
		return;
	}
	x->is_output = true;
	x->out = k;
	struct om_composite_step *s = om_composite_add_step(p);
	s->t = t;
	s->is_output = true;
	s->out = k;
}

/* Buffers, and after them the scratch of the parts. */
static uint64_t
place_all(om_composite *p)
{
	uint64_t bytes = 0, most = 0;

	for (size_t k = 0; k < p->device->n; k++) {
		struct place *x = &p->device->place[k];
		if (x->of || x->is_output)
			continue;
		x->at = bytes;
		bytes = om_size_sum(bytes, om_piece_size(x->bytes ? x->bytes : 1));
	}
	for (size_t k = 0; k < p->made->n; k++) {
		struct om_composite_step *s = &p->made->step[k];
		const uint64_t own = s->row && s->row->scratch ? s->row->scratch(&s->part) : 0;
		s->scratch = bytes;
		most = own > most ? own : most;
	}
	return om_size_sum(bytes, most);
}

/* Record the parts; false if a device cannot compute them. */
static bool
record(om_composite *p, om_op_context *own, const om_op_context *c, om_recipe *recipe)
{
	*own = *c;
	own->session = NULL;
	*p = (om_composite){.c = own, .doing = OM_PREPARING, .made = OM_NEW(c->mem, struct om_composite_steps),
		.device = OM_NEW(c->mem, struct om_composite_device)};
	om_composite_record(p, recipe);
	return p->st == OM_OK;
}

bool
om_parts_on_device(const om_op_context *c, om_recipe *recipe)
{
	om_op_context own;
	om_composite p;

	return record(&p, &own, c, recipe);
}

uint64_t
om_parts_device_scratch(const om_op_context *c, om_recipe *recipe)
{
	om_op_context own;
	om_composite p;

	return record(&p, &own, c, recipe) ? place_all(&p) : 0;
}

/* ---- Launches. ---- */

/* `bytes` bytes of a tensor, from `at` on; 0: all of them. */
static void
add_memory(const om_composite *p, om_launch *l, om_arg_kind kind, const om_tensor *t, uint64_t at, uint64_t bytes)
{
	uint64_t offset, all = 0;
	const om_tensor *root = root_of(p, t, &offset);
	const struct place *x = place_of(p, root);

	om_tensor_bytes(t->type, &t->shape, &all);
	bytes = bytes ? bytes : all - at;
	if (!x)
		om_launch_part(l, kind, OM_OPERAND_IN, (uint32_t)input_of(p, root), offset + at, bytes);
	else if (x->is_output)
		om_launch_part(l, kind, OM_OPERAND_OUT, x->out, offset + at, bytes);
	else
		om_launch_scratch(l, kind, x->at + offset + at, bytes);
}

static void
add_number(om_launch *l, const om_launch_arg *a)
{
	if (a->type == OM_ARG_F32)
		om_launch_f32(l, a->value.f);
	else if (a->type == OM_ARG_I32)
		om_launch_i32(l, (int32_t)a->value.i);
	else
		om_launch_i64(l, a->value.i);
}

/* An argument of a part, as one of the op. */
static void
add_argument(const om_composite *p, const struct om_composite_step *s, om_launch *l, const om_launch_arg *a)
{
	if (a->kind == OM_ARG_VALUE)
		add_number(l, a);
	else if (a->operand == OM_OPERAND_SCRATCH)
		om_launch_scratch(l, a->kind, s->scratch + a->at, a->bytes);
	else
		add_memory(p, l, a->kind, a->operand == OM_OPERAND_IN ? s->from[a->index] : &s->part.out[a->index], a->at, a->bytes);
}

/* Write the elements of a constant, which is read or a view of it, into its buffer. */
static void
fill(om_composite *p, om_launch_list *to, const om_tensor *read)
{
	uint64_t offset;
	const om_tensor *t = root_of(p, read, &offset);
	struct place *x = place_of(p, t);
	const int64_t n = om_shape_count(&t->shape), launches = t->splat ? n > 0 : n, count = t->splat ? n : 1;
	const size_t size = om_dtype_bits(t->type) / 8;
	const char *type = om_kernel_moved_type(t->type);

	if (!x || !x->is_constant || x->is_filled)
		return;
	x->is_filled = true;
	for (int64_t k = 0; k < launches; k++) {
		union { uint8_t u8; uint16_t u16; uint32_t u32; uint64_t u64; } one = {.u64 = 0};
		memcpy(&one, (const char *)t->data + (size_t)k * size, size);
		om_launch *l = om_launch_typed(to, "move", "fill", type, count);
		add_memory(p, l, OM_ARG_OUT, t, (uint64_t)k * size, (uint64_t)count * size);
		om_launch_i64(l, count);
		om_launch_i64(l, (int64_t)(size == 1 ? one.u8 : size == 2 ? one.u16 : size == 4 ? one.u32 : one.u64));
	}
}

static om_status
launch_part(om_composite *p, struct om_composite_step *s, om_launch_list *to)
{
	om_launch_list own = {.mem = to->mem, .threads = to->threads, .shared = to->shared};

	s->part.session = p->c->session;
	if (om_shape_count(&s->part.out[0].shape) == 0)
		return OM_OK;
	for (uint32_t k = 0; k < s->part.op->nin; k++)
		if (s->from[k] && !om_is_host_input(s->row, k))
			fill(p, to, s->from[k]);
	OM_TRY(s->row->launches(&s->part, &own));
	for (size_t k = 0; k < own.n; k++) {
		const om_launch *from = &own.launch[k];
		om_launch *l = om_launch_add_grid(to, from->unit, from->prologue, from->entry, from->grid);
		for (uint32_t a = 0; a < from->nargs; a++)
			add_argument(p, s, l, &from->arg[a]);
	}
	return OM_OK;
}

om_status
om_parts_launches(const om_op_context *c, om_recipe *recipe, om_launch_list *to)
{
	om_op_context own;
	om_composite p;

	if (!record(&p, &own, c, recipe))
		return p.st;
	place_all(&p);
	own.session = c->session;
	for (size_t k = 0; k < p.made->n; k++)
		if (p.made->step[k].row)
			OM_TRY(launch_part(&p, &p.made->step[k], to));
	return OM_OK;
}
