/* What the gradients of convolutions and pools share: windows, seen from behind. */
#ifndef OM_CONV_GEOMETRY_H
#define OM_CONV_GEOMETRY_H

#include "grad/gradients.h"
#include "opdef/geometry/window.h"

/* The windows of the op, with the padding that auto_pad means.  `kernel` are the dims that the
 * weights have, NULL for pools; `grows` where windows are painted onto the output.  False, and
 * the maker has failed, where the image or the kernel is not known. */
bool om_grad_window(om_grad *g, const int64_t *kernel, bool grows, struct om_window *w);

/* The windows that look at `out` and give `in`. */
struct om_window om_window_turned(const struct om_window *w);

/* Is the batch or the number of channels of a value known?  -1: no. */
int64_t om_grad_dim(const om_value *v, int axis);

/* Every element of `dy` painted with the weights onto where its window was: what the
 * windows' sums give back.  Weights are (channels of dy, channels of the image in a group,
 * kernel). */
om_value *om_emit_scatter_add(om_grad *g, const struct om_window *w, om_value *dy, om_value *weights, int64_t group);

/* The same with ones, each channel for itself. */
om_value *om_emit_scatter_ones(om_grad *g, const struct om_window *w, om_value *dy);

/* A constant of ones, or of another number. */
om_value *om_emit_filled(om_grad *g, const om_value *like, int rank, const int64_t *dim, double v);

/* A constant of numbers, in the element type of `like`. */
om_value *om_emit_numbers(om_grad *g, const om_value *like, int rank, const int64_t *dim, const double *v);

/* `x` in another shape; 0 keeps a dim, -1 is found out. */
om_value *om_emit_shaped(om_grad *g, om_value *x, size_t n, const int64_t *dim);

/* A number for each channel, as it is broadcast to images of this rank. */
om_value *om_emit_per_channel(om_grad *g, om_value *x, int rank);

/* Axes [from, to). */
size_t om_axes_between(int from, int to, int64_t *axis);

#endif
