/* SPDX-License-Identifier: Apache-2.0 */
/* train: run a training step over the samples of a file for several epochs.
 *
 * The order of the samples depends on the seed and the number of the epoch only, and nothing else
 * is random: a training resumed from a checkpoint is bitwise the same.
 *
 * A step is planned for a full batch and, if the model leaves the number of samples open, for the
 * remainder at the end of an epoch; both share the same states. */
#include <config.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/shape.h"
#include "cli/checkpoint.h"
#include "cli/data.h"
#include "cli/evaluate.h"
#include "cli/rank_group.h"
#include "cli/rank_states.h"
#include "cli/stages.h"
#include "cli/train_log.h"
#include "onnxmem/version.h"

/* The step, planned for a batch size. */
struct machine {
	om_prog *prog;
	om_exec *exec;
	int64_t size;            /* of a batch of this rank */
	int64_t from, all;       /* its first sample in the batch of all ranks, and the size of that */
	uint32_t micro;          /* micro-batches of a batch */
	om_tensor *in;           /* by parameter of the step: a batch */
	uint32_t *param;         /* by parameter of the step: that of `prog`; UINT32_MAX: this part of it has none */
	uint32_t loss;           /* result of `prog` */
};

struct training {
	om_cli *c;
	om_step step;
	om_trainer *trainer;
	om_samples samples;
	const om_tensor **all;   /* by parameter of the graph; NULL: not a sample input */
	om_prog *prog;           /* the step with inferred shapes, not bound to a batch size */
	struct machine full, rest;
	int64_t *order;
	uint64_t batches;        /* per epoch */
	float rate;
	uint64_t epochs, every;
	double decay;
	om_rate_schedule schedule;
	om_progress_of at;
	om_net net;
	om_ranks ranks;
	om_rank_step how;        /* it is divided by */
	om_stages stages;
	om_train_log log;        /* of rank 0 */
	uint64_t copied;
	double next_ms;
	om_comm_times prepared;  /* before the first step */
};

/* ---- Planning the step. ---- */

static void
free_machine(struct machine *m)
{
	om_exec_free(m->exec);
	om_prog_free(m->prog);
}

static om_status
make_batch(struct training *t, struct machine *m)
{
	om_cli *c = t->c;

	m->in = OM_NEWN(c->mem, om_tensor, t->prog->first->nparam);
	for (uint32_t k = 0; k < t->prog->first->nparam; k++) {
		uint64_t bytes;
		if (!t->all[k])
			continue;
		m->in[k] = *t->all[k];
		m->in[k].shape.dim[0] = m->size;
		if (!om_tensor_bytes(m->in[k].type, &m->in[k].shape, &bytes))
			return om_fail(c->session, OM_SHAPE, "a batch of %lld samples is too large", (long long)m->size);
		m->in[k].data = om_allocn(c->mem, 1, bytes ? bytes : 1);
	}
	return OM_OK;
}

static om_status
bind_rate(struct training *t, struct machine *m)
{
	const uint32_t k = t->step.rate;

	if (k == UINT32_MAX || isnan(t->rate))
		return OM_OK;
	const om_value *v = t->prog->first->param[k];
	m->in[k] = (om_tensor){.type = v->type.elem, .shape = v->shape, .data = om_allocn(t->c->mem, 1, sizeof(double))};
	if (!om_dtype_is_float(v->type.elem) || om_dtype_bits(v->type.elem) < 16 || !om_shape_is_known(&v->shape)
	    || om_shape_count(&v->shape) != 1)
		return om_fail(t->c->session, OM_UNSUPPORTED, "the learning rate %s is not a floating-point number", v->name);
	return om_exec_input(m->exec, m->param[k], &m->in[k]);
}

static bool
is_for_batch(const struct training *t, const struct machine *m)
{
	for (uint32_t k = 0; k < m->prog->first->nparam; k++)
		if (t->all[k] && !om_shape_equal(&m->prog->first->param[k]->shape, &m->in[k].shape))
			return false;
	return true;
}

/* The plan stored in the model, if it is for the same batch size. */
static om_status
read_plan(struct training *t, struct machine *m)
{
	om_cli *c = t->c;

	OM_TRY(om_cli_host(c));
	OM_TRY(om_host_read_plan(c->host, c->model, m->prog, NULL, NULL));
	if (is_for_batch(t, m)) {
		om_info(c->session, "batches of %lld samples: using the plan in the model", (long long)m->size);
		return OM_OK;
	}
	om_info(c->session, "batches of %lld samples: planning, because the plan in the model is for another size",
		(long long)m->size);
	om_prog_free(c->prog);
	OM_TRY(om_cli_copy(c));
	m->prog = c->prog;
	return OM_OK;
}

