/* SPDX-License-Identifier: Apache-2.0 */
/* Selection and calls of kernels; see onnxmem/kernel.h. */
#ifndef OM_KERNEL_CALL_H
#define OM_KERNEL_CALL_H

#include "onnxmem/kernel.h"

/* Kernels, indexed by operator.  Concurrent reads are safe while no kernel is being added. */
typedef struct om_kernel_registry om_kernel_registry;

/* A new, empty registry; the caller frees it. */
om_kernel_registry *om_kernel_registry_new(void);
void om_kernel_registry_free(om_kernel_registry *r);  /* NULL is fine */

/* Add a list of kernels, which must outlive the registry and ends with an entry without name.
 * Kernels added later take precedence.  OM_USAGE names an entry that cannot run. */
om_status om_kernel_register(om_session *s, om_kernel_registry *r, const om_kernel *list);

/* The kernel for an op with known types and shapes on a device: of all that match, the one that was
 * registered last; for c->precise without those marked `is_fast`.  NULL: none matches. */
const om_kernel *om_kernel_find(const om_kernel_registry *r, const char *device, const om_op_context *c);

/* Select the kernel for a call, from `r`, then from those of its program, then the reference kernel of the
 * definition, and prepare it: sets c->kernel and c->state.  `r` NULL: only its program's.  The state is
 * allocated in c->mem.  OM_UNSUPPORTED if there is no kernel; failures of `prepare` are returned. */
om_status om_kernel_bind(om_op_context *c, const om_kernel_registry *r);

/* Scratch bytes that a bound call requires. */
uint64_t om_kernel_workspace(const om_op_context *c);

/* Run a bound call.  The data of inputs and outputs and c->scratch must be set. */
om_status om_kernel_run(om_op_context *c);

/* Bind, allocate scratch in c->mem and run, for a call that is made once. */
om_status om_kernel_call(om_op_context *c);

/* Decode attributes of `op` into `to`, applying the defaults of its definition. */
void om_attr_fields(const om_op *op, const om_attr_field *fields, void *to);

#endif
