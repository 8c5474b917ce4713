/* If, Loop, Scan: the executor runs them; here is what they do to shapes.
 *
 * A Loop's body is inferred with the shapes of the initial values.  Where the
 * body gives a carried value another shape, what differs is opened and the body
 * is inferred again, until nothing changes: what holds then holds in every
 * round.  Data and shapes that an earlier pass found in the body held for that
 * pass's shapes only, so they are forgotten between passes.
 */
#include <config.h>

#include "ops/copy.h"
#include "ops/family.h"

/* Passes over a body multiply where loops are nested. */
enum { MANY_PASSES = 4, DEEP = 4 };

static om_prog *
program_of(const om_call *c)
{
	return c->op->block->prog;
}

static om_status
body_of(const om_call *c, const char *name, om_block **b)
{
	*b = om_attr_graph(c->op, name);
	if (!*b)
		return om_op_fail(c->session, OM_INVALID, c->op, "has no %s", name);
	return OM_OK;
}

static om_status
check_count(const om_call *c, const char *what, uint32_t have, uint32_t want)
{
	if (have == want)
		return OM_OK;
	return om_op_fail(c->session, OM_INVALID, c->op, "its body has %u %s, not %u", have, what, want);
}

static om_status
join_types(const om_call *c, const char *name, om_dtype *t, om_dtype other)
{
	if (*t == OM_UNDEFINED)
		*t = other;
	if (other != OM_UNDEFINED && other != *t)
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s is %s here and %s there", name,
			om_dtype_text(*t), om_dtype_text(other));
	return OM_OK;
}

/* What is true of both shapes.  True when that is less than was said by `s`. */
static bool
meet(om_shape *s, const om_shape *other)
{
	bool less = false;

	if (s->rank == OM_RANK_UNKNOWN)
		return false;
	if (s->rank != other->rank) {
		*s = om_shape_unknown();
		return true;
	}
	for (int k = 0; k < s->rank; k++) {
		const bool open = s->dim[k] < 0 && !s->sym[k];
		const bool same = s->dim[k] == other->dim[k] && (s->dim[k] >= 0
			|| (s->sym[k] && other->sym[k] && strcmp(s->sym[k], other->sym[k]) == 0));
		if (open || same)
			continue;
		s->dim[k] = OM_DIM_UNKNOWN;
		s->sym[k] = NULL;
		less = true;
	}
	return less;
}

static bool
known_truth(const om_value *v, bool *truth)
{
	if (!v->data || !v->data->data || v->type.elem != OM_BOOL || om_shape_count(&v->shape) != 1)
		return false;
	*truth = *(const uint8_t *)v->data->data;
	return true;
}

/* ---- If. ---- */

struct branch {
	om_block *b;
	bool may_run;
};

/* A branch may be one that these shapes never take: where it cannot run on them,
 * the other one has to.  Its ops stay open, and refuse at run time. */
static om_status
infer_branch(const om_call *c, const char *name, bool is_only, struct branch *b)
{
	OM_TRY(body_of(c, name, &b->b));
	OM_TRY(check_count(c, "results", b->b->nresult, c->op->nout));
	const om_status st = om_block_infer(program_of(c), b->b);
	b->may_run = st == OM_OK;
	if (is_only || (st != OM_SHAPE && st != OM_INVALID))
		return st;
	om_warn(c->session, "the %s of %s cannot run on these shapes: %s", name,
		*c->op->name ? c->op->name : "an If", om_message(c->session));
	return OM_OK;
}

static om_status
infer_branches(const om_call *c, struct branch branch[2])
{
	static const char *const name[2] = {"else_branch", "then_branch"};
	bool truth = false;

	const bool decided = c->op->in[0] && known_truth(c->op->in[0], &truth);
	OM_TRY(infer_branch(c, name[!truth], false, &branch[!truth]));
	OM_TRY(infer_branch(c, name[truth], decided || !branch[!truth].may_run, &branch[truth]));
	if (decided)
		branch[!truth].may_run = false;
	return OM_OK;
}

