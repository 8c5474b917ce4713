/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, commands, streams, events and captures of CUDA. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

/* ---- Memory. ---- */

static struct om_cuda_memory *
memory_of(const om_device *d, om_mem m)
{
	const uint32_t k = (uint32_t)m;

	return m && k < d->nmemory && d->memory[k].is_live && d->memory[k].generation == m >> 32 ? &d->memory[k] : NULL;
}

static om_device_status
free_slot(om_device *d, uint32_t *k)
{
	for (*k = 0; *k < d->nmemory && d->memory[*k].is_live; ++*k)
		;
	if (*k < d->nmemory)
		return OM_DEVICE_OK;
	struct om_cuda_memory *grown = realloc(d->memory, (d->nmemory + 1) * sizeof *grown);
	if (!grown)
		return om_cuda_fail(d, OM_DEVICE_MEMORY, "there is no memory for a handle");
	d->memory = grown;
	d->memory[d->nmemory++] = (struct om_cuda_memory){0};
	return OM_DEVICE_OK;
}

static om_mem
take_slot(om_device *d, uint32_t k, cu_address at, uint64_t bytes, bool is_foreign)
{
	d->memory[k] = (struct om_cuda_memory){at, bytes, d->memory[k].generation + 1, true, is_foreign};
	return (uint64_t)d->memory[k].generation << 32 | k;
}

om_device_status
om_cuda_alloc(om_device *d, om_mem_kind kind, uint64_t bytes, om_mem *out)
{
	cu_address at = 0;
	char what[OM_CUDA_TEXT];
	uint32_t k;

	(void)kind;
	*out = 0;
	om_device_status st = om_cuda_enter(d);
	if (st == OM_DEVICE_OK)
		st = free_slot(d, &k);
	if (st != OM_DEVICE_OK)
		return st;
	snprintf(what, sizeof what, "give %llu bytes of memory", (unsigned long long)bytes);
	st = om_cuda_result(d, d->cu.cuMemAlloc(&at, bytes ? bytes : 1), what);
	if (st == OM_DEVICE_OK)
		*out = take_slot(d, k, at, bytes, false);
	return st;
}

static void
release(om_device *d, struct om_cuda_memory *m)
{
	if (!m->is_foreign)
		d->cu.cuMemFree(m->at);
	m->is_live = false;
}

void
om_cuda_free(om_device *d, om_mem m)
{
	struct om_cuda_memory *b = memory_of(d, m);

	if (b && om_cuda_enter(d) == OM_DEVICE_OK)
		release(d, b);
}

void
om_cuda_free_all(om_device *d)
{
	if (om_cuda_enter(d) != OM_DEVICE_OK)
		return;
	for (uint32_t k = 0; k < d->nmemory; k++)
		if (d->memory[k].is_live)
			release(d, &d->memory[k]);
}

/* Of memory of the device with so many bytes from `at` on. */
static om_device_status
check_foreign(om_device *d, cu_address at, uint64_t bytes)
{
	int type = 0, ordinal = 0;
	cu_address start = 0;
	size_t size = 0;

	if (d->cu.cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, at) != CU_OK || type != CU_MEMORY_OF_DEVICE)
		return om_cuda_fail(d, OM_DEVICE_ARGUMENT, "memory of the caller is not on the device");
	if (d->cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ORDINAL, at) != CU_OK || (unsigned long)ordinal != d->ordinal)
		return om_cuda_fail(d, OM_DEVICE_ARGUMENT, "memory of the caller is on the CUDA device %d, not on %lu", ordinal, d->ordinal);
	if (d->cu.cuPointerGetAttribute(&start, CU_POINTER_RANGE_START, at) != CU_OK
	    || d->cu.cuPointerGetAttribute(&size, CU_POINTER_RANGE_SIZE, at) != CU_OK || at < start || bytes > size
	    || at - start > size - bytes)
		return om_cuda_fail(d, OM_DEVICE_ARGUMENT, "memory of the caller has fewer than %llu bytes on the device",
			(unsigned long long)bytes);
	return OM_DEVICE_OK;
}

