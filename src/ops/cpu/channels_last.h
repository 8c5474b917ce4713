/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of org.onnxmem.cpu on channels-last images [N, spatial..., C]: shapes and geometry. */
#ifndef OM_CHANNELS_LAST_H
#define OM_CHANNELS_LAST_H

#include "kernels/cpu/geometry.h"
#include "opdef/cpu_domain.h"
#include "opdef/geometry/window.h"
#include "opdef/slice.h"

/* Attributes of a window; pads are always explicit. */
#define OM_LAST_WINDOW_ATTRS(wants_kernel)                                     \
	{"kernel_shape", OM_ATTR_INTS, .required = wants_kernel},              \
	{"strides", OM_ATTR_INTS},                                             \
	{"dilations", OM_ATTR_INTS},                                           \
	{"pads", OM_ATTR_INTS}

/* The same image with its channels first: symbols and unknown dims stay.  The rank must be known and at least 2. */
om_shape om_last_to_first(const om_shape *x);
om_shape om_first_to_last(const om_shape *x);

/* The window of an op that slides over input 0, whose rank is known.  Returns NULL, or an error message. */
const char *om_last_window(const om_op_context *c, bool ceil_mode, struct om_window *w);

/* The shape of its output: `channels`, or those of the input with OM_DIM_UNKNOWN. */
om_shape om_last_shape(const om_op_context *c, const struct om_window *w, int64_t channels);

/* The column `slice` of an op with such a window: images of the batch, and axes of the image.  There are no parts along
 * channels, as weights are packed in panels of them. */
bool om_last_slice(const om_op_context *c, uint32_t out, om_slice *s);
/* The same of pools, whose channels may be divided, and whose attribute ceil_mode counts. */
bool om_last_pool_slice(const om_op_context *c, uint32_t out, om_slice *s);

/* For known sizes. */
om_geometry om_last_geometry(const struct om_window *w);

/* Check that input k, if there is one, is a list of `n` elements; -1: of any number. */
om_status om_last_list(const om_op_context *c, uint32_t k, const char *name, int64_t n);

/* Check that input 1, the packed weights, has `taps` * `channels` elements. */
om_status om_last_packed(const om_op_context *c, int64_t taps, int64_t channels);

/* A parallel loop over the lines of the images of a batch. */
struct om_last_lines {
	int64_t images, lines;         /* lines of one image */
	/* Compute lines [first, end) of an image. */
	void (*fn)(void *arg, int64_t image, int64_t first, int64_t end, uint32_t worker);
	void *arg;
};
void om_last_parallel(const om_op_context *c, const struct om_last_lines *l);

#endif
