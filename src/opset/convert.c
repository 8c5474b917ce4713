/* SPDX-License-Identifier: Apache-2.0 */
/* Opset conversion: every op of ai.onnx is converted version by version.
 *
 * Most operators are unchanged between opsets.  For each version that changed an operator, a rule
 * (rules.c) rewrites ops to that version.  Rules are applied in order of version until none is left
 * up to the target, so conversion terminates.  Missing rules are detected by comparing operator
 * definitions: two versions with different definitions and no rule between them are an error, and
 * a test checks all of them.
 *
 * Ops added by a rule already have the target's opset. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>

#include "base/guard.h"
#include "base/arena_internal.h"
#include "ir/edit.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "opdef/fold.h"
#include "opdef/op_context.h"
#include "base/convert_elements.h"
#include "opset/convert.h"

/* Maximum bytes of a value to fold immediately: rules depend on known values. */
enum { SMALL = 4096 };

/* ---- Helpers of rules. ---- */

om_status
om_conversion_refuse(const om_opset_conversion *r, const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	return om_op_fail(r->session, OM_UNSUPPORTED, r->op, "of opset %d cannot be converted to opset %d: %s",
		r->op->version, r->target, why);
}

om_attr
om_conversion_int(const om_opset_conversion *r, const char *name, int64_t v)
{
	return (om_attr){.name = name, .kind = OM_ATTR_INT, .n = 1, .i = om_memdup(r->mem, &v, sizeof v)};
}

om_attr
om_conversion_text(const om_opset_conversion *r, const char *name, const char *v)
{
	const om_string s = {v, strlen(v)};

	return (om_attr){.name = name, .kind = OM_ATTR_STRING, .n = 1, .s = om_memdup(r->mem, &s, sizeof s)};
}

/* A name derived from the outputs of the op. */
static const char *
stem_of(const om_opset_conversion *r, const char *what)
{
	for (uint32_t k = 0; k < r->op->nout; k++)
		if (r->op->out[k])
			return om_printf(r->mem, "%s_%s", r->op->out[k]->name, what);
	return what;
}

static om_value *
constant(om_opset_conversion *r, const char *what, om_dtype type, int rank, size_t n, const void *data, size_t bytes)
{
	om_tensor *t = OM_NEW(r->p->mem, om_tensor);
	const int64_t dim = (int64_t)n;

	*t = (om_tensor){.type = type, .shape = om_shape_of(rank, &dim),
		.data = bytes ? om_memdup(r->p->mem, data, bytes) : om_alloc(r->p->mem, 1)};
	om_value *v = om_value_fresh(r->p, r->op->block, stem_of(r, what));
	v->type.elem = type;
	v->shape = t->shape;
	v->data = t;
	v->is_const = true;
	v->is_declared = true;
	return v;
}

om_value *
om_conversion_list(om_opset_conversion *r, const char *what, size_t n, const int64_t *v)
{
	return constant(r, what, OM_INT64, 1, n, v, n * sizeof *v);
}

om_value *
om_conversion_floats(om_opset_conversion *r, const char *what, size_t n, const float *v)
{
	return constant(r, what, OM_FLOAT32, 1, n, v, n * sizeof *v);
}

om_value *
om_conversion_number(om_opset_conversion *r, const char *what, om_dtype type, float v)
{
	uint64_t data[2] = {0};

	om_convert(type, data, OM_FLOAT32, &v, 1, true);
	return constant(r, what, type, 0, 1, data, (om_dtype_bits(type) + 7) / 8);
}

om_value *
om_conversion_attr(om_opset_conversion *r, const char *name)
{
	size_t n;
	const int64_t *v = om_attr_ints(r->op, name, &n);
	const bool is_given = om_attr_has(r->op, name);

	om_op_drop_attr(r->op, name);
	return is_given ? om_conversion_list(r, name, n, v) : NULL;
}

void
om_conversion_inputs(om_opset_conversion *r, uint32_t n, om_value *const *in)
{
	while (n > 0 && !in[n - 1])
		n--;
	om_op_set_inputs(r->p, r->op, n, in);
}

