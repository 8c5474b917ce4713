/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of recurrent layers in float32: LSTM, GRU, RNN with their usual activations.
 *
 * The products of the input with W, biases included, are given for all steps.  R is packed: panels of
 * OM_RECURRENT_PANEL columns, each of `hidden` rows, padded with zeros; the same on every machine. */
#ifndef OM_RECURRENT_H
#define OM_RECURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"

enum {
	OM_RECURRENT_PANEL = 64,  /* columns */
	OM_RECURRENT_ROWS = 12,   /* sequences of a piece */
	OM_RECURRENT_SPARE = 16,  /* floats after the gates, for whole vectors of the last one */
};

typedef enum om_recurrent_kind {
	OM_RECURRENT_LSTM,        /* gates: input, output, forget, cell */
	OM_RECURRENT_GRU,         /* gates: update, reset, hidden; reset before the product, whose panels are apart */
	OM_RECURRENT_GRU_AFTER,   /* reset after the product */
	OM_RECURRENT_RNN,
} om_recurrent_kind;

/* One direction of a layer.  Steps of the tensors are in elements. */
typedef struct om_recurrent {
	om_recurrent_kind kind;
	int64_t steps, batch, hidden;
	bool is_reverse;
	const float *x;           /* gates of the input at a time of a sequence */
	int64_t x_time, x_row;
	const float *r;           /* packed */
	const float *bias;        /* GRU_AFTER: added to the product of the hidden gate; NULL: none */
	const int32_t *lengths;   /* of the sequences, in [0, steps]; NULL: all are `steps` */
	const float *initial_h, *initial_c;  /* NULL: 0 */
	float *y;                 /* all states; NULL: not wanted */
	int64_t y_time, y_row;
	float *last_h, *last_c;   /* NULL: not wanted */
	int64_t state_row;        /* of initial and last states */
} om_recurrent;

typedef struct om_recurrent_kernels {
	/* All steps of the sequences [first, first + n), at most OM_RECURRENT_ROWS. */
	void (*run)(const om_recurrent *l, int64_t first, int64_t n, float *room);
} om_recurrent_kernels;

/* Gates of a kind of layer; those in the first group of panels. */
int64_t om_recurrent_gates(om_recurrent_kind kind);
int64_t om_recurrent_first_gates(om_recurrent_kind kind);

/* Floats of R packed, of `gates` gates of which the first ones are a group of panels of their own. */
int64_t om_recurrent_packed(int64_t gates, int64_t first_gates, int64_t hidden);

/* Pack R of one direction: [gates * hidden, hidden]. */
void om_recurrent_pack(const float *r, int64_t gates, int64_t first_gates, int64_t hidden, float *packed);

/* Bytes of workspace for so many workers. */
uint64_t om_recurrent_workspace(const om_recurrent *l, uint32_t workers);

/* Run `n` directions of one layer. */
void om_recurrent_run(const om_recurrent *l, int n, void *room, om_workers *pool);

#endif
