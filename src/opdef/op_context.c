/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of ops: initialization, inference, and guarded callbacks. */
#include <config.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena_internal.h"
#include "base/guard.h"
#include "onnxmem/builder.h"
#include "onnxmem/kernel.h"
#include "base/half.h"
#include "base/shape.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/fold.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "base/convert_elements.h"
#include "opdef/columns.h"
#include "opdef/device_kernel.h"
#include "opdef/numbers.h"
#include "opdef/op_rule.h"

static om_tensor
tensor_of(const om_value *v)
{
	om_tensor t = {.shape = om_shape_unknown()};

	if (!v)
		return t;
	t.type = om_type_elem(&v->type);
	t.shape = v->shape;
	if (v->data && !v->is_overridable) {
		t.data = v->data->data;
		t.splat = v->data->splat;
	}
	return t;
}

void
om_op_context_init(om_op_context *c, om_session *s, om_arena *mem, const om_op *op)
{
	om_tensor *in = OM_NEWN(mem, om_tensor, op->nin);

	*c = (om_op_context){.session = s, .mem = mem, .op = op, .in = in, .workers = 1};
	for (uint32_t k = 0; k < op->nin; k++)
		in[k] = tensor_of(op->in[k]);
	c->out = OM_NEWN(mem, om_tensor, op->nout);
	for (uint32_t k = 0; k < op->nout; k++) {
		c->out[k] = tensor_of(op->out[k]);
		c->out[k].data = NULL;
	}
	c->memo = OM_NEW(mem, void *);
}

/* Complete the results of inference with what the file declares. */
static void
refine(om_session *s, const om_op *op, const om_value *v, om_tensor *found)
{
	char want[256], got[256];

	if (found->type == OM_UNDEFINED)
		found->type = v->type.elem;
	if (found->shape.rank == OM_RANK_UNKNOWN) {
		found->shape = v->shape;
		return;
	}
	bool differ = v->shape.rank != found->shape.rank && v->shape.rank != OM_RANK_UNKNOWN;
	for (int d = 0; d < found->shape.rank && d < v->shape.rank && !differ; d++) {
		if (found->shape.dim[d] < 0 && (v->shape.dim[d] >= 0 || !found->shape.sym[d])) {
			found->shape.dim[d] = v->shape.dim[d];
			found->shape.sym[d] = v->shape.sym[d];
		} else if (v->shape.dim[d] >= 0 && v->shape.dim[d] != found->shape.dim[d]
			   && found->shape.dim[d] >= 0) {
			differ = true;
		}
	}
	if (differ)
		om_warn(s, "%s is declared as %s, but %s infers %s", v->name,
			om_shape_text(&v->shape, want, sizeof want), op->type,
			om_shape_text(&found->shape, got, sizeof got));
}

static const char *
range_text(char *out, size_t size, unsigned least, unsigned most)
{
	if (most == OM_VARIADIC)
		snprintf(out, size, "%u or more", least);
	else if (least == most)
		snprintf(out, size, "%u", least);
	else
		snprintf(out, size, "%u to %u", least, most);
	return out;
}

static om_status
check_arity(om_session *s, const om_op *op)
{
	const om_opdef *r = op->opdef;
	char range[32];

	if (op->nin < r->min_in || (r->max_in != OM_VARIADIC && op->nin > r->max_in))
		return om_op_fail(s, OM_INVALID, op, "has %u inputs, expected %s", op->nin,
			range_text(range, sizeof range, r->min_in, r->max_in));
	if (op->nout < r->min_out || (r->max_out != OM_VARIADIC && op->nout > r->max_out))
		return om_op_fail(s, OM_INVALID, op, "has %u outputs, expected %s", op->nout,
			range_text(range, sizeof range, r->min_out, r->max_out));
	/* Both of the first two inputs of Loop may be absent. */
	for (uint32_t k = 0; k < r->min_in && r->control == OM_PLAIN; k++)
		if (!op->in[k])
			return om_op_fail(s, OM_INVALID, op, "required input %u is omitted", k);
	return OM_OK;
}

