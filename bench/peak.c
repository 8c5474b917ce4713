/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine can do at most: multiply-adds of each instruction set, and bytes from memory.
 *
 *	bench/peak [THREADS]
 *
 * A line each: the set and GFLOP/s (a multiply-add counts as two), then `read` and `copy` in GB/s; a
 * copied byte counts as read and as written.  The best of many short repeats, so that some of them are
 * not interrupted by other programs; all threads together.
 */
#define _DEFAULT_SOURCE 1

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHORT = 1000, LONG = 50, LOOPS = 200000, MOST_THREADS = 256, CHAINS = 12 };
static const size_t block = (size_t)64 << 20;           /* larger than caches */

typedef double kernel(void *memory);                    /* returns what has to be computed */

#if defined __x86_64__
#define FOR_SET(set) __attribute__((target(set)))
#define HAS(set) __builtin_cpu_supports(set)
#else
#define FOR_SET(set)
#define HAS(set) 0
#endif

/* CHAINS independent chains hide the latency of a multiply-add.  They start with different elements: the compiler
 * computes equal ones once.  Factors that the compiler cannot see keep the
 * elements normal. */
#define MULTIPLY_ADDS(name, set, width) \
	FOR_SET(set) static double \
	name(void *memory) \
	{ \
		typedef float vec __attribute__((vector_size(width * sizeof(float)))); \
		const volatile float *seed = memory; \
		const vec scale = (vec){0} + (0.5F + seed[0]), step = (vec){0} + (0.25F + seed[0]); \
		vec a0 = step, a1 = a0 + scale, a2 = a1 + scale, a3 = a2 + scale, a4 = a3 + scale, a5 = a4 + scale; \
		vec a6 = a5 + scale, a7 = a6 + scale, a8 = a7 + scale, a9 = a8 + scale, a10 = a9 + scale, a11 = a10 + scale; \
		for (long k = 0; k < LOOPS; k++) { \
			a0 = a0 * scale + step, a1 = a1 * scale + step, a2 = a2 * scale + step; \
			a3 = a3 * scale + step, a4 = a4 * scale + step, a5 = a5 * scale + step; \
			a6 = a6 * scale + step, a7 = a7 * scale + step, a8 = a8 * scale + step; \
			a9 = a9 * scale + step, a10 = a10 * scale + step, a11 = a11 * scale + step; \
			__asm__ volatile("" ::: "memory"); \
		} \
		const vec all = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11; \
		return (double)all[0]; \
	}

MULTIPLY_ADDS(generic_adds, "sse2", 4)
MULTIPLY_ADDS(avx2_adds, "avx2,fma", 8)
MULTIPLY_ADDS(avx512_adds, "avx512f", 16)

static double
read_block(void *memory)
{
	typedef uint64_t vec __attribute__((vector_size(32)));
	const vec *at = memory;
	vec sum[4] = {0};

	for (size_t k = 0; k < block / sizeof(vec); k += 4)
		for (size_t i = 0; i < 4; i++)
			sum[i] += at[k + i];
	const vec all = sum[0] + sum[1] + sum[2] + sum[3];
	return (double)all[0];
}

static double
copy_block(void *memory)
{
	char *at = memory;

	memcpy(at + block / 2, at, block / 2);
	return at[block - 1];
}

/* ---- Threads. ---- */

struct part {
	kernel *run;
	void *memory;
	double result;
};

static void *
run_part(void *arg)
{
	struct part *p = arg;

	p->result = p->run(p->memory);
	return NULL;
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds until all threads are done. */
static double
once(kernel *run, char *memory, int n)
{
	pthread_t thread[MOST_THREADS];
	struct part part[MOST_THREADS];
	const double start = now();

	for (int k = 0; k < n; k++) {
		part[k] = (struct part){.run = run, .memory = memory + (size_t)k * block};
		if (pthread_create(&thread[k], NULL, run_part, &part[k]) != 0)
			exit(EXIT_FAILURE);
	}
	for (int k = 0; k < n; k++)
		pthread_join(thread[k], NULL);
	return now() - start;
}

/* Billions of `work` a second, the best of `repeats`. */
static void
report(const char *name, kernel *run, int repeats, double work, char *memory, int n)
{
	double best = once(run, memory, n);

	for (int k = 1; k < repeats; k++) {
		const double took = once(run, memory, n);
		best = took < best ? took : best;
	}
	printf("%s %.2f\n", name, work * n / best / 1e9);
}

int
main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	char *memory = n > 0 && n <= MOST_THREADS ? aligned_alloc(64, (size_t)n * block) : NULL;

	if (!memory) {
		fprintf(stderr, "usage: peak [THREADS], at most %d\n", MOST_THREADS);
		return 2;
	}
	memset(memory, 0, (size_t)n * block);
	const double adds = 2.0 * CHAINS * LOOPS;
	report("generic", generic_adds, SHORT, adds * 4, memory, n);
	if (HAS("avx2") && HAS("fma"))
		report("avx2", avx2_adds, SHORT, adds * 8, memory, n);
	if (HAS("avx512f"))
		report("avx512", avx512_adds, SHORT, adds * 16, memory, n);
	report("read", read_block, LONG, (double)block, memory, n);
	report("copy", copy_block, LONG, (double)block, memory, n);
	free(memory);
	return 0;
}
