/* SPDX-License-Identifier: Apache-2.0 */
/* capacity: caches that grow are buffers with spare rows, and a run writes its new rows there.
 *
 * The output of a cache is its input with new rows along one axis: Concat(past, new), or the cache of an attention op that
 * writes into a larger buffer.  Both are declared as a state.  Here the input and the output become buffers of the same
 * shape, with as many rows as the option says.  A Concat becomes a TensorScatter, which writes the new rows after those
 * that are there; it may be computed in place, so alias-io makes output and input one buffer, and nothing is copied.  All
 * other readers get the rows that the model has, as a Slice of the buffer: what reads views reads them where they are.
 *
 * The caller passes buffers in which the first rows are those of the input of the model.  om_prog.io_alias has the axis and
 * the numbers of rows.  If these numbers are open, an attention op that is told them by other inputs serves all of them.
 *
 * With the option `rings`, the cache of an attention op with a window is a ring of as many rows instead.  It is no cache of the
 * model any more, which would have all rows, or the last ones in order: only the op itself can read it. */
#include <config.h>

#include <string.h>

#include "ir/query.h"
#include "onnxmem/builder.h"
#include "onnxmem/pass.h"
#include "opdef/cpu_domain.h"
#include "opdef/op_context.h"
#include "opdef/rewrite_internal.h"

struct cache {
	om_run *r;
	om_prog *p;
	om_io_alias *alias;
	om_value *past, *present;
	int axis;
	int64_t before, after;   /* rows of the model's input and output */
};

/* Attention ops that write new rows into their past if that is a larger buffer. */
static const struct writer {
	const char *domain, *type;
	struct { uint32_t in, out; } cache[2];
} writers[] = {
	{"com.microsoft", "GroupQueryAttention", {{3, 1}, {4, 2}}},
};

/* ---- What grows. ---- */

/* The only axis along which the output is longer than the input, or may be, as both dims are open; -1: it is no cache that
 * grows. */
static int
growing_axis(const om_value *past, const om_value *present)
{
	int axis = -1;

	if (om_dtype_bits(past->type.elem) % 8 || past->type.elem == OM_STRING || past->shape.rank < 0
	    || past->shape.rank != present->shape.rank || past->type.elem != present->type.elem || past->is_const || present->is_const
	    || past->is_overridable)
		return -1;
	for (int d = 0; d < past->shape.rank; d++) {
		const int64_t before = past->shape.dim[d], after = present->shape.dim[d];
		if (before >= 0 && before == after)
			continue;
		if (axis >= 0 || (before < 0) != (after < 0) || before > after)
			return -1;
		axis = d;
	}
	return axis;
}

static bool
is_op(const om_op *op, const char *domain, const char *type)
{
	return op && strcmp(op->domain, domain) == 0 && strcmp(op->type, type) == 0;
}

/* Is it Concat(past, new) along the axis? */
static bool
is_appended(const struct cache *c)
{
	const om_op *op = c->present->def;
	int64_t axis;

	if (!is_op(op, "", "Concat") || op->nin != 2 || op->in[0] != c->past || op->in[1] == c->past || op->block != c->p->first)
		return false;
	axis = om_attr_int(op, "axis");
	return c->axis > 0 && (axis < 0 ? axis + c->past->shape.rank : axis) == c->axis;
}

static bool
is_declared(const om_prog *p, const om_value *past, const om_value *present)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->first->param[p->io_alias[k].param] == past && p->first->result[p->io_alias[k].result] == present)
			return true;
	return false;
}

/* Does an attention op write it, and are all its caches states? */
static bool
is_written(const struct cache *c)
{
	const om_op *op = c->present->def;
	bool found = false;

	for (size_t k = 0; k < sizeof writers / sizeof writers[0]; k++)
		for (int i = 0; i < 2 && is_op(op, writers[k].domain, writers[k].type); i++) {
			const uint32_t in = writers[k].cache[i].in, out = writers[k].cache[i].out;
			if (op->nin <= in || op->nout <= out || !op->in[in] || !op->out[out] || !is_declared(c->p, op->in[in], op->out[out]))
				return false;
			found |= op->in[in] == c->past && op->out[out] == c->present && c->axis == 2;
		}
	return found;
}

