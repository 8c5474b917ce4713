/* SPDX-License-Identifier: Apache-2.0 */
/* Models into programs and back: what is taken, and what is refused how. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnxmodel.h"
#include "unit.h"
#include "exec/runnable.h"
#include "ir/edit.h"

#define SAYS(b, word) CU_ASSERT(made_says((b), (word)) || (printf("# said: %s\n", om_message((b)->s)), false))

/* ---- Names and order. ---- */

static void
made_chain(struct made *b)
{
	made_input(b, b->g, "x", 1, (int64_t[]){4});
	made_node(b, b->g, "Relu", "x", "a");
	made_node(b, b->g, "Relu", "a", "y");
	made_output(b, b->g, "y");
}

static void
undefined_names_are_named(void)
{
	struct made b = made_new(8, 17);

	made_chain(&b);
	made_set(&b, &b.g->node[1]->input[0], "missing");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "missing");
	made_set(&b, &b.g->node[1]->input[0], "a");
	made_set(&b, &b.g->output[0]->name, "nowhere");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "nowhere");
	made_free(&b);
}

static void
names_are_defined_once(void)
{
	struct made b = made_new(8, 17);

	made_chain(&b);
	made_set(&b, &b.g->node[1]->output[0], "a");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "a is defined twice");
	made_set(&b, &b.g->node[1]->output[0], "x");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "x is defined twice");
	made_set(&b, &b.g->node[1]->output[0], "y");
	made_init(&b, b.g, "w", 1, (float[]){1});
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_OK);
	made_init(&b, b.g, "w", 1, (float[]){2});
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "duplicate initializer w");
	made_free(&b);
}

/* An If whose branches hand `from` over through an Identity to `to`. */
static Onnx__NodeProto *
made_if(struct made *b, Onnx__GraphProto *g, const char *from, const char *to)
{
	Onnx__NodeProto *n = made_node(b, g, "If", "which", to);
	static const char *const names[] = {"then_branch", "else_branch"};

	for (int k = 0; k < 2; k++) {
		Onnx__GraphProto *body = made_graph(b, names[k]);
		made_node(b, body, "Identity", from, "inner");
		made_output(b, body, "inner");
		made_attr(b, n, names[k], OM_ATTR_GRAPH)->g = body;
	}
	return n;
}

static void
cycles_are_refused(void)
{
	struct made b = made_new(8, 17);

	made_input(&b, b.g, "x", 1, (int64_t[]){4});
	made_node(&b, b.g, "Add", "x c", "a");
	made_node(&b, b.g, "Relu", "a", "c");
	made_output(&b, b.g, "c");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "cycle");
	made_free(&b);
	b = made_new(8, 17);
	made_input(&b, b.g, "which", 0, NULL);
	made_if(&b, b.g, "y", "y");
	made_output(&b, b.g, "y");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "cycle");
	made_free(&b);
}

static void
nodes_are_sorted_stably(void)
{
	static const char *const want[] = {"Relu", "Exp", "If", "Neg", "Abs"};
	struct made b = made_new(8, 17);
	om_model *m;
	om_prog *p;
	size_t k = 0;

	made_input(&b, b.g, "which", 0, NULL);
	made_input(&b, b.g, "x", 1, (int64_t[]){4});
	made_if(&b, b.g, "late", "chosen");
	made_node(&b, b.g, "Neg", "x", "n");
	made_node(&b, b.g, "Exp", "early", "late");
	made_node(&b, b.g, "Relu", "x", "early");
	made_node(&b, b.g, "Abs", "x", "o");
	made_output(&b, b.g, "chosen");
	CU_ASSERT_EQUAL_FATAL(made_load(&b, NULL, &m, &p), OM_OK);
	for (const om_op *op = p->first->first; op; op = op->next)
		CU_ASSERT_STRING_EQUAL(op->type, want[k++]);
	om_prog_free(p);
	om_model_free(m);
	made_free(&b);
}

static void
scopes_are_kept(void)
{
	struct made b = made_new(8, 17);
	Onnx__NodeProto *n;

	made_input(&b, b.g, "which", 0, NULL);
	made_input(&b, b.g, "x", 1, (int64_t[]){4});
	n = made_if(&b, b.g, "x", "y");
	made_output(&b, b.g, "y");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_OK);
	Onnx__GraphProto *body = n->attribute[0]->g;
	made_set(&b, &body->node[0]->output[0], "x");
	made_set(&b, &body->output[0]->name, "x");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "x is already defined");
	made_set(&b, &body->node[0]->output[0], "y");  /* not seen inside, so free */
	made_set(&b, &body->output[0]->name, "y");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_OK);
	made_set(&b, &body->output[0]->name, "x");
	body->n_node = 0;
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "Identity");
	made_free(&b);
}

