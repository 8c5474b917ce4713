/* SPDX-License-Identifier: Apache-2.0 */
/* Import of a model as a program.
 *
 * A graph is read in four steps.  Values are created for parameters, constants and
 * the outputs of all nodes, so that nodes may be in any order; then inputs,
 * attributes and bodies are resolved, innermost scope first; then results; then the
 * ops are sorted topologically.  This takes linear time: each scope has a map of
 * names.
 *
 * A function is read the same way into its own program, which shares the memory of
 * the main program; its values do not belong to the main program.
 */
#include <config.h>

#include "base/guard.h"
#include "base/map.h"
#include "base/memory_limit.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/steps.h"
#include "onnx/import.h"
#include "onnx/model.h"
#include "onnx/metadata.h"
#include "opdef/op_context.h"

struct import {
	om_session *s;
	om_model *m;
	om_prog *p;              /* the main program, or that of the function being read */
	const om_prog *whole;    /* the main program */
	om_arena *tmp;
	om_map functions;
	uint64_t *sparse_left;   /* bytes that sparse tensors may still take when they are dense */
};

/* A dependence of an op on another through values captured by its bodies. */
struct capture {
	om_op *def;
	struct capture *next;
};

struct node {
	om_op *op;
	const Onnx__NodeProto *proto;
	struct capture *captures;
	struct capture *rest;        /* while sorting: captures not visited yet */
	uint32_t k;                  /* number of inputs visited */
	enum { NEW, OPEN, DONE } state;
};

struct scope {
	om_block *b;
	const struct scope *outer;
	om_map values;           /* by name */
	om_map declared;         /* ValueInfoProto by name */
	om_map data;             /* initializers by name, dense or sparse */
	struct node *node;
	size_t nnode;
	struct node *reading;    /* the node whose attributes are being read */
};

static const char *
where(const om_block *b)
{
	return *b->path ? b->path : *b->name ? b->name : "the graph";
}

/* ---- Values. ---- */

/* Is `v`, of scope `o`, visible in the bodies of the op that is being read there?  Outputs of
 * that op and of later ops are not visible, so their names may be reused. */
static bool
is_seen(const struct scope *o, const om_value *v)
{
	return !v->def || !o->reading || v->def->index < o->reading->op->index;
}

/* The innermost scope enclosing `sc` in which a value of that name is visible. */
static const struct scope *
seen_in(const struct scope *sc, const char *name)
{
	const om_value *v;

	for (const struct scope *o = sc->outer; o; o = o->outer)
		if ((v = om_map_get(&o->values, name)) && is_seen(o, v))
			return o;
	return NULL;
}

static om_status
define(struct import *im, struct scope *sc, const char *name, om_value **out)
{
	const struct scope *o = seen_in(sc, name);

	if (!*name)
		return om_fail(im->s, OM_INVALID, "%s: an input or initializer has no name", where(sc->b));
	if (om_map_get(&sc->values, name))
		return om_fail(im->s, OM_INVALID, "%s: %s is defined twice", where(sc->b), name);
	if (o)
		return om_fail(im->s, OM_INVALID, "%s: %s is already defined in the enclosing %s",
			where(sc->b), name, where(o->b));
	*out = om_value_new(im->p, sc->b, name);
	om_map_set(&sc->values, (*out)->name, *out);
	return OM_OK;
}

/* A parameter of a body may shadow a name of an enclosing scope: checkers and runtimes permit
 * it for parameters only.  Names in a program are unique, so the parameter is renamed. */
static om_status
define_param(struct import *im, struct scope *sc, const char *name, om_value **out)
{
	if (!*name || om_map_get(&sc->values, name) || !seen_in(sc, name))
		return define(im, sc, name, out);
	*out = om_value_fresh(im->p, sc->b, om_printf(im->tmp, "%s.inner", name));
	om_map_set(&sc->values, om_strdup(im->tmp, name), *out);
	om_map_set(&sc->values, (*out)->name, *out);
	return OM_OK;
}

/* Apply the declared type and shape of a value, if the file has them. */
static om_status
declare(struct import *im, om_value *v, const Onnx__ValueInfoProto *info)
{
	if (!info || !info->type)
		return OM_OK;
	OM_TRY(om_type_read(im->s, im->p->mem, v->name, info->type, &v->type, &v->shape));
	v->is_declared = v->type.kind != OM_TENSOR
		|| (v->type.elem != OM_UNDEFINED && v->shape.rank != OM_RANK_UNKNOWN);
	/* Without an element type it says nothing: kept, it would be forgotten when shapes are inferred again. */
	if (v->type.kind == OM_TENSOR && v->type.elem == OM_UNDEFINED)
		v->shape = om_shape_unknown();
	v->origin = info;
	return OM_OK;
}

