/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged models: each is refused with a message, or planned.
 *
 *	mutate COUNT FILE...
 *
 * COUNT mutations of every file, deterministic: truncation, flipped bits, replaced bytes, and runs of
 * bytes that are moved, removed or duplicated.  Every mutation has a limit of ten seconds; the
 * peak memory of the process has to stay below half a gigabyte. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "damage.h"
#include "take.h"

/* Sanitizers delay the reuse of freed memory. */
#ifdef __SANITIZE_ADDRESS__
enum { KILOBYTES = 4 << 20 };
#else
enum { KILOBYTES = 512 << 10 };
#endif

enum { SECONDS = 10 };

struct tally {
	unsigned n[WRITTEN + 1];
};

/* The copy is allocated with its exact size, so that a read past its end is detected. */
static enum taken
try_one(om_host *h, om_session *s, const struct bytes *b, const char *folder)
{
	unsigned char *exact = malloc(b->n ? b->n : 1);

	memcpy(exact, b->data, b->n);
	alarm(SECONDS);
	const enum taken far = take_model(h, s, exact, b->n, folder);
	alarm(0);
	free(exact);
	return far;
}

static bool
try_file(om_host *h, om_session *s, const char *path, const char *folder, unsigned count, struct tally *t)
{
	struct bytes whole = damage_read_file(path);
	uint64_t state = whole.n;

	if (!whole.n || try_one(h, s, &whole, folder) < IMPORTED) {
		printf("# %s is not taken as it is: %s\n", path, om_message(s));
		free(whole.data);
		return false;
	}
	struct bytes b = {.data = malloc(whole.n + DAMAGE_GROWS)};
	for (unsigned k = 0; k < count; k++) {
		memcpy(b.data, whole.data, whole.n);
		b.n = whole.n;
		damage(&state, &b);
		t->n[try_one(h, s, &b, folder)]++;
	}
	free(b.data);
	free(whole.data);
	return true;
}

static const char *
folder_of(char *out, size_t size, const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(out, size, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return out;
}

int
main(int argc, char **argv)
{
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);
	const unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned failed = 0, total = 0;
	struct rusage used;
	char folder[4096];

	for (int k = 2; k < argc; k++) {
		struct tally t = {{0}};
		const bool good = try_file(h, s, argv[k], folder_of(folder, sizeof folder, argv[k]), count, &t);
		total += count;
		failed += !good;
		printf("%sok %d - %u mutations of %s: %u refused, %u loaded, %u imported, %u planned, %u written back\n",
			good ? "" : "not ", k - 1, count, argv[k], t.n[REFUSED], t.n[LOADED], t.n[IMPORTED],
			t.n[PLANNED], t.n[WRITTEN]);
		fflush(stdout);
	}
	getrusage(RUSAGE_SELF, &used);
	const bool small = used.ru_maxrss < KILOBYTES;
	printf("%sok %d - %u mutations took %ld MB at most\n", small ? "" : "not ", argc - 1, total, used.ru_maxrss >> 10);
	printf("1..%d\n", argc - 1);
	om_host_free(h);
	om_session_free(s);
	return failed || !small;
}
