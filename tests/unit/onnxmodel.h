/* SPDX-License-Identifier: Apache-2.0 */
/* Models made by hand, for the tests of what reads them. */
#ifndef OM_UNIT_ONNXMODEL_H
#define OM_UNIT_ONNXMODEL_H

#include "onnx/model.h"

/* A model under construction: messages, and the memory that they are in. */
struct made {
	om_arena *mem;
	om_session *s;
	Onnx__ModelProto *m;
	Onnx__GraphProto *g;
};

struct made made_new(int ir, int opset);
void made_free(struct made *b);
Onnx__GraphProto *made_graph(struct made *b, const char *name);
/* Names are separated by spaces; "_" is one that is left out. */
Onnx__NodeProto *made_node(struct made *b, Onnx__GraphProto *g, const char *type, const char *in, const char *out);
Onnx__AttributeProto *made_attr(struct made *b, Onnx__NodeProto *n, const char *name, int kind);
/* A float tensor; `rank` -1 gives it no shape. */
void made_input(struct made *b, Onnx__GraphProto *g, const char *name, int rank, const int64_t *dims);
void made_output(struct made *b, Onnx__GraphProto *g, const char *name);
Onnx__TensorProto *made_init(struct made *b, Onnx__GraphProto *g, const char *name, size_t n, const float *v);
Onnx__TensorProto *made_tensor(struct made *b, const char *name, int type, int rank, const int64_t *dims);

void made_set(struct made *b, char **field, const char *text);

/* Pack, load, import.  What succeeds goes to `m` and `p` unless they are NULL. */
om_status made_load(struct made *b, const char *folder, om_model **m, om_prog **p);
/* The last message names `word`. */
bool made_says(const struct made *b, const char *word);

#endif
