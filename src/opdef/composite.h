/* Operators that are made of others.
 *
 * A recipe says how: it takes inputs, has standard operators make tensors of
 * them, and gives outputs.  The same recipe serves all columns of a row: while
 * inferring, its parts infer; for the cost they are only counted; to prepare the
 * kernel they are inferred, bound to their kernels and written down as steps, which
 * a run goes through, in scratch.  So every part is inferred, checked and computed
 * by the row of its operator, and a run meets no recipe.
 *
 * What goes wrong sticks: after that, parts do nothing, and the column fails. */
#ifndef OM_COMPOSITE_H
#define OM_COMPOSITE_H

#include "onnxmem/kernel.h"
#include "onnxmem/opdef.h"

typedef struct om_composite om_composite;
typedef void om_recipe(om_composite *p);

struct om_composite {
	om_op_context *c;
	om_status st;
	enum { OM_INFERRING, OM_COUNTING, OM_PREPARING } doing;
	struct om_composite_steps *made;  /* while preparing: what a run does */
	uint64_t used, most;      /* bytes of scratch */
	double flops;
};

om_status om_composite_infer(om_op_context *c, om_recipe *recipe);
om_status om_parts_prepare(om_op_context *c, void **state, om_recipe *recipe);
uint64_t om_parts_workspace(const om_op_context *c);
om_status om_parts_run(om_op_context *c);
void om_composite_cost(const om_op_context *c, om_recipe *recipe, om_cost *cost);

/* The columns of a row. */
#define OM_COMPOSITE_COLUMNS(name)                                                 \
	static om_status name##_infer(om_op_context *c) { return om_composite_infer(c, name); } \
	static om_status name##_prepare(om_op_context *c, void **state) { return om_parts_prepare(c, state, name); } \
	static void name##_cost(const om_op_context *c, om_cost *cost) { om_composite_cost(c, name, cost); }
#define OM_COMPOSITE(name) .infer = name##_infer, .cpu = om_parts_run, .cost = name##_cost

/* The kernel of such a row. */
#define OM_PARTS_KERNEL(label, called)                                         \
	{.domain = "com.microsoft", .name = label, .prepare = called##_prepare,  \
	 .workspace = om_parts_workspace, .run = om_parts_run}

/* Attributes of a part: a list that OM_NO_MORE ends. */
#define OM_INT(key, v)      {.name = key, .kind = OM_ATTR_INT, .n = 1, .i = (const int64_t[]){v}}
#define OM_REAL(key, v)     {.name = key, .kind = OM_ATTR_FLOAT, .n = 1, .f = (const float[]){v}}
#define OM_LIST(key, v, count) {.name = key, .kind = OM_ATTR_INTS, .n = count, .i = v}
#define OM_WORD(key, v)     {.name = key, .kind = OM_ATTR_STRING, .n = 1, .s = (const om_string[]){{v, sizeof v - 1}}}
#define OM_NO_MORE          {0}
#define OM_WITH(...)        (const om_attr[]){__VA_ARGS__, OM_NO_MORE}
#define OM_PLAINLY          (const om_attr[]){OM_NO_MORE}

/* For a part of ai.onnx: the attributes of the operator that the part knows too. */
const om_attr *om_composite_forwarded(om_composite *p, const char *type);

/* Input `k`; NULL when it was left out. */
const om_tensor *om_composite_add(const om_composite *p, uint32_t k);

/* Output `k` is this; nothing where it is not wanted. */
void om_composite_set_output(om_composite *p, uint32_t k, const om_tensor *t);

/* An operator of ai.onnx: as version 24 has it, or an older one. */
void om_part_run(om_composite *p, const char *type, int version, const om_attr *attrs, uint32_t nin,
	const om_tensor *const *in, uint32_t nout, const om_tensor **out);
const om_tensor *om_part_one(om_composite *p, const char *type, int version, const om_attr *attrs, uint32_t nin,
	const om_tensor *const *in);

/* With one output: OM_SUBBUFFER(p, "Add", OM_PLAINLY, a, b). */
#define OM_SUBBUFFER(p, type, attrs, ...)                                           \
	om_part_one(p, type, 24, attrs, sizeof((const om_tensor *[]){__VA_ARGS__}) / sizeof(om_tensor *), \
		(const om_tensor *[]){__VA_ARGS__})

/* A tensor that `fill` fills in a run, from `of`, which is copied: `size` bytes.  Tensors of the recipe
 * that it refers to have data by then. */
typedef om_status om_composite_filler(om_op_context *c, const void *of, const om_tensor *t);
const om_tensor *om_composite_filled(om_composite *p, om_dtype type, const om_shape *shape, om_composite_filler *fill,
	const void *of, size_t size);

/* Constants. */
const om_tensor *om_composite_ints(om_composite *p, size_t n, const int64_t *v);
const om_tensor *om_composite_real(om_composite *p, om_dtype type, double v);

/* The same elements in another shape. */
const om_tensor *om_composite_shaped(om_composite *p, const om_tensor *t, size_t n, const int64_t *dims);

/* The last axis in place of the second, or back; of rank 3 and above. */
const om_tensor *om_composite_channels_first(om_composite *p, const om_tensor *t);
const om_tensor *om_composite_channels_last(om_composite *p, const om_tensor *t);

/* Refuse: the sentence says what is wrong. */
void om_composite_refuse(om_composite *p, om_status st, const char *why);

#endif
