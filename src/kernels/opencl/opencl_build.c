/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of OpenCL: compiled from their text, after the header of the dialect. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu/source.h"
#include "kernels/opencl/opencl.h"

/* Division and roots are rounded correctly where the device can do it, as those of the processor are.  A literal without
 * suffix is float: double is optional. */
static const char *
options_of(const om_device *d)
{
	cl_device_fp_config floats = 0;

	clGetDeviceInfo(d->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof floats, &floats, NULL);
	return floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
	    ? "-cl-std=CL1.2 -cl-single-precision-constant -cl-fp32-correctly-rounded-divide-sqrt"
	    : "-cl-std=CL1.2 -cl-single-precision-constant";
}

/* The compiler's first words. */
static om_device_status
refused(om_device *d, cl_program program)
{
	size_t n = 0;

	clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n);
	char *log = calloc(1, n + 1);
	if (log)
		clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, n, log, NULL);
	om_opencl_fail(d, OM_DEVICE_BUILD, "the OpenCL compiler refuses a kernel: %s", log && *log ? log : "it does not say why");
	free(log);
	return OM_DEVICE_BUILD;
}

static om_device_status
kernel_of(om_device *d, cl_program program, const char *name, om_device_code **out)
{
	cl_int code;
	om_device_code *c = *out = calloc(1, sizeof *c);

	if (!c)
		return om_opencl_fail(d, OM_DEVICE_MEMORY, "there is no memory for kernel %s", name);
	snprintf(c->name, sizeof c->name, "%s", name);
	c->device = d;
	c->kernel = clCreateKernel(program, name, &code);
	if (code != CL_SUCCESS)
		return om_opencl_fail(d, OM_DEVICE_BUILD, "the text of a program has no kernel %s: error %d", name, code);
	clGetKernelInfo(c->kernel, CL_KERNEL_NUM_ARGS, sizeof c->params, &c->params, NULL);
	return OM_DEVICE_OK;
}

om_device_status
om_opencl_build(om_device *d, const char *text, const char *const *names, uint32_t n, om_device_code **out)
{
	const char *parts[] = {om_gpu_text_of(om_gpu_dialects, "dialect_opencl"), om_gpu_text_of(om_gpu_dialects, "language"), text};
	om_device_status st = OM_DEVICE_OK;
	cl_int code;

	memset(out, 0, n * sizeof *out);
	cl_program program = clCreateProgramWithSource(d->context, 3, parts, NULL, &code);
	if (code != CL_SUCCESS)
		return om_opencl_failed(d, code, "read a program");
	code = clBuildProgram(program, 1, &d->id, options_of(d), NULL, NULL);
	if (code != CL_SUCCESS)
		st = refused(d, program);
	for (uint32_t k = 0; k < n && st == OM_DEVICE_OK; k++)
		st = kernel_of(d, program, names[k], &out[k]);
	for (uint32_t k = 0; k < n && st != OM_DEVICE_OK; k++) {
		om_opencl_code_free(out[k]);
		out[k] = NULL;
	}
	clReleaseProgram(program);
	return st;
}

void
om_opencl_code_free(om_device_code *c)
{
	if (c && c->kernel)
		clReleaseKernel(c->kernel);
	free(c);
}
