/* SPDX-License-Identifier: Apache-2.0 */
/* report --ranks. */
#ifndef OM_REPORT_RANKS_H
#define OM_REPORT_RANKS_H

#include "cli/cli.h"

/* Plan the step c->arg[0] for the numbers of ranks of the option, and write the memory of a rank of each. */
om_status om_cli_report_ranks(om_cli *c);

#endif
