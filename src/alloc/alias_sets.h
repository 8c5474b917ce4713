/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of values that share a storage, for analyses that decide on shared storage. */
#ifndef OM_ALIAS_SETS_H
#define OM_ALIAS_SETS_H

#include "alloc/box_tree.h"
#include "onnxmem/plan.h"

/* Values that share one storage. */
typedef struct om_alias_set {
	om_value *root;          /* owner of the storage, which is large enough for all members */
	om_value **member;       /* the root first */
	size_t n, cap;           /* number of members; capacity of `member` */
	om_box_node *boxes;      /* of all members */
	uint64_t bytes;          /* rounded; 0: not in an arena, or empty */
	uint32_t first, last;    /* steps in which any member is live */
	bool is_outside;         /* a constant, or memory owned by the caller */
} om_alias_set;

/* The alias sets of an assignment under construction. */
typedef struct om_alias_sets om_alias_sets;

/* Build the alias sets of `a`, allocated from `mem`.  The functions below that change them also update
 * `a`; the alias sets do not follow changes of `a` made elsewhere. */
om_alias_sets *om_alias_sets_new(const om_prog *p, om_assignment *a, om_arena *mem);

/* The alias set of `v` and, unless `offset` is NULL, the offset of `v` in its storage.  NULL if the
 * storage of `v` cannot be shared because its size is not known. */
const om_alias_set *om_alias_sets_find(const om_alias_sets *g, const om_value *v, uint64_t *offset);

/* The content of `v` is the bytes of another value from `offset` on. */
typedef struct om_alias_edge {
	om_value *v;             /* the value */
	uint64_t offset;         /* bytes */
} om_alias_edge;

/* Add these steps to the lifetime of `v`, whose ranges are allocated from `mem`.  Returns false, without a
 * change, if other members of the set overwrite its bytes then; with `always`, that is not checked. */
bool om_alias_sets_extend(om_alias_sets *g, om_value *v, uint32_t first, uint32_t last, bool always,
	om_arena *mem);

/* Is a member of the set live in any of these steps? */
bool om_alias_sets_in_use(const om_alias_sets *g, const om_alias_set *set, const om_live_interval *live);

/* Place the values `same`, all of one set, at those bytes of `source`, and move their set with them.
 * `store` is OM_VIEW: `same` is one value, the root of its set; or OM_SUBBUFFER: `source` is computed
 * later.  Returns false, without a change, if the set does not fit, or a value would lose bytes that
 * are still read. O(members of the smaller set), times the logarithm of those of the other, where the set
 * keeps its offsets; else of the set that moves.  Sets that were found before may be void after it. */
bool om_alias_sets_merge_at(om_alias_sets *g, om_value *source, const om_alias_edge *same, uint32_t n,
	om_store store);

/* Compute `out` over the first bytes of `in`, by one op: either one may move, with its set.  Returns
 * false if that is impossible, as above. */
bool om_alias_sets_merge_inplace(om_alias_sets *g, om_value *out, om_value *in);

/* Why the last merge was refused. */
om_overwrite_reason om_alias_sets_refusal(const om_alias_sets *g);

/* Store the output `out` of an If from byte `offset` of `source` on, where the results `in` of `n` branches
 * are already: it takes them over.  Returns false if that is impossible, as above. */
bool om_alias_sets_merge_joined(om_alias_sets *g, om_value *out, om_value *const *in, uint32_t n,
	om_value *source, uint64_t offset);

#endif
