/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of models: random links and orders, beside runs of the parts by hand; kernels that write where they must not. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rng.h"
#include "onnxmem/kernel.h"
#include "onnxmem/set.h"
#include "tests/fixtures.h"
#include "unit.h"

enum { PARTS = 5, COUNT = 100, SETS = 60, RUNS = 12 };  /* COUNT: elements of x and y of nnc_chain.onnx */

/* A set: by part, the shared values of its x and y, -1: none; a loop. */
struct shape {
	int npart, in[PARTS], out[PARTS], nvalue, first, last;
};

static struct shape
random_shape(uint64_t *state)
{
	struct shape s = {.npart = 2 + (int)(om_rng(state) % (PARTS - 1)), .nvalue = 1 + (int)(om_rng(state) % 3)};

	for (int k = 0; k < s.npart; k++) {
		s.in[k] = (int)(om_rng(state) % (uint64_t)(s.nvalue + 1)) - 1;
		s.out[k] = (int)(om_rng(state) % (uint64_t)(s.nvalue + 1)) - 1;
	}
	s.first = (int)(om_rng(state) % (uint64_t)s.npart);
	s.last = s.first + (int)(om_rng(state) % (uint64_t)(s.npart - s.first));
	return s;
}

/* A value with fewer than two ends is none. */
static void
drop_lonely(struct shape *s)
{
	for (int v = 0; v < s->nvalue; v++) {
		int n = 0;
		for (int k = 0; k < s->npart; k++)
			n += (s->in[k] == v) + (s->out[k] == v);
		for (int k = 0; k < s->npart && n < 2; k++) {
			s->in[k] = s->in[k] == v ? -1 : s->in[k];
			s->out[k] = s->out[k] == v ? -1 : s->out[k];
		}
	}
}

static void
write_link(FILE *f, const struct shape *s, int v, bool *is_first)
{
	bool starts = true;

	for (int k = 0; k < s->npart; k++)
		for (int out = 0; out < 2; out++) {
			if ((out ? s->out[k] : s->in[k]) != v)
				continue;
			fprintf(f, "%s\"p%d.%s\"", starts ? *is_first ? "[" : ", [" : ", ", k, out ? "y" : "x");
			starts = *is_first = false;
		}
	if (!starts)
		fprintf(f, "]");
}

static bool
write_manifest(const char *path, const struct shape *s)
{
	FILE *f = fopen(path, "w");
	bool is_first = true;

	if (!f)
		return false;
	fprintf(f, "{\"schema\": \"onnxmem-set/1\", \"parts\": [");
	for (int k = 0; k < s->npart; k++)
		fprintf(f, "%s{\"name\": \"p%d\", \"model\": \"%s/models/nnc_chain.onnx\"}", k ? ", " : "", k, OM_SRCDIR);
	fprintf(f, "], \"links\": [");
	for (int v = 0; v < s->nvalue; v++)
		write_link(f, s, v, &is_first);
	fprintf(f, "], \"order\": [");
	for (int k = 0; k < s->npart; k++)
		fprintf(f, "%s%s\"p%d\"%s", k ? ", " : "", k == s->first ? "[" : "", k, k == s->last ? "]" : "");
	fprintf(f, "]}\n");
	return fclose(f) == 0;
}

static om_tensor
picture(const float *x)
{
	return (om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(4, (int64_t[]){1, 4, 5, 5}), .data = (void *)x};
}

/* What the set holds, by hand. */
struct hand {
	float value[3][COUNT];
	bool has[3];
};

/* A run of part `k`, in the set and by hand. */
static bool
run_both(om_set *x, bench *b, const struct shape *s, int k, struct hand *h, uint64_t *state)
{
	float in[COUNT];
	const int v = s->in[k];

	for (int i = 0; i < COUNT; i++)
		in[i] = (float)om_rng_unit(state) - 0.5f;
	const om_tensor given = picture(in);
	const bool lacks = v < 0 || om_set_lacks(x, (uint32_t)k, 0);
	if (lacks != (v < 0 || !h->has[v]))
		return false;
	if (lacks && !is_ok(b->s, om_set_input(x, (uint32_t)k, 0, &given)))
		return false;
	const om_tensor used = lacks ? given : picture(h->value[v]);
	if (!is_ok(b->s, om_set_run(x, (uint32_t)k)) || !is_ok(b->s, bench_run(b, &used, 1)))
		return false;
	const om_tensor *want = om_exec_result(b->e, 0), *got = om_set_result(x, (uint32_t)k, 0);
	const bool same = memcmp(want->data, got->data, sizeof in) == 0;
	if (v >= 0 && lacks) {
		memcpy(h->value[v], in, sizeof in);
		h->has[v] = true;
	}
	if (s->out[k] >= 0) {
		memcpy(h->value[s->out[k]], want->data, sizeof in);
		h->has[s->out[k]] = true;
	}
	return same;
}

/* Where a run goes on: the loop may repeat, and the set may start again. */
static int
next_part(const struct shape *s, int k, uint64_t *state)
{
	if (k == s->last && om_rng(state) % 3)
		return s->first;
	return k + 1 < s->npart ? k + 1 : 0;
}

