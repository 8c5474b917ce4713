/* SPDX-License-Identifier: Apache-2.0 */
/* The options that a baseline records.
 *
 * Figures are comparable if they were made with the same options, so the baseline has those of the
 * command line that decide what is planned, and later runs use them without repeating them. */
#include <config.h>

#include <string.h>

#include "cli/suite.h"

/* Options of the run of a suite, which a run may change. */
static bool
is_of_run(const char *name)
{
	return strcmp(name, "allow") == 0 || strcmp(name, "plan-only") == 0;
}

/* A plugin is a file of this machine. */
static bool
is_kept(const om_opt *o)
{
	return (om_cli_decides_plan(o) || is_of_run(o->name)) && strcmp(o->name, "plugin") != 0;
}

static const char *
word_of(om_cli *c, const om_set_opt *set)
{
	return set->opt->arg ? om_printf(c->mem, "--%s=%s", set->opt->name, set->value) : om_printf(c->mem, "--%s", set->opt->name);
}

const char **
om_baseline_options(om_cli *c, size_t *n)
{
	const char **word = OM_NEWN(c->mem, const char *, c->nset + 1);

	*n = 0;
	for (size_t k = 0; k < c->nset; k++)
		if (is_kept(c->set[k].opt))
			word[(*n)++] = word_of(c, &c->set[k]);
	return word;
}

static bool
has_name(const char *word, const char *name)
{
	const size_t n = strlen(name);
	return strncmp(word + 2, name, n) == 0 && (!word[2 + n] || word[2 + n] == '=');
}

/* The words of an option, in one text; "" if there are none. */
static const char *
words_of(om_cli *c, const char *const *word, size_t n, const char *name)
{
	const char *text = "";

	for (size_t k = 0; k < n; k++)
		if (has_name(word[k], name))
			text = om_printf(c->mem, "%s%s%s", text, *text ? " " : "", word[k]);
	return text;
}

/* Options that are given have to be those of the baseline. */
static om_status
compare(om_cli *c, const om_suite *suite, const om_baseline *b)
{
	size_t n;
	const char **given = om_baseline_options(c, &n);

	for (size_t k = 0; k < c->nset; k++) {
		const char *name = c->set[k].opt->name;
		if (!is_kept(c->set[k].opt) || is_of_run(name))
			continue;
		const char *now = words_of(c, given, n, name), *before = words_of(c, b->option, b->noption, name);
		if (strcmp(now, before) != 0)
			return om_fail(c->session, OM_USAGE, "%s was made %s%s, and this run has %s; --update of all models makes it again",
				suite->baseline, *before ? "with " : "without --", *before ? before : name, now);
	}
	return OM_OK;
}

/* An option of the baseline that the command line does not have. */
static om_status
use(om_cli *c, const om_suite *suite, const char *word)
{
	const size_t had = c->nset, args = c->narg;
	om_status st = om_cli_words(c, 2, (const char *const[]){"regress", word});

	if (st != OM_OK)
		return om_note(c->session, st, "using the options of %s", suite->baseline);
	if (c->narg != args || c->nset != had + 1 || !is_kept(c->set[had].opt))
		return om_fail(c->session, OM_MALFORMED, "%s: %s is not an option that a baseline has", suite->baseline, word);
	return OM_OK;
}

om_status
om_baseline_use_options(om_cli *c, const om_suite *suite, const om_baseline *b, bool all)
{
	size_t n;
	const char **given = om_baseline_options(c, &n);

	if (!b->option)
		return OM_OK;
	if (!om_cli_has(c, "update") || !all)
		OM_TRY(compare(c, suite, b));
	for (size_t k = 0; k < b->noption; k++) {
		const char *name = om_strndup(c->mem, b->option[k] + 2, strcspn(b->option[k] + 2, "="));
		if (!*words_of(c, given, n, name))
			OM_TRY(use(c, suite, b->option[k]));
	}
	return OM_OK;
}
