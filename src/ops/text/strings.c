/* SPDX-License-Identifier: Apache-2.0 */
/* String operators: joining, splitting, normalization, counting. */
#include <config.h>

#include <stdlib.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/op_context.h"
#include "ops/tensor/index.h"
#include "opdef/numbers.h"

static om_status
check_strings(const om_op_context *c, uint32_t k)
{
	if (c->in[k].type != OM_STRING && c->in[k].type != OM_UNDEFINED)
		return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s, expected string", k,
			om_dtype_text(c->in[k].type));
	return OM_OK;
}

static bool
same_text(om_string a, om_string b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* ---- StringConcat. ---- */

static om_status
join_infer(om_op_context *c)
{
	OM_TRY(check_strings(c, 0));
	OM_TRY(check_strings(c, 1));
	c->out[0].type = OM_STRING;
	if (!om_broadcast(&c->in[0].shape, &c->in[1].shape, &c->out[0].shape))
		return om_wrong(c, "the inputs cannot be broadcast");
	return OM_OK;
}

static om_string
joined(om_op_context *c, om_string a, om_string b)
{
	if (a.size == 0 || b.size == 0)
		return a.size ? a : b;
	char *text = om_alloc(c->keep, a.size + b.size);
	memcpy(text, a.data, a.size);
	memcpy(text + a.size, b.data, b.size);
	return (om_string){text, a.size + b.size};
}

/* The offset of the operand's element for a position of the output. */
static int64_t
operand_at(const om_shape *s, const om_shape *out, const int64_t *place)
{
	int64_t at = 0;

	for (int d = 0; d < s->rank; d++)
		at = at * s->dim[d] + (s->dim[d] == 1 ? 0 : place[d + out->rank - s->rank]);
	return at;
}

static om_status
join_cpu(om_op_context *c)
{
	const om_shape *y = &c->out[0].shape;
	const om_string *a = c->in[0].data, *b = c->in[1].data;
	om_string *out = c->out[0].data;
	int64_t place[OM_MAX_RANK] = {0};

	for (int64_t k = 0; k < om_shape_count(y); k++) {
		out[k] = joined(c, a[operand_at(&c->in[0].shape, y, place)], b[operand_at(&c->in[1].shape, y, place)]);
		om_next_place(y, place);
	}
	return OM_OK;
}

/* ---- StringSplit. ---- */

static om_status
split_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;

	OM_TRY(check_strings(c, 0));
	c->out[0].type = OM_STRING;
	if (om_has_out(c, 1)) {
		c->out[1].type = OM_INT64;
		c->out[1].shape = *x;
	}
	if (x->rank < 0)
		return OM_OK;
	if (x->rank == OM_MAX_RANK)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
			"the output would have rank %d, too many dims", x->rank + 1);
	c->out[0].shape = *x;
	c->out[0].shape.dim[c->out[0].shape.rank] = OM_DIM_UNKNOWN;
	c->out[0].shape.sym[c->out[0].shape.rank++] = NULL;
	return OM_OK;
}

