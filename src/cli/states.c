/* SPDX-License-Identifier: Apache-2.0 */
/* States of a model, `--tie`: outputs that replace inputs in the next run. */
#include <config.h>

#include "cli/cli.h"
#include "onnxmem/builder.h"
#include "report/report.h"

om_status
om_cli_states(om_cli *c)
{
	const char *text;

	for (size_t at = 0; (text = om_cli_next(c, "tie", &at));) {
		const om_status st = om_prog_states_by_name(c->session, c->loaded, text);
		if (st != OM_OK)
			return om_note(c->session, st, "--tie %s", text);
		if (c->loaded->nio_alias == 0)
			om_warn(c->session, "--tie %s: no input and output are named as exporters of decoders name a state", text);
	}
	return OM_OK;
}

void
om_cli_tell_states(om_cli *c)
{
	uint32_t n;
	const om_report_state *state = om_report_states(c->prog, c->mem, &n);

	for (uint32_t k = 0; k < n; k++)
		if (state[k].reason)
			om_warn(c->session, "output %s is not in the memory of input %s: %s", om_clean_text(c->mem, state[k].output->name),
				om_clean_text(c->mem, state[k].input->name), state[k].reason);
}
