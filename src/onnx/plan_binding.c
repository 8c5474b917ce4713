/* SPDX-License-Identifier: Apache-2.0 */
/* Which sizes a plan is read for.
 *
 * A plan is made for numbers: a document has those of symbols, and the shapes of inputs.  For symbols with a
 * range, it is made for the largest, and serves all others of the range at the same offsets; so do dims that follow
 * from them, "a + 1" from a.  Which is wanted follows from what the caller gives: numbers of symbols, and shapes of inputs that have them as dims. */
#include <config.h>

#include <inttypes.h>

#include "base/hex.h"
#include "base/shape.h"
#include "ir/binding.h"
#include "ir/dim_expression.h"
#include "ir/query.h"
#include "onnx/plan_binding.h"
#include "onnxmem/tensor.h"

#define BAD(z, ...)  om_fail((z)->session, OM_BADPLAN, "the plan: " __VA_ARGS__)

struct sizes {
	om_plan_sizes *z;
	int64_t *wanted;         /* om_plan_sizes.wanted */
};

static om_status
get_dim(const om_plan_sizes *z, const json_t *j, const char *what, int64_t *out)
{
	*out = json_integer_value(j);
	return json_is_integer(j) && *out >= 0 ? OM_OK : BAD(z, "%s is not an integer of at least 0", what);
}

#define NONE UINT32_MAX

static uint32_t
range_of(const struct sizes *s, const char *symbol)
{
	for (uint32_t k = 0; symbol && k < s->z->nrange; k++)
		if (strcmp(s->z->range[k].symbol, symbol) == 0)
			return k;
	return NONE;
}

/* The number of a symbol in the document. */
static bool
number_before(const void *arg, const char *name, size_t n, int64_t *out)
{
	const struct sizes *s = arg;
	const char *symbol = om_printf(s->z->mem, "%.*s", (int)n, name);
	const json_t *j = json_object_get(json_object_get(s->z->root, "dims"), symbol);

	*out = json_integer_value(j);
	return json_is_integer(j);
}

/* The one that is wanted. */
static bool
number_after(const void *arg, const char *name, size_t n, int64_t *out)
{
	const struct sizes *s = arg;

	for (uint32_t k = 0; k < s->z->nrange; k++)
		if (strlen(s->z->range[k].symbol) == n && memcmp(s->z->range[k].symbol, name, n) == 0)
			return *out = s->wanted[k], true;
	return number_before(arg, name, n, out);
}

/* What is wanted of a dim that has the number `is` in the document. */
static int64_t
wanted_of(const struct sizes *s, const char *symbol, int64_t is)
{
	const uint32_t range = range_of(s, symbol);
	int64_t n;

	if (range != NONE)
		return s->wanted[range];
	return symbol && om_dim_follows(symbol, number_before, number_after, s, is, &n) ? n : is;
}

static om_status
read_ranges(struct sizes *s)
{
	om_plan_sizes *z = s->z;
	json_t *ends, *all = json_object_get(z->root, "ranges");
	const char *symbol;

	z->range = OM_NEWN(z->prog->mem, om_dim_range, json_object_size(all));
	z->wanted = s->wanted = OM_NEWN(z->prog->mem, int64_t, json_object_size(all));
	json_object_foreach(all, symbol, ends) {
		om_dim_range *r = &z->range[z->nrange];
		r->symbol = om_strdup(z->prog->mem, symbol);
		OM_TRY(get_dim(z, json_array_get(ends, 0), "the start of a range", &r->low));
		OM_TRY(get_dim(z, json_array_get(ends, 1), "the end of a range", &r->high));
		if (json_array_size(ends) > 2)
			OM_TRY(get_dim(z, json_array_get(ends, 2), "the step of a range", &r->step));
		if (r->low > r->high || !om_dim_range_has(r, r->high) || !om_prog_has_symbol(z->prog, symbol))
			return BAD(z, "invalid range of %s", symbol);
		s->wanted[z->nrange++] = r->high;
	}
	return OM_OK;
}

/* ---- What is wanted. ---- */

static om_status
want(const struct sizes *s, uint32_t k, int64_t n)
{
	const om_dim_range *r = &s->z->range[k];

	if (!om_dim_range_has(r, n))
		return om_fail(s->z->session, OM_SHAPE, "%s is %" PRId64 ", but the plan is for %s", r->symbol, n,
			om_dim_range_text(s->z->mem, r));
	s->wanted[k] = n;
	return OM_OK;
}

