/* Does a plan hold in every order?  What the walk of verify.c tells, checked
 * against the dependencies of the program. */
#ifndef OM_VERIFY_PARTIAL_ORDER_H
#define OM_VERIFY_PARTIAL_ORDER_H

#include "onnxmem/plan.h"

/* Contents go by who wrote them: the id of a value, or that of an op, for its
 * scratch, behind those of all values.  Ops by their place in the graph, one
 * behind the last for its end. */
typedef struct om_parallel_check om_parallel_check;

om_parallel_check *om_parallel_check_new(om_session *s, const om_prog *p, om_arena *mem);

/* Op `node` reads or writes bytes [from, to) of a content. */
void om_parallel_check_touch(om_parallel_check *f, uint32_t node, uint32_t who, uint64_t from, uint64_t to);

/* Op `node` writes content `by` over these bytes of content `who`, all of whose
 * touches are known. */
void om_parallel_check_overwrite(om_parallel_check *f, uint32_t node, uint32_t by, uint32_t who, uint64_t from,
	uint64_t to);

/* OM_BADPLAN, naming both ops and values, where bytes are overwritten by an op
 * that may run before another one that needs them. */
om_status om_parallel_check_run(om_parallel_check *f);

#endif
