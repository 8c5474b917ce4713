/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <inttypes.h>

#include "base/rng.h"
#include "graphs.h"

enum { MOST_FAN = 10000 };

/* Name of value `k` of a kind. */
static const char *
name(struct made *b, const char *kind, uint32_t k)
{
	return om_printf(b->mem, "%s%" PRIu32, kind, k);
}

/* A node of one output, named as text; inputs are joined. */
static Onnx__NodeProto *
node(struct made *b, Onnx__GraphProto *g, const char *type, const char *a, const char *c, const char *out)
{
	return made_node(b, g, type, c ? om_printf(b->mem, "%s %s", a, c) : a, out);
}

static void
give(struct made *b, Onnx__GraphProto *g, const char *out)
{
	made_output(b, g, out);
}

static void
say_int(struct made *b, Onnx__NodeProto *n, const char *attr, int64_t v)
{
	Onnx__AttributeProto *a = made_attr(b, n, attr, OM_ATTR_INT);

	a->has_i = true;
	a->i = v;
}

/* A constant integer. */
static void
number(struct made *b, const char *text, int rank, int64_t v)
{
	Onnx__TensorProto *t = made_init(b, b->g, text, 0, NULL);

	t->n_float_data = 0;
	t->data_type = OM_INT64;
	t->n_dims = (size_t)rank;
	t->dims[0] = 1;
	t->n_int64_data = 1;
	t->int64_data = om_memdup(b->mem, &v, sizeof v);
}

/* A chain of `type`, each op with the constant `with` if it is not NULL. */
static void
chain_of(struct made *b, const char *type, const char *with, uint32_t n)
{
	const char *at = "x";

	for (uint32_t k = 0; k < n; k++) {
		const char *to = name(b, "v", k);
		node(b, b->g, type, at, with, to);
		at = to;
	}
	give(b, b->g, at);
}

static void
square(struct made *b)
{
	Onnx__TensorProto *w = made_init(b, b->g, "w", 64, (float[64]){0});

	w->n_dims = 2;
	w->dims = om_memdup(b->mem, (int64_t[]){8, 8}, 2 * sizeof(int64_t));
}

/* No op may be computed in place. */
static void
chain(struct made *b, uint32_t n)
{
	square(b);
	chain_of(b, "MatMul", "w", n);
}

static void
in_place(struct made *b, uint32_t n)
{
	chain_of(b, "Relu", NULL, n);
}

/* Views of views. */
static void
views(struct made *b, uint32_t n)
{
	chain_of(b, "Flatten", NULL, n);
}

/* Half of the ops read x, the others add their results up. */
static void
fan_out(struct made *b, uint32_t n)
{
	const char *at = "r0";

	for (uint32_t k = 0; k < n / 2; k++)
		node(b, b->g, "Sigmoid", "x", NULL, name(b, "r", k));
	for (uint32_t k = 1; k < n / 2; k++) {
		const char *to = name(b, "s", k);
		node(b, b->g, "Add", at, name(b, "r", k), to);
		at = to;
	}
	give(b, b->g, at);
}

/* Every op is a result of the graph. */
static void
results(struct made *b, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		node(b, b->g, "Sigmoid", "x", NULL, name(b, "r", k));
		give(b, b->g, name(b, "r", k));
	}
}

/* Every op reads the eight before it. */
static void
residual(struct made *b, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const char *in = "x";
		for (uint32_t i = k < 8 ? 0 : k - 8; i < k; i++)
			in = om_printf(b->mem, "%s v%" PRIu32, k < 8 || i > k - 8 ? in : "", i);
		made_node(b, b->g, "Sum", *in == ' ' ? in + 1 : in, name(b, "v", k));
	}
	give(b, b->g, name(b, "v", n - 1));
}

/* Every op has weights of its own. */
static void
weights(struct made *b, uint32_t n)
{
	const char *at = "x";

	for (uint32_t k = 0; k < n; k++) {
		const char *to = name(b, "v", k);
		made_init(b, b->g, name(b, "w", k), 8, (float[8]){(float)k});
		node(b, b->g, "Add", at, name(b, "w", k), to);
		at = to;
	}
	give(b, b->g, at);
}

/* One op that reads `n` values `KIND0`, `KIND1`, ... from `from` on. */
static Onnx__NodeProto *
fan_in_of(struct made *b, const char *type, const char *kind, uint32_t from, uint32_t n, const char *out)
{
	Onnx__NodeProto *op = made_node(b, b->g, type, "", out);

	op->n_input = n;
	op->input = OM_NEWN(b->mem, char *, n);
	for (uint32_t k = 0; k < n; k++)
		op->input[k] = om_printf(b->mem, "%s%" PRIu32, kind, from + k);
	return op;
}

