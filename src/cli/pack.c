/* SPDX-License-Identifier: Apache-2.0 */
/* pack: run only the packer, on a problem from a table. */
#include <config.h>

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/npy.h"
#include "cli/pack_check.h"
#include "cli/tflite_table.h"
#include "report/json.h"

struct packing {
	om_packfile file;
	double ms;
	uint64_t sum;            /* bytes of all buffers */
	bool is_check;           /* the offsets are those of the table */
	uint32_t nfree;          /* buffers without one, which are left out */
	uint64_t anew;           /* with a single pool: the height of a packing of the same buffers that was made now */
	const char *fault;       /* why the packing of the table is not valid; NULL: it is */
};

/* ---- Input. ---- */

static om_status
read_table(om_cli *c, const char *path, om_table *out)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	char *data;
	size_t size;

	OM_TRY(om_file_read(c->session, is_stdin ? "/dev/stdin" : path, c->mem, &data, &size));
	if (om_tflite_is(data, size))
		return om_tflite_table(c->session, is_stdin ? "standard input" : path, data, size, c->mem, out);
	return om_table_parse(c->session, is_stdin ? "standard input" : path, data, size, c->mem, out);
}

/* "sram", "sram=256K", "sram=256K,align=16" */
static om_status
read_pool(om_cli *c, const char *text, om_pool *pool)
{
	const size_t n = strcspn(text, "="), m = strcspn(text, ",");
	const char *size = text[n] == '=' ? om_strndup(c->mem, text + n + 1, m - n - 1) : NULL;

	if (n == 0 || m < n || (text[m] && strncmp(text + m, ",align=", 7) != 0))
		return om_fail(c->session, OM_USAGE, "option --pool requires NAME, NAME=SIZE or NAME=SIZE,align=N, not %s", text);
	*pool = (om_pool){.name = om_strndup(c->mem, text, n)};
	if (size)
		OM_TRY(om_cli_size(c, "option --pool", size, &pool->limit));
	if (size && pool->limit == 0)
		return om_fail(c->session, OM_USAGE, "pool %s has size 0; omit the size for no limit", pool->name);
	if (text[m])
		OM_TRY(om_cli_size(c, "option --pool", text + m + 7, &pool->align));
	if (pool->align & (pool->align - 1))
		return om_fail(c->session, OM_USAGE, "the alignment of pool %s is not a power of two", pool->name);
	return OM_OK;
}

static om_status
read_pools(om_cli *c, om_packfile_how *how)
{
	size_t n = 0, cap = 0;
	om_pool *pool = NULL;

	for (size_t at = 0; at < c->nset;) {
		const char *text = om_cli_next(c, "pool", &at);
		om_pool one;
		if (!text)
			break;
		OM_TRY(read_pool(c, text, &one));
		for (size_t k = 0; k < n; k++)
			if (strcmp(pool[k].name, one.name) == 0)
				return om_fail(c->session, OM_USAGE, "pool %s is given twice", one.name);
		OM_PUSH(c->mem, pool, n, cap, one);
	}
	how->pool = pool;
	how->npool = (uint32_t)n;
	return OM_OK;
}

static om_status
read_problem(om_cli *c, struct packing *p)
{
	om_packfile_how how = {.align = 1, .forgets_offsets = om_cli_has(c, "ignore-offsets")};
	const char *pairs = om_cli_option(c, "pairs");
	om_problem *o = &p->file.problem;
	om_table table, list;
	double seconds = 2;
	uint64_t nodes = 0;

	OM_TRY(om_cli_number(c, "align", 1, 1 << 20, &how.align));
	if (how.align & (how.align - 1))
		return om_fail(c->session, OM_USAGE, "option --align requires a power of two, not %" PRIu64, how.align);
	OM_TRY(om_cli_number(c, "search-nodes", 1, UINT64_MAX, &nodes));
	OM_TRY(om_cli_float(c, "time-limit", &seconds));
	OM_TRY(read_pools(c, &how));
	OM_TRY(read_table(c, c->arg[0], &table));
	if (pairs)
		OM_TRY(read_table(c, pairs, &list));
	OM_TRY(om_packfile_read(c->session, &table, pairs ? &list : NULL, &how, c->mem, &p->file));
	o->nodes = nodes;
	o->seconds = nodes && !om_cli_has(c, "time-limit") ? 0 : seconds;
	return OM_OK;
}

/* ---- Output. ---- */

