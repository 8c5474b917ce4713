/* SPDX-License-Identifier: Apache-2.0 */
/* Passes.
 *
 * A pass is one file that ends in OM_PASS(...).  It declares the facts that it requires,
 * provides and preserves.  The host does the rest: it computes required facts, invalidates
 * facts that are not preserved, verifies, dumps and times.
 * A pass does not print, does not exit, and keeps no state between runs.
 */
#ifndef OM_PASS_H
#define OM_PASS_H

#include "onnxmem/binding.h"
#include "onnxmem/assignment.h"
#include "onnxmem/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented when this interface changes; passes built for another version are rejected. */
#define OM_PASS_ABI 3

/* Maximum number of options, and of counters, of a pass. */
#define OM_PASS_MOST 32

/* An option of a pass; in pipelines, `pass:name=VALUE`. */
typedef struct om_pass_option {
	const char *name;   /* NULL ends the list.  The first one is also set by `pass=VALUE` */
	const char *value;  /* the default */
	const char *brief;  /* one-line description */
} om_pass_option;

/* The type of the value of a flag. */
typedef enum om_flag_kind {
	OM_FLAG_TEXT,       /* any text that is valid in a pipeline */
	OM_FLAG_NUMBER,     /* an integer from `min` to `max` */
	OM_FLAG_FLOAT,      /* a floating-point number >= 0 */
} om_flag_kind;

/* A command-line option of the commands that plan: --name sets `option` at each occurrence of
 * the pass in the pipeline.  Help, manual pages and completions are generated from it. */
typedef struct om_pass_flag {
	const char *name;   /* without dashes; NULL ends the list.  An option that a command defines
	                       itself, such as `budget`, is parsed by the command and passed on */
	const char *option; /* the option of the pass that it sets */
	const char *arg;    /* placeholder of the value in the help: "PERCENT"; NULL: no value */
	const char *value;  /* with no `arg`: the value to set */
	const char *brief;  /* description for the help */
	om_flag_kind kind;  /* of the value */
	uint64_t min, max;  /* range of OM_FLAG_NUMBER */
	bool adds;          /* add the pass to a pipeline that lacks it, before the first pass that
	                       uses a fact which this one does not preserve */
} om_pass_flag;

/* A counter of a pass.  Shown by -v and in JSON reports. */
typedef struct om_pass_counter {
	const char *name;    /* NULL ends the list */
	const char *brief;   /* one-line description of what is counted */
} om_pass_counter;

/* Context of one run of a pass, provided by the host. */
typedef struct om_run {
	om_session *session;             /* for messages */
	om_arena *scratch;               /* cleared by the host after the run */
	const struct om_pass *pass;      /* the running pass */
	const char *const *option;       /* values, by index in pass->options */
	uint64_t *counter;               /* by index in pass->counters; start at 0 */
	struct om_host *host;            /* the host that runs it */
	const om_plan_request *request;  /* of the host; `align` and `narena` are not 0 */
	const char *recorded;            /* options that om_option_record() added; "": none */
} om_run;

/* A pass: its declarations and its entry point. */
typedef struct om_pass {
	size_t struct_size;              /* first two fields; set by OM_PASS */
	int abi;                         /* OM_PASS_ABI of the headers that it was compiled with */
	const char *name;                /* in pipelines; also the name of its file */
	const char *brief;               /* one-line description */
	unsigned needs, gives, keeps;    /* OM_HAS_...; facts not in `keeps` are invalidated */
	const om_pass_option *options;   /* NULL: none */
	const om_pass_counter *counters; /* NULL: none */
	const om_pass_flag *flags;       /* NULL: none */
	om_status (*run)(om_run *r, om_prog *p); /* transforms or analyses the program */
	/* Facts without an OM_HAS_ constant: names separated by spaces; NULL: none.  A pass that
	 * keeps OM_HAS_ALL also keeps those that do not depend on a fact that it gives. */
	const char *needs_facts, *gives_facts, *keeps_facts;
	bool by_sizes;                   /* it only makes programs faster, and which ops it replaces may depend on sizes: a plan
	                                    with ranges leaves it out if its program is not one for all of them */
} om_pass;

/* The type of om_pass_get(), the entry point that a plugin exports. */
typedef const om_pass *om_pass_entry(void);

