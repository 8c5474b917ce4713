/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on a device: chosen by cost, with copies between its memory and that of the processor. */
#ifndef OM_PLACE_DEVICES_H
#define OM_PLACE_DEVICES_H

#include "onnxmem/opdef.h"

/* How fast a device is, beside the processor.  All are above 0. */
typedef struct om_device_speed {
	double host_flops, device_flops;   /* in a second */
	double host_bytes, device_bytes;   /* of memory, in a second */
	double copied_bytes;               /* between both, in a second */
	double launch, copy;               /* seconds that a launch and a copy take at least */
	int64_t (*trips)(const om_op *op); /* iterations of a loop: om_trip_count() */
} om_device_speed;

typedef struct om_placed {
	uint64_t ops, views;     /* that run on the device, and those that are only views there */
	uint64_t to_device, to_host, bytes; /* copies, and what they copy */
} om_placed;

/* Place the ops of a program that has shapes and constants.  `all`: all that the device can run; else what is fastest
 * by `speed`, which is a minimum cut of the graph of ops. */
om_status om_place_devices(om_session *s, om_prog *p, const char *device, bool all, const om_device_speed *speed, om_placed *out);

#endif
