/* SPDX-License-Identifier: Apache-2.0 */
/* The module onnxmem-mpi.so: the communicator over MPI.
 *
 * Calls are nonblocking and polled, so that a rank that waits can be stopped and has a time limit.  They are made by one thread
 * at a time (MPI_THREAD_SERIALIZED), or, where MPI does not allow that, by the one that started it.  A failure of MPI, a rank that left and a limit end all ranks by
 * MPI_Abort, after the sentence: there is no way on from them.
 *
 * Elements that MPI has no type for are summed by an operation of our own. */
#include <config.h>

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/module.h"

enum { SPINS = 1000, MOST = 1 << 30 };

struct mpi {
	om_comm comm;
	om_comm_ops ops;             /* of this MPI, which may allow other threads or not */
	const om_comm_calls *calls;
	double limit;
	MPI_Comm world;
	MPI_Datatype half, bfloat;   /* two bytes each */
	MPI_Op half_sum, bfloat_sum;
};

/* ---- Sums of 16-bit elements.  MPI gives its function no argument of the caller. ---- */

static void (*sum)(om_dtype type, void *to, const void *from, uint64_t n);

static void
sum_half(void *from, void *to, int *n, MPI_Datatype *type)
{
	(void)type;
	sum(OM_FLOAT16, to, from, (uint64_t)*n);
}

static void
sum_bfloat(void *from, void *to, int *n, MPI_Datatype *type)
{
	(void)type;
	sum(OM_BFLOAT16, to, from, (uint64_t)*n);
}

static MPI_Datatype
type_of(const struct mpi *m, om_dtype t)
{
	switch (t) {
	case OM_FLOAT32: return MPI_FLOAT;
	case OM_FLOAT64: return MPI_DOUBLE;
	case OM_INT32: return MPI_INT32_T;
	case OM_UINT32: return MPI_UINT32_T;
	case OM_INT64: return MPI_INT64_T;
	case OM_UINT64: return MPI_UINT64_T;
	case OM_FLOAT16: return m->half;
	default: return m->bfloat;
	}
}

static MPI_Op
op_of(const struct mpi *m, om_dtype t)
{
	return t == OM_FLOAT16 ? m->half_sum : t == OM_BFLOAT16 ? m->bfloat_sum : MPI_SUM;
}

/* ---- Waiting. ---- */

static om_status
failed(struct mpi *m, om_session *s, const char *what, int code)
{
	char text[MPI_MAX_ERROR_STRING + 1] = "";
	int n = 0;

	MPI_Error_string(code, text, &n);
	return m->calls->fail(s, OM_RUN, "rank %u of %u: %s failed: %s", m->comm.rank, m->comm.size, what, text);
}

