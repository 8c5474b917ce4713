/* SPDX-License-Identifier: Apache-2.0 */
/* grad: write a model with its gradients, or a training step. */
#include <config.h>

#include <string.h>

#include "cli/cli.h"
#include "base/split.h"
#include "grad/old_program.h"
#include "onnxmem/autodiff.h"

static om_status
read_numbers(om_cli *c, om_train_options *l)
{
	OM_TRY(om_cli_float(c, "clip-norm", &l->clip_norm));
	OM_TRY(om_cli_float(c, "clip-value", &l->clip_value));
	OM_TRY(om_cli_float(c, "lr", &l->rate));
	OM_TRY(om_cli_float(c, "momentum", &l->momentum));
	OM_TRY(om_cli_float(c, "beta1", &l->beta1));
	OM_TRY(om_cli_float(c, "beta2", &l->beta2));
	OM_TRY(om_cli_float(c, "epsilon", &l->epsilon));
	return om_cli_float(c, "weight-decay", &l->decay);
}

static om_status
read_options(om_cli *c, om_train_options *l)
{
	const char *wrt = om_cli_option(c, "wrt");

	*l = (om_train_options)OM_TRAIN_OPTIONS;
	l->loss = om_cli_option(c, "loss");
	l->loss_fn = om_cli_option(c, "loss-fn");
	l->output = om_cli_option(c, "output");
	l->label = om_cli_option(c, "label");
	l->optimizer = om_cli_option(c, "optimizer");
	l->trains = om_cli_has(c, "train-mode");
	l->keeps_outputs = om_cli_has(c, "keep-outputs");
	l->functions = om_cli_has(c, "fused-gradients");
	l->fuses_updates = om_cli_has(c, "fused-updates");
	if (wrt && strcmp(wrt, "all") != 0)
		l->wrt = om_split(c->mem, wrt, ",", &l->nwrt);
	if (!l->loss && !l->loss_fn)
		return om_fail(c->session, OM_USAGE, "a loss is required: --loss NAME or --loss-fn NAME");
	if (wrt && strcmp(wrt, "all") != 0 && l->nwrt == 0)
		return om_fail(c->session, OM_USAGE, "option --wrt must be a list of names separated by commas, or all");
	return read_numbers(c, l);
}

/* The form of the output: a training step, or training information. */
static om_status
read_form(om_cli *c, om_train_options *l)
{
	const char *emit = om_cli_option(c, "emit");

	if (!emit || strcmp(emit, "train-step") == 0)
		return OM_OK;
	if (strcmp(emit, "training-info") != 0)
		return om_fail(c->session, OM_USAGE, "option --emit must be train-step or training-info, not %s", emit);
	if (!l->optimizer)
		return om_fail(c->session, OM_USAGE, "training information describes updates: --emit training-info requires an "
			"--optimizer");
	if (l->trains)
		return om_fail(c->session, OM_USAGE, "--train-mode changes the graph, which --emit training-info leaves as it is");
	l->copies = true;
	return OM_OK;
}

static om_status
write_model(om_cli *c, const om_train_options *l, const char *out)
{
	if (l->copies) {
		OM_TRY(om_model_train(c->session, c->model, c->prog));
	} else {
		om_model_strip(c->model);
		OM_TRY(om_model_update(c->session, c->model, c->prog));
	}
	return om_model_save(c->session, c->model, out);
}

/* A graph of an old opset cannot hold gradients: it is converted first. */
static om_status
renew_model(om_cli *c)
{
	if (!om_prog_is_old(c->prog) || !c->model)
		return OM_OK;
	OM_TRY(om_host_run(c->host, c->prog, "convert-opset"));
	om_model_strip(c->model);
	return om_model_update(c->session, c->model, c->prog);
}

