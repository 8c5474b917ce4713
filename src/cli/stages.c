/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines; see stages.h. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "cli/stages.h"
#include "onnxmem/slice.h"

enum { MOST_MICRO = 1024, TAG = 24 };

om_status
om_stages_read(om_cli *c, om_stages *out)
{
	uint64_t micro = 1;

	*out = (om_stages){.used = om_cli_has(c, "pipeline") || om_cli_has(c, "micro-batches")};
	if (out->used && om_cli_has(c, "device"))
		return om_fail(c->session, OM_USAGE, "options --%s and --device do not go together: parts run on the processor",
			om_cli_has(c, "pipeline") ? "pipeline" : "micro-batches");
	OM_TRY(om_cli_number(c, "micro-batches", 1, MOST_MICRO, &micro));
	out->micro = (uint32_t)micro;
	return OM_OK;
}

/* ---- Micro-batches. ---- */

/* Inputs that are scalars, or have a default, go to all micro-batches as they are. */
static bool
has_samples(const om_value *v)
{
	return !v->data && v->shape.rank != 0;
}

static om_status
check_input(om_cli *c, om_stages *s, const om_value *v, const om_tensor *t)
{
	if (t->type == OM_UNDEFINED)
		return om_fail(c->session, OM_USAGE, "--micro-batches requires the samples of %s as data", v->name);
	if (v->shape.rank < 0 || v->shape.dim[0] >= 0 || !v->shape.sym[0])
		return om_fail(c->session, OM_USAGE, "--micro-batches divides the first dim of each input, but that of %s is not open", v->name);
	if (s->divided && strcmp(s->divided, v->shape.sym[0]) != 0)
		return om_fail(c->session, OM_USAGE, "--micro-batches divides the samples %s of each input, but the first dim of %s is %s", s->divided,
			v->name, v->shape.sym[0]);
	s->divided = om_strdup(c->mem, v->shape.sym[0]);
	return OM_OK;
}

/* Rows of the batch, and by value id what they need of each value. */
struct rows {
	const om_prog *p;
	om_arena *mem;
	bool *depends;           /* on samples */
	om_part *need;           /* of a value that is not needed, hi == 0 */
	int64_t lo, hi;
};

static bool
needs(struct rows *r, const om_value *v, om_part part)
{
	om_part *need = &r->need[v->id];

	if (!r->depends[v->id])
		return true;
	if (part.axis == OM_WHOLE || (need->hi && (need->axis != part.axis || need->lo != part.lo || need->hi != part.hi)))
		return false;
	*need = part;
	return true;
}

/* Does an op compute what is needed of its outputs from rows of these samples alone? */
static bool
is_by_rows(struct rows *r, const om_op *op)
{
	om_slice slice;

	for (uint32_t out = 0; out < op->nout; out++) {
		if (!op->out[out] || !r->depends[op->out[out]->id] || !r->need[op->out[out]->id].hi)
			continue;
		if (op->nbody || !om_op_slice(r->mem, op, out, r->need[op->out[out]->id], &slice))
			return false;
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k] && !needs(r, op->in[k], slice.in[k]))
				return false;
	}
	return true;
}

/* The op that joins the samples of a batch, or may do so, where rows [lo, hi) of the results are computed; NULL: there is none. */
static const om_op *
joining_op(struct rows *r)
{
	const om_block *graph = r->p->first;
	const om_part rows = {0, r->lo, r->hi};

	memset(r->need, 0, r->p->nvalue * sizeof *r->need);
	for (uint32_t k = 0; k < graph->nresult; k++)
		if (!needs(r, graph->result[k], rows))
			return graph->result[k]->def;
	for (const om_op *op = graph->last; op; op = op->prev)
		if (!op->is_folded && !is_by_rows(r, op))
			return op;
	for (uint32_t k = 0; k < graph->nparam; k++) {
		const om_part *need = &r->need[graph->param[k]->id];
		if (need->hi && (need->axis != 0 || need->lo != r->lo || need->hi != r->hi))
			return graph->param[k]->first_use->op;
	}
	return NULL;
}

