/* SPDX-License-Identifier: Apache-2.0 */
/* Launches on a device of a module, for device_rows.c. */
#ifndef DEVICE_MODULE_H
#define DEVICE_MODULE_H

#include "opdef/device_kernel.h"

typedef struct device_module device_module;

/* Open the device of module onnxmem-NAME.so; NULL, with a line on standard output, if there is none. */
device_module *device_module_open(const char *name);
void device_module_close(device_module *m);  /* NULL is fine */

/* Can its kernels compute with elements of this type? */
bool device_module_has(const device_module *m, om_dtype t);

/* Has it run this kernel `times` times? */
bool device_module_has_run(const device_module *m, const char *entry, unsigned times);

/* Run the launches on a copy of the image; arguments of launch k are args[k].  NULL, or what went wrong. */
const char *device_module_run(device_module *m, const om_launch_list *list, om_arg (*args)[OM_LAUNCH_ARGS], void *image,
	uint64_t bytes);

#endif
