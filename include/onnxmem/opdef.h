/* Operators.
 *
 * One row says everything the rest of the program may ask about an operator in
 * a range of versions.  A pass that wants to compare names is a sign of a
 * missing column.
 *
 * All columns that compute look at an operator through an om_op_context: its inputs
 * and outputs as tensors.  While planning, a tensor may lack data, dims or a
 * rank; at run time it lacks nothing.  So one `infer` serves both.
 */
#ifndef OM_OPDEF_H
#define OM_OPDEF_H

#include "onnxmem/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_op_context om_op_context;
struct om_kernel;

/* One op as its row sees it: while planning, or in a run. */
struct om_op_context {
	om_session *session;      /* for messages */
	om_arena *mem;            /* scratch for small things; dies with the call */
	const om_op *op;          /* attributes, version, name for messages */
	const om_tensor *in;      /* [op->nin]; an absent one has type OM_UNDEFINED */
	om_tensor *out;           /* [op->nout]; for kernels data is set, but for absent
	                             outputs and those of data-sized operators */
	om_type *out_type;        /* [op->nout]; for infer while planning: where an output is no
	                             tensor, what it is.  NULL in all other calls */
	om_arena *keep;           /* for what elements point to, the text of strings, objects, and
	                             for symbols; lives as long as the outputs */
	void *scratch;            /* for kernels: bytes as `scratch` asked for, aligned to 64 */
	const struct om_kernel *kernel;  /* the one that was chosen; see onnxmem/kernel.h */
	void *state;              /* for kernels: what its `prepare` made */
	/* For kernels of data-sized operators: storage for output `k` of this
	 * shape; sets out[k].  In the fold also for kernels that may return splats
	 * and want all elements of an output.  NULL in all other calls. */
	om_status (*alloc)(om_op_context *c, uint32_t k, const om_shape *shape);
	void *host;               /* whoever made the call */
};

enum {
	OM_POINTWISE  = 1u << 0,  /* out[i] depends on the inputs' [i] only, after broadcast;
	                             of one-element inputs: the fold of splats is one element */
	OM_RANDOM     = 1u << 1,  /* never folded, merged or repeated */
	OM_EFFECT     = 1u << 2,  /* never removed */
	OM_DATA_DEPENDENT_SHAPE = 1u << 3,  /* output dims depend on the inputs' elements in ways that
	                             only the kernel finds out: it calls om_op_context.alloc */
	OM_SPLATS     = 1u << 4,  /* its kernel may be fed, and may return, splat tensors:
	                             the fold calls it for them.  There out[k].splat comes
	                             in true, with room for one element; the kernel clears
	                             it when it sets data to all elements, its own or
	                             from om_op_context.alloc */
	OM_SHAPE_ONLY       = 1u << 5,  /* reads its inputs' shapes, never their elements */
	OM_NON_TENSOR    = 1u << 6,  /* takes or gives values that are no tensors (om_container): its
	                             infer checks of which kind the inputs are, its kernel sets
	                             data of such outputs to objects in om_op_context.keep */
	OM_IMPLEMENTS_FUNCTION     = 1u << 7,  /* models that use it bring a function of its name: the row stands
	                             for that where it takes what the function is called with */
	OM_COMMUTES   = 1u << 8,  /* its two inputs may change places, unless attributes are written:
	                             what it computes has the same bits, but for those of a NaN */
};

/* How an operator uses its bodies. */
typedef enum om_control { OM_PLAIN, OM_IF, OM_LOOP, OM_SCAN, OM_SEQUENCE_MAP } om_control;

/* What the row declares about an attribute. */
typedef struct om_attr_spec {
	const char *name;         /* NULL ends the list */
	om_attr_kind kind;        /* that it has to be of */
	bool required;            /* there is no default */
	int64_t i;                /* defaults, for the kinds int, float, string */
	float f;                  /* see `i` */
	const char *s;            /* see `i` */
} om_attr_spec;

/* An output that is bytes of an input. */
typedef struct om_view_of {
	uint32_t in;              /* which one */
	uint64_t offset;          /* bytes into the input */
} om_view_of;

/* What an op takes to compute. */
typedef struct om_cost {
	double flops;             /* multiply and add count two */
	double bytes;             /* read and written, weights included */
} om_cost;

