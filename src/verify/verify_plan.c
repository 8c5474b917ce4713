/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier of plans.
 *
 * It does not rely on results of passes or packers: it simulates the run that the program describes
 * and tracks, for every byte, which value's content is stored there. A read must find the whole value;
 * a write takes ownership of its bytes.  A value that is overwritten too early is detected when it is
 * read again.
 *
 * Branches are each simulated from the same state, loops iteration by iteration until the state can
 * only repeat; see verify_control_flow.c and verify_loop.c.
 *
 * An op that finds inputs at their final offsets in its output writes the bytes around them: the
 * content of the output then consists of pieces, which include those of the inputs.
 *
 * A plan that must hold in every order is simulated in the order of the file, and the recorded
 * accesses are checked in verify_partial_order.c.
 *
 * Kernels are assumed to write only the bytes of a value; the operator definition declares which
 * output may overwrite an input of its own op.
 */
#include <config.h>

#include <inttypes.h>

#include "base/guard.h"
#include "ir/query.h"
#include "opdef/max_sizes.h"
#include "verify/simulator.h"
#include "verify/verify_devices.h"
#include "verify/verify_plan.h"
#include "verify/verify_worker_streams.h"

/* ---- Static checks of the plan. ---- */

static bool
is_weight(const om_value *v)
{
	return v->is_const || v->is_overridable;
}

static om_status
check_arena(struct sim *c, uint32_t k)
{
	const om_plan_arena *a = &c->plan->arena[k];

	if (a->align & (a->align - 1))
		return BAD(c, "arena %u: alignment %" PRIu64 " is not a power of two", k, a->align);
	if (a->limit && a->bytes > a->limit)
		return BAD(c, "arena %u requires %" PRIu64 " bytes, more than its limit of %" PRIu64, k,
			a->bytes, a->limit);
	return OM_OK;
}

static om_status
check_inside(struct sim *c, const char *what, uint32_t arena, uint64_t offset, uint64_t bytes)
{
	uint64_t end;

	if (arena >= c->plan->narena)
		return BAD(c, "%s is in arena %u, but the plan has %u", what, arena, c->plan->narena);
	if (__builtin_add_overflow(offset, bytes, &end) || end > c->plan->arena[arena].bytes)
		return BAD(c, "%s: offset %" PRIu64 " + %" PRIu64 " bytes exceeds arena %u, which has %" PRIu64, what, offset, bytes, arena, c->plan->arena[arena].bytes);
	return OM_OK;
}

static om_status
check_aligned(struct sim *c, const char *what, uint32_t arena, uint64_t offset)
{
	const uint64_t align = c->plan->arena[arena].align;

	if (align > 1 && offset & (align - 1))
		return BAD(c, "%s: offset %" PRIu64 " is not a multiple of %" PRIu64 ", the alignment of arena %u",
			what, offset, align, arena);
	return OM_OK;
}

static om_status
locate_in_arena(struct sim *c, const om_value *v, bool sized)
{
	const om_placement *at = &c->plan->place[v->id];
	struct home *h = &c->home[v->id];

	if (!sized)
		return BAD(c, "%s is planned, but its size is not known", v->name);
	if (h->bytes == 0)
		return OM_OK;
	OM_TRY(check_inside(c, v->name, at->arena, at->offset, at->bytes));
	if (h->bytes > at->bytes)
		return BAD(c, "%s requires %" PRIu64 " bytes, but is planned with %" PRIu64, v->name, h->bytes,
			at->bytes);
	if (!c->alias[v->id])
		OM_TRY(check_aligned(c, v->name, at->arena, at->offset));
	h->tracked = true;
	h->space = at->arena;
	h->lower = at->offset;
	h->storage = at->bytes;
	return OM_OK;
}

