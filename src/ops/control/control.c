/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inference of If, Loop and Scan; the executor runs them.
 *
 * The body of a Loop is inferred with the shapes of the initial values.  If the body yields another
 * shape for a carried value, the differing dims are opened and the body is inferred again, until
 * nothing changes: the fixed point holds in every iteration.  Data and shapes found in the body by
 * an earlier pass hold for the shapes of that pass only, so they are forgotten between passes. */
#include <config.h>

#include "base/mute.h"
#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ir/type.h"
#include "ops/family.h"
#include "opdef/op_context.h"
#include "ops/control/container.h"

/* The number of passes over a body multiplies with the nesting of loops, so deeper ones are given up sooner: from
 * DEEP on after two passes.  From DEEPER on a loop remembers what it had to open (om_block.carried_open), so that the next pass over an
 * outer body begins there: then the passes of all levels add up, and do not multiply. */
enum { MANY_PASSES = 4, DEEP = 4, DEEPER = 8 };

static om_prog *
program_of(const om_op_context *c)
{
	return c->op->block->prog;
}

static om_status
body_of(const om_op_context *c, const char *name, om_block **b)
{
	*b = om_attr_graph(c->op, name);
	if (!*b)
		return om_op_fail(c->session, OM_INVALID, c->op, "has no %s", name);
	return OM_OK;
}

static om_status
join_types(const om_op_context *c, const char *name, om_dtype *t, om_dtype other)
{
	if (*t == OM_UNDEFINED)
		*t = other;
	if (other != OM_UNDEFINED && other != *t)
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s is %s in one branch and %s in the other", name,
			om_dtype_text(*t), om_dtype_text(other));
	return OM_OK;
}

/* Unify two types; if one is unknown, the result is the other. */
static om_status
join_kinds(const om_op_context *c, const char *name, om_type *t, const om_type *other)
{
	if (t->kind == OM_TENSOR && other->kind == OM_TENSOR)
		return join_types(c, name, &t->elem, other->elem);
	if (t->kind == OM_TENSOR && t->elem == OM_UNDEFINED)
		*t = *other;
	if ((other->kind == OM_TENSOR && other->elem == OM_UNDEFINED) || om_type_equal(t, other))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "%s is a %s in one branch and a %s in the other%s", name,
		om_kind_text(t->kind), om_kind_text(other->kind), t->kind == other->kind ?
			", with different element types" : "");
}

/* Iteration counts, conditions, scanned inputs and stacked outputs. */
static om_status
check_tensor(const om_op_context *c, const om_value *v)
{
	if (!v || v->type.kind == OM_TENSOR)
		return OM_OK;
	return om_op_fail(c->session, OM_INVALID, c->op, "%s must be a tensor, but is a %s", v->name,
		om_kind_text(v->type.kind));
}

/* A trip count or a condition; of a type that is not known it may be one. */
static om_status
check_elements(const om_op_context *c, const om_value *v, om_dtype type)
{
	OM_TRY(check_tensor(c, v));
	if (!v || v->type.elem == OM_UNDEFINED || v->type.elem == type)
		return OM_OK;
	return om_op_fail(c->session, OM_INVALID, c->op, "%s is %s, expected %s", v->name, om_dtype_text(v->type.elem), om_dtype_text(type));
}

static bool
known_truth(const om_value *v, bool *truth)
{
	*truth = om_value_is(v, true);
	return *truth || om_value_is(v, false);
}

/* ---- Forgetting. ---- */

static void
forget_value(om_value *v)
{
	v->shape = om_shape_unknown();
	v->data = NULL;
	v->is_const = false;
}

/* Forget what was inferred in a body, and what the file declares there.  Results of unknown operators
 * keep their declared types and shapes, because they cannot be inferred again. */
static void
forget(om_block *b)
{
	for (om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nout && op->opdef; k++)
			if (op->out[k])
				forget_value(op->out[k]);
		for (uint32_t k = 0; k < op->nbody; k++) {
			for (uint32_t i = 0; i < op->body[k]->nparam; i++)
				forget_value(op->body[k]->param[i]);
			forget(op->body[k]);
		}
	}
}