static om_status
make_plan(struct training *t, struct machine *m)
{
	const om_stages stages = {.used = t->stages.used, .micro = m->micro, .whole = t->stages.micro,
		.scale = (double)(t->at.size / t->stages.micro) / (double)(m->all / m->micro)};
	om_cli *c = t->c;
	const om_tensor *in;

	OM_TRY(om_stages_divide(c, &stages, m->in, t->prog->first->nparam, &in));
	OM_TRY(om_cli_shapes(c, in, true));
	if (!t->stages.used)
		OM_TRY(om_ranks_shard(c, &t->ranks, &t->how, m->from, m->size, m->all));
	om_stages_plan(c, &stages, &t->ranks);
	OM_TRY(om_cli_passes(c, NULL));
	if (!(m->prog->has & OM_HAS_PLAN) && !om_cli_has(c, "no-reuse"))
		return om_fail(c->session, OM_USAGE, "the passes %s make no plan", om_cli_option(c, "passes"));
	return OM_OK;
}

static om_status
find_plan(struct training *t, struct machine *m)
{
	om_cli *c = t->c;

	OM_TRY(make_batch(t, m));
	if (c->model && om_model_has_plan(c->model) && !om_cli_plan_options(c) && t->ranks.size == 1 && !t->stages.used)
		OM_TRY(read_plan(t, m));
	return m->prog->has & OM_HAS_PLAN ? OM_OK : make_plan(t, m);
}

/* Where the parameters and the loss of the step are in the part of this rank. */
static om_status
find_places(struct training *t, struct machine *m)
{
	const om_block *step = t->prog->first, *own = m->prog->first;
	const char *loss = step->result[t->step.loss]->name;

	m->param = OM_NEWN(t->c->mem, uint32_t, step->nparam);
	for (uint32_t k = 0; k < step->nparam; k++) {
		m->param[k] = UINT32_MAX;
		for (uint32_t i = 0; i < own->nparam; i++)
			if (strcmp(own->param[i]->name, step->param[k]->name) == 0)
				m->param[k] = i;
	}
	for (m->loss = 0; m->loss < own->nresult; m->loss++)
		if (strcmp(own->result[m->loss]->name, loss) == 0)
			return OM_OK;
	return om_fail(t->c->session, OM_RUN, "this rank has no result %s", loss);
}

/* Both machines have the states of the trainer, at the same places. */
static om_status
check_states(struct training *t, const struct machine *m)
{
	const om_prog *p = m->prog;
	const char *name = "";
	uint32_t n = 0;

	while (om_trainer_state(t->trainer, n, &name) && n < p->nio_alias && strcmp(p->first->param[p->io_alias[n].param]->name, name) == 0)
		n++;
	return n == p->nio_alias && !om_trainer_state(t->trainer, n, NULL) ? OM_OK : om_fail(t->c->session, OM_UNSUPPORTED,
		"a last batch of %lld samples would be cut into other parts than one of %lld: leave it out with --drop-last", (long long)m->all,
		(long long)t->at.size);
}

/* A batch that is smaller has as few micro-batches as it takes for none to be larger than those of a whole one. */
static om_status
find_micro(struct training *t, struct machine *m)
{
	const int64_t most = t->at.size / t->stages.micro;

	m->micro = 1;
	if (t->stages.micro == 1)
		return OM_OK;
	if (t->at.size % t->stages.micro)
		return om_fail(t->c->session, OM_USAGE, "a batch of %lld samples cannot be divided into %u micro-batches of equal size",
			(long long)t->at.size, t->stages.micro);
	while (m->all % m->micro || m->all / m->micro > most)
		m->micro++;
	return OM_OK;
}

/* A copy of the loaded step is bound to the batch size, and owned by a machine. */
static om_status
plan_step(struct training *t, struct machine *m, int64_t size)
{
	om_cli *c = t->c;
	om_exec_options o = OM_EXEC_OPTIONS(.no_reuse = om_cli_has(c, "no-reuse"), .poison = om_cli_has(c, "poison"),
		.comm = t->ranks.comm, .keep_states = true);

	*m = (struct machine){.all = size};
	OM_TRY(find_micro(t, m));
	OM_TRY(om_cli_run_limits(c, &o));
	OM_TRY(om_cli_copy(c));
	m->prog = c->prog;
	m->size = size;
	if (!t->stages.used)
		om_ranks_share(&t->ranks, size, &m->from, &m->size);
	const om_status st = find_plan(t, m);
	m->prog = c->prog;
	c->prog = NULL;
	OM_TRY(st);
	OM_TRY(find_places(t, m));
	if (!t->trainer)
		OM_TRY(om_trainer_new(c->session, m->prog, &t->trainer));
	OM_TRY(check_states(t, m));
	o.device_options = c->device_options;
	o.precise |= m->prog->has & OM_HAS_PLAN && m->prog->plan->precise;
	OM_TRY(om_exec_new(c->session, m->prog, o.no_reuse ? NULL : m->prog->plan, &o, &m->exec));
	OM_TRY(om_trainer_bind(t->trainer, m->exec));
	return bind_rate(t, m);
}

