/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by name; see host.h. */
#include <config.h>

#include <string.h>

#include "kernels/gpu/host.h"

const om_gpu_kernel *
om_gpu_kernel_find(const char *name)
{
	for (const om_gpu_kernel *k = om_gpu_kernels; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}
