/* Reads the few tables of a TensorFlow Lite model that tell the lifetimes, sizes and offsets of its tensors.
 *
 * The file is a FlatBuffer: a table begins with the distance back to its vtable, which has the size of itself and of the
 * table in 16 bits each, then the offset in the table of each field, 0 where it is left out.  A field that is a vector, text or
 * table has 32 bits: the distance from there to it.  A vector begins with its length.  All numbers are little-endian.
 * Tables and vectors may be shared, so a small file could be long to read: what is read of vectors is counted. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "cli/tflite.h"
#include "onnxmem/tensor.h"

/* Fields, by their numbers in the schema. */
enum {
	MODEL_SUBGRAPHS = 2, MODEL_BUFFERS = 4, MODEL_METADATA = 6,
	SUBGRAPH_TENSORS = 0, SUBGRAPH_INPUTS = 1, SUBGRAPH_OUTPUTS = 2, SUBGRAPH_OPERATORS = 3,
	TENSOR_SHAPE = 0, TENSOR_TYPE = 1, TENSOR_BUFFER = 2, TENSOR_NAME = 3, TENSOR_IS_VARIABLE = 5, TENSOR_SIGNATURE = 7,
	OPERATOR_INPUTS = 1, OPERATOR_OUTPUTS = 2, OPERATOR_INTERMEDIATES = 8,
	BUFFER_DATA = 0, BUFFER_OFFSET = 1,
	METADATA_NAME = 0, METADATA_BUFFER = 1,
};

enum { NEVER = -1 };

struct file {
	om_session *s;
	om_arena *mem;
	const char *path;
	const uint8_t *data;
	size_t size;
	size_t left;             /* elements of vectors that may still be read */
};

struct table {
	size_t at, vtable;
	size_t nfield, bytes;    /* of the vtable; of the table */
};

struct vector {
	size_t at;               /* of the first element */
	uint32_t n;
};

/* A tensor, while its lifetime is found. */
struct tensor {
	struct table t;
	int64_t first, last;     /* ops; NEVER */
	uint64_t bytes;
	int64_t offset;          /* -1: none */
	const char *name;
	bool is_constant;
};

struct graph {
	struct tensor *tensor;
	uint32_t n;
	int64_t nop;
};

/* ---- FlatBuffers. ---- */

static om_status
damaged(const struct file *f, const char *what)
{
	return om_fail(f->s, OM_MALFORMED, "%s: %s is outside of the file, or too large", f->path, what);
}

static bool
has(const struct file *f, size_t at, size_t n)
{
	return at <= f->size && n <= f->size - at;
}

/* `n` bytes, which are in the file, as a number. */
static uint64_t
number(const struct file *f, size_t at, size_t n)
{
	uint64_t v = 0;

	for (size_t k = n; k-- > 0;)
		v = v << 8 | f->data[at + k];
	return v;
}

static om_status
open_table(const struct file *f, size_t at, const char *what, struct table *out)
{
	if (!has(f, at, 4))
		return damaged(f, what);
	const int64_t vtable = (int64_t)at - (int32_t)number(f, at, 4);
	if (vtable < 0 || !has(f, (size_t)vtable, 4))
		return damaged(f, what);
	const size_t size = number(f, (size_t)vtable, 2), bytes = number(f, (size_t)vtable + 2, 2);
	if (size < 4 || !has(f, (size_t)vtable, size) || !has(f, at, bytes))
		return damaged(f, what);
	*out = (struct table){at, (size_t)vtable, (size - 4) / 2, bytes};
	return OM_OK;
}

/* The place of a field with `n` bytes; 0: it is left out. */
static om_status
find_field(const struct file *f, const struct table *t, unsigned field, size_t n, const char *what, size_t *at)
{
	const uint64_t offset = field < t->nfield ? number(f, t->vtable + 4 + 2 * (size_t)field, 2) : 0;

	*at = offset ? t->at + offset : 0;
	return offset && (offset < 4 || offset + n > t->bytes) ? damaged(f, what) : OM_OK;
}

static om_status
get_number(const struct file *f, const struct table *t, unsigned field, size_t n, const char *what, uint64_t *out)
{
	size_t at;

	OM_TRY(find_field(f, t, field, n, what, &at));
	*out = at ? number(f, at, n) : 0;
	return OM_OK;
}

