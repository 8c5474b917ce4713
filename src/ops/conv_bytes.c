/* Convolutions of bytes: ConvInteger, and the sums that QLinearConv scales.
 *
 * Each tap of each input channel adds its share to a whole image of int32 sums,
 * line by line; taps of no weight are left out.
 */
#include <config.h>

#include "ops/conv.h"
#include "ops/family.h"

static void
add_line(int32_t *out, int64_t lo, int64_t hi, const om_tensor *x, int64_t at, int64_t first, int64_t stride,
	int32_t zero, int32_t factor)
{
	const char *line = (const char *)x->data + at;

	if (stride == 1 && x->type == OM_INT8) {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const int8_t *)line)[first + k] - zero);
	} else if (stride == 1) {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const uint8_t *)line)[first + k] - zero);
	} else if (x->type == OM_INT8) {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const int8_t *)line)[first + k * stride] - zero);
	} else {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const uint8_t *)line)[first + k * stride] - zero);
	}
}

static int32_t
byte_at(const om_tensor *t, int64_t i)
{
	return t->type == OM_INT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* One tap of one input channel. */
static void
add_tap(const struct om_window *w, int64_t tap, const om_tensor *x, int64_t base, int32_t zero,
	int32_t factor, int32_t *out)
{
	const int64_t kx = tap % w->kernel[2], ky = tap / w->kernel[2] % w->kernel[1];
	const int64_t kz = tap / w->kernel[2] / w->kernel[1];
	int64_t z0, z1, y0, y1, x0, x1;

	om_window_range(w, 0, kz, &z0, &z1);
	om_window_range(w, 1, ky, &y0, &y1);
	om_window_range(w, 2, kx, &x0, &x1);
	for (int64_t z = z0; z < z1; z++)
		for (int64_t y = y0; y < y1; y++) {
			const int64_t iz = z * w->stride[0] - w->begin[0] + kz * w->dilation[0];
			const int64_t iy = y * w->stride[1] - w->begin[1] + ky * w->dilation[1];
			add_line(out + (z * w->out[1] + y) * w->out[2], x0, x1, x,
				base + (iz * w->in[1] + iy) * w->in[2],
				kx * w->dilation[2] - w->begin[2], w->stride[2], zero, factor);
		}
}

void
om_conv_bytes(const struct om_conv *v, const om_tensor *x, int32_t x_zero, const om_tensor *w,
	int32_t w_zero, int64_t image, int64_t channel, int32_t *out)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t first = image * v->cin + channel / v->kout * v->kin;

	memset(out, 0, (size_t)om_window_volume(v->w.out) * sizeof *out);
	for (int64_t k = 0; k < v->kin * taps; k++) {
		const int32_t factor = byte_at(w, channel * v->kin * taps + k) - w_zero;
		if (factor)
			add_tap(&v->w, k % taps, x, (first + k / taps) * in, x_zero, factor, out);
	}
}

/* ---- ConvInteger. ---- */

static om_status
integer_infer(om_call *c)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && c->in[k].type != OM_INT8 && c->in[k].type != OM_UINT8
		    && c->in[k].type != OM_UNDEFINED)
			return om_op_fail(c->session, OM_SHAPE, c->op, "wants int8 or uint8, not %s",
				om_dtype_text(c->in[k].type));
	c->out[0].type = OM_INT32;
	return om_conv_infer(c, 0, 1);
}

static om_status
integer_cpu(om_call *c)
{
	const struct om_conv v = om_conv_of(c, 0, 1);
	const int64_t volume = om_window_volume(v.w.out);
	const int64_t nzero = om_has_in(c, 3) ? om_shape_count(&c->in[3].shape) : 0;

	if ((nzero > 1 && nzero != v.cout) || (om_has_in(c, 2) && om_shape_count(&c->in[2].shape) != 1))
		return om_op_fail(c->session, OM_SHAPE, c->op, "the zero points do not fit %lld channels",
			(long long)v.cout);
	const int32_t x_zero = om_has_in(c, 2) ? byte_at(&c->in[2], 0) : 0;
	for (int64_t i = 0; i < v.batch * v.cout; i++) {
		const int64_t channel = i % v.cout;
		const int32_t w_zero = nzero ? byte_at(&c->in[3], nzero > 1 ? channel : 0) : 0;
		om_conv_bytes(&v, &c->in[0], x_zero, &c->in[1], w_zero, i / v.cout, channel,
			(int32_t *)c->out[0].data + i * volume);
	}
	return OM_OK;
}

static void
integer_cost(const om_call *c, om_cost *cost)
{
	om_conv_cost(c, 0, 1, cost);
}

static const om_attr_spec integer_attrs[] = {OM_CONV_ATTRS, {0}};

const om_row om_ops_conv_bytes[] = {
	{.name = "ConvInteger", .brief = "convolution of bytes, in int32",
	 .since = 10, .min_in = 2, .max_in = 4, .min_out = 1, .max_out = 1,
	 .attrs = integer_attrs, .infer = integer_infer, .cpu = integer_cpu, .cost = integer_cost,
	 .takes = {OF_BYTES, OF_BYTES, LIKE(0), LIKE(1)}},
	{0}
};
