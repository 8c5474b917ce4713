/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings of symbols and shapes.
 *
 * A binding is resolved before it is applied: numbers of symbols, and shapes of the inputs, by the
 * program as it is.  Errors are found then, and the program is never partially bound. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena_internal.h"
#include "base/guard.h"
#include "base/sha256.h"
#include "ir/binding.h"
#include "ir/dim_expression.h"
#include "ir/facts.h"
#include "ir/query.h"
#include "onnxmem/arena.h"

struct symbol {
	const char *name;
	int64_t n;               /* -1: not bound */
	bool is_given;           /* by name, not only by shapes of inputs */
	bool is_split;           /* inputs have different numbers for it, so it is none */
};

struct input {
	const char *name;
	om_shape shape;
};

struct constant {
	const char *input;
	om_tensor t;             /* of a default: the elements are the program's */
	bool is_default;
};

struct om_binding {
	om_arena *mem;
	struct constant *constant;
	size_t nconstant, capconstant;
	struct symbol *symbol;
	size_t nsymbol, capsymbol;
	struct input *input;
	size_t ninput, capinput;
	int64_t rest;            /* -1: dims may stay open */
};

om_binding *
om_binding_new(void)
{
	om_arena *mem = om_arena_new();
	om_binding *b = mem ? OM_NEW(mem, om_binding) : NULL;

	if (!b) {
		om_arena_free(mem);
		return NULL;
	}
	b->mem = mem;
	b->rest = -1;
	return b;
}

void
om_binding_free(om_binding *b)
{
	if (b)
		om_arena_free(b->mem);
}

static om_status
binding_dim_guarded(om_session *s, om_binding *b, const char *symbol, int64_t n)
{
	if (n < 0)
		return om_fail(s, OM_USAGE, "symbol %s cannot be %lld: a dim is at least 0", symbol, (long long)n);
	for (size_t k = 0; k < b->nsymbol; k++)
		if (strcmp(b->symbol[k].name, symbol) == 0)
			return b->symbol[k].n == n ? OM_OK : om_fail(s, OM_USAGE, "symbol %s is bound to both %lld and %lld",
				symbol, (long long)b->symbol[k].n, (long long)n);
	OM_PUSH(b->mem, b->symbol, b->nsymbol, b->capsymbol, ((struct symbol){.name = om_strdup(b->mem, symbol), .n = n}));
	return OM_OK;
}

om_status
om_binding_dim(om_session *s, om_binding *b, const char *symbol, int64_t n)
{
	OM_GUARDED(s, binding_dim_guarded(s, b, symbol, n));
}

static om_status
binding_shape_guarded(om_session *s, om_binding *b, const char *input, const om_shape *shape)
{
	if (!om_shape_is_known(shape))
		return om_fail(s, OM_USAGE, "input %s: a shape with unknown dims has no binding", input);
	for (size_t k = 0; k < b->ninput; k++)
		if (strcmp(b->input[k].name, input) == 0)
			return om_shape_equal(&b->input[k].shape, shape) ? OM_OK
				: om_fail(s, OM_USAGE, "input %s is bound to two shapes", input);
	OM_PUSH(b->mem, b->input, b->ninput, b->capinput, ((struct input){om_strdup(b->mem, input), *shape}));
	memset(b->input[b->ninput - 1].shape.sym, 0, sizeof shape->sym);  /* symbols are the caller's */
	return OM_OK;
}

om_status
om_binding_shape(om_session *s, om_binding *b, const char *input, const om_shape *shape)
{
	OM_GUARDED(s, binding_shape_guarded(s, b, input, shape));
}

bool
om_tensor_same(const om_tensor *a, const om_tensor *b)
{
	uint64_t bytes;

	return a->type == b->type && om_shape_equal(&a->shape, &b->shape) && om_tensor_bytes(a->type, &a->shape, &bytes)
	    && (bytes == 0 || memcmp(a->data, b->data, bytes) == 0);
}

