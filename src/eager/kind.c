/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of calls: the operator with its attributes, for inputs of given types and shapes, and its prepared kernel.
 *
 * Inference decides what a kind depends on.  As a rule that is types and shapes.  If shapes of outputs are not known
 * without elements of inputs, as the shape that Reshape gets, these inputs are found by trying, and their elements are
 * part of the kind: it has them as constants.  If they are not known with all small inputs either, the call is open: it is
 * inferred and prepared each time.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/fast_hash.h"
#include "base/shape.h"
#include "eager/eager_internal.h"
#include "grad/callback.h"
#include "ir/query.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"

enum { MOST_VALUES = 1024, MOST_SMALL = 64 };

/* ---- Hashes and equality of signatures. ---- */

static uint64_t
attr_hash(uint64_t h, const om_attr *a)
{
	h = om_fast_hash_text(om_fast_hash_number(h, (uint64_t)a->kind ^ a->n << 8), a->name);
	switch (a->kind) {
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS: return om_fast_hash(h, a->f, a->n * sizeof *a->f);
	case OM_ATTR_INT: case OM_ATTR_INTS: return om_fast_hash(h, a->i, a->n * sizeof *a->i);
	case OM_ATTR_STRING: case OM_ATTR_STRINGS:
		for (size_t k = 0; k < a->n; k++)
			h = om_fast_hash(h, a->s[k].data, a->s[k].size);
		return h;
	default:
		return h;
	}
}

static uint64_t
signature_hash(const struct signature *s)
{
	uint64_t h = om_fast_hash_text((uint64_t)s->nin << 32 | s->nout, s->type) ^ s->outs;

	for (const om_attr *a = s->attrs; a && a->name; a++)
		h = attr_hash(h, a);
	for (uint32_t k = 0; k < s->nin; k++)
		h = om_fast_hash_number(h, s->in[k] ? s->in[k]->form : k);
	return h;
}

static bool
tensors_equal(const om_tensor *a, const om_tensor *b)
{
	uint64_t bytes;

	return om_form_equal(a, b) && a->splat == b->splat && om_tensor_bytes(a->type, &a->shape, &bytes)
	    && a->type != OM_STRING && (a->splat || bytes == 0 || memcmp(a->data, b->data, bytes) == 0)
	    && (!a->splat || memcmp(a->data, b->data, om_dtype_bits(a->type) / 8) == 0);
}

static bool
attrs_equal(const om_attr *a, const om_attr *b)
{
	if (a->kind != b->kind || a->n != b->n || strcmp(a->name, b->name) != 0)
		return false;
	for (size_t k = 0; k < a->n; k++)
		switch (a->kind) {
		case OM_ATTR_FLOAT: case OM_ATTR_FLOATS:
			if (memcmp(&a->f[k], &b->f[k], sizeof *a->f) != 0)
				return false;
			break;
		case OM_ATTR_INT: case OM_ATTR_INTS:
			if (a->i[k] != b->i[k])
				return false;
			break;
		case OM_ATTR_STRING: case OM_ATTR_STRINGS:
			if (a->s[k].size != b->s[k].size || memcmp(a->s[k].data, b->s[k].data, a->s[k].size) != 0)
				return false;
			break;
		case OM_ATTR_TENSOR: case OM_ATTR_TENSORS:
			if (!tensors_equal(&a->t[k], &b->t[k]))
				return false;
			break;
		default:
			return false;
		}
	return true;
}

static bool
has_attrs(const struct kind *k, const om_attr *attrs)
{
	uint32_t n = 0;

	for (; attrs && attrs->name; attrs++, n++)
		if (n == k->op->nattr || !attrs_equal(attrs, &k->op->attr[n]))
			return false;
	return n == k->op->nattr;
}

static bool
has_inputs(const struct kind *k, const struct signature *s)
{
	for (uint32_t i = 0; i < s->nin; i++) {
		if (!s->in[i] != !k->op->in[i])
			return false;
		if (s->in[i] && !om_form_equal(&s->in[i]->t, &k->in[i]))
			return false;
	}
	return true;
}

