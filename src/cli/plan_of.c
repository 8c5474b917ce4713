/* SPDX-License-Identifier: Apache-2.0 */
/* --plan-of: plans of other planners for a model. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/npy.h"
#include "cli/table.h"
#include "report/foreign.h"
#include "report/report.h"
#include "report/tflm_read.h"

/* ---- onnxsim: keys of the values, and of the model. ---- */

/* What a value states, while its entries are visited. */
struct key_reader {
	om_cli *c;
	om_foreign *f;
	om_map offsets, sizes;   /* texts by name */
	om_status st;
};

static om_status
read_bytes(om_cli *c, const char *what, const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *out <= INT64_MAX / 8)
		return OM_OK;
	return om_fail(c->session, OM_BADPLAN, "onnxsim's keys: %s is no number of bytes: %.60s", what, text);
}

static void
take_key(void *arg, const char *value, const char *key, const char *text)
{
	struct key_reader *r = arg;
	om_map *to = value && strcmp(key, "onnxsim.mem_offset") == 0 ? &r->offsets
		: value && strcmp(key, "onnxsim.mem_size") == 0 ? &r->sizes : NULL;

	if (r->st != OM_OK)
		return;
	if (!value && strcmp(key, "onnxsim.memory_plan_arena_bytes") == 0)
		r->st = read_bytes(r->c, key, text, &r->f->arena_bytes);
	const char *other = to ? om_map_get(to, value) : NULL;
	if (other && strcmp(other, text) != 0)
		r->st = om_fail(r->c->session, OM_BADPLAN, "onnxsim's keys: %s has two entries %s", value, key);
	if (to)
		om_map_set(to, value, (void *)text);
}

static om_status
read_onnxsim(om_cli *c, const char *path, om_foreign *f)
{
	struct key_reader r = {.c = c, .f = f, .offsets = om_map_new(c->mem), .sizes = om_map_new(c->mem)};
	uint64_t offset, bytes;

	om_model_visit_metadata(c->model, take_key, &r);
	OM_TRY(r.st);
	if (r.offsets.n == 0)
		return om_fail(c->session, OM_INVALID, "%s has no plan of onnxsim: no value has the key onnxsim.mem_offset", path);
	for (size_t k = 0; k < r.offsets.cap; k++) {
		const char *name = r.offsets.slot[k].key;
		if (!name)
			continue;
		const char *size = om_map_get(&r.sizes, name);
		OM_TRY(read_bytes(c, name, r.offsets.slot[k].value, &offset));
		bytes = OM_SIZE_UNSTATED;
		if (size)
			OM_TRY(read_bytes(c, name, size, &bytes));
		OM_TRY(om_foreign_add(c->session, f, name, offset, bytes));
	}
	return OM_OK;
}

/* ---- Files. ---- */

static om_status
read_tflm(om_cli *c, const char *path, om_foreign *f)
{
	om_tflm_plan plan;
	char *data;
	size_t size;

	OM_TRY(om_file_read(c->session, path, c->mem, &data, &size));
	OM_TRY(om_tflm_parse(c->session, path, data, size, c->mem, &plan));
	return om_tflm_places(c->session, &plan, f);
}

static om_status
read_row(om_cli *c, const om_table *t, size_t row, const int column[3], om_foreign *f)
{
	uint64_t offset, bytes = OM_SIZE_UNSTATED;

	if (!*om_table_field(t, row, column[1]))
		return OM_OK;
	OM_TRY(om_table_number(c->session, t, row, column[1], 0, INT64_MAX, &offset));
	if (column[2] >= 0)
		OM_TRY(om_table_number(c->session, t, row, column[2], 0, INT64_MAX, &bytes));
	return om_foreign_add(c->session, f, om_table_field(t, row, column[0]), offset, bytes);
}

/* A table by the names of values; a second pool would need a second arena, whose size is not known. */
static om_status
read_csv(om_cli *c, const char *path, om_foreign *f)
{
	om_table t;
	char *data;
	size_t size;

	OM_TRY(om_file_read(c->session, path, c->mem, &data, &size));
	OM_TRY(om_table_parse(c->session, path, data, size, c->mem, &t));
	const int name = om_table_column(&t, "name"), pool = om_table_column(&t, "pool");
	const int column[3] = {name >= 0 ? name : om_table_column(&t, "id"), om_table_column(&t, "offset"),
		om_table_column(&t, "size")};
	if (column[0] < 0 || column[1] < 0)
		return om_fail(c->session, OM_MALFORMED, "%s: there is no column %s", path, column[0] < 0 ? "name" : "offset");
	for (size_t k = 0; k < t.nrow; k++) {
		if (pool >= 0 && strcmp(om_table_field(&t, k, pool), om_table_field(&t, 0, pool)) != 0)
			return om_fail(c->session, OM_UNSUPPORTED, "%s: there are several pools: check the table with `onnxmem pack --check`",
				path);
		OM_TRY(read_row(c, &t, k, column, f));
	}
	return OM_OK;
}

