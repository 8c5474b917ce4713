/* What operators share that move elements and never look at them. */
#ifndef OM_STRIDED_COPY_H
#define OM_STRIDED_COPY_H

#include "onnxmem/opdef.h"

enum { OM_COPY_RANK = 2 * OM_MAX_RANK };

/* A copy along axes; strides count elements and may be zero or negative. */
typedef struct om_copy {
	int rank;
	int64_t dim[OM_COPY_RANK], to[OM_COPY_RANK], from[OM_COPY_RANK];
} om_copy;

void om_copy_axis(om_copy *p, int64_t dim, int64_t to, int64_t from);

/* A copy whose loops are chosen: the state of kernels that move elements. */
typedef struct om_copy_plan {
	om_copy m;                /* axes merged; those of the innermost loops last */
	int inner;                /* how many axes those are: 1, or 2 for a plane */
	size_t size;              /* bytes of an element */
	bool is_empty;
} om_copy_plan;

om_copy_plan om_copy_prepare(const om_copy *p, size_t size);
void om_copy_go(const om_copy_plan *plan, void *to, const void *from);

/* Both at once.  Copy elements of `size` bytes: 1, 2, 4, 8 or 16.  Where source and target
 * overlap, they are the same and the copy moves nothing. */
void om_copy_run(const om_copy *p, size_t size, void *to, const void *from);

/* The same element `n` times. */
void om_fill(void *to, int64_t n, size_t size, const void *one);

/* The same of a type that may be packed: bits behind the last element are zero. */
void om_fill_type(void *to, int64_t n, om_dtype t, const void *one);

/* Strides of a dense tensor, in elements. */
void om_strides(const om_shape *s, int64_t stride[OM_MAX_RANK]);

/* Bytes of an element.  Packed types are refused. */
om_status om_elem_bytes(const om_op_context *c, om_dtype t, size_t *size);

/* Run a kernel that moves elements where some are packed: with a byte for each of
 * them, in scratch of the call.  Bits behind the last element are zero. */
om_status om_run_unpacked(om_op_context *c, om_status (*kernel)(om_op_context *c));

/* While preparing: are elements of an input after the first unknown, so that only a run finds out
 * what they ask for? */
bool om_is_steered(const om_op_context *c);

/* Bytes of an element that is moved by om_run_unpacked(): one, where it is packed. */
size_t om_moved_bytes(om_dtype t);

/* For kernels whose output dims follow from elements of inputs: what was
 * planned has to be what the elements ask for now. */
om_status om_recheck(const om_op_context *c);

/* For the first input and first output of a row with OM_SPLATS.  `*done` when
 * the output is the repeated element of the input; else the output is dense. */
om_status om_splat_through(om_op_context *c, bool *done);

/* Make output `k` dense where the fold offers one element. */
om_status om_dense_out(om_op_context *c, uint32_t k);

/* Dim `d` of input `k`; OM_DIM_UNKNOWN where there is none. */
int64_t om_in_dim(const om_op_context *c, uint32_t k, int d);

/* The first output has the type and shape of the first input. */
om_status om_infer_same(om_op_context *c);

/* The first output may lie over the first input, in operators that are done with an element of it
 * before they write the same one of the output. */
bool om_inplace_first(const om_op_context *c, uint32_t out, uint32_t in);

/* The product of dims [from, to): a number; or open, with a symbol where that
 * is the same; false when it cannot be represented. */
bool om_dim_product(const om_shape *s, int from, int to, int64_t *n, const char **sym);

/* Two dims, `*`, `+`, `-` or `/` between them, as one symbol; NULL when one has
 * none.  Lives as long as the program. */
const char *om_dim_text(const om_op_context *c, const char *a, char sign, const char *b);

/* The same of a dim and a number. */
const char *om_dim_text_number(const om_op_context *c, const char *a, char sign, int64_t b);

/* The symbol of the product of dims [from, to), where om_dim_product() has none. */
const char *om_dim_product_text(const om_op_context *c, const om_shape *s, int from, int to);

/* The columns `elems` of operators that move elements of input 0, or of all
 * inputs where there may be any number; and of those that calculate. */
void om_elems_moved(const om_op_context *c, om_symbolic_elem *e);
void om_elems_calculated(const om_op_context *c, om_symbolic_elem *e);

/* A dim as an element, and an element that is a dim; false for what may be
 * something else than a dim. */
om_symbolic_elem om_elem_of_dim(const om_shape *s, int d);
bool om_dim_of_elem(const om_symbolic_elem *e, om_shape *s, int d);

/* Two statements about one dim; false when they contradict. */
bool om_dim_join(int64_t *n, const char **sym, int64_t other, const char *other_sym);

/* What is true of both shapes.  True when that is less than was said by `s`. */
bool om_shape_meet(om_shape *s, const om_shape *other);

/* Number of elements of a list, if known; -1. */
int64_t om_list_length(const om_tensor *t);

/* An axis attribute of input 0, whose rank is known. */
om_status om_attr_axis(const om_op_context *c, const char *name, int rank, int *axis);

/* Does one element say all? */
bool om_is_one(const om_tensor *t);

/* An element of any number type, or a truth. */
bool om_number(om_dtype t, const void *one, double *v);

/* The first output is the first input, byte by byte. */
bool om_view_whole(const om_op_context *c, uint32_t out, om_view_of *v);
om_status om_cpu_whole(om_op_context *c);

#endif
