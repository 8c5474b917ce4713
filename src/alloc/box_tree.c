/* SPDX-License-Identifier: Apache-2.0 */
/* A treap of boxes in Z-order, with bounds.
 *
 * In Z-order, by the bits of step and byte in turn, boxes that are near each other are in one subtree.
 * So a subtree has narrow bounds, and a search leaves out most of them: whether values follow each
 * other in the same bytes, as in a chain of ops computed in place, or lie side by side, as the parts of
 * a concatenation.  Where all values of a subtree have the same content, it is left out at once in a
 * search for others.
 *
 * Priorities are a hash of the id, so that the shape depends on the values alone.
 */
#include <config.h>

#include "alloc/box_tree.h"
#include "base/rng.h"

struct om_box_node {
	om_box_node *left, *right;
	const om_value *v;
	om_box box, key;         /* `key`: the box when it was added */
	om_box bounds;           /* of the subtree, like `content` */
	om_content own, content;
	bool is_mixed;           /* the subtree has several contents */
};

static bool
is_same(const om_content *a, const om_content *b)
{
	return a->origin == b->origin && a->shift == b->shift;
}

static bool
is_before(const om_box_node *a, const om_box_node *b)
{
	const uint64_t step = a->key.live.first ^ b->key.live.first, byte = a->key.lower ^ b->key.lower;

	if (step < byte && step < (step ^ byte))  /* the first bit that differs is one of the byte */
		return a->key.lower < b->key.lower;
	if (step)
		return a->key.live.first < b->key.live.first;
	return byte ? a->key.lower < b->key.lower : a->v->id < b->v->id;
}

static void
widen(om_box *a, const om_box *b)
{
	if (b->live.first < a->live.first)
		a->live.first = b->live.first;
	if (b->live.last > a->live.last)
		a->live.last = b->live.last;
	if (b->lower < a->lower)
		a->lower = b->lower;
	if (b->upper > a->upper)
		a->upper = b->upper;
}

static void
include(om_box_node *n, const om_box_node *child)
{
	if (!child)
		return;
	widen(&n->bounds, &child->bounds);
	n->is_mixed |= child->is_mixed || !is_same(&n->content, &child->content);
}

static void
update(om_box_node *n)
{
	n->bounds = n->box;
	n->content = n->own;
	n->is_mixed = false;
	include(n, n->left);
	include(n, n->right);
}

/* Values before `at` to `*a`, the others to `*b`. */
static void
split(om_box_node *n, const om_box_node *at, om_box_node **a, om_box_node **b)
{
	if (!n) {
		*a = *b = NULL;
		return;
	}
	if (is_before(n, at)) {
		split(n->right, at, &n->right, b);
		*a = n;
	} else {
		split(n->left, at, a, &n->left);
		*b = n;
	}
	update(n);
}

static om_box_node *
insert(om_box_node *at, om_box_node *n)
{
	if (!at)
		return n;
	if (om_mix(n->v->id) > om_mix(at->v->id)) {
		split(at, n, &n->left, &n->right);
		update(n);
		return n;
	}
	om_box_node **side = is_before(n, at) ? &at->left : &at->right;
	*side = insert(*side, n);
	update(at);
	return at;
}

om_box_node *
om_box_tree_add(om_box_node **tree, om_arena *mem, const om_value *v, const om_box *box, const om_content *content)
{
	om_box_node *n = OM_NEW(mem, om_box_node);

	*n = (om_box_node){.v = v, .box = *box, .key = *box, .bounds = *box, .own = *content, .content = *content};
	*tree = insert(*tree, n);
	return n;
}

void
om_box_tree_extend(om_box_node *tree, om_box_node *node, om_steps live)
{
	node->box.live = live;
	for (om_box_node *at = tree; at; at = at == node ? NULL : is_before(node, at) ? at->left : at->right)
		widen(&at->bounds, &node->box);
}

void
om_box_tree_relabel(om_box_node *at, om_box_node *node, const om_content *content)
{
	if (at == node)
		at->own = *content;
	else
		om_box_tree_relabel(is_before(node, at) ? at->left : at->right, node, content);
	update(at);
}

static bool
do_meet(const om_box *a, const om_box *b)
{
	return a->live.first <= b->live.last && b->live.first <= a->live.last && a->lower < b->upper && b->lower < a->upper;
}

bool
om_box_tree_any(const om_box_node *n, const om_box *box, const om_content *skip,
	bool (*clashes)(const void *arg, const om_value *v), const void *arg)
{
	if (!n || !do_meet(box, &n->bounds) || (skip && !n->is_mixed && is_same(&n->content, skip)))
		return false;
	return (do_meet(box, &n->box) && !(skip && is_same(&n->own, skip)) && clashes(arg, n->v))
	    || om_box_tree_any(n->left, box, skip, clashes, arg) || om_box_tree_any(n->right, box, skip, clashes, arg);
}
