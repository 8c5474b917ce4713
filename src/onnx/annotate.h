/* What the writers and the reader of plans share. */
#ifndef OM_ANNOTATE_H
#define OM_ANNOTATE_H

#include "base/map.h"
#include "onnx/model.h"

#define OM_KEY           "org.onnxmem."
#define OM_KEY_PLAN      OM_KEY "plan"
#define OM_KEY_DIGEST    OM_KEY "plan.digest"
#define OM_KEY_GRAPH     OM_KEY "plan.graph"
#define OM_KEY_SHAPES    OM_KEY "plan.shapes"
#define OM_KEY_SUMMARY   OM_KEY "plan.summary"
#define OM_KEY_TIE       OM_KEY "tie"     /* facts about the model, not about a plan: these three stay */
#define OM_KEY_PHASE     OM_KEY "phase"
#define OM_KEY_AGAIN     OM_KEY "rematerialized_from"
#define OM_KEY_MEM       OM_KEY "mem"
#define OM_KEY_ALIAS     OM_KEY "alias"
#define OM_KEY_SCOPE     OM_KEY "scope"
#define OM_KEY_ADDED     OM_KEY "added"   /* a value_info that was not there before */
#define OM_KEY_COMPAT    OM_KEY "compat"  /* whose keys were written too */

/* A list of metadata, wherever it is. */
struct props {
	size_t *n;
	Onnx__StringStringEntryProto ***list;
};

#define PROPS(message)  ((struct props){&(message)->n_metadata_props, &(message)->metadata_props})

const char *om_prop_find(struct props p, const char *key);   /* NULL: it is not there */
void om_prop_set(om_arena *mem, struct props p, const char *key, const char *value);
void om_prop_remove(struct props p, const char *key);

/* Lifetimes in a file are places in a scope: `first` and `last` op of the
 * scope that the value is defined in; the number of ops stands for the scope's
 * end.  Exact when om_span_first() and om_span_last() give the very steps. */
typedef struct om_span {
	uint32_t first, last;
	bool is_exact;
} om_span;

/* By block id: values by name. */
om_map *om_values_by_name(const om_prog *p, om_arena *mem);

/* By block id: the ops of a block by index. */
om_op ***om_ops_by_index(const om_prog *p, om_arena *mem);

/* By the place of a node in the block's graph: the op that it became, or NULL. */
om_op **om_ops_by_node(const om_block *b, om_arena *mem);
om_span om_span_of(om_op *const *ops, const om_value *v, const om_placement *at);

/* From places to steps: a lifetime starts when its op starts and ends when it
 * is complete; a body's parameter that is there from its first op on starts
 * when the owner starts. */
uint32_t om_span_first(om_op *const *ops, const om_value *v, uint32_t index);
uint32_t om_span_last(om_op *const *ops, const om_value *v, uint32_t index);

const char *om_alias_text(om_alias_kind kind);
bool om_alias_find(const char *text, om_alias_kind *kind);

/* What an op is called in a plan; NULL when it has no outputs. */
const om_value *om_op_first_output(const om_op *op);

/* "x:1,3,224,224;mask:1,?" from a program whose inputs are bound. */
const char *om_shapes_text(const om_prog *p, om_arena *mem);

/* "sha256:<hex>" */
const char *om_text_digest(const char *text, size_t n, om_arena *mem);

#endif
