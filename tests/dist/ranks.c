/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: `ranks local N` forks N ranks, `mpirun -n N ranks mpi` is one of them, and `ranks threads N` has a thread for
 * each.  All ranks check the same: sums of every type and of sizes around those of pieces, ordered sums to the last bit,
 * groups, messages whose tags come in another order, what ranks agree on; and programs of collectives, run in all ways.
 * With `queue` after N, the calls of a rank are made by a thread of its own.
 * `ranks die HOW` checks what becomes of the others when a rank dies, leaves, ends the run, or does not answer.
 * Rank 0 prints TAP. */
#include <config.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../fixtures.h"
#include "base/clock.h"
#include "onnxmem/comm.h"

struct rank {
	om_comm *c;
	om_session *s;
	int n, bad;
};

/* Of all ranks: a point is ok if it is on each of them. */
static void
point(struct rank *r, bool ok, const char *what)
{
	int64_t bad = !ok;

	if (!ok)
		printf("# rank %u: not ok: %s: %s\n", r->c->rank, what, om_message(r->s));
	if (om_comm_all_reduce(r->c, r->s, (om_comm_group){0}, OM_INT64, &bad, 1, false) != OM_OK)
		bad = 1;
	r->bad |= bad != 0;
	r->n++;
	if (r->c->rank == 0)
		printf("%s %d - %s\n", bad ? "not ok" : "ok", r->n, what);
	fflush(stdout);
}

/* ---- Data that each rank can compute of every other. ---- */

static double
value(uint32_t rank, uint64_t k)
{
	const uint64_t x = (k + 1) * 2654435761u + rank * 40503u;

	return (double)(x >> 7 & 0xff) - 100;
}

/* With a fraction, so that the order of a sum matters. */
static float
real(uint32_t rank, uint64_t k)
{
	return (float)(value(rank, k) * 1.1 + 1e4 / (double)(rank + k + 3));
}

static om_tensor
zeros(uint64_t n, om_dtype type)
{
	const int64_t dim = (int64_t)n;
	om_tensor t = {.type = type, .shape = {.rank = 1}};

	t.shape.dim[0] = dim;
	t.data = calloc(n ? n : 1, 8);
	return t;
}

/* ---- Collectives. ---- */

static const uint64_t sizes[] = {0, 1, 3, 1000, 65536, 70001, 200003};
enum { NSIZE = sizeof sizes / sizeof sizes[0] };

static bool
sums(struct rank *r, om_dtype type, uint64_t n, bool ordered)
{
	/* Unsigned elements have the bits of signed ones, and so have their sums. */
	om_tensor t = zeros(n, type == OM_UINT32 ? OM_INT32 : type == OM_UINT64 ? OM_INT64 : type);
	bool ok = true;

	for (uint64_t k = 0; k < n; k++)
		set_element(&t, (int64_t)k, value(r->c->rank, k));
	ok &= is_ok(r->s, om_comm_all_reduce(r->c, r->s, (om_comm_group){0}, type, t.data, n, ordered));
	for (uint64_t k = 0; k < n && ok; k++) {
		double want = 0;
		for (uint32_t i = 0; i < r->c->size; i++)
			want += value(i, k);
		ok &= element_at(&t, (int64_t)k) == want;
	}
	free(t.data);
	return ok;
}

static void
check_sums(struct rank *r)
{
	static const om_dtype types[] = {OM_FLOAT32, OM_FLOAT64, OM_INT32, OM_INT64, OM_UINT32, OM_UINT64, OM_FLOAT16};
	bool ok = true;

	for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
		for (int k = 0; k < NSIZE; k++)
			ok &= sums(r, types[t], sizes[k], false) && sums(r, types[t], sizes[k], true);
	for (int ordered = 0; ordered < 2; ordered++) {
		uint16_t x[2] = {0x3fc0, 0xbf80};
		float sum[2];
		ok &= is_ok(r->s, om_comm_all_reduce(r->c, r->s, (om_comm_group){0}, OM_BFLOAT16, x, 2, ordered));
		for (int k = 0; k < 2; k++) {
			const uint32_t bits = (uint32_t)x[k] << 16;
			memcpy(&sum[k], &bits, sizeof bits);
		}
		ok &= sum[0] == 1.5f * (float)r->c->size && sum[1] == -(float)r->c->size;
	}
	point(r, ok, "sums of all types and sizes");
	om_tensor t = zeros(8, OM_INT8);
	point(r, is_told(r->s, om_comm_all_reduce(r->c, r->s, (om_comm_group){0}, OM_INT8, t.data, 8, false), OM_UNSUPPORTED,
		"int8 cannot be summed"), "a type without a sum is named");
	free(t.data);
}

