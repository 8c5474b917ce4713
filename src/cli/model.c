/* SPDX-License-Identifier: Apache-2.0 */
/* From a model to a plan: load, bind shapes, run passes, verify. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output_file.h"
#include "cli/caches.h"
#include "cli/cli.h"
#include "cli/json_memory.h"
#include "ir/enum_text.h"
#include "ir/type.h"
#include "onnxmem/plan.h"
#include "onnxmem/tune.h"

enum { MAX_ALIGN = 1 << 20 };

static const om_opt shape_opts[] = {
	{"input-shape", "NAME:D,D,...", "shape of an input, also written 1x3x224x224; the name may be omitted\n"
		"                            if there is one input; repeatable"},
	{"overwrite-input-shape", "", NULL, "input-shape"},
	{"dim", "SYMBOL=N", "the value of a symbolic dim, or what it follows from: another dim, or an\n"
		"                            expression of dims, as total=past+new; repeatable"},
	{"dim-range", "SYMBOL=LO..HI[:STEP]", "the range of a symbolic dim: the offsets of the plan serve all sizes\n"
		"                            in it, or every STEP-th one, for models that are possible at\n"
		"                            multiples only; repeatable"},
	{"value", "NAME=V[,V...]", "the value of an input, which is a constant then: what follows from it is\n"
		"                            folded, branches that it decides are left out; or NAME:FILE.npy;\n"
		"                            repeatable"},
	{"default-dim", "N", "the value of all other unknown dims, which otherwise are an error"},
	OM_CLI_MAX_MEMORY,
	{0}
};

const om_opt_group om_shape_options = {"shapes", shape_opts};

/* ---- Loading. ---- */

static om_status
load_text(om_cli *c, const char *path)
{
	FILE *in = fopen(path, "r");

	if (!in)
		return om_fail(c->session, OM_IO, "%s: %s", path, strerror(errno));
	om_status st = om_parse(c->session, in, path, &c->loaded);
	fclose(in);
	return st;
}

static om_status
load(om_cli *c, const char *path)
{
	if (om_cli_ends_in(path, ".ir"))
		return load_text(c, path);
	OM_TRY(om_model_load(c->session, path, &c->model));
	return om_model_import(c->session, c->model, &c->loaded);
}

om_status
om_cli_load(om_cli *c, const char *path)
{
	const char *memory = om_cli_option(c, "max-memory");
	uint64_t bytes = 0;

	if (memory)
		OM_TRY(om_cli_size(c, "option --max-memory", memory, &bytes));
	om_session_load_limit(c->session, bytes);
	OM_TRY(load(c, path));
	OM_TRY(om_cli_op_rules(c));
	OM_TRY(om_cli_states(c));
	OM_TRY(om_cli_define_dims(c));
	return om_cli_copy(c);
}

om_status
om_cli_stored(om_cli *c, const char *path, const char *sidecar)
{
	OM_TRY(om_cli_load(c, path));
	if (!c->model)
		return om_fail(c->session, OM_USAGE, "%s is a text file: it contains no plan", path);
	OM_TRY(om_cli_host(c));
	return om_host_read_plan(c->host, c->model, c->prog, sidecar, NULL);
}

void
om_cli_unload(om_cli *c)
{
	om_prog_free(c->prog);
	om_prog_free(c->loaded);
	om_model_free(c->model);
	c->prog = c->loaded = NULL;
	c->model = NULL;
	c->nran = 0;
}

om_status
om_cli_copy(om_cli *c)
{
	return om_prog_bind(c->session, c->loaded, NULL, &c->prog);
}

/* ---- Shapes. ---- */

/* Dims are separated by commas or x, with or without brackets. */
static bool
read_shape(const char *text, om_shape *shape)
{
	char *end;

	shape->rank = 0;
	const char *at = *text == '[' ? text + 1 : text;
	while (*at && *at != ']') {
		errno = 0;
		const long long n = strtoll(at, &end, 10);
		if (end == at || errno || n < 0 || *at == '+' || *at == ' ' || shape->rank == OM_MAX_RANK)
			return false;
		shape->dim[shape->rank++] = n;
		if (*end && !strchr(",x]", *end))
			return false;
		at = end + (*end == ',' || *end == 'x');
		if (at > end && (!*at || *at == ']'))
			return false;
	}
	return *text == '[' ? at[0] == ']' && !at[1] : !*at;
}

