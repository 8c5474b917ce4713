/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of a program: a sequence of tokens, each with its length, of all values and ops by their numbers. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/sha256.h"
#include "base/shape.h"
#include "ir/binding.h"
#include "onnx/annotate.h"
#include "onnx/lowered.h"

enum { MOST_BYTES = 65536 };     /* of elements that are included */

struct digest {
	om_sha256 *h;
};

bool
om_prog_is_lowered(const om_prog *p)
{
	return p->passes && (p->plan->target == OM_TARGET_CPU || om_prog_has_fixed_inputs(p));
}

/* ---- Tokens. ---- */

static void
add(struct digest *d, const void *p, size_t n)
{
	const uint64_t size = n;
	unsigned char bytes[sizeof size];

	for (size_t k = 0; k < sizeof bytes; k++)
		bytes[k] = (unsigned char)(size >> 8 * k);
	om_sha256_add(d->h, bytes, sizeof bytes);
	if (n)
		om_sha256_add(d->h, p, n);
}

static void
add_text(struct digest *d, const char *s)
{
	add(d, s ? s : "", s ? strlen(s) : 0);
}

static void
add_number(struct digest *d, int64_t n)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRId64, n);
	add_text(d, text);
}

static void
add_shape(struct digest *d, const om_shape *s)
{
	add_number(d, s->rank);
	for (int k = 0; k < s->rank; k++)
		add_number(d, s->dim[k] < 0 ? -1 : s->dim[k]);
}

static void
add_type(struct digest *d, const om_type *t)
{
	for (; t; t = t->of) {
		add_number(d, t->kind);
		add_number(d, t->elem);
	}
}

static bool
is_included(om_dtype type)
{
	return !om_dtype_is_float(type) && type != OM_STRING && om_dtype_bits(type) % 8 == 0
	    && type != OM_COMPLEX64 && type != OM_COMPLEX128;
}

static void
add_tensor(struct digest *d, const om_tensor *t)
{
	uint64_t bytes;

	add_number(d, t->type);
	add_shape(d, &t->shape);
	if (!t->data || !is_included(t->type) || !om_tensor_bytes(t->type, &t->shape, &bytes) || bytes > MOST_BYTES)
		return;
	const size_t each = om_dtype_bits(t->type) / 8;
	for (uint64_t at = 0; t->splat && at < bytes; at += each)
		add(d, t->data, each);
	for (uint64_t at = 0; !t->splat && at < bytes; at += each)
		add(d, (const char *)t->data + at, each);
}

/* ---- Values and ops. ---- */

static void
add_value(struct digest *d, const om_value *v)
{
	add_text(d, v->name);
	add_number(d, v->block->id);
	add_type(d, &v->type);
	add_shape(d, &v->shape);
	add_number(d, v->is_const + 2 * v->is_overridable);
	if (v->data)
		add_tensor(d, v->data);
}

static void
add_values(struct digest *d, om_value *const *v, uint32_t n)
{
	add_number(d, n);
	for (uint32_t k = 0; k < n; k++)
		add_number(d, v[k] ? (int64_t)v[k]->id : -1);
}

static void
add_attr(struct digest *d, const om_attr *a)
{
	add_text(d, a->name);
	add_number(d, a->kind);
	add_number(d, (int64_t)a->n);
	for (size_t k = 0; k < a->n; k++)
		switch (a->kind) {
		case OM_ATTR_FLOAT: case OM_ATTR_FLOATS: add(d, &a->f[k], sizeof a->f[k]); break;
		case OM_ATTR_INT: case OM_ATTR_INTS: add_number(d, a->i[k]); break;
		case OM_ATTR_STRING: case OM_ATTR_STRINGS: add(d, a->s[k].data, a->s[k].size); break;
		case OM_ATTR_TENSOR: case OM_ATTR_TENSORS: add_tensor(d, &a->t[k]); break;
		case OM_ATTR_GRAPH: case OM_ATTR_GRAPHS: add_number(d, a->g[k]->id); break;
		case OM_ATTR_TYPE: case OM_ATTR_TYPES: add_type(d, &a->type[k]); break;
		default: break;
		}
}

static void
add_op(struct digest *d, const om_op *op)
{
	add_number(d, op->id);
	add_text(d, op->domain);
	add_text(d, op->type);
	add_text(d, op->overload);
	add_number(d, op->version);
	add_number(d, op->is_folded);
	add_values(d, op->in, op->nin);
	add_values(d, op->out, op->nout);
	add_number(d, op->nattr);
	for (uint32_t k = 0; k < op->nattr; k++)
		add_attr(d, &op->attr[k]);
}

const char *
om_prog_digest(const om_prog *p, om_arena *mem)
{
	struct digest d = {om_sha256_new(mem)};
	char hex[OM_SHA256_TEXT];

	add_number(&d, p->nvalue);
	for (uint32_t k = 0; k < p->nvalue; k++)
		add_value(&d, p->values[k]);
	for (const om_block *b = p->first; b; b = b->next) {
		add_number(&d, b->id);
		add_values(&d, b->param, b->nparam);
		for (const om_op *op = b->first; op; op = op->next)
			add_op(&d, op);
		add_values(&d, b->result, b->nresult);
	}
	om_sha256_end(d.h, hex);
	return om_printf(mem, "sha256:%s", hex);
}

/* ---- Orders. ---- */

static int
by_id(const void *a, const void *b)
{
	const om_op *const *x = a, *const *y = b;
	return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

om_op **
om_ops_by_creation(const om_block *b, om_arena *mem)
{
	om_op **all = OM_NEWN(mem, om_op *, (size_t)b->nop + 1);
	uint32_t n = 0;

	for (om_op *op = b->first; op; op = op->next)
		all[n++] = op;
	qsort(all, n, sizeof *all, by_id);
	return all;
}
