/* SPDX-License-Identifier: Apache-2.0 */
/* cse: merge equal ops.
 *
 * Two ops are equal if their operator, version, attributes and inputs are equal; the inputs of an operator
 * with OM_COMMUTES and without attributes may be in either order.  The second op is removed if the first
 * one precedes it in the same block or in an enclosing one: the blocks are traversed with a hash table of
 * the ops seen so far, and the entries that a body added are removed after it.  Inputs that become equal
 * during the traversal make their users equal in the same traversal.
 *
 * A longer lifetime may cost memory: the second op may exist to compute late, and cheaply, what would
 * otherwise have to be kept.  So by default ops are merged only if the live bytes grow at no step of the
 * current order:
 *
 *   - the value is a view or a constant: it has no memory of its own in the arena;
 *   - the first value is live until the second op anyway;
 *   - or the second op is the last use of inputs that are at least as large, and that are not used after
 *     the last use of the first value: they die earlier in exchange.
 *
 * Inputs of loops and branches are not merged in that case.
 *
 * Constants with the same bytes are merged too, unless they are results or the caller may override them. */
#include <config.h>

#include <string.h>

#include "base/fast_hash.h"
#include "ir/equal.h"
#include "ir/query.h"
#include "opdef/rewrite_internal.h"
#include "onnxmem/pass.h"
#include "onnxmem/rewrite.h"

/* hash chains of the ops seen so far, newest first */
struct met {
	om_op *op;               /* NULL: a constant */
	om_value *value;
	uint64_t hash;
	struct met *next;        /* in its bucket */
	struct met *before;      /* the next one of the chain */
};

struct cse {
	om_run *r;
	om_prog *p;
	struct met **bucket;
	size_t mask;
	struct met *last;
	bool any;                /* lifetimes may grow */
};

/* ---- Constants. ---- */

/* Compare both ends only: the full comparison finds other differences. */
static uint64_t
hash_tensor(uint64_t h, const om_tensor *t)
{
	const uint64_t bytes = om_tensor_held_bytes(t), end = bytes < 64 ? bytes : 64;

	h = om_fast_hash_number(om_fast_hash_number(h, t->type), bytes);
	for (int k = 0; k < t->shape.rank; k++)
		h = om_fast_hash_number(h, (uint64_t)t->shape.dim[k]);
	if (t->type == OM_STRING || !t->data)
		return h;
	return om_fast_hash(om_fast_hash(h, t->data, end), (const char *)t->data + bytes - end, end);
}

static bool
is_mergeable_const(const om_value *v)
{
	return !v->def && v->data && v->data->data && v->is_const && !v->is_overridable && v->type.kind == OM_TENSOR
	    && v->nuse;
}

/* ---- Ops. ---- */

static bool
is_pure(const om_op *op)
{
	return op->opdef && !op->call && op->nbody == 0 && op->nout && !(op->opdef->flags & (OM_RANDOM | OM_EFFECT));
}

static bool
is_swapped(const om_op *op)
{
	return op->opdef->flags & OM_COMMUTES && op->nattr == 0 && op->nin == 2 && op->in[0] && op->in[1]
	    && op->in[0]->id > op->in[1]->id;
}

static uint64_t
hash_attr(const om_attr *a)
{
	uint64_t h = om_fast_hash_number(om_fast_hash_text(1, a->name), a->kind);

	switch (a->kind) {
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS:
		return om_fast_hash(h, a->f, a->n * sizeof *a->f);
	case OM_ATTR_INT: case OM_ATTR_INTS:
		return om_fast_hash(h, a->i, a->n * sizeof *a->i);
	case OM_ATTR_STRING: case OM_ATTR_STRINGS:
		for (size_t k = 0; k < a->n; k++)
			h = om_fast_hash(h, a->s[k].data, a->s[k].size);
		return h;
	case OM_ATTR_TENSOR: case OM_ATTR_TENSORS:
		for (size_t k = 0; k < a->n; k++)
			h = hash_tensor(h, &a->t[k]);
		return h;
	default:
		return h;
	}
}

