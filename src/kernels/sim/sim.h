/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the simulated device.
 *
 * It finds what a run on a real device would hide until it fails somewhere else:
 *
 *   memory   lies between pages without access, and after every command that used it it moves to an address that
 *            nobody has seen; the old range stays without access.  So an address that was kept faults, and so does
 *            one past the end.
 *   order    streams are queues.  Commands run as late as a sync requires or as early as events allow, in an order
 *            that is drawn from a seed (priorities that change now and then).
 *   races    besides, every command has a vector clock, and every memory a list of the ranges that commands use.  Two
 *            that conflict without an order between them are an error at once, whatever order is drawn.  Memory of
 *            the host that uploads read and downloads write is checked in the same way.
 *   writes   of kernels and libraries outside of the ranges that they declared are found in memories of up to 256 KiB.
 *   kernels  are those of all devices, compiled as C, with a fiber for each thread (kernels/gpu/fibers.h).
 *
 * Options: seed=N of all that is drawn; fail=N, the number of allocations that succeed; fixed, memory that does not
 * move, which is faster; unchecked, no clocks, so that tests see how often a race changes numbers.
 */
#ifndef OM_SIM_H
#define OM_SIM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/gpu/host.h"
#include "onnxmem/device.h"

enum { SIM_STREAMS = 16, SIM_ALIGN = 256, SIM_PAGE = 4096, SIM_GRAVES = 4096, SIM_ARGS = 64 };

/* A range that a command uses. */
struct access {
	uint64_t from, to;       /* bytes; `to` is exclusive */
	bool writes;
	uint32_t stream, seq;    /* of the command */
	uint32_t tag;
};

struct accesses {
	struct access *a;
	size_t n, cap;
};

/* A memory; freed, its number is used again with the next generation. */
struct memory {
	uint64_t bytes;
	uint32_t generation;
	bool is_live, is_foreign; /* foreign: memory of the caller, which does not move */
	char *at;                /* the pages where it is now */
	uint32_t skew;           /* of its first byte there: it ends where the pages end, up to alignment */
	uint32_t queued;         /* uses by commands that did not run yet */
	struct accesses accesses;
};

/* A range without access that was part of a memory once. */
struct grave {
	char *at;
	uint64_t bytes;
	uint32_t memory, skew;   /* the number, and where its first byte was */
};

typedef enum what { UPLOAD, DOWNLOAD, COPY, FILL, LAUNCH, CALL, RECORD, WAIT } what;

/* An argument list that commands of a captured run share is owned by the graph. */
struct command {
	what what;
	uint32_t tag, seq;
	om_arg *args;            /* all ranges of memory that it uses, and numbers */
	uint32_t nargs;
	char *host;              /* of an upload or download */
	uint8_t byte;            /* of a fill */
	const om_gpu_kernel *kernel;
	om_grid grid;
	om_device_function *function;
	void *user;
	om_event *event;
	struct om_stream *awaited; /* of a wait: what it was for when it was enqueued; NULL: nothing */
	uint32_t awaited_seq;
};

struct om_event {
	om_device *device;
	om_stream *stream;       /* of the last record; NULL: none */
	uint32_t seq, clock[SIM_STREAMS];
	bool is_captured;        /* the last record went into a capture: only waits there know it */
};

struct om_stream {
	om_device *device;
	uint32_t id;
	uint32_t clock[SIM_STREAMS]; /* by stream: all commands up to this one are before the next command of this */
	uint32_t done;           /* number of the last command that ran */
	uint32_t priority;
	struct command *queue;   /* [head, n) did not run yet */
	size_t head, n, cap;
	bool is_captured;        /* its commands go into the graph that is being captured */
};

struct om_device_code {
	const om_gpu_kernel *kernel;
};

