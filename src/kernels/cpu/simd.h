/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of floats for the inner loops: the only place that depends on the instruction set.
 *
 * Each build defines OM_ISA (its name) and OM_VL (floats in a vector: 4, 8 or 16).  Loads and stores of vec
 * need no alignment.  Arithmetic and comparisons are those of the compiler's vector extensions; min, max and
 * the functions that compilers do not find are here.
 *
 * Mind when writing loops (gcc 12): a vector conditional `a > b ? a : b` becomes scalar code unless it ends in
 * memory: use vec_max(), vec_select().  Arrays that should be registers need UNROLL on every loop over them. */
#ifndef OM_SIMD_H
#define OM_SIMD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#elif defined __SSE2__
#include <emmintrin.h>
#endif

enum { VL = OM_VL };

typedef float vec __attribute__((vector_size(OM_VL * 4), aligned(4), may_alias));
typedef float half_vec __attribute__((vector_size(OM_VL * 2), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(OM_VL * 4), aligned(4), may_alias));
/* Do half vectors take half the time?  AMD's processors may compute with half a register of AVX-512 at a time.  Intel's have two
 * units for whole ones, of which one takes no others. */
#if OM_VL == 16
#define HALVES_ARE_FASTER __builtin_cpu_is("amd")
#else
#define HALVES_ARE_FASTER false
#endif
/* For arithmetic on bits, which may overflow. */
typedef uint32_t uvec __attribute__((vector_size(OM_VL * 4), aligned(4), may_alias));

/* Fully unroll the next loop, whose bounds are constants, so that its arrays become registers. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 36")
#endif

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b)  ((a) > (b) ? (a) : (b))

/* Instances of a tile for each number of rows. */
#define EACH_ROWS(_, vecs)                                                     \
	_(1, vecs) _(2, vecs) _(3, vecs) _(4, vecs) _(5, vecs) _(6, vecs)      \
	_(7, vecs) _(8, vecs) _(9, vecs) _(10, vecs) _(11, vecs) _(12, vecs)

/* Hide where a pointer comes from: gcc otherwise keeps an address in a register for each of its offsets. */
#define OPAQUE(p) __asm__("" : "+r"(p))

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

/* Names of exported tables: OM_TABLE(om_kernels) is om_kernels_avx2 in the build for AVX2. */
#define OM_JOIN_(a, b) a##_##b
#define OM_JOIN(a, b)  OM_JOIN_(a, b)
#define OM_TABLE(name) OM_JOIN(name, OM_ISA)
#define OM_TEXT_(isa)  #isa
#define OM_TEXT(isa)   OM_TEXT_(isa)

INLINE vec
vec_load(const float *p)
{
	return *(const vec *)p;
}

INLINE void
vec_store(float *p, vec v)
{
	*(vec *)p = v;
}

INLINE vec
vec_all(float x)
{
	return x - (vec){0};              /* 0 + x would lose the sign of -0 */
}

/* The first `n` floats, 0 < n <= VL; the others are 0 and are not read. */
INLINE vec
vec_load_some(const float *p, int64_t n)
{
#if OM_VL == 16
	return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
	vec v = {0};
	for (int64_t k = 0; k < n; k++)
		memcpy((char *)&v + 4 * k, p + k, 4);
	return v;
#endif
}

/* Store the first `n` floats, 0 < n <= VL. */
INLINE void
vec_store_some(float *p, vec v, int64_t n)
{
#if OM_VL == 16
	_mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#else
	for (int64_t k = 0; k < n; k++)
		memcpy(p + k, (char *)&v + 4 * k, 4);
#endif
}

/* Are these two an instruction each? */
enum { SOME_IS_FAST = OM_VL == 16 };

/* Its elements, then zeros. */
INLINE vec
vec_of_half(half_vec h)
{
	vec v = {0};

	memcpy(&v, &h, sizeof h);
	return v;
}

