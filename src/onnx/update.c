/* SPDX-License-Identifier: Apache-2.0 */
/* Updates a model from its program.
 *
 * Node lists are rebuilt in program order.  Messages of ops and attributes that came
 * from the file are reused, with all their other fields.  Weights are not moved; new
 * constants become initializers that reference their elements.
 */
#include <config.h>

#include "base/guard.h"
#include "base/shape.h"
#include "ir/binding.h"
#include "ir/edit.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "ir/type.h"
#include "onnx/annotate.h"
#include "onnx/metadata.h"
#include "onnx/update.h"
#include "opdef/op_context.h"

/* ---- Names. ---- */

static const char *
name_of(const om_value *v)
{
	return v ? v->name : "";
}

/* Write a list of names; an equal list is kept. */
static void
write_names(struct update *u, size_t *n, char ***list, uint32_t count, om_value *const *v)
{
	bool same = *n == count;

	for (uint32_t k = 0; k < count && same; k++)
		same = strcmp(om_text((*list)[k]), name_of(v[k])) == 0;
	if (same)
		return;
	*n = count;
	*list = OM_NEWN(u->m->mem, char *, (size_t)count + 1);
	for (uint32_t k = 0; k < count; k++)
		(*list)[k] = om_strdup(u->m->mem, name_of(v[k]));
}

static void
write_text(struct update *u, char **field, const char *text)
{
	if (strcmp(om_text(*field), text) != 0)
		*field = om_strdup(u->m->mem, text);
}

/* ---- Attributes. ---- */

static om_status write_graph(struct update *u, const om_block *b, Onnx__GraphProto **out);

static bool
is_graph(const om_attr *a)
{
	return a->kind == OM_ATTR_GRAPH || a->kind == OM_ATTR_GRAPHS;
}

/* Is the original message of the attribute still valid? */
static bool
is_kept(const om_attr *a)
{
	const Onnx__AttributeProto *from = a->origin;

	if (!from || strcmp(om_text(from->name), a->name) != 0
	    || strcmp(om_text(from->ref_attr_name), om_text(a->ref)) != 0)
		return false;
	if (a->kind == OM_ATTR_GRAPH && !a->ref)
		return a->g[0]->origin == from->g;
	for (size_t k = 0; a->kind == OM_ATTR_GRAPHS && !a->ref && k < a->n; k++)
		if (k >= from->n_graphs || a->g[k]->origin != from->graphs[k])
			return false;
	return true;
}

static ProtobufCBinaryData
binary_of(struct update *u, const om_string *s)
{
	return (ProtobufCBinaryData){s->size, om_memdup(u->m->mem, s->data, s->size)};
}

static om_status
write_tensors(struct update *u, const om_attr *a, Onnx__AttributeProto *to)
{
	to->tensors = OM_NEWN(u->m->mem, Onnx__TensorProto *, a->n + 1);
	to->n_tensors = a->n;
	for (size_t k = 0; k < a->n; k++)
		OM_TRY(om_tensor_write(u->s, u->m->mem, "", &a->t[k], &to->tensors[k]));
	return OM_OK;
}

static om_status
write_graphs(struct update *u, const om_attr *a, Onnx__AttributeProto *to)
{
	to->graphs = OM_NEWN(u->m->mem, Onnx__GraphProto *, a->n + 1);
	to->n_graphs = a->n;
	for (size_t k = 0; k < a->n; k++)
		OM_TRY(write_graph(u, a->g[k], &to->graphs[k]));
	return OM_OK;
}

