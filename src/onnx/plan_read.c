/* SPDX-License-Identifier: Apache-2.0 */
/* Reads plans from models.  The document is checked against its digest, the model against
 * the graph digest in the document, and every name against the program.  om_plan_verify()
 * checks the plan itself. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/guard.h"
#include "alloc/plan_arenas.h"
#include "base/map.h"
#include "base/sha256.h"
#include "ir/alias_roots.h"
#include "ir/binding.h"
#include "ir/enum_text.h"
#include "ir/facts.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/schedule.h"
#include "onnx/json_hold.h"
#include "onnx/annotate.h"
#include "onnx/lowered.h"
#include "onnx/plan_binding.h"
#include "onnx/plan_read.h"
#include "ir/limits.h"
#include "onnxmem/builder.h"
#include "onnx/model.h"
#include "opdef/fold.h"
#include "opdef/op_context.h"

struct reader {
	om_session *s;
	om_model *m;
	om_prog *p;
	om_plan *plan;
	om_arena *mem;
	json_t *root;
	om_lower_fn *lower;
	void *host;               /* for `lower` */
	const om_binding *given;  /* sizes wanted; NULL: those that the plan was made for */
	om_plan_sizes sizes;      /* and what the document says about them */
	bool is_lowered;          /* the program is what passes made of that of the model */
	om_op ***ops;             /* by block id: ops by index */
	om_map scopes;            /* blocks by path */
	om_map *values;           /* by block id: values by name */
	bool *seen;               /* by block id: its rows have been read */
	const om_alias **alias;   /* by value id */
	uint8_t *state;           /* by value id */
};

enum { OPEN, PLACED, UNPLANNED };

#define BAD(r, ...)  om_fail((r)->s, OM_BADPLAN, "the plan: " __VA_ARGS__)

/* ---- The text. ---- */

/* Find an entry of the model's metadata; a duplicate key is an error. */
static om_status
find_key(om_session *s, const om_model *m, const char *key, const char **value)
{
	const Onnx__ModelProto *p = m->proto;

	*value = NULL;
	for (size_t k = 0; k < p->n_metadata_props; k++) {
		const Onnx__StringStringEntryProto *e = p->metadata_props[k];
		if (strcmp(om_text(e->key), key) != 0)
			continue;
		if (*value)
			return om_fail(s, OM_BADPLAN, "%s: duplicate metadata entry %s", m->name, key);
		*value = om_text(e->value);
	}
	return OM_OK;
}

/* Check that the plan in the model is unmodified, and that it was made for this graph. */
static om_status
check_keys(struct reader *r, const char *text, const char *graph)
{
	const char *digest, *planned;

	OM_TRY(find_key(r->s, r->m, OM_KEY_DIGEST, &digest));
	OM_TRY(find_key(r->s, r->m, OM_KEY_GRAPH, &planned));
	if (!digest)
		return om_fail(r->s, OM_BADPLAN, "%s: the plan has no digest (%s is missing)", r->m->name,
			OM_KEY_DIGEST);
	if (strcmp(digest, om_text_digest(text, strlen(text), r->mem)) != 0)
		return om_fail(r->s, OM_BADPLAN, 
			"%s: the plan was changed after it was written: its text does not match the digest %s", r->m->name, digest);
	if (!planned)
		return om_fail(r->s, OM_BADPLAN, "%s: the plan has no digest of its graph (%s is missing)",
			r->m->name, OM_KEY_GRAPH);
	if (strcmp(planned, graph) != 0)
		return om_fail(r->s, OM_STALE, 
			"%s: the plan is for another graph: the model was changed after planning (%s, now %s)", r->m->name, planned, graph);
	return OM_OK;
}

static om_status
parse(struct reader *r, const char *text, size_t size)
{
	json_error_t e;

	json_t **at = om_json_hold(r->mem);

	r->root = *at = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
	if (!r->root)
		return BAD(r, "not JSON: %s (line %d)", e.text, e.line);
	return json_is_object(r->root) ? OM_OK : BAD(r, "not a JSON object");
}

static om_status
load(struct reader *r, const char *sidecar, const char *graph)
{
	const char *text;
	const struct whole *w;

	if (sidecar) {
		OM_TRY(om_whole_open(r->s, r->mem, sidecar, &w));
		return parse(r, w->size ? w->data : "", w->size);
	}
	OM_TRY(find_key(r->s, r->m, OM_KEY_PLAN, &text));
	if (!text)
		return om_fail(r->s, OM_INVALID, "%s has no plan", r->m->name);
	OM_TRY(check_keys(r, text, graph));
	return parse(r, text, strlen(text));
}

/* ---- JSON. ---- */

static om_status
get_text(struct reader *r, const json_t *j, const char *what, const char **out)
{
	*out = json_string_value(j);
	return *out ? OM_OK : BAD(r, "%s is not a string", what);
}

static om_status
get_number(struct reader *r, const json_t *j, const char *what, uint64_t most, uint64_t *out)
{
	const json_int_t n = json_integer_value(j);

	*out = 0;
	if (!json_is_integer(j) || n < 0 || (uint64_t)n > most)
		return BAD(r, "%s is not an integer from 0 to %" PRIu64, what, most);
	*out = (uint64_t)n;
	return OM_OK;
}

static om_status
get_index(struct reader *r, const json_t *j, const char *what, uint32_t most, uint32_t *out)
{
	uint64_t n;
	const om_status st = get_number(r, j, what, most, &n);

	*out = (uint32_t)n;
	return st;
}

