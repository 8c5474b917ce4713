/* SPDX-License-Identifier: Apache-2.0 */
/* set: several models that run one after the other in one arena. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/row_blocks.h"
#include "base/sizes.h"
#include "cli/data.h"
#include "cli/npy.h"
#include "onnxmem/set.h"
#include "report/report.h"

struct command {
	om_cli *c;
	om_set *set;
	const om_set_plan *plan;
	om_tolerance tol;
};

/* ---- Plan and report. ---- */

static om_status
write_text(om_cli *c, FILE *to, const void *arg)
{
	return fputs(arg, to) < 0 || fputc('\n', to) < 0 ? om_fail(c->session, OM_IO, "writing the plan failed") : OM_OK;
}

static void
tell_sum(const struct command *x)
{
	uint64_t sum = 0, largest = 0;
	char a[32], b[32], l[32];

	for (uint32_t k = 0; k < x->plan->npart; k++) {
		sum += x->plan->part[k].alone;
		largest = x->plan->part[k].bytes > largest ? x->plan->part[k].bytes : largest;
	}
	largest = om_size_rounded_up(largest, x->plan->align);
	printf("arena of the set: %" PRIu64 " bytes (%s)", x->plan->bytes, om_bytes_text(x->plan->bytes, a));
	if (x->plan->lower_bound)
		printf(x->plan->lower_bound == x->plan->bytes ? ", no packing is smaller" : ", lower bound %" PRIu64, x->plan->lower_bound);
	printf("\nlargest part and all shared values: %" PRIu64 " bytes (%s); the parts each on its own: %" PRIu64 " bytes (%s)\n",
		largest + x->plan->crossing, om_bytes_text(largest + x->plan->crossing, l), sum, om_bytes_text(sum, b));
}

static void
tell_weights(const struct command *x)
{
	uint64_t equal = 0;
	char a[32];

	for (uint32_t k = 0; k < x->plan->npart; k++)
		equal += x->plan->part[k].equal;
	printf("constants that several parts have: %" PRIu64 " bytes (%s) are held once\n", equal, om_bytes_text(equal, a));
}

static void
report(const struct command *x)
{
	const om_set_plan *plan = x->plan;
	om_arena *mem = x->c->mem;

	printf("%-20s  %6s  %12s  %12s  %12s  %12s\n", "part", "sizes", "arena", "offset", "weights", "equal");
	for (uint32_t k = 0; k < plan->npart; k++) {
		const om_set_part *p = &plan->part[k];
		printf("%-20s  %6" PRIu32 "  %12" PRIu64 "  %12" PRIu64 "  %12" PRIu64 "  %12" PRIu64 "\n", om_clean_text(mem, p->name), p->nsize,
			p->bytes, p->offset, p->weights, p->equal);
	}
	printf("\n%-44s  %7s  %12s  %12s  %s\n", "shared value", "buffers", "bytes", "offset", "intact");
	for (uint32_t k = 0; k < plan->nvalue; k++) {
		const om_set_value *v = &plan->value[k];
		printf("%-44s  %7" PRIu32 "  %12" PRIu64 "  %12" PRIu64 "  from %s to %s\n", om_clean_text(mem, v->name), v->nbuffer, v->bytes,
			v->offset[0], om_clean_text(mem, plan->part[v->first].name), om_clean_text(mem, plan->part[v->last].name));
	}
	printf("\n");
	tell_sum(x);
	tell_weights(x);
}

static om_status
write_plan(const struct command *x)
{
	char *json;

	OM_TRY(om_cli_own_path(x->c, x->c->arg[1], x->c->arg[2]));
	OM_TRY(om_set_json(x->set, &json));
	const om_status st = om_cli_write(x->c, x->c->arg[2], write_text, json);
	free(json);
	return st;
}

/* ---- Runs. ---- */

/* A run of a part: "PART=PATH", or "PART". */
struct step {
	const char *text, *name, *path;  /* no path: NULL */
	uint32_t part;
	uint64_t number;
};

static om_status
read_step(const struct command *x, const char *text, struct step *s)
{
	const char *equals = strchr(text, '=');

	s->text = text;
	s->path = equals ? equals + 1 : NULL;
	s->name = equals ? om_strndup(x->c->mem, text, (size_t)(equals - text)) : text;
	return om_set_find(x->set, s->name, &s->part);
}

static bool
is_shared(const struct command *x, uint32_t part, uint32_t input)
{
	for (uint32_t k = 0; k < x->plan->nvalue; k++)
		for (uint32_t e = 0; e < x->plan->value[k].nend; e++) {
			const om_set_end *end = &x->plan->value[k].end[e];
			if (end->part == part && !end->is_output && end->index == input)
				return true;
		}
	return false;
}

