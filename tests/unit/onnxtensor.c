/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of every type, from messages and to messages. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "onnxmodel.h"
#include "unit.h"
#include "base/shape.h"
#include "onnx/value_files.h"

static const om_dtype all_types[] = {
#define TYPE(name, code, bits, text) OM_##name,
	OM_DTYPE_LIST(TYPE)
#undef TYPE
};

enum { NTYPE = sizeof all_types / sizeof all_types[0], COUNT = 5 };

static uint64_t
bytes_of(om_dtype t)
{
	uint64_t bytes = 0;
	om_dtype_bytes(t, COUNT, &bytes);
	return bytes;
}

/* Bytes that differ from each other, the highest as well. */
static void
fill(unsigned char *p, size_t n)
{
	for (size_t k = 0; k < n; k++)
		p[k] = (unsigned char)(0x11 + 0x35 * k);
}

/* Their raw data is packed, so it is read into memory of its own. */
static bool
is_six(om_dtype t)
{
	return t == OM_FLOAT6E2M3 || t == OM_FLOAT6E3M2;
}

static void
raw_data_is_referred_to(void)
{
	unsigned char data[COUNT * 16];

	fill(data, sizeof data);
	for (size_t k = 1; k < NTYPE; k++) {
		struct made b = made_new(8, 17);
		Onnx__TensorProto *t = made_tensor(&b, "t", all_types[k], 1, (int64_t[]){COUNT});
		om_tensor out;
		if (all_types[k] == OM_STRING || is_six(all_types[k])) {
			made_free(&b);
			continue;
		}
		t->has_raw_data = true;
		t->raw_data.len = bytes_of(all_types[k]);
		t->raw_data.data = om_memdup(b.mem, data, sizeof data);
		CU_ASSERT_EQUAL(om_tensor_read(b.s, NULL, b.mem, t, &out), OM_OK);
		CU_ASSERT_EQUAL(out.type, all_types[k]);
		CU_ASSERT_PTR_EQUAL(out.data, t->raw_data.data);
		t->raw_data.len++;
		CU_ASSERT_EQUAL(om_tensor_read(b.s, NULL, b.mem, t, &out), OM_INVALID);
		CU_ASSERT(made_says(&b, "tensor t"));
		t->raw_data.len -= 2;
		CU_ASSERT_EQUAL(om_tensor_read(b.s, NULL, b.mem, t, &out), OM_INVALID);
		made_free(&b);
	}
}

/* Four in three bytes, the first one lowest; the bytes are those of the onnx package. */
static void
floats_of_six_bits_are_packed(void)
{
	static const unsigned char data[] = {3, 52, 49, 15, 12, 16, 18}, raw[] = {0x03, 0x1d, 0x3f, 0x0c, 0x24, 0x01};
	struct made b = made_new(8, 17);
	Onnx__TensorProto *t = made_tensor(&b, "t", OM_FLOAT6E3M2, 1, (int64_t[]){sizeof data}), *to;
	om_tensor out;

	t->has_raw_data = true;
	t->raw_data = (ProtobufCBinaryData){sizeof raw, om_memdup(b.mem, raw, sizeof raw)};
	CU_ASSERT_EQUAL_FATAL(om_tensor_read(b.s, NULL, b.mem, t, &out), OM_OK);
	CU_ASSERT_EQUAL(memcmp(out.data, data, sizeof data), 0);
	CU_ASSERT_EQUAL_FATAL(om_tensor_write(b.s, b.mem, "t", &out, &to), OM_OK);
	CU_ASSERT_EQUAL_FATAL(to->raw_data.len, sizeof raw);
	CU_ASSERT_EQUAL(memcmp(to->raw_data.data, raw, sizeof raw), 0);
	t->raw_data.len = sizeof data;
	CU_ASSERT_EQUAL(om_tensor_read(b.s, NULL, b.mem, t, &out), OM_INVALID);
	made_free(&b);
}