static bool
try_set(const char *path, const struct shape *s, bench *b, uint64_t *state)
{
	om_set *x = NULL;
	struct hand h = {0};
	bool ok = write_manifest(path, s) && is_ok(b->s, om_set_load(b->h, path, om_default_pipeline(), &x)) && is_ok(b->s, om_set_make_plan(x))
	    && is_ok(b->s, om_set_start(x, &(om_exec_options)OM_EXEC_OPTIONS(.poison = true, .threads = 1)));

	for (int run = 0, k = 0; run < RUNS && ok; run++) {
		ok = run_both(x, b, s, k, &h, state);
		const int next = next_part(s, k, state);
		if (next == 0 && (s->first > 0 || k != s->last))  /* no iteration: nothing is left */
			memset(h.has, 0, sizeof h.has);
		k = next;
	}
	if (ok) {
		const om_set_plan *plan = om_set_get_plan(x);
		uint64_t largest = 0;
		for (uint32_t k = 0; k < plan->npart; k++)
			largest = plan->part[k].bytes > largest ? plan->part[k].bytes : largest;
		ok = plan->bytes <= (largest + 63) / 64 * 64 + plan->crossing && plan->bytes >= plan->lower_bound && plan->bytes >= largest;
	}
	om_set_free(x);
	return ok;
}

/* A file of a folder of its own. */
static const char *
temporary(char *folder, char *path, size_t size)
{
	snprintf(folder, size, "set-XXXXXX");
	if (!mkdtemp(folder))
		return NULL;
	snprintf(path, 2 * size, "%s/set.json", folder);
	return path;
}

static void
random_sets_run_as_by_hand(void)
{
	char folder[32], path[64];
	uint64_t state = 7;
	bench b = bench_open();
	const bool ready = temporary(folder, path, sizeof folder) && is_ok(b.s, bench_model(&b, "nnc_chain.onnx"))
	    && is_ok(b.s, om_host_run(b.h, b.p, om_default_pipeline())) && is_ok(b.s, bench_exec(&b, &ways[PLANNED]));

	CU_ASSERT(ready);
	for (int k = 0; k < SETS && ready; k++) {
		struct shape s = random_shape(&state);
		drop_lonely(&s);
		const bool ok = try_set(path, &s, &b, &state);
		CU_ASSERT(ok);
		if (!ok)
			printf("# set %d\n", k);
	}
	unlink(path);
	rmdir(folder);
	bench_close(&b);
}

/* ---- Kernels that write where they must not. ---- */

static enum { GOOD, CHANGES_INPUT, WRITES_BEYOND } behavior;

static om_status
copy_wrongly(om_op_context *c)
{
	float *x = c->in[0].data, *y = c->out[0].data;

	memcpy(y, x, COUNT * sizeof *x);
	if (behavior == CHANGES_INPUT)
		x[0] += 1;
	if (behavior == WRITES_BEYOND)
		y[448 / sizeof *y] = 1;  /* the next value, aligned to 64 bytes */
	return OM_OK;
}

static const om_kernel wrong_kernels[] = {{.name = "Tanh", .run = copy_wrongly}, {0}};

/* The status of running three parts with kernels that behave so. */
static om_status
run_wrongly(const char *path, bench *b, int how)
{
	float x[COUNT] = {1};
	const om_tensor given = picture(x);
	om_set *set = NULL;

	behavior = how;
	om_status st = om_set_load(b->h, path, om_default_pipeline(), &set);
	if (st == OM_OK)
		st = om_set_make_plan(set);
	if (st == OM_OK)
		st = om_set_start(set, &(om_exec_options)OM_EXEC_OPTIONS(.poison = true, .threads = 1, .kernels = wrong_kernels));
	if (st == OM_OK)
		st = om_set_input(set, 0, 0, &given);
	for (uint32_t k = 0; k < 3 && st == OM_OK; k++)
		st = om_set_run(set, k);
	om_set_free(set);
	return st;
}

static void
wrong_writes_are_named(void)
{
	const struct shape s = {.npart = 3, .in = {-1, 0, 1}, .out = {0, 1, -1}, .nvalue = 2, .first = 2, .last = 2};
	char folder[32], path[64];
	bench b = bench_open();

	CU_ASSERT(temporary(folder, path, sizeof folder) && write_manifest(path, &s));
	CU_ASSERT(is_ok(b.s, run_wrongly(path, &b, GOOD)));
	CU_ASSERT(is_told(b.s, run_wrongly(path, &b, CHANGES_INPUT), OM_RUN, "part p1 changed p0.y, which it does not write"));
	CU_ASSERT(is_told(b.s, run_wrongly(path, &b, WRITES_BEYOND), OM_RUN, "which is not in use; while running part p0"));
	unlink(path);
	rmdir(folder);
	bench_close(&b);
}

static CU_TestInfo set_tests[] = {
	{"writes where a part must not are named", wrong_writes_are_named},
	{"random sets run as their parts by hand", random_sets_run_as_by_hand},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("sets", set_tests);
