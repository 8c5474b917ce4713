/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text: parser.
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
 * `_` is an input or output left out.  A semicolon starts a comment.  Names with other characters are
 * quoted.  The text is untrusted input: every error is reported with a message, and the size of every
 * allocation is bounded by the length of the text.
 */
#include <config.h>

#include <ctype.h>

#include "base/guard.h"
#include "base/arena_internal.h"
#include "base/map.h"
#include "ir/edit.h"
#include "ir/operators.h"
#include "ir/tokens.h"
#include "onnxmem/builder.h"

enum { MAX_TEXT = 1 << 30 };

struct scope {
	om_map names;
	const struct scope *outer;
};

/* The outputs or inputs of an op. */
struct outputs {
	om_value **v;
	size_t n, cap;
};

/* ---- Values. ---- */

static om_status
read_name(struct om_reader *r, const char **out)
{
	OM_TRY(om_text_want(r, "%"));
	OM_TRY(om_text_word(r, "_./-", out));
	return **out ? OM_OK : om_text_bad(r, "a value has an empty name");
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
old_value(struct om_reader *r, const struct scope *s, om_value **v)
{
	const char *name;

	*v = NULL;
	if (om_text_eat(r, "_"))
		return OM_OK;
	OM_TRY(read_name(r, &name));
	*v = find(s, name);
	return *v ? OM_OK : om_text_bad(r, "%%%s is used before it is defined", name);
}

static om_status
show_value(struct om_reader *r, struct scope *s, om_value *v)
{
	if (find(s, v->name))
		return om_text_bad(r, "%%%s is defined twice", v->name);
	om_map_set(&s->names, v->name, v);
	return OM_OK;
}

/* The value is not visible to other ops yet. */
static om_status
new_value(struct om_reader *r, om_block *b, const struct scope *s, om_value **v)
{
	const char *name;

	OM_TRY(read_name(r, &name));
	if (find(s, name))
		return om_text_bad(r, "%%%s is defined twice", name);
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
eat_kind(struct om_reader *r, om_attr_kind *kind)
{
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
		if (om_text_eat(r, kinds[k].word)) {
			*kind = kinds[k].kind;
			return true;
		}
	return false;
}

/* The attribute kind indicated by the element at `at`. */
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

static om_status read_block(struct om_reader *r, om_block *b, const struct scope *outer);

static om_status
read_body(struct om_reader *r, om_op *op, const char *attr, const struct scope *s, om_block **out)
{
	if (!op)
		return om_text_bad(r, "a default of a function cannot be a graph");
	*out = om_block_new(r->p, op, attr, "");
	return read_block(r, *out, s);
}

static om_status
attr_element(struct om_reader *r, om_op *op, const struct scope *s, const char *name,
	om_attr_kind kind, void *to)
{
	double x;

	switch (kind) {
	case OM_ATTR_INT: case OM_ATTR_INTS:
		return om_text_int(r, to);
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS:
		OM_TRY(om_text_real(r, &x));
		*(float *)to = (float)x;
		return OM_OK;
	case OM_ATTR_STRING: case OM_ATTR_STRINGS:
		om_text_skip(r);
		return *r->at == '"' ? om_text_quoted(r, to) : om_text_bad(r, "a quoted string was expected");
	case OM_ATTR_TENSOR: case OM_ATTR_TENSORS:
		return om_text_tensor(r, to);
	case OM_ATTR_GRAPH: case OM_ATTR_GRAPHS:
		return read_body(r, op, name, s, to);
	case OM_ATTR_TYPE: case OM_ATTR_TYPES:
		return om_text_type(r, to);
	case OM_ATTR_SPARSE: case OM_ATTR_SPARSES:
		break;
	}
	return om_text_bad(r, "attribute %s: sparse tensors cannot be read from text", name);
}

static om_status
attr_list(struct om_reader *r, om_op *op, const struct scope *s, om_attr *a, bool named)
{
	struct list l = {.n = 0};

	for (; !om_text_eat(r, "]"); l.n++) {
		if (l.n)
			OM_TRY(om_text_want(r, ","));
		om_text_skip(r);
		if (!named && l.n == 0)
			a->kind = list_of(shown_kind(r->at));
		l.size = element_size[a->kind];
		l.data = om_grow(r->p->mem, l.data, l.size, l.n, &l.cap);
		OM_TRY(attr_element(r, op, s, a->name, a->kind, l.data + l.n * l.size));
	}
	if (l.n == 0 && !named)
		return om_text_bad(r, "the empty list %s has no type", a->name);
	a->n = l.n;
	a->f = (const void *)l.data;
	return OM_OK;
}

static om_status
read_attr(struct om_reader *r, om_op *op, const struct scope *s, om_attr *a)
{
	OM_TRY(om_text_word(r, "_", &a->name));
	OM_TRY(om_text_want(r, "="));
	if (om_text_eat(r, "ref")) {
		if (!eat_kind(r, &a->kind))
			return om_text_bad(r, "attribute %s: a reference requires a type", a->name);
		return om_text_word(r, "_", &a->ref);
	}
	const bool named = eat_kind(r, &a->kind);
	if (om_text_eat(r, "["))
		return attr_list(r, op, s, a, named);
	om_text_skip(r);
	if (!named)
		a->kind = shown_kind(r->at);
	if (a->kind == OM_ATTR_SPARSE || element_size[a->kind] == 0)
		return om_text_bad(r, "attribute %s cannot be read from text", a->name);
	void *one = om_alloc(r->p->mem, element_size[a->kind]);
	OM_TRY(attr_element(r, op, s, a->name, a->kind, one));
	a->n = 1;
	a->f = one;
	return OM_OK;
}

/* ---- Ops and blocks. ---- */

static om_status
read_outputs(struct om_reader *r, om_block *b, const struct scope *s, struct outputs *o)
{
	do {
		om_value *v = NULL;
		if (!om_text_eat(r, "_"))
			OM_TRY(new_value(r, b, s, &v));
		if (v && om_text_eat(r, ":")) {
			OM_TRY(om_text_typed(r, v));
			v->is_declared = true;
		}
		OM_PUSH(r->p->mem, o->v, o->n, o->cap, v);
	} while (om_text_eat(r, ","));
	return om_text_want(r, "=");
}

static om_status
read_const(struct om_reader *r, const struct outputs *o)
{
	om_tensor *t = OM_NEW(r->p->mem, om_tensor);

	if (o->n != 1 || !o->v[0])
		return om_text_bad(r, "a constant must have exactly one name");
	OM_TRY(om_text_tensor(r, t));
	o->v[0]->type.elem = t->type;
	o->v[0]->shape = t->shape;
	o->v[0]->data = t;
	o->v[0]->is_const = o->v[0]->is_declared = true;
	return OM_OK;
}

/* [domain::]Type[::overload][@version] */
static om_status
read_operator(struct om_reader *r, const char *part[3], int *version)
{
	const char *word[3] = {"", "", ""};
	int n = 0;

	do
		OM_TRY(om_text_word(r, "_.", &word[n++]));
	while (n < 3 && om_text_eat(r, "::"));
	part[0] = n == 1 ? "" : word[0];
	part[1] = n == 1 ? word[0] : word[1];
	part[2] = word[2];
	*version = 0;
	return om_text_eat(r, "@") ? om_text_version(r, version) : OM_OK;
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
read_op(struct om_reader *r, om_block *b, struct scope *s, const struct outputs *o)
{
	struct outputs in = {.n = 0};
	const char *part[3];
	int version;

	OM_TRY(read_operator(r, part, &version));
	OM_TRY(om_text_want(r, "("));
	while (!om_text_eat(r, ")")) {
		om_value *v;
		if (in.n)
			OM_TRY(om_text_want(r, ","));
		OM_TRY(old_value(r, s, &v));
		OM_PUSH(r->p->mem, in.v, in.n, in.cap, v);
	}
	om_op *op = om_op_new(r->p, part[0], part[1], version, (uint32_t)in.n, (uint32_t)o->n);
	op->overload = part[2];
	op->call = callee(r->whole, op);
	if (op->call)
		op->opdef = NULL;
	for (uint32_t k = 0; k < op->nin; k++)
		om_op_set_in(op, k, in.v[k]);
	for (uint32_t k = 0; k < op->nout; k++)
		om_op_set_out(op, k, o->v[k]);
	op->node = b->nop;
	om_op_append(b, op);
	for (bool more = om_text_eat(r, "{"); more; more = !om_text_eat(r, "}")) {
		om_attr a = {.name = NULL};
		if (op->nattr)
			OM_TRY(om_text_want(r, ","));
		OM_TRY(read_attr(r, op, s, &a));
		om_op_add_attr(r->p, op, &a);
	}
	if (om_text_eat(r, "on"))
		OM_TRY(om_text_word(r, "_.", &op->device));
	return om_text_eat(r, "as") ? om_text_word(r, "", &op->name) : OM_OK;
}

static om_status
read_line(struct om_reader *r, om_block *b, struct scope *s)
{
	struct outputs o = {.n = 0};

	om_text_skip(r);
	if (*r->at != '%' && *r->at != '_')
		return om_text_bad(r, "expected an op or ret before \"%.20s\"", r->at);
	OM_TRY(read_outputs(r, b, s, &o));
	OM_TRY(om_text_eat(r, "const") ? read_const(r, &o) : read_op(r, b, s, &o));
	/* Outputs are defined last: bodies do not see the outputs of their op, and may reuse their
	 * names. */
	for (size_t k = 0; k < o.n; k++)
		if (o.v[k])
			OM_TRY(show_value(r, s, o.v[k]));
	return OM_OK;
}

static om_status
read_params(struct om_reader *r, om_block *b, struct scope *s)
{
	OM_TRY(om_text_want(r, "("));
	while (!om_text_eat(r, ")")) {
		om_value *v;
		if (b->nparam)
			OM_TRY(om_text_want(r, ","));
		OM_TRY(new_value(r, b, s, &v));
		OM_TRY(show_value(r, s, v));
		OM_TRY(om_text_want(r, ":"));
		OM_TRY(om_text_typed(r, v));
		v->is_declared = true;
		om_block_add_param(b, v);
		if (!om_text_eat(r, "="))
			continue;
		om_tensor *t = OM_NEW(r->p->mem, om_tensor);
		*t = (om_tensor){.type = v->type.elem, .shape = v->shape};
		OM_TRY(om_text_elements(r, t));
		v->data = t;
		v->is_overridable = true;
	}
	return OM_OK;
}

/* "to %w": the result that was read last becomes that parameter in the next run. */
static om_status
read_tie(struct om_reader *r, om_block *b, const struct scope *s)
{
	uint32_t k = 0;
	om_value *v;

	OM_TRY(old_value(r, s, &v));
	while (k < b->nparam && b->param[k] != v)
		k++;
	if (b != r->p->first || !om_prog_alias_io(r->p, b->nresult - 1, k))
		return om_text_bad(r, "a result is aliased to one parameter of the graph, of its type and shape");
	return OM_OK;
}

static om_status
read_results(struct om_reader *r, om_block *b, const struct scope *s)
{
	om_text_skip(r);
	while (!om_text_eat(r, "}")) {
		om_value *v;
		if (b->nresult)
			OM_TRY(om_text_want(r, ","));
		OM_TRY(old_value(r, s, &v));
		if (!v)
			return om_text_bad(r, "a block cannot return _");
		om_block_add_result(b, v);
		if (om_text_eat(r, "to"))
			OM_TRY(read_tie(r, b, s));
	}
	return OM_OK;
}

static om_status
read_block(struct om_reader *r, om_block *b, const struct scope *outer)
{
	struct scope s = {om_map_new(r->mem), outer};

	if (++r->depth > OM_TEXT_DEPTH)
		return om_text_bad(r, "blocks are nested too deep");
	OM_TRY(om_text_want(r, "^"));
	om_text_skip(r);
	if (*r->at != '(')
		OM_TRY(om_text_word(r, "_", &b->name));
	OM_TRY(read_params(r, b, &s));
	OM_TRY(om_text_want(r, "{"));
	while (!om_text_eat(r, "ret"))
		OM_TRY(read_line(r, b, &s));
	r->depth--;
	return read_results(r, b, &s);
}

/* ---- The program. ---- */

static om_status
read_opsets(struct om_reader *r, const om_opset **out, size_t *n)
{
	om_opset *all = NULL;
	size_t cap = 0;

	for (*n = 0; om_text_eat(r, "opset");) {
		om_opset o = {.domain = ""};
		om_text_skip(r);
		if (!isdigit((unsigned char)*r->at))
			OM_TRY(om_text_word(r, "_.", &o.domain));
		OM_TRY(om_text_version(r, &o.version));
		OM_PUSH(r->p->mem, all, *n, cap, o);
	}
	*out = all;
	return OM_OK;
}

static om_status
read_function_head(struct om_reader *r, om_function *f)
{
	const char **takes = NULL;
	om_attr *defaults = NULL;
	size_t cap = 0, capd = 0;

	OM_TRY(om_text_word(r, "_.", &f->domain));
	OM_TRY(om_text_want(r, "::"));
	OM_TRY(om_text_word(r, "_", &f->name));
	f->overload = "";
	if (om_text_eat(r, "::"))
		OM_TRY(om_text_word(r, "_.", &f->overload));
	OM_TRY(read_opsets(r, &f->opset, &f->nopset));
	while (om_text_eat(r, "takes")) {
		const char *name;
		OM_TRY(om_text_word(r, "_", &name));
		OM_PUSH(r->p->mem, takes, f->nattr, cap, name);
	}
	for (bool more = om_text_eat(r, "{"); more; more = !om_text_eat(r, "}")) {
		om_attr a = {.name = NULL};
		if (f->nattr_default)
			OM_TRY(om_text_want(r, ","));
		OM_TRY(read_attr(r, NULL, NULL, &a));
		OM_PUSH(r->p->mem, defaults, f->nattr_default, capd, a);
	}
	f->attr = takes;
	f->attr_default = defaults;
	return OM_OK;
}

/* The body of a function is in a separate program in the same memory: its values and blocks do not
 * belong to the whole program. */
static om_status
read_function(struct om_reader *r, om_function **tail)
{
	om_function *f = OM_NEW(r->whole->mem, om_function);
	om_prog *home = OM_NEW(r->whole->mem, om_prog);

	OM_TRY(read_function_head(r, f));
	*home = (om_prog){.mem = r->whole->mem, .name = f->name,
		.opset = (om_opset *)f->opset, .nopset = f->nopset,
		.ir_version = r->whole->ir_version, .operators = r->whole->operators};
	r->p = home;
	f->body = om_block_new(home, NULL, NULL, "");
	OM_TRY(read_block(r, f->body, NULL));
	r->p = r->whole;
	*tail = f;
	return OM_OK;
}

/* Functions may call themselves, and functions that come later in the text. */
static void
resolve_calls(const om_prog *p)
{
	for (const om_function *f = p->functions; f; f = f->next)
		for (const om_block *b = f->body->prog->first; b; b = b->next)
			for (om_op *op = b->first; op; op = op->next) {
				op->call = callee(p, op);
				op->opdef = op->call ? NULL : op->opdef;
			}
}

static om_status
read_program(struct om_reader *r)
{
	om_function **tail = &r->p->functions;
	const om_opset *opset;

	OM_TRY(om_text_want(r, "program"));
	OM_TRY(om_text_word(r, "_.", &r->p->name));
	OM_TRY(om_text_want(r, "ir"));
	OM_TRY(om_text_version(r, &r->p->ir_version));
	OM_TRY(read_opsets(r, &opset, &r->p->nopset));
	r->p->opset = (om_opset *)opset;
	for (; om_text_eat(r, "function"); tail = &(*tail)->next)
		OM_TRY(read_function(r, tail));
	resolve_calls(r->p);
	OM_TRY(read_block(r, om_block_new(r->p, NULL, NULL, ""), NULL));
	om_text_skip(r);
	return *r->at ? om_text_bad(r, "unexpected text after the program") : OM_OK;
}

static om_status
read_all(struct om_reader *r, FILE *in)
{
	char *text = NULL;
	size_t n = 0, cap = 0;

	for (int c; (c = getc(in)) != EOF;) {
		if (c == '\0')
			return om_text_bad(r, "the text contains a NUL character");
		if (n == MAX_TEXT)
			return om_text_bad(r, "the text is longer than %d bytes", MAX_TEXT);
		OM_PUSH(r->mem, text, n, cap, (char)c);
	}
	if (ferror(in))
		return om_fail(r->s, OM_IO, "%s: cannot be read", r->where);
	OM_PUSH(r->mem, text, n, cap, '\0');
	r->at = text;
	return OM_OK;
}

static om_status
parse_guarded(om_session *s, const struct om_operators *operators, FILE *in, const char *where, om_prog **out)
{
	struct om_reader r = {.p = om_prog_new_with(operators), .s = s, .mem = om_arena_new(), .where = where, .line = 1};

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

om_status
om_parse_with(om_session *s, const struct om_operators *operators, FILE *in, const char *where, om_prog **out)
{
	*out = NULL;
	OM_GUARDED(s, parse_guarded(s, operators, in, where, out));
}
