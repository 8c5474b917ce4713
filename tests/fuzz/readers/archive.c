/* SPDX-License-Identifier: Apache-2.0 */
/* Archives, unpacked in a folder of this process, from which everything is removed after each input. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hub/hub_module.h"
#include "reader.h"

static char folder[4096];

static void
remove_own(void)
{
	om_remove_folder(folder);
}

static void
make_own(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/readers.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		perror(folder);
		abort();
	}
	atexit(remove_own);
}

static bool
write_archive(const char *path, const uint8_t *data, size_t size)
{
	FILE *f = fopen(path, "wb");
	const bool good = f && fwrite(data, 1, size, f) == size;

	return f && fclose(f) == 0 && good;
}

/* What was unpacked is used again as it is, and unpacked once more if its list of checksums is damaged. */
static void
unpack_again(om_hub *h, const char *path)
{
	const char *unpacked;

	for (int k = 0; k < 2; k++) {
		if (!reader_says(h->session, om_unpack_archive(h, path, &unpacked))) {
			fprintf(stderr, "unpacked once, and then: %s\n", om_message(h->session));
			abort();
		}
		if (k == 0) {
			FILE *sums = fopen(om_printf(h->mem, "%s.sums", unpacked), "a");
			if (sums) {
				fputs("damaged\n", sums);
				fclose(sums);
			}
		}
	}
}

bool
reader_takes(const uint8_t *data, size_t size)
{
	enum { UNPACK_LIMIT = 1 << 16 };

	if (!*folder)
		make_own();
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_hub h = {.session = s, .mem = mem, .unpack_limit = UNPACK_LIMIT};
	const char *path = om_printf(mem, "%s/a.tar.gz", folder), *unpacked;

	if (!write_archive(path, data, size)) {
		perror(path);
		abort();
	}
	const bool good = reader_says(s, om_unpack_archive(&h, path, &unpacked));
	if (good) {
		unpack_again(&h, path);
		om_remove_folder(unpacked);
		unlink(om_printf(mem, "%s.sums", unpacked));
	}
	om_arena_free(mem);
	om_session_free(s);
	return good;
}
