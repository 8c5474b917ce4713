/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text: printer.  See parse.c for the grammar.
 *
 * The text depends on the program alone: not on addresses, times or hash order. Facts found by passes
 * follow each line after a semicolon, only while they are valid; readers skip them.
 */
#include <config.h>

#include <ctype.h>
#include <inttypes.h>
#include <math.h>

#include "base/half.h"
#include "base/shape.h"
#include "ir/enum_text.h"
#include "ir/live_interval.h"
#include "ir/liveness.h"
#include "ir/query.h"
#include "onnxmem/opdef.h"
#include "onnxmem/plan.h"

enum { SHORT = 256 };  /* largest constant that is printed in full, in bytes */

struct printer {
	const om_prog *p;
	FILE *to;
	unsigned flags;
	int depth;
};

static void
indent(const struct printer *w)
{
	for (int k = 0; k < w->depth; k++)
		fputc('\t', w->to);
}

static void
quoted(FILE *to, const char *s, size_t n)
{
	fputc('"', to);
	for (size_t k = 0; k < n; k++) {
		const unsigned char c = (unsigned char)s[k];
		if (c == '"' || c == '\\')
			fprintf(to, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(to, "\\x%02x", c);
		else
			fputc(c, to);
	}
	fputc('"', to);
}

static void
word(FILE *to, const char *s, const char *also)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || (s[n] && strchr(also, s[n])))
		n++;
	if (n && !s[n])
		fputs(s, to);
	else
		quoted(to, s, strlen(s));
}

static void
value(FILE *to, const om_value *v)
{
	if (!v) {
		fputc('_', to);
		return;
	}
	fputc('%', to);
	word(to, v->name, "_./-");
}

static void
shape(FILE *to, const om_shape *s)
{
	fputc('[', to);
	if (s->rank < 0)
		fputs("..", to);
	for (int k = 0; k < s->rank; k++) {
		if (k)
			fputc(',', to);
		if (s->dim[k] >= 0)
			fprintf(to, "%" PRId64, s->dim[k]);
		else if (!s->sym[k])
			fputc('?', to);
		else if (isdigit((unsigned char)*s->sym[k]))
			quoted(to, s->sym[k], strlen(s->sym[k]));
		else
			word(to, s->sym[k], "_.");
	}
	fputc(']', to);
}

static void
type(FILE *to, const om_type *t)
{
	static const char *const kind[] = {
		[OM_SPARSE] = "sparse", [OM_SEQUENCE] = "seq", [OM_OPTIONAL] = "optional",
		[OM_MAP] = "map", [OM_OPAQUE] = "opaque",
	};

	if (t->kind == OM_TENSOR) {
		fputs(om_dtype_text(t->elem), to);
		return;
	}
	fprintf(to, "%s(", kind[t->kind]);
	if (t->kind == OM_SPARSE || t->kind == OM_MAP)
		fputs(om_dtype_text(t->elem), to);
	if (t->kind == OM_MAP)
		fputs(", ", to);
	if (t->of)
		type(to, t->of);
	fputc(')', to);
}

static void
typed(FILE *to, const om_value *v)
{
	type(to, &v->type);
	if (v->type.kind == OM_TENSOR || v->type.kind == OM_SPARSE)
		shape(to, &v->shape);
}

/* The text is read back as a float with the same value. */
static void
real(FILE *to, double x, int digits)
{
	char text[40];

	if (isnan(x)) {
		fputs("nan", to);
		return;
	}
	if (isinf(x)) {
		fputs(x < 0 ? "-inf" : "inf", to);
		return;
	}
	snprintf(text, sizeof text, "%.*g", digits, x);
	fputs(text, to);
	if (!strpbrk(text, ".e"))
		fputs(".0", to);
}

