/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of any size, one kind for each shape that a planner might be slow at. */
#ifndef OM_UNIT_GRAPHS_H
#define OM_UNIT_GRAPHS_H

#include "onnxmodel.h"
#include "onnxmem/pass.h"

/* NULL after the last one. */
const char *made_kind(unsigned k);
/* A model with about `n` nodes, those of bodies included. */
struct made made_large(const char *kind, uint32_t n);
/* Read and verify the plan in a model, as `onnxmem plan` does before it saves it. */
om_status made_read_back(om_session *s, om_host *h, om_model *m);

#endif