static bool
has_outputs(const struct kind *k, const struct signature *s)
{
	for (uint32_t i = 0; i < s->nout; i++)
		if ((s->outs >> i & 1) != (k->op->out[i] != NULL))
			return false;
	return true;
}

static bool
has_values(const struct kind *k, const struct signature *s)
{
	for (uint32_t i = 0; i < s->nin && i < 64; i++)
		if (om_is_value(k->values, i) && !tensors_equal(&s->in[i]->t, &k->in[i]))
			return false;
	return true;
}

static bool
is_of(const struct kind *k, const struct signature *s)
{
	return k->nin == s->nin && k->nout == s->nout && strcmp(k->prog->name, s->type) == 0 && has_attrs(k, s->attrs)
	    && has_inputs(k, s) && has_outputs(k, s);
}

/* ---- The table. ---- */

enum { TABLE = 4 * OM_EAGER_NODES };

static struct kind *
find(const om_eager *e, const struct signature *s, uint64_t hash, bool by_values)
{
	struct kind *k;

	for (uint64_t at = hash % TABLE; (k = e->kinds[at]); at = (at + 1) % TABLE)
		if (k->hash == hash && k->has_values == by_values && is_of(k, s) && (!by_values || has_values(k, s)))
			return k;
	return NULL;
}

static void
insert(om_eager *e, struct kind *k, uint64_t hash)
{
	uint64_t at = hash % TABLE;

	while (e->kinds[at])
		at = (at + 1) % TABLE;
	k->hash = hash;
	e->kinds[at] = k;
	e->nkind++;
}

void
om_kind_drop(struct kind *k)
{
	if (--k->refs)
		return;
	om_prog_free(k->prog);
	free(k);
}

void
om_kinds_forget(om_eager *e)
{
	for (size_t at = 0; at < TABLE; at++) {
		if (e->kinds[at])
			om_kind_drop(e->kinds[at]);
		e->kinds[at] = NULL;
	}
	e->nkind = 0;
}

/* ---- Making one. ---- */

static void
set_opsets(om_prog *p, int version)
{
	static const om_opset others[] = {{"ai.onnx.ml", 3}, {"com.microsoft", 1}, {"org.onnxmem.grad", 1}};

	p->nopset = 1 + sizeof others / sizeof others[0];
	p->opset = OM_NEWN(p->mem, om_opset, p->nopset);
	p->opset[0] = (om_opset){"", version};
	memcpy(p->opset + 1, others, sizeof others);
	p->ir_version = 10;
}

om_prog *
om_eager_prog(om_eager *e, const char *name)
{
	om_prog *p = om_prog_new();

	set_opsets(p, e->options.opset);
	p->name = om_strdup(p->mem, name);
	om_block_new(p, NULL, NULL, p->name);
	if (e->options.callbacks)
		om_callbacks_give(p, e->options.callbacks);
	return p;
}

om_value *
om_eager_param(om_prog *p, const om_tensor *form, const char *stem)
{
	om_value *v = om_value_fresh(p, p->first, stem);

	v->type = (om_type){.kind = OM_TENSOR, .elem = form->type};
	v->shape = om_shape_of(form->shape.rank, form->shape.dim);
	v->is_declared = true;
	om_block_add_param(p->first, v);
	return v;
}

om_value *
om_eager_constant(om_prog *p, const om_tensor *t, const char *stem)
{
	om_tensor *copy = OM_NEW(p->mem, om_tensor);
	uint64_t bytes = 0;

	om_tensor_bytes(t->type, &t->shape, &bytes);
	copy->type = t->type;
	copy->shape = om_shape_of(t->shape.rank, t->shape.dim);
	copy->data = om_memdup(p->mem, t->data, bytes);
	om_value *v = om_const_new(p, p->first, om_value_fresh(p, p->first, stem)->name, copy);
	return v;
}

