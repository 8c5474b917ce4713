/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the dynamic graph.
 *
 * A call is looked up as a *kind*: operator, attributes, types and shapes, with its kernel prepared (kind.c).  It is computed
 * at once, or deferred as part of a *sequence* (call_sequence.c).  All sequences that were seen form a trie, whose nodes are calls:
 * a kind with its data flow.  A node where sequences ended twice with the same live results has a *replay*, the
 * planned program of the calls from the root to the node (compile.c).
 */
#ifndef OM_EAGER_INTERNAL_H
#define OM_EAGER_INTERNAL_H

#include "base/arena_internal.h"
#include "base/guard.h"
#include "base/parallel.h"
#include "onnxmem/eager.h"
#include "onnxmem/executor.h"
#include "onnxmem/pass.h"

enum {
	OM_EAGER_OUTPUTS = 64,       /* of a call */
	OM_EAGER_RESULTS = 4096,     /* buckets of remembered results */
	OM_EAGER_LONGEST = 8192,     /* calls of a sequence */
	OM_EAGER_NODES = 16384,      /* of the trie, and kinds, before all is forgotten */
};

/* ---- Memory. ---- */

/* Bytes that variables share.  Those of the pool follow the header. */
struct store {
	void *data;
	uint64_t bytes;              /* capacity */
	uint32_t refs;
	uint32_t size_class;         /* of the pool */
	struct store *next;          /* in the list of free ones */
	void (*release)(void *arg);  /* external memory: ends its use */
	void *arg;                   /* of `release` */
	bool is_external;
};

enum { OM_STORE_HEADER = 64, OM_STORE_CLASSES = 256 };
_Static_assert(sizeof(struct store) <= OM_STORE_HEADER, "the header of a store fits before its elements");

/* Free blocks by size, and how many bytes there are. */
struct memory_pool {
	struct store *free[OM_STORE_CLASSES];
	uint64_t limit;              /* 0: none */
	uint64_t held, used, peak;
	uint32_t refs;               /* the context, and what is lent */
};

/* NULL: out of memory.  It is freed when its last user leaves. */
struct memory_pool *om_memory_pool_new(uint64_t limit);
void om_memory_pool_leave(struct memory_pool *p);

/* NULL: out of memory. */
struct store *om_store_take(struct memory_pool *p, uint64_t bytes);
struct store *om_store_external(void *data, uint64_t bytes, void (*release)(void *arg), void *arg);
void om_store_drop(struct memory_pool *p, struct store *s);
/* Free the blocks that are not in use. */
void om_memory_pool_trim(struct memory_pool *p);

/* ---- Variables. ---- */

/* Dropped: to be computed again by its record. */
enum state { OM_READY, OM_DEFERRED, OM_DROPPED, OM_FAILED };

struct om_variable {
	om_eager *e;
	om_tensor t;                 /* `data` is set when it is ready */
	struct store *store;         /* NULL: not ready, or without elements */
	enum state state;
	uint32_t users;              /* owners among callers */
	uint32_t holds;              /* owners inside of the context that keep its elements */
	uint32_t pins;               /* deferred calls that refer to it */
	uint64_t form;               /* hash of type and shape */
	uint64_t sequence;           /* the sequence that `place` is of */
	uint32_t place;              /* where it is in that sequence: see below */
	om_variable *prev, *next;    /* in the list of the context */
	uint64_t id;                 /* equal numbers, equal elements; never used again */
	uint64_t used;               /* e->clock at its last use */
	struct record *record;       /* of the call whose result it is; NULL: none */
	uint32_t output;             /* of that call */
	bool is_watched;             /* gradients by it may be asked for */
	bool is_cut;                 /* a gradient that was computed as a whole: it has none itself */
	bool is_listed;              /* among those that may be dropped: */
	om_variable *older, *newer;
};

/* A place of a variable in a sequence, as inputs of calls refer to it: results are numbered in the order of their
 * calls, other variables in the order of their first use. */
enum { OM_PLACE_OUTSIDE = 1 << 30, OM_PLACE_VALUE = 1 << 29, OM_PLACE_NONE = 1 << 28 };

/* A variable without elements, of one user.  NULL: out of memory. */
om_variable *om_variable_make(om_eager *e, const om_tensor *form, uint64_t hash);
/* A copy of the elements of `t`, inside of a public function. */
om_status om_variable_new_here(om_eager *e, const om_tensor *t, om_variable **out);
/* Are these elements of a type and shape that a variable can have, and how many bytes? */
om_status om_variable_check(om_eager *e, const om_tensor *t, uint64_t *bytes);
/* A variable that is ready, and owns the store from now on.  After a failure the caller has it still. */
om_status om_variable_of_store(om_eager *e, const om_tensor *form, struct store *store, uint64_t bytes, om_variable **out);
/* Free it if it has no owner left. */
void om_variable_settle(om_variable *v);
/* While it is pinned it is neither freed nor dropped. */
void om_variable_pin(om_variable *v);
void om_variable_unpin(om_variable *v);
uint64_t om_form_hash(const om_tensor *t);
bool om_form_equal(const om_tensor *a, const om_tensor *b);

