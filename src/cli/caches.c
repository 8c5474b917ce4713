/* SPDX-License-Identifier: Apache-2.0 */
/* Caches with spare rows: files have the rows of the model, and runs use buffers. */
#include <config.h>

#include "base/row_blocks.h"
#include "base/shape.h"
#include "cli/caches.h"

struct buffer {
	om_shape whole, used;
	om_row_blocks blocks;
	int64_t rows, room;      /* in use; in all */
};

static bool
describe(const om_value *v, const om_io_alias *a, int64_t rows, struct buffer *b)
{
	if (a->rows_after == 0)
		return false;
	*b = (struct buffer){v->shape, v->shape, om_row_blocks_of(v->type.elem, &v->shape, a->axis), rows, v->shape.dim[a->axis]};
	b->used.dim[a->axis] = rows;
	return true;
}

/* Memory for so many rows of each block. */
static void *
new_rows(const om_cli *c, const struct buffer *b, int64_t rows)
{
	return om_allocn(c->mem, b->blocks.n * b->blocks.row * (size_t)rows + 1, 1);
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
		void *data = new_rows(c, &b, b.room);
		om_row_blocks_move(&b.blocks, b.rows, data, b.room, in[k].data, b.rows);
		om_row_blocks_fill(&b.blocks, b.rows, data, b.room, spare);
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
		*t = (om_tensor){.type = out[a->result]->type, .shape = b.used, .data = new_rows(c, &b, b.rows)};
		om_row_blocks_move(&b.blocks, b.rows, t->data, b.rows, out[a->result]->data, b.room);
		out[a->result] = t;
	}
}
