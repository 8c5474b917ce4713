/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a model other than the plan: which results are parameters of the next run, and
 * to which phase of a training step a node belongs.
 *
 * Metadata is advisory: invalid entries are ignored with a warning. */
#include <config.h>

#include <jansson.h>
#include <stdlib.h>

#include "onnx/json_hold.h"
#include "base/arena_internal.h"
#include "ir/edit.h"
#include "ir/enum_text.h"
#include "onnx/annotate.h"
#include "onnx/metadata.h"
#include "onnxmem/builder.h"

/* ---- Entries of metadata. ---- */

const Onnx__StringStringEntryProto *
om_prop_entry(struct props p, const char *key)
{
	for (size_t k = 0; k < *p.n; k++)
		if (strcmp(om_text((*p.list)[k]->key), key) == 0)
			return (*p.list)[k];
	return NULL;
}

const char *
om_prop_find(struct props p, const char *key)
{
	const Onnx__StringStringEntryProto *e = om_prop_entry(p, key);

	return e ? om_text(e->value) : NULL;
}

void
om_prop_set(om_arena *mem, struct props p, const char *key, const char *value)
{
	Onnx__StringStringEntryProto *e = OM_NEW(mem, Onnx__StringStringEntryProto);
	Onnx__StringStringEntryProto **more = OM_NEWN(mem, Onnx__StringStringEntryProto *, *p.n + 1);

	onnx__string_string_entry_proto__init(e);
	e->key = om_strdup(mem, key);
	e->value = om_strdup(mem, value);
	for (size_t k = 0; k < *p.n; k++) {
		if (strcmp(om_text((*p.list)[k]->key), key) == 0) {
			(*p.list)[k] = e;
			return;
		}
		more[k] = (*p.list)[k];
	}
	more[*p.n] = e;
	*p.list = more;
	++*p.n;
}

static void
visit_props(struct props p, const char *value, om_metadata_visit *visit, void *arg)
{
	for (size_t k = 0; k < *p.n; k++)
		visit(arg, value, om_text((*p.list)[k]->key), om_text((*p.list)[k]->value));
}

static void
visit_infos(size_t n, Onnx__ValueInfoProto *const *info, om_metadata_visit *visit, void *arg)
{
	for (size_t k = 0; k < n; k++)
		visit_props(PROPS(info[k]), om_text(info[k]->name), visit, arg);
}

void
om_model_visit_metadata(const om_model *m, om_metadata_visit *visit, void *arg)
{
	const Onnx__GraphProto *g = m->proto->graph;

	visit_props(PROPS(m->proto), NULL, visit, arg);
	if (!g)
		return;
	visit_infos(g->n_input, g->input, visit, arg);
	visit_infos(g->n_output, g->output, visit, arg);
	visit_infos(g->n_value_info, g->value_info, visit, arg);
}

void
om_prop_remove(struct props p, const char *key)
{
	size_t left = 0;

	for (size_t k = 0; k < *p.n; k++)
		if (strcmp(om_text((*p.list)[k]->key), key) != 0)
			(*p.list)[left++] = (*p.list)[k];
	*p.n = left;
}

/* ---- Nodes. ---- */

void
om_metadata_read_op(om_arena *mem, om_op *op, const Onnx__NodeProto *node)
{
	const struct props p = {(size_t *)&node->n_metadata_props,
		(Onnx__StringStringEntryProto ***)&node->metadata_props};
	const char *phase = om_prop_find(p, OM_KEY_PHASE), *again = om_prop_find(p, OM_KEY_REMATERIALIZED);

	op->phase = phase ? om_phase_find(phase) : OM_NO_PHASE;
	op->rematerialized_from = again ? om_strdup(mem, again) : NULL;
}

static void
write_entry(om_arena *mem, struct props p, const char *key, const char *value)
{
	const char *old = om_prop_find(p, key);

	if (!value || !*value)
		om_prop_remove(p, key);
	else if (!old || strcmp(old, value) != 0)
		om_prop_set(mem, p, key, value);
}

void
om_metadata_write_op(om_arena *mem, const om_op *op, Onnx__NodeProto *node)
{
	write_entry(mem, PROPS(node), OM_KEY_PHASE, om_phase_text(op->phase));
	write_entry(mem, PROPS(node), OM_KEY_REMATERIALIZED, op->rematerialized_from);
}

/* ---- The model: carried values. ---- */

static uint32_t
place_of(size_t n, Onnx__ValueInfoProto *const *list, const char *name)
{
	for (size_t k = 0; k < n; k++)
		if (strcmp(om_text(list[k]->name), name) == 0)
			return (uint32_t)k;
	return UINT32_MAX;
}

/* Inputs and outputs of the file correspond to those of the program, in order. */
void
om_metadata_read(om_session *s, om_prog *p, om_model *m)
{
	const Onnx__GraphProto *g = m->proto->graph;
	const char *text = om_prop_find(PROPS(m->proto), OM_KEY_IO_ALIAS), *result;
	om_arena *mem = om_arena_new();
	json_t **at = om_json_hold(mem), *aliases = *at = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL, *param;

	if (text && !json_is_object(aliases))
		om_warn(s, "%s: metadata entry %s is not a JSON object of names", m->name, OM_KEY_IO_ALIAS);
	json_object_foreach(aliases, result, param) {
		const char *name = json_string_value(param);
		if (!name || !om_prog_alias_io(p, place_of(g->n_output, g->output, result),
		    place_of(g->n_input, g->input, name)))
			om_warn(s,
				"%s: %s aliases output %s to input %s, which is not possible", m->name, OM_KEY_IO_ALIAS,
				result, name ? name : "?");
	}
	om_arena_free(mem);
}

om_status
om_metadata_write(om_session *s, om_model *m, const om_prog *p)
{
	const Onnx__GraphProto *g = m->proto->graph;

	if (p->nio_alias == 0) {
		om_prop_remove(PROPS(m->proto), OM_KEY_IO_ALIAS);
		return OM_OK;
	}
	om_arena *mem = om_arena_new();
	json_t **at = om_json_hold(mem), *aliases = *at = json_object();
	for (uint32_t k = 0; k < p->nio_alias; k++)
		json_object_set_new(aliases, om_text(g->output[p->io_alias[k].result]->name),
			json_string(om_text(g->input[p->io_alias[k].param]->name)));
	const size_t n = json_dumpb(aliases, NULL, 0, JSON_COMPACT);
	char *text = om_alloc(mem, n + 1);
	const bool good = n && json_dumpb(aliases, text, n, JSON_COMPACT) == n;
	if (good)
		om_prop_set(m->mem, PROPS(m->proto), OM_KEY_IO_ALIAS, text);
	om_arena_free(mem);
	return good ? OM_OK : om_fail(s, OM_MEMORY, "cannot allocate the list of input/output aliases");
}
