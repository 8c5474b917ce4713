/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: Chain, elementwise stages in one pass over tiles, and Silu.
 *
 * Attribute `stages` is the names of the stages, those of src/kernels/cpu/elementwise.def, separated by spaces.
 * `operands` is two numbers for each stage: k below the number of inputs is input k, a larger one the result of an
 * earlier stage; a function of one operand has it twice.  `parameters` is two numbers for each stage.  The inputs
 * are broadcast to the output, which is the result of the last stage. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/op_context.h"
#include "ops/cpu/cpu_conv.h"
#include "ops/cpu/tiled_map.h"
#include "ops/family.h"
#include "ops/math/broadcast_loops.h"

static const char *const names[OM_NMAP] = {
#define MAP1(name, value) #name,
#define MAP2(name, value) #name,
#include "kernels/cpu/elementwise.def"
#undef MAP1
#undef MAP2
};

/* The kind with the name of `n` bytes; OM_NMAP if there is none. */
static int
kind_of(const char *name, size_t n)
{
	int kind = 0;

	while (kind < OM_NMAP && (strlen(names[kind]) != n || memcmp(names[kind], name, n) != 0))
		kind++;
	return kind;
}

struct program {
	om_stage *stage;
	uint32_t n;
};

/* The stages of `text`; their operands and parameters follow from the other attributes. */
static om_status
read_names(const om_op_context *c, struct program *p)
{
	const om_string text = om_attr_string(c->op, "stages");
	size_t at = 0;

	p->stage = OM_NEWN(c->mem, om_stage, OM_MAP_OPERANDS);
	while (at < text.size) {
		size_t n = 0;
		while (at + n < text.size && text.data[at + n] != ' ')
			n++;
		const int kind = kind_of(text.data + at, n);
		if (kind == OM_NMAP || p->n + c->op->nin == OM_MAP_OPERANDS)
			return om_op_fail(c->session, OM_INVALID, c->op, kind == OM_NMAP ? "stage %u is not a function that exists"
				: "has more than %u inputs and stages", kind == OM_NMAP ? p->n : OM_MAP_OPERANDS);
		p->stage[p->n++].kind = (enum om_map_kind)kind;
		at += n + 1;
	}
	return p->n ? OM_OK : om_op_fail(c->session, OM_INVALID, c->op, "has no stages");
}

static om_status
read_program(const om_op_context *c, struct program *p)
{
	size_t noperand, nparameter;
	const int64_t *operand = om_attr_ints(c->op, "operands", &noperand);
	const float *parameter = om_attr_floats(c->op, "parameters", &nparameter);

	OM_TRY(read_names(c, p));
	if (noperand != 2 * (size_t)p->n || nparameter != noperand)
		return om_op_fail(c->session, OM_INVALID, c->op, "has %u stages, %zu operands and %zu parameters, expected two for each stage",
			p->n, noperand, nparameter);
	for (size_t k = 0; k < noperand; k++) {
		om_stage *s = &p->stage[k / 2];
		if (operand[k] < 0 || operand[k] >= (int64_t)(c->op->nin + k / 2))
			return om_op_fail(c->session, OM_INVALID, c->op, "operand %lld of stage %zu is neither an input nor an earlier stage",
				(long long)operand[k], k / 2);
		*(k % 2 ? &s->y : &s->x) = (uint32_t)operand[k];
		s->p[k % 2] = parameter[k];
	}
	return OM_OK;
}

static om_status
chain_infer(om_op_context *c)
{
	struct program p = {0};

	OM_TRY(read_program(c, &p));
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (!om_has_in(c, k))
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is omitted", k);
	c->out[0].type = OM_FLOAT32;
	return om_broadcast_all(c);
}

static om_status
chain_prepare(om_op_context *c, void **state)
{
	struct program p = {0};

	OM_TRY(read_program(c, &p));
	om_tiled_map *m = *state = om_tiled_map_new(c, c->op->nin, p.n);
	memcpy(om_tiled_map_stages(m), p.stage, p.n * sizeof *p.stage);
	for (uint32_t k = 0; k < c->op->nin; k++)
		om_tiled_map_input(c, m, k, &c->in[k].shape);
	om_tiled_map_finish(c, m);
	return OM_OK;
}

static void
chain_cost(const om_op_context *c, om_cost *cost)
{
	struct program p = {0};
	om_op_context quiet = *c;

	quiet.session = NULL;
	if (read_program(&quiet, &p) == OM_OK)
		cost->flops = (double)p.n * (double)om_shape_count(&c->out[0].shape);
}

/* ---- Silu. ---- */

static om_status
silu_prepare(om_op_context *c, void **state)
{
	om_tiled_map *m = *state = om_tiled_map_new(c, 1, 1);

	om_tiled_map_stages(m)->kind = OM_MAP_SILU;
	om_tiled_map_input(c, m, 0, &c->in[0].shape);
	om_tiled_map_finish(c, m);
	return OM_OK;
}

/* ---- The tables. ---- */

static const om_attr_spec chain_attrs[] = {
	{"stages", OM_ATTR_STRING, .required = true},
	{"operands", OM_ATTR_INTS, .required = true},
	{"parameters", OM_ATTR_FLOATS, .required = true},
	{0}
};

const om_opdef om_ops_cpu_chain[] = {
	{
		.domain = OM_CPU_DOMAIN, .name = "Chain", .brief = "elementwise functions in one pass", .since = 1,
		.min_in = 1, .max_in = OM_VARIADIC, .min_out = 1, .max_out = 1, .flags = OM_POINTWISE, .attrs = chain_attrs,
		.input_types = {OF(FLOAT32), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0),
			LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0)},
		.infer = chain_infer, .inplace = om_inplace_whole, .cost = chain_cost, .cpu = om_tiled_map_run,
	},
	{
		.domain = OM_CPU_DOMAIN, .name = "Silu", .brief = "x sigmoid(x)", .since = 1, .min_in = 1, .max_in = 1,
		.min_out = 1, .max_out = 1, .flags = OM_POINTWISE, .input_types = {OF(FLOAT32)},
		.infer = om_infer_same, .inplace = om_inplace_whole, .cpu = om_tiled_map_run,
	},
	{0}
};

const om_kernel om_kernels_cpu_chain[] = {
	{.domain = OM_CPU_DOMAIN, .name = "Chain", .prepare = chain_prepare, .workspace = om_tiled_map_workspace,
	 .run = om_tiled_map_run},
	{.domain = OM_CPU_DOMAIN, .name = "Silu", .prepare = silu_prepare, .workspace = om_tiled_map_workspace,
	 .run = om_tiled_map_run},
	{0}
};
