/* Programs as text: reading.
 *
 *	program "name" ir 8 opset 13 opset com.microsoft 1
 *	function domain::Name opset 13 takes axis {alpha = 1.0} ^body(...) {...}
 *	^main(%x: float32[1,3,N], %k: int64[] = {4}) {
 *		%w = const float32[2] {1.0, 2.0}
 *		%y: float32[1,3,N], _ = Split(%x, _, %w) {axis = 1, mode = "a"} as "node"
 *		%z = If(%c) {then_branch = ^g() {
 *			ret %y
 *		}}
 *		ret %z
 *	}
 *
 * `_` is an input or output left out.  A semicolon starts a comment.  Names
 * with other characters are quoted.  The text is foreign input: everything is
 * refused with a sentence, and nothing is allocated that the text does not pay
 * for with its own length.
 */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "onnxmem/build.h"

enum { MAX_DEPTH = 64, MAX_TEXT = 1 << 30 };

struct scope {
	om_map names;
	const struct scope *outer;
};

/* What an op gives, or takes. */
struct outputs {
	om_value **v;
	size_t n, cap;
};

struct reader {
	om_prog *p;           /* the program, or that of the function that is read */
	om_prog *whole;       /* the program */
	om_session *s;
	om_arena *mem;        /* the text and the maps */
	const char *where;
	const char *at;
	int line;
	int depth;
};

static om_status OM_PRINTF(2, 3)
bad(const struct reader *r, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return om_fail(r->s, OM_MALFORMED, "%s:%d: %s", r->where, r->line, what);
}

static void
skip(struct reader *r)
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

/* A punctuation mark, or a whole word. */
static bool
eat(struct reader *r, const char *token)
{
	const size_t n = strlen(token);

	skip(r);
	if (strncmp(r->at, token, n) != 0 || (is_word_char(*token) && is_word_char(r->at[n])))
		return false;
	r->at += n;
	return true;
}

static om_status
want(struct reader *r, const char *token)
{
	if (eat(r, token))
		return OM_OK;
	return bad(r, "%s was expected before \"%.20s\"", token, r->at);
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

static om_status
read_quoted(struct reader *r, om_string *out)
{
	const size_t most = strcspn(r->at, "\n") + 1;
	char *to = om_alloc(r->p->mem, most), *start = to;

	for (r->at++; *r->at != '"'; r->at++) {
		if (*r->at == '\0' || *r->at == '\n')
			return bad(r, "a quoted string does not end");
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
			return bad(r, "a backslash stands before none of \" \\ x00");
		}
	}
	r->at++;
	*out = (om_string){start, (size_t)(to - start)};
	return OM_OK;
}

/* A word of letters, digits and `also`, or a quoted one without NULs. */
static om_status
read_word(struct reader *r, const char *also, const char **out)
{
	om_string s;
	size_t n = 0;

	skip(r);
	if (*r->at == '"') {
		OM_TRY(read_quoted(r, &s));
		if (memchr(s.data, '\0', s.size))
			return bad(r, "a name holds a NUL");
		*out = s.data;
		return OM_OK;
	}
	while (isalnum((unsigned char)r->at[n]) || (r->at[n] && strchr(also, r->at[n])))
		n++;
	if (n == 0)
		return bad(r, "a name was expected before \"%.20s\"", r->at);
	*out = om_strndup(r->p->mem, r->at, n);
	r->at += n;
	return OM_OK;
}

static om_status
read_int(struct reader *r, int64_t *out)
{
	char *end;

	skip(r);
	errno = 0;
	*out = strtoll(r->at, &end, 10);
	if (end == r->at || errno)
		return bad(r, "a whole number was expected before \"%.20s\"", r->at);
	r->at = end;
	return OM_OK;
}

static om_status
read_small(struct reader *r, int *out)
{
	int64_t v;

	OM_TRY(read_int(r, &v));
	if (v < 0 || v > 1000000)
		return bad(r, "%" PRId64 " is no version", v);
	*out = (int)v;
	return OM_OK;
}

static om_status
read_real(struct reader *r, double *out)
{
	char *end;

	skip(r);
	*out = strtod(r->at, &end);
	if (end == r->at)
		return bad(r, "a number was expected before \"%.20s\"", r->at);
	r->at = end;
	return OM_OK;
}

