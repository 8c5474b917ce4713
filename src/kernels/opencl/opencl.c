/* SPDX-License-Identifier: Apache-2.0 */
/* The module `opencl`: opening a device, what it is, and the table of functions. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/opencl/opencl.h"
#include "onnxmem/tensor.h"

/* Threads of a block that kernels are written for. */
enum { BLOCK = 256, MOST_PLATFORMS = 16, MOST_DEVICES = 64 };

om_device_status
om_opencl_fail(om_device *d, om_device_status st, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->error, sizeof d->error, fmt, ap);
	va_end(ap);
	return st;
}

/* What the errors that a user may meet mean. */
static const char *
meaning_of(cl_int code)
{
	switch (code) {
	case CL_DEVICE_NOT_AVAILABLE: return "the device is not available";
	case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "there is not enough memory on the device";
	case CL_INVALID_BUFFER_SIZE: return "it gives no buffer of this size";
	case CL_OUT_OF_RESOURCES: return "the device has not enough memory, registers or local memory for it";
	case CL_OUT_OF_HOST_MEMORY: return "the driver has not enough memory on the processor";
	case CL_INVALID_WORK_GROUP_SIZE: return "the device does not run blocks of this size";
	default: return "the driver does not say why";
	}
}

om_device_status
om_opencl_failed(om_device *d, cl_int code, const char *what)
{
	const bool is_memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY
	    || code == CL_INVALID_BUFFER_SIZE;

	return om_opencl_fail(d, is_memory ? OM_DEVICE_MEMORY : OM_DEVICE_LOST, "OpenCL cannot %s: %s (error %d)", what, meaning_of(code),
		code);
}

/* Device number `n` of all platforms, in their order. */
static om_device_status
find_device(om_device *d, unsigned long n)
{
	cl_platform_id platform[MOST_PLATFORMS];
	cl_uint nplatform = 0;
	unsigned long seen = 0;

	if (clGetPlatformIDs(MOST_PLATFORMS, platform, &nplatform) != CL_SUCCESS || nplatform == 0)
		return om_opencl_fail(d, OM_DEVICE_UNSUPPORTED, "there is no OpenCL driver on this machine");
	for (cl_uint k = 0; k < nplatform && k < MOST_PLATFORMS; k++) {
		cl_device_id device[MOST_DEVICES];
		cl_uint count = 0;
		if (clGetDeviceIDs(platform[k], CL_DEVICE_TYPE_ALL, MOST_DEVICES, device, &count) != CL_SUCCESS)
			continue;
		count = count < MOST_DEVICES ? count : MOST_DEVICES;
		if (n < seen + count) {
			d->id = device[n - seen];
			return OM_DEVICE_OK;
		}
		seen += count;
	}
	return om_opencl_fail(d, OM_DEVICE_UNSUPPORTED, "there is no OpenCL device %lu: there are %lu", n, seen);
}

/* `device=N`. */
static om_device_status
read_options(om_device *d, const char *options, unsigned long *n)
{
	static const char word[] = "device=";
	char *end;

	*n = 0;
	if (!options || !*options)
		return OM_DEVICE_OK;
	if (strncmp(options, word, sizeof word - 1) == 0) {
		*n = strtoul(options + sizeof word - 1, &end, 10);
		if (end != options + sizeof word - 1 && !*end)
			return OM_DEVICE_OK;
	}
	return om_opencl_fail(d, OM_DEVICE_ARGUMENT, "the options of OpenCL are \"%s\", expected device=N", options);
}

static size_t
number_of(const om_device *d, cl_device_info what)
{
	size_t n = 0;

	clGetDeviceInfo(d->id, what, sizeof n, &n, NULL);
	return n;
}

static om_device_status
check_device(om_device *d)
{
	clGetDeviceInfo(d->id, CL_DEVICE_NAME, sizeof d->name, d->name, NULL);
	clGetDeviceInfo(d->id, CL_DRIVER_VERSION, sizeof d->version, d->version, NULL);
	if (number_of(d, CL_DEVICE_MAX_WORK_GROUP_SIZE) < BLOCK)
		return om_opencl_fail(d, OM_DEVICE_UNSUPPORTED, "%s runs %zu threads in a block, but kernels need %d", d->name,
			number_of(d, CL_DEVICE_MAX_WORK_GROUP_SIZE), BLOCK);
	return OM_DEVICE_OK;
}

static om_device_status
open_device(om_device **out, const char *options)
{
	om_device *d = *out = calloc(1, sizeof *d);
	unsigned long n;
	cl_int code;

	if (!d)
		return OM_DEVICE_MEMORY;
	om_device_status st = read_options(d, options, &n);
	if (st == OM_DEVICE_OK)
		st = find_device(d, n);
	if (st == OM_DEVICE_OK)
		st = check_device(d);
	if (st != OM_DEVICE_OK)
		return st;
	d->context = clCreateContext(NULL, 1, &d->id, NULL, NULL, &code);
	return code == CL_SUCCESS ? OM_DEVICE_OK : om_opencl_failed(d, code, "open the device");
}

static void
close_device(om_device *d)
{
	if (!d)
		return;
	for (uint32_t k = 0; k < d->nbuffer; k++)
		if (d->buffer[k].mem)
			clReleaseMemObject(d->buffer[k].mem);
	if (d->context)
		clReleaseContext(d->context);
	free(d->buffer);
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
	cl_ulong bytes = 0, shared = 0;
	cl_uint units = 0, bits = 0;
	char extensions[OM_OPENCL_ERROR] = "";
	uint64_t types = TYPE(FLOAT32) | TYPE(FLOAT16) | TYPE(BFLOAT16) | TYPE(BOOL) | TYPE(INT8) | TYPE(UINT8) | TYPE(INT16)
	    | TYPE(UINT16) | TYPE(INT32) | TYPE(UINT32) | TYPE(INT64) | TYPE(UINT64);

	clGetDeviceInfo(d->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
	clGetDeviceInfo(d->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof shared, &shared, NULL);
	clGetDeviceInfo(d->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
	clGetDeviceInfo(d->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
	clGetDeviceInfo(d->id, CL_DEVICE_EXTENSIONS, sizeof extensions - 1, extensions, NULL);
	if (strstr(extensions, "cl_khr_fp64"))
		types |= TYPE(FLOAT64);
	*to = (om_device_info){.name = d->name, .architecture = d->version, .bytes = bytes, .align = bits > 64 * 8 ? bits / 8 : 64,
		.units = units, .threads = (uint32_t)number_of(d, CL_DEVICE_MAX_WORK_GROUP_SIZE), .shared = (uint32_t)shared,
		.streams = OM_OPENCL_STREAMS, .types = types};
}

static const om_device_ops ops = {
	.abi = OM_DEVICE_ABI, .size = sizeof ops, .name = "opencl",
	.open = open_device, .close = close_device, .error = error, .info = info,
	.alloc = om_opencl_alloc, .free = om_opencl_free,
	.upload = om_opencl_upload, .download = om_opencl_download, .copy = om_opencl_copy, .fill = om_opencl_fill,
	.launch = om_opencl_launch, .call = om_opencl_call,
	.stream_create = om_opencl_stream_create, .stream_free = om_opencl_stream_free,
	.event_create = om_opencl_event_create, .event_free = om_opencl_event_free,
	.record = om_opencl_record, .wait = om_opencl_wait, .sync = om_opencl_sync,
	.build = om_opencl_build, .code_free = om_opencl_code_free,
};

const om_device_ops *
om_device_module(void)
{
	return &ops;
}
