/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as a picture: x is the step, y the address, a rectangle a value.
 *
 * The picture keeps its size; with more values the rectangles get smaller and
 * lose their labels first, then their borders.  Every rectangle shows its name,
 * bytes and steps when pointed at.  Several arenas are stacked,
 * the first at the bottom.
 */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "report/report.h"

enum {
	LEFT = 92, RIGHT = 24, TOP = 84, BOTTOM = 56,
	HEIGHT = 560,                /* of the plot */
	NARROW = 900, WIDE = 1800,   /* limits of its width */
	STEP = 36,                   /* width of a step, where there are few */
	LINE = 13,                   /* height of a label */
};

/* Width of a character of a label, more or less. */
static const double letter_width = 6.5;

struct plot {
	const om_report *r;
	FILE *to;
	om_arena *mem;
	uint32_t from, steps;        /* steps shown: those with a live value */
	double width;                /* of the plot */
	double dx, dy;               /* per step, per byte */
	bool crowded;                /* too many values for borders */
};

static const struct { const char *fill[2], *text, *label; } looks[] = {
	[OM_BOX_OWN]     = {{"#7aa6d8", "#94b8e0"}, "#10263f", "own storage"},
	[OM_BOX_INPLACE] = {{"#86c38a", "#9dcfa0"}, "#12351a", "computed in place"},
	[OM_BOX_VIEW]    = {{"#e8c468", "#edd187"}, "#443300", "view"},
	[OM_BOX_SCRATCH] = {{"#c9a3d6", "#d5b7df"}, "#3b1d47", "scratch"},
};

/* Of rotating values: a value has one color in all its locations. */
static const struct { const char *fill, *text; } hues[] = {
	{"#66b2b2", "#0c3030"}, {"#e39a8d", "#4a1710"}, {"#a99bd8", "#221650"}, {"#d9a35f", "#452a05"},
	{"#8fbf6b", "#1d3a08"}, {"#d58fb8", "#471735"}, {"#7fb3e6", "#0d2c4d"}, {"#bdb76b", "#38350a"},
};

enum { NHUE = sizeof hues / sizeof hues[0] };

enum { NLOOK = sizeof looks / sizeof looks[0] };

static void
text(FILE *to, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '<': fputs("&lt;", to); break;
		case '>': fputs("&gt;", to); break;
		case '&': fputs("&amp;", to); break;
		case '"': fputs("&quot;", to); break;
		default:  putc(*s, to);
		}
}

static double
at_x(const struct plot *p, double step)
{
	return LEFT + (step - p->from) * p->dx;
}

static double
at_y(const struct plot *p, double address)
{
	return TOP + HEIGHT - address * p->dy;
}

/* ---- Axes. ---- */

/* 1, 2 or 5 times a power of ten, at least `least`. */
static uint64_t
round_step(double least)
{
	static const unsigned digits[] = {1, 2, 5};

	for (uint64_t ten = 1; ten < UINT64_MAX / 100; ten *= 10)
		for (size_t k = 0; k < sizeof digits / sizeof digits[0]; k++)
			if ((double)(ten * digits[k]) >= least)
				return ten * digits[k];
	return UINT64_MAX;
}

static void
step_axis(const struct plot *p)
{
	const uint64_t every = round_step(56 / p->dx);

	for (uint64_t s = (p->from + every - 1) / every * every; s < p->from + p->steps; s += every)
		fprintf(p->to, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>"
			"<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%" PRIu64 "</text>\n",
			at_x(p, (double)s + 0.5), TOP, TOP + HEIGHT, at_x(p, (double)s + 0.5), TOP + HEIGHT + 18, s);
	fprintf(p->to, "<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"end\">step</text>\n",
		LEFT - 8, TOP + HEIGHT + 18);
}

/* Ticks at powers of two times a unit, five to ten of them. */
static void
address_axis(const struct plot *p)
{
	const uint64_t top = p->r->arena_bytes;
	uint64_t every = 1;
	char bytes[32];

	while (top / every > 10)
		every *= 2;
	for (uint64_t a = 0; a <= top; a += every)
		fprintf(p->to, "<path class=\"grid\" d=\"M%d %.1fH%.1f\"/>"
			"<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			LEFT, at_y(p, (double)a), LEFT + p->width, LEFT - 8, at_y(p, (double)a) + 4,
			om_bytes_text(a, bytes));
}

