/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of two tensors within a floating-point tolerance. */
#include <config.h>

#include <inttypes.h>
#include <math.h>

#include "cli/data.h"
#include "base/half.h"
#include "base/shape.h"
#include "ir/type.h"

double
om_data_number(const om_tensor *t, int64_t k)
{
	switch (t->type) {
	case OM_FLOAT32: return ((const float *)t->data)[k];
	case OM_FLOAT64: return ((const double *)t->data)[k];
	case OM_FLOAT16: return om_half_to_float(((const uint16_t *)t->data)[k]);
	case OM_BFLOAT16: return om_bfloat_to_float(((const uint16_t *)t->data)[k]);
	case OM_INT64: return (double)((const int64_t *)t->data)[k];
	case OM_UINT64: return (double)((const uint64_t *)t->data)[k];
	case OM_INT32: return ((const int32_t *)t->data)[k];
	case OM_INT16: return ((const int16_t *)t->data)[k];
	case OM_INT8: return ((const int8_t *)t->data)[k];
	case OM_UINT32: return ((const uint32_t *)t->data)[k];
	case OM_UINT16: return ((const uint16_t *)t->data)[k];
	default: return ((const uint8_t *)t->data)[k];
	}
}

static bool
is_close(double got, double want, om_tolerance tol)
{
	if (isnan(got) || isnan(want))
		return isnan(got) && isnan(want);
	if (isinf(got) || isinf(want))
		return got == want;
	return fabs(got - want) <= tol.absolute + tol.relative * fabs(want);
}

static bool
is_float(om_dtype t)
{
	return t == OM_FLOAT32 || t == OM_FLOAT64 || t == OM_FLOAT16 || t == OM_BFLOAT16;
}

static bool
same_text(const om_string *a, const om_string *b)
{
	return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

/* Elements of whole bytes; packed elements are compared per byte. */
static bool
same(const om_tensor *got, const om_tensor *want, int64_t k, om_tolerance tol)
{
	const unsigned bits = om_dtype_bits(got->type);
	const size_t one = bits < 8 ? 1 : bits / 8;

	if (is_float(got->type))
		return is_close(om_data_number(got, k), om_data_number(want, k), tol);
	if (got->type == OM_STRING)
		return same_text((const om_string *)got->data + k, (const om_string *)want->data + k);
	if (got->type == OM_COMPLEX64 || got->type == OM_COMPLEX128) {
		const om_dtype half = got->type == OM_COMPLEX64 ? OM_FLOAT32 : OM_FLOAT64;
		const om_tensor a = {.type = half, .data = got->data}, b = {.type = half, .data = want->data};
		return is_close(om_data_number(&a, 2 * k), om_data_number(&b, 2 * k), tol)
		    && is_close(om_data_number(&a, 2 * k + 1), om_data_number(&b, 2 * k + 1), tol);
	}
	return memcmp((const char *)got->data + (size_t)k * one, (const char *)want->data + (size_t)k * one,
		one) == 0;
}

const char *
om_data_text(const om_tensor *t, int64_t k, char *out, size_t size)
{
	const unsigned bits = om_dtype_bits(t->type);

	if (is_float(t->type)) {
		snprintf(out, size, "%.6g", om_data_number(t, k));
	} else if (t->type == OM_STRING) {
		const om_string *s = (const om_string *)t->data + k;
		snprintf(out, size, "\"%.*s\"", (int)s->size, s->size ? s->data : "");
	} else if (t->type == OM_INT64) {
		snprintf(out, size, "%" PRId64, ((const int64_t *)t->data)[k]);
	} else if (t->type == OM_UINT64) {
		snprintf(out, size, "%" PRIu64, ((const uint64_t *)t->data)[k]);
	} else if (t->type == OM_BOOL) {
		snprintf(out, size, "%s", ((const uint8_t *)t->data)[k] ? "true" : "false");
	} else if (om_dtype_is_integer(t->type) && bits >= 8) {
		snprintf(out, size, "%.0f", om_data_number(t, k));
	} else {
		snprintf(out, size, "0x%02x", ((const uint8_t *)t->data)[k * bits / 8]);
	}
	return out;
}

static const char *
place_text(const om_shape *s, int64_t k, char *out, size_t size)
{
	int64_t index[OM_MAX_RANK];
	size_t n = 0;

	for (int d = s->rank - 1; d >= 0; k /= s->dim[d--])
		index[d] = k % s->dim[d];
	*out = '\0';
	for (int d = 0; d < s->rank && n < size; d++)
		n += (size_t)snprintf(out + n, size - n, "%s%lld", d ? "," : "", (long long)index[d]);
	return out;
}

static bool
same_dims(const om_shape *a, const om_shape *b)
{
	bool yes = a->rank == b->rank;

	for (int d = 0; yes && d < a->rank; d++)
		yes = a->dim[d] == b->dim[d];
	return yes;
}

static om_status
compare_tensors(om_cli *c, const char *name, const om_tensor *got, const om_tensor *want, om_tolerance tol)
{
	char a[256], b[256], at[256];
	int64_t first = -1, differ = 0;
	double most = 0;

	if (got->type != want->type || !same_dims(&got->shape, &want->shape))
		return om_fail(c->session, OM_MISMATCH, "output %s is %s %s, expected was %s %s", name,
			om_dtype_text(got->type), om_shape_text(&got->shape, a, sizeof a),
			om_dtype_text(want->type), om_shape_text(&want->shape, b, sizeof b));
	const unsigned bits = om_dtype_bits(got->type);
	const int64_t all = om_shape_count(&got->shape);
	const int64_t n = bits < 8 ? (all * bits + 7) / 8 : all;
	for (int64_t k = 0; k < n; k++) {
		if (is_float(got->type))
			most = fmax(most, fabs(om_data_number(got, k) - om_data_number(want, k)));
		if (same(got, want, k, tol))
			continue;
		first = first < 0 ? k : first;
		differ++;
	}
	if (differ == 0) {
		om_info(c->session, "output %s: %lld elements agree; the largest difference is %g", name,
			(long long)all, most);
		return OM_OK;
	}
	return om_fail(c->session, OM_MISMATCH, "output %s at [%s] is %s, expected was %s; %lld of %lld elements "
		"differ", name, place_text(&got->shape, bits < 8 ? first * 8 / bits : first, at, sizeof at),
		om_data_text(got, first, a, sizeof a), om_data_text(want, first, b, sizeof b),
		(long long)differ, (long long)n);
}

om_status
om_data_compare(om_cli *c, const char *name, const om_type *type, const om_tensor *got, const om_tensor *want,
	om_tolerance tol)
{
	const om_container *a = got->data, *b = want->data;

	if (type->kind == OM_TENSOR)
		return compare_tensors(c, name, got, want, tol);
	if (!om_container_fits(got, type) || !om_container_fits(want, type) || a->n != b->n)
		return om_fail(c->session, OM_MISMATCH, "output %s is a %s of %zu elements, expected was one of %zu", name,
			om_kind_text(type->kind), a ? a->n : 0, b ? b->n : 0);
	if (type->kind == OM_MAP) {
		OM_TRY(compare_tensors(c, om_printf(c->mem, "%s, keys", name), &a->key, &b->key, tol));
		return compare_tensors(c, om_printf(c->mem, "%s, values", name), &a->value, &b->value, tol);
	}
	for (size_t k = 0; k < a->n; k++)
		OM_TRY(om_data_compare(c, om_printf(c->mem, "%s, element %zu", name, k), type->of, &a->item[k],
			&b->item[k], tol));
	return OM_OK;
}
