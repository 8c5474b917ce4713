/* The host: finds passes, orders them by their contracts, runs them. */
#include <config.h>

#include <assert.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "host/passes.h"
#include "onnxmem/pass.h"

enum { ENDING = 3 };  /* ".so" */

struct om_host {
	om_session *session;
	om_arena *mem;
	const char *path;           /* as it was given, for messages */
	const char **folder;        /* the folders in it */
	size_t nfolder;
	om_map found;               /* by name: const om_pass * */
	om_pass_hook *hook;
	void *hook_arg;
};

/* Who gives what: the passes that others may ask for without naming them. */
static const struct {
	unsigned gives;
	const char *name;
} givers[] = {
	{OM_HAS_INLINE, "inline"},
	{OM_HAS_SHAPES, "shapes"},
	{OM_HAS_CONST, "fold"},
	{OM_HAS_LIVE, "live"},
	{OM_HAS_VIEWS, "views"},
	{OM_HAS_STORE, "inplace"},
	{OM_HAS_PLAN, "pack"},
};

/* The passes of the library, by name. */
#define DECLARE(name) const om_pass *om_pass_get_##name(void);
OM_PASSES(DECLARE)
#undef DECLARE

static const om_pass_entry *const built_in[] = {
#define ENTRY(name) om_pass_get_##name,
	OM_PASSES(ENTRY)
#undef ENTRY
};

const char *
om_default_pipeline(void)
{
	return "inline,shapes,fold,prune,order=mem,live,views,tie=asked,inplace,loops,pack";
}

om_host *
om_host_new(om_session *s, const char *path)
{
	om_arena *mem = om_arena_new();
	om_host *h = OM_NEW(mem, om_host);

	if (!path)
		path = getenv("ONNXMEM_PASS_PATH");
	h->mem = mem;
	h->session = s;
	h->path = om_strdup(mem, path ? path : OM_PASSDIR);
	h->folder = om_split(mem, h->path, ":", &h->nfolder);
	h->found = om_map_new(mem);
	for (size_t k = 0; k < sizeof built_in / sizeof built_in[0]; k++)
		om_map_set(&h->found, built_in[k]()->name, (void *)built_in[k]());
	return h;
}

/* What was loaded stays loaded: passes are static data, and unloading them
 * would take the names away that leak reports need. */
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
load(om_host *h, const char *file, const om_pass **out)
{
	void *dl = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!dl)
		return om_fail(h->session, OM_NOPASS, "%s", dlerror());
	om_pass_entry *entry;
	*(void **)&entry = dlsym(dl, "om_pass_get");
	if (!entry)
		return om_fail(h->session, OM_NOPASS, "%s is not a pass: it has no om_pass_get", file);
	const om_pass *pass = entry();
	if (pass->abi != OM_PASS_ABI)
		return om_fail(h->session, OM_NOPASS, "%s is a pass of version %d; this host takes version %d",
			file, pass->abi, OM_PASS_ABI);
	*out = pass;
	return OM_OK;
}

om_status
om_host_plugin(om_host *h, const char *file)
{
	const om_pass *pass;

	/* A name without a slash would be looked for among the system's libraries. */
	if (!strchr(file, '/'))
		file = om_printf(h->mem, "./%s", file);
	OM_TRY(load(h, file, &pass));
	om_map_set(&h->found, pass->name, (void *)pass);
	return OM_OK;
}

const om_pass *
om_host_pass(om_host *h, const char *name)
{
	const om_pass *pass = om_map_get(&h->found, name);

	if (pass)
		return pass;
	if (strchr(name, '/')) {
		om_fail(h->session, OM_NOPASS, "%s is no name of a pass; load a file with --plugin", name);
		return NULL;
	}
	for (size_t k = 0; k < h->nfolder; k++) {
		const char *file = om_printf(h->mem, "%s/%s.so", h->folder[k], name);
		FILE *there = fopen(file, "r");
		if (!there)
			continue;
		fclose(there);
		if (load(h, file, &pass) != OM_OK)
			return NULL;
		om_map_set(&h->found, pass->name, (void *)pass);
		return pass;
	}
	om_fail(h->session, OM_NOPASS, "there is no pass called %s: none is built in, and %s holds no %s.so; see `onnxmem passes`",
		name, h->path, name);
	return NULL;
}