/* A vector of elements of `n` bytes; without elements if the field is left out. */
static om_status
get_vector(const struct file *f, const struct table *t, unsigned field, size_t n, const char *what, struct vector *out)
{
	size_t at;

	*out = (struct vector){0, 0};
	OM_TRY(find_field(f, t, field, 4, what, &at));
	if (!at)
		return OM_OK;
	at += number(f, at, 4);
	if (!has(f, at, 4))
		return damaged(f, what);
	*out = (struct vector){at + 4, (uint32_t)number(f, at, 4)};
	return out->n > (f->size - out->at) / n ? damaged(f, what) : OM_OK;
}

/* As get_vector(), for a vector whose elements are all read. */
static om_status
read_vector(struct file *f, const struct table *t, unsigned field, size_t n, const char *what, struct vector *out)
{
	OM_TRY(get_vector(f, t, field, n, what, out));
	if (out->n > f->left)
		return om_fail(f->s, OM_MALFORMED, "%s: its vectors have more elements than the file has bytes", f->path);
	f->left -= out->n;
	return OM_OK;
}

/* Element `k` of a vector of tables. */
static om_status
table_at(const struct file *f, const struct vector *v, uint32_t k, const char *what, struct table *out)
{
	const size_t at = v->at + 4 * (size_t)k;

	return open_table(f, at + number(f, at, 4), what, out);
}

/* A text ends with a zero. */
static om_status
get_text(struct file *f, const struct table *t, unsigned field, const char *what, const char **out)
{
	struct vector v;

	OM_TRY(read_vector(f, t, field, 1, what, &v));
	*out = "";
	if (v.n == 0)
		return OM_OK;
	if (!has(f, v.at + v.n, 1) || f->data[v.at + v.n])
		return om_fail(f->s, OM_MALFORMED, "%s: %s has no end", f->path, what);
	*out = (const char *)f->data + v.at;
	return OM_OK;
}

/* ---- Tensors. ---- */

static om_status
find_bytes(struct file *f, struct tensor *x)
{
	static const om_dtype types[] = {
		OM_FLOAT32, OM_FLOAT16, OM_INT32, OM_UINT8, OM_INT64, OM_UNDEFINED, OM_BOOL, OM_INT16, OM_COMPLEX64, OM_INT8,
		OM_FLOAT64, OM_COMPLEX128, OM_UINT64, OM_UNDEFINED, OM_UNDEFINED, OM_UINT32, OM_UINT16, OM_INT4, OM_BFLOAT16,
	};
	struct vector shape, signature;
	uint64_t type, count = 1;

	OM_TRY(get_number(f, &x->t, TENSOR_TYPE, 1, "the type of a tensor", &type));
	OM_TRY(read_vector(f, &x->t, TENSOR_SHAPE, 4, "the shape of a tensor", &shape));
	OM_TRY(read_vector(f, &x->t, TENSOR_SIGNATURE, 4, "the shape of a tensor", &signature));
	const unsigned bits = type < sizeof types / sizeof types[0] ? om_dtype_bits(types[type]) : 0;
	bool is_known = bits > 0;
	for (uint32_t k = 0; k < shape.n; k++) {
		const int32_t dim = (int32_t)number(f, shape.at + 4 * (size_t)k, 4);
		is_known = is_known && dim >= 0 && !__builtin_mul_overflow(count, (uint64_t)dim, &count) && count <= INT64_MAX / 128;
	}
	for (uint32_t k = 0; k < signature.n; k++)
		is_known = is_known && (int32_t)number(f, signature.at + 4 * (size_t)k, 4) >= 0;
	if (!is_known)
		return om_fail(f->s, OM_UNSUPPORTED, "%s: the size of tensor %s is not known", f->path, x->name);
	x->bytes = (count * bits + 7) / 8;
	return OM_OK;
}

/* Are the elements of the tensor in the file? */
static om_status
find_constant(const struct file *f, const struct vector *buffers, struct tensor *x)
{
	struct vector data;
	struct table b;
	uint64_t buffer, offset;

	OM_TRY(get_number(f, &x->t, TENSOR_BUFFER, 4, "the buffer of a tensor", &buffer));
	if (buffer >= buffers->n)
		return buffer ? damaged(f, "the buffer of a tensor") : OM_OK;
	OM_TRY(table_at(f, buffers, (uint32_t)buffer, "a buffer", &b));
	OM_TRY(get_vector(f, &b, BUFFER_DATA, 1, "the data of a buffer", &data));
	OM_TRY(get_number(f, &b, BUFFER_OFFSET, 8, "the place of a buffer", &offset));
	x->is_constant = data.n > 0 || offset > 1;
	return OM_OK;
}

