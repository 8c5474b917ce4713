/* SPDX-License-Identifier: Apache-2.0 */
/* State and helpers of conversion rules, which convert one op to a newer opset. */
#ifndef OM_CONVERT_H
#define OM_CONVERT_H

#include "onnxmem/builder.h"
#include "opset/opset_convert.h"

typedef struct om_opset_conversion {
	om_session *session;
	om_prog *p;
	om_arena *mem;           /* for lists; freed after the conversion */
	om_op *op;               /* set to NULL by a rule that replaced it with other ops */
	int target;              /* target opset of all ops */
	uint64_t added;
	om_status status;        /* of building ops; the first failure is kept */
} om_opset_conversion;

/* A version in which an operator changed, and the function that rewrites an op of the previous
 * version to it; NULL if the new version only extends the old one.  A rule fails if there is no
 * equivalent. */
typedef struct om_conversion_rule {
	const char *type;
	int since;
	om_status (*rewrite)(om_opset_conversion *r);
} om_conversion_rule;

/* The next rule to apply to op `type` of opset `version` towards `target`; NULL: none. */
const om_conversion_rule *om_conversion_rule_next(const char *type, int version, int target);

/* Are two operator definitions, of two versions of an operator, equivalent? */
bool om_conversion_is_equivalent(const om_opdef *a, const om_opdef *b);

/* Fail with "cannot be converted to" the target opset and the given reason. */
om_status om_conversion_refuse(const om_opset_conversion *r, const char *fmt, ...) OM_PRINTF(2, 3);

/* Attributes of ops to be built. */
om_attr om_conversion_int(const om_opset_conversion *r, const char *name, int64_t v);
om_attr om_conversion_text(const om_opset_conversion *r, const char *name, const char *v);

/* Constants in the block of the op, named after its first output: a list of integers; a list of
 * floats; a scalar, converted from float like Cast. */
om_value *om_conversion_list(om_opset_conversion *r, const char *what, size_t n, const int64_t *v);
om_value *om_conversion_floats(om_opset_conversion *r, const char *what, size_t n, const float *v);
om_value *om_conversion_number(om_opset_conversion *r, const char *what, om_dtype type, float v);

/* Replace an attribute, a list of integers, with a constant.  NULL: the attribute is absent. */
om_value *om_conversion_attr(om_opset_conversion *r, const char *name);

/* Set all inputs of the op; trailing NULLs are omitted. */
void om_conversion_inputs(om_opset_conversion *r, uint32_t n, om_value *const *in);
#define OM_CONVERT_INPUTS(r, ...) \
	om_conversion_inputs(r, sizeof((om_value *[]){__VA_ARGS__}) / sizeof(om_value *), (om_value *[]){__VA_ARGS__})

/* Insert an op of the target's opset right before the op, in a form that is valid from opset 13 on;
 * returns its output.  `attrs` ends with an empty one; NULL: none. */
om_value *om_conversion_insert_before(om_opset_conversion *r, const char *type, const om_attr *attrs, uint32_t n, om_value *const *in);
#define OM_CONVERT_BEFORE(r, type, attrs, ...) \
	om_conversion_insert_before(r, type, attrs, sizeof((om_value *[]){__VA_ARGS__}) / sizeof(om_value *), \
		(om_value *[]){__VA_ARGS__})

/* Insert an op right after the op, which computes output `k` from the op's original output and from
 * `second`, unless NULL. */
void om_conversion_insert_after(om_opset_conversion *r, uint32_t k, const char *type, const om_attr *attrs, om_value *second);

/* The shape of `v` as an input for Reshape. */
om_value *om_conversion_shape(om_opset_conversion *r, om_value *v);

/* scan8.c */
om_status om_conversion_scan(om_opset_conversion *r);

#endif