enum { OM_VARIADIC = 255 };

/* A set of element types: a bit a type. */
#define OM_TYPES(type)    (UINT32_C(1) << (type))
enum { OM_SET_LIKE_BIT = 29 };
/* In place of a set: the type of input `k`, one of the first seven. */
#define OM_SAME_AS(k)     (((uint32_t)(k) + 1) << OM_SET_LIKE_BIT)
enum { OM_MAX_TYPED_INPUTS = 16 };

/* An operator, in some of its versions.  A function that is NULL says: none, or never. */
struct om_opdef {
	const char *domain;       /* "" for ai.onnx */
	const char *name;         /* of the operator */
	const char *brief;        /* what it computes, a line */
	int since, until;         /* versions, inclusive; until 0: still the newest */
	uint8_t min_in, max_in;   /* OM_VARIADIC: any number */
	uint8_t min_out, max_out; /* OM_VARIADIC, too */
	unsigned flags;           /* OM_POINTWISE and those beside it */
	om_control control;       /* how its bodies run */
	const om_attr_spec *attrs;   /* NULL: none */

	/* Set type and shape of every output, as far as they are known, from types,
	 * shapes and, where it steers shapes, data of the inputs.  Refuse with
	 * om_op_fail() what ONNX forbids.  Outputs come in as unknown. */
	om_status (*infer)(om_op_context *c);

	/* What is known of the elements of output 0, a list of integers, where not all
	 * is known about those that it comes from.  `e` comes in as unknown.  NULL:
	 * nothing. */
	void (*propagate_data)(const om_op_context *c, om_symbolic_elem *e);

	/* The largest dims that output `out` of an operator with OM_DATA_DEPENDENT_SHAPE can have;
	 * OM_DIM_UNKNOWN where there is no largest.  NULL: there is none. */
	void (*max_shape)(const om_op_context *c, uint32_t out, om_shape *most);

	/* True when output `out` holds the very bytes of an input, from an offset on.
	 * Shapes of inputs and outputs are known.  NULL: never. */
	bool (*view)(const om_op_context *c, uint32_t out, om_view_of *v);

	/* True when the kernel computes the right numbers also when output `out` lies
	 * exactly over input `in`.  Shapes are known; the two have the same number
	 * of bytes.  The caller answers for liveness.  NULL: never. */
	bool (*inplace)(const om_op_context *c, uint32_t out, uint32_t in);

	/* True when the elements of input `in` are bytes of output 0, from `*offset`
	 * on, and the kernel computes the right numbers also when they lie there
	 * already.  Shapes are known.  NULL: never. */
	bool (*subbuffer)(const om_op_context *c, uint32_t in, uint64_t *offset);

	/* Compute the outputs.  The reference: plain and right.  NULL: cannot be run.  Where a kernel
	 * is registered that prepares it (onnxmem/kernel.h), it finds its state in the call: run it with
	 * om_kernel_call(). */
	om_status (*cpu)(om_op_context *c);

	/* Bytes of scratch that `cpu` wants, shapes being known.  NULL: none. */
	uint64_t (*scratch)(const om_op_context *c);

	/* NULL: one flop an output element; bytes of all inputs and outputs. */
	void (*cost)(const om_op_context *c, om_cost *cost);

	/* The types of elements that each input may have: an op with others is refused,
	 * before `infer` is asked.  What a kernel does not compute is not in the set. 0:
	 * any, or `infer` knows better. */
	uint32_t input_types[OM_MAX_TYPED_INPUTS];
};

/* The row for an operator in an opset; NULL when there is none. */
OM_API const om_opdef *om_opdef_find(const char *domain, const char *name, int version);

/* Is there any row of this name, whatever its version? */
OM_API bool om_opdef_exists(const char *domain, const char *name);

/* Visit every row, in a fixed order; NULL starts and ends. */
OM_API const om_opdef *om_opdef_next(const om_opdef *prev);

/* Refuse elements of a type that an input may not have; a type that is not known
 * passes. */
OM_API om_status om_opdef_check_types(const om_opdef *row, const om_op_context *c);

/* May inputs have these types?  `takes` are OM_MAX_TYPED_INPUTS sets as in a row; types that are not known
 * pass. */
OM_API bool om_types_fit(const uint32_t *takes, const om_op_context *c);

