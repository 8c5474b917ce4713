/* The kernel language: one source, three dialects.
 *
 * A kernel is compiled after the header of a dialect (dialect_c.h, dialect_cuda.h, dialect_opencl.h) and this one:
 *
 *     OM_KERNEL(256) K(softmax)(OM_IN(T, x), OM_OUT(T, y), i64 rows, i64 n) {
 *             OM_USE_IN(T, x);
 *             OM_USE_OUT(T, y);
 *             OM_SHARED(f32, s, 256);
 *             ...
 *
 * A source (NAME.omk) is a template: TN is the name of an element type, T its storage, C what it is computed in, W in what
 * sums wrap around, K(name)
 * the kernel's name with the type.  The first comment of a source lists its types, after "types:", and, where it has
 * two of them, those of the second, TO, after "to:".
 *
 * Rules:
 *   - pointers say OM_GLOBAL or OM_LOCAL; there are no others, no structs by value, no recursion;
 *   - shared arrays are declared at the top of a kernel, where every thread passes;
 *   - barriers are passed by all threads of a block, or by none;
 *   - memory is a base and an offset in bytes, so that an arena is one buffer where there are no addresses;
 *   - a kernel names no lane or warp; what a block computes together is computed by om_block_...;
 *   - every sum has an order that depends on shapes alone;
 *   - the head of a kernel ends with ") {" and the kernel with "}" in the first column; helper functions do not
 *     start with OM_KERNEL.  `embed.awk` reads it. */

/* Parameters in memory. */
#define OM_IN(T, x) OM_GLOBAL const u8 *x##_base, u64 x##_offset
#define OM_OUT(T, x) OM_GLOBAL u8 *x##_base, u64 x##_offset
#define OM_USE_IN(T, x) OM_GLOBAL const T *x = (OM_GLOBAL const T *) (x##_base + x##_offset)
#define OM_USE_OUT(T, x) OM_GLOBAL T *x = (OM_GLOBAL T *) (x##_base + x##_offset)

/* Six dims or strides. */
#define OM_SIX(x) i64 x##0, i64 x##1, i64 x##2, i64 x##3, i64 x##4, i64 x##5

/* Where element i of dims d is, with strides s; `d` and `s` name six parameters each. */
#define OM_AT6(i, d, s) om_at6(i, d##1, d##2, d##3, d##4, d##5, s##0, s##1, s##2, s##3, s##4, s##5)

/* Before a loop: OM_ROLLED, its body once; OM_TWICE, two of them at most.  What compilers unroll more may not fit the
 * registers. */

/* i = this thread, and those that a grid of fewer threads leaves to it. */
#define OM_GRID_LOOP(i, n) OM_ROLLED for (i64 i = OM_BLOCK_X * OM_THREADS + OM_THREAD; i < (n); i += OM_BLOCKS_X * OM_THREADS)
/* The rows of a block: one after the other, by all of its threads. */
#define OM_ROW_LOOP(r, n) OM_ROLLED for (i64 r = OM_BLOCK_X; r < (n); r += OM_BLOCKS_X)
/* The elements of a row that are a thread's. */
#define OM_THREAD_LOOP(i, n) OM_TWICE for (i64 i = OM_THREAD; i < (n); i += OM_THREADS)

#define OM_JOIN_(a, b) a##_##b
#define OM_JOIN(a, b) OM_JOIN_(a, b)
#define OM_JOIN3_(a, b, c) a##_##b##_##c
#define OM_JOIN3(a, b, c) OM_JOIN3_(a, b, c)
#define K(name) OM_JOIN(name, TN)
#define K2(name) OM_JOIN3(name, TN, TO)
#define T OM_JOIN(om_stored, TN)
#define C OM_JOIN(om_computed, TN)
#define W OM_JOIN(om_wrapped, TN)
#define LOAD(p, i) OM_JOIN(om_load, TN)(p, i)
#define STORE(p, i, v) OM_JOIN(om_store, TN)(p, i, v)

/* Functions that all dialects have, for float32 and float64; the other ones are of the dialect. */
#define om_exp(x) exp(x)
#define om_expm1(x) expm1(x)
#define om_log(x) log(x)
#define om_log1p(x) log1p(x)
#define om_sqrt(x) sqrt(x)
#define om_tanh(x) tanh(x)
#define om_erf(x) erf(x)
#define om_sin(x) sin(x)
#define om_cos(x) cos(x)
#define om_tan(x) tan(x)
#define om_asin(x) asin(x)
#define om_acos(x) acos(x)
#define om_atan(x) atan(x)
#define om_sinh(x) sinh(x)
#define om_cosh(x) cosh(x)
#define om_asinh(x) asinh(x)
#define om_acosh(x) acosh(x)
#define om_atanh(x) atanh(x)
#define om_pow(x, y) pow(x, y)
#define om_fmod(x, y) fmod(x, y)
#define om_fma(x, y, z) fma(x, y, z)
#define om_floor(x) floor(x)
#define om_ceil(x) ceil(x)
#define om_rint(x) rint(x)
#define om_fabs(x) fabs(x)

/* Where neither is NaN; else b. */
#define om_max(a, b) ((a) > (b) ? (a) : (b))
#define om_min(a, b) ((a) < (b) ? (a) : (b))

