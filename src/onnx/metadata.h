/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a model other than the plan. */
#ifndef OM_METADATA_H
#define OM_METADATA_H

#include "onnx/model.h"

/* Transfer phase and rematerialized_from between a node and its op. */
void om_metadata_read_op(om_arena *mem, om_op *op, const Onnx__NodeProto *node);
void om_metadata_write_op(om_arena *mem, const om_op *op, Onnx__NodeProto *node);

/* Transfer the input/output aliases between a model and its program, which must have the same inputs and outputs. */
void om_metadata_read(om_session *s, om_prog *p, om_model *m);
om_status om_metadata_write(om_session *s, om_model *m, const om_prog *p);

#endif
