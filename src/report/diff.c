/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two reports by their JSON, so that models and reports that were kept are compared in one way.
 *
 * Tensors are matched by name.  Of those that remain, two are taken for one that was renamed where they are the only
 * ones of their op, type and bytes on both sides, or where all that remains agrees in that, one after the other.  What is live at the peaks is matched in the same way, and every
 * byte of a peak belongs to one line: the differences add up to the difference of the peaks. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff.h"

struct reader {
	om_session *s;
	om_arena *mem;
	const char *path;
};

/* ---- Reading a report. ---- */

static om_status
get_bytes(const struct reader *r, const json_t *o, const char *key, uint64_t *out)
{
	const json_t *j = json_object_get(o, key);

	if (!json_is_integer(j) || json_integer_value(j) < 0)
		return om_fail(r->s, OM_MALFORMED, "%s: the report has no number %s", r->path, key);
	*out = (uint64_t)json_integer_value(j);
	return OM_OK;
}

/* A text that may be missing. */
static const char *
get_text(const struct reader *r, const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? om_clean_text(r->mem, text) : "";
}

/* "x:1,3,224,224; mask:1,?" */
static const char *
inputs_text(const struct reader *r, const json_t *inputs)
{
	const char *out = "", *name;
	json_t *dims, *dim;
	size_t k;

	json_object_foreach((json_t *)inputs, name, dims) {
		out = om_printf(r->mem, "%s%s%s:", out, *out ? "; " : "", om_clean_text(r->mem, name));
		json_array_foreach(dims, k, dim)
			out = om_printf(r->mem, json_is_integer(dim) ? "%s%s%lld" : "%s%s?", out, k ? "," : "",
				(long long)json_integer_value(dim));
	}
	return out;
}

static om_status
read_tensors(const struct reader *r, const json_t *list, om_side *to)
{
	json_t *j;
	size_t k;

	to->has_tensors = json_is_array(list);
	to->tensor = OM_NEWN(r->mem, om_side_tensor, json_array_size(list));
	json_array_foreach(list, k, j) {
		om_side_tensor *t = &to->tensor[to->ntensor++];
		*t = (om_side_tensor){.name = get_text(r, j, "name"), .op = get_text(r, j, "op"), .type = get_text(r, j, "type"),
			.store = get_text(r, j, "store"), .other = UINT32_MAX};
		OM_TRY(get_bytes(r, j, "bytes", &t->bytes));
		OM_TRY(get_bytes(r, j, "first", &t->first));
	}
	return OM_OK;
}

static om_status
read_peak(const struct reader *r, const json_t *peak, om_side *to)
{
	const json_t *list = json_object_get(peak, "live");
	json_t *j;
	size_t k;

	to->has_step = json_is_integer(json_object_get(peak, "step"));
	if (to->has_step)
		OM_TRY(get_bytes(r, peak, "step", &to->peak_step));
	to->peak_op = get_text(r, peak, "op");
	to->peak_name = get_text(r, peak, "name");
	to->live = OM_NEWN(r->mem, om_side_live, json_array_size(list));
	json_array_foreach(list, k, j) {
		om_side_live *l = &to->live[to->nlive++];
		*l = (om_side_live){.name = get_text(r, j, "name"), .tensor = UINT32_MAX};
		OM_TRY(get_bytes(r, j, "bytes", &l->bytes));
		if (__builtin_add_overflow(to->size[OM_SIZE_PEAK], l->bytes, &to->size[OM_SIZE_PEAK]))
			return om_fail(r->s, OM_MALFORMED, "%s: the bytes live at the peak overflow", r->path);
	}
	return OM_OK;
}