/* The only input that the caller must provide; NULL if there are several. */
static const om_value *
only_input(const om_prog *p)
{
	const om_value *only = NULL;

	for (uint32_t k = 0; k < p->first->nparam; k++) {
		if (p->first->param[k]->is_overridable)
			continue;
		if (only)
			return NULL;
		only = p->first->param[k];
	}
	return only;
}

const om_value *
om_cli_input(const om_prog *p, const char *name)
{
	for (uint32_t k = 0; k < p->first->nparam; k++)
		if (strcmp(p->first->param[k]->name, name) == 0)
			return p->first->param[k];
	return NULL;
}

/* Names may contain colons: the last colon is the separator. */
static om_status
read_input(om_cli *c, const char *text, const char **name, om_shape *shape)
{
	const char *colon = strrchr(text, ':');

	*shape = (om_shape){0};
	*name = colon ? om_strndup(c->mem, text, (size_t)(colon - text)) : NULL;
	if (!read_shape(colon ? colon + 1 : text, shape))
		return om_fail(c->session, OM_USAGE, "--input-shape requires NAME:D,D,... such as x:1,3,224,224, not %s",
			text);
	if (!*name) {
		const om_value *only = only_input(c->prog);
		if (!only)
			return om_fail(c->session, OM_USAGE,
				"--input-shape %s: the model has several inputs; use NAME:%s", text, text);
		*name = only->name;
	}
	return OM_OK;
}

static om_status
bind_input(om_cli *c, om_binding *b, const char *text)
{
	om_shape shape;
	const char *name;

	OM_TRY(read_input(c, text, &name, &shape));
	return om_binding_shape(c->session, b, name, &shape);
}

static om_status
bind_dim(om_cli *c, om_binding *b, const char *text)
{
	const char *symbol;
	int64_t n;

	if (om_cli_is_definition(c, text))
		return OM_OK;
	OM_TRY(om_cli_dim(c, "dim", text, &symbol, &n));
	return om_binding_dim(c->session, b, symbol, n);
}

/* The size that an input of shape `is` gives a symbol; -1: none. */
static int64_t
size_in(const om_value *input, const om_shape *is, const char *symbol)
{
	const om_shape *s = &input->shape;

	for (int d = 0; d < s->rank && d < is->rank; d++)
		if (s->dim[d] < 0 && s->sym[d] && strcmp(s->sym[d], symbol) == 0)
			return is->dim[d];
	return -1;
}

/* The size of a symbol that inputs have; -1: none of them has it. */
static int64_t
size_of_symbol(const om_prog *p, const om_tensor *in, const char *symbol)
{
	int64_t n = -1;

	for (uint32_t k = 0; in && k < p->first->nparam && n < 0; k++)
		n = in[k].type != OM_UNDEFINED ? size_in(p->first->param[k], &in[k].shape, symbol) : -1;
	return n;
}

om_status
om_cli_given_size(om_cli *c, const char *symbol, int64_t *n)
{
	const char *text, *name;
	om_shape shape;
	int64_t is;

	*n = -1;
	for (size_t at = 0; (text = om_cli_next(c, "dim", &at));) {
		if (om_cli_is_definition(c, text))
			continue;
		OM_TRY(om_cli_dim(c, "dim", text, &name, &is));
		*n = strcmp(name, symbol) == 0 ? is : *n;
	}
	for (size_t at = 0; (text = om_cli_next(c, "input-shape", &at)) && *n < 0;) {
		OM_TRY(read_input(c, text, &name, &shape));
		const om_value *input = om_cli_input(c->prog, name);
		*n = input ? size_in(input, &shape, symbol) : -1;
	}
	return OM_OK;
}

/* The size that a range is bound to: a run may have one, a plan for a range has its end. */
static om_status
find_size(om_cli *c, const om_dim_range *r, const om_tensor *in, int64_t *n)
{
	OM_TRY(om_cli_given_size(c, r->symbol, n));
	if (*n >= 0 && !in)
		return om_fail(c->session, OM_USAGE, "%s has the range %s, and is %lld by --dim or --input-shape: give one of both",
			r->symbol, om_dim_range_text(c->mem, r), (long long)*n);
	if (*n < 0)
		*n = size_of_symbol(c->prog, in, r->symbol);
	return OM_OK;
}

