/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's simulation of reads, writes and plain ops. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>

#include "ir/live_interval.h"
#include "opdef/op_rule.h"
#include "verify/simulator.h"

struct text
om_sim_bytes_text(const struct sim *c, uint32_t space, uint64_t lower, uint64_t upper)
{
	struct text t;
	const int n = snprintf(t.s, sizeof t.s, "bytes %" PRIu64 "..%" PRIu64 " of ", lower, upper - 1);

	if (space < c->plan->narena)
		snprintf(t.s + n, sizeof t.s - (size_t)n, "arena %u", space);
	else
		snprintf(t.s + n, sizeof t.s - (size_t)n, "the memory of %.160s",
			c->p->values[space - c->plan->narena]->name);
	return t;
}

struct text
om_sim_location_text(const struct sim *c, const om_value *v)
{
	const struct home *h = &c->home[v->id];
	return om_sim_bytes_text(c, h->space, h->lower, h->lower + h->bytes);
}

struct text
om_sim_owner_text(const struct sim *c, uint32_t owner)
{
	struct text t;

	if (owner == OM_NOBODY)
		snprintf(t.s, sizeof t.s, "nobody");
	else if (owner < c->p->nvalue)
		snprintf(t.s, sizeof t.s, "%.200s", c->p->values[owner]->name);
	else
		snprintf(t.s, sizeof t.s, "the scratch of an op");
	return t;
}

/* ---- Reading and writing. ---- */

/* Assign the bytes of `want` to its owner. */
void
om_sim_set(struct sim *c, const om_owned_interval *want)
{
	for (uint64_t at = want->lower; c->parallel_check && at < want->upper;) {
		const om_owned_interval old = om_interval_map_at(c->state, want->space, at);
		const uint64_t upper = old.upper < want->upper ? old.upper : want->upper, from = old.at + (at - old.lower);
		if (old.owner != OM_NOBODY && old.owner != want->owner)
			om_parallel_check_overwrite(c->parallel_check, c->node, want->owner, old.owner, from, from + (upper - at));
		at = upper;
	}
	if (c->parallel_check && want->lower < want->upper)
		om_parallel_check_touch(c->parallel_check, c->node, want->owner, want->at, want->at + (want->upper - want->lower));
	om_interval_map_set(c->state, want);
	if (c->log && want->lower < want->upper)
		OM_PUSH(c->log->mem, c->log->r, c->log->n, c->log->cap, *want);
}

/* A value that takes part in the run must have a placement of the right kind. */
static om_status
check_kind(struct sim *c, const om_op *op, const om_value *v)
{
	const om_location where = c->plan->place[v->id].where;

	if (where == OM_UNUSED)
		return BAD_AT(c, op, "%s has no placement in the plan", v->name);
	if (where == OM_IN_ARENA && v->is_overridable)
		return BAD_AT(c, op, "%s has a default value, but is planned in arena %u", v->name,
			c->plan->place[v->id].arena);
	if (v->is_const && where != OM_WEIGHT)
		return BAD_AT(c, op, "%s is a constant, but is not planned as one", v->name);
	return OM_OK;
}

/* Does the lifetime lead from `first` to this step, through the branches that were taken? */
static bool
is_live_since(const struct sim *c, const om_live_interval *live, uint32_t first)
{
	uint32_t step = c->now;

	for (const struct branch *b = c->branch;; b = b->outer) {
		while (b && b->begin > step)
			b = b->outer;
		if (!b || first >= b->begin)
			return om_live_interval_covers(live, first, step);
		if (!om_live_interval_covers(live, b->begin, step))
			return false;
		step = b->chosen;
	}
}

void
om_sim_touch(struct sim *c, const om_value *v)
{
	const om_placement *at = &c->plan->place[v->id];

	if (c->now < c->first[v->id])
		c->first[v->id] = c->now;
	if (c->now > c->last[v->id])
		c->last[v->id] = c->now;
	if (at->where == OM_IN_ARENA && at->live.nrange && !is_live_since(c, &at->live, c->since[v->id]))
		c->gap[v->id] = c->now;
}

void
om_sim_begin(struct sim *c, const om_value *v)
{
	c->since[v->id] = c->now;
	om_sim_touch(c, v);
}

