/* SPDX-License-Identifier: Apache-2.0 */
/* See verify_devices.c. */
#ifndef OM_VERIFY_DEVICES_H
#define OM_VERIFY_DEVICES_H

#include "onnxmem/status.h"

struct sim;

/* After the placements of all values and the scratch of ops are known. */
om_status om_sim_check_devices(struct sim *c);

#endif
