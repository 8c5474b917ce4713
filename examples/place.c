/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers at the offsets of a plan, without onnxmem: all that is needed is the header.
 *
 *     onnxmem plan MODEL.onnx --export c-header:plan.h
 *     cc -I. place.c -o place && ./place
 *
 * Walks through the steps of a run.  Where a buffer comes to life it is filled with
 * bytes of its own; in its last step they have to be there still. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

static const uint32_t tensors = PLAN_TENSORS, lives = PLAN_LIVES;   /* 0 where all lies with the caller */

static unsigned char
mark(uint32_t life, uint64_t at)
{
	return (unsigned char)(life * 37 + at * 11 + 1);
}

static void
fill(unsigned char *bytes, uint32_t life)
{
	for (uint64_t k = 0; k < plan_lives[life].bytes; k++)
		bytes[k] = mark(life, k);
}

static int
is_whole(const unsigned char *bytes, uint32_t life)
{
	for (uint64_t k = 0; k < plan_lives[life].bytes; k++)
		if (bytes[k] != mark(life, k))
			return 0;
	return 1;
}

static int
run(unsigned char *arena)
{
	for (uint32_t step = 0; step < PLAN_STEPS + 1; step++) {
		for (uint32_t k = 0; k < lives; k++)
			if (plan_lives[k].lower == step)
				fill(arena + plan_lives[k].offset, k);
		for (uint32_t k = 0; k < lives; k++)
			if (plan_lives[k].upper == step + 1 && !is_whole(arena + plan_lives[k].offset, k)) {
				printf("buffer %u was overwritten before step %u\n", (unsigned)plan_lives[k].buffer, (unsigned)step);
				return 1;
			}
	}
	return 0;
}

static int
check_places(void)
{
	for (uint32_t k = 0; k < tensors; k++) {
		const struct plan_tensor *t = &plan_tensors[k];
		if (t->offset + t->bytes > PLAN_ARENA_BYTES) {
			printf("%s ends outside of the arena\n", t->name);
			return 1;
		}
	}
	for (uint32_t k = 0; k < lives; k++)
		if (plan_lives[k].offset % PLAN_ARENA_ALIGN) {
			printf("buffer %u is not aligned\n", (unsigned)plan_lives[k].buffer);
			return 1;
		}
	return 0;
}

int
main(void)
{
	unsigned char *arena = aligned_alloc(PLAN_ARENA_ALIGN, PLAN_ARENA_BYTES ? PLAN_ARENA_BYTES : PLAN_ARENA_ALIGN);
	int bad;

	if (!arena)
		return 1;
	bad = check_places() || run(arena);
	free(arena);
	if (!bad)
		printf("%u tensors in %u buffers held their bytes in an arena of %llu\n", (unsigned)PLAN_TENSORS,
			(unsigned)PLAN_BUFFERS, (unsigned long long)PLAN_ARENA_BYTES);
	return bad;
}
