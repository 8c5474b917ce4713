/* Which sizes a plan is read for.
 *
 * A plan is made for numbers: a document has those of symbols, and the shapes of inputs.  For symbols with a
 * range, it is made for the largest, and serves all others of the range at the same offsets.  Which is
 * wanted follows from what the caller gives: numbers of symbols, and shapes of inputs that have them as dims. */
#include <config.h>

#include <inttypes.h>

#include "ir/binding.h"
#include "onnx/plan_binding.h"
#include "onnxmem/tensor.h"

#define BAD(z, ...)  om_fail((z)->session, OM_BADPLAN, "the plan: " __VA_ARGS__)

/* A symbol with a range. */
struct range {
	const char *symbol;
	int64_t low, high, n;    /* n: the number wanted */
};

struct sizes {
	const om_plan_sizes *z;
	struct range *range;
	size_t n, cap;
};

static om_status
get_dim(const om_plan_sizes *z, const json_t *j, const char *what, int64_t *out)
{
	*out = json_integer_value(j);
	return json_is_integer(j) && *out >= 0 ? OM_OK : BAD(z, "%s is not an integer of at least 0", what);
}

static struct range *
range_of(const struct sizes *s, const char *symbol)
{
	for (size_t k = 0; symbol && k < s->n; k++)
		if (strcmp(s->range[k].symbol, symbol) == 0)
			return &s->range[k];
	return NULL;
}

static om_status
read_ranges(struct sizes *s)
{
	const om_plan_sizes *z = s->z;
	const char *symbol;
	json_t *j;

	json_object_foreach(json_object_get(z->root, "ranges"), symbol, j) {
		struct range r = {.symbol = symbol};
		OM_TRY(get_dim(z, json_array_get(j, 0), "the start of a range", &r.low));
		OM_TRY(get_dim(z, json_array_get(j, 1), "the end of a range", &r.high));
		if (r.low > r.high || !om_prog_has_symbol(z->prog, symbol))
			return BAD(z, "invalid range of %s", symbol);
		r.n = r.high;
		OM_PUSH(z->mem, s->range, s->n, s->cap, r);
	}
	return OM_OK;
}

/* ---- What is wanted. ---- */

static om_status
want(const struct sizes *s, struct range *r, int64_t n)
{
	if (n < r->low || n > r->high)
		return om_fail(s->z->session, OM_SHAPE, "%s is %" PRId64 ", but the plan is for %" PRId64 " to %" PRId64, r->symbol, n,
			r->low, r->high);
	r->n = n;
	return OM_OK;
}

static om_status
want_symbols(const struct sizes *s)
{
	const om_plan_sizes *z = s->z;
	const char *symbol;
	int64_t n;

	for (size_t k = 0; om_binding_symbol(z->given, k, &symbol, &n); k++) {
		struct range *r = range_of(s, symbol);
		const json_t *fixed = json_object_get(json_object_get(z->root, "dims"), symbol);
		if (r)
			OM_TRY(want(s, r, n));
		else if (!json_is_integer(fixed))
			return om_fail(z->session, OM_USAGE, "no dim of the model is called %s", symbol);
		else if (json_integer_value(fixed) != n)
			return om_fail(z->session, OM_SHAPE, "%s is %" PRId64 ", but the plan is for %s = %" PRId64, symbol, n, symbol,
				(int64_t)json_integer_value(fixed));
	}
	return OM_OK;
}

static const om_value *
input_of(const om_plan_sizes *z, const char *name)
{
	for (uint32_t k = 0; k < z->prog->first->nparam; k++)
		if (strcmp(z->prog->first->param[k]->name, name) == 0)
			return z->prog->first->param[k];
	return NULL;
}

static om_status
want_shapes(const struct sizes *s)
{
	const om_shape *shape;
	const char *name;

	for (size_t k = 0; om_binding_input(s->z->given, k, &name, &shape); k++) {
		const om_value *v = input_of(s->z, name);
		for (int d = 0; v && d < v->shape.rank && d < shape->rank; d++) {
			struct range *r = v->shape.dim[d] < 0 ? range_of(s, v->shape.sym[d]) : NULL;
			if (r)
				OM_TRY(want(s, r, shape->dim[d]));
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
		const struct range *r = range_of(s, symbol);
		int64_t n;
		OM_TRY(get_dim(z, j, "a dim", &n));
		if (om_prog_has_symbol(z->prog, symbol))  /* others appear only after inference */
			OM_TRY(not_for(z, om_binding_dim(z->session, out, symbol, r ? r->n : n)));
	}
	return OM_OK;
}

/* The shape of an input; one that has open dims is not bound. */
static om_status
read_shape(const struct sizes *s, const char *input, const json_t *dims, om_shape *shape, bool *whole)
{
	const om_value *v = input_of(s->z, input);
	const size_t rank = json_array_size(dims);

	*shape = (om_shape){.rank = (int)rank};
	*whole = true;
	if (!json_is_array(dims) || rank > OM_MAX_RANK)
		return BAD(s->z, "invalid shape of input %s", input);
	for (size_t d = 0; d < rank; d++) {
		const json_t *j = json_array_get(dims, d);
		const bool is_open = v && v->shape.rank == (int)rank && v->shape.dim[d] < 0;
		const struct range *r = is_open ? range_of(s, v->shape.sym[d]) : NULL;
		*whole &= !json_is_null(j);
		if (r)
			shape->dim[d] = r->n;
		else if (!json_is_null(j))
			OM_TRY(get_dim(s->z, j, "a dim", &shape->dim[d]));
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

om_status
om_plan_sizes_bind(const om_plan_sizes *z, om_binding *out, bool *is_other)
{
	struct sizes s = {.z = z};

	*is_other = false;
	OM_TRY(read_ranges(&s));
	OM_TRY(want_symbols(&s));
	OM_TRY(want_shapes(&s));
	for (size_t k = 0; k < s.n; k++)
		*is_other |= s.range[k].n != s.range[k].high;
	OM_TRY(bind_dims(&s, out));
	return bind_inputs(&s, out);
}
