/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-attention: attention is one op, which keeps the scores of a few rows in cache; see lower/lower_attention.c. */
#include <config.h>

#include "lower/lower_attention.h"
#include "onnxmem/pass.h"

static om_status
fuse_block(om_run *r, om_prog *p, om_block *b)
{
	bool done;

	for (om_op *op = b->first, *next; op; op = next) {
		next = op->next;
		for (uint32_t k = 0; k < op->nbody; k++)
			OM_TRY(fuse_block(r, p, op->body[k]));
		if (!op->opdef || op->is_folded || op->nout != 1 || !op->out[0] || op->nin == 0)
			continue;
		OM_TRY(om_lower_attention(r->session, p, r->scratch, op, &done));
		if (done) {
			next = op->next;
			om_count(r, "attentions", 1);
		}
	}
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	return fuse_block(r, p, p->first);
}

static const om_pass_counter counters[] = {
	{"attentions", "attentions that became one op"},
	{0}
};

OM_PASS(
	.name = "fuse-attention",
	.brief = "make attention one op, in place of products, masks and softmax",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.by_sizes = true,
	.run = run)
