/* SPDX-License-Identifier: Apache-2.0 */
/* Reproducible pseudorandom numbers: splitmix64, of Steele, Lea and Flood, "Fast
 * splittable pseudorandom number generators", 2014. Any state is a valid seed. */
#ifndef OM_RNG_H
#define OM_RNG_H

#include <stdint.h>

/* A bijection. */
static inline uint64_t
om_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static inline uint64_t
om_rng(uint64_t *state)
{
	return om_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* In [0, 1). */
static inline double
om_rng_unit(uint64_t *state)
{
	return (double)(om_rng(state) >> 11) * 0x1p-53;
}

/* Below `n`, which is not 0; with a bias towards small numbers of at most n in
 * 2^64. */
static inline uint64_t
om_rng_below(uint64_t *state, uint64_t n)
{
	return om_rng(state) % n;
}

#endif
