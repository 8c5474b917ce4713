/* Options of passes that are options of the command line, too. */
#include <config.h>

#include "host/host.h"

/* A pipeline that is being written. */
struct text {
	om_arena *mem;
	const char *text;
};

static void
append(struct text *t, const char *pass)
{
	t->text = om_printf(t->mem, "%s%s%s", t->text, *t->text ? "," : "", pass);
}

static bool
is_pass(const char *text, const char *name)
{
	const size_t n = strcspn(text, "=:");
	return strlen(name) == n && memcmp(text, name, n) == 0;
}

/* Does the pass that `text` names use what `pass` does not keep? */
static bool
comes_after(om_host *h, const char *text, const om_pass *pass)
{
	const struct found *f = om_map_get(&h->by_name, om_strndup(h->mem, text, strcspn(text, "=:")));
	return f && (f->pass->needs | f->pass->gives) & ~pass->keeps;
}

/* `pipeline` with the option set wherever the pass stands; where it stands nowhere, with the
 * pass, if its flag adds it. */
static const char *
with_option(om_host *h, const char *pipeline, const om_pass *pass, const om_pass_flag *f, const char *value)
{
	struct text t = {h->mem, ""};
	const char *set = om_printf(h->mem, ":%s=%s", f->option, value), *added = om_printf(h->mem, "%s%s", pass->name, set);
	bool done = !f->adds;
	size_t n;
	const char **item = om_split(h->mem, pipeline, ",", &n);

	for (size_t k = 0; k < n; k++)
		done = done || is_pass(item[k], pass->name);
	for (size_t k = 0; k < n; k++) {
		if (!done && comes_after(h, item[k], pass)) {
			append(&t, added);
			done = true;
		}
		append(&t, is_pass(item[k], pass->name) ? om_printf(h->mem, "%s%s", item[k], set) : item[k]);
	}
	if (!done)
		append(&t, added);
	return t.text;
}

om_status
om_host_flag(om_host *h, const char **pipeline, const char *flag, const char *value)
{
	bool found = false;

	for (size_t k = 0; k < h->n; k++) {
		const om_pass *pass = h->all[k]->pass;
		for (const om_pass_flag *f = pass->flags; f && f->name; f++) {
			if (strcmp(f->name, flag) != 0)
				continue;
			if (!*value || strpbrk(value, ",:"))
				return om_fail(h->session, OM_USAGE, "option --%s wants %s, not %s", flag, f->arg, value);
			*pipeline = with_option(h, *pipeline, pass, f, value);
			found = true;
		}
	}
	return found ? OM_OK : om_fail(h->session, OM_USAGE, "no pass has an option --%s", flag);
}