/* ---- Rectangles. ---- */

/* The first step at which a later box of the same buffer covers this one. */
static uint32_t
seen_until(const om_report *r, uint32_t box)
{
	const om_box *x = &r->box[box];

	for (uint32_t k = box + 1; k < r->nbox && r->box[k].first <= x->last; k++) {
		const om_box *y = &r->box[k];
		if (y->buffer == x->buffer && y->first > x->first && y->offset < x->offset + x->bytes
		    && x->offset < y->offset + y->bytes)
			return y->first;
	}
	return x->last + 1;
}

/* The part of the name that fits in so many pixels: all, the part after its last slash,
 * or a prefix; NULL if that is too short. */
static const char *
fitting(const struct plot *p, const char *name, double room)
{
	enum { LEAST = 5 };
	const size_t n = room > 4 ? (size_t)((room - 4) / letter_width) : 0;
	const char *slash = strrchr(name, '/'), *at;
	size_t k = 0;

	if (om_letters(name) <= n)
		return name;
	if (slash && slash[1] && om_letters(slash + 1) <= n)
		return slash + 1;
	if (n < LEAST)
		return NULL;
	for (at = slash && slash[1] ? slash + 1 : name, name = at; k < n; at++)
		k += ((unsigned char)*at & 0xc0) != 0x80;
	return om_printf(p->mem, "%.*s\u2026", (int)(at - 1 - name), name);
}

static uint64_t
address(const struct plot *p, const om_box *x)
{
	return p->r->base[x->arena] + x->offset;
}

/* Name and bytes on two lines, the name alone, or the name rotated; as much as fits. */
static void
label(const struct plot *p, const om_box *x, const char *name, double left, double width)
{
	char bytes[32];
	const double height = (double)x->bytes * p->dy;
	const double cx = left + width / 2, cy = at_y(p, (double)address(p, x) + (double)x->bytes / 2);
	const bool lies = height >= LINE && (width >= height || fitting(p, name, width) == name);
	const char *part = lies ? fitting(p, name, width) : width >= LINE + 2 ? fitting(p, name, height) : NULL;

	if (!part)
		return;
	om_bytes_text(x->bytes, bytes);
	const bool two = lies && height >= 2 * LINE + 2 && (double)strlen(bytes) * letter_width + 4 <= width;
	if (lies)
		fprintf(p->to, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\"", cx, cy + (two ? -2 : 4));
	else
		fprintf(p->to, "<text class=\"name\" transform=\"translate(%.1f %.1f)rotate(-90)\"", cx + 4, cy);
	fprintf(p->to, " fill=\"%s\">", looks[x->kind].text);
	text(p->to, part);
	fputs("</text>", p->to);
	if (two)
		fprintf(p->to, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>", cx,
			cy + LINE - 2, looks[x->kind].text, bytes);
}

/* Draw a value at one of its locations in a loop. */
static void
draw_view(const struct plot *p, const om_box *x, const om_loop_view *t, size_t hue)
{
	const char *name = om_clean_text(p->mem, x->name);
	const uint64_t address = p->r->base[t->arena] + t->offset;
	const double left = at_x(p, t->from), width = (t->to - t->from) * p->dx, height = (double)t->bytes * p->dy;
	const double top = at_y(p, (double)(address + t->bytes));
	char bytes[32];

	fputs("<g><title>", p->to);
	text(p->to, name);
	fprintf(p->to, "\n%s (%" PRIu64 ") at %" PRIu64 "\n%s</title>"
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>", om_bytes_text(t->bytes, bytes),
		t->bytes, t->offset, t->when, left, top, width, height, hues[hue].fill);
	const char *part = height >= LINE ? fitting(p, name, width) : NULL;
	if (part) {
		fprintf(p->to, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" fill=\"%s\">", left + width / 2,
			top + height / 2 + 4, hues[hue].text);
		text(p->to, part);
		fputs("</text>", p->to);
	}
	fputs("</g>\n", p->to);
}

static void
draw_views(const struct plot *p, const om_box *x, uint32_t n, size_t *hue)
{
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < x[k].nview; i++)
			draw_view(p, &x[k], &x[k].view[i], *hue % NHUE);
		*hue += x[k].nview > 0;
	}
}

