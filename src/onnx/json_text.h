/* SPDX-License-Identifier: Apache-2.0 */
/* Writes compact JSON, item by item: large documents need no tree of all their items.
 *
 * Commas are put where they belong.  Within an object, each item follows its key; keys must differ.
 */
#ifndef OM_JSON_TEXT_H
#define OM_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

typedef struct om_json {
	char *text;              /* what was written so far, without a NUL */
	size_t n, cap;
	bool is_next;            /* an item came before in the same list or object */
	bool is_short;           /* there is no memory: the text is not whole */
	const char *bad;         /* a string that is not UTF-8 was replaced by null; NULL: none */
} om_json;

/* An empty document, whose text the arena frees unless it was taken. */
om_json *om_json_new(om_arena *mem);

void om_json_open(om_json *j, char bracket);     /* [ or { */
void om_json_close(om_json *j, char bracket);    /* ] or } */
void om_json_key(om_json *j, const char *key);
void om_json_string(om_json *j, const char *s);
void om_json_integer(om_json *j, int64_t n);
void om_json_true(om_json *j);
void om_json_null(om_json *j);

/* The text, to be freed by free(); NULL: there is no memory.  Nothing may be written after it. */
char *om_json_take(om_json *j);

#endif
