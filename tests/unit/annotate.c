/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in models: written, read back, and refused when anything was changed. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "onnx/annotate.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "onnx/model.h"
#include "onnxmem/builder.h"
#include "tests/bind.h"
#include "tests/fixtures.h"
#include "unit.h"

#define MODELS  OM_SRCDIR "/models/"

static const char *const models[] = {
	"branches.onnx", "digits.onnx", "dynamic.onnx", "external.onnx", "function.onnx", "loop.onnx",
	"names.onnx", "quant.onnx", "unsorted.onnx",
};

enum { NMODELS = sizeof models / sizeof models[0] };

static om_status
plan_for(bench *t, const char *name, om_target target)
{
	*t = bench_open();
	OM_TRY(bench_model(t, name));
	OM_TRY(bind_rest(t->s, t->p, 2));
	OM_TRY(om_host_request(t->h, &(om_plan_request)OM_PLAN_REQUEST(.target = target)));
	return om_host_run(t->h, t->p, om_default_pipeline());
}

static om_status
plan(bench *t, const char *name)
{
	return plan_for(t, name, OM_TARGET_GENERIC);
}

/* The model as it would be saved, loaded again. */
static om_status
reload(bench *t, om_model **m, om_prog **p)
{
	const ProtobufCMessage *all = &t->model->proto->base;
	const size_t n = protobuf_c_message_get_packed_size(all);
	void *bytes = malloc(n);

	protobuf_c_message_pack(all, bytes);
	*p = NULL;
	const om_status st = om_model_load_memory(t->s, bytes, n, "again", MODELS, m);
	free(bytes);
	OM_TRY(st);
	return om_model_import(t->s, *m, p);
}

static om_status
read_again(bench *t)
{
	om_model *m;
	om_prog *p = NULL;
	om_status st = reload(t, &m, &p);

	if (st == OM_OK)
		st = om_model_read_plan(t->s, m, p, NULL);
	if (st == OM_OK)
		st = om_plan_verify(t->s, p, p->plan);
	om_prog_free(p);
	om_model_free(m);
	return st;
}

static const om_value *
same_value(const om_prog *p, const om_value *v)
{
	const om_block *b = om_block_find(p, v->block->path);
	return b ? om_value_find(b, v->name) : NULL;
}

static bool
same_place(const om_placement *a, const om_placement *b)
{
	if (a->where != b->where)
		return false;
	return a->where != OM_IN_ARENA || (a->arena == b->arena && a->offset == b->offset
		&& a->bytes == b->bytes && a->live.first == b->live.first && a->live.last == b->live.last
		&& a->live.nrange == b->live.nrange);
}

static unsigned
count_differences(const om_prog *a, const om_prog *b)
{
	unsigned n = 0;

	for (uint32_t k = 0; k < a->nvalue; k++) {
		const om_value *v = a->values[k], *w;
		if (a->plan->place[k].where == OM_UNUSED || (v->def && !v->def->block))
			continue;
		w = same_value(b, v);
		n += !w || !same_place(&a->plan->place[k], &b->plan->place[w->id]);
	}
	n += a->plan->nalias != b->plan->nalias || a->plan->nscratch != b->plan->nscratch
		|| a->plan->nunplanned != b->plan->nunplanned || a->plan->narena != b->plan->narena;
	for (uint32_t k = 0; n == 0 && k < a->plan->nalias; k++)
		n += a->plan->alias[k].kind != b->plan->alias[k].kind
			|| a->plan->alias[k].offset != b->plan->alias[k].offset
			|| same_value(b, a->values[a->plan->alias[k].source]) != b->values[b->plan->alias[k].source];
	for (uint32_t k = 0; k < a->plan->nscratch; k++)
		n += a->plan->scratch[k].offset != b->plan->scratch[k].offset
			|| a->plan->scratch[k].bytes != b->plan->scratch[k].bytes;
	return n;
}

