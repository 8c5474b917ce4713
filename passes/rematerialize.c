/* SPDX-License-Identifier: Apache-2.0 */
/* rematerialize: recompute cheap values to lower the peak.
 *
 * A value with an early and a late use, above all an activation of a training step, is dropped in
 * between: its op, and ops that compute the inputs of that op, are copied before the late use, and later
 * uses read the copy.  om_remat_solve() selects the values: for the least work that meets a budget, or
 * for the lowest peak with the work that is allowed.  Results are bit-identical: the same ops run on the
 * same inputs.
 *
 * Random ops, ops with effects, ops with bodies and ops whose output shapes depend on data never run
 * twice.  A parameter that is aliased to a result is not read after the op that overwrites it.
 *
 * The search does not model all that the following passes can do.  So its result is measured by the
 * same analyses, on a copy of the program in which ops are repeated as the result says; a budget that
 * is missed is tightened.  The program itself is changed once, for the best result, or not at all.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "ir/schedule.h"
#include "onnxmem/assignment.h"
#include "onnxmem/builder.h"
#include "onnxmem/pass.h"
#include "onnxmem/plan.h"
#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "alloc/run_memory.h"
#include "alloc/state_update_paths.h"
#include "ir/binding.h"
#include "ir/clone.h"
#include "ir/query.h"
#include "ir/steps.h"
#include "schedule/rematerialize.h"

#define NONE OM_SCHEDULE_NONE
enum { TRIES = 5 };

/* The graph as a problem. */
struct model {
	const om_prog *p;
	om_arena *mem;
	om_op **ops;             /* that run, by number */
	uint32_t nop, nvalue;
	om_schedule_op *op;
	om_schedule_storage *storage;
	uint32_t nstorage;
	uint32_t *of_value;      /* by value id: its storage; NONE: not in the arena */
	uint32_t *number;        /* by op id */
	uint32_t *until;
	double *cost, all;       /* all: of all ops together */
	const om_assignment *a;  /* with views alone */
	const om_buffers *b;
};

/* ---- Storages. ---- */

/* A storage for each buffer of the graph; buffers of bodies count with the op that has the body. */
static void
list_storages(struct model *m)
{
	uint32_t *of_buffer = OM_NEWN(m->mem, uint32_t, m->b->n);

	m->storage = OM_NEWN(m->mem, om_schedule_storage, m->b->n);
	for (uint32_t k = 0; k < m->b->n; k++)
		of_buffer[k] = NONE;
	for (uint32_t v = 0; v < m->nvalue; v++) {
		const om_value *root = m->p->values[v];
		const uint32_t buffer = m->b->of_value[v];
		m->of_value[v] = NONE;
		if (buffer == NONE || root->block != m->p->first || m->a->backing[v].source)
			continue;
		of_buffer[buffer] = m->nstorage;
		m->storage[m->nstorage++] = (om_schedule_storage){m->b->buf[buffer].bytes,
			root->def ? m->number[root->def->id] : NONE, false};
	}
	for (uint32_t v = 0; v < m->nvalue; v++)
		if (m->b->of_value[v] != NONE)
			m->of_value[v] = of_buffer[m->b->of_value[v]];
	for (uint32_t k = 0; k < m->p->first->nresult; k++) {
		const uint32_t s = m->of_value[m->p->first->result[k]->id];
		if (s != NONE)
			m->storage[s].live_out = true;
	}
}

/* ---- Ops. ---- */

struct uses {
	uint32_t *s;
	size_t n, cap;
};

static void
add_use(struct model *m, struct uses *u, const om_value *v)
{
	const uint32_t s = v ? m->of_value[v->id] : NONE;

	for (size_t k = 0; k < u->n; k++)
		if (u->s[k] == s)
			return;
	if (s != NONE)
		OM_PUSH(m->mem, u->s, u->n, u->cap, s);
}

