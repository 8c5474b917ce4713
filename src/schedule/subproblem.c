/* SPDX-License-Identifier: Apache-2.0 */
/* Indices of a problem, and parts of it.
 *
 * Units.  An op x can run right before y without loss if y is its only successor,
 * if it makes at least as much as it could ever free, and if it requires no more
 * for itself than y does in any case.  For moving x from anywhere back to y removes
 * its bytes from every step between, and the bytes that it would have freed there
 * are fewer; while x itself runs now, no more is live than while y runs.  Slices of
 * an input are of that kind, one for each step of an unrolled net: without units
 * they would run in any of exponentially many orders.
 */
#include <config.h>

#include "schedule/subproblem.h"

/* ---- Lists. ---- */

static om_lists
lists_new(om_arena *mem, uint32_t n, uint64_t items)
{
	return (om_lists){OM_NEWN(mem, uint32_t, (size_t)n + 1), OM_NEWN(mem, uint32_t, items)};
}

/* From "item k of list i" to "i of list k"; the resulting lists are sorted. */
static om_lists
transpose(const om_lists *l, uint32_t n, uint32_t to, om_arena *mem)
{
	om_lists t = lists_new(mem, to, l->at[n]);
	uint32_t *fill = OM_NEWN(mem, uint32_t, (size_t)to + 1);

	for (uint32_t k = 0; k < l->at[n]; k++)
		t.at[l->item[k] + 1]++;
	for (uint32_t k = 0; k < to; k++)
		fill[k + 1] = t.at[k + 1] += t.at[k];
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = l->at[i]; k < l->at[i + 1]; k++)
			t.item[fill[l->item[k]]++] = i;
	return t;
}

static uint32_t
length(const om_lists *l, uint32_t k)
{
	return l->at[k + 1] - l->at[k];
}

/* ---- The whole problem. ---- */

static void
list_needs(om_schedule_index *x, om_arena *mem)
{
	const om_schedule_problem *q = x->q;
	uint32_t *seen = OM_NEWN(mem, uint32_t, q->nstorage);
	uint64_t most = 0;

	for (uint32_t i = 0; i < q->nop; i++)
		most += q->op[i].nuse;
	x->need = lists_new(mem, q->nop, most);
	for (uint32_t i = 0; i < q->nop; i++) {
		uint32_t n = x->need.at[i];
		for (uint32_t k = 0; k < q->op[i].nuse; k++) {
			const uint32_t s = q->op[i].use[k];
			if (seen[s] == i + 1)
				continue;
			seen[s] = i + 1;
			x->need.item[n++] = s;
		}
		x->need.at[i + 1] = n;
	}
	x->user = transpose(&x->need, q->nop, q->nstorage, mem);
}

static void
list_makes(om_schedule_index *x, om_arena *mem)
{
	const om_schedule_problem *q = x->q;
	om_lists producer = lists_new(mem, q->nstorage, q->nstorage);
	uint32_t n = 0;

	for (uint32_t k = 0; k < q->nstorage; k++) {
		const om_schedule_storage *s = &q->storage[k];
		const bool wanted = s->live_out || length(&x->user, k);
		if (s->producer == OM_SCHEDULE_NONE && wanted)
			x->start += s->bytes;
		else if (wanted)
			producer.item[n++] = s->producer;
		producer.at[k + 1] = n;
	}
	x->made = transpose(&producer, q->nstorage, q->nop, mem);
}

static void
list_before(om_schedule_index *x, om_arena *mem)
{
	const om_schedule_problem *q = x->q;
	uint32_t *seen = OM_NEWN(mem, uint32_t, q->nop);
	uint64_t most = x->need.at[q->nop];

	for (uint32_t i = 0; i < q->nop; i++)
		most += q->op[i].nafter;
	x->before = lists_new(mem, q->nop, most);
	for (uint32_t i = 0; i < q->nop; i++) {
		uint32_t n = x->before.at[i];
		for (uint32_t k = 0; k < q->op[i].nafter + length(&x->need, i); k++) {
			const uint32_t past = k - q->op[i].nafter;
			const uint32_t j = k < q->op[i].nafter ? q->op[i].after[k]
				: q->storage[x->need.item[x->need.at[i] + past]].producer;
			if (j == OM_SCHEDULE_NONE || seen[j] == i + 1)
				continue;
			seen[j] = i + 1;
			x->before.item[n++] = j;
		}
		x->before.at[i + 1] = n;
	}
	x->succ = transpose(&x->before, q->nop, q->nop, mem);
}