static om_status
read_side(const struct reader *r, const json_t *o, om_side **out)
{
	om_side *to = *out = OM_NEW(r->mem, om_side);

	if (strcmp(get_text(r, o, "schema"), "onnxmem-report/1") != 0)
		return om_fail(r->s, OM_MALFORMED, "%s: the JSON is not a report, which has the schema onnxmem-report/1", r->path);
	to->model = get_text(r, o, "model");
	to->inputs = inputs_text(r, json_object_get(o, "inputs"));
	OM_TRY(get_bytes(r, o, "arena_bytes", &to->size[OM_SIZE_ARENA]));
	OM_TRY(get_bytes(r, o, "lower_bound_bytes", &to->size[OM_SIZE_BOUND]));
	OM_TRY(get_bytes(r, o, "weights_bytes", &to->size[OM_SIZE_WEIGHTS]));
	OM_TRY(get_bytes(r, o, "io_bytes", &to->size[OM_SIZE_IO]));
	OM_TRY(get_bytes(r, o, "total_bytes", &to->size[OM_SIZE_TOTAL]));
	OM_TRY(read_tensors(r, json_object_get(o, "tensors"), to));
	if (to->ntensor >= UINT32_MAX)
		return om_fail(r->s, OM_UNSUPPORTED, "%s: the report has too many tensors", r->path);
	return read_peak(r, json_object_get(o, "peak"), to);
}

/* ---- Matching. ---- */

/* A tensor of one of the sides, in a list of both that is sorted. */
struct entry {
	const om_side_tensor *t;
	uint32_t at;             /* in the list of its side */
	bool is_now;
};

static int
by_place(const struct entry *x, const struct entry *y)
{
	if (x->is_now != y->is_now)
		return x->is_now ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

static int
by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const int order = strcmp(x->t->name, y->t->name);

	return order ? order : by_place(x, y);
}

static int
kind_order(const struct entry *x, const struct entry *y)
{
	const int op = strcmp(x->t->op, y->t->op), type = strcmp(x->t->type, y->t->type);

	if (op || type)
		return op ? op : type;
	return (x->t->bytes > y->t->bytes) - (x->t->bytes < y->t->bytes);
}

static int
by_kind(const void *a, const void *b)
{
	const int order = kind_order(a, b);

	return order ? order : by_place(a, b);
}

static size_t
list_open(const om_side *side, bool is_now, struct entry *out)
{
	size_t n = 0;

	for (uint32_t k = 0; k < side->ntensor; k++)
		if (side->tensor[k].other == UINT32_MAX)
			out[n++] = (struct entry){&side->tensor[k], k, is_now};
	return n;
}

/* Entries [from, to) are of one name or kind, those of the old side first: match the first of each, the second of each,
 * and so on; `alone`: only if there is one of each. */
static void
match_run(om_side *old, om_side *now, const struct entry *e, size_t n, bool alone)
{
	size_t nold = 0;

	while (nold < n && !e[nold].is_now)
		nold++;
	if (alone && (nold != 1 || n != 2))
		return;
	for (size_t k = 0; k < nold && nold + k < n; k++) {
		old->tensor[e[k].at].other = e[nold + k].at;
		now->tensor[e[nold + k].at].other = e[k].at;
	}
}

static void
match_names(om_side *old, om_side *now, struct entry *e)
{
	const size_t m = list_open(old, false, e), n = m + list_open(now, true, e + m);

	if (n)
		qsort(e, n, sizeof *e, by_name);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && strcmp(e[to].t->name, e[from].t->name) == 0; to++)
			continue;
		match_run(old, now, e + from, to - from, false);
	}
}

/* If what remains has the same ops, types and bytes on both sides, one after the other, all of it was renamed. */
static void
match_sequence(om_side *old, om_side *now, struct entry *e)
{
	const size_t n = list_open(old, false, e), m = list_open(now, true, e + n);

	for (size_t k = 0; k < n; k++)
		if (n != m || kind_order(&e[k], &e[n + k]) != 0)
			return;
	match_run(old, now, e, n + m, false);
}

static void
match_kinds(om_side *old, om_side *now, struct entry *e)
{
	const size_t m = list_open(old, false, e), n = m + list_open(now, true, e + m);

	if (n)
		qsort(e, n, sizeof *e, by_kind);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && kind_order(&e[to], &e[from]) == 0; to++)
			continue;
		match_run(old, now, e + from, to - from, true);
	}
}

/* ---- Lists of differences. ---- */

static uint64_t
distance(const om_change *c)
{
	return c->before > c->after ? c->before - c->after : c->after - c->before;
}

static int
by_effect(const void *a, const void *b)
{
	const om_change *x = a, *y = b;

	if (distance(x) != distance(y))
		return distance(x) > distance(y) ? -1 : 1;
	if (x->before != y->before || x->after != y->after)
		return x->before + x->after > y->before + y->after ? -1 : 1;
	return strcmp(x->now ? x->now : x->was, y->now ? y->now : y->was);
}

