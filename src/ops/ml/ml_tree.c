/* SPDX-License-Identifier: Apache-2.0 */
/* Ensembles of decision trees.
 *
 * Both encodings are converted into one: a list of nodes, each with a test and two successors, and
 * a list of votes at the leaves.  Evaluation terminates because a path with more steps than there
 * are nodes is refused. */
#include <config.h>

#include <math.h>
#include <stdlib.h>

#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/numbers.h"
#include "ops/ml/ml_post_transform.h"

typedef enum test { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF } test;
typedef enum sum { AVERAGE, SUM, MIN, MAX } sum;

struct node {
	test test;
	bool missing;            /* the branch taken for NaN */
	int64_t feature;
	double value;
	int64_t next[2];         /* successors if the test fails, and if it holds */
	int64_t vote, nvote;     /* votes of a leaf; members of the set for MEMBER */
	int64_t tree, id;        /* identifiers in the attributes */
};

struct vote {
	int64_t target;
	double weight;
};

struct trees {
	struct node *node;
	struct vote *vote;
	const double *member;
	int64_t *root;
	int64_t nnode, nvote, nroot, ntarget;
	sum how;
	om_post post;
	const double *base;
	int64_t nbase;
};

static om_status
wrong(const om_op_context *c, const char *what)
{
	return om_op_fail(c->session, OM_INVALID, c->op, "%s", what);
}

/* ---- Attributes. ---- */

/* Numbers: a list, or a tensor of a numeric type. */
static om_status
numbers(const om_op_context *c, const char *name, double **v, int64_t *n)
{
	const om_attr *a = om_attr_find(c->op, name);

	*v = NULL;
	*n = 0;
	if (!a)
		return OM_OK;
	const om_tensor *t = a->kind == OM_ATTR_TENSOR ? a->t : NULL;
	if (!t && a->kind != OM_ATTR_FLOATS)
		return OM_OK;
	if (t && (!t->data || !om_shape_is_known(&t->shape)))
		return wrong(c, "the value of an attribute is unknown");
	*n = t ? om_shape_count(&t->shape) : (int64_t)a->n;
	*v = OM_NEWN(c->mem, double, (size_t)*n + 1);
	for (int64_t k = 0; k < *n; k++)
		if (!t)
			(*v)[k] = a->f[k];
		else if (!om_number(t->type, (const char *)t->data + (t->splat ? 0 : (size_t)k) * (om_dtype_bits(t->type) / 8),
		    &(*v)[k]))
			return om_no_kernel(c, t->type);
	return OM_OK;
}

/* The same attribute under two names: NAME and NAME_as_tensor. */
static om_status
numbers_or(const om_op_context *c, const char *name, double **v, int64_t *n)
{
	OM_TRY(numbers(c, om_printf(c->mem, "%s_as_tensor", name), v, n));
	return *n ? OM_OK : numbers(c, name, v, n);
}

/* A list that must have `want` elements; zeros if it may be missing. */
static om_status
list(const om_op_context *c, const char *name, int64_t want, bool optional, const int64_t **v)
{
	size_t n;

	*v = om_attr_ints(c->op, name, &n);
	if (n == 0 && optional)
		*v = OM_NEWN(c->mem, int64_t, (size_t)want + 1);
	else if (n != (size_t)want)
		return om_op_fail(c->session, OM_INVALID, c->op,
			"%s has %zu elements, expected %lld", name, n, (long long)want);
	return OM_OK;
}

static om_status
check_features(const om_op_context *c, const struct trees *t, int64_t features)
{
	for (int64_t k = 0; k < t->nnode && features >= 0; k++)
		if (t->node[k].test != LEAF && (t->node[k].feature < 0 || t->node[k].feature >= features))
			return om_op_fail(c->session, OM_SHAPE, c->op, "a node tests feature %lld of %lld",
				(long long)t->node[k].feature, (long long)features);
	for (int64_t k = 0; k < t->nvote; k++)
		if (t->vote[k].target < 0 || t->vote[k].target >= t->ntarget)
			return om_op_fail(c->session, OM_INVALID, c->op, "a leaf has target %lld of %lld",
				(long long)t->vote[k].target, (long long)t->ntarget);
	return OM_OK;
}

