/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions of float32, compiled once per instruction set. */
#include <config.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/vec_math.h"

/* The last elements are computed by the same expression, on a vector of which some lanes are not used. */
#define LOOP(value, load_x, load_y)                                            \
	const vec a = vec_all(p[0]), b = vec_all(p[1]);                        \
	int64_t i = 0;                                                         \
	(void)a, (void)b, (void)y0;                                            \
	for (; i + VL <= n; i += VL) {                                         \
		const vec x = load_x(px, i, vec_load), y = load_y(py, i, vec_load); \
		(void)y;                                                       \
		vec_store(out + i, (value));                                   \
	}                                                                      \
	if (i < n) {                                                           \
		const vec x = load_x(px, i, LOAD_REST), y = load_y(py, i, LOAD_REST); \
		(void)y;                                                       \
		vec_store_some(out + i, (value), n - i);                       \
	}

#define LOAD_REST(at)       vec_load_some(at, n - i)
#define EACH(at, i, load)   load((at) + (i))
#define ONE_X(at, i, load)  x0
#define ONE_Y(at, i, load)  y0

#define MAP1(name, value)                                                      \
static void                                                                    \
name##_of_x(float *out, const float *px, const float *py, int64_t n, const float *p) \
{                                                                              \
	const vec y0 = {0};                                                    \
	(void)py;                                                              \
	LOOP(value, EACH, ONE_Y)                                               \
}

#define MAP2(name, value)                                                      \
static void                                                                    \
name##_of_both(float *out, const float *px, const float *py, int64_t n, const float *p) \
{                                                                              \
	const vec y0 = {0};                                                    \
	LOOP(value, EACH, EACH)                                                \
}                                                                              \
static void                                                                    \
name##_of_x(float *out, const float *px, const float *py, int64_t n, const float *p) \
{                                                                              \
	const vec y0 = vec_all(*py);                                           \
	LOOP(value, EACH, ONE_Y)                                               \
}                                                                              \
static void                                                                    \
name##_of_y(float *out, const float *px, const float *py, int64_t n, const float *p) \
{                                                                              \
	const vec x0 = vec_all(*px), y0 = x0;                                  \
	LOOP(value, ONE_X, EACH)                                               \
}

#include "kernels/cpu/elementwise.def"
#undef MAP1
#undef MAP2

static void
where(uint32_t *out, const uint8_t *test, const uint32_t *x, const uint32_t *y, int64_t n, const int step[3])
{
	if (step[0] == 0) {
		const uint32_t *from = *test ? x : y;
		const int64_t by = *test ? step[1] : step[2];
		for (int64_t i = 0; i < n; i++)
			out[i] = from[i * by];
	} else if (step[1] && step[2]) {
		for (int64_t i = 0; i < n; i++)
			out[i] = test[i] ? x[i] : y[i];
	} else if (step[1]) {
		const uint32_t other = *y;
		for (int64_t i = 0; i < n; i++)
			out[i] = test[i] ? x[i] : other;
	} else {
		const uint32_t one = *x;
		for (int64_t i = 0; i < n; i++)
			out[i] = test[i] ? one : y[i * step[2]];
	}
}

#define MAP1(name, value) [OM_MAP_##name] = {name##_of_x, name##_of_x, name##_of_x},
#define MAP2(name, value) [OM_MAP_##name] = {name##_of_both, name##_of_x, name##_of_y},

extern const om_elementwise_kernels OM_TABLE(om_elementwise_kernels);

const om_elementwise_kernels OM_TABLE(om_elementwise_kernels) = {
	.map = {
#include "kernels/cpu/elementwise.def"
	},
	.where = where,
};
