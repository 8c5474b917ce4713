/* SPDX-License-Identifier: Apache-2.0 */
/* States of a training of which every rank has a part: a state of the step, flat, in equal parts by rank, the last ones with
 * zeros after their elements.  States of the same size on both sides are whole on every rank. */
#ifndef OM_RANK_STATES_H
#define OM_RANK_STATES_H

#include "cli/rank_group.h"
#include "onnxmem/trainer.h"

/* The state of this name; NULL: there is none. */
const om_tensor *om_rank_states_find(const om_trainer *t, const char *name);

/* All states, from those of all ranks: `*whole`, a trainer of the program `step` as it was before it was divided, which the
 * caller frees; NULL on ranks other than 0.  Called by all ranks. */
om_status om_rank_states_gather(om_cli *c, const om_ranks *r, const om_prog *step, const om_trainer *parts, om_trainer **whole);

/* The other way: rank 0 gives every rank its part.  `whole` is NULL on other ranks. */
om_status om_rank_states_divide(om_cli *c, const om_ranks *r, const om_trainer *whole, om_trainer *parts);

#endif