static om_status
finish(struct mpi *m, om_session *s, const char *what, MPI_Request *r)
{
	const struct timespec nap = {0, 50000};
	const double start = m->calls->now_ms();
	int done = 0;

	for (unsigned turns = 0;; turns++) {
		const int code = MPI_Test(r, &done, MPI_STATUS_IGNORE);
		if (code != MPI_SUCCESS)
			return failed(m, s, what, code);
		if (done)
			return OM_OK;
		if (turns % 64 == 63 && m->calls->is_stopped(s))
			return m->calls->fail(s, OM_STOPPED, "the run was stopped");
		if (turns % 64 == 63 && m->limit > 0 && m->calls->now_ms() - start > m->limit * 1000)
			return m->calls->fail(s, OM_RUN, "rank %u of %u has waited %g seconds for the others in %s", m->comm.rank,
				m->comm.size, m->limit, what);
		if (turns < SPINS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

#define TRY_MPI(m, s, what, r, call)                                     \
	do {                                                             \
		const int code_ = (call);                                \
		if (code_ != MPI_SUCCESS)                                \
			return failed((m), (s), (what), code_);          \
		const om_status st_ = finish((m), (s), (what), (r));     \
		if (st_ != OM_OK)                                        \
			return st_;                                      \
	} while (0)

static int
part(uint64_t all, uint64_t at, uint64_t most)
{
	return (int)(all - at < most ? all - at : most);
}

/* ---- Collectives: MPI counts by int, so that large ones go in parts. ---- */

static om_status
mpi_all_reduce(om_comm *c, om_session *s, om_dtype type, void *data, uint64_t n)
{
	struct mpi *m = (struct mpi *)c;
	const uint64_t size = m->calls->bits(type) / 8;
	MPI_Request r;

	for (uint64_t at = 0; at < n; at += MOST / size)
		TRY_MPI(m, s, "MPI_Iallreduce", &r, MPI_Iallreduce(MPI_IN_PLACE, (char *)data + at * size, part(n, at, MOST / size),
			type_of(m, type), op_of(m, type), m->world, &r));
	return OM_OK;
}

static om_status
mpi_reduce_scatter(om_comm *c, om_session *s, om_dtype type, const void *in, void *out, uint64_t n)
{
	struct mpi *m = (struct mpi *)c;
	const uint64_t size = m->calls->bits(type) / 8;
	MPI_Request r;

	if (n <= MOST / size) {
		TRY_MPI(m, s, "MPI_Ireduce_scatter_block", &r, MPI_Ireduce_scatter_block(in, out, (int)n, type_of(m, type),
			op_of(m, type), m->world, &r));
		return OM_OK;
	}
	for (uint32_t to = 0; to < c->size; to++)
		for (uint64_t at = 0; at < n; at += MOST / size)
			TRY_MPI(m, s, "MPI_Ireduce", &r, MPI_Ireduce((const char *)in + (to * n + at) * size, (char *)out + at * size,
				part(n, at, MOST / size), type_of(m, type), op_of(m, type), (int)to, m->world, &r));
	return OM_OK;
}

static om_status
mpi_broadcast(om_comm *c, om_session *s, void *data, uint64_t bytes, uint32_t root)
{
	struct mpi *m = (struct mpi *)c;
	MPI_Request r;

	for (uint64_t at = 0; at < bytes; at += MOST)
		TRY_MPI(m, s, "MPI_Ibcast", &r, MPI_Ibcast((char *)data + at, part(bytes, at, MOST), MPI_BYTE, (int)root, m->world,
			&r));
	return OM_OK;
}

static om_status
mpi_all_gather(om_comm *c, om_session *s, const void *in, void *out, uint64_t bytes)
{
	struct mpi *m = (struct mpi *)c;
	char *mine = (char *)out + c->rank * bytes;
	MPI_Request r;

	if (in != mine)
		memcpy(mine, in, bytes);
	if (bytes <= MOST) {
		TRY_MPI(m, s, "MPI_Iallgather", &r, MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, out, (int)bytes, MPI_BYTE, m->world,
			&r));
		return OM_OK;
	}
	for (uint32_t from = 0; from < c->size; from++) {
		const om_status st = mpi_broadcast(c, s, (char *)out + from * bytes, bytes, from);
		if (st != OM_OK)
			return st;
	}
	return OM_OK;
}

static om_status
mpi_send(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, const void *data, uint64_t bytes)
{
	struct mpi *m = (struct mpi *)c;
	MPI_Request r;

	for (uint64_t at = 0; at == 0 || at < bytes; at += MOST)
		TRY_MPI(m, s, "MPI_Isend", &r, MPI_Isend((const char *)data + at, part(bytes, at, MOST), MPI_BYTE, (int)peer, (int)tag,
			m->world, &r));
	return OM_OK;
}

static om_status
mpi_receive(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, void *data, uint64_t bytes)
{
	struct mpi *m = (struct mpi *)c;
	MPI_Request r;

	for (uint64_t at = 0; at == 0 || at < bytes; at += MOST)
		TRY_MPI(m, s, "MPI_Irecv", &r, MPI_Irecv((char *)data + at, part(bytes, at, MOST), MPI_BYTE, (int)peer, (int)tag,
			m->world, &r));
	return OM_OK;
}

static om_status
mpi_barrier(om_comm *c, om_session *s)
{
	struct mpi *m = (struct mpi *)c;
	MPI_Request r;

	TRY_MPI(m, s, "MPI_Ibarrier", &r, MPI_Ibarrier(m->world, &r));
	return OM_OK;
}

/* ---- Starting and ending. ---- */

/* Other ranks get no reason from MPI: this one prints it. */
static void
mpi_abort(om_comm *c, const char *why)
{
	struct mpi *m = (struct mpi *)c;

	fprintf(stderr, "onnxmem: rank %u of %u ends the run of all ranks: %s\n", c->rank, c->size, why);
	fflush(NULL);
	MPI_Abort(m->world, 1);
}

static void
mpi_close(om_comm *c)
{
	struct mpi *m = (struct mpi *)c;

	MPI_Op_free(&m->half_sum);
	MPI_Op_free(&m->bfloat_sum);
	MPI_Type_free(&m->half);
	MPI_Type_free(&m->bfloat);
	MPI_Comm_free(&m->world);
	MPI_Finalize();
	free(m);
}

static const om_comm_ops mpi_ops = {
	.size = sizeof(om_comm_ops), .name = "mpi", .all_reduce = mpi_all_reduce, .reduce_scatter = mpi_reduce_scatter,
	.all_gather = mpi_all_gather, .broadcast = mpi_broadcast, .send = mpi_send, .receive = mpi_receive,
	.barrier = mpi_barrier, .abort = mpi_abort, .close = mpi_close,
};

static om_status
start(const om_comm_calls *calls, om_session *s, bool *serialized)
{
	int there = 0, level = 0;

	MPI_Initialized(&there);
	if (there)
		return calls->fail(s, OM_UNSUPPORTED, "MPI was started before in this process");
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS || level < MPI_THREAD_FUNNELED)
		return calls->fail(s, OM_UNSUPPORTED, "MPI does not start, or not for a process with threads");
	*serialized = level >= MPI_THREAD_SERIALIZED;
	return OM_OK;
}

om_status
om_comm_module(const om_comm_calls *calls, om_session *s, double limit, om_comm **out)
{
	bool serialized = false;
	const om_status st = start(calls, s, &serialized);
	int rank = 0, size = 1;

	if (st != OM_OK)
		return st;
	struct mpi *m = calloc(1, sizeof *m);
	if (!m)
		return calls->fail(s, OM_MEMORY, "cannot allocate a communicator");
	sum = calls->sum;
	m->calls = calls;
	m->limit = limit;
	MPI_Comm_dup(MPI_COMM_WORLD, &m->world);
	MPI_Comm_set_errhandler(m->world, MPI_ERRORS_RETURN);
	MPI_Comm_rank(m->world, &rank);
	MPI_Comm_size(m->world, &size);
	MPI_Type_contiguous(2, MPI_BYTE, &m->half);
	MPI_Type_contiguous(2, MPI_BYTE, &m->bfloat);
	MPI_Type_commit(&m->half);
	MPI_Type_commit(&m->bfloat);
	MPI_Op_create(sum_half, 1, &m->half_sum);
	MPI_Op_create(sum_bfloat, 1, &m->bfloat_sum);
	m->ops = mpi_ops;
	m->ops.may_change_thread = serialized;
	m->comm = (om_comm){&m->ops, (uint32_t)rank, (uint32_t)size};
	*out = &m->comm;
	return OM_OK;
}
