/* SPDX-License-Identifier: Apache-2.0 */
/* Reads .tflite files, as far as a plan needs them.
 *
 * The file is a FlatBuffer.  A table is at an offset and starts with the distance to its vtable: two uint16 with sizes, then
 * the offset in the table of each field, 0 for a default.  Vectors, strings and tables are referred to by uint32
 * distances from where the reference is.  Every access is checked against the size of the file, and the work is
 * bounded by it, as parts of a file may be referred to many times. */
#include <config.h>

#include <string.h>

#include "base/sizes.h"
#include "report/tflite.h"

enum { MAX_NAME = 4096 };

/* Fields of the schema, version 3. */
enum { MODEL_GRAPHS = 2, MODEL_BUFFERS = 4, MODEL_METADATA = 6 };
enum { GRAPH_TENSORS = 0, GRAPH_INPUTS = 1, GRAPH_OUTPUTS = 2, GRAPH_OPS = 3 };
enum { TENSOR_SHAPE = 0, TENSOR_TYPE = 1, TENSOR_BUFFER = 2, TENSOR_NAME = 3, TENSOR_IS_VARIABLE = 5 };
enum { OP_INPUTS = 1, OP_OUTPUTS = 2 };
enum { BUFFER_DATA = 0, BUFFER_OFFSET = 1 };
enum { METADATA_NAME = 0, METADATA_BUFFER = 1 };

struct reader {
	om_session *s;
	const char *where;
	const uint8_t *data;
	size_t size;
	size_t work;             /* elements that may still be read */
	om_tflite *to;
};

struct vector {
	size_t at;               /* of its first element */
	uint32_t n;              /* 0 if it is absent */
};

static om_status
bad(const struct reader *r, const char *what)
{
	return om_fail(r->s, OM_MALFORMED, "%s: not a .tflite file, or damaged: %s", r->where, what);
}

/* ---- Bytes. ---- */

static om_status
get(const struct reader *r, size_t at, unsigned bytes, uint32_t *v)
{
	*v = 0;
	if (at > r->size || r->size - at < bytes)
		return bad(r, "a reference leads out of the file");
	for (unsigned k = 0; k < bytes; k++)
		*v |= (uint32_t)r->data[at + k] << 8 * k;
	return OM_OK;
}

/* The place that the reference at `at` leads to. */
static om_status
follow(const struct reader *r, size_t at, size_t *to)
{
	uint32_t distance;

	OM_TRY(get(r, at, 4, &distance));
	if (distance == 0 || distance > r->size - at)
		return bad(r, "a reference leads out of the file");
	*to = at + distance;
	return OM_OK;
}

/* Where field `k` of a table is; 0: it is absent. */
static om_status
field(const struct reader *r, size_t table, unsigned k, size_t *at)
{
	uint32_t back, size, offset;

	*at = 0;
	OM_TRY(get(r, table, 4, &back));
	const int64_t vtable = (int64_t)table - (int32_t)back;
	if (vtable < 0 || (uint64_t)vtable >= r->size)
		return bad(r, "the vtable of a table is out of the file");
	OM_TRY(get(r, (size_t)vtable, 2, &size));
	if (4 + 2 * (k + 1) > size)
		return OM_OK;
	OM_TRY(get(r, (size_t)vtable + 4 + 2 * k, 2, &offset));
	*at = offset ? table + offset : 0;
	return OM_OK;
}

/* Field `k`, a vector of elements of so many bytes. */
static om_status
vector(struct reader *r, size_t table, unsigned k, unsigned bytes, struct vector *v)
{
	size_t at;

	*v = (struct vector){0, 0};
	OM_TRY(field(r, table, k, &at));
	if (!at)
		return OM_OK;
	OM_TRY(follow(r, at, &at));
	OM_TRY(get(r, at, 4, &v->n));
	v->at = at + 4;
	if (v->n > (r->size - v->at) / bytes)
		return bad(r, "a vector leads out of the file");
	return OM_OK;
}

/* Elements of `v` are about to be read. */
static om_status
spend(struct reader *r, const struct vector *v)
{
	if (v->n > r->work)
		return bad(r, "its parts refer to others too often");
	r->work -= v->n;
	return OM_OK;
}

static om_status
element(const struct reader *r, const struct vector *v, uint32_t k, size_t *table)
{
	return follow(r, v->at + 4 * (size_t)k, table);
}

/* ---- Tensors. ---- */

