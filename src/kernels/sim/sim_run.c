/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one command of the simulated device. */
#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/sim/sim.h"

/* The device whose command runs in this thread: a handler of signals has no other way to know. */
static _Thread_local om_device *volatile running;

static void
on_fault(int sig, siginfo_t *i, void *context)
{
	om_device *d = running;

	(void)context;
	if (!d) {
		signal(sig, SIG_DFL);
		return;
	}
	om_sim_explain(d, i->si_addr);
	siglongjmp(d->fault, 1);
}

/* The address of byte `at` of memory `m`. */
static void *
address(om_device *d, om_mem handle, uint64_t at)
{
	const struct memory *m = om_sim_memory(d, handle);

	return m ? m->at + m->skew + at : NULL;
}

static om_device_status
run_kernel(om_device *d, const struct command *c)
{
	om_gpu_value p[SIM_ARGS];

	for (uint32_t k = 0; k < c->nargs; k++) {
		const om_arg *a = &c->args[k];
		p[k] = (om_gpu_value){0};
		if (a->kind != OM_ARG_VALUE)
			p[k] = (om_gpu_value){.base = address(d, a->mem, 0), .offset = a->at};
		else if (a->type == OM_ARG_F32)
			p[k].f = a->value.f;
		else
			p[k].i = a->value.i;
	}
	const char *wrong = om_gpu_kernel_run(d->fibers, c->kernel, p, c->grid.blocks, c->grid.threads, om_rng(&d->rng));
	return wrong ? om_sim_fail(d, OM_DEVICE_LOST, "command %u, kernel %s: %s", c->tag, c->kernel->name, wrong) : OM_DEVICE_OK;
}

static om_device_status
run_call(om_device *d, const struct command *c)
{
	om_device_call call = {.device = d, .args = c->args, .nargs = c->nargs, .pointer = address, .user = c->user};
	const om_device_status st = c->function(&call);

	return st == OM_DEVICE_OK ? st : om_sim_fail(d, st, "command %u: the library that it calls failed", c->tag);
}

static om_device_status
run_command(om_device *d, const struct command *c)
{
	const om_arg *a = c->args;

	switch (c->what) {
	case UPLOAD: memcpy(address(d, a->mem, a->at), c->host, a->bytes); break;
	case DOWNLOAD: memcpy(c->host, address(d, a->mem, a->at), a->bytes); break;
	case COPY: memcpy(address(d, a[0].mem, a[0].at), address(d, a[1].mem, a[1].at), a[0].bytes); break;
	case FILL: memset(address(d, a->mem, a->at), c->byte, a->bytes); break;
	case LAUNCH: return run_kernel(d, c);
	case CALL: return run_call(d, c);
	case RECORD: case WAIT: break;
	}
	return OM_DEVICE_OK;
}

static om_device_status
run_caught(om_device *d, const struct command *c)
{
	const struct sigaction mine = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	struct sigaction segv, bus;
	om_device_status st = OM_DEVICE_LOST;

	sigaction(SIGSEGV, &mine, &segv);
	sigaction(SIGBUS, &mine, &bus);
	running = d;
	if (sigsetjmp(d->fault, 1) == 0)
		st = run_command(d, c);
	running = NULL;
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	return st;
}

/* ---- Writes that a command did not declare: in memories that are small enough to look at. ---- */

enum { WATCHED_BYTES = 256 * 1024 };

struct watch {
	unsigned char *before[SIM_ARGS];     /* by argument: what its memory had; NULL: not watched, or by another one */
};

static bool
is_watched_before(const struct command *c, uint32_t k)
{
	for (uint32_t i = 0; i < k; i++)
		if (c->args[i].kind != OM_ARG_VALUE && c->args[i].mem == c->args[k].mem)
			return true;
	return false;
}

static void
watch_start(om_device *d, const struct command *c, struct watch *w)
{
	for (uint32_t k = 0; (c->what == LAUNCH || c->what == CALL) && k < c->nargs && k < SIM_ARGS; k++) {
		const struct memory *m = c->args[k].kind == OM_ARG_VALUE ? NULL : om_sim_memory(d, c->args[k].mem);
		if (!m || m->bytes > WATCHED_BYTES || is_watched_before(c, k) || !(w->before[k] = malloc(m->bytes)))
			continue;
		memcpy(w->before[k], m->at + m->skew, m->bytes);
	}
}

static bool
may_write(const struct command *c, om_mem m, uint64_t byte)
{
	for (uint32_t k = 0; k < c->nargs; k++) {
		const om_arg *a = &c->args[k];
		if (a->kind != OM_ARG_VALUE && a->kind != OM_ARG_IN && a->mem == m && byte >= a->at && byte - a->at < a->bytes)
			return true;
	}
	return false;
}

static om_device_status
watch_one(om_device *d, const struct command *c, uint32_t k, const unsigned char *before)
{
	const struct memory *m = om_sim_memory(d, c->args[k].mem);
	const unsigned char *now = (const unsigned char *)m->at + m->skew;

	for (uint64_t i = 0; i < m->bytes; i++)
		if (before[i] != now[i] && !may_write(c, c->args[k].mem, i))
			return om_sim_fail(d, OM_DEVICE_LOST, "command %u%s%s writes byte %llu of memory %u, which it did not declare", c->tag,
				c->kernel ? ", kernel " : "", c->kernel ? c->kernel->name : "", (unsigned long long)i, (uint32_t)c->args[k].mem);
	return OM_DEVICE_OK;
}

static om_device_status
watch_end(om_device *d, const struct command *c, struct watch *w, om_device_status st)
{
	for (uint32_t k = 0; k < SIM_ARGS; k++) {
		if (w->before[k] && st == OM_DEVICE_OK)
			st = watch_one(d, c, k, w->before[k]);
		free(w->before[k]);
	}
	return st;
}

/* Before: all handles must be valid.  After: memory that was used moves. */
om_device_status
om_sim_run(om_device *d, struct command *c)
{
	struct watch w = {{NULL}};

	for (uint32_t k = 0; k < c->nargs; k++)
		if (c->args[k].kind != OM_ARG_VALUE && c->args[k].mem && !om_sim_memory(d, c->args[k].mem))
			return om_sim_fail(d, OM_DEVICE_ARGUMENT, "command %u runs after memory %u was freed", c->tag,
				(uint32_t)c->args[k].mem);
	d->running = c->tag;
	watch_start(d, c, &w);
	om_device_status st = watch_end(d, c, &w, run_caught(d, c));
	for (uint32_t k = 0; k < c->nargs; k++) {
		struct memory *m = c->args[k].kind == OM_ARG_VALUE ? NULL : om_sim_memory(d, c->args[k].mem);
		if (m)
			m->queued--;
		if (m && st == OM_DEVICE_OK)
			st = om_sim_move(d, m);
	}
	return st;
}
