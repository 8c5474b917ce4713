/* SPDX-License-Identifier: Apache-2.0 */
/* Partially known lists of integers, and symbols of computed dims.
 *
 * For operators that move elements, the kernel itself is used: unknown elements are replaced by tags,
 * that is, numbers that do not occur otherwise, and are recognized in the output.  Only inputs whose
 * elements are moved may contain tags, never indices. */
#include <config.h>

#include "opdef/columns.h"
#include "onnxmem/kernel.h"
#include "opdef/kernel_call.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

enum { LONGEST_SYMBOL = 120 };

/* ---- Symbols. ---- */

static bool
is_sum(const char *text)
{
	return strpbrk(text, "+-") != NULL;
}

/* `N*2` for N and 2; sums, and quotients that are multiplied with, are parenthesized where precedence requires it: equal texts are equal
 * numbers. */
const char *
om_dim_text(const om_op_context *c, const char *a, char sign, const char *b)
{
	if (!a || !b || !c->keep || strlen(a) + strlen(b) > LONGEST_SYMBOL)
		return NULL;
	const bool product = sign == '*' || sign == '/';
	const bool wrap = product && is_sum(a);
	const bool wrap_b = (sign != '+' && is_sum(b)) || (sign == '/' && strpbrk(b, "*/")) || (sign == '*' && strchr(b, '/'));

	return om_printf(c->keep, "%s%s%s%c%s%s%s", wrap ? "(" : "", a, wrap ? ")" : "", sign, wrap_b ? "(" : "", b,
		wrap_b ? ")" : "");
}

const char *
om_dim_text_number(const om_op_context *c, const char *a, char sign, int64_t b)
{
	char text[32];

	if (b == (sign == '*' || sign == '/'))
		return a;
	snprintf(text, sizeof text, "%lld", (long long)b);
	return b < 0 ? NULL : om_dim_text(c, a, sign, text);
}

const char *
om_dim_product_text(const om_op_context *c, const om_shape *s, int from, int to)
{
	const char *text = NULL;
	int64_t known = 1;

	for (int d = from; d < to; d++) {
		if (s->dim[d] >= 0) {
			if (__builtin_mul_overflow(known, s->dim[d], &known))
				return NULL;
		} else if (!s->sym[d]) {
			return NULL;
		} else {
			text = text ? om_dim_text(c, text, '*', s->sym[d]) : s->sym[d];
			if (!text)
				return NULL;
		}
	}
	return text && known ? om_dim_text_number(c, text, '*', known) : NULL;
}

om_symbolic_elem
om_elem_of_dim(const om_shape *s, int d)
{
	return (om_symbolic_elem){.known = s->dim[d] >= 0, .value = s->dim[d], .sym = s->dim[d] >= 0 ? NULL : s->sym[d]};
}

/* A difference may be negative. */
bool
om_dim_of_elem(const om_symbolic_elem *e, om_shape *s, int d)
{
	s->dim[d] = OM_DIM_UNKNOWN;
	s->sym[d] = NULL;
	if (e->known && e->value >= 0)
		s->dim[d] = e->value;
	else if (!e->known && e->sym && !strchr(e->sym, '-'))
		s->sym[d] = e->sym;
	else
		return false;
	return true;
}

/* ---- Moved elements. ---- */

/* Numbers from here on are tags of unknown elements. */
static const int64_t FIRST_TAG = INT64_MIN / 2;

struct tags {
	om_symbolic_elem elem[OM_VARIADIC];
	int n;
};

/* Input `k` with tags for unknown elements; false if no element is known. */
static bool
tagged(const om_op_context *c, uint32_t k, struct tags *t, om_tensor *in)
{
	const om_symbolic_elem *e;
	size_t n;

	if (!om_in_symbolic_elems(c, k, &e, &n) || t->n + (int)n > OM_VARIADIC)
		return false;
	int64_t *v = OM_NEWN(c->mem, int64_t, n + 1);
	for (size_t i = 0; i < n; i++) {
		v[i] = e[i].known ? e[i].value : FIRST_TAG + t->n;
		if (!e[i].known)
			t->elem[t->n++] = e[i];
	}
	*in = c->in[k];
	in->type = OM_INT64;
	in->data = v;
	in->splat = false;
	return true;
}

/* The inputs for the kernel. */
static bool
tagged_inputs(const om_op_context *c, struct tags *t, om_tensor *in)
{
	const bool any = c->op->opdef->max_in == OM_VARIADIC;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!om_has_in(c, k))
			continue;
		in[k] = c->in[k];
		if (k == 0 || any ? !tagged(c, k, t, &in[k]) : !c->in[k].data || c->in[k].splat)
			return false;
	}
	return true;
}

