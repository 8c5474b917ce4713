/* SPDX-License-Identifier: Apache-2.0 */
/* Execution of pipelines: options of passes, required facts, provided facts. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "alloc/assign.h"
#include "base/guard.h"
#include "base/split.h"
#include "host/host.h"
#include "host/option.h"
#include "ir/facts.h"
#include "ir/limits.h"
#include "onnxmem/assignment.h"

/* Passes that are waiting for required facts, innermost first. */
struct waiting {
	const om_pass *pass;
	const struct waiting *outer;
};

/* ---- Interface for a running pass. ---- */

static void OM_PRINTF(2, 3)
misuse(const om_run *r, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (r->host->misuse)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	r->host->misuse = om_strdup(r->host->mem, text);
}

const char *
om_option(const om_run *r, const char *name)
{
	const om_pass_option *o = r->pass->options;

	for (size_t k = 0; o && o[k].name; k++)
		if (strcmp(o[k].name, name) == 0)
			return r->option[k];
	misuse(r, "pass %s reads its option %s, which it does not declare", r->pass->name, name);
	return "";
}

om_status
om_option_number(const om_run *r, const char *name, uint64_t *out)
{
	const char *text = om_option(r, name);
	char *end;

	*out = strtoull(text, &end, 10);
	if (end == text || *end || *text == '-')
		return om_fail(r->session, OM_USAGE, "%s: option %s requires a number, not %s",
			r->pass->name, name, text);
	return OM_OK;
}

om_status
om_option_float(const om_run *r, const char *name, double *out)
{
	const char *text = om_option(r, name);
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end || !(*out >= 0 && *out <= 1e18))
		return om_fail(r->session, OM_USAGE, "%s: option %s requires a number of at least 0, not %s",
			r->pass->name, name, text);
	return OM_OK;
}

void
om_option_record(om_run *r, const char *name, uint64_t value)
{
	om_option(r, name);  /* checks that it is declared */
	r->recorded = om_printf(r->host->mem, "%s:%s=%llu", r->recorded, name, (unsigned long long)value);
}

void
om_count(om_run *r, const char *name, uint64_t n)
{
	const om_pass_counter *c = r->pass->counters;

	for (size_t k = 0; c && c[k].name; k++)
		if (strcmp(c[k].name, name) == 0) {
			r->counter[k] += n;
			return;
		}
	misuse(r, "pass %s counts %s, which it does not declare", r->pass->name, name);
}

void
om_limit_reached(om_run *r, om_prog *p, const char *option, const char *what)
{
	const om_limit limit = {r->pass->name, option, what};

	if (option)
		om_option(r, option);  /* checks that it is declared */
	om_limit_add(p, &limit);
}

om_status
om_fact_attach(om_run *r, om_prog *p, const char *name, om_arena *mem, const void *data)
{
	if (!om_facts_name(r->pass->gives_facts, name)) {
		om_arena_free(mem);
		return om_fail(r->session, OM_NOPASS, "pass %s attaches the fact %s, which it does not declare", r->pass->name, name);
	}
	om_fact *f = om_fact_entry(p, name);
	om_arena_free(f->mem);
	f->mem = mem;
	f->data = data;
	return OM_OK;
}

/* ---- Options. ---- */

/* `text` is the part after the name: "", "=VALUE", ":option=VALUE..."  `value` has capacity for
 * OM_PASS_MOST options, the maximum of a pass. */
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

/* ---- A run. ---- */

/* Validate the status returned by a pass: it may have misused the interface, returned an unknown
 * status, or failed without a message. */
static om_status
returned(om_host *h, const om_pass *pass, om_status st)
{
	enum { NSTATUS = 0
#define ONE(name, code, text) + 1
		OM_STATUS_LIST(ONE)
#undef ONE
	};

	if (h->misuse)
		return om_fail(h->session, OM_NOPASS, "%s", h->misuse);
	if ((unsigned)st >= NSTATUS)
		return om_fail(h->session, OM_NOPASS,
			"pass %s returned %d, which is not a status", pass->name, (int)st);
	if (st != OM_OK && !*om_message(h->session))
		return om_fail(h->session, st,
			"pass %s failed without a message: %s", pass->name, om_status_text(st));
	return st;
}