static om_status
binding_value_guarded(om_session *s, om_binding *b, const char *input, const om_tensor *t)
{
	uint64_t bytes;

	if (!om_tensor_bytes(t->type, &t->shape, &bytes) || t->splat || (bytes && !t->data))
		return om_fail(s, OM_USAGE, "input %s: the constant has no elements", input);
	for (size_t k = 0; k < b->nconstant; k++)
		if (strcmp(b->constant[k].input, input) == 0)
			return !b->constant[k].is_default && om_tensor_same(&b->constant[k].t, t) ? OM_OK
				: om_fail(s, OM_USAGE, "input %s is bound to two constants", input);
	OM_TRY(binding_shape_guarded(s, b, input, &t->shape));
	om_tensor copy = *t;
	copy.data = om_memdup(b->mem, t->data, bytes);
	memset(copy.shape.sym, 0, sizeof copy.shape.sym);
	OM_PUSH(b->mem, b->constant, b->nconstant, b->capconstant, ((struct constant){om_strdup(b->mem, input), copy, false}));
	return OM_OK;
}

om_status
om_binding_value(om_session *s, om_binding *b, const char *input, const om_tensor *t)
{
	OM_GUARDED(s, binding_value_guarded(s, b, input, t));
}

static om_status
binding_default_guarded(om_session *s, om_binding *b, const om_prog *p, const char *input)
{
	const om_value *v = om_block_param(p->first, input);

	if (!v)
		return om_fail(s, OM_USAGE, "the program has no input %s", input);
	if (!v->is_overridable || !v->data)
		return om_fail(s, OM_USAGE, "input %s has no default", input);
	for (size_t k = 0; k < b->nconstant; k++)
		if (strcmp(b->constant[k].input, input) == 0)
			return b->constant[k].is_default ? OM_OK : om_fail(s, OM_USAGE, "input %s is bound to two constants", input);
	OM_TRY(binding_shape_guarded(s, b, input, &v->data->shape));
	OM_PUSH(b->mem, b->constant, b->nconstant, b->capconstant, ((struct constant){om_strdup(b->mem, input), *v->data, true}));
	return OM_OK;
}

om_status
om_binding_default(om_session *s, om_binding *b, const om_prog *p, const char *input)
{
	OM_GUARDED(s, binding_default_guarded(s, b, p, input));
}

bool
om_binding_constant(const om_binding *b, size_t k, const char **input, const om_tensor **t)
{
	if (!b || k >= b->nconstant)
		return false;
	*input = b->constant[k].input;
	*t = &b->constant[k].t;
	return true;
}

void
om_binding_rest(om_binding *b, int64_t n)
{
	b->rest = n;
}

bool
om_binding_symbol(const om_binding *b, size_t k, const char **symbol, int64_t *n)
{
	if (!b || k >= b->nsymbol)
		return false;
	*symbol = b->symbol[k].name;
	*n = b->symbol[k].n;
	return true;
}

bool
om_binding_input(const om_binding *b, size_t k, const char **input, const om_shape **shape)
{
	if (!b || k >= b->ninput)
		return false;
	*input = b->input[k].name;
	*shape = &b->input[k].shape;
	return true;
}

/* ---- Resolution. ---- */

/* A binding of one program. */
struct resolved {
	om_session *session;
	om_arena *mem;
	const om_block *graph;
	struct symbol *symbol;   /* of the program, sorted by name */
	size_t nsymbol;
	om_shape *shape;         /* by parameter of the graph */
	int64_t rest;            /* of symbols without a number; -1: they have none */
};

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct symbol *)a)->name, ((const struct symbol *)b)->name);
}

static void
find_symbols(struct resolved *r, const om_prog *p)
{
	size_t n = 0, cap = 0;

	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_shape *of = &p->values[k]->shape;
		for (int d = 0; d < of->rank; d++)
			if (of->dim[d] < 0 && of->sym[d])
				OM_PUSH(r->mem, r->symbol, n, cap, ((struct symbol){.name = of->sym[d], .n = -1}));
	}
	if (n)
		qsort(r->symbol, n, sizeof *r->symbol, by_name);
	for (size_t k = 0; k < n; k++)
		if (!r->nsymbol || strcmp(r->symbol[r->nsymbol - 1].name, r->symbol[k].name) != 0)
			r->symbol[r->nsymbol++] = r->symbol[k];
}

