/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that drop what is written to their log for a while. */
#ifndef OM_MUTE_H
#define OM_MUTE_H

#include "onnxmem/status.h"

/* Add `more` to how many callers drop lines, which are dropped while it is not 0.  Returns how many there are then. */
int om_session_mute(om_session *s, int more);

#endif