static om_status
read_data(struct import *im, om_value *v, const ProtobufCMessage *proto)
{
	om_tensor *t = OM_NEW(im->p->mem, om_tensor);

	if (proto->descriptor == &onnx__tensor_proto__descriptor)
		OM_TRY(om_tensor_read(im->s, im->m, im->p->mem, (const Onnx__TensorProto *)proto, t));
	else
		OM_TRY(om_sparse_read(im->s, im->m, im->p->mem, im->sparse_left, (const Onnx__SparseTensorProto *)proto, t));
	v->data = t;
	v->type = (om_type){.kind = OM_TENSOR, .elem = t->type};
	v->shape = t->shape;
	v->is_declared = true;
	return OM_OK;
}

static om_status
find_data(struct import *im, struct scope *sc, const char *name, const void *proto)
{
	if (om_map_get(&sc->data, name))
		return om_fail(im->s, OM_INVALID, "%s: duplicate initializer %s", where(sc->b), name);
	om_map_set(&sc->data, name, (void *)proto);
	return OM_OK;
}

static const char *
sparse_name(const Onnx__SparseTensorProto *t)
{
	return t->values ? om_text(t->values->name) : "";
}

/* Up to IR 3 every initializer had to be an input too, but it is still a constant.  Since IR 4
 * an initializer that is an input may be overridden. */
static om_status
read_param(struct import *im, struct scope *sc, const Onnx__ValueInfoProto *info)
{
	const ProtobufCMessage *data = om_map_get(&sc->data, om_text(info->name));
	om_value *v;

	if (data && im->whole->ir_version < 4)
		return OM_OK;
	OM_TRY(define_param(im, sc, om_text(info->name), &v));
	OM_TRY(declare(im, v, info));
	if (data) {
		OM_TRY(read_data(im, v, data));
		v->is_overridable = true;
	}
	v->origin = info;
	om_block_add_param(sc->b, v);
	return OM_OK;
}

static om_status
read_const(struct import *im, struct scope *sc, const char *name, const ProtobufCMessage *proto)
{
	om_value *v = om_map_get(&sc->values, name);

	if (v && v->is_overridable)
		return OM_OK;
	OM_TRY(define(im, sc, name, &v));
	OM_TRY(read_data(im, v, proto));
	v->is_const = true;
	v->origin = proto;
	return OM_OK;
}

static om_status
read_values(struct import *im, struct scope *sc, const Onnx__GraphProto *g)
{
	for (size_t k = 0; k < g->n_initializer; k++)
		OM_TRY(find_data(im, sc, om_text(g->initializer[k]->name), g->initializer[k]));
	for (size_t k = 0; k < g->n_sparse_initializer; k++)
		OM_TRY(find_data(im, sc, sparse_name(g->sparse_initializer[k]), g->sparse_initializer[k]));
	for (size_t k = 0; k < g->n_input; k++)
		OM_TRY(read_param(im, sc, g->input[k]));
	for (size_t k = 0; k < g->n_initializer; k++)
		OM_TRY(read_const(im, sc, om_text(g->initializer[k]->name), &g->initializer[k]->base));
	for (size_t k = 0; k < g->n_sparse_initializer; k++)
		OM_TRY(read_const(im, sc, sparse_name(g->sparse_initializer[k]), &g->sparse_initializer[k]->base));
	return OM_OK;
}

static void
read_declared(struct scope *sc, size_t n, Onnx__ValueInfoProto *const *info)
{
	for (size_t k = 0; k < n; k++)
		if (info[k]->type && info[k]->name)
			om_map_set(&sc->declared, info[k]->name, info[k]);
}

/* ---- Nodes: outputs. ---- */

static const char *
function_key(om_arena *mem, const char *domain, const char *name, const char *overload)
{
	return om_printf(mem, "%s\n%s\n%s", domain, name, overload);
}

