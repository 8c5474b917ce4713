/* SPDX-License-Identifier: Apache-2.0 */
/* The driver; see mock.h. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "kernels/sim/sim.h"
#include "mock.h"

enum {
	DRIVER = 13000, ARCH = 90, UNITS = 132, THREADS = 1024, SHARED = 48 * 1024, MEMORIES = 4096, GAP = 1 << 20, GRAIN = 512,
	NAME = 64, NOT_INITIALIZED = 3, VERSION_NOT_SUFFICIENT = 2, MOST_PARAMETERS = 2 * SIM_ARGS,
};

#define FIRST_ADDRESS UINT64_C(0x7f0000000000)

struct memory_of {
	cu_address at;
	uint64_t bytes;
	om_mem mem;              /* 0: freed */
};

struct cu_context_s {
	om_device *device;       /* the simulated one; NULL: the context was released */
	int retained;
};
struct cu_stream_s { om_stream *s; };
struct cu_event_s { om_event *e; };
struct cu_function_s {
	om_device_code *code;
	const om_gpu_kernel *kernel;
	char name[NAME];
	cu_function next;        /* of its module */
};
struct cu_module_s { cu_function first; };
struct cu_graph_s { om_device_graph *g; };
struct cu_graph_exec_s { om_device_graph *g; };

/* The driver of a process. */
static struct {
	struct cu_context_s context;
	struct memory_of memory[MEMORIES];
	size_t nmemory;
	cu_address next;
	bool is_started;
	int sticky;              /* what every call returns from now on */
	int late;                /* what the next wait returns */
	long launches;
	long streams, events, modules, graphs;  /* that are not freed */
} driver;

static _Thread_local cu_context current;

/* What a call that needs a context returns at once; 0: it works. */
static cu_result
enter(const char *name)
{
	const cu_result r = mock_call(name);

	if (r)
		return r;
	if (!driver.is_started)
		return NOT_INITIALIZED;
	if (current != &driver.context || !driver.context.device)
		return MOCK_INVALID_CONTEXT;
	return driver.sticky;
}

static cu_result
result(om_device_status st)
{
	switch (st) {
	case OM_DEVICE_OK: return CU_OK;
	case OM_DEVICE_MEMORY: return CU_OUT_OF_MEMORY;
	case OM_DEVICE_BUILD: return MOCK_NOT_FOUND;
	default:
		fprintf(stderr, "mock of CUDA: %s\n", om_sim_ops()->error(driver.context.device));
		return driver.sticky = MOCK_ILLEGAL_ADDRESS;
	}
}

/* The memory that [at, at + bytes) is inside of; NULL: there is none. */
static struct memory_of *
find_memory(cu_address at, uint64_t bytes)
{
	for (size_t k = 0; k < driver.nmemory; k++) {
		struct memory_of *m = &driver.memory[k];
		if (m->mem && at >= m->at && at - m->at <= m->bytes && bytes <= m->bytes - (at - m->at))
			return m;
	}
	return NULL;
}

static cu_result
illegal(const char *command, cu_address at, uint64_t bytes)
{
	fprintf(stderr, "mock of CUDA: %s uses %llu bytes at 0x%llx, which is not memory of the device\n", command, (unsigned long long)bytes,
		(unsigned long long)at);
	return driver.sticky = MOCK_ILLEGAL_ADDRESS;
}

/* ---- Devices. ---- */

static cu_result
mock_cuInit(unsigned flags)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	cu_result r = mock_call("cuInit");

	if (!r && visible && !*visible)
		r = CU_NO_DEVICE;
	driver.is_started = r == 0 && flags == 0;
	return r;
}

static cu_result
mock_cuDriverGetVersion(int *version)
{
	*version = (int)mock_number("driver", DRIVER);
	return mock_call("cuDriverGetVersion");
}

static cu_result
mock_cuGetErrorName(cu_result r, const char **text)
{
	*text = r == CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : r == CU_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
	    : r == MOCK_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : r == CU_NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
	    : r == CU_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : r == MOCK_NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : NULL;
	return CU_OK;
}

static cu_result
mock_cuGetErrorString(cu_result r, const char **text)
{
	*text = r == CU_OUT_OF_MEMORY ? "out of memory" : r == MOCK_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
	    : r == CU_NO_DEVICE ? "no CUDA-capable device is detected" : "it failed";
	return CU_OK;
}

