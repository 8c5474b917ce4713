/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of models that run one after the other in one arena.
 *
 * An encoder, a decoder and its step, or one file for a prefill and for steps: each is a part.  A manifest beside the files
 * lists the parts, the values that they share, and the order in which they run (docs/sets.md).  Every part is planned for each of its
 * sizes, and its arena is a buffer that is live while it runs; a shared value is a buffer that is live from the part that
 * writes it first to the last one that reads it.  The arena of the set is what these buffers need.
 */
#ifndef OM_SET_H
#define OM_SET_H

#include "onnxmem/executor.h"
#include "onnxmem/pass.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A set of models: its parts, its plan, and, once it is started, its memory.  Not thread-safe. */
typedef struct om_set om_set;

/* An input or output of a part that is a shared value. */
typedef struct om_set_end {
	uint32_t part;           /* index of the part */
	const char *name;        /* of the input or output */
	uint32_t index;          /* among the inputs or outputs of its graph */
	bool is_output;          /* it writes the value; else it reads it */
} om_set_end;

/* A shared value.  Outputs write it, and inputs read what was written last. */
typedef struct om_set_value {
	const char *name;        /* of its first end, as PART.NAME */
	const om_set_end *end;   /* in the order of the manifest */
	uint32_t nend;           /* at least 2 */
	uint64_t bytes;          /* of a buffer: the most that it takes in any size of any part */
	uint32_t nbuffer;        /* 2 if a part reads it and writes it elsewhere, so that its buffers take turns; else 1 */
	uint64_t offset[2];      /* of its buffers in the arena of the set */
	uint32_t first, last;    /* positions in the order of the parts between which it is intact, inclusive */
} om_set_value;

/* A part: a model and the sizes that it is planned for. */
typedef struct om_set_part {
	const char *name;        /* in the manifest */
	const char *path;        /* of the file of the model */
	const om_prog *prog;     /* as loaded; its constants may be those of another part */
	uint32_t nsize;          /* sizes that it is planned for */
	uint64_t bytes;          /* of its arena: the most that a plan for one of these sizes needs */
	uint64_t alone;          /* the same with the shared values that it has, as a part on its own needs them */
	uint64_t weights;        /* bytes of constants that its ops read */
	uint64_t equal;          /* of its constants as loaded: bytes that are those of an earlier part, and held once */
	uint64_t offset;         /* of its arena in that of the set */
} om_set_part;

/* The plan of a set. */
typedef struct om_set_plan {
	const om_set_part *part; /* in the order in which they run */
	uint32_t npart;          /* how many */
	const om_set_value *value; /* in the order of the manifest */
	uint32_t nvalue;         /* how many */
	uint64_t bytes;          /* of the arena of the set */
	uint64_t lower_bound;    /* no arena for these buffers is smaller; 0: the plan was read from a document */
	uint64_t align;          /* of the arena, and of all that is in it */
	uint64_t crossing;       /* bytes: all buffers of shared values, each rounded up to `align` */
} om_set_plan;

/* Load the models of the manifest `path`, and make constants that are equal in several parts one.  Parts are planned with the
 * pipeline (NULL: that of the target) as the host requests it now; its request has one arena, and no rules for single inputs,
 * outputs and values.  The host must outlive the set.  OM_MALFORMED or OM_INVALID with the entry of the manifest that is wrong. */
OM_API om_status om_set_load(om_host *h, const char *path, const char *pipeline, om_set **out);
OM_API void om_set_free(om_set *x);   /* NULL is fine */

/* Plan every part for each of its sizes, verify each of these plans, pack the arena of the set, and verify it. */
OM_API om_status om_set_make_plan(om_set *x);

/* Read the plan from a document that om_set_json() made, after planning all parts as om_set_make_plan() does.  It is not verified.
 * OM_STALE if it is of other models, parts or values; OM_MALFORMED. */
OM_API om_status om_set_read_plan(om_set *x, const char *path);

/* Check the plan of a set independently of how it was made: by a simulation of runs, with loops that may be left out, in which every
 * value that is read is intact, no part runs in memory of a value that it reads or writes, and every part has its arena
 * and every value its size.  OM_BADPLAN with the parts and values. */
OM_API om_status om_set_verify(om_set *x);

/* The plan as a JSON document ("onnxmem-set-plan/1"); the caller frees it with free().  OM_USAGE if there is none. */
OM_API om_status om_set_json(om_set *x, char **json);

/* The plan of a set, valid as long as the set; NULL: there is none. */
OM_API const om_set_plan *om_set_get_plan(const om_set *x);

/* Allocate the arena of the set, for runs with these options; `arena`, `no_reuse` and `device` are not among them.  The plan is
 * verified first.  With `poison`, memory of the set that is not in use is filled with a pattern before each run of a part, and
 * a run that writes to it, or to a shared value that it only reads, is OM_RUN. */
OM_API om_status om_set_start(om_set *x, const om_exec_options *o);

/* The part called `name`; OM_USAGE if there is none. */
OM_API om_status om_set_find(const om_set *x, const char *name, uint32_t *part);

/* Give input `k` of a part the elements `t`, which stay the caller's and must be intact during the next run of the part.  An input that is
 * a shared value is written to it at the start of that run; for others the tensor is used until another is given. */
OM_API om_status om_set_input(om_set *x, uint32_t part, uint32_t k, const om_tensor *t);

/* Would input `k` of the part be without a value, if the part ran next?  So is a shared value that no part has written since the set
 * started from its first part, and any other input that was not given. */
OM_API bool om_set_lacks(const om_set *x, uint32_t part, uint32_t k);

/* Run a part, planned for the shapes of its inputs: the first one, the one after the part that ran last, or, at the end of a
 * loop, the first of the loop; a loop may be left out.  OM_USAGE for another order, OM_RUN if an input has no value, OM_BUDGET
 * if the sizes need more than the plan has. */
OM_API om_status om_set_run(om_set *x, uint32_t part);

/* Output `k` of the part that ran last, valid until the next run; NULL: it is no such output.  A cache with spare rows (pass
 * `capacity`) is the buffer, of whose rows om_set_result_rows() are in use. */
OM_API const om_tensor *om_set_result(const om_set *x, uint32_t part, uint32_t k);
OM_API int64_t om_set_result_rows(const om_set *x, uint32_t part, uint32_t k, int *axis); /* -1: it is no such buffer */

/* Bytes copied in the last run: by the executor, and to and from the memory of shared values. */
OM_API uint64_t om_set_copied(const om_set *x);

#ifdef __cplusplus
}
#endif

#endif