static om_status
want_symbols(const struct sizes *s)
{
	const om_plan_sizes *z = s->z;
	const char *symbol;
	int64_t n;

	for (size_t k = 0; om_binding_symbol(z->given, k, &symbol, &n); k++) {
		const uint32_t range = range_of(s, symbol);
		const json_t *fixed = json_object_get(json_object_get(z->root, "dims"), symbol);
		if (range != NONE)
			OM_TRY(want(s, range, n));
		else if (!json_is_integer(fixed))
			return om_fail(z->session, OM_USAGE, "no dim of the model is called %s", symbol);
	}
	return OM_OK;
}

/* Numbers without a range are those of the plan, or follow from what is wanted. */
static om_status
check_symbols(const struct sizes *s)
{
	const om_plan_sizes *z = s->z;
	const char *symbol;
	int64_t n;

	for (size_t k = 0; om_binding_symbol(z->given, k, &symbol, &n); k++) {
		const int64_t is = wanted_of(s, symbol, json_integer_value(json_object_get(json_object_get(z->root, "dims"), symbol)));
		if (is != n)
			return om_fail(z->session, OM_SHAPE, "%s is %" PRId64 ", but the plan is for %s = %" PRId64, symbol, n, symbol, is);
	}
	return OM_OK;
}

static om_status
want_shapes(const struct sizes *s)
{
	const om_shape *shape;
	const char *name;

	for (size_t k = 0; om_binding_input(s->z->given, k, &name, &shape); k++) {
		const om_value *v = om_block_param(s->z->prog->first, name);
		for (int d = 0; v && d < v->shape.rank && d < shape->rank; d++) {
			const uint32_t range = v->shape.dim[d] < 0 ? range_of(s, v->shape.sym[d]) : NONE;
			if (range != NONE)
				OM_TRY(want(s, range, shape->dim[d]));
		}
	}
	return OM_OK;
}

/* ---- What is bound. ---- */

/* Report the failure of a callee as a mismatch of the plan. */
static om_status
not_for(const om_plan_sizes *z, om_status st)
{
	const char *why = om_strdup(z->mem, om_message(z->session));
	return st == OM_OK || st == OM_MEMORY ? st : BAD(z, "its shapes do not match the model: %s", why);
}

static om_status
bind_dims(const struct sizes *s, om_binding *out)
{
	const om_plan_sizes *z = s->z;
	const char *symbol;
	json_t *j;

	json_object_foreach(json_object_get(z->root, "dims"), symbol, j) {
		int64_t n;
		OM_TRY(get_dim(z, j, "a dim", &n));
		if (om_prog_has_symbol(z->prog, symbol))  /* others appear only after inference */
			OM_TRY(not_for(z, om_binding_dim(z->session, out, symbol, wanted_of(s, symbol, n))));
	}
	return OM_OK;
}

/* The shape of an input; one that has open dims is not bound. */
static om_status
read_shape(const struct sizes *s, const char *input, const json_t *dims, om_shape *shape, bool *whole)
{
	const om_value *v = om_block_param(s->z->prog->first, input);
	const size_t rank = json_array_size(dims);

	*shape = (om_shape){.rank = (int)rank};
	*whole = true;
	if (!json_is_array(dims) || rank > OM_MAX_RANK)
		return BAD(s->z, "invalid shape of input %s", input);
	for (size_t d = 0; d < rank; d++) {
		const json_t *j = json_array_get(dims, d);
		const bool is_open = v && v->shape.rank == (int)rank && v->shape.dim[d] < 0;
		const uint32_t range = is_open ? range_of(s, v->shape.sym[d]) : NONE;
		*whole &= !json_is_null(j);
		if (range == NONE && json_is_null(j))
			continue;
		if (range == NONE)
			OM_TRY(get_dim(s->z, j, "a dim", &shape->dim[d]));
		shape->dim[d] = is_open ? wanted_of(s, v->shape.sym[d], shape->dim[d]) : shape->dim[d];
	}
	return OM_OK;
}

