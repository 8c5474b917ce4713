/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for operators that are computed in parts: random windows, and shapes that parts of Reshape and others depend on.
 * Written as texts.def. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "slice_cases.h"

enum { WINDOWS = 150, ROOM = 512 };

/* A random number from [lo, hi]. */
static int
some(struct trial *t, int lo, int hi)
{
	return lo + (int)(om_rng_unit(&t->state) * (hi - lo + 1));
}

struct text {
	char text[ROOM];
	size_t n;
};

static void OM_PRINTF(2, 3)
add(struct text *x, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	x->n += (size_t)vsnprintf(x->text + x->n, ROOM - x->n, fmt, ap);
	va_end(ap);
}

static void
add_list(struct text *x, const char *name, int n, const int *v)
{
	add(x, "%s = [", name);
	for (int k = 0; k < n; k++)
		add(x, k ? ",%d" : "%d", v[k]);
	add(x, "]");
}

static void
add_dims(struct text *x, int n, const int *v)
{
	for (int k = 0; k < n; k++)
		add(x, ",%d", v[k]);
}

/* ---- Windows. ---- */

struct window {
	int n, in[3], kernel[3], stride[3], dilation[3], pads[6];
	const char *pad;        /* auto_pad; NULL: pads are given */
	bool ceil;
};

