/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device: it computes what was asked for, and what is wrong in a program for a device is found. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/sim/sim.h"
#include "unit.h"

/* ---- Kernels. ---- */

enum { N = 64, BYTES = N * sizeof(float) };

static float *
floats(const om_gpu_value *p)
{
	return (float *)(void *)(p->base + p->offset);
}

/* z = x + y: a thread for each element. */
static void
add_body(const void *values)
{
	const om_gpu_value *p = values;
	const int64_t k = om_fiber_here()->block[0] * om_fiber_here()->threads + om_fiber_here()->thread;

	if (k < p[3].i)
		floats(&p[2])[k] = floats(&p[0])[k] + floats(&p[1])[k];
}

static const om_gpu_kernel kernels[] = {{"add", "mmml", add_body, false}, {0}};

typedef struct {
	const om_device_ops *o;
	om_device *d;
	om_stream *s, *t;
	om_event *e;
	om_device_code *add;
	om_mem m;
	om_device_status st;     /* the first failure */
} sim;

static void
start(sim *x, const char *options)
{
	const char *name = "add";

	*x = (sim){.o = om_sim_ops()};
	CU_ASSERT_EQUAL_FATAL(om_sim_open(&x->d, options, kernels), OM_DEVICE_OK);
	CU_ASSERT_EQUAL_FATAL(x->o->stream_create(x->d, &x->s), OM_DEVICE_OK);
	CU_ASSERT_EQUAL_FATAL(x->o->stream_create(x->d, &x->t), OM_DEVICE_OK);
	CU_ASSERT_EQUAL_FATAL(x->o->event_create(x->d, &x->e), OM_DEVICE_OK);
	CU_ASSERT_EQUAL_FATAL(x->o->build(x->d, "", &name, 1, &x->add), OM_DEVICE_OK);
	CU_ASSERT_EQUAL_FATAL(x->o->alloc(x->d, OM_MEM_ARENA, 8 * BYTES, &x->m), OM_DEVICE_OK);
}

static void
end(sim *x)
{
	x->o->free(x->d, x->m);
	x->o->code_free(x->add);
	x->o->event_free(x->e);
	x->o->stream_free(x->s);
	x->o->stream_free(x->t);
	x->o->close(x->d);
}

static void
keep(sim *x, om_device_status st)
{
	if (x->st == OM_DEVICE_OK)
		x->st = st;
}

/* Slot c = slot a + slot b, `n` elements. */
static void
add(sim *x, om_stream *s, uint32_t a, uint32_t b, uint32_t c, int64_t n, uint32_t tag)
{
	const om_grid g = {.blocks = {2, 1, 1}, .threads = (uint32_t)(n + 1) / 2};
	const om_arg args[] = {
		{.kind = OM_ARG_IN, .mem = x->m, .at = a * BYTES, .bytes = BYTES},
		{.kind = OM_ARG_IN, .mem = x->m, .at = b * BYTES, .bytes = BYTES},
		{.kind = OM_ARG_OUT, .mem = x->m, .at = c * BYTES, .bytes = BYTES},
		{.kind = OM_ARG_VALUE, .type = OM_ARG_I64, .value.i = n},
	};

	keep(x, x->o->launch(s, x->add, &g, args, 4, tag));
}

static void
order(sim *x, om_stream *from, om_stream *to)
{
	keep(x, x->o->record(from, x->e));
	keep(x, x->o->wait(to, x->e));
}

static void
ends(sim *x, om_device_status st, const char *part)
{
	if (x->st != st || (part && !strstr(x->o->error(x->d), part)))
		printf("# status %d, %s; expected %d, %s\n", x->st, x->o->error(x->d), st, part ? part : "no error");
	CU_ASSERT_EQUAL(x->st, st);
	CU_ASSERT(!part || strstr(x->o->error(x->d), part));
	end(x);
}

/* ---- What is right. ---- */