/* A tensor that an attribute holds is not copied by the builder. */
static void
add_attr(om_prog *p, om_op *op, const om_attr *a)
{
	om_attr copy = *a;
	om_tensor *t;

	if (a->kind == OM_ATTR_TENSOR || a->kind == OM_ATTR_TENSORS) {
		copy.t = t = om_memdup(p->mem, a->t, a->n * sizeof *a->t);
		for (size_t k = 0; k < a->n; k++) {
			uint64_t bytes = 0;
			om_tensor_bytes(t[k].type, &t[k].shape, &bytes);
			t[k].data = om_memdup(p->mem, t[k].data, t[k].splat ? om_dtype_bits(t[k].type) / 8 : bytes);
		}
	}
	om_op_add_attr(p, op, &copy);
}

om_op *
om_eager_op(om_prog *p, const char *type, const om_attr *attrs, uint32_t nattr, uint32_t nin, uint32_t nout)
{
	const char *colon = strchr(type, ':');
	const char *domain = colon ? om_strndup(p->mem, type, (size_t)(colon - type)) : "";
	om_op *op = om_op_new(p, domain, colon ? colon + 1 : type, 0, nin, nout);

	for (uint32_t k = 0; k < nattr; k++)
		add_attr(p, op, &attrs[k]);
	return op;
}

static uint32_t
count_attrs(const om_attr *attrs)
{
	uint32_t n = 0;

	while (attrs && attrs[n].name)
		n++;
	return n;
}

static om_status
check_attrs(om_eager *e, const struct signature *s)
{
	for (const om_attr *a = s->attrs; a && a->name; a++)
		if (a->kind == OM_ATTR_GRAPH || a->kind == OM_ATTR_GRAPHS || a->kind == OM_ATTR_SPARSE || a->kind == OM_ATTR_SPARSES
		    || a->kind == OM_ATTR_TYPE || a->kind == OM_ATTR_TYPES || a->ref)
			return om_fail(e->session, OM_UNSUPPORTED, "%s: attribute %s has a kind that calls do not support", s->type, a->name);
	return OM_OK;
}

static om_status
check_definition(om_eager *e, const om_op *op, const char *type)
{
	if (!op->opdef)
		return om_fail(e->session, OM_UNSUPPORTED, "%s is not known in opset %d", type, e->options.opset);
	if (op->opdef->control != OM_PLAIN || op->opdef->flags & OM_NON_TENSOR)
		return om_fail(e->session, OM_UNSUPPORTED, "%s has bodies, or objects that are no tensors: it cannot be called", type);
	return OM_OK;
}

/* The op with the inputs whose bit is set in `values` as constants; shapes of outputs are inferred. */
static om_status
infer(om_eager *e, const struct signature *s, uint64_t values, om_prog **prog, om_op **op)
{
	om_prog *p = om_eager_prog(e, s->type);

	*prog = p;
	*op = om_eager_op(p, s->type, s->attrs, count_attrs(s->attrs), s->nin, s->nout);
	OM_TRY(check_definition(e, *op, s->type));
	for (uint32_t k = 0; k < s->nin; k++)
		if (s->in[k])
			om_op_set_in(*op, k, om_is_value(values, k) ? om_eager_constant(p, &s->in[k]->t, "c")
				: om_eager_param(p, &s->in[k]->t, "x"));
	for (uint32_t k = 0; k < s->nout; k++)
		if (s->outs >> k & 1)
			om_op_set_out(*op, k, om_value_fresh(p, p->first, "y"));
	om_op_append(p->first, *op);
	return om_op_infer(e->session, p, *op);
}

static bool
is_known(const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && (!om_shape_is_known(&op->out[k]->shape) || op->out[k]->type.elem == OM_UNDEFINED))
			return false;
	return true;
}