static bool
is_space(char ch)
{
	return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

/* The offset of the delimiter in `s`, from `at` on; the size of `s` if there is none. */
static size_t
next_delimiter(om_string s, size_t at, om_string delimiter)
{
	for (; at + (delimiter.size ? delimiter.size : 1) <= s.size; at++)
		if (delimiter.size ? memcmp(s.data + at, delimiter.data, delimiter.size) == 0 : is_space(s.data[at]))
			return at;
	return s.size;
}

/* Split a string into at most `most` + 1 parts, written to `to` unless that is NULL. Without a
 * delimiter, runs of white space separate. */
static int64_t
split_one(om_string s, om_string delimiter, int64_t most, om_string *to)
{
	int64_t n = 0;

	for (size_t at = 0;;) {
		while (!delimiter.size && at < s.size && is_space(s.data[at]))
			at++;
		if (!delimiter.size && at == s.size)
			return n;
		const size_t end = n < most ? next_delimiter(s, at, delimiter) : s.size;
		if (to)
			to[n] = (om_string){at ? s.data + at : s.data, end - at};  /* an empty string may have no data */
		n++;
		if (end == s.size)
			return n;
		at = end + delimiter.size;
	}
}

struct split {
	om_string delimiter;
	int64_t maxsplit;
	bool is_limited;
};

static const om_attr_field split_fields[] = {
	OM_FIELD(struct split, STRING, delimiter),
	OM_FIELD(struct split, INT, maxsplit),
	OM_FIELD_HAS(struct split, is_limited, "maxsplit"),
	{0}
};

static om_status
split_cpu(om_op_context *c)
{
	const struct split *s = c->state;
	const om_shape *x = &c->in[0].shape;
	const int64_t count = om_shape_count(x);
	const int64_t most = s->is_limited && s->maxsplit >= 0 ? s->maxsplit : INT64_MAX;
	const om_string *in = c->in[0].data, delimiter = s->delimiter;
	om_shape shape = *x;
	int64_t widest = 0;

	if (om_has_out(c, 1))
		OM_TRY(c->alloc(c, 1, x));
	for (int64_t k = 0; k < count; k++) {
		const int64_t n = split_one(in[k], delimiter, most, NULL);
		widest = n > widest ? n : widest;
		if (om_has_out(c, 1))
			((int64_t *)c->out[1].data)[k] = n;
	}
	shape.dim[shape.rank++] = widest;
	OM_TRY(c->alloc(c, 0, &shape));
	om_string *out = c->out[0].data;
	for (int64_t k = 0; k < count; k++) {
		int64_t n = split_one(in[k], delimiter, most, out + k * widest);
		for (; n < widest; n++)
			out[k * widest + n] = (om_string){"", 0};
	}
	return OM_OK;
}

/* ---- StringNormalizer. ----
 *
 * Case conversion covers the Latin, Greek and Cyrillic alphabets; letters of other alphabets that
 * have cases are refused. */

static const struct { uint32_t first, last, step; int32_t to_lower; } cases[] = {
	/* Uppercase letters: every letter, or every second one if its lowercase letter follows it. */
	{'A', 'Z', 1, 32}, {0xc0, 0xd6, 1, 32}, {0xd8, 0xde, 1, 32},
	{0x100, 0x12e, 2, 1}, {0x132, 0x136, 2, 1}, {0x139, 0x147, 2, 1}, {0x14a, 0x176, 2, 1},
	{0x178, 0x178, 1, -121}, {0x179, 0x17d, 2, 1},
	{0x386, 0x386, 1, 38}, {0x388, 0x38a, 1, 37}, {0x38c, 0x38c, 1, 64}, {0x38e, 0x38f, 1, 63},
	{0x391, 0x3a1, 1, 32}, {0x3a3, 0x3ab, 1, 32},
	{0x400, 0x40f, 1, 80}, {0x410, 0x42f, 1, 32},
	{0x460, 0x480, 2, 1}, {0x48a, 0x4be, 2, 1}, {0x4c1, 0x4cd, 2, 1}, {0x4d0, 0x52e, 2, 1},
};

/* Ranges without cases, or with cases as above. */
static const struct { uint32_t first, last; } known[] = {
	{0, 0x17f}, {0x370, 0x52f}, {0x590, 0x109f}, {0x1100, 0x139f}, {0x2000, 0x20ff}, {0x2190, 0x245f},
	{0x2500, 0x2bff}, {0x2e80, 0xa63f}, {0xac00, 0xd7ff}, {0xe000, 0xfaff}, {0xfb50, 0xff20}, {0x1f000, 0x10ffff},
};

static bool
fold_case(uint32_t *ch, bool lower)
{
	bool is_known = false;

	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
		is_known |= *ch >= known[k].first && *ch <= known[k].last;
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		const uint32_t capital = lower ? *ch : *ch - (uint32_t)cases[k].to_lower;
		if (capital < cases[k].first || capital > cases[k].last || (capital - cases[k].first) % cases[k].step)
			continue;
		*ch = lower ? capital + (uint32_t)cases[k].to_lower : capital;
		break;
	}
	return is_known;
}

