/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: convolutions of channels-last images in groups of up to 16 channels. */
#include <config.h>

#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/channels_last.h"
#include "ops/family.h"

enum { X, P, B };

/* Check a number of groups and the channels of each; those that are negative are unknown. */
static om_status
check_groups(const om_op_context *c, int64_t groups, int64_t inputs, int64_t outputs)
{
	if (groups < 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "group is %lld", (long long)groups);
	if (inputs == 0 || inputs > OM_GROUP_MOST || outputs == 0 || outputs > OM_GROUP_MOST)
		return om_op_fail(c->session, OM_SHAPE, c->op, "groups have %lld input and %lld output channels, expected 1 to %d",
			(long long)inputs, (long long)outputs, OM_GROUP_MOST);
	return OM_OK;
}

/* `channels` in `groups`; -1: unknown. */
static om_status
of_group(const om_op_context *c, int64_t channels, int64_t groups, int64_t *n)
{
	*n = -1;
	if (groups < 1 || channels % groups != 0)
		return om_op_fail(c->session, OM_SHAPE, c->op, "group is %lld, which does not divide %lld channels",
			(long long)groups, (long long)channels);
	if (channels >= 0)
		*n = channels / groups;
	return OM_OK;
}

/* The number of packed weights of each tap. */
static om_status
packed_channels(const om_op_context *c, int64_t groups, int64_t inputs, int64_t outputs, int64_t *n)
{
	if (__builtin_mul_overflow(om_grouped_panels(groups, inputs, outputs), inputs * OM_GROUP_MOST, n))
		return om_op_fail(c->session, OM_SHAPE, c->op, "group is %lld, which is too large", (long long)groups);
	return OM_OK;
}

/* ---- PackGrouped. ---- */

static const om_attr_spec pack_attrs[] = {{"group", OM_ATTR_INT, .required = true}, {0}};

static om_status
pack_infer(om_op_context *c)
{
	const om_shape *w = &c->in[0].shape;
	const int64_t groups = om_attr_int(c->op, "group");
	int64_t outputs, n, taps;
	const char *sym;

	c->out[0].type = OM_FLOAT32;
	c->out[0].shape = (om_shape){.rank = 1, .dim = {OM_DIM_UNKNOWN}};
	if (w->rank < 0)
		return OM_OK;
	if (w->rank < 3 || w->rank > 2 + OM_WINDOW_AXES)
		return om_op_fail(c->session, OM_SHAPE, c->op, "W has rank %d, expected 3 to 5", w->rank);
	OM_TRY(of_group(c, w->dim[0] < 0 ? -groups : w->dim[0], groups, &outputs));
	OM_TRY(check_groups(c, groups, w->dim[1], outputs));
	if (w->dim[1] < 0 || outputs < 0)
		return OM_OK;
	OM_TRY(packed_channels(c, groups, w->dim[1], outputs, &n));
	if (!om_dim_product(w, 2, w->rank, &taps, &sym) || (taps >= 0 && __builtin_mul_overflow(taps, n, &n)))
		return om_op_fail(c->session, OM_SHAPE, c->op, "the number of packed weights overflows");
	c->out[0].shape.dim[0] = taps < 0 ? OM_DIM_UNKNOWN : n;
	return OM_OK;
}

struct pack {
	int64_t group;
};

static const om_attr_field pack_fields[] = {OM_FIELD(struct pack, INT, group), {0}};

static om_status
pack_cpu(om_op_context *c)
{
	const struct pack *s = c->state;
	const om_shape *shape = &c->in[0].shape;
	const int64_t channels = shape->dim[0], inputs = shape->dim[1], outputs = channels / s->group;
	const int64_t taps = om_shape_count(shape) / (channels * inputs);
	const int64_t width = om_grouped_shares(inputs, outputs) ? OM_GROUP_MOST : outputs;
	const float *w = c->in[0].data;
	float *p = c->out[0].data;

	memset(p, 0, (size_t)om_shape_count(&c->out[0].shape) * sizeof *p);
	for (int64_t o = 0; o < channels; o++)
		for (int64_t k = 0; k < inputs; k++)
			for (int64_t t = 0; t < taps; t++)
				p[((o / width * taps + t) * inputs + k) * OM_GROUP_MOST + o % width] = *w++;
	return OM_OK;
}

/* ---- GroupedConv. ---- */

static const om_attr_spec grouped_attrs[] = {
	OM_LAST_WINDOW_ATTRS(true),
	{"group", OM_ATTR_INT, .required = true},
	{"channels", OM_ATTR_INT, .required = true},
	OM_ACTIVATION_ATTRS,
	{0}
};

struct grouped {
	om_grouped d;
	const om_grouped_kernels *kernels;
	int64_t batch;
	const float *x;
	float *y;
};