static om_status
check_count(om_session *s, const om_op *op, const char *what, uint32_t have, uint32_t want)
{
	if (have == want)
		return OM_OK;
	return om_op_fail(s, OM_INVALID, op, "the body has %u %s, expected %u", have, what, want);
}

static om_status
check_results(om_session *s, const om_op *op, const char *name, uint32_t want)
{
	const om_block *b = om_attr_graph(op, name);

	return b ? check_count(s, op, "results", b->nresult, want) : OM_OK;
}

static om_status
check_body(om_session *s, const om_op *op, uint32_t nparam, uint32_t nresult)
{
	const om_block *b = om_attr_graph(op, "body");

	if (!b)
		return OM_OK;
	OM_TRY(check_count(s, op, "parameters", b->nparam, nparam));
	return check_count(s, op, "results", b->nresult, nresult);
}

/* Parameters and results of bodies, also where shapes are not inferred.  An absent body is an absent attribute. */
static om_status
check_bodies(om_session *s, const om_op *op)
{
	switch (op->opdef->control) {
	case OM_IF:
		OM_TRY(check_results(s, op, "else_branch", op->nout));
		return check_results(s, op, "then_branch", op->nout);
	case OM_LOOP:
		OM_TRY(check_body(s, op, op->nin, op->nout + 1));
		return op->nout + 2 >= op->nin ? OM_OK : om_op_fail(s, OM_INVALID, op,
			"has %u outputs for %u loop-carried values", op->nout, op->nin - 2);
	case OM_SCAN:
		/* until version 8, the first input has the lengths of the sequences */
		return check_body(s, op, op->nin - (op->opdef->until == 8), op->nout);
	case OM_SEQUENCE_MAP:
		return check_body(s, op, op->nin, op->nout);
	case OM_PLAIN:
		break;
	}
	return OM_OK;
}

om_status
om_op_check(om_session *s, const om_op *op)
{
	const om_opdef *r = op->opdef;

	OM_TRY(check_arity(s, op));
	for (uint32_t k = 0; k < r->min_out && r->max_out != OM_VARIADIC; k++)
		if (!op->out[k])
			return om_op_fail(s, OM_INVALID, op, "required output %u is omitted", k);
	return check_bodies(s, op);
}

static bool
is_object(const om_value *v)
{
	return v->type.kind == OM_SEQUENCE || v->type.kind == OM_OPTIONAL || v->type.kind == OM_MAP;
}

static bool
may_be_objects(const om_opdef *r)
{
	return r->flags & OM_NON_TENSOR || r->control != OM_PLAIN;
}

static om_status
check_kinds(om_session *s, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin && !may_be_objects(op->opdef); k++)
		if (op->in[k] && is_object(op->in[k]))
			return om_op_fail(s, OM_INVALID, op, "%s must be a tensor, but is a %s", op->in[k]->name,
				om_kind_text(op->in[k]->type.kind));
	return OM_OK;
}

_Static_assert((int)OM_NDTYPE <= (int)OM_SET_LIKE_BIT, "every element type has a bit below those of OM_SAME_AS");

om_status
om_opdef_check_types(const om_opdef *row, const om_op_context *c)
{
	for (uint32_t k = 0; k < c->op->nin && k < OM_MAX_TYPED_INPUTS; k++) {
		const uint32_t set = row->input_types[k], like = set >> OM_SET_LIKE_BIT;
		const om_dtype t = c->in[k].type;
		if (!set || t == OM_UNDEFINED)
			continue;
		if (like && c->in[like - 1].type != OM_UNDEFINED && t != c->in[like - 1].type)
			return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s, but input %u is %s", k,
				om_dtype_text(t), like - 1, om_dtype_text(c->in[like - 1].type));
		if (!like && !(set >> t & 1))
			return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
				"no kernel for element type %s of input %u", om_dtype_text(t), k);
	}
	return OM_OK;
}