static om_status
write_elements(struct update *u, const om_op *op, const om_attr *a, Onnx__AttributeProto *to)
{
	om_arena *mem = u->m->mem;
	const om_shape open = om_shape_unknown();

	switch (a->kind) {
	case OM_ATTR_FLOAT: to->has_f = true; to->f = *a->f; return OM_OK;
	case OM_ATTR_INT: to->has_i = true; to->i = *a->i; return OM_OK;
	case OM_ATTR_STRING: to->has_s = true; to->s = binary_of(u, a->s); return OM_OK;
	case OM_ATTR_FLOATS:
		to->n_floats = a->n;
		to->floats = om_memdup(mem, a->f, a->n * sizeof *a->f);
		return OM_OK;
	case OM_ATTR_INTS:
		to->n_ints = a->n;
		to->ints = om_memdup(mem, a->i, a->n * sizeof *a->i);
		return OM_OK;
	case OM_ATTR_STRINGS:
		to->n_strings = a->n;
		to->strings = OM_NEWN(mem, ProtobufCBinaryData, a->n + 1);
		for (size_t k = 0; k < a->n; k++)
			to->strings[k] = binary_of(u, &a->s[k]);
		return OM_OK;
	case OM_ATTR_TENSOR: return om_tensor_write(u->s, mem, "", a->t, &to->t);
	case OM_ATTR_TENSORS: return write_tensors(u, a, to);
	case OM_ATTR_GRAPH: return write_graph(u, *a->g, &to->g);
	case OM_ATTR_GRAPHS: return write_graphs(u, a, to);
	case OM_ATTR_TYPE: to->tp = om_type_write(mem, a->type, &open); return OM_OK;
	default:
		return om_op_fail(u->s, OM_UNSUPPORTED, op,
			"attribute %s has a type that cannot be written", a->name);
	}
}

/* A copy of the original message under a new name, if only the name differs; else NULL. */
static Onnx__AttributeProto *
renamed(struct update *u, const om_attr *a)
{
	const Onnx__AttributeProto *from = a->origin;

	if (!from || is_graph(a) || a->ref || (from->ref_attr_name && *from->ref_attr_name))
		return NULL;
	Onnx__AttributeProto *to = om_memdup(u->m->mem, from, sizeof *from);
	to->name = om_strdup(u->m->mem, a->name);
	return to;
}

static om_status
write_attr(struct update *u, const om_op *op, const om_attr *a, Onnx__AttributeProto **out)
{
	*out = is_kept(a) ? (Onnx__AttributeProto *)a->origin : renamed(u, a);
	if (!*out) {
		Onnx__AttributeProto *to = *out = OM_NEW(u->m->mem, Onnx__AttributeProto);
		onnx__attribute_proto__init(to);
		to->name = om_strdup(u->m->mem, a->name);
		to->has_type = true;
		to->type = (Onnx__AttributeProto__AttributeType)a->kind;
		if (!a->ref)
			return write_elements(u, op, a, to);
		to->ref_attr_name = om_strdup(u->m->mem, a->ref);
		return OM_OK;
	}
	for (size_t k = 0; is_graph(a) && !a->ref && k < a->n; k++) {
		Onnx__GraphProto *same;
		OM_TRY(write_graph(u, a->g[k], &same));
	}
	return OM_OK;
}

static om_status
write_attrs(struct update *u, const om_op *op, Onnx__NodeProto *to)
{
	Onnx__AttributeProto **list = OM_NEWN(u->m->mem, Onnx__AttributeProto *, (size_t)op->nattr + 1);

	for (uint32_t k = 0; k < op->nattr; k++)
		OM_TRY(write_attr(u, op, &op->attr[k], &list[k]));
	to->n_attribute = op->nattr;
	to->attribute = list;
	return OM_OK;
}

/* ---- Nodes. ---- */

static Onnx__OperatorSetIdProto *
opset_of(struct update *u, const om_opset *from)
{
	Onnx__OperatorSetIdProto *set = OM_NEW(u->m->mem, Onnx__OperatorSetIdProto);

	onnx__operator_set_id_proto__init(set);
	set->domain = om_strdup(u->m->mem, from->domain);
	set->has_version = true;
	set->version = from->version;
	return set;
}

/* A file has one version of each operator set.  A different version is acceptable if it has the
 * same operator definition. */
static om_status
write_opset(struct update *u, const om_op *op)
{
	Onnx__ModelProto *m = u->m->proto;

	for (size_t k = 0; k < m->n_opset_import; k++) {
		const Onnx__OperatorSetIdProto *set = m->opset_import[k];
		if (strcmp(om_domain(set->domain), op->domain) != 0)
			continue;
		if (set->version == op->version
		    || (op->opdef && op->operators->find(op->domain, op->type, (int)set->version) == op->opdef))
			return OM_OK;
		return om_op_fail(u->s, OM_UNSUPPORTED, op,
			"is of version %d of its operator set, but the file imports version %lld",
			op->version, (long long)set->version);
	}
	size_t n = m->n_opset_import, cap = n;
	OM_PUSH(u->m->mem, m->opset_import, n, cap,
		opset_of(u, &(om_opset){op->domain, op->version ? op->version : 1}));
	m->n_opset_import = n;
	return OM_OK;
}