static om_status
read_tensor(struct file *f, const struct vector *buffers, const struct graph *g, struct tensor *x)
{
	uint64_t is_variable;

	OM_TRY(get_text(f, &x->t, TENSOR_NAME, "the name of a tensor", &x->name));
	OM_TRY(find_constant(f, buffers, x));
	OM_TRY(get_number(f, &x->t, TENSOR_IS_VARIABLE, 1, "a tensor", &is_variable));
	if (is_variable && g->nop) {
		x->first = 0;
		x->last = g->nop - 1;
	}
	return OM_OK;
}

static void
live_at(struct tensor *x, int64_t op)
{
	if (x->first == NEVER)
		x->first = op;
	x->last = x->last > op ? x->last : op;
}

/* The tensors of a list live when op `op` runs; -1 is an optional one that is left out. */
static om_status
mark(struct file *f, struct graph *g, const struct table *t, unsigned field, int64_t op)
{
	struct vector v;

	OM_TRY(read_vector(f, t, field, 4, "a list of tensors", &v));
	for (uint32_t k = 0; k < v.n; k++) {
		const int32_t n = (int32_t)number(f, v.at + 4 * (size_t)k, 4);
		if (n < -1 || n >= (int64_t)g->n)
			return om_fail(f->s, OM_MALFORMED, "%s: there is no tensor %" PRId32, f->path, n);
		if (n >= 0)
			live_at(&g->tensor[n], op);
	}
	return OM_OK;
}

static om_status
find_lifetimes(struct file *f, struct graph *g, const struct table *subgraph, const struct vector *ops)
{
	struct table op;

	OM_TRY(mark(f, g, subgraph, SUBGRAPH_INPUTS, 0));
	for (uint32_t k = 0; k < ops->n; k++) {
		OM_TRY(table_at(f, ops, k, "an operator", &op));
		OM_TRY(mark(f, g, &op, OPERATOR_INPUTS, k));
		OM_TRY(mark(f, g, &op, OPERATOR_OUTPUTS, k));
		OM_TRY(mark(f, g, &op, OPERATOR_INTERMEDIATES, k));
	}
	return g->nop ? mark(f, g, subgraph, SUBGRAPH_OUTPUTS, g->nop - 1) : OM_OK;
}

/* ---- Offsets. ---- */

static om_status
take_offsets(const struct file *f, const struct vector *data, struct graph *g)
{
	enum { HEAD = 3 };
	const size_t words = data->n / 4;

	if (words < HEAD || number(f, data->at, 4) != 1 || number(f, data->at + 4, 4) != 0 || number(f, data->at + 8, 4) != g->n
	    || words - HEAD < g->n)
		return om_fail(f->s, OM_MALFORMED, "%s: the metadata OfflineMemoryAllocation are not for %" PRIu32 " tensors of subgraph 0, "
			"version 1", f->path, g->n);
	for (uint32_t k = 0; k < g->n; k++)
		g->tensor[k].offset = (int32_t)number(f, data->at + 4 * (size_t)(HEAD + k), 4);
	return OM_OK;
}

static om_status
find_offsets(struct file *f, const struct table *model, const struct vector *buffers, struct graph *g)
{
	struct vector all, data;
	struct table t, b;
	uint64_t buffer;
	const char *name;

	OM_TRY(read_vector(f, model, MODEL_METADATA, 4, "the metadata", &all));
	for (uint32_t k = 0; k < all.n; k++) {
		OM_TRY(table_at(f, &all, k, "an entry of the metadata", &t));
		OM_TRY(get_text(f, &t, METADATA_NAME, "the name of metadata", &name));
		if (strcmp(name, "OfflineMemoryAllocation") != 0)
			continue;
		OM_TRY(get_number(f, &t, METADATA_BUFFER, 4, "the buffer of metadata", &buffer));
		if (buffer >= buffers->n)
			return damaged(f, "the buffer of metadata");
		OM_TRY(table_at(f, buffers, (uint32_t)buffer, "a buffer", &b));
		OM_TRY(get_vector(f, &b, BUFFER_DATA, 1, "the data of a buffer", &data));
		return take_offsets(f, &data, g);
	}
	return OM_OK;
}

