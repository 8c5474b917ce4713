/* The tensors of TensorFlow Lite models, as a table of buffers. */
#ifndef OM_TFLITE_H
#define OM_TFLITE_H

#include <stdbool.h>

#include "cli/table.h"

/* Is it a TensorFlow Lite model?  `data` has `size` bytes. */
bool om_tflite_is(const void *data, size_t size);

/* Make a table, with columns id, lower, upper, size, offset and name, of the tensors of the first subgraph that are not
 * constant: a tensor lives from the op that writes it to the last that reads it, an input from the first op, an output to
 * the last one, a variable all the time.  Offsets are those of the metadata "OfflineMemoryAllocation"; tensors without one
 * have none.  The table refers to `data`.  Every offset in the file is checked: OM_MALFORMED where one leads out of it.
 * OM_UNSUPPORTED for a tensor of unknown size.  Takes time linear in the size of the file. */
om_status om_tflite_table(om_session *s, const char *path, const void *data, size_t size, om_arena *mem, om_table *out);

#endif