/* ---- States of several ranks. ---- */

static bool
is_divided(const struct training *t)
{
	return t->ranks.size > 1 && (t->stages.used || strcmp(t->how.mode, "data") != 0);
}

/* The states as one process has them, on rank 0: called by all ranks.  `*owned` is what the caller frees. */
static om_status
find_whole(struct training *t, om_trainer **whole, om_trainer **owned)
{
	*owned = NULL;
	*whole = t->trainer;
	OM_TRY(om_trainer_fetch(t->trainer));
	if (!is_divided(t))
		return OM_OK;
	const om_status st = (t->stages.used ? om_stages_gather : om_rank_states_gather)(t->c, &t->ranks, t->prog, t->trainer, owned);
	*whole = *owned;
	return st;
}

/* ---- Options. ---- */

/* Ranks divide the samples, or the step. */
static om_status
check_pipeline(om_cli *c)
{
	static const char *const others[] = {"ranks", "shard", "bucket", "overlap"};

	for (size_t k = 0; k < sizeof others / sizeof *others; k++)
		for (int micro = 0; micro < 2; micro++)
			if (om_cli_has(c, others[k]) && om_cli_has(c, micro ? "micro-batches" : "pipeline"))
				return om_fail(c->session, OM_USAGE, "options --%s and --%s do not go together", micro ? "micro-batches" : "pipeline",
					others[k]);
	if (om_cli_has(c, "micro-batches") && !om_cli_has(c, "pipeline") && om_comm_mpi_is_launched())
		return om_fail(c->session, OM_USAGE, "--micro-batches of several ranks requires --pipeline");
	return OM_OK;
}

static om_status
read_numbers(struct training *t)
{
	om_cli *c = t->c;
	const char *schedule = om_cli_option(c, "lr-schedule");
	double rate = NAN;
	uint64_t warmup = 0;

	t->epochs = 1;
	t->decay = 1;
	OM_TRY(om_rank_step_read(c, &t->how));
	OM_TRY(om_stages_read(c, &t->stages));
	OM_TRY(check_pipeline(c));
	if (t->ranks.size > 1 && om_cli_has(c, "device"))
		return om_fail(c->session, OM_USAGE, "options --ranks and --device do not go together: ranks train on the processor");
	OM_TRY(om_cli_number(c, "epochs", 1, UINT32_MAX, &t->epochs));
	OM_TRY(om_cli_number(c, "seed", 0, UINT64_MAX, &t->at.seed));
	OM_TRY(om_cli_number(c, "every", 1, UINT32_MAX, &t->every));
	OM_TRY(om_cli_float(c, "lr", &rate));
	OM_TRY(om_cli_float(c, "lr-decay", &t->decay));
	t->rate = (float)rate;
	OM_TRY(om_cli_number(c, "warmup", 0, UINT32_MAX, &warmup));
	OM_TRY(om_rate_parse(c->session, schedule ? schedule : "constant", warmup, &t->schedule));
	if (t->decay <= 0)
		return om_fail(c->session, OM_USAGE, "option --lr-decay requires a number above 0");
	if ((om_cli_has(c, "resume") || t->every) && !om_cli_has(c, "checkpoint"))
		return om_fail(c->session, OM_USAGE, "--resume and --every require --checkpoint");
	if ((om_cli_has(c, "eval-data") || om_cli_has(c, "save")) && !om_cli_has(c, "model"))
		return om_fail(c->session, OM_USAGE, "--eval-data and --save require --model, the model whose weights the step trains");
	if (!om_cli_has(c, "data"))
		return om_fail(c->session, OM_USAGE, "option --data is required: a file with samples");
	return OM_OK;
}