/* Attributes may be in any order, so their hashes are added. */
static uint64_t
hash_op(const om_op *op)
{
	const bool swap = is_swapped(op);
	uint64_t h = om_fast_hash_number(om_fast_hash_text(om_fast_hash_text(2, op->domain), op->type), (uint64_t)op->version);
	uint64_t attrs = 0;

	for (uint32_t k = 0; k < op->nattr; k++)
		attrs += hash_attr(&op->attr[k]);
	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *v = op->in[swap ? 1 - k : k];
		h = om_fast_hash_number(h, v ? v->id + 1 : 0);
	}
	return om_fast_hash_number(h, attrs);
}

static bool
is_same_device(const om_op *a, const om_op *b)
{
	return a->device == b->device || (a->device && b->device && strcmp(a->device, b->device) == 0);
}

/* The set of present outputs may affect the result, so it must be equal, except that the first op may have
 * more of them. */
static bool
equal_ops(const om_op *a, const om_op *b)
{
	const bool sa = is_swapped(a), sb = is_swapped(b);

	if (a->opdef != b->opdef || a->version != b->version || strcmp(a->overload, b->overload) != 0 || a->nin != b->nin
	    || !is_same_device(a, b) || a->nout != b->nout || !om_op_attrs_equal(a, b))
		return false;
	for (uint32_t k = 0; k < a->nin; k++)
		if (a->in[sa ? 1 - k : k] != b->in[sb ? 1 - k : k])
			return false;
	for (uint32_t k = 0; k < a->nout; k++)
		if (!a->out[k] != !b->out[k])
			return false;
	return true;
}

/* ---- Lifetimes. ---- */

/* The index in block `b` of a use: of the op that reads the value, or whose bodies do. */
static uint32_t
place_of(const om_use *u, const om_block *b)
{
	const om_block *in = u->op ? u->op->block : u->block;

	if (in == b)
		return u->op ? u->op->index : UINT32_MAX;
	const om_op *holder = om_block_enclosing_op(b, in);
	return holder ? holder->index : UINT32_MAX;
}

static uint32_t
last_place(const om_value *v, const om_op *but)
{
	uint32_t last = v->def && v->def->block == v->block ? v->def->index : 0;

	for (const om_use *u = v->first_use; u; u = u->next) {
		const uint32_t at = place_of(u, v->block);
		if (u->op != but && at > last)
			last = at;
	}
	return last;
}

static bool
may_alias(const om_op *op)
{
	return !op->opdef || op->opdef->view || op->nbody;
}

/* Has the value storage that no other value shares? */
static bool
is_plain(const om_value *v)
{
	if (!v->def || v->is_const || may_alias(v->def))
		return false;
	for (const om_use *u = v->first_use; u; u = u->next)
		if (!u->op || may_alias(u->op))
			return false;
	return true;
}

/* Bytes of the inputs with no use between `last` and `op`, and none after it. */
static uint64_t
freed(const om_op *op, uint32_t last)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *v = op->in[k];
		bool again = !v;
		for (uint32_t i = 0; i < k; i++)
			again |= op->in[i] == v;
		if (!again && v->block == op->block && is_plain(v) && last_place(v, op) <= last)
			bytes += om_value_bytes(v);
	}
	return bytes;
}

static bool
is_free(const om_op *op, uint32_t k)
{
	om_view_of of;

	return op->is_folded || op->out[k]->is_const || om_op_view(op, k, &of);
}

/* Do the live bytes grow at no step if `first` replaces `op`? */
static bool
keeps_lifetimes(const om_op *first, const om_op *op)
{
	const om_op *holder = first->block == op->block ? op : om_block_enclosing_op(first->block, op->block);
	uint32_t last = UINT32_MAX;
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < first->nout; k++) {
		const om_value *v = first->out[k];
		if (!v || !op->out[k]->nuse || is_free(first, k))
			continue;
		if (om_value_enters_body(v) || om_value_enters_body(op->out[k]))
			return false;
		const uint32_t until = last_place(v, NULL);
		if (until >= holder->index)
			continue;
		if (om_value_bytes(v) == 0)
			return false;
		bytes += (om_value_bytes(v) + 63) / 64 * 64;
		last = until < last ? until : last;
	}
	return bytes == 0 || (holder == op && freed(op, last) >= bytes);
}

/* ---- The walk. ---- */

