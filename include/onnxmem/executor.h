/* The executor: runs a planned program in one arena.
 *
 * It is built from a program and a verified plan: the arena is allocated once,
 * pointers and kernels are bound before the first run, and a run is a walk over
 * an array.  It never replans.
 */
#ifndef OM_EXECUTOR_H
#define OM_EXECUTOR_H

#include "onnxmem/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program that is ready to run, in its arena.  It refers to the program and the plan,
 * which have to live as long.  Not shared between threads. */
typedef struct om_exec om_exec;

/* How to run; zero is the usual way. */
typedef struct om_exec_options {
	bool no_reuse;     /* every value in memory of its own; the plan is not used */
	bool poison;       /* fill memory with a pattern when it dies, guard its edges */
	bool profile;      /* time every op */
	const struct om_kernel_registry *kernels;  /* preferred to those of the library; has to live as
	                      long as the executor.  NULL: none */
} om_exec_options;

/* What an executor holds, and what its runs did. */
typedef struct om_exec_stats {
	uint64_t arena_bytes;       /* of all arenas; 0 with no_reuse */
	uint64_t weight_bytes;      /* constants made at build time; mapped ones not counted */
	uint64_t unplanned_bytes;   /* most ever held outside the arena for unplanned values */
	uint64_t copied_bytes;      /* moved by loops and branches, in the last run */
	uint64_t steps;             /* ops that ran in the last run, those of bodies as often as
	                               they did; views that the plan makes are none */
	uint64_t runs;              /* that came to their end */
} om_exec_stats;

/* What one op took, over all runs. */
typedef struct om_exec_op {
	const om_op *op;            /* of the program */
	uint64_t calls;             /* of its kernel: in a body, one for each round */
	double ms;                  /* sum over the calls */
} om_exec_op;

/* The instruction set that the fast kernels of this process are built for: `generic`,
 * `avx2` or `avx512`.  It is the one that the environment variable ONNXMEM_ISA names, where
 * this machine can run it, else the best that it can run.  Chosen at the first call of this
 * function or of a kernel, and the same from then on.  Static. */
OM_API const char *om_isa(void);

/* OM_USAGE where ONNXMEM_ISA names an instruction set that is unknown or that this machine
 * cannot run; the message names those that it can. */
OM_API om_status om_isa_check(om_session *s);

/* `plan` NULL is allowed with no_reuse only.  The plan is verified first.
 * The program and the plan are only read, by this and by all runs, and outlive the
 * executor: several executors of one program may be built and run at the same time, each
 * in a thread and with a session of its own.
 * OM_UNSUPPORTED names the first op that has no kernel; OM_USAGE is of om_isa_check(). */
OM_API om_status om_exec_new(om_session *s, const om_prog *p, const om_plan *plan,
	const om_exec_options *o, om_exec **out);
OM_API void om_exec_free(om_exec *e);   /* NULL is fine */

/* Bind graph input `k` to the caller's elements, or its object, which are read during
 * runs and never written, unless the plan ties an output to it: then that is
 * computed there.  Its type and dims must be those that were planned for;
 * OM_RUN otherwise.  For dims that the plan leaves open any number does. */
OM_API om_status om_exec_input(om_exec *e, uint32_t k, const om_tensor *t);

/* Bind graph output `k` to memory of the caller, large enough for the planned
 * shape.  Outputs that are not bound get memory from the executor.  What leads to
 * an output may be computed in its memory, which therefore overlaps no input. */
OM_API om_status om_exec_output(om_exec *e, uint32_t k, void *data, uint64_t bytes);

/* One run.  Inputs that are not bound and have no default are OM_RUN. */
OM_API om_status om_exec_run(om_exec *e);

/* Output `k` of the last run; valid until the next run.  Of an output that is no
 * tensor `data` is its object. */
OM_API const om_tensor *om_exec_result(const om_exec *e, uint32_t k);

/* Owned by the executor; up to date after each run. */
OM_API const om_exec_stats *om_exec_get_stats(const om_exec *e);
/* By order of first call; `n` gets their number.  Needs `profile`. */
OM_API const om_exec_op *om_exec_profile(const om_exec *e, uint32_t *n);

#ifdef __cplusplus
}
#endif

#endif
