/* SPDX-License-Identifier: Apache-2.0 */
/* Checks every operator definition.
 *
 * Every definition must be complete, and every operator is tried on random inputs: it must fill its
 * outputs and nothing else, give the same bits when computed in place wherever its definition permits
 * that, be a view if it is declared as one, leave inputs unchanged that are stored in the output as
 * declared sub-buffers, fold repeated elements to what the kernel computes element by element, and
 * infer from less information a result that is consistent with that from more.  A new definition is
 * tested without further registration; one that has no recipe fails.
 *
 * Prints TAP, a test per definition.  Arguments, if any, are the names of the operators to check. */
#include <config.h>

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../same.h"
#include "onnxmem/kernel.h"
#include "base/arena_internal.h"
#include "base/memory_limit.h"
#include "walk.h"
#include "base/shape.h"
#include "opdef/fold.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"

enum { GUARD = 64, GUARD_BYTE = 0xee, NEWEST = 28, MOST_OUTPUTS = 8 };

static unsigned failures;

static void OM_PRINTF(2, 3)
fail(const struct trial *t, const char *fmt, ...)
{
	va_list ap;

	failures++;
	printf("# %s-%d variant %u, %s: ", t->row->name, t->version, t->variant,
		t->op && t->op->nin && t->op->in[0] ? om_dtype_text(t->op->in[0]->type.elem) : "no input");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* ---- Completeness of definitions. ---- */

static bool
are_attrs_sane(const om_attr_spec *list)
{
	for (const om_attr_spec *a = list; a && a->name; a++) {
		if (!*a->name || a->kind < OM_ATTR_FLOAT || a->kind > OM_ATTR_TYPES)
			return false;
		for (const om_attr_spec *b = list; b != a; b++)
			if (strcmp(a->name, b->name) == 0)
				return false;
	}
	return true;
}

static bool
do_overlap(const om_opdef *a, const om_opdef *b)
{
	const char *da = a->domain ? a->domain : "", *db = b->domain ? b->domain : "";

	return strcmp(a->name, b->name) == 0 && strcmp(da, db) == 0
	    && (a->until == 0 || b->since <= a->until) && (b->until == 0 || a->since <= b->until);
}

static void
check_row(const om_opdef *r)
{
	const struct trial t = {.row = r, .version = r->since};

	if (!r->brief || !*r->brief || strchr(r->brief, '\n'))
		fail(&t, "has no brief of one line");
	if (r->since < 1 || (r->until && r->until < r->since))
		fail(&t, "has no versions");
	if (r->min_in > r->max_in || r->min_out > r->max_out || r->max_out == 0)
		fail(&t, "takes or gives no sensible number of values");
	if (!r->infer)
		fail(&t, "cannot infer");
	if (!r->cpu && r->control == OM_PLAIN)
		fail(&t, "has no kernel");
	if (r->scratch && !r->cpu)
		fail(&t, "requires scratch for no kernel");
	if (!are_attrs_sane(r->attrs))
		fail(&t, "has a list of attributes that is not sane");
	for (const om_opdef *other = om_opdef_next(r); other; other = om_opdef_next(other))
		if (do_overlap(r, other))
			fail(&t, "overlaps with the row from version %d", other->since);
}

/* ---- Guarded memory. ---- */

struct room {
	char *base;
	uint64_t bytes;
};

static char *
room_new(struct room *r, uint64_t bytes, int fill)
{
	r->base = aligned_alloc(GUARD, (bytes + 3 * GUARD - 1) / GUARD * GUARD);
	r->bytes = bytes;
	memset(r->base, GUARD_BYTE, GUARD);
	memset(r->base + GUARD, fill, bytes);
	memset(r->base + GUARD + bytes, GUARD_BYTE, GUARD);
	return r->base + GUARD;
}

static bool
is_intact(const struct room *r)
{
	for (int k = 0; r->base && k < GUARD; k++)
		if ((unsigned char)r->base[k] != GUARD_BYTE
		    || (unsigned char)r->base[GUARD + r->bytes + (uint64_t)k] != GUARD_BYTE)
			return false;
	return true;
}

/* ---- Execution of a kernel. ---- */

struct computed {
	om_arena *mem;
	om_op_context c;
	struct room in[MOST_INPUTS], out[MOST_OUTPUTS], scratch;
	int fill;
};

static void
computed_free(struct computed *r)
{
	for (int k = 0; k < MOST_INPUTS; k++)
		free(r->in[k].base);
	for (int k = 0; k < MOST_OUTPUTS; k++)
		free(r->out[k].base);
	free(r->scratch.base);
	om_arena_free(r->mem);
}

static om_status
give_room(om_op_context *c, uint32_t k, const om_shape *shape)
{
	struct computed *r = c->host;
	uint64_t bytes;

	if (!om_tensor_bytes(c->out[k].type, shape, &bytes))
		return OM_MEMORY;
	free(r->out[k].base);
	c->out[k].shape = *shape;
	c->out[k].data = room_new(&r->out[k], bytes, r->fill);
	return OM_OK;
}

/* The elements of input k, with a splat expanded. */
static char *
copied_input(struct computed *r, uint32_t k)
{
	const om_tensor *x = &r->c.in[k];
	const size_t one = om_dtype_bits(x->type) < 8 ? 1 : om_dtype_bits(x->type) / 8;
	uint64_t bytes = 0;

	om_tensor_bytes(x->type, &x->shape, &bytes);
	char *to = room_new(&r->in[k], bytes, 0);
	for (uint64_t at = 0; at < bytes; at += one)
		memcpy(to + at, (const char *)x->data + (x->splat ? 0 : at), one);
	return to;
}

/* Place input k in output 0, as a sub-buffer. */
static void
put_into(const struct trial *t, struct computed *r, om_tensor *in, uint32_t k)
{
	uint64_t offset, bytes, room;

	if (!om_op_subbuffer(t->op, k, &offset) || !om_tensor_bytes(in[k].type, &in[k].shape, &bytes)
	    || !om_tensor_bytes(r->c.out[0].type, &r->c.out[0].shape, &room) || offset + bytes > room) {
		fail(t, "input %u is said to lie where it cannot", k);
		return;
	}
	char *to = (char *)r->c.out[0].data + offset;
	if (bytes)
		memcpy(to, in[k].data, bytes);
	in[k].data = to;
}

/* Choose and prepare a kernel while the data pointers of inputs and outputs are NULL. */
static om_status
bind_blindly(om_op_context *c)
{
	void *in[MOST_INPUTS], *out[MOST_OUTPUTS];
	om_tensor *x = (om_tensor *)c->in;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		in[k] = x[k].data;
		x[k].data = NULL;
	}
	for (uint32_t k = 0; k < c->op->nout; k++) {
		out[k] = c->out[k].data;
		c->out[k].data = NULL;
	}
	const om_status st = om_kernel_bind(c, NULL);
	for (uint32_t k = 0; k < c->op->nin; k++)
		x[k].data = in[k];
	for (uint32_t k = 0; k < c->op->nout; k++)
		c->out[k].data = out[k];
	return st;
}