/* By bits: a where the mask is all ones, b where it is 0. */
INLINE vec
vec_select(ivec mask, vec a, vec b)
{
	return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

/* The larger one; b where either is NaN, as for the instruction. */
INLINE vec
vec_max(vec a, vec b)
{
#if OM_VL == 16
	return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif OM_VL == 8 && defined __AVX2__
	return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
	return vec_select(a > b, a, b);
#endif
}

/* The smaller one; b where either is NaN. */
INLINE vec
vec_min(vec a, vec b)
{
#if OM_VL == 16
	return (vec)_mm512_min_ps((__m512)a, (__m512)b);
#elif OM_VL == 8 && defined __AVX2__
	return (vec)_mm256_min_ps((__m256)a, (__m256)b);
#else
	return vec_select(a < b, a, b);
#endif
}

/* The larger one; NaN where either is. */
INLINE vec
vec_max_nan(vec a, vec b)
{
#if OM_VL == 16
	return (vec)_mm512_mask_max_ps((__m512)a, _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q), (__m512)a, (__m512)b);
#elif OM_VL == 8 && defined __AVX2__
	return (vec)_mm256_blendv_ps(_mm256_max_ps((__m256)a, (__m256)b), (__m256)a,
		_mm256_cmp_ps((__m256)a, (__m256)a, _CMP_UNORD_Q));
#else
	return vec_select((a > b) | (a != a), a, b);
#endif
}

/* Square roots, correctly rounded. */
INLINE vec
vec_sqrt(vec a)
{
#if OM_VL == 16
	return (vec)_mm512_sqrt_ps((__m512)a);
#elif OM_VL == 8 && defined __AVX2__
	return (vec)_mm256_sqrt_ps((__m256)a);
#else
	float x[OM_VL];

	memcpy(x, &a, sizeof x);
	for (int k = 0; k < OM_VL; k++)
		x[k] = __builtin_sqrtf(x[k]);
	memcpy(&a, x, sizeof x);
	return a;
#endif
}

INLINE vec
vec_abs(vec a)
{
	return (vec)((ivec)a & 0x7fffffff);
}

/* Lane i becomes lane from[i]. */
INLINE vec
vec_permute(vec a, ivec from)
{
#if OM_VL == 16
	return (vec)_mm512_permutexvar_ps((__m512i)from, (__m512)a);
#elif OM_VL == 8 && defined __AVX2__
	return (vec)_mm256_permutevar8x32_ps((__m256)a, (__m256i)from);
#else
	vec r = a;
	for (int k = 0; k < OM_VL; k++)
		memcpy((char *)&r + 4 * k, (char *)&a + 4 * (from[k] & (OM_VL - 1)), 4);
	return r;
#endif
}

/* Each of VL / 4 floats four times. */
INLINE vec
vec_repeat_four(const float *p)
{
#if OM_VL == 16
	const __m512i from = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);

	return (vec)_mm512_permutexvar_ps(from, _mm512_castps128_ps512(_mm_loadu_ps(p)));
#else
	vec v;

	for (int k = 0; k < OM_VL; k++)
		v[k] = p[k / 4];
	return v;
#endif
}

/* Two vectors' lanes, in constant order: lane k of the result is lane f(k, s) of a, then b. */
#define OM_LANES_4(f, s)  f(0, s), f(1, s), f(2, s), f(3, s)
#define OM_LANES_8(f, s)  OM_LANES_4(f, s), f(4, s), f(5, s), f(6, s), f(7, s)
#define OM_LANES_16(f, s) OM_LANES_8(f, s), f(8, s), f(9, s), f(10, s), f(11, s), f(12, s), f(13, s), f(14, s), f(15, s)
#define OM_LANES(f, s)    OM_JOIN(OM_LANES, OM_VL)(f, s)
#ifdef __clang__
#define SHUFFLE(a, b, f, s) __builtin_shufflevector(a, b, OM_LANES(f, s))
#else
#define SHUFFLE(a, b, f, s) __builtin_shuffle(a, b, (ivec){OM_LANES(f, s)})
#endif

/* Exchange the off-diagonal blocks of s by s lanes of every pair of rows s apart. */
#define OM_UPPER(k, s) (((k) & (s) ? OM_VL + (k) - (s) : (k)) % (2 * OM_VL))
#define OM_LOWER(k, s) (((k) & (s) ? OM_VL + (k) : (k) + (s)) % (2 * OM_VL))
#define OM_EXCHANGE(r, s)                                                      \
	UNROLL                                                                 \
	for (int i = 0; i + (s) < VL; i++)                                     \
		if (!(i & (s))) {                                              \
			const vec a = (r)[i], b = (r)[i + (s)];                \
			(r)[i] = SHUFFLE(a, b, OM_UPPER, s);                   \
			(r)[i + (s)] = SHUFFLE(a, b, OM_LOWER, s);             \
		}

