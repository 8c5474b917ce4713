/* SPDX-License-Identifier: Apache-2.0 */
/* Composite operators.
 *
 * A recipe decomposes an operator into parts: it takes the inputs, applies standard operators to them
 * and sets the outputs.  The same recipe serves all callbacks of the definition: `infer` infers its
 * parts; `cost` counts them; `prepare` infers them, binds them to their kernels and records them as
 * steps, which a run executes in scratch.  Every part is therefore inferred, checked and computed by the
 * definition of its operator, and no recipe is evaluated at run time.
 *
 * Errors are sticky: after the first one, further parts have no effect, and the callback fails. */
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
	struct om_composite_steps *made;  /* while preparing: the recorded steps */
	struct om_composite_device *device;   /* while preparing launches for a device; else NULL */
	uint64_t used, most;      /* current and peak bytes of scratch */
	double flops;
};

om_status om_composite_infer(om_op_context *c, om_recipe *recipe);
om_status om_parts_prepare(om_op_context *c, void **state, om_recipe *recipe);
uint64_t om_parts_workspace(const om_op_context *c);
om_status om_parts_run(om_op_context *c);
void om_composite_cost(const om_op_context *c, om_recipe *recipe, om_cost *cost);

/* Launches for a device, of those of the parts (device_kernel.h): is there a row for each part, and no tensor that a function fills? */
struct om_launch_list;
bool om_parts_on_device(const om_op_context *c, om_recipe *recipe);
uint64_t om_parts_device_scratch(const om_op_context *c, om_recipe *recipe);
om_status om_parts_launches(const om_op_context *c, om_recipe *recipe, struct om_launch_list *to);

/* The callbacks of a composite definition. */
#define OM_COMPOSITE_COLUMNS(name)                                                 \
	static om_status name##_infer(om_op_context *c) { return om_composite_infer(c, name); } \
	static om_status name##_prepare(om_op_context *c, void **state) { return om_parts_prepare(c, state, name); } \
	static void name##_cost(const om_op_context *c, om_cost *cost) { om_composite_cost(c, name, cost); }
#define OM_COMPOSITE(name) .infer = name##_infer, .cpu = om_parts_run, .cost = name##_cost

/* The kernel of a composite definition. */
#define OM_PARTS_KERNEL(label, called)                                         \
	{.domain = "com.microsoft", .name = label, .prepare = called##_prepare,  \
	 .workspace = om_parts_workspace, .run = om_parts_run}

/* The row of kernels for devices of a composite definition, and what it consists of. */
#define OM_COMPOSITE_DEVICE(name)                                              \
	static bool name##_on_device(const om_op_context *c) { return om_parts_on_device(c, name); } \
	static uint64_t name##_device_scratch(const om_op_context *c) { return om_parts_device_scratch(c, name); } \
	static om_status name##_launches(const om_op_context *c, struct om_launch_list *to) { return om_parts_launches(c, name, to); }
#define OM_PARTS_DEVICE(label, called)                                         \
	{.domain = "com.microsoft", .name = label, .supports = called##_on_device,  \
	 .scratch = called##_device_scratch, .launches = called##_launches}

/* Attributes of a part: a list terminated by OM_NO_MORE. */
#define OM_INT(key, v)      {.name = key, .kind = OM_ATTR_INT, .n = 1, .i = (const int64_t[]){v}}
#define OM_REAL(key, v)     {.name = key, .kind = OM_ATTR_FLOAT, .n = 1, .f = (const float[]){v}}
#define OM_LIST(key, v, count) {.name = key, .kind = OM_ATTR_INTS, .n = count, .i = v}
#define OM_WORD(key, v)     {.name = key, .kind = OM_ATTR_STRING, .n = 1, .s = (const om_string[]){{v, sizeof v - 1}}}
#define OM_NO_MORE          {0}
#define OM_WITH(...)        (const om_attr[]){__VA_ARGS__, OM_NO_MORE}
#define OM_PLAINLY          (const om_attr[]){OM_NO_MORE}

/* For a part of ai.onnx: the attributes of the composite op that are also defined for `type`. */
const om_attr *om_composite_forwarded(om_composite *p, const char *type);

/* Input `k`; NULL if it is absent. */
const om_tensor *om_composite_add(const om_composite *p, uint32_t k);

/* Set output `k`; no effect if the output is absent. */
void om_composite_set_output(om_composite *p, uint32_t k, const om_tensor *t);

/* An operator of ai.onnx: as version 24 has it, or an older one. */
void om_part_run(om_composite *p, const char *type, int version, const om_attr *attrs, uint32_t nin,
	const om_tensor *const *in, uint32_t nout, const om_tensor **out);
const om_tensor *om_part_one(om_composite *p, const char *type, int version, const om_attr *attrs, uint32_t nin,
	const om_tensor *const *in);

/* A part with one output: OM_SUBBUFFER(p, "Add", OM_PLAINLY, a, b). */
#define OM_SUBBUFFER(p, type, attrs, ...)                                           \
	om_part_one(p, type, 24, attrs, sizeof((const om_tensor *[]){__VA_ARGS__}) / sizeof(om_tensor *), \
		(const om_tensor *[]){__VA_ARGS__})

/* A tensor of the recipe that a filler reads: the first `n` elements of its data, of type `type`. */
typedef struct om_composite_read {
	const om_tensor *t;       /* NULL: absent, nothing is read */
	om_dtype type;
	int64_t n;
} om_composite_read;

/* A tensor that `fill` computes at run time from `of`, whose `size` bytes are copied, and from the tensors listed in
 * `reads`, which `of` may refer to: they have data by then.  A tensor of another type or with fewer elements than are
 * read is refused before, so `fill` need not check; it must read no other tensors. */
typedef om_status om_composite_filler(om_op_context *c, const void *of, const om_tensor *t);
const om_tensor *om_composite_filled(om_composite *p, om_dtype type, const om_shape *shape, om_composite_filler *fill,
	const void *of, size_t size, size_t nreads, const om_composite_read *reads);

/* The last two arguments of om_composite_filled(): OM_READS({mask, OM_INT32, n}). */
#define OM_READS(...)                                                           \
	sizeof((const om_composite_read[]){__VA_ARGS__}) / sizeof(om_composite_read), (const om_composite_read[]){__VA_ARGS__}
#define OM_READS_NOTHING 0, NULL

/* Constants. */
const om_tensor *om_composite_ints(om_composite *p, size_t n, const int64_t *v);
const om_tensor *om_composite_real(om_composite *p, om_dtype type, double v);

/* The same elements in another shape. */
const om_tensor *om_composite_shaped(om_composite *p, const om_tensor *t, size_t n, const int64_t *dims);

/* Move the last axis to position 1, or back; rank 3 or more. */
const om_tensor *om_composite_channels_first(om_composite *p, const om_tensor *t);
const om_tensor *om_composite_channels_last(om_composite *p, const om_tensor *t);

/* Fail with status `st` and message `why`. */
void om_composite_refuse(om_composite *p, om_status st, const char *why);

#endif
