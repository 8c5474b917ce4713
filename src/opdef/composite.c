/* Operators that are made of others: see composite.h.
 *
 * A part is a call of the row of its operator, with an op that is made up for
 * it.  Every tensor between parts has a piece of scratch of its own, unless it
 * is a view; behind them lies the scratch of the part at work. */
#include <config.h>

#include "onnxmem/kernel.h"
#include "opdef/numbers.h"
#include "opdef/composite.h"

/* ---- Columns. ---- */

om_status
om_composite_infer(om_op_context *c, om_recipe *recipe)
{
	om_composite p = {.c = c, .doing = OM_INFERRING};

	recipe(&p);
	return p.st;
}

om_status
om_composite_cpu(om_op_context *c, om_recipe *recipe)
{
	om_composite p = {.c = c, .doing = OM_RUNNING, .base = c->scratch};

	recipe(&p);
	return p.st;
}

/* What is counted has been inferred already, so nothing is left to complain
 * about; a session is there all the same, for whoever would. */
static void
count(const om_op_context *c, om_recipe *recipe, om_composite *p)
{
	om_op_context quiet = *c;

	quiet.session = om_session_new();
	om_session_log(quiet.session, NULL, NULL, OM_LOG_QUIET);
	*p = (om_composite){.c = &quiet, .doing = OM_COUNTING};
	recipe(p);
	p->c = NULL;
	om_session_free(quiet.session);
}

uint64_t
om_composite_scratch(const om_op_context *c, om_recipe *recipe)
{
	om_composite p;

	count(c, recipe, &p);
	return p.st == OM_OK ? p.most : 0;
}

void
om_composite_cost(const om_op_context *c, om_recipe *recipe, om_cost *cost)
{
	om_composite p;

	count(c, recipe, &p);
	if (p.st == OM_OK)
		cost->flops = p.flops;
}

/* ---- Tensors. ---- */

const om_attr *
om_composite_forwarded(om_composite *p, const char *type)
{
	return om_attrs_of(p->c->mem, p->c->op, om_opdef_find("", type, 24));
}

const om_tensor *
om_composite_add(const om_composite *p, uint32_t k)
{
	return om_has_in(p->c, k) ? &p->c->in[k] : NULL;
}

bool
om_composite_fills(const om_composite *p)
{
	return p->doing == OM_RUNNING && p->st == OM_OK;
}

/* A place for the tensor, whose shape is known where it is not inferring. */
static void
place(om_composite *p, om_tensor *t)
{
	uint64_t bytes;

	t->data = NULL;
	if (p->doing == OM_INFERRING || p->st != OM_OK)
		return;
	if (!om_tensor_bytes(t->type, &t->shape, &bytes)) {
		om_composite_refuse(p, OM_SHAPE, "the size of a part of it is not known");
		return;
	}
	if (p->doing == OM_RUNNING)
		t->data = p->base + p->used;
	p->used = om_segments(p->used, om_piece_size(bytes ? bytes : 1));
	p->most = p->used > p->most ? p->used : p->most;
}

om_tensor *
om_composite_workspace(om_composite *p, om_dtype type, const om_shape *shape)
{
	om_tensor *t = OM_NEW(p->c->mem, om_tensor);

	*t = (om_tensor){.type = type, .shape = *shape};
	place(p, t);
	return t;
}

void
om_composite_set_output(om_composite *p, uint32_t k, const om_tensor *t)
{
	uint64_t bytes = 0;

	if (p->st != OM_OK || !om_has_out(p->c, k))
		return;
	om_tensor *out = &p->c->out[k];
	if (p->doing == OM_INFERRING) {
		out->type = t->type;
		out->shape = t->shape;
	} else if (p->doing == OM_RUNNING) {
		if (out->type != t->type || !om_shape_equal(&out->shape, &t->shape)) {
			om_composite_refuse(p, OM_RUN, "what comes out is not what was planned");
			return;
		}
		om_tensor_bytes(t->type, &t->shape, &bytes);
		if (bytes)
			memcpy(out->data, t->data, bytes);
	}
}

const om_tensor *
om_composite_ints(om_composite *p, size_t n, const int64_t *v)
{
	om_tensor *t = OM_NEW(p->c->mem, om_tensor);

	*t = (om_tensor){.type = OM_INT64, .shape = om_shape_of(1, (int64_t[]){(int64_t)n})};
	t->data = om_alloc(p->c->mem, n * sizeof *v + 1);
	if (n)
		memcpy(t->data, v, n * sizeof *v);
	return t;
}

const om_tensor *
om_composite_real(om_composite *p, om_dtype type, double v)
{
	om_tensor *t = OM_NEW(p->c->mem, om_tensor);

	*t = (om_tensor){.type = type, .shape = om_shape_of(0, NULL), .data = om_alloc(p->c->mem, sizeof v)};
	om_put(type, t->data, 0, v);
	return t;
}

const om_tensor *
om_composite_shaped(om_composite *p, const om_tensor *t, size_t n, const int64_t *dims)
{
	return OM_SUBBUFFER(p, "Reshape", OM_PLAINLY, t, om_composite_ints(p, n, dims));
}

void
om_composite_refuse(om_composite *p, om_status st, const char *why)
{
	if (p->st == OM_OK)
		p->st = om_op_fail(p->c->session, st, p->c->op, "%s", why);
}

/* ---- Parts. ---- */

