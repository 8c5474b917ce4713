/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: implementations of operators.
 *
 * An operator definition (onnxmem/opdef.h) specifies an operator; a kernel computes it on one device,
 * for a set of types and layouts.  Kernels are entries of a registry that is indexed by device, domain,
 * name and version.  The reference kernel is part of the operator definition.
 *
 * Work is split into two phases.  `prepare` runs once per op and tensor shapes: it decodes attributes,
 * computes geometry, selects an algorithm, and stores the result as the kernel's state.  `run` executes
 * in every run of the op, on that state and on addresses that may change between runs.  It decodes no
 * attributes and does no lookups by name.
 */
#ifndef OM_KERNEL_H
#define OM_KERNEL_H

#include "onnxmem/opdef.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory layouts of tensors, as a bit set. */
enum {
	OM_LAYOUT_ROW_MAJOR = 1u << 0,  /* as in ONNX: the last axis is dense */
};

/* A list attribute: a member of a state, decoded before `prepare`. */
typedef struct om_ints {
	const int64_t *v;         /* NULL: absent, without default */
	size_t n;                 /* elements */
} om_ints;

/* The same, of floating-point numbers. */
typedef struct om_floats {
	const float *v;           /* NULL: absent, without default */
	size_t n;                 /* elements */
} om_floats;

/* The location of an attribute in the state of a kernel.  Depending on `kind`, the member is an
 * int64_t, a float, an om_string, an om_ints, an om_floats or a const om_tensor *; with `is_presence`
 * it is a bool that tells whether the attribute is present.  Build lists with the OM_FIELD macros. */
typedef struct om_attr_field {
	const char *name;         /* of the attribute; NULL ends a list */
	om_attr_kind kind;        /* of the attribute: INT, FLOAT, STRING, INTS, FLOATS or TENSOR */
	bool is_presence;         /* the member only records whether the attribute is present */
	size_t offset;            /* of the member, in bytes from the start of the state */
} om_attr_field;

/* Member `member` of `type` is the attribute of that name; `sort` is the kind without OM_ATTR_. */
#define OM_FIELD(type, sort, member)  {#member, OM_ATTR_##sort, false, offsetof(type, member)}
/* The same for an attribute with a different name. */
#define OM_FIELD_AS(type, sort, member, label)  {label, OM_ATTR_##sort, false, offsetof(type, member)}
/* The bool `member` records whether the attribute `label` is present. */
#define OM_FIELD_HAS(type, member, label)  {label, OM_ATTR_INT, true, offsetof(type, member)}

/* A kernel.  A NULL function means that there is nothing to do. */
typedef struct om_kernel {
	const char *domain;       /* of the operator; NULL: ai.onnx */
	const char *name;         /* of the operator; NULL ends a list */
	int since, until;         /* versions of the operator, inclusive; 0: unbounded */
	const char *device;       /* NULL: "cpu" */
	uint32_t types[OM_MAX_TYPED_INPUTS];  /* of the inputs, as in om_opdef.input_types; 0: all of the operator */
	uint32_t layouts;         /* of inputs and outputs; 0: OM_LAYOUT_ROW_MAJOR */
	bool is_fast;             /* computes what the kernels without this mark compute, but rounds differently: not
	                             used by a precise run */

	/* Attributes that are decoded into the state, and the size of the state.  A kernel with 0 bytes
	 * and no `prepare` has no state. */
	const om_attr_field *fields;
	size_t state_bytes;       /* of the state */

	/* Can it compute this op?  Types and layouts have been matched; shapes are known.  NULL: always. */
	bool (*supports)(const om_op_context *c);

	/* Create the state of `run`, in c->mem, which lives as long as the state.  On entry `*state` is
	 * `state_bytes` bytes with the fields decoded and the rest zero, or NULL if there are none; it may
	 * be replaced.  Types and shapes of c->in and c->out are known and do not change until the next
	 * `prepare`, except for outputs of OM_DATA_DEPENDENT_SHAPE; the arrays c->in and c->out do not move.
	 * Elements are available where data is set, which is for constants.  Nothing else may be read or
	 * written.  While planning (c->sizes_only) dims may be larger than any memory: a table whose size
	 * grows with the tensors must be left out then.  Fails with om_op_fail() for ops that it cannot
	 * compute. */
	om_status (*prepare)(om_op_context *c, void **state);

	/* Scratch bytes that `run` requires, after `prepare`; a function of types and shapes.
	 * NULL: none. */
	uint64_t (*workspace)(const om_op_context *c);

	/* Compute the outputs.  c->state is the state created by `prepare`.  It belongs to this op alone,
	 * so a run may modify it. */
	om_status (*run)(om_op_context *c);
} om_kernel;

#ifdef __cplusplus
}
#endif

#endif
