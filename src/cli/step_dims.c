/* SPDX-License-Identifier: Apache-2.0 */
/* The dims of a step of a decoder, for `--capacity ROWS` when options leave them open: pasts of all lengths that there are rows for, one
 * token, one sequence, and what follows from these.
 *
 * Exporters call dims that are equal by names of their own, or by one that says nothing of the others, so names are not enough: a dim follows from
 * the lengths if shape inference accepts what follows, and refuses one less.  A mask may be longer than the keys that it is added to, from which it is
 * cut, but not shorter.  Where it is read by computed indices, shapes tell nothing of its length, and the name attention_mask does.  What nothing
 * decides stays open, and is asked for. */
#include <config.h>

#include <string.h>

#include "cli/cli.h"
#include "ir/dim_expression.h"
#include "onnxmem/builder.h"

/* Sizes for which shapes are tried: no sum of two is a third. */
enum { PAST = 11, NEW = 3, MOST = 64 };

struct decided {
	const char *symbol;
	int64_t n;               /* when shapes are tried */
	const char *as;          /* another one that it follows from; NULL: none */
};

struct step {
	om_cli *c;
	om_session *quiet;       /* of inference, which may fail */
	om_host *host;
	om_prog *paired;         /* as loaded, with its states */
	om_prog *given;          /* bound as far as options go */
	const char *past, *new;  /* symbols: rows of the caches, tokens; NULL: none */
	int64_t npast, nnew;     /* when shapes are tried: as given, if they are */
	struct decided all[MOST];
	uint32_t n;
	const char *told;
};

/* ---- Symbols. ---- */

