/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text: the context-free parts, which are words, numbers, types and elements. */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "ir/tokens.h"
#include "base/arena_internal.h"
#include "base/half.h"
#include "base/shape.h"

/* ---- Words and numbers. ---- */

om_status
om_text_bad(const struct om_reader *r, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return om_fail(r->s, OM_MALFORMED, "%s:%d: %s", r->where, r->line, what);
}

void
om_text_skip(struct om_reader *r)
{
	for (;; r->at++) {
		if (*r->at == ';')
			r->at += strcspn(r->at, "\n");
		if (*r->at == '\n')
			r->line++;
		else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r')
			return;
	}
}

static bool
is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

bool
om_text_eat(struct om_reader *r, const char *token)
{
	const size_t n = strlen(token);

	om_text_skip(r);
	if (strncmp(r->at, token, n) != 0 || (is_word_char(*token) && is_word_char(r->at[n])))
		return false;
	r->at += n;
	return true;
}

om_status
om_text_want(struct om_reader *r, const char *token)
{
	if (om_text_eat(r, token))
		return OM_OK;
	return om_text_bad(r, "expected %s before \"%.20s\"", token, r->at);
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

om_status
om_text_quoted(struct om_reader *r, om_string *out)
{
	const size_t most = strcspn(r->at, "\n") + 1;
	char *to = om_alloc(r->p->mem, most), *start = to;

	for (r->at++; *r->at != '"'; r->at++) {
		if (*r->at == '\0' || *r->at == '\n')
			return om_text_bad(r, "unterminated string");
		if (*r->at != '\\') {
			*to++ = *r->at;
			continue;
		}
		r->at++;
		if (*r->at == 'x' && hex_digit(r->at[1]) >= 0 && hex_digit(r->at[2]) >= 0) {
			*to++ = (char)(hex_digit(r->at[1]) * 16 + hex_digit(r->at[2]));
			r->at += 2;
		} else if (*r->at == '"' || *r->at == '\\') {
			*to++ = *r->at;
		} else {
			return om_text_bad(r, "a backslash stands before none of \" \\ x00");
		}
	}
	r->at++;
	*out = (om_string){start, (size_t)(to - start)};
	return OM_OK;
}

om_status
om_text_word(struct om_reader *r, const char *also, const char **out)
{
	om_string s;
	size_t n = 0;

	om_text_skip(r);
	if (*r->at == '"') {
		OM_TRY(om_text_quoted(r, &s));
		if (memchr(s.data, '\0', s.size))
			return om_text_bad(r, "a name contains a NUL character");
		*out = s.data;
		return OM_OK;
	}
	while (isalnum((unsigned char)r->at[n]) || (r->at[n] && strchr(also, r->at[n])))
		n++;
	if (n == 0)
		return om_text_bad(r, "expected a name before \"%.20s\"", r->at);
	*out = om_strndup(r->p->mem, r->at, n);
	r->at += n;
	return OM_OK;
}

om_status
om_text_int(struct om_reader *r, int64_t *out)
{
	char *end;

	om_text_skip(r);
	errno = 0;
	*out = strtoll(r->at, &end, 10);
	if (end == r->at || errno)
		return om_text_bad(r, "expected an integer before \"%.20s\"", r->at);
	r->at = end;
	return OM_OK;
}

om_status
om_text_version(struct om_reader *r, int *out)
{
	int64_t v;

	OM_TRY(om_text_int(r, &v));
	if (v < 0 || v > 1000000)
		return om_text_bad(r, "%" PRId64 " is not a version", v);
	*out = (int)v;
	return OM_OK;
}

om_status
om_text_real(struct om_reader *r, double *out)
{
	char *end;

	om_text_skip(r);
	*out = strtod(r->at, &end);
	if (end == r->at)
		return om_text_bad(r, "expected a number before \"%.20s\"", r->at);
	r->at = end;
	return OM_OK;
}

/* ---- Types. ---- */

static om_status
read_dim(struct om_reader *r, om_shape *s)
{
	om_text_skip(r);
	if (s->rank == OM_MAX_RANK)
		return om_text_bad(r, "a shape has more than %d dims", OM_MAX_RANK);
	s->dim[s->rank] = OM_DIM_UNKNOWN;
	if (isdigit((unsigned char)*r->at))
		OM_TRY(om_text_int(r, &s->dim[s->rank]));
	else if (!om_text_eat(r, "?"))
		OM_TRY(om_text_word(r, "_.", &s->sym[s->rank]));
	s->rank++;
	return OM_OK;
}

static om_status
read_shape(struct om_reader *r, om_shape *s)
{
	*s = (om_shape){.rank = 0};
	OM_TRY(om_text_want(r, "["));
	if (om_text_eat(r, "..")) {
		*s = om_shape_unknown();
		return om_text_want(r, "]");
	}
	while (!om_text_eat(r, "]")) {
		if (s->rank)
			OM_TRY(om_text_want(r, ","));
		OM_TRY(read_dim(r, s));
	}
	return OM_OK;
}

static om_status
read_dtype(struct om_reader *r, om_dtype *out)
{
	const char *name;

	OM_TRY(om_text_word(r, "_", &name));
	*out = om_dtype_find(name);
	if (*out == OM_UNDEFINED && strcmp(name, "undefined") != 0)
		return om_text_bad(r, "%s is not an element type", name);
	return OM_OK;
}

static om_status
read_container(struct om_reader *r, om_type *t, om_kind kind)
{
	*t = (om_type){.kind = kind};
	OM_TRY(om_text_want(r, "("));
	if (kind == OM_SPARSE || kind == OM_MAP)
		OM_TRY(read_dtype(r, &t->elem));
	if (kind == OM_MAP)
		OM_TRY(om_text_want(r, ","));
	if (kind == OM_SEQUENCE || kind == OM_OPTIONAL || kind == OM_MAP) {
		if (om_text_eat(r, ")"))
			return OM_OK;
		om_type *of = OM_NEW(r->p->mem, om_type);
		if (++r->depth > OM_TEXT_DEPTH)
			return om_text_bad(r, "types are nested too deep");
		OM_TRY(om_text_type(r, of));
		r->depth--;
		t->of = of;
	}
	return om_text_want(r, ")");
}

om_status
om_text_type(struct om_reader *r, om_type *t)
{
	if (om_text_eat(r, "seq"))
		return read_container(r, t, OM_SEQUENCE);
	if (om_text_eat(r, "optional"))
		return read_container(r, t, OM_OPTIONAL);
	if (om_text_eat(r, "map"))
		return read_container(r, t, OM_MAP);
	if (om_text_eat(r, "sparse"))
		return read_container(r, t, OM_SPARSE);
	if (om_text_eat(r, "opaque"))
		return read_container(r, t, OM_OPAQUE);
	*t = (om_type){.kind = OM_TENSOR};
	return read_dtype(r, &t->elem);
}

om_status
om_text_typed(struct om_reader *r, om_value *v)
{
	OM_TRY(om_text_type(r, &v->type));
	if (v->type.kind == OM_TENSOR || v->type.kind == OM_SPARSE)
		OM_TRY(read_shape(r, &v->shape));
	return OM_OK;
}

/* ---- Elements. ---- */

static om_status
read_element(struct om_reader *r, om_dtype t, void *data, size_t k)
{
	int64_t i = 0;
	double x = 0;

	om_text_skip(r);
	if (t == OM_STRING) {
		if (*r->at != '"')
			return om_text_bad(r, "expected a quoted string");
		return om_text_quoted(r, (om_string *)data + k);
	}
	if (t == OM_UINT64) {
		char *end;
		((uint64_t *)data)[k] = strtoull(r->at, &end, 10);
		if (end == r->at)
			return om_text_bad(r, "expected an integer");
		r->at = end;
		return OM_OK;
	}
	OM_TRY(om_dtype_is_float(t) ? om_text_real(r, &x) : om_text_int(r, &i));
	switch (t) {
	case OM_FLOAT32: ((float *)data)[k] = (float)x; break;
	case OM_FLOAT64: ((double *)data)[k] = x; break;
	case OM_FLOAT16: ((uint16_t *)data)[k] = om_float_to_half((float)x); break;
	case OM_BFLOAT16: ((uint16_t *)data)[k] = om_float_to_bfloat((float)x); break;
	case OM_INT64: ((int64_t *)data)[k] = i; break;
	case OM_INT32: ((int32_t *)data)[k] = (int32_t)i; break;
	case OM_UINT32: ((uint32_t *)data)[k] = (uint32_t)i; break;
	case OM_INT16: ((int16_t *)data)[k] = (int16_t)i; break;
	case OM_UINT16: ((uint16_t *)data)[k] = (uint16_t)i; break;
	case OM_INT8: ((int8_t *)data)[k] = (int8_t)i; break;
	case OM_UINT8: ((uint8_t *)data)[k] = (uint8_t)i; break;
	case OM_BOOL: ((uint8_t *)data)[k] = i != 0; break;
	default: return om_text_bad(r, "elements of %s must be hexadecimal", om_dtype_text(t));
	}
	return OM_OK;
}

static om_status
read_hex(struct om_reader *r, unsigned char *to, uint64_t bytes)
{
	om_text_skip(r);
	for (uint64_t k = 0; k < bytes; k++, r->at += 2) {
		const int high = hex_digit(r->at[0]);
		const int low = high < 0 ? -1 : hex_digit(r->at[1]);
		if (low < 0)
			return om_text_bad(r, "expected %" PRIu64 " bytes in hexadecimal", bytes);
		to[k] = (unsigned char)(high * 16 + low);
	}
	return OM_OK;
}

/* Every element takes at least one character: a size that exceeds the text is rejected before it is
 * allocated. */
om_status
om_text_elements(struct om_reader *r, om_tensor *t)
{
	uint64_t bytes;
	int64_t n;

	if (om_text_eat(r, "elided"))
		return OM_OK;
	t->splat = om_text_eat(r, "splat");
	if (!om_tensor_bytes(t->type, &t->shape, &bytes))
		return om_text_bad(r, "the size of a constant is unknown or too large");
	n = t->splat ? 1 : om_shape_count(&t->shape);
	if (t->splat)
		om_dtype_bytes(t->type, 1, &bytes);
	if ((uint64_t)n > strlen(r->at))
		return om_text_bad(r, "fewer elements than the shape has");
	t->data = om_alloc(r->p->mem, bytes ? bytes : 1);
	if (om_text_eat(r, "hex"))
		return read_hex(r, t->data, bytes);
	OM_TRY(om_text_want(r, "{"));
	for (int64_t k = 0; k < n; k++) {
		if (k)
			OM_TRY(om_text_want(r, ","));
		OM_TRY(read_element(r, t->type, t->data, (size_t)k));
	}
	return om_text_want(r, "}");
}

om_status
om_text_tensor(struct om_reader *r, om_tensor *t)
{
	*t = (om_tensor){.shape = om_shape_unknown()};
	OM_TRY(read_dtype(r, &t->type));
	OM_TRY(read_shape(r, &t->shape));
	return om_text_elements(r, t);
}
