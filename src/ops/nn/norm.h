/* SPDX-License-Identifier: Apache-2.0 */
/* What normalizations compute moments of. */
#ifndef OM_NORM_H
#define OM_NORM_H

#include "onnxmem/opdef.h"

/* Does BatchNormalization compute statistics?  Are they of each element of a sample, instead of each channel? */
bool om_batch_norm_is_training(const om_op_context *c);
bool om_batch_norm_is_by_element(const om_op_context *c);

/* The axes over which MeanVarianceNormalization computes moments. */
om_status om_mean_variance_axes(const om_op_context *c, bool over[OM_MAX_RANK]);

#endif
