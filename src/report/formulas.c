/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of the sizes of a plan with ranges: as text, as JSON, and as macros of C. */
#include <config.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "onnxmem/formula.h"
#include "report/json.h"

/* The symbols of the plan's ranges, each as `form` says. */
static const char **
symbols(const om_plan *plan, om_arena *mem, const char *form)
{
	const char **all = OM_NEWN(mem, const char *, OM_FORMULA_SYMBOLS);

	for (uint32_t d = 0; d < OM_FORMULA_SYMBOLS; d++)
		all[d] = d < plan->nrange ? om_printf(mem, form, om_symbol_text(mem, om_clean_text(mem, plan->range[d].symbol))) : "";
	return all;
}

/* Both lists, one after the other. */
static const om_rounded *
joined(const om_formula *a, const om_formula *b, om_arena *mem)
{
	om_rounded *all = OM_NEWN(mem, om_rounded, (size_t)a->nrounded + b->nrounded);

	if (a->nrounded)
		memcpy(all, a->rounded, a->nrounded * sizeof *all);
	if (b->nrounded)
		memcpy(all + a->nrounded, b->rounded, b->nrounded * sizeof *all);
	return all;
}

/* The bytes of a run with `arena` bytes of arenas; NULL: not known. */
static const om_formula *
total_of(const om_plan *plan, const om_formula *arena, om_arena *mem)
{
	const om_formula *outside = plan->formulas->outside;
	om_formula *sum = OM_NEW(mem, om_formula);

	if (plan->narena != 1 || !outside)
		return NULL;
	*sum = (om_formula){arena->sum, joined(arena, outside, mem), arena->nrounded + outside->nrounded, NULL};
	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		if (__builtin_add_overflow(sum->sum.factor[k], outside->sum.factor[k], &sum->sum.factor[k]))
			return NULL;
	sum->other = arena->other ? total_of(plan, arena->other, mem) : NULL;
	return sum->other || !arena->other ? sum : NULL;
}

/* ---- Text. ---- */

/* "N = 1..7, S = 2..8", "H = 32..320 in steps of 32" */
static const char *
part_text(const om_plan *plan, const om_formula_piece *x, om_arena *mem)
{
	const char *text = "";

	for (uint32_t d = 0; d < plan->nrange; d++)
		text = om_printf(mem, "%s%s%s = %" PRId64 "..%" PRId64 "%s", text, d ? ", " : "", om_clean_text(mem, plan->range[d].symbol),
			x->low[d], x->high[d], om_dim_range_step(&plan->range[d]) == 1 ? ""
				: om_printf(mem, " in steps of %" PRId64, plan->range[d].step));
	return text;
}

/* What texts of formulas had of functions. */
struct functions {
	bool up, floor;
};

static void
write_formula(const char *name, const char *relation, const char *text, struct functions *has, FILE *to)
{
	has->up |= strstr(text, "up(") != NULL;
	has->floor |= strstr(text, "floor(") != NULL;
	fprintf(to, "    %s %s %s bytes\n", name, relation, text);
}

static void
write_piece(const om_plan *plan, const om_formula_piece *x, om_arena *mem, struct functions *has, FILE *to)
{
	const char *const *symbol = symbols(plan, mem, "%s");

	fprintf(to, "  for %s\n", part_text(plan, x, mem));
	for (uint32_t k = 0; k < plan->narena; k++) {
		const char *name = plan->narena > 1 ? om_clean_text(mem, plan->arena[k].name) : "arena";
		write_formula(name, x->least ? "<=" : "=", om_formula_text(mem, &x->arena[k], symbol, NULL), has, to);
		if (x->least)
			write_formula(name, ">=", om_formula_text(mem, &x->least[k], symbol, NULL), has, to);
	}
	const om_formula *total = total_of(plan, x->arena, mem);
	if (total)
		write_formula("total", x->least ? "<=" : "=", om_formula_text(mem, total, symbol, NULL), has, to);
}