om_status
om_update_node(struct update *u, const om_op *op, Onnx__NodeProto **out)
{
	Onnx__NodeProto *to = (Onnx__NodeProto *)op->origin;

	if (!to) {
		to = OM_NEW(u->m->mem, Onnx__NodeProto);
		onnx__node_proto__init(to);
		to->op_type = om_strdup(u->m->mem, op->type);
		if (*op->domain)
			to->domain = om_strdup(u->m->mem, op->domain);
		OM_TRY(write_opset(u, op));
	}
	*out = to;
	write_text(u, &to->op_type, op->type);
	write_text(u, &to->name, op->name);
	write_text(u, &to->overload, op->overload);
	write_names(u, &to->n_input, &to->input, op->nin, op->in);
	write_names(u, &to->n_output, &to->output, op->nout, op->out);
	om_metadata_write_op(u->m->mem, op, to);
	return write_attrs(u, op, to);
}

/* ---- Graphs. ---- */

Onnx__NodeProto *
om_update_plain_node(struct update *u, const char *type, const char *in, const char *out)
{
	Onnx__NodeProto *n = OM_NEW(u->m->mem, Onnx__NodeProto);

	onnx__node_proto__init(n);
	n->op_type = om_strdup(u->m->mem, type);
	n->n_output = 1;
	n->output = OM_NEW(u->m->mem, char *);
	n->output[0] = om_strdup(u->m->mem, out);
	if (in) {
		n->n_input = 1;
		n->input = OM_NEW(u->m->mem, char *);
		n->input[0] = om_strdup(u->m->mem, in);
	}
	return n;
}

void
om_update_push(struct update *u, struct nodes *to, Onnx__NodeProto *n)
{
	OM_PUSH(u->m->mem, to->list, to->n, to->cap, n);
}

Onnx__ValueInfoProto *
om_update_value_info(struct update *u, const om_value *v)
{
	Onnx__ValueInfoProto *to = OM_NEW(u->m->mem, Onnx__ValueInfoProto);

	onnx__value_info_proto__init(to);
	to->name = om_strdup(u->m->mem, v->name);
	if (v->type.kind != OM_TENSOR || v->type.elem != OM_UNDEFINED)
		to->type = om_type_write(u->m->mem, &v->type, &v->shape);
	return to;
}

/* The result of a body may have any name.  ONNX requires that a value of an outer scope be
 * returned through an Identity. */
static void
write_result(struct update *u, const om_block *b, uint32_t k, Onnx__GraphProto *g, struct nodes *nodes)
{
	const om_value *v = b->result[k];
	Onnx__ValueInfoProto *info = om_update_value_info(u, v);

	g->output[k] = info;
	if (v->block == b)
		return;
	for (unsigned n = 0; om_prog_find(u->p, info->name); n++)
		info->name = om_printf(u->m->mem, "%s.%u", v->name, n);
	om_update_push(u, nodes, om_update_plain_node(u, "Identity", v->name, info->name));
}

/* The names of the graph's outputs are kept.  An output that is now a different value is
 * connected through an Identity. */
static om_status
write_output(struct update *u, const om_block *b, uint32_t k, const char *name, struct nodes *nodes)
{
	const om_value *v = b->result[k];

	for (const om_op *op = b->first; op && !u->has_outputs; op = op->next)
		for (uint32_t i = 0; i < op->nout; i++)
			if (op->out[i])
				om_map_set(&u->outputs, op->out[i]->name, (void *)op);
	u->has_outputs = true;
	if (om_map_get(&u->outputs, name))
		return om_fail(u->s, OM_UNSUPPORTED, "output %s is now %s, but its old definition remains", name, v->name);
	om_update_push(u, nodes, om_update_plain_node(u, "Identity", v->name, name));
	return OM_OK;
}

static om_status
write_outputs(struct update *u, const om_block *b, Onnx__GraphProto *g, struct nodes *nodes)
{
	for (uint32_t k = 0; k < b->nresult; k++) {
		const char *name = om_text(g->output[k]->name);
		if (strcmp(name, b->result[k]->name) == 0 && b->result[k]->block == b)
			continue;
		if (b->owner)
			write_result(u, b, k, g, nodes);
		else
			OM_TRY(write_output(u, b, k, name, nodes));
	}
	return OM_OK;
}

