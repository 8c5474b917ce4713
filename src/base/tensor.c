/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <assert.h>
#include <stdio.h>

#include "base/shape.h"
#include "onnxmem/tensor.h"

static const struct {
	const char *text;
	unsigned bits;
} dtypes[OM_NDTYPE] = {
#define DTYPE(name, code, nbits, label) [code] = {label, nbits},
	OM_DTYPE_LIST(DTYPE)
#undef DTYPE
};

unsigned
om_dtype_bits(om_dtype t)
{
	return (unsigned)t < OM_NDTYPE ? dtypes[t].bits : 0;
}

const char *
om_dtype_text(om_dtype t)
{
	return (unsigned)t < OM_NDTYPE ? dtypes[t].text : "unknown";
}

om_dtype
om_dtype_find(const char *text)
{
	for (unsigned t = 0; t < OM_NDTYPE; t++)
		if (strcmp(dtypes[t].text, text) == 0)
			return (om_dtype)t;
	return OM_UNDEFINED;
}

om_shape
om_shape_unknown(void)
{
	return (om_shape){.rank = OM_RANK_UNKNOWN};
}

om_shape
om_shape_of(int rank, const int64_t *dims)
{
	om_shape s = {.rank = rank};

	assert(rank <= OM_MAX_RANK);
	for (int k = 0; k < rank; k++)
		s.dim[k] = dims[k];
	return s;
}

om_shape
om_shape_open(int64_t rank)
{
	om_shape s = {.rank = OM_RANK_UNKNOWN};

	if (rank < 0 || rank > OM_MAX_RANK)
		return s;
	s.rank = (int)rank;
	for (int k = 0; k < s.rank; k++)
		s.dim[k] = OM_DIM_UNKNOWN;
	return s;
}

bool
om_shape_is_known(const om_shape *s)
{
	for (int k = 0; k < s->rank; k++)
		if (s->dim[k] < 0)
			return false;
	return s->rank >= 0;
}

static bool
same_symbol(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool
om_shape_equal(const om_shape *a, const om_shape *b)
{
	if (a->rank != b->rank)
		return false;
	for (int k = 0; k < a->rank; k++)
		if (a->dim[k] != b->dim[k]
		    || (a->dim[k] < 0 && !same_symbol(a->sym[k], b->sym[k])))
			return false;
	return true;
}

int64_t
om_shape_count(const om_shape *s)
{
	return om_shape_span(s, 0, s->rank);
}

const char *
om_shape_text(const om_shape *s, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, s->rank < 0 ? "[?.." : "[");

	for (int k = 0; k < s->rank && n < size; k++) {
		const char *comma = k ? "," : "";
		if (s->dim[k] >= 0)
			n += (size_t)snprintf(out + n, size - n, "%s%lld", comma, (long long)s->dim[k]);
		else
			n += (size_t)snprintf(out + n, size - n, "%s%s", comma, s->sym[k] ? s->sym[k] : "?");
	}
	if (n < size)
		snprintf(out + n, size - n, "]");
	return out;
}

bool
om_dtype_bytes(om_dtype t, int64_t count, uint64_t *bytes)
{
	const uint64_t bits = om_dtype_bits(t);
	uint64_t total;

	if (bits == 0 || count < 0 || __builtin_mul_overflow((uint64_t)count, bits, &total)
	    || total > (UINT64_C(1) << 62))
		return false;
	*bytes = (total + 7) / 8;
	return true;
}

/* The other dims of an empty tensor must not overflow either: strides are computed from them. */
bool
om_tensor_bytes(om_dtype t, const om_shape *s, uint64_t *bytes)
{
	int64_t n = 1;
	bool is_empty = false;

	if (!om_shape_is_known(s))
		return false;
	for (int k = 0; k < s->rank; k++) {
		is_empty |= s->dim[k] == 0;
		if (s->dim[k] && __builtin_mul_overflow(n, s->dim[k], &n))
			return false;
	}
	if (!om_dtype_bytes(t, n, bytes))
		return false;
	return !is_empty || om_dtype_bytes(t, 0, bytes);
}

/* ---- Alignment. ---- */

static size_t
alignment_of(om_dtype t)
{
	const unsigned bytes = om_dtype_bits(t) / 8;

	return bytes <= 1 ? 1 : bytes > 8 ? 8 : bytes;
}

bool
om_tensor_is_aligned(const om_tensor *t)
{
	return (uintptr_t)t->data % alignment_of(t->type) == 0;
}

bool
om_tensor_may_be_unaligned(om_dtype t, uint64_t bytes)
{
	enum { LARGE = 64 << 10 };

	return bytes >= LARGE && (t == OM_FLOAT32 || t == OM_FLOAT16 || t == OM_BFLOAT16 || t == OM_FLOAT64);
}

void
om_tensor_align(om_arena *mem, om_tensor *t)
{
	uint64_t bytes;

	if (om_tensor_is_aligned(t))
		return;
	if (t->splat ? om_dtype_bytes(t->type, 1, &bytes) : om_tensor_bytes(t->type, &t->shape, &bytes))
		t->data = om_memdup(mem, t->data, bytes);
}
