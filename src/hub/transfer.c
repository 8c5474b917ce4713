/* SPDX-License-Identifier: Apache-2.0 */
/* One request, by libcurl.
 *
 * A request that continues a file asks for the rest.  The answer may be 206: the
 * rest, with a header that says so; 200: the whole file, so the file is truncated;
 * 416: there is no rest.  Bytes beyond the expected size or the limit are refused on
 * arrival: a server cannot fill the disk.  A transfer that is slower than a rate on average, or that is not
 * over at the deadline, is ended: a server cannot hold the client.  Errors are classified as transient or
 * permanent.
 */
#include <config.h>

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "hub/hub_module.h"

struct request {
	om_transfer *t;
	CURL *curl;
	uint64_t at;             /* offset of the next byte */
	uint64_t start;          /* offset at which this request begins */
	uint64_t range;          /* the first byte according to the answer */
	double begin_ms;
	bool has_range, begun;
	bool decided;            /* `end` and `reason` are set */
	char error[CURL_ERROR_SIZE];
};

/* ---- During the transfer. ---- */

static size_t
stop_transfer(struct request *r, enum om_transfer_end end)
{
	r->t->end = end;
	r->decided = true;
	return 0;
}

/* Called for the headers of every answer, including redirects: the last one counts. */
static size_t
on_header(char *text, size_t size, size_t n, void *arg)
{
	struct request *r = arg;
	static const char range[] = "Content-Range: bytes ";

	n *= size;
	if (n >= 5 && memcmp(text, "HTTP/", 5) == 0)
		r->has_range = false;
	if (n > sizeof range && strncasecmp(text, range, sizeof range - 1) == 0) {
		r->has_range = true;
		r->range = strtoull(text + sizeof range - 1, NULL, 10);  /* ends at the "-" */
	}
	return n;
}

/* Before the first byte: is it the requested offset? */
static bool
begin(struct request *r)
{
	long code = 0;

	r->begun = true;
	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &code);
	if (code == 206 && (!r->has_range || r->range != r->start)) {
		snprintf(r->t->reason, sizeof r->t->reason, "the server sent a different range than requested");
		r->t->end = ftruncate(r->t->fd, 0) == 0 ? OM_TRANSFER_RETRY : OM_TRANSFER_LOCAL_ERROR;
		r->decided = true;
		return false;
	}
	if (code == 206 || code == 0 || r->start == 0)
		return true;
	r->at = r->start = 0;
	return ftruncate(r->t->fd, 0) == 0;
}

static bool
write_all(struct request *r, const char *data, size_t n)
{
	while (n) {
		const ssize_t written = pwrite(r->t->fd, data, n, (off_t)r->at);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
			snprintf(r->t->reason, sizeof r->t->reason, "cannot write: %s%s", strerror(errno),
				is_full ? "; free disk space, or set ONNX_HOME to another folder" : "");
			return false;
		}
		data += written;
		n -= (size_t)written;
		r->at += (uint64_t)written;
	}
	return true;
}

static size_t
refuse_more(struct request *r)
{
	om_transfer *t = r->t;

	if (t->expected)
		snprintf(t->reason, sizeof t->reason, "the server sends more than the %llu bytes of the manifest",
			(unsigned long long)t->expected);
	else
		snprintf(t->reason, sizeof t->reason, "the server sends more than the limit of %llu bytes",
			(unsigned long long)t->limit);
	return stop_transfer(r, ftruncate(t->fd, 0) == 0 ? OM_TRANSFER_FAILED : OM_TRANSFER_LOCAL_ERROR);
}

static size_t
on_body(char *data, size_t size, size_t n, void *arg)
{
	struct request *r = arg;
	om_transfer *t = r->t;

	n *= size;
	if (!r->begun && !begin(r))
		return r->decided ? 0 : stop_transfer(r, OM_TRANSFER_LOCAL_ERROR);
	t->received += n;
	const uint64_t most = t->expected ? t->expected : t->limit;
	if (r->at > most || n > most - r->at)
		return refuse_more(r);
	return write_all(r, data, n) ? n : stop_transfer(r, OM_TRANSFER_LOCAL_ERROR);
}

/* The time to connect, and the time without data that is allowed, are not counted. */
static bool
is_too_slow(struct request *r)
{
	om_transfer *t = r->t;
	const double now = om_now_ms(), seconds = (now - r->begin_ms) / 1e3;

	if (now > t->deadline) {
		snprintf(t->reason, sizeof t->reason, "not complete in the time of --max-time");
		stop_transfer(r, OM_TRANSFER_FAILED);
		return true;
	}
	if (seconds <= 2 * t->timeout || (double)t->received >= (double)t->min_rate * (seconds - 2 * t->timeout))
		return false;
	snprintf(t->reason, sizeof t->reason, "slower than %llu bytes per second, the least of --min-rate",
		(unsigned long long)t->min_rate);
	stop_transfer(r, OM_TRANSFER_RETRY);
	return true;
}

static int
on_progress(void *arg, curl_off_t all, curl_off_t now, curl_off_t upall, curl_off_t upnow)
{
	struct request *r = arg;
	om_transfer *t = r->t;

	(void)now, (void)upall, (void)upnow;
	if (is_too_slow(r))
		return 1;
	if (t->progress)
		t->progress(t->progress_arg, r->at, t->expected ? t->expected : all > 0 ? (uint64_t)all : 0);
	return 0;
}

