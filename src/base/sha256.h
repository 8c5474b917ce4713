/* SPDX-License-Identifier: Apache-2.0 */
/* Incremental SHA-256. */
#ifndef OM_SHA256_H
#define OM_SHA256_H

#include "onnxmem/arena.h"

enum { OM_SHA256_BYTES = 32, OM_SHA256_TEXT = 65 };

typedef struct om_sha256 om_sha256;

om_sha256 *om_sha256_new(om_arena *mem);
void om_sha256_add(om_sha256 *h, const void *p, size_t n);
/* The digest in hexadecimal; `h` may not be used afterwards. */
void om_sha256_end(om_sha256 *h, char text[OM_SHA256_TEXT]);

#endif
