/* Lists of element types for loops that are written once for all of them:
 * name of the type, C type of an element, and the same, or for integers the
 * unsigned type to compute in, which wraps around. */
#ifndef OM_TYPES_H
#define OM_TYPES_H

#include "onnxmem/tensor.h"

#define ON_FLOATS(_, ...)                              \
	_(FLOAT32, float, float, __VA_ARGS__)          \
	_(FLOAT64, double, double, __VA_ARGS__)
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

#endif
