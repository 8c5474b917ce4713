/* SPDX-License-Identifier: Apache-2.0 */
/* Makes plans from the addresses that another planner has given to values.
 *
 * Such a plan states addresses only.  Lifetimes are those of the program.  That an output is computed over an input, is
 * a view of it, or consists of it, is what its address says: a value whose bytes overlap those of an input or output of
 * the same op is taken for such a one, where the definition of the op knows of that at all.  Nothing here decides
 * whether it is allowed: the verifier simulates the run with these addresses. */
#include <config.h>

#include <inttypes.h>

#include "onnxmem/opdef.h"
#include "report/foreign.h"

static const uint64_t MOST = UINT64_C(1) << 60;   /* sums of a few such sizes do not overflow */

/* ---- Collecting. ---- */

om_foreign *
om_foreign_new(const om_prog *p, const char *source, om_arena *mem)
{
	om_foreign *f = OM_NEW(mem, om_foreign);

	*f = (om_foreign){.p = p, .mem = mem, .source = source, .names = om_map_new(mem),
		.place = OM_NEWN(mem, om_foreign_place, p->nvalue), .arena_bytes = OM_SIZE_UNSTATED};
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->values[k]->block == p->first)
			om_map_set(&f->names, p->values[k]->name, p->values[k]);
	return f;
}

om_status
om_foreign_add(om_session *s, om_foreign *f, const char *name, uint64_t offset, uint64_t bytes)
{
	const om_value *v = om_map_get(&f->names, name);

	const uint64_t size = bytes != OM_SIZE_UNSTATED ? bytes : v ? om_value_bytes(v) : 0;

	if (offset > MOST || size > MOST)
		return om_fail(s, OM_BADPLAN, "%s: %s is more than 2^60 bytes away, or as large", f->source, name);
	if (!v) {
		f->other = f->nother++ ? f->other : om_strdup(f->mem, name);
		return OM_OK;
	}
	om_foreign_place *to = &f->place[v->id];
	if (to->is_set && (to->offset != offset || to->bytes != bytes))
		return om_fail(s, OM_BADPLAN, "%s: %s has two places, at %" PRIu64 " and at %" PRIu64, f->source, name, to->offset,
			offset);
	f->n += !to->is_set;
	*to = (om_foreign_place){true, offset, bytes};
	return OM_OK;
}

bool
om_foreign_has_io(const om_foreign *f, const om_value *v)
{
	return v->id < f->p->nvalue && f->place[v->id].is_set;
}

/* ---- Shared storage. ---- */

struct maker {
	om_prog *p;
	const om_foreign *f;
	om_assignment *a;
	om_arena *mem;
};

static const om_foreign_place *
place_of(const struct maker *m, const om_value *v)
{
	static const om_foreign_place none = {0};

	return v && v->block == m->p->first && v->id < m->f->p->nvalue ? &m->f->place[v->id] : &none;
}

/* Are there bytes that both values have? */
static bool
overlap(const struct maker *m, const om_value *x, const om_value *y)
{
	const om_foreign_place *a = place_of(m, x), *b = place_of(m, y);
	const uint64_t n = om_value_bytes(x), k = om_value_bytes(y);

	return a->is_set && b->is_set && n && k && a->offset < b->offset + k && b->offset < a->offset + n;
}

/* Is `v` in the storage of `of`, directly or through others?  Chains have no circle, because none is added here. */
static bool
leads_to(const struct maker *m, const om_value *v, const om_value *of)
{
	for (; v; v = m->a->backing[v->id].source)
		if (v == of)
			return true;
	return false;
}

static void
share(struct maker *m, const om_value *v, om_store store, om_value *source, uint64_t offset)
{
	om_backing *b = &m->a->backing[v->id];

	if (!b->source && !leads_to(m, source, v))
		*b = (om_backing){store, source, offset};
}

/* An output that overlaps inputs: a view of one, or computed over one. */
static void
share_output(struct maker *m, const om_op *op, uint32_t out)
{
	const om_value *v = op->out[out];
	const uint64_t at = place_of(m, v)->offset;
	om_view_of view;

	if (om_op_view(op, out, &view) && overlap(m, v, op->in[view.in])
	    && at == place_of(m, op->in[view.in])->offset + view.offset)
		share(m, v, OM_VIEW, op->in[view.in], view.offset);
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && overlap(m, v, op->in[k]) && at == place_of(m, op->in[k])->offset
		    && om_value_bytes(v) <= om_value_bytes(op->in[k]) && om_op_inplace(op, out, k))
			share(m, v, OM_INPLACE, op->in[k], 0);
}

/* Inputs that lie within an output which consists of them. */
static void
share_inputs(struct maker *m, const om_op *op)
{
	om_value *out = op->nout ? op->out[0] : NULL;

	for (uint32_t k = 0; k < op->nin && out && op->opdef && op->opdef->subbuffer; k++) {
		om_value *v = op->in[k];
		const uint64_t at = place_of(m, v)->offset, base = place_of(m, out)->offset;
		if (v && v != out && overlap(m, v, out) && at >= base && at + om_value_bytes(v) <= base + om_value_bytes(out))
			share(m, v, OM_SUBBUFFER, out, at - base);
	}
}

