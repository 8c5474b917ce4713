/* Rewriting: match, build, replace.
 *
 * A rule is a pattern and a function that builds what stands for it.  om_rewrite() applies a list of
 * rules until none fits any more:
 *
 *     static const om_pattern
 *         x = {.kind = OM_MATCH_ANY, .slot = 1},
 *         y = {.kind = OM_MATCH_OP, .type = "Identity", .in = {&x}};
 *     static om_value *through(om_rewriter *w, const om_match *m) { return m->value[1]; }
 *     static const om_rule rules[] = {{"identity", &y, through}};
 *
 * Patterns are trees of values; where a slot comes twice, both places have to be the same value, so
 * they describe graphs as well.
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

/* What a pattern found. */
typedef struct om_match {
	om_value *value[OM_MATCH_SLOTS]; /* by slot; NULL: not in the pattern.  Slot 0 is the root, and the
	                            op that computes a value is its `def` */
} om_match;

/* What a value has to be. */
typedef enum om_match_kind {
	OM_MATCH_ANY,             /* any value */
	OM_MATCH_CONST,           /* a constant whose elements are known, which no caller may replace */
	OM_MATCH_OP,              /* what an op computes, in the block of the root */
} om_match_kind;

enum {
	OM_MATCH_ONCE = 1u << 0,  /* the value is read once, by the op that the pattern is an input of */
	OM_MATCH_SWAP = 1u << 1,  /* of OM_MATCH_OP: the first two inputs may come in either order.  The
	                             first order in which they match is taken, and not taken back */
};

/* A value, and what computes it. */
typedef struct om_pattern {
	om_match_kind kind;       /* the rest below `slot` is for OM_MATCH_OP, but for `holds` */
	unsigned flags;           /* OM_MATCH_... */
	unsigned slot;            /* that captures the value, below OM_MATCH_SLOTS; 0 is the root's */
	const char *domain;       /* NULL: "", that of ai.onnx */
	const char *type;         /* of the operator; NULL: any that is known */
	int since, until;         /* versions, inclusive; 0: no limit */
	uint32_t out;             /* which output the value is */
	const struct om_pattern *in[OM_MATCH_INPUTS]; /* NULL: anything, or left out; a pattern asks for one
	                             that is given */
	/* What else has to be true: of attributes, shapes, elements.  Slots of the inputs are set.
	 * NULL: nothing. */
	bool (*holds)(const om_match *m, const om_value *v);
} om_pattern;

/* A rewriting that is going on. */
typedef struct om_rewriter om_rewriter;

/* What to look for, and what to put in its place. */
typedef struct om_rule {
	const char *name;         /* for whoever counts */
	const om_pattern *root;   /* of kind OM_MATCH_OP, in slot 0 */
	/* The value that stands for the root: one that there is, or what om_rewrite_op() makes; of the
	 * same elements and shape.  NULL, with nothing changed: the rule does not fit after all. */
	om_value *(*build)(om_rewriter *w, const om_match *m);
} om_rule;

/* Apply `n` rules everywhere, bodies included, the first that fits first, until none fits.  Ops of
 * which nothing is read any more go, unless they have effects or are not known.  Results of blocks
 * keep their names and their declared types: where that cannot be, the rule is not applied.
 * `applied`, unless NULL, counts by rule.  Needs OM_HAS_SHAPES for rules that look at shapes; what is
 * built is inferred.  Where anything changed, only OM_HAS_INLINE and OM_HAS_SHAPES are left of
 * `p->has`.  A new op that cannot be inferred is an error, with its message; the program stays
 * consistent.  Ends whatever the rules are: an application that leaves no fewer ops than there were
 * uses up one of as many as there were ops at first, and 64. */
OM_API om_status om_rewrite(om_session *s, om_prog *p, const om_rule *rule, size_t n, uint64_t *applied);

/* ---- For the rules. ---- */

/* The program that is rewritten, and memory that lasts until all is done. */
OM_API om_prog *om_rewrite_prog(const om_rewriter *w);
OM_API om_arena *om_rewrite_mem(const om_rewriter *w);

/* New ops go right before `op`, in place of right before the root.  It stands in the root's block and
 * not behind the root, and what the new ops read is there before it. */
OM_API void om_rewrite_at(om_rewriter *w, om_op *op);

/* A new op with one output, which is returned.  Domain, version and phase are those of the op `like`,
 * so is the operator where `type` is NULL, with its attributes and its node's name.  The output is
 * called after what `like` computes; where it stands for the root, it gets the name, the type and the
 * shape of that. */
OM_API om_value *om_rewrite_op(om_rewriter *w, const om_op *like, const char *type, uint32_t n,
	om_value *const *in);

/* A new constant in the root's block, called after `stem`; `t` and its elements are copied. */
OM_API om_value *om_rewrite_const(om_rewriter *w, const char *stem, const om_tensor *t);
/* The same of one axis of integers. */
OM_API om_value *om_rewrite_ints(om_rewriter *w, const char *stem, size_t n, const int64_t *v);

/* ---- Pieces of it, for passes that find what to replace on their own. ---- */

/* May every use of `old` become one of `by`?  Always, where `old` is no result of a block.  A result
 * keeps its name: then `by` has to be computed in the same block, be no result itself, and its op has
 * no bodies, whose paths are made of its name. */
OM_API bool om_value_can_stand_for(const om_value *by, const om_value *old);
/* Let it; `old` is a value that an op computes, and is left unread.  Where it is a result, the op that
 * computed `by` computes `old` from now on, and the op of `old` lacks that output. */
OM_API void om_value_stand_for(om_value *by, om_value *old);

/* Is nothing read of what `op` computes, and may it be removed? */
OM_API bool om_op_is_dead(const om_op *op);
/* Remove an op and its bodies. */
OM_API void om_op_delete(om_op *op);

#ifdef __cplusplus
}
#endif

#endif