bool
om_types_fit(const uint32_t *takes, const om_op_context *c)
{
	for (uint32_t k = 0; k < c->op->nin && k < OM_MAX_TYPED_INPUTS; k++) {
		const uint32_t set = takes[k], like = set >> OM_SET_LIKE_BIT;
		const om_dtype t = c->in[k].type;
		if (!set || t == OM_UNDEFINED)
			continue;
		if (like ? c->in[like - 1].type != OM_UNDEFINED && t != c->in[like - 1].type : !(set >> t & 1))
			return false;
	}
	return true;
}

/* A version newer than all definitions may change the semantics by an attribute that they do not
 * declare. */
enum { NEWEST_OPSET = 28 };

static om_status
check_attrs(om_session *s, const om_op *op)
{
	if (*op->domain || op->version <= NEWEST_OPSET || om_op_has_rule(op))
		return OM_OK;
	for (uint32_t k = 0; k < op->nattr; k++) {
		const om_attr_spec *a = op->opdef->attrs;
		while (a && a->name && strcmp(a->name, op->attr[k].name) != 0)
			a++;
		if (!a || !a->name)
			return om_op_fail(s, OM_UNSUPPORTED, op, "attribute %s does not exist in version %d",
				op->attr[k].name, op->version);
	}
	return OM_OK;
}

static bool
have_run_sizes(om_value *const *v, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (v[k] && v[k]->has_run_sizes)
			return true;
	return false;
}

/* May elements be known only in a run, because they follow from those of an input of the graph or of a body, from a size that
 * a run decides, or from constants that are not computed: not yet, or never, as they are too large?  Those that follow from
 * other shapes are not.  What is too long to follow counts as if it did not. */
static bool
is_told_by_run(const om_value *v, unsigned *budget)
{
	bool any = false;

	if (!v || (v->data && v->data->data) || *budget == 0)
		return false;
	--*budget;
	if (!v->def || v->def->nbody || !v->def->opdef)
		return true;
	if (v->def->opdef->flags & OM_SHAPE_ONLY)
		return have_run_sizes(v->def->in, v->def->nin);
	for (uint32_t k = 0; k < v->def->nin; k++) {
		const om_value *in = v->def->in[k];
		if (is_told_by_run(in, budget))
			return true;
		any |= in && !(in->data && in->data->data);
	}
	return !any;
}

/* Does an op whose inputs have known shapes read elements that may decide the shape of its output: a list of numbers, or one,
 * which is not known before a run?  That of an input with a default is known.  So do Slice, TopK, Range, Reshape and others. */
static bool
reads_sizes(const om_op *op)
{
	bool any = false;

	if (op->nbody)
		return false;
	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *v = op->in[k];
		if (!v)
			continue;
		if (v->type.kind != OM_TENSOR || !om_shape_is_known(&v->shape))
			return false;
		unsigned budget = 256;
		any |= v->shape.rank <= 1 && is_told_by_run(v, &budget);
	}
	return any;
}

static bool
has_objects(const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && is_object(op->in[k]))
			return true;
	return false;
}

/* May a size that inference leaves open be known only in a run, because data decide it here, or decided it for an
 * input?  Elements of sequences may differ in size, and iterations of a Loop may be as many as there are. */
static bool
may_have_run_sizes(const om_op *op)
{
	if (op->opdef->flags & OM_DATA_DEPENDENT_SHAPE || op->opdef->control == OM_LOOP || has_objects(op) || have_run_sizes(op->in, op->nin)
	    || reads_sizes(op))
		return true;
	for (uint32_t k = 0; k < op->nbody; k++)
		if (have_run_sizes(op->body[k]->result, op->body[k]->nresult))
			return true;
	return false;
}

/* A number that the file declares for such a size is that of the run that an exporter traced; a name says that it equals other sizes of that
 * name, which only a run could tell, and elements would follow from it (Equal). */
