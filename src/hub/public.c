/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching for programs that use the library; see onnxmem/fetch.h. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/options.h"
#include "hub/hub.h"
#include "onnxmem/fetch.h"

struct fetching {
	om_hub hub;
	om_fetch_options options;
	const char *name;
	char *path;              /* of malloc() */
};

/* ---- Transfers of the caller. ---- */

static void
run_hook(void *arg, om_transfer *t)
{
	static const enum om_transfer_end ends[] = {
		[OM_FETCH_DONE] = OM_TRANSFER_DONE, [OM_FETCH_RETRY] = OM_TRANSFER_RETRY, [OM_FETCH_FAILED] = OM_TRANSFER_FAILED,
		[OM_FETCH_LOCAL] = OM_TRANSFER_LOCAL_ERROR,
	};
	const om_fetch_options *o = arg;
	om_fetch_transfer f = {.url = t->url, .fd = t->fd, .most = t->expected ? t->expected : t->limit, .seconds = t->timeout,
		.progress = t->progress, .progress_arg = t->progress_arg, .end = OM_FETCH_LOCAL};

	o->transfer(o->arg, &f);
	t->end = (size_t)f.end < sizeof ends / sizeof ends[0] ? ends[f.end] : OM_TRANSFER_LOCAL_ERROR;
	t->retry_after = f.retry_after;
	f.reason[sizeof f.reason - 1] = 0;
	memcpy(t->reason, f.reason, sizeof t->reason);
}

static void
tell_progress(void *arg, const char *name, uint64_t now, uint64_t all)
{
	const om_fetch_options *o = arg;

	o->progress(o->arg, name, now, all);
}

/* ---- A model. ---- */

static void
configure(struct fetching *f, om_transfer_hook *hook)
{
	const om_fetch_options *o = &f->options;
	om_hub *h = &f->hub;

	h->cache = o->cache;
	h->offline = o->offline;
	h->timeout = o->timeout > 0 ? o->timeout : h->timeout;
	h->attempts = o->attempts ? o->attempts : h->attempts;
	h->delay = o->retry_delay > 0 ? o->retry_delay : h->delay;
	h->hook = o->transfer ? hook : NULL;
	h->progress = o->progress ? tell_progress : NULL;
	h->progress_arg = &f->options;
}

static om_status
find(struct fetching *f, const char **path)
{
	const om_fetch_options *o = &f->options;
	const om_hub_source src = {o->mirror, o->nmirror, o->manifest, o->builtin ? o->builtin : OM_MANIFEST, o->hf_base};
	om_manifest m = {0};
	om_hub_file file;

	if (om_hub_is_direct(f->name)) {
		if (o->with_data || o->opset)
			return om_fail(f->hub.session, OM_USAGE, "%s: data and an opset are for models of a manifest",
				om_url_for_messages(f->hub.mem, f->name));
		OM_TRY(om_hub_open(&f->hub, &src, NULL));
		OM_TRY(om_hub_address(&f->hub, &src, f->name, o->sha256, &file));
		return om_hub_fetch(&f->hub, &file, path);
	}
	if (o->sha256)
		return om_fail(f->hub.session, OM_USAGE, "a checksum is for a name that is an address; the manifest has that of %s", f->name);
	OM_TRY(om_hub_open(&f->hub, &src, &m));
	return om_hub_model_of(&f->hub, &m, f->name, o->opset, o->with_data, path);
}

static om_status
fetch(om_session *s, struct fetching *f)
{
	om_arena *mem = om_arena_new();
	om_transfer_hook hook = {run_hook, &f->options};
	const char *path = NULL;

	f->hub = om_hub_usual(s, mem);
	configure(f, &hook);
	om_status st = find(f, &path);
	if (st == OM_OK && !(f->path = strdup(path)))
		st = om_fail(s, OM_MEMORY, "no memory for the path of %s", f->name);
	om_arena_free(mem);
	return st;
}

static om_status
fetch_guarded(om_session *s, struct fetching *f)
{
	OM_GUARDED(s, fetch(s, f));
}

om_status
om_fetch(om_session *s, const char *name, const om_fetch_options *o, char **path)
{
	struct fetching f = {.name = name};

	*path = NULL;
	OM_TRY(om_options_read(s, "om_fetch_options", "OM_FETCH_OPTIONS()", &f.options, sizeof f.options, sizeof f.options, o));
	const om_status st = fetch_guarded(s, &f);
	*path = f.path;
	return st;
}
