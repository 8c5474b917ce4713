/* SPDX-License-Identifier: Apache-2.0 */
/* The program: blocks of ops in SSA form.
 *
 * Block 0 is the graph; every body of an If, Loop or Scan is a block that is owned by an op.  A body
 * may use any value of its enclosing blocks. Everything reachable from an om_prog is allocated in its
 * arena and freed with it, never individually.  Constants may point into the model that the program
 * was imported from, so the model must outlive the program.
 */
#ifndef OM_IR_H
#define OM_IR_H

#include <stdio.h>

#include "onnxmem/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_prog om_prog;
typedef struct om_block om_block;
typedef struct om_op om_op;
typedef struct om_value om_value;
typedef struct om_attr om_attr;
typedef struct om_function om_function;
typedef struct om_opdef om_opdef;
typedef struct om_plan om_plan;
/* Decisions about values: lifetimes and storage; see assignment.h. */
typedef struct om_assignment om_assignment;
/* Facts about each op from its operator definition; internal. */
typedef struct om_op_facts om_op_facts;
/* The contents of a model file; see onnx.h. */
typedef struct om_model om_model;

/* The kind of a value: a tensor, or a container of tensors. */
typedef enum om_kind { OM_TENSOR, OM_SPARSE, OM_SEQUENCE, OM_OPTIONAL, OM_MAP, OM_OPAQUE } om_kind;

/* The type of a value; its shape is stored separately.  Only OM_TENSOR values are planned. */
typedef struct om_type {
	om_kind kind;                /* of value */
	om_dtype elem;               /* element type of a tensor; key type of a map */
	const struct om_type *of;    /* element type of a sequence or an optional, value type of a map */
} om_type;

/* How a value is backed by storage; see om_backing. */
typedef enum om_store {
	OM_OWN,      /* storage of its own */
	OM_VIEW,     /* bytes of another value, with the same elements */
	OM_INPLACE,  /* overwrites another value, which is destroyed */
	OM_IO_ALIAS,      /* a graph output in the storage of a graph input */
	OM_SUBBUFFER,     /* a sub-buffer of a later value: produced at its final offset there, or in the
			     storage that the later value is computed over */
} om_store;

/* The address of some bytes: those of another value from `offset` on. */
typedef struct om_address {
	om_value *in;            /* the value that contains the bytes */
	uint64_t offset;         /* bytes */
} om_address;

/* Addresses of a value that changes its location with the iterations of a loop.  Iteration i uses
 * first[i] if i < nprologue, else at[i % period], plus i * stride bytes.  An address in a value of the
 * body of that loop denotes the bytes given by the backing of that value; an address in a value
 * defined outside the body denotes its location when the loop starts.  For a carried output of a loop,
 * `i` is the number of iterations that ran. */
typedef struct om_multi_view {
	bool is_output;          /* a carried output of the loop; false: a value of its body */
	uint32_t period, nprologue; /* iterations; the period is at least 1 */
	om_address *at, *first;     /* [period], [nprologue]; in the arena of the assignment */
	int64_t stride;          /* bytes per iteration; 0 except for slices of a scan */
} om_multi_view;

/* What is known about an element of a list of integers before it is computed: its value, a symbol as
 * for dims, or nothing. */
typedef struct om_symbolic_elem {
	bool known;              /* is `value` valid? */
	int64_t value;           /* the value, if known */
	const char *sym;         /* the symbol; NULL: none, or a number */
} om_symbolic_elem;

/* A use of a value: an input of an op, or a result of a block.  The builder maintains uses
 * (builder.h); om_verify() checks them.  The uses of a value form a list in order of creation.  A read
 * of an outer value by an op in a body is a use like any other.  Inputs of an op that is in no block
 * are not uses; neither are reads inside the bodies of a removed op. */
typedef struct om_use {
	om_value *value;         /* the value that is read, and whose list contains this use; NULL: in no
				    list */
	om_op *op;               /* the reader; NULL: the use is a result of a block */
	om_block *block;         /* the block whose result it is; NULL: an op reads the value */
	uint32_t index;          /* of the input, or of the result */
	struct om_use *prev, *next; /* in the list of the value; NULL at the ends */
} om_use;