static void
set_run_sizes(om_value *v, const om_shape *found)
{
	v->has_run_sizes = found->rank == OM_RANK_UNKNOWN;
	for (int d = 0; d < found->rank; d++)
		v->has_run_sizes |= found->dim[d] < 0 && !found->sym[d];
	for (int d = 0; d < v->shape.rank && v->has_run_sizes; d++)
		if (d >= found->rank || (found->dim[d] < 0 && !found->sym[d])) {
			v->shape.dim[d] = OM_DIM_UNKNOWN;
			v->shape.sym[d] = NULL;
		}
}

/* The inferred kind takes precedence over the declared one for definitions that support non-tensors. */
static void
set_output(om_session *s, const om_op *op, om_value *v, const om_type *type, om_tensor *found)
{
	if (type->kind != OM_TENSOR) {
		v->type = *type;
		v->shape = found->shape;
		return;
	}
	if (v->type.kind != OM_TENSOR && (!may_be_objects(op->opdef) || found->type == OM_UNDEFINED))
		return;
	v->has_run_sizes = false;
	if (may_have_run_sizes(op))
		set_run_sizes(v, &found->shape);
	if (v->is_declared && v->type.kind == OM_TENSOR)
		refine(s, op, v, found);
	v->type = (om_type){.kind = OM_TENSOR, .elem = found->type};
	v->shape = found->shape;
}

/* Shapes that are computed step by step are often known except for one dim. */
static void
infer_elems(om_prog *p, om_op_context *c)
{
	const om_op *op = c->op;
	om_value *v = op->nout ? op->out[0] : NULL;

	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			op->out[k]->elem = NULL;
	if (!v || !op->opdef->propagate_data || (v->type.elem != OM_INT64 && v->type.elem != OM_INT32 && v->type.elem != OM_BOOL)
	    || v->type.kind != OM_TENSOR || !om_shape_is_known(&v->shape) || v->shape.rank > 1
	    || om_shape_count(&v->shape) > OM_MAX_RANK)
		return;
	om_symbolic_elem *e = OM_NEWN(p->mem, om_symbolic_elem, OM_MAX_RANK);
	c->out[0].type = v->type.elem;
	c->out[0].shape = v->shape;
	op->opdef->propagate_data(c, e);
	v->elem = e;
}

static om_status
infer(om_session *s, om_prog *p, om_arena *mem, om_op *op)
{
	om_op_context c;

	OM_TRY(om_op_check(s, op));
	OM_TRY(check_kinds(s, op));
	OM_TRY(check_attrs(s, op));
	om_op_context_init(&c, s, mem, op);
	c.keep = p->mem;
	c.out_type = OM_NEWN(mem, om_type, op->nout);
	for (uint32_t k = 0; k < op->nout; k++)
		c.out[k] = (om_tensor){.shape = om_shape_unknown()};
	OM_TRY(om_opdef_check_types(op->opdef, &c));
	OM_TRY(op->opdef->infer(&c));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			set_output(s, op, op->out[k], &c.out_type[k], &c.out[k]);
	infer_elems(p, &c);
	return OM_OK;
}

/* True if the file declares every output, with a known shape. */
static bool
has_declared_outputs(const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !(op->out[k]->is_declared && om_shape_is_known(&op->out[k]->shape)))
			return false;
	return true;
}

static om_status
op_infer_guarded(om_session *s, om_prog *p, om_op *op)
{
	if (!op->opdef) {
		for (uint32_t k = 0; k < op->nbody; k++)
			OM_TRY(om_block_infer(s, p, op->body[k]));
		return OM_OK;
	}
	om_arena *mem = om_arena_new();
	om_status st = infer(s, p, mem, op);
	om_arena_free(mem);
	if (st == OM_UNSUPPORTED && has_declared_outputs(op)) {
		op->opaque = om_strdup(p->mem, om_message(s));
		op->opdef = NULL;
		om_warn(s, "%s; the declared outputs are used", op->opaque);
		st = OM_OK;
	}
	return st;
}

om_status
om_op_infer(om_session *s, om_prog *p, om_op *op)
{
	OM_GUARDED(s, op_infer_guarded(s, p, op));
}

