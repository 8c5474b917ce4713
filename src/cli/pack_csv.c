/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "cli/pack_csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct columns {
	int id, lower, upper, end, size, alignment, offset, pool, gaps, access_bytes, group;
};

struct reader {
	om_session *s;
	om_arena *mem;
	const om_table *t;
	const om_packfile_how *how;
	struct columns col;
	om_buffer *buf;
	om_pool *pool;
	size_t npool, cappool;
	bool by_pairs;
};

/* ---- Columns. ---- */

static int
either(const om_table *t, const char *name, const char *other, const char *third)
{
	int k = om_table_column(t, name);

	k = k >= 0 ? k : om_table_column(t, other);
	return k >= 0 ? k : om_table_column(t, third);
}

static om_status
find_columns(struct reader *r)
{
	const om_table *t = r->t;
	struct columns *c = &r->col;

	*c = (struct columns){
		.id = either(t, "id", "buffer", "buffer_id"), .lower = either(t, "lower", "start", "begin"),
		.upper = om_table_column(t, "upper"), .end = om_table_column(t, "end"),
		.size = either(t, "size", "bytes", "size"), .alignment = either(t, "alignment", "align", "alignment"),
		.offset = om_table_column(t, "offset"), .pool = om_table_column(t, "pool"),
		.gaps = om_table_column(t, "gaps"), .access_bytes = om_table_column(t, "access_bytes"),
		.group = om_table_column(t, "group"),
	};
	const char *missing = c->id < 0 ? "id" : c->size < 0 ? "size" : r->by_pairs ? NULL
		: c->lower < 0 ? "lower" : c->upper < 0 && c->end < 0 ? "upper" : NULL;
	if (missing)
		return om_fail(r->s, OM_MALFORMED, "%s: there is no column %s", t->path, missing);
	return OM_OK;
}

/* ---- Lifetimes. ---- */

/* "4-7" or "4-7@64:128": in steps [4, 7) no bytes are live, or only these bytes. */
static bool
read_gap(const char **at, om_interval *gap)
{
	uint64_t number[4] = {0};
	const char *between = "-@:";
	unsigned n = 0;

	for (;; n++) {
		char *end;
		errno = 0;
		if (**at < '0' || **at > '9')
			return false;
		number[n] = strtoull(*at, &end, 10);
		*at = end;
		if (errno || n == 3 || **at != between[n])
			break;
		++*at;
	}
	*gap = (om_interval){(uint32_t)number[0], (uint32_t)number[1], number[2], number[3]};
	return !errno && (n == 1 || n == 3) && number[1] <= UINT32_MAX && number[0] < number[1]
		&& (n == 1 || number[2] < number[3]);
}

