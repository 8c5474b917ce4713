/* SPDX-License-Identifier: Apache-2.0 */
/* Reading plans from models. */
#ifndef OM_PLAN_READ_H
#define OM_PLAN_READ_H

#include "onnxmem/assignment.h"
#include "onnxmem/binding.h"
#include "onnxmem/onnx.h"

/* Run these passes, a pipeline, on a program, for this request. */
typedef om_status om_lower_fn(void *host, om_prog *p, const om_plan_request *request, const char *passes);

/* As om_model_read_plan(), for the sizes of `b` as om_host_read_plan(); `lower`, called with `host`, runs the passes of a plan for a lowered program. */
om_status om_model_read_plan_with(om_session *s, om_model *m, om_prog *p, const char *sidecar, const om_binding *b,
	om_lower_fn *lower, void *host);

#endif
