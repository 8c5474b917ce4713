/* SPDX-License-Identifier: Apache-2.0 */
/* Elements in memory of others, and memory of variables that is lent to others. */
#include <config.h>

#include <stdlib.h>

#include "base/shape.h"
#include "eager/eager_internal.h"

/* ---- In. ---- */

static om_status
check_memory(om_eager *e, const om_memory *m, om_tensor *t, uint64_t *bytes)
{
	if (m->device && strcmp(m->device, "cpu") != 0)
		return om_fail(e->session, OM_UNSUPPORTED, "memory of device %s cannot be a variable: only that of cpu can", m->device);
	if (m->rank < 0 || m->rank > OM_MAX_RANK)
		return om_fail(e->session, OM_USAGE, "memory of %d dims cannot be a variable: there are at most %d", m->rank, OM_MAX_RANK);
	*t = (om_tensor){.data = m->data, .type = m->type, .shape = om_shape_of(m->rank, m->dim)};
	return om_variable_check(e, t, bytes);
}

/* Strides along axes of one element do not count. */
static bool
is_dense(const om_memory *m, const om_shape *s)
{
	int64_t step = 1;

	if (!m->stride || om_shape_count(s) == 0)
		return true;
	for (int d = m->rank; d-- > 0;) {
		if (m->dim[d] != 1 && m->stride[d] != step)
			return false;
		step *= m->dim[d];
	}
	return true;
}

/* Copy the elements in row-major order. */
static void
gather(const om_memory *m, const om_shape *s, char *to)
{
	const int64_t each = om_dtype_bits(m->type) / 8, n = om_shape_count(s);
	int64_t at[OM_MAX_RANK] = {0}, from = 0;

	for (int64_t k = 0; k < n; k++) {
		memcpy(to + k * each, (const char *)m->data + from * each, (size_t)each);
		for (int d = m->rank; d-- > 0;) {
			from += m->stride[d];
			if (++at[d] < m->dim[d])
				break;
			from -= m->stride[d] * m->dim[d];
			at[d] = 0;
		}
	}
}

static om_status
copy(om_eager *e, const om_memory *m, const om_tensor *t, uint64_t bytes, om_variable **out)
{
	const bool dense = is_dense(m, &t->shape);

	if (!dense && om_dtype_bits(m->type) < 8)
		return om_fail(e->session, OM_UNSUPPORTED, "elements of %s must be dense", om_dtype_text(m->type));
	struct store *store = om_store_take(e->memory, bytes);
	const om_status st = om_variable_of_store(e, t, store, bytes, out);
	if (st != OM_OK) {
		om_store_drop(e->memory, store);
		return st;
	}
	if (dense && bytes)
		memcpy(store->data, m->data, bytes);
	else if (!dense)
		gather(m, &t->shape, store->data);
	if (m->release)
		m->release(m->arg);
	return OM_OK;
}

static om_status
take(om_eager *e, const om_memory *m, const om_tensor *t, uint64_t bytes, om_variable **out)
{
	struct store *store = om_store_external(m->data, bytes, m->release, m->arg);
	const om_status st = om_variable_of_store(e, t, store, bytes, out);

	if (st != OM_OK)
		free(store);
	return st;
}

struct wrap {
	om_eager *e;
	const om_memory *m;
	om_variable *v;
};

static om_status
wrap(void *arg)
{
	struct wrap *w = arg;
	om_tensor t;
	uint64_t bytes;

	OM_TRY(check_memory(w->e, w->m, &t, &bytes));
	return is_dense(w->m, &t.shape) && bytes && om_tensor_is_aligned(&t) ? take(w->e, w->m, &t, bytes, &w->v)
		: copy(w->e, w->m, &t, bytes, &w->v);
}

om_status
om_variable_wrap(om_eager *e, const om_memory *m, om_variable **out)
{
	struct wrap w = {e, m, NULL};
	const om_status st = om_eager_guarded(e, wrap, &w);

	*out = w.v;
	return st;
}

/* ---- Out. ---- */

/* What is lent keeps the bytes and their pool, not the variable. */
struct lease {
	struct store *store;
	struct memory_pool *pool;
	int64_t dim[OM_MAX_RANK], stride[OM_MAX_RANK];
};

static void
end_lease(void *arg)
{
	struct lease *l = arg;

	om_store_drop(l->pool, l->store);
	om_memory_pool_leave(l->pool);
	free(l);
}

om_status
om_variable_lend(om_variable *v, om_memory *to)
{
	const om_tensor *t;
	int64_t step = 1;

	OM_TRY(om_variable_read(v, &t));
	struct lease *l = calloc(1, sizeof *l);
	if (!l)
		return om_fail(v->e->session, OM_MEMORY, "no memory to lend a variable");
	l->store = v->store;
	l->store->refs++;
	l->pool = v->e->memory;
	l->pool->refs++;
	for (int d = t->shape.rank; d-- > 0;) {
		l->dim[d] = t->shape.dim[d];
		l->stride[d] = step;
		step *= t->shape.dim[d];
	}
	*to = (om_memory){.data = t->data, .type = t->type, .rank = t->shape.rank, .dim = l->dim, .stride = l->stride, .device = "cpu",
		.release = end_lease, .arg = l};
	return OM_OK;
}
