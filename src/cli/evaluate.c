/* SPDX-License-Identifier: Apache-2.0 */
/* Inference models with trained weights: evaluated on samples, and saved.
 *
 * Each evaluation plans its own copy of the program, because folded values depend on the weights.  The
 * last batch is padded with samples that are not counted. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "cli/data.h"
#include "base/shape.h"
#include "cli/evaluate.h"
#include "onnxmem/builder.h"

/* ---- The net. ---- */

om_status
om_net_load(om_cli *c, const char *path, const om_trainer *t, om_net *net)
{
	const char *name, *all = "";
	bool any = false;

	net->path = path;
	OM_TRY(om_model_load(c->session, path, &net->model));
	OM_TRY(om_model_import(c->session, net->model, &net->prog));
	for (uint32_t k = 0; om_trainer_state(t, k, &name); k++) {
		any |= om_model_has_weight(net->model, name);
		if (k < 8)
			all = om_printf(c->mem, "%s%s%s", all, k ? ", " : "", name);
	}
	return any ? OM_OK : om_fail(c->session, OM_USAGE, "%s has no weight that the step trains: it trains %s", path, all);
}

void
om_net_free(om_net *net)
{
	om_prog_free(net->prog);
	om_model_free(net->model);
}

om_status
om_net_save(om_cli *c, om_net *net, const om_trainer *t, const char *path)
{
	const om_tensor *state;
	const char *name;

	for (uint32_t k = 0; (state = om_trainer_state(t, k, &name)); k++)
		if (om_model_has_weight(net->model, name))
			OM_TRY(om_model_set_weight(c->session, net->model, name, state));
	if (om_model_strip(net->model))
		om_info(c->session, "the plan of %s is not written to %s", net->path, path);
	return om_model_save(c->session, net->model, path);
}

/* ---- Samples. ---- */

/* The only sample input that the model does not have. */
static const char *
find_label(const om_prog *net, const om_prog *step, const om_step *parts)
{
	const char *label = NULL;

	for (uint32_t k = 0; k < parts->nsample; k++) {
		const char *name = step->first->param[parts->sample[k]]->name;
		if (om_cli_input(net, name))
			continue;
		if (label)
			return NULL;
		label = name;
	}
	return label;
}

om_status
om_net_samples(om_cli *c, om_net *net, const char *path, const om_prog *step, const om_step *parts, const char *label)
{
	OM_TRY(om_samples_load(c, path, &net->samples));
	net->label = label ? label : find_label(net->prog, step, parts);
	return net->label ? OM_OK : om_fail(c->session, OM_USAGE, "which input of the step %s is to be rated by is not clear: "
		"name it with --label", net->path);
}

static const om_tensor *
label_of(const om_net *net)
{
	for (size_t k = 0; k < net->samples.n; k++)
		if (strcmp(net->samples.entry[k].name, net->label) == 0)
			return &net->samples.entry[k].t;
	return NULL;
}

/* ---- Comparing. ---- */

/* The output has one more dim than the label, the second one: that of the classes. */
static bool
is_classes(const om_tensor *out, const om_tensor *label)
{
	bool same = out->shape.rank == label->shape.rank + 1 && !om_dtype_is_float(label->type);

	for (int d = 1; same && d < label->shape.rank; d++)
		same = label->shape.dim[d] == out->shape.dim[d + 1];
	return same && out->shape.dim[1] > 0;
}

static bool
is_alike(const om_tensor *out, const om_tensor *label)
{
	return om_shape_span(&out->shape, 1, out->shape.rank) == om_shape_span(&label->shape, 1, label->shape.rank);
}

static int64_t
best_class(const om_tensor *out, int64_t sample, int64_t at, int64_t inner)
{
	const int64_t n = out->shape.dim[1];
	const int64_t base = sample * n * inner + at;
	int64_t best = 0;

	for (int64_t k = 1; k < n; k++)
		if (om_data_number(out, base + k * inner) > om_data_number(out, base + best * inner))
			best = k;
	return best;
}

/* Compare `n` samples of the output with those of the label from `from` on. */
static om_status
compare(om_cli *c, const om_net *net, const om_tensor *out, int64_t from, int64_t n, om_score *score)
{
	const om_tensor *label = label_of(net);
	char got[256], want[256];

	if (out->shape.rank < 1 || (!is_classes(out, label) && !is_alike(out, label)))
		return om_fail(c->session, OM_SHAPE, "%s gives %s %s, which cannot be rated by %s %s", net->path,
			om_dtype_text(out->type), om_shape_text(&out->shape, got, sizeof got), net->label,
			om_shape_text(&label->shape, want, sizeof want));
	const int64_t inner = om_shape_span(&label->shape, 1, label->shape.rank);
	score->is_share = is_classes(out, label);
	for (int64_t s = 0; s < n; s++)
		for (int64_t k = 0; k < inner; k++) {
			const double is = om_data_number(label, (from + s) * inner + k);
			const double off = score->is_share ? 0 : om_data_number(out, s * inner + k) - is;
			score->right += score->is_share && (double)best_class(out, s, k, inner) == is;
			score->error += off * off;
			score->all++;
		}
	return OM_OK;
}

/* ---- Running. ---- */

struct rating {
	om_cli *c;
	om_net *net;
	om_prog *prog;
	om_exec *exec;
	const om_tensor **all;    /* by parameter; NULL: it has a default */
	om_tensor *in;            /* a batch for each parameter */
	int64_t batch;
};

