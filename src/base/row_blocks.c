/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <string.h>

#include "base/row_blocks.h"
#include "base/shape.h"

om_row_blocks
om_row_blocks_of(om_dtype type, const om_shape *shape, int axis)
{
	om_shape one = *shape;
	uint64_t bytes = 0;

	for (int d = 0; d <= axis; d++)
		one.dim[d] = 1;
	om_tensor_bytes(type, &one, &bytes);
	return (om_row_blocks){(size_t)om_shape_span(shape, 0, axis), (size_t)bytes};
}

/* Larger blocks are filled from the last one on: none covers one that has not been moved. */
void
om_row_blocks_move(const om_row_blocks *b, int64_t rows, void *to, int64_t to_rows, const void *from, int64_t from_rows)
{
	const size_t part = (size_t)rows * b->row, into = (size_t)to_rows * b->row, out_of = (size_t)from_rows * b->row;

	for (size_t k = 0; k < b->n && part; k++) {
		const size_t block = to_rows > from_rows ? b->n - 1 - k : k;
		memmove((char *)to + block * into, (const char *)from + block * out_of, part);
	}
}

void
om_row_blocks_fill(const om_row_blocks *b, int64_t rows, void *to, int64_t to_rows, int byte)
{
	const size_t part = (size_t)rows * b->row, into = (size_t)to_rows * b->row;

	for (size_t k = 0; k < b->n && into > part; k++)
		memset((char *)to + k * into + part, byte, into - part);
}