/* Unknown types are taken from the parameters of the function. */
static bool
takes_call(om_arena *mem, const om_op *op)
{
	om_op_context c;

	if (check_arity(NULL, op) != OM_OK)
		return false;
	om_op_context_init(&c, NULL, mem, op);
	om_tensor *in = OM_NEWN(mem, om_tensor, op->nin);
	for (uint32_t k = 0; k < op->nin; k++) {
		const bool is_open = op->in[k] && c.in[k].type == OM_UNDEFINED;
		in[k] = is_open && op->call && k < op->call->body->nparam ? tensor_of(op->call->body->param[k]) : c.in[k];
	}
	c.in = in;
	c.keep = mem;
	c.out_type = OM_NEWN(mem, om_type, op->nout);
	for (uint32_t k = 0; k < op->nout; k++)
		c.out[k] = (om_tensor){.shape = om_shape_unknown()};
	return om_opdef_check_types(op->opdef, &c) == OM_OK && op->opdef->infer(&c) == OM_OK && c.out[0].type != OM_UNDEFINED;
}

bool
om_op_bind(om_op *op)
{
	om_arena *mem = om_arena_new();

	op->opdef = op->operators->find(op->domain, op->type, op->version);
	if (op->opdef && (!(op->opdef->flags & OM_IMPLEMENTS_FUNCTION) || !takes_call(mem, op)))
		op->opdef = NULL;
	om_arena_free(mem);
	return op->opdef != NULL;
}

/* The outputs are constants with their elements: of an op whose shapes depend on data, more than inference knows. */
static bool
is_computed(const om_op *op)
{
	bool computed = op->is_folded;

	for (uint32_t k = 0; k < op->nout; k++)
		computed &= !op->out[k] || op->out[k]->data;
	return computed;
}

static om_status
block_infer_guarded(om_session *s, om_prog *p, om_block *b)
{
	for (om_op *op = b->first; op; op = op->next) {
		if (is_computed(op))
			continue;
		OM_TRY(om_op_infer(s, p, op));
		OM_TRY(om_op_fold_shape_arithmetic(s, p, op));
	}
	return OM_OK;
}

om_status
om_block_infer(om_session *s, om_prog *p, om_block *b)
{
	OM_GUARDED(s, block_infer_guarded(s, p, b));
}

/* ---- Guarded callbacks. ---- */


/* Known, and products of its dims do not overflow. */
static bool
can_count(const om_shape *s)
{
	uint64_t bytes;

	return om_tensor_bytes(OM_UINT8, s, &bytes);
}

bool
om_op_query(om_op_context *c, om_arena *mem, const om_op *op)
{
	bool known = true;

	om_op_context_init(c, NULL, mem, op);
	for (uint32_t k = 0; k < op->nin; k++)
		known &= !op->in[k] || (can_count(&c->in[k].shape) && !is_object(op->in[k]));
	for (uint32_t k = 0; k < op->nout; k++)
		known &= !op->out[k] || (can_count(&c->out[k].shape) && !is_object(op->out[k]));
	return known;
}

bool
om_op_asks_inplace(const om_op *op, bool is_known)
{
	return op->opdef && op->opdef->inplace && (is_known || (op->opdef->flags & OM_OPEN_INPLACE && !op->device));
}

static bool
look_at(om_op_look *l, const om_op *op)
{
	if (l->op == op)
		return l->is_known;
	if (l->mem)
		om_arena_clear(l->mem);
	else
		l->mem = om_arena_new();
	l->op = op;
	l->is_known = om_op_query(&l->c, l->mem, op);
	return l->is_known;
}

void
om_op_look_end(om_op_look *l)
{
	om_arena_free(l->mem);
	*l = (om_op_look){0};
}

bool
om_op_look_view(om_op_look *l, const om_op *op, uint32_t out, om_view_of *v)
{
	return op->opdef && op->opdef->view && op->out[out] && look_at(l, op) && op->opdef->view(&l->c, out, v);
}

