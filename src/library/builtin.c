/* SPDX-License-Identifier: Apache-2.0 */
/* All operators with their kernels, and all passes; and the functions that make what is built of them: programs,
 * whose ops are looked up among the operators, and hosts. */
#include <config.h>

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/guard.h"
#include "grad/callback.h"
#include "host/host.h"
#include "library/builtin.h"
#include "library/passes.h"
#include "onnx/import.h"
#include "onnx/plan_read.h"
#include "onnxmem/onnx.h"
#include "opdef/kernel_call.h"
#include "ops/family.h"
#include "opset/opset_convert.h"

static const om_opdef *const families[] = {
#define FAMILY(name) om_ops_##name,
	OM_FAMILIES(FAMILY)
#undef FAMILY
};

static const om_device_kernel *const device_families[] = {
#define DEVICE_FAMILY(name) om_device_kernels_##name,
	OM_DEVICE_FAMILIES(DEVICE_FAMILY)
#undef DEVICE_FAMILY
	NULL
};

static const om_kernel *const kernel_families[] = {
#define FAMILY(name) om_kernels_##name,
	OM_KERNEL_FAMILIES(FAMILY)
#undef FAMILY
};

enum { NFAMILY = sizeof families / sizeof families[0] };

static const om_opdef *
first_from(size_t family)
{
	for (; family < NFAMILY; family++)
		if (families[family]->name)
			return families[family];
	return NULL;
}

const om_opdef *
om_opdef_next(const om_opdef *prev)
{
	if (!prev)
		return first_from(0);
	if (prev[1].name)
		return prev + 1;
	for (size_t f = 0; f < NFAMILY; f++)
		for (const om_opdef *r = families[f]; r->name; r++)
			if (r == prev)
				return first_from(f + 1);
	return NULL;
}

/* ---- Lookup by name. ---- */

/* Open addressing, one slot per definition: definitions of one operator follow each other.  The index is
 * built on first use and is immutable afterwards. */
enum { NSLOT = 2048 };

static const om_opdef *slots[NSLOT];
static _Atomic(om_kernel_registry *) registry;
static pthread_mutex_t building = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *
domain_of(const om_opdef *r)
{
	return r->domain ? r->domain : "";
}

static uint32_t
hash_of(const char *domain, const char *name)
{
	uint32_t h = 2166136261u;

	for (const char *s = domain; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	h = (h ^ '/') * 16777619u;
	for (const char *s = name; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

static void
index_all(void)
{
	size_t n = 0;

	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
		uint32_t k = hash_of(domain_of(r), r->name) % NSLOT;
		while (slots[k])
			k = (k + 1) % NSLOT;
		slots[k] = r;
		n++;
	}
	assert(n < NSLOT / 2);
}

/* ---- Kernels. ---- */

static om_status
register_all(void *unused)
{
	om_kernel_registry *all = om_kernel_registry_new();

	(void)unused;
	for (size_t f = 0; f < sizeof kernel_families / sizeof kernel_families[0]; f++)
		OM_TRY(om_kernel_register(NULL, all, kernel_families[f]));
	atomic_store_explicit(&registry, all, memory_order_release);
	return OM_OK;
}

/* The registry outlives the call that happens to need it first: it belongs to none of its guards.  Without memory
 * the next call tries again. */
static void
build_registry(void)
{
	struct om_guard *outer = om_guard_suspend();

	pthread_mutex_lock(&building);
	if (!atomic_load_explicit(&registry, memory_order_relaxed))
		om_guarded(NULL, register_all, NULL);
	pthread_mutex_unlock(&building);
	om_guard_resume(outer);
}

static const om_kernel_registry *
kernels(void)
{
	const om_kernel_registry *all = atomic_load_explicit(&registry, memory_order_acquire);

	if (all)
		return all;
	build_registry();
	all = atomic_load_explicit(&registry, memory_order_acquire);
	if (!all)
		om_guard_fail(1);
	return all;
}

/* ---- Definitions. ---- */

static bool
is_called(const om_opdef *r, const char *domain, const char *name)
{
	return *r->name == *name && strcmp(r->name, name) == 0 && strcmp(domain_of(r), domain) == 0;
}

static bool
has_version(const om_opdef *r, int version)
{
	return r->since <= version && (r->until == 0 || version <= r->until);
}

static const om_opdef *
find(const char *domain, const char *name, int version)
{
	pthread_once(&once, index_all);
	for (uint32_t k = hash_of(domain, name) % NSLOT; slots[k]; k = (k + 1) % NSLOT)
		if (is_called(slots[k], domain, name) && has_version(slots[k], version))
			return slots[k];
	return NULL;
}

static bool
exists(const char *domain, const char *name)
{
	pthread_once(&once, index_all);
	for (uint32_t k = hash_of(domain, name) % NSLOT; slots[k]; k = (k + 1) % NSLOT)
		if (is_called(slots[k], domain, name))
			return true;
	return false;
}

/* ---- Programs. ---- */

static om_status
convert(om_session *s, om_prog *p)
{
	return om_prog_convert_opset(s, p, OM_CONVERT_DEFAULT, NULL);
}

const struct om_operators om_builtin = {find, exists, kernels, device_families, convert};

om_prog *
om_prog_new(void)
{
	return om_prog_new_with(&om_builtin);
}

om_status
om_parse(om_session *s, FILE *in, const char *where, om_prog **out)
{
	return om_parse_with(s, &om_builtin, in, where, out);
}

om_status
om_model_import(om_session *s, om_model *m, om_prog **out)
{
	return om_model_import_with(s, &om_builtin, m, out);
}

om_status
om_callbacks_new(om_session *s, om_callbacks **out)
{
	return om_callbacks_new_with(s, &om_builtin, out);
}

/* ---- Hosts. ---- */

#define DECLARE(name) const om_pass *om_pass_get_##name(void);
OM_PASSES(DECLARE)
#undef DECLARE

static om_pass_entry *const passes[] = {
#define ENTRY(name) om_pass_get_##name,
	OM_PASSES(ENTRY)
#undef ENTRY
};

om_host *
om_host_new(om_session *s, const char *path)
{
	return om_host_new_with(s, passes, sizeof passes / sizeof passes[0], path);
}

/* ---- Plans for lowered programs. ---- */

static om_status
lower(void *host, om_prog *p, const om_plan_request *request, const char *pipeline)
{
	om_host *h = host;
	const om_plan_request *own = h->request;
	om_status st = om_host_request(h, request);

	if (st == OM_OK)
		st = om_host_run_recorded(h, p, pipeline);
	h->request = own;
	return st;
}

om_status
om_host_read_plan(om_host *h, om_model *m, om_prog *p, const char *sidecar, const om_binding *b)
{
	return om_model_read_plan_with(h->session, m, p, sidecar, b, lower, h);
}

om_status
om_model_read_plan(om_session *s, om_model *m, om_prog *p, const char *sidecar)
{
	om_host *h = om_host_new(s, NULL);
	const om_status st = h ? om_model_read_plan_with(s, m, p, sidecar, NULL, lower, h) : OM_MEMORY;

	om_host_free(h);
	return st;
}
