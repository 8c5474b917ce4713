/* inplace: compute values where they go, or over what is not needed any more.
 *
 * First, inputs that an op would copy into its output, Concat's, are computed right
 * there: the operator's row says where that is.  Inputs that share storage go
 * together.  The output may go into another one's in turn, so parts nest to any
 * depth.
 *
 * Then, an output is computed over an input.  The row says which may lie over
 * which.  It does, when this op is the last to need the input's bytes: nobody
 * whose bytes they are too, a view or what was computed there before, is read
 * later, nor by this op through another of its inputs.  Values that a body uses
 * live as long as the op that holds the body, and what goes round a loop as long
 * as the loop, so neither is ever overwritten inside.
 *
 * The results of the graph lie in memory of the caller, which is there from the
 * start: what leads to them may be computed there.
 *
 * Where several inputs would do, one of as many bytes is taken before a larger
 * one; then that with the larger, then with the longer-lived storage.
 *
 * Parts lie where their whole does, which may leave holes: where the arena is larger
 * than what is in use at its peak, it is tried without them.
 *
 * Who may move where is for om_alias_sets_merge_at() and om_alias_sets_merge_inplace() to decide, and
 * an alias is written there only, together with the move that it stands for.
 */
#include <config.h>

#include <string.h>

#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

struct inplace {
	om_run *r;
	om_alias_sets *g;
	uint64_t parts;          /* how many there are */
};

/* May others be computed in the storage of `v`, before it is?  The memory of a
 * result of the graph is there from the start of a run: what is computed there
 * takes no room in the arena. */
static bool
may_hold(const om_alias_set *group, const om_value *v)
{
	return group && v->def && !v->is_const && om_value_bytes(v)
	    && (!group->is_outside || (group->root == v && !v->def->is_folded));
}

/* ---- Parts. ---- */

/* Could input `k` be computed right in the output? */
static bool
may_be_part(const struct inplace *w, const om_op *op, uint32_t k, uint64_t *offset)
{
	const om_value *v = op->in[k];
	const om_alias_set *group = v && !v->is_const ? om_alias_sets_find(w->g, v, NULL) : NULL;

	return group && group->bytes && group->root->def && group->root->block == op->block && om_value_bytes(v)
	    && om_op_subbuffer(op, k, offset);
}

/* All inputs from `k` on that lie in the storage of input `k`, as they would in the
 * output. */
static uint32_t
list_same(const struct inplace *w, const om_op *op, uint32_t k, om_alias_edge *same)
{
	const om_alias_set *group = om_alias_sets_find(w->g, op->in[k], NULL);
	uint64_t at, offset, base = 0;
	uint32_t n = 0;

	for (; k < op->nin; k++) {
		if (!op->in[k] || om_alias_sets_find(w->g, op->in[k], &at) != group || !may_be_part(w, op, k, &offset))
			continue;
		if (n && offset - at != base)
			continue;
		base = offset - at;
		same[n++] = (om_alias_edge){op->in[k], offset};
	}
	return n;
}

static void
place_parts(struct inplace *w, const om_op *op)
{
	om_value *out = op->out[0];
	const om_alias_set *own = om_alias_sets_find(w->g, out, NULL);
	om_alias_edge *same = OM_NEWN(w->r->scratch, om_alias_edge, op->nin);
	uint64_t offset;

	if (!may_hold(own, out) || out->store == OM_VIEW)
		return;
	for (uint32_t k = 0; k < op->nin; k++) {
		if (!may_be_part(w, op, k, &offset) || om_alias_sets_find(w->g, op->in[k], NULL) == own)
			continue;
		const uint32_t n = list_same(w, op, k, same);
		if (om_alias_sets_merge_at(w->g, out, same, n, OM_SUBBUFFER))
			w->parts += n;
	}
}

/* ---- Outputs over inputs. ---- */

struct candidate {
	om_value *v;
	uint64_t waste, bytes, life;
};

static bool
is_better(const struct candidate *a, const struct candidate *b)
{
	if (!b->v || a->waste != b->waste)
		return !b->v || a->waste < b->waste;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes;
	return a->life > b->life;
}

static bool
consider(const struct inplace *w, const om_op *op, uint32_t out, uint32_t in, struct candidate *c)
{
	om_value *v = op->in[in];
	const om_alias_set *to = v && !v->is_const ? om_alias_sets_find(w->g, v, NULL) : NULL;

	for (uint32_t k = 0; k < in; k++)
		if (op->in[k] == v)
			return false;
	if (!to || to->bytes == 0 || v->last > op->step || !om_op_inplace_allowed(op, out, v))
		return false;
	*c = (struct candidate){.v = v, .bytes = to->bytes, .life = to->last - to->first,
		.waste = om_value_bytes(v) - om_value_bytes(op->out[out])};
	return true;
}