/* Defines the om_pass of a file, from its fields.  A module exports om_pass_get(); a built-in
 * pass has an entry point named by the build. */
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

/* The value of an option that the pass declares.  For an undeclared name it is "", and the
 * host fails the run with OM_NOPASS after the pass returns. */
OM_API const char *om_option(const om_run *r, const char *name);
/* The value as an integer >= 0; OM_USAGE with a message otherwise. */
OM_API om_status om_option_number(const om_run *r, const char *name, uint64_t *out);
/* Let plans record this value of an option that the pass declares and that it was not given: where the pass takes it from the
 * request, such as a budget of the total.  A plan for an executor lists the passes after which it is valid, and whoever reads
 * it runs them with another request.  Undeclared options are handled as in om_option(). */
OM_API void om_option_record(om_run *r, const char *name, uint64_t value);
/* Add to a counter that the pass declares; undeclared names are handled as in om_option(). */
OM_API void om_count(om_run *r, const char *name, uint64_t n);

/* Record in the program that this run ended something early at a limit: `what` says what, and what follows from
 * it, as a phrase for reports; `option`, an option of the pass, raises the limit; NULL: it is fixed.  Reports, their
 * JSON and plans list what is recorded.  The next run of the pass for this program starts without it.  A limit
 * that can change results has to be recorded.  Undeclared options are handled as in om_option(). */
OM_API void om_limit_reached(om_run *r, om_prog *p, const char *option, const char *what);

/* Attach `data`, allocated in `mem`, to the program as fact `name`, which must be listed in
 * `gives_facts` of the pass, else OM_NOPASS.  Ownership of `mem` passes to the program, also on
 * failure; the program frees it when the fact is invalidated.  The fact holds once the run has
 * succeeded; om_fact_data() reads it.  A fact without data is declared in `gives_facts` and
 * need not be attached. */
OM_API om_status om_fact_attach(om_run *r, om_prog *p, const char *name, om_arena *mem, const void *data);

/* ---- The host. ---- */

/* Finds and runs passes. */
typedef struct om_host om_host;

/* Called after each pass with its run, counters included, and the time in milliseconds. */
typedef void om_pass_hook(void *arg, const om_pass *pass, const om_run *r, const om_prog *p,
	double ms);

/* A host has the built-in passes, and searches `path` for modules with others: folders
 * separated by colons.  NULL: the environment variable ONNXMEM_PASS_PATH, else the folder
 * onnxmem beside the installed library. */
OM_API om_host *om_host_new(om_session *s, const char *path);
OM_API void om_host_free(om_host *h);                      /* NULL is fine */
/* The session that it was made with. */
OM_API om_session *om_host_session(const om_host *h);
OM_API void om_host_hook(om_host *h, om_pass_hook *hook, void *arg);

/* Set what plans have to comply with in later runs; NULL: the default, as in a new host.  The request
 * is copied.  Lifetimes and storage that a program has for another request become invalid in the next
 * run, unless the two differ in arenas alone.  OM_USAGE for an alignment that is no power of two. */
OM_API om_status om_host_request(om_host *h, const om_plan_request *r);

/* Load a pass from a module; the file may have any name and location.  OM_NOPASS with a
 * message if the module contains no pass, was built for another version, its om_pass is
 * incomplete, or a pass of the same name exists. */
OM_API om_status om_host_plugin(om_host *h, const char *file);

/* The pass called `name`; NULL, with a message, if there is none. */
OM_API const om_pass *om_host_pass(om_host *h, const char *name);

/* All passes, sorted by name; NULL ends the list, which the host owns.  With `modules`, passes
 * in the search path are included, and modules there without a pass give a warning; otherwise
 * only built-in and loaded passes are listed. */
OM_API const om_pass *const *om_host_passes(om_host *h, bool modules);

/* Run a pipeline: passes separated by commas, `name`, `name=VALUE` for the first option,
 * `name:option=VALUE:option=VALUE`.  Passes that provide missing required facts are run first.
 * Facts that a pass does not preserve are invalidated before it runs, and facts that it
 * provides are set after it has succeeded, so a failure leaves no invalid fact set.  Fails if
 * a pass from a module leaves the program invalid. */
