/* SPDX-License-Identifier: Apache-2.0 */
/* Options for ranges of sizes. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "onnxmem/builder.h"
#include "onnxmem/plan.h"

/* ---- Options. ---- */

/* Split "SYMBOL=REST".  Names may contain =: the last one is the separator. */
static bool
split(om_cli *c, const char *text, const char **symbol, const char **rest)
{
	const char *is = strrchr(text, '=');

	if (!is || is == text)
		return false;
	*symbol = om_strndup(c->mem, text, (size_t)(is - text));
	*rest = is + 1;
	return true;
}

static bool
read_size(const char *text, const char **end, int64_t *n)
{
	char *after;

	errno = 0;
	*n = strtoll(text, &after, 10);
	*end = after;
	return after > text && !errno && *n >= 0;
}

om_status
om_cli_dim(om_cli *c, const char *name, const char *text, const char **symbol, int64_t *n)
{
	const char *rest, *end;

	if (split(c, text, symbol, &rest) && read_size(rest, &end, n) && !*end)
		return OM_OK;
	return om_fail(c->session, OM_USAGE, "--%s requires SYMBOL=N such as batch=1, or the dims that it follows from, as total=past+new, not %s", name, text);
}

/* Numbers, and what looks like one, are no names of dims. */
bool
om_cli_is_definition(om_cli *c, const char *text)
{
	const char *symbol, *rest;

	return split(c, text, &symbol, &rest) && *rest && !strchr("0123456789+-", rest[strspn(rest, " ")]);
}

om_status
om_cli_define_dims(om_cli *c)
{
	const char *text, *symbol, *rest;

	for (size_t at = 0; (text = om_cli_next(c, "dim", &at));)
		if (om_cli_is_definition(c, text) && split(c, text, &symbol, &rest)) {
			const om_status st = om_prog_define_dim(c->session, c->loaded, symbol, rest);
			if (st != OM_OK)
				return om_note(c->session, st, "--dim %s", text);
		}
	return OM_OK;
}

static om_status
read_range(om_cli *c, const char *text, om_dim_range *r)
{
	const char *rest, *end;

	r->step = 1;
	if (!split(c, text, &r->symbol, &rest) || !read_size(rest, &end, &r->low) || strncmp(end, "..", 2) != 0
	    || !read_size(end + 2, &end, &r->high)
	    || (*end == ':' && (!read_size(end + 1, &end, &r->step) || r->step == 0)) || *end)
		return om_fail(c->session, OM_USAGE, "--dim-range requires SYMBOL=LO..HI such as seq=1..512, or SYMBOL=LO..HI:STEP, not %s", text);
	if (r->low > r->high)
		return om_fail(c->session, OM_USAGE, "--dim-range %s has no size: it begins at %lld, above its end, %lld", text,
			(long long)r->low, (long long)r->high);
	if (!om_dim_range_has(r, r->high))
		return om_fail(c->session, OM_USAGE, "--dim-range %s: in steps of %lld from %lld the last size is %lld, not %lld", text,
			(long long)r->step, (long long)r->low, (long long)(r->high - (r->high - r->low) % r->step), (long long)r->high);
	return OM_OK;
}

/* The range in the place after the last one. */
static om_status
add_range(om_cli *c, const char *text)
{
	om_dim_range *r = &c->range[c->nrange];

	OM_TRY(read_range(c, text, r));
	for (uint32_t k = 0; k < c->nrange; k++)
		if (strcmp(c->range[k].symbol, r->symbol) == 0)
			return om_fail(c->session, OM_USAGE, "--dim-range %s is given twice", r->symbol);
	c->nrange++;
	return OM_OK;
}

om_status
om_cli_ranges(om_cli *c)
{
	const char *text;

	c->range = OM_NEWN(c->mem, om_dim_range, c->nset + c->nassumed + 1);
	c->nrange = 0;
	for (size_t at = 0; (text = om_cli_next(c, "dim-range", &at));)
		OM_TRY(add_range(c, text));
	for (uint32_t k = 0; k < c->nassumed; k++)
		c->range[c->nrange++] = c->assumed[k];
	return OM_OK;
}

om_status
om_cli_note_ranges(om_cli *c, om_status st)
{
	const char *all = om_cli_option(c, "default-dim"), *open = st == OM_SHAPE && all ? om_open_inputs_text(c->loaded, c->mem) : "";

	if (*open)
		return om_note(c->session, st, "taking %s for what is open in %s (--default-dim): --dim NAME=N gives other sizes", all, open);
	if (om_cli_has(c, "capacity"))  /* what does not fit may be rows */
		return st;
	for (uint32_t k = 0; k < c->nrange && st == OM_SHAPE; k++)
		if (om_dim_range_step(&c->range[k]) == 1 && c->range[k].low < c->range[k].high)
			return om_note(c->session, st, "planning for a range; if multiples alone are possible, --dim-range %s=LO..HI:STEP has them",
				c->range[k].symbol);
	return st;
}
