/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines; see stages.h. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "cli/rank_states.h"
#include "cli/stages.h"
#include "ir/equal.h"
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
	const om_prog *of_micro; /* the same program for a micro-batch */
	const om_op **twin;      /* by op id: the op of that program; NULL: none */
	char *same;              /* by value id, of one that does not depend on samples: whether a micro-batch has it, too; 0: not known yet */
	om_arena *mem;
	bool *depends;           /* on samples */
	om_part *need;           /* of a value that is not needed, hi == 0 */
	int64_t lo, hi;
};

/* ---- Values that follow from the number of samples. ---- */

/* Does the operand only say which shape the output has? */
static bool
is_only_shape(const om_op *op, uint32_t in)
{
	static const struct { const char *type; uint32_t in; } all[] = {{"Reshape", 1}, {"Expand", 1}, {"ConstantOfShape", 0}, {"Resize", 3}};

	for (size_t k = 0; k < sizeof all / sizeof *all && !*op->domain; k++)
		if (in == all[k].in && strcmp(op->type, all[k].type) == 0)
			return true;
	return false;
}

/* Is `b` the shape of that part of `a`? */
static bool
is_shape_of_part(const om_shape *a, om_part part, const om_shape *b)
{
	if (a->rank != b->rank || a->rank < 0)
		return false;
	for (int k = 0; k < a->rank; k++)
		if (b->dim[k] != (k == part.axis ? part.hi - part.lo : a->dim[k]) || b->dim[k] < 0)
			return false;
	return true;
}

static bool
is_element(const om_tensor *a, int64_t at, const om_tensor *b, int64_t to, uint64_t bytes)
{
	return memcmp((const char *)a->data + (a->splat ? 0 : bytes * (uint64_t)at), (const char *)b->data + (b->splat ? 0 : bytes * (uint64_t)to),
		bytes) == 0;
}

/* Elements of less than a byte, and texts, are only compared by where they are. */
static bool
has_part(const om_tensor *a, om_part part, const om_tensor *b)
{
	const int axis = part.axis == OM_WHOLE ? 0 : part.axis;
	uint64_t bytes, two;

	if (a->type != b->type || !is_shape_of_part(&a->shape, part, &b->shape))
		return false;
	if (a->data == b->data && om_shape_equal(&a->shape, &b->shape) && a->splat == b->splat)
		return true;
	const om_shape one = {.rank = 0}, pair = {.rank = 1, .dim = {2}};
	if (a->type == OM_STRING || !om_tensor_bytes(a->type, &one, &bytes) || !om_tensor_bytes(a->type, &pair, &two) || two != 2 * bytes)
		return false;
	const int64_t dim = a->shape.rank ? a->shape.dim[axis] : 1, rows = a->shape.rank ? b->shape.dim[axis] : 1;
	int64_t outer = 1, inner = 1;
	for (int k = 0; k < a->shape.rank; k++)
		*(k < axis ? &outer : &inner) *= k == axis ? 1 : a->shape.dim[k];
	for (int64_t k = 0; k < outer; k++)
		for (int64_t i = 0; i < rows * inner; i++)
			if (!is_element(a, (k * dim + part.lo) * inner + i, b, k * rows * inner + i, bytes))
				return false;
	return true;
}

/* The same operator and attributes, for as many operands. */
static bool
is_same_op(const om_op *a, const om_op *b)
{
	return a && b && strcmp(a->type, b->type) == 0 && strcmp(a->domain, b->domain) == 0 && a->version == b->version && a->nin == b->nin
	    && a->nout == b->nout && !a->nbody && !b->nbody && om_op_attrs_equal(a, b);
}

static uint32_t
output_of(const om_op *op, const om_value *v)
{
	uint32_t k = 0;

	while (k < op->nout && op->out[k] != v)
		k++;
	return k;
}

static bool is_part(struct rows *r, const om_value *a, om_part part, const om_value *b);

