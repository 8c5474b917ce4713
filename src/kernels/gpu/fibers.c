/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers; see fibers.h.  A switch saves the registers that a call keeps: in assembly for x86-64, by the C library
 * elsewhere. */
/* Some systems declare ucontext.h for those who ask for X/Open. */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "kernels/gpu/fibers.h"

enum { STACK = 64 * 1024, SHARED_ALIGN = 16, POISON = 0xff };

#if defined __x86_64__ && defined __ELF__
typedef struct context {
	void *stack;
} context;

void om_fiber_switch(void **save, void *load);
/* The registers that the callee keeps go onto the stack of the one that rests. */
__asm__(".text\n"
	".globl om_fiber_switch\n"
	".hidden om_fiber_switch\n"
	".type om_fiber_switch,@function\n"
	"om_fiber_switch:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp,(%rdi)\n"
	"	mov %rsi,%rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size om_fiber_switch,.-om_fiber_switch\n");

static void
context_switch(context *from, context *to)
{
	om_fiber_switch(&from->stack, to->stack);
}

/* Six registers, the address to return to, and one more word, which aligns the stack as after a call. */
static void
context_start(context *c, char *stack, void (*entry)(void))
{
	void **top = (void **)(stack + STACK) - 8;

	memset(top, 0, 8 * sizeof *top);
	memcpy(&top[6], &entry, sizeof entry);
	c->stack = top;
}
#else
#include <ucontext.h>

typedef struct context {
	ucontext_t u;
} context;

static void
context_switch(context *from, context *to)
{
	swapcontext(&from->u, &to->u);
}

static void
context_start(context *c, char *stack, void (*entry)(void))
{
	getcontext(&c->u);
	c->u.uc_stack.ss_sp = stack;
	c->u.uc_stack.ss_size = STACK;
	c->u.uc_link = NULL;
	makecontext(&c->u, entry, 0);
}
#endif

struct fiber {
	context context;
	bool is_done;
	int barrier;                  /* where it waits */
	size_t shared;                /* bytes of shared memory that it has named */
};

struct om_fibers {
	char *stacks;
	struct fiber fiber[OM_FIBERS_THREADS];
	uint32_t order[OM_FIBERS_THREADS];
	context host;
	om_fiber_place place;
	void (*body)(const void *user);
	const void *user;
	const char *fault;
	int omitted;
	bool has_barriers;
	bool is_reached[OM_FIBERS_SITES];
	_Alignas(SHARED_ALIGN) unsigned char shared[OM_FIBERS_SHARED];
};

/* What this host thread runs: kernels have no parameter for it. */
static _Thread_local om_fibers *running;

om_fibers *
om_fibers_new(void)
{
	om_fibers *f = aligned_alloc(64, (sizeof *f + 63) / 64 * 64);

	if (!f)
		return NULL;
	memset(f, 0, sizeof *f);
	f->omitted = -1;
	f->stacks = mmap(NULL, (size_t)OM_FIBERS_THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f->stacks == MAP_FAILED) {
		free(f);
		return NULL;
	}
	return f;
}

void
om_fibers_free(om_fibers *f)
{
	if (!f)
		return;
	munmap(f->stacks, (size_t)OM_FIBERS_THREADS * STACK);
	free(f);
}

void
om_fibers_omit(om_fibers *f, int barrier)
{
	f->omitted = barrier;
}

bool
om_fibers_reached(const om_fibers *f, int barrier)
{
	return barrier >= 0 && barrier < OM_FIBERS_SITES && f->is_reached[barrier];
}

void
om_fibers_forget(om_fibers *f)
{
	memset(f->is_reached, 0, sizeof f->is_reached);
}

/* ---- For kernels. ---- */

const om_fiber_place *
om_fiber_here(void)
{
	return &running->place;
}