/* Bytes of an element of each type; 0: it has none, or less than one. */
static const uint8_t type_bytes[] = {4, 2, 4, 1, 8, 0, 1, 2, 8, 1, 8, 16, 8, 0, 0, 4, 2};

static om_status
read_text(struct reader *r, size_t table, unsigned k, const char **text)
{
	struct vector name;

	*text = "";
	OM_TRY(vector(r, table, k, 1, &name));
	if (name.n == 0)
		return OM_OK;
	OM_TRY(spend(r, &name));
	if (name.n > MAX_NAME || name.at + name.n >= r->size || r->data[name.at + name.n])
		return bad(r, "a name has no end");
	*text = (const char *)r->data + name.at;
	return OM_OK;
}

static om_status
read_number(const struct reader *r, size_t table, unsigned k, unsigned bytes, uint32_t *n)
{
	size_t at;

	*n = 0;
	OM_TRY(field(r, table, k, &at));
	return at ? get(r, at, bytes, n) : OM_OK;
}

static om_status
read_size(struct reader *r, size_t table, om_tflite_tensor *t)
{
	struct vector shape;
	uint32_t type, dim;

	OM_TRY(read_number(r, table, TENSOR_TYPE, 1, &type));
	OM_TRY(vector(r, table, TENSOR_SHAPE, 4, &shape));
	OM_TRY(spend(r, &shape));
	t->bytes = type < sizeof type_bytes ? type_bytes[type] : 0;
	bool is_known = t->bytes > 0;
	for (uint32_t k = 0; k < shape.n; k++) {
		OM_TRY(get(r, shape.at + 4 * (size_t)k, 4, &dim));
		is_known = is_known && dim <= INT32_MAX;
		t->bytes = om_size_product(t->bytes, dim);
	}
	t->bytes = is_known ? t->bytes : UINT64_MAX;
	return OM_OK;
}

/* Elements are in the buffer, or, of large files, after the FlatBuffer. */
static om_status
read_constant(struct reader *r, size_t table, const struct vector *buffers, om_tflite_tensor *t)
{
	struct vector data;
	uint32_t buffer;
	size_t far;

	OM_TRY(read_number(r, table, TENSOR_BUFFER, 4, &buffer));
	if (buffer == 0)
		return OM_OK;
	if (buffer >= buffers->n)
		return bad(r, "a tensor has a buffer that there is not");
	OM_TRY(element(r, buffers, buffer, &table));
	OM_TRY(vector(r, table, BUFFER_DATA, 1, &data));
	OM_TRY(field(r, table, BUFFER_OFFSET, &far));
	t->is_constant = data.n > 0 || far;
	return OM_OK;
}

static om_status
read_tensors(struct reader *r, om_arena *mem, size_t graph, const struct vector *buffers)
{
	struct vector tensors;
	uint32_t is_variable;
	size_t table;

	OM_TRY(vector(r, graph, GRAPH_TENSORS, 4, &tensors));
	OM_TRY(spend(r, &tensors));
	r->to->tensor = OM_NEWN(mem, om_tflite_tensor, tensors.n);
	r->to->ntensor = tensors.n;
	for (uint32_t k = 0; k < tensors.n; k++) {
		OM_TRY(element(r, &tensors, k, &table));
		r->to->tensor[k].offset = -1;
		OM_TRY(read_text(r, table, TENSOR_NAME, &r->to->tensor[k].name));
		OM_TRY(read_number(r, table, TENSOR_IS_VARIABLE, 1, &is_variable));
		r->to->tensor[k].is_variable = is_variable;
		OM_TRY(read_size(r, table, &r->to->tensor[k]));
		OM_TRY(read_constant(r, table, buffers, &r->to->tensor[k]));
	}
	return OM_OK;
}

/* ---- When tensors are in use. ---- */

/* The tensors that field `k` of a table lists are written, or else read, in `step`. */
static om_status
mark(struct reader *r, size_t table, unsigned k, uint32_t step, bool is_written)
{
	struct vector list;
	uint32_t n;

	OM_TRY(vector(r, table, k, 4, &list));
	OM_TRY(spend(r, &list));
	for (uint32_t i = 0; i < list.n; i++) {
		OM_TRY(get(r, list.at + 4 * (size_t)i, 4, &n));
		if (n == UINT32_MAX)  /* an optional input that is left out */
			continue;
		if (n >= r->to->ntensor)
			return bad(r, "an op has a tensor that there is not");
		om_tflite_tensor *t = &r->to->tensor[n];
		if (is_written && !t->is_used)
			t->first = step;
		t->is_used |= is_written;
		t->last = step;
	}
	return OM_OK;
}

