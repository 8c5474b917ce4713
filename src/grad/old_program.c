/* SPDX-License-Identifier: Apache-2.0 */
/* Is the opset of a program too old for gradients?  Shared with the command. */
#include <config.h>

#include <string.h>

#include "grad/old_program.h"
#include "grad/tape.h"

enum { LEAST_IR = 4 };

/* The version of ai.onnx; 0: not imported. */
static int
opset(const om_prog *p)
{
	for (size_t k = 0; k < p->nopset; k++)
		if (!*p->opset[k].domain)
			return p->opset[k].version;
	return 0;
}

/* Gradients use operators that are newer than the model's opset, and up to IR 3 inputs with defaults
 * are not supported. */
bool
om_prog_is_old(const om_prog *p)
{
	const int version = opset(p);

	return version && (version < OM_GRAD_OPSET || (p->ir_version && p->ir_version < LEAST_IR));
}
