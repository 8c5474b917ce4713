/* Einsum: sums of products, by an equation of indices. */
#include <config.h>

#include <ctype.h>

#include "ops/math/einsum.h"
#include "opdef/family.h"
#include "opdef/numbers.h"

static const om_attr_spec einsum_attrs[] = {
	{"equation", OM_ATTR_STRING, .required = true},
	{0}
};

static int
letter_axis(char c)
{
	return islower((unsigned char)c) ? c - 'a' : c - 'A' + 26;
}

/* One term, up to a comma, an arrow or the end. `dots` is the number of dims
 * that an ellipsis stands for. */
static bool
read_term(const char **at, const char *end, int dots, int *axis, int *rank)
{
	const char *p = *at;

	for (*rank = 0; p < end && *p != ',' && *p != '-'; p++) {
		if (*p == ' ')
			continue;
		int n = 1, first = letter_axis(*p);
		if (end - p >= 3 && memcmp(p, "...", 3) == 0) {
			n = dots;
			first = OM_EINSUM_LETTERS + OM_MAX_RANK - dots;
			p += 2;
		} else if (!isalpha((unsigned char)*p)) {
			return false;
		}
		if (n < 0 || *rank + n > OM_MAX_RANK)
			return false;
		for (int k = 0; k < n; k++)
			axis[(*rank)++] = first + k;
	}
	*at = p;
	return true;
}

/* How many letters a term has; -1 more when there is an ellipsis. */
static int
count_letters(const char *p, const char *end, bool *dots)
{
	int n = 0;

	for (*dots = false; p < end && *p != ',' && *p != '-'; p++) {
		n += isalpha((unsigned char)*p) != 0;
		*dots |= *p == '.';
	}
	return n;
}

static bool
widen_axis(om_shape *size, const om_shape *s, int d)
{
	om_shape one = {.rank = 1};

	om_copy_dim(&one, 0, s, d);
	if (size->rank == 0) {
		*size = one;
		return true;
	}
	return om_broadcast(size, &one, size);
}

/* Without an arrow the output has the ellipsis, then every letter that occurs
 * once, in alphabetical order (capitals first). */
static void
implicit_output(struct om_einsum *e, int dots)
{
	int *rank = &e->rank[e->nin], seen[OM_EINSUM_AXES] = {0};

	for (uint32_t k = 0; k < e->nin; k++)
		for (int d = 0; d < e->rank[k]; d++)
			seen[e->term[k][d]]++;
	for (int k = 0; k < dots; k++)
		e->term[e->nin][(*rank)++] = OM_EINSUM_LETTERS + OM_MAX_RANK - dots + k;
	for (int k = 0; k < 52 && *rank < OM_MAX_RANK; k++) {
		const int axis = (k + 26) % 52;
		if (seen[axis] == 1)
			e->term[e->nin][(*rank)++] = axis;
	}
}

static bool
read_inputs(const om_op_context *c, struct om_einsum *e, const char **at, const char *end, int *dots)
{
	for (uint32_t k = 0; k < c->op->nin; k++) {
		const om_shape *s = &c->in[k].shape;
		bool has_dots;
		const int n = s->rank - count_letters(*at, end, &has_dots);
		if (n < 0 || (n > 0 && !has_dots) || !read_term(at, end, n, e->term[k], &e->rank[k])
		    || e->rank[k] != s->rank)
			return false;
		if (has_dots && n > *dots)
			*dots = n;
		for (int d = 0; d < s->rank; d++)
			if (!widen_axis(&e->size[e->term[k][d]], s, d))
				return false;
		if (k + 1 < c->op->nin && (*at == end || *(*at)++ != ','))
			return false;
	}
	return true;
}

om_status
om_einsum_read(const om_op_context *c, struct om_einsum *e)
{
	const om_string text = om_attr_string(c->op, "equation");
	const char *at = text.data, *end = text.data + text.size;
	int dots = 0;

	*e = (struct om_einsum){.nin = c->op->nin};
	if (c->op->nin > OM_EINSUM_TERMS)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "has more than %d inputs", OM_EINSUM_TERMS);
	bool ok = read_inputs(c, e, &at, end, &dots);
	if (ok && at == end) {
		implicit_output(e, dots);
	} else if (ok) {
		ok = end - at >= 2 && memcmp(at, "->", 2) == 0;
		at += 2;
		ok = ok && read_term(&at, end, dots, e->term[e->nin], &e->rank[e->nin]) && at == end;
	}
	for (int d = 0; ok && d < e->rank[e->nin]; d++) {
		ok = e->size[e->term[e->nin][d]].rank == 1;
		for (int other = 0; other < d; other++)
			ok = ok && e->term[e->nin][other] != e->term[e->nin][d];
	}
	if (!ok)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the equation %.*s does not fit the inputs",
			(int)text.size, text.data);
	return OM_OK;
}

static om_status
einsum_infer(om_op_context *c)
{
	struct om_einsum e;

	c->out[0].type = c->in[0].type;
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (c->in[k].shape.rank < 0)
			return OM_OK;
	OM_TRY(om_einsum_read(c, &e));
	c->out[0].shape = (om_shape){.rank = e.rank[e.nin]};
	for (int d = 0; d < e.rank[e.nin]; d++)
		om_copy_dim(&c->out[0].shape, d, &e.size[e.term[e.nin][d]], 0);
	return OM_OK;
}

struct loops {
	int n, nout;                  /* loops; those over the output come first */
	int64_t size[OM_EINSUM_AXES];
	int64_t step[OM_EINSUM_TERMS][OM_EINSUM_AXES];
};

