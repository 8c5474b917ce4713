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

#include "base/rng.h"
#include "take.h"

/* Sanitizers delay the reuse of freed memory. */
#ifdef __SANITIZE_ADDRESS__
enum { KILOBYTES = 4 << 20 };
#else
enum { KILOBYTES = 512 << 10 };
#endif

enum { SECONDS = 10 };

struct bytes {
	unsigned char *data;
	size_t n;
};

struct dice {
	uint64_t state;
};

static uint64_t
roll(struct dice *d)
{
	return om_rng(&d->state);
}

static size_t
below(struct dice *d, size_t n)
{
	return n ? (size_t)(roll(d) % n) : 0;
}

/* Boundary values at which lengths, dims and indices overflow. */
static void
replace(struct dice *d, struct bytes *b)
{
	static const unsigned char odd[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 0x08, 0x10};
	size_t at = below(d, b->n), run = 1 + below(d, 10);

	for (const unsigned char v = odd[below(d, sizeof odd)]; run-- && at < b->n; at++)
		b->data[at] = v;
}

/* Copy a run of bytes to another position, overwriting or inserting. */
static void
copy_run(struct dice *d, struct bytes *b, bool insert)
{
	const size_t run = 1 + below(d, b->n < 64 ? b->n : 64);
	const size_t from = below(d, b->n - run + 1), to = below(d, b->n - run + 1);
	unsigned char held[64];

	memcpy(held, b->data + from, run);
	if (insert) {
		memmove(b->data + to + run, b->data + to, b->n - to);
		b->n += run;
	}
	memcpy(b->data + to, held, run);
}

static void
take_out(struct dice *d, struct bytes *b)
{
	const size_t run = 1 + below(d, b->n < 64 ? b->n : 64), at = below(d, b->n - run + 1);

	memmove(b->data + at, b->data + at + run, b->n - at - run);
	b->n -= run;
}

/* Mostly changes that keep lengths valid, so that the damage is detected late.  `b` has capacity for 64
 * more bytes. */
static void
mutate(struct dice *d, struct bytes *b)
{
	bool longer = false;

	for (size_t n = 1 + below(d, 3) / 2; n-- && b->n; ) {
		switch (below(d, 20)) {
		case 0: b->n = below(d, b->n); break;
		case 1: take_out(d, b); break;
		case 2:
			if (!longer)
				copy_run(d, b, true);
			longer = true;
			break;
		case 3: case 4: copy_run(d, b, false); break;
		case 5: case 6: case 7: replace(d, b); break;
		default: b->data[below(d, b->n)] ^= (unsigned char)(1u << below(d, 8)); break;
		}
	}
}

static struct bytes
read_file(const char *path)
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
	struct bytes whole = read_file(path);
	struct dice d = {whole.n};

	if (!whole.n || try_one(h, s, &whole, folder) < IMPORTED) {
		printf("# %s is not taken as it is: %s\n", path, om_message(s));
		free(whole.data);
		return false;
	}
	struct bytes b = {.data = malloc(whole.n + 64)};
	for (unsigned k = 0; k < count; k++) {
		memcpy(b.data, whole.data, whole.n);
		b.n = whole.n;
		mutate(&d, &b);
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