static om_status
read_outputs(struct import *im, struct scope *sc, struct node *n)
{
	for (uint32_t k = 0; k < n->op->nout; k++) {
		const char *name = om_text(n->proto->output[k]);
		om_value *v;
		if (!*name)
			continue;
		OM_TRY(define(im, sc, name, &v));
		om_op_set_out(n->op, k, v);
		OM_TRY(declare(im, v, om_map_get(&sc->declared, name)));
	}
	return OM_OK;
}

static om_status
read_node(struct import *im, struct scope *sc, struct node *n)
{
	const char *domain = om_domain(n->proto->domain), *type = om_text(n->proto->op_type);
	const char *overload = om_text(n->proto->overload);

	if (!*type)
		return om_fail(im->s, OM_INVALID, "%s: node %s has no operator type", where(sc->b),
			om_text(n->proto->name));
	if (n->proto->n_input > UINT16_MAX || n->proto->n_output > UINT16_MAX)
		return om_fail(im->s, OM_UNSUPPORTED, "%s: node %s has more than %d inputs or outputs",
			where(sc->b), om_text(n->proto->name), UINT16_MAX);
	int version = om_opset_version(im->p, domain);
	if (!version)
		version = om_opset_version(im->whole, domain);
	om_op *op = om_op_new(im->p, domain, type, version,
		(uint32_t)n->proto->n_input, (uint32_t)n->proto->n_output);
	n->op = op;
	op->name = om_strdup(im->p->mem, om_text(n->proto->name));
	op->overload = om_strdup(im->p->mem, overload);
	op->origin = n->proto;
	op->call = om_map_get(&im->functions, function_key(im->tmp, domain, type, overload));
	if (op->call)
		op->opdef = NULL;
	om_metadata_read_op(im->p->mem, op, n->proto);
	return read_outputs(im, sc, n);
}

/* ---- Nodes: inputs and attributes. ---- */

/* The value called `name` that is visible in `sc`.  If it belongs to an outer scope, the op of
 * that scope which contains this body depends on it. */
static om_value *
resolve(struct import *im, const struct scope *sc, const char *name)
{
	om_value *v = om_map_get(&sc->values, name);

	if (v)
		return v;
	for (const struct scope *o = sc->outer; o; o = o->outer) {
		v = om_map_get(&o->values, name);
		if (!v)
			continue;
		if (v->def && o->reading) {
			struct capture *c = OM_NEW(im->tmp, struct capture);
			*c = (struct capture){v->def, o->reading->captures};
			o->reading->captures = c;
		}
		return v;
	}
	return NULL;
}

static om_status
read_inputs(struct import *im, struct scope *sc, struct node *n)
{
	for (uint32_t k = 0; k < n->op->nin; k++) {
		const char *name = om_text(n->proto->input[k]);
		if (!*name)
			continue;
		om_value *v = resolve(im, sc, name);
		if (!v)
			return om_op_fail(im->s, OM_INVALID, n->op,
				"input %s is not a graph input, an initializer or the output of a node", name);
		om_op_set_in(n->op, k, v);
	}
	return OM_OK;
}

static om_status read_graph(struct import *im, const struct scope *outer, om_op *owner,
	const char *attr, const Onnx__GraphProto *g, om_block **out);

om_attr_kind
om_attr_kind_read(const Onnx__AttributeProto *a)
{
	if (a->has_type && a->type)
		return (om_attr_kind)a->type;
	return a->has_f ? OM_ATTR_FLOAT : a->has_i ? OM_ATTR_INT : a->has_s ? OM_ATTR_STRING
		: a->t ? OM_ATTR_TENSOR : a->g ? OM_ATTR_GRAPH : a->n_floats ? OM_ATTR_FLOATS
		: a->n_ints ? OM_ATTR_INTS : a->n_strings ? OM_ATTR_STRINGS
		: a->n_tensors ? OM_ATTR_TENSORS : a->n_graphs ? OM_ATTR_GRAPHS
		: a->sparse_tensor ? OM_ATTR_SPARSE : a->n_sparse_tensors ? OM_ATTR_SPARSES
		: a->tp ? OM_ATTR_TYPE : a->n_type_protos ? OM_ATTR_TYPES : OM_ATTR_INTS;
}

static om_string
string_of(const ProtobufCBinaryData *b)
{
	return (om_string){b->len ? (const char *)b->data : "", b->len};
}

