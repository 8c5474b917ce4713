/* SPDX-License-Identifier: Apache-2.0 */
/* Losses whose mean over a batch is that of the means of its parts. */
#ifndef OM_BATCH_MEAN_H
#define OM_BATCH_MEAN_H

#include "onnxmem/ir.h"

/* False: the op has a mean over labels that are counted, or weighted (ignore_index, weights of classes), which is no mean over samples: parts
 * of a batch have other weights. */
bool om_op_mean_is_of_samples(const om_op *op);

#endif