static void
put_field(FILE *to, const char *text)
{
	if (!strpbrk(text, ",\"") && *text != ' ' && *text != '#') {
		fputs(text, to);
		return;
	}
	putc('"', to);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', to);
		putc(*text, to);
	}
	putc('"', to);
}

/* The input table with the offsets filled in. */
static om_status
write_table(om_cli *c, FILE *to, const void *arg)
{
	const struct packing *p = arg;
	const om_table *t = &p->file.table;
	const om_problem *o = &p->file.problem;
	const bool has_pools = o->pool[0].name != NULL;

	(void)c;
	for (size_t k = 0; k < t->ncol; k++) {
		fputs(k ? "," : "", to);
		put_field(to, t->head[k]);
	}
	fprintf(to, "%s%s%s", p->file.offset < 0 ? ",offset" : "", has_pools && p->file.pool < 0 ? ",pool" : "", t->newline);
	for (size_t row = 0; row < t->nrow; row++) {
		const om_buffer *b = &o->buf[row];
		for (size_t k = 0; k < t->ncol; k++) {
			fputs(k ? "," : "", to);
			if ((int)k == p->file.offset)
				fprintf(to, "%" PRIu64, b->offset);
			else
				put_field(to, has_pools && (int)k == p->file.pool ? o->pool[b->pool].name
					: om_table_field(t, row, (int)k));
		}
		if (p->file.offset < 0)
			fprintf(to, ",%" PRIu64, b->offset);
		if (has_pools && p->file.pool < 0) {
			putc(',', to);
			put_field(to, o->pool[b->pool].name);
		}
		fputs(t->newline, to);
	}
	return OM_OK;
}

static double
gap_of(const om_pack_result *r)
{
	return r->lower_bound ? (double)r->height / (double)r->lower_bound - 1 : 0;
}

static json_t *
pool_json(om_cli *c, const om_problem *o, uint32_t k)
{
	const om_pool *pool = &o->pool[k];
	const om_pack_result *r = &pool->result;
	json_t *j = json_object();
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->n; i++)
		n += o->buf[i].pool == k;
	json_object_set_new(j, "name", om_json_text(c->mem, pool->name));
	json_object_set_new(j, "limit", pool->limit ? om_json_number(pool->limit) : json_null());
	json_object_set_new(j, "buffers", json_integer(n));
	json_object_set_new(j, "height", om_json_number(r->height));
	json_object_set_new(j, "lower_bound", om_json_number(r->lower_bound));
	json_object_set_new(j, "bound_step", o->by_pairs ? json_null() : json_integer(r->bound_step));
	json_object_set_new(j, "gap", json_real(gap_of(r)));
	json_object_set_new(j, "status", json_string(r->status == OM_PACK_OPTIMAL ? "optimal" : "feasible"));
	if (r->is_limited)
		json_object_set_new(j, "search_limited", json_true());
	json_object_set_new(j, "strategy", json_string(r->strategy));
	return j;
}

static om_status
write_json(om_cli *c, FILE *to, const void *arg)
{
	const struct packing *p = arg;
	const om_problem *o = &p->file.problem;
	json_t *j = json_object(), *pools = json_array();

	for (uint32_t k = 0; k < o->npool; k++)
		json_array_append_new(pools, pool_json(c, o, k));
	json_object_set_new(j, "schema", json_string("onnxmem-pack/1"));
	json_object_set_new(j, "problem", om_json_text(c->mem, p->file.table.path));
	json_object_set_new(j, "buffers", json_integer(o->n));
	json_object_set_new(j, "sum_bytes", om_json_number(p->sum));
	json_object_set_new(j, "pools", pools);
	if (p->is_check) {
		json_object_set_new(j, "valid", json_boolean(!p->fault));
		json_object_set_new(j, "fault", om_json_text(c->mem, p->fault));
		json_object_set_new(j, "without_offset", json_integer(p->nfree));
		json_object_set_new(j, "packed_anew_bytes", o->npool == 1 ? om_json_number(p->anew) : json_null());
	}
	json_object_set_new(j, "pack_ms", json_real(round(p->ms * 1000) / 1000));
	return om_json_write(c->session, j, JSON_INDENT(2) | JSON_REAL_PRECISION(6), to);
}

/* What a check found out. */
static void
verdict(const struct packing *p, FILE *to)
{
	char size[32];

	if (p->nfree)
		fprintf(to, "%" PRIu32 " buffer%s no offset and %s left out\n", p->nfree, p->nfree == 1 ? " has" : "s have",
			p->nfree == 1 ? "is" : "are");
	if (p->file.problem.npool == 1)
		fprintf(to, "packed anew: %" PRIu64 " (%s)\n", p->anew, om_bytes_text(p->anew, size));
	if (p->fault)
		fprintf(to, "FAILED %s\n", p->fault);
	else
		fprintf(to, "PASSED %" PRIu32 " buffers\n", p->file.problem.n - p->nfree);
}

