/* SPDX-License-Identifier: Apache-2.0 */
/* Output files; see output_file.h. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output_file.h"
#include "base/system.h"
#include "onnxmem/arena.h"

enum {
	MAX_TEMPORARIES = 100,   /* that other processes may be writing */
	MAX_STEM = 200,          /* bytes of the name that a temporary has in common with its file */
	SUFFIX = 16
};

struct output {
	om_session *session;
	const char *path;        /* as it was given, for messages */
	char *target;            /* the file that is replaced, links resolved; NULL: written directly */
	char *temporary;
	FILE *to;
	mode_t mode;             /* of the previous file; 0: there is none */
	om_output_writer *write;
	void *arg;
};

static om_status
fail_write(om_session *s, const char *path, int error)
{
	return om_fail(s, OM_IO, "%s cannot be written: %s", path, strerror(error));
}

/* ---- What a path is. ---- */

static bool
is_file_of(const struct stat *st, int fd)
{
	struct stat of;

	return fstat(fd, &of) == 0 && of.st_dev == st->st_dev && of.st_ino == st->st_ino;
}

/* Names of open files, such as /dev/stdout and /dev/fd/3, cannot be renamed to. */
static bool
is_direct(const char *path, const struct stat *st)
{
	static const char *const open_files[] = {"/dev/std", "/dev/fd/", "/proc/"};

	for (size_t k = 0; k < sizeof open_files / sizeof open_files[0]; k++)
		if (strncmp(path, open_files[k], strlen(open_files[k])) == 0)
			return true;
	return !S_ISREG(st->st_mode) || is_file_of(st, STDOUT_FILENO) || is_file_of(st, STDERR_FILENO);
}

/* Length of the folder in `path`, with the slash; 0: the current one. */
static size_t
folder_length(const char *path)
{
	const char *slash = om_path_slash(path);

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The folder of `path`, to be freed; NULL if memory runs out. */
static char *
folder_of(const char *path)
{
	const size_t n = folder_length(path);

	return n ? strndup(path, n) : strdup(".");
}

/* ---- Before the work. ---- */

static om_status
check_folder_of(om_session *s, const char *path)
{
	char *folder = folder_of(path);
	const bool good = folder && access(folder, W_OK | X_OK) == 0;
	const int error = errno;

	free(folder);
	return good ? OM_OK : fail_write(s, path, error);
}

/* There is no such file.  A link that leads nowhere would be replaced instead of followed. */
static om_status
check_new(om_session *s, const char *path, bool may_be_folder)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return om_fail(s, OM_IO, "%s is a link to a file that does not exist", path);
	if (path[strlen(path) - 1] == '/' && !may_be_folder)
		return fail_write(s, path, EISDIR);
	return check_folder_of(s, path);
}

static om_status
check_existing(om_session *s, const char *path, const struct stat *st, bool may_be_folder)
{
	if (S_ISDIR(st->st_mode) && !may_be_folder)
		return om_fail(s, OM_IO, "%s is a folder: specify a file name", path);
	if (S_ISBLK(st->st_mode) || S_ISSOCK(st->st_mode))
		return om_fail(s, OM_IO, "%s is a %s, and is not written", path, S_ISBLK(st->st_mode) ? "disk" : "socket");
	if (access(path, W_OK) != 0)
		return fail_write(s, path, errno);
	return OM_OK;
}

om_status
om_output_check(om_session *s, const char *path, bool may_be_folder)
{
	struct stat st;

	if (strcmp(path, "-") == 0)
		return OM_OK;
	if (!*path)
		return om_fail(s, OM_IO, "the name of an output file is empty");
	if (stat(path, &st) != 0)
		return errno == ENOENT ? check_new(s, path, may_be_folder) : fail_write(s, path, errno);
	OM_TRY(check_existing(s, path, &st, may_be_folder));
	return S_ISDIR(st.st_mode) || is_direct(path, &st) ? OM_OK : check_folder_of(s, path);
}

/* ---- The temporary. ---- */

/* Is `fd` the file of this name, an ordinary one with no other name?  Its previous owner may have renamed it
 * between open() and flock(). */
static bool
is_own(int fd, const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && is_file_of(&st, fd);
}

/* A locked file of this name; -1 and errno, where EWOULDBLOCK means that another process writes it. */
static int
open_locked(const char *name)
{
	const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);

	if (fd < 0)
		return -1;
	const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (locked && is_own(fd, name) && ftruncate(fd, 0) == 0)
		return fd;
	if (locked)
		errno = EWOULDBLOCK;
	const int error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Names that cannot be opened, because they are links or belong to others, are passed over as well. */