/* The call of `op` as it is known while planning: types, shapes, data of
 * constants.  Arrays come from `mem`. */
OM_API void om_op_context_init(om_op_context *c, om_session *s, om_arena *mem, const om_op *op);

/* Has an op with a row the inputs and outputs that it takes and gives, and none left out that is
 * not optional?  OM_INVALID with a sentence otherwise. */
OM_API om_status om_op_check(om_session *s, const om_op *op);

/* Run the row's `infer` on `op` and write what it found into the outputs'
 * values; for an op without a row, keep what the file declared.  A result that
 * contradicts a declared shape is a warning, and the inferred one stands.  A use
 * of the operator that is OM_UNSUPPORTED makes the op opaque where the file
 * declares its outputs. */
OM_API om_status om_op_infer(om_session *s, om_prog *p, om_op *op);

/* Of an op with a function that it calls: a row of OM_IMPLEMENTS_FUNCTION becomes its row, where that takes
 * the types and shapes of its inputs, as they are known or as the function declares them.  Else
 * it has none, and the function has to be put in its place. */
OM_API bool om_op_bind(om_op *op);

/* Infer every op of a block, in order, and of its bodies. */
OM_API om_status om_block_infer(om_session *s, om_prog *p, om_block *b);

/* If all inputs of `op` have data and it is free of effects, compute its
 * outputs with the row's kernel and keep them as data, where no output takes
 * more than `limit` bytes (repeated elements count once).  OM_OK also when
 * nothing could be done. */
OM_API om_status om_op_fold(om_session *s, om_prog *p, om_op *op, uint64_t limit);

/* The same for the whole program: what is computed from constants alone becomes
 * constant itself, and its op is folded, also where the elements are too many
 * to be computed now.  Needs OM_HAS_SHAPES, gives OM_HAS_CONST.  Counts ops that
 * were computed, and those left to whoever runs the program. */
OM_API om_status om_prog_fold(om_session *s, om_prog *p, uint64_t limit, uint64_t *computed, uint64_t *left);

/* The columns, guarded: known shapes, rows that have none. */
OM_API bool om_op_view(const om_op *op, uint32_t out, om_view_of *v);
OM_API bool om_op_inplace(const om_op *op, uint32_t out, uint32_t in);
/* May output `out` lie over the value `in`, through every input that is that value? */
OM_API bool om_op_inplace_allowed(const om_op *op, uint32_t out, const om_value *in);
OM_API bool om_op_subbuffer(const om_op *op, uint32_t in, uint64_t *offset);
OM_API uint64_t om_op_scratch(const om_op *op);
OM_API om_cost om_op_cost(const om_op *op);
/* The largest shape that an output can have: its own where that is known; false
 * where there is no largest. */
OM_API bool om_op_max_shape(const om_op *op, uint32_t out, om_shape *most);

/* Start a message about an operator: its name, or its type and first output,
 * then the sentence.  Returns `st`. */
OM_API om_status om_op_fail(om_session *s, om_status st, const om_op *op, const char *fmt, ...)
	OM_PRINTF(4, 5);

/* ---- For the columns. ---- */

OM_API bool om_has_in(const om_op_context *c, uint32_t k);    /* given, not left out */
OM_API bool om_has_out(const om_op_context *c, uint32_t k);   /* wanted */

/* Elements of an int64 or int32 input that steer shapes; false when they are
 * not known.  `*v` comes from c->mem. */
OM_API bool om_in_ints(const om_op_context *c, uint32_t k, int64_t **v, size_t *n);
/* The same, element by element, where some are known; false when none is.  There
 * are OM_MAX_RANK at most, where they are not data. */
OM_API bool om_in_symbolic_elems(const om_op_context *c, uint32_t k, const om_symbolic_elem **e, size_t *n);
/* The only element of an input of any number type; false when not known. */
OM_API bool om_in_scalar(const om_op_context *c, uint32_t k, double *v);

/* Numpy's broadcast of two shapes, symbols and unknown dims included; false
 * when they cannot be. */
OM_API bool om_broadcast(const om_shape *a, const om_shape *b, om_shape *out);

/* A negative axis counted from the end; false when outside [-rank, rank). */
OM_API bool om_axis(int64_t axis, int rank, int *out);

#ifdef __cplusplus
}
#endif

#endif