/* False for types whose elements cannot be printed as numbers.  They may lie at any address. */
static bool
element(FILE *to, om_dtype t, const void *data, size_t k)
{
	const size_t size = om_dtype_bits(t) / 8;
	union {
		float f32; double f64; int64_t i64; uint64_t u64; int32_t i32; uint32_t u32; int16_t i16; uint16_t u16;
		int8_t i8; uint8_t u8; om_string s;
	} one;

	if (size > sizeof one)
		return false;
	memcpy(&one, (const char *)data + k * size, size);
	switch (t) {
	case OM_FLOAT32: real(to, one.f32, 9); return true;
	case OM_FLOAT64: real(to, one.f64, 17); return true;
	case OM_FLOAT16: real(to, om_half_to_float(one.u16), 9); return true;
	case OM_BFLOAT16: real(to, om_bfloat_to_float(one.u16), 9); return true;
	case OM_INT64: fprintf(to, "%" PRId64, one.i64); return true;
	case OM_UINT64: fprintf(to, "%" PRIu64, one.u64); return true;
	case OM_INT32: fprintf(to, "%" PRId32, one.i32); return true;
	case OM_UINT32: fprintf(to, "%" PRIu32, one.u32); return true;
	case OM_INT16: fprintf(to, "%d", one.i16); return true;
	case OM_UINT16: fprintf(to, "%d", one.u16); return true;
	case OM_INT8: fprintf(to, "%d", one.i8); return true;
	case OM_UINT8: case OM_BOOL: fprintf(to, "%d", one.u8); return true;
	case OM_STRING: quoted(to, one.s.data, one.s.size); return true;
	default: return false;
	}
}

static bool
has_number_form(om_dtype t)
{
	switch (t) {
	case OM_FLOAT32: case OM_FLOAT64: case OM_FLOAT16: case OM_BFLOAT16: case OM_INT64:
	case OM_UINT64: case OM_INT32: case OM_UINT32: case OM_INT16: case OM_UINT16:
	case OM_INT8: case OM_UINT8: case OM_BOOL: case OM_STRING:
		return true;
	default:
		return false;
	}
}

/* " {1, 2}", " splat {0}", " hex 00ff", " elided" */
static void
elements(const struct printer *w, const om_tensor *t)
{
	uint64_t bytes = 0;
	const uint64_t n = t->splat ? 1 : (uint64_t)om_shape_count(&t->shape);
	const bool sized = t->splat ? om_dtype_bytes(t->type, 1, &bytes)
	                            : om_tensor_bytes(t->type, &t->shape, &bytes);

	if (!t->data || !sized || (bytes > SHORT && !(w->flags & OM_DUMP_ALL_DATA))) {
		fputs(n || !sized ? " elided" : " {}", w->to);
		return;
	}
	if (t->splat)
		fputs(" splat", w->to);
	if (!has_number_form(t->type)) {
		fputs(" hex ", w->to);
		for (uint64_t k = 0; k < bytes; k++)
			fprintf(w->to, "%02x", ((const unsigned char *)t->data)[k]);
		return;
	}
	fputs(" {", w->to);
	for (uint64_t k = 0; k < n; k++) {
		if (k)
			fputs(", ", w->to);
		element(w->to, t->type, t->data, k);
	}
	fputc('}', w->to);
}

static void
tensor(const struct printer *w, const om_tensor *t)
{
	fputs(om_dtype_text(t->type), w->to);
	shape(w->to, &t->shape);
	elements(w, t);
}

static void block(struct printer *w, const om_block *b);

static void
attr_element(struct printer *w, const om_attr *a, size_t k)
{
	switch (a->kind) {
	case OM_ATTR_INT: case OM_ATTR_INTS: fprintf(w->to, "%" PRId64, a->i[k]); break;
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS: real(w->to, (double)a->f[k], 9); break;
	case OM_ATTR_STRING: case OM_ATTR_STRINGS: quoted(w->to, a->s[k].data, a->s[k].size); break;
	case OM_ATTR_TENSOR: case OM_ATTR_TENSORS: tensor(w, &a->t[k]); break;
	case OM_ATTR_GRAPH: case OM_ATTR_GRAPHS: block(w, a->g[k]); break;
	case OM_ATTR_TYPE: case OM_ATTR_TYPES: type(w->to, &a->type[k]); break;
	case OM_ATTR_SPARSE: case OM_ATTR_SPARSES: break;
	}
}

