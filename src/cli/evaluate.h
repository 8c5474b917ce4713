/* How good a net is on samples that it was not trained on. */
#ifndef OM_EVALUATE_H
#define OM_EVALUATE_H

#include "cli/dataset.h"
#include "onnxmem/trainer.h"

/* The net: a model whose constants are called as the states of the step. */
typedef struct om_net {
	const char *path;
	om_model *model;
	om_samples samples;
	const char *label;       /* the samples' tensor that the output is compared with */
} om_net;

typedef struct om_score {
	bool is_share;           /* right of all; else `error`, the mean of squares */
	int64_t right, all;
	double error;
} om_score;

/* Load the model; OM_USAGE where none of its weights is a state. */
om_status om_net_load(om_cli *c, const char *path, const om_trainer *t, om_net *net);
void om_net_free(om_net *net);

/* Samples to rate it by.  What the step takes and the net does not is the label, where that is
 * one; else `label` says which. */
om_status om_net_samples(om_cli *c, om_net *net, const char *path, const om_prog *step, const om_step *parts,
	const char *label);

/* Run the net, with weights as they are now, over all samples, some in a batch: its first
 * output is compared with the label.  Classes are those of largest number along the second
 * dim. */
om_status om_net_score(om_cli *c, om_net *net, const om_trainer *t, int64_t batch, om_score *out);

/* Write the model with weights as they are now. */
om_status om_net_save(om_cli *c, om_net *net, const om_trainer *t, const char *path);

#endif