static void
sort_changes(om_changes *c)
{
	if (c->n)
		qsort(c->row, c->n, sizeof *c->row, by_effect);
}

static om_change
change_of(const om_side_tensor *was, const om_side_tensor *now)
{
	const om_side_tensor *t = now ? now : was;

	return (om_change){.was = was ? was->name : NULL, .now = now ? now->name : NULL, .op = t->op, .type = t->type,
		.before = was ? was->bytes : 0, .after = now ? now->bytes : 0};
}

static bool
is_shared(const om_side_tensor *t)
{
	return strcmp(t->store, "inplace") == 0 || strcmp(t->store, "view") == 0;
}

/* A tensor of both sides that is in the storage of another on one of them. */
static void
compare_stores(om_diff *d, const om_side_tensor *was, const om_side_tensor *now)
{
	om_change c = change_of(was, now);
	om_changes *to = is_shared(was) ? &d->unshared : &d->shared;

	if (is_shared(was) == is_shared(now))
		return;
	*(is_shared(was) ? &c.before : &c.after) = 0;
	to->row[to->n++] = c;
}

static void
compare_tensors(om_diff *d, om_arena *mem)
{
	const om_side *old = d->old, *now = d->now;
	om_changes *all[] = {&d->appeared, &d->went, &d->grew, &d->shrank, &d->renamed, &d->unshared, &d->shared};

	for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
		all[k]->row = OM_NEWN(mem, om_change, old->ntensor + now->ntensor);
	for (size_t k = 0; k < old->ntensor; k++)
		if (old->tensor[k].other == UINT32_MAX)
			d->went.row[d->went.n++] = change_of(&old->tensor[k], NULL);
	for (size_t k = 0; k < now->ntensor; k++) {
		const om_side_tensor *t = &now->tensor[k], *was = t->other == UINT32_MAX ? NULL : &old->tensor[t->other];
		const om_change c = change_of(was, t);
		om_changes *to = !was ? &d->appeared : c.after > c.before ? &d->grew : c.after < c.before ? &d->shrank : NULL;
		if (to)
			to->row[to->n++] = c;
		if (was && strcmp(c.was, c.now) != 0)
			d->renamed.row[d->renamed.n++] = c;
		if (was)
			compare_stores(d, was, t);
	}
	for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
		sort_changes(all[k]);
}

/* ---- The peaks. ---- */

struct live_name {
	const char *name;
	uint32_t tensor;
};

static int
by_live_name(const void *a, const void *b)
{
	return strcmp(((const struct live_name *)a)->name, ((const struct live_name *)b)->name);
}

/* Find the tensors that the storage at the peak is named after. */
static void
find_live(om_side *side, om_arena *mem)
{
	struct live_name *names = OM_NEWN(mem, struct live_name, side->ntensor);

	for (uint32_t k = 0; k < side->ntensor; k++)
		names[k] = (struct live_name){side->tensor[k].name, k};
	if (side->ntensor)
		qsort(names, side->ntensor, sizeof *names, by_live_name);
	for (size_t k = 0; k < side->nlive && side->ntensor; k++) {
		const struct live_name *at = bsearch(&(struct live_name){side->live[k].name, 0}, names, side->ntensor,
			sizeof *names, by_live_name);
		side->live[k].tensor = at ? at->tensor : UINT32_MAX;
	}
}

/* The name that storage of the old side has on the new one. */
static const char *
name_now(const om_diff *d, const om_side_live *l)
{
	const uint32_t other = l->tensor == UINT32_MAX ? UINT32_MAX : d->old->tensor[l->tensor].other;

	return other == UINT32_MAX ? l->name : d->now->tensor[other].name;
}

/* A line for storage that is live at one of the peaks; it may become one of both. */
struct pending {
	const char *key;         /* its name on the new side */
	const om_side_live *l;
	bool is_now;
};

static int
by_key(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;
	const int order = strcmp(x->key, y->key);

	if (order || x->is_now != y->is_now)
		return order ? order : x->is_now ? 1 : -1;
	return (x->l > y->l) - (x->l < y->l);
}