om_map
om_update_initializers(struct update *u, const Onnx__GraphProto *g)
{
	om_map map = om_map_new(u->tmp);

	for (size_t k = 0; k < g->n_initializer; k++)
		om_map_set(&map, om_text(g->initializer[k]->name), g->initializer[k]);
	for (size_t k = 0; k < g->n_sparse_initializer; k++)
		if (g->sparse_initializer[k]->values)
			om_map_set(&map, om_text(g->sparse_initializer[k]->values->name), g->sparse_initializer[k]);
	return map;
}

/* A message for a constant that is not in the graph: a renamed copy of its original message,
 * which may refer to external data, or a new one with its own elements. */
om_status
om_update_data(struct update *u, const om_value *v, Onnx__TensorProto **out)
{
	const ProtobufCMessage *from = v->origin;

	if (!from || from->descriptor != &onnx__tensor_proto__descriptor)
		return om_tensor_write(u->s, u->m->mem, v->name, v->data, out);
	*out = om_memdup(u->m->mem, from, sizeof **out);
	(*out)->name = om_strdup(u->m->mem, v->name);
	return OM_OK;
}

void
om_update_initializer(struct update *u, Onnx__GraphProto *g, Onnx__TensorProto *t)
{
	if (u->grown != g)
		u->cap = g->n_initializer;
	u->grown = g;
	OM_PUSH(u->m->mem, g->initializer, g->n_initializer, u->cap, t);
}

/* Up to IR 3 an initializer must also be an input, so a Constant node is used instead. */
static void
push_const(struct update *u, const om_value *v, Onnx__TensorProto *t, Onnx__GraphProto *g, struct nodes *nodes)
{
	if (u->p->ir_version >= 4) {
		om_update_initializer(u, g, t);
		return;
	}
	Onnx__NodeProto *node = om_update_plain_node(u, "Constant", NULL, v->name);
	Onnx__AttributeProto *a = OM_NEW(u->m->mem, Onnx__AttributeProto);
	onnx__attribute_proto__init(a);
	a->name = om_strdup(u->m->mem, "value");
	a->has_type = true;
	a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
	a->t = t;
	node->n_attribute = 1;
	node->attribute = OM_NEW(u->m->mem, Onnx__AttributeProto *);
	node->attribute[0] = a;
	om_update_push(u, nodes, node);
}

/* The default of an input that has another value now. */
static void
drop_initializer(Onnx__GraphProto *g, const char *name)
{
	size_t n = 0, nsparse = 0;

	for (size_t k = 0; k < g->n_initializer; k++)
		if (strcmp(om_text(g->initializer[k]->name), name) != 0)
			g->initializer[n++] = g->initializer[k];
	for (size_t k = 0; k < g->n_sparse_initializer; k++)
		if (!g->sparse_initializer[k]->values || strcmp(om_text(g->sparse_initializer[k]->values->name), name) != 0)
			g->sparse_initializer[nsparse++] = g->sparse_initializer[k];
	g->n_initializer = n;
	g->n_sparse_initializer = nsparse;
}

static om_status
write_consts(struct update *u, const om_block *b, Onnx__GraphProto *g, struct nodes *nodes)
{
	for (uint32_t k = 0; !b->owner && k < b->nparam; k++)
		if (om_input_is_fixed(b->param[k]))
			drop_initializer(g, b->param[k]->name);
	const om_map there = om_update_initializers(u, g);

	for (const om_value *v = u->consts[b->id]; v; v = u->next[v->id]) {
		Onnx__TensorProto *t;
		if (!u->used[v->id] || om_map_get(&there, v->name))
			continue;
		OM_TRY(om_update_data(u, v, &t));
		push_const(u, v, t, g, nodes);
	}
	return OM_OK;
}

static Onnx__GraphProto *
new_graph(struct update *u, const om_block *b)
{
	Onnx__GraphProto *g = OM_NEW(u->m->mem, Onnx__GraphProto);

	onnx__graph_proto__init(g);
	g->name = om_strdup(u->m->mem, *b->name ? b->name : "body");
	g->n_input = b->nparam;
	g->input = OM_NEWN(u->m->mem, Onnx__ValueInfoProto *, g->n_input + 1);
	for (uint32_t k = 0; k < b->nparam; k++)
		g->input[k] = om_update_value_info(u, b->param[k]);
	g->n_output = b->nresult;
	g->output = OM_NEWN(u->m->mem, Onnx__ValueInfoProto *, g->n_output + 1);
	for (uint32_t k = 0; k < b->nresult; k++)
		g->output[k] = om_update_value_info(u, b->result[k]);
	return g;
}

