/* The kernel language in OpenCL C 1.2; see language.h.  Needs no extension; float64 needs cl_khr_fp64. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define OM_HAS_F64
typedef double f64;
#endif
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;

#define OM_KERNEL(threads) __kernel __attribute__((reqd_work_group_size(threads, 1, 1))) void
#define OM_FN static inline
#define OM_ROLLED
#define OM_TWICE
#define OM_GLOBAL __global
#define OM_LOCAL __local
#define OM_SHARED(T, name, n) __local T name[n]
#define OM_THREAD ((i32) get_local_id(0))
#define OM_THREADS ((i32) get_local_size(0))
#define OM_BLOCK_X ((i64) get_group_id(0))
#define OM_BLOCK_Y ((i64) get_group_id(1))
#define OM_BLOCK_Z ((i64) get_group_id(2))
#define OM_BLOCKS_X ((i64) get_num_groups(0))
#define OM_BLOCKS_Y ((i64) get_num_groups(1))
#define OM_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

#define OM_INF INFINITY
#define om_bits_of(x) as_uint(x)
#define om_float_of(x) as_float(x)

OM_FN f32
om_half_load(OM_GLOBAL const u16 *p, i64 i)
{
	return vload_half((size_t) i, (OM_GLOBAL const half *) p);
}

OM_FN void
om_half_store(OM_GLOBAL u16 *p, i64 i, f32 v)
{
	vstore_half_rte(v, (size_t) i, (OM_GLOBAL half *) p);
}

/* c and the dot product of the four signed bytes of a and b. */
OM_FN i32
om_dot4(i32 a, i32 b, i32 c)
{
	const char4 x = as_char4(a), y = as_char4(b);

	return c + (i32) x.s0 * y.s0 + (i32) x.s1 * y.s1 + (i32) x.s2 * y.s2 + (i32) x.s3 * y.s3;
}