/* An optional member that is an array. */
static om_status
get_list(struct reader *r, const json_t *object, const char *key, json_t **out)
{
	*out = json_object_get(object, key);
	return !*out || json_is_array(*out) ? OM_OK : BAD(r, "\"%s\" is not a list", key);
}

static om_status
check_row(struct reader *r, const json_t *row, const char *what, size_t least, size_t most)
{
	if (json_is_array(row) && json_array_size(row) >= least && json_array_size(row) <= most)
		return OM_OK;
	return BAD(r, "a row of \"%s\" does not have %zu entries", what, least);
}

/* ---- Names. ---- */

static om_status
find_block(struct reader *r, const json_t *path, om_block **out)
{
	const char *text;

	OM_TRY(get_text(r, path, "the path of a scope", &text));
	*out = om_map_get(&r->scopes, text);
	return *out ? OM_OK : BAD(r, "the model has no scope \"%s\"", text);
}

static om_status
find_value(struct reader *r, const om_block *b, const json_t *name, om_value **out)
{
	const char *text;

	OM_TRY(get_text(r, name, "the name of a value", &text));
	*out = om_map_get(&r->values[b->id], text);
	if (*out)
		return OM_OK;
	return BAD(r, "%s%shas no value %s", *b->path ? b->path : "the model", *b->path ? " " : " ", text);
}

static bool
lies_in(const om_block *b, const om_block *around)
{
	while (b != around && b->owner)
		b = b->owner->block;
	return b == around;
}

/* Find a value visible in block `b`: of `b` or of an enclosing block; with a path, of that block. */
static om_status
find_visible(struct reader *r, const om_block *b, const json_t *name, om_value **out)
{
	const char *text;
	om_block *there;

	if (json_is_array(name)) {
		OM_TRY(find_block(r, json_array_get(name, 0), &there));
		if (!lies_in(b, there))
			return BAD(r, "%s is not in a scope that encloses \"%s\"", *there->path ? there->path : "the graph", b->path);
		return find_value(r, there, json_array_get(name, 1), out);
	}

	OM_TRY(get_text(r, name, "the name of a value", &text));
	for (*out = NULL; !*out; b = b->owner->block) {
		*out = om_map_get(&r->values[b->id], text);
		if (!b->owner)
			break;
	}
	return *out ? OM_OK : BAD(r, "no value %s to share memory with", text);
}

static void
list_scopes(struct reader *r)
{
	r->scopes = om_map_new(r->mem);
	for (om_block *b = r->p->first; b; b = b->next)
		om_map_set(&r->scopes, b->path, b);
}

static void
list_names(struct reader *r)
{
	r->values = om_values_by_name(r->p, r->mem);
	r->seen = OM_NEWN(r->mem, bool, r->p->nblock);
	r->state = OM_NEWN(r->mem, uint8_t, r->p->nvalue);
	r->alias = OM_NEWN(r->mem, const om_alias *, r->p->nvalue);
}

/* ---- Inputs for which the plan was made. ---- */

static om_status
check_head(struct reader *r, const char *graph)
{
	const char *schema, *planned;

	OM_TRY(get_text(r, json_object_get(r->root, "schema"), "\"schema\"", &schema));
	if (strcmp(schema, "memplan/1") != 0)
		return BAD(r, "its schema is \"%s\", expected \"memplan/1\"", schema);
	OM_TRY(get_text(r, json_object_get(r->root, "graph"), "\"graph\"", &planned));
	if (strcmp(planned, graph) != 0)
		return om_fail(r->s, OM_STALE, "%s: the plan is for another graph: %s, now %s", r->m->name,
			planned, graph);
	return OM_OK;
}

/* The consumer of the plan, and what the scratch of its kernels depends on. */
static om_status
read_target(struct reader *r, om_plan_request *to)
{
	const char *target = json_string_value(json_object_get(r->root, "target"));
	const json_t *threads = json_object_get(r->root, "threads");

	*to = (om_plan_request)OM_PLAN_REQUEST(.threads = 1, .precise = json_is_true(json_object_get(r->root, "precise")));
	if (target && !om_target_find(target, &to->target))
		return BAD(r, "unknown target \"%s\"", target);
	return threads ? get_index(r, threads, "the number of threads", UINT16_MAX, &to->threads) : OM_OK;
}

/* ---- The order. ---- */

/* Do the nodes of the file correspond to the ops of the block? */
static bool
has_its_nodes(const om_block *b)
{
	const Onnx__GraphProto *g = b->origin;

	return g && g->n_node == b->nop;
}

/* Reorder the ops of a block by a list of nodes, or of ranks in the order of creation. */
static om_status
put_in_order(struct reader *r, om_block *b, const json_t *list)
{
	om_op **of = r->is_lowered ? om_ops_by_creation(b, r->mem) : om_ops_by_node(b, r->mem);
	om_op **ops = OM_NEWN(r->mem, om_op *, b->nop);
	uint32_t at;
	json_t *j;
	size_t k;

	if (json_array_size(list) != b->nop || !(r->is_lowered || has_its_nodes(b)))
		return BAD(r, "an order has %zu nodes, %s has %u", json_array_size(list),
			*b->path ? b->path : "the graph", b->nop);
	json_array_foreach(list, k, j) {
		OM_TRY(get_index(r, j, "a node of an order", b->nop ? b->nop - 1 : 0, &at));
		if (!of[at])
			return BAD(r, "an order has node %u twice", at);
		ops[k] = of[at];
		of[at] = NULL;
	}
	om_block_set_order(b, ops);
	return OM_OK;
}

