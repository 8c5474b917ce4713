/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others in messages and tables. */
#ifndef OM_CLEAN_TEXT_H
#define OM_CLEAN_TEXT_H

/* Replace, in place, each control character and each byte that is not UTF-8 by a question mark, so that names in
 * files cannot control a terminal or forge a line of output. */
void om_text_clean(char *s);

#endif
