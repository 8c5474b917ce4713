/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions by rules, for operators that have none.
 *
 * A rule is a text, "DOMAIN:NAME=PROPERTY,...".  It becomes an om_opdef without a kernel, whose callbacks
 * find the rule through the definition of their op, so that planner and verifier treat it as any other.
 * As nothing else is known about the operator, its ops are neither removed, merged, repeated nor moved. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "ir/facts.h"
#include "opdef/op_context.h"
#include "opdef/op_rule.h"

enum kind { INPLACE, VIEW, SHAPE, SCRATCH, NKIND };

static const char *const kind_names[] = {[INPLACE] = "inplace", [VIEW] = "view", [SHAPE] = "shape", [SCRATCH] = "scratch"};

/* Of output `out`, with respect to input `in`. */
struct property {
	enum kind kind;
	uint32_t in, out;
	size_t column;           /* in the text, from 1 */
};

struct om_op_rule {
	om_opdef def;            /* first, so that the definition of an op is its rule */
	const char *text;
	struct property *property;
	size_t n;
	uint64_t scratch;
	bool has_scratch;
	struct om_op_rule *next;
};

/* ---- The definition. ---- */

static const struct om_op_rule *
rule_of(const om_op_context *c)
{
	return (const struct om_op_rule *)c->op->opdef;
}

static const struct property *
find_property(const struct om_op_rule *r, enum kind kind, uint32_t out)
{
	for (size_t k = 0; k < r->n; k++)
		if (r->property[k].kind == kind && r->property[k].out == out)
			return &r->property[k];
	return NULL;
}

/* Declared element types are kept: an operator may convert. */
static om_status
rule_infer(om_op_context *c)
{
	for (uint32_t k = 0; k < c->op->nout; k++) {
		const struct property *p = find_property(rule_of(c), SHAPE, k);
		const om_value *v = c->op->out[k];
		if (!v || !p || !om_has_in(c, p->in))
			continue;
		const bool has_type = v->type.kind == OM_TENSOR && v->type.elem != OM_UNDEFINED;
		c->out[k].type = has_type ? v->type.elem : c->in[p->in].type;
		c->out[k].shape = c->in[p->in].shape;
	}
	return OM_OK;
}

static bool
rule_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	for (size_t k = 0; k < rule_of(c)->n; k++) {
		const struct property *p = &rule_of(c)->property[k];
		if (p->kind == INPLACE && p->out == out && p->in == in)
			return true;
	}
	return false;
}

static bool
rule_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	const struct property *p = find_property(rule_of(c), VIEW, out);
	uint64_t part, whole;

	if (!p || !om_has_in(c, p->in) || !om_tensor_bytes(c->out[out].type, &c->out[out].shape, &part)
	    || !om_tensor_bytes(c->in[p->in].type, &c->in[p->in].shape, &whole) || part > whole)
		return false;
	*v = (om_view_of){.in = p->in};
	return true;
}

static uint64_t
rule_scratch(const om_op_context *c)
{
	return rule_of(c)->scratch;
}

bool
om_op_has_rule(const om_op *op)
{
	return op->opdef && op->opdef->infer == rule_infer;
}

/* ---- The text. ---- */

struct text {
	om_session *s;
	const char *all, *at;
};

static om_status
wrong(const struct text *t, const char *at, const char *what)
{
	return om_fail(t->s, OM_USAGE, "the rule %s: column %zu: %s", t->all, (size_t)(at - t->all) + 1, what);
}

/* A number, or with K, M or G one of so many bytes. */
static om_status
read_number(struct text *t, bool is_size, uint64_t most, uint64_t *n)
{
	static const char units[] = "KMG";
	char *end;

	errno = 0;
	*n = strtoull(t->at, &end, 10);
	if (*t->at < '0' || *t->at > '9' || errno || *n > most)
		return wrong(t, t->at, is_size ? "expected a size such as 4096 or 4K" : "expected the number of an input or output");
	const char *unit = is_size && *end ? strchr(units, *end) : NULL;
	const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	if (*n > most >> shift)
		return wrong(t, t->at, "the size is too large");
	*n <<= shift;
	t->at = end + (unit != NULL);
	return OM_OK;
}

