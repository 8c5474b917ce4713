/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator of one machine: memory that threads, or processes after fork(), share.
 *
 * A collective goes by pieces.  Each rank writes its piece to a slot of its own, waits for all others, and reads theirs.
 * There are two sets of slots, used in turn: a rank that writes the next but one piece has waited for all others to read
 * this one.  Sums are computed in the order of ranks.
 *
 * A rank that dies must not stop the others for good, and it may die at any instruction.  So there is no lock that others
 * need, only counters, and a mutex for each rank that it holds as long as it lives: one that is robust tells who asks
 * for it that its owner has died.  Ranks that wait ask now and then. */
#include <config.h>

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/life.h"
#include "comm/sum.h"
#include "onnxmem/comm.h"

enum {
	SLOT = 1 << 18,          /* bytes of a piece */
	MAIL = 1 << 14,          /* bytes of a piece of a message */
	MOST = 64,               /* ranks */
	SPINS = 64,              /* before a rank that waits sleeps */
	WHY = 400,
};

enum { ABSENT, JOINED, LEFT };

/* A piece of a message on its way. */
struct mail {
	_Atomic uint32_t full;
	uint32_t tag;
	uint64_t bytes;          /* of the whole message */
	unsigned char data[MAIL];
};

struct member {
	om_life life;            /* of the rank, while it takes part */
	_Atomic int state;
};

struct om_comm_local {
	uint64_t bytes;          /* of this mapping */
	uint32_t size;
	double limit;
	_Atomic uint32_t ended;  /* 0; 1: `why` is being written; 2: it is there */
	char why[WHY];
	_Atomic uint32_t arrived, generation;
	struct member member[MOST];
	unsigned char memory[];  /* 2 * size slots, then size * size mails, from sender to receiver */
};

/* A message that came before one with another tag. */
struct kept {
	uint32_t peer, tag;
	uint64_t bytes;
	struct kept *next;
	unsigned char data[];
};

struct local {
	om_comm comm;
	om_comm_local *all;
	uint32_t turn;           /* which set of slots */
	struct kept *kept;       /* oldest first */
};

static unsigned char *
slot(const struct local *l, uint32_t rank)
{
	return l->all->memory + ((size_t)(l->turn & 1) * l->all->size + rank) * SLOT;
}

static struct mail *
mail(const struct local *l, uint32_t from, uint32_t to)
{
	struct mail *all = (struct mail *)(l->all->memory + (size_t)2 * l->all->size * SLOT);

	return &all[(size_t)from * l->all->size + to];
}

/* ---- Ends. ---- */

/* The first reason is kept. */
static void
end_all(om_comm_local *a, const char *why)
{
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong(&a->ended, &none, 1))
		return;
	snprintf(a->why, sizeof a->why, "%s", why);
	atomic_store(&a->ended, 2);
}

/* Has the rank died? */
static bool
is_dead(struct member *m)
{
	return !om_life_goes_on(&m->life) && atomic_load(&m->state) == JOINED;
}

/* Of another rank that ended, or of all; `from` UINT32_MAX: this one waits for every rank. */
static om_status
find_end(struct local *l, om_session *s, uint32_t from)
{
	om_comm_local *a = l->all;
	char why[WHY];

	for (uint32_t r = 0; r < a->size && atomic_load(&a->ended) == 0; r++) {
		const int state = atomic_load(&a->member[r].state);
		if (r == l->comm.rank || state == ABSENT)
			continue;
		if (state == JOINED && is_dead(&a->member[r])) {
			snprintf(why, sizeof why, "rank %u of %u has died", r, a->size);
			end_all(a, why);
		} else if (state == LEFT && (from == UINT32_MAX || from == r)) {
			snprintf(why, sizeof why, "rank %u of %u has left, and rank %u waits for it", r, a->size, l->comm.rank);
			end_all(a, why);
		}
	}
	if (atomic_load(&a->ended) != 2)
		return OM_OK;
	return om_fail(s, OM_RUN, "%s", a->why);
}

/* ---- Waiting. ---- */

