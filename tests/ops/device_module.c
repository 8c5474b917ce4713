/* SPDX-License-Identifier: Apache-2.0 */
/* Launches on a device of a module; see device_module.h. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/load_module.h"
#include "device_module.h"
#include "kernels/gpu/source.h"

enum { MOST_CODES = 1024 };

struct built {
	char entry[64];
	om_device_code *code;
	unsigned runs;
};

struct device_module {
	const om_device_ops *ops;
	om_device *device;
	om_device_info info;
	om_stream *stream;
	struct built built[MOST_CODES];
	unsigned nbuilt;
};

device_module *
device_module_open(const char *name)
{
	const om_device_ops *(*find)(void);
	device_module *m = calloc(1, sizeof *m);
	char file[64];

	snprintf(file, sizeof file, "onnxmem-%s.so", name);
	void *symbol = om_load_module(file, "om_device_module");
	if (!symbol) {
		printf("# %s\n", om_load_module_error());
		free(m);
		return NULL;
	}
	memcpy(&find, &symbol, sizeof find);
	m->ops = find();
	if (m->ops->open(&m->device, "") == OM_DEVICE_OK && m->ops->stream_create(m->device, &m->stream) == OM_DEVICE_OK) {
		m->ops->info(m->device, &m->info);
		printf("# %s, %s\n", m->info.name, m->info.architecture);
		return m;
	}
	printf("# %s\n", m->ops->error(m->device));
	device_module_close(m);
	return NULL;
}

void
device_module_close(device_module *m)
{
	if (!m)
		return;
	for (unsigned k = 0; k < m->nbuilt; k++)
		m->ops->code_free(m->built[k].code);
	m->ops->stream_free(m->stream);
	m->ops->close(m->device);
	free(m);
}

bool
device_module_has(const device_module *m, om_dtype t)
{
	return m->info.types >> t & 1;
}

static struct built *
find_built(device_module *m, const char *entry)
{
	for (unsigned k = 0; k < m->nbuilt; k++)
		if (strcmp(m->built[k].entry, entry) == 0)
			return &m->built[k];
	return NULL;
}

bool
device_module_has_run(const device_module *m, const char *entry, unsigned times)
{
	const struct built *b = find_built((device_module *)m, entry);

	return b && b->runs >= times;
}

/* The kernel, compiled when it is needed first. */
static struct built *
build(device_module *m, const om_launch *l)
{
	struct built *b = find_built(m, l->entry);
	char *text;

	if (b || m->nbuilt == MOST_CODES)
		return b;
	b = &m->built[m->nbuilt];
	const char *source = om_gpu_source_text(l->unit);
	if (asprintf(&text, "%s%s", l->prologue, source) < 0)
		return NULL;
	const om_device_status st = m->ops->build(m->device, text, &l->entry, 1, &b->code);
	free(text);
	if (st != OM_DEVICE_OK)
		return NULL;
	snprintf(b->entry, sizeof b->entry, "%s", l->entry);
	m->nbuilt++;
	return b;
}

static om_device_status
launch(device_module *m, const om_launch *l, om_arg *args, om_mem mem, uint32_t tag)
{
	struct built *b = build(m, l);

	if (!b)
		return OM_DEVICE_BUILD;
	for (uint32_t k = 0; k < l->nargs; k++)
		args[k].mem = args[k].kind == OM_ARG_VALUE ? 0 : mem;
	b->runs++;
	return m->ops->launch(m->stream, b->code, &l->grid, args, l->nargs, tag);
}

const char *
device_module_run(device_module *m, const om_launch_list *list, om_arg (*args)[OM_LAUNCH_ARGS], void *image, uint64_t bytes)
{
	om_mem mem;
	om_device_status st = m->ops->alloc(m->device, OM_MEM_ARENA, bytes, &mem);

	if (st == OM_DEVICE_OK)
		st = m->ops->upload(m->stream, mem, 0, image, bytes, 0);
	for (size_t k = 0; k < list->n && st == OM_DEVICE_OK; k++)
		st = launch(m, &list->launch[k], args[k], mem, (uint32_t)k + 1);
	if (st == OM_DEVICE_OK)
		st = m->ops->download(m->stream, image, mem, 0, bytes, (uint32_t)list->n + 1);
	const om_device_status last = m->ops->sync(m->stream);
	m->ops->free(m->device, mem);
	return st == OM_DEVICE_OK && last == OM_DEVICE_OK ? NULL : m->ops->error(m->device);
}
