/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of models, in order of precedence: those of the caller, environment, configuration file, manifest. */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/split.h"
#include "hub/hub.h"

om_hub
om_hub_usual(om_session *s, om_arena *mem)
{
	return (om_hub){.session = s, .mem = mem, .timeout = 30, .delay = 1, .attempts = 5, .size_limit = (uint64_t)16 << 30,
		.min_rate = 1024, .max_time = 86400};
}

static const char *
variable(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/* ---- Mirrors. ---- */

static void
add_mirrors(om_hub *h, const char *const *url, size_t n)
{
	for (size_t k = 0; k < n; k++)
		OM_PUSH(h->mem, h->mirror, h->nmirror, h->capmirror, url[k]);
}

/* The first source that lists mirrors provides all of them. */
static om_status
find_mirrors(om_hub *h, const om_hub_source *src, const om_hub_config *config, const om_manifest *m)
{
	const char *text = getenv("ONNXMEM_MIRRORS");
	size_t n;
	const char **url = om_split(h->mem, text ? text : "", " \t\n", &n);

	add_mirrors(h, src->mirror, src->nmirror);
	if (h->nmirror == 0)
		add_mirrors(h, url, n);
	for (size_t k = 0; k < h->nmirror; k++)
		if (!om_is_url(h->mirror[k]))
			return om_fail(h->session, OM_USAGE, "a mirror is an address such as https://HOST/FOLDER, not %s",
				h->mirror[k]);
	if (h->nmirror == 0)
		add_mirrors(h, config->mirror, config->nmirror);
	if (h->nmirror == 0)
		add_mirrors(h, m->mirror, m->nmirror);
	return OM_OK;
}

static om_status
find_manifest(om_hub *h, const om_hub_source *src, const om_hub_config *config, om_manifest *m)
{
	const char *named = src->manifest ? src->manifest : variable("ONNXMEM_MANIFEST");
	const char *where = named ? named : config->manifest ? config->manifest : src->builtin;
	const om_status st = om_hub_manifest(h, where, m);

	if (st != OM_OK && strcmp(where, src->builtin) == 0 && access(where, F_OK) != 0)
		return om_fail(h->session, OM_IO, "there is no list of models in %s, where `make install` puts it; --manifest or "
			"ONNXMEM_MANIFEST names one, such as models/manifest.json of the source", where);
	return st;
}

om_status
om_hub_open(om_hub *h, const om_hub_source *src, om_manifest *m)
{
	om_hub_config config;

	if (!h->cache)
		OM_TRY(om_hub_cache_folder(h->session, h->mem, &h->cache));
	if (!m)
		return OM_OK;
	OM_TRY(om_hub_config_read(h->session, h->mem, &config));
	OM_TRY(find_manifest(h, src, &config, m));
	return find_mirrors(h, src, &config, m);
}

/* ---- Files. ---- */

om_status
om_hub_address(om_hub *h, const om_hub_source *src, const char *name, const char *sum, om_hub_file *f)
{
	const char *base = src->hf_base ? src->hf_base : variable("ONNXMEM_HF");
	om_hub_config config;

	OM_TRY(om_hub_config_read(h->session, h->mem, &config));
	base = base ? base : config.hf ? config.hf : "https://huggingface.co";
	if (!om_is_url(base))
		return om_fail(h->session, OM_USAGE, "the base of hf: is an address such as https://HOST, not %s", base);
	return om_hub_direct(h->session, h->mem, base, name, sum, f);
}

om_status
om_hub_model_of(om_hub *h, const om_manifest *m, const char *name, uint64_t opset, bool with_data, const char **path)
{
	const om_hub_model *model;

	OM_TRY(om_manifest_find(h->session, h->mem, m, name, opset, &model));
	if (!with_data)
		return om_hub_fetch(h, &model->model, path);
	if (!model->data.path)
		return om_fail(h->session, OM_USAGE, "the manifest has no data for %s", name);
	OM_TRY(om_hub_fetch(h, &model->data, path));
	return om_hub_unpack(h, *path, path);
}
