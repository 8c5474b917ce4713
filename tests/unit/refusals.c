/* SPDX-License-Identifier: Apache-2.0 */
/* Running out of memory in what consists of several programs or goes on from run to run: sets, caches with spare rows, devices,
 * training, dynamic graphs, tuning, and programs that are cut.  Each is made, used and freed with requests refused. */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "eager/eager_internal.h"
#include "kernels/sim/sim.h"
#include "memory_walk.h"
#include "onnxmem/eager.h"
#include "onnxmem/set.h"
#include "onnxmem/split.h"
#include "onnxmem/trainer.h"
#include "onnxmem/tune.h"
#include "tests/fixtures.h"
#include "unit.h"

#define PLACE "inline,shapes,fold,prune,place-devices:device=sim:place=all,"
#define CAPACITY "inline,shapes,fold,capacity=8:rings=1,prune,"
#define PLAN "schedule=original,liveness,views,alias-io=declared,inplace,loops,pack"

/* ---- A program that is planned by some passes for some request. ---- */

typedef om_status use_fn(om_session *s, om_host *h, om_prog *p);

static om_status
plan_and_use(om_session *s, const char *text, const om_plan_request *r, const char *passes, use_fn *use)
{
	om_host *h = om_host_new(s, NULL);
	om_prog *p = NULL;
	om_status st = h ? om_host_request(h, r) : OM_MEMORY;

	if (st == OM_OK)
		st = text_parse(s, text, &p);
	if (st == OM_OK)
		st = om_host_run(h, p, passes);
	if (st == OM_OK)
		st = use(s, h, p);
	om_prog_free(p);
	om_host_free(h);
	return st;
}

/* ---- Devices: runs are captured and replayed, one input is in memory of the device. ---- */

static const char chain[] = "program \"t\" ir 8 opset 17\n"
	"^main(%v0: float32[3,8], %v1: float32[3,8]) {\n"
	"	%w = const float32[8] splat {0.5}\n"
	"	%a = Add(%v0, %v1)\n"
	"	%b = Mul(%a, %w)\n"
	"	%c = Relu(%b)\n"
	"	ret %c\n"
	"}\n";

static om_status
use_device(om_session *s, om_host *h, om_prog *p)
{
	static _Alignas(256) float x[2][64];
	const om_exec_options o = OM_EXEC_OPTIONS(.device = om_sim_ops());
	om_tensor in[2];
	om_exec *e = NULL;

	(void)h;
	for (int k = 0; k < 2; k++)
		in[k] = (om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){3, 8}), .data = x[k]};
	om_status st = om_exec_new(s, p, p->plan, &o, &e);
	if (st == OM_OK)
		st = om_exec_input(e, 0, &in[0]);
	if (st == OM_OK)
		st = om_exec_input(e, 1, &in[1]);
	for (int run = 0; run < 6 && st == OM_OK; run++) {
		if (run == 3)
			st = om_exec_device_input(e, 0, &in[0], NULL);
		if (st == OM_OK)
			st = om_exec_run(e);
	}
	om_exec_free(e);
	return st;
}

static om_status
run_device(om_session *s)
{
	const om_arena_spec arenas[] = {{.name = "host", .device = "cpu"}, {.name = "sim", .device = "sim", .align = 256}};
	const om_plan_request r = OM_PLAN_REQUEST(.arena = arenas, .narena = 2, .target = OM_TARGET_CPU);

	return plan_and_use(s, chain, &r, PLACE PLAN, use_device);
}

static void
on_devices(void)
{
	memory_walk(run_device);
}

/* ---- Caches with spare rows, one of them a ring. ---- */

static const char decoder[] = "program \"\" ir 10 opset 18 opset com.microsoft 1\n"
	"^main(%q: float32[1,1,32], %k: float32[1,1,16], %v: float32[1,1,16], %past_k: float32[1,2,3,8], %past_v: float32[1,2,3,8], %len: int32[1], %total: int32[]) {\n"
	"	%y, %present_k, %present_v = com.microsoft::GroupQueryAttention(%q, %k, %v, %past_k, %past_v, %len, %total) "
	"{num_heads = 4, kv_num_heads = 2, local_window_size = 6}\n"
	"	ret %y, %present_k to %past_k, %present_v to %past_v\n"
	"}\n";