static void
streams_and_events(void)
{
	float one[N], y[N];
	sim x;

	for (int k = 0; k < N; k++)
		one[k] = (float)k;
	for (int seed = 0; seed < 20; seed++) {
		char options[32];
		snprintf(options, sizeof options, "seed=%d", seed);
		start(&x, options);
		keep(&x, x.o->upload(x.s, x.m, 0, one, BYTES, 1));
		add(&x, x.s, 0, 0, 1, N, 2);
		order(&x, x.s, x.t);
		add(&x, x.t, 1, 0, 2, N, 3);
		add(&x, x.s, 1, 1, 3, N, 4);
		keep(&x, x.o->copy(x.t, x.m, 4 * BYTES, x.m, 2 * BYTES, BYTES, 5));
		keep(&x, x.o->fill(x.t, x.m, 2 * BYTES, BYTES, 0, 6));
		keep(&x, x.o->download(x.t, y, x.m, 4 * BYTES, BYTES, 7));
		keep(&x, x.o->sync(x.t));
		for (int k = 0; k < N; k++)
			CU_ASSERT(y[k] == 3 * one[k]);
		keep(&x, x.o->sync(x.s));
		ends(&x, OM_DEVICE_OK, NULL);
	}
}

/* ---- What is wrong. ---- */

static void
a_missing_wait_is_a_race(void)
{
	static float one[N];
	sim x;

	start(&x, "seed=1");
	keep(&x, x.o->upload(x.s, x.m, 0, one, BYTES, 1));
	add(&x, x.s, 0, 0, 1, N, 2);
	add(&x, x.t, 1, 1, 2, N, 3);
	ends(&x, OM_DEVICE_RACE, "command 3 of stream 1 reads bytes 256 to 512 of memory 0, which command 2 of stream 0 writes, and no "
		"event orders them");
}

static void
a_write_after_an_unordered_read_is_a_race(void)
{
	static float one[N];
	sim x;

	start(&x, "seed=1");
	keep(&x, x.o->upload(x.s, x.m, 0, one, BYTES, 1));
	order(&x, x.s, x.t);
	add(&x, x.t, 0, 0, 1, N, 2);
	keep(&x, x.o->upload(x.s, x.m, 0, one, BYTES, 3));
	ends(&x, OM_DEVICE_RACE, "command 3 of stream 0 writes");
}

static void
memory_of_the_host_is_checked(void)
{
	static float one[N];
	sim x;

	start(&x, "seed=1");
	keep(&x, x.o->fill(x.s, x.m, 0, BYTES, 0, 1));
	keep(&x, x.o->download(x.s, one, x.m, 0, BYTES, 2));
	keep(&x, x.o->upload(x.t, x.m, BYTES, one, BYTES, 3));
	ends(&x, OM_DEVICE_RACE, "of memory of the host");
}

static void
a_sync_is_an_order(void)
{
	static float one[N];
	sim x;

	start(&x, "seed=1");
	keep(&x, x.o->upload(x.s, x.m, 0, one, BYTES, 1));
	keep(&x, x.o->sync(x.s));
	add(&x, x.t, 0, 0, 1, N, 2);
	keep(&x, x.o->sync(x.t));
	ends(&x, OM_DEVICE_OK, NULL);
}

static void
ranges_are_checked(void)
{
	sim x;

	start(&x, NULL);
	keep(&x, x.o->fill(x.s, x.m, 7 * BYTES, BYTES + 1, 0, 9));
	ends(&x, OM_DEVICE_ARGUMENT, "command 9 uses 257 bytes from byte 1792 of memory 0, which has 2048");
}

/* Outside of its memory a kernel faults on the page after it. */
static void
a_kernel_that_leaves_its_memory_is_named(void)
{
	sim x;

	start(&x, NULL);
	keep(&x, x.o->fill(x.s, x.m, 0, 8 * BYTES, 0, 1));
	add(&x, x.s, 0, 5, 7, N + 2, 11);
	keep(&x, x.o->sync(x.s));
	ends(&x, OM_DEVICE_LOST, "command 11 leaves memory 0 at byte ");
}

