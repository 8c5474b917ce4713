/* One op on its way to a newer opset: what rules look at, and build with. */
#ifndef OM_CONVERT_H
#define OM_CONVERT_H

#include "onnxmem/builder.h"
#include "onnxmem/opset_convert.h"

typedef struct om_opset_conversion {
	om_session *session;
	om_prog *p;
	om_arena *mem;           /* for lists; dies with the raising */
	om_op *op;               /* NULL: other ops do what it did */
	int target;              /* the opset that all of it is to be of */
	uint64_t added;
	om_status status;        /* of what was built; the first failure stays */
} om_opset_conversion;

/* A version in which an operator was changed, and what makes an op of the version before one of
 * that version: NULL where the new one only says more.  A rule that finds no other way refuses. */
typedef struct om_conversion_rule {
	const char *type;
	int since;
	om_status (*rewrite)(om_opset_conversion *r);
} om_conversion_rule;

/* The rule that op `type` of opset `version` meets next on its way to `target`; NULL: none. */
const om_conversion_rule *om_conversion_rule_next(const char *type, int version, int target);

/* Do two rows, of two versions of an operator, say the same? */
bool om_conversion_is_equivalent(const om_opdef *a, const om_opdef *b);

/* "cannot be raised to opset 17: " and a sentence. */
om_status om_conversion_refuse(const om_opset_conversion *r, const char *fmt, ...) OM_PRINTF(2, 3);

/* Attributes of ops that are to be built. */
om_attr om_conversion_int(const om_opset_conversion *r, const char *name, int64_t v);
om_attr om_conversion_text(const om_opset_conversion *r, const char *name, const char *v);

/* Constants beside the op, called after its first output: a list of integers; of floats; a number,
 * as Cast makes it from a float. */
om_value *om_conversion_list(om_opset_conversion *r, const char *what, size_t n, const int64_t *v);
om_value *om_conversion_floats(om_opset_conversion *r, const char *what, size_t n, const float *v);
om_value *om_conversion_number(om_opset_conversion *r, const char *what, om_dtype type, float v);

/* An attribute that is a list of integers, as a constant; it is an attribute no more.  NULL: it
 * was not given. */
om_value *om_conversion_attr(om_opset_conversion *r, const char *name);

/* All inputs of the op, from now on; those at the end that are NULL are left out. */
void om_conversion_inputs(om_opset_conversion *r, uint32_t n, om_value *const *in);
#define OM_CONVERT_INPUTS(r, ...) \
	om_conversion_inputs(r, sizeof((om_value *[]){__VA_ARGS__}) / sizeof(om_value *), (om_value *[]){__VA_ARGS__})

/* A new op right before the op, of the target's opset, in a form that is the same from opset 13 on;
 * its output.  `attrs` ends in an empty one; NULL: none. */
om_value *om_conversion_insert_before(om_opset_conversion *r, const char *type, const om_attr *attrs, uint32_t n, om_value *const *in);
#define OM_CONVERT_BEFORE(r, type, attrs, ...) \
	om_conversion_insert_before(r, type, attrs, sizeof((om_value *[]){__VA_ARGS__}) / sizeof(om_value *), \
		(om_value *[]){__VA_ARGS__})

/* A new op right behind the op, which makes output `k` of what the op itself makes, and, unless it
 * is NULL, of `second`. */
void om_conversion_insert_after(om_opset_conversion *r, uint32_t k, const char *type, const om_attr *attrs, om_value *second);

/* A shape for Reshape: that of `v`. */
om_value *om_conversion_shape(om_opset_conversion *r, om_value *v);

/* scan8.c */
om_status om_conversion_scan(om_opset_conversion *r);

#endif
