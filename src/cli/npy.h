/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's files: .npy holds one tensor, .npz several named ones. */
#ifndef OM_NPY_H
#define OM_NPY_H

#include "onnxmem/tensor.h"

typedef struct om_npz_entry {
	const char *name;         /* without ".npy" */
	om_tensor t;
} om_npz_entry;

/* Elements, names and lists are allocated from `mem`.  Errors, with a message that names `path`:
 * OM_IO, OM_MALFORMED, OM_UNSUPPORTED (pickled objects, records). */
om_status om_npy_load(om_session *s, const char *path, om_arena *mem, om_tensor *out);
om_status om_npz_load(om_session *s, const char *path, om_arena *mem, om_npz_entry **out, size_t *n);

/* The same from memory; `where` replaces the path in messages. */
om_status om_npy_read(om_session *s, const void *data, size_t size, const char *where,
	om_arena *mem, om_tensor *out);
om_status om_npz_read(om_session *s, const void *data, size_t size, const char *where,
	om_arena *mem, om_npz_entry **out, size_t *n);

/* OM_UNSUPPORTED for types that NumPy lacks. */
om_status om_npz_save(om_session *s, const char *path, const om_npz_entry *e, size_t n, bool deflate);

/* Read a whole file, terminated by a NUL that `size` does not count. */
om_status om_file_read(om_session *s, const char *path, om_arena *mem, char **data, size_t *size);

#endif