/* ---- What a run may not do. ---- */

/* Attributes of the running op, on pages that cannot be read: the first read opens them. */
static struct {
	om_attr *attr;
	size_t bytes;
	volatile sig_atomic_t is_read;
} sealed = {.bytes = 1 << 16};

static void
open_seal(int sig, siginfo_t *info, void *context)
{
	const char *at = info->si_addr, *start = (const char *)sealed.attr;

	(void)context;
	if (sealed.attr && at >= start && at < start + sealed.bytes && !sealed.is_read) {
		sealed.is_read = 1;
		mprotect(sealed.attr, sealed.bytes, PROT_READ | PROT_WRITE);
	} else {
		signal(sig, SIG_DFL);
	}
}

static void
watch_reads(void)
{
	struct sigaction a = {.sa_sigaction = open_seal, .sa_flags = SA_SIGINFO};

	sealed.attr = mmap(NULL, sealed.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &a, NULL);
	sigaction(SIGBUS, &a, NULL);
}

/* The op with its attributes sealed, and one more, so that there is one to read. */
static om_op
seal(const om_op *op)
{
	om_op copy = *op;

	mprotect(sealed.attr, sealed.bytes, PROT_READ | PROT_WRITE);
	if (op->nattr)
		memcpy(sealed.attr, op->attr, op->nattr * sizeof *op->attr);
	sealed.attr[op->nattr] = (om_attr){.name = "none"};
	sealed.is_read = 0;
	mprotect(sealed.attr, sealed.bytes, PROT_NONE);
	copy.attr = sealed.attr;
	copy.nattr = op->nattr + 1;
	return copy;
}

