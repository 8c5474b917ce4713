/* SPDX-License-Identifier: Apache-2.0 */
/* backward: adds the backward pass of a loss to the program.
 *
 * The gradient rules of the operators build the ops; this pass applies what the
 * options request.  With an optimizer the program becomes a training step. */
#include <config.h>

#include <stdlib.h>

#include "base/split.h"
#include "onnxmem/autodiff.h"
#include "onnxmem/pass.h"

/* "" is the value of an omitted option. */
static const char *
text_of(const om_run *r, const char *name)
{
	const char *text = om_option(r, name);

	return *text ? text : NULL;
}

static om_status
read_switch(om_run *r, const char *name, bool *on)
{
	const char *text = om_option(r, name);

	*on = strcmp(text, "yes") == 0;
	if (!*on && strcmp(text, "no") != 0)
		return om_fail(r->session, OM_USAGE, "option %s must be yes or no", name);
	return OM_OK;
}

static om_status
number_of(const om_run *r, const char *name, double *out)
{
	const char *text = om_option(r, name);
	char *end;

	if (!*text)
		return OM_OK;
	*out = strtod(text, &end);
	if (*end || !(*out >= 0))
		return om_fail(r->session, OM_USAGE, "option %s must be a number of at least 0, not %s", name, text);
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	om_train_options l = OM_TRAIN_OPTIONS;
	const uint32_t before = p->first->nop;
	const char *wrt = text_of(r, "wrt");

	l.loss = text_of(r, "loss");
	l.loss_fn = text_of(r, "loss-fn");
	l.output = text_of(r, "output");
	l.label = text_of(r, "label");
	l.optimizer = text_of(r, "optimizer");
	if (wrt && strcmp(wrt, "all") != 0)
		l.wrt = om_split(r->scratch, wrt, "+", &l.nwrt);  /* a comma ends a pass */
	OM_TRY(read_switch(r, "fused-gradients", &l.functions));
	OM_TRY(read_switch(r, "fused-updates", &l.fuses_updates));
	OM_TRY(number_of(r, "clip-norm", &l.clip_norm));
	OM_TRY(number_of(r, "clip-value", &l.clip_value));
	OM_TRY(number_of(r, "lr", &l.rate));
	OM_TRY(om_prog_add_training_step(r->session, p, &l));
	om_count(r, "ops", p->first->nop - before);
	om_count(r, "states", p->nio_alias);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"loss", "", "name of the loss"},
	{"loss-fn", "", "loss function to add: cross-entropy, mse"},
	{"output", "", "value that the loss function reads; the first result"},
	{"label", "", "name of the new input with the labels; label"},
	{"wrt", "all", "values to differentiate by, separated by +; all: the weights that the loss depends on"},
	{"optimizer", "", "sgd, momentum, nesterov, adam, adamw, rmsprop, adagrad, lamb; without one, gradients become results"},
	{"lr", "", "default of the input lr; 0.001"},
	{"clip-norm", "", "largest global L2 norm of all gradients"},
	{"clip-value", "", "largest absolute value of a gradient element"},
	{"fused-gradients", "no", "yes: use gradient ops where an operator has one"},
	{"fused-updates", "no", "yes: update each parameter in one op"},
	{0}
};

static const om_pass_counter counters[] = {
	{"ops", "ops that were added"},
	{"states", "results that become parameters of the next run"},
	{0}
};

OM_PASS(
	.name = "backward",
	.brief = "add the gradients of a loss, or make a training step",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES,
	.gives = 0,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.options = options,
	.counters = counters,
	.run = run)
