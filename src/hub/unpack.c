/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of a model and its test data, unpacked next to the archive.
 *
 * An archive may only create files and folders in a new folder of its own.  A path
 * outside of that folder, a link, a device, a duplicate name, too many bytes or
 * files: each of these is an error, and nothing is kept.  No link is ever created,
 * so none can be followed.  The folder gets its final name when it is complete,
 * with a list of checksums next to it, against which it is verified when it is used
 * again.
 */
#include <config.h>

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "hub/hub_module.h"

enum { MAX_ENTRIES = 5000, MAX_DEPTH = 16 };

struct unpacking {
	om_hub *h;
	const char *archive;     /* its path */
	const char *name;        /* its last component */
	const char *into;        /* the folder, renamed when it is complete */
	uint64_t left;           /* bytes left until the limit */
	uint64_t limit;
	uint32_t nentry;
	FILE *sums;
};

static om_status
fail_entry(const struct unpacking *u, const char *entry, const char *what)
{
	return om_fail(u->h->session, OM_DOWNLOAD, "%s: %s%s%s; nothing was kept", u->name, entry,
		*entry ? ": " : "", what);
}

/* ---- One entry. ---- */

/* Many archives begin every path with "./". */
static const char *
entry_path(struct archive_entry *e)
{
	const char *path = archive_entry_pathname(e);

	while (path && path[0] == '.' && path[1] == '/')
		path += 2;
	return path ? path : "";
}

static int
depth_of(const char *path)
{
	int n = 1;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static om_status
check_entry(struct unpacking *u, struct archive_entry *e, const char *path)
{
	const mode_t type = archive_entry_filetype(e);

	if (++u->nentry > MAX_ENTRIES)
		return fail_entry(u, "", "more than 5000 entries");
	if (!om_path_is_safe(path) || depth_of(path) > MAX_DEPTH)
		return fail_entry(u, om_printf(u->h->mem, "%.200s", archive_entry_pathname(e)
			? archive_entry_pathname(e) : "?"),
			"not a safe relative path");
	if (archive_entry_hardlink(e) || archive_entry_symlink(e) || type == AE_IFLNK)
		return fail_entry(u, path, "a link");
	if (type != AE_IFREG && type != AE_IFDIR)
		return fail_entry(u, path, "neither a file nor a folder");
	if (archive_entry_is_encrypted(e))
		return fail_entry(u, path, "encrypted");
	return OM_OK;
}

static om_status
check_room(struct unpacking *u, const char *path, uint64_t n)
{
	return n <= u->left ? OM_OK : fail_entry(u, path, om_printf(u->h->mem,
		"the unpacked size exceeds %llu bytes; `--unpack-limit SIZE` allows more", (unsigned long long)u->limit));
}

static om_status
write_chunk(struct unpacking *u, const char *path, FILE *to, om_sha256 *sum, const char *chunk, size_t n)
{
	OM_TRY(check_room(u, path, n));
	u->left -= n;
	om_sha256_add(sum, chunk, n);
	if (fwrite(chunk, 1, n, to) != n)
		return om_fail(u->h->session, OM_IO, "%s/%s: %s", u->into, path, strerror(errno));
	return OM_OK;
}

/* Copy the content of a file.  Holes are written and count as bytes; libarchive leaves out one at the end. */
static om_status
write_bytes(struct unpacking *u, struct archive *a, struct archive_entry *e, const char *path, FILE *to, om_sha256 *sum)
{
	static const char zeros[1 << 14];
	char chunk[sizeof zeros];
	uint64_t rest = archive_entry_size_is_set(e) ? (uint64_t)archive_entry_size(e) : 0;
	la_ssize_t n;

	OM_TRY(check_room(u, path, rest));
	while ((n = archive_read_data(a, chunk, sizeof chunk)) > 0) {
		OM_TRY(write_chunk(u, path, to, sum, chunk, (size_t)n));
		rest -= rest < (uint64_t)n ? rest : (uint64_t)n;
	}
	if (n < 0)
		return fail_entry(u, path, archive_error_string(a) ? archive_error_string(a) : "damaged");
	for (size_t m; rest; rest -= m) {
		m = rest < sizeof zeros ? (size_t)rest : sizeof zeros;
		OM_TRY(write_chunk(u, path, to, sum, zeros, m));
	}
	return OM_OK;
}

static om_status
write_file(struct unpacking *u, struct archive *a, struct archive_entry *e, const char *path)
{
	const char *full = om_printf(u->h->mem, "%s/%s", u->into, path);
	om_sha256 *sum = om_sha256_new(u->h->mem);
	char text[65];

	const int fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	FILE *to = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!to) {
		const int error = errno;
		if (fd >= 0)
			close(fd);
		return error == EEXIST ? fail_entry(u, path, "duplicate name")
		     : om_fail(u->h->session, OM_IO, "%s: %s", full, strerror(error));
	}
	om_status st = write_bytes(u, a, e, path, to, sum);
	if (fclose(to) != 0 && st == OM_OK)
		st = om_fail(u->h->session, OM_IO, "%s: %s", full, strerror(errno));
	om_sha256_end(sum, text);
	fprintf(u->sums, "%s  %s\n", text, path);
	return st;
}

static om_status
write_entry(struct unpacking *u, struct archive *a, struct archive_entry *e)
{
	const char *path = entry_path(e);
	size_t n = strlen(path);

	if (archive_entry_filetype(e) == AE_IFDIR) {
		if (n == 0 || strcmp(path, ".") == 0)
			return OM_OK;
		path = om_strndup(u->h->mem, path, n - (path[n - 1] == '/'));
		OM_TRY(check_entry(u, e, path));
		return om_make_parent_folders(u->h->session, om_printf(u->h->mem, "%s/%s/", u->into, path));
	}
	OM_TRY(check_entry(u, e, path));
	OM_TRY(om_make_parent_folders(u->h->session, om_printf(u->h->mem, "%s/%s", u->into, path)));
	return write_file(u, a, e, path);
}