static bool
is(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static const char *
symbol_at(const om_value *v, int d)
{
	return v->shape.rank > d && v->shape.dim[d] < 0 ? v->shape.sym[d] : NULL;
}

/* Does an input of `p` have the symbol, at axis `axis` if that is not -1? */
static bool
has_symbol(const om_prog *p, const char *symbol, int axis)
{
	for (uint32_t k = 0; k < p->first->nparam; k++)
		for (int d = 0; d < p->first->param[k]->shape.rank; d++)
			if ((axis < 0 || d == axis) && is(symbol_at(p->first->param[k], d), symbol))
				return true;
	return false;
}

static bool
is_decided(const struct step *w, const char *symbol)
{
	for (uint32_t k = 0; k < w->n; k++)
		if (is(w->all[k].symbol, symbol))
			return true;
	return false;
}

static bool
is_open(const struct step *w, const char *symbol)
{
	return symbol && has_symbol(w->given, symbol, -1) && !is_decided(w, symbol);
}

static void
decide(struct step *w, const char *symbol, int64_t n, const char *as)
{
	if (w->n < MOST)
		w->all[w->n++] = (struct decided){symbol, n, is(symbol, as) ? NULL : as};
}

/* The number that options give a symbol, else `other`. */
static int64_t
given_or(const struct step *w, const char *symbol, int64_t other)
{
	int64_t n = -1;

	return symbol && om_cli_given_size(w->c, symbol, &n) == OM_OK && n >= 0 ? n : other;
}

/* ---- Caches. ---- */

/* The axis of the rows of a cache that grows; -1: it does not, as far as names of dims tell. */
static int
axis_of_rows(const struct step *w, const om_value *past, const om_value *present)
{
	for (int d = 1; d < past->shape.rank && past->shape.rank == present->shape.rank; d++) {
		const char *symbol = symbol_at(past, d);
		if (symbol && !is(symbol, symbol_at(present, d)) && present->shape.dim[d] < 0 && !has_symbol(w->paired, symbol, 0))
			return d;
	}
	return -1;
}

/* An attribute of an op that may be unknown, so that nothing was checked; 0: it is absent or no integer. */
static int64_t
integer_of(const om_op *op, const char *name)
{
	const om_attr *a = om_attr_find(op, name);

	return a && a->kind == OM_ATTR_INT ? *a->i : 0;
}

/* The rows of a cache that slides; 0: it grows. */
static int64_t
sliding_rows(const om_value *present)
{
	const om_op *op = present->def && is(present->def->type, "GroupQueryAttention") ? present->def : NULL;

	return op && integer_of(op, "sliding_window_cache") ? integer_of(op, "local_window_size") : 0;
}

struct other {
	const char *past, *found;
};

/* Any number will do: what is read are the names. */
static bool
note_other(const void *arg, const char *name, size_t n, int64_t *out)
{
	struct other *o = *(struct other *const *)arg;

	if (strlen(o->past) != n || memcmp(o->past, name, n) != 0)
		o->found = name;
	*out = 1;
	return true;
}

/* The other symbol of the rows afterwards, "past + tokens"; else that of the tokens. */
static const char *
find_tokens(const struct step *w, const char *rows_after)
{
	struct other o = {.past = w->past}, *at = &o;
	int64_t n;

	if (rows_after && om_dim_expression(rows_after, note_other, &at, &n) && o.found)
		return om_strndup(w->c->mem, o.found, strcspn(o.found, " +-*/()"));
	for (uint32_t k = 0; k < w->paired->first->nparam; k++) {
		const om_value *v = w->paired->first->param[k];
		if (strstr(v->name, "input_ids") && v->shape.rank == 2)
			return symbol_at(v, 1);
	}
	return NULL;
}

/* Decide rows of pasts and the tokens; false: no past is open. */
static bool
decide_rows(struct step *w)
{
	const om_prog *p = w->paired;

	for (uint32_t k = 0; k < p->nio_alias; k++) {
		const om_value *past = p->first->param[p->io_alias[k].param], *present = p->first->result[p->io_alias[k].result];
		const int d = axis_of_rows(w, past, present);
		const char *symbol = d < 0 ? NULL : symbol_at(past, d);
		if (!symbol || is_decided(w, symbol))
			continue;
		if (!w->past && !sliding_rows(present)) {
			w->past = symbol;
			w->new = find_tokens(w, symbol_at(present, d));
			w->npast = given_or(w, w->past, PAST);
			w->nnew = given_or(w, w->new, NEW);
		}
		decide(w, symbol, sliding_rows(present) ? sliding_rows(present) : w->npast, sliding_rows(present) ? NULL : w->past);
	}
	if (w->past && w->new)
		decide(w, w->new, w->nnew, NULL);
	return w->past && w->new;
}

/* Sequences: the first dim of the caches, and symbols that are the first dim wherever inputs have them. */
static void
decide_batches(struct step *w)
{
	const char *batch = w->paired->nio_alias ? symbol_at(w->paired->first->param[w->paired->io_alias[0].param], 0) : NULL;
	const int64_t n = given_or(w, batch, 1);

	if (batch)
		decide(w, batch, n, NULL);
	for (uint32_t k = 0; k < w->paired->first->nparam; k++) {
		const char *symbol = symbol_at(w->paired->first->param[k], 0);
		bool is_first = w->paired->first->param[k]->shape.rank > 1 && batch;
		for (int d = 1; symbol && d < OM_MAX_RANK; d++)
			is_first &= !has_symbol(w->paired, symbol, d);
		if (is_first && is_open(w, symbol))
			decide(w, symbol, n, batch);
	}
}

/* ---- Inference. ---- */

/* The program with what is decided, and `symbol` as `n` if it is not NULL, after inference; NULL: that is not possible. */
static om_prog *
inferred(struct step *w, const char *symbol, int64_t n)
{
	om_binding *b = om_binding_new();
	om_prog *p = NULL;

	om_status st = b ? om_cli_sizes(w->c, NULL, b) : OM_MEMORY;
	for (uint32_t k = 0; k < w->n && st == OM_OK; k++)
		if (given_or(w, w->all[k].symbol, -1) < 0)
			st = om_binding_dim(w->quiet, b, w->all[k].symbol, w->all[k].n);
	if (st == OM_OK && symbol)
		st = om_binding_dim(w->quiet, b, symbol, n);
	if (st == OM_OK)
		st = om_prog_bind(w->quiet, w->paired, b, &p);
	if (st == OM_OK)
		st = om_host_run(w->host, p, "inline,shapes,fold");
	om_binding_free(b);
	if (st != OM_OK) {
		om_prog_free(p);
		p = NULL;
	}
	return p;
}

static bool
is_possible(struct step *w, const char *symbol, int64_t n)
{
	om_prog *p = inferred(w, symbol, n);

	om_prog_free(p);
	return p != NULL;
}

/* The number of a dim of a cache that its output has, too, as inference finds it; -1: it does not. */
static int64_t
size_of_state(struct step *w, const om_prog *p, const char *symbol)
{
	for (uint32_t k = 0; k < p->nio_alias; k++) {
		const om_value *past = w->paired->first->param[p->io_alias[k].param], *present = w->paired->first->result[p->io_alias[k].result];
		const om_shape *s = &p->first->result[p->io_alias[k].result]->shape;
		for (int d = 0; d < past->shape.rank && d < s->rank; d++)
			if (is(symbol_at(past, d), symbol) && is(symbol_at(present, d), symbol) && s->dim[d] >= 0)
				return s->dim[d];
	}
	return -1;
}

static bool
is_rows_after(const struct step *w, const char *symbol)
{
	for (uint32_t k = 0; k < w->paired->nio_alias; k++) {
		const om_io_alias *a = &w->paired->io_alias[k];
		const om_value *past = w->paired->first->param[a->param], *present = w->paired->first->result[a->result];
		const int d = axis_of_rows(w, past, present);
		if (d >= 0 && is(symbol_at(past, d), w->past) && is(symbol_at(present, d), symbol))
			return true;
	}
	return false;
}

/* Is it the second dim of the mask of all keys, as exporters call it? */
static bool
is_mask(const struct step *w, const char *symbol)
{
	for (uint32_t k = 0; k < w->paired->first->nparam; k++)
		if (is(w->paired->first->param[k]->name, "attention_mask") && is(symbol_at(w->paired->first->param[k], 1), symbol))
			return true;
	return false;
}

/* ---- What is told and bound. ---- */

static om_status
define(struct step *w, const char *symbol, const char *as)
{
	w->told = om_printf(w->c->mem, "%s, %s=%s", w->told, symbol, as);
	OM_TRY(om_prog_define_dim(w->c->session, w->c->loaded, symbol, as));
	return om_prog_define_dim(w->c->session, w->c->prog, symbol, as);
}

static om_status
give(struct step *w, om_binding *b, const char *symbol, int64_t n)
{
	w->told = om_printf(w->c->mem, "%s, %s=%lld", w->told, symbol, (long long)n);
	return om_binding_dim(w->c->session, b, symbol, n);
}

/* What an open symbol is that was not decided. */
static om_status
find(struct step *w, om_binding *b, const om_prog *p, const char *symbol)
{
	const char *sum = om_printf(w->c->mem, "%s + %s", w->past, w->new);
	const struct { const char *as; int64_t n; } way[] = {{sum, w->npast + w->nnew}, {w->past, w->npast},
		{w->new, w->nnew}};
	const int64_t size = size_of_state(w, p, symbol);

	if (size >= 0)
		return give(w, b, symbol, size);
	if (is_rows_after(w, symbol))
		return define(w, symbol, sum);
	for (int k = 0; k < 3; k++)
		if (is_possible(w, symbol, way[k].n) && !is_possible(w, symbol, way[k].n - 1))
			return define(w, symbol, way[k].as);
	return is_mask(w, symbol) ? define(w, symbol, sum) : OM_OK;
}

static om_status
find_others(struct step *w, om_binding *b, const om_prog *p)
{
	const om_block *g = w->given->first;

	for (uint32_t k = 0; k < g->nparam; k++)
		for (int d = 0; d < g->param[k]->shape.rank; d++) {
			const char *symbol = symbol_at(g->param[k], d);
			if (!is_open(w, symbol) || strpbrk(symbol, " +-*/()"))
				continue;
			OM_TRY(find(w, b, p, symbol));
			decide(w, symbol, 0, NULL);
		}
	return OM_OK;
}

/* Tokens and rows: as given, else one token, and a range. */
static om_status
give_rows(struct step *w, om_binding *b, int64_t capacity)
{
	int64_t tokens = given_or(w, w->new, 1);
	om_dim_range *r;

	for (uint32_t k = 0; k < w->c->nrange; k++)
		tokens = is(w->c->range[k].symbol, w->new) ? w->c->range[k].high : tokens;
	if (has_symbol(w->given, w->new, -1))
		OM_TRY(give(w, b, w->new, 1));
	if (!has_symbol(w->given, w->past, -1) || capacity <= tokens)
		return OM_OK;
	r = OM_NEW(w->c->mem, om_dim_range);
	*r = (om_dim_range){w->past, 1, capacity - tokens, 1};
	w->c->assumed = r;
	w->c->nassumed = 1;
	w->told = om_printf(w->c->mem, "%s, %s=1..%lld", w->told, w->past, (long long)r->high);
	return OM_OK;
}

/* Other rows, windows, batches but those that are told by their names. */
static om_status
give_decided(struct step *w, om_binding *b)
{
	for (uint32_t k = 0; k < w->n; k++) {
		const struct decided *d = &w->all[k];
		if (is(d->symbol, w->past) || is(d->symbol, w->new) || !has_symbol(w->given, d->symbol, -1)
		    || (!d->as && om_symbol_is_batch(w->given, d->symbol)))
			continue;
		OM_TRY(d->as ? define(w, d->symbol, d->as) : give(w, b, d->symbol, d->n));
	}
	return OM_OK;
}

static om_status
give_all(struct step *w, om_binding *b, int64_t capacity)
{
	om_prog *p = w->host ? inferred(w, NULL, 0) : NULL;

	if (!p)                  /* the error is that of the dims that are open */
		return OM_OK;
	om_status st = give_rows(w, b, capacity);
	const uint32_t n = w->n;
	if (st == OM_OK)
		st = find_others(w, b, p);
	w->n = n;
	if (st == OM_OK)
		st = give_decided(w, b);
	om_prog_free(p);
	if (st == OM_OK && *w->told && !w->c->batch_told)
		om_warn(w->c->session, "--capacity plans a step of a decoder: %s; others are given with --dim and --dim-range", w->told + 2);
	w->c->batch_told |= *w->told != 0;
	return st;
}

/* Bound by all options. */
static om_status
bind_given(struct step *w)
{
	om_binding *b = om_binding_new();
	om_status st = b ? om_cli_sizes(w->c, NULL, b) : OM_MEMORY;

	for (uint32_t k = 0; k < w->c->nrange && st == OM_OK; k++)
		if (given_or(w, w->c->range[k].symbol, -1) < 0)
			st = om_binding_dim(w->c->session, b, w->c->range[k].symbol, w->c->range[k].high);
	if (st == OM_OK)
		st = om_prog_bind(w->c->session, w->c->prog, b, &w->given);
	om_binding_free(b);
	return st;
}

om_status
om_cli_step_dims(om_cli *c, om_binding *b)
{
	struct step w = {.c = c, .told = ""};
	uint64_t capacity = 0;

	OM_TRY(om_cli_number(c, "capacity", 1, INT32_MAX, &capacity));
	if (!capacity || c->nassumed)
		return OM_OK;
	OM_TRY(om_cli_ranges(c));
	om_status st = bind_given(&w);
	if (st == OM_OK && *om_open_inputs_text(w.given, c->mem))
		st = om_prog_bind(c->session, c->prog, NULL, &w.paired);
	if (st == OM_OK && w.paired && w.paired->nio_alias == 0)
		st = om_prog_states_by_name(c->session, w.paired, "auto");
	if (st == OM_OK && w.paired && decide_rows(&w)) {
		decide_batches(&w);
		w.quiet = om_session_new();
		w.host = om_host_new(w.quiet, NULL);
		st = give_all(&w, b, (int64_t)capacity);
	}
	om_host_free(w.host);
	om_session_free(w.quiet);
	om_prog_free(w.given);
	om_prog_free(w.paired);
	return st;
}
