/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of ops on a device; see place_devices.h.
 *
 * A device runs an op if there is a row of kernels for it (opdef/device_kernel.h), or if its output is a view.  Control
 * flow, shape arithmetic, objects and strings, and what has no size before the run stay on the processor, and so do
 * parameters and results of blocks.
 *
 * The cheapest placement is a minimum cut: an op on the side of the source runs on the processor, one on the side of
 * the sink on the device.  An op that runs there cuts its edge from the source, whose capacity is the time there, and
 * the other way round.  A value has a node for each copy: that to the device is cut if the value is computed on the
 * processor and any reader is on the device, and the other one likewise.  See Stone, "Multiprocessor scheduling with the
 * aid of network flow algorithms", 1977. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/maxflow.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/place_devices.h"
#include "opdef/device_kernel.h"
#include "opdef/op_context.h"

#define NONE UINT32_MAX

/* What can be said about an op before it is placed. */
struct choice {
	bool is_able;                    /* the device can run it */
	bool is_view;                    /* its output is bytes of input `viewed` */
	bool is_placed;                  /* on the device */
	uint32_t viewed;
	const om_device_kernel *kernel;  /* NULL: a view */
};

struct place {
	om_session *s;
	om_prog *p;
	const char *device;
	const om_device_speed *speed;
	om_arena *mem, *tmp;
	struct choice *op;       /* by op id, of those that there were */
	uint32_t nop, nvalue;    /* before copies were added */
	om_placed *out;
};

static bool
is_constant(const om_value *v)
{
	return v->is_const && !v->is_overridable;
}

static bool
is_sized(const om_value *v)
{
	return v->type.kind == OM_TENSOR && v->type.elem != OM_UNDEFINED && v->type.elem != OM_STRING
	    && om_shape_is_known(&v->shape);
}

static bool
reads_shape_only(const om_op *op)
{
	return op->opdef && op->opdef->flags & OM_SHAPE_ONLY;
}

/* ---- What the device can run. ---- */

/* Does an op that runs on the device read input `k` in its memory? */
static bool
reads_there(const struct choice *c, const om_op *op, uint32_t k)
{
	return om_device_reads(op, c->kernel, c->viewed, k);
}

static bool
has_inputs(const struct choice *c, const om_op *op)
{
	bool any = false;

	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *v = op->in[k];
		if (!v)
			continue;
		if (!is_sized(v) || (!reads_there(c, op, k) && !(is_constant(v) && v->data && v->data->data)))
			return false;
		any |= reads_there(c, op, k) && !is_constant(v);
	}
	return any;
}

static bool
has_outputs(const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && (!is_sized(op->out[k]) || om_value_bytes(op->out[k]) == 0))
			return false;
	return true;
}

static bool
is_only_view(const om_op_context *c, uint32_t *in)
{
	om_view_of view;

	if (c->op->nout != 1 || !c->op->opdef->view || !c->op->opdef->view(c, 0, &view))
		return false;
	*in = view.in;
	return true;
}

static void
find_choice(struct place *w, const om_op *op)
{
	const unsigned never = OM_SHAPE_ONLY | OM_DATA_DEPENDENT_SHAPE | OM_EFFECT;
	struct choice *c = &w->op[op->id];
	om_op_context call;

	if (op->is_folded || op->device || !op->opdef || op->opdef->control != OM_PLAIN || op->opdef->flags & never
	    || op->opdef->copies || !has_outputs(op))
		return;
	om_arena_clear(w->tmp);
	if (!om_op_query(&call, w->tmp, op))
		return;
	c->is_view = is_only_view(&call, &c->viewed);
	c->kernel = c->is_view ? NULL : om_device_kernel_find(&call);
	c->is_able = (c->is_view || c->kernel) && has_inputs(c, op);
}

/* ---- The cheapest placement. ---- */

static int64_t
nanoseconds(double seconds)
{
	static const double most = 1e15, least = 1;
	const double ns = seconds * 1e9;

	return (int64_t)(ns < least ? least : ns > most ? most : ns);
}

/* How often a block runs, or may run. */
static double
times(const struct place *w, const om_block *b)
{
	static const double unknown = 10;
	double n = 1;

	for (; b->owner; b = b->owner->block) {
		const int64_t k = b->owner->opdef && b->owner->opdef->control != OM_IF ? w->speed->trips(b->owner) : 1;
		n *= k < 0 ? unknown : (double)k;
	}
	return n;
}

