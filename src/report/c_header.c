/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as a C header, for programs that allocate the arena themselves.
 *
 * Names of a model are converted to C identifiers: other characters become _, and of
 * two equal ones the second gets a number. */
#include <config.h>

#include <ctype.h>
#include <inttypes.h>

#include "base/map.h"
#include "base/system.h"
#include "report/report.h"

struct header {
	const om_report *r;
	om_arena *mem;
	FILE *to;
	const char *lower, *upper;   /* the prefix of all names */
};

const char *
om_c_name(om_arena *mem, const char *text, bool capitals)
{
	char *out = om_strdup(mem, text);

	for (char *at = out; *at; at++)
		*at = !isalnum((unsigned char)*at) || (unsigned char)*at > 127 ? '_'
		    : capitals ? (char)toupper((unsigned char)*at) : *at;
	return out;
}

static const char *
unique(om_map *taken, om_arena *mem, const char *name)
{
	const char *one = name;

	for (unsigned k = 2; om_map_get(taken, one); k++)
		one = om_printf(mem, "%s_%u", name, k);
	om_map_set(taken, one, taken);
	return one;
}

/* A name of the model as a C string; question marks are escaped because of trigraphs. */
static void
write_string(FILE *to, const char *text)
{
	putc('"', to);
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			fprintf(to, "\\%c", *text);
		else if ((unsigned char)*text < ' ' || *text == '?' || (unsigned char)*text > 126)
			fprintf(to, "\\%03o", (unsigned char)*text);
		else
			putc(*text, to);
	putc('"', to);
}

static void
write_arenas(const struct header *h)
{
	const om_plan *plan = h->r->prog->plan;
	om_map taken = om_map_new(h->mem);

	fprintf(h->to, "#define %s_ARENAS %" PRIu32 "\n", h->upper, plan->narena);
	for (uint32_t k = 0; k < plan->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		const char *name = plan->narena == 1 ? "ARENA"
			: unique(&taken, h->mem, om_printf(h->mem, "ARENA_%s", om_c_name(h->mem, a->name, true)));
		if (plan->narena > 1)
			fprintf(h->to, "#define %s_%s %" PRIu32 "\n", h->upper, name, k);
		fprintf(h->to, "#define %s_%s_BYTES UINT64_C(%" PRIu64 ")\n#define %s_%s_ALIGN UINT64_C(%" PRIu64 ")\n", h->upper,
			name, a->bytes, h->upper, name, a->align);
	}
	fprintf(h->to, "#define %s_STEPS %" PRIu32 "\n", h->upper, h->r->steps);
}

static void
write_offsets(const struct header *h)
{
	const char **of_value = OM_NEWN(h->mem, const char *, h->r->prog->nvalue);
	om_map taken = om_map_new(h->mem);

	fprintf(h->to, "\n/* The offset of each value, by its name. */\n");
	for (uint32_t k = 0; k < h->r->nbox; k++) {
		const om_box *x = &h->r->box[k];
		if (x->is_later)
			continue;
		const char *name = unique(&taken, h->mem, om_c_name(h->mem, x->name, false));
		fprintf(h->to, "#define %s_OFFSET_%s UINT64_C(%" PRIu64 ")\n#define %s_BYTES_%s UINT64_C(%" PRIu64 ")\n", h->upper,
			name, x->offset, h->upper, name, x->bytes);
		if (x->value)
			of_value[x->value->id] = name;
	}
	om_report_c_formulas(h->r, h->mem, h->upper, of_value, h->to);
}

/* C has no empty arrays: an empty table has one row of zeros. */
static void
write_tensors(const struct header *h)
{
	fprintf(h->to, "\n/* The same as a table; a value is live in the steps first to last; if its lifetime has\n * gaps, it has a row for each range. */\nstruct %s_tensor {\n\tconst char *name;\n"
		"\tuint32_t arena, buffer;\n\tuint64_t offset, bytes;\n\tuint32_t first, last;\n};\n\n"
		"#define %s_TENSORS %" PRIu32 "\n\nstatic const struct %s_tensor %s_tensors[] = {\n", h->lower, h->upper, h->r->nbox,
		h->lower, h->lower);
	for (uint32_t k = 0; k < h->r->nbox; k++) {
		const om_box *x = &h->r->box[k];
		fputs("\t{", h->to);
		write_string(h->to, x->name);
		fprintf(h->to, ", %" PRIu32 ", %" PRIu32 ", %" PRIu64 ", %" PRIu64 ", %" PRIu32 ", %" PRIu32 "},\n", x->arena,
			x->buffer, x->offset, x->bytes, x->first, x->last);
	}
	fputs(h->r->nbox ? "};\n" : "\t{\"\", 0, 0, 0, 0, 0, 0},\n};\n", h->to);
}