/* ---- Initializers, attributes, operators. ---- */

static void
weights_of_old_files_are_no_inputs(void)
{
	for (int ir = 3; ir <= 4; ir++) {
		struct made b = made_new(ir, 9);
		om_model *m;
		om_prog *p;
		made_chain(&b);
		made_input(&b, b.g, "w", 1, (int64_t[]){2});
		made_init(&b, b.g, "w", 2, (float[]){1, 2});
		CU_ASSERT_EQUAL_FATAL(made_load(&b, NULL, &m, &p), OM_OK);
		const om_value *w = om_value_find(p->first, "w");
		CU_ASSERT_EQUAL(p->first->nparam, ir == 3 ? 1 : 2);
		CU_ASSERT_EQUAL(w->is_const, ir == 3);
		CU_ASSERT_EQUAL(w->is_overridable, ir == 4);
		CU_ASSERT(w->data && ((const float *)w->data->data)[1] == 2);
		om_prog_free(p);
		om_model_free(m);
		made_free(&b);
	}
}

static void
attributes_are_checked(void)
{
	struct made b = made_new(8, 17);
	Onnx__NodeProto *n;

	made_input(&b, b.g, "x", 1, (int64_t[]){4});
	n = made_node(&b, b.g, "Concat", "x x", "y");
	made_output(&b, b.g, "y");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "axis is missing");
	Onnx__AttributeProto *a = made_attr(&b, n, "axis", OM_ATTR_FLOAT);
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "axis is a float");
	a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;  /* its zero was not written */
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_OK);
	a->type = (Onnx__AttributeProto__AttributeType)77;
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_UNSUPPORTED);
	a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
	made_attr(&b, n, "axis", OM_ATTR_INT);
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "duplicate attribute axis");
	made_free(&b);
}

static void
inputs_are_counted(void)
{
	struct made b = made_new(8, 17);
	Onnx__NodeProto *n;

	made_input(&b, b.g, "x", 1, (int64_t[]){4});
	n = made_node(&b, b.g, "Relu", "x x", "y");
	made_output(&b, b.g, "y");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "has 2 inputs");
	n->n_input = 0;
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	n->n_input = 1;
	made_set(&b, &n->input[0], "");
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	SAYS(&b, "omitted");
	made_free(&b);
}

static void
unknown_operators_stay(void)
{
	struct made b = made_new(8, 17);
	om_model *m;
	om_prog *p;

	made_input(&b, b.g, "x", 1, (int64_t[]){4});
	Onnx__NodeProto *n = made_node(&b, b.g, "Frob", "x", "y");
	made_set(&b, &n->domain, "com.example");
	made_set(&b, &n->name, "strange");
	made_output(&b, b.g, "y");
	CU_ASSERT_EQUAL_FATAL(made_load(&b, NULL, &m, &p), OM_OK);
	CU_ASSERT_PTR_NULL(p->first->first->opdef);
	CU_ASSERT_EQUAL(om_prog_is_runnable(b.s, p), OM_UNSUPPORTED);
	SAYS(&b, "strange");
	SAYS(&b, "com.example::Frob version 0");
	om_prog_free(p);
	om_model_free(m);
	made_free(&b);
}

/* ---- Damaged files. ---- */

static om_status
load_bytes(om_session *s, const void *data, size_t size)
{
	om_model *m;
	const om_status st = om_model_load_memory(s, data, size, "bytes", NULL, &m);

	CU_ASSERT((st == OM_OK) == (m != NULL));
	om_model_free(m);
	return st;
}

static void
other_files_are_no_models(void)
{
	om_session *s = om_session_new();
	static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";

	CU_ASSERT_EQUAL(load_bytes(s, "", 0), OM_MALFORMED);
	CU_ASSERT_EQUAL(load_bytes(s, "<html>", 6), OM_MALFORMED);
	CU_ASSERT_EQUAL(load_bytes(s, "\x08\x08", 2), OM_MALFORMED);
	CU_ASSERT_EQUAL(load_bytes(s, pointer, sizeof pointer - 1), OM_MALFORMED);
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(s), "LFS"));
	CU_ASSERT_EQUAL(load_bytes(s, "\x3a\x7f", 2), OM_MALFORMED);
	CU_ASSERT_EQUAL(load_bytes(s, "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11), OM_MALFORMED);
	CU_ASSERT_EQUAL(load_bytes(s, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12), OM_MALFORMED);
	om_session_free(s);
}

static void
versions_are_checked(void)
{
	struct made b = made_new(8, 17);

	made_chain(&b);
	b.m->ir_version = 99;
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_UNSUPPORTED);
	SAYS(&b, "IR version 99");
	b.m->has_ir_version = false;
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	b.m->has_ir_version = true;
	b.m->ir_version = 8;
	b.m->opset_import[0]->version = -1;
	CU_ASSERT_EQUAL(made_load(&b, NULL, NULL, NULL), OM_INVALID);
	made_free(&b);
}