/* A range is planned for its end, unless inputs have a size already. */
static om_status
bind_ranges(om_cli *c, om_binding *b, const om_tensor *in)
{
	OM_TRY(om_cli_ranges(c));
	for (uint32_t k = 0; k < c->nrange; k++) {
		om_dim_range *r = &c->range[k];
		int64_t n;
		OM_TRY(find_size(c, r, in, &n));
		if (n >= 0 && !om_dim_range_has(r, n))
			return om_fail(c->session, OM_SHAPE, "%s is %lld, which is not in the range %s", r->symbol, (long long)n,
				om_dim_range_text(c->mem, r));
		r->high = n >= 0 ? n : r->high;
		OM_TRY(om_binding_dim(c->session, b, r->symbol, r->high));
	}
	return OM_OK;
}

om_status
om_cli_bind_tensors(om_cli *c, const om_prog *p, om_binding *b, const om_tensor *in)
{
	for (uint32_t k = 0; in && k < p->first->nparam; k++)
		if (in[k].type != OM_UNDEFINED && p->first->param[k]->type.kind == OM_TENSOR)
			OM_TRY(om_binding_shape(c->session, b, p->first->param[k]->name, &in[k].shape));
	return OM_OK;
}

/* Bind the inputs to the shapes of the plan in the model; if it cannot be read, nothing is bound. */
static om_status
bind_plan(om_cli *c, om_binding *b)
{
	om_prog *planned;
	om_status st = OM_OK;

	OM_TRY(om_cli_host(c));
	OM_TRY(om_prog_bind(c->session, c->loaded, NULL, &planned));
	const bool is_read = om_host_read_plan(c->host, c->model, planned, NULL, NULL) == OM_OK;
	for (uint32_t k = 0; is_read && k < planned->first->nparam && st == OM_OK; k++) {
		const om_value *v = planned->first->param[k];
		if (v->is_const && v->data)
			st = om_binding_value(c->session, b, v->name, v->data);
		else if (v->type.kind == OM_TENSOR) {
			const om_shape shape = om_input_shape(planned, k);
			st = om_binding_shape(c->session, b, v->name, &shape);
		}
	}
	om_prog_free(planned);
	return st;
}

static bool
gives_shapes(const om_cli *c)
{
	for (const om_opt *o = shape_opts; o->name; o++)
		if (om_cli_has(c, o->name))
			return true;
	return false;
}

om_status
om_cli_sizes(om_cli *c, const om_tensor *in, om_binding *b)
{
	const char *text;

	OM_TRY(om_cli_bind_tensors(c, c->prog, b, in));
	for (size_t at = 0; (text = om_cli_next(c, "dim", &at));)
		OM_TRY(bind_dim(c, b, text));
	for (size_t at = 0; (text = om_cli_next(c, "input-shape", &at));)
		OM_TRY(bind_input(c, b, text));
	return om_cli_values(c, b);
}

/* Ranges, and what no option gives. */
static om_status
bind_rest(om_cli *c, om_binding *b, const om_tensor *in, bool all)
{
	uint64_t rest = 0;

	OM_TRY(bind_ranges(c, b, in));
	OM_TRY(om_cli_number(c, "default-dim", 1, INT32_MAX, &rest));
	if (rest)
		om_binding_rest(b, (int64_t)rest);
	return all && !rest ? om_cli_open_dims(c, b) : OM_OK;
}

om_status
om_cli_shapes(om_cli *c, const om_tensor *in, bool all)
{
	om_binding *b = om_binding_new();
	om_status st = b ? om_cli_sizes(c, in, b) : OM_MEMORY;

	if (st == OM_OK && !in && all && c->model && om_model_has_plan(c->model) && !gives_shapes(c))
		st = bind_plan(c, b);
	else if (st == OM_OK && !in && all)
		st = om_cli_step_dims(c, b);
	if (st == OM_OK)
		st = bind_rest(c, b, in, all);
	if (st == OM_OK)
		st = om_bind(c->session, c->prog, b);
	om_binding_free(b);
	return st;
}

/* ---- Passes. ---- */