/* The first piece that ends after byte `at`: pieces are in order. */
static size_t
piece_after(const struct content *is, uint64_t at)
{
	size_t lower = 0, upper = is->n;

	while (lower < upper) {
		const size_t mid = lower + (upper - lower) / 2;
		if (is->piece[mid].to <= at)
			lower = mid + 1;
		else
			upper = mid;
	}
	return lower;
}

/* The `*k`-th range of the content at `lower`.  Past the last one: false, and `*k` is less by their number. */
static bool
range_at(uint64_t lower, uint64_t bytes, const struct content *is, size_t *k, om_owned_interval *want)
{
	const uint64_t end = is->at + bytes;

	want->lower = lower;
	want->upper = lower + bytes;
	want->owner = is->owner;
	want->at = is->at;
	if (is->n == 0)
		return (*k)-- == 0;
	const size_t first = piece_after(is, is->at);
	const struct piece *p = *k < is->n - first ? &is->piece[first + *k] : NULL;
	if (!p || p->from >= end) {
		const size_t last = piece_after(is, end);
		*k -= last + (last < is->n && is->piece[last].from < end) - first;
		return false;
	}
	const uint64_t from = p->from > is->at ? p->from : is->at;
	want->lower = lower + (from - is->at);
	want->upper = lower + ((p->to < end ? p->to : end) - is->at);
	want->owner = p->owner;
	want->at = p->at + (from - p->from);
	return true;
}

/* The expected bytes of `v` when it is read: one range for each piece, at each possible location;
 * false past the last one. */
static bool
wanted(const struct sim *c, const om_value *v, size_t k, om_owned_interval *want)
{
	const struct home *h = &c->home[v->id];

	*want = (om_owned_interval){.space = h->space};
	if (range_at(h->lower, h->bytes, &c->content[v->id], &k, want))
		return true;
	for (uint32_t i = 0; i < h->nother; i++) {
		want->space = h->other[i].space;
		if (range_at(h->other[i].lower, h->bytes, &h->other[i].is, &k, want))
			return true;
	}
	return false;
}

/* Is `v` intact at its location? */
bool
om_sim_is_there(const struct sim *c, const om_value *v, om_owned_interval *bad)
{
	om_owned_interval want;

	for (size_t k = 0; wanted(c, v, k, &want); k++)
		if (!om_interval_map_holds(c->state, &want, bad))
			return false;
	return true;
}

bool
om_sim_is_watched(const struct sim *c, const om_value *v)
{
	return v && c->home[v->id].tracked && !c->home[v->id].fixed;
}

static void
note_read(struct sim *c, const om_value *v)
{
	om_owned_interval r;

	for (size_t k = 0; c->parallel_check && wanted(c, v, k, &r); k++)
		om_parallel_check_touch(c->parallel_check, c->node, r.owner, r.at, r.at + (r.upper - r.lower));
}

om_status
om_sim_check_whole(struct sim *c, const om_op *op, const om_value *v)
{
	om_owned_interval bad;

	OM_TRY(check_kind(c, op, v));
	if (!om_sim_is_watched(c, v))
		return OM_OK;
	if (c->content[v->id].owner == OM_NOBODY)
		return BAD_AT(c, op, "%s is read in step %u, but not computed yet", v->name, c->now);
	if (om_sim_is_there(c, v, &bad)) {
		note_read(c, v);
		return OM_OK;
	}
	return BAD_AT(c, op, "reads %s (%s) in step %u, but %s hold %s%s", v->name, om_sim_location_text(c, v).s, c->now,
		om_sim_bytes_text(c, bad.space, bad.lower, bad.upper).s, om_sim_owner_text(c, bad.owner).s,
		bad.stale ? ", from a body that ran before" : "");
}

om_status
om_sim_read(struct sim *c, const om_op *op, const om_value *v)
{
	if (!v)
		return OM_OK;
	om_sim_touch(c, v);
	return om_sim_check_whole(c, op, v);
}