/* Outside the arenas every value that is not an alias has a separate space. */
static om_status
locate_outside(struct sim *c, const om_value *v, bool sized)
{
	struct home *h = &c->home[v->id];
	const struct chain *chain = &c->chain[v->id];
	const om_value *root = c->p->values[chain->root];

	if (chain->overflows)
		return BAD(c, "%s: the offsets of its aliases overflow", v->name);
	h->lower = chain->offset;
	h->is_io_alias = chain->is_io_alias;
	const bool weight = c->plan->place[v->id].where == OM_WEIGHT;
	if (weight ? !is_weight(root) : !c->is_input[root->id] && !c->is_output[root->id]
	    && !root->is_overridable)
		return BAD(c, "%s is planned %s, but %s is %s", v->name,
			weight ? "as a constant" : "in the caller's memory", root->name,
			weight ? "not a constant" : "neither an input nor an output of the graph");
	h->tracked = sized && h->bytes;
	h->fixed = weight && c->mover[v->id] == OM_NOBODY;
	h->space = c->plan->narena + root->id;
	h->storage = h->bytes;
	return OM_OK;
}

/* Does `v`, of unknown size, have a place of its own, at the same address all the time, for as much as it may take? */
static bool
is_bounded(struct sim *c, const om_value *v)
{
	if (c->plan->place[v->id].where != OM_IN_ARENA || c->alias[v->id] || c->mover[v->id] != OM_NOBODY)
		return false;
	if (!c->most)
		c->most = om_planned_max_sizes_new(c->p, c->mem);
	c->home[v->id].bytes = c->most[v->id];
	return c->most[v->id] > 0;
}

static om_status
locate(struct sim *c, const om_value *v)
{
	struct home *h = &c->home[v->id];
	const bool sized = (v->type.kind == OM_TENSOR && om_tensor_bytes(v->type.elem, &v->shape, &h->bytes)) || is_bounded(c, v);

	switch (c->plan->place[v->id].where) {
	case OM_IN_ARENA: return locate_in_arena(c, v, sized);
	case OM_EXTERNAL: case OM_WEIGHT: return locate_outside(c, v, sized);
	case OM_UNUSED: case OM_UNPLANNED: break;
	}
	return OM_OK;
}

/* Does the output replace the input in the next run? */
static bool
is_state(const om_prog *p, const om_value *output, const om_value *input)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->first->result[p->io_alias[k].result] == output && p->first->param[p->io_alias[k].param] == input)
			return true;
	return false;
}

/* Whoever runs the plan goes on with the new elements of a state, and gives an input that is consumed again: the kind says
 * which, and has to be right. */
static om_status
check_io_alias(struct sim *c, const om_alias *a)
{
	const om_value *v = c->p->values[a->value], *source = c->p->values[a->source];

	if (!c->is_output[a->value] || !c->is_input[a->source])
		return BAD(c,
			"%s is an input/output alias of %s: only an output of the graph can be aliased to an "
			"input", v->name,
			source->name);
	if (a->kind == OM_ALIAS_IO && !is_state(c->p, v, source))
		return BAD(c, "%s is in the memory of input %s as its next state, but does not replace it in the next run", v->name, source->name);
	if (a->kind == OM_ALIAS_CONSUME && is_state(c->p, v, source))
		return BAD(c, "%s consumes input %s, but replaces it in the next run", v->name, source->name);
	return OM_OK;
}

/* Checks that an alias agrees with the placements; the simulation checks that the operators agree. */
static om_status
check_alias(struct sim *c, const om_alias *a)
{
	const om_value *v = c->p->values[a->value], *source = c->p->values[a->source];
	const struct home *h = &c->home[a->value], *s = &c->home[a->source];

	if (!h->tracked && (!s->tracked || h->bytes == 0))
		return OM_OK;
	if (!h->tracked || !s->tracked)
		return BAD(c, "%s shares the memory of %s, but only one of them has a placement", v->name,
			source->name);
	if (h->space != s->space || h->lower < s->lower || h->lower - s->lower != a->offset)
		return BAD(c, "%s (%s) is declared at byte %" PRIu64 " of %s (%s)", v->name,
			om_sim_location_text(c, v).s, a->offset, source->name, om_sim_location_text(c, source).s);
	if (a->kind == OM_ALIAS_VIEW || a->kind == OM_ALIAS_SUBBUFFER
	    ? h->bytes > s->bytes - a->offset || a->offset > s->bytes
	    : a->kind == OM_ALIAS_INPLACE ? h->bytes > s->bytes || a->offset : h->bytes != s->bytes || a->offset)
		return BAD(c, "%s has %" PRIu64 " bytes, a size that cannot share those of %s, which has %" PRIu64, v->name, h->bytes, source->name, s->bytes);
	return om_alias_is_io(a) ? check_io_alias(c, a) : OM_OK;
}