/* Decode one UTF-8 character; an invalid byte is mapped above all characters. */
static size_t
decode(om_string s, size_t at, uint32_t *ch)
{
	const unsigned char *p = (const unsigned char *)s.data + at;
	const size_t n = *p < 0x80 ? 1 : *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 0;

	*ch = n == 1 ? *p : *p & (0x7fu >> n);
	for (size_t k = 1; k < n; k++) {
		if (at + k >= s.size || (p[k] & 0xc0) != 0x80) {
			*ch = 0x110000 + *p;
			return 1;
		}
		*ch = *ch << 6 | (p[k] & 0x3f);
	}
	if (n == 0)
		*ch = 0x110000 + *p;
	return n ? n : 1;
}

static size_t
encode(uint32_t ch, char *to)
{
	if (ch >= 0x110000)
		return *to = (char)(ch - 0x110000), 1;
	if (ch < 0x80)
		return *to = (char)ch, 1;
	const size_t n = ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;
	for (size_t k = n; --k > 0; ch >>= 6)
		to[k] = (char)(0x80 | (ch & 0x3f));
	*to = (char)((0xf00u >> n & 0xff) | ch);
	return n;
}

/* Case conversion within the ranges above preserves the number of bytes.  If `plain`, only ASCII characters
 * are letters. */
static om_status
with_case(om_op_context *c, om_arena *mem, om_string s, bool plain, bool lower, om_string *out)
{
	char *text = om_alloc(mem, s.size + 1);

	for (size_t at = 0, n; at < s.size; at += n) {
		uint32_t ch;
		n = decode(s, at, &ch);
		if (ch < (plain ? 0x80 : 0x110000) && !fold_case(&ch, lower))
			return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no case mapping for U+%04X", ch);
		encode(ch, text + at);
	}
	*out = (om_string){text, s.size};
	return OM_OK;
}

static om_status
normal_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;

	OM_TRY(check_strings(c, 0));
	c->out[0].type = OM_STRING;
	if (x->rank >= 0 && x->rank != 1 && !(x->rank == 2 && om_dims_agree(x->dim[0], 1)))
		return om_wrong(c, "the input must have shape [C] or [1, C]");
	c->out[0].shape = x->rank < 0 ? om_shape_unknown() : om_shape_open(x->rank);
	if (x->rank == 2)
		c->out[0].shape.dim[0] = 1;
	return OM_OK;
}

struct normal {
	bool lower, upper;            /* neither: cases stay */
	bool plain;                   /* in the C locale */
	bool exact;                   /* stop words are compared with their cases */
	const om_string *stop;        /* in lower case, unless `exact` */
	size_t nstop;
};

static om_status
normal_prepare(om_op_context *c, void **state)
{
	const om_attr *stop = om_attr_find(c->op, "stopwords");
	struct normal *s = *state;

	s->lower = om_attr_is(c->op, "case_change_action", "LOWER");
	s->upper = om_attr_is(c->op, "case_change_action", "UPPER");
	if (!s->lower && !s->upper && !om_attr_is(c->op, "case_change_action", "NONE"))
		return om_op_fail(c->session, OM_INVALID, c->op, "unknown case_change_action");
	s->plain = om_attr_is(c->op, "locale", "C") || om_attr_is(c->op, "locale", "POSIX");
	s->exact = om_attr_int(c->op, "is_case_sensitive") != 0;
	s->nstop = stop && stop->kind == OM_ATTR_STRINGS ? stop->n : 0;
	om_string *words = OM_NEWN(c->mem, om_string, s->nstop + 1);
	for (size_t k = 0; k < s->nstop; k++) {
		words[k] = stop->s[k];
		if (!s->exact)
			OM_TRY(with_case(c, c->mem, words[k], s->plain, true, &words[k]));
	}
	s->stop = words;
	return OM_OK;
}

