/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that stay in the file of their model: read at any address, written again, run. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mapping.h"
#include "base/shape.h"
#include "exec/exec_internal.h"
#include "onnxmodel.h"
#include "unit.h"

enum { ROWS = 160, COLUMNS = 128, COUNT = ROWS * COLUMNS };

static void
write_bytes(char *path, const void *data, size_t n)
{
	strcpy(path, "mapped-XXXXXX");
	const int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0 && write(fd, data, n) == (ssize_t)n);
	close(fd);
}

static uint8_t *
packed(const ProtobufCMessage *m, size_t *n)
{
	*n = protobuf_c_message_get_packed_size(m);
	uint8_t *to = malloc(*n + 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(to);
	protobuf_c_message_pack(m, to);
	return to;
}

static bool
is_same_message(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	size_t na, nb;
	uint8_t *x = packed(a, &na), *y = packed(b, &nb);
	const bool same = na == nb && memcmp(x, y, na) == 0;

	free(x);
	free(y);
	return same;
}

/* ---- Models. ---- */

static void
give_raw(struct made *b, Onnx__TensorProto *t, const void *data, size_t n)
{
	t->has_raw_data = true;
	t->raw_data = (ProtobufCBinaryData){n, om_memdup(b->mem, data, n)};
	b->g->initializer = om_memdup(b->mem, b->g->initializer, b->g->n_initializer * sizeof(void *));
	Onnx__TensorProto **list = OM_NEWN(b->mem, Onnx__TensorProto *, b->g->n_initializer + 1);
	for (size_t k = 0; k < b->g->n_initializer; k++)
		list[k] = b->g->initializer[k];
	list[b->g->n_initializer++] = t;
	b->g->initializer = list;
}

/* y = x w + a row of w.  The text moves the elements of w by its length. */
static struct made
made_product(const char *text)
{
	static float w[COUNT];
	struct made b = made_new(8, 17);
	Onnx__TensorProto *t = made_tensor(&b, "w", OM_FLOAT32, 2, (int64_t[]){ROWS, COLUMNS});
	Onnx__TensorProto *at = made_tensor(&b, "at", OM_INT64, 1, (int64_t[]){1});

	for (int k = 0; k < COUNT; k++)
		w[k] = (float)(k * 7919 % 1013) / 64;
	made_set(&b, &t->doc_string, text);
	made_set(&b, &b.g->name, text);
	give_raw(&b, t, w, sizeof w);
	give_raw(&b, at, (int64_t[]){3}, sizeof(int64_t));
	made_input(&b, b.g, "x", 2, (int64_t[]){2, ROWS});
	made_node(&b, b.g, "MatMul", "x w", "product");
	made_attr(&b, made_node(&b, b.g, "Gather", "w at", "row"), "axis", OM_ATTR_INT)->has_i = true;
	made_node(&b, b.g, "Add", "product row", "y");
	made_output(&b, b.g, "y");
	return b;
}

static bool
is_in_file(const om_model *m, const void *p)
{
	return (uintptr_t)p - (uintptr_t)m->whole->data < m->whole->size;
}

/* The result of running it; were its weights in a cache? */
static bool
run(bench *b, om_model *m, const om_exec_options *how, float y[2 * COLUMNS])
{
	float x[2 * ROWS];

	for (int k = 0; k < 2 * ROWS; k++)
		x[k] = (float)(k % 17) / 8;
	const om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){2, ROWS}), .data = x};
	CU_ASSERT_FATAL(is_ok(b->s, om_model_import(b->s, m, &b->p)));
	CU_ASSERT_FATAL(is_ok(b->s, om_host_run(b->h, b->p, om_default_pipeline())));
	CU_ASSERT_FATAL(is_ok(b->s, bench_exec(b, how)));
	CU_ASSERT_FATAL(is_ok(b->s, bench_run(b, &in, 1)));
	memcpy(y, om_exec_result(b->e, 0)->data, 2 * COLUMNS * sizeof *y);
	const bool is_cached = b->e->cache.map;
	bench_clear(b);
	return is_cached;
}

