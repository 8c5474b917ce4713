/* SPDX-License-Identifier: Apache-2.0 */
/* Setup and teardown of a trial. */
#include <config.h>

#include <string.h>

#include "walk.h"

void
trial_start(struct trial *t)
{
	t->op = NULL;
	t->session = om_session_new();
	t->prog = om_prog_new();
	om_block_new(t->prog, NULL, NULL, "trial");
	t->state = t->variant + 1;
	memset(t->is_steering, 0, sizeof t->is_steering);
}

void
trial_end(struct trial *t)
{
	om_prog_free(t->prog);
	om_session_free(t->session);
}