/* ---- Types. ---- */

static om_status
read_dim(struct reader *r, om_shape *s)
{
	skip(r);
	if (s->rank == OM_MAX_RANK)
		return bad(r, "a shape has more than %d dims", OM_MAX_RANK);
	s->dim[s->rank] = OM_DIM_UNKNOWN;
	if (isdigit((unsigned char)*r->at))
		OM_TRY(read_int(r, &s->dim[s->rank]));
	else if (!eat(r, "?"))
		OM_TRY(read_word(r, "_.", &s->sym[s->rank]));
	s->rank++;
	return OM_OK;
}

static om_status
read_shape(struct reader *r, om_shape *s)
{
	*s = (om_shape){.rank = 0};
	OM_TRY(want(r, "["));
	if (eat(r, "..")) {
		*s = om_shape_unknown();
		return want(r, "]");
	}
	while (!eat(r, "]")) {
		if (s->rank)
			OM_TRY(want(r, ","));
		OM_TRY(read_dim(r, s));
	}
	return OM_OK;
}

static om_status
read_dtype(struct reader *r, om_dtype *out)
{
	const char *name;

	OM_TRY(read_word(r, "_", &name));
	*out = om_dtype_find(name);
	if (*out == OM_UNDEFINED && strcmp(name, "undefined") != 0)
		return bad(r, "%s is no element type", name);
	return OM_OK;
}

static om_status read_type(struct reader *r, om_type *t);

static om_status
read_container(struct reader *r, om_type *t, om_kind kind)
{
	*t = (om_type){.kind = kind};
	OM_TRY(want(r, "("));
	if (kind == OM_SPARSE || kind == OM_MAP)
		OM_TRY(read_dtype(r, &t->elem));
	if (kind == OM_MAP)
		OM_TRY(want(r, ","));
	if (kind == OM_SEQUENCE || kind == OM_OPTIONAL || kind == OM_MAP) {
		if (eat(r, ")"))
			return OM_OK;
		om_type *of = OM_NEW(r->p->mem, om_type);
		if (++r->depth > MAX_DEPTH)
			return bad(r, "types are nested too deep");
		OM_TRY(read_type(r, of));
		r->depth--;
		t->of = of;
	}
	return want(r, ")");
}

static om_status
read_type(struct reader *r, om_type *t)
{
	if (eat(r, "seq"))
		return read_container(r, t, OM_SEQUENCE);
	if (eat(r, "optional"))
		return read_container(r, t, OM_OPTIONAL);
	if (eat(r, "map"))
		return read_container(r, t, OM_MAP);
	if (eat(r, "sparse"))
		return read_container(r, t, OM_SPARSE);
	if (eat(r, "opaque"))
		return read_container(r, t, OM_OPAQUE);
	*t = (om_type){.kind = OM_TENSOR};
	return read_dtype(r, &t->elem);
}

static om_status
read_typed(struct reader *r, om_value *v)
{
	OM_TRY(read_type(r, &v->type));
	if (v->type.kind == OM_TENSOR || v->type.kind == OM_SPARSE)
		OM_TRY(read_shape(r, &v->shape));
	return OM_OK;
}

/* ---- Elements. ---- */

static om_status
read_element(struct reader *r, om_dtype t, void *data, size_t k)
{
	int64_t i = 0;
	double x = 0;

	skip(r);
	if (t == OM_STRING) {
		if (*r->at != '"')
			return bad(r, "a quoted string was expected");
		return read_quoted(r, (om_string *)data + k);
	}
	if (t == OM_UINT64) {
		char *end;
		((uint64_t *)data)[k] = strtoull(r->at, &end, 10);
		if (end == r->at)
			return bad(r, "a whole number was expected");
		r->at = end;
		return OM_OK;
	}
	OM_TRY(om_dtype_is_float(t) ? read_real(r, &x) : read_int(r, &i));
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
	default: return bad(r, "elements of %s are written in hex", om_dtype_text(t));
	}
	return OM_OK;
}

