/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a report, from the program and its plan. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "alloc/byte_liveness.h"
#include "ir/live_interval.h"
#include "ir/steps.h"
#include "ir/alias_roots.h"
#include "report/report.h"

/* ---- Peak live bytes in file order, without sharing. ---- */

struct lives {
	const om_schedule *s;
	uint32_t *first, *last;   /* by value id; first > last: unused */
};

static void
mark_def(struct lives *l, const om_value *v, uint32_t step)
{
	if (!v)
		return;
	l->first[v->id] = step;
	if (l->last[v->id] < step)
		l->last[v->id] = step;
}

/* A value from outside of a loop body is used in each iteration: it stays live
 * until the op that repeats the body has ended. */
static void
mark_use(struct lives *l, const om_block *b, const om_value *v, uint32_t step)
{
	if (!v)
		return;
	for (; b != v->block && b->owner; b = b->owner->block) {
		const om_opdef *row = b->owner->opdef;
		if (!row || row->control != OM_IF)
			step = l->s->of_op[b->owner->id].last;
	}
	if (l->last[v->id] < step)
		l->last[v->id] = step;
}

/* Parameters of a loop body are written again at the end of each iteration. */
static void
mark_block(struct lives *l, const om_block *b)
{
	const uint32_t begin = b->owner ? l->s->of_op[b->owner->id].first : 0, end = l->s->of_block[b->id].last;

	for (uint32_t k = 0; k < b->nparam; k++) {
		mark_def(l, b->param[k], begin);
		mark_use(l, b, b->param[k], b->owner ? end : 0);
	}
	for (om_op *const *at = l->s->ops[b->id]; *at; at++) {
		const om_op *op = *at;
		for (uint32_t k = 0; k < op->nin; k++)
			mark_use(l, b, op->in[k], l->s->of_op[op->id].first);
		for (uint32_t k = 0; k < op->nbody; k++)
			mark_block(l, op->body[k]);
		for (uint32_t k = 0; k < op->nout; k++)
			mark_def(l, op->out[k], l->s->of_op[op->id].last);
	}
	for (uint32_t k = 0; k < b->nresult; k++)
		mark_use(l, b, b->result[k], end);
}

static uint64_t
round_up(uint64_t bytes, uint64_t align)
{
	return (bytes + align - 1) / align * align;
}

/* Values that the caller owns: inputs and outputs of the graph that are in no arena. */
static bool *
find_caller_values(const om_prog *p, om_arena *mem)
{
	bool *is = OM_NEWN(mem, bool, p->nvalue);

	for (uint32_t k = 0; k < p->first->nparam; k++)
		is[p->first->param[k]->id] = p->plan->place[p->first->param[k]->id].where != OM_IN_ARENA;
	for (uint32_t k = 0; k < p->first->nresult; k++)
		is[p->first->result[k]->id] = p->plan->place[p->first->result[k]->id].where != OM_IN_ARENA;
	return is;
}

/* Bytes of a value that could be planned, rounded; 0 for others. */
static uint64_t
plannable(const om_prog *p, const om_value *v, const bool *is_callers)
{
	uint64_t bytes;

	if (is_callers[v->id] || v->is_const || p->plan->place[v->id].where == OM_UNUSED
	    || v->type.kind != OM_TENSOR || !om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		return 0;
	return round_up(bytes, p->plan->align);
}

static uint64_t
peak_live(const om_prog *p, const om_schedule *s, om_arena *mem, const bool *is_callers)
{
	struct lives l = {s, OM_NEWN(mem, uint32_t, p->nvalue), OM_NEWN(mem, uint32_t, p->nvalue)};
	int64_t *change = OM_NEWN(mem, int64_t, (size_t)s->nstep + 1);
	int64_t now = 0, peak = 0;

	memset(l.first, 0xff, p->nvalue * sizeof *l.first);
	mark_block(&l, p->first);
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const uint64_t bytes = plannable(p, p->values[k], is_callers);
		if (bytes == 0 || l.first[k] > l.last[k])
			continue;
		change[l.first[k]] += (int64_t)bytes;
		change[l.last[k] + 1] -= (int64_t)bytes;
	}
	for (uint32_t k = 0; k <= s->nstep; k++) {
		now += change[k];
		peak = now > peak ? now : peak;
	}
	return (uint64_t)peak;
}