/* ---- The table. ---- */

static void
make_table(const struct file *f, const struct graph *g, om_table *out)
{
	static const char *const head[] = {"id", "lower", "upper", "size", "offset", "name"};
	enum { COLUMNS = sizeof head / sizeof head[0] };

	*out = (om_table){.path = f->path, .ncol = COLUMNS, .newline = "\n", .head = om_memdup(f->mem, head, sizeof head),
		.field = OM_NEWN(f->mem, const char *, COLUMNS * (size_t)g->n), .line = OM_NEWN(f->mem, size_t, g->n)};
	for (uint32_t k = 0; k < g->n; k++) {
		const struct tensor *x = &g->tensor[k];
		if (x->is_constant || x->first == NEVER)
			continue;
		const char **row = &out->field[COLUMNS * out->nrow];
		row[0] = om_printf(f->mem, "%" PRIu32, k);
		row[1] = om_printf(f->mem, "%" PRId64, x->first);
		row[2] = om_printf(f->mem, "%" PRId64, x->last + 1);
		row[3] = om_printf(f->mem, "%" PRIu64, x->bytes);
		row[4] = x->offset < 0 ? "" : om_printf(f->mem, "%" PRId64, x->offset);
		row[5] = x->name;
		out->line[out->nrow++] = k;
	}
}

static om_status
read_graph(struct file *f, const struct table *model, const struct table *subgraph, struct graph *g)
{
	struct vector tensors, ops, buffers;

	OM_TRY(get_vector(f, model, MODEL_BUFFERS, 4, "the list of buffers", &buffers));
	OM_TRY(read_vector(f, subgraph, SUBGRAPH_TENSORS, 4, "the list of tensors", &tensors));
	OM_TRY(read_vector(f, subgraph, SUBGRAPH_OPERATORS, 4, "the list of operators", &ops));
	*g = (struct graph){OM_NEWN(f->mem, struct tensor, tensors.n), tensors.n, ops.n};
	for (uint32_t k = 0; k < g->n; k++) {
		g->tensor[k] = (struct tensor){.first = NEVER, .last = NEVER, .offset = -1};
		OM_TRY(table_at(f, &tensors, k, "a tensor", &g->tensor[k].t));
		OM_TRY(read_tensor(f, &buffers, g, &g->tensor[k]));
	}
	OM_TRY(find_lifetimes(f, g, subgraph, &ops));
	for (uint32_t k = 0; k < g->n; k++)
		if (!g->tensor[k].is_constant && g->tensor[k].first != NEVER)
			OM_TRY(find_bytes(f, &g->tensor[k]));
	return find_offsets(f, model, &buffers, g);
}

bool
om_tflite_is(const void *data, size_t size)
{
	return size >= 8 && memcmp((const char *)data + 4, "TFL3", 4) == 0;
}

om_status
om_tflite_table(om_session *s, const char *path, const void *data, size_t size, om_arena *mem, om_table *out)
{
	struct file f = {.s = s, .mem = mem, .path = path, .data = data, .size = size, .left = size};
	struct table model, subgraph;
	struct vector subgraphs;
	struct graph g;

	if (!om_tflite_is(data, size))
		return om_fail(s, OM_MALFORMED, "%s is no TensorFlow Lite model", path);
	OM_TRY(open_table(&f, number(&f, 0, 4), "the model", &model));
	OM_TRY(get_vector(&f, &model, MODEL_SUBGRAPHS, 4, "the list of subgraphs", &subgraphs));
	if (subgraphs.n == 0)
		return om_fail(s, OM_MALFORMED, "%s has no graph", path);
	if (subgraphs.n > 1)
		om_warn(s, "%s has %" PRIu32 " subgraphs: the tensors of the first are read", path, subgraphs.n);
	OM_TRY(table_at(&f, &subgraphs, 0, "a subgraph", &subgraph));
	OM_TRY(read_graph(&f, &model, &subgraph, &g));
	make_table(&f, &g, out);
	return OM_OK;
}
