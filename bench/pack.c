/* How good and how fast the packer is on problems from files.
 *
 *	bench/pack FILE...
 *
 * Each is a table with a head line `id,lower,upper,size`; `upper` is exclusive.
 * Prints, for each: buffers, bound, height, height / bound, ms, what found it.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "onnxmem/pack.h"

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static om_buffer *
read_problem(FILE *in, om_arena *mem, uint32_t *count)
{
	om_buffer *buf = NULL;
	size_t n = 0, cap = 0;
	om_interval live = {0};
	uint64_t bytes;

	for (int c = fgetc(in); c != '\n' && c != EOF;)
		c = fgetc(in);
	while (fscanf(in, "%*[^,],%" SCNu32 ",%" SCNu32 ",%" SCNu64, &live.lower, &live.upper, &bytes) == 3) {
		const om_buffer b = {.bytes = bytes, .live = om_memdup(mem, &live, sizeof live),
			.nlive = 1, .fixed = OM_OFFSET_FREE};
		OM_PUSH(mem, buf, n, cap, b);
	}
	*count = (uint32_t)n;
	return buf;
}

static int
measure(om_session *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	FILE *in = fopen(path, "r");
	om_pack_result r;
	uint32_t n;

	if (!in) {
		perror(path);
		return 1;
	}
	om_arena *mem = om_arena_new();
	om_buffer *buf = read_problem(in, mem, &n);
	fclose(in);
	const double start = now_ms();
	om_status st = om_pack(s, buf, n, &r);
	const double ms = now_ms() - start;
	if (st == OM_OK)
		st = om_pack_check(s, buf, n, r.height);
	if (st == OM_OK)
		printf("%-32s %6" PRIu32 " %14" PRIu64 " %14" PRIu64 " %7.4f %s %9.1f  %s\n",
			slash ? slash + 1 : path, n, r.lower_bound, r.height,
			r.lower_bound ? (double)r.height / (double)r.lower_bound : 1.0,
			r.status == OM_PACK_OPTIMAL ? "optimal " : "feasible", ms, r.strategy);
	else
		printf("%s: %s\n", path, om_message(s));
	om_arena_free(mem);
	return st != OM_OK;
}

int
main(int argc, char **argv)
{
	om_session *s = om_session_new();
	int failed = 0;

	for (int k = 1; k < argc; k++)
		failed |= measure(s, argv[k]);
	om_session_free(s);
	return failed;
}
