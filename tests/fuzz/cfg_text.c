/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a program in two languages: that of this project, and that of onnx.parser.  They differ in
 * keywords and brackets only; results of a body that are not computed there, or are listed twice, which
 * the checker of ONNX refuses, get an Identity.  So do cases that ONNX Runtime 1.31 computes wrongly:
 * parameters that the body of a Scan returns are left unset, and the iteration number that a Loop
 * stacks is the last one in every slice. */
#include <config.h>

#include <string.h>

#include "flows.h"

struct text {
	const struct flow *f;
	FILE *to;
	bool onnx;
	int depth, temp;
};

static const char *const ours[NTYPE] = {"float32", "float64", "int64", "bool"};
static const char *const theirs[NTYPE] = {"float", "double", "int64", "bool"};
static const int cast_to[NTYPE] = {1, 11, 7, 9};

static const char *const name[NWHAT] = {
	"Neg", "Abs", "Relu", "Identity", "Not", "Add", "Sub", "Mul", "Max", "Min", "Less", "And", "Clip",
	"Where", "Cast", "Transpose", "Reshape", "Concat", "Slice", "Slice", "ReduceMax", "Constant", "If", "Loop",
	"Scan",
};

static void
line(const struct text *t)
{
	for (int k = 0; k <= t->depth; k++)
		fputc('\t', t->to);
}

static const char *
sigil(const struct text *t)
{
	return t->onnx ? "" : "%";
}

static void
print_list(const struct text *t, const int *id, int n)
{
	for (int k = 0; k < n; k++) {
		fputs(k ? ", " : "", t->to);
		if (id[k] >= 0)
			fprintf(t->to, "%sv%d", sigil(t), id[k]);
		else
			fputs(t->onnx ? "" : "_", t->to);
	}
}

/* Dims are printed only if all of them are known. */
static void
print_type(const struct text *t, int id, bool with_dims)
{
	const struct var *v = &t->f->var[id];

	fputs(t->onnx ? theirs[v->type] : ours[v->type], t->to);
	if (!with_dims)
		fputs(t->onnx ? "[]" : "[..]", t->to);
	else if (v->dims.rank || !t->onnx) {
		fputc('[', t->to);
		for (int k = 0; k < v->dims.rank; k++)
			fprintf(t->to, "%s%d", k ? "," : "", v->dims.dim[k]);
		fputc(']', t->to);
	}
}

/* ---- Constants. ---- */

static void
print_number(const struct text *t, enum type type, double x)
{
	if (type == I64 || type == BOOL)
		fprintf(t->to, "%d", (int)x);
	else
		fprintf(t->to, "%.1f", x);
}

static void
print_constant(const struct text *t, const char *letter, int id, enum type type, struct dims d, const double *x)
{
	const int64_t n = flow_count(&d);

	line(t);
	if (t->onnx)
		fprintf(t->to, "%s%d = Constant <value = %s", letter, id, theirs[type]);
	else
		fprintf(t->to, "%%%s%d = const %s[", letter, id, ours[type]);
	if (t->onnx && d.rank)
		fputc('[', t->to);
	for (int k = 0; k < d.rank; k++)
		fprintf(t->to, "%s%d", k ? "," : "", d.dim[k]);
	fputs(t->onnx && !d.rank ? " {" : "] {", t->to);
	for (int64_t k = 0; k < n; k++) {
		fputs(k ? ", " : "", t->to);
		print_number(t, type, x[k]);
	}
	fputs(t->onnx ? "}> ()\n" : "}\n", t->to);
}

/* An operand of integers, named after the output that requires it. */
static void
print_ints(const struct text *t, const char *letter, int id, int n, const int *x)
{
	double all[MAX_DIMS];

	for (int k = 0; k < n; k++)
		all[k] = x[k];
	print_constant(t, letter, id, I64, (struct dims){1, {n}}, all);
}

/* ---- Ops. ---- */

