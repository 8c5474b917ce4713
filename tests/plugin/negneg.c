/* SPDX-License-Identifier: Apache-2.0 */
/* negneg: -(-x) is x, as a rule of a third party; with BAD, a product of what cannot be multiplied. */
#include <onnxmem/pass.h>
#include <onnxmem/rewrite.h>

static const om_pattern
    x = {.kind = OM_MATCH_ANY, .slot = 1},
    inner = {.kind = OM_MATCH_OP, .type = "Neg", .in = {&x}},
    outer = {.kind = OM_MATCH_OP, .type = "Neg", .in = {&inner}};

static om_value *
build(om_rewriter *w, const om_match *m)
{
#ifdef BAD
	return om_rewrite_op(w, m->value[0]->def, "MatMul", 2, (om_value *[]){m->value[1], m->value[1]});
#else
	(void)w;
	return m->value[1];
#endif
}

static const om_rule rules[] = {{"negneg", &outer, build}};

static om_status
run(om_run *r, om_prog *p)
{
	uint64_t applied;

	OM_TRY(om_rewrite(r->session, p, rules, 1, &applied));
	om_count(r, "pairs", applied);
	return OM_OK;
}

static const om_pass_counter counters[] = {{"pairs", "pairs of Neg that were removed"}, {0}};

OM_PASS(
	.name = "negneg",
	.brief = "remove pairs of Neg",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.run = run)
