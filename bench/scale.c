/* SPDX-License-Identifier: Apache-2.0 */
/* The growth of the packer's time and memory with the number of buffers.
 *
 *	bench/scale OUT.csv OUT.svg [MOST]
 *
 * `make bench-scale` writes docs/scaling.csv and docs/scaling.svg.  Problems are
 * generated, from 100 to MOST (a million) buffers:
 *
 *   network   inference: every tensor is read by the next op or two, some by a
 *             later op (skip connections), in layers of varying width
 *   training  forward and backward iterations: the activations of a layer are live
 *             until its backward op
 *   random    lifetimes of random start and length, about 40 live at a step, one in
 *             a hundred very long
 *
 * Each is packed twice: by one pass, and by the whole portfolio within SECONDS (it
 * ends earlier if the bound is met).  Every packing is checked.  Each run is a
 * process of its own; memory is its peak, less its size before packing.
 */
#include <config.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "onnxmem/pack.h"

enum { KINDS = 3, SIZES = 9, SECONDS = 10 };

static const char *const kind_name[KINDS] = {"network", "training", "random"};

struct point {
	uint32_t n;
	uint64_t first;          /* height after one pass */
	double first_seconds;
	uint64_t height, bound;
	double seconds, bytes;   /* per buffer */
	bool is_optimal, is_valid;
};

/* ---- Problems. ---- */

static uint32_t
below(uint64_t *state, uint32_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % n);
}

static void
add(om_buffer *b, om_interval *live, uint32_t lower, uint32_t upper, uint64_t bytes)
{
	*live = (om_interval){.lower = lower, .upper = upper};
	*b = (om_buffer){.bytes = bytes, .align = 64, .live = live, .nlive = 1, .fixed = OM_OFFSET_FREE};
}

static void
make_network(om_buffer *b, om_interval *live, uint32_t n, uint64_t *state)
{
	uint64_t width = 64;

	for (uint32_t k = 0; k < n; k++) {
		if (below(state, 12) == 0)
			width = UINT64_C(64) << below(state, 6);
		const uint32_t skip = below(state, 8) == 0 ? 2 + below(state, 30) : below(state, 2);
		add(&b[k], &live[k], k, k + 2 + skip, width * 64 * (1 + below(state, 4)));
	}
}

static void
make_training(om_buffer *b, om_interval *live, uint32_t n, uint64_t *state)
{
	enum { LAYERS = 100 };

	for (uint32_t k = 0, step = 0; k < n; step += 2 * LAYERS) {
		for (uint32_t i = 0; i < LAYERS && k < n; i++, k++)
			add(&b[k], &live[k], step + i, step + 2 * LAYERS - i, UINT64_C(64) * (1 + below(state, 4096)));
		for (uint32_t i = 0; i < LAYERS && k < n; i++, k++)
			add(&b[k], &live[k], step + LAYERS + i, step + LAYERS + i + 2, UINT64_C(64) * (1 + below(state, 4096)));
	}
}

static void
make_random(om_buffer *b, om_interval *live, uint32_t n, uint64_t *state)
{
	for (uint32_t k = 0; k < n; k++) {
		const uint32_t lower = below(state, n);
		const uint32_t length = 1 + (below(state, 100) ? below(state, 80) : below(state, 2000));
		add(&b[k], &live[k], lower, lower + length, UINT64_C(64) * (1 + below(state, 1024)));
	}
}

static void
make(unsigned kind, om_buffer *b, om_interval *live, uint32_t n)
{
	uint64_t state = n * UINT64_C(0x9e3779b97f4a7c15) + kind;

	if (kind == 0)
		make_network(b, live, n, &state);
	else if (kind == 1)
		make_training(b, live, n, &state);
	else
		make_random(b, live, n, &state);
}

/* ---- A run. ---- */

static double
memory(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss * 1024;
}

static struct point
pack(unsigned kind, uint32_t n)
{
	om_buffer *b = calloc(n, sizeof *b);
	om_interval *live = calloc(n, sizeof *live);
	om_session *s = om_session_new();
	struct point p = {.n = n};
	om_pool pool = {0};
	om_problem first = OM_PROBLEM(.buf = b, .n = n, .pool = &pool, .npool = 1, .seconds = 1e-9, .nodes = 1);
	om_problem all = OM_PROBLEM(.buf = b, .n = n, .pool = &pool, .npool = 1, .seconds = SECONDS);

	if (!b || !live)
		return p;
	make(kind, b, live, n);
	const double before = memory(), start = om_now_ms();
	om_status st = om_pack_solve(s, &first);
	p.first = pool.result.height;
	p.first_seconds = (om_now_ms() - start) / 1e3;
	if (st != OM_OK || om_pack_check_problem(s, &first) != OM_OK)
		return p;
	const double again = om_now_ms();
	if (om_pack_solve(s, &all) == OM_OK) {
		p.seconds = (om_now_ms() - again) / 1e3;
		p.bytes = (memory() - before) / n;
		p.height = pool.result.height;
		p.bound = pool.result.lower_bound;
		p.is_optimal = pool.result.status == OM_PACK_OPTIMAL;
		p.is_valid = om_pack_check_problem(s, &all) == OM_OK;
	}
	om_session_free(s);
	free(b);
	free(live);
	return p;
}