static cu_result
mock_cuDeviceGetCount(int *n)
{
	const cu_result r = mock_call("cuDeviceGetCount");

	*n = (int)mock_number("devices", 1);
	return r ? r : driver.is_started ? CU_OK : NOT_INITIALIZED;
}

static cu_result
mock_cuDeviceGet(cu_device *d, int ordinal)
{
	const cu_result r = mock_call("cuDeviceGet");

	*d = ordinal;
	return r ? r : ordinal < mock_number("devices", 1) ? CU_OK : CU_INVALID_DEVICE;
}

static cu_result
mock_cuDeviceGetName(char *name, int size, cu_device d)
{
	snprintf(name, (size_t)size, "Mock GPU %d", d);
	return mock_call("cuDeviceGetName");
}

static cu_result
mock_cuDeviceGetAttribute(int *value, int attribute, cu_device d)
{
	const int arch = (int)mock_number("arch", ARCH);

	(void)d;
	*value = attribute == CU_ATTRIBUTE_MAJOR ? arch / 10 : attribute == CU_ATTRIBUTE_MINOR ? arch % 10
	    : attribute == CU_ATTRIBUTE_UNITS ? UNITS : attribute == CU_ATTRIBUTE_THREADS ? THREADS
	    : attribute == CU_ATTRIBUTE_SHARED ? SHARED : -1;
	return *value < 0 ? CU_INVALID_VALUE : mock_call("cuDeviceGetAttribute");
}

/* No clocks: a driver is not told which bytes a kernel uses.  Undeclared writes and races of the same programs are looked
 * for by the simulated device itself. */
static cu_result
mock_cuDevicePrimaryCtxRetain(cu_context *c, cu_device d)
{
	const cu_result r = mock_call("cuDevicePrimaryCtxRetain");
	char options[NAME];

	(void)d;
	if (r)
		return r;
	snprintf(options, sizeof options, "unchecked,seed=%ld", mock_number("seed", 1));
	if (driver.context.retained++ == 0 && om_sim_open(&driver.context.device, options, om_gpu_kernels) != OM_DEVICE_OK)
		return CU_OUT_OF_MEMORY;
	driver.next = FIRST_ADDRESS;
	*c = &driver.context;
	return CU_OK;
}

static void
leak(FILE *to, const char *kind, long n)
{
	if (n)
		fprintf(to, "leak %s %ld\n", kind, n);
}

static void
report(void)
{
	const char *file = mock_word("report");
	FILE *to = file ? fopen(file, "a") : NULL;
	long memories = 0;

	if (!to)
		return;
	for (size_t k = 0; k < driver.nmemory; k++)
		memories += driver.memory[k].mem != 0;
	mock_report_calls(to);
	leak(to, "memories", memories);
	leak(to, "streams", driver.streams);
	leak(to, "events", driver.events);
	leak(to, "modules", driver.modules);
	leak(to, "graphs", driver.graphs);
	fclose(to);
}

static cu_result
mock_cuDevicePrimaryCtxRelease(cu_device d)
{
	const cu_result r = mock_call("cuDevicePrimaryCtxRelease");

	(void)d;
	if (r || --driver.context.retained > 0)
		return r;
	report();
	om_sim_ops()->close(driver.context.device);
	driver.context.device = NULL;
	driver.nmemory = 0;
	driver.sticky = driver.late = 0;
	return CU_OK;
}

static cu_result
mock_cuCtxSetCurrent(cu_context c)
{
	const cu_result r = mock_call("cuCtxSetCurrent");

	if (!r)
		current = c;
	return r;
}

/* ---- Memory. ---- */

static cu_result
mock_cuMemGetInfo(size_t *free_bytes, size_t *total)
{
	*free_bytes = *total = (size_t)1 << 34;
	return enter("cuMemGetInfo");
}

static cu_result
mock_cuMemAlloc(cu_address *at, size_t bytes)
{
	const cu_result r = enter("cuMemAlloc");
	struct memory_of *m = &driver.memory[driver.nmemory];

	if (r || bytes == 0 || driver.nmemory == MEMORIES)
		return r ? r : bytes == 0 ? CU_INVALID_VALUE : CU_OUT_OF_MEMORY;
	const om_device_status st = om_sim_ops()->alloc(driver.context.device, OM_MEM_ARENA, bytes, &m->mem);
	if (st != OM_DEVICE_OK)
		return result(st);
	m->at = *at = driver.next;
	m->bytes = bytes;
	driver.next += (bytes + GRAIN - 1) / GRAIN * GRAIN + GAP;
	driver.nmemory++;
	return CU_OK;
}