static void
reads_back_one(const char *name, om_target target)
{
	bench t;
	om_model *m = NULL;
	om_prog *p = NULL;
	char *first = NULL, *second = NULL;
	const unsigned how = OM_ANNOTATE_MODEL | (target == OM_TARGET_GENERIC ? OM_ANNOTATE_VALUE : 0);

	CU_ASSERT_FATAL(is_ok(t.s, plan_for(&t, name, target)));
	CU_ASSERT_FATAL(is_ok(t.s, om_plan_verify(t.s, t.p, t.p->plan)));
	CU_ASSERT_FALSE(om_model_has_plan(t.model));
	CU_ASSERT_FATAL(is_ok(t.s, om_model_annotate(t.s, t.model, t.p, how)));
	CU_ASSERT(om_model_has_plan(t.model));
	CU_ASSERT_FATAL(is_ok(t.s, reload(&t, &m, &p)));
	CU_ASSERT_FATAL(is_ok(t.s, om_model_read_plan(t.s, m, p, NULL)));
	CU_ASSERT(is_ok(t.s, om_plan_verify(t.s, p, p->plan)));
	CU_ASSERT_EQUAL(count_differences(t.p, p), 0);
	CU_ASSERT(is_ok(t.s, om_plan_json(t.s, t.model, t.p, &first)));
	CU_ASSERT(is_ok(t.s, om_plan_json(t.s, m, p, &second)));
	CU_ASSERT(first && second && strcmp(first, second) == 0);
	free(first);
	free(second);
	om_prog_free(p);
	om_model_free(m);
	bench_close(&t);
}

static void
reads_back(void)
{
	for (size_t k = 0; k < NMODELS; k++)
		for (om_target t = OM_TARGET_GENERIC; t <= OM_TARGET_CPU; t++)
			reads_back_one(models[k], t);
}

/* ---- Keys. ---- */

static size_t
count_entries(const om_model *m)
{
	const Onnx__GraphProto *g = m->proto->graph;
	size_t n = m->proto->n_metadata_props + g->n_value_info;

	for (size_t k = 0; k < g->n_value_info; k++)
		n += g->value_info[k]->n_metadata_props;
	for (size_t k = 0; k < g->n_input; k++)
		n += g->input[k]->n_metadata_props;
	return n;
}

static void
keys_are_replaced_and_taken_away(void)
{
	bench t;
	char before[80], after[80];

	CU_ASSERT_FATAL(is_ok(t.s, plan(&t, "loop.onnx")));
	const size_t none = count_entries(t.model);
	CU_ASSERT(is_ok(t.s, om_model_annotate(t.s, t.model, t.p, OM_ANNOTATE_VALUE | OM_ANNOTATE_ONNXSIM)));
	const size_t some = count_entries(t.model);
	CU_ASSERT(some > none);
	CU_ASSERT(is_ok(t.s, om_model_digest(t.s, t.model, true, before)));
	CU_ASSERT(is_ok(t.s, om_model_annotate(t.s, t.model, t.p, OM_ANNOTATE_VALUE | OM_ANNOTATE_ONNXSIM)));
	CU_ASSERT_EQUAL(count_entries(t.model), some);
	CU_ASSERT(om_model_strip(t.model) > 0);
	CU_ASSERT_EQUAL(count_entries(t.model), none);
	CU_ASSERT_EQUAL(om_model_strip(t.model), 0);
	CU_ASSERT(is_ok(t.s, om_model_digest(t.s, t.model, true, after)));
	CU_ASSERT_STRING_EQUAL(before, after);
	CU_ASSERT_EQUAL(read_again(&t), OM_INVALID);
	bench_close(&t);
}

/* Mirrors come by themselves from IR 10 on, and never raise the version. */
static void
mirrors_need_ir_10(void)
{
	bench t;

	CU_ASSERT_FATAL(is_ok(t.s, plan(&t, "dynamic.onnx")));
	const size_t keys = t.model->proto->n_metadata_props + 5;
	const int64_t version = t.model->proto->ir_version;
	CU_ASSERT(is_ok(t.s, om_model_annotate(t.s, t.model, t.p, OM_ANNOTATE_AUTO)));
	CU_ASSERT_EQUAL(count_entries(t.model) > keys, version >= 10);
	CU_ASSERT_EQUAL(t.model->proto->ir_version, version);
	t.p->ir_version = version >= 10 ? 8 : 10;
	CU_ASSERT(is_ok(t.s, om_model_annotate(t.s, t.model, t.p, OM_ANNOTATE_AUTO)));
	CU_ASSERT_EQUAL(count_entries(t.model) > keys, version < 10);
	CU_ASSERT_EQUAL(t.model->proto->ir_version, version);
	bench_close(&t);
}