/* INPUT or INPUT@OUTPUT */
static om_status
read_ends(struct text *t, struct property *p)
{
	uint64_t in, out = 0;

	OM_TRY(read_number(t, false, UINT16_MAX, &in));
	if (*t->at == '@') {
		t->at++;
		OM_TRY(read_number(t, false, UINT16_MAX, &out));
	}
	p->in = (uint32_t)in;
	p->out = (uint32_t)out;
	return OM_OK;
}

static om_status
read_scratch(struct text *t, const char *start, struct om_op_rule *r)
{
	if (r->has_scratch)
		return wrong(t, start, "an op has one scratch");
	r->has_scratch = true;
	return read_number(t, true, INT64_MAX / 8, &r->scratch);
}

static om_status
read_property(struct text *t, struct om_op_rule *r)
{
	struct property *p = &r->property[r->n];
	const char *start = t->at;
	const size_t n = strcspn(start, ":,");

	*p = (struct property){.kind = NKIND, .column = (size_t)(start - t->all) + 1};
	for (unsigned k = 0; k < NKIND; k++)
		if (strlen(kind_names[k]) == n && memcmp(kind_names[k], start, n) == 0)
			p->kind = (enum kind)k;
	if (p->kind == NKIND || start[n] != ':')
		return wrong(t, start, "expected inplace:INPUT, view:INPUT, shape:INPUT or scratch:SIZE");
	t->at = start + n + 1;
	if (p->kind == SCRATCH)
		return read_scratch(t, start, r);
	OM_TRY(read_ends(t, p));
	if (p->kind != INPLACE && find_property(r, p->kind, p->out))
		return wrong(t, start, "an output has one such property");
	r->n++;
	return OM_OK;
}

static om_status
read_properties(struct text *t, struct om_op_rule *r)
{
	for (;;) {
		OM_TRY(read_property(t, r));
		if (!*t->at)
			return OM_OK;
		if (*t->at != ',')
			return wrong(t, t->at, "expected a comma or the end");
		t->at++;
	}
}

/* The last colon before = ends the domain. */
static om_status
read_rule(struct text *t, om_arena *mem, struct om_op_rule *r)
{
	const size_t n = strcspn(t->all, "=");
	const char *head = om_strndup(mem, t->all, n), *colon = strrchr(head, ':'), *name = colon ? colon + 1 : head;
	const char *domain = colon ? om_strndup(mem, head, (size_t)(colon - head)) : "";

	if (!t->all[n] || !*name)
		return wrong(t, t->all, "expected DOMAIN:NAME=PROPERTY,...");
	*r = (struct om_op_rule){
		.def = {.domain = strcmp(domain, "ai.onnx") == 0 ? "" : domain, .name = name, .brief = "an operator by a rule",
			.since = 0, .max_in = OM_VARIADIC, .max_out = OM_VARIADIC, .flags = OM_RANDOM | OM_EFFECT | OM_NON_TENSOR,
			.infer = rule_infer, .inplace = rule_inplace, .view = rule_view, .scratch = rule_scratch},
		.text = om_strdup(mem, t->all), .property = OM_NEWN(mem, struct property, strlen(t->all))};
	t->at = t->all + n + 1;
	return read_properties(t, r);
}

/* ---- The ops. ---- */

struct apply {
	om_session *s;
	struct om_op_rule *rule;
	bool is_body;            /* of a function: programs share it, so that its ops get their definition where they are inlined */
	bool is_defined;         /* an op has another definition */
	bool is_used;
};

static om_status
check_ends(const struct apply *a, const om_op *op)
{
	for (size_t k = 0; k < a->rule->n; k++) {
		const struct property *p = &a->rule->property[k];
		if (p->in >= op->nin)
			return om_op_fail(a->s, OM_USAGE, op, "the rule %s: column %zu: there is no input %u, the op has %u",
				a->rule->text, p->column, p->in, op->nin);
		if (p->out >= op->nout)
			return om_op_fail(a->s, OM_USAGE, op, "the rule %s: column %zu: there is no output %u, the op has %u",
				a->rule->text, p->column, p->out, op->nout);
	}
	return OM_OK;
}

