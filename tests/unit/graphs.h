/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of any size, one kind for each shape that a planner might be slow at. */
#ifndef OM_UNIT_GRAPHS_H
#define OM_UNIT_GRAPHS_H

#include "onnxmodel.h"

/* NULL after the last one. */
const char *made_kind(unsigned k);
/* A model with about `n` nodes, those of bodies included. */
struct made made_large(const char *kind, uint32_t n);

#endif
