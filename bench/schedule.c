/* SPDX-License-Identifier: Apache-2.0 */
/* Execution orders for the problems of a folder: the peak in the original order,
 * in breadth-first order, and in the order found; with in-place computation and
 * without.
 *
 *	schedule [-n NODES] FILE...
 *
 * A file holds lines: `t ID BYTES` a tensor, `i ID` an input, `o ID` an output,
 * `op INPLACE IN,IN OUT,OUT` an op; `-` for an empty list.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "schedule/scheduler.h"

struct file {
	om_arena *mem;
	om_schedule_storage *storage;
	om_schedule_op *op;
	size_t nstorage, capstorage, nop, capop;
};

static uint32_t
read_list(struct file *f, const char *text, uint32_t **out)
{
	uint32_t n = 0;
	char *end;

	*out = OM_NEWN(f->mem, uint32_t, strlen(text) + 1);
	for (; *text && *text != '-'; text = *end ? end + 1 : end)
		(*out)[n++] = (uint32_t)strtoul(text, &end, 10);
	return n;
}

static void
read_tensor(struct file *f, uint32_t id, uint64_t bytes)
{
	while (f->nstorage <= id)
		OM_PUSH(f->mem, f->storage, f->nstorage, f->capstorage, ((om_schedule_storage){0, OM_SCHEDULE_NONE, false}));
	f->storage[id].bytes = bytes;
}

/* Inputs and outputs belong to the caller: they count as zero bytes. */
static void
read_op(struct file *f, bool in_place, const char *in, const char *out)
{
	uint32_t *use, *made;
	om_schedule_op op = {0};

	op.nuse = read_list(f, in, &use);
	const uint32_t n = read_list(f, out, &made);
	op.use = use;
	for (uint32_t k = 0; k < n; k++) {
		f->storage[made[k]].producer = (uint32_t)f->nop;
		op.begin += f->storage[made[k]].bytes;
	}
	if (in_place && n && op.nuse && f->storage[made[0]].bytes == f->storage[use[0]].bytes) {
		const om_inplace_pair over = {made[0], use[0]};
		op.over = om_memdup(f->mem, &over, sizeof over);
		op.nover = 1;
	}
	OM_PUSH(f->mem, f->op, f->nop, f->capop, op);
}

static bool
read_file(struct file *f, const char *path, bool in_place)
{
	FILE *from = fopen(path, "r");
	char *line = NULL, *in, *out, *save;
	size_t size = 0;

	if (!from)
		return false;
	while (getline(&line, &size, from) > 0) {
		char *what = strtok_r(line, " \n", &save), *one = strtok_r(NULL, " \n", &save);
		if (!what || !one)
			continue;
		in = strtok_r(NULL, " \n", &save);
		if (strcmp(what, "t") == 0 && in)
			read_tensor(f, (uint32_t)strtoul(one, NULL, 10), strtoull(in, NULL, 10));
		else if (strcmp(what, "i") == 0 || strcmp(what, "o") == 0)
			f->storage[strtoul(one, NULL, 10)].bytes = 0;
		else if (strcmp(what, "op") == 0 && in && (out = strtok_r(NULL, " \n", &save)))
			read_op(f, in_place && *one == '1', in, out);
	}
	free(line);
	fclose(from);
	return true;
}

static const char *
name_of(om_arena *mem, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;

	return om_strndup(mem, base, strcspn(base, "."));
}

static bool
show(om_session *s, const char *path, bool in_place, uint64_t nodes)
{
	struct file f = {.mem = om_arena_new()};
	om_schedule_result r;
	bool good = read_file(&f, path, in_place);

	if (!good)
		fprintf(stderr, "%s cannot be read\n", path);
	const om_schedule_problem q = {f.op, f.storage, (uint32_t)f.nop, (uint32_t)f.nstorage};
	uint32_t *order = OM_NEWN(f.mem, uint32_t, q.nop + 1);
	if (good && q.nop) {
		const double start = om_now_ms();
		good = om_schedule_solve(s, &q, nodes, order, &r) == OM_OK;
		const double ms = om_now_ms() - start;
		uint64_t peak = good ? om_schedule_peak(&q, order) : 0;
		om_schedule_bfs(&q, false, order);
		if (good)
			printf("%s\t%s\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIu64 "\t%.1f%s\n",
				name_of(f.mem, path), in_place ? "inplace" : "plain", q.nop, r.given,
				om_schedule_peak(&q, order), r.peak, r.lower_bound, r.is_proven ? "proven" : "open",
				r.nodes, ms, peak == r.peak ? "" : "\tWRONG");
		else
			fprintf(stderr, "%s: %s\n", path, om_message(s));
	}
	om_arena_free(f.mem);
	return good;
}

int
main(int argc, char **argv)
{
	om_session *s = om_session_new();
	uint64_t nodes = 200000;
	bool good = true;
	int k = 1;

	if (k + 1 < argc && strcmp(argv[k], "-n") == 0) {
		nodes = strtoull(argv[k + 1], NULL, 10);
		k += 2;
	}
	printf("graph\trules\tops\tfile\tbreadth\tfound\tbound\tstatus\tnodes\tms\n");
	for (; k < argc; k++)
		good = show(s, argv[k], false, nodes) && show(s, argv[k], true, nodes) && good;
	om_session_free(s);
	return !good;
}