static const om_string *
read_strings(struct import *im, size_t n, const ProtobufCBinaryData *from)
{
	om_string *s = OM_NEWN(im->tmp, om_string, n + 1);

	for (size_t k = 0; k < n; k++)
		s[k] = string_of(&from[k]);
	return s;
}

/* Kernels read attributes; that of Constant is moved. */
static bool
is_moved(const om_op *op)
{
	return strcmp(op->type, "Constant") == 0 && !*op->domain;
}

static om_status
read_tensors(struct import *im, const om_op *op, size_t n, Onnx__TensorProto *const *from, const om_tensor **out)
{
	om_tensor *t = OM_NEWN(im->tmp, om_tensor, n + 1);

	*out = t;
	for (size_t k = 0; k < n; k++) {
		OM_TRY(om_tensor_read(im->s, im->m, im->p->mem, from[k], &t[k]));
		if (!is_moved(op))
			om_tensor_align(im->p->mem, &t[k]);
	}
	return OM_OK;
}

static om_status
read_sparses(struct import *im, size_t n, Onnx__SparseTensorProto *const *from, const om_tensor **out)
{
	om_tensor *t = OM_NEWN(im->tmp, om_tensor, n + 1);

	*out = t;
	for (size_t k = 0; k < n; k++)
		OM_TRY(om_sparse_read(im->s, im->m, im->p->mem, im->sparse_left, from[k], &t[k]));
	return OM_OK;
}

static om_status
read_types(struct import *im, const char *name, size_t n, Onnx__TypeProto *const *from, const om_type **out)
{
	om_type *t = OM_NEWN(im->tmp, om_type, n + 1);
	om_shape shape;

	*out = t;
	for (size_t k = 0; k < n; k++)
		OM_TRY(om_type_read(im->s, im->p->mem, name, from[k], &t[k], &shape));
	return OM_OK;
}

static om_status
read_graphs(struct import *im, struct scope *sc, struct node *n, const char *name, size_t count,
	Onnx__GraphProto *const *from, om_block ***out)
{
	*out = OM_NEWN(im->tmp, om_block *, count + 1);
	for (size_t k = 0; k < count; k++) {
		const char *attr = count == 1 ? name : om_printf(im->tmp, "%s.%zu", name, k);
		OM_TRY(read_graph(im, sc, n->op, attr, from[k], &(*out)[k]));
	}
	return OM_OK;
}

/* Read the contents of an attribute.  An absent field is a zero that was not written for scalar
 * kinds and lists, and an error for message kinds. */
static om_status
read_elements(struct import *im, struct scope *sc, struct node *n, const Onnx__AttributeProto *a, om_attr *to)
{
	switch (to->kind) {
	case OM_ATTR_FLOAT: to->f = &a->f; return OM_OK;
	case OM_ATTR_INT: to->i = &a->i; return OM_OK;
	case OM_ATTR_STRING: to->s = read_strings(im, 1, &a->s); return OM_OK;
	case OM_ATTR_FLOATS: to->n = a->n_floats; to->f = a->floats; return OM_OK;
	case OM_ATTR_INTS: to->n = a->n_ints; to->i = a->ints; return OM_OK;
	case OM_ATTR_STRINGS: to->n = a->n_strings; to->s = read_strings(im, to->n, a->strings); return OM_OK;
	case OM_ATTR_TENSORS: to->n = a->n_tensors; return read_tensors(im, n->op, to->n, a->tensors, &to->t);
	case OM_ATTR_SPARSES: to->n = a->n_sparse_tensors; return read_sparses(im, to->n, a->sparse_tensors, &to->t);
	case OM_ATTR_TYPES: to->n = a->n_type_protos; return read_types(im, to->name, to->n, a->type_protos, &to->type);
	case OM_ATTR_GRAPHS:
		to->n = a->n_graphs;
		return read_graphs(im, sc, n, to->name, to->n, a->graphs, &to->g);
	case OM_ATTR_TENSOR:
		if (a->t)
			return read_tensors(im, n->op, 1, &a->t, &to->t);
		break;
	case OM_ATTR_SPARSE:
		if (a->sparse_tensor)
			return read_sparses(im, 1, &a->sparse_tensor, &to->t);
		break;
	case OM_ATTR_TYPE:
		if (a->tp)
			return read_types(im, to->name, 1, &a->tp, &to->type);
		break;
	case OM_ATTR_GRAPH:
		if (a->g)
			return read_graphs(im, sc, n, to->name, 1, &a->g, &to->g);
		break;
	default:
		return om_op_fail(im->s, OM_UNSUPPORTED, n->op,
			"attribute %s has the unknown type %d", to->name, to->kind);
	}
	return om_op_fail(im->s, OM_INVALID, n->op, "attribute %s has a type but no value", to->name);
}