static om_status
read_hex(struct reader *r, unsigned char *to, uint64_t bytes)
{
	skip(r);
	for (uint64_t k = 0; k < bytes; k++, r->at += 2) {
		const int high = hex_digit(r->at[0]);
		const int low = high < 0 ? -1 : hex_digit(r->at[1]);
		if (low < 0)
			return bad(r, "%" PRIu64 " bytes were expected in hex", bytes);
		to[k] = (unsigned char)(high * 16 + low);
	}
	return OM_OK;
}

/* Every element takes at least one character: what the text cannot hold is
 * refused before it is allocated. */
static om_status
read_elements(struct reader *r, om_tensor *t)
{
	uint64_t bytes;
	int64_t n;

	if (eat(r, "elided"))
		return OM_OK;
	t->splat = eat(r, "splat");
	if (!om_tensor_bytes(t->type, &t->shape, &bytes))
		return bad(r, "a constant has no size");
	n = t->splat ? 1 : om_shape_count(&t->shape);
	if (t->splat)
		om_dtype_bytes(t->type, 1, &bytes);
	if ((uint64_t)n > strlen(r->at))
		return bad(r, "fewer elements are given than the shape has");
	t->data = om_alloc(r->p->mem, bytes ? bytes : 1);
	if (eat(r, "hex"))
		return read_hex(r, t->data, bytes);
	OM_TRY(want(r, "{"));
	for (int64_t k = 0; k < n; k++) {
		if (k)
			OM_TRY(want(r, ","));
		OM_TRY(read_element(r, t->type, t->data, (size_t)k));
	}
	return want(r, "}");
}

static om_status
read_tensor(struct reader *r, om_tensor *t)
{
	*t = (om_tensor){.shape = om_shape_unknown()};
	OM_TRY(read_dtype(r, &t->type));
	OM_TRY(read_shape(r, &t->shape));
	return read_elements(r, t);
}

/* ---- Values. ---- */

static om_status
read_name(struct reader *r, const char **out)
{
	OM_TRY(want(r, "%"));
	OM_TRY(read_word(r, "_./-", out));
	return **out ? OM_OK : bad(r, "a value has an empty name");
}

static om_value *
find(const struct scope *s, const char *name)
{
	for (; s; s = s->outer) {
		om_value *v = om_map_get(&s->names, name);
		if (v)
			return v;
	}
	return NULL;
}

static om_status
old_value(struct reader *r, const struct scope *s, om_value **v)
{
	const char *name;

	*v = NULL;
	if (eat(r, "_"))
		return OM_OK;
	OM_TRY(read_name(r, &name));
	*v = find(s, name);
	return *v ? OM_OK : bad(r, "%%%s is used before it is defined", name);
}

static om_status
show_value(struct reader *r, struct scope *s, om_value *v)
{
	if (find(s, v->name))
		return bad(r, "%%%s is defined twice", v->name);
	om_map_set(&s->names, v->name, v);
	return OM_OK;
}

/* Not yet seen by others. */
static om_status
new_value(struct reader *r, om_block *b, const struct scope *s, om_value **v)
{
	const char *name;

	OM_TRY(read_name(r, &name));
	if (find(s, name))
		return bad(r, "%%%s is defined twice", name);
	*v = om_value_new(r->p, b, name);
	return OM_OK;
}

/* ---- Attributes. ---- */

static const struct {
	const char *word;
	om_attr_kind kind;
} kinds[] = {
	{"float", OM_ATTR_FLOAT}, {"int", OM_ATTR_INT}, {"string", OM_ATTR_STRING},
	{"tensor", OM_ATTR_TENSOR}, {"graph", OM_ATTR_GRAPH}, {"floats", OM_ATTR_FLOATS},
	{"ints", OM_ATTR_INTS}, {"strings", OM_ATTR_STRINGS}, {"tensors", OM_ATTR_TENSORS},
	{"graphs", OM_ATTR_GRAPHS}, {"sparse", OM_ATTR_SPARSE}, {"sparses", OM_ATTR_SPARSES},
	{"type", OM_ATTR_TYPE}, {"types", OM_ATTR_TYPES},
};

