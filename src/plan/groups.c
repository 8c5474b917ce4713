/* Who shares storage, and what that does to the bytes alive at every step. */
#include <config.h>

#include "plan/planned.h"

enum { WORK = 200 * 1000 * 1000 };  /* steps looked at; then no more questions */

struct om_groups {
	om_prog *p;
	om_arena *mem;
	om_group **of;           /* by value id */
	uint64_t *offset;        /* by value id */
	uint64_t *load;          /* by step */
	int64_t *change;         /* by step; zero between questions */
	uint64_t peak;
	uint64_t work;
};

static uint64_t
bytes_of(const om_groups *g, const om_value *v)
{
	uint64_t bytes;

	if (om_value_is_placeless(g->p, v) || !om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		return 0;
	return (bytes + g->p->align - 1) & ~(g->p->align - 1);
}

static void
join(om_groups *g, om_group *to, om_value *v, uint64_t offset)
{
	OM_PUSH(g->mem, to->member, to->n, to->cap, v);
	g->of[v->id] = to;
	g->offset[v->id] = offset;
	if (v->first < to->first)
		to->first = v->first;
	if (v->last > to->last)
		to->last = v->last;
}

static void
add_value(om_groups *g, om_value *v)
{
	const om_value *source = g->p->has & (OM_HAS_VIEWS | OM_HAS_STORE) ? v->source : NULL;

	if (g->of[v->id] || om_value_unplanned(g->p, v))
		return;
	if (source && g->of[source->id]) {
		join(g, g->of[source->id], v, g->offset[source->id] + v->offset);
		return;
	}
	om_group *own = OM_NEW(g->mem, om_group);
	*own = (om_group){.root = v, .bytes = bytes_of(g, v), .first = v->first, .last = v->last};
	join(g, own, v, 0);
}

static void
add_block(om_groups *g, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		add_value(g, b->param[k]);
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k] && op->in[k]->is_const)
				add_value(g, op->in[k]);
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				add_value(g, op->out[k]);
		for (uint32_t k = 0; k < op->nbody; k++)
			add_block(g, op->body[k]);
	}
}

static void
find_peak(om_groups *g)
{
	g->peak = 0;
	for (uint32_t k = 0; k < g->p->nstep; k++)
		if (g->load[k] > g->peak)
			g->peak = g->load[k];
	g->work += g->p->nstep;
}

om_groups *
om_groups_new(om_prog *p, om_arena *mem)
{
	om_groups *g = OM_NEW(mem, om_groups);

	*g = (om_groups){.p = p, .mem = mem, .of = OM_NEWN(mem, om_group *, p->nvalue),
		.offset = OM_NEWN(mem, uint64_t, p->nvalue),
		.load = OM_NEWN(mem, uint64_t, (size_t)p->nstep + 1),
		.change = OM_NEWN(mem, int64_t, (size_t)p->nstep + 1)};
	add_block(g, p->first);
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_group *own = g->of[k];
		if (!own || own->root->id != k)
			continue;
		g->load[own->first] += own->bytes;
		g->load[own->last + 1] -= own->bytes;
	}
	for (uint32_t k = 0; k < p->nstep; k++)
		g->load[k + 1] += g->load[k];
	find_peak(g);
	return g;
}

const om_group *
om_groups_find(const om_groups *g, const om_value *v, uint64_t *offset)
{
	if (offset)
		*offset = g->offset[v->id];
	return g->of[v->id];
}

/* Enter what a move changes; `sign` -1 takes it back. */
static void
enter(om_groups *g, const om_group *to, om_value *const *v, uint32_t n, uint32_t last, int64_t sign)
{
	for (uint32_t k = 0; k < n; k++) {
		const om_group *from = g->of[v[k]->id];
		g->change[from->first] -= sign * (int64_t)from->bytes;
		g->change[from->last + 1] += sign * (int64_t)from->bytes;
	}
	if (to->bytes && last > to->last) {
		g->change[to->last + 1] += sign * (int64_t)to->bytes;
		g->change[last + 1] -= sign * (int64_t)to->bytes;
	}
}

bool
om_groups_fit(om_groups *g, const om_value *source, om_value *const *v, uint32_t n)
{
	const om_group *to = g->of[source->id];
	uint32_t first = to->last, last = to->last;
	uint64_t before = 0, after = 0;
	int64_t change = 0;

	if (to->bytes == 0 || (n == 1 && g->of[v[0]->id]->bytes >= to->bytes))
		return true;
	for (uint32_t k = 0; k < n; k++) {
		const om_group *from = g->of[v[k]->id];
		first = from->first < first ? from->first : first;
		last = from->last > last ? from->last : last;
	}
	if (g->work > WORK)
		return false;
	g->work += last - first + 1;
	enter(g, to, v, n, last, 1);
	for (uint32_t k = first; k <= last; k++) {
		change += g->change[k];
		const uint64_t now = g->load[k] + (uint64_t)change;
		before = g->load[k] > before ? g->load[k] : before;
		after = now > after ? now : after;
	}
	enter(g, to, v, n, last, -1);
	return after <= before || after <= g->peak;
}

static void
update_load(om_groups *g, const om_group *to, const om_group *from)
{
	const uint32_t last = from->last > to->last ? from->last : to->last;
	bool at_peak = false;

	g->work += last - from->first + 1;
	if (g->work > WORK)
		return;
	for (uint32_t k = from->first; k <= from->last; k++) {
		at_peak |= g->load[k] == g->peak;
		g->load[k] -= from->bytes;
	}
	for (uint32_t k = to->last + 1; k <= last; k++)
		g->load[k] += to->bytes;
	if (at_peak)
		find_peak(g);
}

void
om_groups_merge(om_groups *g, om_value *source, om_value *v, om_store store, uint64_t offset)
{
	om_group *to = g->of[source->id], *from = g->of[v->id];
	const uint64_t base = g->offset[source->id] + offset;

	update_load(g, to, from);
	for (size_t k = 0; k < from->n; k++)
		join(g, to, from->member[k], base + g->offset[from->member[k]->id]);
	v->store = store;
	v->source = source;
	v->offset = offset;
}