/* Inside of its memory, but of a neighbour. */
static void
a_write_that_is_not_declared_is_named(void)
{
	sim x;

	start(&x, NULL);
	keep(&x, x.o->fill(x.s, x.m, 0, 8 * BYTES, 0, 1));
	add(&x, x.s, 0, 1, 2, N + 2, 12);
	keep(&x, x.o->sync(x.s));
	ends(&x, OM_DEVICE_OK, NULL);        /* the same bytes as before */
	start(&x, NULL);
	keep(&x, x.o->fill(x.s, x.m, 0, 8 * BYTES, 1, 1));
	add(&x, x.s, 0, 1, 2, N + 2, 12);
	keep(&x, x.o->sync(x.s));
	ends(&x, OM_DEVICE_LOST, "command 12, kernel add writes byte ");
}

static void
freed_memory_is_not_used(void)
{
	sim x;
	om_mem m;

	start(&x, NULL);
	m = x.m;
	x.o->free(x.d, m);
	CU_ASSERT_EQUAL(x.o->alloc(x.d, OM_MEM_ARENA, BYTES, &x.m), OM_DEVICE_OK);
	CU_ASSERT_EQUAL((uint32_t)m, (uint32_t)x.m);
	keep(&x, x.o->fill(x.s, m, 0, 1, 0, 4));
	ends(&x, OM_DEVICE_ARGUMENT, "command 4 uses memory 0, which does not exist or was freed");
}

static void
memory_in_use_is_not_freed(void)
{
	sim x;

	for (int seed = 0; seed < 4; seed++) {
		start(&x, seed ? "seed=2" : "seed=5");
		do
			keep(&x, x.o->fill(x.s, x.m, 0, 1, 0, 4));
		while (x.s->head == x.s->n);
		x.o->free(x.d, x.m);
		keep(&x, x.o->sync(x.s));
		x.m = 0;
		ends(&x, OM_DEVICE_ARGUMENT, "memory 0 was freed while commands");
	}
}

static om_device_status
keep_address(om_device_call *c)
{
	float **kept = c->user;

	if (!*kept)
		*kept = c->pointer(c->device, c->args[0].mem, c->args[0].at);
	**kept += 1;
	return OM_DEVICE_OK;
}

static void
a_kept_address_is_named(void)
{
	float *kept = NULL;
	sim x;

	start(&x, NULL);
	const om_arg a = {.kind = OM_ARG_INOUT, .mem = x.m, .at = 64, .bytes = 4};
	for (uint32_t k = 0; k < 2; k++) {
		keep(&x, x.o->call(x.s, keep_address, &kept, &a, 1, 20 + k));
		keep(&x, x.o->sync(x.s));
		CU_ASSERT(k == 1 || x.st == OM_DEVICE_OK);
	}
	ends(&x, OM_DEVICE_LOST, "command 21 uses an address of byte 64 of memory 0 that is not valid any more");
}

