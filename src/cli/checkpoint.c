/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: all states by name, and the progress of the training under names that no state
 * has. NumPy can read them. */
#include <config.h>

#include <string.h>

#include "cli/checkpoint.h"
#include "cli/npy.h"

#define OURS "onnxmem."

enum { NFIELD = 7 };

/* Field `k` of `at` as a tensor; returns its name. */
static const char *
field(om_progress_of *at, unsigned k, om_tensor *t)
{
	const struct {
		const char *name;
		om_dtype type;
		void *data;
	} all[NFIELD] = {
		{OURS "epoch", OM_UINT64, &at->epoch}, {OURS "batch", OM_UINT64, &at->batch},
		{OURS "seed", OM_UINT64, &at->seed}, {OURS "samples", OM_INT64, &at->samples},
		{OURS "size", OM_INT64, &at->size}, {OURS "loss", OM_FLOAT64, &at->loss},
		{OURS "steps", OM_UINT64, &at->steps},
	};

	*t = (om_tensor){.type = all[k].type, .data = all[k].data};
	return all[k].name;
}

om_status
om_checkpoint_save(om_cli *c, const char *path, const om_trainer *t, const om_progress_of *at)
{
	om_arena *mem = om_arena_new();
	om_progress_of copy = *at;
	uint32_t n = 0;
	const om_tensor *state;

	while (om_trainer_state(t, n, NULL))
		n++;
	om_npz_entry *e = OM_NEWN(mem, om_npz_entry, (size_t)n + NFIELD);
	for (uint32_t k = 0; (state = om_trainer_state(t, k, &e[k].name)); k++)
		e[k].t = *state;
	for (unsigned k = 0; k < NFIELD; k++)
		e[n + k].name = field(&copy, k, &e[n + k].t);
	const om_status st = om_npz_save(c->session, path, e, (size_t)n + NFIELD, false);
	om_arena_free(mem);
	return st;
}

static const om_tensor *
find(const om_npz_entry *e, size_t n, const char *name)
{
	for (size_t k = 0; k < n; k++)
		if (strcmp(e[k].name, name) == 0)
			return &e[k].t;
	return NULL;
}

static om_status
read_fields(om_cli *c, const char *path, const om_npz_entry *e, size_t n, om_progress_of *at)
{
	for (unsigned k = 0; k < NFIELD; k++) {
		om_tensor to;
		const char *name = field(at, k, &to);
		const om_tensor *from = find(e, n, name);
		if (!from || from->type != to.type || from->shape.rank != 0)
			return om_fail(c->session, OM_INVALID, "%s is no checkpoint: it has no %s", path, name);
		memcpy(to.data, from->data, 8);
	}
	return OM_OK;
}

static om_status
compare(om_cli *c, const char *path, const om_progress_of *was, const om_progress_of *is)
{
	const struct {
		const char *what;
		int64_t was, is;
	} all[] = {
		{"seed", (int64_t)was->seed, (int64_t)is->seed}, {"number of samples", was->samples, is->samples},
		{"size of a batch", was->size, is->size},
	};

	for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
		if (all[k].was != all[k].is)
			return om_fail(c->session, OM_USAGE, "%s is of another training: its %s is %lld, not %lld", path,
				all[k].what, (long long)all[k].was, (long long)all[k].is);
	return OM_OK;
}

om_status
om_checkpoint_load(om_cli *c, const char *path, om_trainer *t, om_progress_of *at)
{
	om_progress_of was;
	om_npz_entry *e;
	const char *name;
	size_t n;

	OM_TRY(om_npz_load(c->session, path, c->mem, &e, &n));
	OM_TRY(read_fields(c, path, e, n, &was));
	OM_TRY(compare(c, path, &was, at));
	for (uint32_t k = 0; om_trainer_state(t, k, &name); k++) {
		const om_tensor *from = find(e, n, name);
		if (!from)
			return om_fail(c->session, OM_USAGE, "%s is of another training: it has no %s", path, name);
		const om_status st = om_trainer_set(t, name, from);
		if (st != OM_OK)
			return om_note(c->session, st, "reading %s", path);
	}
	*at = was;
	return OM_OK;
}