/* The contents are there when this returns. */
om_device_status
om_cuda_bind(om_device *d, void *foreign, uint64_t bytes, void *native_stream, om_mem *out)
{
	const cu_address at = (cu_address)(uintptr_t)foreign;
	uint32_t k;

	*out = 0;
	om_device_status st = om_cuda_enter(d);
	if (st == OM_DEVICE_OK)
		st = check_foreign(d, at, bytes);
	if (st == OM_DEVICE_OK && native_stream)
		st = om_cuda_result(d, d->cu.cuStreamSynchronize(native_stream), "wait for memory of the caller");
	if (st == OM_DEVICE_OK)
		st = free_slot(d, &k);
	if (st == OM_DEVICE_OK)
		*out = take_slot(d, k, at, bytes, true);
	return st;
}

bool
om_cuda_range(om_device *d, om_mem m, uint64_t at, uint64_t bytes, uint32_t tag, cu_address *out)
{
	const struct om_cuda_memory *b = memory_of(d, m);

	if (b && at <= b->bytes && bytes <= b->bytes - at) {
		*out = b->at + at;
		return true;
	}
	if (!b)
		om_cuda_fail(d, OM_DEVICE_ARGUMENT, "command %u uses memory %u, which does not exist any more", tag, (uint32_t)m);
	else
		om_cuda_fail(d, OM_DEVICE_ARGUMENT, "command %u uses bytes %llu to %llu of memory %u, which has %llu", tag,
			(unsigned long long)at, (unsigned long long)(at + bytes), (uint32_t)m, (unsigned long long)b->bytes);
	return false;
}

/* ---- Commands. ---- */

/* What a command that was started did.  Failures of earlier ones may come out here. */
static om_device_status
started(om_stream *s, cu_result r, const char *what, uint32_t tag)
{
	om_device *d = s->device;
	char text[2 * OM_CUDA_TEXT];

	s->tag = tag;
	if (r == CU_OK && d->is_debug && !d->is_capturing)
		r = d->cu.cuStreamSynchronize(s->stream);
	snprintf(text, sizeof text, "run command %u, %s", tag, what);
	return om_cuda_result(d, r, text);
}

om_device_status
om_cuda_upload(om_stream *s, om_mem to, uint64_t at, const void *from, uint64_t bytes, uint32_t tag)
{
	om_device *d = s->device;
	cu_address a;

	if (!om_cuda_range(d, to, at, bytes, tag, &a))
		return OM_DEVICE_ARGUMENT;
	const om_device_status st = om_cuda_enter(d);
	return st != OM_DEVICE_OK || !bytes ? st
	    : started(s, d->cu.cuMemcpyHtoDAsync(a, from, bytes, s->stream), "a copy to the device", tag);
}

om_device_status
om_cuda_download(om_stream *s, void *to, om_mem from, uint64_t at, uint64_t bytes, uint32_t tag)
{
	om_device *d = s->device;
	cu_address a;

	if (!om_cuda_range(d, from, at, bytes, tag, &a))
		return OM_DEVICE_ARGUMENT;
	const om_device_status st = om_cuda_enter(d);
	return st != OM_DEVICE_OK || !bytes ? st
	    : started(s, d->cu.cuMemcpyDtoHAsync(to, a, bytes, s->stream), "a copy from the device", tag);
}

om_device_status
om_cuda_copy(om_stream *s, om_mem to, uint64_t to_at, om_mem from, uint64_t from_at, uint64_t bytes, uint32_t tag)
{
	om_device *d = s->device;
	cu_address a, b;

	if (!om_cuda_range(d, to, to_at, bytes, tag, &a) || !om_cuda_range(d, from, from_at, bytes, tag, &b))
		return OM_DEVICE_ARGUMENT;
	if (a < b + bytes && b < a + bytes)
		return om_cuda_fail(d, OM_DEVICE_ARGUMENT, "command %u copies to a range that overlaps its source", tag);
	const om_device_status st = om_cuda_enter(d);
	return st != OM_DEVICE_OK || !bytes ? st
	    : started(s, d->cu.cuMemcpyDtoDAsync(a, b, bytes, s->stream), "a copy on the device", tag);
}

om_device_status
om_cuda_fill(om_stream *s, om_mem to, uint64_t at, uint64_t bytes, uint8_t byte, uint32_t tag)
{
	om_device *d = s->device;
	cu_address a;

	if (!om_cuda_range(d, to, at, bytes, tag, &a))
		return OM_DEVICE_ARGUMENT;
	const om_device_status st = om_cuda_enter(d);
	return st != OM_DEVICE_OK || !bytes ? st : started(s, d->cu.cuMemsetD8Async(a, byte, bytes, s->stream), "a fill", tag);
}

