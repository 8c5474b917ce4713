/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the invariants that passes rely on.  Reports all violations, not only the first. */
#include <config.h>

#include <stdarg.h>

#include "base/guard.h"
#include "ir/query.h"
#include "onnxmem/assignment.h"

struct check {
	om_session *session;
	const om_prog *p;
	unsigned found;
	char first[512];
	om_block **defined;   /* by value id: block that defines it, if visited yet */
	uint32_t *nuse;       /* by value id: uses visited so far */
	const om_op **op;     /* by id: ops visited */
	const om_block **block; /* by id: blocks visited */
};

static void OM_PRINTF(2, 3)
broken(struct check *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (c->found++ == 0)
		memcpy(c->first, text, sizeof text);
	om_warn(c->session, "%s", text);
}

static const char *
at(const om_block *b)
{
	return *b->path ? b->path : "the graph";
}

/* `v` is used in block `b`: constants are defined everywhere in their block. */
static void
check_use(struct check *c, const om_block *b, const om_value *v, const char *by)
{
	const om_block *home = c->defined[v->id];

	if (!home && !v->def && v->data)
		home = v->block;
	if (!home)
		broken(c, "%s: %s is used by %s before it is defined", at(b), v->name, by);
	else if (!om_block_inside(b, home))
		broken(c, "%s: %s is used by %s, but is defined in %s", at(b), v->name, by, at(home));
}

/* Check the record of a visited use: the one of the operand must be in the list of the value. */
static void
check_record(struct check *c, const om_block *b, const om_value *v, const om_use *u, const om_use *want,
	const char *by)
{
	c->nuse[v->id]++;
	if (u->value != v || u->op != want->op || u->block != want->block || u->index != want->index)
		broken(c, "%s: the use of %s by %s is not recorded", at(b), v->name, by);
}

/* Does this record belong to an operand in the program that reads `v`? */
static bool
is_use_of(const struct check *c, const om_use *u, const om_value *v)
{
	if (u->value != v)
		return false;
	if (u->op)
		return u->op->id < c->p->nop && c->op[u->op->id] == u->op && u->index < u->op->nin
		    && u->op->in[u->index] == v && &u->op->use[u->index] == u;
	return u->block && u->block->id < c->p->nblock && c->block[u->block->id] == u->block
	    && u->index < u->block->nresult && u->block->result[u->index] == v && u->block->use[u->index] == u;
}

/* The records in a list belong to different operands, because each operand has one record, and no
 * record occurs twice in a list with consistent links.  So if the list has as many records as uses
 * were visited, it is complete. */
static void
check_uses(struct check *c, const om_value *v)
{
	const om_use *prev = NULL;
	uint32_t n = 0;

	for (const om_use *u = v->first_use; u; prev = u, u = u->next) {
		if (u->prev != prev || n++ == c->nuse[v->id]) {
			broken(c, "%s: the list of its uses is broken", v->name);
			return;
		}
		if (!is_use_of(c, u, v)) {
			broken(c, "%s: its list has a use that does not exist", v->name);
			return;
		}
	}
	if (n != c->nuse[v->id] || n != v->nuse || v->last_use != prev)
		broken(c, "%s: has %u uses, but counts %u and lists %u", v->name, c->nuse[v->id], v->nuse, n);
}

static void
check_define(struct check *c, om_block *b, const om_value *v)
{
	if (v->block != b)
		broken(c, "%s: %s does not refer to this block as its definition", at(b), v->name);
	if (c->defined[v->id])
		broken(c, "%s: %s is defined twice", at(b), v->name);
	c->defined[v->id] = b;
}

static void
check_arity(struct check *c, const om_op *op, const char *name)
{
	const om_opdef *r = op->opdef;

	if (op->nin < r->min_in || (r->max_in != OM_VARIADIC && op->nin > r->max_in))
		broken(c, "%s: %s requires %u to %u inputs, but has %u", at(op->block), name, r->min_in,
			r->max_in, op->nin);
	if (op->nout < r->min_out || (r->max_out != OM_VARIADIC && op->nout > r->max_out))
		broken(c, "%s: %s requires %u to %u outputs, but has %u", at(op->block), name, r->min_out,
			r->max_out, op->nout);
}