/* By rank, in float32: the one order. */
static float
in_order(uint32_t size, uint64_t k)
{
	float sum = real(0, k);

	for (uint32_t i = 1; i < size; i++)
		sum += real(i, k);
	return sum;
}

static void
check_order(struct rank *r)
{
	enum { N = 70001 };
	const uint32_t size = r->c->size;
	float *x = malloc(sizeof *x * N * size), *y = malloc(sizeof *y * N);
	bool ok = true;

	for (uint64_t k = 0; k < N; k++)
		x[k] = real(r->c->rank, k);
	ok &= is_ok(r->s, om_comm_all_reduce(r->c, r->s, (om_comm_group){0}, OM_FLOAT32, x, N, true));
	for (uint64_t k = 0; k < N; k++)
		ok &= x[k] == in_order(size, k);
	point(r, ok, "ordered sums are those by rank, to the last bit");
	for (uint64_t k = 0; k < (uint64_t)N * size; k++)
		x[k] = real(r->c->rank, k);
	ok = is_ok(r->s, om_comm_reduce_scatter(r->c, r->s, (om_comm_group){0}, OM_FLOAT32, x, y, N, true));
	for (uint64_t k = 0; k < N; k++)
		ok &= y[k] == in_order(size, (uint64_t)r->c->rank * N + k);
	point(r, ok, "so are the parts that ranks get of ordered sums");
	for (uint64_t k = 0; k < (uint64_t)N * size; k++)
		x[k] = (float)value(r->c->rank, k);
	ok = is_ok(r->s, om_comm_reduce_scatter(r->c, r->s, (om_comm_group){0}, OM_FLOAT32, x, y, N, false));
	for (uint64_t k = 0; k < N; k++) {
		float want = 0;
		for (uint32_t i = 0; i < size; i++)
			want += (float)value(i, (uint64_t)r->c->rank * N + k);
		ok &= y[k] == want;
	}
	point(r, ok, "parts of sums");
	free(x);
	free(y);
}

static void
check_moves(struct rank *r)
{
	const uint32_t size = r->c->size, rank = r->c->rank;
	bool ok = true;

	for (int i = 0; i < NSIZE; i++) {
		const uint64_t n = sizes[i];
		float *all = calloc(n * size + 1, sizeof *all), *mine = calloc(n + 1, sizeof *mine);
		for (uint64_t k = 0; k < n; k++)
			mine[k] = real(rank, k);
		ok &= is_ok(r->s, om_comm_all_gather(r->c, r->s, (om_comm_group){0}, mine, all, n * sizeof *mine));
		for (uint64_t k = 0; k < n * size; k++)
			ok &= all[k] == real((uint32_t)(k / n), k % n);
		memset(all, 0, n * size * sizeof *all);
		memcpy(all + rank * n, mine, n * sizeof *mine);
		ok &= is_ok(r->s, om_comm_all_gather(r->c, r->s, (om_comm_group){0}, all + rank * n, all, n * sizeof *mine));
		for (uint64_t k = 0; k < n * size; k++)
			ok &= all[k] == real((uint32_t)(k / n), k % n);
		for (uint32_t root = 0; root < size; root++) {
			for (uint64_t k = 0; k < n; k++)
				mine[k] = rank == root ? real(root, k) : 0;
			ok &= is_ok(r->s, om_comm_broadcast(r->c, r->s, (om_comm_group){0}, mine, n * sizeof *mine, root));
			for (uint64_t k = 0; k < n; k++)
				ok &= mine[k] == real(root, k);
		}
		free(all);
		free(mine);
	}
	point(r, ok, "all ranks have what all have, or one of them");
}

