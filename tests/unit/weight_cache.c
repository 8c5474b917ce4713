/* SPDX-License-Identifier: Apache-2.0 */
/* Files with the weights of an executor: made, mapped, damaged, written by several processes. */
#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fast_hash.h"
#include "exec/exec_internal.h"
#include "unit.h"

enum { SIDE = 160, COUNT = SIDE * SIDE };

/* The weights depend on `first`. */
static char *
text_of(char *text, size_t size, int first)
{
	snprintf(text, size, "program \"t\" ir 8 opset 18\n^g(%%x: float32[%d,%d]) {\n"
		"\t%%axis = const int64[] {0}\n\t%%c = const float32[%d,%d] splat {%d.0}\n"
		"\t%%sum = CumSum(%%c, %%axis)\n\t%%turned = Transpose(%%sum)\n\t%%other = CumSum(%%turned, %%axis)\n"
		"\t%%shape = const int64[2] {%d, %d}\n\t%%view = Reshape(%%other, %%shape)\n"
		"\t%%a = Mul(%%x, %%turned)\n\t%%y = Add(%%a, %%view)\n\tret %%y\n}\n", SIDE, SIDE, SIDE, SIDE, first, SIDE, SIDE);
	return text;
}

/* A folder of this process, and what the executor does with it. */
struct place {
	char folder[128], file[512];
};

static struct place
place_new(void)
{
	struct place at = {.folder = "cache-XXXXXX"};

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(at.folder));
	return at;
}

/* The number of files, of which the name of one is stored. */
static unsigned
count_files(struct place *at)
{
	DIR *d = opendir(at->folder);
	unsigned n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	for (struct dirent *f; (f = readdir(d));)
		if (f->d_name[0] != '.') {
			snprintf(at->file, sizeof at->file, "%s/%s", at->folder, f->d_name);
			n++;
		}
	closedir(d);
	return n;
}

static void
place_free(struct place *at)
{
	while (count_files(at))
		CU_ASSERT_EQUAL_FATAL(remove(at->file), 0);
	rmdir(at->folder);
}

/* Run with the cache; were the weights in a file, and is the result right? */
static bool
run(const char *folder, int first, const om_exec_options *how, bool *is_right)
{
	bench b = bench_open();
	om_exec_options o = *how;
	float x[COUNT];
	char text[1024];

	for (int k = 0; k < COUNT; k++)
		x[k] = 2;
	const om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){SIDE, SIDE}), .data = x};
	o.cache = folder;
	*is_right = bench_plan(&b, text_of(text, sizeof text, first), om_default_pipeline()) == OM_OK
	    && bench_exec(&b, &o) == OM_OK && bench_run(&b, &in, 1) == OM_OK;
	const bool is_mapped = *is_right && b.e->cache.map;
	for (int k = 0; k < COUNT && *is_right; k++) {
		const float turned = (float)(first * (k % SIDE + 1));
		*is_right = element_at(om_exec_result(b.e, 0), k) == (double)(2 * turned + turned * (float)(k / SIDE + 1));
	}
	*is_right = *is_right && om_exec_get_stats(b.e)->weight_bytes == 2 * sizeof x;
	bench_close(&b);
	return is_mapped;
}

static bool
is_mapped(const char *folder, int first)
{
	bool is_right;
	const bool mapped = run(folder, first, &ways[PLANNED], &is_right);

	CU_ASSERT(is_right);
	return mapped;
}

static void
weights_are_made_once(void)
{
	struct place at = place_new();

	CU_ASSERT_FALSE(is_mapped(at.folder, 1));
	CU_ASSERT_EQUAL(count_files(&at), 1);
	for (int k = 0; k < NWAY; k++) {
		bool is_right;
		CU_ASSERT(run(at.folder, 1, &ways[k], &is_right));
		CU_ASSERT(is_right);
	}
	CU_ASSERT_FALSE(is_mapped(at.folder, 2));  /* other weights are in another file */
	CU_ASSERT(is_mapped(at.folder, 2));
	CU_ASSERT(is_mapped(at.folder, 1));
	CU_ASSERT_EQUAL(count_files(&at), 2);
	place_free(&at);
}

