/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the driver and the compiler; what is missing is a sentence. */
#include <config.h>

#include <dlfcn.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

typedef cu_result get_function(const char *name, void **function, int version, uint64_t flags, int *found);

static const char *
why_not(void)
{
	const char *why = dlerror();

	return why ? why : "it cannot be loaded";
}

/* A function from a symbol of a library. */
static bool
find(void *library, const char *name, void *function)
{
	void *symbol = dlsym(library, name);

	memcpy(function, &symbol, sizeof symbol);
	return symbol != NULL;
}

/* A function of the driver with the signature of a version of CUDA. */
static cu_result
ask(get_function *get, const char *name, int version, void *function)
{
	void *symbol = NULL;
	int found = 0;
	const cu_result r = get(name, &symbol, version, 0, &found);

	memcpy(function, &symbol, sizeof symbol);
	return r;
}

static bool
is_missing(const void *function)
{
	void *symbol;

	memcpy(&symbol, function, sizeof symbol);
	return !symbol;
}

static om_device_status
missing(om_device *d, cu_result r, const char *name)
{
	if (r == CU_STUB_LIBRARY)
		return om_cuda_fail(d, OM_DEVICE_UNSUPPORTED,
			"the libcuda.so.1 that was found is the stub of the CUDA toolkit, not the NVIDIA driver");
	return om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "the NVIDIA driver has no function %s: error %d", name, r);
}

om_device_status
om_cuda_load_driver(om_device *d)
{
	struct om_cuda_driver *cu = &d->cu;
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	get_function *get;
	cu_result r;

	if (!library)
		return om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "there is no NVIDIA driver on this machine: %s", why_not());
	if (!find(library, "cuGetProcAddress_v2", &get))
		return om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "the NVIDIA driver is older than CUDA 12.0, which is required");
#define NEED(name, version, parameters) \
	r = ask(get, #name, version, &cu->name); \
	if (r != CU_OK || is_missing(&cu->name)) \
		return missing(d, r, #name);
#define WANT(name, version, parameters) \
	if (ask(get, #name, version, &cu->name) != CU_OK) \
		cu->name = NULL;
	OM_CUDA_DRIVER(NEED)
	OM_CUDA_DRIVER_NEWER(WANT)
	return OM_DEVICE_OK;
}

/* ---- NVRTC. ---- */

static bool
find_all(struct om_cuda_nvrtc *v)
{
	bool all = true;

#define FIND(name, result, parameters) all = find(v->library, #name, &v->name) && all;
	OM_CUDA_NVRTC(FIND)
	return all && v->nvrtcVersion(&v->major, &v->minor) == 0;
}

/* Code of a newer major version than the driver's cannot be loaded. */
static bool
load_compiler(om_device *d, const char *file)
{
	struct om_cuda_nvrtc *v = &d->nvrtc;

	v->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!v->library)
		om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "the kernels cannot be compiled, because NVRTC is missing: %s", why_not());
	else if (!find_all(v))
		om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "the kernels cannot be compiled, because %s is no NVRTC of CUDA 12 or later", file);
	else if (v->major > d->version / 1000)
		om_cuda_fail(d, OM_DEVICE_UNSUPPORTED, "the kernels cannot be compiled: the NVIDIA driver is of CUDA %d.%d, but %s of CUDA "
			"%d.%d", d->version / 1000, d->version % 1000 / 10, file, v->major, v->minor);
	else
		return true;
	if (v->library)
		dlclose(v->library);
	v->library = NULL;
	return false;
}

om_device_status
om_cuda_load_nvrtc(om_device *d)
{
	static const char *const files[] = {"/usr/local/cuda/lib64/libnvrtc.so", "libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13"};

	if (d->nvrtc.library || (*d->compiler && load_compiler(d, d->compiler)))
		return OM_DEVICE_OK;
	/* The last one is named if there is none. */
	for (size_t k = sizeof files / sizeof *files; k-- > 0 && !*d->compiler;)
		if (load_compiler(d, files[k]))
			return OM_DEVICE_OK;
	return OM_DEVICE_UNSUPPORTED;
}
