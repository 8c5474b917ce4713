/* SPDX-License-Identifier: Apache-2.0 */
/* Options for the sources of models. */
#include <config.h>

#include "base/clock.h"
#include "cli/model_source.h"

static const om_opt hub_opts[] = {
	{"mirror", "URL", "base URL of a mirror; repeatable, tried in this order"},
	{"hf-base", "URL", "base URL of names such as hf:ORG/REPO/FILE@REV [https://huggingface.co]"},
	{"manifest", "FILE|URL", "list of models to use instead of the built-in one"},
	{"cache", "FOLDER", "folder of downloaded models [$ONNX_HOME/hub, else ~/.cache/onnx/hub]"},
	{"offline", NULL, "use cached models only"},
	{"timeout", "S", "seconds to wait for a connection, or for data [30]"},
	{"retries", "N", "attempts without progress before giving up on a mirror [5]"},
	{"retry-delay", "S", "seconds before the second attempt; the delay doubles with each one [1]"},
	{"size-limit", "SIZE", "maximum size of a file [16G]"},
	{"min-rate", "SIZE", "a transfer that is slower than SIZE per second on average is ended [1K]"},
	{"max-time", "S", "seconds for a file, with all attempts and waits [86400]"},
	{"unpack-limit", "SIZE", "maximum unpacked size of an archive [64 times its size]"},
	{0}
};

const om_opt_group om_hub_options = {"fetching", hub_opts};

/* What the options say. */
static om_hub_source
source_of(om_cli *c)
{
	om_hub_source src = {.manifest = om_cli_option(c, "manifest"), .builtin = OM_MANIFEST, .hf_base = om_cli_option(c, "hf-base")};
	const char **mirror = OM_NEWN(c->mem, const char *, c->nset + 1), *url;

	for (size_t at = 0; (url = om_cli_next(c, "mirror", &at));)
		mirror[src.nmirror++] = url;
	src.mirror = mirror;
	return src;
}

/* A line that is rewritten repeatedly, on a terminal only. */
static void
show_progress(void *arg, const char *name, uint64_t now, uint64_t all)
{
	static const char bar[] = "##############################";
	enum { WIDTH = sizeof bar - 1 };
	double *shown = arg;
	const double ms = om_now_ms();

	if (ms - *shown < 100 && now != all)
		return;
	*shown = ms;
	const int part = all ? (int)((double)now / (double)all * WIDTH) : 0;
	fprintf(stderr, "\r%-28.28s [%-*.*s] %7.1f of %.1f MB", name, WIDTH, part, bar, (double)now / 1e6,
		(double)all / 1e6);
	if (all && now >= all)
		fputs("\033[K\n", stderr);
}

static om_status
read_numbers(om_cli *c, om_hub *h)
{
	const char *limit = om_cli_option(c, "unpack-limit"), *size = om_cli_option(c, "size-limit");
	const char *rate = om_cli_option(c, "min-rate");

	OM_TRY(om_cli_float(c, "timeout", &h->timeout));
	OM_TRY(om_cli_float(c, "retry-delay", &h->delay));
	OM_TRY(om_cli_float(c, "max-time", &h->max_time));
	if (size)
		OM_TRY(om_cli_size(c, "option --size-limit", size, &h->size_limit));
	if (rate)
		OM_TRY(om_cli_size(c, "option --min-rate", rate, &h->min_rate));
	OM_TRY(om_cli_number(c, "retries", 1, 1000, &h->attempts));
	return limit ? om_cli_size(c, "option --unpack-limit", limit, &h->unpack_limit) : OM_OK;
}

om_status
om_cli_direct(om_cli *c, om_hub *h, const char *name, const char *sum, om_hub_file *f)
{
	const om_hub_source src = source_of(c);

	return om_hub_address(h, &src, name, sum, f);
}

om_status
om_cli_hub(om_cli *c, om_hub *h, om_manifest *m)
{
	const om_hub_source src = source_of(c);

	*h = om_hub_usual(c->session, c->mem);
	h->offline = om_cli_has(c, "offline");
	if (om_cli_may_show(c)) {
		h->progress = show_progress;
		h->progress_arg = OM_NEW(c->mem, double);
	}
	OM_TRY(read_numbers(c, h));
	h->cache = om_cli_option(c, "cache");
	return om_hub_open(h, &src, m);
}