/* Run a pass with an empty message and no recorded misuse; both are restored afterwards. */
static om_status
call(om_host *h, om_prog *p, const om_pass *pass, om_run *r)
{
	const char *message = om_strdup(r->scratch, om_message(h->session)), *outer = h->misuse;

	om_fail(h->session, OM_NOPASS, "%s", "");
	h->misuse = NULL;
	const om_status st = returned(h, pass, pass->run(r, p));
	h->misuse = outer;
	if (st == OM_OK)
		om_fail(h->session, OM_NOPASS, "%s", message);
	return st;
}

/* Verify the program after a pass from a module; checked builds verify after every pass. */
static om_status
check(om_host *h, om_prog *p, const om_pass *pass)
{
	const bool is_foreign = om_host_is_foreign(h, pass);

#ifdef OM_CHECKED
	OM_TRY(om_verify(h->session, p));
	OM_TRY(om_facts_check(h, p, pass->keeps & ~pass->gives));
#else
	if (is_foreign)
		OM_TRY(om_verify(h->session, p));
#endif
	return is_foreign ? om_facts_check_given(h, p, pass) : OM_OK;
}

static void
tell_run(om_host *h, om_prog *p, const om_run *r, double ms)
{
	if (h->hook)
		h->hook(h->hook_arg, r->pass, r, p, ms);
}

static om_status
run_pass(om_host *h, om_prog *p, const om_pass *pass, const char *const *value, const char **recorded)
{
	const om_fact_change facts = {pass->needs, pass->gives, pass->keeps, pass->needs_facts, pass->gives_facts,
		pass->keeps_facts};
	om_arena *scratch = om_arena_new();
	om_run r = {.session = h->session, .scratch = scratch, .pass = pass, .option = value, .host = h,
		.request = h->request, .counter = OM_NEWN(scratch, uint64_t, OM_PASS_MOST), .recorded = ""};
	const double start = om_now_ms();

	om_facts_before(p, &facts);
	om_limits_forget(p, pass->name);
	om_status st = call(h, p, pass, &r);
	om_facts_after(p, &facts, st == OM_OK);
	if ((~pass->keeps | pass->gives) & (OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST))
		p->op_facts = NULL;
	om_assignment_settle(p);
	const double ms = om_now_ms() - start;
	if (st == OM_OK)
		st = check(h, p, pass);
	if (st == OM_OK)
		tell_run(h, p, &r, ms);
	else
		om_facts_set(p, p->has & ~pass->gives, 0), om_assignment_settle(p);
	om_arena_free(scratch);
	*recorded = r.recorded;
	return st == OM_OK ? st : om_note(h->session, st, "running %s", pass->name);
}

/* ---- Required facts. ---- */

static om_status run_named(om_host *h, om_prog *p, const char *text, const struct waiting *outer);

/* Find the first required fact that is not known: its bit, or 0 and its name; false: all are known. */
static bool
missing(om_host *h, const om_prog *p, const om_pass *pass, unsigned *bit, const char **name)
{
	size_t n;
	const char **names = om_split(h->mem, pass->needs_facts ? pass->needs_facts : "", " ", &n);
	const unsigned bits = pass->needs & ~p->has;

	*bit = bits & -bits;
	*name = om_fact_text(bits);
	for (size_t k = 0; k < n && !*bit; k++)
		if (!om_fact_known(p, names[k])) {
			*name = names[k];
			return true;
		}
	return *bit != 0;
}

static om_status
check_giver(om_host *h, const om_pass *pass, const char *fact, const om_pass *giver, const struct waiting *w)
{
	if (!giver)
		return om_fail(h->session, OM_NOPASS, "pass %s requires the fact %s, which no pass gives", pass->name, fact);
	for (; w; w = w->outer)
		if (w->pass == giver)
			return om_fail(h->session, OM_NOPASS, "pass %s requires the fact %s of pass %s, which requires a fact of %s",
				pass->name, fact, giver->name, pass->name);
	return OM_OK;
}

/* Run providers until all required facts are known.  A provider may invalidate other facts, so
 * the number of attempts is limited: two providers may invalidate each other's. */
