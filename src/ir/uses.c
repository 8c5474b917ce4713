/* SPDX-License-Identifier: Apache-2.0 */
/* Use lists of values. */
#include <config.h>

#include "ir/uses.h"
#include "onnxmem/builder.h"

void
om_use_link(om_use *u, om_value *v)
{
	u->value = v;
	u->next = NULL;
	u->prev = v->last_use;
	*(v->last_use ? &v->last_use->next : &v->first_use) = u;
	v->last_use = u;
	v->nuse++;
}

void
om_use_drop(om_use *u)
{
	om_value *v = u->value;

	if (!v)
		return;
	*(u->prev ? &u->prev->next : &v->first_use) = u->next;
	*(u->next ? &u->next->prev : &v->last_use) = u->prev;
	v->nuse--;
	u->value = NULL;
	u->prev = u->next = NULL;
}

void
om_use_input(om_op *op, uint32_t k)
{
	om_use *u = &op->use[k];

	u->op = op;
	u->index = k;
	if (op->block && op->in[k] && !u->value)
		om_use_link(u, op->in[k]);
}

void
om_use_result(om_block *b, uint32_t k)
{
	om_use *u = b->use[k];

	u->block = b;
	u->index = k;
	if (b->result[k] && !u->value)
		om_use_link(u, b->result[k]);
}

static void
uses_of_block(om_block *b)
{
	for (om_op *op = b->first; op; op = op->next)
		om_uses_of_op(op);
	for (uint32_t k = 0; k < b->nresult; k++)
		om_use_result(b, k);
}

/* Recursion is as deep as bodies are nested; loaders limit that. */
void
om_uses_of_op(om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		om_use_input(op, k);
	for (uint32_t k = 0; k < op->nbody; k++)
		uses_of_block(op->body[k]);
}

void
om_uses_drop_op(om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		om_use_drop(&op->use[k]);
	for (uint32_t k = 0; k < op->nbody; k++)
		om_uses_drop_block(op->body[k]);
}

void
om_uses_drop_block(om_block *b)
{
	for (om_op *op = b->first; op; op = op->next)
		om_uses_drop_op(op);
	for (uint32_t k = 0; k < b->nresult; k++)
		om_use_drop(b->use[k]);
}

void
om_value_replace(om_value *old, om_value *by)
{
	old->block->prog->op_facts = NULL;
	for (om_use *u; old != by && (u = old->first_use);) {
		om_use_drop(u);
		*(u->op ? &u->op->in[u->index] : &u->block->result[u->index]) = by;
		om_use_link(u, by);
	}
}
