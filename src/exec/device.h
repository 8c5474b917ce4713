/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on a device: its memory, its kernels, and the order of its commands. */
#ifndef OM_EXEC_DEVICE_H
#define OM_EXEC_DEVICE_H

#include "onnxmem/device.h"
#include "exec/exec_internal.h"
#include "opdef/device_kernel.h"
#include "verify/verify_streams.h"

/* Where a value or scratch is on the device. */
struct device_place {
	om_mem mem;              /* 0: nowhere */
	uint64_t at, bytes;
};

/* What an argument in memory is: bytes from `at` on of a value. */
struct device_operand {
	const om_value *value;   /* NULL: scratch, or no memory */
	uint64_t at;
};

/* A launch with its arguments bound. */
struct device_launch {
	om_device_code *code;
	om_grid grid;
	om_arg *args;
	struct device_operand *operand; /* by argument */
	uint32_t nargs;
};

/* What an op does on the device. */
struct device_op {
	struct device_launch *launch;
	uint32_t nlaunch;
	om_event *done;          /* recorded after it; NULL: no stream waits for it */
	struct device_state *state; /* that it copies; NULL: it copies another value, or is no copy */
	struct device_binding *binding; /* of its copy to memory of the caller on the device; NULL: never bound */
	struct device_stretch *stretch; /* that it is captured in; NULL: in none */
};

/* A state that stays on the device. */
struct device_state {
	const om_value *param;
	const om_op *in, *out;   /* the copies to and from the device */
	bool is_there;           /* its elements are those on the device */
};

/* A compiled kernel. */
struct device_code {
	const char *unit, *prologue, *entry;
	om_device_code *code;
};

struct device_run {
	om_exec *exec;
	const om_device_ops *ops;
	om_device *device;
	om_device_info info;
	const char *name;
	om_streams streams;
	om_stream *stream[OM_MOST_STREAMS];
	om_mem *arena;           /* by arena of the plan; 0: of the processor */
	om_mem weights;
	om_mem *own;             /* by value id: memory outside of the plan */
	om_mem scratch;          /* for ops whose scratch is not planned */
	struct device_place *place; /* by value id */
	struct device_place *planned; /* the same, where nothing is bound to memory of the caller */
	struct device_op *op;    /* by op id */
	struct device_code *code;
	size_t ncode, capcode;
	struct device_state *state;
	uint32_t nstate;
	om_event *joint[OM_MOST_STREAMS]; /* after what a stream has, where streams are joined for a stretch */
	bool is_moved;           /* the caller has bound other memory since a run: what moves in each run is not captured */
	bool is_rebound;         /* bindings are to be checked before a run */
	struct device_binding *bindings; /* all that were made, the last one first */
	const struct om_alias_root *whole; /* as om_exec_device_whole() found it; NULL: not yet */
	const struct device_stretch *capturing; /* whose commands are captured now; NULL: commands run */
	uint64_t commands;       /* launches and copies on the device that were given to it, captured ones once */
};

/* Is the program, in part, for a device?  Then open it: before memory is taken.  OM_UNSUPPORTED if it cannot be opened. */
om_status om_exec_device_open(om_exec *e);
/* Memory for arena `k`, of `bytes` and guards. */
om_status om_exec_device_arena(om_exec *e, uint32_t k, uint64_t bytes);
/* After constants are computed and steps are made: place values, upload constants, build kernels, bind arguments, and find
 * and check the order of streams. */
om_status om_exec_device_prepare(om_exec *e);
void om_exec_device_free(om_exec *e);

/* Before an op of any kind: wait for what it needs.  After an op with bodies. */
om_status om_exec_device_before(om_exec *e, const om_op *op);
om_status om_exec_device_after(om_exec *e, const om_op *op);
/* The step of an op on the device. */
om_status om_exec_device_step(struct step *s);
/* Enqueue the copy that a step is, in this stream, if its state is not there already. */
om_status om_exec_device_copy(struct device_run *d, const struct step *s, om_stream *stream);
/* Record the event that other streams wait for after the op. */
om_status om_exec_device_record(struct device_run *d, const om_op *op);
/* Wait for a stream, from 1; `op` NULL: at the end of a run. */
om_status om_exec_device_sync(struct device_run *d, uint32_t stream, const om_op *op);
/* After a failure, which the message is about: nothing uses the memory of the caller any more. */
void om_exec_device_stop(om_exec *e);
/* Wait for all; at the end of a run. */
om_status om_exec_device_finish(om_exec *e);

/* Poison: a pattern in bytes of an arena of the device. */
om_status om_exec_device_fill(om_exec *e, uint32_t arena, uint64_t from, uint64_t to);
om_status om_exec_device_check(om_exec *e, const om_op *op);

/* A failure of the device, in the words of the device; `op` NULL: of none. */
om_status om_exec_device_fail(struct device_run *d, om_device_status st, const om_op *op, const char *what);

/* Memory of the device outside of the plan; `what` it is for. */
om_status om_exec_device_memory(struct device_run *d, uint64_t bytes, const char *what, om_mem *out);

/* ---- device_states.c ---- */

/* After values are placed: give the states that stay on the device their memory. */
om_status om_exec_device_states(om_exec *e);
/* The caller has given elements for a parameter. */
void om_exec_device_given(om_exec *e, const om_value *param);

/* ---- device_bind.c ---- */

/* By value id: the value that it is a part of, as a view or in a part of its memory, and where. */
const struct om_alias_root *om_exec_device_whole(struct device_run *d);
/* The elements of a parameter or result are those of the host again. */
void om_exec_device_unbind(om_exec *e, const om_value *v);
/* The tensor on the device that a result is bound to; NULL: it is on the host. */
const om_tensor *om_exec_device_result(const om_exec *e, const om_value *result);
/* Does a copy from or to the host have memory of the caller on the device? */
bool om_exec_device_has(const struct device_run *d, const om_op *op);
/* Before a run: outputs are written, so no other bound memory has bytes of them. */
om_status om_exec_device_check_bindings(om_exec *e);
/* Is the parameter bound to memory of the device? */
bool om_exec_device_holds(const om_exec *e, const om_value *param);
/* What it does instead: copy on the device, or nothing. */
om_device_status om_exec_device_move(struct device_run *d, const om_op *op, om_stream *stream);
void om_exec_device_bindings_free(struct device_run *d);

/* ---- device_capture.c ---- */

/* After streams were chosen: find what is captured. */
om_status om_exec_device_stretches(om_exec *e);
void om_exec_device_stretches_free(struct device_run *d);
/* After a failure: a capture that began ends, and its commands are dropped. */
void om_exec_device_abandon(struct device_run *d);
/* Arguments have changed: nothing is captured any more. */
void om_exec_device_forget(struct device_run *d);
/* Enqueue the stretch that begins with a step, which the first call captures; `*n` is the number of its steps, 0 where the steps have
 * to be run. */
om_status om_exec_device_replay(om_exec *e, const struct step *step, uint32_t *n);
/* Has an op of a stream to wait for the event of op `id`, or are they in an order already? */
bool om_exec_device_waits(const struct device_run *d, uint32_t id);

/* ---- device_streams.c ---- */

/* Choose the streams of all ops and what they wait for. */
void om_exec_device_order(om_exec *e, uint32_t nstream, om_streams *out);

#endif
