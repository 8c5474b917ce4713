/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about each op, from its operator definition.
 *
 * Which output may be a view, which output may be computed over which input, which input may be a
 * sub-buffer of output 0, and the size of the workspace depend on types, shapes and constants alone; the
 * workspace also on the number of threads and the kernels that the request has.
 * They are computed once, after the passes `shapes` and `fold`, and all storage decisions read them
 * here.  The plan verifier does not: it queries the definitions itself.
 */
#ifndef OM_OP_FACTS_H
#define OM_OP_FACTS_H

#include "onnxmem/assignment.h"

/* Facts about one op.  An empty table is NULL. */
typedef struct om_op_fact {
	om_view_of *view;        /* [nout] `in` is UINT32_MAX if the output is not a view */
	uint64_t *inplace;       /* bit out * nin + in: the output may overwrite the input at the same
				    address */
	uint64_t *subbuffer;     /* [nin] bytes into output 0; UINT64_MAX: the input is not a sub-buffer */
	uint64_t workspace;      /* bytes that the kernel requires */
} om_op_fact;

/* Facts about a program.  They depend neither on the order of the ops nor on any
 * decision about storage. */
typedef struct om_op_facts {
	const om_op_fact *op;    /* by op id */
	uint32_t nop, nvalue;    /* ids that existed when they were computed */
	const om_plan_request *request; /* as far as facts depend on it */
	uint64_t *bytes;         /* by value id: bytes of its elements, or as many as there may be if elements decide; 0: not
				    known, or not a tensor */
	bool *is_outside;        /* by value id: requires no arena storage, because it is a constant, is
				    owned by the caller, or takes part in no run */
	bool *is_unplanned;      /* by value id: see om_value_unplanned() */
	const uint64_t *most;    /* by value id: bytes that a value of unknown shape takes at most; 0: no bound */
	struct om_known_sizes *known_sizes; /* of assignments that were compared */
} om_op_facts;

/* The facts of the current program for a request, computed on first use and owned by the program.  Building and
 * binding invalidate them, and so does the host after a pass that does not keep OM_HAS_SHAPES and
 * OM_HAS_CONST; they are recomputed on the next call. */
const om_op_facts *om_prog_op_facts(om_prog *p, const om_plan_request *r);

/* As om_op_view(), om_op_inplace(), om_op_subbuffer() and om_op_inplace_allowed(). */
bool om_op_facts_view(const om_op_facts *f, const om_op *op, uint32_t out, om_view_of *v);
bool om_op_facts_inplace(const om_op_facts *f, const om_op *op, uint32_t out, uint32_t in);
/* OM_OVERWRITE_DONE if om_op_facts_inplace(), else why not. */
om_overwrite om_op_facts_overwrite(const om_op_facts *f, const om_op *op, uint32_t out, uint32_t in);
bool om_op_facts_inplace_value(const om_op_facts *f, const om_op *op, uint32_t out, const om_value *in);
bool om_op_facts_subbuffer(const om_op_facts *f, const om_op *op, uint32_t in, uint64_t *offset);

#endif