/* The elements `data` of type `t` put into the field that ONNX has for it. */
static void
put_typed(struct made *b, Onnx__TensorProto *t, const unsigned char *data)
{
	const unsigned bits = om_dtype_bits((om_dtype)t->data_type);
	const size_t bytes = bytes_of((om_dtype)t->data_type), size = bits < 8 ? 1 : bits / 8;

	switch ((om_dtype)t->data_type) {
	case OM_FLOAT32: case OM_COMPLEX64:
		t->n_float_data = bytes / sizeof(float);
		t->float_data = om_memdup(b->mem, data, bytes);
		break;
	case OM_FLOAT64: case OM_COMPLEX128:
		t->n_double_data = bytes / sizeof(double);
		t->double_data = om_memdup(b->mem, data, bytes);
		break;
	case OM_INT64:
		t->n_int64_data = COUNT;
		t->int64_data = om_memdup(b->mem, data, bytes);
		break;
	case OM_UINT32: case OM_UINT64:
		t->n_uint64_data = COUNT;
		t->uint64_data = OM_NEWN(b->mem, uint64_t, COUNT);
		for (size_t k = 0; k < COUNT; k++)
			memcpy(&t->uint64_data[k], data + k * size, size);
		break;
	default:
		t->n_int32_data = bytes / size;
		t->int32_data = OM_NEWN(b->mem, int32_t, bytes);
		for (size_t k = 0; k < t->n_int32_data; k++) {
			int32_t v = t->data_type == OM_INT8 || t->data_type == OM_INT16 ? -1 : 0;
			memcpy(&v, data + k * size, size);
			t->int32_data[k] = v;
		}
	}
}

static void
typed_fields_are_read(void)
{
	unsigned char data[COUNT * 16];

	fill(data, sizeof data);
	for (size_t k = 1; k < NTYPE; k++) {
		struct made b = made_new(8, 17);
		Onnx__TensorProto *t = made_tensor(&b, "t", all_types[k], 2, (int64_t[]){1, COUNT});
		om_tensor out;
		if (all_types[k] != OM_STRING) {
			CU_ASSERT_EQUAL(om_tensor_read(b.s, NULL, b.mem, t, &out), OM_INVALID);
			put_typed(&b, t, data);
			CU_ASSERT_EQUAL_FATAL(om_tensor_read(b.s, NULL, b.mem, t, &out), OM_OK);
			CU_ASSERT_EQUAL(memcmp(out.data, data, bytes_of(all_types[k])), 0);
		}
		made_free(&b);
	}
}

/* Saved to a file and loaded again. */
static void
files_hold_every_type(void)
{
	char path[] = "unit-tensor-XXXXXX";
	unsigned char data[COUNT * 16];
	static const om_string words[COUNT] = {{"a", 1}, {"", 0}, {"b\0c", 3}, {"dd", 2}, {"e", 1}};

	close(mkstemp(path));
	fill(data, sizeof data);
	for (size_t k = 1; k < NTYPE; k++) {
		om_session *s = om_session_new();
		om_arena *mem = om_arena_new();
		const bool text = all_types[k] == OM_STRING;
		const om_tensor t = {.type = all_types[k], .shape = om_shape_of(1, (int64_t[]){COUNT}),
			.data = text ? (void *)words : data};
		om_tensor back;
		for (size_t i = 0; is_six(t.type) && i < sizeof data; i++)
			data[i] &= 63;
		CU_ASSERT_EQUAL(om_tensor_save_pb(s, path, "t", &t), OM_OK);
		CU_ASSERT_EQUAL_FATAL(om_tensor_load_pb(s, path, mem, &back), OM_OK);
		CU_ASSERT_EQUAL(back.type, t.type);
		CU_ASSERT(om_shape_equal(&back.shape, &t.shape));
		if (text) {
			const om_string *w = back.data;
			CU_ASSERT(w[2].size == 3 && memcmp(w[2].data, "b\0c", 3) == 0 && w[1].size == 0);
		} else {
			CU_ASSERT_EQUAL(memcmp(back.data, data, bytes_of(t.type)), 0);
		}
		om_arena_free(mem);
		om_session_free(s);
	}
	unlink(path);
}