static void
find_dependent(struct rows *r)
{
	const om_block *graph = r->p->first;

	for (uint32_t k = 0; k < graph->nparam; k++)
		r->depends[graph->param[k]->id] = has_samples(graph->param[k]);
	for (const om_op *op = graph->first; op; op = op->next) {
		bool any = op->nbody != 0;
		for (uint32_t k = 0; k < op->nin; k++)
			any |= op->in[k] && r->depends[op->in[k]->id];
		for (uint32_t k = 0; k < op->nout && any && !op->is_folded; k++)
			if (op->out[k])
				r->depends[op->out[k]->id] = true;
	}
}

/* c->prog is of the whole batch. */
static om_status
check_rows(om_cli *c, const om_stages *s, int64_t batch)
{
	om_arena *mem = om_arena_new();
	struct rows r = {.p = c->prog, .mem = mem, .depends = OM_NEWN(mem, bool, c->prog->nvalue),
		.need = OM_NEWN(mem, om_part, c->prog->nvalue)};
	om_status st = OM_OK;

	find_dependent(&r);
	for (uint32_t m = 0; m < s->micro && st == OM_OK; m++) {
		r.lo = batch / s->micro * m;
		r.hi = r.lo + batch / s->micro;
		const om_op *op = joining_op(&r);
		if (op)
			st = om_op_fail(c->session, OM_UNSUPPORTED, op, "may read other samples of the batch for one, so that --micro-batches "
				"could change results");
	}
	om_arena_free(mem);
	return st;
}

/* In a copy of the program. */
static om_status
check_independent(om_cli *c, const om_stages *s, const om_tensor *in)
{
	om_prog *keep = c->prog;
	int64_t batch = 0;

	for (uint32_t k = 0; k < keep->first->nparam; k++)
		if (has_samples(keep->first->param[k]))
			batch = in[k].shape.dim[0];
	c->prog = NULL;
	om_status st = om_cli_copy(c);
	if (st == OM_OK)
		st = om_cli_shapes(c, in, true);
	if (st == OM_OK)
		st = om_host_run(c->host, c->prog, "inline,shapes,fold,prune");
	if (st == OM_OK)
		st = check_rows(c, s, batch);
	om_prog_free(c->prog);
	c->prog = keep;
	return st;
}

om_status
om_stages_check(om_cli *c, om_stages *s, const om_tensor *in)
{
	const om_block *graph = c->prog->first;
	const om_tensor *part;

	if (s->micro == 1)
		return OM_OK;
	OM_TRY(om_stages_divide(c, s, in, graph->nparam, &part));
	for (uint32_t k = 0; k < graph->nparam; k++)
		if (has_samples(graph->param[k]))
			OM_TRY(check_input(c, s, graph->param[k], &in[k]));
	for (uint32_t k = 0; k < graph->nresult; k++) {
		const om_shape *shape = &graph->result[k]->shape;
		if (shape->rank <= 0 || !shape->sym[0] || !s->divided || strcmp(shape->sym[0], s->divided) != 0)
			return om_fail(c->session, OM_USAGE, "--micro-batches joins the first dim of each output, but that of %s is not known to be "
				"the samples", graph->result[k]->name);
	}
	return check_independent(c, s, in);
}

om_status
om_stages_divide(om_cli *c, const om_stages *s, const om_tensor *in, uint32_t n, const om_tensor **out)
{
	om_tensor *part = om_memdup(c->mem, in, n * sizeof *in);

	*out = part;
	for (uint32_t k = 0; k < n && s->micro > 1; k++) {
		if (part[k].type == OM_UNDEFINED || part[k].shape.rank == 0)
			continue;
		if (part[k].shape.dim[0] % s->micro)
			return om_fail(c->session, OM_USAGE, "%lld samples cannot be divided into %u micro-batches of equal size",
				(long long)part[k].shape.dim[0], s->micro);
		part[k].shape.dim[0] /= s->micro;
	}
	return OM_OK;
}

void
om_stages_plan(om_cli *c, const om_stages *s, const om_ranks *r)
{
	c->before_schedule = s && s->used ? om_printf(c->mem, "stage:parts=%u:rank=%u:micro=%u:whole=%u:scale=%.17g,prune", r->size, r->rank,
		s->micro, s->whole ? s->whole : s->micro, s->scale > 0 ? s->scale : 1) : NULL;
}

/* ---- States. ---- */

static const om_tensor *
find_state(const om_trainer *t, const char *name)
{
	const om_tensor *found;
	const char *is;

	for (uint32_t k = 0; (found = om_trainer_state(t, k, &is)); k++)
		if (strcmp(is, name) == 0)
			return found;
	return NULL;
}