/* ---- Groups and messages. ---- */

/* All but rank 1, where there are more than two. */
static bool
group_reduces(struct rank *r, om_comm_group g)
{
	enum { N = 5000 };
	int64_t *x = malloc(sizeof *x * N * g.n), *y = malloc(sizeof *y * N * g.n);
	uint32_t place, size;
	bool ok = is_ok(r->s, om_comm_place(r->c, r->s, g, &place, &size)) && size == g.n;

	for (uint64_t k = 0; k < N * g.n; k++)
		x[k] = (int64_t)value(r->c->rank, k);
	ok &= is_ok(r->s, om_comm_reduce_scatter(r->c, r->s, g, OM_INT64, x, y, N, false));
	ok &= is_ok(r->s, om_comm_all_reduce(r->c, r->s, g, OM_INT64, x, N, false));
	for (uint64_t k = 0; k < N && ok; k++) {
		int64_t whole = 0, part = 0;
		for (size_t i = 0; i < g.n; i++) {
			whole += (int64_t)value((uint32_t)g.rank[i], k);
			part += (int64_t)value((uint32_t)g.rank[i], place * N + k);
		}
		ok &= x[k] == whole && y[k] == part;
	}
	x[0] = r->c->rank;
	ok &= is_ok(r->s, om_comm_all_gather(r->c, r->s, g, x, y, sizeof *x));
	for (size_t i = 0; i < g.n; i++)
		ok &= y[i] == g.rank[i];
	ok &= is_ok(r->s, om_comm_broadcast(r->c, r->s, g, x, sizeof *x, (uint32_t)g.rank[g.n - 1]));
	ok &= x[0] == g.rank[g.n - 1];
	free(x);
	free(y);
	return ok;
}

static void
check_groups(struct rank *r)
{
	int64_t list[64];
	om_comm_group g = {list, 0};
	bool ok = true;

	for (uint32_t i = 0; i < r->c->size; i++)
		if (i != 1 || r->c->size < 3)
			list[g.n++] = i;
	if (r->c->rank != 1 || r->c->size < 3)
		ok = group_reduces(r, g);
	else
		ok = is_told(r->s, om_comm_all_reduce(r->c, r->s, g, OM_INT64, list, 0, false), OM_USAGE, "that it is not in");
	point(r, ok, "collectives of a group");
	list[0] = r->c->size;
	g.n = 1;
	point(r, is_told(r->s, om_comm_barrier(r->c, r->s) == OM_OK ? om_comm_all_gather(r->c, r->s, g, list, list, 8) : OM_RUN,
		OM_USAGE, "is none of"), "a group with a rank that does not exist is refused");
}

static void
check_messages(struct rank *r)
{
	enum { N = 40000 };
	const uint32_t size = r->c->size, rank = r->c->rank, next = (rank + 1) % size, before = (rank + size - 1) % size;
	float *x = malloc(sizeof *x * N), *y = malloc(sizeof *y * N);
	float small = (float)rank, got = -1;
	bool ok = true;

	for (uint64_t k = 0; k < N; k++)
		x[k] = real(rank, k);
	if (size == 1) {
		point(r, is_told(r->s, om_comm_send(r->c, r->s, 0, 1, x, 4), OM_USAGE, "no other rank 0"), "no messages to oneself");
	} else {
		/* Around the ring, from rank 0 on.  MPI may let the sender of a large message wait for its receiver; among local
		 * ranks the receiver asks for the second message first. */
		const bool in_order = strcmp(r->c->ops->name, "local") != 0;
		for (int turn = 0; turn < 2; turn++)
			if ((rank == 0) == (turn == 0)) {
				ok &= is_ok(r->s, om_comm_send(r->c, r->s, next, 7, x, sizeof *x * N));
				ok &= is_ok(r->s, om_comm_send(r->c, r->s, next, 8, &small, sizeof small));
				ok &= is_ok(r->s, om_comm_send(r->c, r->s, next, 9, NULL, 0));
			} else {
				if (!in_order)
					ok &= is_ok(r->s, om_comm_receive(r->c, r->s, before, 8, &got, sizeof got));
				ok &= is_ok(r->s, om_comm_receive(r->c, r->s, before, 7, y, sizeof *y * N));
				if (in_order)
					ok &= is_ok(r->s, om_comm_receive(r->c, r->s, before, 8, &got, sizeof got));
				ok &= got == (float)before;
				ok &= is_ok(r->s, om_comm_receive(r->c, r->s, before, 9, NULL, 0));
				for (uint64_t k = 0; k < N; k++)
					ok &= y[k] == real(before, k);
			}
		point(r, ok, "messages, by tag");
	}
	free(x);
	free(y);
}