/* Are both computed in the same way, as far as that part of `a` needs it? */
static bool
is_computed(struct rows *r, const om_value *a, om_part part, const om_value *b)
{
	const om_op *op = a->def, *twin = b->def;
	const bool whole = part.axis == OM_WHOLE;
	om_slice slice;

	if (!is_same_op(op, twin) || output_of(op, a) != output_of(twin, b) || (!whole && !om_op_slice(r->mem, op, output_of(op, a), part, &slice)))
		return false;
	for (uint32_t k = 0; k < op->nin; k++)
		if ((whole || !is_only_shape(op, k)) && !is_part(r, op->in[k], whole ? part : slice.in[k], twin->in[k]))
			return false;
	return true;
}

/* Has a micro-batch, as `b`, that part of `a`, where neither depends on samples? */
static bool
is_part(struct rows *r, const om_value *a, om_part part, const om_value *b)
{
	enum { NO = 1, YES };
	const bool whole = part.axis == OM_WHOLE;

	if ((!whole && part.lo == part.hi) || !a || !b)
		return (!whole && part.lo == part.hi) || a == b;
	if (!is_shape_of_part(&a->shape, part, &b->shape))
		return false;
	if (a->data && b->data)
		return has_part(a->data, part, b->data);
	if (!a->def || !b->def)
		return a->def == b->def && a->data == b->data && strcmp(a->name, b->name) == 0;
	if (!whole)
		return is_computed(r, a, part, b);
	if (!r->same[a->id])
		r->same[a->id] = is_computed(r, a, part, b) ? YES : NO;
	return r->same[a->id] == YES && strcmp(a->name, b->name) == 0;
}

static bool
needs(struct rows *r, const om_value *v, om_part part, const om_value *of_micro)
{
	om_part *need = &r->need[v->id];

	if (!r->depends[v->id])
		return is_part(r, v, part, of_micro);
	if (part.axis == OM_WHOLE || (need->hi && (need->axis != part.axis || need->lo != part.lo || need->hi != part.hi)))
		return false;
	*need = part;
	return of_micro && is_shape_of_part(&v->shape, part, &of_micro->shape)
		&& (v->def ? r->twin[v->def->id] == of_micro->def : !of_micro->def && strcmp(v->name, of_micro->name) == 0);
}

