/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of inputs, and expected outputs: files and formulas. */
#ifndef OM_DATA_H
#define OM_DATA_H

#include "cli/cli.h"

/* Options that provide the elements of inputs. */
extern const om_opt_group om_data_options;

/* Read the files given by --data and --input into `in`, by parameter of the graph; the type
 * stays OM_UNDEFINED where none was given. */
om_status om_data_read(om_cli *c, om_tensor *in);

/* Does --fill name parameter `param` of the graph?  Errors are those of om_data_fill(). */
om_status om_data_fills(om_cli *c, uint32_t param, bool *fills);

/* Fill the inputs that were not read as --fill deterministic, --random and --fill specify; shapes are those
 * of the program.  If inputs remain without elements and without a default, OM_USAGE lists all
 * of them.  The caller frees the buffers in `owned`, also on failure. */
om_status om_data_fill(om_cli *c, om_tensor *in, void **owned);

/* OM_IO: there is no file or folder `path`. */
om_status om_data_exists(om_cli *c, const char *path);

/* The expected outputs, from a folder or a .npz file; OM_IO if it has none of them.  The types of the outputs are
 * known: declared in the file, or inferred. */
om_status om_data_expected(om_cli *c, const char *path, om_tensor *out);

/* Write outputs to a folder (output_0.pb, ...), created if missing, or to a .npz file as archive.h describes. */
om_status om_data_save(om_cli *c, const char *path, const om_tensor *const *out);

typedef struct om_tolerance {
	double relative, absolute;
} om_tolerance;

/* OM_MISMATCH with the first element that differs, and the number of such elements. */
om_status om_data_compare(om_cli *c, const char *name, const om_type *type, const om_tensor *got,
	const om_tensor *want, om_tolerance tol);

/* Element `k` of a numeric tensor with elements of at least a byte: 64-bit integers are rounded.
 * om_data_put() stores one: false if the type is not such a type. */
double om_data_number(const om_tensor *t, int64_t k);
bool om_data_put(om_tensor *t, uint64_t k, double x);

/* Element `k` of a tensor as text. */
const char *om_data_text(const om_tensor *t, int64_t k, char *out, size_t size);

#endif