static void
repeated_elements_are_written_out(void)
{
	char path[] = "unit-tensor-XXXXXX";
	float one = 1.5f;
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){3, 2}), .data = &one, .splat = true};
	om_tensor back;

	close(mkstemp(path));
	CU_ASSERT_EQUAL(om_tensor_save_pb(s, path, "t", &t), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_tensor_load_pb(s, path, mem, &back), OM_OK);
	CU_ASSERT_FALSE(back.splat);
	for (int k = 0; k < 6; k++)
		CU_ASSERT_EQUAL(((float *)back.data)[k], 1.5f);
	t.shape = om_shape_of(2, (int64_t[]){1 << 20, 1 << 20});
	CU_ASSERT_EQUAL(om_tensor_save_pb(s, path, "t", &t), OM_MEMORY);
	unlink(path);
	om_arena_free(mem);
	om_session_free(s);
}

static void
repeated_packed_elements_are_written_out(void)
{
	static const struct {
		om_dtype type;
		uint8_t one, all[5];      /* of nine elements in memory; none after the last */
		size_t bytes;
	} t[] = {
		{OM_INT4, 0xd, {0xdd, 0xdd, 0xdd, 0xdd, 0x0d}, 5},
		{OM_UINT4, 0xf7, {0x77, 0x77, 0x77, 0x77, 0x07}, 5},
		{OM_FLOAT4E2M1, 0x5, {0x55, 0x55, 0x55, 0x55, 0x05}, 5},
		{OM_UINT2, 0x2, {0xaa, 0xaa, 0x02}, 3},
		{OM_INT2, 0x3, {0xff, 0xff, 0x03}, 3},
	};
	char path[] = "unit-tensor-XXXXXX";
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();

	close(mkstemp(path));
	for (size_t k = 0; k < sizeof t / sizeof t[0]; k++) {
		uint8_t one = t[k].one;
		const om_tensor from = {.type = t[k].type, .shape = om_shape_of(2, (int64_t[]){3, 3}), .data = &one, .splat = true};
		om_tensor back;
		CU_ASSERT_EQUAL(om_tensor_save_pb(s, path, "t", &from), OM_OK);
		CU_ASSERT_EQUAL_FATAL(om_tensor_load_pb(s, path, mem, &back), OM_OK);
		CU_ASSERT_EQUAL(back.type, t[k].type);
		CU_ASSERT_EQUAL(memcmp(back.data, t[k].all, t[k].bytes), 0);
	}
	unlink(path);
	om_arena_free(mem);
	om_session_free(s);
}

static void
repeated_floats_of_six_bits_are_written_out(void)
{
	char path[] = "unit-tensor-XXXXXX";
	uint8_t one = 0x2b;
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_tensor t = {.type = OM_FLOAT6E3M2, .shape = om_shape_of(1, (int64_t[]){7}), .data = &one, .splat = true}, back;

	close(mkstemp(path));
	CU_ASSERT_EQUAL(om_tensor_save_pb(s, path, "t", &t), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_tensor_load_pb(s, path, mem, &back), OM_OK);
	for (int k = 0; k < 7; k++)
		CU_ASSERT_EQUAL(((uint8_t *)back.data)[k], 0x2b);
	unlink(path);
	om_arena_free(mem);
	om_session_free(s);
}

static om_status
read_dims(int type, int rank, const int64_t *dims)
{
	struct made b = made_new(8, 17);
	om_tensor out;
	const om_status st = om_tensor_read(b.s, NULL, b.mem, made_tensor(&b, "t", type, rank, dims), &out);

	CU_ASSERT(st == OM_OK || made_says(&b, "tensor t"));
	made_free(&b);
	return st;
}

static void
absurd_dims_are_refused(void)
{
	CU_ASSERT_EQUAL(read_dims(OM_FLOAT32, 1, (int64_t[]){-1}), OM_INVALID);
	CU_ASSERT_EQUAL(read_dims(OM_FLOAT32, 1, (int64_t[]){INT64_MAX}), OM_INVALID);
	CU_ASSERT_EQUAL(read_dims(OM_INT8, 1, (int64_t[]){INT64_MAX}), OM_INVALID);
	CU_ASSERT_EQUAL(read_dims(OM_FLOAT32, 2, (int64_t[]){INT64_C(1) << 32, INT64_C(1) << 32}), OM_INVALID);
	CU_ASSERT_EQUAL(read_dims(OM_FLOAT32, 3, (int64_t[]){INT64_C(1) << 32, 0, INT64_C(1) << 32}), OM_INVALID);
	CU_ASSERT_EQUAL(read_dims(OM_FLOAT32, 3, (int64_t[]){INT64_C(1) << 16, 0, INT64_C(1) << 16}), OM_OK);
	CU_ASSERT_EQUAL(read_dims(OM_FLOAT32, 13, (int64_t[13]){0}), OM_UNSUPPORTED);
	CU_ASSERT_EQUAL(read_dims(0, 1, (int64_t[]){1}), OM_INVALID);
	CU_ASSERT_EQUAL(read_dims(99, 1, (int64_t[]){1}), OM_UNSUPPORTED);
	CU_ASSERT_EQUAL(read_dims(-5, 1, (int64_t[]){1}), OM_UNSUPPORTED);
}