/* ---- Changes. ---- */

static char **
key(bench *t, const char *name)
{
	for (size_t k = 0; k < t->model->proto->n_metadata_props; k++)
		if (strcmp(t->model->proto->metadata_props[k]->key, name) == 0)
			return &t->model->proto->metadata_props[k]->value;
	return NULL;
}

static void
drop(bench *t, const char *name)
{
	Onnx__ModelProto *m = t->model->proto;

	for (size_t k = 0; k < m->n_metadata_props; k++)
		if (strcmp(m->metadata_props[k]->key, name) == 0)
			m->metadata_props[k] = m->metadata_props[--m->n_metadata_props];
}

static void
double_entry(bench *t)
{
	Onnx__ModelProto *m = t->model->proto;
	Onnx__StringStringEntryProto **more = OM_NEWN(t->model->mem, Onnx__StringStringEntryProto *, 100);

	memcpy(more, m->metadata_props, m->n_metadata_props * sizeof *more);
	more[m->n_metadata_props++] = more[0];
	m->metadata_props = more;
}

static void
drop_digest(bench *t)
{
	drop(t, OM_KEY_DIGEST);
}

static void
drop_graph(bench *t)
{
	drop(t, OM_KEY_GRAPH);
}

static void
edit_text(bench *t)
{
	char *at = strstr(*key(t, OM_KEY_PLAN), "\"bytes\":");
	at[8] ^= 1;
}

static void
edit_shapes(bench *t)
{
	*key(t, OM_KEY_SHAPES) = om_strdup(t->model->mem, "x:7");
}

static void
swap_nodes(bench *t)
{
	Onnx__NodeProto **n = t->model->proto->graph->node, *first = n[0];
	n[0] = n[1];
	n[1] = first;
}

static void
change_dim(bench *t)
{
	Onnx__TensorShapeProto *s = t->model->proto->graph->input[0]->type->tensor_type->shape;
	s->dim[0]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
	s->dim[0]->dim_value = 3;
}

static void
rename_value(bench *t)
{
	Onnx__GraphProto *g = t->model->proto->graph;
	const char *old = g->node[0]->output[0];
	char *new = om_strdup(t->model->mem, "renamed");

	for (size_t k = 0; k < g->n_node; k++)
		for (size_t i = 0; i < g->node[k]->n_input; i++)
			if (strcmp(g->node[k]->input[i], old) == 0)
				g->node[k]->input[i] = new;
	g->node[0]->output[0] = new;
}

static void
change_opset(bench *t)
{
	t->model->proto->opset_import[0]->version--;
}

static void
change_doc(bench *t)
{
	t->model->proto->doc_string = om_strdup(t->model->mem, "other words");
	t->model->proto->producer_name = om_strdup(t->model->mem, "someone");
	t->model->proto->graph->node[0]->name = om_strdup(t->model->mem, "a_new_name");
	t->model->proto->graph->n_value_info = 0;
}

/* A weight of many floats steers nothing; one of few may. */
static void
change_weights(bench *t)
{
	Onnx__GraphProto *g = t->model->proto->graph;

	for (size_t k = 0; k < g->n_initializer; k++) {
		Onnx__TensorProto *w = g->initializer[k];
		if (w->data_type == 1 && w->has_raw_data && w->raw_data.len > 1024) {
			w->raw_data.data = om_memdup(t->model->mem, w->raw_data.data, w->raw_data.len);
			w->raw_data.data[0] ^= 1;
			return;
		}
	}
	CU_FAIL("the model has no large weight");
}

static void
change_constant(bench *t)
{
	Onnx__GraphProto *g = t->model->proto->graph;

	for (size_t k = 0; k < g->n_initializer; k++) {
		Onnx__TensorProto *w = g->initializer[k];
		if (w->data_type == 7 && w->has_raw_data && w->raw_data.len) {
			w->raw_data.data = om_memdup(t->model->mem, w->raw_data.data, w->raw_data.len);
			w->raw_data.data[0] ^= 1;
			return;
		}
		if (w->data_type == 7 && w->n_int64_data) {
			w->int64_data[0] ^= 1;
			return;
		}
	}
	CU_FAIL("the model has no integers");
}

