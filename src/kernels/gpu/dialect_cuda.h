/* The kernel language in CUDA C; see language.h.  Needs no header of the toolkit, so that NVRTC compiles it alone. */
#define OM_HAS_F64
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#define OM_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define OM_FN static __device__ __forceinline__
#define OM_ROLLED _Pragma("unroll 1")
#define OM_TWICE _Pragma("unroll 2")
#define OM_GLOBAL
#define OM_LOCAL
#define OM_SHARED(T, name, n) __shared__ __align__(16) T name[n]
#define OM_THREAD ((i32) threadIdx.x)
#define OM_THREADS ((i32) blockDim.x)
#define OM_BLOCK_X ((i64) blockIdx.x)
#define OM_BLOCK_Y ((i64) blockIdx.y)
#define OM_BLOCK_Z ((i64) blockIdx.z)
#define OM_BLOCKS_X ((i64) gridDim.x)
#define OM_BLOCKS_Y ((i64) gridDim.y)
#define OM_BARRIER() __syncthreads()

#define OM_INF __int_as_float(0x7f800000)
#define om_bits_of(x) __float_as_uint(x)
#define om_float_of(x) __uint_as_float(x)

OM_FN f32
om_half_load(const u16 *p, i64 i)
{
	f32 f;

	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(p[i]));
	return f;
}

OM_FN void
om_half_store(u16 *p, i64 i, f32 v)
{
	u16 h;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
	p[i] = h;
}

/* c and the dot product of the four signed bytes of a and b. */
OM_FN i32
om_dot4(i32 a, i32 b, i32 c)
{
	return __dp4a(a, b, c);
}
