/* SPDX-License-Identifier: Apache-2.0 */
/* What a module with a communicator exports, and what the library gives it: the module is not linked with the library. */
#ifndef OM_COMM_MODULE_H
#define OM_COMM_MODULE_H

#include "onnxmem/comm.h"

/* Functions of the library that the module calls. */
typedef struct om_comm_calls {
	om_status (*fail)(om_session *s, om_status st, const char *fmt, ...) OM_PRINTF(3, 4);
	bool (*is_stopped)(const om_session *s);
	void (*sum)(om_dtype type, void *to, const void *from, uint64_t n);
	unsigned (*bits)(om_dtype type);
	double (*now_ms)(void);
} om_comm_calls;

/* The type of om_comm_module(), the one symbol of the module. */
typedef om_status om_comm_module_fn(const om_comm_calls *calls, om_session *s, double limit, om_comm **out);
OM_API om_comm_module_fn om_comm_module;

#endif