/* What the file has of the inputs of the part; a shared value is taken where it has none yet. */
static om_status
give_data(const struct command *x, const struct step *s)
{
	const om_block *graph = x->plan->part[s->part].prog->first;
	om_npz_entry *entry;
	size_t n;

	if (!s->path)
		return OM_OK;
	OM_TRY(om_npz_load(x->c->session, s->path, x->c->mem, &entry, &n));
	for (size_t i = 0; i < n; i++) {
		uint32_t k = 0;
		while (k < graph->nparam && strcmp(graph->param[k]->name, entry[i].name) != 0)
			k++;
		if (k == graph->nparam)
			return om_fail(x->c->session, OM_USAGE, "%s: part %s has no input called %s", s->path, s->name, entry[i].name);
		if (om_set_lacks(x->set, s->part, k) || !is_shared(x, s->part, k))
			OM_TRY(om_set_input(x->set, s->part, k, &entry[i].t));
		else
			om_info(x->c->session, "%s: the set has a value of %s, which is not read", s->path, entry[i].name);
	}
	return OM_OK;
}

/* A cache without its spare rows. */
static om_tensor
dense(const struct command *x, const om_tensor *t, int axis, int64_t rows)
{
	const om_row_blocks b = om_row_blocks_of(t->type, &t->shape, axis);
	om_tensor out = *t;

	out.shape.dim[axis] = rows;
	out.data = om_allocn(x->c->mem, b.n * b.row * (size_t)rows + 1, 1);
	om_row_blocks_move(&b, rows, out.data, rows, t->data, t->shape.dim[axis]);
	return out;
}

static om_tensor
result(const struct command *x, const struct step *s, uint32_t k)
{
	int axis = 0;
	const int64_t rows = om_set_result_rows(x->set, s->part, k, &axis);
	const om_tensor *t = om_set_result(x->set, s->part, k);

	return rows >= 0 ? dense(x, t, axis, rows) : *t;
}

static const char *
file_of(const struct command *x, const struct step *s, const char *folder)
{
	return om_printf(x->c->mem, "%s/%" PRIu64 "-%s.npz", folder, s->number, s->name);
}

static om_status
save(const struct command *x, const struct step *s, const char *folder)
{
	const om_block *graph = x->plan->part[s->part].prog->first;
	om_npz_entry *entry = OM_NEWN(x->c->mem, om_npz_entry, graph->nresult);

	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return om_fail(x->c->session, OM_IO, "%s: %s", folder, strerror(errno));
	for (uint32_t k = 0; k < graph->nresult; k++)
		entry[k] = (om_npz_entry){graph->result[k]->name, result(x, s, k)};
	return om_npz_save(x->c->session, file_of(x, s, folder), entry, graph->nresult, false);
}

static om_status
compare(const struct command *x, const struct step *s, const char *folder)
{
	const om_block *graph = x->plan->part[s->part].prog->first;
	const char *path = file_of(x, s, folder);
	om_npz_entry *entry;
	size_t n;
	uint32_t found = 0;

	OM_TRY(om_npz_load(x->c->session, path, x->c->mem, &entry, &n));
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < graph->nresult; k++) {
			if (strcmp(graph->result[k]->name, entry[i].name) != 0)
				continue;
			const om_tensor got = result(x, s, k);
			OM_TRY(om_data_compare(x->c, graph->result[k]->name, &graph->result[k]->type, &got, &entry[i].t, x->tol));
			found++;
		}
	if (!found)
		return om_fail(x->c->session, OM_IO, "%s has no output of part %s", path, s->name);
	printf("  PASSED %" PRIu32 " of %" PRIu32 " outputs agree\n", found, graph->nresult);
	return OM_OK;
}

static om_status
run_step(const struct command *x, const struct step *s)
{
	const char *folder;

	OM_TRY(give_data(x, s));
	OM_TRY(om_set_run(x->set, s->part));
	printf("%s: copied %" PRIu64 " bytes\n", om_clean_text(x->c->mem, s->text), om_set_copied(x->set));
	if ((folder = om_cli_option(x->c, "save")))
		OM_TRY(save(x, s, folder));
	if ((folder = om_cli_option(x->c, "expect")))
		OM_TRY(compare(x, s, folder));
	return OM_OK;
}

