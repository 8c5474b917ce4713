/* SPDX-License-Identifier: Apache-2.0 */
/* Training information of a model.
 *
 * The graph of the file is unchanged, and the rest of the program becomes the algorithm, which runs
 * after the graph: a step runs both.  The algorithm refers to values of the graph by name, so it
 * contains the ops that its results depend on and that define no value of the graph.  Such ops may
 * originate in functions that the graph calls: they are recomputed. */
#include <config.h>

#include "base/guard.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "onnx/annotate.h"
#include "onnx/metadata.h"
#include "onnx/update.h"

struct info {
	struct update *u;
	om_prog *p;                  /* the same program */
	om_map defined;              /* names defined in the graph */
	om_map initial;              /* names of its initializers */
	Onnx__TrainingInfoProto *to;
	struct nodes nodes;
};

static bool
is_defined(const struct info *i, const om_value *v)
{
	return om_map_get(&i->defined, v->name) != NULL;
}

static void
note_defined(struct info *i)
{
	Onnx__GraphProto *g = i->u->m->proto->graph;

	i->initial = om_update_initializers(i->u, g);
	i->defined = om_update_initializers(i->u, g);
	for (size_t k = 0; k < g->n_input; k++)
		om_map_set(&i->defined, om_text(g->input[k]->name), g);
	for (size_t k = 0; k < g->n_node; k++)
		for (size_t o = 0; o < g->node[k]->n_output; o++)
			om_map_set(&i->defined, om_text(g->node[k]->output[o]), g);
}

/* Does the op belong to the algorithm: an output is used, and the graph defines none of them? */
static bool
is_added(const struct info *i, const om_op *op)
{
	bool is_used = false;

	for (uint32_t k = 0; k < op->nout; k++) {
		if (!op->out[k])
			continue;
		if (is_defined(i, op->out[k]))
			return false;
		is_used |= i->u->used[op->out[k]->id];
	}
	return is_used;
}

static bool
is_random(const om_op *op)
{
	if (op->opdef && op->opdef->flags & OM_RANDOM)
		return true;
	for (uint32_t k = 0; k < op->nbody; k++)
		for (const om_op *in = op->body[k]->first; in; in = in->next)
			if (is_random(in))
				return true;
	return false;
}

/* In reverse order, because users come after definitions. */
static void
note_added(struct info *i)
{
	struct update *u = i->u;
	const om_block *b = u->p->first;

	for (uint32_t k = 0; k < b->nresult; k++)
		u->used[b->result[k]->id] = true;
	for (const om_op *op = b->last; op; op = op->prev) {
		if (!is_added(i, op))
			continue;
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k])
				u->used[op->in[k]->id] = true;
		for (uint32_t k = 0; k < op->nbody; k++)
			om_update_note_uses(u, op->body[k]);
	}
}

static void
rename_value(struct info *i, om_value *v)
{
	const char *stem = om_printf(i->u->tmp, "training/%s", v->name), *name = stem;

	if (v->block != i->p->first || is_defined(i, v) || v == i->p->first->result[0])
		return;
	for (unsigned n = 0; om_prog_find(i->u->p, name) || om_map_get(&i->defined, name); n++)
		name = om_printf(i->u->tmp, "%s.%u", stem, n);
	v->name = om_strdup(i->p->mem, name);
}

static bool
is_plain_const(const struct update *u, const om_value *v)
{
	return !v->def && v->data && !v->is_overridable && !u->is_param[v->id];
}

/* Rename recomputed values, to avoid conflicts with the names that inlining the calls of the graph
 * generates later. */
static void
rename_again(struct info *i)
{
	om_map seen = om_map_new(i->u->tmp);

	for (om_op *op = i->p->first->first; op; op = op->next) {
		if (op->phase != OM_FORWARD || !is_added(i, op))
			continue;
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				rename_value(i, op->out[k]);
		for (uint32_t k = 0; k < op->nin; k++) {
			om_value *v = op->in[k];
			if (!v || !is_plain_const(i->u, v) || om_map_get(&seen, v->name))
				continue;
			rename_value(i, v);
			om_map_set(&seen, v->name, v);
		}
	}
}

static om_status
write_added(struct info *i)
{
	struct update *u = i->u;

	for (const om_op *op = u->p->first->first; op; op = op->next) {
		Onnx__NodeProto *n;
		if (is_added(i, op)) {
			if (is_random(op))
				return om_op_fail(u->s, OM_UNSUPPORTED, op,
					"is random, and would run a second time next to the unchanged graph");
			OM_TRY(om_update_node(u, op, &n));
			om_update_push(u, &i->nodes, n);
			continue;
		}
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && u->used[op->out[k]->id] && !is_defined(i, op->out[k]))
				return om_op_fail(u->s, OM_UNSUPPORTED, op,
					"the step requires its output %s, which the unchanged graph does not "
					"have", op->out[k]->name);
	}
	return OM_OK;
}

