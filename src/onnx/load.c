/* SPDX-License-Identifier: Apache-2.0 */
/* Loading models from files and memory. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/arena_internal.h"
#include "base/system.h"
#include "onnx/annotate.h"

/* ---- Whole files. ---- */

/* For pipes and other inputs without a known size. */
static om_status
read_all(om_session *s, const char *path, int fd, struct whole *w)
{
	size_t cap = 0;

	for (;;) {
		if (w->size == cap) {
			cap = cap ? 2 * cap : 1 << 16;
			void *more = realloc(w->data, cap);
			if (!more)
				return om_fail(s, OM_MEMORY, "%s: not enough memory for %zu bytes", path, cap);
			w->data = more;
		}
		const ssize_t n = read(fd, (char *)w->data + w->size, cap - w->size);
		if (n == 0)
			return OM_OK;
		if (n < 0 && errno != EINTR)
			return om_fail(s, OM_IO, "%s cannot be read: %s", path, strerror(errno));
		w->size += n > 0 ? (size_t)n : 0;
		if (w->size > INT32_MAX)
			return om_fail(s, OM_UNSUPPORTED, "%s is larger than 2 GiB", path);
	}
}

static om_status
map_all(om_session *s, const char *path, int fd, struct whole *w)
{
	w->is_mapped = true;
	if (w->size == 0)
		return OM_OK;
	w->data = om_map_file(fd, w->size);
	if (w->data)
		return OM_OK;
	return om_fail(s, OM_IO, "%s cannot be mapped: %s", path, strerror(errno));
}

static void
close_whole(void *arg)
{
	struct whole *w = arg;

	if (!w->is_mapped)
		free(w->data);
	else if (w->data)
		om_unmap(w->data, w->size);
}

static om_status
open_whole(om_session *s, om_arena *mem, const char *path, bool only_regular, const struct whole **out)
{
	struct whole *w = OM_NEW(mem, struct whole);
	const bool standard = strcmp(path, "-") == 0 && !only_regular;
	struct stat st;

	*out = w;
	om_arena_defer(mem, close_whole, w);
	const int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | (only_regular ? O_NONBLOCK : 0));
	if (fd < 0 || fstat(fd, &st) != 0)
		return om_fail(s, OM_IO, "%s cannot be opened: %s", path, strerror(errno));
	om_status r;
	if (S_ISDIR(st.st_mode)) {
		r = om_fail(s, OM_IO, "%s is a folder", path);
	} else if (S_ISREG(st.st_mode) && !standard) {
		w->size = (size_t)st.st_size;
		w->is_file = true;
		w->dev = st.st_dev;
		w->ino = st.st_ino;
		w->state = om_file_state_of(&st);
		r = map_all(s, path, fd, w);
	} else if (only_regular) {
		r = om_fail(s, OM_IO, "%s cannot be opened: not a regular file", path);
	} else {
		r = read_all(s, standard ? "standard input" : path, fd, w);
	}
	if (!standard)
		close(fd);
	return r;
}

om_status
om_whole_open(om_session *s, om_arena *mem, const char *path, const struct whole **out)
{
	return open_whole(s, mem, path, false, out);
}

om_status
om_whole_open_regular(om_session *s, om_arena *mem, const char *path, const struct whole **out)
{
	return open_whole(s, mem, path, true, out);
}

/* ---- Memory of messages: small blocks from the arena, large ones as lumps that can be freed
 * individually and whose allocation failure is reported. ---- */

struct lump {
	struct lump *prev, *next;
	size_t size;                 /* 0: allocated in the arena */
	_Alignas(max_align_t) unsigned char mem[];
};

enum { LUMP = 4096 };

static void *
alloc_lump(void *arg, size_t n)
{
	om_model *m = arg;

	struct lump *l = n < LUMP ? om_alloc_try(m->mem, sizeof *l + n) : om_memory_aligned(_Alignof(struct lump), sizeof *l + n);

	if (!l) {
		m->is_short = true;
		return NULL;
	}
	if (n < LUMP)
		return l->mem;
	*l = (struct lump){.next = m->lumps, .size = n};
	if (m->lumps)
		m->lumps->prev = l;
	m->lumps = l;
	return l->mem;
}

static void
free_lump(void *arg, void *p)
{
	om_model *m = arg;

	if (!p)
		return;
	struct lump *l = (struct lump *)((unsigned char *)p - offsetof(struct lump, mem));
	if (l->size == 0)
		return;
	*(l->prev ? &l->prev->next : &m->lumps) = l->next;
	if (l->next)
		l->next->prev = l->prev;
	om_aligned_free(l);
}

static om_status
unpack_message(om_session *s, om_model *m, const ProtobufCMessageDescriptor *d, const void *data, size_t size,
	ProtobufCMessage **out)
{
	ProtobufCAllocator memory = {alloc_lump, free_lump, m};

	m->is_short = false;
	*out = protobuf_c_message_unpack(d, &memory, size, data ? data : (const void *)"");
	if (!*out && m->is_short)
		return om_fail(s, OM_MEMORY, "%s: cannot allocate its messages", m->name);
	if (!*out)
		return om_fail(s, OM_MALFORMED,
			"%s is not an ONNX file, or is damaged: a field has the wrong wire type", m->name);
	return OM_OK;
}

om_status
om_model_unpack(om_session *s, om_model *m, const ProtobufCMessageDescriptor *d,
	const void *data, size_t size, ProtobufCMessage **out)
{
	*out = NULL;
	OM_TRY(om_wire_check(s, m->name, d, data, size));
	return unpack_message(s, m, d, data, size, out);
}