/* Is every value defined before its uses? */
static om_status
check_order(struct reader *r, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nin; k++) {
			const om_value *v = op->in[k];
			const om_op *reader = !v || v->block == b ? op : om_block_enclosing_op(v->block, b);
			if (v && v->def && reader && v->def->index >= reader->index)
				return BAD(r, "its order reads %s before it is computed", v->name);
		}
	for (uint32_t k = 0; k < b->nresult; k++) {
		const om_value *v = b->result[k];
		const om_op *reader = v->block == b ? NULL : om_block_enclosing_op(v->block, b);
		if (v->def && reader && v->def->index >= reader->index)
			return BAD(r, "its order reads %s before it is computed", v->name);
	}
	return OM_OK;
}

static om_status
read_order(struct reader *r)
{
	const json_t *order = json_object_get(r->root, "order");
	json_t *scopes, *j;
	om_block *b;
	size_t k;

	if (json_is_string(order) && strcmp(json_string_value(order), "file") == 0)
		return OM_OK;
	if (!json_is_array(order))
		return BAD(r, "its order is neither \"file\" nor a list of nodes");
	OM_TRY(put_in_order(r, r->p->first, order));
	OM_TRY(get_list(r, r->root, "scopes", &scopes));
	json_array_foreach(scopes, k, j) {
		const json_t *list = json_object_get(j, "order");
		OM_TRY(find_block(r, json_object_get(j, "path"), &b));
		if (list && b->owner)
			OM_TRY(put_in_order(r, b, list));
	}
	om_timeline(r->p);
	for (b = r->p->first; b; b = b->next)
		OM_TRY(check_order(r, b));
	return OM_OK;
}

static om_status
read_binding(struct reader *r)
{
	r->sizes = (om_plan_sizes){.session = r->s, .mem = r->mem, .prog = r->p, .root = r->root, .given = r->given};
	return om_plan_sizes_bind(&r->sizes);
}

/* Plans are made after inlining: bind the remaining calls to operator definitions. */
static void
bind_calls(om_prog *p)
{
	for (om_block *b = p->first; b; b = b->next)
		for (om_op *op = b->first; op; op = op->next)
			if (op->call)
				om_op_bind(op);
}

static om_status
check_shapes(struct reader *r)
{
	const char *shapes;

	if (r->sizes.is_other)
		return OM_OK;
	OM_TRY(find_key(r->s, r->m, OM_KEY_SHAPES, &shapes));
	if (shapes && strcmp(shapes, om_shapes_text(r->p, r->mem)) != 0)
		return BAD(r, "it was made for the shapes %s, but %s has %s", om_shapes_text(r->p, r->mem),
			OM_KEY_SHAPES, shapes);
	return OM_OK;
}

/* Bind, infer and fold, like the passes that ran before planning. */
static om_status
bind(struct reader *r)
{
	om_fold_counts counts;

	OM_TRY(read_binding(r));
	OM_TRY(om_block_infer(r->s, r->p, r->p->first));
	OM_TRY(om_prog_fold(r->s, r->p, OM_FOLD_DEFAULTS, &counts));
	om_timeline(r->p);
	return check_shapes(r);
}

/* ---- The lowered program. ---- */

/* A digest of the names of inputs and outputs, and of the types of inputs. */
static const char *
interface_of(const struct reader *r)
{
	const om_block *g = r->p->first;
	om_sha256 *h = om_sha256_new(r->mem);
	char *hex = om_alloc(r->mem, OM_SHA256_TEXT);

	om_sha256_add(h, &g->nparam, sizeof g->nparam);
	for (uint32_t k = 0; k < g->nparam; k++) {
		om_sha256_add(h, g->param[k]->name, strlen(g->param[k]->name) + 1);
		om_sha256_add(h, &g->param[k]->type.elem, sizeof g->param[k]->type.elem);
	}
	for (uint32_t k = 0; k < g->nresult; k++)
		om_sha256_add(h, g->result[k]->name, strlen(g->result[k]->name) + 1);
	om_sha256_end(h, hex);
	return hex;
}

/* Run the passes of the document on the bound program.  What they make has to be what the plan is for. */
static om_status
lower(struct reader *r, const om_plan_request *request)
{
	const json_t *j = json_object_get(r->root, "lowered");
	const char *passes, *digest;

	OM_TRY(get_text(r, json_object_get(j, "passes"), "the list of passes", &passes));
	OM_TRY(get_text(r, json_object_get(j, "program"), "the digest of the program", &digest));
	OM_TRY(read_binding(r));
	OM_TRY(check_shapes(r));
	const char *interface = interface_of(r);
	const om_status st = r->lower(r->host, r->p, request, passes);
	if (st != OM_OK)
		return om_note(r->s, st == OM_MEMORY ? st : OM_STALE, "running the passes that the plan is made after");
	if (strcmp(interface, interface_of(r)) != 0)
		return BAD(r, "the passes %s change inputs or outputs of the model", passes);
	r->p->assignment = NULL;
	list_scopes(r);
	OM_TRY(read_order(r));
	if (r->sizes.is_other || strcmp(digest, om_prog_digest(r->p, r->mem)) == 0)
		return OM_OK;
	return om_fail(r->s, OM_STALE, "%s: the plan is for another program than the passes %s make of this model: it was "
		"made by another version of onnxmem or with other passes; plan the model again", r->m->name, passes);
}