/* ---- If. ---- */

struct branch {
	om_block *b;
	bool may_run;
	bool is_dead;        /* never taken: the condition is a constant */
};

static bool
is_never_taken(const om_op *op, const om_block *b)
{
	bool truth;

	return op->opdef && op->opdef->control == OM_IF && op->in[0] && known_truth(op->in[0], &truth)
	    && b != om_attr_graph(op, truth ? "then_branch" : "else_branch");
}

/* Inputs, outputs and bodies of ops, which do not depend on shapes. */
static om_status
check_ops(om_session *s, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		if (op->opdef)
			OM_TRY(om_op_check(s, op));
		for (uint32_t k = 0; k < op->nbody; k++)
			if (!is_never_taken(op, op->body[k]))
				OM_TRY(check_ops(s, op->body[k]));
	}
	return OM_OK;
}

/* A branch may never be taken for these shapes: if it cannot run on them, the other one must be
 * taken, and a warning says so, unless it is known that it is never taken.  Its ops are refused at run time.  Its values stay open, whatever the file declares: the
 * ops are not inferred to their end, so their sizes need not agree. */
static om_status
infer_branch(const om_op_context *c, const char *name, bool is_only, struct branch *b)
{
	OM_TRY(body_of(c, name, &b->b));
	om_session_mute(c->session, b->is_dead);
	const om_status st = om_block_infer(c->session, program_of(c), b->b);
	om_session_mute(c->session, -b->is_dead);
	b->may_run = st == OM_OK;
	b->b->cannot_run = !is_only && !b->is_dead && (st == OM_SHAPE || st == OM_INVALID);
	if (is_only || (st != OM_SHAPE && st != OM_INVALID))
		return st;
	if (!b->is_dead)
		om_warn(c->session, "%s of %s cannot run with these shapes: %s", name,
			*c->op->name ? c->op->name : "an If", om_message(c->session));
	if (!b->is_dead)
		OM_TRY(check_ops(c->session, b->b));
	forget(b->b);
	return OM_OK;
}

static om_status
infer_branches(const om_op_context *c, struct branch branch[2])
{
	static const char *const name[2] = {"else_branch", "then_branch"};
	bool truth = false;

	const bool decided = c->op->in[0] && known_truth(c->op->in[0], &truth);
	branch[!truth].is_dead = decided;
	OM_TRY(infer_branch(c, name[!truth], false, &branch[!truth]));
	OM_TRY(infer_branch(c, name[truth], decided || !branch[!truth].may_run, &branch[truth]));
	branch[!truth].may_run &= !decided;
	return OM_OK;
}

static om_status
open_result(const om_op_context *c, om_value *v, uint32_t k)
{
	om_shape shape = v->shape;
	char text[128];

	if (!om_shape_meet(&shape, &c->out[k].shape))
		return OM_OK;
	if (v->def && !v->def->opdef)
		return om_op_fail(c->session, OM_INVALID, c->op, "%s is declared with another shape than %s, which is %s", v->name,
			c->op->out[k] ? c->op->out[k]->name : "the output", om_shape_text(&c->out[k].shape, text, sizeof text));
	v->shape = shape;
	return OM_OK;
}

/* Sizes in which two branches differ, or a loop-carried value and its initial one, depend on data: a number that the
 * file declares for the output is wrong in one of the two cases. */
static void
open_declared(const om_op_context *c, uint32_t k, const om_shape *a, const om_shape *b)
{
	om_shape *declared = c->op->out[k] ? &c->op->out[k]->shape : NULL;
	const bool same_rank = a->rank == b->rank || a->rank == OM_RANK_UNKNOWN || b->rank == OM_RANK_UNKNOWN;

	if (declared && !same_rank)
		*declared = om_shape_unknown();
	for (int d = 0; declared && d < declared->rank && d < a->rank && d < b->rank; d++)
		if (a->dim[d] >= 0 && b->dim[d] >= 0 && a->dim[d] != b->dim[d]) {
			declared->dim[d] = OM_DIM_UNKNOWN;
			declared->sym[d] = NULL;
		}
}

