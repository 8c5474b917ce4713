/* SPDX-License-Identifier: Apache-2.0 */
/* Processing of untrusted models. */
#ifndef OM_TAKE_H
#define OM_TAKE_H

#include <stdbool.h>
#include <stdio.h>

#include "onnxmem/pass.h"

/* Load, import, plan, write: the last stage that succeeded.  The plan that a model has is read, too. */
enum taken { REFUSED, LOADED, IMPORTED, PLANNED, WRITTEN };

/* Aborts the process on an error without a message, on an invalid program, and on a plan of ours that is
 * not read back. */
enum taken take_model(om_host *h, om_session *s, const void *data, size_t size, const char *folder);

/* Parse, verify and print a program in textual form; whether it is valid. */
bool take_text(om_session *s, const void *data, size_t size, FILE *out);

#endif
