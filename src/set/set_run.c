/* SPDX-License-Identifier: Apache-2.0 */
/* Running the parts of a set in one arena. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/fast_hash.h"
#include "base/guard.h"
#include "base/options.h"
#include "base/row_blocks.h"
#include "base/system.h"
#include "ir/binding.h"
#include "opdef/cpu_domain.h"
#include "set/set.h"

enum { LOW = 0xfd, HIGH = 0x7f };  /* as poison of the executor */

/* ---- Memory. ---- */

static void *
buffer_of(const om_set *x, const om_set_value *v, uint32_t buffer)
{
	return x->memory + v->offset[buffer];
}

static om_status
start(om_set *x, const om_exec_options *o)
{
	if (o)
		OM_TRY(om_options_read(x->session, "om_exec_options", "OM_EXEC_OPTIONS()", &x->options, sizeof x->options, sizeof x->options, o));
	else
		x->options = (om_exec_options)OM_EXEC_OPTIONS();
	if (x->options.arena || x->options.no_reuse || x->options.device)
		return om_fail(x->session, OM_USAGE, "a set runs in its own arena, on no device");
	OM_TRY(om_set_verify(x));
	om_aligned_free(x->allocated);
	x->allocated = x->plan.bytes < PTRDIFF_MAX ? om_memory_aligned((size_t)x->plan.align, (size_t)(x->plan.bytes + 1)) : NULL;
	if (!(x->memory = x->allocated))
		return om_fail(x->session, OM_MEMORY, "cannot allocate %llu bytes for the arena of the set", (unsigned long long)x->plan.bytes);
	x->content = OM_NEWN(x->mem, struct content, x->nvalue);
	x->at = -1;
	for (uint32_t k = 0; k < x->npart; k++) {
		struct running *r = &x->part[k].run;
		om_exec_free(r->exec);
		r->exec = NULL;
		r->prog = NULL;
		r->given = OM_NEWN(x->mem, om_tensor, x->part[k].prog->first->nparam);
		r->result = OM_NEWN(x->mem, om_tensor, x->part[k].prog->first->nresult);
	}
	return OM_OK;
}

om_status
om_set_start(om_set *x, const om_exec_options *o)
{
	OM_GUARDED(x->session, start(x, o));
}

om_status
om_set_input(om_set *x, uint32_t part, uint32_t k, const om_tensor *t)
{
	if (!x->memory || part >= x->npart || k >= x->part[part].prog->first->nparam)
		return om_fail(x->session, OM_USAGE, "the set is not started, or has no such input");
	x->part[part].run.given[k] = *t;
	return OM_OK;
}

/* ---- The order. ---- */

/* Is it another iteration of a loop? */
static bool
repeats(const om_set *x, uint32_t part)
{
	for (uint32_t k = 0; k < x->nloop; k++)
		if (part == x->loop[k].first && x->at == x->loop[k].last)
			return true;
	return false;
}

/* Loops, which are in their order, may not run at all. */
static bool
may_follow(const om_set *x, uint32_t part)
{
	int64_t next = x->at + 1;

	for (uint32_t k = 0; k < x->nloop; k++)
		if (x->loop[k].first == next && next < (int64_t)part)
			next = (int64_t)x->loop[k].last + 1;
	return part == 0 || part == next || repeats(x, part);
}

/* Is what the set has of a value still there when `part` runs next? */
static bool
stays(const om_set *x, uint32_t value, uint32_t part)
{
	const bool starts = part == 0 && !repeats(x, part);

	return x->content[value].is_valid && !starts && part >= x->value[value].first && part <= x->value[value].last;
}

static om_status
move_to(om_set *x, uint32_t part)
{
	if (!may_follow(x, part))
		return om_fail(x->session, OM_USAGE, "part %s cannot run %s%s", x->part[part].pub.name, x->at < 0 ? "first" : "after part ",
			x->at < 0 ? "" : x->part[x->at].pub.name);
	for (uint32_t k = 0; k < x->nvalue; k++)
		x->content[k].is_valid = stays(x, k, part);
	x->at = part;
	return OM_OK;
}

/* ---- Rows: dense, or with spare rows after them. ---- */

