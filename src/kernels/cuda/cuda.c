/* SPDX-License-Identifier: Apache-2.0 */
/* The module `cuda`: opening a device, what it is, and the table of functions. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "onnxmem/tensor.h"

om_device_status
om_cuda_fail(om_device *d, om_device_status st, const char *fmt, ...)
{
	va_list v;

	va_start(v, fmt);
	vsnprintf(d->error, sizeof d->error, fmt, v);
	va_end(v);
	return st;
}

static om_device_status
status_of(cu_result r)
{
	switch (r) {
	case CU_OK: return OM_DEVICE_OK;
	case CU_INVALID_VALUE: return OM_DEVICE_ARGUMENT;
	case CU_OUT_OF_MEMORY: return OM_DEVICE_MEMORY;
	case CU_INVALID_PTX: case CU_UNSUPPORTED_PTX_VERSION: return OM_DEVICE_BUILD;
	case CU_STUB_LIBRARY: case CU_NO_DEVICE: case CU_INVALID_DEVICE: case CU_NO_BINARY_FOR_GPU: case CU_SYSTEM_DRIVER_MISMATCH:
	case CU_COMPAT_NOT_SUPPORTED_ON_DEVICE: return OM_DEVICE_UNSUPPORTED;
	default: return OM_DEVICE_LOST;
	}
}

om_device_status
om_cuda_result(om_device *d, cu_result r, const char *what)
{
	const char *name = NULL, *text = NULL;

	if (r == CU_OK)
		return OM_DEVICE_OK;
	d->cu.cuGetErrorName(r, &name);
	d->cu.cuGetErrorString(r, &text);
	return om_cuda_fail(d, status_of(r), "CUDA cannot %s: %s (%s, error %d)", what, text ? text : "it does not say why",
		name ? name : "without a name", r);
}

om_device_status
om_cuda_enter(om_device *d)
{
	return om_cuda_result(d, d->cu.cuCtxSetCurrent(d->context), "use the device");
}

/* ---- Options. ---- */

static om_device_status
set_option(om_device *d, const char *word, size_t n)
{
	static const char number[] = "device=", compiler[] = "nvrtc=", debug[] = "debug";
	char text[OM_CUDA_PATH], *end;

	snprintf(text, sizeof text, "%.*s", (int)n, word);
	if (strcmp(text, debug) == 0) {
		d->is_debug = true;
		return OM_DEVICE_OK;
	}
	if (n < sizeof text && strncmp(text, compiler, sizeof compiler - 1) == 0 && text[sizeof compiler - 1]) {
		snprintf(d->compiler, sizeof d->compiler, "%s", text + sizeof compiler - 1);
		return OM_DEVICE_OK;
	}
	if (strncmp(text, number, sizeof number - 1) == 0) {
		d->ordinal = strtoul(text + sizeof number - 1, &end, 10);
		if (end != text + sizeof number - 1 && !*end)
			return OM_DEVICE_OK;
	}
	return om_cuda_fail(d, OM_DEVICE_ARGUMENT, "CUDA has no option %.*s; it has device=N, nvrtc=FILE, debug", 200, text);
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

/* ---- Opening. ---- */

static om_device_status
check_driver(om_device *d)
{
	om_device_status st = om_cuda_load_driver(d);

	if (st == OM_DEVICE_OK)
		st = om_cuda_result(d, d->cu.cuInit(0), "start the NVIDIA driver");
	if (st == OM_DEVICE_OK)
		st = om_cuda_result(d, d->cu.cuDriverGetVersion(&d->version), "read the version of the NVIDIA driver");
	if (st == OM_DEVICE_OK && d->version < OM_CUDA_OLDEST_DRIVER)
		return om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "the NVIDIA driver is of CUDA %d.%d, but 12.0 is required", d->version / 1000,
			d->version % 1000 / 10);
	return st;
}

static om_device_status
find_device(om_device *d)
{
	int n = 0;
	const om_device_status st = om_cuda_result(d, d->cu.cuDeviceGetCount(&n), "count the devices");

	if (st != OM_DEVICE_OK)
		return st;
	if (n <= 0)
		return om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "there is an NVIDIA driver, but no device of CUDA");
	if (d->ordinal >= (unsigned long)n)
		return om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "there is no CUDA device %lu: there are %d", d->ordinal, n);
	return om_cuda_result(d, d->cu.cuDeviceGet(&d->id, (int)d->ordinal), "find the device");
}

static om_device_status
attribute(om_device *d, int which, int *value)
{
	*value = 0;
	return om_cuda_result(d, d->cu.cuDeviceGetAttribute(value, which, d->id), "describe the device");
}