static int
open_temporary(struct output *o)
{
	const size_t folder = folder_length(o->target), name = strlen(o->target + folder);
	const size_t stem = folder + (name < MAX_STEM ? name : MAX_STEM);
	int fd = -1;

	o->temporary = malloc(stem + SUFFIX);
	for (unsigned k = 1; o->temporary && fd < 0 && k <= MAX_TEMPORARIES; k++) {
		memcpy(o->temporary, o->target, stem);
		snprintf(o->temporary + stem, SUFFIX, k == 1 ? ".part" : ".%u.part", k);
		fd = open_locked(o->temporary);
		if (fd < 0 && errno != EWOULDBLOCK && errno != ELOOP && errno != EACCES && errno != ENXIO && errno != EISDIR)
			break;
	}
	return fd;
}

/* ---- Opening. ---- */

static om_status
use_stream(struct output *o, int fd)
{
	o->to = fd < 0 ? NULL : fdopen(fd, "wb");
	if (o->to)
		return OM_OK;
	const int error = errno;
	if (fd >= 0 && o->temporary)
		unlink(o->temporary);
	if (fd >= 0)
		close(fd);
	return fail_write(o->session, o->path, error);
}

/* A pipe without a reader would be waited for without end. */
static om_status
open_direct(struct output *o, const struct stat *st)
{
	fflush(stdout);
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (is_file_of(st, fd))
			return use_stream(o, dup(fd));
	const int fd = open(o->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno == ENXIO)
		return om_fail(o->session, OM_IO, "%s is a pipe that no process reads", o->path);
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return use_stream(o, fd);
}

static om_status
open_output(struct output *o)
{
	struct stat st;
	const bool exists = stat(o->path, &st) == 0;

	OM_TRY(om_output_check(o->session, o->path, false));
	if (exists && is_direct(o->path, &st))
		return open_direct(o, &st);
	o->mode = exists ? st.st_mode & 07777 : 0;
	o->target = exists ? realpath(o->path, NULL) : strdup(o->path);
	return o->target ? use_stream(o, open_temporary(o)) : fail_write(o->session, o->path, errno);
}

/* ---- Writing. ---- */

static void
flush_folder(const char *path)
{
	char *folder = folder_of(path);
	const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	/* Some file systems cannot flush a folder; the file is renamed in any case. */
	if (fd >= 0) {
		(void)!fsync(fd);
		close(fd);
	}
	free(folder);
}

int
om_output_replace(const char *from, const char *to)
{
	if (rename(from, to) != 0)
		return -1;
	flush_folder(to);
	return 0;
}

static om_status
flush(struct output *o)
{
	const bool broken = ferror(o->to);

	if (fflush(o->to) != 0 || broken)
		return fail_write(o->session, o->path, errno ? errno : EIO);
	return OM_OK;
}

static om_status
put_in_place(struct output *o)
{
	const int fd = fileno(o->to);

	OM_TRY(flush(o));
	if ((o->mode && fchmod(fd, o->mode) != 0) || fsync(fd) != 0 || om_output_replace(o->temporary, o->target) != 0)
		return fail_write(o->session, o->path, errno);
	return OM_OK;
}

static om_status
run_writer(void *arg)
{
	struct output *o = arg;

	errno = 0;
	return o->write(o->session, o->to, o->arg);
}

static om_status
write_output(struct output *o)
{
	const om_status st = om_guarded(o->session, run_writer, o);

	if (st != OM_OK)         /* a writer that found its stream broken does not say why */
		return ferror(o->to) ? flush(o) : st;
	return o->target ? put_in_place(o) : flush(o);
}

/* The lock is held until the temporary is renamed or removed. */
static om_status
write_and_close(struct output *o)
{
	om_status st = open_output(o);

	if (st != OM_OK)
		return st;
	st = write_output(o);
	if (st != OM_OK && o->target)
		unlink(o->temporary);
	if (fclose(o->to) != 0 && st == OM_OK && !o->target)
		st = fail_write(o->session, o->path, errno);
	return st;
}

om_status
om_output_write(om_session *s, const char *path, om_output_writer *write, void *arg)
{
	struct output o = {.session = s, .path = path, .write = write, .arg = arg};

	if (strcmp(path, "-") == 0) {
		o.path = "standard output";
		o.to = stdout;
		return write_output(&o);
	}
	const om_status st = write_and_close(&o);
	free(o.target);
	free(o.temporary);
	return st;
}

om_status
om_output_memory(om_session *s, const char *what, om_output_writer *write, void *arg, char **data, size_t *size)
{
	struct output o = {.session = s, .path = what, .write = write, .arg = arg};
	struct om_memory_stream memory;

	*data = NULL;
	*size = 0;
	o.to = om_memory_stream_open(&memory);
	if (!o.to)
		return om_fail(s, OM_MEMORY, "there is no memory for %s", what);
	om_status st = om_guarded(s, run_writer, &o);
	char *bytes = om_memory_stream_close(&memory, size);
	if (st == OM_OK && !bytes)
		st = om_fail(s, OM_MEMORY, "there is no memory for %s", what);
	if (st == OM_OK) {
		*data = bytes;
		return st;
	}
	free(bytes);
	*size = 0;
	return st;
}
