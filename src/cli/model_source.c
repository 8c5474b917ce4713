/* Sources of models, in order of precedence: options, environment, configuration file, manifest. */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/split.h"
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

static void
add_mirror(om_cli *c, om_hub *h, const char *url)
{
	OM_PUSH(c->mem, h->mirror, h->nmirror, h->capmirror, url);
}

/* URLs separated by white space. */
static void
mirrors_of_environment(om_cli *c, om_hub *h)
{
	const char *text = getenv("ONNXMEM_MIRRORS");
	size_t n;
	const char **url = om_split(c->mem, text ? text : "", " \t\n", &n);

	for (size_t k = 0; k < n; k++)
		add_mirror(c, h, url[k]);
}

/* The first source that lists mirrors provides all of them. */
static om_status
find_mirrors(om_cli *c, om_hub *h, const om_hub_config *config, const om_manifest *m)
{
	const char *url;

	for (size_t at = 0; (url = om_cli_next(c, "mirror", &at));)
		add_mirror(c, h, url);
	if (h->nmirror == 0)
		mirrors_of_environment(c, h);
	for (size_t k = 0; k < h->nmirror; k++)
		if (!om_is_url(h->mirror[k]))
			return om_fail(c->session, OM_USAGE, "a mirror is an address such as https://HOST/FOLDER, not %s",
				h->mirror[k]);
	for (size_t k = 0, none = h->nmirror == 0; none && k < config->nmirror; k++)
		add_mirror(c, h, config->mirror[k]);
	for (size_t k = 0, none = h->nmirror == 0; none && k < m->nmirror; k++)
		add_mirror(c, h, m->mirror[k]);
	return OM_OK;
}

static om_status
find_manifest(om_cli *c, om_hub *h, const om_hub_config *config, om_manifest *m)
{
	const char *where = om_cli_option(c, "manifest"), *variable = getenv("ONNXMEM_MANIFEST");

	where = where ? where : variable && *variable ? variable : config->manifest ? config->manifest : OM_MANIFEST;
	const om_status st = om_hub_manifest(h, where, m);
	if (st != OM_OK && strcmp(where, OM_MANIFEST) == 0 && access(where, F_OK) != 0)
		return om_fail(c->session, OM_IO, "there is no list of models in %s, where `make install` puts it; --manifest or "
			"ONNXMEM_MANIFEST names one, such as models/manifest.json of the source", where);
	return st;
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
om_cli_direct(om_cli *c, const char *name, const char *sum, om_hub_file *f)
{
	const char *base = om_cli_option(c, "hf-base"), *variable = getenv("ONNXMEM_HF");
	om_hub_config config;

	OM_TRY(om_hub_config_read(c->session, c->mem, &config));
	base = base ? base : variable && *variable ? variable : config.hf ? config.hf : "https://huggingface.co";
	if (!om_is_url(base))
		return om_fail(c->session, OM_USAGE, "the base of hf: is an address such as https://HOST, not %s", base);
	return om_hub_direct(c->session, c->mem, base, name, sum, f);
}

om_status
om_cli_hub(om_cli *c, om_hub *h, om_manifest *m)
{
	om_hub_config config;

	*h = (om_hub){.session = c->session, .mem = c->mem, .timeout = 30, .delay = 1, .attempts = 5,
		.size_limit = (uint64_t)16 << 30, .min_rate = 1024, .max_time = 86400};
	h->offline = om_cli_has(c, "offline");
	if (om_cli_may_show(c)) {
		h->progress = show_progress;
		h->progress_arg = OM_NEW(c->mem, double);
	}
	OM_TRY(read_numbers(c, h));
	h->cache = om_cli_option(c, "cache");
	if (!h->cache)
		OM_TRY(om_hub_cache_folder(c->session, c->mem, &h->cache));
	if (!m)
		return OM_OK;
	OM_TRY(om_hub_config_read(c->session, c->mem, &config));
	OM_TRY(find_manifest(c, h, &config, m));
	return find_mirrors(c, h, &config, m);
}