static const char *const kinds[] = {
	[OM_ATTR_FLOAT] = "float", [OM_ATTR_INT] = "int", [OM_ATTR_STRING] = "string",
	[OM_ATTR_TENSOR] = "tensor", [OM_ATTR_GRAPH] = "graph", [OM_ATTR_FLOATS] = "floats",
	[OM_ATTR_INTS] = "ints", [OM_ATTR_STRINGS] = "strings", [OM_ATTR_TENSORS] = "tensors",
	[OM_ATTR_GRAPHS] = "graphs", [OM_ATTR_SPARSE] = "sparse", [OM_ATTR_SPARSES] = "sparses",
	[OM_ATTR_TYPE] = "type", [OM_ATTR_TYPES] = "types",
};

/* The syntax of numbers and strings determines their kind; other kinds, and empty lists, are named. */
static bool
shows_kind(const om_attr *a)
{
	switch (a->kind) {
	case OM_ATTR_INT: case OM_ATTR_FLOAT: case OM_ATTR_STRING: case OM_ATTR_GRAPH: return true;
	case OM_ATTR_INTS: case OM_ATTR_FLOATS: case OM_ATTR_STRINGS: return a->n > 0;
	default: return false;
	}
}

static bool
is_list(om_attr_kind k)
{
	return (k >= OM_ATTR_FLOATS && k <= OM_ATTR_GRAPHS) || k == OM_ATTR_TYPES || k == OM_ATTR_SPARSES;
}

static void
attribute(struct printer *w, const om_attr *a)
{
	word(w->to, a->name, "_");
	fputs(" = ", w->to);
	if (a->ref) {
		fprintf(w->to, "ref %s ", kinds[a->kind]);
		word(w->to, a->ref, "_");
		return;
	}
	if (!shows_kind(a))
		fprintf(w->to, "%s ", kinds[a->kind]);
	if (is_list(a->kind))
		fputc('[', w->to);
	for (size_t k = 0; k < a->n; k++) {
		if (k)
			fputs(", ", w->to);
		attr_element(w, a, k);
	}
	if (is_list(a->kind))
		fputc(']', w->to);
}

static void
attributes(struct printer *w, const om_attr *a, size_t n)
{
	if (n == 0)
		return;
	fputs(" {", w->to);
	for (size_t k = 0; k < n; k++) {
		if (k)
			fputs(", ", w->to);
		attribute(w, &a[k]);
	}
	fputc('}', w->to);
}

static void
operator_name(const struct printer *w, const om_op *op)
{
	if (*op->domain) {
		word(w->to, op->domain, "_.");
		fputs("::", w->to);
	}
	word(w->to, op->type, "_");
	if (*op->overload) {
		fputs("::", w->to);
		word(w->to, op->overload, "_.");
	}
	if (op->version != om_opset_version(op->block->prog, op->domain))
		fprintf(w->to, "@%d", op->version);
}

static void
placement(const struct printer *w, const om_value *v)
{
	const om_placement *at = v->id < w->p->plan->nplace ? &w->p->plan->place[v->id] : NULL;

	if (at && at->where == OM_IN_ARENA)
		fprintf(w->to, "; at %u:%" PRIu64 "+%" PRIu64, at->arena, at->offset, at->bytes);
}

/* The addresses of a value in a loop: in the first iterations, in rotation, or after the loop. */
static void
addresses(const struct printer *w, const char *what, const om_address *s, uint32_t n, int64_t stride)
{
	fprintf(w->to, "; %s(", what);
	for (uint32_t k = 0; k < n; k++) {
		fputs(k ? ", " : "", w->to);
		value(w->to, s[k].in);
		if (s[k].offset)
			fprintf(w->to, "+%" PRIu64, s[k].offset);
	}
	if (stride)
		fprintf(w->to, "; stride %" PRId64, stride);
	fputc(')', w->to);
}

/* The assignment, if it covers `v`; else NULL. */
static const om_assignment *
assignment(const struct printer *w, const om_value *v)
{
	const om_assignment *a = w->p->has & OM_HAS_LIVE ? w->p->assignment : NULL;
	return a && v->id < a->nvalue ? a : NULL;
}