static struct symbol *
symbol_of(const struct resolved *r, const char *name)
{
	const struct symbol key = {.name = name};
	return r->nsymbol ? bsearch(&key, r->symbol, r->nsymbol, sizeof key, by_name) : NULL;
}

static om_status
resolve_symbols(struct resolved *r, const om_binding *b)
{
	for (size_t k = 0; k < b->nsymbol; k++) {
		struct symbol *is = symbol_of(r, b->symbol[k].name);
		if (!is)
			return om_fail(r->session, OM_USAGE, "no dim of the model is called %s", b->symbol[k].name);
		is->n = b->symbol[k].n;
		is->is_given = true;
	}
	return OM_OK;
}

/* Dim `d` of parameter `v` is `n`.  Exporters call dims alike that are not equal, as the length of the encoder's output and that
 * of an empty cache: without a number given by name, each input has its own. */
static om_status
resolve_dim(struct resolved *r, const om_value *v, om_shape *shape, int d, int64_t n)
{
	struct symbol *is = shape->dim[d] < 0 && v->shape.sym[d] ? symbol_of(r, v->shape.sym[d]) : NULL;

	if (shape->dim[d] >= 0 && shape->dim[d] != n)
		return om_fail(r->session, OM_SHAPE, "input %s: dim %d is %lld in the file, not %lld", v->name, d,
			(long long)shape->dim[d], (long long)n);
	if (is && is->is_given && is->n != n)
		return om_fail(r->session, OM_SHAPE, "input %s: dim %d is %s, which is %lld, not %lld", v->name, d, is->name,
			(long long)is->n, (long long)n);
	shape->dim[d] = n;
	if (!is)
		return OM_OK;
	is->is_split |= is->n >= 0 && is->n != n;
	is->n = is->is_split ? -1 : n;
	return OM_OK;
}

static om_status
resolve_input(struct resolved *r, const struct input *in)
{
	const om_block *g = r->graph;
	uint32_t k = 0;

	while (k < g->nparam && strcmp(g->param[k]->name, in->name) != 0)
		k++;
	if (k == g->nparam)
		return om_fail(r->session, OM_USAGE, "the model has no input called %s", in->name);
	const om_value *v = g->param[k];
	if (v->type.kind != OM_TENSOR)
		return om_fail(r->session, OM_USAGE, "input %s is not a tensor: it has no shape", v->name);
	if (v->shape.rank == OM_RANK_UNKNOWN) {
		r->shape[k] = in->shape;
		return OM_OK;
	}
	if (v->shape.rank != in->shape.rank)
		return om_fail(r->session, OM_SHAPE, "input %s: has %d dims in the file, not %d", v->name, v->shape.rank,
			in->shape.rank);
	for (int d = 0; d < in->shape.rank; d++)
		OM_TRY(resolve_dim(r, v, &r->shape[k], d, in->shape.dim[d]));
	return OM_OK;
}

/* Its shape was resolved before. */
static om_status
check_constant(const struct resolved *r, const struct constant *is)
{
	const om_value *v = om_block_param(r->graph, is->input);

	if (is->is_default && !(v->data && v->is_overridable))
		return om_fail(r->session, OM_USAGE, "input %s has no default", v->name);
	if (v->type.elem == is->t.type)
		return OM_OK;
	return om_fail(r->session, OM_USAGE, "input %s is %s, not %s", v->name, om_dtype_text(v->type.elem),
		om_dtype_text(is->t.type));
}

static bool
number_of(const void *resolved, const char *name, size_t n, int64_t *out)
{
	const struct resolved *r = resolved;

	for (size_t k = 0; k < r->nsymbol; k++) {
		const struct symbol *is = &r->symbol[k];
		if (strlen(is->name) != n || memcmp(is->name, name, n) != 0)
			continue;
		*out = is->n >= 0 || is->is_split ? is->n : r->rest;
		return *out >= 0;
	}
	return false;
}

/* A symbol that is called "a + b" has a number where a and b do, unless it is bound to one itself; the rest of the binding is
 * for a and b, not for their sum. */
static void
resolve_expressions(struct resolved *r)
{
	for (size_t k = 0; k < r->nsymbol; k++)
		if (r->symbol[k].n < 0)
			om_dim_expression(r->symbol[k].name, number_of, r, &r->symbol[k].n);
}

