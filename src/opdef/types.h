/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of element types, for loops that are instantiated for each of them: name of the type, C type of
 * an element, and C type to compute in: the same, or for integers an unsigned type, which wraps around. */
#ifndef OM_TYPES_H
#define OM_TYPES_H

#include "onnxmem/tensor.h"

#define ON_OTHER_FLOATS(_, ...)                        \
	_(FLOAT64, double, double, __VA_ARGS__)
#define ON_FLOATS(_, ...)                              \
	_(FLOAT32, float, float, __VA_ARGS__)          \
	ON_OTHER_FLOATS(_, __VA_ARGS__)
#define ON_SIGNED(_, ...)                              \
	_(INT8, int8_t, uint32_t, __VA_ARGS__)         \
	_(INT16, int16_t, uint32_t, __VA_ARGS__)       \
	_(INT32, int32_t, uint32_t, __VA_ARGS__)       \
	_(INT64, int64_t, uint64_t, __VA_ARGS__)
#define ON_UNSIGNED(_, ...)                            \
	_(UINT8, uint8_t, uint32_t, __VA_ARGS__)       \
	_(UINT16, uint16_t, uint32_t, __VA_ARGS__)     \
	_(UINT32, uint32_t, uint32_t, __VA_ARGS__)     \
	_(UINT64, uint64_t, uint64_t, __VA_ARGS__)
#define ON_TRUTHS(_, ...)                              \
	_(BOOL, uint8_t, uint32_t, __VA_ARGS__)
#define ON_INTEGERS(_, ...)       ON_SIGNED(_, __VA_ARGS__) ON_UNSIGNED(_, __VA_ARGS__)
#define ON_SIGNED_NUMBERS(_, ...) ON_FLOATS(_, __VA_ARGS__) ON_SIGNED(_, __VA_ARGS__)
#define ON_NUMBERS(_, ...)        ON_FLOATS(_, __VA_ARGS__) ON_INTEGERS(_, __VA_ARGS__)
#define ON_OTHER_NUMBERS(_, ...)  ON_OTHER_FLOATS(_, __VA_ARGS__) ON_INTEGERS(_, __VA_ARGS__)

/* Properties of types and elements for use in such loops. */
#define IS_FLOAT(T)    ((T)0.5 != 0)
#define IS_SIGNED(T)   ((T)-1 < (T)1)
#define IS_NAN(x)      ((x) != (x))

/* Sets of element types, for om_opdef.input_types. */
#define OF(type)            OM_TYPES(OM_##type)
#define LIKE(k)             OM_SAME_AS(k)
#define OF_WIDE_FLOATS      (OF(FLOAT32) | OF(FLOAT64))
#define OF_FLOATS           (OF_WIDE_FLOATS | OF(FLOAT16) | OF(BFLOAT16))
#define OF_SIGNED           (OF(INT8) | OF(INT16) | OF(INT32) | OF(INT64))
#define OF_UNSIGNED         (OF(UINT8) | OF(UINT16) | OF(UINT32) | OF(UINT64))
#define OF_INTEGERS         (OF_SIGNED | OF_UNSIGNED)
#define OF_NUMBERS          (OF_FLOATS | OF_INTEGERS)
#define OF_SIGNED_NUMBERS   (OF_FLOATS | OF_SIGNED)
#define OF_TRUTHS           OF(BOOL)
#define OF_INDICES          (OF(INT32) | OF(INT64))
#define OF_BYTES            (OF(INT8) | OF(UINT8))
#define OF_WIDE             (OF_FLOATS | OF_INDICES | OF(UINT32) | OF(UINT64))
#define OF_COMPLEX          (OF(COMPLEX64) | OF(COMPLEX128))
#define OF_COMMON           (OF_NUMBERS | OF_COMPLEX | OF(BOOL) | OF(STRING))
#define OF_FLOAT8S          (OF(FLOAT8E4M3FN) | OF(FLOAT8E4M3FNUZ) | OF(FLOAT8E5M2) | OF(FLOAT8E5M2FNUZ))
#define OF_FLOAT6S          (OF(FLOAT6E2M3) | OF(FLOAT6E3M2))
#define OF_PACKED           (OF(INT4) | OF(UINT4) | OF(INT2) | OF(UINT2) | OF(FLOAT4E2M1))
#define OF_ANY              (OF_COMMON | OF_FLOAT8S | OF(FLOAT8E8M0) | OF_PACKED)

#endif
