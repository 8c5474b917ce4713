/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that were written are read again before anybody else does. */
#ifndef OM_CLI_READ_BACK_H
#define OM_CLI_READ_BACK_H

#include "cli/cli.h"

/* Read the plan back, from the document `path` or, if that is NULL, from the model, as another program
 * would, and verify it. */
om_status om_cli_read_back(om_cli *c, const char *path);

#endif
