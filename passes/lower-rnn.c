/* SPDX-License-Identifier: Apache-2.0 */
/* lower-rnn: recurrent layers for the kernels of org.onnxmem.cpu; see lower/lower_rnn.c. */
#include <config.h>

#include "lower/lower_rnn.h"
#include "onnxmem/pass.h"

static om_status
lower_block(om_run *r, om_prog *p, om_block *b)
{
	bool done;

	for (om_op *op = b->first, *next; op; op = next) {
		next = op->next;
		for (uint32_t k = 0; k < op->nbody; k++)
			OM_TRY(lower_block(r, p, op->body[k]));
		if (!op->opdef || op->is_folded)
			continue;
		OM_TRY(om_lower_rnn(r->session, p, r->scratch, op, &done));
		if (done)
			om_count(r, "layers", 1);
	}
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	return lower_block(r, p, p->first);
}

static const om_pass_counter counters[] = {
	{"layers", "recurrent layers that were lowered"},
	{0}
};

OM_PASS(
	.name = "lower-rnn",
	.brief = "multiply the inputs of recurrent layers at once, and pack their weights",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.by_sizes = true,
	.run = run)