static om_status
check_rate(struct training *t)
{
	const om_block *graph = t->c->prog->first;
	const bool is_scheduled = om_cli_has(t->c, "lr-schedule") || om_cli_has(t->c, "warmup");
	const uint32_t k = t->step.rate;

	if (k == UINT32_MAX && (!isnan(t->rate) || is_scheduled))
		return om_fail(t->c->session, OM_USAGE, "the step has no learning rate: it has no input called lr");
	if (k == UINT32_MAX)
		return OM_OK;
	if (isnan(t->rate) && !graph->param[k]->data)
		return om_fail(t->c->session, OM_USAGE, "the step requires a learning rate: use --lr");
	if (isnan(t->rate) && graph->param[k]->data->data)
		t->rate = (float)om_data_number(graph->param[k]->data, 0);
	if (isnan(t->rate) && is_scheduled)
		return om_fail(t->c->session, OM_USAGE, "the default of the learning rate is not known here: a schedule requires --lr");
	return OM_OK;
}

/* The batch size fixed by the model, or given by --batch; 0: neither. */
static om_status
find_size(struct training *t, int64_t *size)
{
	const om_block *graph = t->c->prog->first;
	uint64_t requested = 0;

	*size = 0;
	for (uint32_t k = 0; k < t->step.nsample; k++) {
		const om_value *v = graph->param[t->step.sample[k]];
		if (v->shape.rank > 0 && v->shape.dim[0] >= 0)
			*size = v->shape.dim[0];
	}
	*size *= t->stages.used ? t->stages.micro : t->ranks.size;
	OM_TRY(om_cli_number(t->c, "batch", 1, INT32_MAX, &requested));
	if (requested && *size && (int64_t)requested != *size)
		return om_fail(t->c->session, OM_USAGE, "the step takes %lld samples at a time, not %llu", (long long)*size,
			(unsigned long long)requested);
	t->at.size = *size ? *size : (int64_t)requested;
	return OM_OK;
}

/* The batch size, and the remainder at the end of an epoch. */
static om_status
divide(struct training *t, int64_t *left)
{
	enum { USUAL = 32 };
	const int64_t n = t->at.samples = t->samples.count;
	int64_t fixed;

	OM_TRY(find_size(t, &fixed));
	if (!t->at.size)
		t->at.size = USUAL;
	if (!fixed && t->at.size > n)
		t->at.size = n;
	if (t->at.size < t->ranks.size && !t->stages.used)
		return om_fail(t->c->session, OM_USAGE, "a batch of %lld samples has none for some of %u ranks", (long long)t->at.size,
			t->ranks.size);
	t->batches = (uint64_t)(n / t->at.size);
	*left = n % t->at.size;
	if (t->batches == 0)
		return om_fail(t->c->session, OM_USAGE, "%s has %lld samples, but the step takes %lld at a time",
			t->samples.path, (long long)n, (long long)t->at.size);
	if (*left && (fixed || om_cli_has(t->c, "drop-last"))) {
		om_info(t->c->session, "%lld samples are left out of each epoch: batches have %lld", (long long)*left,
			(long long)t->at.size);
		*left = 0;
	}
	t->batches += *left > 0;
	return OM_OK;
}

static om_status
find_samples(struct training *t)
{
	om_cli *c = t->c;
	const om_block *graph = c->prog->first;

	OM_TRY(om_samples_load(c, om_cli_option(c, "data"), &t->samples));
	t->all = OM_NEWN(c->mem, const om_tensor *, graph->nparam);
	for (uint32_t k = 0; k < t->step.nsample; k++) {
		const uint32_t p = t->step.sample[k];
		OM_TRY(om_samples_want(c, &t->samples, graph->param[p], "the step", &t->all[p]));
	}
	t->order = OM_NEWN(c->mem, int64_t, (size_t)t->samples.count);
	return OM_OK;
}

/* The first rank evaluates and saves. */
static om_status
open_net(struct training *t)
{
	om_cli *c = t->c;

	if (t->ranks.rank != 0)
		return OM_OK;
	const char *net = om_cli_option(c, "model"), *held = om_cli_option(c, "eval-data");

	if (net)
		OM_TRY(om_net_load(c, net, t->trainer, &t->net));
	if (net && om_cli_has(c, "save"))
		OM_TRY(om_cli_own_path(c, net, om_cli_option(c, "save")));
	return held ? om_net_samples(c, &t->net, held, t->prog, &t->step, om_cli_option(c, "label")) : OM_OK;
}

static om_status
load_states(struct training *t, om_trainer *to)
{
	const char *path = om_cli_option(t->c, "checkpoint");
	struct stat st;

	if (om_cli_has(t->c, "resume") && stat(path, &st) == 0)
		return om_checkpoint_load(t->c, path, to, &t->at);
	if (om_cli_has(t->c, "resume"))
		om_info(t->c->session, "there is no %s: the training starts at its beginning", path);
	const char *name = om_trainer_first_uninitialized(to);
	return name ? om_fail(t->c->session, OM_USAGE, "%s has no initial value: the model has no default", name)
		: OM_OK;
}

