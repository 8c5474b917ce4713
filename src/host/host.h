/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the host. */
#ifndef OM_HOST_H
#define OM_HOST_H

#include "base/map.h"
#include "ir/facts.h"
#include "onnxmem/pass.h"

/* A pass that can be run, and its origin. */
struct found {
	const om_pass *pass;
	const char *file;           /* of its module; NULL: built in */
};

struct om_host {
	om_session *session;
	om_arena *mem;
	const char *path;           /* the search path as given, for messages */
	const char **folder;        /* folders of the search path */
	size_t nfolder;
	struct found **all;         /* built-in passes first, in list order */
	size_t n, cap;
	om_map by_name;             /* struct found * */
	om_map refused;             /* keys: modules without a valid pass; values unused */
	const om_plan_request *request; /* of pipelines */
	om_pass_hook *hook;
	void *hook_arg;
	const char *misuse;         /* message of the running pass's API misuse; NULL: none */
};

/* As om_host_new(), with `n` built-in passes. */
om_host *om_host_new_with(om_session *s, om_pass_entry *const *built_in, size_t n, const char *path);

/* The pass that provides fact `bit`, or fact `name` if `bit` is 0, when it is required and not
 * known; NULL: no pass provides it. */
const om_pass *om_host_giver(om_host *h, unsigned bit, const char *name);

/* As om_host_run(), for a request other than that of the host. */
om_status om_host_run_for(om_host *h, om_prog *p, const char *pipeline, const om_plan_request *r);

/* Run a pipeline for a request, and verify the plan that it makes; OM_USAGE if it makes none. */
om_status om_host_plan_for(om_host *h, om_prog *p, const char *pipeline, const om_plan_request *r);

/* As om_plan_cache_new(), for a request other than that of the host. */
om_plan_cache *om_plan_cache_new_for(om_host *h, const om_prog *p, const char *pipeline, const om_plan_request *r);

/* As om_host_run(), for a pipeline from a file: it may have what om_prog.passes lists, and nothing else. */
om_status om_host_run_recorded(om_host *h, om_prog *p, const char *pipeline);

/* Is the pass from a module? */
bool om_host_is_foreign(const om_host *h, const om_pass *pass);

/* Load the module `file`; fails with a message if it contains no valid pass. */
om_status om_module_load(om_host *h, const char *file, const om_pass **out);

/* Recompute those facts in `kept` that are cheap to compute, and compare them with `p`.
 * OM_IR names the first fact that does not hold. */
om_status om_facts_check(om_host *h, om_prog *p, unsigned kept);

/* Does the program have what the pass, from a module, declares to give? */
om_status om_facts_check_given(om_host *h, om_prog *p, const om_pass *pass);

#endif