static bool
count_memory(void *arg, size_t n)
{
	(void)n;
	++*(unsigned *)arg;
	return true;
}

static om_status
allocate_first(void *arg)
{
	om_alloc(arg, 1);
	return OM_OK;
}

/* Has nothing been allocated from the arena?  Then it needs memory now. */
static bool
is_untouched(om_session *s, om_arena *mem)
{
	unsigned n = 0;

	om_session_memory(s, count_memory, &n);
	om_guarded(s, allocate_first, mem);
	om_session_memory(s, NULL, NULL);
	return n > 0;
}

/* What is excused: runs that are prepared before the elements of any input are known, and elements of types
 * narrower than a byte. */
static const struct excuse {
	const char *name;
	bool reads, allocates;
	const char *reason;
} excuses[] = {
	{"DFT", false, true, "only the run tells the length of the transform"},
	{"STFT", false, true, "only the run tells the length of a frame"},
	{"Resize", true, true, "only the run tells scales or sizes, of which tables are computed"},
	{"Upsample", true, true, "only the run tells the scales, of which tables are computed"},
};

static const struct excuse *
find_excuse(const struct trial *t, bool blind)
{
	for (size_t k = 0; blind && k < sizeof excuses / sizeof excuses[0]; k++)
		if (strcmp(excuses[k].name, t->row->name) == 0)
			return &excuses[k];
	return NULL;
}

/* Such elements are unpacked into memory of the call. */
static bool
is_packed(const struct trial *t)
{
	return t->op->nin && t->op->in[0] && om_dtype_bits(t->op->in[0]->type.elem) < 8;
}

/* A run finds in its state what the op declares: it reads no attributes, and allocates nothing unless only
 * the elements tell how large its outputs are. */
static om_status
run_watched(const struct trial *t, om_op_context *c, bool blind)
{
	const om_op op = seal(t->op);
	om_arena *outside = c->mem;
	const struct excuse *e = find_excuse(t, blind);

	c->op = &op;
	c->mem = om_arena_new();
	const om_status st = om_kernel_run(c);
	if (sealed.is_read && !(e && e->reads))
		fail(t, "reads attributes in a run%s", blind ? " that was prepared before elements were known" : "");
	const bool may_allocate = t->row->flags & OM_DATA_DEPENDENT_SHAPE || is_packed(t) || (e && e->allocates);
	if (!may_allocate && !is_untouched(t->session, c->mem))
		fail(t, "allocates in a run%s", blind ? " that was prepared before elements were known" : "");
	om_arena_free(c->mem);
	c->mem = outside;
	c->op = t->op;
	return st;
}

/* Output k is stored over input over[k] or, if that is negative, separately; the inputs whose bits are
 * set in `into` are sub-buffers of output 0. */