static om_status
collect_aliases(struct sim *c)
{
	for (uint32_t k = 0; k < c->plan->nalias; k++) {
		const om_alias *a = &c->plan->alias[k];
		if (a->value >= c->p->nvalue || a->source >= c->p->nvalue)
			return BAD(c, "an alias names a value that the program does not have");
		if (c->alias[a->value])
			return BAD(c, "%s has two aliases", c->p->values[a->value]->name);
		c->alias[a->value] = a;
	}
	return OM_OK;
}

static om_status
collect_scratch(struct sim *c)
{
	for (uint32_t k = 0; k < c->plan->nscratch; k++) {
		const om_scratch *s = &c->plan->scratch[k];
		if (s->op >= c->p->nop)
			return BAD(c, "scratch is planned for an op that the program does not have");
		if (c->scratch[s->op])
			return BAD(c, "scratch is planned twice for one op");
		OM_TRY(check_inside(c, "scratch", s->arena, s->offset, s->bytes));
		if (s->bytes)
			OM_TRY(check_aligned(c, "scratch", s->arena, s->offset));
		c->scratch[s->op] = s;
	}
	return OM_OK;
}

/* Continue the chain of a value's source, and find its mover. */
static om_status
extend_chain(struct sim *c, uint32_t v)
{
	const om_alias *a = c->alias[v];
	struct chain *chain = &c->chain[v];

	*chain = (struct chain){.root = v};
	if (a)
		*chain = c->chain[a->source];
	chain->is_known = true;
	if (a) {
		chain->overflows |= __builtin_add_overflow(chain->offset, a->offset, &chain->offset);
		chain->is_io_alias |= om_alias_is_io(a);
	}
	if (c->view[v]) {
		c->mover[v] = v;
	} else if (a && c->mover[a->source] != OM_NOBODY) {
		c->mover[v] = c->mover[a->source];
		if (__builtin_add_overflow(c->delta[a->source], a->offset, &c->delta[v]))
			return BAD(c, "%s: the offsets of its aliases overflow", c->p->values[v]->name);
	}
	return OM_OK;
}

/* Alias chains may be as long as the program: each hop is followed once, from the end. */
static om_status
find_chain(struct sim *c, uint32_t id, uint32_t *hop)
{
	uint32_t n = 0;

	for (; !c->chain[id].is_known; id = c->alias[id]->source) {
		if (n > c->p->nvalue)
			return BAD(c, "%s: its aliases form a cycle", c->p->values[id]->name);
		hop[n++] = id;
		if (!c->alias[id])
			break;
	}
	while (n-- > 0)
		OM_TRY(extend_chain(c, hop[n]));
	return OM_OK;
}

/* Iterations give addresses to the values of their body only. */
static om_status
check_followers(struct sim *c)
{
	for (uint32_t k = 0; k < c->p->nvalue; k++) {
		const om_value *v = c->p->values[k], *with = c->mover[k] == OM_NOBODY ? v : c->p->values[c->mover[k]];
		if (!om_block_inside(v->block, with->block))
			return BAD(c, "%s shares the memory of %s, which has no address where %s is used", v->name,
				with->name, v->name);
	}
	return OM_OK;
}

/* Group values by their mover. */
static void
list_followers(struct sim *c)
{
	const uint32_t n = c->p->nvalue;

	c->follow = OM_NEWN(c->mem, uint32_t, (size_t)n + 2);
	c->follower = OM_NEWN(c->mem, uint32_t, n);
	for (uint32_t k = 0; k < n; k++)
		if (c->mover[k] != OM_NOBODY)
			c->follow[c->mover[k] + 2]++;
	for (uint32_t k = 2; k < n + 2; k++)
		c->follow[k] += c->follow[k - 1];
	for (uint32_t k = 0; k < n; k++)
		if (c->mover[k] != OM_NOBODY)
			c->follower[c->follow[c->mover[k] + 1]++] = k;
}

