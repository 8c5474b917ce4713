/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel for devices against the reference kernel of its operator.
 *
 * Each operator with a row of kernels for devices is tried on the random inputs of its recipes.  The launches run in the
 * dialect of C, blocks and threads in drawn orders, on an image of the memory of a device: operands lie between bytes that
 * must not change, and the output may hold anything.  What a kernel reads on the host, it must declare.
 *
 * Then every barrier is left out that these trials pass: some of them must notice.
 *
 * Prints TAP, a test per row, and one for the barriers.  Arguments are names of operators; `--barriers` shows those that
 * nothing noticed.  With DEVICE=NAME the launches run on the device of that module instead: each kernel in TRIALS trials,
 * and of those with TYPES="f32 u32" in these types only. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/operators.h"
#include "kernels/gpu/host.h"
#include "kernels/gpu/source.h"
#include "device_module.h"
#include "opdef/columns.h"
#include "opdef/device_kernel.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "tests/same.h"
#include "walk.h"

enum { NEWEST = 28, MOST_OUTPUTS = 8, ALIGN = 256, GAP = 256, SEEDS = 3, WITNESSES = 16, MOST_ROWS = 1024 };

/* Shapes that the recipes do not have: of several tiles, and of more rows than blocks. */
static const struct text_case {
	const char *name, *params, *body;
} text_cases[] = {
#define CASE(name, params, body) {#name, params, body},
#include "device_cases.def"
#undef CASE
	{NULL, NULL, NULL}
};

enum { CASES = sizeof text_cases / sizeof text_cases[0] };

/* A trial that passes a barrier. */
struct witness {
	const om_opdef *row;
	int version;
	unsigned variant;
	const struct text_case *text;    /* NULL: a variant of the recipe */
};

struct barrier {
	struct witness witness[WITNESSES + CASES];   /* cases are always among them */
	int n;
};

struct bench_of_rows {
	om_fibers *fibers;
	device_module *module;        /* NULL: launches run in C */
	const om_device_kernel *row[MOST_ROWS];
	unsigned trials[MOST_ROWS], nrow;
	struct barrier barrier[OM_FIBERS_SITES];
	bool is_searching;            /* looks for what a missing barrier changes: failures are what is wanted */
	unsigned failures;
};

/* An op with its operands in the memory of a device. */
struct placed {
	om_arena *mem;
	om_op_context c;
	const om_device_kernel *row;
	om_launch_list list;
	uint64_t in[MOST_INPUTS], out[MOST_OUTPUTS], scratch, scratch_bytes, bytes;
	uint64_t in_bytes[MOST_INPUTS], out_bytes[MOST_OUTPUTS];
	uint8_t *image;
};