/* The window, and what is known of the groups: -1 for channels that are not. */
static om_status
read_grouped(const om_op_context *c, struct om_window *w, om_grouped *d)
{
	const om_shape *x = &c->in[X].shape;
	const int64_t channels = om_attr_int(c->op, "channels"), last = x->dim[x->rank > 0 ? x->rank - 1 : 0];
	const char *wrong = om_last_window(c, false, w);
	int64_t n;

	if (wrong)
		return om_wrong(c, wrong);
	d->groups = om_attr_int(c->op, "group");
	if (channels < 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "channels is %lld", (long long)channels);
	OM_TRY(of_group(c, channels, d->groups, &d->outputs));
	OM_TRY(of_group(c, last < 0 ? -d->groups : last, d->groups, &d->inputs));
	OM_TRY(check_groups(c, d->groups, d->inputs, d->outputs));
	if (d->inputs >= 0) {
		OM_TRY(packed_channels(c, d->groups, d->inputs, d->outputs, &n));
		OM_TRY(om_last_packed(c, om_window_volume(w->kernel), n));
	}
	return om_last_list(c, B, "the bias", channels);
}

static om_status
grouped_infer(om_op_context *c)
{
	struct om_window w;
	om_epilogue e;
	om_grouped d;

	c->out[0].type = OM_FLOAT32;
	OM_TRY(om_epilogue_read(c, &e));
	if (c->in[X].shape.rank < 0)
		return OM_OK;
	OM_TRY(read_grouped(c, &w, &d));
	c->out[0].shape = om_last_shape(c, &w, om_attr_int(c->op, "channels"));
	return OM_OK;
}

static void
grouped_cost(const om_op_context *c, om_cost *cost)
{
	struct om_window w;
	om_grouped d;

	if (read_grouped(c, &w, &d) == OM_OK)
		cost->flops = 2.0 * (double)om_shape_count(&c->out[0].shape) * (double)om_window_volume(w.kernel) * (double)d.inputs;
}

static om_status
grouped_prepare(om_op_context *c, void **state)
{
	struct grouped *s = *state;
	struct om_window w;

	OM_TRY(read_grouped(c, &w, &s->d));
	om_window_pack(&w);
	s->d.g = om_last_geometry(&w);
	s->kernels = om_kernels_get()->grouped;
	s->batch = c->in[X].shape.dim[0];
	return om_epilogue_read(c, &s->d.epilogue);
}

/* Zeros for a pixel of the input, and for the bias. */
static uint64_t
grouped_workspace(const om_op_context *c)
{
	const om_grouped *d = &((const struct grouped *)c->state)->d;
	const int64_t channels = d->groups * (d->inputs > d->outputs ? d->inputs : d->outputs);

	return om_piece_size((uint64_t)(channels > OM_GROUP_MOST ? channels : OM_GROUP_MOST) * sizeof(float));
}

static void
grouped_lines(void *arg, int64_t image, int64_t first, int64_t end, uint32_t worker)
{
	const struct grouped *s = arg;

	(void)worker;
	s->kernels->lines(&s->d, s->x + image * om_window_volume(s->d.g.in) * s->d.groups * s->d.inputs,
		s->y + image * om_window_volume(s->d.g.out) * s->d.groups * s->d.outputs, first, end);
}

static om_status
grouped_cpu(om_op_context *c)
{
	struct grouped s = *(const struct grouped *)c->state;

	memset(c->scratch, 0, grouped_workspace(c));
	s.d.zeros = c->scratch;
	s.d.packed = c->in[P].data;
	s.d.bias = om_has_in(c, B) ? c->in[B].data : s.d.zeros;
	s.x = c->in[X].data;
	s.y = c->out[0].data;
	om_last_parallel(c, &(struct om_last_lines){s.batch, s.d.g.out[0] * s.d.g.out[1], grouped_lines, &s});
	return OM_OK;
}

/* ---- The operator definitions. ---- */

const om_opdef om_ops_cpu_grouped[] = {
	{.domain = OM_CPU_DOMAIN, .name = "PackGrouped", .brief = "weights of a convolution in narrow groups, for GroupedConv",
	 .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attrs = pack_attrs, .infer = pack_infer,
	 .cpu = pack_cpu, .input_types = {OF(FLOAT32)}},
	{.domain = OM_CPU_DOMAIN, .name = "GroupedConv", .brief = "convolution of a channels-last image in narrow groups",
	 .since = 1, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = grouped_attrs, .infer = grouped_infer,
	 .slice = om_last_slice, .cpu = grouped_cpu, .scratch = grouped_workspace, .cost = grouped_cost,
	 .input_types = {OF(FLOAT32), OF(FLOAT32), OF(FLOAT32)}},
	{0}
};

const om_kernel om_kernels_cpu_grouped[] = {
	{.domain = OM_CPU_DOMAIN, .name = "PackGrouped", .fields = pack_fields, .state_bytes = sizeof(struct pack), .run = pack_cpu},
	{.domain = OM_CPU_DOMAIN, .name = "GroupedConv", .state_bytes = sizeof(struct grouped), .prepare = grouped_prepare,
	 .workspace = grouped_workspace, .run = grouped_cpu},
	{0}
};