OM_API om_status om_host_run(om_host *h, om_prog *p, const char *pipeline);

/* A flag given on the command line. */
typedef struct om_flag_set {
	const om_pass *pass;        /* that declares it */
	const om_pass_flag *flag;   /* of that pass */
	const char *value;          /* as given; not empty */
} om_flag_set;

/* Apply flags to `*pipeline`; if several set the same option, the last one wins.  The host
 * owns the new text.  OM_USAGE if a value is not valid in a pipeline. */
OM_API om_status om_host_flags(om_host *h, const om_flag_set *set, size_t n, const char **pipeline);

/* As om_model_read_plan() (onnxmem/onnx.h), with the passes of this host: a plan for a target other than generic
 * may have been made with passes of a plugin.  A plan with ranges (om_plan.range) is read for the numbers and
 * shapes of `b`; those that it leaves open, and all if it is NULL, are the largest.  OM_SHAPE if one is outside of
 * the range, or differs from that of a plan without a range; a plan of the range whose offsets do not serve a
 * number is refused by om_plan_verify(). */
OM_API om_status om_host_read_plan(om_host *h, om_model *m, om_prog *p, const char *sidecar, const om_binding *b);

/* Find the formulas (onnxmem/formula.h) of the plan of `p`, which has ranges; they become p->plan->formulas.  `open` is
 * the program that `p` was made of, before its symbols were bound: copies of it are bound to a few sizes of the ranges,
 * and the passes that changed `p` run for them; then to those that a proof for all sizes needs, with the other symbols open.  That there
 * are no formulas is no error: om_formulas.why has the reason; om_formulas.why_unproven, why there is no proof. */
OM_API om_status om_host_find_formulas(om_host *h, const om_prog *open, om_prog *p);

/* The default pipeline of `onnxmem plan`: it plans the program as it is. */
OM_API const char *om_default_pipeline(void);

/* The pipeline for a target.  For OM_TARGET_CPU it also rewrites the program for the executor: run it for a copy
 * (om_prog_bind()).  A precise run has the default pipeline instead. */
OM_API const char *om_target_pipeline(om_target target);

/* The pipeline for a request: that of its target or, for a precise run, the default one. */
OM_API const char *om_request_pipeline(const om_plan_request *r);

/* The pipeline that plans `p` as the host requests it: that of the target or, for a precise run, the default one, as by
 * om_host_decided().  With ranges of sizes that the plan is for, it has no passes that rewrite `p` for the executor but make
 * other programs for other sizes, because a plan for all of them needs one program; each pass that is left out gives a message
 * for information.  For target cpu the request of the host has the scratch that each op requires for any of these sizes, then
 * (om_plan_request.scratch), until the next call.  `open` is the program that `p` was made of, before its dims were bound; copies of it are bound to a few
 * sizes.  The host owns the text; NULL on failure. */
OM_API om_status om_host_pipeline(om_host *h, const om_prog *open, const om_prog *p, const om_dim_range *range, uint32_t nrange,
	const char **pipeline);

/* As om_host_pipeline(), with `nflag` flags, applied as om_host_flags() does before passes are left out: what a pass rewrites may
 * depend on them, as caches with spare rows do on `capacity`. */
OM_API om_status om_host_pipeline_with(om_host *h, const om_prog *open, const om_prog *p, const om_dim_range *range,
	uint32_t nrange, const om_flag_set *flag, size_t nflag, const char **pipeline);

/* `pipeline` after passes that leave out the branches that a constant input of `p` decides, if there is such an input.  The
 * host owns the text. */
OM_API const char *om_host_decided(om_host *h, const om_prog *p, const char *pipeline);

/* What is known of a plan with ranges after om_host_check_ranges(). */
typedef struct om_range_check {
	uint64_t sizes;          /* combinations of sizes in the ranges; UINT64_MAX: that many, or more */
	uint64_t verified;       /* those for which the plan was verified, one by one */
	const char *why_unproven; /* a sentence: why the plan may not be valid for others; NULL: it is valid for all sizes of the ranges */
	bool has_formulas;       /* the document has formulas, and */
	uint64_t compared;       /* sizes for which they were compared with the arenas of the plan */
	const char *why_formulas_unproven; /* a sentence: why they may not hold for others; NULL: they hold for all */
} om_range_check;

