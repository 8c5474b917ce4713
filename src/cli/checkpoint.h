/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a training and its states, in a .npz file. */
#ifndef OM_CHECKPOINT_H
#define OM_CHECKPOINT_H

#include "cli/cli.h"
#include "onnxmem/trainer.h"

typedef struct om_progress_of {
	uint64_t epoch, batch;   /* the next ones, from 0 */
	uint64_t seed;
	int64_t samples, size;   /* number of samples; samples per batch */
	double loss;             /* sum over the samples of this epoch so far */
	uint64_t steps;          /* so far */
} om_progress_of;

/* Atomic: the file is either complete or unchanged. */
om_status om_checkpoint_save(om_cli *c, const char *path, const om_trainer *t, const om_progress_of *at);

/* Restores the states and the progress.  The seed, the number of samples and the batch size must
 * be those of the checkpoint: otherwise the training would not be the same. */
om_status om_checkpoint_load(om_cli *c, const char *path, om_trainer *t, om_progress_of *at);

#endif
