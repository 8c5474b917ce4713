/* SPDX-License-Identifier: Apache-2.0 */
/* Error handling.
 *
 * A function that can fail because of its input returns an om_status.  The failing
 * function writes one sentence into the session with om_fail() and returns its
 * code; callers return the code unchanged, and add context with om_note() only if
 * the callee did not have it.  A violated internal invariant is not a status: it is
 * an assert().
 */
#ifndef OM_STATUS_H
#define OM_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, exit code of the command, text */
#define OM_STATUS_LIST(_)                                                      \
	_(OK,          0, "no error")                                          \
	_(IO,          1, "reading or writing failed")                         \
	_(MALFORMED,   1, "malformed file")                                    \
	_(INVALID,     1, "the model breaks a rule of ONNX")                   \
	_(SHAPE,       1, "shapes or types do not agree")                      \
	_(IR,          1, "the program breaks an IR invariant")                \
	_(MISMATCH,    1, "numbers differ from those expected")                \
	_(RUN,         1, "the model cannot be run on these inputs")           \
	_(MEMORY,      1, "not enough memory")                                 \
	_(USAGE,       2, "usage error")                                       \
	_(NOPASS,      2, "a pass could not be found or run")                  \
	_(BUDGET,      3, "the budget is not met")                             \
	_(STALE,       4, "the plan does not belong to this model")            \
	_(BADPLAN,     4, "the plan is not valid")                             \
	_(UNSUPPORTED, 5, "unsupported model or operator")                     \
	_(DOWNLOAD,    6, "download or checksum failed")                       \
	_(STOPPED,     1, "stopped by the caller")

/* The result of a function: OM_OK, or the kind of failure. */
typedef enum om_status {
/* A constant of om_status. */
#define OM_STATUS_ENUM(name, code, text) OM_##name,
	OM_STATUS_LIST(OM_STATUS_ENUM)
#undef OM_STATUS_ENUM
} om_status;

/* A session holds the messages of one caller: that of the last failure, and the log.  It is not shared
 * between threads.  Functions that can fail take the session of their caller; a program has none, so
 * two threads may use one program that neither changes.  A NULL session receives no messages. */
typedef struct om_session om_session;

/* Marks a function of the public interface. */
#define OM_API __attribute__((visibility("default")))

/* Lets the compiler check the arguments against the format. */
#define OM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* The verbosity of the log. */
enum om_log_level { OM_LOG_QUIET, OM_LOG_WARN, OM_LOG_INFO };

/* Receives one line of the log, without its newline. */
typedef void om_logger(void *arg, enum om_log_level level, const char *line);

/* NULL when memory runs out; free with om_session_free(), which accepts NULL. */
OM_API om_session *om_session_new(void);
OM_API void om_session_free(om_session *s);

/* Lines above `level` are dropped; a NULL `log` (the default) drops all. */
OM_API void om_session_log(om_session *s, om_logger *log, void *arg, enum om_log_level level);

/* The text of a status, and the exit code of a command that fails with it. */
OM_API const char *om_status_text(om_status st);
OM_API int om_status_exit(om_status st);

/* Set the message of a failure; returns `st` so that a caller can write `return
 * om_fail(...)`. `st` is not OM_OK. */
OM_API om_status om_fail(om_session *s, om_status st, const char *fmt, ...) OM_PRINTF(3, 4);

/* Append "; while <...>" to the message of a failure that is passed to the caller. */
OM_API om_status om_note(om_session *s, om_status st, const char *fmt, ...) OM_PRINTF(3, 4);

/* Write one line to the log. */
OM_API void om_log(om_session *s, enum om_log_level level, const char *fmt, ...) OM_PRINTF(3, 4);
/* A warning. */
#define om_warn(s, ...)   om_log((s), OM_LOG_WARN, __VA_ARGS__)
/* A message that is printed with -v only. */
#define om_info(s, ...)   om_log((s), OM_LOG_INFO, __VA_ARGS__)

/* Receives the progress of a search: the best result so far and its lower bound, in
 * bytes.  It is called after every attempt, so often: a display should limit its
 * rate. */
typedef void om_progress(void *arg, const char *what, uint64_t best, uint64_t bound);

/* A NULL `tell` (the default) drops reports. */
OM_API void om_session_progress(om_session *s, om_progress *tell, void *arg);

/* Stop what is done in this session, or, with false, let it go on again; the only functions of a session that another
 * thread or a signal handler may call.  Searches end as at a limit, with the best result so far, and a run of an executor
 * ends with OM_STOPPED after the op that it is at.  It stays so until `stops` is false. */
OM_API void om_session_stop(om_session *s, bool stops);
/* Is it stopped?  For passes that search; false for NULL. */
OM_API bool om_session_is_stopped(const om_session *s);

/* Loading a model may take at most so many bytes for what its file holds in fewer: sparse tensors, all of them
 * together.  0 (the default): 1 GiB.  Runs have a limit of their own (onnxmem/executor.h). */
OM_API void om_session_load_limit(om_session *s, uint64_t bytes);

/* The last message; owned by the session, valid until the next failure. */
OM_API const char *om_message(const om_session *s);

/* Return the status of a failed expression from the current function. */
#define OM_TRY(expr)                            \
	do {                                    \
		om_status st_ = (expr);         \
		if (st_ != OM_OK) return st_;   \
	} while (0)

#ifdef __cplusplus
}
#endif

#endif