static om_value *
value_of(om_composite *p, const om_tensor *t)
{
	om_value *v = OM_NEW(p->c->mem, om_value);

	v->name = "part";
	v->type = (om_type){.kind = OM_TENSOR, .elem = t->type};
	v->shape = t->shape;
	return v;
}

/* The op: called like the one that it is a part of, for messages. */
static om_op *
op_of(om_composite *p, const om_opdef *row, int version, const om_attr *attrs, uint32_t nin, const om_tensor *const *in,
	uint32_t nout)
{
	om_op *op = OM_NEW(p->c->mem, om_op);

	*op = *p->c->op;
	op->opdef = row;
	op->domain = "";
	op->version = version;
	op->attr = (om_attr *)attrs;
	for (op->nattr = 0; attrs[op->nattr].name; op->nattr++)
		;
	op->nin = nin;
	op->nout = nout;
	op->in = OM_NEWN(p->c->mem, om_value *, nin + 1);
	op->out = OM_NEWN(p->c->mem, om_value *, nout + 1);
	for (uint32_t k = 0; k < nin; k++)
		op->in[k] = in[k] ? value_of(p, in[k]) : NULL;
	for (uint32_t k = 0; k < nout; k++)
		op->out[k] = value_of(p, &(om_tensor){.shape = om_shape_unknown()});
	return op;
}

/* Views need no place. */
static bool
is_view(om_composite *p, const om_op_context *part, uint32_t k, om_tensor *out)
{
	om_view_of v;

	if (p->doing == OM_INFERRING || !part->op->opdef->view || !part->op->opdef->view(part, k, &v))
		return false;
	out->data = p->doing == OM_RUNNING ? (char *)part->in[v.in].data + v.offset : NULL;
	return true;
}

static om_status
compute(om_composite *p, om_op_context *part, const bool *viewed)
{
	const om_opdef *row = part->op->opdef;
	OM_TRY(om_kernel_bind(part, NULL));
	const uint64_t scratch = om_kernel_workspace(part);
	const uint64_t most = om_segments(p->used, om_piece_size(scratch));
	om_cost cost = {(double)om_shape_count(&part->out[0].shape), 0};
	bool all = true;

	for (uint32_t k = 0; k < part->op->nout; k++)
		all &= viewed[k];
	if (row->cost)
		row->cost(part, &cost);
	p->flops += all ? 0 : cost.flops;
	p->most = most > p->most ? most : p->most;
	if (p->doing == OM_COUNTING || all)
		return OM_OK;
	part->scratch = p->base + p->used;
	return om_kernel_run(part);
}

void
om_part_run(om_composite *p, const char *type, int version, const om_attr *attrs, uint32_t nin,
	const om_tensor *const *in, uint32_t nout, const om_tensor **out)
{
	const om_opdef *row = om_opdef_find("", type, version);
	om_tensor *made = OM_NEWN(p->c->mem, om_tensor, nout), *from = OM_NEWN(p->c->mem, om_tensor, nin + 1);
	bool *viewed = OM_NEWN(p->c->mem, bool, nout);

	for (uint32_t k = 0; k < nout; k++) {
		made[k].shape = om_shape_unknown();
		out[k] = &made[k];
	}
	if (p->st != OM_OK)
		return;
	for (uint32_t k = 0; k < nin; k++) {
		if (!in[k] && k < row->min_in) {
			om_composite_refuse(p, OM_INVALID, "an input that it needs is left out");
			return;
		}
		if (in[k])
			from[k] = *in[k];
	}
	om_op_context part = *p->c;
	part.op = op_of(p, row, version, attrs, nin, in, nout);
	part.in = from;
	part.out = made;
	part.out_type = p->doing == OM_INFERRING ? OM_NEWN(p->c->mem, om_type, nout) : NULL;
	part.scratch = NULL;
	p->st = om_opdef_check_types(row, &part);
	if (p->st == OM_OK)
		p->st = row->infer(&part);
	for (uint32_t k = 0; k < nout && p->st == OM_OK; k++) {
		viewed[k] = is_view(p, &part, k, &made[k]);
		if (!viewed[k])
			place(p, &made[k]);
	}
	if (p->st == OM_OK && p->doing != OM_INFERRING)
		p->st = compute(p, &part, viewed);
}

const om_tensor *
om_part_one(om_composite *p, const char *type, int version, const om_attr *attrs, uint32_t nin,
	const om_tensor *const *in)
{
	const om_tensor *out;

	om_part_run(p, type, version, attrs, nin, in, 1, &out);
	return out;
}

static const om_tensor *
with_channels(om_composite *p, const om_tensor *t, bool last)
{
	const int rank = t->shape.rank;
	int64_t perm[OM_MAX_RANK];

	if (rank < 3)
		return t;
	for (int k = 0; k < rank; k++)
		perm[k] = k == 0 ? 0 : last ? k == rank - 1 ? 1 : k + 1 : k == 1 ? rank - 1 : k - 1;
	return OM_SUBBUFFER(p, "Transpose", OM_WITH(OM_LIST("perm", perm, (size_t)rank)), t);
}

const om_tensor *
om_composite_channels_first(om_composite *p, const om_tensor *t)
{
	return with_channels(p, t, false);
}

const om_tensor *
om_composite_channels_last(om_composite *p, const om_tensor *t)
{
	return with_channels(p, t, true);
}
