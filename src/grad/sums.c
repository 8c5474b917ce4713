/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients that are zero but for a few slices.
 *
 * The gradient of a slice or of gathered rows has the shape of what they were taken from.  Where a loop reads a row of a
 * stack in each iteration, the sum of all iterations would add a whole stack in each of them.  Such a gradient is a
 * scatter op that adds to zeros: here it adds to the sum instead, in its memory where the plan allows that. */
#include <config.h>

#include <inttypes.h>

#include "grad/sums.h"
#include "grad/tape.h"
#include "ir/edit.h"

static const char *
key_of(const om_grad *g, const char *what, const om_value *v)
{
	return om_printf(g->scope->tape->mem, "%s %" PRIu32, what, v->id);
}

om_value *
om_grad_note_scattered(om_grad *g, om_value *v, om_value *scattered)
{
	om_map_set(&g->scope->tape->known, key_of(g, "scattered", v), scattered);
	return v;
}

void
om_grad_note_sum(om_grad *g, const om_value *v)
{
	om_map_set(&g->scope->tape->known, key_of(g, "sum", v), v->def);
}

/* The scatter op that `v` is the result of, in this block; NULL: it is another value. */
static const om_op *
scatter_of(om_grad *g, const om_value *v)
{
	const om_value *scattered = om_map_get(&g->scope->tape->known, key_of(g, "scattered", v));

	return scattered && scattered->def && scattered->def->block == g->scope->to ? scattered->def : NULL;
}

static om_value *
add_part(om_grad *g, om_value *sum, om_value *v, bool *is_scattered)
{
	const om_op *op = scatter_of(g, v);

	if (!op)
		return om_emit(g, "Add", sum, v);
	om_attr *attrs = OM_NEWN(om_grad_mem(g), om_attr, (size_t)op->nattr + 1);
	if (op->nattr)
		memcpy(attrs, op->attr, op->nattr * sizeof *attrs);
	*is_scattered = true;
	return om_emit_op(g, op->type, attrs, 3, (om_value *[]){sum, op->in[1], op->in[2]}, 1, NULL);
}

om_value *
om_emit_add_to(om_grad *g, om_value *sum, om_value *v, bool *is_scattered)
{
	struct om_values part = {0};
	const om_op *add;

	while ((add = om_map_get(&g->scope->tape->known, key_of(g, "sum", v))) && add->block == g->scope->to) {
		om_values_push(g, &part, add->in[1]);
		v = add->in[0];
	}
	om_values_push(g, &part, v);
	while (part.n > 0)
		sum = add_part(g, sum, part.v[--part.n], is_scattered);
	return sum;
}

void
om_block_sweep(om_block *b)
{
	om_op *prev;

	for (om_op *op = b->last; op; op = prev) {
		bool is_used = op->nbody > 0;
		prev = op->prev;
		for (uint32_t k = 0; k < op->nout; k++)
			is_used |= op->out[k] && op->out[k]->first_use;
		if (!is_used)
			om_op_remove(op);
	}
}