static cu_result
mock_cuMemFree(cu_address at)
{
	const cu_result r = enter("cuMemFree");
	struct memory_of *m = find_memory(at, 0);

	if (r || !m || m->at != at)
		return r ? r : CU_INVALID_VALUE;
	om_sim_ops()->free(driver.context.device, m->mem);
	m->mem = 0;
	return CU_OK;
}

static cu_result
mock_cuPointerGetAttribute(void *value, int attribute, cu_address at)
{
	const cu_result r = enter("cuPointerGetAttribute");
	const struct memory_of *m = find_memory(at, 1);
	const int type = CU_MEMORY_OF_DEVICE, ordinal = m && (long)m->bytes == mock_number("elsewhere", 0);

	if (r || !m)
		return r ? r : CU_INVALID_VALUE;
	if (attribute == CU_POINTER_MEMORY_TYPE)
		memcpy(value, &type, sizeof type);
	else if (attribute == CU_POINTER_ORDINAL)
		memcpy(value, &ordinal, sizeof ordinal);
	else if (attribute == CU_POINTER_RANGE_START)
		memcpy(value, &m->at, sizeof m->at);
	else if (attribute == CU_POINTER_RANGE_SIZE)
		memcpy(value, &m->bytes, sizeof m->bytes);
	else
		return CU_INVALID_VALUE;
	return CU_OK;
}

/* ---- Commands. ---- */

static cu_result
mock_cuMemcpyHtoDAsync(cu_address to, const void *from, size_t bytes, cu_stream s)
{
	const cu_result r = enter("cuMemcpyHtoDAsync");
	const struct memory_of *m = find_memory(to, bytes);

	if (r || !m)
		return r ? r : illegal("a copy to the device", to, bytes);
	return result(om_sim_ops()->upload(s->s, m->mem, to - m->at, from, bytes, 0));
}

static cu_result
mock_cuMemcpyDtoHAsync(void *to, cu_address from, size_t bytes, cu_stream s)
{
	const cu_result r = enter("cuMemcpyDtoHAsync");
	const struct memory_of *m = find_memory(from, bytes);

	if (r || !m)
		return r ? r : illegal("a copy from the device", from, bytes);
	return result(om_sim_ops()->download(s->s, to, m->mem, from - m->at, bytes, 0));
}

static cu_result
mock_cuMemcpyDtoDAsync(cu_address to, cu_address from, size_t bytes, cu_stream s)
{
	const cu_result r = enter("cuMemcpyDtoDAsync");
	const struct memory_of *m = find_memory(to, bytes), *n = find_memory(from, bytes);

	if (r || !m || !n)
		return r ? r : illegal("a copy on the device", m ? from : to, bytes);
	return result(om_sim_ops()->copy(s->s, m->mem, to - m->at, n->mem, from - n->at, bytes, 0));
}

static cu_result
mock_cuMemsetD8Async(cu_address to, unsigned char byte, size_t bytes, cu_stream s)
{
	const cu_result r = enter("cuMemsetD8Async");
	const struct memory_of *m = find_memory(to, bytes);

	if (r || !m)
		return r ? r : illegal("a fill", to, bytes);
	return result(om_sim_ops()->fill(s->s, m->mem, to - m->at, bytes, byte, 0));
}

/* Parameters as the kernel declares them: memory is an address and an offset. */
static cu_result
read_parameters(cu_function f, void **parameters, om_arg *args)
{
	const char *letter = f->kernel->params;

	for (uint32_t k = 0, at = 0; letter[k]; k++, at++) {
		om_arg *a = &args[k];
		*a = (om_arg){.kind = OM_ARG_VALUE};
		if (letter[k] == 'm') {
			const cu_address base = *(const cu_address *)parameters[at++];
			const uint64_t offset = *(const uint64_t *)parameters[at];
			const struct memory_of *m = find_memory(base + offset, 0);
			if (base && (!m || base != m->at))
				return illegal(f->name, base + offset, 0);
			*a = (om_arg){.kind = OM_ARG_INOUT, .mem = base ? m->mem : 0, .at = offset, .bytes = base ? m->bytes - offset : 0};
		} else if (letter[k] == 'l') {
			a->type = OM_ARG_I64;
			a->value.i = *(const int64_t *)parameters[at];
		} else if (letter[k] == 'i') {
			a->type = OM_ARG_I32;
			a->value.i = *(const int32_t *)parameters[at];
		} else {
			a->type = OM_ARG_F32;
			a->value.f = *(const float *)parameters[at];
		}
	}
	return CU_OK;
}