/* Is it a result of a block, but `times` results of the graph? */
static bool
is_result(const om_prog *p, const om_value *v, uint32_t times)
{
	uint32_t n = 0;

	for (const om_use *u = v->first_use; u; u = u->next) {
		if (!u->op && u->block != p->first)
			return true;
		n += !u->op;
	}
	return n != times;
}

/* ---- The change. ---- */

/* May the rows in use stay open until a run?  The op that writes them finds their number in its other inputs.  Nothing else may
 * read its caches, because it would see the shape of the buffer. */
static bool
may_be_open(const struct cache *c)
{
	const om_op *op = c->present->def;
	bool may = is_written(c) && om_attr_int(op, "sliding_window_cache") == 0;

	for (size_t k = 0; may && k < sizeof writers / sizeof writers[0]; k++)
		for (int i = 0; i < 2 && is_op(op, writers[k].domain, writers[k].type); i++)
			may &= op->in[writers[k].cache[i].in]->nuse == 1 && op->out[writers[k].cache[i].out]->nuse == 1;
	return may;
}

static om_status
change_open(om_run *r, const struct cache *c, int64_t rows)
{
	if (!may_be_open(c)) {
		om_count(r, "copied", 1);
		return OM_OK;
	}
	c->past->shape.dim[c->axis] = c->present->shape.dim[c->axis] = rows;
	c->past->shape.sym[c->axis] = c->present->shape.sym[c->axis] = NULL;
	om_count(r, "caches", 1);
	om_count(r, "bytes", om_value_bytes(c->past));
	return OM_OK;
}

/* ---- Rings. ---- */

/* May the caches of the op, which are states that grow, be rings? */
static bool
may_be_rings(om_run *r, om_prog *p, const om_op *op, const struct writer *w, int64_t rows)
{
	enum { MOST_OUT = 3 };
	const int64_t window = om_attr_int(op, "local_window_size");

	if (window < 1 || window >= rows || op->nout > MOST_OUT || om_attr_int(op, "causal") == 0)
		return false;
	for (int i = 0; i < 2; i++) {
		if (op->nin <= w->cache[i].in || op->nout <= w->cache[i].out || !op->in[w->cache[i].in] || !op->out[w->cache[i].out])
			return false;
		const struct cache c = {.r = r, .p = p, .past = op->in[w->cache[i].in], .present = op->out[w->cache[i].out], .axis = 2};
		if (growing_axis(c.past, c.present) != c.axis || !may_be_open(&c))
			return false;
	}
	return true;
}

/* The op of org.onnxmem.cpu, which has the same inputs, outputs and attributes. */
static om_status
make_rings(om_run *r, om_prog *p, om_op *op, const struct writer *w)
{
	om_op *ring = om_op_new(p, OM_CPU_DOMAIN, op->type, 1, op->nin, op->nout);
	const int64_t window = om_attr_int(op, "local_window_size");
	om_value **out = om_memdup(r->scratch, op->out, op->nout * sizeof *out);

	for (uint32_t i = 0; i < op->nattr; i++)
		om_op_add_attr(p, ring, &op->attr[i]);
	for (uint32_t i = 0; i < op->nin; i++)
		om_op_set_in(ring, i, op->in[i]);
	ring->name = op->name;
	ring->phase = op->phase;
	om_op_insert(op, ring);
	om_op_remove(op);
	for (uint32_t i = 0; i < ring->nout; i++)
		om_op_set_out(ring, i, out[i]);
	for (int i = 0; i < 2; i++) {
		om_shape *of[] = {&ring->in[w->cache[i].in]->shape, &ring->out[w->cache[i].out]->shape};
		for (int k = 0; k < 2; k++) {
			of[k]->dim[2] = window;
			of[k]->sym[2] = NULL;
		}
		om_count(r, "rings", 1);
		om_count(r, "bytes", om_value_bytes(ring->in[w->cache[i].in]));
	}
	return om_op_infer(r->session, p, ring);
}