static bool
eat_kind(struct reader *r, om_attr_kind *kind)
{
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
		if (eat(r, kinds[k].word)) {
			*kind = kinds[k].kind;
			return true;
		}
	return false;
}

/* The kind that an element at `at` shows. */
static om_attr_kind
shown_kind(const char *at)
{
	if (*at == '"')
		return OM_ATTR_STRING;
	if (*at == '^')
		return OM_ATTR_GRAPH;
	const size_t n = strcspn(at, ", ]}\n\t");
	for (size_t k = 0; k < n; k++)
		if (strchr(".einf", at[k]))
			return OM_ATTR_FLOAT;
	return OM_ATTR_INT;
}

static om_attr_kind
list_of(om_attr_kind k)
{
	return k == OM_ATTR_TYPE ? OM_ATTR_TYPES : k == OM_ATTR_SPARSE ? OM_ATTR_SPARSES
		: (om_attr_kind)(k + OM_ATTR_FLOATS - OM_ATTR_FLOAT);
}

struct list {
	char *data;
	size_t size, n, cap;
};

static const size_t element_size[] = {
	[OM_ATTR_FLOAT] = sizeof(float), [OM_ATTR_INT] = sizeof(int64_t),
	[OM_ATTR_STRING] = sizeof(om_string), [OM_ATTR_TENSOR] = sizeof(om_tensor),
	[OM_ATTR_GRAPH] = sizeof(om_block *), [OM_ATTR_TYPE] = sizeof(om_type),
	[OM_ATTR_SPARSE] = 1, [OM_ATTR_TYPES] = sizeof(om_type), [OM_ATTR_SPARSES] = 1,
	[OM_ATTR_FLOATS] = sizeof(float), [OM_ATTR_INTS] = sizeof(int64_t),
	[OM_ATTR_STRINGS] = sizeof(om_string), [OM_ATTR_TENSORS] = sizeof(om_tensor),
	[OM_ATTR_GRAPHS] = sizeof(om_block *),
};

static om_status read_block(struct reader *r, om_block *b, const struct scope *outer);

static om_status
read_body(struct reader *r, om_op *op, const char *attr, const struct scope *s, om_block **out)
{
	if (!op)
		return bad(r, "a default of a function cannot be a graph");
	*out = om_block_new(r->p, op, attr, "");
	return read_block(r, *out, s);
}

static om_status
attr_element(struct reader *r, om_op *op, const struct scope *s, const char *name,
	om_attr_kind kind, void *to)
{
	double x;

	switch (kind) {
	case OM_ATTR_INT: case OM_ATTR_INTS:
		return read_int(r, to);
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS:
		OM_TRY(read_real(r, &x));
		*(float *)to = (float)x;
		return OM_OK;
	case OM_ATTR_STRING: case OM_ATTR_STRINGS:
		skip(r);
		return *r->at == '"' ? read_quoted(r, to) : bad(r, "a quoted string was expected");
	case OM_ATTR_TENSOR: case OM_ATTR_TENSORS:
		return read_tensor(r, to);
	case OM_ATTR_GRAPH: case OM_ATTR_GRAPHS:
		return read_body(r, op, name, s, to);
	case OM_ATTR_TYPE: case OM_ATTR_TYPES:
		return read_type(r, to);
	case OM_ATTR_SPARSE: case OM_ATTR_SPARSES:
		break;
	}
	return bad(r, "attribute %s: sparse tensors cannot be read from text", name);
}

static om_status
attr_list(struct reader *r, om_op *op, const struct scope *s, om_attr *a, bool named)
{
	struct list l = {.n = 0};

	for (; !eat(r, "]"); l.n++) {
		if (l.n)
			OM_TRY(want(r, ","));
		skip(r);
		if (!named && l.n == 0)
			a->kind = list_of(shown_kind(r->at));
		l.size = element_size[a->kind];
		l.data = om_grow(r->p->mem, l.data, l.size, l.n, &l.cap);
		OM_TRY(attr_element(r, op, s, a->name, a->kind, l.data + l.n * l.size));
	}
	if (l.n == 0 && !named)
		return bad(r, "the empty list %s does not say of which kind it is", a->name);
	a->n = l.n;
	a->f = (const void *)l.data;
	return OM_OK;
}