static om_status
if_infer(om_op_context *c)
{
	struct branch branch[2] = {0};

	OM_TRY(check_elements(c, c->op->in[0], OM_BOOL));
	OM_TRY(infer_branches(c, branch));
	const bool first = branch[1].may_run;
	for (uint32_t k = 0; k < c->op->nout; k++) {
		const om_value *a = branch[first].b->result[k], *b = branch[!first].b->result[k];
		om_type type = a->type;
		OM_TRY(join_kinds(c, a->name, &type, &b->type));
		om_out_type(c, k, &type);
		c->out[k].shape = a->shape;
		if (branch[!first].may_run) {
			open_declared(c, k, &a->shape, &b->shape);
			om_shape_meet(&c->out[k].shape, &b->shape);
		} else if (!branch[!first].is_dead)
			OM_TRY(open_result(c, branch[!first].b->result[k], k));
	}
	return OM_OK;
}

/* ---- Bodies of loops. ---- */

/* A parameter gets the type and shape of input `k`, its initial value, as far as these are known.  What the file declares of a size
 * that a run decides is not used. */
static om_status
set_param(const om_op_context *c, om_value *param, uint32_t k, const om_type *type, const om_shape *shape)
{
	param->has_run_sizes = c->op->in[k]->has_run_sizes || c->op->in[k]->type.kind != OM_TENSOR;
	if (shape->rank != OM_RANK_UNKNOWN || c->op->in[k]->has_run_sizes)
		param->shape = *shape;
	return join_kinds(c, param->name, &param->type, type);
}

static int
depth_of(const om_block *b)
{
	int depth = 0;

	for (; b->owner; b = b->owner->block)
		depth++;
	return depth;
}

/* ---- Loop. ---- */

/* A number or Boolean that the loop passes to its body. */
static void
set_scalar_param(om_value *v, om_dtype t)
{
	const bool is_list = v->shape.rank == 1 && v->shape.dim[0] == 1;

	v->type = (om_type){.kind = OM_TENSOR, .elem = t};
	if (!is_list)
		v->shape = om_shape_of(0, NULL);
}

/* Open the dims that differ between carried values and the results of the body.  A carried value
 * may become an optional one. */
static om_status
relax(const om_op_context *c, om_block *body, bool *changed)
{
	*changed = false;
	for (uint32_t k = 2; k < body->nparam; k++) {
		om_value *param = body->param[k], *result = body->result[k - 1];
		if (param->type.kind != OM_OPTIONAL || !param->type.of || !om_type_equal(param->type.of, &result->type))
			OM_TRY(join_kinds(c, param->name, &param->type, &result->type));
		const bool differs = om_shape_meet(&param->shape, &result->shape);
		param->has_run_sizes |= differs;
		*changed |= differs;
	}
	return OM_OK;
}

/* What is open of the carried values of a deep loop: nothing, all dims, or ranks too. */
enum { OPEN_NOTHING, OPEN_DIMS, OPEN_RANKS };

static void
open_carried(om_block *body)
{
	for (uint32_t k = 2; k < body->nparam && body->carried_open > OPEN_NOTHING; k++) {
		om_shape *s = &body->param[k]->shape;
		*s = body->carried_open == OPEN_DIMS && s->rank != OM_RANK_UNKNOWN ? om_shape_open(s->rank) : om_shape_unknown();
	}
}

static om_status
infer_deep(const om_op_context *c, om_block *body)
{
	bool changed = true;

	while (changed) {
		open_carried(body);
		OM_TRY(om_block_infer(c->session, program_of(c), body));
		OM_TRY(relax(c, body, &changed));
		if (changed) {
			body->carried_open = body->carried_open == OPEN_NOTHING ? OPEN_DIMS : OPEN_RANKS;
			forget(body);
		}
	}
	return OM_OK;
}

static bool
is_outermost(const om_block *body)
{
	for (const om_block *b = body->owner->block; b->owner; b = b->owner->block)
		if (b->owner->opdef && b->owner->opdef->control == OM_LOOP)
			return false;
	return true;
}

/* An inference with other shapes begins anew. */
static void
close_carried(om_block *b)
{
	b->carried_open = OPEN_NOTHING;
	for (const om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nbody; k++)
			close_carried(op->body[k]);
}

