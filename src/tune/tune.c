/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the choices of layers.
 *
 * Variant k of the program has alternative k of every layer.  Each runs as a whole, so that all layers are timed in as
 * many runs as one layer has alternatives, with caches as they are in a run.  A combination is found by a price of a
 * byte: each layer takes the alternative with the least time plus price of its weights and scratch.  Price 0 is the
 * fastest; prices at which some layer changes its mind are tried where memory counts, each with a plan of its own, because the
 * arena depends on what is live beside the scratch.  The sum of the times of the layers compares combinations; at the end whole
 * runs are compared with those of the cost model, which stays if the others are not faster by more than such times differ. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/options.h"
#include "host/host.h"
#include "ir/query.h"
#include "lower/choices.h"
#include "onnxmem/binding.h"
#include "onnxmem/executor.h"
#include "tune/tune.h"

enum { ROUNDS = 2, TURNS = 5, MOST_PRICES = 24 };

/* An alternative must save so much of the time of the usual one, and of whole runs, or the difference may be noise. */
static const double least_gain = 0.03, least_gain_of_runs = 0.01, usual_seconds = 10, part_of_variants = 0.75;

struct tune {
	om_host *host;
	om_session *session;
	const om_prog *prog;
	om_tune_options options;
	om_arena *mem;
	uint32_t threads;
	double start;            /* milliseconds */
	om_tuned *out;
	om_known_times known;
	unsigned faster;         /* turns in which whole runs with the choices were faster */
	om_prog *planned;        /* the best so far, at first that of the cost model; NULL: none yet */
};

static double
now(const struct tune *w)
{
	return w->options.now ? w->options.now(w->options.arg) : om_now_ms();
}

/* The part of the time that is over. */
static double
spent(const struct tune *w)
{
	return (now(w) - w->start) / (w->options.seconds * 1e3);
}

/* ---- Programs with choices. ---- */

static const char *
add_choice(const struct tune *w, const char *list, const char *key, const char *name)
{
	return om_printf(w->mem, "%s%s%s=%s", list, *list ? ";" : "", key, name);
}

/* A copy of the program that is lowered with these choices, and planned. */
static om_status
plan_with(const struct tune *w, const char *choices, om_prog **out)
{
	const char *pipeline;

	OM_TRY(om_prog_bind(w->session, w->prog, NULL, out));
	om_status st = om_host_pipeline(w->host, w->prog, *out, NULL, 0, &pipeline);
	if (st == OM_OK)
		st = om_host_choose(w->host, choices, &pipeline);
	if (st == OM_OK)
		st = om_host_run(w->host, *out, pipeline);
	if (st == OM_OK)
		st = om_plan_verify(w->session, *out, (*out)->plan);
	if (st != OM_OK) {
		om_prog_free(*out);
		*out = NULL;
	}
	return st;
}

static om_status
measure(const struct tune *w, const om_prog *p, double seconds, om_tune_times *t)
{
	uint32_t threads = w->threads;

	t->op_ms = OM_NEWN(w->mem, double, (size_t)p->nop + 1);
	return w->options.measure ? w->options.measure(w->options.arg, w->session, p, seconds, t)
		: om_tune_by_executor(&threads, w->session, p, seconds, t);
}

/* ---- Layers. ---- */

static om_tuned_layer *
find_layer(const om_tuned *t, const char *key)
{
	for (uint32_t k = 0; k < t->n; k++)
		if (strcmp(t->layer[k].key, key) == 0)
			return &t->layer[k];
	return NULL;
}

static om_tune_choice *
find_choice(const om_tuned_layer *l, const char *name)
{
	for (uint32_t k = 0; l && k < l->nchoice; k++)
		if (strcmp(l->choice[k].name, name) == 0)
			return &l->choice[k];
	return NULL;
}

static void
add_layer(struct tune *w, const om_op *op, const char *key, size_t *cap)
{
	om_tuned *t = w->out;
	om_choice is[OM_CHOICE_MOST];
	size_t n = t->n;
	om_tuned_layer l = {.key = key, .ops = 1, .nchoice = om_layer_alternatives(op, is)};

	l.choice = OM_NEWN(w->mem, om_tune_choice, l.nchoice);
	for (uint32_t k = 0; k < l.nchoice; k++)
		l.choice[k] = (om_tune_choice){.name = om_choice_text(&is[k], w->mem), .ms = -1};
	OM_PUSH(w->mem, t->layer, n, *cap, l);
	t->n = (uint32_t)n;
}