/* Give the rows of a value room for `capacity` rows, 0: none, in the buffer where they are. */
static void
spread(om_set *x, struct content *c, int axis, int64_t capacity)
{
	if (c->capacity == capacity && (!capacity || c->axis == axis))
		return;
	if (c->capacity && capacity && c->axis != axis)
		spread(x, c, 0, 0);
	const int at = capacity ? axis : c->axis;
	const om_row_blocks b = om_row_blocks_of(c->t.type, &c->t.shape, at);
	const int64_t rows = c->t.shape.dim[at], room = capacity ? capacity : rows;
	om_row_blocks_move(&b, rows, c->t.data, room, c->t.data, c->capacity ? c->capacity : rows);
	om_row_blocks_fill(&b, rows, c->t.data, room, 0);
	x->copied += (uint64_t)b.n * b.row * (uint64_t)rows;
	c->axis = axis;
	c->capacity = capacity;
}

/* ---- Rings, which the pass capacity makes: only one attention reads and writes them. ---- */

enum { RING_AXIS = 2 };

static bool
has_rings(const om_op *op)
{
	return op && strcmp(op->domain, OM_CPU_DOMAIN) == 0 && strcmp(op->type, "GroupQueryAttention") == 0;
}

/* Its rows as an input; 0: it is no ring. */
static int64_t
ring_of(const om_value *input)
{
	return input->nuse > 0 && has_rings(input->first_use->op) && input->first_use->index > 2 ? input->shape.dim[RING_AXIS] : 0;
}

/* Put the last rows where a ring of `ring` rows has those of their positions, in the buffer where they are. */
static om_status
make_ring(om_set *x, struct content *c, int64_t ring)
{
	if (c->ring == ring)
		return OM_OK;
	if (c->ring)
		return om_fail(x->session, OM_UNSUPPORTED, "a cache has a ring of %lld rows in one part, and of %lld in another", (long long)c->ring,
			(long long)ring);
	spread(x, c, 0, 0);
	c->ring = ring;
	const om_row_blocks b = om_row_blocks_of(c->t.type, &c->t.shape, RING_AXIS);
	const int64_t rows = c->t.shape.dim[RING_AXIS], first = rows > ring ? rows - ring : 0;
	if (rows == ring)
		return OM_OK;
	char *from = malloc((size_t)((uint64_t)b.n * b.row * (uint64_t)rows) + 1), *to = c->t.data;

	if (!from)
		return om_fail(x->session, OM_MEMORY, "cannot allocate %lld rows of a cache", (long long)rows);
	memcpy(from, to, (size_t)((uint64_t)b.n * b.row * (uint64_t)rows));
	memset(to, 0, (size_t)((uint64_t)b.n * b.row * (uint64_t)ring));
	for (int64_t n = 0; n < (int64_t)b.n; n++)
		for (int64_t i = first; i < rows; i++)
			memcpy(to + (size_t)((n * ring + i % ring) * (int64_t)b.row), from + (size_t)((n * rows + i) * (int64_t)b.row), (size_t)b.row);
	free(from);
	x->copied += (uint64_t)b.n * b.row * (uint64_t)(rows - first);
	return OM_OK;
}

/* Give what is in memory the form that the input has. */
static om_status
give_form(om_set *x, const struct part *p, uint32_t k, struct content *c)
{
	const om_value *v = p->run.prog->first->param[k];
	const om_io_alias *a = om_set_rows_of(p->run.prog, k, false);

	if (ring_of(v))
		return make_ring(x, c, ring_of(v));
	if (c->ring)
		return om_fail(x->session, OM_UNSUPPORTED, "input %s of part %s has the rows of a cache in order, and another part has a ring of them",
			v->name, p->pub.name);
	spread(x, c, a ? a->axis : 0, a ? v->shape.dim[a->axis] : 0);
	return OM_OK;
}

/* Rows of all positions after a run whose output is a ring: those before it, and the new ones. */
static int64_t
rows_after(const om_set *x, const struct part *p, const om_op *op, uint32_t cache)
{
	const om_block *graph = p->run.prog->first;
	int64_t before = 0;

	for (uint32_t k = 0; k < graph->nparam; k++)
		if (graph->param[k] == op->in[cache] && p->in[k] >= 0)
			before = x->content[p->in[k]].t.shape.dim[RING_AXIS];
	return before + op->in[0]->shape.dim[1];
}

/* ---- A plan for the sizes. ---- */

static const om_tensor *
input_of(const om_set *x, const struct part *p, uint32_t k)
{
	const om_tensor *given = &p->run.given[k];

	if (given->type != OM_UNDEFINED)
		return given;
	return p->in[k] >= 0 && x->content[p->in[k]].is_valid ? &x->content[p->in[k]].t : NULL;
}

