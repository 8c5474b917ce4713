/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mute.h"
#include "base/clean_text.h"
#include "base/guard.h"
#include "base/memory_limit.h"
#include "base/progress.h"
#include "onnxmem/version.h"

struct om_session {
	char message[2048];
	om_logger *log;
	void *log_arg;
	enum om_log_level level;
	int muted;              /* how many callers drop lines */
	om_progress *tell;
	void *tell_arg;
	om_allowance *allows;
	void *allows_arg;
	uint64_t load_limit;     /* 0: the default */
	atomic_bool is_stopped;
};

om_session *
om_session_new(void)
{
	return calloc(1, sizeof(om_session));
}

void
om_session_free(om_session *s)
{
	free(s);
}

void
om_session_log(om_session *s, om_logger *log, void *arg, enum om_log_level level)
{
	s->log = log;
	s->log_arg = arg;
	s->level = level;
}

void
om_session_memory(om_session *s, om_allowance *allows, void *arg)
{
	s->allows = allows;
	s->allows_arg = arg;
}

bool
om_session_allows(om_session *s, size_t n)
{
	return !s->allows || s->allows(s->allows_arg, n);
}

void
om_session_load_limit(om_session *s, uint64_t bytes)
{
	s->load_limit = bytes;
}

uint64_t
om_session_load_bytes(const om_session *s)
{
	return s && s->load_limit ? s->load_limit : (uint64_t)1 << 30;
}

void
om_session_stop(om_session *s, bool stops)
{
	atomic_store_explicit(&s->is_stopped, stops, memory_order_relaxed);
}

bool
om_session_is_stopped(const om_session *s)
{
	return s && atomic_load_explicit(&s->is_stopped, memory_order_relaxed);
}

void
om_session_progress(om_session *s, om_progress *tell, void *arg)
{
	s->tell = tell;
	s->tell_arg = arg;
}

void
om_report_progress(om_session *s, const char *what, uint64_t best, uint64_t bound)
{
	if (s && s->tell)
		s->tell(s->tell_arg, what, best, bound);
}

const char *
om_status_text(om_status st)
{
	static const char *const text[] = {
#define OM_STATUS_TEXT(name, code, text) [OM_##name] = text,
		OM_STATUS_LIST(OM_STATUS_TEXT)
#undef OM_STATUS_TEXT
	};
	return text[st];
}

int
om_status_exit(om_status st)
{
	static const int code[] = {
#define OM_STATUS_EXIT(name, code, text) [OM_##name] = code,
		OM_STATUS_LIST(OM_STATUS_EXIT)
#undef OM_STATUS_EXIT
	};
	return code[st];
}

const char *
om_message(const om_session *s)
{
	return s->message;
}

om_status
om_fail(om_session *s, om_status st, const char *fmt, ...)
{
	va_list ap;

	assert(st != OM_OK);
	if (!s)
		return st;
	va_start(ap, fmt);
	vsnprintf(s->message, sizeof s->message, fmt, ap);
	va_end(ap);
	om_text_clean(s->message);
	return st;
}

om_status
om_note(om_session *s, om_status st, const char *fmt, ...)
{
	va_list ap;

	if (!s)
		return st;
	size_t n = strlen(s->message);
	n += (size_t)snprintf(s->message + n, sizeof s->message - n, "; while ");
	if (n >= sizeof s->message)
		return st;
	va_start(ap, fmt);
	vsnprintf(s->message + n, sizeof s->message - n, fmt, ap);
	va_end(ap);
	om_text_clean(s->message + n);
	return st;
}

int
om_session_mute(om_session *s, int more)
{
	return s ? s->muted += more : 0;
}

void
om_log(om_session *s, enum om_log_level level, const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	if (!s || !s->log || s->muted || level > s->level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	om_text_clean(line);
	s->log(s->log_arg, level, line);
}

const char *
om_version(void)
{
	return OM_VERSION_TEXT;
}
