/* SPDX-License-Identifier: Apache-2.0 */
/* See train_log.h.  Lines are written out at once, so that a log may be read while the training goes on, and is complete up to where
 * one ended. */
#include <config.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/train_log.h"

om_status
om_train_log_open(om_cli *c, om_train_log *log)
{
	*log = (om_train_log){.c = c, .path = om_cli_option(c, "log")};
	if (!log->path)
		return OM_OK;
	log->to = fopen(log->path, om_cli_has(c, "resume") ? "a" : "w");
	return log->to ? OM_OK : om_fail(c->session, OM_IO, "%s: %s", log->path, strerror(errno));
}

void
om_train_log_close(om_train_log *log)
{
	if (log->to)
		fclose(log->to);
	log->to = NULL;
}

static om_status
end_line(om_train_log *log)
{
	return fputs("}\n", log->to) >= 0 && fflush(log->to) == 0 ? OM_OK
		: om_fail(log->c->session, OM_IO, "%s: %s", log->path, strerror(errno));
}

om_status
om_train_log_step(om_train_log *log, const om_progress_of *at, int64_t samples, double loss, double rate)
{
	if (!log->to)
		return OM_OK;
	fprintf(log->to, "{\"step\": %llu, \"epoch\": %llu, \"batch\": %llu, \"samples\": %lld, \"loss\": %.9g", (unsigned long long)at->steps,
		(unsigned long long)at->epoch + 1, (unsigned long long)at->batch, (long long)samples, loss);
	if (!isnan(rate))
		fprintf(log->to, ", \"rate\": %.9g", rate);
	return end_line(log);
}

om_status
om_train_log_epoch(om_train_log *log, const om_progress_of *at, double loss, const om_score *score)
{
	if (!log->to)
		return OM_OK;
	fprintf(log->to, "{\"epoch\": %llu, \"steps\": %llu, \"loss\": %.9g", (unsigned long long)at->epoch + 1,
		(unsigned long long)at->steps, loss);
	if (score && score->is_share)
		fprintf(log->to, ", \"right\": %lld, \"of\": %lld", (long long)score->right, (long long)score->all);
	else if (score)
		fprintf(log->to, ", \"error\": %.9g", score->error);
	return end_line(log);
}
