/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the dynamic graph share. */
#ifndef OM_UNIT_EAGER_H
#define OM_UNIT_EAGER_H

#include "onnxmem/eager.h"
#include "unit.h"

struct graph {
	om_session *s;
	om_eager *e;
};

static inline struct graph
eager_start(const om_eager_options *o)
{
	struct graph g = {.s = om_session_new()};

	CU_ASSERT_FATAL(is_ok(g.s, om_eager_new(g.s, o, &g.e)));
	return g;
}

static inline void
eager_end(struct graph *g)
{
	om_eager_free(g->e);
	om_session_free(g->s);
}

static inline om_variable *
eager_floats(om_eager *e, int rank, const int64_t *dim, const float *x)
{
	const om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(rank, dim), .data = (void *)x};
	om_variable *v = NULL;

	CU_ASSERT_FATAL(om_variable_new(e, &t, &v) == OM_OK);
	return v;
}

static inline om_variable *
eager_ints(om_eager *e, int64_t n, const int64_t *x)
{
	const om_tensor t = {.type = OM_INT64, .shape = om_shape_of(1, &n), .data = (void *)x};
	om_variable *v = NULL;

	CU_ASSERT_FATAL(om_variable_new(e, &t, &v) == OM_OK);
	return v;
}

static inline om_variable *
eager_op(struct graph *g, const char *type, om_variable *a, om_variable *b)
{
	om_variable *in[] = {a, b}, *out;

	CU_ASSERT_FATAL(is_ok(g->s, om_eager_run(g->e, type, NULL, b ? 2 : 1, in, 1, &out)));
	return out;
}

static inline bool
eager_holds(struct graph *g, om_variable *v, int64_t n, const float *want)
{
	const om_tensor *t;

	if (!is_ok(g->s, om_variable_read(v, &t)))
		return false;
	return t->type == OM_FLOAT32 && om_shape_count(&t->shape) == n && memcmp(t->data, want, (size_t)n * sizeof *want) == 0;
}

#endif