/* Values that a body captures are not recomputed: uses in bodies are not rewritten. */
static void
add_captured(struct model *m, struct uses *u, const om_block *b)
{
	const size_t had = u->n;

	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nin; k++)
			add_use(m, u, op->in[k]);
		for (uint32_t k = 0; k < op->nbody; k++)
			add_captured(m, u, op->body[k]);
	}
	for (uint32_t k = 0; k < b->nresult; k++)
		add_use(m, u, b->result[k]);
	for (size_t k = had; k < u->n; k++)
		if (m->storage[u->s[k]].producer != NONE)
			m->until[m->storage[u->s[k]].producer] = 0;
}

/* What a collective has as a further input is in the hands of a transfer that was started before (Wait), or is memory for its output: it
 * stays where it is. */
static void
keep_in_place(struct model *m, const om_op *op)
{
	for (uint32_t k = 1; k < op->nin; k++) {
		const uint32_t s = op->in[k] ? m->of_value[op->in[k]->id] : NONE;
		if (s != NONE && m->storage[s].producer != NONE)
			m->until[m->storage[s].producer] = 0;
	}
}

/* May output `k` be computed over input `in`, and over all other inputs in the same storage? */
static bool
may_overwrite(const struct model *m, const om_op *op, uint32_t k, uint32_t in)
{
	const uint32_t s = m->of_value[op->in[in]->id];

	for (uint32_t j = 0; j < op->nin; j++)
		if (op->in[j] && m->of_value[op->in[j]->id] == s && !om_op_facts_inplace(m->a->facts, op, k, j))
			return false;
	return true;
}

static void
add_over(struct model *m, const om_op *op, om_schedule_op *to)
{
	om_inplace_pair *all = OM_NEWN(m->mem, om_inplace_pair, (size_t)op->nin * op->nout + 1);

	for (uint32_t k = 0; k < op->nout; k++) {
		const uint32_t made = op->out[k] ? m->of_value[op->out[k]->id] : NONE;
		if (made == NONE || m->a->backing[op->out[k]->id].source)
			continue;
		for (uint32_t i = 0; i < op->nin; i++) {
			const uint32_t s = op->in[i] ? m->of_value[op->in[i]->id] : NONE;
			bool is_free = s != NONE && m->storage[s].bytes == m->storage[made].bytes;
			for (uint32_t j = 0; j < to->nover; j++)
				is_free &= all[j].needed != s;
			if (is_free && may_overwrite(m, op, k, i))
				all[to->nover++] = (om_inplace_pair){made, s};
		}
	}
	to->over = all;
}

/* The peak of the values of the bodies while the op runs. */
static uint64_t
peak_of_bodies(const struct model *m, const om_op *op)
{
	const om_steps at = m->a->schedule->of_op[op->id];
	uint64_t *change, sum = 0, most = 0;

	if (op->nbody == 0)
		return 0;
	change = OM_NEWN(m->mem, uint64_t, (size_t)(at.last - at.first) + 2);
	for (uint32_t v = 0; v < m->nvalue; v++) {
		const om_live_interval live = m->a->live[v];
		if (m->p->values[v]->block == m->p->first || m->b->of_value[v] == NONE || m->a->backing[v].source
		    || live.first > at.last || live.last < at.first)
			continue;
		const uint64_t bytes = m->b->buf[m->b->of_value[v]].bytes;
		change[live.first > at.first ? live.first - at.first : 0] += bytes;
		change[(live.last < at.last ? live.last : at.last) - at.first + 1] -= bytes;
	}
	for (uint32_t k = 0; k <= at.last - at.first; k++) {
		sum += change[k];
		most = sum > most ? sum : most;
	}
	return most;
}

static bool
may_repeat(const struct model *m, const om_op *op)
{
	bool defines = false;

	if (!op->opdef || op->opdef->flags & (OM_RANDOM | OM_EFFECT | OM_DATA_DEPENDENT_SHAPE | OM_NON_TENSOR) || op->nbody)
		return false;
	for (uint32_t k = 0; k < op->nout; k++)
		defines |= op->out[k] && m->of_value[op->out[k]->id] != NONE;
	return defines;
}

