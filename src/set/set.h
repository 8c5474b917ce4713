/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of sets of models. */
#ifndef OM_SET_INTERNAL_H
#define OM_SET_INTERNAL_H

#include <jansson.h>

#include "host/host.h"
#include "onnxmem/onnx.h"
#include "onnxmem/set.h"

enum { OM_SET_MOST_SIZES = 4096, OM_SET_MOST_PARTS = 1000 };

/* A dim of a part: numbers from `low` to `high`, or an expression of other dims. */
struct set_dim {
	const char *symbol;
	int64_t low, high;
	const char *sum;         /* the expression, as of dim_expression.h; NULL: none */
};

/* What of a shared value is in memory. */
struct content {
	bool is_valid;
	uint32_t buffer;         /* the one of its buffers that has it */
	om_tensor t;             /* with the shape of the model; its data is that buffer */
	int axis;
	int64_t capacity;        /* rows along `axis` that the buffer has room for; 0: the rows are dense */
	int64_t ring;            /* rows of the ring that has the last of those of the shape; 0: it is none */
};

/* A part in runs. */
struct running {
	om_plan_cache *cache;
	const om_prog *prog;     /* planned for the sizes of the last run */
	om_exec *exec;           /* of it */
	om_tensor *given;        /* by input: of the caller; undefined: none */
	om_tensor *result;       /* by output */
};

/* A part as the manifest has it. */
struct part {
	om_set_part pub;
	om_model *model;
	om_prog *loaded;         /* of the model; `prog` is this one, or a copy in which inputs are constants */
	om_prog *prog;
	const char *pipeline;    /* of the set, and of branches that constants decide */
	const char *model_name;  /* the file, as in the manifest */
	om_plan_request request;
	struct set_dim *dim;
	uint32_t ndim;
	om_binding *fixed;       /* shapes of inputs */
	int32_t *in, *out;       /* by input and output: the shared value, or -1 */
	bool *in_place;          /* by output: in every size it is in the memory of the input that is the same value */
	struct running run;
};

/* Positions of the order that repeat. */
struct set_loop {
	uint32_t first, last;
};

struct om_set {
	om_session *session;
	om_host *host;
	om_arena *mem;
	const char *path, *folder;
	const char *pipeline;    /* of all parts */
	json_t **json;           /* the manifest */
	struct part *part;       /* in the order of the runs */
	uint32_t npart;
	struct set_loop *loop;
	uint32_t nloop;
	om_set_value *value;
	uint32_t nvalue;
	om_set_plan plan;
	bool is_planned;

	/* Once it is started. */
	om_exec_options options;
	unsigned char *memory;   /* aligned */
	void *allocated;
	struct content *content; /* by shared value */
	int64_t at;              /* position of the last run; -1: none */
	uint64_t copied;
};

/* set_manifest.c: read it. */
om_status om_set_read_manifest(om_set *x);
/* links.c: the shared values, as the manifest lists them. */
om_status om_set_read_links(om_set *x);
/* equal_weights.c: constants that are equal become one. */
void om_set_share_weights(om_set *x);
/* part_sizes.c: bind and plan a part for each of its sizes, and record what it needs. */
om_status om_set_plan_part(om_set *x, struct part *p);
/* set_layout.c: plan all parts; then sizes, lifetimes and the number of buffers of shared values are known. */
om_status om_set_plan_parts(om_set *x);
/* Give parts and shared values their offsets. */
om_status om_set_pack(om_set *x);
/* set_document.c: give them those of a document, whose parts and sizes have to be those of the set. */
om_status om_set_read_offsets(om_set *x, const char *path);
/* The plan of the set is complete. */
void om_set_publish(om_set *x);
/* An output of a planned program that is stored in the memory of an input: which; -1: none. */
int64_t om_set_input_of(const om_prog *p, uint32_t output);
/* The pair that has the rows of input or output `k`, if it is a buffer with spare rows; else NULL. */
const om_io_alias *om_set_rows_of(const om_prog *p, uint32_t k, bool is_output);

#endif
