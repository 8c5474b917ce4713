/* From the cache, or into it.
 *
 * A file grows under the name PATH.part.  Who writes to it holds a lock on it;
 * others wait, then look again, and find the file in its place.  The lock is one
 * of the system, so it ends with its process: what is left of a process that was
 * killed is a beginning, and the next one goes on behind it.  What was gone on
 * with and has the wrong sum may have had the wrong beginning: it is fetched
 * again from the start before a mirror is blamed.
 *
 * Each mirror gets a number of tries, with growing waits between them; one that
 * brought a good piece does not count, and there are at most 64 good pieces in a
 * file, so this ends. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "hub/hub.h"

struct job {
	om_hub *h;
	const om_hub_file *f;
	const char *name;        /* for messages: the last part of the path */
	const char *path, *part; /* in the cache */
	int fd;                  /* of the part, locked */
	const char *blame;       /* what every mirror said */
};

/* ---- The cache. ---- */

static const char *
cached_path(om_hub *h, const om_hub_file *f)
{
	const char *slash = strrchr(f->path, '/');
	const int dirs = slash ? (int)(slash - f->path) + 1 : 0;

	return om_printf(h->mem, "%s/%.*s%s_%s", h->cache, dirs, f->path, f->sha256, f->path + dirs);
}

static uint64_t
size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Is the file there, and right?  One that is there and wrong is taken away. */
static om_status
look(struct job *j, bool *there)
{
	om_hub *h = j->h;
	char sum[65];
	om_status st = OM_OK;
	const int fd = open(j->path, O_RDONLY | O_CLOEXEC);

	*there = false;
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return OM_OK;
	if (fd < 0)
		return om_fail(h->session, OM_IO, "%s: %s", j->path, strerror(errno));
	st = om_file_sha256(h->session, h->mem, fd, j->path, sum);
	close(fd);
	OM_TRY(st);
	*there = strcmp(sum, j->f->sha256) == 0;
	if (*there)
		return OM_OK;
	if (h->offline)
		return om_fail(h->session, OM_DOWNLOAD, "%s: what is in the cache has the SHA-256 %s, the manifest says %s; "
			"without --offline it is fetched again", j->path, sum, j->f->sha256);
	om_warn(h->session, "%s: damaged, its SHA-256 is not that of the manifest; it is fetched again", j->path);
	return unlink(j->path) == 0 || errno == ENOENT ? OM_OK
	     : om_fail(h->session, OM_IO, "%s: damaged, and could not be removed: %s", j->path, strerror(errno));
}

