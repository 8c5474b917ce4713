/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-elementwise: elementwise ops become one op, which computes all of them tile by tile.
 *
 * A group is an op and, transitively, the ops that compute its operands, if nothing else reads these and they have
 * the shape of the result.  Chain of org.onnxmem.cpu takes the place of the group.
 *
 * The group must not raise the live bytes at any op of the order.  Its inputs of the size of the result are live
 * until the chain runs, in place of what the group computes between.  With one such input this is the same number
 * of bytes.  With several, all of them have to be defined before the first op of the group; the chain then runs in
 * the place of that op, over one of them if it dies.  An op that would violate this stays outside of the group. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/layout.h"
#include "onnxmem/pass.h"
#include "opdef/op_context.h"
#include "opdef/rewrite_internal.h"

enum { MOST_STAGES = 32, MOST_INPUTS = 16 };

/* ---- Ops that can be stages. ---- */

/* The stage of an operator since a version; its parameters are the attributes `a` and `b`. */
static const struct function {
	const char *type, *stage;
	int since;
	uint32_t nin;
	const char *a, *b;
} functions[] = {
	{"Abs", "ABS", 1, 1, NULL, NULL},
	{"Add", "ADD", 7, 2, NULL, NULL},
	{"Clip", "CLIP", 11, 3, NULL, NULL},
	{"Div", "DIV", 7, 2, NULL, NULL},
	{"Elu", "ELU", 1, 1, "alpha", NULL},
	{"Erf", "ERF", 1, 1, NULL, NULL},
	{"Exp", "EXP", 1, 1, NULL, NULL},
	{"Gelu", "GELU", 1, 1, NULL, NULL},
	{"HardSigmoid", "HARD_SIGMOID", 1, 1, "alpha", "beta"},
	{"HardSwish", "HARD_SWISH", 1, 1, NULL, NULL},
	{"LeakyRelu", "LEAKY_RELU", 1, 1, "alpha", NULL},
	{"Log", "LOG", 1, 1, NULL, NULL},
	{"Max", "MAX", 8, 2, NULL, NULL},
	{"Min", "MIN", 8, 2, NULL, NULL},
	{"Mish", "MISH", 1, 1, NULL, NULL},
	{"Mul", "MUL", 7, 2, NULL, NULL},
	{"Neg", "NEG", 1, 1, NULL, NULL},
	{"PRelu", "PRELU", 7, 2, NULL, NULL},
	{"Pow", "SQUARE", 7, 2, NULL, NULL},
	{"Reciprocal", "RECIPROCAL", 1, 1, NULL, NULL},
	{"Relu", "RELU", 1, 1, NULL, NULL},
	{"Sigmoid", "SIGMOID", 1, 1, NULL, NULL},
	{"Silu", "SILU", 1, 1, NULL, NULL},
	{"Softplus", "SOFTPLUS", 1, 1, NULL, NULL},
	{"Sqrt", "SQRT", 1, 1, NULL, NULL},
	{"Sub", "SUB", 7, 2, NULL, NULL},
	{"Swish", "SWISH", 1, 1, "alpha", NULL},
	{"Tanh", "TANH", 1, 1, NULL, NULL},
	{0}
};

/* What an op computes as a stage. */
struct stage {
	const char *name;
	uint32_t nin;             /* operands: the first inputs */
	float p[2];
};

static bool
float_const(const om_value *v, float *is)
{
	if (!v->is_const || v->is_overridable || !v->data || !v->data->data || v->data->type != OM_FLOAT32
	    || !om_shape_is_known(&v->data->shape) || om_shape_count(&v->data->shape) != 1)
		return false;
	*is = *(const float *)v->data->data;
	return true;
}

/* Bounds that are constant. */
static bool
clip_stage(const om_op *op, struct stage *s)
{
	s->nin = 1;
	s->p[0] = -0x1.fffffep127f;
	s->p[1] = 0x1.fffffep127f;
	for (uint32_t k = 1; k < op->nin; k++)
		if (op->in[k] && !float_const(op->in[k], &s->p[k - 1]))
			return false;
	return true;
}

static bool
pow_stage(const om_op *op, struct stage *s)
{
	float exponent;

	s->nin = 1;
	if (!float_const(op->in[1], &exponent) || op->in[1]->shape.rank > op->out[0]->shape.rank)
		return false;
	s->name = exponent == 3 ? "CUBE" : exponent == 0.5f ? "POW_HALF" : exponent == -1 ? "RECIPROCAL" : s->name;
	return exponent == 2 || exponent == 3 || exponent == 0.5f || exponent == -1;
}