static void
add_op(struct model *m, uint32_t i)
{
	const om_op *op = m->ops[i];
	const uint32_t scratch = m->b->of_op[op->id];
	om_schedule_op *to = &m->op[i];
	struct uses u = {0};

	for (uint32_t k = 0; k < op->nin; k++)
		add_use(m, &u, op->in[k]);
	for (uint32_t k = 0; k < op->nbody; k++)
		add_captured(m, &u, op->body[k]);
	if (op->opdef && op->opdef->flags & OM_COLLECTIVE)
		keep_in_place(m, op);
	to->use = u.s;
	to->nuse = (uint32_t)u.n;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && m->of_value[op->out[k]->id] != NONE && !m->a->backing[op->out[k]->id].source)
			to->begin += m->storage[m->of_value[op->out[k]->id]].bytes;
	to->begin += (scratch == NONE ? 0 : m->b->buf[scratch].bytes) + peak_of_bodies(m, op);
	if (op->opdef && op->opdef->inplace && !op->nbody)
		add_over(m, op, to);
	const om_cost cost = om_op_cost(op);
	m->all += cost.flops;
	m->cost[i] = cost.flops + 1;     /* so that one op costs less than two, also if both have no FLOPs */
}

/* Readers of a parameter that is aliased to a result run before the op that overwrites it. */
static void
limit_readers(struct model *m)
{
	uint32_t n;
	const om_update_path *w = om_update_paths_find(m->p, m->a, m->mem, &n);

	for (uint32_t k = 0; k < n; k++) {
		const uint32_t over = m->number[w[k].value[0]->def->id];
		for (uint32_t r = 0; r < w[k].nreader; r++) {
			uint32_t *until = &m->until[m->number[w[k].reader[r]->id]];
			*until = over < *until ? over : *until;
		}
		m->until[over] = 0;
	}
}

static void
model_new(const om_prog *p, const om_assignment *views, om_arena *mem, struct model *m)
{
	*m = (struct model){.p = p, .mem = mem, .nvalue = p->nvalue, .a = views, .op = OM_NEWN(mem, om_schedule_op, p->first->nop),
		.until = OM_NEWN(mem, uint32_t, p->first->nop), .cost = OM_NEWN(mem, double, p->first->nop),
		.of_value = OM_NEWN(mem, uint32_t, p->nvalue), .number = OM_NEWN(mem, uint32_t, p->nop)};
	m->b = om_buffers_new(p, views, mem);
	m->ops = om_block_run_ops(p->first, mem, &m->nop);
	for (uint32_t i = 0; i < m->nop; i++)
		m->number[m->ops[i]->id] = i;
	list_storages(m);
	for (uint32_t i = 0; i < m->nop; i++)
		m->until[i] = may_repeat(m, m->ops[i]) ? NONE : 0;
	limit_readers(m);
	for (uint32_t i = 0; i < m->nop; i++)
		add_op(m, i);
}

/* ---- Copies. ---- */

/* Copying ops of a program: that of the model, or a copy of it, which has the same ids. */
struct edit {
	const struct model *m;
	om_prog *p;
	om_clone clone;          /* its `value`: by id, the current copy of a value */
	uint32_t *age, *storage_age;   /* by value id, by storage: how often it was recomputed */
	om_op **copy;
	size_t ncopy, capcopy;
};

static om_status copy_op(struct edit *e, om_op *op, om_op *before);

/* The current copy of `v` before the op `before`.  A view of a storage that was recomputed is recomputed
 * on demand. */
static om_status
current(struct edit *e, om_value *v, om_op *before, om_value **out)
{
	const uint32_t s = v && v->id < e->m->nvalue ? e->m->of_value[v->id] : NONE;

	*out = v;
	if (s == NONE)
		return OM_OK;
	if (e->age[v->id] != e->storage_age[s])
		OM_TRY(copy_op(e, v->def, before));
	if (e->clone.value[v->id])
		*out = e->clone.value[v->id];
	return OM_OK;
}