static int
by_lower(const void *a, const void *b)
{
	const om_interval *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* Does it cover the same steps as the previous gap, and other live bytes? */
static bool
goes_on(const om_interval *gap, size_t k)
{
	return k && gap[k - 1].lower == gap[k].lower && gap[k - 1].upper == gap[k].upper
		&& gap[k - 1].to && gap[k].from >= gap[k - 1].to;
}

/* The lifetime without the gaps, and the bytes that are live in them. */
static om_status
cut_gaps(struct reader *r, size_t row, const om_interval *whole, om_interval *gap, size_t n)
{
	om_interval *live = OM_NEWN(r->mem, om_interval, 2 * n + 1);
	om_buffer *b = &r->buf[row];
	uint32_t m = 0, step = whole->lower;

	qsort(gap, n, sizeof *gap, by_lower);
	for (size_t k = 0; k < n; k++) {
		if ((gap[k].lower < step && !goes_on(gap, k)) || gap[k].upper > whole->upper || gap[k].to > b->bytes)
			return om_table_wrong(r->s, r->t, row, r->col.gaps, "gaps apart from each other and within the buffer");
		if (gap[k].lower > step)
			live[m++] = (om_interval){.lower = step, .upper = gap[k].lower};
		if (gap[k].to)
			live[m++] = gap[k];
		step = gap[k].upper;
	}
	if (step < whole->upper)
		live[m++] = (om_interval){.lower = step, .upper = whole->upper};
	if (m == 0)
		return om_table_wrong(r->s, r->t, row, r->col.gaps, "gaps that leave something of the buffer");
	b->live = live;
	b->nlive = m;
	return OM_OK;
}

static om_status
read_gaps(struct reader *r, size_t row, const om_interval *whole)
{
	const char *at = om_table_field(r->t, row, r->col.gaps);
	om_interval *gap = NULL;
	size_t n = 0, cap = 0;

	while (*at) {
		om_interval g;
		if (!read_gap(&at, &g) || (*at && *at != ' '))
			return om_table_wrong(r->s, r->t, row, r->col.gaps, "gaps such as 4-7 or 4-7@64:128");
		OM_PUSH(r->mem, gap, n, cap, g);
		at += strspn(at, " ");
	}
	return n ? cut_gaps(r, row, whole, gap, n) : OM_OK;
}

static om_status
read_life(struct reader *r, size_t row)
{
	const struct columns *c = &r->col;
	uint64_t lower, upper;

	if (r->by_pairs)
		return OM_OK;
	OM_TRY(om_table_number(r->s, r->t, row, c->lower, 0, UINT32_MAX - 1, &lower));
	if (c->upper >= 0) {
		OM_TRY(om_table_number(r->s, r->t, row, c->upper, lower + 1, UINT32_MAX, &upper));
	} else {
		OM_TRY(om_table_number(r->s, r->t, row, c->end, lower, UINT32_MAX - 1, &upper));
		upper++;
	}
	om_interval *live = OM_NEW(r->mem, om_interval);
	*live = (om_interval){.lower = (uint32_t)lower, .upper = (uint32_t)upper};
	r->buf[row].live = live;
	r->buf[row].nlive = 1;
	return c->gaps >= 0 ? read_gaps(r, row, live) : OM_OK;
}

/* ---- The rest of a row. ---- */

static om_status
read_alignment(struct reader *r, size_t row)
{
	const int col = r->col.alignment;
	uint64_t align = 1;

	if (col >= 0 && *om_table_field(r->t, row, col))
		OM_TRY(om_table_number(r->s, r->t, row, col, 0, INT64_MAX / 2, &align));
	if (align & (align - 1))
		return om_table_wrong(r->s, r->t, row, col, "a power of two");
	r->buf[row].align = align > r->how->align ? align : r->how->align;
	return OM_OK;
}

static om_status
read_offset(struct reader *r, size_t row)
{
	uint64_t offset;

	r->buf[row].fixed = OM_OFFSET_FREE;
	if (r->col.offset < 0 || r->how->forgets_offsets || !*om_table_field(r->t, row, r->col.offset))
		return OM_OK;
	OM_TRY(om_table_number(r->s, r->t, row, r->col.offset, 0, INT64_MAX, &offset));
	r->buf[row].fixed = (int64_t)offset;
	return OM_OK;
}

static om_status
read_pool(struct reader *r, size_t row)
{
	const char *name = r->col.pool >= 0 ? om_table_field(r->t, row, r->col.pool) : "";

	r->buf[row].fixed_pool = OM_POOL_ANY;
	if (!*name || (r->how->npool && r->how->forgets_offsets))
		return OM_OK;
	for (size_t k = 0; k < r->npool; k++)
		if (r->pool[k].name && strcmp(r->pool[k].name, name) == 0) {
			r->buf[row].fixed_pool = (uint32_t)k;
			return OM_OK;
		}
	if (r->how->npool)
		return om_table_wrong(r->s, r->t, row, r->col.pool, "a pool that --pool names");
	r->buf[row].fixed_pool = (uint32_t)r->npool;
	OM_PUSH(r->mem, r->pool, r->npool, r->cappool, (om_pool){.name = name});
	return OM_OK;
}

static om_status
read_row(struct reader *r, size_t row)
{
	om_buffer *b = &r->buf[row];

	b->name = om_table_field(r->t, row, r->col.id);
	OM_TRY(om_table_number(r->s, r->t, row, r->col.size, 0, INT64_MAX, &b->bytes));
	OM_TRY(read_life(r, row));
	OM_TRY(read_alignment(r, row));
	OM_TRY(read_offset(r, row));
	OM_TRY(read_pool(r, row));
	b->access_bytes = b->bytes;
	if (r->col.access_bytes >= 0 && *om_table_field(r->t, row, r->col.access_bytes))
		OM_TRY(om_table_number(r->s, r->t, row, r->col.access_bytes, 0, UINT64_MAX, &b->access_bytes));
	return OM_OK;
}

/* ---- Names. ---- */

struct named {
	const char *name;
	uint32_t row;
};

static int
by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	const int order = strcmp(x->name, y->name);

	return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

/* Rows sorted by the text in a column, then by their order. */
static struct named *
sorted_by(const struct reader *r, int col, size_t *count)
{
	struct named *v = OM_NEWN(r->mem, struct named, r->t->nrow);
	size_t n = 0;

	for (size_t k = 0; k < r->t->nrow; k++)
		if (*om_table_field(r->t, k, col))
			v[n++] = (struct named){om_table_field(r->t, k, col), (uint32_t)k};
	qsort(v, n, sizeof *v, by_name);
	*count = n;
	return v;
}

/* Rows with the same text in column group are adjacent. */
static void
read_groups(struct reader *r, om_problem *p)
{
	size_t n, ngroup = 0, cap = 0;
	om_pack_group *group = NULL;

	if (r->col.group < 0)
		return;
	const struct named *v = sorted_by(r, r->col.group, &n);
	uint32_t *member = OM_NEWN(r->mem, uint32_t, n);
	for (size_t k = 0; k < n; k++) {
		member[k] = v[k].row;
		if (k == 0 || strcmp(v[k].name, v[k - 1].name) != 0)
			OM_PUSH(r->mem, group, ngroup, cap, (om_pack_group){.member = &member[k]});
		group[ngroup - 1].n++;
	}
	p->group = group;
	p->ngroup = (uint32_t)ngroup;
}

static om_status
find_row(struct reader *r, const struct named *v, size_t n, const om_table *pairs, size_t row, int col,
	uint32_t *out)
{
	const char *name = om_table_field(pairs, row, col);
	size_t from = 0, to = n;

	while (from < to) {
		const size_t mid = from + (to - from) / 2;
		if (strcmp(v[mid].name, name) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	if (from == n || strcmp(v[from].name, name) != 0)
		return om_table_wrong(r->s, pairs, row, col, "the id of a buffer");
	*out = v[from].row;
	return OM_OK;
}

static om_status
read_pairs(struct reader *r, const om_table *pairs, om_problem *p)
{
	uint32_t (*pair)[2] = om_allocn(r->mem, sizeof *pair, pairs->nrow);
	size_t n;

	if (pairs->ncol < 2)
		return om_fail(r->s, OM_MALFORMED, "%s: there are no two columns", pairs->path);
	const struct named *v = sorted_by(r, r->col.id, &n);
	for (size_t k = 1; k < n; k++)
		if (strcmp(v[k].name, v[k - 1].name) == 0)
			return om_table_wrong(r->s, r->t, v[k].row, r->col.id, "an id of its own");
	for (size_t k = 0; k < pairs->nrow; k++) {
		OM_TRY(find_row(r, v, n, pairs, k, 0, &pair[k][0]));
		OM_TRY(find_row(r, v, n, pairs, k, 1, &pair[k][1]));
		if (pair[k][0] == pair[k][1])
			return om_table_wrong(r->s, pairs, k, 1, "another buffer");
	}
	p->by_pairs = true;
	p->pair = (const uint32_t (*)[2])pair;
	p->npair = pairs->nrow;
	return OM_OK;
}

om_status
om_packfile_read(om_session *s, const om_table *t, const om_table *pairs, const om_packfile_how *how,
	om_arena *mem, om_packfile *out)
{
	struct reader r = {.s = s, .mem = mem, .t = t, .how = how, .by_pairs = pairs != NULL,
		.buf = OM_NEWN(mem, om_buffer, t->nrow)};

	if (t->nrow >= UINT32_MAX)
		return om_fail(s, OM_UNSUPPORTED, "%s: there are too many buffers", t->path);
	OM_TRY(find_columns(&r));
	for (uint32_t k = 0; k < how->npool; k++)
		OM_PUSH(mem, r.pool, r.npool, r.cappool, how->pool[k]);
	for (size_t k = 0; k < t->nrow; k++)
		OM_TRY(read_row(&r, k));
	if (r.npool == 0)
		OM_PUSH(mem, r.pool, r.npool, r.cappool, (om_pool){0});
	*out = (om_packfile){.table = *t, .offset = r.col.offset, .pool = r.col.pool};
	out->problem = (om_problem)OM_PROBLEM(.buf = r.buf, .n = (uint32_t)t->nrow, .pool = r.pool, .npool = (uint32_t)r.npool);
	read_groups(&r, &out->problem);
	return pairs ? read_pairs(&r, pairs, &out->problem) : OM_OK;
}
