/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of weights in files; see weight_cache.h. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fast_hash.h"
#include "base/mapping.h"
#include "base/output_file.h"
#include "exec/weight_cache.h"

enum {
	HEAD = 4096,             /* bytes before the block */
	VERIFIED = 16 << 20      /* bytes of a block that is verified when it is opened */
};

static const char MAGIC[16] = "onnxmem weights";

struct head {
	char magic[16];
	char key[OM_SHA256_TEXT], files[OM_SHA256_TEXT];
	char is_settled;         /* `files` is sufficient */
	char reserved[5];
	uint64_t bytes, elements, block; /* the size of the block; the hashes of the elements in files, and of the block */
	char sum[OM_SHA256_TEXT]; /* of all above */
};

static void
digest(const struct head *h, char sum[OM_SHA256_TEXT])
{
	om_arena *mem = om_arena_new();
	om_sha256 *hash = om_sha256_new(mem);

	om_sha256_add(hash, h, offsetof(struct head, sum));
	om_sha256_end(hash, sum);
	om_arena_free(mem);
}

static const char *
path_of(const struct om_weight_cache *c, om_arena *mem)
{
	return om_printf(mem, "%s/%s.weights", c->folder, c->key);
}

static size_t
size_of(const struct om_weight_cache *c)
{
	return HEAD + (size_t)c->bytes;
}

void *
om_weight_cache_block(const struct om_weight_cache *c)
{
	return (char *)c->map + HEAD;
}

/* ---- Reading. ---- */

/* What is wrong with a file; NULL: nothing. */
static const char *
find_fault(const struct om_weight_cache *c, const struct head *h)
{
	char sum[OM_SHA256_TEXT];

	digest(h, sum);
	if (memcmp(h->magic, MAGIC, sizeof MAGIC) != 0 || memcmp(h->sum, sum, sizeof sum) != 0)
		return "is damaged";
	if (memcmp(h->key, c->key, sizeof h->key) != 0 || h->bytes != c->bytes)
		return "is of other weights";
	if (c->bytes <= VERIFIED && om_fast_hash(0, om_weight_cache_block(c), c->bytes) != h->block)
		return "is damaged";
	return NULL;
}

/* Replace the state of the files, so that their elements need not be read the next time.  Without success that
 * is all that happens; a head that is written in part is damaged. */
static void
refresh(const struct om_weight_cache *c, const char *path, struct head h)
{
	memcpy(h.files, c->files, sizeof h.files);
	h.is_settled = true;
	digest(&h, h.sum);
	const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	(void)!pwrite(fd, &h, sizeof h, 0);
	close(fd);
}

static bool
is_current(const struct om_weight_cache *c, const char *path, const struct head *h)
{
	if (h->is_settled && memcmp(h->files, c->files, sizeof h->files) == 0)
		return true;
	if (c->hash(c->arg) != h->elements)
		return false;
	if (c->is_settled)
		refresh(c, path, *h);
	return true;
}

void
om_weight_cache_close(struct om_weight_cache *c)
{
	if (c->map)
		om_unmap(c->map, size_of(c));
	c->map = NULL;
}

/* The whole file, if it has the size that it must have. */
static const char *
map_file(struct om_weight_cache *c, int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return "is not a file";
	if ((uint64_t)st.st_size != HEAD + c->bytes)
		return "has another size";
	c->map = om_map_file(fd, size_of(c));
	return c->map ? NULL : "cannot be mapped";
}

bool
om_weight_cache_open(struct om_weight_cache *c)
{
	om_arena *mem = om_arena_new();
	const char *path = path_of(c, mem), *fault = "cannot be opened";
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const bool is_absent = fd < 0 && errno == ENOENT;
	struct head h;

	c->map = NULL;
	if (fd >= 0) {
		fault = map_file(c, fd);
		close(fd);
	}
	if (c->map) {
		memcpy(&h, c->map, sizeof h);
		fault = find_fault(c, &h);
		if (!fault && !is_current(c, path, &h))
			fault = "is of an older state of the model";
		if (fault)
			om_weight_cache_close(c);
	}
	if (!fault)
		om_info(c->session, "weights are mapped from %s", path);
	else if (!is_absent)
		om_info(c->session, "%s %s: the weights are made anew", path, fault);
	om_arena_free(mem);
	return c->map != NULL;
}

/* ---- Writing. ---- */

struct writing {
	struct head head;
	const void *block;
};

static om_status
write_file(om_session *s, FILE *to, void *arg)
{
	static const char zero[HEAD];
	const struct writing *w = arg;

	(void)s;
	fwrite(&w->head, 1, sizeof w->head, to);
	fwrite(zero, 1, HEAD - sizeof w->head, to);
	fwrite(w->block, 1, w->head.bytes, to);
	return OM_OK;
}

void
om_weight_cache_write(struct om_weight_cache *c, const void *block)
{
	struct writing w = {.block = block, .head = {.bytes = c->bytes, .is_settled = c->is_settled}};
	om_arena *mem = om_arena_new();
	const char *path = path_of(c, mem);

	memcpy(w.head.magic, MAGIC, sizeof MAGIC);
	memcpy(w.head.key, c->key, sizeof w.head.key);
	memcpy(w.head.files, c->files, sizeof w.head.files);
	w.head.elements = c->hash(c->arg);
	w.head.block = om_fast_hash(0, block, c->bytes);
	digest(&w.head, w.head.sum);
	mkdir(c->folder, 0777);
	if (om_output_write(c->session, path, write_file, &w) != OM_OK)
		om_info(c->session, "the weights are not cached: %s", om_message(c->session));
	else
		om_info(c->session, "weights are cached in %s", path);
	om_arena_free(mem);
}