om_schedule_index *
om_schedule_index_new(const om_schedule_problem *q, om_arena *mem)
{
	om_schedule_index *x = OM_NEW(mem, om_schedule_index);

	x->q = q;
	list_needs(x, mem);
	list_makes(x, mem);
	list_before(x, mem);
	x->place = OM_NEWN(mem, uint32_t, q->nop);
	x->local_op = OM_NEWN(mem, uint32_t, q->nop);
	x->local_storage = OM_NEWN(mem, uint32_t, q->nstorage);
	memset(x->local_op, 0xff, q->nop * sizeof *x->local_op);
	memset(x->local_storage, 0xff, q->nstorage * sizeof *x->local_storage);
	return x;
}

/* ---- A given order. ---- */

struct execution {
	const om_schedule_index *x;
	uint32_t *left;          /* by storage: users that have not run */
	uint64_t live_bytes;
};

static bool
dies_at(const struct execution *w, uint32_t s)
{
	return w->left[s] == 1 && !w->x->q->storage[s].live_out;
}

static uint64_t
peak_during(const struct execution *w, uint32_t i)
{
	const om_schedule_op *op = &w->x->q->op[i];
	uint64_t begin = w->live_bytes + op->begin, middle = w->live_bytes + op->middle;

	for (uint32_t k = 0, done = OM_SCHEDULE_NONE; k < op->nover; k++)
		if (op->over[k].made != done && dies_at(w, op->over[k].needed)) {
			done = op->over[k].made;
			begin -= w->x->q->storage[done].bytes;
		}
	for (uint32_t k = 0; k < op->ndies_early && op->middle; k++)
		if (dies_at(w, op->early[k]))
			middle -= w->x->q->storage[op->early[k]].bytes;
	return begin > middle || !op->middle ? begin : middle;
}

static void
execute(struct execution *w, uint32_t i)
{
	const om_schedule_index *x = w->x;

	for (uint32_t k = x->made.at[i]; k < x->made.at[i + 1]; k++)
		w->live_bytes += x->q->storage[x->made.item[k]].bytes;
	for (uint32_t k = x->need.at[i]; k < x->need.at[i + 1]; k++) {
		const uint32_t s = x->need.item[k];
		if (dies_at(w, s))
			w->live_bytes -= x->q->storage[s].bytes;
		w->left[s]--;
	}
}

uint64_t
om_schedule_profile(const om_schedule_index *x, const uint32_t *order, uint64_t *before, uint64_t *during)
{
	om_arena *mem = om_arena_new();
	struct execution w = {.x = x, .live_bytes = x->start, .left = OM_NEWN(mem, uint32_t, x->q->nstorage)};
	uint64_t most = 0;

	for (uint32_t k = 0; k < x->q->nstorage; k++)
		w.left[k] = length(&x->user, k);
	for (uint32_t k = 0; k < x->q->nop; k++) {
		const uint64_t now = peak_during(&w, order[k]);
		x->place[order[k]] = k;
		most = now > most ? now : most;
		if (before)
			before[k] = w.live_bytes;
		if (during)
			during[k] = now;
		execute(&w, order[k]);
	}
	if (before)
		before[x->q->nop] = w.live_bytes;
	om_arena_free(mem);
	return most;
}

/* ---- Units. ---- */

/* The bytes that op `i` makes, that it could free at most, and by which in-place
 * computation can lower its start: at most, and at least. */
