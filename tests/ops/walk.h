/* SPDX-License-Identifier: Apache-2.0 */
/* Trials: operators with random inputs. */
#ifndef OM_WALK_H
#define OM_WALK_H

#include "onnxmem/builder.h"

enum { MOST_INPUTS = 16 };

/* One op in a program of its own, built by a recipe. */
struct trial {
	const om_opdef *row;
	int version;
	unsigned variant;
	uint64_t state;                  /* state of the random number generator */
	om_session *session;
	om_prog *prog;
	om_op *op;
	bool is_steering[MOST_INPUTS];   /* its elements control the op: they are not changed */
};

/* Start with an empty program for the variant; trial_end() frees it. */
void trial_start(struct trial *t);
void trial_end(struct trial *t);

/* Set element i to v, or to the nearest value of its type. */
void trial_put(om_dtype type, void *data, int64_t i, double v);

/* Builds t->op; false if there is no such variant. */
typedef bool recipe_fn(struct trial *t);

struct recipe {
	const char *name;
	recipe_fn *make;
};

/* The recipe of an operator; NULL: there is none. */
recipe_fn *recipe_of(const om_opdef *row);

/* The same for recipes that are written as text. */
recipe_fn *text_recipe_of(const om_opdef *row);

/* Builds t->op from these parameters and lines, the last of which is the op, as in texts.def. */
void trial_from_text(struct trial *t, const char *params, const char *body);

/* May it have the name of an operator of ai.onnx?  Such operators have recipes as text only. */
bool is_of_shared_name(const om_opdef *row);

/* Is it named on the command line, or is the command line empty? */
bool is_row_wanted(const om_opdef *row, int argc, char **argv);

/* The reason why an operator cannot be tried on its own; NULL: it can. */
const char *excuse_of(const om_opdef *row);

#endif
