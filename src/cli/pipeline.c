/* The passes that a command runs: where they come from, what is told about them. */
#include <config.h>

#include "cli/cli.h"
#include "onnxmem/plan.h"
#include "report/report.h"

static const om_opt pass_opts[] = {
	{"passes", "LIST", "run these passes instead; see `onnxmem passes`"},
	{"plugin", "FILE", "load a pass from a shared object; repeatable"},
	{"target", "NAME", "plan for `generic`, any consumer, or `cpu`, our executor with its scratch"},
	{"align", "N", "bytes that offsets and sizes are multiples of [64]"},
	{"order", "NAME", "in which the ops run: `file`, as they stand; `bfs`; `mem`, for least memory"},
	{"order-free", NULL, "make a plan that holds in every order that respects the data"},
	{"time-limit", "S", "look for better plans that many seconds; without, effort is counted"},
	{"recompute", "PERCENT", "drop what is cheap to make again, for so much more work at most: to keep\n"
		"                            to the --budget for the least of it, or to the lowest peak"},
	{"budget", "SIZE", "fail with status 3 where all arenas together are larger"},
	{"arena", "NAME=SIZE[,...]", "an arena, the fastest first; also align=N, device=cpu; the last may\n"
		"                            go without a size; repeatable"},
	{0}
};

const om_opt_group om_pass_options = {"planning", pass_opts};

/* Bytes that the program needs at once as it stands: the plan's, or without one those
 * of its buffers; false while too little is known. */
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
	if (p != c->prog || (p->has & wanted) != wanted || p->parallel_safe)
		return false;
	om_arena *mem = om_arena_new();
	const om_buffers *b = om_buffers_new(c->prog, mem);
	*bytes = om_pack_bound(b->buf, b->n, NULL);
	om_arena_free(mem);
	return true;
}

/* What a pass did to that number. */
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
		return om_printf(c->mem, "; needs %s at once", now);
	if (before == c->needed)
		return "";
	om_bytes_text(before > c->needed ? before - c->needed : c->needed - before, less);
	return om_printf(c->mem, "; needs %s at once, %s %s, was %s", now, less, before > c->needed ? "less" : "more",
		om_bytes_text(before, (char[32]){0}));
}

static void
tell_pass(void *arg, const om_pass *pass, const om_run *r, const om_prog *p, double ms)
{
	om_cli *c = arg;
	char text[512];
	size_t n = 0;

	c->pass_ms += ms;
	*text = '\0';
	for (size_t k = 0; pass->counters && pass->counters[k].name && n < sizeof text; k++)
		n += (size_t)snprintf(text + n, sizeof text - n, ", %s %llu", pass->counters[k].name,
			(unsigned long long)r->counter[k]);
	om_cli_progress_end(c);
	om_info(c->session, "pass %s: %.2f ms%s%s", pass->name, ms, text, saved(c, p));
}

om_status
om_cli_host(om_cli *c)
{
	const char *file;

	if (c->host)
		return OM_OK;
	c->host = om_host_new(c->session, NULL);
	om_host_hook(c->host, tell_pass, c);
	for (size_t at = 0; (file = om_cli_next(c, "plugin", &at));)
		OM_TRY(om_host_plugin(c->host, file));
	return OM_OK;
}