static om_status
infer_rounds(const om_op_context *c, om_block *body)
{
	const int depth = depth_of(body);
	bool changed = true;
	int pass = depth > DEEP ? MANY_PASSES - 2 : 0;

	if (is_outermost(body))
		close_carried(body);
	if (depth > DEEPER)
		return infer_deep(c, body);
	for (; changed; pass++) {
		if (pass > 0)
			forget(body);
		for (uint32_t k = 2; k < body->nparam && pass >= MANY_PASSES; k++)
			body->param[k]->shape = om_shape_unknown();
		OM_TRY(om_block_infer(c->session, program_of(c), body));
		OM_TRY(relax(c, body, &changed));
	}
	return OM_OK;
}

/* Is `v` the condition parameter of the body, or constant true? */
static bool
stays_true(const om_block *body, const om_value *v)
{
	om_view_of of;

	for (;;) {
		if (v == body->param[1] || om_value_is(v, true))
			return true;
		if (!v->def || v->def->nout != 1 || v->type.elem != OM_BOOL || !om_op_view(v->def, 0, &of)
		    || !v->def->in[of.in] || v->def->in[of.in]->type.elem != OM_BOOL
		    || !om_shape_is_known(&v->def->in[of.in]->shape)
		    || om_shape_count(&v->def->in[of.in]->shape) != 1)
			return false;
		v = v->def->in[of.in];
	}
}

/* The trip count; OM_DIM_UNKNOWN. */
static int64_t
trip_count(const om_op_context *c, const om_block *body)
{
	const om_value *cond = c->op->in[1];
	int64_t *most;
	size_t n;
	bool truth = true;

	if (cond && !known_truth(cond, &truth))
		return OM_DIM_UNKNOWN;
	if (!truth)
		return 0;
	if (!om_in_ints(c, 0, &most, &n) || n != 1)
		return OM_DIM_UNKNOWN;
	if (*most <= 0)
		return 0;
	return stays_true(body, body->result[0]) ? *most : OM_DIM_UNKNOWN;
}

/* The per-iteration results, stacked along an axis; -1: the last one. */
static om_status
stacked(const om_op_context *c, const om_value *each, int64_t n, const char *sym, int64_t axis, om_tensor *out)
{
	const om_shape *s = &each->shape;
	int at;

	OM_TRY(check_tensor(c, each));
	out->type = each->type.elem;
	if (s->rank == OM_RANK_UNKNOWN)
		return OM_OK;
	if (s->rank == OM_MAX_RANK)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "%s has too many dims", each->name);
	if (!om_axis(axis, s->rank + 1, &at))
		return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range for %s",
			(long long)axis, each->name);
	out->shape = om_shape_open(s->rank + 1);
	for (int k = 0, from = 0; k < out->shape.rank; k++) {
		out->shape.dim[k] = k == at ? n : s->dim[from];
		out->shape.sym[k] = k == at ? sym : s->sym[from];
		from += k != at;
	}
	return OM_OK;
}

static om_status
loop_outputs(om_op_context *c, const om_block *body)
{
	const uint32_t ncarried = body->nparam - 2;
	const int64_t n = trip_count(c, body);

	for (uint32_t k = 0; k < c->op->nout; k++) {
		const om_value *result = body->result[k + 1];
		if (k >= ncarried) {
			OM_TRY(stacked(c, result, n, NULL, 0, &c->out[k]));
			continue;
		}
		om_out_type(c, k, &result->type);
		c->out[k].shape = result->shape;
		open_declared(c, k, &result->shape, &c->in[k + 2].shape);
		om_shape_meet(&c->out[k].shape, &c->in[k + 2].shape);
	}
	return OM_OK;
}

static om_status
loop_infer(om_op_context *c)
{
	om_block *body;

	OM_TRY(body_of(c, "body", &body));
	OM_TRY(check_elements(c, c->op->in[0], OM_INT64));
	OM_TRY(check_elements(c, c->op->in[1], OM_BOOL));
	set_scalar_param(body->param[0], OM_INT64);
	set_scalar_param(body->param[1], OM_BOOL);
	for (uint32_t k = 2; k < c->op->nin; k++) {
		if (!c->op->in[k])
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is omitted", k);
		OM_TRY(set_param(c, body->param[k], k, &c->op->in[k]->type, &c->in[k].shape));
	}
	OM_TRY(infer_rounds(c, body));
	OM_TRY(check_elements(c, body->result[0], OM_BOOL));
	return loop_outputs(c, body);
}

