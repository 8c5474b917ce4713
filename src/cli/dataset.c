/* SPDX-License-Identifier: Apache-2.0 */
/* Samples: lookup by name, shuffling, gathering into batches. */
#include <config.h>

#include <string.h>

#include "base/rng.h"
#include "base/shape.h"
#include "cli/dataset.h"
#include "ir/type.h"

om_status
om_samples_load(om_cli *c, const char *path, om_samples *out)
{
	*out = (om_samples){.path = path};
	OM_TRY(om_npz_load(c->session, path, c->mem, &out->entry, &out->n));
	return out->n ? OM_OK : om_fail(c->session, OM_USAGE, "%s holds no tensors", path);
}

static const om_tensor *
find(om_cli *c, const om_samples *s, const char *name, const char **all)
{
	*all = "";
	for (size_t k = 0; k < s->n; k++) {
		if (strcmp(s->entry[k].name, name) == 0)
			return &s->entry[k].t;
		*all = om_printf(c->mem, "%s%s%s", *all, k ? ", " : "", s->entry[k].name);
	}
	return NULL;
}

static bool
fits(const om_tensor *t, const om_value *v)
{
	om_shape any = v->shape;

	if (any.rank > 0)
		any.dim[0] = OM_DIM_UNKNOWN;
	return om_shape_agree(&any, &t->shape);
}

om_status
om_samples_want(om_cli *c, om_samples *s, const om_value *v, const char *requester, const om_tensor **out)
{
	const char *names;
	const om_tensor *t = *out = find(c, s, v->name, &names);
	char want[256], got[256];

	if (!t)
		return om_fail(c->session, OM_USAGE, "%s has no tensor called %s, which %s takes; it has %s", s->path, v->name,
			requester, names);
	if (t->shape.rank < 1 || om_dtype_bits(t->type) < 8 || t->type == OM_STRING)
		return om_fail(c->session, OM_USAGE, "%s: %s is %s %s, which is no list of samples", s->path, v->name,
			om_dtype_text(t->type), om_shape_text(&t->shape, got, sizeof got));
	if (v->type.kind != OM_TENSOR || t->type != v->type.elem || !fits(t, v))
		return om_fail(c->session, OM_SHAPE, "%s: %s is %s %s, but %s takes %s %s, a sample in each place of the "
			"first dim", s->path, v->name, om_dtype_text(t->type), om_shape_text(&t->shape, got, sizeof got),
			requester, om_dtype_text(om_type_elem(&v->type)), om_shape_text(&v->shape, want, sizeof want));
	if (t->shape.dim[0] == 0)
		return om_fail(c->session, OM_USAGE, "%s: %s holds no samples", s->path, v->name);
	if (s->count && s->count != t->shape.dim[0])
		return om_fail(c->session, OM_SHAPE, "%s: %s holds %lld samples, another tensor %lld", s->path, v->name,
			(long long)t->shape.dim[0], (long long)s->count);
	s->count = t->shape.dim[0];
	return OM_OK;
}

/* A uniformly distributed number below `n`: draws that would bias the result are rejected. */
static uint64_t
below(uint64_t *state, uint64_t n)
{
	const uint64_t odd = -n % n;
	uint64_t x;

	do
		x = om_rng(state);
	while (x < odd);
	return x % n;
}

void
om_samples_order(uint64_t seed, uint64_t epoch, int64_t n, int64_t *order)
{
	uint64_t state = seed;

	state = om_rng(&state) ^ epoch;
	for (int64_t k = 0; k < n; k++)
		order[k] = k;
	for (int64_t k = n; k > 1; k--) {
		const int64_t other = (int64_t)below(&state, (uint64_t)k), last = order[k - 1];
		order[k - 1] = order[other];
		order[other] = last;
	}
}

void
om_samples_take(const om_tensor *all, const int64_t *order, int64_t n, void *to)
{
	const size_t bytes = (size_t)om_shape_span(&all->shape, 1, all->shape.rank) * om_dtype_bits(all->type) / 8;

	for (int64_t k = 0; k < n && bytes; k++)
		memcpy((char *)to + (size_t)k * bytes, (const char *)all->data + (size_t)order[k] * bytes, bytes);
}
