/* SPDX-License-Identifier: Apache-2.0 */
/* The height, time and memory of the packer, compared with other strategies, on
 * problems from tables.
 * 	bench/pack [--seconds S] [--search-nodes N] [--known FILE] [FILE-OR-FOLDER ...]
 *
 * `make bench-pack` runs it on ../shared/data/dsa.  Every run is a process of its
 * own, whose peak memory is measured, including the reading of the table.  Every
 * packing is checked.  The other strategies, reimplemented here:
 *   sizes   largest buffer first, each in the tightest gap between those that are
 *           live at the same time: TensorFlow Lite's arena
 *   stream  in the order of their first step, each in the tightest gap at that time,
 *           without lookahead: ONNX Runtime's memory patterns
 *   first   the first pass of our packer
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/pack_csv.h"

struct options {
	double seconds;
	uint64_t nodes;
	om_table known;
	bool has_known;
};

/* The result of a run, sent through a pipe. */
struct outcome {
	uint32_t buffers;
	uint64_t height, bound;
	bool is_optimal, is_valid;
	double seconds;
	char what[160];          /* the strategy, or the error */
};

struct measured {
	struct outcome o;
	double mib;
};

typedef om_status packer(om_session *s, om_problem *p, om_pack_result *r);

/* ---- Other strategies. ---- */

struct placed {
	uint64_t offset, end;
	uint32_t lower, upper;
};

/* The tightest gap below the end of `v`, sorted by offset, between those that are
 * live in [lower, upper); otherwise after the last. */
static uint64_t
tightest(const struct placed *v, uint32_t n, const om_buffer *b, uint32_t lower, uint32_t upper)
{
	uint64_t floor = 0, best = UINT64_MAX, slack = UINT64_MAX;

	for (uint32_t k = 0; k < n; k++) {
		if (v[k].lower >= upper || v[k].upper <= lower)
			continue;
		const uint64_t at = b->align > 1 ? (floor + b->align - 1) / b->align * b->align : floor;
		if (v[k].offset >= at + b->bytes && v[k].offset - floor < slack) {
			slack = v[k].offset - floor;
			best = at;
		}
		floor = v[k].end > floor ? v[k].end : floor;
	}
	if (best != UINT64_MAX)
		return best;
	return b->align > 1 ? (floor + b->align - 1) / b->align * b->align : floor;
}

static void
put(struct placed *v, uint32_t *n, const struct placed *x)
{
	uint32_t from = 0, to = *n;

	while (from < to) {
		const uint32_t mid = from + (to - from) / 2;
		if (v[mid].offset <= x->offset)
			from = mid + 1;
		else
			to = mid;
	}
	memmove(v + from + 1, v + from, (*n - from) * sizeof *v);
	v[from] = *x;
	++*n;
}

/* `keeps`: dead buffers stay in the list, for later buffers that live earlier. */
static uint64_t
one_by_one(om_problem *p, const uint32_t *order, bool keeps, om_arena *mem)
{
	struct placed *v = OM_NEWN(mem, struct placed, p->n);
	uint64_t height = 0;
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->n; k++) {
		om_buffer *b = &p->buf[order[k]];
		const struct placed *last = &v[n];
		struct placed x = {.lower = b->live[0].lower, .upper = b->live[b->nlive - 1].upper};
		if (!keeps) {
			uint32_t m = 0;
			for (const struct placed *at = v; at < last; at++)
				if (at->upper > x.lower)
					v[m++] = *at;
			n = m;
		}
		b->offset = tightest(v, n, b, x.lower, keeps ? x.upper : UINT32_MAX);
		x.offset = b->offset;
		x.end = b->offset + b->bytes;
		height = x.end > height ? x.end : height;
		put(v, &n, &x);
	}
	return height;
}

struct key {
	uint64_t bytes;
	uint32_t lower, buf;
};