/* ---- Weights, inputs and outputs. ---- */

static bool
is_in_arena(const om_prog *p, const om_value *v)
{
	return p->plan->place[v->id].where == OM_IN_ARENA;
}

/* Bytes of inputs and outputs that are in the arenas, each value once. */
static uint64_t
io_in_arenas(const om_prog *p, om_arena *mem)
{
	const om_block *graph = p->first;
	bool *seen = OM_NEWN(mem, bool, p->nvalue);
	uint64_t sum = 0;

	for (uint32_t k = 0; k < graph->nparam + graph->nresult; k++) {
		const om_value *v = k < graph->nparam ? graph->param[k] : graph->result[k - graph->nparam];
		if (!seen[v->id] && is_in_arena(p, v))
			sum += om_value_bytes(v);
		seen[v->id] = true;
	}
	return sum;
}

static void
count_memory(om_report *r, const om_prog *p, om_arena *mem)
{
	const om_plan_memory m = om_plan_memory_of(p, p->plan);

	r->weights_bytes = m.weights;
	r->io_bytes = m.io;
	r->total_bytes = m.total;
	r->unsized = om_plan_unsized(p, p->plan, mem, &r->nunsized);
	r->bounded = om_plan_count_bounded(p, p->plan);
	r->arena_io_bytes = io_in_arenas(p, mem);
	for (uint32_t k = 0; k < p->plan->nalias; k++)
		if (om_alias_is_io(&p->plan->alias[k]))
			r->io_alias_bytes += om_value_bytes(p->values[p->plan->alias[k].value]);
	r->state = om_report_states(p, mem, &r->nstate);
	for (uint32_t k = 0; k < r->nstate; k++) {
		r->state_bytes += om_value_bytes(r->state[k].input);
		r->state_copied_bytes += r->state[k].copied_bytes;
	}
}

static void
count_parts(om_report *r, const om_prog *p)
{
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			r->ops += !op->is_folded;
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_location w = p->plan->place[k].where;
		r->values += w != OM_UNUSED && w != OM_WEIGHT && !p->values[k]->is_overridable;
	}
}

/* ---- Boxes and buffers. ---- */

/* By value id: the value that owns its storage, if that is in the arenas. */
static const om_alias_root *
roots(const om_plan *plan, const om_alias **alias, om_arena *mem)
{
	const om_alias **in_arena = OM_NEWN(mem, const om_alias *, plan->nplace);

	for (uint32_t k = 0; k < plan->nplace; k++)
		if (alias[k] && plan->place[alias[k]->source].where == OM_IN_ARENA)
			in_arena[k] = alias[k];
	return om_alias_roots(in_arena, plan->nplace, mem);
}

static om_box_kind
kind_of(const om_alias *a)
{
	if (!a)
		return OM_BOX_OWN;
	return a->kind == OM_ALIAS_VIEW || a->kind == OM_ALIAS_SUBBUFFER ? OM_BOX_VIEW : OM_BOX_INPLACE;
}

static size_t
count_ranges(const om_plan *plan)
{
	size_t n = 0;

	for (uint32_t k = 0; k < plan->nplace; k++)
		n += plan->place[k].live.nrange ? plan->place[k].live.nrange : 1;
	return n;
}

