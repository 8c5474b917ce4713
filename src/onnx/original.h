/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a planned model was made from, kept in the planned file as a difference to it.
 *
 * A planned file ends with one more entry of the model's metadata, OM_KEY_ORIGINAL.  Its value tells how to make
 * the original of the other bytes of the file; docs/plan-format.md describes it.  It holds as long as
 * those bytes are unchanged, which the digest in it shows.
 */
#ifndef OM_ORIGINAL_H
#define OM_ORIGINAL_H

#include "base/byte_delta.h"
#include "onnx/model.h"

/* Append the entry to `to`, to which `m` was just written, if it was planned with OM_ANNOTATE_ORIGINAL and
 * loaded from a file that had no plan, or whose original is known. */
om_status om_original_append(om_session *s, const om_model *m, FILE *to);

/* The bytes of the original of `m`, in `mem`.  OM_INVALID: it has none; OM_STALE: the file was changed after
 * it was planned. */
om_status om_original_read(om_session *s, const om_model *m, om_arena *mem, om_bytes *out);

#endif
