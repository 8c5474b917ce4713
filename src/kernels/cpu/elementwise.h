/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions of float32; see elementwise.def.
 *
 * Every element is computed by the same operations wherever it lies, and is read before it is written: the
 * output may be any of the operands. */
#ifndef OM_ELEMENTWISE_H
#define OM_ELEMENTWISE_H

#include <stdint.h>

/* Which operands advance with the output; the others are one element. */
enum om_map_steps { OM_MAP_BOTH, OM_MAP_X, OM_MAP_Y, OM_NMAP_STEPS };

enum om_map_kind {
#define MAP1(name, value) OM_MAP_##name,
#define MAP2(name, value) OM_MAP_##name,
#include "kernels/cpu/elementwise.def"
#undef MAP1
#undef MAP2
	OM_NMAP
};

/* out[i] = f(x[i], y[i]), i < n; `p` points to two parameters.  Functions of x ignore y. */
typedef void om_map(float *out, const float *x, const float *y, int64_t n, const float *p);

typedef struct om_elementwise_kernels {
	om_map *map[OM_NMAP][OM_NMAP_STEPS];  /* functions of x are the same in all */
	/* out[i] = test[i] ? x[i] : y[i], for elements of 4 bytes; an operand with step 0 is one element. */
	void (*where)(uint32_t *out, const uint8_t *test, const uint32_t *x, const uint32_t *y, int64_t n, const int step[3]);
} om_elementwise_kernels;

#endif
