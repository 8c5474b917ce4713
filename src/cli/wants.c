/* What a plan is asked to be: its arenas, its order, the time that it may take. */
#include <config.h>

#include <string.h>

#include "cli/cli.h"

enum { MAX_ALIGN = 1 << 20 };

/* ---- Arenas. ---- */

static bool
starts_with(const char *text, const char *start, const char **rest)
{
	const size_t n = strlen(start);

	if (strncmp(text, start, n) != 0)
		return false;
	*rest = text + n;
	return true;
}

static om_status
read_align(om_cli *c, const char *arena, const char *text, uint64_t *align)
{
	char *what = om_printf(c->mem, "align of --arena %s", arena);

	OM_TRY(om_cli_size(c, what, text, align));
	if (*align == 0 || *align & (*align - 1) || *align > MAX_ALIGN)
		return om_fail(c->session, OM_USAGE, "%s wants a power of two up to %d, not %s", what, MAX_ALIGN, text);
	return OM_OK;
}

/* "align=N" or "device=cpu". */
static om_status
read_word(om_cli *c, om_want *want, const char *word)
{
	const char *rest;

	if (starts_with(word, "align=", &rest))
		return read_align(c, want->name, rest, &want->align);
	if (!starts_with(word, "device=", &rest))
		return om_fail(c->session, OM_USAGE, "--arena %s knows align=N and device=cpu, not %s", want->name, word);
	if (strcmp(rest, "cpu") != 0)
		return om_fail(c->session, OM_USAGE, "--arena %s: there is no device %s; this version knows cpu", want->name,
			rest);
	return OM_OK;
}

/* NAME[=SIZE][,align=N][,device=cpu] */
static om_status
read_arena(om_cli *c, const char *text, om_want *want)
{
	const size_t name = strcspn(text, "=,");
	const char *at = text + name;

	*want = (om_want){.name = om_strndup(c->mem, text, name), .device = "cpu"};
	if (name == 0)
		return om_fail(c->session, OM_USAGE, "--arena wants NAME=SIZE[,align=N][,device=cpu], not %s", text);
	if (*at == '=') {
		const size_t n = strcspn(++at, ",");
		const char *size = om_strndup(c->mem, at, n);
		OM_TRY(om_cli_size(c, om_printf(c->mem, "--arena %s", want->name), size, &want->limit));
		if (want->limit == 0)
			return om_fail(c->session, OM_USAGE, "--arena %s: there is nothing to place in 0 bytes", want->name);
		at += n;
	}
	while (*at == ',') {
		const size_t n = strcspn(++at, ",");
		OM_TRY(read_word(c, want, om_strndup(c->mem, at, n)));
		at += n;
	}
	return OM_OK;
}

/* Behind an arena without limit nothing would ever lie. */
static om_status
check_arenas(om_cli *c, const om_want *want, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < k; i++)
			if (strcmp(want[i].name, want[k].name) == 0)
				return om_fail(c->session, OM_USAGE, "--arena %s is there twice", want[k].name);
		if (k + 1 < n && want[k].limit == 0)
			return om_fail(c->session, OM_USAGE, "--arena %s wants a size: only the last arena may go without",
				want[k].name);
	}
	return OM_OK;
}

/* A budget without arenas is the limit of the only one. */
static om_status
want_arenas(om_cli *c)
{
	const char *text, *budget = om_cli_option(c, "budget");
	uint32_t n = 0;

	if (budget)
		OM_TRY(om_cli_size(c, "option --budget", budget, &c->budget));
	if (budget && c->budget == 0)
		return om_fail(c->session, OM_USAGE, "option --budget wants a size above 0");
	om_want *want = OM_NEWN(c->prog->mem, om_want, c->nset + 1);
	for (size_t at = 0; (text = om_cli_next(c, "arena", &at));)
		OM_TRY(read_arena(c, text, &want[n++]));
	OM_TRY(check_arenas(c, want, n));
	if (n == 0 && budget)
		want[n++] = (om_want){.name = "arena", .device = "cpu", .limit = c->budget};
	c->prog->want = want;
	c->prog->nwant = n;
	return OM_OK;
}

