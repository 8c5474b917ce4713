/* Elements from files, and comparing: the tolerances are those of the suite's
 * own runner, more or less, but integers have to be equal. */
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

/* Those of the suite: for bfloat16 its runner allows for two units in the last
 * place, and so do we for float16.  Of float32 it expects exact zeros, too, which
 * sums do not give: two units in the last place of the largest element pass. */
static om_tolerance
tolerance_of(const om_tensor *want)
{
	om_tolerance tol = {1e-3, 1e-7};
	double most = 0;

	if (want->type == OM_BFLOAT16)
		tol.relative = 0x1p-6;
	if (want->type == OM_FLOAT16)
		tol.relative = 0x1p-9;
	if (want->type != OM_FLOAT32 || !om_shape_is_known(&want->shape))
		return tol;
	for (int64_t k = 0; k < om_shape_count(&want->shape); k++)
		if (isfinite(((const float *)want->data)[k]))
			most = fmax(most, fabs((double)((const float *)want->data)[k]));
	tol.absolute = fmax(tol.absolute, most * 0x1p-22);
	return tol;
}

om_status
om_data_check(om_session *s, om_arena *mem, const om_value *v, const om_tensor *got, const om_data *want)
{
	om_cli c = {.session = s, .mem = mem};

	return om_data_compare(&c, v->name, &v->type, got, &want->t, tolerance_of(&want->t));
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