/* Keep the value_info messages of the file for values that still exist. */
static void
write_infos(struct update *u, size_t *n, Onnx__ValueInfoProto ***list, uint32_t count, om_value *const *v)
{
	Onnx__ValueInfoProto **all = OM_NEWN(u->m->mem, Onnx__ValueInfoProto *, (size_t)count + 1);
	om_map there = om_map_new(u->tmp);

	for (size_t i = *n; i-- > 0;)  /* the first of a name stays */
		om_map_set(&there, om_text((*list)[i]->name), (*list)[i]);
	for (uint32_t k = 0; k < count; k++) {
		all[k] = om_map_get(&there, v[k]->name);
		if (!all[k])
			all[k] = om_update_value_info(u, v[k]);
	}
	*n = count;
	*list = all;
}

/* Write defaults of inputs that the file does not have. */
static om_status
write_defaults(struct update *u, const om_block *b, Onnx__GraphProto *g)
{
	const om_map there = om_update_initializers(u, g);

	for (uint32_t k = 0; k < b->nparam; k++) {
		const om_value *v = b->param[k];
		Onnx__TensorProto *t;
		if (!v->data || !v->is_overridable || om_map_get(&there, v->name))
			continue;
		OM_TRY(om_update_data(u, v, &t));
		om_update_initializer(u, g, t);
	}
	return OM_OK;
}

/* An input with a fixed value is a constant of the file, so that no runtime accepts another value. */
static om_status
write_interface(struct update *u, const om_block *b, Onnx__GraphProto *g)
{
	om_value **free = OM_NEWN(u->tmp, om_value *, (size_t)b->nparam + 1);
	uint32_t n = 0;

	for (uint32_t k = 0; k < b->nparam; k++)
		if (b->owner || !om_input_is_fixed(b->param[k]))
			free[n++] = b->param[k];
	write_infos(u, &g->n_input, &g->input, n, free);
	write_infos(u, &g->n_output, &g->output, b->nresult, b->result);
	return write_defaults(u, b, g);
}

/* Import renames body parameters that shadow an outer name: use the names of the program. */
static void
rename_inputs(struct update *u, const om_block *b, Onnx__GraphProto *g)
{
	for (uint32_t k = 0; k < b->nparam && k < g->n_input; k++) {
		if (strcmp(om_text(g->input[k]->name), b->param[k]->name) == 0)
			continue;
		Onnx__ValueInfoProto *to = om_memdup(u->m->mem, g->input[k], sizeof *to);
		to->name = om_strdup(u->m->mem, b->param[k]->name);
		g->input[k] = to;
	}
}

/* Inference may need what is declared for the outputs of new ops, such as copies of ops whose inputs have open
 * sizes. */
static void
write_declared(struct update *u, const om_block *b, Onnx__GraphProto *g)
{
	om_map there = om_map_new(u->tmp);
	size_t cap = g->n_value_info;

	for (size_t k = 0; k < g->n_value_info; k++)
		om_map_set(&there, om_text(g->value_info[k]->name), g->value_info[k]);
	for (const om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout && op->rematerialized_from; k++) {
			const om_value *v = op->out[k];
			if (v && v->is_declared && !om_map_get(&there, v->name))
				OM_PUSH(u->m->mem, g->value_info, g->n_value_info, cap, om_update_value_info(u, v));
		}
}