static void
write_points(const om_plan *plan, om_arena *mem, FILE *to)
{
	for (uint32_t k = 0; k < plan->formulas->npoint; k++) {
		const om_formula_point *at = &plan->formulas->point[k];
		const char *text = "";
		for (uint32_t d = 0; d < plan->nrange; d++)
			text = om_printf(mem, "%s%s%s = %" PRId64, text, d ? ", " : "", om_clean_text(mem, plan->range[d].symbol), at->n[d]);
		fprintf(to, "  for %s: %" PRIu64 " bytes\n", text, at->arenas);
	}
}

void
om_report_formulas(const om_report *r, om_arena *mem, FILE *to)
{
	const om_plan *plan = r->prog->plan;
	const om_formulas *f = plan->formulas;
	struct functions has = {0};

	if (!f)
		return;
	if (f->why) {
		fprintf(to, "\nno formula of the arena: %s\n", om_clean_text(mem, f->why));
		write_points(plan, mem, to);
		return;
	}
	fputs("\nmemory by size:\n", to);
	for (uint32_t k = 0; k < f->npiece; k++)
		write_piece(plan, &f->piece[k], mem, &has, to);
	if (f->npiece && f->piece->least)
		fputs("  there is no exact formula: sizes are rounded up to the alignment\n", to);
	if (has.up)
		fputs("  up(N, A) is N, rounded up to a multiple of A\n", to);
	if (has.floor)
		fputs("  floor(N/D) is N divided by D, rounded down\n", to);
	if (f->why_unproven)
		fprintf(to, "  compared in %" PRIu64 " sizes, not proven for the others: %s\n", f->checked, om_clean_text(mem, f->why_unproven));
}

/* ---- The largest values. ---- */

struct sized {
	const om_value *value;
	const om_polynomial *bytes;
};

static int
by_bytes(const void *a, const void *b)
{
	const om_value *x = ((const struct sized *)a)->value, *y = ((const struct sized *)b)->value;
	const uint64_t m = om_value_bytes(x), n = om_value_bytes(y);

	return m != n ? (m < n) - (m > n) : (x->id > y->id) - (x->id < y->id);
}

void
om_report_largest(const om_report *r, om_arena *mem, uint32_t most, FILE *to)
{
	const om_formulas *f = r->prog->plan->formulas;
	struct sized *all = OM_NEWN(mem, struct sized, r->prog->plan->nplace);
	uint32_t n = 0;

	for (uint32_t k = 0; k < r->prog->plan->nplace; k++)
		if (f->bytes[k])
			all[n++] = (struct sized){r->prog->values[k], f->bytes[k]};
	if (n == 0)
		return;
	qsort(all, n, sizeof *all, by_bytes);
	fputs("\nlargest values:\n", to);
	for (uint32_t k = 0; k < n && k < most; k++)
		fprintf(to, "  %s: %s bytes\n", om_clean_text(mem, all[k].value->name),
			om_polynomial_text(mem, all[k].bytes, symbols(r->prog->plan, mem, "%s"), NULL));
	if (n > most)
		fprintf(to, "  and %" PRIu32 " more\n", n - most);
}

/* ---- JSON. ---- */

static json_t *
text_of(om_arena *mem, const om_formula *f, const char *const *symbol)
{
	return json_string(om_formula_text(mem, f, symbol, NULL));
}

static json_t *
arenas_json(const om_plan *plan, const om_formula *f, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < plan->narena; k++)
		json_array_append_new(all, text_of(mem, &f[k], symbols(plan, mem, "%s")));
	return all;
}

static json_t *
values_json(const om_report *r, const om_formula_piece *x, om_arena *mem)
{
	const om_plan *plan = r->prog->plan;
	const char *const *symbol = symbols(plan, mem, "%s");
	json_t *all = json_array();

	for (uint32_t k = 0; k < plan->nplace; k++)
		if (plan->formulas->bytes[k])
			json_array_append_new(all, json_pack("{s:o,s:i,s:o,s:s}", "name", om_json_text(mem, r->prog->values[k]->name),
				"arena", (int)plan->place[k].arena, "offset", x->offset[k] ? text_of(mem, x->offset[k], symbol) : json_null(),
				"bytes", om_polynomial_text(mem, plan->formulas->bytes[k], symbol, NULL)));
	return all;
}

