/* Kernels: the code that computes operators.
 *
 * A definition (onnxmem/opdef.h) says what an operator means; a kernel computes it on one device, for
 * some types and layouts.  Kernels are rows in a registry, which is indexed by device, domain, name
 * and version.  The reference kernel is the one of the definition itself.
 *
 * Work is split in two.  `prepare` runs once for an op and the shapes of its tensors: it decodes
 * attributes, computes geometry, chooses an algorithm, and keeps that as the kernel's state.  `run`
 * runs as often as the op does, on the state and on addresses that may differ each time.  It decodes
 * nothing and looks nothing up by name.
 */
#ifndef OM_KERNEL_H
#define OM_KERNEL_H

#include "onnxmem/opdef.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the elements of a tensor lie in memory: a bit each. */
enum {
	OM_LAYOUT_ROW_MAJOR = 1u << 0,  /* as in ONNX: the last axis is dense */
};

/* An attribute as a list: a member of a state that om_attr_fields fills. */
typedef struct om_ints {
	const int64_t *v;         /* NULL: not written, there is no default */
	size_t n;                 /* elements */
} om_ints;

/* The same, of floating-point numbers. */
typedef struct om_floats {
	const float *v;           /* NULL: not written, there is no default */
	size_t n;                 /* elements */
} om_floats;

/* Where an attribute goes in the state of a kernel.  By kind the member is an int64_t, a float, an
 * om_string, an om_ints, an om_floats, a const om_tensor *, or, with `is_presence`, a bool: is the
 * attribute written?  Make lists of these with OM_FIELD() and its neighbours. */
typedef struct om_attr_field {
	const char *name;         /* of the attribute; NULL ends a list */
	om_attr_kind kind;        /* of the attribute: INT, FLOAT, STRING, INTS, FLOATS or TENSOR */
	bool is_presence;         /* the member only tells whether the attribute is written */
	size_t offset;            /* of the member, in bytes from the start of the state */
} om_attr_field;

/* The member `member` of `type` is the attribute of the same name; `sort` is what follows OM_ATTR_. */
#define OM_FIELD(type, sort, member)  {#member, OM_ATTR_##sort, false, offsetof(type, member)}
/* The same where the attribute has another name. */
#define OM_FIELD_AS(type, sort, member, label)  {label, OM_ATTR_##sort, false, offsetof(type, member)}
/* The bool `member` tells whether the attribute `label` is written. */
#define OM_FIELD_HAS(type, member, label)  {label, OM_ATTR_INT, true, offsetof(type, member)}

/* A kernel.  A function that is NULL: there is nothing to do. */
typedef struct om_kernel {
	const char *domain;       /* of the operator; NULL: ai.onnx */
	const char *name;         /* of the operator; NULL ends a list */
	int since, until;         /* versions of the operator, inclusive; 0: from the first, to the newest */
	const char *device;       /* that it runs on; NULL: "cpu" */
	uint32_t types[OM_MAX_TYPED_INPUTS];  /* of the inputs, as in om_opdef.takes; 0: all that the operator takes */
	uint32_t layouts;         /* of inputs and outputs; 0: OM_LAYOUT_ROW_MAJOR */

	/* Attributes that are decoded into the state, and the bytes that the state has.  With 0 bytes and
	 * no `prepare` there is no state. */
	const om_attr_field *fields;
	size_t state_bytes;       /* of the state */

	/* Can it compute this op?  Types and layouts fit already; shapes are known.  NULL: always. */
	bool (*supports)(const om_op_context *c);

	/* Make what `run` needs, in memory from c->mem, which lives as long as the state.  `*state` comes
	 * in as `state_bytes` bytes with the fields decoded and the rest zero, or NULL where there are
	 * none, and may be replaced.  Types and shapes of c->in and c->out are known and stay the same
	 * until the next `prepare`, but for outputs of data-sized operators; c->in and c->out themselves
	 * stay where they are.  Elements are known where data is set: those of constants.  Nothing else
	 * may be read, nor written.  Refuses with
	 * om_op_fail() what cannot be computed. */
	om_status (*prepare)(om_op_context *c, void **state);

	/* Bytes of scratch that `run` requires, after `prepare`; the same wherever types and shapes are.
	 * NULL: none. */
	uint64_t (*workspace)(const om_op_context *c);

	/* Compute the outputs.  c->state is what `prepare` made.  It belongs to this op alone, so that a
	 * run may keep things in it. */
	om_status (*run)(om_op_context *c);
} om_kernel;

/* Kernels that can be found by operator.  Any number of threads may read one that nobody adds to. */
typedef struct om_kernel_registry om_kernel_registry;

/* An empty registry, which the caller frees. */
OM_API om_kernel_registry *om_kernel_registry_new(void);
OM_API void om_kernel_registry_free(om_kernel_registry *r);  /* NULL is fine */

/* Add a list of kernels, which has to live as long as the registry and ends with a row without name.
 * Those that are added later are preferred.  OM_USAGE names a row that cannot run. */
OM_API om_status om_kernel_register(om_session *s, om_kernel_registry *r, const om_kernel *list);

/* The kernel for an op whose types and shapes are known, on a device: the one that was registered last
 * of all that fit.  NULL: none fits. */
OM_API const om_kernel *om_kernel_find(const om_kernel_registry *r, const char *device, const om_op_context *c);

/* The kernels of this library, all for "cpu".  Owned by the library. */
OM_API const om_kernel_registry *om_kernels_builtin(void);

/* Choose the kernel for a call, of `r`, then of the library, then the reference of the definition, and
 * prepare it: sets c->kernel and c->state.  `r` NULL: none beside the library's.  The state lives in
 * c->mem.  OM_UNSUPPORTED where there is no kernel, and whatever `prepare` refuses. */
OM_API om_status om_kernel_bind(om_op_context *c, const om_kernel_registry *r);

/* Bytes of scratch that a bound call requires. */
OM_API uint64_t om_kernel_workspace(const om_op_context *c);

/* Run a bound call: data of inputs and outputs and c->scratch are set. */
OM_API om_status om_kernel_run(om_op_context *c);

/* All in one, for a call that is made once: bind, take scratch from c->mem, run. */
OM_API om_status om_kernel_call(om_op_context *c);

/* Decode attributes of `op` into `to`, with the defaults of its definition. */
OM_API void om_attr_fields(const om_op *op, const om_attr_field *fields, void *to);

#ifdef __cplusplus
}
#endif

#endif