static om_status
collect_views(struct sim *c)
{
	uint32_t *hop = OM_NEWN(c->mem, uint32_t, (size_t)c->p->nvalue + 2);

	for (uint32_t k = 0; k < c->plan->nview; k++) {
		const om_plan_multi_view *v = &c->plan->view[k];
		if (v->value >= c->p->nvalue)
			return BAD(c, "a multi-view is of a value that the program does not have");
		if (c->view[v->value])
			return BAD(c, "%s has two multi-views", c->p->values[v->value]->name);
		c->view[v->value] = v;
	}
	for (uint32_t k = 0; k < c->p->nvalue; k++)
		OM_TRY(find_chain(c, k, hop));
	list_followers(c);
	return check_followers(c);
}

/* Values called like one that was pinned are in its arena, if they are in one. */
static om_status
check_pin(struct sim *c, const om_pin *pin)
{
	uint32_t arena = 0;
	bool found = false;

	while (arena < c->plan->narena && strcmp(c->plan->arena[arena].name, pin->arena) != 0)
		arena++;
	if (arena == c->plan->narena)
		return BAD(c, "%s is pinned to the arena %s, which the plan does not have", pin->value, pin->arena);
	for (uint32_t k = 0; k < c->p->nvalue; k++) {
		const om_placement *at = &c->plan->place[k];
		if (strcmp(c->p->values[k]->name, pin->value) != 0)
			continue;
		found = true;
		if (at->where == OM_IN_ARENA && at->arena != arena)
			return BAD(c, "%s is pinned to the arena %s, but is in arena %u", pin->value, pin->arena, at->arena);
	}
	return found ? OM_OK : BAD(c, "%s is pinned to the arena %s, but the program has no value of this name", pin->value, pin->arena);
}

static om_status
check_plan(struct sim *c)
{
	const om_plan *plan = c->plan;

	if (plan->nplace != c->p->nvalue)
		return BAD(c, "the plan is for %u values, the program has %u", plan->nplace, c->p->nvalue);
	for (uint32_t k = 0; k < plan->narena; k++)
		OM_TRY(check_arena(c, k));
	OM_TRY(collect_aliases(c));
	OM_TRY(collect_scratch(c));
	OM_TRY(collect_views(c));
	for (uint32_t k = 0; k < c->p->nvalue; k++)
		OM_TRY(locate(c, c->p->values[k]));
	for (uint32_t k = 0; k < plan->npin; k++)
		OM_TRY(check_pin(c, &plan->pin[k]));
	for (uint32_t k = 0; k < plan->nalias; k++)
		OM_TRY(check_alias(c, &plan->alias[k]));
	OM_TRY(om_sim_check_devices(c));
	return om_sim_check_views(c);
}

/* ---- The simulation. ---- */

/* A moving value may temporarily be located in the memory of a constant, so the content of such a
 * constant is tracked; other constants cannot change. */
static void
fill_constant(struct sim *c, const om_region *r)
{
	const struct home *h = r->base == OM_NO_VALUE ? NULL : &c->home[r->base];

	if (!h || !h->fixed || !h->tracked || h->space < c->plan->narena)
		return;
	const uint32_t owner = h->space - c->plan->narena;
	const struct home *all = &c->home[owner];
	if (c->p->values[owner]->is_const)
		om_interval_map_set(c->state, &(om_owned_interval){all->space, all->lower, all->lower + all->bytes, owner, 0, false});
}

static void
fill_constants(struct sim *c)
{
	for (uint32_t k = 0; k < c->p->nvalue; k++)
		if (c->p->values[k]->is_const)
			c->content[k] = (struct content){.owner = k};
	for (uint32_t k = 0; k < c->plan->nview; k++) {
		const om_plan_multi_view *v = &c->plan->view[k];
		for (uint32_t i = 0; i < v->nprologue; i++)
			fill_constant(c, &v->first[i]);
		for (uint32_t i = 0; i < v->period; i++)
			fill_constant(c, &v->off[i]);
	}
}

