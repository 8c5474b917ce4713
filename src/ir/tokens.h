/* Reading text, a word at a time: for parse.c. */
#ifndef OM_TOKENS_H
#define OM_TOKENS_H

#include "onnxmem/ir.h"

/* Types in types, blocks in ops: how deep at most. */
enum { OM_TEXT_DEPTH = 64 };

/* What is read comes from the memory of `p`. */
struct om_reader {
	om_prog *p;           /* the program, or that of the function that is read */
	om_prog *whole;       /* the program */
	om_session *s;
	om_arena *mem;        /* the text and the maps */
	const char *where;
	const char *at;
	int line;
	int depth;
};

/* OM_MALFORMED, with the line. */
om_status om_text_bad(const struct om_reader *r, const char *fmt, ...) OM_PRINTF(2, 3);

/* To the next character that is no blank and not in a comment. */
void om_text_skip(struct om_reader *r);

/* A punctuation mark, or a whole word, if it comes next; the same where it has to. */
bool om_text_eat(struct om_reader *r, const char *token);
om_status om_text_want(struct om_reader *r, const char *token);

/* What stands in quotes, of which the first comes next. */
om_status om_text_quoted(struct om_reader *r, om_string *out);

/* A word of letters, digits and `also`, or a quoted one without NULs. */
om_status om_text_word(struct om_reader *r, const char *also, const char **out);

om_status om_text_int(struct om_reader *r, int64_t *out);
om_status om_text_version(struct om_reader *r, int *out);
om_status om_text_real(struct om_reader *r, double *out);

/* A type; a type and its shape; the elements of a tensor whose type and shape are there, which may
 * be elided; all of a tensor. */
om_status om_text_type(struct om_reader *r, om_type *t);
om_status om_text_typed(struct om_reader *r, om_value *v);
om_status om_text_elements(struct om_reader *r, om_tensor *t);
om_status om_text_tensor(struct om_reader *r, om_tensor *t);

#endif