/* Every rank gets its part of the states that rank 0 reads. */
static om_status
resume_parts(struct training *t)
{
	om_trainer *whole = NULL;
	om_status st = OM_OK;

	if (t->ranks.rank == 0)
		st = om_trainer_new(t->c->session, t->prog, &whole);
	if (st == OM_OK && t->ranks.rank == 0)
		st = load_states(t, whole);
	if (st == OM_OK)
		st = om_comm_broadcast(t->ranks.comm, t->c->session, (om_comm_group){0}, &t->at, sizeof t->at, 0);
	if (st == OM_OK)
		st = t->stages.used ? om_stages_spread(t->c, &t->ranks, t->prog, whole, t->trainer)
			: om_rank_states_divide(t->c, &t->ranks, whole, t->trainer);
	om_trainer_free(whole);
	return st;
}

/* All ranks go on with the states of the first. */
static om_status
resume(struct training *t)
{
	const om_tensor *state;
	uint64_t bytes;

	if (is_divided(t))
		return resume_parts(t);
	if (t->ranks.rank == 0)
		OM_TRY(load_states(t, t->trainer));
	if (t->ranks.size == 1)
		return OM_OK;
	OM_TRY(om_comm_broadcast(t->ranks.comm, t->c->session, (om_comm_group){0}, &t->at, sizeof t->at, 0));
	for (uint32_t k = 0; (state = om_trainer_state(t->trainer, k, NULL)); k++)
		if (om_tensor_bytes(state->type, &state->shape, &bytes))
			OM_TRY(om_comm_broadcast(t->ranks.comm, t->c->session, (om_comm_group){0}, state->data, bytes, 0));
	return OM_OK;
}

/* What all ranks must have in common, before the first step. */
static om_status
agree(struct training *t)
{
	om_cli *c = t->c;
	om_sha256 *h = om_sha256_new(c->mem);
	char digest[80] = "", samples[OM_SHA256_TEXT] = "";
	uint64_t bytes;

	if (t->ranks.size == 1)
		return OM_OK;
	const char *options = om_printf(c->mem, "%d %u %llu %llu %lld %llu %llu %d %d %d %d %d %llu %.9g %.17g %s %s %s", t->stages.used, t->stages.micro, (unsigned long long)t->at.seed,
		(unsigned long long)t->epochs, (long long)t->at.size, (unsigned long long)t->how.bucket,
		(unsigned long long)t->how.overlap, t->how.ordered, om_cli_has(c, "no-shuffle"), om_cli_has(c, "drop-last"), om_cli_has(c, "checkpoint"), om_cli_has(c, "eval-data")
		+ 2 * om_cli_has(c, "save"), (unsigned long long)t->every, (double)t->rate, t->decay, t->how.mode,
		om_cli_has(c, "lr-schedule") ? om_cli_option(c, "lr-schedule") : "", om_cli_has(c, "warmup") ? om_cli_option(c, "warmup") : "");
	OM_TRY(om_comm_agree(t->ranks.comm, c->session, "version of onnxmem", om_version(), strlen(om_version())));
	if (c->model)
		OM_TRY(om_model_digest(c->session, c->model, true, digest));
	OM_TRY(om_comm_agree(t->ranks.comm, c->session, "training step", digest, strlen(digest)));
	for (uint32_t k = 0; k < t->prog->first->nparam; k++)
		if (t->all[k] && om_tensor_bytes(t->all[k]->type, &t->all[k]->shape, &bytes))
			om_sha256_add(h, t->all[k]->data, bytes);
	om_sha256_end(h, samples);
	OM_TRY(om_comm_agree(t->ranks.comm, c->session, "set of samples", samples, strlen(samples)));
	return om_comm_agree(t->ranks.comm, c->session, "set of options", options, strlen(options));
}

static om_status
prepare(struct training *t)
{
	om_cli *c = t->c;
	int64_t left = 0;

	OM_TRY(read_numbers(t));
	OM_TRY(om_cli_load(c, c->arg[0]));
	OM_TRY(om_cli_host(c));
	OM_TRY(om_host_run(c->host, c->prog, "inline,shapes"));
	OM_TRY(om_step_find(c->session, c->prog, c->mem, &t->step));
	OM_TRY(check_rate(t));
	OM_TRY(find_samples(t));
	OM_TRY(divide(t, &left));
	t->prog = c->prog;
	c->prog = NULL;
	OM_TRY(agree(t));
	OM_TRY(plan_step(t, &t->full, t->at.size));
	if (left)
		OM_TRY(plan_step(t, &t->rest, left));
	OM_TRY(om_ranks_agree(c, &t->ranks, t->full.prog));
	if (left)
		OM_TRY(om_ranks_agree(c, &t->ranks, t->rest.prog));
	OM_TRY(open_net(t));
	return resume(t);
}

