/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "grad/functions.h"
#include "grad/grad_builder.h"
#include "ir/edit.h"

om_block *
om_function_body(om_prog *p, const char *name)
{
	om_opset *set = OM_NEW(p->mem, om_opset);
	om_prog *home = OM_NEW(p->mem, om_prog);

	*set = (om_opset){"", om_opset_version(p, "")};
	*home = (om_prog){.mem = p->mem, .name = name, .opset = set, .nopset = 1, .ir_version = p->ir_version,
		.operators = p->operators, .model = p->model, .files = p->files, .gradients = om_prog_gradients(p), .own_opdefs = p->own_opdefs};
	return om_block_new(home, NULL, NULL, name);
}

void
om_function_constants(om_block *body, om_phase phase, bool *is_read)
{
	om_prog *home = body->prog;
	om_op *first = body->first;

	for (uint32_t k = 0; k < home->nvalue; k++) {
		om_value *v = home->values[k];
		if (!is_read[k] || v->def || !v->data)
			continue;
		om_op *op = om_op_new(home, "", "Constant", 0, 0, 1);
		op->phase = phase;
		om_op_add_attr(home, op, &(om_attr){.name = "value", .kind = OM_ATTR_TENSOR, .n = 1, .t = v->data});
		om_op_set_out(op, 0, v);
		om_op_insert(first, op);
		is_read[k] = false;
	}
}

static bool
is_taken(const om_prog *p, const char *type, const char *overload)
{
	for (const om_function *f = p->functions; f; f = f->next)
		if (strcmp(f->domain, OM_GRAD_DOMAIN) == 0 && strcmp(f->name, type) == 0
		    && strcmp(f->overload, overload) == 0)
			return true;
	return false;
}

static void
import_domain(om_prog *p)
{
	if (om_opset_version(p, OM_GRAD_DOMAIN))
		return;
	om_opset *all = OM_NEWN(p->mem, om_opset, p->nopset + 1);
	if (p->nopset)
		memcpy(all, p->opset, p->nopset * sizeof *all);
	all[p->nopset++] = (om_opset){OM_GRAD_DOMAIN, 1};
	p->opset = all;
}

om_function *
om_function_add(om_prog *p, om_block *body, const char *const *attr, uint32_t n)
{
	const om_prog *home = body->prog;
	om_function *fn = OM_NEW(p->mem, om_function), **end = &p->functions;
	const char **names = OM_NEWN(p->mem, const char *, (size_t)n + 1);
	unsigned number = 0;

	import_domain(p);
	if (n)
		memcpy(names, attr, n * sizeof *names);
	*fn = (om_function){.domain = OM_GRAD_DOMAIN, .name = home->name, .body = body, .attr = names, .nattr = n,
		.opset = home->opset, .nopset = home->nopset};
	do
		fn->overload = om_printf(p->mem, "%u", ++number);
	while (is_taken(p, fn->name, fn->overload));
	while (*end)
		end = &(*end)->next;
	*end = fn;
	return fn;
}