static void
add_values(om_report *r, const om_prog *p, om_arena *mem)
{
	const om_plan *plan = p->plan;
	const om_alias **alias = om_aliases_by_value(plan, plan->nplace, mem);
	const om_alias_root *root = roots(plan, alias, mem);
	uint32_t *buffer = OM_NEWN(mem, uint32_t, plan->nplace);

	for (uint32_t k = 0; k < plan->nplace; k++)
		if (plan->place[k].where == OM_IN_ARENA && root[k].value == k) {
			buffer[k] = r->nbuffer;
			r->buffer[r->nbuffer++] = (om_report_buffer){.name = p->values[k]->name,
				.arena = plan->place[k].arena, .offset = plan->place[k].offset,
				.bytes = plan->place[k].bytes};
		}
	for (uint32_t k = 0; k < plan->nplace; k++) {
		const om_placement *at = &plan->place[k];
		om_steps range;
		for (uint32_t i = 0; at->where == OM_IN_ARENA && om_live_interval_range(&at->live, i, &range); i++) {
			range = om_run_steps_range(&r->run, range);
			r->box[r->nbox++] = (om_box){.name = p->values[k]->name, .kind = kind_of(alias[k]), .arena = at->arena,
				.offset = at->offset, .bytes = at->bytes, .first = range.first, .last = range.last,
				.is_later = i > 0, .buffer = buffer[root[k].value], .value = p->values[k],
				.source = alias[k] ? p->values[alias[k]->source] : NULL};
		}
	}
}

static const om_op **
ops_by_id(const om_prog *p, om_arena *mem)
{
	const om_op **of = OM_NEWN(mem, const om_op *, p->nop);

	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			of[op->id] = op;
	return of;
}

static void
add_scratch(om_report *r, const om_prog *p, om_arena *mem)
{
	const om_op **of = ops_by_id(p, mem);

	for (uint32_t k = 0; k < p->plan->nscratch; k++) {
		const om_scratch *s = &p->plan->scratch[k];
		const om_op *op = of[s->op];
		const om_steps steps = om_report_steps(r, op);
		r->scratch_bytes = s->bytes > r->scratch_bytes ? s->bytes : r->scratch_bytes;
		const char *name = om_printf(mem, "scratch of %s", *op->name ? op->name : op->type);
		r->box[r->nbox++] = (om_box){.name = name, .kind = OM_BOX_SCRATCH, .arena = s->arena, .offset = s->offset,
			.bytes = s->bytes, .first = steps.first, .last = steps.last, .buffer = r->nbuffer, .op = op};
		r->buffer[r->nbuffer++] = (om_report_buffer){.name = name, .arena = s->arena,
			.offset = s->offset, .bytes = s->bytes};
	}
}

static int
compare_first(const void *a, const void *b)
{
	const om_box *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : strcmp(x->name, y->name);
}

/* Index boxes by value and by buffer. */
static void
index_boxes(om_report *r, om_arena *mem)
{
	r->box_of_value = OM_NEWN(mem, uint32_t, r->prog->nvalue);
	r->first_of_buffer = OM_NEWN(mem, uint32_t, r->nbuffer);
	r->next_of_buffer = OM_NEWN(mem, uint32_t, r->nbox);
	for (uint32_t k = 0; k < r->prog->nvalue; k++)
		r->box_of_value[k] = UINT32_MAX;
	for (uint32_t k = 0; k < r->nbuffer; k++)
		r->first_of_buffer[k] = UINT32_MAX;
	for (uint32_t k = r->nbox; k-- > 0;) {
		const om_box *x = &r->box[k];
		if (x->value)
			r->box_of_value[x->value->id] = k;
		r->next_of_buffer[k] = r->first_of_buffer[x->buffer];
		r->first_of_buffer[x->buffer] = k;
	}
}

/* The bytes of its buffer that a box uses, in multiples of the alignment. */
static om_interval
range_of(const om_report *r, const om_box *x)
{
	const om_report_buffer *b = &r->buffer[x->buffer];
	const uint64_t align = r->prog->plan->align, from = x->offset - b->offset, to = from + x->bytes;
	const uint64_t lower = from & ~(align - 1), upper = (to + align - 1) & ~(align - 1);

	return (om_interval){x->first, x->last + 1, lower, upper < b->bytes ? upper : b->bytes};
}