static om_op *
new_op(om_opset_conversion *r, const char *type, const om_attr *attrs, uint32_t n, om_value *const *in)
{
	om_op *op = om_op_new(r->p, "", type, r->target, n, 1);

	op->phase = r->op->phase;
	for (uint32_t k = 0; k < n; k++)
		om_op_set_in(op, k, in[k]);
	for (; attrs && attrs->name; attrs++)
		om_op_add_attr(r->p, op, attrs);
	r->added++;
	return op;
}

om_value *
om_conversion_insert_before(om_opset_conversion *r, const char *type, const om_attr *attrs, uint32_t n, om_value *const *in)
{
	om_op *op = new_op(r, type, attrs, n, in);

	om_op_set_out(op, 0, om_value_fresh(r->p, r->op->block, stem_of(r, type)));
	om_op_insert(r->op, op);
	if (r->status == OM_OK)
		r->status = om_op_infer(r->session, r->p, op);
	if (r->status == OM_OK)
		r->status = om_op_fold(r->session, r->p, op, &(om_fold_limits){SMALL, UINT64_MAX}, NULL);
	return op->out[0];
}

void
om_conversion_insert_after(om_opset_conversion *r, uint32_t k, const char *type, const om_attr *attrs, om_value *second)
{
	om_value *v = r->op->out[k];
	om_value *made = om_value_fresh(r->p, r->op->block, stem_of(r, "old"));
	om_op *op = new_op(r, type, attrs, second ? 2 : 1, (om_value *[]){made, second});

	r->op->out[k] = NULL;
	v->def = NULL;
	om_op_set_out(r->op, k, made);
	om_op_set_out(op, 0, v);
	om_op_place(r->op->block, r->op->next, op);
}

/* A constant if possible, with at most one -1; a zero would mean a copied dim in Reshape. */
om_value *
om_conversion_shape(om_opset_conversion *r, om_value *v)
{
	int64_t dim[OM_MAX_RANK];
	unsigned open = 0;

	for (int d = 0; d < v->shape.rank; d++) {
		dim[d] = v->shape.dim[d];
		open += dim[d] < 0 ? 1 : dim[d] == 0 ? 2 : 0;
	}
	if (v->shape.rank < 0 || open > 1)
		return OM_CONVERT_BEFORE(r, "Shape", NULL, v);
	return om_conversion_list(r, "shape", (size_t)v->shape.rank, dim);
}

/* ---- One op. ---- */

bool
om_conversion_is_equivalent(const om_opdef *a, const om_opdef *b)
{
	return a && b && (a == b || (a->infer == b->infer && a->cpu == b->cpu && a->attrs == b->attrs
		&& a->min_in == b->min_in && a->view == b->view));
}

/* Set the version of the op, whose definition must be equivalent in opset `version`. */
static om_status
move_on(om_opset_conversion *r, int version)
{
	om_op *op = r->op;
	const om_opdef *old = op->operators->find("", op->type, op->version),
		*new = op->operators->find("", op->type, version);

	if (op->opaque)
		return om_conversion_refuse(r, "%s", op->opaque);
	if (!op->operators->exists("", op->type))
		return om_conversion_refuse(r, "unknown operator");
	if (!new && version == r->target)
		return om_conversion_refuse(r, "the operator does not exist in that opset");
	/* Some operators were in use before the standard defined them. */
	if ((old || new) && !om_conversion_is_equivalent(old, new))
		return om_conversion_refuse(r, "it is a different operator in opset %d", version);
	op->version = version;
	return OM_OK;
}

static om_status
follow_rules(om_opset_conversion *r, bool *is_other)
{
	const om_conversion_rule *rule;

	while (r->op && (rule = om_conversion_rule_next(r->op->type, r->op->version, r->target))) {
		OM_TRY(move_on(r, rule->since - 1));
		if (rule->rewrite) {
			*is_other = true;
			OM_TRY(rule->rewrite(r));
			OM_TRY(r->status);
		}
		if (r->op && r->op->version < rule->since)
			r->op->version = rule->since;
	}
	return r->op ? move_on(r, r->target) : OM_OK;
}