static om_status
change_windows(om_run *r, om_prog *p, int64_t rows)
{
	for (om_op *op = p->first->first, *next; op; op = next) {
		next = op->next;
		for (size_t k = 0; k < sizeof writers / sizeof writers[0]; k++)
			if (is_op(op, writers[k].domain, writers[k].type) && may_be_rings(r, p, op, &writers[k], rows)) {
				OM_TRY(make_rings(r, p, op, &writers[k]));
				break;
			}
	}
	return OM_OK;
}

/* ---- Buffers. ---- */

static om_value *
indices(const struct cache *c, const char *stem, int64_t n, int64_t is)
{
	int64_t *data = om_allocn(c->p->mem, (size_t)n, sizeof *data);

	for (int64_t k = 0; k < n; k++)
		data[k] = is;
	const om_tensor t = {.type = OM_INT64, .shape = om_shape_of(1, &n), .data = data};
	return om_const_new(c->p, c->p->first, om_value_fresh(c->p, c->p->first, stem)->name, om_memdup(c->p->mem, &t, sizeof t));
}

/* The first `rows` rows of a buffer, computed before `place`. */
static om_value *
rows_of(const struct cache *c, om_value *buffer, const om_shape *shape, int64_t rows, om_op *place)
{
	om_op *op = om_op_new(c->p, "", "Slice", 13, 4, 1);
	om_value *out = om_value_fresh(c->p, c->p->first, om_printf(c->r->scratch, "%s_rows", buffer->name));

	out->type = buffer->type;
	out->shape = *shape;
	om_op_set_in(op, 0, buffer);
	om_op_set_in(op, 1, indices(c, "first_row", 1, 0));
	om_op_set_in(op, 2, indices(c, "end_row", 1, rows));
	om_op_set_in(op, 3, indices(c, "row_axis", 1, c->axis));
	om_op_set_out(op, 0, out);
	om_op_insert(place, op);
	return out;
}

/* Replace the outputs of a folded op, as Shape(past), by constants, so that nothing computes its input, if that is
 * possible. */
static void
replace_folded(const struct cache *c, om_op *op)
{
	if (!op->is_folded || op->nbody)
		return;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && (!op->out[k]->data || !op->out[k]->data->data || is_result(c->p, op->out[k], 0)))
			return;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			om_value_replace(op->out[k], om_const_new(c->p, op->block,
				om_value_fresh(c->p, op->block, op->out[k]->name)->name, op->out[k]->data));
	om_op_delete(op);
}

static void
drop_folded_readers(const struct cache *c, const om_value *v)
{
	for (om_use *u = v->first_use, *next; u; u = next) {
		next = u->next;
		while (next && next->op == u->op)
			next = next->next;
		if (u->op)
			replace_folded(c, u->op);
	}
}

/* Let all ops that read `v` but `writer` read the model's rows of it. */
static void
redirect(const struct cache *c, om_value *v, const om_shape *shape, int64_t rows, const om_op *writer, om_op *place)
{
	om_value *part = NULL;

	for (om_use *u = v->first_use, *next; u; u = next) {
		next = u->next;
		if (!u->op || u->op == writer)
			continue;
		if (!part)
			part = rows_of(c, v, shape, rows, place);
		if (u->op != part->def)
			om_op_set_in(u->op, u->index, part);
	}
}

/* TensorScatter in place of Concat. */
static om_op *
append_rows(const struct cache *c)
{
	om_op *concat = c->present->def, *op = om_op_new(c->p, "", "TensorScatter", 24, 3, 1);

	om_op_add_attr(c->p, op, &OM_MAKE_INT("axis", c->axis));
	om_op_set_in(op, 0, c->past);
	om_op_set_in(op, 1, concat->in[1]);
	om_op_set_in(op, 2, indices(c, "row", c->past->shape.dim[0], c->before));
	om_op_insert(concat, op);
	om_op_remove(concat);
	om_op_set_out(op, 0, c->present);
	return op;
}

