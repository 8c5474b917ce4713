/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of memory: how tests make allocations fail, and what a session permits. */
#ifndef OM_MEMORY_LIMIT_H
#define OM_MEMORY_LIMIT_H

#include "onnxmem/status.h"

/* May a function that was given this session take `n` more bytes from the system?  When it returns
 * false, the function fails with OM_MEMORY, as if the machine had no more.  Freed bytes are not
 * reported to it. */
typedef bool om_allowance(void *arg, size_t n);

/* A NULL `allows` (the default) allows everything. */
void om_session_memory(om_session *s, om_allowance *allows, void *arg);

/* The limit that om_session_load_limit() set, or the default. */
uint64_t om_session_load_bytes(const om_session *s);

#endif