/* The layers of the program as the cost model has it. */
static void
list_layers(struct tune *w, const om_prog *p)
{
	size_t cap = 0;
	om_choice is;

	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next) {
			const char *key = om_layer_key(op, w->mem, &is);
			om_tuned_layer *l = key ? find_layer(w->out, key) : NULL;
			if (l)
				l->ops++;
			else if (key)
				add_layer(w, op, key, &cap);
		}
}

static uint64_t
scratch_of(const om_plan *plan, const om_op *op)
{
	for (uint32_t k = 0; k < plan->nscratch; k++)
		if (plan->scratch[k].op == op->id)
			return plan->scratch[k].bytes;
	return 0;
}

/* What layers take by the alternatives that this program has: bytes and, unless `t` is NULL, times. */
static void
note_times(const struct tune *w, const om_prog *p, const om_tune_times *t)
{
	double *sum = OM_NEWN(w->mem, double, (size_t)w->out->n + 1);
	om_tune_choice **of = OM_NEWN(w->mem, om_tune_choice *, (size_t)w->out->n + 1);
	om_choice is;

	for (uint32_t k = 0; k < w->out->n; k++)
		sum[k] = -1;
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next) {
			const char *key = om_layer_key(op, w->mem, &is);
			const om_tuned_layer *l = key ? find_layer(w->out, key) : NULL;
			om_tune_choice *c = find_choice(l, l ? om_choice_text(&is, w->mem) : "");
			if (!c || (t && t->op_ms[op->id] < 0))
				continue;
			const uint32_t at = (uint32_t)(l - w->out->layer);
			const uint64_t scratch = scratch_of(p->plan, op);
			c->weights = (of[at] ? c->weights : 0) + om_value_bytes(op->in[1]);
			c->scratch = scratch > c->scratch ? scratch : c->scratch;
			sum[at] = (of[at] ? sum[at] : 0) + (t ? t->op_ms[op->id] : 0);
			of[at] = c;
		}
	for (uint32_t k = 0; k < w->out->n; k++)
		if (t && of[k] && (of[k]->ms < 0 || sum[k] < of[k]->ms))
			of[k]->ms = sum[k];
}

/* ---- Measuring. ---- */

static const char *
choices_of_variant(const struct tune *w, uint32_t k)
{
	const char *list = "";

	for (uint32_t i = 0; i < w->out->n; i++)
		list = add_choice(w, list, w->out->layer[i].key, w->out->layer[i].choice[k % w->out->layer[i].nchoice].name);
	return list;
}

static om_status
measure_variant(struct tune *w, uint32_t k, double seconds)
{
	om_tune_times t;
	om_prog *p;

	OM_TRY(plan_with(w, choices_of_variant(w, k), &p));
	const om_status st = seconds > 0 ? measure(w, p, seconds, &t) : OM_OK;
	if (st == OM_OK)
		note_times(w, p, seconds > 0 ? &t : NULL);
	om_prog_free(p);
	return st;
}

/* Are all times of a variant known? */
static bool
is_known(const struct tune *w, uint32_t k)
{
	for (uint32_t i = 0; i < w->out->n; i++)
		if (!w->out->layer[i].choice[k % w->out->layer[i].nchoice].was_known)
			return false;
	return true;
}

static bool
memory_counts(const struct tune *w)
{
	return w->options.total || w->options.arena || w->options.has_slowdown;
}

/* The variant of the cost model is measured in any case.  Where all times are known, bytes may still be needed. */
static om_status
measure_variants(struct tune *w)
{
	uint32_t n = 1;

	for (uint32_t i = 0; i < w->out->n; i++)
		n = w->out->layer[i].nchoice > n ? w->out->layer[i].nchoice : n;
	const double each = w->options.seconds * part_of_variants / ROUNDS / n;
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t k = 0; k < n; k++)
			if ((round == 0 && k == 0) || (spent(w) < part_of_variants && !is_known(w, k)))
				OM_TRY(measure_variant(w, k, each));
			else if (round == 0 && memory_counts(w) && is_known(w, k))
				OM_TRY(measure_variant(w, k, 0));
	for (uint32_t i = 0; i < w->out->n; i++)
		for (uint32_t k = 0; k < w->out->layer[i].nchoice; k++)
			w->out->unmeasured += w->out->layer[i].choice[k].ms < 0;
	return OM_OK;
}

/* ---- Times of earlier runs. ---- */

static void
take_known(struct tune *w)
{
	om_known_times_read(w->session, w->options.cache, w->mem, &w->known);
	for (uint32_t i = 0; i < w->out->n; i++) {
		om_tuned_layer *l = &w->out->layer[i];
		for (uint32_t k = 0; k < l->nchoice; k++) {
			const om_known_time *t = om_known_times_find(&w->known, w->out->isa, w->threads, l->key, l->choice[k].name);
			l->choice[k].was_known = t != NULL;
			l->choice[k].ms = t ? t->ms * l->ops : -1;
		}
	}
}

