/* SPDX-License-Identifier: Apache-2.0 */
/* Remembered results: a pure call on variables that it was made on before has its results already.
 *
 * Variables are immutable and never have the number of another one, so that the key is the kind and the numbers of the inputs:
 * equal keys are equal calls.  A call that is recorded gets
 * variables of its own, with the same elements and numbers: were two recorded calls one, their gradients would be added
 * up in another order, and round differently.  What goes first when there are too many bytes is what costs least to compute for its bytes,
 * with an ageing floor; see Cherkasova, "Improving WWW proxies performance with Greedy-Dual-Size-Frequency caching
 * policy", 1998.
 */
#include <config.h>

#include <stdlib.h>

#include "base/fast_hash.h"
#include "eager/eager_internal.h"

struct result {
	struct result *next;         /* of the same hash */
	uint64_t hash;
	struct kind *kind;
	uint64_t bytes;
	double priority;
	om_variable **out;           /* held */
	uint64_t in[];               /* numbers of variables; 0: none */
};

static uint64_t
hash_of(const struct kind *k, om_variable *const *in)
{
	uint64_t h = k->hash ^ (uintptr_t)k;

	for (uint32_t i = 0; i < k->nin; i++)
		h = om_fast_hash_number(h, in[i] ? in[i]->id : 0);
	return h;
}

static bool
is_of(const struct result *r, const struct kind *k, om_variable *const *in)
{
	bool same = r->kind == k;

	for (uint32_t i = 0; same && i < k->nin; i++)
		same = r->in[i] == (in[i] ? in[i]->id : 0);
	return same;
}

static bool
are_ready(const struct result *r)
{
	for (uint32_t i = 0; i < r->kind->nout; i++)
		if (r->out[i] && r->out[i]->state != OM_READY)
			return false;
	return true;
}

static const struct result *
find(om_eager *e, const struct kind *k, om_variable *const *in)
{
	const uint64_t hash = hash_of(k, in);
	struct result *r = e->results[hash % OM_EAGER_RESULTS];

	while (r && !(r->hash == hash && is_of(r, k, in)))
		r = r->next;
	if (r)
		r->priority = e->result_floor + k->cost / (double)(r->bytes + 1);
	return r;
}

bool
om_results_share(om_eager *e, const struct kind *k, om_variable *const *in, om_variable *const *out)
{
	const struct result *r = find(e, k, in);

	if (!r || !are_ready(r))
		return false;
	for (uint32_t i = 0; i < k->nout; i++) {
		if (!out[i])
			continue;
		out[i]->store = r->out[i]->store;
		out[i]->store->refs++;
		out[i]->t.data = r->out[i]->t.data;
		out[i]->id = r->out[i]->id;
		out[i]->state = OM_READY;
	}
	e->stats.remembered++;
	return true;
}

static void
free_result(om_eager *e, struct result *r)
{
	for (uint32_t i = 0; i < r->kind->nout; i++)
		if (r->out[i]) {
			r->out[i]->holds--;
			om_variable_settle(r->out[i]);
		}
	e->stats.result_bytes -= r->bytes;
	e->nresult--;
	om_kind_drop(r->kind);
	free(r->out);
	free(r);
}

static void
give_up_one(om_eager *e)
{
	struct result **least = NULL;

	for (size_t k = 0; k < OM_EAGER_RESULTS; k++)
		for (struct result **r = &e->results[k]; *r; r = &(*r)->next)
			if (!least || (*r)->priority < (*least)->priority)
				least = r;
	struct result *r = *least;
	*least = r->next;
	e->result_floor = r->priority;
	free_result(e, r);
}

static uint64_t
bytes_of(const struct kind *k, om_variable *const *out)
{
	uint64_t all = 0, bytes;

	for (uint32_t i = 0; i < k->nout; i++)
		if (out[i] && om_tensor_bytes(out[i]->t.type, &out[i]->t.shape, &bytes))
			all += bytes;
	return all;
}

/* Without memory, the result is not remembered. */
void
om_results_add(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out)
{
	const uint64_t hash = hash_of(k, in), bytes = bytes_of(k, out);
	struct result *r = bytes <= e->options.result_bytes ? calloc(1, sizeof *r + k->nin * sizeof *r->in) : NULL;
	om_variable **list = r ? calloc((size_t)k->nout + 1, sizeof *list) : NULL;

	if (!list) {
		free(r);
		return;
	}
	*r = (struct result){.next = e->results[hash % OM_EAGER_RESULTS], .hash = hash, .kind = k, .bytes = bytes, .out = list,
		.priority = e->result_floor + k->cost / (double)(bytes + 1)};
	k->refs++;
	for (uint32_t i = 0; i < k->nin; i++)
		r->in[i] = in[i] ? in[i]->id : 0;
	for (uint32_t i = 0; i < k->nout; i++)
		if ((list[i] = out[i]))
			out[i]->holds++;
	e->results[hash % OM_EAGER_RESULTS] = r;
	e->nresult++;
	e->stats.result_bytes += bytes;
	while (e->stats.result_bytes > e->options.result_bytes || e->nresult > OM_EAGER_RESULTS)
		give_up_one(e);
}

void
om_results_forget(om_eager *e)
{
	for (size_t k = 0; k < OM_EAGER_RESULTS; k++)
		for (struct result *r; (r = e->results[k]); ) {
			e->results[k] = r->next;
			free_result(e, r);
		}
}