/* Three sums on two streams, captured once and replayed; what follows a replay sees all of it. */
static void
a_capture_is_replayed(void)
{
	enum { REPLAYS = 3 };
	om_device_graph *g = NULL;
	float one[N], y[N];
	char options[32];
	sim x;

	for (int k = 0; k < N; k++)
		one[k] = 1;
	for (int seed = 0; seed < 10; seed++) {
		snprintf(options, sizeof options, "seed=%d", seed);
		start(&x, options);
		keep(&x, x.o->fill(x.s, x.m, 0, 8 * BYTES, 0, 1));
		keep(&x, x.o->sync(x.s));
		keep(&x, x.o->capture_begin(x.s));
		keep(&x, x.o->upload(x.s, x.m, 0, one, BYTES, 2));
		order(&x, x.s, x.t);
		add(&x, x.t, 0, 1, 2, N, 3);
		add(&x, x.s, 0, 0, 3, N, 4);
		order(&x, x.t, x.s);
		add(&x, x.s, 2, 3, 1, N, 5);
		keep(&x, x.o->capture_end(x.s, &g));
		for (int k = 0; k < REPLAYS; k++)
			keep(&x, x.o->replay(x.s, g));
		keep(&x, x.o->download(x.s, y, x.m, BYTES, BYTES, 6));
		keep(&x, x.o->sync(x.s));
		for (int k = 0; k < N && x.st == OM_DEVICE_OK; k++)
			CU_ASSERT(y[k] == 3 * REPLAYS);
		x.o->graph_free(g);
		ends(&x, OM_DEVICE_OK, NULL);
	}
}

/* A library that keeps the address of the first run. */
static void
a_captured_address_is_stale(void)
{
	om_device_graph *g = NULL;
	float *kept = NULL;
	sim x;

	start(&x, NULL);
	const om_arg a = {.kind = OM_ARG_INOUT, .mem = x.m, .at = 64, .bytes = 4};
	keep(&x, x.o->capture_begin(x.s));
	keep(&x, x.o->call(x.s, keep_address, &kept, &a, 1, 9));
	keep(&x, x.o->capture_end(x.s, &g));
	keep(&x, x.o->replay(x.s, g));
	keep(&x, x.o->sync(x.s));
	CU_ASSERT_EQUAL(x.st, OM_DEVICE_OK);
	keep(&x, x.o->replay(x.s, g));
	keep(&x, x.o->sync(x.s));
	x.o->graph_free(g);
	ends(&x, OM_DEVICE_LOST, "command 9 uses an address of byte 64 of memory 0 that is not valid any more");
}

static void
captures_are_checked(void)
{
	om_device_graph *g = NULL;
	om_mem m;
	sim x;

	start(&x, NULL);                     /* a stream that is not joined */
	keep(&x, x.o->capture_begin(x.s));
	order(&x, x.s, x.t);
	keep(&x, x.o->fill(x.t, x.m, 0, BYTES, 0, 1));
	keep(&x, x.o->capture_end(x.s, &g));
	ends(&x, OM_DEVICE_ARGUMENT, "stream 1 takes part in a capture, but is not joined");

	start(&x, NULL);                     /* an event of a capture is not one outside of it */
	keep(&x, x.o->capture_begin(x.s));
	keep(&x, x.o->record(x.s, x.e));
	keep(&x, x.o->capture_end(x.s, &g));
	keep(&x, x.o->wait(x.t, x.e));
	x.o->graph_free(g);
	ends(&x, OM_DEVICE_ARGUMENT, "waits for an event that was recorded in a capture");

	start(&x, NULL);                     /* what is captured does not run */
	keep(&x, x.o->capture_begin(x.s));
	keep(&x, x.o->sync(x.s));
	ends(&x, OM_DEVICE_ARGUMENT, "the host waits for a stream whose commands are captured");

	start(&x, NULL);                     /* memory that was freed since */
	m = x.m;
	keep(&x, x.o->capture_begin(x.s));
	keep(&x, x.o->fill(x.s, m, 0, BYTES, 0, 5));
	keep(&x, x.o->capture_end(x.s, &g));
	x.o->free(x.d, m);
	keep(&x, x.o->alloc(x.d, OM_MEM_ARENA, 8 * BYTES, &x.m));
	keep(&x, x.o->replay(x.s, g));
	x.o->graph_free(g);
	ends(&x, OM_DEVICE_ARGUMENT, "command 5 uses memory 0, which does not exist or was freed");
}