static void
keep_time(struct tune *w, const om_tuned_layer *l, uint32_t k, bool is_chosen)
{
	const om_tune_choice *c = &l->choice[k];
	om_known_time *t = om_known_times_find(&w->known, w->out->isa, w->threads, l->key, c->name);
	const om_known_time one = {w->out->isa, l->key, c->name, w->threads, c->ms / l->ops, is_chosen};

	if (t)
		*t = one;
	else
		OM_PUSH(w->mem, w->known.time, w->known.n, w->known.cap, one);
}

/* Choices that a limit of memory decided are of this model alone: the fastest ones are kept then. */
static void
keep_times(struct tune *w, const uint32_t *fastest)
{
	for (uint32_t i = 0; i < w->out->n; i++)
		for (uint32_t k = 0; k < w->out->layer[i].nchoice; k++)
			if (w->out->layer[i].choice[k].ms >= 0)
				keep_time(w, &w->out->layer[i], k, k == fastest[i]);
	om_known_times_write(w->session, w->options.cache, &w->known);
}

/* ---- Combinations. ---- */

static double
cost_of(const om_tune_choice *c, double price)
{
	return c->ms + price * ((double)c->weights + (double)c->scratch);
}

/* Does an alternative compute the very same as the usual choice?  Other blocks of the same algorithm have other scratch, unless
 * a layer is too small to be divided. */
static bool
is_usual(const om_tuned_layer *l, uint32_t k)
{
	const om_tune_choice *a = &l->choice[0], *b = &l->choice[k];
	const size_t n = strcspn(a->name, "@");

	return n == strcspn(b->name, "@") && memcmp(a->name, b->name, n) == 0 && a->weights == b->weights && a->scratch == b->scratch;
}

/* The alternative of each layer for a price of a byte. */
static uint32_t *
choose(const struct tune *w, double price)
{
	uint32_t *best = OM_NEWN(w->mem, uint32_t, (size_t)w->out->n + 1);

	for (uint32_t i = 0; i < w->out->n; i++) {
		const om_tuned_layer *l = &w->out->layer[i];
		double least = cost_of(&l->choice[0], price) - least_gain * l->choice[0].ms;
		for (uint32_t k = 1; k < l->nchoice; k++)
			if (l->choice[k].ms >= 0 && !is_usual(l, k) && cost_of(&l->choice[k], price) < least) {
				least = cost_of(&l->choice[k], price);
				best[i] = k;
			}
	}
	return best;
}

static double
time_of(const struct tune *w, const uint32_t *chosen)
{
	double ms = 0;

	for (uint32_t i = 0; i < w->out->n; i++)
		ms += w->out->layer[i].choice[chosen[i]].ms;
	return ms;
}

/* Those that differ from the cost model's. */
static const char *
text_of(const struct tune *w, const uint32_t *chosen)
{
	const char *list = "";

	for (uint32_t i = 0; i < w->out->n; i++)
		if (chosen[i])
			list = add_choice(w, list, w->out->layer[i].key, w->out->layer[i].choice[chosen[i]].name);
	return list;
}

static int
by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Prices at which a layer has two alternatives that cost the same, ascending; if there are many, some of them, the highest
 * included.  A price between two neighbours gives a combination. */
static double *
list_prices(const struct tune *w, size_t *n)
{
	double *price = NULL;
	size_t cap = 0;

	*n = 0;
	for (uint32_t i = 0; i < w->out->n; i++)
		for (uint32_t j = 0; j < w->out->layer[i].nchoice; j++)
			for (uint32_t k = 0; k < w->out->layer[i].nchoice; k++) {
				const om_tune_choice *a = &w->out->layer[i].choice[j], *b = &w->out->layer[i].choice[k];
				const double ms = b->ms - a->ms, bytes = (double)a->weights + (double)a->scratch - (double)b->weights
					- (double)b->scratch;
				if (a->ms >= 0 && b->ms >= 0 && ms > 0 && bytes > 0)
					OM_PUSH(w->mem, price, *n, cap, ms / bytes * 1.0001);
			}
	if (*n)
		qsort(price, *n, sizeof *price, by_size);
	const size_t step = (*n + MOST_PRICES - 1) / MOST_PRICES;
	size_t left = 0;
	for (size_t k = 0; step && k < *n; k++)
		if ((*n - 1 - k) % step == 0)
			price[left++] = price[k];
	*n = left;
	return price;
}