/* Transpose VL rows of VL elements. */
INLINE void
vec_transpose(vec *r)
{
	OM_EXCHANGE(r, 1)
	OM_EXCHANGE(r, 2)
	if (VL > 4)
		OM_EXCHANGE(r, 4)
	if (VL > 8)
		OM_EXCHANGE(r, 8)
}

#ifdef __AVX2__
/* The first half and the second half, combined by one function, until four elements are left. */
#if OM_VL == 16
#define VEC_QUARTER(a, f)                                                      \
	vec_quarter_##f(_mm512_castps512_ps256((__m512)(a)), _mm512_extractf32x8_ps((__m512)(a), 1))
#define VEC_HALVES(f)                                                          \
INLINE __m128                                                                  \
vec_quarter_##f(__m256 low, __m256 high)                                       \
{                                                                              \
	const __m256 a = _mm256_##f##_ps(low, high);                           \
	return _mm_##f##_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)); \
}
VEC_HALVES(add)
VEC_HALVES(max)
#undef VEC_HALVES
#else
#define VEC_QUARTER(a, f)                                                      \
	_mm_##f##_ps(_mm256_castps256_ps128((__m256)(a)), _mm256_extractf128_ps((__m256)(a), 1))
#endif
#endif

/* The sum of all elements, always in the same order: halves are added. */
INLINE float
vec_sum(vec a)
{
#ifdef __AVX2__
	__m128 q = VEC_QUARTER(a, add);

	q = _mm_add_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
#else
	float x[OM_VL];

	memcpy(x, &a, sizeof x);
	for (int n = OM_VL / 2; n; n /= 2)
		for (int k = 0; k < n; k++)
			x[k] += x[k + n];
	return x[0];
#endif
}

/* The largest element; none of them is NaN. */
INLINE float
vec_largest(vec a)
{
#ifdef __AVX2__
	__m128 q = VEC_QUARTER(a, max);

	q = _mm_max_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_max_ss(q, _mm_shuffle_ps(q, q, 1)));
#else
	float x[OM_VL];

	memcpy(x, &a, sizeof x);
	for (int n = OM_VL / 2; n; n /= 2)
		for (int k = 0; k < n; k++)
			x[k] = x[k] > x[k + n] ? x[k] : x[k + n];
	return x[0];
#endif
}

/* x 2^n for the integer n = t - 1.5 2^23, -160 < n < 160; rounds once. */
INLINE vec
vec_scaled(vec x, vec t)
{
#if OM_VL == 16
	return (vec)_mm512_scalef_ps((__m512)x, (__m512)(t - 0x1.8p23f));
#else
	const ivec i = (ivec)((uvec)t - (uvec)vec_all(0x1.8p23f)), half = i >> 1;
	const uvec rest = (uvec)i - (uvec)half;

	return x * (vec)(((uvec)half + 127) << 23) * (vec)((rest + 127) << 23);
#endif
}

/* exp(x) within 2 ULP; underflows to 0, overflows to infinity, NaN stays.  Argument reduction and polynomial
 * follow Cody and Waite, and Cephes (as om_exp() of vmath.h). */
INLINE vec
vec_exp(vec x)
{
	const vec kept = vec_max(vec_all(-110.0f), vec_min(vec_all(100.0f), x));
	const vec t = kept * 1.44269504f + 0x1.8p23f, n = t - 0x1.8p23f;
	const vec r = (kept - n * 0.693359375f) + n * 2.12194440e-4f;
	vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;

	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1;
	return vec_scaled(p, t);
}

/* exp(x) as a weight beside one that is 1: 0 below exp(-87), NaN stays.  Processors take more than a hundred cycles for a result below
 * the least normal number, as scores of keys that are masked would have. */
INLINE vec
vec_exp_weight(vec x)
{
	const vec least = vec_all(-87.0f);

	return (vec)((ivec)vec_exp(vec_max(least, x)) & ~(x < least));
}

/* ---- Products of bytes: each lane has four of them. ----
 *
 * Where the processor has no such instruction, bytes are extended to 16 bits: sums of two products are exact in 32
 * bits, while those of the instruction for pairs of bytes would saturate in 16. */

typedef int16_t hvec __attribute__((vector_size(OM_VL * 4), aligned(4), may_alias));

