/* SPDX-License-Identifier: Apache-2.0 */
/* Deterministic damage of files: what it changes mostly keeps lengths valid, so that it is detected late. */
#ifndef OM_DAMAGE_H
#define OM_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	unsigned char *data;
	size_t n;
};

/* The bytes that a mutation may add. */
enum { DAMAGE_GROWS = 64 };

/* `b` has capacity for DAMAGE_GROWS more bytes; `state` is of om_rng(). */
void damage(uint64_t *state, struct bytes *b);

/* The content of a file, from malloc(); without bytes if it cannot be read. */
struct bytes damage_read_file(const char *path);

#endif
