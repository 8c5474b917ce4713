/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, commands, streams and events of OpenCL. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/opencl/opencl.h"

/* ---- Memory. ---- */

static struct om_opencl_buffer *
buffer_of(om_device *d, om_mem m)
{
	const uint32_t k = (uint32_t)m;

	return m && k < d->nbuffer && d->buffer[k].mem && d->buffer[k].generation == m >> 32 ? &d->buffer[k] : NULL;
}

static om_device_status
free_slot(om_device *d, uint32_t *k)
{
	for (*k = 0; *k < d->nbuffer && d->buffer[*k].mem; ++*k)
		;
	if (*k < d->nbuffer)
		return OM_DEVICE_OK;
	struct om_opencl_buffer *grown = realloc(d->buffer, (d->nbuffer + 1) * sizeof *grown);
	if (!grown)
		return om_opencl_fail(d, OM_DEVICE_MEMORY, "there is no memory for a handle");
	d->buffer = grown;
	d->buffer[d->nbuffer++] = (struct om_opencl_buffer){0};
	return OM_DEVICE_OK;
}

om_device_status
om_opencl_alloc(om_device *d, om_mem_kind kind, uint64_t bytes, om_mem *out)
{
	uint32_t k;
	cl_int code;

	(void)kind;
	*out = 0;
	const om_device_status st = free_slot(d, &k);
	if (st != OM_DEVICE_OK)
		return st;
	cl_mem m = clCreateBuffer(d->context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &code);
	if (code != CL_SUCCESS)
		return om_opencl_fail(d, OM_DEVICE_MEMORY, "%s has no memory of %llu bytes: error %d", d->name, (unsigned long long)bytes,
			code);
	d->buffer[k] = (struct om_opencl_buffer){m, bytes, d->buffer[k].generation + 1};
	*out = (uint64_t)d->buffer[k].generation << 32 | k;
	return OM_DEVICE_OK;
}

void
om_opencl_free(om_device *d, om_mem m)
{
	struct om_opencl_buffer *b = buffer_of(d, m);

	if (!b)
		return;
	clReleaseMemObject(b->mem);
	b->mem = NULL;
}

cl_mem
om_opencl_range(om_device *d, om_mem m, uint64_t at, uint64_t bytes, uint32_t tag)
{
	const struct om_opencl_buffer *b = buffer_of(d, m);

	if (b && at <= b->bytes && bytes <= b->bytes - at)
		return b->mem;
	if (!b)
		om_opencl_fail(d, OM_DEVICE_ARGUMENT, "command %u uses memory %u, which does not exist any more", tag, (uint32_t)m);
	else
		om_opencl_fail(d, OM_DEVICE_ARGUMENT, "command %u uses bytes %llu to %llu of memory %u, which has %llu", tag,
			(unsigned long long)at, (unsigned long long)(at + bytes), (uint32_t)m, (unsigned long long)b->bytes);
	return NULL;
}

/* ---- Commands. ---- */

static om_device_status
result(om_stream *s, cl_int code, const char *what, uint32_t tag)
{
	s->tag = tag;
	return code == CL_SUCCESS ? OM_DEVICE_OK : om_opencl_failed(s->device, code, what);
}

om_device_status
om_opencl_upload(om_stream *s, om_mem to, uint64_t at, const void *from, uint64_t bytes, uint32_t tag)
{
	cl_mem m = om_opencl_range(s->device, to, at, bytes, tag);

	if (!m)
		return OM_DEVICE_ARGUMENT;
	return bytes == 0 ? OM_DEVICE_OK
	    : result(s, clEnqueueWriteBuffer(s->queue, m, CL_FALSE, at, bytes, from, 0, NULL, NULL), "upload", tag);
}

om_device_status
om_opencl_download(om_stream *s, void *to, om_mem from, uint64_t at, uint64_t bytes, uint32_t tag)
{
	cl_mem m = om_opencl_range(s->device, from, at, bytes, tag);

	if (!m)
		return OM_DEVICE_ARGUMENT;
	return bytes == 0 ? OM_DEVICE_OK
	    : result(s, clEnqueueReadBuffer(s->queue, m, CL_FALSE, at, bytes, to, 0, NULL, NULL), "download", tag);
}

om_device_status
om_opencl_copy(om_stream *s, om_mem to, uint64_t to_at, om_mem from, uint64_t from_at, uint64_t bytes, uint32_t tag)
{
	cl_mem target = om_opencl_range(s->device, to, to_at, bytes, tag);
	cl_mem source = target ? om_opencl_range(s->device, from, from_at, bytes, tag) : NULL;

	if (!source)
		return OM_DEVICE_ARGUMENT;
	return bytes == 0 ? OM_DEVICE_OK
	    : result(s, clEnqueueCopyBuffer(s->queue, source, target, from_at, to_at, bytes, 0, NULL, NULL), "copy", tag);
}

om_device_status
om_opencl_fill(om_stream *s, om_mem to, uint64_t at, uint64_t bytes, uint8_t byte, uint32_t tag)
{
	cl_mem m = om_opencl_range(s->device, to, at, bytes, tag);

	if (!m)
		return OM_DEVICE_ARGUMENT;
	return bytes == 0 ? OM_DEVICE_OK
	    : result(s, clEnqueueFillBuffer(s->queue, m, &byte, 1, at, bytes, 0, NULL, NULL), "fill", tag);
}