void
om_elems_moved(const om_op_context *c, om_symbolic_elem *e)
{
	const int64_t n = om_shape_count(&c->out[0].shape);
	struct tags *t = OM_NEW(c->mem, struct tags);
	om_tensor *in = OM_NEWN(c->mem, om_tensor, c->op->nin + 1);
	int64_t v[OM_MAX_RANK] = {0};
	om_op_context part = *c;
	om_tensor out = c->out[0];

	if (!tagged_inputs(c, t, in) || c->op->nout != 1)
		return;
	out.type = OM_INT64;
	out.data = v;
	part.in = in;
	part.out = &out;
	part.session = om_session_new();
	const bool good = om_kernel_call(&part) == OM_OK;
	om_session_free(part.session);
	if (good && out.data != v)
		memcpy(v, out.data, (size_t)n * sizeof *v);
	for (int64_t k = 0; good && k < n; k++) {
		const bool tag = v[k] >= FIRST_TAG && v[k] < FIRST_TAG + t->n;
		e[k] = tag ? t->elem[v[k] - FIRST_TAG] : (om_symbolic_elem){.known = true, .value = v[k]};
	}
}

/* ---- Sums, products. ---- */

static bool
calculate(char sign, int64_t a, int64_t b, int64_t *v)
{
	switch (sign) {
	case '+': return !__builtin_add_overflow(a, b, v);
	case '-': return !__builtin_sub_overflow(a, b, v);
	case '*': return !__builtin_mul_overflow(a, b, v);
	default:
		if (b == 0 || (a == INT64_MIN && b == -1))
			return false;
		*v = a / b;
		return true;
	}
}

static om_symbolic_elem
calculated(const om_op_context *c, char sign, const om_symbolic_elem *a, const om_symbolic_elem *b)
{
	om_symbolic_elem e = {0};

	if (a->known && b->known)
		e.known = calculate(sign, a->value, b->value, &e.value);
	else if (b->known)
		e.sym = b->value ? om_dim_text_number(c, a->sym, sign, b->value) : sign == '+' || sign == '-' ? a->sym : NULL;
	else if (a->known && (sign == '+' || sign == '*') && a->value)
		e.sym = om_dim_text_number(c, b->sym, sign, a->value);
	else if (!a->known)
		e.sym = om_dim_text(c, a->sym, sign, b->sym);
	return e;
}

/* The elements of inputs 0 and 1, each one or as many as the output has. */
struct elem_pairs {
	const om_symbolic_elem *a, *b;
	size_t na, nb, n;
};

static bool
find_pairs(const om_op_context *c, struct elem_pairs *p)
{
	p->n = (size_t)om_shape_count(&c->out[0].shape);
	return om_in_symbolic_elems(c, 0, &p->a, &p->na) && om_in_symbolic_elems(c, 1, &p->b, &p->nb) && (p->na == 1 || p->na == p->n)
	    && (p->nb == 1 || p->nb == p->n);
}

void
om_elems_calculated(const om_op_context *c, om_symbolic_elem *e)
{
	static const struct { const char *name; char sign; } signs[] = {
		{"Add", '+'}, {"Sub", '-'}, {"Mul", '*'}, {"Div", '/'},
	};
	struct elem_pairs p;
	char sign = 0;

	for (size_t k = 0; k < sizeof signs / sizeof signs[0]; k++)
		if (strcmp(c->op->opdef->name, signs[k].name) == 0)
			sign = signs[k].sign;
	if (!sign || !find_pairs(c, &p))
		return;
	for (size_t k = 0; k < p.n; k++)
		e[k] = calculated(c, sign, &p.a[p.na == 1 ? 0 : k], &p.b[p.nb == 1 ? 0 : k]);
}

void
om_elems_negated(const om_op_context *c, om_symbolic_elem *e)
{
	static const om_symbolic_elem zero = {.known = true};
	const om_symbolic_elem *x;
	size_t n;

	if (strcmp(c->op->opdef->name, "Neg") != 0 || !om_in_symbolic_elems(c, 0, &x, &n))
		return;
	for (size_t k = 0; k < n; k++)
		if (x[k].known)
			e[k] = calculated(c, '-', &zero, &x[k]);
		else
			e[k].sym = om_dim_text(c, "0", '-', x[k].sym);
}