static void OM_PRINTF(3, 4)
fail(struct bench_of_rows *b, const struct trial *t, const char *fmt, ...)
{
	va_list ap;

	b->failures++;
	if (b->is_searching)
		return;
	printf("# %s-%d variant %u: ", t->row->name, t->version, t->variant);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* ---- Operands. ---- */

static uint64_t
place(struct placed *p, uint64_t bytes)
{
	const uint64_t at = p->bytes;

	p->bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN + GAP;
	return at;
}

/* Inputs that kernels read on the device are not visible to rows. */
static void
place_inputs(struct placed *p, const om_op *op)
{
	om_tensor *in = om_memdup(p->mem, p->c.in, op->nin * sizeof *in);

	for (uint32_t k = 0; k < op->nin; k++) {
		if (!op->in[k])
			continue;
		om_tensor_bytes(in[k].type, &in[k].shape, &p->in_bytes[k]);
		p->in[k] = place(p, p->in_bytes[k]);
		if (!om_is_host_input(p->row, k))
			in[k].data = NULL;
	}
	p->c.in = in;
}

static void
fill_image(struct placed *p, const om_op *op, int fill)
{
	p->image = aligned_alloc(ALIGN, (p->bytes + ALIGN - 1) / ALIGN * ALIGN);
	memset(p->image, fill, p->bytes);
	for (uint32_t k = 0; k < op->nin; k++) {
		const om_tensor *x = op->in[k] ? op->in[k]->data : NULL;
		const size_t one = x && om_dtype_bits(x->type) >= 8 ? om_dtype_bits(x->type) / 8 : 1;
		for (uint64_t at = 0; x && at < p->in_bytes[k]; at += one)
			memcpy(p->image + p->in[k] + at, (const char *)x->data + (x->splat ? 0 : at), one);
	}
}

/* The launches of the op; false if no row serves it. */
static bool
place_op(struct placed *p, struct trial *t, struct bench_of_rows *b, int fill)
{
	*p = (struct placed){.mem = om_arena_new(), .bytes = GAP};
	om_op_context_init(&p->c, t->session, p->mem, t->op);
	p->row = om_device_kernel_find(&p->c);
	if (!p->row || t->row->flags & OM_DATA_DEPENDENT_SHAPE)
		return false;
	place_inputs(p, t->op);
	/* What the elements of inputs decide must be the same without them. */
	if (om_device_kernel_find(&p->c) != p->row) {
		fail(b, t, "the row depends on elements that stay on the device");
		return false;
	}
	for (uint32_t k = 0; k < t->op->nout; k++) {
		if (!t->op->out[k])
			continue;
		om_tensor_bytes(p->c.out[k].type, &p->c.out[k].shape, &p->out_bytes[k]);
		p->out[k] = place(p, p->out_bytes[k]);
	}
	p->scratch_bytes = p->row->scratch ? p->row->scratch(&p->c) : 0;
	p->scratch = place(p, p->scratch_bytes);
	p->list = (om_launch_list){.mem = p->mem, .threads = 256, .shared = OM_FIBERS_SHARED};
	if (om_shape_count(&p->c.out[0].shape) > 0 && p->row->launches(&p->c, &p->list) != OM_OK) {
		fail(b, t, "cannot be launched: %s", om_message(t->session));
		return false;
	}
	fill_image(p, t->op, fill);
	return true;
}

static void
placed_free(struct placed *p)
{
	free(p->image);
	om_arena_free(p->mem);
}

/* ---- Launches in C. ---- */

static uint64_t
operand_at(const struct placed *p, const om_launch_arg *a, uint64_t *bytes)
{
	switch (a->operand) {
	case OM_OPERAND_IN: *bytes = p->in_bytes[a->index]; return p->in[a->index];
	case OM_OPERAND_OUT: *bytes = p->out_bytes[a->index]; return p->out[a->index];
	case OM_OPERAND_SCRATCH: break;
	}
	*bytes = p->scratch_bytes;
	return p->scratch;
}

/* Does the letter of a kernel's parameter fit the argument? */
static bool
is_letter_of(char letter, const om_launch_arg *a)
{
	if (a->kind != OM_ARG_VALUE)
		return letter == 'm';
	return letter == (a->type == OM_ARG_I64 ? 'l' : a->type == OM_ARG_I32 ? 'i' : 'f');
}

static bool
values_of(const struct placed *p, const om_launch *l, const char *params, om_gpu_value *v)
{
	if (strlen(params) != l->nargs)
		return false;
	for (uint32_t k = 0; k < l->nargs; k++) {
		const om_launch_arg *a = &l->arg[k];
		uint64_t bytes;
		if (!is_letter_of(params[k], a))
			return false;
		v[k] = (om_gpu_value){0};
		if (a->kind != OM_ARG_VALUE) {
			const uint64_t at = operand_at(p, a, &bytes);
			if (a->at > bytes || a->bytes > bytes - a->at)
				return false;
			v[k].base = p->image;
			v[k].offset = at + a->at;
		} else if (a->type == OM_ARG_F32) {
			v[k].f = a->value.f;
		} else {
			v[k].i = a->value.i;
		}
	}
	return true;
}

static bool
run_launch(struct bench_of_rows *b, const struct trial *t, const struct placed *p, const om_launch *l, uint64_t seed)
{
	const om_gpu_kernel *k = om_gpu_kernel_find(l->entry);
	om_gpu_value v[OM_LAUNCH_ARGS];

	if (!k || !l->unit || !om_gpu_source_text(l->unit)) {
		fail(b, t, "there is no kernel %s of source %s", l->entry, l->unit);
		return false;
	}
	if (!values_of(p, l, k->params, v)) {
		fail(b, t, "kernel %s has parameters %s, but the launch has %u others", l->entry, k->params, l->nargs);
		return false;
	}
	const char *fault = om_gpu_kernel_run(b->fibers, k, v, l->grid.blocks, l->grid.threads, seed);
	if (fault)
		fail(b, t, "%s: %s", l->entry, fault);
	return !fault;
}

static bool
run_in_c(struct bench_of_rows *b, const struct trial *t, const struct placed *p, uint64_t seed)
{
	om_fibers_forget(b->fibers);
	for (size_t k = 0; k < p->list.n; k++)
		if (!run_launch(b, t, p, &p->list.launch[k], seed + k))
			return false;
	return true;
}

/* ---- Launches on a device. ---- */

/* Does the kernel have one of the types that are asked for, and is it still to be tried? */
static bool
is_wanted(const struct bench_of_rows *b, const om_launch *l)
{
	const char *types = getenv("TYPES"), *trials = getenv("TRIALS"), *type = strrchr(l->entry, '_') + 1;
	const size_t n = strlen(type);

	if (device_module_has_run(b->module, l->entry, trials ? (unsigned)atoi(trials) : UINT32_MAX))
		return false;
	for (const char *at = types; at; at = strchr(at, ' ')) {
		at += *at == ' ';
		if (strncmp(at, type, n) == 0 && (at[n] == ' ' || !at[n]))
			return true;
	}
	return !types;
}

static bool
is_for_device(const struct bench_of_rows *b, const struct placed *p, const om_op *op)
{
	bool wanted = false;

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && !device_module_has(b->module, p->c.in[k].type))
			return false;
	for (size_t k = 0; k < p->list.n; k++)
		wanted |= is_wanted(b, &p->list.launch[k]);
	return wanted && device_module_has(b->module, p->c.out[0].type);
}