static void
remember(struct cse *c, uint64_t hash, om_op *op, om_value *v)
{
	struct met *m = OM_NEW(c->r->scratch, struct met);

	*m = (struct met){op, v, hash, c->bucket[hash & c->mask], c->last};
	c->bucket[hash & c->mask] = c->last = m;
}

static void
forget_to(struct cse *c, const struct met *until)
{
	for (; c->last != until; c->last = c->last->before)
		c->bucket[c->last->hash & c->mask] = c->last->next;
}

static bool
can_merge(const om_op *first, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !om_value_can_stand_for(first->out[k], op->out[k]))
			return false;
	return true;
}

static bool
merge(struct cse *c, om_op *first, om_op *op)
{
	if (!can_merge(first, op))
		return false;
	if (!c->any && !keeps_lifetimes(first, op)) {
		om_count(c->r, "kept", 1);
		return false;
	}
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			om_value_stand_for(first->out[k], op->out[k]);
	om_op_delete(op);
	om_count(c->r, "ops", 1);
	return true;
}

static void
visit_op(struct cse *c, om_op *op)
{
	const uint64_t hash = hash_op(op);

	for (const struct met *m = c->bucket[hash & c->mask]; m; m = m->next)
		if (m->op && m->hash == hash && equal_ops(m->op, op) && merge(c, m->op, op))
			return;
	remember(c, hash, op, NULL);
}

static void
visit_const(struct cse *c, om_value *v)
{
	const uint64_t hash = hash_tensor(3, v->data);

	for (const struct met *m = c->bucket[hash & c->mask]; m; m = m->next)
		if (m->value && m->hash == hash && om_tensor_equal(m->value->data, v->data)
		    && om_value_can_stand_for(m->value, v)) {
			om_value_stand_for(m->value, v);
			om_count(c->r, "constants", 1);
			return;
		}
	remember(c, hash, NULL, v);
}

/* Constants are defined in the whole block.  They are entered by id before the ops of their block:
 * `first[b]` is the first one of block `b`, `next[v]` the one after `v`. */
struct consts {
	om_value **first, **next;
};

static struct consts
find_consts(const struct cse *c)
{
	struct consts all = {OM_NEWN(c->r->scratch, om_value *, c->p->nblock),
		OM_NEWN(c->r->scratch, om_value *, c->p->nvalue)};

	for (uint32_t id = c->p->nvalue; id-- > 0;) {
		om_value *v = c->p->values[id];
		if (!is_mergeable_const(v))
			continue;
		all.next[id] = all.first[v->block->id];
		all.first[v->block->id] = v;
	}
	return all;
}

static void
walk(struct cse *c, om_block *b, const struct consts *consts)
{
	const struct met *outer = c->last;

	for (om_value *v = consts->first[b->id]; v; v = consts->next[v->id])
		visit_const(c, v);
	for (om_op *op = b->first, *next; op; op = next) {
		next = op->next;
		for (uint32_t k = 0; k < op->nbody; k++)
			walk(c, op->body[k], consts);
		if (is_pure(op))
			visit_op(c, op);
	}
	forget_to(c, outer);
}

static om_status
run(om_run *r, om_prog *p)
{
	struct cse c = {.r = r, .p = p, .mask = 63};
	const char *lifetimes = om_option(r, "lifetimes");

	c.any = strcmp(lifetimes, "any") == 0;
	if (!c.any && strcmp(lifetimes, "keep") != 0)
		return om_fail(r->session, OM_USAGE, "cse: lifetimes are keep or any, not %s", lifetimes);
	while (c.mask < p->nvalue)
		c.mask = 2 * c.mask + 1;
	c.bucket = OM_NEWN(r->scratch, struct met *, c.mask + 1);
	om_timeline(p);
	const struct consts consts = find_consts(&c);
	walk(&c, p->first, &consts);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"lifetimes", "keep", "keep: merge only if the live bytes grow at no step; any: merge all equal ops"},
	{0}
};

static const om_pass_counter counters[] = {
	{"ops", "ops that were merged into an equal one"},
	{"constants", "constants that were merged into an equal one"},
	{"kept", "equal ops that were kept because merging would need more memory"},
	{0}
};

OM_PASS(
	.name = "cse",
	.brief = "merge equal ops",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.options = options,
	.counters = counters,
	.run = run)
