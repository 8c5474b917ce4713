/* Growing and changing a program.  Names are copied; what is made belongs to
 * the program.  A change of the program makes facts about it untrue: a pass
 * says which it keeps. */
#ifndef OM_BUILDER_H
#define OM_BUILDER_H

#include "onnxmem/opdef.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A new block at the end of the list.  The first one is the graph (owner and
 * attr NULL); the others are bodies: `attr` is the attribute of `owner` that
 * holds it, and the path follows from the owner's first output, so outputs
 * come before bodies. */
OM_API om_block *om_block_new(om_prog *p, om_op *owner, const char *attr, const char *name);

/* A value without definition. */
OM_API om_value *om_value_new(om_prog *p, om_block *b, const char *name);

/* A value called `stem`, or, where that is taken anywhere in the program, with
 * a number after it. */
OM_API om_value *om_value_fresh(om_prog *p, om_block *b, const char *stem);

/* Call a value something else; the name is copied. */
OM_API void om_value_rename(om_value *v, const char *name);

/* A constant of block `b`; `data` is not copied. */
OM_API om_value *om_const_new(om_prog *p, om_block *b, const char *name, const om_tensor *data);

/* Append to what a block takes, or gives; results may be of blocks around it. */
OM_API void om_block_add_param(om_block *b, om_value *v);
OM_API void om_block_add_result(om_block *b, om_value *v);
/* Result `k`, which there is already, is `v` from now on. */
OM_API void om_block_set_result(om_block *b, uint32_t k, om_value *v);
/* A block without results: the list starts anew, the old array stays as it is. */
OM_API void om_block_clear_results(om_block *b);

/* An op that is in no block yet.  The row is looked up by domain, type and the
 * program's opset; `version` 0 takes that opset's.  Inputs and outputs are
 * NULL until om_op_set_in() and om_op_set_out(). */
OM_API om_op *om_op_new(om_prog *p, const char *domain, const char *type, int version,
	uint32_t nin, uint32_t nout);
OM_API void om_op_set_in(om_op *op, uint32_t k, om_value *v);
/* All inputs anew, `n` of them; the list is copied into the program `p`. */
OM_API void om_op_set_inputs(om_prog *p, om_op *op, uint32_t n, om_value *const *in);
OM_API void om_op_set_out(om_op *op, uint32_t k, om_value *v);  /* becomes v's definition */

/* Attributes; values are copied, blocks and tensors are not. */
OM_API void om_op_add_attr(om_prog *p, om_op *op, const om_attr *a);
OM_API void om_op_add_int(om_prog *p, om_op *op, const char *name, int64_t v);
OM_API void om_op_add_float(om_prog *p, om_op *op, const char *name, float v);
OM_API void om_op_add_string(om_prog *p, om_op *op, const char *name, const char *v);
OM_API void om_op_add_ints(om_prog *p, om_op *op, const char *name, size_t n, const int64_t *v);
/* Forget an attribute that is no body, if it is there. */
OM_API void om_op_drop_attr(om_op *op, const char *name);

/* Put an op at the end of a block, before another one, or take it out of its block.  Outside it is
 * no use of its inputs any more, and neither is anything in its bodies; put back, they are again. */
OM_API void om_op_append(om_block *b, om_op *op);
OM_API void om_op_insert(om_op *before, om_op *op);  /* op goes right before `before` */
OM_API void om_op_remove(om_op *op);                 /* leaves its values without definition */

/* Result `result` of the graph is what parameter `param` is in the next run.  False,
 * and nothing changes, where either is tied already, or they differ in type or
 * shape as far as both are known. */
OM_API bool om_prog_alias_io(om_prog *p, uint32_t result, uint32_t param);
/* The same by values: `is` becomes one more result of the graph, which its parameter `was`
 * is in the next run.  False, and nothing changes, where they cannot be tied, or `was` is
 * no parameter. */
OM_API bool om_prog_add_state(om_prog *p, om_value *was, om_value *is);

/* Nothing is handed on any more; the old list stays as it is. */
OM_API void om_prog_clear_ties(om_prog *p);

/* The same ops in another order: all `nop` ops of the block. */
OM_API void om_block_set_order(om_block *b, om_op *const *ops);

/* Take a body, and the bodies in it, out of the list of blocks: for those whose
 * owner was removed.  What is in it reads nothing any more. */
OM_API void om_block_remove(om_block *b);

/* Every use of `old`, in every block, becomes a use of `by`, at the end of its list and in the
 * order of the old one.  Linear in the number of uses of `old`. */
OM_API void om_value_replace(om_value *old, om_value *by);

/* Copies of ops and their bodies, from a program or a function into a program.
 * `value` says, by id in `from`, what stands for a value: set it for those that
 * have a counterpart already; the others are made, called `prefix` and their old
 * name, when the op that defines them is copied.  `ref` gives the attribute that
 * stands for one which refers to another, or NULL to leave it out; a NULL `ref`
 * keeps references. */
typedef struct om_clone {
	om_session *session;     /* which messages go to */
	om_prog *p;              /* where the copies go; not owned, like all here */
	const om_prog *from;     /* where they come from */
	om_arena *mem;           /* for the copying alone */
	const char *prefix;      /* of the names of what is made */
	om_value **value;        /* by id in `from`: the counterpart, or NULL */
	om_block **block;        /* by id in `from`: the copy of a body */
	uint32_t nvalue, nblock; /* how many of each `from` has */
	const om_attr *(*ref)(void *arg, const om_attr *a); /* see above */
	void *arg;               /* of `ref` */
} om_clone;

/* A copying from `from` to `to`, of which nothing has a counterpart yet; it ends with `mem`. */
OM_API om_clone om_clone_new(om_session *s, om_prog *to, const om_prog *from, om_arena *mem, const char *prefix);
/* A copy of `v` in block `b`, which stands for it from now on. */
OM_API om_value *om_clone_value(om_clone *c, const om_value *v, om_block *b);
/* A copy of `op` at the end of block `b`, or right before `before`. */
OM_API om_status om_op_clone(om_clone *c, const om_op *op, om_block *b, om_op *before, om_op **out);

/* In this block only; NULL when there is none. */
OM_API om_value *om_value_find(const om_block *b, const char *name);
/* The one of any block that was made first; NULL when there is none. */
OM_API om_value *om_prog_find(const om_prog *p, const char *name);
/* By scope path; NULL when there is none. */
OM_API om_block *om_block_find(const om_prog *p, const char *path);

#ifdef __cplusplus
}
#endif

#endif
