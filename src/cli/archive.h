/* SPDX-License-Identifier: Apache-2.0 */
/* Values of every type as entries of a .npz file.
 *
 * A tensor NAME is the entry NAME.  A sequence or an optional is NAME.length, a number, and NAME[0], NAME[1], ...,
 * each a value of the same kind of entries; a map is NAME.keys and NAME.values. */
#ifndef OM_ARCHIVE_H
#define OM_ARCHIVE_H

#include "cli/cli.h"
#include "cli/npy.h"

/* The entries of a file, in the memory of the command. */
typedef struct om_archive om_archive;

om_status om_archive_load(om_cli *c, const char *path, om_archive **out);
size_t om_archive_size(const om_archive *a);
const om_npz_entry *om_archive_entry(const om_archive *a, size_t k);

/* Read a value of type `type`; without an entry of it, `*found` is false and `*out` unchanged.  OM_MALFORMED names the
 * entry that is missing or has another type. */
om_status om_archive_value(om_archive *a, const char *name, const om_type *type, om_tensor *out, bool *found);

/* The name of an entry that no value read so far consists of; NULL if there is none. */
const char *om_archive_unread(const om_archive *a);

typedef struct om_entries {
	om_npz_entry *list;
	size_t n, cap;
} om_entries;

/* Append the entries of a value. */
void om_entries_add(om_arena *mem, om_entries *e, const char *name, const om_type *type, const om_tensor *t);

#endif