static void check_block(struct check *c, om_block *b);

static void
check_op(struct check *c, om_block *b, om_op *op)
{
	const char *name = *op->name ? op->name : op->type;

	if (op->block != b)
		broken(c, "%s: %s does not refer to its block", at(b), name);
	if (op->next ? op->next->prev != op : b->last != op)
		broken(c, "%s: the list of ops is broken after %s", at(b), name);
	if (op->opdef)
		check_arity(c, op, name);
	c->op[op->id] = op;
	for (uint32_t k = 0; k < op->nin; k++) {
		if (op->in[k]) {
			check_use(c, b, op->in[k], name);
			check_record(c, b, op->in[k], &op->use[k], &(om_use){.op = op, .index = k}, name);
		} else if (op->use[k].value) {
			broken(c, "%s: %s omits input %u, but is recorded as a use of %s", at(b), name, k,
				op->use[k].value->name);
		}
	}
	for (uint32_t k = 0; k < op->nbody; k++) {
		if (op->body[k]->owner != op)
			broken(c, "%s: body %u of %s belongs to another op", at(b), k, name);
		else
			check_block(c, op->body[k]);
	}
	for (uint32_t k = 0; k < op->nout; k++) {
		if (!op->out[k])
			continue;
		if (op->out[k]->def != op)
			broken(c, "%s: %s does not refer to %s as its definition", at(b), op->out[k]->name, name);
		check_define(c, b, op->out[k]);
	}
}

static void
check_block(struct check *c, om_block *b)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < b->nparam; k++)
		check_define(c, b, b->param[k]);
	for (om_op *op = b->first; op; op = op->next, n++)
		check_op(c, b, op);
	if (n != b->nop)
		broken(c, "%s: counts %u ops, but has %u", at(b), b->nop, n);
	c->block[b->id] = b;
	for (uint32_t k = 0; k < b->nresult; k++) {
		check_use(c, b, b->result[k], "its results");
		check_record(c, b, b->result[k], b->use[k], &(om_use){.block = b, .index = k}, "its results");
	}
}

static void
check_store(struct check *c, const om_value *v)
{
	const om_backing *b = c->p->assignment->backing;
	uint32_t hops = 0;

	if ((b[v->id].store == OM_OWN) != (b[v->id].source == NULL))
		broken(c, "%s: its storage and its source disagree", v->name);
	for (const om_value *s = b[v->id].source; s; s = b[s->id].source)
		if (hops++ > c->p->nvalue) {
			broken(c, "%s: its storage refers to itself", v->name);
			return;
		}
}

static om_status
verify_guarded(om_session *s, const om_prog *p)
{
	om_arena *mem = om_arena_new();
	struct check c = {.session = s, .p = p, .defined = OM_NEWN(mem, om_block *, p->nvalue),
		.nuse = OM_NEWN(mem, uint32_t, p->nvalue), .op = OM_NEWN(mem, const om_op *, p->nop),
		.block = OM_NEWN(mem, const om_block *, p->nblock)};

	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->values[k]->id != k)
			broken(&c, "%s: its id is %u, but its index is %u", p->values[k]->name, p->values[k]->id, k);
	if (c.found == 0 && p->first) {
		check_block(&c, p->first);
		for (uint32_t k = 0; k < p->nvalue; k++)
			check_uses(&c, p->values[k]);
	}
	const om_assignment *a = p->has & OM_HAS_LIVE ? p->assignment : NULL;
	for (uint32_t k = 0; a && k < a->nvalue; k++)
		check_store(&c, p->values[k]);
	om_arena_free(mem);
	if (c.found == 0)
		return OM_OK;
	if (c.found == 1)
		return om_fail(s, OM_IR, "%s", c.first);
	return om_fail(s, OM_IR, "%s (and %u more)", c.first, c.found - 1);
}

om_status
om_verify(om_session *s, const om_prog *p)
{
	OM_GUARDED(s, verify_guarded(s, p));
}