/* ---- The archive. ---- */

static om_status
read_entries(struct unpacking *u, struct archive *a)
{
	struct archive_entry *e;
	int rc;

	archive_read_support_format_tar(a);
	archive_read_support_format_zip(a);
	archive_read_support_filter_bzip2(a);
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_xz(a);
	if (archive_read_open_filename(a, u->archive, 1 << 16) != ARCHIVE_OK)
		return fail_entry(u, "", archive_error_string(a) ? archive_error_string(a) : "not an archive");
	while ((rc = archive_read_next_header(a, &e)) == ARCHIVE_OK || rc == ARCHIVE_WARN)
		OM_TRY(write_entry(u, a, e));
	return rc == ARCHIVE_EOF ? OM_OK : fail_entry(u, "", archive_error_string(a) ? archive_error_string(a)
		: "damaged");
}

static om_status
unpack_into(struct unpacking *u, const char *sums)
{
	om_session *s = u->h->session;
	struct archive *a = archive_read_new();

	u->sums = fopen(sums, "w");
	if (!u->sums || !a) {
		if (u->sums)
			fclose(u->sums);
		archive_read_free(a);
		return om_fail(s, OM_IO, "%s: %s", sums, strerror(errno));
	}
	om_status st = mkdir(u->into, 0777) == 0 ? read_entries(u, a)
		: om_fail(s, OM_IO, "%s: %s", u->into, strerror(errno));
	archive_read_free(a);
	if (fclose(u->sums) != 0 && st == OM_OK)
		st = om_fail(s, OM_IO, "%s: cannot be written", sums);
	return st;
}

/* ---- Verification of an unpacked folder. ---- */

static om_status
check_line(struct unpacking *u, const char *folder, char *line, bool *good)
{
	char sum[65];

	if (strlen(line) < 67 || !om_path_is_safe(line + 66)) {
		*good = false;
		return OM_OK;
	}
	line[64] = '\0';
	const char *path = om_printf(u->h->mem, "%s/%s", folder, line + 66);
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		*good = false;
		return OM_OK;
	}
	om_status st = om_file_sha256(u->h->session, u->h->mem, fd, path, sum);
	close(fd);
	*good = strcmp(sum, line) == 0;
	return st;
}

static om_status
check_folder(struct unpacking *u, const char *folder, const char *sums, bool *good)
{
	char *text, *next;
	size_t n;

	*good = access(folder, X_OK) == 0 && access(sums, R_OK) == 0;
	if (!*good)
		return OM_OK;
	OM_TRY(om_read_all(u->h->session, u->h->mem, sums, 64 << 20, &text, &n));
	for (char *line = text; *good && *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		OM_TRY(check_line(u, folder, line, good));
	}
	if (!*good)
		om_warn(u->h->session, "%s: damaged; the archive is unpacked again", folder);
	return OM_OK;
}

/* ---- Entry point. ---- */

/* The archive is locked: one process at a time. */
static om_status
unpack_locked(struct unpacking *u, const char *folder)
{
	om_session *s = u->h->session;
	const char *sums = om_printf(u->h->mem, "%s.sums", folder), *new_sums = om_printf(u->h->mem, "%s.new", sums);
	bool good;

	OM_TRY(check_folder(u, folder, sums, &good));
	if (good)
		return OM_OK;
	unlink(sums);
	om_remove_folder(folder);
	om_remove_folder(u->into);
	om_status st = unpack_into(u, new_sums);
	if (st == OM_OK && (rename(u->into, folder) != 0 || rename(new_sums, sums) != 0))
		st = om_fail(s, OM_IO, "%s: %s", folder, strerror(errno));
	if (st != OM_OK) {
		om_remove_folder(u->into);
		unlink(new_sums);
	}
	return st;
}

/* The default limit is 64 times the archive: test data does not compress better. */
static uint64_t
limit_for(const om_hub *h, int fd)
{
	enum { LEAST = 64 << 20, TIMES = 64 };
	struct stat st;
	const uint64_t size = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;

	return h->unpack_limit ? h->unpack_limit : size > LEAST / TIMES ? size * TIMES : LEAST;
}

/* NAME.tar.gz is unpacked into NAME, as the ONNX Hub does. */
om_status
om_unpack_archive(om_hub *h, const char *archive, const char **folder)
{
	const char *slash = strrchr(archive, '/'), *name = slash ? slash + 1 : archive;
	const char *dot = strstr(name, ".tar");
	struct unpacking u = {.h = h, .archive = archive, .name = strlen(name) > 65 ? name + 65 : name};

	dot = dot ? dot : strrchr(name, '.');
	*folder = dot ? om_strndup(h->mem, archive, (size_t)(dot - archive)) : om_printf(h->mem, "%s.dir", archive);
	u.into = om_printf(h->mem, "%s.new", *folder);
	const int fd = open(archive, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return om_fail(h->session, OM_IO, "%s: %s", archive, strerror(errno));
	u.limit = u.left = limit_for(h, fd);
	om_status st = flock(fd, LOCK_EX) == 0 ? unpack_locked(&u, *folder)
		: om_fail(h->session, OM_IO, "%s: cannot be locked: %s", archive, strerror(errno));
	close(fd);
	return st;
}
