/* SPDX-License-Identifier: Apache-2.0 */
/* How the constants of an executor are made; shared by constants.c and weight_key.c. */
#ifndef OM_WEIGHTS_H
#define OM_WEIGHTS_H

#include "exec/exec_internal.h"

#define OM_OUTSIDE UINT64_MAX

/* What is decided about a value. */
struct weight {
	bool is_wanted;      /* its elements are required while constants are computed */
	bool is_kept;        /* also required in runs */
	bool is_aligned;     /* a reader requires its elements to be aligned */
	bool is_computed;    /* an output of an op in `left` */
	om_value *holder;    /* the value whose memory it is in: that which it is a view of, or itself */
	uint64_t offset;     /* bytes, in the holder */
	uint32_t nreader;    /* of a holder: inputs of ops in `left` that were not computed yet */
	uint64_t at;         /* of a holder: offset in the block, or OM_OUTSIDE */
	uint64_t dropped;    /* of a holder in a file: the pages of so many bytes were given back while an op reads it */
};

struct weights {
	om_exec *e;
	struct weight *by;   /* by value id */
	om_op **left;        /* folded ops to compute, in order */
	bool *is_listed;     /* by op id: it is in `left` */
	uint32_t nleft;
	uint64_t bytes;      /* of the block */
	const om_value **source; /* constants whose elements the block is made of */
	uint32_t nsource;
};

/* weight_key.c: the key of the block, with all that is required to open and to write its file.  False if no key
 * has all that the block depends on: third-party kernels, strings, sizes that are known afterwards. */
bool om_weight_key(struct weights *w, struct om_weight_cache *out);

#endif