/* ---- Scan. ---- */

struct scan {
	om_block *body;
	uint32_t nstate, nscan;
	int64_t length;       /* trip count; or open, with a symbol if known */
	const char *sym;
};

static om_status
scan_lists(const om_op_context *c, const struct scan *s)
{
	static const char *const name[] = {
		"scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions",
	};

	for (int k = 0; k < 4; k++) {
		size_t n;
		const uint32_t want = k < 2 ? s->nscan : c->op->nout - s->nstate;
		if (om_attr_ints(c->op, name[k], &n) && n != want)
			return om_op_fail(c->session, OM_INVALID, c->op,
				"%s has %zu elements, expected %u", name[k], n, want);
	}
	return OM_OK;
}

/* The slice of a scan input for one iteration. */
static om_status
scan_slice(const om_op_context *c, struct scan *s, uint32_t k)
{
	const om_tensor *in = &c->in[s->nstate + k];
	const int64_t axis = om_attr_int_at(c->op, "scan_input_axes", k, 0);
	om_tensor part = {.type = in->type, .shape = om_shape_unknown()};
	int at;

	if (in->shape.rank >= 0) {
		if (!om_axis(axis, in->shape.rank, &at))
			return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range for input %u",
				(long long)axis, s->nstate + k);
		if (!om_dim_join(&s->length, &s->sym, in->shape.dim[at], in->shape.sym[at]))
			return om_op_fail(c->session, OM_SHAPE, c->op, "the scan inputs have lengths %lld and %lld",
				(long long)s->length, (long long)in->shape.dim[at]);
		part.shape = om_shape_open(in->shape.rank - 1);
		for (int d = 0, to = 0; d < in->shape.rank; d++) {
			if (d == at)
				continue;
			part.shape.dim[to] = in->shape.dim[d];
			part.shape.sym[to++] = in->shape.sym[d];
		}
	}
	return set_param(c, s->body->param[s->nstate + k], s->nstate + k, &c->op->in[s->nstate + k]->type, &part.shape);
}

static bool
join_shapes(om_shape *out, const om_shape *other)
{
	bool same = true;

	if (out->rank == OM_RANK_UNKNOWN)
		*out = *other;
	else if (other->rank != OM_RANK_UNKNOWN)
		same = out->rank == other->rank;
	for (int d = 0; d < out->rank && same && other->rank >= 0; d++)
		same = om_dim_join(&out->dim[d], &out->sym[d], other->dim[d], other->sym[d]);
	return same;
}

/* A state has the same shape in all iterations: facts from before and after an iteration are merged.  The
 * parameter has what the file declares where nothing is known from before. */
static om_status
scan_state(om_op_context *c, const struct scan *s, uint32_t k)
{
	const om_value *result = s->body->result[k];
	om_shape *out = &c->out[k].shape;
	const om_shape *before = &s->body->param[k]->shape;
	char a[256], b[256];

	c->out[k].type = s->body->param[k]->type.elem;
	OM_TRY(join_types(c, result->name, &c->out[k].type, result->type.elem));
	*out = result->shape;
	if (!join_shapes(out, before) || !join_shapes(out, &c->in[k].shape))
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"a state variable is %s before an iteration and %s after it",
			om_shape_text(before, a, sizeof a), om_shape_text(&result->shape, b, sizeof b));
	return OM_OK;
}

/* Check that all inputs from `from` on are tensors. */
static om_status
check_given(const om_op_context *c, uint32_t from)
{
	for (uint32_t k = from; k < c->op->nin; k++) {
		if (!c->op->in[k])
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is omitted", k);
		OM_TRY(check_tensor(c, c->op->in[k]));
	}
	return OM_OK;
}

