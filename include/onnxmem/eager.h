/* SPDX-License-Identifier: Apache-2.0 */
/* A dynamic graph: ops are called one by one on variables, and computed at once.
 *
 *     om_eager_new(s, NULL, &e);
 *     om_variable_new(e, &x, &vx);
 *     om_eager_call(e, &y, "Relu", NULL, vx);
 *     om_variable_read(y, &t);
 *
 * Nothing is compiled up front.  The context remembers sequences of calls: when one with the same operators, attributes,
 * types, shapes and data flow comes again, it is compiled to a planned program, and from then on such calls are
 * deferred and run together in its arena.  When the calls diverge from what is known, those that were deferred are
 * computed one by one, as if nothing had been known: results are the same bits in any case.  A sequence ends where
 * elements are read, at om_eager_finish(), and where it starts to repeat itself.
 *
 * A variable is immutable and has two owners: the caller, until om_variable_free(), and what is derived from it.
 * Gradients follow the calls that were recorded, whatever control flow of the host made them; a recorded call lives as
 * long as its results.  A context and its variables are not thread-safe.
 */
#ifndef OM_EAGER_H
#define OM_EAGER_H

#include "onnxmem/autodiff.h"
#include "onnxmem/callback.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context: it owns memory, prepared kernels and programs. */
typedef struct om_eager om_eager;

/* A tensor with reference counts. */
typedef struct om_variable om_variable;

/* Parameters of a context; initialized by OM_EAGER_OPTIONS(). */
typedef struct om_eager_options {
	size_t size;             /* of this struct: set by OM_EAGER_OPTIONS */
	int opset;               /* version of ai.onnx; 0: 21 */
	uint32_t threads;        /* that kernels use, the caller included; 0: 1 */
	bool no_replay;          /* compute each call at once: never defer */
	uint64_t max_memory;     /* bytes that the pool may hold; more is OM_MEMORY.  0: no limit */
	uint64_t result_bytes;   /* results of pure calls that are remembered for calls on the same variables; those
	                            that are cheap to compute again for their size go first.  0: none */
	uint64_t tape_bytes;     /* results that only recorded calls hold may have as many bytes; beyond, those that are
	                            cheap to compute again are dropped, and computed again when a gradient reads them.
	                            0: no limit */
	uint32_t programs;       /* compiled programs that are kept; 0: 64 */
	const om_callbacks *callbacks; /* functions of the caller as operators; NULL: none */
} om_eager_options;

/* The initializer of om_eager_options, with members that differ from the defaults. */
#define OM_EAGER_OPTIONS(...) {.size = sizeof(om_eager_options), __VA_ARGS__}

/* Counters and memory of a context. */
typedef struct om_eager_stats {
	uint64_t calls;          /* of operators */
	uint64_t computed;       /* calls that were computed one by one */
	uint64_t replayed;       /* calls that were computed by a compiled program */
	uint64_t replays;        /* runs of compiled programs */
	uint64_t diverged;       /* how often deferred calls were computed one by one after all */
	uint64_t programs;       /* compiled programs that exist */
	uint64_t kernels;        /* prepared kernels: one for each signature of a call */
	uint64_t variables;      /* that exist */
	uint64_t pool_bytes;     /* held by the pool, in use or free */
	uint64_t used_bytes;     /* of them in use */
	uint64_t peak_bytes;     /* the most that were in use */
	uint64_t arena_bytes;    /* arenas of all compiled programs together */
	uint64_t last_arena_bytes; /* the arena of the program that ran last */
	uint64_t remembered;     /* calls whose results were remembered */
	uint64_t result_bytes;   /* of remembered results */
	uint64_t dropped;        /* results that were dropped for `tape_bytes` */
	uint64_t recomputed;     /* and those that were computed again */
} om_eager_stats;

/* A new context; the caller frees it.  `o` NULL: the defaults.  OM_USAGE if `o` has no valid size, or an opset below 16
 * or unknown. */
OM_API om_status om_eager_new(om_session *s, const om_eager_options *o, om_eager **out);
/* Frees its variables, too; NULL is fine. */
OM_API void om_eager_free(om_eager *e);

/* Call an operator, "Conv", or one of another domain, "com.microsoft:Gelu".  `attrs`: a list that ends with an entry without
 * a name, as OM_A() makes it; NULL: none.  NULL among the inputs is an omitted input.  `out` receives `nout` variables,
 * which the caller frees; on failure, NULL.  Deferred calls report errors of their elements, as an index out of
 * range, when they are computed.  OM_UNSUPPORTED for operators with bodies, strings or objects that are no tensors. */
