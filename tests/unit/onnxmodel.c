/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <stdlib.h>

#include "onnxmodel.h"
#include "base/shape.h"
#include "base/split.h"

struct made
made_new(int ir, int opset)
{
	om_arena *mem = om_arena_new();
	struct made b = {.mem = mem, .s = om_session_new(), .m = OM_NEW(mem, Onnx__ModelProto)};

	onnx__model_proto__init(b.m);
	b.m->has_ir_version = true;
	b.m->ir_version = ir;
	b.m->n_opset_import = 1;
	b.m->opset_import = OM_NEW(mem, Onnx__OperatorSetIdProto *);
	b.m->opset_import[0] = OM_NEW(mem, Onnx__OperatorSetIdProto);
	onnx__operator_set_id_proto__init(b.m->opset_import[0]);
	b.m->opset_import[0]->has_version = true;
	b.m->opset_import[0]->version = opset;
	b.g = b.m->graph = made_graph(&b, "graph");
	return b;
}

void
made_free(struct made *b)
{
	om_session_free(b->s);
	om_arena_free(b->mem);
}

Onnx__GraphProto *
made_graph(struct made *b, const char *name)
{
	Onnx__GraphProto *g = OM_NEW(b->mem, Onnx__GraphProto);

	onnx__graph_proto__init(g);
	g->name = om_strdup(b->mem, name);
	return g;
}

/* Room for one more in a list of pointers, which doubles where it is full. */
static void *
more(struct made *b, void *list, size_t n)
{
	if (n & (n - 1))
		return list;
	void **bigger = OM_NEWN(b->mem, void *, 2 * n + 1);
	if (n)
		memcpy(bigger, list, n * sizeof *bigger);
	return bigger;
}

static size_t
split(struct made *b, const char *names, char ***out)
{
	size_t n;
	const char **name = om_split(b->mem, names, " ", &n);

	*out = OM_NEWN(b->mem, char *, n + 1);
	for (size_t k = 0; k < n; k++)
		(*out)[k] = om_strdup(b->mem, strcmp(name[k], "_") == 0 ? "" : name[k]);
	return n;
}

Onnx__NodeProto *
made_node(struct made *b, Onnx__GraphProto *g, const char *type, const char *in, const char *out)
{
	Onnx__NodeProto *n = OM_NEW(b->mem, Onnx__NodeProto);

	onnx__node_proto__init(n);
	n->op_type = om_strdup(b->mem, type);
	n->n_input = split(b, in, &n->input);
	n->n_output = split(b, out, &n->output);
	g->node = more(b, g->node, g->n_node);
	g->node[g->n_node++] = n;
	return n;
}

Onnx__AttributeProto *
made_attr(struct made *b, Onnx__NodeProto *n, const char *name, int kind)
{
	Onnx__AttributeProto *a = OM_NEW(b->mem, Onnx__AttributeProto);

	onnx__attribute_proto__init(a);
	a->name = om_strdup(b->mem, name);
	a->has_type = true;
	a->type = (Onnx__AttributeProto__AttributeType)kind;
	n->attribute = more(b, n->attribute, n->n_attribute);
	n->attribute[n->n_attribute++] = a;
	return a;
}

static Onnx__ValueInfoProto *
value_info(struct made *b, const char *name, int rank, const int64_t *dims)
{
	Onnx__ValueInfoProto *v = OM_NEW(b->mem, Onnx__ValueInfoProto);
	const om_type type = {.kind = OM_TENSOR, .elem = OM_FLOAT32};
	om_shape shape = om_shape_unknown();

	onnx__value_info_proto__init(v);
	v->name = om_strdup(b->mem, name);
	if (rank >= 0 && rank <= OM_MAX_RANK)
		shape = om_shape_of(rank, dims);
	v->type = om_type_write(b->mem, &type, &shape);
	return v;
}

void
made_input(struct made *b, Onnx__GraphProto *g, const char *name, int rank, const int64_t *dims)
{
	g->input = more(b, g->input, g->n_input);
	g->input[g->n_input++] = value_info(b, name, rank, dims);
}

void
made_output(struct made *b, Onnx__GraphProto *g, const char *name)
{
	g->output = more(b, g->output, g->n_output);
	g->output[g->n_output++] = value_info(b, name, -1, NULL);
}

Onnx__TensorProto *
made_tensor(struct made *b, const char *name, int type, int rank, const int64_t *dims)
{
	Onnx__TensorProto *t = OM_NEW(b->mem, Onnx__TensorProto);

	onnx__tensor_proto__init(t);
	t->name = om_strdup(b->mem, name);
	t->has_data_type = true;
	t->data_type = type;
	t->n_dims = (size_t)rank;
	t->dims = om_memdup(b->mem, dims, (size_t)rank * sizeof *dims);
	return t;
}

Onnx__TensorProto *
made_init(struct made *b, Onnx__GraphProto *g, const char *name, size_t n, const float *v)
{
	Onnx__TensorProto *t = made_tensor(b, name, OM_FLOAT32, 1, (int64_t[]){(int64_t)n});

	t->n_float_data = n;
	t->float_data = om_memdup(b->mem, v, n * sizeof *v);
	g->initializer = more(b, g->initializer, g->n_initializer);
	g->initializer[g->n_initializer++] = t;
	return t;
}

void
made_set(struct made *b, char **field, const char *text)
{
	*field = om_strdup(b->mem, text);
}

om_status
made_load(struct made *b, const char *folder, om_model **m, om_prog **p)
{
	const size_t size = onnx__model_proto__get_packed_size(b->m);
	uint8_t *packed = malloc(size + 1);
	om_model *model;
	om_prog *prog = NULL;

	onnx__model_proto__pack(b->m, packed);
	om_status st = om_model_load_memory(b->s, packed, size, "made", folder, &model);
	free(packed);
	if (st == OM_OK)
		st = om_model_import(b->s, model, &prog);
	if (st == OM_OK)
		st = om_verify(b->s, prog);
	if (p)
		*p = prog;
	else
		om_prog_free(prog);
	if (m)
		*m = model;
	else
		om_model_free(model);
	return st;
}

bool
made_says(const struct made *b, const char *word)
{
	return strstr(om_message(b->s), word) != NULL;
}