static om_status
use_caches(om_session *s, om_host *h, om_prog *p)
{
	const om_exec_options o = OM_EXEC_OPTIONS(.poison = true);
	static char zero[4096];
	static const int32_t three = 3, four = 4;
	om_exec *e = NULL;
	om_status st = om_exec_new(s, p, p->plan, &o, &e);

	(void)h;
	for (uint32_t k = 0; k < p->first->nparam && st == OM_OK; k++) {
		const om_value *v = p->first->param[k];
		const void *data = strcmp(v->name, "len") == 0 ? (const void *)&three : strcmp(v->name, "total") == 0 ? (const void *)&four : zero;
		st = om_exec_input(e, k, &(om_tensor){.type = v->type.elem, .shape = v->shape, .data = (void *)data});
	}
	for (int run = 0; run < 2 && st == OM_OK; run++)
		st = om_exec_run(e);
	om_exec_free(e);
	return st;
}

static om_status
run_caches(om_session *s)
{
	return plan_and_use(s, decoder, &(om_plan_request)OM_PLAN_REQUEST(.target = OM_TARGET_CPU), CAPACITY PLAN, use_caches);
}

static void
in_caches(void)
{
	memory_walk(run_caches);
}

/* ---- Training. ---- */

static const char step[] = "program \"step\" ir 8 opset 17\n"
	"^step(%x: float32[4,1], %lr: float32[], %w: float32[1] = {0.5}) {\n"
	"	%d = Sub(%x, %w)\n"
	"	%s = Mul(%d, %d)\n"
	"	%loss = ReduceMean(%s) {keepdims = 0}\n"
	"	%g = ReduceMean(%d) {keepdims = 0}\n"
	"	%h = Mul(%g, %lr)\n"
	"	%w_next = Add(%w, %h)\n"
	"	ret %loss, %w_next to %w\n"
	"}\n";

static om_status
use_trainer(om_session *s, om_host *h, om_prog *p)
{
	static const float x[4] = {1, 2, 3, 4}, rate = 0.5f;
	const om_tensor in[2] = {
		{.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){4, 1}), .data = (void *)x},
		{.type = OM_FLOAT32, .shape = om_shape_of(0, NULL), .data = (void *)&rate},
	};
	uint64_t copied = 0;
	om_trainer *t = NULL;
	om_exec *e = NULL;
	om_status st = om_exec_new(s, p, p->plan, NULL, &e);

	(void)h;
	if (st == OM_OK)
		st = om_trainer_new(s, p, &t);
	if (st == OM_OK)
		st = om_trainer_bind(t, e);
	for (uint32_t k = 0; k < 2 && st == OM_OK; k++)
		st = om_exec_input(e, k, &in[k]);
	for (int k = 0; k < 2 && st == OM_OK; k++)
		st = om_trainer_step(t, e, &copied);
	om_exec_free(e);
	om_trainer_free(t);
	return st;
}

static om_status
train(om_session *s)
{
	return plan_and_use(s, step, &(om_plan_request)OM_PLAN_REQUEST(.target = OM_TARGET_CPU), "inline,shapes,fold,prune," PLAN, use_trainer);
}

static void
in_training(void)
{
	memory_walk(train);
}

/* ---- Programs that are cut. ---- */

static om_status
use_parts(om_session *s, om_host *h, om_prog *p)
{
	om_split_request r = OM_SPLIT_REQUEST();
	om_arena *mem = om_arena_new();
	om_split cuts;

	(void)h;
	r.parts = 2;
	om_status st = mem ? om_split_find(s, p, &r, mem, &cuts) : OM_MEMORY;
	if (st == OM_OK)
		st = om_prog_extract(s, p, cuts.part[1].first, cuts.part[1].nop);
	om_arena_free(mem);
	return st;
}

static om_status
cut(om_session *s)
{
	return plan_and_use(s, chain, &(om_plan_request)OM_PLAN_REQUEST(), "inline,shapes,fold,prune,liveness,views,inplace,loops", use_parts);
}

static void
in_parts(void)
{
	memory_walk(cut);
}

/* ---- Tuning, with times that are made up. ---- */

static om_status
measure(void *arg, om_session *s, const om_prog *p, double seconds, om_tune_times *t)
{
	(void)arg;
	(void)s;
	(void)seconds;
	t->ms = 1;
	for (uint32_t k = 0; k < p->nop; k++)
		t->op_ms[k] = 1 + (k + p->nop) % 3;
	return OM_OK;
}

static om_status
tune(om_session *s)
{
	static const char net[] = "program \"net\" ir 8 opset 13\n"
		"^main(%x: float32[1,16,12,12]) {\n"
		"	%w = const float32[16,16,3,3] splat {0.01}\n"
		"	%y = Conv(%x, %w) {pads = [1,1,1,1]}\n"
		"	ret %y\n"
		"}\n";
	const om_tune_options o = OM_TUNE_OPTIONS(.seconds = 1, .measure = measure);
	const om_plan_request r = OM_PLAN_REQUEST(.target = OM_TARGET_CPU);
	om_host *h = om_host_new(s, NULL);
	om_arena *mem = om_arena_new();
	om_prog *p = NULL, *planned = NULL;
	const om_tuned *is;
	om_status st = h && mem ? om_host_request(h, &r) : OM_MEMORY;

	if (st == OM_OK)
		st = text_parse(s, net, &p);
	if (st == OM_OK)
		st = om_host_tune(h, p, &o, mem, &planned, &is);
	om_prog_free(planned);
	om_prog_free(p);
	om_arena_free(mem);
	om_host_free(h);
	return st;
}