static om_status
open_dim(const struct resolved *r, const om_value *v, int d)
{
	if (v->shape.sym[d])
		return om_fail(r->session, OM_SHAPE, "input %s: dim %s is open; give it with --dim %s=N", v->name,
			v->shape.sym[d], v->shape.sym[d]);
	return om_fail(r->session, OM_SHAPE, "input %s: dim %d is open; give it with --input-shape", v->name, d);
}

static om_status
resolve_rest(struct resolved *r, const om_value *v, om_shape *shape, int64_t rest)
{
	if (shape->rank == OM_RANK_UNKNOWN)
		return om_fail(r->session, OM_SHAPE, "input %s: its shape is not known; give it with --input-shape", v->name);
	for (int d = 0; d < shape->rank; d++) {
		const struct symbol *is = shape->dim[d] < 0 && v->shape.sym[d] ? symbol_of(r, v->shape.sym[d]) : NULL;
		if (shape->dim[d] >= 0 || (is && is->n >= 0))
			continue;
		if (rest == 0)
			return open_dim(r, v, d);
		OM_TRY(resolve_dim(r, v, shape, d, rest));
	}
	return OM_OK;
}

/* Replace symbols by their numbers; one that is split is no symbol any more. */
static void
substitute(const struct resolved *r, om_shape *shape)
{
	for (int d = 0; d < shape->rank; d++) {
		const struct symbol *is = shape->sym[d] ? symbol_of(r, shape->sym[d]) : NULL;
		if (is && is->is_split)
			shape->sym[d] = NULL;
		else if (is && is->n >= 0 && shape->dim[d] < 0)
			shape->dim[d] = is->n;
	}
}

static om_status
resolve(om_session *s, const om_prog *p, const om_binding *b, om_arena *mem, struct resolved *r)
{
	const om_block *g = p->first;

	*r = (struct resolved){.session = s, .mem = mem, .graph = g, .shape = OM_NEWN(mem, om_shape, (size_t)g->nparam + 1)};
	for (uint32_t k = 0; k < g->nparam; k++)
		r->shape[k] = g->param[k]->shape;
	find_symbols(r, p);
	OM_TRY(resolve_symbols(r, b));
	for (size_t k = 0; k < b->ninput; k++)
		OM_TRY(resolve_input(r, &b->input[k]));
	for (size_t k = 0; k < b->nconstant; k++)
		OM_TRY(check_constant(r, &b->constant[k]));
	r->rest = b->rest > 0 ? b->rest : -1;
	resolve_expressions(r);
	for (uint32_t k = 0; k < g->nparam && b->rest >= 0; k++)
		if (g->param[k]->type.kind == OM_TENSOR)
			OM_TRY(resolve_rest(r, g->param[k], &r->shape[k], b->rest));
	for (uint32_t k = 0; k < g->nparam; k++)
		substitute(r, &r->shape[k]);
	return OM_OK;
}

/* ---- Use. ---- */

static void
fix(om_prog *p, const struct constant *is)
{
	om_value *v = om_block_param(p->first, is->input);
	uint64_t bytes = 0;

	v->is_const = true;
	v->is_overridable = false;
	if (is->is_default)
		return;
	om_tensor *data = om_memdup(p->mem, &is->t, sizeof *data);
	om_tensor_bytes(is->t.type, &is->t.shape, &bytes);
	data->data = om_memdup(p->mem, is->t.data, bytes);
	v->data = data;
	v->origin = NULL;
}

/* Symbols are global: parameters of bodies and declared values are bound, too. */
static void
apply(const struct resolved *r, const om_binding *b, om_prog *p)
{
	om_facts_set(p, b->nconstant ? OM_HAS_INLINE : OM_HAS_INLINE | OM_HAS_CONST, 0);
	p->assignment = NULL;
	p->op_facts = NULL;
	for (uint32_t k = 0; k < p->nvalue; k++)
		substitute(r, &p->values[k]->shape);
	for (uint32_t k = 0; k < p->first->nparam; k++)
		p->first->param[k]->shape = r->shape[k];
	for (size_t k = 0; k < b->nconstant; k++)
		fix(p, &b->constant[k]);
}

