/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that replace the cost model: how layers are computed, by their shapes.
 *
 * A layer is a convolution or a product of org.onnxmem.cpu that the pass lower-layout makes.  Its key has all that its time
 * depends on: conv_n1_c64_k64_g1_i56x56_o56x56_w3x3_s1x1_d1x1, or product_n784_c64_k256.  A choice is an algorithm and,
 * unless it is 100, the size of blocks in percent: winograd4, gemm@50.  A list of choices is a text, which is valid in
 * pipelines: KEY=CHOICE;KEY=CHOICE. */
#ifndef OM_CHOICES_H
#define OM_CHOICES_H

#include "base/arena_internal.h"
#include "lower/conv_algorithm.h"
#include "onnxmem/ir.h"

enum { OM_CHOICE_MOST = 16 };

typedef struct om_choice {
	const char *algorithm;   /* "gemm", "winograd4", "winograd2", "grouped"; a static string */
	int64_t block;           /* percent */
} om_choice;

/* The key of a convolution, and of a product of so many rows. */
const char *om_conv_key(const om_conv_shape *s, om_arena *mem);
const char *om_product_key(int64_t rows, int64_t depth, int64_t columns, om_arena *mem);
/* The key of an op that lower-layout made, and how it is computed; NULL: there is none, as for all other ops. */
const char *om_layer_key(const om_op *op, om_arena *mem, om_choice *is);

/* Is it one that kernels have, in its form or in that of the algorithm alone? */
bool om_choice_read(const char *text, size_t n, om_choice *c);
/* Its text. */
const char *om_choice_text(const om_choice *c, om_arena *mem);
/* The choice of the list for a layer; false: there is none.  One that kernels lack has `algorithm` NULL. */
bool om_choices_find(const char *list, const char *key, om_choice *c);
/* Is a list well-formed?  Algorithms that kernels lack are no error of the form. */
bool om_choices_are_valid(const char *list);

/* All ways to compute a layer that lower-layout made, the present one first: [OM_CHOICE_MOST]; returns how many. */
uint32_t om_layer_alternatives(const om_op *op, om_choice *c);

#endif
