/* SPDX-License-Identifier: Apache-2.0 */
/* What tests and measurements share: a session with a host, a program and its executor, the ways to run it, and
 * elements of tensors as numbers.  Uses the public interface only. */
#ifndef FIXTURES_H
#define FIXTURES_H

#include "onnxmem/executor.h"
#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"

typedef struct {
	om_session *s;
	om_host *h;
	om_arena *mem;
	om_model *model;
	om_prog *p;
	om_exec *e;
} bench;

/* A session, a host and an arena; no program yet. */
bench bench_open(void);
void bench_close(bench *b);
/* Without the program, its model and its executor: ready for the next one. */
void bench_clear(bench *b);

/* The program that `text` is. */
om_status bench_read(bench *b, const char *text);
/* The same, after these passes; NULL: none. */
om_status bench_plan(bench *b, const char *text, const char *passes);
/* The program of a model file; and of one in models/. */
om_status bench_load(bench *b, const char *path);
om_status bench_model(bench *b, const char *name);
/* Its executor: of its plan, unless nothing is reused. */
om_status bench_exec(bench *b, const om_exec_options *o);
/* Run on these inputs, the first `n`. */
om_status bench_run(bench *b, const om_tensor *in, uint32_t n);

/* A text as a program, as om_parse() does it; and what has been written of a program. */
om_status text_parse(om_session *s, const char *text, om_prog **p);
char *text_dump(const om_prog *p, unsigned flags);

/* If it is not, the message is printed. */
bool is_ok(const om_session *s, om_status st);

/* Is the status this one, with `part` in the message?  If not, both are printed. */
bool is_told(const om_session *s, om_status st, om_status want, const char *part);

/* All ways to run a program have to give the same bits. */
enum { SEPARATE, PLANNED, POISONED, NWAY };
extern const om_exec_options ways[NWAY];
extern const char *const way_text[NWAY];

/* Element `k` as a number, and from the nearest one; of types that C has, and float16. */
double element_at(const om_tensor *t, int64_t k);
void set_element(const om_tensor *t, int64_t k, double x);

/* Zeros of this type and shape. */
om_tensor tensor_zero(om_arena *mem, om_dtype type, const om_shape *shape);
/* Floats, as a tensor of rank 1. */
om_tensor floats_of(int64_t n, const float *x);
/* Is it these floats? */
bool is_floats(const om_tensor *t, int64_t n, const float *want);

#endif
