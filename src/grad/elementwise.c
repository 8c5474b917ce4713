/* Gradients of elementwise operators. */
#include <config.h>

#include "grad/makers.h"

void
om_grad_Add(om_grad *g)
{
	for (uint32_t k = 0; k < 2; k++)
		om_grad_give_wide(g, k, om_grad_of(g, 0));
}

void
om_grad_Mul(om_grad *g)
{
	for (uint32_t k = 0; k < 2; k++)
		if (om_grad_wants(g, k))
			om_grad_give_wide(g, k, om_g(g, "Mul", om_grad_of(g, 0), om_grad_in(g, 1 - k)));
}

/* From the output alone. */
void
om_grad_Relu(om_grad *g)
{
	om_value *dy = om_grad_of(g, 0), *y = om_grad_out(g, 0);

	om_grad_give(g, 0, om_g(g, "Where", om_g_by(g, "Greater", y, 0), dy, om_g_number(g, dy, 0)));
}