/* The parameters of a launch: each is a copy of 8 bytes, of which the kernel takes as many as it wants. */
struct parameters {
	union {
		cu_address address;
		uint64_t offset;
		int64_t i64;
		int32_t i32;
		float f32;
	} value[2 * OM_CUDA_ARGS];
	void *at[2 * OM_CUDA_ARGS];
	uint32_t n;
};

static bool
add_argument(om_device *d, struct parameters *p, const om_arg *a, uint32_t tag)
{
	cu_address at = 0;

	if (a->kind != OM_ARG_VALUE) {
		if (a->mem && !om_cuda_range(d, a->mem, a->at, a->bytes, tag, &at))
			return false;
		p->value[p->n++].address = a->mem ? at - a->at : 0;
		p->value[p->n++].offset = a->at;
	} else if (a->type == OM_ARG_F32) {
		p->value[p->n++].f32 = a->value.f;
	} else if (a->type == OM_ARG_I32) {
		p->value[p->n++].i32 = (int32_t)a->value.i;
	} else {
		p->value[p->n++].i64 = a->value.i;
	}
	return true;
}

om_device_status
om_cuda_launch(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args, uint32_t nargs, uint32_t tag)
{
	om_device *d = s->device;
	struct parameters p = {.n = 0};
	char what[2 * OM_CUDA_TEXT];

	if (nargs > OM_CUDA_ARGS)
		return om_cuda_fail(d, OM_DEVICE_ARGUMENT, "command %u has %u arguments: %d are the most", tag, nargs, OM_CUDA_ARGS);
	for (uint32_t k = 0; k < nargs; k++)
		if (!add_argument(d, &p, &args[k], tag))
			return OM_DEVICE_ARGUMENT;
	if (code->params != UINT32_MAX && code->params != p.n)
		return om_cuda_fail(d, OM_DEVICE_ARGUMENT, "kernel %s has %u parameters, but command %u gives %u", code->name, code->params,
			tag, p.n);
	for (uint32_t k = 0; k < p.n; k++)
		p.at[k] = &p.value[k];
	const om_device_status st = om_cuda_enter(d);
	if (st != OM_DEVICE_OK)
		return st;
	snprintf(what, sizeof what, "kernel %s", code->name);
	return started(s, d->cu.cuLaunchKernel(code->function, g->blocks[0], g->blocks[1], g->blocks[2], g->threads, 1, 1, g->shared,
		s->stream, p.at, NULL), what, tag);
}

static void *
pointer(om_device *d, om_mem m, uint64_t at)
{
	const struct om_cuda_memory *b = memory_of(d, m);

	return b && at <= b->bytes ? (void *)(uintptr_t)(b->at + at) : NULL;
}

om_device_status
om_cuda_call(om_stream *s, om_device_function *f, void *user, const om_arg *args, uint32_t nargs, uint32_t tag)
{
	om_device *d = s->device;
	om_device_call call = {.device = d, .args = args, .nargs = nargs, .native_stream = s->stream, .pointer = pointer, .user = user};
	cu_address at;

	for (uint32_t k = 0; k < nargs; k++)
		if (args[k].kind != OM_ARG_VALUE && args[k].mem && !om_cuda_range(d, args[k].mem, args[k].at, args[k].bytes, tag, &at))
			return OM_DEVICE_ARGUMENT;
	om_device_status st = om_cuda_enter(d);
	if (st != OM_DEVICE_OK)
		return st;
	st = f(&call);
	return st == OM_DEVICE_OK ? started(s, CU_OK, "a call of a library", tag)
	    : om_cuda_fail(d, st, "command %u: the library that it calls failed", tag);
}

/* ---- Order. ---- */

om_device_status
om_cuda_stream_create(om_device *d, om_stream **out)
{
	om_stream *s = *out = calloc(1, sizeof *s);

	if (!s)
		return om_cuda_fail(d, OM_DEVICE_MEMORY, "there is no memory for a stream");
	s->device = d;
	om_device_status st = om_cuda_enter(d);
	if (st == OM_DEVICE_OK)
		st = om_cuda_result(d, d->cu.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING), "make a stream");
	if (st == OM_DEVICE_OK)
		return st;
	free(s);
	*out = NULL;
	return st;
}

void
om_cuda_stream_free(om_stream *s)
{
	if (s && om_cuda_enter(s->device) == OM_DEVICE_OK)
		s->device->cu.cuStreamDestroy(s->stream);
	free(s);
}

