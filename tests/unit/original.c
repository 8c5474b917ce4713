/* SPDX-License-Identifier: Apache-2.0 */
/* Models that keep the file that they were planned from. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "onnx/annotate.h"
#include "onnx/model.h"
#include "tests/bind.h"
#include "tests/fixtures.h"
#include "unit.h"

#define MODELS OM_SRCDIR "/models/"

static const char *const models[] = {
	"branches.onnx", "digits.onnx", "dynamic.onnx", "function.onnx", "loop.onnx", "names.onnx", "quant.onnx", "unsorted.onnx",
};

struct file {
	char *data;
	size_t size;
};

static struct file
read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct file to = {0};

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fseek(f, 0, SEEK_END);
	to.size = (size_t)ftell(f);
	rewind(f);
	to.data = malloc(to.size + 1);
	CU_ASSERT_EQUAL_FATAL(fread(to.data, 1, to.size, f), to.size);
	fclose(f);
	return to;
}

static void
write_file(const char *path, const char *data, size_t size)
{
	FILE *f = fopen(path, "wb");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(data, 1, size, f), size);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

static bool
is_same_file(const char *one, const char *other)
{
	struct file a = read_file(one), b = read_file(other);
	const bool same = a.size == b.size && memcmp(a.data, b.data, a.size) == 0;

	free(a.data);
	free(b.data);
	return same;
}

static char *
temporary_name(om_arena *mem)
{
	char *path = om_printf(mem, "/tmp/onnxmem-original-XXXXXX");
	const int fd = mkstemp(path);

	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	return path;
}

/* Plan `in`; `*entry_at` is where the entry is in the file `out`. */
static om_status
plan_file(const char *in, const char *out, unsigned how, size_t *entry_at)
{
	bench t = bench_open();
	om_status st = om_model_load(t.s, in, &t.model);

	if (st == OM_OK)
		st = om_model_import(t.s, t.model, &t.p);
	if (st == OM_OK)
		st = bind_rest(t.s, t.p, 2);
	if (st == OM_OK)
		st = om_host_run(t.h, t.p, om_default_pipeline());
	if (st == OM_OK)
		st = om_model_annotate(t.s, t.model, t.p, how);
	if (st == OM_OK)
		st = om_model_save(t.s, t.model, out);
	if (st == OM_OK)
		*entry_at = onnx__model_proto__get_packed_size(t.model->proto);
	bench_close(&t);
	return st;
}

/* The status of restoring what `planned` was made from. */
static om_status
restore(const char *planned, const char *out)
{
	om_session *s = om_session_new();
	om_model *m = NULL;
	om_status st = om_model_load(s, planned, &m);

	if (st == OM_OK)
		st = om_model_save_original(s, m, out);
	om_model_free(m);
	om_session_free(s);
	return st;
}

enum { KEEP = OM_ANNOTATE_MODEL | OM_ANNOTATE_ORIGINAL };

/* Once planned, and planned again. */
static void
test_comes_back(void)
{
	om_arena *mem = om_arena_new();
	const char *once = temporary_name(mem), *twice = temporary_name(mem), *back = temporary_name(mem);
	size_t at;

	for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
		const char *in = om_printf(mem, MODELS "%s", models[k]);
		CU_ASSERT_EQUAL(plan_file(in, once, KEEP, &at), OM_OK);
		CU_ASSERT_EQUAL(restore(once, back), OM_OK);
		CU_ASSERT(is_same_file(in, back));
		CU_ASSERT_EQUAL(plan_file(once, twice, KEEP, &at), OM_OK);
		CU_ASSERT_EQUAL(restore(twice, back), OM_OK);
		CU_ASSERT(is_same_file(in, back));
	}
	unlink(once);
	unlink(twice);
	unlink(back);
	om_arena_free(mem);
}

/* A plan in a model that does not keep its original does not become the original of the next one. */
static void
test_is_not_made_up(void)
{
	om_arena *mem = om_arena_new();
	const char *once = temporary_name(mem), *twice = temporary_name(mem), *back = temporary_name(mem);
	size_t at;

	CU_ASSERT_EQUAL(plan_file(MODELS "loop.onnx", once, OM_ANNOTATE_MODEL, &at), OM_OK);
	CU_ASSERT_EQUAL(restore(once, back), OM_INVALID);
	CU_ASSERT_EQUAL(plan_file(once, twice, KEEP, &at), OM_OK);
	CU_ASSERT_EQUAL(restore(twice, back), OM_INVALID);
	unlink(once);
	unlink(twice);
	unlink(back);
	om_arena_free(mem);
}

/* Another writer puts the entry before the other fields; or adds a field at the end, or at the start, where the rest is moved. */
static void
test_entry_elsewhere(void)
{
	static const char field[] = {0x32, 2, 'h', 'i'};    /* ModelProto.doc_string */
	om_arena *mem = om_arena_new();
	const char *planned = temporary_name(mem), *other = temporary_name(mem), *back = temporary_name(mem);
	size_t at;

	CU_ASSERT_EQUAL_FATAL(plan_file(MODELS "branches.onnx", planned, KEEP, &at), OM_OK);
	struct file f = read_file(planned);
	CU_ASSERT_FATAL(at < f.size);
	char *moved = om_allocn(mem, f.size + sizeof field, 1);
	memcpy(moved, f.data + at, f.size - at);
	memcpy(moved + f.size - at, f.data, at);
	write_file(other, moved, f.size);
	CU_ASSERT_EQUAL(restore(other, back), OM_OK);
	CU_ASSERT(is_same_file(MODELS "branches.onnx", back));
	memcpy(moved, f.data, f.size);
	memcpy(moved + f.size, field, sizeof field);
	write_file(other, moved, f.size + sizeof field);
	CU_ASSERT_EQUAL(restore(other, back), OM_OK);
	CU_ASSERT(is_same_file(MODELS "branches.onnx", back));
	memcpy(moved, field, sizeof field);
	memcpy(moved + sizeof field, f.data, f.size);
	write_file(other, moved, f.size + sizeof field);
	CU_ASSERT_EQUAL(restore(other, back), OM_STALE);
	free(f.data);
	unlink(planned);
	unlink(other);
	unlink(back);
	om_arena_free(mem);
}

static CU_TestInfo tests[] = {
	{"the file comes back, also of what was planned twice", test_comes_back},
	{"a plan is not kept as an original", test_is_not_made_up},
	{"an entry that another writer moved", test_entry_elsewhere},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("original files in models", tests);
