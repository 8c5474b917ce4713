/* The kernel language in C: every thread of a block is a fiber (fibers.h); see language.h. */
#ifndef OM_DIALECT_C_H
#define OM_DIALECT_C_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h>

#include "base/half.h"
#include "kernels/gpu/fibers.h"

#define OM_HAS_F64
typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

#define OM_KERNEL(threads) static void
#define OM_FN static inline __attribute__((unused))
#define OM_ROLLED
#define OM_TWICE
#define OM_GLOBAL
#define OM_LOCAL
#define OM_SHARED(T, name, n) T *const name = om_fiber_shared((n) * sizeof(T))
#define OM_THREAD (om_fiber_here()->thread)
#define OM_THREADS (om_fiber_here()->threads)
#define OM_BLOCK_X (om_fiber_here()->block[0])
#define OM_BLOCK_Y (om_fiber_here()->block[1])
#define OM_BLOCK_Z (om_fiber_here()->block[2])
#define OM_BLOCKS_X (om_fiber_here()->blocks[0])
#define OM_BLOCKS_Y (om_fiber_here()->blocks[1])
#define OM_BARRIER() om_fiber_barrier(__COUNTER__)

#define OM_INF INFINITY

OM_FN u32
om_bits_of(f32 x)
{
	u32 u;

	memcpy(&u, &x, sizeof u);
	return u;
}

OM_FN f32
om_float_of(u32 u)
{
	f32 x;

	memcpy(&x, &u, sizeof x);
	return x;
}

OM_FN f32
om_half_load(const u16 *p, i64 i)
{
	return om_half_to_float(p[i]);
}

OM_FN void
om_half_store(u16 *p, i64 i, f32 v)
{
	p[i] = om_float_to_half(v);
}

/* c and the dot product of the four signed bytes of a and b. */
OM_FN i32
om_dot4(i32 a, i32 b, i32 c)
{
	for (int k = 0; k < 4; k++)
		c += (i32)(i8)((u32)a >> 8 * k) * (i32)(i8)((u32)b >> 8 * k);
	return c;
}

#endif
