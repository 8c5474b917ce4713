/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of org.onnxmem.grad Update. */
#ifndef OM_OPS_UPDATE_H
#define OM_OPS_UPDATE_H

#include "kernels/cpu/update.h"
#include "onnxmem/opdef.h"
#include "opdef/update_op.h"

struct om_update_attrs {
	enum om_update_kind kind;
	const void *number;      /* [OM_UPDATE_NUMBERS], of the type of the parameter */
};

/* Check the shapes; the numbers are allocated from c->mem. */
om_status om_update_read(const om_op_context *c, struct om_update_attrs *a);

/* `prepare`, with a state of struct om_update_attrs. */
om_status om_update_prepare(om_op_context *c, void **state);

#endif