/* Do these elements decide all shapes? */
static bool
is_known_by(om_eager *e, const struct signature *s, uint64_t values)
{
	om_prog *p;
	om_op *op;
	const bool known = infer(e, s, values, &p, &op) == OM_OK && is_known(op);

	om_prog_free(p);
	return known;
}

static bool
is_candidate(const om_variable *v)
{
	uint64_t bytes;

	return v && om_tensor_bytes(v->t.type, &v->t.shape, &bytes) && bytes <= MOST_VALUES;
}

static bool
is_waiting(const om_eager *e, const om_variable *v)
{
	return v->state != OM_READY || (v->sequence == e->seq.serial && v->place < OM_PLACE_NONE && !e->options.no_replay);
}

/* Leave out those that are not needed. */
static uint64_t
fewest(om_eager *e, const struct signature *s, uint64_t values)
{
	for (uint32_t k = 0; k < s->nin && k < 64; k++)
		if (om_is_value(values, k) && is_known_by(e, s, values & ~(UINT64_C(1) << k)))
			values &= ~(UINT64_C(1) << k);
	return values;
}

/* The fewest inputs whose elements decide all shapes; 0 if they do not.  `*waits`: only the elements of others could. */
static uint64_t
find_values(om_eager *e, const struct signature *s, bool *waits)
{
	uint64_t ready = 0;
	bool others = false;

	for (uint32_t k = 0; k < s->nin && k < 64; k++) {
		if (!is_candidate(s->in[k]))
			continue;
		if (is_waiting(e, s->in[k]))
			others = true;
		else
			ready |= UINT64_C(1) << k;
	}
	if (ready && is_known_by(e, s, ready))
		return fewest(e, s, ready);
	*waits = others;
	return 0;
}

static bool
is_small_list(const om_value *v)
{
	return v->type.elem == OM_INT64 && om_shape_is_known(&v->shape) && om_shape_count(&v->shape) <= MOST_SMALL;
}

static bool
is_small(const om_op *op)
{
	bool small = op->nout == 1 && op->out[0] && is_small_list(op->out[0]);

	for (uint32_t k = 0; k < op->nin && !(op->opdef->flags & OM_SHAPE_ONLY); k++)
		small &= !op->in[k] || is_small_list(op->in[k]);
	return small;
}

/* All outputs are bytes of inputs. */
static const om_view_of *
find_views(const struct kind *k)
{
	om_view_of *view = OM_NEWN(k->prog->mem, om_view_of, (size_t)k->nout + 1);

	for (uint32_t i = 0; i < k->nout; i++) {
		if (!k->op->out[i])
			continue;
		const unsigned bits = om_dtype_bits(k->op->out[i]->type.elem);
		if (!om_op_view(k->op, i, &view[i]) || bits < 8 || view[i].offset % (bits / 8) || om_is_value(k->values, view[i].in))
			return NULL;
	}
	return view;
}

static om_status
prepare(om_eager *e, struct kind *k)
{
	om_op_context *c = &k->c;

	om_op_context_init(c, e->session, k->prog->mem, k->op);
	k->in = (om_tensor *)c->in;
	c->keep = k->prog->mem;
	om_op_context_workers(c, e->options.threads, false);
	c->pool = c->workers > 1 ? e->pool : NULL;
	k->form = OM_NEWN(k->prog->mem, uint64_t, (size_t)k->nout + 1);
	if (k->is_open)
		return OM_OK;
	for (uint32_t i = 0; i < k->nout; i++)
		k->form[i] = om_form_hash(&c->out[i]);
	const om_cost cost = om_op_context_cost(c);
	k->cost = cost.flops + cost.bytes + 1;
	k->view = find_views(k);
	OM_TRY(om_kernel_bind(c, NULL));
	k->scratch = om_kernel_workspace(c);
	c->mem = e->call;
	return OM_OK;
}