static int
by_size(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static int
by_birth(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static om_status
pack_plainly(om_problem *p, int (*order)(const void *, const void *), bool keeps, om_pack_result *r)
{
	om_arena *mem = om_arena_new();
	struct key *key = OM_NEWN(mem, struct key, p->n);
	uint32_t *list = OM_NEWN(mem, uint32_t, p->n);

	for (uint32_t k = 0; k < p->n; k++)
		key[k] = (struct key){p->buf[k].bytes, p->buf[k].live[0].lower, k};
	qsort(key, p->n, sizeof *key, order);
	for (uint32_t k = 0; k < p->n; k++)
		list[k] = key[k].buf;
	*r = (om_pack_result){.height = one_by_one(p, list, keeps, mem), .strategy = ""};
	om_arena_free(mem);
	return OM_OK;
}

static om_status
pack_sizes(om_session *s, om_problem *p, om_pack_result *r)
{
	(void)s;
	return pack_plainly(p, by_size, true, r);
}

static om_status
pack_stream(om_session *s, om_problem *p, om_pack_result *r)
{
	(void)s;
	return pack_plainly(p, by_birth, false, r);
}

/* ---- The packer. ---- */

static om_status
pack_ours(om_session *s, om_problem *p, om_pack_result *r)
{
	om_status st = om_pack_solve(s, p);

	*r = p->pool[0].result;
	return st;
}

static om_status
pack_first(om_session *s, om_problem *p, om_pack_result *r)
{
	p->seconds = 1e-9;
	p->nodes = 1;
	return pack_ours(s, p, r);
}

/* ---- A run. ---- */

static char *
read_file(const char *path, size_t *size)
{
	FILE *in = fopen(path, "rb");
	struct stat st;
	char *data = NULL;

	if (in && fstat(fileno(in), &st) == 0 && (data = malloc((size_t)st.st_size + 1)) != NULL) {
		*size = fread(data, 1, (size_t)st.st_size, in);
		data[*size] = '\0';
	}
	if (in)
		fclose(in);
	return data;
}

static om_status
pack_file(om_session *s, const char *path, const struct options *o, packer *pack, struct outcome *out)
{
	om_arena *mem = om_arena_new();
	om_pack_result r = {0};
	om_packfile f;
	om_table t;
	size_t size = 0;
	char *data = read_file(path, &size);

	om_status st = data ? om_table_parse(s, path, data, size, mem, &t)
		: om_fail(s, OM_IO, "%s: %s", path, strerror(errno));
	if (st == OM_OK)
		st = om_packfile_read(s, &t, NULL, &(om_packfile_how){.align = 1, .forgets_offsets = true}, mem, &f);
	if (st == OM_OK) {
		f.problem.seconds = o->seconds;
		f.problem.nodes = o->nodes;
		const double start = om_now_ms();
		st = pack(s, &f.problem, &r);
		out->seconds = (om_now_ms() - start) / 1e3;
		out->buffers = f.problem.n;
		out->height = r.height;
		out->bound = r.lower_bound;
		out->is_optimal = r.status == OM_PACK_OPTIMAL && r.lower_bound;
		snprintf(out->what, sizeof out->what, "%s", r.strategy ? r.strategy : "");
	}
	if (st == OM_OK)
		st = om_pack_check(s, f.problem.buf, f.problem.n, r.height);
	om_arena_free(mem);
	free(data);
	return st;
}

static struct measured
run(const char *path, const struct options *o, packer *pack)
{
	struct measured m = {0};
	struct rusage usage = {0};
	int pipes[2], status;

	fflush(stdout);
	if (pipe(pipes) != 0)
		exit(EXIT_FAILURE);
	const pid_t child = fork();
	if (child == 0) {
		om_session *s = om_session_new();
		m.o.is_valid = pack_file(s, path, o, pack, &m.o) == OM_OK;
		if (!m.o.is_valid)
			snprintf(m.o.what, sizeof m.o.what, "%s", om_message(s));
		_exit(write(pipes[1], &m.o, sizeof m.o) == (ssize_t)sizeof m.o ? 0 : 1);
	}
	close(pipes[1]);
	if (child < 0 || read(pipes[0], &m.o, sizeof m.o) != (ssize_t)sizeof m.o)
		snprintf(m.o.what, sizeof m.o.what, "the run was aborted");
	close(pipes[0]);
	if (child > 0)
		wait4(child, &status, 0, &usage);
	m.mib = (double)usage.ru_maxrss / 1024;
	return m;
}

/* ---- The table. ---- */

static const char *
name_of(const char *path, char out[64])
{
	const char *slash = strrchr(path, '/');

	snprintf(out, 64, "%s", slash ? slash + 1 : path);
	char *dot = strrchr(out, '.');
	if (dot && strcmp(dot, ".csv") == 0)
		*dot = '\0';
	return out;
}

static uint64_t
known_best(const struct options *o, const char *name)
{
	for (size_t k = 0; o->has_known && k < o->known.nrow; k++)
		if (strcmp(om_table_field(&o->known, k, 0), name) == 0)
			return strtoull(om_table_field(&o->known, k, 1), NULL, 10);
	return 0;
}

static void
put_ratio(uint64_t height, uint64_t to)
{
	if (height && to)
		printf(" %7.4f", (double)height / (double)to);
	else
		printf(" %7s", height == to ? "1.0000" : "-");
}

static void
put_other(const char *path, const struct options *o, packer *pack, uint64_t bound, bool *failed)
{
	const struct measured m = run(path, o, pack);

	if (!m.o.is_valid) {
		printf("  (%s)", m.o.what);
		*failed = true;
		return;
	}
	putchar(' ');
	put_ratio(m.o.height, bound);
	printf(" %7.3f", m.o.seconds);
}

static bool
measure(const char *path, const struct options *o, double *total)
{
	char name[64];
	const struct measured m = run(path, o, pack_ours);
	bool failed = !m.o.is_valid;

	name_of(path, name);
	if (failed) {
		printf("%-12s %s\n", name, m.o.what);
		return true;
	}
	*total += m.o.seconds;
	printf("%-12s %7" PRIu32 " %13" PRIu64 " %13" PRIu64, name, m.o.buffers, m.o.bound, m.o.height);
	put_ratio(m.o.height, m.o.bound);
	put_ratio(m.o.height, known_best(o, name));
	printf(" %-8s %8.3f %6.0f", m.o.is_optimal ? "optimal" : "feasible", m.o.seconds, m.mib);
	put_other(path, o, pack_first, m.o.bound, &failed);
	put_other(path, o, pack_sizes, m.o.bound, &failed);
	put_other(path, o, pack_stream, m.o.bound, &failed);
	printf("  %s\n", m.o.what);
	return failed;
}

/* A .csv file, or those in a folder. */
static bool
measure_all(const char *path, const struct options *o, double *total)
{
	struct dirent **list;
	bool failed = false;
	char file[4096];
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		return measure(path, o, total);
	const int n = scandir(path, &list, NULL, alphasort);
	if (n < 0) {
		printf("%s is not there: nothing is measured on it\n", path);
		return false;
	}
	for (int k = 0; k < n; k++) {
		const size_t length = strlen(list[k]->d_name);
		if (length > 4 && strcmp(list[k]->d_name + length - 4, ".csv") == 0) {
			snprintf(file, sizeof file, "%s/%s", path, list[k]->d_name);
			failed |= measure(file, o, total);
		}
		free(list[k]);
	}
	free(list);
	return failed;
}

static void
read_known(struct options *o, const char *path, om_session *s, om_arena *mem)
{
	size_t size = 0;
	char *data = read_file(path, &size);

	o->has_known = data && om_table_parse(s, path, om_memdup(mem, data, size + 1), size, mem, &o->known) == OM_OK;
	if (!o->has_known)
		printf("%s cannot be read: heights are not compared with the best known\n", path);
	free(data);
}

int
main(int argc, char **argv)
{
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	struct options o = {0};
	bool failed = false;
	double total = 0;
	int k = 1;

	for (; k + 1 < argc && argv[k][0] == '-'; k += 2)
		if (strcmp(argv[k], "--seconds") == 0)
			o.seconds = strtod(argv[k + 1], NULL);
		else if (strcmp(argv[k], "--search-nodes") == 0)
			o.nodes = strtoull(argv[k + 1], NULL, 10);
		else if (strcmp(argv[k], "--known") == 0)
			read_known(&o, argv[k + 1], s, mem);
		else
			break;
	printf("%-12s %7s %13s %13s %7s %7s %-8s %8s %6s  %-15s  %-15s  %-15s\n", "", "", "", "", "to", "to best", "", "", "",
		"first pass", "sizes", "stream");
	printf("%-12s %7s %13s %13s %7s %7s %-8s %8s %6s  %7s %7s  %7s %7s  %7s %7s  %s\n", "instance", "buffers", "bound",
		"height", "bound", "known", "status", "seconds", "MiB", "to b.", "s", "to b.", "s", "to b.", "s", "found by");
	for (; k < argc; k++)
		failed |= measure_all(argv[k], &o, &total);
	printf("%.2f seconds in all\n", total);
	om_arena_free(mem);
	om_session_free(s);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