static om_status
prepare(struct reader *r, const om_plan_request *request)
{
	r->is_lowered = json_object_get(r->root, "lowered");
	if (r->is_lowered)
		return lower(r, request);
	list_scopes(r);
	OM_TRY(read_order(r));
	bind_calls(r->p);
	return bind(r);
}

/* The rules for operators that have no definition. */
static om_status
read_op_rules(struct reader *r)
{
	json_t *all, *j;
	const char *text;
	size_t k;
	bool used;

	OM_TRY(get_list(r, r->root, "op_rules", &all));
	json_array_foreach(all, k, j) {
		OM_TRY(get_text(r, j, "a rule for an operator", &text));
		if (om_prog_op_rule(r->s, r->p, text, &used) != OM_OK)
			return om_note(r->s, OM_BADPLAN, "reading the rules for operators in the plan");
	}
	return OM_OK;
}

/* ---- States. ---- */

static uint32_t
place_of(om_value *const *v, uint32_t n, const char *name)
{
	uint32_t k = 0;

	while (k < n && strcmp(v[k]->name, name) != 0)
		k++;
	return k;
}

static bool
may_be_state(const om_prog *p, uint32_t result, uint32_t param)
{
	const om_block *g = p->first;

	return result < g->nresult && param < g->nparam && g->param[param]->type.kind == OM_TENSOR;
}

/* Is there no state of the model that the document leaves out? */
static om_status
has_all_states(struct reader *r, const json_t *all)
{
	const om_block *g = r->p->first;

	for (uint32_t k = 0; k < r->p->nio_alias; k++) {
		const char *output = g->result[r->p->io_alias[k].result]->name, *input = g->param[r->p->io_alias[k].param]->name;
		const char *planned = json_string_value(json_object_get(all, output));
		if (!planned || strcmp(planned, input) != 0)
			return BAD(r, "output %s replaces input %s in the next run, as the model says, but not in the plan", output, input);
	}
	return OM_OK;
}

/* What replaces an input in the next run is what the plan was made for: all that the model declares, and what options have
 * declared, on which passes may depend. */
static om_status
read_states(struct reader *r)
{
	json_t *all = json_object_get(r->root, "states"), *j;
	const om_block *g = r->p->first;
	const char *output, *input;

	if (!all)
		return OM_OK;
	if (!json_is_object(all))
		return BAD(r, "\"states\" is not an object");
	OM_TRY(has_all_states(r, all));
	om_prog_clear_ties(r->p);
	json_object_foreach(all, output, j) {
		OM_TRY(get_text(r, j, "the input of a state", &input));
		const uint32_t result = place_of(g->result, g->nresult, output), param = place_of(g->param, g->nparam, input);
		if (!may_be_state(r->p, result, param) || !om_prog_pair_io(r->p, result, param))
			return BAD(r, "output %s cannot replace input %s in the next run", output, input);
	}
	return OM_OK;
}

/* ---- Dims. ---- */

/* Dims of the model that the plan has under the names of others. */
static om_status
read_definitions(struct reader *r)
{
	json_t *all = json_object_get(r->root, "definitions"), *j;
	const char *symbol, *as;

	if (all && !json_is_object(all))
		return BAD(r, "\"definitions\" is not an object");
	json_object_foreach(all, symbol, j) {
		OM_TRY(get_text(r, j, "the definition of a dim", &as));
		const om_status st = om_prog_define_dim(r->s, r->p, symbol, as);
		if (st != OM_OK)
			return om_fail(r->s, st == OM_USAGE ? OM_BADPLAN : st, "the plan: %s", om_strdup(r->mem, om_message(r->s)));
	}
	return OM_OK;
}

/* ---- The plan itself. ---- */

static om_status
read_arena(struct reader *r, const json_t *j, om_plan_arena *a)
{
	const char *name, *device, *status;
	json_t *limit = json_object_get(j, "limit"), *step = json_object_get(j, "bound_step");
	const json_t *order = json_object_get(j, "order_bound");
	uint64_t n;

	OM_TRY(get_text(r, json_object_get(j, "name"), "the name of an arena", &name));
	OM_TRY(get_text(r, json_object_get(j, "device"), "the device of an arena", &device));
	OM_TRY(get_text(r, json_object_get(j, "status"), "the status of an arena", &status));
	OM_TRY(get_number(r, json_object_get(j, "bytes"), "the size of an arena", INT64_MAX, &a->bytes));
	OM_TRY(get_number(r, json_object_get(j, "align"), "the alignment of an arena", 1 << 30, &a->align));
	OM_TRY(get_number(r, json_object_get(j, "naive"), "the naive size of an arena", INT64_MAX, &a->naive));
	OM_TRY(get_number(r, json_object_get(j, "lower_bound"), 
		"the lower bound of an arena", INT64_MAX, &a->lower_bound));
	if (order)
		OM_TRY(get_number(r, order, "the bound of an arena for all storage decisions", INT64_MAX, &a->order_bound));
	if (limit)
		OM_TRY(get_number(r, limit, "the limit of an arena", INT64_MAX, &a->limit));
	if (step) {
		OM_TRY(get_number(r, step, "the step of the lower bound of an arena", UINT32_MAX, &n));
		a->bound_step = (uint32_t)n;
	}
	a->is_limited = json_is_true(json_object_get(j, "search_limited"));
	a->name = om_strdup(r->p->mem, name);
	a->device = om_strdup(r->p->mem, device);
	a->status = strncmp(status, "optimal", strlen("optimal")) == 0 ? OM_PACK_OPTIMAL : OM_PACK_FEASIBLE;
	return OM_OK;
}

