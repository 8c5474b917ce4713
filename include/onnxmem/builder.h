/* SPDX-License-Identifier: Apache-2.0 */
/* Building and changing a program.  Names are copied; new objects belong to the program.  Changing a
 * program invalidates facts about it: each pass declares which facts it preserves.
 */
#ifndef OM_BUILDER_H
#define OM_BUILDER_H

#include "onnxmem/opdef.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Append a new block to the list of blocks.  The first one is the graph (owner and attr NULL); the
 * others are bodies: `attr` is the attribute of `owner` that contains the body, and the path is
 * derived from the owner's first output, so outputs must be set before bodies are made. */
OM_API om_block *om_block_new(om_prog *p, om_op *owner, const char *attr, const char *name);

/* A new value named `stem` or, if that name is used anywhere in the program, `stem` followed by a
 * number. */
OM_API om_value *om_value_fresh(om_prog *p, om_block *b, const char *stem);

/* A new constant in block `b`; `data` is not copied. */
OM_API om_value *om_const_new(om_prog *p, om_block *b, const char *name, const om_tensor *data);

/* Append a parameter or a result to a block; results may be values of enclosing blocks. */
OM_API void om_block_add_param(om_block *b, om_value *v);
OM_API void om_block_add_result(om_block *b, om_value *v);

/* A new op that is in no block yet.  The operator definition is looked up by domain, type and the
 * program's opset; `version` 0 selects the version of that opset.  Inputs and outputs are NULL until
 * om_op_set_in() and om_op_set_out(). */
OM_API om_op *om_op_new(om_prog *p, const char *domain, const char *type, int version,
	uint32_t nin, uint32_t nout);
OM_API void om_op_set_in(om_op *op, uint32_t k, om_value *v);
OM_API void om_op_set_out(om_op *op, uint32_t k, om_value *v);  /* becomes v's definition */

/* Attributes of one integer, float, string, or of `count` integers, for om_op_add_attr() and for lists of
 * attributes.  Their elements live as long as the enclosing C block. */
#define OM_MAKE_INT(label, value)     ((om_attr){.name = (label), .kind = OM_ATTR_INT, .n = 1, \
	.i = (const int64_t[]){value}})
/* See OM_MAKE_INT(). */
#define OM_MAKE_FLOAT(label, value)   ((om_attr){.name = (label), .kind = OM_ATTR_FLOAT, .n = 1, \
	.f = (const float[]){value}})
/* See OM_MAKE_INT(). */
#define OM_MAKE_STRING(label, value)  ((om_attr){.name = (label), .kind = OM_ATTR_STRING, .n = 1, \
	.s = (const om_string[]){{(value), strlen(value)}}})
/* See OM_MAKE_INT(). */
#define OM_MAKE_INTS(label, count, values)  ((om_attr){.name = (label), .kind = OM_ATTR_INTS, .n = (count), \
	.i = (values)})

/* Add an attribute; its elements are copied, blocks and tensors are not. */
OM_API void om_op_add_attr(om_prog *p, om_op *op, const om_attr *a);

/* Append an op to a block, insert it before another op, or remove it from its block.  The inputs of an
 * op outside of any block, and all reads in its bodies, are not uses; they become uses again when it
 * is put back. */
OM_API void om_op_append(om_block *b, om_op *op);
OM_API void om_op_insert(om_op *before, om_op *op);  /* op goes right before `before` */
OM_API void om_op_remove(om_op *op);                 /* leaves its values without definition */

/* Remove the folded ops of the graph whose outputs all have elements (om_value.data): their values become constants without an op. */
OM_API void om_prog_remove_folded(om_prog *p);

/* Make `is` an additional result of the graph, which replaces the parameter `was` in the next run.
 * Returns false, without a change, if their known types or shapes differ, or `was` is not a parameter
 * or is replaced already. */
OM_API bool om_prog_add_state(om_prog *p, om_value *was, om_value *is);

/* Declare states by the names of inputs and outputs: each is an output that replaces an input in the next run, which
 * may be computed in the memory of the input.  `text` is INPUT=OUTPUT: the names, or their beginnings if what follows is
 * equal, as past_key_values=present for past_key_values.0.key and present.0.key; or auto: all pairs that are named as
 * exporters of decoders do.  Their shapes may differ, and a plan shares memory only where that is possible.  OM_USAGE if INPUT=OUTPUT names no pair. */
OM_API om_status om_prog_states_by_name(om_session *s, om_prog *p, const char *text);

/* Define an open dim of inputs by others: what was called `symbol` is called `as` in all shapes, so that it is the same dim, or follows from others for
 * all sizes.  `as` is the name of another open dim of an input, or an expression of such names and integers with + - * // and
 * parentheses, as "past + new".  Names that are defined already stand for their definition.  OM_USAGE if `symbol`, or a name in `as`, is
 * no open dim of an input, or if `as` is neither.  Copies of the program, and documents of its plans, have the definitions. */
OM_API om_status om_prog_define_dim(om_session *s, om_prog *p, const char *symbol, const char *as);

/* Reorder the ops of a block: `ops` contains all `nop` of them. */
OM_API void om_block_set_order(om_block *b, om_op *const *ops);

/* Replace every use of `old`, in every block, by `by`.  The uses are appended to the list of `by` in
 * their old order.  Linear in the number of uses of `old`. */
OM_API void om_value_replace(om_value *old, om_value *by);

/* Find a value by name in this block only; NULL if there is none. */
OM_API om_value *om_value_find(const om_block *b, const char *name);

#ifdef __cplusplus
}
#endif

#endif