static void
write_lives(const struct header *h)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < h->r->nbuffer; k++)
		n += h->r->buffer[k].nlive;
	fprintf(h->to, "\n/* Live ranges of buffers, which in-place values and views share: in the steps\n"
		" * [lower, upper) the bytes [offset, offset + bytes) of an arena are in use. */\nstruct %s_life {\n"
		"\tuint32_t arena, buffer;\n\tuint64_t offset, bytes;\n\tuint32_t lower, upper;\n};\n\n#define %s_BUFFERS %" PRIu32
		"\n#define %s_LIVES %" PRIu32 "\n\nstatic const struct %s_life %s_lives[] = {\n", h->lower, h->upper, h->r->nbuffer,
		h->upper, n, h->lower, h->lower);
	for (uint32_t k = 0; k < h->r->nbuffer; k++) {
		const om_report_buffer *b = &h->r->buffer[k];
		for (uint32_t i = 0; i < b->nlive; i++)
			fprintf(h->to, "\t{%" PRIu32 ", %" PRIu32 ", %" PRIu64 ", %" PRIu64 ", %" PRIu32 ", %" PRIu32 "},\n", b->arena, k,
				b->offset + b->live[i].from, b->live[i].to - b->live[i].from, b->live[i].lower, b->live[i].upper);
	}
	fputs(n ? "};\n" : "\t{0, 0, 0, 0, 0, 0},\n};\n", h->to);
}

/* Notes on the values that the header does not have. */
static void
write_notes(const struct header *h)
{
	const om_plan *plan = h->r->prog->plan;

	if (plan->nview)
		fprintf(h->to, "\n/* %" PRIu32 " values rotate buffers in a loop: their addresses are in the plan document\n"
			" * (`--export json:FILE`), not here; the memory that they rotate through is. */\n", plan->nview);
	if (h->r->bounded)
		fprintf(h->to, "\n/* %s. */\n", om_bounded_text(h->mem, h->r->bounded));
	if (plan->nunplanned)
		fprintf(h->to, "\n/* %" PRIu32 " values are allocated at run time, when their size is known; they are not here. */\n",
			plan->nunplanned);
}

/* The name of the file without folder and extension. */
static const char *
stem_of(om_arena *mem, const char *path)
{
	const char *slash = om_path_slash(path), *name = slash ? slash + 1 : path;
	const size_t n = strcspn(name, ".");

	name = om_c_name(mem, om_strndup(mem, name, n), false);
	return *name && !isdigit((unsigned char)*name) ? name : om_printf(mem, "plan%s%s", *name ? "_" : "", name);
}

void
om_report_c_header(const om_report *r, om_arena *mem, const char *path, const char *digest, FILE *to)
{
	struct header h = {r, mem, to, stem_of(mem, path), NULL};

	h.upper = om_c_name(mem, h.lower, true);
	fprintf(to, "/* Memory plan, made by %s.  Do not edit.\n * model: ", PACKAGE_STRING);
	for (const char *at = om_clean_text(mem, r->model); *at; at++)
		putc(*at == '*' || *at == '/' ? '_' : *at, to);
	fprintf(to, "\n * digest: %s\n * %s */\n#ifndef %s_PLAN_H\n#define %s_PLAN_H\n\n#include <stdint.h>\n\n", digest,
		r->status == OM_PACK_OPTIMAL ? om_report_scope(r) : "feasible", h.upper, h.upper);
	write_arenas(&h);
	write_notes(&h);
	write_offsets(&h);
	write_tensors(&h);
	write_lives(&h);
	fputs("\n#endif\n", to);
}