/* Infer the op and the ops that a rule inserted after it. */
static om_status
infer_again(om_opset_conversion *r, const om_op *end)
{
	for (om_op *op = r->op; op && op != end; op = op->next)
		OM_TRY(om_op_infer(r->session, r->p, op));
	return OM_OK;
}

static om_status
raise_op(om_opset_conversion *r, om_op *op, om_opset_converted *done)
{
	const om_op *end = op->next;
	bool is_other = false;

	if (*op->domain || op->call || op->version >= r->target)
		return OM_OK;
	r->op = op;
	om_op_drop_attr(op, "consumed_inputs");  /* of opset 1: a hint without effect */
	OM_TRY(follow_rules(r, &is_other));
	if (is_other)
		done->ops++;
	if (!r->op)
		return OM_OK;
	op->opdef = op->operators->find("", op->type, op->version);
	return is_other ? infer_again(r, end) : OM_OK;
}

/* ---- The program. ---- */

/* The target opset: at least that of the program and of every op. */
static int
target_of(const om_prog *p, int opset)
{
	const int own = om_opset_version(p, "");

	opset = own > opset ? own : opset;
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			if (!*op->domain && op->version > opset)
				opset = op->version;
	return opset;
}

static bool
is_of(const om_prog *p, int opset)
{
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			if (!*op->domain && op->version != opset)
				return false;
	return true;
}

/* The IR version of the release that introduced an opset. */
static int
ir_of(int opset)
{
	static const struct { int opset, ir; } first[] = {{24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}, {0, 7}};
	size_t k = 0;

	while (first[k].opset > opset)
		k++;
	return first[k].ir;
}

/* Up to IR 3 weights are also inputs in the file; since IR 4 that would make them overridable. */
static void
raise_ir(om_prog *p, int opset)
{
	const int ir = ir_of(opset);

	if (p->ir_version <= 0 || p->ir_version >= ir)
		return;
	if (p->ir_version < 4)
		p->first->is_other = true;
	p->ir_version = ir;
}

static void
set_opset(om_prog *p, int opset)
{
	om_opset *sets = om_memdup(p->mem, p->opset, p->nopset * sizeof *sets);

	for (size_t k = 0; k < p->nopset; k++)
		if (!*sets[k].domain)
			sets[k].version = opset;
	p->opset = sets;
}

static om_status
convert_all(om_opset_conversion *r, om_opset_converted *done)
{
	/* Blocks that a rule adds come later in the list, and are visited too. */
	for (om_block *b = r->p->first; b; b = b->next)
		for (om_op *op = b->first, *next; op; op = next) {
			next = op->next;
			OM_TRY(raise_op(r, op, done));
		}
	return OM_OK;
}

static om_status
prog_raise_guarded(om_session *s, om_prog *p, int opset, om_opset_converted *done)
{
	om_opset_converted nothing;
	const int own = om_opset_version(p, "");

	done = done ? done : &nothing;
	*done = (om_opset_converted){.from = (uint32_t)own, .to = (uint32_t)own};
	if (opset < OM_CONVERT_OLDEST || opset > OM_CONVERT_NEWEST)
		return om_fail(s, OM_USAGE, "the target opset must be from %d to %d, not %d", OM_CONVERT_OLDEST,
			OM_CONVERT_NEWEST, opset);
	if (!own)
		return OM_OK;
	om_opset_conversion r = {.session = s, .p = p, .target = target_of(p, opset)};
	if (r.target > OM_CONVERT_NEWEST && !is_of(p, r.target))
		return om_fail(s, OM_UNSUPPORTED, 
			"the program has operators of opset %d, which can be converted to opset %d at most", r.target, OM_CONVERT_NEWEST);
	r.mem = om_arena_new();
	const om_status st = convert_all(&r, done);
	done->to = (uint32_t)r.target;
	done->added = r.added;
	om_arena_free(r.mem);
	OM_TRY(st);
	set_opset(p, r.target);
	raise_ir(p, r.target);
	return OM_OK;
}

om_status
om_prog_convert_opset(om_session *s, om_prog *p, int opset, om_opset_converted *done)
{
	OM_GUARDED(s, prog_raise_guarded(s, p, opset, done));
}
