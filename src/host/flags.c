/* SPDX-License-Identifier: Apache-2.0 */
/* Options of passes that are also command-line options. */
#include <config.h>

#include "host/host.h"
#include "base/split.h"

/* A pipeline under construction. */
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

/* Does the pass named by `text` require or provide a fact that `pass` does not preserve? */
static bool
comes_after(om_host *h, const char *text, const om_pass *pass)
{
	const struct found *f = om_map_get(&h->by_name, om_strndup(h->mem, text, strcspn(text, "=:")));
	return f && (f->pass->needs | f->pass->gives) & ~pass->keeps;
}

static bool
stands_in(om_host *h, const char *pipeline, const om_pass *pass)
{
	size_t n, k = 0;
	const char **item = om_split(h->mem, pipeline, ",", &n);

	while (k < n && !is_pass(item[k], pass->name))
		k++;
	return k < n;
}

static const char *
with_pass(om_host *h, const char *pipeline, const om_pass *pass)
{
	struct text t = {h->mem, ""};
	bool done = stands_in(h, pipeline, pass);
	size_t n;
	const char **item = om_split(h->mem, pipeline, ",", &n);

	for (size_t k = 0; k < n; k++) {
		if (!done && comes_after(h, item[k], pass)) {
			append(&t, pass->name);
			done = true;
		}
		append(&t, item[k]);
	}
	if (!done)
		append(&t, pass->name);
	return t.text;
}

/* Set the option at each occurrence of the pass. */
static const char *
with_option(om_host *h, const char *pipeline, const om_flag_set *set)
{
	struct text t = {h->mem, ""};
	size_t n;
	const char **item = om_split(h->mem, pipeline, ",", &n);

	for (size_t k = 0; k < n; k++)
		append(&t, is_pass(item[k], set->pass->name)
			? om_printf(h->mem, "%s:%s=%s", item[k], set->flag->option, set->value) : item[k]);
	return t.text;
}

om_status
om_host_flags(om_host *h, const om_flag_set *set, size_t n, const char **pipeline)
{
	for (size_t k = 0; k < n; k++) {
		if (!*set[k].value || strpbrk(set[k].value, ",:"))
			return om_fail(h->session, OM_USAGE, "option --%s requires %s, not %s", set[k].flag->name, set[k].flag->arg,
				set[k].value);
		if (set[k].flag->adds)
			*pipeline = with_pass(h, *pipeline, set[k].pass);
	}
	for (size_t k = 0; k < n; k++)
		*pipeline = with_option(h, *pipeline, &set[k]);
	return OM_OK;
}