/* The bytes that the boxes of each buffer use. */
static void
add_lives(om_report *r, om_arena *mem)
{
	om_arena *tmp = om_arena_new();
	om_interval *range = OM_NEWN(tmp, om_interval, r->nbox);

	for (uint32_t k = 0; k < r->nbuffer; k++) {
		size_t n = 0;
		for (uint32_t at = r->first_of_buffer[k]; at != UINT32_MAX; at = r->next_of_buffer[at])
			if (r->box[at].bytes)
				range[n++] = range_of(r, &r->box[at]);
		const om_usage all = om_usage_union(mem, range, n);
		r->buffer[k].live = all.r;
		r->buffer[k].nlive = (uint32_t)all.n;
	}
	om_arena_free(tmp);
}

/* ---- The peak. ---- */

static int
compare_bytes(const void *a, const void *b)
{
	const om_report_live *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* A buffer is named after its largest value at the peak. */
static const char *
name_at(const om_report *r, uint32_t buffer, uint32_t step)
{
	const om_box *found = NULL;

	for (uint32_t k = r->first_of_buffer[buffer]; k != UINT32_MAX; k = r->next_of_buffer[k]) {
		const om_box *x = &r->box[k];
		if (x->first <= step && step <= x->last && (!found || x->bytes > found->bytes))
			found = x;
	}
	return found ? found->name : r->buffer[buffer].name;
}

static uint64_t
bytes_at(const om_report_buffer *b, uint32_t step)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < b->nlive; k++)
		if (b->live[k].lower <= step && step < b->live[k].upper)
			bytes += b->live[k].to - b->live[k].from;
	return bytes;
}

uint64_t *
om_report_in_use(const om_report *r, om_arena *mem)
{
	uint64_t *by = OM_NEWN(mem, uint64_t, (size_t)r->steps + 2);

	for (uint32_t k = 0; k < r->nbuffer; k++)
		for (uint32_t i = 0; i < r->buffer[k].nlive; i++) {
			const om_interval *live = &r->buffer[k].live[i];
			by[live->lower] += live->to - live->from;
			by[live->upper] -= live->to - live->from;   /* prefix sums of it are never negative */
		}
	for (uint32_t k = 1; k <= r->steps; k++)
		by[k] += by[k - 1];
	return by;
}

/* The step with the most bytes in use in all arenas together. */
static uint32_t
find_peak_step(const om_report *r, const uint64_t *by)
{
	uint32_t step = 0;

	for (uint32_t k = 1; k <= r->steps; k++)
		step = by[k] > by[step] ? k : step;
	return step;
}

/* ---- Phases of a training step, and rematerialized ops. ---- */

static void
add_phase(om_report *r, const uint64_t *by, const om_op *op)
{
	const om_steps steps = om_report_steps(r, op);
	uint32_t k = 0;

	while (k < r->nphase && r->phase[k].phase != op->phase)
		k++;
	om_report_phase *to = &r->phase[k];
	if (k == r->nphase) {
		*to = (om_report_phase){.phase = op->phase, .step = steps.first, .op = op, .bytes = by[steps.first]};
		r->nphase++;
	}
	to->ops++;
	for (uint32_t step = steps.first; step <= steps.last; step++)
		if (by[step] > to->bytes) {
			to->bytes = by[step];
			to->step = step;
			to->op = op;
		}
}

static int
compare_phase(const void *a, const void *b)
{
	const om_report_phase *x = a, *y = b;
	return (x->phase > y->phase) - (x->phase < y->phase);
}

static void
find_phases(om_report *r, const om_prog *p, const uint64_t *by)
{
	for (const om_op *op = p->first->first; op; op = op->next) {
		if (op->is_folded)
			continue;
		*(op->rematerialized_from ? &r->rematerialized_flops : &r->flops) += om_op_cost(op).flops;
		r->rematerialized += op->rematerialized_from != NULL;
	}
	for (const om_op *op = p->first->first; op && !r->parallel_safe; op = op->next)
		if (op->phase != OM_NO_PHASE && !op->is_folded)
			add_phase(r, by, op);
	if (r->nphase)
		qsort(r->phase, r->nphase, sizeof r->phase[0], compare_phase);
}

