/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizer of program text, used by parse.c. */
#ifndef OM_TOKENS_H
#define OM_TOKENS_H

#include "onnxmem/ir.h"

/* Maximum nesting depth of types in types and blocks in ops. */
enum { OM_TEXT_DEPTH = 64 };

/* State of the reader.  Results are allocated from the memory of `p`. */
struct om_reader {
	om_prog *p;           /* the program, or that of the function being read */
	om_prog *whole;       /* the whole program */
	om_session *s;
	om_arena *mem;        /* the text and the maps */
	const char *where;
	const char *at;
	int line;
	int depth;
};

/* Returns OM_MALFORMED, with the line in the message. */
om_status om_text_bad(const struct om_reader *r, const char *fmt, ...) OM_PRINTF(2, 3);

/* Skip blanks and comments. */
void om_text_skip(struct om_reader *r);

/* Consume a punctuation mark or a whole word if it comes next; om_text_want() fails if it does not. */
bool om_text_eat(struct om_reader *r, const char *token);
om_status om_text_want(struct om_reader *r, const char *token);

/* Read a quoted string; the opening quote comes next. */
om_status om_text_quoted(struct om_reader *r, om_string *out);

/* Read a word of letters, digits and `also`, or a quoted one without NULs. */
om_status om_text_word(struct om_reader *r, const char *also, const char **out);

om_status om_text_int(struct om_reader *r, int64_t *out);
om_status om_text_version(struct om_reader *r, int *out);
om_status om_text_real(struct om_reader *r, double *out);

/* Read a type; a type and its shape; the elements of a tensor with known type and shape, which may be
 * elided; a whole tensor. */
om_status om_text_type(struct om_reader *r, om_type *t);
om_status om_text_typed(struct om_reader *r, om_value *v);
om_status om_text_elements(struct om_reader *r, om_tensor *t);
om_status om_text_tensor(struct om_reader *r, om_tensor *t);

#endif