static uint32_t
list_candidates(const struct inplace *w, const om_op *op, uint32_t out, struct candidate *all)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < op->nin; k++) {
		struct candidate c;
		if (!consider(w, op, out, k, &c))
			continue;
		uint32_t at = n++;
		for (; at && is_better(&c, &all[at - 1]); at--)
			all[at] = all[at - 1];
		all[at] = c;
	}
	return n;
}

static void
place_output(struct inplace *w, const om_op *op, uint32_t out)
{
	om_value *o = op->out[out];
	const om_alias_set *own = om_alias_sets_find(w->g, o, NULL);

	if (!may_hold(own, o) || (own->root != o && o->store != OM_SUBBUFFER))
		return;
	struct candidate *all = OM_NEWN(w->r->scratch, struct candidate, op->nin);
	const uint32_t n = list_candidates(w, op, out, all);
	for (uint32_t k = 0; k < n; k++)
		if (om_alias_sets_merge_inplace(w->g, o, all[k].v))
			return;
}

/* ---- Both. ---- */

static void
walk(struct inplace *w, const om_block *b, bool parts)
{
	for (const om_op *op = b->first; op; op = op->next) {
		if (parts && !op->is_folded && op->opdef && op->opdef->subbuffer)
			place_parts(w, op);
		for (uint32_t k = 0; k < op->nout && !parts; k++)
			if (op->out[k] && !op->is_folded && !op->nbody && op->opdef && op->opdef->inplace)
				place_output(w, op, k);
		for (uint32_t k = 0; k < op->nbody; k++)
			walk(w, op->body[k], parts);
	}
}

/* What is on the way to a result that `tie` put in the memory of an input. */
static bool
is_tied(const om_value *v)
{
	return v->store == OM_SUBBUFFER && v->source->store == OM_IO_ALIAS;
}

/* What an earlier run of this pass decided. */
static void
forget(om_prog *p)
{
	om_multi_views_forget(p);
	for (uint32_t k = 0; k < p->nvalue; k++) {
		om_value *v = p->values[k];
		if ((v->store == OM_INPLACE || v->store == OM_SUBBUFFER) && !is_tied(v))
			om_value_set_storage(v, OM_OWN, NULL, 0);
	}
}

/* Decide about all values; how many are parts. */
static uint64_t
decide(om_run *r, om_prog *p, bool parts)
{
	struct inplace w = {.r = r};

	forget(p);
	w.g = om_alias_sets_new(p, r->scratch);
	if (parts)
		walk(&w, p->first, true);
	walk(&w, p->first, false);
	return w.parts;
}

/* Bytes of the arena, and how far they are above what is in use at once. */
static om_status
measure(om_run *r, om_prog *p, uint64_t *height, uint64_t *gap)
{
	const om_buffers *b = om_buffers_new(p, r->scratch);
	om_pack_result result;

	OM_TRY(om_pack(r->session, b->buf, b->n, &result));
	*height = result.height;
	*gap = result.height - result.lower_bound;
	return OM_OK;
}

static om_status
try_without_parts(om_run *r, om_prog *p)
{
	uint64_t with, without, gap;

	OM_TRY(measure(r, p, &with, &gap));
	if (gap == 0)
		return OM_OK;
	decide(r, p, false);
	OM_TRY(measure(r, p, &without, &gap));
	if (without >= with)
		decide(r, p, true);
	return OM_OK;
}

static void
count(om_run *r, const om_prog *p)
{
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_value *v = p->values[k];
		if ((v->store != OM_INPLACE && v->store != OM_SUBBUFFER) || is_tied(v))
			continue;
		om_count(r, v->store == OM_SUBBUFFER ? "parts" : "outputs", 1);
		om_count(r, "bytes", om_value_bytes(v));
	}
}

static om_status
run(om_run *r, om_prog *p)
{
	const char *parts = om_option(r, "parts");
	const bool may = strcmp(parts, "no") != 0;

	if (may && strcmp(parts, "yes") != 0 && strcmp(parts, "try") != 0)
		return om_fail(r->session, OM_USAGE, "inplace: parts is yes, no or try, not %s", parts);
	if (decide(r, p, may) && strcmp(parts, "try") == 0 && !p->parallel_safe)
		OM_TRY(try_without_parts(r, p));
	count(r, p);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"parts", "try", "inputs of a join, right in its output: yes, no, or unless the arena is larger (try)"},
	{0}
};

static const om_pass_counter counters[] = {
	{"parts", "inputs that are computed right in the output"},
	{"outputs", "outputs that lie over an input"},
	{"bytes", "bytes of their own that these do without"},
	{0}
};

OM_PASS(
	.name = "inplace",
	.brief = "compute values where they go, or over what is not needed any more",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS,
	.gives = OM_HAS_STORE,
	.keeps = OM_HAS_ALL & ~OM_HAS_PLAN,
	.options = options,
	.counters = counters,
	.run = run)
