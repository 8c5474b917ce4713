/* SPDX-License-Identifier: Apache-2.0 */
/* Packings that other planners made: the offsets in a table. */
#ifndef OM_PACK_CHECK_H
#define OM_PACK_CHECK_H

#include "cli/pack_csv.h"

/* Give the buffers the offsets of the table, and the pools their heights and bounds, for om_pack_check_problem().  Buffers
 * without an offset are left out: `*nfree` tells how many.  OM_INVALID if no buffer has an offset. */
om_status om_packfile_take(om_session *s, om_packfile *file, om_arena *mem, uint32_t *nfree);

#endif