static void
add_live(om_diff *d, const om_side_live *was, const om_side_live *now)
{
	const om_side *side = now ? d->now : d->old;
	const om_side_live *l = now ? now : was;
	const om_side_tensor *t = l->tensor == UINT32_MAX ? NULL : &side->tensor[l->tensor];

	d->peak.row[d->peak.n++] = (om_change){.was = was ? was->name : NULL, .now = now ? now->name : NULL,
		.op = t ? t->op : "", .type = t ? t->type : "", .before = was ? was->bytes : 0, .after = now ? now->bytes : 0};
}

/* The entries of one key, those of the old side first: pair them in their order. */
static void
pair_live(om_diff *d, const struct pending *p, size_t n)
{
	size_t nold = 0;

	while (nold < n && !p[nold].is_now)
		nold++;
	for (size_t k = 0; k < nold || nold + k < n; k++)
		add_live(d, k < nold ? p[k].l : NULL, nold + k < n ? p[nold + k].l : NULL);
}

static void
compare_peaks(om_diff *d, om_arena *mem)
{
	const om_side *old = d->old, *now = d->now;
	const size_t n = old->nlive + now->nlive;
	struct pending *p = OM_NEWN(mem, struct pending, n);

	d->peak.row = OM_NEWN(mem, om_change, n);
	for (size_t k = 0; k < old->nlive; k++)
		p[k] = (struct pending){name_now(d, &old->live[k]), &old->live[k], false};
	for (size_t k = 0; k < now->nlive; k++)
		p[old->nlive + k] = (struct pending){now->live[k].name, &now->live[k], true};
	if (n)
		qsort(p, n, sizeof *p, by_key);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && strcmp(p[to].key, p[from].key) == 0; to++)
			continue;
		pair_live(d, p + from, to - from);
	}
	sort_changes(&d->peak);
}

/* ---- The order. ---- */

struct steps {
	uint64_t old, now;
};

static int
by_steps(const void *a, const void *b)
{
	const struct steps *x = a, *y = b;

	if (x->old != y->old)
		return x->old < y->old ? -1 : 1;
	return (x->now > y->now) - (x->now < y->now);
}

/* The length of the longest subsequence of new steps, in the order of the old ones, that does not decrease.
 * tail[k] is the least last step of such subsequences of length k + 1. */
static size_t
longest_in_order(const struct steps *p, size_t n, uint64_t *tail)
{
	size_t length = 0;

	for (size_t k = 0; k < n; k++) {
		size_t from = 0, to = length;
		while (from < to) {
			const size_t mid = from + (to - from) / 2;
			if (tail[mid] <= p[k].now)
				from = mid + 1;
			else
				to = mid;
		}
		tail[from] = p[k].now;
		length += from == length;
	}
	return length;
}

static size_t
count_moved(const om_diff *d, om_arena *mem)
{
	const om_side *old = d->old, *now = d->now;
	struct steps *p = OM_NEWN(mem, struct steps, now->ntensor);
	size_t n = 0;

	for (size_t k = 0; k < now->ntensor; k++)
		if (now->tensor[k].other != UINT32_MAX)
			p[n++] = (struct steps){old->tensor[now->tensor[k].other].first, now->tensor[k].first};
	if (n)
		qsort(p, n, sizeof *p, by_steps);
	return n - longest_in_order(p, n, OM_NEWN(mem, uint64_t, n));
}

om_status
om_diff_new(om_session *s, const json_t *old, const char *old_path, const json_t *now, const char *now_path,
	om_arena *mem, om_diff **out)
{
	om_diff *d = *out = OM_NEW(mem, om_diff);
	om_side *a, *b;

	OM_TRY(read_side(&(struct reader){s, mem, old_path}, old, &a));
	OM_TRY(read_side(&(struct reader){s, mem, now_path}, now, &b));
	d->old = a;
	d->now = b;
	d->has_tensors = a->has_tensors && b->has_tensors;
	if (d->has_tensors) {
		struct entry *e = OM_NEWN(mem, struct entry, a->ntensor + b->ntensor);
		match_names(a, b, e);
		match_sequence(a, b, e);
		match_kinds(a, b, e);
		compare_tensors(d, mem);
		d->moved = count_moved(d, mem);
	}
	find_live(a, mem);
	find_live(b, mem);
	compare_peaks(d, mem);
	return OM_OK;
}