struct traits {
	uint64_t makes, frees, most_over, least_over;
};

static struct traits
traits_of(const om_schedule_index *x, uint32_t i)
{
	const om_schedule_op *op = &x->q->op[i];
	struct traits t = {0};

	for (uint32_t k = x->made.at[i]; k < x->made.at[i + 1]; k++)
		t.makes += x->q->storage[x->made.item[k]].bytes;
	for (uint32_t k = x->need.at[i]; k < x->need.at[i + 1]; k++) {
		const om_schedule_storage *s = &x->q->storage[x->need.item[k]];
		t.frees += s->live_out ? 0 : s->bytes;
	}
	for (uint32_t k = 0, may = OM_SCHEDULE_NONE, is = OM_SCHEDULE_NONE; k < op->nover; k++) {
		const uint32_t made = op->over[k].made, s = op->over[k].needed;
		t.most_over += may != made ? x->q->storage[s].bytes : 0;
		may = made;
		if (is != made && length(&x->user, s) == 1 && !x->q->storage[s].live_out) {
			is = made;
			t.least_over += x->q->storage[s].bytes;
		}
	}
	return t;
}

/* The op right before which `i` runs best; OM_SCHEDULE_NONE if none is known. */
static uint32_t
partner(const om_schedule_index *x, const struct traits *traits, uint32_t i)
{
	const om_schedule_op *op = &x->q->op[i];

	if (length(&x->succ, i) != 1 || length(&x->made, i) == 0)
		return OM_SCHEDULE_NONE;
	for (uint32_t k = x->made.at[i]; k < x->made.at[i + 1]; k++)
		if (x->q->storage[x->made.item[k]].live_out)
			return OM_SCHEDULE_NONE;
	const uint32_t y = x->succ.item[x->succ.at[i]];
	const struct traits a = traits[i], b = traits[y];
	const uint64_t most = op->begin - a.least_over > op->middle ? op->begin - a.least_over : op->middle;
	return a.makes >= a.frees && most + b.most_over <= a.makes - a.frees + x->q->op[y].begin
		? y : OM_SCHEDULE_NONE;
}

/* Post-order over the trees of partners, roots in the original order. */
static void
append_unit(uint32_t root, uint32_t unit, const om_lists *child, uint32_t *stack, uint32_t *fill,
	uint32_t *order, uint32_t *n, uint32_t *unit_of)
{
	uint32_t depth = 0;

	stack[depth++] = root;
	while (depth) {
		const uint32_t i = stack[depth - 1];
		if (fill[i] < child->at[i + 1]) {
			stack[depth++] = child->item[fill[i]++];
			continue;
		}
		unit_of[i] = unit;
		order[(*n)++] = i;
		depth--;
	}
}

uint32_t
om_schedule_units(const om_schedule_index *x, uint32_t *order, uint32_t *unit_of, om_arena *mem)
{
	const uint32_t nop = x->q->nop;
	om_lists next = lists_new(mem, nop, nop);
	uint32_t *stack = OM_NEWN(mem, uint32_t, (size_t)nop + 1), n = 0, units = 0;
	struct traits *traits = OM_NEWN(mem, struct traits, nop);

	for (uint32_t i = 0; i < nop; i++)
		traits[i] = traits_of(x, i);
	for (uint32_t i = 0; i < nop; i++) {
		const uint32_t y = partner(x, traits, i);
		if (y != OM_SCHEDULE_NONE)
			next.item[n++] = y;
		next.at[i + 1] = n;
	}
	const om_lists child = transpose(&next, nop, nop, mem);
	uint32_t *fill = om_memdup(mem, child.at, ((size_t)nop + 1) * sizeof *fill);
	n = 0;
	for (uint32_t i = 0; i < nop; i++)
		if (length(&next, i) == 0)
			append_unit(i, units++, &child, stack, fill, order, &n, unit_of);
	return units;
}

/* ---- Subproblems. ---- */