static void
rectangle(const struct plot *p, uint32_t box)
{
	const om_box *x = &p->r->box[box];
	const char *name = om_clean_text(p->mem, x->name);
	const double left = at_x(p, x->first), top = at_y(p, (double)(address(p, x) + x->bytes));
	const double width = (double)(x->last + 1 - x->first) * p->dx;
	const double seen = (double)(seen_until(p->r, box) - x->first) * p->dx;
	char bytes[32];

	if (x->bytes == 0)
		return;
	fprintf(p->to, "<g><title>");
	text(p->to, name);
	fprintf(p->to, "\n%s (%" PRIu64 ") at ", om_bytes_text(x->bytes, bytes), x->bytes);
	if (p->r->plan->narena > 1) {
		text(p->to, om_clean_text(p->mem, p->r->plan->arena[x->arena].name));
		putc(':', p->to);
	}
	fprintf(p->to, "%" PRIu64 "\nsteps %" PRIu32 " to %" PRIu32 ", %s</title>"
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"%s/>",
		x->offset, x->first, x->last, x->nview ? "reserved for rotating values" : looks[x->kind].label,
		left, top, width, (double)x->bytes * p->dy, looks[x->kind].fill[x->buffer % 2],
		x->nview ? " fill-opacity=\".3\"" : "");
	if (!x->nview)
		label(p, x, name, left, seen);
	fputs("</g>\n", p->to);
}

/* ---- Around the plot. ---- */

static void
head(const struct plot *p)
{
	const double width = LEFT + p->width + RIGHT, height = TOP + HEIGHT + BOTTOM;

	fprintf(p->to, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\">\n", width, height, width, height);
	fprintf(p->to, "<style>.grid{stroke:#dde2e8;stroke-width:1}.tick{font-size:11px;fill:#566270}"
		".name{font-size:11px;text-anchor:middle;pointer-events:none}"
		"rect{stroke:#fff;stroke-width:%s}.line{fill:none;stroke:#c0392b;stroke-width:1.5}"
		".peak{stroke-opacity:.55;stroke-dasharray:3 3}.bound{stroke:#566270;stroke-dasharray:6 4}.mark{font-size:11px;fill:#c0392b}"
		".key{font-size:12px;fill:#2c3640}</style>\n", p->crowded ? "0.15" : "0.8");
	fprintf(p->to, "<path fill=\"#fff\" d=\"M0 0H%.0fV%.0fH0z\"/>\n", width, height);
}

static void
title(const struct plot *p)
{
	const om_report *r = p->r;
	char arena[32], naive[32];

	fprintf(p->to, "<text x=\"%d\" y=\"28\" font-size=\"17\" fill=\"#2c3640\">", LEFT);
	text(p->to, om_clean_text(p->mem, r->model));
	fprintf(p->to, ": %s in %s, %s without sharing%s</text>\n", om_bytes_text(r->arena_bytes, arena),
		r->plan->narena > 1 ? "all arenas" : r->parallel_safe ? om_printf(p->mem, "one arena, %s", om_report_orders(r, p->mem))
			: "one arena",
		om_bytes_text(r->naive_bytes, naive), r->fault ? "; this plan is not valid" : "");
}

static bool
has_views(const om_report *r)
{
	for (uint32_t k = 0; k < r->nbox; k++)
		if (r->box[k].nview)
			return true;
	return r->nvisitor > 0;
}

/* Only the kinds that occur. */
static void
legend(const struct plot *p)
{
	unsigned kinds = 0;
	double x = LEFT;

	for (uint32_t k = 0; k < p->r->nbox; k++)
		kinds |= 1u << p->r->box[k].kind;
	for (size_t k = 0; k < NLOOK; k++) {
		if (!(kinds >> k & 1))
			continue;
		fprintf(p->to, "<rect x=\"%.0f\" y=\"44\" width=\"14\" height=\"14\" fill=\"%s\"/>"
			"<text class=\"key\" x=\"%.0f\" y=\"56\">%s</text>\n", x, looks[k].fill[0], x + 20, looks[k].label);
		x += 42 + 7 * (double)strlen(looks[k].label);
	}
	if (!has_views(p->r))
		return;
	for (size_t k = 0; k < 4; k++)
		fprintf(p->to, "<rect x=\"%.0f\" y=\"44\" width=\"4\" height=\"14\" fill=\"%s\"/>", x + 4 * (double)k, hues[k].fill);
	fprintf(p->to, "<text class=\"key\" x=\"%.0f\" y=\"56\">rotating: iterations of the loop side by side"
		"</text>\n", x + 22);
}