/* An output of an op, a parameter of a block, or a constant.  Defined exactly once. */
struct om_value {
	const char *name;        /* unique along its scope path; never empty */
	om_block *block;         /* the block that defines it */
	om_op *def;              /* NULL: a parameter of its block, or a constant */
	om_use *first_use, *last_use; /* list of its uses; NULL: it has none */
	uint32_t nuse;           /* number of uses */
	uint32_t id;             /* dense: index into om_prog.values */
	om_type type;            /* OM_UNDEFINED: the element type is not known */
	om_shape shape;          /* for a sequence or an optional: the common shape of its tensors */
	const om_tensor *data;   /* its elements, if known before the run; data->data is NULL for elements
				    elided from a text.  Those of a loaded model may lie in its file, 64 KiB and more
				    of floating point at any address: read them with memcpy() */
	const om_symbolic_elem *elem;     /* for a short list of integers without `data`, one entry for
					     each element; NULL: nothing is known about them */
	bool is_const;           /* an initializer, or computed from constants alone */
	bool is_overridable;     /* an initializer that is an input too: not a constant */
	bool is_declared;        /* type and shape were declared by the file */
	bool has_run_sizes;      /* a size is open because data decide it: only a run tells it */

	const void *origin;      /* its protobuf message in the model; NULL if created by a pass */
	om_value *next_name;     /* link in the program's table of names; used by the builder only */
};

/* The values are those of ONNX. */
typedef enum om_attr_kind {
	OM_ATTR_FLOAT = 1, OM_ATTR_INT, OM_ATTR_STRING, OM_ATTR_TENSOR, OM_ATTR_GRAPH,
	OM_ATTR_FLOATS, OM_ATTR_INTS, OM_ATTR_STRINGS, OM_ATTR_TENSORS, OM_ATTR_GRAPHS,
	OM_ATTR_SPARSE, OM_ATTR_SPARSES, OM_ATTR_TYPE, OM_ATTR_TYPES,
} om_attr_kind;

/* An attribute, as written or as defaulted. */
struct om_attr {
	const char *name;        /* as in ONNX */
	om_attr_kind kind;       /* selects the valid pointer below */
	size_t n;                /* elements; 1 for the single kinds */
	union {
		const float *f;
		const int64_t *i;
		const om_string *s;
		const om_tensor *t;  /* tensors with data */
		om_block **g;
		const om_type *type;
	};
	const char *ref;         /* inside a function: the attribute of the call that replaces this one */
	const void *origin;      /* its message in the model, while that is still equivalent */
};

/* The phase of a training step that an op belongs to.  For reports only: no decision depends on it. */
typedef enum om_phase { OM_NO_PHASE, OM_FORWARD, OM_BACKWARD, OM_UPDATE } om_phase;

/* om_op.node of an op that a pass created, or that comes from the body of a function. */
#define OM_NO_NODE UINT32_MAX

/* A node of the graph, or of a body. */
struct om_op {
	const om_opdef *opdef;       /* NULL: an unknown operator, or a call that no operator definition
				        implements */
	const char *opaque;      /* why the definition was removed: an unsupported use of the operator,
				    whose outputs are declared by the file */
	const om_function *call; /* the model-local function that it calls */
	const char *type;        /* "Conv" */
	const char *domain;      /* "" for ai.onnx */
	const char *overload;    /* "" for none */
	int version;             /* of the opset of its domain that applies here */
	const char *name;        /* the node's name; may be "" */
	om_phase phase;          /* of a training step */
	const char *device;      /* that computes it, as "opencl", and has its outputs; of a copy between memories, the
				    one that it copies to or from.  NULL: the processor */
	const char *rematerialized_from; /* name of the op that this one recomputes, or of its first
					    output; NULL: not a recomputation */
	om_value **in;           /* NULL: an optional input left out.  Set by the builder only, which
				    maintains the uses */
	om_use *use;             /* parallel to `in` */
	om_value **out;          /* NULL: an optional output left out */
	om_attr *attr;           /* attributes that are written in the node, bodies included */
	om_block **body;         /* the graphs among the attributes, in order */
	uint32_t nin, nout, nattr, nbody; /* how many of each */
	om_block *block;         /* the block that contains it; NULL: none yet */
	om_op *prev, *next;      /* in its block; NULL at the ends */
	uint32_t id;             /* dense in order of creation */
	uint32_t index;          /* position in its block.  Valid after om_timeline() */
	uint32_t node;           /* index among the nodes of the graph or body in the file; OM_NO_NODE: none of
				    them is this op */
	uint32_t step, end;      /* see om_timeline() */
	uint32_t region, band;   /* of a tiled program: number of the region that it belongs to, and of the band; from 1, 0: none */
	bool is_folded;          /* all outputs are constants: nothing to do at run time */
	const void *origin;      /* its NodeProto; NULL if created by a pass */
	const struct om_operators *operators; /* those of the program that it was made for */
};