static uint32_t
local_storage(const om_schedule_index *x, om_subproblem *g, uint32_t s)
{
	uint32_t *at = &x->local_storage[s];

	if (*at == OM_SCHEDULE_NONE) {
		*at = g->nstorage++;
		g->bytes[*at] = x->q->storage[s].bytes;
		g->producer[*at] = OM_SCHEDULE_NONE;
		g->live_out[*at] = x->q->storage[s].live_out;
		for (uint32_t k = x->user.at[s]; k < x->user.at[s + 1] && !g->live_out[*at]; k++)
			g->live_out[*at] = x->place[x->user.item[k]] >= g->to;
	}
	return *at;
}

static void
clear_local(const om_schedule_index *x, const om_subproblem *g)
{
	for (uint32_t i = 0; i < g->nop; i++) {
		const uint32_t op = g->op[i];
		x->local_op[op] = OM_SCHEDULE_NONE;
		for (uint32_t k = 0; k < x->q->op[op].nover; k++)
			x->local_storage[x->q->op[op].over[k].made] = OM_SCHEDULE_NONE;
		for (uint32_t k = x->made.at[op]; k < x->made.at[op + 1]; k++)
			x->local_storage[x->made.item[k]] = OM_SCHEDULE_NONE;
		for (uint32_t k = x->need.at[op]; k < x->need.at[op + 1]; k++)
			x->local_storage[x->need.item[k]] = OM_SCHEDULE_NONE;
	}
}

static void
allocate_lists(const om_schedule_index *x, om_subproblem *g, om_arena *mem)
{
	uint64_t made = 0, need = 0, over = 0, early = 0, before = 0;

	for (uint32_t i = 0; i < g->nop; i++) {
		const uint32_t op = g->op[i];
		made += length(&x->made, op);
		need += length(&x->need, op);
		before += length(&x->before, op);
		over += 2 * (uint64_t)x->q->op[op].nover;
		early += x->q->op[op].ndies_early;
	}
	g->made = lists_new(mem, g->nop, made);
	g->need = lists_new(mem, g->nop, need);
	g->over = lists_new(mem, g->nop, over);
	g->early = lists_new(mem, g->nop, early);
	g->before = lists_new(mem, g->nunit, before);
	g->prev = lists_new(mem, g->nop, before);
	g->begin = OM_NEWN(mem, uint64_t, g->nop);
	g->middle = OM_NEWN(mem, uint64_t, g->nop);
	g->bytes = OM_NEWN(mem, uint64_t, made + need + over);  /* some have no user */
	g->producer = OM_NEWN(mem, uint32_t, made + need + over);
	g->live_out = OM_NEWN(mem, bool, made + need + over);
}

static void
add_op(const om_schedule_index *x, om_subproblem *g, uint32_t i)
{
	const uint32_t op = g->op[i];
	const om_schedule_op *from = &x->q->op[op];
	uint32_t n = g->made.at[i];

	g->begin[i] = from->begin;
	g->middle[i] = from->middle;
	for (uint32_t k = x->made.at[op]; k < x->made.at[op + 1]; k++) {
		const uint32_t s = local_storage(x, g, x->made.item[k]);
		g->producer[s] = i;
		g->made.item[n++] = s;
	}
	g->made.at[i + 1] = n;
	n = g->need.at[i];
	for (uint32_t k = x->need.at[op]; k < x->need.at[op + 1]; k++)
		g->need.item[n++] = local_storage(x, g, x->need.item[k]);
	g->need.at[i + 1] = n;
	n = g->over.at[i];
	for (uint32_t k = 0; k < from->nover; k++) {
		const uint32_t made = local_storage(x, g, from->over[k].made);
		g->producer[made] = i;
		g->over.item[n++] = made;
		g->over.item[n++] = local_storage(x, g, from->over[k].needed);
		g->has_choice |= k && from->over[k].made == from->over[k - 1].made;
	}
	g->over.at[i + 1] = n;
	n = g->early.at[i];
	for (uint32_t k = 0; k < from->ndies_early; k++)
		g->early.item[n++] = local_storage(x, g, from->early[k]);
	g->early.at[i + 1] = n;
}

