/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the module of CUDA that programs do not use yet, and what it refuses; on the driver of mock.h, by
 * cuda.test.  Prints TAP. */
#include <config.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu/source.h"
#include "onnxmem/device.h"

enum { N = 1000, BYTES = N * sizeof(float), FIRST = BYTES, SECOND = 2 * BYTES, SUM = 3 * BYTES, ELSEWHERE = 4800 };

struct bench {
	const om_device_ops *o;
	om_device *d;
	om_stream *s, *t;
	om_event *start, *fork, *join;
	om_device_code *copy;
	om_mem m;
	unsigned tests;
	bool is_wrong;
	float in[N], out[N];
};

static void
point(struct bench *b, bool ok, const char *what)
{
	printf("%s %u - %s\n", ok ? "ok" : "not ok", ++b->tests, what);
	if (!ok)
		printf("# %s\n", b->o->error(b->d));
	b->is_wrong |= !ok;
}

static void
must(struct bench *b, om_device_status st)
{
	if (st == OM_DEVICE_OK)
		return;
	printf("Bail out! %s\n", b->o->error(b->d));
	exit(EXIT_FAILURE);
}

static om_arg
memory(om_arg_kind kind, om_mem m, uint64_t at)
{
	return (om_arg){.kind = kind, .mem = m, .at = at, .bytes = BYTES};
}

static om_arg
number(int64_t i)
{
	return (om_arg){.kind = OM_ARG_VALUE, .type = OM_ARG_I64, .value.i = i};
}

/* Elements [0, N) of one range to another, by the kernel of moves. */
static om_device_status
move(struct bench *b, om_stream *s, uint64_t to, uint64_t from, uint32_t nargs)
{
	const om_grid g = {.blocks = {4, 1, 1}, .threads = 256};
	const om_arg args[] = {memory(OM_ARG_IN, b->m, from), memory(OM_ARG_OUT, b->m, to), number(N), number(0), number(0),
		number(1), number(1), number(1), number(1), number(1), number(N),
		number(0), number(0), number(0), number(0), number(0), number(1),
		number(0), number(0), number(0), number(0), number(0), number(1)};
	enum { ALL = sizeof args / sizeof *args };

	return b->o->launch(s, b->copy, &g, args, nargs ? nargs : ALL, 7);
}

static void
start(struct bench *b, const om_device_ops *o)
{
	const char *name = "copy_u32", *source = om_gpu_source_text("move");
	char *text;

	*b = (struct bench){.o = o};
	must(b, o->open(&b->d, "device=0"));
	must(b, o->stream_create(b->d, &b->s));
	must(b, o->stream_create(b->d, &b->t));
	must(b, o->event_create(b->d, &b->start));
	must(b, o->event_create(b->d, &b->fork));
	must(b, o->event_create(b->d, &b->join));
	must(b, o->alloc(b->d, OM_MEM_ARENA, 4 * BYTES, &b->m));
	if (asprintf(&text, "#define TN u32\n%s", source) < 0)
		exit(EXIT_FAILURE);
	must(b, o->build(b->d, text, &name, 1, &b->copy));
	free(text);
	for (int k = 0; k < N; k++)
		b->in[k] = (float)k;
}

static void
end(struct bench *b)
{
	b->o->code_free(b->copy);
	b->o->event_free(b->start);
	b->o->event_free(b->fork);
	b->o->event_free(b->join);
	b->o->stream_free(b->s);
	b->o->stream_free(b->t);
	b->o->free(b->d, b->m);
	b->o->close(b->d);
}

static bool
is_there(struct bench *b, uint64_t at)
{
	must(b, b->o->download(b->s, b->out, b->m, at, BYTES, 9));
	must(b, b->o->sync(b->s));
	return memcmp(b->in, b->out, BYTES) == 0;
}

/* A capture over two streams is replayed with other numbers at the same place. */
static void
captures(struct bench *b)
{
	om_device_graph *g;
	bool same = true;

	must(b, b->o->capture_begin(b->s));
	must(b, move(b, b->s, FIRST, 0, 0));
	must(b, b->o->record(b->s, b->fork));
	must(b, b->o->wait(b->t, b->fork));
	must(b, move(b, b->t, SECOND, FIRST, 0));
	must(b, b->o->record(b->t, b->join));
	must(b, b->o->wait(b->s, b->join));
	must(b, b->o->copy(b->s, b->m, SUM, b->m, SECOND, BYTES, 3));
	must(b, b->o->capture_end(b->s, &g));
	for (int k = 0; k < 5; k++) {
		b->in[k] += 0.5F;
		must(b, b->o->upload(b->s, b->m, 0, b->in, BYTES, 1));
		must(b, b->o->replay(b->s, g));
		same = is_there(b, SUM) && same;
	}
	point(b, same, "a capture of two streams is replayed");
	b->o->graph_free(g);
}