static void
summary(const struct packing *p, FILE *to)
{
	const om_problem *o = &p->file.problem;
	char size[32];

	fprintf(to, "%s: %" PRIu32 " buffers, %" PRIu64 " bytes (%s) in all; %.1f ms\n", p->file.table.path, o->n,
		p->sum, om_bytes_text(p->sum, size), p->ms);
	for (uint32_t k = 0; k < o->npool; k++) {
		const om_pool *pool = &o->pool[k];
		const om_pack_result *r = &pool->result;
		fprintf(to, "%s%sheight %" PRIu64 " (%s)", pool->name ? pool->name : "", pool->name ? ": " : "",
			r->height, om_bytes_text(r->height, size));
		if (pool->limit)
			fprintf(to, " of %" PRIu64, pool->limit);
		fprintf(to, ", lower bound %" PRIu64, r->lower_bound);
		if (p->fault)
			fputs(", not valid\n", to);
		else
			fprintf(to, ", gap %.2f %%, %s%s%s\n", 100 * gap_of(r), r->status == OM_PACK_OPTIMAL ? "optimal"
				: r->is_limited ? "feasible, the search ended at its limit" : "feasible",
				p->is_check ? "" : ", found by ", p->is_check ? "" : r->strategy);
	}
	if (p->is_check)
		verdict(p, to);
}

/* ---- Pictures. ---- */

/* By buffer: its name in the column `name`, where there is one, else its id. */
static const char **
names_of(om_cli *c, const struct packing *p)
{
	const om_table *t = &p->file.table;
	const int col = om_table_column(t, "name");
	const char **name = OM_NEWN(c->mem, const char *, t->nrow);

	for (size_t k = 0; k < t->nrow; k++)
		name[k] = col >= 0 && *om_table_field(t, k, col) ? om_table_field(t, k, col) : p->file.problem.buf[k].name;
	return name;
}

static om_status
draw(om_cli *c, const struct packing *p)
{
	const char *svg = om_cli_option(c, "svg");

	if (!svg && !om_cli_has(c, "ascii"))
		return OM_OK;
	if (p->file.problem.by_pairs)
		return om_fail(c->session, OM_USAGE, "there is no picture of buffers without lifetimes: --pairs is given");
	om_report *r = om_report_of_packing(&p->file.problem, names_of(c, p), p->file.table.path, c->mem);
	r->fault = p->fault;
	if (svg)
		OM_TRY(om_cli_write(c, svg, om_cli_write_svg, r));
	return om_cli_has(c, "ascii") ? om_cli_write(c, "-", om_cli_write_ascii, r) : OM_OK;
}

/* ---- Packing, or checking. ---- */

static om_status
solve(om_cli *c, struct packing *p)
{
	om_problem *o = &p->file.problem;
	const double start = om_now_ms();
	om_status st = om_pack_solve(c->session, o);

	om_cli_progress_end(c);
	p->ms = om_now_ms() - start;
	if (st == OM_INVALID)
		return om_fail(c->session, OM_MALFORMED, "%s: %s", p->file.table.path, om_strdup(c->mem, om_message(c->session)));
	OM_TRY(st);
	return om_pack_check_problem(c->session, o);
}

/* The height that the packer finds for the buffers that have an offset, in one pool. */
static om_status
pack_anew(om_cli *c, struct packing *p)
{
	om_problem o = p->file.problem;
	om_pool pool = o.pool[0];

	o.buf = om_memdup(c->mem, o.buf, o.n * sizeof *o.buf);
	o.pool = &pool;
	pool.limit = 0;
	for (uint32_t k = 0; k < o.n; k++)
		o.buf[k].fixed = OM_OFFSET_FREE;
	const om_status st = om_pack_solve(c->session, &o);
	om_cli_progress_end(c);
	p->anew = pool.result.height;
	if (o.by_pairs && !p->fault) {   /* without lifetimes the packer alone has a bound */
		om_pack_result *r = &p->file.problem.pool[0].result;
		r->lower_bound = pool.result.lower_bound;
		r->status = r->height == r->lower_bound ? OM_PACK_OPTIMAL : OM_PACK_FEASIBLE;
	}
	return st;
}