static om_status
set_alignment(om_cli *c)
{
	uint64_t align = 64;

	OM_TRY(om_cli_number(c, "align", 1, MAX_ALIGN, &align));
	if (align & (align - 1))
		return om_fail(c->session, OM_USAGE, "option --align requires a power of two, not %llu",
			(unsigned long long)align);
	c->request.align = align;
	return OM_OK;
}

static om_status
set_target(om_cli *c)
{
	const char *name = om_cli_option(c, "target");

	c->request.target = c->cmd->target;
	if (name && !om_target_find(name, &c->request.target))
		return om_fail(c->session, OM_USAGE, "option --target requires generic or cpu, not %s", name);
	return OM_OK;
}

om_status
om_cli_threads(om_cli *c, uint32_t *out)
{
	uint64_t n = 0;

	OM_TRY(om_cli_number(c, "threads", 1, UINT32_MAX, &n));
	return om_threads(c->session, (uint32_t)n, out);
}

/* Commands that only plan make the same plan on every machine. */
static om_status
set_threads(om_cli *c)
{
	c->request.precise = om_cli_has(c, "precise");
	c->request.threads = 1;
	return c->cmd->target == OM_TARGET_CPU || om_cli_has(c, "threads") ? om_cli_threads(c, &c->request.threads) : OM_OK;
}

om_status
om_cli_settings(om_cli *c)
{
	c->request = (om_plan_request)OM_PLAN_REQUEST(.keep_states = c->cmd->keeps_states);
	OM_TRY(set_alignment(c));
	OM_TRY(set_threads(c));
	OM_TRY(set_target(c));
	OM_TRY(om_cli_plan_request(c));
	OM_TRY(om_cli_host(c));
	return om_host_request(c->host, &c->request);
}

om_status
om_cli_limits(om_cli *c)
{
	c->prog->plan->range = c->range;
	c->prog->plan->nrange = c->nrange;
	return om_plan_limits(c->session, c->prog, c->prog->plan, c->budget, c->request.total);
}

/* The pipeline of the target, with the choices that `tune` left in the folder of --cache. */
static om_status
tuned_pipeline(om_cli *c, const om_flag_set *flag, size_t nflag, const char **pipeline)
{
	const char *folder = om_cli_option(c, "cache");

	OM_TRY(om_host_pipeline_with(c->host, c->loaded, c->prog, c->range, c->nrange, flag, nflag, pipeline));
	if (!folder || c->request.target != OM_TARGET_CPU || c->request.precise || c->nrange)
		return OM_OK;
	const char *choices = om_tuned_choices(c->session, folder, c->request.threads, c->mem);
	if (*choices)
		om_info(c->session, "layers are computed as `onnxmem tune` has it in %s", folder);
	return om_host_choose(c->host, choices, pipeline);
}

/* Passes that a command adds come before the first one that plans. */
static om_status
add_before_schedule(om_cli *c, const char **pipeline)
{
	const char *all = *pipeline, *at = strstr(all, "schedule");

	while (at && at != all && at[-1] != ',')
		at = strstr(at + 1, "schedule");
	if (c->before_schedule && !at)
		return om_fail(c->session, OM_USAGE, "a pipeline of ranks requires the pass schedule, which the passes %s do not have", all);
	if (c->before_schedule)
		*pipeline = om_printf(c->mem, "%.*s%s,%s", (int)(at - all), all, c->before_schedule, at);
	return OM_OK;
}

om_status
om_cli_passes(om_cli *c, const char *pipeline)
{
	const char *requested = om_cli_option(c, "passes");
	om_flag_set *flag;
	size_t nflag;

	OM_TRY(om_cli_settings(c));
	OM_TRY(om_cli_pass_flags(c, &flag, &nflag));
	if (requested)
		pipeline = requested;
	else if (!pipeline && c->device)
		pipeline = om_host_decided(c->host, c->prog, om_default_pipeline());
	if (pipeline)
		OM_TRY(om_host_flags(c->host, flag, nflag, &pipeline));
	else
		OM_TRY(tuned_pipeline(c, flag, nflag, &pipeline));
	OM_TRY(add_before_schedule(c, &pipeline));
	om_status st = om_host_run(c->host, c->prog, pipeline);
	om_cli_progress_end(c);
	OM_TRY(st);
	return c->prog->has & OM_HAS_PLAN ? om_cli_limits(c) : OM_OK;
}

