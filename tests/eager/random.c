/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs of a dynamic graph: computed call by call, with sequences that are replayed, with results that are remembered and
 * dropped, and compiled up front, they give the same bits.
 *
 *     random [PROGRAMS [SEED]]
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "machine.h"

enum { PROGRAMS = 300, RUNS = 7, SETS = 2, NWAY = 3 };

static const om_eager_options ways[NWAY] = {
	OM_EAGER_OPTIONS(.no_replay = true),
	OM_EAGER_OPTIONS(),
	OM_EAGER_OPTIONS(.result_bytes = 2000, .tape_bytes = 1000, .programs = 5),
};
static const char *const names[NWAY] = {"call by call", "replayed", "remembered and dropped"};

struct test {
	om_session *s;
	om_eager *e[NWAY];
	om_eager_stats all[NWAY];
	uint64_t seed;
	int n;
};

static void
draw_inputs(uint64_t *seed, float in[INPUTS][SIDE * SIDE])
{
	for (int k = 0; k < INPUTS; k++)
		for (int i = 0; i < SIDE * SIDE; i++)
			in[k][i] = (float)(om_rng_unit(seed) * 2 - 1);
}

static bool
is_same(const struct outcome *a, const struct outcome *b)
{
	return a->ndecision == b->ndecision
	    && memcmp(a->decision, b->decision, (size_t)a->ndecision * sizeof *a->decision) == 0
	    && memcmp(a->x, b->x, sizeof a->x) == 0;
}

/* Say where two outcomes differ first. */
static void
tell_difference(const struct outcome *a, const struct outcome *b)
{
	if (a->ndecision != b->ndecision)
		printf("# %d decisions, not %d\n", b->ndecision, a->ndecision);
	for (int k = 0; k < REGISTERS + INPUTS; k++)
		for (int i = 0; i < SIDE * SIDE; i++)
			if (memcmp(&a->x[k][i], &b->x[k][i], sizeof a->x[k][i]) != 0) {
				printf("# %s %d, element %d: %.9g, not %.9g\n", k < REGISTERS ? "register" : "gradient",
					k < REGISTERS ? k : k - REGISTERS, i, (double)b->x[k][i], (double)a->x[k][i]);
				return;
			}
}

/* The same program on changing inputs, by all ways. */
static bool
run_all(struct test *t, const struct script *p, float in[SETS][INPUTS][SIDE * SIDE])
{
	struct outcome want, got;

	for (int run = 0; run < RUNS; run++) {
		if (!script_run(p, t->s, t->e[0], in[run % SETS], &want))
			return false;
		for (int way = 1; way < NWAY; way++) {
			if (!script_run(p, t->s, t->e[way], in[run % SETS], &got))
				return false;
			if (!is_same(&want, &got)) {
				printf("# run %d: %s differs from %s\n", run, names[way], names[0]);
				tell_difference(&want, &got);
				return false;
			}
		}
	}
	if (!script_compile(p, t->s, in[(RUNS - 1) % SETS], &want, &got))
		return false;
	if (!is_same(&want, &got)) {
		printf("# the compiled program differs from %s\n", names[0]);
		tell_difference(&want, &got);
	}
	return is_same(&want, &got);
}

static bool
check_all(struct test *t)
{
	for (int k = 0; k < t->n; k++) {
		float in[SETS][INPUTS][SIDE * SIDE];
		struct script p;
		const uint64_t seed = t->seed;

		script_draw(&p, &t->seed);
		for (int i = 0; i < SETS; i++)
			draw_inputs(&t->seed, in[i]);
		if (!run_all(t, &p, in)) {
			printf("# program %d, of seed %llu\n", k, (unsigned long long)seed);
			return false;
		}
	}
	return true;
}

static void
report(int number, bool ok, const char *what)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", number, what);
}

int
main(int argc, char **argv)
{
	struct test t = {.s = om_session_new(), .seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1,
		.n = argc > 1 ? atoi(argv[1]) : PROGRAMS};
	bool ok = true, free_of_leaks = true;

	printf("1..3\n");
	for (int way = 0; way < NWAY; way++)
		ok = ok && om_eager_new(t.s, &ways[way], &t.e[way]) == OM_OK;
	ok = ok && check_all(&t);
	report(1, ok, "all ways give the same bits");
	for (int way = 0; way < NWAY && t.e[way]; way++) {
		om_eager_trim(t.e[way]);
		t.all[way] = *om_eager_get_stats(t.e[way]);
		free_of_leaks = free_of_leaks && t.all[way].variables == 0 && t.all[way].used_bytes == 0;
		printf("# %s: %llu calls, %llu computed, %llu replayed in %llu runs, %llu diverged, %llu remembered, %llu recomputed\n",
			names[way], (unsigned long long)t.all[way].calls, (unsigned long long)t.all[way].computed,
			(unsigned long long)t.all[way].replayed, (unsigned long long)t.all[way].replays,
			(unsigned long long)t.all[way].diverged, (unsigned long long)t.all[way].remembered,
			(unsigned long long)t.all[way].recomputed);
		om_eager_free(t.e[way]);
	}
	report(2, free_of_leaks, "nothing is left");
	report(3, t.all[1].replays > 0 && t.all[1].diverged > 0 && t.all[2].remembered > 0 && t.all[2].recomputed > 0 && t.all[0].replays == 0,
		"each way was taken");
	om_session_free(t.s);
	return 0;
}