static om_status
is_stopword(om_op_context *c, om_string text, bool *yes)
{
	const struct normal *s = c->state;

	*yes = false;
	if (s->nstop && !s->exact)
		OM_TRY(with_case(c, c->mem, text, s->plain, true, &text));
	for (size_t k = 0; k < s->nstop && !*yes; k++)
		*yes = same_text(s->stop[k], text);
	return OM_OK;
}

static void
normal_cost(const om_op_context *c, om_cost *cost)
{
	const om_attr *stop = om_attr_find(c->op, "stopwords");

	cost->flops = (double)om_shape_count(&c->in[0].shape) * (double)(stop ? stop->n + 1 : 1);
}

static om_status
normal_cpu(om_op_context *c)
{
	const int64_t n = om_shape_count(&c->in[0].shape);
	const om_string *in = c->in[0].data;
	const struct normal *s = c->state;
	om_string *kept = OM_NEWN(c->mem, om_string, (size_t)n + 1);
	om_shape shape = c->in[0].shape;
	int64_t nkept = 0;

	for (int64_t k = 0; k < n; k++) {
		bool stop;
		OM_TRY(is_stopword(c, in[k], &stop));
		if (stop)
			continue;
		kept[nkept] = in[k];
		if (s->lower || s->upper)
			OM_TRY(with_case(c, c->keep, in[k], s->plain, s->lower, &kept[nkept]));
		nkept++;
	}
	if (nkept == 0)
		kept[nkept++] = (om_string){"", 0};
	shape.dim[shape.rank - 1] = nkept;
	OM_TRY(c->alloc(c, 0, &shape));
	memcpy(c->out[0].data, kept, (size_t)nkept * sizeof *kept);
	return OM_OK;
}

/* ---- TfIdfVectorizer: counts of n-grams. ---- */

/* N-gram `id` has `size` items of the pool, starting at `first`. */
struct gram {
	int64_t first, size, column;
};

struct grams {
	struct gram *gram;
	int64_t n, columns;
	const int64_t *numbers;
	const om_string *words;
};

static om_status
grams_of(const om_op_context *c, struct grams *g)
{
	const om_attr *words = om_attr_find(c->op, "pool_strings");
	size_t ncount, nindex, npool;
	const int64_t *count = om_attr_ints(c->op, "ngram_counts", &ncount);
	const int64_t *index = om_attr_ints(c->op, "ngram_indexes", &nindex);

	*g = (struct grams){.numbers = om_attr_ints(c->op, "pool_int64s", &npool)};
	if (words && words->n && npool == 0) {
		g->words = words->s;
		npool = words->n;
	}
	g->gram = OM_NEWN(c->mem, struct gram, nindex + 1);
	for (size_t k = 0; k < nindex; k++) {
		if (index[k] < 0 || index[k] > INT32_MAX)
			return om_wrong(c, "ngram_indexes has an entry that is not a column of the output");
		g->columns = index[k] >= g->columns ? index[k] + 1 : g->columns;
	}
	for (size_t k = 0; k < ncount; k++) {
		const int64_t end = k + 1 < ncount ? count[k + 1] : (int64_t)npool, size = (int64_t)k + 1;
		if (count[k] < 0 || end > (int64_t)npool || end < count[k])
			return om_wrong(c, "ngram_counts does not match the pool");
		for (int64_t at = count[k]; at + size <= end; at += size) {
			if (g->n == (int64_t)nindex)
				return om_wrong(c, "the pool has more n-grams than ngram_indexes has entries");
			g->gram[g->n] = (struct gram){at, size, index[g->n]};
			g->n++;
		}
	}
	return OM_OK;
}

