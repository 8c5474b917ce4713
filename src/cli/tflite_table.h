/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of .tflite files, as a table of buffers. */
#ifndef OM_TFLITE_TABLE_H
#define OM_TFLITE_TABLE_H

#include "cli/table.h"
#include "report/tflite.h"

/* Make a table, with columns id, lower, upper, size, offset and name, of the tensors of the first graph that are not constant, with
 * the offsets of the offline plan in the file; tensors without one have none.  The table refers to `data`.  OM_MALFORMED for
 * bytes that are no .tflite file; OM_UNSUPPORTED for a tensor of unknown size. */
om_status om_tflite_table(om_session *s, const char *path, const void *data, size_t size, om_arena *mem, om_table *out);

#endif