/* ---- Damage. ---- */

static long
size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (long)st.st_size : -1;
}

static void
flip(const char *path, long at)
{
	FILE *f = fopen(path, "r+");

	CU_ASSERT_FATAL(f && fseek(f, at, SEEK_SET) == 0);
	const int c = getc(f);
	fseek(f, at, SEEK_SET);
	putc(c ^ 4, f);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

static void
is_replaced(struct place *at, const char *what)
{
	const bool bad = is_mapped(at->folder, 1), good = is_mapped(at->folder, 1);

	if (bad || !good)
		printf("# %s: %s, then %s\n", what, bad ? "used" : "made anew", good ? "used" : "made anew");
	CU_ASSERT(!bad && good);
	CU_ASSERT_EQUAL(count_files(at), 1);
}

static void
damaged_files_are_replaced(void)
{
	struct place at = place_new();
	char what[64];

	CU_ASSERT_FALSE(is_mapped(at.folder, 1));
	CU_ASSERT_EQUAL_FATAL(count_files(&at), 1);
	const long size = size_of(at.file);
	for (long k = 0; k < size; k = k < 256 ? k + 5 : k + size / 13) {
		if (k >= 241 && k < 4096)
			continue;  /* unused */
		flip(at.file, k);
		snprintf(what, sizeof what, "bit of byte %ld", k);
		is_replaced(&at, what);
	}
	for (long k = 0; k <= size + 8; k = k == size - 1 ? size + 1 : k < 8192 ? k + 4096 : k + (size - 1 - k > 40000 ? 40000 : size - 1 - k > 0 ? size - 1 - k : 7)) {
		CU_ASSERT_EQUAL(truncate(at.file, k), 0);
		snprintf(what, sizeof what, "%ld bytes", k);
		is_replaced(&at, what);
	}
	place_free(&at);
}

/* ---- Folders. ---- */

static void
folders_need_not_be_writable(void)
{
	struct place at = place_new();
	char path[192];

	snprintf(path, sizeof path, "%s/new", at.folder);
	CU_ASSERT_FALSE(is_mapped(path, 1));
	CU_ASSERT(is_mapped(path, 1));                  /* the folder was made */
	chmod(path, 0555);
	CU_ASSERT(is_mapped(path, 1));
	CU_ASSERT_FALSE(is_mapped(path, 2));            /* root may write all the same */
	chmod(path, 0777);
	struct place inner = {.file = ""};
	snprintf(inner.folder, sizeof inner.folder, "%.100s/new", at.folder);
	while (count_files(&inner))
		CU_ASSERT_EQUAL_FATAL(remove(inner.file), 0);
	snprintf(path, sizeof path, "%s/none/below", at.folder);
	CU_ASSERT_FALSE(is_mapped(path, 1));
	CU_ASSERT_FALSE(is_mapped(path, 1));
	snprintf(path, sizeof path, "%s/file", at.folder);
	FILE *f = fopen(path, "w");
	CU_ASSERT_FATAL(f && fclose(f) == 0);
	CU_ASSERT_FALSE(is_mapped(path, 1));
	CU_ASSERT_EQUAL(size_of(path), 0);
	place_free(&at);
}

/* ---- Files of the model. ---- */

struct elements {
	uint64_t hash;
	unsigned asked;
};

static uint64_t
hash_of(void *arg)
{
	struct elements *e = arg;

	e->asked++;
	return e->hash;
}

/* How often the elements are read when a file with this state is opened; -1: it is not valid. */
static int
opens(struct om_weight_cache *c, const char *files, struct elements *e)
{
	e->asked = 0;
	snprintf(c->files, sizeof c->files, "%064d", atoi(files));
	if (!om_weight_cache_open(c))
		return -1;
	om_weight_cache_close(c);
	return (int)e->asked;
}

/* Elements are read only if the files may have changed since. */
static void
elements_decide_when_files_change(void)
{
	static const char block[5000] = "weights";
	struct place at = place_new();
	struct elements e = {.hash = 7};
	struct om_weight_cache c = {.session = om_session_new(), .folder = at.folder, .bytes = sizeof block, .hash = hash_of,
		.arg = &e, .is_settled = false};

	snprintf(c.key, sizeof c.key, "%064d", 1);
	CU_ASSERT_EQUAL(opens(&c, "1", &e), -1);
	om_weight_cache_write(&c, block);
	CU_ASSERT_EQUAL(opens(&c, "1", &e), 1);   /* the files were changed a moment ago */
	CU_ASSERT_EQUAL(opens(&c, "1", &e), 1);
	c.is_settled = true;
	CU_ASSERT_EQUAL(opens(&c, "1", &e), 1);
	CU_ASSERT_EQUAL(opens(&c, "1", &e), 0);
	e.hash = 8;
	CU_ASSERT_EQUAL(opens(&c, "1", &e), 0);
	CU_ASSERT_EQUAL(opens(&c, "2", &e), -1);
	e.hash = 7;
	CU_ASSERT_EQUAL(opens(&c, "2", &e), 1);   /* moved, with the same elements */
	CU_ASSERT_EQUAL(opens(&c, "2", &e), 0);
	CU_ASSERT_EQUAL(opens(&c, "1", &e), 1);
	c.bytes--;
	CU_ASSERT_EQUAL(opens(&c, "1", &e), -1);
	om_session_free(c.session);
	place_free(&at);
}

/* ---- Processes. ---- */

static void
processes_write_the_same_file(void)
{
	enum { PROCESSES = 6, RUNS = 5 };
	struct place at = place_new();
	pid_t child[PROCESSES];

	fflush(stdout);
	for (int k = 0; k < PROCESSES; k++) {
		child[k] = fork();
		CU_ASSERT_FATAL(child[k] >= 0);
		if (child[k] > 0)
			continue;
		bool all = true;
		for (int i = 0; i < RUNS; i++) {
			bool is_right;
			run(at.folder, 1 + (i + k) % 2, &ways[PLANNED], &is_right);
			all &= is_right;
			if (i == k % RUNS && count_files(&at))
				remove(at.file);
		}
		_exit(all ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	for (int k = 0; k < PROCESSES; k++) {
		int st;
		CU_ASSERT_EQUAL(waitpid(child[k], &st, 0), child[k]);
		CU_ASSERT_EQUAL(st, 0);
	}
	for (int first = 1; first <= 2; first++) {
		is_mapped(at.folder, first);
		CU_ASSERT(is_mapped(at.folder, first));
	}
	place_free(&at);
}

/* ---- The hash. ---- */

static void
changes_are_noticed(void)
{
	unsigned char byte[200] = {0};
	const uint64_t before = om_fast_hash(0, byte, sizeof byte);

	for (size_t n = 0; n < sizeof byte; n++) {
		CU_ASSERT_NOT_EQUAL(om_fast_hash(0, byte, n), om_fast_hash(0, byte, n + 1));
		CU_ASSERT_NOT_EQUAL(om_fast_hash(om_fast_hash(0, byte, n), byte, sizeof byte - n), om_fast_hash(1, byte, n));
	}
	for (size_t k = 0; k < 8 * sizeof byte; k++) {
		byte[k / 8] ^= (unsigned char)(1u << k % 8);
		CU_ASSERT_NOT_EQUAL(om_fast_hash(0, byte, sizeof byte), before);
		byte[k / 8] ^= (unsigned char)(1u << k % 8);
	}
	CU_ASSERT_EQUAL(om_fast_hash(0, byte, sizeof byte), before);
}

static CU_TestInfo cache_tests[] = {
	{"weights are made once", weights_are_made_once},
	{"damaged files are replaced", damaged_files_are_replaced},
	{"folders need not be writable", folders_need_not_be_writable},
	{"elements decide when files change", elements_decide_when_files_change},
	{"processes write the same file", processes_write_the_same_file},
	{"changes are noticed", changes_are_noticed},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("cached weights", cache_tests);
