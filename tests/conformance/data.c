/* SPDX-License-Identifier: Apache-2.0 */
/* Elements from files, and comparing: the tolerances are those of the suite's
 * own runner, but for tests that are named; integers have to be equal. */
#include <config.h>

#include <math.h>

#include "cli/data.h"
#include "conformance.h"

om_status
om_data_load(om_session *s, const char *path, om_arena *mem, const om_type *type, om_data *out)
{
	out->is_given = true;
	return om_value_load_pb(s, path, mem, type, &out->t);
}

/* Tests that ask for more than their numbers have. */
static const struct wider {
	const char *test;
	om_tolerance tol;
	const char *why;
} wider[] = {
	{"test_dft_inverse", {1e-3, 2e-6}, "expects what sums of 32 bits leave over where zero is right: within 2e-6"},
	{"test_dft_inverse_opset19", {1e-3, 2e-6}, "the same"},
	{"test_attention_4d_causal_fp16_expanded", {0x1p-9, 1e-7}, "expects half a unit in the last place of float16: within two"},
};

static const struct wider *
wider_of(const char *folder)
{
	const char *slash = strrchr(folder, '/'), *test = slash ? slash + 1 : folder;

	for (size_t k = 0; k < sizeof wider / sizeof wider[0]; k++)
		if (strcmp(wider[k].test, test) == 0)
			return &wider[k];
	return NULL;
}

const char *
om_data_wider(const char *folder)
{
	const struct wider *w = wider_of(folder);

	return w ? w->why : NULL;
}

/* Those of the suite's own runner: for bfloat16 two units in the last place. */
static om_tolerance
tolerance_of(const char *folder, const om_tensor *want)
{
	const struct wider *w = wider_of(folder);

	if (w)
		return w->tol;
	return (om_tolerance){want->type == OM_BFLOAT16 ? 0x1p-6 : 1e-3, 1e-7};
}

om_status
om_data_check(om_session *s, om_arena *mem, const char *folder, const om_value *v, const om_tensor *got,
	const om_data *want)
{
	om_cli c = {.session = s, .mem = mem};

	return om_data_compare(&c, v->name, &v->type, got, &want->t, tolerance_of(folder, &want->t));
}

/* ---- Random numbers. ---- */

static double
real(const om_tensor *t, int64_t k)
{
	switch (t->type) {
	case OM_FLOAT32: return ((const float *)t->data)[k];
	case OM_FLOAT64: return ((const double *)t->data)[k];
	case OM_BOOL: return ((const uint8_t *)t->data)[k];
	default: return NAN;
	}
}

/* Sums that chance is to keep within four of its standard deviations. */
struct chance {
	double sum, mean, variance;
};

/* Ones with the probabilities of the input. */
static bool
draw(struct chance *c, const om_tensor *p, const om_tensor *got, int64_t k)
{
	const double x = real(p, k), y = real(got, k);

	c->sum += y;
	c->mean += x;
	c->variance += x * (1 - x);
	return y == 0 || y == 1;
}

/* Zeros with the probability of the second input; in the mask and in the output. */
static bool
drop(struct chance *c, double ratio, const om_tensor *x, const om_tensor *got, int64_t k)
{
	const double y = real(got, k), kept = got->type == OM_BOOL ? 1 : real(x, k) / (1 - ratio);

	c->sum += y == 0;
	c->mean += ratio;
	c->variance += ratio * (1 - ratio);
	return y == 0 || fabs(y - kept) <= 1e-3 * fabs(kept);
}

om_status
om_data_check_random(om_session *s, bool dropout, const om_data *in, const om_tensor *got, const om_data *want)
{
	const double ratio = dropout && in[1].is_given ? real(&in[1].t, 0) : 0.5;
	struct chance c = {0};

	if (got->type != want->t.type || !om_shape_equal(&got->shape, &want->t.shape))
		return om_fail(s, OM_MISMATCH, "type or shape is not what was expected");
	for (int64_t k = 0; k < om_shape_count(&got->shape); k++)
		if (!(dropout ? drop(&c, ratio, &in[0].t, got, k) : draw(&c, &in[0].t, got, k)))
			return om_fail(s, OM_MISMATCH, "element %lld is %g, which is impossible", (long long)k,
				real(got, k));
	if (fabs(c.sum - c.mean) > 4 * sqrt(c.variance) + 1e-9)
		return om_fail(s, OM_MISMATCH, "%g ones where %g were expected", c.sum, c.mean);
	return OM_OK;
}
