/* SPDX-License-Identifier: Apache-2.0 */
/* Plan requirements given by options: arenas, order, time limit. */
#include <config.h>

#include <string.h>

#include "cli/cli.h"

enum { MAX_ALIGN = 1 << 20 };

/* ---- Arenas. ---- */

static bool
starts_with(const char *text, const char *start, const char **rest)
{
	const size_t n = strlen(start);

	if (strncmp(text, start, n) != 0)
		return false;
	*rest = text + n;
	return true;
}

static om_status
read_align(om_cli *c, const char *arena, const char *text, uint64_t *align)
{
	char *what = om_printf(c->mem, "align of --arena %s", arena);

	OM_TRY(om_cli_size(c, what, text, align));
	if (*align == 0 || *align & (*align - 1) || *align > MAX_ALIGN)
		return om_fail(c->session, OM_USAGE, "%s requires a power of two up to %d, not %s", what, MAX_ALIGN, text);
	return OM_OK;
}

/* "align=N" or "device=cpu". */
static om_status
read_word(om_cli *c, om_arena_spec *want, const char *word)
{
	const char *rest;

	if (starts_with(word, "align=", &rest))
		return read_align(c, want->name, rest, &want->align);
	if (!starts_with(word, "device=", &rest))
		return om_fail(c->session, OM_USAGE, "--arena %s: the options are align=N and device=cpu, not %s", want->name, word);
	if (strcmp(rest, "cpu") != 0)
		return om_fail(c->session, OM_USAGE, "--arena %s: unknown device %s; this version supports cpu", want->name,
			rest);
	return OM_OK;
}

/* NAME[=SIZE][,align=N][,device=cpu] */
static om_status
read_arena(om_cli *c, const char *text, om_arena_spec *want)
{
	const size_t name = strcspn(text, "=,");
	const char *at = text + name;

	*want = (om_arena_spec){.name = om_strndup(c->mem, text, name), .device = "cpu"};
	if (name == 0)
		return om_fail(c->session, OM_USAGE, "--arena requires NAME=SIZE[,align=N][,device=cpu], not %s", text);
	if (*at == '=') {
		const size_t n = strcspn(++at, ",");
		const char *size = om_strndup(c->mem, at, n);
		OM_TRY(om_cli_size(c, om_printf(c->mem, "--arena %s", want->name), size, &want->limit));
		if (want->limit == 0)
			return om_fail(c->session, OM_USAGE, "--arena %s: there is nothing to place in 0 bytes", want->name);
		at += n;
	}
	while (*at == ',') {
		const size_t n = strcspn(++at, ",");
		OM_TRY(read_word(c, want, om_strndup(c->mem, at, n)));
		at += n;
	}
	return OM_OK;
}

/* An arena after one without a limit would never be used. */
static om_status
check_arenas(om_cli *c, const om_arena_spec *want, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < k; i++)
			if (strcmp(want[i].name, want[k].name) == 0)
				return om_fail(c->session, OM_USAGE, "--arena %s is given twice", want[k].name);
		if (k + 1 < n && want[k].limit == 0)
			return om_fail(c->session, OM_USAGE, "--arena %s requires a size: only the last arena may have none",
				want[k].name);
	}
	return OM_OK;
}

/* ---- Inputs and outputs. ---- */

/* ---- Devices. ---- */

/* NAME[:OPTION...]: the options, with commas between them, are NULL if there are none. */
static void
read_device(om_cli *c, const char *text, size_t n)
{
	char *name = om_strndup(c->mem, text, n), *options = strchr(name, ':');

	if (options)
		*options++ = 0;
	for (char *at = options; at && (at = strchr(at, ':'));)
		*at = ',';
	c->device = name;
	c->device_options = options;
}

/* A run takes the first device that there is; a plan is for the first one. */
static om_status
want_device(om_cli *c)
{
	const char *at = om_cli_option(c, "device");
	const bool runs = strcmp(c->cmd->name, "run") == 0 || strcmp(c->cmd->name, "train") == 0;

	c->device = c->device_options = NULL;
	if (!at && om_cli_has(c, "place"))
		return om_fail(c->session, OM_USAGE, "option --place requires --device");
	if (at && c->cmd->target == OM_TARGET_CPU && !runs)
		return om_fail(c->session, OM_USAGE, "%s has no option --device: it runs on the processor", c->cmd->name);
	if (at)
		c->request.target = OM_TARGET_CPU;
	while (at && *at) {
		const size_t n = strcspn(at, ",");
		read_device(c, at, n);
		at += n + (at[n] == ',');
		if (strcmp(c->device, "cpu") == 0) {
			c->device = NULL;
			return OM_OK;
		}
		const om_status st = runs ? om_device_try(c->session, c->device, c->device_options) : OM_OK;
		if (st == OM_OK || !*at)
			return st;
		om_warn(c->session, "%s", om_message(c->session));
	}
	return OM_OK;
}

