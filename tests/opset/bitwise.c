/* Does a raised model compute the same numbers, bit for bit?
 *
 *     bits OPSET FOLDER FILE...
 *
 * Each model runs as it is; then it is raised, written to FOLDER as FILE's number, read again, and
 * run on the same inputs: those of test_data_set_0 beside it, else numbers from dice.  A line a
 * file says what came of it: same, DIFFERENT, refused (it cannot be raised), or unfit (the
 * original cannot be run, so there is nothing to compare with). */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "../same.h"
#include "inputs.h"

static om_status
compute(struct feed *r, om_host *h, om_tensor *in)
{
	OM_TRY(feed_shapes(r, in));
	OM_TRY(om_host_run(h, r->prog, "inline,shapes,fold"));
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
compare(const struct feed *a, const struct feed *b)
{
	for (uint32_t k = 0; k < a->prog->first->nresult; k++) {
		const om_value *v = a->prog->first->result[k];
		if (!is_same(&v->type, om_exec_result(a->exec, k), om_exec_result(b->exec, k)))
			return om_fail(a->s, OM_MISMATCH, "output %s", v->name);
	}
	return OM_OK;
}

/* ---- One file. ---- */

static om_status
raise(struct feed *r, om_host *h, const char *opset, const char *to)
{
	OM_TRY(feed_load(r, r->file));
	OM_TRY(om_host_run(h, r->prog, om_printf(r->mem, "convert-opset=%s", opset)));
	OM_TRY(om_verify(r->s, r->prog));
	OM_TRY(om_model_update(r->s, r->model, r->prog));
	OM_TRY(om_model_save(r->s, r->model, to));
	feed_end(r);
	return OM_OK;
}

static const char *
try(struct feed *a, struct feed *b, om_host *h, const char *opset, const char *to)
{
	om_tensor *in;

	if (feed_load(a, a->file) != OM_OK)
		return "unfit";
	in = OM_NEWN(a->mem, om_tensor, (size_t)a->prog->first->nparam + 1);
	if (raise(b, h, opset, to) != OM_OK)
		return "refused";
	if (compute(a, h, in) != OM_OK)
		return "unfit";
	if (feed_load(b, to) != OM_OK || compute(b, h, in) != OM_OK || compare(a, b) != OM_OK)
		return "DIFFERENT";
	return "same";
}

int
main(int argc, char **argv)
{
	int bad = 0;

	for (int k = 3; k < argc; k++) {
		om_session *s = om_session_new();
		om_host *h = om_host_new(s, NULL);
		om_arena *mem = om_arena_new();
		struct feed a = {.s = s, .mem = mem, .file = argv[k]}, b = a;
		const char *what = try(&a, &b, h, argv[1], om_printf(mem, "%s/%d.onnx", argv[2], k - 3));
		printf("%s\t%s\t%s\n", what, argv[k], strcmp(what, "same") == 0 ? "" : om_message(s));
		fflush(stdout);
		bad += strcmp(what, "DIFFERENT") == 0;
		feed_end(&a);
		feed_end(&b);
		om_arena_free(mem);
		om_host_free(h);
		om_session_free(s);
	}
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
