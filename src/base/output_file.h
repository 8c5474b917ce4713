/* SPDX-License-Identifier: Apache-2.0 */
/* Output files.
 *
 * An output appears under its name when it is complete and on disk; until then, and whenever writing
 * fails, the previous file is intact.  It is written to a temporary, NAME.part in the same folder, which
 * is flushed, renamed to NAME, and whose folder is flushed.  The temporary is locked while it is written:
 * one that a dead process left is unlocked, and taken over; if another process writes the same file, the
 * next name is used, NAME.2.part.  Links are followed, and the permissions of the previous file are kept.
 *
 * "-" is standard output, as is any path of the file that standard output is redirected to.  Pipes and
 * character devices, such as /dev/stdout and >(COMMAND), are written directly.
 */
#ifndef OM_OUTPUT_FILE_H
#define OM_OUTPUT_FILE_H

#include <stdio.h>

#include "onnxmem/status.h"

/* Errors of `to` itself need not be reported by the writer. */
typedef om_status om_output_writer(om_session *s, FILE *to, void *arg);

/* Let `write` write the file `path`.  OM_IO with a message that names it, or what `write` returns;
 * OM_MEMORY if memory runs out in `write`. */
om_status om_output_write(om_session *s, const char *path, om_output_writer *write, void *arg);

/* The same to memory, which the caller frees with free() and which ends with a NUL that `*size` does not count.  `what`
 * names it in messages.  `*data` is NULL on failure. */
om_status om_output_memory(om_session *s, const char *what, om_output_writer *write, void *arg, char **data, size_t *size);

/* Can `path` be written, as far as can be known before?  To be called before long work.  A folder is
 * accepted if `may_be_folder`. */
om_status om_output_check(om_session *s, const char *path, bool may_be_folder);

/* Rename a file that was flushed, and flush the folder.  0, or -1 and errno. */
int om_output_replace(const char *from, const char *to);

#endif
