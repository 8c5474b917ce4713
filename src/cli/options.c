/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the options of the command line. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/sizes.h"
#include "cli/cli.h"

const char *
om_cli_next(const om_cli *c, const char *name, size_t *at)
{
	while (*at < c->nset) {
		const om_set_opt *s = &c->set[(*at)++];
		if (strcmp(s->opt->name, name) == 0)
			return s->value;
	}
	return NULL;
}

const char *
om_cli_option(const om_cli *c, const char *name)
{
	const char *last = NULL;

	for (size_t at = 0; at < c->nset;) {
		const char *value = om_cli_next(c, name, &at);
		last = value ? value : last;
	}
	return last;
}

bool
om_cli_has(const om_cli *c, const char *name)
{
	return om_cli_option(c, name) != NULL;
}

bool
om_cli_ends_in(const char *path, const char *ending)
{
	const size_t n = strlen(path), m = strlen(ending);
	return n >= m && strcmp(path + n - m, ending) == 0;
}

om_status
om_cli_number(om_cli *c, const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *text = om_cli_option(c, name);
	char *end;

	if (!text)
		return OM_OK;
	errno = 0;
	const uint64_t n = strtoull(text, &end, 10);
	if (end == text || *end || *text == '-' || errno || n < min || n > max)
		return om_fail(c->session, OM_USAGE, "option --%s requires a number from %llu to %llu, not %s",
			name, (unsigned long long)min, (unsigned long long)max, text);
	*out = n;
	return OM_OK;
}

om_status
om_cli_float(om_cli *c, const char *name, double *out)
{
	const char *text = om_cli_option(c, name);
	char *end;

	if (!text)
		return OM_OK;
	const double x = strtod(text, &end);
	if (end == text || *end || !(x >= 0))
		return om_fail(c->session, OM_USAGE, "option --%s requires a number of at least 0, not %s",
			name, text);
	*out = x;
	return OM_OK;
}

om_status
om_cli_size(om_cli *c, const char *what, const char *text, uint64_t *out)
{
	static const char units[] = "KMG";
	char *end;

	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	if (end == text || *text == '-' || errno || (unit ? end[1] : *end) || n > UINT64_MAX >> shift)
		return om_fail(c->session, OM_USAGE, "%s requires a size such as 65536, 256K or 16M, not %s",
			what, text);
	*out = n << shift;
	return OM_OK;
}

bool
om_cli_percent(const char *text, double *percent)
{
	char *end;

	errno = 0;
	*percent = strtod(text, &end);
	return end != text && strcmp(end, "%") == 0 && !errno;
}

uint64_t
om_cli_allowed(const om_growth *g, uint64_t before)
{
	return om_size_sum(om_saturate_unsigned((double)before * g->percent / 100, 64), g->bytes);
}

om_status
om_cli_run_limits(om_cli *c, om_exec_options *o)
{
	const char *memory = om_cli_option(c, "max-memory");

	o->cache = om_cli_option(c, "cache");
	if (memory)
		OM_TRY(om_cli_size(c, "option --max-memory", memory, &o->max_memory));
	OM_TRY(om_cli_threads(c, &o->threads));
	o->precise = om_cli_has(c, "precise");
	o->no_capture = om_cli_has(c, "no-capture");
	return om_cli_number(c, "max-iterations", 1, UINT64_MAX, &o->max_iterations);
}