static void
find_shared(struct maker *m)
{
	for (const om_op *op = m->p->first->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && place_of(m, op->out[k])->is_set)
				share_output(m, op, k);
		share_inputs(m, op);
	}
}

/* ---- The plan. ---- */

/* The end of the last value. */
static uint64_t
end_of(const struct maker *m)
{
	uint64_t end = 0;

	for (uint32_t k = 0; k < m->f->p->nvalue; k++) {
		const om_value *v = m->p->values[k];
		const om_foreign_place *at = place_of(m, v);
		const uint64_t bytes = at->bytes == OM_SIZE_UNSTATED ? om_value_bytes(v) : at->bytes;
		if (at->is_set && at->offset + bytes > end)
			end = at->offset + bytes;
	}
	return end;
}

/* Buffers are where their owners are; those without a place take no part. */
static void
place_buffers(const struct maker *m, om_buffers *b)
{
	for (uint32_t k = 0; k < m->p->nvalue; k++) {
		const uint32_t n = b->of_value[k];
		if (n == UINT32_MAX || m->a->backing[k].source)
			continue;
		const om_foreign_place *at = place_of(m, m->p->values[k]);
		b->buf[n].offset = at->offset;
		b->buf[n].pool = 0;
		if (!at->is_set)
			b->buf[n].bytes = 0;
	}
}

/* The lifetime of a buffer without bytes would count bytes of its values. */
static void
drop_empty(om_buffers *b)
{
	static const om_interval never = {0, 1, 0, 0};

	for (uint32_t k = 0; k < b->n; k++)
		if (b->buf[k].bytes == 0) {
			b->buf[k].live = &never;
			b->buf[k].nlive = 1;
		}
}

static void
leave_out(om_plan *plan, const om_value *v)
{
	plan->place[v->id].where = OM_UNPLANNED;
	plan->unplanned[plan->nunplanned++] = (om_unplanned){v->id, v->block->owner ? "the other plan has no place in a body"
		: "the other plan has no place for it"};
}

/* What the plan was not told: values without a place are outside of it, and sizes are those that were stated. */
static void
correct_places(const struct maker *m, om_plan *plan)
{
	bool is_whole = true;

	for (uint32_t k = 0; k < plan->nplace; k++) {
		const om_foreign_place *at = place_of(m, m->p->values[k]);
		if (plan->place[k].where != OM_IN_ARENA)
			continue;
		if (at->is_set && at->bytes != OM_SIZE_UNSTATED)
			plan->place[k].bytes = at->bytes;
		if (!at->is_set) {
			leave_out(plan, m->p->values[k]);
			is_whole = false;
		}
	}
	if (!is_whole)
		plan->arena->order_bound = 0;
}

/* The request of the other plan: nothing is known about its alignment. */
static const om_plan_request *
request_of(const struct maker *m)
{
	om_plan_request *r = om_memdup(m->p->mem, m->a->request, sizeof *r);
	om_arena_spec *arena = OM_NEW(m->p->mem, om_arena_spec);

	*arena = (om_arena_spec){.name = "arena", .device = "cpu", .align = 1};
	r->arena = arena;
	r->narena = 1;
	r->align = 1;
	return r;
}

/* Kernels that read elements at such addresses are slow, or fail, on some machines. */
static void
warn_of_addresses(om_session *s, const struct maker *m)
{
	const om_value *first = NULL;
	uint32_t n = 0;

	for (uint32_t k = 0; k < m->f->p->nvalue; k++) {
		const om_value *v = m->p->values[k];
		const om_foreign_place *at = place_of(m, v);
		const uint64_t element = om_dtype_bits(v->type.elem) / 8;
		if (!at->is_set || element < 2 || at->offset % element == 0)
			continue;
		first = n++ ? first : v;
	}
	if (n)
		om_warn(s, "%s: %" PRIu32 " value%s not at a multiple of the size of the elements: the first is %s", m->f->source, n,
			n == 1 ? " is" : "s are", first->name);
}

om_status
om_foreign_plan(om_session *s, om_prog *p, const om_foreign *f)
{
	struct maker m = {.p = p, .f = f, .mem = f->mem};

	if (f->n == 0)
		return om_fail(s, OM_INVALID, "%s: no value of the graph has a place%s%s", f->source, f->other
			? om_printf(f->mem, "; the first of %" PRIu32 " other names is ", f->nother) : "", f->other ? f->other : "");
	if (f->nother)
		om_warn(s, "%s: %" PRIu32 " name%s of no value of the graph: the first is %s", f->source, f->nother,
			f->nother == 1 ? " is that" : "s are those", f->other);
	m.a = om_assignment_copy(p->assignment, p->mem);
	m.a->request = request_of(&m);
	find_shared(&m);
	om_buffers *b = om_buffers_new(p, m.a, f->mem);
	place_buffers(&m, b);
	drop_empty(b);
	const om_pack_result r = {.height = f->arena_bytes == OM_SIZE_UNSTATED ? end_of(&m) : f->arena_bytes,
		.status = OM_PACK_FEASIBLE, .strategy = f->source};
	om_plan_new(p, b, &r, f->source);
	correct_places(&m, p->plan);
	warn_of_addresses(s, &m);
	return OM_OK;
}
