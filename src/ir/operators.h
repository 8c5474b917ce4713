/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of a program.
 *
 * Operators are defined above the program, but its ops are looked up among them.  So the creator of a program
 * hands in where: for the programs of callers, that is src/library. */
#ifndef OM_OPERATORS_H
#define OM_OPERATORS_H

#include "onnxmem/ir.h"

/* Immutable, and valid as long as every program with it. */
struct om_operators {
	/* The definition of an operator in an opset; NULL if there is none. */
	const om_opdef *(*find)(const char *domain, const char *name, int version);

	/* True if there is a definition of this name, of any version. */
	bool (*exists)(const char *domain, const char *name);

	/* The kernels, all for "cpu". */
	const struct om_kernel_registry *(*kernels)(void);

	/* Lists of kernels for devices (opdef/device_kernel.h), after them NULL: what is in later ones takes precedence. */
	const struct om_device_kernel *const *device_kernels;

	/* Convert the ops of ai.onnx to an opset that is new enough for gradients, unless they are newer. */
	om_status (*convert)(om_session *s, om_prog *p);
};

/* The definition of an operator of the caller in `p`; NULL if there is none. */
const om_opdef *om_opdef_own(const om_prog *p, const char *domain, const char *type);

/* As om_prog_new() and om_parse(), for given operators. */
om_prog *om_prog_new_with(const struct om_operators *operators);
om_status om_parse_with(om_session *s, const struct om_operators *operators, FILE *in, const char *where, om_prog **out);

#endif