/* The caller may fill inputs in any order, those that nothing reads too: they must not overlap. */
static om_status
check_filled(struct sim *c)
{
	om_owned_interval bad;

	for (uint32_t k = 0; k < c->p->first->nparam; k++) {
		const om_value *v = c->p->first->param[k];
		if (c->plan->place[v->id].where == OM_IN_ARENA && om_sim_is_watched(c, v) && !om_sim_is_there(c, v, &bad))
			return BAD(c, "the inputs %s (%s) and %s overlap", v->name, om_sim_location_text(c, v).s,
				om_sim_owner_text(c, bad.owner).s);
	}
	return OM_OK;
}

/* Inputs, in the caller's memory or in the arena, are there before the first step. */
static om_status
fill_inputs(struct sim *c)
{
	for (uint32_t k = 0; k < c->p->nvalue; k++)
		if (c->is_input[k] || c->p->values[k]->is_overridable)
			om_sim_take(c, c->p->values[k], false);
	fill_constants(c);
	return check_filled(c);
}

/* The plan must have been made for this order: its lifetimes cover all uses. */
static om_status
check_lifetime(struct sim *c, const om_value *v)
{
	const om_placement *at = &c->plan->place[v->id];

	if (c->gap[v->id] != UINT32_MAX)
		return BAD(c, "%s is used in step %u, but its lifetime in the plan has a gap before", v->name,
			c->gap[v->id]);
	if (!om_sim_is_watched(c, v) || at->where != OM_IN_ARENA || c->first[v->id] > c->last[v->id]
	    || (at->live.first <= c->first[v->id] && c->last[v->id] <= at->live.last))
		return OM_OK;
	return BAD(c, "%s is used in steps %u to %u, but planned to live from %u to %u: the plan is for "
		"another order", v->name, c->first[v->id], c->last[v->id], at->live.first, at->live.last);
}

/* An input in the arena whose lifetime includes the end of the run is intact then: the caller may pass it to the
 * next run without writing it again. */
static om_status
check_kept_inputs(struct sim *c)
{
	for (uint32_t k = 0; k < c->p->first->nparam; k++) {
		const om_value *v = c->p->first->param[k];
		const om_placement *at = &c->plan->place[v->id];
		if (at->where == OM_IN_ARENA && at->live.last >= c->now)
			OM_TRY(om_sim_check_whole(c, NULL, v));
	}
	return OM_OK;
}

/* Of a plan that is valid in more orders than that of the file. */
static om_status
start_parallel_check(struct sim *c)
{
	const om_worker_streams *streams = c->plan->streams;

	if (!c->plan->parallel_safe && !streams)
		return OM_OK;
	if (streams)
		OM_TRY(om_worker_streams_check(c->session, c->p, c->plan));
	c->parallel_check = om_parallel_check_new(c->session, c->p, streams, c->mem);
	if (streams)
		om_worker_streams_require(c->parallel_check, c->p, streams);
	return OM_OK;
}

static om_status
run_graph(struct sim *c)
{
	const om_block *b = c->p->first;

	OM_TRY(check_plan(c));
	OM_TRY(fill_inputs(c));
	OM_TRY(start_parallel_check(c));
	OM_TRY(om_sim_check_collectives(c));
	OM_TRY(om_sim_run_block(c, b));
	for (uint32_t k = 0; k < b->nresult; k++)
		OM_TRY(om_sim_read(c, NULL, b->result[k]));
	OM_TRY(check_kept_inputs(c));
	if (c->parallel_check)
		OM_TRY(om_parallel_check_run(c->parallel_check));
	for (uint32_t k = 0; k < c->p->nvalue; k++)
		OM_TRY(check_lifetime(c, c->p->values[k]));
	return om_sim_check_kept(c);
}

static uint32_t *
filled(om_arena *mem, size_t n, uint32_t with)
{
	uint32_t *all = OM_NEWN(mem, uint32_t, n);

	for (size_t k = 0; k < n; k++)
		all[k] = with;
	return all;
}

om_arena *
om_sim_arena(const struct sim *c)
{
	om_arena *a = om_arena_new();

	om_arena_limit(a, c->budget);
	return a;
}

