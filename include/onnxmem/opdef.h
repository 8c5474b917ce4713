/* SPDX-License-Identifier: Apache-2.0 */
/* Operators.
 *
 * An operator definition declares every property of an operator in a range of versions.  A pass that
 * compares operator names is a sign of a missing field.
 *
 * The callbacks of a definition see an op through an om_op_context, that is, its inputs and outputs as
 * tensors.  While planning, a tensor may lack data, dims or a rank; at run time it is complete.  One
 * `infer` therefore serves both.
 */
#ifndef OM_OPDEF_H
#define OM_OPDEF_H

#include "onnxmem/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_op_context om_op_context;
struct om_kernel;
struct om_slice;

/* One op as seen by the callbacks of its definition, while planning or in a run. */
struct om_op_context {
	const om_tensor *in;      /* [op->nin]; an absent one has type OM_UNDEFINED */
	om_tensor *out;           /* [op->nout]; for kernels data is set, except for absent
	                             outputs and those of OM_DATA_DEPENDENT_SHAPE */
	const struct om_kernel *kernel;  /* the selected kernel; see onnxmem/kernel.h */
	void *state;              /* for kernels: the state created by its `prepare` */
	void *scratch;            /* for kernels: as many bytes as `scratch` returned, aligned to 64 */
	const om_op *op;          /* attributes, version, name for messages */
	om_arena *mem;            /* scratch for small allocations; freed after the call */
	om_session *session;      /* for messages */
	om_type *out_type;        /* [op->nout]; for `infer` while planning: the type of an output that
	                             is not a tensor.  NULL in all other calls */
	om_arena *keep;           /* for data that elements point to: text of strings, objects, symbols;
	                             lives as long as the outputs */
	bool sizes_only;          /* for `prepare`: only `workspace` is called next, so that tables whose
	                             size grows with the tensors need not be computed */
	/* For kernels of operators with OM_DATA_DEPENDENT_SHAPE: allocates storage for output `k` of the
	 * given shape and sets out[k].  During folding also for kernels that may return splats, when
	 * they need storage for all elements of an output.  NULL in all other calls. */
	om_status (*alloc)(om_op_context *c, uint32_t k, const om_shape *shape);
	void *host;               /* private data of the caller */
	/* For `view` and `subbuffer`: what a definition keeps for its next calls with this context, such
	 * as offsets of all parts, allocated from `mem`.  *memo starts as NULL; memo is NULL where nothing
	 * can be kept. */
	void **memo;
	uint32_t workers;         /* for kernels: `workspace` is for this many workers, at least 1, and a run
	                             uses no more of them */
	struct om_workers *pool;  /* for kernels: the workers (src/base/parallel.h); NULL in all other calls
	                             and for a serial run */
	bool precise;             /* select no kernel that is marked `is_fast` */
	/* For kernels: the first `bytes` bytes of input `in` are not read again, so that the caller may give them back.
	 * NULL where it would not. */
	void (*consumed)(om_op_context *c, uint32_t in, uint64_t bytes);
	struct om_comm *comm;     /* for kernels: the ranks of the run (onnxmem/comm.h); NULL: there is one */
};

enum {
	OM_POINTWISE  = 1u << 0,  /* out[i] depends only on element i of the inputs, after broadcasting;
	                             with one-element inputs, folding a splat computes one element */
	OM_RANDOM     = 1u << 1,  /* never folded, merged or repeated */
	OM_EFFECT     = 1u << 2,  /* never removed */
	OM_DATA_DEPENDENT_SHAPE = 1u << 3,  /* output dims depend on the inputs' elements and are known
	                             only to the kernel, which calls om_op_context.alloc */
	OM_SPLATS     = 1u << 4,  /* its kernel accepts and may return splat tensors: the fold
	                             calls it with them.  out[k].splat is then initially
	                             true, with storage for one element; the kernel clears
	                             it when it sets data to all elements, its own or
	                             from om_op_context.alloc */
	OM_SHAPE_ONLY       = 1u << 5,  /* reads its inputs' shapes, never their elements */
	OM_NON_TENSOR    = 1u << 6,  /* has inputs or outputs that are not tensors (om_container): its
	                             infer checks the kinds of the inputs; its kernel sets data
	                             of such outputs to objects in om_op_context.keep */
	OM_IMPLEMENTS_FUNCTION     = 1u << 7,  /* implements a model-local function of the same name
	                             if the argument types match */
	OM_COMMUTES   = 1u << 8,  /* its two inputs may be swapped, unless attributes are present:
	                             results are bit-identical, except for NaN payloads */
	OM_UNALIGNED  = 1u << 9,  /* all its kernels accept elements of input 0 at any address: weights are read
	                             where they are in a file */
	OM_MONOTONE   = 1u << 10, /* as known of OM_POINTWISE: no dim of an output is smaller where dims of inputs are larger and
	                             their elements are the same, so that bounds of the inputs give bounds of the outputs */
	OM_PART       = 1u << 11, /* output 0 is a part of input 0: where it is a view of all of it, it may be less for other sizes */
	OM_COLLECTIVE = 1u << 12, /* exchanges data with other ranks: all ranks run such ops in the same order, which no plan may
	                             change; has OM_EFFECT and OM_RANDOM, too */
	OM_OPEN_INPLACE = 1u << 13, /* its column `inplace` may be called while shapes of other inputs and outputs are not known */
};