/* Is it the first op with this unknown operator? */
static bool
is_first_of_kind(const om_prog *p, const om_op *op)
{
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *at = b->first; at; at = at->next)
			if (!at->opdef && !at->call && strcmp(at->type, op->type) == 0 && strcmp(at->domain, op->domain) == 0)
				return at == op;
	return true;
}

/* An unknown operator can be planned if the file declares the shapes of its outputs. */
static om_status
check_opaque(om_cli *c, const om_op *op)
{
	if (op->opdef || op->call)
		return OM_OK;
	if (is_first_of_kind(c->prog, op))
		om_warn(c->session, "operator %s of domain %s is not known: its outputs have the declared shapes and share no memory "
			"with its inputs, and it is planned without scratch", op->type, *op->domain ? op->domain : "ai.onnx");
	for (uint32_t k = 0; k < op->nout; k++) {
		const om_value *v = op->out[k];
		if (v && v->type.kind == OM_TENSOR && !om_shape_is_known(&v->shape))
			return om_op_fail(c->session, OM_UNSUPPORTED, op,
				"operator %s of domain %s is not known in version %d, and the shape of its output %s "
				"is not declared", op->type, *op->domain ? op->domain : "ai.onnx", op->version, v->name);
	}
	return OM_OK;
}

om_status
om_cli_plan(om_cli *c, const char *path)
{
	OM_TRY(om_cli_load(c, path));
	return om_cli_plan_copy(c);
}

om_status
om_cli_make_plan(om_cli *c)
{
	OM_TRY(om_cli_shapes(c, NULL, true));
	OM_TRY(om_cli_note_ranges(c, om_cli_passes(c, NULL)));
	for (const om_block *b = c->prog->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			OM_TRY(check_opaque(c, op));
	if (!(c->prog->has & OM_HAS_PLAN))
		return om_fail(c->session, OM_USAGE, "the passes %s make no plan", om_cli_option(c, "passes"));
	return OM_OK;
}

om_status
om_cli_plan_copy(om_cli *c)
{
	OM_TRY(om_cli_make_plan(c));
	return om_cli_check_plan(c);
}

om_status
om_cli_check_plan(om_cli *c)
{
	OM_TRY(om_plan_verify(c->session, c->prog, c->prog->plan));
	return c->nrange ? om_host_find_formulas(c->host, c->loaded, c->prog) : OM_OK;
}

/* ---- Output. ---- */

om_status
om_cli_own_path(om_cli *c, const char *in, const char *out)
{
	struct stat a, b;

	if (strcmp(in, "-") != 0 && stat(in, &a) == 0 && stat(out, &b) == 0
	    && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return om_fail(c->session, OM_USAGE, "%s is the input; the output needs its own path", out);
	return OM_OK;
}

om_status
om_cli_check_outputs(om_cli *c)
{
	const size_t k = c->cmd->output_arg;

	for (size_t n = 0; n < c->nset; n++)
		if (c->set[n].opt->writes)
			OM_TRY(om_output_check(c->session, c->set[n].value, c->set[n].opt->writes == OM_WRITES_FILE_OR_FOLDER));
	return k && c->narg >= k ? om_output_check(c->session, c->arg[k - 1], false) : OM_OK;
}

struct writing {
	om_cli *c;
	om_writer *write;
	const void *arg;
};

static om_status
call_writer(om_session *s, FILE *to, void *arg)
{
	const struct writing *w = arg;

	return om_cli_json_status(s, w->write(w->c, to, w->arg));
}

om_status
om_cli_write(om_cli *c, const char *path, om_writer *write, const void *arg)
{
	if (c->narg)
		OM_TRY(om_cli_own_path(c, c->arg[0], path));
	return om_output_write(c->session, path, call_writer, &(struct writing){c, write, arg});
}

om_status
om_cli_write_forms(om_cli *c, const om_form *form, const void *arg, bool *taken)
{
	*taken = false;
	for (; form->option; form++) {
		const char *path = om_cli_option(c, form->option);
		if (!path)
			continue;
		*taken = *taken || strcmp(path, "-") == 0;
		OM_TRY(om_cli_write(c, path, form->write, arg));
	}
	return OM_OK;
}

om_status
om_cli_failed(om_cli *c, om_status st)
{
	printf("FAILED %s\n", om_message(c->session));
	c->told = true;
	return st;
}