bool
om_set_lacks(const om_set *x, uint32_t part, uint32_t k)
{
	if (!x->memory || part >= x->npart || k >= x->part[part].prog->first->nparam)
		return false;
	const struct part *p = &x->part[part];
	if (om_input_is_fixed(p->prog->first->param[k]))
		return false;
	if (p->in[k] >= 0)
		return p->run.given[k].type == OM_UNDEFINED && !stays(x, (uint32_t)p->in[k], part);
	return p->run.given[k].type == OM_UNDEFINED;
}

/* Inputs that are one shared value are given the same, if they are given. */
static om_status
check_same(om_set *x, const struct part *p, uint32_t k)
{
	const om_tensor *given = p->run.given;

	for (uint32_t i = 0; i < k && p->in[k] >= 0; i++)
		if (p->in[i] == p->in[k] && given[i].type != OM_UNDEFINED && given[k].type != OM_UNDEFINED && !om_tensor_same(&given[i], &given[k]))
			return om_fail(x->session, OM_USAGE, "inputs %s and %s of part %s are one shared value, and are given two",
				p->prog->first->param[i]->name, p->prog->first->param[k]->name, p->pub.name);
	return OM_OK;
}

static om_status
bind_inputs(om_set *x, struct part *p, om_binding *b)
{
	const om_block *graph = p->prog->first;

	for (uint32_t k = 0; k < graph->nparam; k++) {
		OM_TRY(check_same(x, p, k));
		const om_tensor *t = input_of(x, p, k);
		if (om_input_is_fixed(graph->param[k]) || (!t && graph->param[k]->is_overridable))
			continue;
		if (!t)
			return om_fail(x->session, OM_RUN, "input %s of part %s has no value", graph->param[k]->name, p->pub.name);
		if (t->type != graph->param[k]->type.elem)
			return om_fail(x->session, OM_RUN, "input %s of part %s is %s, not %s", graph->param[k]->name, p->pub.name,
				om_dtype_text(t->type), om_dtype_text(graph->param[k]->type.elem));
		OM_TRY(om_binding_shape(x->session, b, graph->param[k]->name, &t->shape));
	}
	return OM_OK;
}

static om_status
check_value(om_set *x, const struct part *p, const om_value *v, int32_t value)
{
	const uint64_t bytes = om_value_bytes(v);

	if (value < 0 || bytes <= x->value[value].bytes)
		return OM_OK;
	return om_fail(x->session, OM_BUDGET, "%s of part %s takes %llu bytes in this run, and the set is planned for %llu", v->name, p->pub.name,
		(unsigned long long)bytes, (unsigned long long)x->value[value].bytes);
}

/* Does the plan of the set serve this plan of a part? */
static om_status
check_fit(om_set *x, const struct part *p, const om_prog *bound)
{
	const om_block *graph = bound->first;
	const uint64_t bytes = bound->plan->narena == 1 ? bound->plan->arena[0].bytes : UINT64_MAX;

	if (bytes > p->pub.bytes)
		return om_fail(x->session, OM_BUDGET, "the arena of part %s takes %llu bytes in this run, and the set is planned for %llu",
			p->pub.name, (unsigned long long)bytes, (unsigned long long)p->pub.bytes);
	for (uint32_t k = 0; k < graph->nparam; k++)
		OM_TRY(check_value(x, p, graph->param[k], p->in[k]));
	for (uint32_t k = 0; k < graph->nresult; k++) {
		const int64_t in = om_set_input_of(bound, k);
		OM_TRY(check_value(x, p, graph->result[k], p->out[k]));
		if ((in >= 0 && p->in[in] != p->out[k]) || (p->in_place[k] && p->out[k] >= 0 && in < 0))
			return om_fail(x->session, OM_BUDGET, "part %s has its output %s elsewhere than in the sizes that it is planned for", p->pub.name,
				graph->result[k]->name);
	}
	return OM_OK;
}

/* What stays with a part after the run that needs it first. */
struct lasting {
	om_set *x;
	struct part *p;
	const om_prog *bound;
};

static om_status
make_executor(void *arg)
{
	const struct lasting *l = arg;
	const om_exec_memory arena = {l->x->memory + l->p->pub.offset, l->p->pub.bytes};
	om_exec_options o = l->x->options;

	o.arena = &arena;
	o.narena = 1;
	return om_exec_new(l->x->session, l->bound, l->bound->plan, &o, &l->p->run.exec);
}

static om_status
make_cache(void *arg)
{
	const struct lasting *l = arg;

	l->p->run.cache = om_plan_cache_new_for(l->x->host, l->p->prog, l->p->pipeline, &l->p->request);
	return OM_OK;
}

