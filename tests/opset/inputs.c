/* Models for tests to run, and what they are run on. */
#include <config.h>

#include <unistd.h>

#include "base/rng.h"
#include "inputs.h"
#include "base/arena_internal.h"
#include "base/half.h"
#include "ir/type.h"
#include "tests/bind.h"

om_status
feed_load(struct feed *r, const char *file)
{
	OM_TRY(om_model_load(r->s, file, &r->model));
	return om_model_import(r->s, r->model, &r->prog);
}

void
feed_end(struct feed *r)
{
	om_exec_free(r->exec);
	om_prog_free(r->prog);
	om_model_free(r->model);
	r->exec = NULL;
	r->prog = NULL;
	r->model = NULL;
}

/* ---- Inputs. ---- */

static void
roll(om_tensor *t, uint64_t *dice)
{
	const int64_t n = om_shape_count(&t->shape);

	for (int64_t k = 0; k < n; k++) {
		const uint64_t x = om_rng(dice);
		const float f = (float)(x % 2048) / 1024 - 1;
		switch (t->type) {
		case OM_FLOAT32: ((float *)t->data)[k] = f; break;
		case OM_FLOAT64: ((double *)t->data)[k] = f; break;
		case OM_FLOAT16: ((uint16_t *)t->data)[k] = om_float_to_half(f); break;
		case OM_INT64: ((int64_t *)t->data)[k] = (int64_t)(x % 2); break;
		case OM_INT32: ((int32_t *)t->data)[k] = (int32_t)(x % 2); break;
		default: ((uint8_t *)t->data)[k] = x % 2; break;
		}
	}
}

static om_status
make_input(struct feed *r, const om_value *v, om_tensor *t, uint64_t *dice)
{
	uint64_t bytes;

	*t = (om_tensor){.type = om_type_elem(&v->type), .shape = v->shape};
	if (v->type.kind != OM_TENSOR || t->type == OM_STRING || !om_tensor_bytes(t->type, &t->shape, &bytes))
		return om_fail(r->s, OM_UNSUPPORTED, "there are no numbers for %s", v->name);
	t->data = om_alloc(r->mem, bytes + 1);
	if (om_dtype_bits(t->type) >= 8)
		roll(t, dice);
	return OM_OK;
}

static const char *
path_of(const struct feed *r, uint32_t k)
{
	const char *slash = strrchr(r->file, '/');

	return om_printf(r->mem, "%.*s/test_data_set_0/input_%u.pb", slash ? (int)(slash - r->file) : 1,
		slash ? r->file : ".", k);
}

static om_status
find_inputs(struct feed *r, om_tensor *in)
{
	const om_block *b = r->prog->first;

	for (uint32_t k = 0; k < b->nparam; k++)
		if (access(path_of(r, k), R_OK) == 0)
			OM_TRY(om_value_load_pb(r->s, path_of(r, k), r->mem, &b->param[k]->type, &in[k]));
	return OM_OK;
}

om_status
feed_shapes(struct feed *r, om_tensor *in)
{
	const om_block *b = r->prog->first;

	OM_TRY(find_inputs(r, in));
	for (uint32_t k = 0; k < b->nparam; k++)
		if (in[k].type != OM_UNDEFINED && b->param[k]->type.kind == OM_TENSOR)
			OM_TRY(bind_shape(r->s, r->prog, b->param[k]->name, &in[k].shape));
	return bind_rest(r->s, r->prog, 2);
}

om_status
feed_run(struct feed *r, om_tensor *in)
{
	const om_exec_options o = OM_EXEC_OPTIONS(.no_reuse = true);
	uint64_t dice = 1;

	OM_TRY(om_exec_new(r->s, r->prog, NULL, &o, &r->exec));
	for (uint32_t k = 0; k < r->prog->first->nparam; k++) {
		const om_value *v = r->prog->first->param[k];
		if (in[k].type == OM_UNDEFINED && v->is_overridable)
			continue;
		if (in[k].type == OM_UNDEFINED)
			OM_TRY(make_input(r, v, &in[k], &dice));
		OM_TRY(om_exec_input(r->exec, k, &in[k]));
	}
	return om_exec_run(r->exec);
}
