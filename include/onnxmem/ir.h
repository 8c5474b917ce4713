/* The program: blocks of ops in SSA form.
 *
 * Block 0 is the graph; every body of an If, Loop or Scan is a block that is
 * owned by an op.  A body may use any value of the blocks around it.
 * Everything reachable from an om_prog lives in its arena and dies with it;
 * nothing in it is freed on its own.  Constants may point into the model that
 * the program was imported from, which therefore has to live longer.
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
/* What is decided about values; see assignment.h. */
typedef struct om_assignment om_assignment;
/* What the definitions of operators allow; see op_facts.h. */
typedef struct om_op_facts om_op_facts;
/* What a file holds; see onnx.h. */
typedef struct om_model om_model;

/* What a value is: a tensor, or something that holds tensors. */
typedef enum om_kind { OM_TENSOR, OM_SPARSE, OM_SEQUENCE, OM_OPTIONAL, OM_MAP, OM_OPAQUE } om_kind;

/* The type of a value; its shape stands beside it.  Only OM_TENSOR values are
 * ever planned. */
typedef struct om_type {
	om_kind kind;                /* of value */
	om_dtype elem;               /* of a tensor; of the keys of a map */
	const struct om_type *of;    /* what a sequence, an optional or a map holds */
} om_type;

/* Type of the tensors in it, at any depth; of a map, of its values. */
OM_API om_dtype om_type_elem(const om_type *t);
OM_API bool om_type_equal(const om_type *a, const om_type *b);
OM_API const char *om_kind_text(om_kind kind);   /* "sequence" */
/* Does `t` stand for an object of this type, at every depth? */
OM_API bool om_container_fits(const om_tensor *t, const om_type *type);

/* How a value comes to its storage; see om_backing. */
typedef enum om_store {
	OM_OWN,      /* storage of its own */
	OM_VIEW,     /* is bytes of another value, which holds the same elements */
	OM_INPLACE,  /* is computed over another value, which it destroys */
	OM_IO_ALIAS,      /* a graph output in the storage of a graph input */
	OM_SUBBUFFER,     /* lies in the storage of a value that is computed later: it is written
	                straight where that needs it, or where that is computed over it */
} om_store;

/* Where bytes are: those of another value, from `offset` on. */
typedef struct om_address {
	om_value *in;            /* whose bytes they are */
	uint64_t offset;         /* bytes */
} om_address;

/* A value that lies elsewhere in every round of a loop: in round i < nprologue at first[i],
 * then at at[i % period], i * stride bytes further up.  A spot in a value of the body of
 * that loop stands for the bytes that its backing gives it; one in a
 * value from around it for where that lies when the loop starts.  For a carried output
 * of a loop `i` is the number of rounds that ran. */
typedef struct om_multi_view {
	bool is_output;          /* of the loop; false: a value of its body */
	uint32_t period, nprologue; /* rounds; a period is at least 1 */
	om_address *at, *first;     /* [period], [nprologue]; in the arena of the assignment */
	int64_t stride;          /* bytes; 0 but for slices of a scan */
} om_multi_view;

/* What is known about an element of a list of integers before it is computed:
 * its number; or a symbol, as for dims; or nothing. */
typedef struct om_symbolic_elem {
	bool known;              /* is it a number? */
	int64_t value;           /* the number */
	const char *sym;         /* the symbol; NULL: none, or a number */
} om_symbolic_elem;

/* A place that reads a value: an input of an op, or a result of a block.  The builder keeps them
 * (build.h), om_verify() checks them.  Those of a value are a list in the order in which they
 * came to be.  An op in a body that reads a value from around it is a use like any other.  What
 * an op in no block takes is no use; nor is what the bodies of an op do that was removed. */
typedef struct om_use {
	om_value *value;         /* whose list it is in; NULL: in none */
	om_op *op;               /* that reads the value; NULL: a result */
	om_block *block;         /* whose result it is; NULL: an op reads it */
	uint32_t index;          /* of the input, or of the result */
	struct om_use *prev, *next; /* in the list of the value; NULL at the ends */
} om_use;

