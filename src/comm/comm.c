/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over groups, and sums in the order of ranks, for every communicator.
 *
 * A communicator computes collectives of all its ranks.  Those of a part of them are messages by way of the first rank of
 * the part, which sums in the order of ranks.  Ordered sums of all ranks gather a piece of every rank and sum it there. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "comm/sum.h"
#include "onnxmem/comm.h"

enum {
	GROUP_TAG = 0x7fff,      /* of messages within groups; those of programs are below */
	PIECE = 1 << 16,         /* bytes of an ordered sum that are gathered at once */
};

/* Memory for a call; OM_MEMORY without it. */
static om_status
borrow(om_session *s, uint64_t bytes, void **out)
{
	*out = bytes <= SIZE_MAX ? malloc(bytes ? (size_t)bytes : 1) : NULL;
	return *out ? OM_OK : om_fail(s, OM_MEMORY, "cannot allocate %llu bytes for a collective", (unsigned long long)bytes);
}

/* ---- Groups. ---- */

om_status
om_comm_place(const om_comm *c, om_session *s, om_comm_group g, uint32_t *place, uint32_t *size)
{
	bool found = false;

	*place = c->rank;
	*size = c->size;
	if (g.n == 0)
		return OM_OK;
	*size = (uint32_t)g.n;
	for (size_t k = 0; k < g.n; k++) {
		if (g.rank[k] < 0 || g.rank[k] >= c->size || (k && g.rank[k] <= g.rank[k - 1]))
			return om_fail(s, OM_USAGE, "rank %lld of a group is none of %u ranks, or not in ascending order",
				(long long)g.rank[k], c->size);
		if (g.rank[k] == c->rank) {
			*place = (uint32_t)k;
			found = true;
		}
	}
	return found ? OM_OK : om_fail(s, OM_USAGE, "rank %u calls a collective of a group that it is not in", c->rank);
}

static bool
is_whole(const om_comm *c, om_comm_group g)
{
	return g.n == 0 || g.n == c->size;
}

static om_status
check_peer(const om_comm *c, om_session *s, uint32_t peer)
{
	return peer < c->size && peer != c->rank ? OM_OK
		: om_fail(s, OM_USAGE, "rank %u has no other rank %u: there are %u ranks", c->rank, peer, c->size);
}

/* The first rank of the group receives `bytes` bytes of each, in order, and sums them in `sum`. */
static om_status
sum_at_first(om_comm *c, om_session *s, om_comm_group g, om_dtype type, void *sum, void *from, uint64_t bytes)
{
	const uint64_t n = bytes / (om_dtype_bits(type) / 8);

	for (size_t k = 1; k < g.n; k++) {
		OM_TRY(c->ops->receive(c, s, (uint32_t)g.rank[k], GROUP_TAG, from, bytes));
		om_sum_into(type, sum, from, n);
	}
	return OM_OK;
}

static om_status
group_reduce(om_comm *c, om_session *s, om_comm_group g, uint32_t place, om_dtype type, void *data, uint64_t bytes)
{
	const uint32_t first = (uint32_t)g.rank[0];
	void *from;

	if (place != 0) {
		OM_TRY(c->ops->send(c, s, first, GROUP_TAG, data, bytes));
		return c->ops->receive(c, s, first, GROUP_TAG, data, bytes);
	}
	OM_TRY(borrow(s, bytes, &from));
	om_status st = sum_at_first(c, s, g, type, data, from, bytes);
	for (size_t k = 1; k < g.n && st == OM_OK; k++)
		st = c->ops->send(c, s, (uint32_t)g.rank[k], GROUP_TAG, data, bytes);
	free(from);
	return st;
}

