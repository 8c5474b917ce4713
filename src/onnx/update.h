/* SPDX-License-Identifier: Apache-2.0 */
/* Updating a model from a program: shared by the graph and the training information. */
#ifndef OM_UPDATE_H
#define OM_UPDATE_H

#include "base/map.h"
#include "onnx/model.h"

struct update {
	om_session *s;
	om_model *m;
	const om_prog *p;
	om_arena *tmp;
	bool *used;                  /* by value id */
	const om_value **consts;     /* by block id: head of a list */
	const om_value **next;       /* by value id: next in that list */
	bool *is_param;              /* by value id */
	const Onnx__GraphProto *grown; /* the graph that got an initializer last, and room for so many */
	size_t cap;
	om_map outputs;              /* the ops of the graph, by the names of their outputs, if */
	bool has_outputs;
};

struct nodes {
	Onnx__NodeProto **list;
	size_t n, cap;
};

/* Start an update; the program must have been made from the model.  Lists its constants; no value
 * is marked as used yet. */
om_status om_update_start(struct update *u);
/* Update opset versions from the program; true if the program has a newer one than the file. */
bool om_update_versions(struct update *u);
/* Update functions: keep those that are called and, with `keeps`, also those of the file. */
om_status om_update_functions(struct update *u, bool keeps);
/* Mark values read by a block and by the bodies in it as used. */
void om_update_note_uses(struct update *u, const om_block *b);

/* Messages. */
om_status om_update_node(struct update *u, const om_op *op, Onnx__NodeProto **out);
Onnx__NodeProto *om_update_plain_node(struct update *u, const char *type, const char *in, const char *out);
void om_update_push(struct update *u, struct nodes *to, Onnx__NodeProto *n);
Onnx__ValueInfoProto *om_update_value_info(struct update *u, const om_value *v);
om_status om_update_data(struct update *u, const om_value *v, Onnx__TensorProto **out);
/* Append an initializer to a graph. */
void om_update_initializer(struct update *u, Onnx__GraphProto *g, Onnx__TensorProto *t);
/* The initializers of a graph, by name. */
om_map om_update_initializers(struct update *u, const Onnx__GraphProto *g);

#endif