static double
larger(double a, double b)
{
	return a > b ? a : b;
}

struct net {
	struct place *w;
	om_net *net;
	uint32_t source, sink;
	uint32_t *to_device, *to_host;   /* by value id: nodes of copies */
};

static const int64_t forbidden = INT64_MAX / 4;

static void
add_op(struct net *n, const om_op *op)
{
	const struct choice *c = &n->w->op[op->id];
	const om_device_speed *v = n->w->speed;
	const om_cost cost = om_op_cost(op);
	const double often = times(n->w, op->block);
	const double host = c->is_view ? 0 : larger(cost.flops / v->host_flops, cost.bytes / v->host_bytes);
	const double there = c->is_view ? 0 : v->launch + larger(cost.flops / v->device_flops, cost.bytes / v->device_bytes);

	if (c->is_able) {
		om_net_edge(n->net, n->source, op->id, nanoseconds(often * there));
		om_net_edge(n->net, op->id, n->sink, nanoseconds(often * host));
	} else {
		om_net_edge(n->net, n->source, op->id, forbidden);
	}
}

/* The node of the op that computes a value; parameters are of the processor. */
static uint32_t
maker(const struct net *n, const om_value *v)
{
	return v->def ? v->def->id : n->source;
}

static void
add_value(struct net *n, const om_value *v)
{
	const uint32_t to_device = n->to_device[v->id], to_host = n->to_host[v->id];
	const double seconds = n->w->speed->copy + (double)om_value_bytes(v) / n->w->speed->copied_bytes;
	const int64_t ns = nanoseconds(seconds * times(n->w, v->block));

	om_net_edge(n->net, maker(n, v), to_device, ns);
	om_net_edge(n->net, to_host, maker(n, v), ns);
	for (const om_use *u = v->first_use; u; u = u->next) {
		if (u->op && reads_shape_only(u->op))
			continue;
		const uint32_t reader = u->op ? u->op->id : n->source;
		if (u->op && n->w->op[reader].is_able && reads_there(&n->w->op[reader], u->op, u->index))
			om_net_edge(n->net, to_device, reader, forbidden);
		om_net_edge(n->net, reader, to_host, forbidden);
	}
}

static bool
takes_part(const om_prog *p, const om_value *v)
{
	return !is_constant(v) && om_block_is_reached(p, v->block) && (!v->def || v->def->block);
}

static void
place_cheapest(struct place *w)
{
	const uint64_t work = UINT64_C(1) << 32;
	struct net n = {.w = w, .source = w->nop, .sink = w->nop + 1, .to_device = OM_NEWN(w->mem, uint32_t, w->nvalue),
		.to_host = OM_NEWN(w->mem, uint32_t, w->nvalue)};

	n.net = om_net_new(w->nop + 2 + 2 * w->nvalue, w->mem);
	for (uint32_t k = 0; k < w->nvalue; k++) {
		n.to_device[k] = w->nop + 2 + 2 * k;
		n.to_host[k] = n.to_device[k] + 1;
	}
	for (const om_block *b = w->p->first; b; b = b->next)
		for (const om_op *op = b->first; op && om_block_is_reached(w->p, b); op = op->next)
			add_op(&n, op);
	for (uint32_t k = 0; k < w->nvalue; k++)
		if (takes_part(w->p, w->p->values[k]))
			add_value(&n, w->p->values[k]);
	const bool done = om_net_run(n.net, n.source, n.sink, work);
	if (!done)
		om_warn(w->s, "the search for what runs on the device ended at its limit: all ops run on the processor");
	for (uint32_t k = 0; k < w->nop; k++)
		w->op[k].is_placed = done && w->op[k].is_able && !om_net_reached(n.net, k);
}

/* All that the device can run; a view is where its input is. */
static void
place_all(struct place *w, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		struct choice *c = &w->op[op->id];
		const om_op *before = c->is_view ? op->in[c->viewed]->def : NULL;
		c->is_placed = c->is_able && (!c->is_view || (before && w->op[before->id].is_placed));
		for (uint32_t k = 0; k < op->nbody; k++)
			place_all(w, op->body[k]);
	}
}

