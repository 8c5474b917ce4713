/* Elements for inputs, and what outputs are compared with: files, formulas. */
#ifndef OM_DATA_H
#define OM_DATA_H

#include "cli/cli.h"

/* Options that give inputs their elements. */
extern const om_opt_group om_data_options;

/* Read what --data and --input name into `in`, by parameter of the graph; a
 * type of OM_UNDEFINED stays where nothing was given. */
om_status om_data_read(om_cli *c, om_tensor *in);

/* Shapes of what was read count as if they had been asked for; then come the options. */
om_status om_data_shapes(om_cli *c, const om_tensor *in);

/* Fill, as --formula, --random and --fill ask, what was not read; shapes are
 * those of the program.  An input that stays without elements, and has no
 * default, is OM_USAGE naming all of them.  The caller frees what lies in
 * `owned`, also on failure. */
om_status om_data_fill(om_cli *c, om_tensor *in, void **owned);

/* What the outputs are expected to be, from a folder or a .npz file; OM_IO
 * when there is nothing for any of them. */
om_status om_data_expected(om_cli *c, const char *path, om_tensor *out);

/* Write outputs to a folder (output_0.pb, ...), which is made where it is
 * missing, or to a .npz file. */
om_status om_data_save(om_cli *c, const char *path, const om_tensor *const *out);

typedef struct om_tolerance {
	double relative, absolute;
} om_tolerance;

/* OM_MISMATCH naming the first element that differs, and how many do. */
om_status om_data_compare(om_cli *c, const char *name, const om_type *type, const om_tensor *got,
	const om_tensor *want, om_tolerance tol);

/* Element `k` of a tensor of numbers of at least a byte: 64-bit integers are rounded.  Put
 * one there: false where a type has no such numbers. */
double om_data_number(const om_tensor *t, int64_t k);
bool om_data_put(om_tensor *t, uint64_t k, double x);

/* Element `k` of a tensor as text. */
const char *om_data_text(const om_tensor *t, int64_t k, char *out, size_t size);

#endif
