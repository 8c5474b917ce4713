/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device: opening it, its kernels, and its table of functions. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sim/sim.h"

om_device_status
om_sim_fail(om_device *d, om_device_status st, const char *fmt, ...)
{
	va_list v;

	va_start(v, fmt);
	vsnprintf(d->error, sizeof d->error, fmt, v);
	va_end(v);
	return st;
}

/* One word of the options: `name` or `name=number`. */
static om_device_status
set_option(om_device *d, const char *word, size_t n)
{
	char text[64], *end;
	unsigned long long number = 0;

	snprintf(text, sizeof text, "%.*s", (int)n, word);
	char *value = strchr(text, '=');
	if (value) {
		*value++ = 0;
		number = strtoull(value, &end, 10);
		if (end == value || *end)
			return om_sim_fail(d, OM_DEVICE_ARGUMENT, "the option %s of the simulated device requires a number, not %s", text, value);
	}
	if (strcmp(text, "seed") == 0 && value)
		d->rng = number;
	else if (strcmp(text, "fail") == 0 && value)
		d->allocations = (int64_t)(number >> 1 > INT64_MAX >> 1 ? INT64_MAX : number);
	else if (strcmp(text, "fixed") == 0 && !value)
		d->is_fixed = true;
	else if (strcmp(text, "unchecked") == 0 && !value)
		d->is_unchecked = true;
	else
		return om_sim_fail(d, OM_DEVICE_ARGUMENT, "the simulated device has no option %s; it has seed=N, fail=N, fixed, unchecked", text);
	return OM_DEVICE_OK;
}

static om_device_status
set_options(om_device *d, const char *options)
{
	for (const char *at = options; at && *at;) {
		const size_t n = strcspn(at, ",");
		const om_device_status st = set_option(d, at, n);
		if (st != OM_DEVICE_OK)
			return st;
		at += n + (at[n] == ',');
	}
	return OM_DEVICE_OK;
}

om_device_status
om_sim_open(om_device **out, const char *options, const om_gpu_kernel *kernels)
{
	om_device *d = *out = calloc(1, sizeof *d);

	if (!d)
		return OM_DEVICE_MEMORY;
	d->kernels = kernels;
	d->allocations = -1;
	d->fibers = om_fibers_new();
	if (!d->fibers)
		return om_sim_fail(d, OM_DEVICE_MEMORY, "there is no memory for the threads of the simulated device");
	return set_options(d, options);
}

static om_device_status
open_module(om_device **out, const char *options)
{
	return om_sim_open(out, options, om_gpu_kernels);
}

static void
close_device(om_device *d)
{
	if (!d)
		return;
	om_sim_graph_free(d->capture);
	for (int k = 0; k < SIM_STREAMS; k++)
		om_sim_stream_free(d->stream[k]);
	om_sim_free_all(d);
	om_fibers_free(d->fibers);
	free(d);
}

static const char *
error(om_device *d)
{
	return d ? d->error : "there is no memory for the simulated device";
}

static void
info(om_device *d, om_device_info *to)
{
	enum { UNITS = 4 };

	(void)d;
	*to = (om_device_info){.name = "simulated device", .architecture = "C", .align = SIM_ALIGN, .units = UNITS,
		.threads = OM_FIBERS_THREADS, .shared = OM_FIBERS_SHARED, .streams = SIM_STREAMS, .types = UINT64_MAX, .captures = true};
}

static om_device_status
build_one(om_device *d, const char *name, om_device_code **out)
{
	const om_gpu_kernel *k = d->kernels;

	while (k->name && strcmp(k->name, name) != 0)
		k++;
	if (!k->name)
		return om_sim_fail(d, OM_DEVICE_BUILD, "the simulated device was built without the kernel %s", name);
	*out = malloc(sizeof **out);
	if (!*out)
		return om_sim_fail(d, OM_DEVICE_MEMORY, "there is no memory for a kernel of the simulated device");
	(*out)->kernel = k;
	return OM_DEVICE_OK;
}

/* Kernels were compiled with this module: they are found by name. */
static om_device_status
build(om_device *d, const char *text, const char *const *names, uint32_t n, om_device_code **out)
{
	om_device_status st = OM_DEVICE_OK;

	(void)text;
	memset(out, 0, n * sizeof *out);
	for (uint32_t k = 0; k < n && st == OM_DEVICE_OK; k++)
		st = build_one(d, names[k], &out[k]);
	for (uint32_t k = 0; k < n && st != OM_DEVICE_OK; k++) {
		free(out[k]);
		out[k] = NULL;
	}
	return st;
}

static void
code_free(om_device_code *c)
{
	free(c);
}

static const om_device_ops ops = {.abi = OM_DEVICE_ABI, .size = sizeof ops, .name = "sim", .open = open_module,
	.close = close_device, .error = error, .info = info, .alloc = om_sim_alloc, .free = om_sim_free, .bind = om_sim_bind,
	.upload = om_sim_upload, .download = om_sim_download, .copy = om_sim_copy, .fill = om_sim_fill,
	.launch = om_sim_launch, .call = om_sim_call, .stream_create = om_sim_stream_create,
	.stream_free = om_sim_stream_free, .event_create = om_sim_event_create, .event_free = om_sim_event_free,
	.record = om_sim_record, .wait = om_sim_wait, .sync = om_sim_sync, .build = build, .code_free = code_free,
	.capture_begin = om_sim_capture_begin, .capture_end = om_sim_capture_end, .replay = om_sim_replay,
	.graph_free = om_sim_graph_free};

const om_device_ops *
om_sim_ops(void)
{
	return &ops;
}