/* More sums than a queue holds, all started before one is waited for, from the last to the first; then one of each kind. */
static void
check_transfers(struct rank *r)
{
	enum { MANY = 150, N = 1001 };
	const om_comm_group all = {0};
	const uint32_t size = r->c->size, rank = r->c->rank;
	double *x = malloc(sizeof *x * MANY * N), *rows = malloc(sizeof *rows * N * size), *whole = malloc(sizeof *whole * N * size);
	bool ok = true;

	for (uint64_t k = 0; k < (uint64_t)MANY * N; k++)
		x[k] = value(rank, k);
	for (uint64_t k = 0; k < MANY; k++)
		ok &= is_ok(r->s, om_comm_start_all_reduce(r->c, r->s, all, OM_FLOAT64, x + k * N, N, k % 2));
	for (uint64_t k = MANY; k-- > 0;)
		ok &= is_ok(r->s, om_comm_wait(r->c, r->s, x + k * N));
	for (uint64_t k = 0; k < (uint64_t)MANY * N && ok; k++) {
		double want = 0;
		for (uint32_t i = 0; i < size; i++)
			want += value(i, k);
		ok &= x[k] == want;
	}
	point(r, ok, "sums that are started, and waited for in another order");
	for (uint64_t k = 0; k < (uint64_t)N * size; k++)
		rows[k] = value(rank, k);
	ok = is_ok(r->s, om_comm_start_reduce_scatter(r->c, r->s, all, OM_FLOAT64, rows, x, N, false))
	     && is_ok(r->s, om_comm_start_all_gather(r->c, r->s, all, x, whole, sizeof *x * N))
	     && is_ok(r->s, om_comm_wait(r->c, r->s, whole)) && is_ok(r->s, om_comm_wait(r->c, r->s, x))
	     && is_ok(r->s, om_comm_wait(r->c, r->s, rows));
	for (uint64_t k = 0; k < (uint64_t)N * size && ok; k++) {
		double want = 0;
		for (uint32_t i = 0; i < size; i++)
			want += value(i, k);
		ok &= whole[k] == want;
	}
	point(r, ok, "one that reads what the one before it computes");
	om_comm_cancel(r->c);
	point(r, is_ok(r->s, om_comm_barrier(r->c, r->s)), "nothing to cancel");
	free(x);
	free(rows);
	free(whole);
}

static void
check_agreement(struct rank *r)
{
	char model[] = "the same", other[] = "another ";

	point(r, is_ok(r->s, om_comm_agree(r->c, r->s, "model", model, sizeof model)), "ranks agree");
	if (r->c->size == 1)
		return;
	const bool last = r->c->rank == r->c->size - 1;
	char want[64];
	snprintf(want, sizeof want, "rank %u has another model than rank 0", r->c->size - 1);
	point(r, is_told(r->s, om_comm_agree(r->c, r->s, "model", last ? other : model, sizeof model), OM_USAGE, want),
		"the one that does not agree is named on all");
	point(r, is_told(r->s, om_comm_agree(r->c, r->s, "model", model, sizeof model - last), OM_USAGE, want),
		"also if it has less");
}

/* ---- Programs. ---- */

