/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors whose rows along an axis are in buffers with room for more: blocks, one for each element of the axes before it, of
 * which the first rows are in use. */
#ifndef OM_ROW_BLOCKS_H
#define OM_ROW_BLOCKS_H

#include "onnxmem/tensor.h"

typedef struct om_row_blocks {
	size_t n;                 /* blocks */
	size_t row;               /* bytes of a row of a block */
} om_row_blocks;

/* Of a tensor with any number of rows along `axis`; elements have whole bytes, and `shape` is known. */
om_row_blocks om_row_blocks_of(om_dtype type, const om_shape *shape, int axis);

/* Move the first `rows` rows of each block with room for `from_rows` to blocks with room for `to_rows`, which are elsewhere or
 * begin at the same address. */
void om_row_blocks_move(const om_row_blocks *b, int64_t rows, void *to, int64_t to_rows, const void *from, int64_t from_rows);

/* Set all bytes after the first `rows` rows of each block. */
void om_row_blocks_fill(const om_row_blocks *b, int64_t rows, void *to, int64_t to_rows, int byte);

#endif