/* ---- Versions 1 and 3: nodes by tree and identifier. ---- */

static int
by_name(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->tree != y->tree)
		return x->tree < y->tree ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static int64_t
find(const struct trees *t, int64_t tree, int64_t id)
{
	const struct node key = {.tree = tree, .id = id};
	const struct node *at = t->nnode ? bsearch(&key, t->node, (size_t)t->nnode, sizeof key, by_name) : NULL;
	return at ? at - t->node : -1;
}

static om_status
read_test(const om_op_context *c, const om_string *s, test *out)
{
	static const char *const name[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ",
		"BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};

	for (int k = 0; k < 8; k++)
		if (k != MEMBER && s->size == strlen(name[k]) && memcmp(s->data, name[k], s->size) == 0) {
			*out = (test)k;
			return OM_OK;
		}
	return om_op_fail(c->session, OM_INVALID, c->op,
		"unknown node mode %.*s", (int)(s->size < 40 ? s->size : 40),
		s->size ? s->data : "");
}

static om_status
read_nodes(const om_op_context *c, struct trees *t)
{
	const int64_t *id, *tree, *feature, *yes, *no, *missing;
	double *value;
	int64_t nvalue;
	size_t n;
	const om_string *mode = om_attr_texts(c->op, "nodes_modes", &n);

	t->nnode = (int64_t)n;
	OM_TRY(list(c, "nodes_nodeids", t->nnode, false, &id));
	OM_TRY(list(c, "nodes_treeids", t->nnode, false, &tree));
	OM_TRY(list(c, "nodes_featureids", t->nnode, false, &feature));
	OM_TRY(list(c, "nodes_truenodeids", t->nnode, false, &yes));
	OM_TRY(list(c, "nodes_falsenodeids", t->nnode, false, &no));
	OM_TRY(list(c, "nodes_missing_value_tracks_true", t->nnode, true, &missing));
	OM_TRY(numbers_or(c, "nodes_values", &value, &nvalue));
	if (nvalue != t->nnode)
		return wrong(c, "requires one threshold for each node");
	t->node = OM_NEWN(c->mem, struct node, n + 1);
	for (size_t k = 0; k < n; k++) {
		t->node[k] = (struct node){.missing = missing[k], .feature = feature[k], .value = value[k],
			.next = {no[k], yes[k]}, .tree = tree[k], .id = id[k]};
		OM_TRY(read_test(c, &mode[k], &t->node[k].test));
	}
	return OM_OK;
}

/* Roots are nodes without predecessors. */
static om_status
link_nodes(const om_op_context *c, struct trees *t)
{
	bool *below = OM_NEWN(c->mem, bool, (size_t)t->nnode + 1);

	if (t->nnode)
		qsort(t->node, (size_t)t->nnode, sizeof *t->node, by_name);
	for (int64_t k = 0; k < t->nnode; k++) {
		struct node *n = &t->node[k];
		if (k && by_name(n - 1, n) == 0)
			return wrong(c, "two nodes of a tree have the same id");
		for (int w = 0; w < 2 && n->test != LEAF; w++) {
			n->next[w] = find(t, n->tree, n->next[w]);
			if (n->next[w] < 0)
				return wrong(c, "a node has a child that does not exist");
			below[n->next[w]] = true;
		}
	}
	t->root = OM_NEWN(c->mem, int64_t, (size_t)t->nnode + 1);
	for (int64_t k = 0; k < t->nnode; k++)
		if (!below[k])
			t->root[t->nroot++] = k;
	return OM_OK;
}

/* Group the votes by node. */
static om_status
read_votes(const om_op_context *c, struct trees *t, const char *prefix)
{
	const int64_t *tree, *id, *target;
	double *weight;

	OM_TRY(numbers_or(c, om_printf(c->mem, "%s_weights", prefix), &weight, &t->nvote));
	OM_TRY(list(c, om_printf(c->mem, "%s_treeids", prefix), t->nvote, false, &tree));
	OM_TRY(list(c, om_printf(c->mem, "%s_nodeids", prefix), t->nvote, false, &id));
	OM_TRY(list(c, om_printf(c->mem, "%s_ids", prefix), t->nvote, false, &target));
	t->vote = OM_NEWN(c->mem, struct vote, (size_t)t->nvote + 1);
	int64_t *at = OM_NEWN(c->mem, int64_t, (size_t)t->nvote + 1), next = 0;
	for (int64_t k = 0; k < t->nvote; k++) {
		at[k] = find(t, tree[k], id[k]);
		if (at[k] < 0)
			return wrong(c, "a leaf weight belongs to a node that does not exist");
		t->node[at[k]].nvote++;
	}
	for (int64_t k = 0; k < t->nnode; k++) {
		t->node[k].vote = next;
		next += t->node[k].nvote;
		t->node[k].nvote = 0;
	}
	for (int64_t k = 0; k < t->nvote; k++) {
		struct node *n = &t->node[at[k]];
		t->vote[n->vote + n->nvote++] = (struct vote){target[k], weight[k]};
	}
	return OM_OK;
}

static om_status
old_trees(const om_op_context *c, const char *prefix, int64_t ntarget, struct trees *t)
{
	static const char *const how[] = {"AVERAGE", "SUM", "MIN", "MAX"};
	double *base;
	int k = 0;

	*t = (struct trees){.ntarget = ntarget, .how = SUM};
	OM_TRY(om_post_of(c, &t->post));
	OM_TRY(om_check_features(c, 0));
	OM_TRY(read_nodes(c, t));
	OM_TRY(link_nodes(c, t));
	OM_TRY(read_votes(c, t, prefix));
	OM_TRY(numbers_or(c, "base_values", &base, &t->nbase));
	t->base = base;
	if (om_attr_string(c->op, "aggregate_function").size == 0)
		return OM_OK;
	while (k < 4 && !om_attr_is(c->op, "aggregate_function", how[k]))
		k++;
	t->how = (sum)k;
	return k < 4 ? OM_OK : wrong(c, "unknown aggregate_function");
}

/* ---- Version 5: nodes and leaves by index. ---- */

/* The sets of the MEMBER nodes, each terminated by NaN. */
static om_status
read_sets(const om_op_context *c, struct trees *t)
{
	double *member;
	int64_t n, at = 0;

	OM_TRY(numbers(c, "membership_values", &member, &n));
	t->member = member;
	for (int64_t k = 0; k < t->nnode; k++) {
		struct node *x = &t->node[k];
		if (x->test != MEMBER)
			continue;
		if (at >= n)
			return wrong(c, "membership_values has fewer sets than there are BRANCH_MEMBER nodes");
		x->vote = at;
		while (at < n && !isnan(member[at]))
			at++;
		x->nvote = at++ - x->vote;
	}
	return OM_OK;
}

static om_status
read_ways(const om_op_context *c, struct trees *t, int64_t nleaf)
{
	static const char *const ids[] = {"nodes_falsenodeids", "nodes_truenodeids"};
	static const char *const leafs[] = {"nodes_falseleafs", "nodes_trueleafs"};
	const int64_t *to, *leaf, inner = t->nnode - nleaf;

	for (int w = 0; w < 2; w++) {
		OM_TRY(list(c, ids[w], inner, false, &to));
		OM_TRY(list(c, leafs[w], inner, false, &leaf));
		for (int64_t k = 0; k < inner; k++) {
			if (to[k] < 0 || to[k] >= (leaf[k] ? nleaf : inner))
				return wrong(c, "a node has a child that does not exist");
			t->node[k].next[w] = leaf[k] ? inner + to[k] : to[k];
		}
	}
	return OM_OK;
}

static om_status
read_inner(const om_op_context *c, struct trees *t, int64_t nleaf)
{
	const int64_t *feature, *missing, inner = t->nnode - nleaf;
	double *mode, *value;
	int64_t nmode, nvalue;

	OM_TRY(numbers(c, "nodes_modes", &mode, &nmode));
	OM_TRY(numbers(c, "nodes_splits", &value, &nvalue));
	OM_TRY(list(c, "nodes_featureids", inner, false, &feature));
	OM_TRY(list(c, "nodes_missing_value_tracks_true", inner, true, &missing));
	if (nmode != inner || nvalue != inner)
		return wrong(c, "requires one mode and one split for each node");
	for (int64_t k = 0; k < inner; k++) {
		if (!(mode[k] >= LEQ && mode[k] <= MEMBER))
			return wrong(c, "a node has an unknown mode");
		t->node[k] = (struct node){.test = (test)mode[k], .missing = missing[k], .feature = feature[k],
			.value = value[k]};
	}
	OM_TRY(read_ways(c, t, nleaf));
	return read_sets(c, t);
}

static om_status
new_trees(const om_op_context *c, struct trees *t)
{
	const int64_t how = om_attr_int(c->op, "aggregate_function"), post = om_attr_int(c->op, "post_transform");
	const int64_t *target, *root;
	double *weight;
	size_t n, nroot;

	*t = (struct trees){.ntarget = om_attr_int(c->op, "n_targets"), .how = (sum)how, .post = (om_post)post};
	if (how < AVERAGE || how > MAX || post < OM_POST_NONE || post > OM_POST_PROBIT)
		return wrong(c, "unknown aggregate_function or post_transform");
	OM_TRY(numbers(c, "leaf_weights", &weight, &t->nvote));
	OM_TRY(list(c, "leaf_targetids", t->nvote, false, &target));
	om_attr_ints(c->op, "nodes_featureids", &n);
	t->nnode = (int64_t)n + t->nvote;
	t->node = OM_NEWN(c->mem, struct node, (size_t)t->nnode + 1);
	t->vote = OM_NEWN(c->mem, struct vote, (size_t)t->nvote + 1);
	OM_TRY(read_inner(c, t, t->nvote));
	for (int64_t k = 0; k < t->nvote; k++) {
		t->vote[k] = (struct vote){target[k], weight[k]};
		t->node[(int64_t)n + k] = (struct node){.test = LEAF, .vote = k, .nvote = 1};
	}
	root = om_attr_ints(c->op, "tree_roots", &nroot);
	t->root = OM_NEWN(c->mem, int64_t, nroot + 1);
	t->nroot = (int64_t)nroot;
	for (size_t k = 0; k < nroot; k++) {
		if (root[k] < 0 || root[k] >= (int64_t)n)
			return wrong(c, "a tree has a root that does not exist");
		t->root[k] = root[k];
	}
	return OM_OK;
}

/* ---- Evaluation. ---- */

static bool
holds(const struct trees *t, const struct node *n, double x)
{
	if (isnan(x))
		return n->missing || n->test == NEQ;
	switch (n->test) {
	case LEQ: return x <= n->value;
	case LT: return x < n->value;
	case GTE: return x >= n->value;
	case GT: return x > n->value;
	case EQ: return x == n->value;
	case NEQ: return x != n->value;
	default:
		for (int64_t k = 0; k < n->nvote; k++)
			if (t->member[n->vote + k] == x)
				return true;
		return false;
	}
}

static om_status
walk(const om_op_context *c, const struct trees *t, int64_t root, int64_t at, const struct node **leaf)
{
	const struct node *n = &t->node[root];

	for (int64_t steps = 0; n->test != LEAF; steps++) {
		if (steps > t->nnode)
			return wrong(c, "a tree has a cycle");
		n = &t->node[n->next[holds(t, n, om_feature(&c->in[0], at + n->feature))]];
	}
	*leaf = n;
	return OM_OK;
}

/* The scores of one row of features; `seen` marks the targets that received votes. */
static om_status
score_row(const om_op_context *c, const struct trees *t, int64_t at, double *score, bool *seen)
{
	for (int64_t k = 0; k < t->ntarget; k++) {
		score[k] = 0;
		seen[k] = false;
	}
	for (int64_t r = 0; r < t->nroot; r++) {
		const struct node *leaf = NULL;
		OM_TRY(walk(c, t, t->root[r], at, &leaf));
		for (int64_t k = 0; k < leaf->nvote; k++) {
			const struct vote *v = &t->vote[leaf->vote + k];
			double *s = &score[v->target];
			if (t->how == SUM || t->how == AVERAGE)
				*s += v->weight;
			else if (!seen[v->target] || (t->how == MIN ? v->weight < *s : v->weight > *s))
				*s = v->weight;
			seen[v->target] = true;
		}
	}
	for (int64_t k = 0; k < t->ntarget && t->how == AVERAGE && t->nroot; k++)
		score[k] /= (double)t->nroot;
	return OM_OK;
}

static void
add_base(const struct trees *t, double *score)
{
	for (int64_t k = 0; k < t->ntarget; k++)
		score[k] += t->nbase == t->ntarget ? t->base[k] : t->nbase == 1 ? t->base[0] : 0;
}

static void
tree_cost(const om_op_context *c, om_cost *cost)
{
	size_t n;

	om_attr_ints(c->op, "nodes_featureids", &n);
	om_opdef_cost(c, (double)n, cost);
}

/* ---- Regression. ---- */

/* Do all leaves vote for the same one of two classes?  Then the score is that of this class alone. */
struct binary {
	bool is;
	bool positive;           /* no weight is negative: scores are probabilities */
};

/* The state of a run. */
struct ensemble {
	struct trees trees;
	int64_t rows, features;
	om_labels labels;        /* of a classifier */
	struct binary binary;    /* of a classifier */
	double *score;           /* of a row, by target */
	bool *seen;              /* the targets that received votes */
};

static om_status
regress(const om_op_context *c, struct ensemble *e)
{
	OM_TRY(om_rows(c, 0, &e->rows, &e->features));
	if (c->op->opdef->since >= 5)
		OM_TRY(new_trees(c, &e->trees));
	else
		OM_TRY(old_trees(c, "target", om_attr_int(c->op, "n_targets"), &e->trees));
	if (e->trees.ntarget <= 0)
		return wrong(c, "n_targets must be positive");
	return check_features(c, &e->trees, e->features);
}

static om_status
regress_infer(om_op_context *c)
{
	struct ensemble e;

	OM_TRY(regress(c, &e));
	c->out[0].type = c->op->opdef->since >= 5 ? c->in[0].type : OM_FLOAT32;
	c->out[0].shape = om_shape_open(2);
	c->out[0].shape.dim[0] = e.rows;
	c->out[0].shape.dim[1] = e.trees.ntarget;
	if (c->in[0].shape.rank == 2)
		c->out[0].shape.sym[0] = c->in[0].shape.sym[0];
	return OM_OK;
}

static void
ensemble_room(const om_op_context *c, struct ensemble *e)
{
	e->score = OM_NEWN(c->mem, double, (size_t)e->trees.ntarget);
	e->seen = OM_NEWN(c->mem, bool, (size_t)e->trees.ntarget);
}

static om_status
regress_prepare(om_op_context *c, void **state)
{
	OM_TRY(regress(c, *state));
	ensemble_room(c, *state);
	return OM_OK;
}

static om_status
regress_cpu(om_op_context *c)
{
	const struct ensemble *e = c->state;
	const int64_t n = e->trees.ntarget;

	for (int64_t row = 0; row < e->rows; row++) {
		OM_TRY(score_row(c, &e->trees, row * e->features, e->score, e->seen));
		add_base(&e->trees, e->score);
		om_post_row(e->trees.post, e->score, n);
		for (int64_t k = 0; k < n; k++)
			om_put(c->out[0].type, c->out[0].data, row * n + k, e->score[k]);
	}
	return OM_OK;
}

/* ---- Classification. ---- */

static om_status
classify(const om_op_context *c, struct ensemble *e)
{
	OM_TRY(om_rows(c, 0, &e->rows, &e->features));
	OM_TRY(om_labels_of(c, "classlabels_int64s", "classlabels_strings", &e->labels));
	if (e->labels.n == 0)
		return wrong(c, "has no class labels");
	OM_TRY(old_trees(c, "class", e->labels.n, &e->trees));
	return check_features(c, &e->trees, e->features);
}

static om_status
classify_infer(om_op_context *c)
{
	struct ensemble e;

	OM_TRY(classify(c, &e));
	om_give_classes(c, &e.labels, e.rows, e.labels.n);
	return OM_OK;
}

static struct binary
binary_of(const struct trees *t)
{
	struct binary b = {.is = t->ntarget == 2 && t->nvote > 0, .positive = true};

	for (int64_t k = 0; k < t->nvote; k++) {
		b.is &= t->vote[k].target == t->vote[0].target;
		b.positive &= t->vote[k].weight >= 0;
	}
	return b;
}

/* The class of the largest score.  With more than two classes, a class without votes never wins
 * over one with votes, even negative ones. */
static int64_t
winner(const struct trees *t, const double *s, const bool *seen)
{
	const bool all = t->ntarget <= 2 || t->nbase;
	int64_t best = -1;

	for (int64_t k = 0; k < t->ntarget; k++)
		if ((all || seen[k]) && (best < 0 || s[k] > s[best]))
			best = k;
	return best < 0 ? 0 : best;
}

/* The class of a row; its scores are transformed in place. */
static int64_t
decide(const struct trees *t, const struct binary *b, double *s, const bool *seen)
{
	int64_t best = 0;

	if (!b->is) {
		add_base(t, s);
		best = winner(t, s, seen);
		if (t->ntarget == 1)
			best = s[0] > 0;
		om_post_row(t->post, s, t->ntarget);
		return best;
	}
	const int64_t voted = t->vote[0].target;
	s[1] = s[voted] + (t->nbase == 2 ? t->base[1] : t->nbase == 1 ? t->base[0] : 0);
	best = s[1] > (b->positive ? 0.5 : 0);
	s[0] = b->positive && t->post == OM_POST_NONE ? 1 - s[1] : -s[1];
	om_post_row(t->post, s, 2);
	if (t->post == OM_POST_PROBIT)
		s[0] = 1 - s[1];
	return best;
}

static om_status
classify_prepare(om_op_context *c, void **state)
{
	struct ensemble *e = *state;

	OM_TRY(classify(c, e));
	e->binary = binary_of(&e->trees);
	ensemble_room(c, e);
	return OM_OK;
}

static om_status
classify_cpu(om_op_context *c)
{
	const struct ensemble *e = c->state;
	const struct trees *t = &e->trees;

	for (int64_t row = 0; row < e->rows; row++) {
		OM_TRY(score_row(c, t, row * e->features, e->score, e->seen));
		om_label_put(&e->labels, decide(t, &e->binary, e->score, e->seen), &c->out[0], row);
		for (int64_t k = 0; k < t->ntarget && c->out[1].data; k++)
			((float *)c->out[1].data)[row * t->ntarget + k] = (float)e->score[k];
	}
	return OM_OK;
}

/* ---- The table. ---- */

#define NODES                                                                  \
	{"base_values", OM_ATTR_FLOATS},                                       \
	{"nodes_falsenodeids", OM_ATTR_INTS},                                  \
	{"nodes_featureids", OM_ATTR_INTS},                                    \
	{"nodes_hitrates", OM_ATTR_FLOATS},                                    \
	{"nodes_missing_value_tracks_true", OM_ATTR_INTS},                     \
	{"nodes_modes", OM_ATTR_STRINGS},                                      \
	{"nodes_nodeids", OM_ATTR_INTS},                                       \
	{"nodes_treeids", OM_ATTR_INTS},                                       \
	{"nodes_truenodeids", OM_ATTR_INTS},                                   \
	{"nodes_values", OM_ATTR_FLOATS},                                      \
	{"post_transform", OM_ATTR_STRING, .s = "NONE"}
#define TENSORS                                                                \
	{"base_values_as_tensor", OM_ATTR_TENSOR},                             \
	{"nodes_hitrates_as_tensor", OM_ATTR_TENSOR},                          \
	{"nodes_values_as_tensor", OM_ATTR_TENSOR}
#define CLASSES                                                                \
	{"class_ids", OM_ATTR_INTS},                                           \
	{"class_nodeids", OM_ATTR_INTS},                                       \
	{"class_treeids", OM_ATTR_INTS},                                       \
	{"class_weights", OM_ATTR_FLOATS},                                     \
	{"classlabels_int64s", OM_ATTR_INTS},                                  \
	{"classlabels_strings", OM_ATTR_STRINGS}
#define TARGETS                                                                \
	{"aggregate_function", OM_ATTR_STRING, .s = "SUM"},                    \
	{"n_targets", OM_ATTR_INT},                                            \
	{"target_ids", OM_ATTR_INTS},                                          \
	{"target_nodeids", OM_ATTR_INTS},                                      \
	{"target_treeids", OM_ATTR_INTS},                                      \
	{"target_weights", OM_ATTR_FLOATS}

static const om_attr_spec classify1_attrs[] = {NODES, CLASSES, {0}};
static const om_attr_spec classify3_attrs[] = {NODES, TENSORS, CLASSES, {"class_weights_as_tensor", OM_ATTR_TENSOR}, {0}};
static const om_attr_spec regress1_attrs[] = {NODES, TARGETS, {0}};
static const om_attr_spec regress3_attrs[] = {NODES, TENSORS, TARGETS, {"target_weights_as_tensor", OM_ATTR_TENSOR}, {0}};

static const om_attr_spec trees_attrs[] = {
	{"aggregate_function", OM_ATTR_INT, .i = SUM},
	{"leaf_targetids", OM_ATTR_INTS, .required = true},
	{"leaf_weights", OM_ATTR_TENSOR, .required = true},
	{"membership_values", OM_ATTR_TENSOR},
	{"n_targets", OM_ATTR_INT},
	{"nodes_falseleafs", OM_ATTR_INTS, .required = true},
	{"nodes_falsenodeids", OM_ATTR_INTS, .required = true},
	{"nodes_featureids", OM_ATTR_INTS, .required = true},
	{"nodes_hitrates", OM_ATTR_TENSOR},
	{"nodes_missing_value_tracks_true", OM_ATTR_INTS},
	{"nodes_modes", OM_ATTR_TENSOR, .required = true},
	{"nodes_splits", OM_ATTR_TENSOR, .required = true},
	{"nodes_trueleafs", OM_ATTR_INTS, .required = true},
	{"nodes_truenodeids", OM_ATTR_INTS, .required = true},
	{"post_transform", OM_ATTR_INT, .i = OM_POST_NONE},
	{"tree_roots", OM_ATTR_INTS, .required = true},
	{0}
};

#define ML .domain = "ai.onnx.ml", .min_in = 1, .max_in = 1, .cost = tree_cost
#define CLASSIFY ML, .name = "TreeEnsembleClassifier", .brief = "tree ensemble classifier", .min_out = 2, \
	.max_out = 2, .infer = classify_infer, .slice = om_slice_rows, .cpu = classify_cpu, \
	.input_types = {OF_INDICES | OF_WIDE_FLOATS}
#define REGRESS ML, .min_out = 1, .max_out = 1, .infer = regress_infer, .slice = om_slice_rows, .cpu = regress_cpu

/* Deprecated by the standard in version 5, but still written by exporters. */
const om_opdef om_ops_ml_tree[] = {
	{CLASSIFY, .since = 1, .until = 2, .attrs = classify1_attrs},
	{CLASSIFY, .since = 3, .attrs = classify3_attrs},
	{REGRESS, .name = "TreeEnsembleRegressor", .brief = "tree ensemble regressor", .since = 1, .until = 2,
	 .attrs = regress1_attrs,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{REGRESS, .name = "TreeEnsembleRegressor", .brief = "tree ensemble regressor", .since = 3,
	 .attrs = regress3_attrs,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{REGRESS, .name = "TreeEnsemble", .brief = "tree ensemble regressor", .since = 5, .attrs = trees_attrs,
	 .input_types = {OF_WIDE_FLOATS | OF(FLOAT16)}},
	{0}
};

#undef ML
#define ML .domain = "ai.onnx.ml", .state_bytes = sizeof(struct ensemble)

const om_kernel om_kernels_ml_tree[] = {
	{ML, .name = "TreeEnsembleClassifier", .prepare = classify_prepare, .run = classify_cpu},
	{ML, .name = "TreeEnsembleRegressor", .prepare = regress_prepare, .run = regress_cpu},
	{ML, .name = "TreeEnsemble", .prepare = regress_prepare, .run = regress_cpu},
	{0}
};
