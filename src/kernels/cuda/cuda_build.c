/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of CUDA: compiled by NVRTC from their text, after the header of the dialect, or read from the cache. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/gpu/source.h"

/* The text that is compiled, for free(); NULL: there is no memory. */
static char *
whole_text(const char *text)
{
	const char *dialect = om_gpu_text_of(om_gpu_dialects, "dialect_cuda"), *language = om_gpu_text_of(om_gpu_dialects, "language");
	const size_t n = strlen(dialect) + strlen(language) + strlen(text) + 1;
	char *all = malloc(n);

	if (all)
		snprintf(all, n, "%s%s%s", dialect, language, text);
	return all;
}

/* The compiler's first words. */
static om_device_status
refused(om_device *d, nvrtc_program p, int r)
{
	size_t n = 0;

	d->nvrtc.nvrtcGetProgramLogSize(p, &n);
	char *log = calloc(1, n + 1);
	if (log)
		d->nvrtc.nvrtcGetProgramLog(p, log);
	om_cuda_fail(d, OM_DEVICE_BUILD, "NVRTC %d.%d refuses a kernel for %s: %s%s%s", d->nvrtc.major, d->nvrtc.minor, d->arch,
		d->nvrtc.nvrtcGetErrorString(r), log && *log ? ": " : "", log ? log : "");
	free(log);
	return OM_DEVICE_BUILD;
}

static om_device_status
take_code(om_device *d, nvrtc_program p, char **code, size_t *bytes)
{
	int r = d->nvrtc.nvrtcGetCUBINSize(p, bytes);

	if (r == 0 && !(*code = malloc(*bytes + 1)))
		return om_cuda_fail(d, OM_DEVICE_MEMORY, "there is no memory for the code of a kernel");
	if (r == 0)
		r = d->nvrtc.nvrtcGetCUBIN(p, *code);
	return r == 0 ? OM_DEVICE_OK : refused(d, p, r);
}

/* A warning is no failure; float32 is computed as the other devices do, but for contracted products and sums. */
static om_device_status
compile(om_device *d, const char *text, char **code, size_t *bytes)
{
	char arch[64];
	const char *const options[] = {arch, "-default-device", "-diag-suppress=177,186"};
	nvrtc_program p = NULL;
	om_device_status st = om_cuda_load_nvrtc(d);

	if (st != OM_DEVICE_OK)
		return st;
	snprintf(arch, sizeof arch, "--gpu-architecture=%s", d->arch);
	int r = d->nvrtc.nvrtcCreateProgram(&p, text, "onnxmem.cu", 0, NULL, NULL);
	if (r != 0)
		return om_cuda_fail(d, OM_DEVICE_BUILD, "NVRTC cannot read a kernel: %s", d->nvrtc.nvrtcGetErrorString(r));
	r = d->nvrtc.nvrtcCompileProgram(p, sizeof options / sizeof *options, options);
	st = r == 0 ? take_code(d, p, code, bytes) : refused(d, p, r);
	d->nvrtc.nvrtcDestroyProgram(&p);
	return st;
}

/* ---- Loading. ---- */

static uint32_t
count_params(const om_device *d, cu_function f)
{
	size_t offset, bytes;
	uint32_t n = 0;

	if (!d->cu.cuFuncGetParamInfo)
		return UINT32_MAX;
	while (n < 2 * OM_CUDA_ARGS && d->cu.cuFuncGetParamInfo(f, n, &offset, &bytes) == CU_OK)
		n++;
	return n;
}

static om_device_status
kernel_of(om_device *d, struct om_cuda_module *m, const char *name, om_device_code **out)
{
	om_device_code *c = *out = calloc(1, sizeof *c);
	char what[2 * OM_CUDA_TEXT];

	if (!c)
		return om_cuda_fail(d, OM_DEVICE_MEMORY, "there is no memory for kernel %s", name);
	snprintf(c->name, sizeof c->name, "%s", name);
	snprintf(what, sizeof what, "find kernel %s", c->name);
	c->device = d;
	c->module = m;
	m->kernels++;
	const om_device_status st = om_cuda_result(d, d->cu.cuModuleGetFunction(&c->function, m->module, name), what);
	if (st == OM_DEVICE_OK)
		c->params = count_params(d, c->function);
	return st == OM_DEVICE_LOST ? OM_DEVICE_BUILD : st;
}

static void
release(om_device *d, struct om_cuda_module *m)
{
	if (--m->kernels > 0)
		return;
	if (m->module && om_cuda_enter(d) == OM_DEVICE_OK)
		d->cu.cuModuleUnload(m->module);
	free(m);
}

void
om_cuda_code_free(om_device_code *c)
{
	if (c)
		release(c->device, c->module);
	free(c);
}

/* The module has a reference of its own while kernels are found. */
static om_device_status
load_kernels(om_device *d, const char *code, const char *const *names, uint32_t n, om_device_code **out)
{
	struct om_cuda_module *m = calloc(1, sizeof *m);

	if (!m)
		return om_cuda_fail(d, OM_DEVICE_MEMORY, "there is no memory for a kernel");
	m->kernels = 1;
	om_device_status st = om_cuda_enter(d);
	if (st == OM_DEVICE_OK)
		st = om_cuda_result(d, d->cu.cuModuleLoadData(&m->module, code), "load a kernel");
	for (uint32_t k = 0; k < n && st == OM_DEVICE_OK; k++)
		st = kernel_of(d, m, names[k], &out[k]);
	for (uint32_t k = 0; k < n && st != OM_DEVICE_OK; k++) {
		om_cuda_code_free(out[k]);
		out[k] = NULL;
	}
	release(d, m);
	return st;
}

om_device_status
om_cuda_build(om_device *d, const char *text, const char *const *names, uint32_t n, om_device_code **out)
{
	char *all = whole_text(text);
	size_t bytes = 0;
	om_device_status st = OM_DEVICE_OK;

	memset(out, 0, n * sizeof *out);
	if (!all)
		return om_cuda_fail(d, OM_DEVICE_MEMORY, "there is no memory for the text of a kernel");
	char *code = om_cuda_cache_read(d, all, &bytes);
	const bool is_new = !code;
	if (is_new)
		st = compile(d, all, &code, &bytes);
	if (st == OM_DEVICE_OK)
		st = load_kernels(d, code, names, n, out);
	if (st == OM_DEVICE_OK && is_new)
		om_cuda_cache_write(d, all, code, bytes);
	free(code);
	free(all);
	return st;
}