static void
fail_late(void)
{
	const char *late = mock_word("late");
	long n, code;

	if (late && sscanf(late, "%ld:%ld", &n, &code) == 2 && n == ++driver.launches)
		driver.late = (int)code;
}

static cu_result
mock_cuLaunchKernel(cu_function f, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz, unsigned shared,
	cu_stream s, void **parameters, void **extra)
{
	const om_grid g = {.blocks = {x, y, z}, .threads = tx, .shared = shared};
	om_arg args[SIM_ARGS];
	cu_result r = enter("cuLaunchKernel");

	if (r || extra || ty != 1 || tz != 1 || tx > THREADS || tx == 0 || x == 0 || y == 0 || z == 0 || shared > SHARED)
		return r ? r : CU_INVALID_VALUE;
	r = read_parameters(f, parameters, args);
	if (r)
		return r;
	fail_late();
	return result(om_sim_ops()->launch(s->s, f->code, &g, args, (uint32_t)strlen(f->kernel->params), 0));
}

/* ---- Streams and events. ---- */

static cu_result
mock_cuStreamCreate(cu_stream *s, unsigned flags)
{
	const cu_result r = enter("cuStreamCreate");

	if (r || flags != CU_STREAM_NON_BLOCKING)
		return r ? r : CU_INVALID_VALUE;
	*s = calloc(1, sizeof **s);
	driver.streams++;
	return result(om_sim_ops()->stream_create(driver.context.device, &(*s)->s));
}

static cu_result
mock_cuStreamDestroy(cu_stream s)
{
	const cu_result r = mock_call("cuStreamDestroy");

	om_sim_ops()->stream_free(s->s);
	driver.streams--;
	free(s);
	return r;
}

static cu_result
mock_cuStreamSynchronize(cu_stream s)
{
	const cu_result r = enter("cuStreamSynchronize");

	if (!r && driver.late)
		driver.sticky = driver.late;
	return r ? r : driver.sticky ? driver.sticky : result(om_sim_ops()->sync(s->s));
}

static cu_result
mock_cuStreamWaitEvent(cu_stream s, cu_event e, unsigned flags)
{
	const cu_result r = enter("cuStreamWaitEvent");

	return r || flags ? (r ? r : CU_INVALID_VALUE) : result(om_sim_ops()->wait(s->s, e->e));
}

static cu_result
mock_cuEventCreate(cu_event *e, unsigned flags)
{
	const cu_result r = enter("cuEventCreate");

	if (r || flags)
		return r ? r : CU_INVALID_VALUE;
	*e = calloc(1, sizeof **e);
	driver.events++;
	return result(om_sim_ops()->event_create(driver.context.device, &(*e)->e));
}

static cu_result
mock_cuEventDestroy(cu_event e)
{
	om_sim_ops()->event_free(e->e);
	driver.events--;
	free(e);
	return mock_call("cuEventDestroy");
}

static cu_result
mock_cuEventRecord(cu_event e, cu_stream s)
{
	const cu_result r = enter("cuEventRecord");

	return r ? r : result(om_sim_ops()->record(s->s, e->e));
}

static cu_result
mock_cuEventElapsedTime(float *ms, cu_event from, cu_event to)
{
	(void)from;
	(void)to;
	*ms = 1;
	return enter("cuEventElapsedTime");
}

/* ---- Code. ---- */

/* Of the mock of NVRTC for this architecture, or of NVRTC itself. */
static cu_result
mock_cuModuleLoadData(cu_module *m, const void *image)
{
	const cu_result r = enter("cuModuleLoadData");
	char arch[NAME];

	if (r || memcmp(image, "\177ELF", 4) != 0)
		return r ? r : CU_INVALID_VALUE;
	const bool is_mine = sscanf((const char *)image + 4, " mock %15[0-9]", arch) == 1;
	if (is_mine && strtol(arch, NULL, 10) != mock_number("arch", ARCH))
		return CU_NO_BINARY_FOR_GPU;
	*m = calloc(1, sizeof **m);
	driver.modules++;
	return CU_OK;
}

