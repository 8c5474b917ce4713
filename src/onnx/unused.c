/* SPDX-License-Identifier: Apache-2.0 */
/* Initializers that a program does not read any more. */
#include <config.h>

#include "base/map.h"
#include "onnx/model.h"
#include "onnx/update.h"

/* Names that stay: values that are read, and inputs, which may have a default. */
static om_map
names_read(const om_prog *p, const Onnx__GraphProto *g, om_arena *mem)
{
	om_map names = om_map_new(mem);

	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->values[k]->nuse)
			om_map_set(&names, p->values[k]->name, p->values[k]);
	for (size_t k = 0; k < g->n_input; k++)
		om_map_set(&names, om_text(g->input[k]->name), g->input[k]);
	return names;
}

size_t
om_model_drop_unused(om_model *m, const om_prog *p)
{
	Onnx__GraphProto *g = m->proto->graph;
	om_arena *tmp = om_arena_new();
	size_t n = 0, was;

	if (!g) {
		om_arena_free(tmp);
		return 0;
	}
	const om_map names = names_read(p, g, tmp);
	was = g->n_initializer;
	for (size_t k = 0; k < was; k++)
		if (om_map_get(&names, om_text(g->initializer[k]->name)))
			g->initializer[n++] = g->initializer[k];
	g->n_initializer = n;
	om_arena_free(tmp);
	return was - n;
}