/* What an op computes, a block is given, or a constant: defined once. */
struct om_value {
	const char *name;        /* unique along its scope path; never empty */
	om_block *block;         /* where it is defined */
	om_op *def;              /* NULL: a parameter of its block, or a constant */
	om_use *first_use, *last_use; /* where it is read; NULL: nowhere */
	uint32_t nuse;           /* how often */
	uint32_t id;             /* dense: index into om_prog.values */
	om_type type;            /* OM_UNDEFINED in it: not known */
	om_shape shape;          /* of a sequence or an optional: what its tensors have in common */
	const om_tensor *data;   /* its elements, where they are known before the run.
	                            Elements elided from a text: data->data is NULL */
	const om_symbolic_elem *elem;     /* of a short list of integers that is not data, an element
	                            each; NULL: nothing is known about them */
	bool is_const;           /* an initializer, or computed from constants alone */
	bool is_overridable;     /* an initializer that is an input too: not a constant */
	bool is_declared;        /* type and shape were declared by the file */

	const void *origin;      /* its message in the model; NULL if made by a pass */
	om_value *next_name;     /* in the program's table of names; for the builder alone */
};

/* The numbers are ONNX's. */
typedef enum om_attr_kind {
	OM_ATTR_FLOAT = 1, OM_ATTR_INT, OM_ATTR_STRING, OM_ATTR_TENSOR, OM_ATTR_GRAPH,
	OM_ATTR_FLOATS, OM_ATTR_INTS, OM_ATTR_STRINGS, OM_ATTR_TENSORS, OM_ATTR_GRAPHS,
	OM_ATTR_SPARSE, OM_ATTR_SPARSES, OM_ATTR_TYPE, OM_ATTR_TYPES,
} om_attr_kind;

/* An attribute, as it was written or defaulted. */
struct om_attr {
	const char *name;        /* as in ONNX */
	om_attr_kind kind;       /* says which of the pointers below holds */
	size_t n;                /* elements; 1 for the single kinds */
	union {
		const float *f;
		const int64_t *i;
		const om_string *s;
		const om_tensor *t;  /* tensors with data */
		om_block **g;
		const om_type *type;
	};
	const char *ref;         /* inside a function: the attribute of the call it stands for */
	const void *origin;      /* its message in the model, as long as that says the same */
};

/* What part of a training step an op belongs to.  For reports alone: nothing is
 * decided by it. */
typedef enum om_phase { OM_NO_PHASE, OM_FORWARD, OM_BACKWARD, OM_UPDATE } om_phase;

/* "forward", "backward", "update"; "" for none. */
OM_API const char *om_phase_text(om_phase phase);
OM_API om_phase om_phase_find(const char *text);   /* OM_NO_PHASE for any other text */

/* A node of the graph, or of a body. */
struct om_op {
	const om_opdef *opdef;       /* NULL: an operator that is not known, or a call that no row
	                            stands for */
	const char *opaque;      /* why the row was taken away: a use of the operator that
	                            is not supported, with outputs declared by the file */
	const om_function *call; /* the model-local function that it calls */
	const char *type;        /* "Conv" */
	const char *domain;      /* "" for ai.onnx */
	const char *overload;    /* "" for none */
	int version;             /* of its domain's opset, where it stands */
	const char *name;        /* the node's name; may be "" */
	om_phase phase;          /* of a training step */
	const char *rematerialized_from; /* it computes again what this op did: its name, or that of
	                            its first output; NULL: it does not */
	om_value **in;           /* NULL: an optional input left out.  Set by the builder alone,
	                            which keeps the uses */
	om_use *use;             /* by place in `in` */
	om_value **out;          /* NULL: an optional output left out */
	om_attr *attr;           /* those that are written, bodies included */
	om_block **body;         /* the graphs among the attributes, in order */
	uint32_t nin, nout, nattr, nbody; /* how many of each */
	om_block *block;         /* that it is in; NULL: in none yet */
	om_op *prev, *next;      /* in its block; NULL at the ends */
	uint32_t id;             /* dense in order of creation */
	uint32_t index;          /* place in its block.  Valid after om_timeline() */
	uint32_t file_index;     /* the same before any pass put the ops in order.  Valid
	                            where the program's `order` is set */
	uint32_t step, end;      /* see om_timeline() */
	bool is_folded;          /* all outputs are constants: nothing to do at run time */
	const void *origin;      /* its NodeProto; NULL if made by a pass */
};

