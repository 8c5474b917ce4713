/* SPDX-License-Identifier: Apache-2.0 */
/* The device of CUDA: shared by its sources.
 *
 * The driver and NVRTC are loaded when a device is opened, so that the module itself loads on every machine and says in a
 * sentence what is missing.  The context is the primary one of the device, which other libraries of the process use, too;
 * it is made current for each call, since any thread may make it.
 *
 * Options: device=N; nvrtc=FILE, the compiler; debug, which waits after every command, so that a failure names it, and captures
 * none. */
#ifndef OM_CUDA_H
#define OM_CUDA_H

#include <stdbool.h>

#include "kernels/cuda/driver.h"
#include "onnxmem/device.h"

enum {
	OM_CUDA_TEXT = 256, OM_CUDA_ERROR = 4096, OM_CUDA_PATH = 4096, OM_CUDA_STREAMS = 16, OM_CUDA_ARGS = 64, OM_CUDA_ALIGN = 256,
	OM_CUDA_OLDEST_DRIVER = 12000, OM_CUDA_OLDEST_DEVICE = 75,
};

struct om_cuda_memory {
	cu_address at;
	uint64_t bytes;
	uint32_t generation;     /* of the last use of the slot */
	bool is_live, is_foreign;
};

struct om_device {
	struct om_cuda_driver cu;
	struct om_cuda_nvrtc nvrtc;
	cu_device id;
	cu_context context;      /* NULL: not retained */
	int version;             /* of the driver: 12040 is 12.4 */
	int architecture;        /* 90 is sm_90 */
	struct om_cuda_memory *memory;
	uint32_t nmemory;
	unsigned long ordinal;
	bool is_debug, is_capturing;
	char compiler[OM_CUDA_PATH];   /* a file; "": where the system finds it */
	char cache[OM_CUDA_PATH];      /* a folder of compiled kernels; "": none */
	char name[OM_CUDA_TEXT], arch[16], error[OM_CUDA_ERROR];
};

struct om_stream {
	om_device *device;
	cu_stream stream;
	uint32_t tag;            /* of the last command, for messages of sync() */
};

struct om_event {
	om_device *device;
	cu_event event;
	bool is_recorded;
};

/* Loaded code, which its kernels share. */
struct om_cuda_module {
	cu_module module;
	uint32_t kernels;        /* that refer to it */
};

struct om_device_code {
	om_device *device;
	struct om_cuda_module *module;
	cu_function function;
	uint32_t params;         /* UINT32_MAX: the driver does not tell */
	char name[OM_CUDA_TEXT];
};

struct om_device_graph {
	om_device *device;
	cu_graph_exec exec;
	uint32_t tag;            /* of its last command in the stream that began */
};

/* Set the message of a failure; returns `st`. */
om_device_status om_cuda_fail(om_device *d, om_device_status st, const char *fmt, ...) OM_PRINTF(3, 4);

/* The status of a call of the driver while doing `what`, with the words of the driver. */
om_device_status om_cuda_result(om_device *d, cu_result r, const char *what);

/* Make the context current in this thread. */
om_device_status om_cuda_enter(om_device *d);

/* ---- cuda_load.c ---- */

/* Find the functions of the driver. */
om_device_status om_cuda_load_driver(om_device *d);
/* Find the compiler; more than once is fine. */
om_device_status om_cuda_load_nvrtc(om_device *d);

/* ---- cuda_cache.c ---- */

/* Code that was compiled from this text for this device, from the cache, or NULL; for free(). */
char *om_cuda_cache_read(const om_device *d, const char *text, size_t *bytes);
/* Keep it.  Where that is not possible, nothing is kept. */
void om_cuda_cache_write(const om_device *d, const char *text, const char *code, size_t bytes);

/* ---- Functions of the device; see onnxmem/device.h. ---- */

om_device_status om_cuda_alloc(om_device *d, om_mem_kind kind, uint64_t bytes, om_mem *out);
void om_cuda_free(om_device *d, om_mem m);
void om_cuda_free_all(om_device *d);
om_device_status om_cuda_bind(om_device *d, void *foreign, uint64_t bytes, void *native_stream, om_mem *out);
om_device_status om_cuda_upload(om_stream *s, om_mem to, uint64_t at, const void *from, uint64_t bytes, uint32_t tag);
om_device_status om_cuda_download(om_stream *s, void *to, om_mem from, uint64_t at, uint64_t bytes, uint32_t tag);
om_device_status om_cuda_copy(om_stream *s, om_mem to, uint64_t to_at, om_mem from, uint64_t from_at, uint64_t bytes,
	uint32_t tag);
om_device_status om_cuda_fill(om_stream *s, om_mem to, uint64_t at, uint64_t bytes, uint8_t byte, uint32_t tag);
om_device_status om_cuda_launch(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args, uint32_t nargs,
	uint32_t tag);
om_device_status om_cuda_call(om_stream *s, om_device_function *f, void *user, const om_arg *args, uint32_t nargs,
	uint32_t tag);
om_device_status om_cuda_stream_create(om_device *d, om_stream **out);
void om_cuda_stream_free(om_stream *s);
om_device_status om_cuda_event_create(om_device *d, om_event **out);
void om_cuda_event_free(om_event *e);
om_device_status om_cuda_record(om_stream *s, om_event *e);
om_device_status om_cuda_wait(om_stream *s, om_event *e);
om_device_status om_cuda_sync(om_stream *s);
double om_cuda_elapsed(om_event *from, om_event *to);
om_device_status om_cuda_build(om_device *d, const char *text, const char *const *names, uint32_t n, om_device_code **out);
void om_cuda_code_free(om_device_code *c);
om_device_status om_cuda_capture_begin(om_stream *s);
om_device_status om_cuda_capture_end(om_stream *s, om_device_graph **out);
om_device_status om_cuda_replay(om_stream *s, om_device_graph *g);
void om_cuda_graph_free(om_device_graph *g);
void om_cuda_keep(om_device *d, const char *folder);

/* Bytes [at, at + bytes) of a memory; false, with a message, if there are none. */
bool om_cuda_range(om_device *d, om_mem m, uint64_t at, uint64_t bytes, uint32_t tag, cu_address *out);

#endif
