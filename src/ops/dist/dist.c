/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: org.onnxmem.dist AllReduce, ReduceScatter, AllGather, Broadcast, Send, Recv, Wait.
 *
 * They call the communicator of the run (onnxmem/comm.h).  Without one, a run has one rank: collectives of one rank copy, and
 * those of more fail.  `ranks` is how many ranks take part, which decides shapes; 0, where it is allowed, is any number.
 * `group` lists those that take part, all by default.  All have effects and are never merged or repeated, so that schedules
 * keep their order, which has to be the same on all ranks.
 *
 * With async = 1 a collective is started, and its output may only be read by a Wait, which ends the transfer.  What the transfer reads and the output does
 * not share has to be an input of the Wait, too: so the memory of a transfer is live until it is over, for every planner. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "onnxmem/comm.h"
#include "opdef/columns.h"
#include "opdef/dist_domain.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/family.h"

#define OF_SUMS (OF_FLOATS | OF_INDICES | OF(UINT32) | OF(UINT64))
#define OF_BYTES_OF (OF_NUMBERS | OF(BOOL) | OF_COMPLEX | OF_FLOAT8S)

enum { MOST_RANKS = 1 << 20, MOST_TAG = 0x7ff0 };

/* The attributes. */
struct dist {
	om_ints group;
	int64_t ranks, ordered, async, root, peer, tag;
};

/* ---- Shapes. ---- */

static om_status
check_ranks(const om_op_context *c, int64_t least)
{
	const int64_t ranks = om_attr_int(c->op, "ranks");
	size_t n;
	const int64_t *group = om_attr_ints(c->op, "group", &n);

	if (ranks < least || ranks > MOST_RANKS)
		return om_op_fail(c->session, OM_INVALID, c->op, "ranks must be from %lld to %d, not %lld", (long long)least, MOST_RANKS,
			(long long)ranks);
	for (size_t k = 0; k < n; k++)
		if (group[k] < 0 || (k && group[k] <= group[k - 1]))
			return om_op_fail(c->session, OM_INVALID, c->op, "the ranks of group must be in ascending order");
	if (n && ranks && ranks != (int64_t)n)
		return om_op_fail(c->session, OM_INVALID, c->op, "group has %zu ranks, and ranks is %lld", n, (long long)ranks);
	return OM_OK;
}

static om_status
reduce_infer(om_op_context *c)
{
	OM_TRY(check_ranks(c, 0));
	return om_infer_same(c);
}

static om_status
scatter_infer(om_op_context *c)
{
	om_shape *y = &c->out[0].shape;

	OM_TRY(check_ranks(c, 1));
	OM_TRY(om_infer_same(c));
	const int64_t ranks = om_attr_int(c->op, "ranks");
	if (y->rank == 0)
		return om_op_fail(c->session, OM_SHAPE, c->op, "a scalar has no parts for ranks");
	if (y->rank < 0 || ranks == 1)
		return OM_OK;
	if (y->dim[0] >= 0 && y->dim[0] % ranks)
		return om_op_fail(c->session, OM_SHAPE, c->op, "%lld rows cannot be divided among %lld ranks", (long long)y->dim[0],
			(long long)ranks);
	y->dim[0] = y->dim[0] >= 0 ? y->dim[0] / ranks : OM_DIM_UNKNOWN;
	y->sym[0] = NULL;
	return OM_OK;
}

/* The output has the shape of input 1, which it may be computed over. */
static om_status
gather_over(om_op_context *c, int64_t ranks)
{
	const om_shape *part = &c->in[0].shape, *all = &c->in[1].shape;

	if (om_shape_is_known(part) && om_shape_is_known(all)
	    && (om_shape_count(part) > INT64_MAX / ranks || om_shape_count(part) * ranks != om_shape_count(all)))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%lld elements of each of %lld ranks do not make the %lld of the second input",
			(long long)om_shape_count(part), (long long)ranks, (long long)om_shape_count(all));
	c->out[0].shape = *all;
	return OM_OK;
}