static void
allocations_fail_on_request(void)
{
	om_device *d;
	om_mem m, n;

	CU_ASSERT_EQUAL_FATAL(om_sim_open(&d, "fail=1", kernels), OM_DEVICE_OK);
	CU_ASSERT_EQUAL(om_sim_alloc(d, OM_MEM_ARENA, 10, &m), OM_DEVICE_OK);
	CU_ASSERT_EQUAL(om_sim_alloc(d, OM_MEM_ARENA, 20, &n), OM_DEVICE_MEMORY);
	CU_ASSERT_STRING_EQUAL(om_sim_ops()->error(d), "the simulated device has no memory for 20 bytes");
	om_sim_ops()->close(d);
}

static void
options_are_checked(void)
{
	om_device *d;

	CU_ASSERT_EQUAL(om_sim_open(&d, "seed=x", kernels), OM_DEVICE_ARGUMENT);
	om_sim_ops()->close(d);
	CU_ASSERT_EQUAL(om_sim_open(&d, "seed=1,slow", kernels), OM_DEVICE_ARGUMENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(om_sim_ops()->error(d), "no option slow"));
	om_sim_ops()->close(d);
}

/* ---- Random programs on several streams, with all events that they need, and with one of them left out. ---- */

enum { SLOTS = 8, OPS = 24, STREAMS = 4, DROP_NONE = -1 };

struct program {
	uint32_t stream[OPS], a[OPS], b[OPS], c[OPS];
};

static struct program
draw(uint64_t *rng)
{
	struct program p;

	for (int k = 0; k < OPS; k++) {
		p.stream[k] = (uint32_t)om_rng_below(rng, STREAMS);
		p.a[k] = (uint32_t)om_rng_below(rng, SLOTS);
		p.b[k] = (uint32_t)om_rng_below(rng, SLOTS);
		do
			p.c[k] = (uint32_t)om_rng_below(rng, SLOTS);
		while (p.c[k] == p.a[k] || p.c[k] == p.b[k]);
	}
	return p;
}

static bool
conflict(const struct program *p, int i, int k)
{
	return p->c[i] == p->a[k] || p->c[i] == p->b[k] || p->c[i] == p->c[k] || p->a[i] == p->c[k] || p->b[i] == p->c[k];
}

/* What is before what, by streams and the waits so far: seen[s][i], whether op i is before the next one of stream s. */
struct order {
	bool seen[STREAMS][OPS], at[OPS][OPS];
};

/* Run; wait number `drop` is left out.  The number of waits that are needed. */
static int
play(sim *x, const struct program *p, int drop, float out[SLOTS * N])
{
	om_stream *s[STREAMS] = {x->s, x->t};
	om_event *e[OPS] = {0};
	float first[SLOTS * N];
	struct order o = {0};
	int waits = 0;

	for (int k = 0; k < SLOTS * N; k++)
		first[k] = (float)(k % 7);
	for (int k = 2; k < STREAMS; k++)
		keep(x, x->o->stream_create(x->d, &s[k]));
	keep(x, x->o->upload(x->s, x->m, 0, first, sizeof first, 100));
	keep(x, x->o->sync(x->s));
	for (int k = 0; k < OPS; k++) {
		const uint32_t me = p->stream[k];
		for (int i = k - 1; i >= 0; i--) {
			if (!conflict(p, i, k) || o.seen[me][i])
				continue;
			if (waits++ != drop)
				keep(x, x->o->wait(s[me], e[i]));
			for (int j = 0; j < OPS; j++)
				o.seen[me][j] |= o.at[i][j];
		}
		add(x, s[me], p->a[k], p->b[k], p->c[k], N, (uint32_t)k);
		keep(x, x->o->event_create(x->d, &e[k]));
		keep(x, x->o->record(s[me], e[k]));
		o.seen[me][k] = true;
		memcpy(o.at[k], o.seen[me], sizeof o.at[k]);
	}
	for (int k = 0; k < STREAMS; k++)
		keep(x, x->o->sync(s[k]));
	keep(x, x->o->download(x->s, out, x->m, 0, SLOTS * BYTES, 101));
	keep(x, x->o->sync(x->s));
	for (int k = 0; k < OPS; k++)
		x->o->event_free(e[k]);
	for (int k = 2; k < STREAMS; k++)
		x->o->stream_free(s[k]);
	return waits;
}

