/* SPDX-License-Identifier: Apache-2.0 */
/* Planning a part of a set for each of its sizes. */
#include <config.h>

#include <string.h>

#include "alloc/assign.h"
#include "ir/binding.h"
#include "ir/dim_expression.h"
#include "set/set.h"

#define BAD(x, ...) om_fail((x)->session, OM_INVALID, __VA_ARGS__)

/* ---- Plans. ---- */

int64_t
om_set_input_of(const om_prog *p, uint32_t output)
{
	const om_value *v = p->first->result[output];
	bool found = true;

	while (found) {
		found = false;
		for (uint32_t k = 0; k < p->first->nparam; k++)
			if (p->first->param[k] == v)
				return v == p->first->result[output] ? -1 : (int64_t)k;
		for (uint32_t k = 0; k < p->plan->nalias && !found; k++)
			if (p->plan->alias[k].value == v->id) {
				found = true;
				v = p->values[p->plan->alias[k].source];
			}
	}
	return -1;
}

const om_io_alias *
om_set_rows_of(const om_prog *p, uint32_t k, bool is_output)
{
	for (uint32_t i = 0; i < p->nio_alias; i++)
		if ((is_output ? p->io_alias[i].result : p->io_alias[i].param) == k && p->io_alias[i].rows_after)
			return &p->io_alias[i];
	return NULL;
}

