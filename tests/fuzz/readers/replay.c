/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the target it is linked with on files, and on mutations of each: what libFuzzer does, with any compiler.
 *
 *	TARGET MUTATIONS FILE...
 *
 * Files whose names begin with "refused" have to be refused, and others to be accepted.  Deterministic.  Every input has a limit of ten seconds. */
#include <config.h>

#include <string.h>
#include <unistd.h>

#include "reader.h"
#include "tests/fuzz/damage.h"

enum { SECONDS = 10 };

/* The copy is allocated with its exact size, so that a read past its end is detected. */
static bool
try_one(const struct bytes *b)
{
	unsigned char *exact = malloc(b->n ? b->n : 1);

	memcpy(exact, b->data, b->n);
	alarm(SECONDS);
	const bool taken = reader_takes(exact, b->n);
	alarm(0);
	free(exact);
	return taken;
}

static bool
is_good(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, "refused", 7) != 0;
}

static bool
try_file(const char *path, unsigned long count)
{
	struct bytes whole = damage_read_file(path);
	uint64_t state = whole.n;

	if (!whole.n || try_one(&whole) != is_good(path)) {
		printf("# %s %s\n", path, !whole.n ? "cannot be read" : is_good(path) ? "is refused" : "is accepted");
		free(whole.data);
		return false;
	}
	struct bytes b = {.data = malloc(whole.n + DAMAGE_GROWS)};
	for (unsigned long k = 0; k < count; k++) {
		memcpy(b.data, whole.data, whole.n);
		b.n = whole.n;
		damage(&state, &b);
		try_one(&b);
	}
	free(b.data);
	free(whole.data);
	return true;
}

int
main(int argc, char **argv)
{
	const unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned failed = argc < 3;

	for (int k = 2; k < argc; k++)
		failed += !try_file(argv[k], count);
	printf("# %d files, %lu mutations of each\n", argc - 2, count);
	return failed != 0;
}