static om_status
read_arenas(struct reader *r)
{
	json_t *all, *j;
	size_t k;

	OM_TRY(get_list(r, r->root, "arenas", &all));
	r->plan->arena = OM_NEWN(r->p->mem, om_plan_arena, json_array_size(all) + 1);
	json_array_foreach(all, k, j) {
		uint64_t id;
		OM_TRY(get_number(r, json_object_get(j, "id"), "the id of an arena", UINT32_MAX, &id));
		if (id != k)
			return BAD(r, "arena %zu has the id %" PRIu64, k, id);
		OM_TRY(read_arena(r, j, &r->plan->arena[k]));
	}
	r->plan->narena = (uint32_t)json_array_size(all);
	for (k = 0; k < r->plan->narena; k++)
		if (r->plan->arena[k].align && (k == 0 || r->plan->arena[k].align < r->plan->align))
			r->plan->align = r->plan->arena[k].align;
	return OM_OK;
}

/* The steps of a lifetime that starts or ends inside of a node, or has gaps. */
static om_status
read_ranges(struct reader *r, const om_value *v, const json_t *row, om_live_interval *live)
{
	const uint32_t n = (uint32_t)((json_array_size(row) - 6) / 2);
	om_steps *range = OM_NEWN(r->p->mem, om_steps, n);

	if (json_array_size(row) % 2)
		return BAD(r, "the lifetime of %s has a start without an end", v->name);
	for (uint32_t k = 0; k < n; k++) {
		OM_TRY(get_index(r, json_array_get(row, 6 + 2 * (size_t)k), "a step", r->p->nstep, &range[k].first));
		OM_TRY(get_index(r, json_array_get(row, 7 + 2 * (size_t)k), "a step", r->p->nstep, &range[k].last));
		if (range[k].first > range[k].last)
			return BAD(r, "the lifetime of %s ends before it starts", v->name);
		if (k && range[k].first <= (uint64_t)range[k - 1].last + 1)
			return BAD(r, "the ranges of the lifetime of %s are not apart", v->name);
	}
	*live = (om_live_interval){range[0].first, range[n - 1].last, n > 1 ? range : NULL, n > 1 ? n : 0};
	return OM_OK;
}

static om_status
read_place(struct reader *r, const om_block *b, const json_t *row)
{
	om_op *const *ops = r->ops[b->id];
	uint32_t first, last;
	om_value *v;

	OM_TRY(check_row(r, row, "v", 6, SIZE_MAX));
	OM_TRY(find_value(r, b, json_array_get(row, 0), &v));
	if (r->state[v->id] != OPEN)
		return BAD(r, "%s has two placements", v->name);
	r->state[v->id] = PLACED;
	om_placement *at = &r->plan->place[v->id];
	at->where = OM_IN_ARENA;
	OM_TRY(get_index(r, json_array_get(row, 1), "the number of an arena", UINT32_MAX, &at->arena));
	OM_TRY(get_number(r, json_array_get(row, 2), "an offset", INT64_MAX, &at->offset));
	OM_TRY(get_number(r, json_array_get(row, 3), "a size", INT64_MAX, &at->bytes));
	OM_TRY(get_index(r, json_array_get(row, 4), "the start of a lifetime", b->nop, &first));
	OM_TRY(get_index(r, json_array_get(row, 5), "the end of a lifetime", b->nop, &last));
	at->live = (om_live_interval){om_span_first(ops, v, first), om_span_last(ops, v, last), NULL, 0};
	if (json_array_size(row) > 6)
		return read_ranges(r, v, row, &at->live);
	return at->live.first <= at->live.last ? OM_OK : BAD(r, "the lifetime of %s ends before it starts", v->name);
}

/* ---- Views. ---- */

/* A region: an offset into arena 0, or an object with an arena or a value visible in `b`. */
static om_status
read_region(struct reader *r, const om_block *b, const json_t *j, om_region *out)
{
	const json_t *arena = json_object_get(j, "arena"), *in = json_object_get(j, "in");
	om_value *base;

	*out = (om_region){.base = OM_NO_VALUE};
	if (!json_is_object(j))
		return get_number(r, j, "an offset of a multi-view", INT64_MAX, &out->offset);
	OM_TRY(get_number(r, json_object_get(j, "at"), "an offset of a multi-view", INT64_MAX, &out->offset));
	if (arena)
		OM_TRY(get_index(r, arena, "the number of an arena", UINT32_MAX, &out->arena));
	if (!in)
		return OM_OK;
	OM_TRY(find_visible(r, b, in, &base));
	out->base = base->id;
	return OM_OK;
}

enum { MOST_REGIONS = 1 << 16 };

static om_status
read_regions(struct reader *r, const om_block *b, const json_t *j, const om_region **out, uint32_t *n)
{
	const bool many = json_is_array(j);
	const size_t size = many ? json_array_size(j) : j != NULL;

	if (size > MOST_REGIONS)
		return BAD(r, "a multi-view has too many regions");
	om_region *all = OM_NEWN(r->p->mem, om_region, size);
	for (size_t k = 0; k < size; k++)
		OM_TRY(read_region(r, b, many ? json_array_get(j, k) : j, &all[k]));
	*out = all;
	*n = (uint32_t)size;
	return OM_OK;
}

