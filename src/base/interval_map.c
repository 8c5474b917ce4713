/* SPDX-License-Identifier: Apache-2.0 */
/* A treap of disjoint ranges, ordered by space and lower end.  Priorities are a
 * hash of a counter, so that its shape depends on the sequence of calls alone. */
#include <config.h>

#include "base/rng.h"
#include "base/interval_map.h"

struct node {
	struct node *left, *right;
	uint64_t priority;
	om_owned_interval range;
};

struct om_interval_map {
	om_arena *mem;
	struct node *root, *spare;  /* spare: a list by `left` */
	uint64_t made;
};

om_interval_map *
om_interval_map_new(om_arena *mem)
{
	om_interval_map *r = OM_NEW(mem, om_interval_map);

	r->mem = mem;
	return r;
}

static struct node *
copy(om_arena *mem, const struct node *n)
{
	if (!n)
		return NULL;
	struct node *c = om_memdup(mem, n, sizeof *n);
	c->left = copy(mem, n->left);
	c->right = copy(mem, n->right);
	return c;
}

om_interval_map *
om_interval_map_copy(const om_interval_map *r, om_arena *mem)
{
	om_interval_map *c = om_interval_map_new(mem);

	c->made = r->made;
	c->root = copy(mem, r->root);
	return c;
}

static struct node *
node_new(om_interval_map *r, const om_owned_interval *range)
{
	struct node *n = r->spare;

	if (n)
		r->spare = n->left;
	else
		n = OM_NEW(r->mem, struct node);
	*n = (struct node){.priority = om_mix(++r->made), .range = *range};
	return n;
}

static void
free_nodes(om_interval_map *r, struct node *n)
{
	if (!n)
		return;
	free_nodes(r, n->left);
	free_nodes(r, n->right);
	n->left = r->spare;
	r->spare = n;
}

static bool
is_before(const om_owned_interval *a, uint32_t space, uint64_t at)
{
	return a->space < space || (a->space == space && a->lower < at);
}

/* Split by start: ranges before (space, at) to `*a`, the others to `*b`. */
static void
split(struct node *n, uint32_t space, uint64_t at, struct node **a, struct node **b)
{
	if (!n) {
		*a = *b = NULL;
	} else if (is_before(&n->range, space, at)) {
		split(n->right, space, at, &n->right, b);
		*a = n;
	} else {
		split(n->left, space, at, a, &n->left);
		*b = n;
	}
}

static struct node *
join(struct node *a, struct node *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->priority > b->priority) {
		a->right = join(a->right, b);
		return a;
	}
	b->left = join(a, b->left);
	return b;
}

/* The last range that starts before (space, at), or NULL. */
static struct node *
find_before(struct node *n, uint32_t space, uint64_t at)
{
	struct node *found = NULL;

	while (n)
		if (is_before(&n->range, space, at)) {
			found = n;
			n = n->right;
		} else {
			n = n->left;
		}
	return found;
}

/* Split the range that contains both `at - 1` and `at`, if any. */
static void
split_at(om_interval_map *r, uint32_t space, uint64_t at)
{
	struct node *n = find_before(r->root, space, at), *a, *b;

	if (!n || n->range.space != space || n->range.upper <= at)
		return;
	om_owned_interval rest = n->range;
	rest.at += at - rest.lower;
	rest.lower = at;
	n->range.upper = at;
	split(r->root, space, at, &a, &b);
	r->root = join(join(a, node_new(r, &rest)), b);
}

void
om_interval_map_set(om_interval_map *r, const om_owned_interval *range)
{
	struct node *a, *replaced, *b;

	if (range->lower >= range->upper)
		return;
	split_at(r, range->space, range->lower);
	split_at(r, range->space, range->upper);
	split(r->root, range->space, range->lower, &a, &b);
	split(b, range->space, range->upper, &replaced, &b);
	free_nodes(r, replaced);
	r->root = join(join(a, node_new(r, range)), b);
}

om_owned_interval
om_interval_map_at(const om_interval_map *r, uint32_t space, uint64_t at)
{
	const struct node *n = find_before(r->root, space, at + 1);
	om_owned_interval none = {space, at, UINT64_MAX, OM_NOBODY, 0, false};

	if (n && n->range.space == space && n->range.upper > at)
		return n->range;
	for (n = r->root; n;)
		if (is_before(&n->range, space, at)) {
			n = n->right;
		} else {
			if (n->range.space == space)
				none.upper = n->range.lower;
			n = n->left;
		}
	return none;
}

bool
om_interval_map_holds(const om_interval_map *r, const om_owned_interval *range, om_owned_interval *bad)
{
	for (uint64_t at = range->lower; at < range->upper;) {
		om_owned_interval found = om_interval_map_at(r, range->space, at);
		const uint64_t offset = found.at + (at - found.lower);
		if (found.upper > range->upper)
			found.upper = range->upper;
		if (found.owner != range->owner || found.stale || offset != range->at + (at - range->lower)) {
			found.lower = at;
			*bad = found;
			return false;
		}
		at = found.upper;
	}
	return true;
}