/* Nothing is allocated from an arena while the thin copy exists, except by alloc_lump(). */
om_status
om_model_unpack_in_place(om_session *s, om_model *m, const ProtobufCMessageDescriptor *d,
	const void *data, size_t size, size_t large, ProtobufCMessage **out)
{
	om_bytes thin;

	*out = NULL;
	om_status st = om_wire_thin(s, m->name, d, data, size, large, &thin);
	if (st == OM_OK && !thin.data)
		return unpack_message(s, m, d, data, size, out);
	if (st == OM_OK)
		st = unpack_message(s, m, d, thin.data, thin.size, out);
	if (st == OM_OK)
		om_wire_resolve(*out, (void *)(uintptr_t)data);
	om_aligned_free(thin.data);
	return st;
}

/* ---- Models. ---- */

const char *
om_text(const char *s)
{
	return s ? s : "";
}

const char *
om_domain(const char *s)
{
	return !s || strcmp(s, "ai.onnx") == 0 ? "" : s;
}

static void
release(void *arg)
{
	om_model *m = arg;

	for (struct lump *l = m->lumps, *next; l; l = next) {
		next = l->next;
		om_aligned_free(l);
	}
	om_model_unmap(m);
}

om_model *
om_model_new(const char *name, const char *folder)
{
	om_arena *mem = om_arena_new();
	om_model *m = OM_NEW(mem, om_model);

	m->mem = mem;
	om_arena_defer(mem, release, m);
	m->name = om_strdup(mem, name);
	m->folder = folder ? om_strdup(mem, folder) : NULL;
	return m;
}

void
om_model_free(om_model *m)
{
	if (m)
		om_arena_free(m->mem);
}

static om_status
check_head(om_session *s, const om_model *m)
{
	const Onnx__ModelProto *p = m->proto;

	if (!p->graph)
		return om_fail(s, OM_MALFORMED, "%s is not an ONNX model: it has no graph", m->name);
	if (!p->has_ir_version)
		return om_fail(s, OM_INVALID, "%s has no IR version", m->name);
	if (p->ir_version < OM_IR_OLDEST || p->ir_version > OM_IR_NEWEST)
		return om_fail(s, OM_UNSUPPORTED, "%s has IR version %lld, expected %d to %d", m->name,
			(long long)p->ir_version, OM_IR_OLDEST, OM_IR_NEWEST);
	return OM_OK;
}

static om_status
check_bytes(om_session *s, const om_model *m, const void *data, size_t size)
{
	static const char pointer[] = "version https://git-lfs";

	if (size == 0)
		return om_fail(s, OM_MALFORMED, "%s is empty", m->name);
	if (size > sizeof pointer && memcmp(data, pointer, sizeof pointer - 1) == 0)
		return om_fail(s, OM_MALFORMED, "%s is a Git LFS pointer, not the model itself", m->name);
	return OM_OK;
}

static om_status
take_proto(om_session *s, om_model *m, ProtobufCMessage *proto)
{
	m->proto = (Onnx__ModelProto *)proto;
	m->was_planned = om_model_has_plan(m);
	m->kept = om_prop_entry(PROPS(m->proto), OM_KEY_ORIGINAL);
	return check_head(s, m);
}

static om_status
unpack(om_session *s, om_model *m, const void *data, size_t size)
{
	ProtobufCMessage *proto;

	OM_TRY(check_bytes(s, m, data, size));
	OM_TRY(om_model_unpack(s, m, &onnx__model_proto__descriptor, data, size, &proto));
	return take_proto(s, m, proto);
}

static om_status
model_load_memory_guarded(om_session *s, const void *data, size_t size, const char *name,
	const char *folder, om_model **out)
{
	om_model *m = om_model_new(name, folder);
	const om_status st = unpack(s, m, data, size);

	*out = st == OM_OK ? m : NULL;
	if (st != OM_OK)
		om_model_free(m);
	return st;
}

om_status
om_model_load_memory(om_session *s, const void *data, size_t size, const char *name,
	const char *folder, om_model **out)
{
	*out = NULL;
	OM_GUARDED(s, model_load_memory_guarded(s, data, size, name, folder, out));
}

const char *
om_folder_of(om_arena *mem, const char *path)
{
	const char *slash = om_path_slash(path);

	if (!slash)
		return ".";
	return slash == path ? "/" : om_strndup(mem, path, (size_t)(slash - path));
}

/* The file is kept as long as the model lives. */
static om_status
load_whole(om_session *s, om_model *m, const char *path)
{
	enum { LARGE = 4096 };
	const struct whole *w;
	ProtobufCMessage *proto;

	OM_TRY(om_whole_open(s, m->mem, path, &w));
	if (w->is_mapped)
		om_mappings_add(&m->files, m->mem, w->data, w->size, w->state);
	m->whole = w;
	m->is_file = w->is_file;
	m->dev = w->dev;
	m->ino = w->ino;
	OM_TRY(check_bytes(s, m, w->data, w->size));
	OM_TRY(om_model_unpack_in_place(s, m, &onnx__model_proto__descriptor, w->data, w->size, LARGE, &proto));
	om_mappings_drop_all(&m->files);
	return take_proto(s, m, proto);
}

static om_status
model_load_guarded(om_session *s, const char *path, om_model **out)
{
	const bool standard = strcmp(path, "-") == 0;
	om_model *m = om_model_new(standard ? "standard input" : path, NULL);

	if (!standard)
		m->folder = om_folder_of(m->mem, path);
	const om_status st = load_whole(s, m, path);
	*out = st == OM_OK ? m : NULL;
	if (st != OM_OK)
		om_model_free(m);
	return st;
}

om_status
om_model_load(om_session *s, const char *path, om_model **out)
{
	*out = NULL;
	OM_GUARDED(s, model_load_guarded(s, path, out));
}