/* Units are contiguous in the order, so they are ranges of positions. */
static void
add_units(om_subproblem *g, const uint32_t *unit_of, om_arena *mem)
{
	uint32_t *at = OM_NEWN(mem, uint32_t, (size_t)g->nop + 1);

	g->unit_of = OM_NEWN(mem, uint32_t, g->nop);
	for (uint32_t i = 0; i < g->nop; i++) {
		if (i == 0 || unit_of[g->op[i]] != unit_of[g->op[i - 1]])
			g->nunit++;
		g->unit_of[i] = g->nunit - 1;
		at[g->nunit] = i + 1;
	}
	g->unit = at;
}

static void
add_before(const om_schedule_index *x, om_subproblem *g, om_arena *mem)
{
	uint32_t n = 0, m = 0;

	for (uint32_t i = 0; i < g->nop; i++) {
		const uint32_t op = g->op[i], u = g->unit_of[i];
		for (uint32_t k = x->before.at[op]; k < x->before.at[op + 1]; k++) {
			const uint32_t j = x->local_op[x->before.item[k]];
			if (j == OM_SCHEDULE_NONE)
				continue;
			g->prev.item[m++] = j;
			if (g->unit_of[j] != u)
				g->before.item[n++] = j;
		}
		g->prev.at[i + 1] = m;
		g->before.at[u + 1] = n;
	}
	g->next = transpose(&g->prev, g->nop, g->nop, mem);
	om_lists units = {g->before.at, OM_NEWN(mem, uint32_t, (size_t)n + 1)};
	for (uint32_t k = 0; k < n; k++)
		units.item[k] = g->unit_of[g->before.item[k]];
	g->succ = transpose(&units, g->nunit, g->nunit, mem);
}

om_subproblem *
om_subproblem_new(const om_schedule_index *x, const uint32_t *order, const uint32_t *unit_of,
	uint32_t from, uint32_t to, uint64_t before, om_arena *mem)
{
	om_subproblem *g = OM_NEW(mem, om_subproblem);

	*g = (om_subproblem){.nop = to - from, .to = to, .words = (to - from + 63) / 64, .base = before};
	g->op = om_memdup(mem, order + from, g->nop * sizeof *g->op);
	for (uint32_t i = 0; i < g->nop; i++)
		x->local_op[g->op[i]] = i;
	add_units(g, unit_of, mem);
	allocate_lists(x, g, mem);
	for (uint32_t i = 0; i < g->nop; i++)
		add_op(x, g, i);
	add_before(x, g, mem);
	g->width = g->words + (g->nunit + 63) / 64;
	g->user = transpose(&g->need, g->nop, g->nstorage, mem);
	clear_local(x, g);
	return g;
}

/* ---- Moves. ---- */

/* Has storage `s` no use once `op`, one of its users, has run? */
static bool
dies_after(const om_subproblem *g, const uint64_t *set, uint32_t s, uint32_t op)
{
	if (g->live_out[s])
		return false;
	for (uint32_t k = g->user.at[s]; k < g->user.at[s + 1]; k++)
		if (g->user.item[k] != op && !om_set_has(set, g->user.item[k]))
			return false;
	return true;
}

bool
om_unit_is_ready(const om_subproblem *g, const uint64_t *set, uint32_t unit)
{
	for (uint32_t k = g->before.at[unit]; k < g->before.at[unit + 1]; k++)
		if (!om_set_has(set, g->before.item[k]))
			return false;
	return true;
}