/* How an operator uses its bodies. */
typedef enum om_control { OM_PLAIN, OM_IF, OM_LOOP, OM_SCAN, OM_SEQUENCE_MAP } om_control;

/* Between the memory of the processor and that of a device (om_op.device). */
typedef enum om_copies { OM_COPIES_NOTHING, OM_COPIES_TO_DEVICE, OM_COPIES_TO_HOST } om_copies;

/* Declaration of an attribute. */
typedef struct om_attr_spec {
	const char *name;         /* NULL ends the list */
	om_attr_kind kind;        /* required kind */
	bool required;            /* the attribute has no default */
	int64_t i;                /* defaults, for the kinds int, float, string */
	float f;                  /* see `i` */
	const char *s;            /* see `i` */
} om_attr_spec;

/* An output that consists of bytes of an input. */
typedef struct om_view_of {
	uint32_t in;              /* index of the input */
	uint64_t offset;          /* in bytes, from the start of the input */
} om_view_of;

/* Estimated cost of one execution of an op. */
typedef struct om_cost {
	double flops;             /* a multiply-add counts as two */
	double bytes;             /* read and written, weights included */
	int64_t rows;             /* rows of an image that are computed together: fewer take as long; 0: any number */
} om_cost;

enum { OM_VARIADIC = 255 };

/* A set of element types, one bit per type. */
#define OM_TYPES(type)    (UINT32_C(1) << (type))
enum { OM_SET_LIKE_BIT = 29 };
/* In place of a set: the same type as input `k`, which is one of the first seven. */
#define OM_SAME_AS(k)     (((uint32_t)(k) + 1) << OM_SET_LIKE_BIT)
enum { OM_MAX_TYPED_INPUTS = 16 };

/* The definition of an operator for a range of versions.  A callback that is NULL means none, or never. */
struct om_opdef {
	const char *domain;       /* "" for ai.onnx */
	const char *name;         /* of the operator */
	const char *brief;        /* one-line description */
	int since, until;         /* versions, inclusive; until 0: no upper bound */
	uint8_t min_in, max_in;   /* OM_VARIADIC: any number */
	uint8_t min_out, max_out; /* OM_VARIADIC: any number */
	unsigned flags;           /* OM_POINTWISE etc. */
	om_control control;       /* how its bodies are executed */
	om_copies copies;         /* what the operator does instead of computing */
	const om_attr_spec *attrs;   /* NULL: none */

	/* Set the type and shape of every output, as far as they are known, from types and shapes of the
	 * inputs and, where shapes depend on it, their data.  Report uses that ONNX forbids with
	 * om_op_fail().  Outputs are initially unknown. */
	om_status (*infer)(om_op_context *c);

	/* Partial data of output 0, a list of integers, computed from inputs whose elements are not all
	 * known.  `e` is initially unknown.  NULL: nothing is known. */
	void (*propagate_data)(const om_op_context *c, om_symbolic_elem *e);

	/* Upper bounds for the dims of output `out` that data decide: of an operator with OM_DATA_DEPENDENT_SHAPE, or of
	 * one whose inputs may give sizes.  `most` is the shape as far as it is known; a dim without a bound stays
	 * OM_DIM_UNKNOWN.  The shapes of inputs may be bounds, too.  NULL: there are no bounds. */
	void (*max_shape)(const om_op_context *c, uint32_t out, om_shape *most);