static bool
run_on_device(struct bench_of_rows *b, const struct trial *t, const struct placed *p)
{
	om_arg (*args)[OM_LAUNCH_ARGS] = om_alloc(p->mem, (p->list.n + 1) * sizeof *args);

	for (size_t i = 0; i < p->list.n; i++)
		for (uint32_t k = 0; k < p->list.launch[i].nargs; k++) {
			const om_launch_arg *a = &p->list.launch[i].arg[k];
			uint64_t bytes = 0, at = a->kind == OM_ARG_VALUE ? 0 : operand_at(p, a, &bytes) + a->at;
			args[i][k] = (om_arg){.kind = a->kind, .type = a->type, .at = at, .value = a->value,
				.bytes = a->kind == OM_ARG_VALUE ? 0 : a->bytes ? a->bytes : bytes - a->at};
		}
	const char *wrong = device_module_run(b->module, &p->list, args, p->image, p->bytes);
	if (wrong)
		fail(b, t, "%s: %s", p->list.n ? p->list.launch[0].entry : "?", wrong);
	return !wrong;
}

/* ---- Comparison. ---- */

/* Products with integers of 8 bits cancel: they are hundreds of times as large as their sum. */
static double
tolerance_of(const struct placed *p, om_dtype t)
{
	return t == OM_FLOAT16 ? 4e-3 : t == OM_BFLOAT16 ? 3e-2 : strcmp(p->row->name, "MatMulNBits") == 0 ? 2e-4 : 2e-5;
}

static double
number_of(om_dtype t, const void *data, int64_t k)
{
	double v = 0;

	om_number(t, (const char *)data + (size_t)k * (om_dtype_bits(t) / 8), &v);
	return v;
}

static bool
is_near(double x, double want, double slack)
{
	return x == want || (isnan(x) && isnan(want)) || fabs(x - want) <= slack * (1 + fabs(want));
}

/* Numbers that are computed in parts and then rounded to 8 bits may differ by one step. */
static bool
is_next_step(const struct placed *p, om_dtype t, double x, double y)
{
	return p->row->domain && om_dtype_bits(t) == 8 && fabs(x - y) <= 1;
}

