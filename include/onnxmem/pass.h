/* Passes.
 *
 * A pass is one file that ends in OM_PASS(...).  It states what it needs, what
 * it gives and what it keeps; the host does the rest: computing what is needed,
 * forgetting what was not kept, verifying, dumping, timing.
 * A pass neither prints nor exits, nor remembers between runs.
 */
#ifndef OM_PASS_H
#define OM_PASS_H

#include "onnxmem/assignment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when what is here changes: passes made for another one are refused. */
#define OM_PASS_ABI 2

/* Options that a pass may have, and counters. */
#define OM_PASS_MOST 32

/* What a pass may be told: in pipelines, `pass:name=VALUE`. */
typedef struct om_pass_option {
	const char *name;   /* NULL ends the list.  The first one is also set by `pass=VALUE` */
	const char *value;  /* default */
	const char *brief;  /* what it sets, a line */
} om_pass_option;

/* What the value of a flag has to be. */
typedef enum om_flag_kind {
	OM_FLAG_TEXT,       /* any text that may stand in a pipeline */
	OM_FLAG_NUMBER,     /* an integer from `min` to `max` */
	OM_FLAG_FLOAT,      /* a number of at least 0 */
} om_flag_kind;

/* An option of the commands that plan: --name sets `option` wherever the pass stands in the
 * pipeline.  Help, manual pages and completions come from here. */
typedef struct om_pass_flag {
	const char *name;   /* without dashes; NULL ends the list.  One that a command has itself,
	                       as `budget`, is the command's, which hands its value on */
	const char *option; /* of the pass, that it sets */
	const char *arg;    /* the value in the help: "PERCENT"; NULL: it takes none, */
	const char *value;  /* and sets this one */
	const char *brief;  /* what it sets, for the help */
	om_flag_kind kind;  /* of the value */
	uint64_t min, max;  /* of a number */
	bool adds;          /* a pipeline without the pass gets it: before the first pass that uses
	                       what this one does not keep */
} om_pass_flag;

/* What a pass counts.  Shown by -v, and in the JSON of a report. */
typedef struct om_pass_counter {
	const char *name;    /* NULL ends the list */
	const char *brief;   /* what is counted, a line */
} om_pass_counter;

/* What the host hands to a run. */
typedef struct om_run {
	om_session *session;             /* for messages */
	om_arena *scratch;               /* emptied by the host after the run */
	const struct om_pass *pass;      /* that runs */
	const char *const *option;       /* values, by place in pass->options */
	uint64_t *counter;               /* by place in pass->counters; from 0 */
	struct om_host *host;            /* that runs it */
} om_run;

/* A pass: what it says of itself, and what it does. */
typedef struct om_pass {
	size_t struct_size;              /* these two are first, and set by OM_PASS */
	int abi;                         /* OM_PASS_ABI of the headers that it was compiled with */
	const char *name;                /* in pipelines, and of its file */
	const char *brief;               /* what it does, a line */
	unsigned needs, gives, keeps;    /* OM_HAS_...; what is not kept is forgotten */
	const om_pass_option *options;   /* NULL: none */
	const om_pass_counter *counters; /* NULL: none */
	const om_pass_flag *flags;       /* NULL: none */
	om_status (*run)(om_run *r, om_prog *p); /* changes the program, or finds out about it */
	/* Facts that have no constant, by name, separated by a space; NULL: none.  Who keeps
	 * OM_HAS_ALL keeps those as well that do not hang on what it gives. */
	const char *needs_facts, *gives_facts, *keeps_facts;
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
/* How the entry of a pass is declared: exported by a module, internal where the pass is built in. */
#define OM_PASS_LINKAGE
#else
/* How the entry of a pass is declared: exported by a module, internal where the pass is built in. */
#define OM_PASS_LINKAGE OM_API
/* The name of the entry. */
#define OM_PASS_ENTRY om_pass_get
#endif

/* The value of an option that the pass declares.  For another name it is "", and the run
 * fails with OM_NOPASS and a sentence when it comes back. */
OM_API const char *om_option(const om_run *r, const char *name);
/* The same as an integer of at least 0; OM_USAGE with a sentence otherwise. */
OM_API om_status om_option_number(const om_run *r, const char *name, uint64_t *out);
/* The same as a number from 0 to 1e18. */
OM_API om_status om_option_float(const om_run *r, const char *name, double *out);
/* Add to a counter that the pass declares; another name is treated as with om_option(). */
OM_API void om_count(om_run *r, const char *name, uint64_t n);

/* Attach `data`, which lies in `mem`, to the program as fact `name`, which the pass has to
 * list in `gives_facts`; OM_NOPASS where it does not.  The program owns `mem` from now on,
 * also where this fails, and frees it when the fact is forgotten.  The fact is known as soon
 * as the run has succeeded; om_fact_data() reads it.  A fact without data need not be
 * attached: to list it is enough. */
OM_API om_status om_fact_attach(om_run *r, om_prog *p, const char *name, om_arena *mem, const void *data);

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

/* Load a pass from a module, whatever the name and place of the file.  OM_NOPASS with a
 * sentence where it holds none, was made for another version, its om_pass is not whole, or
 * a pass of its name is there already. */
OM_API om_status om_host_plugin(om_host *h, const char *file);

/* The pass called `name`; NULL, with a message, when there is none. */
OM_API const om_pass *om_host_pass(om_host *h, const char *name);

/* Every pass, sorted by name; NULL ends the list, which the host owns.  `modules`: also those
 * in the folders that the host looks into; what holds no pass there is a warning.  Otherwise
 * those that are built in or loaded. */
OM_API const om_pass *const *om_host_passes(om_host *h, bool modules);

/* Run a pipeline: passes separated by commas, `name`, `name=VALUE` for the
 * first option, `name:option=VALUE:option=VALUE`.  What a pass needs and the
 * program lacks is run before it.  Facts that a pass does not keep are forgotten before it
 * runs, and those that it gives are known after it has succeeded: a failure leaves nothing
 * known that does not hold.  A program that a module's pass has left broken is refused. */
OM_API om_status om_host_run(om_host *h, om_prog *p, const char *pipeline);

/* A flag that was given. */
typedef struct om_flag_set {
	const om_pass *pass;        /* that declares it */
	const om_pass_flag *flag;   /* of that pass */
	const char *value;          /* as given; not empty */
} om_flag_set;

/* Make `*pipeline` what flags ask for; where several set an option, the last one counts.  The
 * new text is the host's.  OM_USAGE where a value cannot stand in a pipeline. */
OM_API om_status om_host_flags(om_host *h, const om_flag_set *set, size_t n, const char **pipeline);

/* The pipeline of `onnxmem plan`. */
OM_API const char *om_default_pipeline(void);

#ifdef __cplusplus
}
#endif

#endif