/* Ops in order: the graph, a body of If, Loop or Scan, or that of a function. */
struct om_block {
	const char *name;        /* the graph's name */
	const char *path;        /* scope path: "" for the graph, "y/then_branch" */
	const char *attr;        /* the owner's attribute that holds it; NULL for block 0 */
	om_prog *prog;           /* that it belongs to */
	om_op *owner;            /* NULL for block 0 and for the bodies of functions */
	om_value **param;        /* what it is given, in order */
	om_value **result;       /* may hold a value twice, a parameter, a constant.  Set by the
	                            builder alone */
	om_use **use;            /* by place in `result` */
	uint32_t nparam, nresult; /* how many of each */
	om_op *first, *last;     /* in order of execution; NULL: there is no op */
	uint32_t nop;            /* ops in it, those of bodies not counted */
	uint32_t id;             /* dense in order of creation; 0 is the graph */
	uint32_t begin, end;     /* see om_timeline() */
	bool is_other;           /* its parameters and results are not those of its file */
	om_block *next;          /* in order of creation */
	const void *origin;      /* its GraphProto */
};

/* A set of operators, and its version. */
typedef struct om_opset {
	const char *domain;      /* "" for ai.onnx */
	int version;             /* of the set */
} om_opset;

/* A function that came with the model.  Its body is a block without an owner
 * that is not in the list of the program's blocks. */
struct om_function {
	const char *domain, *name, *overload; /* what ops call it by; "" for none */
	om_block *body;              /* its parameters are the inputs, in order */
	const char *const *attr;     /* attributes without default */
	const om_attr *attr_default; /* attributes with default */
	size_t nattr, nattr_default; /* how many of each */
	const om_opset *opset;       /* what its ops are of */
	size_t nopset;               /* how many */
	om_function *next;           /* in the order of the file */
	const void *origin;          /* its FunctionProto; NULL if made by a pass */
};

/* What is currently known about a program.  Setting a bit promises that the
 * fields named after it are up to date. */
enum {
	OM_HAS_INLINE = 1u << 0,  /* no call is left but those that a row stands for */
	OM_HAS_SHAPES = 1u << 1,  /* types and shapes are inferred as far as they can be */
	OM_HAS_CONST  = 1u << 2,  /* is_const, is_folded */
	OM_HAS_LIVE   = 1u << 3,  /* steps; assignment: lifetimes */
	OM_HAS_VIEWS  = 1u << 4,  /* assignment: views */
	OM_HAS_STORE  = 1u << 5,  /* assignment: views and in-place */
	OM_HAS_PLAN   = 1u << 6,  /* plan */
	OM_HAS_ALL    = (1u << 7) - 1,
};

/* The constant of a fact by its name, as "shapes"; 0: there is none.  And the name of the
 * lowest bit of `bit`; "" for none. */
OM_API unsigned om_fact_bit(const char *name);
OM_API const char *om_fact_text(unsigned bit);

/* Facts of third parties have names, and maybe data; see pass.h.  They hold as long as those
 * facts that they were found out from. */
typedef struct om_fact om_fact;

/* Is fact `name` known, whether it has a constant or not? */
OM_API bool om_fact_known(const om_prog *p, const char *name);
/* The data of a fact without a constant; NULL: it is not known, or has none.  Valid until
 * the program changes. */
OM_API const void *om_fact_data(const om_prog *p, const char *name);

/* Of what is known, `keeps` stays known, and `gives` is known from now on.  For what changes
 * a program outside a pass: the host does it for those. */
OM_API void om_facts_set(om_prog *p, unsigned keeps, unsigned gives);