static om_status
run(om_cli *c)
{
	const char *in = c->arg[0], *out = c->arg[1];
	om_train_options l;

	OM_TRY(read_options(c, &l));
	OM_TRY(read_form(c, &l));
	OM_TRY(om_cli_own_path(c, in, out));
	OM_TRY(om_cli_load(c, in));
	OM_TRY(om_cli_shapes(c, NULL, false));
	OM_TRY(om_cli_host(c));
	OM_TRY(om_host_run(c->host, c->prog, "inline,shapes"));
	if (l.copies)
		OM_TRY(renew_model(c));
	OM_TRY(om_prog_add_training_step(c->session, c->prog, &l));
	OM_TRY(om_verify(c->session, c->prog));
	if (!c->model)
		return om_fail(c->session, OM_USAGE, "%s is a text, not a model", in);
	OM_TRY(write_model(c, &l, out));
	om_cli_tell_values(c, out);
	om_info(c->session, "%s: %u ops, %u inputs, %u outputs, %u of them states", out, c->prog->first->nop,
		c->prog->first->nparam, c->prog->first->nresult, c->prog->nio_alias);
	return OM_OK;
}

static const om_opt opts[] = {
	{"loss", "NAME", "the loss: a value of the graph with one element; with --loss-fn, its name [loss]"},
	{"loss-fn", "NAME", "add a loss function: cross-entropy over axis 1, or mse"},
	{"output", "NAME", "the value that the loss function reads [the first output]"},
	{"label", "NAME", "name of the new input with the labels [label]"},
	{"wrt", "NAMES", "values to compute gradients for, separated by commas [all weights that the loss depends on]"},
	{"train-mode", NULL, "run BatchNormalization and Dropout in training mode"},
	{"keep-outputs", NULL, "keep the outputs of the model as outputs of the step"},
	{0}
};

static const om_opt update_opts[] = {
	{"clip-norm", "X", "clip the global L2 norm of all gradients to X"},
	{"clip-value", "X", "clip every gradient element to [-X, X]"},
	{"optimizer", "NAME", "make a training step with sgd, momentum, nesterov, adam, adamw, rmsprop, adagrad or lamb [none: gradients are outputs]"},
	{"lr", "X", "default of the input lr, the learning rate [0.001]"},
	{"momentum", "X", "coefficient of momentum and nesterov [0.9]"},
	{"beta1", "X", "coefficient of adam, adamw and lamb [0.9]"},
	{"beta2", "X", "coefficient of adam, adamw, lamb and rmsprop [0.999]"},
	{"epsilon", "X", "constant of adam, adamw, lamb, rmsprop and adagrad [1e-8]"},
	{"weight-decay", "X", "weight decay [0]"},
	{"fused-gradients", NULL, "compute the gradients of a convolution, pooling or batch normalization in one op, which\n"
		"                            OUT defines as a function [standard operators only]"},
	{"fused-updates", NULL, "update each weight in one op, which OUT defines as a function [standard operators only]"},
	{"emit", "FORM", "train-step, or training-info: leave the graph unchanged and add training information [train-step]"},
	{0}
};

static const om_opt_group group = {"gradients", opts}, update_group = {"optimizer", update_opts};

const om_cmd om_grad_cmd = {
	.name = "grad", .usage = "IN OUT --loss NAME|--loss-fn NAME [options]",
	.brief = "add gradients to a model, or make it a training step",
	.text = "OUT is IN plus ops that compute the gradients of a loss, all of them standard operators.  Without --optimizer the "
		"gradients are outputs: NAME_grad for the weight NAME.  With --optimizer, OUT is a training step for `onnxmem train` or "
		"any other runtime: each weight is an input, whose default is its old elements, and its new elements are an output.  "
		"With --fused-gradients, gradients for which the domain org.onnxmem.grad has an op are computed by it, and with "
		"--fused-updates, a weight and its states are updated by one op of this domain; OUT defines these "
		"ops as functions, and `onnxmem` has kernels for them.  A model below opset 16 is converted to opset 17 first.",
	.min_args = 2, .max_args = 2, .output_arg = 2, .group = {&group, &update_group, &om_shape_options}, .run = run,
};
