/* What a model says about itself in its metadata, beside the plan. */
#ifndef OM_METADATA_H
#define OM_METADATA_H

#include "onnx/model.h"

/* Phase and rematerialized_from, between a node and its op. */
void om_metadata_read_op(om_arena *mem, om_op *op, const Onnx__NodeProto *node);
void om_metadata_write_op(om_arena *mem, const om_op *op, Onnx__NodeProto *node);

/* Ties, between a model and its program, whose inputs and outputs agree. */
void om_metadata_read(om_session *s, om_prog *p, om_model *m);
om_status om_metadata_write(om_session *s, om_model *m, const om_prog *p);

#endif
