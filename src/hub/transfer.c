/* One request, by libcurl.
 *
 * A request that begins inside a file asks for the rest.  What a server then
 * does is up to it: 206 goes on from there, and has to say so; 200 is the whole
 * thing again, so the file is emptied; 416 says that there is no rest.  Bytes
 * beyond the expected size are refused as they come: a server cannot fill the
 * disk.  Errors sort into those that another try may mend and those that it
 * will not. */
#include <config.h>

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/hub.h"

struct request {
	om_transfer *t;
	CURL *curl;
	uint64_t at;             /* where the next byte goes */
	uint64_t start;          /* where this request begins */
	uint64_t range;          /* the first byte as the answer gives it */
	bool has_range, begun;
	bool decided;            /* `end` and `why` are set */
	char error[CURL_ERROR_SIZE];
};

/* ---- While it comes. ---- */

static size_t
stop(struct request *r, enum om_transfer_end end)
{
	r->t->end = end;
	r->decided = true;
	return 0;
}

/* Headers of each answer on the way, so of redirects too: the last one counts. */
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

/* Before the first byte: is it the one that was asked for? */
static bool
begin(struct request *r)
{
	long code = 0;

	r->begun = true;
	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &code);
	if (code == 206 && (!r->has_range || r->range != r->start)) {
		snprintf(r->t->why, sizeof r->t->why, "the server sent another part than the one asked for");
		r->t->end = ftruncate(r->t->fd, 0) == 0 ? OM_AGAIN : OM_LOCAL;
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
		const ssize_t put = pwrite(r->t->fd, data, n, (off_t)r->at);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0) {
			const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
			snprintf(r->t->why, sizeof r->t->why, "it cannot be written: %s%s", strerror(errno),
				full ? "; make room, or set ONNX_HOME to a folder that has some" : "");
			return false;
		}
		data += put;
		n -= (size_t)put;
		r->at += (uint64_t)put;
	}
	return true;
}

static size_t
on_body(char *data, size_t size, size_t n, void *arg)
{
	struct request *r = arg;
	om_transfer *t = r->t;

	n *= size;
	if (!r->begun && !begin(r))
		return r->decided ? 0 : stop(r, OM_LOCAL);
	t->came += n;
	if (t->expected && (r->at > t->expected || n > t->expected - r->at)) {
		snprintf(t->why, sizeof t->why, "the server sends more than the %llu bytes that the manifest gives",
			(unsigned long long)t->expected);
		return stop(r, OM_NEVER);
	}
	return write_all(r, data, n) ? n : stop(r, OM_LOCAL);
}

static int
on_progress(void *arg, curl_off_t all, curl_off_t now, curl_off_t upall, curl_off_t upnow)
{
	struct request *r = arg;
	om_transfer *t = r->t;

	(void)now, (void)upall, (void)upnow;
	if (t->progress)
		t->progress(t->progress_arg, r->at, t->expected ? t->expected : all > 0 ? (uint64_t)all : 0);
	return 0;
}

/* ---- What to ask for. ---- */

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

/* libcurl itself takes proxies from the environment.  An address with https is
 * not led to one without. */
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

/* ---- What became of it. ---- */

/* The server said no, by a number. */
static void
judge_code(struct request *r, long code)
{
	om_transfer *t = r->t;
	const char *what =
		code == 404 || code == 410 ? "it is not there (%ld); `--mirror URL` names another place" :
		code == 401 || code == 403 ? "the server refuses it (%ld): it may want a login, as in "
			"https://USER:TOKEN@HOST/, or be closed; `--mirror URL` names another place" :
		code == 429 ? "too many requests (%ld); try later" :
		code == 416 ? "the server has nothing behind what is here (%ld)" :
		"the server answers %ld";

	snprintf(t->why, sizeof t->why, what, code);
	t->end = code >= 500 || code == 408 || code == 425 || code == 429 || code == 416 ? OM_AGAIN : OM_NEVER;
	if (code == 416 && ftruncate(t->fd, 0) != 0)
		t->end = OM_LOCAL;
}

static bool
is_lasting(CURLcode rc)
{
	return rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_URL_MALFORMAT || rc == CURLE_TOO_MANY_REDIRECTS
	    || rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE
	    || rc == CURLE_FILE_COULDNT_READ_FILE;
}

/* Nobody vouches for the server, or who might is not known. */
static bool
is_trust(const struct request *r, CURLcode rc)
{
	/* As OpenSSL numbers them; libcurl says 1 where it did not come to that, or the name is another. */
	enum { FINE = 0, OTHER = 1, EXPIRED = 10 };
	long verified = 0;

	curl_easy_getinfo(r->curl, CURLINFO_SSL_VERIFYRESULT, &verified);
	return rc == CURLE_SSL_CACERT_BADFILE
	    || (rc == CURLE_PEER_FAILED_VERIFICATION && verified != FINE && verified != OTHER && verified != EXPIRED);
}

static void
judge(struct request *r, CURLcode rc)
{
	om_transfer *t = r->t;
	curl_off_t wait = 0;
	long code = 0;

	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &code);
	curl_easy_getinfo(r->curl, CURLINFO_RETRY_AFTER, &wait);
	t->wait = (double)wait;
	if (r->decided)
		return;
	if (rc == CURLE_OK) {
		t->end = OM_CAME;
	} else if (rc == CURLE_HTTP_RETURNED_ERROR) {
		judge_code(r, code);
	} else {
		t->end = is_lasting(rc) ? OM_NEVER : OM_AGAIN;
		snprintf(t->why, sizeof t->why, "%s%s", *r->error ? r->error : curl_easy_strerror(rc),
			is_trust(r, rc) ? "; CURL_CA_BUNDLE or SSL_CERT_FILE names a file of certificates to trust" : "");
	}
}

static void
perform(struct request *r)
{
	char range[32] = "";

	if (r->start)
		snprintf(range, sizeof range, "%llu-", (unsigned long long)r->start);
	set_options(r, range);
	judge(r, curl_easy_perform(r->curl));
}

void
om_transfer_run(om_transfer *t)
{
	struct request r = {.t = t, .curl = curl_easy_init()};
	struct stat st;

	t->end = OM_LOCAL;
	t->came = 0;
	t->wait = 0;
	if (!r.curl || fstat(t->fd, &st) != 0) {
		snprintf(t->why, sizeof t->why, "no transfer could be started");
	} else {
		r.at = r.start = (uint64_t)st.st_size;
		perform(&r);
	}
	curl_easy_cleanup(r.curl);
}