static om_status
provide(om_host *h, om_prog *p, const struct waiting *w)
{
	enum { TRIES = 64 };
	unsigned bit;
	const char *fact;

	for (unsigned k = 0; missing(h, p, w->pass, &bit, &fact); k++) {
		const om_pass *giver = om_host_giver(h, bit, fact);
		OM_TRY(check_giver(h, w->pass, fact, giver, w));
		if (k == TRIES)
			return om_fail(h->session, OM_NOPASS,
				"pass %s cannot have all facts that it requires: the fact %s is invalidated "
				"repeatedly", w->pass->name, fact);
		OM_TRY(run_named(h, p, giver->name, w));
	}
	return OM_OK;
}

static bool
changes_ops(const om_pass *pass)
{
	const unsigned decides = OM_HAS_SCHEDULE | OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE | OM_HAS_PLAN;

	return !(pass->gives & decides) && !(pass->keeps & OM_HAS_LIVE);
}

/* A plan for an executor lists the passes after which it is valid: reading it runs them again. */
static void
record(om_prog *p, const om_pass *pass, const char *text)
{
	if (changes_ops(pass))
		p->passes = p->passes ? om_printf(p->mem, "%s,%s", p->passes, text) : om_strdup(p->mem, text);
}

static om_status
run_named(om_host *h, om_prog *p, const char *text, const struct waiting *outer)
{
	const char *value[OM_PASS_MOST], *recorded;
	const size_t n = strcspn(text, "=:");
	char *options = om_strdup(h->mem, text + n);
	const om_pass *pass = om_host_pass(h, om_strndup(h->mem, text, n));

	if (!pass)
		return OM_NOPASS;
	OM_TRY(read_options(h, pass, options, value));
	OM_TRY(provide(h, p, &(struct waiting){pass, outer}));
	OM_TRY(run_pass(h, p, pass, value, &recorded));
	record(p, pass, om_printf(h->mem, "%s%s", text, recorded));
	return OM_OK;
}

static om_status
host_run_guarded(om_host *h, om_prog *p, const char *pipeline)
{
	size_t n;
	const char **pass = om_split(h->mem, pipeline, ",", &n);

	om_assignment_comply(p, h->request);
	for (size_t k = 0; k < n; k++)
		OM_TRY(run_named(h, p, pass[k], NULL));
	return OM_OK;
}

static om_status
host_run(om_host *h, om_prog *p, const char *pipeline)
{
	OM_GUARDED(h->session, host_run_guarded(h, p, pipeline));
}

om_status
om_host_run(om_host *h, om_prog *p, const char *pipeline)
{
	const om_status st = host_run(h, p, pipeline);

	if (st == OM_MEMORY) {  /* a pass may have been unwound at any point */
		om_facts_set(p, 0, 0);
		om_assignment_settle(p);
	}
	return st;
}

om_status
om_host_run_for(om_host *h, om_prog *p, const char *pipeline, const om_plan_request *r)
{
	const om_plan_request *own = h->request;

	h->request = r;
	const om_status st = om_host_run(h, p, pipeline);
	h->request = own;
	return st;
}

static om_status
check_recorded(om_host *h, const char *pipeline)
{
	enum { MOST = 256 };
	size_t n;
	const char **text = om_split(h->mem, pipeline, ",", &n);

	if (n > MOST)
		return om_fail(h->session, OM_BADPLAN, "the plan is made after %zu passes, more than %d", n, MOST);
	for (size_t k = 0; k < n; k++) {
		const om_pass *pass = om_host_pass(h, om_strndup(h->mem, text[k], strcspn(text[k], "=:")));
		if (!pass)
			return OM_NOPASS;
		if (!changes_ops(pass))
			return om_fail(h->session, OM_BADPLAN, "the plan is made after pass %s, which changes no op", pass->name);
	}
	return OM_OK;
}

static om_status
run_recorded(om_host *h, om_prog *p, const char *pipeline)
{
	OM_TRY(check_recorded(h, pipeline));
	return om_host_run(h, p, pipeline);
}

om_status
om_host_run_recorded(om_host *h, om_prog *p, const char *pipeline)
{
	OM_GUARDED(h->session, run_recorded(h, p, pipeline));
}