static void
compare(struct bench_of_rows *b, const struct trial *t, const struct placed *p, const om_tensor *want, uint32_t out)
{
	const om_tensor got = {.type = want->type, .shape = want->shape, .data = p->image + p->out[out]};

	for (int64_t k = 0; k < om_shape_count(&want->shape); k++) {
		if (same_elements(&got, k, want, k))
			continue;
		const double x = number_of(got.type, got.data, k), y = number_of(want->type, want->data, k);
		if ((om_dtype_is_float(want->type) && is_near(x, y, tolerance_of(p, want->type))) || is_next_step(p, want->type, x, y))
			continue;
		fail(b, t, "element %lld of output %u (%s) of kernel %s is %.9g, expected %.9g", (long long)k, out,
			om_dtype_text(want->type), p->list.n ? p->list.launch[0].entry : "?", x, y);
		return;
	}
}

/* Bytes that belong to no output and not to the scratch are what they were. */
static void
check_others(struct bench_of_rows *b, const struct trial *t, struct placed *p, int fill)
{
	uint8_t *kept = p->image;

	fill_image(p, t->op, fill);
	for (uint32_t k = 0; k < t->op->nout; k++)
		memcpy(p->image + p->out[k], kept + p->out[k], p->out_bytes[k]);
	memcpy(p->image + p->scratch, kept + p->scratch, p->scratch_bytes);
	for (uint64_t at = 0; at < p->bytes; at++)
		if (p->image[at] != kept[at]) {
			fail(b, t, "%s writes byte %llu of the memory, which is not its own", p->list.n ? p->list.launch[0].entry : "?",
				(unsigned long long)at);
			break;
		}
	free(kept);
}

/* ---- Trials. ---- */

static void
note_row(struct bench_of_rows *b, const om_device_kernel *row)
{
	unsigned k = 0;

	while (k < b->nrow && b->row[k] != row)
		k++;
	if (k == b->nrow && k < MOST_ROWS)
		b->row[b->nrow++] = row;
	b->trials[k]++;
}

static void
note_barriers(struct bench_of_rows *b, const struct trial *t, const struct text_case *text)
{
	for (int k = 0; k < OM_FIBERS_SITES; k++)
		if (om_fibers_reached(b->fibers, k) && (text || b->barrier[k].n < WITNESSES) && b->barrier[k].n < WITNESSES + CASES)
			b->barrier[k].witness[b->barrier[k].n++] = (struct witness){t->row, t->version, t->variant, text};
}

static om_status
reference(const struct trial *t, om_op_context *c, om_arena *mem)
{
	om_op_context_init(c, t->session, mem, t->op);
	c->keep = mem;
	c->precise = true;
	for (uint32_t k = 0; k < t->op->nout; k++) {
		uint64_t bytes;
		if (t->op->out[k] && om_tensor_bytes(c->out[k].type, &c->out[k].shape, &bytes))
			c->out[k].data = om_alloc(mem, bytes + 1);
	}
	om_tensor *in = (om_tensor *)c->in;
	for (uint32_t k = 0; k < t->op->nin; k++)
		if (t->op->in[k] && in[k].splat)
			return OM_UNSUPPORTED;
	return om_kernel_call(c);
}

static void
run_placed(struct bench_of_rows *b, struct trial *t, const struct text_case *text, struct placed *p, uint64_t seed)
{
	struct om_op_context want;
	om_arena *mem = om_arena_new();
	const int fill = seed % 2 ? 0xff : 0x3c;

	if (place_op(p, t, b, fill) && reference(t, &want, mem) == OM_OK) {
		const bool ran = b->module ? is_for_device(b, p, t->op) && run_on_device(b, t, p) : run_in_c(b, t, p, seed);
		for (uint32_t k = 0; k < t->op->nout && ran; k++)
			if (t->op->out[k])
				compare(b, t, p, &want.out[k], k);
		if (ran)
			check_others(b, t, p, fill);
		if (ran && !b->is_searching) {
			note_row(b, p->row);
			note_barriers(b, t, text);
		}
	}
	om_arena_free(mem);
}

/* False if the recipe has no such variant. */
static bool
try_variant(struct bench_of_rows *b, struct trial *t, const struct text_case *text, uint64_t seed)
{
	struct placed p = {0};
	bool more = true;

	trial_start(t);
	if (text)
		trial_from_text(t, text->params, text->body);
	else
		more = recipe_of(t->row)(t);
	if (more && om_op_infer(t->session, t->prog, t->op) == OM_OK)
		run_placed(b, t, text, &p, seed);
	placed_free(&p);
	trial_end(t);
	return more;
}