/* Ops of 10,000 inputs. */
static void
sum(struct made *b, uint32_t n)
{
	const char *at = "x";

	for (uint32_t k = 0; k < n; k += MOST_FAN) {
		const uint32_t here = n - k < MOST_FAN ? n - k : MOST_FAN;
		for (uint32_t i = k; i < k + here; i++)
			node(b, b->g, "Sigmoid", at, NULL, name(b, "r", i));
		at = name(b, "s", k);
		fan_in_of(b, "Sum", "r", k, here, at);
	}
	give(b, b->g, at);
}

/* Joins of 10,000 pieces. */
static void
concat(struct made *b, uint32_t n)
{
	square(b);
	for (uint32_t k = 0; k < n; k += MOST_FAN) {
		const uint32_t here = n - k < MOST_FAN ? n - k : MOST_FAN;
		for (uint32_t i = k; i < k + here; i++)
			node(b, b->g, "MatMul", "x", "w", name(b, "r", i));
		say_int(b, fan_in_of(b, "Concat", "r", k, here, name(b, "c", k)), "axis", 0);
		give(b, b->g, name(b, "c", k));
	}
}

/* The pieces of a tensor. */
static void
split(struct made *b, uint32_t n)
{
	const uint32_t parts = n < MOST_FAN ? n : MOST_FAN;
	const char *at = "big";

	made_input(b, b->g, "big", 2, (int64_t[]){parts, 8});
	for (uint32_t k = 0; k < n; k += MOST_FAN) {
		Onnx__NodeProto *op = node(b, b->g, "Split", at, NULL, "");
		op->n_output = parts;
		op->output = OM_NEWN(b->mem, char *, parts);
		for (uint32_t i = 0; i < parts; i++) {
			op->output[i] = om_printf(b->mem, "p%" PRIu32, k + i);
			node(b, b->g, "Sigmoid", op->output[i], NULL, name(b, "r", k + i));
		}
		say_int(b, op, "num_outputs", parts);
		at = name(b, "c", k);
		say_int(b, fan_in_of(b, "Concat", "r", k, parts, at), "axis", 0);
	}
	give(b, b->g, at);
}

/* Down and up again: value k is read by the next op and by op n - k. */
static void
skips(struct made *b, uint32_t n)
{
	const uint32_t half = n / 2;
	const char *at = "x";

	for (uint32_t k = 0; k < half; k++) {
		node(b, b->g, "Sigmoid", at, NULL, name(b, "d", k));
		at = name(b, "d", k);
	}
	for (uint32_t k = half; k-- > 0;) {
		node(b, b->g, "Add", at, name(b, "d", k), name(b, "u", k));
		at = name(b, "u", k);
	}
	give(b, b->g, at);
}

/* Every op reads one of the forty values before it, and any. */
static void
random_graph(struct made *b, uint32_t n)
{
	uint64_t r = n;

	node(b, b->g, "Relu", "x", NULL, "v0");
	for (uint32_t k = 1; k < n; k++) {
		const uint32_t near = k < 40 ? k : 40;
		const char *a = name(b, "v", k - 1 - (uint32_t)om_rng_below(&r, near));
		node(b, b->g, k % 2 ? "Add" : "MatMul", a, name(b, "v", (uint32_t)om_rng_below(&r, k)), name(b, "v", k));
	}
	give(b, b->g, name(b, "v", n - 1));
}

static Onnx__GraphProto *
body(struct made *b, Onnx__NodeProto *n, const char *attr)
{
	return made_attr(b, n, attr, OM_ATTR_GRAPH)->g = made_graph(b, attr);
}

/* Each If reads the result of the one before in both branches. */
static void
ifs(struct made *b, uint32_t n)
{
	const char *at = "x";

	made_input(b, b->g, "which", 0, NULL);
	b->g->input[b->g->n_input - 1]->type->tensor_type->elem_type = OM_BOOL;
	for (uint32_t k = 0; k < n / 5 + 1; k++) {
		const char *to = name(b, "i", k);
		Onnx__NodeProto *op = made_node(b, b->g, "If", "which", to);
		for (int i = 0; i < 2; i++) {
			Onnx__GraphProto *g = body(b, op, i ? "else_branch" : "then_branch");
			const char *mid = name(b, i ? "em" : "tm", k), *end = name(b, i ? "er" : "tr", k);
			node(b, g, i ? "Relu" : "Exp", at, NULL, mid);
			node(b, g, "Add", mid, at, end);
			give(b, g, end);
		}
		at = to;
	}
	give(b, b->g, at);
}

static void
say_input(struct made *b, Onnx__GraphProto *g, const char *text, int elem)
{
	made_input(b, g, text, elem == OM_FLOAT32 ? 2 : 0, (int64_t[]){8, 8});
	g->input[g->n_input - 1]->type->tensor_type->elem_type = elem;
}

