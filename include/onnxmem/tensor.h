/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, shapes, tensors. */
#ifndef OM_TENSOR_H
#define OM_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnxmem/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name, ONNX code, bits per element, text.  Strings have no fixed size: their elements are om_string. */
#define OM_DTYPE_LIST(_)                              \
	_(UNDEFINED,       0,   0, "undefined")       \
	_(FLOAT32,         1,  32, "float32")         \
	_(UINT8,           2,   8, "uint8")           \
	_(INT8,            3,   8, "int8")            \
	_(UINT16,          4,  16, "uint16")          \
	_(INT16,           5,  16, "int16")           \
	_(INT32,           6,  32, "int32")           \
	_(INT64,           7,  64, "int64")           \
	_(STRING,          8, 128, "string")          \
	_(BOOL,            9,   8, "bool")            \
	_(FLOAT16,        10,  16, "float16")         \
	_(FLOAT64,        11,  64, "float64")         \
	_(UINT32,         12,  32, "uint32")          \
	_(UINT64,         13,  64, "uint64")          \
	_(COMPLEX64,      14,  64, "complex64")       \
	_(COMPLEX128,     15, 128, "complex128")      \
	_(BFLOAT16,       16,  16, "bfloat16")        \
	_(FLOAT8E4M3FN,   17,   8, "float8e4m3fn")    \
	_(FLOAT8E4M3FNUZ, 18,   8, "float8e4m3fnuz")  \
	_(FLOAT8E5M2,     19,   8, "float8e5m2")      \
	_(FLOAT8E5M2FNUZ, 20,   8, "float8e5m2fnuz")  \
	_(UINT4,          21,   4, "uint4")           \
	_(INT4,           22,   4, "int4")            \
	_(FLOAT4E2M1,     23,   4, "float4e2m1")      \
	_(FLOAT8E8M0,     24,   8, "float8e8m0")      \
	_(UINT2,          25,   2, "uint2")           \
	_(INT2,           26,   2, "int2")            \
	_(FLOAT6E2M3,     27,   8, "float6e2m3")      \
	_(FLOAT6E3M2,     28,   8, "float6e3m2")

/* Element types, with the codes of ONNX. */
typedef enum om_dtype {
/* A constant of om_dtype. */
#define OM_DTYPE_ENUM(name, code, bits, text) OM_##name = code,
	OM_DTYPE_LIST(OM_DTYPE_ENUM)
#undef OM_DTYPE_ENUM
	OM_NDTYPE
} om_dtype;

/* One element of a string tensor; not terminated by a NUL. */
typedef struct om_string {
	const char *data;   /* `size` bytes; not owned */
	size_t size;        /* bytes */
} om_string;

OM_API unsigned om_dtype_bits(om_dtype t);         /* 0 for an unknown type */
OM_API const char *om_dtype_text(om_dtype t);      /* "float32" */

enum {
	OM_MAX_RANK = 12,
	OM_DIM_UNKNOWN = -1,
	OM_RANK_UNKNOWN = -1,
};

/* A dim is a number, or OM_DIM_UNKNOWN with or without a symbol.  Equal symbols have equal values
 * everywhere in a program. */
typedef struct om_shape {
	int rank;  /* or OM_RANK_UNKNOWN */
	int64_t dim[OM_MAX_RANK];   /* sizes along the axes, or OM_DIM_UNKNOWN */
	const char *sym[OM_MAX_RANK]; /* symbols of unknown dims; NULL: none */
} om_shape;

OM_API bool om_shape_is_known(const om_shape *s);  /* rank and every dim */
OM_API bool om_shape_equal(const om_shape *a, const om_shape *b);  /* symbols included */
/* A shape with the given dims. */
OM_API om_shape om_shape_of(int rank, const int64_t *dims);

/* Product of the dims of a known shape; does not overflow for one that passed om_tensor_bytes(). */
OM_API int64_t om_shape_count(const om_shape *s);

/* "[1,3,N,?]", "[?..]" for an unknown rank; written to `out`, truncated to `size`. */
OM_API const char *om_shape_text(const om_shape *s, char *out, size_t size);

/* A tensor, or what is known about one: an unknown shape, no data.  Sub-byte
 * elements are packed, the first element in the low bits. */
typedef struct om_tensor {
	void *data;   /* row major; NULL: unknown, or an absent optional input */
	om_dtype type; /* of the elements */
	bool splat;   /* data holds a single element, the value of all */
	om_shape shape; /* outermost axis first */
} om_tensor;

/* A value that is not a tensor: a sequence, an optional, a map.  The tensor that
 * represents such a value has its container as `data`, and the element type of the
 * tensors in it; while planning, also their common shape.  A container is
 * immutable: any number of values may refer to it, and containers may share items. */
typedef struct om_container {
	size_t n;                /* items; an optional has one or none */
	const om_tensor *item;   /* tensors with data, or representing containers */
	om_tensor key, value;    /* of a map, in place of items: lists of `n` elements */
	struct om_items *room;   /* memory that it shares with others, managed by its creator */
} om_container;

/* Bytes of a tensor of known shape; false for an unknown shape, and where the product of the dims other than 0 overflows,
 * so that strides do not. */
OM_API bool om_tensor_bytes(om_dtype t, const om_shape *s, uint64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