static om_status
write_graph(struct update *u, const om_block *b, Onnx__GraphProto **out)
{
	Onnx__GraphProto *g = b->origin ? (Onnx__GraphProto *)b->origin : new_graph(u, b);
	struct nodes nodes = {0};

	*out = g;
	const bool is_new = b->is_other || (b->nresult && g->n_output == 0);
	if (is_new || (!b->owner && om_prog_has_fixed_inputs(u->p)) || (b->owner && (g->n_output != b->nresult || g->n_input != b->nparam)))
		OM_TRY(write_interface(u, b, g));
	if (b->owner)
		rename_inputs(u, b, g);
	if (g->n_output != b->nresult)
		return om_fail(u->s, OM_UNSUPPORTED, "%s: has %u results, but %zu in the file",
			*b->path ? b->path : "the graph", b->nresult, g->n_output);
	OM_TRY(write_consts(u, b, g, &nodes));
	for (const om_op *op = b->first; op; op = op->next) {
		Onnx__NodeProto *n;
		OM_TRY(om_update_node(u, op, &n));
		om_update_push(u, &nodes, n);
	}
	OM_TRY(write_outputs(u, b, g, &nodes));
	write_declared(u, b, g);
	g->node = nodes.list;
	g->n_node = nodes.n;
	return OM_OK;
}

/* ---- The program. ---- */

void
om_update_note_uses(struct update *u, const om_block *b)
{
	for (uint32_t k = 0; k < b->nresult; k++)
		u->used[b->result[k]->id] = true;
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k])
				u->used[op->in[k]->id] = true;
		for (uint32_t k = 0; k < op->nbody; k++)
			om_update_note_uses(u, op->body[k]);
	}
}

static void
note_consts(struct update *u)
{
	for (const om_block *b = u->p->first; b; b = b->next)
		for (uint32_t k = 0; k < b->nparam; k++)
			u->is_param[b->param[k]->id] |= b->param[k]->block == b && !om_input_is_fixed(b->param[k]);
	for (uint32_t k = u->p->nvalue; k-- > 0;) {
		const om_value *v = u->p->values[k];
		if (v->def || !v->data || v->is_overridable || u->is_param[k])
			continue;
		u->next[k] = u->consts[v->block->id];
		u->consts[v->block->id] = v;
	}
}

/* Raise opset and IR versions to those of the program; returns whether an opset version was
 * raised. */
bool
om_update_versions(struct update *u)
{
	Onnx__ModelProto *m = u->m->proto;
	bool is_newer = false;

	for (size_t k = 0; k < m->n_opset_import; k++) {
		const int version = om_opset_version(u->p, om_domain(m->opset_import[k]->domain));
		if (version > m->opset_import[k]->version) {
			m->opset_import[k] = om_memdup(u->m->mem, m->opset_import[k], sizeof *m->opset_import[k]);
			m->opset_import[k]->has_version = true;
			m->opset_import[k]->version = version;
			is_newer = true;
		}
	}
	if ((is_newer || u->p->first->is_other) && u->p->ir_version > m->ir_version)
		m->ir_version = u->p->ir_version;
	return is_newer;
}

/* Drop the training information if opsets or the interface of the graph changed: it refers to names
 * of the old graph, and its nodes use the old opsets. */
static void
forget_training(struct update *u, bool is_newer)
{
	Onnx__ModelProto *m = u->m->proto;

	if (m->n_training_info == 0 || (!is_newer && !u->p->first->is_other))
		return;
	om_warn(u->s, "%s: training information is dropped: it is for the unchanged graph", u->m->name);
	m->n_training_info = 0;
	m->training_info = NULL;
}

om_status
om_update_start(struct update *u)
{
	const om_prog *p = u->p;

	if (p->model != u->m || p->first->origin != u->m->proto->graph)
		return om_fail(u->s, OM_USAGE, "the program was not imported from %s", u->m->name);
	u->outputs = om_map_new(u->tmp);
	u->used = OM_NEWN(u->tmp, bool, p->nvalue + 1);
	u->is_param = OM_NEWN(u->tmp, bool, p->nvalue + 1);
	u->next = OM_NEWN(u->tmp, const om_value *, p->nvalue + 1);
	u->consts = OM_NEWN(u->tmp, const om_value *, p->nblock + 1);
	note_consts(u);
	return OM_OK;
}

/* ---- Functions. ---- */

static const char *
key_of(om_arena *mem, const om_function *f)
{
	return om_printf(mem, "%s\n%s\n%s", f->domain, f->name, f->overload);
}

static void
note_calls(const om_block *b, om_map *called)
{
	for (const om_op *op = b->first; op; op = op->next) {
		const char *key = op->call ? key_of(called->mem, op->call) : "";
		if (op->call && !om_map_get(called, key)) {
			om_map_set(called, key, (void *)op->call);
			note_calls(op->call->body, called);
		}
		for (uint32_t k = 0; k < op->nbody; k++)
			note_calls(op->body[k], called);
	}
}