static void
changes_are_noticed(void)
{
	static const struct { const char *what; void (*change)(bench *t); om_status want; } changes[] = {
		{"nothing", NULL, OM_OK},
		{"words", change_doc, OM_OK},
		{"weights", change_weights, OM_OK},
		{"two nodes swapped", swap_nodes, OM_STALE},
		{"a dim", change_dim, OM_STALE},
		{"a name", rename_value, OM_STALE},
		{"the operator set", change_opset, OM_STALE},
		{"a Reshape's constant", change_constant, OM_STALE},
		{"no digest", drop_digest, OM_BADPLAN},
		{"no digest of the graph", drop_graph, OM_BADPLAN},
		{"the text", edit_text, OM_BADPLAN},
		{"the shapes", edit_shapes, OM_BADPLAN},
		{"an entry twice", double_entry, OM_BADPLAN},
	};

	for (size_t k = 0; k < sizeof changes / sizeof changes[0]; k++) {
		bench t;
		CU_ASSERT_FATAL(is_ok(t.s, plan(&t, "dynamic.onnx")));
		CU_ASSERT_FATAL(is_ok(t.s, om_model_annotate(t.s, t.model, t.p, OM_ANNOTATE_MODEL)));
		if (changes[k].change)
			changes[k].change(&t);
		const om_status st = read_again(&t);
		if (st != changes[k].want)
			printf("# %s: %s\n", changes[k].what, om_message(t.s));
		CU_ASSERT_EQUAL(st, changes[k].want);
		bench_close(&t);
	}
}

/* ---- Documents that say something wrong. ---- */

/* With `from` replaced by `to`, and a digest that fits. */
static om_status
read_with(bench *t, const char *from, const char *to)
{
	char **text = key(t, OM_KEY_PLAN), *old = *text, **digest = key(t, OM_KEY_DIGEST), *olddigest = *digest;
	const char *at = strstr(old, from);

	CU_ASSERT_FATAL(at != NULL);
	*text = om_printf(t->model->mem, "%.*s%s%s", (int)(at - old), old, to, at + strlen(from));
	*digest = (char *)om_text_digest(*text, strlen(*text), t->model->mem);
	const om_status st = read_again(t);
	*text = old;
	*digest = olddigest;
	return st;
}

static void
documents_are_checked(void)
{
	static const struct { const char *from, *to, *message; } faults[] = {
		{"{", "", "the plan: not JSON: '[' or '{' expected near '\"schema\"' (line 1)"},
		{"memplan/1", "memplan/2", "the plan: its schema is \"memplan/2\", expected \"memplan/1\""},
		{"\"order\":\"file\"", "\"order\":[1,0]", "the plan: an order has 2 nodes, the graph has 8"},
		{"\"target\":\"generic\"", "\"target\":\"tpu\"", "the plan: unknown target \"tpu\""},
		{"\"scopes\":[", "\"scopes\":[{\"path\":\"\",\"v\":[]},", "the plan: duplicate scope \"\""},
		{"\"scopes\":[", "\"scopes\":[{\"path\":\"nowhere\",\"v\":[]},", "the plan: the model has no scope \"nowhere\""},
		{"\"scopes\":[", "\"scopes\":[3,", "the plan: the path of a scope is not a string"},
		{"\"v\":[[", "\"v\":[[\"nobody\",0,0,64,0,0],[", "the plan: the model has no value nobody"},
		{"\"v\":[[", "\"v\":[[1],[", "the plan: a row of \"v\" does not have 6 entries"},
		{"\"v\":[", "\"v\":7,\"w\":[", "the plan: \"v\" is not a list"},
		{"\"alias\":[", "\"alias\":[[\"\",\"x\"],", "the plan: a row of \"alias\" does not have 5 entries"},
		{"\"alias\":[[\"\",", "\"alias\":[[\"no\",", "the plan: the model has no scope \"no\""},
		{"\"unplanned\":[", "\"unplanned\":[[\"\",\"nothing\",\"\"]", "the plan: the model has no value nothing"},
		{"\"align\":64", "\"align\":-64",
			"the plan: the alignment of an arena is not an integer from 0 to 1073741824"},
		{"\"id\":0", "\"id\":1", "the plan: arena 0 has the id 1"},
		{"\"inputs\":{\"", "\"inputs\":{\"no", NULL},
		{"\"schema\":", "\"schema\":1,\"schema\":",
			"the plan: not JSON: duplicate object key near '\"schema\"' (line 1)"},
	};
	bench t;

	CU_ASSERT_FATAL(is_ok(t.s, plan(&t, "dynamic.onnx")));
	CU_ASSERT_FATAL(is_ok(t.s, om_model_annotate(t.s, t.model, t.p, OM_ANNOTATE_MODEL)));
	for (size_t k = 0; k < sizeof faults / sizeof faults[0]; k++) {
		CU_ASSERT_EQUAL(read_with(&t, faults[k].from, faults[k].to), OM_BADPLAN);
		const char *got = om_message(t.s);
		const bool same = !faults[k].message || strcmp(got, faults[k].message) == 0;
		if (!same)
			printf("# wanted: %s\n# got:    %s\n", faults[k].message, got);
		CU_ASSERT(same);
	}
	bench_close(&t);
}