static om_status
read_attr(struct reader *r, om_op *op, const struct scope *s, om_attr *a)
{
	OM_TRY(read_word(r, "_", &a->name));
	OM_TRY(want(r, "="));
	if (eat(r, "ref")) {
		if (!eat_kind(r, &a->kind))
			return bad(r, "attribute %s: a reference names no kind", a->name);
		return read_word(r, "_", &a->ref);
	}
	const bool named = eat_kind(r, &a->kind);
	if (eat(r, "["))
		return attr_list(r, op, s, a, named);
	skip(r);
	if (!named)
		a->kind = shown_kind(r->at);
	if (a->kind == OM_ATTR_SPARSE || element_size[a->kind] == 0)
		return bad(r, "attribute %s cannot be read from text", a->name);
	void *one = om_alloc(r->p->mem, element_size[a->kind]);
	OM_TRY(attr_element(r, op, s, a->name, a->kind, one));
	a->n = 1;
	a->f = one;
	return OM_OK;
}

/* ---- Ops and blocks. ---- */

static om_status
read_outputs(struct reader *r, om_block *b, const struct scope *s, struct outputs *o)
{
	do {
		om_value *v = NULL;
		if (!eat(r, "_"))
			OM_TRY(new_value(r, b, s, &v));
		if (v && eat(r, ":")) {
			OM_TRY(read_typed(r, v));
			v->is_declared = true;
		}
		OM_PUSH(r->p->mem, o->v, o->n, o->cap, v);
	} while (eat(r, ","));
	return want(r, "=");
}

static om_status
read_const(struct reader *r, const struct outputs *o)
{
	om_tensor *t = OM_NEW(r->p->mem, om_tensor);

	if (o->n != 1 || !o->v[0])
		return bad(r, "a constant has one name");
	OM_TRY(read_tensor(r, t));
	o->v[0]->type.elem = t->type;
	o->v[0]->shape = t->shape;
	o->v[0]->data = t;
	o->v[0]->is_const = o->v[0]->is_declared = true;
	return OM_OK;
}

/* [domain::]Type[::overload][@version] */
static om_status
read_operator(struct reader *r, const char *part[3], int *version)
{
	const char *word[3] = {"", "", ""};
	int n = 0;

	do
		OM_TRY(read_word(r, "_.", &word[n++]));
	while (n < 3 && eat(r, "::"));
	part[0] = n == 1 ? "" : word[0];
	part[1] = n == 1 ? word[0] : word[1];
	part[2] = word[2];
	*version = 0;
	return eat(r, "@") ? read_small(r, version) : OM_OK;
}

static const om_function *
callee(const om_prog *p, const om_op *op)
{
	for (const om_function *f = p->functions; f; f = f->next)
		if (strcmp(f->domain, op->domain) == 0 && strcmp(f->name, op->type) == 0
		    && strcmp(f->overload, op->overload) == 0)
			return f;
	return NULL;
}

static om_status
read_op(struct reader *r, om_block *b, struct scope *s, const struct outputs *o)
{
	struct outputs in = {.n = 0};
	const char *part[3];
	int version;

	OM_TRY(read_operator(r, part, &version));
	OM_TRY(want(r, "("));
	while (!eat(r, ")")) {
		om_value *v;
		if (in.n)
			OM_TRY(want(r, ","));
		OM_TRY(old_value(r, s, &v));
		OM_PUSH(r->p->mem, in.v, in.n, in.cap, v);
	}
	om_op *op = om_op_new(r->p, part[0], part[1], version, (uint32_t)in.n, (uint32_t)o->n);
	op->overload = part[2];
	op->call = callee(r->whole, op);
	if (op->call)
		op->row = NULL;
	for (uint32_t k = 0; k < op->nin; k++)
		om_op_set_in(op, k, in.v[k]);
	for (uint32_t k = 0; k < op->nout; k++)
		om_op_set_out(op, k, o->v[k]);
	om_op_append(b, op);
	for (bool more = eat(r, "{"); more; more = !eat(r, "}")) {
		om_attr a = {.name = NULL};
		if (op->nattr)
			OM_TRY(want(r, ","));
		OM_TRY(read_attr(r, op, s, &a));
		om_op_add_attr(r->p, op, &a);
	}
	return eat(r, "as") ? read_word(r, "", &op->name) : OM_OK;
}