struct trial {
	const uint32_t *chosen;
	double ms;               /* of the layers */
	om_plan_memory memory;
};

static bool
fits(const struct tune *w, const om_plan_memory *m)
{
	return (!w->options.total || m->total <= w->options.total) && (!w->options.arena || m->arenas <= w->options.arena);
}

static om_status
try_choices(const struct tune *w, const uint32_t *chosen, struct trial *t)
{
	om_prog *p;

	OM_TRY(plan_with(w, text_of(w, chosen), &p));
	*t = (struct trial){chosen, time_of(w, chosen), om_plan_memory_of(p, p->plan)};
	om_prog_free(p);
	return OM_OK;
}

/* Is `t` better than the best one so far, which is allowed? */
static bool
is_better(const struct tune *w, const struct trial *t, const struct trial *best, double most_ms)
{
	if (!fits(w, &t->memory) || (w->options.has_slowdown && t->ms > most_ms))
		return false;
	if (!best->chosen)
		return true;
	return w->options.has_slowdown && t->memory.total != best->memory.total ? t->memory.total < best->memory.total
		: t->ms < best->ms;
}

/* The best combination where memory counts.  The usual choices are one of them. */
static om_status
search(const struct tune *w, const uint32_t *fastest, const uint32_t **out)
{
	const uint32_t *usual = OM_NEWN(w->mem, uint32_t, (size_t)w->out->n + 1);
	const double most_ms = time_of(w, fastest) * (1 + w->options.slowdown / 100);
	struct trial best = {0}, t;
	uint64_t least = UINT64_MAX;
	size_t n;
	const double *price = list_prices(w, &n);

	for (size_t k = 0; k < n + 2; k++) {
		const uint32_t *chosen = k == 0 ? fastest : k == 1 ? usual : choose(w, price[k - 2]);
		OM_TRY(try_choices(w, chosen, &t));
		const uint64_t bytes = w->options.arena ? t.memory.arenas : t.memory.total;
		least = bytes < least ? bytes : least;
		if (is_better(w, &t, &best, most_ms))
			best = t;
	}
	if (!best.chosen)
		return om_fail(w->session, OM_BUDGET, "tune: no choices were found that take at most %" PRIu64 " bytes; the least is %" PRIu64,
			w->options.arena ? w->options.arena : w->options.total, least);
	*out = best.chosen;
	return OM_OK;
}

/* ---- Whole runs. ---- */

/* Both in turn, so that what disturbs the machine disturbs both. */
static om_status
compare(struct tune *w, const om_prog *usual, const om_prog *chosen)
{
	const double left = 1 - spent(w), each = (left > 0.05 ? left : 0.05) * w->options.seconds / 2 / TURNS;
	om_tuned_plan *to[] = {&w->out->usual, &w->out->chosen};
	const om_prog *of[] = {usual, chosen};
	om_tune_times t[2];

	for (int k = 0; k < 2; k++)
		*to[k] = (om_tuned_plan){-1, om_plan_memory_of(of[k], of[k]->plan)};
	for (int turn = 0; turn < TURNS; turn++) {
		for (int k = 0; k < 2; k++) {
			OM_TRY(measure(w, of[k], each, &t[k]));
			to[k]->ms = to[k]->ms < 0 || t[k].ms < to[k]->ms ? t[k].ms : to[k]->ms;
		}
		w->faster += t[1].ms < t[0].ms;
	}
	return OM_OK;
}

/* Is the chosen plan faster, by the least times of all turns and in most turns? */
static bool
is_faster(const struct tune *w)
{
	return w->out->chosen.ms < w->out->usual.ms * (1 - least_gain_of_runs) && 2 * w->faster > TURNS;
}

/* The usual plan stays where the other one is not faster, unless it takes too much or was to take less memory. */
static bool
keeps_usual(const struct tune *w)
{
	const om_tuned_plan *usual = &w->out->usual, *chosen = &w->out->chosen;

	if (!fits(w, &usual->memory))
		return false;
	if (w->options.has_slowdown)
		return chosen->memory.total >= usual->memory.total && !is_faster(w);
	return !is_faster(w);
}

static void
set_chosen(struct tune *w, const uint32_t *chosen)
{
	for (uint32_t i = 0; i < w->out->n; i++)
		w->out->layer[i].chosen = chosen ? chosen[i] : 0;
}

static void
keep_usual(struct tune *w)
{
	w->out->is_kept = true;
	w->out->chosen = w->out->usual;
	w->out->choices = "";
	set_chosen(w, NULL);
}

