/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: pools of channels-last images. */
#include <config.h>

#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/channels_last.h"
#include "ops/family.h"

static const om_attr_spec pool_attrs[] = {
	OM_LAST_WINDOW_ATTRS(true),
	{"ceil_mode", OM_ATTR_INT},
	{"count_include_pad", OM_ATTR_INT},
	{0}
};

/* Every window must overlap the input. */
static const char *
read_pool(const om_op_context *c, struct om_window *w)
{
	const char *wrong = om_last_window(c, om_attr_int(c->op, "ceil_mode") != 0, w);

	for (int k = OM_WINDOW_AXES - w->n; k < OM_WINDOW_AXES && !wrong; k++) {
		const int64_t span = (w->kernel[k] - 1) * w->dilation[k] + 1;
		if (w->begin[k] >= span || w->end[k] >= span)
			wrong = om_printf(c->mem, "pads %lld and %lld must be less than the kernel size %lld",
				(long long)w->begin[k], (long long)w->end[k], (long long)span);
	}
	return wrong;
}

static om_status
pool_infer(om_op_context *c)
{
	struct om_window w = {0};
	const char *wrong;

	c->out[0].type = c->in[0].type;
	if (c->in[0].shape.rank < 0)
		return OM_OK;
	if ((wrong = read_pool(c, &w)))
		return om_wrong(c, wrong);
	c->out[0].shape = om_last_shape(c, &w, OM_DIM_UNKNOWN);
	return OM_OK;
}

static void
pool_cost(const om_op_context *c, om_cost *cost)
{
	struct om_window w = {0};

	if (!read_pool(c, &w))
		cost->flops = (double)om_shape_count(&c->out[0].shape) * (double)om_window_volume(w.kernel);
}

struct pool {
	om_pooling p;
	om_pool_lines *lines;
	int64_t batch;
	const float *x;
	float *y;
	char *room;
};

static om_status
pool_prepare(om_op_context *c, void **state, om_pool_lines *lines)
{
	struct pool *s = *state;
	const om_shape *x = &c->in[0].shape;
	struct om_window w = {0};
	const char *wrong = read_pool(c, &w);

	if (wrong)
		return om_wrong(c, wrong);
	om_window_pack(&w);
	s->p = (om_pooling){.g = om_last_geometry(&w), .channels = x->dim[x->rank - 1],
		.with_padding = om_attr_int(c->op, "count_include_pad") != 0};
	s->lines = lines;
	s->batch = x->dim[0];
	return OM_OK;
}

static om_status
max_prepare(om_op_context *c, void **state)
{
	return pool_prepare(c, state, om_kernels_get()->pool->max);
}

static om_status
average_prepare(om_op_context *c, void **state)
{
	return pool_prepare(c, state, om_kernels_get()->pool->mean);
}

static uint64_t
room_bytes(const struct pool *s)
{
	return om_piece_size((uint64_t)om_pool_room(&s->p) * sizeof(float));
}

static uint64_t
pool_workspace(const om_op_context *c)
{
	const struct pool *s = c->state;
	uint64_t bytes;

	return __builtin_mul_overflow(room_bytes(s), c->workers ? c->workers : 1u, &bytes) ? UINT64_MAX : bytes;
}

static void
pool_lines(void *arg, int64_t image, int64_t first, int64_t end, uint32_t worker)
{
	const struct pool *s = arg;
	float *room = (float *)(s->room + worker * room_bytes(s));

	s->lines(&s->p, s->x + image * om_window_volume(s->p.g.in) * s->p.channels,
		s->y + image * om_window_volume(s->p.g.out) * s->p.channels, first, end, room);
}

static om_status
pool_cpu(om_op_context *c)
{
	struct pool s = *(const struct pool *)c->state;

	if (s.p.channels == 0)            /* the loops over channels have at least one */
		return OM_OK;
	s.x = c->in[0].data;
	s.y = c->out[0].data;
	s.room = c->scratch;
	om_last_parallel(c, &(struct om_last_lines){s.batch, s.p.g.out[0] * s.p.g.out[1], pool_lines, &s});
	return OM_OK;
}

/* ---- Bytes. ---- */

static om_status
bytes_prepare(om_op_context *c, void **state)
{
	return pool_prepare(c, state, NULL);
}

struct bytes {
	const struct pool *pool;
	const uint8_t *x;
	uint8_t *y;
	bool is_signed;
};

static void
bytes_lines(void *arg, int64_t image, int64_t first, int64_t end, uint32_t worker)
{
	const struct bytes *b = arg;
	const om_pooling *p = &b->pool->p;

	(void)worker;
	om_kernels_get()->qrows->max_lines(&p->g, p->channels, b->is_signed, b->x + image * om_window_volume(p->g.in) * p->channels,
		b->y + image * om_window_volume(p->g.out) * p->channels, first, end);
}

static om_status
bytes_run(om_op_context *c)
{
	const struct pool *s = c->state;
	struct bytes b = {s, c->in[0].data, c->out[0].data, c->in[0].type == OM_INT8};

	if (s->p.channels)
		om_last_parallel(c, &(struct om_last_lines){s->batch, s->p.g.out[0] * s->p.g.out[1], bytes_lines, &b});
	return OM_OK;
}

/* The definition's kernel: of any type. */
static om_status
max_cpu(om_op_context *c)
{
	return c->in[0].type == OM_FLOAT32 ? pool_cpu(c) : bytes_run(c);
}

#define POOL(label, text, called, accepted)                                    \
	{.domain = OM_CPU_DOMAIN, .name = label, .brief = text " over a sliding window of a channels-last image", \
	 .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attrs = pool_attrs, .infer = pool_infer, \
	 .slice = om_last_pool_slice, .cpu = called, .scratch = pool_workspace, .cost = pool_cost, .input_types = {accepted}}

const om_opdef om_ops_cpu_pool[] = {
	POOL("MaxPool", "maximum", max_cpu, OF(FLOAT32) | OF_BYTES),
	POOL("AveragePool", "mean", pool_cpu, OF(FLOAT32)),
	{0}
};

#define KERNEL(label, accepted, prepares, ...)                                 \
	{.domain = OM_CPU_DOMAIN, .name = label, .types = {accepted}, .state_bytes = sizeof(struct pool), .prepare = prepares, \
	 __VA_ARGS__}

const om_kernel om_kernels_cpu_pool[] = {
	KERNEL("MaxPool", OF(FLOAT32), max_prepare, .workspace = pool_workspace, .run = pool_cpu),
	KERNEL("MaxPool", OF_BYTES, bytes_prepare, .run = bytes_run),
	KERNEL("AveragePool", OF(FLOAT32), average_prepare, .workspace = pool_workspace, .run = pool_cpu),
	{0}
};
