/* Modules of this package: code whose libraries few runs need, such as decoders of images. */
#ifndef OM_LOAD_MODULE_H
#define OM_LOAD_MODULE_H

/* The symbol `symbol` of the module `file`, as "onnxmem-images.so"; NULL if it cannot be loaded.  The module is
 * looked for where the system looks for libraries (LD_LIBRARY_PATH comes first), then where `make install` puts it,
 * and stays loaded. */
void *om_load_module(const char *file, const char *symbol);

/* Why the last call of this thread returned NULL, as a clause; never NULL. */
const char *om_load_module_error(void);

#endif