/* A copy of `op`, whose outputs replace those of the op from now on. */
static om_status
copy_op(struct edit *e, om_op *op, om_op *before)
{
	om_prog *p = e->p;
	om_op *copy;

	for (uint32_t k = 0; k < op->nin; k++) {
		om_value *in;
		OM_TRY(current(e, op->in[k], before, &in));
	}
	for (uint32_t k = 0; k < op->nout; k++) {
		const om_value *v = op->out[k];
		if (!v)
			continue;
		om_value *new = om_value_fresh(p, p->first, om_printf(e->m->mem, "%s.again", v->name));
		new->type = v->type;
		new->shape = v->shape;
		new->is_declared = v->is_declared;
		e->clone.value[v->id] = new;
		if (e->m->of_value[v->id] != NONE)
			e->age[v->id] = e->storage_age[e->m->of_value[v->id]];
	}
	OM_TRY(om_op_clone(&e->clone, op, p->first, before, &copy));
	copy->name = "";
	copy->phase = before->phase;
	copy->rematerialized_from = om_strdup(p->mem, om_op_label(op));
	OM_PUSH(e->m->mem, e->copy, e->ncopy, e->capcopy, copy);
	return OM_OK;
}

/* The op reads the current copies of its inputs; its outputs are current themselves. */
static om_status
read_current(struct edit *e, om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++) {
		om_value *in;
		OM_TRY(current(e, op->in[k], op, &in));
		if (in != op->in[k])
			om_op_set_in(op, k, in);
	}
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && e->m->of_value[op->out[k]->id] != NONE)
			e->age[op->out[k]->id] = e->storage_age[e->m->of_value[op->out[k]->id]];
	return OM_OK;
}

/* The storages of the outputs are recomputed: their views are out of date. */
static void
invalidate_views(struct edit *e, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && e->m->of_value[op->out[k]->id] != NONE && !e->m->a->backing[op->out[k]->id].source)
			e->storage_age[e->m->of_value[op->out[k]->id]]++;
}

/* Repeat and reorder the ops of the graph of `p` as in the result. */
static om_status
apply(om_session *s, const struct model *m, const om_remat_result *r, om_prog *p, struct edit *e)
{
	uint32_t next = 0, nop;
	om_op **ops = om_block_run_ops(p->first, m->mem, &nop);

	*e = (struct edit){.m = m, .p = p, .clone = om_clone_new(s, p, p, m->mem, ""),
		.age = OM_NEWN(m->mem, uint32_t, m->nvalue), .storage_age = OM_NEWN(m->mem, uint32_t, m->nstorage)};
	for (uint32_t at = 0; at < r->n; at++) {
		om_op *op = ops[r->run[at]];
		if (r->run[at] == next) {
			next++;
			OM_TRY(read_current(e, op));
			continue;
		}
		invalidate_views(e, op);
		OM_TRY(copy_op(e, op, ops[next]));
	}
	return OM_OK;
}

/* ---- Search. ---- */

/* The size of the arena that the passes which follow make for the program as it stands.  `*views`: its
 * assignment with views alone. */
static om_status
height_of(om_run *r, om_prog *p, const om_assignment **views, uint64_t *height)
{
	const om_assignment *full, *packed;

	OM_TRY(om_assign_schedule(r->session, p, om_schedule_new(p, r->scratch), r->request, om_prog_op_facts(p, r->request), r->scratch,
		views, &full, &packed));
	return om_assignment_full_size(r->session, p, packed, height);
}

/* The same for the program of the model, if its ops ran as in `result`. */
static om_status
height_with(om_run *r, const struct model *m, const om_remat_result *result, uint64_t *height)
{
	const om_assignment *views;
	struct edit e;
	om_prog *copy;

	OM_TRY(om_prog_copy(r->session, m->p, &copy));
	om_status st = apply(r->session, m, result, copy, &e);
	if (st == OM_OK)
		st = height_of(r, copy, &views, height);
	om_prog_free(copy);
	return st;
}

struct aim {
	double most;             /* work, in percent of that of all ops */
	uint64_t budget;         /* 0: the lowest peak */
	uint64_t effort;
};

