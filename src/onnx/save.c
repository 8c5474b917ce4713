/* SPDX-License-Identifier: Apache-2.0 */
/* Saving models to files.  Large messages are packed incrementally, without a second copy of the model in memory. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/map.h"
#include "base/output_file.h"
#include "onnx/model.h"
#include "onnx/original.h"
#include "onnx/value_files.h"

/* ---- Writing. ---- */

struct sink {
	ProtobufCBuffer base;    /* first member: protobuf-c passes a pointer to it back */
	FILE *to;
	bool failed;
};

static void
append(ProtobufCBuffer *b, size_t n, const uint8_t *data)
{
	struct sink *s = (struct sink *)b;

	if (n && !s->failed && fwrite(data, 1, n, s->to) != n)
		s->failed = true;
}

enum { SMALL_MESSAGE = 64 << 20 };

/* At once: packed incrementally, a message in messages is measured once for each of those around it. */
static bool
write_small(FILE *to, const ProtobufCMessage *message, size_t n)
{
	uint8_t *packed = malloc(n + 1);

	if (!packed)
		return false;
	protobuf_c_message_pack(message, packed);
	fwrite(packed, 1, n, to);
	free(packed);
	return true;
}

static om_status
write_message(om_session *s, FILE *to, void *arg)
{
	struct sink sink = {.base = {append}, .to = to};
	const size_t n = protobuf_c_message_get_packed_size(arg);

	(void)s;
	if (n > SMALL_MESSAGE || !write_small(to, arg, n))
		protobuf_c_message_pack_to_buffer(arg, &sink.base);
	return OM_OK;
}

static om_status
check_size(om_session *s, const char *path, const ProtobufCMessage *message)
{
	if (protobuf_c_message_get_packed_size(message) > INT32_MAX)
		return om_fail(s, OM_UNSUPPORTED,
			"%s would be larger than 2 GiB, the limit of protobuf: keep weights as external data", path);
	return OM_OK;
}

om_status
om_message_save(om_session *s, const char *path, const ProtobufCMessage *message)
{
	OM_TRY(check_size(s, path, message));
	return om_output_write(s, path, write_message, (void *)(uintptr_t)message);
}

/* ---- Copying external data. ---- */

struct locations {
	om_map seen;
	const char **name;
	size_t n, cap;
};

static void
note_location(Onnx__TensorProto *t, void *arg)
{
	struct locations *l = arg;

	if (t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
		return;
	for (size_t k = 0; k < t->n_external_data; k++) {
		const Onnx__StringStringEntryProto *e = t->external_data[k];
		if (!e->key || !e->value || strcmp(e->key, "location") != 0 || om_map_get(&l->seen, e->value))
			continue;
		om_map_set(&l->seen, e->value, e->value);
		OM_PUSH(l->seen.mem, l->name, l->n, l->cap, e->value);
	}
}

static om_status
make_folders(om_session *s, char *path, size_t from)
{
	for (char *at = path + from; (at = strchr(at, '/')); at++) {
		*at = '\0';
		const bool failed = mkdir(path, 0777) != 0 && errno != EEXIST;
		if (failed)
			om_fail(s, OM_IO, "folder %s cannot be created: %s", path, strerror(errno));
		*at = '/';
		if (failed)
			return OM_IO;
	}
	return OM_OK;
}

static bool
is_same(const struct whole *a, const struct whole *b)
{
	return (a->is_file && b->is_file && a->dev == b->dev && a->ino == b->ino)
	    || (a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0));
}

static om_status
write_whole(om_session *s, FILE *to, void *arg)
{
	const struct whole *w = arg;

	(void)s;
	if (w->size)
		fwrite(w->data, 1, w->size, to);
	return OM_OK;
}

/* Copy a file atomically.  A hard link would be cheaper, but the onnx package rejects external data
 * with several links, and would then reject the original model. */
static om_status
bring(om_session *s, const char *from, const char *to)
{
	const struct whole *a, *b;
	om_arena *mem = om_arena_new();
	om_status st = om_whole_open_regular(s, mem, from, &a);

	if (st == OM_OK && access(to, F_OK) != 0)
		st = om_output_write(s, to, write_whole, (void *)(uintptr_t)a);
	else if (st == OM_OK && (st = om_whole_open_regular(s, mem, to, &b)) == OM_OK && !is_same(a, b))
		st = om_fail(s, OM_IO,
			"%s exists with other contents: the external data of the model cannot be written", to);
	om_arena_free(mem);
	return st;
}