/* Is the file that was opened still the one of that name? */
static bool
is_current(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Who held the lock before may have renamed the file away. */
static om_status
lock_part(struct job *j)
{
	om_session *s = j->h->session;

	for (;;) {
		j->fd = open(j->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (j->fd < 0)
			return om_fail(s, OM_IO, "%s: %s", j->part, strerror(errno));
		if (flock(j->fd, LOCK_EX | LOCK_NB) != 0) {
			om_info(s, "%s: waiting for another process that fetches it", j->name);
			if (flock(j->fd, LOCK_EX) != 0 && errno != EINTR)
				return om_fail(s, OM_IO, "%s: could not be locked: %s", j->part, strerror(errno));
		}
		if (is_current(j->fd, j->part))
			return OM_OK;
		close(j->fd);
		j->fd = -1;
	}
}

/* ---- Is it what was wanted? ---- */

/* What came in the place of a model: the first bytes tell. */
static const char *
what_came(struct job *j)
{
	static const char pointer[] = "version https://git-lfs.github.com/spec/";
	char text[512];
	const ssize_t n = pread(j->fd, text, sizeof text - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	if (strncmp(text, pointer, sizeof pointer - 1) == 0 && size_of(j->fd) < 1024) {
		const char *oid = strstr(text, "oid sha256:");
		const bool same = oid && strncmp(oid + 11, j->f->sha256, 64) == 0;
		return om_printf(j->h->mem, "a Git LFS pointer%s, not the file itself: the server has the file elsewhere, or "
			"not any more; `--mirror URL` names another place", same ? " to this very file" : "");
	}
	const char *at = text + strspn(text, " \t\r\n");
	if (strncasecmp(at, "<!doctype html", 14) == 0 || strncasecmp(at, "<html", 5) == 0)
		return "a web page, not the file";
	return NULL;
}

/* All bytes are here.  A wrong sum empties the part. */
static om_status
check_sum(struct job *j, bool resumed, om_transfer *t)
{
	const char *what = what_came(j);
	char sum[65];

	OM_TRY(om_file_sha256(j->h->session, j->h->mem, j->fd, j->part, sum));
	if (strcmp(sum, j->f->sha256) == 0)
		return OM_OK;
	t->end = resumed && !what ? OM_AGAIN : OM_NEVER;
	if (what)
		snprintf(t->why, sizeof t->why, "what came is %s", what);
	else
		snprintf(t->why, sizeof t->why, "wrong SHA-256 %s, the manifest says %s", sum, j->f->sha256);
	if (ftruncate(j->fd, 0) != 0)
		t->end = OM_LOCAL;
	return OM_OK;
}

/* The transfer is over: `end` becomes OM_CAME only when the file is right. */
static om_status
check(struct job *j, bool resumed, om_transfer *t)
{
	const uint64_t size = size_of(j->fd), all = j->f->bytes;

	if (t->end == OM_LOCAL)
		return OM_OK;
	if (all && size == all)
		t->end = OM_CAME;
	if (t->end != OM_CAME)
		return OM_OK;
	if (!all || size == all)
		return check_sum(j, resumed, t);
	const char *what = what_came(j);
	t->end = what ? OM_NEVER : OM_AGAIN;
	if (what)
		snprintf(t->why, sizeof t->why, "what came is %s", what);
	else
		snprintf(t->why, sizeof t->why, "the server ended after %llu of %llu bytes", (unsigned long long)size,
			(unsigned long long)all);
	return what && ftruncate(j->fd, 0) != 0
	     ? om_fail(j->h->session, OM_IO, "%s: %s", j->part, strerror(errno)) : OM_OK;
}

/* ---- Tries. ---- */

static void
show(void *arg, uint64_t now, uint64_t all)
{
	struct job *j = arg;

	if (j->h->progress)
		j->h->progress(j->h->progress_arg, j->name, now, all);
}

static void
wait_seconds(double seconds)
{
	const double whole = floor(seconds);
	struct timespec t = {.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)};

	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

/* Twice as long as before, at most half a minute, or what the server asks for
 * up to two. */
static void
wait_before(struct job *j, uint64_t failed, const om_transfer *t)
{
	const double own = fmin(30, j->h->delay * pow(2, (double)(failed < 16 ? failed : 16) - 1));
	const double asked = fmin(120, t->wait);

	om_info(j->h->session, "%s: %s; another try in %.1f s", j->name, t->why, fmax(own, asked));
	wait_seconds(fmax(own, asked));
}

/* A transfer, or only the look at a part that lacks nothing but its name. */
static om_status
try_once(struct job *j, om_transfer *t)
{
	const uint64_t before = size_of(j->fd), all = j->f->bytes;

	if (all && before > all && ftruncate(j->fd, 0) != 0)
		return om_fail(j->h->session, OM_IO, "%s: %s", j->part, strerror(errno));
	if (all && before == all) {
		*t->why = '\0';
		t->end = OM_CAME;
	} else {
		om_transfer_run(t);
		j->h->bytes += t->came;
	}
	return check(j, before > 0, t);
}

static om_status
try_mirror(struct job *j, const char *mirror, om_transfer *t)
{
	const uint64_t piece = j->f->bytes / 64 + 4096;

	t->url = om_url_below(j->h->mem, mirror, j->f->path);
	om_info(j->h->session, "%s: from %s", j->name, om_shown_url(j->h->mem, t->url));
	for (uint64_t failed = 0;;) {
		const uint64_t before = size_of(j->fd);
		OM_TRY(try_once(j, t));
		if (t->end != OM_AGAIN)
			return OM_OK;
		failed = size_of(j->fd) >= before + piece ? 1 : failed + 1;
		if (failed >= j->h->tries)
			return OM_OK;
		wait_before(j, failed, t);
	}
}

static om_status
try_mirrors(struct job *j)
{
	om_hub *h = j->h;
	om_transfer t = {.fd = j->fd, .expected = j->f->bytes, .timeout = h->timeout, .progress = show, .progress_arg = j};

	j->blame = "";
	for (size_t k = 0; k < h->nmirror; k++) {
		OM_TRY(try_mirror(j, h->mirror[k], &t));
		if (t.end == OM_CAME)
			return OM_OK;
		if (t.end == OM_LOCAL)
			return om_fail(h->session, OM_IO, "%s: %s", j->part, t.why);
		j->blame = om_printf(h->mem, "%s; %s: %s", j->blame, om_shown_url(h->mem, t.url), t.why);
	}
	return om_fail(h->session, OM_DOWNLOAD, "%s could not be fetched%s", j->name,
		h->nmirror ? j->blame : ": no mirror is known; `--mirror URL` names one");
}

/* ---- Into its place. ---- */

static om_status
settle(struct job *j)
{
	om_session *s = j->h->session;

	if (fchmod(j->fd, 0644) != 0 || fsync(j->fd) != 0 || rename(j->part, j->path) != 0)
		return om_fail(s, OM_IO, "%s: %s", j->path, strerror(errno));
	j->h->nfetched++;
	return OM_OK;
}

/* What stays of a part is what the next one goes on with; nothing is no start. */
static void
leave(struct job *j)
{
	if (size_of(j->fd) == 0 && is_current(j->fd, j->part))
		unlink(j->part);
	close(j->fd);
}

static om_status
fetch_locked(struct job *j)
{
	bool there;

	OM_TRY(look(j, &there));
	if (there) {
		j->h->ncached++;
		return OM_OK;
	}
	OM_TRY(try_mirrors(j));
	return settle(j);
}

om_status
om_hub_fetch(om_hub *h, const om_hub_file *f, const char **path)
{
	const char *slash = strrchr(f->path, '/');
	struct job j = {.h = h, .f = f, .name = slash ? slash + 1 : f->path, .path = cached_path(h, f), .fd = -1};
	bool there;

	*path = j.path;
	j.part = om_printf(h->mem, "%s.part", j.path);
	OM_TRY(look(&j, &there));
	if (there) {
		h->ncached++;
		return OM_OK;
	}
	if (h->offline)
		return om_fail(h->session, OM_DOWNLOAD, "%s is not in the cache %s, and --offline fetches nothing", j.name,
			h->cache);
	OM_TRY(om_make_folders(h->session, j.path));
	om_status st = lock_part(&j);
	if (st == OM_OK)
		st = fetch_locked(&j);
	if (j.fd >= 0)
		leave(&j);
	return st;
}

/* ---- Manifests from elsewhere. ---- */

enum { MANIFEST_LIMIT = 64 << 20 };

/* There is no sum to compare with: it has to be one that can be read.  Its name
 * is the sum of its address. */
static om_status
fetch_manifest(om_hub *h, const char *url, const char *path, om_manifest *m)
{
	const char *part = om_printf(h->mem, "%s.%ld.part", path, (long)getpid());
	char *text;
	size_t n;

	OM_TRY(om_make_folders(h->session, part));
	om_transfer t = {.url = url, .timeout = h->timeout};
	t.fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (t.fd < 0)
		return om_fail(h->session, OM_IO, "%s: %s", part, strerror(errno));
	for (uint64_t failed = 1;; failed++) {
		om_transfer_run(&t);
		h->bytes += t.came;
		if (t.end != OM_AGAIN || failed >= h->tries)
			break;
		struct job j = {.h = h, .name = "the manifest"};
		wait_before(&j, failed, &t);
		if (ftruncate(t.fd, 0) != 0)
			break;
	}
	close(t.fd);
	om_status st = t.end == OM_CAME ? om_read_all(h->session, h->mem, part, MANIFEST_LIMIT, &text, &n)
		: om_fail(h->session, OM_DOWNLOAD, "the manifest %s could not be fetched: %s", om_shown_url(h->mem, url), t.why);
	if (st == OM_OK)
		st = om_manifest_read(h->session, h->mem, text, n, om_shown_url(h->mem, url), m);
	if (st == OM_OK && rename(part, path) != 0)
		st = om_fail(h->session, OM_IO, "%s: %s", path, strerror(errno));
	if (st != OM_OK)
		unlink(part);
	return st;
}

static om_status
read_manifest(om_hub *h, const char *path, const char *where, om_manifest *m)
{
	char *text;
	size_t n;

	OM_TRY(om_read_all(h->session, h->mem, path, MANIFEST_LIMIT, &text, &n));
	return om_manifest_read(h->session, h->mem, text, n, where, m);
}

static const char *
manifest_path(const om_hub *h, const char *url)
{
	om_sha256 *sum = om_sha256_new(h->mem);
	char text[OM_SHA256_TEXT];

	om_sha256_add(sum, url, strlen(url));
	om_sha256_end(sum, text);
	return om_printf(h->mem, "%s/manifests/%s.json", h->cache, text);
}

om_status
om_hub_manifest(om_hub *h, const char *where, om_manifest *m)
{
	if (!om_is_url(where))
		return read_manifest(h, where, where, m);
	const char *shown = om_shown_url(h->mem, where);
	const char *path = manifest_path(h, where);
	om_status st = OM_OK;
	if (!h->offline && (st = fetch_manifest(h, where, path, m)) == OM_OK)
		return OM_OK;
	if (access(path, R_OK) != 0)
		return h->offline ? om_fail(h->session, OM_DOWNLOAD, "the manifest %s is not in the cache, and --offline fetches "
			"nothing", shown) : st;
	if (!h->offline)
		om_warn(h->session, "%s; the one in the cache is used", om_message(h->session));
	return read_manifest(h, path, shown, m);
}