const char *
om_value_device(const om_value *v)
{
	const om_op *op = v->def;

	return op && !(op->opdef && op->opdef->copies == OM_COPIES_TO_HOST) ? op->device : NULL;
}

bool
om_op_context_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	if (!c->op->opdef->inplace || !c->op->opdef->inplace(c, out, in))
		return false;
	if (!c->op->device)
		return true;
	const om_device_kernel *k = om_device_kernel_find(c);
	return k && k->inplace && !om_is_host_input(k, in) && k->inplace(c, out, in);
}

bool
om_op_look_inplace(om_op_look *l, const om_op *op, uint32_t out, uint32_t in)
{
	uint64_t a, b;

	return op->out[out] && op->in[in] && om_op_asks_inplace(op, look_at(l, op))
	    && om_tensor_bytes(l->c.out[out].type, &l->c.out[out].shape, &a)
	    && om_tensor_bytes(l->c.in[in].type, &l->c.in[in].shape, &b)
	    && a == b && om_op_context_inplace(&l->c, out, in);
}

/* Is the first output all of input `in`, byte for byte? */
static bool
is_all_of(const om_op_context *c, uint32_t in)
{
	uint64_t a, b;
	om_view_of view;

	return c->op->opdef->view && c->op->opdef->view(c, 0, &view) && view.in == in && view.offset == 0
	    && om_tensor_bytes(c->out[0].type, &c->out[0].shape, &a)
	    && om_tensor_bytes(c->in[in].type, &c->in[in].shape, &b) && a == b;
}

bool
om_op_context_subbuffer(const om_op_context *c, uint32_t in, uint64_t *offset)
{
	const om_opdef *row = c->op->opdef;

	if (c->op->device)  /* kernels of devices write all of their output */
		return false;
	if (row->subbuffer && row->subbuffer(c, in, offset))
		return true;
	*offset = 0;
	return is_all_of(c, in);
}

bool
om_op_look_subbuffer(om_op_look *l, const om_op *op, uint32_t in, uint64_t *offset)
{
	return op->opdef && op->in[in] && op->out[0] && look_at(l, op) && om_op_context_subbuffer(&l->c, in, offset);
}

bool
om_op_view(const om_op *op, uint32_t out, om_view_of *v)
{
	om_op_look l = {0};
	const bool yes = om_op_look_view(&l, op, out, v);

	om_op_look_end(&l);
	return yes;
}

bool
om_op_inplace(const om_op *op, uint32_t out, uint32_t in)
{
	om_op_look l = {0};
	const bool yes = om_op_look_inplace(&l, op, out, in);

	om_op_look_end(&l);
	return yes;
}

bool
om_op_subbuffer(const om_op *op, uint32_t in, uint64_t *offset)
{
	om_op_look l = {0};
	const bool yes = om_op_look_subbuffer(&l, op, in, offset);

	om_op_look_end(&l);
	return yes;
}

bool
om_op_inplace_allowed(const om_op *op, uint32_t out, const om_value *in)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] == in && !om_op_inplace(op, out, k))
			return false;
	return true;
}

bool
om_op_max_shape(const om_op *op, uint32_t out, om_shape *most)
{
	om_op_look l = {0};

	if (!op->out[out])
		return false;
	*most = op->out[out]->shape;
	if (om_shape_is_known(most) || !op->opdef || !op->opdef->max_shape)
		return om_shape_is_known(most);
	look_at(&l, op);
	op->opdef->max_shape(&l.c, out, most);
	om_op_look_end(&l);
	return om_shape_is_known(most);
}

uint64_t
om_op_context_scratch(om_op_context *c, uint32_t threads, bool precise)
{
	const om_device_kernel *k = c->op->device ? om_device_kernel_find(c) : NULL;

	if (c->op->device)
		return k && k->scratch ? k->scratch(c) : 0;
	om_op_context_workers(c, threads, precise);
	return om_kernel_bind(c, NULL) == OM_OK ? om_kernel_workspace(c) : 0;
}