/* Sums of the products of two adjacent int16. */
INLINE ivec
vec_dot_pairs(ivec a, ivec b)
{
#if OM_VL == 16
	return (ivec)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif OM_VL == 8 && defined __AVX2__
	return (ivec)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif OM_VL == 4 && defined __SSE2__
	return (ivec)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
	return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

#ifdef __AVX512VNNI__
typedef ivec unsigned_quads, signed_quads;
enum { QUADS_SUMS = 24 };         /* vectors of sums that fit into the registers */
#else
typedef struct quads { ivec even, odd; } unsigned_quads, signed_quads;
enum { QUADS_SUMS = OM_VL == 16 ? 16 : OM_VL == 8 ? 8 : 6 };
#endif

/* Four unsigned bytes, in all lanes. */
INLINE unsigned_quads
quads_all(const uint8_t *p)
{
	int32_t x;

	memcpy(&x, p, sizeof x);
	const ivec all = x - (ivec){0};
#ifdef __AVX512VNNI__
	return all;
#else
	return (struct quads){all & 0x00ff00ff, (ivec)((uvec)all >> 8) & 0x00ff00ff};
#endif
}

/* VL times four signed bytes. */
INLINE signed_quads
quads_load(const int8_t *p)
{
	const ivec all = *(const ivec *)(const void *)p;
#ifdef __AVX512VNNI__
	return all;
#else
	return (struct quads){(ivec)((hvec)all << 8 >> 8), (ivec)((hvec)all >> 8)};
#endif
}

/* Add the sum of the four products to each lane. */
INLINE ivec
quads_dot(ivec sum, unsigned_quads a, signed_quads b)
{
#ifdef __AVX512VNNI__
	return (ivec)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#else
	return sum + (vec_dot_pairs(a.even, b.even) + vec_dot_pairs(a.odd, b.odd));
#endif
}

/* Add to each lane the sum of the products of its four bytes: of `a` from 0 to 63, of `b` signed. */
INLINE ivec
vec_dot_small(ivec sum, ivec a, ivec b)
{
#ifdef __AVX512VNNI__
	return (ivec)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif OM_VL == 16
	return sum + (ivec)_mm512_madd_epi16(_mm512_maddubs_epi16((__m512i)a, (__m512i)b), _mm512_set1_epi16(1));
#elif OM_VL == 8 && defined __AVX2__
	return sum + (ivec)_mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)a, (__m256i)b), _mm256_set1_epi16(1));
#else
	const ivec odd = (ivec)((uvec)a >> 8) & 0x00ff00ff;
	return sum + (vec_dot_pairs(a & 0x00ff00ff, (ivec)((hvec)b << 8 >> 8)) + vec_dot_pairs(odd, (ivec)((hvec)b >> 8)));
#endif
}

/* Rounded half to even, within bounds below 2^22; NaN becomes the lower one.  The lowest 22 bits are the result. */
INLINE ivec
vec_rounded(vec x, vec low, vec high)
{
	return (ivec)(vec_min(vec_max(x, low), high) + 0x1.8p23f);
}

/* The lowest bytes of the first `n` lanes, 0 < n <= VL. */
INLINE void
vec_store_bytes(uint8_t *p, ivec v, int64_t n)
{
#if OM_VL == 16
	if (n == VL)
		_mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)v));
	else
		_mm_mask_storeu_epi8(p, (__mmask16)((1u << n) - 1), _mm512_cvtepi32_epi8((__m512i)v));
#else
	uint8_t some[OM_VL];

#if OM_VL == 8 && defined __AVX2__
	const __m256i low = (__m256i)(v & 255);
	const __m128i pairs = _mm_packs_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
	_mm_storel_epi64((__m128i *)some, _mm_packus_epi16(pairs, pairs));
#elif OM_VL == 4 && defined __SSE2__
	const __m128i pairs = _mm_packs_epi32((__m128i)(v & 255), (__m128i)(v & 255));
	const int32_t all = _mm_cvtsi128_si32(_mm_packus_epi16(pairs, pairs));
	memcpy(some, &all, sizeof some);
#else
	for (int k = 0; k < OM_VL; k++)
		some[k] = (uint8_t)v[k];
#endif
	if (n == VL)
		memcpy(p, some, sizeof some);
	else
		for (int64_t k = 0; k < n; k++)
			p[k] = some[k];