/* ---- The request. ---- */

static void
set_trust(CURL *curl)
{
	const char *file = getenv("CURL_CA_BUNDLE"), *dir = getenv("SSL_CERT_DIR");

	file = file && *file ? file : getenv("SSL_CERT_FILE");
	if (file && *file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, file);
	if (dir && *dir)
		curl_easy_setopt(curl, CURLOPT_CAPATH, dir);
}

/* libcurl reads proxies from the environment.  HTTPS is never redirected to HTTP. */
static void
set_options(struct request *r, const char *range)
{
	CURL *curl = r->curl;
	const om_transfer *t = r->t;
	const bool safe = strncasecmp(t->url, "https:", 6) == 0;
	const long ms = t->timeout < 1e6 ? (long)(t->timeout * 1e3) : 1000000000;

	curl_easy_setopt(curl, CURLOPT_URL, t->url);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, PACKAGE_NAME "/" PACKAGE_VERSION);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
	curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, safe ? "https" : "http,https");
	curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, ms > 0 ? ms : 1);
	curl_easy_setopt(curl, CURLOPT_SERVER_RESPONSE_TIMEOUT, ms / 1000 > 0 ? ms / 1000 : 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, ms / 1000 > 0 ? ms / 1000 : 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, r->error);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, r);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, r);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	if (*range)
		curl_easy_setopt(curl, CURLOPT_RANGE, range);
	set_trust(curl);
}

/* ---- The result. ---- */

/* Classify an HTTP error. */
static void
classify_http(struct request *r, long code)
{
	om_transfer *t = r->t;
	const char *what =
		code == 404 || code == 410 ? "not found (%ld); use another mirror with `--mirror URL`" :
		code == 401 || code == 403 ? "access denied (%ld): it may require a login, as in "
			"https://USER:TOKEN@HOST/, or be private; use another mirror with `--mirror URL`" :
		code == 429 ? "too many requests (%ld); try later" :
		code == 416 ? "the server has no more bytes (%ld)" :
		"the server answered %ld";

	snprintf(t->reason, sizeof t->reason, what, code);
	t->end = code >= 500 || code == 408 || code == 425 || code == 429 || code == 416 ? OM_TRANSFER_RETRY
		: OM_TRANSFER_FAILED;
	if (code == 416 && ftruncate(t->fd, 0) != 0)
		t->end = OM_TRANSFER_LOCAL_ERROR;
}

static bool
is_permanent(CURLcode rc)
{
	return rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_URL_MALFORMAT || rc == CURLE_TOO_MANY_REDIRECTS
	    || rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE
	    || rc == CURLE_FILE_COULDNT_READ_FILE;
}

/* Is the server's certificate not trusted, or are there no trusted certificates? */
static bool
is_untrusted(const struct request *r, CURLcode rc)
{
	/* OpenSSL's codes; libcurl reports 1 if verification did not start, or the name differs. */
	enum { VERIFIED_OK = 0, UNVERIFIED = 1, EXPIRED = 10 };
	long verified = 0;

	curl_easy_getinfo(r->curl, CURLINFO_SSL_VERIFYRESULT, &verified);
	return rc == CURLE_SSL_CACERT_BADFILE
	    || (rc == CURLE_PEER_FAILED_VERIFICATION && verified != VERIFIED_OK && verified != UNVERIFIED
		&& verified != EXPIRED);
}

static void
classify_result(struct request *r, CURLcode rc)
{
	om_transfer *t = r->t;
	curl_off_t retry_after = 0;
	long code = 0;

	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &code);
	curl_easy_getinfo(r->curl, CURLINFO_RETRY_AFTER, &retry_after);
	t->retry_after = (double)retry_after;
	if (r->decided)
		return;
	if (rc == CURLE_OK) {
		t->end = OM_TRANSFER_DONE;
	} else if (rc == CURLE_HTTP_RETURNED_ERROR) {
		classify_http(r, code);
	} else {
		t->end = is_permanent(rc) ? OM_TRANSFER_FAILED : OM_TRANSFER_RETRY;
		snprintf(t->reason, sizeof t->reason, "%s%s", *r->error ? r->error : curl_easy_strerror(rc),
			is_untrusted(r, rc) ? "; CURL_CA_BUNDLE or SSL_CERT_FILE may name a file of trusted certificates"
				: "");
	}
}

static void
perform(struct request *r)
{
	char range[32] = "";

	if (r->start)
		snprintf(range, sizeof range, "%llu-", (unsigned long long)r->start);
	set_options(r, range);
	r->begin_ms = om_now_ms();
	classify_result(r, curl_easy_perform(r->curl));
}

static void
transfer(om_transfer *t)
{
	struct request r = {.t = t, .curl = curl_easy_init()};
	struct stat st;

	t->end = OM_TRANSFER_LOCAL_ERROR;
	t->received = 0;
	t->retry_after = 0;
	if (!r.curl || fstat(t->fd, &st) != 0) {
		snprintf(t->reason, sizeof t->reason, "cannot start the transfer");
	} else {
		r.at = r.start = (uint64_t)st.st_size;
		perform(&r);
	}
	curl_easy_cleanup(r.curl);
}

const om_hub_calls om_hub_module_calls = {.transfer = transfer, .unpack = om_unpack_archive};
