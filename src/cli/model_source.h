/* The hub configured by the command line, the environment and the configuration file. */
#ifndef OM_MODEL_SOURCE_H
#define OM_MODEL_SOURCE_H

#include "cli/cli.h"
#include "hub/hub.h"

extern const om_opt_group om_hub_options;

/* Read the manifest, and set up a hub that fetches its files. */
om_status om_cli_hub(om_cli *c, om_hub *h, om_manifest *m);

#endif