static void
print_operands(const struct text *t, const struct node *n)
{
	const int y = n->out[0];
	const enum type type = t->f->var[y].type;
	const int back = -1, least = -1000;

	switch (n->what) {
	case CLIP:
		print_constant(t, "lo", y, type, (struct dims){0}, (double[]){-LIMIT});
		print_constant(t, "hi", y, type, (struct dims){0}, (double[]){LIMIT});
		break;
	case RESHAPE:
		print_ints(t, "to", y, n->narg, n->arg);
		break;
	case SLICE:
		print_ints(t, "ax", y, 1, n->arg);
		print_ints(t, "lo", y, 1, n->arg + 1);
		print_ints(t, "hi", y, 1, n->arg + 2);
		break;
	case TURN:
		print_ints(t, "ax", y, 1, n->arg);
		print_ints(t, "lo", y, 1, &back);
		print_ints(t, "hi", y, 1, &least);
		print_ints(t, "by", y, 1, &back);
		break;
	default:
		break;
	}
}

static void
print_more_operands(const struct text *t, const struct node *n)
{
	static const char *const clip[] = {"lo", "hi", NULL}, *const reshape[] = {"to", NULL};
	static const char *const slice[] = {"lo", "hi", "ax", NULL}, *const turn[] = {"lo", "hi", "ax", "by", NULL};
	const char *const *more = n->what == CLIP ? clip : n->what == RESHAPE ? reshape
		: n->what == SLICE ? slice : n->what == TURN ? turn : NULL;

	for (; more && *more; more++)
		fprintf(t->to, ", %s%s%d", sigil(t), *more, n->out[0]);
}

/* Lists of the axes of `n` tensors, some of them negative, and of directions. */
static void
print_axes(const struct text *t, const char *which, const int *arg, const int *id, int n)
{
	fprintf(t->to, "scan_%s_axes = [", which);
	for (int k = 0; k < n; k++)
		fprintf(t->to, "%s%d", k ? ", " : "", arg[2 * k] - (id[k] % 3 ? 0 : t->f->var[id[k]].dims.rank));
	fprintf(t->to, "], scan_%s_directions = [", which);
	for (int k = 0; k < n; k++)
		fprintf(t->to, "%s%d", k ? ", " : "", arg[2 * k + 1]);
	fputs("], ", t->to);
}

static void print_block(struct text *t, const struct block *b, const char *as);

static void
print_bodies(struct text *t, const struct node *n)
{
	if (n->what == SCAN) {
		const int nstate = n->nin - n->nscan, nseries = n->nout - nstate;
		fprintf(t->to, "num_scan_inputs = %d, ", n->nscan);
		print_axes(t, "input", n->arg, n->in + nstate, n->nscan);
		if (nseries)
			print_axes(t, "output", n->arg + 2 * n->nscan, n->out + nstate, nseries);
	}
	fprintf(t->to, "%s = ", n->what == IF ? "then_branch" : "body");
	print_block(t, n->body[0], "a");
	if (!n->body[1])
		return;
	fputs(", else_branch = ", t->to);
	print_block(t, n->body[1], "b");
}

static void
print_attributes(struct text *t, const struct node *n)
{
	switch (n->what) {
	case CAST:
		fprintf(t->to, "to = %d", cast_to[n->arg[0]]);
		break;
	case CONCAT:
		fprintf(t->to, "axis = %d", n->arg[0]);
		break;
	case TRANSPOSE:
		fputs("perm = [", t->to);
		for (int k = 0; k < n->narg; k++)
			fprintf(t->to, "%s%d", k ? ", " : "", n->arg[k]);
		fputc(']', t->to);
		break;
	case REDUCE_MAX:
		fprintf(t->to, n->arg[0] < 0 ? "keepdims = 0" : "axes = [%d]", n->arg[0]);
		break;
	default:
		print_bodies(t, n);
	}
}

static bool
has_attributes(const struct node *n)
{
	return n->what == CAST || n->what == CONCAT || n->what == TRANSPOSE || n->what == REDUCE_MAX || n->body[0];
}