static om_status
group_scatter(om_comm *c, om_session *s, om_comm_group g, uint32_t place, om_dtype type, const void *in, void *out, uint64_t bytes)
{
	const uint32_t first = (uint32_t)g.rank[0];
	void *both;

	if (place != 0) {
		OM_TRY(c->ops->send(c, s, first, GROUP_TAG, in, bytes * g.n));
		return c->ops->receive(c, s, first, GROUP_TAG, out, bytes);
	}
	OM_TRY(borrow(s, om_size_product(2 * bytes, g.n), &both));
	char *sum = both;
	memcpy(sum, in, bytes * g.n);
	om_status st = sum_at_first(c, s, g, type, sum, sum + bytes * g.n, bytes * g.n);
	for (size_t k = 1; k < g.n && st == OM_OK; k++)
		st = c->ops->send(c, s, (uint32_t)g.rank[k], GROUP_TAG, sum + k * bytes, bytes);
	if (st == OM_OK)
		memcpy(out, sum, bytes);
	free(both);
	return st;
}

static om_status
group_gather(om_comm *c, om_session *s, om_comm_group g, uint32_t place, const void *in, void *out, uint64_t bytes)
{
	const uint32_t first = (uint32_t)g.rank[0];
	char *to = out;

	if (place != 0) {
		OM_TRY(c->ops->send(c, s, first, GROUP_TAG, in, bytes));
		return c->ops->receive(c, s, first, GROUP_TAG, out, bytes * g.n);
	}
	if (in != out)
		memcpy(out, in, bytes);
	for (size_t k = 1; k < g.n; k++)
		OM_TRY(c->ops->receive(c, s, (uint32_t)g.rank[k], GROUP_TAG, to + k * bytes, bytes));
	for (size_t k = 1; k < g.n; k++)
		OM_TRY(c->ops->send(c, s, (uint32_t)g.rank[k], GROUP_TAG, out, bytes * g.n));
	return OM_OK;
}

/* ---- Ordered sums. ---- */

/* Sum a piece of all ranks in `to`, by rank; `all` holds those of all ranks.  `keeps`: this rank needs the sum. */
static om_status
sum_piece(om_comm *c, om_session *s, om_dtype type, const void *piece, void *to, char *all, uint64_t bytes, bool keeps)
{
	OM_TRY(c->ops->all_gather(c, s, piece, all, bytes));
	for (uint32_t r = 1; r < c->size && keeps; r++)
		om_sum_into(type, all, all + r * bytes, bytes / (om_dtype_bits(type) / 8));
	if (keeps)
		memcpy(to, all, bytes);
	return OM_OK;
}

static om_status
sum_in_order(om_comm *c, om_session *s, om_dtype type, const char *from, char *to, uint64_t bytes, bool keeps)
{
	void *all;

	OM_TRY(borrow(s, (uint64_t)c->size * PIECE, &all));
	om_status st = OM_OK;
	for (uint64_t at = 0; at < bytes && st == OM_OK; at += PIECE)
		st = sum_piece(c, s, type, from + at, to + (keeps ? at : 0), all, bytes - at < PIECE ? bytes - at : PIECE, keeps);
	free(all);
	return st;
}

/* ---- Collectives. ---- */

om_status
om_comm_all_reduce(om_comm *c, om_session *s, om_comm_group g, om_dtype type, void *data, uint64_t n, bool ordered)
{
	uint32_t place, size;

	OM_TRY(om_comm_place(c, s, g, &place, &size));
	OM_TRY(om_sum_check(s, type));
	const uint64_t bytes = n * (om_dtype_bits(type) / 8);
	if (size == 1 || n == 0)
		return OM_OK;
	if (!is_whole(c, g))
		return group_reduce(c, s, g, place, type, data, bytes);
	if (ordered)
		return sum_in_order(c, s, type, data, data, bytes, true);
	return c->ops->all_reduce(c, s, type, data, n);
}

om_status
om_comm_reduce_scatter(om_comm *c, om_session *s, om_comm_group g, om_dtype type, const void *in, void *out, uint64_t n,
	bool ordered)
{
	uint32_t place, size;

	OM_TRY(om_comm_place(c, s, g, &place, &size));
	OM_TRY(om_sum_check(s, type));
	const uint64_t bytes = n * (om_dtype_bits(type) / 8);
	if (n == 0)
		return OM_OK;
	if (size == 1) {
		if (in != out)
			memcpy(out, in, bytes);
		return OM_OK;
	}
	if (!is_whole(c, g))
		return group_scatter(c, s, g, place, type, in, out, bytes);
	if (!ordered)
		return c->ops->reduce_scatter(c, s, type, in, out, n);
	for (uint32_t r = 0; r < size; r++)
		OM_TRY(sum_in_order(c, s, type, (const char *)in + r * bytes, out, bytes, r == place));
	return OM_OK;
}