om_device_status
om_cuda_event_create(om_device *d, om_event **out)
{
	om_event *e = *out = calloc(1, sizeof *e);

	if (!e)
		return om_cuda_fail(d, OM_DEVICE_MEMORY, "there is no memory for an event");
	e->device = d;
	om_device_status st = om_cuda_enter(d);
	if (st == OM_DEVICE_OK)
		st = om_cuda_result(d, d->cu.cuEventCreate(&e->event, 0), "make an event");
	if (st == OM_DEVICE_OK)
		return st;
	free(e);
	*out = NULL;
	return st;
}

void
om_cuda_event_free(om_event *e)
{
	if (e && om_cuda_enter(e->device) == OM_DEVICE_OK)
		e->device->cu.cuEventDestroy(e->event);
	free(e);
}

om_device_status
om_cuda_record(om_stream *s, om_event *e)
{
	om_device *d = s->device;
	om_device_status st = om_cuda_enter(d);

	if (st == OM_DEVICE_OK)
		st = om_cuda_result(d, d->cu.cuEventRecord(e->event, s->stream), "record an event");
	e->is_recorded |= st == OM_DEVICE_OK;
	return st;
}

om_device_status
om_cuda_wait(om_stream *s, om_event *e)
{
	om_device *d = s->device;
	const om_device_status st = om_cuda_enter(d);

	return st == OM_DEVICE_OK && e->is_recorded ? om_cuda_result(d, d->cu.cuStreamWaitEvent(s->stream, e->event, 0),
		"wait for an event") : st;
}

om_device_status
om_cuda_sync(om_stream *s)
{
	om_device *d = s->device;
	char what[OM_CUDA_TEXT];
	const om_device_status st = om_cuda_enter(d);

	if (st != OM_DEVICE_OK)
		return st;
	snprintf(what, sizeof what, "finish the commands of a stream, up to %u%s", s->tag,
		d->is_debug ? "" : " (the option debug of the device names the one that fails)");
	return om_cuda_result(d, d->cu.cuStreamSynchronize(s->stream), what);
}

double
om_cuda_elapsed(om_event *from, om_event *to)
{
	om_device *d = from->device;
	float ms;

	if (!from->is_recorded || !to->is_recorded || om_cuda_enter(d) != OM_DEVICE_OK
	    || d->cu.cuEventElapsedTime(&ms, from->event, to->event) != CU_OK)
		return -1;
	return (double)ms * 1e-3;
}

/* ---- Captures. ---- */

om_device_status
om_cuda_capture_begin(om_stream *s)
{
	om_device *d = s->device;
	om_device_status st = om_cuda_enter(d);

	if (st == OM_DEVICE_OK)
		st = om_cuda_result(d, d->cu.cuStreamBeginCapture(s->stream, CU_CAPTURE_THREAD_LOCAL), "begin a capture");
	d->is_capturing |= st == OM_DEVICE_OK;
	return st;
}

om_device_status
om_cuda_capture_end(om_stream *s, om_device_graph **out)
{
	om_device *d = s->device;
	om_device_graph *g = *out = calloc(1, sizeof *g);
	cu_graph captured = NULL;
	om_device_status st = om_cuda_enter(d);

	d->is_capturing = false;
	if (st == OM_DEVICE_OK)
		st = om_cuda_result(d, d->cu.cuStreamEndCapture(s->stream, &captured), "end a capture");
	if (st == OM_DEVICE_OK && !g)
		st = om_cuda_fail(d, OM_DEVICE_MEMORY, "there is no memory for a capture");
	if (st == OM_DEVICE_OK) {
		g->device = d;
		g->tag = s->tag;
		st = om_cuda_result(d, d->cu.cuGraphInstantiateWithFlags(&g->exec, captured, 0), "make a graph of a capture");
	}
	if (captured)
		d->cu.cuGraphDestroy(captured);
	if (st == OM_DEVICE_OK)
		return st;
	free(g);
	*out = NULL;
	return st;
}

om_device_status
om_cuda_replay(om_stream *s, om_device_graph *g)
{
	const om_device_status st = om_cuda_enter(s->device);

	s->tag = g->tag;
	return st == OM_DEVICE_OK ? om_cuda_result(s->device, s->device->cu.cuGraphLaunch(g->exec, s->stream), "replay a capture") : st;
}

void
om_cuda_graph_free(om_device_graph *g)
{
	if (g && om_cuda_enter(g->device) == OM_DEVICE_OK)
		g->device->cu.cuGraphExecDestroy(g->exec);
	free(g);
}
