/* SPDX-License-Identifier: Apache-2.0 */
/* Types of values, and shapes of inputs. */
#ifndef OM_TYPE_H
#define OM_TYPE_H

#include "onnxmem/ir.h"

/* Element type of the contained tensors, at any depth; for a map, of its values. */
om_dtype om_type_elem(const om_type *t);
bool om_type_equal(const om_type *a, const om_type *b);
const char *om_kind_text(om_kind kind);   /* "sequence" */

/* Is `t` an object of this type, at every depth? */
bool om_container_fits(const om_tensor *t, const om_type *type);

/* The shape of a parameter of the graph in the model: without the spare rows of a cache. */
om_shape om_input_shape(const om_prog *p, uint32_t param);

#endif
