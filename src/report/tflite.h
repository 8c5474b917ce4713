/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan needs to know about a .tflite file: the tensors of its first graph, and when they are in use. */
#ifndef OM_TFLITE_H
#define OM_TFLITE_H

#include "onnxmem/arena.h"

typedef struct om_tflite_tensor {
	const char *name;        /* in the bytes of the file */
	uint64_t bytes;          /* UINT64_MAX: not known */
	bool is_constant;        /* its elements are in the file */
	bool is_variable;        /* it keeps its elements from one run to the next */
	bool is_used;            /* an op writes it, or it is an input or a variable */
	uint32_t first, last;    /* steps: op k runs in step k + 1; inputs are there from 0 on, outputs at the end, variables
				    all the time */
	int32_t offset;          /* of the offline plan in its metadata; -1: none, the runtime places it */
} om_tflite_tensor;

typedef struct om_tflite {
	om_tflite_tensor *tensor;
	uint32_t ntensor, ngraph, nop;
} om_tflite;

/* Are these bytes a .tflite file, going by its identifier? */
bool om_tflite_is(const void *data, size_t size);

/* Read the bytes of a file, which must stay; `where` names it in messages.  OM_MALFORMED for bytes that are no such file,
 * or refer to what is outside of them. */
om_status om_tflite_read(om_session *s, om_arena *mem, const char *where, const void *data, size_t size, om_tflite *out);

#endif