static const struct function *
function_of(const om_op *op)
{
	const struct function *f = functions;
	const bool is_known = *op->domain == '\0' || (strcmp(op->domain, OM_CPU_DOMAIN) == 0 && strcmp(op->type, "Silu") == 0)
		|| (strcmp(op->domain, "com.microsoft") == 0 && strcmp(op->type, "Gelu") == 0);

	while (is_known && f->type && strcmp(f->type, op->type) != 0)
		f++;
	return is_known && f->type && (*op->domain || op->version >= f->since) ? f : NULL;
}

static bool
is_float(const om_value *v)
{
	return v && om_lower_is_float(v) && om_shape_is_known(&v->shape);
}

/* False if the op is no stage. */
static bool
stage_of(const om_op *op, struct stage *s)
{
	const struct function *f = op && op->opdef && !op->is_folded && op->nout == 1 && op->out[0] ? function_of(op) : NULL;

	if (!f || op->nin == 0 || (op->nin != f->nin && strcmp(f->type, "Clip") != 0) || !is_float(op->out[0]))
		return false;
	*s = (struct stage){f->stage, f->nin, {f->a ? om_attr_float(op, f->a) : 0, f->b ? om_attr_float(op, f->b) : 0}};
	if (strcmp(f->type, "Clip") == 0 && !clip_stage(op, s))
		return false;
	if (strcmp(f->type, "Pow") == 0 && !pow_stage(op, s))
		return false;
	if (strcmp(f->type, "Gelu") == 0 && *op->domain == '\0' && om_attr_is(op, "approximate", "tanh"))
		s->name = "GELU_TANH";
	for (uint32_t k = 0; k < s->nin; k++)
		if (!is_float(op->in[k]))
			return false;
	return true;
}

/* ---- Groups. ---- */

struct group {
	om_op *op[MOST_STAGES];   /* the root is the first */
	uint32_t n;
	om_value *in[MOST_INPUTS];
	uint32_t nin;
	const om_op *at;          /* where the chain goes */
};

static bool
is_member(const struct group *g, const om_op *op)
{
	for (uint32_t k = 0; k < g->n; k++)
		if (g->op[k] == op)
			return true;
	return false;
}

static bool
is_read_by_group_only(const struct group *g, const om_value *v)
{
	for (const om_use *u = v->first_use; u; u = u->next)
		if (!u->op || !is_member(g, u->op))
			return false;
	return true;
}

/* The position of the op that defines `v`, plus 1; 0 for what is defined before the block. */
static uint32_t
defined_at(const struct group *g, const om_value *v)
{
	return v->def && v->def->block == g->op[0]->block ? v->def->index + 1 : 0;
}

/* False if there are too many inputs. */
static bool
find_inputs(struct group *g)
{
	struct stage s;

	g->nin = 0;
	for (uint32_t k = 0; k < g->n; k++) {
		stage_of(g->op[k], &s);
		for (uint32_t i = 0; i < s.nin; i++) {
			om_value *v = g->op[k]->in[i];
			uint32_t j = 0;
			if (v->def && is_member(g, v->def))
				continue;
			while (j < g->nin && g->in[j] != v)
				j++;
			if (j == MOST_INPUTS)
				return false;
			g->in[j] = v;
			g->nin = j == g->nin ? j + 1 : g->nin;
		}
	}
	return true;
}

/* Sets the place of the chain; false if the live bytes may rise. */
static bool
find_place(struct group *g)
{
	const om_op *first = g->op[0];
	const uint64_t size = om_value_bytes(g->op[0]->out[0]);
	uint32_t last = 0, large = 0, last_large = 0;

	for (uint32_t k = 0; k < g->n; k++)
		first = g->op[k]->index < first->index ? g->op[k] : first;
	for (uint32_t k = 0; k < g->nin; k++) {
		const uint32_t at = defined_at(g, g->in[k]);
		last = at > last ? at : last;
		if (g->in[k]->is_const || om_value_bytes(g->in[k]) < size)
			continue;
		large++;
		last_large = at > last_large ? at : last_large;
	}
	g->at = last <= first->index ? first : g->op[0];
	return large <= 1 || last_large <= first->index;
}

static bool
may_join(const struct group *g, const om_value *v)
{
	const om_op *root = g->op[0];
	struct stage s;

	return v->def && v->def->block == root->block && !is_member(g, v->def) && stage_of(v->def, &s)
	    && om_shape_equal(&v->shape, &root->out[0]->shape) && is_read_by_group_only(g, v);
}