static om_status
tfidf_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	struct grams g;

	OM_TRY(grams_of(c, &g));
	c->out[0].type = OM_FLOAT32;
	if (x->rank < 0)
		return OM_OK;
	if (x->rank != 1 && x->rank != 2)
		return om_wrong(c, "the input must have rank 1 or 2");
	c->out[0].shape = om_shape_open(x->rank);
	if (x->rank == 2)
		om_copy_dim(&c->out[0].shape, 0, x, 0);
	c->out[0].shape.dim[x->rank - 1] = g.columns;
	return OM_OK;
}

static bool
is_item(const om_tensor *x, int64_t at, const struct grams *g, int64_t item)
{
	switch (x->type) {
	case OM_STRING: return same_text(((const om_string *)x->data)[at], g->words[item]);
	case OM_INT32: return ((const int32_t *)x->data)[at] == g->numbers[item];
	default: return ((const int64_t *)x->data)[at] == g->numbers[item];
	}
}

/* N-grams whose items are `step` positions apart. */
static int64_t
count_gram(const om_tensor *x, int64_t from, int64_t n, const struct grams *g, const struct gram *m, int64_t step)
{
	int64_t found = 0;

	for (int64_t i = 0; i + (m->size - 1) * step < n; i++) {
		int64_t k = 0;
		while (k < m->size && is_item(x, from + i + k * step, g, m->first + k))
			k++;
		found += k == m->size;
	}
	return found;
}

struct tfidf {
	struct grams grams;
	int64_t min_gram_length, max_gram_length, max_skip_count;
	om_floats weights;
	bool is_tf, is_idf;           /* neither: TFIDF */
};

static const om_attr_field tfidf_fields[] = {
	OM_FIELD(struct tfidf, INT, min_gram_length),
	OM_FIELD(struct tfidf, INT, max_gram_length),
	OM_FIELD(struct tfidf, INT, max_skip_count),
	OM_FIELD(struct tfidf, FLOATS, weights),
	{0}
};

static om_status
tfidf_prepare(om_op_context *c, void **state)
{
	const om_dtype t = c->in[0].type;
	struct tfidf *s = *state;

	s->is_tf = om_attr_is(c->op, "mode", "TF");
	s->is_idf = om_attr_is(c->op, "mode", "IDF");
	OM_TRY(grams_of(c, &s->grams));
	if (t == OM_STRING ? !s->grams.words : !s->grams.numbers && s->grams.n)
		return om_wrong(c, "the pool and the input differ in type");
	return t == OM_STRING || t == OM_INT32 || t == OM_INT64 ? OM_OK : om_no_kernel(c, t);
}

/* Each n-gram is compared at each position, for each number of items that may be skipped. */
static void
tfidf_cost(const om_op_context *c, om_cost *cost)
{
	const om_shape *x = &c->in[0].shape;
	const double n = (double)x->dim[x->rank - 1], skips = (double)om_attr_int(c->op, "max_skip_count") + 1;
	size_t ngram;

	om_attr_ints(c->op, "ngram_indexes", &ngram);
	cost->flops = (double)om_shape_count(x) * (double)ngram * (skips < n ? skips : n);
}