uint64_t
om_op_scratch(const om_op *op, uint32_t threads, bool precise)
{
	om_op_look l = {0};
	uint64_t bytes = 0;

	if (!op->opdef || op->opdef->control != OM_PLAIN)
		return 0;
	if (look_at(&l, op))
		bytes = om_op_context_scratch(&l.c, threads, precise);
	om_op_look_end(&l);
	return bytes;
}

static void
plain_cost(const om_op_context *c, om_cost *cost)
{
	uint64_t bytes;

	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && om_tensor_bytes(c->in[k].type, &c->in[k].shape, &bytes))
			cost->bytes += (double)bytes;
	for (uint32_t k = 0; k < c->op->nout; k++)
		if (om_has_out(c, k) && om_tensor_bytes(c->out[k].type, &c->out[k].shape, &bytes)) {
			cost->bytes += (double)bytes;
			cost->flops += (double)om_shape_count(&c->out[k].shape);
		}
}

om_cost
om_op_context_cost(const om_op_context *c)
{
	om_cost cost = {0, 0};

	plain_cost(c, &cost);
	if (c->op->opdef->cost)
		c->op->opdef->cost(c, &cost);
	return cost;
}

/* Waking a thread that sleeps takes some microseconds, in which one core computes or moves this much. */
void
om_op_context_workers(om_op_context *c, uint32_t threads, bool precise)
{
	static const double small = 1e5;
	const om_cost cost = threads > 1 ? om_op_context_cost(c) : (om_cost){0, 0};

	c->workers = cost.flops + cost.bytes < small ? 1 : threads;
	c->precise = precise;
}

om_cost
om_op_cost(const om_op *op)
{
	om_op_look l = {0};
	om_cost cost = {0, 0};

	if (op->opdef && look_at(&l, op))
		cost = om_op_context_cost(&l.c);
	om_op_look_end(&l);
	return cost;
}

/* ---- Helpers for callbacks. ---- */

bool
om_has_in(const om_op_context *c, uint32_t k)
{
	return k < c->op->nin && c->op->in[k];
}

bool
om_has_out(const om_op_context *c, uint32_t k)
{
	return k < c->op->nout && c->op->out[k];
}

/* Elements that inference knows, of an input that is not computed yet. */
static bool
known_elems(const om_op_context *c, uint32_t k, int64_t **v, size_t *n)
{
	const om_symbolic_elem *e = om_has_in(c, k) && !c->in[k].data && c->op->in[k] ? c->op->in[k]->elem : NULL;

	if (!e || !om_shape_is_known(&c->in[k].shape))
		return false;
	*n = (size_t)om_shape_count(&c->in[k].shape);
	*v = OM_NEWN(c->mem, int64_t, *n);
	for (size_t i = 0; i < *n; i++) {
		if (!e[i].known)
			return false;
		(*v)[i] = e[i].value;
	}
	return true;
}

bool
om_in_ints(const om_op_context *c, uint32_t k, int64_t **v, size_t *n)
{
	const om_tensor *t = &c->in[k];

	if (!om_has_in(c, k) || !t->data || (t->type != OM_INT64 && t->type != OM_INT32))
		return known_elems(c, k, v, n);
	*n = (size_t)om_shape_count(&t->shape);
	*v = OM_NEWN(c->mem, int64_t, *n);
	for (size_t i = 0; i < *n; i++) {
		const size_t at = t->splat ? 0 : i;
		(*v)[i] = t->type == OM_INT64 ? ((const int64_t *)t->data)[at]
			: ((const int32_t *)t->data)[at];
	}
	return true;
}

