/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels in files, which later runs load instead of compiling them.
 *
 * A file is named by a hash of the text and of the architecture.  It has the text itself, so that no other code is ever
 * taken for it, and a hash of the code, so that a damaged file is no code.  It is written under a temporary name and
 * renamed.  Code of a newer CUDA than the driver's is not loaded: the file has the version of NVRTC. */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fast_hash.h"
#include "kernels/cuda/cuda.h"

enum { MOST_BYTES = 1 << 28 };

/* After it: the text, the code. */
struct head {
	char magic[16];
	char arch[16];
	uint32_t major;          /* of NVRTC */
	uint32_t reserved;
	uint64_t text, code;     /* bytes */
	uint64_t hash;           /* of the code */
};

static const char magic[16] = "onnxmem cubin 1";

static bool
path_of(const om_device *d, const char *text, char path[OM_CUDA_PATH + 64])
{
	const size_t n = strlen(text);

	if (!*d->cache)
		return false;
	snprintf(path, OM_CUDA_PATH + 64, "%s/%016llx%016llx-%s.cubin", d->cache, (unsigned long long)om_fast_hash(1, text, n),
		(unsigned long long)om_fast_hash(2, text, n), d->arch);
	return true;
}

static bool
read_text(FILE *f, const char *text)
{
	const size_t n = strlen(text);
	char *got = malloc(n);
	const bool same = got && fread(got, 1, n, f) == n && memcmp(got, text, n) == 0;

	free(got);
	return same;
}

static char *
read_code(const om_device *d, FILE *f, const char *text, size_t *bytes)
{
	struct head h;

	if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, magic, sizeof magic) != 0 || strncmp(h.arch, d->arch, sizeof h.arch) != 0
	    || h.text != strlen(text) || h.code == 0 || h.code > MOST_BYTES || (int)h.major > d->version / 1000 || !read_text(f, text))
		return NULL;
	char *code = malloc(h.code + 1);
	if (code && fread(code, 1, h.code, f) == h.code && om_fast_hash(0, code, h.code) == h.hash) {
		*bytes = h.code;
		return code;
	}
	free(code);
	return NULL;
}

char *
om_cuda_cache_read(const om_device *d, const char *text, size_t *bytes)
{
	char path[OM_CUDA_PATH + 64];
	FILE *f = path_of(d, text, path) ? fopen(path, "rbe") : NULL;

	if (!f)
		return NULL;
	char *code = read_code(d, f, text, bytes);
	fclose(f);
	return code;
}

static bool
write_code(const om_device *d, FILE *f, const char *text, const char *code, size_t bytes)
{
	struct head h = {.major = (uint32_t)d->nvrtc.major, .text = strlen(text), .code = bytes, .hash = om_fast_hash(0, code, bytes)};

	memcpy(h.magic, magic, sizeof magic);
	memcpy(h.arch, d->arch, sizeof h.arch);
	return fwrite(&h, sizeof h, 1, f) == 1 && fwrite(text, 1, h.text, f) == h.text && fwrite(code, 1, bytes, f) == bytes
	    && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

void
om_cuda_cache_write(const om_device *d, const char *text, const char *code, size_t bytes)
{
	char path[OM_CUDA_PATH + 64], part[OM_CUDA_PATH + 96];

	if (!path_of(d, text, path))
		return;
	mkdir(d->cache, 0777);
	snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
	FILE *f = fopen(part, "wbe");
	if (!f)
		return;
	const bool is_written = write_code(d, f, text, code, bytes);
	if (fclose(f) != 0 || !is_written || rename(part, path) != 0)
		unlink(part);
}