static om_status
bind_in(om_session *s, om_prog *p, const om_binding *b, om_arena *mem)
{
	struct resolved r;

	OM_TRY(resolve(s, p, b, mem, &r));
	for (size_t k = 0; k < r.nsymbol; k++)
		if (r.symbol[k].is_split)
			om_warn(s, "inputs have different numbers for the dim %s: each input has its own, and where else it is used it is open",
				r.symbol[k].name);
	apply(&r, b, p);
	return OM_OK;
}

static om_status
bind_guarded(om_session *s, om_prog *p, const om_binding *b)
{
	om_arena *mem = om_arena_new();
	const om_status st = bind_in(s, p, b, mem);

	om_arena_free(mem);
	return st;
}

om_status
om_bind(om_session *s, om_prog *p, const om_binding *b)
{
	OM_GUARDED(s, bind_guarded(s, p, b));
}

om_status
om_prog_bind(om_session *s, const om_prog *p, const om_binding *b, om_prog **out)
{
	OM_TRY(om_prog_copy(s, p, out));
	const om_status st = b ? om_bind(s, *out, b) : OM_OK;
	if (st != OM_OK) {
		om_prog_free(*out);
		*out = NULL;
	}
	return st;
}

static const char *
dims_text(om_arena *mem, const om_shape *shape)
{
	const char *text = shape->rank == OM_RANK_UNKNOWN ? "*" : "";

	for (int d = 0; d < shape->rank; d++)
		text = shape->dim[d] < 0 ? om_printf(mem, "%s%s%s", text, d ? "," : "", shape->sym[d] ? shape->sym[d] : "?")
			: om_printf(mem, "%s%s%lld", text, d ? "," : "", (long long)shape->dim[d]);
	return text;
}

/* A digest of the elements. */
static const char *
elements_text(om_arena *mem, const om_tensor *t)
{
	om_sha256 *h = om_sha256_new(mem);
	char *hex = om_alloc(mem, OM_SHA256_TEXT);
	uint64_t bytes = 0;

	om_tensor_bytes(t->type, &t->shape, &bytes);
	om_sha256_add(h, t->data, bytes);
	om_sha256_end(h, hex);
	return hex;
}

static om_status
text_guarded(om_session *s, const om_prog *p, const om_binding *b, om_arena *mem, const char **out)
{
	struct resolved r;
	const char *text = "";

	OM_TRY(resolve(s, p, b, mem, &r));
	for (size_t k = 0; k < r.nsymbol; k++)
		if (r.symbol[k].n >= 0)
			text = om_printf(mem, "%s%s%s=%lld", text, *text ? " " : "", r.symbol[k].name, (long long)r.symbol[k].n);
	for (uint32_t k = 0; k < r.graph->nparam; k++)
		if (r.graph->param[k]->type.kind == OM_TENSOR)
			text = om_printf(mem, "%s%s%s=%s", text, *text ? " " : "", r.graph->param[k]->name,
				dims_text(mem, &r.shape[k]));
	for (size_t k = 0; k < b->nconstant; k++)
		text = om_printf(mem, "%s %s=%s", text, b->constant[k].input,
			b->constant[k].is_default ? "default" : elements_text(mem, &b->constant[k].t));
	*out = text;
	return OM_OK;
}

om_status
om_binding_text(om_session *s, const om_prog *p, const om_binding *b, om_arena *mem, const char **out)
{
	OM_GUARDED(s, text_guarded(s, p, b, mem, out));
}

bool
om_prog_has_symbol(const om_prog *p, const char *symbol)
{
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_shape *of = &p->values[k]->shape;
		for (int d = 0; d < of->rank; d++)
			if (of->dim[d] < 0 && of->sym[d] && strcmp(of->sym[d], symbol) == 0)
				return true;
	}
	return false;
}

bool
om_input_is_fixed(const om_value *input)
{
	return input->is_const && input->data && !input->is_overridable;
}

bool
om_prog_has_fixed_inputs(const om_prog *p)
{
	for (uint32_t k = 0; k < p->first->nparam; k++)
		if (om_input_is_fixed(p->first->param[k]))
			return true;
	return false;
}
