/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing weights of a model. */
#include <config.h>

#include "base/guard.h"
#include "onnx/model.h"

static Onnx__TensorProto **
find(const om_model *m, const char *name)
{
	const Onnx__GraphProto *g = m->proto->graph;

	for (size_t k = 0; g && k < g->n_initializer; k++)
		if (strcmp(om_text(g->initializer[k]->name), name) == 0)
			return &g->initializer[k];
	return NULL;
}

bool
om_model_has_weight(const om_model *m, const char *name)
{
	return find(m, name) != NULL;
}

/* The elements are copied, because the caller may modify them later. */
static om_status
model_set_weight_guarded(om_session *s, om_model *m, const char *name, const om_tensor *t)
{
	Onnx__TensorProto **at = find(m, name), *to;
	om_tensor own = *t, old;

	if (!at)
		return om_fail(s, OM_USAGE, "%s has no weight %s", m->name, name);
	OM_TRY(om_tensor_read(s, m, m->mem, *at, &old));
	if (old.type != t->type || !om_shape_equal(&old.shape, &t->shape)) {
		char want[256], got[256];
		return om_fail(s, OM_SHAPE, "%s: weight %s is %s %s, expected %s %s", m->name, name, om_dtype_text(old.type),
			om_shape_text(&old.shape, want, sizeof want), om_dtype_text(t->type),
			om_shape_text(&t->shape, got, sizeof got));
	}
	om_tensor_own(m->mem, &own);
	OM_TRY(om_tensor_write(s, m->mem, name, &own, &to));
	to->doc_string = (*at)->doc_string;
	to->n_metadata_props = (*at)->n_metadata_props;
	to->metadata_props = (*at)->metadata_props;
	*at = to;
	return OM_OK;
}

om_status
om_model_set_weight(om_session *s, om_model *m, const char *name, const om_tensor *t)
{
	OM_GUARDED(s, model_set_weight_guarded(s, m, name, t));
}