static om_status
compute_placed(const struct trial *t, struct computed *r, const int *over, unsigned into, bool blind, int fill)
{
	const om_opdef *row = t->row;

	*r = (struct computed){.mem = om_arena_new(), .fill = fill};
	om_op_context_init(&r->c, t->session, r->mem, t->op);
	r->c.keep = r->mem;
	om_tensor *in = om_memdup(r->mem, r->c.in, t->op->nin * sizeof *in);
	for (uint32_t k = 0; k < t->op->nin; k++)
		if (t->op->in[k]) {
			in[k].data = copied_input(r, k);
			in[k].splat = false;
		}
	r->c.in = in;
	for (uint32_t k = 0; k < t->op->nout; k++) {
		uint64_t bytes;
		if (row->flags & OM_DATA_DEPENDENT_SHAPE || !t->op->out[k])
			continue;
		if (!om_tensor_bytes(r->c.out[k].type, &r->c.out[k].shape, &bytes))
			return om_fail(t->session, OM_SHAPE, "the shape of output %u is not known", k);
		r->c.out[k].data = over && over[k] >= 0 ? in[over[k]].data
		    : room_new(&r->out[k], bytes, fill);
	}
	for (uint32_t k = 0; k < t->op->nin; k++)
		if (into >> k & 1)
			put_into(t, r, in, k);
	OM_TRY(blind ? bind_blindly(&r->c) : om_kernel_bind(&r->c, NULL));
	if (om_kernel_workspace(&r->c))
		r->c.scratch = room_new(&r->scratch, om_kernel_workspace(&r->c), fill);
	if (row->flags & OM_DATA_DEPENDENT_SHAPE)
		r->c.alloc = give_room;
	r->c.host = r;
	const om_status st = run_watched(t, &r->c, blind);
	for (int k = 0; k < MOST_INPUTS; k++)
		if (!is_intact(&r->in[k]))
			fail(t, "writes beyond input %d", k);
	for (int k = 0; k < MOST_OUTPUTS; k++)
		if (!is_intact(&r->out[k]))
			fail(t, "writes beyond output %d", k);
	if (!is_intact(&r->scratch))
		fail(t, "writes beyond its scratch");
	return st;
}

static om_status
compute(const struct trial *t, struct computed *r, const int *over, int fill)
{
	return compute_placed(t, r, over, 0, false, fill);
}

static void
compare(const struct trial *t, const struct computed *a, const struct computed *b, const char *what)
{
	for (uint32_t k = 0; k < t->op->nout; k++)
		if (!same_tensors(&a->c.out[k], &b->c.out[k]))
			fail(t, "output %u differs %s", k, what);
}

/* ---- Checks. ---- */

static void
check_inputs(const struct trial *t, const struct computed *r)
{
	for (uint32_t k = 0; k < t->op->nin; k++) {
		uint64_t bytes;
		const om_value *v = t->op->in[k];
		if (v && om_tensor_bytes(v->type.elem, &v->shape, &bytes)
		    && memcmp(v->data->data, r->c.in[k].data, bytes) != 0)
			fail(t, "changes input %u", k);
	}
}

static void
check_placed(const struct trial *t, const struct computed *ref, const int *over, unsigned into, bool blind,
	const char *what)
{
	struct computed r;

	const om_status st = compute_placed(t, &r, over, into, blind, 0x33);
	if (st != OM_OK)
		fail(t, "fails %s: %s", what, om_message(t->session));
	else
		compare(t, ref, &r, what);
	computed_free(&r);
}

static void
check_place(const struct trial *t, const struct computed *ref, const int *over, unsigned into, const char *what)
{
	check_placed(t, ref, over, into, false, what);
}

/* What a kernel prepares must not depend on addresses, nor on elements that are not constant. */
static void
check_blind(const struct trial *t, const struct computed *ref)
{
	check_placed(t, ref, NULL, 0, true, "when it is prepared before elements are known");
}

/* Each in-place pair separately, then as many as are compatible. */
static void
check_reuse(const struct trial *t, const struct computed *ref)
{
	int all[MOST_OUTPUTS], together = 0;
	bool taken[MOST_INPUTS] = {false};

	for (uint32_t k = 0; k < MOST_OUTPUTS; k++)
		all[k] = -1;
	for (uint32_t k = 0; k < t->op->nout; k++)
		for (uint32_t i = 0; i < t->op->nin; i++) {
			int one[MOST_OUTPUTS];
			char what[64];
			if (!t->op->in[i] || !om_op_inplace(t->op, k, i))
				continue;
			memset(one, -1, sizeof one);
			one[k] = (int)i;
			snprintf(what, sizeof what, "when output %u lies over input %u", k, i);
			check_place(t, ref, one, 0, what);
			if (all[k] < 0 && !taken[i]) {
				all[k] = (int)i;
				taken[i] = true;
				together++;
			}
		}
	if (together > 1)
		check_place(t, ref, all, 0, "when all outputs lie over inputs");
}

