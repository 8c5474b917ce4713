/* SPDX-License-Identifier: Apache-2.0 */
/* The module onnxmem-hub.so: what fetching needs of libcurl and libarchive.  It is loaded by the first transfer or
 * archive. */
#ifndef OM_HUB_MODULE_H
#define OM_HUB_MODULE_H

#include "hub/hub.h"

typedef struct om_hub_calls {
	void (*transfer)(om_transfer *t);                                               /* om_transfer_run() */
	om_status (*unpack)(om_hub *h, const char *archive, const char **folder);       /* om_hub_unpack() */
} om_hub_calls;

#define OM_HUB_MODULE "onnxmem-hub.so"

/* What the module exports, by this name. */
OM_API extern const om_hub_calls om_hub_module_calls;

/* Within the module. */
om_status om_unpack_archive(om_hub *h, const char *archive, const char **folder);

#endif