static om_status
gather_infer(om_op_context *c)
{
	om_shape *y = &c->out[0].shape;

	OM_TRY(check_ranks(c, 1));
	OM_TRY(om_infer_same(c));
	const int64_t ranks = om_attr_int(c->op, "ranks");
	if (om_op_input(c->op, 1))
		return gather_over(c, ranks);
	if (y->rank == 0)
		return om_op_fail(c->session, OM_SHAPE, c->op, "scalars of ranks cannot be joined");
	if (y->rank < 0 || ranks == 1)
		return OM_OK;
	if (y->dim[0] > INT64_MAX / ranks)
		return om_op_fail(c->session, OM_SHAPE, c->op, "%lld rows of %lld ranks are too many", (long long)y->dim[0],
			(long long)ranks);
	y->dim[0] = y->dim[0] >= 0 ? y->dim[0] * ranks : OM_DIM_UNKNOWN;
	y->sym[0] = NULL;
	return OM_OK;
}

/* Inputs after the first are what the transfer reads. */
static om_status
wait_infer(om_op_context *c)
{
	const om_op *start = c->op->in[0]->def;

	if (start && start->opdef && !(start->opdef->flags & OM_COLLECTIVE))
		return om_op_fail(c->session, OM_INVALID, c->op, "%s is the output of a %s, and no transfer", c->op->in[0]->name, start->type);
	return om_infer_same(c);
}

static om_status
check_message(const om_op_context *c)
{
	const int64_t peer = om_attr_int(c->op, "peer"), tag = om_attr_int(c->op, "tag");

	if (peer < 0 || peer > MOST_RANKS)
		return om_op_fail(c->session, OM_INVALID, c->op, "peer must be a rank, not %lld", (long long)peer);
	if (tag < 0 || tag > MOST_TAG)
		return om_op_fail(c->session, OM_INVALID, c->op, "tag must be from 0 to %d, not %lld", MOST_TAG, (long long)tag);
	return OM_OK;
}

static om_status
send_infer(om_op_context *c)
{
	OM_TRY(check_message(c));
	return om_infer_same(c);
}

static om_status
recv_infer(om_op_context *c)
{
	size_t n;
	const int64_t *dim = om_attr_ints(c->op, "shape", &n), type = om_attr_int(c->op, "dtype");

	OM_TRY(check_message(c));
	if (n > OM_MAX_RANK)
		return om_op_fail(c->session, OM_INVALID, c->op, "shape has %zu dims", n);
	for (size_t k = 0; k < n; k++)
		if (dim[k] < 0)
			return om_op_fail(c->session, OM_INVALID, c->op, "dim %zu of shape is %lld", k, (long long)dim[k]);
	if (type < 0 || type >= OM_NDTYPE || !(OM_TYPES(type) & OF_BYTES_OF))
		return om_op_fail(c->session, OM_INVALID, c->op, "messages of element type %lld are not known", (long long)type);
	c->out[0].type = (om_dtype)type;
	c->out[0].shape = om_shape_of((int)n, dim);
	return OM_OK;
}

/* ---- Runs. ---- */

static om_comm_group
group_of(const om_op_context *c)
{
	const struct dist *d = c->state;
	return (om_comm_group){d->group.v, d->group.v ? d->group.n : 0};
}

/* The run has as many ranks as the op is for.  `*alone`: nothing is to be exchanged. */
static om_status
check_run(const om_op_context *c, bool *alone)
{
	const struct dist *d = c->state;
	const om_comm_group g = group_of(c);
	uint32_t place = 0, size = 1;

	if (c->comm)
		OM_TRY(om_comm_place(c->comm, c->session, g, &place, &size));
	else if (g.n > 1 || (g.n == 1 && g.rank[0] != 0))
		return om_op_fail(c->session, OM_RUN, c->op, "it is for a group of %zu ranks, but the run has no communicator", g.n);
	if (d->ranks && d->ranks != (int64_t)size)
		return om_op_fail(c->session, OM_RUN, c->op, "it is for %lld ranks, but the run has %u%s", (long long)d->ranks, size,
			c->comm ? "" : ": it has no communicator");
	*alone = size == 1;
	return OM_OK;
}

static om_status
ended(const om_op_context *c, om_status st)
{
	return st == OM_OK ? st : om_note(c->session, st, "computing %s", c->op->nout && c->op->out[0] ? c->op->out[0]->name
		: c->op->type);
}