static om_status
read_attr(struct import *im, struct scope *sc, struct node *n, const Onnx__AttributeProto *a)
{
	om_attr to = {.name = om_text(a->name), .kind = om_attr_kind_read(a), .n = 1, .origin = a};

	if (!*to.name)
		return om_op_fail(im->s, OM_INVALID, n->op, "an attribute has no name");
	if (om_attr_has(n->op, to.name))
		return om_op_fail(im->s, OM_INVALID, n->op, "duplicate attribute %s", to.name);
	if (a->ref_attr_name && *a->ref_attr_name) {
		if (im->p == im->whole)
			return om_op_fail(im->s, OM_INVALID, n->op,
				"attribute %s refers to the function attribute %s, but is not in a function",
				to.name, a->ref_attr_name);
		to.ref = a->ref_attr_name;
		to.n = 0;
	} else {
		OM_TRY(read_elements(im, sc, n, a, &to));
	}
	om_op_add_attr(im->p, n->op, &to);
	return OM_OK;
}

static const char *
kind_text(om_attr_kind k)
{
	static const char *const text[] = {"nothing", "a float", "an int", "a string", "a tensor",
		"a graph", "floats", "ints", "strings", "tensors", "graphs", "a sparse tensor",
		"sparse tensors", "a type", "types"};
	return (size_t)k < sizeof text / sizeof text[0] ? text[k] : "an unknown type";
}

static om_status
check_attrs(struct import *im, const om_op *op)
{
	for (const om_attr_spec *spec = op->opdef->attrs; spec && spec->name; spec++) {
		const om_attr *a = om_attr_find(op, spec->name);
		if (a && a->kind != spec->kind)
			return om_op_fail(im->s, OM_INVALID, op, "attribute %s is %s, expected %s",
				a->name, kind_text(a->kind), kind_text(spec->kind));
		if (!a && spec->required)
			return om_op_fail(im->s, OM_INVALID, op, "attribute %s is missing", spec->name);
	}
	return OM_OK;
}

static om_status
resolve_node(struct import *im, struct scope *sc, struct node *n)
{
	sc->reading = n;
	OM_TRY(read_inputs(im, sc, n));
	for (size_t k = 0; k < n->proto->n_attribute; k++)
		OM_TRY(read_attr(im, sc, n, n->proto->attribute[k]));
	sc->reading = NULL;
	if (!n->op->opdef)
		return OM_OK;
	OM_TRY(om_op_check(im->s, n->op));
	return check_attrs(im, n->op);
}

/* ---- Order: topological, otherwise as in the file. ---- */

/* The next op of the same block that `n` depends on and that is not done. */
static struct node *
next_need(const struct scope *sc, struct node *n)
{
	for (; n->k < n->op->nin; n->k++) {
		const om_value *v = n->op->in[n->k];
		if (v && v->def && v->block == sc->b && sc->node[v->def->index].state != DONE)
			return &sc->node[v->def->index];
	}
	for (; n->rest; n->rest = n->rest->next)
		if (sc->node[n->rest->def->index].state != DONE)
			return &sc->node[n->rest->def->index];
	return NULL;
}

static om_status
append(struct import *im, struct scope *sc, struct node **stack, struct node *first)
{
	size_t n = 0;

	stack[n++] = first;
	while (n) {
		struct node *top = stack[n - 1];
		if (top->state == NEW)
			top->rest = top->captures;
		top->state = OPEN;
		struct node *need = next_need(sc, top);
		if (!need) {
			om_op_append(sc->b, top->op);
			top->state = DONE;
			n--;
		} else if (need->state == OPEN) {
			return om_fail(im->s, OM_INVALID, "%s: cycle: %s depends on %s, which depends on it",
				where(sc->b), om_op_label(top->op), om_op_label(need->op));
		} else {
			stack[n++] = need;
		}
	}
	return OM_OK;
}

static om_status
sort_nodes(struct import *im, struct scope *sc)
{
	struct node **stack = OM_NEWN(im->tmp, struct node *, sc->nnode + 1);

	for (size_t k = 0; k < sc->nnode; k++)
		if (sc->node[k].state == NEW)
			OM_TRY(append(im, sc, stack, &sc->node[k]));
	return OM_OK;
}

