/* SPDX-License-Identifier: Apache-2.0 */
/* Access to elements of any numeric type.  If the type is a constant at the call, the switches are
 * folded away: EACH_FLOAT() generates such loops.
 */
#ifndef OM_NUMBERS_H
#define OM_NUMBERS_H

#include "base/half.h"
#include "base/saturate.h"
#include "base/sizes.h"
#include "onnxmem/opdef.h"

#define OM_INLINE static inline __attribute__((always_inline))

OM_INLINE double
om_get(om_dtype t, const void *p, int64_t i)
{
	switch (t) {
	case OM_FLOAT32: return ((const float *)p)[i];
	case OM_FLOAT64: return ((const double *)p)[i];
	case OM_FLOAT16: return om_half_to_float(((const uint16_t *)p)[i]);
	case OM_BFLOAT16: return om_bfloat_to_float(((const uint16_t *)p)[i]);
	case OM_INT8: return ((const int8_t *)p)[i];
	case OM_UINT8: return ((const uint8_t *)p)[i];
	default: return 0;
	}
}

OM_INLINE void
om_put(om_dtype t, void *p, int64_t i, double x)
{
	switch (t) {
	case OM_FLOAT32: ((float *)p)[i] = (float)x; break;
	case OM_FLOAT64: ((double *)p)[i] = x; break;
	case OM_FLOAT16: ((uint16_t *)p)[i] = om_float_to_half((float)x); break;
	case OM_BFLOAT16: ((uint16_t *)p)[i] = om_float_to_bfloat((float)x); break;
	case OM_INT8: ((int8_t *)p)[i] = OM_SATURATE(int8_t, x); break;
	case OM_UINT8: ((uint8_t *)p)[i] = OM_SATURATE(uint8_t, x); break;
	default: break;
	}
}

/* Evaluates `call` with T as the constant type; `other` for all other types. */
#define EACH_FLOAT(type, call, other)                                          \
	switch (type) {                                                        \
	case OM_FLOAT32: { const om_dtype T = OM_FLOAT32; call; } break; \
	case OM_FLOAT64: { const om_dtype T = OM_FLOAT64; call; } break; \
	case OM_FLOAT16: { const om_dtype T = OM_FLOAT16; call; } break; \
	case OM_BFLOAT16: { const om_dtype T = OM_BFLOAT16; call; } break; \
	default: other;                                                        \
	}

static inline bool
om_is_half(om_dtype t)
{
	return t == OM_FLOAT16 || t == OM_BFLOAT16;
}

/* Do kernels compute with it in float32? */
static inline bool
om_is_real(om_dtype t)
{
	return t == OM_FLOAT32 || om_is_half(t);
}

static inline void
om_widen(om_dtype t, const void *from, int64_t n, float *to)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = (float)om_get(t, from, i);
}

static inline void
om_narrow(om_dtype t, const float *from, int64_t n, void *to)
{
	for (int64_t i = 0; i < n; i++)
		om_put(t, to, i, from[i]);
}

/* The range of a quantized type; false if `t` is not quantized. */
static inline bool
om_quantized_range(om_dtype t, int32_t *least, int32_t *most)
{
	switch (t) {
	case OM_INT8: *least = -128; *most = 127; return true;
	case OM_UINT8: *least = 0; *most = 255; return true;
	case OM_INT16: *least = -32768; *most = 32767; return true;
	case OM_UINT16: *least = 0; *most = 65535; return true;
	case OM_INT4: *least = -8; *most = 7; return true;
	case OM_UINT4: *least = 0; *most = 15; return true;
	case OM_INT2: *least = -2; *most = 1; return true;
	case OM_UINT2: *least = 0; *most = 3; return true;
	default: return false;
	}
}

/* Round half to even, add the zero point, saturate.  After saturation numbers are below 2^22 and are
 * rounded by adding 1.5 * 2^23; NaN becomes the minimum. */
static inline int32_t
om_quantize_into(float x, int32_t zero, int32_t least, int32_t most)
{
	const float lo = (float)(least - zero), hi = (float)(most - zero);

	x = x > lo ? x : lo;
	x = x < hi ? x : hi;
	return (int32_t)((x + 0x1.8p23f) - 0x1.8p23f) + zero;
}

static inline int32_t
om_quantize(float x, int32_t zero, om_dtype t)
{
	int32_t least = 0, most = 0;

	om_quantized_range(t, &least, &most);
	return om_quantize_into(x, zero, least, most);
}

/* Bytes of a scratch buffer for the tensor's elements as floats. */
static inline uint64_t
om_floats_of(const om_tensor *t)
{
	uint64_t bytes;
	return om_tensor_bytes(OM_FLOAT32, &t->shape, &bytes) ? om_piece_size(bytes) : UINT64_MAX;
}

static inline void
om_copy_dim(om_shape *to, int k, const om_shape *from, int j)
{
	to->dim[k] = from->dim[j];
	to->sym[k] = from->sym[j];
}

/* True unless both dims are known and differ. */
static inline bool
om_dims_agree(int64_t a, int64_t b)
{
	return a < 0 || b < 0 || a == b;
}

/* For `inplace`: no other input is the same value as input `in`. */
static inline bool
om_is_sole_use(const om_op_context *c, uint32_t in)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (k != in && c->op->in[k] == c->op->in[in])
			return false;
	return true;
}

/* Report an error of shapes or attributes. */
static inline om_status
om_wrong(const om_op_context *c, const char *what)
{
	return om_op_fail(c->session, OM_SHAPE, c->op, "%s", what);
}

/* Report an element type without a kernel. */
static inline om_status
om_no_kernel(const om_op_context *c, om_dtype t)
{
	return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for element type %s",
		om_dtype_text(t));
}

/* The same while planning, for a type that is not in `set`; an unknown type is accepted. */
static inline om_status
om_must_be_of(const om_op_context *c, om_dtype t, uint32_t set)
{
	return t == OM_UNDEFINED || set >> t & 1 ? OM_OK : om_no_kernel(c, t);
}

#endif