static om_status
push_initializer(struct info *i, const om_value *v)
{
	Onnx__TensorProto *t;

	OM_TRY(om_update_data(i->u, v, &t));
	om_update_initializer(i->u, i->to->algorithm, t);
	return OM_OK;
}

/* Write inputs that the graph does not have; states become initializers instead of inputs. */
static om_status
write_inputs(struct info *i)
{
	const om_prog *p = i->u->p;
	const om_block *b = p->first;
	Onnx__GraphProto *g = i->to->algorithm;

	g->input = OM_NEWN(i->u->m->mem, Onnx__ValueInfoProto *, (size_t)b->nparam + 1);
	for (uint32_t k = 0; k < b->nparam; k++) {
		const om_value *v = b->param[k];
		if (om_prog_is_state(p, k) && (is_defined(i, v) ? !om_map_get(&i->initial, v->name) : !v->data))
			return om_fail(i->u->s, OM_UNSUPPORTED,
				"%s cannot be updated by training information: it is not an initializer", v->name);
		if (is_defined(i, v))
			continue;
		if (!om_prog_is_state(p, k))
			g->input[g->n_input++] = om_update_value_info(i->u, v);
		if (v->data)
			OM_TRY(push_initializer(i, v));
	}
	for (const om_value *v = i->u->consts[b->id]; v; v = i->u->next[v->id])
		if (i->u->used[v->id] && !is_defined(i, v))
			OM_TRY(push_initializer(i, v));
	return OM_OK;
}

/* Results computed by the graph are its outputs already, except that the loss is added under a new name. */
static void
write_losses(struct info *i)
{
	struct update *u = i->u;
	const om_block *b = u->p->first;
	Onnx__GraphProto *g = i->to->algorithm;

	g->output = OM_NEWN(u->m->mem, Onnx__ValueInfoProto *, (size_t)b->nresult + 1);
	for (uint32_t k = 0; k < b->nresult; k++) {
		const om_value *v = b->result[k];
		if (k > 0 && is_defined(i, v))
			continue;
		Onnx__ValueInfoProto *info = g->output[g->n_output++] = om_update_value_info(u, v);
		if (!is_defined(i, v))
			continue;
		info->name = om_strdup(u->m->mem, "loss");
		for (unsigned n = 0; om_prog_find(u->p, info->name) || om_map_get(&i->defined, info->name); n++)
			info->name = om_printf(u->m->mem, "%s.%u", v->name, n);
		om_update_push(u, &i->nodes, om_update_plain_node(u, "Identity", v->name, info->name));
	}
}

static void
write_bindings(struct info *i)
{
	const om_prog *p = i->u->p;

	for (uint32_t k = 0; k < p->nio_alias; k++)
		om_prop_set(i->u->m->mem, (struct props){&i->to->n_update_binding, &i->to->update_binding},
			p->first->param[p->io_alias[k].param]->name, p->first->result[p->io_alias[k].result]->name);
}

static om_status
write_info(struct update *u, om_prog *p)
{
	om_arena *mem = u->m->mem;
	Onnx__ModelProto *m = u->m->proto;
	struct info i = {.u = u, .p = p, .to = OM_NEW(mem, Onnx__TrainingInfoProto)};

	OM_TRY(om_update_start(u));
	if (om_update_versions(u))
		om_model_strip(u->m);  /* the plan is for the old opsets */
	onnx__training_info_proto__init(i.to);
	i.to->algorithm = OM_NEW(mem, Onnx__GraphProto);
	onnx__graph_proto__init(i.to->algorithm);
	i.to->algorithm->name = om_strdup(mem, "training");
	note_defined(&i);
	note_added(&i);
	rename_again(&i);
	OM_TRY(write_added(&i));
	OM_TRY(write_inputs(&i));
	write_losses(&i);
	write_bindings(&i);
	i.to->algorithm->node = i.nodes.list;
	i.to->algorithm->n_node = i.nodes.n;
	if (m->ir_version < OM_IR_TRAINING)
		m->ir_version = OM_IR_TRAINING;
	m->training_info = OM_NEW(mem, Onnx__TrainingInfoProto *);
	*m->training_info = i.to;
	m->n_training_info = 1;
	return om_update_functions(u, true);
}

static om_status
model_train_guarded(om_session *s, om_model *m, om_prog *p)
{
	struct update u = {.s = s, .m = m, .p = p, .tmp = om_arena_new()};
	const om_status st = write_info(&u, p);

	om_arena_free(u.tmp);
	return st;
}

om_status
om_model_train(om_session *s, om_model *m, om_prog *p)
{
	OM_GUARDED(s, model_train_guarded(s, m, p));
}