/* `most` is the largest padding in kernels: pools pad less than one. */
static struct window
some_window(struct trial *t, bool dilates, bool is_pool)
{
	static const char *const ways[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
	struct window w = {.n = 1 + (t->variant % 7 < 4) + (t->variant % 7 == 0)};

	for (int k = 0; k < w.n; k++) {
		w.kernel[k] = some(t, 1, 4);
		w.stride[k] = some(t, 1, 3);
		w.dilation[k] = dilates ? some(t, 1, 2) : 1;
		const int span = (w.kernel[k] - 1) * w.dilation[k] + 1;
		w.in[k] = span + some(t, 0, 8);
		w.pads[k] = some(t, 0, span - 1);
		w.pads[w.n + k] = some(t, 0, span - 1);
	}
	w.pad = some(t, 0, 3) ? NULL : ways[some(t, 0, 2)];
	w.ceil = is_pool && some(t, 0, 1);
	return w;
}

static void
add_window(struct text *x, const struct window *w, bool dilates)
{
	add_list(x, "kernel_shape", w->n, w->kernel);
	add(x, ", ");
	add_list(x, "strides", w->n, w->stride);
	if (dilates) {
		add(x, ", ");
		add_list(x, "dilations", w->n, w->dilation);
	}
	if (w->pad) {
		add(x, ", auto_pad = \"%s\"", w->pad);
	} else {
		add(x, ", ");
		add_list(x, "pads", 2 * w->n, w->pads);
	}
	if (w->ceil)
		add(x, ", ceil_mode = 1");
}

static bool
pool_case(struct trial *t)
{
	const bool average = strcmp(t->row->name, "AveragePool") == 0;
	const bool dilates = t->row->until == 0 && (!average || t->version >= 19);
	struct text params = {.n = 0}, body = {.n = 0};

	if (t->variant >= WINDOWS || t->row->until)
		return false;
	const struct window w = some_window(t, dilates, true);
	add(&params, "%%x: float32[2,3");
	add_dims(&params, w.n, w.in);
	add(&params, "]");
	add(&body, "%%y = %s(%%x) {", t->row->name);
	add_window(&body, &w, dilates);
	add(&body, average && some(t, 0, 1) ? ", count_include_pad = 1}" : "}");
	trial_from_text(t, params.text, body.text);
	return true;
}

static bool
conv_case(struct trial *t)
{
	struct text params = {.n = 0}, body = {.n = 0};
	static const int groups[][3] = {{1, 3, 4}, {2, 4, 6}, {4, 4, 4}, {3, 3, 6}};
	const int *g = groups[t->variant % 4];
	const bool bias = some(t, 0, 1);

	if (t->variant >= WINDOWS)
		return false;
	const struct window w = some_window(t, true, false);
	add(&params, "%%x: float64[2,%d", g[1]);
	add_dims(&params, w.n, w.in);
	add(&params, "], %%w: float64[%d,%d", g[2], g[1] / g[0]);
	add_dims(&params, w.n, w.kernel);
	add(&params, bias ? "], %%b: float64[%d]" : "]", g[2]);
	add(&body, "%%y = Conv(%%x, %%w%s) {group = %d, ", bias ? ", %b" : "", g[0]);
	add_window(&body, &w, true);
	add(&body, "}");
	trial_from_text(t, params.text, body.text);
	return true;
}

static bool
transposed_case(struct trial *t)
{
	struct text params = {.n = 0}, body = {.n = 0};
	static const int groups[][3] = {{1, 3, 4}, {2, 4, 3}, {4, 4, 1}};
	const int *g = groups[t->variant % 3];
	const bool bias = some(t, 0, 1);
	int more[3];

	if (t->variant >= WINDOWS)
		return false;
	struct window w = some_window(t, true, false);
	for (int k = 0; k < w.n; k++) {
		w.in[k] = some(t, 3, 7);
		w.pads[w.n + k] /= 2;
		more[k] = some(t, 0, w.stride[k] - 1);
	}
	add(&params, "%%x: float64[2,%d", g[1]);
	add_dims(&params, w.n, w.in);
	add(&params, "], %%w: float64[%d,%d", g[1], g[2]);
	add_dims(&params, w.n, w.kernel);
	add(&params, bias ? "], %%b: float64[%d]" : "]", g[2] * g[0]);
	add(&body, "%%y = ConvTranspose(%%x, %%w%s) {group = %d, ", bias ? ", %b" : "", g[0]);
	add_list(&body, "output_padding", w.n, more);
	add(&body, ", ");
	add_window(&body, &w, true);
	add(&body, "}");
	trial_from_text(t, params.text, body.text);
	return true;
}

/* ---- Movement. ---- */

static bool
pad_case(struct trial *t)
{
	struct text params = {.n = 0}, body = {.n = 0};
	const int n = some(t, 1, 3);
	int in[3] = {0}, pads[6] = {0};

	if (t->variant >= WINDOWS || t->row->until)
		return false;
	for (int k = 0; k < n; k++) {
		in[k] = some(t, 1, 6);
		pads[k] = some(t, -1, 4);
		pads[n + k] = some(t, in[k] + pads[k] > 1 ? -1 : 0, 4);
	}
	add(&params, "%%x: float32[%d", in[0]);
	add_dims(&params, n - 1, in + 1);
	add(&params, "]");
	add(&body, "%%p = const int64[%d] {%d", 2 * n, pads[0]);
	add_dims(&body, 2 * n - 1, pads + 1);
	add(&body, "}\n\t%%y = Pad(%%x, %%p)");
	trial_from_text(t, params.text, body.text);
	return true;
}

static void
add_const(struct text *x, char name, int n, const int *v)
{
	add(x, "%%%c = const int64[%d] {%d", name, n, v[0]);
	add_dims(x, n - 1, v + 1);
	add(x, "}\n\t");
}

static bool
slice_case(struct trial *t)
{
	struct text params = {.n = 0}, body = {.n = 0};
	const int n = some(t, 1, 3);
	int in[3] = {0}, start[3] = {0}, end[3] = {0}, step[3] = {0}, axis[3] = {0};

	if (t->variant >= WINDOWS || t->row->until)
		return false;
	for (int k = 0; k < n; k++) {
		in[k] = some(t, 1, 9);
		axis[k] = some(t, 0, 1) ? n - 1 - k : -1 - k;
		step[k] = some(t, 0, 4) ? some(t, 1, 3) : -some(t, 1, 2);
	}
	for (int k = 0; k < n; k++) {
		const int dim = in[axis[k] < 0 ? axis[k] + n : axis[k]];
		start[k] = some(t, -dim, dim - 1);
		end[k] = step[k] < 0 ? -100 : some(t, 0, 1) ? 100 : some(t, 0, dim);
	}
	add(&params, "%%x: float32[%d", in[0]);
	add_dims(&params, n - 1, in + 1);
	add(&params, "]");
	add_const(&body, 'b', n, start);
	add_const(&body, 'e', n, end);
	add_const(&body, 'a', n, axis);
	add_const(&body, 's', n, step);
	add(&body, "%%y = Slice(%%x, %%b, %%e, %%a, %%s)");
	trial_from_text(t, params.text, body.text);
	return true;
}

/* Two ways to split the same elements into dims. */
static bool
reshape_case(struct trial *t)
{
	static const int primes[] = {2, 3, 2, 5, 2};
	struct text params = {.n = 0}, body = {.n = 0};
	int shape[2][6], rank[2];

	if (t->variant >= WINDOWS || t->row->since < 5)
		return false;
	for (int i = 0; i < 2; i++) {
		rank[i] = 0;
		for (int k = 0, open = 0; k < 5; k++) {
			if (!open)
				shape[i][rank[i]++] = 1;
			shape[i][rank[i] - 1] *= primes[k];
			open = some(t, 0, 1);
		}
		if (rank[i] < 6 && some(t, 0, 1))
			shape[i][rank[i]++] = 1;
	}
	add(&params, "%%x: float32[%d", shape[0][0]);
	add_dims(&params, rank[0] - 1, shape[0] + 1);
	add(&params, "]");
	add_const(&body, 'n', rank[1], shape[1]);
	add(&body, "%%y = Reshape(%%x, %%n)");
	trial_from_text(t, params.text, body.text);
	return true;
}

static bool
resize_case(struct trial *t)
{
	static const char *const modes[] = {"nearest", "linear", "cubic"};
	static const char *const places[] = {"half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric"};
	static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
	struct text params = {.n = 0}, body = {.n = 0};
	int in[2], size[4] = {1, 2};

	if (t->variant >= 2 * WINDOWS || t->row->since < 11)
		return false;
	for (int k = 0; k < 2; k++) {
		const int factor = some(t, 1, 5);
		in[k] = some(t, 2, 6) * (some(t, 0, 1) ? factor : 1);
		size[2 + k] = in[k] % factor == 0 && some(t, 0, 1) ? in[k] / factor : in[k] * factor;
	}
	add(&params, "%%x: float32[1,2,%d,%d]", in[0], in[1]);
	add_const(&body, 'n', 4, size);
	add(&body, "%%y = Resize(%%x, _, _, %%n) {mode = \"%s\", coordinate_transformation_mode = \"%s\", nearest_mode = \"%s\"}",
		modes[some(t, 0, 2)], places[some(t, 0, 4)], rounds[some(t, 0, 3)]);
	trial_from_text(t, params.text, body.text);
	return true;
}

/* ---- Lines. ---- */

static const struct line {
	const char *name;
	int since;
	const char *params, *body;
} lines[] = {
#define LINE(name, since, params, body) {#name, since, params, body},
#include "slice_cases.def"
#undef LINE
};

static bool
is_of(const struct line *x, const om_opdef *row)
{
	char call[80];

	snprintf(call, sizeof call, "= %s%s%s(", row->domain ? row->domain : "", row->domain && *row->domain ? "::" : "", row->name);
	const bool is_in = x->since < 0 ? row->since <= -x->since && row->until >= -x->since
	    : row->until == 0 || row->until >= x->since;
	return strcmp(x->name, row->name) == 0 && is_in && strstr(x->body, call);
}

static bool
from_line(struct trial *t)
{
	unsigned at = 0;

	for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++)
		if (is_of(&lines[k], t->row) && at++ == t->variant) {
			trial_from_text(t, lines[k].params, lines[k].body);
			return true;
		}
	return false;
}

/* ---- The list. ---- */

static const struct recipe recipes[] = {
	{"ConvTranspose", transposed_case}, {"Pad", pad_case}, {"Reshape", reshape_case}, {"Resize", resize_case}, {"Slice", slice_case},
	{"AveragePool", pool_case}, {"LpPool", pool_case}, {"MaxPool", pool_case},
	{"Conv", conv_case},
};

recipe_fn *
slice_cases_of(const om_opdef *row)
{
	for (size_t k = 0; k < sizeof recipes / sizeof recipes[0] && !(row->domain && *row->domain); k++)
		if (strcmp(recipes[k].name, row->name) == 0)
			return recipes[k].make;
	return NULL;
}

recipe_fn *
slice_lines_of(const om_opdef *row)
{
	for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++)
		if (is_of(&lines[k], row))
			return from_line;
	return NULL;
}