/* Make `v` the owner of its bytes. */
void
om_sim_take(struct sim *c, const om_value *v, bool stale)
{
	const struct home *h = &c->home[v->id];

	if (!om_sim_is_watched(c, v))
		return;
	om_sim_set(c, &(om_owned_interval){h->space, h->lower, h->lower + h->storage, v->id, 0, stale});
	if (!stale)
		c->content[v->id] = (struct content){.owner = v->id};
}

om_status
om_sim_check_writable(struct sim *c, const om_op *op, const om_value *v)
{
	const struct home *h = &c->home[v->id];

	OM_TRY(check_kind(c, op, v));
	om_sim_begin(c, v);
	if (!h->tracked)
		return OM_OK;
	if (h->nother)
		return BAD_AT(c, op, "%s is written, but its address depends on the run", v->name);
	const uint32_t owner = h->space >= c->plan->narena ? h->space - c->plan->narena : OM_NOBODY;
	if (owner != OM_NOBODY && (c->p->values[owner]->is_const || (c->p->values[owner]->is_overridable && !h->is_io_alias)))
		return BAD_AT(c, op, "%s is written over a constant (%s)", v->name, om_sim_location_text(c, v).s);
	if (owner != OM_NOBODY && c->is_input[owner] && !h->is_io_alias)
		return BAD_AT(c, op, "%s is written over an input of the graph (%s)", v->name,
			om_sim_location_text(c, v).s);
	return OM_OK;
}

om_status
om_sim_write(struct sim *c, const om_op *op, const om_value *v)
{
	if (!v)
		return OM_OK;
	OM_TRY(om_sim_check_writable(c, op, v));
	om_sim_take(c, v, false);
	return OM_OK;
}

/* Check that a value written in this step is intact: no other write of the same step overlaps it. */
om_status
om_sim_check_written(struct sim *c, const om_op *op, const om_value *v)
{
	om_owned_interval bad;

	if (!om_sim_is_watched(c, v))
		return OM_OK;
	if (om_sim_is_there(c, v, &bad))
		return OM_OK;
	return BAD_AT(c, op, "%s (%s) and %s are written in the same step, and overlap", v->name,
		om_sim_location_text(c, v).s, om_sim_owner_text(c, bad.owner).s);
}

/* ---- Plain ops. ---- */

bool
om_sim_is_view(const struct sim *c, const om_value *v)
{
	const om_alias *a = c->alias[v->id];
	return a && a->kind == OM_ALIAS_VIEW;
}

om_owned_interval
om_sim_scratch_range(const struct sim *c, const om_op *op)
{
	const om_scratch *s = c->scratch[op->id];
	const uint32_t owner = c->p->nvalue + op->id;

	if (!s)
		return (om_owned_interval){0};
	return (om_owned_interval){s->arena, s->offset, s->offset + s->bytes, owner, 0, false};
}

static om_status
write_scratch(struct sim *c, const om_op *op)
{
	const om_scratch *s = c->scratch[op->id];
	const bool is_planned = c->plan->target == OM_TARGET_CPU || om_op_has_rule(op);
	const uint64_t need = is_planned ? om_op_scratch(op, c->plan->threads, c->plan->precise) : 0;
	const om_owned_interval r = om_sim_scratch_range(c, op);

	if (need > (s ? s->bytes : 0))
		return BAD_AT(c, op, "requires %" PRIu64 " bytes of scratch, but is planned with %" PRIu64, need,
			s ? s->bytes : 0);
	om_sim_set(c, &r);
	return OM_OK;
}

/* A view has all possible locations of its source. */
static om_status
view_others(struct sim *c, const om_op *op, const om_value *v, const om_value *in, uint64_t offset)
{
	const struct home *s = &c->home[in->id];
	struct home *h = &c->home[v->id];

	if (s->nother == 0 && h->nother == 0)
		return OM_OK;
	struct other *all = OM_NEWN(c->mem, struct other, s->nother);
	for (uint32_t k = 0; k < s->nother; k++) {
		all[k] = s->other[k];
		all[k].lower += offset;
		all[k].is.at += offset;
	}
	h->other = all;
	h->nother = s->nother;
	h->found = s->found;
	if (c->mover[v->id] != c->mover[in->id] || c->delta[v->id] != c->delta[in->id] + offset)
		return BAD_AT(c, op, "%s does not move with %s, whose bytes it views", v->name, in->name);
	return OM_OK;
}

