/* Loading modules of this package; see load_module.h. */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "base/load_module.h"

void *
om_load_module(const char *file, const char *symbol)
{
	enum { LONGEST = 4096 };
	char path[LONGEST];
	void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	snprintf(path, sizeof path, "%s/%s", OM_MODULEDIR, file);
	if (!module && access(path, F_OK) == 0)
		module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return module ? dlsym(module, symbol) : NULL;
}

const char *
om_load_module_error(void)
{
	const char *why = dlerror();

	return why ? why : "it cannot be loaded";
}