static om_status
read_line(struct reader *r, om_block *b, struct scope *s)
{
	struct outputs o = {.n = 0};

	skip(r);
	if (*r->at != '%' && *r->at != '_')
		return bad(r, "an op or ret was expected before \"%.20s\"", r->at);
	OM_TRY(read_outputs(r, b, s, &o));
	OM_TRY(eat(r, "const") ? read_const(r, &o) : read_op(r, b, s, &o));
	/* Only now: bodies do not see what their op gives, and may use its names. */
	for (size_t k = 0; k < o.n; k++)
		if (o.v[k])
			OM_TRY(show_value(r, s, o.v[k]));
	return OM_OK;
}

static om_status
read_params(struct reader *r, om_block *b, struct scope *s)
{
	OM_TRY(want(r, "("));
	while (!eat(r, ")")) {
		om_value *v;
		if (b->nparam)
			OM_TRY(want(r, ","));
		OM_TRY(new_value(r, b, s, &v));
		OM_TRY(show_value(r, s, v));
		OM_TRY(want(r, ":"));
		OM_TRY(read_typed(r, v));
		v->is_declared = true;
		om_block_add_param(b, v);
		if (!eat(r, "="))
			continue;
		om_tensor *t = OM_NEW(r->p->mem, om_tensor);
		*t = (om_tensor){.type = v->type.elem, .shape = v->shape};
		OM_TRY(read_elements(r, t));
		v->data = t;
		v->is_overridable = true;
	}
	return OM_OK;
}

/* "to %w": the next run gets the result that was read last as that parameter. */
static om_status
read_tie(struct reader *r, om_block *b, const struct scope *s)
{
	uint32_t k = 0;
	om_value *v;

	OM_TRY(old_value(r, s, &v));
	while (k < b->nparam && b->param[k] != v)
		k++;
	if (b != r->p->first || !om_prog_tie(r->p, b->nresult - 1, k))
		return bad(r, "a result goes to a parameter of the graph, of its type and shape, and to one alone");
	return OM_OK;
}

static om_status
read_results(struct reader *r, om_block *b, const struct scope *s)
{
	skip(r);
	while (!eat(r, "}")) {
		om_value *v;
		if (b->nresult)
			OM_TRY(want(r, ","));
		OM_TRY(old_value(r, s, &v));
		if (!v)
			return bad(r, "a block cannot return _");
		om_block_add_result(b, v);
		if (eat(r, "to"))
			OM_TRY(read_tie(r, b, s));
	}
	return OM_OK;
}

static om_status
read_block(struct reader *r, om_block *b, const struct scope *outer)
{
	struct scope s = {om_map_new(r->mem), outer};

	if (++r->depth > MAX_DEPTH)
		return bad(r, "blocks are nested too deep");
	OM_TRY(want(r, "^"));
	skip(r);
	if (*r->at != '(')
		OM_TRY(read_word(r, "_", &b->name));
	OM_TRY(read_params(r, b, &s));
	OM_TRY(want(r, "{"));
	while (!eat(r, "ret"))
		OM_TRY(read_line(r, b, &s));
	r->depth--;
	return read_results(r, b, &s);
}

/* ---- The program. ---- */

static om_status
read_opsets(struct reader *r, const om_opset **out, size_t *n)
{
	om_opset *all = NULL;
	size_t cap = 0;

	for (*n = 0; eat(r, "opset");) {
		om_opset o = {.domain = ""};
		skip(r);
		if (!isdigit((unsigned char)*r->at))
			OM_TRY(read_word(r, "_.", &o.domain));
		OM_TRY(read_small(r, &o.version));
		OM_PUSH(r->p->mem, all, *n, cap, o);
	}
	*out = all;
	return OM_OK;
}

