/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between the memory of the processor and that of a device: org.onnxmem ToDevice and ToHost, which the pass
 * place-devices inserts.  The executor asks the device for them; without one they copy. */
#include <config.h>

#include "onnxmem/kernel.h"
#include "opdef/columns.h"
#include "ops/family.h"

const om_opdef om_ops_device_copies[] = {
	{.domain = "org.onnxmem", .name = "ToDevice", .brief = "copies a tensor to the memory of a device", .since = 1,
	 .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .copies = OM_COPIES_TO_DEVICE, .infer = om_infer_same,
	 .propagate_data = om_elems_moved, .cpu = om_cpu_whole},
	{.domain = "org.onnxmem", .name = "ToHost", .brief = "copies a tensor from the memory of a device", .since = 1,
	 .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .copies = OM_COPIES_TO_HOST, .infer = om_infer_same,
	 .propagate_data = om_elems_moved, .cpu = om_cpu_whole},
	{0}
};
