/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings of one entry, applied to a program in place. */
#ifndef BIND_H
#define BIND_H

#include "onnxmem/binding.h"

static inline om_status
bind_and_free(om_session *s, om_prog *p, om_binding *b, om_status st)
{
	if (st == OM_OK)
		st = om_bind(s, p, b);
	om_binding_free(b);
	return st;
}

static inline om_status
bind_shape(om_session *s, om_prog *p, const char *input, const om_shape *shape)
{
	om_binding *b = om_binding_new();
	return bind_and_free(s, p, b, b ? om_binding_shape(s, b, input, shape) : OM_MEMORY);
}

static inline om_status
bind_dim(om_session *s, om_prog *p, const char *symbol, int64_t n)
{
	om_binding *b = om_binding_new();
	return bind_and_free(s, p, b, b ? om_binding_dim(s, b, symbol, n) : OM_MEMORY);
}

/* All dims that are open. */
static inline om_status
bind_rest(om_session *s, om_prog *p, int64_t n)
{
	om_binding *b = om_binding_new();

	if (b)
		om_binding_rest(b, n);
	return bind_and_free(s, p, b, b ? OM_OK : OM_MEMORY);
}

#endif
