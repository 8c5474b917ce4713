/* SPDX-License-Identifier: Apache-2.0 */
/* The graph digest "canon1": covers exactly the properties that determine whether a plan
 * applies.  docs/plan-format.md defines it; tokens are hashed in the order given there.
 *
 * Input is hashed as length-prefixed tokens, so that different graphs give different
 * byte sequences.
 */
#include <config.h>

#include <stdlib.h>

#include "base/decimal.h"
#include "base/guard.h"
#include "base/map.h"
#include "base/sha256.h"
#include "base/shape.h"
#include "onnx/model.h"

/* Maximum number of elements of constants to hash, as they may determine shapes: any type; integers. */
enum { SMALL = 1024, SMALL_INTEGERS = 64 * 1024 };

struct digest {
	om_session *s;
	om_model *m;
	om_arena *mem;
	om_sha256 *hash;
	char pending[1024];              /* tokens are short: they are hashed together */
	size_t npending;
	bool full;                       /* include all weights */
	om_map functions;                /* by key: functions of the model */
	om_map used;                     /* by key: functions that are called */
	const Onnx__FunctionProto **use;
	size_t nuse, capuse;
};

/* ---- Tokens. ---- */

static void
flush(struct digest *d)
{
	om_sha256_add(d->hash, d->pending, d->npending);
	d->npending = 0;
}

static void
put(struct digest *d, const void *p, size_t n)
{
	if (n > sizeof d->pending - d->npending)
		flush(d);
	if (n > sizeof d->pending) {
		om_sha256_add(d->hash, p, n);
		return;
	}
	if (n)
		memcpy(d->pending + d->npending, p, n);
	d->npending += n;
}

/* The head of a token of `n` bytes. */
static void
begin(struct digest *d, uint64_t n)
{
	char s[OM_DECIMAL];
	const char *digits = om_decimal(s, (int64_t)n);

	put(d, digits, strlen(digits));
	put(d, ":", 1);
}

static void
bytes(struct digest *d, const void *p, size_t n)
{
	begin(d, n);
	put(d, p, n);
	put(d, ",", 1);
}

static void
text(struct digest *d, const char *s)
{
	s = om_text(s);
	bytes(d, s, strlen(s));
}

static void
number(struct digest *d, int64_t n)
{
	char s[OM_DECIMAL];

	text(d, om_decimal(s, n));
}

static void
data(struct digest *d, const ProtobufCBinaryData *b)
{
	bytes(d, b->data, b->len);
}

/* The four bytes of a float, little-endian. */
static void
real(struct digest *d, float f)
{
	uint32_t u;
	unsigned char b[4];

	memcpy(&u, &f, sizeof u);
	for (int k = 0; k < 4; k++)
		b[k] = (unsigned char)(u >> 8 * k);
	bytes(d, b, sizeof b);
}

static void
texts(struct digest *d, size_t n, char *const *s)
{
	number(d, (int64_t)n);
	for (size_t k = 0; k < n; k++)
		text(d, s[k]);
}

/* Items to be sorted by name; the sort is stable. */
struct named {
	const char *name;
	size_t place;
	const void *thing;
};

static int
by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	const int order = strcmp(x->name, y->name);
	return order ? order : (x->place > y->place) - (x->place < y->place);
}

static struct named *
named_new(struct digest *d, size_t n)
{
	return OM_NEWN(d->mem, struct named, n + 1);
}

static void
sort(struct named *all, size_t n)
{
	for (size_t k = 0; k < n; k++)
		all[k].place = k;
	qsort(all, n, sizeof *all, by_name);
}

/* ---- Types. ---- */

static void
shape(struct digest *d, const Onnx__TensorShapeProto *s)
{
	if (!s) {
		text(d, "?");
		return;
	}
	number(d, (int64_t)s->n_dim);
	for (size_t k = 0; k < s->n_dim; k++) {
		const Onnx__TensorShapeProto__Dimension *dim = s->dim[k];
		if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
			text(d, "value");
			number(d, dim->dim_value);
		} else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
		           && *om_text(dim->dim_param)) {
			text(d, "param");
			text(d, dim->dim_param);
		} else {
			text(d, "open");
		}
	}
}

