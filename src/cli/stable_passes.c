/* Passes that make the same program for all sizes of ranges.
 *
 * What an executor fuses may depend on sizes, as those of 1 are broadcast.  Then there is no plan for all sizes, so such a pass is
 * left out.  Programs are compared for the ends of the ranges and for some sizes between them; a plan is read again for more. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "base/split.h"
#include "cli/cli.h"

enum { MOST_RANGES = 3 };


/* Combination `k` of sizes, the largest first: all ends of the first `ends` ranges, then two that are between the ends. */
static void
sizes_at(const om_cli *c, uint32_t ends, uint32_t k, int64_t *n)
{
	for (uint32_t d = 0; d < c->nrange; d++) {
		const om_dim_range *r = &c->range[d];
		if (k < 1u << ends)
			n[d] = d < ends && (k >> d & 1) ? r->low : r->high;
		else
			n[d] = k == 1u << ends ? r->low + (r->high > r->low) : r->low + (r->high - r->low) / 2;
	}
}

/* The shape of an input of c->prog, but for symbols with a range. */
static om_status
bind_input(om_cli *c, uint32_t input, const int64_t *n, om_binding *b)
{
	const om_value *open = c->loaded->first->param[input], *bound = c->prog->first->param[input];
	om_shape shape = bound->shape;

	if (bound->is_const && bound->data)
		return om_binding_value(c->session, b, open->name, bound->data);
	if (bound->type.kind != OM_TENSOR || !om_shape_is_known(&shape))
		return OM_OK;
	for (int d = 0; d < open->shape.rank && d < shape.rank; d++)
		for (uint32_t k = 0; k < c->nrange && open->shape.dim[d] < 0 && open->shape.sym[d]; k++)
			if (strcmp(c->range[k].symbol, open->shape.sym[d]) == 0)
				shape.dim[d] = n[k];
	return om_binding_shape(c->session, b, open->name, &shape);
}

/* The operators of all blocks, and what they compute. */
static const char *
outline(om_cli *c, const om_prog *p)
{
	size_t n = 0, cap = 0;
	char *text = NULL;

	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next) {
			const char *parts[] = {op->domain, ":", op->type, " ", op->nout && op->out[0] ? op->out[0]->name : "", "\n"};
			for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
				for (const char *at = parts[k]; *at; at++)
					OM_PUSH(c->mem, text, n, cap, *at);
		}
	OM_PUSH(c->mem, text, n, cap, 0);
	return text;
}

static om_status
run_for(om_cli *c, const int64_t *n, const char *passes, const char **text)
{
	om_binding *b = om_binding_new();
	om_prog *p = NULL;
	om_status st = b ? OM_OK : OM_MEMORY;

	for (uint32_t k = 0; st == OM_OK && k < c->loaded->first->nparam; k++)
		st = bind_input(c, k, n, b);
	if (st == OM_OK)
		st = om_prog_bind(c->session, c->loaded, b, &p);
	if (st == OM_OK)
		st = om_host_run(c->host, p, passes);
	if (st == OM_OK)
		*text = outline(c, p);
	om_prog_free(p);
	om_binding_free(b);
	return st;
}

/* Do the passes make one program of all sizes?  Combinations of sizes are compared with those that are all largest. */
static om_status
make_one_program(om_cli *c, const char *passes, bool *is_one)
{
	const uint32_t ends = c->nrange < MOST_RANGES ? c->nrange : MOST_RANGES;
	int64_t *n = OM_NEWN(c->mem, int64_t, c->nrange);
	const char *first = NULL, *text = NULL;

	*is_one = true;
	for (uint32_t k = 0; k < (1u << ends) + 2 && *is_one; k++) {
		sizes_at(c, ends, k, n);
		OM_TRY(run_for(c, n, passes, &text));
		first = first ? first : text;
		*is_one = strcmp(first, text) == 0;
	}
	return OM_OK;
}

static bool
rewrites(const char *pass)
{
	return strncmp(pass, "fuse", 4) == 0 || strncmp(pass, "lower-", 6) == 0;
}

static const char *
join(om_cli *c, const char *before, const char *pass)
{
	return *before ? om_printf(c->mem, "%s,%s", before, pass) : pass;
}

/* Passes up to the last one that rewrites, and the others. */
static om_status
choose(om_cli *c, const char **pass, size_t n, size_t last, const char **out)
{
	const char *kept = "";
	bool is_one;

	for (size_t k = 0; k < n; k++) {
		const char *with = join(c, kept, pass[k]);
		is_one = true;
		if (k <= last && rewrites(pass[k]))
			OM_TRY(make_one_program(c, with, &is_one));
		if (!is_one)
			om_info(c->session, "pass %s is left out: it makes other programs for other sizes", pass[k]);
		kept = is_one ? with : kept;
	}
	*out = kept;
	return OM_OK;
}

static om_status
find_pipeline(om_cli *c, const char **pipeline)
{
	size_t n, last = 0;
	const char **pass = om_split(c->mem, *pipeline, ",", &n), *rewriting = "";
	bool is_one = true;

	for (size_t k = 0; k < n; k++)
		last = rewrites(pass[k]) ? k : last;
	if (last == 0)
		return OM_OK;
	for (size_t k = 0; k <= last; k++)
		rewriting = join(c, rewriting, pass[k]);
	OM_TRY(make_one_program(c, rewriting, &is_one));
	return is_one ? OM_OK : choose(c, pass, n, last, pipeline);
}

om_status
om_cli_stable_pipeline(om_cli *c, const char **pipeline)
{
	om_cli_count_passes(c, false);
	const om_status st = find_pipeline(c, pipeline);
	om_cli_count_passes(c, true);
	return st;
}
