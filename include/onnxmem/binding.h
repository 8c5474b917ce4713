/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings: numbers for the symbols and open dims of a program.
 *
 * A model states shapes with symbols, as batch or sequence.  Plans are made for numbers: a binding gives
 * them.  One loaded program serves many bindings: om_prog_bind() makes a bound copy, which shares
 * constants with the program that it is made from, and om_plan_cache_get() (pass.h) keeps one planned
 * copy for each binding.  Nothing is loaded again.
 *
 * Why a copy: shape arithmetic is folded once shapes are known, so that the ops of the program depend on
 * the binding, too.
 */
#ifndef OM_BINDING_H
#define OM_BINDING_H

#include "onnxmem/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shapes of inputs and numbers of symbols. */
typedef struct om_binding om_binding;

/* An empty binding, which binds nothing; the caller frees it.  NULL: out of memory. */
OM_API om_binding *om_binding_new(void);
OM_API void om_binding_free(om_binding *b);   /* NULL is fine */

/* `symbol` stands for `n` everywhere in the program.  OM_USAGE if n is negative, or if the symbol
 * stands for another number already.  The name is copied. */
OM_API om_status om_binding_dim(om_session *s, om_binding *b, const char *symbol, int64_t n);

/* Input `input` has the shape `shape`, with all dims known; its symbols get their numbers from it.
 * OM_USAGE if a dim is unknown, or if the input has another shape in the binding already.  The name is
 * copied. */
OM_API om_status om_binding_shape(om_session *s, om_binding *b, const char *input, const om_shape *shape);

/* Input `input` is the constant `t`, with all its elements, and has its shape: whatever follows from it is folded, and
 * branches that it decides are gone.  OM_USAGE if `t` has no elements, or if the input is another constant in the
 * binding already.  Name and elements are copied. */
OM_API om_status om_binding_value(om_session *s, om_binding *b, const char *input, const om_tensor *t);

/* Input `input` of `p`, which has a default (om_value.is_overridable), is that default as a constant: weights that a file lists as
 * inputs too are folded and packed like others.  No element is copied; the binding is for `p` and its copies.  OM_USAGE if
 * the input does not exist, has no default, or is another constant in the binding already. */
OM_API om_status om_binding_default(om_session *s, om_binding *b, const om_prog *p, const char *input);

/* Every dim of an input that stays open is `n`, at least 1, unless its name is an expression of other dims, as "past + length",
 * which it follows from; 0: an open dim is an error, OM_SHAPE, that
 * names it.  By default, open dims stay open. */
OM_API void om_binding_rest(om_binding *b, int64_t n);

/* Apply a binding to `p` itself: types of inputs, and declared types of all values, get their numbers.
 * An input that is a constant stays a parameter of the graph: an executor accepts the same elements for it, and requires
 * none.  Shapes of other values and plans of `p` are invalid then: run the pass `shapes`.  OM_USAGE for an
 * input or a symbol that the program does not have, or a constant of another type, OM_SHAPE for a shape that contradicts the program
 * or another number; in these cases `p` is unchanged. */
OM_API om_status om_bind(om_session *s, om_prog *p, const om_binding *b);

/* A copy of `p`, bound by `b` as by om_bind(); NULL: not bound.  The copy has the ids, names and order of
 * ops of `p`; facts about shapes are kept, lifetimes and plans are not.  It shares names, constants,
 * bodies of functions and registered gradients with `p`, which must outlive it and is only read; several
 * threads may copy one program.  The caller frees the copy with om_prog_free(); `*out` is NULL on
 * failure. */
OM_API om_status om_prog_bind(om_session *s, const om_prog *p, const om_binding *b, om_prog **out);

/* Is `symbol` that of a batch in `p`: called so ("N", "B", "bs", "bsz", or with "batch" in it), and the first dim wherever an
 * input has it? */
OM_API bool om_symbol_is_batch(const om_prog *p, const char *symbol);

/* Bind to 1 the open symbols of `p` that are those of a batch.  `*told` lists them, as " batch=1"; "" if there are none.  It is
 * allocated in `mem`. */
OM_API om_status om_binding_batches(om_session *s, const om_prog *p, om_binding *b, om_arena *mem, const char **told);

/* The inputs of `p` with open dims and their shapes, as "x [1,seq,?], y of unknown rank", in `mem`; "" if there are none. */
OM_API const char *om_open_inputs_text(const om_prog *p, om_arena *mem);

#ifdef __cplusplus
}
#endif

#endif