/* Compare, and keep the better plan of the two. */
static om_status
decide(struct tune *w, const uint32_t *chosen)
{
	om_prog *p, *worse;

	OM_TRY(plan_with(w, text_of(w, chosen), &p));
	const om_status st = compare(w, w->planned, p);
	worse = p;
	if (st == OM_OK && keeps_usual(w)) {
		keep_usual(w);
	} else if (st == OM_OK) {
		w->out->choices = text_of(w, chosen);
		set_chosen(w, chosen);
		worse = w->planned;
		w->planned = p;
	}
	om_prog_free(worse);
	return st;
}

/* ---- All. ---- */

static om_status
tune_program(struct tune *w)
{
	list_layers(w, w->planned);
	if (w->options.cache)
		take_known(w);
	OM_TRY(measure_variants(w));
	const uint32_t *fastest = choose(w, 0), *chosen = fastest;
	if (memory_counts(w))
		OM_TRY(search(w, fastest, &chosen));
	OM_TRY(decide(w, chosen));
	if (w->options.cache)
		keep_times(w, w->out->is_kept ? OM_NEWN(w->mem, uint32_t, (size_t)w->out->n + 1) : fastest);
	return OM_OK;
}

static om_status
check(struct tune *w)
{
	const om_plan_request *r = w->host->request;

	if (r->target != OM_TARGET_CPU || r->precise)
		return om_fail(w->session, OM_USAGE, "tune: the request must be for target cpu, and not for a precise run");
	if (r->ranged)
		return om_fail(w->session, OM_USAGE, "tune: layers are measured for one size: a plan for ranges of sizes cannot be tuned");
	if (!(w->options.seconds >= 0 && w->options.seconds <= 1e6) || !(w->options.slowdown >= 0 && w->options.slowdown <= 1e6))
		return om_fail(w->session, OM_USAGE, "tune: seconds and slowdown are numbers from 0 to 10^6");
	w->options.seconds = w->options.seconds > 0 ? w->options.seconds : usual_seconds;
	w->threads = r->threads ? r->threads : 1;
	w->out->threads = w->threads;
	w->out->isa = om_isa(w->session);
	return w->out->isa ? OM_OK : OM_USAGE;
}

static om_status
tune(struct tune *w)
{
	w->out = OM_NEW(w->mem, om_tuned);
	OM_TRY(check(w));
	w->start = now(w);
	om_status st = plan_with(w, "", &w->planned);
	if (st == OM_OK)
		st = tune_program(w);
	if (st != OM_OK)         /* where memory runs out, the guard frees it */
		om_prog_free(w->planned);
	return st;
}

static om_status
tune_guarded(struct tune *w)
{
	OM_GUARDED(w->session, tune(w));
}

om_status
om_host_tune(om_host *h, const om_prog *p, const om_tune_options *o, om_arena *mem, om_prog **planned, const om_tuned **out)
{
	om_session *s = om_host_session(h);
	struct tune w = {.host = h, .session = s, .prog = p, .mem = mem};

	*planned = NULL;
	*out = NULL;
	OM_TRY(om_options_read(s, "om_tune_options", "OM_TUNE_OPTIONS()", &w.options, sizeof w.options, sizeof w.options, o));
	om_pass_hook *const hook = h->hook;   /* trials are no runs for it */
	h->hook = NULL;
	const om_status st = tune_guarded(&w);
	h->hook = hook;
	OM_TRY(st);
	*planned = w.planned;
	*out = w.out;
	return OM_OK;
}

const char *
om_tuned_choices(om_session *s, const char *folder, uint32_t threads, om_arena *mem)
{
	const char *isa = om_isa(s), *list = "";
	om_known_times t;

	om_known_times_read(s, folder, mem, &t);
	for (size_t k = 0; isa && k < t.n; k++)
		if (t.time[k].is_chosen && t.time[k].threads == threads && strcmp(t.time[k].isa, isa) == 0)
			list = om_printf(mem, "%s%s%s=%s", list, *list ? ";" : "", t.time[k].key, t.time[k].name);
	if (t.n && !*list)
		om_info(s, "%s has no times of %s with %u thread%s: the cost model decides how layers are computed", folder,
			isa ? isa : "this machine", threads, threads == 1 ? "" : "s");
	return list;
}

om_status
om_host_choose(om_host *h, const char *choices, const char **pipeline)
{
	static const om_pass_flag flag = {.name = "choices", .option = "choices", .arg = "LIST"};
	const om_pass *pass = *choices ? om_host_pass(h, "lower-layout") : NULL;

	if (!*choices)
		return OM_OK;
	return pass ? om_host_flags(h, &(om_flag_set){pass, &flag, choices}, 1, pipeline) : OM_NOPASS;
}
