/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of calls: recognition while they run.
 *
 * The calls since the last end of a sequence are a path from the root of a trie.  A call of a path is its kind and where its
 * inputs come from: the number of a result of the sequence, or the number of a variable from outside in the order of
 * first use.  Two equal paths are therefore the same computation, of other variables.
 *
 * Where a path ends, its live results are compared with those of earlier ends there.  The second end with the same ones
 * compiles the path.  A sequence whose first call leads to a compiled program is deferred: its calls have places, but no
 * elements.  It is run when it ends at a program for its live results; if it leaves the paths to programs, or ends
 * elsewhere, its calls are computed one by one, in their order.  Deferred calls are pure, and their variables are
 * immutable and pinned, so that it makes no difference when they are computed.
 *
 * A sequence ends where elements are read, before calls that cannot be deferred, and where a long one repeats itself.
 */
#include <config.h>

#include <stdlib.h>

#include "base/fast_hash.h"
#include "eager/eager_internal.h"

enum { REPEATS_FROM = 256, VARIANTS = 8, LEAST_CALLS = 2 };

om_status
om_sequences_new(om_eager *e)
{
	struct sequences *q = &e->seq;

	q->table = OM_NEWN(e->mem, struct call *, OM_EAGER_TABLE);
	q->last = OM_NEWN(e->mem, uint32_t, OM_EAGER_LAST);
	q->at = &q->root;
	q->serial = 1;
	return OM_OK;
}

/* ---- The trie. ---- */

static struct call *
find_call(const om_eager *e, uint64_t hash, const struct kind *k, const uint32_t *place)
{
	const struct sequences *q = &e->seq;
	struct call *c = q->table[hash % OM_EAGER_TABLE];

	while (c && !(c->hash == hash && c->parent == q->at && c->kind == k
	    && (k->nin == 0 || memcmp(c->place, place, k->nin * sizeof *place) == 0)))
		c = c->chain;
	return c;
}

static struct call *
add_call(om_eager *e, uint64_t hash, struct kind *k, const uint32_t *place)
{
	struct sequences *q = &e->seq;
	struct call *c = om_memory_zeroed(sizeof *c + k->nin * sizeof *place);

	if (!c)
		return NULL;
	c->place = (uint32_t *)(c + 1);
	c->parent = q->at;
	c->kind = k;
	k->refs++;
	c->hash = hash;
	c->depth = q->at->depth + 1;
	c->first = q->nmade;
	if (k->nin)
		memcpy(c->place, place, k->nin * sizeof *place);
	c->chain = q->table[hash % OM_EAGER_TABLE];
	q->table[hash % OM_EAGER_TABLE] = c;
	c->next = q->all;
	q->all = c;
	q->ncall++;
	return c;
}

static void
count_compiled(struct call *c, int n)
{
	for (; c; c = c->parent)
		c->ncompiled = (uint32_t)((int)c->ncompiled + n);
}

static void
free_replays(om_eager *e, struct call *c)
{
	for (struct replay *r = c->replays, *next; r; r = next) {
		next = r->next;
		om_replay_release(e, r);
		free(r->live);
		free(r);
	}
	c->replays = NULL;
}

void
om_sequence_forget(om_eager *e)
{
	struct sequences *q = &e->seq;

	for (struct call *c = q->all, *next; c; c = next) {
		next = c->next;
		free_replays(e, c);
		om_kind_drop(c->kind);
		free(c);
	}
	memset(q->table, 0, OM_EAGER_TABLE * sizeof *q->table);
	q->all = NULL;
	q->ncall = 0;
	q->root.ncompiled = 0;
}

void
om_sequences_free(om_eager *e)
{
	struct sequences *q = &e->seq;

	om_sequence_forget(e);
	free(q->path);
	free(q->made);
	free(q->outside);
	free(q->place);
	free(q->vars);
	free(q->live);
	free(q->recent);
}

/* ---- Places. ---- */

/* Room for one more element than `n` in a list. */
static om_status
reserve(om_eager *e, void *list, size_t *cap, size_t each, size_t n)
{
	void **at = list;

	if (n < *cap)
		return OM_OK;
	const size_t bigger = n + n / 2 + 64;
	void *more = realloc(*at, bigger * each);
	if (!more)
		return om_fail(e->session, OM_MEMORY, "no memory for a sequence of calls");
	*at = more;
	*cap = bigger;
	return OM_OK;
}