static om_status
load_nested(int depth)
{
	struct made b = made_new(8, 17);
	Onnx__GraphProto *g = b.g;

	made_input(&b, g, "which", 0, NULL);
	for (int k = 0; k < depth; k++) {
		const char *out = om_printf(b.mem, "y%d", k);
		Onnx__NodeProto *n = made_node(&b, g, "If", "which", out);
		made_output(&b, g, out);
		g = made_attr(&b, n, "then_branch", OM_ATTR_GRAPH)->g = made_graph(&b, "g");
		Onnx__GraphProto *other = made_attr(&b, n, "else_branch", OM_ATTR_GRAPH)->g = made_graph(&b, "e");
		made_node(&b, other, "Identity", "which", "e");
		made_output(&b, other, "e");
	}
	made_node(&b, g, "Identity", "which", "last");
	made_output(&b, g, "last");
	const om_status st = made_load(&b, NULL, NULL, NULL);
	CU_ASSERT(st == OM_OK || made_says(&b, "nested"));
	made_free(&b);
	return st;
}

static void
deep_nesting_is_refused(void)
{
	unsigned char *deep = malloc(300000);
	om_session *s = om_session_new();
	size_t n = 300000;

	CU_ASSERT_EQUAL(load_nested(30), OM_OK);
	CU_ASSERT_EQUAL(load_nested(40), OM_UNSUPPORTED);
	/* Sequences of sequences, written from the inside: type in type in type. */
	for (int k = 0; n > 100; k++) {
		const size_t size = 300000 - n;
		const unsigned char tag = k % 2 ? 0x22 : 0x0a;
		size_t len = 0;
		unsigned char head[8];
		head[len++] = tag;
		for (size_t v = size; ; v >>= 7) {
			head[len++] = (unsigned char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
			if (v <= 0x7f)
				break;
		}
		n -= len;
		memcpy(deep + n, head, len);
	}
	CU_ASSERT_NOT_EQUAL(om_wire_check(s, "deep", &onnx__type_proto__descriptor, deep + n, 300000 - n), OM_OK);
	om_session_free(s);
	free(deep);
}

/* A message of two bytes makes a structure of hundreds. */
static void
bombs_are_refused(void)
{
	enum { SIZE = 4 << 20 };
	unsigned char *data = malloc(SIZE);
	om_session *s = om_session_new();

	data[0] = 0x3a;  /* graph */
	data[1] = 0xfb; data[2] = 0xff; data[3] = 0xff; data[4] = 0x01;
	for (size_t k = 5; k < SIZE; k += 2) {
		data[k] = 0x0a;  /* an empty node */
		data[k + 1 < SIZE ? k + 1 : k] = 0;
	}
	CU_ASSERT_EQUAL(load_bytes(s, data, SIZE), OM_MALFORMED);
	om_session_free(s);
	free(data);
}

/* ---- External data. ---- */

struct place {
	om_arena *mem;
	char *folder;
};

static const char *
in(struct place *at, const char *name)
{
	return om_printf(at->mem, "%s/%s", at->folder, name);
}

static void
write_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fwrite(data, 1, n, f);
	fclose(f);
}

