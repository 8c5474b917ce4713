/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: code whose libraries few runs need, such as decoders of images, and passes of third parties. */
#ifndef OM_LOAD_MODULE_H
#define OM_LOAD_MODULE_H

#include <stddef.h>

/* Bytes that hold the folder of modules. */
enum { OM_MODULE_FOLDER = 4096 };

/* The folder of modules: `onnxmem` beside the library where there is one, as in a package that was moved; else where
 * `make install` puts them. */
void om_module_folder(char out[OM_MODULE_FOLDER]);

/* The symbol `symbol` of the module `file`, as "onnxmem-images.so"; NULL if it cannot be loaded.  The module is
 * looked for where the system looks for libraries (LD_LIBRARY_PATH comes first), then in the folder of modules, and
 * stays loaded. */
void *om_load_module(const char *file, const char *symbol);

/* A module by the path of its file, NULL if it cannot be loaded; and a symbol of it, NULL if it has none.  It stays loaded. */
void *om_module_open(const char *file);
void *om_module_symbol(void *module, const char *symbol);

/* Why the last call of this thread returned NULL, as a clause; never NULL. */
const char *om_load_module_error(void);

#endif
