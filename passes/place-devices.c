/* SPDX-License-Identifier: Apache-2.0 */
/* place-devices: what runs on a device, and the copies between both memories. */
#include <config.h>

#include <string.h>

#include "host/option.h"
#include "lower/place_devices.h"
#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

static om_status
read_speed(om_run *r, const char *name, double unit, double *to)
{
	OM_TRY(om_option_float(r, name, to));
	if (!(*to > 0))
		return om_fail(r->session, OM_USAGE, "place-devices: %s is a number above 0", name);
	*to *= unit;
	return OM_OK;
}

static om_status
read_speeds(om_run *r, om_device_speed *to)
{
	OM_TRY(read_speed(r, "host-gflops", 1e9, &to->host_flops));
	OM_TRY(read_speed(r, "device-gflops", 1e9, &to->device_flops));
	OM_TRY(read_speed(r, "host-gbps", 1e9, &to->host_bytes));
	OM_TRY(read_speed(r, "device-gbps", 1e9, &to->device_bytes));
	OM_TRY(read_speed(r, "copy-gbps", 1e9, &to->copied_bytes));
	OM_TRY(read_speed(r, "launch-us", 1e-6, &to->launch));
	return read_speed(r, "copy-us", 1e-6, &to->copy);
}

static om_status
run(om_run *r, om_prog *p)
{
	const char *device = om_option(r, "device"), *place = om_option(r, "place");
	const bool all = strcmp(place, "all") == 0;
	om_device_speed speed = {.trips = om_trip_count};
	om_placed n;

	if (!*device || strcmp(device, "cpu") == 0)
		return om_fail(r->session, OM_USAGE, "place-devices requires a device, as in place-devices:device=opencl");
	if (!all && strcmp(place, "cost") != 0)
		return om_fail(r->session, OM_USAGE, "place-devices: place is cost or all, not %s", place);
	OM_TRY(read_speeds(r, &speed));
	OM_TRY(om_place_devices(r->session, p, device, all, &speed, &n));
	om_count(r, "ops", n.ops);
	om_count(r, "views", n.views);
	om_count(r, "to-device", n.to_device);
	om_count(r, "to-host", n.to_host);
	om_count(r, "copied", n.bytes);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"device", "", "the device: cuda, opencl, sim"},
	{"place", "cost", "cost: what is faster there, copies included; all: whatever the device can run"},
	{"host-gflops", "100", "floating-point operations of the processor, in 10^9 a second"},
	{"device-gflops", "10000", "those of the device"},
	{"host-gbps", "20", "memory that the processor reads and writes, in 10^9 bytes a second"},
	{"device-gbps", "1000", "that of the device"},
	{"copy-gbps", "12", "what is copied between both"},
	{"launch-us", "5", "microseconds that an op on the device takes at least"},
	{"copy-us", "10", "microseconds that a copy takes at least"},
	{0}
};

static const om_pass_flag flags[] = {
	{.name = "device", .option = "device", .arg = "NAME", .adds = true, .brief = "the device of the plan"},
	{.name = "place", .option = "place", .arg = "HOW", .brief = "with --device: run there what is faster there, `cost`, or `all` that the device can run"},
	{0}
};

static const om_pass_counter counters[] = {
	{"ops", "ops that run on the device"},
	{"views", "views of values on the device"},
	{"to-device", "copies to the device"},
	{"to-host", "copies from the device"},
	{"copied", "bytes of all copies"},
	{0}
};

OM_PASS(
	.name = "place-devices",
	.brief = "choose what runs on a device",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.options = options,
	.counters = counters,
	.flags = flags,
	.run = run)