static struct point
run(unsigned kind, uint32_t n)
{
	struct point p = {.n = n};
	int pipes[2];

	fflush(NULL);
	if (pipe(pipes) != 0)
		exit(EXIT_FAILURE);
	const pid_t child = fork();
	if (child == 0) {
		p = pack(kind, n);
		_exit(write(pipes[1], &p, sizeof p) == (ssize_t)sizeof p ? 0 : 1);
	}
	close(pipes[1]);
	if (child < 0 || read(pipes[0], &p, sizeof p) != (ssize_t)sizeof p)
		p.is_valid = false;
	close(pipes[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return p;
}

/* ---- The picture: two plots, both axes by powers of ten. ---- */

enum { WIDTH = 400, HEIGHT = 300, LEFT = 60, TOP = 40, GAP = 80 };

struct axis {
	double low, high;        /* powers of ten */
};

static const char *const color[KINDS] = {"#1b6ca8", "#c0392b", "#2e8b57"};

static double
at_x(const struct axis *a, double v)
{
	return LEFT + WIDTH * (log10(v) - a->low) / (a->high - a->low);
}

static double
at_y(const struct axis *a, double v)
{
	return TOP + HEIGHT - HEIGHT * (log10(v) - a->low) / (a->high - a->low);
}

enum what { FIRST, ALL, MEMORY };

static double
value(const struct point *p, enum what what)
{
	const double v = what == MEMORY ? p->bytes : (what == ALL ? p->seconds : p->first_seconds) * 1e6 / p->n;
	return v > 1e-3 ? v : 1e-3;
}

static void
frame(FILE *to, const struct axis *x, const struct axis *y, const char *title)
{
	fprintf(to, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", LEFT, TOP - 14, title);
	for (double p = x->low; p <= x->high + 0.1; p++)
		fprintf(to, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#ddd\"/>"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", at_x(x, pow(10, p)), TOP,
			at_x(x, pow(10, p)), TOP + HEIGHT, at_x(x, pow(10, p)), TOP + HEIGHT + 16, pow(10, p));
	for (double p = y->low; p <= y->high + 0.1; p++)
		fprintf(to, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT, at_y(y, pow(10, p)),
			LEFT + WIDTH, at_y(y, pow(10, p)), LEFT - 6, at_y(y, pow(10, p)) + 4, pow(10, p));
	fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">buffers</text>\n", LEFT + WIDTH / 2, TOP + HEIGHT + 34);
}

static void
curve(FILE *to, const struct axis *x, const struct axis *y, const struct point *p, uint32_t n, enum what what,
	const char *stroke)
{
	fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", stroke,
		what == FIRST ? " stroke-dasharray=\"5,4\"" : "");
	for (uint32_t k = 0; k < n; k++)
		fprintf(to, "%.1f,%.1f ", at_x(x, p[k].n), at_y(y, value(&p[k], what)));
	fputs("\"/>\n", to);
}

static void
plot(FILE *to, struct point (*p)[SIZES], uint32_t n, bool time)
{
	const struct axis x = {2, ceil(log10(p[0][n - 1].n) - 1e-9)};
	struct axis y = {99, -99};

	for (unsigned kind = 0; kind < KINDS; kind++)
		for (uint32_t k = 0; k < n; k++) {
			const enum what least = time ? FIRST : MEMORY, most = time ? ALL : MEMORY;
			y.low = fmin(y.low, floor(log10(value(&p[kind][k], least))));
			y.high = fmax(y.high, ceil(log10(value(&p[kind][k], most))));
		}
	y.high += y.high == y.low;
	fprintf(to, "<g transform=\"translate(%d,0)\">\n", time ? 0 : LEFT + WIDTH + GAP - 40);
	frame(to, &x, &y, time ? "microseconds per buffer; dashed: the first pass" : "bytes per buffer");
	for (unsigned kind = 0; kind < KINDS; kind++) {
		if (time)
			curve(to, &x, &y, p[kind], n, FIRST, color[kind]);
		curve(to, &x, &y, p[kind], n, time ? ALL : MEMORY, color[kind]);
		fprintf(to, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", LEFT + 10, TOP + 18 + 16 * (int)kind,
			color[kind], kind_name[kind]);
	}
	fputs("</g>\n", to);
}

static void
draw(FILE *to, struct point (*p)[SIZES], uint32_t n)
{
	const int width = 2 * (LEFT + WIDTH + GAP) - 100, height = TOP + HEIGHT + 50;

	fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
		"font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", width, height);
	plot(to, p, n, true);
	plot(to, p, n, false);
	fputs("</svg>\n", to);
}

int
main(int argc, char **argv)
{
	static struct point p[KINDS][SIZES];
	static const uint32_t size[SIZES] = {100, 316, 1000, 3162, 10000, 31623, 100000, 316228, 1000000};
	const uint32_t most = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1000000;
	uint32_t n = 0;
	bool failed = false;

	FILE *csv = argc > 2 ? fopen(argv[1], "w") : NULL, *svg = argc > 2 ? fopen(argv[2], "w") : NULL;
	if (!csv || !svg) {
		fputs("usage: bench/scale OUT.csv OUT.svg [MOST]\n", stderr);
		return 2;
	}
	fputs("kind,buffers,bound,first_height,first_seconds,height,ratio,status,seconds,bytes_per_buffer\n", csv);
	while (n < SIZES && size[n] <= most)
		n++;
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (uint32_t k = 0; k < n; k++) {
			const struct point *x = &p[kind][k];
			p[kind][k] = run(kind, size[k]);
			failed |= !x->is_valid;
			fprintf(csv, "%s,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%.5f,%" PRIu64 ",%.4f,%s,%.4f,%.0f\n",
				kind_name[kind], x->n, x->bound, x->first, x->first_seconds, x->height, x->bound ? (double)x->height / (double)x->bound : 1,
				!x->is_valid ? "wrong" : x->is_optimal ? "optimal" : "feasible", x->seconds, x->bytes);
			fflush(csv);
		}
	draw(svg, p, n);
	return fclose(csv) != 0 || fclose(svg) != 0 || failed;
}
