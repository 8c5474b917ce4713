/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of enumerations. */
#include <config.h>

#include "ir/enum_text.h"

static const char *const targets[] = {
	[OM_TARGET_GENERIC] = "generic",
	[OM_TARGET_CPU] = "cpu",
};

const char *
om_target_text(om_target t)
{
	return targets[t];
}

bool
om_target_find(const char *text, om_target *out)
{
	for (size_t k = 0; k < sizeof targets / sizeof targets[0]; k++)
		if (strcmp(targets[k], text) == 0) {
			*out = (om_target)k;
			return true;
		}
	return false;
}

static const char *const phases[] = {"", "forward", "backward", "update"};

const char *
om_phase_text(om_phase phase)
{
	return phases[phase];
}

om_phase
om_phase_find(const char *text)
{
	for (size_t k = 1; k < sizeof phases / sizeof phases[0]; k++)
		if (strcmp(phases[k], text) == 0)
			return (om_phase)k;
	return OM_NO_PHASE;
}