/* The peak of a plan for any order, which has no step, is in the plan. */
static void
copy_peak(om_report *r, const om_plan *plan, om_arena *mem)
{
	r->live = OM_NEWN(mem, om_report_live, plan->npeak);
	for (uint32_t k = 0; k < plan->npeak; k++)
		r->live[r->nlive++] = (om_report_live){plan->peak[k].name, plan->peak[k].bytes};
	qsort(r->live, r->nlive, sizeof *r->live, compare_bytes);
}

static void
find_peak(om_report *r, const om_prog *p, const uint64_t *by, om_arena *mem)
{
	if (r->parallel_safe) {
		copy_peak(r, p->plan, mem);
		return;
	}
	const uint32_t step = find_peak_step(r, by);
	if (r->peak_step > r->steps || by[r->peak_step] < by[step])
		r->peak_step = step;
	r->peak_op = om_report_op(r, r->peak_step);
	r->live = OM_NEWN(mem, om_report_live, r->nbuffer);
	for (uint32_t k = 0; k < r->nbuffer; k++) {
		const uint64_t bytes = bytes_at(&r->buffer[k], r->peak_step);
		if (bytes)
			r->live[r->nlive++] = (om_report_live){name_at(r, k, r->peak_step), bytes};
	}
	qsort(r->live, r->nlive, sizeof *r->live, compare_bytes);
}

/* ---- Steps. ---- */

om_steps
om_report_steps(const om_report *r, const om_op *op)
{
	return om_run_steps_range(&r->run, (om_steps){op->step, op->end});
}

om_steps
om_report_life(const om_report *r, const om_value *v)
{
	const om_live_interval *live = &r->prog->plan->place[v->id].live;

	return om_run_steps_range(&r->run, (om_steps){live->first, live->last});
}

const om_op *
om_report_op(const om_report *r, uint32_t step)
{
	return step < r->steps ? om_op_at_step(r->prog, r->run.at[step]) : NULL;
}

/* ---- All. ---- */

double
om_report_gap(uint64_t bytes, uint64_t bound)
{
	return bound && bytes > bound ? (double)(bytes - bound) / (double)bound : 0;
}

const char *
om_report_scope(const om_report *r)
{
	if (r->arena_bytes == r->order_bound_bytes)
		return r->prog->plan->nunplanned ? "optimal for this order and the values in the plan"
			: r->bounded ? "optimal for this order, whatever sizes a run decides" : "optimal for this order";
	return r->parallel_safe ? "optimal packing for these views and in-place choices, in any order"
		: "optimal packing for these lifetimes, views and in-place choices";
}

const char *
om_report_orders(const om_report *r, om_arena *mem)
{
	return r->plan->streams ? om_printf(mem, "valid for %u streams", r->plan->streams->n) : "valid in any order";
}

double
om_streams_speedup(const om_worker_streams *s)
{
	return s->span_ns > 0 ? s->work_ns / s->span_ns : 0;
}

const char *
om_bounded_text(om_arena *mem, uint32_t n)
{
	return om_printf(mem, "%u value%s with the most that %s operator%s may give", n, n == 1 ? "" : "s",
		n == 1 ? "its" : "their", n == 1 ? "" : "s");
}

/* The sizes of the arenas add up. */
static void
sum_arenas(om_report *r, const om_plan *plan)
{
	for (uint32_t k = 0; k < plan->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		r->base[k] = r->arena_bytes;
		r->naive_bytes += a->naive;
		r->arena_bytes += a->bytes;
		r->lower_bound_bytes += a->lower_bound;
		r->order_bound_bytes += a->order_bound;
		r->is_limited |= a->is_limited;
		if (a->status != OM_PACK_OPTIMAL)
			r->status = OM_PACK_FEASIBLE;
	}
	r->status_text = om_plan_arena_status(&(om_plan_arena){.bytes = r->arena_bytes, .order_bound = r->order_bound_bytes,
		.status = r->status});
	if (plan->narena)
		r->peak_step = om_run_steps_of(&r->run, plan->arena[0].bound_step);
	r->gap = om_report_gap(r->arena_bytes, r->lower_bound_bytes);
}

