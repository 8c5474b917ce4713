/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation of a model on samples that it was not trained on. */
#ifndef OM_EVALUATE_H
#define OM_EVALUATE_H

#include "cli/dataset.h"
#include "onnxmem/trainer.h"

/* The inference model: its constants have the names of the states of the step. */
typedef struct om_net {
	const char *path;
	om_model *model;
	om_prog *prog;           /* as loaded; copies of it get the current weights */
	om_samples samples;
	const char *label;       /* the sample tensor with which the output is compared */
} om_net;

typedef struct om_score {
	bool is_share;           /* accuracy, `right` of `all`; otherwise `error`, the mean squared error */
	int64_t right, all;
	double error;
} om_score;

/* Load the model; OM_USAGE if none of its weights is a state. */
om_status om_net_load(om_cli *c, const char *path, const om_trainer *t, om_net *net);
void om_net_free(om_net *net);

/* Samples for the evaluation.  The label is the only sample input of the step that the model
 * does not have; otherwise `label` names it. */
om_status om_net_samples(om_cli *c, om_net *net, const char *path, const om_prog *step, const om_step *parts,
	const char *label);

/* Run the model with the current weights over all samples in batches; its first output is
 * compared with the label.  The class is the argmax along the second dim. */
om_status om_net_score(om_cli *c, om_net *net, const om_trainer *t, int64_t batch, om_score *out);

/* Write the model with the current weights. */
om_status om_net_save(om_cli *c, om_net *net, const om_trainer *t, const char *path);

#endif