/* Element types: storage, type to compute with, loads and stores that convert. */
#define OM_ELEMENT(name, type, wrapped) \
	typedef type om_stored_##name; \
	typedef wrapped om_wrapped_##name; \
	typedef type om_computed_##name; \
	OM_FN type om_load_##name(OM_GLOBAL const type *p, i64 i) { return p[i]; } \
	OM_FN void om_store_##name(OM_GLOBAL type *p, i64 i, type v) { p[i] = v; }
OM_ELEMENT(i8, i8, u64)
OM_ELEMENT(u8, u8, u64)
OM_ELEMENT(i16, i16, u64)
OM_ELEMENT(u16, u16, u64)
OM_ELEMENT(i32, i32, u64)
OM_ELEMENT(u32, u32, u64)
OM_ELEMENT(i64, i64, u64)
OM_ELEMENT(u64, u64, u64)
OM_ELEMENT(f32, f32, f32)
#ifdef OM_HAS_F64
OM_ELEMENT(f64, f64, f64)
#endif

typedef u16 om_stored_f16;
typedef f32 om_computed_f16;
typedef f32 om_wrapped_f16;
OM_FN f32 om_load_f16(OM_GLOBAL const u16 *p, i64 i) { return om_half_load(p, i); }
OM_FN void om_store_f16(OM_GLOBAL u16 *p, i64 i, f32 v) { om_half_store(p, i, v); }

typedef u16 om_stored_bf16;
typedef f32 om_computed_bf16;
typedef f32 om_wrapped_bf16;
OM_FN f32 om_load_bf16(OM_GLOBAL const u16 *p, i64 i) { return om_float_of((u32) p[i] << 16); }

/* To the nearest, ties to even; NaN stays NaN. */
OM_FN void
om_store_bf16(OM_GLOBAL u16 *p, i64 i, f32 v)
{
	const u32 u = om_bits_of(v);

	p[i] = (u16) (v != v ? (u >> 16 | 0x40) : (u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

/* Booleans: a byte that is 0 or 1. */
typedef u8 om_stored_b8;
typedef u8 om_computed_b8;
OM_FN u8 om_load_b8(OM_GLOBAL const u8 *p, i64 i) { return p[i] != 0; }
OM_FN void om_store_b8(OM_GLOBAL u8 *p, i64 i, u8 v) { p[i] = v != 0; }

/* Most tensors have fewer than 2^32 elements, of which devices compute indices faster. */
OM_FN i64
om_at6(i64 i, i64 d1, i64 d2, i64 d3, i64 d4, i64 d5, i64 s0, i64 s1, i64 s2, i64 s3, i64 s4, i64 s5)
{
	i64 at;

	if (((i | d1 | d2 | d3 | d4 | d5) >> 32) == 0) {
		u32 k = (u32) i;
		at = k % (u32) d5 * s5, k /= (u32) d5;
		at += k % (u32) d4 * s4, k /= (u32) d4;
		at += k % (u32) d3 * s3, k /= (u32) d3;
		at += k % (u32) d2 * s2, k /= (u32) d2;
		at += k % (u32) d1 * s1, k /= (u32) d1;
		return at + k * s0;
	}
	at = i % d5 * s5, i /= d5;
	at += i % d4 * s4, i /= d4;
	at += i % d3 * s3, i /= d3;
	at += i % d2 * s2, i /= d2;
	at += i % d1 * s1, i /= d1;
	return at + i * s0;
}

/* Of window elements at `first`, `first + step`, ...: the number of those before `end`, of `count`. */
OM_FN i32
om_window_end(i64 first, i32 step, i32 count, i64 end)
{
	const i64 n = first >= end ? 0 : (end - first + step - 1) / step;

	return (i32) (n < count ? n : count);
}

/* What all threads of a block have, combined in the order of a tree; every thread gets it.  `s` has room for a number of
 * each thread, of which there is a power of two. */
#define OM_BLOCK_COMBINE(name, type, value) \
	OM_FN type \
	name(type mine, OM_LOCAL type *s) \
	{ \
		OM_BARRIER(); \
		s[OM_THREAD] = mine; \
		for (i32 k = OM_THREADS >> 1; k; k >>= 1) { \
			OM_BARRIER(); \
			if (OM_THREAD < k) { \
				const type a = s[OM_THREAD], b = s[OM_THREAD + k]; \
				s[OM_THREAD] = value; \
			} \
		} \
		OM_BARRIER(); \
		return s[0]; \
	}
OM_BLOCK_COMBINE(om_block_sum, f32, a + b)
OM_BLOCK_COMBINE(om_block_max, f32, a > b || a != a ? a : b)

/* The sum over the 64 threads of each quarter of a block of 256; the first one of each gets it. */
OM_FN f32
om_quarter_sum(f32 mine, OM_LOCAL f32 *s)
{
	const i32 lane = OM_THREAD & 63;

	OM_BARRIER();
	s[OM_THREAD] = mine;
	for (i32 k = 32; k; k >>= 1) {
		OM_BARRIER();
		if (lane < k)
			s[OM_THREAD] += s[OM_THREAD + k];
	}
	return s[OM_THREAD];
}