/* x is rank + 1 times 1, 2, 3, ...: sums are known. */
static bool
is_run(struct rank *r, const char *text, om_exec_options o, const char *passes)
{
	const uint32_t size = r->c->size, rank = r->c->rank;
	bench b = bench_open();
	const int64_t n = (int64_t)size * 3;
	om_tensor x = zeros((uint64_t)n, OM_FLOAT32);
	bool ok = is_ok(b.s, bench_plan(&b, text, passes));

	o.comm = r->c;
	for (int64_t k = 0; k < n; k++)
		((float *)x.data)[k] = (float)((rank + 1) * (uint32_t)(k + 1));
	ok = ok && is_ok(b.s, bench_exec(&b, &o));
	/* Twice: what a run overwrites must not be read by the next. */
	for (int turn = 0; turn < 2 && ok; turn++) {
		ok &= is_ok(b.s, bench_run(&b, &x, 1));
		const float total = (float)(size * (size + 1) / 2);
		for (int64_t k = 0; k < n && ok; k++)
			ok &= ((float *)om_exec_result(b.e, 0)->data)[k] == total * (float)(k + 1);
		for (int64_t k = 0; k < 3 && ok; k++)
			ok &= ((float *)om_exec_result(b.e, 1)->data)[k] == -total * (float)(rank * 3 + (uint32_t)k + 1);
		for (int64_t k = 0; k < n && ok; k++)
			ok &= ((float *)om_exec_result(b.e, 2)->data)[k] == -total * (float)(k + 1);
		for (int64_t k = 0; k < n && ok; k++)
			ok &= ((float *)om_exec_result(b.e, 3)->data)[k] == (float)(-(int64_t)size * (k + 1));
	}
	free(x.data);
	bench_close(&b);
	return ok;
}

/* The same, but collectives are started first, and end later. */
static void
check_transfer_programs(struct rank *r)
{
	const uint32_t size = r->c->size;
	char text[2048];

	snprintf(text, sizeof text,
		"program \"t\" ir 8 opset 17 opset org.onnxmem.dist 1\n"
		"^main(%%x: float32[%u]) {\n"
		"\t%%ta = org.onnxmem.dist::AllReduce(%%x) {ranks = %u, async = 1}\n"
		"\t%%n = Neg(%%x)\n"
		"\t%%m = Neg(%%x)\n"
		"\t%%tp = org.onnxmem.dist::ReduceScatter(%%m) {ranks = %u, async = 1}\n"
		"\t%%a = org.onnxmem.dist::Wait(%%ta)\n"
		"\t%%p = org.onnxmem.dist::Wait(%%tp, %%m)\n"
		"\t%%tg = org.onnxmem.dist::AllGather(%%p) {ranks = %u, async = 1}\n"
		"\t%%b = org.onnxmem.dist::Broadcast(%%n) {root = %u}\n"
		"\t%%g = org.onnxmem.dist::Wait(%%tg, %%p)\n"
		"\tret %%a, %%p, %%g, %%b\n"
		"}\n", size * 3, size, size, size, size - 1);
	for (int w = 0; w < NWAY; w++) {
		char what[100];
		snprintf(what, sizeof what, "a program of transfers, %s", way_text[w]);
		point(r, is_run(r, text, ways[w], w == SEPARATE ? "shapes,fold" : om_default_pipeline()), what);
	}
}

static void
check_programs(struct rank *r)
{
	const uint32_t size = r->c->size;
	char text[2048];

	for (int ordered = 0; ordered < 2; ordered++) {
		snprintf(text, sizeof text,
			"program \"t\" ir 8 opset 17 opset org.onnxmem.dist 1\n"
			"^main(%%x: float32[%u]) {\n"
			"\t%%a = org.onnxmem.dist::AllReduce(%%x) {ranks = %u, ordered = %d}\n"
			"\t%%n = Neg(%%x)\n"
			"\t%%p = org.onnxmem.dist::ReduceScatter(%%n) {ranks = %u, ordered = %d}\n"
			"\t%%g = org.onnxmem.dist::AllGather(%%p) {ranks = %u}\n"
			"\t%%b = org.onnxmem.dist::Broadcast(%%n) {root = %u}\n"
			"\tret %%a, %%p, %%g, %%b\n"
			"}\n", size * 3, size, ordered, size, ordered, size, size - 1);
		for (int w = 0; w < NWAY; w++) {
			char what[100];
			snprintf(what, sizeof what, "a program of collectives, %s%s", way_text[w], ordered ? ", ordered" : "");
			point(r, is_run(r, text, ways[w], w == SEPARATE ? "shapes,fold" : om_default_pipeline()), what);
		}
	}
}

