/* SPDX-License-Identifier: Apache-2.0 */
/* Classification losses: what kernels compute them from. */
#ifndef OM_LOSS_H
#define OM_LOSS_H

#include "onnxmem/opdef.h"

/* Inputs of both operators. */
enum { OM_LOSS_X, OM_LOSS_TARGET, OM_LOSS_WEIGHT };

/* Classes are the second axis of the input: (batch, classes, inner). */
struct om_loss {
	int64_t batch, classes, inner;
	bool has_ignored;
	int64_t ignored;
	bool is_none, is_mean;        /* reduction attribute; sum if both are false */
};

/* Of an op with known shapes. */
struct om_loss om_loss_of(const om_op_context *c);

#endif
