/* SPDX-License-Identifier: Apache-2.0 */
/* report --pipeline. */
#ifndef OM_REPORT_PIPELINE_H
#define OM_REPORT_PIPELINE_H

#include "cli/cli.h"

/* Plan each part of c->arg[0], a model or a training step, by the options of a pipeline, and write the memory of its ranks and what goes
 * between them. */
om_status om_cli_report_pipeline(om_cli *c);

#endif