/* Adds the op that computes an input, if one may be added. */
static bool
grow(struct group *g)
{
	for (uint32_t k = 0; k < g->nin && g->n < MOST_STAGES; k++) {
		struct group more = *g;
		if (!may_join(g, g->in[k]))
			continue;
		more.op[more.n++] = g->in[k]->def;
		if (find_inputs(&more) && find_place(&more)) {
			*g = more;
			return true;
		}
	}
	return false;
}

static struct group
group_of(om_op *root)
{
	struct group g = {.op = {root}, .n = 1, .at = root};

	if (find_inputs(&g))
		while (grow(&g))
			;
	return g;
}

/* ---- The chain. ---- */

struct fuse {
	om_run *r;
	om_prog *p;
};

/* Members in the order of the block: operands come before their readers. */
static void
sort_members(struct group *g)
{
	for (uint32_t k = 1; k < g->n; k++) {
		om_op *op = g->op[k];
		uint32_t i = k;
		for (; i > 0 && g->op[i - 1]->index > op->index; i--)
			g->op[i] = g->op[i - 1];
		g->op[i] = op;
	}
}

static int64_t
operand_of(const struct group *g, const om_value *v)
{
	for (uint32_t k = 0; k < g->nin; k++)
		if (g->in[k] == v)
			return k;
	for (uint32_t k = 0; k < g->n; k++)
		if (g->op[k]->out[0] == v)
			return g->nin + k;
	return 0;
}

static void
set_program(struct fuse *f, om_op *chain, const struct group *g)
{
	int64_t operands[2 * MOST_STAGES];
	float parameters[2 * MOST_STAGES];
	const char *names = "";

	for (uint32_t k = 0; k < g->n; k++) {
		struct stage s;
		stage_of(g->op[k], &s);
		names = om_printf(f->r->scratch, "%s%s%s", names, k ? " " : "", s.name);
		operands[2 * k] = operand_of(g, g->op[k]->in[0]);
		operands[2 * k + 1] = s.nin == 2 ? operand_of(g, g->op[k]->in[1]) : operands[2 * k];
		memcpy(&parameters[2 * k], s.p, sizeof s.p);
	}
	om_op_add_attr(f->p, chain, &OM_MAKE_STRING("stages", names));
	om_op_add_attr(f->p, chain, &OM_MAKE_INTS("operands", 2 * (size_t)g->n, operands));
	om_op_add_attr(f->p, chain, &(om_attr){.name = "parameters", .kind = OM_ATTR_FLOATS, .n = 2 * (size_t)g->n, .f = parameters});
}

static void
replace(struct fuse *f, struct group *g)
{
	om_op *root = g->op[0], *place = root;
	om_value *y = root->out[0];
	om_op *chain = om_op_new(f->p, OM_CPU_DOMAIN, "Chain", 1, g->nin, 1);

	for (uint32_t k = 0; k < g->n; k++)
		place = g->op[k] == g->at ? g->op[k] : place;
	for (uint32_t k = 0; k < g->nin; k++)
		om_op_set_in(chain, k, g->in[k]);
	sort_members(g);
	set_program(f, chain, g);
	chain->phase = root->phase;
	chain->index = place->index;
	om_op_insert(place, chain);
	root->out[0] = NULL;
	y->def = NULL;
	om_op_remove(root);
	om_op_set_out(chain, 0, y);
	for (uint32_t k = g->n; k-- > 0;)
		if (g->op[k] != root)
			om_op_delete(g->op[k]);
	om_count(f->r, "chains", 1);
	om_count(f->r, "ops", g->n);
}

/* From the last op on, so that a group is as large as it can be. */
static void
fuse_block(struct fuse *f, om_block *b)
{
	for (om_op *op = b->last; op;) {
		struct stage s;
		struct group g = {0};
		for (uint32_t k = 0; k < op->nbody; k++)
			fuse_block(f, op->body[k]);
		if (stage_of(op, &s))
			g = group_of(op);
		om_op *before = op->prev;
		while (before && g.n > 1 && is_member(&g, before))
			before = before->prev;
		if (g.n > 1)
			replace(f, &g);
		op = before;
	}
}

static om_status
run(om_run *r, om_prog *p)
{
	struct fuse f = {r, p};

	om_timeline(p);
	fuse_block(&f, p->first);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"chains", "chains"},
	{"ops", "ops that became stages of them"},
	{0}
};

OM_PASS(
	.name = "fuse-elementwise",
	.brief = "compute elementwise ops in one pass over tiles",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.by_sizes = true,
	.run = run)
