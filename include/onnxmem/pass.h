/* Passes.
 *
 * A pass is one file that ends in OM_PASS(...).  It states what it needs, what
 * it gives and what it keeps; the host does the rest: computing what is needed,
 * forgetting what was not kept, verifying, dumping, timing.
 * A pass neither prints nor exits, nor remembers between runs.
 */
#ifndef OM_PASS_H
#define OM_PASS_H

#include "onnxmem/opdef.h"

/* Changes when what is here changes: passes made for another one are refused. */
#define OM_PASS_ABI 2

/* What a pass may be told. */
typedef struct om_pass_option {
	const char *name;   /* NULL ends the list.  The first one is also set by `pass=VALUE` */
	const char *value;  /* default */
	const char *brief;  /* what it sets, a line */
} om_pass_option;

/* What a pass counts. */
typedef struct om_pass_counter {
	const char *name;   /* NULL ends the list */
	const char *brief;  /* what is counted, a line */
} om_pass_counter;

/* What the host hands to a run. */
typedef struct om_run {
	om_session *session;             /* for messages */
	om_arena *scratch;               /* emptied by the host after the run */
	const struct om_pass *pass;      /* that runs */
	const char *const *option;       /* values, by place in pass->options */
	uint64_t *counter;               /* by place in pass->counters; from 0 */
	struct om_host *host;            /* that runs it; for om_run_passes() */
} om_run;

/* A pass: what it says of itself, and what it does. */
typedef struct om_pass {
	size_t struct_size;              /* these two are first, and set by OM_PASS */
	int abi;
	const char *name;                /* in pipelines, and of its file */
	const char *brief;               /* what it does, a line */
	unsigned needs, gives, keeps;    /* OM_HAS_... */
	const om_pass_option *options;   /* NULL: none */
	const om_pass_counter *counters; /* NULL: none */
	om_status (*run)(om_run *r, om_prog *p); /* changes the program, or finds out about it */
} om_pass;

/* What a plugin has, called om_pass_get. */
typedef const om_pass *om_pass_entry(void);

/* The end of a pass: the fields of its om_pass.  A module exports om_pass_get(); a pass
 * that is built in has an entry of its own name, which the build gives. */
#define OM_PASS(...)                                                           \
	OM_PASS_LINKAGE const om_pass *OM_PASS_ENTRY(void);                    \
	const om_pass *OM_PASS_ENTRY(void)                                     \
	{                                                                      \
		static const om_pass pass = {.struct_size = sizeof(om_pass),   \
			.abi = OM_PASS_ABI, __VA_ARGS__};                      \
		return &pass;                                                  \
	}
#ifdef OM_PASS_ENTRY
#define OM_PASS_LINKAGE
#else
#define OM_PASS_LINKAGE OM_API
#define OM_PASS_ENTRY om_pass_get
#endif

/* The value of an option that the pass declares. */
OM_API const char *om_option(const om_run *r, const char *name);
/* The same as a number of at least 0; refused with a sentence otherwise. */
OM_API om_status om_option_number(const om_run *r, const char *name, uint64_t *out);
/* Add to a counter that the pass declares. */
OM_API void om_count(om_run *r, const char *name, uint64_t n);

/* Run a pipeline from inside a pass: on a copy of its program, or on the program
 * itself to see what would come of it.  Needs are met as in om_host_run(); the
 * hook hears nothing of it. */
OM_API om_status om_run_passes(om_run *r, om_prog *p, const char *pipeline);

/* ---- The host. ---- */

/* Finds passes, and runs them. */
typedef struct om_host om_host;

/* Called after each pass: its name, its counters, how long it took. */
typedef void om_pass_hook(void *arg, const om_pass *pass, const om_run *r, const om_prog *p,
	double ms);

/* A host has the passes that are built in, and finds modules with others in `path`:
 * folders separated by colons; NULL: the environment's ONNXMEM_PASS_PATH, else the
 * folder onnxmem beside the installed library. */
OM_API om_host *om_host_new(om_session *s, const char *path);
OM_API void om_host_free(om_host *h);                      /* NULL is fine */
OM_API void om_host_hook(om_host *h, om_pass_hook *hook, void *arg);

/* Load a pass from a file, whatever its name and place. */
OM_API om_status om_host_plugin(om_host *h, const char *file);

/* The pass called `name`; NULL, with a message, when there is none. */
OM_API const om_pass *om_host_pass(om_host *h, const char *name);

/* Every pass that can be found, sorted by name; NULL ends the list, which the
 * host owns. */
OM_API const om_pass *const *om_host_passes(om_host *h);

/* Run a pipeline: passes separated by commas, `name`, `name=VALUE` for the
 * first option, `name:option=VALUE:option=VALUE`.  What a pass needs and the
 * program lacks is run before it. */
OM_API om_status om_host_run(om_host *h, om_prog *p, const char *pipeline);

/* The pipeline of `onnxmem plan`. */
OM_API const char *om_default_pipeline(void);

#endif
