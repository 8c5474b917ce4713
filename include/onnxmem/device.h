/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: what a module that runs programs on an accelerator implements.
 *
 * A module is a shared object `onnxmem-NAME.so` in the folder of modules of the library.  Its one symbol is
 * om_device_module().  Nothing here names CUDA, OpenCL or the kernels of a processor, and neither the library nor the
 * command depends on a driver: who asks for no device loads no module.
 *
 * Memory is a handle and a byte offset, never an address: OpenCL has no addresses, the simulated device moves its
 * memory after every command, and a captured run may be replayed after the memory moved.
 *
 * Every command is put into a stream, and it may run later.  Commands of one stream run in order; those of different
 * streams in any order that events allow.  The host leaves memory that it hands to a command alone until it has
 * synchronized with that stream.  A failure is a status, and error() is a sentence about it; errors of commands that
 * ran later come out of the next sync(), with the tag of the command, which the caller chose.
 *
 * One host thread at a time uses a device and what was made of it.
 */
#ifndef OM_DEVICE_H
#define OM_DEVICE_H

#include <stdint.h>

#include "onnxmem/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of these structs; a module of another number is refused. */
#define OM_DEVICE_ABI 2

/* An open device; a stream of its commands; a point in a stream. */
typedef struct om_device om_device;
/* See om_device. */
typedef struct om_stream om_stream;
/* See om_device. */
typedef struct om_event om_event;
typedef struct om_device_code om_device_code;    /* a built kernel */
typedef struct om_device_graph om_device_graph;  /* captured commands */

/* Memory of a device: an index in the low 32 bits, a generation, from 1, above it.  A handle that was freed is never
 * valid again; 0 is no memory. */
typedef uint64_t om_mem;

/* The result of a function of a device. */
typedef enum om_device_status {
	OM_DEVICE_OK,            /* no failure */
	OM_DEVICE_MEMORY,        /* the device has not enough */
	OM_DEVICE_ARGUMENT,      /* a handle, range, grid or argument is wrong */
	OM_DEVICE_UNSUPPORTED,   /* no driver, no device, or it cannot do this */
	OM_DEVICE_BUILD,         /* the text of a kernel was not compiled */
	OM_DEVICE_LOST,          /* a command failed when it ran, and the device cannot go on */
	OM_DEVICE_RACE,          /* no event orders two commands that use the same bytes; from devices that look */
} om_device_status;

/* What memory is for, which may decide where it is. */
typedef enum om_mem_kind {
	OM_MEM_ARENA,            /* of a plan */
	OM_MEM_WEIGHTS,          /* written once */
	OM_MEM_FOREIGN,          /* of the caller: from bind(), never from alloc() */
} om_mem_kind;

/* What a command does with an argument. */
typedef enum om_arg_kind {
	OM_ARG_IN = 1,           /* bytes that it reads */
	OM_ARG_OUT = 2,          /* bytes that it writes */
	OM_ARG_INOUT = 3,        /* both */
	OM_ARG_VALUE = 4,        /* a number */
} om_arg_kind;

/* The type of a number in a list of arguments. */
typedef enum om_arg_type { OM_ARG_I32, OM_ARG_I64, OM_ARG_F32 } om_arg_type;

/* A number in a list of arguments. */
typedef union om_arg_value {
	int64_t i;               /* of OM_ARG_I32 too */
	float f;                 /* of OM_ARG_F32 */
} om_arg_value;

/* An argument of a kernel.  One in memory reaches the kernel as two parameters: the start of the memory and the offset. */
typedef struct om_arg {
	om_arg_kind kind;        /* what the command does with it */
	om_arg_type type;        /* of a number */
	om_mem mem;              /* 0, with no bytes: an argument that is left out, which the kernel does not touch */
	uint64_t at, bytes;      /* the range that the command uses; it uses no other byte of the memory */
	om_arg_value value;      /* of a number */
} om_arg;

/* How many threads run a kernel. */
typedef struct om_grid {
	uint32_t blocks[3];      /* at least 1 each; the second and third at most 65,535 */
	uint32_t threads;        /* of a block, at most om_device_info.threads */
	uint32_t shared;         /* bytes of dynamic shared memory of a block */
} om_grid;

/* A device. */
typedef struct om_device_info {
	const char *name;        /* of the product; static, as the next */
	const char *architecture; /* what kernels are compiled for, as "sm_90" */
	uint64_t bytes, free_bytes; /* of memory; 0: not known */
	uint32_t align;          /* of every placement in its memory: a power of two */
	uint32_t units;          /* multiprocessors */
	uint32_t threads;        /* of a block at most */
	uint32_t shared;         /* bytes of shared memory of a block at most */
	uint32_t streams;        /* that may exist at once */
	uint64_t types;          /* element types that kernels compute with, OM_TYPES(...) of onnxmem/opdef.h */
	bool captures;           /* capture_begin() and so on are implemented */
} om_device_info;