/* Verify the plan of a model, or of the document `sidecar` unless it is NULL, for all sizes of the ranges of `plan`, which is the same plan read for
 * the largest ones, and verified: for each of up to 1024 combinations, as it is and shrunk (om_plan_shrink()), or, if there are more, or more
 * than `most` if that is not 0, for as many, with the ends of all ranges.  Then, for a plan of a program that no passes rewrote, it is proven for the others, from
 * the shapes that inference finds with open symbols and from what operators allow; without a proof, and if `most` is 0, it is verified for each size, if
 * the programs of all sizes have at most 4194304 ops.  Formulas of the document are derived again from its places, and compared.  No claim of the document is relied on.  OM_BADPLAN with the sizes in the message if the plan, or a formula, does not hold for some.  `out` and its texts
 * are valid as long as `mem`. */
OM_API om_status om_host_check_ranges(om_host *h, om_model *m, const char *sidecar, om_plan *plan, uint64_t most, om_arena *mem, om_range_check *out);

/* Read the plan of a model, or of the document `sidecar` unless it is NULL, for each size of the ranges of `plan`, which is the same
 * plan read for the largest ones, and verify it, as om_host_check_ranges() does.  Where it is not proven for all sizes,
 * a warning states for how many it was verified.  Formulas of `plan` that promise less than it
 * takes are removed, with a warning.  The message of a failure has the sizes. */
OM_API om_status om_host_check_sizes(om_host *h, om_model *m, const char *sidecar, om_plan *plan);

/* ---- Tiling. ---- */

/* How a program is tiled.  Initialize it with OM_TILE_OPTIONS(). */
typedef struct om_tile_options {
	size_t size;             /* of this struct, as the program was compiled */
	uint64_t budget;         /* bytes: the fewest ops whose arena is no larger; 0: the smallest arena */
	uint64_t nodes;          /* limit of the ops of the result; 0: the default of the pass `tile` */
	bool only_concat;        /* results become whole by Concat alone, not also by ScatterND */
	uint64_t extra_flops;    /* values may be computed twice, with at most so many percent more work; up to
				    OM_TILE_MOST_EXTRA */
} om_tile_options;

/* The largest om_tile_options.extra_flops. */
enum { OM_TILE_MOST_EXTRA = 100000 };

/* Options with the given members; the others are zero. */
#define OM_TILE_OPTIONS(...) {.size = sizeof(om_tile_options), __VA_ARGS__}

/* See onnxmem/tiling.h. */
struct om_tiling;

/* Rewrite `p`, whose dims are bound, so that large values are never there as a whole: simplify it, run the pass `tile`, order and plan
 * the result for the request of the host, and verify that plan.  The limits of the request are not checked (om_plan_limits()).  `*out`
 * is what was done (onnxmem/tiling.h), allocated in `mem`. */
OM_API om_status om_host_tile(om_host *h, om_prog *p, const om_tile_options *o, om_arena *mem, const struct om_tiling **out);

/* ---- Plans by binding. ---- */

/* Planned copies of one program, one for each binding (binding.h). */
typedef struct om_plan_cache om_plan_cache;

/* An empty cache of plans of `p` that `pipeline` makes, NULL: that of the target of the present request of the
 * host, unless it is for a precise run.  All of them are made for this request.  The host and the program must outlive the cache; the
 * program is only read, so that caches of several threads may be made for it, each with a host of its
 * own.  A cache itself is not thread-safe.  The caller frees it; NULL: out of memory. */
OM_API om_plan_cache *om_plan_cache_new(om_host *h, const om_prog *p, const char *pipeline);
/* Free a cache and all programs in it; NULL is fine. */
OM_API void om_plan_cache_free(om_plan_cache *c);

/* The program bound by `b`, planned and its plan verified: made at the first call, and the same one at
 * later calls with this binding or another that gives the same shapes.  It belongs to the cache and
 * stays valid until the cache is freed.  `*out` is NULL on failure: errors of om_bind(), of the passes
 * and of om_plan_verify(); OM_USAGE if the pipeline makes no plan. */
OM_API om_status om_plan_cache_get(om_plan_cache *c, const om_binding *b, const om_prog **out);

#ifdef __cplusplus
}
#endif

#endif
