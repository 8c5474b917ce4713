/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a training: a line of JSON for each step and each epoch. */
#ifndef OM_TRAIN_LOG_H
#define OM_TRAIN_LOG_H

#include "cli/checkpoint.h"
#include "cli/evaluate.h"

typedef struct om_train_log {
	om_cli *c;
	const char *path;
	FILE *to;                /* NULL: there is no log */
} om_train_log;

/* Open the file of --log, if there is one: new, or, with --resume, at its end. */
om_status om_train_log_open(om_cli *c, om_train_log *log);
void om_train_log_close(om_train_log *log);    /* also if it is not open */

/* The step that has ended, with progress `at` after it; `samples` of its batch, learning rate `rate` (NAN: it has none). */
om_status om_train_log_step(om_train_log *log, const om_progress_of *at, int64_t samples, double loss, double rate);

/* The epoch that has ended: the mean loss over its samples, and what the model scored (NULL: it was not evaluated). */
om_status om_train_log_epoch(om_train_log *log, const om_progress_of *at, double loss, const om_score *score);

#endif
