/* SPDX-License-Identifier: Apache-2.0 */
/* Loading modules; see load_module.h. */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/load_module.h"
#include "base/moduledir.h"
#include "base/system.h"
#include "onnxmem/version.h"

void
om_module_folder(char out[OM_MODULE_FOLDER])
{
	const char *(*function)(void) = om_version;
	void *address;
	Dl_info library;

	memcpy(&address, &function, sizeof address);
	const char *slash = dladdr(address, &library) && library.dli_fname ? om_path_slash(library.dli_fname) : NULL;
	snprintf(out, OM_MODULE_FOLDER, "%s", OM_MODULEDIR);
	if (!slash)
		return;
	char beside[OM_MODULE_FOLDER];
	const int n = snprintf(beside, sizeof beside, "%.*s/onnxmem/.", (int)(slash - library.dli_fname), library.dli_fname);
	if (n > 0 && (size_t)n < sizeof beside && access(beside, F_OK) == 0)   /* a folder, not the command */
		snprintf(out, OM_MODULE_FOLDER, "%.*s", n - 2, beside);
}

void *
om_module_open(const char *file)
{
	return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

void *
om_module_symbol(void *module, const char *symbol)
{
	return dlsym(module, symbol);
}

void *
om_load_module(const char *file, const char *symbol)
{
	char folder[OM_MODULE_FOLDER], path[OM_MODULE_FOLDER + 64];
	void *module = om_module_open(file);

	if (!module) {
		om_module_folder(folder);
		snprintf(path, sizeof path, "%s/%s", folder, file);
		if (access(path, F_OK) == 0)
			module = om_module_open(path);
	}
	return module ? om_module_symbol(module, symbol) : NULL;
}

const char *
om_load_module_error(void)
{
	const char *why = dlerror();

	return why ? why : "it cannot be loaded";
}