/* ---- Comparisons and choices, as exporters write them around Expand: the dims that are not -1, else 1. ---- */

/* Differences may be negative, dims are not. */
static bool
is_dim(const om_symbolic_elem *e)
{
	return !e->known && e->sym && !strchr(e->sym, '-');
}

static om_symbolic_elem
compared(const om_symbolic_elem *a, const om_symbolic_elem *b)
{
	if (a->known && b->known)
		return (om_symbolic_elem){.known = true, .value = a->value == b->value};
	if ((is_dim(a) && b->known && b->value < 0) || (is_dim(b) && a->known && a->value < 0))
		return (om_symbolic_elem){.known = true, .value = false};
	if (a->sym && b->sym && strcmp(a->sym, b->sym) == 0)
		return (om_symbolic_elem){.known = true, .value = true};
	return (om_symbolic_elem){0};
}

void
om_elems_equal(const om_op_context *c, om_symbolic_elem *e)
{
	struct elem_pairs p;

	if (!find_pairs(c, &p))
		return;
	for (size_t k = 0; k < p.n; k++)
		e[k] = compared(&p.a[p.na == 1 ? 0 : k], &p.b[p.nb == 1 ? 0 : k]);
}

/* Truths as elements. */
static bool
conditions(const om_op_context *c, const om_symbolic_elem **e, size_t *n)
{
	const uint8_t *data = c->in[0].data;

	if (!om_shape_is_known(&c->in[0].shape) || om_shape_count(&c->in[0].shape) > OM_MAX_RANK)
		return false;
	*n = (size_t)om_shape_count(&c->in[0].shape);
	if (!data)
		return (*e = c->op->in[0]->elem) != NULL;
	om_symbolic_elem *all = OM_NEWN(c->mem, om_symbolic_elem, *n + 1);
	for (size_t k = 0; k < *n; k++)
		all[k] = (om_symbolic_elem){.known = true, .value = data[c->in[0].splat ? 0 : k] != 0};
	*e = all;
	return true;
}

void
om_elems_chosen(const om_op_context *c, om_symbolic_elem *e)
{
	const size_t n = (size_t)om_shape_count(&c->out[0].shape);
	const om_symbolic_elem *is, *x[2];
	size_t nis, nx[2];

	if (!conditions(c, &is, &nis) || (nis != 1 && nis != n))
		return;
	for (uint32_t k = 0; k < 2; k++)
		if (!om_in_symbolic_elems(c, k + 1, &x[k], &nx[k]) || (nx[k] != 1 && nx[k] != n))
			return;
	for (size_t k = 0; k < n; k++) {
		const om_symbolic_elem *by = &is[nis == 1 ? 0 : k];
		const int which = by->known && by->value ? 0 : 1;
		if (by->known)
			e[k] = x[which][nx[which] == 1 ? 0 : k];
	}
}

/* ---- Differences of sums. ---- */

/* The text of a sum without one of its terms, as `a` in a+b; NULL: it has no such term, or that is all. */
static const char *
without_term(const om_op_context *c, const char *sum, const char *term)
{
	const size_t n = strlen(term);
	int depth = 0;

	for (const char *at = sum, *from = sum;; at++) {
		depth += (*at == '(') - (*at == ')');
		if (*at && (depth || *at != '+'))
			continue;
		if ((size_t)(at - from) == n && memcmp(from, term, n) == 0 && n < strlen(sum))
			return from == sum ? om_printf(c->keep, "%s", at + 1)
				: om_printf(c->keep, "%.*s%s", (int)(from - 1 - sum), sum, at);
		if (!*at)
			return NULL;
		from = at + 1;
	}
}

/* All terms of a sum without differences are at least 0, so it is not less than one of them. */
bool
om_elem_between(const om_op_context *c, const om_symbolic_elem *from, const om_symbolic_elem *to, om_symbolic_elem *n)
{
	char number[32];

	if (to->known || !is_dim(to) || !c->keep)
		return false;
	if (from->known && from->value == 0) {
		*n = *to;
		return true;
	}
	if (from->known ? from->value < 0 : !is_dim(from))
		return false;
	if (!from->known && strcmp(from->sym, to->sym) == 0) {
		*n = (om_symbolic_elem){.known = true, .value = 0};
		return true;
	}
	snprintf(number, sizeof number, "%lld", (long long)from->value);
	*n = (om_symbolic_elem){.sym = without_term(c, to->sym, from->known ? number : from->sym)};
	return n->sym != NULL;
}
