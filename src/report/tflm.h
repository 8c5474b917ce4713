/* SPDX-License-Identifier: Apache-2.0 */
/* What both forms of offline plans for TFLite Micro share. */
#ifndef OM_TFLM_H
#define OM_TFLM_H

#include "report/report.h"

/* OM_UNSUPPORTED if the plan cannot be expressed as an offline plan. */
om_status om_tflm_check(const om_report *r, om_session *s);

/* The lines before the offsets of `n` tensors; `note` is a comment of one line, or "". */
void om_tflm_head(const om_report *r, uint32_t n, const char *note, FILE *to);

/* The line of a tensor; `at` NULL: the runtime places it. */
void om_tflm_tensor(om_arena *mem, const char *name, const om_placement *at, FILE *to);

#endif