static bool
read_where(const char *text, om_io *where)
{
	static const char *const names[] = {[OM_IO_CALLER] = "caller", [OM_IO_ARENA] = "arena", [OM_IO_KEEP] = "keep"};

	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (strcmp(text, names[k]) == 0) {
			*where = (om_io)k;
			return true;
		}
	return false;
}

static bool
is_io(const om_prog *p, const char *name)
{
	if (om_cli_input(p, name))
		return true;
	for (uint32_t k = 0; k < p->first->nresult; k++)
		if (strcmp(p->first->result[k]->name, name) == 0)
			return true;
	return false;
}

/* WHERE or NAME=WHERE.  Names may contain =: the last one is the separator. */
static om_status
read_io(om_cli *c, const char *text, om_io_rule *rule, uint32_t *n)
{
	const char *equals = strrchr(text, '=');
	om_io_rule one = {.name = equals ? om_strndup(c->mem, text, (size_t)(equals - text)) : NULL};

	if (equals == text || !read_where(equals ? equals + 1 : text, &one.where))
		return om_fail(c->session, OM_USAGE, "option --io requires caller, arena, keep, or NAME= one of these, not %s", text);
	if (!one.name) {
		c->request.io = one.where;
		return OM_OK;
	}
	if (c->prog && !is_io(c->prog, one.name))
		return om_fail(c->session, OM_USAGE, "--io %s: the model has no input or output called %s", text, one.name);
	for (uint32_t k = 0; k < *n; k++)
		if (strcmp(rule[k].name, one.name) == 0)
			return om_fail(c->session, OM_USAGE, "--io %s is given twice", one.name);
	rule[(*n)++] = one;
	return OM_OK;
}

static om_status
want_io(om_cli *c)
{
	om_io_rule *rule = OM_NEWN(c->mem, om_io_rule, c->nset + 1);
	const char *text;

	for (size_t at = 0; (text = om_cli_next(c, "io", &at));)
		OM_TRY(read_io(c, text, rule, &c->request.nio_rule));
	c->request.io_rule = rule;
	return OM_OK;
}

/* ---- Budgets. ---- */

static om_status
want_budget(om_cli *c)
{
	const char *budget = om_cli_option(c, "budget"), *of = om_cli_option(c, "budget-of");
	uint64_t bytes = 0;

	if (of && strcmp(of, "total") != 0 && strcmp(of, "arena") != 0)
		return om_fail(c->session, OM_USAGE, "option --budget-of requires total or arena, not %s", of);
	if (of && !budget)
		return om_fail(c->session, OM_USAGE, "option --budget-of requires --budget");
	if (!budget)
		return OM_OK;
	OM_TRY(om_cli_size(c, "option --budget", budget, &bytes));
	if (bytes == 0)
		return om_fail(c->session, OM_USAGE, "option --budget requires a size above 0");
	if (of && strcmp(of, "arena") == 0)
		c->budget = bytes;
	else
		c->request.total = bytes;
	return OM_OK;
}

/* The alignment of an arena, where it is given, wins over the default; --align is the least that it may be. */
static void
set_arena_alignment(om_cli *c, om_arena_spec *want, uint32_t n)
{
	const uint64_t usual = c->request.align;
	uint64_t least = n ? UINT64_MAX : usual;

	for (uint32_t k = 0; k < n; k++) {
		want[k].align = want[k].align ? want[k].align : usual;
		least = want[k].align < least ? want[k].align : least;
	}
	if (!om_cli_has(c, "align"))
		c->request.align = least;
}

enum { DEVICE_ALIGN = 256 };

/* A budget of the arenas without --arena is the limit of the only arena. */
static om_status
want_arenas(om_cli *c)
{
	const char *text;
	uint32_t n = 0;

	om_arena_spec *want = OM_NEWN(c->mem, om_arena_spec, c->nset + 1);
	for (size_t at = 0; (text = om_cli_next(c, "arena", &at));)
		OM_TRY(read_arena(c, text, &want[n++]));
	OM_TRY(check_arenas(c, want, n));
	set_arena_alignment(c, want, n);
	if (n && c->device)
		return om_fail(c->session, OM_USAGE, "a plan for a device has an arena of the processor and one of the device: leave out --arena");
	if (c->device) {
		want = OM_NEWN(c->mem, om_arena_spec, 2);
		want[n++] = (om_arena_spec){.name = "host", .device = "cpu", .limit = c->budget};
		want[n++] = (om_arena_spec){.name = c->device, .device = c->device, .align = DEVICE_ALIGN};
	}
	if (n == 0 && c->budget)
		want[n++] = (om_arena_spec){.name = "arena", .device = "cpu", .limit = c->budget};
	c->request.arena = want;
	c->request.narena = n;
	return OM_OK;
}