#endif
}

/* VL bytes as integers. */
INLINE ivec
vec_load_uint8(const uint8_t *p)
{
#if OM_VL == 16
	return (ivec)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif OM_VL == 8 && defined __AVX2__
	return (ivec)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
#elif OM_VL == 4 && defined __SSE2__
	int32_t x;

	memcpy(&x, p, sizeof x);
	const __m128i zero = _mm_setzero_si128(), pairs = _mm_unpacklo_epi8(_mm_cvtsi32_si128(x), zero);
	return (ivec)_mm_unpacklo_epi16(pairs, zero);
#else
	ivec v;

	for (int k = 0; k < OM_VL; k++)
		v[k] = p[k];
	return v;
#endif
}

/* The first `n` bytes, 0 < n <= VL; the others are 0 and are not read. */
INLINE ivec
vec_load_some_uint8(const uint8_t *p, int64_t n)
{
	uint8_t some[OM_VL] = {0};

	for (int64_t k = 0; k < n; k++)
		some[k] = p[k];
	return vec_load_uint8(some);
}

/* VL signed bytes as integers. */
INLINE ivec
vec_load_int8(const int8_t *p)
{
#if OM_VL == 16
	return (ivec)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif OM_VL == 8 && defined __AVX2__
	return (ivec)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
#else
	return (vec_load_uint8((const uint8_t *)p) ^ 128) - 128;
#endif
}

/* VL elements of 4 bits as integers from 0 to 15: the lower bits of a byte are the first of two. */
INLINE ivec
vec_load_uint4(const uint8_t *p)
{
#ifdef __AVX2__
#if OM_VL == 16
	const __m128i pairs = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)p));
#else
	int32_t four;

	memcpy(&four, p, sizeof four);
	const __m128i pairs = _mm_cvtepu8_epi16(_mm_cvtsi32_si128(four));
#endif
	uint8_t each[16];

	_mm_storeu_si128((__m128i *)each, _mm_and_si128(_mm_or_si128(pairs, _mm_slli_epi16(pairs, 4)), _mm_set1_epi8(15)));
	return vec_load_uint8(each);
#else
	ivec v;

	for (int k = 0; k < OM_VL; k++)
		v[k] = p[k / 2] >> k % 2 * 4 & 15;
	return v;
#endif
}

typedef uint16_t half_bits __attribute__((vector_size(OM_VL * 2), aligned(2), may_alias));

/* VL numbers of 16 bits as integers. */
INLINE ivec
vec_load_uint16(const uint16_t *p)
{
	return __builtin_convertvector(*(const half_bits *)(const void *)p, ivec);
}

typedef uint8_t bvec __attribute__((vector_size(OM_VL * 4), aligned(1), may_alias));

/* The larger bytes. */
INLINE bvec
bvec_max(bvec a, bvec b)
{
#if OM_VL == 16
	return (bvec)_mm512_max_epu8((__m512i)a, (__m512i)b);
#elif OM_VL == 8 && defined __AVX2__
	return (bvec)_mm256_max_epu8((__m256i)a, (__m256i)b);
#elif OM_VL == 4 && defined __SSE2__
	return (bvec)_mm_max_epu8((__m128i)a, (__m128i)b);
#else
	const bvec larger = (bvec)(a > b);
	return (a & larger) | (b & ~larger);
#endif
}

/* Is an element larger than `b`? */
INLINE bool
vec_any_above(vec a, float b)
{
#if OM_VL == 16
	return _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(b), _CMP_GT_OQ) != 0;
#elif OM_VL == 8 && defined __AVX2__
	return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, _mm256_set1_ps(b), _CMP_GT_OQ)) != 0;
#else
	bool any = false;

	for (int k = 0; k < OM_VL; k++)
		any |= a[k] > b;
	return any;
#endif
}

/* A product that is not to be contracted with a sum that follows. */
#if defined __AVX512F__
#define VEC_ROUND_NOW(x) __asm__("" : "+v"(x))
#elif defined __SSE2__
#define VEC_ROUND_NOW(x) __asm__("" : "+x"(x))
#elif defined __aarch64__
#define VEC_ROUND_NOW(x) __asm__("" : "+w"(x))
#else
#define VEC_ROUND_NOW(x) __asm__("" : "+m"(x))
#endif

#endif
