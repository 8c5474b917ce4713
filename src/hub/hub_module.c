/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers and archives, by the module that has their libraries. */
#include <config.h>

#include "base/load_module.h"
#include "hub/hub_module.h"

static const om_hub_calls *
find_calls(void)
{
	return om_load_module(OM_HUB_MODULE, "om_hub_module_calls");
}

void
om_transfer_run(om_transfer *t)
{
	const om_hub_calls *calls = find_calls();

	if (calls) {
		calls->transfer(t);
		return;
	}
	if (t->hook) {
		t->hook->run(t->hook->arg, t);
		return;
	}
	t->end = OM_TRANSFER_LOCAL_ERROR;
	t->received = 0;
	t->retry_after = 0;
	snprintf(t->reason, sizeof t->reason, "the module for downloads cannot be loaded: %s; onnxmem.fetch() in Python takes none", om_load_module_error());
}

om_status
om_hub_unpack(om_hub *h, const char *archive, const char **folder)
{
	const om_hub_calls *calls = find_calls();

	return calls ? calls->unpack(h, archive, folder)
		: om_fail(h->session, OM_IO, "%s cannot be unpacked: the module for archives cannot be loaded: %s", archive, om_load_module_error());
}
