/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the cache: folders, checksums, reading of small files. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "hub/hub.h"

bool
om_path_is_safe(const char *path)
{
	if (!*path || *path == '/')
		return false;
	for (const char *at = path; *at;) {
		const size_t n = strcspn(at, "/");
		if (n == 0 || n > 200 || (n == 1 && *at == '.') || (n == 2 && memcmp(at, "..", 2) == 0))
			return false;
		for (size_t k = 0; k < n; k++)
			if (at[k] == '\\' || (unsigned char)at[k] < ' ' || at[k] == 127)
				return false;
		at += n;
		if (*at == '/' && !*++at)
			return false;
	}
	return strlen(path) < 1024;
}

om_status
om_make_parent_folders(om_session *s, const char *path)
{
	char name[4096];
	const size_t n = strlen(path);

	if (n >= sizeof name)
		return om_fail(s, OM_IO, "%.100s...: the path is too long", path);
	memcpy(name, path, n + 1);
	for (char *at = name + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		if (mkdir(name, 0777) != 0 && errno != EEXIST)
			return om_fail(s, OM_IO, "%s: %s; ONNX_HOME may name another folder for models", name, strerror(errno));
		*at = '/';
	}
	return OM_OK;
}

om_status
om_file_sha256(om_session *s, om_arena *mem, int fd, const char *path, char text[65])
{
	char chunk[1 << 16];
	om_sha256 *h = om_sha256_new(mem);
	ssize_t n;

	for (off_t at = 0; (n = pread(fd, chunk, sizeof chunk, at)) != 0; at += n) {
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			return om_fail(s, OM_IO, "%s: %s", path, strerror(errno));
		om_sha256_add(h, chunk, (size_t)n);
	}
	om_sha256_end(h, text);
	return OM_OK;
}

static om_status
read_open(om_session *s, om_arena *mem, int fd, const char *path, uint64_t limit, char **text, size_t *n)
{
	struct stat st;
	ssize_t got;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return om_fail(s, OM_IO, "%s: not a file", path);
	if ((uint64_t)st.st_size > limit)
		return om_fail(s, OM_MALFORMED, "%s: %llu bytes, which is more than the limit of %llu", path,
			(unsigned long long)st.st_size, (unsigned long long)limit);
	*text = om_allocn(mem, 1, (size_t)st.st_size + 1);
	for (*n = 0; *n < (size_t)st.st_size; *n += (size_t)got)
		if ((got = read(fd, *text + *n, (size_t)st.st_size - *n)) <= 0)
			return om_fail(s, OM_IO, "%s: %s", path, got < 0 ? strerror(errno)
				: "truncated while it was read");
	return OM_OK;
}

om_status
om_read_all(om_session *s, om_arena *mem, const char *path, uint64_t limit, char **text, size_t *n)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return om_fail(s, OM_IO, "%s: %s", path, strerror(errno));
	om_status st = read_open(s, mem, fd, path, limit, text, n);
	close(fd);
	return st;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

void
om_remove_folder(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