static void
storage(const struct printer *w, const om_value *v)
{
	static const char *const how[] = {[OM_VIEW] = "view", [OM_INPLACE] = "inplace", [OM_IO_ALIAS] = "io_alias",
		[OM_SUBBUFFER] = "subbuffer"};
	const om_assignment *a = assignment(w, v);

	if (!a)
		return;
	const om_backing *b = &a->backing[v->id];
	const om_multi_view *r = a->multi_view[v->id];
	if (b->source) {
		fprintf(w->to, "; %s(", how[b->store]);
		value(w->to, b->source);
		if (b->offset)
			fprintf(w->to, "+%" PRIu64, b->offset);
		fputc(')', w->to);
	}
	if (r) {
		if (r->nprologue)
			addresses(w, "first", r->first, r->nprologue, 0);
		addresses(w, r->is_output ? "last" : "rotate", r->at, r->period, r->stride);
	}
}

static void
lifetime(const struct printer *w, const char *before, const om_live_interval *l)
{
	om_steps r;

	for (uint32_t k = 0; om_live_interval_range(l, k, &r); k++)
		fprintf(w->to, "%s%u..%u", k ? "," : before, r.first, r.last);
}

/* The facts of passes about an output. */
static void
facts(const struct printer *w, const om_op *op, const om_value *v)
{
	fputs("\t; ", w->to);
	if (op->nout > 1) {
		value(w->to, v);
		fputc(' ', w->to);
	}
	typed(w->to, v);
	const om_assignment *a = assignment(w, v);
	if (a && !v->is_const)
		lifetime(w, "; ", &a->live[v->id]);
	storage(w, v);
	if (w->p->has & OM_HAS_PLAN && w->p->plan)
		placement(w, v);
	if (op->is_folded && w->p->has & OM_HAS_CONST)
		fputs("; folded", w->to);
	if (op->phase == OM_BACKWARD || op->phase == OM_UPDATE)
		fprintf(w->to, "; %s", om_phase_text(op->phase));
}

static void
op_line(struct printer *w, const om_op *op)
{
	indent(w);
	for (uint32_t k = 0; k < op->nout; k++) {
		if (k)
			fputs(", ", w->to);
		value(w->to, op->out[k]);
		if (op->out[k] && op->out[k]->is_declared) {
			fputs(": ", w->to);
			typed(w->to, op->out[k]);
		}
	}
	fputs(" = ", w->to);
	operator_name(w, op);
	fputc('(', w->to);
	for (uint32_t k = 0; k < op->nin; k++) {
		if (k)
			fputs(", ", w->to);
		value(w->to, op->in[k]);
	}
	fputc(')', w->to);
	attributes(w, op->attr, op->nattr);
	if (op->device) {
		fputs(" on ", w->to);
		word(w->to, op->device, "_.");
	}
	if (*op->name) {
		fputs(" as ", w->to);
		quoted(w->to, op->name, strlen(op->name));
	}
	for (uint32_t k = 0; k < op->nout && w->p->has & OM_HAS_SHAPES; k++)
		if (op->out[k])
			facts(w, op, op->out[k]);
	fputc('\n', w->to);
}

static void
params(const struct printer *w, const om_block *b)
{
	fputc('(', w->to);
	for (uint32_t k = 0; k < b->nparam; k++) {
		const om_value *v = b->param[k];
		if (k)
			fputs(", ", w->to);
		value(w->to, v);
		fputs(": ", w->to);
		typed(w->to, v);
		if (v->is_overridable && v->data) {
			fputs(" =", w->to);
			elements(w, v->data);
		}
	}
	fputc(')', w->to);
}

static bool
is_param(const om_block *b, const om_value *v)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		if (b->param[k] == v)
			return true;
	return false;
}

static void
constants(const struct printer *w, const om_block *b)
{
	for (uint32_t k = 0; k < b->prog->nvalue; k++) {
		const om_value *v = b->prog->values[k];
		if (v->block != b || v->def || !v->data || is_param(b, v))
			continue;
		indent(w);
		value(w->to, v);
		fputs(" = const ", w->to);
		tensor(w, v->data);
		fputc('\n', w->to);
	}
}