/* The weights of the trainer become constants of the program. */
static void
take_weights(om_prog *p, const om_trainer *t)
{
	const om_tensor *state;
	const char *name;

	for (uint32_t k = 0; (state = om_trainer_state(t, k, &name)); k++) {
		om_value *v = om_value_find(p->first, name);
		if (v && v->data && v->data->type == state->type && om_shape_equal(&v->shape, &state->shape))
			v->data = state;
	}
}

static om_status
bind_samples(struct rating *r)
{
	const om_block *graph = r->prog->first;

	r->all = OM_NEWN(r->c->mem, const om_tensor *, graph->nparam);
	r->in = OM_NEWN(r->c->mem, om_tensor, graph->nparam);
	for (uint32_t k = 0; k < graph->nparam; k++) {
		const om_value *v = graph->param[k];
		if (v->data)
			continue;
		OM_TRY(om_samples_want(r->c, &r->net->samples, v, r->net->path, &r->all[k]));
		if (v->shape.rank > 0 && v->shape.dim[0] >= 0)
			r->batch = v->shape.dim[0];
	}
	if (r->batch < 1)
		return om_fail(r->c->session, OM_SHAPE, "%s accepts no samples: the first dim of its input is 0", r->net->path);
	for (uint32_t k = 0; k < graph->nparam; k++) {
		if (!r->all[k])
			continue;
		r->in[k] = *r->all[k];
		r->in[k].shape.dim[0] = r->batch;
		uint64_t bytes = 0;
		if (!om_tensor_bytes(r->in[k].type, &r->in[k].shape, &bytes))
			return om_fail(r->c->session, OM_SHAPE, "a batch of %lld samples is too large", (long long)r->batch);
		r->in[k].data = om_allocn(r->c->mem, 1, bytes ? bytes : 1);
	}
	return OM_OK;
}

static om_status
bind_batch(struct rating *r)
{
	om_binding *b = om_binding_new();
	om_status st = b ? om_cli_bind_tensors(r->c, r->prog, b, r->in) : OM_MEMORY;

	if (st == OM_OK) {
		om_binding_rest(b, 0);
		st = om_bind(r->c->session, r->prog, b);
	}
	om_binding_free(b);
	return st;
}

static om_status
run_batch(struct rating *r, int64_t from, om_score *score)
{
	const int64_t left = r->net->samples.count - from, n = left < r->batch ? left : r->batch;
	int64_t *order = OM_NEWN(r->c->mem, int64_t, (size_t)r->batch);

	for (int64_t k = 0; k < r->batch; k++)
		order[k] = from + (k < n ? k : 0);
	for (uint32_t k = 0; k < r->prog->first->nparam; k++)
		if (r->all[k]) {
			om_samples_take(r->all[k], order, r->batch, r->in[k].data);
			OM_TRY(om_exec_input(r->exec, k, &r->in[k]));
		}
	OM_TRY(om_exec_run(r->exec));
	return compare(r->c, r->net, om_exec_result(r->exec, 0), from, n, score);
}

/* Plan for the executor, with the options of the command about threads and precision alone. */
static om_status
prepare(struct rating *r)
{
	om_cli *c = r->c;
	om_exec_options o = OM_EXEC_OPTIONS(.precise = om_cli_has(c, "precise"));

	OM_TRY(om_cli_threads(c, &o.threads));
	const om_plan_request request = OM_PLAN_REQUEST(.target = OM_TARGET_CPU, .threads = o.threads, .precise = o.precise);
	OM_TRY(om_cli_host(c));
	OM_TRY(om_host_request(c->host, &request));
	OM_TRY(om_host_run(c->host, r->prog, om_request_pipeline(&request)));
	return om_exec_new(c->session, r->prog, r->prog->plan, &o, &r->exec);
}

static om_status
rate(struct rating *r, const om_trainer *t, om_score *score)
{
	om_cli *c = r->c;
	const om_tensor *is = label_of(r->net);

	take_weights(r->prog, t);
	OM_TRY(bind_samples(r));
	if (!is || is->shape.rank < 1 || is->shape.dim[0] != r->net->samples.count)
		return om_fail(c->session, OM_USAGE, "%s has no tensor %s of as many samples as %s takes", r->net->samples.path,
			r->net->label, r->net->path);
	OM_TRY(bind_batch(r));
	OM_TRY(prepare(r));
	for (int64_t from = 0; from < r->net->samples.count; from += r->batch)
		OM_TRY(run_batch(r, from, score));
	return OM_OK;
}

om_status
om_net_score(om_cli *c, om_net *net, const om_trainer *t, int64_t batch, om_score *out)
{
	struct rating r = {.c = c, .net = net, .batch = batch};

	*out = (om_score){0};
	OM_TRY(om_prog_bind(c->session, net->prog, NULL, &r.prog));
	const om_cli outer = *c;         /* memory and the list of passes are private to this evaluation */
	c->mem = om_arena_new();
	c->ran = NULL;
	c->nran = c->capran = 0;
	om_status st = rate(&r, t, out);
	if (st != OM_OK)
		om_note(c->session, st, "rating %s", net->path);
	om_arena_free(c->mem);
	c->mem = outer.mem;
	c->ran = outer.ran;
	c->nran = outer.nran;
	c->capran = outer.capran;
	om_exec_free(r.exec);
	om_prog_free(r.prog);
	if (!out->is_share && out->all)
		out->error /= (double)out->all;
	return st;
}