static void
print_node(struct text *t, const struct node *n)
{
	if (n->what == CONST) {
		print_constant(t, "v", n->out[0], t->f->var[n->out[0]].type, t->f->var[n->out[0]].dims, n->data);
		return;
	}
	print_operands(t, n);
	line(t);
	print_list(t, n->out, n->nout);
	fprintf(t->to, " = %s", name[n->what]);
	if (t->onnx && has_attributes(n)) {
		fputs(" <", t->to);
		print_attributes(t, n);
		fputc('>', t->to);
	}
	fputs(t->onnx ? " (" : "(", t->to);
	print_list(t, n->in, n->nin);
	print_more_operands(t, n);
	fputc(')', t->to);
	if (!t->onnx && has_attributes(n)) {
		fputs(" {", t->to);
		print_attributes(t, n);
		fputc('}', t->to);
	}
	fputc('\n', t->to);
}

/* ---- Blocks. ---- */

static bool
wants_copy(const struct text *t, const struct block *b, int k)
{
	bool want = t->f->var[b->result[k]].home != b;

	for (int i = 0; b->outer && i < (b->is_step ? b->nparam : b->nparam > 0); i++)
		want |= b->param[i] == b->result[k];
	for (int i = 0; i < k; i++)
		want |= b->result[i] == b->result[k];
	return want;
}

static void
print_results_onnx(struct text *t, const struct block *b, int first_copy)
{
	for (int k = 0; k < b->nresult; k++) {
		fputs(k ? ", " : "", t->to);
		print_type(t, b->result[k], b->is_step);
		if (wants_copy(t, b, k))
			fprintf(t->to, " t%d", first_copy + k);
		else
			fprintf(t->to, " v%d", b->result[k]);
	}
}

static void
print_params(struct text *t, const struct block *b)
{
	for (int k = 0; k < b->nparam; k++) {
		const struct var *v = &t->f->var[b->param[k]];
		const bool with_dims = v->is_declared || !b->outer || (v->type != F32 && !v->dims.rank);
		fputs(k ? ", " : "", t->to);
		if (!t->onnx)
			fprintf(t->to, "%%v%d: ", b->param[k]);
		print_type(t, b->param[k], with_dims);
		if (t->onnx)
			fprintf(t->to, " v%d", b->param[k]);
	}
}

static void
print_copies(struct text *t, const struct block *b, int first)
{
	for (int k = 0; k < b->nresult; k++)
		if (wants_copy(t, b, k)) {
			line(t);
			fprintf(t->to, "t%d = Identity (v%d)\n", first + k, b->result[k]);
		}
}

static void
print_block(struct text *t, const struct block *b, const char *as)
{
	const int first_copy = t->temp;

	t->temp += b->nresult;
	fprintf(t->to, t->onnx ? "%s (" : "^%s(", as);
	print_params(t, b);
	fputc(')', t->to);
	if (t->onnx) {
		fputs(" => (", t->to);
		print_results_onnx(t, b, first_copy);
		fputc(')', t->to);
	}
	fputs(" {\n", t->to);
	t->depth += b->outer != NULL;
	for (const struct node *n = b->first; n; n = n->next)
		print_node(t, n);
	if (t->onnx) {
		print_copies(t, b, first_copy);
	} else {
		line(t);
		fputs("ret ", t->to);
		print_list(t, b->result, b->nresult);
		fputc('\n', t->to);
	}
	t->depth -= b->outer != NULL;
	for (int k = 0; k < t->depth; k++)
		fputc('\t', t->to);
	fputc('}', t->to);
}

void
flow_print(const struct flow *f, FILE *to)
{
	struct text t = {.f = f, .to = to};

	fputs("program \"random\" ir 8 opset 17\n", to);
	print_block(&t, f->main, "main");
	fputc('\n', to);
}

void
flow_print_onnx(const struct flow *f, FILE *to)
{
	struct text t = {.f = f, .to = to, .onnx = true};

	fputs("<ir_version: 8, opset_import: [\"\": 17]>\n", to);
	print_block(&t, f->main, "random");
	fputc('\n', to);
}
