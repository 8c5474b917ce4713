/* SPDX-License-Identifier: Apache-2.0 */
/* Files from the cache, or downloads into it.
 *
 * A file is downloaded as PATH.part.  The process that writes it holds a lock on
 * it; others wait, then check again, and find the finished file.  The lock belongs
 * to the process, so it is released when the process ends: the partial file of a
 * killed process is continued by the next one.  A continued file with a checksum
 * mismatch may have had a wrong beginning: it is downloaded from the start before
 * the mirror is given up.
 *
 * Each mirror gets a number of attempts, with growing delays between them; an
 * attempt that makes enough progress does not count, and there are at most 64 of
 * these for a file, so it terminates.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output_file.h"
#include "base/sha256.h"
#include "hub/hub.h"

struct job {
	om_hub *h;
	const om_hub_file *f;
	const char *name;        /* for messages: the last component of the path */
	const char *path, *part; /* in the cache */
	int fd;                  /* of the partial file, locked */
	const char *errors;       /* the errors of all mirrors */
	char sum[65];            /* of a file whose checksum is not known before */
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

/* Is the file in the cache, and valid?  A damaged file is removed. */
static om_status
check_cached(struct job *j, bool *exists)
{
	om_hub *h = j->h;
	char sum[65];
	om_status st = OM_OK;
	const int fd = open(j->path, O_RDONLY | O_CLOEXEC);

	*exists = false;
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return OM_OK;
	if (fd < 0)
		return om_fail(h->session, OM_IO, "%s: %s", j->path, strerror(errno));
	st = om_file_sha256(h->session, h->mem, fd, j->path, sum);
	close(fd);
	OM_TRY(st);
	*exists = strcmp(sum, j->f->sha256) == 0;
	if (*exists)
		return OM_OK;
	if (h->offline)
		return om_fail(h->session, OM_DOWNLOAD, "%s: the cached file has the SHA-256 %s, %s %s; "
			"without --offline it is downloaded again", j->path, sum,
			j->f->url ? "expected was" : "the manifest", j->f->sha256);
	om_warn(h->session, "%s: damaged (SHA-256 mismatch); it is downloaded again", j->path);
	return unlink(j->path) == 0 || errno == ENOENT ? OM_OK
	     : om_fail(h->session, OM_IO, "%s: damaged, and cannot be removed: %s", j->path, strerror(errno));
}