/* ---- Kinds of calls. ---- */

struct kind {
	uint64_t hash;
	uint32_t refs;
	uint32_t nin, nout;
	om_prog *prog;               /* one op; owns all but this struct */
	om_op *op;
	om_op_context c;             /* bound to its kernel */
	om_tensor *in;               /* the inputs of `c` */
	uint64_t *form;              /* by output */
	const om_view_of *view;      /* by output; in UINT32_MAX: no view */
	uint64_t scratch;            /* bytes */
	uint64_t values;             /* inputs whose elements decide shapes */
	bool has_values;             /* its values are those of `in`; without, kinds with values are to be looked up */
	bool is_open;                /* shapes of outputs are known only to a run, or it is not pure: never deferred */
	bool is_pure;                /* neither random nor with an effect */
	bool is_small;               /* few integers from few integers */
	double cost;                 /* FLOPs and bytes */
};

/* Is input `k` in the set `values`? */
static inline bool
om_is_value(uint64_t values, uint32_t k)
{
	return k < 64 && values >> k & 1;
}

/* What a call is looked up by. */
struct signature {
	const char *type;
	const om_attr *attrs;        /* ends with an entry without a name; NULL: none */
	uint32_t nin, nout;
	om_variable *const *in;
	uint64_t outs;               /* outputs that are present */
};

/* The kind of a call; a new one is made if needed.  Elements of inputs that decide shapes must be ready: if one is not, or is a
 * result of the present sequence, `*waits` is set instead. */
om_status om_kind_get(om_eager *e, const struct signature *s, struct kind **out, bool *waits);
void om_kind_drop(struct kind *k);

/* Programs of calls: an empty one; a parameter with type and shape of `form`; a constant with a copy of the elements; an op with
 * copies of attributes.  `type` may have a domain before a colon. */
om_prog *om_eager_prog(om_eager *e, const char *name);
om_value *om_eager_param(om_prog *p, const om_tensor *form, const char *stem);
om_value *om_eager_constant(om_prog *p, const om_tensor *t, const char *stem);
om_op *om_eager_op(om_prog *p, const char *type, const om_attr *attrs, uint32_t nattr, uint32_t nin, uint32_t nout);
void om_kinds_forget(om_eager *e);

/* ---- Sequences. ---- */

struct replay {
	struct replay *next;         /* of the same node */
	uint32_t *live;              /* places of results that are live at the end, ascending */
	uint32_t nlive;
	uint32_t seen;               /* how often */
	bool is_refused;             /* it could not be compiled */
	om_prog *prog;
	om_exec *exec;               /* NULL: not compiled */
	uint64_t used;               /* when it ran last */
	uint32_t runs;
};

/* A call, after those of its ancestors. */
struct call {
	struct call *parent, *chain;
	struct call *next;           /* all calls */
	struct kind *kind;
	uint64_t hash;
	uint32_t depth;              /* calls up to this one */
	uint32_t first;              /* place of its first result */
	uint32_t ncompiled;          /* replays of this node and its descendants */
	struct replay *replays;
	uint32_t *place;             /* by input */
};

struct sequences {
	struct call root;
	struct call **table;         /* by hash */
	struct call *all;
	uint32_t ncall;              /* in the trie */
	/* the present sequence */
	uint64_t serial;
	struct call *at;
	struct call **path;          /* [at->depth] while calls are deferred */
	om_variable **made;          /* by place: results; NULL: freed */
	om_variable **outside;       /* of deferred calls, by number */
	uint32_t nmade, noutside;
	size_t cap_path, cap_made, cap_outside;
	/* of the present call: places of inputs; variables; and at an end: places of live results */
	uint32_t *place, *live;
	om_variable **vars;
	size_t cap_place, cap_live, cap_vars;
	bool is_deferring;
	/* repetitions: of the last calls, `matched` in a row equal those `period` calls before */
	uint64_t *recent;            /* hashes by call */
	uint32_t *last;              /* [OM_EAGER_LAST] by hash: number of the call, from 1 */
	size_t cap_recent;
	uint32_t nrecent, period, matched;
};