/* A loop, in `g`, over `at`, of a body that the caller fills from `*in` to `*out`. */
static Onnx__GraphProto *
loop(struct made *b, Onnx__GraphProto *g, const char *at, const char *to, const char *tag, const char **in)
{
	Onnx__NodeProto *op = made_node(b, g, "Loop", om_printf(b->mem, "trip _ %s", at), to);
	Onnx__GraphProto *inner = body(b, op, "body");

	say_input(b, inner, om_printf(b->mem, "%s_i", tag), OM_INT64);
	say_input(b, inner, om_printf(b->mem, "%s_c", tag), OM_BOOL);
	*in = om_printf(b->mem, "%s_x", tag);
	say_input(b, inner, *in, OM_FLOAT32);
	node(b, inner, "Identity", om_printf(b->mem, "%s_c", tag), NULL, om_printf(b->mem, "%s_d", tag));
	give(b, inner, om_printf(b->mem, "%s_d", tag));
	return inner;
}

static void
say_trip(struct made *b)
{
	number(b, "trip", 0, 3);
}

/* Loops in loops, three ops in the inner one. */
static void
loops(struct made *b, uint32_t n)
{
	const char *at = "x";

	square(b);
	say_trip(b);
	for (uint32_t k = 0; k < n / 8 + 1; k++) {
		const char *to = name(b, "l", k), *in, *deep;
		Onnx__GraphProto *outer = loop(b, b->g, at, to, name(b, "o", k), &in);
		const char *mid = name(b, "m", k);
		Onnx__GraphProto *inner = loop(b, outer, in, mid, name(b, "n", k), &deep);
		node(b, inner, "MatMul", deep, "w", name(b, "a", k));
		node(b, inner, "Add", name(b, "a", k), deep, name(b, "b", k));
		give(b, inner, name(b, "b", k));
		node(b, outer, "Add", mid, in, name(b, "e", k));
		give(b, outer, name(b, "e", k));
		at = to;
	}
	give(b, b->g, at);
}

/* One loop with a long body that reads the graph's values, and carries two. */
static void
body_of(struct made *b, uint32_t n)
{
	const char *in, *at;

	square(b);
	say_trip(b);
	Onnx__GraphProto *g = loop(b, b->g, "x", "y", "o", &in);
	at = in;
	for (uint32_t k = 0; k < n; k++) {
		const char *to = name(b, "v", k);
		node(b, g, k % 3 ? "Add" : "MatMul", at, k % 3 == 1 ? "x" : k % 3 ? in : "w", to);
		at = to;
	}
	give(b, g, at);
	give(b, b->g, "y");
}

/* Half of the ops compute the shapes of the others, as exporters write them. */
static void
shapes(struct made *b, uint32_t n)
{
	const char *at = "x";

	number(b, "one", 1, 1);
	for (uint32_t k = 0; k < n / 5 + 1; k++) {
		node(b, b->g, "Shape", at, NULL, name(b, "s", k));
		node(b, b->g, "Gather", name(b, "s", k), "one", name(b, "g", k));
		say_int(b, node(b, b->g, "Concat", name(b, "g", k), name(b, "g", k), name(b, "c", k)), "axis", 0);
		node(b, b->g, "Reshape", at, name(b, "c", k), name(b, "r", k));
		node(b, b->g, "Softmax", name(b, "r", k), NULL, name(b, "t", k));
		at = name(b, "t", k);
	}
	give(b, b->g, at);
}

static const struct {
	const char *kind;
	void (*make)(struct made *b, uint32_t n);
} kinds[] = {
	{"chain", chain}, {"in-place", in_place}, {"views", views}, {"fan-out", fan_out}, {"results", results},
	{"residual", residual}, {"weights", weights}, {"sum", sum}, {"concat", concat}, {"split", split},
	{"skips", skips}, {"random", random_graph}, {"ifs", ifs}, {"loops", loops}, {"body", body_of}, {"shapes", shapes},
};

enum { NKIND = sizeof kinds / sizeof *kinds };

const char *
made_kind(unsigned k)
{
	return k < NKIND ? kinds[k].kind : NULL;
}

struct made
made_large(const char *kind, uint32_t n)
{
	struct made b = made_new(9, 18);

	made_input(&b, b.g, "x", 2, (int64_t[]){8, 8});
	for (unsigned k = 0; k < NKIND; k++)
		if (strcmp(kinds[k].kind, kind) == 0)
			kinds[k].make(&b, n);
	return b;
}

om_status
made_read_back(om_session *s, om_host *h, om_model *m)
{
	om_prog *again = NULL;

	om_status st = om_model_import(s, m, &again);
	if (st == OM_OK)
		st = om_host_read_plan(h, m, again, NULL, NULL);
	if (st == OM_OK)
		st = om_plan_verify(s, again, again->plan);
	om_prog_free(again);
	return st;
}
