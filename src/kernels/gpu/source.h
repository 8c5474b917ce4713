/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the kernel language, which modules of devices compile. */
#ifndef OM_GPU_SOURCE_H
#define OM_GPU_SOURCE_H

#include <stddef.h>
#include <string.h>

typedef struct om_gpu_text {
	const char *name;        /* of the file, without folder and suffix; NULL ends a table */
	const char *text;
} om_gpu_text;

/* All sources of kernels, as "softmax"; made from NAME.omk. */
extern const om_gpu_text om_gpu_sources[];
/* "language" and the headers of dialects that are compiled on a device: "dialect_cuda", "dialect_opencl". */
extern const om_gpu_text om_gpu_dialects[];

/* A text of a table; NULL: there is none of this name. */
static inline const char *
om_gpu_text_of(const om_gpu_text *table, const char *name)
{
	while (table->name && strcmp(table->name, name) != 0)
		table++;
	return table->text;
}

/* The text of source `name`, as rows of kernels name it; NULL: there is none. */
static inline const char *
om_gpu_source_text(const char *name)
{
	return om_gpu_text_of(om_gpu_sources, name);
}

#endif
