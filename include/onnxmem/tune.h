/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning: how each layer of a model is computed is chosen by measuring on this machine.
 *
 * A layer is a convolution or a product with constant weights, as the pass lower-layout makes it for OM_TARGET_CPU.  Several
 * kernels and sizes of blocks compute it.  Layers of equal shapes are one entry.  The whole program runs with
 * each alternative, so that the caches are in the state of a run, and each layer is timed in it.  What is chosen
 * is an option of the pass, which the plan records: it is in the file with the plan, and holds on every machine.
 */
#ifndef OM_TUNE_H
#define OM_TUNE_H

#include "onnxmem/pass.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Times of a program. */
typedef struct om_tune_times {
	double ms;               /* of a run, the least */
	double *op_ms;           /* [nop] by op id: of its calls in a run, the least */
} om_tune_times;

/* Time runs of a planned program for about so many seconds. */
typedef om_status om_tune_measure(void *arg, om_session *s, const om_prog *p, double seconds, om_tune_times *t);

/* How a program is tuned.  Initialize it with OM_TUNE_OPTIONS(). */
typedef struct om_tune_options {
	size_t size;             /* of this struct, as the program was compiled */
	double seconds;          /* for all measurements together; 0: 10 */
	uint64_t total;          /* bytes that a run may take (om_plan_memory.total): the fastest choices that need no more;
				    0: no limit */
	uint64_t arena;          /* the same for the arenas alone */
	bool has_slowdown;       /* not the fastest choices, but those that take the least memory (om_plan_memory.total) while */
	double slowdown;         /* the layers take at most so many percent longer than the fastest ones */
	const char *cache;       /* a folder: times measured before are read there, and all times are written; NULL: none.
				    A file that is damaged is replaced, and a folder that cannot be written is no error */
	om_tune_measure *measure; /* NULL: an executor runs the program, with inputs that are made up */
	double (*now)(void *arg); /* milliseconds, against which `seconds` is held; NULL: the clock */
	void *arg;               /* of these two */
} om_tune_options;

/* Options with the given members; the others are zero. */
#define OM_TUNE_OPTIONS(...) {.size = sizeof(om_tune_options), __VA_ARGS__}

/* A way to compute the layers of an entry. */
typedef struct om_tune_choice {
	const char *name;        /* as "winograd4" or "gemm@50", of which blocks have half the usual size */
	double ms;               /* of these layers in a run; negative: not measured */
	uint64_t weights;        /* bytes of their packed weights */
	uint64_t scratch;        /* bytes, the most that one of them has */
	bool was_known;          /* the time is from the cache */
} om_tune_choice;

/* Layers of equal shapes. */
typedef struct om_tuned_layer {
	const char *key;         /* its kind and shapes */
	uint32_t ops;            /* layers */
	om_tune_choice *choice;  /* that of the cost model first */
	uint32_t nchoice;        /* how many */
	uint32_t chosen;         /* index */
} om_tuned_layer;

/* A plan of the program. */
typedef struct om_tuned_plan {
	double ms;               /* of a run */
	om_plan_memory memory;   /* that it takes */
} om_tuned_plan;

/* What tuning found. */
typedef struct om_tuned {
	const char *isa;         /* instruction set of the kernels */
	uint32_t threads;        /* of the runs */
	om_tuned_layer *layer;   /* in the order of the program */
	uint32_t n;              /* how many */
	om_tuned_plan usual, chosen; /* with the choices of the cost model, and with those that were found, measured in turn */
	bool is_kept;            /* the choices of the cost model are kept: no others were faster in whole runs */
	uint32_t unmeasured;     /* choices that the time did not suffice for */
	const char *choices;     /* those that differ from the cost model's, for the option `choices` of lower-layout; "": none */
} om_tuned;

/* Tune `p`, whose dims are bound, for the request of the host, which must be for OM_TARGET_CPU and not precise.  `*planned` is a
 * copy of `p` with the tuned plan, which is verified and which the caller frees; NULL on failure.  `*out` is allocated in
 * `mem`.  OM_BUDGET if no choices were found that need no more than the limit. */
OM_API om_status om_host_tune(om_host *h, const om_prog *p, const om_tune_options *o, om_arena *mem, om_prog **planned,
	const om_tuned **out);

/* The choices that tuning wrote to a folder for the instruction set of this process and a number of threads, for the
 * option `choices` of lower-layout; "" if there are none, with a message for information.  Allocated in `mem`. */
OM_API const char *om_tuned_choices(om_session *s, const char *folder, uint32_t threads, om_arena *mem);

/* `pipeline` with these choices.  The host owns the text. */
OM_API om_status om_host_choose(om_host *h, const char *choices, const char **pipeline);

#ifdef __cplusplus
}
#endif

#endif
