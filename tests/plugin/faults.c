/* SPDX-License-Identifier: Apache-2.0 */
/* faults: passes that break what pass.h asks of them, one for each FAULT.  See tests/plugin.test. */
#include <onnxmem/assignment.h>
#include <onnxmem/builder.h>
#include <onnxmem/pass.h>

enum {
	NO_PASS, NO_NAME, ODD_NAME, NO_BRIEF, NO_RUN, SMALL, OTHER_ABI, MANY_OPTIONS, TWO_OPTIONS, MANY_COUNTERS, NO_VALUE,
	OPEN_FLAG, BUILT_IN, NO_MESSAGE, NO_STATUS, WRONG_OPTION, WRONG_NUMBER, WRONG_COUNTER, CIRCLE, WRONG_FACT, NO_GIVER,
	SELF, SHAPES_BY_NAME, LIES_PLAN, LIES_LIVE, LIES_SHAPES,
};

static om_status
run(om_run *r, om_prog *p)
{
	uint64_t n = 0;

	(void)p;
	switch (+FAULT) {
	case NO_MESSAGE: return OM_INVALID;
	case NO_STATUS: return (om_status)1234;
	case WRONG_OPTION: return *om_option(r, "years") ? OM_INVALID : OM_OK;
	case WRONG_NUMBER: return om_option_number(r, "years", &n);
	case WRONG_COUNTER: om_count(r, "years", 1); break;
	case WRONG_FACT: return om_fact_attach(r, p, "age", om_arena_new(), NULL);
	case CIRCLE: {
		om_op *op = p->first->first;
		om_value *a = op->out[0], *b = op->next->out[0];
		om_assignment *circle = om_assignment_copy(p->assignment, p->mem);
		circle->backing[a->id] = (om_backing){OM_VIEW, b, 0};
		circle->backing[b->id] = (om_backing){OM_VIEW, a, 0};
		p->assignment = circle;
		break;
	}
	}
	return OM_OK;
}

static const om_pass_option *
options(void)
{
	static om_pass_option list[41];

	for (unsigned k = 0; k < 40; k++)
		list[k] = (om_pass_option){om_printf(om_arena_new(), "o%u", k), "0", "one of many"};
	return list;
}

static const om_pass_counter *
counters(void)
{
	static om_pass_counter list[41];

	for (unsigned k = 0; k < 40; k++)
		list[k] = (om_pass_counter){om_printf(om_arena_new(), "c%u", k), "one of many"};
	return list;
}

static void
spoil(om_pass *pass)
{
	static const om_pass_option twice[] = {{"a", "0", "first"}, {"a", "0", "second"}, {0}};
	static const om_pass_option without[] = {{"a", NULL, "no default"}, {0}};
	static const om_pass_flag open[] = {{.name = "years", .option = "years", .arg = "N", .brief = "sets nothing"}, {0}};

	switch (+FAULT) {
	case NO_NAME: pass->name = NULL; break;
	case ODD_NAME: pass->name = "a,b"; break;
	case NO_BRIEF: pass->brief = NULL; break;
	case NO_RUN: pass->run = NULL; break;
	case SMALL: pass->struct_size = 16; break;
	case OTHER_ABI: pass->abi = 1000; break;
	case MANY_OPTIONS: pass->options = options(); break;
	case TWO_OPTIONS: pass->options = twice; break;
	case MANY_COUNTERS: pass->counters = counters(); break;
	case NO_VALUE: pass->options = without; break;
	case OPEN_FLAG: pass->flags = open; break;
	case BUILT_IN: pass->name = "pack"; break;
	case CIRCLE: pass->needs = OM_HAS_LIVE | OM_HAS_VIEWS; break;
	case NO_GIVER: pass->needs_facts = "age"; break;
	case SELF: pass->needs_facts = pass->gives_facts = "age"; break;
	case SHAPES_BY_NAME: pass->needs_facts = "shapes"; break;
	case LIES_PLAN: pass->gives = OM_HAS_ALL; break;
	case LIES_LIVE: pass->gives = OM_HAS_LIVE; break;
	case LIES_SHAPES: pass->gives = OM_HAS_SHAPES; break;
	}
}

OM_API const om_pass *om_pass_get(void);

const om_pass *
om_pass_get(void)
{
	static om_pass pass = {.struct_size = sizeof(om_pass), .abi = OM_PASS_ABI, .name = "faults", .brief = "break a rule",
		.keeps = OM_HAS_ALL, .run = run};

	spoil(&pass);
	return FAULT == NO_PASS ? NULL : &pass;
}