/* Whom a plan is made for. */
typedef enum om_target {
	OM_TARGET_GENERIC,  /* the ONNX program as it stands, for any consumer */
	OM_TARGET_CPU,      /* our executor: scratch of its kernels is planned, too */
} om_target;

/* An arena that a plan may use. */
typedef struct om_arena_spec {
	const char *name;        /* in plans and messages */
	const char *device;      /* "cpu" */
	uint64_t limit;          /* bytes; 0: none */
	uint64_t align;          /* of every place in it, where more than the program's */
} om_arena_spec;

/* A result of the graph that the next run gets as a parameter: a new weight for the
 * old one, a cache.  Whoever runs the program allows it to be computed over that. */
typedef struct om_io_alias {
	uint32_t result, param;  /* by place in those of the graph */
} om_io_alias;

/* A program: the graph of a model, with all bodies in it. */
struct om_prog {
	om_arena *mem;            /* holds all of the program; owned */
	const char *name;         /* the graph's, "" for none */
	om_block *first, *last;   /* first is the graph */
	om_value **values;        /* by id */
	uint32_t nvalue, nblock, nop; /* numbers given: ids are below them */
	size_t capvalue;          /* room in `values` */
	om_function *functions;   /* a list, in the order of the file */
	om_opset *opset;          /* sets of operators that are imported */
	size_t nopset;            /* how many */
	int ir_version;           /* of the file format */
	uint32_t nstep;           /* valid after om_timeline() */
	unsigned has;             /* what is known: OM_HAS_... */
	om_fact *facts;           /* what is known of third parties' facts, a list; owned */
	om_target target;         /* whom a plan is made for */
	uint64_t align;           /* bytes: every buffer is rounded up to it; 64 */
	om_io_alias *tie;              /* each result and each parameter once */
	uint32_t ntie;            /* how many */
	size_t captie;            /* room in `tie` */
	struct om_names *names;   /* of the values; for the builder alone */
	om_arena_spec *want;            /* arenas, the fastest first; NULL: one without limit */
	uint32_t nwant;           /* how many */
	bool parallel_safe;          /* the plan has to hold for every order of the ops that
	                             respects the data, not for that of the blocks alone */
	const char *order;        /* how the ops were put in order: "file", "bfs", "mem"; NULL: not */
	bool order_is_file;       /* that left them as they were */
	bool order_is_proven;     /* "mem": no order takes less, as the pass counts it */
	const om_assignment *assignment; /* lifetimes and storage; valid under OM_HAS_LIVE */
	const om_op_facts *op_facts; /* see om_prog_op_facts(); NULL: not found yet */
	om_plan *plan;            /* owned; valid under OM_HAS_PLAN */
	om_model *model;          /* what it was imported from; not owned; may be NULL */
	struct om_gradients *gradients; /* of the operators that it uses: see om_prog_gradients() */
};

OM_API const char *om_target_text(om_target t);              /* "generic", "cpu" */
OM_API bool om_target_find(const char *text, om_target *out);  /* false: no such target */

/* An empty program, without a graph yet.  om_prog_free() ends it, and all that is in it. */
OM_API om_prog *om_prog_new(void);
OM_API void om_prog_free(om_prog *p);         /* NULL is fine */

/* Plan `to` as `from` is to be planned: target, alignment, arenas, for one order
 * or for all. */
OM_API void om_prog_copy_plan_options(om_prog *to, const om_prog *from);

/* Text is the second form of a program: parsing what was dumped gives the same
 * program, as far as the dump says: constants of more than 256 bytes are elided
 * unless all data is asked for, and come back without elements.  What passes
 * found out follows each line as a comment, while it is valid.
 * `where` names the source in messages. */
enum { OM_DUMP_LIVE = 1u << 0, OM_DUMP_ALL_DATA = 1u << 1 };
/* A text as a program, which the caller frees.  OM_MALFORMED with the line where it is
 * none; OM_IR where it breaks an invariant. */
OM_API om_status om_parse(om_session *s, FILE *in, const char *where, om_prog **out);
/* Write a program as text; `flags` are OM_DUMP_*. */
OM_API void om_dump(const om_prog *p, FILE *to, unsigned flags);