static void
in_tuning(void)
{
	memory_walk(tune);
}

/* ---- Dynamic graphs: the same calls three times, so that the last are replayed; and their gradient. ---- */

static om_status
call(om_eager *e, const char *type, om_variable *a, om_variable *b, om_variable **out)
{
	om_variable *in[] = {a, b};

	return om_eager_run(e, type, NULL, b ? 2 : 1, in, 1, out);
}

static om_status
differentiate(om_eager *e, om_variable *x, om_variable *w)
{
	om_variable *made[5] = {NULL};
	const om_tensor *t;

	om_variable_watch(w);
	om_eager_record(e, true);
	om_status st = call(e, "MatMul", x, w, &made[0]);
	if (st == OM_OK)
		st = call(e, "Tanh", made[0], NULL, &made[1]);
	if (st == OM_OK)
		st = call(e, "Mul", made[1], made[1], &made[2]);
	if (st == OM_OK)
		st = call(e, "ReduceSum", made[2], NULL, &made[3]);
	om_eager_record(e, false);
	if (st == OM_OK)
		st = om_eager_gradient(e, made[3], NULL, 1, &w, &made[4]);
	if (st == OM_OK)
		st = om_variable_read(made[4], &t);
	om_variables_free(made, 5);
	return st;
}

static om_status
record(om_session *s)
{
	static const float x[6] = {1, 2, 3, 4, 5, 6};
	const om_tensor t[2] = {
		{.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){2, 3}), .data = (void *)x},
		{.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){3, 2}), .data = (void *)x},
	};
	om_variable *v[2] = {NULL};
	om_eager *e = NULL;
	om_status st = om_eager_new(s, NULL, &e);

	for (int k = 0; k < 2 && st == OM_OK; k++)
		st = om_variable_new(e, &t[k], &v[k]);
	for (int k = 0; k < 4 && st == OM_OK; k++)
		st = differentiate(e, v[0], v[1]);
	om_eager_free(e);
	return st;
}

static void
in_dynamic_graphs(void)
{
	memory_walk(record);
}

/* ---- Sets: three parts, of which the last two repeat. ---- */

static const char manifest[] = "{\"schema\": \"onnxmem-set/1\", \"parts\": ["
	"{\"name\": \"a\", \"model\": \"%s/models/nnc_chain.onnx\"}, {\"name\": \"b\", \"model\": \"%s/models/nnc_chain.onnx\"}], "
	"\"links\": [[\"a.y\", \"b.x\", \"b.y\"]], \"order\": [\"a\", [\"b\"]]}\n";

static char path[64];

static om_status
use_set(om_host *h)
{
	static const float x[100] = {1};
	const om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(4, (int64_t[]){1, 4, 5, 5}), .data = (void *)x};
	om_set *set = NULL;
	om_status st = om_set_load(h, path, om_default_pipeline(), &set);

	if (st == OM_OK)
		st = om_set_make_plan(set);
	if (st == OM_OK)
		st = om_set_start(set, &(om_exec_options)OM_EXEC_OPTIONS(.poison = true, .threads = 1));
	if (st == OM_OK)
		st = om_set_input(set, 0, 0, &in);
	if (st == OM_OK)
		st = om_set_run(set, 0);
	for (int k = 0; k < 2 && st == OM_OK; k++)
		st = om_set_run(set, 1);
	om_set_free(set);
	return st;
}

static om_status
run_set(om_session *s)
{
	om_host *h = om_host_new(s, NULL);
	const om_status st = h ? use_set(h) : OM_MEMORY;

	om_host_free(h);
	return st;
}

static void
in_sets(void)
{
	snprintf(path, sizeof path, "refusals-%ld.json", (long)getpid());
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, manifest, OM_SRCDIR, OM_SRCDIR);
	CU_ASSERT_EQUAL(fclose(f), 0);
	memory_walk(run_set);
	unlink(path);
}

static CU_TestInfo tests[] = {
	{"on devices", on_devices},
	{"in caches", in_caches},
	{"in training", in_training},
	{"in parts of programs", in_parts},
	{"in tuning", in_tuning},
	{"in dynamic graphs", in_dynamic_graphs},
	{"in sets", in_sets},
	CU_TEST_INFO_NULL
};

UNIT_SUITE("refused memory", tests);