/* FOLDER/in/data, FOLDER/in/sub/data, FOLDER/outside, and links in `in`. */
static struct place
place_new(void)
{
	struct place at = {.mem = om_arena_new()};
	static const float data[4] = {1, 2, 3, 4};

	at.folder = om_strdup(at.mem, "unit-external-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(at.folder));
	mkdir(in(&at, "in"), 0777);
	mkdir(in(&at, "in/sub"), 0777);
	write_file(in(&at, "in/data"), data, sizeof data);
	write_file(in(&at, "in/sub/data"), data, sizeof data);
	write_file(in(&at, "outside"), data, sizeof data);
	CU_ASSERT_EQUAL(symlink("../outside", in(&at, "in/out")), 0);
	CU_ASSERT_EQUAL(symlink("..", in(&at, "in/up")), 0);
	CU_ASSERT_EQUAL(symlink("sub/data", in(&at, "in/link")), 0);
	return at;
}

static void
place_free(struct place *at)
{
	static const char *const files[] = {"in/data", "in/sub/data", "outside", "in/out", "in/up", "in/link",
		"copy/data", "copy/model.onnx", "in/model.onnx", "in/hard.onnx", "in/soft.onnx"};
	static const char *const folders[] = {"in/sub", "in", "copy", "."};

	for (size_t k = 0; k < sizeof files / sizeof files[0]; k++)
		unlink(in(at, files[k]));
	for (size_t k = 0; k < sizeof folders / sizeof folders[0]; k++)
		rmdir(k == 3 ? at->folder : in(at, folders[k]));
	om_arena_free(at->mem);
}

static void
add_entry(struct made *b, Onnx__TensorProto *t, const char *key, const char *value)
{
	Onnx__StringStringEntryProto *e = OM_NEW(b->mem, Onnx__StringStringEntryProto);

	onnx__string_string_entry_proto__init(e);
	e->key = (char *)key;
	e->value = (char *)value;
	if (!t->external_data)
		t->external_data = OM_NEWN(b->mem, Onnx__StringStringEntryProto *, 4);
	t->external_data[t->n_external_data++] = e;
}

static struct made
made_external(const char *location, const char *offset, const char *length)
{
	struct made b = made_new(8, 17);
	Onnx__TensorProto *t = made_init(&b, b.g, "w", 2, (float[]){0, 0});

	t->n_float_data = 0;
	t->has_data_location = true;
	t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	if (location)
		add_entry(&b, t, "location", location);
	if (offset)
		add_entry(&b, t, "offset", offset);
	if (length)
		add_entry(&b, t, "length", length);
	made_chain(&b);
	return b;
}

static om_status
load_external(struct place *at, const char *location, const char *offset, const char *length, float first)
{
	struct made b = made_external(location, offset, length);
	om_model *m;
	om_prog *p;
	const om_status st = made_load(&b, at ? in(at, "in") : NULL, &m, &p);

	if (st == OM_OK)
		CU_ASSERT_EQUAL(*(const float *)om_value_find(p->first, "w")->data->data, first);
	CU_ASSERT(st == OM_OK || *om_message(b.s));
	om_prog_free(p);
	om_model_free(m);
	made_free(&b);
	return st;
}

static void
external_data_stays_inside(void)
{
	struct place at = place_new();
	char real[4096];

	CU_ASSERT_EQUAL(load_external(&at, "data", NULL, NULL, 1), OM_OK);
	CU_ASSERT_EQUAL(load_external(&at, "sub/data", NULL, NULL, 1), OM_OK);
	CU_ASSERT_EQUAL(load_external(&at, "link", NULL, NULL, 1), OM_OK);
	CU_ASSERT_EQUAL(load_external(&at, "./data", NULL, NULL, 1), OM_OK);
	CU_ASSERT_EQUAL(load_external(&at, "../outside", NULL, NULL, 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "sub/../data", NULL, NULL, 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "..", NULL, NULL, 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "", NULL, NULL, 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "out", NULL, NULL, 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "up/outside", NULL, NULL, 1), OM_INVALID);
	CU_ASSERT_PTR_NOT_NULL_FATAL(realpath(in(&at, "in/data"), real));
	CU_ASSERT_EQUAL(load_external(&at, real, NULL, NULL, 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "none", NULL, NULL, 1), OM_IO);
	CU_ASSERT_EQUAL(load_external(&at, "sub", NULL, NULL, 1), OM_IO);
	CU_ASSERT_EQUAL(load_external(&at, NULL, NULL, NULL, 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(NULL, "data", NULL, NULL, 1), OM_INVALID);
	place_free(&at);
}

static void
external_bytes_are_checked(void)
{
	struct place at = place_new();

	CU_ASSERT_EQUAL(load_external(&at, "data", "8", "8", 3), OM_OK);
	CU_ASSERT_EQUAL(load_external(&at, "data", "12", "8", 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "data", "8", "4", 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "data", "-8", "8", 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "data", "8x", "8", 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "data", "18446744073709551615", "8", 1), OM_INVALID);
	CU_ASSERT_EQUAL(load_external(&at, "data", "99999999999999999999999", "8", 1), OM_INVALID);
	place_free(&at);
}

/* Numbers that begin at an odd byte can be read all the same. */
static void
misaligned_data_is_moved(void)
{
	struct place at = place_new();
	struct made b = made_external("data", "3", "8");
	om_model *m;
	om_prog *p;

	CU_ASSERT_EQUAL_FATAL(made_load(&b, in(&at, "in"), &m, &p), OM_OK);
	CU_ASSERT_EQUAL((uintptr_t)om_value_find(p->first, "w")->data->data % sizeof(float), 0);
	om_prog_free(p);
	om_model_free(m);
	made_free(&b);
	place_free(&at);
}

static void
saving_spares_what_was_loaded(void)
{
	struct place at = place_new();
	struct made b = made_external("data", "8", "8");
	const size_t size = onnx__model_proto__get_packed_size(b.m);
	uint8_t *packed = malloc(size);
	struct stat x, y;
	om_model *m;

	onnx__model_proto__pack(b.m, packed);
	write_file(in(&at, "in/model.onnx"), packed, size);
	free(packed);
	CU_ASSERT_EQUAL(link(in(&at, "in/model.onnx"), in(&at, "in/hard.onnx")), 0);
	CU_ASSERT_EQUAL(symlink("model.onnx", in(&at, "in/soft.onnx")), 0);
	mkdir(in(&at, "copy"), 0777);
	CU_ASSERT_EQUAL_FATAL(om_model_load(b.s, in(&at, "in/model.onnx"), &m), OM_OK);
	CU_ASSERT_EQUAL(om_model_save(b.s, m, in(&at, "in/model.onnx")), OM_USAGE);
	CU_ASSERT_EQUAL(om_model_save(b.s, m, in(&at, "in/hard.onnx")), OM_USAGE);
	CU_ASSERT_EQUAL(om_model_save(b.s, m, in(&at, "in/soft.onnx")), OM_USAGE);
	CU_ASSERT_EQUAL(om_model_save(b.s, m, in(&at, "none/model.onnx")), OM_IO);
	CU_ASSERT_EQUAL(om_model_save(b.s, m, in(&at, "copy")), OM_IO);
	CU_ASSERT_NOT_EQUAL(access(in(&at, "data"), F_OK), 0);
	CU_ASSERT_EQUAL(om_model_save(b.s, m, in(&at, "copy/model.onnx")), OM_OK);
	CU_ASSERT_EQUAL(om_model_save(b.s, m, in(&at, "copy/model.onnx")), OM_OK);
	CU_ASSERT(stat(in(&at, "in/data"), &x) == 0 && stat(in(&at, "copy/data"), &y) == 0 && x.st_ino != y.st_ino && x.st_size == y.st_size);
	unlink(in(&at, "copy/data"));
	write_file(in(&at, "copy/data"), "else", 4);
	CU_ASSERT_EQUAL(om_model_save(b.s, m, in(&at, "copy/model.onnx")), OM_IO);
	SAYS(&b, "exists with other contents");
	om_model_free(m);
	made_free(&b);
	place_free(&at);
}

/* ---- Programs written back. ---- */

static void
new_ops_are_written(void)
{
	struct made b = made_new(8, 17);
	om_model *m;
	om_prog *p;
	static float data[] = {1, 2, 3, 4};
	const om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(1, (int64_t[]){4}), .data = data};

	made_chain(&b);
	CU_ASSERT_EQUAL_FATAL(made_load(&b, NULL, &m, &p), OM_OK);
	om_op *old = p->first->first;
	om_value *c = om_const_new(p, p->first, "c", &t), *a = old->out[0];
	om_op_remove(old);
	om_op *op = om_op_new(p, "", "Sub", 0, 2, 1);
	om_op_set_in(op, 0, p->first->param[0]);
	om_op_set_in(op, 1, c);
	om_op_set_out(op, 0, a);
	om_op_add_int(p, op, "extra", 3);
	om_op_insert(p->first->first, op);
	for (int k = 0; k < 2; k++) {  /* once more changes nothing */
		CU_ASSERT_EQUAL_FATAL(om_model_update(b.s, m, p), OM_OK);
		const Onnx__GraphProto *g = m->proto->graph;
		CU_ASSERT_EQUAL_FATAL(g->n_node, 2);
		CU_ASSERT_STRING_EQUAL(g->node[0]->op_type, "Sub");
		CU_ASSERT_STRING_EQUAL(g->node[0]->input[1], "c");
		CU_ASSERT_EQUAL(g->node[0]->attribute[0]->i, 3);
		CU_ASSERT_EQUAL(g->n_initializer, 1);
	}
	om_value_replace(p->first->result[0], a);
	om_op_remove(p->first->last);
	CU_ASSERT_EQUAL(om_model_update(b.s, m, p), OM_OK);
	CU_ASSERT_STRING_EQUAL(m->proto->graph->node[1]->op_type, "Identity");
	CU_ASSERT_STRING_EQUAL(m->proto->graph->node[1]->output[0], "y");
	om_prog_free(p);
	om_model_free(m);
	made_free(&b);
}

/* Inference may need it: the inputs of the copy may have open sizes. */
static void
declared_shapes_of_copies_are_written(void)
{
	struct made b = made_new(8, 17);
	om_model *m;
	om_prog *p;

	made_chain(&b);
	CU_ASSERT_EQUAL_FATAL(made_load(&b, NULL, &m, &p), OM_OK);
	om_op *op = om_op_new(p, "", "Neg", 0, 1, 1);
	om_value *v = om_value_fresh(p, p->first, "again");
	v->type = p->first->param[0]->type;
	v->shape = om_shape_of(1, (int64_t[]){4});
	v->is_declared = true;
	om_op_set_in(op, 0, p->first->param[0]);
	om_op_set_out(op, 0, v);
	op->rematerialized_from = "a";
	om_op_insert(p->first->first, op);
	const size_t before = m->proto->graph->n_value_info;
	for (int k = 0; k < 2; k++) {
		CU_ASSERT_EQUAL_FATAL(om_model_update(b.s, m, p), OM_OK);
		const Onnx__GraphProto *g = m->proto->graph;
		CU_ASSERT_EQUAL_FATAL(g->n_value_info, before + 1);
		CU_ASSERT_STRING_EQUAL(g->value_info[before]->name, "again");
		CU_ASSERT_EQUAL(g->value_info[before]->type->tensor_type->shape->dim[0]->dim_value, 4);
	}
	om_prog_free(p);
	om_model_free(m);
	made_free(&b);
}

static void
only_names_make_dims_equal(void)
{
	static const char *const name[] = {"?", "None", "-1", "n", ""};
	struct made b = made_new(8, 13);
	om_prog *p;

	made_input(&b, b.g, "x", 5, (int64_t[]){-1, -1, -1, -1, -1});
	made_output(&b, b.g, "y");
	made_node(&b, b.g, "Relu", "x", "y");
	Onnx__TensorShapeProto *s = b.g->input[0]->type->tensor_type->shape;
	for (size_t k = 0; k < s->n_dim; k++) {
		s->dim[k]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
		made_set(&b, &s->dim[k]->dim_param, name[k]);
	}
	CU_ASSERT_EQUAL_FATAL(made_load(&b, NULL, NULL, &p), OM_OK);
	const om_shape *x = &p->first->param[0]->shape;
	for (int k = 0; k < x->rank; k++)
		CU_ASSERT(k == 3 ? x->sym[k] && strcmp(x->sym[k], "n") == 0 : !x->sym[k]);
	om_prog_free(p);
	made_free(&b);
}

static CU_TestInfo onnx_tests[] = {
	{"undefined names are named", undefined_names_are_named},
	{"names are defined once", names_are_defined_once},
	{"cycles are refused, also through bodies", cycles_are_refused},
	{"nodes are sorted, stably", nodes_are_sorted_stably},
	{"bodies see what is around them, and give what is theirs", scopes_are_kept},
	{"up to IR 3 initializers are weights, since IR 4 defaults", weights_of_old_files_are_no_inputs},
	{"attributes have the kinds that operators want", attributes_are_checked},
	{"only names make dims equal", only_names_make_dims_equal},
	{"inputs are counted", inputs_are_counted},
	{"unknown operators stay, and are named", unknown_operators_stay},
	{"other files are no models", other_files_are_no_models},
	{"versions are checked", versions_are_checked},
	{"deep nesting is refused", deep_nesting_is_refused},
	{"small files that unpack to large ones are refused", bombs_are_refused},
	{"external data stays in the model's folder", external_data_stays_inside},
	{"external bytes are those that are there", external_bytes_are_checked},
	{"misaligned data is moved", misaligned_data_is_moved},
	{"saving spares what was loaded, and brings its data", saving_spares_what_was_loaded},
	{"new ops and constants are written, outputs keep their names", new_ops_are_written},
	{"declared shapes of copied ops are written", declared_shapes_of_copies_are_written},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("models", onnx_tests);