om_status
om_cli_want(om_cli *c)
{
	c->prog->order_free = om_cli_has(c, "order-free");
	return want_arenas(c);
}

bool
om_cli_wants(const om_cli *c)
{
	static const char *const names[] = {"passes", "align", "order", "recompute", "time-limit", "budget", "arena", "order-free"};

	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (om_cli_has(c, names[k]))
			return true;
	return false;
}

/* ---- The pipeline. ---- */

static bool
is_pass(const char *at, size_t n, const char *name)
{
	const size_t len = strlen(name);
	return n >= len && memcmp(at, name, len) == 0 && (n == len || at[len] == '=' || at[len] == ':');
}

/* Everything that looks at steps comes behind the order. */
static bool
needs_order(const char *at, size_t n)
{
	static const char *const names[] = {"live", "views", "inplace", "loops", "pool", "color", "nnc", "pack"};

	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (is_pass(at, n, names[k]))
			return true;
	return false;
}

/* `pipeline` with another order: in place of the one that it has, else before
 * the first pass that looks at steps. */
static const char *
with_order(om_cli *c, const char *pipeline, const char *order)
{
	const char *text = "", *comma = "", *at;
	bool done = false;
	size_t n;

	for (at = pipeline; *at; at += n + (at[n] == ',')) {
		n = strcspn(at, ",");
		const bool is_order = is_pass(at, n, "order");
		if (!done && (is_order || (needs_order(at, n) && !strstr(pipeline, "order")))) {
			text = om_printf(c->mem, "%s%sorder=%s", text, comma, order);
			comma = ",";
			done = true;
		}
		if (is_order)
			continue;
		text = om_printf(c->mem, "%s%s%.*s", text, comma, (int)n, at);
		comma = ",";
	}
	return done ? text : om_printf(c->mem, "%s%sorder=%s", text, comma, order);
}

/* `pipeline` with the pass recompute behind the order, for --recompute and --budget. */
static om_status
with_recompute(om_cli *c, const char **pipeline)
{
	const char *text = "", *at;
	uint64_t percent = 0;
	size_t n;

	OM_TRY(om_cli_number(c, "recompute", 1, 100000, &percent));
	for (at = *pipeline; *at; at += n + (at[n] == ',')) {
		n = strcspn(at, ",");
		text = om_printf(c->mem, "%s%s%.*s", text, *text ? "," : "", (int)n, at);
		if (is_pass(at, n, "order"))
			text = om_printf(c->mem, "%s,recompute=%llu:budget=%llu", text, (unsigned long long)percent,
				(unsigned long long)c->budget);
	}
	if (!strstr(text, ",recompute="))
		return om_fail(c->session, OM_USAGE, "--recompute goes with passes that have an order among them, not with %s",
			*pipeline);
	*pipeline = text;
	return OM_OK;
}

/* The packer may look at a clock. */
static const char *
with_time(om_cli *c, const char *pipeline, double seconds)
{
	const char *text = "", *at;
	size_t n;

	for (at = pipeline; *at; at += n + (at[n] == ',')) {
		n = strcspn(at, ",");
		text = om_printf(c->mem, "%s%s%.*s", text, *text ? "," : "", (int)n, at);
		if (is_pass(at, n, "pack"))
			text = om_printf(c->mem, "%s:seconds=%g", text, seconds);
	}
	return text;
}

om_status
om_cli_pipeline(om_cli *c, const char **pipeline)
{
	const char *order = om_cli_option(c, "order");
	double seconds = -1;

	OM_TRY(om_cli_float(c, "time-limit", &seconds));
	if (order && (!*order || strpbrk(order, ",:=")))
		return om_fail(c->session, OM_USAGE, "option --order wants file, bfs or mem, not %s", order);
	if (!order && c->prog->order_free && strstr(*pipeline, "order"))
		order = "file";  /* one is as good as another */
	if (order)
		*pipeline = with_order(c, *pipeline, order);
	if (om_cli_has(c, "recompute"))
		OM_TRY(with_recompute(c, pipeline));
	if (seconds >= 0)
		*pipeline = with_time(c, *pipeline, seconds);
	return OM_OK;
}