/* Names of nodes, words and large weights do not count; all else does. */
static void
digests(void)
{
	static void (*const same[])(bench *t) = {change_doc, change_weights};
	static void (*const other[])(bench *t) = {swap_nodes, change_dim, rename_value, change_opset,
		change_constant};
	char before[80], after[80], full[80], weights[80];
	bench t;

	CU_ASSERT_FATAL(is_ok(t.s, plan(&t, "dynamic.onnx")));
	om_model_digest(t.s, t.model, false, before);
	om_model_digest(t.s, t.model, true, full);
	CU_ASSERT_STRING_NOT_EQUAL(before, full);
	for (size_t k = 0; k < sizeof same / sizeof same[0]; k++) {
		same[k](&t);
		om_model_digest(t.s, t.model, false, after);
		CU_ASSERT_STRING_EQUAL(before, after);
	}
	om_model_digest(t.s, t.model, true, weights);
	CU_ASSERT_STRING_NOT_EQUAL(weights, full);
	for (size_t k = 0; k < sizeof other / sizeof other[0]; k++) {
		other[k](&t);
		om_model_digest(t.s, t.model, false, after);
		CU_ASSERT_STRING_NOT_EQUAL(before, after);
		memcpy(before, after, sizeof before);
	}
	bench_close(&t);
}

/* What a branch that cannot run would give: an info without type would make the
 * file unreadable for others. */
static void
values_without_type_get_no_info(void)
{
	bench t;

	CU_ASSERT_FATAL(is_ok(t.s, plan(&t, "digits.onnx")));
	om_value *v = om_value_find(t.p->first, "scores");
	v->type.elem = OM_UNDEFINED;
	v->shape = om_shape_unknown();
	t.p->plan->place[v->id].where = OM_UNPLANNED;
	CU_ASSERT(is_ok(t.s, om_model_annotate(t.s, t.model, t.p, OM_ANNOTATE_VALUE)));
	const Onnx__GraphProto *g = t.model->proto->graph;
	CU_ASSERT(g->n_value_info > 0);
	for (size_t k = 0; k < g->n_value_info; k++)
		CU_ASSERT_NOT_EQUAL(g->value_info[k]->type->tensor_type->elem_type, OM_UNDEFINED);
	bench_close(&t);
}

static CU_TestInfo annotate_tests[] = {
	{"values without type get no info", values_without_type_get_no_info},
	{"a plan reads back as it was written", reads_back},
	{"keys are replaced, and taken away", keys_are_replaced_and_taken_away},
	{"mirrors need IR 10", mirrors_need_ir_10},
	{"changes are noticed", changes_are_noticed},
	{"documents are checked", documents_are_checked},
	{"digests", digests},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("plans in models", annotate_tests);