static void
type(struct digest *d, const Onnx__TypeProto *t)
{
	switch (t ? t->value_case : ONNX__TYPE_PROTO__VALUE__NOT_SET) {
	case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
		text(d, "tensor");
		number(d, t->tensor_type->elem_type);
		shape(d, t->tensor_type->shape);
		break;
	case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
		text(d, "sparse");
		number(d, t->sparse_tensor_type->elem_type);
		shape(d, t->sparse_tensor_type->shape);
		break;
	case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
		text(d, "sequence");
		type(d, t->sequence_type->elem_type);
		break;
	case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
		text(d, "optional");
		type(d, t->optional_type->elem_type);
		break;
	case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
		text(d, "map");
		number(d, t->map_type->key_type);
		type(d, t->map_type->value_type);
		break;
	case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE:
		text(d, "opaque");
		text(d, t->opaque_type->domain);
		text(d, t->opaque_type->name);
		break;
	default:
		text(d, "none");
	}
}

static void
infos(struct digest *d, size_t n, Onnx__ValueInfoProto *const *info)
{
	number(d, (int64_t)n);
	for (size_t k = 0; k < n; k++) {
		text(d, info[k]->name);
		type(d, info[k]->type);
	}
}

/* ---- Tensors. ---- */

/* String elements have no fixed size; their contents are counted. */
static uint64_t
size_of(const Onnx__TensorProto *t)
{
	const om_dtype e = (om_dtype)t->data_type;
	uint64_t n = 0;
	int64_t count = 1;

	if (e == OM_STRING) {
		for (size_t k = 0; k < t->n_string_data; k++)
			n += t->string_data[k].len;
		return n;
	}
	for (size_t k = 0; k < t->n_dims; k++)
		if (__builtin_mul_overflow(count, t->dims[k], &count))
			return UINT64_MAX;
	return om_dtype_bytes(e, count, &n) ? n : UINT64_MAX;
}

static bool
is_wanted(const struct digest *d, const Onnx__TensorProto *t)
{
	const om_dtype e = (om_dtype)t->data_type;
	const uint64_t n = size_of(t);

	return d->full || n <= SMALL
	    || ((om_dtype_is_integer(e) || e == OM_BOOL) && n <= SMALL_INTEGERS);
}

/* Elements in row-major order, little-endian, independent of the field that stores them; unused
 * bits of packed types are zero. */
static om_status
elements(struct digest *d, const Onnx__TensorProto *t)
{
	om_arena *mem = om_arena_new();
	om_tensor is;
	uint64_t n = 0;
	const om_status st = om_tensor_read(d->s, d->m, mem, t, &is);

	if (st == OM_OK && is.type == OM_STRING) {
		number(d, (int64_t)t->n_string_data);
		for (size_t k = 0; k < t->n_string_data; k++)
			data(d, &t->string_data[k]);
	} else if (st == OM_OK && om_tensor_bytes(is.type, &is.shape, &n) && n) {
		const unsigned odd = (unsigned)(om_shape_count(&is.shape) % 8 * om_dtype_bits(is.type) % 8);
		unsigned char last = ((const unsigned char *)is.data)[n - 1];
		if (odd)
			last &= (unsigned char)((1u << odd) - 1);
		begin(d, n);
		put(d, is.data, n - 1);
		put(d, &last, 1);
		put(d, ",", 1);
	} else {
		text(d, "");
	}
	om_arena_free(mem);
	return st;
}

static om_status
tensor(struct digest *d, const Onnx__TensorProto *t)
{
	if (!t) {
		text(d, "none");
		return OM_OK;
	}
	number(d, t->data_type);
	number(d, (int64_t)t->n_dims);
	for (size_t k = 0; k < t->n_dims; k++)
		number(d, t->dims[k]);
	if (!is_wanted(d, t)) {
		text(d, "weights");
		return OM_OK;
	}
	text(d, "elements");
	return elements(d, t);
}

static om_status
sparse(struct digest *d, const Onnx__SparseTensorProto *t)
{
	if (!t) {
		text(d, "none");
		return OM_OK;
	}
	number(d, (int64_t)t->n_dims);
	for (size_t k = 0; k < t->n_dims; k++)
		number(d, t->dims[k]);
	OM_TRY(tensor(d, t->values));
	return tensor(d, t->indices);
}

/* ---- Nodes. ---- */

static om_status graph(struct digest *d, const Onnx__GraphProto *g);