static om_status
read_view(struct reader *r, const om_block *b, const json_t *j, om_plan_multi_view *v)
{
	const json_t *stride = json_object_get(j, "stride");
	uint64_t period;
	om_value *value;

	OM_TRY(find_value(r, b, json_object_get(j, "v"), &value));
	*v = (om_plan_multi_view){.value = value->id, .is_output = json_is_true(json_object_get(j, "output"))};
	OM_TRY(read_regions(r, b, json_object_get(j, "off"), &v->off, &v->period));
	OM_TRY(read_regions(r, b, json_object_get(j, "first"), &v->first, &v->nprologue));
	OM_TRY(get_number(r, json_object_get(j, "period"), "a period", MOST_REGIONS, &period));
	if (period != v->period || period == 0)
		return BAD(r, 
			"the multi-view of %s has a period of %" PRIu64 ", but %u regions", value->name, period, v->period);
	if (stride && !json_is_integer(stride))
		return BAD(r, "the stride of %s is not an integer", value->name);
	v->stride = json_integer_value(stride);
	return OM_OK;
}

static om_status
read_views(struct reader *r, const om_block *b, const json_t *scope)
{
	json_t *all, *j;
	size_t k;

	OM_TRY(get_list(r, scope, "views", &all));
	json_array_foreach(all, k, j) {
		if (r->plan->nview >= r->p->nvalue)
			return BAD(r, "it has more multi-views than the program has values");
		OM_TRY(read_view(r, b, j, &r->plan->view[r->plan->nview]));
		r->plan->nview++;
	}
	return OM_OK;
}

static int
by_value(const void *a, const void *b)
{
	const om_plan_multi_view *x = a, *y = b;
	return (x->value > y->value) - (x->value < y->value);
}

/* ---- Scopes. ---- */

static om_status
read_scope(struct reader *r, const json_t *j)
{
	json_t *rows, *row;
	om_block *b;
	uint64_t at;
	size_t k;

	OM_TRY(find_block(r, json_object_get(j, "path"), &b));
	if (r->seen[b->id])
		return BAD(r, "duplicate scope \"%s\"", b->path);
	r->seen[b->id] = true;
	if (b->owner) {
		OM_TRY(get_number(r, json_object_get(j, "at"), "a scope's \"at\"", UINT32_MAX, &at));
		if (at != b->owner->index)
			return BAD(r, "scope \"%s\" is declared at node %" PRIu64 ", but is at %u", b->path,
				at, b->owner->index);
	}
	OM_TRY(get_list(r, j, "v", &rows));
	json_array_foreach(rows, k, row)
		OM_TRY(read_place(r, b, row));
	return read_views(r, b, j);
}

static om_status
read_scopes(struct reader *r)
{
	json_t *all, *j;
	size_t k;

	OM_TRY(get_list(r, r->root, "scopes", &all));
	json_array_foreach(all, k, j)
		OM_TRY(read_scope(r, j));
	if (r->plan->nview)
		qsort(r->plan->view, r->plan->nview, sizeof *r->plan->view, by_value);
	return OM_OK;
}

/* Is `v` written before `source`: by an earlier op, or in a body of the op that computes
 * `source`? */
static bool
is_earlier(const om_value *v, const om_value *source)
{
	const om_op *op = v->def;

	if (!source->def)
		return false;
	if (v->block != source->block) {
		op = om_block_enclosing_op(source->block, v->block);
		return op && op->index <= source->def->index;
	}
	return op && op->index < source->def->index;
}

static om_status
read_aliases(struct reader *r)
{
	const char *kind;
	om_value *v, *source;
	json_t *all, *row;
	om_block *b;
	size_t k;

	OM_TRY(get_list(r, r->root, "alias", &all));
	r->plan->alias = OM_NEWN(r->p->mem, om_alias, json_array_size(all) + 1);
	json_array_foreach(all, k, row) {
		om_alias *a = &r->plan->alias[r->plan->nalias++];
		OM_TRY(check_row(r, row, "alias", 5, 5));
		OM_TRY(find_block(r, json_array_get(row, 0), &b));
		OM_TRY(find_value(r, b, json_array_get(row, 1), &v));
		OM_TRY(find_visible(r, b, json_array_get(row, 2), &source));
		OM_TRY(get_text(r, json_array_get(row, 3), "the kind of an alias", &kind));
		if (!om_alias_find(kind, &a->kind))
			return BAD(r, "an alias of %s has the unknown kind \"%s\"", v->name, kind);
		OM_TRY(get_number(r, json_array_get(row, 4), "an offset", INT64_MAX, &a->offset));
		a->value = v->id;
		a->source = source->id;
		if (a->kind == OM_ALIAS_VIEW && is_earlier(v, source))
			a->kind = OM_ALIAS_SUBBUFFER;
		r->alias[v->id] = a;
	}
	return OM_OK;
}

