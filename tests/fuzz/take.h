/* Processing of untrusted models. */
#ifndef OM_TAKE_H
#define OM_TAKE_H

#include <stdbool.h>

#include "onnxmem/pass.h"

/* Load, import, plan, write: the last stage that succeeded. */
enum taken { REFUSED, LOADED, IMPORTED, PLANNED, WRITTEN };

/* Aborts the process on an error without a message, and on an invalid program. */
enum taken take_model(om_host *h, om_session *s, const void *data, size_t size, const char *folder);

/* Parse, verify and print a program in textual form. */
void take_text(om_session *s, const void *data, size_t size);

#endif
