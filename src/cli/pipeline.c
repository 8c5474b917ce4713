/* SPDX-License-Identifier: Apache-2.0 */
/* The passes that a command runs: where they come from, and what is reported about them. */
#include <config.h>

#include <string.h>

#include "cli/cli.h"
#include "onnxmem/plan.h"
#include "report/report.h"

static const om_opt pass_opts[] = {
	{"passes", "LIST", "run these passes instead of the default; see `onnxmem passes`"},
	{"plugin", "FILE", "load a pass from a shared object; repeatable"},
	{"target", "NAME", "consumer of the plan: `generic`, any runtime; `cpu`, the built-in executor, whose\n"
		"                            kernels have scratch [generic; run and train: cpu]"},
	{"threads", "N", "threads of the kernels, for which a plan for cpu has scratch [run and train:\n"
		"                            ONNXMEM_THREADS, or the processors that there are; else 1]"},
	{"precise", NULL, "with a plan for cpu: use the reference kernels alone, and do not rewrite the model\n"
		"                            for the fast ones"},
	{"device", "NAME[:OPTION...][,...]", "run what is faster there on a device: `cuda`, `opencl`, `sim`; after a comma,\n"
		"                            what to use if there is none: another one, or `cpu` [cpu]"},
	{"align", "N", "alignment of offsets and sizes in bytes [64]"},
	{"parallel-safe", NULL, "make a plan that is valid for every order of the ops that respects the data"},
	{"streams", "N", "make a plan for N workers that run ops side by side, each op in one thread [1]"},
	{"exact-sizes", NULL, "leave values whose size data decide outside of the plan, instead of giving them a place\n"
		"                            for the most that they may take"},
	{"io", "WHERE", "memory of inputs and outputs: `caller`; `arena`, from the start to the last use or\n"
		"                            from the op to the end; `keep`, the same, but inputs stay intact; or\n"
		"                            NAME=WHERE for one; repeatable [caller]"},
	{"tie", "INPUT=OUTPUT", "the output replaces the input in the next run, and may be computed in its memory: names,\n"
		"                            or their beginnings, as past_key_values=present; or auto: by the names\n"
		"                            that exporters of decoders give; repeatable"},
	{"budget", "SIZE", "exit with status 3 if a run needs more than SIZE"},
	{"budget-of", "WHAT", "what the budget limits: `total`, arenas, weights, inputs and outputs together; or\n"
		"                            `arena`, the arenas alone [total]"},
	{"arena", "NAME=SIZE[,...]", "an arena, fastest first; also align=N, device=cpu; the last may\n"
		"                            have no size; repeatable"},
	{"pin", "TENSOR=ARENA", "place a tensor, and what shares memory with it, in this arena; repeatable"},
	OM_CLI_OP_RULES,
	{0}
};

const om_opt_group om_pass_options = {"planning", pass_opts, true};

static bool
is_in(const om_opt *list, const om_opt *o)
{
	for (; list->name; list++)
		if (list == o)
			return true;
	return false;
}

bool
om_cli_decides_plan(const om_opt *o)
{
	return o->flag || is_in(om_shape_options.opts, o) || is_in(om_pass_options.opts, o);
}

/* Bytes required by the program as it is: those of the plan, or without one, the lower bound of
 * its buffers; false if too little is known. */
static bool
bytes_needed(const om_cli *c, const om_prog *p, uint64_t *bytes)
{
	const unsigned wanted = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE;

	*bytes = 0;
	if (p->has & OM_HAS_PLAN) {
		for (uint32_t k = 0; k < p->plan->narena; k++)
			*bytes += p->plan->arena[k].bytes;
		return true;
	}
	if (p != c->prog || (p->has & wanted) != wanted || p->assignment->request->parallel_safe)
		return false;
	om_arena *mem = om_arena_new();
	const om_buffers *b = om_buffers_new(c->prog, c->prog->assignment, mem);
	*bytes = om_pack_bound(b->buf, b->n, NULL);
	om_arena_free(mem);
	return true;
}