static om_status
record_end(om_set *x, const struct part *p, const om_value *v, int32_t value)
{
	uint64_t bytes;

	if (v->type.kind != OM_TENSOR || v->type.elem == OM_STRING || !om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		return om_fail(x->session, OM_UNSUPPORTED, "%s.%s cannot be a shared value: its size is not known before a run", p->pub.name,
			v->name);
	if (bytes > x->value[value].bytes)
		x->value[value].bytes = bytes;
	return OM_OK;
}

/* What a plan stores in the memory of a shared value is that value. */
static om_status
check_output(om_set *x, struct part *p, const om_prog *bound, uint32_t k)
{
	const int64_t in = om_set_input_of(bound, k);

	if (in < 0 || (p->in[in] < 0 && p->out[k] < 0)) {
		p->in_place[k] = false;
		return OM_OK;
	}
	if (p->in[in] == p->out[k])
		return OM_OK;
	return BAD(x, "%s: part %s writes its output %s over its input %s: both have to be in one link, or neither", x->path, p->pub.name,
		bound->first->result[k]->name, bound->first->param[in]->name);
}

static om_status
record(om_set *x, struct part *p, const om_prog *bound)
{
	const om_block *graph = bound->first;
	const om_plan_memory m = om_plan_memory_of(bound, bound->plan);
	uint64_t shared = 0;

	if (bound->plan->narena != 1 || (bound->plan->arena[0].device && strcmp(bound->plan->arena[0].device, "cpu") != 0))
		return om_fail(x->session, OM_UNSUPPORTED, "a set has one arena, and the plan of part %s has %u", p->pub.name, bound->plan->narena);
	for (uint32_t k = 0; k < graph->nparam; k++) {
		if (p->in[k] >= 0)
			OM_TRY(record_end(x, p, graph->param[k], p->in[k]));
		else if (om_set_rows_of(bound, k, false))
			return BAD(x, "%s: input %s of part %s is a cache with spare rows: it has to be in a link", x->path, graph->param[k]->name, p->pub.name);
		shared += p->in[k] >= 0 ? om_value_bytes(graph->param[k]) : 0;
	}
	for (uint32_t k = 0; k < graph->nresult; k++) {
		if (p->out[k] >= 0)
			OM_TRY(record_end(x, p, graph->result[k], p->out[k]));
		OM_TRY(check_output(x, p, bound, k));
		shared += p->out[k] >= 0 && !p->in_place[k] ? om_value_bytes(graph->result[k]) : 0;
	}
	p->pub.bytes = m.arenas > p->pub.bytes ? m.arenas : p->pub.bytes;
	p->pub.weights = m.weights > p->pub.weights ? m.weights : p->pub.weights;
	p->pub.alone = m.arenas + shared > p->pub.alone ? m.arenas + shared : p->pub.alone;
	p->pub.nsize++;
	return OM_OK;
}

static om_status
plan_copy(om_set *x, struct part *p, om_prog *bound)
{
	OM_TRY(om_host_plan_for(x->host, bound, p->pipeline, &p->request));
	return record(x, p, bound);
}

/* ---- Sizes. ---- */

/* The numbers of the dims of a part, as far as they are known. */
struct numbers {
	const struct part *p;
	int64_t *number;
	bool *is_known;
};

static bool
number_of(const void *arg, const char *name, size_t n, int64_t *out)
{
	const struct numbers *all = arg;

	for (uint32_t k = 0; k < all->p->ndim; k++)
		if (all->is_known[k] && strlen(all->p->dim[k].symbol) == n && memcmp(all->p->dim[k].symbol, name, n) == 0)
			return *out = all->number[k], true;
	return false;
}

/* Find the numbers of sums.  The result is a dim whose sum has a term that is no dim of the part, or that depends on the sum;
 * NULL: there is none. */
static const struct set_dim *
add_up(struct numbers *all)
{
	const struct set_dim *unknown;
	bool any;

	for (uint32_t k = 0; k < all->p->ndim; k++)
		all->is_known[k] = !all->p->dim[k].sum;
	do {
		unknown = NULL;
		any = false;
		for (uint32_t k = 0; k < all->p->ndim; k++) {
			if (all->is_known[k])
				continue;
			if (om_dim_expression(all->p->dim[k].sum, number_of, all, &all->number[k]))
				any = all->is_known[k] = true;
			else
				unknown = &all->p->dim[k];
		}
	} while (any && unknown);
	return unknown;
}

static om_status
bind_size(om_set *x, struct part *p, om_arena *mem, const int64_t *number, om_binding *b)
{
	om_status st = OM_OK;
	const char *told, *input;
	const om_shape *shape;
	om_prog *given = NULL;

	for (uint32_t k = 0; k < p->ndim && st == OM_OK; k++)
		st = om_binding_dim(x->session, b, p->dim[k].symbol, number[k]);
	for (size_t k = 0; st == OM_OK && om_binding_input(p->fixed, k, &input, &shape); k++)
		st = om_binding_shape(x->session, b, input, shape);
	/* Batches that are open after that. */
	if (st == OM_OK)
		st = om_prog_bind(x->session, p->prog, b, &given);
	if (st == OM_OK)
		st = om_binding_batches(x->session, given, b, mem, &told);
	om_prog_free(given);
	om_binding_rest(b, 0);
	return st;
}

static om_status
plan_size(om_set *x, struct part *p, om_arena *mem, const int64_t *number)
{
	om_binding *b = om_binding_new();
	om_prog *bound = NULL;

	om_status st = b ? bind_size(x, p, mem, number, b) : OM_MEMORY;
	if (st == OM_OK)
		st = om_prog_bind(x->session, p->prog, b, &bound);
	om_binding_free(b);
	if (st == OM_OK)
		st = plan_copy(x, p, bound);
	om_prog_free(bound);
	return st ? om_note(x->session, st, "planning part %s", p->pub.name) : OM_OK;
}

/* The next combination; false: that was the last one. */
static bool
next_size(const struct part *p, int64_t *number)
{
	for (uint32_t k = 0; k < p->ndim; k++) {
		if (p->dim[k].sum)
			continue;
		if (number[k]++ < p->dim[k].high)
			return true;
		number[k] = p->dim[k].low;
	}
	return false;
}

static om_status
count_sizes(om_set *x, const struct part *p)
{
	uint64_t n = 1;

	for (uint32_t k = 0; k < p->ndim && n <= OM_SET_MOST_SIZES; k++)
		if (!p->dim[k].sum)
			n *= (uint64_t)(p->dim[k].high - p->dim[k].low) < OM_SET_MOST_SIZES ? (uint64_t)(p->dim[k].high - p->dim[k].low) + 1
				: OM_SET_MOST_SIZES + 1;
	return n <= OM_SET_MOST_SIZES ? OM_OK : BAD(x, "%s: part %s has more than %d sizes", x->path, p->pub.name, OM_SET_MOST_SIZES);
}

static om_status
plan_sizes(om_set *x, struct part *p, om_arena *mem)
{
	int64_t *number = OM_NEWN(mem, int64_t, p->ndim);
	struct numbers all = {p, OM_NEWN(mem, int64_t, p->ndim), OM_NEWN(mem, bool, p->ndim)};
	const struct set_dim *unknown;

	for (uint32_t k = 0; k < p->ndim; k++)
		number[k] = p->dim[k].low;
	do {
		if (p->ndim)
			memcpy(all.number, number, p->ndim * sizeof *number);
		if ((unknown = add_up(&all)))
			return BAD(x, "%s: part %s: dim %s is the sum of something that is no other dim of the part", x->path, p->pub.name,
				unknown->symbol);
		OM_TRY(plan_size(x, p, mem, all.number));
	} while (next_size(p, number));
	return OM_OK;
}

om_status
om_set_plan_part(om_set *x, struct part *p)
{
	om_arena *mem = om_arena_new();

	p->pub.nsize = 0;
	p->pub.bytes = p->pub.weights = p->pub.alone = 0;
	for (uint32_t k = 0; k < p->prog->first->nresult; k++)
		p->in_place[k] = true;
	om_status st = count_sizes(x, p);
	if (st == OM_OK)
		st = plan_sizes(x, p, mem);
	om_arena_free(mem);
	return st;
}