static om_status
prepare(om_set *x, struct part *p, const om_prog *bound)
{
	if (p->run.exec && p->run.prog == bound)
		return OM_OK;
	om_exec_free(p->run.exec);
	p->run.exec = NULL;
	OM_TRY(check_fit(x, p, bound));
	OM_TRY(om_guarded_part(x->session, make_executor, &(struct lasting){x, p, bound}));
	p->run.prog = bound;
	return OM_OK;
}

static om_status
plan_run(om_set *x, struct part *p)
{
	const om_prog *bound = NULL;

	if (!p->run.cache)
		OM_TRY(om_guarded_part(x->session, make_cache, &(struct lasting){x, p, NULL}));
	om_binding *b = om_binding_new();
	om_status st = b ? bind_inputs(x, p, b) : om_fail(x->session, OM_MEMORY, "no memory for the shapes of a run");
	if (st == OM_OK)
		st = om_plan_cache_get(p->run.cache, b, &bound);
	om_binding_free(b);
	return st ? st : prepare(x, p, bound);
}

/* ---- A run. ---- */

/* The caller's elements of a shared value go to its buffer. */
static om_status
take_given(om_set *x, struct part *p, uint32_t k)
{
	const om_set_value *v = &x->value[p->in[k]];
	struct content *c = &x->content[p->in[k]];
	om_tensor *given = &p->run.given[k];
	uint64_t bytes;

	if (given->type == OM_UNDEFINED)
		return OM_OK;
	if (!om_tensor_bytes(given->type, &given->shape, &bytes) || bytes > v->bytes)
		return om_fail(x->session, OM_BUDGET, "input %s of part %s is larger than what the set is planned for", v->name, p->pub.name);
	const uint32_t buffer = c->buffer;
	*c = (struct content){.is_valid = true, .buffer = buffer, .t = *given};
	c->t.data = buffer_of(x, v, buffer);
	if (bytes)
		memmove(c->t.data, given->data, bytes);
	x->copied += bytes;
	*given = (om_tensor){.type = OM_UNDEFINED};
	return OM_OK;
}

static om_status
give_inputs(om_set *x, struct part *p)
{
	const om_block *graph = p->run.prog->first;

	for (uint32_t k = 0; k < graph->nparam; k++) {
		if (p->in[k] < 0) {
			if (p->run.given[k].type != OM_UNDEFINED)
				OM_TRY(om_exec_input(p->run.exec, k, &p->run.given[k]));
			continue;
		}
		OM_TRY(take_given(x, p, k));
		struct content *c = &x->content[p->in[k]];
		if (!c->is_valid)
			continue;
		OM_TRY(give_form(x, p, k, c));
		om_tensor t = c->t;
		t.shape = graph->param[k]->shape;
		OM_TRY(om_exec_input(p->run.exec, k, &t));
	}
	return OM_OK;
}

/* Where output `k` goes. */
static uint32_t
target_of(const om_set *x, const struct part *p, uint32_t k)
{
	const uint32_t now = x->content[p->out[k]].buffer;

	for (uint32_t i = 0; i < p->prog->first->nparam; i++)
		if (p->in[i] == p->out[k])
			return om_set_input_of(p->run.prog, k) >= 0 ? now : !now;
	return now;
}

static om_status
place_outputs(om_set *x, struct part *p)
{
	for (uint32_t k = 0; k < p->prog->first->nresult; k++) {
		if (p->out[k] < 0 || om_set_input_of(p->run.prog, k) >= 0)
			continue;
		const om_set_value *v = &x->value[p->out[k]];
		OM_TRY(om_exec_output(p->run.exec, k, buffer_of(x, v, target_of(x, p, k)), v->bytes));
	}
	return OM_OK;
}

static void
take_outputs(om_set *x, struct part *p)
{
	for (uint32_t k = 0; k < p->prog->first->nresult; k++) {
		const om_tensor *t = om_exec_result(p->run.exec, k);
		p->run.result[k] = *t;
		if (p->out[k] < 0)
			continue;
		const om_io_alias *a = om_set_rows_of(p->run.prog, k, true);
		const uint32_t buffer = target_of(x, p, k);
		struct content *c = &x->content[p->out[k]];
		const om_value *v = p->run.prog->first->result[k];
		const int64_t rows = has_rings(v->def) ? rows_after(x, p, v->def, v == v->def->out[1] ? 3 : 4) : 0;
		*c = (struct content){.is_valid = true, .buffer = buffer, .t = *t};
		c->t.data = buffer_of(x, &x->value[p->out[k]], buffer);
		if (rows) {
			c->ring = t->shape.dim[RING_AXIS];
			c->t.shape.dim[RING_AXIS] = rows;
		}
		if (a) {
			c->axis = a->axis;
			c->capacity = t->shape.dim[a->axis];
			c->t.shape.dim[a->axis] = a->rows_after;
		}
	}
}

