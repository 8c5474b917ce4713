/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that run beside no other one. */
#ifndef OM_RUNS_ALONE_H
#define OM_RUNS_ALONE_H

#include "onnxmem/opdef.h"

/* Does an op of the graph have to run alone where workers run ops side by side?  It does if it has bodies, draws random
 * numbers or has effects, whose order counts, is for a device or exchanges data with other ranks, or if an executor gives
 * memory to what it reads or computes in the run: what is no tensor, strings, and tensors whose size data decide. */
bool om_op_runs_alone(const om_op *op);

#endif