struct om_device {
	const om_gpu_kernel *kernels;
	om_fibers *fibers;
	struct memory *memory;
	uint32_t nmemory;
	om_stream *stream[SIM_STREAMS];   /* NULL: not in use */
	uint32_t seq[SIM_STREAMS];        /* number of the last command of each */
	uint32_t host[SIM_STREAMS];       /* all commands up to this one are known to be done */
	struct accesses host_accesses;    /* addresses of the host */
	struct grave grave[SIM_GRAVES];
	uint32_t ngrave;
	uint64_t rng;
	bool is_fixed, is_unchecked;
	int64_t allocations;     /* that succeed; -1: all */
	om_device_graph *capture; /* NULL: commands run */
	uint32_t running;        /* the tag of the command that runs */
	bool is_running;
	sigjmp_buf fault;        /* where a fault of the running command goes */
	om_device_status late;   /* a failure that the next sync reports */
	char error[512];
};

/* Set the sentence and return the status. */
om_device_status om_sim_fail(om_device *d, om_device_status st, const char *fmt, ...) OM_PRINTF(3, 4);

/* ---- sim_memory.c ---- */

/* The memory of a handle; NULL if it is not valid. */
struct memory *om_sim_memory(om_device *d, om_mem m);
om_device_status om_sim_alloc(om_device *d, om_mem_kind kind, uint64_t bytes, om_mem *out);
/* Memory of the host stands for memory of the device that is of others. */
om_device_status om_sim_bind(om_device *d, void *foreign, uint64_t bytes, void *native_stream, om_mem *out);
void om_sim_free(om_device *d, om_mem m);
void om_sim_free_all(om_device *d);
/* Move a memory. */
om_device_status om_sim_move(om_device *d, struct memory *m);
/* What an address was, as a sentence about the running command. */
void om_sim_explain(om_device *d, const char *address);

/* ---- sim_clocks.c ---- */

/* Enter the ranges that a command of `s` uses; OM_DEVICE_RACE if another command uses them in no order with it. */
om_device_status om_sim_enter(om_stream *s, const struct command *c);
void om_sim_join(uint32_t *clock, const uint32_t *other);

/* ---- sim_run.c ---- */

/* Run one command.  A fault is a failure with a sentence. */
om_device_status om_sim_run(om_device *d, struct command *c);

/* ---- sim_streams.c: the functions of om_device_ops. ---- */

/* Check and enqueue a command, or add it to a capture; its arguments are copied. */
om_device_status om_sim_put(om_stream *s, struct command c);
om_device_status om_sim_upload(om_stream *s, om_mem to, uint64_t at, const void *from, uint64_t bytes, uint32_t tag);
om_device_status om_sim_download(om_stream *s, void *to, om_mem from, uint64_t at, uint64_t bytes, uint32_t tag);
om_device_status om_sim_copy(om_stream *s, om_mem to, uint64_t to_at, om_mem from, uint64_t from_at, uint64_t bytes, uint32_t tag);
om_device_status om_sim_fill(om_stream *s, om_mem to, uint64_t at, uint64_t bytes, uint8_t byte, uint32_t tag);
om_device_status om_sim_launch(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args, uint32_t nargs, uint32_t tag);
om_device_status om_sim_call(om_stream *s, om_device_function *f, void *user, const om_arg *args, uint32_t nargs, uint32_t tag);
om_device_status om_sim_stream_create(om_device *d, om_stream **out);
void om_sim_stream_free(om_stream *s);
om_device_status om_sim_event_create(om_device *d, om_event **out);
void om_sim_event_free(om_event *e);
om_device_status om_sim_record(om_stream *s, om_event *e);
om_device_status om_sim_wait(om_stream *s, om_event *e);
om_device_status om_sim_sync(om_stream *s);

/* ---- sim_graph.c ---- */

/* Does a command of this stream go into a capture? */
bool om_sim_takes_part(om_stream *s, const struct command *c);
om_device_status om_sim_capture(om_stream *s, const struct command *c);
om_device_status om_sim_capture_begin(om_stream *s);
om_device_status om_sim_capture_end(om_stream *s, om_device_graph **out);
om_device_status om_sim_replay(om_stream *s, om_device_graph *g);
void om_sim_graph_free(om_device_graph *g);

/* ---- sim.c ---- */

/* As om_device_ops.open, with kernels; `options` may be NULL. */
om_device_status om_sim_open(om_device **out, const char *options, const om_gpu_kernel *kernels);

/* The functions of the module, for tests that are linked with it. */
const om_device_ops *om_sim_ops(void);

#endif