static void
load_folder(om_host *h, const char *dir)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));) {
		const size_t n = strlen(e->d_name);
		if (n > ENDING && strcmp(e->d_name + n - ENDING, ".so") == 0)
			om_host_pass(h, om_strndup(h->mem, e->d_name, n - ENDING));
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
om_host_passes(om_host *h)
{
	size_t n = 0;

	for (size_t k = 0; k < h->nfolder; k++)
		load_folder(h, h->folder[k]);
	const om_pass **all = OM_NEWN(h->mem, const om_pass *, h->found.n + 1);
	for (size_t k = 0; k < h->found.cap; k++)
		if (h->found.slot[k].key)
			all[n++] = h->found.slot[k].value;
	qsort(all, n, sizeof *all, by_name);
	return all;
}

/* ---- What a pass asks the host. ---- */

const char *
om_option(const om_run *r, const char *name)
{
	size_t k = 0;

	while (strcmp(r->pass->options[k].name, name) != 0)
		k++;
	return r->option[k];
}

om_status
om_option_number(const om_run *r, const char *name, uint64_t *out)
{
	const char *text = om_option(r, name);
	char *end;

	*out = strtoull(text, &end, 10);
	if (end == text || *end || *text == '-')
		return om_fail(r->session, OM_USAGE, "%s: option %s wants a number, not %s",
			r->pass->name, name, text);
	return OM_OK;
}

void
om_count(om_run *r, const char *name, uint64_t n)
{
	size_t k = 0;

	while (strcmp(r->pass->counters[k].name, name) != 0)
		k++;
	r->counter[k] += n;
}

/* ---- Pipelines. ---- */

/* `text` is what follows the name: "", "=VALUE", ":option=VALUE..." */
static om_status
read_options(om_host *h, const om_pass *pass, char *text, const char **value)
{
	size_t n = 0;

	for (; pass->options && pass->options[n].name; n++)
		value[n] = pass->options[n].value;
	if (*text == '=' && n == 0)
		return om_fail(h->session, OM_USAGE, "pass %s takes no option", pass->name);
	for (bool first = *text == '='; *text; first = false) {
		size_t k = 0;
		char *name = first ? text : text + 1;
		char *is = strchr(name, '=');
		if (!is)
			return om_fail(h->session, OM_USAGE, "pass %s: option %s has no value", pass->name, name);
		char *end = is + 1 + strcspn(is + 1, ":");
		*is = '\0';
		while (!first && k < n && strcmp(pass->options[k].name, name) != 0)
			k++;
		if (k == n)
			return om_fail(h->session, OM_USAGE, "pass %s has no option called %s", pass->name, name);
		value[k] = om_strndup(h->mem, is + 1, (size_t)(end - is - 1));
		text = end;
	}
	return OM_OK;
}

static om_status
run_pass(om_host *h, om_prog *p, const om_pass *pass, const char *const *value)
{
	size_t ncounter = 0;

	while (pass->counters && pass->counters[ncounter].name)
		ncounter++;
	om_arena *scratch = om_arena_new();
	om_run r = {.session = h->session, .scratch = scratch, .pass = pass, .option = value, .host = h,
		.counter = OM_NEWN(scratch, uint64_t, ncounter + 1)};
	const double start = om_now_ms();
	om_status st = pass->run(&r, p);
	if (st == OM_OK) {
		p->has = (p->has & pass->keeps) | pass->gives;
		if (h->hook)
			h->hook(h->hook_arg, pass, &r, p, om_now_ms() - start);
	}
	om_arena_free(scratch);
#ifdef OM_CHECKED
	if (st == OM_OK)
		st = om_verify(h->session, p);
#endif
	return st == OM_OK ? st : om_note(h->session, st, "running %s", pass->name);
}

static om_status run_named(om_host *h, om_prog *p, const char *text, unsigned depth);

static om_status
provide(om_host *h, om_prog *p, const om_pass *pass, unsigned depth)
{
	for (size_t k = 0; k < sizeof givers / sizeof givers[0]; k++)
		if (givers[k].gives & pass->needs & ~p->has)
			OM_TRY(run_named(h, p, givers[k].name, depth + 1));
	return OM_OK;
}

static om_status
run_named(om_host *h, om_prog *p, const char *text, unsigned depth)
{
	const char *value[32];
	const size_t n = strcspn(text, "=:");
	const char *name = om_strndup(h->mem, text, n);
	char *options = om_strdup(h->mem, text + n);

	const om_pass *pass = om_host_pass(h, name);
	if (!pass)
		return OM_NOPASS;
	if (depth > sizeof givers / sizeof givers[0])
		return om_fail(h->session, OM_NOPASS, "what pass %s needs is never given", name);
	OM_TRY(read_options(h, pass, options, value));
	OM_TRY(provide(h, p, pass, depth));
	return run_pass(h, p, pass, value);
}

om_status
om_host_run(om_host *h, om_prog *p, const char *pipeline)
{
	size_t n;
	const char **pass = om_split(h->mem, pipeline, ",", &n);

	for (size_t k = 0; k < n; k++)
		OM_TRY(run_named(h, p, pass[k], 0));
	return OM_OK;
}

om_status
om_run_passes(om_run *r, om_prog *p, const char *pipeline)
{
	om_pass_hook *hook = r->host->hook;

	r->host->hook = NULL;
	const om_status st = om_host_run(r->host, p, pipeline);
	r->host->hook = hook;
	return st;
}
