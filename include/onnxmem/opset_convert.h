/* Programs of old opsets in the form of newer ones. */
#ifndef OM_OPSET_CONVERT_H
#define OM_OPSET_CONVERT_H

#include "onnxmem/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What operators of ai.onnx can be raised to. */
enum { OM_CONVERT_OLDEST = 13, OM_CONVERT_DEFAULT = 17, OM_CONVERT_NEWEST = 24 };

/* What raising did. */
typedef struct om_opset_converted {
	uint32_t from, to;           /* opsets; the same where the program was new enough */
	uint64_t ops;                /* ops that say the same in another way now */
	uint64_t added;              /* ops that had to be added for that */
} om_opset_converted;

/* Write every operator of ai.onnx as opset `opset` has it, or as the newest has that any op of the
 * program is of already, where that is newer; with that goes the least IR version of a file that
 * may hold it.  The program computes the same numbers, bit for bit.  Shapes have to be known as far
 * as an operator's meaning hangs on them, so it wants OM_HAS_SHAPES, and keeps them; calls of functions are
 * left as they are.  OM_UNSUPPORTED names the first op that cannot be raised, and why; the program
 * is of no use then.  `done` may be NULL. */
OM_API om_status om_prog_convert_opset(om_session *s, om_prog *p, int opset, om_opset_converted *done);

#ifdef __cplusplus
}
#endif

#endif