/* An ordered list of ops: the graph, a body of If, Loop or Scan, or the body of a function. */
struct om_block {
	const char *name;        /* the graph's name */
	const char *path;        /* scope path: "" for the graph, "y/then_branch" */
	const char *attr;        /* the attribute of the owner that contains it; NULL for block 0 */
	om_prog *prog;           /* the program that contains it */
	om_op *owner;            /* NULL for block 0 and for the bodies of functions */
	om_value **param;        /* parameters, in order */
	om_value **result;       /* may contain a value twice, a parameter, or a constant.  Set by the
				    builder only */
	om_use **use;            /* parallel to `result` */
	uint32_t nparam, nresult; /* how many of each */
	om_op *first, *last;     /* in execution order; NULL: the block has no op */
	uint32_t nop;            /* number of ops, those in nested bodies not counted */
	uint32_t id;             /* dense in order of creation; 0 is the graph */
	uint32_t begin, end;     /* see om_timeline() */
	bool is_other;           /* its parameters and results differ from those in the file */
	bool cannot_run;         /* a branch of an If that the shapes of the inputs do not allow, so that nothing in it is
				    inferred.  Valid with OM_HAS_SHAPES */
	om_block *next;          /* in order of creation */
	const void *origin;      /* its GraphProto */
	uint8_t carried_open;    /* of a deep loop: what inference of shapes has opened of its carried values; used by it alone */
};

/* An imported operator set, with its version. */
typedef struct om_opset {
	const char *domain;      /* "" for ai.onnx */
	int version;             /* of the set */
} om_opset;

/* A model-local function.  Its body is a block without an owner that is not in the list of the
 * program's blocks. */
struct om_function {
	const char *domain, *name, *overload; /* the identifiers that ops call it by; "" for none */
	om_block *body;              /* its parameters are the inputs, in order */
	const char *const *attr;     /* attributes without default */
	const om_attr *attr_default; /* attributes with default */
	size_t nattr, nattr_default; /* how many of each */
	const om_opset *opset;       /* opsets that its ops belong to */
	size_t nopset;               /* how many */
	om_function *next;           /* in the order of the file */
	const void *origin;          /* its FunctionProto; NULL if created by a pass */
};

/* Facts that are currently valid for a program.  A set bit guarantees that the named fields are up to
 * date. */
enum {
	OM_HAS_INLINE = 1u << 0,  /* no function call is left except those that an operator definition
				     implements */
	OM_HAS_SHAPES = 1u << 1,  /* types and shapes are inferred to the extent possible */
	OM_HAS_CONST  = 1u << 2,  /* is_const, is_folded */
	OM_HAS_LIVE   = 1u << 3,  /* steps; assignment: lifetimes */
	OM_HAS_VIEWS  = 1u << 4,  /* assignment: views */
	OM_HAS_STORE  = 1u << 5,  /* assignment: views and in-place */
	OM_HAS_PLAN   = 1u << 6,  /* plan */
	OM_HAS_SCHEDULE = 1u << 7, /* assignment: how the ops of the program were ordered */
	OM_HAS_ALL    = (1u << 8) - 1,
};

/* Third-party facts have names and optional data; see pass.h.  A third-party fact is valid while the
 * facts that it was derived from are. */
typedef struct om_fact om_fact;

/* The data of a fact without a bit; NULL if the fact is not valid or has no data.  The pointer is
 * valid until the program changes. */
OM_API const void *om_fact_data(const om_prog *p, const char *name);

/* A result of the graph that becomes a parameter of the next run: an updated weight, a cache.  The
 * caller permits the result to overwrite that parameter. */
typedef struct om_io_alias {
	uint32_t result, param;  /* indices into the results and parameters of the graph */
	int axis;                /* a cache with spare rows (pass `capacity`): parameter and result are one buffer, in which */
	int64_t rows_before, rows_after; /* the first rows along this axis are in use, before and after the run; 0, 0: they
	                            are not such buffers */
	const char *symbol;      /* the symbol of that dim of the parameter in the model; NULL: it has none */
} om_io_alias;

/* A dim that is defined by others: see om_prog_define_dim() in onnxmem/builder.h. */
typedef struct om_dim_definition {
	const char *symbol;      /* the name in the model */
	const char *as;          /* the name that it has in the program: another dim, or an expression of dims */
} om_dim_definition;

/* A limit that a pass reached: what it gives may be worse, or proven less, than without it. */
typedef struct om_limit {
	const char *pass;        /* its name */
	const char *option;      /* the option of the pass that raises it; NULL: it is fixed */
	const char *what;        /* what it ended, and what follows: a phrase for reports */
} om_limit;

