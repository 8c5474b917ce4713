/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of whole programs.
 *
 * A copy has the ids, names, positions and use lists of its source, so that the same passes give the
 * same results on both.  Data that programs only read is shared: names, elements of constants, bodies of
 * functions.  Analyses are not copied: they refer to the values of their program.
 *
 * Values, ops and blocks refer to each other in circles, so each is created before what it refers to
 * is filled in.  Ops that a pass removed are reached through the values and bodies that they leave. */
#include <config.h>

#include "base/guard.h"
#include "ir/limits.h"
#include "ir/tiling.h"
#include "ir/binding.h"
#include "ir/names.h"
#include "ir/uses.h"
#include "onnxmem/binding.h"
#include "onnxmem/builder.h"

struct copy {
	const om_prog *from;
	om_prog *p;
	om_block **block;        /* by id; NULL: not copied yet */
	om_op **op;              /* by id; NULL: not copied yet */
	om_function **fn;        /* parallel to the list of functions */
};

static om_block *copy_block(struct copy *c, const om_block *from);

static om_value *
counterpart(const struct copy *c, const om_value *v)
{
	return v ? c->p->values[v->id] : NULL;
}

/* The builder grows lists of parameters and results where their lengths are powers of two. */
static size_t
capacity(uint32_t n)
{
	size_t cap = 1;

	while (cap < n)
		cap *= 2;
	return cap;
}

static om_value **
copy_values(const struct copy *c, om_value *const *from, uint32_t n)
{
	om_value **list = OM_NEWN(c->p->mem, om_value *, capacity(n));

	for (uint32_t k = 0; k < n; k++)
		list[k] = counterpart(c, from[k]);
	return list;
}

/* ---- Ops. ---- */

static const om_function *
copy_call(const struct copy *c, const om_function *call)
{
	const om_function *f = c->from->functions;

	for (size_t k = 0; f; f = f->next, k++)
		if (f == call)
			return c->fn[k];
	return call;
}

/* Bodies of other programs, as those in attributes of functions, are shared. */
static om_block **
copy_bodies(struct copy *c, om_block *const *from, size_t n)
{
	om_block **list = OM_NEWN(c->p->mem, om_block *, n + 1);

	for (size_t k = 0; k < n; k++)
		list[k] = from[k]->prog == c->from ? copy_block(c, from[k]) : from[k];
	return list;
}

static om_attr *
copy_attrs(struct copy *c, const om_op *from)
{
	om_attr *list = OM_NEWN(c->p->mem, om_attr, (size_t)from->nattr + 1);

	for (uint32_t k = 0; k < from->nattr; k++) {
		list[k] = from->attr[k];
		if (!list[k].ref && (list[k].kind == OM_ATTR_GRAPH || list[k].kind == OM_ATTR_GRAPHS))
			list[k].g = copy_bodies(c, list[k].g, list[k].n);
	}
	return list;
}

static om_op *
copy_op(struct copy *c, const om_op *from)
{
	om_arena *mem = c->p->mem;

	if (!from || c->op[from->id])
		return from ? c->op[from->id] : NULL;
	om_op *op = c->op[from->id] = om_memdup(mem, from, sizeof *from);
	op->prev = op->next = NULL;
	op->block = from->block ? copy_block(c, from->block) : NULL;
	op->call = copy_call(c, from->call);
	op->in = copy_values(c, from->in, from->nin);
	op->out = copy_values(c, from->out, from->nout);
	op->use = OM_NEWN(mem, om_use, (size_t)from->nin + 1);
	for (uint32_t k = 0; k < op->nin; k++)
		op->use[k] = (om_use){.op = op, .index = k};
	op->body = copy_bodies(c, from->body, from->nbody);
	op->attr = copy_attrs(c, from);
	return op;
}

/* ---- Blocks. ---- */

static void
copy_list(struct copy *c, const om_block *from, om_block *b)
{
	b->first = b->last = NULL;
	for (const om_op *op = from->first; op; op = op->next) {
		om_op *to = copy_op(c, op);
		to->prev = b->last;
		*(b->last ? &b->last->next : &b->first) = to;
		b->last = to;
	}
}

static om_block *
copy_block(struct copy *c, const om_block *from)
{
	om_arena *mem = c->p->mem;

	if (c->block[from->id])
		return c->block[from->id];
	om_block *b = c->block[from->id] = om_memdup(mem, from, sizeof *from);
	b->prog = c->p;
	b->next = NULL;
	b->owner = copy_op(c, from->owner);
	b->param = copy_values(c, from->param, from->nparam);
	b->result = copy_values(c, from->result, from->nresult);
	b->use = OM_NEWN(mem, om_use *, capacity(from->nresult));
	for (uint32_t k = 0; k < from->nresult; k++)
		b->use[k] = om_memdup(mem, &(om_use){.block = b, .index = k}, sizeof(om_use));
	copy_list(c, from, b);
	return b;
}