static void
make_loops(const om_op_context *c, const struct om_einsum *e, struct loops *l)
{
	int place[OM_EINSUM_AXES];

	*l = (struct loops){0};
	for (int k = 0; k < OM_EINSUM_AXES; k++)
		place[k] = -1;
	for (int d = 0; d < e->rank[e->nin]; d++)
		place[e->term[e->nin][d]] = l->n++;
	l->nout = l->n;
	for (int k = 0; k < OM_EINSUM_AXES; k++)
		if (e->size[k].rank == 1 && place[k] < 0)
			place[k] = l->n++;
	for (int k = 0; k < OM_EINSUM_AXES; k++)
		if (place[k] >= 0)
			l->size[place[k]] = e->size[k].dim[0];
	for (uint32_t k = 0; k < e->nin; k++) {
		int64_t step = 1;
		for (int d = e->rank[k] - 1; d >= 0; d--) {
			const int64_t n = c->in[k].shape.dim[d];
			l->step[k][place[e->term[k][d]]] += n == 1 ? 0 : step;
			step *= n;
		}
	}
}

/* Count the loops [from, to) up by one, with the offsets; false at the end. */
static bool
advance(const struct loops *l, uint32_t nin, int from, int to, int64_t *index, int64_t *at)
{
	for (int d = to - 1; d >= from; d--) {
		for (uint32_t k = 0; k < nin; k++)
			at[k] += l->step[k][d];
		if (++index[d] < l->size[d])
			return true;
		for (uint32_t k = 0; k < nin; k++)
			at[k] -= l->step[k][d] * l->size[d];
		index[d] = 0;
	}
	return false;
}

/* Sums of products wrap around: their low bits do not depend on signs. */
static uint64_t
integer_at(const om_tensor *t, int64_t i)
{
	switch (om_dtype_bits(t->type)) {
	case 8: return ((const uint8_t *)t->data)[i];
	case 16: return ((const uint16_t *)t->data)[i];
	case 32: return ((const uint32_t *)t->data)[i];
	default: return ((const uint64_t *)t->data)[i];
	}
}

static void
put_integer(const om_tensor *t, int64_t i, uint64_t v)
{
	switch (om_dtype_bits(t->type)) {
	case 8: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
	case 16: ((uint16_t *)t->data)[i] = (uint16_t)v; break;
	case 32: ((uint32_t *)t->data)[i] = (uint32_t)v; break;
	default: ((uint64_t *)t->data)[i] = v;
	}
}

static double
float_at(const om_tensor *t, int64_t i)
{
	return om_get(t->type, t->data, i);
}

static void
put_float(const om_tensor *t, int64_t i, double v)
{
	om_put(t->type, t->data, i, v);
}

/* The same sums in integers and in numbers with a fraction. */
#define SUMS(name, type, get, put)                                                             \
	static void                                                                            \
	name(om_op_context *c, const struct loops *l, bool is_empty)                                 \
	{                                                                                      \
		int64_t index[OM_EINSUM_AXES] = {0}, at[OM_EINSUM_TERMS] = {0};                \
		const uint32_t nin = c->op->nin;                                               \
		for (int64_t i = 0, n = om_shape_count(&c->out[0].shape); i < n; i++) {        \
			type sum = 0;                                                          \
			do {                                                                   \
				type x = is_empty ? 0 : 1;                                     \
				for (uint32_t k = 0; k < nin && !is_empty; k++)                \
					x *= get(&c->in[k], at[k]);                            \
				sum += x;                                                      \
			} while (!is_empty && advance(l, nin, l->nout, l->n, index, at));      \
			put(&c->out[0], i, sum);                                               \
			advance(l, nin, 0, l->nout, index, at);                                \
		}                                                                              \
	}

SUMS(sum_integers, uint64_t, integer_at, put_integer)
SUMS(sum_floats, double, float_at, put_float)

static om_status
einsum_cpu(om_op_context *c)
{
	const om_dtype t = c->out[0].type;
	struct om_einsum e;
	struct loops l;
	bool is_empty = false;

	for (uint32_t k = 0; k < c->op->nin; k++)
		if (c->in[k].type != t)
			return om_op_fail(c->session, OM_SHAPE, c->op, "multiplies %s by %s", om_dtype_text(t),
				om_dtype_text(c->in[k].type));
	OM_TRY(om_einsum_read(c, &e));
	make_loops(c, &e, &l);
	for (int d = l.nout; d < l.n; d++)
		is_empty |= l.size[d] == 0;
	if (om_dtype_is_integer(t) && om_dtype_bits(t) >= 8)
		sum_integers(c, &l, is_empty);
	else if (t == OM_FLOAT32 || t == OM_FLOAT64 || om_is_half(t))
		sum_floats(c, &l, is_empty);
	else
		return om_no_kernel(c, t);
	return OM_OK;
}

static void
einsum_cost(const om_op_context *c, om_cost *cost)
{
	om_op_context quiet = *c;
	struct om_einsum e;
	struct loops l;

	quiet.session = om_session_new();
	if (om_einsum_read(&quiet, &e) == OM_OK) {
		make_loops(c, &e, &l);
		cost->flops = c->op->nin;
		for (int d = 0; d < l.n; d++)
			cost->flops *= (double)l.size[d];
	}
	om_session_free(quiet.session);
}

const om_opdef om_ops_einsum[] = {
	{.name = "Einsum", .brief = "sums of products by an equation of indices",
	 .since = 12, .min_in = 1, .max_in = OM_VARIADIC, .min_out = 1, .max_out = 1,
	 .attrs = einsum_attrs, .infer = einsum_infer, .cpu = einsum_cpu, .cost = einsum_cost,
	 .input_types = {OF_NUMBERS}},
	{0}
};