struct waiting {
	struct local *l;
	om_session *s;
	uint32_t from;           /* as in find_end() */
	unsigned turns;
	double start;
};

static om_status
is_late(struct waiting *w)
{
	om_comm_local *a = w->l->all;
	char why[WHY];

	if (a->limit <= 0 || om_now_ms() - w->start < a->limit * 1000)
		return OM_OK;
	if (w->from == UINT32_MAX)
		snprintf(why, sizeof why, "rank %u of %u has waited %g seconds for the others", w->l->comm.rank, a->size, a->limit);
	else
		snprintf(why, sizeof why, "rank %u of %u has waited %g seconds for rank %u", w->l->comm.rank, a->size, a->limit,
			w->from);
	end_all(a, why);
	return OM_OK;
}

/* One turn of waiting. */
static om_status
wait_a_turn(struct waiting *w)
{
	if (++w->turns < SPINS) {
		sched_yield();
		return OM_OK;
	}
	if (w->turns == SPINS)
		w->start = om_now_ms();
	if (w->turns % 32 == 0) {
		if (om_session_is_stopped(w->s))
			return om_fail(w->s, OM_STOPPED, "the run was stopped");
		OM_TRY(is_late(w));
		OM_TRY(find_end(w->l, w->s, w->from));
	}
	const struct timespec t = {0, w->turns < 1024 ? 20000 : 500000};
	nanosleep(&t, NULL);
	return OM_OK;
}

/* What was waited for may have come while it was looked for an end. */
#define WAIT_UNTIL(l, s, from, ready)                                                  \
	do {                                                                           \
		struct waiting wait_ = {(l), (s), (from), 0, 0};                          \
		while (!(ready)) {                                                     \
			const om_status st_ = wait_a_turn(&wait_);                     \
			if (st_ != OM_OK && !(ready))                                  \
				return st_;                                            \
		}                                                                      \
	} while (0)

static om_status
meet(struct local *l, om_session *s)
{
	om_comm_local *a = l->all;
	const uint32_t generation = atomic_load(&a->generation);

	if (atomic_load(&a->ended))
		OM_TRY(find_end(l, s, UINT32_MAX));
	if (atomic_fetch_add(&a->arrived, 1) + 1 == a->size) {
		atomic_store(&a->arrived, 0);
		atomic_fetch_add(&a->generation, 1);
		return OM_OK;
	}
	WAIT_UNTIL(l, s, UINT32_MAX, atomic_load(&a->generation) != generation);
	return OM_OK;
}

/* ---- Collectives. ---- */

static uint64_t
piece(uint64_t bytes, uint64_t at)
{
	return bytes - at < SLOT ? bytes - at : SLOT;
}

/* The sum of `count` elements of the slots, from `from` on, in the slot of rank 0. */
static void
sum_slots(struct local *l, om_dtype type, uint64_t from, uint64_t count)
{
	const size_t size = om_dtype_bits(type) / 8;

	for (uint32_t r = 1; r < l->all->size; r++)
		om_sum_into(type, slot(l, 0) + from * size, slot(l, r) + from * size, count);
}

static om_status
local_all_reduce(om_comm *c, om_session *s, om_dtype type, void *data, uint64_t n)
{
	struct local *l = (struct local *)c;
	const uint64_t size = om_dtype_bits(type) / 8, bytes = n * size;

	for (uint64_t at = 0; at < bytes; at += SLOT, l->turn++) {
		const uint64_t here = piece(bytes, at), count = here / size;
		const uint64_t from = count * c->rank / c->size, to = count * (c->rank + 1) / c->size;
		memcpy(slot(l, c->rank), (char *)data + at, here);
		OM_TRY(meet(l, s));
		sum_slots(l, type, from, to - from);
		OM_TRY(meet(l, s));
		memcpy((char *)data + at, slot(l, 0), here);
	}
	return OM_OK;
}