static bool
is_inside(const om_plan *plan, const om_placement *at)
{
	return at->arena < plan->narena && at->offset <= plan->arena[at->arena].bytes
		&& at->bytes <= plan->arena[at->arena].bytes - at->offset;
}

static om_status
check_place(om_session *s, const om_prog *p, uint32_t id, uint32_t root_id)
{
	const om_placement *at = &p->plan->place[id], *root = &p->plan->place[root_id];

	if (!is_inside(p->plan, at))
		return om_fail(s, OM_BADPLAN, "there is no picture, because %s is outside of the arenas", p->values[id]->name);
	if (root->arena != at->arena || at->offset < root->offset || at->offset + at->bytes > root->offset + root->bytes)
		return om_fail(s, OM_BADPLAN, "there is no picture, because %s is not within the storage that it shares",
			p->values[id]->name);
	return OM_OK;
}

om_status
om_report_check(om_session *s, const om_prog *p)
{
	const om_plan *plan = p->plan;
	om_arena *mem = om_arena_new();
	const om_alias_root *root = roots(plan, om_aliases_by_value(plan, plan->nplace, mem), mem);
	om_status st = OM_OK;

	for (uint32_t k = 0; k < plan->nplace && st == OM_OK; k++)
		if (plan->place[k].where == OM_IN_ARENA)
			st = check_place(s, p, k, root[k].value);
	for (uint32_t k = 0; k < plan->nscratch && st == OM_OK; k++)
		if (!is_inside(plan, &(om_placement){.arena = plan->scratch[k].arena, .offset = plan->scratch[k].offset,
			.bytes = plan->scratch[k].bytes}))
			st = om_fail(s, OM_BADPLAN, "there is no picture, because scratch is outside of the arenas");
	if (st == OM_OK && plan->nview)
		st = om_fail(s, OM_BADPLAN, "there is no picture, because addresses of values that rotate are not checked");
	om_arena_free(mem);
	return st;
}

om_report *
om_report_new(om_prog *p, const char *path, om_arena *mem)
{
	om_report *r = OM_NEW(mem, om_report);
	const char *slash = om_path_slash(path);
	const bool *is_callers = find_caller_values(p, mem);
	const om_schedule *s = p->plan->schedule;

	om_timeline(p);
	r->prog = p;
	r->plan = p->plan;
	r->model = slash ? slash + 1 : path;
	r->run = om_run_steps_new(p, mem);
	r->steps = r->run.n;
	r->status = OM_PACK_OPTIMAL;
	r->parallel_safe = p->plan->parallel_safe;
	r->base = OM_NEWN(mem, uint64_t, p->plan->narena);
	r->traffic = OM_NEWN(mem, om_traffic, p->plan->narena + OM_TRAFFIC_OTHERS);
	om_plan_traffic(p, p->plan, r->traffic);
	sum_arenas(r, p->plan);
	r->original_order_bytes = peak_live(p, s->original ? s->original : s, mem, is_callers);
	count_memory(r, p, mem);
	count_parts(r, p);
	r->box = OM_NEWN(mem, om_box, count_ranges(p->plan) + p->plan->nscratch);
	r->buffer = OM_NEWN(mem, om_report_buffer, (size_t)p->plan->nplace + p->plan->nscratch);
	add_values(r, p, mem);
	add_scratch(r, p, mem);
	qsort(r->box, r->nbox, sizeof *r->box, compare_first);
	index_boxes(r, mem);
	om_report_loop_views(r, mem);
	add_lives(r, mem);
	const uint64_t *by = om_report_in_use(r, mem);
	find_peak(r, p, by, mem);
	find_phases(r, p, by);
	return r;
}