static om_status
apply_to_op(struct apply *a, om_op *op)
{
	if (strcmp(op->type, a->rule->def.name) != 0 || strcmp(op->domain, a->rule->def.domain) != 0)
		return OM_OK;
	if (op->call || (op->opdef && op->opdef != &a->rule->def)) {
		a->is_defined = true;
		return OM_OK;
	}
	OM_TRY(check_ends(a, op));
	a->is_used = true;
	if (!a->is_body)
		op->opdef = &a->rule->def;
	return OM_OK;
}

static om_status
apply_to_block(struct apply *a, om_block *b)
{
	for (om_op *op = b->first; op; op = op->next) {
		OM_TRY(apply_to_op(a, op));
		for (uint32_t k = 0; k < op->nbody; k++)
			OM_TRY(apply_to_block(a, op->body[k]));
	}
	return OM_OK;
}

static om_status
apply(struct apply *a, om_prog *p)
{
	a->is_body = false;
	for (om_block *b = p->first; b; b = b->next)
		if (!b->owner)
			OM_TRY(apply_to_block(a, b));
	a->is_body = true;
	for (om_function *f = p->functions; f; f = f->next)
		OM_TRY(apply_to_block(a, f->body));
	return OM_OK;
}

om_status
om_op_rules_apply(om_session *s, om_prog *p)
{
	for (struct om_op_rule *r = p->op_rules; r; r = r->next)
		OM_TRY(apply(&(struct apply){.s = s, .rule = r}, p));
	return OM_OK;
}

/* The rule for the same operator. */
static const struct om_op_rule *
find_rule(const om_prog *p, const struct om_op_rule *like)
{
	for (const struct om_op_rule *r = p->op_rules; r; r = r->next)
		if (strcmp(r->def.name, like->def.name) == 0 && strcmp(r->def.domain, like->def.domain) == 0)
			return r;
	return NULL;
}

static om_status
op_rule_guarded(om_session *s, om_prog *p, const char *text, bool *used)
{
	struct text t = {s, text, text};
	struct om_op_rule *r = OM_NEW(p->mem, struct om_op_rule);
	struct apply a = {.s = s, .rule = r};

	OM_TRY(read_rule(&t, p->mem, r));
	const struct om_op_rule *old = find_rule(p, r);
	if (old && strcmp(old->text, text) != 0)
		return om_fail(s, OM_USAGE, "the rule %s: there is another rule for this operator: %s", text, old->text);
	*used = old != NULL;
	if (old)
		return OM_OK;
	OM_TRY(apply(&a, p));
	if (a.is_defined)
		return om_fail(s, OM_USAGE, "the rule %s: the operator has a definition, or is a function of the model", text);
	*used = a.is_used;
	if (!a.is_used)
		return OM_OK;
	/* The program may share the others with the one that it is a copy of. */
	r->next = p->op_rules;
	p->op_rules = r;
	return OM_OK;
}

om_status
om_prog_op_rule(om_session *s, om_prog *p, const char *rule, bool *used)
{
	*used = false;
	OM_GUARDED(s, op_rule_guarded(s, p, rule, used));
}

static uint32_t
count_ops(const om_prog *p, const struct om_op_rule *r)
{
	uint32_t n = 0;

	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			n += op->opdef == &r->def;
	return n;
}

/* The list has the newest rule first. */
const char *
om_prog_op_rule_text(const om_prog *p, size_t k, uint32_t *nop)
{
	const struct om_op_rule *at = p->op_rules;
	size_t n = 0;

	for (const struct om_op_rule *r = at; r; r = r->next)
		n++;
	if (k >= n)
		return NULL;
	for (; k + 1 < n; n--)
		at = at->next;
	*nop = count_ops(p, at);
	return at->text;
}