static om_status
local_reduce_scatter(om_comm *c, om_session *s, om_dtype type, const void *in, void *out, uint64_t n)
{
	struct local *l = (struct local *)c;
	const uint64_t size = om_dtype_bits(type) / 8, bytes = n * size;

	for (uint32_t r = 0; r < c->size; r++)
		for (uint64_t at = 0; at < bytes; at += SLOT, l->turn++) {
			const uint64_t here = piece(bytes, at);
			memcpy(slot(l, c->rank), (const char *)in + r * bytes + at, here);
			OM_TRY(meet(l, s));
			if (r != c->rank)
				continue;
			memcpy((char *)out + at, slot(l, 0), here);
			for (uint32_t k = 1; k < c->size; k++)
				om_sum_into(type, (char *)out + at, slot(l, k), here / size);
		}
	return OM_OK;
}

static om_status
local_all_gather(om_comm *c, om_session *s, const void *in, void *out, uint64_t bytes)
{
	struct local *l = (struct local *)c;

	for (uint64_t at = 0; at < bytes; at += SLOT, l->turn++) {
		const uint64_t here = piece(bytes, at);
		memcpy(slot(l, c->rank), (const char *)in + at, here);
		OM_TRY(meet(l, s));
		for (uint32_t r = 0; r < c->size; r++)
			if ((const char *)out + r * bytes != (const char *)in)
				memcpy((char *)out + r * bytes + at, slot(l, r), here);
	}
	return OM_OK;
}

static om_status
local_broadcast(om_comm *c, om_session *s, void *data, uint64_t bytes, uint32_t root)
{
	struct local *l = (struct local *)c;

	for (uint64_t at = 0; at < bytes; at += SLOT, l->turn++) {
		const uint64_t here = piece(bytes, at);
		if (c->rank == root)
			memcpy(slot(l, root), (char *)data + at, here);
		OM_TRY(meet(l, s));
		if (c->rank != root)
			memcpy((char *)data + at, slot(l, root), here);
	}
	return OM_OK;
}

/* ---- Messages. ---- */

static om_status
local_send(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, const void *data, uint64_t bytes)
{
	struct local *l = (struct local *)c;
	struct mail *m = mail(l, c->rank, peer);

	for (uint64_t at = 0; at == 0 || at < bytes; at += MAIL) {
		const uint64_t here = bytes - at < MAIL ? bytes - at : MAIL;
		WAIT_UNTIL(l, s, peer, !atomic_load(&m->full));
		m->tag = tag;
		m->bytes = bytes;
		if (here)
			memcpy(m->data, (const char *)data + at, here);
		atomic_store(&m->full, 1);
	}
	return OM_OK;
}

/* Read the message whose first piece is there. */
static om_status
take(struct local *l, om_session *s, uint32_t peer, void *data, uint64_t bytes)
{
	struct mail *m = mail(l, peer, l->comm.rank);

	for (uint64_t at = 0; at == 0 || at < bytes; at += MAIL) {
		const uint64_t here = bytes - at < MAIL ? bytes - at : MAIL;
		WAIT_UNTIL(l, s, peer, atomic_load(&m->full));
		if (here)
			memcpy((char *)data + at, m->data, here);
		atomic_store(&m->full, 0);
	}
	return OM_OK;
}

/* A message with another tag is kept until it is asked for. */
static om_status
put_aside(struct local *l, om_session *s, uint32_t peer)
{
	const struct mail *m = mail(l, peer, l->comm.rank);
	struct kept *k = malloc(sizeof *k + (size_t)m->bytes), **end = &l->kept;

	if (!k)
		return om_fail(s, OM_MEMORY, "cannot allocate %llu bytes for a message", (unsigned long long)m->bytes);
	*k = (struct kept){.peer = peer, .tag = m->tag, .bytes = m->bytes};
	const om_status st = take(l, s, peer, k->data, k->bytes);
	if (st != OM_OK) {
		free(k);
		return st;
	}
	while (*end)
		end = &(*end)->next;
	*end = k;
	return OM_OK;
}

static struct kept **
find_kept(struct local *l, uint32_t peer, uint32_t tag)
{
	for (struct kept **k = &l->kept; *k; k = &(*k)->next)
		if ((*k)->peer == peer && (*k)->tag == tag)
			return k;
	return NULL;
}

