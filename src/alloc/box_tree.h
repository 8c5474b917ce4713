/* SPDX-License-Identifier: Apache-2.0 */
/* Values as boxes: steps by bytes.  Finds those that meet a box. */
#ifndef OM_BOX_TREE_H
#define OM_BOX_TREE_H

#include "onnxmem/assignment.h"

/* What a value contains: the bytes of `origin`, the first of which would lie at `shift`. */
typedef struct om_content {
	const om_value *origin;
	uint64_t shift;
} om_content;

typedef struct om_box {
	om_steps live;           /* inclusive */
	uint64_t lower, upper;   /* bytes [lower, upper) */
} om_box;

/* A tree; NULL is empty. */
typedef struct om_box_node om_box_node;

/* Add a value to `*tree`; its node is allocated from `mem`. */
om_box_node *om_box_tree_add(om_box_node **tree, om_arena *mem, const om_value *v, const om_box *box,
	const om_content *content);

/* Extend the steps of a node of `tree` to `live`, which contains them. */
void om_box_tree_extend(om_box_node *tree, om_box_node *node, om_steps live);

/* Give a node of `tree` another content. */
void om_box_tree_relabel(om_box_node *tree, om_box_node *node, const om_content *content);

/* Does `clashes` hold for a value whose box meets `box`, and whose content is not `skip`?  `skip` may be NULL. */
bool om_box_tree_any(const om_box_node *tree, const om_box *box, const om_content *skip,
	bool (*clashes)(const void *arg, const om_value *v), const void *arg);

#endif