/* Output `k` is planned as a view: nothing is written, and its content is that of the input which the
 * operator definition names. */
static om_status
define_view(struct sim *c, const om_op *op, uint32_t k)
{
	const om_value *v = op->out[k];
	const struct home *h = &c->home[v->id];
	om_view_of view;

	OM_TRY(check_kind(c, op, v));
	om_sim_begin(c, v);
	if (!h->tracked)
		return OM_OK;
	if (!om_op_look_view(&c->look, op, k, &view))
		return BAD_AT(c, op, "%s is planned as a view, but the operator computes it", v->name);
	const om_value *in = op->in[view.in];
	const struct home *s = &c->home[in->id];
	if (!s->tracked || h->space != s->space || h->lower - s->lower != view.offset)
		return BAD_AT(c, op, "%s (%s) is planned as a view, but is not at byte %" PRIu64 " of %s (%s)",
			v->name, om_sim_location_text(c, v).s, view.offset, in->name, om_sim_location_text(c, in).s);
	c->content[v->id] = c->content[in->id];
	c->content[v->id].at += view.offset;
	return view_others(c, op, v, in, view.offset);
}

static uint32_t
output_index(const om_op *op, uint32_t owner)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && op->out[k]->id == owner)
			return k;
	return UINT32_MAX;
}

/* An output may overwrite the start of an input, if the definition permits it and no other input has
 * those bytes. */
static om_status
check_over(struct sim *c, const om_op *op, uint32_t j, uint32_t owner)
{
	const om_value *in = op->in[j];
	const uint32_t k = output_index(op, owner);

	if (k == UINT32_MAX)
		return BAD_AT(c, op, "%s overlaps input %s (%s)", om_sim_owner_text(c, owner).s, in->name,
			om_sim_location_text(c, in).s);
	const om_value *out = op->out[k];
	const struct home *h = &c->home[out->id], *s = &c->home[in->id];
	if (h->lower != s->lower || h->bytes > s->bytes)
		return BAD_AT(c, op, "output %s (%s) overlaps input %s (%s)", out->name, om_sim_location_text(c, out).s,
			in->name, om_sim_location_text(c, in).s);
	if (!om_op_look_inplace(&c->look, op, k, j))
		return BAD_AT(c, op, "output %s is stored over input %s (%s), which the operator does not allow",
			out->name, in->name, om_sim_location_text(c, in).s);
	if (c->victim[out->id] != OM_NOBODY && c->victim[out->id] != in->id)
		return BAD_AT(c, op, "output %s is stored over the inputs %s and %s (%s)", out->name,
			c->p->values[c->victim[out->id]]->name, in->name, om_sim_location_text(c, in).s);
	c->victim[out->id] = in->id;
	return OM_OK;
}

/* Check every owner that overwrote bytes of an input, range by range. */
static om_status
check_input_after(struct sim *c, const om_op *op, uint32_t j)
{
	const om_value *in = op->in[j];
	om_owned_interval bad, want;

	if (!om_sim_is_watched(c, in))
		return OM_OK;
	for (size_t k = 0; wanted(c, in, k, &want); k++)
		while (!om_interval_map_holds(c->state, &want, &bad)) {
			OM_TRY(check_over(c, op, j, bad.owner));
			want.at += bad.upper - want.lower;
			want.lower = bad.upper;
		}
	return OM_OK;
}

/* ---- Inputs that are sub-buffers of the output. ---- */

struct pieces {
	struct piece *p;
	size_t n, cap;
};

static void
add_piece(struct sim *c, struct pieces *all, struct piece p)
{
	struct piece *last = all->n ? &all->p[all->n - 1] : NULL;

	if (p.from >= p.to)
		return;
	if (last && last->to == p.from && last->owner == p.owner && last->at + (p.from - last->from) == p.at)
		last->to = p.to;
	else
		OM_PUSH(c->mem, all->p, all->n, all->cap, p);
}