/* ---- Training. ---- */

/* The rate of the next step; NAN: it has none. */
static double
set_rate(struct training *t, const struct machine *m)
{
	const double rate = om_rate_at(&t->schedule, (double)t->rate, t->at.steps) * pow(t->decay, (double)t->at.epoch);
	om_tensor *to = t->step.rate == UINT32_MAX ? NULL : &m->in[t->step.rate];

	if (to && to->data)
		om_data_put(to, 0, rate);
	return to && to->data ? om_data_number(to, 0) : NAN;
}

static om_status
save_checkpoint(struct training *t)
{
	const char *path = om_cli_option(t->c, "checkpoint");
	om_trainer *whole, *owned;

	if (!path)
		return OM_OK;
	om_status st = find_whole(t, &whole, &owned);
	if (st == OM_OK && t->ranks.rank == 0)
		st = om_checkpoint_save(t->c, path, whole, &t->at);
	om_trainer_free(owned);
	return st;
}

static void
show(struct training *t, double seen)
{
	om_cli *c = t->c;
	char note[64];

	snprintf(note, sizeof note, "loss %.6g", seen > 0 ? t->at.loss / seen : 0);
	om_cli_bar(c, om_printf(c->mem, "epoch %llu/%llu", (unsigned long long)t->at.epoch + 1,
		(unsigned long long)t->epochs), t->at.batch, t->batches, note);
}

static om_status
run_batch(struct training *t)
{
	const int64_t from = (int64_t)t->at.batch * t->at.size;
	struct machine *m = from + t->at.size > t->at.samples ? &t->rest : &t->full;

	const double rate = set_rate(t, m);
	for (uint32_t k = 0; k < t->prog->first->nparam; k++)
		if (t->all[k]) {
			om_samples_take(t->all[k], t->order + from + (m->from < m->all ? m->from : 0), m->size, m->in[k].data);
			OM_TRY(om_exec_input(m->exec, m->param[k], &m->in[k]));
		}
	OM_TRY(om_trainer_step(t->trainer, m->exec, &t->copied));
	const om_tensor *loss = om_exec_result(m->exec, m->loss);
	const double x = om_data_number(loss, 0);
	if (!isfinite(x))
		return om_fail(t->c->session, OM_RUN, "the loss is %s in batch %llu of epoch %llu: a lower --lr may help",
			isnan(x) ? "not a number" : "infinite", (unsigned long long)t->at.batch + 1,
			(unsigned long long)t->at.epoch + 1);
	t->at.loss += x * (double)m->all;
	t->at.batch++;
	t->at.steps++;
	return om_train_log_step(&t->log, &t->at, m->all, x, rate);
}

static om_status
score(struct training *t, om_score *s)
{
	om_trainer *whole, *owned;

	om_status st = find_whole(t, &whole, &owned);
	if (st == OM_OK && t->ranks.rank == 0)
		st = om_net_score(t->c, &t->net, whole, t->at.size, s);
	om_trainer_free(owned);
	return st;
}

static om_status
tell_epoch(struct training *t, double samples)
{
	om_cli *c = t->c;
	om_score s;

	om_cli_progress_end(c);
	const bool rated = om_cli_has(c, "eval-data");
	if (rated)
		OM_TRY(score(t, &s));
	if (t->ranks.rank != 0)
		return OM_OK;
	OM_TRY(om_train_log_epoch(&t->log, &t->at, t->at.loss / samples, rated ? &s : NULL));
	printf("epoch %llu/%llu  loss %.6f", (unsigned long long)t->at.epoch + 1, (unsigned long long)t->epochs,
		t->at.loss / samples);
	if (rated && s.is_share)
		printf("  held-out %.2f %% (%lld of %lld)", 100 * (double)s.right / (double)s.all, (long long)s.right,
			(long long)s.all);
	else if (rated)
		printf("  held-out error %.6f", s.error);
	putchar('\n');
	fflush(stdout);
	return OM_OK;
}