static om_status
scan_infer(om_op_context *c)
{
	const int64_t nscan = om_attr_int(c->op, "num_scan_inputs");
	struct scan s = {.length = OM_DIM_UNKNOWN};

	OM_TRY(body_of(c, "body", &s.body));
	if (nscan < 1 || nscan > c->op->nin || c->op->nin - nscan > c->op->nout)
		return om_op_fail(c->session, OM_INVALID, c->op,
			"num_scan_inputs is %lld for %u inputs and %u outputs",
			(long long)nscan, c->op->nin, c->op->nout);
	s.nscan = (uint32_t)nscan;
	s.nstate = c->op->nin - s.nscan;
	OM_TRY(scan_lists(c, &s));
	OM_TRY(check_given(c, 0));
	for (uint32_t k = 0; k < s.nstate; k++)
		OM_TRY(set_param(c, s.body->param[k], k, &c->op->in[k]->type, &c->in[k].shape));
	for (uint32_t k = 0; k < s.nscan; k++)
		OM_TRY(scan_slice(c, &s, k));
	OM_TRY(om_block_infer(c->session, program_of(c), s.body));
	for (uint32_t k = 0; k < s.nstate; k++)
		OM_TRY(scan_state(c, &s, k));
	for (uint32_t k = s.nstate; k < c->op->nout; k++)
		OM_TRY(stacked(c, s.body->result[k], s.length, s.sym,
			om_attr_int_at(c->op, "scan_output_axes", k - s.nstate, 0), &c->out[k]));
	return OM_OK;
}

/* ---- Scan of version 8: batched. ----
 *
 * Its first input, which is optional, holds the length of each sequence of the batch; axis 0 of all
 * other inputs is the batch, axis 1 the sequence. */

static om_shape
without_front(const om_shape *s, int n)
{
	om_shape part = om_shape_open(s->rank < n ? OM_RANK_UNKNOWN : s->rank - n);

	for (int k = 0; k < part.rank; k++) {
		part.dim[k] = s->dim[k + n];
		part.sym[k] = s->sym[k + n];
	}
	return part;
}

struct batch {
	int64_t n, length;
	const char *nsym, *lsym;
};

static om_status
batch_params(const om_op_context *c, om_block *body, uint32_t nstate, struct batch *b)
{
	for (uint32_t k = 1; k < c->op->nin; k++) {
		const om_shape *s = &c->in[k].shape;
		const bool scanned = k > nstate;
		const om_shape part = without_front(s, 1 + scanned);
		if (s->rank >= 0 && s->rank < 1 + scanned)
			return om_op_fail(c->session, OM_SHAPE, c->op, "input %u has no batch axis%s", k,
				scanned ? " or no sequence axis" : "");
		if (s->rank > 0 && (!om_dim_join(&b->n, &b->nsym, s->dim[0], s->sym[0])
		    || (scanned && !om_dim_join(&b->length, &b->lsym, s->dim[1], s->sym[1]))))
			return om_op_fail(c->session, OM_SHAPE, c->op, "the inputs differ in batch size or length");
		OM_TRY(set_param(c, body->param[k - 1], k, &c->op->in[k]->type, &part));
	}
	return OM_OK;
}

static om_status
batch_infer(om_op_context *c)
{
	const int64_t nscan = om_attr_int(c->op, "num_scan_inputs");
	struct batch b = {.n = OM_DIM_UNKNOWN, .length = OM_DIM_UNKNOWN};
	om_block *body;
	om_tensor rows;

	OM_TRY(body_of(c, "body", &body));
	if (nscan < 1 || nscan >= c->op->nin || c->op->nin - 1 - nscan > c->op->nout)
		return om_op_fail(c->session, OM_INVALID, c->op,
			"num_scan_inputs is %lld for %u inputs and %u outputs",
			(long long)nscan, c->op->nin, c->op->nout);
	const uint32_t nstate = c->op->nin - 1 - (uint32_t)nscan;
	OM_TRY(check_given(c, 1));
	OM_TRY(check_tensor(c, c->op->in[0]));
	OM_TRY(batch_params(c, body, nstate, &b));
	OM_TRY(om_block_infer(c->session, program_of(c), body));
	for (uint32_t k = 0; k < c->op->nout; k++) {
		om_value each = *body->result[k];
		if (k >= nstate) {
			OM_TRY(stacked(c, &each, b.length, b.lsym, 0, &rows));
			each.shape = rows.shape;
		}
		OM_TRY(stacked(c, &each, b.n, b.nsym, 0, &c->out[k]));
	}
	return OM_OK;
}

