/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: ranks that each have a part of a program, through which a batch goes in micro-batches. */
#ifndef OM_STAGES_H
#define OM_STAGES_H

#include "cli/rank_group.h"
#include "onnxmem/trainer.h"

/* The options. */
#define OM_CLI_STAGES                                                                                              \
	{"pipeline", "N", "cut the model into N parts by memory, each run by a process of this machine, or by a rank that\n"   \
		"                            mpirun started [1]"},                                                       \
	{"micro-batches", "M", "divide a batch into M equal parts that go through it one after the other [1]"}

typedef struct om_stages {
	bool used;               /* one of the options is given */
	uint32_t micro;          /* micro-batches of a batch */
	uint32_t whole;          /* micro-batches of a whole batch, if this is a smaller one; 0: it is whole */
	double scale;            /* a micro-batch of a whole batch has so many times the samples; 0: as many */
	const char *divided;     /* the symbol of the samples; NULL: they are not divided */
} om_stages;

om_status om_stages_read(om_cli *c, om_stages *out);

/* The first dims of the inputs among `in` that have data, and of the results of c->prog, are the samples.  With micro-batches, OM_USAGE for an input
 * or a result of which that is not so. */
om_status om_stages_check(om_cli *c, om_stages *s, const om_tensor *in);

/* `in` as a micro-batch has it: the shapes of `n` tensors, by parameter, of which those with samples are divided.  Allocated in c->mem. */
om_status om_stages_divide(om_cli *c, const om_stages *s, const om_tensor *in, uint32_t n, const om_tensor **out);

/* The next planning of c->prog is of this rank's part; NULL: of the whole again. */
void om_stages_plan(om_cli *c, const om_stages *s, const om_ranks *r);

/* States of a step, of which each rank has some: called by all ranks, as om_rank_states_gather() and om_rank_states_divide(). */
om_status om_stages_gather(om_cli *c, const om_ranks *r, const om_prog *step, const om_trainer *own, om_trainer **whole);
/* See om_stages_gather(); `whole` is NULL on ranks other than 0. */
om_status om_stages_spread(om_cli *c, const om_ranks *r, const om_prog *step, const om_trainer *whole, om_trainer *own);

#endif