static om_status
value(struct digest *d, const Onnx__AttributeProto *a, om_attr_kind kind)
{
	switch (kind) {
	case OM_ATTR_FLOAT: real(d, a->f); return OM_OK;
	case OM_ATTR_INT: number(d, a->i); return OM_OK;
	case OM_ATTR_STRING: data(d, &a->s); return OM_OK;
	case OM_ATTR_TENSOR: return tensor(d, a->t);
	case OM_ATTR_SPARSE: return sparse(d, a->sparse_tensor);
	case OM_ATTR_TYPE: type(d, a->tp); return OM_OK;
	case OM_ATTR_GRAPH: return graph(d, a->g);
	case OM_ATTR_FLOATS:
		number(d, (int64_t)a->n_floats);
		for (size_t k = 0; k < a->n_floats; k++)
			real(d, a->floats[k]);
		return OM_OK;
	case OM_ATTR_INTS:
		number(d, (int64_t)a->n_ints);
		for (size_t k = 0; k < a->n_ints; k++)
			number(d, a->ints[k]);
		return OM_OK;
	case OM_ATTR_STRINGS:
		number(d, (int64_t)a->n_strings);
		for (size_t k = 0; k < a->n_strings; k++)
			data(d, &a->strings[k]);
		return OM_OK;
	case OM_ATTR_TENSORS:
		number(d, (int64_t)a->n_tensors);
		for (size_t k = 0; k < a->n_tensors; k++)
			OM_TRY(tensor(d, a->tensors[k]));
		return OM_OK;
	case OM_ATTR_SPARSES:
		number(d, (int64_t)a->n_sparse_tensors);
		for (size_t k = 0; k < a->n_sparse_tensors; k++)
			OM_TRY(sparse(d, a->sparse_tensors[k]));
		return OM_OK;
	case OM_ATTR_TYPES:
		number(d, (int64_t)a->n_type_protos);
		for (size_t k = 0; k < a->n_type_protos; k++)
			type(d, a->type_protos[k]);
		return OM_OK;
	case OM_ATTR_GRAPHS:
		number(d, (int64_t)a->n_graphs);
		for (size_t k = 0; k < a->n_graphs; k++)
			OM_TRY(graph(d, a->graphs[k]));
		return OM_OK;
	}
	return OM_OK;
}

static om_status
attributes(struct digest *d, size_t n, Onnx__AttributeProto *const *attr)
{
	struct named *all = named_new(d, n);

	for (size_t k = 0; k < n; k++)
		all[k] = (struct named){.name = om_text(attr[k]->name), .thing = attr[k]};
	sort(all, n);
	number(d, (int64_t)n);
	for (size_t k = 0; k < n; k++) {
		const Onnx__AttributeProto *a = all[k].thing;
		const om_attr_kind kind = om_attr_kind_read(a);
		text(d, a->name);
		number(d, kind);
		if (*om_text(a->ref_attr_name)) {
			text(d, "ref");
			text(d, a->ref_attr_name);
		} else {
			text(d, "value");
			OM_TRY(value(d, a, kind));
		}
	}
	return OM_OK;
}

static const char *
function_key(struct digest *d, const char *domain, const char *name, const char *overload)
{
	return om_printf(d->mem, "%s\n%s\n%s", om_domain(domain), om_text(name), om_text(overload));
}

static void
note_call(struct digest *d, const Onnx__NodeProto *n)
{
	if (!d->functions.n)
		return;
	const char *key = function_key(d, n->domain, n->op_type, n->overload);
	const Onnx__FunctionProto *f = om_map_get(&d->functions, key);
	if (!f || om_map_get(&d->used, key))
		return;
	om_map_set(&d->used, key, (void *)f);
	OM_PUSH(d->mem, d->use, d->nuse, d->capuse, f);
}

static om_status
nodes(struct digest *d, size_t n, Onnx__NodeProto *const *node)
{
	number(d, (int64_t)n);
	for (size_t k = 0; k < n; k++) {
		note_call(d, node[k]);
		text(d, om_domain(node[k]->domain));
		text(d, node[k]->op_type);
		text(d, node[k]->overload);
		texts(d, node[k]->n_input, node[k]->input);
		texts(d, node[k]->n_output, node[k]->output);
		OM_TRY(attributes(d, node[k]->n_attribute, node[k]->attribute));
	}
	return OM_OK;
}

/* ---- Graphs, functions, the model. ---- */

static om_status
initializers(struct digest *d, const Onnx__GraphProto *g)
{
	struct named *all = named_new(d, g->n_initializer);

	for (size_t k = 0; k < g->n_initializer; k++)
		all[k] = (struct named){.name = om_text(g->initializer[k]->name), .thing = g->initializer[k]};
	sort(all, g->n_initializer);
	number(d, (int64_t)g->n_initializer);
	for (size_t k = 0; k < g->n_initializer; k++) {
		text(d, all[k].name);
		OM_TRY(tensor(d, all[k].thing));
	}
	return OM_OK;
}