/* Each sub-buffer separately, then all that are permitted. */
static void
check_into(const struct trial *t, const struct computed *ref)
{
	unsigned all = 0;

	for (uint32_t k = 0; k < t->op->nin && k < MOST_INPUTS; k++) {
		uint64_t offset;
		char what[64];
		if (!om_op_subbuffer(t->op, k, &offset))
			continue;
		snprintf(what, sizeof what, "when input %u lies in the output", k);
		check_place(t, ref, NULL, 1u << k, what);
		all |= 1u << k;
	}
	if (all & (all - 1))
		check_place(t, ref, NULL, all, "when inputs lie in the output");
}

static void
check_views(const struct trial *t, const struct computed *ref)
{
	for (uint32_t k = 0; k < t->op->nout; k++) {
		const om_tensor *y = &ref->c.out[k];
		uint64_t bytes, room;
		om_view_of v;
		if (!om_op_view(t->op, k, &v))
			continue;
		const om_tensor *x = &ref->c.in[v.in];
		if (!om_tensor_bytes(y->type, &y->shape, &bytes) || !om_tensor_bytes(x->type, &x->shape, &room)
		    || v.offset + bytes > room)
			fail(t, "output %u is a view beyond input %u", k, v.in);
		else if (bytes && memcmp((const char *)x->data + v.offset, y->data, bytes) != 0)
			fail(t, "output %u is said to be bytes of input %u, but is not", k, v.in);
	}
}

static bool
does_agree(const om_shape *less, const om_shape *more)
{
	if (less->rank < 0)
		return true;
	if (less->rank != more->rank)
		return false;
	for (int d = 0; d < less->rank; d++)
		if (less->dim[d] >= 0 && less->dim[d] != more->dim[d])
			return false;
	return true;
}

/* From less information, inference may determine less, but nothing different. */
static void
check_inference(const struct trial *original, recipe_fn *make, const struct computed *ref)
{
	static const char *const what[] = {"elements", "any elements", "dims", "ranks"};

	for (int less = 0; less < 4; less++) {
		struct trial t = *original;
		trial_start(&t);
		make(&t);
		for (uint32_t k = 0; k < t.op->nin; k++) {
			om_value *v = t.op->in[k];
			if (!v || (less != 1 && t.is_steering[k]))
				continue;
			v->data = NULL;
			v->is_const = false;
			for (int d = 0; d < v->shape.rank && less == 2; d++)
				v->shape.dim[d] = OM_DIM_UNKNOWN;
			if (less == 3)
				v->shape = om_shape_unknown();
		}
		if (om_op_infer(t.session, t.prog, t.op) != OM_OK)
			fail(original, "cannot infer without %s: %s", what[less], om_message(t.session));
		for (uint32_t k = 0; k < t.op->nout; k++) {
			const om_value *v = t.op->out[k];
			if (!does_agree(&v->shape, &ref->c.out[k].shape)
			    || (v->type.elem != OM_UNDEFINED && v->type.elem != ref->c.out[k].type))
				fail(original, "infers something else for output %u without %s", k, what[less]);
		}
		trial_end(&t);
	}
}

static bool
is_folded_right(const struct trial *t, const struct computed *ref, uint32_t k)
{
	const om_tensor *y = t->op->out[k]->data, *z = &ref->c.out[k];

	if (y->type != z->type || !om_shape_equal(&y->shape, &z->shape))
		return false;
	for (int64_t i = 0; i < om_shape_count(&z->shape); i++)
		if (!same_elements(y, y->splat ? 0 : i, z, i))
			return false;
	return true;
}