OM_API om_status om_eager_run(om_eager *e, const char *type, const om_attr *attrs, size_t nin, om_variable *const *in,
	size_t nout, om_variable **out);

/* om_eager_call(e, &y, "Add", NULL, a, b): a call with one output. */
#define om_eager_call(e, out, type, attrs, ...)                                    \
	om_eager_run(e, type, attrs, sizeof((om_variable *[]){__VA_ARGS__}) / sizeof(om_variable *), \
		(om_variable *[]){__VA_ARGS__}, 1, out)

/* Call a program, with whatever control flow it has: for new shapes of its inputs a copy is bound and planned, and kept.  NULL is
 * an input that keeps its default.  The program is only read, and must exist until om_eager_trim() or om_eager_free().  The
 * sequence ends here, and no gradient passes through. */
OM_API om_status om_eager_run_program(om_eager *e, const om_prog *p, size_t nin, om_variable *const *in, size_t nout,
	om_variable **out);

/* Compute what is deferred; a sequence of calls ends here. */
OM_API om_status om_eager_finish(om_eager *e);

/* Forget compiled programs and remembered results, and give free memory back. */
OM_API om_status om_eager_trim(om_eager *e);

/* Owned by the context; updated by this call. */
OM_API const om_eager_stats *om_eager_get_stats(om_eager *e);

/* ---- Variables. ---- */

/* A variable with a copy of the elements of `t`.  OM_UNSUPPORTED for strings. */
OM_API om_status om_variable_new(om_eager *e, const om_tensor *t, om_variable **out);

/* One more owner: each is ended by om_variable_free(). */
OM_API om_variable *om_variable_keep(om_variable *v);
/* The caller does not use it any more.  Its memory is released when nothing that is derived from it needs it, at once as a
 * rule; NULL is fine. */
OM_API void om_variable_free(om_variable *v);

/* Type and shape, without elements; nothing is computed. */
OM_API const om_tensor *om_variable_form(const om_variable *v);

/* The elements, after what is deferred has been computed.  They may be read until the variable is freed. */
OM_API om_status om_variable_read(om_variable *v, const om_tensor **out);

/* ---- Memory of others. ---- */

/* Elements in memory, and how to end their use. */
typedef struct om_memory {
	void *data;              /* the first element */
	om_dtype type;           /* of the elements */
	int rank;                /* at most OM_MAX_RANK */
	const int64_t *dim;      /* [rank] */
	const int64_t *stride;   /* [rank] in elements; NULL: row major and dense */
	const char *device;      /* NULL: "cpu", the only one that is supported */
	void (*release)(void *arg); /* ends the use; NULL: nothing to do */
	void *arg;               /* of `release` */
} om_memory;

/* A variable of these elements.  They are not copied if they are dense in row-major order and aligned for their type: then they
 * must not change until `release` is called, which happens when nothing needs them any more, at the latest in
 * om_eager_free().  Others are copied and released at once.  On failure they are not released. */
OM_API om_status om_variable_wrap(om_eager *e, const om_memory *m, om_variable **out);

/* The elements of a variable as memory of the caller: they stay where they are, and must not change, until the caller calls
 * to->release(to->arg), also after the variable and the context are freed. */
OM_API om_status om_variable_lend(om_variable *v, om_memory *to);

/* A tensor of DLPack (dlpack.h). */
struct DLManagedTensor;

/* The same for tensors of DLPack: the variable ends the use of `m` by its deleter; on failure, the caller still owns it. */
OM_API om_status om_variable_from_dlpack(om_eager *e, struct DLManagedTensor *m, om_variable **out);
/* The caller owns `*to`, and ends its use by its deleter. */
OM_API om_status om_variable_to_dlpack(om_variable *v, struct DLManagedTensor **to);

/* ---- Gradients. ---- */

/* Record calls from now on, or do not: those that depend on a variable that is watched, or on the result of a recorded call.
 * Initially they are not. */
OM_API void om_eager_record(om_eager *e, bool records);

/* Gradients by this variable may be asked for. */
OM_API void om_variable_watch(om_variable *v);

/* The gradients of `loss` by `n` variables, which are watched or follow from those that are.  `seed`: the gradient of the loss, of
 * its type and shape; NULL: one, and the loss has one element.  grad[k] receives a variable that the caller frees; NULL: the
 * loss does not depend on wrt[k].  What computes the gradients are calls, which are recorded if calls are.
 * OM_UNSUPPORTED names an operator that has no gradient. */
OM_API om_status om_eager_gradient(om_eager *e, om_variable *loss, om_variable *seed, size_t n, om_variable *const *wrt,
	om_variable **grad);

#ifdef __cplusplus
}
#endif

#endif