/* The borders between arenas. */
static void
borders(const struct plot *p)
{
	const om_plan *plan = p->r->plan;
	char bytes[32];

	for (uint32_t k = 0; k < plan->narena && plan->narena > 1; k++) {
		const double y = at_y(p, (double)(p->r->base[k] + plan->arena[k].bytes));
		fprintf(p->to, "<path class=\"line\" d=\"M%d %.1fH%.1f\"/><text class=\"mark\" x=\"%d\" y=\"%.1f\">",
			LEFT, y, LEFT + p->width, LEFT + 4, y + 14);
		text(p->to, om_clean_text(p->mem, plan->arena[k].name));
		fprintf(p->to, " %s</text>\n", om_bytes_text(plan->arena[k].bytes, bytes));
	}
}

/* The peak step, the end of the arena, and the lower bound if it is lower. */
static void
lines(const struct plot *p)
{
	const om_report *r = p->r;
	const double x = at_x(p, r->peak_step + 0.5), y = at_y(p, (double)r->arena_bytes);
	const char *anchor = x < LEFT + 80 ? "start" : x > LEFT + p->width - 80 ? "end" : "middle";
	char arena[32], bound[32];

	fprintf(p->to, "<path class=\"line\" d=\"M%d %.1fH%.1f\"/>"
		"<text class=\"mark\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s %s%s</text>\n",
		LEFT, y, LEFT + p->width, LEFT + p->width, y - 5, r->plan->narena > 1 ? "arenas" : "arena",
		om_bytes_text(r->arena_bytes, arena),
		r->arena_bytes == r->lower_bound_bytes ? " = lower bound" : "");
	if (r->arena_bytes != r->lower_bound_bytes)
		fprintf(p->to, "<path class=\"line bound\" d=\"M%d %.1fH%.1f\"/>"
			"<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">lower bound %s</text>\n",
			LEFT, at_y(p, (double)r->lower_bound_bytes), LEFT + p->width, LEFT + p->width,
			at_y(p, (double)r->lower_bound_bytes) + 14, om_bytes_text(r->lower_bound_bytes, bound));
	if (r->nlive == 0 || r->parallel_safe)
		return;
	fprintf(p->to, "<path class=\"line peak\" d=\"M%.1f %d V%d\"/>"
		"<text class=\"mark\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">peak: step %" PRIu32 "%s%s</text>\n",
		x, TOP, TOP + HEIGHT + 4, x, TOP + HEIGHT + 32, anchor, r->peak_step,
		r->peak_op ? ", " : "", r->peak_op ? r->peak_op->type : "");
}

static void
find_steps(struct plot *p)
{
	uint32_t last = 0;

	p->from = p->r->nbox ? p->r->box[0].first : 0;
	for (uint32_t k = 0; k < p->r->nbox; k++)
		last = p->r->box[k].last > last ? p->r->box[k].last : last;
	p->steps = last + 1 - p->from;
}

void
om_report_svg(const om_report *r, FILE *to)
{
	struct plot p = {.r = r, .to = to, .mem = om_arena_new()};
	size_t hue = 0;

	find_steps(&p);
	p.width = (double)p.steps * STEP;
	p.width = p.width < NARROW ? NARROW : p.width > WIDE ? WIDE : p.width;
	p.dx = p.width / p.steps;
	p.dy = HEIGHT / (double)(r->arena_bytes ? r->arena_bytes : 1);
	p.crowded = r->nbox > 400;
	head(&p);
	title(&p);
	legend(&p);
	step_axis(&p);
	address_axis(&p);
	for (uint32_t k = 0; k < r->nbox; k++)
		rectangle(&p, k);
	draw_views(&p, r->box, r->nbox, &hue);
	draw_views(&p, r->visitor, r->nvisitor, &hue);
	borders(&p);
	lines(&p);
	fputs("</svg>\n", to);
	om_arena_free(p.mem);
}