om_status
om_comm_all_gather(om_comm *c, om_session *s, om_comm_group g, const void *in, void *out, uint64_t bytes)
{
	uint32_t place, size;

	OM_TRY(om_comm_place(c, s, g, &place, &size));
	if (bytes == 0)
		return OM_OK;
	if (size == 1) {
		if (in != out)
			memcpy(out, in, bytes);
		return OM_OK;
	}
	return is_whole(c, g) ? c->ops->all_gather(c, s, in, out, bytes) : group_gather(c, s, g, place, in, out, bytes);
}

om_status
om_comm_broadcast(om_comm *c, om_session *s, om_comm_group g, void *data, uint64_t bytes, uint32_t root)
{
	uint32_t place, size;
	bool found = root < c->size && g.n == 0;

	OM_TRY(om_comm_place(c, s, g, &place, &size));
	for (size_t k = 0; k < g.n; k++)
		found |= g.rank[k] == root;
	if (!found)
		return om_fail(s, OM_USAGE, "rank %u, whose elements are to be broadcast, is not in the group", root);
	if (size == 1 || bytes == 0)
		return OM_OK;
	if (is_whole(c, g))
		return c->ops->broadcast(c, s, data, bytes, root);
	if (c->rank != root)
		return c->ops->receive(c, s, root, GROUP_TAG, data, bytes);
	for (size_t k = 0; k < g.n; k++)
		if (g.rank[k] != root)
			OM_TRY(c->ops->send(c, s, (uint32_t)g.rank[k], GROUP_TAG, data, bytes));
	return OM_OK;
}

om_status
om_comm_send(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, const void *data, uint64_t bytes)
{
	OM_TRY(check_peer(c, s, peer));
	return c->ops->send(c, s, peer, tag, data, bytes);
}

om_status
om_comm_receive(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, void *data, uint64_t bytes)
{
	OM_TRY(check_peer(c, s, peer));
	return c->ops->receive(c, s, peer, tag, data, bytes);
}

om_status
om_comm_barrier(om_comm *c, om_session *s)
{
	return c->size == 1 ? OM_OK : c->ops->barrier(c, s);
}

void
om_comm_abort(om_comm *c, const char *why)
{
	if (c)
		c->ops->abort(c, why);
}

void
om_comm_close(om_comm *c)
{
	if (c)
		c->ops->close(c);
}

/* The same number of bytes on each rank is compared first: all gather as many as they agree on. */
om_status
om_comm_agree(om_comm *c, om_session *s, const char *what, const void *data, size_t bytes)
{
	const uint64_t n = bytes;
	uint64_t *length;
	void *all;
	uint32_t bad = 0;

	OM_TRY(borrow(s, sizeof n * c->size, &all));
	length = all;
	om_status st = om_comm_all_gather(c, s, (om_comm_group){0}, &n, length, sizeof n);
	for (uint32_t r = c->size; r-- > 1 && st == OM_OK;)
		bad = length[r] != length[0] ? r : bad;
	free(all);
	OM_TRY(st);
	if (!bad) {
		OM_TRY(borrow(s, om_size_product(bytes, c->size), &all));
		st = om_comm_all_gather(c, s, (om_comm_group){0}, data, all, bytes);
		for (uint32_t r = c->size; r-- > 1 && st == OM_OK;)
			bad = memcmp((char *)all + r * bytes, all, bytes) != 0 ? r : bad;
		free(all);
		OM_TRY(st);
	}
	return bad ? om_fail(s, OM_USAGE, "rank %u has another %s than rank 0", bad, what) : OM_OK;
}
