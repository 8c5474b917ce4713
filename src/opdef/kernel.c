/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of ops: selection, preparation, execution, and the attributes in their states. */
#include <config.h>

#include "ir/operators.h"
#include "ir/query.h"
#include "base/arena_internal.h"
#include "opdef/kernel_call.h"
#include "onnxmem/kernel.h"

/* ---- The reference kernel of an operator definition. ---- */

static uint64_t
reference_workspace(const om_op_context *c)
{
	return c->op->opdef->scratch ? c->op->opdef->scratch(c) : 0;
}

static om_status
reference_run(om_op_context *c)
{
	if (!c->op->opdef->cpu)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "has no kernel");
	return c->op->opdef->cpu(c);
}

static const om_kernel reference = {.name = "", .workspace = reference_workspace, .run = reference_run};

/* ---- Binding. ---- */

static const om_kernel *
choose(const om_op_context *c, const om_kernel_registry *r)
{
	const om_kernel *k = r ? om_kernel_find(r, "cpu", c) : NULL;

	if (!k)
		k = om_kernel_find(c->op->operators->kernels(), "cpu", c);
	return k || !c->op->opdef ? k : &reference;
}

om_status
om_kernel_bind(om_op_context *c, const om_kernel_registry *r)
{
	const om_kernel *k = choose(c, r);

	if (!k)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "has no kernel");
	c->kernel = k;
	c->state = k->state_bytes ? om_alloc(c->mem, k->state_bytes) : NULL;
	if (k->fields)
		om_attr_fields(c->op, k->fields, c->state);
	return k->prepare ? k->prepare(c, &c->state) : OM_OK;
}

uint64_t
om_kernel_workspace(const om_op_context *c)
{
	return c->kernel->workspace ? c->kernel->workspace(c) : 0;
}

om_status
om_kernel_run(om_op_context *c)
{
	return c->kernel->run(c);
}

om_status
om_kernel_call(om_op_context *c)
{
	OM_TRY(om_kernel_bind(c, NULL));
	const uint64_t bytes = om_kernel_workspace(c);
	if (bytes) {
		/* Scratch is aligned to 64 bytes wherever it is. */
		char *at = om_alloc(c->mem, bytes + 63);
		c->scratch = at + (-(uintptr_t)at & 63);
	}
	return om_kernel_run(c);
}

/* ---- Attributes. ---- */

static void
set_field(const om_op *op, const om_attr_field *f, char *to)
{
	om_ints *ints = (om_ints *)to;
	om_floats *floats = (om_floats *)to;

	switch (f->kind) {
	case OM_ATTR_INT: *(int64_t *)to = om_attr_int(op, f->name); break;
	case OM_ATTR_FLOAT: *(float *)to = om_attr_float(op, f->name); break;
	case OM_ATTR_STRING: *(om_string *)to = om_attr_string(op, f->name); break;
	case OM_ATTR_INTS: ints->v = om_attr_ints(op, f->name, &ints->n); break;
	case OM_ATTR_FLOATS: floats->v = om_attr_floats(op, f->name, &floats->n); break;
	case OM_ATTR_TENSOR: *(const om_tensor **)to = om_attr_tensor(op, f->name); break;
	default: break;
	}
}

void
om_attr_fields(const om_op *op, const om_attr_field *fields, void *to)
{
	for (const om_attr_field *f = fields; f->name; f++) {
		if (f->is_presence)
			*(bool *)((char *)to + f->offset) = om_attr_has(op, f->name);
		else
			set_field(op, f, (char *)to + f->offset);
	}
}
