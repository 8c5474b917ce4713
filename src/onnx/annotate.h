/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the writers and the reader of plans. */
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
#define OM_KEY_ORIGINAL  OM_KEY "plan.original"
#define OM_KEY_IO_ALIAS  OM_KEY "io_alias" /* properties of the model, not of a plan: strip keeps these three */
#define OM_KEY_PHASE     OM_KEY "phase"
#define OM_KEY_REMATERIALIZED     OM_KEY "rematerialized_from"
#define OM_KEY_MEM       OM_KEY "mem"
#define OM_KEY_ALIAS     OM_KEY "alias"
#define OM_KEY_SCOPE     OM_KEY "scope"
#define OM_KEY_ADDED     OM_KEY "added"   /* marks a value_info that annotation added */
#define OM_KEY_COMPAT    OM_KEY "compat"  /* the other tool whose keys were also written */

enum { OM_METADATA_FIELD = 14 };          /* of a ModelProto */

/* A metadata_props list of any message. */
struct props {
	size_t *n;
	Onnx__StringStringEntryProto ***list;
};

#define PROPS(message)  ((struct props){&(message)->n_metadata_props, &(message)->metadata_props})

const Onnx__StringStringEntryProto *om_prop_entry(struct props p, const char *key);   /* NULL: absent */
const char *om_prop_find(struct props p, const char *key);   /* NULL: absent */
void om_prop_set(om_arena *mem, struct props p, const char *key, const char *value);
void om_prop_remove(struct props p, const char *key);

/* A lifetime as stored in a file: indices of the first and last op in the scope that
 * defines the value; the number of ops denotes the end of the scope.  Exact if
 * om_span_first() and om_span_last() reproduce the steps. */
typedef struct om_span {
	uint32_t first, last;
	bool is_exact;
} om_span;

/* Maps from name to value, by block id. */
om_map *om_values_by_name(const om_prog *p, om_arena *mem);

/* The ops of each block by index, by block id. */
om_op ***om_ops_by_index(const om_prog *p, om_arena *mem);

/* By index of a node in the graph of the block: the op imported from it, or NULL. */
om_op **om_ops_by_node(const om_block *b, om_arena *mem);
om_span om_span_of(om_op *const *ops, const om_value *v, const om_placement *at);

/* Convert op indices to steps: a lifetime starts at the first step of its first op and ends
 * at the last step of its last op.  The lifetime of a body parameter that starts at the first
 * op starts with the owner of the body. */
uint32_t om_span_first(om_op *const *ops, const om_value *v, uint32_t index);
uint32_t om_span_last(om_op *const *ops, const om_value *v, uint32_t index);

const char *om_alias_text(om_alias_kind kind);
bool om_alias_find(const char *text, om_alias_kind *kind);

/* The input shapes of a program with bound inputs, as "x:1,3,224,224;mask:1,?". */
const char *om_shapes_text(const om_prog *p, om_arena *mem);

/* "sha256:<hex>" */
const char *om_text_digest(const char *text, size_t n, om_arena *mem);

/* The document of the plan for the model with this digest: om_plan_json(), for callers that have it. */
om_status om_plan_json_for(om_session *s, const om_prog *p, const char *digest, char **json);

#endif
