/* SPDX-License-Identifier: Apache-2.0 */
/* Models for tests to run, and what they are run on. */
#include <config.h>

#include <unistd.h>

#include "base/rng.h"
#include "inputs.h"
#include "ir/type.h"
#include "tests/bind.h"

/* ---- Inputs. ---- */

static om_status
make_input(bench *r, const om_value *v, om_tensor *t, uint64_t *dice)
{
	uint64_t bytes;

	*t = (om_tensor){.type = om_type_elem(&v->type), .shape = v->shape};
	if (v->type.kind != OM_TENSOR || t->type == OM_STRING || !om_tensor_bytes(t->type, &t->shape, &bytes))
		return om_fail(r->s, OM_UNSUPPORTED, "there are no numbers for %s", v->name);
	*t = tensor_zero(r->mem, t->type, &t->shape);
	for (int64_t k = 0; om_dtype_bits(t->type) >= 8 && k < om_shape_count(&t->shape); k++) {
		const uint64_t x = om_rng(dice);
		set_element(t, k, t->type == OM_FLOAT32 || t->type == OM_FLOAT64 || t->type == OM_FLOAT16
			? (float)(x % 2048) / 1024 - 1 : x % 2);
	}
	return OM_OK;
}

static const char *
path_of(om_arena *mem, const char *file, uint32_t k)
{
	const char *slash = strrchr(file, '/');

	return om_printf(mem, "%.*s/test_data_set_0/input_%u.pb", slash ? (int)(slash - file) : 1,
		slash ? file : ".", k);
}

static om_status
find_inputs(bench *r, const char *file, om_tensor *in)
{
	const om_block *b = r->p->first;

	for (uint32_t k = 0; k < b->nparam; k++)
		if (access(path_of(r->mem, file, k), R_OK) == 0)
			OM_TRY(om_value_load_pb(r->s, path_of(r->mem, file, k), r->mem, &b->param[k]->type, &in[k]));
	return OM_OK;
}

om_status
feed_shapes(bench *r, const char *file, om_tensor *in)
{
	const om_block *b = r->p->first;

	OM_TRY(find_inputs(r, file, in));
	for (uint32_t k = 0; k < b->nparam; k++)
		if (in[k].type != OM_UNDEFINED && b->param[k]->type.kind == OM_TENSOR)
			OM_TRY(bind_shape(r->s, r->p, b->param[k]->name, &in[k].shape));
	return bind_rest(r->s, r->p, 2);
}

om_status
feed_run(bench *r, om_tensor *in)
{
	uint64_t dice = 1;

	OM_TRY(bench_exec(r, &ways[SEPARATE]));
	for (uint32_t k = 0; k < r->p->first->nparam; k++) {
		const om_value *v = r->p->first->param[k];
		if (in[k].type == OM_UNDEFINED && v->is_overridable)
			continue;
		if (in[k].type == OM_UNDEFINED)
			OM_TRY(make_input(r, v, &in[k], &dice));
		OM_TRY(om_exec_input(r->e, k, &in[k]));
	}
	return om_exec_run(r->e);
}
