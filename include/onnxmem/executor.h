/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: runs a planned program in preallocated arenas.
 *
 * An executor is built from a program and a verified plan.  Arenas are allocated once, and
 * pointers and kernels are bound before the first run; a run iterates over an array of
 * steps.  The executor never replans.
 */
#ifndef OM_EXECUTOR_H
#define OM_EXECUTOR_H

#include "onnxmem/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program that is ready to run, with its arenas.  It references the program and the plan,
 * which must outlive it.  Not thread-safe. */
typedef struct om_exec om_exec;

/* Memory of the caller for an arena. */
typedef struct om_exec_memory {
	void *data;                 /* aligned as the plan requires for this arena; runs overwrite all of its bytes */
	uint64_t bytes;             /* at least those of the arena */
} om_exec_memory;

/* Execution options; initialized by OM_EXEC_OPTIONS(). */
typedef struct om_exec_options {
	size_t size;       /* of this struct: set by OM_EXEC_OPTIONS */
	bool no_reuse;     /* every value has its own allocation; the plan is not used */
	bool poison;       /* fill dead memory with a pattern, put guards around arenas */
	bool profile;      /* time every op */
	const struct om_kernel *kernels;  /* a list that ends with an entry without a name and outlives the
	                      executor: they take precedence over those of the library, later ones over
	                      earlier ones.  NULL: none */
	uint64_t max_memory;     /* bytes that the executor may hold at once: arenas, constants that are not mapped,
	                      scratch, values outside the plan, strings and objects.  More is OM_MEMORY, when it
	                      is built or in a run.  0: the physical memory of the machine */
	uint64_t max_iterations; /* of all loops of a run together, Scan included; more are OM_RUN.  0: 10^9 */
	uint32_t threads;        /* that kernels use, the caller included; 1: no others; 0: as om_threads().  A plan with streams of
	                      workers has a thread for each of them instead, and each op runs in one; with `poison` or
	                      `profile` its ops run one after the other */
	bool precise;            /* only reference kernels, none that are marked `is_fast` */
	const char *cache; /* a folder of files with weights as kernels read them: if there is one of these weights,
	                      it is mapped, and shared with other processes; else they are made, and one is written.
	                      Files that are damaged or outdated are replaced, and a folder that cannot be
	                      written is no error.  Devices keep compiled kernels there, too.  NULL: none.  Must outlive the call that builds the executor */
	const struct om_device_ops *device;  /* the device of a program that has ops on one (onnxmem/device.h); NULL: it is
	                      loaded from the module of its name */
	const char *device_options; /* for it, as "seed=3"; NULL: none.  Must outlive the call that builds the executor */
	uint32_t streams;        /* of the device, from 1 to 8; 0: 4 for a parallel-safe plan, else 1 */
	const om_exec_memory *arena; /* by arena of the plan, all of them: memory that the executor uses instead of allocating
	                      it, and that must outlive it.  Between runs the caller may use it for something
	                      else, except for inputs and results that the plan has in an arena.  With `poison`, it has no
	                      guards.  Not for a program with ops on a device, or with no_reuse.  NULL: the executor allocates */
	uint32_t narena;         /* how many */
	struct om_comm *comm;    /* for the collectives of org.onnxmem.dist (onnxmem/comm.h), which runs call in the order of the
	                      program; used by the thread that runs, and must outlive the executor.  NULL: there is one rank */
	bool keep_states;        /* inputs that outputs replace in the next run stay on the device where a plan permits it: their
	                      elements are copied there in the run after om_exec_input(), and back by om_exec_fetch_states() */
	bool no_capture;         /* a device gets each command of a run anew.  Else the first run has it capture the commands of ops that follow
	                      each other there, and later ones replay them, where the device can; not with `poison` or `profile` */
} om_exec_options;

/* The initializer of om_exec_options, with members that differ from the defaults:
 * om_exec_options o = OM_EXEC_OPTIONS(.poison = true). */
#define OM_EXEC_OPTIONS(...) {.size = sizeof(om_exec_options), __VA_ARGS__}

/* Profile of one op over all runs. */
typedef struct om_exec_op {
	const om_op *op;            /* of the program */
	uint64_t calls;             /* of its kernel: in a body, one per iteration */
	double ms;                  /* sum over the calls */
	double least_ms;            /* of the shortest call: what an op takes where other work disturbs runs */
} om_exec_op;

/* Memory held by an executor, and counters of its runs. */
typedef struct om_exec_stats {
	uint64_t arena_bytes;       /* of all arenas; 0 with no_reuse */
	uint64_t weight_bytes;      /* constants materialized at build time, or mapped from a cache; without those
	                               that are read in the file of the model */
	uint64_t unplanned_bytes;   /* peak bytes held outside the arenas: unplanned values, and scratch that
	                               the plan does not have, as plans for OM_TARGET_GENERIC */
	uint64_t object_bytes;      /* peak bytes of strings, sequences, optionals and maps in the last run,
	                               sampled at the ends of loop iterations and at the end of the run */
	uint64_t copied_bytes;      /* copied in the last run because the plan does not share memory: by control
	                               flow, and by ops whose planned output is all of an input */
	uint64_t steps;             /* ops executed in the last run, ops of bodies once per iteration;
	                               views made by the plan are not counted */
	uint64_t runs;              /* completed runs */
	uint64_t device_bytes;      /* of memory of the device: arenas, constants, values outside of the plan */
	uint64_t transferred_bytes; /* copied to and from the device by all runs, and by om_exec_fetch_states() */
	uint64_t captured_commands; /* that the device captured: launches, and copies in its memory */
	uint64_t replays;           /* of captured commands, as often as they were started, by all runs */
	const om_exec_op *op;       /* with `profile`: ops that ran, in order of their first call */
	uint32_t nop;               /* how many */
} om_exec_stats;