/* A number goes around the ring of ranks, each of which adds one: the order of the messages is that of the file. */
static bool
goes_round(struct rank *r, om_exec_options o, const char *passes)
{
	const uint32_t size = r->c->size, rank = r->c->rank, next = (rank + 1) % size, before = (rank + size - 1) % size;
	const float x[2] = {1, 2};
	const om_tensor in = floats_of(2, x);
	bench b = bench_open();
	char text[1024];

	o.comm = r->c;
	snprintf(text, sizeof text, rank == 0
		? "program \"t\" ir 8 opset 17 opset org.onnxmem.dist 1\n^main(%%x: float32[2]) {\n"
		"\t%%z = org.onnxmem.dist::Send(%%x) {peer = %1$u, tag = 3}\n"
		"\t%%y = org.onnxmem.dist::Recv() {peer = %2$u, tag = 3, dtype = 1, shape = [2]}\n\tret %%y\n}\n"
		: "program \"t\" ir 8 opset 17 opset org.onnxmem.dist 1\n^main(%%x: float32[2]) {\n"
		"\t%%one = const float32[] {1.0}\n"
		"\t%%r = org.onnxmem.dist::Recv() {peer = %2$u, tag = 3, dtype = 1, shape = [2]}\n"
		"\t%%s = Add(%%r, %%one)\n\t%%y = org.onnxmem.dist::Send(%%s) {peer = %1$u, tag = 3}\n\tret %%y\n}\n", next, before);
	bool ok = is_ok(b.s, bench_plan(&b, text, passes)) && is_ok(b.s, bench_exec(&b, &o));
	for (int turn = 0; turn < 2; turn++) {
		const float add = (float)(rank ? rank : size - 1), want[2] = {1 + add, 2 + add};
		ok = ok && is_ok(b.s, bench_run(&b, &in, 1)) && is_floats(om_exec_result(b.e, 0), 2, want);
	}
	bench_close(&b);
	return ok;
}

static void
check_rings(struct rank *r)
{
	for (int w = 0; w < NWAY && r->c->size > 1; w++) {
		char what[100];
		snprintf(what, sizeof what, "a program of messages, %s", way_text[w]);
		point(r, goes_round(r, ways[w], w == SEPARATE ? "shapes,fold" : om_default_pipeline()), what);
	}
}

static void
check_refusals(struct rank *r)
{
	const float two[2] = {1, 2};
	om_tensor x = floats_of(2, two);
	bench b = bench_open();
	char text[400];

	snprintf(text, sizeof text, "program \"t\" ir 8 opset 17 opset org.onnxmem.dist 1\n^main(%%x: float32[2]) {\n"
		"\t%%a = org.onnxmem.dist::AllReduce(%%x) {ranks = %u}\n\tret %%a\n}\n", r->c->size + 1);
	om_exec_options o = OM_EXEC_OPTIONS(.comm = r->c), alone = OM_EXEC_OPTIONS(0);
	bool ok = is_ok(b.s, bench_plan(&b, text, om_default_pipeline())) && is_ok(b.s, bench_exec(&b, &o));
	char want[100];
	snprintf(want, sizeof want, "it is for %u ranks, but the run has %u", r->c->size + 1, r->c->size);
	point(r, ok && is_told(b.s, bench_run(&b, &x, 1), OM_RUN, want), "a run with another number of ranks is refused");
	om_exec_free(b.e);
	b.e = NULL;
	point(r, is_ok(b.s, bench_exec(&b, &alone)) && is_told(b.s, bench_run(&b, &x, 1), OM_RUN, "it has no communicator"),
		"so is one without a communicator");
	bench_close(&b);
}

static int
check_all(om_comm *c)
{
	struct rank r = {.c = c, .s = om_session_new()};

	check_sums(&r);
	check_order(&r);
	check_moves(&r);
	check_groups(&r);
	check_messages(&r);
	check_transfers(&r);
	check_agreement(&r);
	check_programs(&r);
	check_transfer_programs(&r);
	check_rings(&r);
	check_refusals(&r);
	point(&r, is_ok(r.s, om_comm_barrier(c, r.s)), "all are there at the end");
	if (c->rank == 0)
		printf("1..%d\n", r.n);
	om_session_free(r.s);
	fflush(stdout);
	return r.bad;
}