static void
change(const struct cache *c, int64_t rows)
{
	const om_shape past = c->past->shape, present = c->present->shape;
	om_op *writer = c->present->def;

	if (is_appended(c))
		writer = append_rows(c);
	drop_folded_readers(c, c->past);
	drop_folded_readers(c, c->present);
	c->past->shape.dim[c->axis] = c->present->shape.dim[c->axis] = rows;
	c->past->shape.sym[c->axis] = c->present->shape.sym[c->axis] = NULL;
	redirect(c, c->past, &past, c->before, writer, c->p->first->first);
	redirect(c, c->present, &present, c->after, writer, writer->next);
	*c->alias = (om_io_alias){c->alias->result, c->alias->param, c->axis, c->before, c->after, past.sym[c->axis]};
}

static om_status
change_pair(om_run *r, om_prog *p, om_io_alias *a, int64_t rows)
{
	struct cache c = {.r = r, .p = p, .alias = a, .past = p->first->param[a->param], .present = p->first->result[a->result]};

	c.axis = growing_axis(c.past, c.present);
	if (c.axis < 0)
		return OM_OK;
	c.before = c.past->shape.dim[c.axis];
	c.after = c.present->shape.dim[c.axis];
	if (c.before < 0)
		return change_open(r, &c, (int64_t)rows);
	if (is_result(p, c.past, 0) || is_result(p, c.present, 1) || (!is_appended(&c) && !is_written(&c))) {
		om_count(r, "copied", 1);
		return OM_OK;
	}
	if (c.after > rows)
		return om_fail(r->session, OM_SHAPE, "output %s has %lld rows, more than the capacity of %lld", c.present->name,
			(long long)c.after, (long long)rows);
	change(&c, rows);
	om_count(r, "caches", 1);
	om_count(r, "bytes", om_value_bytes(c.past));
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	uint64_t rows, rings;

	OM_TRY(om_option_number(r, "rows", &rows));
	OM_TRY(om_option_number(r, "rings", &rings));
	if (rows == 0)
		return OM_OK;
	if (rows > INT32_MAX)
		return om_fail(r->session, OM_USAGE, "option rows requires at most %d, not %llu", INT32_MAX, (unsigned long long)rows);
	if (r->request->target != OM_TARGET_CPU)
		return om_fail(r->session, OM_USAGE, "buffers with spare rows are inputs that the model does not have: they require a plan "
			"for cpu");
	if (p->nio_alias == 0)
		OM_TRY(om_prog_states_by_name(r->session, p, "auto"));
	if (rings)
		OM_TRY(change_windows(r, p, (int64_t)rows));
	for (uint32_t k = 0; k < p->nio_alias; k++)
		OM_TRY(change_pair(r, p, &p->io_alias[k], (int64_t)rows));
	return OM_OK;
}

static const om_pass_option options[] = {
	{"rows", "0", "rows of each buffer; 0: caches stay as they are"},
	{"rings", "0", "1: the cache of an attention with a window of fewer rows is a ring of as many, which only this attention reads"},
	{0}
};

static const om_pass_counter counters[] = {
	{"caches", "caches that became buffers with spare rows"},
	{"rings", "caches that became rings"},
	{"bytes", "their sizes"},
	{"copied", "caches that grow, but not in a way that leaves their rows where they are"},
	{0}
};

static const om_pass_flag flags[] = {
	{.name = "capacity", .option = "rows", .arg = "ROWS", .kind = OM_FLAG_NUMBER, .min = 1, .max = INT32_MAX, .adds = true,
		.brief = "caches that grow are buffers of ROWS rows, where a run writes its new rows in place: outputs that are an input "
			"with rows appended, as --tie or else their names tell. For target cpu"},
	{.name = "rings", .option = "rings", .value = "1",
		.brief = "with --capacity: the cache of an attention with a window of fewer rows is a ring of as many rows, in an order of "
			"its own; inputs and outputs that are caches have the size of the window"},
	{0}
};

OM_PASS(
	.name = "capacity",
	.brief = "give caches spare rows, so that new rows are written in place",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.options = options,
	.counters = counters,
	.flags = flags,
	.run = run)
