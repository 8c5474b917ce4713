/* SPDX-License-Identifier: Apache-2.0 */
/* Building and changing a program: functions that only sources of the library call; see
 * onnxmem/builder.h. */
#ifndef OM_EDIT_H
#define OM_EDIT_H

#include "onnxmem/builder.h"

/* A new value without a definition. */
om_value *om_value_new(om_prog *p, om_block *b, const char *name);

/* Rename a value; the name is copied. */
void om_value_rename(om_value *v, const char *name);

/* Replace the existing result `k` by `v`. */
void om_block_set_result(om_block *b, uint32_t k, om_value *v);

/* Remove all results of a block; the old array is left unchanged. */
void om_block_clear_results(om_block *b);

/* Replace all inputs by the `n` values in `in`; the list is copied into the program `p`. */
void om_op_set_inputs(om_prog *p, om_op *op, uint32_t n, om_value *const *in);

/* Put `op` right before `before`, or, if that is NULL, at the end of the block. */
void om_op_place(om_block *b, om_op *before, om_op *op);

/* Remove an attribute other than a body, if present. */
void om_op_drop_attr(om_op *op, const char *name);

/* As om_prog_add_state(), for a result that exists: declare that result `result` of the graph becomes parameter `param` in the next run.  Returns false,
 * without a change, if either is aliased already, or if their known types or shapes differ. */
bool om_prog_alias_io(om_prog *p, uint32_t result, uint32_t param);

/* As om_prog_alias_io(), whatever their shapes are. */
bool om_prog_pair_io(om_prog *p, uint32_t result, uint32_t param);

/* Remove all input/output aliases; the old list is left unchanged. */
void om_prog_clear_ties(om_prog *p);

/* Remove a body, and the bodies nested in it, from the list of blocks, after its owner was removed.
 * Reads in it are no longer uses. */
void om_block_remove(om_block *b);

/* Find the value with this name in any block that was created first; NULL if there is none. */
om_value *om_prog_find(const om_prog *p, const char *name);

/* The value of `p` that is called as `v`, which has mostly the same id there. */
om_value *om_prog_same_value(const om_prog *p, const om_value *v);

/* Set the scope paths of all bodies, once their ops are in blocks: a body that is read before its op is
 * appended does not know the enclosing scope. */
void om_prog_name_scopes(om_prog *p);

/* Find a block by scope path; NULL if there is none. */
om_block *om_block_find(const om_prog *p, const char *path);

/* As om_op_add_attr(). */
void om_op_add_int(om_prog *p, om_op *op, const char *name, int64_t v);
void om_op_add_float(om_prog *p, om_op *op, const char *name, float v);
void om_op_add_string(om_prog *p, om_op *op, const char *name, const char *v);
void om_op_add_ints(om_prog *p, om_op *op, const char *name, size_t n, const int64_t *v);

#endif