/* The output begins as a copy of the input. */
static uint64_t
start(const om_op_context *c)
{
	uint64_t bytes = 0;

	om_tensor_bytes(c->in[0].type, &c->in[0].shape, &bytes);
	if (bytes && c->out[0].data != c->in[0].data)
		memcpy(c->out[0].data, c->in[0].data, bytes);
	return bytes;
}

static om_status
all_reduce(om_op_context *c)
{
	const struct dist *d = c->state;
	bool alone;

	OM_TRY(check_run(c, &alone));
	start(c);
	return alone ? OM_OK : ended(c, (d->async ? om_comm_start_all_reduce : om_comm_all_reduce)(c->comm, c->session, group_of(c),
		c->out[0].type, c->out[0].data, (uint64_t)om_shape_count(&c->out[0].shape), d->ordered != 0));
}

static om_status
reduce_scatter(om_op_context *c)
{
	const struct dist *d = c->state;
	bool alone;

	OM_TRY(check_run(c, &alone));
	if (alone)
		start(c);
	return alone ? OM_OK : ended(c, (d->async ? om_comm_start_reduce_scatter : om_comm_reduce_scatter)(c->comm, c->session,
		group_of(c), c->out[0].type, c->in[0].data, c->out[0].data, (uint64_t)om_shape_count(&c->out[0].shape),
		d->ordered != 0));
}

/* Input 1 is memory for the output, its elements are not read. */
static bool
gather_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	(void)c;
	return out == 0 && in == 1;
}

static om_status
all_gather(om_op_context *c)
{
	const struct dist *d = c->state;
	uint64_t bytes = 0;
	bool alone;

	OM_TRY(check_run(c, &alone));
	om_tensor_bytes(c->in[0].type, &c->in[0].shape, &bytes);
	if (alone)
		start(c);
	return alone ? OM_OK : ended(c, (d->async ? om_comm_start_all_gather : om_comm_all_gather)(c->comm, c->session, group_of(c),
		c->in[0].data, c->out[0].data, bytes));
}

static om_status
broadcast(om_op_context *c)
{
	const struct dist *d = c->state;
	bool alone;

	OM_TRY(check_run(c, &alone));
	const uint64_t bytes = start(c);
	if (alone && d->root != (c->comm ? c->comm->rank : 0))
		return om_op_fail(c->session, OM_RUN, c->op, "its root is rank %lld, which does not take part", (long long)d->root);
	return alone ? OM_OK : ended(c, om_comm_broadcast(c->comm, c->session, group_of(c), c->out[0].data, bytes,
		(uint32_t)d->root));
}

static om_status
has_peer(const om_op_context *c)
{
	const struct dist *d = c->state;

	return c->comm ? OM_OK : om_op_fail(c->session, OM_RUN, c->op, "its message is for or from rank %lld, but the run has no "
		"communicator", (long long)d->peer);
}

static om_status
send_message(om_op_context *c)
{
	const struct dist *d = c->state;

	OM_TRY(has_peer(c));
	const uint64_t bytes = start(c);
	return ended(c, om_comm_send(c->comm, c->session, (uint32_t)d->peer, (uint32_t)d->tag, c->out[0].data, bytes));
}

static om_status
receive_message(om_op_context *c)
{
	const struct dist *d = c->state;
	uint64_t bytes = 0;

	OM_TRY(has_peer(c));
	om_tensor_bytes(c->out[0].type, &c->out[0].shape, &bytes);
	return ended(c, om_comm_receive(c->comm, c->session, (uint32_t)d->peer, (uint32_t)d->tag, c->out[0].data, bytes));
}

static om_status
wait_transfer(om_op_context *c)
{
	const om_status st = c->comm ? om_comm_wait(c->comm, c->session, c->in[0].data) : OM_OK;

	if (st == OM_OK)
		start(c);
	return ended(c, st);
}

/* ---- The table. ---- */

#define GROUP {"group", OM_ATTR_INTS}
#define ANY_RANKS {"ranks", OM_ATTR_INT}
#define RANKS {"ranks", OM_ATTR_INT, .required = true}
#define ORDERED {"ordered", OM_ATTR_INT}
#define ASYNC {OM_ATTR_ASYNC, OM_ATTR_INT}