static om_status
place_input(om_eager *e, om_variable *v, uint32_t *place)
{
	struct sequences *q = &e->seq;

	if (v->sequence != q->serial) {
		OM_TRY(reserve(e, &q->outside, &q->cap_outside, sizeof *q->outside, q->noutside));
		q->outside[q->noutside] = v;
		v->sequence = q->serial;
		v->place = OM_PLACE_OUTSIDE | q->noutside++;
	}
	*place = v->place;
	return OM_OK;
}

/* Where the inputs come from, in q->place. */
static om_status
place_inputs(om_eager *e, const struct kind *k, om_variable *const *in)
{
	struct sequences *q = &e->seq;

	OM_TRY(reserve(e, &q->place, &q->cap_place, sizeof *q->place, k->nin));
	for (uint32_t i = 0; i < k->nin; i++)
		if (!in[i])
			q->place[i] = OM_PLACE_NONE;
		else if (om_is_value(k->values, i))
			q->place[i] = OM_PLACE_VALUE;
		else
			OM_TRY(place_input(e, in[i], &q->place[i]));
	return OM_OK;
}

static void
place_outputs(struct sequences *q, const struct kind *k, om_variable *const *out)
{
	for (uint32_t i = 0; i < k->nout; i++) {
		om_variable *v = k->op->out[i] ? out[i] : NULL;
		if (v) {
			v->sequence = q->serial;
			v->place = q->nmade;
		}
		q->made[q->nmade++] = v;
	}
}

/* ---- Deferred calls. ---- */

static void
pin(struct sequences *q, uint32_t outside, uint32_t made)
{
	for (uint32_t k = outside; k < q->noutside; k++)
		om_variable_pin(q->outside[k]);
	for (uint32_t k = made; k < q->nmade; k++)
		if (q->made[k])
			om_variable_pin(q->made[k]);
}

/* No call is deferred any more. */
static void
release(struct sequences *q)
{
	for (uint32_t k = 0; k < q->noutside; k++)
		om_variable_unpin(q->outside[k]);
	for (uint32_t k = 0; k < q->nmade; k++)
		if (q->made[k])
			om_variable_unpin(q->made[k]);
	q->is_deferring = false;
}

static om_status
compute_one(om_eager *e, const struct call *c)
{
	struct sequences *q = &e->seq;

	OM_TRY(reserve(e, &q->vars, &q->cap_vars, sizeof *q->vars, c->kind->nin));
	for (uint32_t k = 0; k < c->kind->nin; k++) {
		const uint32_t at = c->place[k];
		q->vars[k] = at & OM_PLACE_OUTSIDE ? q->outside[at ^ OM_PLACE_OUTSIDE] : at < OM_PLACE_NONE ? q->made[at] : NULL;
	}
	return om_call_compute(e, c->kind, q->vars, q->made + c->first);
}

/* Compute the deferred calls one by one.  After a failure the rest is not computed, as the caller would have stopped there. */
static om_status
compute_deferred(om_eager *e)
{
	struct sequences *q = &e->seq;
	om_status st = OM_OK;

	for (uint32_t k = 0; k < q->at->depth; k++) {
		const struct call *c = q->path[k];
		if (st == OM_OK)
			st = compute_one(e, c);
		for (uint32_t i = 0; i < c->kind->nout && st != OM_OK; i++)
			if (q->made[c->first + i])
				q->made[c->first + i]->state = OM_FAILED;
	}
	release(q);
	return st;
}

/* ---- The end of a sequence. ---- */

static void
start_again(struct sequences *q)
{
	q->serial++;
	q->at = &q->root;
	q->nmade = q->noutside = q->nrecent = q->period = q->matched = 0;
	q->is_deferring = false;
}

static om_status
find_live(om_eager *e, uint32_t *n)
{
	struct sequences *q = &e->seq;

	*n = 0;
	OM_TRY(reserve(e, &q->live, &q->cap_live, sizeof *q->live, q->nmade));
	for (uint32_t k = 0; k < q->nmade; k++)
		if (q->made[k] && q->made[k]->users + q->made[k]->holds)
			q->live[(*n)++] = k;
	return OM_OK;
}

