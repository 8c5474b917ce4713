/* The passes that a command runs: where they come from, what is told about them. */
#include <config.h>

#include "cli/cli.h"

static const om_opt pass_opts[] = {
	{"passes", "LIST", "run these passes instead; see `onnxmem passes`"},
	{"plugin", "FILE", "load a pass from a shared object; repeatable"},
	{"target", "NAME", "plan for `generic`, any consumer, or `cpu`, our executor with its scratch"},
	{"align", "N", "bytes that offsets and sizes are multiples of [64]"},
	{"order", "NAME", "in which the ops run: `file`, as they stand; `bfs`; `mem`, for least memory"},
	{"order-free", NULL, "make a plan that holds in every order that respects the data"},
	{"time-limit", "S", "look for better plans that many seconds; without, effort is counted"},
	{"budget", "SIZE", "fail with status 3 where all arenas together are larger"},
	{"arena", "NAME=SIZE[,...]", "an arena, the fastest first; also align=N, device=cpu; the last may\n"
		"                            go without a size; repeatable"},
	{0}
};

const om_opt_group om_pass_options = {"planning", pass_opts};

static void
tell_pass(void *arg, const om_pass *pass, const om_run *r, const om_prog *p, double ms)
{
	om_cli *c = arg;
	char text[512];
	size_t n = 0;

	(void)p;
	c->pass_ms += ms;
	*text = '\0';
	for (size_t k = 0; pass->counters && pass->counters[k].name && n < sizeof text; k++)
		n += (size_t)snprintf(text + n, sizeof text - n, ", %s %llu", pass->counters[k].name,
			(unsigned long long)r->counter[k]);
	om_info(c->session, "pass %s: %.2f ms%s", pass->name, ms, text);
}

om_status
om_cli_host(om_cli *c)
{
	const char *file;

	c->host = om_host_new(c->session, NULL);
	om_host_hook(c->host, tell_pass, c);
	for (size_t at = 0; (file = om_cli_next(c, "plugin", &at));)
		OM_TRY(om_host_plugin(c->host, file));
	return OM_OK;
}
