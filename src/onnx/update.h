/* A model that is made what the program is: what the graph and the training information share. */
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
	const om_value **consts;     /* by block id: the first of a list */
	const om_value **next;       /* by value id: the next of that list */
};

struct nodes {
	Onnx__NodeProto **list;
	size_t n, cap;
};

/* The program has to be made from the model.  Its constants are listed; nothing is used yet. */
om_status om_update_start(struct update *u);
/* The opsets that the program has: true when the file had others. */
bool om_update_versions(struct update *u);
/* Those that are called; beside a graph that stays as it is, those of the file as well. */
om_status om_update_functions(struct update *u, bool keeps);
/* What a body, and those in it, reads. */
void om_update_note_uses(struct update *u, const om_block *b);
bool om_update_is_param(const om_value *v);

/* Messages. */
om_status om_update_node(struct update *u, const om_op *op, Onnx__NodeProto **out);
Onnx__NodeProto *om_update_plain_node(struct update *u, const char *type, const char *in, const char *out);
void om_update_push(struct update *u, struct nodes *to, Onnx__NodeProto *n);
Onnx__ValueInfoProto *om_update_value_info(struct update *u, const om_value *v);
om_status om_update_data(struct update *u, const om_value *v, Onnx__TensorProto **out);
/* One more initializer of a graph. */
void om_update_initializer(struct update *u, Onnx__GraphProto *g, Onnx__TensorProto *t);
/* The initializers of a graph, by name. */
om_map om_update_initializers(struct update *u, const Onnx__GraphProto *g);

#endif