/* Threads name the same arrays in the same order, so each gets the same memory. */
void *
om_fiber_shared(size_t bytes)
{
	om_fibers *f = running;
	struct fiber *mine = &f->fiber[f->place.thread];
	const size_t at = mine->shared;

	mine->shared += (bytes + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
	if (mine->shared > sizeof f->shared) {
		f->fault = "a kernel has more shared memory than a block";
		mine->shared = sizeof f->shared;
		return f->shared;
	}
	return f->shared + at;
}

void
om_fiber_barrier(int number)
{
	om_fibers *f = running;
	struct fiber *mine = &f->fiber[f->place.thread];

	if (number < OM_FIBERS_SITES)
		f->is_reached[number] = true;
	if (number == f->omitted)
		return;
	if (!f->has_barriers) {
		f->fault = "a kernel without shared memory has a barrier";
		return;
	}
	mine->barrier = number;
	context_switch(&mine->context, &f->host);
}

/* ---- Blocks. ---- */

static void
fiber_main(void)
{
	om_fibers *f = running;

	f->body(f->user);
	f->fiber[f->place.thread].is_done = true;
	context_switch(&f->fiber[f->place.thread].context, &f->host);
}

static void
shuffle(uint32_t *order, uint32_t n, uint64_t *seed)
{
	for (uint32_t k = n; k > 1; k--) {
		const uint32_t j = (uint32_t)om_rng_below(seed, k), swapped = order[k - 1];
		order[k - 1] = order[j];
		order[j] = swapped;
	}
}

/* All threads up to their next barrier; the number of those that ended. */
static uint32_t
run_to_barrier(om_fibers *f, uint32_t n)
{
	uint32_t ended = 0;
	int barrier = -1;

	for (uint32_t k = 0; k < n; k++) {
		const uint32_t t = f->order[k];
		f->place.thread = (int32_t)t;
		context_switch(&f->host, &f->fiber[t].context);
		if (f->fiber[t].is_done)
			ended++;
		else if (barrier >= 0 && barrier != f->fiber[t].barrier)
			f->fault = "threads of a block wait at different barriers";
		else
			barrier = f->fiber[t].barrier;
	}
	if (ended && ended < n)
		f->fault = "some threads of a block ended before a barrier of others";
	return ended;
}

static void
run_block_of_fibers(om_fibers *f, uint32_t n, uint64_t *seed)
{
	memset(f->shared, POISON, sizeof f->shared);
	for (uint32_t t = 0; t < n; t++) {
		f->fiber[t].is_done = false;
		f->fiber[t].shared = 0;
		context_start(&f->fiber[t].context, f->stacks + (size_t)t * STACK, fiber_main);
	}
	do
		shuffle(f->order, n, seed);
	while (run_to_barrier(f, n) == 0 && !f->fault);
}

static void
run_block(om_fibers *f, uint32_t n, uint64_t *seed)
{
	if (f->has_barriers) {
		run_block_of_fibers(f, n, seed);
		return;
	}
	shuffle(f->order, n, seed);
	for (uint32_t k = 0; k < n; k++) {
		f->place.thread = (int32_t)f->order[k];
		f->body(f->user);
	}
}

static uint64_t
common_factor(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Every block once: from a drawn one on, by a drawn step that has no factor in common with their number. */
static void
run_blocks(om_fibers *f, uint64_t n, uint32_t threads, uint64_t *seed)
{
	uint64_t at = om_rng_below(seed, n), step = 1 + om_rng_below(seed, n);

	while (common_factor(step, n) != 1)
		step++;
	for (uint64_t k = 0; k < n && !f->fault; k++) {
		const uint64_t x = (uint64_t)f->place.blocks[0], y = (uint64_t)f->place.blocks[1];
		f->place.block[0] = (int64_t)(at % x);
		f->place.block[1] = (int64_t)(at / x % y);
		f->place.block[2] = (int64_t)(at / x / y);
		run_block(f, threads, seed);
		at = (at + step) % n;
	}
}

const char *
om_fibers_run(om_fibers *f, void (*body)(const void *user), const void *user, const uint32_t blocks[3], uint32_t threads,
	bool has_barriers, uint64_t seed)
{
	om_fibers *const before = running;

	if (threads == 0 || threads > OM_FIBERS_THREADS || !blocks[0] || !blocks[1] || !blocks[2])
		return "a grid has no blocks, or a block has no threads or too many";
	running = f;
	f->body = body;
	f->user = user;
	f->fault = NULL;
	f->has_barriers = has_barriers;
	f->place.threads = (int32_t)threads;
	for (int k = 0; k < 3; k++)
		f->place.blocks[k] = blocks[k];
	for (uint32_t k = 0; k < threads; k++)
		f->order[k] = k;
	run_blocks(f, (uint64_t)blocks[0] * blocks[1] * blocks[2], threads, &seed);
	running = before;
	return f->fault;
}