static om_status
run_epoch(struct training *t)
{
	const bool shuffled = !om_cli_has(t->c, "no-shuffle");
	double seen = 0;

	om_samples_order(t->at.seed, t->at.epoch, t->at.samples, t->order);
	for (int64_t k = 0; k < t->at.samples && !shuffled; k++)
		t->order[k] = k;
	while (t->at.batch < t->batches) {
		OM_TRY(run_batch(t));
		seen = (double)t->at.batch * (double)t->at.size;
		seen = seen < (double)t->at.samples ? seen : (double)t->at.samples;
		show(t, seen);
		if (t->every && t->at.steps % t->every == 0 && t->at.batch < t->batches)
			OM_TRY(save_checkpoint(t));
	}
	OM_TRY(tell_epoch(t, seen));
	t->at.epoch++;
	t->at.batch = 0;
	t->at.loss = 0;
	return save_checkpoint(t);
}

/* The bytes of the arenas of all ranks, by rank. */
static om_status
find_arenas(struct training *t, uint64_t **arena)
{
	const om_plan *plan = t->full.prog->has & OM_HAS_PLAN ? t->full.prog->plan : NULL;
	uint64_t bytes = 0;

	for (uint32_t k = 0; plan && k < plan->narena; k++)
		bytes += plan->arena[k].bytes;
	return om_ranks_gather(t->c, &t->ranks, bytes, arena);
}

/* How much of the communication of this rank went on while it computed.  What came before the first step, as states for all ranks, is not of it:
 * nothing could hide that. */
static void
tell_times(om_comm_times before, om_comm_times now)
{
	const double transfer = now.transfer - before.transfer, waiting = now.waiting - before.waiting;

	printf("communication %.3f s, of which the step waited for %.3f s (%.0f %% hidden)\n", transfer, waiting,
		waiting < transfer ? 100 * (1 - waiting / transfer) : 0);
}

/* Of both executors, what they did with the device. */
static void
tell_device(const struct training *t)
{
	const struct machine *m[] = {&t->full, &t->rest};
	uint64_t bytes = 0, commands = 0, replays = 0;

	for (size_t k = 0; k < 2; k++) {
		const om_exec_stats *s = m[k]->exec ? om_exec_get_stats(m[k]->exec) : NULL;
		bytes += s ? s->transferred_bytes : 0;
		commands += s ? s->captured_commands : 0;
		replays += s ? s->replays : 0;
	}
	printf("device %s: %llu bytes copied to it and from it in all steps, %llu commands captured, %llu replays\n", t->c->device,
		(unsigned long long)bytes, (unsigned long long)commands, (unsigned long long)replays);
}

static void
tell_end(struct training *t, uint64_t steps, double ms, const uint64_t *arena)
{
	const om_tensor *state;
	uint64_t bytes, all = 0;

	for (uint32_t k = 0; (state = om_trainer_state(t->trainer, k, NULL)); k++)
		if (om_tensor_bytes(state->type, &state->shape, &bytes))
			all += bytes;
	if (om_cli_has(t->c, "no-reuse"))
		printf("every value in memory of its own");
	else
		printf("arena %llu bytes", (unsigned long long)*arena);
	for (uint32_t k = 1; k < t->ranks.size && !om_cli_has(t->c, "no-reuse"); k++)
		printf("%s%llu%s", k == 1 ? " (of the other ranks " : " ", (unsigned long long)arena[k], k + 1 == t->ranks.size ? ")" : "");
	printf(", states %llu, of these copied in all steps %llu; %llu steps; %.3f ms\n", (unsigned long long)all,
		(unsigned long long)t->copied, (unsigned long long)steps, ms);
	if (t->c->device)
		tell_device(t);
	if (t->ranks.size > 1 && t->how.overlap)
		tell_times(t->prepared, om_comm_get_times(t->ranks.comm));
}

static om_status
save_net(struct training *t)
{
	const char *save = om_cli_option(t->c, "save");
	om_trainer *whole, *owned;

	om_status st = find_whole(t, &whole, &owned);
	if (st == OM_OK && t->ranks.rank == 0)
		st = om_net_save(t->c, &t->net, whole, save);
	if (st == OM_OK)
		printf("%s: %s with the new weights\n", save, t->net.path);
	om_trainer_free(owned);
	return st;
}

static om_status
train(struct training *t)
{
	om_cli *c = t->c;
	uint64_t *arena;

	OM_TRY(prepare(t));
	if (t->ranks.rank == 0)
		OM_TRY(om_train_log_open(c, &t->log));
	OM_TRY(find_arenas(t, &arena));
	const double start = om_now_ms();
	const uint64_t before = t->at.steps;
	if (t->at.epoch >= t->epochs)
		om_warn(c->session, "the checkpoint is of epoch %llu: nothing is left to train", (unsigned long long)t->at.epoch);
	if (t->ranks.size > 1)
		t->prepared = om_comm_get_times(t->ranks.comm);
	while (t->at.epoch < t->epochs)
		OM_TRY(run_epoch(t));
	tell_end(t, t->at.steps - before, om_now_ms() - start, arena);
	return om_cli_has(c, "save") ? save_net(t) : OM_OK;
}

