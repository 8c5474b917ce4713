/* SPDX-License-Identifier: Apache-2.0 */
/* The hub configured by the command line, the environment and the configuration file. */
#ifndef OM_MODEL_SOURCE_H
#define OM_MODEL_SOURCE_H

#include "cli/cli.h"
#include "hub/hub.h"

extern const om_opt_group om_hub_options;

/* The file of a name for which om_hub_is_direct() holds; `sum`: its checksum, or NULL. */
om_status om_cli_direct(om_cli *c, om_hub *h, const char *name, const char *sum, om_hub_file *f);

/* Read the manifest, and set up a hub that fetches its files.  Without `m` it fetches files with addresses of their own. */
om_status om_cli_hub(om_cli *c, om_hub *h, om_manifest *m);

#endif
