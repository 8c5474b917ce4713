/* SPDX-License-Identifier: Apache-2.0 */
/* Does a raised model compute the same numbers, bit for bit?
 *
 *     bits OPSET FOLDER FILE...
 *
 * Each model runs as it is; then it is raised, written to FOLDER as FILE's number, read again, and
 * run on the same inputs: those of test_data_set_0 beside it, else numbers from dice.  A line a
 * file says what came of it: same, DIFFERENT, refused (it cannot be converted), or unfit (the
 * original cannot be run, so there is nothing to compare with). */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "../same.h"
#include "inputs.h"

static om_status
compute(bench *r, const char *file, om_tensor *in)
{
	OM_TRY(feed_shapes(r, file, in));
	OM_TRY(om_host_run(r->h, r->p, "inline,shapes,fold"));
	return feed_run(r, in);
}

/* ---- Comparing. ---- */

static bool
is_same(const om_type *type, const om_tensor *a, const om_tensor *b)
{
	if (type->kind != OM_TENSOR) {
		const om_container *x = a->data, *y = b->data;
		if (!x || !y || x->n != y->n || type->kind == OM_MAP)
			return x == y || (x && y && x->n == y->n);
		for (size_t k = 0; k < x->n; k++)
			if (!is_same(type->of, &x->item[k], &y->item[k]))
				return false;
		return true;
	}
	return same_tensors(a, b);
}

static om_status
compare(const bench *a, const bench *b)
{
	for (uint32_t k = 0; k < a->p->first->nresult; k++) {
		const om_value *v = a->p->first->result[k];
		if (!is_same(&v->type, om_exec_result(a->e, k), om_exec_result(b->e, k)))
			return om_fail(a->s, OM_MISMATCH, "output %s", v->name);
	}
	return OM_OK;
}

/* ---- One file. ---- */

static om_status
raise(bench *r, const char *file, const char *opset, const char *to)
{
	OM_TRY(bench_load(r, file));
	OM_TRY(om_host_run(r->h, r->p, om_printf(r->mem, "convert-opset=%s", opset)));
	OM_TRY(om_verify(r->s, r->p));
	OM_TRY(om_model_update(r->s, r->model, r->p));
	OM_TRY(om_model_save(r->s, r->model, to));
	bench_clear(r);
	return OM_OK;
}

static const char *
try(bench *a, bench *b, const char *file, const char *opset, const char *to)
{
	om_tensor *in;

	if (bench_load(a, file) != OM_OK)
		return "unfit";
	in = OM_NEWN(a->mem, om_tensor, (size_t)a->p->first->nparam + 1);
	if (raise(b, file, opset, to) != OM_OK)
		return "refused";
	if (compute(a, file, in) != OM_OK)
		return "unfit";
	if (bench_load(b, to) != OM_OK || compute(b, file, in) != OM_OK || compare(a, b) != OM_OK)
		return "DIFFERENT";
	return "same";
}

int
main(int argc, char **argv)
{
	int bad = 0;

	for (int k = 3; k < argc; k++) {
		bench a = bench_open(), b = a;  /* one session and host for both */
		const char *what = try(&a, &b, argv[k], argv[1], om_printf(a.mem, "%s/%d.onnx", argv[2], k - 3));
		printf("%s\t%s\t%s\n", what, argv[k], strcmp(what, "same") == 0 ? "" : om_message(a.s));
		fflush(stdout);
		bad += strcmp(what, "DIFFERENT") == 0;
		bench_clear(&b);
		bench_close(&a);
	}
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
