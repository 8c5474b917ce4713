/* SPDX-License-Identifier: Apache-2.0 */
/* Caches with spare rows: files have the rows of the model, and runs use buffers. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "cli/caches.h"

/* A buffer as blocks of rows, one after the other, of which the first are in use. */
struct buffer {
	om_shape whole, used;
	size_t nblock, block, part; /* blocks; bytes of one, and of its rows in use */
};

static bool
describe(const om_value *v, const om_io_alias *a, int64_t rows, struct buffer *b)
{
	uint64_t bytes;

	if (a->rows_after == 0)
		return false;
	b->whole = b->used = v->shape;
	b->used.dim[a->axis] = rows;
	b->nblock = (size_t)om_shape_span(&b->whole, 0, a->axis);
	om_tensor_bytes(v->type.elem, &b->whole, &bytes);
	b->block = b->nblock ? (size_t)bytes / b->nblock : 0;
	b->part = b->block / (size_t)b->whole.dim[a->axis] * (size_t)rows;
	return true;
}

static bool
input_buffer(const om_prog *p, uint32_t input, struct buffer *b)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->io_alias[k].param == input)
			return describe(p->first->param[input], &p->io_alias[k], p->io_alias[k].rows_before, b);
	return false;
}

void
om_cli_spread_caches(const om_cli *c, om_tensor *in, int spare)
{
	struct buffer b;

	for (uint32_t k = 0; k < c->prog->first->nparam; k++) {
		if (in[k].type == OM_UNDEFINED || !input_buffer(c->prog, k, &b) || !om_shape_equal(&in[k].shape, &b.used))
			continue;
		char *data = om_allocn(c->mem, b.nblock + 1, b.block);
		memset(data, spare, b.nblock * b.block);
		for (size_t i = 0; i < b.nblock && b.part; i++)
			memcpy(data + i * b.block, (const char *)in[k].data + i * b.part, b.part);
		in[k] = (om_tensor){.type = in[k].type, .shape = b.whole, .data = data};
	}
}

void
om_cli_gather_caches(const om_cli *c, const om_tensor **out)
{
	struct buffer b;

	for (uint32_t k = 0; k < c->prog->nio_alias; k++) {
		const om_io_alias *a = &c->prog->io_alias[k];
		if (!describe(c->prog->first->result[a->result], a, a->rows_after, &b))
			continue;
		om_tensor *t = OM_NEW(c->mem, om_tensor);
		*t = (om_tensor){.type = out[a->result]->type, .shape = b.used, .data = om_allocn(c->mem, b.nblock + 1, b.part)};
		for (size_t i = 0; i < b.nblock; i++)
			memcpy((char *)t->data + i * b.part, (const char *)out[a->result]->data + i * b.block, b.part);
		out[a->result] = t;
	}
}
