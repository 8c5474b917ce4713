/* SPDX-License-Identifier: Apache-2.0 */
/* What tiling did, in reports. */
#ifndef OM_REPORT_TILING_H
#define OM_REPORT_TILING_H

#include <jansson.h>
#include <stdio.h>

#include "onnxmem/arena.h"
#include "onnxmem/tiling.h"

/* Lines about regions, copies, peaks that were found and what keeps the arena, of `arena` bytes, from being smaller. */
void om_tiling_text(const om_tiling *t, uint64_t arena, om_arena *mem, FILE *to);

/* Set the keys `regions`, `copies`, `peaks`, ... of an object. */
void om_tiling_set(json_t *j, const om_tiling *t, om_arena *mem);

/* An object with the program untiled and tiled, and these keys. */
json_t *om_tiling_json(const om_tiling *t, om_arena *mem);

/* In percent of the FLOPs, for which a moved element counts as one. */
double om_tiling_added_work(const om_tiling *t);

#endif
