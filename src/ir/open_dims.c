/* SPDX-License-Identifier: Apache-2.0 */
/* Dims of inputs that are open: those of a batch, and the others. */
#include <config.h>

#include <string.h>
#include <strings.h>

#include "onnxmem/binding.h"

static bool
is_batch_name(const char *symbol)
{
	static const char *const names[] = {"N", "B", "bs", "bsz"};

	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (strcasecmp(symbol, names[k]) == 0)
			return true;
	for (const char *at = symbol; *at; at++)
		if (strncasecmp(at, "batch", 5) == 0)
			return true;
	return false;
}

bool
om_symbol_is_batch(const om_prog *p, const char *symbol)
{
	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_shape *s = &p->first->param[k]->shape;
		for (int d = 1; d < s->rank; d++)
			if (s->dim[d] < 0 && s->sym[d] && strcmp(s->sym[d], symbol) == 0)
				return false;
	}
	return is_batch_name(symbol);
}

/* The symbol of the first dim of an input, if it is open. */
static const char *
first_symbol(const om_value *v)
{
	return v->shape.rank > 0 && v->shape.dim[0] < 0 ? v->shape.sym[0] : NULL;
}

static bool
is_first_with_symbol(const om_prog *p, uint32_t input, const char *symbol)
{
	for (uint32_t k = 0; k < input; k++) {
		const char *other = first_symbol(p->first->param[k]);
		if (other && strcmp(other, symbol) == 0)
			return false;
	}
	return true;
}

om_status
om_binding_batches(om_session *s, const om_prog *p, om_binding *b, om_arena *mem, const char **told)
{
	*told = "";
	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const char *symbol = first_symbol(p->first->param[k]);
		if (!symbol || !om_symbol_is_batch(p, symbol) || !is_first_with_symbol(p, k, symbol))
			continue;
		OM_TRY(om_binding_dim(s, b, symbol, 1));
		*told = om_printf(mem, "%s %s=1", *told, symbol);
	}
	return OM_OK;
}

const char *
om_open_inputs_text(const om_prog *p, om_arena *mem)
{
	const char *text = "";
	char shape[256];

	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_value *v = p->first->param[k];
		if (v->type.kind == OM_TENSOR && !om_shape_is_known(&v->shape))
			text = om_printf(mem, "%s%s%s %s", text, *text ? ", " : "", v->name,
				v->shape.rank == OM_RANK_UNKNOWN ? "of unknown rank" : om_shape_text(&v->shape, shape, sizeof shape));
	}
	return text;
}
