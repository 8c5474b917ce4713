/* Texts by name; see source.h. */
#include <config.h>

#include <string.h>

#include "kernels/gpu/source.h"

const char *
om_gpu_text_of(const om_gpu_text *table, const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table->text;
	return NULL;
}
