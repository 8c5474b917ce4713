/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "damage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static size_t
below(uint64_t *state, size_t n)
{
	return n ? (size_t)(om_rng(state) % n) : 0;
}

/* Boundary values at which lengths, dims and indices overflow. */
static void
replace(uint64_t *state, struct bytes *b)
{
	static const unsigned char odd[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 0x08, 0x10};
	size_t at = below(state, b->n), run = 1 + below(state, 10);

	for (const unsigned char v = odd[below(state, sizeof odd)]; run-- && at < b->n; at++)
		b->data[at] = v;
}

/* Copy a run of bytes to another position, overwriting or inserting. */
static void
copy_run(uint64_t *state, struct bytes *b, bool insert)
{
	const size_t run = 1 + below(state, b->n < DAMAGE_GROWS ? b->n : DAMAGE_GROWS);
	const size_t from = below(state, b->n - run + 1), to = below(state, b->n - run + 1);
	unsigned char held[DAMAGE_GROWS];

	memcpy(held, b->data + from, run);
	if (insert) {
		memmove(b->data + to + run, b->data + to, b->n - to);
		b->n += run;
	}
	memcpy(b->data + to, held, run);
}

static void
take_out(uint64_t *state, struct bytes *b)
{
	const size_t run = 1 + below(state, b->n < DAMAGE_GROWS ? b->n : DAMAGE_GROWS), at = below(state, b->n - run + 1);

	memmove(b->data + at, b->data + at + run, b->n - at - run);
	b->n -= run;
}

void
damage(uint64_t *state, struct bytes *b)
{
	bool longer = false;

	for (size_t n = 1 + below(state, 3) / 2; n-- && b->n; ) {
		switch (below(state, 20)) {
		case 0: b->n = below(state, b->n); break;
		case 1: take_out(state, b); break;
		case 2:
			if (!longer)
				copy_run(state, b, true);
			longer = true;
			break;
		case 3: case 4: copy_run(state, b, false); break;
		case 5: case 6: case 7: replace(state, b); break;
		default: b->data[below(state, b->n)] ^= (unsigned char)(1u << below(state, 8)); break;
		}
	}
}

struct bytes
damage_read_file(const char *path)
{
	struct bytes b = {0};
	FILE *f = fopen(path, "rb");

	if (!f || fseek(f, 0, SEEK_END) != 0)
		return b;
	b.n = (size_t)ftell(f);
	rewind(f);
	b.data = malloc(b.n + 1);
	if (!b.data || fread(b.data, 1, b.n, f) != b.n)
		b.n = 0;
	fclose(f);
	return b;
}
