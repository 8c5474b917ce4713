/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are not tensors: their types and their construction.
 *
 * A sequence that grows by one item shares the memory of the previous one: `used` items of it are
 * taken, and a sequence that ends at `used` may append in place.  The previous sequence still has
 * only its own items. */
#include <config.h>

#include "ops/control/container.h"
#include "base/arena_internal.h"
#include "ir/type.h"

/* ---- Types. ---- */

#define TENSOR(name, code, bits, text)   [code] = {.kind = OM_TENSOR, .elem = code},
#define SEQUENCE(name, code, bits, text) [code] = {.kind = OM_SEQUENCE, .of = &tensors[code]},
#define OPTIONAL(name, code, bits, text) [code] = {.kind = OM_OPTIONAL, .of = &tensors[code]},
#define OPTSEQ(name, code, bits, text)   [code] = {.kind = OM_OPTIONAL, .of = &sequences[code]},
#define INTMAP(name, code, bits, text)   [code] = {.kind = OM_MAP, .elem = OM_INT64, .of = &tensors[code]},
#define TEXTMAP(name, code, bits, text)  [code] = {.kind = OM_MAP, .elem = OM_STRING, .of = &tensors[code]},
#define INTMAPS(name, code, bits, text)  [code] = {.kind = OM_SEQUENCE, .of = &int_maps[code]},
#define TEXTMAPS(name, code, bits, text) [code] = {.kind = OM_SEQUENCE, .of = &text_maps[code]},

static const om_type tensors[OM_NDTYPE] = {OM_DTYPE_LIST(TENSOR)};
static const om_type sequences[OM_NDTYPE] = {OM_DTYPE_LIST(SEQUENCE)};
static const om_type optionals[OM_NDTYPE] = {OM_DTYPE_LIST(OPTIONAL)};
static const om_type optional_sequences[OM_NDTYPE] = {OM_DTYPE_LIST(OPTSEQ)};
static const om_type int_maps[OM_NDTYPE] = {OM_DTYPE_LIST(INTMAP)};
static const om_type text_maps[OM_NDTYPE] = {OM_DTYPE_LIST(TEXTMAP)};
static const om_type int_map_sequences[OM_NDTYPE] = {OM_DTYPE_LIST(INTMAPS)};
static const om_type text_map_sequences[OM_NDTYPE] = {OM_DTYPE_LIST(TEXTMAPS)};

const om_type *
om_tensor_of(om_dtype t)
{
	return &tensors[t];
}

const om_type *
om_sequence_of(om_dtype t)
{
	return &sequences[t];
}

const om_type *
om_optional_of(om_dtype t)
{
	return &optionals[t];
}

const om_type *
om_optional_sequence_of(om_dtype t)
{
	return &optional_sequences[t];
}

const om_type *
om_map_of(om_dtype key, om_dtype t)
{
	return key == OM_INT64 ? &int_maps[t] : &text_maps[t];
}

const om_type *
om_maps_of(om_dtype key, om_dtype t)
{
	return key == OM_INT64 ? &int_map_sequences[t] : &text_map_sequences[t];
}

/* ---- Containers. ---- */

struct om_items {
	om_tensor *item;
	size_t used, cap;
};

void
om_out_type(om_op_context *c, uint32_t k, const om_type *type)
{
	c->out[k].type = om_type_elem(type);
	if (c->out_type)
		c->out_type[k] = *type;
}

const om_container *
om_in_container(const om_op_context *c, uint32_t k)
{
	return c->in[k].data;
}

om_container *
om_container_new(om_arena *mem, size_t n, om_tensor **item)
{
	om_container *o = OM_NEW(mem, om_container);

	*item = OM_NEWN(mem, om_tensor, n + 1);
	o->n = n;
	o->item = *item;
	return o;
}

om_container *
om_container_append(om_arena *mem, const om_container *o, const om_tensor *item)
{
	om_container *to = OM_NEW(mem, om_container);
	struct om_items *r = o->room;

	if (!r || r->used != o->n || r->used == r->cap) {
		r = OM_NEW(mem, struct om_items);
		r->used = o->n;
		r->cap = 2 * o->n + 4;
		r->item = OM_NEWN(mem, om_tensor, r->cap);
		if (o->n)
			memcpy(r->item, o->item, o->n * sizeof *r->item);
	}
	r->item[r->used++] = *item;
	*to = (om_container){.n = r->used, .item = r->item, .room = r};
	return to;
}

om_status
om_tensor_keep(om_op_context *c, const om_tensor *from, om_tensor *to)
{
	uint64_t bytes;

	if (!om_tensor_bytes(from->type, &from->shape, &bytes))
		return om_op_fail(c->session, OM_RUN, c->op, "the size of a tensor overflows");
	*to = *from;
	to->data = om_alloc_try(c->keep, bytes ? bytes : 1);
	if (!to->data)
		return om_op_fail(c->session, OM_MEMORY, c->op, "cannot allocate a tensor of %llu bytes",
			(unsigned long long)bytes);
	if (bytes)
		memcpy(to->data, from->data, bytes);
	return OM_OK;
}