/* TENSOR=ARENA.  Names may contain =: the last one is the separator. */
static om_status
read_pin(om_cli *c, const char *text, om_pin *pin, uint32_t *n)
{
	const char *equals = strrchr(text, '=');

	if (!equals || equals == text || !equals[1])
		return om_fail(c->session, OM_USAGE, "option --pin requires TENSOR=ARENA, not %s", text);
	pin[*n] = (om_pin){om_strndup(c->mem, text, (size_t)(equals - text)), equals + 1};
	for (uint32_t k = 0; k < *n; k++)
		if (strcmp(pin[k].value, pin[*n].value) == 0)
			return om_fail(c->session, OM_USAGE, "--pin %s: %s is pinned twice", text, pin[k].value);
	++*n;
	return OM_OK;
}

static om_status
want_pins(om_cli *c)
{
	om_pin *pin = OM_NEWN(c->mem, om_pin, c->nset + 1);
	const char *text;

	for (size_t at = 0; (text = om_cli_next(c, "pin", &at));)
		OM_TRY(read_pin(c, text, pin, &c->request.npin));
	c->request.pin = pin;
	return OM_OK;
}

/* Each op of a plan with streams runs in one thread, for which its scratch is. */
static om_status
want_streams(om_cli *c)
{
	uint64_t n = 1;

	OM_TRY(om_cli_number(c, "streams", 1, OM_MOST_WORKER_STREAMS, &n));
	if (n == 1)
		return OM_OK;
	if (om_cli_has(c, "threads") && c->request.threads > 1)
		return om_fail(c->session, OM_USAGE, "each op of a plan with streams runs in one thread: leave out --threads");
	if (om_cli_has(c, "device"))
		return om_fail(c->session, OM_USAGE, "streams are of workers of the processor: leave out --device");
	c->request.threads = 1;
	c->request.streams = (uint32_t)n;
	return OM_OK;
}

om_status
om_cli_plan_request(om_cli *c)
{
	OM_TRY(want_streams(c));
	c->request.parallel_safe = om_cli_has(c, "parallel-safe");
	c->request.ranged = c->nrange > 0;
	c->request.exact_sizes = om_cli_has(c, "exact-sizes");
	OM_TRY(want_io(c));
	OM_TRY(want_budget(c));
	OM_TRY(want_pins(c));
	OM_TRY(want_device(c));
	return want_arenas(c);
}

bool
om_cli_plan_options(const om_cli *c)
{
	static const char *const names[] = {"passes", "target", "precise", "align", "budget", "budget-of", "io", "arena", "device", "pin", "op", "op-rules",
		"parallel-safe", "streams", "tie", "exact-sizes"};

	for (size_t k = 0; k < c->nset; k++)
		if (c->set[k].opt->flag)
			return true;
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (om_cli_has(c, names[k]))
			return true;
	return false;
}

/* ---- The pipeline. ---- */

/* The value of a flag in the form that a pass parses; NULL if it was not given.  A budget is a size. */
static om_status
flag_value(om_cli *c, const om_pass_flag *f, const char **value)
{
	uint64_t number;
	double x;

	*value = om_cli_option(c, f->name);
	if (*value && !f->arg)
		*value = f->value;
	else if (*value && strcmp(f->name, "device") == 0)
		*value = c->device;
	else if (*value && strcmp(f->name, "budget") == 0)  /* a limit of the total is in the request */
		*value = c->budget ? om_printf(c->mem, "%llu", (unsigned long long)c->budget) : NULL;
	else if (f->kind == OM_FLAG_NUMBER)
		return om_cli_number(c, f->name, f->min, f->max, &number);
	else if (f->kind == OM_FLAG_FLOAT)
		return om_cli_float(c, f->name, &x);
	return OM_OK;
}

om_status
om_cli_pass_flags(om_cli *c, om_flag_set **set, size_t *n)
{
	const char *value;
	size_t cap = 0;

	*set = NULL;
	*n = 0;
	OM_TRY(om_cli_host(c));
	for (const om_pass *const *pass = om_host_passes(c->host, false); *pass; pass++)
		for (const om_pass_flag *f = (*pass)->flags; f && f->name; f++) {
			OM_TRY(flag_value(c, f, &value));
			if (value)
				OM_PUSH(c->mem, *set, *n, cap, ((om_flag_set){*pass, f, value}));
		}
	return OM_OK;
}

om_status
om_cli_pipeline(om_cli *c, const char **pipeline)
{
	om_flag_set *set;
	size_t n;

	OM_TRY(om_cli_pass_flags(c, &set, &n));
	return om_host_flags(c->host, set, n, pipeline);
}