static void
free_functions(cu_module m)
{
	for (cu_function f = m->first, next; f; f = next) {
		next = f->next;
		om_sim_ops()->code_free(f->code);
		free(f);
	}
}

static cu_result
mock_cuModuleUnload(cu_module m)
{
	const cu_result r = mock_call("cuModuleUnload");

	free_functions(m);
	driver.modules--;
	free(m);
	return r;
}

static cu_result
mock_cuModuleGetFunction(cu_function *f, cu_module m, const char *name)
{
	const cu_result r = enter("cuModuleGetFunction");
	const om_gpu_kernel *k = om_gpu_kernel_find(name);

	if (r || !k)
		return r ? r : MOCK_NOT_FOUND;
	*f = calloc(1, sizeof **f);
	(*f)->kernel = k;
	(*f)->next = m->first;
	m->first = *f;
	snprintf((*f)->name, sizeof (*f)->name, "%s", name);
	return result(om_sim_ops()->build(driver.context.device, "", &name, 1, &(*f)->code));
}

static cu_result
mock_cuFuncGetParamInfo(cu_function f, size_t index, size_t *offset, size_t *bytes)
{
	size_t n = 0;

	for (const char *p = f->kernel->params; *p; p++)
		n += *p == 'm' ? 2 : 1;
	*offset = 8 * index;
	*bytes = 8;
	return index < n ? CU_OK : CU_INVALID_VALUE;
}

/* ---- Captures. ---- */

static cu_result
mock_cuStreamBeginCapture(cu_stream s, int mode)
{
	const cu_result r = enter("cuStreamBeginCapture");

	return r || mode != CU_CAPTURE_THREAD_LOCAL ? (r ? r : CU_INVALID_VALUE) : result(om_sim_ops()->capture_begin(s->s));
}

static cu_result
mock_cuStreamEndCapture(cu_stream s, cu_graph *g)
{
	const cu_result r = enter("cuStreamEndCapture");

	if (r)
		return r;
	*g = calloc(1, sizeof **g);
	driver.graphs++;
	return result(om_sim_ops()->capture_end(s->s, &(*g)->g));
}

/* The executable graph takes the commands. */
static cu_result
mock_cuGraphInstantiateWithFlags(cu_graph_exec *x, cu_graph g, unsigned long long flags)
{
	const cu_result r = enter("cuGraphInstantiateWithFlags");

	if (r || flags)
		return r ? r : CU_INVALID_VALUE;
	*x = calloc(1, sizeof **x);
	(*x)->g = g->g;
	g->g = NULL;
	driver.graphs++;
	return CU_OK;
}

static cu_result
mock_cuGraphLaunch(cu_graph_exec x, cu_stream s)
{
	const cu_result r = enter("cuGraphLaunch");

	return r ? r : result(om_sim_ops()->replay(s->s, x->g));
}

static cu_result
mock_cuGraphExecDestroy(cu_graph_exec x)
{
	om_sim_ops()->graph_free(x->g);
	driver.graphs--;
	free(x);
	return mock_call("cuGraphExecDestroy");
}

static cu_result
mock_cuGraphDestroy(cu_graph g)
{
	om_sim_ops()->graph_free(g->g);
	driver.graphs--;
	free(g);
	return mock_call("cuGraphDestroy");
}

/* ---- The one symbol that is looked for by its name. ---- */

/* A function, by the name and the version of its signature. */
struct entry {
	const char *name;
	int version;
	void (*function)(void);
};

OM_API cu_result
cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found)
{
#define ENTRY(name, version, parameters) {#name, version, (void (*)(void))mock_##name},
	static const struct entry all[] = {OM_CUDA_DRIVER(ENTRY) OM_CUDA_DRIVER_NEWER(ENTRY)};
	const cu_result r = mock_call("cuGetProcAddress");
	const char *missing = mock_word("missing");

	*function = NULL;
	*found = 1;
	if (r || flags || (missing && strcmp(missing, name) == 0))
		return r ? r : MOCK_NOT_FOUND;
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (strcmp(all[k].name, name) == 0 && all[k].version == version) {
			memcpy(function, &all[k].function, sizeof *function);
			*found = 0;
			return CU_OK;
		}
	*found = VERSION_NOT_SUFFICIENT;
	return MOCK_NOT_FOUND;
}