/* Values 1.5 and 2.5 in a tensor of dims 2x3, at places given in both ways; there is no room for two of them. */
static om_status
read_sparse(int rank, const int64_t *at, size_t nat, const int64_t *dims, float *out)
{
	struct made b = made_new(11, 17);
	Onnx__SparseTensorProto sparse = ONNX__SPARSE_TENSOR_PROTO__INIT;
	uint64_t left = 30;
	om_tensor t = {0};

	sparse.values = made_tensor(&b, "t", OM_FLOAT32, 1, (int64_t[]){2});
	sparse.values->n_float_data = 2;
	sparse.values->float_data = (float[]){1.5f, 2.5f};
	sparse.indices = made_tensor(&b, "", OM_INT64, rank, (int64_t[]){2, 2});
	sparse.indices->n_int64_data = nat;
	sparse.indices->int64_data = (int64_t *)at;
	sparse.n_dims = 2;
	sparse.dims = (int64_t *)dims;
	const om_status st = om_sparse_read(b.s, NULL, b.mem, &left, &sparse, &t);
	if (st == OM_OK) {
		memcpy(out, t.data, 6 * sizeof *out);
		CU_ASSERT_EQUAL(left, 6);
		CU_ASSERT_EQUAL(om_sparse_read(b.s, NULL, b.mem, &left, &sparse, &t), OM_MEMORY);
	}
	made_free(&b);
	return st;
}

static void
sparse_tensors_become_dense(void)
{
	static const int64_t dims[] = {2, 3};
	static const float want[] = {0, 1.5f, 0, 0, 0, 2.5f};
	float got[6];

	CU_ASSERT_EQUAL(read_sparse(1, (int64_t[]){1, 5}, 2, dims, got), OM_OK);
	CU_ASSERT_EQUAL(memcmp(got, want, sizeof want), 0);
	CU_ASSERT_EQUAL(read_sparse(2, (int64_t[]){0, 1, 1, 2}, 4, dims, got), OM_OK);
	CU_ASSERT_EQUAL(memcmp(got, want, sizeof want), 0);
	CU_ASSERT_EQUAL(read_sparse(1, (int64_t[]){1, 6}, 2, dims, got), OM_INVALID);
	CU_ASSERT_EQUAL(read_sparse(1, (int64_t[]){-1, 5}, 2, dims, got), OM_INVALID);
	CU_ASSERT_EQUAL(read_sparse(2, (int64_t[]){0, 3, 1, 2}, 4, dims, got), OM_INVALID);
	CU_ASSERT_EQUAL(read_sparse(1, (int64_t[]){1, 5}, 2, (int64_t[]){1 << 30, 1 << 30}, got), OM_MEMORY);
}

static CU_TestInfo onnxtensor_tests[] = {
	{"raw data of every type is referred to, and its length checked", raw_data_is_referred_to},
	{"floats of six bits are packed", floats_of_six_bits_are_packed},
	{"typed fields of every type are read", typed_fields_are_read},
	{"files hold every type", files_hold_every_type},
	{"repeated elements are written out, as far as they fit", repeated_elements_are_written_out},
	{"repeated packed elements are written out, with nothing after the last", repeated_packed_elements_are_written_out},
	{"repeated floats of six bits are written out", repeated_floats_of_six_bits_are_written_out},
	{"absurd dims are refused", absurd_dims_are_refused},
	{"sparse tensors become dense", sparse_tensors_become_dense},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("tensors in files", onnxtensor_tests);