static om_status
tfidf_cpu(om_op_context *c)
{
	const struct tfidf *s = c->state;
	const struct grams g = s->grams;
	const om_floats weight = s->weights;
	const om_tensor *x = &c->in[0];
	const int64_t n = x->shape.dim[x->shape.rank - 1], rows = x->shape.rank == 2 ? x->shape.dim[0] : 1;
	float *out = c->out[0].data;

	memset(out, 0, (size_t)(rows * g.columns) * sizeof *out);
	for (int64_t r = 0; r < rows; r++) {
		float *row = out + r * g.columns;
		for (int64_t k = 0; k < g.n; k++) {
			const struct gram *m = &g.gram[k];
			const float w = !s->is_tf && weight.n ? (size_t)k < weight.n ? weight.v[k] : 0 : 1;
			int64_t found = 0;
			for (int64_t i = 0; i <= s->max_skip_count && i < n && (m->size > 1 || i == 0); i++)
				if (m->size >= s->min_gram_length && m->size <= s->max_gram_length)
					found += count_gram(x, r * n, n, &g, m, i + 1);
			if (found && s->is_idf)
				row[m->column] = w;
			else
				row[m->column] += (float)found * w;
		}
	}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec split_attrs[] = {
	{"delimiter", OM_ATTR_STRING, .s = ""},
	{"maxsplit", OM_ATTR_INT},
	{0}
};

static const om_attr_spec normal_attrs[] = {
	{"case_change_action", OM_ATTR_STRING, .s = "NONE"},
	{"is_case_sensitive", OM_ATTR_INT},
	{"locale", OM_ATTR_STRING, .s = ""},
	{"stopwords", OM_ATTR_STRINGS},
	{0}
};

static const om_attr_spec tfidf_attrs[] = {
	{"max_gram_length", OM_ATTR_INT, .required = true},
	{"max_skip_count", OM_ATTR_INT, .required = true},
	{"min_gram_length", OM_ATTR_INT, .required = true},
	{"mode", OM_ATTR_STRING, .required = true},
	{"ngram_counts", OM_ATTR_INTS, .required = true},
	{"ngram_indexes", OM_ATTR_INTS, .required = true},
	{"pool_int64s", OM_ATTR_INTS},
	{"pool_strings", OM_ATTR_STRINGS},
	{"weights", OM_ATTR_FLOATS},
	{0}
};

const om_opdef om_ops_strings[] = {
	{.name = "StringConcat", .brief = "element-wise concatenation of strings", .since = 20, .min_in = 2, .max_in = 2,
	 .min_out = 1, .max_out = 1, .infer = join_infer, .slice = om_slice_pointwise, .cpu = join_cpu,
	 .input_types = {OF(STRING), LIKE(0)}},
	{.name = "StringSplit", .brief = "substrings between delimiters", .since = 20, .min_in = 1,
	 .max_in = 1, .min_out = 2, .max_out = 2, .flags = OM_DATA_DEPENDENT_SHAPE, .attrs = split_attrs,
	 .infer = split_infer, .cpu = split_cpu,
	 .input_types = {OF(STRING)}},
	{.name = "StringNormalizer", .brief = "strings in one case, without stop words", .since = 10, .min_in = 1,
	 .max_in = 1, .min_out = 1, .max_out = 1, .flags = OM_DATA_DEPENDENT_SHAPE, .attrs = normal_attrs,
	 .infer = normal_infer, .cpu = normal_cpu, .cost = normal_cost,
	 .input_types = {OF(STRING)}},
	{.name = "TfIdfVectorizer", .brief = "counts of n-grams, weighted", .since = 9, .min_in = 1,
	 .max_in = 1, .min_out = 1, .max_out = 1, .attrs = tfidf_attrs, .infer = tfidf_infer, .slice = om_slice_rows, .cpu = tfidf_cpu,
	 .cost = tfidf_cost,
	 .input_types = {OF_INDICES | OF(STRING)}},
	{0}
};

const om_kernel om_kernels_strings[] = {
	{.name = "StringSplit", .fields = split_fields, .state_bytes = sizeof(struct split), .run = split_cpu},
	{.name = "StringNormalizer", .state_bytes = sizeof(struct normal), .prepare = normal_prepare, .run = normal_cpu},
	{.name = "TfIdfVectorizer", .fields = tfidf_fields, .state_bytes = sizeof(struct tfidf),
	 .prepare = tfidf_prepare, .run = tfidf_cpu},
	{0}
};