static om_status
run(om_cli *c)
{
	struct training t = {.c = c};

	om_status st = om_ranks_start(c, &t.ranks);
	if (st == OM_OK)
		st = train(&t);
	om_cli_progress_end(c);
	om_train_log_close(&t.log);
	st = om_ranks_end(c, &t.ranks, st);
	om_prog_free(t.prog);
	free_machine(&t.full);
	free_machine(&t.rest);
	om_trainer_free(t.trainer);
	om_net_free(&t.net);
	return st;
}

static const om_opt opts[] = {
	{"data", "FILE.npz", "samples: a tensor for each input, by name, with the samples along\n"
		"                            the first dim"},
	{"epochs", "N", "number of passes over all samples [1]"},
	{"batch", "N", "samples per step, if the model does not fix their number [32]"},
	{"lr", "X", "learning rate: the input lr of the step"},
	{"lr-decay", "X", "factor applied to the learning rate after each epoch [1]"},
	{"lr-schedule", "SCHEDULE", "how it changes with the steps: `constant`, `step:STEPS:FACTOR`, `cosine:STEPS[:LEAST]`,\n"
		"                            `linear:STEPS[:LEAST]`; LEAST is the share that is left [constant]"},
	{"warmup", "N", "first steps, in which it rises to all of it, before the schedule [0]"},
	{"seed", "N", "seed for shuffling the samples in each epoch [0]"},
	{"no-shuffle", NULL, "do not shuffle the samples"},
	{"drop-last", NULL, "drop the samples that do not fill a batch"},
	{"model", "MODEL", "the model whose weights the step trains, by name"},
	{"eval-data", "FILE.npz", "samples to evaluate the model on after each epoch"},
	{"label", "NAME", "tensor of the samples to compare the first output of the model with"},
	{"save", "MODEL", "write the model with its new weights", .writes = OM_WRITES_FILE},
	{0}
};

static const om_opt keep_opts[] = {
	{"checkpoint", "FILE.npz", "save the states and the progress after each epoch", .writes = OM_WRITES_FILE},
	{"every", "N", "also save after every N steps"},
	{"log", "FILE", "write the loss of each step and epoch, a line of JSON each; with --resume, at the end of the file",
		.writes = OM_WRITES_FILE},
	{"resume", NULL, "continue from the checkpoint if it exists"},
	{"ranks", "N", "run N processes of this machine, each with a part of every batch [1; under\n"
		"                            mpirun: those that it started]"},
	{"shard", "MODE", "of several ranks: divide among them the `data`, and also each `state` of the update,\n"
		"                            each `gradient` as well, or each `parameter` as well [data]"},
	OM_CLI_STAGES,
	{"bucket", "SIZE", "of several ranks: gradients that are reduced together, at least [4M]"},
	{"overlap", "N", "of several ranks: N sums of gradients go on while the step computes later ones [0:\n"
		"it waits for each]"},
	{"ordered", NULL, "of several ranks: sums in the order of ranks, bit-identical in every run"},
	{"timeout", "SECONDS", "of several ranks: fail if one waits longer for the others [600]"},
	OM_CLI_RUN_LIMITS,
	{"poison", NULL, "overwrite dead values with a pattern and guard the arena"},
	{"no-reuse", NULL, "allocate every value separately; the plan is not used"},
	{0}
};

static const om_opt_group group = {"training", opts}, keep_group = {"checkpoints and checks", keep_opts};

const om_cmd om_train_cmd = {
	.name = "train", .usage = "STEP --data FILE.npz [options]", .brief = "train a model in its arena",
	.text = "STEP is a training step, such as `onnxmem grad` writes: its inputs are samples,\n"
		"parameters and a learning rate, its outputs a loss and new parameters, which overwrite\n"
		"the old ones.  The same seed gives bit-identical weights, also when training is resumed\n"
		"from a checkpoint.  A plan in the model is used for the batch size that it was made\n"
		"for; see `onnxmem help training`.",
	.target = OM_TARGET_CPU, .keeps_states = true, .min_args = 1, .max_args = 1,
	.group = {&group, &keep_group, &om_shape_options, &om_pass_options}, .run = run,
};