static void
orders(struct bench *b)
{
	bool same = true;

	for (int k = 0; k < 20; k++) {
		b->in[k] += 1;
		must(b, b->o->upload(b->t, b->m, 0, b->in, BYTES, 1));
		must(b, move(b, b->t, FIRST, 0, 0));
		must(b, b->o->record(b->t, b->fork));
		must(b, b->o->wait(b->s, b->fork));
		must(b, move(b, b->s, SECOND, FIRST, 0));
		same = is_there(b, SECOND) && same;
	}
	point(b, same, "an event orders two streams");
	point(b, b->o->elapsed(b->start, b->fork) < 0, "the time to an event that was not recorded is not known");
	must(b, b->o->record(b->s, b->start));
	point(b, b->o->elapsed(b->start, b->fork) >= 0, "that between two that were is");
	must(b, b->o->fill(b->s, b->m, FIRST, BYTES, 0, 2));
	memset(b->in, 0, BYTES);
	point(b, is_there(b, FIRST), "bytes are filled");
}

static om_device_status
touch(om_device_call *c)
{
	const char *at = c->pointer(c->device, c->args[0].mem, c->args[0].at), *start_of = c->pointer(c->device, c->args[0].mem, 0);

	*(bool *)c->user = c->native_stream && at == start_of + c->args[0].at && !c->pointer(c->device, 0, 0);
	return OM_DEVICE_OK;
}

static om_device_status
fail(om_device_call *c)
{
	(void)c;
	return OM_DEVICE_LOST;
}

static void
libraries(struct bench *b)
{
	const om_arg a = memory(OM_ARG_INOUT, b->m, FIRST);
	bool is_right = false;

	point(b, b->o->call(b->s, touch, &is_right, &a, 1, 4) == OM_DEVICE_OK && is_right, "a library gets addresses and the stream");
	point(b, b->o->call(b->s, fail, NULL, &a, 1, 4) == OM_DEVICE_LOST && strstr(b->o->error(b->d), "command 4"), "its failure is one");
}

static bool
is_refused(struct bench *b, om_device_status st, const char *text)
{
	return st == OM_DEVICE_ARGUMENT && strstr(b->o->error(b->d), text);
}

static om_device_status
take_pointer(om_device_call *c)
{
	void **to = c->user;

	*to = c->pointer(c->device, c->args[0].mem, 0);
	return OM_DEVICE_OK;
}

/* The address that another library would have. */
static void *
pointer_of(struct bench *b, om_mem m)
{
	const om_arg a = {.kind = OM_ARG_IN, .mem = m};
	void *at = NULL;

	must(b, b->o->call(b->s, take_pointer, &at, &a, 1, 0));
	return at;
}

/* A machine with one device has no memory of another one. */
static bool
is_mocked(const char *word)
{
	const char *words = getenv("MOCK_CUDA");

	return words && strstr(words, word);
}

static void
foreign(struct bench *b)
{
	om_mem m, other;
	int here = 0;

	must(b, b->o->bind(b->d, pointer_of(b, b->m), 4 * BYTES, NULL, &m));
	must(b, b->o->upload(b->s, m, SECOND, b->in, BYTES, 1));
	point(b, is_there(b, SECOND), "memory of the caller is bound");
	b->o->free(b->d, m);
	point(b, is_there(b, SECOND), "and stays the caller's");
	point(b, is_refused(b, b->o->bind(b->d, pointer_of(b, b->m), 4 * BYTES + 1, NULL, &m), "has fewer than"), "not more than there is");
	point(b, is_refused(b, b->o->bind(b->d, &here, 1, NULL, &m), "is not on the device"), "memory of the host is refused");
	if (!is_mocked("elsewhere"))
		return;
	must(b, b->o->alloc(b->d, OM_MEM_ARENA, ELSEWHERE, &other));
	point(b, is_refused(b, b->o->bind(b->d, pointer_of(b, other), 1, NULL, &m), "is on the CUDA device 1, not on 0"), "and that of another device");
	b->o->free(b->d, other);
}

static void
refusals(struct bench *b)
{
	om_mem old, next;

	must(b, b->o->alloc(b->d, OM_MEM_ARENA, BYTES, &old));
	b->o->free(b->d, old);
	must(b, b->o->alloc(b->d, OM_MEM_ARENA, BYTES, &next));
	point(b, is_refused(b, b->o->upload(b->s, old, 0, b->in, 4, 5), "command 5 uses memory 1, which does not exist any more"), "memory that was freed");
	b->o->free(b->d, next);
	point(b, is_refused(b, b->o->fill(b->s, b->m, SUM, BYTES + 1, 0, 6), "command 6 uses bytes"), "bytes past the end");
	point(b, is_refused(b, b->o->copy(b->s, b->m, 4, b->m, 0, BYTES, 6), "overlaps"), "a copy onto itself");
	point(b, is_refused(b, move(b, b->s, FIRST, 4 * BYTES - 4, 0), "command 7 uses bytes"), "arguments past the end");
	point(b, is_refused(b, move(b, b->s, FIRST, 0, 3), "kernel copy_u32 has 25 parameters, but command 7 gives 5"), "too few arguments");
}

int
main(int argc, char **argv)
{
	const om_device_ops *(*module)(void);
	struct bench b;
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL, *symbol = library ? dlsym(library, "om_device_module") : NULL;

	if (!symbol) {
		printf("Bail out! %s\n", argc > 1 ? dlerror() : "the file of the module is missing");
		return EXIT_FAILURE;
	}
	memcpy(&module, &symbol, sizeof module);
	start(&b, module());
	orders(&b);
	captures(&b);
	libraries(&b);
	foreign(&b);
	refusals(&b);
	end(&b);
	printf("1..%u\n", b.tests);
	return b.is_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