/* All inputs that support it are splats of one element. */
static void
check_folding(const struct trial *original, recipe_fn *make)
{
	struct trial t = *original;
	struct computed r;

	trial_start(&t);
	make(&t);
	for (uint32_t k = 0; k < t.op->nin; k++)
		if (t.op->in[k] && !t.is_steering[k] && om_dtype_bits(t.op->in[k]->type.elem) >= 8
		    && om_shape_count(&t.op->in[k]->shape) > 0)
			((om_tensor *)t.op->in[k]->data)->splat = true;
	om_status st = om_op_infer(t.session, t.prog, t.op);
	if (st == OM_OK)
		st = compute(&t, &r, NULL, 0x77);
	else
		r = (struct computed){0};
	if (st == OM_OK && om_op_fold(t.session, t.prog, t.op, &(om_fold_limits){UINT64_C(1) << 30, UINT64_MAX}, NULL) != OM_OK)
		fail(original, "cannot be folded over repeated elements: %s", om_message(t.session));
	else if (st == OM_OK)
		for (uint32_t k = 0; k < t.op->nout; k++)
			if (t.op->out[k]->data && !is_folded_right(&t, &r, k))
				fail(original, "output %u is folded to something else", k);
	if (r.mem)
		computed_free(&r);
	trial_end(&t);
}

static void
check_cost(const struct trial *t)
{
	const om_cost cost = om_op_cost(t->op);

	if (!(cost.flops >= 0) || !(cost.bytes >= 0) || isinf(cost.flops) || isinf(cost.bytes))
		fail(t, "costs %g flops and %g bytes", cost.flops, cost.bytes);
}

static void
check_kernel(const struct trial *t, recipe_fn *make, const struct computed *ref)
{
	const bool random = t->row->flags & OM_RANDOM;

	check_inputs(t, ref);
	check_views(t, ref);
	check_inference(t, make, ref);
	check_cost(t);
	if (random && !om_op_view(t->op, 0, &(om_view_of){0}))
		return;
	check_place(t, ref, NULL, 0, "where memory held something else");
	check_blind(t, ref);
	check_reuse(t, ref);
	check_into(t, ref);
	if (!random)
		check_folding(t, make);
}

/* False if the recipe has no such variant; *ran counts the runs of the kernel. */
static bool
try_variant(struct trial *t, recipe_fn *make, unsigned *ran)
{
	struct computed ref;

	trial_start(t);
	const bool more = make(t);
	const om_status known = more ? om_op_infer(t->session, t->prog, t->op) : OM_OK;
	if (known == OM_UNSUPPORTED)
		;
	else if (known != OM_OK) {
		fail(t, "cannot infer: %s", om_message(t->session));
	} else if (more) {
		const om_status st = compute(t, &ref, NULL, 0xa5);
		if (st == OM_OK)
			check_kernel(t, make, &ref);
		else if (st != OM_UNSUPPORTED)
			fail(t, "cannot be computed: %s", om_message(t->session));
		*ran += st == OM_OK;
		computed_free(&ref);
	}
	trial_end(t);
	return more;
}

static unsigned
try_version(const om_opdef *row, recipe_fn *make, int version)
{
	struct trial t = {.row = row, .version = version};
	unsigned ran = 0;

	while (try_variant(&t, make, &ran))
		t.variant++;
	if (ran == 0)
		fail(&t, "no variant could be computed");
	return ran;
}

static unsigned
try_row(const om_opdef *row)
{
	const int newest = row->until ? row->until : row->since > NEWEST ? row->since : NEWEST;
	recipe_fn *make = recipe_of(row);

	if (excuse_of(row))
		return 0;
	if (!make) {
		fail(&(struct trial){.row = row, .version = row->since},
			"has no recipe: add one to tests/ops/recipes.c");
		return 0;
	}
	return try_version(row, make, row->since)
	    + (newest != row->since ? try_version(row, make, newest) : 0);
}

int
main(int argc, char **argv)
{
	unsigned rows = 0;

	watch_reads();
	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
		const unsigned before = failures;
		if (!is_row_wanted(r, argc, argv))
			continue;
		check_row(r);
		const unsigned ran = try_row(r);
		printf("%s %u - %s from version %d", failures == before ? "ok" : "not ok", ++rows, r->name, r->since);
		if (excuse_of(r))
			printf(" # SKIP %s\n", excuse_of(r));
		else
			printf(", %u trials\n", ran);
	}
	printf("1..%u\n", rows);
	return failures || !rows ? EXIT_FAILURE : EXIT_SUCCESS;
}