/* The content of input `in` becomes that of the output from byte `offset` on. */
static void
add_input(struct sim *c, struct pieces *all, const om_value *in, uint64_t offset)
{
	const uint64_t lower = c->home[in->id].lower;
	om_owned_interval r;

	for (size_t k = 0; wanted(c, in, k, &r); k++)
		add_piece(c, all, (struct piece){offset + (r.lower - lower), offset + (r.upper - lower), r.owner, r.at});
}

/* Is input `j` located at its final offset in the output? */
static bool
is_in_place(struct sim *c, const om_op *op, uint32_t j, uint64_t *offset)
{
	const om_value *in = op->in[j];
	const struct home *h = &c->home[op->out[0]->id], *s;

	if (!om_sim_is_watched(c, in) || !om_op_look_subbuffer(&c->look, op, j, offset))
		return false;
	s = &c->home[in->id];
	if (s->nother)
		return false;
	return s->space == h->space && s->lower == h->lower + *offset && *offset <= h->bytes
	    && s->bytes <= h->bytes - *offset;
}

static bool
has_parts(struct sim *c, const om_op *op)
{
	uint64_t offset;

	if (!op->opdef || !(op->opdef->subbuffer || op->opdef->view) || !om_sim_is_watched(c, op->out[0]) || om_sim_is_view(c, op->out[0]))
		return false;
	for (uint32_t j = 0; j < op->nin; j++)
		if (is_in_place(c, op, j, &offset))
			return true;
	return false;
}

/* The op writes its first output except for the inputs that are stored there already. */
static om_status
write_between(struct sim *c, const om_op *op)
{
	const om_value *out = op->out[0];
	const struct home *h = &c->home[out->id];
	struct pieces all = {0};
	uint64_t at = 0, offset;

	OM_TRY(om_sim_check_writable(c, op, out));
	for (uint32_t j = 0; j <= op->nin; j++) {
		if (j < op->nin && !is_in_place(c, op, j, &offset))
			continue;
		const uint64_t end = j < op->nin ? offset : h->bytes;
		if (end < at)
			return BAD_AT(c, op, "%s overlaps another input in output %s", op->in[j]->name, out->name);
		om_sim_set(c, &(om_owned_interval){h->space, h->lower + at,
			h->lower + (j < op->nin ? end : h->storage), out->id, at, false});
		add_piece(c, &all, (struct piece){at, end, out->id, at});
		if (j == op->nin)
			break;
		add_input(c, &all, op->in[j], offset);
		at = offset + c->home[op->in[j]->id].bytes;
	}
	c->content[out->id] = (struct content){out->id, 0, all.p, all.n};
	return OM_OK;
}

static bool
reads_elements(const om_op *op)
{
	return !op->opdef || !(op->opdef->flags & OM_SHAPE_ONLY);
}

om_status
om_sim_write_outputs(struct sim *c, const om_op *op)
{
	om_owned_interval bad;

	OM_TRY(write_scratch(c, op));
	const bool parts = has_parts(c, op);
	if (parts)
		OM_TRY(write_between(c, op));
	for (uint32_t k = parts; k < op->nout; k++)
		if (op->out[k] && !om_sim_is_view(c, op->out[k]))
			OM_TRY(om_sim_write(c, op, op->out[k]));
	for (uint32_t k = 0; k < op->nin && reads_elements(op); k++)
		OM_TRY(check_input_after(c, op, k));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !om_sim_is_view(c, op->out[k]))
			OM_TRY(om_sim_check_written(c, op, op->out[k]));
	const om_owned_interval r = om_sim_scratch_range(c, op);
	if (!om_interval_map_holds(c->state, &r, &bad))
		return BAD_AT(c, op, "its scratch (%s) and output %s overlap",
			om_sim_bytes_text(c, r.space, r.lower, r.upper).s, om_sim_owner_text(c, bad.owner).s);
	return OM_OK;
}

om_status
om_sim_run_plain(struct sim *c, const om_op *op)
{
	c->now = c->step++;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			c->victim[op->out[k]->id] = OM_NOBODY;
	for (uint32_t k = 0; k < op->nin && reads_elements(op); k++)
		OM_TRY(om_sim_read(c, op, op->in[k]));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && om_sim_is_view(c, op->out[k]))
			OM_TRY(define_view(c, op, k));
	return om_sim_write_outputs(c, op);
}