/* The offsets of the table: note why they are not valid. */
static om_status
check(om_cli *c, struct packing *p)
{
	const double start = om_now_ms();

	OM_TRY(om_packfile_take(c->session, &p->file, c->mem, &p->nfree));
	om_status st = om_pack_check_problem(c->session, &p->file.problem);
	p->ms = om_now_ms() - start;
	if (st == OM_BADPLAN) {
		p->fault = om_strdup(c->mem, om_message(c->session));
		st = OM_OK;
	}
	OM_TRY(st);
	return p->file.problem.npool == 1 ? pack_anew(c, p) : OM_OK;
}

/* Outputs in files, or one on standard output; then the picture. */
static om_status
write_all(om_cli *c, const struct packing *p)
{
	const char *out = om_cli_option(c, "output"), *json = om_cli_option(c, "json"), *svg = om_cli_option(c, "svg");

	if (out)
		OM_TRY(om_cli_write(c, out, write_table, p));
	if (json)
		OM_TRY(om_cli_write(c, json, write_json, p));
	const bool taken = (out && strcmp(out, "-") == 0) || (json && strcmp(json, "-") == 0) || (svg && strcmp(svg, "-") == 0);
	if (!c->quiet)
		summary(p, taken ? stderr : stdout);
	return draw(c, p);
}

static om_status
run(om_cli *c)
{
	const char *out = om_cli_option(c, "output");
	struct packing p = {.is_check = om_cli_has(c, "check")};

	if (p.is_check && (out || om_cli_has(c, "ignore-offsets")))
		return om_fail(c->session, OM_USAGE, "option --check keeps the offsets of the table: --output and --ignore-offsets have no "
			"effect");
	if (out)
		OM_TRY(om_cli_own_path(c, c->arg[0], out));
	OM_TRY(read_problem(c, &p));
	const om_problem *o = &p.file.problem;
	for (uint32_t k = 0; k < o->n; k++)
		if (__builtin_add_overflow(p.sum, o->buf[k].bytes, &p.sum))
			p.sum = UINT64_MAX;
	OM_TRY(p.is_check ? check(c, &p) : solve(c, &p));
	OM_TRY(write_all(c, &p));
	c->told = !c->quiet && p.fault;
	return p.fault ? om_fail(c->session, OM_BADPLAN, "%s: %s", p.file.table.path, p.fault) : OM_OK;
}

static const om_opt opts[] = {
	{"output", "FILE", "write the table with offsets and pools (also -o)", .writes = OM_WRITES_FILE},
	{"json", "FILE", "write the result as JSON", .writes = OM_WRITES_FILE},
	{"pool", "NAME=SIZE[,align=N]", "a memory, fastest first; without =SIZE: no limit;\n"
		"                            repeatable"},
	{"align", "N", "every offset is a multiple of N bytes [1]"},
	{"pairs", "FILE", "a table of pairs of ids: only these buffers must not overlap"},
	{"check", NULL, "check the offsets in the table, those of another packer; do not pack"},
	{"svg", "FILE", "draw the packing: steps on the x axis, addresses on the y axis", .writes = OM_WRITES_FILE},
	{"ascii", NULL, "also draw the packing as text"},
	{"ignore-offsets", NULL, "ignore the column offset, for example an old solution"},
	{"time-limit", "S", "time limit of the search in seconds [2]"},
	{"search-nodes", "N", "limit each search by N nodes instead of by time; the result is\n"
		"                            the same on every machine"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_pack_cmd = {
	.name = "pack", .usage = "PROBLEM.csv [options]", .brief = "pack buffers from a table",
	.text = "Each line of the table is a buffer, with columns id, lower, upper and size in any order:\n"
		"size bytes are live in the steps from lower to upper - 1.  Optional columns:\n\n"
		"alignment: the offset is a multiple of it.\n\n"
		"offset: fixed offset of the buffer [none].\n\n"
		"pool: fixed pool of the buffer [the fastest with enough space].\n\n"
		"gaps: steps in which the buffer is not live, as 4-7 12-15, 7 and 15 exclusive; in 4-7@0:64\n"
		"only its bytes 0 to 63 are not live.\n\n"
		"access_bytes: memory traffic [size]; small buffers with much traffic get fast memory.\n\n"
		"group: buffers of one group are contiguous, in the order of their lines.\n\n"
		"The result is verified before it is written.  The exit status is 3 if a pool is too small.",
	.min_args = 1, .max_args = 1, .group = {&group}, .run = run,
};
