/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that are only started (async = 1). */
#ifndef OM_TRANSFERS_H
#define OM_TRANSFERS_H

#include "onnxmem/ir.h"

/* Is each ended by one Wait of the same block, which alone reads its output, and which has all that the transfer reads as inputs?  Then
 * lifetimes cover transfers.  OM_INVALID, naming the op, if not. */
om_status om_transfers_check(om_session *s, const om_prog *p);

#endif
