/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: passes of third parties.
 *
 * A module may have been built for another version, so every field of its om_pass is
 * validated before other code uses it. */
#include <config.h>

#include <stddef.h>
#include <string.h>

#include "base/load_module.h"
#include "base/split.h"
#include "host/host.h"
#include "ir/facts.h"

/* Size of the fields that every version has. */
enum { SMALLEST = offsetof(om_pass, run) + sizeof(((om_pass *)0)->run) };

/* Other characters have a meaning in pipelines. */
static bool
is_name(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	return text && *text && *text != '-' && text[strspn(text, letters)] == '\0';
}

static om_status
check_size(om_host *h, const char *file, const om_pass *pass)
{
	if (pass->struct_size < SMALLEST || pass->struct_size > sizeof *pass)
		return om_fail(h->session, OM_NOPASS, "%s: its om_pass has %zu bytes, and this library expects %zu: "
			"compile it with the headers of onnxmem %s", file, pass->struct_size, sizeof *pass, PACKAGE_VERSION);
	if (pass->abi != OM_PASS_ABI)
		return om_fail(h->session, OM_NOPASS, "%s: its om_pass is of version %d, and this library expects version %d: "
			"compile it with the headers of onnxmem %s", file, pass->abi, OM_PASS_ABI, PACKAGE_VERSION);
	return OM_OK;
}

static om_status
check_option(om_host *h, const char *file, const om_pass *pass, size_t k)
{
	const om_pass_option *o = &pass->options[k];

	if (!is_name(o->name))
		return om_fail(h->session, OM_NOPASS, "%s: option %zu of pass %s has a name that no pipeline can contain: %s", file,
			k, pass->name, o->name);
	if (!o->value || !o->brief)
		return om_fail(h->session, OM_NOPASS, "%s: option %s of pass %s has no %s", file, o->name, pass->name,
			o->value ? "brief" : "value");
	for (size_t i = 0; i < k; i++)
		if (strcmp(pass->options[i].name, o->name) == 0)
			return om_fail(h->session, OM_NOPASS, "%s: pass %s has two options called %s", file, pass->name, o->name);
	return OM_OK;
}

static om_status
check_options(om_host *h, const char *file, const om_pass *pass)
{
	for (size_t k = 0; pass->options && pass->options[k].name; k++) {
		if (k == OM_PASS_MOST)
			return om_fail(h->session, OM_NOPASS, "%s: pass %s has more than %d options, or their list has no end", file,
				pass->name, OM_PASS_MOST);
		OM_TRY(check_option(h, file, pass, k));
	}
	return OM_OK;
}

static om_status
check_flag(om_host *h, const char *file, const om_pass *pass, const om_pass_flag *f)
{
	const om_pass_option *o = pass->options;

	if (!is_name(f->name) || !f->option || (!f->arg && !f->value) || !f->brief || (unsigned)f->kind > OM_FLAG_FLOAT)
		return om_fail(h->session, OM_NOPASS, "%s: flag %s of pass %s has no option, arg, brief, or valid kind",
			file, f->name, pass->name);
	while (o && o->name && strcmp(o->name, f->option) != 0)
		o++;
	if (!o || !o->name)
		return om_fail(h->session, OM_NOPASS, "%s: flag %s of pass %s sets its option %s, which it does not declare", file,
			f->name, pass->name, f->option);
	for (const om_pass_flag *before = pass->flags; before < f; before++)
		if (strcmp(before->name, f->name) == 0 && strcmp(before->option, f->option) == 0)
			return om_fail(h->session, OM_NOPASS, "%s: pass %s has the flag %s twice", file, pass->name, f->name);
	return OM_OK;
}

static om_status
check_flags(om_host *h, const char *file, const om_pass *pass)
{
	for (size_t k = 0; pass->flags && pass->flags[k].name; k++) {
		if (k == OM_PASS_MOST)
			return om_fail(h->session, OM_NOPASS, "%s: pass %s has more than %d flags, or their list has no end", file,
				pass->name, OM_PASS_MOST);
		OM_TRY(check_flag(h, file, pass, &pass->flags[k]));
	}
	return OM_OK;
}

static om_status
check_counters(om_host *h, const char *file, const om_pass *pass)
{
	for (size_t k = 0; pass->counters && pass->counters[k].name; k++) {
		const om_pass_counter *o = &pass->counters[k];
		if (k == OM_PASS_MOST)
			return om_fail(h->session, OM_NOPASS, "%s: pass %s has more than %d counters, or their list has no end", file,
				pass->name, OM_PASS_MOST);
		if (!is_name(o->name) || !o->brief)
			return om_fail(h->session, OM_NOPASS, "%s: counter %zu of pass %s has no name or no brief", file, k,
				pass->name);
		for (size_t i = 0; i < k; i++)
			if (strcmp(pass->counters[i].name, o->name) == 0)
				return om_fail(h->session, OM_NOPASS, "%s: pass %s has two counters called %s", file, pass->name,
					o->name);
	}
	return OM_OK;
}

/* Named facts; facts that have a bit are not permitted. */
static om_status
check_facts(om_host *h, const char *file, const om_pass *pass, const char *names)
{
	size_t n;
	const char **name = om_split(h->mem, names ? names : "", " ", &n);

	for (size_t k = 0; k < n; k++) {
		if (!is_name(name[k]))
			return om_fail(h->session, OM_NOPASS, "%s: pass %s names a fact %s; names are separated by one space", file,
				pass->name, name[k]);
		if (om_fact_bit(name[k]))
			return om_fail(h->session, OM_NOPASS, "%s: pass %s names the fact %s, which has a constant, OM_HAS_...",
				file, pass->name, name[k]);
	}
	return OM_OK;
}

static om_status
check_pass(om_host *h, const char *file, const om_pass *pass)
{
	if (!is_name(pass->name))
		return om_fail(h->session, OM_NOPASS, "%s: its pass has %s", file, pass->name && *pass->name
			? om_printf(h->mem, "a name that no pipeline can contain: %s", pass->name) : "no name");
	if (!pass->brief || !pass->run)
		return om_fail(h->session, OM_NOPASS, "%s: pass %s has no %s", file, pass->name, pass->run ? "brief" : "run");
	OM_TRY(check_options(h, file, pass));
	OM_TRY(check_counters(h, file, pass));
	OM_TRY(check_flags(h, file, pass));
	OM_TRY(check_facts(h, file, pass, pass->needs_facts));
	OM_TRY(check_facts(h, file, pass, pass->gives_facts));
	return check_facts(h, file, pass, pass->keeps_facts);
}

om_status
om_module_load(om_host *h, const char *file, const om_pass **out)
{
	void *module = om_module_open(file);

	if (!module)
		return om_fail(h->session, OM_NOPASS, "%s", om_load_module_error());
	om_pass_entry *entry;
	*(void **)&entry = om_module_symbol(module, "om_pass_get");
	if (!entry)
		return om_fail(h->session, OM_NOPASS, "%s is not a pass: it has no om_pass_get", file);
	const om_pass *pass = entry();
	if (!pass)
		return om_fail(h->session, OM_NOPASS, "%s is not a pass: its om_pass_get returns NULL", file);
	OM_TRY(check_size(h, file, pass));
	/* Fields that the module's version of the header lacks are zero. */
	om_pass *whole = OM_NEW(h->mem, om_pass);
	memcpy(whole, pass, pass->struct_size);
	OM_TRY(check_pass(h, file, whole));
	*out = whole;
	return OM_OK;
}