/* A program: the graph of a model, with all nested bodies. */
struct om_prog {
	om_arena *mem;            /* owns all memory of the program */
	const char *name;         /* the graph's, "" for none */
	om_block *first, *last;   /* first is the graph */
	om_value **values;        /* by id */
	uint32_t nvalue, nblock, nop; /* numbers of ids assigned: all ids are smaller */
	size_t capvalue;          /* capacity of `values` */
	om_function *functions;   /* a list, in the order of the file */
	om_opset *opset;          /* sets of operators that are imported */
	size_t nopset;            /* how many */
	int ir_version;           /* of the file format */
	uint32_t nstep;           /* valid after om_timeline() */
	unsigned has;             /* valid facts: OM_HAS_... */
	om_fact *facts;           /* list of third-party facts; owned */
	om_io_alias *io_alias;    /* aliased pairs; each result and each parameter at most once */
	uint32_t nio_alias;       /* how many */
	size_t cap_io_alias;      /* capacity of `io_alias` */
	om_dim_definition *dim_definition; /* dims of the model that have other names here, in the order of their definition */
	size_t ndim_definition;   /* how many */
	size_t cap_dim_definition; /* capacity of `dim_definition` */
	struct om_names *names;   /* names of the values; used by the builder only */
	const om_assignment *assignment; /* valid under OM_HAS_SCHEDULE, OM_HAS_LIVE, ...: see there */
	const om_op_facts *op_facts; /* internal; NULL: not computed yet */
	om_plan *plan;            /* owned; valid under OM_HAS_PLAN */
	om_model *model;          /* the model it was imported from; not owned; may be NULL */
	const struct om_mappings *files; /* mapped files with elements of its constants; the model's; internal */
	struct om_gradients *gradients; /* gradients of the operators that it uses: see om_prog_add_gradients() */
	const struct om_operators *operators; /* what its ops are looked up in; internal */
	const char *passes;       /* what changed it since it was loaded: a pipeline, without those passes that only decide
	                             about order and storage, or keep lifetimes; NULL: nothing did.  Set by the host */
	om_limit *limits;         /* reached by passes whose results it has, in their order: see om_limit_reached() */
	uint32_t nlimit;          /* how many */
	size_t cap_limit;         /* capacity of `limits` */
	const om_opdef *const *own_opdefs; /* of operators of the caller: see onnxmem/callback.h; NULL, or ends with NULL; internal */
	struct om_op_rule *op_rules; /* definitions by rules: see om_prog_op_rule() */
	const struct om_tiling *tiling; /* what the pass `tile` did: see onnxmem/tiling.h; NULL: it did not run */
};

/* An empty program, without a graph yet.  om_prog_free() frees it and everything in it. */
OM_API om_prog *om_prog_new(void);
OM_API void om_prog_free(om_prog *p);         /* NULL is permitted */

/* Text is the second representation of a program: parsing a dump gives the same program, up to elided
 * data.  Constants of more than 256 bytes are elided unless all data is requested, and are read back
 * without elements.  Facts found by passes follow each line as a comment, while they are valid.
 * `where` names the source in messages. */
enum { OM_DUMP_LIVE = 1u << 0, OM_DUMP_ALL_DATA = 1u << 1 };
/* Parse a text into a program, which the caller frees.  OM_MALFORMED, with the line, for a syntax
 * error; OM_IR if the program violates an invariant. */
OM_API om_status om_parse(om_session *s, FILE *in, const char *where, om_prog **out);
/* Write a program as text; `flags` are OM_DUMP_*. */
OM_API void om_dump(const om_prog *p, FILE *to, unsigned flags);

/* Check every invariant that passes rely on.  Every violation is logged as a warning; the message
 * names the first one and counts the rest. */
OM_API om_status om_verify(om_session *s, const om_prog *p);

/* Number the steps of a run in the order of the blocks.
 *
 * An op without bodies takes one step: step == end.  An op with bodies takes `step` (it reads its
 * inputs, and the parameters of its bodies are written), then the steps of each body, then `end` (its
 * outputs are complete).  A block runs from `begin`, the step of its first op, to `end`, a separate
 * step in which its results are read: by the caller, by the owner's outputs, or by the parameters of
 * the next iteration.  Linear in the number of ops. */
OM_API void om_timeline(om_prog *p);

/* Size of the elements of `v` in bytes; 0 if it is not known, or `v` is not a tensor. */
OM_API uint64_t om_value_bytes(const om_value *v);

/* Report an error in an op: its name, or its type and first output, followed by the message.  Returns
 * `st`. */
OM_API om_status om_op_fail(om_session *s, om_status st, const om_op *op, const char *fmt, ...)
	OM_PRINTF(4, 5);

/* An attribute of `op`, or the default of the operator definition; NULL: it has neither. */
OM_API const om_attr *om_attr_find(const om_op *op, const char *name);

#ifdef __cplusplus
}
#endif

#endif
