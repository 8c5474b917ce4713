/* SPDX-License-Identifier: Apache-2.0 */
/* The ladder of peaks: steps at which more bytes are in use than before and after, by height. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "report/why.h"

/* More rungs, and more peaks of a rung, are counted only. */
enum { MAX_RUNGS = 64, MAX_PEAKS = 32 };

/* ---- Peaks. ---- */

struct peak {
	uint64_t bytes, set;     /* in use; a hash of what is in use */
	uint32_t step, from, to;
};

struct peaks {
	struct peak *at;
	size_t n, cap;
};

static uint64_t
mixed(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* By step: a hash of the bytes in use, of each buffer. */
static uint64_t *
sets_in_use(const om_report *r, om_arena *mem)
{
	uint64_t *set = OM_NEWN(mem, uint64_t, (size_t)r->steps + 2);

	for (uint32_t k = 0; k < r->nbuffer; k++)
		for (uint32_t i = 0; i < r->buffer[k].nlive; i++) {
			const om_interval *live = &r->buffer[k].live[i];
			const uint64_t hash = mixed(mixed(mixed(k + 1) + live->from) + live->to);
			set[live->lower] ^= hash;
			set[live->upper] ^= hash;
		}
	for (uint32_t k = 1; k <= r->steps; k++)
		set[k] ^= set[k - 1];
	return set;
}

/* By step: what the op needs in any order. */
static void
list_floors(const om_report *r, const om_block *b, uint64_t *floor)
{
	for (const om_op *op = b->first; op; op = op->next) {
		if (op->is_folded)
			continue;
		floor[om_report_steps(r, op).first] = r->prog->plan->op_floor[op->id];
		for (uint32_t k = 0; k < op->nbody; k++)
			list_floors(r, op->body[k], floor);
	}
}

static uint32_t
largest_of(const uint64_t *of, uint32_t from, uint32_t end)
{
	uint32_t found = from;

	for (uint32_t k = from; k < end; k++)
		found = of[k] > of[found] ? k : found;
	return found;
}

/* Local maxima, each at the step, of those with as many bytes in use, whose op needs most. */
static void
find_peaks(const om_report *r, const uint64_t *by, om_arena *mem, struct peaks *all)
{
	const uint64_t *set = sets_in_use(r, mem);
	uint64_t *floor = OM_NEWN(mem, uint64_t, r->steps);

	if (r->prog->plan->op_floor)
		list_floors(r, r->prog->first, floor);
	for (uint32_t k = 0, end; k < r->steps; k = end) {
		for (end = k + 1; end < r->steps && by[end] == by[k]; end++)
			;
		const bool rises = k == 0 || by[k - 1] < by[k], falls = end == r->steps || by[end] < by[k];
		if (by[k] && rises && falls)
			OM_PUSH(mem, all->at, all->n, all->cap, ((struct peak){by[k], set[k], largest_of(floor, k, end), k, end - 1}));
	}
}

static int
by_set(const void *a, const void *b)
{
	const struct peak *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->set != y->set)
		return x->set < y->set ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

static int
by_step(const void *a, const void *b)
{
	const struct peak *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

/* Of peaks with the same bytes in use, the first is kept. */
static void
keep_distinct(struct peaks *all)
{
	size_t n = 0;

	if (all->n)
		qsort(all->at, all->n, sizeof *all->at, by_set);
	for (size_t k = 0; k < all->n; k++)
		if (k == 0 || all->at[k].bytes != all->at[k - 1].bytes || all->at[k].set != all->at[k - 1].set)
			all->at[n++] = all->at[k];
	all->n = n;
	if (n)
		qsort(all->at, n, sizeof *all->at, by_step);
}

/* ---- What is in use at a step. ---- */

/* Boxes with bytes in common. */
struct group {
	uint64_t from, to;       /* addresses, rounded */
	const om_box *largest;
	bool is_read, is_written, is_scratch;
	uint32_t since, until, next;
	const om_op *reader;
};

static bool
is_among(om_value *const *list, uint32_t n, const om_value *v)
{
	for (uint32_t k = 0; k < n; k++)
		if (list[k] == v)
			return true;
	return false;
}

/* An op with bodies hands its inputs to their parameters, and takes its outputs from their results. */
static void
note_role(struct group *g, const om_op *op, const om_value *v)
{
	g->is_read |= op && is_among(op->in, op->nin, v);
	g->is_written |= op && is_among(op->out, op->nout, v);
	for (uint32_t k = 0; op && k < op->nbody; k++) {
		g->is_read |= is_among(op->body[k]->param, op->body[k]->nparam, v);
		g->is_written |= is_among(op->body[k]->result, op->body[k]->nresult, v);
	}
}

static void
note_results(struct group *g, const om_report *r, const om_value *v)
{
	g->is_read |= is_among(r->prog->first->result, r->prog->first->nresult, v);
}

static uint64_t
address(const om_report *r, const om_box *x)
{
	return r->base[x->arena] + x->offset;
}

static int
by_address(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x->to < y->to) - (x->to > y->to);
}

static struct group
group_of(const om_report *r, const om_box *x, uint32_t step, const om_op *op)
{
	const uint64_t align = r->prog->plan->align, from = address(r, x);
	struct group g = {from & ~(align - 1), (from + x->bytes + align - 1) & ~(align - 1), .largest = x, .next = UINT32_MAX};

	g.is_scratch = !x->value;
	if (!x->value)
		return g;
	note_role(&g, op, x->value);
	if (!op)
		note_results(&g, r, x->value);
	g.since = om_report_idle_since(r, x->value, step);
	g.next = om_report_reads(r, x->value, step, &g.reader);
	g.until = g.next < x->last + 1 ? g.next : x->last + 1;
	return g;
}

static void
join(struct group *to, const struct group *g)
{
	to->to = g->to > to->to ? g->to : to->to;
	if (g->largest->bytes > to->largest->bytes)
		to->largest = g->largest;
	to->is_read |= g->is_read;
	to->is_written |= g->is_written;
	to->is_scratch |= g->is_scratch;
	to->since = g->since > to->since ? g->since : to->since;
	to->until = g->until > to->until ? g->until : to->until;
	if (g->next < to->next) {
		to->next = g->next;
		to->reader = g->reader;
	}
}

static om_role
role_of(const struct group *g)
{
	if (g->is_scratch)
		return OM_ROLE_SCRATCH;
	if (g->is_read && g->is_written)
		return OM_ROLE_BOTH;
	return g->is_read ? OM_ROLE_INPUT : g->is_written ? OM_ROLE_OUTPUT : OM_ROLE_CROSSING;
}

static int
crossing_last(const void *a, const void *b)
{
	const om_peak_value *x = a, *y = b;
	const bool crosses_x = x->role == OM_ROLE_CROSSING, crosses_y = y->role == OM_ROLE_CROSSING;

	if (crosses_x != crosses_y)
		return crosses_x - crosses_y;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void
add_live(om_peak_step *p, const struct group *g)
{
	const om_box *x = g->largest;

	p->live[p->nlive++] = (om_peak_value){.name = x->name, .value = x->value, .bytes = g->to - g->from,
		.role = role_of(g), .first = x->first, .since = g->since,
		.until = g->until < g->next ? g->until : g->next, .next = g->next, .reader = g->reader};
	if (role_of(g) != OM_ROLE_CROSSING)
		p->own += g->to - g->from;
}

/* `all` has room for all boxes. */
static void
describe(const om_report *r, om_arena *mem, const struct peak *at, struct group *all, om_peak_step *p)
{
	const uint32_t step = at->step;
	size_t n = 0;

	*p = (om_peak_step){.step = step, .from = at->from, .to = at->to, .op = om_report_op(r, step)};
	p->floor = p->op && r->prog->plan->op_floor ? r->prog->plan->op_floor[p->op->id] : 0;
	for (uint32_t k = 0; k < r->nbox && r->box[k].first <= step; k++)
		if (r->box[k].last >= step && r->box[k].bytes)
			all[n++] = group_of(r, &r->box[k], step, p->op);
	if (n)
		qsort(all, n, sizeof *all, by_address);
	p->live = OM_NEWN(mem, om_peak_value, n);
	for (size_t k = 0, next; k < n; k = next) {
		for (next = k + 1; next < n && all[next].from < all[k].to; next++)
			join(&all[k], &all[next]);
		add_live(p, &all[k]);
	}
	if (p->nlive)
		qsort(p->live, p->nlive, sizeof *p->live, crossing_last);
}

/* ---- Rungs. ---- */

/* What is kept for later, while no op needs it. */
struct kept {
	uint32_t since, until, id;
	uint64_t bytes;
};

struct kept_list {
	struct kept *at;
	size_t n, cap;
};

static void
list_kept(const om_peak_step *p, om_arena *mem, struct kept_list *all)
{
	for (uint32_t k = 0; k < p->nlive; k++) {
		const om_peak_value *x = &p->live[k];
		if (x->role == OM_ROLE_CROSSING)
			OM_PUSH(mem, all->at, all->n, all->cap, ((struct kept){x->since, x->until, x->value->id, x->bytes}));
	}
}

static int
by_value(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->since > y->since) - (x->since < y->since);
}

/* The most bytes in use without what is kept, of steps with no more than `limit`; `by`: bytes in use, by step. */
static uint64_t
without_kept(const om_report *r, const uint64_t *by, om_arena *mem, struct kept_list *all, uint64_t limit)
{
	uint64_t *less = OM_NEWN(mem, uint64_t, (size_t)r->steps + 2), sum = 0, most = 0;

	if (all->n)
		qsort(all->at, all->n, sizeof *all->at, by_value);
	for (size_t k = 0; k < all->n; k++) {
		const struct kept *x = &all->at[k];
		if (k && x[-1].id == x->id && x[-1].since == x->since)
			continue;
		less[x->since] += x->bytes;
		less[x->until] -= x->bytes;   /* prefix sums of it are never negative */
	}
	for (uint32_t k = 0; k < r->steps; k++) {
		sum += less[k];
		const uint64_t rest = by[k] > limit || by[k] < sum ? 0 : by[k] - sum;
		most = rest > most ? rest : most;
	}
	return most;
}

static void
add_rung(const om_report *r, const uint64_t *by, om_arena *mem, const struct peak *at, size_t n, struct group *all,
	om_rung *g)
{
	om_arena *tmp = om_arena_new();
	struct kept_list kept = {0};
	om_peak_step rest;

	*g = (om_rung){.bytes = at->bytes, .n = n < MAX_PEAKS ? (uint32_t)n : MAX_PEAKS};
	g->more = (uint32_t)n - g->n;
	g->at = OM_NEWN(mem, om_peak_step, g->n);
	for (size_t k = 0; k < n; k++) {
		om_peak_step *p = k < g->n ? &g->at[k] : &rest;
		describe(r, k < g->n ? mem : tmp, &at[k], all, p);
		g->own = p->own > g->own ? p->own : g->own;
		g->floor = p->floor > g->floor ? p->floor : g->floor;
		list_kept(p, tmp, &kept);
	}
	g->reach = without_kept(r, by, tmp, &kept, g->bytes);
	om_arena_free(tmp);
}

/* ---- All. ---- */

om_ladder
om_report_ladder(const om_report *r, om_arena *mem)
{
	struct peaks all = {0};
	om_ladder l = {.rung = OM_NEWN(mem, om_rung, MAX_RUNGS)};
	struct group *work = OM_NEWN(mem, struct group, r->nbox);
	const uint64_t *by = om_report_in_use(r, mem);

	find_peaks(r, by, mem, &all);
	keep_distinct(&all);
	for (size_t k = 0, end; k < all.n; k = end) {
		for (end = k + 1; end < all.n && all.at[end].bytes == all.at[k].bytes; end++)
			;
		if (l.n)
			l.rung[l.n - 1].next = l.rung[l.n - 1].next ? l.rung[l.n - 1].next : all.at[k].bytes;
		if (l.n < MAX_RUNGS)
			add_rung(r, by, mem, &all.at[k], end - k, work, &l.rung[l.n++]);
		else
			l.more++;
	}
	return l;
}

bool
om_report_is_at_rung(const om_report *r, const om_value *v, const om_rung *g)
{
	for (uint32_t k = r->box_of_value[v->id]; k < r->nbox; k++)
		for (uint32_t i = 0; r->box[k].value == v && i < g->n; i++)
			if (r->box[k].first <= g->at[i].to && g->at[i].from <= r->box[k].last)
				return true;
	return false;
}