/* Operators of two domains may have one name. */
static bool
is_case_of(const struct text_case *c, const om_opdef *row)
{
	const char *domain = row->domain ? row->domain : "";

	return strcmp(c->name, row->name) == 0 && (*domain ? strstr(c->body, domain) != NULL : !strstr(c->body, "::"));
}

static void
try_row(struct bench_of_rows *b, const om_opdef *row)
{
	const int newest = row->until ? row->until : row->since > NEWEST ? row->since : NEWEST;
	struct trial t = {.row = row, .version = newest};

	if (excuse_of(row))
		return;
	while (recipe_of(row) && try_variant(b, &t, NULL, t.variant))
		t.variant++;
	for (const struct text_case *c = text_cases; c->name && newest >= NEWEST; c++)
		if (is_case_of(c, row))
			try_variant(b, &t, c, 1);
}

static bool
is_noticed(struct bench_of_rows *b, const struct barrier *barrier)
{
	const unsigned before = b->failures;

	for (int k = barrier->n - 1; k >= 0 && b->failures == before; k--) {
		const struct witness *w = &barrier->witness[k];
		for (uint64_t seed = 0; seed < SEEDS && b->failures == before; seed++) {
			struct trial t = {.row = w->row, .version = w->version, .variant = w->variant};
			try_variant(b, &t, w->text, seed);
		}
	}
	const bool noticed = b->failures != before;
	b->failures = before;
	return noticed;
}

static void
try_barriers(struct bench_of_rows *b, unsigned test, bool do_show)
{
	unsigned n = 0, noticed = 0;

	b->is_searching = true;
	for (int k = 0; k < OM_FIBERS_SITES; k++) {
		if (b->barrier[k].n == 0)
			continue;
		om_fibers_omit(b->fibers, k);
		const bool is_caught = is_noticed(b, &b->barrier[k]);
		n++;
		noticed += is_caught;
		if (!is_caught && do_show)
			printf("# barrier %d, as in %s, is not needed\n", k, b->barrier[k].witness[0].row->name);
	}
	om_fibers_omit(b->fibers, -1);
	b->is_searching = false;
	printf("%s %u - of %u barriers, each that is left out is noticed: %u\n", n == noticed ? "ok" : "not ok", test, n, noticed);
	b->failures += n != noticed;
}

/* Rows that no trial needed. */
static void
check_rows(struct bench_of_rows *b, unsigned test)
{
	const om_prog *p = om_prog_new();
	unsigned n = 0, missed = 0;

	for (const om_device_kernel *const *list = p->operators->device_kernels; *list; list++)
		for (const om_device_kernel *k = *list; k->name; k++) {
			unsigned i = 0;
			while (i < b->nrow && b->row[i] != k)
				i++;
			n++;
			if (i < b->nrow)
				continue;
			missed++;
			printf("# no trial needed the row of %s\n", k->name);
		}
	printf("%s %u - %u rows were tried\n", missed ? "not ok" : "ok", test, n);
	b->failures += missed;
	om_prog_free((om_prog *)p);
}

int
main(int argc, char **argv)
{
	struct bench_of_rows *b = calloc(1, sizeof *b);
	const bool do_show = argc > 1 && strcmp(argv[1], "--barriers") == 0;
	unsigned tests = 0;

	argc -= do_show;
	argv += do_show;
	b->fibers = om_fibers_new();
	if (getenv("DEVICE") && !(b->module = device_module_open(getenv("DEVICE")))) {
		printf("1..0 # SKIP there is no device %s\n", getenv("DEVICE"));
		return EXIT_SUCCESS;
	}
	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
		const unsigned before = b->failures, rows = b->nrow;
		if (!is_row_wanted(r, argc, argv))
			continue;
		try_row(b, r);
		if (b->nrow != rows || b->failures != before)
			printf("%s %u - %s from version %d\n", b->failures == before ? "ok" : "not ok", ++tests, r->name, r->since);
	}
	if (argc < 2 && !b->module)
		check_rows(b, ++tests);
	if (!b->module)
		try_barriers(b, ++tests, do_show);
	printf("1..%u\n", tests);
	const bool is_right = b->failures == 0;
	device_module_close(b->module);
	om_fibers_free(b->fibers);
	free(b);
	return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