/* Does an op compute what is needed of its outputs from rows of these samples alone, in a micro-batch as in the batch? */
static bool
is_by_rows(struct rows *r, const om_op *op)
{
	const om_op *twin = r->twin[op->id];
	om_slice slice;

	for (uint32_t out = 0; out < op->nout; out++) {
		if (!op->out[out] || !r->depends[op->out[out]->id] || !r->need[op->out[out]->id].hi)
			continue;
		if (!is_same_op(op, twin) || !om_op_slice(r->mem, op, out, r->need[op->out[out]->id], &slice))
			return false;
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k] && !is_only_shape(op, k) && !needs(r, op->in[k], slice.in[k], twin->in[k]))
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
		if (!needs(r, graph->result[k], rows, r->of_micro->first->result[k]))
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
find_twins(struct rows *r)
{
	for (const om_op *op = r->p->first->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout && !r->twin[op->id]; k++) {
			const om_value *v = op->out[k] ? om_value_find(r->of_micro->first, op->out[k]->name) : NULL;
			r->twin[op->id] = v ? v->def : NULL;
		}
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

static om_status
check_rows(om_cli *c, const om_stages *s, const om_prog *p, const om_prog *of_micro, int64_t batch)
{
	om_arena *mem = om_arena_new();
	struct rows r = {.p = p, .of_micro = of_micro, .mem = mem, .twin = OM_NEWN(mem, const om_op *, p->nop), .same = OM_NEWN(mem, char, p->nvalue),
		.depends = OM_NEWN(mem, bool, p->nvalue), .need = OM_NEWN(mem, om_part, p->nvalue)};
	om_status st = OM_OK;

	find_twins(&r);
	find_dependent(&r);
	for (uint32_t m = 0; m < s->micro && st == OM_OK; m++) {
		r.lo = batch / s->micro * m;
		r.hi = r.lo + batch / s->micro;
		const om_op *op = joining_op(&r);
		if (op)
			st = om_op_fail(c->session, OM_UNSUPPORTED, op, "may read other samples of the batch for one, or how many they are, so that "
				"--micro-batches could change results");
	}
	om_arena_free(mem);
	return st;
}

/* A copy of the program for these inputs. */
static om_status
copy_for(om_cli *c, const om_tensor *in, om_prog **out)
{
	om_prog *keep = c->prog;

	c->prog = NULL;
	om_status st = om_cli_copy(c);
	if (st == OM_OK)
		st = om_cli_shapes(c, in, true);
	if (st == OM_OK)
		st = om_host_run(c->host, c->prog, "inline,shapes,fold,prune");
	*out = c->prog;
	c->prog = keep;
	return st;
}

/* `part` are the inputs of a micro-batch. */
static om_status
check_independent(om_cli *c, const om_stages *s, const om_tensor *in, const om_tensor *part)
{
	om_prog *whole, *micro = NULL;
	int64_t batch = 0;

	for (uint32_t k = 0; k < c->prog->first->nparam; k++)
		if (has_samples(c->prog->first->param[k]))
			batch = in[k].shape.dim[0];
	om_status st = copy_for(c, in, &whole);
	if (st == OM_OK)
		st = copy_for(c, part, &micro);
	if (st == OM_OK)
		st = check_rows(c, s, whole, micro, batch);
	om_prog_free(micro);
	om_prog_free(whole);
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
	return check_independent(c, s, in, part);
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

static const char *
state_name(const om_prog *step, uint32_t state)
{
	return step->first->param[step->io_alias[state].param]->name;
}

/* For each state of the step, which ranks have it: [state][rank]. */
static om_status
find_owners(om_cli *c, const om_ranks *r, const om_prog *step, const om_trainer *own, unsigned char **has)
{
	const uint32_t n = step->nio_alias;
	unsigned char *mine = OM_NEWN(c->mem, unsigned char, (size_t)n + 1);

	*has = OM_NEWN(c->mem, unsigned char, ((size_t)n + 1) * r->size);
	for (uint32_t k = 0; k < n; k++)
		mine[k] = om_rank_states_find(own, state_name(step, k)) != NULL;
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

/* Rank `from` has the state in `source`, rank `to` in `dest`; other ranks, and both where they are one, need no message. */
static om_status
move_state(om_cli *c, const om_ranks *r, const char *name, uint32_t from, const om_trainer *source, uint32_t to, const om_trainer *dest)
{
	const om_tensor *was = r->rank == from ? om_rank_states_find(source, name) : NULL, *is = r->rank == to ? om_rank_states_find(dest, name) : NULL;
	uint64_t bytes = 0;

	if ((was && !om_tensor_bytes(was->type, &was->shape, &bytes)) || (is && !om_tensor_bytes(is->type, &is->shape, &bytes)))
		return om_fail(c->session, OM_SHAPE, "the state %s is too large", name);
	if (was && is)
		memcpy(is->data, was->data, bytes);
	else if (is)
		return om_comm_receive(r->comm, c->session, from, TAG, is->data, bytes);
	else if (was)
		return om_comm_send(r->comm, c->session, to, TAG, was->data, bytes);
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
	for (uint32_t k = 0; k < n && st == OM_OK; k++) {
		const uint32_t owner = first_owner(has, r, n, k);
		st = owner < r->size ? move_state(c, r, state_name(step, k), owner, own, 0, *whole)
		    : om_fail(c->session, OM_RUN, "no rank has the state %s", state_name(step, k));
	}
	if (st != OM_OK) {
		om_trainer_free(*whole);
		*whole = NULL;
	}
	return st;
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
				OM_TRY(move_state(c, r, state_name(step, k), 0, whole, to, own));
	return OM_OK;
}