static om_status
if_infer(om_call *c)
{
	struct branch branch[2];

	OM_TRY(infer_branches(c, branch));
	const bool first = branch[1].may_run;
	for (uint32_t k = 0; k < c->op->nout; k++) {
		const om_value *a = branch[first].b->result[k], *b = branch[!first].b->result[k];
		c->out[k].type = a->type.elem;
		c->out[k].shape = a->shape;
		OM_TRY(join_types(c, a->name, &c->out[k].type, b->type.elem));
		if (branch[!first].may_run)
			meet(&c->out[k].shape, &b->shape);
	}
	return OM_OK;
}

/* ---- Bodies that run many times. ---- */

static void
forget_value(om_value *v)
{
	v->shape = om_shape_unknown();
	v->data = NULL;
	v->is_const = false;
}

/* What inference found out in a body.  Operators that are not known keep what
 * was declared: nobody will find it out again. */
static void
forget(om_block *b)
{
	for (om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nout && op->row; k++)
			if (op->out[k])
				forget_value(op->out[k]);
		for (uint32_t k = 0; k < op->nbody; k++) {
			for (uint32_t i = 0; i < op->body[k]->nparam; i++)
				forget_value(op->body[k]->param[i]);
			forget(op->body[k]);
		}
	}
}

/* A parameter takes type and shape of its initial value, where they are known. */
static om_status
set_param(const om_call *c, om_value *param, const om_tensor *initial)
{
	if (initial->shape.rank != OM_RANK_UNKNOWN)
		param->shape = initial->shape;
	if (param->type.kind != OM_TENSOR)
		return OM_OK;
	return join_types(c, param->name, &param->type.elem, initial->type);
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

/* A number or a truth that the loop hands to its body. */
static void
set_scalar_param(om_value *v, om_dtype t)
{
	const bool is_list = v->shape.rank == 1 && v->shape.dim[0] == 1;

	v->type.elem = t;
	if (!is_list)
		v->shape = om_shape_of(0, NULL);
}

/* Open what differs between carried values and what the body makes of them. */
static om_status
relax(const om_call *c, om_block *body, bool *changed)
{
	*changed = false;
	for (uint32_t k = 2; k < body->nparam; k++) {
		om_value *param = body->param[k], *result = body->result[k - 1];
		if (param->type.kind != OM_TENSOR)
			continue;
		OM_TRY(join_types(c, param->name, &param->type.elem, result->type.elem));
		*changed |= meet(&param->shape, &result->shape);
	}
	return OM_OK;
}

static om_status
infer_rounds(const om_call *c, om_block *body)
{
	bool changed = true;
	int pass = depth_of(body) > DEEP ? MANY_PASSES : 0;

	for (; changed; pass++) {
		if (pass > 0)
			forget(body);
		for (uint32_t k = 2; k < body->nparam && pass >= MANY_PASSES; k++)
			body->param[k]->shape = om_shape_unknown();
		OM_TRY(om_block_infer(program_of(c), body));
		OM_TRY(relax(c, body, &changed));
	}
	return OM_OK;
}

/* Is `v` the condition that the body was given, or true anyhow? */
static bool
stays_true(const om_block *body, const om_value *v)
{
	bool truth;
	om_view_of of;

	for (;;) {
		if (v == body->param[1] || (known_truth(v, &truth) && truth))
			return true;
		if (!v->def || v->def->nout != 1 || v->type.elem != OM_BOOL || !om_op_view(v->def, 0, &of)
		    || !v->def->in[of.in] || v->def->in[of.in]->type.elem != OM_BOOL
		    || !om_shape_is_known(&v->def->in[of.in]->shape)
		    || om_shape_count(&v->def->in[of.in]->shape) != 1)
			return false;
		v = v->def->in[of.in];
	}
}

/* How often the body runs; OM_DIM_UNKNOWN. */
static int64_t
rounds(const om_call *c, const om_block *body)
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

/* What each round gives, stacked along an axis; -1: the last one. */
static om_status
stacked(const om_call *c, const om_value *each, int64_t n, const char *sym, int64_t axis, om_tensor *out)
{
	const om_shape *s = &each->shape;
	int at;

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
loop_outputs(om_call *c, const om_block *body)
{
	const uint32_t ncarried = body->nparam - 2;
	const int64_t n = rounds(c, body);

	for (uint32_t k = 0; k < c->op->nout; k++) {
		const om_value *result = body->result[k + 1];
		if (k >= ncarried) {
			OM_TRY(stacked(c, result, n, NULL, 0, &c->out[k]));
			continue;
		}
		c->out[k].type = result->type.elem;
		c->out[k].shape = result->shape;
		meet(&c->out[k].shape, &c->in[k + 2].shape);
	}
	return OM_OK;
}

static om_status
loop_infer(om_call *c)
{
	om_block *body;

	OM_TRY(body_of(c, "body", &body));
	OM_TRY(check_count(c, "parameters", body->nparam, c->op->nin));
	OM_TRY(check_count(c, "results", body->nresult, c->op->nout + 1));
	if (c->op->nout + 2 < c->op->nin)
		return om_op_fail(c->session, OM_INVALID, c->op, "has %u outputs for %u carried values",
			c->op->nout, c->op->nin - 2);
	set_scalar_param(body->param[0], OM_INT64);
	set_scalar_param(body->param[1], OM_BOOL);
	for (uint32_t k = 2; k < c->op->nin; k++) {
		if (!c->op->in[k])
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is left out", k);
		OM_TRY(set_param(c, body->param[k], &c->in[k]));
	}
	OM_TRY(infer_rounds(c, body));
	return loop_outputs(c, body);
}

/* ---- Scan. ---- */

/* Element `k` of a list attribute; 0 without it. */
static int64_t
list_attr(const om_call *c, const char *name, uint32_t k)
{
	size_t n;
	const int64_t *v = om_attr_ints(c->op, name, &n);

	return v && k < n ? v[k] : 0;
}

struct scan {
	om_block *body;
	uint32_t nstate, nscan;
	int64_t length;       /* rounds; or open, with a symbol where known */
	const char *sym;
};

static om_status
scan_lists(const om_call *c, const struct scan *s)
{
	static const char *const name[] = {
		"scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions",
	};

	for (int k = 0; k < 4; k++) {
		size_t n;
		const uint32_t want = k < 2 ? s->nscan : c->op->nout - s->nstate;
		if (om_attr_ints(c->op, name[k], &n) && n != want)
			return om_op_fail(c->session, OM_INVALID, c->op, "%s has %zu elements, not %u", name[k], n, want);
	}
	return OM_OK;
}

/* One round's part of a scan input. */
static om_status
scan_slice(const om_call *c, struct scan *s, uint32_t k)
{
	const om_tensor *in = &c->in[s->nstate + k];
	const int64_t axis = list_attr(c, "scan_input_axes", k);
	om_tensor part = {.type = in->type, .shape = om_shape_unknown()};
	int at;

	if (in->shape.rank >= 0) {
		if (!om_axis(axis, in->shape.rank, &at))
			return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range for input %u",
				(long long)axis, s->nstate + k);
		if (!om_dim_join(&s->length, &s->sym, in->shape.dim[at], in->shape.sym[at]))
			return om_op_fail(c->session, OM_SHAPE, c->op, "its sequences are %lld and %lld long",
				(long long)s->length, (long long)in->shape.dim[at]);
		part.shape = om_shape_open(in->shape.rank - 1);
		for (int d = 0, to = 0; d < in->shape.rank; d++) {
			if (d == at)
				continue;
			part.shape.dim[to] = in->shape.dim[d];
			part.shape.sym[to++] = in->shape.sym[d];
		}
	}
	return set_param(c, s->body->param[s->nstate + k], &part);
}

/* A state has one shape in all rounds: what is said of it before and after a
 * round is true of both. */
static om_status
scan_state(om_call *c, const struct scan *s, uint32_t k)
{
	const om_value *result = s->body->result[k];
	om_shape *out = &c->out[k].shape;
	const om_shape *other = &c->in[k].shape;
	char a[256], b[256];
	bool same = true;

	c->out[k].type = s->body->param[k]->type.elem;
	OM_TRY(join_types(c, result->name, &c->out[k].type, result->type.elem));
	*out = result->shape;
	if (out->rank == OM_RANK_UNKNOWN)
		*out = *other;
	else if (other->rank != OM_RANK_UNKNOWN)
		same = out->rank == other->rank;
	for (int d = 0; d < out->rank && same && other->rank >= 0; d++)
		same = om_dim_join(&out->dim[d], &out->sym[d], other->dim[d], other->sym[d]);
	if (!same)
		return om_op_fail(c->session, OM_SHAPE, c->op, "a state is %s before a round, %s after it",
			om_shape_text(other, a, sizeof a), om_shape_text(&result->shape, b, sizeof b));
	return OM_OK;
}

static om_status
scan_infer(om_call *c)
{
	const int64_t nscan = om_attr_int(c->op, "num_scan_inputs");
	struct scan s = {.length = OM_DIM_UNKNOWN};

	OM_TRY(body_of(c, "body", &s.body));
	OM_TRY(check_count(c, "parameters", s.body->nparam, c->op->nin));
	OM_TRY(check_count(c, "results", s.body->nresult, c->op->nout));
	if (nscan < 1 || nscan > c->op->nin || c->op->nin - nscan > c->op->nout)
		return om_op_fail(c->session, OM_INVALID, c->op, "has %lld scan inputs of %u, and %u outputs",
			(long long)nscan, c->op->nin, c->op->nout);
	s.nscan = (uint32_t)nscan;
	s.nstate = c->op->nin - s.nscan;
	OM_TRY(scan_lists(c, &s));
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (!c->op->in[k])
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is left out", k);
	for (uint32_t k = 0; k < s.nstate; k++)
		OM_TRY(set_param(c, s.body->param[k], &c->in[k]));
	for (uint32_t k = 0; k < s.nscan; k++)
		OM_TRY(scan_slice(c, &s, k));
	OM_TRY(om_block_infer(program_of(c), s.body));
	for (uint32_t k = 0; k < s.nstate; k++)
		OM_TRY(scan_state(c, &s, k));
	for (uint32_t k = s.nstate; k < c->op->nout; k++)
		OM_TRY(stacked(c, s.body->result[k], s.length, s.sym,
			list_attr(c, "scan_output_axes", k - s.nstate), &c->out[k]));
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

static const om_attr_spec scan_attrs[] = {
	{.name = "body", .kind = OM_ATTR_GRAPH, .required = true},
	{.name = "num_scan_inputs", .kind = OM_ATTR_INT, .required = true},
	{.name = "scan_input_axes", .kind = OM_ATTR_INTS},
	{.name = "scan_input_directions", .kind = OM_ATTR_INTS},
	{.name = "scan_output_axes", .kind = OM_ATTR_INTS},
	{.name = "scan_output_directions", .kind = OM_ATTR_INTS},
	{0}
};

const om_row om_ops_control[] = {
	{.domain = "", .name = "If", .brief = "one of two bodies, as a condition says", .since = 1,
	 .min_in = 1, .max_in = 1, .min_out = 1, .max_out = OM_VARIADIC, .control = OM_IF,
	 .attrs = if_attrs, .infer = if_infer},
	{.domain = "", .name = "Loop", .brief = "a body run again and again, with values that it hands on",
	 .since = 1, .min_in = 2, .max_in = OM_VARIADIC, .min_out = 0, .max_out = OM_VARIADIC,
	 .control = OM_LOOP, .attrs = loop_attrs, .infer = loop_infer},
	{.domain = "", .name = "Scan", .brief = "a body run over the slices of sequences", .since = 9,
	 .min_in = 1, .max_in = OM_VARIADIC, .min_out = 1, .max_out = OM_VARIADIC,
	 .control = OM_SCAN, .attrs = scan_attrs, .infer = scan_infer},
	{0}
};
