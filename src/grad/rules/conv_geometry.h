/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers shared by the gradients of convolutions and pooling: window geometry and its adjoint. */
#ifndef OM_CONV_GEOMETRY_H
#define OM_CONV_GEOMETRY_H

#include "grad/gradients.h"
#include "opdef/geometry/window.h"

/* Get the windows of the op, with the padding that auto_pad implies.  `kernel` are the spatial dims of
 * the weights, NULL for pooling; `grows` if windows are scatter-added to the output.  False, with the
 * rule failed, if the image or the kernel shape is unknown. */
bool om_grad_window(om_grad *g, const int64_t *kernel, bool grows, struct om_window *w);

/* The geometry with input and output exchanged: windows over `out` that produce `in`. */
struct om_window om_window_turned(const struct om_window *w);

/* The dim of an axis, such as batch or channels, or -1 if it is unknown. */
int64_t om_grad_dim(const om_value *v, int axis);

/* Transposed convolution: scatter-add every element of `dy`, times the weights, to the positions of its
 * window.  Weights are (channels of dy, channels of the image per group, kernel). */
om_value *om_emit_scatter_add(om_grad *g, const struct om_window *w, om_value *dy, om_value *weights, int64_t group);

/* The same with weights of one, per channel. */
om_value *om_emit_scatter_ones(om_grad *g, const struct om_window *w, om_value *dy);

/* A constant filled with `v`. */
om_value *om_emit_filled(om_grad *g, const om_value *like, int rank, const int64_t *dim, double v);

/* A constant with the given elements, in the element type of `like`. */
om_value *om_emit_numbers(om_grad *g, const om_value *like, int rank, const int64_t *dim, const double *v);

/* Reshape of `x`; 0 copies a dim, -1 is inferred. */
om_value *om_emit_shaped(om_grad *g, om_value *x, size_t n, const int64_t *dim);

/* A value per channel, reshaped to broadcast to images of this rank. */
om_value *om_emit_per_channel(om_grad *g, om_value *x, int rank);

/* The list of axes [from, to); returns its length. */
size_t om_axes_between(int from, int to, int64_t *axis);

#endif
