/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of the learning rate: functions of the number of a step alone, so that a resumed training has the same rates. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/split.h"
#include "onnxmem/trainer.h"

static const double pi = 3.14159265358979323846;

static const char *const shapes[] = {
	[OM_RATE_CONSTANT] = "constant", [OM_RATE_STEP] = "step", [OM_RATE_COSINE] = "cosine", [OM_RATE_LINEAR] = "linear",
};

/* What is left of the rate, of `all` = 1 at first, after that part of the steps. */
static double
share_at(const om_rate_schedule *s, uint64_t step)
{
	const double part = step < s->steps ? (double)step / (double)s->steps : 1;

	switch (s->shape) {
	case OM_RATE_STEP: return s->steps ? pow(s->factor, (double)(step / s->steps)) : 1;
	case OM_RATE_COSINE: return s->factor + (1 - s->factor) * (1 + cos(pi * part)) / 2;
	case OM_RATE_LINEAR: return s->factor + (1 - s->factor) * (1 - part);
	default: return 1;
	}
}

double
om_rate_at(const om_rate_schedule *s, double rate, uint64_t step)
{
	if (step < s->warmup)
		return rate * ((double)(step + 1) / (double)s->warmup);
	return rate * share_at(s, step - s->warmup);
}

/* ---- Texts. ---- */

static om_status
wrong(om_session *s, const char *text)
{
	return om_fail(s, OM_USAGE, "a schedule is constant, step:STEPS:FACTOR, cosine:STEPS[:LEAST] or linear:STEPS[:LEAST], with STEPS from 1 and "
		"FACTOR and LEAST from 0 to 1, not %s", text);
}

static bool
read_steps(const char *text, uint64_t *n)
{
	char *end;

	*n = strtoull(text, &end, 10);
	return !*end && *text >= '0' && *text <= '9' && *n >= 1 && *n < UINT64_C(1) << 53;
}

static bool
read_share(const char *text, double *x)
{
	char *end;

	*x = strtod(text, &end);
	return !*end && end != text && *x >= 0 && *x <= 1;
}

static om_status
parse(om_session *s, om_arena *mem, const char *text, om_rate_schedule *out)
{
	size_t n, k = 0;
	const char **word = om_split(mem, text, ":", &n);

	while (n && k < sizeof shapes / sizeof shapes[0] && strcmp(shapes[k], word[0]) != 0)
		k++;
	if (n == 0 || k == sizeof shapes / sizeof shapes[0])
		return wrong(s, text);
	out->shape = (om_rate_shape)k;
	if (out->shape == OM_RATE_CONSTANT)
		return n == 1 ? OM_OK : wrong(s, text);
	const bool has_factor = n == 3;
	if (n < 2 || n > 3 || (out->shape == OM_RATE_STEP && !has_factor) || !read_steps(word[1], &out->steps)
	    || (has_factor && !read_share(word[2], &out->factor)))
		return wrong(s, text);
	return OM_OK;
}

static om_status
parse_guarded(om_session *s, om_arena *mem, const char *text, om_rate_schedule *out)
{
	OM_GUARDED(s, parse(s, mem, text, out));
}

om_status
om_rate_parse(om_session *s, const char *text, uint64_t warmup, om_rate_schedule *out)
{
	om_arena *mem = om_arena_new();

	*out = (om_rate_schedule){.warmup = warmup};
	const om_status st = parse_guarded(s, mem, text, out);
	om_arena_free(mem);
	return st;
}