static void
compute(const struct program *p, float y[SLOTS * N])
{
	for (int k = 0; k < SLOTS * N; k++)
		y[k] = (float)(k % 7);
	for (int k = 0; k < OPS; k++)
		for (int i = 0; i < N; i++)
			y[p->c[k] * N + (uint32_t)i] = y[p->a[k] * N + (uint32_t)i] + y[p->b[k] * N + (uint32_t)i];
}

/* All dropped waits must be named as races, and no others. */
static void
dropped_waits_are_races(void)
{
	enum { PROGRAMS = 60 };
	uint64_t rng = 7;
	int dropped = 0, named = 0;
	float got[SLOTS * N], want[SLOTS * N];
	char options[32];
	sim x;

	for (int k = 0; k < PROGRAMS; k++) {
		const struct program p = draw(&rng);
		snprintf(options, sizeof options, "seed=%d", k);
		start(&x, options);
		const int waits = play(&x, &p, DROP_NONE, got);
		ends(&x, OM_DEVICE_OK, NULL);
		compute(&p, want);
		CU_ASSERT(memcmp(got, want, sizeof got) == 0);
		if (!waits)
			continue;
		start(&x, options);
		play(&x, &p, (int)om_rng_below(&rng, (uint64_t)waits), got);
		dropped++;
		named += x.st == OM_DEVICE_RACE;
		end(&x);
	}
	printf("# %d of %d dropped waits are named\n", named, dropped);
	CU_ASSERT(dropped > PROGRAMS / 2);
	CU_ASSERT_EQUAL(named, dropped);
}

/* Without clocks, drawn orders find some of them: the device does run commands in other orders. */
static void
dropped_waits_change_numbers(void)
{
	enum { PROGRAMS = 30 };
	uint64_t rng = 7;
	int wrong = 0;
	float got[SLOTS * N], want[SLOTS * N];
	char options[48];
	sim x;

	for (int k = 0; k < PROGRAMS; k++) {
		const struct program p = draw(&rng);
		snprintf(options, sizeof options, "seed=%d,unchecked,fixed", k);
		start(&x, options);
		play(&x, &p, 0, got);
		ends(&x, OM_DEVICE_OK, NULL);
		compute(&p, want);
		wrong += memcmp(got, want, sizeof got) != 0;
	}
	printf("# %d of %d programs without their first wait compute something else\n", wrong, PROGRAMS);
	CU_ASSERT(wrong > 0);
}

static CU_TestInfo sim_tests[] = {
	{"streams and events keep the order of data", streams_and_events},
	{"a missing wait is a race", a_missing_wait_is_a_race},
	{"a write after an unordered read is a race", a_write_after_an_unordered_read_is_a_race},
	{"memory of the host is checked", memory_of_the_host_is_checked},
	{"a sync is an order", a_sync_is_an_order},
	{"ranges are checked", ranges_are_checked},
	{"a kernel that leaves its memory is named", a_kernel_that_leaves_its_memory_is_named},
	{"a write that is not declared is named", a_write_that_is_not_declared_is_named},
	{"freed memory is not used", freed_memory_is_not_used},
	{"memory in use is not freed", memory_in_use_is_not_freed},
	{"a kept address is named", a_kept_address_is_named},
	{"a capture is replayed", a_capture_is_replayed},
	{"a captured address is stale", a_captured_address_is_stale},
	{"captures are checked", captures_are_checked},
	{"allocations fail on request", allocations_fail_on_request},
	{"options are checked", options_are_checked},
	{"dropped waits are races", dropped_waits_are_races},
	{"dropped waits change numbers", dropped_waits_change_numbers},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("simulated device", sim_tests);