/* What a call of a library gets, while it is enqueued or, on devices that run it later, when it runs. */
typedef struct om_device_call {
	om_device *device;       /* that enqueues or runs it */
	const om_arg *args;      /* as they were given to call() */
	uint32_t nargs;          /* how many */
	void *native_stream;     /* a CUstream or cl_command_queue: the call puts its work there */
	/* The address of byte `at` of a memory of the arguments.  It is valid until the call returns. */
	void *(*pointer)(om_device *d, om_mem m, uint64_t at);
	void *user;              /* as it was given to call() */
} om_device_call;

/* A call of a library. */
typedef om_device_status om_device_function(om_device_call *c);

/* The functions of a module.  Those that are optional may be NULL. */
typedef struct om_device_ops {
	uint32_t abi;            /* OM_DEVICE_ABI */
	uint32_t size;           /* of this struct */
	const char *name;        /* as in `--device NAME` */

	/* Open a device.  `options` are words NAME=VALUE with commas between them, which the module defines; NULL: none.
	 * On failure `*out` is NULL or a device on which only error() and close() may be called. */
	om_device_status (*open)(om_device **out, const char *options);
	/* Everything made of it must be freed before; NULL is fine. */
	void (*close)(om_device *d);
	/* The last failure, as a sentence without a period; of NULL: why none could be opened. */
	const char *(*error)(om_device *d);
	/* What the device is. */
	void (*info)(om_device *d, om_device_info *to);

	/* Memory with undefined contents. */
	om_device_status (*alloc)(om_device *d, om_mem_kind kind, uint64_t bytes, om_mem *out);
	/* No command in flight may use it: the caller has synchronized.  0 is fine. */
	void (*free)(om_device *d, om_mem m);
	/* Optional: memory of the caller that is on the device already.  `native_stream` is the stream that its contents
	 * come from; NULL: they are there. */
	om_device_status (*bind)(om_device *d, void *foreign, uint64_t bytes, void *native_stream, om_mem *out);

	/* Copy from memory of the host.  `tag`, here and below, is the caller's number of the command, for messages. */
	om_device_status (*upload)(om_stream *s, om_mem to, uint64_t at, const void *from, uint64_t bytes, uint32_t tag);
	/* Copy to memory of the host. */
	om_device_status (*download)(om_stream *s, void *to, om_mem from, uint64_t at, uint64_t bytes, uint32_t tag);
	/* Copy on the device.  Ranges of one memory do not overlap. */
	om_device_status (*copy)(om_stream *s, om_mem to, uint64_t to_at, om_mem from, uint64_t from_at, uint64_t bytes,
		uint32_t tag);
	/* Set all bytes of a range. */
	om_device_status (*fill)(om_stream *s, om_mem to, uint64_t at, uint64_t bytes, uint8_t byte, uint32_t tag);
	/* Run a kernel. */
	om_device_status (*launch)(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args,
		uint32_t nargs, uint32_t tag);
	/* Call a library that works on the device.  `args` declare all ranges that it uses, workspaces too. */
	om_device_status (*call)(om_stream *s, om_device_function *f, void *user, const om_arg *args, uint32_t nargs,
		uint32_t tag);

	/* A new stream without commands. */
	om_device_status (*stream_create)(om_device *d, om_stream **out);
	/* Its commands are done: the caller has synchronized.  NULL is fine. */
	void (*stream_free)(om_stream *s);
	/* A new event, which was not recorded. */
	om_device_status (*event_create)(om_device *d, om_event **out);
	/* NULL is fine. */
	void (*event_free)(om_event *e);
	/* The event is the point after all commands that the stream has now. */
	om_device_status (*record)(om_stream *s, om_event *e);
	/* Commands that follow in the stream run after those before the last record() of the event; one that was never
	 * recorded holds back nothing. */
	om_device_status (*wait)(om_stream *s, om_event *e);
	/* Return when all commands of the stream are done. */
	om_device_status (*sync)(om_stream *s);
	/* Optional: seconds from one event to another; negative: not known. */
	double (*elapsed)(om_event *from, om_event *to);

	/* Compile a text in the kernel language (src/kernels/gpu), without the header of the dialect, which the module
	 * puts before it; `out` gets the kernels called `names`.  The text and names may be freed afterwards. */
	om_device_status (*build)(om_device *d, const char *text, const char *const *names, uint32_t n,
		om_device_code **out);
	/* Free one of them; NULL is fine. */
	void (*code_free)(om_device_code *c);

	/* Optional, as those that follow: commands from here on go into a graph instead of running; other streams take part
	 * through events. */
	om_device_status (*capture_begin)(om_stream *s);
	/* The end, before which the other streams are joined again. */
	om_device_status (*capture_end)(om_stream *s, om_device_graph **out);
	/* Enqueue all commands of a graph. */
	om_device_status (*replay)(om_stream *s, om_device_graph *g);
	/* NULL is fine. */
	void (*graph_free)(om_device_graph *g);

	/* Optional: keep what build() compiles in files of this folder, which is made if its parent exists, and take it from
	 * there.  To be called after open().  A folder that cannot be used is no error. */
	void (*keep)(om_device *d, const char *folder);
} om_device_ops;

/* The one symbol of a module; the result is static. */
OM_API const om_device_ops *om_device_module(void);

#ifdef __cplusplus
}
#endif

#endif
