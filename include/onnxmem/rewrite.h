/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting: match, build, replace.
 *
 * A rule is a pattern and a function that builds the replacement.  om_rewrite() applies a list of
 * rules until none matches:
 *
 *	static const om_pattern
 *	    x = {.kind = OM_MATCH_ANY, .slot = 1},
 *	    y = {.kind = OM_MATCH_OP, .type = "Identity", .in = {&x}};
 *	static om_value *through(om_rewriter *w, const om_match *m) { return m->value[1]; }
 *	static const om_rule rules[] = {{"identity", &y, through}};
 *
 * Patterns are trees of values; if a slot occurs twice, both occurrences must match the same value, so
 * patterns can describe DAGs as well.
 */
#ifndef OM_REWRITE_H
#define OM_REWRITE_H

#include "onnxmem/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	OM_MATCH_SLOTS = 12,      /* values that a pattern may capture */
	OM_MATCH_INPUTS = 6,      /* inputs of an op that a pattern may describe */
};

/* The values captured by a pattern. */
typedef struct om_match {
	om_value *value[OM_MATCH_SLOTS]; /* by slot; NULL: not in the pattern.  Slot 0 is the root, and the
					    op that computes a value is its `def` */
} om_match;

/* What a pattern matches. */
typedef enum om_match_kind {
	OM_MATCH_ANY,             /* any value */
	OM_MATCH_CONST,           /* a constant with known elements that no caller may override */
	OM_MATCH_OP,              /* an output of an op in the block of the root */
} om_match_kind;

enum {
	OM_MATCH_ONCE = 1u << 0,  /* the value has a single use, by the op that the pattern is an input of */
	OM_MATCH_SWAP = 1u << 1,  /* for OM_MATCH_OP: the first two inputs may be in either order.  The
				     first order that matches is taken, without backtracking */
};

/* A pattern: a value, and the op that computes it. */
typedef struct om_pattern {
	om_match_kind kind;       /* all fields after `slot` except `holds` are for OM_MATCH_OP only */
	unsigned flags;           /* OM_MATCH_... */
	unsigned slot;            /* slot that captures the value, below OM_MATCH_SLOTS; 0 is reserved for
				     the root */
	const char *domain;       /* NULL: "", that of ai.onnx */
	const char *type;         /* operator type; NULL: any known operator */
	int since, until;         /* opset versions, inclusive; 0: no limit */
	uint32_t out;             /* index of the output that the value is */
	const struct om_pattern *in[OM_MATCH_INPUTS]; /* NULL: any input, or none; a pattern requires that
						         the input is present */
	/* An additional predicate on attributes, shapes or elements.  The slots of the inputs are set.
	 * NULL: none. */
	bool (*holds)(const om_match *m, const om_value *v);
} om_pattern;

/* The state of a rewrite in progress. */
typedef struct om_rewriter om_rewriter;

/* A pattern and its replacement. */
typedef struct om_rule {
	const char *name;         /* for statistics */
	const om_pattern *root;   /* a pattern of kind OM_MATCH_OP, in slot 0 */
	/* Returns the replacement of the root: an existing value, or a result of om_rewrite_op(), with
	 * the same elements and shape.  NULL, with nothing changed: the rule does not apply after all. */
	om_value *(*build)(om_rewriter *w, const om_match *m);
} om_rule;

/* Apply `n` rules everywhere, bodies included, until none applies; earlier rules take precedence.  Ops
 * whose outputs become unused are removed, unless they have effects or are not known.  Results of
 * blocks keep their names and their declared types: if that is impossible, the rule is not applied.
 * `applied`, unless NULL, receives the number of applications of each rule.  Requires OM_HAS_SHAPES
 * for rules that inspect shapes; shapes of new ops are inferred.  After a change, `p->has` retains
 * only OM_HAS_INLINE and OM_HAS_SHAPES.  A new op that cannot be inferred is an error, with its
 * message; the program stays consistent.  Terminates for any rules: applications that do not reduce
 * the number of ops are limited to the initial number of ops plus 64. */
OM_API om_status om_rewrite(om_session *s, om_prog *p, const om_rule *rule, size_t n, uint64_t *applied);

/* ---- For rules. ---- */

/* An arena that lasts until the rewrite ends. */
OM_API om_arena *om_rewrite_mem(const om_rewriter *w);

/* A new op with one output, which is returned.  Domain, version and phase are copied from the op
 * `like`; if `type` is NULL, so are the operator, its attributes and the node's name.  The name of the
 * output is derived from the output of `like`; if it replaces the root, it takes the root's name, type
 * and shape. */
OM_API om_value *om_rewrite_op(om_rewriter *w, const om_op *like, const char *type, uint32_t n,
	om_value *const *in);

/* A new constant in the root's block, with a name derived from `stem`; `t` and its elements are
 * copied. */
OM_API om_value *om_rewrite_const(om_rewriter *w, const char *stem, const om_tensor *t);

#ifdef __cplusplus
}
#endif

#endif