/* ---- Ranks of this machine. ---- */

static bool is_queued;

/* With a queue around the communicator, if one is wanted. */
static bool
has_queue(om_session *s, om_comm **c)
{
	om_comm *inner = *c;

	if (is_queued && !is_ok(s, om_comm_queue_new(s, inner, c))) {
		*c = inner;
		return false;
	}
	return true;
}

struct start {
	om_comm_local *l;
	uint32_t rank;
	int (*run)(om_comm *c);
	int bad;
};

static void *
run_rank(void *arg)
{
	struct start *t = arg;
	om_session *s = om_session_new();
	om_comm *c = NULL;

	t->bad = 1;
	if (is_ok(s, om_comm_local_join(t->l, s, t->rank, &c)) && has_queue(s, &c))
		t->bad = t->run(c);
	om_comm_close(c);
	om_session_free(s);
	return NULL;
}

/* Ranks as processes; the status of each that ended by itself counts. */
static int
run_processes(uint32_t n, double limit, int (*run)(om_comm *c), uint32_t killed)
{
	om_session *s = om_session_new();
	om_comm_local *l;
	pid_t pid[64];
	int bad = 0;

	if (!is_ok(s, om_comm_local_new(s, n, limit, &l)))
		return 1;
	for (uint32_t r = 0; r < n; r++) {
		fflush(stdout);
		if ((pid[r] = fork()) == 0) {
			struct start t = {l, r, run, 0};
			run_rank(&t);
			exit(t.bad);
		}
	}
	for (uint32_t r = 0; r < n; r++) {
		int status = 0;
		waitpid(pid[r], &status, 0);
		bad |= r == killed ? !WIFSIGNALED(status) : !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	om_comm_local_free(l);
	om_session_free(s);
	return bad;
}

static int
run_threads(uint32_t n)
{
	om_session *s = om_session_new();
	struct start t[64];
	pthread_t thread[64];
	om_comm_local *l;
	int bad = 0;

	if (!is_ok(s, om_comm_local_new(s, n, 60, &l)))
		return 1;
	for (uint32_t r = 0; r < n; r++) {
		t[r] = (struct start){l, r, check_all, 0};
		pthread_create(&thread[r], NULL, run_rank, &t[r]);
	}
	for (uint32_t r = 0; r < n; r++) {
		pthread_join(thread[r], NULL);
		bad |= t[r].bad;
	}
	om_comm_local_free(l);
	om_session_free(s);
	return bad;
}

/* ---- Faults. ---- */

static void
nap(void)
{
	usleep(100000);
}

/* The last rank does this after a few sums; the others must fail with this sentence. */
static const struct fault {
	const char *name, *sentence;
	bool is_killed;
	double limit;
} faults[] = {
	{"killed", "rank 2 of 3 has died", true, 0},
	{"left", "rank 2 of 3 has left", false, 0},
	{"ended", "the data are not there", false, 0},
	{"late", "has waited 0.5 seconds", false, 0.5},
};
enum { NFAULT = sizeof faults / sizeof faults[0] };
static int fault;

static int
be_at_fault(om_comm *c, om_session *s)
{
	nap();
	if (faults[fault].is_killed)
		kill(getpid(), SIGKILL);
	if (strcmp(faults[fault].name, "ended") == 0)
		om_comm_abort(c, "the data are not there");
	if (faults[fault].limit > 0)
		usleep(1500000);
	(void)s;
	return 0;
}

static int
meet_fault(om_comm *c)
{
	om_session *s = om_session_new();
	float *x = calloc(100000, sizeof *x);
	om_status st = OM_OK;
	int bad = 0;

	for (int k = 0; k < 3 && !bad; k++)
		bad |= !is_ok(s, om_comm_all_reduce(c, s, (om_comm_group){0}, OM_FLOAT32, x, 100000, false));
	if (c->rank == c->size - 1) {
		bad |= be_at_fault(c, s);
	} else {
		for (int k = 0; k < 1000000 && st == OM_OK; k++) {
			st = om_comm_start_all_reduce(c, s, (om_comm_group){0}, OM_FLOAT32, x, 100000, false);
			if (st == OM_OK)
				st = om_comm_wait(c, s, x);
		}
		bad |= !is_told(s, st, OM_RUN, faults[fault].sentence);
		bad |= !is_told(s, om_comm_barrier(c, s), OM_RUN, faults[fault].sentence);
	}
	free(x);
	om_session_free(s);
	return bad;
}

/* Rank 0 starts a sum that no other rank takes part in, and gives up: afterwards the memory is its own again, and nothing works. */
static int
cancels(om_comm *c)
{
	om_session *s = om_session_new();
	float *x = calloc(1000, sizeof *x);
	int bad = 0;

	if (c->rank == 0) {
		bad |= !is_ok(s, om_comm_start_all_reduce(c, s, (om_comm_group){0}, OM_FLOAT32, x, 1000, false));
		bad |= !is_ok(s, om_comm_start_all_reduce(c, s, (om_comm_group){0}, OM_FLOAT32, x, 1000, false));
		om_comm_cancel(c);
		free(x);
		x = NULL;
		bad |= !is_told(s, om_comm_wait(c, s, &bad), OM_STOPPED, "the run was stopped");
		bad |= !is_told(s, om_comm_barrier(c, s), OM_STOPPED, "the run was stopped");
		om_comm_abort(c, "given up");
	} else {
		bad |= !is_told(s, om_comm_receive(c, s, 0, 1, &bad, sizeof bad), OM_RUN, "given up");
	}
	free(x);
	om_session_free(s);
	return bad;
}

/* A session that is stopped ends a wait, as it ends a run. */
static int
stops(om_comm *c)
{
	om_session *s = om_session_new();
	float x = 1;
	int bad = 0;

	if (c->rank == 0) {
		om_session_stop(s, true);
		bad |= !is_told(s, om_comm_all_reduce(c, s, (om_comm_group){0}, OM_FLOAT32, &x, 1, false), OM_STOPPED, "was stopped");
		om_comm_abort(c, "stopped");
	} else {
		bad |= !is_told(s, om_comm_receive(c, s, 0, 1, &x, sizeof x), OM_RUN, "stopped");
	}
	om_session_free(s);
	return bad;
}

static int
check_ends(void)
{
	const int cancelled = run_processes(2, 20, cancels, UINT32_MAX), stopped = run_processes(2, 20, stops, UINT32_MAX);

	printf("%s %d - transfers that nobody waits for are cancelled\n", cancelled ? "not ok" : "ok", NFAULT + 1);
	printf("%s %d - who waits may be stopped\n", stopped ? "not ok" : "ok", NFAULT + 2);
	return cancelled | stopped;
}

static int
check_faults(void)
{
	int bad = 0;

	for (fault = 0; fault < NFAULT; fault++) {
		const int one = run_processes(3, faults[fault].limit, meet_fault, faults[fault].is_killed ? 2 : UINT32_MAX);
		printf("%s %d - a rank is %s: the others end with a sentence\n", one ? "not ok" : "ok", fault + 1, faults[fault].name);
		bad |= one;
	}
	if (is_queued)
		bad |= check_ends();
	printf("1..%d\n", NFAULT + 2 * is_queued);
	return bad;
}

int
main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	const uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;

	is_queued = argc > 2 && strcmp(argv[argc - 1], "queue") == 0;
	if (strcmp(how, "local") == 0)
		return run_processes(n, 5, check_all, UINT32_MAX);
	if (strcmp(how, "threads") == 0)
		return run_threads(n);
	if (strcmp(how, "faults") == 0)
		return check_faults();
	om_session *s = om_session_new();
	om_comm *c;
	if (!is_ok(s, om_comm_mpi_open(s, 60, &c)))
		return 77;
	const int bad = !has_queue(s, &c) || check_all(c);
	om_comm_close(c);
	om_session_free(s);
	return bad;
}
