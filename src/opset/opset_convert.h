/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of programs to newer opsets. */
#ifndef OM_OPSET_CONVERT_H
#define OM_OPSET_CONVERT_H

#include "onnxmem/ir.h"

/* Target opsets of ai.onnx that are supported. */
enum { OM_CONVERT_OLDEST = 13, OM_CONVERT_DEFAULT = 17, OM_CONVERT_NEWEST = 24 };

/* Result of a conversion. */
typedef struct om_opset_converted {
	uint32_t from, to;           /* opsets; equal if the program was new enough */
	uint64_t ops;                /* ops that were rewritten */
	uint64_t added;              /* ops that were added */
} om_opset_converted;

/* Convert every operator of ai.onnx to opset `opset`, or to the newest opset that an op of the
 * program already has, if that is newer; the IR version becomes the lowest one that permits it.
 * Results are bit-identical.  Requires OM_HAS_SHAPES, because the semantics of some operators depend
 * on shapes, and preserves it.  Calls of functions are not converted.  OM_UNSUPPORTED names the first
 * op that cannot be converted and the reason; the program is unusable afterwards.  `done` may be
 * NULL. */
om_status om_prog_convert_opset(om_session *s, om_prog *p, int opset, om_opset_converted *done);

#endif