/* ---- Poison. ---- */

struct watch {
	bool *is_used;           /* by byte of the arena: the part may write it, or it has a value */
	uint64_t *hash;          /* by value: of the bytes that the part only reads, or others keep */
};

static void
mark(const om_set *x, struct watch *w, uint64_t offset, uint64_t bytes)
{
	for (uint64_t k = offset; k < offset + bytes && k < x->plan.bytes; k++)
		w->is_used[k] = true;
}

static bool
writes(const struct part *p, uint32_t value)
{
	for (uint32_t k = 0; k < p->prog->first->nresult; k++)
		if (p->out[k] == (int32_t)value)
			return true;
	return false;
}

static void
poison(const om_set *x, const struct part *p, struct watch *w)
{
	mark(x, w, p->pub.offset, p->pub.bytes);
	for (uint32_t k = 0; k < x->nvalue; k++) {
		const om_set_value *v = &x->value[k];
		const struct content *c = &x->content[k];
		if (writes(p, k))
			for (uint32_t b = 0; b < v->nbuffer; b++)
				mark(x, w, v->offset[b], v->bytes);
		else if (c->is_valid) {
			mark(x, w, v->offset[c->buffer], v->bytes);
			w->hash[k] = om_fast_hash(0, c->t.data, v->bytes);
		}
	}
	for (uint64_t k = 0; k < x->plan.bytes; k++)
		if (!w->is_used[k])
			x->memory[k] = k & 1 ? HIGH : LOW;
}

static om_status
check_poison(const om_set *x, const struct part *p, const struct watch *w)
{
	for (uint32_t k = 0; k < x->nvalue; k++)
		if (!writes(p, k) && x->content[k].is_valid && w->hash[k] != om_fast_hash(0, x->content[k].t.data, x->value[k].bytes))
			return om_fail(x->session, OM_RUN, "part %s changed %s, which it does not write", p->pub.name, x->value[k].name);
	for (uint64_t k = 0; k < x->plan.bytes; k++)
		if (!w->is_used[k] && x->memory[k] != (k & 1 ? HIGH : LOW))
			return om_fail(x->session, OM_RUN, "part %s wrote byte %llu of the arena, which is not in use", p->pub.name, (unsigned long long)k);
	return OM_OK;
}

static om_status
run_part(om_set *x, struct part *p, om_arena *mem)
{
	struct watch w = {0};

	x->copied = 0;
	OM_TRY(plan_run(x, p));
	OM_TRY(give_inputs(x, p));
	OM_TRY(place_outputs(x, p));
	if (x->options.poison) {
		w = (struct watch){OM_NEWN(mem, bool, x->plan.bytes), OM_NEWN(mem, uint64_t, x->nvalue)};
		poison(x, p, &w);
	}
	OM_TRY(om_exec_run(p->run.exec));
	if (x->options.poison)
		OM_TRY(check_poison(x, p, &w));
	take_outputs(x, p);
	x->copied += om_exec_get_stats(p->run.exec)->copied_bytes;
	return OM_OK;
}

static om_status
run(om_set *x, uint32_t part)
{
	if (!x->memory || part >= x->npart)
		return om_fail(x->session, OM_USAGE, "the set is not started, or has no such part");
	OM_TRY(move_to(x, part));
	om_arena *mem = om_arena_new();
	const om_status st = run_part(x, &x->part[part], mem);
	om_arena_free(mem);
	return st ? om_note(x->session, st, "running part %s", x->part[part].pub.name) : OM_OK;
}

om_status
om_set_run(om_set *x, uint32_t part)
{
	OM_GUARDED(x->session, run(x, part));
}

const om_tensor *
om_set_result(const om_set *x, uint32_t part, uint32_t k)
{
	if (part >= x->npart || (int64_t)part != x->at || k >= x->part[part].prog->first->nresult)
		return NULL;
	return &x->part[part].run.result[k];
}

int64_t
om_set_result_rows(const om_set *x, uint32_t part, uint32_t k, int *axis)
{
	const om_io_alias *a = om_set_result(x, part, k) ? om_set_rows_of(x->part[part].run.prog, k, true) : NULL;

	if (a)
		*axis = a->axis;
	return a ? a->rows_after : -1;
}

uint64_t
om_set_copied(const om_set *x)
{
	return x->copied;
}
