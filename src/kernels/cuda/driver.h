/* SPDX-License-Identifier: Apache-2.0 */
/* What the module uses of the CUDA driver and of NVRTC, declared here: the module is built without the toolkit, and links
 * with neither library.
 *
 * A function of the driver is asked for by its name and the version of CUDA that has this signature, so that drivers of
 * all versions from 12.0 on give the same one.  Names are those of NVIDIA's documents. */
#ifndef OM_CUDA_DRIVER_H
#define OM_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_result;
typedef int cu_device;
typedef uint64_t cu_address;
typedef struct cu_context_s *cu_context;
typedef struct cu_stream_s *cu_stream;
typedef struct cu_event_s *cu_event;
typedef struct cu_module_s *cu_module;
typedef struct cu_function_s *cu_function;
typedef struct cu_graph_s *cu_graph;
typedef struct cu_graph_exec_s *cu_graph_exec;

/* Results that the module tells apart. */
enum {
	CU_OK = 0, CU_INVALID_VALUE = 1, CU_OUT_OF_MEMORY = 2, CU_STUB_LIBRARY = 34, CU_NO_DEVICE = 100, CU_INVALID_DEVICE = 101,
	CU_NO_BINARY_FOR_GPU = 209, CU_INVALID_PTX = 218, CU_UNSUPPORTED_PTX_VERSION = 222, CU_SYSTEM_DRIVER_MISMATCH = 803,
	CU_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
};

/* Attributes of devices and of addresses, and flags. */
enum {
	CU_ATTRIBUTE_UNITS = 16, CU_ATTRIBUTE_MAJOR = 75, CU_ATTRIBUTE_MINOR = 76, CU_ATTRIBUTE_THREADS = 1, CU_ATTRIBUTE_SHARED = 8,
	CU_POINTER_MEMORY_TYPE = 2, CU_POINTER_ORDINAL = 9, CU_POINTER_RANGE_START = 11, CU_POINTER_RANGE_SIZE = 12, CU_MEMORY_OF_DEVICE = 2,
	CU_STREAM_NON_BLOCKING = 1, CU_CAPTURE_THREAD_LOCAL = 1,
};

/* Name, the version of CUDA in thousands that the signature is of, parameters. */
#define OM_CUDA_DRIVER(X) \
	X(cuInit, 2000, (unsigned flags)) \
	X(cuDriverGetVersion, 2020, (int *version)) \
	X(cuGetErrorName, 6000, (cu_result r, const char **text)) \
	X(cuGetErrorString, 6000, (cu_result r, const char **text)) \
	X(cuDeviceGetCount, 2000, (int *n)) \
	X(cuDeviceGet, 2000, (cu_device *d, int ordinal)) \
	X(cuDeviceGetName, 2000, (char *name, int size, cu_device d)) \
	X(cuDeviceGetAttribute, 2000, (int *value, int attribute, cu_device d)) \
	X(cuDevicePrimaryCtxRetain, 7000, (cu_context *c, cu_device d)) \
	X(cuDevicePrimaryCtxRelease, 11000, (cu_device d)) \
	X(cuCtxSetCurrent, 4000, (cu_context c)) \
	X(cuMemGetInfo, 3020, (size_t *free, size_t *total)) \
	X(cuMemAlloc, 3020, (cu_address *at, size_t bytes)) \
	X(cuMemFree, 3020, (cu_address at)) \
	X(cuPointerGetAttribute, 4000, (void *value, int attribute, cu_address at)) \
	X(cuMemcpyHtoDAsync, 3020, (cu_address to, const void *from, size_t bytes, cu_stream s)) \
	X(cuMemcpyDtoHAsync, 3020, (void *to, cu_address from, size_t bytes, cu_stream s)) \
	X(cuMemcpyDtoDAsync, 3020, (cu_address to, cu_address from, size_t bytes, cu_stream s)) \
	X(cuMemsetD8Async, 3020, (cu_address to, unsigned char byte, size_t bytes, cu_stream s)) \
	X(cuStreamCreate, 2000, (cu_stream *s, unsigned flags)) \
	X(cuStreamDestroy, 4000, (cu_stream s)) \
	X(cuStreamSynchronize, 2000, (cu_stream s)) \
	X(cuStreamWaitEvent, 3020, (cu_stream s, cu_event e, unsigned flags)) \
	X(cuEventCreate, 2000, (cu_event *e, unsigned flags)) \
	X(cuEventDestroy, 4000, (cu_event e)) \
	X(cuEventRecord, 2000, (cu_event e, cu_stream s)) \
	X(cuEventElapsedTime, 2000, (float *ms, cu_event from, cu_event to)) \
	X(cuModuleLoadData, 2000, (cu_module *m, const void *image)) \
	X(cuModuleUnload, 2000, (cu_module m)) \
	X(cuModuleGetFunction, 2000, (cu_function *f, cu_module m, const char *name)) \
	X(cuLaunchKernel, 4000, (cu_function f, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz, \
		unsigned shared, cu_stream s, void **parameters, void **extra)) \
	X(cuStreamBeginCapture, 10010, (cu_stream s, int mode)) \
	X(cuStreamEndCapture, 10000, (cu_stream s, cu_graph *g)) \
	X(cuGraphInstantiateWithFlags, 11040, (cu_graph_exec *x, cu_graph g, unsigned long long flags)) \
	X(cuGraphLaunch, 10000, (cu_graph_exec x, cu_stream s)) \
	X(cuGraphExecDestroy, 10000, (cu_graph_exec x)) \
	X(cuGraphDestroy, 10000, (cu_graph g))

/* Those that drivers of 12.0 need not have; NULL there. */
#define OM_CUDA_DRIVER_NEWER(X) \
	X(cuFuncGetParamInfo, 12040, (cu_function f, size_t index, size_t *offset, size_t *bytes))

typedef struct nvrtc_program_s *nvrtc_program;

#define OM_CUDA_NVRTC(X) \
	X(nvrtcVersion, int, (int *major, int *minor)) \
	X(nvrtcGetErrorString, const char *, (int r)) \
	X(nvrtcCreateProgram, int, (nvrtc_program *p, const char *text, const char *name, int n, const char *const *headers, \
		const char *const *names)) \
	X(nvrtcCompileProgram, int, (nvrtc_program p, int n, const char *const *options)) \
	X(nvrtcGetProgramLogSize, int, (nvrtc_program p, size_t *bytes)) \
	X(nvrtcGetProgramLog, int, (nvrtc_program p, char *log)) \
	X(nvrtcGetCUBINSize, int, (nvrtc_program p, size_t *bytes)) \
	X(nvrtcGetCUBIN, int, (nvrtc_program p, char *to)) \
	X(nvrtcDestroyProgram, int, (nvrtc_program *p))

#define OM_CUDA_FUNCTION(name, version, parameters) cu_result (*name) parameters;
#define OM_CUDA_NVRTC_FUNCTION(name, result, parameters) result (*name) parameters;

/* The functions of the driver. */
struct om_cuda_driver {
	OM_CUDA_DRIVER(OM_CUDA_FUNCTION)
	OM_CUDA_DRIVER_NEWER(OM_CUDA_FUNCTION)
};

/* The functions of NVRTC. */
struct om_cuda_nvrtc {
	void *library;           /* NULL: not loaded */
	int major, minor;        /* version */
	OM_CUDA_NVRTC(OM_CUDA_NVRTC_FUNCTION)
};

#endif