/* Set a parameter; `*at` counts them. */
static om_device_status
set_arg(om_stream *s, om_device_code *code, const om_arg *a, cl_uint *at, uint32_t tag)
{
	cl_int st;

	if (a->kind != OM_ARG_VALUE) {
		cl_mem m = a->mem ? om_opencl_range(s->device, a->mem, a->at, a->bytes, tag) : NULL;
		const cl_ulong offset = a->at;
		if (a->mem && !m)
			return OM_DEVICE_ARGUMENT;
		st = clSetKernelArg(code->kernel, (*at)++, sizeof m, &m);
		if (st == CL_SUCCESS)
			st = clSetKernelArg(code->kernel, (*at)++, sizeof offset, &offset);
	} else if (a->type == OM_ARG_F32) {
		st = clSetKernelArg(code->kernel, (*at)++, sizeof a->value.f, &a->value.f);
	} else if (a->type == OM_ARG_I32) {
		const cl_int v = (cl_int)a->value.i;
		st = clSetKernelArg(code->kernel, (*at)++, sizeof v, &v);
	} else {
		const cl_long v = a->value.i;
		st = clSetKernelArg(code->kernel, (*at)++, sizeof v, &v);
	}
	return st == CL_SUCCESS ? OM_DEVICE_OK : om_opencl_fail(s->device, OM_DEVICE_ARGUMENT,
		"kernel %s of command %u does not take parameter %u: error %d", code->name, tag, *at, st);
}

om_device_status
om_opencl_launch(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args, uint32_t nargs, uint32_t tag)
{
	const size_t block[3] = {g->threads, 1, 1};
	const size_t all[3] = {(size_t)g->blocks[0] * g->threads, g->blocks[1], g->blocks[2]};
	cl_uint at = 0;

	if (g->shared)
		return om_opencl_fail(s->device, OM_DEVICE_UNSUPPORTED, "kernel %s has shared memory of a dynamic size", code->name);
	for (uint32_t k = 0; k < nargs; k++) {
		const om_device_status st = set_arg(s, code, &args[k], &at, tag);
		if (st != OM_DEVICE_OK)
			return st;
	}
	if (at != code->params)
		return om_opencl_fail(s->device, OM_DEVICE_ARGUMENT, "kernel %s has %u parameters, but command %u gives %u", code->name,
			code->params, tag, at);
	return result(s, clEnqueueNDRangeKernel(s->queue, code->kernel, 3, NULL, all, block, 0, NULL, NULL), code->name, tag);
}

/* Libraries want addresses, which OpenCL does not have. */
om_device_status
om_opencl_call(om_stream *s, om_device_function *f, void *user, const om_arg *args, uint32_t nargs, uint32_t tag)
{
	(void)f;
	(void)user;
	(void)args;
	(void)nargs;
	return om_opencl_fail(s->device, OM_DEVICE_UNSUPPORTED, "command %u calls a library, but OpenCL memory has no addresses", tag);
}

/* ---- Order. ---- */

om_device_status
om_opencl_stream_create(om_device *d, om_stream **out)
{
	om_stream *s = *out = calloc(1, sizeof *s);
	cl_int code;

	if (!s)
		return om_opencl_fail(d, OM_DEVICE_MEMORY, "there is no memory for a stream");
	s->device = d;
	s->queue = clCreateCommandQueue(d->context, d->id, 0, &code);
	if (code == CL_SUCCESS)
		return OM_DEVICE_OK;
	free(s);
	*out = NULL;
	return om_opencl_failed(d, code, "make a queue");
}

void
om_opencl_stream_free(om_stream *s)
{
	if (s)
		clReleaseCommandQueue(s->queue);
	free(s);
}

om_device_status
om_opencl_event_create(om_device *d, om_event **out)
{
	*out = calloc(1, sizeof **out);
	return *out ? OM_DEVICE_OK : om_opencl_fail(d, OM_DEVICE_MEMORY, "there is no memory for an event");
}

void
om_opencl_event_free(om_event *e)
{
	if (e && e->marker)
		clReleaseEvent(e->marker);
	free(e);
}

/* Flushed, because another queue may wait for it. */
om_device_status
om_opencl_record(om_stream *s, om_event *e)
{
	if (e->marker)
		clReleaseEvent(e->marker);
	e->marker = NULL;
	cl_int code = clEnqueueMarkerWithWaitList(s->queue, 0, NULL, &e->marker);
	if (code == CL_SUCCESS)
		code = clFlush(s->queue);
	return result(s, code, "record an event", s->tag);
}

om_device_status
om_opencl_wait(om_stream *s, om_event *e)
{
	return e->marker ? result(s, clEnqueueBarrierWithWaitList(s->queue, 1, &e->marker, NULL), "wait for an event", s->tag)
	    : OM_DEVICE_OK;
}

om_device_status
om_opencl_sync(om_stream *s)
{
	const cl_int code = clFinish(s->queue);
	char what[OM_OPENCL_TEXT];

	snprintf(what, sizeof what, "finish the commands of a queue, up to %u", s->tag);
	return code == CL_SUCCESS ? OM_DEVICE_OK : om_opencl_failed(s->device, code, what);
}
