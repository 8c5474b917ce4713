/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of states: a message for each part, so that no rank other than the first has more than its own. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "cli/rank_states.h"

enum { TAG = 23 };

struct exchange {
	om_cli *c;
	const om_ranks *r;
	om_session *session;
	unsigned char *room;     /* of a part */
};

static uint64_t
bytes_of(const om_tensor *t)
{
	uint64_t bytes = 0;

	return t && om_tensor_bytes(t->type, &t->shape, &bytes) ? bytes : 0;
}

const om_tensor *
om_rank_states_find(const om_trainer *t, const char *name)
{
	const om_tensor *found;
	const char *is;

	for (uint32_t k = 0; (found = om_trainer_state(t, k, &is)); k++)
		if (strcmp(is, name) == 0)
			return found;
	return NULL;
}

/* The state of `whole` that `parts` calls its state `k`. */
static om_status
find_whole(om_cli *c, const om_trainer *whole, const om_trainer *parts, uint32_t k, const om_tensor **out)
{
	const char *want;

	om_trainer_state(parts, k, &want);
	*out = om_rank_states_find(whole, want);
	return *out ? OM_OK : om_fail(c->session, OM_RUN, "the step has no state %s", want);
}

/* How many bytes of the `all` are in part `rank` of `size` bytes, from rank * size on. */
static uint64_t
share(uint64_t all, uint64_t size, uint32_t rank)
{
	const uint64_t from = size * rank;

	return from >= all ? 0 : all - from < size ? all - from : size;
}

static om_status
take_parts(struct exchange *x, const om_tensor *part, const om_tensor *whole)
{
	const uint64_t size = bytes_of(part), all = bytes_of(whole);
	unsigned char *to = whole->data;

	memcpy(to, part->data, share(all, size, 0));
	for (uint32_t k = 1; k < x->r->size && size != all; k++) {
		OM_TRY(om_comm_receive(x->r->comm, x->session, k, TAG, x->room, size));
		memcpy(to + (share(all, size, k) ? size * k : 0), x->room, share(all, size, k));
	}
	return OM_OK;
}

static om_status
give_parts(struct exchange *x, const om_tensor *part, const om_tensor *whole)
{
	const uint64_t size = bytes_of(part), all = bytes_of(whole);
	const unsigned char *from = whole->data;

	memcpy(part->data, from, share(all, size, 0));
	for (uint32_t k = 1; k < x->r->size; k++) {
		const uint64_t n = size == all ? size : share(all, size, k);
		memset(x->room, 0, size);
		memcpy(x->room, from + (n && size != all ? size * k : 0), n);
		OM_TRY(om_comm_send(x->r->comm, x->session, k, TAG, x->room, size));
	}
	return OM_OK;
}

static om_status
start(struct exchange *x, om_cli *c, const om_ranks *r, const om_trainer *parts)
{
	const om_tensor *t;
	uint64_t most = 1;

	*x = (struct exchange){.c = c, .r = r, .session = c->session};
	for (uint32_t k = 0; (t = om_trainer_state(parts, k, NULL)); k++)
		most = bytes_of(t) > most ? bytes_of(t) : most;
	if (!(x->room = malloc((size_t)most)))
		return om_fail(c->session, OM_MEMORY, "cannot allocate %llu bytes for a part of a state", (unsigned long long)most);
	return OM_OK;
}

/* On rank 0, with `whole`. */
static om_status
exchange_all(struct exchange *x, const om_trainer *parts, const om_trainer *whole,
	om_status (*each)(struct exchange *x, const om_tensor *part, const om_tensor *whole))
{
	const om_tensor *t, *of;

	for (uint32_t k = 0; (t = om_trainer_state(parts, k, NULL)); k++) {
		OM_TRY(find_whole(x->c, whole, parts, k, &of));
		OM_TRY(each(x, t, of));
	}
	return OM_OK;
}

/* Of other ranks: `divided[k]` tells whether state k is in parts. */
static om_status
send_parts(struct exchange *x, const om_trainer *parts, const bool *divided)
{
	const om_tensor *t;

	for (uint32_t k = 0; (t = om_trainer_state(parts, k, NULL)); k++)
		if (divided[k])
			OM_TRY(om_comm_send(x->r->comm, x->session, 0, TAG, t->data, bytes_of(t)));
	return OM_OK;
}

static bool *
find_divided(om_cli *c, const om_prog *step, const om_trainer *parts)
{
	const om_tensor *t;
	const char *name;
	uint32_t n = 0;

	while (om_trainer_state(parts, n, NULL))
		n++;
	bool *divided = OM_NEWN(c->mem, bool, (size_t)n + 1);
	for (uint32_t k = 0; (t = om_trainer_state(parts, k, &name)); k++)
		for (uint32_t i = 0; i < step->first->nparam; i++)
			if (strcmp(step->first->param[i]->name, name) == 0)
				divided[k] = om_value_bytes(step->first->param[i]) != bytes_of(t);
	return divided;
}

om_status
om_rank_states_gather(om_cli *c, const om_ranks *r, const om_prog *step, const om_trainer *parts, om_trainer **whole)
{
	struct exchange x;
	om_status st;

	*whole = NULL;
	OM_TRY(start(&x, c, r, parts));
	if (r->rank != 0) {
		st = send_parts(&x, parts, find_divided(c, step, parts));
	} else {
		st = om_trainer_new(c->session, step, whole);
		if (st == OM_OK)
			st = exchange_all(&x, parts, *whole, take_parts);
	}
	free(x.room);
	if (st != OM_OK) {
		om_trainer_free(*whole);
		*whole = NULL;
	}
	return st;
}

om_status
om_rank_states_divide(om_cli *c, const om_ranks *r, const om_trainer *whole, om_trainer *parts)
{
	const om_tensor *t;
	struct exchange x;
	om_status st = OM_OK;

	OM_TRY(start(&x, c, r, parts));
	if (r->rank == 0)
		st = exchange_all(&x, parts, whole, give_parts);
	for (uint32_t k = 0; r->rank != 0 && st == OM_OK && (t = om_trainer_state(parts, k, NULL)); k++)
		st = om_comm_receive(r->comm, c->session, 0, TAG, t->data, bytes_of(t));
	free(x.room);
	return st;
}