static om_status
run_steps(const struct command *x)
{
	om_exec_options o = OM_EXEC_OPTIONS(.poison = om_cli_has(x->c, "poison"));
	const char *text;
	uint64_t number = 0;

	OM_TRY(om_cli_run_limits(x->c, &o));
	OM_TRY(om_set_start(x->set, &o));
	for (size_t at = 0; (text = om_cli_next(x->c, "run", &at)); number++) {
		struct step s = {.number = number};
		OM_TRY(read_step(x, text, &s));
		OM_TRY(run_step(x, &s));
	}
	if (!number)
		return om_fail(x->c->session, OM_USAGE, "--run PART=FILE.npz is missing: which parts run, in which order");
	tell_sum(x);
	return OM_OK;
}

/* ---- All. ---- */

static om_status
load(struct command *x)
{
	om_cli *c = x->c;
	const char *pipeline = NULL;

	OM_TRY(om_cli_host(c));
	OM_TRY(om_cli_settings(c));
	pipeline = om_request_pipeline(&c->request);
	OM_TRY(om_cli_pipeline(c, &pipeline));
	return om_set_load(c->host, c->arg[1], pipeline, &x->set);
}

/* Make the plan, or read and verify it. */
static om_status
get_plan(struct command *x, bool reads)
{
	OM_TRY(reads ? om_set_read_plan(x->set, x->c->arg[2]) : om_set_make_plan(x->set));
	x->plan = om_set_get_plan(x->set);
	return reads ? om_set_verify(x->set) : OM_OK;
}

static om_status
act(struct command *x)
{
	om_cli *c = x->c;
	const bool plans = strcmp(c->arg[0], "plan") == 0, verifies = strcmp(c->arg[0], "verify") == 0, has_file = c->narg == 3;

	if (!plans && !verifies && strcmp(c->arg[0], "report") != 0 && strcmp(c->arg[0], "run") != 0)
		return om_fail(c->session, OM_USAGE, "set %s: not one of plan, verify, report and run", c->arg[0]);
	if ((plans || verifies) && !has_file)
		return om_fail(c->session, OM_USAGE, "set %s: the file of the plan is missing", c->arg[0]);
	OM_TRY(om_cli_float(c, "rtol", &x->tol.relative));
	OM_TRY(om_cli_float(c, "atol", &x->tol.absolute));
	OM_TRY(load(x));
	OM_TRY(get_plan(x, has_file && !plans));
	if (strcmp(c->arg[0], "run") == 0)
		return run_steps(x);
	if (plans)
		OM_TRY(write_plan(x));
	if (!verifies)
		report(x);
	else
		printf("PASSED %" PRIu32 " parts, %" PRIu32 " shared values, arena %" PRIu64 " bytes\n", x->plan->npart, x->plan->nvalue, x->plan->bytes);
	return OM_OK;
}

static om_status
run(om_cli *c)
{
	struct command x = {.c = c, .tol = {1e-3, 1e-5}};
	const om_status st = act(&x);

	if (st && (strcmp(c->arg[0], "verify") == 0 || om_cli_has(c, "expect")))
		om_cli_failed(c, st);
	om_set_free(x.set);
	return st;
}

static const om_opt opts[] = {
	{"run", "PART=FILE", "run a part, with inputs from a .npz file; a shared value of it is read where there is\n"
		"                            none yet; repeatable: parts run in the order of these options"},
	{"save", "DIR", "write the outputs of each run to DIR/NUMBER-PART.npz, the first NUMBER is 0",
		.writes = OM_WRITES_FILE_OR_FOLDER},
	{"expect", "DIR", "compare them with such files; the last line is FAILED if one differs"},
	{"rtol", "X", "relative tolerance of that comparison [1e-3]"},
	{"atol", "X", "absolute tolerance [1e-5]"},
	{"poison", NULL, "overwrite memory that is not in use with a pattern, and check that it stays"},
	OM_CLI_RUN_LIMITS,
	{0}
};

static const om_opt_group group = {"running", opts};

const om_cmd om_set_cmd = {
	.name = "set", .usage = "plan|verify|report|run MANIFEST [PLAN.json] [options]",
	.brief = "plan and run several models in one arena",
	.text = "MANIFEST lists models that run one after the other, the values that they share, and their order: an encoder, a\n"
		"decoder and its step, or one file with several sizes.  The arena of the set is that of its largest part and what\n"
		"is shared; constants that are equal are held once.  plan writes PLAN.json; verify, report and run read it.",
	.target = OM_TARGET_CPU, .min_args = 2, .max_args = 3, .group = {&group, &om_pass_options}, .run = run,
};