static const om_attr_spec reduce_attrs[] = {GROUP, ANY_RANKS, ORDERED, ASYNC, {0}};
static const om_attr_spec scatter_attrs[] = {GROUP, RANKS, ORDERED, ASYNC, {0}};
static const om_attr_spec gather_attrs[] = {GROUP, RANKS, ASYNC, {0}};
static const om_attr_spec broadcast_attrs[] = {GROUP, ANY_RANKS, {"root", OM_ATTR_INT}, {0}};
static const om_attr_spec send_attrs[] = {{"peer", OM_ATTR_INT, .required = true}, {"tag", OM_ATTR_INT}, {0}};
static const om_attr_spec recv_attrs[] = {{"peer", OM_ATTR_INT, .required = true}, {"tag", OM_ATTR_INT},
	{"dtype", OM_ATTR_INT, .required = true}, {"shape", OM_ATTR_INTS, .required = true}, {0}};

#define DIST(label, text, ...)                                                                                    \
	{.domain = OM_DIST_DOMAIN, .name = label, .brief = text, .since = 1, .min_out = 1, .max_out = 1, \
	 .flags = OM_RANDOM | OM_EFFECT | OM_COLLECTIVE, __VA_ARGS__}

const om_opdef om_ops_dist[] = {
	DIST("AllReduce", "the sum over ranks", .min_in = 1, .max_in = 1, .attrs = reduce_attrs, .infer = reduce_infer,
		.inplace = om_inplace_first, .cpu = all_reduce, .cost = om_cost_of_input, .input_types = {OF_SUMS}),
	DIST("ReduceScatter", "the part of this rank of the sum over ranks", .min_in = 1, .max_in = 1, .attrs = scatter_attrs,
		.infer = scatter_infer, .cpu = reduce_scatter, .cost = om_cost_of_input, .input_types = {OF_SUMS}),
	DIST("AllGather", "the tensors of all ranks, joined along axis 0", .min_in = 1, .max_in = 2, .attrs = gather_attrs,
		.infer = gather_infer, .inplace = gather_inplace, .cpu = all_gather, .input_types = {OF_BYTES_OF, LIKE(0)}),
	DIST("Broadcast", "the tensor of one rank", .min_in = 1, .max_in = 1, .attrs = broadcast_attrs, .infer = reduce_infer,
		.inplace = om_inplace_first, .cpu = broadcast, .input_types = {OF_BYTES_OF}),
	DIST("Send", "sends a tensor to another rank; the output is the input", .min_in = 1, .max_in = 1, .attrs = send_attrs,
		.infer = send_infer, .inplace = om_inplace_first, .cpu = send_message, .input_types = {OF_BYTES_OF}),
	DIST("Recv", "a tensor that another rank sends", .attrs = recv_attrs, .infer = recv_infer, .cpu = receive_message),
	DIST("Wait", "ends the transfer that a collective with async = 1 has started", .min_in = 1, .max_in = 3, .infer = wait_infer,
		.inplace = om_inplace_first, .cpu = wait_transfer, .input_types = {OF_BYTES_OF, OF_BYTES_OF, OF_BYTES_OF}),
	{0}
};

#define FIELDS_GROUP OM_FIELD(struct dist, INTS, group)
#define FIELD(name) OM_FIELD(struct dist, INT, name)
static const om_attr_field reduce_fields[] = {FIELDS_GROUP, FIELD(ranks), FIELD(ordered), FIELD(async), {0}};
static const om_attr_field gather_fields[] = {FIELDS_GROUP, FIELD(ranks), FIELD(async), {0}};
static const om_attr_field broadcast_fields[] = {FIELDS_GROUP, FIELD(ranks), FIELD(root), {0}};
static const om_attr_field message_fields[] = {FIELD(peer), FIELD(tag), {0}};
static const om_attr_field wait_fields[] = {{0}};

#define KERNEL(label, list, function) \
	{.domain = OM_DIST_DOMAIN, .name = label, .fields = list##_fields, .state_bytes = sizeof(struct dist), .run = function}

const om_kernel om_kernels_dist[] = {
	KERNEL("AllReduce", reduce, all_reduce),
	KERNEL("ReduceScatter", reduce, reduce_scatter),
	KERNEL("AllGather", gather, all_gather),
	KERNEL("Broadcast", broadcast, broadcast),
	KERNEL("Send", message, send_message),
	KERNEL("Recv", message, receive_message),
	KERNEL("Wait", wait, wait_transfer),
	{0}
};