/* The model, at `path` and packed in memory, is the same at any address, and wherever it is read from. */
static void
compare_places(const struct made *b, const char *path, const void *data, size_t size)
{
	float want[2 * COLUMNS], got[2 * COLUMNS];
	bench t = bench_open();
	om_model *copied, *mapped;
	char digest[2][80];

	CU_ASSERT_EQUAL_FATAL(om_model_load_memory(t.s, data, size, "made", NULL, &copied), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_model_load(t.s, path, &mapped), OM_OK);
	CU_ASSERT(is_in_file(mapped, mapped->proto->graph->initializer[0]->raw_data.data));
	CU_ASSERT_FALSE(is_in_file(mapped, mapped->proto->graph->initializer[1]->raw_data.data));
	CU_ASSERT(is_same_message(&mapped->proto->base, &copied->proto->base));
	CU_ASSERT(is_same_message(&mapped->proto->base, &b->m->base));
	CU_ASSERT_EQUAL(om_model_digest(t.s, copied, true, digest[0]), OM_OK);
	CU_ASSERT_EQUAL(om_model_digest(t.s, mapped, true, digest[1]), OM_OK);
	CU_ASSERT_STRING_EQUAL(digest[0], digest[1]);
	for (int k = 0; k < NWAY; k++) {
		run(&t, copied, &ways[k], want);
		run(&t, mapped, &ways[k], got);
		CU_ASSERT_EQUAL(memcmp(want, got, sizeof want), 0);
	}
	om_model_free(copied);
	om_model_free(mapped);
	bench_close(&t);
}

static void
weights_lie_at_any_address(void)
{
	static const char text[] = "12345678";
	unsigned at = 0;

	for (size_t k = 0; k < 4; k++) {
		struct made b = made_product(text + k);
		size_t size;
		char path[32];
		uint8_t *data = packed(&b.m->base, &size);
		const uint8_t *w = memmem(data, size, b.g->initializer[0]->raw_data.data, 4096);
		CU_ASSERT_PTR_NOT_NULL_FATAL(w);
		at |= 1u << (w - data) % sizeof(float);
		write_bytes(path, data, size);
		compare_places(&b, path, data, size);
		unlink(path);
		free(data);
		made_free(&b);
	}
	CU_ASSERT_EQUAL(at, 15);  /* all addresses were tried */
}

/* y = rows of w, or w + x; the text moves the elements of w by its length. */
static struct made
made_table(const char *text, const char *op)
{
	static float w[COUNT];
	struct made b = made_new(8, 17);
	Onnx__TensorProto *t = made_tensor(&b, "w", OM_FLOAT32, 2, (int64_t[]){ROWS, COLUMNS});

	for (int k = 0; k < COUNT; k++)
		w[k] = (float)(k * 7919 % 1013) / 64;
	made_set(&b, &b.g->name, text);
	give_raw(&b, t, w, sizeof w);
	made_input(&b, b.g, "x", 2, (int64_t[]){1, COLUMNS});
	made_node(&b, b.g, "ArgMax", "x", "rows");
	made_node(&b, b.g, op, strcmp(op, "Gather") == 0 ? "w rows" : "w x", "y");
	made_output(&b, b.g, "y");
	return b;
}

/* Are the elements of w read from the file of the model?  `*is_right`: the output begins with a row of w. */
static bool
reads_file(const char *path, bool *is_right)
{
	static float x[COLUMNS];
	const om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){1, COLUMNS}), .data = x};
	bench t = bench_open();
	om_model *m;

	CU_ASSERT_EQUAL_FATAL(om_model_load(t.s, path, &m), OM_OK);
	CU_ASSERT_FATAL(is_ok(t.s, om_model_import(t.s, m, &t.p)));
	CU_ASSERT_FATAL(is_ok(t.s, om_host_run(t.h, t.p, om_default_pipeline())));
	CU_ASSERT_FATAL(is_ok(t.s, bench_exec(&t, &ways[0])));
	CU_ASSERT_FATAL(is_ok(t.s, bench_run(&t, &in, 1)));
	const float *y = om_exec_result(t.e, 0)->data;
	*is_right = y[1] == (float)(7919 % 1013) / 64;
	uint32_t k = 0;
	while (strcmp(t.p->values[k]->name, "w") != 0)
		k++;
	const bool is_there = is_in_file(m, t.e->slot[k].data);
	bench_clear(&t);
	om_model_free(m);
	bench_close(&t);
	return is_there;
}