static bool
is_same_folder(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static om_status
bring_all(om_session *s, const om_model *m, const char *path, om_arena *mem)
{
	const char *folder = om_folder_of(mem, path);
	struct locations l = {.seen = om_map_new(mem)};

	om_tensors_visit(&m->proto->base, note_location, &l);
	if (l.n == 0)
		return OM_OK;
	if (m->folder && is_same_folder(folder, m->folder))
		return OM_OK;
	for (size_t k = 0; k < l.n; k++) {
		const char *from;
		OM_TRY(om_location_resolve(s, m->name, m->folder, l.name[k], mem, &from));
		char *to = om_printf(mem, "%s/%s", folder, l.name[k]);
		OM_TRY(make_folders(s, to, strlen(folder) + 1));
		OM_TRY(bring(s, from, to));
	}
	return OM_OK;
}

/* ---- Models. ---- */

/* Check the destination before any data is copied.  Mapped external data must not be
 * overwritten either. */
static om_status
check_target(om_session *s, const om_model *m, const char *path)
{
	struct stat st, data;

	if (stat(path, &st) != 0)
		return OM_OK;
	if (S_ISDIR(st.st_mode))
		return om_fail(s, OM_IO, "%s is a folder: specify a file name", path);
	if (m->is_file && st.st_dev == m->dev && st.st_ino == m->ino)
		return om_fail(s, OM_USAGE,
			"%s is the file that the model was loaded from: specify another file name",
			path);
	for (const struct mapped *f = m->mapped; f; f = f->next)
		if (stat(f->path, &data) == 0 && data.st_dev == st.st_dev && data.st_ino == st.st_ino)
			return om_fail(s, OM_USAGE,
				"%s holds the external data of the model: specify another file name", path);
	return OM_OK;
}

static om_status
write_model(om_session *s, FILE *to, void *arg)
{
	const om_model *m = arg;

	OM_TRY(write_message(s, to, &m->proto->base));
	return om_original_append(s, m, to);
}

/* Whether the destination is, or will be, a file: there is nothing beside a pipe or a device. */
static bool
is_regular_or_new(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && (stat(path, &st) != 0 || S_ISREG(st.st_mode));
}

/* Write a file beside which external data of `m` are needed. */
static om_status
save_with_data(om_session *s, const om_model *m, const char *path, om_output_writer *write, void *arg)
{
	om_status st = OM_OK;

	if (strcmp(path, "-") != 0)
		OM_TRY(check_target(s, m, path));
	if (is_regular_or_new(path)) {
		om_arena *mem = om_arena_new();
		st = bring_all(s, m, path, mem);
		om_arena_free(mem);
	}
	return st == OM_OK ? om_output_write(s, path, write, arg) : st;
}

static om_status
model_save_guarded(om_session *s, const om_model *m, const char *path)
{
	OM_TRY(check_size(s, path, &m->proto->base));
	return save_with_data(s, m, path, write_model, (void *)(uintptr_t)m);
}

om_status
om_model_save(om_session *s, const om_model *m, const char *path)
{
	OM_GUARDED(s, model_save_guarded(s, m, path));
}

static om_status
model_save_memory_guarded(om_session *s, const om_model *m, char **data, size_t *size)
{
	OM_TRY(check_size(s, m->name, &m->proto->base));
	return om_output_memory(s, "the file of the model", write_model, (void *)(uintptr_t)m, data, size);
}

om_status
om_model_save_memory(om_session *s, const om_model *m, char **data, size_t *size)
{
	*data = NULL;
	*size = 0;
	OM_GUARDED(s, model_save_memory_guarded(s, m, data, size));
}

/* ---- The original of a planned model. ---- */

bool
om_model_has_original(const om_model *m)
{
	return m->kept && m->whole;
}

/* `m` is the planned model, whose folder has the external data. */
static om_status
save_original(om_session *s, const om_model *m, const char *path, om_bytes bytes)
{
	const struct whole w = {.data = bytes.data, .size = bytes.size};
	om_model *original;

	OM_TRY(om_model_load_memory(s, bytes.data, bytes.size, m->name, m->folder, &original));
	original->is_file = m->is_file;
	original->dev = m->dev;
	original->ino = m->ino;
	const om_status st = save_with_data(s, original, path, write_whole, (void *)(uintptr_t)&w);
	om_model_free(original);
	return st;
}

static om_status
save_original_guarded(om_session *s, const om_model *m, const char *path)
{
	om_arena *mem = om_arena_new();
	om_bytes bytes;
	om_status st = om_original_read(s, m, mem, &bytes);

	if (st == OM_OK)
		st = save_original(s, m, path, bytes);
	om_arena_free(mem);
	return st;
}

om_status
om_model_save_original(om_session *s, const om_model *m, const char *path)
{
	OM_GUARDED(s, save_original_guarded(s, m, path));
}

/* ---- Tensors. ---- */

static om_status
tensor_load_pb_guarded(om_session *s, const char *path, om_arena *mem, om_tensor *out)
{
	const struct whole *w;
	ProtobufCMessage *proto;

	*out = (om_tensor){0};
	om_model *m = om_model_new(path, NULL);
	om_status st = om_whole_open(s, m->mem, path, &w);
	if (st == OM_OK)
		st = om_model_unpack(s, m, &onnx__tensor_proto__descriptor, w->data, w->size, &proto);
	if (st == OM_OK)
		st = om_tensor_read(s, NULL, mem, (const Onnx__TensorProto *)proto, out);
	if (st == OM_OK)
		om_tensor_own(mem, out);
	else
		om_note(s, st, "reading %s", path);
	om_model_free(m);
	return st;
}

om_status
om_tensor_load_pb(om_session *s, const char *path, om_arena *mem, om_tensor *out)
{
	OM_GUARDED(s, tensor_load_pb_guarded(s, path, mem, out));
}

static om_status
tensor_save_pb_guarded(om_session *s, const char *path, const char *name, const om_tensor *t)
{
	om_arena *mem = om_arena_new();
	Onnx__TensorProto *proto;
	om_status st = om_tensor_write(s, mem, name, t, &proto);

	if (st == OM_OK)
		st = om_message_save(s, path, &proto->base);
	om_arena_free(mem);
	return st;
}

om_status
om_tensor_save_pb(om_session *s, const char *path, const char *name, const om_tensor *t)
{
	OM_GUARDED(s, tensor_save_pb_guarded(s, path, name, t));
}