/* ---- Copies. ---- */

static bool
is_there(const struct place *w, const om_op *op)
{
	return op && op->id < w->nop && w->op[op->id].is_placed;
}

static bool
use_is_there(const struct place *w, const om_use *u)
{
	return u->op && is_there(w, u->op) && reads_there(&w->op[u->op->id], u->op, u->index);
}

/* A value with the type and shape of `v`, and what is known of its elements. */
static om_value *
value_like(struct place *w, const om_value *v, const char *stem)
{
	om_value *made = om_value_fresh(w->p, v->block, om_printf(w->tmp, "%s_on_%s", v->name, stem));

	made->type = v->type;
	made->shape = v->shape;
	made->elem = v->elem;
	return made;
}

static om_op *
copy_op(struct place *w, const char *type, om_value *from, om_value *to)
{
	om_op *op = om_op_new(w->p, "org.onnxmem", type, 1, 1, 1);

	op->device = w->device;
	om_op_set_in(op, 0, from);
	om_op_set_out(op, 0, to);
	w->out->bytes += om_value_bytes(from);
	return op;
}

static void
insert(om_block *b, om_op *after, om_op *op)
{
	om_op_place(b, after ? after->next : b->first, op);
}

/* Readers on the device read a copy of a value of the processor. */
static void
copy_to_device(struct place *w, om_value *v)
{
	om_value *copy = NULL;

	for (om_use *u = v->first_use, *next; u; u = next) {
		next = u->next;
		if (!use_is_there(w, u))
			continue;
		if (!copy)
			copy = value_like(w, v, w->device);
		om_op_set_in(u->op, u->index, copy);
	}
	if (!copy)
		return;
	insert(v->block, v->def, copy_op(w, "ToDevice", v, copy));
	w->out->to_device++;
}

/* Readers on the processor keep the value, which is a copy now; so results keep their names. */
static void
copy_to_host(struct place *w, om_value *v)
{
	om_op *def = v->def;
	uint32_t out = 0;
	bool any = false;

	for (const om_use *u = v->first_use; u; u = u->next)
		any |= !use_is_there(w, u) && !(u->op && reads_shape_only(u->op));
	if (!any)
		return;
	while (def->out[out] != v)
		out++;
	om_value *there = value_like(w, v, w->device);
	def->out[out] = NULL;
	v->def = NULL;
	om_op_set_out(def, out, there);
	for (om_use *u = v->first_use, *next; u; u = next) {
		next = u->next;
		if (use_is_there(w, u))
			om_op_set_in(u->op, u->index, there);
	}
	insert(def->block, def, copy_op(w, "ToHost", there, v));
	w->out->to_host++;
}

static void
add_copies(struct place *w)
{
	for (uint32_t k = 0; k < w->nvalue; k++) {
		om_value *v = w->p->values[k];
		if (is_constant(v) || (v->def && !v->def->block))
			continue;
		om_arena_clear(w->tmp);
		if (is_there(w, v->def))
			copy_to_host(w, v);
		else
			copy_to_device(w, v);
	}
}

static void
mark_ops(struct place *w)
{
	for (om_block *b = w->p->first; b; b = b->next)
		for (om_op *op = b->first; op && om_block_is_reached(w->p, b); op = op->next) {
			if (!is_there(w, op))
				continue;
			op->device = w->device;
			w->out->views += w->op[op->id].is_view;
			w->out->ops += !w->op[op->id].is_view;
		}
}

om_status
om_place_devices(om_session *s, om_prog *p, const char *device, bool all, const om_device_speed *speed, om_placed *out)
{
	om_arena *mem = om_arena_new();
	struct place w = {.s = s, .p = p, .device = om_strdup(p->mem, device), .speed = speed, .mem = mem, .tmp = om_arena_new(),
		.op = OM_NEWN(mem, struct choice, p->nop), .nop = p->nop, .nvalue = p->nvalue, .out = out};

	*out = (om_placed){0};
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op && om_block_is_reached(p, b); op = op->next)
			find_choice(&w, op);
	if (all)
		place_all(&w, p->first);
	else
		place_cheapest(&w);
	mark_ops(&w);
	add_copies(&w);
	om_arena_free(w.tmp);
	om_arena_free(mem);
	return OM_OK;
}