static json_t *
piece_json(const om_report *r, const om_formula_piece *x, om_arena *mem)
{
	const om_plan *plan = r->prog->plan;
	const om_formula *total = total_of(plan, x->arena, mem);
	json_t *j = json_object(), *ranges = json_object();

	for (uint32_t d = 0; d < plan->nrange; d++) {
		json_t *ends = json_pack("[I,I]", (json_int_t)x->low[d], (json_int_t)x->high[d]);
		if (om_dim_range_step(&plan->range[d]) > 1)
			json_array_append_new(ends, json_integer((json_int_t)plan->range[d].step));
		json_object_set_new(ranges, om_clean_text(mem, plan->range[d].symbol), ends);
	}
	json_object_set_new(j, "ranges", ranges);
	json_object_set_new(j, x->least ? "arenas_at_most" : "arenas", arenas_json(plan, x->arena, mem));
	if (x->least)
		json_object_set_new(j, "arenas_at_least", arenas_json(plan, x->least, mem));
	if (total)
		json_object_set_new(j, x->least ? "total_at_most" : "total", text_of(mem, total, symbols(plan, mem, "%s")));
	if (x->offset)
		json_object_set_new(j, "values", values_json(r, x, mem));
	return j;
}

static json_t *
points_json(const om_plan *plan, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < plan->formulas->npoint; k++) {
		json_t *sizes = json_object();
		for (uint32_t d = 0; d < plan->nrange; d++)
			json_object_set_new(sizes, om_clean_text(mem, plan->range[d].symbol),
				json_integer((json_int_t)plan->formulas->point[k].n[d]));
		json_array_append_new(all, json_pack("{s:o,s:I}", "sizes", sizes, "arena_bytes",
			(json_int_t)plan->formulas->point[k].arenas));
	}
	return all;
}

json_t *
om_json_formulas(const om_report *r, om_arena *mem)
{
	const om_formulas *f = r->prog->plan->formulas;
	json_t *j = f ? json_object() : NULL, *pieces = f ? json_array() : NULL;

	if (!f)
		return NULL;
	json_object_set_new(j, "why_none", f->why ? om_json_text(mem, f->why) : json_null());
	json_object_set_new(j, "checked_sizes", json_integer((json_int_t)f->checked));
	json_object_set_new(j, "why_unproven", f->why_unproven ? om_json_text(mem, f->why_unproven) : json_null());
	for (uint32_t k = 0; k < f->npiece; k++)
		json_array_append_new(pieces, piece_json(r, &f->piece[k], mem));
	json_object_set_new(j, "pieces", pieces);
	if (f->npoint)
		json_object_set_new(j, "points", points_json(r->prog->plan, mem));
	return j;
}

/* ---- C. ---- */

struct macros {
	const om_plan *plan;
	om_arena *mem;
	FILE *to;
	const char *upper;
	const char *parameters;  /* "N, S" */
	const char *const *symbol; /* each as a number of 64 bits */
	const char *round, *largest; /* the macros that round up, and that have the larger number */
};

static const char *
identifier(om_arena *mem, const char *text, uint32_t k)
{
	const char *out = om_c_name(mem, text, false);

	return *out && !isdigit((unsigned char)*out) ? out : om_printf(mem, "n%" PRIu32, k);
}

static void
name_parameters(struct macros *m)
{
	const char **symbol = OM_NEWN(m->mem, const char *, OM_FORMULA_SYMBOLS);
	const char *names[OM_FORMULA_SYMBOLS];

	m->parameters = "";
	for (uint32_t d = 0; d < m->plan->nrange; d++) {
		names[d] = identifier(m->mem, m->plan->range[d].symbol, d);
		for (uint32_t k = 0; k < d; k++)
			if (strcmp(names[k], names[d]) == 0)
				names[d] = om_printf(m->mem, "%s_%" PRIu32, names[d], d + 1);
		m->parameters = om_printf(m->mem, "%s%s%s", m->parameters, d ? ", " : "", names[d]);
		symbol[d] = om_printf(m->mem, "(uint64_t)(%s)", names[d]);
	}
	m->symbol = symbol;
}

