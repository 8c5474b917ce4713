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

/* A new value without a definition. */
OM_API om_value *om_value_new(om_prog *p, om_block *b, const char *name);

/* A new value named `stem` or, if that name is used anywhere in the program, `stem` followed by a
 * number. */
OM_API om_value *om_value_fresh(om_prog *p, om_block *b, const char *stem);

/* Rename a value; the name is copied. */
OM_API void om_value_rename(om_value *v, const char *name);

/* A new constant in block `b`; `data` is not copied. */
OM_API om_value *om_const_new(om_prog *p, om_block *b, const char *name, const om_tensor *data);

/* Append a parameter or a result to a block; results may be values of enclosing blocks. */
OM_API void om_block_add_param(om_block *b, om_value *v);
OM_API void om_block_add_result(om_block *b, om_value *v);
/* Replace the existing result `k` by `v`. */
OM_API void om_block_set_result(om_block *b, uint32_t k, om_value *v);
/* Remove all results of a block; the old array is left unchanged. */
OM_API void om_block_clear_results(om_block *b);

/* A new op that is in no block yet.  The operator definition is looked up by domain, type and the
 * program's opset; `version` 0 selects the version of that opset.  Inputs and outputs are NULL until
 * om_op_set_in() and om_op_set_out(). */
OM_API om_op *om_op_new(om_prog *p, const char *domain, const char *type, int version,
	uint32_t nin, uint32_t nout);
OM_API void om_op_set_in(om_op *op, uint32_t k, om_value *v);
/* Replace all inputs by the `n` values in `in`; the list is copied into the program `p`. */
OM_API void om_op_set_inputs(om_prog *p, om_op *op, uint32_t n, om_value *const *in);
OM_API void om_op_set_out(om_op *op, uint32_t k, om_value *v);  /* becomes v's definition */

/* Add attributes; values are copied, blocks and tensors are not. */
OM_API void om_op_add_attr(om_prog *p, om_op *op, const om_attr *a);
OM_API void om_op_add_int(om_prog *p, om_op *op, const char *name, int64_t v);
OM_API void om_op_add_float(om_prog *p, om_op *op, const char *name, float v);
OM_API void om_op_add_string(om_prog *p, om_op *op, const char *name, const char *v);
OM_API void om_op_add_ints(om_prog *p, om_op *op, const char *name, size_t n, const int64_t *v);
/* Remove an attribute other than a body, if present. */
OM_API void om_op_drop_attr(om_op *op, const char *name);

/* Append an op to a block, insert it before another op, or remove it from its block.  The inputs of an
 * op outside of any block, and all reads in its bodies, are not uses; they become uses again when it
 * is put back. */
OM_API void om_op_append(om_block *b, om_op *op);
OM_API void om_op_insert(om_op *before, om_op *op);  /* op goes right before `before` */
OM_API void om_op_remove(om_op *op);                 /* leaves its values without definition */

/* Declare that result `result` of the graph becomes parameter `param` in the next run.  Returns false,
 * without a change, if either is aliased already, or if their known types or shapes differ. */
OM_API bool om_prog_alias_io(om_prog *p, uint32_t result, uint32_t param);
/* The same by values: `is` becomes an additional result of the graph, which replaces the parameter
 * `was` in the next run.  Returns false, without a change, if they cannot be aliased, or `was` is not
 * a parameter. */
OM_API bool om_prog_add_state(om_prog *p, om_value *was, om_value *is);

/* Remove all input/output aliases; the old list is left unchanged. */
OM_API void om_prog_clear_ties(om_prog *p);

/* Reorder the ops of a block: `ops` contains all `nop` of them. */
OM_API void om_block_set_order(om_block *b, om_op *const *ops);

/* Remove a body, and the bodies nested in it, from the list of blocks, after its owner was removed.
 * Reads in it are no longer uses. */
OM_API void om_block_remove(om_block *b);

/* Replace every use of `old`, in every block, by `by`.  The uses are appended to the list of `by` in
 * their old order.  Linear in the number of uses of `old`. */
OM_API void om_value_replace(om_value *old, om_value *by);

/* Clones ops and their bodies, from a program or a function into a program. `value` maps ids in `from`
 * to counterparts: set it for values that have a counterpart already; the others are created, named
 * `prefix` followed by their old name, when the op that defines them is cloned.  `ref` returns the
 * attribute to substitute for one that refers to an attribute of the call, or NULL to leave it out; if
 * `ref` itself is NULL, references are kept. */
typedef struct om_clone {
	om_session *session;     /* receives messages */
	om_prog *p;              /* destination; not owned, like everything here */
	const om_prog *from;     /* source */
	om_arena *mem;           /* temporary memory */
	const char *prefix;      /* prefix of the names of new values */
	om_value **value;        /* by id in `from`: the counterpart, or NULL */
	om_block **block;        /* by id in `from`: the copy of a body */
	uint32_t nvalue, nblock; /* how many of each `from` has */
	const om_attr *(*ref)(void *arg, const om_attr *a); /* see above */
	void *arg;               /* of `ref` */
} om_clone;

/* Initialize a clone of parts of `from` into `to`, in which nothing has a counterpart yet; valid as
 * long as `mem`. */
OM_API om_clone om_clone_new(om_session *s, om_prog *to, const om_prog *from, om_arena *mem, const char *prefix);
/* Copy `v` into block `b` and make the copy its counterpart. */
OM_API om_value *om_clone_value(om_clone *c, const om_value *v, om_block *b);
/* Copy `op` to the end of block `b`, or right before `before`. */
OM_API om_status om_op_clone(om_clone *c, const om_op *op, om_block *b, om_op *before, om_op **out);

/* Find a value by name in this block only; NULL if there is none. */
OM_API om_value *om_value_find(const om_block *b, const char *name);
/* Find the value with this name in any block that was created first; NULL if there is none. */
OM_API om_value *om_prog_find(const om_prog *p, const char *name);
/* Find a block by scope path; NULL if there is none. */
OM_API om_block *om_block_find(const om_prog *p, const char *path);

#ifdef __cplusplus
}
#endif

#endif