	/* True when output `out` is a view: its bytes are those of an input, from an offset on.  Shapes
	 * of inputs and outputs are known.  The op is not run if the output is stored there, be it as a view
	 * or, where it is all of the input, because the input was computed in it.  NULL: never. */
	bool (*view)(const om_op_context *c, uint32_t out, om_view_of *v);

	/* True when the kernel computes correct results also when output `out` has exactly the storage
	 * of input `in`.  Shapes are known; both have the same number of bytes.  The caller is
	 * responsible for checking liveness.  NULL: never. */
	bool (*inplace)(const om_op_context *c, uint32_t out, uint32_t in);

	/* True when the elements of input `in` are bytes of output 0, from `*offset` on, and the kernel
	 * computes correct results also when they are already stored there.  Shapes are known.  NULL:
	 * never. */
	bool (*subbuffer)(const om_op_context *c, uint32_t in, uint64_t *offset);

	/* The part s->out[out] of output `out`, which has elements: set which part of each input it needs, which part
	 * of the other outputs is computed with it, and how the op that computes it differs (onnxmem/slice.h).  False:
	 * there is no such part; nothing of `s` is used then.  Initially inputs and other outputs are whole, and
	 * nothing differs.  Shapes are known.  The parts of the inputs are monotone in the bounds of the part.
	 * NULL: never, except for OM_POINTWISE, whose parts follow from broadcasting. */
	bool (*slice)(const om_op_context *c, uint32_t out, struct om_slice *s);

	/* The contribution of part s->in[in] of input `in`, which has elements, to output 0, which is whole: set the
	 * parts of the other inputs, how the op that computes it differs, and how contributions are combined.
	 * Otherwise as `slice`. */
	bool (*partial)(const om_op_context *c, uint32_t in, struct om_slice *s);

	/* Compute the outputs: the reference kernel, simple and correct.  NULL: the operator cannot be
	 * run.  If a registered kernel (onnxmem/kernel.h) of the operator has a `prepare`, `cpu` expects the
	 * state in the context. */
	om_status (*cpu)(om_op_context *c);

	/* Bytes of workspace that `cpu` requires; shapes are known.  NULL: none. */
	uint64_t (*scratch)(const om_op_context *c);

	/* NULL: one flop per output element; the bytes of all inputs and outputs. */
	void (*cost)(const om_op_context *c, om_cost *cost);

	/* Allowed element types of each input: an op with other types is refused before `infer` is
	 * called.  Types that the kernel does not support are excluded.  0: any type, or `infer` does a
	 * more precise check. */
	uint32_t input_types[OM_MAX_TYPED_INPUTS];
};

/* Iterate over all definitions, in a fixed order; NULL starts and ends. */
OM_API const om_opdef *om_opdef_next(const om_opdef *prev);

/* Guarded calls of the callbacks: they also handle unknown shapes and ops without a definition. */
OM_API bool om_op_view(const om_op *op, uint32_t out, om_view_of *v);
OM_API bool om_op_inplace(const om_op *op, uint32_t out, uint32_t in);
/* Zero for what is not known. */
OM_API om_cost om_op_cost(const om_op *op);

/* Define, by a rule, an operator that has no definition: "DOMAIN:NAME=PROPERTY,...".  A property is
 * inplace:IN (the output may be computed over input IN), view:IN (it is the first bytes of that input, and the op is
 * not run), shape:IN (it has the shape of that input, and its element type unless the file declares one), which are for
 * output 0 unless an at sign and the number of another one follow; or scratch:SIZE (bytes that the op needs while it runs, in any plan).  To be called
 * before passes run.  Ops with a rule take part in plans and are never removed, merged or moved; they cannot be run.
 * OM_USAGE, with the column, if the text is wrong, the operator has a definition or another rule, or an op does not have
 * such an input or output; `*used`: an op has this operator.  The same rule may be given again. */
OM_API om_status om_prog_op_rule(om_session *s, om_prog *p, const char *rule, bool *used);
/* The text of rule `k` of those that are used, in order, and the number of ops that it defines; NULL after the last one. */
OM_API const char *om_prog_op_rule_text(const om_prog *p, size_t k, uint32_t *nop);

#ifdef __cplusplus
}
#endif

#endif