static void
tables_are_read_at_any_address(void)
{
	static const char text[] = "12345678";
	bool is_right;
	int copied = 0;

	for (size_t k = 0; k < 8; k++) {
		struct made b = made_table(text + k % 4, k < 4 ? "Gather" : "Add");
		size_t size;
		char path[32];
		uint8_t *data = packed(&b.m->base, &size);
		write_bytes(path, data, size);
		const bool is_there = reads_file(path, &is_right);
		CU_ASSERT(is_right && (k >= 4 || is_there));
		copied += k >= 4 && !is_there;
		unlink(path);
		free(data);
		made_free(&b);
	}
	CU_ASSERT_EQUAL(copied, 3);  /* Add requires alignment */
}

/* Writing reads from the file that is mapped; a file of the same name takes its place. */
static void
files_are_replaced(void)
{
	struct made b = made_product("text");
	size_t size;
	uint8_t *data = packed(&b.m->base, &size);
	char path[32], other[40];
	om_model *m, *again;

	write_bytes(path, data, size);
	snprintf(other, sizeof other, "%s.new", path);
	CU_ASSERT_EQUAL_FATAL(om_model_load(b.s, path, &m), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_model_save(b.s, m, other), OM_OK);
	CU_ASSERT_EQUAL_FATAL(rename(other, path), 0);
	CU_ASSERT_EQUAL_FATAL(om_model_load(b.s, path, &again), OM_OK);
	unlink(path);
	CU_ASSERT(is_same_message(&m->proto->base, &b.m->base));
	CU_ASSERT(is_same_message(&again->proto->base, &b.m->base));
	om_model_free(m);
	om_model_free(again);
	free(data);
	made_free(&b);
}

/* What a program has of a large constant: a part that is small is aligned, as all small constants are. */
static void
small_parts_are_aligned(void)
{
	static const char text[] = "12345678";

	for (size_t k = 0; k < 4; k++) {
		struct made b = made_product(text + k);
		Onnx__TensorProto *shape = made_tensor(&b, "shape", OM_INT64, 1, (int64_t[]){1});
		size_t size;
		char path[32];
		bench t = bench_open();
		give_raw(&b, shape, (int64_t[]){COUNT}, sizeof(int64_t));
		give_raw(&b, made_tensor(&b, "one", OM_INT64, 1, (int64_t[]){1}), (int64_t[]){1}, sizeof(int64_t));
		give_raw(&b, made_tensor(&b, "two", OM_INT64, 1, (int64_t[]){1}), (int64_t[]){2}, sizeof(int64_t));
		made_node(&b, b.g, "Reshape", "w shape", "flat");
		made_node(&b, b.g, "Slice", "flat one two", "part");
		made_output(&b, b.g, "part");
		uint8_t *data = packed(&b.m->base, &size);
		write_bytes(path, data, size);
		CU_ASSERT_FATAL(is_ok(t.s, bench_load(&t, path)));
		CU_ASSERT_FATAL(is_ok(t.s, om_host_run(t.h, t.p, om_default_pipeline())));
		const om_value *part = om_value_find(t.p->first, "part");
		CU_ASSERT_PTR_NOT_NULL_FATAL(part->data);
		CU_ASSERT(om_tensor_is_aligned(part->data));
		CU_ASSERT_EQUAL(*(const float *)part->data->data, 7919 % 1013 / 64.0f);
		unlink(path);
		free(data);
		bench_close(&t);
		made_free(&b);
	}
}

