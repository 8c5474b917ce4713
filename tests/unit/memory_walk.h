/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the places where memory is taken: see memory.c. */
#ifndef OM_UNIT_MEMORY_WALK_H
#define OM_UNIT_MEMORY_WALK_H

#include "onnxmem/status.h"

/* Do the work with all requests for memory from the k-th on refused, and with the k-th alone, for every k, or some where there
 * are many: each time it returns OM_MEMORY and a message, or, if one was refused, may do without. */
void memory_walk(om_status (*work)(om_session *s));

#endif