/* Values that were pinned to an arena; the verifier checks that they are there. */
static om_status
read_pins(struct reader *r)
{
	json_t *all = json_object_get(r->root, "pins"), *arena;
	const char *value;

	if (!all)
		return OM_OK;
	if (!json_is_object(all))
		return BAD(r, "\"pins\" is not an object");
	om_pin *pin = OM_NEWN(r->p->mem, om_pin, json_object_size(all));
	json_object_foreach(all, value, arena) {
		om_pin *to = &pin[r->plan->npin++];
		OM_TRY(get_text(r, arena, "the arena of a pin", &to->arena));
		*to = (om_pin){om_strdup(r->p->mem, value), om_strdup(r->p->mem, to->arena)};
	}
	r->plan->pin = pin;
	return OM_OK;
}

static om_status
read_scratch(struct reader *r)
{
	json_t *all, *row;
	om_block *b;
	om_value *v;
	size_t k;

	OM_TRY(get_list(r, r->root, "scratch", &all));
	r->plan->scratch = OM_NEWN(r->p->mem, om_scratch, json_array_size(all) + 1);
	json_array_foreach(all, k, row) {
		om_scratch *s = &r->plan->scratch[r->plan->nscratch++];
		OM_TRY(check_row(r, row, "scratch", 5, 5));
		OM_TRY(find_block(r, json_array_get(row, 0), &b));
		OM_TRY(find_value(r, b, json_array_get(row, 1), &v));
		if (!v->def)
			return BAD(r, "scratch is planned for %s, which no operator computes", v->name);
		s->op = v->def->id;
		OM_TRY(get_index(r, json_array_get(row, 2), "the number of an arena", UINT32_MAX, &s->arena));
		OM_TRY(get_number(r, json_array_get(row, 3), "an offset", INT64_MAX, &s->offset));
		OM_TRY(get_number(r, json_array_get(row, 4), "a size", INT64_MAX, &s->bytes));
	}
	return OM_OK;
}

/* The op of the graph that computes the value of this name. */
static om_status
find_op(struct reader *r, const json_t *name, uint32_t *id)
{
	om_value *v;

	OM_TRY(find_value(r, r->p->first, name, &v));
	if (!v->def)
		return BAD(r, "a stream has %s, which no operator computes", v->name);
	*id = v->def->id;
	return OM_OK;
}

static om_status
read_stream_op(struct reader *r, const json_t *row, om_worker_streams *s)
{
	const size_t n = json_array_size(row);
	uint32_t id;

	OM_TRY(check_row(r, row, "streams", 2, SIZE_MAX));
	OM_TRY(find_op(r, json_array_get(row, 0), &id));
	om_worker_op *o = &s->op[id];
	if (o->stream != OM_NO_STREAM)
		return BAD(r, "%s is in two streams", json_string_value(json_array_get(row, 0)));
	OM_TRY(get_index(r, json_array_get(row, 1), "the number of a stream", OM_MOST_WORKER_STREAMS, &o->stream));
	uint32_t *wait = OM_NEWN(r->p->mem, uint32_t, n - 2);
	for (size_t k = 2; k < n; k++)
		OM_TRY(find_op(r, json_array_get(row, k), &wait[o->nwait++]));
	o->wait = wait;
	s->nwait += o->nwait;
	return OM_OK;
}

/* Streams of workers; the verifier checks that they order the ops. */
static om_status
read_streams(struct reader *r)
{
	const json_t *j = json_object_get(r->root, "streams");
	om_worker_streams *s = OM_NEW(r->p->mem, om_worker_streams);
	json_t *all, *row;
	size_t k;

	if (!j)
		return OM_OK;
	OM_TRY(get_index(r, json_object_get(j, "count"), "the number of streams", OM_MOST_WORKER_STREAMS, &s->n));
	OM_TRY(get_list(r, j, "ops", &all));
	s->nop = r->p->nop;
	s->op = OM_NEWN(r->p->mem, om_worker_op, s->nop);
	for (uint32_t i = 0; i < s->nop; i++)
		s->op[i].stream = OM_NO_STREAM;
	json_array_foreach(all, k, row)
		OM_TRY(read_stream_op(r, row, s));
	r->plan->streams = s;
	r->plan->parallel_safe = true;
	return OM_OK;
}

static om_status
read_unplanned(struct reader *r)
{
	json_t *all, *row;
	const char *why;
	om_block *b;
	om_value *v;
	size_t k;

	OM_TRY(get_list(r, r->root, "unplanned", &all));
	r->plan->unplanned = OM_NEWN(r->p->mem, om_unplanned, json_array_size(all) + 1);
	json_array_foreach(all, k, row) {
		OM_TRY(check_row(r, row, "unplanned", 3, 3));
		OM_TRY(find_block(r, json_array_get(row, 0), &b));
		OM_TRY(find_value(r, b, json_array_get(row, 1), &v));
		OM_TRY(get_text(r, json_array_get(row, 2), "the reason of an unplanned value", &why));
		if (r->state[v->id] != OPEN)
			return BAD(r, "%s is both planned and unplanned", v->name);
		r->state[v->id] = UNPLANNED;
		r->plan->place[v->id].where = OM_UNPLANNED;
		r->plan->unplanned[r->plan->nunplanned++] = (om_unplanned){v->id, om_strdup(r->p->mem, why)};
	}
	return OM_OK;
}

