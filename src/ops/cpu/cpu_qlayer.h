/* SPDX-License-Identifier: Apache-2.0 */
/* What the quantized layers of org.onnxmem.cpu have in common. */
#ifndef OM_CPU_QLAYER_H
#define OM_CPU_QLAYER_H

#include "kernels/cpu/qlayer.h"
#include "onnxmem/opdef.h"

/* Inputs, which are those of QLinearConv in another order.  Without the scale of the output it is float32, without any scale int32. */
enum { OM_QX, OM_QW, OM_QX_SCALE, OM_QX_ZERO, OM_QW_SCALE, OM_QW_ZERO, OM_QY_SCALE, OM_QY_ZERO, OM_QBIAS, OM_QINPUTS };

/* Attributes that bound the quantized output. */
#define OM_QLAYER_ATTRS {"least", OM_ATTR_INT, .i = -128}, {"most", OM_ATTR_INT, .i = 255}

/* Types of the inputs. */
#define OM_QLAYER_TYPES                                                        \
	{OF_BYTES, OF(INT8), OF(FLOAT32), LIKE(0), OF(FLOAT32), OF_BYTES, OF(FLOAT32), OF_BYTES, OF(INT32)}

/* Check operands of a layer with so many output channels, and set the type of the output. */
om_status om_qlayer_check(om_op_context *c, int64_t channels);

/* What the elements of operands say; lists have `n` elements, of which `wide` belong to `channels` of each group. */
typedef struct om_qlayer_operands {
	int32_t x_zero;           /* of the unsigned input */
	int32_t y_zero, least, most;
	int32_t *offset, *w_zero; /* see om_qlayer_data; w_zero: of all channels, also if they are 0 */
	float *scale;
	bool has_w_zero;          /* one of them is not 0 */
} om_qlayer_operands;

/* Bytes of the lists. */
uint64_t om_qlayer_operand_bytes(const om_layer *l);

/* A layer, and the attributes that bound a quantized output. */
typedef struct om_qlayer_state {
	om_qlayer l;
	int64_t least, most;
} om_qlayer_state;

/* Read them, with lists in `room`. */
void om_qlayer_read(const om_op_context *c, const om_qlayer_state *s, void *room, om_qlayer_operands *o);

#endif