static struct replay *
find_replay(const struct sequences *q, uint32_t nlive)
{
	struct replay *r = q->at->replays;

	while (r && !(r->nlive == nlive && (nlive == 0 || memcmp(r->live, q->live, nlive * sizeof *r->live) == 0)))
		r = r->next;
	return r;
}

/* NULL: there are enough of this node, or there is no memory. */
static struct replay *
add_replay(struct sequences *q, uint32_t nlive)
{
	struct replay *r;
	uint32_t n = 0;

	for (r = q->at->replays; r; r = r->next)
		n++;
	r = n < VARIANTS && nlive ? calloc(1, sizeof *r) : NULL;
	if (!r)
		return NULL;
	r->live = malloc((size_t)nlive * sizeof *r->live);
	if (!r->live) {
		free(r);
		return NULL;
	}
	memcpy(r->live, q->live, nlive * sizeof *r->live);
	r->nlive = nlive;
	r->next = q->at->replays;
	q->at->replays = r;
	return r;
}

/* Make room for one more program. */
static void
evict_oldest(om_eager *e)
{
	struct call *from = NULL;
	struct replay *oldest = NULL;

	if (e->stats.programs < e->options.programs)
		return;
	for (struct call *c = e->seq.all; c; c = c->next)
		for (struct replay *r = c->replays; r; r = r->next)
			if (r->exec && (!oldest || r->used < oldest->used)) {
				oldest = r;
				from = c;
			}
	om_replay_release(e, oldest);
	oldest->seen = 0;
	count_compiled(from, -1);
}

static void
learn(om_eager *e, struct replay *r)
{
	struct call *at = e->seq.at;

	if (!r || r->exec || r->is_refused || ++r->seen < 2 || at->depth < LEAST_CALLS)
		return;
	evict_oldest(e);
	r->is_refused = om_replay_compile(e, at, r) != OM_OK;
	if (r->exec)
		count_compiled(at, 1);
}

/* Run the program of the deferred calls.  If it fails, the calls are computed one by one, and fail as they would have. */
static om_status
run_replay(om_eager *e, struct replay *r)
{
	if (om_replay_run(e, e->seq.at, r) != OM_OK)
		return compute_deferred(e);
	release(&e->seq);
	return OM_OK;
}

/* Without memory for the sequence, it ends here; what is deferred is computed. */
static om_status
give_up(om_eager *e, uint32_t outside, om_status st)
{
	struct sequences *q = &e->seq;

	q->noutside = outside;
	if (q->is_deferring)
		compute_deferred(e);
	start_again(q);
	return st;
}

om_status
om_sequence_end(om_eager *e)
{
	struct sequences *q = &e->seq;
	om_status st = OM_OK;
	uint32_t nlive;

	if (q->at == &q->root) {
		start_again(q);
		return OM_OK;
	}
	st = find_live(e, &nlive);
	if (st != OM_OK)
		return give_up(e, q->noutside, st);
	struct replay *r = find_replay(q, nlive);
	if (q->is_deferring && r && r->exec) {
		st = run_replay(e, r);
	} else if (q->is_deferring) {
		e->stats.diverged++;
		st = compute_deferred(e);
	}
	if (st == OM_OK)
		learn(e, r ? r : add_replay(q, nlive));
	start_again(q);
	if (q->ncall > OM_EAGER_NODES)
		om_sequence_forget(e);
	return st;
}

/* ---- Calls. ---- */

/* Does the sequence repeat itself?  A call is compared by its kind and the distances to the calls that its inputs come
 * from. */