static om_move
op_move(const om_subproblem *g, const uint64_t *set, uint64_t live_bytes, uint32_t i)
{
	uint64_t begin = live_bytes + g->begin[i], middle = live_bytes + g->middle[i];

	for (uint32_t k = g->over.at[i], done = OM_SCHEDULE_NONE; k < g->over.at[i + 1]; k += 2)
		if (g->over.item[k] != done && dies_after(g, set, g->over.item[k + 1], i)) {
			done = g->over.item[k];
			begin -= g->bytes[done];
		}
	for (uint32_t k = g->early.at[i]; k < g->early.at[i + 1]; k++)
		if (dies_after(g, set, g->early.item[k], i))
			middle -= g->bytes[g->early.item[k]];
	for (uint32_t k = g->made.at[i]; k < g->made.at[i + 1]; k++)
		live_bytes += g->bytes[g->made.item[k]];
	for (uint32_t k = g->need.at[i]; k < g->need.at[i + 1]; k++)
		if (dies_after(g, set, g->need.item[k], i))
			live_bytes -= g->bytes[g->need.item[k]];
	return (om_move){g->middle[i] && middle > begin ? middle : begin, live_bytes};
}

/* `set` is restored. */
om_move
om_unit_move(const om_subproblem *g, uint64_t *set, uint64_t live_bytes, uint32_t unit)
{
	om_move all = {0, live_bytes};

	for (uint32_t i = g->unit[unit]; i < g->unit[unit + 1]; i++) {
		const om_move m = op_move(g, set, all.live_bytes, i);
		all.step = m.step > all.step ? m.step : all.step;
		all.live_bytes = m.live_bytes;
		om_set_add(set, i);
	}
	for (uint32_t i = g->unit[unit]; i < g->unit[unit + 1]; i++)
		om_set_remove(set, i);
	return all;
}

void
om_set_add_unit(const om_subproblem *g, uint64_t *set, uint32_t unit)
{
	for (uint32_t i = g->unit[unit]; i < g->unit[unit + 1]; i++)
		om_set_add(set, i);
}

void
om_set_init(const om_subproblem *g, uint64_t *set)
{
	memset(set, 0, g->width * sizeof *set);
	for (uint32_t u = 0; u < g->nunit; u++)
		if (om_unit_is_ready(g, set, u))
			om_set_add(set + g->words, u);
}

void
om_set_run_unit(const om_subproblem *g, uint64_t *set, uint32_t unit)
{
	om_set_add_unit(g, set, unit);
	om_set_remove(set + g->words, unit);
	for (uint32_t k = g->succ.at[unit]; k < g->succ.at[unit + 1]; k++)
		if (om_unit_is_ready(g, set, g->succ.item[k]))
			om_set_add(set + g->words, g->succ.item[k]);
}

uint32_t
om_set_next_ready(const om_subproblem *g, const uint64_t *set, uint32_t unit)
{
	const uint64_t *ready = set + g->words;

	for (uint32_t w = unit / 64; w < g->width - g->words; w++) {
		const uint64_t left = w == unit / 64 ? ready[w] >> unit % 64 << unit % 64 : ready[w];
		if (left)
			return w * 64 + (uint32_t)__builtin_ctzll(left);
	}
	return g->nunit;
}

uint64_t
om_subproblem_peak(const om_subproblem *g, const uint32_t *order)
{
	om_arena *mem = om_arena_new();
	uint64_t *set = OM_NEWN(mem, uint64_t, g->words), live_bytes = g->base, most = 0;

	for (uint32_t k = 0; k < g->nop; k++) {
		const om_move m = op_move(g, set, live_bytes, order[k]);
		most = m.step > most ? m.step : most;
		live_bytes = m.live_bytes;
		om_set_add(set, order[k]);
	}
	om_arena_free(mem);
	return most;
}

/* ---- A bound. ---- */

enum { MAX_BITS = 1 << 26 };  /* of a relation between ops: 8 MiB */

