/* All that is done with a model that somebody sent. */
#ifndef OM_TAKE_H
#define OM_TAKE_H

#include <stdbool.h>

#include "onnxmem/pass.h"

/* Load, import, plan, write back.  How far it came. */
enum taken { REFUSED, LOADED, IMPORTED, PLANNED, WRITTEN };

/* A status without a message, or a program that
 * is not sound, ends the process. */
enum taken take_model(om_host *h, om_session *s, const void *data, size_t size, const char *folder);

/* A program as text: parsed, verified, printed. */
void take_text(om_session *s, const void *data, size_t size);

#endif
