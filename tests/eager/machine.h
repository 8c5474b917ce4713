/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs of ops, branches and loops, which the elements decide, and the ways to run them. */
#ifndef OM_TESTS_EAGER_MACHINE_H
#define OM_TESTS_EAGER_MACHINE_H

#include "onnxmem/eager.h"

enum { REGISTERS = 6, INPUTS = 3, SIDE = 4, STATEMENTS = 96, DECISIONS = 256 };

/* A statement: an operation on registers, all of which are SIDE x SIDE float32; or a branch or loop over the statements
 * up to `end`. */
struct statement {
	int code;                /* see machine.c */
	int a, b, to, other;     /* registers */
	int middle, end;         /* of a branch: the else part; of a branch or a loop: the statement after it */
};

/* A random program. */
struct script {
	struct statement s[STATEMENTS];
	int n;
	bool has_gradient;       /* of the sum of register 0 by the inputs */
};

void script_draw(struct script *p, uint64_t *seed);

/* Results: registers, then gradients by the inputs, of which zeros stand for none; and what was decided on the way. */
struct outcome {
	float x[REGISTERS + INPUTS][SIDE * SIDE];
	int decision[DECISIONS];
	int ndecision;
};

/* Run it on a context.  False, with a message printed, if a call fails. */
bool script_run(const struct script *p, om_session *s, om_eager *e, float in[INPUTS][SIDE * SIDE], struct outcome *out);
/* Run it as one program, compiled up front for the decisions of `out`. */
bool script_compile(const struct script *p, om_session *s, float in[INPUTS][SIDE * SIDE], const struct outcome *decided,
	struct outcome *out);

#endif