static om_device_status
check_device(om_device *d)
{
	int major, minor;
	om_device_status st = om_cuda_result(d, d->cu.cuDeviceGetName(d->name, sizeof d->name, d->id), "name the device");

	if (st == OM_DEVICE_OK)
		st = attribute(d, CU_ATTRIBUTE_MAJOR, &major);
	if (st == OM_DEVICE_OK)
		st = attribute(d, CU_ATTRIBUTE_MINOR, &minor);
	if (st != OM_DEVICE_OK)
		return st;
	d->architecture = 10 * major + minor;
	snprintf(d->arch, sizeof d->arch, "sm_%d", d->architecture);
	if (d->architecture < OM_CUDA_OLDEST_DEVICE)
		return om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "%s has the compute capability %d.%d, but 7.5 is required", d->name, major, minor);
	return OM_DEVICE_OK;
}

static om_device_status
open_device(om_device **out, const char *options)
{
	om_device *d = *out = calloc(1, sizeof *d);

	if (!d)
		return OM_DEVICE_MEMORY;
	om_device_status st = set_options(d, options);
	if (st == OM_DEVICE_OK)
		st = check_driver(d);
	if (st == OM_DEVICE_OK)
		st = find_device(d);
	if (st == OM_DEVICE_OK)
		st = check_device(d);
	if (st == OM_DEVICE_OK)
		st = om_cuda_result(d, d->cu.cuDevicePrimaryCtxRetain(&d->context, d->id), "open the device");
	return st == OM_DEVICE_OK ? om_cuda_enter(d) : st;
}

static void
close_device(om_device *d)
{
	if (!d)
		return;
	if (d->context) {
		om_cuda_free_all(d);
		d->cu.cuDevicePrimaryCtxRelease(d->id);
	}
	free(d->memory);
	free(d);
}

static const char *
error(om_device *d)
{
	return d ? d->error : "there is no memory for a device";
}

#define TYPE(name) (UINT64_C(1) << OM_##name)

static void
info(om_device *d, om_device_info *to)
{
	const uint64_t types = TYPE(FLOAT32) | TYPE(FLOAT16) | TYPE(BFLOAT16) | TYPE(FLOAT64) | TYPE(BOOL) | TYPE(INT8) | TYPE(UINT8)
	    | TYPE(INT16) | TYPE(UINT16) | TYPE(INT32) | TYPE(UINT32) | TYPE(INT64) | TYPE(UINT64);
	size_t free_bytes = 0, bytes = 0;
	int units, threads, shared;

	attribute(d, CU_ATTRIBUTE_UNITS, &units);
	attribute(d, CU_ATTRIBUTE_THREADS, &threads);
	attribute(d, CU_ATTRIBUTE_SHARED, &shared);
	if (om_cuda_enter(d) != OM_DEVICE_OK || d->cu.cuMemGetInfo(&free_bytes, &bytes) != CU_OK)
		free_bytes = bytes = 0;
	*to = (om_device_info){.name = d->name, .architecture = d->arch, .bytes = bytes, .free_bytes = free_bytes, .align = OM_CUDA_ALIGN,
		.units = (uint32_t)units, .threads = (uint32_t)threads, .shared = (uint32_t)shared, .streams = OM_CUDA_STREAMS,
		.types = types, .captures = !d->is_debug};
}

void
om_cuda_keep(om_device *d, const char *folder)
{
	const size_t n = strlen(folder);

	if (n < sizeof d->cache)
		memcpy(d->cache, folder, n + 1);
}

static const om_device_ops ops = {
	.abi = OM_DEVICE_ABI, .size = sizeof ops, .name = "cuda",
	.open = open_device, .close = close_device, .error = error, .info = info,
	.alloc = om_cuda_alloc, .free = om_cuda_free, .bind = om_cuda_bind,
	.upload = om_cuda_upload, .download = om_cuda_download, .copy = om_cuda_copy, .fill = om_cuda_fill,
	.launch = om_cuda_launch, .call = om_cuda_call,
	.stream_create = om_cuda_stream_create, .stream_free = om_cuda_stream_free,
	.event_create = om_cuda_event_create, .event_free = om_cuda_event_free,
	.record = om_cuda_record, .wait = om_cuda_wait, .sync = om_cuda_sync, .elapsed = om_cuda_elapsed,
	.build = om_cuda_build, .code_free = om_cuda_code_free,
	.capture_begin = om_cuda_capture_begin, .capture_end = om_cuda_capture_end, .replay = om_cuda_replay,
	.graph_free = om_cuda_graph_free, .keep = om_cuda_keep,
};

const om_device_ops *
om_device_module(void)
{
	return &ops;
}