/* ---- Cached weights. ---- */

/* Run the file with a cache; were the weights in it? */
static bool
run_cached(const char *path, const char *folder, float y[2 * COLUMNS])
{
	om_exec_options o = ways[PLANNED];
	bench b = bench_open();
	om_model *m;

	o.cache = folder;
	CU_ASSERT_FATAL(is_ok(b.s, om_model_load(b.s, path, &m)));
	const bool is_mapped = run(&b, m, &o, y);
	om_model_free(m);
	bench_close(&b);
	return is_mapped;
}

static void
change_weight(const char *path, const uint8_t *data, size_t size, const void *w)
{
	const uint8_t *at = memmem(data, size, w, 4096);
	FILE *f = fopen(path, "r+");

	CU_ASSERT_FATAL(f && at && fseek(f, at - data + 4, SEEK_SET) == 0);
	fwrite(&(float){100}, sizeof(float), 1, f);
	fclose(f);
}

/* The same graph with other weights, in the same place of a file of the same size. */
static void
cached_weights_follow_the_file(void)
{
	float y[3][2 * COLUMNS];
	char folder[] = "cache-XXXXXX", path[32], other[32];
	struct made b = made_product("123456");
	size_t size;
	uint8_t *data = packed(&b.m->base, &size);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	write_bytes(path, data, size);
	write_bytes(other, data, size);
	CU_ASSERT(((const uint8_t *)memmem(data, size, b.g->initializer[0]->raw_data.data, 4096) - data) % 4 != 0);  /* it is copied */
	CU_ASSERT_FALSE(run_cached(path, folder, y[0]));
	CU_ASSERT(run_cached(path, folder, y[1]));
	CU_ASSERT_EQUAL(memcmp(y[0], y[1], sizeof y[0]), 0);
	CU_ASSERT(run_cached(other, folder, y[1]));
	CU_ASSERT_EQUAL(memcmp(y[0], y[1], sizeof y[0]), 0);
	change_weight(path, data, size, b.g->initializer[0]->raw_data.data);
	CU_ASSERT_FALSE(run_cached(path, folder, y[1]));
	CU_ASSERT_NOT_EQUAL(memcmp(y[0], y[1], sizeof y[0]), 0);
	CU_ASSERT(run_cached(path, folder, y[2]));
	CU_ASSERT_EQUAL(memcmp(y[1], y[2], sizeof y[1]), 0);
	CU_ASSERT_FALSE(run_cached(other, folder, y[2]));
	CU_ASSERT_EQUAL(memcmp(y[0], y[2], sizeof y[0]), 0);
	unlink(path);
	unlink(other);
	snprintf(other, sizeof other, "rm -r %s", folder);
	CU_ASSERT_EQUAL(system(other), 0);
	free(data);
	made_free(&b);
}

/* ---- Messages. ---- */

struct wire {
	uint8_t byte[1024];
	size_t n;
};

static void
put(struct wire *to, const void *data, size_t n)
{
	memcpy(to->byte + to->n, data, n);
	to->n += n;
}

/* A field with a length of `digits` digits, some of which may be unnecessary. */
static void
put_field(struct wire *to, unsigned field, const void *data, size_t n, unsigned digits)
{
	to->byte[to->n++] = (uint8_t)(field << 3 | 2);
	for (unsigned k = 0; k < digits; k++)
		to->byte[to->n++] = (uint8_t)((n >> 7 * k & 0x7f) | (k + 1 < digits ? 0x80 : 0));
	put(to, data, n);
}

/* Raw data twice, of which the last counts, of the size of a reference too; lengths that are longer than
 * necessary; and something after all of it. */
