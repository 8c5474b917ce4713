/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others in messages and tables. */
#ifndef OM_CLEAN_TEXT_H
#define OM_CLEAN_TEXT_H

#include <stddef.h>

/* The bytes of the UTF-8 character that starts at `s`, which a NUL ends; 0: it is none. */
size_t om_text_utf8(const unsigned char *s);

/* Replace, in place, each control character and each byte that is not UTF-8 by a question mark, so that names in
 * files cannot control a terminal or forge a line of output. */
void om_text_clean(char *s);

#endif