/* A given shape has to be that of the document: dims without a range are fixed. */
static om_status
check_given(const struct sizes *s, const char *input, const om_shape *shape)
{
	char is[256], wanted[256];
	const om_shape *given;
	const char *name;

	for (size_t k = 0; om_binding_input(s->z->given, k, &name, &given); k++)
		if (strcmp(name, input) == 0 && !om_shape_equal(given, shape))
			return om_fail(s->z->session, OM_SHAPE, "input %s: the plan is for %s, not %s", input,
				om_shape_text(shape, wanted, sizeof wanted), om_shape_text(given, is, sizeof is));
	return OM_OK;
}

static om_status
bind_inputs(const struct sizes *s, om_binding *out)
{
	const char *input;
	om_shape shape;
	json_t *dims;
	bool whole;

	json_object_foreach(json_object_get(s->z->root, "inputs"), input, dims) {
		OM_TRY(read_shape(s, input, dims, &shape, &whole));
		if (!whole)
			continue;
		OM_TRY(check_given(s, input, &shape));
		OM_TRY(not_for(s->z, om_binding_shape(s->z->session, out, input, &shape)));
	}
	return OM_OK;
}

/* ---- Inputs that are constants. ---- */

static om_status
read_value(const struct sizes *s, const char *input, const json_t *j, om_tensor *t)
{
	const char *type = json_string_value(json_object_get(j, "type")), *hex = json_string_value(json_object_get(j, "elements"));
	const json_t *dims = json_object_get(j, "shape");
	uint64_t bytes;
	bool whole;

	*t = (om_tensor){.type = type ? om_dtype_find(type) : OM_UNDEFINED};
	OM_TRY(read_shape(s, "", dims, &t->shape, &whole));
	if (!hex || !whole || t->type == OM_UNDEFINED || !om_tensor_bytes(t->type, &t->shape, &bytes) || bytes > OM_MOST_FIXED_BYTES)
		return BAD(s->z, "invalid value of input %s", input);
	t->data = om_allocn(s->z->mem, 1, bytes + 1);
	return om_hex_read(hex, t->data, bytes) ? OM_OK : BAD(s->z, "invalid elements of input %s", input);
}

/* Constants that are given have to be those of the document. */
static om_status
check_constants(const struct sizes *s, const char *input, const om_tensor *is)
{
	const om_tensor *given;
	const char *name;

	for (size_t k = 0; om_binding_constant(s->z->given, k, &name, &given); k++)
		if (strcmp(name, input) == 0 && !om_tensor_same(given, is))
			return om_fail(s->z->session, OM_STALE, "the plan is for another value of input %s than the one given", input);
	return OM_OK;
}

static om_status
check_all_fixed(const struct sizes *s, const json_t *values)
{
	const om_tensor *given;
	const char *name;

	for (size_t k = 0; om_binding_constant(s->z->given, k, &name, &given); k++)
		if (!json_object_get(values, name))
			return om_fail(s->z->session, OM_STALE, "the plan is not for a fixed value of input %s: give it as data, or plan "
				"the model again", name);
	return OM_OK;
}

static om_status
bind_constants(const struct sizes *s, om_binding *out)
{
	json_t *j, *values = json_object_get(s->z->root, "values");
	const char *input;
	om_tensor t;

	json_object_foreach(values, input, j) {
		OM_TRY(read_value(s, input, j, &t));
		OM_TRY(check_constants(s, input, &t));
		OM_TRY(not_for(s->z, om_binding_value(s->z->session, out, input, &t)));
	}
	return check_all_fixed(s, values);
}

static om_status
read_all(struct sizes *s, om_binding *out)
{
	OM_TRY(read_ranges(s));
	OM_TRY(want_symbols(s));
	OM_TRY(want_shapes(s));
	OM_TRY(check_symbols(s));
	OM_TRY(bind_dims(s, out));
	OM_TRY(bind_inputs(s, out));
	OM_TRY(bind_constants(s, out));
	return not_for(s->z, om_bind(s->z->session, s->z->prog, out));
}

om_status
om_plan_sizes_bind(om_plan_sizes *z)
{
	struct sizes s = {.z = z};
	om_binding *b = om_binding_new();
	const om_status st = b ? read_all(&s, b) : OM_MEMORY;

	for (uint32_t k = 0; k < z->nrange; k++)
		z->is_other |= s.wanted[k] != z->range[k].high;
	om_binding_free(b);
	return st;
}