static void
copy_blocks(struct copy *c)
{
	om_prog *p = c->p;

	p->first = p->last = NULL;
	for (const om_block *from = c->from->first; from; from = from->next) {
		om_block *b = copy_block(c, from);
		*(p->last ? &p->last->next : &p->first) = b;
		p->last = b;
	}
}

/* ---- Values. ---- */

static void
create_values(struct copy *c)
{
	om_prog *p = c->p;

	p->capvalue = c->from->nvalue;
	p->values = OM_NEWN(p->mem, om_value *, p->capvalue + 1);
	for (uint32_t k = 0; k < p->nvalue; k++) {
		om_value *v = p->values[k] = om_memdup(p->mem, c->from->values[k], sizeof *v);
		v->first_use = v->last_use = NULL;
		v->nuse = 0;
		v->next_name = NULL;
		om_names_add(p, v);
	}
}

/* The use of the copy that corresponds to `from`; it is not in a list yet. */
static om_use *
use_of(const struct copy *c, const om_use *from)
{
	return from->op ? &c->op[from->op->id]->use[from->index] : c->block[from->block->id]->use[from->index];
}

static void
copy_uses(const struct copy *c, const om_value *from, om_value *v)
{
	for (const om_use *u = from->first_use; u; u = u->next)
		om_use_link(use_of(c, u), v);
}

static void
fill_values(struct copy *c)
{
	for (uint32_t k = 0; k < c->p->nvalue; k++) {
		om_value *v = c->p->values[k];
		v->block = copy_block(c, c->from->values[k]->block);
		v->def = copy_op(c, c->from->values[k]->def);
	}
	for (uint32_t k = 0; k < c->p->nvalue; k++)
		copy_uses(c, c->from->values[k], c->p->values[k]);
}

/* ---- Functions. ---- */

/* Passes append to the list, so that its entries are copied; their bodies are shared. */
static void
copy_functions(struct copy *c, om_arena *tmp)
{
	om_function **end = &c->p->functions;
	size_t n = 0;

	for (const om_function *f = c->from->functions; f; f = f->next)
		n++;
	c->fn = OM_NEWN(tmp, om_function *, n + 1);
	n = 0;
	for (const om_function *f = c->from->functions; f; f = f->next) {
		*end = c->fn[n++] = om_memdup(c->p->mem, f, sizeof *f);
		end = &(*end)->next;
	}
	*end = NULL;
}

/* ---- All. ---- */

/* Settings and counters; nothing that refers to the source. */
static om_prog *
copy_settings(const om_prog *from)
{
	om_arena *mem = om_arena_new();
	om_prog *p = om_memdup(mem, from, sizeof *from);

	p->mem = mem;
	p->has = from->has & (OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST);
	p->facts = NULL;
	p->names = NULL;
	p->assignment = NULL;
	p->op_facts = NULL;
	p->plan = NULL;
	p->passes = from->passes ? om_strdup(mem, from->passes) : NULL;
	p->cap_io_alias = from->nio_alias;
	p->io_alias = from->nio_alias ? om_memdup(mem, from->io_alias, from->nio_alias * sizeof *p->io_alias) : NULL;
	p->cap_dim_definition = from->ndim_definition;
	p->dim_definition = om_memdup(mem, from->dim_definition, from->ndim_definition * sizeof *p->dim_definition);
	for (size_t k = 0; k < p->ndim_definition; k++)
		p->dim_definition[k] = (om_dim_definition){om_strdup(mem, from->dim_definition[k].symbol), om_strdup(mem, from->dim_definition[k].as)};
	p->cap_limit = from->nlimit;
	p->limits = from->nlimit ? om_memdup(mem, from->limits, from->nlimit * sizeof *p->limits) : NULL;
	for (uint32_t k = 0; k < p->nlimit; k++)
		p->limits[k] = om_limit_copy(mem, &from->limits[k]);
	p->tiling = from->tiling ? om_tiling_copy(mem, from->tiling) : NULL;
	return p;
}

static om_status
prog_copy_guarded(const om_prog *from, om_prog **out)
{
	om_arena *tmp = om_arena_new();
	struct copy c = {.from = from, .p = copy_settings(from),
		.block = OM_NEWN(tmp, om_block *, (size_t)from->nblock + 1),
		.op = OM_NEWN(tmp, om_op *, (size_t)from->nop + 1)};

	create_values(&c);
	copy_functions(&c, tmp);
	copy_blocks(&c);
	fill_values(&c);
	om_arena_free(tmp);
	*out = c.p;
	return OM_OK;
}

om_status
om_prog_copy(om_session *s, const om_prog *p, om_prog **out)
{
	*out = NULL;
	OM_GUARDED(s, prog_copy_guarded(p, out));
}