/* The best result for the aim, and the size of its arena; `*height` is the size without one, and stays
 * if none is better. */
static om_status
search(om_run *r, const struct model *m, const struct aim *a, om_remat_result *best, uint64_t *height)
{
	const om_schedule_problem q = {m->op, m->storage, m->nop, m->nstorage};
	om_remat_request request = {.q = &q, .cost = m->cost, .until = m->until, .budget = a->budget,
		.most = m->all * a->most / 100, .effort = a->effort};
	const uint64_t was = *height;

	for (unsigned k = 0; k < TRIES && *height > a->budget; k++) {
		om_remat_result result;
		uint64_t now = was;
		OM_TRY(om_remat_solve(r->session, &request, r->scratch, &result));
		if (result.n > m->nop)
			OM_TRY(height_with(r, m, &result, &now));
		if (now < *height) {
			*height = now;
			*best = result;
		}
		if (a->budget == 0 || now <= a->budget || request.budget <= now - a->budget)
			break;
		request.budget -= now - a->budget;
	}
	return OM_OK;
}

/* A proof about the original ops does not hold for an order with copies. */
static void
note_schedule(om_prog *p, const om_schedule *was)
{
	om_schedule *s = om_schedule_new(p, p->mem);

	s->method = was->method;
	s->is_original = was->is_original;
	om_assignment_schedule(p, s);
}

static om_status
change(om_run *r, const struct model *m, const om_remat_result *result, om_prog *p)
{
	const om_schedule *was = om_schedule_current(p, r->scratch);
	struct edit e;

	OM_TRY(apply(r->session, m, result, p, &e));
	note_schedule(p, was);
	for (size_t k = 0; k < e.ncopy; k++)
		om_count(r, "flops", (uint64_t)om_op_cost(e.copy[k]).flops);
	om_count(r, "ops", e.ncopy);
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	const om_assignment *views;
	struct aim a = {0};
	struct model m;
	om_remat_result best = {0};
	uint64_t percent, height, was;

	if (r->request->parallel_safe)
		return om_fail(r->session, OM_USAGE, "a parallel-safe plan cannot rematerialize values");
	OM_TRY(om_option_number(r, "percent", &percent));
	OM_TRY(om_option_number(r, "budget", &a.budget));
	OM_TRY(om_option_number(r, "search-nodes", &a.effort));
	a.most = (double)percent;
	OM_TRY(height_of(r, p, &views, &was));
	if (a.budget == 0 && r->request->total)
		a.budget = om_bytes_left_for_arenas(p, om_prog_op_facts(p, r->request), r->request->total);
	if (was <= a.budget)
		return OM_OK;
	height = was;
	model_new(p, views, r->scratch, &m);
	OM_TRY(search(r, &m, &a, &best, &height));
	om_count(r, "bytes_saved", was - height);
	return height < was ? change(r, &m, &best, p) : OM_OK;
}

static const om_pass_option options[] = {
	{"percent", "30", "limit of the added work, in percent of the FLOPs of all ops"},
	{"budget", "0", "target size of the arena in bytes, reached with the least work; 0: the lowest peak"},
	{"search-nodes", "100000000", "limit of the search, in ops visited"},
	{0}
};

static const om_pass_counter counters[] = {
	{"ops", "ops that were copied"},
	{"flops", "work of the copies"},
	{"bytes_saved", "reduction of the arena"},
	{0}
};

static const om_pass_flag flags[] = {
	{.name = "rematerialize", .option = "percent", .arg = "PERCENT", .kind = OM_FLAG_NUMBER, .min = 1, .max = 100000, .adds = true,
		.brief = "recompute cheap values, with at most PERCENT more work, to meet the\n"
			"                            --budget with the least work, or to reach the lowest peak"},
	{.name = "budget", .option = "budget", .arg = "SIZE", .brief = "target size of the arena"},
	{0}
};

OM_PASS(
	.name = "rematerialize",
	.brief = "recompute cheap values to lower the peak",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_SCHEDULE,
	.options = options,
	.counters = counters,
	.flags = flags,
	.run = run)