/* The transitive predecessors, or successors, of each op as a set. */
static uint64_t *
closure(const om_subproblem *g, bool succ, om_arena *mem)
{
	const uint32_t w = g->words;
	uint64_t *all = OM_NEWN(mem, uint64_t, (size_t)g->nop * w);

	for (uint32_t n = 0; n < g->nop; n++) {
		const uint32_t i = succ ? g->nop - 1 - n : n;
		uint64_t *set = all + (size_t)i * w;
		const om_lists *l = succ ? &g->next : &g->prev;
		for (uint32_t k = l->at[i]; k < l->at[i + 1]; k++) {
			const uint64_t *other_set = all + (size_t)l->item[k] * w;
			for (uint32_t j = 0; j < w; j++)
				set[j] |= other_set[j];
			om_set_add(set, l->item[k]);
		}
	}
	return all;
}

/* Is op `i`, or one of its successors, a user of storage `s`? */
static bool
is_needed_from(const om_subproblem *g, const uint64_t *next, uint32_t s, uint32_t i)
{
	if (g->live_out[s])
		return true;
	for (uint32_t k = g->user.at[s]; k < g->user.at[s + 1]; k++)
		if (g->user.item[k] == i || om_set_has(next, g->user.item[k]))
			return true;
	return false;
}

/* Bytes that are live when op `i` starts, in every order. */
static uint64_t
always_live(const om_subproblem *g, const uint64_t *prev, const uint64_t *next, uint32_t i)
{
	uint64_t live_bytes = 0;

	for (uint32_t s = 0; s < g->nstorage; s++) {
		const uint32_t producer = g->producer[s];
		if ((producer == OM_SCHEDULE_NONE || om_set_has(prev, producer)) && is_needed_from(g, next, s, i))
			live_bytes += g->bytes[s];
	}
	return live_bytes;
}

static uint64_t
least_during(const om_subproblem *g, const uint64_t *prev, const uint64_t *next, uint32_t i)
{
	const uint64_t live_bytes = always_live(g, prev, next, i);
	uint64_t begin = live_bytes + g->begin[i], middle = live_bytes + g->middle[i];
	for (uint32_t k = g->over.at[i], done = OM_SCHEDULE_NONE; k < g->over.at[i + 1]; k += 2)
		if (g->over.item[k] != done && !is_needed_from(g, next, g->over.item[k + 1], OM_SCHEDULE_NONE)) {
			done = g->over.item[k];
			begin -= g->bytes[done];
		}
	for (uint32_t k = g->early.at[i]; k < g->early.at[i + 1]; k++)
		if (!is_needed_from(g, next, g->early.item[k], OM_SCHEDULE_NONE))
			middle -= g->bytes[g->early.item[k]];
	return g->middle[i] && middle > begin ? middle : begin;
}

/* The bytes that an op requires by itself, if there are too many ops for a closure. */
static uint64_t
least_alone(const om_subproblem *g, uint32_t i)
{
	uint64_t live_bytes = g->begin[i];

	for (uint32_t k = g->need.at[i]; k < g->need.at[i + 1]; k++)
		live_bytes += g->bytes[g->need.item[k]];
	for (uint32_t k = g->over.at[i], done = OM_SCHEDULE_NONE; k < g->over.at[i + 1]; k += 2)
		if (g->over.item[k] != done) {
			done = g->over.item[k];
			live_bytes -= g->bytes[done];
		}
	return live_bytes;
}

/* The largest lower bound of the bytes live at any of its ops in every order. */
uint64_t
om_subproblem_bound(const om_subproblem *g)
{
	om_arena *mem = om_arena_new();
	const bool small = (uint64_t)g->nop * g->nop <= MAX_BITS;
	const uint64_t *prev = small ? closure(g, false, mem) : NULL;
	const uint64_t *next = small ? closure(g, true, mem) : NULL;
	uint64_t fixed = g->base, most = 0;

	for (uint32_t s = 0; s < g->nstorage; s++)
		if (g->producer[s] == OM_SCHEDULE_NONE)
			fixed -= g->bytes[s];
	for (uint32_t i = 0; i < g->nop; i++) {
		const size_t at = (size_t)i * g->words;
		const uint64_t least = fixed + (small ? least_during(g, prev + at, next + at, i) : least_alone(g, i));
		most = least > most ? least : most;
	}
	om_arena_free(mem);
	return most;
}