/* Do the numbers lie in the piece?  Pieces before it are excluded already, and numbers outside of the ranges are. */
static const char *
condition(const struct macros *m, const om_formula_piece *x)
{
	const char *text = "";

	for (uint32_t d = 0; d < m->plan->nrange; d++) {
		if (x->low[d] > 0)  /* unsigned numbers are at least 0 */
			text = om_printf(m->mem, "%s%s%s >= %" PRId64, text, *text ? " && " : "", m->symbol[d], x->low[d]);
		text = om_printf(m->mem, "%s%s%s <= %" PRId64, text, *text ? " && " : "", m->symbol[d], x->high[d]);
		const int64_t step = om_dim_range_step(&m->plan->range[d]);
		if (step > 1)
			text = om_printf(m->mem, "%s && %s %% %" PRId64 " == %" PRId64, text, m->symbol[d], step, x->low[d] % step);
	}
	return text;
}

/* The largest of `n` sums.  The macro takes two and has each of them twice: so halves are compared. */
static const char *
expression(const struct macros *m, const om_formula *f, uint32_t n)
{
	const om_formula one = {f->sum, f->rounded, f->nrounded, NULL};
	const om_formula_words words = {m->round, "", ""};
	const om_formula *half = f;

	if (n == 1)
		return om_formula_text(m->mem, &one, m->symbol, &words);
	for (uint32_t k = 0; k < n / 2; k++)
		half = half->other;
	return om_printf(m->mem, "%s(%s, %s)", m->largest, expression(m, f, n / 2), expression(m, half, n - n / 2));
}

static uint32_t
count_sums(const om_formula *f)
{
	uint32_t n = 0;

	for (; f; f = f->other)
		n++;
	return n;
}

/* A macro whose value is that of the formula of the piece that the numbers lie in; UINT64_MAX outside of the ranges. */
static void
define(const struct macros *m, const char *what, const om_formula *const *f)
{
	fprintf(m->to, "#define %s_%s_FOR(%s) (", m->upper, what, m->parameters);
	for (uint32_t k = 0; k < m->plan->formulas->npiece; k++)
		fprintf(m->to, "%s ? (uint64_t)(%s) : ", condition(m, &m->plan->formulas->piece[k]),
			expression(m, f[k], count_sums(f[k])));
	fputs("UINT64_MAX)\n", m->to);
}

static void
define_arena(const struct macros *m)
{
	const om_formulas *f = m->plan->formulas;
	const om_formula **of = OM_NEWN(m->mem, const om_formula *, f->npiece);

	for (uint32_t k = 0; k < f->npiece; k++)
		of[k] = f->piece[k].arena;
	define(m, "ARENA_BYTES", of);
}

/* Values whose offset has a formula in each piece. */
static void
define_value(const struct macros *m, uint32_t id, const char *name)
{
	const om_formulas *f = m->plan->formulas;
	const om_formula **of = OM_NEWN(m->mem, const om_formula *, f->npiece);

	for (uint32_t k = 0; k < f->npiece; k++) {
		of[k] = f->piece[k].offset[id];
		if (!of[k])
			return;
	}
	define(m, om_printf(m->mem, "OFFSET_%s", name), of);
}

void
om_report_c_formulas(const om_report *r, om_arena *mem, const char *upper, const char *const *name, FILE *to)
{
	const om_plan *plan = r->prog->plan;
	struct macros m = {.plan = plan, .mem = mem, .to = to, .upper = upper, .round = om_printf(mem, "%s_ROUND_UP", upper),
		.largest = om_printf(mem, "%s_MAX", upper)};

	if (!plan->formulas || plan->formulas->npiece == 0 || plan->formulas->piece->least || plan->narena != 1)
		return;
	if (plan->formulas->why_unproven) {
		fputs("\n/* The formula of the arena is not here: it is not proven for all sizes, see `onnxmem report`. */\n", to);
		return;
	}
	name_parameters(&m);
	fprintf(to, "\n/* The arena, and offsets in it, for the sizes %s; UINT64_MAX for others.  Offsets that\n"
		" * are the largest of several sums are not here. */\n"
		"#define %s(n, to) (((n) + (to) - 1) / (to) * (to))\n#define %s(a, b) ((a) > (b) ? (a) : (b))\n", m.parameters, m.round, m.largest);
	define_arena(&m);
	for (uint32_t k = 0; k < plan->nplace; k++)
		if (name[k] && plan->formulas->bytes[k])
			define_value(&m, k, name[k]);
}
