/* Trials: operators on random inputs. */
#ifndef OM_WALK_H
#define OM_WALK_H

#include "onnxmem/builder.h"

enum { MOST_INPUTS = 16 };

/* One op in a program of its own.  A recipe builds it. */
struct trial {
	const om_opdef *row;
	int version;
	unsigned variant;
	uint64_t state;                  /* of the random numbers */
	om_session *session;
	om_prog *prog;
	om_op *op;
	bool is_steering[MOST_INPUTS];   /* its elements say what to do: they stay what they are */
};

/* An empty program for its variant; an end frees it. */
void trial_start(struct trial *t);
void trial_end(struct trial *t);

/* Element i becomes v, or what is near to that in its type. */
void trial_put(om_dtype type, void *data, int64_t i, double v);

/* Build t->op; false when there is no such variant any more. */
typedef bool recipe_fn(struct trial *t);

struct recipe {
	const char *name;
	recipe_fn *make;
};

/* The recipe of an operator; NULL when there is none. */
recipe_fn *recipe_of(const om_opdef *row);

/* The same of those that are written as text. */
recipe_fn *text_recipe_of(const om_opdef *row);

/* Is it named on the command line, or nothing at all? */
bool is_row_wanted(const om_opdef *row, int argc, char **argv);

/* Why an operator cannot be tried on its own; NULL when it can. */
const char *excuse_of(const om_opdef *row);

#endif