/* How a pass changed that number. */
static const char *
saved(om_cli *c, const om_prog *p)
{
	const bool known = c->needed_is_known;
	const uint64_t before = c->needed;
	char now[32], less[32];

	if (!c->verbose || !bytes_needed(c, p, &c->needed))
		return "";
	c->needed_is_known = true;
	om_bytes_text(c->needed, now);
	if (!known)
		return om_printf(c->mem, "; peak live %s", now);
	if (before == c->needed)
		return "";
	om_bytes_text(before > c->needed ? before - c->needed : c->needed - before, less);
	return om_printf(c->mem, "; peak live %s, %s %s than %s", now, less, before > c->needed ? "less" : "more",
		om_bytes_text(before, (char[32]){0}));
}

/* For the report, which outlives the run. */
static void
note_pass(om_cli *c, const om_pass *pass, const om_run *r)
{
	size_t n = 0;

	while (pass->counters && pass->counters[n].name)
		n++;
	OM_PUSH(c->mem, c->ran, c->nran, c->capran,
		((om_report_pass){pass, om_memdup(c->mem, r->counter, n * sizeof *r->counter)}));
}

static void
tell_pass(void *arg, const om_pass *pass, const om_run *r, const om_prog *p, double ms)
{
	om_cli *c = arg;
	char text[512];
	size_t n = 0;

	c->pass_ms += ms;
	note_pass(c, pass, r);
	*text = '\0';
	for (size_t k = 0; pass->counters && pass->counters[k].name && n < sizeof text; k++)
		n += (size_t)snprintf(text + n, sizeof text - n, ", %s %llu", pass->counters[k].name,
			(unsigned long long)r->counter[k]);
	om_cli_progress_end(c);
	om_info(c->session, "pass %s: %.2f ms%s%s", pass->name, ms, text, saved(c, p));
}

static void
make_host(om_cli *c)
{
	if (c->host)
		return;
	c->host = om_host_new(c->session, NULL);
	c->plugin_at = 0;
	om_host_hook(c->host, tell_pass, c);
}

om_status
om_cli_host(om_cli *c)
{
	const char *file;

	make_host(c);
	while ((file = om_cli_next(c, "plugin", &c->plugin_at)))
		OM_TRY(om_host_plugin(c->host, file));
	return OM_OK;
}

/* ---- Flags of passes. ---- */

static bool
is_named(const om_opt *o, const char *name, size_t n)
{
	return strlen(o->name) == n && memcmp(o->name, name, n) == 0;
}

/* Flag `k` of the available passes, except for flags that are options of the commands; a flag
 * that several passes share counts once. */
static bool
flag_at(om_cli *c, size_t k, om_opt *out)
{
	const om_pass *const *pass = om_host_passes(c->host, false);
	om_opt *seen = NULL;
	size_t n = 0, cap = 0;

	for (; *pass; pass++)
		for (const om_pass_flag *f = (*pass)->flags; f && f->name; f++) {
			size_t i = 0;
			while (pass_opts[i].name && strcmp(pass_opts[i].name, f->name) != 0)
				i++;
			if (pass_opts[i].name)
				continue;
			for (i = 0; i < n && strcmp(seen[i].name, f->name) != 0; i++)
				;
			if (i < n)
				continue;
			OM_PUSH(c->mem, seen, n, cap, ((om_opt){f->name, f->arg, f->brief, NULL, f}));
			if (n == k + 1) {
				*out = seen[k];
				return true;
			}
		}
	return false;
}

const om_opt *
om_cli_group_option(om_cli *c, const om_opt_group *group, size_t k)
{
	size_t own = 0;

	while (own <= k && group->opts[own].name)
		own++;
	if (k < own)
		return &group->opts[k];
	if (!group->has_flags || om_cli_host(c) != OM_OK)
		return NULL;
	om_opt *o = OM_NEW(c->mem, om_opt);
	return flag_at(c, k - own, o) ? o : NULL;
}

static const om_opt *
find_flag(om_cli *c, const char *name, size_t n)
{
	om_opt *o = OM_NEW(c->mem, om_opt);

	for (size_t k = 0; flag_at(c, k, o); k++)
		if (is_named(o, name, n))
			return o;
	return NULL;
}

/* Plugins are loaded only if no built-in pass has the flag. */
const om_opt *
om_cli_flag(om_cli *c, const char *name, size_t n)
{
	make_host(c);
	const om_opt *o = find_flag(c, name, n);

	if (!o && om_cli_host(c) == OM_OK)
		o = find_flag(c, name, n);
	if (!o) {
		om_host_passes(c->host, true);
		o = find_flag(c, name, n);
	}
	return o;
}