static om_status
read_uses(struct reader *r, size_t graph)
{
	struct vector ops;
	size_t table;

	OM_TRY(vector(r, graph, GRAPH_OPS, 4, &ops));
	OM_TRY(spend(r, &ops));
	r->to->nop = ops.n;
	OM_TRY(mark(r, graph, GRAPH_INPUTS, 0, true));
	for (uint32_t k = 0; k < ops.n; k++) {
		OM_TRY(element(r, &ops, k, &table));
		OM_TRY(mark(r, table, OP_INPUTS, k + 1, false));
		OM_TRY(mark(r, table, OP_OUTPUTS, k + 1, true));
	}
	OM_TRY(mark(r, graph, GRAPH_OUTPUTS, ops.n + 1, false));
	for (uint32_t k = 0; k < r->to->ntensor; k++)
		if (r->to->tensor[k].is_variable) {
			r->to->tensor[k].is_used = true;
			r->to->tensor[k].first = 0;
			r->to->tensor[k].last = ops.n + 1;
		}
	return OM_OK;
}

/* ---- The offline plan. ---- */

/* Its words: version 1, graph 0, the number of tensors, an offset each. */
static om_status
take_offsets(struct reader *r, const struct vector *data)
{
	enum { HEAD = 3 };
	const uint32_t want[HEAD] = {1, 0, r->to->ntensor};
	uint32_t word;

	if (data->n / 4 < HEAD || data->n / 4 - HEAD < r->to->ntensor)
		return bad(r, "OfflineMemoryAllocation has too few words");
	for (uint32_t k = 0; k < HEAD; k++) {
		OM_TRY(get(r, data->at + 4 * (size_t)k, 4, &word));
		if (word != want[k])
			return bad(r, "OfflineMemoryAllocation is of another version, or for another graph");
	}
	for (uint32_t k = 0; k < r->to->ntensor; k++) {
		OM_TRY(get(r, data->at + 4 * (size_t)(HEAD + k), 4, &word));
		r->to->tensor[k].offset = (int32_t)word;
	}
	return OM_OK;
}

static om_status
read_offsets(struct reader *r, size_t model, const struct vector *buffers)
{
	struct vector all, data;
	const char *name;
	uint32_t buffer;
	size_t table;

	OM_TRY(vector(r, model, MODEL_METADATA, 4, &all));
	OM_TRY(spend(r, &all));
	for (uint32_t k = 0; k < all.n; k++) {
		OM_TRY(element(r, &all, k, &table));
		OM_TRY(read_text(r, table, METADATA_NAME, &name));
		if (strcmp(name, "OfflineMemoryAllocation") != 0)
			continue;
		OM_TRY(read_number(r, table, METADATA_BUFFER, 4, &buffer));
		if (buffer >= buffers->n)
			return bad(r, "OfflineMemoryAllocation has a buffer that there is not");
		OM_TRY(element(r, buffers, buffer, &table));
		OM_TRY(vector(r, table, BUFFER_DATA, 1, &data));
		return take_offsets(r, &data);
	}
	return OM_OK;
}

bool
om_tflite_is(const void *data, size_t size)
{
	return size >= 8 && memcmp((const char *)data + 4, "TFL3", 4) == 0;
}

om_status
om_tflite_read(om_session *s, om_arena *mem, const char *where, const void *data, size_t size, om_tflite *out)
{
	struct reader r = {.s = s, .where = where, .data = data, .size = size, .work = size, .to = out};
	struct vector graphs, buffers;
	size_t model, graph;

	*out = (om_tflite){0};
	if (size > INT32_MAX || !om_tflite_is(data, size))
		return bad(&r, "it does not have the identifier TFL3, or more than 2 GiB");
	OM_TRY(follow(&r, 0, &model));
	OM_TRY(vector(&r, model, MODEL_GRAPHS, 4, &graphs));
	OM_TRY(vector(&r, model, MODEL_BUFFERS, 4, &buffers));
	if (graphs.n == 0)
		return bad(&r, "it has no graph");
	out->ngraph = graphs.n;
	OM_TRY(element(&r, &graphs, 0, &graph));
	OM_TRY(read_tensors(&r, mem, graph, &buffers));
	OM_TRY(read_uses(&r, graph));
	return read_offsets(&r, model, &buffers);
}