/* For each state of the step, which ranks have it: [state][rank]. */
static om_status
find_owners(om_cli *c, const om_ranks *r, const om_prog *step, const om_trainer *own, unsigned char **has)
{
	const uint32_t n = step->nio_alias;
	unsigned char *mine = OM_NEWN(c->mem, unsigned char, (size_t)n + 1);

	*has = OM_NEWN(c->mem, unsigned char, ((size_t)n + 1) * r->size);
	for (uint32_t k = 0; k < n; k++)
		mine[k] = find_state(own, step->first->param[step->io_alias[k].param]->name) != NULL;
	if (r->size == 1)
		memcpy(*has, mine, n);
	return r->size == 1 ? OM_OK : om_comm_all_gather(r->comm, c->session, (om_comm_group){0}, mine, *has, n);
}

static uint32_t
first_owner(const unsigned char *has, const om_ranks *r, uint32_t n, uint32_t state)
{
	uint32_t rank = 0;

	while (rank < r->size && !has[(size_t)rank * n + state])
		rank++;
	return rank;
}

static om_status
gather_state(om_cli *c, const om_ranks *r, uint32_t owner, const char *name, const om_trainer *own, om_trainer *whole)
{
	const om_tensor *from = find_state(own, name), *to = whole ? find_state(whole, name) : NULL;
	uint64_t bytes = 0;

	if (owner == r->size)
		return om_fail(c->session, OM_RUN, "no rank has the state %s", name);
	if ((from && !om_tensor_bytes(from->type, &from->shape, &bytes)) || (to && !om_tensor_bytes(to->type, &to->shape, &bytes)))
		return om_fail(c->session, OM_SHAPE, "the state %s is too large", name);
	if (owner == 0 && r->rank == 0)
		memcpy(to->data, from->data, bytes);
	else if (r->rank == 0)
		return om_comm_receive(r->comm, c->session, owner, TAG, to->data, bytes);
	else if (r->rank == owner)
		return om_comm_send(r->comm, c->session, 0, TAG, from->data, bytes);
	return OM_OK;
}

om_status
om_stages_gather(om_cli *c, const om_ranks *r, const om_prog *step, const om_trainer *own, om_trainer **whole)
{
	const uint32_t n = step->nio_alias;
	unsigned char *has;

	*whole = NULL;
	OM_TRY(find_owners(c, r, step, own, &has));
	om_status st = r->rank == 0 ? om_trainer_new(c->session, step, whole) : OM_OK;
	for (uint32_t k = 0; k < n && st == OM_OK; k++)
		st = gather_state(c, r, first_owner(has, r, n, k), step->first->param[step->io_alias[k].param]->name, own, *whole);
	if (st != OM_OK) {
		om_trainer_free(*whole);
		*whole = NULL;
	}
	return st;
}

static om_status
spread_state(om_cli *c, const om_ranks *r, uint32_t to, const char *name, const om_trainer *whole, const om_trainer *own)
{
	const om_tensor *from = whole ? find_state(whole, name) : NULL, *mine = r->rank == to ? find_state(own, name) : NULL;
	uint64_t bytes = 0;

	if ((from && !om_tensor_bytes(from->type, &from->shape, &bytes)) || (mine && !om_tensor_bytes(mine->type, &mine->shape, &bytes)))
		return om_fail(c->session, OM_SHAPE, "the state %s is too large", name);
	if (to == 0 && r->rank == 0)
		memcpy(mine->data, from->data, bytes);
	else if (r->rank == 0)
		return om_comm_send(r->comm, c->session, to, TAG, from->data, bytes);
	else if (r->rank == to)
		return om_comm_receive(r->comm, c->session, 0, TAG, mine->data, bytes);
	return OM_OK;
}

om_status
om_stages_spread(om_cli *c, const om_ranks *r, const om_prog *step, const om_trainer *whole, om_trainer *own)
{
	const uint32_t n = step->nio_alias;
	unsigned char *has;

	OM_TRY(find_owners(c, r, step, own, &has));
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t to = 0; to < r->size; to++)
			if (has[(size_t)to * n + k])
				OM_TRY(spread_state(c, r, to, step->first->param[step->io_alias[k].param]->name, whole, own));
	return OM_OK;
}
