/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise computations as inner loops without broadcast logic.
 *
 * A family provides a loop for each element type.  When a kernel is prepared, om_map_prepare() selects
 * the loop for the op and collapses its dims into a loop nest, which is the state of the kernel;
 * om_loop_nest_run() runs the loop over all strips of the output. */
#ifndef OM_BROADCAST_LOOPS_H
#define OM_BROADCAST_LOOPS_H

#include "onnxmem/kernel.h"
#include "base/saturate.h"
#include "opdef/types.h"

enum { OM_STRIP = 256, OM_NKNOB = 3 };

struct om_operand_ref {
	const void *at;
	int64_t step;        /* 0 or 1 */
};

/* `n` elements of the output, and the addresses of the operands' elements. */
struct om_inner_loop {
	int64_t n;
	void *out;
	uint32_t nin;
	const struct om_operand_ref *in;
	const double *knob;  /* [OM_NKNOB]: numeric and one-letter attributes, in order of definition */
};

typedef void om_inner_loop_fn(const struct om_inner_loop *s);

/* ---- Ops whose operands have the same type. ---- */

/* Prepare the loop for the type of input `key`, by default the first one, over the op's inputs. */
om_status om_map_prepare_by(om_op_context *c, void **state, om_inner_loop_fn *const loops[], uint32_t key);
om_status om_map_prepare(om_op_context *c, void **state, om_inner_loop_fn *const loops[]);

/* ---- Other ops: a nest is built operand by operand and finished with the output's type. ---- */

struct om_loop_nest;

/* A nest of `nin` operands, with the attribute values of the op, allocated from c->mem. */
struct om_loop_nest *om_nest_new(om_op_context *c, uint32_t nin, om_inner_loop_fn *loop);

/* Operand `k` is input `k`, treated as if it had shape `s`; the loop receives its elements converted to
 * type `as`. */
void om_nest_input(om_op_context *c, struct om_loop_nest *e, uint32_t k, const om_shape *s, om_dtype as);

/* Operand `k` is one element of type `t`, at `data`, which must outlive the nest. */
void om_nest_constant(om_op_context *c, struct om_loop_nest *e, uint32_t k, om_dtype t, const void *data, om_dtype as);

/* The loop produces elements of type `as` for output 0.  The nest is then complete. */
om_status om_nest_finish(om_op_context *c, struct om_loop_nest *e, om_dtype as);

/* Callback `run` of kernels whose state is a nest. */
om_status om_loop_nest_run(om_op_context *c);

/* The type to compute in: 16-bit floats without a loop of their own are computed as float32. */
om_dtype om_computed_as(om_inner_loop_fn *const loops[], om_dtype t);

/* ---- Callbacks of operator definitions. ---- */

/* Before version 7 these attributes specify how the second input is aligned with the first. */
#define OM_ALIGN_ATTRS {"axis", OM_ATTR_INT, .i = 0}, {"broadcast", OM_ATTR_INT, .i = 0}

/* The shape from which input `k` is broadcast. */
om_shape om_aligned(const om_op_context *c, uint32_t k);

/* Check that input `k` has the type of the inputs before it; `*type` is set to it if it was unknown. */
om_status om_same_type(const om_op_context *c, om_dtype *type, uint32_t k);

/* Set the output's shape to the broadcast of all inputs. */
om_status om_broadcast_all(om_op_context *c);

/* True if the dims are equal, except for leading ones. */
bool om_is_whole(const om_shape *s, const om_shape *out);

/* The output may be computed in place over an input that is not broadcast. */
bool om_inplace_whole(const om_op_context *c, uint32_t out, uint32_t in);

/* ---- Loops for one type, of an expression in x, or in x and y. ---- */

#define ENTRY(type, T, W, name) [OM_##type] = name##_##type,

/* Names available to these expressions: T, the element type, W, which wraps around, and a, b, c, the
 * attribute values. */
#define NAMES(element, wrapping)                                               \
	typedef element T __attribute__((unused));                             \
	typedef wrapping W __attribute__((unused));                            \
	const double *const knob = s->knob;                                    \
	const T a = OM_NUMBER(T, knob[0]), b = OM_NUMBER(T, knob[1]), c = OM_NUMBER(T, knob[2]); \
	(void)a, (void)b, (void)c;

#define UNARY_LOOP(name, E, U, R, value)                                       \
	static void                                                            \
	name(const struct om_inner_loop *s)                                         \
	{                                                                      \
		NAMES(E, U)                                                    \
		const T *px = s->in[0].at;                                     \
		R *out = s->out;                                               \
		for (int64_t i = 0; i < s->n; i++) {                           \
			const T x = px[i];                                     \
			out[i] = (R)(value);                                   \
		}                                                              \
	}

#define BINARY_LOOP(name, E, U, R, value)                                      \
	static void                                                            \
	name(const struct om_inner_loop *s)                                         \
	{                                                                      \
		NAMES(E, U)                                                    \
		const T *px = s->in[0].at, *py = s->in[1].at;                  \
		R *out = s->out;                                               \
		if (s->in[0].step && s->in[1].step) {                          \
			for (int64_t i = 0; i < s->n; i++) {                   \
				const T x = px[i], y = py[i];                  \
				out[i] = (R)(value);                           \
			}                                                      \
		} else if (s->in[0].step) {                                    \
			const T y = *py;                                       \
			for (int64_t i = 0; i < s->n; i++) {                   \
				const T x = px[i];                             \
				out[i] = (R)(value);                           \
			}                                                      \
		} else {                                                       \
			const T x = *px;                                       \
			for (int64_t i = 0; i < s->n; i++) {                   \
				const T y = py[i];                             \
				out[i] = (R)(value);                           \
			}                                                      \
		}                                                              \
	}

#define UNARY_FN(type, T, W, name, value)    UNARY_LOOP(name##_##type, T, W, T, value)
#define TEST_FN(type, T, W, name, value)     UNARY_LOOP(name##_##type, T, W, uint8_t, value)
#define BINARY_FN(type, T, W, name, value)   BINARY_LOOP(name##_##type, T, W, T, value)
#define COMPARE_FN(type, T, W, name, value)  BINARY_LOOP(name##_##type, T, W, uint8_t, value)

#endif
