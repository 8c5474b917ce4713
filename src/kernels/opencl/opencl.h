/* SPDX-License-Identifier: Apache-2.0 */
/* The device of OpenCL 1.2: shared by its sources.  A stream is a queue in order, an event a marker, memory a buffer; what
 * a kernel gets of it is the buffer and an offset. */
#ifndef OM_OPENCL_H
#define OM_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "onnxmem/device.h"

enum { OM_OPENCL_TEXT = 256, OM_OPENCL_ERROR = 4096, OM_OPENCL_STREAMS = 16 };

struct om_opencl_buffer {
	cl_mem mem;              /* NULL: the slot is free */
	uint64_t bytes;
	uint32_t generation;     /* of the last use of the slot */
};

struct om_device {
	cl_device_id id;
	cl_context context;
	struct om_opencl_buffer *buffer;
	uint32_t nbuffer;
	char name[OM_OPENCL_TEXT], version[OM_OPENCL_TEXT], error[OM_OPENCL_ERROR];
};

struct om_stream {
	om_device *device;
	cl_command_queue queue;
	uint32_t tag;            /* of the last command, for messages of sync() */
};

struct om_event {
	cl_event marker;         /* NULL: not recorded */
};

struct om_device_code {
	om_device *device;
	cl_kernel kernel;
	cl_uint params;
	char name[OM_OPENCL_TEXT];
};

/* Set the message of a failure; returns `st`. */
om_device_status om_opencl_fail(om_device *d, om_device_status st, const char *fmt, ...) OM_PRINTF(3, 4);

/* The failure of a call of OpenCL, while doing `what`. */
om_device_status om_opencl_failed(om_device *d, cl_int code, const char *what);

/* Bytes [at, at + bytes) of a memory; NULL, with a message, if there are none. */
cl_mem om_opencl_range(om_device *d, om_mem m, uint64_t at, uint64_t bytes, uint32_t tag);

/* Functions of the device; see onnxmem/device.h. */
om_device_status om_opencl_alloc(om_device *d, om_mem_kind kind, uint64_t bytes, om_mem *out);
void om_opencl_free(om_device *d, om_mem m);
om_device_status om_opencl_upload(om_stream *s, om_mem to, uint64_t at, const void *from, uint64_t bytes, uint32_t tag);
om_device_status om_opencl_download(om_stream *s, void *to, om_mem from, uint64_t at, uint64_t bytes, uint32_t tag);
om_device_status om_opencl_copy(om_stream *s, om_mem to, uint64_t to_at, om_mem from, uint64_t from_at, uint64_t bytes,
	uint32_t tag);
om_device_status om_opencl_fill(om_stream *s, om_mem to, uint64_t at, uint64_t bytes, uint8_t byte, uint32_t tag);
om_device_status om_opencl_launch(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args, uint32_t nargs,
	uint32_t tag);
om_device_status om_opencl_call(om_stream *s, om_device_function *f, void *user, const om_arg *args, uint32_t nargs,
	uint32_t tag);
om_device_status om_opencl_stream_create(om_device *d, om_stream **out);
void om_opencl_stream_free(om_stream *s);
om_device_status om_opencl_event_create(om_device *d, om_event **out);
void om_opencl_event_free(om_event *e);
om_device_status om_opencl_record(om_stream *s, om_event *e);
om_device_status om_opencl_wait(om_stream *s, om_event *e);
om_device_status om_opencl_sync(om_stream *s);
om_device_status om_opencl_build(om_device *d, const char *text, const char *const *names, uint32_t n, om_device_code **out);
void om_opencl_code_free(om_device_code *c);

#endif
