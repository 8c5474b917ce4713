/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that preparing a composite op records: of a run (composite.c), or of launches for a device (composite_device.c). */
#ifndef OM_COMPOSITE_INTERNAL_H
#define OM_COMPOSITE_INTERNAL_H

#include "opdef/composite.h"

/* The steps of a run, in order. */
struct om_composite_step {
	om_op_context part;             /* bound to its kernel; op NULL: not a part */
	const om_tensor **from;   /* [nin] sources of the inputs of the part; NULL: absent */
	om_view_of *view;         /* [nout] the views, for outputs with is_view */
	bool *is_view;            /* [nout] the output is a view */
	uint64_t *at;             /* [nout] offset in scratch, for outputs that are not views */
	bool is_idle;             /* all outputs are views */
	uint64_t scratch;         /* workspace of the part: offset in scratch */
	const struct om_device_kernel *row;  /* of the part, for a device */

	om_composite_filler *fill;    /* fills `t`, at offset at[0] of scratch; NULL: not a fill step */
	const void *of;

	const om_tensor *t;       /* to be filled, or to be copied to an output */
	bool is_output;           /* copies to an output */
	uint32_t out;             /* index of that output */
	uint64_t bytes;           /* number of bytes to copy */
};

struct om_composite_steps {
	struct om_composite_step *step;
	size_t n, cap;
	uint64_t most;            /* peak bytes of scratch */
};

/* Append a step. */
struct om_composite_step *om_composite_add_step(om_composite *p);

/* Run the recipe, and see that it has set all outputs. */
void om_composite_record(om_composite *p, om_recipe *recipe);

/* What preparing for a device does instead; p->device is set.  A tensor has a buffer, or is the bytes of another one from `offset`
 * on. */
void om_composite_device_buffer(om_composite *p, const om_tensor *t);
void om_composite_device_view(om_composite *p, const om_tensor *t, const om_tensor *of, uint64_t offset);
om_status om_composite_device_part(om_composite *p, struct om_composite_step *s);
void om_composite_device_output(om_composite *p, uint32_t k, const om_tensor *t);

#endif