static om_status
read_nodes(struct import *im, struct scope *sc, size_t n, Onnx__NodeProto *const *proto)
{
	sc->node = OM_NEWN(im->tmp, struct node, n + 1);
	sc->nnode = n;
	for (size_t k = 0; k < n; k++) {
		sc->node[k].proto = proto[k];
		OM_TRY(read_node(im, sc, &sc->node[k]));
		sc->node[k].op->index = sc->node[k].op->node = (uint32_t)k;
	}
	for (size_t k = 0; k < n; k++)
		OM_TRY(resolve_node(im, sc, &sc->node[k]));
	return sort_nodes(im, sc);
}

/* ---- Graphs and functions. ---- */

static struct scope
scope_of(struct import *im, om_block *b, const struct scope *outer)
{
	return (struct scope){.b = b, .outer = outer, .values = om_map_new(im->tmp),
		.declared = om_map_new(im->tmp), .data = om_map_new(im->tmp)};
}

static om_status
read_result(struct import *im, struct scope *sc, const char *name)
{
	om_value *v = om_map_get(&sc->values, name);

	if (v) {
		om_block_add_result(sc->b, v);
		return OM_OK;
	}
	if (*name && resolve(im, sc, name))
		return om_fail(im->s, OM_INVALID,
			"%s: output %s is a value of an enclosing scope; an Identity is required",
			where(sc->b), name);
	return om_fail(im->s, OM_INVALID, "%s: output %s is not defined", where(sc->b), *name ? name :
		"(unnamed)");
}

static om_status
read_graph(struct import *im, const struct scope *outer, om_op *owner, const char *attr,
	const Onnx__GraphProto *g, om_block **out)
{
	om_block *b = om_block_new(im->p, owner, attr, om_text(g->name));
	struct scope sc = scope_of(im, b, outer);

	*out = b;
	b->origin = g;
	read_declared(&sc, g->n_value_info, g->value_info);
	read_declared(&sc, g->n_output, g->output);
	OM_TRY(read_values(im, &sc, g));
	OM_TRY(read_nodes(im, &sc, g->n_node, g->node));
	for (size_t k = 0; k < g->n_output; k++)
		OM_TRY(read_result(im, &sc, om_text(g->output[k]->name)));
	return OM_OK;
}

static om_status
read_opsets(struct import *im, size_t n, Onnx__OperatorSetIdProto *const *from, om_opset **out, size_t *nout)
{
	om_opset *set = OM_NEWN(im->p->mem, om_opset, n + 1);

	*out = set;
	*nout = 0;
	for (size_t k = 0; k < n; k++) {
		const char *domain = om_domain(from[k]->domain);
		if (from[k]->version < 0 || from[k]->version > INT16_MAX)
			return om_fail(im->s, OM_INVALID, "%s: invalid version %lld of operator set \"%s\"",
				im->m->name, (long long)from[k]->version, domain);
		size_t same = 0;
		while (same < *nout && strcmp(set[same].domain, domain) != 0)
			same++;
		if (same < *nout && set[same].version != from[k]->version)
			return om_fail(im->s, OM_INVALID, "%s: operator set \"%s\" is imported in two versions",
				im->m->name, domain);
		if (same == *nout)
			set[(*nout)++] = (om_opset){om_strdup(im->p->mem, domain), (int)from[k]->version};
	}
	return OM_OK;
}

static om_status
read_defaults(struct import *im, struct scope *sc, const Onnx__FunctionProto *f, om_function *to)
{
	/* Attributes are read as those of an op; this op is not added to the program. */
	struct node holder = {.op = om_op_new(im->p, "", to->name, 1, 0, 0)};

	holder.op->opdef = NULL;
	holder.op->name = to->name;
	for (size_t k = 0; k < f->n_attribute_proto; k++)
		OM_TRY(read_attr(im, sc, &holder, f->attribute_proto[k]));
	to->attr_default = holder.op->attr;
	to->nattr_default = holder.op->nattr;
	const char **names = OM_NEWN(im->p->mem, const char *, f->n_attribute + 1);
	for (size_t k = 0; k < f->n_attribute; k++)
		names[k] = om_strdup(im->p->mem, om_text(f->attribute[k]));
	to->attr = names;
	to->nattr = f->n_attribute;
	return OM_OK;
}