static void
prepare(struct sim *c)
{
	const size_t n = c->p->nvalue;

	c->state = om_interval_map_new(c->mem);
	c->home = OM_NEWN(c->mem, struct home, n);
	c->content = OM_NEWN(c->mem, struct content, n);
	c->alias = OM_NEWN(c->mem, const om_alias *, n);
	c->chain = OM_NEWN(c->mem, struct chain, n);
	c->view = OM_NEWN(c->mem, const om_plan_multi_view *, n);
	c->mover = filled(c->mem, n, OM_NOBODY);
	c->delta = OM_NEWN(c->mem, uint64_t, n);
	c->scratch = OM_NEWN(c->mem, const om_scratch *, c->p->nop);
	c->first = filled(c->mem, n, UINT32_MAX);
	c->last = filled(c->mem, n, 0);
	c->since = filled(c->mem, n, 0);
	c->gap = filled(c->mem, n, UINT32_MAX);
	c->iteration_end = OM_NEWN(c->mem, uint32_t, n);
	c->victim = filled(c->mem, n, OM_NOBODY);
	c->is_input = OM_NEWN(c->mem, bool, n);
	c->is_output = OM_NEWN(c->mem, bool, n);
	for (size_t k = 0; k < n; k++)
		c->content[k].owner = OM_NOBODY;
	for (uint32_t k = 0; k < c->p->first->nparam; k++)
		c->is_input[c->p->first->param[k]->id] = true;
	for (uint32_t k = 0; k < c->p->first->nresult; k++)
		c->is_output[c->p->first->result[k]->id] = true;
}

static om_status
simulate(om_session *s, const om_prog *p, const om_plan *plan, const bool *any, struct om_budget *budget)
{
	struct sim c = {.p = p, .plan = plan, .session = s, .any_trip_count = any, .budget = budget};

	c.mem = om_sim_arena(&c);
	prepare(&c);
	const om_status st = run_graph(&c);
	om_op_look_end(&c.look);
	om_arena_free(c.mem);
	return st;
}

static om_status
simulate_guarded(om_session *s, const om_prog *p, const om_plan *plan, const bool *any, struct om_budget *budget)
{
	OM_GUARDED(s, simulate(s, p, plan, any, budget));
}

static om_status
verify_within(om_session *s, const om_prog *p, const om_plan *plan, const bool *any, uint64_t bytes)
{
	struct om_budget budget = {.left = bytes};
	const om_status st = simulate_guarded(s, p, plan, any, &budget);

	if (st != OM_MEMORY || !budget.is_exceeded)
		return st;
	return om_fail(s, OM_BADPLAN,
		"the plan requires more than %" PRIu64 " bytes to check: its multi-views have too many "
		"locations", bytes);
}

om_status
om_plan_verify_within(om_session *s, const om_prog *p, const om_plan *plan, uint64_t bytes)
{
	return verify_within(s, p, plan, NULL, bytes);
}

/* Everything that the simulation of a plan without views allocates is proportional to these. */
static uint64_t
count_entries(const om_prog *p, const om_plan *plan)
{
	uint64_t n = (uint64_t)p->nvalue + p->nop + p->nblock + plan->nplace + plan->nalias + plan->nscratch;

	for (const om_block *b = p->first; b; b = b->next) {
		n += b->nresult;
		for (const om_op *op = b->first; op; op = op->next)
			n += op->nin;
	}
	for (uint32_t k = 0; k < plan->nview; k++)
		n += 1 + (uint64_t)plan->view[k].nprologue + plan->view[k].period;
	return n;
}

enum { LEAST_BYTES = 64 << 20, BYTES_PER_ENTRY = 4096 };

om_status
om_plan_verify(om_session *s, const om_prog *p, const om_plan *plan)
{
	return om_plan_verify_trip_counts(s, p, plan, NULL);
}

om_status
om_plan_verify_trip_counts(om_session *s, const om_prog *p, const om_plan *plan, const bool *any)
{
	return verify_within(s, p, plan, any, LEAST_BYTES + BYTES_PER_ENTRY * count_entries(p, plan));
}
