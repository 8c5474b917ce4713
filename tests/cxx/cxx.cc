/* SPDX-License-Identifier: Apache-2.0 */
// The public headers from C++: every one is included, a model is loaded, planned and run, and a buffer is packed.
#include <onnxmem/arena.h>
#include <onnxmem/assignment.h>
#include <onnxmem/autodiff.h>
#include <onnxmem/binding.h>
#include <onnxmem/builder.h>
#include <onnxmem/device.h>
#include <onnxmem/executor.h>
#include <onnxmem/ir.h>
#include <onnxmem/kernel.h>
#include <onnxmem/onnx.h>
#include <onnxmem/opdef.h>
#include <onnxmem/pack.h>
#include <onnxmem/pass.h>
#include <onnxmem/plan.h>
#include <onnxmem/rewrite.h>
#include <onnxmem/slice.h>
#include <onnxmem/status.h>
#include <onnxmem/tensor.h>
#include <onnxmem/trainer.h>
#include <onnxmem/version.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

int number, failed;

void report(bool ok, const std::string &what)
{
	std::printf("%sok %d - %s\n", ok ? "" : "not ", ++number, what.c_str());
	failed += !ok;
}

om_status run(om_session *s, om_prog *p)
{
	om_exec *e = nullptr;
	om_status st = om_exec_new(s, p, p->plan, nullptr, &e);
	std::vector<float> x(64, 0.5f);
	om_tensor t = {};

	t.type = OM_FLOAT32;
	t.shape = p->first->param[0]->shape;
	t.data = x.data();
	if (st == OM_OK)
		st = om_exec_input(e, 0, &t);
	if (st == OM_OK)
		st = om_exec_run(e);
	om_exec_free(e);
	return st;
}

void plan_and_run(const std::string &file)
{
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, nullptr);
	om_model *m = nullptr;
	om_prog *p = nullptr;
	uint64_t offset = UINT64_MAX;
	om_status st = om_model_load(s, file.c_str(), &m);

	if (st == OM_OK)
		st = om_model_import(s, m, &p);
	if (st == OM_OK)
		st = om_host_run(h, p, om_default_pipeline());
	report(st == OM_OK, "a model is loaded and planned " + std::string(om_message(s)));
	if (st == OM_OK) {
		report(om_plan_offset(p, p->plan, "r1", nullptr, &offset) && offset < p->plan->arena[0].bytes,
			"the plan has the offset of a value by its name");
		report(!om_plan_offset(p, p->plan, "no such value", nullptr, &offset)
			&& !om_plan_offset(p, p->plan, p->first->param[0]->name, nullptr, &offset),
			"a value without a place in the arena has no offset");
		st = run(s, p);
		report(st == OM_OK, "the plan is run " + std::string(om_message(s)));
	}
	om_prog_free(p);
	om_model_free(m);
	om_host_free(h);
	om_session_free(s);
}

}

int main()
{
	const char *srcdir = std::getenv("srcdir");

	report(std::string(om_version()) == OM_VERSION_TEXT
		&& OM_VERSION == OM_VERSION_MAJOR * 1000000 + OM_VERSION_MINOR * 1000 + OM_VERSION_PATCH,
		"headers and library are of one version");
	plan_and_run(std::string(srcdir ? srcdir : ".") + "/models/digits.onnx");
	std::printf("1..%d\n", number);
	return failed != 0;
}