static om_status
read_body(struct import *im, const Onnx__FunctionProto *f, om_function *to)
{
	to->body = om_block_new(im->p, NULL, NULL, to->name);
	struct scope sc = scope_of(im, to->body, NULL);
	om_value *v;

	read_declared(&sc, f->n_value_info, f->value_info);
	for (size_t k = 0; k < f->n_input; k++) {
		OM_TRY(define(im, &sc, om_text(f->input[k]), &v));
		OM_TRY(declare(im, v, om_map_get(&sc.declared, v->name)));
		om_block_add_param(to->body, v);
	}
	OM_TRY(read_defaults(im, &sc, f, to));
	OM_TRY(read_nodes(im, &sc, f->n_node, f->node));
	for (size_t k = 0; k < f->n_output; k++)
		OM_TRY(read_result(im, &sc, om_text(f->output[k])));
	return OM_OK;
}

static om_status
read_function(struct import *im, om_function *to)
{
	const Onnx__FunctionProto *f = to->origin;
	om_prog *home = OM_NEW(im->whole->mem, om_prog);

	*home = (om_prog){.mem = im->whole->mem, .name = to->name,
		.ir_version = im->whole->ir_version, .model = im->m, .files = &im->m->files, .operators = im->whole->operators};
	struct import in = *im;
	in.p = home;
	OM_TRY(read_opsets(&in, f->n_opset_import, f->opset_import, &home->opset, &home->nopset));
	to->opset = home->opset;
	to->nopset = home->nopset;
	const om_status st = read_body(&in, f, to);
	return st == OM_OK ? st : om_note(im->s, st, "reading function %s", to->name);
}

/* All functions are declared before the first body is read, because they may call each other. */
static om_status
read_functions(struct import *im, const Onnx__ModelProto *m)
{
	om_function **end = &im->p->functions;

	for (size_t k = 0; k < m->n_functions; k++) {
		const Onnx__FunctionProto *from = m->functions[k];
		om_function *f = OM_NEW(im->p->mem, om_function);
		f->domain = om_strdup(im->p->mem, om_domain(from->domain));
		f->name = om_strdup(im->p->mem, om_text(from->name));
		f->overload = om_strdup(im->p->mem, om_text(from->overload));
		f->origin = from;
		const char *key = function_key(im->tmp, f->domain, f->name, f->overload);
		if (!*f->name || om_map_get(&im->functions, key))
			return om_fail(im->s, OM_INVALID, "%s: function \"%s\" is defined twice, or has no name",
				im->m->name, f->name);
		om_map_set(&im->functions, key, f);
		*end = f;
		end = &f->next;
	}
	for (om_function *f = im->p->functions; f; f = f->next)
		OM_TRY(read_function(im, f));
	return OM_OK;
}

static om_status
read_model(struct import *im)
{
	const Onnx__ModelProto *m = im->m->proto;
	om_block *graph;

	im->p->ir_version = (int)m->ir_version;
	im->p->name = om_strdup(im->p->mem, om_text(m->graph->name));
	im->p->model = im->m;
	im->p->files = &im->m->files;
	OM_TRY(read_opsets(im, m->n_opset_import, m->opset_import, &im->p->opset, &im->p->nopset));
	OM_TRY(read_functions(im, m));
	OM_TRY(read_graph(im, NULL, NULL, NULL, m->graph, &graph));
	om_prog_name_scopes(im->p);
	return OM_OK;
}

static om_status
model_import_guarded(om_session *s, const struct om_operators *operators, om_model *m, om_prog **out)
{
	om_prog *p = om_prog_new_with(operators);
	uint64_t left = om_session_load_bytes(s);
	struct import im = {.s = s, .m = m, .p = p, .whole = p, .tmp = om_arena_new(), .sparse_left = &left};

	im.functions = om_map_new(im.tmp);
	const om_status st = read_model(&im);
	if (st == OM_OK)
		om_metadata_read(s, p, m);
	om_arena_free(im.tmp);
	*out = st == OM_OK ? p : NULL;
	if (st != OM_OK)
		om_prog_free(p);
	return st;
}

om_status
om_model_import_with(om_session *s, const struct om_operators *operators, om_model *m, om_prog **out)
{
	*out = NULL;
	OM_GUARDED(s, model_import_guarded(s, operators, m, out));
}