/* Check every invariant that passes rely on.  All that is broken goes to the
 * log as warnings; the message names the first and counts the rest. */
OM_API om_status om_verify(om_session *s, const om_prog *p);

/* Number the steps of a run in the order of the blocks.
 *
 * An op without bodies takes one step: step == end.  An op with bodies takes
 * `step` (it reads its inputs, and the parameters of its bodies are written),
 * then the steps of each body, then `end` (its outputs are complete).  A block
 * runs from `begin`, the step of its first op, to `end`, a step of its own in
 * which its results are read: by the caller, by the owner's outputs, or by the
 * parameters of the next round.  Linear in the number of ops. */
OM_API void om_timeline(om_prog *p);

/* The shape of an input, or the number that a symbol stands for.  They change
 * the parameters of the graph only: run `shapes` afterwards.  A shape that
 * contradicts the file is OM_SHAPE, an unknown name OM_USAGE. */
OM_API om_status om_bind_shape(om_session *s, om_prog *p, const char *input, const om_shape *shape);
OM_API om_status om_bind_dim(om_session *s, om_prog *p, const char *symbol, int64_t n);
/* Give `n` to whatever is still open; where n is 0, fail naming the first. */
OM_API om_status om_bind_rest(om_session *s, om_prog *p, int64_t n);

/* Version of a domain's opset ("" for ai.onnx); 0 when it is not imported. */
OM_API int om_opset_version(const om_prog *p, const char *domain);

/* Is `v` one boolean, known to be `truth`, that no caller may replace?  As in a run, any byte but 0
 * is true. */
OM_API bool om_value_is(const om_value *v, bool truth);

/* Bytes of the elements of `v`; 0 where that is not known, or `v` is no tensor. */
OM_API uint64_t om_value_bytes(const om_value *v);

/* What to call `op`: its name, or that of its first output, or its type. */
OM_API const char *om_op_label(const om_op *op);

/* True when `inner` is `outer` or lies in it, at any depth.  The bodies of an op
 * that was taken out of the program lie in no block. */
OM_API bool om_block_inside(const om_block *inner, const om_block *outer);

/* The op of block `b` that holds, at any depth, the block `inner`; NULL when
 * `inner` is `b` itself or outside. */
OM_API om_op *om_block_enclosing_op(const om_block *b, const om_block *inner);

/* The op that is at work in `step`, the innermost one; NULL where the graph ends.
 * Valid after om_timeline(). */
OM_API const om_op *om_op_at_step(const om_prog *p, uint32_t step);

/* Is parameter `param` of the graph what a run hands on to the next one? */
OM_API bool om_prog_is_state(const om_prog *p, uint32_t param);

/* Attributes, or the row's defaults.  `n` may be NULL.  A missing one without
 * default gives 0, NULL or an empty list. */
OM_API const om_attr *om_attr_find(const om_op *op, const char *name);
OM_API bool om_attr_has(const om_op *op, const char *name);  /* written, not defaulted */
/* The attributes written there that a row (NULL: none) knows too; one without a name ends the list. */
OM_API const om_attr *om_attrs_of(om_arena *mem, const om_op *op, const om_opdef *row);
OM_API int64_t om_attr_int(const om_op *op, const char *name);
OM_API float om_attr_float(const om_op *op, const char *name);
OM_API om_string om_attr_string(const om_op *op, const char *name);
OM_API bool om_attr_is(const om_op *op, const char *name, const char *text);
OM_API const int64_t *om_attr_ints(const om_op *op, const char *name, size_t *n);
OM_API int64_t om_attr_int_at(const om_op *op, const char *name, size_t k, int64_t missing);  /* number k of a list */
OM_API const float *om_attr_floats(const om_op *op, const char *name, size_t *n);
OM_API const om_tensor *om_attr_tensor(const om_op *op, const char *name);
OM_API om_block *om_attr_graph(const om_op *op, const char *name);

#ifdef __cplusplus
}
#endif

#endif
