/* Does a raised model compute the same numbers, bit for bit?
 *
 *     bits OPSET FOLDER FILE...
 *
 * Each model runs as it is; then it is raised, written to FOLDER as FILE's number, read again, and
 * run on the same inputs: those of test_data_set_0 beside it, else numbers from dice.  A line a
 * file says what came of it: same, DIFFERENT, refused (it cannot be raised), or unfit (the
 * original cannot be run, so there is nothing to compare with). */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../dice.h"
#include "onnxmem/exec.h"
#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"

struct run {
	om_session *s;
	om_arena *mem;
	const char *file;
	om_model *model;
	om_prog *prog;
	om_exec *exec;
};

static void
end(struct run *r)
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
		const uint64_t x = dice_roll(dice);
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
make_input(struct run *r, const om_value *v, om_tensor *t, uint64_t *dice)
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
path_of(const struct run *r, uint32_t k)
{
	const char *slash = strrchr(r->file, '/');

	return om_printf(r->mem, "%.*s/test_data_set_0/input_%u.pb", slash ? (int)(slash - r->file) : 1,
		slash ? r->file : ".", k);
}

static om_status
find_inputs(struct run *r, om_tensor *in)
{
	const om_block *b = r->prog->first;

	for (uint32_t k = 0; k < b->nparam; k++)
		if (access(path_of(r, k), R_OK) == 0)
			OM_TRY(om_value_load_pb(r->s, path_of(r, k), r->mem, &b->param[k]->type, &in[k]));
	return OM_OK;
}

static om_status
bind(struct run *r, const om_tensor *in)
{
	const om_block *b = r->prog->first;

	for (uint32_t k = 0; k < b->nparam; k++)
		if (in[k].type != OM_UNDEFINED && b->param[k]->type.kind == OM_TENSOR)
			OM_TRY(om_bind_shape(r->prog, b->param[k]->name, &in[k].shape));
	return om_bind_rest(r->prog, 2);
}

/* ---- A run. ---- */

static om_status
load(struct run *r, const char *file)
{
	OM_TRY(om_model_load(r->s, file, &r->model));
	return om_model_import(r->s, r->model, &r->prog);
}

/* `in` is filled where it is empty. */
static om_status
compute(struct run *r, om_host *h, om_tensor *in)
{
	const om_exec_options o = {.no_reuse = true};
	uint64_t dice = 1;

	OM_TRY(find_inputs(r, in));
	OM_TRY(bind(r, in));
	OM_TRY(om_host_run(h, r->prog, "inline,shapes,fold"));
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

/* ---- Comparing. ---- */

static bool
is_same_text(const om_tensor *a, const om_tensor *b)
{
	const om_string *x = a->data, *y = b->data;

	for (int64_t k = 0; k < om_shape_count(&a->shape); k++)
		if (x[k].size != y[k].size || (x[k].size && memcmp(x[k].data, y[k].data, x[k].size) != 0))
			return false;
	return true;
}

static bool
is_same(const om_type *type, const om_tensor *a, const om_tensor *b)
{
	uint64_t bytes;

	if (type->kind != OM_TENSOR) {
		const om_object *x = a->data, *y = b->data;
		if (!x || !y || x->n != y->n || type->kind == OM_MAP)
			return x == y || (x && y && x->n == y->n);
		for (size_t k = 0; k < x->n; k++)
			if (!is_same(type->of, &x->item[k], &y->item[k]))
				return false;
		return true;
	}
	if (a->type != b->type || !om_shape_equal(&a->shape, &b->shape) || !om_tensor_bytes(a->type, &a->shape, &bytes))
		return false;
	if (a->type == OM_STRING)
		return is_same_text(a, b);
	return bytes == 0 || memcmp(a->data, b->data, bytes) == 0;
}

static om_status
compare(const struct run *a, const struct run *b)
{
	for (uint32_t k = 0; k < a->prog->first->nresult; k++) {
		const om_value *v = a->prog->first->result[k];
		if (!is_same(&v->type, om_exec_result(a->exec, k), om_exec_result(b->exec, k)))
			return om_fail(a->s, OM_MISMATCH, "output %s", v->name);
	}
	return OM_OK;
}

/* ---- One file. ---- */

static om_status
raise(struct run *r, om_host *h, const char *opset, const char *to)
{
	OM_TRY(load(r, r->file));
	OM_TRY(om_host_run(h, r->prog, om_printf(r->mem, "raise=%s", opset)));
	OM_TRY(om_verify(r->prog));
	OM_TRY(om_model_update(r->s, r->model, r->prog));
	OM_TRY(om_model_save(r->s, r->model, to));
	end(r);
	return OM_OK;
}

static const char *
try(struct run *a, struct run *b, om_host *h, const char *opset, const char *to)
{
	om_tensor *in;

	if (load(a, a->file) != OM_OK)
		return "unfit";
	in = OM_NEWN(a->mem, om_tensor, (size_t)a->prog->first->nparam + 1);
	if (raise(b, h, opset, to) != OM_OK)
		return "refused";
	if (compute(a, h, in) != OM_OK)
		return "unfit";
	if (load(b, to) != OM_OK || compute(b, h, in) != OM_OK || compare(a, b) != OM_OK)
		return "DIFFERENT";
	return "same";
}

int
main(int argc, char **argv)
{
	int bad = 0;

	for (int k = 3; k < argc; k++) {
		om_session *s = om_session_new();
		om_host *h = om_host_new(s, NULL);
		om_arena *mem = om_arena_new();
		struct run a = {.s = s, .mem = mem, .file = argv[k]}, b = a;
		const char *what = try(&a, &b, h, argv[1], om_printf(mem, "%s/%d.onnx", argv[2], k - 3));
		printf("%s\t%s\t%s\n", what, argv[k], strcmp(what, "same") == 0 ? "" : om_message(s));
		fflush(stdout);
		bad += strcmp(what, "DIFFERENT") == 0;
		end(&a);
		end(&b);
		om_arena_free(mem);
		om_host_free(h);
		om_session_free(s);
	}
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