bool
om_in_symbolic_elems(const om_op_context *c, uint32_t k, const om_symbolic_elem **e, size_t *n)
{
	int64_t *v;

	if (om_in_ints(c, k, &v, n)) {
		om_symbolic_elem *all = OM_NEWN(c->mem, om_symbolic_elem, *n + 1);
		for (size_t i = 0; i < *n; i++)
			all[i] = (om_symbolic_elem){.known = true, .value = v[i]};
		*e = all;
		return true;
	}
	if (!om_has_in(c, k) || c->in[k].data || !c->op->in[k]->elem || !om_shape_is_known(&c->in[k].shape))
		return false;
	*e = c->op->in[k]->elem;
	*n = (size_t)om_shape_count(&c->in[k].shape);
	return true;
}

bool
om_is_one(const om_tensor *t)
{
	return t->splat || (om_shape_is_known(&t->shape) && om_shape_count(&t->shape) == 1);
}

bool
om_number(om_dtype t, const void *one, double *v)
{
	switch (t) {
	case OM_FLOAT32: *v = *(const float *)one; return true;
	case OM_FLOAT64: *v = *(const double *)one; return true;
	case OM_FLOAT16: *v = om_half_to_float(*(const uint16_t *)one); return true;
	case OM_BFLOAT16: *v = om_bfloat_to_float(*(const uint16_t *)one); return true;
	case OM_INT64: *v = (double)*(const int64_t *)one; return true;
	case OM_UINT64: *v = (double)*(const uint64_t *)one; return true;
	case OM_INT32: *v = *(const int32_t *)one; return true;
	case OM_UINT32: *v = *(const uint32_t *)one; return true;
	case OM_INT16: *v = *(const int16_t *)one; return true;
	case OM_UINT16: *v = *(const uint16_t *)one; return true;
	case OM_INT8: *v = *(const int8_t *)one; return true;
	case OM_UINT8: case OM_BOOL: *v = *(const uint8_t *)one; return true;
	default: break;
	}
	if (!om_dtype_is_float(t) || om_dtype_bits(t) != 8)
		return false;
	om_convert(OM_FLOAT64, v, t, one, 1, true);
	return true;
}

bool
om_real_scalar(const om_tensor *t, float *v)
{
	uint64_t bits = 0;

	if (!t || !t->data || !om_is_real(t->type) || om_shape_count(&t->shape) != 1)
		return false;
	memcpy(&bits, t->data, om_dtype_bits(t->type) / 8);
	om_widen(t->type, &bits, 1, v);
	return true;
}

bool
om_in_scalar(const om_op_context *c, uint32_t k, double *v)
{
	const om_tensor *t = &c->in[k];

	return om_has_in(c, k) && t->data && om_is_one(t) && om_number(t->type, t->data, v);
}

/* One dim of a broadcast.  An unknown dim combined with a number other than 1 must equal that number. */
static bool
broadcast_dim(int64_t a, const char *sa, int64_t b, const char *sb, int64_t *n, const char **sym)
{
	const bool second = a == 1 || (a < 0 && b != 1 && (b >= 0 || !sa));

	*n = second ? b : a;
	*sym = second ? sb : sa;
	if (a < 0 && b < 0 && !(sa && sb && strcmp(sa, sb) == 0))
		*sym = NULL;
	return a < 0 || b < 0 || a == b || a == 1 || b == 1;
}

bool
om_broadcast(const om_shape *a, const om_shape *b, om_shape *out)
{
	om_shape r = {.rank = a->rank > b->rank ? a->rank : b->rank};

	if (a->rank < 0 || b->rank < 0) {
		*out = om_shape_unknown();
		return true;
	}
	for (int k = 0; k < r.rank; k++) {
		const int i = k - (r.rank - a->rank), j = k - (r.rank - b->rank);
		if (!broadcast_dim(i < 0 ? 1 : a->dim[i], i < 0 ? NULL : a->sym[i],
		    j < 0 ? 1 : b->dim[j], j < 0 ? NULL : b->sym[j], &r.dim[k], &r.sym[k]))
			return false;
	}
	*out = r;
	return true;
}

bool
om_axis(int64_t axis, int rank, int *out)
{
	if (axis < -rank || axis >= rank)
		return false;
	*out = (int)(axis < 0 ? axis + rank : axis);
	return true;
}
