/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of programs, ops and attributes; see onnxmem/ir.h. */
#ifndef OM_QUERY_H
#define OM_QUERY_H

#include "onnxmem/ir.h"

/* Version of a domain's opset ("" for ai.onnx); 0 when it is not imported. */
int om_opset_version(const om_prog *p, const char *domain);

/* Is `v` a single boolean with the known value `truth` that no caller may override?  As in a run, any
 * nonzero byte is true. */
bool om_value_is(const om_value *v, bool truth);

/* True if `inner` is `outer` or is nested in it, at any depth.  The bodies of an op that was removed
 * from the program are in no block. */
bool om_block_inside(const om_block *inner, const om_block *outer);

/* The op of block `b` that contains the block `inner`, at any depth; NULL if `inner` is `b` itself or
 * outside of it. */
om_op *om_block_enclosing_op(const om_block *b, const om_block *inner);

/* The op of block `b` that runs when the value is read here: the reader, or the op whose body contains it; NULL: the value is a
 * result of `b`, or read outside of it. */
om_op *om_use_op_in(const om_block *b, const om_use *u);

/* Bytes that an op may use of `v` by this plan, which may be NULL: if data decide its size, those of its whole place.  0: no
 * memory that is planned, or `v` is NULL or a constant. */
uint64_t om_value_used_bytes(const om_plan *plan, const om_value *v);

/* Does the block take part in runs: is it the graph, or the body of an op that was not removed? */
bool om_block_is_reached(const om_prog *p, const om_block *b);

/* The parameter of a block with this name; NULL: there is none. */
om_value *om_block_param(const om_block *b, const char *name);

/* Call `visit` for every value that an op reads, and those that the ops and the results of its bodies read, which may be of the bodies
 * themselves; a value that is read twice is visited twice. */
void om_op_each_read(const om_op *op, void (*visit)(void *arg, om_value *v), void *arg);

/* The ops of a block that run, in order: those that are not folded.  `*n` receives their number. */
om_op **om_block_run_ops(const om_block *b, om_arena *mem, uint32_t *n);

/* Is parameter `param` of the graph replaced by a result of the previous run? */
bool om_prog_is_state(const om_prog *p, uint32_t param);

/* Does a device have a state, all of it: is the one op of the graph that reads the parameter its copy to the device, `*in`, and is the
 * result the copy from there, `*out`, which nothing else reads?  A cache with spare rows is none. */
bool om_state_copies(const om_prog *p, const om_io_alias *state, const om_op **in, const om_op **out);

/* Input `k` of an op; NULL if it is omitted. */
static inline om_value *
om_op_input(const om_op *op, uint32_t k)
{
	return k < op->nin ? op->in[k] : NULL;
}

/* The value that identifies an op in a plan: its first output; NULL if it has none. */
const om_value *om_op_first_output(const om_op *op);

/* Is the attribute written in the node, not defaulted? */
bool om_attr_has(const om_op *op, const char *name);

/* The written attributes that the operator definition `row` (NULL: none) declares, too; an entry
 * without a name ends the list. */
const om_attr *om_attrs_of(om_arena *mem, const om_op *op, const om_opdef *row);

/* Attribute values, or the defaults of the operator definition.  `n` may be NULL.  A missing attribute
 * without a default gives 0, NULL or an empty list. */
int64_t om_attr_int(const om_op *op, const char *name);
const int64_t *om_attr_ints(const om_op *op, const char *name, size_t *n);
float om_attr_float(const om_op *op, const char *name);
om_string om_attr_string(const om_op *op, const char *name);
bool om_attr_is(const om_op *op, const char *name, const char *text);
int64_t om_attr_int_at(const om_op *op, const char *name, size_t k, int64_t missing);  /* element k of a list */
const float *om_attr_floats(const om_op *op, const char *name, size_t *n);
const om_tensor *om_attr_tensor(const om_op *op, const char *name);
om_block *om_attr_graph(const om_op *op, const char *name);

#endif
