/* SPDX-License-Identifier: Apache-2.0 */
/* The host: the set of available passes. */
#include <config.h>

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "alloc/assign.h"
#include "base/guard.h"
#include "base/load_module.h"
#include "base/options.h"
#include "base/split.h"
#include "host/host.h"

enum { ENDING = 3 };  /* ".so" */

/* What every pipeline starts and ends with. */
#define SIMPLIFY "inline,shapes,fold,prune,"
#define PLAN "schedule=min-memory,liveness,views,alias-io=declared,inplace,loops,pack"

/* The passes that rewrite a program for the executor, one a line, each with a comma after it, in their order. */
#define LOWER_FOR_CPU \
	"capacity," \
	"fuse-qdq," \
	"fuse:norm=fold," \
	"fuse-norm," \
	"fuse-attention," \
	"merge-products," \
	"lower-rnn," \
	"lower-layout," \
	"fuse-epilogue," \
	"fuse-elementwise," \
	"prune,"

const char *
om_default_pipeline(void)
{
	return SIMPLIFY PLAN;
}

const char *
om_target_pipeline(om_target target)
{
	return target == OM_TARGET_CPU ? SIMPLIFY LOWER_FOR_CPU PLAN : om_default_pipeline();
}

const char *
om_request_pipeline(const om_plan_request *r)
{
	return r->precise ? om_default_pipeline() : om_target_pipeline(r->target);
}

static void
add(om_host *h, const om_pass *pass, const char *file)
{
	struct found *f = OM_NEW(h->mem, struct found);

	*f = (struct found){pass, file};
	OM_PUSH(h->mem, h->all, h->n, h->cap, f);
	om_map_set(&h->by_name, pass->name, f);
}

struct construction {
	om_session *session;
	om_pass_entry *const *built_in;
	size_t n;
	const char *path;
	om_host *h;
};

static om_status
construct(void *arg)
{
	struct construction *c = arg;
	om_arena *mem = om_arena_new();
	om_host *h = OM_NEW(mem, om_host);
	const char *path = c->path;
	char folder[OM_MODULE_FOLDER];

	if (!path)
		path = getenv("ONNXMEM_PASS_PATH");
	if (!path) {
		om_module_folder(folder);
		path = folder;
	}
	h->mem = mem;
	h->session = c->session;
	h->path = om_strdup(mem, path);
	h->folder = om_split(mem, h->path, ":", &h->nfolder);
	h->by_name = om_map_new(mem);
	h->refused = om_map_new(mem);
	h->request = om_plan_request_copy(&(om_plan_request)OM_PLAN_REQUEST(), mem);
	for (size_t k = 0; k < c->n; k++)
		add(h, c->built_in[k](), NULL);
	c->h = h;
	return OM_OK;
}

om_host *
om_host_new_with(om_session *s, om_pass_entry *const *built_in, size_t n, const char *path)
{
	struct construction c = {s, built_in, n, path, NULL};

	if (om_guarded(s, construct, &c) == OM_OK)
		return c.h;
	om_guard_fail(sizeof *c.h);  /* returns where there is no guard around */
	return NULL;
}

/* Modules are never unloaded: passes are static data in them, and leak reports require their
 * symbols. */
om_session *
om_host_session(const om_host *h)
{
	return h->session;
}

void
om_host_free(om_host *h)
{
	if (h)
		om_arena_free(h->mem);
}

void
om_host_hook(om_host *h, om_pass_hook *hook, void *arg)
{
	h->hook = hook;
	h->hook_arg = arg;
}

static om_status
host_request_guarded(om_host *h, const om_plan_request *r)
{
	om_plan_request given = OM_PLAN_REQUEST();

	if (r)
		OM_TRY(om_options_read(h->session, "om_plan_request", "OM_PLAN_REQUEST()", &given, sizeof given, sizeof given, r));
	if (given.align & (given.align - 1))
		return om_fail(h->session, OM_USAGE, "the alignment of a plan must be a power of two, not %llu",
			(unsigned long long)given.align);
	if (given.streams > OM_MOST_WORKER_STREAMS)
		return om_fail(h->session, OM_USAGE, "a plan has streams for at most %d workers, not %u", OM_MOST_WORKER_STREAMS, given.streams);
	if (given.streams && given.ranged)
		return om_fail(h->session, OM_USAGE, "a plan with streams of workers is for one size, not for ranges");
	h->request = om_plan_request_copy(&given, h->mem);
	return OM_OK;
}

om_status
om_host_request(om_host *h, const om_plan_request *r)
{
	OM_GUARDED(h->session, host_request_guarded(h, r));
}

