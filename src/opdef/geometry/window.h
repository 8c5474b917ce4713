/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding windows over images: the geometry of convolutions and pooling. */
#ifndef OM_WINDOW_H
#define OM_WINDOW_H

#include "onnxmem/opdef.h"

enum { OM_WINDOW_AXES = 3 };

/* Images with one or two axes are padded with leading axes of size 1.  While planning, -1 means unknown. */
struct om_window {
	int n;                        /* number of axes of the image */
	int64_t in[OM_WINDOW_AXES], out[OM_WINDOW_AXES], kernel[OM_WINDOW_AXES];
	int64_t stride[OM_WINDOW_AXES], dilation[OM_WINDOW_AXES];
	int64_t begin[OM_WINDOW_AXES], end[OM_WINDOW_AXES];  /* padding */
};

#define OM_WINDOW_ATTRS OM_WINDOW_ATTRS_(false)
#define OM_POOL_ATTRS OM_WINDOW_ATTRS_(true)
#define OM_WINDOW_ATTRS_(wants_kernel)                                         \
	{"auto_pad", OM_ATTR_STRING, .s = "NOTSET"},                           \
	{"kernel_shape", OM_ATTR_INTS, .required = wants_kernel},              \
	{"strides", OM_ATTR_INTS},                                             \
	{"dilations", OM_ATTR_INTS},                                           \
	{"pads", OM_ATTR_INTS}

/* Read the attributes for `n` axes and the image `x` (batch, channels, image).  `kernel` holds the
 * kernel dims of the weights, NULL for pooling.  Like the functions below, returns NULL on success, an
 * error message otherwise. */
const char *om_window_read(const om_op_context *c, int n, const om_shape *x, const int64_t *kernel,
	struct om_window *w);

/* For fused gradients (gradient_op.h): the shape of forward input 0, as given by attribute x_shape.
 * Unknown dims among its first `shared` ones are taken from `dy`. */
const char *om_window_image(const om_op_context *c, const om_shape *dy, int shared, om_shape *x);

/* Output size of a window that slides over the input, and the padding implied by auto_pad. */
const char *om_window_shrink(const om_op_context *c, struct om_window *w, bool ceil_mode);

/* The same for a window that is scattered onto the output (ConvTranspose). */
const char *om_window_grow(const om_op_context *c, struct om_window *w);

/* True if `y` (batch, channels, image) may be the output of the window. */
bool om_window_gives(const struct om_window *w, const om_shape *y);

/* Set the image dims of an output, whose rank is set.  Unknown dims that equal those of the input keep
 * their symbols. */
void om_window_dims(om_shape *out, const om_shape *x, const struct om_window *w);

/* True if every window consists of a single element that lies in the input. */
bool om_window_is_point(const struct om_window *w);

/* For known sizes: move axes with a single position to the front, so that lines are long.  Elements keep
 * their addresses, but the axes no longer correspond to those of the model. */
void om_window_pack(struct om_window *w);

int64_t om_window_volume(const int64_t *size);

/* Along one axis: the outputs [*lo, *hi) for which filter element `tap` falls inside the input. */
void om_window_range(const struct om_window *w, int axis, int64_t tap, int64_t *lo, int64_t *hi);

/* Along one axis: the number of filter elements of output `o` that fall inside the input, or inside the
 * padded input if `with_padding`. */
int64_t om_window_taps(const struct om_window *w, int axis, int64_t o, bool with_padding);

#endif
