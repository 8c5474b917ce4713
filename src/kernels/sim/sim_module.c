/* SPDX-License-Identifier: Apache-2.0 */
/* The one symbol of the module. */
#include <config.h>

#include "kernels/sim/sim.h"

const om_device_ops *
om_device_module(void)
{
	return om_sim_ops();
}
