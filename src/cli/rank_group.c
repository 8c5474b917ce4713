/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that run a command; see rank_group.h. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/shape.h"
#include "cli/rank_group.h"
#include "onnxmem/opdef.h"

enum { LIMIT = 600, MOST_OVERLAP = 64 };

/* What others than rank 0 print is what it prints. */
static om_status
drop_output(om_cli *c, const om_ranks *r)
{
	if (r->rank == 0)
		return OM_OK;
	c->quiet = true;
	return freopen("/dev/null", "w", stdout) ? OM_OK : om_fail(c->session, OM_IO, "/dev/null: %s", strerror(errno));
}

/* Returns in each rank. */
static om_status
fork_all(om_cli *c, om_ranks *r, double limit)
{
	OM_TRY(om_comm_local_new(c->session, r->size, limit, &r->local));
	r->child = OM_NEWN(c->mem, pid_t, r->size);
	for (uint32_t k = 1; k < r->size; k++) {
		fflush(NULL);
		const pid_t pid = fork();
		if (pid == 0) {
			r->rank = k;
			r->nchild = 0;
			break;
		}
		if (pid < 0)
			return om_fail(c->session, OM_MEMORY, "rank %u cannot be started: %s", k, strerror(errno));
		r->child[r->nchild++] = pid;
	}
	return om_comm_local_join(r->local, c->session, r->rank, &r->comm);
}

/* Sums that go on beside the backward pass need a thread. */
static om_status
start_queue(om_cli *c, om_ranks *r)
{
	om_comm *inner = r->comm;
	uint64_t overlap = 0;

	OM_TRY(om_cli_number(c, "overlap", 0, MOST_OVERLAP, &overlap));
	if (!inner || !overlap)
		return OM_OK;
	const om_status st = om_comm_queue_new(c->session, inner, &r->comm);
	if (st != OM_OK)
		r->comm = inner;
	return st;
}

om_status
om_ranks_start(om_cli *c, om_ranks *r)
{
	const bool is_pipeline = om_cli_has(c, "pipeline");
	uint64_t n = 1;
	double limit = LIMIT;

	*r = (om_ranks){.size = 1};
	OM_TRY(om_cli_number(c, is_pipeline ? "pipeline" : "ranks", 1, OM_MOST_PARTS, &n));
	OM_TRY(om_cli_float(c, "timeout", &limit));
	if (!om_cli_has(c, "ranks") && om_comm_mpi_is_launched()) {
		OM_TRY(om_comm_mpi_open(c->session, limit, &r->comm));
		r->rank = r->comm->rank;
		r->size = r->comm->size;
		if (is_pipeline && n != r->size)
			return om_fail(c->session, OM_USAGE, "--pipeline %llu requires as many ranks, but there are %u", (unsigned long long)n,
				r->size);
	} else if (n > 1) {
		r->size = (uint32_t)n;
		OM_TRY(fork_all(c, r, limit));
	}
	OM_TRY(start_queue(c, r));
	return drop_output(c, r);
}

static om_status
wait_for_all(om_cli *c, om_ranks *r, om_status st)
{
	for (uint32_t k = 0; k < r->nchild; k++) {
		int status = 0;
		while (waitpid(r->child[k], &status, 0) < 0 && errno == EINTR)
			;
		if (st == OM_OK && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
			st = om_fail(c->session, OM_RUN, "rank %u of %u has failed", k + 1, r->size);
	}
	return st;
}

om_status
om_ranks_end(om_cli *c, om_ranks *r, om_status st)
{
	if (st != OM_OK && r->comm) {
		om_comm_abort(r->comm, om_printf(c->mem, "rank %u of %u: %s", r->rank, r->size, om_message(c->session)));
		c->told |= r->rank != 0;   /* rank 0 tells why */
	}
	om_comm_close(r->comm);
	st = wait_for_all(c, r, st);
	om_comm_local_free(r->local);
	return st;
}

om_status
om_rank_step_read(om_cli *c, om_rank_step *out)
{
	const char *mode = om_cli_option(c, "shard");

	*out = (om_rank_step){.mode = mode ? mode : "data", .bucket = 4 << 20, .ordered = om_cli_has(c, "ordered")};
	OM_TRY(om_cli_number(c, "overlap", 0, MOST_OVERLAP, &out->overlap));
	return om_cli_has(c, "bucket") ? om_cli_size(c, "option --bucket", om_cli_option(c, "bucket"), &out->bucket) : OM_OK;
}

om_status
om_ranks_shard(om_cli *c, const om_ranks *r, const om_rank_step *how, int64_t from, int64_t n, int64_t all)
{
	const double weight = from < all ? (double)n / (double)all : 0;

	if (r->size == 1)
		return OM_OK;
	OM_TRY(om_cli_host(c));
	return om_host_run(c->host, c->prog, om_printf(c->mem, "shard:mode=%s:ranks=%u:rank=%u:weight=%.17g:bucket=%llu:overlap=%llu:ordered=%d",
		how->mode, r->size, r->rank, weight, (unsigned long long)how->bucket, (unsigned long long)how->overlap, how->ordered));
}

/* What has to be the same on all ranks of a collective; the peer of a message differs. */
static void
add_collective(om_sha256 *h, const om_op *op)
{
	const om_value *v = op->nin ? op->in[0] : op->out[0];
	char text[512], shape[256];
	const int n = snprintf(text, sizeof text, "%s %s %s\n", op->type, om_dtype_text(v->type.elem),
		om_shape_text(&v->shape, shape, sizeof shape));

	om_sha256_add(h, text, (size_t)n);
	for (uint32_t k = 0; k < op->nattr; k++)
		if (op->attr[k].kind == OM_ATTR_INT || op->attr[k].kind == OM_ATTR_INTS) {
			om_sha256_add(h, op->attr[k].name, strlen(op->attr[k].name));
			om_sha256_add(h, op->attr[k].i, op->attr[k].n * sizeof *op->attr[k].i);
		}
}

om_status
om_ranks_agree(om_cli *c, const om_ranks *r, const om_prog *p)
{
	om_sha256 *h = om_sha256_new(c->mem);
	char digest[OM_SHA256_TEXT];

	if (r->size == 1)
		return OM_OK;
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			if (op->opdef && op->opdef->flags & OM_COLLECTIVE && strcmp(op->type, "Send") != 0 && strcmp(op->type, "Recv") != 0)
				add_collective(h, op);
	om_sha256_end(h, digest);
	return om_comm_agree(r->comm, c->session, "sequence of collectives", digest, strlen(digest));
}

void
om_ranks_share(const om_ranks *r, int64_t all, int64_t *from, int64_t *n)
{
	const int64_t part = all / r->size, more = all % r->size, rank = r->rank;

	*n = part + (rank < more);
	*from = rank * part + (rank < more ? rank : more);
	if (*n == 0) {
		*n = 1;
		*from = all;
	}
}

om_status
om_ranks_gather(om_cli *c, const om_ranks *r, uint64_t mine, uint64_t **all)
{
	*all = OM_NEWN(c->mem, uint64_t, r->size);
	**all = mine;
	return r->size == 1 ? OM_OK : om_comm_all_gather(r->comm, c->session, (om_comm_group){0}, &mine, *all, sizeof mine);
}
