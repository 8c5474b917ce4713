/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.grad Update: the update of one parameter by an optimizer.
 *
 * Inputs: the parameter W, its gradient dW, scalars of the step, as far as the optimizer reads them (lr, lr / (1 - b1^t),
 * sqrt(1 - b2^t), 1 - b1^t), and its states.  Outputs: the next W and the next states.  All have the element type of W.
 * Attributes: `optimizer`, its name as for `onnxmem grad --optimizer`, and `numbers`, its hyperparameters. */
#ifndef OM_UPDATE_OP_H
#define OM_UPDATE_OP_H

enum { OM_UPDATE_W, OM_UPDATE_DW, OM_UPDATE_RATE, OM_UPDATE_STEP, OM_UPDATE_ROOT, OM_UPDATE_LEFT, OM_UPDATE_S1, OM_UPDATE_S2,
	OM_UPDATE_INPUTS };

/* Elements of `numbers`; LEFT1 and LEFT2 are 1 - beta1 and 1 - beta2 before they are rounded. */
enum { OM_UPDATE_MOMENTUM, OM_UPDATE_BETA1, OM_UPDATE_LEFT1, OM_UPDATE_BETA2, OM_UPDATE_LEFT2, OM_UPDATE_EPSILON,
	OM_UPDATE_DECAY, OM_UPDATE_NUMBERS };

#endif