/* Does the path still refer to the open file? */
static bool
is_current(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The previous owner of the lock may have renamed the file. */
static om_status
lock_part(struct job *j)
{
	om_session *s = j->h->session;

	for (;;) {
		j->fd = open(j->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (j->fd < 0)
			return om_fail(s, OM_IO, "%s: %s", j->part, strerror(errno));
		if (flock(j->fd, LOCK_EX | LOCK_NB) != 0) {
			om_info(s, "%s: waiting for another process that downloads it", j->name);
			if (flock(j->fd, LOCK_EX) != 0 && errno != EINTR)
				return om_fail(s, OM_IO, "%s: cannot be locked: %s", j->part, strerror(errno));
		}
		if (is_current(j->fd, j->part))
			return OM_OK;
		close(j->fd);
		j->fd = -1;
	}
}

/* ---- Verification. ---- */

/* Detect unexpected content by its first bytes; NULL if it is not recognized. */
static const char *
recognize_content(struct job *j)
{
	static const char pointer[] = "version https://git-lfs.github.com/spec/";
	char text[512];
	const ssize_t n = pread(j->fd, text, sizeof text - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	if (strncmp(text, pointer, sizeof pointer - 1) == 0 && size_of(j->fd) < 1024) {
		const char *oid = strstr(text, "oid sha256:");
		const bool same = oid && j->f->sha256 && strncmp(oid + 11, j->f->sha256, 64) == 0;
		return om_printf(j->h->mem,
			"a Git LFS pointer%s, not the file itself: the server stores the file elsewhere, or "
			"not any more; use another mirror with `--mirror URL`", same ? " to this very file" : "");
	}
	const char *at = text + strspn(text, " \t\r\n");
	if (strncasecmp(at, "<!doctype html", 14) == 0 || strncasecmp(at, "<html", 5) == 0)
		return "a web page, not the file";
	return NULL;
}

static const char *
expected_by(const struct job *j)
{
	return j->f->url ? "expected was" : "the manifest has";
}

/* Verify a complete file.  After a mismatch the partial file is truncated. */
static om_status
check_sum(struct job *j, bool resumed, om_transfer *t)
{
	const char *content = recognize_content(j);
	char sum[65];

	OM_TRY(om_file_sha256(j->h->session, j->h->mem, j->fd, j->part, sum));
	memcpy(j->sum, sum, sizeof sum);
	if (j->f->sha256 ? strcmp(sum, j->f->sha256) == 0 : !content)
		return OM_OK;
	t->end = resumed && !content ? OM_TRANSFER_RETRY : OM_TRANSFER_FAILED;
	if (content)
		snprintf(t->reason, sizeof t->reason, "the server sent %s", content);
	else
		snprintf(t->reason, sizeof t->reason, "SHA-256 mismatch: %s, %s %s", sum, expected_by(j), j->f->sha256);
	if (ftruncate(j->fd, 0) != 0)
		t->end = OM_TRANSFER_LOCAL_ERROR;
	return OM_OK;
}

/* Classify a finished transfer: `end` becomes OM_TRANSFER_DONE only if the file is valid. */
static om_status
classify_result(struct job *j, bool resumed, om_transfer *t)
{
	const uint64_t size = size_of(j->fd), all = j->f->bytes;

	if (t->end == OM_TRANSFER_LOCAL_ERROR)
		return OM_OK;
	if (all && size == all)
		t->end = OM_TRANSFER_DONE;
	if (t->end != OM_TRANSFER_DONE)
		return OM_OK;
	if (!all || size == all)
		return check_sum(j, resumed, t);
	const char *content = recognize_content(j);
	t->end = content ? OM_TRANSFER_FAILED : OM_TRANSFER_RETRY;
	if (content)
		snprintf(t->reason, sizeof t->reason, "the server sent %s", content);
	else
		snprintf(t->reason, sizeof t->reason, "the transfer ended after %llu of %llu bytes",
			(unsigned long long)size,
			(unsigned long long)all);
	return content && ftruncate(j->fd, 0) != 0
	     ? om_fail(j->h->session, OM_IO, "%s: %s", j->part, strerror(errno)) : OM_OK;
}

/* ---- Attempts. ---- */

static void
report_progress(void *arg, uint64_t now, uint64_t all)
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

/* Exponential backoff up to 30 seconds, or the delay that the server requests up to
 * two minutes. */
static void
wait_before(struct job *j, uint64_t failed, const om_transfer *t)
{
	const double backoff = fmin(30, j->h->delay * pow(2, (double)(failed < 16 ? failed : 16) - 1));
	const double requested = fmin(120, t->retry_after);

	om_info(j->h->session, "%s: %s; retrying in %.1f s", j->name, t->reason, fmax(backoff, requested));
	wait_seconds(fmax(backoff, requested));
}

/* Nothing would tell that the file has changed since its beginning came. */
static bool
starts_anew(const struct job *j, uint64_t before)
{
	const uint64_t all = j->f->bytes;
	return (all && before > all) || (before && !j->f->sha256);
}

/* One transfer, or only the verification of a partial file that is complete. */
static om_status
try_once(struct job *j, om_transfer *t)
{
	const uint64_t before = size_of(j->fd), all = j->f->bytes;

	if (starts_anew(j, before) && ftruncate(j->fd, 0) != 0)
		return om_fail(j->h->session, OM_IO, "%s: %s", j->part, strerror(errno));
	if (all && before == all) {
		*t->reason = '\0';
		t->end = OM_TRANSFER_DONE;
	} else {
		om_transfer_run(t);
		j->h->bytes += t->received;
	}
	return classify_result(j, before > 0, t);
}

static om_status
try_url(struct job *j, const char *url, om_transfer *t)
{
	const uint64_t min_progress = j->f->bytes / 64 + 4096;

	t->url = url;
	om_info(j->h->session, "%s: from %s", j->name, om_url_for_messages(j->h->mem, t->url));
	for (uint64_t failed = 0;;) {
		const uint64_t before = size_of(j->fd);
		OM_TRY(try_once(j, t));
		if (t->end != OM_TRANSFER_RETRY)
			return OM_OK;
		failed = size_of(j->fd) >= before + min_progress ? 1 : failed + 1;
		if (failed >= j->h->attempts || om_now_ms() > t->deadline)
			return OM_OK;
		wait_before(j, failed, t);
	}
}

static om_status
try_mirrors(struct job *j)
{
	om_hub *h = j->h;
	om_transfer t = {.fd = j->fd, .expected = j->f->bytes, .limit = h->size_limit, .timeout = h->timeout,
		.min_rate = h->min_rate, .deadline = om_now_ms() + 1e3 * h->max_time, .progress = report_progress,
		.progress_arg = j, .hook = h->hook};

	if (j->f->bytes > h->size_limit)
		return om_fail(h->session, OM_DOWNLOAD, "%s has %llu bytes, which is more than the limit of %llu; "
			"`--size-limit SIZE` sets another one", j->name, (unsigned long long)j->f->bytes,
			(unsigned long long)h->size_limit);
	j->errors = "";
	const size_t n = j->f->url ? 1 : h->nmirror;
	for (size_t k = 0; k < n; k++) {
		OM_TRY(try_url(j, j->f->url ? j->f->url : om_url_join(h->mem, h->mirror[k], j->f->path), &t));
		if (t.end == OM_TRANSFER_DONE)
			return OM_OK;
		if (t.end == OM_TRANSFER_LOCAL_ERROR)
			return om_fail(h->session, OM_IO, "%s: %s", j->part, t.reason);
		j->errors = om_printf(h->mem, "%s; %s: %s", j->errors, om_url_for_messages(h->mem, t.url), t.reason);
	}
	return om_fail(h->session, OM_DOWNLOAD, "%s cannot be downloaded%s", j->name,
		n ? j->errors : ": no mirror is known; add one with `--mirror URL`");
}

/* ---- Completion. ---- */

static om_status
commit_file(struct job *j)
{
	om_session *s = j->h->session;

	if (fchmod(j->fd, 0644) != 0 || fsync(j->fd) != 0 || om_output_replace(j->part, j->path) != 0)
		return om_fail(s, OM_IO, "%s: %s", j->path, strerror(errno));
	j->h->nfetched++;
	return OM_OK;
}

/* Keep the partial file for the next attempt unless it is empty. */
static void
close_part(struct job *j)
{
	if (size_of(j->fd) == 0 && is_current(j->fd, j->part))
		unlink(j->part);
	close(j->fd);
}

static om_status
fetch_locked(struct job *j)
{
	bool exists;

	OM_TRY(check_cached(j, &exists));
	if (exists) {
		j->h->ncached++;
		return OM_OK;
	}
	OM_TRY(try_mirrors(j));
	return commit_file(j);
}

/* ---- Files whose checksum is not known. ---- */

/* The checksum of the first download, which is next to it; NULL: there was none. */
static const char *
recorded_sum(om_hub *h, const char *record)
{
	char text[65] = "";
	FILE *in = fopen(record, "r");
	const size_t n = in ? fread(text, 1, 64, in) : 0;

	if (in)
		fclose(in);
	return n == 64 && om_is_sha256(text) ? om_strdup(h->mem, text) : NULL;
}

static om_status
write_sum(om_session *s, FILE *to, void *sum)
{
	(void)s;
	fprintf(to, "%s\n", (const char *)sum);
	return OM_OK;
}

/* Another process may have finished it before the lock was taken. */
static om_status
fetch_first(struct job *j, const char *record, const char **sum)
{
	om_hub *h = j->h;

	OM_TRY(lock_part(j));
	*sum = recorded_sum(h, record);
	if (*sum)
		return OM_OK;
	OM_TRY(try_mirrors(j));
	om_hub_file f = *j->f;
	f.sha256 = *sum = om_strdup(h->mem, j->sum);
	j->path = cached_path(h, &f);
	OM_TRY(commit_file(j));
	return om_output_write(h->session, record, write_sum, j->sum);
}

static om_status
fetch_recorded(om_hub *h, const om_hub_file *f, const char *sum, const char **path)
{
	om_hub_file known = *f;

	known.sha256 = sum;
	return om_hub_fetch(h, &known, path);
}

static om_status
fetch_unknown(om_hub *h, const om_hub_file *f, const char **path)
{
	const char *slash = strrchr(f->path, '/'), *at = om_printf(h->mem, "%s/%s", h->cache, f->path);
	const char *record = om_printf(h->mem, "%s.sha256", at), *sum = recorded_sum(h, record);
	struct job j = {.h = h, .f = f, .name = slash ? slash + 1 : f->path, .part = om_printf(h->mem, "%s.part", at), .fd = -1};

	if (sum)
		return fetch_recorded(h, f, sum, path);
	if (h->offline)
		return om_fail(h->session, OM_DOWNLOAD, "%s is not in the cache %s, and --offline forbids downloads", j.name, h->cache);
	OM_TRY(om_make_parent_folders(h->session, at));
	const uint64_t before = h->nfetched;
	om_status st = fetch_first(&j, record, &sum);
	if (j.fd >= 0)
		close_part(&j);
	OM_TRY(st);
	if (h->nfetched == before)
		return fetch_recorded(h, f, sum, path);
	om_warn(h->session, "%s: its checksum is not known; that of this download is recorded: #sha256=%s", j.name, sum);
	*path = j.path;
	return OM_OK;
}

/* ---- All. ---- */

om_status
om_hub_fetch(om_hub *h, const om_hub_file *f, const char **path)
{
	if (!f->sha256)
		return fetch_unknown(h, f, path);
	const char *slash = strrchr(f->path, '/');
	struct job j = {.h = h, .f = f, .name = slash ? slash + 1 : f->path, .path = cached_path(h, f), .fd = -1};
	bool exists;

	*path = j.path;
	j.part = om_printf(h->mem, "%s.part", j.path);
	OM_TRY(check_cached(&j, &exists));
	if (exists) {
		h->ncached++;
		return OM_OK;
	}
	if (h->offline)
		return om_fail(h->session, OM_DOWNLOAD, "%s is not in the cache %s, and --offline forbids downloads",
			j.name,
			h->cache);
	OM_TRY(om_make_parent_folders(h->session, j.path));
	om_status st = lock_part(&j);
	if (st == OM_OK)
		st = fetch_locked(&j);
	if (j.fd >= 0)
		close_part(&j);
	return st;
}

/* ---- Manifests by URL. ---- */

enum { MANIFEST_LIMIT = 64 << 20 };

/* There is no checksum: the manifest has to be parsed successfully.  Its file name
 * is the hash of its URL. */
static om_status
fetch_manifest(om_hub *h, const char *url, const char *path, om_manifest *m)
{
	const char *part = om_printf(h->mem, "%s.%ld.part", path, (long)getpid());
	char *text;
	size_t n;

	OM_TRY(om_make_parent_folders(h->session, part));
	om_transfer t = {.url = url, .hook = h->hook, .timeout = h->timeout, .limit = MANIFEST_LIMIT, .min_rate = h->min_rate,
		.deadline = om_now_ms() + 1e3 * h->max_time};
	t.fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (t.fd < 0)
		return om_fail(h->session, OM_IO, "%s: %s", part, strerror(errno));
	for (uint64_t failed = 1;; failed++) {
		om_transfer_run(&t);
		h->bytes += t.received;
		if (t.end != OM_TRANSFER_RETRY || failed >= h->attempts || om_now_ms() > t.deadline)
			break;
		struct job j = {.h = h, .name = "the manifest"};
		wait_before(&j, failed, &t);
		if (ftruncate(t.fd, 0) != 0)
			break;
	}
	close(t.fd);
	om_status st = t.end == OM_TRANSFER_DONE ? om_read_all(h->session, h->mem, part, MANIFEST_LIMIT, &text,
		&n)
		: om_fail(h->session, OM_DOWNLOAD, "the manifest %s cannot be downloaded: %s",
			om_url_for_messages(h->mem, url), t.reason);
	if (st == OM_OK)
		st = om_manifest_read(h->session, h->mem, text, n, om_url_for_messages(h->mem, url), m);
	if (st == OM_OK && om_output_replace(part, path) != 0)
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
	const char *shown = om_url_for_messages(h->mem, where);
	const char *path = manifest_path(h, where);
	om_status st = OM_OK;
	if (!h->offline && (st = fetch_manifest(h, where, path, m)) == OM_OK)
		return OM_OK;
	if (access(path, R_OK) != 0)
		return h->offline ? om_fail(h->session, OM_DOWNLOAD,
			"the manifest %s is not in the cache, and --offline forbids "
			"downloads", shown) : st;
	if (!h->offline)
		om_warn(h->session, "%s; the cached one is used", om_message(h->session));
	return read_manifest(h, path, shown, m);
}
