/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, on Windows; see system.h. */
#ifndef OM_WINDOWS_DLFCN_H
#define OM_WINDOWS_DLFCN_H

enum { RTLD_LAZY, RTLD_NOW, RTLD_LOCAL = 0 };

typedef struct Dl_info {
	const char *dli_fname;   /* with slashes; until the next call of this thread */
} Dl_info;

void *dlopen(const char *file, int how);
void *dlsym(void *module, const char *symbol);
int dlclose(void *module);
char *dlerror(void);
int dladdr(const void *address, Dl_info *out);

#endif
