/* What the files of the host share. */
#ifndef OM_HOST_H
#define OM_HOST_H

#include "base/map.h"
#include "ir/facts.h"
#include "onnxmem/pass.h"

/* A pass that can be run, and where it is from. */
struct found {
	const om_pass *pass;
	const char *file;           /* of its module; NULL: it is built in */
};

struct om_host {
	om_session *session;
	om_arena *mem;
	const char *path;           /* as it was given, for messages */
	const char **folder;        /* the folders in it */
	size_t nfolder;
	struct found **all;         /* those built in first, in the order of their list */
	size_t n, cap;
	om_map by_name;             /* struct found * */
	om_map refused;             /* by file: modules that hold no pass; no value */
	om_pass_hook *hook;
	void *hook_arg;
	const char *misuse;         /* what the running pass asked for wrongly; NULL: nothing */
};

/* The pass that runs where fact `bit`, or where that is 0 fact `name`, is needed and not
 * known; NULL: none gives it. */
const om_pass *om_host_giver(om_host *h, unsigned bit, const char *name);

/* Is it from a module? */
bool om_host_is_foreign(const om_host *h, const om_pass *pass);

/* Load the module `file`.  What is not a pass is refused with a sentence. */
om_status om_module_load(om_host *h, const char *file, const om_pass **out);

/* Compare the facts `kept` of `p` with what is found out anew, where that is cheap.
 * OM_IR names the first fact that does not hold. */
om_status om_facts_check(om_host *h, om_prog *p, unsigned kept);

#endif
