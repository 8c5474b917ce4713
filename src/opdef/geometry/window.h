/* Windows that move over images: the geometry of convolutions and pools. */
#ifndef OM_WINDOW_H
#define OM_WINDOW_H

#include "onnxmem/opdef.h"

enum { OM_WINDOW_AXES = 3 };

/* Images of one or two axes get axes of size 1 in front.  While planning, -1
 * stands for what is not known. */
struct om_window {
	int n;                        /* axes that the image has */
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

/* Read the attributes for `n` axes and the image `x` (batch, channels, image).
 * `kernel` are the dims that the weights have, NULL for pools.  Like all here:
 * NULL when all is well, else what is wrong. */
const char *om_window_read(const om_op_context *c, int n, const om_shape *x, const int64_t *kernel,
	struct om_window *w);

/* For gradients in one op (gradient_op.h): the image that was forward input 0, as attribute x_shape
 * has it.  Of its first `shared` dims `dy` may know more. */
const char *om_window_image(const om_op_context *c, const om_shape *dy, int shared, om_shape *x);

/* The size of the output where the window steps over the input, and the
 * padding that auto_pad means. */
const char *om_window_shrink(const om_op_context *c, struct om_window *w, bool ceil_mode);

/* The same where the window is painted onto the output (ConvTranspose). */
const char *om_window_grow(const om_op_context *c, struct om_window *w);

/* May `y` (batch, channels, image) be what comes out of the window? */
bool om_window_gives(const struct om_window *w, const om_shape *y);

/* The image's dims of an output, whose rank is set.  Dims that are not known,
 * but the same as the input's, keep their symbols. */
void om_window_dims(om_shape *out, const om_shape *x, const struct om_window *w);

/* Does every window lie in the input and is an element of it? */
bool om_window_is_point(const struct om_window *w);

/* Of known sizes: axes along which there is one place only go to the front, so that lines are long.  Elements
 * stay where they are; which axis is which is no more what the model says. */
void om_window_pack(struct om_window *w);

int64_t om_window_volume(const int64_t *size);

/* Along one axis: the outputs [*lo, *hi) for which tap `tap` falls into the
 * input. */
void om_window_range(const struct om_window *w, int axis, int64_t tap, int64_t *lo, int64_t *hi);

/* Along one axis: the taps of output `o` that lie inside, the padding counting as inside
 * or not. */
int64_t om_window_taps(const struct om_window *w, int axis, int64_t o, bool with_padding);

#endif