static om_status
wrong_length(om_session *s, uint32_t peer, uint64_t is, uint64_t expected)
{
	return om_fail(s, OM_RUN, "rank %u sent a message of %llu bytes, and %llu are expected", peer, (unsigned long long)is,
		(unsigned long long)expected);
}

static om_status
local_receive(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, void *data, uint64_t bytes)
{
	struct local *l = (struct local *)c;
	struct mail *m = mail(l, peer, c->rank);

	struct kept **at = find_kept(l, peer, tag);
	for (; !at; at = find_kept(l, peer, tag)) {
		WAIT_UNTIL(l, s, peer, atomic_load(&m->full));
		if (m->tag == tag)
			return m->bytes == bytes ? take(l, s, peer, data, bytes) : wrong_length(s, peer, m->bytes, bytes);
		OM_TRY(put_aside(l, s, peer));
	}
	struct kept *k = *at;
	if (k->bytes != bytes)
		return wrong_length(s, peer, k->bytes, bytes);
	if (bytes)
		memcpy(data, k->data, bytes);
	*at = k->next;
	free(k);
	return OM_OK;
}

static om_status
local_barrier(om_comm *c, om_session *s)
{
	return meet((struct local *)c, s);
}

/* ---- Joining and leaving. ---- */

static void
local_abort(om_comm *c, const char *why)
{
	end_all(((struct local *)c)->all, why);
}

static void
local_close(om_comm *c)
{
	struct local *l = (struct local *)c;
	struct member *m = &l->all->member[c->rank];

	atomic_store(&m->state, LEFT);
	om_life_end(&m->life);
	while (l->kept) {
		struct kept *next = l->kept->next;
		free(l->kept);
		l->kept = next;
	}
	free(l);
}

static const om_comm_ops local_ops = {
	.size = sizeof(om_comm_ops), .name = "local", .all_reduce = local_all_reduce, .reduce_scatter = local_reduce_scatter,
	.all_gather = local_all_gather, .broadcast = local_broadcast, .send = local_send, .receive = local_receive,
	.barrier = local_barrier, .abort = local_abort, .close = local_close, .may_change_thread = true,
};

om_status
om_comm_local_new(om_session *s, uint32_t size, double limit, om_comm_local **out)
{
	const uint64_t bytes = sizeof(om_comm_local) + (uint64_t)2 * size * SLOT + (uint64_t)size * size * sizeof(struct mail);

	*out = NULL;
	if (size == 0 || size > MOST)
		return om_fail(s, OM_USAGE, "from 1 to %d ranks can run on one machine, not %u", MOST, size);
	om_comm_local *a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a == MAP_FAILED)
		return om_fail(s, OM_MEMORY, "cannot map %llu bytes for %u ranks: %s", (unsigned long long)bytes, size,
			strerror(errno));
	a->bytes = bytes;
	a->size = size;
	a->limit = limit;
	for (uint32_t r = 0; r < size; r++)
		if (!om_life_init(&a->member[r].life)) {
			munmap(a, bytes);
			return om_fail(s, OM_UNSUPPORTED, "this system has no robust mutexes, which tell that a rank has died");
		}
	*out = a;
	return OM_OK;
}

om_status
om_comm_local_join(om_comm_local *a, om_session *s, uint32_t rank, om_comm **out)
{
	struct local *l = malloc(sizeof *l);

	*out = NULL;
	if (!l)
		return om_fail(s, OM_MEMORY, "cannot allocate a communicator");
	*l = (struct local){.comm = {&local_ops, rank, a->size}, .all = a};
	if (rank >= a->size || atomic_load(&a->member[rank].state) != ABSENT || !om_life_begin(&a->member[rank].life)) {
		free(l);
		return om_fail(s, OM_USAGE, "rank %u of %u cannot join: there is no such rank, or it has joined", rank, a->size);
	}
	atomic_store(&a->member[rank].state, JOINED);
	*out = &l->comm;
	return OM_OK;
}

void
om_comm_local_free(om_comm_local *a)
{
	if (a)
		munmap(a, a->bytes);
}