static om_status
read_function_head(struct reader *r, om_function *f)
{
	const char **takes = NULL;
	om_attr *defaults = NULL;
	size_t cap = 0, capd = 0;

	OM_TRY(read_word(r, "_.", &f->domain));
	OM_TRY(want(r, "::"));
	OM_TRY(read_word(r, "_", &f->name));
	f->overload = "";
	if (eat(r, "::"))
		OM_TRY(read_word(r, "_.", &f->overload));
	OM_TRY(read_opsets(r, &f->opset, &f->nopset));
	while (eat(r, "takes")) {
		const char *name;
		OM_TRY(read_word(r, "_", &name));
		OM_PUSH(r->p->mem, takes, f->nattr, cap, name);
	}
	for (bool more = eat(r, "{"); more; more = !eat(r, "}")) {
		om_attr a = {.name = NULL};
		if (f->nattr_default)
			OM_TRY(want(r, ","));
		OM_TRY(read_attr(r, NULL, NULL, &a));
		OM_PUSH(r->p->mem, defaults, f->nattr_default, capd, a);
	}
	f->attr = takes;
	f->attr_default = defaults;
	return OM_OK;
}

/* The body of a function is in a program of its own, in the same memory: its
 * values and blocks are none of the whole's. */
static om_status
read_function(struct reader *r, om_function **tail)
{
	om_function *f = OM_NEW(r->whole->mem, om_function);
	om_prog *home = OM_NEW(r->whole->mem, om_prog);

	OM_TRY(read_function_head(r, f));
	*home = (om_prog){.session = r->s, .mem = r->whole->mem, .name = f->name,
		.opset = (om_opset *)f->opset, .nopset = f->nopset,
		.ir_version = r->whole->ir_version, .align = r->whole->align};
	r->p = home;
	f->body = om_block_new(home, NULL, NULL, "");
	OM_TRY(read_block(r, f->body, NULL));
	r->p = r->whole;
	*tail = f;
	return OM_OK;
}

/* Functions call others that come later in the text, and themselves. */
static void
resolve_calls(const om_prog *p)
{
	for (const om_function *f = p->functions; f; f = f->next)
		for (const om_block *b = f->body->prog->first; b; b = b->next)
			for (om_op *op = b->first; op; op = op->next) {
				op->call = callee(p, op);
				op->row = op->call ? NULL : op->row;
			}
}

static om_status
read_program(struct reader *r)
{
	om_function **tail = &r->p->functions;
	const om_opset *opset;

	OM_TRY(want(r, "program"));
	OM_TRY(read_word(r, "_.", &r->p->name));
	OM_TRY(want(r, "ir"));
	OM_TRY(read_small(r, &r->p->ir_version));
	OM_TRY(read_opsets(r, &opset, &r->p->nopset));
	r->p->opset = (om_opset *)opset;
	for (; eat(r, "function"); tail = &(*tail)->next)
		OM_TRY(read_function(r, tail));
	resolve_calls(r->p);
	OM_TRY(read_block(r, om_block_new(r->p, NULL, NULL, ""), NULL));
	skip(r);
	return *r->at ? bad(r, "nothing was expected behind the program") : OM_OK;
}

static om_status
read_all(struct reader *r, FILE *in)
{
	char *text = NULL;
	size_t n = 0, cap = 0;

	for (int c; (c = getc(in)) != EOF;) {
		if (c == '\0')
			return bad(r, "the text holds a NUL");
		if (n == MAX_TEXT)
			return bad(r, "the text is longer than %d bytes", MAX_TEXT);
		OM_PUSH(r->mem, text, n, cap, (char)c);
	}
	if (ferror(in))
		return om_fail(r->s, OM_IO, "%s: cannot be read", r->where);
	OM_PUSH(r->mem, text, n, cap, '\0');
	r->at = text;
	return OM_OK;
}

om_status
om_parse(om_session *s, FILE *in, const char *where, om_prog **out)
{
	struct reader r = {.p = om_prog_new(s), .s = s, .mem = om_arena_new(), .where = where, .line = 1};

	r.whole = r.p;
	om_status st = read_all(&r, in);
	*out = NULL;
	if (st == OM_OK)
		st = read_program(&r);
	om_arena_free(r.mem);
	if (st == OM_OK)
		*out = r.whole;
	else
		om_prog_free(r.whole);
	return st;
}