/* The instruction set of the fast kernels in this process: `generic`, `avx2` or `avx512`.
 * The environment variable ONNXMEM_ISA selects it if this machine supports that one; the
 * default is the best supported.  Selected at the first call of this function or of a
 * kernel, and constant afterwards.  The string is static.  NULL, with a message that lists
 * those that this machine supports, if the variable names another. */
OM_API const char *om_isa(om_session *s);

/* The number of threads of a run: `requested`, else the environment variable ONNXMEM_THREADS, else the processors
 * that this process may use.  OM_USAGE if it is no number from 1 to 1024. */
OM_API om_status om_threads(om_session *s, uint32_t requested, uint32_t *out);

/* Can a device be used: is there its module, a driver, and a device?  `name` as "sim", `options` for it or NULL.
 * OM_UNSUPPORTED with a sentence that says why not. */
OM_API om_status om_device_try(om_session *s, const char *name, const char *options);

/* `plan` may be NULL only with no_reuse, `o` for the defaults.  The plan is verified first.
 * The program and the plan are not modified by this function or by runs, and must outlive
 * the executor.  Several executors of one program may be built and run concurrently, each
 * in its own thread with its own session.  The results of a run are the same for every number of threads.  An
 * executor owns its threads: after fork(), the child may neither run nor free it.
 * OM_UNSUPPORTED names the first op without a kernel; OM_USAGE: ONNXMEM_ISA names an instruction set that
 * is unknown or not supported by this machine, a kernel of `o` cannot run, or `o` has no valid size. */
OM_API om_status om_exec_new(om_session *s, const om_prog *p, const om_plan *plan,
	const om_exec_options *o, om_exec **out);
OM_API void om_exec_free(om_exec *e);   /* NULL is fine */

/* Bind graph input `k` to the caller's elements, or to its object.  Runs only read them,
 * unless the plan aliases an output to the input: then runs write that output there, and an input that the output
 * does not replace in the next run (OM_ALIAS_CONSUME) has to be bound again for it.  An input
 * that the plan has in an arena is copied there at the start of each run.
 * Type and dims must be those of the plan, else OM_RUN; an input that is a constant
 * (om_binding_value()) must have its elements, else OM_BADPLAN.  Dims that the plan leaves open
 * may have any size. */
OM_API om_status om_exec_input(om_exec *e, uint32_t k, const om_tensor *t);

/* The memory of graph input `k` if the plan has it in an arena, as large as its planned shape; else NULL.
 * An input that is bound to this memory is not copied.  Runs overwrite it, unless the request was to keep the
 * input (OM_IO_KEEP): then it is intact after the run, too.  It belongs to the executor. */
OM_API void *om_exec_input_memory(const om_exec *e, uint32_t k);

/* Bind graph output `k` to memory of the caller, large enough for the planned
 * shape.  The executor allocates unbound outputs; NULL unbinds one.  Intermediate values may be
 * computed in the memory of an output, so it must not overlap an input. */
OM_API om_status om_exec_output(om_exec *e, uint32_t k, void *data, uint64_t bytes);

/* Bind graph input `k` to elements that are on the device of the program already: `t->data` is their address there, and `stream` the
 * stream of the device that they come from, as a CUstream, which the call waits for; NULL: they are there.  Runs read them where they
 * are, or, where the plan computes a value over them or they are less aligned than the device requires, copy them on the device.  The
 * memory must be valid until the input is bound again or the executor is freed; what changes its contents is waited for by
 * binding it again, which is cheap for the same address.  Type and dims must be those of the program; the processor must not read
 * the input, else OM_UNSUPPORTED, as where the device takes no memory of others.  An output that the plan has in the memory of the
 * input is in memory of the executor then.  om_exec_input() ends it. */
OM_API om_status om_exec_device_input(om_exec *e, uint32_t k, const om_tensor *t, void *stream);

/* Bind graph output `k` to memory on the device in the same way; the call waits for what `stream` still does with it.  om_exec_result()
 * is this tensor, whose elements are on the device, all of them when the run returns.  It must not overlap other bound memory, as om_exec_run()
 * checks (OM_RUN).
 * om_exec_output() ends it. */
OM_API om_status om_exec_device_output(om_exec *e, uint32_t k, const om_tensor *t, void *stream);

/* Execute one run.  OM_RUN if an input is neither bound nor has a default, or the last run consumed it. */
OM_API om_status om_exec_run(om_exec *e);

/* Output `k` of the last run; valid until the next run.  For an output that is not a
 * tensor, `data` is its object. */
OM_API const om_tensor *om_exec_result(const om_exec *e, uint32_t k);

/* With `keep_states`: copy the states that are on a device to the memory that their inputs were bound to. */
OM_API om_status om_exec_fetch_states(om_exec *e);

/* Owned by the executor; updated after each run. */
OM_API const om_exec_stats *om_exec_get_stats(const om_exec *e);

#ifdef __cplusplus
}
#endif

#endif