static om_status
find_repetition(om_eager *e, const struct call *c, bool *found)
{
	struct sequences *q = &e->seq;
	uint64_t h = c->kind->hash;

	*found = false;
	for (uint32_t k = 0; k < c->kind->nin; k++)
		h = om_fast_hash_number(h, c->place[k] < OM_PLACE_NONE ? c->first - c->place[k] : 0);
	OM_TRY(reserve(e, &q->recent, &q->cap_recent, sizeof *q->recent, q->nrecent));
	const uint32_t at = q->nrecent++, before = q->last[h % OM_EAGER_LAST];
	q->recent[at] = h;
	q->last[h % OM_EAGER_LAST] = at + 1;
	if (q->period && q->recent[at - q->period] == h) {
		q->matched++;
	} else {
		const bool known = before && before <= at && q->recent[before - 1] == h;
		q->period = known ? at - (before - 1) : 0;
		q->matched = known;
	}
	*found = q->period && at >= REPEATS_FROM && q->matched >= q->period && q->matched % q->period == 0;
	return OM_OK;
}

/* Is this the end of a program, and of no longer one? */
static om_status
is_complete(om_eager *e, const struct call *c, bool *complete)
{
	uint32_t n = 0, nlive;

	for (const struct replay *r = c->replays; r; r = r->next)
		n += r->exec != NULL;
	*complete = false;
	if (!n || n != c->ncompiled)
		return OM_OK;
	OM_TRY(find_live(e, &nlive));
	const struct replay *r = find_replay(&e->seq, nlive);
	*complete = r && r->exec;
	return OM_OK;
}

static om_status
defer(om_eager *e, struct call *c, uint32_t outside, uint32_t made)
{
	struct sequences *q = &e->seq;
	bool complete;

	pin(q, outside, made);
	OM_TRY(is_complete(e, c, &complete));
	return complete ? om_sequence_end(e) : OM_OK;
}

static om_status
compute_now(om_eager *e, struct call *c, om_variable *const *in, om_variable *const *out)
{
	bool repeats;
	const om_status st = om_call_compute(e, c->kind, in, out);

	if (st != OM_OK) {
		start_again(&e->seq);
		return st;
	}
	OM_TRY(find_repetition(e, c, &repeats));
	return repeats ? om_sequence_end(e) : OM_OK;
}

/* The call after those of the sequence. */
static om_status
find_or_add(om_eager *e, struct kind *k, struct call **c)
{
	struct sequences *q = &e->seq;
	uint64_t hash = om_fast_hash_number((uintptr_t)q->at, (uintptr_t)k);

	for (uint32_t i = 0; i < k->nin; i++)
		hash = om_fast_hash_number(hash, q->place[i]);
	*c = find_call(e, hash, k, q->place);
	if (!*c)
		*c = add_call(e, hash, k, q->place);
	return *c ? OM_OK : om_fail(e->session, OM_MEMORY, "no memory for a sequence of calls");
}

/* The call leads to no program; its variables from outside, from `outside` on, are not pinned yet. */
static om_status
diverge(om_eager *e, uint32_t outside)
{
	struct sequences *q = &e->seq;
	const uint32_t all = q->noutside;

	e->stats.diverged++;
	q->noutside = outside;
	const om_status st = compute_deferred(e);
	q->noutside = all;
	if (st != OM_OK)
		start_again(q);
	return st;
}

/* Where the call is in the trie, with room for it in the lists. */
static om_status
find_place(om_eager *e, struct kind *k, om_variable *const *in, struct call **c)
{
	struct sequences *q = &e->seq;

	OM_TRY(reserve(e, &q->path, &q->cap_path, sizeof *q->path, q->at->depth));
	OM_TRY(reserve(e, &q->made, &q->cap_made, sizeof *q->made, q->nmade + k->nout));
	OM_TRY(place_inputs(e, k, in));
	return find_or_add(e, k, c);
}

om_status
om_sequence_call(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out)
{
	struct sequences *q = &e->seq;
	struct call *c = NULL;

	if (q->at->depth == OM_EAGER_LONGEST)
		OM_TRY(om_sequence_end(e));
	const uint32_t outside = q->noutside, made = q->nmade;
	const om_status st = find_place(e, k, in, &c);
	if (st != OM_OK)
		return give_up(e, outside, st);
	if (q->is_deferring && !c->ncompiled)
		OM_TRY(diverge(e, outside));
	q->is_deferring |= q->at == &q->root && c->ncompiled;
	q->path[c->depth - 1] = c;
	q->at = c;
	place_outputs(q, k, out);
	return q->is_deferring ? defer(e, c, outside, made) : compute_now(e, c, in, out);
}