static om_status
sparse_initializers(struct digest *d, const Onnx__GraphProto *g)
{
	struct named *all = named_new(d, g->n_sparse_initializer);

	for (size_t k = 0; k < g->n_sparse_initializer; k++) {
		const Onnx__SparseTensorProto *t = g->sparse_initializer[k];
		all[k] = (struct named){.name = t->values ? om_text(t->values->name) : "", .thing = t};
	}
	sort(all, g->n_sparse_initializer);
	number(d, (int64_t)g->n_sparse_initializer);
	for (size_t k = 0; k < g->n_sparse_initializer; k++) {
		text(d, all[k].name);
		OM_TRY(sparse(d, all[k].thing));
	}
	return OM_OK;
}

static om_status
graph(struct digest *d, const Onnx__GraphProto *g)
{
	if (!g) {
		text(d, "none");
		return OM_OK;
	}
	text(d, "graph");
	infos(d, g->n_input, g->input);
	OM_TRY(initializers(d, g));
	OM_TRY(nodes(d, g->n_node, g->node));
	infos(d, g->n_output, g->output);
	return sparse_initializers(d, g);
}

static void
opsets(struct digest *d, size_t n, Onnx__OperatorSetIdProto *const *set)
{
	struct named *all = named_new(d, n);

	for (size_t k = 0; k < n; k++)
		all[k] = (struct named){.name = om_domain(set[k]->domain), .thing = set[k]};
	sort(all, n);
	number(d, (int64_t)n);
	for (size_t k = 0; k < n; k++) {
		text(d, all[k].name);
		number(d, ((const Onnx__OperatorSetIdProto *)all[k].thing)->version);
	}
}

static om_status
function(struct digest *d, const Onnx__FunctionProto *f)
{
	text(d, "function");
	text(d, om_domain(f->domain));
	text(d, f->name);
	text(d, f->overload);
	opsets(d, f->n_opset_import, f->opset_import);
	texts(d, f->n_input, f->input);
	texts(d, f->n_output, f->output);
	texts(d, f->n_attribute, f->attribute);
	OM_TRY(attributes(d, f->n_attribute_proto, f->attribute_proto));
	return nodes(d, f->n_node, f->node);
}

/* Functions that are called, directly or by other functions. */
static om_status
functions(struct digest *d)
{
	struct digest look = *d;
	om_arena *mem = om_arena_new();
	om_status st = OM_OK;

	look.hash = om_sha256_new(mem);  /* discarded: this walk only collects calls */
	for (size_t k = 0; k < look.nuse && st == OM_OK; k++)
		st = nodes(&look, look.use[k]->n_node, look.use[k]->node);
	om_arena_free(mem);
	OM_TRY(st);
	struct named *all = named_new(d, look.nuse);
	for (size_t k = 0; k < look.nuse; k++) {
		const Onnx__FunctionProto *f = look.use[k];
		all[k] = (struct named){.name = function_key(d, f->domain, f->name, f->overload), .thing = f};
	}
	sort(all, look.nuse);
	number(d, (int64_t)look.nuse);
	d->functions = (om_map){0};
	for (size_t k = 0; k < look.nuse; k++)
		OM_TRY(function(d, all[k].thing));
	return OM_OK;
}

static om_status
model(struct digest *d)
{
	const Onnx__ModelProto *m = d->m->proto;

	for (size_t k = 0; k < m->n_functions; k++) {
		const Onnx__FunctionProto *f = m->functions[k];
		om_map_set(&d->functions, function_key(d, f->domain, f->name, f->overload), (void *)f);
	}
	text(d, d->full ? "canon1+weights" : "canon1");
	opsets(d, m->n_opset_import, m->opset_import);
	OM_TRY(graph(d, m->graph));
	return functions(d);
}

static om_status
model_digest_guarded(om_session *s, const om_model *m, bool full, char hex[80])
{
	static const char head[] = "canon1:sha256:";
	struct digest d = {.s = s, .m = (om_model *)m, .mem = om_arena_new(), .full = full};

	d.hash = om_sha256_new(d.mem);
	d.functions = om_map_new(d.mem);
	d.used = om_map_new(d.mem);
	const om_status st = model(&d);
	memcpy(hex, head, sizeof head);
	flush(&d);
	om_sha256_end(d.hash, hex + sizeof head - 1);
	om_arena_free(d.mem);
	return st;
}

om_status
om_model_digest(om_session *s, const om_model *m, bool full, char hex[80])
{
	OM_GUARDED(s, model_digest_guarded(s, m, full, hex));
}