/* ---- SequenceMap. ---- */

static om_status
each_infer(om_op_context *c)
{
	om_block *body;

	OM_TRY(body_of(c, "body", &body));
	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!c->op->in[k])
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is omitted", k);
		const om_type *type = &c->op->in[k]->type;
		const bool is_list = type->kind == OM_SEQUENCE;
		if (!is_list && (k == 0 || type->kind != OM_TENSOR))
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is a %s", k, om_kind_text(type->kind));
		OM_TRY(set_param(c, body->param[k], k, is_list && type->of ? type->of : type, &c->in[k].shape));
	}
	OM_TRY(om_block_infer(c->session, program_of(c), body));
	for (uint32_t k = 0; k < c->op->nout; k++) {
		OM_TRY(check_tensor(c, body->result[k]));
		om_out_type(c, k, om_sequence_of(body->result[k]->type.elem));
		c->out[k].shape = body->result[k]->shape;
	}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec if_attrs[] = {
	{.name = "else_branch", .kind = OM_ATTR_GRAPH, .required = true},
	{.name = "then_branch", .kind = OM_ATTR_GRAPH, .required = true},
	{0}
};

static const om_attr_spec loop_attrs[] = {
	{.name = "body", .kind = OM_ATTR_GRAPH, .required = true},
	{0}
};

static const om_attr_spec batch_attrs[] = {
	{.name = "body", .kind = OM_ATTR_GRAPH, .required = true},
	{.name = "directions", .kind = OM_ATTR_INTS},
	{.name = "num_scan_inputs", .kind = OM_ATTR_INT, .required = true},
	{0}
};

static const om_attr_spec scan_attrs[] = {
	{.name = "body", .kind = OM_ATTR_GRAPH, .required = true},
	{.name = "num_scan_inputs", .kind = OM_ATTR_INT, .required = true},
	{.name = "scan_input_axes", .kind = OM_ATTR_INTS},
	{.name = "scan_input_directions", .kind = OM_ATTR_INTS},
	{.name = "scan_output_axes", .kind = OM_ATTR_INTS},
	{.name = "scan_output_directions", .kind = OM_ATTR_INTS},
	{0}
};

const om_opdef om_ops_control[] = {
	{.domain = "", .name = "If", .brief = "one of two branches, by a condition", .since = 1,
	 .min_in = 1, .max_in = 1, .min_out = 1, .max_out = OM_VARIADIC, .control = OM_IF,
	 .attrs = if_attrs, .infer = if_infer},
	{.domain = "", .name = "Loop", .brief = "loop with loop-carried values",
	 .since = 1, .min_in = 2, .max_in = OM_VARIADIC, .min_out = 1, .max_out = OM_VARIADIC,
	 .control = OM_LOOP, .attrs = loop_attrs, .infer = loop_infer},
	{.domain = "", .name = "Scan", .brief = "scan over slices of batched sequences", .since = 8,
	 .until = 8, .min_in = 2, .max_in = OM_VARIADIC, .min_out = 1, .max_out = OM_VARIADIC,
	 .control = OM_SCAN, .attrs = batch_attrs, .infer = batch_infer},
	{.domain = "", .name = "Scan", .brief = "scan over slices of sequences", .since = 9,
	 .min_in = 1, .max_in = OM_VARIADIC, .min_out = 1, .max_out = OM_VARIADIC,
	 .control = OM_SCAN, .attrs = scan_attrs, .infer = scan_infer},
	{.domain = "", .name = "SequenceMap", .brief = "map of a body over sequences", .since = 17,
	 .min_in = 1, .max_in = OM_VARIADIC, .min_out = 1, .max_out = OM_VARIADIC,
	 .control = OM_SEQUENCE_MAP, .attrs = loop_attrs, .infer = each_infer},
	{0}
};
