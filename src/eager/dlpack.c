/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of DLPack: the layout of its structs, version 0 of the interface, and the types that both have. */
#include <config.h>

#include <stdlib.h>

#include "eager/eager_internal.h"

enum { DEVICE_CPU = 1 };

enum { CODE_INT, CODE_UINT, CODE_FLOAT, CODE_BFLOAT = 4, CODE_COMPLEX = 5, CODE_BOOL = 6 };

struct device {
	int32_t type, id;
};

struct element {
	uint8_t code, bits;
	uint16_t lanes;
};

struct dense {
	void *data;
	struct device device;
	int32_t ndim;
	struct element type;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};

struct DLManagedTensor {
	struct dense t;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *self);
};

static const struct {
	om_dtype type;
	uint8_t code, bits;
} types[] = {
	{OM_FLOAT32, CODE_FLOAT, 32}, {OM_FLOAT64, CODE_FLOAT, 64}, {OM_FLOAT16, CODE_FLOAT, 16}, {OM_BFLOAT16, CODE_BFLOAT, 16},
	{OM_INT8, CODE_INT, 8}, {OM_INT16, CODE_INT, 16}, {OM_INT32, CODE_INT, 32}, {OM_INT64, CODE_INT, 64},
	{OM_UINT8, CODE_UINT, 8}, {OM_UINT16, CODE_UINT, 16}, {OM_UINT32, CODE_UINT, 32}, {OM_UINT64, CODE_UINT, 64},
	{OM_BOOL, CODE_BOOL, 8}, {OM_COMPLEX64, CODE_COMPLEX, 64}, {OM_COMPLEX128, CODE_COMPLEX, 128},
};

enum { NTYPE = sizeof types / sizeof types[0] };

static om_dtype
type_of(struct element e)
{
	for (size_t k = 0; k < NTYPE; k++)
		if (types[k].code == e.code && types[k].bits == e.bits && e.lanes == 1)
			return types[k].type;
	return OM_UNDEFINED;
}

static void
release(void *arg)
{
	struct DLManagedTensor *m = arg;

	if (m->deleter)
		m->deleter(m);
}

om_status
om_variable_from_dlpack(om_eager *e, struct DLManagedTensor *m, om_variable **out)
{
	const struct dense *t = &m->t;
	const om_dtype type = type_of(t->type);

	*out = NULL;
	if (type == OM_UNDEFINED)
		return om_fail(e->session, OM_UNSUPPORTED, "no element type has code %u, %u bits and %u lanes of DLPack", t->type.code,
			t->type.bits, t->type.lanes);
	if (t->device.type != DEVICE_CPU)
		return om_fail(e->session, OM_UNSUPPORTED, "memory of device %d of DLPack cannot be a variable: only that of 1, the CPU, can",
			t->device.type);
	const om_memory from = {.data = t->data ? (char *)t->data + t->byte_offset : NULL, .type = type, .rank = t->ndim,
		.dim = t->shape, .stride = t->strides, .release = release, .arg = m};
	return om_variable_wrap(e, &from, out);
}

struct loan {
	struct DLManagedTensor m;
	om_memory memory;
};

static void
end_loan(struct DLManagedTensor *m)
{
	struct loan *l = m->manager_ctx;

	l->memory.release(l->memory.arg);
	free(l);
}

static om_status
find_type(om_session *s, om_dtype type, struct element *to)
{
	for (size_t k = 0; k < NTYPE; k++)
		if (types[k].type == type) {
			*to = (struct element){types[k].code, types[k].bits, 1};
			return OM_OK;
		}
	return om_fail(s, OM_UNSUPPORTED, "DLPack has no elements of type %s", om_dtype_text(type));
}

om_status
om_variable_to_dlpack(om_variable *v, struct DLManagedTensor **to)
{
	struct element type;

	*to = NULL;
	OM_TRY(find_type(v->e->session, v->t.type, &type));
	struct loan *l = calloc(1, sizeof *l);
	if (!l)
		return om_fail(v->e->session, OM_MEMORY, "no memory to lend a variable");
	const om_status st = om_variable_lend(v, &l->memory);
	if (st != OM_OK) {
		free(l);
		return st;
	}
	l->m = (struct DLManagedTensor){
		.t = {.data = l->memory.data, .device = {DEVICE_CPU, 0}, .ndim = l->memory.rank, .type = type,
			.shape = (int64_t *)l->memory.dim, .strides = (int64_t *)l->memory.stride},
		.manager_ctx = l,
		.deleter = end_loan,
	};
	*to = &l->m;
	return OM_OK;
}