/* The limits that the passes reached which led to the plan. */
static om_status
read_limits(struct reader *r)
{
	json_t *all = json_object_get(r->root, "limits"), *row;
	size_t k;

	r->p->nlimit = 0;
	json_array_foreach(all, k, row) {
		om_limit l = {.option = json_string_value(json_array_get(row, 1))};
		OM_TRY(check_row(r, row, "limits", 3, 3));
		OM_TRY(get_text(r, json_array_get(row, 0), "the pass of a limit", &l.pass));
		OM_TRY(get_text(r, json_array_get(row, 2), "what a limit ended", &l.what));
		om_limit_add(r->p, &l);
	}
	return OM_OK;
}

/* ---- Values without a placement in an arena, which the document does not list. ---- */

static void
place_outside(struct reader *r, const om_value *v, om_location where, uint64_t offset)
{
	om_placement *at = &r->plan->place[v->id];
	uint64_t bytes = 0;

	if (r->state[v->id] != OPEN)
		return;
	if (v->type.kind != OM_TENSOR || !om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		bytes = 0;
	*at = (om_placement){.where = where, .offset = offset, .bytes = bytes, .live = {.last = r->p->first->end}};
	r->state[v->id] = PLACED;
}

static void
place_callers(struct reader *r)
{
	const om_block *g = r->p->first;

	for (uint32_t k = 0; k < r->p->nvalue; k++)
		if (r->p->values[k]->is_const)
			place_outside(r, r->p->values[k], OM_WEIGHT, 0);
	for (uint32_t k = 0; k < g->nparam; k++)
		place_outside(r, g->param[k], OM_EXTERNAL, 0);
	for (uint32_t k = 0; k < g->nresult; k++)
		if (!r->alias[g->result[k]->id])
			place_outside(r, g->result[k], OM_EXTERNAL, 0);
}

/* Aliases of values outside the arenas are outside too.  Values in a cycle of aliases are left without a
 * placement. */
static void
place_aliases(struct reader *r)
{
	const om_alias **open = OM_NEWN(r->mem, const om_alias *, r->p->nvalue);

	for (uint32_t k = 0; k < r->p->nvalue; k++)
		open[k] = r->state[k] == OPEN ? r->alias[k] : NULL;
	const om_alias_root *root = om_alias_roots(open, r->p->nvalue, r->mem);
	for (uint32_t k = 0; k < r->p->nvalue; k++) {
		const om_placement *at = &r->plan->place[root[k].value];
		if (open[k] && (at->where == OM_WEIGHT || at->where == OM_EXTERNAL))
			place_outside(r, r->p->values[k], at->where, root[k].offset + at->offset);
	}
}

/* A value may be constant for other sizes than those that the plan was made for. */
static void
release_constants(struct reader *r)
{
	for (uint32_t k = 0; k < r->p->nvalue; k++) {
		const om_value *v = r->p->values[k];
		if (!v->is_const && !(v->def && v->def->is_folded))
			continue;
		r->plan->place[k] = (om_placement){.where = OM_UNUSED};
		r->state[k] = OPEN;
	}
}

static om_status
read_plan(struct reader *r, const char *sidecar)
{
	om_plan_request request;
	const char *strategy;
	char graph[80];

	OM_TRY(om_model_digest(r->s, r->m, false, graph));
	OM_TRY(load(r, sidecar, graph));
	OM_TRY(check_head(r, graph));
	OM_TRY(read_target(r, &request));
	OM_TRY(read_op_rules(r));
	OM_TRY(read_states(r));
	OM_TRY(read_definitions(r));
	OM_TRY(prepare(r, &request));
	list_names(r);
	r->ops = om_ops_by_index(r->p, r->mem);
	r->plan = om_plan_empty(r->p);
	r->plan->schedule = om_schedule_new(r->p, r->p->mem);
	r->plan->range = r->sizes.range;
	r->plan->nrange = r->sizes.nrange;
	r->plan->target = request.target;
	r->plan->threads = request.threads;
	r->plan->precise = request.precise;
	r->plan->parallel_safe = json_is_true(json_object_get(r->root, "parallel_safe"));
	strategy = json_string_value(json_object_get(r->root, "strategy"));
	r->plan->strategy = om_strdup(r->p->mem, strategy ? strategy : "");
	OM_TRY(read_arenas(r));
	OM_TRY(om_plan_read_formulas(&r->sizes, r->plan));
	OM_TRY(read_scopes(r));
	OM_TRY(read_aliases(r));
	OM_TRY(read_scratch(r));
	OM_TRY(read_streams(r));
	OM_TRY(read_pins(r));
	OM_TRY(read_unplanned(r));
	OM_TRY(read_limits(r));
	if (r->sizes.is_other)
		release_constants(r);
	place_callers(r);
	place_aliases(r);
	return OM_OK;
}

static om_status
model_read_plan_guarded(om_session *s, om_model *m, om_prog *p, const char *sidecar, const om_binding *b,
	om_lower_fn *lower_fn, void *host)
{
	struct reader r = {.s = s, .m = m, .p = p, .mem = om_arena_new(), .given = b, .lower = lower_fn, .host = host};
	const om_status st = read_plan(&r, sidecar);

	om_arena_free(r.mem);
	/* Ops may have been reordered, so all other facts are invalidated. */
	om_facts_set(p, 0, st == OM_OK ? OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_PLAN : 0);
	return st;
}

om_status
om_model_read_plan_with(om_session *s, om_model *m, om_prog *p, const char *sidecar, const om_binding *b,
	om_lower_fn *lower_fn, void *host)
{
	OM_GUARDED(s, model_read_plan_guarded(s, m, p, sidecar, b, lower_fn, host));
}
