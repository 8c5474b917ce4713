/* SPDX-License-Identifier: Apache-2.0 */
/* --all-streams: what it costs to run ops side by side.
 *
 * Plans for 1, 2 and 4 workers, each of a program of its own, since passes change it, with all other options as they are. */
#include <config.h>

#include "cli/cli.h"
#include "report/report.h"

static om_status
run_passes(om_cli *c, uint32_t workers)
{
	const char *pipeline = om_cli_option(c, "passes");
	om_plan_request r;
	om_flag_set *flag;
	size_t nflag;

	OM_TRY(om_cli_settings(c));
	r = c->request;
	r.streams = workers > 1 ? workers : 0;
	r.threads = workers > 1 ? 1 : r.threads;
	OM_TRY(om_host_request(c->host, &r));
	OM_TRY(om_cli_pass_flags(c, &flag, &nflag));
	if (pipeline)
		OM_TRY(om_host_flags(c->host, flag, nflag, &pipeline));
	else
		OM_TRY(om_host_pipeline_with(c->host, c->loaded, c->prog, c->range, c->nrange, flag, nflag, &pipeline));
	OM_TRY(om_host_run(c->host, c->prog, pipeline));
	if (!(c->prog->has & OM_HAS_PLAN))
		return om_fail(c->session, OM_USAGE, "the passes %s make no plan", pipeline);
	return om_plan_verify(c->session, c->prog, c->prog->plan);
}

static om_status
plan_for(om_cli *c, uint32_t workers, om_report_streams *row)
{
	OM_TRY(om_cli_copy(c));
	OM_TRY(om_cli_shapes(c, NULL, true));
	OM_TRY(run_passes(c, workers));
	const om_plan *plan = c->prog->plan;
	*row = (om_report_streams){.workers = workers, .waits = plan->streams ? plan->streams->nwait : 0,
		.speedup = plan->streams ? om_streams_speedup(plan->streams) : 1};
	for (uint32_t k = 0; k < plan->narena; k++) {
		row->bytes += plan->arena[k].bytes;
		row->bound += plan->arena[k].lower_bound;
	}
	return OM_OK;
}

om_status
om_cli_streams(om_cli *c, om_report *r)
{
	static const uint32_t workers[] = {1, 2, 4};
	enum { N = sizeof workers / sizeof workers[0] };
	om_prog *const prog = c->prog;
	om_status st = OM_OK;

	r->streams = OM_NEWN(c->mem, om_report_streams, N);
	for (size_t k = 0; k < N && st == OM_OK; k++) {
		c->prog = NULL;
		st = plan_for(c, workers[k], &r->streams[k]);
		om_prog_free(c->prog);
		r->nstreams++;
	}
	c->prog = prog;
	return st == OM_OK ? om_host_request(c->host, &c->request) : st;
}