static void
write_signature(struct update *u, const om_function *fn, Onnx__FunctionProto *to)
{
	const om_block *b = fn->body;

	write_names(u, &to->n_input, &to->input, b->nparam, b->param);
	write_names(u, &to->n_output, &to->output, b->nresult, b->result);
	to->value_info = OM_NEWN(u->m->mem, Onnx__ValueInfoProto *, (size_t)b->nparam + 1);
	for (uint32_t k = 0; k < b->nparam; k++)
		if (om_type_elem(&b->param[k]->type) != OM_UNDEFINED)
			to->value_info[to->n_value_info++] = om_update_value_info(u, b->param[k]);
	to->attribute = OM_NEWN(u->m->mem, char *, fn->nattr + 1);
	for (; to->n_attribute < fn->nattr; to->n_attribute++)
		to->attribute[to->n_attribute] = om_strdup(u->m->mem, fn->attr[to->n_attribute]);
	to->opset_import = OM_NEWN(u->m->mem, Onnx__OperatorSetIdProto *, fn->nopset + 1);
	for (; to->n_opset_import < fn->nopset; to->n_opset_import++)
		to->opset_import[to->n_opset_import] = opset_of(u, &fn->opset[to->n_opset_import]);
}

/* Write a function created by a pass: its constants are nodes, and it has no default attributes. */
static om_status
write_function(struct update *u, const om_function *fn, Onnx__FunctionProto **out)
{
	Onnx__FunctionProto *to = *out = OM_NEW(u->m->mem, Onnx__FunctionProto);
	struct nodes nodes = {0};

	onnx__function_proto__init(to);
	to->domain = om_strdup(u->m->mem, fn->domain);
	to->name = om_strdup(u->m->mem, fn->name);
	if (*fn->overload)
		to->overload = om_strdup(u->m->mem, fn->overload);
	write_signature(u, fn, to);
	for (const om_op *op = fn->body->first; op; op = op->next) {
		Onnx__NodeProto *n;
		OM_TRY(om_update_node(u, op, &n));
		om_update_push(u, &nodes, n);
	}
	to->node = nodes.list;
	to->n_node = nodes.n;
	if (u->m->proto->ir_version < OM_IR_OVERLOAD)
		u->m->proto->ir_version = OM_IR_OVERLOAD;
	return OM_OK;
}

static bool
is_in_file(const Onnx__ModelProto *m, const Onnx__FunctionProto *f)
{
	for (size_t k = 0; k < m->n_functions; k++)
		if (m->functions[k] == f)
			return true;
	return false;
}

/* Keep functions that are called and, with `keeps`, also those of the file. */
om_status
om_update_functions(struct update *u, bool keeps)
{
	Onnx__ModelProto *m = u->m->proto;
	Onnx__FunctionProto **list = NULL;
	om_map called = om_map_new(u->tmp);
	size_t n = 0, cap = 0;

	note_calls(u->p->first, &called);
	for (const om_function *f = u->p->functions; f; f = f->next) {
		Onnx__FunctionProto *to = (Onnx__FunctionProto *)f->origin;
		if (!om_map_get(&called, key_of(u->tmp, f)) && !(keeps && is_in_file(m, to)))
			continue;
		if (!to)
			OM_TRY(write_function(u, f, &to));
		OM_PUSH(u->m->mem, list, n, cap, to);
	}
	m->functions = list;
	m->n_functions = n;
	return OM_OK;
}

static om_status
update(struct update *u)
{
	Onnx__GraphProto *graph;

	OM_TRY(om_update_start(u));
	forget_training(u, om_update_versions(u));
	om_update_note_uses(u, u->p->first);
	OM_TRY(write_graph(u, u->p->first, &graph));
	OM_TRY(om_update_functions(u, false));
	return om_metadata_write(u->s, u->m, u->p);
}

static om_status
model_update_guarded(om_session *s, om_model *m, const om_prog *p)
{
	struct update u = {.s = s, .m = m, .p = p, .tmp = om_arena_new()};
	const om_status st = update(&u);

	om_arena_free(u.tmp);
	return st;
}

om_status
om_model_update(om_session *s, om_model *m, const om_prog *p)
{
	OM_GUARDED(s, model_update_guarded(s, m, p));
}