enum { OM_EAGER_LAST = 1024, OM_EAGER_TABLE = 32768 };

/* Compute a call of these variables now, or defer it.  Outputs exist and are not ready. */
om_status om_sequence_call(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out);
/* End the present sequence: compute what is deferred. */
om_status om_sequence_end(om_eager *e);
void om_sequence_forget(om_eager *e);
om_status om_sequences_new(om_eager *e);
void om_sequences_free(om_eager *e);

/* Plan `p` for the processor by `pipeline`, and make its executor; `search_nodes`: as in om_plan_request. */
om_status om_eager_executor(om_eager *e, om_prog *p, uint64_t search_nodes, const char *pipeline, om_exec **out);
/* Compile the calls up to `at` for the live results of `r`. */
om_status om_replay_compile(om_eager *e, struct call *at, struct replay *r);
om_status om_replay_run(om_eager *e, struct call *at, struct replay *r);
void om_replay_release(om_eager *e, struct replay *r);

/* ---- Recorded calls: records.c. ---- */

struct record {
	struct record *next;         /* of those that ended */
	struct kind *kind;
	uint64_t serial;             /* in the order of calls */
	uint32_t refs;               /* results that exist */
	uint32_t index;              /* in a gradient that is being computed, from 1; 0: not part of it */
	om_variable **out;           /* NULL: freed */
	om_variable *in[];           /* held */
};

/* Is the call to be recorded, and record it. */
bool om_record_follows(const om_eager *e, const struct kind *k, om_variable *const *in);
om_status om_record_call(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out);
/* `v` is not a result any more. */
void om_record_leave(om_variable *v);
/* One owner of the record less. */
void om_record_end(om_eager *e, struct record *r);
/* It may be dropped from now on, if nothing but records holds it; not any more. */
void om_record_consider(om_variable *v);
void om_record_unlist(om_variable *v);
/* Compute it again if it was dropped. */
om_status om_record_restore(om_variable *v);

/* The operators of gradients; gradient.c. */
void om_gradients_forget(om_eager *e);

/* Programs that were called; program.c. */
void om_programs_forget(om_eager *e);

/* ---- Remembered results: results.c. ---- */

/* Give these variables the elements of the results of an equal call; false: they are not remembered. */
bool om_results_share(om_eager *e, const struct kind *k, om_variable *const *in, om_variable *const *out);
void om_results_add(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out);
void om_results_forget(om_eager *e);

/* ---- Calls. ---- */

/* Compute a call of variables that are ready. */
om_status om_call_compute(om_eager *e, struct kind *k, om_variable *const *in, om_variable *const *out);
/* A call from outside or from a gradient; `outs` has a bit for each output that is present. */
om_status om_call_dispatch(om_eager *e, const struct signature *s, om_variable **out);
/* Free `n` variables, some of which may be NULL, and forget them. */
void om_variables_free(om_variable **v, size_t n);

struct om_eager {
	om_session *session;
	om_eager_options options;
	om_arena *call;              /* cleared after each call */
	om_arena *mem;
	om_host *host;               /* NULL: nothing was compiled yet */
	om_workers *pool;
	struct memory_pool *memory;
	struct store *scratch;
	om_variable *variables;      /* all of them */
	uint64_t clock, ids;         /* of uses and records; of variables */
	bool is_recording;
	struct record *ended;        /* records to be freed */
	bool is_ending;              /* they are being freed */
	om_variable *droppable;      /* results that may be dropped */
	uint64_t droppable_bytes;
	om_variable **restored;      /* results that were computed again, pinned */
	size_t nrestored, cap_restored;
	struct gradient *gradients;  /* operators of gradients, by the calls that they are of */
	struct gradient *running;    /* the one that runs, which is not forgotten; NULL: none */
	uint32_t ngradient;
	struct program *callable;    /* programs that were called */
	uint32_t ncallable;
	struct result **results;     /* remembered; by hash */
	uint32_t nresult;
	double result_floor;         /* the priority of the last one that was given up */
	struct kind **kinds;         /* by hash */
	uint32_t nkind;
	struct sequences seq;
	om_eager_stats stats;
	bool is_entered;             /* a call is running, or ended because memory ran out */
};

/* End the present sequence, then forget kinds, sequences and programs. */
om_status om_eager_forget(om_eager *e);

/* Enter and leave a public function that may run out of memory; see context.c. */
om_status om_eager_guarded(om_eager *e, om_status (*run)(void *arg), void *arg);
/* The same for a function that sets variables, which are NULL before.  After a failure they are freed, and NULL. */
om_status om_eager_results(om_eager *e, om_status (*run)(void *arg), void *arg, om_variable **out, size_t n);

#endif
