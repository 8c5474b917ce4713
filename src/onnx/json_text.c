/* SPDX-License-Identifier: Apache-2.0 */
/* Compact JSON as text; see json_text.h. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/arena_internal.h"
#include "base/clean_text.h"
#include "base/decimal.h"
#include "onnx/json_text.h"

static void
release(void *arg)
{
	const om_json *j = arg;

	free(j->text);
}

om_json *
om_json_new(om_arena *mem)
{
	om_json *j = OM_NEW(mem, om_json);

	om_arena_defer(mem, release, j);
	return j;
}

/* ---- Bytes. ---- */

enum { FIRST = 4096 };

static bool
has_room(om_json *j, size_t n)
{
	size_t cap = j->cap ? j->cap : FIRST;

	if (n <= j->cap - j->n)
		return true;
	while (cap - j->n < n && cap <= SIZE_MAX / 2)
		cap *= 2;
	char *more = j->is_short ? NULL : realloc(j->text, cap);
	if (!more) {
		j->is_short = true;
		return false;
	}
	j->text = more;
	j->cap = cap;
	return true;
}

static void
put(om_json *j, const char *s, size_t n)
{
	if (n == 0 || !has_room(j, n))
		return;
	memcpy(j->text + j->n, s, n);
	j->n += n;
}

/* An item starts here. */
static void
begin(om_json *j)
{
	if (j->is_next)
		put(j, ",", 1);
	j->is_next = true;
}

/* ---- Strings. ---- */

/* The bytes that need no escape, from `s` on; they are UTF-8 as far as they go. */
static size_t
plain(const unsigned char *s)
{
	size_t n = 0, of;

	while (s[n] >= 0x20 && s[n] != '"' && s[n] != '\\' && (of = s[n] < 0x80 ? 1 : om_text_utf8(s + n)))
		n += of;
	return n;
}

static void
escape(om_json *j, unsigned char c)
{
	static const char special[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	char text[8] = {'\\'};

	for (const char *at = special; *at; at += 2)
		if (at[0] == (char)c)
			text[1] = at[1];
	if (!text[1])
		snprintf(text, sizeof text, "\\u%04X", c);
	put(j, text, strlen(text));
}

static bool
is_utf8(const char *s)
{
	const unsigned char *at = (const unsigned char *)s;

	while (*at) {
		const size_t n = *at < 0x80 ? 1 : om_text_utf8(at);
		if (n == 0)
			return false;
		at += n;
	}
	return true;
}

static void
quoted(om_json *j, const char *s)
{
	const unsigned char *at = (const unsigned char *)s;

	put(j, "\"", 1);
	for (;;) {
		const size_t n = plain(at);
		put(j, (const char *)at, n);
		at += n;
		if (!*at)
			break;
		escape(j, *at++);
	}
	put(j, "\"", 1);
}

/* ---- Items. ---- */

void
om_json_open(om_json *j, char bracket)
{
	begin(j);
	put(j, &bracket, 1);
	j->is_next = false;
}

void
om_json_close(om_json *j, char bracket)
{
	put(j, &bracket, 1);
	j->is_next = true;
}

void
om_json_string(om_json *j, const char *s)
{
	if (!is_utf8(s)) {
		j->bad = s;
		om_json_null(j);
		return;
	}
	begin(j);
	quoted(j, s);
}

void
om_json_key(om_json *j, const char *key)
{
	om_json_string(j, key);
	put(j, ":", 1);
	j->is_next = false;
}

void
om_json_integer(om_json *j, int64_t n)
{
	char s[OM_DECIMAL];
	const char *digits = om_decimal(s, n);

	begin(j);
	put(j, digits, strlen(digits));
}

void
om_json_true(om_json *j)
{
	begin(j);
	put(j, "true", 4);
}

void
om_json_null(om_json *j)
{
	begin(j);
	put(j, "null", 4);
}

char *
om_json_take(om_json *j)
{
	put(j, "", 1);
	char *text = j->is_short ? NULL : j->text;
	if (text)
		j->text = NULL;
	return text;
}