/* ---- Modules. ---- */

static om_status
load(om_host *h, const char *file, const om_pass **out)
{
	OM_TRY(om_module_load(h, file, out));
	const struct found *f = om_map_get(&h->by_name, (*out)->name);
	if (!f) {
		add(h, *out, om_strdup(h->mem, file));
		return OM_OK;
	}
	if (!f->file || strcmp(f->file, file) != 0)
		return om_fail(h->session, OM_NOPASS, "%s: there is already a pass %s, %s%s", file, (*out)->name,
			f->file ? "of " : "which is built in", f->file ? f->file : "");
	*out = f->pass;
	return OM_OK;
}

static om_status
host_plugin_guarded(om_host *h, const char *file)
{
	const om_pass *pass;

	/* dlopen() searches the system's library path for a name without a slash. */
	return load(h, strchr(file, '/') ? file : om_printf(h->mem, "./%s", file), &pass);
}

om_status
om_host_plugin(om_host *h, const char *file)
{
	OM_GUARDED(h->session, host_plugin_guarded(h, file));
}

/* Load the module NAME.so from the first folder that has one; OM_OK and NULL if none has. */
static om_status
load_from_folders(om_host *h, const char *name, const om_pass **out)
{
	*out = NULL;
	for (size_t k = 0; k < h->nfolder; k++) {
		const char *file = om_printf(h->mem, "%s/%s.so", h->folder[k], name);
		FILE *there = fopen(file, "r");
		if (!there)
			continue;
		fclose(there);
		OM_TRY(load(h, file, out));
		if (strcmp((*out)->name, name) == 0)
			return OM_OK;
		return om_fail(h->session, OM_NOPASS,
			"%s: its pass is called %s, but pipelines find a pass by the name of its file", file, (*out)->name);
	}
	return OM_OK;
}

const om_pass *
om_host_pass(om_host *h, const char *name)
{
	const struct found *f = om_map_get(&h->by_name, name);
	const om_pass *pass;

	if (f)
		return f->pass;
	if (strchr(name, '/')) {
		om_fail(h->session, OM_NOPASS, "%s is not the name of a pass; load a file with --plugin", name);
		return NULL;
	}
	if (load_from_folders(h, name, &pass) == OM_OK && !pass)
		om_fail(h->session, OM_NOPASS, "unknown pass %s: it is not built in, and %s has no %s.so; "
			"see `onnxmem passes`", name, h->path, name);
	return pass;
}

/* A rejected module is reported once. */
static void
load_folder(om_host *h, const char *dir)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));) {
		const size_t n = strlen(e->d_name);
		const om_pass *pass;
		if (n <= ENDING || strcmp(e->d_name + n - ENDING, ".so") != 0)
			continue;
		const char *name = om_strndup(h->mem, e->d_name, n - ENDING);
		if (om_map_get(&h->by_name, name) || om_map_get(&h->refused, name))
			continue;
		if (load_from_folders(h, name, &pass) != OM_OK) {
			om_warn(h->session, "%s", om_message(h->session));
			om_map_set(&h->refused, name, h);
		}
	}
	if (d)
		closedir(d);
}

static int
by_name(const void *a, const void *b)
{
	const om_pass *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

const om_pass *const *
om_host_passes(om_host *h, bool modules)
{
	for (size_t k = 0; modules && k < h->nfolder; k++)
		load_folder(h, h->folder[k]);
	const om_pass **all = OM_NEWN(h->mem, const om_pass *, h->n + 1);
	for (size_t k = 0; k < h->n; k++)
		all[k] = h->all[k]->pass;
	qsort(all, h->n, sizeof *all, by_name);
	return all;
}

/* ---- Finding the provider of a fact. ---- */

bool
om_host_is_foreign(const om_host *h, const om_pass *pass)
{
	const struct found *f = om_map_get(&h->by_name, pass->name);
	return !f || f->file;
}

static const om_pass *
giver(const om_host *h, unsigned bit, const char *name)
{
	for (size_t k = 0; k < h->n; k++) {
		const om_pass *pass = h->all[k]->pass;
		if (bit ? pass->gives & bit : om_facts_name(pass->gives_facts, name))
			return pass;
	}
	return NULL;
}

const om_pass *
om_host_giver(om_host *h, unsigned bit, const char *name)
{
	const om_pass *pass = giver(h, bit, name);

	if (!pass) {
		om_host_passes(h, true);
		pass = giver(h, bit, name);
	}
	return pass;
}
