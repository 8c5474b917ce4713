/* Where a training is, and its states, in a .npz file. */
#ifndef OM_CHECKPOINT_H
#define OM_CHECKPOINT_H

#include "cli/cli.h"
#include "onnxmem/trainer.h"

typedef struct om_progress_of {
	uint64_t epoch, batch;   /* that come next, from 0 */
	uint64_t seed;
	int64_t samples, size;   /* in all, in a batch */
	double loss;             /* sum over the samples of this epoch so far */
	uint64_t steps;          /* so far */
} om_progress_of;

/* The file is there whole, or as it was. */
om_status om_checkpoint_save(om_cli *c, const char *path, const om_trainer *t, const om_progress_of *at);

/* Fills in what is in the file, which has to be of the same seed, samples and size of a
 * batch: otherwise it would be another training that goes on. */
om_status om_checkpoint_load(om_cli *c, const char *path, om_trainer *t, om_progress_of *at);

#endif
