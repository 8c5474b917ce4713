/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, products of computed matrices, Einsum and recurrent layers, as they are lowered for target cpu.
 *
 *	bench/attention_rnn [NAME...]
 *
 * One line a layer: its name, the least processor time of some runs in milliseconds, and 10^9 floating-point operations a second.
 * Run with ONNXMEM_THREADS=1, as `make bench-attention-rnn` does. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fixtures.h"

enum { REPEATS = 60 };

static const struct layer {
	const char *name, *params, *body;
	double flops;
} layers[] = {
	{"attention-bert", "%x: float32[1,128,2304], %m: float32[1,1,1,128]",
	 "%y = org.onnxmem.cpu::Attention@1(%x, %x, %x, %m) {dims = [12,128,128,64,64], shape = [1,128,768], q = [0,64,2304,1],"
	 " k = [768,64,2304,1], v = [1536,64,2304,1], mask = [0,0,0,1], y = [0,64,768,1], scale = 0.125}", 4.0 * 12 * 128 * 128 * 64},
	{"attention-vit", "%x: float32[197,2304]",
	 "%y = org.onnxmem.cpu::Attention@1(%x, %x, %x) {dims = [12,197,197,64,64], shape = [197,768], q = [0,64,2304,1],"
	 " k = [768,64,2304,1], v = [1536,64,2304,1], y = [0,64,768,1], scale = 0.125}", 4.0 * 12 * 197 * 197 * 64},
	{"attention-swin", "%x: float32[64,49,288], %m: float32[3,49,49]",
	 "%y = org.onnxmem.cpu::Attention@1(%x, %x, %x, %m) {dims = [64,3,49,49,32,32], shape = [64,49,96],"
	 " q = [0,14112,32,288,1], k = [96,14112,32,288,1], v = [192,14112,32,288,1], mask = [0,0,2401,49,1],"
	 " y = [0,4704,32,96,1], scale = 0.177}", 4.0 * 64 * 3 * 49 * 49 * 32},
	{"attention-long", "%x: float32[4096,192]",
	 "%y = org.onnxmem.cpu::Attention@1(%x, %x, %x) {dims = [4096,4096,64,64], shape = [4096,64], q = [0,192,1],"
	 " k = [64,192,1], v = [128,192,1], y = [0,64,1], scale = 0.125}", 4.0 * 4096 * 4096 * 64},
	{"attention-step", "%q: float32[1,12,64], %k: float32[12,1000,64], %v: float32[12,1000,64]",
	 "%y = org.onnxmem.cpu::Attention@1(%q, %k, %v) {dims = [12,1,1000,64,64], shape = [1,768], q = [0,64,64,1],"
	 " k = [0,64000,64,1], v = [0,64000,64,1], y = [0,64,64,1], scale = 0.125}", 4.0 * 12 * 1000 * 64},
	{"einsum-maxvit", "%a: float32[1,64,2,49,32], %b: float32[1,64,2,49,32]",
	 "%y = Einsum(%a, %b) {equation = \"bghid,bghjd->bghij\"}", 2.0 * 64 * 2 * 49 * 49 * 32},
	{"matmul-large", "%a: float32[768,768], %b: float32[768,768]", "%y = MatMul(%a, %b)", 2.0 * 768 * 768 * 768},
	{"matmul-batch", "%a: float32[12,128,128], %b: float32[12,128,64]", "%y = MatMul(%a, %b)", 2.0 * 12 * 128 * 128 * 64},
	{"gemm-turned", "%a: float32[128,768], %b: float32[768,768]", "%y = Gemm(%a, %b) {transB = 1}", 2.0 * 128 * 768 * 768},
	{"lstm-512", "%x: float32[64,1,2048], %r: float32[1,1048576]",
	 "%y = org.onnxmem.cpu::LSTM@1(%x, %r) {hidden_size = 512}", 8.0 * 64 * 512 * 512},
	{"lstm-two-64", "%x: float32[50,1,512], %r: float32[2,16384]",
	 "%y = org.onnxmem.cpu::LSTM@1(%x, %r) {hidden_size = 64, direction = \"bidirectional\"}", 16.0 * 50 * 64 * 64},
	{"lstm-batch-8", "%x: float32[64,8,2048], %r: float32[1,1048576]",
	 "%y = org.onnxmem.cpu::LSTM@1(%x, %r) {hidden_size = 512}", 8.0 * 64 * 8 * 512 * 512},
	{"gru-512", "%x: float32[64,1,1536], %r: float32[1,786432]",
	 "%y = org.onnxmem.cpu::GRU@1(%x, %r) {hidden_size = 512, linear_before_reset = 1}", 6.0 * 64 * 512 * 512},
};

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static om_status
give_inputs(bench *b)
{
	for (uint32_t k = 0; k < b->p->first->nparam; k++) {
		const om_value *v = b->p->first->param[k];
		const om_tensor x = tensor_zero(b->mem, v->type.elem, &v->shape);
		for (int64_t i = 0; i < om_shape_count(&x.shape); i++)
			((float *)x.data)[i] = (float)(i * 7919 % 101) / 500 - 0.1f;
		OM_TRY(om_exec_input(b->e, k, &x));
	}
	return OM_OK;
}

static om_status
measure(bench *b, const struct layer *l)
{
	char text[2048];
	double best = 1e9;

	snprintf(text, sizeof text, "program \"t\" ir 8 opset 17\n^main(%s) {\n\t%s\n\tret %%y\n}\n", l->params, l->body);
	OM_TRY(bench_plan(b, text, "inline,shapes,fold"));
	OM_TRY(bench_exec(b, &ways[SEPARATE]));
	OM_TRY(give_inputs(b));
	for (int k = 0; k < REPEATS; k++) {
		const double start = now();
		OM_TRY(om_exec_run(b->e));
		const double spent = now() - start;
		best = spent < best ? spent : best;
	}
	printf("%-16s %8.3f ms %8.1f\n", l->name, 1e3 * best, 1e-9 * l->flops / best);
	return OM_OK;
}

static bool
is_wanted(const char *name, int argc, char **argv)
{
	for (int k = 1; k < argc; k++)
		if (strcmp(argv[k], name) == 0)
			return true;
	return argc < 2;
}

int
main(int argc, char **argv)
{
	for (size_t k = 0; k < sizeof layers / sizeof layers[0]; k++) {
		if (!is_wanted(layers[k].name, argc, argv))
			continue;
		bench b = bench_open();
		const bool ok = is_ok(b.s, measure(&b, &layers[k]));
		bench_close(&b);
		if (!ok)
			return 1;
	}
	return 0;
}