/* ---- The plan. ---- */

static const struct form {
	const char *name, *source;
	bool has_file;
	om_status (*read)(om_cli *c, const char *path, om_foreign *f);
} forms[] = {
	{"onnxsim", "onnxsim's keys", false, read_onnxsim}, {"tflm", NULL, true, read_tflm}, {"csv", NULL, true, read_csv},
};

/* "onnxsim", "tflm:FILE" */
static om_status
find_form(om_cli *c, const struct form **form, const char **path)
{
	const char *text = om_cli_option(c, "plan-of");
	const size_t n = strcspn(text, ":");

	*path = text[n] ? text + n + 1 : NULL;
	for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
		if (strlen(forms[k].name) == n && memcmp(forms[k].name, text, n) == 0
		    && forms[k].has_file == (*path && **path)) {
			*form = &forms[k];
			return OM_OK;
		}
	return om_fail(c->session, OM_USAGE, "option --plan-of requires onnxsim, tflm:FILE or csv:FILE, not %s", text);
}

/* A request with the inputs and outputs in the arena that have a place in the other plan. */
static om_status
request(om_cli *c, const om_foreign *f)
{
	const om_block *graph = f->p->first;
	om_io_rule *rule = OM_NEWN(c->mem, om_io_rule, graph->nparam + graph->nresult);
	uint32_t n = 0;

	for (uint32_t k = 0; k < graph->nparam + graph->nresult; k++) {
		const om_value *v = k < graph->nparam ? graph->param[k] : graph->result[k - graph->nparam];
		bool is_known = !om_foreign_has_io(f, v);
		for (uint32_t i = 0; i < n && !is_known; i++)
			is_known = strcmp(rule[i].name, v->name) == 0;
		if (!is_known)
			rule[n++] = (om_io_rule){om_strdup(c->mem, v->name), OM_IO_ARENA};
	}
	c->request = (om_plan_request)OM_PLAN_REQUEST(.align = 1, .io_rule = rule, .nio_rule = n);
	return om_host_request(c->host, &c->request);
}

/* A plan that is made now, of a copy of the program; `c->prog` becomes what it was before. */
static om_status
plan_ours(om_cli *c, om_report_ours *to)
{
	om_prog *other = c->prog;

	c->prog = NULL;
	om_status st = om_cli_copy(c);
	if (st == OM_OK)
		st = om_cli_shapes(c, NULL, true);
	if (st == OM_OK)
		st = om_host_run(c->host, c->prog, om_target_pipeline(OM_TARGET_GENERIC));
	om_cli_progress_end(c);
	if (st == OM_OK)
		st = om_plan_verify(c->session, c->prog, c->prog->plan);
	if (st == OM_OK) {
		const om_plan_arena *a = c->prog->plan->arena;
		*to = (om_report_ours){a->bytes, a->lower_bound, om_plan_memory_of(c->prog, c->prog->plan).total,
			om_plan_arena_status(a)};
	}
	om_prog_free(c->prog);
	c->prog = other;
	return st;
}

om_status
om_cli_plan_of(om_cli *c, const char *path, om_report_ours *ours)
{
	const struct form *form = NULL;
	const char *file = NULL;

	OM_TRY(find_form(c, &form, &file));
	OM_TRY(om_cli_load(c, path));
	if (!c->model && !form->has_file)
		return om_fail(c->session, OM_USAGE, "%s is a text file: it contains no keys of %s", path, form->name);
	OM_TRY(om_cli_host(c));
	OM_TRY(om_cli_shapes(c, NULL, true));
	OM_TRY(om_host_run(c->host, c->prog, "inline,shapes"));
	om_foreign *f = om_foreign_new(c->prog, form->source ? form->source : file, c->mem);
	OM_TRY(form->read(c, form->has_file ? file : path, f));
	OM_TRY(request(c, f));
	if (ours)
		OM_TRY(plan_ours(c, ours));
	OM_TRY(om_host_run(c->host, c->prog, "liveness"));
	return om_foreign_plan(c->session, c->prog, f);
}