static struct wire
made_wire(unsigned digits)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
	struct wire tensor = {.n = 0}, graph = {.n = 0}, model = {.n = 0};

	for (size_t n = 5; n < 26; n += 4) {
		tensor.n = 0;
		put_field(&tensor, 9, bytes, 25, digits);
		put_field(&tensor, 9, bytes + n - 5, n, digits);
		put_field(&tensor, 8, "name", 4, 1);
		if (n != 13)
			put_field(&graph, 5, tensor.byte, tensor.n, digits);
	}
	put_field(&model, 7, graph.byte, graph.n, digits + 1);
	put_field(&model, 2, "end", 3, digits);
	return model;
}

static void
raw_data_is_left_where_it_is(void)
{
	const ProtobufCMessageDescriptor *d = &onnx__model_proto__descriptor;

	for (unsigned digits = 1; digits < 5; digits++) {
		om_session *s = om_session_new();
		om_model *m = om_model_new("made", NULL);
		const struct wire w = made_wire(digits);
		ProtobufCMessage *copied, *there;
		CU_ASSERT_EQUAL_FATAL(om_model_unpack(s, m, d, w.byte, w.n, &copied), OM_OK);
		for (size_t large = 0; large < 40; large++) {
			CU_ASSERT_EQUAL_FATAL(om_model_unpack_in_place(s, m, d, w.byte, w.n, large, &there), OM_OK);
			CU_ASSERT(is_same_message(copied, there));
			const Onnx__GraphProto *g = ((Onnx__ModelProto *)there)->graph;
			for (size_t k = 0; k < g->n_initializer; k++) {
				const ProtobufCBinaryData *raw = &g->initializer[k]->raw_data;
				if (large <= 25 && raw->len >= large && raw->len > 9)
					CU_ASSERT((uintptr_t)raw->data - (uintptr_t)w.byte < w.n);
			}
		}
		om_model_free(m);
		om_session_free(s);
	}
}

/* ---- Pages. ---- */

/* Dropping them changes no byte, of a file or of other memory. */
static void
dropped_pages_are_read_again(void)
{
	enum { SIZE = 300000 };
	om_arena *mem = om_arena_new();
	struct om_mappings l = {0};
	unsigned char *own = malloc(SIZE), *copy = malloc(SIZE);
	char path[32];

	CU_ASSERT_FATAL(own && copy);
	for (size_t k = 0; k < SIZE; k++)
		own[k] = (unsigned char)(k % 251);
	write_bytes(path, own, SIZE);
	FILE *f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	unsigned char *map = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fileno(f), 0);
	CU_ASSERT_FATAL(map != MAP_FAILED);
	om_mappings_drop(NULL, own, SIZE);
	om_mappings_drop_all(NULL);
	om_mappings_add(&l, mem, map, SIZE, (struct om_file_state){.size = SIZE});
	om_mappings_add(&l, mem, NULL, 0, (struct om_file_state){0});
	for (size_t from = 0; from < SIZE; from += 70001) {
		memset(copy, 0, SIZE);
		om_mappings_move(&l, copy, map + from, SIZE - from);
		CU_ASSERT_EQUAL(memcmp(copy, own + from, SIZE - from), 0);
		om_mappings_drop(&l, map + from, SIZE);
		om_mappings_drop(&l, own + from, SIZE - from);
		CU_ASSERT_EQUAL(memcmp(map, own, SIZE), 0);
	}
	om_mappings_drop_all(&l);
	CU_ASSERT_EQUAL(memcmp(map, own, SIZE), 0);
	munmap(map, SIZE);
	fclose(f);
	unlink(path);
	free(own);
	free(copy);
	om_arena_free(mem);
}

static CU_TestInfo mapped_tests[] = {
	{"weights lie at any address", weights_lie_at_any_address},
	{"tables are read at any address", tables_are_read_at_any_address},
	{"files are replaced", files_are_replaced},
	{"small parts of large constants are aligned", small_parts_are_aligned},
	{"cached weights follow the file", cached_weights_follow_the_file},
	{"raw data is left where it is", raw_data_is_left_where_it_is},
	{"dropped pages are read again", dropped_pages_are_read_again},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("mapped files", mapped_tests);