static void
live_set(const struct printer *w, const char *label, const om_value *const *v, size_t n)
{
	indent(w);
	fprintf(w->to, "; %s:", label);
	for (size_t k = 0; k < n; k++) {
		fputc(' ', w->to);
		value(w->to, v[k]);
	}
	fputc('\n', w->to);
}

static void
op_with_live(struct printer *w, const om_op *op)
{
	const bool wanted = w->flags & OM_DUMP_LIVE && w->p->has & OM_HAS_LIVE && w->p->assignment;
	om_arena *mem = wanted ? om_arena_new() : NULL;
	const om_value **v;

	if (wanted) {
		const size_t n = om_live_in(w->p, op, mem, &v);
		live_set(w, "live in", v, n);
	}
	op_line(w, op);
	if (wanted) {
		const size_t n = om_live_out(w->p, op, mem, &v);
		live_set(w, "live out", v, n);
	}
	om_arena_free(mem);
}

/* Parameters that share storage, one on each line. */
static void
param_facts(const struct printer *w, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++) {
		const om_value *v = b->param[k];
		const om_assignment *a = assignment(w, v);
		if (!a || (!a->backing[v->id].source && !a->multi_view[v->id]))
			continue;
		indent(w);
		fputs("; ", w->to);
		value(w->to, v);
		lifetime(w, " ", &a->live[v->id]);
		storage(w, v);
		fputc('\n', w->to);
	}
}

/* The parameter that result `k` becomes in the next run. */
static void
io_alias(const struct printer *w, const om_block *b, uint32_t k)
{
	for (uint32_t t = 0; b == w->p->first && t < w->p->nio_alias; t++)
		if (w->p->io_alias[t].result == k) {
			fputs(" to ", w->to);
			value(w->to, b->param[w->p->io_alias[t].param]);
		}
}

static void
block(struct printer *w, const om_block *b)
{
	fputc('^', w->to);
	word(w->to, b->name, "_");
	params(w, b);
	fputs(" {\n", w->to);
	w->depth++;
	param_facts(w, b);
	constants(w, b);
	for (const om_op *op = b->first; op; op = op->next)
		op_with_live(w, op);
	indent(w);
	fputs("ret", w->to);
	for (uint32_t k = 0; k < b->nresult; k++) {
		fputs(k ? ", " : " ", w->to);
		value(w->to, b->result[k]);
		io_alias(w, b, k);
	}
	fputc('\n', w->to);
	w->depth--;
	indent(w);
	fputc('}', w->to);
}

static void
opsets(FILE *to, const om_opset *o, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		fputs(" opset ", to);
		if (*o[k].domain) {
			word(to, o[k].domain, "_.");
			fputc(' ', to);
		}
		fprintf(to, "%d", o[k].version);
	}
}

static void
function(struct printer *w, const om_function *f)
{
	fputs("function ", w->to);
	word(w->to, f->domain, "_.");
	fputs("::", w->to);
	word(w->to, f->name, "_");
	if (*f->overload) {
		fputs("::", w->to);
		word(w->to, f->overload, "_.");
	}
	opsets(w->to, f->opset, f->nopset);
	for (size_t k = 0; k < f->nattr; k++) {
		fputs(" takes ", w->to);
		word(w->to, f->attr[k], "_");
	}
	attributes(w, f->attr_default, f->nattr_default);
	fputc(' ', w->to);
	block(w, f->body);
	fputc('\n', w->to);
}

void
om_dump(const om_prog *p, FILE *to, unsigned flags)
{
	struct printer w = {.p = p, .to = to, .flags = flags};

	fputs("program ", to);
	quoted(to, p->name, strlen(p->name));
	fprintf(to, " ir %d", p->ir_version);
	opsets(to, p->opset, p->nopset);
	fputc('\n', to);
	for (const om_function *f = p->functions; f; f = f->next)
		function(&w, f);
	if (p->first)
		block(&w, p->first);
	fputc('\n', to);
}