static om_status
check_types(om_eager *e, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && (op->out[k]->type.kind != OM_TENSOR || op->out[k]->type.elem == OM_STRING))
			return om_op_fail(e->session, OM_UNSUPPORTED, op, "output %u is no tensor of numbers: it cannot be called", k);
	return OM_OK;
}

static om_status
complete(om_eager *e, struct kind *k)
{
	const unsigned flags = k->op->opdef->flags;

	OM_TRY(check_types(e, k->op));
	k->is_pure = !(flags & (OM_RANDOM | OM_EFFECT));
	k->is_open = !k->is_pure || flags & OM_DATA_DEPENDENT_SHAPE || !is_known(k->op);
	k->is_small = !k->is_open && is_small(k->op);
	return prepare(e, k);
}

struct making {
	om_eager *e;
	const struct signature *s;
	struct kind *k;
};

static om_status
fill(void *arg)
{
	const struct making *m = arg;
	om_prog *p;
	om_op *op;
	om_status st = infer(m->e, m->s, m->k->values, &p, &op);

	if (st == OM_OK) {
		m->k->prog = p;
		m->k->op = op;
		st = complete(m->e, m->k);
	}
	if (st != OM_OK)
		om_prog_free(p);
	return st;
}

/* A kind stays with the context, whatever becomes of the call that needs it first. */
static om_status
make(om_eager *e, const struct signature *s, uint64_t values, bool by_values, struct kind **out)
{
	struct making m = {e, s, om_memory_zeroed(sizeof *m.k)};

	*out = NULL;
	if (!m.k)
		return om_fail(e->session, OM_MEMORY, "no memory for a call of %s", s->type);
	*m.k = (struct kind){.refs = 1, .nin = s->nin, .nout = s->nout, .values = values, .has_values = by_values};
	const om_status st = om_guarded_part(e->session, fill, &m);
	if (st == OM_OK)
		*out = m.k;
	else
		free(m.k);
	return st;
}

/* The kind without elements: what others with values are looked up by, or all. */
static om_status
make_base(om_eager *e, const struct signature *s, struct kind **out, bool *waits)
{
	uint64_t values = 0;

	OM_TRY(check_attrs(e, s));
	if (!is_known_by(e, s, 0)) {
		values = find_values(e, s, waits);
		if (*waits)
			return OM_OK;
	}
	if (!values)
		return make(e, s, 0, false, out);
	OM_TRY(make(e, s, values, false, out));
	return OM_OK;
}

static uint64_t
values_hash(uint64_t h, const struct kind *base, const struct signature *s)
{
	for (uint32_t k = 0; k < s->nin && k < 64; k++) {
		uint64_t bytes = 0;
		if (!om_is_value(base->values, k))
			continue;
		om_tensor_bytes(s->in[k]->t.type, &s->in[k]->t.shape, &bytes);
		h = om_fast_hash(h, s->in[k]->t.data, bytes);
	}
	return h;
}

static om_status
get_with_values(om_eager *e, const struct signature *s, const struct kind *base, struct kind **out, bool *waits)
{
	for (uint32_t k = 0; k < s->nin && k < 64; k++)
		if (om_is_value(base->values, k))
			*waits |= is_waiting(e, s->in[k]);
	if (*waits)
		return OM_OK;
	const uint64_t hash = values_hash(base->hash, base, s);
	if ((*out = find(e, s, hash, true)))
		return OM_OK;
	OM_TRY(make(e, s, base->values, true, out));
	insert(e, *out, hash);
	return OM_OK;
}

om_status
om_kind_get(om_eager *e, const struct signature *s, struct kind **out, bool *waits)
{
	const uint64_t hash = signature_hash(s);
	struct kind *k = find(e, s, hash, false);

	*waits = false;
	*out = k;
	if (!k) {
		OM_TRY(make_base(e, s, &k, waits));
		if (*waits)
			return OM_OK;
		insert(e, k, hash);
		*out = k;
	}
	return k->values ? get_with_values(e, s, k, out, waits) : OM_OK;
}
