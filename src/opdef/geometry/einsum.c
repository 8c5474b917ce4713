/* SPDX-License-Identifier: Apache-2.0 */
/* The equation of an Einsum: the loop axis of each dim of its operands. */
#include <config.h>

#include <ctype.h>

#include "opdef/geometry/einsum.h"
#include "ir/query.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

static int
letter_axis(char c)
{
	return islower((unsigned char)c) ? c - 'a' : c - 'A' + 26;
}

/* Read one term, up to a comma, an arrow or the end.  `dots` is the number of dims covered by an
 * ellipsis. */
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

/* The number of letters of a term; -1 more when there is an ellipsis. */
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

/* Without an arrow the output consists of the ellipsis, then every letter that occurs once, in
 * alphabetical order (capitals first). */
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
		return om_op_fail(c->session, OM_SHAPE, c->op, "the equation %.*s does not match the inputs",
			(int)text.size, text.data);
	return OM_OK;
}
